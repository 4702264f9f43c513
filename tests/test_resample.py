"""RESAMPLE and its revisions against exact arithmetic, and against PyTorch's own interpolation."""

from __future__ import annotations

from fractions import Fraction
from math import floor

import numpy as np
import pytest

import anydml


@pytest.mark.parametrize(("size", "out_size"), [(5, 11), (7, 3), (16, 49), (49, 7), (13, 13), (1, 4)])
def test_linear_is_exact_interpolation_rounded_once(size: int, out_size: int) -> None:
    x = np.random.default_rng(size).integers(-1000, 1000, size).astype(np.float32)
    y = anydml.resample(x, out_size / size, output_sizes=out_size)
    for o, found in enumerate(y):
        place = min(max((o + Fraction(1, 2)) * size / out_size - Fraction(1, 2), Fraction(0)), Fraction(size - 1))
        low = floor(place)
        exact = Fraction(float(x[low])) + (place - low) * Fraction(float(x[min(low + 1, size - 1)] - x[low]))
        assert abs(Fraction(float(found)) - exact) <= Fraction(float(np.spacing(np.float32(abs(float(exact)) + 1e-3))))


@pytest.mark.parametrize("ratio", range(1, 100))
def test_nearest_of_a_ratio_is_at_whole_places(ratio: int) -> None:
    x = np.arange(8 * ratio, dtype=np.float32)
    y = anydml.resample(
        x,
        1 / ratio,
        "nearest_neighbor",
        input_pixel_offsets=0,
        output_pixel_offsets=0,
        rounding_direction="decreasing",
        output_sizes=8,
    )
    np.testing.assert_array_equal(y, x[::ratio])


@pytest.mark.parametrize("sizes", [(5, 7, 11, 3), (8, 8, 16, 24), (9, 6, 4, 13)])
def test_as_pytorch_and_its_gradients(sizes: tuple[int, int, int, int]) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    height, width, *out_sizes = sizes
    random = np.random.default_rng(0)
    x = random.normal(size=(1, 2, height, width)).astype(np.float32)
    scales = (1, 1, out_sizes[0] / height, out_sizes[1] / width)
    y = anydml.resample(x, scales, output_sizes=(1, 2, *out_sizes))
    there = torch.from_numpy(x).double().requires_grad_()
    expected = torch.nn.functional.interpolate(there, size=out_sizes, mode="bilinear", align_corners=False)
    np.testing.assert_allclose(y, expected.detach(), rtol=1e-6, atol=1e-6)
    gradient = random.normal(size=y.shape).astype(np.float32)
    expected.backward(torch.from_numpy(gradient).double())
    found = anydml.resample_grad(gradient, scales, output_sizes=x.shape)
    np.testing.assert_allclose(found, there.grad, rtol=1e-6, atol=1e-6)
