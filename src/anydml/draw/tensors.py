"""Tensors as grids of cells, with arrows along an axis."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby, product
from typing import NamedTuple

from .boxes import (
    ADVANCE,
    INK,
    LINE,
    MUTED,
    ORDINAL,
    TRACED,
    WHITE,
    WIDEST,
    Box,
    Spans,
    arrow,
    beside,
    ellipsis,
    glyphs,
    middle_of,
    placed,
    spans_of,
    stacked,
    text_line,
    tint,
)
from .text import minus


class Look(NamedTuple):
    """What a cell shows."""

    text: str
    fill: str = WHITE
    stroke: str = LINE
    traced: bool = False
    """Bold, and inside the frame that is drawn round all such cells of a block."""
    dashed: bool = False


class Mark(NamedTuple):
    """An arrow along an axis, and the pieces that it runs through."""

    backward: bool = False
    traversed: bool = False
    """Whether the arrow is the way of a scan; else it is the axis's."""
    ends: tuple[int, ...] = ()
    """Where pieces end along the axis, each in a colour and with a number of its own."""

    def piece(self, i: int) -> int:
        return next(k for k, end in enumerate(self.ends) if i < end)


_CELL_HEIGHT = 34
DOTS = 30  # the room that an ellipsis takes among grids
_SMALL = 11  # font size of indices


def visible(size: int, limit: int) -> list[int | None]:
    """The indices drawn: all, or the first and the last ones, with None between them."""
    if size <= limit:
        return list(range(size))
    head = max(limit * 3 // 4, 1)
    tail = max(limit - head - 1, 0)
    return [*range(head), None, *range(size - tail, size)]


@dataclass(frozen=True, kw_only=True)
class Tensor:
    """A tensor's picture: its last two dimensions as a grid, one grid beside or below another for those before."""

    caption: Sequence[str]
    """Name first, then what else is said of the tensor."""
    sizes: tuple[int, ...]
    look: Callable[[tuple[int, ...]], Look]
    axis: int | None = None
    """Along which the operator works."""
    mark: Mark | None = None
    """Drawn along the axis."""
    origin: tuple[int, ...] | None = None
    """The index of the first cell, as it is written; zeros where None."""
    colour: str = ""
    """Of a patch before the name."""

    @cached_property
    def _shown(self) -> list[list[int | None]]:
        """The indices drawn of each dimension: of 16 by 16 cells, or of at most 8 grids of 8 by 8.

        The axis has the first claim on the grids, then the last of the dimensions that they are of.
        """
        shown: dict[int, list[int | None]] = {}
        grids = 1
        for dim in sorted(range(len(self.sizes) - 2), key=lambda dim: (dim == self.axis, dim), reverse=True):
            shown[dim] = visible(self.sizes[dim], max(8 // grids, 1))
            grids *= len([i for i in shown[dim] if i is not None])
        for dim in range(max(len(self.sizes) - 2, 0), len(self.sizes)):
            shown[dim] = visible(self.sizes[dim], 16 if grids == 1 else 8)
        return [shown[dim] for dim in range(len(self.sizes))]

    @cached_property
    def _looks(self) -> dict[tuple[int, ...], Look]:
        """Of every cell drawn."""
        there = [[i for i in shown if i is not None] for shown in self._shown]
        return {index: self.look(index) for index in product(*there)}

    @cached_property
    def _cell_width(self) -> float:
        """One for the whole tensor, as its longest text asks for."""
        longest = max(len(look.text) for look in self._looks.values())
        return max(44.0, longest * 15 * ADVANCE + 14)

    def box(self) -> Box:
        name, *rest = self.caption
        title = text_line(name, bold=True)
        if self.colour:
            fill = f'fill="{tint(self.colour)}" stroke="{self.colour}" stroke-width="2"'
            title = beside([Box(14, 14, f'<rect width="14" height="14" {fill}/>'), title], 8)
        lines = [text_line(text, 13, MUTED) for text in rest]
        lines += [text_line(text, 12, MUTED) for text in self._left_out()]
        return _below(stacked([title, *lines], 1), self._grids(()), 8)

    def _left_out(self) -> list[str]:
        cut = [
            f"{len(shown) - 1} of {size} along axis {dim}"
            for dim, (shown, size) in enumerate(zip(self._shown, self.sizes, strict=True))
            if None in shown
        ]
        return ["drawn: " + ", ".join(cut)] if cut else []

    def _grids(self, prefix: tuple[int, ...]) -> Box:
        dim = len(prefix)
        if dim >= len(self.sizes) - 2:
            return self._grid(prefix)
        shown = self._shown[dim]
        grids = [self._grids((*prefix, i)) for i in shown if i is not None]
        vertical = (len(self.sizes) - dim) % 2 == 0 or sum(box.width + 20 for box in grids) > WIDEST
        dots = Box(DOTS, DOTS, ellipsis(DOTS / 2, DOTS / 2, vertical))
        boxes = [dots if i is None else grids.pop(0) for i in shown]
        spans = spans_of([box.height if vertical else box.width for box in boxes], 20)
        return self._marked(dim, stacked(boxes, 20) if vertical else beside(boxes, 20), spans, vertical)

    def _grid(self, prefix: tuple[int, ...]) -> Box:
        """The cells below a prefix, with their indices on the upper and the left edge."""
        last = len(self.sizes) - 1
        rows, columns = (self._shown[-2] if last else [0]), self._shown[-1]
        left, top, width = self._margin, 18, self._cell_width
        cells = {
            (r, c): self._looks[(*prefix, i, j)[-len(self.sizes) :]]
            for r, i in enumerate(rows)
            for c, j in enumerate(columns)
            if i is not None and j is not None
        }
        parts = [placed(left, top, _cells(cells, width) + _ellipses(rows, columns, width))]
        across = spans_of([width] * len(columns), 0, left)
        down = spans_of([_CELL_HEIGHT] * len(rows), 0, top)
        parts += [glyphs(x, 9, text, _SMALL, MUTED, "middle") for text, x in self._indices(-1, across)]
        if last:
            parts += [glyphs(left - 6, y, text, _SMALL, MUTED, "end") for text, y in self._indices(-2, down)]
        box = Box(across[-1][1], down[-1][1], "".join(parts), (top + down[-1][1]) / 2)
        box = self._marked(last, box, across, False)
        box = self._marked(last - 1, box, down, True)
        several = math.prod(self.sizes[:-2]) > 1
        return _below(text_line(self._place(prefix), 12, MUTED), box, 2) if several else box

    def _indices(self, dim: int, spans: Spans) -> list[tuple[str, float]]:
        """The indices of a dimension, as they are written, and the middles of their cells."""
        shown = zip(self._shown[dim], spans, strict=True)
        return [(self._written(dim, i), (start + end) / 2) for i, (start, end) in shown if i is not None]

    def _written(self, dim: int, i: int) -> str:
        return minus(str(i + (self.origin[dim] if self.origin else 0)))

    @cached_property
    def _margin(self) -> float:
        """The room on the left of a grid for the indices of its rows."""
        if len(self.sizes) < 2:
            return 0
        return max(len(self._written(-2, i)) for i in self._shown[-2] if i is not None) * _SMALL * ADVANCE + 12

    def _place(self, prefix: tuple[int, ...]) -> str:
        indices = [self._written(dim, i) for dim, i in enumerate(prefix)]
        return f"[{', '.join([*indices, ':', ':'])}]"

    def _marked(self, dim: int, box: Box, spans: Spans, vertical: bool) -> Box:
        """The box with the mark below it, or on its left, where the mark is for this dimension."""
        if self.mark is None or self.axis != dim:
            return box
        strip = _strip(f"Axis {dim}", self.mark, self._shown[dim], spans, vertical)
        if vertical:
            return beside([strip._replace(middle=middle_of(box)), box], 6)
        return stacked([box, strip], 4)._replace(middle=middle_of(box))


def _below(caption: Box, box: Box, gap: float) -> Box:
    """A caption over a box, whose middle stays the middle."""
    return stacked([caption, box], gap)._replace(middle=caption.height + gap + middle_of(box))


def _cell(x: float, y: float, width: float, look: Look) -> str:
    dashes = ' stroke-dasharray="4 3"' if look.dashed else ""
    place = f'x="{x:.6g}" y="{y:.6g}" width="{width:.6g}" height="{_CELL_HEIGHT}"'
    rect = f'<rect {place} fill="{look.fill}" stroke="{look.stroke}"{dashes}/>'
    ink = MUTED if look.dashed else INK
    middle = y + _CELL_HEIGHT / 2
    return rect + (glyphs(x + width / 2, middle, look.text, 15, ink, "middle", look.traced) if look.text else "")


def _cells(cells: Mapping[tuple[int, int], Look], width: float) -> str:
    """Cells by row and column, and a frame round all that are traced."""
    # Neighbours share an edge: solid ones go over dashed ones, and the frame over everything.
    dashed_first = sorted(cells.items(), key=lambda cell: not cell[1].dashed)
    body = "".join(_cell(c * width, r * _CELL_HEIGHT, width, look) for (r, c), look in dashed_first)
    traced = [place for place, look in cells.items() if look.traced]
    if not traced:
        return body
    rows, columns = sorted(r for r, _ in traced), sorted(c for _, c in traced)
    place = f'x="{columns[0] * width:.6g}" y="{rows[0] * _CELL_HEIGHT}"'
    wide, high = (columns[-1] - columns[0] + 1) * width, (rows[-1] - rows[0] + 1) * _CELL_HEIGHT
    frame = f'fill="none" stroke="{TRACED}" stroke-width="3" rx="2"'
    return f'{body}<rect {place} width="{wide:.6g}" height="{high}" {frame}/>'


def _ellipses(rows: Sequence[int | None], columns: Sequence[int | None], width: float) -> str:
    """Dots where rows or columns are left out."""
    return "".join(
        ellipsis((c + 0.5) * width, (r + 0.5) * _CELL_HEIGHT, i is None)
        for r, i in enumerate(rows)
        for c, j in enumerate(columns)
        if (i is None) != (j is None)
    )


def _strip(label: str, mark: Mark, shown: list[int | None], spans: Spans, vertical: bool) -> Box:
    """The mark of an axis, beside what it is the axis of."""
    pieces = _pieces(mark, shown, spans, vertical) if mark.ends else Box(0, 0, "")
    start, end = spans[0][0], spans[-1][1]
    if mark.backward:
        start, end = end, start
    colour = TRACED if mark.traversed else INK
    if vertical:
        wide = len(label) * 13 * ADVANCE + 26
        body = glyphs(wide - 24, (start + end) / 2, label, 13, colour, "end", True)
        body += _origin(wide - 10, start, colour) + arrow(wide - 10, start, wide - 10, end, colour)
        return beside([Box(wide, spans[-1][1], body), pieces], 2) if mark.ends else Box(wide, spans[-1][1], body)
    body = _origin(start, 10, colour) + arrow(start, 10, end, 10, colour)
    body += glyphs((start + end) / 2, 28, label, 13, colour, "middle", True)
    return stacked([pieces, Box(spans[-1][1], 38, body)], 0)


def _origin(x: float, y: float, colour: str) -> str:
    return f'<circle cx="{x:.6g}" cy="{y:.6g}" r="4" fill="{colour}"/>'


def _pieces(mark: Mark, shown: list[int | None], spans: Spans, vertical: bool) -> Box:
    """A bar along every piece, with its number."""
    body = ""
    numbered = [(None if i is None else mark.piece(i), span) for i, span in zip(shown, spans, strict=True)]
    for k, group in groupby(numbered, key=lambda item: item[0]):
        places = [span for _, span in group]
        if k is None:
            continue
        start, length = places[0][0] + 2, places[-1][1] - places[0][0] - 4
        colour = ORDINAL[k % len(ORDINAL)]
        x, y, wide, high = (34.0, start, 6.0, length) if vertical else (start, 2.0, length, 6.0)
        body += f'<rect x="{x:.6g}" y="{y:.6g}" width="{wide:.6g}" height="{high:.6g}" rx="3" fill="{colour}"/>'
        x, y, anchor = (28.0, start + length / 2, "end") if vertical else (start + length / 2, 19.0, "middle")
        body += glyphs(x, y, f"[{k}]", 13, MUTED, anchor)
    return Box(42, spans[-1][1], body) if vertical else Box(spans[-1][1], 28, body)
