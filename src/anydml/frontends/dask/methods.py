"""Which operators have better ways over chunks than to gather the dimensions that are not independent."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TypeAlias

import dask.array as da

from .blockwise import blockwise
from .call import Call
from .gather import gathered
from .gemm import gemm, integer_gemm
from .movement import blocks_moved, into_window, join, padding, split, tile, window_of
from .normalize import batch_training, hardmax, lp_normalization, mean_variance, softmax
from .reduce import index, reduce
from .resampling import resampled, upsampled
from .scan import scan
from .transposed import convolution, pooling_gradients
from .windows import WINDOWS, local_response, windowed

Method: TypeAlias = Callable[[Call], "list[da.Array] | None"]
"""The outputs of a call; None where the rule of :func:`blockwise` does as well."""

METHODS: Mapping[str, Method] = {
    **dict.fromkeys(WINDOWS, windowed),
    "ACTIVATION_HARDMAX": hardmax,
    "ACTIVATION_HARDMAX1": hardmax,
    "ACTIVATION_LOG_SOFTMAX": softmax,
    "ACTIVATION_LOG_SOFTMAX1": softmax,
    "ACTIVATION_SOFTMAX": softmax,
    "ACTIVATION_SOFTMAX1": softmax,
    "ARGMAX": index,
    "ARGMIN": index,
    "AVERAGE_POOLING_GRAD": pooling_gradients,
    "BATCH_NORMALIZATION_TRAINING": batch_training,
    "CONVOLUTION": convolution,
    "CUMULATIVE_PRODUCT": scan,
    "CUMULATIVE_SUMMATION": scan,
    "DEPTH_TO_SPACE": blocks_moved,
    "DEPTH_TO_SPACE1": blocks_moved,
    "GATHER": gathered,
    "GEMM": gemm,
    "JOIN": join,
    "LOCAL_RESPONSE_NORMALIZATION": local_response,
    "LP_NORMALIZATION": lp_normalization,
    "MATRIX_MULTIPLY_INTEGER": integer_gemm,
    "MAX_POOLING_GRAD": pooling_gradients,
    "MEAN_VARIANCE_NORMALIZATION": mean_variance,
    "MEAN_VARIANCE_NORMALIZATION1": mean_variance,
    "MEAN_VARIANCE_NORMALIZATION2": mean_variance,
    "PADDING": padding,
    "PADDING1": padding,
    "REDUCE": reduce,
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
    with _collection_deferred():
        found = None if method is None else method(call)
        return blockwise(call) if found is None else found


@contextmanager
def _collection_deferred() -> Iterator[None]:
    """Without garbage collection, which would walk over all tasks again and again while more are made, and find none
    that nobody needs: a graph of 100,000 took three times as long."""
    is_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if is_on:
            gc.enable()
