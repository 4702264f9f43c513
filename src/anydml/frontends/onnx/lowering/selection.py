"""What is as large as data say: elements that are not 0, that a condition keeps, or that are distinct."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from ....core.enums import TensorDataType
from ...directmlx import Expression
from ..context import Counted, Lowering, NodeContext, NotLowered
from .shapes import axis_of


def _found(node: NodeContext, x: Expression) -> tuple[Expression, Expression]:
    """The number of elements that are not 0, and their coordinates, {elements, dimensions} of UINT32."""
    if x.dtype == np.float64:
        # Twice the bits: those of -0 are 0 then, and of nothing else.
        bits = x.reinterpret(TensorDataType.UINT64, x.shape, x.tensor.strides)
        x = bits + bits
    if x.dtype in (np.int64, np.uint64):
        x = x != np.zeros(1, x.dtype)
    count, coordinates = node.call("nonzero_coordinates", x)
    return count, coordinates


def nonzero(node: NodeContext) -> Any:
    """ONNX has a row for each dimension; an array of none is as one of a single element, without its dimension."""
    if 0 in node.shape(0):
        return np.zeros((node.rank(0), 0), np.int64)
    count, coordinates = _found(node, node.x(0))
    if not node.shape(0):
        raise NotLowered("an array of 0 dimensions, whose elements have no coordinates")
    return Counted(coordinates.astype(np.int64).T, count, 1)


def _positions(node: NodeContext, truth: Expression) -> tuple[Expression, Expression]:
    """How many of a vector's elements are true, and which; behind them 0."""
    count, coordinates = _found(node, truth)
    (size,) = truth.shape
    among = node.constant(np.arange(size, dtype=np.uint32)) < count
    return count, node.call("if_", among, coordinates.reshape(size), np.zeros(1, np.uint32))


def compress(node: NodeContext) -> Any:
    """Slices for which a condition holds."""
    own, axis = node.shape(0), node.get("axis")
    shape = (prod(own),) if axis is None else own
    axis = 0 if axis is None else axis_of(axis, len(own))
    (size,) = node.shape(1)
    if 0 in shape or not size:
        return np.zeros((*shape[:axis], 0, *shape[axis + 1 :]), node.dtype(0))
    if size > shape[axis]:
        raise NotLowered(f"a condition of {size} elements for {shape[axis]}")
    x = node.x(0).reshape(*shape)
    count, places = _positions(node, node.x(1))
    return Counted(node.call("gather", x, places, axis), count, axis)


def unique(node: NodeContext) -> list[Any]:
    """Distinct elements, or slices along an axis: sorted, with the first of each, and how many there are.

    Slices are sorted by their last elements, then stably by those before: lexicographically in the end. Of what is
    sorted, an element is distinct where it differs from the one before it.
    """
    own, axis = node.shape(0), node.get("axis")
    x = node.x(0)
    axis = None if axis is None else axis_of(axis, len(own))
    whole = x.reshape(-1) if axis is None else x
    at = axis or 0
    n = whole.shape[at]
    order = [at, *(i for i in range(whole.ndim) if i != at)]
    rows = whole.transpose(*order).reshape(n, -1)
    if rows.shape[1] > _MOST_COLUMNS:
        raise NotLowered(f"slices of {rows.shape[1]} elements, which are sorted by one after the other")
    sorting = _sorting(node, rows)
    ordered = node.call("gather", rows, sorting, 0)
    if n > 1:
        differs = node.call("reduce", (ordered[1:] != ordered[:-1]).astype(np.uint32), "max", -1).reshape(n - 1) != 0
        start = node.call("join", [node.constant(np.ones(1, np.bool_)), differs], 0)
        end = node.call("join", [differs, node.constant(np.ones(1, np.bool_))], 0)
    else:
        start = end = node.constant(np.ones(1, np.bool_))
    count, firsts = _positions(node, start)
    _, lasts = _positions(node, end)
    group = node.call("cumulative_summation", start.astype(np.int64), 0) - np.ones(1, np.int64)
    inverse = node.call("scatter_elements", group, sorting.astype(np.int64), group, 0)
    first = node.call("gather", sorting, firsts, 0).astype(np.int64)
    counts = lasts.astype(np.int64) - firsts.astype(np.int64) + np.ones(1, np.int64)
    if not node.get("sorted", 1):
        among = node.constant(np.arange(n, dtype=np.uint32)) < count
        _, places = node.call("top_k", node.call("if_", among, first, np.array([n])), n, 0, largest=False)
        numbers = node.constant(np.arange(n, dtype=np.int64))
        ranks = node.call("scatter_elements", numbers, places.astype(np.int64), numbers, 0)
        inverse = node.call("gather", ranks, inverse, 0)
        first, counts = (node.call("gather", each, places, 0) for each in (first, counts))
    y = node.call("gather", whole, first, at)
    return [Counted(y, count, at), Counted(first, count, 0), inverse, Counted(counts, count, 0)]


_MOST_COLUMNS = 64


def _sorting(node: NodeContext, rows: Expression) -> Expression:
    """The places of rows in lexicographical order, as UINT32: stable sorts by each column, the last one first."""
    n, columns = rows.shape
    order: Expression | None = None
    for j in range(columns)[::-1]:
        column = rows[:, j] if columns > 1 else rows.reshape(n)
        keys = column if order is None else node.call("gather", column, order, 0)
        _, places = node.call("top_k", keys, n, 0, largest=False)
        order = places if order is None else node.call("gather", order, places, 0)
    assert order is not None
    return order


LOWERINGS: dict[str, Lowering] = {
    "Compress": compress,
    "NonZero": nonzero,
    "Unique": unique,
}
