"""Quantised products: where scales and zero points lie, and exact requantisation.

A scale or a zero point is one value for all, or one for each index of one dimension. Dimensions of it that are missing
are leading ones, as everywhere in DirectML.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np

from ..core.strided_layout import Array, Layout
from .constraints import same
from .schema import ConstraintFailure

Along: TypeAlias = Mapping[str, tuple[int, int]]
"""For each scale and each zero point: the dimension, counted from the last, that it may have one value for each index
of, and the size of that dimension."""

NEAR = 2.0**-40
"""How close to a half a quotient in double precision may be another's: it is off by less than 2^-51 of itself, and
saturates from 512 on."""


def wrong_types(desc: Any, label: str) -> Iterator[ConstraintFailure]:
    """Zero points of another DataType than what they are for."""
    for name in desc.__dataclass_fields__:
        if name.endswith("ZeroPointTensor") and getattr(desc, name) is not None:
            yield from same(desc, label, "DataType", f"{name.removesuffix('ZeroPointTensor')}Tensor", name)


def wrong_parameters(desc: Any, label: str, along: Along, rank: int) -> Iterator[ConstraintFailure]:
    """Scales and zero points of other sizes, beside tensors of `rank` dimensions."""
    for name, (axis, count) in along.items():
        tensor = getattr(desc, name)
        if tensor is not None and not _fits(tensor.Sizes, axis, count, rank):
            ones = (1,) * rank
            each = (*ones[:axis], count, *ones[rank + axis + 1 :])
            expected = f"{ones}, or {each} for one value for each" if count > 1 else str(ones)
            remedy = "Fewer dimensions are the last ones of the other tensors"
            yield ConstraintFailure(label, f"{name}.Sizes", str(tensor.Sizes), expected, remedy)


def _fits(sizes: Sequence[int], axis: int, count: int, rank: int) -> bool:
    sizes = _trailing(sizes, 1, axis, rank)
    place = len(sizes) + axis
    return all(size == 1 or (i == place and size == count) for i, size in enumerate(sizes))


def _trailing(dimensions: Sequence[Any], one: Any, axis: int, rank: int) -> Sequence[Any]:
    """Beside an input of one spatial dimension {1, C, 1, 1}, as the pages have it, means the channels too."""
    is_of_pages = rank == 3 and axis == -2 and len(dimensions) == 4 and dimensions[2] == dimensions[3] == one
    return dimensions[:-1] if is_of_pages else dimensions


def aligned(desc: Any, inputs: Sequence[Layout | None], along: Along, rank: int) -> list[Layout | None]:
    """The inputs of a desc, whose members they are the first of: scales and zero points with as many dimensions as the
    other tensors."""
    names = list(desc.__dataclass_fields__)[: len(inputs)]
    return [
        _aligned(layout, along[name][0], rank) if layout is not None and name in along else layout
        for name, layout in zip(names, inputs, strict=True)
    ]


def _aligned(layout: Layout, axis: int, rank: int) -> Layout:
    """A stride of 0 lets a kernel step through one value as through many."""
    steps = [(n, step if n > 1 else 0) for n, step in zip(layout.sizes, layout.strides, strict=True)]
    dimensions = [(1, 0)] * rank + list(_trailing(steps, (1, 0), axis, rank))
    sizes, strides = zip(*dimensions[-rank:], strict=True)
    return Layout(layout.type, sizes, strides)


def lined_up(desc: Any, along: Along, rank: int) -> dict[str, list[int | None]]:
    """The dimension of the output that each scale and each zero point lines up with, of those that there are."""
    found: dict[str, list[int | None]] = {}
    for name, (axis, _) in along.items():
        tensor = getattr(desc, name)
        if tensor is not None:
            found[name] = [rank + axis if size > 1 else None for size in tensor.Sizes]
    return found


def differences(x: Array, zero_point: Array | None) -> Array:
    """x - zero point, in 64 bits."""
    return x.astype(np.int64) - (0 if zero_point is None else zero_point.astype(np.int64))


def requantised(total: Array, factor: Array, scale: Array, zero_point: Array | None, dtype: np.dtype[Any]) -> Array:
    """clamp(round(total * factor / scale) + zero point): of exact numbers, halves to the even integer.

    Args:
        total: integers.
        factor: the product of the inputs' scales, in double precision, in which it is exact.
        scale: that of the output.
    """
    limits = np.iinfo(dtype)
    factor, scale = (np.broadcast_to(each.astype(np.float64), total.shape) for each in (factor, scale))
    with np.errstate(all="ignore"):
        quotient = total * (factor / scale)
        whole = np.where(np.isnan(quotient), 0, np.rint(quotient))
        is_near = (np.abs(np.abs(quotient - np.trunc(quotient)) - 0.5) < NEAR) & (np.abs(quotient) < 1024)
    for place in map(tuple, np.argwhere(is_near)):
        exact = int(total[place]) * Fraction(float(factor[place])) / Fraction(float(scale[place]))
        whole[place] = round(exact)
    shifted = whole + (0 if zero_point is None else zero_point.astype(np.float64))
    result: Array = np.clip(shifted, limits.min, limits.max).astype(dtype)
    return result
