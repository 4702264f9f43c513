"""Gathering along a chunked axis: where the indices are known, a chunk takes only from those that they name."""

from __future__ import annotations

from typing import Any, cast

import dask.array as da
import numpy as np

from ...functions._call import as_device, raise_any
from ...functions._messages import argument_label, in_function_terms
from ...operators.validate import check_values
from .call import Call, Operand
from .movement import whole


def gathered(call: Call) -> list[da.Array] | None:
    """Elements along an axis in several chunks, of indices in memory; they are looked at now."""
    desc = cast(Any, call.desc)
    indices, x = call.there["IndicesTensor"].array, whole(call, "InputTensor")
    if isinstance(indices, da.Array) or x.numblocks[desc.Axis] == 1:
        return None
    names = {label: argument_label(label) for label in call.there}
    raise_any(in_function_terms(check_values(call.spec, desc, [None, indices]), as_device("cpu"), names))
    size = x.shape[desc.Axis]
    flat = indices.reshape(-1).astype(np.int64)
    taken = da.take(x, np.where(flat < 0, flat + size, flat), axis=desc.Axis)
    kept = indices.shape[indices.ndim - desc.IndexDimensions :]
    several = [length for length in kept if length != 1]
    if len(several) > 1:
        taken = taken.reshape((*x.shape[: desc.Axis], *kept, *x.shape[desc.Axis + 1 :]))
    return [Operand.of(taken).spread(tuple(desc.OutputTensor.Sizes)).array]
