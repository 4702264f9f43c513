"""Movement of elements: chunks are joined, cut, turned round and padded by Dask, which passes most on as they are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import accumulate
from math import prod
from typing import Any, cast

import dask.array as da
import numpy as np

from ...core.enums import PaddingMode
from ...core.strided_layout import Array
from ...operators.specs.padding import constant_of
from .call import Call
from .parts import Place, by_parts, without_empty
from .windows import along, begins_of, inner, several

_BYTES = 2**20
"""Of a chunk of elements that no chunk of the tensor has, unless its own are larger."""

_MOST_RUNS = 64
"""Of elements, backward or forward, that padding is copied from along one dimension."""


def whole(call: Call, label: str) -> da.Array:
    """An operand in its tensor's sizes, no chunk without elements."""
    array, shape = without_empty(call.array(label)), call.there[label].shape
    return array if array.shape == shape else da.broadcast_to(array, shape)


def join(call: Call) -> list[da.Array]:
    desc = cast(Any, call.desc)
    return [da.concatenate([whole(call, label) for label in call.there], axis=desc.Axis)]


def split(call: Call) -> list[da.Array]:
    desc = cast(Any, call.desc)
    x = whole(call, "InputTensor")
    ends = [*accumulate(tensor.Sizes[desc.Axis] for tensor in desc.OutputTensors)]
    return [x[_at(desc.Axis, slice(begin, end))] for begin, end in zip([0, *ends], ends, strict=False)]


def window_of(call: Call) -> list[da.Array]:
    """Every so many elements, backward where a stride is negative."""
    desc = cast(Any, call.desc)
    if call.spec.name == "SLICE":
        ranges = [*zip(desc.Offsets, desc.Sizes, desc.Strides, strict=True)]
    else:
        ranges = [*zip(_starts(desc), desc.OutputTensor.Sizes, desc.InputWindowStrides, strict=True)]
    return [whole(call, "InputTensor")[tuple([_slice(*each) for each in ranges])]]


def into_window(call: Call) -> list[da.Array]:
    """Elements at the places of a window, and 0 elsewhere."""
    desc = cast(Any, call.desc)
    x = whole(call, "InputGradientTensor")
    sizes = desc.OutputGradientTensor.Sizes
    for axis, (start, stride, size) in enumerate(zip(_starts(desc), desc.InputWindowStrides, sizes, strict=True)):
        count, step = x.shape[axis], abs(stride)
        if stride < 0:
            x, start = x[_at(axis, slice(None, None, -1))], start + (count - 1) * stride
        if step > 1 and count > 1:
            chunks = tuple([tuple([n * step for n in each]) if i == axis else each for i, each in enumerate(x.chunks)])
            x = x.map_blocks(partial(_apart, axis=axis, step=step), chunks=chunks, dtype=x.dtype, meta=x._meta)
            x = x[_at(axis, slice(0, (count - 1) * step + 1))]
        x = _joined(_constant(x, axis, start, 0), x, _constant(x, axis, size - start - x.shape[axis], 0), axis)
    return [x]


def _starts(desc: Any) -> list[int]:
    """The first element of a window for each dimension; of a negative stride its last."""
    each = zip(desc.InputWindowOffsets, desc.InputWindowSizes, desc.InputWindowStrides, strict=True)
    return [offset if stride > 0 else offset + size - 1 for offset, size, stride in each]


def _apart(block: Array, axis: int, step: int) -> Array:
    """Elements with zeros behind each."""
    shape = [size * step if i == axis else size for i, size in enumerate(block.shape)]
    spread = np.zeros(shape, block.dtype)
    spread[_at(axis, slice(None, None, step))] = block
    return spread


def _at(axis: int, part: slice) -> tuple[slice, ...]:
    return (*[slice(None)] * axis, part)


def _slice(first: int, count: int, step: int) -> slice:
    """So many elements from one on."""
    end = first + count * step
    return slice(first, None if end < 0 else end, step)


# Padding


def padding(call: Call) -> list[da.Array] | None:
    """A constant, or elements of the tensor's own."""
    desc = cast(Any, call.desc)
    x = whole(call, "InputTensor")
    for axis, (start, end) in enumerate(zip(desc.StartPadding, desc.EndPadding, strict=True)):
        size = x.shape[axis]
        if desc.PaddingMode == PaddingMode.CONSTANT:
            value = constant_of(desc)
            x = _joined(_constant(x, axis, start, value), x, _constant(x, axis, end, value), axis)
            continue
        runs = [[*_runs(desc.PaddingMode, first, last, size)] for first, last in ((-start, 0), (size, size + end))]
        if max(map(len, runs)) > _MOST_RUNS:
            return None
        before, behind = ([_run(x, axis, *run) for run in each] for each in runs)
        x = _joined(before, x, behind, axis)
    return [x]


def _constant(x: da.Array, axis: int, size: int, value: Any) -> list[da.Array]:
    """A constant to be joined to an array, in chunks like its own; nothing where there is none of it."""
    if not size:
        return []
    own = _in_chunks(size, _longest(x, axis))
    chunks = tuple([own if i == axis else each for i, each in enumerate(x.chunks)])
    return [da.full(tuple(map(sum, chunks)), value, dtype=x.dtype, chunks=chunks)]


def _joined(before: Sequence[da.Array], x: da.Array, behind: Sequence[da.Array], axis: int) -> da.Array:
    """Arrays behind each other; what is shorter than the chunk beside it becomes part of that."""
    if not before and not behind:
        return x
    chunks, longest = x.chunks[axis], _longest(x, axis)
    start, end = (sum(each.shape[axis] for each in many) for many in (before, behind))
    first = (start + chunks[0],) if start <= chunks[0] else (*_in_chunks(start, longest), chunks[0])
    *_, last = chunks = (*first, *chunks[1:])
    chunks = (*chunks[:-1], end + last) if end <= last else (*chunks, *_in_chunks(end, longest))
    return da.concatenate([*before, x, *behind], axis=axis).rechunk({axis: chunks})


def _longest(x: da.Array, axis: int) -> int:
    """The length of chunks that are made along an axis: that of the longest there, or what is a MiB."""
    others: list[int] = [max(each) for i, each in enumerate(x.chunks) if i != axis]
    return int(max(*x.chunks[axis], _BYTES // (prod(others) * x.dtype.itemsize)))


def _in_chunks(size: int, most: int) -> tuple[int, ...]:
    return (*[most] * (size // most), *[size % most] * (size % most > 0))


def _runs(mode: PaddingMode, begin: int, end: int, size: int) -> Iterator[tuple[int, int, int]]:
    """The elements that stand at places before or behind those of a dimension: the first of a run, how many there are,
    and the step from one to the next."""
    i = begin
    while i < end:
        turn = 2 * size - 2 if mode == PaddingMode.REFLECTION else 2 * size
        place = i % (size if mode == PaddingMode.WRAP else max(turn, 1))
        if mode == PaddingMode.EDGE or size == 1:
            run = (0 if i < 0 else size - 1), end - i, 0
        elif place < size:
            run = place, min(end - i, size - place), 1
        else:
            # Reflected, the ends stand once; symmetric, twice.
            run = turn - place - (mode == PaddingMode.SYMMETRIC), min(end - i, turn - place), -1
        yield run
        i += run[1]


def _run(x: da.Array, axis: int, first: int, count: int, step: int) -> da.Array:
    if step:
        return x[_at(axis, _slice(first, count, step))]
    shape = [count if i == axis else size for i, size in enumerate(x.shape)]
    return da.broadcast_to(x[_at(axis, slice(first, first + 1))], shape)


# Tiling


def tile(call: Call) -> list[da.Array]:
    """Copies behind each other: of small tensors several make up a chunk."""
    desc = cast(Any, call.desc)
    x = whole(call, "InputTensor")
    for axis, copies in enumerate(desc.Repeats):
        if copies == 1:
            continue
        held = min(copies, max(1, _longest(x, axis) // x.shape[axis]))
        if held == 1:
            x = da.concatenate([x] * copies, axis=axis)
            continue
        x = x.rechunk({axis: -1})
        parts = [_copied(x, axis, held)] * (copies // held) + [_copied(x, axis, copies % held)] * (copies % held > 0)
        x = da.concatenate(parts, axis=axis) if len(parts) > 1 else parts[0]
    return [x]


def _copied(x: da.Array, axis: int, copies: int) -> da.Array:
    """Copies in one chunk of what is one chunk."""
    repeats = tuple([copies if i == axis else 1 for i in range(x.ndim)])
    chunks = tuple([(x.shape[axis] * copies,) if i == axis else each for i, each in enumerate(x.chunks)])
    return x.map_blocks(np.tile, repeats, chunks=chunks, dtype=x.dtype, meta=x._meta)


# Blocks of an image


def blocks_moved(call: Call) -> list[da.Array] | None:
    """Depth and space: along height and width chunks of whole blocks."""
    label, desc = "InputTensor", cast(Any, call.desc)
    x, block = call.array(label), desc.BlockSize
    to_depth = call.spec.name.startswith("SPACE")
    places: dict[int, list[Place]] = {}
    for number in (2, 3):
        of_input, of_output = desc.InputTensor.Sizes[number], desc.OutputTensor.Sizes[number]
        if x.shape[number] != of_input:
            continue
        ends = [end // block if to_depth else end * block for end in inner(x.chunks[number])]
        begins = begins_of(ends, of_output)
        pairs = zip(begins, [*begins[1:], of_output], strict=True)
        places[number] = [
            Place(end - begin, {label: (begin * of_input // of_output, end * of_input // of_output)})
            for begin, end in pairs
        ]
    places = several(places)
    return by_parts(call, along(call.independent, places, label, *call.outputs), places) if places else None
