"""Normalisations folded into convolutions, and tensors laid out with the channels last: what a graph then gives."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import anydml
from anydml import (
    DML_ACTIVATION_RELU_OPERATOR_DESC,
    DML_ACTIVATION_SWISH_OPERATOR_DESC,
    DML_BATCH_NORMALIZATION_OPERATOR_DESC,
    DML_CONVOLUTION_OPERATOR_DESC,
    DML_ELEMENT_WISE_ADD1_OPERATOR_DESC,
    DML_ELEMENT_WISE_IDENTITY_OPERATOR_DESC,
    DML_JOIN_OPERATOR_DESC,
    DML_MAX_POOLING_OPERATOR_DESC,
    DML_SPLIT_OPERATOR_DESC,
    Device,
    Expression,
    Graph,
    TensorFlags,
)
from anydml.core.enums import ConvolutionDirection, ConvolutionMode
from anydml.draw import draw_graph
from cases import tensor

pytestmark = pytest.mark.usefixtures("torch")
WORDS = "mean", "variance", "scale", "bias"


class Net:
    """A graph and what is bound to it; parameters are OWNED_BY_DML, constants or given with each dispatch."""

    def __init__(self, device: str = "cpu", kind: str = "owned", seed: int = 1) -> None:
        self.graph = Graph(Device(device))
        self.kind = kind
        self.rng = np.random.default_rng(seed)
        self.values: list[np.ndarray] = []

    def input(self, *sizes: int) -> Expression:
        self.values.append(self.rng.standard_normal(sizes).astype(np.float32))
        return self.graph.input(tensor(sizes))

    def parameter(self, *sizes: int, kind: str = "", positive: bool = False) -> Expression:
        values = self.rng.standard_normal(sizes).astype(np.float32)
        values = np.abs(values) + 0.5 if positive else values
        kind = kind or self.kind
        if kind == "constant":
            return self.graph.constant(tensor(sizes), values)
        self.values.append(values)
        flags = TensorFlags.OWNED_BY_DML if kind == "owned" else TensorFlags.NONE
        return self.graph.input(replace(tensor(sizes), Flags=flags))

    def convolution(
        self, x: Expression, channels: int, taps: int = 3, groups: int = 1, bias: bool = True, **members: Any
    ) -> Expression:
        c = x.tensor.Sizes[1]
        ones = [1, 1]
        options = {
            "Mode": ConvolutionMode.CROSS_CORRELATION,
            "Direction": ConvolutionDirection.FORWARD,
            "Strides": ones,
            "Dilations": ones,
            "StartPadding": [taps // 2] * 2,
            "EndPadding": [taps // 2] * 2,
            "OutputPadding": [0, 0],
            "GroupCount": groups,
        }
        return self.graph.operator(
            DML_CONVOLUTION_OPERATOR_DESC,
            InputTensor=x,
            FilterTensor=self.parameter(channels, c // groups, taps, taps),
            BiasTensor=self.parameter(1, channels, 1, 1) if bias else None,
            **{**options, **members},
        )[0]

    def normalized(self, x: Expression, kind: str = "", channels: int = 0) -> Expression:
        sizes = (1, channels or x.tensor.Sizes[1], 1, 1)
        parameters = [self.parameter(*sizes, kind=kind, positive=word == "variance") for word in WORDS]
        (y,) = self.graph.operator(
            DML_BATCH_NORMALIZATION_OPERATOR_DESC,
            InputTensor=x,
            **{f"{word.title()}Tensor": each for word, each in zip(WORDS, parameters, strict=True)},
            Spatial=True,
            Epsilon=1e-5,
        )
        return y

    def relu(self, x: Expression) -> Expression:
        return self.graph.operator(DML_ACTIVATION_RELU_OPERATOR_DESC, InputTensor=x)[0]

    def results(self, *outputs: Expression) -> tuple[str, list[np.ndarray]]:
        """What explains it, and what it gives; twice, as the second dispatch finds things as the first left them."""
        compiled = self.graph.compile(list(outputs))
        owned = [each is not None and bool(each.Flags) for each in compiled.inputs]
        given = [None if own else value for own, value in zip(owned, self.values, strict=True)]
        persistent = None
        if any(owned):
            bound = [value if own else None for own, value in zip(owned, self.values, strict=True)]
            persistent = compiled.initialise(bound)
        for _ in range(2):
            found = [np.full(each.tensor.Sizes, 99, np.float32) for each in outputs]
            compiled.dispatch(given, found, persistent=persistent)
        return compiled.explain(), found


def assert_near(found: list[np.ndarray], expected: list[np.ndarray]) -> None:
    for y, right in zip(found, expected, strict=True):
        assert np.abs(y - right).max() <= 1e-5 * np.abs(right).max()


def block(net: Net, **options: Any) -> Expression:
    """A convolution, a normalisation and an activation."""
    return net.relu(net.normalized(net.convolution(net.input(1, 16, 20, 20), 32, **options)))


@pytest.mark.parametrize("kind", ["owned", "constant"])
@pytest.mark.parametrize(
    "options",
    [{}, {"bias": False}, {"taps": 1}, {"groups": 16}, {"Strides": [2, 2]}, {"Mode": ConvolutionMode.CONVOLUTION}],
    ids=str,
)
def test_a_normalisation_is_folded_into_a_filter(kind: str, options: dict[str, Any]) -> None:
    net, reference = Net(kind=kind), Net("reference", kind)
    text, found = net.results(block(net, **options))
    plain, expected = reference.results(block(reference, **options))
    assert text.startswith("graph: 1 kernels;")
    assert re.search(r"\(BATCH_NORMALIZATION\) folded into the filter of Nodes\[\d\] \(CONVOLUTION\)", text)
    assert plain.startswith("graph: 2 kernels;")
    assert "filter" not in plain
    assert_near(found, expected)


def test_what_is_given_with_each_dispatch_normalises_in_place() -> None:
    """So that what lies between has the memory of one tensor; beside it, the filters are prepared."""

    def network(net: Net) -> Expression:
        return net.convolution(net.normalized(net.convolution(net.input(1, 16, 20, 20), 32), kind="given"), 8)

    net, reference = Net(), Net("reference")
    text, found = net.results(network(net))
    # Of 8 results as many weights are kept as fill a vector.
    second = 16 if "(avx512)" in text else 8
    between, filters = 4 * 32 * 20 * 20, 4 * (32 * 16 * 9 + 32 + second * 32 * 9 + second)
    assert text.startswith(
        f"graph: 3 kernels; {between} bytes of intermediate tensors, of which at most {between} are alive at once; "
        f"{filters} bytes of prepared filters\n"
    )
    assert "BATCH_NORMALIZATION is served by cpu: normalization, a row of channels at a time" in text
    assert_near(found, reference.results(network(reference))[1])


def test_what_is_not_folded() -> None:
    """Where parameters come with each dispatch, something else reads the result, or lies between."""

    def twice(net: Net) -> list[Expression]:
        y = net.convolution(net.input(1, 16, 20, 20), 32)
        return [net.normalized(y), y]

    def activated(net: Net) -> list[Expression]:
        return [net.normalized(net.relu(net.convolution(net.input(1, 16, 20, 20), 32)))]

    def given(net: Net) -> list[Expression]:
        return [net.normalized(net.convolution(net.input(1, 16, 20, 20), 32), kind="given")]

    def backward(net: Net) -> list[Expression]:
        turned = {"Direction": ConvolutionDirection.BACKWARD}
        return [net.normalized(net.convolution(net.input(1, 32, 20, 20), 32, **turned))]

    for build in (twice, activated, given, backward):
        net, reference = Net(), Net("reference")
        text, found = net.results(*build(net))
        _, expected = reference.results(*build(reference))
        assert text.startswith("graph: 2 kernels;"), build
        assert "folded" not in text, build
        assert_near(found, expected)


def test_a_parameter_for_all_channels_is_folded_too() -> None:
    def build(net: Net) -> Expression:
        return net.normalized(net.convolution(net.input(1, 16, 20, 20), 32), channels=1)

    net, reference = Net(), Net("reference")
    text, found = net.results(build(net))
    assert "folded into the filter" in text
    assert_near(found, reference.results(build(reference))[1])


def test_a_filter_is_folded_again_when_others_are_bound() -> None:
    net, reference = Net(), Net("reference")
    graphs = [each.graph.compile([block(each)]) for each in (net, reference)]
    x, *weights = net.values
    for sign in (1, -1):
        results = []
        for graph in graphs:
            bound = [sign * each if each.ndim == 4 and i != 3 else each for i, each in enumerate(weights)]
            persistent = graph.initialise([None, *bound])
            y = np.empty((1, 32, 20, 20), np.float32)
            graph.dispatch([x, *[None] * len(weights)], [y], persistent=persistent)
            results.append(y)
        assert_near(results[:1], results[1:])


def test_the_picture_names_what_was_folded() -> None:
    net = Net()
    svg = draw_graph(net.graph.compile([block(net)]))
    texts = [each.text for each in ElementTree.fromstring(svg).iter() if each.tag.endswith("text")]
    for text in ("CONVOLUTION", "+ BATCH_NORMALIZATION", "+ ACTIVATION_RELU", "weights {32, 16, 3, 3}"):
        assert text in texts


def fire(net: Net) -> list[Expression]:
    """Convolutions around what walks through tensors in its own way."""
    x = net.input(2, 16, 21, 23)
    a = net.convolution(x, 32)
    (pooled,) = net.graph.operator(
        DML_MAX_POOLING_OPERATOR_DESC,
        InputTensor=a,
        Strides=[2, 2],
        WindowSize=[3, 3],
        StartPadding=[1, 0],
        EndPadding=[0, 1],
    )
    pieces = [net.convolution(pooled, 24, taps=1), net.convolution(pooled, 40)]
    (joined,) = net.graph.operator(DML_JOIN_OPERATOR_DESC, InputTensors=pieces, Axis=1)
    b = net.convolution(joined, 64, groups=8)
    (summed,) = net.graph.operator(DML_ELEMENT_WISE_ADD1_OPERATOR_DESC, ATensor=b, BTensor=joined, FusedActivation=None)
    return [net.convolution(summed, 32, taps=1), joined]


def test_tensors_between_convolutions_have_their_channels_last() -> None:
    """All but what is an output of the graph."""
    net, reference = Net(), Net("reference")
    text, found = net.results(*fire(net))
    plain, expected = reference.results(*fire(reference))
    assert "laid out with the channels last: 6 tensors between operators" in text
    assert "channels last" not in plain
    assert_near(found, expected)


def test_bytes_that_are_read_anew_stay_where_they_are() -> None:
    def build(net: Net) -> list[Expression]:
        a = net.convolution(net.input(1, 16, 20, 20), 16)
        return [net.convolution(a.reinterpret(a.tensor.DataType, [1, 16, 40, 10]), 16)]

    net, reference = Net(), Net("reference")
    text, found = net.results(*build(net))
    assert "laid out with the channels last" not in text
    assert_near(found, reference.results(*build(reference))[1])


def test_swish_and_pieces_leave_channels_last() -> None:
    """An activation that only graphs fuse breaks no rule where tensors are laid out anew."""

    def build(net: Net) -> list[Expression]:
        a = net.convolution(net.input(1, 16, 12, 13), 48)
        swished = net.graph.operator(DML_ACTIVATION_SWISH_OPERATOR_DESC, InputTensor=a, SigmoidInputScale=1.0)[0]
        left, right = net.graph.operator(
            DML_SPLIT_OPERATOR_DESC,
            InputTensor=swished,
            OutputTensors=[tensor((1, 16, 12, 13)), tensor((1, 32, 12, 13))],
            Axis=1,
        )
        return [net.convolution(left, 24), net.convolution(right, 24)]

    net, reference = Net(), Net("reference")
    text, found = net.results(*build(net))
    assert "laid out with the channels last: 3 tensors between operators" in text
    assert_near(found, reference.results(*build(reference))[1])


@pytest.mark.parametrize(
    ("sizes", "strides", "count"),
    [
        pytest.param((2, 3, 8, 12, 13), (24 * 156, 156, 3 * 156, 13, 1), 2, id="a shuffle of channels"),
        pytest.param((2, 24, 156), (24 * 156, 156, 1), 2, id="places in one row"),
        pytest.param((1, 2, 24, 3, 4, 13), (0, 24 * 156, 156, 52, 13, 1), 2, id="rows in groups"),
        pytest.param((2, 24 * 156), (24 * 156, 1), 0, id="channels and places in one row"),
        pytest.param((48, 156), (156, 1), 0, id="images and channels in one column"),
        pytest.param((2, 8, 3 * 156), (24 * 156, 3 * 156, 1), 0, id="channels that go over places"),
    ],
)
def test_other_shapes_leave_channels_last(sizes: tuple[int, ...], strides: tuple[int, ...], count: int) -> None:
    """Element-wise operators see a tensor in whatever shape its channels, or images, are not mixed up with places."""

    def build(net: Net) -> list[Expression]:
        a = net.convolution(net.input(2, 16, 12, 13), 24)
        seen = a.reinterpret(a.tensor.DataType, sizes, strides)
        (same,) = net.graph.operator(
            DML_ELEMENT_WISE_IDENTITY_OPERATOR_DESC, InputTensor=seen, OutputTensor=tensor(sizes)
        )
        return [net.convolution(same.reinterpret(a.tensor.DataType, a.tensor.Sizes), 24)]

    net, reference = Net(), Net("reference")
    text, found = net.results(*build(net))
    said = re.findall(r"laid out with the channels last: (\d+) tensors between", text)
    assert said == [str(count)] * (count > 0)
    assert_near(found, reference.results(*build(reference))[1])


@pytest.mark.parametrize("name", ["RESAMPLE", "RESAMPLE1", "RESAMPLE2", "UPSAMPLE_2D"])
def test_what_enlarges_leaves_channels_last(name: str) -> None:
    def build(net: Net) -> list[Expression]:
        a = net.convolution(net.input(2, 16, 9, 11), 32)
        scales: dict[str, Any] = (
            {"ScaleSize": anydml.DML_SIZE_2D(Width=2, Height=2)}
            if name == "UPSAMPLE_2D"
            else {"Scales": [1.0, 1.0, 2.0, 2.0]}
        )
        if name in ("RESAMPLE1", "RESAMPLE2"):
            scales |= {"InputPixelOffsets": [0.5] * 4, "OutputPixelOffsets": [-0.5] * 4}
        if name == "RESAMPLE2":
            scales |= {"RoundingDirection": anydml.AxisDirection.DECREASING}
        options = {"InterpolationMode": anydml.InterpolationMode.LINEAR, **scales}
        desc = getattr(anydml, f"DML_{name}_OPERATOR_DESC")
        (enlarged,) = net.graph.operator(desc, InputTensor=a, OutputTensor=tensor((2, 32, 18, 22)), **options)
        return [net.convolution(enlarged, 24)]

    net, reference = Net(), Net("reference")
    text, found = net.results(*build(net))
    assert "laid out with the channels last: 2 tensors between operators" in text
    assert_near(found, reference.results(*build(reference))[1])
