"""Every rule on descs, broken: the label, the place, what was found and what is expected."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from importlib import import_module
from itertools import product
from typing import Any

import numpy as np
import pytest

from anydml import (
    DML_ACTIVATION_ELU_OPERATOR_DESC,
    DML_ACTIVATION_RELU_OPERATOR_DESC,
    DML_ACTIVATION_SOFTMAX_OPERATOR_DESC,
    DML_ACTIVATION_TANH_OPERATOR_DESC,
    DML_BUFFER_TENSOR_DESC,
    DML_CUMULATIVE_PRODUCT_OPERATOR_DESC,
    DML_CUMULATIVE_SUMMATION_OPERATOR_DESC,
    DML_JOIN_OPERATOR_DESC,
    DML_QUANTIZED_LINEAR_AVERAGE_POOLING_OPERATOR_DESC,
    DML_REDUCE_OPERATOR_DESC,
    DML_SCALE_BIAS,
    AxisDirection,
    Device,
    DMLError,
    DMLMemoryError,
    DMLTypeError,
    DMLValueError,
    FeatureLevel,
    HResult,
    ReduceFunction,
    TensorDataType,
    TensorFlags,
    Violation,
    quantized_linear_average_pooling,
    validate,
)
from anydml.core.errors import error
from anydml.operators import OPERATORS, spec, spec_of
from anydml.operators.schema import OperatorDesc
from cases import Negative, negatives_beside_cases, tensor
from harness import ENGINES, compiled

validation = import_module("anydml.operators.validate")  # the name in the package is the function's
FLOAT32, UINT8 = TensorDataType.FLOAT32, TensorDataType.UINT8


def bad(**members: Any) -> DML_BUFFER_TENSOR_DESC:
    """A tensor with something wrong; {2, 3} FLOAT32 is what is right."""
    return DML_BUFFER_TENSOR_DESC(**{"DataType": FLOAT32, "Sizes": (2, 3), **members})


GOOD = bad()


def summation(**members: Any) -> OperatorDesc:
    return DML_CUMULATIVE_SUMMATION_OPERATOR_DESC(**{"InputTensor": GOOD, "OutputTensor": GOOD, "Axis": 1, **members})


def multiplication(**members: Any) -> OperatorDesc:
    return DML_CUMULATIVE_PRODUCT_OPERATOR_DESC(**{"InputTensor": GOOD, "OutputTensor": GOOD, "Axis": 1, **members})


def join(**members: Any) -> OperatorDesc:
    right = {"InputTensors": [GOOD, GOOD], "OutputTensor": tensor((4, 3)), "Axis": 0}
    return DML_JOIN_OPERATOR_DESC(**{**right, **members})


def element_wise(operator: str, **members: Any) -> OperatorDesc:
    return uniform(f"ELEMENT_WISE_{operator}", **members)


def uniform(operator: str, **members: Any) -> OperatorDesc:
    """An operator whose tensors are all alike."""
    found = spec(operator)
    values = {"Tensor": GOOD, "FLOAT": 1, "SCALAR": 1, "UINTs": (0,), "enums.TensorDataType": FLOAT32}
    right = {name: values[kind] for name, kind in found.members.items() if kind in values}
    return found.desc(**{**right, **members})


def activation(name: str, **members: Any) -> OperatorDesc:
    """One that is fused."""
    return spec(f"ACTIVATION_{name}").desc(**members)


def add1(fused: Any, **members: Any) -> OperatorDesc:
    return element_wise("ADD1", FusedActivation=fused, **members)


def clip1(data_type: TensorDataType, **members: Any) -> OperatorDesc:
    """On a type of its own."""
    x = bad(DataType=data_type)
    return element_wise("CLIP1", **{"InputTensor": x, "OutputTensor": x, "MinMaxDataType": data_type, **members})


UNIFORM = [name for name in OPERATORS if name.startswith(("ELEMENT_WISE_", "ACTIVATION_"))]


def pooling(**members: Any) -> OperatorDesc:
    """A window of 2 by 2 over {1, 3, 4, 5}."""
    right = {
        "InputTensor": tensor((1, 3, 4, 5), "UINT8"),
        "InputScaleTensor": tensor((1, 1, 1, 1)),
        "InputZeroPointTensor": tensor((1, 3, 1, 1), "UINT8"),
        "OutputScaleTensor": tensor((1, 1, 1, 1)),
        "OutputZeroPointTensor": tensor((1, 1, 1, 1), "UINT8"),
        "OutputTensor": tensor((1, 3, 3, 4), "UINT8"),
        "Strides": (1, 1),
        "WindowSize": (2, 2),
        "StartPadding": (0, 0),
        "EndPadding": (0, 0),
        "Dilations": (1, 1),
    }
    return DML_QUANTIZED_LINEAR_AVERAGE_POOLING_OPERATOR_DESC(**{**right, **members})


def recurrent(operator: str, **members: Any) -> OperatorDesc:
    """Four steps of five sequences, from sizes of 3 to 2."""
    gates, activations = {"RNN": (1, 1), "LSTM": (4, 3), "GRU": (3, 2)}[operator]
    right = {
        "InputTensor": tensor((1, 4, 5, 3)),
        "WeightTensor": tensor((1, 1, 2 * gates, 3)),
        "RecurrenceTensor": tensor((1, 1, 2 * gates, 2)),
        "OutputSingleTensor": tensor((1, 1, 5, 2)),
        "ActivationDescs": [DML_ACTIVATION_TANH_OPERATOR_DESC()] * activations,
        **({"ClipThreshold": 1} if operator == "LSTM" else {}),
    }
    return spec(operator).desc(**{**right, **members})


RECURRENT = ("RNN", "LSTM", "GRU")


def reduce(function: str = "SUM", **members: Any) -> OperatorDesc:
    right = {"InputTensor": GOOD, "OutputTensor": tensor((1, 3)), "Axes": (0,)}
    return DML_REDUCE_OPERATOR_DESC(**{"Function": ReduceFunction[function], **right, **members})


def reduce_many(size: int) -> OperatorDesc:
    """The index among so many elements, as an INT32."""
    x = tensor((size,), "UINT8", (0,))
    return reduce("ARGMAX", InputTensor=x, OutputTensor=tensor((1,), "INT32"))


IMAGE = tensor((2, 3, 4, 5))
CHANNELS = tensor((1, 3, 1, 1))
NORMALIZATIONS: dict[str, dict[str, Any]] = {
    "BATCH_NORMALIZATION": {"Spatial": True, "Epsilon": 0},
    "MEAN_VARIANCE_NORMALIZATION": {"CrossChannel": True, "NormalizeVariance": True, "Epsilon": 0},
    "MEAN_VARIANCE_NORMALIZATION1": {"Axes": (2, 3), "NormalizeVariance": True, "Epsilon": 0},
    "LOCAL_RESPONSE_NORMALIZATION": {"CrossChannel": True, "LocalSize": 5, "Alpha": 1, "Beta": 1, "Bias": 1},
}


def normalization(operator: str, **members: Any) -> OperatorDesc:
    """With a parameter for each channel."""
    found = spec(operator)
    tensors = {name: IMAGE if name in ("InputTensor", "OutputTensor") else CHANNELS for name in found.tensors}
    return found.desc(**{**tensors, **NORMALIZATIONS[operator], **members})


NEGATIVES = [
    # Members
    Negative("(F1)", summation(InputTensor=None), "InputTensor", "None", "a DML_BUFFER_TENSOR_DESC"),
    Negative("(F1)", summation(OutputTensor=[GOOD]), "OutputTensor", "tuple (DML", "a DML_BUFFER_TENSOR_DESC"),
    Negative("(F1)", join(InputTensors=[GOOD, 3]), "InputTensors[1]", "int 3", "a DML_BUFFER_TENSOR_DESC"),
    Negative("(F1)", join(InputTensors=GOOD), "InputTensors", "DML_BUFFER_TENSOR_DESC", "a list"),
    Negative("(F1)", pooling(InputZeroPointTensor=7), "InputZeroPointTensor", "int 7", "or None"),
    Negative("(F2)", summation(Axis=-1), "Axis", "int -1", "from 0 to 2^32 - 1"),
    Negative("(F2)", summation(Axis=2**32), "Axis", "int 4294967296", "from 0 to 2^32 - 1"),
    Negative("(F2)", summation(Axis=True), "Axis", "bool True", "an integer"),
    Negative("(F2)", summation(Axis=1.0), "Axis", "float 1.0", "an integer"),
    Negative("(F2)", summation(Axis="1"), "Axis", "str '1'", "an integer"),
    Negative("(F2)", pooling(WindowSize=2), "WindowSize", "int 2", "a list, each an integer"),
    Negative("(F2)", pooling(EndPadding=(0, -1)), "EndPadding[1]", "int -1", "an integer from 0"),
    Negative("(F2)", join(InputCount=-1), "InputCount", "int -1", "from 0 to 2^32 - 1"),
    Negative("(F3)", summation(HasExclusiveSum=2), "HasExclusiveSum", "int 2", "True or False"),
    Negative("(F3)", multiplication(HasExclusiveProduct="no"), "HasExclusiveProduct", "'no'", "True or False"),
    Negative("(F3)", pooling(IncludePadding=None), "IncludePadding", "None", "True or False"),
    Negative("(F4)", summation(AxisDirection=1), "AxisDirection", "int 1", "AxisDirection.DECREASING"),
    Negative("(F4)", summation(AxisDirection="DECREASING"), "AxisDirection", "'DECREASING'", "AxisDirection.INC"),
    Negative("(F4)", summation(AxisDirection=UINT8), "AxisDirection", "UINT8", "AxisDirection.INCREASING"),
    Negative("(F5)", join(InputCount=3), "InputTensors", "2 elements", "3, which InputCount says"),
    Negative("(F5)", pooling(WindowSize=(2, 2, 2)), "WindowSize", "3 elements", "2, which DimensionCount says"),
    Negative("(F5)", pooling(Dilations=()), "Dilations", "0 elements", "2, which DimensionCount says"),
    Negative("(F8)", element_wise("CLIP", Min="0"), "Min", "str '0'", "a number of single precision"),
    Negative("(F8)", element_wise("CLIP", Max=1e39), "Max", "float 1e+39", "a number of single precision"),
    Negative("(F8)", element_wise("CLIP", Max=2**128), "Max", "int 3402", "a number of single precision"),
    Negative("(F8)", element_wise("THRESHOLD", Min=True), "Min", "bool True", "a number of single precision"),
    Negative("(F8)", element_wise("THRESHOLD", Min=None), "Min", "None", "a number of single precision"),
    Negative("(F8)", element_wise("CLIP1", Min=1j), "Min", "complex 1j", "a real number"),
    Negative("(F8)", element_wise("CLIP1", Max=2**64), "Max", "int 1844", "a real number"),
    Negative("(F9)", element_wise("ABS", ScaleBias=2), "ScaleBias", "int 2", "or None"),
    Negative(
        "(F9)",
        element_wise("POW", ScaleBias=DML_SCALE_BIAS(Scale="1", Bias=0)),
        "ScaleBias",
        "DML_SCALE_BIAS(Scale='1'",
        "a DML_SCALE_BIAS of two numbers",
    ),
    Negative(
        "(F9)",
        element_wise("EXP", ScaleBias=DML_SCALE_BIAS(Scale=1, Bias=-1e39)),
        "ScaleBias",
        "DML_SCALE_BIAS",
        "a DML_SCALE_BIAS of two numbers",
    ),
    Negative("(F11)", add1(3), "FusedActivation", "int 3", "such as DML_ACTIVATION_RELU_OPERATOR_DESC(), or None"),
    Negative("(F11)", add1(GOOD), "FusedActivation", "DML_BUFFER_TENSOR_DESC", "that may be fused"),
    Negative("(F11)", add1([activation("RELU")]), "FusedActivation", "tuple", "that may be fused"),
    Negative("(F11)", add1(type(activation("RELU"))), "FusedActivation", "type", "that may be fused"),
    Negative("(F11)", add1(activation("HARDMAX")), "FusedActivation", "DML_ACTIVATION_HARDMAX", "that may be fused"),
    Negative("(F11)", add1(element_wise("ADD1")), "FusedActivation", "DML_ELEMENT_WISE_ADD1", "that may be fused"),
    Negative(
        "(F11)",
        add1(uniform("ACTIVATION_PARAMETERIZED_RELU")),
        "FusedActivation",
        "DML_ACTIVATION_PARAMETERIZED_RELU_OPERATOR_DESC(...",
        "that may be fused",
    ),
    Negative(
        "(F11)",
        add1(activation("RELU", OutputTensor=GOOD)),
        "FusedActivation.OutputTensor",
        "DML_BUFFER_TENSOR_DESC",
        "None",
    ),
    Negative("(F8)", add1(activation("ELU", Alpha="1")), "FusedActivation.Alpha", "str '1'", "of single precision"),
    Negative("(F2)", add1(activation("SOFTMAX1", Axes=[-1])), "FusedActivation.Axes[0]", "int -1", "an integer from 0"),
    Negative("(F5)", add1(activation("SOFTMAX1", Axes=[1], AxisCount=2)), "FusedActivation.Axes", "1 elements", "2"),
    Negative(
        "(S4)",
        add1(spec("ELEMENT_WISE_CLIP").desc(InputTensor=None, OutputTensor=None, Min=0, Max=1)),
        "FusedActivation",
        "ELEMENT_WISE_CLIP",
        "ACTIVATION_RELU",
    ),
    Negative("(S4)", add1(activation("SOFTMAX")), "FusedActivation", "ACTIVATION_SOFTMAX", "ACTIVATION_RELU"),
    Negative(
        "(S4)", add1(activation("SOFTMAX1", Axes=[9])), "FusedActivation", "ACTIVATION_SOFTMAX1", "or ACTIVATION_S"
    ),
    Negative("(F6)", None, "desc", "None", "operators that `anydml ops` lists"),
    Negative("(F6)", "JOIN", "desc", "str 'JOIN'", "DML_..._OPERATOR_DESC"),
    Negative("(F6)", DML_JOIN_OPERATOR_DESC, "desc", "type", "DML_..._OPERATOR_DESC"),
    Negative("(F6)", type("DML_JOIN_OPERATOR_DESC", (), {})(), "desc", "DML_JOIN_OPERATOR_DESC", "DML_..."),
    # Tensors
    Negative("(T1)", summation(InputTensor=bad(DataType=1)), "InputTensor.DataType", "int 1", "a TensorDataType"),
    Negative("(T1)", summation(InputTensor=bad(DataType="FLOAT32")), "InputTensor.DataType", "'FLOAT32'", "TensorData"),
    Negative("(T2)", summation(InputTensor=bad(Sizes=3)), "InputTensor.Sizes", "int 3", "a list of integers"),
    Negative("(T2)", summation(InputTensor=bad(Sizes=(2, "a"))), "InputTensor.Sizes", "(2, 'a')", "a list of integers"),
    Negative("(T2)", summation(InputTensor=bad(Sizes=(2, True))), "InputTensor.Sizes", "(2, True)", "of integers"),
    Negative("(T3)", summation(InputTensor=bad(Strides=(3,))), "InputTensor.Strides", "1 strides", "2, as many as"),
    Negative("(T3)", summation(InputTensor=bad(Strides=(3, -1))), "InputTensor.Strides[1]", "-1", "at least 0"),
    Negative("(T3)", summation(InputTensor=bad(Strides=4)), "InputTensor.Strides", "int 4", "or None"),
    Negative("(T3)", summation(InputTensor=bad(Strides=(3, "1"))), "InputTensor.Strides", "(3, '1')", "of integers"),
    Negative("(T4)", summation(InputTensor=bad(DimensionCount=3)), "InputTensor.DimensionCount", "3", "2, the length"),
    Negative("(T4)", summation(InputTensor=bad(DimensionCount="2")), "InputTensor.DimensionCount", "'2'", "an integer"),
    Negative("(T5)", summation(InputTensor=bad(Strides=(2**62, 1))), "InputTensor.Sizes", "bytes", "fewer than 2^63"),
    Negative(
        "(T6)", summation(InputTensor=bad(TotalTensorSizeInBytes=20)), "InputTensor.TotalTensorSizeInBytes", "20", "24"
    ),
    Negative(
        "(T6)",
        summation(InputTensor=bad(TotalTensorSizeInBytes=26)),
        "InputTensor.TotalTensorSizeInBytes",
        "26",
        "of 4",
    ),
    Negative(
        "(T6)", summation(InputTensor=bad(TotalTensorSizeInBytes=-4)), "InputTensor.TotalTensorSizeInBytes", "-4", "24"
    ),
    Negative(
        "(T6)",
        summation(InputTensor=bad(TotalTensorSizeInBytes=24.0)),
        "InputTensor.TotalTensorSizeInBytes",
        "24.0",
        "integer",
    ),
    Negative(
        "(T6)",
        summation(InputTensor=bad(TotalTensorSizeInBytes=2**63)),
        "InputTensor.TotalTensorSizeInBytes",
        str(2**63),
        "2^63",
    ),
    *(
        Negative(
            "(T7)",
            summation(InputTensor=bad(GuaranteedBaseOffsetAlignment=alignment)),
            "InputTensor.GuaranteedBaseOffsetAlignment",
            str(alignment),
            expected,
        )
        for alignment, expected in [
            (3, "power of two"),
            (2, "at least 4"),
            (-4, "at least 4"),
            (2**32, "power"),
            ("4", "integer"),
        ]
    ),
    Negative(
        "(T8)", summation(InputTensor=bad(Flags=TensorFlags(2))), "InputTensor.Flags", "0x2", "NONE or OWNED_BY_DML"
    ),
    Negative("(T8)", summation(InputTensor=bad(Flags=1)), "InputTensor.Flags", "int 1", "TensorFlags"),
    Negative(
        "(T8)",
        summation(OutputTensor=bad(Flags=TensorFlags.OWNED_BY_DML)),
        "OutputTensor.Flags",
        "OWNED",
        "NONE, for an output",
    ),
    Negative(
        "(T9)", summation(OutputTensor=bad(Strides=(0, 1))), "OutputTensor.Strides", "(0, 1)", "no two elements overlap"
    ),
    Negative(
        "(T9)", summation(OutputTensor=bad(Strides=(2, 1))), "OutputTensor.Strides", "(2, 1)", "no two elements overlap"
    ),
    # No two of these overlap, but it takes more than sorting to see it.
    Negative(
        "(T9)", summation(OutputTensor=bad(Strides=(3, 2))), "OutputTensor.Strides", "(3, 2)", "no two elements overlap"
    ),
    Negative(
        "(T10)",
        summation(InputTensor=bad(Strides=(2**30, 1))),
        "InputTensor.TotalTensorSizeInBytes",
        "4294967308",
        "4 GiB",
        True,
    ),
    Negative(
        "(T10)",
        summation(InputTensor=bad(TotalTensorSizeInBytes=2**32 + 4)),
        "InputTensor.TotalTensorSizeInBytes",
        "4294967300",
        "4 GiB",
        True,
    ),
    # CUMULATIVE_SUMMATION and CUMULATIVE_PRODUCT
    *(
        negative
        for operator in (summation, multiplication)
        for negative in (
            Negative(
                "(C1)",
                operator(OutputTensor=bad(DataType=TensorDataType.INT32)),
                "OutputTensor.DataType",
                "INT32",
                "FLOAT32, that of",
            ),
            Negative(
                "(C2)",
                operator(OutputTensor=bad(Sizes=(2, 3, 1))),
                "OutputTensor.DimensionCount",
                "3",
                "2, that of InputTensor",
            ),
            Negative("(C2)", operator(OutputTensor=bad(Sizes=(2, 4))), "OutputTensor.Sizes[1]", "4", "3"),
            Negative("(C3)", operator(Axis=2), "Axis", "2", "less than 2, the DimensionCount"),
        )
    ),
    # ELEMENT_WISE_... and ACTIVATION_...
    *(
        negative
        for operator in UNIFORM
        for negative in (
            Negative(
                "(C1)",
                uniform(operator, InputTensor=bad(DataType=TensorDataType.FLOAT16))
                if operator in ("ELEMENT_WISE_CLIP1", "ELEMENT_WISE_POW")
                else uniform(operator, OutputTensor=bad(DataType=TensorDataType.FLOAT16)),
                "OutputTensor.DataType",
                "FLOAT",
                "that of",
            ),
            Negative(
                "(C2)",
                uniform(operator, OutputTensor=bad(Sizes=(2, 3, 1))),
                "OutputTensor.DimensionCount",
                "3",
                "2, that of",
            ),
            Negative("(C2)", uniform(operator, OutputTensor=bad(Sizes=(2, 4))), "OutputTensor.Sizes[1]", "4", "3"),
        )
    ),
    Negative(
        "(C1)", element_wise("ADD", BTensor=bad(DataType=TensorDataType.INT8)), "BTensor.DataType", "INT8", "of A"
    ),
    Negative("(C2)", element_wise("ADD", BTensor=bad(Sizes=(3, 2))), "BTensor.Sizes", "(3, 2)", "(2, 3), that of A"),
    Negative(
        "(C2)", element_wise("POW", ExponentTensor=bad(Sizes=(2,))), "ExponentTensor.DimensionCount", "1", "2, that of"
    ),
    Negative("(C2)", element_wise("POW", ExponentTensor=bad(Sizes=(2, 1))), "ExponentTensor.Sizes", "(2, 1)", "(2, 3)"),
    Negative("(C3)", element_wise("CLIP1", MinMaxDataType=UINT8), "MinMaxDataType", "UINT8", "FLOAT32, that of Output"),
    Negative("(C4)", clip1(UINT8, Min=-1), "Min", "-1", "an integer from 0 to 255, which UINT8 holds"),
    Negative("(C4)", clip1(UINT8, Max=256), "Max", "256", "an integer from 0 to 255"),
    Negative("(C4)", clip1(UINT8, Max=1.5), "Max", "1.5", "an integer from 0 to 255"),
    Negative("(C4)", clip1(UINT8, Max=np.inf), "Max", "inf", "an integer from 0 to 255"),
    Negative("(C4)", clip1(UINT8, Max=np.nan), "Max", "nan", "an integer from 0 to 255"),
    Negative(
        "(C1)",
        uniform("ACTIVATION_PARAMETERIZED_RELU", SlopeTensor=bad(DataType=TensorDataType.INT8)),
        "SlopeTensor.DataType",
        "INT8",
        "FLOAT32, that of InputTensor",
    ),
    Negative(
        "(C2)",
        uniform("ACTIVATION_PARAMETERIZED_RELU", SlopeTensor=bad(Sizes=(3,))),
        "SlopeTensor.DimensionCount",
        "1",
        "2, that of InputTensor",
    ),
    Negative(
        "(C2)",
        uniform("ACTIVATION_PARAMETERIZED_RELU", SlopeTensor=bad(Sizes=(1, 3))),
        "SlopeTensor.Sizes",
        "(1, 3)",
        "(2, 3), that of InputTensor",
    ),
    *(
        Negative(
            "(C3)",
            uniform(f"ACTIVATION_{operator}", InputTensor=tensor((1, 2, 3, 1)), OutputTensor=tensor((1, 2, 3, 1))),
            "InputTensor.Sizes[1]",
            "2",
            "1, before the last two",
        )
        for operator in ("HARDMAX", "LOG_SOFTMAX", "SOFTMAX")
    ),
    *(
        negative
        for operator in ("ACTIVATION_HARDMAX1", "ACTIVATION_LOG_SOFTMAX1", "ACTIVATION_SOFTMAX1")
        for negative in (
            Negative("(C3)", uniform(operator, Axes=()), "AxisCount", "0", "at least 1"),
            Negative("(C4)", uniform(operator, Axes=(0, 2)), "Axes[1]", "2", "less than 2, the DimensionCount"),
            Negative("(C5)", uniform(operator, Axes=(0, 1, 0)), "Axes[2]", "0 again", "every axis once"),
            Negative("(F5)", uniform(operator, AxisCount=2), "Axes", "1 elements", "2, which AxisCount says"),
        )
    ),
    # JOIN
    Negative("(C1)", join(InputTensors=[]), "InputCount", "0", "at least 1"),
    Negative(
        "(C2)",
        join(InputTensors=[GOOD, bad(DataType=TensorDataType.INT32)]),
        "InputTensors[1].DataType",
        "INT32",
        "that of InputTensors[0]",
    ),
    Negative(
        "(C2)",
        join(OutputTensor=tensor((4, 3), "INT8")),
        "OutputTensor.DataType",
        "INT8",
        "FLOAT32, that of InputTensors[0]",
    ),
    Negative(
        "(C3)", join(OutputTensor=tensor((4, 3, 1))), "OutputTensor.DimensionCount", "3", "2, that of InputTensors[0]"
    ),
    Negative("(C3)", join(InputTensors=[GOOD, tensor((6,))]), "InputTensors[1].DimensionCount", "1", "2, that of"),
    Negative("(C4)", join(Axis=2), "Axis", "2", "less than 2"),
    Negative(
        "(C5)", join(InputTensors=[GOOD, tensor((2, 4))]), "InputTensors[1].Sizes[1]", "4", "3, that of InputTensors[0]"
    ),
    Negative("(C6)", join(OutputTensor=tensor((5, 3))), "OutputTensor.Sizes[0]", "5", "4"),
    Negative("(C6)", join(OutputTensor=tensor((4, 2))), "OutputTensor.Sizes[1]", "2", "3"),
    # RNN, LSTM and GRU; more of them in test_recurrent.py
    *(
        Negative(rule, recurrent(operator, **members), where, found, expected)
        for operator in RECURRENT
        for rule, members, where, found, expected in [
            (
                "(C1)",
                {"HiddenInitTensor": tensor((1, 1, 5, 2), "FLOAT16")},
                "HiddenInitTensor.DataType",
                "FLOAT16",
                "FLOAT32, that of InputTensor",
            ),
            (
                "(C2)",
                {"InputTensor": bad(Sizes=(1, 4, 5, 3), Flags=TensorFlags.OWNED_BY_DML)},
                "InputTensor.Flags",
                "OWNED_BY_DML",
                "NONE",
            ),
            ("(C3)", {"HiddenInitTensor": tensor((1, 1, 5, 3))}, "HiddenInitTensor.Sizes[3]", "3", "2, hidden_size"),
            ("(C4)", {"OutputSequenceTensor": tensor((3, 1, 5, 2))}, "OutputSequenceTensor.Sizes[0]", "3", "4"),
            ("(C5)", {"ActivationDescs": []}, "ActivationDescs", "0 activations", "for each direction"),
            ("(C6)", {"OutputSingleTensor": None}, "OutputSequenceTensor", "None", "or as OutputSingleTensor"),
        ]
    ),
    Negative("(C7)", recurrent("LSTM", ClipThreshold=-1, UseClipThreshold=True), "ClipThreshold", "-1.0", "at least 0"),
    # REDUCE
    Negative(
        "(C1)", reduce(OutputTensor=tensor((1, 3), "INT32")), "OutputTensor.DataType", "INT32", "FLOAT32, that of"
    ),
    Negative("(C2)", reduce(OutputTensor=tensor((3,))), "OutputTensor.DimensionCount", "1", "2, that of InputTensor"),
    Negative("(C3)", reduce(Axes=(), OutputTensor=GOOD), "AxisCount", "0", "at least 1"),
    Negative("(C4)", reduce(Axes=(0, 2)), "Axes[1]", "2", "less than 2, the DimensionCount of InputTensor"),
    Negative("(C5)", reduce(Axes=(0, 0)), "Axes[1]", "0 again", "every axis once"),
    Negative("(C6)", reduce(OutputTensor=GOOD), "OutputTensor.Sizes[0]", "2", "1"),
    Negative("(C6)", reduce(OutputTensor=tensor((1, 4))), "OutputTensor.Sizes[1]", "4", "3"),
    Negative("(C7)", reduce_many(2**31 + 1), "OutputTensor.DataType", "INT32", "a type that holds 2147483648"),
    Negative("(F5)", reduce(AxisCount=2), "Axes", "1 elements", "2, which AxisCount says"),
    # ..._NORMALIZATION
    *(
        negative
        for operator in NORMALIZATIONS
        for name in spec(operator).tensors
        if name != "InputTensor"
        for negative in (
            Negative(
                "(C1)",
                normalization(operator, **{name: tensor((2, 3, 4, 5), "FLOAT16")}),
                f"{name}.DataType",
                "FLOAT16",
                "FLOAT32, that of InputTensor",
            ),
            Negative(
                "(C2)" if name == "OutputTensor" else "(C3)",
                normalization(operator, **{name: tensor((2, 3, 4, 6))}),
                f"{name}.Sizes[3]",
                "6",
                "5",
            ),
        )
    ),
    *(
        negative
        for operator in NORMALIZATIONS
        if operator != "LOCAL_RESPONSE_NORMALIZATION"
        for negative in (
            Negative(
                "(F11)", normalization(operator, FusedActivation="RELU"), "FusedActivation", "str 'RELU'", "or None"
            ),
            Negative("(F11)", normalization(operator, FusedActivation=reduce()), "FusedActivation", "DML_RED", "fused"),
            Negative(
                "(F11)",
                normalization(operator, FusedActivation=DML_ACTIVATION_RELU_OPERATOR_DESC(OutputTensor=IMAGE)),
                "FusedActivation.OutputTensor",
                "DML_BUFFER_TENSOR_DESC",
                "None",
            ),
            Negative(
                "(F8)",
                normalization(operator, FusedActivation=DML_ACTIVATION_ELU_OPERATOR_DESC(Alpha=None)),
                "FusedActivation.Alpha",
                "None",
                "a number of single precision",
            ),
            Negative(
                "(S4)",
                normalization(operator, FusedActivation=DML_ACTIVATION_SOFTMAX_OPERATOR_DESC()),
                "FusedActivation",
                "ACTIVATION_SOFTMAX",
                "ACTIVATION_RELU",
            ),
        )
    ),
    # The others take 4 dimensions only.
    *(
        Negative(
            "(C2)",
            normalization(operator, **{name: tensor((1,))}),
            f"{name}.DimensionCount",
            "1",
            "4, that of InputTensor",
        )
        for operator in ("BATCH_NORMALIZATION", "MEAN_VARIANCE_NORMALIZATION1")
        for name in spec(operator).tensors
        if name != "InputTensor"
    ),
    Negative("(C4)", normalization("MEAN_VARIANCE_NORMALIZATION1", Axes=()), "AxisCount", "0", "at least 1"),
    Negative("(C5)", normalization("MEAN_VARIANCE_NORMALIZATION1", Axes=(4,)), "Axes[0]", "4", "less than 4"),
    Negative("(C6)", normalization("MEAN_VARIANCE_NORMALIZATION1", Axes=(2, 3, 2)), "Axes[2]", "2 again", "axis once"),
    Negative("(C3)", normalization("LOCAL_RESPONSE_NORMALIZATION", LocalSize=0), "LocalSize", "0", "at least 1"),
    # QUANTIZED_LINEAR_AVERAGE_POOLING
    Negative(
        "(C1)",
        pooling(OutputTensor=tensor((1, 3, 3, 4, 1), "UINT8")),
        "OutputTensor.DimensionCount",
        "5",
        "4, that of InputTensor",
    ),
    Negative(
        "(C2)",
        pooling(InputZeroPointTensor=tensor((1,) * 4, "INT8")),
        "InputZeroPointTensor.DataType",
        "INT8",
        "UINT8, that of Input",
    ),
    Negative(
        "(C3)",
        pooling(OutputZeroPointTensor=tensor((1,) * 4, "INT8")),
        "OutputZeroPointTensor.DataType",
        "INT8",
        "UINT8, that of O",
    ),
    Negative(
        "(C4)",
        pooling(
            **dict.fromkeys(("Strides", "WindowSize", "Dilations"), (1,) * 3),
            StartPadding=(0,) * 3,
            EndPadding=(0,) * 3,
        ),
        "DimensionCount",
        "3",
        "2, 2 less than",
    ),
    Negative("(C5)", pooling(Strides=(1, 0)), "Strides[1]", "0", "at least 1"),
    Negative("(C5)", pooling(WindowSize=(0, 2)), "WindowSize[0]", "0", "at least 1"),
    Negative("(C5)", pooling(Dilations=(0, 1)), "Dilations[0]", "0", "at least 1"),
    Negative(
        "(C6)",
        pooling(OutputScaleTensor=tensor((3,))),
        "OutputScaleTensor.Sizes",
        "{3}",
        "{1, 1, 1, 1} or {1, 3, 1, 1}",
    ),
    Negative("(C7)", pooling(WindowSize=(5, 2)), "WindowSize[0]", "5", "at most 4, the padded size"),
    Negative("(C7)", pooling(Dilations=(1, 5)), "WindowSize[1]", "an extent of 6", "at most 5"),
    Negative("(C8)", pooling(OutputTensor=tensor((1, 3, 4, 4), "UINT8")), "OutputTensor.Sizes[2]", "4", "3"),
    Negative("(C8)", pooling(OutputTensor=tensor((2, 3, 3, 4), "UINT8")), "OutputTensor.Sizes[0]", "2", "1"),
    *negatives_beside_cases(),
]


def id_of(negative: Negative) -> str:
    found = spec_of(negative.desc)
    return f"{found.name if found else 'none'}-{negative.rule}-{negative.where}"


@pytest.mark.parametrize("negative", NEGATIVES, ids=id_of)
def test_broken(negative: Negative) -> None:
    rule, desc, where, found, expected, strict = negative
    (violation,) = validate(desc, strict=strict)
    assert (violation.rule, violation.where) == (rule, where)
    assert found in violation.found
    assert expected in violation.expected
    assert violation.hresult == HResult.E_INVALIDARG
    operator = spec_of(desc)
    assert violation.operator == (operator.name if operator else "")
    with pytest.raises(DMLError) as raised:
        Device("reference", strict=strict).create_operator(desc)
    assert raised.value.violations == (violation,)
    for part in (violation.operator, where, violation.found, violation.expected, rule, "E_INVALIDARG 0x80070057"):
        assert part in str(raised.value)


# What can't be broken alone: an unknown type is also not that of the output, and so on.
@pytest.mark.parametrize(
    ("rule", "desc", "where", "strict"),
    [
        ("(T1)", summation(InputTensor=bad(DataType=TensorDataType.UNKNOWN)), "InputTensor.DataType", False),
        ("(T2)", summation(InputTensor=bad(Sizes=())), "InputTensor.Sizes", False),
        ("(T2)", summation(InputTensor=bad(Sizes=(1,) * 9)), "InputTensor.Sizes", False),
        ("(T2)", summation(InputTensor=bad(Sizes=(2, 0))), "InputTensor.Sizes[1]", False),
        ("(T2)", summation(InputTensor=bad(Sizes=(-2, 3))), "InputTensor.Sizes[0]", False),
        ("(T5)", summation(InputTensor=bad(Sizes=(2**31, 2**31))), "InputTensor.Sizes", False),
        ("(T10)", pooling(InputTensor=tensor((1, 3, 2**16, 2**16), "UINT8")), "InputTensor.Sizes", True),
    ],
)
def test_broken_among_others(rule: str, desc: OperatorDesc, where: str, strict: bool) -> None:
    assert (rule, where) in [(v.rule, v.where) for v in validate(desc, strict=strict)]


@pytest.mark.parametrize("operator", OPERATORS)
def test_every_constraint_of_every_operator_is_broken_here(operator: str) -> None:
    labels = re.findall(r"^ +(\(C\d+\)) ", inspect.getdoc(spec(operator).desc) or "", re.MULTILINE)
    broken = {negative.rule for negative in NEGATIVES if type(negative.desc) is spec(operator).desc}
    assert set(labels) <= broken


def test_all_rules_on_members_and_tensors_are_broken_here() -> None:
    broken = {negative.rule for negative in NEGATIVES}
    members = {f"(F{i})" for i in range(1, 12)} - {"(F7)"}
    assert members | {f"(T{i})" for i in range(2, 11)} <= broken


def test_right_descs_are_right() -> None:
    others = [*map(uniform, UNIFORM), *map(recurrent, RECURRENT), *map(normalization, NORMALIZATIONS)]
    for desc in (summation(), multiplication(), join(), pooling(), reduce(), *others):
        assert validate(desc) == []
        assert validate(desc, strict=True) == []


FUSED_ANYWHERE = (
    *("ELU", "HARD_SIGMOID", "IDENTITY", "LEAKY_RELU", "LINEAR", "PARAMETRIC_SOFTPLUS", "RELU", "SCALED_ELU"),
    *("SCALED_TANH", "SIGMOID", "SOFTPLUS", "SOFTSIGN", "TANH", "THRESHOLDED_RELU", "SHRINK"),
)


def fused(name: str) -> OperatorDesc:
    """An activation of ordinary numbers."""
    members = spec(f"ACTIVATION_{name}").members
    return activation(name, **{member: 1 for member, kind in members.items() if kind == "FLOAT"})


@pytest.mark.parametrize("level", [FeatureLevel.LEVEL_2_0, FeatureLevel.LEVEL_6_4], ids=lambda level: level.number)
def test_what_may_be_fused(level: FeatureLevel) -> None:
    x = tensor((1, 1, 2, 3))
    tensors = dict.fromkeys(("ATensor", "BTensor", "OutputTensor"), x)
    assert {name for name in FUSED_ANYWHERE if validate(add1(fused(name), **tensors), level)} == set()


def test_an_activation_is_fused_from_its_level_on() -> None:
    missing, early = validate(add1(fused("SHRINK")), FeatureLevel.LEVEL_1_0)
    assert (missing.rule, early.rule) == ("(S1)", "(S4)")
    assert (early.where, early.found) == ("FusedActivation", "ACTIVATION_SHRINK")
    assert early.remedy == "ACTIVATION_SHRINK needs feature level 2.0"
    assert early.hresult == HResult.DXGI_ERROR_UNSUPPORTED


def test_a_fused_activation_keeps_its_own_constraints(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that depend on tensors, were they fused here."""
    monkeypatch.setattr(validation, "fused_since", lambda *names: FeatureLevel.LEVEL_1_0)
    (violation,) = validate(add1(activation("SOFTMAX1", Axes=[1, 2])))
    assert (violation.rule, violation.where) == ("(F11)", "FusedActivation.Axes[1]")
    assert (violation.operator, violation.found) == ("ELEMENT_WISE_ADD1", "2")
    x = tensor((2, 1, 3))
    (violation,) = validate(add1(activation("SOFTMAX"), ATensor=x, BTensor=x, OutputTensor=x))
    assert (violation.rule, violation.where) == ("(F11)", "FusedActivation.InputTensor.Sizes[0]")
    assert violation.remedy == "DML_ACTIVATION_SOFTMAX1_OPERATOR_DESC takes any axes"
    assert validate(add1(activation("SOFTMAX1", Axes=[1, 0]))) == []


def test_numpy_integers_and_lists_are_numbers_and_tuples() -> None:
    desc = pooling(WindowSize=np.array([2, 2]), Strides=[np.int64(1), np.uint8(1)])
    assert validate(desc) == []
    assert desc == pooling()
    assert summation(Axis=np.int32(1)) == summation()


@pytest.mark.parametrize("data_type", ["UINT4", "INT4", "FLOAT64"])
def test_clip1_of_a_type_that_no_table_has(data_type: str) -> None:
    assert {v.rule for v in validate(clip1(TensorDataType[data_type]))} == {"(S3)"}


def test_a_power_of_another_type_is_not_refused_below_3_0() -> None:
    """As its docstring says; DirectML would refuse it."""
    x, e = (tensor((1, 1, 2, 3), data_type) for data_type in ("FLOAT32", "FLOAT16"))
    desc = element_wise("POW", InputTensor=x, ExponentTensor=e, OutputTensor=x)
    assert validate(desc, FeatureLevel.LEVEL_2_1) == []


@pytest.mark.parametrize(
    ("desc", "level", "where", "found"),
    [
        (
            normalization(operator, **{name: None}),
            FeatureLevel.LEVEL_5_2,
            name,
            "None beside a " + {"ScaleTensor": "BiasTensor", "BiasTensor": "ScaleTensor"}[name],
        )
        for operator in ("MEAN_VARIANCE_NORMALIZATION", "MEAN_VARIANCE_NORMALIZATION1")
        for name in ("ScaleTensor", "BiasTensor")
    ]
    + [
        (
            normalization(operator, **{name: tensor((1, 1, 4, 5))}),
            FeatureLevel.LEVEL_4_0,
            f"{name}.Sizes[1]",
            "1",
        )
        for operator in ("BATCH_NORMALIZATION", "MEAN_VARIANCE_NORMALIZATION1")
        for name in spec(operator).tensors
        if name not in ("InputTensor", "OutputTensor")
    ]
    + [
        (
            normalization("BATCH_NORMALIZATION", Spatial=False, **{name: tensor(sizes), other: tensor((1, 3, 4, 5))}),
            FeatureLevel.LEVEL_4_0,
            f"{name}.Sizes[{sizes.index(1, 1)}]",
            "1",
        )
        for name, other in (("MeanTensor", "VarianceTensor"), ("VarianceTensor", "MeanTensor"))
        for sizes in ((1, 3, 4, 1), (1, 3, 1, 5))
    ],
    ids=lambda each: "",
)
def test_what_a_later_level_takes(desc: OperatorDesc, level: FeatureLevel, where: str, found: str) -> None:
    assert validate(desc, level) == []
    before = [each for each in FeatureLevel if each < level][-1]
    (violation,) = validate(desc, before)
    assert (violation.rule, violation.where, violation.found) == ("(S5)", where, found)
    assert violation.hresult == HResult.DXGI_ERROR_UNSUPPORTED
    assert violation.remedy == f"{found} needs feature level {level.number}"


def test_what_an_earlier_level_takes_too() -> None:
    for operator in ("MEAN_VARIANCE_NORMALIZATION", "MEAN_VARIANCE_NORMALIZATION1"):
        without = normalization(operator, ScaleTensor=None, BiasTensor=None)
        assert validate(without, FeatureLevel.LEVEL_2_1) == []
    assert validate(normalization("BATCH_NORMALIZATION", Spatial=True), FeatureLevel.LEVEL_1_0) == []
    of_pixels = tensor((1, 3, 4, 5))
    desc = normalization("BATCH_NORMALIZATION", Spatial=False, MeanTensor=of_pixels, VarianceTensor=of_pixels)
    assert validate(desc, FeatureLevel.LEVEL_1_0) == []


def test_a_table_is_that_of_the_function() -> None:
    x = tensor((2, 3, 1, 1), "INT32")
    y = tensor((1, 3, 1, 1), "INT32")
    assert validate(reduce("SUM", InputTensor=x, OutputTensor=y), FeatureLevel.LEVEL_2_1) == []
    refused = validate(reduce("L1", InputTensor=x, OutputTensor=y), FeatureLevel.LEVEL_2_1)
    assert {v.remedy for v in refused} == {"INT32 needs feature level 5.0"}
    refused = validate(reduce("L2", InputTensor=x, OutputTensor=y))
    assert [(v.rule, v.where, v.remedy) for v in refused] == [
        ("(S3)", f"{name}.DataType", "") for name in ("InputTensor", "OutputTensor")
    ]


def test_without_a_function_its_operators_table_holds() -> None:
    x = tensor((2, 3), "FLOAT64")
    desc = reduce(Function=7, InputTensor=x, OutputTensor=tensor((1, 3), "INT32"))
    assert [v.rule for v in validate(desc)] == ["(F4)", "(S3)"]


def test_a_float_member_has_single_precision() -> None:
    desc = element_wise("CLIP", Min=0.1, Max=np.inf, ScaleBias=DML_SCALE_BIAS(Scale=0.1, Bias=2**24 + 1))
    assert desc.Min == desc.ScaleBias.Scale == float(np.float32(0.1))
    assert desc.ScaleBias.Bias == 2**24
    assert validate(desc) == []


# All violations, not the first


def test_a_desc_with_five_mistakes_gives_five() -> None:
    wrong = DML_BUFFER_TENSOR_DESC(
        DataType=TensorDataType.INT32,
        Sizes=(2, 4),
        Strides=(1, 1),
        TotalTensorSizeInBytes=5,
        GuaranteedBaseOffsetAlignment=3,
    )
    desc = summation(OutputTensor=wrong, Axis=2)
    violations = validate(desc)
    assert [(v.rule, v.where) for v in violations] == [
        ("(T7)", "OutputTensor.GuaranteedBaseOffsetAlignment"),
        ("(T6)", "OutputTensor.TotalTensorSizeInBytes"),
        ("(T9)", "OutputTensor.Strides"),
        ("(C1)", "OutputTensor.DataType"),
        ("(C3)", "Axis"),
        ("(C2)", "OutputTensor.Sizes[1]"),
    ]
    with pytest.raises(DMLValueError, match=r"^6 violations") as raised:
        Device("reference").create_operator(desc)
    assert raised.value.violations == tuple(violations)
    assert str(raised.value).splitlines()[1:] == [f"  {violation}" for violation in violations]


def test_all_malformed_members_are_named() -> None:
    desc = DML_CUMULATIVE_SUMMATION_OPERATOR_DESC(
        InputTensor=bad(DataType=0, Strides="no", Flags=0),
        OutputTensor=None,
        Axis=-1,
        AxisDirection=0,
        HasExclusiveSum=7,
    )
    assert sorted(v.where for v in validate(desc)) == [
        "Axis",
        "AxisDirection",
        "HasExclusiveSum",
        "InputTensor.DataType",
        "InputTensor.Flags",
        "InputTensor.Strides",
        "OutputTensor",
    ]


@pytest.mark.parametrize(
    ("desc", "where"),
    [
        (join(InputTensors=GOOD), "InputTensors"),
        (pooling(Strides=None), "Strides"),
        (summation(InputTensor=bad(Sizes=(2, 3.0))), "InputTensor.Sizes"),
        (summation(InputTensor=bad(Strides=(3, 1.0))), "InputTensor.Strides"),
    ],
)
def test_one_mistake_gives_one_violation(desc: OperatorDesc, where: str) -> None:
    assert [v.where for v in validate(desc)] == [where]


# Exceptions


@pytest.mark.parametrize(
    ("kind", "dml", "builtin"),
    [("value", DMLValueError, ValueError), ("type", DMLTypeError, TypeError), ("memory", DMLMemoryError, MemoryError)],
)
def test_exceptions_are_builtin_ones_too(kind: Any, dml: type[DMLError], builtin: type[Exception]) -> None:
    violation = Violation(operator="JOIN", where="Axis", found="2", expected="1", rule="(C4)", remedy="Do", kind=kind)
    raised = error([violation])
    assert type(raised) is dml
    assert isinstance(raised, DMLError)
    assert isinstance(raised, builtin)
    assert raised.violations == (violation,)
    code = "E_OUTOFMEMORY 0x8007000E" if kind == "memory" else "E_INVALIDARG 0x80070057"
    assert raised.hresult.name == code.split()[0]
    assert str(raised) == f"JOIN.Axis: found 2, expected 1 (C4). Do [{code}]"


def test_wrong_types_are_type_errors_and_wrong_values_value_errors() -> None:
    with pytest.raises(DMLTypeError):
        Device("reference").create_operator(summation(Axis="1"))
    with pytest.raises(DMLValueError):
        Device("reference").create_operator(summation(Axis=-1))


@pytest.mark.parametrize(
    ("ends", "found"),
    [(2**30, r"uint8 of shape \(1, 1, 2147483649, 2147483649\)"), (2**31, r"out.shape: found a span of 18\d+ bytes")],
)
def test_a_result_larger_than_memory_is_a_memory_error(ends: int, found: str) -> None:
    x = np.ones((1, 1, 1, 1), np.uint8)
    padding = {"start_padding": ends, "end_padding": ends}
    with pytest.raises(DMLMemoryError, match=found) as raised:
        quantized_linear_average_pooling(x, 1.0, output_scale=1.0, window_size=1, **padding, device="reference")
    assert raised.value.hresult == HResult.E_OUTOFMEMORY


# Numbers that 64 bits, or Python's own limits, do not hold


def test_the_largest_span_is_just_below_63_bits() -> None:
    for stride, rules in ((2**61 - 2, []), (2**61 - 1, ["(T5)"]), (2**61, ["(T5)"])):
        desc = summation(InputTensor=bad(Sizes=(2,), Strides=(stride,)), OutputTensor=tensor((2,)), Axis=0)
        assert [violation.rule for violation in validate(desc)] == rules


DIGITS = 10**5000
"""More digits than Python prints."""


@pytest.mark.parametrize(
    "desc",
    [
        lambda: summation(InputTensor=bad(Sizes=(2**62, 2**62))),
        lambda: summation(InputTensor=bad(Sizes=(2**64, 3), Strides=(0, 1))),
        lambda: summation(InputTensor=bad(Strides=(2**62, 2**62))),
        lambda: summation(InputTensor=bad(Strides=(2**400, 1))),
        lambda: summation(InputTensor=bad(Sizes=(10**4000, 3))),
        lambda: summation(InputTensor=bad(TotalTensorSizeInBytes=2**80)),
        lambda: summation(InputTensor=bad(GuaranteedBaseOffsetAlignment=2**80)),
        lambda: summation(Axis=2**80),
        lambda: pooling(StartPadding=(2**80, 0)),
    ],
)
def test_huge_numbers_are_refused(desc: Callable[[], OperatorDesc]) -> None:
    with pytest.raises(DMLError):
        Device("reference").create_operator(desc())


@pytest.mark.parametrize(
    "desc",
    [
        lambda: summation(InputTensor=bad(Sizes=(DIGITS, 3))),
        lambda: summation(InputTensor=bad(Strides=(DIGITS, 1))),
        lambda: summation(InputTensor=bad(TotalTensorSizeInBytes=DIGITS)),
        lambda: summation(Axis=DIGITS),
        lambda: pooling(WindowSize=(DIGITS, 1)),
        # Sizes that Python multiplies as it repeats a string or a tuple
        lambda: summation(InputTensor=bad(Sizes=(2**62, "a"))),
        lambda: summation(InputTensor=bad(Sizes=(2**62, (1, 2)))),
    ],
)
def test_absurd_numbers_are_refused(desc: Callable[[], OperatorDesc]) -> None:
    with pytest.raises(DMLError):
        Device("reference").create_operator(desc())


def test_a_list_that_holds_itself_is_refused() -> None:
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(DMLError, match="Sizes"):
        Device("reference").create_operator(summation(InputTensor=bad(Sizes=endless)))


def test_no_dimensions_on_a_strict_device() -> None:
    assert "(T2)" in {v.rule for v in validate(summation(InputTensor=bad(Sizes=())), strict=True)}


@pytest.mark.parametrize("stride", [2**61, 2**62, 2**70])
def test_a_huge_stride_of_a_size_of_1_is_refused_or_served(stride: int) -> None:
    """It moves no element, but has to survive the way to a kernel."""
    x = np.ones(4, np.float32)
    desc = summation(InputTensor=bad(Sizes=(1, 4), Strides=(stride, 1)), OutputTensor=tensor((1, 4)))
    for engine in ENGINES:
        y = np.zeros(4, np.float32)
        if not validate(desc):
            compiled(engine, desc).dispatch([x], [y])
            np.testing.assert_array_equal(y, [1, 2, 3, 4])


@pytest.mark.parametrize("level", ["6.4", None, 7, 0x6500, [FeatureLevel.LEVEL_6_4]])
def test_a_level_that_is_none_is_refused(level: Any) -> None:
    with pytest.raises(DMLError, match=r"feature_level: .* FeatureLevel.LEVEL_6_4 \(F7\)") as raised:
        validate(summation(), level)
    assert raised.value.hresult == HResult.DXGI_ERROR_UNSUPPORTED


def test_a_level_by_its_value() -> None:
    level: Any = 0x2100
    assert validate(summation(), level) == validate(summation(), FeatureLevel.LEVEL_2_1) != []


# TotalTensorSizeInBytes


@pytest.mark.parametrize(
    ("data_type", "sizes", "strides", "total"),
    [
        ("FLOAT32", (1,), None, 4),
        ("FLOAT32", (1, 1, 3, 4), None, 48),
        ("FLOAT64", (3,), None, 24),
        ("FLOAT16", (3,), None, 8),
        ("UINT8", (1,), None, 4),
        ("UINT8", (5,), None, 8),
        ("INT16", (2, 3), None, 12),
        ("INT16", (3, 3), None, 20),
        # 1 + the last index times the stride, for each dimension
        ("FLOAT32", (2, 3), (3, 1), 24),
        ("FLOAT32", (2, 3), (1, 2), 24),
        ("FLOAT32", (2, 3), (10, 3), 68),
        ("UINT8", (2, 3), (10, 3), 20),
        ("UINT8", (2, 3), (9, 3), 16),
        ("INT8", (4,), (5,), 16),
        ("FLOAT32", (4, 4), (0, 0), 4),
        ("FLOAT32", (100, 4), (0, 1), 16),
        ("FLOAT64", (1, 1), (77, 99), 8),
        ("UINT4", (1,), None, 4),
        ("UINT4", (8,), None, 4),
        ("UINT4", (9,), None, 8),
        ("INT4", (3, 3), (4, 1), 8),
        ("INT4", (2, 2), (5, 1), 4),
        # A sum in 32 bits would wrap to a few bytes.
        ("FLOAT32", (2, 2), (2**32 - 1, 1), 17179869188),
        ("UINT8", (65536, 65536), None, 4294967296),
        ("UINT8", (2, 65537), (4294967295, 1), 4294967295 + 65537),
        ("FLOAT32", (2**20, 2**20), None, 4398046511104),
        ("FLOAT64", (2**30, 2**29), None, 4611686018427387904),
        ("FLOAT64", (2**31, 2**30), None, 18446744073709551616),
        ("UNKNOWN", (3,), None, 0),
    ],
)
def test_total_tensor_size_in_bytes(
    data_type: str, sizes: Sequence[int], strides: Sequence[int] | None, total: int
) -> None:
    assert tensor(sizes, data_type, strides).TotalTensorSizeInBytes == total


def test_a_total_that_a_32_bit_sum_would_give_is_refused() -> None:
    wrapped = bad(Sizes=(2, 2), Strides=(2**32 - 1, 1), TotalTensorSizeInBytes=16)
    (violation,) = validate(summation(InputTensor=wrapped, OutputTensor=tensor((2, 2))))
    assert violation.rule == "(T6)"
    assert "17179869188" in violation.expected


def test_a_larger_total_is_fine() -> None:
    assert validate(summation(InputTensor=bad(TotalTensorSizeInBytes=4096))) == []


def test_derived_members_can_be_given() -> None:
    given = bad(DimensionCount=2, TotalTensorSizeInBytes=24)
    assert given == GOOD
    assert validate(join(InputCount=2)) == []
    assert validate(pooling(DimensionCount=2)) == []


# Pooling: shapes of scales and zero points

QUANTISATION = ("InputScaleTensor", "InputZeroPointTensor", "OutputScaleTensor", "OutputZeroPointTensor")
SHAPES = {
    4: {
        (1,): True,
        (1, 1): True,
        (1, 1, 1): True,
        (1, 1, 1, 1): True,
        (1, 3, 1, 1): True,
        (3, 1, 1): True,
        (3,): False,
        (1, 3): False,
        (3, 1): False,
        (1, 3, 1): False,
        (2, 1, 1): False,
        (1, 2, 1, 1): False,
        (3, 1, 1, 1): False,
        (1, 1, 3, 1): False,
        (1, 1, 1, 3): False,
        (1, 3, 1, 2): False,
        (1, 3, 1, 1, 1): False,
    },
    5: {
        (1,): True,
        (1, 1): True,
        (1, 1, 1): True,
        (1, 1, 1, 1): True,
        (1, 1, 1, 1, 1): True,
        (1, 3, 1, 1): True,
        (1, 3, 1, 1, 1): True,
        (3, 1, 1, 1): True,
        (3,): False,
        (3, 1, 1): False,
        (1, 2, 1, 1): False,
        (1, 1, 3, 1): False,
        (1, 1, 3, 1, 1): False,
        (3, 1, 1, 1, 1): False,
        (1, 1, 1, 3): False,
    },
}


def pooling_of_rank(rank: int, **shapes: Sequence[int]) -> OperatorDesc:
    """Three channels, a window of one element."""
    spatial = rank - 2
    sizes = (2, 3, *(2,) * spatial)
    quantisation = {
        name: tensor(shapes.get(name, (1,) * rank), "FLOAT32" if "Scale" in name else "UINT8") for name in QUANTISATION
    }
    return pooling(
        InputTensor=tensor(sizes, "UINT8"),
        OutputTensor=tensor(sizes, "UINT8"),
        **quantisation,
        **dict.fromkeys(("Strides", "WindowSize", "Dilations"), (1,) * spatial),
        **dict.fromkeys(("StartPadding", "EndPadding"), (0,) * spatial),
    )


@pytest.mark.parametrize("name", QUANTISATION)
@pytest.mark.parametrize(("rank", "shape"), [(rank, shape) for rank, shapes in SHAPES.items() for shape in shapes])
def test_quantisation_shapes(rank: int, shape: tuple[int, ...], name: str) -> None:
    violations = validate(pooling_of_rank(rank, **{name: shape}))
    if SHAPES[rank][shape]:
        assert violations == []
    else:
        (violation,) = violations
        assert (violation.rule, violation.where) == ("(C6)", f"{name}.Sizes")
        assert "{1, 3, 1, 1}" in violation.remedy


def test_the_batch_is_never_taken_for_the_channels() -> None:
    shape = (2, 1, 1)
    assert [v.rule for v in validate(pooling_of_rank(4, InputScaleTensor=shape))] == ["(C6)"]


@pytest.mark.parametrize("rank", [4, 5])
def test_each_quantisation_tensor_is_per_tensor_or_per_channel_for_itself(rank: int) -> None:
    for shapes in product([(1, 1, 1, 1), (1, 3, 1, 1)], repeat=4):
        assert validate(pooling_of_rank(rank, **dict(zip(QUANTISATION, shapes, strict=True)))) == []


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("rank", "shape"), [(4, (1, 3, 1, 1)), (4, (3, 1, 1)), (5, (1, 3, 1, 1)), (5, (1, 3, 1, 1, 1)), (5, (3, 1, 1, 1))]
)
def test_per_channel_means_the_channels(engine: str, rank: int, shape: tuple[int, ...]) -> None:
    desc = pooling_of_rank(rank, **dict.fromkeys(QUANTISATION, shape))
    x = np.full(desc.InputTensor.Sizes, 20, np.uint8)
    scale_in, zero_in = np.array([1, 2, 3], np.float32), np.array([10, 5, 0], np.uint8)
    scale_out, zero_out = np.array([1, 3, 4], np.float32), np.array([0, 1, 2], np.uint8)
    y = np.zeros(x.shape, np.uint8)
    compiled(engine, desc).dispatch([x, scale_in, zero_in, scale_out, zero_out], [y])
    # (20 - 10) * 1 / 1 + 0, (20 - 5) * 2 / 3 + 1, (20 - 0) * 3 / 4 + 2
    np.testing.assert_array_equal(y, np.broadcast_to(np.array([10, 11, 17]).reshape(3, *(1,) * (rank - 2)), y.shape))


# Pooling: output sizes, and strict devices


def strided(size: int, **members: Any) -> OperatorDesc:
    """Five elements, a window of two, steps of two: one and a half places after the first."""
    return pooling(
        InputTensor=tensor((1, 1, 1, 5), "UINT8"),
        InputZeroPointTensor=None,
        OutputTensor=tensor((1, 1, 1, size), "UINT8"),
        **{"Strides": (1, 2), "WindowSize": (1, 2), **members},
    )


@pytest.mark.parametrize(
    ("size", "strict", "right"),
    [(1, False, False), (2, False, True), (3, False, True), (4, False, False), (2, True, True), (3, True, False)],
)
def test_output_sizes_are_rounded_down_or_up_but_up_on_no_strict_device(size: int, strict: bool, right: bool) -> None:
    violations = validate(strided(size), strict=strict)
    assert (violations == []) == right
    for violation in violations:
        assert violation.rule == "(C8)"
        assert "2 or 3" in violation.expected


def test_a_strict_device_says_that_it_is_strict() -> None:
    (violation,) = validate(strided(3), strict=True)
    assert "strict" in violation.expected
    with pytest.raises(DMLValueError, match=r"\(C8\)"):
        Device("reference", strict=True).create_operator(strided(3))
    Device("reference").create_operator(strided(3))


def test_output_sizes_that_divide_have_one_value() -> None:
    (violation,) = validate(strided(5, Strides=(1, 1)))
    assert (violation.rule, violation.expected) == ("(C8)", "4")


@pytest.mark.parametrize(
    ("members", "size"),
    [
        ({"Dilations": (1, 4), "Strides": (1, 1)}, 1),
        ({"Dilations": (1, 3), "Strides": (1, 1)}, 2),
        ({"Dilations": (1, 3), "Strides": (1, 1), "EndPadding": (0, 4)}, 6),
        ({"StartPadding": (0, 1), "EndPadding": (0, 2)}, 4),
    ],
)
def test_dilation_and_padding_in_output_sizes(members: dict[str, Any], size: int) -> None:
    assert validate(strided(size, **members), strict=True) == []
    assert validate(strided(size - 1 or 9, **members)) != []


def test_limits_of_4_gib_hold_on_strict_devices_only() -> None:
    for large in (tensor((2**16, 2**16)), tensor((2**30 + 1,)), tensor((2, 2), "FLOAT32", (2**31, 1))):
        desc = summation(InputTensor=large, OutputTensor=large, Axis=0)
        assert validate(desc) == []
        assert {v.rule for v in validate(desc, strict=True)} == {"(T10)"}


def test_a_stride_of_more_than_32_bits_is_named_on_a_strict_device() -> None:
    far = tensor((1, 3), "FLOAT32", (2**32, 1))
    desc = summation(InputTensor=far, OutputTensor=far)
    assert validate(desc) == []
    said = [str(each).partition(": ")[2] for each in validate(desc, strict=True)]
    assert said == ["found 4294967296, expected at most 4294967295 on a strict device (T10)"] * 2
    assert [each.where for each in validate(desc, strict=True)] == ["InputTensor.Strides[0]", "OutputTensor.Strides[0]"]


def test_the_limits_themselves_are_fine_on_a_strict_device() -> None:
    most = tensor((2**32 - 1,), "UINT8")
    assert validate(DML_JOIN_OPERATOR_DESC(InputTensors=[most], OutputTensor=most, Axis=0), strict=True) == []
    four_gib = tensor((2**30,))
    assert validate(summation(InputTensor=four_gib, OutputTensor=four_gib, Axis=0), strict=True) == []


# Values


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("scale", [0.0, -0.0, -1.0, np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("which", [1, 3])
def test_a_scale_that_is_no_scale_is_refused_and_nothing_written(engine: str, scale: float, which: int) -> None:
    desc = pooling(InputScaleTensor=tensor((1, 3, 1, 1)), OutputScaleTensor=tensor((1, 3, 1, 1)))
    inputs = [
        np.ones((1, 3, 4, 5), np.uint8),
        np.ones((1, 3, 1, 1), np.float32),
        np.zeros((1, 3, 1, 1), np.uint8),
        np.ones((1, 3, 1, 1), np.float32),
        np.zeros((1, 1, 1, 1), np.uint8),
    ]
    inputs[which][0, 2] = scale
    output = np.full((1, 3, 3, 4), 0xA5, np.uint8)
    with pytest.raises(DMLValueError, match=r"\(V1\)") as raised:
        compiled(engine, desc).dispatch(inputs, [output])
    (violation,) = raised.value.violations
    assert violation.where == ("InputScaleTensor" if which == 1 else "OutputScaleTensor")
    assert f"{scale}" in violation.found
    assert "channel 2" in violation.found
    assert (output == 0xA5).all()


def test_both_scales_are_named_at_once() -> None:
    inputs = [
        np.ones((1, 3, 4, 5), np.uint8),
        np.zeros(1, np.float32),
        np.zeros(3, np.uint8),
        np.zeros(1, np.float32),
        np.zeros(1, np.uint8),
    ]
    with pytest.raises(DMLValueError, match="2 violations"):
        compiled("reference", pooling()).dispatch(inputs, [np.zeros((1, 3, 3, 4), np.uint8)])


def test_the_smallest_scale_is_a_scale() -> None:
    inputs = [
        np.ones((1, 3, 4, 5), np.uint8),
        np.float32([1e-45]),
        np.zeros(3, np.uint8),
        np.float32([1e-45]),
        np.zeros(1, np.uint8),
    ]
    output = np.zeros((1, 3, 3, 4), np.uint8)
    compiled("reference", pooling()).dispatch(inputs, [output])
    assert (output == 1).all()


def test_levels_and_strictness_of_a_device_are_those_of_validate() -> None:
    desc = summation(AxisDirection=AxisDirection.DECREASING)
    device = Device("reference", FeatureLevel.LEVEL_2_1)
    with pytest.raises(DMLValueError) as raised:
        device.create_operator(desc)
    assert raised.value.violations == tuple(validate(desc, FeatureLevel.LEVEL_2_1))
    assert raised.value.hresult == HResult.DXGI_ERROR_UNSUPPORTED
