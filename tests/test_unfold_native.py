"""The CPU's rows of UNFOLD, for windows with too many kinds of rows for views: against NumPy's own padding and windows,
in layouts of every kind."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest

import anydml
from anydml._native import compile as compile_plan
from anydml.core.strided_layout import DATA_TYPES, Array, Layout
from anydml.operators import spec
from cases import tensor
from harness import explained
from test_movement_large import Random, assert_computed, drawn

pytestmark = pytest.mark.native


def unfolded(x: Array, window: list[int], strides: list[int], dilations: list[int], pads: list[list[int]]) -> Array:
    padded = np.pad(x, [(0, 0), (0, 0), *pads])
    extents = [(size - 1) * dilation + 1 for size, dilation in zip(window, dilations, strict=True)]
    axes = tuple(range(2, x.ndim))
    views = np.lib.stride_tricks.sliding_window_view(padded, extents, axes)
    views = views[(slice(None), slice(None), *[slice(None, None, step) for step in strides])]
    views = views[(..., *[slice(None, None, dilation) for dilation in dilations])]
    blocks = views.shape[2 : x.ndim]
    spatial = len(window)
    order = (0, 1, *range(2 + spatial, 2 + 2 * spatial), *range(2, 2 + spatial))
    return views.transpose(order).reshape(x.shape[0], x.shape[1] * prod(window), prod(blocks))


def drawn_windows(rng: Random, shape: list[int], most: int) -> tuple[list[int], list[int], list[int], list[list[int]]]:
    window = [int(each) for each in rng.integers(1, most + 1, len(shape) - 2)]
    strides, dilations = ([int(each) for each in rng.integers(1, 4, len(window))] for _ in range(2))
    pads = [[int(each) for each in rng.integers(0, most + 3, 2)] for _ in window]
    for i, size in enumerate(window):
        pads[i][1] += max(0, (size - 1) * dilations[i] + 1 - shape[i + 2] - sum(pads[i]))
    return window, strides, dilations, pads


@pytest.mark.parametrize("seed", range(60))
def test_rows_in_any_layout(seed: int) -> None:
    rng = np.random.default_rng(seed)
    spatial = int(rng.integers(1, 5))
    most = [40, 9, 4, 3][spatial - 1]
    shape = [
        int(rng.integers(1, 3)),
        int(rng.integers(1, 4)),
        *[int(each) for each in rng.integers(1, 2 * most, spatial)],
    ]
    window, strides, dilations, pads = drawn_windows(rng, shape, most)
    dtype = np.dtype([np.uint8, np.float16, np.float32, np.int64][seed % 4])
    x = drawn(rng, shape, dtype)
    expected = unfolded(x, window, strides, dilations, pads)
    starts, ends = zip(*pads, strict=True)
    members = {"WindowSizes": window, "Strides": strides, "Dilations": dilations}
    members |= {"StartPadding": starts, "EndPadding": ends}

    def compute(y: Array) -> None:
        x_layout, y_layout = (Layout(DATA_TYPES[dtype], each.shape, each.strides) for each in (x, y))
        plan = compile_plan("UNFOLD", [x_layout], [y_layout], {name: tuple(each) for name, each in members.items()})
        assert not isinstance(plan, str)
        plan.run([x], [y])

    assert_computed(rng, expected, compute)


@pytest.mark.parametrize("dtype", [np.uint8, np.float16, np.int64])
@pytest.mark.parametrize("strides", [[1, 1], [2, 3]])
def test_many_small_planes(dtype: type, strides: list[int]) -> None:
    """They are put together by shuffles, in several pieces where they are large, and stored past the caches."""
    channels = 8000 * prod(strides) // np.dtype(dtype).itemsize + 1
    x = (np.arange(2 * channels * 143) % 251).astype(dtype).reshape(2, channels, 11, 13)
    expected = unfolded(x, [3, 4], strides, [1, 1], [[1, 0], [2, 1]])
    y = anydml.unfold(x, (3, 4), strides, start_padding=(1, 2), end_padding=(0, 1), device="cpu")
    np.testing.assert_array_equal(y, expected)


def test_windows_of_many_kinds_of_rows_have_a_kernel() -> None:
    padding = {"StartPadding": (66, 60), "EndPadding": (3, 67)}
    x = np.arange(2 * 70 * 71, dtype=np.float32).reshape(1, 2, 70, 71)
    start, end = padding.values()
    window = anydml.unfold(x, (67, 68), start_padding=start, end_padding=end, device="cpu")
    expected = unfolded(x, [67, 68], [1, 1], [1, 1], [[66, 3], [60, 67]])
    np.testing.assert_array_equal(window, expected)
    desc = spec("UNFOLD").desc(
        InputTensor=tensor(x.shape),
        OutputTensor=tensor(expected.shape),
        WindowSizes=(67, 68),
        Strides=(1, 1),
        Dilations=(1, 1),
        **padding,
    )
    engine, kernel = explained(desc)
    assert engine == "cpu", kernel
    assert kernel.startswith("rows of windows of float32")
