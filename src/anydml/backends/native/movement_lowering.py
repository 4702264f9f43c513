"""Operators that copy elements, as views for the CPU's kernel of movement.

A view says of each dimension of the output where its elements come from: of segments, one behind the other, each a run
of the input at some step, or a constant. A place's element is the one that its place in each dimension leads to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import product
from math import prod
from typing import Any, NamedTuple, TypeAlias

from ...core.enums import PaddingMode
from ...core.strided_layout import DTYPES, Array, Layout
from ...operators import spec_of
from ...operators.schema import AttributeValues
from ...operators.specs.depth_space import is_depth_first
from ...operators.specs.fill import value_as
from ...operators.specs.padding import constant_of
from ...operators.specs.slice import starts_of
from ...operators.specs.unfold import blocks_of
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
    step: int = 0
    """From one time to the next, in the input."""


class Dimension(NamedTuple):
    """A dimension of the output, or one that is a part of it."""

    groups: tuple[Group, ...]
    every: int = 1
    """The output's elements from one step to the next."""
    source: int | None = None
    """The input's dimension; where None the one of the output's number."""


View: TypeAlias = Sequence[Sequence[Dimension]]
"""For each dimension of the output those that it is made of."""


class Part(NamedTuple):
    """A view of a part of an output."""

    origin: Sequence[int]
    """The output's element that is the first one."""
    view: View


def lowered(desc: Any, inputs: Sequence[Layout | None], outputs: Sequence[Layout | None]) -> Lowered | None:
    """An operator that copies elements, of which `VIEWS` has the views; None where it does more than copy."""
    spec = spec_of(desc)
    assert spec is not None
    constant = CONSTANTS.get(spec.name)
    value = None if constant is None else constant(desc)
    if spec.name in PARTS:
        return _put_together(PARTS[spec.name](desc), inputs[0], outputs[0], value)
    views = VIEWS[spec.name](desc)
    return None if views is None else _moved(views, (*inputs, None)[0], outputs, value)


def copied(source: Layout | None, output: Layout | None) -> Lowered | None:
    """A tensor as another of its type."""
    assert source is not None and output is not None
    if source.type != output.type:
        return None
    return _moved([[[_run(size)] for size in source.sizes]], source, [output])


def repeated(source: Layout, output: Layout, times: Sequence[int]) -> Lowered:
    """Each element so many times along each dimension."""
    return _moved([_repeated(source.sizes, times)], source, [output])


def _moved(
    views: Sequence[View], source: Layout | None, outputs: Sequence[Layout | None], constant: Array | None = None
) -> Lowered:
    words: list[int] = []
    for i, (view, output) in enumerate(zip(views, outputs, strict=True)):
        words += [i, 0, *_words(view, source, output)]
    return _request(words, constant)


def _put_together(
    parts: Sequence[Part] | None, source: Layout | None, output: Layout | None, constant: Array | None
) -> Lowered | None:
    """The parts of an only output, each at its place."""
    if parts is None:
        return None
    assert output is not None
    words: list[int] = []
    for origin, view in parts:
        place = sum(i * stride for i, stride in zip(origin, output.strides, strict=True))
        words += [0, place, *_words(view, source, output)]
    return _request(words, constant)


def _request(words: Sequence[int], constant: Array | None) -> Lowered:
    attributes: dict[str, AttributeValues] = {"Views": tuple(words)}
    if constant is not None:
        attributes["Constant"] = (bits_of(constant),)
    return "MOVEMENT", attributes


def _words(view: View, source: Layout | None, output: Layout | None) -> Iterable[int]:
    """A view as src/native/movement/view.h reads it, with steps in bytes."""
    assert output is not None
    yield sum(len(parts) for parts in view)
    for i, parts in enumerate(view):
        for dimension in parts:
            axis = i if dimension.source is None else dimension.source
            in_stride = 0 if source is None else source.strides[axis]
            yield from (dimension.every * output.strides[i], len(dimension.groups))
            for group in dimension.groups:
                yield from (group.repeats, group.step * in_stride, len(group.segments))
                for segment in group.segments:
                    step = segment.step * in_stride if segment.size > 1 else 0
                    yield from (segment.size, segment.start is None, (segment.start or 0) * in_stride, step)


def _run(size: int, start: int | None = 0, step: int = 1, every: int = 1, source: int | None = None) -> Dimension:
    return Dimension((Group((Segment(size, start, step),)),), every, source)


def _slice(desc: Any) -> list[View]:
    parts = zip(desc.Sizes, desc.Offsets, desc.Strides, strict=True)
    return [[[_run(size, offset, stride)] for size, offset, stride in parts]]


def _slice1(desc: Any) -> list[View]:
    windows = zip(desc.OutputTensor.Sizes, starts_of(desc), desc.InputWindowStrides, strict=True)
    return [[[_run(*each)] for each in windows]]


def _slice_grad(desc: Any) -> list[View]:
    sizes = desc.OutputGradientTensor.Sizes, desc.InputGradientTensor.Sizes
    places = zip(*sizes, starts_of(desc), desc.InputWindowStrides, strict=True)
    return [[[Dimension(tuple(_spread(*each)))] for each in places]]


def _spread(size: int, count: int, start: int, stride: int) -> Iterable[Group]:
    """So many elements in a dimension, the first at its start."""
    direction, step = (1, stride) if stride > 0 else (-1, -stride)
    first = 0 if stride > 0 else count - 1
    before = start + first * stride
    behind = size - before - (count - 1) * step - 1
    if before:
        yield Group((Segment(before, None),))
    if step == 1:
        yield Group((Segment(count, first, direction),))
    else:
        # With the zeros up to the next one, but for the last where these are fewer.
        spread = count if behind >= step - 1 else count - 1
        if spread:
            yield Group((Segment(1, first), Segment(step - 1, None)), spread, direction)
        if spread < count:
            yield Group((Segment(1, first + spread * direction),))
        else:
            behind -= step - 1
    if behind:
        yield Group((Segment(behind, None),))


def _depth_to_space(desc: Any) -> list[View]:
    block, (batch, channels, height, width) = desc.BlockSize, desc.InputTensor.Sizes
    depth = channels // block**2
    channel, row, column = (1, block * depth, depth) if is_depth_first(desc) else (block**2, block, 1)
    rows = [_run(height, every=block), _run(block, step=row, source=1)]
    columns = [_run(width, every=block), _run(block, step=column, source=1)]
    return [[[_run(batch)], [_run(depth, step=channel)], rows, columns]]


def _space_to_depth(desc: Any) -> list[View]:
    block, (batch, channels, height, width) = desc.BlockSize, desc.InputTensor.Sizes
    depth_first = is_depth_first(desc)
    channel, row, column = (1, block * channels, channels) if depth_first else (block**2, block, 1)
    of_block = [_run(block, every=row, source=2), _run(block, every=column, source=3)]
    of_depth = [_run(channels, every=channel)]
    depth = of_block + of_depth if depth_first else of_depth + of_block
    return [[[_run(batch)], depth, [_run(height // block, step=block)], [_run(width // block, step=block)]]]


class _Taps(NamedTuple):
    """Neighbours among the taps of a window that have elements, and not padding, at the same places of it."""

    first: int
    number: int
    places: tuple[Segment, ...]


def _taps(size: int, taps: int, stride: int, dilation: int, start: int, blocks: int) -> list[_Taps]:
    """A spatial dimension: at place b, tap w lies on element b * stride + w * dilation - start."""
    found: list[_Taps] = []
    ends: tuple[int, int] | None = None
    for tap in range(taps):
        origin = tap * dilation - start
        begin = min(max(-(origin // stride), 0), blocks)
        end = max(begin, min((size - 1 - origin) // stride + 1, blocks))
        if (begin, end) == ends:
            found[-1] = found[-1]._replace(number=found[-1].number + 1)
            continue
        ends = begin, end
        segments = (
            Segment(begin, None),
            Segment(end - begin, origin + begin * stride, stride),
            Segment(blocks - end, None),
        )
        found.append(_Taps(tap, 1, tuple([each for each in segments if each.size])))
    return found


_MOST_PARTS = 4096
_ROW = 16
"""Places of a row from which on a window with steps is copied row by row, by `fold/unfold.cpp`, rather than as
segments of single elements."""
_LINE, _PLANE = 64, 16 << 10
"""Bytes below which rows are short, and up to which windows of a plane are put together by shuffles there."""


def _unfold(desc: Any) -> list[Part] | None:
    """Parts of rows that are alike in what is padding: without padding one. None where they are copied otherwise."""
    batch, channels, *sizes = desc.InputTensor.Sizes
    blocks = blocks_of(desc)
    strides = desc.InputTensor.Strides
    if strides is None or strides[-1] == 1:
        if desc.Strides[-1] > 1 and blocks[-1] >= _ROW:
            return None
        item = DTYPES[desc.OutputTensor.DataType].itemsize
        is_short = desc.Strides[-1] > 1 or blocks[-1] * item < _LINE
        if is_short and 16 < prod(desc.WindowSizes) * prod(blocks) * item <= _PLANE:
            return None
    windows = zip(sizes, desc.WindowSizes, desc.Strides, desc.Dilations, desc.StartPadding, blocks, strict=True)
    each = [_taps(*window) for window in windows]
    if prod(map(len, each)) > _MOST_PARTS:
        return None
    rows = [prod(desc.WindowSizes[i + 1 :]) for i in range(len(blocks))]
    columns = [prod(blocks[i + 1 :]) for i in range(len(blocks))]
    parts = []
    for taps in product(*each):
        of_rows = [_run(channels, every=prod(desc.WindowSizes), source=1)]
        of_columns = []
        for i, (_, number, places) in enumerate(taps):
            of_rows.append(_run(number, 0, desc.Dilations[i], rows[i], i + 2))
            of_columns.append(Dimension((Group(places),), columns[i], i + 2))
        row = sum(tap.first * every for tap, every in zip(taps, rows, strict=True))
        parts.append(Part((0, row, 0), [[_run(batch)], of_rows, of_columns]))
    return parts


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


def _upsample(desc: Any) -> list[View]:
    """Of the nearest elements."""
    rank, scale = len(desc.InputTensor.Sizes), desc.ScaleSize
    return [_repeated(desc.InputTensor.Sizes, [*[1] * (rank - 2), scale.Height, scale.Width])]


def _repeated(sizes: Sequence[int], times: Sequence[int]) -> View:
    return [[_run(size, every=each), _run(each, 0, 0)] for size, each in zip(sizes, times, strict=True)]


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
    "SLICE_GRAD": _slice_grad,
    "DEPTH_TO_SPACE": _depth_to_space,
    "DEPTH_TO_SPACE1": _depth_to_space,
    "SPACE_TO_DEPTH": _space_to_depth,
    "SPACE_TO_DEPTH1": _space_to_depth,
    "CAST": _cast,
    "SPLIT": _split,
    "TILE": _tile,
    "PADDING": _padding,
    "PADDING1": _padding,
    "UPSAMPLE_2D": _upsample,
    "FILL_VALUE_CONSTANT": _fill,
}
"""What gives the views of an operator, one for each output; None where it does more than copy."""


PARTS: Mapping[str, Callable[[Any], list[Part] | None]] = {"UNFOLD": _unfold}
"""What gives the parts of an operator's only output; None where they are too many."""


def _filled(desc: Any) -> Array:
    return value_as(desc.Value, desc.ValueDataType)


CONSTANTS: Mapping[str, Callable[[Any], Array]] = {
    "PADDING": constant_of,
    "PADDING1": constant_of,
    "SLICE_GRAD": lambda desc: value_as(0, desc.OutputGradientTensor.DataType),
    "UNFOLD": lambda desc: value_as(0, desc.OutputTensor.DataType),
    "FILL_VALUE_CONSTANT": _filled,
}
