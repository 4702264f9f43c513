"""AVERAGE_POOLING, LP_POOLING and MAX_POOLING against PyTorch's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import anydml
from anydml import validate
from anydml.operators import spec
from cases import tensor, tensor_of
from harness import ENGINE, assert_same, run
from test_properties import property_test

pytestmark = pytest.mark.slow

MAXIMA = ["float32", "float16", "int64", "int32", "int16", "int8", "uint64", "uint32", "uint16", "uint8"]


@pytest.fixture(scope="module")
def torch() -> Any:
    return pytest.importorskip("torch")


@st.composite
def windows(draw: st.DrawFn, dilated: bool = False) -> dict[str, Any]:
    """That PyTorch takes: no larger than the input, equal paddings at both ends, of half a window at most."""
    found: dict[str, Any] = {name: [] for name in ("sizes", "window", "strides", "padding", "dilations")}
    for _ in range(draw(st.integers(2, 3))):
        window, dilation = draw(st.integers(1, 4)), draw(st.integers(1, 3)) if dilated else 1
        size = draw(st.integers((window - 1) * dilation + 1, 10))
        numbers = size, window, draw(st.integers(1, 4)), draw(st.integers(0, window // 2)), dilation
        for name, number in zip(found, numbers, strict=True):
            found[name].append(number)
    return {**found, "ceil_mode": draw(st.booleans()), "seed": draw(st.integers(0, 2**32 - 1))}


def pooled(
    operator: str, x: np.ndarray, sizes: Sequence[int], given: dict[str, Any], **options: Any
) -> list[np.ndarray | None]:
    desc = spec(operator).desc(
        InputTensor=tensor_of(x),
        OutputTensor=tensor_of(np.empty(sizes, x.dtype)),
        Strides=given["strides"],
        WindowSize=given["window"],
        StartPadding=given["padding"],
        EndPadding=given["padding"],
        **options,
    )
    return run(ENGINE, desc, [x])


@pytest.mark.gpu
@property_test
@given(given=windows(), includes=st.booleans(), dtype=st.sampled_from([np.float32, np.float16]))
def test_averages_are_those_of_pytorch(torch: Any, given: dict[str, Any], includes: bool, dtype: Any) -> None:
    """Of integers, whose sums are exact and whose averages are rounded once."""
    x = np.random.default_rng(given["seed"]).integers(-9, 10, (2, 3, *given["sizes"])).astype(dtype)
    expected = getattr(torch.nn.functional, f"avg_pool{x.ndim - 2}d")(
        torch.from_numpy(x.astype(np.float64)),
        given["window"],
        given["strides"],
        given["padding"],
        ceil_mode=given["ceil_mode"],
        count_include_pad=includes,
    ).numpy()
    (y,) = pooled("AVERAGE_POOLING", x, expected.shape, given, IncludePadding=includes)
    assert_same(y, expected.astype(dtype))


@pytest.mark.gpu
@property_test
@given(given=windows(), p=st.integers(1, 5), dtype=st.sampled_from([np.float32, np.float16]))
def test_norms_are_those_of_pytorch(torch: Any, given: dict[str, Any], p: int, dtype: Any) -> None:
    """Of absolute values: PyTorch takes odd powers with their signs. It pads nothing."""
    x = np.random.default_rng(given["seed"]).uniform(-9, 9, (2, 3, *given["sizes"])).astype(dtype)
    expected = getattr(torch.nn.functional, f"lp_pool{x.ndim - 2}d")(
        torch.from_numpy(np.abs(x.astype(np.float64))), p, given["window"], given["strides"]
    ).numpy()
    (y,) = pooled("LP_POOLING", x, expected.shape, {**given, "padding": [0] * (x.ndim - 2)}, P=p)
    np.testing.assert_array_max_ulp(y, expected.astype(dtype))


@pytest.mark.gpu
@property_test
@given(given=windows(dilated=True), name=st.sampled_from(MAXIMA), index=st.sampled_from([np.uint32, np.uint64]))
def test_maxima_and_their_indices_are_those_of_pytorch(
    torch: Any, given: dict[str, Any], name: str, index: Any
) -> None:
    """Of few different numbers, so that many are equal. PyTorch counts in one image of one channel."""
    x = np.random.default_rng(given["seed"]).integers(0, 5, (2, 3, *given["sizes"])).astype(name)
    values, places = getattr(torch.nn.functional, f"max_pool{x.ndim - 2}d")(
        torch.from_numpy(x.astype(np.float64)),
        given["window"],
        given["strides"],
        given["padding"],
        given["dilations"],
        ceil_mode=given["ceil_mode"],
        return_indices=True,
    )
    planes = np.arange(6).reshape(2, 3, *[1] * (x.ndim - 2)) * np.prod(given["sizes"])
    indices = (places.numpy() + planes).astype(index)
    options: dict[str, Any] = {"OutputIndicesTensor": tensor_of(indices)}
    both = pooled("MAX_POOLING2", x, values.shape, given, **options, Dilations=given["dilations"])
    assert_same(both[0], values.numpy().astype(name))
    assert_same(both[1], indices)
    if set(given["dilations"]) == {1}:
        assert_same(pooled("MAX_POOLING1", x, values.shape, given, **options)[1], indices)
        assert_same(pooled("MAX_POOLING", x, values.shape, given)[0], both[0])


@pytest.mark.parametrize("operator", ["AVERAGE_POOLING", "LP_POOLING", "MAX_POOLING", "MAX_POOLING1", "MAX_POOLING2"])
def test_a_strict_device_takes_sizes_rounded_down_only(operator: str) -> None:
    options = {"P": 1} if operator == "LP_POOLING" else {"Dilations": [1, 1]} if operator == "MAX_POOLING2" else {}
    zeros = [0, 0]
    for places, rules in ((2, []), (3, ["(C6)"])):
        desc = spec(operator).desc(
            InputTensor=tensor((1, 1, 1, 5)),
            OutputTensor=tensor((1, 1, 1, places)),
            Strides=[1, 2],
            WindowSize=[1, 2],
            StartPadding=zeros,
            EndPadding=zeros,
            **options,
        )
        assert validate(desc) == []
        assert [violation.rule for violation in validate(desc, strict=True)] == rules


@pytest.mark.parametrize("channels", [511, 513, 519, 520, 1025, 1031])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.int8])
def test_a_few_channels_behind_many_others(dtype: Any, channels: int) -> None:
    x = np.random.default_rng(channels).integers(-99, 99, (2, 5, 4, channels)).astype(dtype).transpose(0, 3, 1, 2)
    window = {"window_size": 3, "start_padding": 1, "end_padding": 1}
    computed = [anydml.max_pooling] if dtype == np.int8 else [anydml.max_pooling, anydml.average_pooling]
    for pooling in computed:
        found, expected = pooling(x, **window), pooling(x, **window, device="reference")
        for y, wanted in zip(
            *((each if isinstance(each, list) else [each]) for each in (found, expected)), strict=True
        ):
            np.testing.assert_array_equal(y, wanted)


def test_averages_of_what_is_not_finite() -> None:
    x = np.random.default_rng(3).standard_normal((1, 6, 7, 16)).astype(np.float16)
    x[0, 1, 2, :4], x[0, 4, 4, 2:8], x[0, 3, 0, 9] = np.inf, -np.inf, np.nan
    x = x.transpose(0, 3, 1, 2)
    found = anydml.average_pooling(x, 3)
    np.testing.assert_array_equal(found, anydml.average_pooling(x, 3, device="reference"))
    assert np.isinf(found).any()
    assert np.isnan(found).any()


@pytest.mark.parametrize("is_last", [False, True])
@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("window", [(3, 3), (2, 4), (1, 2), (4, 4), (3, 5)])
def test_averages_of_halves_beside_ties(window: tuple[int, int], stride: int, is_last: bool) -> None:
    """Sums are those of two neighbouring halves times half the count, and at times some of the least halves beside."""
    rng = np.random.default_rng(stride)
    count = window[0] * window[1]
    low = rng.integers(1 << 10, 2 << 10, (3, 40, 1)) * 2.0 ** rng.integers(-20, 2, (3, 40, 1))
    high = low + 2.0 ** (np.floor(np.log2(low)) - 10)
    # low * count / 2 and high * count / 2 as multiples by powers of 2
    powers = [2.0**k for k in range(-1, 4) if int(count) >> (k + 1) & 1]
    taps = np.concatenate([low * each for each in powers] + [high * each for each in powers], 2)
    taps = np.concatenate([taps, rng.integers(-1, 2, (3, 40, count)) * 2.0**-24 * (rng.random((3, 40, 1)) < 0.7)], 2)
    taps = rng.permuted(taps[..., :count] * rng.choice([-1, 1], (3, 40, 1)), axis=2)
    x = taps.reshape(1, 3, 40, *window).transpose(0, 1, 3, 2, 4).reshape(1, 3, window[0], -1)
    x = np.repeat(np.tile(x, (1, 1, 2, 1)), 11, 1).astype(np.float16)
    if is_last:
        x = np.ascontiguousarray(x.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)
    under = np.lib.stride_tricks.sliding_window_view(x.astype(np.float64), window, axis=(2, 3))
    sums = under.sum((4, 5)) + 0.0  # without the sign of 0
    expected = (sums / count).astype(np.float16)[:, :, ::stride, ::stride]
    found = anydml.average_pooling(x, window, strides=stride)
    np.testing.assert_array_equal(found.view(np.uint16), expected.view(np.uint16))


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("order", [(0, 1, 2, 3), (0, 2, 3, 1), (3, 2, 1, 0)])
def test_windows_of_one_element(dtype: Any, order: tuple[int, ...]) -> None:
    """What they give is the element, of any layout: all dimensions are one then, along which nothing slides."""
    sizes = 2, 3, 5, 7
    memory = np.random.default_rng(3).standard_normal([sizes[i] for i in order]).astype(dtype)
    x = memory.transpose(np.argsort(order))
    strides = [step // x.itemsize for step in x.strides]
    y = tensor_of(np.empty(sizes, dtype))
    window = {"Strides": (1, 1), "WindowSize": (1, 1), "StartPadding": (0, 0), "EndPadding": (0, 0)}
    for name, more, wanted in (
        ("AVERAGE_POOLING", {"IncludePadding": False}, x),
        ("LP_POOLING", {"P": 1}, abs(x)),
        ("LP_POOLING", {"P": 2}, abs(x)),
        ("MAX_POOLING", {}, x),
    ):
        desc = spec(name).desc(InputTensor=tensor_of(x, strides), OutputTensor=y, **window, **more)
        assert_same(run(ENGINE, desc, [x])[0], np.ascontiguousarray(wanted))
    ends = {"InputGradientTensor": y, "OutputGradientTensor": tensor_of(x, strides)}
    desc = spec("AVERAGE_POOLING_GRAD").desc(**ends, IncludePadding=False, **window)
    dy = np.ascontiguousarray(x)
    assert_same(run(ENGINE, desc, [dy])[0], x)
