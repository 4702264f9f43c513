"""The small examples that stand for operators: descs and inputs, made of what their specifications have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from ..core.enums import (
    AxisDirection,
    ConvolutionDirection,
    ConvolutionMode,
    FeatureLevel,
    InterpolationMode,
    MatrixTransform,
    MultiheadAttentionMaskType,
    PaddingMode,
    QuantizationType,
    RandomGeneratorType,
    ReduceFunction,
    TensorDataType,
)
from ..core.strided_layout import DATA_TYPES, Array
from ..core.tensor_desc import DML_BUFFER_TENSOR_DESC, DML_SIZE_2D
from ..operators import OPERATORS, spec
from ..operators.pointwise import SIGNED
from ..operators.schema import OperatorDesc
from ..operators.shape_inference import complete, is_input


def _one(value: float, dtype: type[np.generic]) -> Array:
    return np.array(value, dtype).reshape(1, 1, 1, 1)


def _tensor(*sizes: int, data_type: TensorDataType = TensorDataType.FLOAT32) -> DML_BUFFER_TENSOR_DESC:
    return DML_BUFFER_TENSOR_DESC(DataType=data_type, Sizes=sizes)


FLOAT32, UINT32 = TensorDataType.FLOAT32, TensorDataType.UINT32
_TABLE = np.array([[[[2, 1, 3, 5], [3, 8, 7, 3], [9, 6, 2, 4]]]], np.float32)
_CHANNELS = np.array([[[[1, 3], [5, 7]], [[4, 4], [8, 8]]]], np.float32)
_MEANS = np.array([4, 6], np.float32).reshape(1, 2, 1, 1)
_VARIANCES = np.array([4, 16], np.float32).reshape(1, 2, 1, 1)
_SCALES = np.array([1, 2], np.float32).reshape(1, 2, 1, 1)
_GRADIENTS = np.array([[[[1, 0], [-1, 2]], [[0, 1], [1, 1]]]], np.float32)
_OF_BATCH = {
    "InputTensor": _CHANNELS,
    "InputGradientTensor": _GRADIENTS,
    "MeanTensor": _MEANS,
    "VarianceTensor": _VARIANCES,
    "ScaleTensor": _SCALES,
    "Epsilon": 0,
}
_LEFT = np.arange(1, 7, dtype=np.float32).reshape(1, 1, 2, 3)
_RIGHT = np.arange(7, 15, dtype=np.float32).reshape(1, 1, 2, 4)
_SEQUENCE = np.array([[[[1, 2]], [[0.5, -1]], [[-2, 0.25]]]], np.float32)
_GATES = np.array([[[[1, 0.5], [-0.5, 1], [0.25, 0.25], [2, -1]]]], np.float32)
_STATES = np.array([[[[0.5], [-1], [0.25], [1]]]], np.float32)
_IMAGE = np.array([[[[12, 15, 11, 18], [16, 17, 20, 13], [14, 10, 22, 19], [21, 12, 16, 24]]]], np.uint8)
_SQUARE = np.arange(1, 17, dtype=np.float32).reshape(1, 1, 4, 4)
_COLOURS = np.arange(1, 10, dtype=np.float32).reshape(1, 3, 1, 3)
_INDICES = np.array([[[[2, 0, 0, -1]]]], np.int32)
_EDGE = np.array([[[[1, 0, -1], [2, 0, -2], [1, 0, -1]]]], np.float32)

_REGIONS = {
    "ROITensor": np.array([[0, 0, 3, 3], [1, 1, 4, 2]], np.float32),
    "BatchIndicesTensor": np.array([0, 0], np.uint32),
    "ReductionFunction": ReduceFunction.AVERAGE,
    "InterpolationMode": InterpolationMode.LINEAR,
    "SpatialScaleX": 1,
    "SpatialScaleY": 1,
    "MinimumSamplesPerOutput": 1,
    "MaximumSamplesPerOutput": 2,
}
_OF_CENTRES = {"InputPixelOffset": 0.5, "OutputPixelOffset": -0.5, "AlignRegionsToCorners": False}

_NO_PADDING = {"StartPadding": (0, 0), "EndPadding": (0, 0)}
_WINDOWS = {"InputTensor": _IMAGE.astype(np.float32), "Strides": (1, 1), "WindowSize": (2, 2), **_NO_PADDING}
_RELU: Any = ("ACTIVATION_RELU", {})
_SIGMOID: Any = ("ACTIVATION_SIGMOID", {})
_TANH: Any = ("ACTIVATION_TANH", {})

_ATTENTION = {
    "QueryTensor": np.array([[[3, 0, 0, 3], [0, 3, 3, 0]]], np.float32),
    "Scale": 1,
    "MaskFilterValue": -10000,
    "MaskType": MultiheadAttentionMaskType.NONE,
}

_RESAMPLED = {
    "InterpolationMode": InterpolationMode.LINEAR,
    "Scales": (1, 1, 1, 0.5),
    "InputPixelOffsets": (0.5,) * 4,
    "OutputPixelOffsets": (-0.5,) * 4,
}

_PARAMETERS = {
    "AScaleTensor": _one(0.5, np.float32),
    "AZeroPointTensor": _one(4, np.uint8),
    "BScaleTensor": _one(0.25, np.float32),
}
_MATRICES = {
    "ATensor": _LEFT.astype(np.uint8),
    "AZeroPointTensor": _PARAMETERS["AZeroPointTensor"],
    "BTensor": np.array([[[[1, -2, 3], [-4, 5, -6], [7, -8, 9]]]], np.int8),
}
_QUANTISED_BY = {"OutputScaleTensor": _one(0.25, np.float32), "OutputZeroPointTensor": _one(3, np.uint8)}
_INTEGER_FILTER = {
    "InputTensor": _IMAGE,
    "InputZeroPointTensor": _one(10, np.uint8),
    "FilterTensor": _EDGE.astype(np.int8),
    "Strides": (1, 1),
    "Dilations": (1, 1),
    **_NO_PADDING,
    "GroupCount": 1,
}

_MEMBERS: Mapping[str, Mapping[str, Any]] = {
    "ACTIVATION_HARDMAX": {"InputTensor": SIGNED},
    "ACTIVATION_LOG_SOFTMAX": {"InputTensor": SIGNED},
    "ACTIVATION_SOFTMAX": {"InputTensor": SIGNED},
    "CONVOLUTION": {
        "InputTensor": _IMAGE.astype(np.float32),
        "FilterTensor": _EDGE,
        "Mode": ConvolutionMode.CROSS_CORRELATION,
        "Direction": ConvolutionDirection.FORWARD,
        "Strides": (1, 1),
        "Dilations": (1, 1),
        **_NO_PADDING,
        "OutputPadding": (0, 0),
        "GroupCount": 1,
    },
    "GEMM": {
        "ATensor": _LEFT,
        "BTensor": _RIGHT,
        "TransA": MatrixTransform.TRANSPOSE,
        "TransB": MatrixTransform.NONE,
        "Alpha": 0.5,
        "Beta": 0,
    },
    "REDUCE": {"Function": ReduceFunction.SUM, "InputTensor": _TABLE, "Axes": (3,)},
    "AVERAGE_POOLING": _WINDOWS,
    "LP_POOLING": {**_WINDOWS, "P": 2},
    "MAX_POOLING": _WINDOWS,
    "ONE_HOT": {
        "IndicesTensor": np.array([[[[2], [0], [-1]]]], np.int32),
        "ValuesTensor": np.array([[[[0, 1]]]], np.float32),
        "OutputTensor": DML_BUFFER_TENSOR_DESC(DataType=TensorDataType.FLOAT32, Sizes=(1, 1, 3, 4)),
        "Axis": 3,
    },
    "TOP_K": {"InputTensor": _TABLE, "OutputIndexTensor": TensorDataType.UINT32, "Axis": 3, "K": 2},
    "TOP_K1": {
        "InputTensor": _TABLE,
        "OutputIndexTensor": TensorDataType.UINT32,
        "Axis": 3,
        "K": 2,
        "AxisDirection": AxisDirection.INCREASING,
    },
    "SLICE": {"InputTensor": _SQUARE, "Offsets": (0, 0, 1, 0), "Sizes": (1, 1, 2, 2), "Strides": (1, 1, 2, 3)},
    "CAST": {"InputTensor": SIGNED, "OutputTensor": TensorDataType.INT8},
    "SPLIT": {"InputTensor": _TABLE, "OutputTensors": [_tensor(1, 1, 1, 4), _tensor(1, 1, 2, 4)], "Axis": 2},
    "JOIN": {"InputTensors": [_LEFT, _RIGHT], "Axis": 3},
    "PADDING": {
        "InputTensor": _LEFT,
        "PaddingMode": PaddingMode.REFLECTION,
        "PaddingValue": 0,
        "StartPadding": (0, 0, 1, 2),
        "EndPadding": (0, 0, 1, 2),
    },
    "VALUE_SCALE_2D": {"InputTensor": _COLOURS, "Scale": 0.5, "Bias": (10, 20, 30)},
    "UPSAMPLE_2D": {
        "InputTensor": _LEFT,
        "ScaleSize": DML_SIZE_2D(Width=2, Height=2),
        "InterpolationMode": InterpolationMode.LINEAR,
    },
    "RESAMPLE": {"InputTensor": _TABLE, "InterpolationMode": InterpolationMode.LINEAR, "Scales": (1, 1, 1, 0.5)},
    "RESAMPLE1": {"InputTensor": _TABLE, **_RESAMPLED},
    "RESAMPLE2": {"InputTensor": _TABLE, "RoundingDirection": AxisDirection.INCREASING, **_RESAMPLED},
    "RESAMPLE3": {
        "InputTensor": _TABLE,
        "RoundingDirection": AxisDirection.INCREASING,
        **_RESAMPLED,
        "Antialiased": True,
    },
    "RESAMPLE_GRAD": {"InputGradientTensor": _TABLE, **_RESAMPLED},
    "RESAMPLE_GRAD1": {
        "InputGradientTensor": _TABLE,
        "RoundingDirection": AxisDirection.INCREASING,
        **_RESAMPLED,
    },
    "GATHER": {"InputTensor": _TABLE, "IndicesTensor": _INDICES, "Axis": 2, "IndexDimensions": 1},
    "BATCH_NORMALIZATION": {
        "InputTensor": _CHANNELS,
        "MeanTensor": _MEANS,
        "VarianceTensor": _VARIANCES,
        "ScaleTensor": _SCALES,
        "BiasTensor": _MEANS,
        "Spatial": True,
        "Epsilon": 0,
    },
    "MEAN_VARIANCE_NORMALIZATION": {
        "InputTensor": _CHANNELS,
        "ScaleTensor": _SCALES,
        "BiasTensor": _MEANS,
        "CrossChannel": False,
        "NormalizeVariance": True,
        "Epsilon": 0.00001,
    },
    "LOCAL_RESPONSE_NORMALIZATION": {
        "InputTensor": _CHANNELS,
        "CrossChannel": True,
        "LocalSize": 3,
        "Alpha": 0.75,
        "Beta": 0.5,
        "Bias": 1,
    },
    "LP_NORMALIZATION": {"InputTensor": _CHANNELS, "Axis": 1, "Epsilon": 0, "P": 2},
    "RNN": {
        "InputTensor": _SEQUENCE,
        "WeightTensor": _GATES[:, :, :2],
        "RecurrenceTensor": np.array([[[[0.5, 1], [-1, 0.5]]]], np.float32),
        "OutputSequenceTensor": FLOAT32,
        "OutputSingleTensor": FLOAT32,
        "ActivationDescs": [_RELU],
    },
    "LSTM": {
        "InputTensor": _SEQUENCE,
        "WeightTensor": _GATES,
        "RecurrenceTensor": _STATES,
        "OutputSingleTensor": FLOAT32,
        "OutputCellSingleTensor": FLOAT32,
        "ActivationDescs": [_SIGMOID, _TANH, _TANH],
        "ClipThreshold": 1,
        "UseClipThreshold": True,
    },
    "GRU": {
        "InputTensor": _SEQUENCE,
        "WeightTensor": _GATES[:, :, :3],
        "RecurrenceTensor": _STATES[:, :, :3],
        "OutputSequenceTensor": FLOAT32,
        "ActivationDescs": [_SIGMOID, _TANH],
    },
    "MAX_POOLING1": {**_WINDOWS, "OutputIndicesTensor": UINT32},
    "MAX_UNPOOLING": {
        "InputTensor": np.array([[[[17, 20], [22, 24]]]], np.float32),
        "IndicesTensor": np.array([[[[5, 6], [10, 15]]]], np.uint32),
        "OutputTensor": _tensor(1, 1, 4, 4),
    },
    "DIAGONAL_MATRIX": {"OutputTensor": _tensor(1, 1, 3, 4), "Offset": 1, "Value": 1},
    "FILL_VALUE_CONSTANT": {"OutputTensor": _tensor(1, 1, 2, 4), "ValueDataType": FLOAT32, "Value": 13},
    "FILL_VALUE_SEQUENCE": {
        "OutputTensor": _tensor(1, 1, 2, 4),
        "ValueDataType": FLOAT32,
        "ValueStart": 3,
        "ValueDelta": 2,
    },
    "CUMULATIVE_SUMMATION": {"InputTensor": _TABLE, "Axis": 3},
    "MAX_POOLING2": {**_WINDOWS, "OutputIndicesTensor": UINT32, "Dilations": (2, 2)},
    "SLICE1": {
        "InputTensor": _SQUARE,
        "OutputTensor": _tensor(1, 1, 2, 2),
        "InputWindowOffsets": (0, 0, 0, 1),
        "InputWindowSizes": (1, 1, 4, 3),
        "InputWindowStrides": (1, 1, -2, 2),
    },
    "MEAN_VARIANCE_NORMALIZATION1": {"InputTensor": _TABLE, "Axes": (3,), "NormalizeVariance": False, "Epsilon": 0},
    "ADAM_OPTIMIZER": {
        "InputParametersTensor": _TABLE,
        "InputFirstMomentTensor": np.zeros_like(_TABLE),
        "InputSecondMomentTensor": np.zeros_like(_TABLE),
        "GradientTensor": _TABLE - 4,
        "TrainingStepTensor": _one(1, np.float32),
        "LearningRate": 0.5,
        "Beta1": 0.5,
        "Beta2": 0.75,
        "Epsilon": 1,
    },
    "ARGMIN": {"InputTensor": _TABLE, "OutputTensor": TensorDataType.UINT32, "Axes": (3,)},
    "ARGMAX": {"InputTensor": _TABLE, "OutputTensor": TensorDataType.UINT32, "Axes": (2,)},
    "RANDOM_GENERATOR": {
        "InputStateTensor": np.array([[[[0, 0, 0, 0, 7, 0]]]], np.uint32),
        "OutputTensor": _tensor(1, 1, 2, 4, data_type=UINT32),
        "OutputStateTensor": UINT32,
        "Type": RandomGeneratorType.PHILOX_4X32_10,
    },
    "NONZERO_COORDINATES": {
        "InputTensor": np.array([[[[0, 5, 0], [7, 0, -1]]]], np.float32),
        "OutputCountTensor": _tensor(1, 1, 1, 1, data_type=UINT32),
        "OutputCoordinatesTensor": _tensor(1, 1, 6, 2, data_type=UINT32),
    },
    "AVERAGE_POOLING_GRAD": {
        "InputGradientTensor": np.array([[[[1, 2], [3, 4]]]], np.float32),
        "OutputGradientTensor": _tensor(1, 1, 3, 3),
        "Strides": (1, 1),
        "WindowSize": (2, 2),
        **_NO_PADDING,
    },
    "MAX_POOLING_GRAD": {
        **_WINDOWS,
        "InputGradientTensor": np.arange(1, 10, dtype=np.float32).reshape(1, 1, 3, 3),
        "Dilations": (1, 1),
    },
    "LOCAL_RESPONSE_NORMALIZATION_GRAD": {
        "InputTensor": _CHANNELS,
        "InputGradientTensor": _GRADIENTS,
        "CrossChannel": True,
        "LocalSize": 3,
        "Alpha": 0.75,
        "Beta": 0.5,
        "Bias": 1,
    },
    "BATCH_NORMALIZATION_GRAD": _OF_BATCH,
    "BATCH_NORMALIZATION_TRAINING": {
        "InputTensor": _CHANNELS,
        "ScaleTensor": _SCALES,
        "BiasTensor": _MEANS,
        "Epsilon": 0,
    },
    "BATCH_NORMALIZATION_TRAINING_GRAD": _OF_BATCH,
    "CUMULATIVE_PRODUCT": {"InputTensor": _TABLE, "Axis": 3},
    "ACTIVATION_SOFTMAX1": {"InputTensor": SIGNED, "Axes": (2,)},
    "ACTIVATION_LOG_SOFTMAX1": {"InputTensor": SIGNED, "Axes": (2,)},
    "ACTIVATION_HARDMAX1": {"InputTensor": SIGNED, "Axes": (2,)},
    "DIAGONAL_MATRIX1": {
        "OutputTensor": _tensor(1, 1, 4, 5),
        "ValueDataType": FLOAT32,
        "Value": 7,
        "DiagonalFillBegin": 0,
        "DiagonalFillEnd": 3,
    },
    "MULTIHEAD_ATTENTION": {
        **_ATTENTION,
        "KeyTensor": np.array([[[1, 0, 1, 0], [0, 1, 0, 1], [0, 0, 1, 1]]], np.float32),
        "ValueTensor": np.array([[[1, 10], [2, 20], [3, 30]]], np.float32),
        "HeadCount": 2,
    },
    "LP_POOLING1": {**_WINDOWS, "Dilations": (2, 2), "P": 2},
    "AVERAGE_POOLING1": {**_WINDOWS, "Dilations": (2, 2)},
    "MEAN_VARIANCE_NORMALIZATION2": {
        "InputTensor": _TABLE,
        "Axes": (3,),
        "UseMean": False,
        "UseVariance": True,
        "Epsilon": 0,
    },
    "QUANTIZED_LINEAR_AVERAGE_POOLING": {
        "InputTensor": _IMAGE,
        "InputScaleTensor": _one(0.5, np.float32),
        "InputZeroPointTensor": _one(10, np.uint8),
        "OutputScaleTensor": _one(0.25, np.float32),
        "OutputZeroPointTensor": _one(3, np.uint8),
        "Strides": (2, 2),
        "WindowSize": (3, 3),
        "StartPadding": (1, 1),
        "EndPadding": (0, 0),
        "Dilations": (1, 1),
    },
    "ROI_POOLING": {
        "InputTensor": _SQUARE,
        "ROITensor": np.array([[[[0, 0, 0, 2, 2], [0, 1, 1, 3, 2]]]], np.float32),
        "SpatialScale": 1,
        "PooledSize": DML_SIZE_2D(Width=2, Height=2),
    },
    "ROI_ALIGN": {
        "InputTensor": _SQUARE,
        "OutputTensor": _tensor(2, 1, 2, 2),
        "OutOfBoundsInputValue": 0,
        **_REGIONS,
    },
    "ROI_ALIGN1": {
        "InputTensor": _SQUARE,
        "OutputTensor": _tensor(2, 1, 2, 2),
        "OutOfBoundsInputValue": 0,
        **_REGIONS,
        **_OF_CENTRES,
    },
    "ROI_ALIGN_GRAD": {
        "InputTensor": _SQUARE,
        "InputGradientTensor": np.arange(1, 9, dtype=np.float32).reshape(2, 1, 2, 2),
        "OutputGradientTensor": _tensor(1, 1, 4, 4),
        "OutputROIGradientTensor": _tensor(2, 4),
        **_REGIONS,
        **_OF_CENTRES,
    },
    "MULTIHEAD_ATTENTION1": {
        **_ATTENTION,
        "KeyTensor": np.array([[[1, 0], [0, 1], [1, 1]]], np.float32),
        "ValueTensor": np.array([[[1], [2], [3]]], np.float32),
        "QueryHeadCount": 2,
        "KeyValueHeadCount": 1,
    },
    "MATRIX_MULTIPLY_INTEGER": {**_MATRICES, "OutputTensor": TensorDataType.INT32},
    "QUANTIZED_LINEAR_MATRIX_MULTIPLY": {**_MATRICES, **_PARAMETERS, **_QUANTISED_BY},
    "CONVOLUTION_INTEGER": {**_INTEGER_FILTER, "OutputTensor": TensorDataType.INT32},
    "QUANTIZED_LINEAR_CONVOLUTION": {
        **_INTEGER_FILTER,
        "InputScaleTensor": _one(0.5, np.float32),
        "FilterScaleTensor": _one(0.25, np.float32),
        "BiasTensor": _one(8, np.int32),
        **_QUANTISED_BY,
    },
    "DYNAMIC_QUANTIZE_LINEAR": {
        "InputTensor": SIGNED,
        "OutputTensor": TensorDataType.UINT8,
        "OutputScaleTensor": TensorDataType.FLOAT32,
        "OutputZeroPointTensor": TensorDataType.UINT8,
    },
    "MATRIX_MULTIPLY_INTEGER_TO_FLOAT": {**_MATRICES, **_PARAMETERS, "OutputTensor": FLOAT32},
    "QUANTIZE": {
        "InputTensor": _TABLE,
        "QuantizationType": QuantizationType.SCALE_ZERO_POINT,
        "QuantizationTensors": [np.array([[[[0.5, 0.25]]]], np.float32), np.array([[[[3, 1]]]], np.uint8)],
        "OutputTensor": TensorDataType.UINT8,
    },
    "DEQUANTIZE": {
        "InputTensor": np.array([[[[3, 5, 7, 250], [1, 0, 9, 17]]]], np.uint8),
        "QuantizationType": QuantizationType.SCALE_ZERO_POINT,
        "QuantizationTensors": [np.array([[[[0.5, 0.25]]]], np.float32), np.array([[[[3, 1]]]], np.uint8)],
        "OutputTensor": FLOAT32,
    },
    "FOLD": {
        "InputTensor": np.arange(36, dtype=np.float32).reshape(1, 9, 4),
        "OutputTensor": _tensor(1, 1, 4, 4),
        "WindowSizes": (3, 3),
        "Strides": (1, 1),
        "Dilations": (1, 1),
        **_NO_PADDING,
    },
}
"""Those of operators whose specification has none."""


def _as_member(value: Any) -> Any:
    """An array as its tensor, a named activation as its desc."""
    if isinstance(value, list):
        return [_as_member(each) for each in value]
    if isinstance(value, np.ndarray):
        return DML_BUFFER_TENSOR_DESC(DataType=DATA_TYPES[value.dtype], Sizes=value.shape)
    if isinstance(value, tuple) and value and isinstance(value[0], str):
        return spec(value[0]).desc(**value[1])
    return value


@cache
def _example(name: str) -> tuple[OperatorDesc, Sequence[Array | None]]:
    found = spec(name)
    members = found.example or _MEMBERS[name]
    desc = complete(found, {each: _as_member(value) for each, value in members.items()}, max(FeatureLevel))
    inputs: list[Array | None] = []
    for member in filter(lambda member: is_input(found, member), found.tensors):
        value = members.get(member)
        inputs += value if isinstance(value, list) else [value]
    return desc, inputs


class _Examples(Mapping[str, tuple[OperatorDesc, Sequence[Array | None]]]):
    def __getitem__(self, name: str) -> tuple[OperatorDesc, Sequence[Array | None]]:
        if name not in OPERATORS:
            raise KeyError(name)
        return _example(name)

    def __iter__(self) -> Iterator[str]:
        return iter(OPERATORS)

    def __len__(self) -> int:
        return len(OPERATORS)


EXAMPLES = _Examples()
"""For each operator: the desc of its small example, and its inputs."""
