"""Sequences of tensors, which are lists of what is known of each: host.py has what only counts in them."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..context import Lowering, NodeContext
from .movement import cut
from .shapes import axis_of


def split_to_sequence(node: NodeContext) -> Any:
    """Parts along an axis, of a size or of several; of 1 where none is given, whose dimension may be left out."""
    shape = node.shape(0)
    axis = axis_of(node.get("axis", 0), len(shape))
    size = shape[axis]
    if not node.has(1):
        parts = cut(node, [1] * size, axis)
        if node.get("keepdims", 1):
            return [parts]
        left = (*shape[:axis], *shape[axis + 1 :])
        return [[_under(node, part, left) for part in parts]]
    given = node.integers(1)
    if node.rank(1):
        return [cut(node, given, axis)]
    (each,) = given
    return [cut(node, [min(each, size - i) for i in range(0, size, each)], axis)]


def _under(node: NodeContext, part: Any, shape: tuple[int, ...]) -> Any:
    return part.reshape(shape) if isinstance(part, np.ndarray) else node.shaped(part.expression, shape)


LOWERINGS: dict[str, Lowering] = {"SplitToSequence": split_to_sequence}
