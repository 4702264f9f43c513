"""The CPU's kernels of FLOAT32 by channel: pooling and CONVOLUTION where channels lie last, and BATCH_NORMALIZATION,
against the references."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from threadpoolctl import threadpool_limits

from anydml import (
    DML_ACTIVATION_RELU_OPERATOR_DESC,
    DML_BATCH_NORMALIZATION_OPERATOR_DESC,
    DML_CONVOLUTION_OPERATOR_DESC,
    DML_ELEMENT_WISE_CLIP_OPERATOR_DESC,
)
from anydml.backends.base import Kernel
from anydml.backends.native.engine import CpuEngine
from anydml.core.enums import ConvolutionDirection, ConvolutionMode
from anydml.core.strided_layout import Layout
from anydml.operators import spec
from anydml.operators.schema import OperatorDesc
from cases import tensor, tensor_of
from harness import assert_same, compiled, run
from test_properties import property_test

pytestmark = [pytest.mark.native, pytest.mark.slow]

RELU = DML_ACTIVATION_RELU_OPERATOR_DESC(InputTensor=None, OutputTensor=None)
CLIP = DML_ELEMENT_WISE_CLIP_OPERATOR_DESC(InputTensor=None, OutputTensor=None, Min=-2, Max=6)
SPECIALS = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, 2.0]


@pytest.fixture(autouse=True, scope="module")
def native() -> Any:
    return pytest.importorskip("anydml._native")


def channels_last(sizes: Sequence[int], gap: int = 0) -> tuple[int, ...]:
    """Strides, with some elements between a row and the next."""
    _, c, h, w = sizes
    row = w * c + gap
    return (h * row, 1, row, c)


@st.composite
def geometries(draw: st.DrawFn, dilated: bool = True) -> dict[str, Any]:
    found: dict[str, Any] = {name: [] for name in ("sizes", "window", "strides", "dilations", "start", "end", "places")}
    for _ in range(2):
        window, dilation = draw(st.integers(1, 4)), draw(st.integers(1, 3)) if dilated else 1
        size, start, end = draw(st.integers(1, 12)), draw(st.integers(0, 5)), draw(st.integers(0, 5))
        start = max(start, (window - 1) * dilation + 1 - size - end)
        stride = draw(st.integers(1, 3))
        places = (start + size + end - (window - 1) * dilation - 1) // stride + 1
        for name, number in zip(found, (size, window, stride, dilation, start, end, places), strict=True):
            found[name].append(number)
    one = {"batch": st.integers(1, 2), "channels": st.integers(8, 40), "gap": st.integers(0, 3)}
    return {**found, **{name: draw(numbers) for name, numbers in one.items()}, "seed": draw(st.integers(0, 2**32 - 1))}


def sizes_of(given: dict[str, Any], name: str) -> tuple[int, ...]:
    return (given["batch"], given["channels"], *given[name])


def laid(x: np.ndarray, given: dict[str, Any]) -> Any:
    return tensor_of(x, channels_last(x.shape, given["gap"]))


def assert_like_reference(desc: OperatorDesc, inputs: Sequence[np.ndarray | None]) -> None:
    y, right = run("cpu", desc, inputs)[0], run("reference", desc, inputs)[0]
    assert y is not None
    assert right is not None
    assert_same(y, right)


@property_test
@given(
    given=geometries(),
    has_bias=st.booleans(),
    mode=st.sampled_from(list(ConvolutionMode)),
    activation=st.sampled_from([None, RELU, CLIP]),
    filter_last=st.booleans(),
)
def test_depthwise_convolutions(
    given: dict[str, Any], has_bias: bool, mode: ConvolutionMode, activation: OperatorDesc | None, filter_last: bool
) -> None:
    """Of integers, whose sums are exact."""
    rng = np.random.default_rng(given["seed"])
    channels = given["channels"]
    x, w, bias = (
        rng.integers(-3, 4, sizes).astype(np.float32)
        for sizes in (sizes_of(given, "sizes"), (channels, 1, *given["window"]), (1, channels, 1, 1))
    )
    desc = DML_CONVOLUTION_OPERATOR_DESC(
        InputTensor=laid(x, given),
        FilterTensor=tensor_of(w, (1, 1, given["window"][1] * channels, channels) if filter_last else None),
        BiasTensor=tensor_of(bias) if has_bias else None,
        OutputTensor=laid(np.empty(sizes_of(given, "places"), np.float32), given),
        Mode=mode,
        Direction=ConvolutionDirection.FORWARD,
        Strides=given["strides"],
        Dilations=given["dilations"],
        StartPadding=given["start"],
        EndPadding=given["end"],
        OutputPadding=[0, 0],
        GroupCount=channels,
        FusedActivation=activation,
    )
    assert_like_reference(desc, [x, w, bias if has_bias else None])


ONE_TAP = {"window": [1, 1], "start": [0, 0], "end": [0, 0]}
NINE_TAPS = {"window": [3, 3], "start": [1, 1], "end": [1, 1]}


def dense(given: dict[str, Any], results: int, taken_last: bool = True, **members: Any) -> Any:
    """A convolution with a bias, and its inputs, of integers, whose sums are exact."""
    rng = np.random.default_rng(given["seed"])
    sizes = {"sizes": sizes_of(given, "sizes"), "places": (given["batch"], results, *given["places"])}
    x, w, bias = (
        rng.integers(-3, 4, each).astype(np.float32)
        for each in (sizes["sizes"], (results, given["channels"], *given["window"]), (1, results, 1, 1))
    )
    desc = DML_CONVOLUTION_OPERATOR_DESC(
        InputTensor=laid(x, given) if taken_last else tensor_of(x),
        FilterTensor=tensor_of(w),
        BiasTensor=tensor_of(bias),
        OutputTensor=laid(np.empty(sizes["places"], np.float32), given),
        Mode=members.pop("Mode", ConvolutionMode.CROSS_CORRELATION),
        Direction=ConvolutionDirection.FORWARD,
        Strides=given["strides"],
        Dilations=given["dilations"],
        StartPadding=given["start"],
        EndPadding=given["end"],
        OutputPadding=[0, 0],
        GroupCount=1,
        **members,
    )
    return desc, [x, w, bias]


@property_test
@given(
    given=geometries(),
    results=st.integers(8, 70),
    taken_last=st.booleans(),
    has_bias=st.booleans(),
    mode=st.sampled_from(list(ConvolutionMode)),
    activation=st.sampled_from([None, RELU, CLIP]),
)
def test_convolutions_of_all_channels(
    given: dict[str, Any],
    results: int,
    taken_last: bool,
    has_bias: bool,
    mode: ConvolutionMode,
    activation: OperatorDesc | None,
) -> None:
    desc, (x, w, bias) = dense(given, results, taken_last, Mode=mode, FusedActivation=activation)
    if has_bias:
        assert_like_reference(desc, [x, w, bias])
    else:
        assert_like_reference(replace(desc, BiasTensor=None), [x, w, None])


@pytest.mark.parametrize(
    ("channels", "results", "size", "window"),
    [
        *[(16, 64, 55, window) for window in (ONE_TAP, NINE_TAPS)],
        (40, 300, 7, NINE_TAPS),
        (300, 1000, 1, ONE_TAP),
        (3, 8, 90, NINE_TAPS),
    ],
)
def test_large_convolutions(native: Any, channels: int, results: int, size: int, window: dict[str, Any]) -> None:
    """The same of a filter that is prepared; of fractions the same bits on each instruction set that has them, and on
    one thread."""
    places = [size, size]
    given = {"sizes": places, "places": places, "batch": 1, "gap": 0, "seed": 1, **window}
    desc, inputs = dense({**given, "channels": channels, "strides": [1, 1], "dilations": [1, 1]}, results)
    assert_like_reference(desc, inputs)
    layouts = [Layout.of_desc(each) for each in (desc.InputTensor, desc.FilterTensor, desc.BiasTensor)]
    written = Layout.of_desc(desc.OutputTensor)
    rng = np.random.default_rng(2)
    fractions = [lying(each, rng.uniform(-1, 1, each.sizes)) for each in layouts]

    def computed(is_prepared: bool) -> np.ndarray:
        kernel = CpuEngine().compile(spec("CONVOLUTION"), desc, layouts, [written])
        assert isinstance(kernel, Kernel)
        assert kernel.prepare is not None
        assert kernel.prepare([fractions[0], None, fractions[2]]) is None
        run = kernel.prepare([None, *fractions[1:]]) if is_prepared else kernel.run
        assert run is not None
        y = lying(written, np.full(written.sizes, np.nan))
        run(fractions, [y])
        return y.view(np.uint32)

    whole = computed(is_prepared=False)
    np.testing.assert_array_equal(computed(is_prepared=True), whole)
    with threadpool_limits(1, "openmp"):
        np.testing.assert_array_equal(computed(is_prepared=False), whole)
    if {"avx2", "avx512"} <= set(native.build_info()["instruction_sets"]):
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("ANYDML_CPU", "avx2")
            np.testing.assert_array_equal(computed(is_prepared=True), whole)


def lying(layout: Layout, values: np.ndarray) -> np.ndarray:
    """Values as a tensor has them in memory."""
    array = layout.view(np.zeros(layout.bounds()[1], np.uint8))
    array[...] = values
    return array


def pooling(operator: str, x: np.ndarray, given: dict[str, Any], **options: Any) -> OperatorDesc:
    desc: OperatorDesc = spec(operator).desc(
        InputTensor=laid(x, given),
        OutputTensor=laid(np.empty(sizes_of(given, "places"), np.float32), given),
        Strides=given["strides"],
        WindowSize=given["window"],
        StartPadding=given["start"],
        EndPadding=given["end"],
        **options,
    )
    return desc


@property_test
@given(given=geometries(), specials=st.booleans())
def test_maxima(given: dict[str, Any], specials: bool) -> None:
    """Numbers before NaN; where nothing is under a window, the lowest value."""
    rng = np.random.default_rng(given["seed"])
    sizes = sizes_of(given, "sizes")
    x = rng.choice(SPECIALS[:3] if specials else SPECIALS, sizes).astype(np.float32)
    assert_like_reference(pooling("MAX_POOLING2", x, given, Dilations=given["dilations"]), [x])
    if given["dilations"] == [1, 1]:
        for operator in ("MAX_POOLING", "MAX_POOLING1"):
            assert_like_reference(pooling(operator, x, given), [x])


@property_test
@given(given=geometries(dilated=False), includes=st.booleans(), large=st.booleans())
def test_averages(given: dict[str, Any], includes: bool, large: bool) -> None:
    """Summed in double precision: what is small survives beside what is large."""
    rng = np.random.default_rng(given["seed"])
    x = rng.integers(-9, 10, sizes_of(given, "sizes")).astype(np.float32)
    if large:
        x *= rng.choice(np.float32([1, 2**25]), x.shape)
    assert_like_reference(pooling("AVERAGE_POOLING", x, given, IncludePadding=includes), [x])


@property_test
@given(
    rank=st.integers(2, 5),
    is_last=st.booleans(),
    shared=st.integers(0, 15),
    activation=st.sampled_from([None, RELU]),
    seed=st.integers(0, 2**32 - 1),
)
def test_normalisations(rank: int, is_last: bool, shared: int, activation: OperatorDesc | None, seed: int) -> None:
    """Of few elements, which are computed in double precision."""
    rng = np.random.default_rng(seed)
    sizes = [int(each) for each in rng.integers(1, 20 if rank < 4 else 7, rank)]
    order = [0, *range(2, rank), 1] if is_last else list(range(rank))
    strides, step = [0] * rank, 1
    for axis in reversed(order):
        strides[axis], step = step, step * sizes[axis]
    x = rng.uniform(-9, 9, sizes).astype(np.float32)
    parameters = []
    for i in range(4):
        channels = 1 if shared >> i & 1 else sizes[1]
        parameters.append(rng.uniform(0.5, 2, (1, channels, *[1] * (rank - 2))).astype(np.float32))
    desc = DML_BATCH_NORMALIZATION_OPERATOR_DESC(
        InputTensor=tensor_of(x, strides),
        **dict(
            zip(("MeanTensor", "VarianceTensor", "ScaleTensor", "BiasTensor"), map(tensor_of, parameters), strict=True)
        ),
        OutputTensor=tensor_of(x, strides),
        Spatial=True,
        Epsilon=1e-5,
        FusedActivation=activation,
    )
    (y,), (right,) = run("cpu", desc, [x, *parameters]), run("reference", desc, [x, *parameters])
    assert y is not None
    assert right is not None
    np.testing.assert_array_max_ulp(y, right)


@pytest.mark.parametrize("is_last", [False, True])
def test_large_normalisations_are_as_near_as_single_precision_allows(is_last: bool) -> None:
    """Also where the mean is large: it is subtracted before anything is rounded."""
    rng = np.random.default_rng(5)
    image = tensor((2, 16, 33, 41), strides=channels_last((2, 16, 33, 41)) if is_last else None)
    channels = tensor((1, 16, 1, 1))
    names = "MeanTensor", "VarianceTensor", "ScaleTensor", "BiasTensor"
    desc = DML_BATCH_NORMALIZATION_OPERATOR_DESC(
        InputTensor=image,
        **dict.fromkeys(names, channels),
        OutputTensor=image,
        Spatial=True,
        Epsilon=1e-5,
        FusedActivation=RELU,
    )
    x = rng.standard_normal(image.Sizes)
    mean, variance, scale, bias = rng.standard_normal((4, *channels.Sizes))
    inputs = [each.astype(np.float32) for each in (x + 1000 * mean, 1000 * mean, np.abs(variance), scale, bias)]
    found, expected = run("cpu", desc, inputs)[0], run("reference", desc, inputs)[0]
    x, mean, variance, scale, bias = (each.astype(np.float64) for each in inputs)
    k = scale / np.sqrt(variance + 1e-5)
    bound = 2.0**-22 * (np.abs((x - mean) * k) + np.abs(bias))
    assert (np.abs(found.astype(np.float64) - expected) <= bound).all()  # type: ignore[union-attr, operator]


def _depthwise(**members: Any) -> OperatorDesc:
    sizes = (1, 16, 40, 40)
    x = tensor(sizes, strides=channels_last(sizes))
    desc = DML_CONVOLUTION_OPERATOR_DESC(
        InputTensor=x,
        FilterTensor=tensor((16, 1, 3, 3)),
        OutputTensor=x,
        Mode=ConvolutionMode.CROSS_CORRELATION,
        Direction=ConvolutionDirection.FORWARD,
        Strides=[1, 1],
        Dilations=[1, 1],
        StartPadding=[1, 1],
        EndPadding=[1, 1],
        OutputPadding=[0, 0],
        GroupCount=16,
    )
    return replace(desc, **members)


@pytest.mark.parametrize(
    "members",
    [
        {"OutputPadding": [1, 0], "OutputTensor": tensor((1, 16, 41, 40))},
        {"GroupCount": 4, "FilterTensor": tensor((16, 4, 3, 3))},
    ],
    ids=["output-padding", "groups"],
)
def test_what_has_no_kernel_by_channel_is_computed_on_planes(members: dict[str, Any]) -> None:
    assert compiled("cpu", _depthwise()).explain().startswith("CONVOLUTION is served by cpu: depthwise convolution")
    kernel = compiled("cpu", _depthwise(**members)).explain()
    assert kernel.startswith("CONVOLUTION is served by cpu: convolution, window of 3x3, by planes")


def test_strides_and_paddings_beyond_any_memory() -> None:
    huge = {"Strides": [2**32 - 1] * 2, "StartPadding": [2**31] * 2, "EndPadding": [2**31 - 1] * 2}
    x = np.ones((1, 8, 1, 1), np.float32)
    given = {"batch": 1, "channels": 8, "gap": 0, "places": [2, 2]}
    desc = spec("MAX_POOLING").desc(
        InputTensor=laid(x, given),
        OutputTensor=laid(np.empty((1, 8, 2, 2), np.float32), given),
        WindowSize=[1, 1],
        **huge,
    )
    assert_like_reference(desc, [x])
