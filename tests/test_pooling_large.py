"""Pooling where only larger shapes reach: whole vectors and their ends, sums that are carried on, every way to
requantise. Bit for bit against the reference.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import anydml
from test_join_large import at_the_end_of_a_page

pytestmark = [pytest.mark.native, pytest.mark.slow]

WINDOWS: list[tuple[tuple[int, ...], dict[str, Any]]] = [
    ((2, 3, 34, 129), {"window_size": 2, "strides": 2}),
    ((2, 3, 37, 97), {"window_size": 3, "strides": 2, "start_padding": 1, "end_padding": 1}),
    ((2, 2, 40, 79), {"window_size": 3}),
    ((2, 2, 40, 80), {"window_size": 3, "start_padding": 1, "end_padding": 1}),
    ((1, 2, 40, 81), {"window_size": 3, "start_padding": 2, "end_padding": 2, "include_padding": True}),
    ((1, 2, 40, 64), {"window_size": 3, "dilations": 2, "start_padding": 2, "end_padding": 2}),
    ((1, 2, 41, 97), {"window_size": 3, "strides": 2, "dilations": 2, "start_padding": 2, "end_padding": 2}),
    ((2, 2, 40, 65), {"window_size": 7, "start_padding": 3, "end_padding": 3}),
    ((1, 2, 61, 50), {"window_size": 7, "dilations": (3, 2), "strides": (2, 1)}),
    ((1, 2, 50, 100), {"window_size": (5, 16), "strides": (1, 2)}),
    ((1, 1, 50, 100), {"window_size": (3, 29), "strides": (2, 3), "dilations": (1, 3)}),
    ((1, 2, 60, 90), {"window_size": 20, "start_padding": 5, "end_padding": 9}),
    ((1, 1, 1200, 40), {"window_size": (1100, 2)}),
    ((1, 2, 9, 40), {"window_size": (9, 6), "strides": 4}),
    ((1, 1, 3, 40000), {"window_size": (2, 3)}),
    ((1, 1, 2, 70000), {"window_size": (1, 900), "strides": (1, 450)}),
    ((1, 2, 8, 15, 33), {"window_size": 3, "start_padding": 1, "end_padding": 1}),
    ((1, 2, 8, 20, 40), {"window_size": (2, 5, 4), "strides": (2, 1, 2)}),
    ((2, 40, 14, 14), {"window_size": 14}),
    ((2, 3, 130, 127), {"window_size": (130, 127)}),
    ((3, 5, 4, 17, 31), {"window_size": (4, 17, 31)}),
]
# Ties everywhere, none, ties that the scales' rounding breaks, a third of a step, saturation, next to nothing.
SCALES = [(0.5, 0.5), (0.05, 0.04), (0.3, 0.7), (0.75, 0.5), (3.0, 0.25), (1e-30, 1e30)]


def every(rng: np.random.Generator, dtype: Any, shape: tuple[int, ...]) -> np.ndarray:
    limits = np.iinfo(dtype)
    return rng.integers(limits.min, limits.max, shape, dtype, endpoint=True)


@pytest.mark.parametrize("scales", SCALES, ids=str)
@pytest.mark.parametrize(("shape", "window"), WINDOWS, ids=str)
def test_large_pooling_is_exact(shape: tuple[int, ...], window: dict[str, Any], scales: tuple[float, float]) -> None:
    rng = np.random.default_rng(len(shape) * shape[-1])
    kinds = (np.uint8, np.int8)
    x_type, y_type = kinds[shape[-1] % 2], kinds[SCALES.index(scales) % 2]
    x = every(rng, x_type, shape)
    arguments = (x, scales[0], every(rng, x_type, ()))
    keywords = {"output_scale": scales[1], "output_zero_point": every(rng, y_type, ()), **window}
    expected = anydml.quantized_linear_average_pooling(*arguments, **keywords, device="reference")
    np.testing.assert_array_equal(anydml.quantized_linear_average_pooling(*arguments, **keywords), expected)


@pytest.mark.parametrize("window", [2, 3, 9])
def test_channels_have_their_own_scales(window: int) -> None:
    rng = np.random.default_rng(window)
    x = every(rng, np.int8, (3, 50, 30, 41))
    scale, output_scale = rng.uniform(0.01, 1, (2, 50)).astype(np.float32)
    keywords = {
        "output_scale": output_scale,
        "output_zero_point": every(rng, np.uint8, (50,)),
        "window_size": window,
        "start_padding": 1,
    }
    arguments = (x, scale, every(rng, np.int8, (50,)))
    expected = anydml.quantized_linear_average_pooling(*arguments, **keywords, device="reference")
    np.testing.assert_array_equal(anydml.quantized_linear_average_pooling(*arguments, **keywords), expected)


def assert_exact(x: np.ndarray, y_type: Any, rng: np.random.Generator, **window: Any) -> None:
    arguments = (x, rng.choice([0.05, 0.3, 0.5]), every(rng, x.dtype, ()))
    keywords = {"output_scale": rng.choice([0.04, 0.5, 0.7]), "output_zero_point": every(rng, y_type, ()), **window}
    expected = anydml.quantized_linear_average_pooling(*arguments, **keywords, device="reference")
    np.testing.assert_array_equal(anydml.quantized_linear_average_pooling(*arguments, **keywords), expected)


# Strips are of 32 outputs; the last one overlaps the one before it, or is the only one.
@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("outputs", [2, 15, 16, 17, 31, 32, 33, 63, 64, 65, 97])
def test_strips_and_their_ends(outputs: int, stride: int) -> None:
    rng = np.random.default_rng(outputs * stride)
    for size, dilation, padding in itertools.product((1, 2, 3, 5, 7), (1, 2), (0, 1, 3)):
        width = (outputs - 1) * stride + (size - 1) * dilation + 1 - 2 * padding
        if width < 1:
            continue
        x_type, y_type = rng.choice([np.uint8, np.int8], 2)
        assert_exact(
            every(rng, x_type, (1, 2, 12 + size, width)),
            y_type,
            rng,
            window_size=(2, size),
            strides=(1, stride),
            dilations=(1, dilation),
            start_padding=(0, padding),
            end_padding=(0, padding),
            include_padding=bool(rng.integers(2)),
        )


# More rows, columns and slices than a block has, and rings of sums that go round.
@pytest.mark.parametrize(
    ("shape", "window"),
    [
        ((1, 1, 700, 40), {"window_size": 3, "start_padding": 1, "end_padding": 1}),
        ((1, 1, 700, 40), {"window_size": (9, 3), "strides": (2, 1), "dilations": (1, 2)}),
        ((1, 2, 20, 5000), {"window_size": 3, "start_padding": 2, "end_padding": 2}),
        ((1, 1, 300, 20), {"window_size": (7, 2), "dilations": (3, 1)}),
        ((2, 2, 90, 20, 40), {"window_size": 3, "start_padding": 1, "end_padding": 1}),
        ((1, 2, 60, 30, 70), {"window_size": (3, 7, 2), "dilations": (2, 1, 1), "strides": (1, 1, 2)}),
        ((1, 2, 40, 30, 10), {"window_size": (4, 1, 3), "strides": (3, 2, 1), "start_padding": (2, 0, 1)}),
    ],
    ids=str,
)
@pytest.mark.parametrize("include_padding", [False, True])
def test_blocks_and_their_ends(shape: tuple[int, ...], window: dict[str, Any], include_padding: bool) -> None:
    rng = np.random.default_rng(sum(shape))
    x = every(rng, np.uint8, shape)
    assert_exact(x, np.int8, rng, include_padding=include_padding, **window)


def test_large_outputs_are_written_whole() -> None:
    rng = np.random.default_rng(3)
    assert_exact(every(rng, np.uint8, (3, 50, 331, 355)), np.uint8, rng, window_size=(1, 2))


@pytest.mark.parametrize("steps", [(1, 1), (1, -1), (-2, 1), (1, 3)], ids=str)
def test_any_strides(steps: tuple[int, int]) -> None:
    rng = np.random.default_rng(7)
    view = (..., slice(None, None, steps[0]), slice(None, None, steps[1]))
    x = every(rng, np.uint8, (2, 3, 60, 150))[view]
    height, width = (size - 4 for size in x.shape[2:])
    memory = every(rng, np.uint8, (2, 3, height * abs(steps[0]), width * abs(steps[1])))
    expected, out = memory.copy(), memory[view]
    keywords = {"output_scale": 0.02, "output_zero_point": np.uint8(9), "window_size": 5}
    expected[view] = anydml.quantized_linear_average_pooling(x, 0.02, np.uint8(100), **keywords, device="reference")
    anydml.quantized_linear_average_pooling(x, 0.02, np.uint8(100), **keywords, out=out)
    np.testing.assert_array_equal(memory, expected)


# Where a strip ends in padding, what lies there in memory is read and masked: but not beyond the tensor.
@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("width", [5, 31, 32, 33, 64, 65, 112])
def test_padding_is_not_read_beyond_the_tensor(width: int, stride: int) -> None:
    rng = np.random.default_rng(width)
    for size, planes in itertools.product((2, 3, 7), (1, 3)):
        x = at_the_end_of_a_page(every(rng, np.int8, (1, planes, 9, width)))
        window = {"window_size": size, "strides": stride, "start_padding": size // 2, "end_padding": size // 2}
        assert_exact(x, np.uint8, rng, **window)
        assert_exact(x[:, :, ::-1], np.uint8, rng, **window)
        assert_exact(x[:, :, :, 1:-1], np.uint8, rng, **window)
