"""Rules on members and tensors, which all operators share, broken in one desc each."""

from __future__ import annotations

from anydml import DML_JOIN_OPERATOR_DESC, DML_SCALE_BIAS, TensorDataType, TensorFlags
from anydml.operators import spec

from . import GOOD, Negative, alike, bad
from .activation import activation, add1
from .cumulative import multiplication, summation
from .element_wise import element_wise
from .join import join
from .pooling import pooling

UINT8 = TensorDataType.UINT8

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
        add1(alike("ACTIVATION_PARAMETERIZED_RELU")),
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
        "(S4)", add1(activation("SOFTMAX1", Axes=[9])), "FusedActivation", "ACTIVATION_SOFTMAX1", "or ACTIVATION_GELU"
    ),
    Negative("(F6)", None, "desc", "None", "operators that `anydml ops` lists"),
    Negative("(F6)", "JOIN", "desc", "str 'JOIN'", "DML_..._OPERATOR_DESC"),
    Negative("(F6)", DML_JOIN_OPERATOR_DESC, "desc", "type", "DML_..._OPERATOR_DESC"),
    Negative("(F6)", type("DML_JOIN_OPERATOR_DESC", (), {})(), "desc", "DML_JOIN_OPERATOR_DESC", "DML_..."),
    # Tensors
    Negative("(T1)", summation(InputTensor=bad(DataType=1)), "InputTensor.DataType", "int 1", "a TensorDataType"),
    Negative("(T1)", summation(InputTensor=bad(DataType="FLOAT3")), "InputTensor.DataType", "'FLOAT3'", "TensorData"),
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
]
