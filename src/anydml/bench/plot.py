"""A chart of what was measured of large tensors on all threads: where we and others stand in each cell."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from importlib import import_module
from io import BytesIO
from typing import Any

from ..core.errors import error, violation
from . import Result, Row
from .cases import format_size
from .places import count_of

# Readable on white and on black: every colour has a contrast of 3 or more to both.
_TEXT = "#7d8590"
OURS = "#d9480f"
_LIMIT = "#7d8590"
PEERS = {
    "numpy": ("s", "#3b82c4"),
    "torch": ("^", "#a855c7"),
    "torch.compile": ("<", "#d16ba5"),
    "cupy": ("P", "#1f9d6b"),
    "onnxruntime": ("D", "#1f9d6b"),
    "jax": ("v", "#b8860b"),
}
_INCHES_PER_CELL = 0.22


def check() -> None:
    """That charts can be drawn, before anything is measured for one.

    Raises:
        DMLError: (P1) matplotlib is not installed.
    """
    try:
        import_module("matplotlib")
    except ImportError:
        problem = violation(
            "bench", "(P1)", "plot", "no matplotlib", "matplotlib, which draws the chart", "pip install 'anydml[plot]'"
        )
        raise error([problem]) from None


def plot(result: Result) -> bytes:
    """The chart as SVG: a panel for each operator, the ratio on a logarithmic axis."""
    check()
    mpl: Any = import_module("matplotlib")
    figures: Any = import_module("matplotlib.figure")

    groups = _groups(result)
    columns = _columns(groups)
    shown = [row for cells in groups.values() for rows in cells.values() for row in rows]
    peers = [name for name in PEERS if any(name in row.peers for row in shown)]
    height = max(sum(len(groups[name]) + 2 for name in column) for column in columns)
    colours = {key: _TEXT for key in ("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color")}
    with mpl.rc_context({**colours, "svg.fonttype": "none", "svg.hashsalt": "anydml", "font.size": 9}):
        figure = figures.Figure(figsize=(11, 1.5 + _INCHES_PER_CELL * height), layout="constrained")
        place = None
        parts = figure.subfigures(1, len(columns), squeeze=False)[0]
        for part, column in zip(parts, columns, strict=True):
            heights = [len(groups[name]) + 2 for name in column]
            # All cells are of one height: a shorter column leaves a rest, which is the legend's place.
            rest = [height - sum(heights)] if height > sum(heights) else []
            panels = part.subplots(len(heights + rest), 1, squeeze=False, height_ratios=heights + rest)[:, 0]
            for panel, name in zip(panels, column, strict=False):
                _draw(panel, name, groups[name], peers)
            if rest:
                panels[-1].axis("off")
                place = panels[-1]
        _legend(figure, place)
        sizes = sorted({row.size for row in shown})
        ends = " to ".join(map(format_size, sorted({sizes[0], sizes[-1]}))) if sizes else "no size"
        threads = max((row.threads for row in shown), default=result.header["threads"])
        counts = f", {count_of(threads, 'thread')}" if threads else ""
        figure.suptitle(
            f"Time by that of the fastest copy of as many bytes; further left is faster\n"
            f"{result.header['processor']}{counts}, tensors of {ends}",
            fontsize=10,
        )
        output = BytesIO()
        figure.savefig(output, format="svg", transparent=True, metadata={"Date": None})
    return output.getvalue()


_Cells = dict[str, list[Row]]


def _groups(result: Result) -> dict[str, _Cells]:
    """The rows of the sizes that have limits, else of the largest, on the most threads; by operator and cell. Without
    those that are measured in products, of which a copy says little."""
    rows = [row for row in result.rows if not (row.error or row.products)]
    groups: dict[str, _Cells] = {}
    for operator in dict.fromkeys(row.operator for row in rows):
        mine = [row for row in rows if row.operator == operator]
        threads = max(row.threads for row in mine)
        mine = [row for row in mine if row.threads == threads]
        sizes = {row.size for row in mine if row.limit is not None} or {max(row.size for row in mine)}
        cells = groups.setdefault(operator, {})
        for row in [row for row in mine if row.size in sizes]:
            cells.setdefault(row.cell, []).append(row)
    return groups or {"nothing was measured": {}}


def _columns(groups: dict[str, _Cells]) -> list[list[str]]:
    """The operators in two columns of about the same length; in one where they are few."""
    names = list(groups)
    if len(names) < 3:
        return [names]
    lengths = [len(groups[name]) + 2 for name in names]
    cut = min(range(1, len(names)), key=lambda i: max(sum(lengths[:i]), sum(lengths[i:])))
    return [names[:cut], names[cut:]]


def _draw(panel: Any, name: str, cells: _Cells, peers: Sequence[str]) -> None:
    """A line for each cell and library from its best row to its worst, a mark at the median."""
    panel.set_title(name, loc="left", fontsize=9, fontweight="bold")
    panel.set_xscale("log")
    panel.set_xlim(0.4, 400)
    panel.axvline(1, color=_TEXT, linewidth=0.8, alpha=0.6)
    for place in range(1, len(cells)):
        panel.axhline(place - 0.5, color=_TEXT, linewidth=0.3, alpha=0.35)
    step = 0.8 / (len(peers) + 1)
    for place, rows in enumerate(cells.values()):
        limits = {row.limit for row in rows if row.limit is not None and row.plain_ratio is None}
        if limits:
            panel.vlines(min(limits), place - 0.4, place + 0.4, color=_LIMIT, linestyle="dotted", label="limit")
        start = place - len(peers) / 2 * step
        _mark(panel, start, [row.ratio for row in rows], "anydml", "o", OURS, 26)
        for i, peer in enumerate(peers, 1):
            ratios = [row.peers[peer] for row in rows if peer in row.peers]
            _mark(panel, start + i * step, ratios, peer, *PEERS[peer], 14)
    panel.set_yticks(range(len(cells)), cells)
    panel.set_ylim(max(len(cells), 1) - 0.5, -0.5)
    panel.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    panel.xaxis.set_minor_formatter(lambda value, _: "")
    panel.spines[["top", "right", "left"]].set_visible(False)
    panel.tick_params(axis="y", length=0)


def _mark(panel: Any, place: float, ratios: Sequence[float], label: str, marker: str, colour: str, size: int) -> None:
    if ratios:
        panel.hlines(place, min(ratios), max(ratios), color=colour, linewidth=1.2, alpha=0.6)
        median = statistics.median(ratios)
        panel.scatter([median], [place], marker=marker, s=size, color=colour, linewidths=0, zorder=3, label=label)


def _legend(figure: Any, place: Any) -> None:
    handles: dict[str, Any] = {}
    for panel in [axes for part in figure.subfigs for axes in part.get_axes()]:
        for handle, label in zip(*panel.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    names = [name for name in ("anydml", *PEERS, "limit") if name in handles]
    if not names:
        return
    options = {
        "title": "marks: the median case\nlines: from the best case to the worst",
        "frameon": False,
        "alignment": "left",
    }
    shown = [handles[name] for name in names], names
    if place is None:
        figure.legend(*shown, loc="outside lower center", ncols=len(names), **options)
    else:
        place.legend(*shown, loc="center", ncols=2, **options)
