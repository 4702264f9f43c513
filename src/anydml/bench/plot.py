"""A chart of what was measured: a line for each row, where we and others stand on it."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from io import BytesIO
from typing import Any

from ..errors import Violation, error
from . import Result, Row
from .cases import format_size

# Readable on white and on black: every colour has a contrast of 3 or more to both.
_TEXT = "#7d8590"
_OURS = "#d9480f"
_LIMIT = "#7d8590"
_PEERS = {
    "numpy": ("s", "#3b82c4"),
    "torch": ("^", "#a855c7"),
    "onnxruntime": ("D", "#1f9d6b"),
    "jax": ("v", "#b8860b"),
}
_INCHES_PER_ROW = 0.16


def check() -> None:
    """That charts can be drawn, before anything is measured for one.

    Raises:
        DMLError: (P1) matplotlib is not installed.
    """
    try:
        import_module("matplotlib")
    except ImportError:
        problem = Violation(
            operator="bench",
            where="plot",
            found="no matplotlib",
            expected="matplotlib, which draws the chart",
            rule="(P1)",
            remedy="pip install 'anydml[plot]'",
        )
        raise error([problem]) from None


def plot(result: Result) -> bytes:
    """The chart as SVG: a panel for each operator, the ratio on a logarithmic axis."""
    check()
    mpl: Any = import_module("matplotlib")
    figures: Any = import_module("matplotlib.figure")

    rows = [row for row in result.rows if not row.error]
    groups = {name: [row for row in rows if row.operator == name] for name in dict.fromkeys(r.operator for r in rows)}
    if not groups:
        groups = {"nothing was measured": []}
    heights = [len(group) + 2 for group in groups.values()]
    colours = {key: _TEXT for key in ("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color")}
    with mpl.rc_context({**colours, "svg.fonttype": "none", "svg.hashsalt": "anydml", "font.size": 8}):
        figure = figures.Figure(figsize=(10, 1.2 + _INCHES_PER_ROW * sum(heights)), layout="constrained")
        panels = figure.subplots(len(groups), 1, squeeze=False, sharex=True, height_ratios=heights)[:, 0]
        for panel, (name, group) in zip(panels, groups.items(), strict=True):
            _draw(panel, name, group)
        panels[-1].set_xlabel("time by that of the fastest copy of as many bytes; further left is faster")
        _legend(figure, groups)
        header = result.header
        figure.suptitle(f"{header['processor']}, {header['threads']} threads")
        output = BytesIO()
        figure.savefig(output, format="svg", transparent=True, metadata={"Date": None})
    return output.getvalue()


def _draw(panel: Any, name: str, rows: Sequence[Row]) -> None:
    places = range(len(rows))
    panel.set_title(name, loc="left", fontweight="bold")
    panel.set_xscale("log")
    panel.axvline(1, color=_TEXT, linewidth=0.8, alpha=0.6)
    panel.hlines(places, 0.3, 100, color=_TEXT, linewidth=0.3, alpha=0.35)
    panel.scatter([row.limit for row in rows], places, marker="|", s=60, color=_LIMIT, label="limit")
    for peer, (marker, colour) in _PEERS.items():
        there = [(row.peers[peer], place) for place, row in enumerate(rows) if peer in row.peers]
        if there:
            x, y = zip(*there, strict=True)
            panel.scatter(x, y, marker=marker, s=14, color=colour, alpha=0.85, linewidths=0, label=peer)
    panel.scatter([row.ratio for row in rows], places, s=26, color=_OURS, zorder=3, label="anydml")
    panel.set_yticks(places, [_label(row) for row in rows])
    panel.set_ylim(len(rows), -1)
    panel.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    panel.spines[["top", "right", "left"]].set_visible(False)
    panel.tick_params(axis="y", length=0)


def _label(row: Row) -> str:
    threads = ", 1 thread" if row.threads == 1 else ""
    return f"{row.dtype} {row.name}, {format_size(row.size)}{threads}"


def _legend(figure: Any, groups: Any) -> None:
    handles: dict[str, Any] = {}
    for panel in figure.axes:
        for handle, label in zip(*panel.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    figure.legend(handles.values(), handles.keys(), loc="outside upper right", ncols=len(handles), frameon=False)
