"""Elements that are set, or combined, where indices say.

Where indices may be the same, and what they set is combined, updates are sorted by their indices, stably, and those of
one index are combined by a segmented scan: in steps of s = 1, 2, 4, ...

    u[i] = u[i - s] op u[i] where key[i - s] == key[i]

Then the last update of each index has all of them, and of several that are scattered the last one counts.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from ...directmlx import Expression
from ..context import Lowering, NodeContext, NotLowered
from .shapes import axis_of, broadcast, filled

_COMBINED = {"add": "add", "mul": "multiply", "max": "max", "min": "min"}


def _reduction(node: NodeContext) -> str | None:
    """The function that combines; None where an update replaces."""
    name = node.get("reduction", "none")
    if name != "none" and name not in _COMBINED:
        raise NotLowered(f"a reduction {name!r}")
    return _COMBINED.get(name)


def scatter_elements(node: NodeContext) -> Any:
    own, sizes = node.shape(0), node.shape(1)
    axis = axis_of(node.get("axis", 0), len(own))
    function = _reduction(node)

    def make() -> Expression:
        x = node.x(0)
        if 0 in sizes:
            return x
        fits = all(i == axis or size == wanted for i, (size, wanted) in enumerate(zip(own, sizes, strict=True)))
        if function is None and fits:
            found: Expression = node.call("scatter_elements", x, node.x(1), node.x(2), axis)
            return found
        # Places in all of the array, of elements that lie in row-major order.
        steps = [prod(own[i + 1 :]) for i in range(len(own))]
        keys = _counted(node, node.x(1), own[axis]) * np.array([steps[axis]])
        for i, size in enumerate(sizes):
            if i != axis and size > 1:
                along = [-1 if j == i else 1 for j in range(len(sizes))]
                keys = keys + (np.arange(size, dtype=np.int64) * steps[i]).reshape(along)
        rows = _scattered(node, x.reshape(-1, 1), keys.reshape(-1), node.x(2).reshape(-1, 1), function)
        return rows.reshape(*own)

    return filled(node, own, make)


def scatter_nd(node: NodeContext) -> Any:
    own, sizes = node.shape(0), node.shape(1)
    function = _reduction(node)

    def make() -> Expression:
        x = node.x(0)
        if 0 in sizes or 0 in node.shape(2):
            return x
        if function is None:
            found: Expression = node.call("scatter_nd", x, node.x(1), node.x(2))
            return found
        depth = sizes[-1]
        steps = [prod(own[i + 1 : depth]) for i in range(depth)]
        tuples = _counted(node, node.x(1), np.array(own[:depth], np.int64)) * np.array(steps, np.int64)
        keys = node.call("reduce", tuples, "sum", -1).reshape(-1)
        width = prod(own[depth:])
        rows = _scattered(node, x.reshape(-1, width), keys, node.x(2).reshape(-1, width), function)
        return rows.reshape(*own)

    return filled(node, own, make)


def _counted(node: NodeContext, indices: Expression, sizes: Any) -> Expression:
    """Indices from the first element, as INT64; negative ones count from the end. Others are refused."""
    wide, sizes = indices.astype(np.int64), np.reshape(np.asarray(sizes, np.int64), -1)
    node.demand((wide >= -sizes) & (wide < sizes), "an index beyond its dimension", "indices of elements")
    found: Expression = node.call("if_", wide < np.zeros(1, np.int64), wide + sizes, wide)
    return found


def _scattered(
    node: NodeContext, rows: Expression, keys: Expression, updates: Expression, function: str | None
) -> Expression:
    """Rows of a matrix that are replaced by updates, or combined with them."""
    (count,) = keys.shape
    if rows.shape[0] < 2**31:
        keys = keys.astype(np.int32)
    if function is not None:
        longest = _longest(node)
        if longest > 1:
            keys, order = node.call("top_k", keys, count, 0, largest=False)
            updates = node.call("gather", updates, order, 0)
        step = 1
        while step < longest:
            # No key is -1: what has no update so far before it stays as it is.
            same = (keys == _behind(node, keys, step, -1)).reshape(-1, 1)
            both = node.call(function, _behind(node, updates, step, 0), updates)
            updates = node.call("if_", same, both, updates)
            step *= 2
        updates = node.call(function, node.call("gather", rows, keys, 0), updates)
    found: Expression = node.call("scatter_nd", rows, keys.reshape(-1, 1), updates)
    return found


def _behind(node: NodeContext, x: Expression, count: int, value: int) -> Expression:
    """Rows moved back by so many: those before them are a value, and the last ones are left out."""
    size, *others = x.shape
    first = broadcast(node.constant(np.array([value], x.dtype)), (count, *others))
    found: Expression = node.call("join", [first, x.reinterpret(x.tensor.DataType, (size - count, *others))], 0)
    return found


_MOST = 65536
"""Indices that are looked through."""


def _longest(node: NodeContext) -> int:
    """The most updates that one element may have, which known indices say exactly."""
    sizes = node.shape(1)
    is_nd = node.op == "ScatterND"
    if not node.is_known(1) or node.value(1).size > _MOST:
        return prod(sizes[:-1]) if is_nd else prod(sizes)
    indices = node.value(1)
    own = node.shape(0)
    axis = axis_of(node.get("axis", 0), len(own))
    limits = np.array(own[: sizes[-1]] if is_nd else own[axis])
    counted = np.where(indices < 0, indices + limits, indices)
    # Along other axes than its own each index has elements of its own.
    tuples = counted.reshape(-1, sizes[-1]) if is_nd else np.moveaxis(counted, axis, 0).reshape(sizes[axis], -1)
    if is_nd:
        return int(np.unique(tuples, axis=0, return_counts=True)[1].max())
    return max(int(np.unique(line, return_counts=True)[1].max()) for line in tuples.T)


def tensor_scatter(node: NodeContext) -> Any:
    """Rows of a cache that are replaced from an index on, of each batch its own; a circular one starts anew."""
    own, sizes = node.shape(0), node.shape(1)
    axis = axis_of(node.get("axis", -2), len(own))
    rows = np.arange(sizes[axis], dtype=np.int64).reshape([-1 if i == axis else 1 for i in range(len(own))])
    size = np.array([own[axis]], np.int64)

    def make() -> Expression:
        if 0 in sizes:
            return node.x(0)
        places = node.constant(rows)
        if node.has(2):
            places = places + node.x(2).reshape(-1, *[1] * (len(own) - 1))
        if node.get("mode", "linear") == "circular":
            places = node.call("if_", places >= size, places - size, places)
        else:
            node.demand(places < size, "an index beyond the cache", "indices that leave room for what is written")
        found: Expression = node.call("scatter_elements", node.x(0), broadcast(places, sizes), node.x(1), axis)
        return found

    return filled(node, own, make)


LOWERINGS: dict[str, Lowering] = {
    "Scatter": scatter_elements,
    "ScatterElements": scatter_elements,
    "ScatterND": scatter_nd,
    "TensorScatter": tensor_scatter,
}
