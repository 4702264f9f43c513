"""Overlapping parts: each chunk of an operator's output is computed from slices of its inputs that lie around it.

Along a dimension of the output its places say which elements of an input a chunk needs. Of chunks that it needs whole a
task takes the whole; of others a task where they are cuts out what it needs, so that no more than that travels.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, chain, count, islice, product
from math import prod
from operator import getitem
from typing import Any, TypeAlias

import dask.array as da
import numpy as np
from dask._task_spec import Task, TaskRef
from dask.array.core import concatenate3, unify_chunks
from dask.base import tokenize
from dask.highlevelgraph import HighLevelGraph

from ...core.packed_array import PackedArray
from ...core.strided_layout import Array
from ...core.tensor_desc import DML_BUFFER_TENSOR_DESC
from ...core.truth_values import BOOL
from ...operators.independence import cut
from ...operators.schema import Independence, OperatorDesc
from .call import Call
from .tasks import First, compute, operator_of, results_of

Interval: TypeAlias = tuple[int, int]
"""Its first element, and the one behind its last."""


@dataclass(frozen=True, slots=True)
class Place:
    """A chunk of a dimension of the output.

    Args:
        size: its elements.
        reads: by label, the elements of inputs that it is computed from.
        members: those of the desc that differ for it: name, index and value.
        made: elements of the part's output, where it has others around these; None where it has not.
        skipped: those before these.
    """

    size: int
    reads: Mapping[str, Interval]
    members: tuple[tuple[str, int, Any], ...] = ()
    made: int | None = None
    skipped: int = 0


Places: TypeAlias = Mapping[int, Sequence[Place]]
"""By dimension of the output."""

Finish: TypeAlias = Callable[[OperatorDesc, OperatorDesc, Mapping[int, Place], "list[Array]"], "list[Array]"]
"""What is made of the results of a part: of the desc of the whole, that of the part, and its place."""


@dataclass(frozen=True, slots=True)
class _Part:
    """What computes an operator on what a chunk of the output needs."""

    desc: OperatorDesc
    device: Any
    gives_truth: bool
    stated: Independence
    given: tuple[str, ...]
    finish: Finish | None

    def __call__(self, numbers: tuple[int, ...], places: tuple[Place, ...], shapes: Any, *blocks: Any) -> list[Array]:
        """The results at a place, of chunks of the operands and how many there are of each along each dimension."""
        where = dict(zip(numbers, places, strict=True))
        rest = iter(blocks)
        arrays = {
            label: joined([*islice(rest, prod(shape))], shape) for label, shape in zip(self.given, shapes, strict=True)
        }
        found = operator_of(self.desc)
        desc = part_of(self.desc, self.stated, where)
        results = compute(desc, self.device, [arrays.get(label) for label, _ in found.inputs(desc)], self.gives_truth)
        if any(place.made is not None for place in places):
            labels = [label for label, tensor in found.outputs(desc) if tensor is not None]
            results = [
                result[tuple([_kept(where.get(-1 if n is None else n)) for n in self.stated[label]])]
                for label, result in zip(labels, results, strict=True)
            ]
        return results if self.finish is None else self.finish(self.desc, desc, where, results)


def joined(blocks: Sequence[Array], shape: Sequence[int]) -> Array:
    """One array of neighbours, so many along each dimension."""
    if len(blocks) == 1:
        return blocks[0]
    nested: Any = blocks
    for length in shape[:0:-1]:
        nested = [nested[i : i + length] for i in range(0, len(nested), length)]
    array: Array = concatenate3([*nested])
    return array


def _kept(place: Place | None) -> slice:
    """What of a part's output is the chunk's."""
    if place is None or place.made is None:
        return slice(None)
    return slice(place.skipped, place.skipped + place.size)


def part_of(desc: OperatorDesc, stated: Independence, where: Mapping[int, Place]) -> OperatorDesc:
    """The desc of a part.

    Args:
        desc: that of the whole.
        stated: which dimensions of its tensors line up with which of the output.
        where: the part's place, by dimension of the output.
    """
    found = operator_of(desc)
    part = cut(found, desc, stated, {number: place.size for number, place in where.items()})
    of_output = {label for label, _ in found.outputs(desc)}

    def size(label: str, number: int | None, whole: int) -> int:
        place = None if number is None else where.get(number)
        if place is None:
            return whole
        if label in of_output:
            return place.size if place.made is None else place.made
        begin, end = place.reads[label]
        return end - begin

    changed: dict[str, Any] = {}
    for name in found.tensors:
        tensor = getattr(part, name)
        if isinstance(tensor, DML_BUFFER_TENSOR_DESC):
            sizes = [size(name, *each) for each in zip(stated[name], tensor.Sizes, strict=True)]
            changed[name] = DML_BUFFER_TENSOR_DESC(DataType=tensor.DataType, Sizes=sizes)
    for name, index, value in chain.from_iterable(place.members for place in where.values()):
        changed.setdefault(name, [*getattr(part, name)])[index] = value
    return replace(part, **changed)


def by_parts(call: Call, stated: Independence, places: Places, finish: Finish | None = None) -> list[da.Array] | None:
    """The outputs that there are; None where an operand is packed.

    Args:
        call: an operator on operands.
        stated: which dimensions of its tensors line up with which of the output, those of `places` among them. Chunks
            of all others are made to line up.
        places: along dimensions of the output whose chunks need more than what lines up, or other elements.
        finish: what is made of a part's results.
    """
    if any(isinstance(operand.array, PackedArray) for operand in call.there.values()):
        return None
    own = count(-1, -1)
    arrays: list[da.Array] = []
    indices: list[tuple[int, ...]] = []
    lined_up: list[list[int | None]] = []
    for label, operand in call.there.items():
        array = without_empty(call.array(label))
        seen = zip(stated[label], array.shape, operand.shape, strict=True)
        numbers = [None if number is None or size < wanted else number for number, size, wanted in seen]
        arrays.append(array.rechunk({i: -1 for i, number in enumerate(numbers) if number is None}))
        lined_up.append(numbers)
        indices.append(tuple([next(own) if number is None or number in places else number for number in numbers]))
    chunks, arrays = unify_chunks(*chain.from_iterable(zip(arrays, indices, strict=True)))
    every = {number: _aligned(stated, sizes) for number, sizes in chunks.items() if number >= 0}
    every |= {number: list(each) for number, each in places.items()}
    given = tuple(call.there)
    part = _Part(call.desc, call.device, call.gives_truth, stated, given, finish)
    return _layers(call, part, dict(sorted(every.items())), [*zip(given, arrays, lined_up, strict=True)])


def without_empty(array: da.Array) -> da.Array:
    """An array that has elements, without chunks that have none."""
    if all(0 not in sizes for sizes in array.chunks):
        return array
    return array.rechunk(tuple([tuple([size for size in sizes if size]) for sizes in array.chunks]))


def _aligned(stated: Independence, sizes: Sequence[int]) -> list[Place]:
    """The places of chunks that line up."""
    ends = [*accumulate(sizes)]
    return [
        Place(size, dict.fromkeys(stated, interval))
        for size, interval in zip(sizes, zip([0, *ends], ends, strict=False), strict=True)
    ]


_Overlap: TypeAlias = tuple[int, slice, str]
"""The number of a chunk, the part of it, and the part's name; "" for all of it."""


@dataclass(slots=True)
class _Source:
    """Tasks that cut parts out of an array's chunks, each once."""

    array: da.Array
    stated: Sequence[int | None]
    overlaps: Sequence[Sequence[Sequence[_Overlap]]]
    """For each dimension and each place what it needs."""
    name: str
    tasks: dict[Any, Any] = field(default_factory=dict)
    known: dict[tuple[int, ...], tuple[tuple[int, ...], list[TaskRef]]] = field(default_factory=dict)

    @classmethod
    def of(cls, array: da.Array, name: str, stated: Sequence[int | None], places: Places, label: str) -> _Source:
        def needed(number: int | None, chunks: Sequence[int]) -> list[list[_Overlap]]:
            if number is None:
                return [[(0, slice(None), "")]]
            ends = [*accumulate(chunks)]
            return [_overlaps(ends, *place.reads[label]) for place in places[number]]

        overlaps = [needed(number, chunks) for number, chunks in zip(stated, array.chunks, strict=True)]
        return cls(array, stated, overlaps, name)

    def part(self, place: Sequence[int]) -> tuple[tuple[int, ...], list[TaskRef]]:
        """What a chunk of the output needs: how many tasks along each dimension, and all of them.

        Args:
            place: the chunk's number along each dimension of the operand.
        """
        index = tuple([0 if len(each) == 1 else i for each, i in zip(self.overlaps, place, strict=True)])
        known = self.known.get(index)
        if known is None:
            needed = [each[i] for each, i in zip(self.overlaps, index, strict=True)]
            known = tuple(map(len, needed)), [*map(self._task, product(*needed))]
            self.known[index] = known
        return known

    def _task(self, each: Sequence[_Overlap]) -> TaskRef:
        """A chunk, or what cuts a part out of it."""
        chunk, cuts, names = zip(*each, strict=True)
        key = (self.array.name, *chunk)
        if not any(names):
            return TaskRef(key)
        own = (self.name, *chunk, ",".join(names))
        if own not in self.tasks:
            self.tasks[own] = Task(own, getitem, TaskRef(key), cuts)
        return TaskRef(own)


def _overlaps(ends: Sequence[int], begin: int, end: int) -> list[_Overlap]:
    """The chunks that have elements of an interval, and the part of each."""
    found: list[_Overlap] = []
    number = bisect_right(ends, begin)
    while begin < end:
        first = ends[number - 1] if number else 0
        stop = min(end, ends[number])
        if (begin, stop) == (first, ends[number]):
            found.append((number, slice(None), ""))
        elif stop > begin:
            found.append((number, slice(begin - first, stop - first), f"{begin - first}:{stop - first}"))
        begin, number = stop, number + 1
    return found


def _layers(
    call: Call,
    part: _Part,
    places: dict[int, list[Place]],
    given: Sequence[tuple[str, da.Array, Sequence[int | None]]],
) -> list[da.Array]:
    """A task for each chunk of the output, and what cuts out parts for it."""
    sizes = [[place.size for place in each] for each in places.values()]
    token = tokenize(part, sizes, [array.name for _, array, _ in given])
    operator = call.spec.name.lower()
    outputs = call.outputs
    name = f"{operator}-{token}"
    sources = [_Source.of(array, f"{name}-{label}", numbers, places, label) for label, array, numbers in given]
    function: Any = part if len(outputs) > 1 else First(part)
    tasks: dict[Any, Any] = {}
    numbers = tuple(places)
    columns = [[-1 if n is None else numbers.index(n) for n in source.stated] for source in sources]
    first = part.stated[next(iter(outputs))]
    of_key = None if len(outputs) > 1 else [-1 if n is None else numbers.index(n) for n in first]
    for index, at in zip(product(*map(range, map(len, sizes))), product(*places.values()), strict=True):
        place = (*index, 0)  # what lines up with none has one chunk
        parts = [source.part([place[i] for i in each]) for source, each in zip(sources, columns, strict=True)]
        key = (name, *index) if of_key is None else (name, *[place[i] for i in of_key])
        shapes = tuple([shape for shape, _ in parts])
        tasks[key] = Task(key, function, numbers, at, shapes, *chain.from_iterable(refs for _, refs in parts))
    for source in sources:
        tasks |= source.tasks
    graph = HighLevelGraph.from_collections(name, tasks, dependencies=[array for _, array, _ in given])
    dtypes = [BOOL if call.gives_truth else dtype for dtype, _ in results_of(call.desc)]
    made = []
    for i, ((label, tensor), dtype) in enumerate(zip(outputs.items(), dtypes, strict=True)):
        stated = part.stated[label]
        chunks = [
            (whole,) if number is None else tuple([place.size for place in places[number]])
            for number, whole in zip(stated, tensor.Sizes, strict=True)
        ]
        own, whole_graph = name, graph
        if len(outputs) > 1:
            own = f"{operator}-{label.lower()}-{token}"
            layer: dict[Any, Any] = {}
            for index in product(*map(range, map(len, sizes))):
                key = (own, *[0 if n is None else index[numbers.index(n)] for n in stated])
                layer[key] = Task(key, getitem, TaskRef((name, *index)), i)
            whole_graph = HighLevelGraph({**graph.layers, own: layer}, {**graph.dependencies, own: {name}})
        made.append(da.Array(whole_graph, own, chunks, dtype=dtype, meta=np.empty((0,) * len(chunks), dtype)))
    return made
