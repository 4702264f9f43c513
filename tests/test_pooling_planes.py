"""Pooling of planes of one output each, as of a global average: many are requantised together."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import anydml
from test_join_large import at_the_end_of_a_page

pytestmark = [pytest.mark.native, pytest.mark.slow]

SHAPES = [
    *((3, 5, height, width) for height, width in ((1, 2), (3, 5), (4, 4), (31, 1), (7, 7), (2, 17), (9, 29), (16, 33))),
    (2, 130, 7, 7),
    (70, 1, 3, 11),
    (1, 64, 14, 14),
    (2, 3, 4, 5, 6),
]
KINDS = [(np.uint8, np.int8), (np.int8, np.uint8)]
LAYS = {
    "packed": np.ascontiguousarray,
    "channels outermost": lambda x: np.ascontiguousarray(x.swapaxes(0, 1)).swapaxes(0, 1),
    "channels last": lambda x: np.moveaxis(np.ascontiguousarray(np.moveaxis(x, 1, -1)), -1, 1),
    "backward": lambda x: np.ascontiguousarray(x[:, ::-1, ..., ::-1])[:, ::-1, ..., ::-1],
    "broadcast": lambda x: np.broadcast_to(x[:, :, :1], x.shape),
    "between planes": lambda x: np.repeat(x, 2, axis=1)[:, ::2],
}


def check(x: np.ndarray, out_type: Any, of_channels: bool, scales: tuple[float, float]) -> None:
    rng = np.random.default_rng(x.size)
    count = (x.shape[1],) if of_channels else ()

    def zero_point(kind: Any) -> np.ndarray:
        limits = np.iinfo(kind)
        return rng.integers(limits.min, limits.max, count, kind, endpoint=True)

    factor = rng.integers(1, 9, count).astype(np.float32)
    arguments = (x, np.float32(scales[0]) * factor, zero_point(x.dtype))
    keywords = {"output_scale": scales[1] / factor, "output_zero_point": zero_point(out_type)}
    keywords |= {"window_size": x.shape[2:]}
    expected = anydml.quantized_linear_average_pooling(*arguments, **keywords, device="reference")
    np.testing.assert_array_equal(anydml.quantized_linear_average_pooling(*arguments, **keywords), expected)


@pytest.mark.parametrize("lay", LAYS)
@pytest.mark.parametrize("kinds", KINDS, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_planes_are_exact(shape: tuple[int, ...], kinds: tuple[Any, Any], lay: str) -> None:
    limits = np.iinfo(kinds[0])
    x = np.random.default_rng(len(shape)).integers(limits.min, limits.max, shape, kinds[0], endpoint=True)
    for of_channels in (False, True):
        for scales in ((0.5, 0.5), (0.05, 0.04), (0.3, 0.7), (3.0, 0.001), (1e-30, 1e30), (1e30, 1e-30)):
            check(LAYS[lay](x), kinds[1], of_channels, scales)


@pytest.mark.parametrize("size", [1, 15, 16, 17, 31, 32, 33, 49, 64, 127, 128, 255, 256, 257, 1000, 70001])
def test_nothing_is_read_beyond_the_planes(size: int) -> None:
    x = np.random.default_rng(size).integers(0, 256, (2, 3, 1, size), np.uint8)
    check(at_the_end_of_a_page(x), np.uint8, False, (1.0, 1.0))
    check(at_the_end_of_a_page(np.full_like(x, 255)), np.uint8, False, (1.0, 1.0))
