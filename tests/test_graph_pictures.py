"""Pictures of graphs: names in their boxes in any font, arrows that go past boxes, outputs, a title above all."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import anydml
from anydml import (
    DML_ACTIVATION_RELU_OPERATOR_DESC,
    DML_ELEMENT_WISE_ADD1_OPERATOR_DESC,
    DML_ELEMENT_WISE_ADD_OPERATOR_DESC,
    Device,
    Graph,
)
from anydml.cli import main
from anydml.draw import draw_graph
from anydml.draw.boxes import Box
from anydml.draw.layers import Vertex, layered

ROOM = 0.75
"""Ems of a character in a wide font, such as DejaVu Sans Bold, on the average of a name in capitals."""


class Element(NamedTuple):
    """A shape of a picture, with where its group lies."""

    kind: str
    x: float
    y: float
    attributes: dict[str, str]
    text: str


def elements(svg: str) -> list[Element]:
    def walk(node: Any, x: float, y: float) -> Iterator[Element]:
        moved = re.fullmatch(r"translate\((\S+) (\S+)\)", node.get("transform", ""))
        if moved:
            x, y = x + float(moved[1]), y + float(moved[2])
        yield Element(node.tag.rpartition("}")[2], x, y, dict(node.attrib), node.text or "")
        for each in node:
            yield from walk(each, x, y)

    return list(walk(ElementTree.fromstring(svg), 0, 0))


class Area(NamedTuple):
    left: float
    top: float
    right: float
    bottom: float

    def holds(self, x: float, y: float, slack: float = 0) -> bool:
        return self.left - slack <= x <= self.right + slack and self.top - slack <= y <= self.bottom + slack


def boxes(svg: str) -> list[Area]:
    found = [each for each in elements(svg) if each.kind == "rect" and each.attributes.get("rx") == "8"]
    sizes = [(float(each.attributes["width"]), float(each.attributes["height"])) for each in found]
    return [Area(e.x, e.y, e.x + width, e.y + height) for e, (width, height) in zip(found, sizes, strict=True)]


def texts(svg: str) -> list[tuple[str, Area]]:
    """Where each text may reach in a wide font."""
    found = []
    for each in elements(svg):
        if each.kind == "text":
            assert each.attributes["text-anchor"] == "middle"
            x, y = each.x + float(each.attributes["x"]), each.y + float(each.attributes["y"])
            size = float(each.attributes["font-size"])
            half = len(each.text) * size * ROOM / 2
            found.append((each.text, Area(x - half, y - 0.8 * size, x + half, y + 0.25 * size)))
    return found


def curves(svg: str) -> list[list[tuple[float, float]]]:
    """Points of each edge, from its beginning to its arrow."""
    edges = []
    for each in (each for each in elements(svg) if each.kind == "path"):
        points: list[tuple[float, float]] = []
        for letter, rest in re.findall(r"([MVC])([^MVC]+)", each.attributes["d"]):
            numbers = [float(number) for number in rest.split()]
            if letter == "M":
                points.append((numbers[0], numbers[1]))
                continue
            start = np.array(points[-1])
            ends = [start[0], numbers[0]] if letter == "V" else numbers
            handles = (
                np.array([start, start, ends, ends])
                if letter == "V"
                else np.array([start, *zip(*[iter(ends)] * 2, strict=True)])
            )
            for t in np.linspace(0, 1, 33)[1:]:
                weights = np.array([(1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t**2 * (1 - t), t**3])
                points.append(tuple((weights @ handles).tolist()))
        edges.append([(each.x + x, each.y + y) for x, y in points])
    return edges


def arrowheads(svg: str) -> list[tuple[float, float]]:
    """Their tips."""
    found = [each for each in elements(svg) if each.kind == "polygon"]
    tips = [each.attributes["points"].split()[0].split(",") for each in found]
    return [(each.x + float(x), each.y + float(y)) for each, (x, y) in zip(found, tips, strict=True)]


def diamond() -> Any:
    """What leads past others, from an input that is read late, and to several outputs."""
    graph = Graph(Device("cpu"))
    x, late = graph.input((1, 1, 4, 4), name="photograph"), graph.input((1, 1, 4, 4))
    sums = anydml.cumulative_summation(x)
    likely = anydml.softmax(anydml.cumulative_product(sums))
    return graph.compile({"total": sums + likely - late, "pooled": anydml.max_pooling(sums, 2), "twice": x + x})


def named() -> Any:
    graph = Graph(Device("cpu"))
    x = graph.input((2, 3), name="\N{CJK UNIFIED IDEOGRAPH-5716}<in & out>")
    (y,) = graph.operator(DML_ELEMENT_WISE_ADD1_OPERATOR_DESC, "block/add", ATensor=x, BTensor=x)
    (y,) = graph.operator(DML_ACTIVATION_RELU_OPERATOR_DESC, "block/relu", InputTensor=y)
    (y,) = graph.operator(
        DML_ELEMENT_WISE_ADD_OPERATOR_DESC, "a name that is longer than those of operators", ATensor=y, BTensor=x
    )
    return graph.compile([y])


def small() -> Any:
    graph = Graph(Device("cpu"))
    return graph.compile([-graph.input((1,), "int8")])


GRAPHS = pytest.mark.parametrize("compiled", [diamond(), named(), small()], ids=["diamond", "named", "small"])


@GRAPHS
def test_names_are_inside_their_boxes(compiled: Any) -> None:
    svg = draw_graph(compiled, [1e-5 * (i + 1) for i in range(len(compiled.steps))])
    panels, found = boxes(svg), texts(svg)
    top = min(panel.top for panel in panels)
    inside = [(text, area) for text, area in found if area.top > top]
    assert len(inside) >= 2 * len(panels)
    for text, area in inside:
        assert any(panel.holds(area.left, area.top) and panel.holds(area.right, area.bottom) for panel in panels), text


@GRAPHS
def test_browsers_are_told_how_long_texts_are(compiled: Any) -> None:
    for each in elements(draw_graph(compiled)):
        if each.kind == "text":
            size = float(each.attributes["font-size"])
            assert each.attributes["lengthAdjust"] == "spacingAndGlyphs"
            columns = len(each.text) + each.text.count("\N{CJK UNIFIED IDEOGRAPH-5716}")
            assert float(each.attributes["textLength"]) == pytest.approx(0.6 * size * columns, rel=1e-4)


@GRAPHS
def test_the_title_is_no_wider_than_the_graph(compiled: Any) -> None:
    svg = draw_graph(compiled)
    panels = boxes(svg)
    top = min(panel.top for panel in panels)
    title = [(text, area) for text, area in texts(svg) if area.bottom < top]
    assert " ".join(text for text, _ in title) == compiled.explain().splitlines()[0]
    width = max(max(panel.right for panel in panels) - min(panel.left for panel in panels), 180)
    assert max(area.right - area.left for _, area in title) <= width
    document = float(ElementTree.fromstring(svg).get("width", 0))
    areas = [*panels, *[area for _, area in title]]
    assert all(area.left >= 32 and area.right <= document - 32 for area in areas)


@GRAPHS
def test_an_arrow_for_each_tensor_that_is_read(compiled: Any) -> None:
    svg = draw_graph(compiled)
    panels, edges, tips = boxes(svg), curves(svg), arrowheads(svg)
    assert len(edges) == len(tips) == len({*tips})
    for points, (x, y) in zip(edges, tips, strict=True):
        # It ends above the arrow's tip, which touches a box, and leads from the middle of another.
        assert points[-1] == pytest.approx((x, y - 12), abs=0.01)
        assert sum(abs(panel.top - y) < 0.01 and panel.left < x < panel.right for panel in panels) == 1
        x, y = points[0]
        starts = [panel for panel in panels if abs(panel.bottom - y) < 0.01]
        assert any(abs((panel.left + panel.right) / 2 - x) < 0.01 for panel in starts)


@GRAPHS
def test_edges_go_past_boxes_and_boxes_past_each_other(compiled: Any) -> None:
    svg = draw_graph(compiled)
    panels = boxes(svg)
    for points in curves(svg):
        assert not any(panel.holds(x, y, -1) for panel in panels for x, y in points)
    for i, a in enumerate(panels):
        for b in panels[:i]:
            assert a.right < b.left or b.right < a.left or a.bottom < b.top or b.bottom < a.top


def test_edges_of_the_diamond() -> None:
    compiled = diamond()
    svg = draw_graph(compiled)
    found = dict(texts(svg))
    for name in ("photograph", "inputs[1]", "total", "pooled", "twice"):
        assert name in found
    inputs, outputs = 2, 3
    assert len(boxes(svg)) == inputs + len(compiled.steps) + outputs
    # An input that is read late stands just above the operator that reads it.
    assert found["inputs[1]"].top > found["photograph"].bottom
    assert found["total"].top > found["ELEMENT_WISE_ADD"].bottom


def test_nodes_have_their_names_and_what_is_merged_too() -> None:
    found = dict(texts(draw_graph(named())))
    for name in ("block/add", "block/relu", "a name that is longer than those of operators", "+ ACTIVATION_RELU"):
        assert name in found
    assert "\N{CJK UNIFIED IDEOGRAPH-5716}<in & out>" in found
    assert draw_graph(named()).isascii()


def test_what_is_constant_is_an_output_without_an_arrow() -> None:
    graph = Graph(Device("cpu"))
    known = anydml.fill_value_constant((2,), 3, graph=graph)
    svg = draw_graph(graph.compile({"known": known}))
    assert "known" in dict(texts(svg))
    assert len(boxes(svg)) == 1
    assert curves(svg) == arrowheads(svg) == []


def test_the_weights_of_a_normalisation_keep_its_name() -> None:
    graph = Graph(Device("cpu"))
    x = graph.input((1, 16, 8, 8))
    rng = np.random.default_rng(0)
    y = anydml.convolution(x, rng.random((16, 16, 3, 3), np.float32), start_padding=1, end_padding=1)
    ones = np.ones((1, 16, 1, 1), np.float32)
    (z,) = graph.operator(
        anydml.DML_BATCH_NORMALIZATION_OPERATOR_DESC,
        "normalised",
        InputTensor=y,
        **{f"{member}Tensor": graph.input(ones) for member in ("Mean", "Variance", "Scale", "Bias")},
        Spatial=True,
        Epsilon=0.0,
    )
    assert "normalised" in dict(texts(draw_graph(graph.compile([z]))))


def test_rows_of_a_picture() -> None:
    box = Box(40, 20, "")
    # 0 feeds 1 and 3, 1 feeds 2, 2 and 4 feed 3; 4 is fed by nothing, and 5 stands alone.
    sources: list[list[int]] = [[], [0], [1], [0, 2, 4], [], []]
    order = [0, 1, 2, 4, 3, 5]
    numbers = {old: new for new, old in enumerate(order)}
    picture = layered([Vertex(box, [numbers[each] for each in sources[old]]) for old in order])
    assert picture.height == 4 * 20 + 3 * 44
    assert picture.body.count("<polygon") == 5
    assert layered([]) == Box(0, 0, "")


def test_a_model_has_the_names_of_its_resources(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Those that the options of calls have, and those that are read or written several times, with a number."""
    four, two = ({"DataType": "FLOAT32", "Sizes": [size]} for size in (4, 2))
    values = {"initialValuesDataType": "FLOAT32", "initialValues": [1, 2, 3, 4]}

    def negated(tensor: Any) -> Any:
        return {"type": "DML_OPERATOR_ELEMENT_WISE_NEGATE", "desc": {"InputTensor": tensor, "OutputTensor": tensor}}

    def dispatch(name: str, source: Any, target: Any) -> Any:
        bound = {"InputTensor": source, "OutputTensor": target}
        return {"type": "dispatch", "dispatchable": name, "bindings": bound}

    model = {
        "resources": dict.fromkeys(("out", "B"), values),
        "dispatchables": {"whole": negated(four), "half": negated(two)},
        "commands": [
            dispatch("whole", "out", "B"),
            {"type": "print", "resource": "B"},
            dispatch("half", {"name": "out", "elementCount": 2}, {"name": "B", "elementCount": 2}),
        ],
    }
    path = tmp_path / "model.json"
    path.write_text(json.dumps(model))
    assert main(["draw", "--graph", str(path)]) == 0
    found = [text for text, _ in texts(capsys.readouterr().out)]
    assert sorted(set(found) & {"out", "out (2)", "out (3)", "B", "B (2)", "whole", "half"}) == [
        "B",
        "B (2)",
        "half",
        "out (2)",
        "out (3)",
        "whole",
    ]
