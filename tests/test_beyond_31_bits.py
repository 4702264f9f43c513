"""Tensors of more elements than 31 bits count: what reduces, selects, scatters, resamples, has windows or regions finds
its way beyond them.

They are of bytes, and most of them zeros that take no memory until they are written.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import anydml
from anydml.core.strided_layout import Array

SIZE = 2**31 + 1000
PLACES = [0, 1, 2**31 - 1, 2**31, SIZE - 2, SIZE - 1]


@pytest.fixture(scope="module")
def line() -> Array:
    """Zeros, but for a few numbers that grow."""
    x = np.zeros(SIZE, np.uint8)
    x[PLACES] = range(1, 7)
    x.flags.writeable = False
    return x


def test_the_largest(line: Array) -> None:
    assert anydml.argmax(line, output_dtype="int64").tolist() == [SIZE - 1]
    assert anydml.argmin(line, reverse=True, output_dtype="int64").tolist() == [SIZE - 3]
    assert anydml.reduce(line, "MAX").tolist() == [6]


def test_the_largest_of_rows_and_columns(line: Array) -> None:
    rows = line[: 2**31].reshape(-1, 2**20)
    np.testing.assert_array_equal(anydml.argmax(rows, 1).ravel(), [1, *[0] * 2046, 2**20 - 1])
    assert anydml.reduce(line.reshape(-1, 3), "MAX", 0).tolist() == [[1, 5, 6]]
    found = anydml.argmax(line.reshape(-1, 4), 0, output_dtype="int64")
    assert found.tolist() == [[2**29, 0, SIZE // 4 - 1, SIZE // 4 - 1]]


def test_the_first_of_many(line: Array) -> None:
    values, indices = anydml.top_k(line, 4)
    assert values.tolist() == [6, 5, 4, 3]
    assert indices.tolist() == [SIZE - 1, SIZE - 2, 2**31, 2**31 - 1]


def test_coordinates(line: Array) -> None:
    assert anydml.nonzero_coordinates(line).ravel().tolist() == PLACES


def test_elements_by_indices(line: Array) -> None:
    indices = np.array([2**31 + 7, SIZE - 1, -SIZE, 2**31 - 1], np.int64)
    np.testing.assert_array_equal(anydml.gather_elements(line, indices), [0, 6, 1, 3])
    np.testing.assert_array_equal(anydml.gather_nd(line, indices[:, None]).ravel(), [0, 6, 1, 3])


def test_scattered_elements(line: Array) -> None:
    indices, updates = np.array([2**31 + 7, 0, -1], np.int64), np.array([91, 92, 93], np.uint8)
    y = anydml.scatter_elements(line, indices, updates)
    assert np.flatnonzero(y[2**31 - 9 :]).tolist() == [8, 9, 16, 1007, 1008]
    assert y[[0, 2**31 + 7, SIZE - 1]].tolist() == [92, 91, 93]


def test_a_copy_of_what_is_nearest(line: Array) -> None:
    height, width = 21000, 2**31 // 84000 + 1
    x = line[-height * width :].reshape(1, 1, height, width)
    y = anydml.resample(x, [1, 1, 2, 2], "NEAREST_NEIGHBOR")
    assert y.size > 2**31
    assert y[0, 0, -2:, -4:].tolist() == [[5, 5, 6, 6]] * 2


def test_windows(line: Array) -> None:
    """The two elements of the first and of the last window of the first row and of the last one."""
    x = line.reshape(1, 1, 8, -1)
    width = x.shape[-1]
    y = anydml.unfold(x, (1, 2), (7, width - 2))
    assert y.tolist() == [[[1, 0, 0, 5], [2, 0, 0, 6]]]
    y = anydml.unfold(x[..., ::-1, ::-1], (1, 2), (7, width - 2))
    assert y.tolist() == [[[6, 0, 0, 2], [5, 0, 0, 1]]]


def test_sums_of_windows() -> None:
    """Of a window that is nearly as long as what comes out, at its few places."""
    places, window = 8, 2**28 + 5
    x = np.zeros((1, window, places), np.uint8)
    assert x.size > 2**31
    x[0, -1] = range(1, places + 1)
    x[0, window // 2] = 7
    y = anydml.fold(x, window + places - 1, window)
    assert y[0, 0, -places:].tolist() == [*range(1, places + 1)]
    assert y[0, 0, window // 2 : window // 2 + places].tolist() == [7] * places
    assert np.count_nonzero(y) == 2 * places


@pytest.fixture(scope="module")
def channels() -> Array:
    """Planes of zeros, but for the first, the last before 2^31 elements and the last."""
    x = np.zeros((1, 2**15 + 3, 256, 256), np.float16)
    x[0, [0, 2**15 - 1, -1], 254:, 254:] = [[[1, 2], [3, 4]], [[5, 6], [7, 8]], [[9, 10], [11, 12]]]
    x.flags.writeable = False
    return x


def test_regions(channels: Array) -> None:
    roi, image = np.array([[254, 254, 256, 256]], np.float16), np.zeros(1, np.uint32)
    expected = np.zeros((2**15 + 3, 3))
    expected[[0, 2**15 - 1, -1]] = [[2.5, 4, 3], [6.5, 8, 7], [10.5, 12, 11]]
    # Of a bin between elements the average is that of all four, and the largest sample the same.
    y = anydml.roi_align(channels, roi, image, 1, maximum_samples_per_output=1)
    np.testing.assert_array_equal(y.ravel(), expected[:, 0])
    y = anydml.roi_pooling(channels, np.array([[0, 254, 254, 255, 255]], np.float16), 1)
    np.testing.assert_array_equal(y.ravel(), expected[:, 1])
    # The slope of a sample by the left and the top end of its region: half of that between elements, 1 and 2 each.
    ones = np.ones((1, 2**15 + 3, 1, 1), np.float16)
    options: dict[str, Any] = {"of_x": False, "of_roi": True, "maximum_samples_per_output": 1}
    (y,) = anydml.roi_align_grad(ones, roi, image, channels, **options)
    np.testing.assert_array_equal(y.ravel()[:2], [1.5, 3])
