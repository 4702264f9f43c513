"""The support tables, transcribed once more from the pages, against the validator: every tensor at every level."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import product
from typing import Any

import pytest

from anydml import (
    DML_ACTIVATION_TANH_OPERATOR_DESC,
    DML_BUFFER_TENSOR_DESC,
    DML_JOIN_OPERATOR_DESC,
    DML_PADDING_OPERATOR_DESC,
    DML_SIZE_2D,
    DML_SPLIT_OPERATOR_DESC,
    Device,
    DMLValueError,
    FeatureLevel,
    HResult,
    InterpolationMode,
    PaddingMode,
    ReduceFunction,
    TensorDataType,
    validate,
)
from anydml.core.enums import ConvolutionDirection, ConvolutionMode, MatrixTransform
from anydml.operators import OPERATORS, spec
from anydml.operators.schema import OperatorDesc

_TALLY_32 = "FLOAT32 FLOAT16 INT32 UINT32"
_TALLY_64 = "FLOAT32 FLOAT16 INT64 INT32 UINT64 UINT32"
_JOIN_1_0 = "FLOAT32 FLOAT16 INT32 INT16 UINT32 UINT16"
_JOIN_2_1 = "FLOAT32 FLOAT16 INT32 INT16 INT8 UINT32 UINT16 UINT8"
_JOIN_4_1 = "FLOAT64 FLOAT32 FLOAT16 INT64 INT32 INT16 INT8 UINT64 UINT32 UINT16 UINT8"
_BYTE = "INT8 UINT8"
_FLOATS = "FLOAT32 FLOAT16"
_SIGNED_32 = "FLOAT32 FLOAT16 INT32 INT16 INT8"
_SIGNED_64 = "FLOAT32 FLOAT16 INT64 INT32 INT16 INT8"
_ALL_BUT_DOUBLE = "FLOAT32 FLOAT16 INT64 INT32 INT16 INT8 UINT64 UINT32 UINT16 UINT8"

_ACTIVATION = [("1.0", 4, 4, _FLOATS), ("2.0", 4, 5, _FLOATS), ("3.0", 1, 8, _FLOATS)]

_MAXIMUM = [("3.0", 4, 5, f"{_FLOATS} {_BYTE}"), ("5.0", 4, 5, _ALL_BUT_DOUBLE)]

# fmt: off
# Operators whose tensors all have the same line at each level.
UNIFORM: dict[str, list[tuple[str, int, int, str]]] = {
    "ELEMENT_WISE_IDENTITY": [
        ("1.0", 4, 5, _FLOATS),
        ("2.1", 4, 5, _JOIN_2_1),
        ("3.0", 1, 8, _JOIN_2_1),
        ("4.1", 1, 8, _JOIN_4_1),
    ],
    "ELEMENT_WISE_ABS": [
        ("1.0", 4, 4, _FLOATS),
        ("2.1", 4, 4, _SIGNED_32),
        ("3.0", 1, 8, _SIGNED_32),
        ("4.1", 1, 8, _SIGNED_64),
    ],
    "ELEMENT_WISE_ADD": [
        ("1.0", 4, 5, _FLOATS),
        ("2.1", 4, 5, _TALLY_32),
        ("3.0", 1, 8, _TALLY_32),
        ("4.1", 1, 8, _TALLY_64),
        ("5.1", 1, 8, _ALL_BUT_DOUBLE),
    ],
    "ELEMENT_WISE_CLIP": [
        ("1.0", 4, 4, _FLOATS),
        ("2.1", 4, 4, _JOIN_2_1),
        ("3.0", 1, 8, _JOIN_2_1),
        ("5.0", 1, 8, _ALL_BUT_DOUBLE),
    ],
    "ELEMENT_WISE_DIVIDE": [
        ("1.0", 4, 4, _FLOATS),
        ("2.1", 4, 4, _TALLY_32),
        ("3.0", 1, 8, _TALLY_32),
        ("5.1", 1, 8, _JOIN_2_1),
        ("6.0", 1, 8, _ALL_BUT_DOUBLE),
    ],
    "ELEMENT_WISE_EXP": [("1.0", 4, 4, _FLOATS), ("3.0", 1, 8, _FLOATS)],
    "ELEMENT_WISE_LOG": [("1.0", 4, 4, _FLOATS), ("3.0", 1, 8, _FLOATS)],
    "ELEMENT_WISE_MAX": [
        ("1.0", 4, 4, _FLOATS),
        ("2.1", 4, 4, _JOIN_2_1),
        ("3.0", 1, 8, _JOIN_2_1),
        ("5.0", 1, 8, _ALL_BUT_DOUBLE),
    ],
    "ELEMENT_WISE_MEAN": [("1.0", 4, 4, _FLOATS), ("2.1", 4, 4, _TALLY_32), ("3.0", 1, 8, _TALLY_32)],
    "ELEMENT_WISE_MIN": [
        ("1.0", 4, 4, _FLOATS),
        ("2.1", 4, 4, _JOIN_2_1),
        ("3.0", 1, 8, _JOIN_2_1),
        ("5.0", 1, 8, _ALL_BUT_DOUBLE),
    ],
    "ELEMENT_WISE_MULTIPLY": [
        ("1.0", 4, 5, _FLOATS),
        ("2.1", 4, 5, _TALLY_32),
        ("3.0", 1, 8, _TALLY_32),
        ("4.1", 1, 8, _TALLY_64),
        ("5.1", 1, 8, _ALL_BUT_DOUBLE),
    ],
    "ELEMENT_WISE_POW": [("1.0", 4, 4, _FLOATS), ("3.0", 1, 8, _JOIN_2_1)],
    "ELEMENT_WISE_RECIP": [("1.0", 4, 4, _FLOATS), ("3.0", 1, 8, _FLOATS)],
    "ELEMENT_WISE_SQRT": [("1.0", 4, 4, _FLOATS), ("3.0", 1, 8, _FLOATS)],
    "ELEMENT_WISE_SUBTRACT": [
        ("1.0", 4, 4, _FLOATS),
        ("2.1", 4, 4, _TALLY_32),
        ("3.0", 1, 8, _TALLY_32),
        ("4.1", 1, 8, _TALLY_64),
        ("5.1", 1, 8, _ALL_BUT_DOUBLE),
    ],
    "ELEMENT_WISE_THRESHOLD": [("1.0", 4, 4, _FLOATS), ("2.1", 4, 4, _JOIN_2_1), ("3.0", 1, 8, _JOIN_2_1)],
    "ELEMENT_WISE_MODULUS_TRUNCATE": [
        ("2.1", 4, 4, _JOIN_2_1),
        ("3.0", 1, 8, _JOIN_2_1),
        ("6.0", 1, 8, _ALL_BUT_DOUBLE),
    ],
    "CONVOLUTION": [("1.0", 4, 5, _FLOATS), ("4.0", 3, 5, _FLOATS)],
    "GEMM": [("1.0", 4, 4, _FLOATS), ("4.0", 2, 4, _FLOATS)],
    "AVERAGE_POOLING": [("1.0", 4, 5, _FLOATS)],
    "LP_POOLING": [("1.0", 4, 5, _FLOATS)],
    "MAX_POOLING": [("1.0", 4, 5, _FLOATS), *_MAXIMUM],
    "ELEMENT_WISE_CLIP1": [("5.0", 1, 8, _ALL_BUT_DOUBLE)],
    "ELEMENT_WISE_NEGATE": [("5.0", 1, 8, _SIGNED_64)],
    "ACTIVATION_ELU": _ACTIVATION,
    "ACTIVATION_HARD_SIGMOID": _ACTIVATION,
    "ACTIVATION_IDENTITY": _ACTIVATION,
    "ACTIVATION_LEAKY_RELU": _ACTIVATION,
    "ACTIVATION_LINEAR": _ACTIVATION,
    "ACTIVATION_PARAMETERIZED_RELU": [*_ACTIVATION, ("5.1", 1, 8, _SIGNED_32)],
    "ACTIVATION_PARAMETRIC_SOFTPLUS": _ACTIVATION,
    "ACTIVATION_RELU": [*_ACTIVATION, ("5.1", 1, 8, _SIGNED_32)],
    "ACTIVATION_SCALED_ELU": _ACTIVATION,
    "ACTIVATION_SCALED_TANH": _ACTIVATION,
    "ACTIVATION_SIGMOID": _ACTIVATION,
    "ACTIVATION_SOFTPLUS": _ACTIVATION,
    "ACTIVATION_SOFTSIGN": _ACTIVATION,
    "ACTIVATION_TANH": _ACTIVATION,
    "ACTIVATION_THRESHOLDED_RELU": _ACTIVATION,
    "ACTIVATION_HARDMAX": _ACTIVATION,
    "ACTIVATION_LOG_SOFTMAX": _ACTIVATION,
    "ACTIVATION_SOFTMAX": _ACTIVATION,
    "ACTIVATION_SOFTMAX1": [("5.1", 1, 8, _FLOATS)],
    "ACTIVATION_LOG_SOFTMAX1": [("5.1", 1, 8, _FLOATS)],
    "ACTIVATION_HARDMAX1": [("5.1", 1, 8, _FLOATS)],
    "ELEMENT_WISE_ADD1": [("2.0", 4, 5, _FLOATS), ("3.0", 1, 8, _FLOATS)],
    "BATCH_NORMALIZATION": [("1.0", 4, 4, _FLOATS), ("3.1", 1, 8, _FLOATS)],
    "MEAN_VARIANCE_NORMALIZATION": [("1.0", 4, 4, _FLOATS)],
    "MEAN_VARIANCE_NORMALIZATION1": [("2.1", 4, 4, _FLOATS), ("3.1", 1, 8, _FLOATS)],
    "LOCAL_RESPONSE_NORMALIZATION": [("1.0", 4, 4, _FLOATS)],
    "ACTIVATION_SHRINK": [("2.0", 4, 5, _FLOATS), ("3.0", 1, 8, _FLOATS), ("5.1", 1, 8, _JOIN_2_1)],
    "SLICE": [
        ("1.0", 4, 5, "FLOAT32 FLOAT16 INT32 INT16 UINT32 UINT16"),
        ("2.1", 4, 5, "FLOAT32 FLOAT16 INT32 INT16 INT8 UINT32 UINT16 UINT8"),
        ("3.0", 1, 8, "FLOAT32 FLOAT16 INT32 INT16 INT8 UINT32 UINT16 UINT8"),
        ("4.1", 1, 8, "FLOAT64 FLOAT32 FLOAT16 INT64 INT32 INT16 INT8 UINT64 UINT32 UINT16 UINT8"),
    ],
    "SLICE1": [
        ("2.1", 4, 5, "FLOAT32 FLOAT16 INT32 INT16 INT8 UINT32 UINT16 UINT8"),
        ("3.0", 1, 8, "FLOAT32 FLOAT16 INT32 INT16 INT8 UINT32 UINT16 UINT8"),
        ("4.1", 1, 8, "FLOAT64 FLOAT32 FLOAT16 INT64 INT32 INT16 INT8 UINT64 UINT32 UINT16 UINT8"),
    ],
    "SPLIT": [
        ("1.0", 4, 4, "FLOAT32 FLOAT16 INT32 INT16 UINT32 UINT16"),
        ("2.1", 4, 4, "FLOAT32 FLOAT16 INT32 INT16 INT8 UINT32 UINT16 UINT8"),
        ("3.0", 1, 8, "FLOAT32 FLOAT16 INT32 INT16 INT8 UINT32 UINT16 UINT8"),
        ("4.1", 1, 8, "FLOAT64 FLOAT32 FLOAT16 INT64 INT32 INT16 INT8 UINT64 UINT32 UINT16 UINT8"),
    ],
    "PADDING": [
        ("1.0", 4, 5, "FLOAT32 FLOAT16"),
        ("2.1", 4, 5, "FLOAT32 FLOAT16 INT32 INT16 INT8 UINT32 UINT16 UINT8"),
        ("3.1", 1, 8, "FLOAT32 FLOAT16 INT32 INT16 INT8 UINT32 UINT16 UINT8"),
        ("5.0", 1, 8, "FLOAT64 FLOAT32 FLOAT16 INT64 INT32 INT16 INT8 UINT64 UINT32 UINT16 UINT8"),
    ],
    "CAST": [
        ("1.0", 4, 4, "FLOAT32 FLOAT16 INT16 INT8 UINT16 UINT8"),
        ("3.0", 4, 4, "FLOAT32 FLOAT16 INT64 INT32 INT16 INT8 UINT64 UINT32 UINT16 UINT8"),
        ("3.1", 1, 8, "FLOAT32 FLOAT16 INT64 INT32 INT16 INT8 UINT64 UINT32 UINT16 UINT8"),
        ("4.1", 1, 8, "FLOAT64 FLOAT32 FLOAT16 INT64 INT32 INT16 INT8 UINT64 UINT32 UINT16 UINT8"),
    ],
    "UPSAMPLE_2D": [("1.0", 4, 5, "FLOAT32 FLOAT16")],
    "VALUE_SCALE_2D": [("1.0", 4, 4, "FLOAT32 FLOAT16")],
    "FILL_VALUE_CONSTANT": [
        ("2.1", 4, 4, "FLOAT32 FLOAT16 INT32 INT16 INT8 UINT32 UINT16 UINT8"),
        ("4.0", 1, 8, "FLOAT32 FLOAT16 INT32 INT16 INT8 UINT32 UINT16 UINT8"),
        ("4.1", 1, 8, "FLOAT64 FLOAT32 FLOAT16 INT64 INT32 INT16 INT8 UINT64 UINT32 UINT16 UINT8"),
    ],
    "FILL_VALUE_SEQUENCE": [
        ("2.1", 4, 4, "FLOAT32 FLOAT16 INT32 INT16 INT8 UINT32 UINT16 UINT8"),
        ("4.0", 1, 8, "FLOAT32 FLOAT16 INT32 INT16 INT8 UINT32 UINT16 UINT8"),
        ("5.0", 1, 8, "FLOAT32 FLOAT16 INT64 INT32 INT16 INT8 UINT64 UINT32 UINT16 UINT8"),
    ],
}

# Operator, with the function that a table is for, and tensor: what holds from a level on, as
# (level, fewest dimensions, most dimensions, data types).
PAGES: dict[str, dict[str, list[tuple[str, int, int, str]]]] = {
    **{
        name: {tensor: rows for tensor in spec(name).members if tensor.endswith(("Tensor", "Tensors"))}
        for name, rows in UNIFORM.items()
    },
    "MAX_POOLING1": {
        "InputTensor": [("2.0", 4, 5, _FLOATS), *_MAXIMUM],
        "OutputTensor": [("2.0", 4, 5, _FLOATS), *_MAXIMUM],
        "OutputIndicesTensor": [("2.0", 4, 5, "UINT32"), ("5.0", 4, 5, "UINT32 UINT64")],
    },
    "MAX_POOLING2": {
        "InputTensor": [("2.1", 4, 5, _FLOATS), *_MAXIMUM],
        "OutputTensor": [("2.1", 4, 5, _FLOATS), *_MAXIMUM],
        "OutputIndicesTensor": [("2.1", 4, 5, "UINT32"), ("5.0", 4, 5, "UINT32 UINT64")],
    },
    "CUMULATIVE_SUMMATION": {
        "InputTensor": [("2.1", 4, 4, _TALLY_32), ("4.0", 1, 8, _TALLY_32), ("5.0", 1, 8, _TALLY_64)],
        "OutputTensor": [("2.1", 4, 4, _TALLY_32), ("4.0", 1, 8, _TALLY_32), ("5.0", 1, 8, _TALLY_64)],
    },
    "CUMULATIVE_PRODUCT": {
        "InputTensor": [("3.1", 4, 4, _TALLY_32), ("4.0", 1, 8, _TALLY_32), ("5.0", 1, 8, _TALLY_64)],
        "OutputTensor": [("3.1", 4, 4, _TALLY_32), ("4.0", 1, 8, _TALLY_32), ("5.0", 1, 8, _TALLY_64)],
    },
    **{
        f"REDUCE {function}": {"InputTensor": rows, "OutputTensor": rows}
        for functions, rows in {
            "AVERAGE L2 LOG_SUM LOG_SUM_EXP": [("1.0", 4, 4, _FLOATS), ("3.0", 1, 8, _FLOATS)],
            "L1 SUM_SQUARE": [("1.0", 4, 4, _FLOATS), ("3.0", 1, 8, _FLOATS), ("5.0", 1, 8, _TALLY_64)],
            "MIN MAX": [
                ("1.0", 4, 4, _FLOATS),
                ("2.1", 4, 4, _TALLY_32),
                ("3.0", 1, 8, _JOIN_2_1),
                ("5.0", 1, 8, _ALL_BUT_DOUBLE),
            ],
            "MULTIPLY SUM": [
                ("1.0", 4, 4, _FLOATS),
                ("2.1", 4, 4, _TALLY_32),
                ("3.0", 1, 8, _TALLY_32),
                ("5.0", 1, 8, _TALLY_64),
            ],
        }.items()
        for function in functions.split()
    },
    **{
        f"REDUCE {function}": {
            "InputTensor": [
                ("1.0", 4, 4, _FLOATS),
                ("2.1", 4, 4, _JOIN_2_1),
                ("3.0", 1, 8, _JOIN_2_1),
                ("4.1", 1, 8, _ALL_BUT_DOUBLE),
            ],
            "OutputTensor": [("1.0", 4, 4, "UINT32"), ("3.0", 1, 8, "INT64 INT32 UINT64 UINT32")],
        }
        for function in ("ARGMIN", "ARGMAX")
    },
    "JOIN": {
        "InputTensors": [
            ("1.0", 4, 4, _JOIN_1_0),
            ("2.1", 4, 4, _JOIN_2_1),
            ("3.0", 4, 5, _JOIN_2_1),
            ("4.1", 1, 8, _JOIN_4_1),
        ],
        "OutputTensor": [
            ("1.0", 4, 4, _JOIN_1_0),
            ("2.1", 4, 4, _JOIN_2_1),
            ("3.0", 4, 5, _JOIN_2_1),
            ("4.1", 1, 8, _JOIN_4_1),
        ],
    },
    "RNN": {
        "InputTensor": [("1.0", 4, 4, _FLOATS)],
        "WeightTensor": [("1.0", 4, 4, _FLOATS)],
        "RecurrenceTensor": [("1.0", 4, 4, _FLOATS)],
        "BiasTensor": [("1.0", 4, 4, _FLOATS)],
        "HiddenInitTensor": [("1.0", 4, 4, _FLOATS)],
        "SequenceLengthsTensor": [("1.0", 4, 4, "UINT32")],
        "OutputSequenceTensor": [("1.0", 4, 4, _FLOATS)],
        "OutputSingleTensor": [("1.0", 4, 4, _FLOATS)],
    },
    "LSTM": {
        "InputTensor": [("1.0", 4, 4, _FLOATS)],
        "WeightTensor": [("1.0", 4, 4, _FLOATS)],
        "RecurrenceTensor": [("1.0", 4, 4, _FLOATS)],
        "BiasTensor": [("1.0", 4, 4, _FLOATS)],
        "HiddenInitTensor": [("1.0", 4, 4, _FLOATS)],
        "CellMemInitTensor": [("1.0", 4, 4, _FLOATS)],
        "SequenceLengthsTensor": [("1.0", 4, 4, "UINT32")],
        "PeepholeTensor": [("1.0", 4, 4, _FLOATS)],
        "OutputSequenceTensor": [("1.0", 4, 4, _FLOATS)],
        "OutputSingleTensor": [("1.0", 4, 4, _FLOATS)],
        "OutputCellSingleTensor": [("1.0", 4, 4, _FLOATS)],
    },
    "GRU": {
        "InputTensor": [("1.0", 4, 4, _FLOATS)],
        "WeightTensor": [("1.0", 4, 4, _FLOATS)],
        "RecurrenceTensor": [("1.0", 4, 4, _FLOATS)],
        "BiasTensor": [("1.0", 4, 4, _FLOATS)],
        "HiddenInitTensor": [("1.0", 4, 4, _FLOATS)],
        "SequenceLengthsTensor": [("1.0", 4, 4, "UINT32")],
        "OutputSequenceTensor": [("1.0", 4, 4, _FLOATS)],
        "OutputSingleTensor": [("1.0", 4, 4, _FLOATS)],
    },
    "GATHER": {
        "InputTensor": [
            ("1.0", 4, 4, "FLOAT32 FLOAT16"),
            ("2.1", 4, 4, "FLOAT32 FLOAT16 INT32 INT16 INT8 UINT32 UINT16 UINT8"),
            ("3.0", 1, 8, "FLOAT32 FLOAT16 INT32 INT16 INT8 UINT32 UINT16 UINT8"),
            ("4.1", 1, 8, "FLOAT64 FLOAT32 FLOAT16 INT64 INT32 INT16 INT8 UINT64 UINT32 UINT16 UINT8"),
        ],
        "IndicesTensor": [("1.0", 4, 4, "UINT32"), ("3.0", 1, 8, "INT64 INT32 UINT64 UINT32")],
        "OutputTensor": [
            ("1.0", 4, 4, "FLOAT32 FLOAT16"),
            ("2.1", 4, 4, "FLOAT32 FLOAT16 INT32 INT16 INT8 UINT32 UINT16 UINT8"),
            ("3.0", 1, 8, "FLOAT32 FLOAT16 INT32 INT16 INT8 UINT32 UINT16 UINT8"),
            ("4.1", 1, 8, "FLOAT64 FLOAT32 FLOAT16 INT64 INT32 INT16 INT8 UINT64 UINT32 UINT16 UINT8"),
        ],
    },
    "QUANTIZED_LINEAR_AVERAGE_POOLING": {
        "InputTensor": [("6.2", 4, 5, _BYTE)],
        "InputScaleTensor": [("6.2", 1, 5, "FLOAT32")],
        "InputZeroPointTensor": [("6.2", 1, 5, _BYTE)],
        "OutputScaleTensor": [("6.2", 1, 5, "FLOAT32")],
        "OutputZeroPointTensor": [("6.2", 1, 5, _BYTE)],
        "OutputTensor": [("6.2", 4, 5, _BYTE)],
    },
}

Shape = tuple[int, TensorDataType]
"""Dimension count and data type."""


def ones(shape: Shape) -> DML_BUFFER_TENSOR_DESC:
    return DML_BUFFER_TENSOR_DESC(DataType=shape[1], Sizes=(1,) * shape[0])


def plain(operator: str, **tensors: Shape) -> OperatorDesc:
    rank, data_type = tensors["OutputTensor"]
    zeros, ones_ = (0,) * rank, (1,) * rank
    options: dict[str, dict[str, Any]] = {
        "CUMULATIVE_SUMMATION": {"Axis": 0},
        "CUMULATIVE_PRODUCT": {"Axis": 0},
        "ACTIVATION_SOFTMAX1": {"Axes": [0]},
        "ACTIVATION_LOG_SOFTMAX1": {"Axes": [0]},
        "ACTIVATION_HARDMAX1": {"Axes": [0]},
        "GEMM": {"TransA": MatrixTransform.NONE, "TransB": MatrixTransform.NONE},
        "REDUCE": {"Axes": [0]},
        "BATCH_NORMALIZATION": {"Spatial": True},
        "MEAN_VARIANCE_NORMALIZATION": {"CrossChannel": True, "NormalizeVariance": True},
        "MEAN_VARIANCE_NORMALIZATION1": {"Axes": [0], "NormalizeVariance": True},
        "LOCAL_RESPONSE_NORMALIZATION": {"CrossChannel": True, "LocalSize": 1},
        "ELEMENT_WISE_CLIP1": {"MinMaxDataType": data_type, "Min": 0, "Max": 1},
        "SLICE": {"Offsets": zeros, "Sizes": ones_, "Strides": ones_},
        "SLICE1": {"InputWindowOffsets": zeros, "InputWindowSizes": ones_, "InputWindowStrides": ones_},
        "PADDING": {
            "PaddingMode": PaddingMode.EDGE,
            "StartPadding": zeros,
            "EndPadding": zeros,
        },
        "GATHER": {"Axis": 0, "IndexDimensions": 1},
        "UPSAMPLE_2D": {
            "ScaleSize": DML_SIZE_2D(Width=1, Height=1),
            "InterpolationMode": InterpolationMode.NEAREST_NEIGHBOR,
        },
        "VALUE_SCALE_2D": {"Bias": [0]},
        "FILL_VALUE_CONSTANT": {"ValueDataType": data_type, "Value": 0},
        "FILL_VALUE_SEQUENCE": {"ValueDataType": data_type, "ValueStart": 0, "ValueDelta": 0},
    }
    operator, _, function = operator.partition(" ")
    members: dict[str, Any] = {"Function": ReduceFunction[function]} if function else {}
    members |= {name: 1 for name, kind in spec(operator).members.items() if kind == "FLOAT"}
    members |= {name: ones(shape) for name, shape in tensors.items()}
    return spec(operator).desc(**members, **options.get(operator, {}))


def joined(InputTensors: Shape, OutputTensor: Shape) -> OperatorDesc:
    return DML_JOIN_OPERATOR_DESC(InputTensors=[ones(InputTensors)], OutputTensor=ones(OutputTensor), Axis=0)


def cut(InputTensor: Shape, OutputTensors: Shape) -> OperatorDesc:
    return DML_SPLIT_OPERATOR_DESC(InputTensor=ones(InputTensor), OutputTensors=[ones(OutputTensors)], Axis=0)


def pooled(operator: str, **tensors: Shape) -> OperatorDesc:
    """A window, or a filter, of one tap in each dimension."""
    found, spatial = spec(operator), max(0, tensors["InputTensor"][0] - 2)
    numbers = dict.fromkeys(("GroupCount", "P"), 1)
    arrays = {name: [int("Padding" not in name)] * spatial for name, kind in found.members.items() if kind == "UINTs"}
    enums = {"Mode": ConvolutionMode.CONVOLUTION, "Direction": ConvolutionDirection.FORWARD}
    members = {name: value for name, value in {**numbers, **enums}.items() if name in found.members}
    return found.desc(**{name: ones(shape) for name, shape in tensors.items()}, **arrays, **members)


RECURRENT = {"RNN": (1, 1), "LSTM": (4, 3), "GRU": (3, 2)}
"""Gates and activations."""


def unrolled(operator: str, **tensors: Shape) -> OperatorDesc:
    """One step of one sequence, from a size of 1 to a size of 1."""
    gates, activations = RECURRENT[operator]
    sizes = {
        "WeightTensor": (1, 1, gates, 1),
        "RecurrenceTensor": (1, 1, gates, 1),
        "BiasTensor": (1, 1, 1, 2 * gates),
        "PeepholeTensor": (1, 1, 1, 3),
    }
    members = {
        name: DML_BUFFER_TENSOR_DESC(DataType=shape[1], Sizes=sizes[name])
        if shape[0] == 4 and name in sizes
        else ones(shape)
        for name, shape in tensors.items()
    }
    clip = {"ClipThreshold": 1} if operator == "LSTM" else {}
    return spec(operator).desc(**members, **clip, ActivationDescs=[DML_ACTIVATION_TANH_OPERATOR_DESC()] * activations)


def recurrent_partners(operator: str, tensor: str, shape: Shape) -> dict[str, Shape]:
    """As for pooling."""
    length, real = TensorDataType.UINT32, TensorDataType.FLOAT32 if tensor == "SequenceLengthsTensor" else shape[1]
    others = {name: (4, length if name == "SequenceLengthsTensor" else real) for name in PAGES[operator]}
    return {**others, tensor: shape}


def pooling_partners(tensor: str, shape: Shape) -> dict[str, Shape]:
    """The other tensors, such that no rule but the support table can be broken wherever that is possible."""
    byte, real = TensorDataType.INT8, TensorDataType.FLOAT32
    others = {
        "InputTensor": (4, byte),
        "InputScaleTensor": (4, real),
        "InputZeroPointTensor": (4, byte),
        "OutputScaleTensor": (4, real),
        "OutputZeroPointTensor": (4, byte),
        "OutputTensor": (4, byte),
    }
    count, data_type = shape
    if tensor in ("InputTensor", "OutputTensor"):
        others["InputTensor"] = others["OutputTensor"] = (count, byte)
    for side in ("Input", "Output"):
        if tensor in (f"{side}Tensor", f"{side}ZeroPointTensor"):
            others[f"{side}Tensor"] = (others[f"{side}Tensor"][0], data_type)
            others[f"{side}ZeroPointTensor"] = (4, data_type)
    return {**others, tensor: shape}


def gather_partners(tensor: str, shape: Shape) -> dict[str, Shape]:
    """Likewise: indices of a type that every level has, or of what is gathered a type that every level has."""
    data = (shape[0], TensorDataType.FLOAT32) if tensor == "IndicesTensor" else shape
    return {
        "InputTensor": data,
        "IndicesTensor": (shape[0], TensorDataType.UINT32),
        "OutputTensor": data,
        tensor: shape,
    }


BUILDERS: dict[str, Callable[..., OperatorDesc]] = {
    "JOIN": joined,
    "SPLIT": cut,
}
PARTNERS = {"GATHER": gather_partners, "QUANTIZED_LINEAR_AVERAGE_POOLING": pooling_partners}
for _name in RECURRENT:
    BUILDERS[_name] = partial(unrolled, _name)
    PARTNERS[_name] = partial(recurrent_partners, _name)


def build(operator: str, tensor: str, shape: Shape) -> tuple[OperatorDesc, Mapping[str, Shape]]:
    shapes = PARTNERS[operator](tensor, shape) if operator in PARTNERS else dict.fromkeys(PAGES[operator], shape)
    return built(operator, shapes), shapes


def built(operator: str, shapes: Mapping[str, Shape]) -> OperatorDesc:
    return BUILDERS[operator](**shapes) if operator in BUILDERS else plain(operator, **shapes)


def indexed_partners(tensor: str, shape: Shape) -> dict[str, Shape]:
    """Indices are of a type of their own."""
    is_index = tensor == "OutputIndicesTensor"
    values = (shape[0], TensorDataType.FLOAT32) if is_index else shape
    indices = shape if is_index else (shape[0], TensorDataType.UINT32)
    return {"InputTensor": values, "OutputTensor": values, "OutputIndicesTensor": indices}


for _name in OPERATORS:
    if {"WindowSize", "FilterTensor"} & {*spec(_name).members}:
        BUILDERS[_name] = partial(pooled, _name)
    if "OutputIndicesTensor" in spec(_name).members:
        PARTNERS[_name] = indexed_partners


def row_at(operator: str, tensor: str, level: FeatureLevel) -> tuple[range, frozenset[str]] | None:
    """Dimension counts and data types of a tensor at a level; None where the operator is not there."""
    found = None
    for since, fewest, most, types in PAGES[operator][tensor]:
        major, minor = map(int, since.split("."))
        if level.value >= major * 0x1000 + minor * 0x100:
            found = range(fewest, most + 1), frozenset(types.split())
    return found


def code(fits_later: bool) -> HResult:
    return HResult.DXGI_ERROR_UNSUPPORTED if fits_later else HResult.E_INVALIDARG


Finding = tuple[str, str, HResult]
"""Rule, place, code."""


def labelled(tensor: str) -> str:
    return f"{tensor}[0]" if tensor.endswith("s") else tensor


def expected_findings(operator: str, shapes: Mapping[str, Shape], level: FeatureLevel) -> Iterator[Finding]:
    later = [higher for higher in FeatureLevel if higher > level]
    for tensor, (count, data_type) in shapes.items():
        label = labelled(tensor)
        if not 1 <= count <= 8:
            yield "(T2)", f"{label}.Sizes", HResult.E_INVALIDARG
        if data_type == TensorDataType.UNKNOWN:
            yield "(T1)", f"{label}.DataType", HResult.E_INVALIDARG
        row = row_at(operator, tensor, level)
        if row is None:
            continue
        rows = [found for higher in later if (found := row_at(operator, tensor, higher))]
        if 1 <= count <= 8 and count not in row[0]:
            yield "(S2)", f"{label}.DimensionCount", code(any(count in counts for counts, _ in rows))
        if data_type != TensorDataType.UNKNOWN and data_type.name not in row[1]:
            yield "(S3)", f"{label}.DataType", code(any(data_type.name in types for _, types in rows))
    if row_at(operator, next(iter(shapes)), level) is None:
        yield "(S1)", "", HResult.DXGI_ERROR_UNSUPPORTED


def test_every_operator_is_transcribed() -> None:
    assert {name.split()[0] for name in PAGES} == set(OPERATORS)
    assert {name for name in PAGES if name.startswith("REDUCE")} == {f"REDUCE {each.name}" for each in ReduceFunction}


# Every count and every type, and some of both that only one of two tables has.
SHAPES = [
    *product(range(10), [TensorDataType.FLOAT32]),
    *product([4], TensorDataType),
    *product([1, 8], [TensorDataType.INT8, TensorDataType.UINT64]),
]


@pytest.mark.parametrize("level", FeatureLevel, ids=lambda level: level.number)
@pytest.mark.parametrize(
    ("operator", "tensor"), [(operator, tensor) for operator in PAGES for tensor in PAGES[operator]]
)
def test_accepts_and_refuses_as_the_page_says(operator: str, tensor: str, level: FeatureLevel) -> None:
    for shape in SHAPES:
        desc, shapes = build(operator, tensor, shape)
        expected = set(expected_findings(operator, shapes, level))
        violations = validate(desc, level)
        found = {(v.rule, v.where, v.hresult) for v in violations if v.rule[1] in "ST"}
        assert found == expected, (shape, violations)
        assert expected or not violations, (shape, violations)
        for violation in violations:
            if violation.rule[1] == "S":
                assert violation.feature_level == level
                assert f"at feature level {level.number}" in str(violation)


@pytest.mark.parametrize("operator", PAGES)
def test_a_tensor_alone_can_break_the_table(operator: str) -> None:
    """One tensor outside the table, all others inside it: the violation names that tensor."""
    for tensor in PAGES[operator]:
        shapes: dict[str, Any] = {
            name: (4, TensorDataType[rows[0][3].split()[0]]) for name, rows in PAGES[operator].items()
        }
        shapes[tensor] = (4, TensorDataType.UINT4)
        refused = [v.where for v in validate(built(operator, shapes)) if v.rule == "(S3)"]
        assert refused == [f"{labelled(tensor)}.DataType"]


def test_the_remedy_names_the_first_level_that_helps() -> None:
    desc, _ = build("JOIN", "InputTensors", (4, TensorDataType.UINT8))
    first, second = validate(desc, FeatureLevel.LEVEL_1_0)
    assert first.remedy == second.remedy == "UINT8 needs feature level 2.1"
    desc, _ = build("JOIN", "InputTensors", (5, TensorDataType.FLOAT32))
    assert {v.remedy for v in validate(desc, FeatureLevel.LEVEL_2_1)} == {"5 needs feature level 3.0"}


def test_a_device_refuses_what_its_level_lacks() -> None:
    desc, _ = build("CUMULATIVE_PRODUCT", "InputTensor", (4, TensorDataType.FLOAT32))
    Device("reference", FeatureLevel.LEVEL_3_1).create_operator(desc)
    with pytest.raises(DMLValueError, match=r"\(S1\)") as raised:
        Device("reference", FeatureLevel.LEVEL_3_0).create_operator(desc)
    assert raised.value.hresult == HResult.DXGI_ERROR_UNSUPPORTED
    assert "feature level 3.1 or higher" in str(raised.value)


def test_cumulative_integers_are_there_from_the_first_level_on() -> None:
    """The newer page has INT32 where an older translation has UINT16."""
    for data_type, accepted in (("INT32", True), ("UINT32", True), ("UINT16", False)):
        desc, _ = build("CUMULATIVE_PRODUCT", "InputTensor", (4, TensorDataType[data_type]))
        assert (not validate(desc, FeatureLevel.LEVEL_3_1)) == accepted


def test_a_value_of_an_enum_may_be_newer_than_its_operator() -> None:
    x = DML_BUFFER_TENSOR_DESC(DataType=TensorDataType.FLOAT32, Sizes=(1, 1, 2, 3))
    ends = {"StartPadding": (0,) * 4, "EndPadding": (0,) * 4, "PaddingValue": 0}
    later = {PaddingMode.SYMMETRIC: FeatureLevel.LEVEL_3_0, PaddingMode.WRAP: FeatureLevel.LEVEL_6_4}
    for mode, level in product(PaddingMode, FeatureLevel):
        desc = DML_PADDING_OPERATOR_DESC(InputTensor=x, OutputTensor=x, PaddingMode=mode, **ends)
        violations = validate(desc, level)
        since = later.get(mode, FeatureLevel.LEVEL_1_0)
        assert [(v.rule, v.where, v.hresult) for v in violations] == (
            [("(S5)", "PaddingMode", HResult.DXGI_ERROR_UNSUPPORTED)] if level < since else []
        )
        for violation in violations:
            assert violation.found == mode.name
            assert violation.remedy == f"{mode.name} needs feature level {since.number}"
            assert ("SYMMETRIC" in violation.expected) == (level >= FeatureLevel.LEVEL_3_0)
