"""CONVOLUTION's native kernels: the same bits in every layout, on every instruction set and number of threads, also of
filters that are prepared; and fused activations of FLOAT16."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from threadpoolctl import threadpool_limits

from anydml import _native
from anydml.backends.base import Kernel
from anydml.backends.native.engine import CpuEngine
from anydml.core.enums import ConvolutionDirection
from anydml.core.strided_layout import Layout
from anydml.operators import spec
from cases import tensor
from test_library import LARGE, convolution, lying
from test_properties import property_test

pytestmark = [pytest.mark.native, pytest.mark.slow]

SETS = _native.build_info()["instruction_sets"]


def laid(sizes: Sequence[int], order: str, data_type: str) -> Any:
    """A tensor whose dimensions lie in memory as said: planar, with the channels last, or the other way round."""
    rank = len(sizes)
    orders = {"planar": range(rank), "last": [0, *range(2, rank), 1], "reversed": range(rank)[::-1]}
    strides, step = [0] * rank, 1
    for axis in reversed(list(orders[order])):
        strides[axis], step = step, step * sizes[axis]
    return tensor(sizes, data_type, strides=strides)


@st.composite
def geometries(draw: st.DrawFn) -> dict[str, Any]:
    spatial = draw(st.integers(1, 3))
    along = [st.integers(1, 12 if spatial < 3 else 5), st.integers(1, 4), st.integers(1, 3), st.integers(1, 3)]
    names = "sizes", "taps", "strides", "dilations"
    found: dict[str, Any] = {
        name: [draw(number) for _ in range(spatial)] for name, number in zip(names, along, strict=True)
    }
    for name in ("start", "end"):
        found[name] = [draw(st.integers(0, 4)) for _ in range(spatial)]
    groups = draw(st.sampled_from([1, 1, 2, 9]))
    return {**found, "groups": groups, "channels": draw(st.integers(1, 20)), "results": draw(st.integers(1, 20))}


def described(g: dict[str, Any], is_forward: bool, data_type: str, orders: Sequence[str]) -> Any:
    """None where there is no such convolution."""
    places = []
    for size, taps, stride, dilation, start, end in zip(
        *(g[name] for name in ("sizes", "taps", "strides", "dilations", "start", "end")), strict=True
    ):
        extent = (taps - 1) * dilation + 1
        counted = size + start + end - extent if is_forward else (size - 1) * stride + extent - start - end
        if counted < (0 if is_forward else 1):
            return None
        places.append(counted // stride + 1 if is_forward else counted)
    channels, results = (g["groups"] * g[name] for name in ("channels", "results"))
    w = (results, g["channels"], *g["taps"]) if is_forward else (channels, g["results"], *g["taps"])
    x, y = (2, channels, *g["sizes"]), (2, results, *places)
    ones = [1] * len(places)
    return spec("CONVOLUTION").desc(
        InputTensor=laid(x, orders[0], data_type),
        FilterTensor=laid(w, orders[1], data_type),
        BiasTensor=tensor((1, results, *ones), data_type),
        OutputTensor=laid(y, orders[2], data_type),
        Mode=1,
        Direction=0 if is_forward else 1,
        Strides=g["strides"],
        Dilations=g["dilations"],
        StartPadding=g["start"],
        EndPadding=g["end"],
        OutputPadding=[0] * len(places),
        GroupCount=g["groups"],
    )


def computed(desc: Any, inputs: Sequence[np.ndarray], is_prepared: bool = False) -> np.ndarray:
    tensors = [desc.InputTensor, desc.FilterTensor, desc.BiasTensor]
    layouts, written = [Layout.of_desc(each) for each in tensors], Layout.of_desc(desc.OutputTensor)
    arrays = [lying(each, x) for each, x in zip(tensors, inputs, strict=True)]
    kernel = CpuEngine().compile(spec("CONVOLUTION"), desc, layouts, [written])
    assert isinstance(kernel, Kernel)
    call: Any = kernel.run
    if is_prepared:
        assert kernel.prepare is not None
        assert kernel.prepare([arrays[0], None, arrays[2]]) is None
        call = kernel.prepare([None, *arrays[1:]])
        arrays = [arrays[0], *([np.full_like(each, np.nan) for each in arrays[1:]])]
    y = lying(desc.OutputTensor, np.full(written.sizes, np.nan))
    call(arrays, [y])
    return y.copy().view(f"u{y.itemsize}")


@property_test
@given(
    g=geometries(),
    is_forward=st.booleans(),
    data_type=st.sampled_from(["FLOAT32", "FLOAT16"]),
    orders=st.tuples(*[st.sampled_from(["planar", "last", "reversed"])] * 3),
    instruction_set=st.sampled_from(SETS),
    seed=st.integers(0, 2**32 - 1),
)
def test_the_same_bits_everywhere(
    g: dict[str, Any],
    is_forward: bool,
    data_type: str,
    orders: Sequence[str],
    instruction_set: str,
    seed: int,
) -> None:
    desc, plain = (described(g, is_forward, data_type, each) for each in (orders, ["planar"] * 3))
    if desc is None:
        return
    rng = np.random.default_rng(seed)
    tensors = [desc.InputTensor, desc.FilterTensor, desc.BiasTensor]
    inputs = [rng.uniform(-1, 1, each.Sizes).astype(data_type.lower()) for each in tensors]
    if seed % 3 == 0:
        # Taps on padding add nothing.
        inputs[1].flat[seed % inputs[1].size] = np.inf
    found = computed(plain, inputs)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ANYDML_CPU", instruction_set)
        for is_prepared in (False, True):
            np.testing.assert_array_equal(computed(desc, inputs, is_prepared), found)


@pytest.mark.parametrize(
    ("size", "taps", "stride", "padding", "batch", "channels", "results"),
    [
        (832, 256, 128, 0, 4, 1, 258),
        (7, 3, 1, 1, 3, 129, 65),
        (9, 3, 2, 1, 1, 64, 33),
        (300, 67, 5, 33, 1, 3, 47),
        (1, 1, 1, 0, 1, 31, 17),
    ],
)
def test_one_dimension_has_the_bits_of_three(
    size: int, taps: int, stride: int, padding: int, batch: int, channels: int, results: int
) -> None:
    """Products of matrices where it pays, and always planes."""
    places = (size + 2 * padding - taps) // stride + 1
    inputs = [
        np.random.default_rng(5).uniform(-1, 1, sizes).astype(np.float32)
        for sizes in ((batch, channels, size), (results, channels, taps), (1, results, 1))
    ]
    found = []
    for ones in ((), (1, 1)):
        x, w, bias = (each.reshape(*each.shape[:2], *ones, each.shape[2]) for each in inputs)
        zeros = [0] * len(ones)
        desc = spec("CONVOLUTION").desc(
            InputTensor=tensor(x.shape),
            FilterTensor=tensor(w.shape),
            BiasTensor=tensor(bias.shape),
            OutputTensor=tensor((batch, results, *ones, places)),
            Mode=1,
            Direction=0,
            Strides=[*ones, stride],
            Dilations=[*ones, 1],
            StartPadding=[*zeros, padding],
            EndPadding=[*zeros, padding],
            OutputPadding=[*zeros, 0],
            GroupCount=1,
        )
        found += [computed(desc, [x, w, bias], is_prepared).ravel() for is_prepared in (False, True)]
    for each in found[1:]:
        np.testing.assert_array_equal(each, found[0])


@pytest.mark.parametrize("name", [name for name in LARGE if not name.startswith("product")])
def test_the_same_bits_of_large_ones_on_one_thread(name: str) -> None:
    desc: Any = LARGE[name]
    rng = np.random.default_rng(8)
    tensors = [desc.InputTensor, desc.FilterTensor, desc.BiasTensor]
    inputs = [rng.uniform(-1, 1, each.Sizes).astype(each.DataType.name.lower()) for each in tensors]
    many = computed(desc, inputs)
    with threadpool_limits(1, "openmp"):
        np.testing.assert_array_equal(computed(desc, inputs), many)
    np.testing.assert_array_equal(computed(desc, inputs, is_prepared=True), many)


def test_many_more_phases_than_elements() -> None:
    """Of a stride that is larger than any memory: most results are their biases."""
    backward = ConvolutionDirection.BACKWARD
    desc = convolution((1, 1, 2, 1), (1, 1, 1, 2), (1, 1, 2000, 2), FusedActivation=None, Direction=backward)
    desc = replace(desc, Strides=[1999, 2**20])
    x, w, bias = np.float32([[[[2], [3]]]]), np.float32([[[[5, 7]]]]), np.full((1, 1, 1, 1), 0.5, np.float32)
    y = computed(desc, [x, w, bias]).view(np.float32)
    expected = np.full((2000, 2), 0.5)
    expected[0], expected[1999] = [10.5, 14.5], [15.5, 21.5]
    np.testing.assert_array_equal(y[0, 0], expected)
