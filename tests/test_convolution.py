"""CONVOLUTION against PyTorch's, on integers that both compute exactly, and what no case can hold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anydml import DML_CONVOLUTION_OPERATOR_DESC, FeatureLevel, validate
from anydml.core.enums import ConvolutionDirection, ConvolutionMode
from anydml.operators import spec
from anydml.operators.fused_activation import FUSIBLE, fused_since
from anydml.operators.schema import OperatorDesc
from cases import tensor, tensor_of
from fusing import activation, unfused
from harness import ENGINE, assert_same, run
from test_properties import property_test

pytestmark = [pytest.mark.gpu, pytest.mark.slow]

FORWARD, BACKWARD = ConvolutionDirection.FORWARD, ConvolutionDirection.BACKWARD


@pytest.fixture(scope="module")
def torch() -> Any:
    return pytest.importorskip("torch")


def convolution(
    x: np.ndarray,
    w: np.ndarray,
    sizes: Sequence[int],
    bias: np.ndarray | None = None,
    *,
    direction: ConvolutionDirection = FORWARD,
    mode: ConvolutionMode = ConvolutionMode.CROSS_CORRELATION,
    groups: int = 1,
    fused: OperatorDesc | None = None,
    **numbers: Sequence[int],
) -> np.ndarray:
    spatial = x.ndim - 2
    members: dict[str, Any] = {name: [1] * spatial for name in ("Strides", "Dilations")}
    members |= {name: [0] * spatial for name in ("StartPadding", "EndPadding", "OutputPadding")}
    desc = DML_CONVOLUTION_OPERATOR_DESC(
        InputTensor=tensor_of(x),
        FilterTensor=tensor_of(w),
        BiasTensor=None if bias is None else tensor_of(bias),
        OutputTensor=tensor_of(np.empty(sizes, x.dtype)),
        Mode=mode,
        Direction=direction,
        GroupCount=groups,
        FusedActivation=fused,
        **{**members, **numbers},
    )
    (y,) = run(ENGINE, desc, [x, w, bias])
    assert y is not None
    return y


def integers(rng: np.random.Generator, *sizes: int) -> np.ndarray:
    return rng.integers(-3, 4, sizes).astype(np.float64)


@st.composite
def geometries(draw: st.DrawFn) -> dict[str, Any]:
    spatial = draw(st.integers(1, 3))
    each = [st.integers(1, 6), st.integers(1, 3), st.integers(1, 3), st.integers(1, 2), st.integers(0, 2)]
    names = "sizes", "taps", "strides", "dilations", "padding"
    found = {name: [draw(number) for _ in range(spatial)] for name, number in zip(names, each, strict=True)}
    one = {name: draw(st.integers(1, 3)) for name in ("batch", "groups", "inputs", "outputs")}
    return {**found, **one, "end": [draw(st.integers(0, 2)) for _ in range(spatial)]}


@property_test
@given(
    geometry=geometries(),
    has_bias=st.booleans(),
    mode=st.sampled_from(list(ConvolutionMode)),
    dtype=st.sampled_from([np.float32, np.float16]),
    seed=st.integers(0, 2**32 - 1),
)
def test_forward_is_that_of_pytorch(
    torch: Any, geometry: dict[str, Any], has_bias: bool, mode: ConvolutionMode, dtype: Any, seed: int
) -> None:
    """On an input that PyTorch pads beforehand, as far as it differs at the two ends."""
    g, rng = geometry, np.random.default_rng(seed)
    spatial, groups = len(g["sizes"]), g["groups"]
    fits = zip(g["sizes"], g["taps"], g["dilations"], g["padding"], g["end"], strict=True)
    if any((taps - 1) * dilation >= size + start + end for size, taps, dilation, start, end in fits):
        return
    x = integers(rng, g["batch"], groups * g["inputs"], *g["sizes"])
    w = integers(rng, groups * g["outputs"], g["inputs"], *g["taps"])
    bias = integers(rng, 1, groups * g["outputs"], *[1] * spatial) if has_bias else None
    padded = np.pad(x, [(0, 0), (0, 0), *zip(g["padding"], g["end"], strict=True)])
    turned = np.flip(w, tuple(range(2, w.ndim))).copy() if mode == ConvolutionMode.CONVOLUTION else w
    expected = getattr(torch.nn.functional, f"conv{spatial}d")(
        torch.from_numpy(padded),
        torch.from_numpy(turned),
        None if bias is None else torch.from_numpy(bias.ravel()),
        stride=g["strides"],
        dilation=g["dilations"],
        groups=groups,
    ).numpy()
    y = convolution(
        x.astype(dtype),
        w.astype(dtype),
        expected.shape,
        None if bias is None else bias.astype(dtype),
        mode=mode,
        groups=groups,
        Strides=g["strides"],
        Dilations=g["dilations"],
        StartPadding=g["padding"],
        EndPadding=g["end"],
    )
    assert_same(y, expected.astype(dtype))


@property_test
@given(
    geometry=geometries(),
    larger=st.tuples(*[st.integers(0, 2)] * 3),
    output_padding=st.sampled_from([0, 0, 1, 2]),
    has_bias=st.booleans(),
    mode=st.sampled_from(list(ConvolutionMode)),
    dtype=st.sampled_from([np.float32, np.float16]),
    seed=st.integers(0, 2**32 - 1),
)
def test_backward_is_that_of_pytorch(
    torch: Any,
    geometry: dict[str, Any],
    larger: tuple[int, ...],
    output_padding: int,
    has_bias: bool,
    mode: ConvolutionMode,
    dtype: Any,
    seed: int,
) -> None:
    """PyTorch's `output_padding` is an OutputTensor that is larger; DirectML's OutputPadding puts zeros behind."""
    g, rng = geometry, np.random.default_rng(seed)
    spatial, groups = len(g["sizes"]), g["groups"]
    steps = zip(g["strides"], g["dilations"], larger, strict=False)
    more = [min(wish, max(stride, dilation) - 1) for stride, dilation, wish in steps]
    spans = zip(g["sizes"], g["taps"], g["strides"], g["dilations"], g["padding"], more, strict=True)
    if any((n - 1) * step + (taps - 1) * apart + 1 + extra <= 2 * cut for n, taps, step, apart, cut, extra in spans):
        return
    x = integers(rng, g["batch"], groups * g["inputs"], *g["sizes"])
    w = integers(rng, groups * g["inputs"], g["outputs"], *g["taps"])
    bias = integers(rng, 1, groups * g["outputs"], *[1] * spatial) if has_bias else None
    turned = np.flip(w, tuple(range(2, w.ndim))).copy() if mode == ConvolutionMode.CONVOLUTION else w
    expected = getattr(torch.nn.functional, f"conv_transpose{spatial}d")(
        torch.from_numpy(x),
        torch.from_numpy(turned),
        stride=g["strides"],
        padding=g["padding"],
        output_padding=more,
        dilation=g["dilations"],
        groups=groups,
    ).numpy()
    expected = np.pad(expected, [(0, 0), (0, 0), *[(0, output_padding)] * spatial])
    expected = expected if bias is None else expected + bias
    y = convolution(
        x.astype(dtype),
        w.astype(dtype),
        expected.shape,
        None if bias is None else bias.astype(dtype),
        direction=BACKWARD,
        mode=mode,
        groups=groups,
        Strides=g["strides"],
        Dilations=g["dilations"],
        StartPadding=g["padding"],
        EndPadding=g["padding"],
        OutputPadding=[output_padding] * spatial,
    )
    assert_same(y, expected.astype(dtype))


@pytest.mark.parametrize("direction", [FORWARD, BACKWARD])
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("name", [name for name in FUSIBLE if fused_since(name, "CONVOLUTION")])
def test_a_fused_activation_is_the_unfused_one(name: str, dtype: Any, direction: ConvolutionDirection) -> None:
    """Of integers, which the convolution gives exactly; zeros of OutputPadding and the bias among them."""
    rng = np.random.default_rng(7)
    x, w, bias = (integers(rng, *sizes).astype(dtype) for sizes in ((2, 2, 4, 4), (2, 2, 2, 2), (1, 2, 1, 1)))
    sizes = (2, 2, 4, 4) if direction == FORWARD else (2, 2, 6, 6)
    options: dict[str, Any] = {"direction": direction, "OutputPadding": [1, 1]}
    y = convolution(x, w, sizes, bias, **options)
    assert_same(convolution(x, w, sizes, bias, fused=activation(name), **options), unfused(name, y))


def test_what_may_not_be_fused() -> None:
    x = tensor((1, 1, 1, 1))
    for name, level in (("ACTIVATION_SOFTMAX", FeatureLevel.LEVEL_6_4), ("ELEMENT_WISE_CLIP", FeatureLevel.LEVEL_5_2)):
        desc = DML_CONVOLUTION_OPERATOR_DESC(
            InputTensor=x,
            FilterTensor=x,
            OutputTensor=x,
            Mode=ConvolutionMode.CROSS_CORRELATION,
            Direction=FORWARD,
            Strides=[1, 1],
            Dilations=[1, 1],
            StartPadding=[0, 0],
            EndPadding=[0, 0],
            OutputPadding=[0, 0],
            GroupCount=1,
            FusedActivation=activation(name),
        )
        (violation,) = validate(desc, level)
        assert (violation.rule, violation.where) == ("(S4)", "FusedActivation")


def test_taps_on_padding_take_no_time() -> None:
    """A filter of 2^31 taps, by strides of 0, of which two meet the element there is."""
    x, w = tensor((1, 1, 1)), tensor((1, 1, 2**31), strides=(0, 0, 0))
    desc = DML_CONVOLUTION_OPERATOR_DESC(
        InputTensor=x,
        FilterTensor=w,
        OutputTensor=tensor((1, 1, 2)),
        Mode=ConvolutionMode.CONVOLUTION,
        Direction=FORWARD,
        Strides=[2**31 - 1],
        Dilations=[1],
        StartPadding=[2**31 - 1],
        EndPadding=[2**31 - 1],
        OutputPadding=[0],
        GroupCount=1,
    )
    assert validate(desc) == []
    filter_ = np.broadcast_to(np.float32(2), w.Sizes)
    y = spec("CONVOLUTION").reference(desc, np.full((1, 1, 1), 3, np.float32), filter_, None)
    np.testing.assert_array_equal(y, [[[6, 6]]])
