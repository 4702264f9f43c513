"""Windows that slide over spatial dimensions, as convolutions and pools have them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..context import NodeContext, NotLowered


class Window(NamedTuple):
    """How a window moves, for each spatial dimension.

    Attributes:
        taps: its size.
        strides: its steps.
        dilations: the distance of taps.
        start: padding before the input.
        end: padding behind it.
    """

    taps: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    start: tuple[int, ...]
    end: tuple[int, ...]

    @property
    def reach(self) -> list[int]:
        """The elements from the first tap to the last: (taps - 1) * dilation + 1."""
        return [(tap - 1) * dilation + 1 for tap, dilation in zip(self.taps, self.dilations, strict=True)]

    def options(self) -> dict[str, list[int]]:
        """As anydml's functions have them; the taps, which a filter's shape says, are not among them."""
        return {
            "strides": [*self.strides],
            "dilations": [*self.dilations],
            "start_padding": [*self.start],
            "end_padding": [*self.end],
        }

    def with_height(self) -> Window:
        """The same window of one dimension as one of two, of height 1."""
        return Window((1, *self.taps), (1, *self.strides), (1, *self.dilations), (0, *self.start), (0, *self.end))


def window_of(node: NodeContext, sizes: Sequence[int], taps: Sequence[int]) -> Window:
    """A node's window over an image of the given sizes, with auto_pad resolved.

    SAME has ceil(size / stride) results, for which (results - 1) * stride + reach - size elements are missing.
    """
    count = len(taps)
    if len(sizes) != count:
        raise NotLowered(f"a window of {count} dimensions over {len(sizes)}")
    strides, dilations = (_per_dimension(node, name, count) for name in ("strides", "dilations"))
    start, end = pads_of(node, count)
    auto = node.get("auto_pad", "NOTSET")
    found = Window(tuple(taps), strides, dilations, start, end)
    if auto == "VALID":
        return found._replace(start=(0,) * count, end=(0,) * count)
    if auto.startswith("SAME"):
        each = zip(sizes, strides, found.reach, strict=True)
        totals = [max((-(-size // stride) - 1) * stride + reach - size, 0) for size, stride, reach in each]
        start, end = halves(totals, auto == "SAME_UPPER")
        return found._replace(start=start, end=end)
    return found


def pads_of(node: NodeContext, count: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The attribute `pads`: what stands before the input, and what behind."""
    pads = tuple(node.get("pads") or (0,) * 2 * count)
    if len(pads) != 2 * count:
        raise NotLowered(f"{len(pads)} pads for {count} spatial dimensions")
    return pads[:count], pads[count:]


def _per_dimension(node: NodeContext, name: str, count: int) -> tuple[int, ...]:
    found = tuple(node.get(name) or (1,) * count)
    if len(found) != count:
        raise NotLowered(f"{len(found)} {name} for {count} spatial dimensions")
    return found


def halves(totals: Sequence[int], more_behind: bool) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Paddings in two halves, of which one is larger by 1 where a total is odd."""
    less = tuple(total // 2 for total in totals)
    more = tuple(total - total // 2 for total in totals)
    return (less, more) if more_behind else (more, less)
