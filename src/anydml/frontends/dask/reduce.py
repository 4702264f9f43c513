"""Reductions along chunked axes: a partial result of each chunk, combined by a tree.

The partial results are of wide types (``wide.py``), largest and smallest elements of their own, and indices stand
beside their elements. The tree combines up to 16 at a time in the order of chunks, so that its bits depend on the
chunks alone. What is asked for is made of the last one, and rounded once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import prod
from typing import Any, TypeAlias

import dask.array as da
import numpy as np
from dask._task_spec import Task, TaskRef
from dask.base import tokenize
from dask.highlevelgraph import HighLevelGraph
from dask.layers import ArraySliceDep

from ...core.enums import AxisDirection, ReduceFunction
from ...core.strided_layout import DATA_TYPES, DTYPES, Array
from ...core.tensor_desc import DML_BUFFER_TENSOR_DESC
from ...core.truth_values import BOOL
from ...operators.schema import OperatorDesc
from ...operators.specs.reduce import DML_REDUCE_OPERATOR_DESC
from . import wide
from .call import Call
from .tasks import compute

Combine: TypeAlias = Callable[[Array, Array], Array]

AT_ONCE = 16
"""The partial results that one task combines."""

_PARTIALS: Mapping[ReduceFunction, ReduceFunction] = {
    ReduceFunction.AVERAGE: ReduceFunction.SUM,
    ReduceFunction.L2: ReduceFunction.SUM_SQUARE,
    ReduceFunction.LOG_SUM: ReduceFunction.SUM,
}
"""The partial results that functions are made of, where these are others."""

_INDICES = {ReduceFunction.ARGMAX: ReduceFunction.MAX, ReduceFunction.ARGMIN: ReduceFunction.MIN}
"""Functions that find an index, by those that find the element."""


def reduce(call: Call) -> list[da.Array] | None:
    """REDUCE."""
    desc: Any = call.desc
    function = ReduceFunction(desc.Function)
    x, axes = call.array("InputTensor"), tuple(sorted(desc.Axes))
    if not is_worth_it(x, call, axes):
        return None
    dtype = DTYPES[desc.OutputTensor.DataType]
    name = f"reduce-{function.name.lower()}"
    if function in _INDICES:
        return _indices(x, Located(desc, axes, _INDICES[function], False, call.device), name, dtype)
    if function in _INDICES.values():
        partials = apply(_Largest(desc, axes, call.device), f"{name}-partial", x.dtype, [x], axes)
        return [tree(partials, axes, _LARGER[function], name)]
    basis = _PARTIALS.get(function, function)
    combined = total(x, axes, basis, call.device, name)
    return [apply(_Finish(function, prod(x.shape[axis] for axis in axes), dtype), name, dtype, [combined])]


def index(call: Call) -> list[da.Array] | None:
    """ARGMIN and ARGMAX."""
    desc: Any = call.desc
    x, axes = call.array("InputTensor"), tuple(sorted(desc.Axes))
    if not is_worth_it(x, call, axes):
        return None
    function = ReduceFunction.MAX if call.spec.name == "ARGMAX" else ReduceFunction.MIN
    is_last = desc.AxisDirection == AxisDirection.DECREASING
    how = Located(desc, axes, function, is_last, call.device)
    return _indices(x, how, call.spec.name.lower(), DTYPES[desc.OutputTensor.DataType])


def is_worth_it(x: da.Array, call: Call, axes: Sequence[int]) -> bool:
    """Whether there are several chunks along the axes, of an operand that nothing broadcasts."""
    is_whole = x.shape == call.there["InputTensor"].shape and x.dtype != BOOL
    return is_whole and any(x.numblocks[axis] > 1 for axis in axes)


def total(x: da.Array, axes: Sequence[int], function: ReduceFunction, device: Any, name: str) -> da.Array:
    """The partial results of all that is along the axes: one chunk of size 1 there."""
    partials = apply(
        _Partial(function, tuple(axes), device), f"{name}-partial", wide.wide_type(function, x.dtype), [x], axes
    )
    return tree(partials, axes, _COMBINE[function], name)


def apply(
    function: Any,
    name: str,
    dtype: np.dtype[Any],
    arrays: Sequence[da.Array],
    axes: Sequence[int] = (),
    places: bool = False,
) -> da.Array:
    """A function of the chunks of the first array and of those of the others there, or of their only one.

    Args:
        function: of the chunks.
        name: of the layer.
        dtype: of the result.
        arrays: of one number of dimensions.
        axes: dimensions along which results have size 1.
        places: whether the function takes the slices of the chunk, too.
    """
    first = arrays[0]
    dimensions = tuple(range(first.ndim))
    given = [each for array in arrays for each in (array, dimensions)]
    given += [ArraySliceDep(first.chunks), dimensions] if places else []
    return da.blockwise(
        function,
        dimensions,
        *given,
        token=name,
        align_arrays=False,
        adjust_chunks=dict.fromkeys(axes, 1) or None,
        dtype=dtype,
        meta=np.empty((0,) * first.ndim, dtype),
    )


def tree(partials: da.Array, axes: Sequence[int], combine: Combine, name: str) -> da.Array:
    """Combines partial results, of size 1 in each chunk along the axes, in the order of the chunks."""
    name = f"{name}-combined-{tokenize(partials.name, tuple(axes))}"
    graph: dict[Any, Task] = {}
    for kept in product(*[range(1 if i in axes else n) for i, n in enumerate(partials.numblocks)]):
        parts = [range(n if i in axes else 1) for i, n in enumerate(partials.numblocks)]
        keys: list[Any] = [
            (partials.name, *[place + at for place, at in zip(kept, part, strict=True)]) for part in product(*parts)
        ]
        level = 0
        while True:
            groups = [keys[i : i + AT_ONCE] for i in range(0, len(keys), AT_ONCE)]
            is_last = len(groups) == 1
            keys = [(name, *kept) if is_last else (f"{name}-{level}", *kept, i) for i in range(len(groups))]
            for key, group in zip(keys, groups, strict=True):
                graph[key] = Task(key, _combined, combine, *map(TaskRef, group))
            if is_last:
                break
            level += 1
    chunks = tuple([(1,) if i in axes else sizes for i, sizes in enumerate(partials.chunks)])
    layers = HighLevelGraph.from_collections(name, graph, dependencies=[partials])
    return da.Array(layers, name, chunks, meta=np.empty((0,) * partials.ndim, partials.dtype))


def _combined(combine: Combine, first: Array, *others: Array) -> Array:
    with np.errstate(all="ignore"):
        for other in others:
            first = combine(first, other)
    return first


@dataclass(frozen=True, slots=True)
class _Partial:
    function: ReduceFunction
    axes: tuple[int, ...]
    device: Any

    def __call__(self, x: Array) -> Array:
        return wide.partial(self.function, x, self.axes, self.device)


def _add(a: Array, b: Array) -> Array:
    return a + b


def _multiply(a: Array, b: Array) -> Array:
    return wide.multiplied(a, b) if a.dtype == wide.PRODUCT else a * b


def _add_exponentials(a: Array, b: Array) -> Array:
    """Of each side the terms as seen from the larger one of the largest."""
    y = np.empty_like(a)
    y["largest"] = np.maximum(a["largest"], b["largest"])
    y["sum"] = y["count"] = 0.0
    for side in (a, b):
        is_largest = side["largest"] == y["largest"]
        distance = np.exp(side["largest"] - y["largest"])
        y["sum"] += np.where(is_largest, side["sum"], (side["sum"] + side["count"]) * distance)
        y["count"] += np.where(is_largest, side["count"], 0.0)
    return y


_COMBINE: Mapping[ReduceFunction, Combine] = {
    ReduceFunction.L1: _add,
    ReduceFunction.LOG_SUM_EXP: _add_exponentials,
    ReduceFunction.MULTIPLY: _multiply,
    ReduceFunction.SUM: _add,
    ReduceFunction.SUM_SQUARE: _add,
}


@dataclass(frozen=True, slots=True)
class _Finish:
    """What is asked for, of the combined partial results."""

    function: ReduceFunction
    count: int
    dtype: np.dtype[Any]

    def __call__(self, y: Array) -> Array:
        with np.errstate(all="ignore"):
            if y.dtype == wide.PRODUCT:
                return wide.rounded_product(y, self.dtype)
            if y.dtype == wide.EXPONENTIALS:
                y = y["largest"] + np.log1p(y["sum"] + (y["count"] - 1))
            elif self.function == ReduceFunction.AVERAGE:
                y = y / self.count
            elif self.function == ReduceFunction.L2:
                y = np.sqrt(y)
            elif self.function == ReduceFunction.LOG_SUM:
                y = np.log(y)
            return y.astype(self.dtype)


@dataclass(frozen=True, slots=True)
class _Largest:
    """The largest or smallest elements of a chunk."""

    desc: DML_REDUCE_OPERATOR_DESC
    axes: tuple[int, ...]
    device: Any

    def __call__(self, x: Array) -> Array:
        if x.size == 0:
            is_largest = self.desc.Function == ReduceFunction.MAX
            limits = None if x.dtype.kind == "f" else np.iinfo(x.dtype)
            none: Any = np.nan if limits is None else limits.min if is_largest else limits.max
            return np.full([1 if i in self.axes else n for i, n in enumerate(x.shape)], none, x.dtype)
        (found,) = compute(_of_chunk(self.desc, x, self.axes, x.dtype), self.device, [x])
        return found


def _larger(a: Array, b: Array) -> Array:
    return np.where((b > a) | ((a != a) & (b == b)), b, a)


def _smaller(a: Array, b: Array) -> Array:
    return np.where((b < a) | ((a != a) & (b == b)), b, a)


_LARGER: Mapping[ReduceFunction, Combine] = {ReduceFunction.MAX: _larger, ReduceFunction.MIN: _smaller}
"""A NaN is neither."""


def _of_chunk(desc: Any, x: Array, axes: Sequence[int], dtype: np.dtype[Any]) -> OperatorDesc:
    sizes = [1 if i in axes else n for i, n in enumerate(x.shape)]
    changed: OperatorDesc = replace(
        desc,
        InputTensor=DML_BUFFER_TENSOR_DESC(DataType=DATA_TYPES[x.dtype], Sizes=x.shape),
        OutputTensor=DML_BUFFER_TENSOR_DESC(DataType=DATA_TYPES[dtype], Sizes=sizes),
    )
    return changed


def _indices(x: da.Array, how: Located, name: str, dtype: np.dtype[Any]) -> list[da.Array]:
    return [apply(_Field("index", dtype), name, dtype, [located(x, how, name)])]


def located(x: da.Array, how: Located, name: str) -> da.Array:
    """The elements that are looked for, as "value", and their "index" among all along the axes."""
    kind = np.dtype([("value", x.dtype), ("index", np.int64)])
    function = _Located(how, tuple([x.shape[axis] for axis in how.axes]), kind)
    partials = apply(function, f"{name}-partial", kind, [x], how.axes, True)
    return tree(partials, how.axes, _Better(how.function, how.is_last), name)


@dataclass(frozen=True, slots=True)
class _Field:
    name: str
    dtype: np.dtype[Any]

    def __call__(self, y: Array) -> Array:
        return y[self.name].astype(self.dtype)


@dataclass(frozen=True, slots=True)
class Located:
    """Which index is looked for.

    Args:
        desc: of an operator that finds the index of a chunk.
        axes: sorted.
        function: MAX or MIN.
        is_last: whether of equal elements the last one is.
        device: where.
    """

    desc: Any
    axes: tuple[int, ...]
    function: ReduceFunction
    is_last: bool
    device: Any


@dataclass(frozen=True, slots=True)
class _Located:
    how: Located
    sizes: tuple[int, ...]
    kind: np.dtype[Any]

    def __call__(self, x: Array, places: tuple[slice, ...]) -> Array:
        how, axes = self.how, self.how.axes
        y = np.empty([1 if i in axes else n for i, n in enumerate(x.shape)], self.kind)
        if x.size == 0:
            y["index"], y["value"] = -1, 0
            return y
        (index,) = compute(_of_chunk(how.desc, x, axes, np.dtype(np.int64)), how.device, [x])
        desc: Any = DML_REDUCE_OPERATOR_DESC(
            Function=how.function,
            InputTensor=DML_BUFFER_TENSOR_DESC(DataType=DATA_TYPES[x.dtype], Sizes=x.shape),
            OutputTensor=DML_BUFFER_TENSOR_DESC(DataType=DATA_TYPES[x.dtype], Sizes=y.shape),
            Axes=axes,
        )
        (y["value"],) = compute(desc, how.device, [x])
        within = np.unravel_index(index, [x.shape[axis] for axis in axes])
        among = [each + places[axis].start for each, axis in zip(within, axes, strict=True)]
        y["index"] = np.ravel_multi_index(among, self.sizes)
        return y


@dataclass(frozen=True, slots=True)
class _Better:
    """The larger or smaller of two elements, by their indices where they are equal; a NaN is neither."""

    function: ReduceFunction
    is_last: bool

    def __call__(self, a: Array, b: Array) -> Array:
        x, y = a["value"], b["value"]
        is_better = (y > x if self.function == ReduceFunction.MAX else y < x) | ((x != x) & (y == y))
        is_equal = (x == y) | ((x != x) & (y != y))
        is_before = b["index"] > a["index"] if self.is_last else b["index"] < a["index"]
        takes = (is_better | (is_equal & is_before)) & (b["index"] >= 0) | (a["index"] < 0)
        return np.where(takes, b, a)
