"""Which operators have better ways over chunks than to gather the dimensions that are not independent."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

import dask.array as da

from .blockwise import blockwise
from .call import Call
from .gather import gathered
from .gemm import gemm, integer_gemm
from .movement import blocks_moved, into_window, join, padding, split, tile, window_of
from .resampling import resampled, upsampled
from .transposed import convolution, pooling_gradients
from .windows import WINDOWS, local_response, windowed

Method: TypeAlias = Callable[[Call], "list[da.Array] | None"]
"""The outputs of a call; None where the rule of :func:`blockwise` does as well."""

METHODS: Mapping[str, Method] = {
    **dict.fromkeys(WINDOWS, windowed),
    "AVERAGE_POOLING_GRAD": pooling_gradients,
    "CONVOLUTION": convolution,
    "DEPTH_TO_SPACE": blocks_moved,
    "DEPTH_TO_SPACE1": blocks_moved,
    "GATHER": gathered,
    "GEMM": gemm,
    "JOIN": join,
    "LOCAL_RESPONSE_NORMALIZATION": local_response,
    "MATRIX_MULTIPLY_INTEGER": integer_gemm,
    "MAX_POOLING_GRAD": pooling_gradients,
    "PADDING": padding,
    "PADDING1": padding,
    "RESAMPLE": resampled,
    "RESAMPLE1": resampled,
    "RESAMPLE2": resampled,
    "RESAMPLE3": resampled,
    "SLICE": window_of,
    "SLICE1": window_of,
    "SLICE_GRAD": into_window,
    "SPACE_TO_DEPTH": blocks_moved,
    "SPACE_TO_DEPTH1": blocks_moved,
    "SPLIT": split,
    "TILE": tile,
    "UPSAMPLE_2D": upsampled,
}
"""By operator. All others have none but that rule."""


def outputs_of(call: Call) -> list[da.Array]:
    """The outputs that there are, by the best way."""
    method = METHODS.get(call.spec.name)
    found = None if method is None else method(call)
    return blockwise(call) if found is None else found
