"""A compiled graph as a picture: operators below those that feed them, with what they give and how long they take."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from html import escape
from math import ceil
from textwrap import wrap
from unicodedata import east_asian_width

from ..graph.compile import CompiledGraph
from ..graph.ir import Step
from ..graph.verify import GRAPH, Port
from ..operators.fused_spec import names_of
from ..operators.schema import Tensor
from .boxes import FONT, INK, LINE, MUTED, PANEL, TRACED, WHITE, Box, glyphs, placed, stacked
from .layers import Vertex, layered
from .text import braces

_ADVANCE = 0.6
"""Of a character, in ems, which browsers are told to keep to, whatever their font."""
_ROOM = 0.75
"""For a character, in ems; in a renderer that has none of the fonts a name in capitals takes about as much."""
_NARROWEST = 180.0
"""Of a picture, so that its title has room for its words."""


def draw_graph(
    graph: CompiledGraph,
    seconds: Sequence[float] | None = None,
    inputs: Sequence[str] | None = None,
    outputs: Sequence[str] | None = None,
) -> str:
    """An SVG picture of what a graph was compiled to.

    Weights, which are OWNED_BY_DML, and constants are named in the operators that take them.

    Args:
        graph: what :meth:`anydml.Device.compile_graph` or :meth:`anydml.Graph.compile` gave.
        seconds: how long each kernel takes, as :meth:`anydml.CompiledGraph.times` has it; none where None.
        inputs: the names of all its inputs, in place of its own.
        outputs: likewise of its outputs.

    Returns:
        An SVG document, in ASCII.

    >>> from anydml import *
    >>> graph = Graph(Device("cpu"))
    >>> x = graph.input((3,), name="x")
    >>> draw_graph(graph.compile({"double": x + x}))[:40]
    '<svg xmlns="http://www.w3.org/2000/svg" '
    """
    picture = layered(_vertices(graph, seconds, inputs or graph.input_names, outputs or graph.output_names))
    width = max(picture.width, _NARROWEST)
    title = wrap(graph.explain().partition("\n")[0], int(width / (13 * _ROOM)))
    heading = stacked([line(each, 13, MUTED) for each in title], 0, centred=True)
    return document(stacked([heading, picture], 16, centred=True))


def _vertices(
    graph: CompiledGraph, seconds: Sequence[float] | None, inputs: Sequence[str], outputs: Sequence[str]
) -> list[Vertex]:
    """Inputs that are not weights first, then a box for each kernel, and those of the outputs."""
    numbers: dict[int, int] = {}
    vertices: list[Vertex] = []
    for i, (name, tensor) in enumerate(zip(inputs, graph.inputs, strict=True)):
        if tensor is not None and not tensor.Flags:
            numbers[GRAPH - i] = len(vertices)
            vertices.append(Vertex(_end(name, tensor), []))
    longest = max(seconds, default=0.0) if seconds else 0.0
    given_by: dict[int, int] = {}
    for i, step in enumerate(graph.steps):
        fed = [place.port for place in step.reads if place is not None]
        sources = {GRAPH - port.number if port.node == GRAPH else port.node for port in fed}
        lines = _lines(step, graph.prepared, None if seconds is None else (seconds[i], longest))
        feeding = [numbers[source] for source in sorted(sources) if source in numbers]
        for place in step.writes:
            if place is not None:
                numbers[place.port.node] = len(vertices)
        given_by |= dict.fromkeys(graph.outputs_of(step), len(vertices))
        vertices.append(Vertex(panel(lines, WHITE), feeding))
    for i, (name, tensor) in enumerate(zip(outputs, graph.outputs, strict=True)):
        # What is constant, no kernel gives.
        sources_of_output = [given_by[i]] if i in given_by else []
        if tensor is not None:
            vertices.append(Vertex(_end(name, tensor), sources_of_output))
    return vertices


def _end(name: str, tensor: Tensor) -> Box:
    """An input or an output of the graph."""
    return panel([line(name, 13, bold=True), line(f"{tensor.DataType.name} {braces(tensor.Sizes)}", 12)], PANEL)


def _lines(step: Step, prepared: Collection[Port], time: tuple[float, float] | None) -> list[Box]:
    spec, desc = step.vertex.spec, step.vertex.desc
    first, *others = names_of(desc, spec)
    if step.vertex.folded:
        others.insert(0, step.vertex.folded)
    lines = [line(first, 14, INK, bold=True), *[line(f"+ {name}", 13, TRACED) for name in others]]
    lines += [line(title, 12, MUTED) for title in step.vertex.titles]
    written = [tensor for _, tensor in spec.outputs(desc) if tensor is not None]
    lines += [line(f"{tensor.DataType.name} {braces(tensor.Sizes)}", 12) for tensor in written]
    inputs = zip(step.vertex.sources, spec.inputs(desc), strict=True)
    weights = [each for port, (_, each) in inputs if each is not None and (each.Flags or port in prepared)]
    lines += [line(f"weights {braces(tensor.Sizes)}", 11, MUTED) for tensor in weights]
    served = step.served.engine.name
    if time is None:
        return [*lines, line(served, 11, MUTED)]
    taken, longest = time
    bar = f'<rect width="{120 * taken / longest if longest else 0:.6g}" height="5" fill="{TRACED}"/>'
    return [*lines, line(f"{served}, {_time(taken)}", 11, MUTED), Box(120, 5, bar)]


def line(text: str, size: int, fill: str = INK, bold: bool = False) -> Box:
    """Text in the middle of its room, which is right in whatever font it is shown."""
    columns = sum(2 if east_asian_width(each) in "WF" else 1 for each in text)
    width, height = columns * size * _ROOM, 1.4 * size
    body = glyphs(width / 2, height / 2, text, size, fill, "middle", bold, columns * size * _ADVANCE)
    return Box(width, height, body)


def _time(seconds: float) -> str:
    return f"{seconds * 1e3:.3g} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.3g} us"


def panel(lines: Sequence[Box], fill: str) -> Box:
    """Lines in a box."""
    inside = stacked(lines, 2, centred=True)
    width, height = inside.width + 24, inside.height + 16
    card = f'<rect width="{width:.6g}" height="{height:.6g}" rx="8" fill="{fill}" stroke="{LINE}"/>'
    return Box(width, height, card + placed(12, 8, inside.body))


def document(inside: Box, title: str = "graph") -> str:
    """A picture on its card."""
    width, height = ceil(inside.width) + 64, ceil(inside.height) + 56
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}"'
        f' viewBox="0 0 {width} {height}" role="img" font-family="{FONT}"><title>{escape(title)}</title>'
        f'<rect x="1" y="1" width="{width - 2}" height="{height - 2}" rx="12" fill="{WHITE}" stroke="#d0d0d0"/>'
        f"{placed(32, 28, inside.body)}</svg>\n"
    )
    return svg.encode("ascii", "xmlcharrefreplace").decode()
