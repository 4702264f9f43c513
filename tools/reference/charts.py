"""Charts of what was measured, as SVG in the page: a line for each case, the ratio on a logarithmic axis.

Colours are the page's, light or dark, by classes in `docs/site/_static/site.css`. Each mark has a title, which browsers
show where one points at it; `charts.js` shows it below the chart, too, as fingers do not point. A table with the same
numbers follows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from html import escape

from .markup import html, html_table
from .results import Row, Run

_WIDTH, _RIGHT = 760, 16
_TOP, _LINE, _BOTTOM = 14, 26, 34
_TICKS = (0.05, 0.1, 0.2, 0.5, 1, 1.5, 2, 3, 5, 10, 20, 50, 100, 200, 500)


def section(run: Run, rows: Sequence[Row]) -> str:
    """Where it was measured, the chart, and the numbers behind it."""
    machine = escape(" · ".join(line for line in run.head[:2]))
    title = rows[0].group
    return html(f'<p class="machine">{machine}</p>\n{chart(title, rows)}') + details(rows)


def details(rows: Sequence[Row]) -> str:
    """The same as a table, which opens where it is wanted; without columns in which there is nothing."""
    titles = ("Case", "Type", "Size", "Time", "anydml", "Limit", "Others")
    lines = [
        (
            *(row.case, row.dtype, row.size, row.time),
            _ratio(row, "anydml", row.ratio) + (f" {row.verdict}" if row.verdict != "ok" else ""),
            "" if row.limit is None else f"{row.limit:.2f}",
            ", ".join(f"{name} {_ratio(row, name, ratio)}" for name, ratio in sorted(row.peers.items(), key=_second)),
        )
        for row in rows
    ]
    filled = [i for i in range(len(titles)) if any(line[i] for line in lines)]
    cells = [[escape(line[i]) for i in filled] for line in lines]
    table = html_table([titles[i] for i in filled], cells, "measured stacked")
    table = table.removeprefix("```{raw} html\n").removesuffix("\n```\n")
    return html(f"<details><summary>The same as a table</summary>\n{table}\n</details>")


def _second(pair: tuple[str, float]) -> float:
    return pair[1]


def _ratio(row: Row, who: str, ratio: float) -> str:
    """A ratio, and of several cases the least and the largest, too."""
    if who not in row.spans:
        return f"{ratio:.2f}"
    low, high = row.spans[who]
    return f"{ratio:.2f} ({low:.2f} to {high:.2f})"


def _text_width(text: str) -> float:
    """About as many pixels as a case's name takes, of which capitals are the widest letters."""
    return sum(8.6 if each.isupper() else 7.0 for each in text)


def chart(title: str, rows: Sequence[Row]) -> str:
    """The chart of one operator or kind of operators."""
    cases = list(dict.fromkeys(row.case for row in rows))
    ratios = [ratio for row in rows for ratio in (row.ratio, *row.peers.values(), row.limit or 1.0)]
    ratios += [end for row in rows for span in row.spans.values() for end in span]
    low, high = min(0.9, *ratios) / 1.05, max(1.5, *ratios) * 1.05
    height = _TOP + _LINE * len(cases) + _BOTTOM
    left = min(_WIDTH / 2, 24 + max(map(_text_width, cases)))

    def x(ratio: float) -> float:
        return left + (_WIDTH - left - _RIGHT) * math.log(ratio / low) / math.log(high / low)

    parts = [_axis(x, low, high, height)]
    for i, case in enumerate(cases):
        y = _TOP + _LINE * (i + 0.5)
        parts.append(f'<text class="case" x="{left - 14:.1f}" y="{y + 4:.1f}">{escape(case)}</text>')
        parts.append(f'<line class="row" x1="{left:.1f}" x2="{_WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts += _marks([row for row in rows if row.case == case], x, y)
    label = escape(f"{title}: time by that of a copy of as many bytes, {len(cases)} cases")
    body = "\n".join(parts)
    return (
        f'<figure class="chart"><figcaption><span class="ours">●</span> anydml <span class="peer">◆</span> other '
        f'libraries <span class="limit">┃</span> the limit that the project sets itself</figcaption>\n'
        f'<div class="chart-scroll"><svg viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}" role="img" '
        f'aria-label="{label}">\n{body}\n</svg></div>\n'
        f'<p class="chart-value" aria-live="polite" hidden></p></figure>'
    )


def _axis(x: Callable[[float], float], low: float, high: float, height: int) -> str:
    """Lines at round ratios, no two of them too near to each other to be read."""

    lines, last = [], -math.inf
    for tick in _TICKS:
        if low <= tick <= high and (x(tick) - last > 34 or tick == 1):
            last = x(tick)
            bottom = height - _BOTTOM + 4
            kind = "one" if tick == 1 else "tick"
            lines.append(f'<line class="{kind}" x1="{last:.1f}" x2="{last:.1f}" y1="{_TOP - 6}" y2="{bottom}"/>')
            lines.append(f'<text class="axis" x="{last:.1f}" y="{bottom + 15}">{tick:g}</text>')
    return "\n".join(lines)


def _marks(rows: Sequence[Row], x: Callable[[float], float], y: float) -> list[str]:
    """Limits below, other libraries above them, our own on top."""

    limits, peers, ours = [], [], []
    for row in rows:
        where = ", ".join(each for each in (row.case, row.dtype, row.size) if each)
        if row.limit is not None:
            place = x(row.limit)
            shape = f'<line x1="{place:.1f}" x2="{place:.1f}" y1="{y - 8:.1f}" y2="{y + 8:.1f}"/>'
            limits.append(_point("limit", f"{where}: the limit is {row.limit:.2f}", shape))
        for name, ratio in row.peers.items():
            place = x(ratio)
            shape = _span(row, name, x, y + 3) + f'<path d="M{place:.1f} {y - 5:.1f}l5 5l-5 5l-5 -5z"/>'
            peers.append(_point("peer", f"{where}: {_said(row, name, ratio)}", shape))
        shape = _span(row, "anydml", x, y) + f'<circle cx="{x(row.ratio):.1f}" cy="{y:.1f}" r="5"/>'
        verdict = "" if row.verdict == "ok" else f" ({row.verdict})"
        ours.append(_point("ours", f"{where}: {_said(row, 'anydml', row.ratio, row.time)}{verdict}", shape))
    return [*limits, *peers, *ours]


def _said(row: Row, who: str, ratio: float, time: str = "") -> str:
    said = f"{who} takes {time + ', ' if time else ''}{ratio:.2f} times as long as a copy"
    if who in row.spans:
        low, high = row.spans[who]
        said += f" in the median case, {low:.2f} to {high:.2f} in all"
    return said


def _span(row: Row, who: str, x: Callable[[float], float], y: float) -> str:
    """A line from the best case to the worst."""
    if who not in row.spans:
        return ""
    low, high = row.spans[who]
    return f'<line class="span" x1="{x(low):.1f}" x2="{x(high):.1f}" y1="{y:.1f}" y2="{y:.1f}"/>'


def _point(kind: str, said: str, shape: str) -> str:
    return f'<g class="point {kind}"><title>{escape(said)}</title>{shape}</g>'
