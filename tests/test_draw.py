"""Pictures: what they say is what the operators do, and nothing in them covers anything else."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple
from xml.etree import ElementTree

import numpy as np
import pytest

from anydml import (
    DML_BUFFER_TENSOR_DESC,
    DML_CUMULATIVE_PRODUCT_OPERATOR_DESC,
    DML_CUMULATIVE_SUMMATION_OPERATOR_DESC,
    DML_JOIN_OPERATOR_DESC,
    DML_QUANTIZED_LINEAR_AVERAGE_POOLING_OPERATOR_DESC,
    AxisDirection,
    Device,
    DMLError,
)
from anydml import draw as draw_module
from anydml.core.strided_layout import DATA_TYPES, Array, Layout
from anydml.draw import EXAMPLES, draw, draw_operator
from anydml.draw.text import number
from anydml.operators import OPERATORS, spec_of
from together import Row, together

pytestmark = pytest.mark.slow

Picture = tuple[Any, list[Array | None]]


def packed(array: Array) -> DML_BUFFER_TENSOR_DESC:
    return DML_BUFFER_TENSOR_DESC(DataType=DATA_TYPES[array.dtype], Sizes=array.shape)


def scan(x: Array, axis: int, product: bool = False, reverse: bool = False, exclusive: bool = False) -> Picture:
    members: dict[str, Any] = {"InputTensor": packed(x), "OutputTensor": packed(x), "Axis": axis}
    members["AxisDirection"] = AxisDirection(reverse)
    if product:
        return DML_CUMULATIVE_PRODUCT_OPERATOR_DESC(**members, HasExclusiveProduct=exclusive), [x]
    return DML_CUMULATIVE_SUMMATION_OPERATOR_DESC(**members, HasExclusiveSum=exclusive), [x]


def joined(arrays: Sequence[Array], axis: int) -> Picture:
    output = packed(np.concatenate(arrays, axis))
    desc = DML_JOIN_OPERATOR_DESC(InputTensors=[packed(x) for x in arrays], OutputTensor=output, Axis=axis)
    return desc, list(arrays)


def pooled(x: Array, sizes: Sequence[int], quantisation: Sequence[Array | None], **attributes: Any) -> Picture:
    spatial = x.ndim - 2
    zeros, ones = (0,) * spatial, (1,) * spatial
    defaults: Mapping[str, Any] = {"Strides": ones, "StartPadding": zeros, "EndPadding": zeros, "Dilations": ones}
    names = ("InputScaleTensor", "InputZeroPointTensor", "OutputScaleTensor", "OutputZeroPointTensor")
    tensors = {name: None if q is None else packed(q) for name, q in zip(names, quantisation, strict=True)}
    output = quantisation[-1] if quantisation[-1] is not None else x
    desc = DML_QUANTIZED_LINEAR_AVERAGE_POOLING_OPERATOR_DESC(
        InputTensor=packed(x),
        OutputTensor=DML_BUFFER_TENSOR_DESC(DataType=DATA_TYPES[output.dtype], Sizes=(*x.shape[:2], *sizes)),
        **tensors,
        **{**defaults, **attributes},
    )
    return desc, [x, *quantisation]


def per_channel(dtype: type[np.generic], *values: float) -> Array:
    return np.array(values, dtype).reshape(1, -1, 1, 1)


def apply_all(desc: Any, inputs: Sequence[Array | None]) -> list[Array | None]:
    device = Device("reference")
    operator = device.create_operator(desc)
    layouts = [None if tensor is None else Layout.of_desc(tensor) for _, tensor in operator.spec.outputs(desc)]
    outputs = [None if layout is None else np.empty(layout.sizes, layout.dtype) for layout in layouts]
    device.compile_operator(operator).dispatch(inputs, outputs)
    return outputs


def drawn(picture: Picture) -> str:
    desc, inputs = picture
    return draw(desc, inputs, apply_all(desc, inputs))


# What a picture has in it


class Shape(NamedTuple):
    """An element of an SVG document with the place that it takes, estimated for text."""

    tag: str
    attributes: Mapping[str, str]
    text: str
    """With hyphens for minus signs."""
    left: float
    top: float
    right: float
    bottom: float

    def covers(self, other: Shape) -> bool:
        apart = self.right <= other.left or other.right <= self.left
        return not (apart or self.bottom <= other.top or other.bottom <= self.top)


def shapes(svg: str) -> list[Shape]:
    return list(_shapes(ElementTree.fromstring(svg), 0, 0))


def _shapes(element: ElementTree.Element, x: float, y: float) -> Iterator[Shape]:
    at = element.attrib
    tag = element.tag.rpartition("}")[2]
    if tag == "g":
        moved = re.fullmatch(r"translate\((\S+) (\S+)\)", at["transform"])
        assert moved
        x, y = x + float(moved[1]), y + float(moved[2])
    box = _box(tag, at, element.text or "")
    if box:
        yield Shape(
            tag, at, (element.text or "").replace("\N{MINUS SIGN}", "-"), x + box[0], y + box[1], x + box[2], y + box[3]
        )
    for child in element:
        yield from _shapes(child, x, y)


def _box(tag: str, at: Mapping[str, str], text: str) -> tuple[float, float, float, float] | None:
    if tag == "rect":
        x, y = float(at.get("x", 0)), float(at.get("y", 0))
        return x, y, x + float(at["width"]), y + float(at["height"])
    if tag == "circle":
        x, y, r = (float(at[name]) for name in ("cx", "cy", "r"))
        return x - r, y - r, x + r, y + r
    if tag == "line":
        x1, y1, x2, y2 = (float(at[name]) for name in ("x1", "y1", "x2", "y2"))
        return min(x1, x2) - 1, min(y1, y2) - 1, max(x1, x2) + 1, max(y1, y2) + 1
    if tag == "polygon":
        points = [tuple(map(float, point.split(","))) for point in at["points"].split()]
        return (*map(min, zip(*points, strict=True)), *map(max, zip(*points, strict=True)))  # type: ignore[return-value]
    if tag == "text":
        x, y, size = float(at["x"]), float(at["y"]), float(at["font-size"])
        width = 0.6 * size * len(text)
        left = x - width * {"start": 0, "middle": 0.5, "end": 1}[at["text-anchor"]]
        return left, y - 0.75 * size, left + width, y + 0.2 * size
    return None


def texts(svg: str) -> list[str]:
    return [shape.text for shape in shapes(svg) if shape.tag == "text"]


def cells_in(svg: str) -> Iterator[tuple[Shape, Shape]]:
    """Every cell that has a text, and the text, in the order drawn."""
    for rect, text in pairwise(shape for shape in shapes(svg) if shape.tag in ("rect", "text")):
        if rect.tag == "rect" and text.tag == "text" and rect.attributes["height"] == "34" and rect.covers(text):
            yield rect, text


def cells(svg: str) -> list[tuple[str, str, bool]]:
    """Text, fill and boldness of those cells."""
    return [(text.text, rect.attributes["fill"], "font-weight" in text.attributes) for rect, text in cells_in(svg)]


# What every picture keeps to


TABLE = np.array([[2, 1, 3, 5], [3, 8, 7, 3], [9, 6, 2, 4]], np.float32)
LONG = np.array([[2**63 - 1, -(2**63), 5], [-1234567, 0, 999999]], np.int64)
ODD = np.array([[1, np.inf, -2, 0.1], [np.nan, 65504, 6e-8, -np.inf]], np.float16)
IMAGE = np.arange(80, 240, dtype=np.uint8).reshape(1, 2, 4, 4, 5)
HALF = per_channel(np.float32, 0.5)
BY_CHANNEL = per_channel(np.float32, 0.1, 0.25)


def ranked(rank: int) -> Array:
    return np.arange(2**rank, dtype=np.int32).reshape((2,) * rank) - 9


PICTURES: dict[str, Picture] = {
    **{name: (desc, list(inputs)) for name, (desc, inputs) in EXAMPLES.items()},
    "one element": scan(np.float32([7]), 0),
    "1-D": scan(np.int32([2, 4, 8, 3]), 0, product=True),
    "a column": scan(TABLE, 0),
    "decreasing and exclusive": scan(TABLE, 1, reverse=True, exclusive=True),
    "a column, decreasing and exclusive": scan(TABLE, 0, product=True, reverse=True, exclusive=True),
    "long numbers": scan(LONG, 1),
    "odd numbers": scan(ODD, 1, product=True),
    "large": scan(np.arange(10000, dtype=np.float32).reshape(100, 100), 1, reverse=True),
    "a long column": scan(np.arange(4000, dtype=np.int32).reshape(2000, 2), 0),
    "many dimensions": scan(np.arange(3 * 40 * 2 * 5 * 20 * 9, dtype=np.int32).reshape(3, 40, 2, 5, 20, 9), 1),
    **{f"rank {rank} along {axis}": scan(ranked(rank), axis) for rank in range(1, 9) for axis in range(rank)},
    **{f"join along {axis}": joined([ranked(4) + 16 * i for i in range(3)], axis) for axis in range(4)},
    "join of 1-D": joined([np.arange(3, dtype=np.uint8), np.arange(40, dtype=np.uint8)], 0),
    "join of 5": joined([np.full((2, i + 1), i, np.int64) for i in range(5)], 1),
    "join of 20": joined([np.full((3, 2), i, np.int64) for i in range(20)], 0),
    "join of one": joined([TABLE], 0),
    "pooling 5-D": pooled(IMAGE, (4, 3, 4), [HALF, None, HALF, None], WindowSize=(2, 2, 2), StartPadding=(1, 0, 0)),
    "pooling with dilation": pooled(
        np.ascontiguousarray(IMAGE[:, :, 0]),
        (1, 2),
        [BY_CHANNEL, None, HALF, None],
        WindowSize=(2, 2),
        Dilations=(3, 3),
    ),
    "pooling a large image": pooled(
        np.zeros((2, 3, 40, 40), np.int8), (19, 19), [HALF, None, HALF, None], WindowSize=(3, 3), Strides=(2, 2)
    ),
}
each_picture = together("picture", [Row(re.split(r"[ _]", id)[0], id, (picture,)) for id, picture in PICTURES.items()])


@each_picture
def test_a_picture_is_valid_and_the_same_each_time(picture: Picture) -> None:
    svg = drawn(picture)
    assert svg == drawn(picture)
    assert svg.isascii()
    root = ElementTree.fromstring(svg)
    assert [child.tag.rpartition("}")[2] for child in root][:2] == ["title", "desc"]
    assert root[0].text == picture[0].__class__.__name__.removeprefix("DML_").removesuffix("_OPERATOR_DESC")
    assert all(set(element.attrib) & {"id", "class", "href", "style"} == set() for element in root.iter())


@each_picture
def test_everything_is_on_the_card(picture: Picture) -> None:
    card, *rest = shapes(drawn(picture))
    for shape in rest:
        assert card.left < shape.left <= shape.right < card.right, shape
        assert card.top < shape.top <= shape.bottom < card.bottom, shape


@each_picture
def test_no_text_is_under_another_nor_under_an_arrow(picture: Picture) -> None:
    # The sign of a scan is on its arrow, in a circle that covers the line.
    things = [s for s in shapes(drawn(picture)) if s.tag in ("text", "line", "polygon") and s.text not in ("Σ", "Π")]
    for i, shape in enumerate(things):
        for other in things[:i]:
            assert not shape.covers(other) or "text" not in (shape.tag, other.tag), (shape, other)


@each_picture
def test_text_in_a_cell_fits(picture: Picture) -> None:
    for rect, text in cells_in(drawn(picture)):
        assert rect.left < text.left, text
        assert text.right < rect.right, text


def test_small_tensors_are_drawn_whole() -> None:
    for desc, inputs in EXAMPLES.values():
        values = [value for array in apply_all(desc, inputs) if array is not None for value in array.ravel()]
        shown = [text for text, _, _ in cells(draw(desc, inputs, apply_all(desc, inputs)))]
        assert shown[-len(values) :] == [number(value).replace("\N{MINUS SIGN}", "-") for value in values]


def test_of_large_tensors_the_ends_are_drawn() -> None:
    svg = drawn(PICTURES["large"])
    assert texts(svg).count("drawn: 15 of 100 along axis 0, 15 of 100 along axis 1") == 2
    assert len(cells(svg)) == 2 * 15 * 15
    shown = [text for text, _, _ in cells(svg)]
    assert {"0", "99", "9900", "9999"} <= set(shown[: 15 * 15])
    assert "50" not in shown[: 15 * 15]


def test_of_a_huge_tensor_only_what_is_drawn_is_looked_at() -> None:
    x = np.broadcast_to(np.float32(1), (2, 3, 4, 2**25, 2**25))
    desc, _ = scan(x, 1)
    assert len(cells(draw(desc, [x], [x]))) == 2 * 6 * 7 * 7


def test_the_axis_of_a_tally_is_drawn_before_other_dimensions() -> None:
    assert "[0, 2, 0, :, :]" in texts(drawn(scan(np.zeros((1, 3, 40, 2, 2), np.int32), 1)))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (3, "3"),
        (-3, "-3"),
        (999999, "999999"),
        (1000000, "1e6"),
        (-1234567, "-1234567"),
        (12345678, "1.235e7"),
        (np.float32(1234567), "1234567"),
        (np.int64(-(2**63)), "-9.223e18"),
        (np.uint64(2**64 - 1), "1.845e19"),
        (np.float16(0.1), "0.1"),
        (np.float32(1 / 3), "0.3333"),
        (np.float32(-1.5e-42), "-1.5e-42"),
        (np.float32(1e20), "1e20"),
        (np.float16("nan"), "nan"),
        (np.float32("-inf"), "-inf"),
        (np.float64(-0.0), "-0"),
    ],
)
def test_numbers_are_short(value: Any, text: str) -> None:
    svg = drawn(joined([np.atleast_1d(value)], 0))
    assert cells(svg)[0][0] == text
    assert ("&#8722;" in svg) == ("-" in text)


# Scans


def test_a_tally_is_spelled_out() -> None:
    said = texts(draw_operator("CUMULATIVE_PRODUCT"))
    elements, terms, values = (
        ["y[0]", "y[1]", "y[2]", "y[3]"],
        ["= 2", "= 2·1", "= 2·1·3", "= 2·1·3·5"],
        ["= 2", "= 6", "= 30"],
    )
    assert said[said.index("y[0]") :] == [*elements, *terms, *values]


def test_the_traced_line_is_bold() -> None:
    bold = [text for text, _, traced in cells(drawn(scan(TABLE, 0))) if traced]
    assert bold == ["2", "3", "9", "2", "5", "14"]


def test_an_exclusive_tally_starts_with_the_identity() -> None:
    svg = drawn(scan(TABLE, 1, product=True, reverse=True, exclusive=True))
    output = cells(svg)[12:]
    identities = {fill for text, fill, _ in output[3::4]}
    assert len(identities) == 1
    assert [text for text, fill, _ in output if {fill} == identities] == ["1", "1", "1"]
    said = texts(svg)
    elements, terms = ["y[3]", "y[2]", "y[1]", "y[0]"], ["= 1", "= 5", "= 5·3", "= 5·3·1"]
    notes = ["the identity: nothing visited yet", "= 15", "= 15"]
    assert said[said.index("y[3]") :] == [*elements, *terms, *notes]


@pytest.mark.parametrize("axis", range(4))
@pytest.mark.parametrize("reverse", [False, True])
def test_arrows_go_the_way_of_the_tally(axis: int, reverse: bool) -> None:
    marks = [s for s in shapes(drawn(scan(ranked(4), axis, reverse=reverse))) if s.attributes.get("fill") == "#d55e00"]
    ways = [
        (head.left - dot.left, head.top - dot.top)
        for dot, head in pairwise(marks)
        if dot.tag + head.tag == "circlepolygon"
    ]
    # Beside each grid for the last two dimensions, beside all grids or rows of them for those before.
    assert len(ways) == {0: 2, 1: 4}.get(axis, 8)
    for right, down in ways:
        forward, aside = (right, down) if axis % 2 else (down, right)
        assert forward * (-1 if reverse else 1) > 10
        assert abs(aside) < 2


def test_what_wraps_says_so() -> None:
    svg = drawn(scan(np.uint32([3_000_000_000, 3_000_000_000, 1]), 0))
    assert "= 1.705e9 (mod 2^32)" in texts(svg)
    assert not any("mod" in text for text in texts(drawn(scan(np.uint32([1, 2, 3]), 0))))


def test_negative_operands_are_in_parentheses() -> None:
    assert "= -1 + (-2)" in texts(drawn(scan(np.int32([-1, -2]), 0)))


# Joins


@pytest.mark.parametrize("axis", range(4))
def test_joined_cells_have_the_colour_of_their_input(axis: int) -> None:
    arrays = [np.arange(4, dtype=np.uint8).reshape(1, 1, 2, 2) + 4 * i for i in range(3)]
    found = cells(drawn(joined(arrays, axis)))
    assert len(found) == 24
    inputs, output = found[:12], found[12:]
    assert sorted(inputs) == sorted(output)
    assert len({fill for _, fill, _ in output}) == 3


def test_pieces_are_numbered_along_the_axis() -> None:
    said = texts(drawn(joined([TABLE, TABLE, TABLE], 0)))
    assert [text for text in said if re.fullmatch(r"\[\d\]", text)] == ["[0]", "[1]", "[2]"]
    assert "3 + 3 + 3 = 9" in said


# Pooling


def test_a_window_shows_its_taps_and_its_padding() -> None:
    svg = draw_operator("QUANTIZED_LINEAR_AVERAGE_POOLING")
    assert [text for text, _, traced in cells(svg) if traced] == ["12", "15", "16", "17", "13"]
    assert len([shape for shape in shapes(svg) if "stroke-dasharray" in shape.attributes]) == 9 + 5
    assert texts(svg).count("-1") == 2
    said = texts(svg)
    assert "(x - 10) · 0.5" in said
    assert "= (12 - 10) + (15 - 10) + (16 - 10) + (17 - 10) = 20" in said
    assert "= round((S · 0.5) / (count · 0.25)) + 3" in said
    assert "= round(10) + 3 = 13" in said


def test_taps_are_apart_as_dilation_says() -> None:
    x = np.arange(25, dtype=np.uint8).reshape(1, 1, 5, 5)
    svg = drawn(pooled(x, (1, 1), [HALF, None, HALF, None], WindowSize=(2, 3), Dilations=(4, 2)))
    assert [text for text, _, traced in cells(svg) if traced] == ["0", "2", "4", "20", "22", "24", "12"]
    assert [text for text, _, _ in cells(svg)][25:31] == ["0", "1", "2", "10", "11", "12"]


@pytest.mark.parametrize(("include", "taps"), [(False, ["7"]), (True, ["0", "0", "0", "7"])])
def test_taps_on_padding_are_the_number_0_where_they_count(include: bool, taps: list[str]) -> None:
    x = np.full((1, 1, 1, 1), 17, np.uint8)
    quantisation = [per_channel(np.float32, 1), per_channel(np.uint8, 10), HALF, None]
    members = {"WindowSize": (2, 2), "StartPadding": (1, 1), "IncludePadding": include}
    assert [text for text, _, _ in cells(drawn(pooled(x, (1, 1), quantisation, **members)))][1:-1] == taps


def test_a_window_without_anything_counted_gives_the_zero_point() -> None:
    x = np.full((1, 1, 1, 1), 9, np.uint8)
    picture = pooled(x, (3, 3), [HALF, None, HALF, per_channel(np.uint8, 7)], WindowSize=(1, 1), StartPadding=(2, 2))
    assert "= 7, the zero point, as nothing is counted" in texts(drawn(picture))


@pytest.mark.parametrize("seed", range(40))
def test_the_formula_gives_the_element_that_was_computed(seed: int) -> None:
    rng = np.random.default_rng(seed)
    spatial = 2 + seed % 2
    window, dilation = rng.integers(1, 4, spatial), rng.integers(1, 4, spatial)
    padding = rng.integers(0, 6, (2, spatial))
    size = rng.integers(1, 6, spatial) + (window - 1) * dilation
    x_type, y_type = rng.choice(np.array([np.uint8, np.int8]), 2)
    x = rng.integers(np.iinfo(x_type).min, np.iinfo(x_type).max, (1, 1, *size), x_type, endpoint=True)
    scales = [per_channel(np.float32, value) for value in rng.uniform(0.01, 0.1, 2)]
    zero_points = [per_channel(dtype, rng.integers(0, 100)) for dtype in (x_type, y_type)]
    picture = pooled(
        x,
        size + padding.sum(0) - (window - 1) * dilation,
        [scales[0], zero_points[0], scales[1], zero_points[1]],
        WindowSize=window,
        Dilations=dilation,
        StartPadding=padding[0],
        EndPadding=padding[1],
        IncludePadding=bool(rng.integers(2)),
    )
    last = texts(drawn(picture))[-1]
    result = re.search(r"(?:saturated to |= )(-?\d+)(?:, the zero point.*)?$", last)
    assert result, last
    (output,) = apply_all(*picture)
    assert int(result[1]) == output.flat[0]
    if "saturated" in last:
        assert output.flat[0] in (np.iinfo(y_type).min, np.iinfo(y_type).max)


# Pictures by name, and without a design


def test_every_operator_has_an_example() -> None:
    assert list(EXAMPLES) == list(OPERATORS)


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_picture_by_name_is_that_of_the_example(name: str) -> None:
    desc, inputs = EXAMPLES[name]
    assert draw_operator(name) == drawn((desc, list(inputs)))


def test_a_fused_activation_is_named() -> None:
    assert "FusedActivation ACTIVATION_LEAKY_RELU" in texts(draw_operator("ELEMENT_WISE_ADD1"))


@each_picture
def test_an_operator_without_a_design_gets_its_tensors(picture: Picture, monkeypatch: pytest.MonkeyPatch) -> None:
    designed = cells(drawn(picture))
    monkeypatch.setattr(draw_module, "_PICTURES", {})
    svg = drawn(picture)
    labels = [label for label, tensor in spec_of(picture[0]).inputs(picture[0]) if tensor]
    assert [text for text in texts(svg) if text in labels] == labels
    assert {text for text, _, _ in cells(svg)} & {text for text, _, _ in designed}


# Refusals


def test_p1_an_operator_without_an_example() -> None:
    with pytest.raises(DMLError, match=r"'INVALID', expected one of the .* \(P1\)"):
        draw_operator("INVALID")


@pytest.mark.parametrize(
    ("inputs", "outputs", "found"),
    [
        ([], [TABLE], "inputs: found 0 arrays, expected 1"),
        ([TABLE], [TABLE, TABLE], "outputs: found 2 arrays, expected 1"),
        ([TABLE.T], [TABLE], r"inputs\[0\]: found shape \(4, 3\), expected \(3, 4\)"),
        ([TABLE], [None], r"outputs\[0\]: found shape None"),
    ],
)
def test_p2_arrays_that_the_desc_does_not_say(inputs: Any, outputs: Any, found: str) -> None:
    desc, _ = scan(TABLE, 0)
    with pytest.raises(DMLError, match=found + r".*\(P2\)"):
        draw(desc, inputs, outputs)


def test_a_desc_that_breaks_a_rule() -> None:
    desc, _ = scan(TABLE, 2)
    with pytest.raises(DMLError, match=r"\(C3\)"):
        draw(desc, [TABLE], [TABLE])
