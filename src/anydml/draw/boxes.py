"""Pieces of a picture that know their size, put beside and below each other; colours, text and arrows."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import NamedTuple

import numpy as np


class Box(NamedTuple):
    width: float
    height: float
    body: str
    """SVG whose upper left corner is at (0, 0)."""
    middle: float | None = None
    """The height at which neighbours in a row meet it; half of its own where None."""


INK, MUTED, LINE, WHITE, PANEL = "#1a1a1a", "#5f5f5f", "#9a9a9a", "#ffffff", "#f4f4f4"
TRACED, TRACED_FILL, IDENTITY_FILL = "#d55e00", "#fbe3c4", "#cfe8f8"
ORDINAL = ("#e69f00", "#56b4e9", "#009e73", "#cc79a7", "#0072b2", "#d55e00", "#f0e442")
FONT = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"
ADVANCE = 0.62  # of a character, in ems; the widest of those fonts
WIDEST = 1200  # what stands side by side is at most that wide


def tint(colour: str) -> str:
    """The colour as a background for text."""
    return "#" + "".join(f"{round(255 - (255 - int(colour[i : i + 2], 16)) * 0.35):02x}" for i in (1, 3, 5))


def glyphs(
    x: float,
    y: float,
    text: str,
    size: int = 15,
    fill: str = INK,
    anchor: str = "start",
    bold: bool = False,
    length: float | None = None,
) -> str:
    """Text whose line is centred at y; no renderer agrees with another on dominant-baseline.

    With a length, browsers make it so long in whatever font they have; other renderers let it be as it is.
    """
    weight = ' font-weight="700"' if bold else ""
    weight += "" if length is None else f' textLength="{length:.6g}" lengthAdjust="spacingAndGlyphs"'
    place = f'x="{x:.6g}" y="{y + 0.35 * size:.6g}" font-size="{size}" fill="{fill}"'
    return f'<text {place} text-anchor="{anchor}"{weight}>{escape(text)}</text>'


def text_line(text: str, size: int = 15, fill: str = INK, bold: bool = False) -> Box:
    height = 1.4 * size
    body = glyphs(0, height / 2, text, size, fill, "start", bold) if text else ""
    return Box(len(text) * size * ADVANCE, height, body)


def placed(x: float, y: float, body: str) -> str:
    return f'<g transform="translate({x:.6g} {y:.6g})">{body}</g>' if body else ""


Spans = list[tuple[float, float]]
"""From where to where each of several things goes."""


def middle_of(box: Box) -> float:
    return box.height / 2 if box.middle is None else box.middle


def beside(boxes: Sequence[Box], gap: float = 24) -> Box:
    """Boxes side by side, their middles at one height."""
    middle = max(map(middle_of, boxes))
    tops = [middle - middle_of(box) for box in boxes]
    lefts = [left for left, _ in spans_of([box.width for box in boxes], gap)]
    body = "".join(placed(x, y, box.body) for x, y, box in zip(lefts, tops, boxes, strict=True))
    height = max(top + box.height for top, box in zip(tops, boxes, strict=True))
    return Box(lefts[-1] + boxes[-1].width, height, body, middle)


def stacked(boxes: Sequence[Box], gap: float = 24, centred: bool = False) -> Box:
    """Boxes below each other."""
    width = max(box.width for box in boxes)
    spans = spans_of([box.height for box in boxes], gap)
    lefts = [(width - box.width) / 2 if centred else 0 for box in boxes]
    body = "".join(placed(x, y, box.body) for x, (y, _), box in zip(lefts, spans, boxes, strict=True))
    return Box(width, spans[-1][1], body)


def spans_of(lengths: Sequence[float], gap: float, start: float = 0) -> Spans:
    spans, position = [], start
    for length in lengths:
        spans.append((position, position + length))
        position += length + gap
    return spans


def wrapped(boxes: Sequence[Box], gap: float = 32) -> Box:
    """Boxes in rows, as many as their width asks for."""
    rows: list[list[Box]] = [[]]
    for box in boxes:
        if rows[-1] and sum(each.width + gap for each in rows[-1]) + box.width > WIDEST:
            rows.append([])
        rows[-1].append(box)
    return stacked([beside(row, gap) for row in rows])


def arrow(x1: float, y1: float, x2: float, y2: float, colour: str = INK) -> str:
    """A straight arrow, along one of the axes."""
    dx, dy = float(np.sign(x2 - x1)), float(np.sign(y2 - y1))
    x, y = x2 - 9 * dx, y2 - 9 * dy
    points = f"{x2:.6g},{y2:.6g} {x - 5 * dy:.6g},{y - 5 * dx:.6g} {x + 5 * dy:.6g},{y + 5 * dx:.6g}"
    line = f'<line x1="{x1:.6g}" y1="{y1:.6g}" x2="{x:.6g}" y2="{y:.6g}" stroke="{colour}" stroke-width="2"/>'
    return f'{line}<polygon points="{points}" fill="{colour}"/>'


def ellipsis(x: float, y: float, down: bool) -> str:
    """An ellipsis round a point; few fonts have one that goes down."""
    steps = [(0, i) if down else (i, 0) for i in (-6, 0, 6)]
    return "".join(f'<circle cx="{x + dx:.6g}" cy="{y + dy:.6g}" r="1.5" fill="{MUTED}"/>' for dx, dy in steps)


def step_between(words: Sequence[str], sign: str = "", down: bool = False) -> Box:
    """The arrow from what is read to what is written: a sign on it, words beside it."""
    longest = max((len(word) for word in words), default=0) * 13 * ADVANCE
    if down:
        x, y, width, height = longest + 24, 32.0, 2 * longest + 48, 64.0
        body = arrow(x, 0, x, height)
        places = [(x + 24, y + 18 * (i - (len(words) - 1) / 2)) for i in range(len(words))]
    else:
        width = max(longest, 88.0)
        x, y, height = width / 2, 16.0, 38.0 + 18 * len(words)
        body = arrow(0, y, width, y)
        places = [(x, y + 28 + 18 * i) for i in range(len(words))]
    if sign:
        body += f'<circle cx="{x:.6g}" cy="{y:.6g}" r="15" fill="{WHITE}" stroke="{INK}" stroke-width="2"/>'
        body += glyphs(x, y, sign, 17, INK, "middle", True)
    anchor = "start" if down else "middle"
    body += "".join(glyphs(*place, word, 13, MUTED, anchor) for place, word in zip(places, words, strict=True))
    return Box(width, height, body, y)
