"""DIAGONAL_MATRIX and DIAGONAL_MATRIX1: the pages' examples, every data type, bands of all kinds, strides."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from anydml import DML_DIAGONAL_MATRIX1_OPERATOR_DESC, DML_DIAGONAL_MATRIX_OPERATOR_DESC, TensorDataType
from anydml.core.strided_layout import DATA_TYPES
from support_tables import ALL, ALL_32, FLOATS, Support

from . import Case, Negative, bad, tensor, tensor_of

INF, NAN = np.inf, np.nan
LEAST, MOST = -(2**31), 2**31 - 1


def _diagonal(
    id: str, y: Any, offset: int = 0, value: float = 1, dtype: Any = np.float32, strides: Sequence[int] | None = None
) -> Case:
    output = np.array(y, dtype)
    desc = DML_DIAGONAL_MATRIX_OPERATOR_DESC(OutputTensor=tensor_of(output, strides), Offset=offset, Value=value)
    return Case(f"diagonal_matrix-{id}", desc, [], [output])


def _band(
    id: str,
    x: np.ndarray | None,
    y: Any,
    begin: int,
    end: int,
    value: float = 7,
    dtype: Any = np.float32,
    strides: Sequence[int] | None = None,
    out_strides: Sequence[int] | None = None,
) -> Case:
    output = np.array(y, dtype)
    desc = DML_DIAGONAL_MATRIX1_OPERATOR_DESC(
        InputTensor=None if x is None else tensor_of(x, strides),
        OutputTensor=tensor_of(output, out_strides),
        ValueDataType=DATA_TYPES[output.dtype],
        Value=value,
        DiagonalFillBegin=begin,
        DiagonalFillEnd=end,
    )
    return Case(f"diagonal_matrix1-{id}", desc, [x], [output])


def _by_numpy(
    id: str, sizes: Sequence[int], begin: int, end: int, dtype: Any = np.float32, has_input: bool = True, **strides: Any
) -> Case:
    """What two triangles have in common, of 7s."""
    below_end, from_begin = (np.tri(*sizes[-2:], k, dtype=bool) for k in (end - 1, begin - 1))
    is_filled = below_end & ~from_begin if begin <= end else below_end | ~from_begin
    x = np.arange(1, np.prod(sizes) + 1).reshape(sizes).astype(dtype)
    y = np.where(is_filled, np.array(7, dtype), x if has_input else np.zeros_like(x))
    return _band(id, x if has_input else None, y, begin, end, 7, dtype, **strides)


_PAGE = np.array([[4, 7, 3, 7, 9], [1, 2, 8, 6, 9], [9, 4, 1, 8, 7], [4, 3, 4, 2, 4]], np.float32)
_EYE = np.eye(4, 5)
_NANS = np.array([[0x7F800001, 0xFFC12345], [0x80000000, 0x7FFFFFFF]], np.uint32).view(np.float32)

DIAGONALS = [
    _diagonal("page-1", [[[[1, 0, 0], [0, 1, 0], [0, 0, 1]]]]),
    _diagonal("page-2", [[[[0, 1, 0], [0, 0, 1], [0, 0, 0]]]], 1),
    _diagonal("page-3", [[[[0, 0], [1, 0], [0, 1]]]], -1),
    _diagonal("page-4", [[[[0, 0], [0, 0], [0, 0]]]], -3),
    *(_diagonal(dtype.name, 5 * np.eye(2, 3), 0, 5, dtype) for dtype in DATA_TYPES),
    *(_diagonal(f"offset-{offset}", np.zeros((2, 3)), offset) for offset in (LEAST, MOST, 3, -2)),
    _diagonal("truncated", 10 * np.eye(2), 0, 10.6, np.uint8),
    _diagonal("truncated-below-0", -10 * np.eye(2), 0, -10.6, np.int32),
    _diagonal("saturated", 255 * np.eye(2), 0, 1e9, np.uint8),
    _diagonal("saturated-below-0", [[0]], 0, -1, np.uint16),
    _diagonal("infinite-int64", [[2**63 - 1]], 0, INF, np.int64),
    _diagonal("nan", [[NAN]], 0, NAN),
    _diagonal("rounded-to-float16", np.float16(0.1) * np.eye(2, dtype=np.float16), 0, 0.1, np.float16),
    _diagonal("overflow-of-float16", [[INF]], 0, 1e5, np.float16),
    _diagonal("stack", np.broadcast_to(np.eye(3, 4, 1), (2, 3, 3, 4)), 1),
    _diagonal("transposed", np.eye(3, 4, -1), -1, 1, np.int16, (1, 3)),
    _diagonal("gapped", np.eye(3, 4, 1), 1, 1, np.float64, (9, 2)),
]

BANDS = [
    _band("page-1", None, 7 * _EYE, 0, 1),
    _band("page-2", None, [[7, 7, 7, 0, 0], [0, 7, 7, 7, 0], [0, 0, 7, 7, 7], [0, 0, 0, 7, 7]], 0, 3),
    _band("page-3", _PAGE, [[0, 7, 3, 7, 9], [0, 0, 8, 6, 9], [0, 0, 0, 8, 7], [0, 0, 0, 0, 4]], LEAST, 1, 0),
    _band("page-4", _PAGE, np.where(_EYE, _PAGE, 0), 1, 0, 0),
    *(_by_numpy(f"{dtype.name}-filled", (2, 3, 4), -1, 1, dtype) for dtype in DATA_TYPES),
    *(_by_numpy(f"{dtype.name}-left", (3, 4), 2, 0, dtype) for dtype in DATA_TYPES),
    *(_by_numpy(f"{dtype.name}-of-nothing", (3, 4), 0, 2, dtype, False) for dtype in DATA_TYPES),
    *(
        _by_numpy(f"from-{begin}-to-{end}", (5, 7), begin, end)
        for begin, end in [(0, 0), (3, 3), (-9, 9), (9, -9), (-9, -6), (8, 12), (-4, -3), (6, 7), (5, -3), (7, 0)]
    ),
    _by_numpy("all", (3, 4), LEAST, MOST),
    _by_numpy("all-left", (3, 4), MOST, LEAST),
    _by_numpy("nothing-at-an-end", (3, 4), MOST, MOST),
    _by_numpy("inverted-of-nothing", (5, 4), 2, -1, np.float16, False),
    _by_numpy("stack", (2, 3, 4, 5), -1, 2),
    _by_numpy("wide", (3, 2500), 1000, 1100),
    _by_numpy("wide-and-left", (3, 2500), 2100, 900, np.uint8),
    _by_numpy("large", (600, 700), -3, 50, np.float64),
    _by_numpy("transposed-input", (3, 4), 0, 2, strides=(1, 3)),
    _by_numpy("transposed-output", (2, 3, 4), 0, 2, np.int8, out_strides=(12, 1, 3)),
    _by_numpy("gapped", (3, 4), 1, -1, np.int64, strides=(11, 2), out_strides=(20, 3)),
    _band("broadcast-input", np.ones((3, 3), np.float32), [[1, 7, 1], [1, 1, 7], [1, 1, 1]], 1, 2, strides=(0, 0)),
    _band("highest-uint64", None, [[2**64 - 1]], 0, 1, 2**64 - 1, np.uint64),
    _band("lowest-int64", None, [[0, -(2**63)]], 1, 2, -(2**63), np.int64),
    _band("rounded-to-float16", None, [[np.float16(0.1)]], 0, 1, 0.1, np.float16),
    _band("nan", None, [[NAN, 0]], 0, 1, NAN),
]

CASES = [*DIAGONALS, *BANDS]


def _bits_kept() -> Case:
    """NaNs, seen as integers."""
    return _band("bits", _NANS, _NANS, 0, 0)


CASES.append(_bits_kept())

_INT32 = TensorDataType.INT32


def _right(data_type: str = "FLOAT32", **members: Any) -> DML_DIAGONAL_MATRIX1_OPERATOR_DESC:
    right = {"InputTensor": tensor((2, 3), data_type), "OutputTensor": tensor((2, 3), data_type)}
    ends = {"ValueDataType": TensorDataType[data_type], "Value": 1, "DiagonalFillBegin": 0, "DiagonalFillEnd": 1}
    return DML_DIAGONAL_MATRIX1_OPERATOR_DESC(**{**right, **ends, **members})


def _right_diagonal(**members: Any) -> DML_DIAGONAL_MATRIX_OPERATOR_DESC:
    return DML_DIAGONAL_MATRIX_OPERATOR_DESC(**{"OutputTensor": tensor((2, 3)), "Offset": 0, "Value": 1, **members})


NEGATIVES = [
    Negative("(F2)", _right_diagonal(Offset=2**31), "Offset", "2147483648", "an integer from -2^31 to 2^31 - 1"),
    Negative("(F8)", _right_diagonal(Value="1"), "Value", "str '1'", "a number of single precision"),
    Negative(
        "(C1)",
        _right_diagonal(OutputTensor=tensor((2, 3), "INT8"), Value=NAN),
        "Value",
        "nan",
        "a number, as OutputTensor is of INT8",
    ),
    Negative("(F2)", _right(DiagonalFillEnd=0.5), "DiagonalFillEnd", "float 0.5", "an integer from -2^31 to 2^31 - 1"),
    Negative("(C1)", _right(ValueDataType=_INT32), "ValueDataType", "INT32", "FLOAT32, that of OutputTensor"),
    Negative("(C2)", _right("UINT8", Value=256), "Value", "256", "an integer from 0 to 255, which UINT8 holds"),
    Negative(
        "(C3)",
        _right(InputTensor=tensor((2, 3), "INT32")),
        "OutputTensor.DataType",
        "FLOAT32",
        "INT32, that of InputTensor",
    ),
    Negative(
        "(C4)", _right(OutputTensor=tensor((1, 2, 3))), "OutputTensor.DimensionCount", "3", "2, that of InputTensor"
    ),
    Negative("(C5)", _right(OutputTensor=bad(Sizes=(2, 4))), "OutputTensor.Sizes[1]", "4", "3"),
]

RIGHT = [_right_diagonal(), _right(), _right(InputTensor=None), _right("INT8", Value=-128)]
KERNELS = dict.fromkeys(("DIAGONAL_MATRIX", "DIAGONAL_MATRIX1"), "band of diagonals")
SUPPORT = {
    "DIAGONAL_MATRIX": Support(
        [("2.0", 4, 4, FLOATS), ("2.1", 4, 4, ALL_32), ("4.0", 2, 4, ALL_32), ("5.1", 2, 4, ALL)],
        members=lambda output: {"Offset": 0},
    ),
    "DIAGONAL_MATRIX1": Support(
        [("5.1", 2, 4, ALL)],
        members=lambda output: {
            "ValueDataType": output[1],
            "Value": 0,
            "DiagonalFillBegin": 0,
            "DiagonalFillEnd": 1,
        },
    ),
}
