"""The small examples that stand for operators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..core.enums import (
    ConvolutionDirection,
    ConvolutionMode,
    InterpolationMode,
    MatrixTransform,
    PaddingMode,
    ReduceFunction,
    TensorDataType,
)
from ..core.strided_layout import DATA_TYPES, Array
from ..core.tensor_desc import DML_BUFFER_TENSOR_DESC, DML_SCALE_BIAS, DML_SIZE_2D
from ..operators import spec
from ..operators.schema import OperatorDesc
from ..operators.specs import max_pooling, pooling
from ..operators.specs.cast import DML_CAST_OPERATOR_DESC
from ..operators.specs.convolution import DML_CONVOLUTION_OPERATOR_DESC
from ..operators.specs.fill import DML_FILL_VALUE_CONSTANT_OPERATOR_DESC, DML_FILL_VALUE_SEQUENCE_OPERATOR_DESC
from ..operators.specs.gather import DML_GATHER_OPERATOR_DESC
from ..operators.specs.gemm import DML_GEMM_OPERATOR_DESC
from ..operators.specs.image import DML_UPSAMPLE_2D_OPERATOR_DESC, DML_VALUE_SCALE_2D_OPERATOR_DESC
from ..operators.specs.join import DML_JOIN_OPERATOR_DESC, DML_SPLIT_OPERATOR_DESC
from ..operators.specs.normalization import (
    DML_BATCH_NORMALIZATION_OPERATOR_DESC,
    DML_LOCAL_RESPONSE_NORMALIZATION_OPERATOR_DESC,
    DML_MEAN_VARIANCE_NORMALIZATION1_OPERATOR_DESC,
    DML_MEAN_VARIANCE_NORMALIZATION_OPERATOR_DESC,
)
from ..operators.specs.padding import DML_PADDING_OPERATOR_DESC
from ..operators.specs.pooling import DML_QUANTIZED_LINEAR_AVERAGE_POOLING_OPERATOR_DESC
from ..operators.specs.recurrent import DML_GRU_OPERATOR_DESC, DML_LSTM_OPERATOR_DESC, DML_RNN_OPERATOR_DESC
from ..operators.specs.reduce import DML_REDUCE_OPERATOR_DESC
from ..operators.specs.scan import DML_CUMULATIVE_PRODUCT_OPERATOR_DESC, DML_CUMULATIVE_SUMMATION_OPERATOR_DESC
from ..operators.specs.slice import DML_SLICE1_OPERATOR_DESC, DML_SLICE_OPERATOR_DESC


def _desc(name: str) -> Any:
    """The desc's class of an operator."""
    return spec(name).desc


def _packed(array: Array) -> DML_BUFFER_TENSOR_DESC:
    return DML_BUFFER_TENSOR_DESC(DataType=DATA_TYPES[array.dtype], Sizes=array.shape)


def _one(value: float, dtype: type[np.generic]) -> Array:
    return np.array(value, dtype).reshape(1, 1, 1, 1)


def _unary(desc: Any, x: Array, **options: Any) -> tuple[OperatorDesc, list[Array | None]]:
    return desc(**{"InputTensor": _packed(x), "OutputTensor": _packed(x), **options}), [x]


def _of_two(desc: Any, a: Array, b: Array, **options: Any) -> tuple[OperatorDesc, list[Array | None]]:
    return desc(ATensor=_packed(a), BTensor=_packed(b), OutputTensor=_packed(a), **options), [a, b]


def _recurrent(
    desc: Any, w: Array, r: Array, optional: int, outputs: dict[str, int], **options: Any
) -> tuple[OperatorDesc, list[Array | None]]:
    """Without the `optional` inputs, and with outputs of so many steps."""
    tensors = {name: _packed(np.empty((steps, 1, 1, r.shape[3]), np.float32)) for name, steps in outputs.items()}
    found = desc(
        InputTensor=_packed(_SEQUENCE), WeightTensor=_packed(w), RecurrenceTensor=_packed(r), **tensors, **options
    )
    return found, [_SEQUENCE, w, r, *[None] * optional]


def _tensor(*sizes: int, data_type: TensorDataType = TensorDataType.FLOAT32) -> DML_BUFFER_TENSOR_DESC:
    return DML_BUFFER_TENSOR_DESC(DataType=data_type, Sizes=sizes)


def _pooled(desc: Any, places: int, indices: bool = False, **options: Any) -> tuple[OperatorDesc, list[Array | None]]:
    """By a window of 2 by 2, over a small image in single precision."""
    x, y = _IMAGE.astype(np.float32), np.empty((1, 1, places, places), np.float32)
    if indices:
        options["OutputIndicesTensor"] = _packed(np.empty(y.shape, np.uint32))
    numbers = {"Strides": (1, 1), "WindowSize": (2, 2), "StartPadding": (0, 0), "EndPadding": (0, 0)}
    return _unary(desc, x, **{"OutputTensor": _packed(y), **numbers, **options})


_SIGNED = np.array([[[[-2.5, -1, 0], [0.5, 1, 4]]]], np.float32)
_POSITIVE = np.array([[[[0.25, 1, 2], [4, 9, 10]]]], np.float32)
_A = np.array([[[[7, -7, 4], [1, 2, 9]]]], np.float32)
_B = np.array([[[[2, 2, -3], [4, 5, 3]]]], np.float32)
_TABLE = np.array([[[[2, 1, 3, 5], [3, 8, 7, 3], [9, 6, 2, 4]]]], np.float32)
_CHANNELS = np.array([[[[1, 3], [5, 7]], [[4, 4], [8, 8]]]], np.float32)
_MEANS = np.array([4, 6], np.float32).reshape(1, 2, 1, 1)
_VARIANCES = np.array([4, 16], np.float32).reshape(1, 2, 1, 1)
_SCALES = np.array([1, 2], np.float32).reshape(1, 2, 1, 1)
_LEFT = np.arange(1, 7, dtype=np.float32).reshape(1, 1, 2, 3)
_RIGHT = np.arange(7, 15, dtype=np.float32).reshape(1, 1, 2, 4)
_SEQUENCE = np.array([[[[1, 2]], [[0.5, -1]], [[-2, 0.25]]]], np.float32)
_GATES = np.array([[[[1, 0.5], [-0.5, 1], [0.25, 0.25], [2, -1]]]], np.float32)
_STATES = np.array([[[[0.5], [-1], [0.25], [1]]]], np.float32)
_IMAGE = np.array([[[[12, 15, 11, 18], [16, 17, 20, 13], [14, 10, 22, 19], [21, 12, 16, 24]]]], np.uint8)
_SQUARE = np.arange(1, 17, dtype=np.float32).reshape(1, 1, 4, 4)
_COLOURS = np.arange(1, 10, dtype=np.float32).reshape(1, 3, 1, 3)
_INDICES = np.array([[[[2, 0, 0, -1]]]], np.int32)
_INT8 = TensorDataType.INT8
_EDGE = np.array([[[[1, 0, -1], [2, 0, -2], [1, 0, -1]]]], np.float32)

EXAMPLES: Mapping[str, tuple[OperatorDesc, Sequence[Array | None]]] = {
    "ELEMENT_WISE_IDENTITY": _unary(
        _desc("ELEMENT_WISE_IDENTITY"), _SIGNED, ScaleBias=DML_SCALE_BIAS(Scale=2, Bias=10)
    ),
    "ELEMENT_WISE_ABS": _unary(_desc("ELEMENT_WISE_ABS"), _SIGNED),
    "ELEMENT_WISE_ADD": _of_two(_desc("ELEMENT_WISE_ADD"), _A, _B),
    "ELEMENT_WISE_CLIP": _unary(_desc("ELEMENT_WISE_CLIP"), _SIGNED, Min=-1, Max=0.75),
    "ELEMENT_WISE_DIVIDE": _of_two(_desc("ELEMENT_WISE_DIVIDE"), _A, _B),
    "ELEMENT_WISE_EXP": _unary(_desc("ELEMENT_WISE_EXP"), _SIGNED),
    "ELEMENT_WISE_LOG": _unary(_desc("ELEMENT_WISE_LOG"), _POSITIVE),
    "ELEMENT_WISE_MAX": _of_two(_desc("ELEMENT_WISE_MAX"), _A, _B),
    "ELEMENT_WISE_MEAN": _of_two(_desc("ELEMENT_WISE_MEAN"), _A, _B),
    "ELEMENT_WISE_MIN": _of_two(_desc("ELEMENT_WISE_MIN"), _A, _B),
    "ELEMENT_WISE_MULTIPLY": _of_two(_desc("ELEMENT_WISE_MULTIPLY"), _A, _B),
    "ELEMENT_WISE_POW": (
        _desc("ELEMENT_WISE_POW")(InputTensor=_packed(_A), ExponentTensor=_packed(_B), OutputTensor=_packed(_A)),
        [_A, _B],
    ),
    "ELEMENT_WISE_RECIP": _unary(_desc("ELEMENT_WISE_RECIP"), _POSITIVE),
    "ELEMENT_WISE_SQRT": _unary(_desc("ELEMENT_WISE_SQRT"), _POSITIVE),
    "ELEMENT_WISE_SUBTRACT": _of_two(_desc("ELEMENT_WISE_SUBTRACT"), _A, _B),
    "ELEMENT_WISE_THRESHOLD": _unary(_desc("ELEMENT_WISE_THRESHOLD"), _SIGNED, Min=0),
    "ACTIVATION_ELU": _unary(_desc("ACTIVATION_ELU"), _SIGNED, Alpha=1),
    "ACTIVATION_HARDMAX": _unary(_desc("ACTIVATION_HARDMAX"), _SIGNED),
    "ACTIVATION_HARD_SIGMOID": _unary(_desc("ACTIVATION_HARD_SIGMOID"), _SIGNED, Alpha=0.25, Beta=0.5),
    "ACTIVATION_IDENTITY": _unary(_desc("ACTIVATION_IDENTITY"), _SIGNED),
    "ACTIVATION_LEAKY_RELU": _unary(_desc("ACTIVATION_LEAKY_RELU"), _SIGNED, Alpha=0.25),
    "ACTIVATION_LINEAR": _unary(_desc("ACTIVATION_LINEAR"), _SIGNED, Alpha=2, Beta=1),
    "ACTIVATION_LOG_SOFTMAX": _unary(_desc("ACTIVATION_LOG_SOFTMAX"), _SIGNED),
    "ACTIVATION_PARAMETERIZED_RELU": (
        _desc("ACTIVATION_PARAMETERIZED_RELU")(
            InputTensor=_packed(_SIGNED), SlopeTensor=_packed(_POSITIVE), OutputTensor=_packed(_SIGNED)
        ),
        [_SIGNED, _POSITIVE],
    ),
    "ACTIVATION_PARAMETRIC_SOFTPLUS": _unary(_desc("ACTIVATION_PARAMETRIC_SOFTPLUS"), _SIGNED, Alpha=2, Beta=0.5),
    "ACTIVATION_RELU": _unary(_desc("ACTIVATION_RELU"), _SIGNED),
    "ACTIVATION_SCALED_ELU": _unary(_desc("ACTIVATION_SCALED_ELU"), _SIGNED, Alpha=1.6732, Gamma=1.0507),
    "ACTIVATION_SCALED_TANH": _unary(_desc("ACTIVATION_SCALED_TANH"), _SIGNED, Alpha=1, Beta=0.5),
    "ACTIVATION_SIGMOID": _unary(_desc("ACTIVATION_SIGMOID"), _SIGNED),
    "ACTIVATION_SOFTMAX": _unary(_desc("ACTIVATION_SOFTMAX"), _SIGNED),
    "ACTIVATION_SOFTPLUS": _unary(_desc("ACTIVATION_SOFTPLUS"), _SIGNED, Steepness=1),
    "ACTIVATION_SOFTSIGN": _unary(_desc("ACTIVATION_SOFTSIGN"), _SIGNED),
    "ACTIVATION_TANH": _unary(_desc("ACTIVATION_TANH"), _SIGNED),
    "ACTIVATION_THRESHOLDED_RELU": _unary(_desc("ACTIVATION_THRESHOLDED_RELU"), _SIGNED, Alpha=0.5),
    "CONVOLUTION": (
        DML_CONVOLUTION_OPERATOR_DESC(
            InputTensor=_packed(_IMAGE.astype(np.float32)),
            FilterTensor=_packed(_EDGE),
            OutputTensor=_packed(_EDGE[..., :2, :2]),
            Mode=ConvolutionMode.CROSS_CORRELATION,
            Direction=ConvolutionDirection.FORWARD,
            Strides=(1, 1),
            Dilations=(1, 1),
            StartPadding=(0, 0),
            EndPadding=(0, 0),
            OutputPadding=(0, 0),
            GroupCount=1,
        ),
        [_IMAGE.astype(np.float32), _EDGE, None],
    ),
    "GEMM": (
        DML_GEMM_OPERATOR_DESC(
            ATensor=_packed(_LEFT),
            BTensor=_packed(_RIGHT),
            OutputTensor=_packed(np.empty((1, 1, 3, 4), np.float32)),
            TransA=MatrixTransform.TRANSPOSE,
            TransB=MatrixTransform.NONE,
            Alpha=0.5,
            Beta=0,
        ),
        [_LEFT, _RIGHT, None],
    ),
    "REDUCE": (
        DML_REDUCE_OPERATOR_DESC(
            Function=ReduceFunction.SUM,
            InputTensor=_packed(_TABLE),
            OutputTensor=_packed(_TABLE[..., :1]),
            Axes=(3,),
        ),
        [_TABLE],
    ),
    "AVERAGE_POOLING": _pooled(pooling.DML_AVERAGE_POOLING_OPERATOR_DESC, 3),
    "LP_POOLING": _pooled(pooling.DML_LP_POOLING_OPERATOR_DESC, 3, P=2),
    "MAX_POOLING": _pooled(max_pooling.DML_MAX_POOLING_OPERATOR_DESC, 3),
    "SLICE": (
        DML_SLICE_OPERATOR_DESC(
            InputTensor=_packed(_SQUARE),
            OutputTensor=_tensor(1, 1, 2, 2),
            Offsets=(0, 0, 1, 0),
            Sizes=(1, 1, 2, 2),
            Strides=(1, 1, 2, 3),
        ),
        [_SQUARE],
    ),
    "CAST": (
        DML_CAST_OPERATOR_DESC(InputTensor=_packed(_SIGNED), OutputTensor=_tensor(1, 1, 2, 3, data_type=_INT8)),
        [_SIGNED],
    ),
    "SPLIT": (
        DML_SPLIT_OPERATOR_DESC(
            InputTensor=_packed(_TABLE), OutputTensors=[_tensor(1, 1, 1, 4), _tensor(1, 1, 2, 4)], Axis=2
        ),
        [_TABLE],
    ),
    "JOIN": (
        DML_JOIN_OPERATOR_DESC(
            InputTensors=[_packed(_LEFT), _packed(_RIGHT)],
            OutputTensor=_packed(np.empty((1, 1, 2, 7), np.float32)),
            Axis=3,
        ),
        [_LEFT, _RIGHT],
    ),
    "PADDING": (
        DML_PADDING_OPERATOR_DESC(
            InputTensor=_packed(_LEFT),
            OutputTensor=_tensor(1, 1, 4, 7),
            PaddingMode=PaddingMode.REFLECTION,
            PaddingValue=0,
            StartPadding=(0, 0, 1, 2),
            EndPadding=(0, 0, 1, 2),
        ),
        [_LEFT],
    ),
    "VALUE_SCALE_2D": (
        DML_VALUE_SCALE_2D_OPERATOR_DESC(
            InputTensor=_packed(_COLOURS), OutputTensor=_packed(_COLOURS), Scale=0.5, Bias=(10, 20, 30)
        ),
        [_COLOURS],
    ),
    "UPSAMPLE_2D": (
        DML_UPSAMPLE_2D_OPERATOR_DESC(
            InputTensor=_packed(_LEFT),
            OutputTensor=_tensor(1, 1, 4, 6),
            ScaleSize=DML_SIZE_2D(Width=2, Height=2),
            InterpolationMode=InterpolationMode.LINEAR,
        ),
        [_LEFT],
    ),
    "GATHER": (
        DML_GATHER_OPERATOR_DESC(
            InputTensor=_packed(_TABLE),
            IndicesTensor=_packed(_INDICES),
            OutputTensor=_tensor(1, 1, 4, 4),
            Axis=2,
            IndexDimensions=1,
        ),
        [_TABLE, _INDICES],
    ),
    "BATCH_NORMALIZATION": (
        DML_BATCH_NORMALIZATION_OPERATOR_DESC(
            InputTensor=_packed(_CHANNELS),
            MeanTensor=_packed(_MEANS),
            VarianceTensor=_packed(_VARIANCES),
            ScaleTensor=_packed(_SCALES),
            BiasTensor=_packed(_MEANS),
            OutputTensor=_packed(_CHANNELS),
            Spatial=True,
            Epsilon=0,
        ),
        [_CHANNELS, _MEANS, _VARIANCES, _SCALES, _MEANS],
    ),
    "MEAN_VARIANCE_NORMALIZATION": (
        DML_MEAN_VARIANCE_NORMALIZATION_OPERATOR_DESC(
            InputTensor=_packed(_CHANNELS),
            ScaleTensor=_packed(_SCALES),
            BiasTensor=_packed(_MEANS),
            OutputTensor=_packed(_CHANNELS),
            CrossChannel=False,
            NormalizeVariance=True,
            Epsilon=0.00001,
        ),
        [_CHANNELS, _SCALES, _MEANS],
    ),
    "LOCAL_RESPONSE_NORMALIZATION": _unary(
        DML_LOCAL_RESPONSE_NORMALIZATION_OPERATOR_DESC,
        _CHANNELS,
        CrossChannel=True,
        LocalSize=3,
        Alpha=0.75,
        Beta=0.5,
        Bias=1,
    ),
    "RNN": _recurrent(
        DML_RNN_OPERATOR_DESC,
        _GATES[:, :, :2],
        np.array([[[[0.5, 1], [-1, 0.5]]]], np.float32),
        3,
        {"OutputSequenceTensor": 3, "OutputSingleTensor": 1},
        ActivationDescs=[_desc("ACTIVATION_RELU")()],
    ),
    "LSTM": _recurrent(
        DML_LSTM_OPERATOR_DESC,
        _GATES,
        _STATES,
        5,
        {"OutputSingleTensor": 1, "OutputCellSingleTensor": 1},
        ActivationDescs=[
            _desc("ACTIVATION_SIGMOID")(),
            _desc("ACTIVATION_TANH")(),
            _desc("ACTIVATION_TANH")(),
        ],
        ClipThreshold=1,
        UseClipThreshold=True,
    ),
    "GRU": _recurrent(
        DML_GRU_OPERATOR_DESC,
        _GATES[:, :, :3],
        _STATES[:, :, :3],
        3,
        {"OutputSequenceTensor": 3},
        ActivationDescs=[
            _desc("ACTIVATION_SIGMOID")(),
            _desc("ACTIVATION_TANH")(),
        ],
    ),
    "ELEMENT_WISE_ADD1": _of_two(
        _desc("ELEMENT_WISE_ADD1"),
        _A,
        _B,
        FusedActivation=_desc("ACTIVATION_LEAKY_RELU")(Alpha=0.25),
    ),
    "ACTIVATION_SHRINK": _unary(_desc("ACTIVATION_SHRINK"), _SIGNED, Bias=0.5, Threshold=0.5),
    "MAX_POOLING1": _pooled(max_pooling.DML_MAX_POOLING1_OPERATOR_DESC, 3, indices=True),
    "ELEMENT_WISE_MODULUS_TRUNCATE": _of_two(_desc("ELEMENT_WISE_MODULUS_TRUNCATE"), _A, _B),
    "FILL_VALUE_CONSTANT": (
        DML_FILL_VALUE_CONSTANT_OPERATOR_DESC(
            OutputTensor=_tensor(1, 1, 2, 4), ValueDataType=TensorDataType.FLOAT32, Value=13
        ),
        [],
    ),
    "FILL_VALUE_SEQUENCE": (
        DML_FILL_VALUE_SEQUENCE_OPERATOR_DESC(
            OutputTensor=_tensor(1, 1, 2, 4), ValueDataType=TensorDataType.FLOAT32, ValueStart=3, ValueDelta=2
        ),
        [],
    ),
    "CUMULATIVE_SUMMATION": (
        DML_CUMULATIVE_SUMMATION_OPERATOR_DESC(InputTensor=_packed(_TABLE), OutputTensor=_packed(_TABLE), Axis=3),
        [_TABLE],
    ),
    "MAX_POOLING2": _pooled(max_pooling.DML_MAX_POOLING2_OPERATOR_DESC, 2, indices=True, Dilations=(2, 2)),
    "SLICE1": (
        DML_SLICE1_OPERATOR_DESC(
            InputTensor=_packed(_SQUARE),
            OutputTensor=_tensor(1, 1, 2, 2),
            InputWindowOffsets=(0, 0, 0, 1),
            InputWindowSizes=(1, 1, 4, 3),
            InputWindowStrides=(1, 1, -2, 2),
        ),
        [_SQUARE],
    ),
    "MEAN_VARIANCE_NORMALIZATION1": (
        DML_MEAN_VARIANCE_NORMALIZATION1_OPERATOR_DESC(
            InputTensor=_packed(_TABLE), OutputTensor=_packed(_TABLE), Axes=(3,), NormalizeVariance=False, Epsilon=0
        ),
        [_TABLE, None, None],
    ),
    "CUMULATIVE_PRODUCT": (
        DML_CUMULATIVE_PRODUCT_OPERATOR_DESC(InputTensor=_packed(_TABLE), OutputTensor=_packed(_TABLE), Axis=3),
        [_TABLE],
    ),
    "ELEMENT_WISE_CLIP1": _unary(
        _desc("ELEMENT_WISE_CLIP1"),
        _SIGNED,
        MinMaxDataType=TensorDataType.FLOAT32,
        Min=-1,
        Max=0.75,
    ),
    "ELEMENT_WISE_NEGATE": _unary(_desc("ELEMENT_WISE_NEGATE"), _SIGNED),
    "ACTIVATION_SOFTMAX1": _unary(_desc("ACTIVATION_SOFTMAX1"), _SIGNED, Axes=(2,)),
    "ACTIVATION_LOG_SOFTMAX1": _unary(_desc("ACTIVATION_LOG_SOFTMAX1"), _SIGNED, Axes=(2,)),
    "ACTIVATION_HARDMAX1": _unary(_desc("ACTIVATION_HARDMAX1"), _SIGNED, Axes=(2,)),
    "QUANTIZED_LINEAR_AVERAGE_POOLING": (
        DML_QUANTIZED_LINEAR_AVERAGE_POOLING_OPERATOR_DESC(
            InputTensor=_packed(_IMAGE),
            InputScaleTensor=_packed(_one(0.5, np.float32)),
            InputZeroPointTensor=_packed(_one(10, np.uint8)),
            OutputScaleTensor=_packed(_one(0.25, np.float32)),
            OutputZeroPointTensor=_packed(_one(3, np.uint8)),
            OutputTensor=_packed(np.empty((1, 1, 2, 2), np.uint8)),
            Strides=(2, 2),
            WindowSize=(3, 3),
            StartPadding=(1, 1),
            EndPadding=(0, 0),
            Dilations=(1, 1),
        ),
        [_IMAGE, _one(0.5, np.float32), _one(10, np.uint8), _one(0.25, np.float32), _one(3, np.uint8)],
    ),
}
"""For each operator that has a picture by name: its desc and its inputs."""
