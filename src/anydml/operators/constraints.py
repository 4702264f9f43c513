"""What specifications share: the commonest constraints, and how values are computed and rounded.

Floats are computed in the next wider type and rounded once, integers as they are, modulo 2^n. What is computed from
integers by floats becomes an integer again by truncation, saturated.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import isfinite, prod
from typing import Any

import numpy as np

from ..core.enums import TensorDataType
from ..core.strided_layout import DTYPES, Array
from .schema import Choices, ConstraintFailure, OperatorDesc, Tensor

WIDER: dict[np.dtype[Any], np.dtype[Any]] = {
    np.dtype(np.float32): np.dtype(np.float64),
    np.dtype(np.float16): np.dtype(np.float32),
}
"""The type that floats are computed in."""


def widened(x: Array) -> Array:
    return x.astype(WIDER.get(x.dtype, x.dtype))


def scaled(desc: OperatorDesc, x: Array) -> Array:
    """g(x) = x * Scale + Bias, where the desc has a ScaleBias."""
    scale_bias = getattr(desc, "ScaleBias", None)
    if scale_bias is None:
        return widened(x)
    # In float64 also for FLOAT16: Scale and Bias are of single precision, and products of such are exact there.
    g: Array = x.astype(np.float64) * scale_bias.Scale + scale_bias.Bias
    return g


def rounded(y: Array, dtype: np.dtype[Any]) -> Array:
    """What was computed, as values of the output's type."""
    if y.dtype.kind != "f" or dtype.kind == "f":
        return y.astype(dtype)
    limits = np.iinfo(dtype)
    # No float of fewer bits than the limits' is beside them: compared as floats, and set as integers.
    y = np.trunc(np.where(np.isnan(y), 0.0, y))
    inside = (y >= float(limits.min)) & (y < float(limits.max) + 1)
    result = np.where(inside, y, 0.0).astype(dtype)
    result[y < float(limits.min)] = limits.min
    result[y >= float(limits.max) + 1] = limits.max
    return result


def same(desc: OperatorDesc, label: str, member: str, first: str, *others: str) -> Iterator[ConstraintFailure]:
    """That tensors agree with the first in a member: DataType, DimensionCount or Sizes of as many dimensions."""
    wanted = _shown(getattr(desc, first), member)
    count = len(getattr(desc, first).Sizes)
    for name in others:
        found = _shown(getattr(desc, name), member)
        if found != wanted and (member != "Sizes" or len(getattr(desc, name).Sizes) == count):
            yield ConstraintFailure(label, f"{name}.{member}", found, f"{wanted}, that of {first}")


def broadcasting(desc: OperatorDesc, label: str, first: str, *others: str) -> Iterator[ConstraintFailure]:
    """That each size of tensors of as many dimensions is the first's, or 1."""
    wanted = getattr(desc, first).Sizes
    for name in others:
        found = getattr(desc, name).Sizes
        for i, (size, right) in enumerate(zip(found, wanted, strict=False)):
            if len(found) == len(wanted) and size not in (1, right):
                expected = f"{right}, that of {first}" + (", or 1" if right != 1 else "")
                yield ConstraintFailure(label, f"{name}.Sizes[{i}]", str(size), expected)


def axes_within(desc: Any, none: str, beyond: str, twice: str) -> Iterator[ConstraintFailure]:
    """That there are Axes, each of them one of InputTensor's, and each once."""
    count = len(desc.InputTensor.Sizes)
    if not desc.Axes:
        yield ConstraintFailure(none, "AxisCount", "0", "at least 1")
    for i, axis in enumerate(desc.Axes):
        if axis >= count:
            yield ConstraintFailure(
                beyond, f"Axes[{i}]", str(axis), f"less than {count}, the DimensionCount of InputTensor"
            )
        elif axis in desc.Axes[:i]:
            yield ConstraintFailure(twice, f"Axes[{i}]", f"{axis} again", "every axis once")


def as_many(desc: Any, label: str, tensor: str = "InputTensor") -> Iterator[ConstraintFailure]:
    """That the arrays which DimensionCount counts have an element for each dimension of a tensor."""
    rank = len(getattr(desc, tensor).Sizes)
    if desc.DimensionCount != rank:
        yield ConstraintFailure(label, "DimensionCount", str(desc.DimensionCount), f"{rank}, that of {tensor}")


def at_least_1(desc: OperatorDesc, label: str, *names: str) -> Iterator[ConstraintFailure]:
    """That every element of some arrays is."""
    for name in names:
        for i, value in enumerate(getattr(desc, name)):
            if value < 1:
                yield ConstraintFailure(label, f"{name}[{i}]", str(value), "at least 1")


def type_of_output(desc: Any, label: str, member: str, tensor: str = "OutputTensor") -> Iterator[ConstraintFailure]:
    """That a member which says the type of scalars says the output's."""
    found, wanted = getattr(desc, member), getattr(desc, tensor).DataType
    if found != wanted:
        yield ConstraintFailure(label, member, found.name, f"{wanted.name}, that of {tensor}")


def is_held(
    desc: OperatorDesc, label: str, member: str, data_type: TensorDataType, signed: bool = False
) -> Iterator[ConstraintFailure]:
    """That a SCALAR is a value of a type, or, where `signed` says so, of the signed integers of its size."""
    value, dtype = getattr(desc, member), DTYPES.get(data_type)
    if dtype is None:
        return
    if dtype.kind == "f":
        with np.errstate(over="ignore"):
            if isfinite(value) and np.isinf(np.array(float(value)).astype(dtype)):
                largest = np.finfo(dtype).max
                yield ConstraintFailure(
                    label, member, str(value), f"a number from {-largest} to {largest}, as {data_type.name} has"
                )
        return
    limits = np.iinfo(dtype)
    lowest = -(2 ** (limits.bits - 1)) if signed else int(limits.min)
    if not isfinite(value) or not lowest <= value <= limits.max or value != int(value):
        expected = f"an integer from {lowest} to {limits.max}, which {data_type.name} holds"
        yield ConstraintFailure(label, member, str(value), expected)


def _shown(tensor: Tensor, member: str) -> str:
    value = getattr(tensor, member)
    return value.name if member == "DataType" else str(value)


def limits_of_indices(indices: Tensor, size: int) -> tuple[int, int]:
    """The least and the largest index of a dimension, from whose end negative ones of signed types count."""
    return -size if DTYPES[indices.DataType].kind == "i" else 0, size - 1


def not_indices(
    label: str, indices: Array | None, limits: tuple[int, int], meaning: str, coordinate: int | None = None
) -> Iterator[ConstraintFailure]:
    """The first of the indices, or of those of one coordinate, which are the last dimension's, that is none."""
    assert indices is not None
    lowest, highest = limits
    those = indices if coordinate is None else indices[..., coordinate]
    if lowest <= those.min() and those.max() <= highest:
        return
    place = tuple(np.argwhere((those < lowest) | (those > highest))[0].tolist())
    place += () if coordinate is None else (coordinate,)
    yield ConstraintFailure(
        label, "IndicesTensor", f"{indices[place]} at {place}", f"from {lowest} to {highest}, {meaning}"
    )


def sizes_of(tensor: Tensor) -> Choices:
    """Those, and no others."""
    return tuple((size,) for size in tensor.Sizes)


def gathered(x: Array, axes: Sequence[int]) -> Array:
    """A matrix whose rows are the elements along some axes, in row-major order.

    It is packed, so that the order in which NumPy combines a row depends on no stride.
    """
    kept = [i for i in range(x.ndim) if i not in axes]
    rows = x.transpose(*kept, *sorted(axes)).reshape(-1, prod(x.shape[axis] for axis in axes))
    return np.ascontiguousarray(rows)
