"""Running sums and products along chunked axes, in two passes.

Of a line that chunks k = 0, 1, ... share, T(k) is the total of chunk k in the wide type, and

    C(0) = identity,   C(k + 1) = C(k) o T(k),   y(i) = C(k) o x(first of chunk k) o ... o x(i).

The first pass reads every chunk for T. One small task for each group of lines makes all C of all T, and the second pass
scans every chunk from its C on: no chunk waits for the scan of another one. Sums of doubles carry the rounding errors
along (TwoSum), so that C is the sum of all T rounded once, and depends on the chunks by no more than T does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from operator import getitem
from typing import Any

import dask.array as da
import numpy as np
from dask._task_spec import Task, TaskRef
from dask.base import tokenize
from dask.highlevelgraph import HighLevelGraph

from ...core.enums import AxisDirection, ReduceFunction
from ...core.strided_layout import Array
from . import wide
from .call import Call
from .passes import read_again


def scan(call: Call) -> list[da.Array] | None:
    """CUMULATIVE_SUMMATION and CUMULATIVE_PRODUCT."""
    desc: Any = call.desc
    x, axis = call.array("InputTensor"), int(desc.Axis)
    if x.numblocks[axis] == 1 or x.shape != call.there["InputTensor"].shape:
        return None
    is_product = call.spec.name == "CUMULATIVE_PRODUCT"
    how = _How(
        axis,
        is_product,
        desc.AxisDirection == AxisDirection.DECREASING,
        bool(desc.HasExclusiveProduct if is_product else desc.HasExclusiveSum),
        call.device,
    )
    name, index = call.spec.name.lower(), tuple(range(x.ndim))
    carries = _carries(
        da.blockwise(
            _Totals(how),
            index,
            x,
            index,
            token=f"{name}-totals",
            adjust_chunks={axis: 1},
            dtype=how.wide(x.dtype),
            meta=np.empty((0,) * x.ndim, how.wide(x.dtype)),
        ),
        how,
        x.dtype,
        name,
    )
    again = read_again(x)
    meta = np.empty((0,) * x.ndim, x.dtype)
    given = again, index, carries, index
    return [da.blockwise(_Scan(how), index, *given, token=name, align_arrays=False, dtype=x.dtype, meta=meta)]


@dataclass(frozen=True, slots=True)
class _How:
    axis: int
    is_product: bool
    decreasing: bool
    exclusive: bool
    device: Any

    @property
    def function(self) -> ReduceFunction:
        return ReduceFunction.MULTIPLY if self.is_product else ReduceFunction.SUM

    def wide(self, dtype: np.dtype[Any]) -> np.dtype[Any]:
        return wide.wide_type(self.function, dtype)


@dataclass(frozen=True, slots=True)
class _Totals:
    how: _How

    def __call__(self, x: Array) -> Array:
        return wide.partial(self.how.function, x, [self.how.axis], self.how.device)


@dataclass(frozen=True, slots=True)
class _Scan:
    how: _How

    def __call__(self, x: Array, carries: Array) -> Array:
        how = self.how
        return wide.scan(
            x,
            carries,
            how.axis,
            is_product=how.is_product,
            decreasing=how.decreasing,
            exclusive=how.exclusive,
            device=how.device,
        )


def _carries(totals: da.Array, how: _How, dtype: np.dtype[Any], name: str) -> da.Array:
    """The carries of chunks, by a task for each group of lines, and one more that hands each chunk its own."""
    name = f"{name}-carries-{tokenize(totals.name, how)}"
    count = totals.numblocks[how.axis]
    order = range(count)[:: -1 if how.decreasing else 1]
    graph: dict[Any, Task] = {}
    start = wide.identity(how.function, dtype)
    for group in product(*[range(1 if i == how.axis else n) for i, n in enumerate(totals.numblocks)]):
        before, after = group[: how.axis], group[how.axis + 1 :]
        together = f"{name}-all", *group
        refs = [TaskRef((totals.name, *before, k, *after)) for k in order]
        graph[together] = Task(together, _prefixes, start, how.is_product, *refs)
        for place, k in enumerate(order):
            key = (name, *before, k, *after)
            graph[key] = Task(key, getitem, TaskRef(together), place)
    layers = HighLevelGraph.from_collections(name, graph, dependencies=[totals])
    return da.Array(layers, name, totals.chunks, meta=np.empty((0,) * totals.ndim, totals.dtype))


def _prefixes(start: Any, is_product: bool, *totals: Array) -> Sequence[Array]:
    """What is before each of the totals."""
    prefix = np.full(totals[0].shape, start)
    error = np.zeros_like(prefix)
    found: list[Array] = []
    with np.errstate(all="ignore"):
        for total in totals:
            if prefix.dtype == wide.DOUBLE:
                found.append(prefix + error)
                prefix, lost = _two_sum(prefix, total)
                error = error + np.where(np.isfinite(prefix), lost, 0.0)
                continue
            found.append(prefix)
            if prefix.dtype == wide.PRODUCT:
                prefix = wide.multiplied(prefix, total)
            else:
                prefix = prefix * total if is_product else prefix + total
    return found


def _two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    """The rounded sum of doubles, and what it lost."""
    total = a + b
    rest = total - a
    return total, (a - (total - rest)) + (b - rest)
