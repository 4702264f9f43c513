"""Basic indexing, as NumPy has it, in terms of SLICE1: a window along each dimension, and steps through it."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..core.errors import kind_of, refuse
from ..functions._arguments import as_index

_OPERATOR = "Expression"


class Window(NamedTuple):
    """What an index takes of a tensor."""

    offsets: tuple[int, ...]
    """The window's first element along each dimension, whatever the direction."""
    sizes: tuple[int, ...]
    steps: tuple[int, ...]
    """Negative where it is walked from its last element."""
    shape: tuple[int, ...]
    """The result's: without the dimensions that an integer indexes, with those that None adds."""

    def is_whole(self, shape: tuple[int, ...]) -> bool:
        """Whether it takes every element in its order."""
        return self.sizes == shape and all(step == 1 for step in self.steps)


def window_of(shape: tuple[int, ...], index: Any) -> Window:
    """The window of an index; rule (G10)."""
    items = list(index) if isinstance(index, tuple) else [index]
    ellipses = [i for i, item in enumerate(items) if item is Ellipsis]
    taken = sum(item is not None and item is not Ellipsis for item in items)
    if taken > len(shape) or len(ellipses) > 1:
        found = f"{taken} indices" if taken > len(shape) else "several ellipses"
        refuse(_OPERATOR, "(G10)", "index", found, f"at most {len(shape)}, of shape {shape}, and one ellipsis")
    place = ellipses[0] if ellipses else len(items)
    items[place : place + 1] = [slice(None)] * (len(shape) - taken)
    windows: list[tuple[int, int, int]] = []
    result: list[int] = []
    for item in items:
        if item is None:
            result.append(1)
            continue
        size = shape[len(windows)]
        where = f"index[{len(windows)}]"
        if isinstance(item, slice):
            offset, count, step = _span(where, item, size)
            result.append(count)
            # A step of the one element that is taken is never walked.
            windows.append((offset, (count - 1) * abs(step) + 1, step if count > 1 else 1))
        else:
            windows.append((_position(where, item, size), 1, 1))
    if not result:
        remedy = "Keep a dimension: x[0:1]"
        refuse(_OPERATOR, "(G10)", "index", "one element, of 0 dimensions", "1 or more dimensions", remedy)
    offsets, sizes, steps = (tuple(each) for each in zip(*windows, strict=True))
    return Window(offsets, sizes, steps, tuple(result))


def _span(where: str, item: slice, size: int) -> tuple[int, int, int]:
    """The lowest element, the number of elements and the step."""
    try:
        start, stop, step = item.indices(size)
    except (TypeError, ValueError):
        return refuse(_OPERATOR, "(G10)", where, str(item), "a slice of integers, of a step that is not 0", kind="type")
    count = len(range(start, stop, step))
    if not count:
        found = f"{item.start}:{item.stop}:{item.step}, which takes nothing of size {size}"
        refuse(_OPERATOR, "(G10)", where, found, "at least one element", "DirectML has no empty tensors")
    return min(start, start + (count - 1) * step), count, step


def _position(where: str, item: Any, size: int) -> int:
    try:
        position = as_index(item)
    except TypeError:
        remedy = "anydml.gather takes indices that are a tensor" if hasattr(item, "shape") else ""
        expected = "an integer, a slice, an ellipsis or None"
        return refuse(_OPERATOR, "(G10)", where, kind_of(item), expected, remedy, kind="type")
    if not -size <= position < size:
        refuse(_OPERATOR, "(G10)", where, str(position), f"{-size} to {size - 1}, of size {size}")
    return position % size
