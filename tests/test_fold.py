"""FOLD against exact sums, of any window, and what it is to windows that do not overlap."""

from __future__ import annotations

from fractions import Fraction
from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import anydml
from harness import ENGINES
from test_properties import property_test


@st.composite
def windows(draw: Any) -> dict[str, Any]:
    """A window of which at least one block fits."""
    n = draw(st.integers(1, 3))
    each = [
        draw(
            st.tuples(*(st.integers(*ends) for ends in [(1, 6), (1, 3), (1, 3), (1, 2), (0, 2), (0, 2)])).filter(
                lambda d: (d[1] - 1) * d[3] < d[0] + d[4] + d[5]
            )
        )
        for _ in range(n)
    ]
    names = "output_sizes", "window_sizes", "strides", "dilations", "start_padding", "end_padding"
    return dict(zip(names, map(list, zip(*each, strict=True)), strict=True))


def elements_of(window: dict[str, Any]) -> np.ndarray:
    """For each element of the window and each block the element of the output, counted row-major; -1 on padding."""
    sizes = window["output_sizes"]
    numbers = np.pad(
        np.arange(prod(sizes)).reshape(sizes),
        list(zip(window["start_padding"], window["end_padding"], strict=True)),
        constant_values=-1,
    )
    extents = [(k - 1) * d + 1 for k, d in zip(window["window_sizes"], window["dilations"], strict=True)]
    views = np.lib.stride_tricks.sliding_window_view(numbers, extents)
    blocks = views[tuple(slice(None, None, step) for step in window["strides"])]
    n = len(sizes)
    taps = blocks[(..., *(slice(None, None, step) for step in window["dilations"]))]
    return np.moveaxis(taps, range(n), range(n, 2 * n)).reshape(prod(window["window_sizes"]), -1)


@pytest.mark.parametrize("engine", ENGINES)
@property_test
@given(window=windows(), data=st.data())
def test_sums_are_exact_and_rounded_once(engine: str, window: dict[str, Any], data: st.DataObject) -> None:
    """Of so few elements double precision holds all that singles of these exponents sum to."""
    places = elements_of(window)
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    x = (rng.standard_normal((2, 3, *places.shape)) * 2.0 ** rng.integers(-6, 6, places.shape)).astype(np.float32)
    y = anydml.fold(x.reshape(2, -1, places.shape[1]), **window, device=engine)
    assert y.shape == (2, 3, *window["output_sizes"])
    for image, columns in zip(y.reshape(6, -1), x.reshape(6, *places.shape), strict=True):
        sums = [Fraction(0)] * image.size
        for place, value in zip(places.reshape(-1), columns.reshape(-1), strict=True):
            if place >= 0:
                sums[place] += Fraction(float(value))
        for actual, exact in zip(image, sums, strict=True):
            assert actual == np.float32(float(exact))


@property_test
@given(window=windows(), dtype=st.sampled_from(["u1", "i2", "u4", "i8"]), seed=st.integers(0, 2**32))
def test_integers_wrap(window: dict[str, Any], dtype: str, seed: int) -> None:
    places = elements_of(window)
    bytes_ = np.random.default_rng(seed).bytes(2 * places.size * np.dtype(dtype).itemsize)
    x = np.frombuffer(bytes_, dtype).reshape(1, 2, *places.shape)
    expected = np.zeros((2, prod(window["output_sizes"]) + 1), dtype)
    for image, columns in zip(expected, x[0], strict=True):
        np.add.at(image, places, columns)
    y = anydml.fold(x.reshape(1, -1, places.shape[1]), **window)
    np.testing.assert_array_equal(y.reshape(2, -1), expected[:, :-1])


def test_other_libraries_words() -> None:
    x = np.zeros((1, 4, 3), np.float32)
    with pytest.raises(anydml.DMLError, match="Did you mean window_sizes"):
        anydml.fold(x, 4, kernel_size=2)
    with pytest.raises(anydml.DMLError, match="Did you mean output_sizes"):
        anydml.fold(x, window_sizes=2, output_size=4)


def test_channels_that_do_not_come_out() -> None:
    with pytest.raises(anydml.DMLError, match=r"FOLD.x.shape\[1\]: found 5, expected 4, 2 channels of out times 2"):
        anydml.fold(np.zeros((1, 5, 3), np.float32), 4, 2)
