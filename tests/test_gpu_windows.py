"""Windows, pooling, resampling, scatters, selection, regions and batch normalisation in training on a GPU: each in
kernels of its own, of any layout and of several programs, by offsets of 64 bits too."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from anydml import (
    DML_ACTIVATION_RELU_OPERATOR_DESC,
    DML_SIZE_2D,
    AxisDirection,
    Device,
    InterpolationMode,
    QuantizationType,
    RandomGeneratorType,
    ReduceFunction,
    TensorDataType,
    spec,
)
from cases import tensor, tensor_of
from cases.quantize import LIMITS, stored
from gpu_calls import on_gpu
from harness import GPU, run

pytestmark = pytest.mark.gpu

TRITON = "anydml.backends.triton"
SMALL = {
    "tiles.ELEMENTS": 4,
    "tiles.WIDEST": 8,
    "movement.scattered.BLOCK": 16,
    "movement.scattered.GUARDS": 2,
    "movement.scattered.LINES_TILE": {"SCATTER_ELEMENTS": 8, "MAX_UNPOOLING": 8},
    "movement.scattered.MOST_TILES": 100,
    "movement.scattered.NUMBERS": 70,
    "movement.scattered.SHORT_LINE": 4,
    "movement.scattered.TILE": 16,
    "movement.scattered.WINDOW": 100,
    "pointwise.counted.BLOCK": 16,
    "pointwise.counted.RANDOM": 2,
    "pointwise.counted.TILE": 16,
    "pooling.gradient.PLANES": 16,
    "pooling.gradient.STRIDES_TILE": 8,
    "pooling.gradient.STRIPS_TILE": 8,
    "pooling.gradient.TILE": 16,
    "pooling.gradient.UNROLLED": 3,
    "pooling.plan.TILE": 16,
    "pooling.plan.UNROLLED": 3,
    "quantizing.blocks.BLOCK": 64,
    "quantizing.plan.BLOCK": 16,
    "quantizing.plan.PROGRAMS": 3,
    "regions.gradient.BLOCK": 2,
    "regions.gradient.ELEMENTS": 4,
    "regions.gradient.LINES": 4,
    "regions.gradient.WIDEST": 2,
    "regions.plan.ELEMENTS": 4,
    "regions.plan.ELEMENTS_OF_BINS": 4,
    "regions.plan.WIDEST": 2,
    "resampling.plan.TILE": 16,
    "resampling.plan.WIDEST": 8,
    "selection.plan.AT_ONCE": 16,
    "selection.plan.BLOCK": 16,
    "selection.plan.FEW_LINES": 4,
    "selection.plan.LEAST_SELECTED": 4,
    "selection.plan.LONGEST": 8,
    "selection.plan.MOST_BRANCHES": 4,
    "selection.plan.RANKED": 8,
    "selection.plan.SELECTED": 8,
    "selection.plan.SORTED": 16,
    "selection.plan.TILE": 16,
    "training.plan.BLOCK": 4,
    "training.plan.PARTS": 4,
    "training.plan.SPAN": 8,
    "training.plan.TILE": {0: 8, 1: 8},
    "windows.plan.FOLD_TILE": 16,
    "windows.local.CHANNELS": 4,
    "windows.local.STRIP": 32,
    "windows.local.TILE": 16,
    "windows.plan.TILE": 16,
}
"""As if tensors were large: of several programs, which reach beyond the ends."""
CORNERS = ("ROITensor", "BatchIndicesTensor")


@pytest.fixture(params=["packed", "turned", "turned, wide", "packed, small"])
def is_turned(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether dimensions lie the other way round; with offsets of 64 bits, or small programs."""
    if "wide" in request.param:
        for module in ("tiles", "lines"):
            monkeypatch.setattr(f"{TRITON}.{module}.WIDE", 1)
    if "small" in request.param:
        for name, value in SMALL.items():
            monkeypatch.setattr(f"{TRITON}.{name}", value)
    return "turned" in request.param


def given(x: np.ndarray, is_turned: bool) -> Any:
    """A desc of an array, or of one whose dimensions lie the other way round."""
    return tensor_of(
        x, [step // x.itemsize for step in np.empty(x.shape[::-1], x.dtype).T.strides] if is_turned else None
    )


def check(
    name: str,
    inputs: dict[str, np.ndarray | None],
    outputs: dict[str, tuple[tuple[int, ...], Any]],
    is_turned: bool = False,
    tolerance: float = 0,
    **members: Any,
) -> None:
    """Beside the reference, by a kernel of Triton."""
    tensors: dict[str, Any] = {
        key: None if x is None else given(x, is_turned and x.ndim > 1) for key, x in inputs.items()
    }
    tensors |= {key: given(np.empty(*each), is_turned and len(each[0]) > 1) for key, each in outputs.items()}
    desc = spec(name).desc(**tensors, **members)
    check_desc(desc, [inputs.get(label) for label, _ in spec(name).inputs(desc)], tolerance)


def check_desc(desc: Any, arrays: list[np.ndarray | None], tolerance: float) -> None:
    device = Device(GPU)
    assert "calls of PyTorch" not in device.compile_operator(device.create_operator(desc)).explain()
    found, wanted = (run(engine, desc, arrays) for engine in (GPU, "reference"))
    for one, other in zip(found, wanted, strict=True):
        if one is other is None:
            continue
        assert one is not None
        assert other is not None
        np.testing.assert_allclose(one, other, tolerance, tolerance, err_msg=str(desc))


def drawn(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    random = np.random.default_rng(11)
    kind = np.dtype(dtype).kind
    return (random.standard_normal(shape) if kind == "f" else random.integers(0, 99, shape)).astype(dtype)


@on_gpu
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.int64])
def test_blocks_of_windows(dtype: Any, is_turned: bool) -> None:
    """Out of their places and back, where they overlap, have gaps, and lie on padding."""
    for windows, strides, dilations, before, behind, image in (
        ((3, 2), (1, 3), (1, 2), (2, 0), (1, 5), (1, 2, 4, 5)),
        ((2,), (3,), (2,), (1,), (0,), (2, 2, 7)),
        ((2, 1, 2), (1, 2, 1), (1, 1, 1), (0, 0, 1), (0, 1, 1), (1, 1, 2, 3, 3)),
    ):
        counts = [
            (size + a + b - (n - 1) * step - 1) // stride + 1
            for size, n, stride, step, a, b in zip(image[2:], windows, strides, dilations, before, behind, strict=True)
        ]
        columns = image[0], image[1] * int(np.prod(windows)), int(np.prod(counts))
        members = {
            **{"WindowSizes": windows, "Strides": strides, "Dilations": dilations},
            **{"StartPadding": before, "EndPadding": behind},
        }
        x, y = drawn(*image, dtype=dtype), drawn(*columns, dtype=dtype)
        check("UNFOLD", {"InputTensor": x}, {"OutputTensor": (columns, dtype)}, is_turned, **members)
        tolerance = 1e-3 if dtype == np.float16 else 1e-7 if dtype == np.float32 else 0
        check("FOLD", {"InputTensor": y}, {"OutputTensor": (image, dtype)}, is_turned, tolerance, **members)


@on_gpu
@pytest.mark.parametrize(
    ("dtype", "size", "beta"),
    [(np.float32, 4, 0.75), (np.float16, 3, 0.75), (np.float32, 2, 0.3), (np.float16, 2, 0.0), (np.float32, 90, -1.0)],
)
def test_local_responses(dtype: Any, is_turned: bool, size: int, beta: float) -> None:
    x = drawn(1, 4, 2, 5, dtype=dtype) * dtype(3)
    tolerance = 2e-3 if dtype == np.float16 else 2e-7
    for across in (False, True):
        members = {"CrossChannel": across, "LocalSize": size, "Alpha": 0.7, "Beta": beta, "Bias": 0.5}
        output = {"OutputTensor": (x.shape, dtype)}
        check("LOCAL_RESPONSE_NORMALIZATION", {"InputTensor": x}, output, is_turned, tolerance, **members)
        both = {"InputTensor": x, "InputGradientTensor": drawn(*x.shape, dtype=dtype)}
        output = {"OutputGradientTensor": (x.shape, dtype)}
        wide = 2e-3 if dtype == np.float16 else 1e-6
        check("LOCAL_RESPONSE_NORMALIZATION_GRAD", both, output, is_turned, wide, **members)


@on_gpu
def test_local_responses_of_many_elements_that_are_not_all() -> None:
    """Of channels, and of squares, of which each distance would be a call."""
    for across, x, size in ((True, drawn(1, 270, 1, 1), 258), (False, drawn(1, 1, 20, 19), 17)):
        members = {"CrossChannel": across, "LocalSize": size, "Alpha": 0.7, "Beta": 0.75, "Bias": 0.5}
        output = {"OutputTensor": (x.shape, np.float32)}
        check("LOCAL_RESPONSE_NORMALIZATION", {"InputTensor": x}, output, False, 2e-7, **members)


@on_gpu
@pytest.mark.parametrize("number", [0.0, 1e-38, 1e-19, 3e38, float("inf"), float("nan"), -0.0])
@pytest.mark.parametrize(("bias", "alpha"), [(0.0, 1.0), (1.0, -1.0), (1e-30, 1e-30)])
def test_local_responses_of_what_is_far_from_1(number: float, bias: float, alpha: float) -> None:
    x = np.float32([[1.5, number, -2.25, 1e30]]).reshape(1, 1, 1, 4)
    for beta in (0.75, 0.5, 3.0):
        members = {"CrossChannel": True, "LocalSize": 1, "Alpha": alpha, "Beta": beta, "Bias": bias}
        output = {"OutputTensor": (x.shape, np.float32)}
        check("LOCAL_RESPONSE_NORMALIZATION", {"InputTensor": x}, output, False, 2e-7, **members)


@on_gpu
@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
@pytest.mark.parametrize("mode", InterpolationMode)
def test_resampling(dtype: Any, is_turned: bool, mode: InterpolationMode) -> None:
    """Of dimensions that grow and shrink, by few elements and by many; of channels last, too."""
    x = drawn(2, 4, 5, 3, dtype=dtype)
    tolerance = 1e-7
    for scales in ((1, 2, 1.5, 1), (1.5, 0.25, 0.7, 2)):
        shape = tuple([max(int(size * scale), 1) for size, scale in zip(x.shape, scales, strict=True)])
        offsets = {"InputPixelOffsets": (0.5, 0.5, 0.25, 0), "OutputPixelOffsets": (-0.5, -0.5, 0, 0)}
        members = {"InterpolationMode": mode, "Scales": scales, **offsets}
        output = {"OutputTensor": (shape, dtype)}
        for antialiased in (False, True):
            more = {"RoundingDirection": AxisDirection.DECREASING, "Antialiased": antialiased}
            check("RESAMPLE3", {"InputTensor": x}, output, is_turned, tolerance, **members, **more)
        if dtype != np.uint8:
            back = {"InputGradientTensor": drawn(*shape, dtype=dtype)}
            output = {"OutputGradientTensor": (x.shape, dtype)}
            check("RESAMPLE_GRAD", back, output, is_turned, 2 * tolerance, **members)


@on_gpu
def test_what_is_not_there_adds_nothing() -> None:
    """A neighbour at a distance of 1, infinite or NaN, and no sign of a zero."""
    x = np.float32([[np.inf, -0.0, np.nan, -0.0, 3.0]])
    members = {"InterpolationMode": InterpolationMode.LINEAR, "Scales": (1, 3)}
    desc = spec("RESAMPLE").desc(InputTensor=tensor_of(x), OutputTensor=tensor_of(np.empty((1, 15), "f4")), **members)
    (found,), (wanted,) = (run(engine, desc, [x]) for engine in (GPU, "reference"))
    assert found is not None
    assert wanted is not None
    np.testing.assert_array_equal(found, wanted)
    numbers = ~np.isnan(wanted)
    np.testing.assert_array_equal(np.signbit(found)[numbers], np.signbit(wanted)[numbers])


@on_gpu
@pytest.mark.parametrize("dtype", [np.uint8, np.int64])
@pytest.mark.parametrize("kind", [np.int64, np.uint32])
def test_the_last_update_counts(dtype: Any, kind: Any, is_turned: bool) -> None:
    """Of many for each place, and of few in all."""
    random = np.random.default_rng(3)
    x = drawn(3, 4, 5, dtype=dtype)
    least = 0 if kind == np.uint32 else -1
    for axis in range(3):
        for count in (1, 12):
            shape = (*x.shape[:axis], count, *x.shape[axis + 1 :])
            indices = random.integers(least * x.shape[axis], x.shape[axis], shape).astype(kind)
            inputs = {"InputTensor": x, "IndicesTensor": indices, "UpdatesTensor": drawn(*shape, dtype=dtype)}
            check("SCATTER_ELEMENTS", inputs, {"OutputTensor": (x.shape, dtype)}, is_turned, Axis=axis)
    for count, coordinates in ((3, 1), (20, 2), (50, 3)):
        limits = np.array(x.shape[:coordinates])
        indices = random.integers(least * limits, limits, (1, count, coordinates)).astype(kind)
        shape = (1,) * (coordinates - 1) + (count,) + x.shape[coordinates:]
        shape = shape if len(shape) == 3 else (1,) * (3 - len(shape)) + shape
        inputs = {"InputTensor": x, "IndicesTensor": indices, "UpdatesTensor": drawn(*shape, dtype=dtype)}
        counts = {"InputDimensionCount": 3, "IndicesDimensionCount": 2}
        check("SCATTER_ND", inputs, {"OutputTensor": (x.shape, dtype)}, is_turned, **counts)


@on_gpu
@pytest.mark.parametrize(
    ("dtype", "shape"), [(np.float32, (2, 3, 2, 4)), (np.float16, (1, 1, 1, 30)), (np.float32, (2, 2, 0, 0))]
)
def test_batch_normalisation_in_training(dtype: Any, is_turned: bool, shape: tuple[int, ...]) -> None:
    x = drawn(*[size or 3 for size in shape], dtype=dtype)
    parameters = (1, x.shape[1], 1, 1) if all(shape) else (1, x.shape[1], 3, 1)
    scale, mean = drawn(*parameters, dtype=dtype), drawn(*parameters, dtype=dtype)
    variance = np.abs(mean) + dtype(0.5)
    tolerance = 2e-3 if dtype == np.float16 else 1e-6
    for added, activation in ((None, None), (drawn(*x.shape, dtype=dtype), DML_ACTIVATION_RELU_OPERATOR_DESC())):
        names = ("InputTensor", "ScaleTensor", "BiasTensor", "FusedAddTensor")
        inputs = dict(zip(names, (x, scale, mean, added), strict=True))
        outputs = {"OutputTensor": (x.shape, dtype), "OutputMeanTensor": (parameters, dtype)}
        outputs["OutputVarianceTensor"] = (parameters, dtype)
        members = {"Epsilon": 1e-5, "FusedActivation": activation}
        check("BATCH_NORMALIZATION_TRAINING", inputs, outputs, is_turned, tolerance, **members)
    names = ("InputTensor", "InputGradientTensor", "MeanTensor", "VarianceTensor", "ScaleTensor")
    inputs = dict(zip(names, (x, drawn(*x.shape, dtype=dtype) * dtype(2), mean, variance, scale), strict=True))
    outputs = {"OutputGradientTensor": (x.shape, dtype), "OutputScaleGradientTensor": (parameters, dtype)}
    outputs["OutputBiasGradientTensor"] = (parameters, dtype)
    for name in ("BATCH_NORMALIZATION_TRAINING_GRAD", "BATCH_NORMALIZATION_GRAD"):
        check(name, inputs, outputs, is_turned, 5 * tolerance, Epsilon=1e-5)


@on_gpu
@pytest.mark.parametrize("mode", InterpolationMode)
def test_regions(is_turned: bool, mode: InterpolationMode) -> None:
    """Within the image, across its ends, backward, of no number, and of no image."""
    x = drawn(2, 2, 5, 6)
    regions = [
        [1, 2, 5, 4],
        [-90, -80, 230, 190],  # of whose samples one in each direction is inside, of 5
        [4, 5, 1, 0.5],
        [np.nan, 0, 3, 4],
        [0, 0, np.inf, 2],
        [3, 3, 3.25, 3],
    ]
    rois, batch = np.float32(regions), np.uint32([0, 1, 1, 0, 0, 1])
    inputs = {"InputTensor": x, "ROITensor": rois, "BatchIndicesTensor": batch}
    output = {"OutputTensor": ((6, 2, 1, 3), np.float32)}
    for function in (ReduceFunction.AVERAGE, ReduceFunction.MAX):
        for most, is_corner in ((1, True), (5, False)):
            members = {
                **{
                    "ReductionFunction": function,
                    "InterpolationMode": mode,
                    "SpatialScaleX": 0.75,
                    "SpatialScaleY": 1.5,
                },
                **{"InputPixelOffset": 0.5, "OutputPixelOffset": -0.5, "OutOfBoundsInputValue": 0.5},
                **{"MinimumSamplesPerOutput": 1, "MaximumSamplesPerOutput": most, "AlignRegionsToCorners": is_corner},
            }
            check("ROI_ALIGN1", inputs, output, is_turned, 1e-6, **members)
            if function == ReduceFunction.AVERAGE:
                # Summed in the reference's order.
                dy = {"InputGradientTensor": drawn(6, 2, 2, 3), **{name: inputs[name] for name in CORNERS}}
                del members["OutOfBoundsInputValue"]
                check("ROI_ALIGN_GRAD", dy, {"OutputGradientTensor": (x.shape, np.float32)}, is_turned, **members)
    numbers = np.float32([[0], [1], [1], [0], [0.5], [7]])
    five = np.concatenate([numbers, rois], 1)[None, None]
    inputs = {"InputTensor": x, "ROITensor": five}
    check("ROI_POOLING", inputs, output, is_turned, SpatialScale=0.75, PooledSize=DML_SIZE_2D(Width=3, Height=1))


@on_gpu
def test_elements_by_their_places(is_turned: bool) -> None:
    for dtype, start, delta in (
        (np.float32, 0.1, -0.3),
        (np.uint8, 250, 3),
        (np.int64, -(2**62), 2**61),
        (np.float16, 1, 0),
    ):
        members = {
            "ValueDataType": TensorDataType[np.dtype(dtype).name.upper()],
            "ValueStart": start,
            "ValueDelta": delta,
        }
        check("FILL_VALUE_SEQUENCE", {}, {"OutputTensor": ((2, 3, 5), dtype)}, is_turned, **members)
    for channels, bias in ((1, (0.3,)), (3, (0.1, -0.2, 5.0))):
        x = drawn(2, channels, 3, 5)
        output = {"OutputTensor": (x.shape, np.float32)}
        check("VALUE_SCALE_2D", {"InputTensor": x}, output, is_turned, 1e-7, Scale=0.7, Bias=bias)


@on_gpu
@pytest.mark.parametrize("dtype", [np.float16, np.float32])
@pytest.mark.parametrize("has_many", [False, True])
def test_batch_normalization(dtype: Any, has_many: bool, is_turned: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """By planes and by channels that lie last; in several tiles of a program, the last of which reach beyond the
    end."""
    if has_many:
        for name, value in {"BLOCK": 16, "TILE": 16, "LARGEST_ROW": 4, "MANY": 1, "TILES": 3}.items():
            monkeypatch.setattr(f"{TRITON}.normalization.plan.{name}", value)
    x = drawn(2, 5, 3, 31, dtype=dtype)
    x.flat[3::50], x.flat[4::50], x.flat[5::50] = np.inf, np.nan, -np.inf
    by_channel = {name: drawn(1, 5, 1, 1, dtype=dtype) for name in ("MeanTensor", "ScaleTensor", "BiasTensor")}
    variance = np.abs(drawn(1, 5, 1, 1, dtype=dtype))
    strides = (465, 1, 155, 5) if is_turned else None
    tensors = {"InputTensor": tensor_of(x, strides), "OutputTensor": tensor_of(x, strides)}
    arrays = {**by_channel, "VarianceTensor": variance}
    name = "BATCH_NORMALIZATION"
    given_tensors = {key: tensor_of(array) for key, array in arrays.items()}
    for activation in (None, DML_ACTIVATION_RELU_OPERATOR_DESC()):
        options = {"Spatial": True, "Epsilon": 1e-3, "FusedActivation": activation}
        desc = spec(name).desc(**tensors, **given_tensors, **options)
        inputs = [x if label == "InputTensor" else arrays[label] for label, _ in spec(name).inputs(desc)]
        check_desc(desc, inputs, 2e-3 if dtype == np.float16 else 1e-6)


@on_gpu
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.int8, np.uint64])
def test_pooling(dtype: Any, is_turned: bool) -> None:
    """With indices, of no number and of padding alone, and back."""
    for windows, strides, dilations, before, behind, image in (
        ((3, 2), (2, 3), (1, 2), (2, 0), (1, 5), (2, 2, 6, 5)),
        ((2, 2), (2, 2), (1, 1), (0, 0), (0, 0), (1, 3, 5, 7)),
        ((4, 3), (1, 2), (1, 1), (1, 1), (3, 2), (1, 2, 4, 6)),
        ((3, 5), (1, 1), (1, 1), (0, 0), (0, 0), (2, 9, 3, 5)),
        ((3, 7), (2, 1), (1, 1), (0, 0), (1, 0), (2, 5, 3, 7)),
        ((3, 2), (1, 2), (2, 1), (4, 1), (5, 1), (1, 3, 7, 6)),
        ((16, 16), (1, 2), (1, 1), (9, 8), (8, 9), (1, 2, 6, 7)),
    ):
        places = [
            (size + a + b - (n - 1) * step - 1) // stride + 1
            for size, n, stride, step, a, b in zip(image[2:], windows, strides, dilations, before, behind, strict=True)
        ]
        y = (*image[:2], *places)
        plain = {"Strides": strides, "WindowSize": windows, "StartPadding": before, "EndPadding": behind}
        members = {**plain, "Dilations": dilations}
        numbers = drawn(*image, dtype=dtype)
        x = numbers.copy()
        if x.dtype.kind == "f":
            x = np.round(x)
            x.flat[::5], x.flat[::3] = np.nan, -np.inf
        output, gradients = {"OutputTensor": (y, dtype)}, {"OutputGradientTensor": (image, dtype)}
        both = {**output, "OutputIndicesTensor": (y, np.uint32)}
        check("MAX_POOLING2", {"InputTensor": x}, both, is_turned, **members)
        check("MAX_POOLING2", {"InputTensor": x}, output, is_turned, **members)
        if x.dtype.kind != "f":
            continue
        tolerance = 1e-3 if dtype == np.float16 else 2e-7
        dy = {"InputGradientTensor": drawn(*y, dtype=dtype)}
        check("MAX_POOLING_GRAD", {"InputTensor": x, **dy}, gradients, is_turned, tolerance, **members)
        for n in (1, 2):
            has_padding = {"IncludePadding": n == 1}
            check("LP_POOLING1", {"InputTensor": numbers}, output, is_turned, tolerance, P=n, **members)
            check("AVERAGE_POOLING1", {"InputTensor": numbers}, output, is_turned, tolerance, **members, **has_padding)
            if max(dilations) == 1:
                check("AVERAGE_POOLING_GRAD", dy, gradients, is_turned, tolerance, **plain, **has_padding)


@on_gpu
@pytest.mark.parametrize("kind", [np.uint32, np.uint64])
def test_maxima_back_in_their_places(kind: Any, is_turned: bool) -> None:
    """Some of them in the same place, and some in none; in their own planes, and in any, of others too."""
    x = drawn(2, 3, 4, 5, dtype=np.float16)
    random = np.random.default_rng(1)
    anywhere = random.integers(0, 150, x.shape)
    own = random.integers(0, 28, x.shape) + 28 * np.arange(6).reshape(2, 3, 1, 1)
    for places, shape in ((anywhere, (2, 3, 5, 4)), (own, (2, 3, 7, 4)), (anywhere, (1, 5, 5, 4))):
        indices = places.astype(kind)
        indices.flat[5] = np.iinfo(kind).max
        inputs = {"InputTensor": x, "IndicesTensor": indices}
        check("MAX_UNPOOLING", inputs, {"OutputTensor": (shape, np.float16)}, is_turned)


@on_gpu
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.int8, np.uint32, np.int32, np.int64])
def test_the_first_of_each_line(dtype: Any, is_turned: bool) -> None:
    """Of equal ones, zeros of both signs and NaNs among them, in the order of their indices."""
    x = drawn(3, 2, 19, dtype=dtype)
    if x.dtype.kind == "f":
        x = np.round(x)
        x.flat[::7], x.flat[1::7], x.flat[3::11], x.flat[4::11], x.flat[5::9] = np.nan, -0.0, np.inf, -np.inf, -np.nan
    elif x.dtype.itemsize >= 4:
        x.flat[::3], x.flat[1::3] = np.iinfo(dtype).min, np.iinfo(dtype).max
    for axis, k, direction in (
        (2, 4, AxisDirection.DECREASING),
        (2, 1, AxisDirection.INCREASING),
        (0, 3, AxisDirection.INCREASING),
    ):
        shape = tuple([k if i == axis else size for i, size in enumerate(x.shape)])
        outputs = {"OutputValueTensor": (shape, dtype), "OutputIndexTensor": (shape, np.uint32)}
        members = {"Axis": axis, "K": k, "AxisDirection": direction}
        check("TOP_K1", {"InputTensor": x}, outputs, is_turned, **members)


@on_gpu
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.int8, np.uint32])
def test_where_elements_are_not_0(dtype: Any, is_turned: bool) -> None:
    x = drawn(1, 3, 5, 7, dtype=dtype)
    x[x < 50 * (x.dtype.kind != "f")] = 0
    if x.dtype.kind == "f":
        x.flat[::5], x.flat[3], x.flat[4] = -0.0, np.nan, np.finfo(dtype).smallest_subnormal
    for columns, numbers in ((3, x), (4, x), (4, x * 0 == 1)):
        numbers = numbers.astype(dtype)
        desc = spec("NONZERO_COORDINATES").desc(
            InputTensor=given(numbers, is_turned),
            OutputCountTensor=given(np.empty(1, np.uint32), False),
            OutputCoordinatesTensor=given(np.empty((1, x.size, columns), np.uint32), is_turned),
        )
        device = Device(GPU)
        assert "counted first" in device.compile_operator(device.create_operator(desc)).explain()
        found, wanted = (run(engine, desc, [numbers]) for engine in (GPU, "reference"))
        assert found[0] is not None
        assert found[1] is not None
        assert wanted[1] is not None
        assert found[0].item() == np.count_nonzero(numbers)
        np.testing.assert_array_equal(*[rows[:, : found[0].item()] for rows in (found[1], wanted[1])])


@on_gpu
@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_ranges_and_numbers(dtype: Any, is_turned: bool) -> None:
    for factor, special in ((1, 0), (100, np.nan), (0, 0), (1e-30, 1e-7), (1, np.inf), (1, -np.inf)):
        x = (drawn(3, 5, 7) * np.float32(factor)).astype(dtype)
        x.flat[11] = special
        for kind in (np.uint8, np.int8):
            outputs = {"OutputTensor": (x.shape, kind), "OutputScaleTensor": ((1, 1, 1), np.float32)}
            outputs["OutputZeroPointTensor"] = ((1, 1, 1), kind)
            check("DYNAMIC_QUANTIZE_LINEAR", {"InputTensor": x}, outputs, is_turned)


@on_gpu
@pytest.mark.parametrize(
    ("dtype", "kind"), [(np.float16, "INT8"), (np.float32, "UINT8"), (np.float32, "INT4"), (np.float16, "UINT4")]
)
def test_numbers_of_blocks(dtype: Any, kind: str, is_turned: bool) -> None:
    """Of scales and zero points by blocks of their own, one of which is within the other, and of odd numbers."""
    shape, random = (3, 12, 5), np.random.default_rng(12)
    low, high = LIMITS[kind]
    is_packed = kind.endswith("INT4")
    x = (drawn(*shape) * 40).astype(dtype)
    x.flat[:3] = np.nan, np.inf, -np.inf
    codes = random.integers(low, high + 1, shape)
    for of_scale, of_zero in (
        ((3, 4, 1), (1, 2, 1)),
        ((1, 1, 5), (1, 6, 5)),
        ((3, 12, 5), None),
        ((1, 1, 1), (3, 12, 5)),
    ):
        factors = random.uniform(-2, 2, of_scale).astype(dtype)
        zeros = [] if of_zero is None else [random.integers(low, high + 1, of_zero)]
        integers = [tensor(each.shape, kind) if is_packed else given(stored(each, kind), is_turned) for each in zeros]
        numbers = tensor(shape, kind) if is_packed else given(stored(codes, kind), is_turned)
        parameters = {
            "QuantizationType": QuantizationType(1 + len(zeros)),
            "QuantizationTensors": [given(factors, is_turned), *integers],
        }
        others = [factors, *[stored(each, kind) for each in zeros]]
        for name, one, other, array in (
            ("QUANTIZE", given(x, is_turned), numbers, x),
            ("DEQUANTIZE", numbers, given(x, is_turned), stored(codes, kind)),
        ):
            desc = spec(name).desc(InputTensor=one, OutputTensor=other, **parameters)
            check_desc(desc, [array, *others], 0)


@on_gpu
def test_random_numbers(is_turned: bool) -> None:
    """Of a counter that is carried on through all its words."""
    state = np.array([[0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 6, 7, 0x80000009]], np.uint32)
    outputs = {"OutputTensor": ((3, 7, 1), np.uint32), "OutputStateTensor": (state.shape, np.uint32)}
    check("RANDOM_GENERATOR", {"InputStateTensor": state}, outputs, is_turned, Type=RandomGeneratorType.PHILOX_4X32_10)
