"""The CPU's own kernels where tensors lie in any order: transposed convolutions, groups, planar images, activations,
and normalisation by an image's own statistics, against the references."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anydml import (
    DML_ACTIVATION_ELU_OPERATOR_DESC,
    DML_ACTIVATION_RELU_OPERATOR_DESC,
    DML_ACTIVATION_TANH_OPERATOR_DESC,
    DML_CONVOLUTION_OPERATOR_DESC,
    DML_MEAN_VARIANCE_NORMALIZATION1_OPERATOR_DESC,
)
from anydml.backends.base import BindableRun
from anydml.backends.native.engine import CpuEngine
from anydml.core.enums import ConvolutionDirection, ConvolutionMode
from anydml.core.strided_layout import Layout
from anydml.operators import spec
from anydml.operators.schema import OperatorDesc
from cases import tensor_of
from harness import run
from test_channels_large import CLIP, RELU, assert_like_reference, lying
from test_properties import property_test

pytest.importorskip("anydml._native")


def strides_of(sizes: tuple[int, ...], order: tuple[int, ...]) -> tuple[int, ...]:
    """Packed, the last of an order of dimensions innermost."""
    strides, step = [0] * len(sizes), 1
    for axis in reversed(order):
        strides[axis], step = step, step * sizes[axis]
    return tuple(strides)


ORDERS = st.sampled_from(list(permutations(range(4))))


@st.composite
def convolutions(draw: st.DrawFn) -> tuple[OperatorDesc, list[np.ndarray | None]]:
    """Of one group, or of groups of 8 results or more, forward or transposed, and inputs of integers."""
    direction, groups = draw(st.sampled_from(list(ConvolutionDirection))), draw(st.integers(1, 3))
    is_forward = direction == ConvolutionDirection.FORWARD
    channels, results = groups * draw(st.integers(1, 12)), groups * draw(st.integers(1 if groups == 1 else 8, 40))
    large, small, members = [], [], {}
    names = "Strides", "Dilations", "StartPadding", "EndPadding"
    window = [draw(st.integers(1, 4)) for _ in range(2)]
    for taps in window:
        stride, dilation = draw(st.integers(1, 4)), draw(st.integers(1, 3))
        start, end = draw(st.integers(0, 3)), draw(st.integers(0, 3))
        size = max(draw(st.integers(1, 12)), (taps - 1) * dilation + 1 - start - end)
        places = (size + start + end - (taps - 1) * dilation - 1) // stride + 1
        large.append(size)
        small.append(places)
        for name, value in zip(names, (stride, dilation, start, end), strict=True):
            members.setdefault(name, []).append(value)
    if not is_forward:
        # Sizes that the window divides without a rest, so that each transposed size is valid.
        large = [
            (places - 1) * stride + (taps - 1) * dilation + 1 - start - end
            for places, taps, stride, dilation, start, end in zip(small, window, *members.values(), strict=True)
        ]
        for axis, size in enumerate(large):
            if size < 1:
                members["StartPadding"][axis] = members["EndPadding"][axis] = 0
                taps, stride, dilation = window[axis], members["Strides"][axis], members["Dilations"][axis]
                large[axis] = (small[axis] - 1) * stride + (taps - 1) * dilation + 1
    batch = draw(st.integers(1, 2))
    read, written = (large, small) if is_forward else (small, large)
    filters = (results, channels // groups) if is_forward else (channels, results // groups)
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    sizes = (batch, channels, *read), (*filters, *window), (1, results, 1, 1)
    x, w, bias = (rng.integers(-3, 4, each).astype(np.float32) for each in sizes)
    y = np.empty((batch, results, *written), np.float32)
    has_bias = draw(st.booleans())
    desc = DML_CONVOLUTION_OPERATOR_DESC(
        InputTensor=tensor_of(x, strides_of(x.shape, draw(ORDERS))),
        FilterTensor=tensor_of(w, strides_of(w.shape, draw(ORDERS))),
        BiasTensor=tensor_of(bias) if has_bias else None,
        OutputTensor=tensor_of(y, strides_of(y.shape, draw(ORDERS))),
        Mode=draw(st.sampled_from(list(ConvolutionMode))),
        Direction=direction,
        OutputPadding=[0, 0],
        GroupCount=groups,
        FusedActivation=draw(st.sampled_from([None, RELU, CLIP])),
        **members,
    )
    return desc, [x, w, bias if has_bias else None]


def compiled_natively(desc: Any) -> Any:
    layouts = [None if t is None else Layout.of_desc(t) for _, t in spec("CONVOLUTION").inputs(desc)]
    return CpuEngine().compile(spec("CONVOLUTION"), desc, layouts, [Layout.of_desc(desc.OutputTensor)])


def plain(direction: ConvolutionDirection, **members: Any) -> Any:
    """16 to 24 channels of planar images of 9 x 9; transposed, of 19 x 19."""
    is_forward = direction == ConvolutionDirection.FORWARD
    size, filters = (9, (24, 16, 3, 3)) if is_forward else (19, (16, 24, 3, 3))
    step = 1 if is_forward else 2
    return DML_CONVOLUTION_OPERATOR_DESC(
        InputTensor=tensor_of(np.empty((1, 16, 9, 9), np.float32)),
        FilterTensor=tensor_of(np.empty(filters, np.float32)),
        BiasTensor=tensor_of(np.empty((1, 24, 1, 1), np.float32)),
        OutputTensor=tensor_of(np.empty((1, 24, size, size), np.float32)),
        **{
            "Mode": ConvolutionMode.CROSS_CORRELATION,
            "Direction": direction,
            "Strides": [step] * 2,
            "Dilations": [1, 1],
            "StartPadding": [step % 2] * 2,
            "EndPadding": [step % 2] * 2,
            "OutputPadding": [0, 0],
            "GroupCount": 1,
            **members,
        },
    )


@property_test
@given(drawn=convolutions())
def test_convolutions_in_any_order(drawn: tuple[OperatorDesc, list[np.ndarray | None]]) -> None:
    assert_like_reference(*drawn)


ELU = DML_ACTIVATION_ELU_OPERATOR_DESC(Alpha=1.5)


@pytest.mark.parametrize("direction", list(ConvolutionDirection))
@pytest.mark.parametrize(
    "activation", [None, DML_ACTIVATION_RELU_OPERATOR_DESC(), DML_ACTIVATION_TANH_OPERATOR_DESC(), ELU]
)
def test_prepared_filters_give_the_same_bits(direction: ConvolutionDirection, activation: OperatorDesc | None) -> None:
    """And as near to the reference as single precision allows, whichever activation is fused."""
    desc = plain(direction, FusedActivation=activation)
    rng = np.random.default_rng(1)
    inputs: list[Any] = [
        rng.uniform(-1, 1, t.Sizes).astype(np.float32) for _, t in spec("CONVOLUTION").inputs(desc) if t
    ]
    kernel = compiled_natively(desc)
    assert kernel.prepare([inputs[0], None, inputs[2]]) is None
    prepared = kernel.prepare([None, *inputs[1:]])
    assert isinstance(prepared, BindableRun)
    found, again, bound = (lying(Layout.of_desc(desc.OutputTensor), np.float32(9)) for _ in range(3))
    kernel.run(inputs, [found])
    prepared(inputs, [again])
    prepared.bound(inputs, [bound])()
    np.testing.assert_array_equal(found.view(np.uint32), again.view(np.uint32))
    np.testing.assert_array_equal(found.view(np.uint32), bound.view(np.uint32))
    (expected,) = run("reference", desc, inputs)
    assert expected is not None
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


@property_test
@given(
    sizes=st.tuples(st.integers(1, 3), st.integers(1, 40), st.integers(1, 30), st.integers(1, 30)),
    order=st.sampled_from([(0, 1, 2, 3), (0, 2, 3, 1)]),
    axes=st.sampled_from([(2, 3), (1, 2, 3), (0, 2, 3), (0, 1, 2, 3)]),
    normalizes=st.booleans(),
    has_parameters=st.booleans(),
    activation=st.sampled_from([None, RELU]),
    shift=st.sampled_from([0.0, 1e4]),
    seed=st.integers(0, 2**32 - 1),
)
def test_normalisation_by_own_statistics(
    sizes: tuple[int, ...],
    order: tuple[int, ...],
    axes: tuple[int, ...],
    normalizes: bool,
    has_parameters: bool,
    activation: OperatorDesc | None,
    shift: float,
    seed: int,
) -> None:
    rng = np.random.default_rng(seed)
    x = (rng.standard_normal(sizes) + shift).astype(np.float32)
    parameters = [rng.uniform(0.5, 2, (1, sizes[1], 1, 1)).astype(np.float32) for _ in range(2)]
    scale, bias = (tensor_of(each) if has_parameters else None for each in parameters)
    desc = DML_MEAN_VARIANCE_NORMALIZATION1_OPERATOR_DESC(
        InputTensor=tensor_of(x, strides_of(sizes, order)),
        ScaleTensor=scale,
        BiasTensor=bias,
        OutputTensor=tensor_of(x, strides_of(sizes, order)),
        Axes=axes,
        NormalizeVariance=normalizes,
        Epsilon=1e-3,
        FusedActivation=activation,
    )
    inputs = [x, *(parameters if has_parameters else (None, None))]
    (y,), (right,) = run("cpu", desc, inputs), run("reference", desc, inputs)
    assert y is not None
    assert right is not None
    np.testing.assert_allclose(y, right, rtol=4e-7, atol=1e-6)
