"""PADDING and PADDING1: the pages' examples, every mode on every data type, paddings longer than the input."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import numpy as np

from anydml import DML_PADDING1_OPERATOR_DESC, DML_PADDING_OPERATOR_DESC, PaddingMode, TensorDataType
from anydml.core.strided_layout import DATA_TYPES
from support_tables import ALL, ALL_32, FLOATS, Support

from . import Case, Negative, tensor, tensor_of

INF, NAN = np.inf, np.nan


def _case(
    id: str,
    x: np.ndarray,
    y: object,
    mode: str,
    start: Sequence[int],
    end: Sequence[int],
    value: float = 0,
    strides: Sequence[int] | None = None,
    out_strides: Sequence[int] | None = None,
) -> Case:
    output = np.array(y, x.dtype)
    desc = DML_PADDING_OPERATOR_DESC(
        InputTensor=tensor_of(x, strides),
        OutputTensor=tensor_of(output, out_strides),
        PaddingMode=PaddingMode[mode],
        PaddingValue=value,
        StartPadding=start,
        EndPadding=end,
    )
    return Case(f"padding-{id}", desc, [x], [output])


_X = np.array([[[[1, 2, 3, 4], [5, 6, 7, 8], [1, 2, 3, 4], [5, 6, 7, 8]]]], np.float32)


def _page(mode: str, *rows: Sequence[int]) -> Case:
    return _case(f"page-{mode.lower()}", _X, [[rows]], mode, (0, 0, 1, 2), (0, 0, 3, 4), 9)


_NINES = [9] * 10
_LOW, _HIGH = [9, 9, 1, 2, 3, 4, 9, 9, 9, 9], [9, 9, 5, 6, 7, 8, 9, 9, 9, 9]
_EDGE_1, _EDGE_5 = [1, 1, 1, 2, 3, 4, 4, 4, 4, 4], [5, 5, 5, 6, 7, 8, 8, 8, 8, 8]
_MIRROR_3, _MIRROR_7 = [3, 2, 1, 2, 3, 4, 3, 2, 1, 2], [7, 6, 5, 6, 7, 8, 7, 6, 5, 6]
_TWICE_A, _TWICE_B = [2, 1, 1, 2, 3, 4, 4, 3, 2, 1], [6, 5, 5, 6, 7, 8, 8, 7, 6, 5]
# What follows the last element of a row is the first, and likewise of rows.
_WRAP_A, _WRAP_B = [3, 4, 1, 2, 3, 4, 1, 2, 3, 4], [7, 8, 5, 6, 7, 8, 5, 6, 7, 8]

PAGES = [
    _page("CONSTANT", _NINES, _LOW, _HIGH, _LOW, _HIGH, _NINES, _NINES, _NINES),
    _page("EDGE", _EDGE_1, _EDGE_1, _EDGE_5, _EDGE_1, _EDGE_5, _EDGE_5, _EDGE_5, _EDGE_5),
    _page("REFLECTION", *[_MIRROR_7, _MIRROR_3] * 4),
    _page("SYMMETRIC", _TWICE_A, _TWICE_A, _TWICE_B, _TWICE_A, _TWICE_B, _TWICE_B, _TWICE_A, _TWICE_B),
    _page("WRAP", *[_WRAP_B, _WRAP_A] * 4),
]

_LONG = {
    "CONSTANT": [7] * 8 + [1, 2, 3] + [7] * 8,
    "EDGE": [1] * 9 + [2] + [3] * 9,
    "REFLECTION": [1, 2, 3, 2, 1, 2, 3, 2, 1, 2, 3, 2, 1, 2, 3, 2, 1, 2, 3],
    "SYMMETRIC": [2, 1, 1, 2, 3, 3, 2, 1, 1, 2, 3, 3, 2, 1, 1, 2, 3, 3, 2],
    "WRAP": [2, 3, 1, 2, 3, 1, 2, 3, 1, 2, 3, 1, 2, 3, 1, 2, 3, 1, 2],
}
"""What 8 elements of padding on either side of {1, 2, 3} are."""

TYPES = [
    _case(f"{mode.lower()}-{dtype.name}", np.array([1, 2, 3], dtype), y, mode, (8,), (8,), 7)
    for dtype in DATA_TYPES
    for mode, y in _LONG.items()
]

_NANS = np.array([0x7FC01234, 0xFF812345], np.uint32).view(np.float32)
_TABLE = np.arange(6, dtype=np.int16).reshape(2, 3)
_VALUES = {
    "int8": [(10.6, 10), (-10.6, -10), (1e30, 127), (-INF, -128), (NAN, 0), (INF, 127)],
    "uint8": [(-0.5, 0), (-3, 0), (255.9, 255), (256, 255)],
    "uint64": [(2.0**63, 2**63), (1e20, 2**64 - 1), (INF, 2**64 - 1)],
    "int64": [(2.0**63, 2**63 - 1), (-(2.0**63), -(2**63)), (2.0**62, 2**62)],
    # 0.1 is rounded to single precision first, and to half precision from there.
    "float16": [(0.1, np.float16(0.1)), (1e30, INF), (-65520, -INF), (NAN, NAN)],
    "float32": [(0.1, np.float32(0.1)), (INF, INF), (NAN, NAN)],
    "float64": [(0.1, float(np.float32(0.1))), (-INF, -INF)],
}

OTHERS = [
    *(
        _case(
            f"value-{value}-of-{name}",
            np.array([1], name),
            np.array([expected, 1], name),
            "CONSTANT",
            (1,),
            (0,),
            value,
        )
        for name, values in _VALUES.items()
        for value, expected in values
    ),
    *(_case(f"nothing-{mode.name.lower()}", _TABLE, _TABLE, mode.name, (0, 0), (0, 0)) for mode in PaddingMode),
    *(
        _case(f"one-element-{mode.name.lower()}", np.array([4], np.int8), [4] * 6, mode.name, (2,), (3,), 4)
        for mode in PaddingMode
    ),
    _case("nan-payloads", _NANS, _NANS[[1, 0, 1, 0]], "REFLECTION", (1,), (1,)),
    _case("transposed-to-gapped", _TABLE, [[0, 1, 2, 2], [3, 4, 5, 5]], "EDGE", (0, 0), (0, 1), 0, (1, 2), (9, 2)),
    _case("broadcast", np.full((2, 3), 5, np.uint8), [[0, 5, 5, 5]] * 2, "CONSTANT", (0, 1), (0, 0), 0, (0, 0)),
    _case(
        "eight-dimensions",
        _TABLE.reshape(1, 2, 1, 1, 3, 1, 1, 1),
        np.array([5, 3, 4, 5, 2, 0, 1, 2, 5, 3, 4, 5]).reshape(1, 3, 1, 1, 4, 1, 1, 1),
        "WRAP",
        (0, 1, 0, 0, 1, 0, 0, 0),
        (0,) * 8,
    ),
]


def _with_type(case: Case, value: float | None = None) -> Case:
    """The same of PADDING1, with a value of the tensors' type."""
    of_padding = case.desc
    members = {each.name: getattr(of_padding, each.name) for each in fields(of_padding)}
    if value is not None:
        members["PaddingValue"] = value
    desc = DML_PADDING1_OPERATOR_DESC(**members, PaddingValueDataType=of_padding.InputTensor.DataType)
    return Case(case.id.replace("padding", "padding1"), desc, case.inputs, case.outputs)


_OF_TYPE = {
    "int8": [(127, 127), (-128, -128)],
    "uint32": [(2**32 - 1, 2**32 - 1)],
    "int64": [(2**63 - 1, 2**63 - 1), (-(2**63) + 1, -(2**63) + 1)],
    "uint64": [(2**64 - 1, 2**64 - 1), (2**53 + 1, 2**53 + 1)],
    "float16": [(0.1, np.float16(0.1)), (65504, 65504), (-INF, -INF), (NAN, NAN)],
    "float32": [(0.1, np.float32(0.1)), (INF, INF)],
    "float64": [(0.1, 0.1), (1e300, 1e300), (NAN, NAN)],
}

PADDING1 = [
    *map(_with_type, [*PAGES, *TYPES, *[case for case in OTHERS if "-value-" not in case.id]]),
    *(
        _with_type(
            _case(
                f"value-{value}-of-{name}", np.array([1], name), np.array([expected, 1], name), "CONSTANT", (1,), (0,)
            ),
            value,
        )
        for name, values in _OF_TYPE.items()
        for value, expected in values
    ),
    _with_type(_case("value-of-another-mode", np.array([1, 2], np.int8), [1, 1, 2], "EDGE", (1,), (0,)), 1e9),
]

CASES = [*PAGES, *TYPES, *OTHERS, *PADDING1]


def _padding(**members: Any) -> DML_PADDING_OPERATOR_DESC:
    right = {
        "InputTensor": tensor((2, 3)),
        "OutputTensor": tensor((3, 5)),
        "PaddingMode": PaddingMode.EDGE,
        "PaddingValue": 0,
        "StartPadding": (1, 0),
        "EndPadding": (0, 2),
    }
    return DML_PADDING_OPERATOR_DESC(**{**right, **members})


def _padding1(**members: Any) -> DML_PADDING1_OPERATOR_DESC:
    right = {
        "InputTensor": tensor((2, 3), "INT8"),
        "OutputTensor": tensor((3, 5), "INT8"),
        "PaddingMode": PaddingMode.CONSTANT,
        "PaddingValueDataType": TensorDataType.INT8,
        "PaddingValue": 7,
        "StartPadding": (1, 0),
        "EndPadding": (0, 2),
    }
    return DML_PADDING1_OPERATOR_DESC(**{**right, **members})


NEGATIVES = [
    Negative("(C1)", _padding1(InputTensor=tensor((2, 3))), "OutputTensor.DataType", "INT8", "FLOAT32, that"),
    Negative(
        "(C2)", _padding1(OutputTensor=tensor((3, 5, 1), "INT8")), "OutputTensor.DimensionCount", "3", "2, that of"
    ),
    Negative("(C3)", _padding1(StartPadding=(1,), EndPadding=(0,)), "DimensionCount", "1", "2, that of InputTensor"),
    Negative("(C4)", _padding1(OutputTensor=tensor((3, 4), "INT8")), "OutputTensor.Sizes[1]", "4", "5"),
    Negative(
        "(C5)", _padding1(PaddingValueDataType=TensorDataType.UINT8), "PaddingValueDataType", "UINT8", "INT8, that"
    ),
    Negative("(C6)", _padding1(PaddingValue=128), "PaddingValue", "128", "an integer from -128 to 127, which INT8"),
    Negative("(C6)", _padding1(PaddingValue=0.5), "PaddingValue", "0.5", "an integer from -128 to 127"),
    Negative("(F4)", _padding(PaddingMode=1), "PaddingMode", "int 1", "PaddingMode.REFLECTION"),
    Negative("(C1)", _padding(OutputTensor=tensor((3, 5), "INT8")), "OutputTensor.DataType", "INT8", "FLOAT32, that"),
    Negative("(C2)", _padding(OutputTensor=tensor((3, 5, 1))), "OutputTensor.DimensionCount", "3", "2, that of Input"),
    Negative("(C3)", _padding(StartPadding=(1,), EndPadding=(0,)), "DimensionCount", "1", "2, that of InputTensor"),
    Negative("(C4)", _padding(OutputTensor=tensor((3, 4))), "OutputTensor.Sizes[1]", "4", "5"),
    Negative("(C4)", _padding(StartPadding=(2**32 - 1, 0)), "OutputTensor.Sizes[0]", "3", "4294967297"),
]

RIGHT = [_padding(), _padding1()]
KERNELS = {"PADDING": "movement ", "PADDING1": "movement "}
SUPPORT = {
    "PADDING": Support(
        [
            ("1.0", 4, 5, FLOATS),
            ("2.1", 4, 5, ALL_32),
            ("3.1", 1, 8, ALL_32),
            ("5.0", 1, 8, ALL),
        ],
        members=lambda output: {
            "PaddingMode": PaddingMode.EDGE,
            "StartPadding": (0,) * output[0],
            "EndPadding": (0,) * output[0],
        },
    ),
    "PADDING1": Support(
        [("5.0", 1, 8, ALL)],
        members=lambda output: {
            "PaddingMode": PaddingMode.EDGE,
            "PaddingValueDataType": output[1],
            "PaddingValue": 0,
            "StartPadding": (0,) * output[0],
            "EndPadding": (0,) * output[0],
        },
    ),
}
