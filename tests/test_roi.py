"""Regions of interest against exact arithmetic, and whatever regions hold."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from math import ceil, floor
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
import pytest

import anydml
from anydml import DML_ROI_POOLING_OPERATOR_DESC, DML_SIZE_2D
from anydml.core.strided_layout import Layout
from anydml.operators import spec_of
from cases import Case, roi_align, roi_pooling, tensor_of
from harness import ENGINES, GPU, assert_same, run

MANY = 2**32 - 1
ON = [engine for engine in ENGINES if engine != GPU]


class Options(NamedTuple):
    """How an exact ROI_ALIGN samples; offsets, scales and regions are multiples of powers of 2."""

    least: int = 1
    most: int = MANY
    input_offset: float = 0.5
    output_offset: float = -0.5
    to_corners: bool = False
    outside: float = 0.0

    def arguments(self) -> dict[str, Any]:
        return {
            "minimum_samples_per_output": self.least,
            "maximum_samples_per_output": self.most,
            "input_pixel_offset": self.input_offset,
            "output_pixel_offset": self.output_offset,
            "align_regions_to_corners": self.to_corners,
        }


OPTIONS = [
    Options(),
    Options(2, 2),
    Options(3, 5, outside=7.0),
    Options(0, 1),
    Options(1, 4, input_offset=0.0),
    Options(2, 3, 0.25, 0.125),
    Options(1, 2, 0.0, 0.0, to_corners=True),
    Options(1, 1, 0.5, -0.5, to_corners=True, outside=-3.0),
]
REGIONS = [
    (0, 0, 7, 5),
    (1.25, 0.5, 4.75, 4.125),
    (6.5, 4, 1.5, 0.75),
    (2.125, 3.375, 2.125, 3.375),
    (-4.125, -1, 12, 3),
]
REGIONS += [(-9, -9, -5, -5), (3, 1, 3.0625, 5)]
SIZES = [(1, 1), (2, 3), (5, 4), (3, 17)]


def places(begin: Fraction, end: Fraction, outputs: int, options: Options) -> list[list[Fraction]]:
    """Of the samples of each element of the output."""
    length = end - begin
    number = min(max(ceil(abs(length) / outputs), options.least, 1), options.most)
    total = number * outputs

    def place(s: int) -> Fraction:
        if not options.to_corners:
            along = (s - Fraction(options.output_offset)) / total
        else:
            along = Fraction(s, total - 1) if total > 1 else Fraction(1, 2)
        return begin + along * length - Fraction(options.input_offset)

    return [[place(o * number + k) for k in range(number)] for o in range(outputs)]


def taps(place: Fraction, size: int) -> list[tuple[int, Fraction]] | None:
    """Elements and weights; None outside."""
    if not -1 <= place <= size:
        return None
    place = min(max(place, Fraction(0)), Fraction(size - 1))
    low = floor(place)
    return [(low, 1 - (place - low))] + [(low + 1, place - low)] * (place > low)


def exact_samples(
    x: np.ndarray, region: tuple[Fraction, ...], sizes: tuple[int, int], options: Options
) -> Iterator[list[Fraction]]:
    """Of each element of the output, by rows, those of one image {H, W}."""
    rows, columns = (places(region[i], region[i + 2], sizes[1 - i], options) for i in (1, 0))
    for down in rows:
        for across in columns:
            samples = []
            for y in down:
                for at in across:
                    by_row, by_column = taps(y, x.shape[0]), taps(at, x.shape[1])
                    if by_row is None or by_column is None:
                        samples.append(Fraction(options.outside))
                    else:
                        samples.append(sum((a * b * int(x[i, j]) for i, a in by_row for j, b in by_column), Fraction()))
            yield samples


def near(found: Any, exact: Fraction, terms: Fraction) -> bool:
    """To half a unit in the last place, and what double precision leaves of the sum of absolute values."""
    half = Fraction(float(np.spacing(np.float32(abs(float(exact)))))) / 2
    return abs(Fraction(float(found)) - exact) <= half + terms / 2**45


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("function", ["average", "max"])
def test_samples_are_exact_and_rounded_once(sizes: tuple[int, int], options: Options, function: str) -> None:
    x = np.random.default_rng(0).integers(-1000, 1000, (5, 7))
    y = anydml.roi_align(
        x[None, None].astype(np.float32),
        np.array(REGIONS, np.float32),
        np.zeros(len(REGIONS), np.uint32),
        sizes,
        reduction_function=function,
        out_of_bounds_input_value=options.outside,
        **options.arguments(),
    )
    for region, found in zip(REGIONS, y, strict=True):
        exact = exact_samples(x, tuple(map(Fraction, region)), sizes, options)
        for value, samples in zip(found.reshape(-1), exact, strict=True):
            wanted = max(samples) if function == "max" else sum(samples, Fraction()) / len(samples)
            assert near(value, wanted, Fraction(8000)), (region, float(value), float(wanted))


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("function", ["average", "max"])
@pytest.mark.parametrize("mode", ["linear", "nearest_neighbor"])
def test_gradients_are_what_outputs_are_made_of(options: Options, function: str, mode: str) -> None:
    """Of a linear function f(x) = A x the gradient of g is A^T g, so that f(x) * g = x * (A^T g); a maximum is one in a
    neighbourhood of x."""
    random = np.random.default_rng(1)
    x = random.integers(1, 1000, (2, 3, 5, 7)).astype(np.float32)
    rois, indices = np.array(REGIONS, np.float32), np.arange(len(REGIONS), dtype=np.uint32) % 2
    shared = {"reduction_function": function, "interpolation_mode": mode, **options.arguments()}
    # What is outside counts for nothing: of a maximum it is the least there is.
    y = anydml.roi_align(x, rois, indices, (2, 3), out_of_bounds_input_value=0, **shared)
    g = random.integers(-9, 10, y.shape).astype(np.float32)
    (of_x,) = anydml.roi_align_grad(g, rois, indices, x, **shared)
    left, right = (np.sum(a.astype(np.float64) * b) for a, b in ((y, g), (of_x, x)))
    np.testing.assert_allclose(left, right, rtol=1e-5, atol=1e-2)
    both = anydml.roi_align_grad(g, rois, indices, x, of_roi=True, **shared)
    np.testing.assert_array_equal(both[0], of_x)
    (of_roi,) = anydml.roi_align_grad(g, rois, indices, x, of_x=False, of_roi=True, **shared)
    np.testing.assert_array_equal(both[1], of_roi)
    if function == "average":
        (alone,) = anydml.roi_align_grad(g, rois, indices, output_sizes=x.shape, **shared)
        np.testing.assert_array_equal(of_x, alone)


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("function", ["average", "max"])
def test_gradients_of_regions_are_derivatives(options: Options, function: str) -> None:
    """By differences, which between two elements are those of a linear function of each coordinate."""
    options = options._replace(outside=0.0, least=max(options.least, 1), most=min(options.most, 3))
    options = options._replace(least=options.most)
    x = np.random.default_rng(2).integers(-1000, 1000, (5, 7))
    regions = [(0.3125, 0.40625, 5.71875, 4.15625), (5.46875, 3.90625, 1.28125, 0.8125)]
    sizes, h = (2, 3), Fraction(1, 2**20)
    g = np.random.default_rng(3).integers(-9, 10, (len(regions), 1, *sizes))
    (found,) = anydml.roi_align_grad(
        g.astype(np.float32),
        np.array(regions, np.float32),
        np.zeros(len(regions), np.uint32),
        x[None, None].astype(np.float32),
        of_x=False,
        of_roi=True,
        reduction_function=function,
        **options.arguments(),
    )

    def value(region: list[Fraction], gradient: np.ndarray) -> Fraction:
        exact = exact_samples(x, tuple(region), sizes, options)
        reduced = [max(each) if function == "max" else sum(each, Fraction()) / len(each) for each in exact]
        return sum((a * int(b) for a, b in zip(reduced, gradient.reshape(-1), strict=True)), Fraction())

    for r, region in enumerate(regions):
        at = list(map(Fraction, region))
        for k in range(4):
            moved = [[each + (i == k) * step for i, each in enumerate(at)] for step in (h, -h)]
            wanted = (value(moved[0], g[r]) - value(moved[1], g[r])) / (2 * h)
            assert near(found[r, k], wanted, Fraction(10**6)), (region, k, float(found[r, k]), float(wanted))


def test_a_region_of_all_there_is_takes_no_longer_than_the_input() -> None:
    x = np.arange(12, dtype=np.float32).reshape(1, 1, 3, 4)
    far = float(np.finfo(np.float32).max)
    regions = [(-far, -far, far, far), (0, 0, far, far), (-(2.0**31), -(2.0**31), 2.0**31, 2.0**31), (0, 0, 2.0**40, 1)]
    rois, indices = np.array(regions, np.float32), np.zeros(len(regions), np.uint32)
    start = perf_counter()
    for device in ON:
        y = anydml.roi_align(x, rois, indices, 2, out_of_bounds_input_value=3, device=device)
        np.testing.assert_allclose(y, 3, rtol=1e-5)
        y = anydml.roi_align(x, rois[2:], indices[2:], 1, reduction_function="max", device=device)
        # Of 2^32 - 1 samples the first is at 127.5.
        assert y.reshape(-1).tolist() == [11, 0]
    assert perf_counter() - start < 20


_WORDS = [
    0,
    1,
    0x80000000,
    0x7F800000,
    0xFF800000,
    0x7FC00000,
    0xFFFFFFFF,
    0x7F7FFFFF,
    0xFF7FFFFF,
    0x4F000000,
    0xCF000000,
]
_WORDS += [0x3F800000, 0x40000000, 0x40800000, 0xBF800000, 0x3F000000, 0xBF000001, 0x5F800000, 0xDF800000]


@pytest.mark.parametrize("seed", range(4))
def test_whatever_regions_hold_engines_agree(seed: int) -> None:
    """Bits of any numbers, in memory whose every other byte is watched."""
    random = np.random.default_rng(seed)
    x = random.normal(size=(2, 2, 3, 5)).astype(np.float32)
    words = random.choice(np.array(_WORDS, np.uint32), (1, 1, 40, 5))
    rois = np.where(random.random(words.shape) < 0.9, words, random.integers(0, 2**32, words.shape)).astype(np.uint32)
    rois = rois.view(np.float32)
    pooled = np.zeros((40, 2, 2, 3), np.float32)
    pooling = DML_ROI_POOLING_OPERATOR_DESC(
        InputTensor=tensor_of(x),
        ROITensor=tensor_of(rois),
        OutputTensor=tensor_of(pooled),
        SpatialScale=1,
        PooledSize=DML_SIZE_2D(Width=3, Height=2),
    )
    agree(pooling, [x, rois])
    corners, indices = np.ascontiguousarray(rois[0, 0, :, 1:]), random.integers(0, 2, 40).astype(np.uint32)
    for function in (roi_align.AVERAGE, roi_align.MAX):
        members = roi_align._members("ROI_ALIGN_GRAD", function=function)
        align = anydml.DML_ROI_ALIGN_OPERATOR_DESC(
            InputTensor=tensor_of(x),
            ROITensor=tensor_of(corners),
            BatchIndicesTensor=tensor_of(indices),
            OutputTensor=tensor_of(pooled),
            **roi_align._members("ROI_ALIGN", function=function),
        )
        agree(align, [x, corners, indices])
        gradient = random.normal(size=pooled.shape).astype(np.float32)
        grad = anydml.DML_ROI_ALIGN_GRAD_OPERATOR_DESC(
            InputTensor=tensor_of(x),
            InputGradientTensor=tensor_of(gradient),
            ROITensor=tensor_of(corners),
            BatchIndicesTensor=tensor_of(indices),
            OutputGradientTensor=tensor_of(x),
            OutputROIGradientTensor=tensor_of(corners),
            **members,
        )
        agree(grad, [x, gradient, corners, indices])


def agree(desc: Any, inputs: list[np.ndarray]) -> None:
    first, second = (run(engine, desc, inputs) for engine in ON)
    for one, other in zip(first, second, strict=True):
        assert one is not None
        assert other is not None
        assert_same(other, one)


@pytest.mark.parametrize("pooled", [(1, 1), (2, 3), (7, 7)])
@pytest.mark.parametrize("scale", [Fraction(1), Fraction(1, 2), Fraction(3, 4)])
def test_pooling_is_of_whole_elements(pooled: tuple[int, int], scale: Fraction) -> None:
    random = np.random.default_rng(4)
    x = random.integers(-1000, 1000, (2, 3, 9, 11)).astype(np.float32)
    rois = np.concatenate([random.integers(0, 2, (30, 1)), random.integers(-20, 50, (30, 4)) / 4], 1).astype(np.float32)
    y = anydml.roi_pooling(x, rois, pooled, spatial_scale=float(scale))
    for found, (image, *corners) in zip(y, rois.tolist(), strict=True):
        ends = [Fraction(each) * scale for each in corners]
        x1, y1, x2, y2 = (floor(abs(each) + Fraction(1, 2)) * (1 if each >= 0 else -1) for each in ends)
        for i, j in np.ndindex(*pooled):
            (top, bottom), (left, right) = (
                (begin + k * max(end - begin + 1, 1) // n, begin + -(-(k + 1) * max(end - begin + 1, 1) // n))
                for begin, end, k, n in ((y1, y2, i, pooled[0]), (x1, x2, j, pooled[1]))
            )
            under = x[int(image), :, max(top, 0) : max(bottom, 0), max(left, 0) : max(right, 0)].reshape(3, -1)
            wanted = under.max(1) if under.shape[1] else np.zeros(3)
            np.testing.assert_array_equal(found[:, i, j], wanted)


def memory_of(tensor: Any, values: np.ndarray | None) -> tuple[Layout | None, Any]:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    if tensor is None:
        return None, None
    layout = Layout.of_desc(tensor)
    view = layout.view(np.zeros(tensor.TotalTensorSizeInBytes, np.uint8))
    if values is not None:
        view[...] = values
    return layout, torch.from_numpy(view)


@pytest.mark.parametrize("case", [*roi_align.CASES, *roi_pooling.CASES], ids=lambda case: case.id)
def test_calls_of_pytorch_give_the_same(case: Case) -> None:
    """Those of a GPU, on the CPU's tensors."""
    pytest.importorskip("torch", reason="PyTorch is not installed")
    from anydml.backends.torch.lowering import Plan, plan

    found = spec_of(case.desc)
    assert found is not None
    read = [memory_of(t, x) for (_, t), x in zip(found.inputs(case.desc), case.inputs, strict=True)]
    written = [memory_of(t, None) for _, t in found.outputs(case.desc)]
    calls = plan(found, case.desc, [each for each, _ in read], [each for each, _ in written])
    assert isinstance(calls, Plan)
    calls.run([each for _, each in read], [each for _, each in written])
    for (_, actual), expected in zip(written, case.outputs, strict=True):
        if expected is not None:
            assert_same(actual.numpy(), expected)


@pytest.mark.parametrize("function", ["average", "max"])
@pytest.mark.parametrize("dtype", ["f4", "f2"])
def test_what_is_infinite_or_no_number_is_the_references(function: str, dtype: str) -> None:
    """In rows of more than eight outputs, whose elements are made of others each."""
    rng = np.random.default_rng(5)
    x = rng.integers(-9, 10, (2, 3, 23, 29)).astype(dtype)
    x.reshape(-1)[rng.integers(0, x.size, 60)] = np.array([np.inf, -np.inf, np.nan] * 20)
    x[1, 2, 5:12] = -np.inf
    x[1, 1, 5:12] = np.nan
    corners = rng.integers(-5, 30, (8, 4)).astype(dtype) + np.array(0.25, dtype)
    indices = np.arange(8, dtype=np.uint32) % 2
    for channels_last in (False, True):
        given = np.ascontiguousarray(x.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2) if channels_last else x
        options: dict[str, Any] = {"reduction_function": function, "maximum_samples_per_output": 3}
        found, expected = (
            anydml.roi_align(given, corners, indices, (5, 19), device=device, **options)
            for device in ("cpu", "reference")
        )
        np.testing.assert_array_equal(found, expected)
