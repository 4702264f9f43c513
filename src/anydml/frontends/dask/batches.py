"""Graphs over batches: what is compiled for so many rows runs on each chunk of rows.

Rows are what dimension 0 of a Dask array counts. What runs is a task of its own, that all others depend on: a worker
has one object, which compiles once for each size of chunks. Of a function it is known, from its operators'
specifications, that rows do not depend on each other; of an ONNX model it is assumed, see (K4).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isnan
from operator import getitem
from typing import Any

import dask.array as da
import numpy as np
from dask._task_spec import Task, TaskRef
from dask.array.core import unify_chunks
from dask.base import tokenize
from dask.highlevelgraph import HighLevelGraph

from ...core.errors import refuse
from ...core.strided_layout import Array
from ..tracing import CompiledFunction, Traced, mapped
from .call import check_sizes
from .rows import batch_axes, differ_by_rows_alone

Made = tuple[tuple[int, ...], np.dtype[Any], "int | None"]
"""Of a result for all rows: its shape, its type, and the dimension that has the rows; None where it is not cut."""


def _rows(name: str, arrays: Mapping[str, da.Array]) -> dict[str, da.Array]:
    """Arrays, by argument, whose chunks line up along the rows, and have all of other dimensions; (K1), (K4)."""
    for where, array in arrays.items():
        check_sizes(name, where, array)
    rows = next(iter(arrays.values())).shape[:1]
    for where, array in arrays.items():
        if not array.ndim or not all(array.shape) or array.shape[:1] != rows:
            found = f"a Dask array of shape {array.shape}"
            expected = (
                f"elements, and {rows[0]} rows, its dimension 0" if rows and all(rows) else "rows, its dimension 0"
            )
            remedy = "What all batches share is to be an array in memory, as its .compute() gives it"
            refuse(name, "(K4)", where, found, expected, remedy)
    whole = [array.rechunk({i: -1 for i in range(1, array.ndim)}) for array in arrays.values()]
    indices = [(0, *range((i + 1) * 100, (i + 1) * 100 + array.ndim - 1)) for i, array in enumerate(whole)]
    chunks = tuple([size for size in unify_chunks(*_in_turn(whole, indices))[0][0] if size])
    return {where: array.rechunk({0: chunks}) for where, array in zip(arrays, whole, strict=True)}


def _in_turn(first: Sequence[Any], second: Sequence[Any]) -> list[Any]:
    return [each for pair in zip(first, second, strict=True) for each in pair]


def _on_chunks(name: str, run: Any, arrays: Sequence[da.Array], made: Sequence[Made]) -> list[da.Array]:
    """Tasks, one for each chunk of rows, and one for each result that is taken of it.

    Args:
        name: of the layers.
        run: given a chunk of each array, returns a list of results.
        arrays: whose chunks line up.
        made: the results.
    """
    token = tokenize(run, [array.name for array in arrays], made)
    shared, together = f"{name}-compiled-{token}", f"{name}-rows-{token}"
    chunks = arrays[0].chunks[0]
    tasks = {
        (together, i): Task((together, i), _run, TaskRef(shared), *[TaskRef(_key_of(x, i)) for x in arrays])
        for i in range(len(chunks))
    }
    graph = HighLevelGraph.from_collections(together, tasks, dependencies=arrays)
    layers: dict[str, Any] = {**graph.layers, shared: {shared: Task(shared, _itself, run)}}
    dependencies = {**graph.dependencies, together: graph.dependencies[together] | {shared}, shared: set()}
    results = []
    for number, (shape, dtype, axis) in enumerate(made):
        own = f"{name}-{number}-{token}"
        keys = [(own, *[i if d == axis else 0 for d in range(len(shape))]) for i in range(len(chunks))]
        layer = {key: Task(key, getitem, TaskRef((together, i)), number) for i, key in enumerate(keys)}
        whole = HighLevelGraph({**layers, own: layer}, {**dependencies, own: {together}})
        sizes = [chunks if d == axis else (size,) for d, size in enumerate(shape)]
        results.append(da.Array(whole, own, sizes, dtype=dtype, meta=np.empty((0,) * len(shape), dtype)))
    return results


def _key_of(array: da.Array, number: int) -> tuple[Any, ...]:
    """Of a chunk of rows."""
    return (array.name, number, *[0] * (array.ndim - 1))


def _run(run: Any, *blocks: Array) -> list[Array]:
    results: list[Array] = run(*blocks)
    return results


def _itself(run: Any) -> Any:
    return run


# Sessions


@dataclass(frozen=True, slots=True)
class _SessionRun:
    """A session on chunks.

    Args:
        session: what runs.
        wanted: the outputs.
        names: the inputs that chunks are fed to.
        shared: what others are fed with.
    """

    session: Any
    wanted: Sequence[str]
    names: Sequence[str]
    shared: Mapping[str, Any]

    def __call__(self, *blocks: Array) -> list[Any]:
        found: list[Any] = self.session.run(self.wanted, {**self.shared, **dict(zip(self.names, blocks, strict=True))})
        return found


def run_session(session: Any, wanted: Sequence[str], feeds: Mapping[str, Any]) -> list[da.Array]:
    """The outputs of an ONNX model.

    Args:
        session: an InferenceSession.
        wanted: the names of outputs.
        feeds: by input; what is no Dask array goes to each chunk as it is.

    Raises:
        DMLError: (K1), (K4), (N2), (N3).
    """
    lazy = _rows("run", {name: each for name, each in feeds.items() if isinstance(each, da.Array)})
    shared = {name: each for name, each in feeds.items() if name not in lazy}
    arrays = [*lazy.values()]
    chunks = arrays[0].chunks[0]
    total = sum(chunks)

    def shapes(rows: int) -> list[tuple[tuple[int, ...], np.dtype[Any]]]:
        placeholders = {name: np.broadcast_to(np.zeros((), x.dtype), (rows, *x.shape[1:])) for name, x in lazy.items()}
        found: list[tuple[tuple[int, ...], np.dtype[Any]]] = session.shapes_of(wanted, {**shared, **placeholders}, rows)
        return found

    run = _SessionRun(session, tuple(wanted), tuple(lazy), shared)
    if len(chunks) == 1:
        return _on_chunks("session", run, arrays, [(shape, dtype, None) for shape, dtype in shapes(total)])
    fixed = any(isinstance(each.shape[0], int) for each in session.get_inputs() if each.name in lazy and each.shape)
    tried = sorted({*chunks})[:: max(1, len({*chunks}) - 1)] + [total] * (not fixed)
    by_rows = {rows: shapes(rows) for rows in tried}
    made: list[Made] = []
    for number, name in enumerate(wanted):
        shape, dtype = by_rows[tried[0]][number]
        for rows, found in by_rows.items():
            if found[number][0] != (rows, *shape[1:]):
                expected = f"({rows}, ...), of which the rest is the same for every number of rows"
                remedy = "Feed it with one chunk, as x.rechunk(-1) gives it"
                refuse("run", "(K4)", name, f"shape {found[number][0]} for {rows} rows", expected, remedy)
        made.append(((total, *shape[1:]), dtype, 0))
    return _on_chunks("session", run, arrays, made)


# Functions


@dataclass(frozen=True, slots=True)
class _FunctionRun:
    """A compiled function on chunks.

    Args:
        function: what runs.
        call: its arguments and options, with numbers of chunks in place of Dask arrays.
    """

    function: CompiledFunction
    call: Any

    def __call__(self, *blocks: Array) -> list[Any]:
        arguments, options = mapped(self.call, lambda leaf: blocks[leaf.number] if isinstance(leaf, _Chunk) else leaf)
        found: list[Any] = []
        mapped(self.function(*arguments, **options), found.append)
        return found


@dataclass(frozen=True, slots=True)
class _Chunk:
    number: int


def run_function(function: CompiledFunction, arguments: Any, options: Any) -> Any:
    """What a compiled function returns, with Dask arrays in place of arrays, in a list of one; None where its rows are
    not known to be independent, or its arrays are cut in other ways.

    They are where the specifications of all operators say so, and nothing of the graph but sizes depends on how many
    rows there are.
    """
    lazy: list[da.Array] = []

    def leaf_of(value: Any) -> Any:
        if not isinstance(value, da.Array):
            return value
        lazy.append(value)
        return _Chunk(len(lazy) - 1)

    call = mapped((arguments, options), leaf_of)
    are_rows = all(
        x.ndim and x.shape[0] == lazy[0].shape[0] and x.shape[0] > 0 and max(x.numblocks[1:], default=1) == 1
        for x in lazy
    )
    if not are_rows or any(isnan(size) or not size for x in lazy for size in x.shape):
        return None
    arrays = [*_rows(function._name, {f"arrays[{i}]": x for i, x in enumerate(lazy)}).values()]
    chunks = arrays[0].chunks[0]
    if len(chunks) == 1:
        return None

    def traced(rows: int) -> tuple[Traced, list[int]]:
        """For so many rows, and which inputs of the graph have them."""
        empty = [np.empty((rows, *x.shape[1:]), x.dtype) for x in arrays]
        given = mapped(call, lambda leaf: empty[leaf.number] if isinstance(leaf, _Chunk) else leaf)
        found, inputs = function._traced(*given)
        return found, [i for i, each in enumerate(inputs) if any(each is one for one in empty)]

    rows = max(2, *chunks)
    try:
        found, numbers = traced(rows)
        other, _ = traced(rows + 1)
    except Exception:  # called with the whole, which it may take, the function says what is wrong with that
        return None
    _, desc, _, interface = found.graph._made_of
    axes = batch_axes(desc, interface, numbers, rows)
    if axes is None or not differ_by_rows_alone(desc, other.graph._made_of[1]):
        return None
    made: list[Made] = []
    for slot, axis in zip(found.graph._outputs, axes, strict=True):
        assert slot.layout is not None
        shape = list(slot.layout.sizes)
        shape[axis] = sum(chunks)
        made.append((tuple(shape), np.dtype(np.bool_) if slot.is_truth else slot.layout.dtype, axis))
    order: list[int] = []
    mapped(found.returned, order.append)
    results = _on_chunks(function._name, _FunctionRun(function, call), arrays, [made[i] for i in order])
    numbered = iter(results)
    return [mapped(found.returned, lambda _: next(numbered))]
