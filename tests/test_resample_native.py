"""The CPU's kernels of interpolation: exact arithmetic, and the reference's bits in layouts of every kind, and in sizes
that fit no vector, no block and no buffer."""

from __future__ import annotations

from fractions import Fraction
from math import prod
from typing import Any

import numpy as np
import pytest

import anydml
from anydml.core.enums import AxisDirection, InterpolationMode
from anydml.core.strided_layout import Array
from anydml.operators import spec
from anydml.operators.schema import OperatorDesc
from anydml.operators.specs.resample import taps_of
from cases import tensor
from harness import bits, explained
from test_movement_large import Random, assert_computed, laid_out

pytestmark = pytest.mark.native

TYPES = {"FLOAT32": np.float32, "FLOAT16": np.float16, "INT8": np.int8, "UINT8": np.uint8}
SCALES = (1, 1, 2, 3, 1.5, 11 / 7, 0.5, 1 / 3, 0.3, 0.02, 40)


def filled(rng: Random, x: Array) -> Array:
    """With numbers of which sums are rounded, and some that are none."""
    if x.dtype.kind == "f":
        x[...] = rng.normal(size=x.shape) * 100
        if rng.random() < 0.3:
            x[rng.random(x.shape) < 0.05] = rng.choice([np.inf, -np.inf, np.nan, -0.0])
    else:
        x[...] = rng.integers(np.iinfo(x.dtype).min, np.iinfo(x.dtype).max + 1, x.shape)
    return x


def quiet(x: Array) -> Array:
    """With one NaN in place of all, whose bits processors choose as they like."""
    x = np.array(x)
    if x.dtype.kind == "f":
        x[np.isnan(x)] = np.nan
    return x


@pytest.mark.parametrize("seed", range(120))
def test_any_layout_has_the_bits_of_the_reference(seed: int) -> None:
    rng = np.random.default_rng(seed)
    is_gradient = bool(rng.random() < 0.3)
    dtype = np.dtype([*TYPES.values()][int(rng.integers(0, 2 if is_gradient else 4))])
    rank = int(rng.integers(1, 5))
    shape = [int(each) for each in np.exp(rng.uniform(0, np.log([5000, 300, 50, 20][rank - 1]), rank))]
    scales = [float(each) for each in rng.choice(SCALES, rank)]
    natural = [size / scale if is_gradient else size * scale for size, scale in zip(shape, scales, strict=True)]
    sizes = [max(1, min(int(each), 200_000)) for each in natural]
    while prod(sizes) > 300_000:
        sizes[int(np.argmax(sizes))] //= 3
    options: dict[str, Any] = {"scales": scales, "interpolation_mode": str(rng.choice(["linear", "nearest_neighbor"]))}
    options["output_pixel_offsets"] = float(rng.choice([-0.5, -0.5, 0, 2, 1000]))
    if rng.random() < 0.5:
        options["rounding_direction"] = str(rng.choice(["increasing", "decreasing"]))
    if not is_gradient and rng.random() < 0.4:
        options["antialiased"] = True
    function = anydml.resample_grad if is_gradient else anydml.resample
    x = filled(rng, laid_out(rng, shape, dtype, broadcasts=False)[1])
    expected = np.asarray(function(x, **options, output_sizes=sizes, device="reference"))

    def compute(y: Array) -> None:
        function(x, **options, out=y, device="cpu")
        y[...] = quiet(y)

    assert_computed(rng, quiet(expected), compute)


def desc_of(name: str, shape: tuple[int, ...], sizes: tuple[int, ...], data_type: str, **members: Any) -> OperatorDesc:
    found = spec(name)
    first, second = found.tensors
    given = {
        first: tensor(shape, data_type),
        second: tensor(sizes, data_type),
        "InterpolationMode": InterpolationMode.LINEAR,
        "RoundingDirection": AxisDirection.DECREASING,
        "Scales": [1.5] * len(shape),
        "InputPixelOffsets": [0.5] * len(shape),
        "OutputPixelOffsets": [-0.5] * len(shape),
        "Antialiased": True,
    }
    return found.desc(**{name: value for name, value in {**given, **members}.items() if name in found.members})


@pytest.mark.parametrize("name", ["RESAMPLE", "RESAMPLE1", "RESAMPLE2", "RESAMPLE3", "RESAMPLE_GRAD", "RESAMPLE_GRAD1"])
@pytest.mark.parametrize("mode", [*InterpolationMode])
def test_every_type_has_a_kernel(name: str, mode: InterpolationMode) -> None:
    for data_type in [*TYPES][: 2 if "GRAD" in name else 4]:
        for rank in range(1, 5):
            desc = desc_of(name, (6,) * rank, (9,) * rank, data_type, InterpolationMode=mode)
            assert explained(desc)[0] == "cpu", desc


@pytest.mark.parametrize("channels", [1, 3, 17, 300])
@pytest.mark.parametrize("ratio", [Fraction(2), Fraction(5, 3), Fraction(1, 2), Fraction(2, 7)])
def test_two_dimensions_are_within_the_rounding_of_exact_sums(ratio: Fraction, channels: int) -> None:
    """Of whole numbers, whose products with the whole numerators of weights are exact."""
    height, width = 14, 21
    x = np.random.default_rng(channels).integers(-1000, 1000, (height, width, channels)).astype(np.float32)
    y = anydml.resample(x, (float(ratio), float(ratio), 1), device="cpu")
    exact, denominator = x.astype(np.int64), 1
    for axis, size in ((0, y.shape[0]), (1, y.shape[1])):
        places = [(Fraction(2 * o + 1) / ratio - 1) / 2 for o in range(size)]
        unit = 2 * ratio.numerator
        last = exact.shape[axis] - 1
        numbers = [int(min(max(place, Fraction(0)), Fraction(last)) * unit) for place in places]
        low = np.array(numbers) // unit
        part = (np.array(numbers) % unit).reshape(-1, *[1] * (2 - axis))
        exact = np.take(exact, low, axis) * (unit - part) + np.take(exact, np.minimum(low + 1, last), axis) * part
        denominator *= unit
    wanted = exact / denominator
    assert (np.abs(y - wanted) <= np.spacing(np.abs(wanted).astype(np.float32)) * 0.500001 + 1e-12).all()


@pytest.mark.parametrize(
    ("size", "scale", "out_size"), [(100_000, 1e-9, 50_000), (100_000, 0.01, 1000), (7, 1e-6, 9999)]
)
def test_antialiased_weights_take_memory_for_elements_and_not_for_pairs(size: int, scale: float, out_size: int) -> None:
    desc = desc_of("RESAMPLE3", (size,), (out_size,), "FLOAT32", Scales=[scale])
    (taps,) = taps_of(desc)
    assert len(taps.weights) <= 4 * (size + out_size)
    sums = np.add.reduceat(taps.weights, np.unique(taps.starts))
    np.testing.assert_allclose(sums, 1, rtol=1e-9)


def test_gradients_of_what_all_outputs_are_made_of_are_sparse() -> None:
    desc = desc_of("RESAMPLE_GRAD", (20_000,), (10_000,), "FLOAT32", Scales=[2], OutputPixelOffsets=[1e6])
    (taps,) = taps_of(desc)
    assert len(taps.weights) == 20_000
    y = anydml.resample_grad(
        np.ones(20_000, np.float32), 2, output_pixel_offsets=1e6, output_sizes=10_000, device="cpu"
    )
    np.testing.assert_array_equal(y, [20_000] + [0] * 9_999)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize(("height", "width"), [(1, 1), (2, 3), (5, 4)])
def test_upsampled_by_whole_weights(dtype: Any, height: int, width: int) -> None:
    """In any layout, the reference's bits."""
    rng = np.random.default_rng(height)
    for channels in (1, 3, 40):
        x = filled(rng, laid_out(rng, (2, channels, 9, 13), np.dtype(dtype), broadcasts=False)[1])
        desc = anydml.DML_SIZE_2D(Width=width, Height=height)
        expected = anydml.upsample_2d(x, desc, "linear", device="reference")
        found = anydml.upsample_2d(x, desc, "linear", device="cpu")
        np.testing.assert_array_equal(quiet(found).view(bits(found)), quiet(expected).view(bits(expected)))
