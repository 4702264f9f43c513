"""Elements that indices name: gathered, scattered, found."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...directmlx import Expression
from ..context import Lowering, NodeContext, NotLowered
from .movement import window_of
from .shapes import axis_of, filled, like


def gather(node: NodeContext) -> Any:
    own = node.shape(0)
    axis = axis_of(node.get("axis", 0), len(own))
    shape = (*own[:axis], *node.shape(1), *own[axis + 1 :])
    steady = _steady(node.value(1), own[axis]) if node.is_known(1) else None
    if steady is None or 0 in shape:
        return filled(node, shape, lambda: node.call("gather", node.x(0), node.x(1), axis))
    window = window_of(node, [steady if i == axis else range(size) for i, size in enumerate(own)])
    return node.shaped(window.expression, shape)


_MOST = 4096
"""Indices that are looked through."""


def _steady(indices: Any, size: int) -> range | None:
    """Known indices as those of a slice, where they are in equal steps."""
    if not 0 < indices.size <= _MOST or np.min(indices) < -size or np.max(indices) >= size:
        return None
    places = [int(each) % size for each in np.ravel(indices)]
    step = places[1] - places[0] if len(places) > 1 else 1
    steady = range(places[0], places[0] + step * len(places), step) if step else None
    return steady if steady is not None and [*steady] == places else None


def gather_elements(node: NodeContext) -> Any:
    """An element for each index; an array that is larger along other axes is cut there."""
    own, shape = node.shape(0), node.shape(1)
    axis = axis_of(node.get("axis", 0), len(own))

    def make() -> Expression:
        x = node.x(0)
        sizes = [size if i == axis else wanted for i, (size, wanted) in enumerate(zip(own, shape, strict=True))]
        if tuple(sizes) != own:
            x = node.call("slice", x, [0] * len(own), sizes)
        found: Expression = node.call("gather_elements", x, node.x(1), axis)
        return found

    return filled(node, shape, make)


def gather_nd(node: NodeContext) -> Any:
    own, indices, batch = node.shape(0), node.shape(1), node.get("batch_dims", 0)
    if not indices[-1]:
        raise NotLowered("tuples of no indices")
    shape = (*indices[:-1], *own[batch + indices[-1] :])
    return filled(node, shape, lambda: node.call("gather_nd", node.x(0), node.x(1), batch_dimension_count=batch))


def one_hot(node: NodeContext) -> Any:
    """Indices of any type become integers, and get the dimension of the vectors."""
    depth, sizes = int(node.number(1)), node.shape(0)
    axis = axis_of(node.get("axis", -1), len(sizes) + 1)
    shape = (*sizes[:axis], depth, *sizes[axis:])
    if 0 in shape:
        return np.zeros(shape, node.dtype(2))
    indices = node.x(0).astype(np.int64).reshape(*sizes[:axis], 1, *sizes[axis:])
    return node.shaped(like(node, node.call("one_hot", indices, depth, node.x(2), axis), 2), shape)


def top_k(node: NodeContext) -> list[Any]:
    """The largest or smallest elements and their indices, always sorted."""
    own = node.shape(0)
    axis = axis_of(node.get("axis", -1), len(own))
    k = node.number(1) if node.opset >= 10 else node.required("k")
    shape = (*own[:axis], k, *own[axis + 1 :])
    if 0 in shape:
        return [np.zeros(shape, node.dtype(0)), np.zeros(shape, np.int64)]
    largest = bool(node.get("largest", 1))
    values, indices = node.call("top_k", node.x(0), k, axis, largest=largest, indices_dtype="uint64")
    # An index has the same bits as a signed integer.
    return [node.shaped(values, shape), node.shaped(indices.astype(np.int64), shape)]


LOWERINGS: dict[str, Lowering] = {
    "Gather": gather,
    "GatherElements": gather_elements,
    "GatherND": gather_nd,
    "OneHot": one_hot,
    "TopK": top_k,
    "com.microsoft.GatherND": gather_nd,
}
