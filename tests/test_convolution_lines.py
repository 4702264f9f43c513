"""Convolutions whose windows are multiplied where they lie, line by line: exact for whole numbers, whatever the
padding, strides, dilations and layouts; and where weights that are not finite meet padding."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import anydml

pytest.importorskip("anydml._native")

CASES = [
    # image, channels, results, filter, and what else there is
    ((9, 7), 64, 40, 3, {"start_padding": 1, "end_padding": 1}),
    ((7, 7), 512, 33, 3, {"start_padding": 1, "end_padding": 1}),
    ((6, 13), 1024, 17, 3, {}),
    ((11, 15), 512, 16, 3, {"strides": 2, "start_padding": 1, "end_padding": 0}),
    ((12, 17), 19, 70, 5, {"strides": 2, "start_padding": 2, "end_padding": 2}),
    ((5, 14), 16, 8, (1, 7), {"start_padding": (0, 3), "end_padding": (0, 3)}),
    ((14, 6), 16, 8, (7, 1), {"start_padding": (3, 0), "end_padding": (3, 0)}),
    ((16, 16), 24, 24, 3, {"dilations": (2, 3), "start_padding": 3, "end_padding": 3}),
    ((3, 9), 8, 8, (2, 3), {"start_padding": (5, 4), "end_padding": (4, 7)}),
    ((4, 230), 12, 35, 3, {"start_padding": 1, "end_padding": 1}),
    ((40, 5), 48, 64, 3, {"strides": 1}),
    ((4, 5), 700, 40, 1, {}),
    ((9, 8), 1024, 20, 1, {}),
    ((9, 9), 200, 20, 1, {"strides": 2}),
    ((3, 4), 130, 33, 3, {"start_padding": 1, "end_padding": 1}),
    ((2, 3000), 40, 9, (1, 3), {"start_padding": (0, 1), "end_padding": (0, 1)}),
]
LAYS = {
    "packed": np.ascontiguousarray,
    "channels last": lambda x: np.moveaxis(np.ascontiguousarray(np.moveaxis(x, 1, -1)), -1, 1),
    "channels of more": lambda x: np.moveaxis(np.repeat(np.moveaxis(x, 1, -1), 2, axis=2)[:, :, ::2], -1, 1),
    "backward": lambda x: np.moveaxis(np.ascontiguousarray(np.moveaxis(x, 1, -1)[:, ::-1, ::-1]), -1, 1)[
        :, :, ::-1, ::-1
    ],
}


def _given(case: Any, lay: str) -> tuple[np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
    image, channels, results, taps, options = case
    rng = np.random.default_rng(channels)
    window = (taps, taps) if isinstance(taps, int) else taps
    x = rng.integers(-3, 4, (2, channels, *image)).astype(np.float32)
    w = rng.integers(-3, 4, (results, channels, *window)).astype(np.float32)
    bias = rng.integers(-9, 9, (1, results, 1, 1)).astype(np.float32)
    return LAYS[lay](x), w, bias, options


@pytest.mark.parametrize("lay", LAYS)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_whole_numbers_are_exact(case: Any, lay: str) -> None:
    x, w, bias, options = _given(case, lay)
    found = anydml.convolution(x, w, bias, **options)
    np.testing.assert_array_equal(found, anydml.convolution(x, w, bias, **options, device="reference"))


@pytest.mark.parametrize("value", [np.inf, np.nan])
@pytest.mark.parametrize("case", [CASES[0], CASES[4], CASES[7], CASES[8]], ids=str)
def test_weights_that_are_not_finite_do_not_count_on_padding(case: Any, value: float) -> None:
    x, w, bias, options = _given(case, "channels last")
    x = np.abs(x) + 1
    w[1, 2, 0, -1] = w[3, 0, -1, 0] = value
    found = anydml.convolution(x, w, bias, **options)
    np.testing.assert_array_equal(found, anydml.convolution(x, w, bias, **options, device="reference"))


PLANES = [
    # image, channels, results, filter, groups, and what else there is
    ((37, 29), 3, 40, 7, 1, {"strides": 2, "start_padding": 3, "end_padding": 3}),
    ((9, 70), 1, 33, (3, 5), 1, {"start_padding": (1, 0), "end_padding": (2, 4)}),
    ((17, 15), 5, 16, 3, 1, {"dilations": 2, "start_padding": 2, "end_padding": 2}),
    ((9, 11), 4 * 34, 4 * 35, 1, 4, {}),
    ((13, 9), 24, 112, 1, 4, {}),
    ((10, 9), 3 * 40, 3 * 33, 1, 3, {"strides": 2}),
    ((9, 9), 2 * 34, 2 * 17, 3, 2, {"start_padding": 1, "end_padding": 1}),
]


@pytest.mark.parametrize("reads_last", [False, True])
@pytest.mark.parametrize("case", PLANES, ids=str)
def test_planes_and_channels_last_on_one_side(case: Any, reads_last: bool) -> None:
    """Where channels lie last in the input, or in the output alone."""
    *image, groups, options = case
    x, w, bias, options = _given((*image, options), "channels last" if reads_last else "packed")
    w = np.ascontiguousarray(w[:, : w.shape[1] // groups])
    wanted = anydml.convolution(x, w, bias, group_count=groups, **options, device="reference")
    given = LAYS["packed" if reads_last else "channels last"](np.full_like(wanted, np.nan))
    np.testing.assert_array_equal(anydml.convolution(x, w, bias, group_count=groups, **options, out=given), wanted)


def test_groups_have_the_bits_of_each_alone() -> None:
    """Though the tasks of all of them are shared out at once."""
    rng = np.random.default_rng(5)
    lay = LAYS["channels last"]
    x = lay(rng.standard_normal((2, 4 * 48, 30, 31)).astype(np.float32))
    w = rng.standard_normal((4 * 64, 48, 1, 1)).astype(np.float32)
    found = anydml.convolution(x, w, None, group_count=4, out=lay(np.zeros((2, 256, 30, 31), np.float32)))
    for group in range(4):
        part = slice(group * 48, group * 48 + 48), slice(group * 64, group * 64 + 64)
        alone = anydml.convolution(lay(x[:, part[0]]), w[part[1]], None)
        np.testing.assert_array_equal(found[:, part[1]], alone)
