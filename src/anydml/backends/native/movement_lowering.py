"""Operators that copy elements, as views for the CPU's kernel of movement.

A view says of each dimension of the output where its elements come from: of segments, one behind the other, each a run
of the input at some step, or a constant. A place's element is the one that its place in each dimension leads to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ...core.enums import InterpolationMode, PaddingMode
from ...core.strided_layout import DTYPES, Array, Layout
from ...operators import spec_of
from ...operators.constraints import rounded
from ...operators.schema import AttributeValues
from ...operators.specs.fill import value_as
from .request import Lowered, bits_of


class Segment(NamedTuple):
    """So many elements of the output along a dimension."""

    size: int
    start: int | None = 0
    """The input's element that the first one is; None where all are the constant."""
    step: int = 1
    """From one to the next, in the input."""


class Group(NamedTuple):
    """Segments, one behind the other, and all of them again and again."""

    segments: tuple[Segment, ...]
    repeats: int = 1


class Dimension(NamedTuple):
    """A dimension of the output, or one that is a part of it."""

    groups: tuple[Group, ...]
    every: int = 1
    """The output's elements from one step to the next."""


View: TypeAlias = Sequence[Sequence[Dimension]]
"""For each dimension of the output, which is also one of the input, those that it is made of."""


def lowered(desc: Any, inputs: Sequence[Layout | None], outputs: Sequence[Layout | None]) -> Lowered | None:
    """An operator that copies elements, of which `VIEWS` has the views; None where it does more than copy."""
    spec = spec_of(desc)
    assert spec is not None
    views = VIEWS[spec.name](desc)
    if views is None:
        return None
    constant = _CONSTANTS.get(spec.name)
    return _moved(views, (*inputs, None)[0], outputs, None if constant is None else constant(desc))


def copied(source: Layout | None, output: Layout | None) -> Lowered | None:
    """A tensor as another of its type."""
    assert source is not None and output is not None
    if source.type != output.type:
        return None
    return _moved([[[_run(size)] for size in source.sizes]], source, [output])


def _moved(
    views: Sequence[View], source: Layout | None, outputs: Sequence[Layout | None], constant: Array | None = None
) -> Lowered:
    words = [word for view, output in zip(views, outputs, strict=True) for word in _words(view, source, output)]
    attributes: dict[str, AttributeValues] = {"Views": tuple(words)}
    if constant is not None:
        attributes["Constant"] = (bits_of(constant),)
    return "MOVEMENT", attributes


def _words(view: View, source: Layout | None, output: Layout | None) -> Iterable[int]:
    """A view as src/native/movement/view.h reads it, with steps in bytes."""
    assert output is not None
    yield sum(len(parts) for parts in view)
    for i, parts in enumerate(view):
        in_stride = 0 if source is None else source.strides[i]
        for dimension in parts:
            yield from (dimension.every * output.strides[i], len(dimension.groups))
            for group in dimension.groups:
                yield from (group.repeats, len(group.segments))
                for segment in group.segments:
                    step = segment.step * in_stride if segment.size > 1 else 0
                    yield from (segment.size, segment.start is None, (segment.start or 0) * in_stride, step)


def _run(size: int, start: int | None = 0, step: int = 1, every: int = 1) -> Dimension:
    return Dimension((Group((Segment(size, start, step),)),), every)


def _slice(desc: Any) -> list[View]:
    parts = zip(desc.Sizes, desc.Offsets, desc.Strides, strict=True)
    return [[[_run(size, offset, stride)] for size, offset, stride in parts]]


def _slice1(desc: Any) -> list[View]:
    windows = zip(desc.InputWindowOffsets, desc.InputWindowSizes, desc.InputWindowStrides, strict=True)
    starts = [(offset if stride > 0 else offset + size - 1, stride) for offset, size, stride in windows]
    return [[[_run(size, *each)] for size, each in zip(desc.OutputTensor.Sizes, starts, strict=True)]]


def _split(desc: Any) -> list[View]:
    views: list[View] = []
    start = 0
    for piece in desc.OutputTensors:
        views.append([[_run(size, start if i == desc.Axis else 0)] for i, size in enumerate(piece.Sizes)])
        start += piece.Sizes[desc.Axis]
    return views


def _tile(desc: Any) -> list[View]:
    sizes = zip(desc.InputTensor.Sizes, desc.Repeats, strict=True)
    return [[[_run(repeats, 0, 0, every=size), _run(size)] for size, repeats in sizes]]


def _upsample(desc: Any) -> list[View] | None:
    if desc.InterpolationMode != InterpolationMode.NEAREST_NEIGHBOR:
        return None
    rank, scale = len(desc.InputTensor.Sizes), desc.ScaleSize
    scales = [*[1] * (rank - 2), scale.Height, scale.Width]
    sizes = zip(desc.InputTensor.Sizes, scales, strict=True)
    return [[[_run(size, every=times), _run(times, 0, 0)] for size, times in sizes]]


def _cast(desc: Any) -> list[View] | None:
    """Where bits stay the same."""
    given, wanted = (DTYPES[tensor.DataType] for tensor in (desc.InputTensor, desc.OutputTensor))
    both = given.kind + wanted.kind
    if given != wanted and (given.itemsize != wanted.itemsize or "f" in both):
        return None
    return [[[_run(size)] for size in desc.InputTensor.Sizes]]


def _fill(desc: Any) -> list[View]:
    return [[[_run(size, None)] for size in desc.OutputTensor.Sizes]]


def _padding(desc: Any) -> list[View]:
    ends = zip(desc.StartPadding, desc.InputTensor.Sizes, desc.EndPadding, strict=True)
    return [[[Dimension(tuple(_padded(desc.PaddingMode, *each)))] for each in ends]]


def _padded(mode: PaddingMode, start: int, size: int, end: int) -> Iterable[Group]:
    """A dimension with so many elements before and behind its own."""
    if mode in (PaddingMode.CONSTANT, PaddingMode.EDGE):
        first, last = (None, None) if mode == PaddingMode.CONSTANT else (0, size - 1)
        segments = Segment(start, first, 0), Segment(size), Segment(end, last, 0)
        yield Group(tuple([each for each in segments if each.size]))
        return
    period = _PERIODS[mode](size)
    length, total = sum(each.size for each in period), start + size + end
    phase = -start % length
    head = min(-phase % length, total)
    repeats, tail = divmod(total - head, length)
    for groups, times in ((_part(period, phase, phase + head), 1), (period, repeats), (_part(period, 0, tail), 1)):
        if groups and times:
            yield Group(tuple(groups), times)


_PERIODS: Mapping[PaddingMode, Callable[[int], Sequence[Segment]]] = {
    PaddingMode.REFLECTION: lambda size: [Segment(size), *[Segment(size - 2, size - 2, -1)] * (size > 2)],
    PaddingMode.SYMMETRIC: lambda size: [Segment(size), Segment(size, size - 1, -1)],
    PaddingMode.WRAP: lambda size: [Segment(size)],
}
"""What a dimension of so many elements is repeated as."""


def _part(period: Sequence[Segment], begin: int, end: int) -> list[Segment]:
    """What is between two places of a period."""
    parts = []
    for size, start, step in period:
        assert start is not None
        first, last = max(begin, 0), min(end, size)
        if first < last:
            parts.append(Segment(last - first, start + first * step, step))
        begin, end = begin - size, end - size
    return parts


VIEWS: Mapping[str, Callable[[Any], list[View] | None]] = {
    "SLICE": _slice,
    "SLICE1": _slice1,
    "CAST": _cast,
    "SPLIT": _split,
    "TILE": _tile,
    "PADDING": _padding,
    "UPSAMPLE_2D": _upsample,
    "FILL_VALUE_CONSTANT": _fill,
}
"""What gives the views of an operator, one for each output; None where it does more than copy."""


def _filled(desc: Any) -> Array:
    return value_as(desc.Value, desc.ValueDataType)


def _padding_value(desc: Any) -> Array:
    with np.errstate(over="ignore"):
        return rounded(np.array([desc.PaddingValue]), DTYPES[desc.InputTensor.DataType])


_CONSTANTS: Mapping[str, Callable[[Any], Array]] = {"PADDING": _padding_value, "FILL_VALUE_CONSTANT": _filled}
