"""Layered graph drawing, after Sugiyama: what feeds stands above, and edges go past boxes through rows of their own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from .boxes import LINE, Box, arrow, placed, spans_of

_ACROSS, _DOWN = 28.0, 44.0
"""Room between boxes."""
_LANE = 4.0
"""Room for an edge that goes past boxes."""
_HEAD = 12.0
"""Of an edge, what is its arrow."""


class Vertex(NamedTuple):
    """A box of the picture, with the numbers of those that feed it, which come before it."""

    box: Box
    sources: list[int]


class _Item(NamedTuple):
    """A box in its row, or the lane of an edge past it."""

    row: int
    width: float
    above: list[int]
    """Numbers of items of the row before that lead to it."""


def layered(vertices: Sequence[Vertex]) -> Box:
    """The boxes in rows, with an arrow from each to those that it feeds."""
    rows = _rows(vertices)
    items = [_Item(row, vertex.box.width, []) for row, vertex in zip(rows, vertices, strict=True)]
    routes: list[tuple[int, list[int], int]] = []
    """Of each edge: its source, lanes and target."""
    for i, vertex in enumerate(vertices):
        for source in vertex.sources:
            lanes, last = [], source
            for row in range(rows[source] + 1, rows[i]):
                items.append(_Item(row, _LANE, [last]))
                last = len(items) - 1
                lanes.append(last)
            items[i].above.append(last)
            routes.append((source, lanes, i))
    centres = _centres(items)
    heights = [0.0] * (max(rows, default=-1) + 1)
    for row, vertex in zip(rows, vertices, strict=True):
        heights[row] = max(heights[row], vertex.box.height)
    spans = spans_of(heights, _DOWN)
    boxes = [
        placed(centre - vertex.box.width / 2, spans[row][0], vertex.box.body)
        for centre, row, vertex in zip(centres, rows, vertices, strict=False)
    ]
    edges = []
    entries = _entries(routes, centres, vertices)
    for number, (source, lanes, target) in enumerate(routes):
        x, bottom = centres[source], spans[rows[source]][1]
        path = f"M{x:.6g} {spans[rows[source]][0] + vertices[source].box.height:.6g}V{bottom:.6g}"
        for lane in lanes:
            top, end = spans[items[lane].row]
            path += _curve(x, bottom, centres[lane], top) + f"V{end:.6g}"
            x, bottom = centres[lane], end
        top, entry = spans[rows[target]][0], entries[number]
        path += _curve(x, bottom, entry, top - _HEAD)
        edges.append(f'<path d="{path}" fill="none" stroke="{LINE}" stroke-width="2"/>')
        edges.append(arrow(entry, top - _HEAD, entry, top, LINE))
    width = max((centre + item.width / 2 for centre, item in zip(centres, items, strict=True)), default=0.0)
    return Box(width, spans[-1][1] if spans else 0.0, "".join([*edges, *boxes]))


def _rows(vertices: Sequence[Vertex]) -> list[int]:
    """The row of each: below all that feed it; of what nothing feeds, just above the first that it feeds."""
    rows: list[int] = []
    for vertex in vertices:
        rows.append(1 + max((rows[source] for source in vertex.sources), default=-1))
    first = [len(vertices)] * len(vertices)
    for row, vertex in zip(rows, vertices, strict=True):
        for source in vertex.sources:
            first[source] = min(first[source], row)
    return [
        row if vertex.sources or below == len(vertices) else below - 1
        for row, below, vertex in zip(rows, first, vertices, strict=True)
    ]


def _centres(items: Sequence[_Item]) -> list[float]:
    """Where each stands across: as far as there is room, below the middle of those that lead to it."""
    centres = [0.0] * len(items)
    for row in range(max((item.row for item in items), default=-1) + 1):
        members = [i for i, item in enumerate(items) if item.row == row]
        wanted = {i: sum(centres[k] for k in items[i].above) / max(len(items[i].above), 1) for i in members}
        members.sort(key=wanted.__getitem__)
        right = -float("inf")
        for i in members:
            half = items[i].width / 2
            centres[i] = max(wanted[i], right + _ACROSS + half)
            right = centres[i] + half
        # They were pushed to the right alone.
        shift = sum(wanted[i] - centres[i] for i in members) / max(len(members), 1)
        for i in members:
            centres[i] += shift
    left = min((centre - item.width / 2 for centre, item in zip(centres, items, strict=True)), default=0.0)
    return [centre - left for centre in centres]


def _entries(
    routes: Sequence[tuple[int, list[int], int]], centres: Sequence[float], vertices: Sequence[Vertex]
) -> dict[int, float]:
    """Where each edge meets its target, so that arrows stand beside each other."""
    entries: dict[int, float] = {}
    for target, vertex in enumerate(vertices):
        numbers = [i for i, (_, _, other) in enumerate(routes) if other == target]
        numbers.sort(key=lambda i: centres[(routes[i][1] or [routes[i][0]])[-1]])
        step = min(18.0, vertex.box.width / (len(numbers) + 1))
        for place, i in enumerate(numbers):
            entries[i] = centres[target] + (place - (len(numbers) - 1) / 2) * step
    return entries


def _curve(x1: float, y1: float, x2: float, y2: float) -> str:
    """From a point to one below, down at both."""
    if x1 == x2:
        return f"V{y2:.6g}"
    middle = (y1 + y2) / 2
    return f"C{x1:.6g} {middle:.6g} {x2:.6g} {middle:.6g} {x2:.6g} {y2:.6g}"
