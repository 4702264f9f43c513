"""FILL_VALUE_CONSTANT and FILL_VALUE_SEQUENCE: the pages' examples, every data type, the ends of types."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from anydml import DML_FILL_VALUE_CONSTANT_OPERATOR_DESC, DML_FILL_VALUE_SEQUENCE_OPERATOR_DESC, TensorDataType
from anydml.core.strided_layout import DATA_TYPES
from support_tables import ALL, ALL_32, ALL_BUT_DOUBLE, Support

from . import Case, Negative, tensor, tensor_of

INF, NAN = np.inf, np.nan


def _constant(
    id: str, dtype: Any, value: float, y: object, sizes: Sequence[int] = (2,), strides: Sequence[int] | None = None
) -> Case:
    output = np.full(sizes, y, dtype)
    desc = DML_FILL_VALUE_CONSTANT_OPERATOR_DESC(
        OutputTensor=tensor_of(output, strides), ValueDataType=DATA_TYPES[output.dtype], Value=value
    )
    return Case(f"fill_value_constant-{id}", desc, [], [output])


def _sequence(
    id: str, dtype: Any, start: float, delta: float, y: Sequence[Any], strides: Sequence[int] | None = None
) -> Case:
    output = np.array(y, dtype)
    desc = DML_FILL_VALUE_SEQUENCE_OPERATOR_DESC(
        OutputTensor=tensor_of(output, strides),
        ValueDataType=DATA_TYPES[output.dtype],
        ValueStart=start,
        ValueDelta=delta,
    )
    return Case(f"fill_value_sequence-{id}", desc, [], [output])


_INTEGERS = [dtype for dtype in DATA_TYPES if dtype.kind in "iu"]


def _ends(dtype: np.dtype[Any]) -> list[Case]:
    name, low, high = dtype.name, int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
    cases = [
        _constant(f"highest-{name}", dtype, high, high),
        _constant(f"lowest-{name}", dtype, low, low),
        _sequence(f"wraps-up-{name}", dtype, high - 1, 1, [high - 1, high, low, low + 1]),
        _sequence(f"wraps-down-{name}", dtype, low + 1, -1, [low + 1, low, high, high - 1]),
        _sequence(f"steps-of-the-highest-{name}", dtype, 3, high, [3, 2 + low, 1] if low else [3, 2, 1, 0, high]),
    ]
    return cases


CONSTANTS = [
    _constant("page", np.float32, 13.0, 13, (1, 1, 2, 4)),
    *(_constant(dtype.name, dtype, 7, 7) for dtype in DATA_TYPES),
    # Whole numbers may be written as floats, and more of them than a double has as integers.
    _constant("whole-float", np.uint8, 3.0, 3),
    _constant("rounded-to-float32", np.float32, 0.1, np.float32(0.1)),
    _constant("rounded-to-float16", np.float16, 0.1, np.float16(0.1)),
    _constant("float64", np.float64, 0.1, 0.1),
    _constant("integer-rounded-once", np.float32, 2**62 + 2**38 + 1, 2.0**62 + 2.0**39),
    _constant("large-float64", np.float64, 2**64 - 1, 2.0**64),
    _constant("just-finite", np.float16, 65519.9, 65504),
    _constant("infinite", np.float16, -INF, -INF),
    _constant("nan", np.float32, NAN, NAN),
    _constant("negative-zero", np.float32, -0.0, -0.0),
    _constant("one-element", np.int64, -5, -5, (1,)),
    _constant("gapped", np.int16, 9, 9, (2, 3), (1, 4)),
    _constant("eight-dimensions", np.int8, -1, -1, (1, 2, 1, 3, 1, 1, 2, 1)),
]

SEQUENCES = [
    _sequence("page-1", np.float32, 3, 2, [[[[3, 5, 7]]]]),
    _sequence("page-2", np.uint8, 10, -2, [[[[10, 8], [6, 4]]]]),
    *(_sequence(dtype.name, dtype, 1, 3, [[1, 4], [7, 10]]) for dtype in DATA_TYPES if dtype != np.float64),
    _sequence("down-past-0", np.uint8, 3, -2, [3, 1, 255, 253]),
    _sequence("steps-written-unsigned", np.uint8, 3, 254, [3, 1, 255, 253]),
    # 0.1 as single precision has it times 3 is not what three additions of it give.
    _sequence(
        "float32-rounds-once", np.float32, 0, 0.1, [np.float32(np.float64(np.float32(0.1)) * i) for i in range(9)]
    ),
    _sequence("float16-of-steps-that-vanish-one-by-one", np.float16, 2048, 0.5, [2048, 2048, 2048, 2050, 2050]),
    _sequence("float16-overflows", np.float16, 65504, 16, [65504, INF, INF]),
    _sequence("infinite-step", np.float32, 3, INF, [3, INF, INF]),
    _sequence("nan", np.float32, 3, NAN, [3, NAN, NAN]),
    _sequence("no-step", np.int32, -4, 0, [-4, -4]),
    _sequence("one-element", np.int64, 2**63 - 1, 2**63 - 1, [2**63 - 1]),
    _sequence("row-major-whatever-the-strides", np.int16, 0, 1, [[0, 1, 2], [3, 4, 5]], (1, 4)),
    _sequence("eight-dimensions", np.uint16, 5, 1, np.arange(5, 11).reshape(1, 2, 1, 3, 1, 1, 1, 1).tolist()),
]

CASES = [*CONSTANTS, *SEQUENCES, *(case for dtype in _INTEGERS for case in _ends(dtype))]


def _fill(data_type: str = "FLOAT32", **members: Any) -> DML_FILL_VALUE_CONSTANT_OPERATOR_DESC:
    right = {"OutputTensor": tensor((2, 3), data_type), "ValueDataType": TensorDataType[data_type], "Value": 1}
    return DML_FILL_VALUE_CONSTANT_OPERATOR_DESC(**{**right, **members})


def _count(data_type: str = "FLOAT32", **members: Any) -> DML_FILL_VALUE_SEQUENCE_OPERATOR_DESC:
    right = {"OutputTensor": tensor((2, 3), data_type), "ValueDataType": TensorDataType[data_type]}
    return DML_FILL_VALUE_SEQUENCE_OPERATOR_DESC(**{**right, "ValueStart": 1, "ValueDelta": 1, **members})


_INT32 = TensorDataType.INT32

NEGATIVES = [
    Negative("(F8)", _fill(Value="1"), "Value", "str '1'", "a real number"),
    Negative("(C1)", _fill(ValueDataType=_INT32), "ValueDataType", "INT32", "FLOAT32, that of OutputTensor"),
    Negative("(C2)", _fill("UINT8", Value=256), "Value", "256", "an integer from 0 to 255, which UINT8 holds"),
    Negative("(C2)", _fill("UINT8", Value=-1), "Value", "-1", "an integer from 0 to 255"),
    Negative("(C2)", _fill("INT32", Value=0.5), "Value", "0.5", "an integer from -2147483648 to 2147483647"),
    Negative("(C2)", _fill("INT64", Value=NAN), "Value", "nan", "an integer from"),
    Negative("(C2)", _fill("UINT64", Value=2.0**64), "Value", "1.8446744073709552e+19", "to 18446744073709551615"),
    Negative("(C2)", _fill("FLOAT16", Value=65520), "Value", "65520", "a number from -65504.0 to 65504.0, as FLOAT16"),
    Negative("(C2)", _fill(Value=-1e39), "Value", "-1e+39", "a number from -3.40282"),
    Negative("(C1)", _count(ValueDataType=_INT32), "ValueDataType", "INT32", "FLOAT32, that of OutputTensor"),
    Negative("(C2)", _count("UINT8", ValueStart=-1), "ValueStart", "-1", "an integer from 0 to 255"),
    Negative("(C3)", _count("UINT8", ValueDelta=-129), "ValueDelta", "-129", "an integer from -128 to 255"),
    Negative("(C3)", _count("INT8", ValueDelta=128), "ValueDelta", "128", "an integer from -128 to 127"),
    Negative("(C3)", _count("INT8", ValueDelta=0.5), "ValueDelta", "0.5", "an integer from -128 to 127"),
    Negative("(C3)", _count("FLOAT16", ValueDelta=1e5), "ValueDelta", "100000.0", "a number from -65504.0 to 65504.0"),
]

RIGHT = [_fill(), _count()]
KERNELS = {"FILL_VALUE_CONSTANT": "movement ", "FILL_VALUE_SEQUENCE": "sequence of "}
SUPPORT = {
    "FILL_VALUE_CONSTANT": Support(
        [
            ("2.1", 4, 4, ALL_32),
            ("4.0", 1, 8, ALL_32),
            ("4.1", 1, 8, ALL),
        ],
        members=lambda output: {"ValueDataType": output[1], "Value": 0},
    ),
    "FILL_VALUE_SEQUENCE": Support(
        [
            ("2.1", 4, 4, ALL_32),
            ("4.0", 1, 8, ALL_32),
            ("5.0", 1, 8, ALL_BUT_DOUBLE),
        ],
        members=lambda output: {"ValueDataType": output[1], "ValueStart": 0, "ValueDelta": 0},
    ),
}
