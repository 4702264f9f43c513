"""A compiled graph as a picture: operators below those that feed them, with what they give and how long they take."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from html import escape
from typing import NamedTuple

from ..graph.compile import CompiledGraph
from ..graph.ir import Step
from ..graph.verify import GRAPH, Port
from ..operators.pointwise_chain import names_of
from .boxes import (
    FONT,
    INK,
    LINE,
    MUTED,
    PANEL,
    TRACED,
    WHITE,
    Box,
    placed,
    spans_of,
    stacked,
    text_line,
)
from .text import braces

_ACROSS, _DOWN = 28.0, 34.0
"""Room between boxes."""


class _Vertex(NamedTuple):
    """A box of the picture, with the numbers of those that feed it."""

    box: Box
    sources: list[int]


def draw_graph(graph: CompiledGraph, seconds: Sequence[float] | None = None) -> str:
    """An SVG picture of what a graph was compiled to.

    Weights, which are OWNED_BY_DML, and constants are named in the operators that take them.

    Args:
        graph: what :meth:`anydml.Device.compile_graph` or :meth:`anydml.Graph.compile` gave.
        seconds: how long each kernel takes, as :meth:`anydml.CompiledGraph.times` has it; none where None.

    Returns:
        An SVG document, in ASCII.

    >>> from anydml import *
    >>> graph = Graph(Device("cpu"))
    >>> x = graph.input(DML_BUFFER_TENSOR_DESC(DataType=TensorDataType.FLOAT32, Sizes=(3,)))
    >>> draw_graph(graph.compile([x + x]))[:40]
    '<svg xmlns="http://www.w3.org/2000/svg" '
    """
    vertices = _vertices(graph, seconds)
    rows: dict[int, list[int]] = {}
    for i, row in enumerate(_rows(vertices)):
        rows.setdefault(row, []).append(i)
    widths = {row: sum(vertices[i].box.width + _ACROSS for i in members) for row, members in rows.items()}
    width = max(widths.values(), default=0.0)
    places: dict[int, tuple[float, float]] = {}
    heights = [max(vertices[i].box.height for i in rows[row]) for row in sorted(rows)]
    for row, (top, _) in zip(sorted(rows), spans_of(heights, _DOWN), strict=True):
        left = (width - widths[row] + _ACROSS) / 2
        for i in rows[row]:
            places[i] = (left, top)
            left += vertices[i].box.width + _ACROSS
    # The middle of such a curve is three quarters as far aside as its handles.
    aside = (max((vertex.box.width for vertex in vertices), default=0.0) / 2 + 14) / 0.75
    edges = [
        _edge(vertices[source].box, places[source], vertex.box, places[i], aside)
        for i, vertex in enumerate(vertices)
        for source in vertex.sources
    ]
    boxes = [placed(*places[i], vertex.box.body) for i, vertex in enumerate(vertices)]
    bottom = spans_of(heights, _DOWN)[-1][1] if heights else 0.0
    heading = text_line(graph.explain().partition("\n")[0], 13, MUTED)
    body = placed(0, heading.height + 16, "".join([*edges, *boxes]))
    inside = Box(max(width, heading.width), bottom + heading.height + 16, heading.body + body)
    return _document(inside)


def _vertices(graph: CompiledGraph, seconds: Sequence[float] | None) -> list[_Vertex]:
    """Inputs that are not weights first, then a box for each kernel."""
    numbers: dict[int, int] = {}
    vertices: list[_Vertex] = []
    for i, tensor in enumerate(graph.inputs):
        if tensor is not None and not tensor.Flags:
            numbers[GRAPH - i] = len(vertices)
            text = [f"inputs[{i}]", f"{tensor.DataType.name} {braces(tensor.Sizes)}"]
            vertices.append(_Vertex(_panel([text_line(each, 13) for each in text], PANEL), []))
    longest = max(seconds, default=0.0) if seconds else 0.0
    for i, step in enumerate(graph.steps):
        fed = [place.port for place in step.reads if place is not None]
        sources = {GRAPH - port.number if port.node == GRAPH else port.node for port in fed}
        lines = _lines(
            step, graph.named_outputs(step), graph.prepared, None if seconds is None else (seconds[i], longest)
        )
        feeding = [numbers[source] for source in sorted(sources) if source in numbers]
        for place in step.writes:
            if place is not None:
                numbers[place.port.node] = len(vertices)
        vertices.append(_Vertex(_panel(lines, WHITE), feeding))
    return vertices


def _lines(
    step: Step, outputs: Sequence[str], prepared: Collection[Port], time: tuple[float, float] | None
) -> list[Box]:
    spec, desc = step.vertex.spec, step.vertex.desc
    first, *others = names_of(desc)
    if step.vertex.folded:
        others.insert(0, step.vertex.folded)
    lines = [text_line(first, 14, INK, bold=True), *[text_line(f"+ {name}", 13, TRACED) for name in others]]
    written = [tensor for _, tensor in spec.outputs(desc) if tensor is not None]
    lines += [text_line(f"{tensor.DataType.name} {braces(tensor.Sizes)}", 12) for tensor in written]
    inputs = zip(step.vertex.sources, spec.inputs(desc), strict=True)
    weights = [each for port, (_, each) in inputs if each is not None and (each.Flags or port in prepared)]
    lines += [text_line(f"weights {braces(tensor.Sizes)}", 11, MUTED) for tensor in weights]
    lines += [text_line(f"to {each}", 11, MUTED) for each in outputs]
    served = step.served.engine.name
    if time is None:
        return [*lines, text_line(served, 11, MUTED)]
    taken, longest = time
    bar = f'<rect width="{120 * taken / longest if longest else 0:.6g}" height="5" fill="{TRACED}"/>'
    return [*lines, text_line(f"{served}, {_time(taken)}", 11, MUTED), Box(120, 5, bar)]


def _time(seconds: float) -> str:
    return f"{seconds * 1e3:.3g} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.3g} us"


def _panel(lines: Sequence[Box], fill: str) -> Box:
    inside = stacked(lines, 2)
    width, height = inside.width + 24, inside.height + 16
    panel = f'<rect width="{width:.6g}" height="{height:.6g}" rx="8" fill="{fill}" stroke="{LINE}"/>'
    return Box(width, height, panel + placed(12, 8, inside.body))


def _rows(vertices: Sequence[_Vertex]) -> list[int]:
    """The row of each: below all that feed it. What feeds comes first."""
    rows: list[int] = []
    for vertex in vertices:
        rows.append(1 + max((rows[source] for source in vertex.sources), default=-1))
    return rows


def _edge(source: Box, start: tuple[float, float], target: Box, end: tuple[float, float], aside: float) -> str:
    """A curve from the bottom of a box to the top of another; one that passes others by bends to the right."""
    x1, y1 = start[0] + source.width / 2, start[1] + source.height
    x2, y2 = end[0] + target.width / 2, end[1]
    bend = (y2 - y1) / 2
    aside = 0.0 if y2 - y1 < 2 * _DOWN else aside
    curve = f"M{x1:.6g} {y1:.6g}C{x1 + aside:.6g} {y1 + bend:.6g} {x2 + aside:.6g} {y2 - bend:.6g} {x2:.6g} {y2:.6g}"
    return f'<path d="{curve}" fill="none" stroke="{LINE}" stroke-width="2"/>'


def _document(inside: Box) -> str:
    width, height = inside.width + 64, inside.height + 56
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}"'
        f' viewBox="0 0 {width:.0f} {height:.0f}" role="img" font-family="{FONT}"><title>{escape("graph")}</title>'
        f'<rect x="1" y="1" width="{width - 2:.0f}" height="{height - 2:.0f}" rx="12" fill="{WHITE}" stroke="#d0d0d0"/>'
        f"{placed(32, 28, inside.body)}</svg>\n"
    )
    return svg.encode("ascii", "xmlcharrefreplace").decode()
