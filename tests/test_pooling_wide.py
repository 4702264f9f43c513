"""Quantised pooling of windows of any size and dilation: exact, on the way that costs the same whatever their size."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import anydml
from anydml import DML_QUANTIZED_LINEAR_AVERAGE_POOLING_OPERATOR_DESC
from cases import tensor
from harness import compiled
from test_join_large import at_the_end_of_a_page

pytest.importorskip("anydml._native")


def every(rng: np.random.Generator, dtype: Any, shape: tuple[int, ...]) -> np.ndarray:
    limits = np.iinfo(dtype)
    return rng.integers(limits.min, limits.max, shape, dtype, endpoint=True)


def case(shape: tuple[int, ...], size: tuple[int, ...], **window: Any) -> tuple[tuple[int, ...], dict[str, Any]]:
    defaults = {"dilations": 1, "strides": 1, "start_padding": 0, "end_padding": 0}
    each = {name: window.get(name, value) for name, value in defaults.items()}
    spatial = {name: value if isinstance(value, tuple) else (value,) * len(size) for name, value in each.items()}
    return shape, {"window_size": size, **spatial, "include_padding": window.get("include_padding", False)}


CASES = [
    case((1, 2, 300, 310), (260, 270)),
    case((2, 1, 300, 330), (257, 257), strides=(3, 2)),
    case((1, 1, 280, 290), (270, 280), start_padding=(100, 140), end_padding=(130, 120)),
    case((1, 1, 280, 290), (270, 280), start_padding=(269, 0), end_padding=(0, 279), include_padding=True),
    case((1, 1, 90, 9000), (40, 3000), dilations=(1, 3)),
    case((1, 1, 600, 3300), (200, 400), dilations=(2, 8), strides=(1, 3)),
    case((1, 1, 700, 1700), (200, 400), dilations=(3, 4), strides=(2, 1), start_padding=(9, 50), end_padding=(31, 7)),
    case((1, 1, 3, 40000), (2, 33000)),
    case((1, 2, 3000, 70), (2500, 30)),
    case((1, 1, 3000, 90), (1100, 3), dilations=(2, 1)),
    case((1, 1, 3, 60_000), (3, 30_000), strides=(1, 20), start_padding=(0, 15_000), end_padding=(0, 15_000)),
    case((1, 1, 60, 50, 60), (50, 40, 45)),
    case((1, 2, 50, 62, 60), (42, 50, 45), strides=(1, 2, 1), start_padding=(3, 0, 5), end_padding=(0, 9, 5)),
    case((1, 1, 90, 50, 110), (42, 45, 40), dilations=(2, 1, 2), include_padding=True, start_padding=1),
    case((1, 1, 2000, 9, 40), (1500, 8, 20)),
    case((1, 1, 700, 600), (700, 600), start_padding=(340, 290), end_padding=(340, 290)),
]
KINDS = [(np.uint8, np.int8), (np.int8, np.uint8)]


def assert_exact(x: np.ndarray, arguments: dict[str, Any]) -> np.ndarray:
    expected = anydml.quantized_linear_average_pooling(x, **arguments, device="reference")
    np.testing.assert_array_equal(anydml.quantized_linear_average_pooling(x, **arguments), expected)
    return expected


@pytest.mark.parametrize("kinds", KINDS, ids=lambda kinds: kinds[0].__name__)
@pytest.mark.parametrize(("shape", "window"), CASES, ids=str)
def test_wide_windows_are_exact(shape: tuple[int, ...], window: dict[str, Any], kinds: tuple[Any, Any]) -> None:
    rng = np.random.default_rng(sum(shape))
    x_type, y_type = kinds
    x = at_the_end_of_a_page(every(rng, x_type, shape))
    # Averages of many bytes are near their mean: a small output scale spreads them over the output's values.
    quantisation = {
        "input_scale": np.float32(0.3),
        "input_zero_point": every(rng, x_type, ()),
        "output_scale": np.float32(rng.choice([0.002, 0.01, 0.5])),
        "output_zero_point": every(rng, y_type, ()),
    }
    assert_exact(x, {**quantisation, **window})


@pytest.mark.parametrize("steps", [(1, 1), (-1, 1), (1, -1), (1, 3), (-2, -2)], ids=str)
def test_any_strides_and_channels_of_their_own(steps: tuple[int, int]) -> None:
    rng = np.random.default_rng(5)
    view = (..., slice(None, None, steps[0]), slice(None, None, steps[1]))
    x = every(rng, np.uint8, (2, 3, 290 * abs(steps[0]), 280 * abs(steps[1])))[view]
    _, window = case(x.shape, (260, 256), start_padding=(3, 0), end_padding=(0, 9))
    arguments = {
        "input_scale": rng.uniform(0.001, 0.3, 3).astype(np.float32),
        "input_zero_point": every(rng, np.uint8, (3,)),
        "output_scale": rng.uniform(0.001, 0.3, 3).astype(np.float32),
        "output_zero_point": every(rng, np.int8, (3,)),
        **window,
    }
    memory = every(rng, np.int8, (2, 3, 34 * abs(steps[0]), 34 * abs(steps[1])))
    expected, out = memory.copy(), memory[view]
    expected[view] = anydml.quantized_linear_average_pooling(x, **arguments, device="reference")
    anydml.quantized_linear_average_pooling(x, **arguments, out=out)
    np.testing.assert_array_equal(memory, expected)


def test_sums_of_more_than_32_bits() -> None:
    """4,150 x 4,100 taps of mostly the largest byte."""
    rng = np.random.default_rng(9)
    x = np.full((1, 1, 4160, 4170), 255, np.uint8)
    x[0, 0, ::7, ::5] = every(rng, np.uint8, x[0, 0, ::7, ::5].shape)
    _, window = case(x.shape, (4150, 4100))
    quantisation = {
        "input_scale": np.float32(0.5),
        "input_zero_point": np.uint8(0),
        "output_scale": np.float32(0.52),
        "output_zero_point": np.uint8(3),
    }
    assert assert_exact(x, {**quantisation, **window}).max() < 255


def explained(shape: tuple[int, ...], window: tuple[int, ...], **others: Any) -> str:
    """What explain() says of windows over packed bytes, after who serves them."""
    _, values = case(shape, window, **others)
    numbers = (values[name] for name in ("window_size", "dilations", "strides", "start_padding", "end_padding"))
    outputs = [
        (size + start + end - (taps - 1) * dilation - 1) // stride + 1
        for size, taps, dilation, stride, start, end in zip(shape[2:], *numbers, strict=True)
    ]
    one = tensor((1,) * len(shape), "FLOAT32")
    desc = DML_QUANTIZED_LINEAR_AVERAGE_POOLING_OPERATOR_DESC(
        InputTensor=tensor(shape, "UINT8"),
        InputScaleTensor=one,
        OutputScaleTensor=one,
        OutputTensor=tensor((*shape[:2], *outputs), "UINT8"),
        Strides=values["strides"],
        WindowSize=window,
        StartPadding=values["start_padding"],
        EndPadding=values["end_padding"],
        Dilations=values["dilations"],
        IncludePadding=values["include_padding"],
    )
    return compiled("cpu", desc).explain().partition(": ")[2]


@pytest.mark.parametrize("size", [150, 256, 257, 300, 1000, 4000])
def test_no_size_leaves_the_fast_way(size: int) -> None:
    """Of more than 65,793 taps sums need more than 24 bits, of more than 16,843,009 more than 32."""
    description = explained((1, 1, size + 99, size + 99), (size, size))
    assert ("running sums" if size == 150 else "prefix sums") in description.partition("; declined")[0]


def test_no_dilation_leaves_the_fast_way() -> None:
    for dilation in (1, 2, 9, 100, 500):
        reach = 30 * dilation
        description = explained((1, 1, reach + 99, reach + 99), (30, 30), dilations=dilation)
        assert "each window by itself" not in description.partition("; declined")[0]
