"""ONE_HOT: the page's examples, every data type and type of indices, indices that there are not, axes and strides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from anydml import DML_ONE_HOT_OPERATOR_DESC, TensorDataType
from anydml.core.strided_layout import DATA_TYPES
from anydml.operators.schema import OperatorDesc
from support_tables import ALL, ALL_32, FLOATS, INDICES, Shape, Support

from . import Case, Negative, tensor, tensor_of


def _case(
    id: str,
    indices: object,
    values: object,
    y: object,
    axis: int,
    kind: Any = np.uint32,
    dtype: Any = np.float32,
    strides: Sequence[Sequence[int] | None] = (None, None, None),
) -> Case:
    arrays = np.array(indices, kind), np.array(values, dtype), np.array(y, dtype)
    which, off_and_on, output = (tensor_of(each, stride) for each, stride in zip(arrays, strides, strict=True))
    desc = DML_ONE_HOT_OPERATOR_DESC(IndicesTensor=which, ValuesTensor=off_and_on, OutputTensor=output, Axis=axis)
    return Case(f"one_hot-{id}", desc, list(arrays[:2]), [arrays[2]])


_ROWS = [[[[1, 0, 0, 0], [0, 0, 0, 1], [0, 0, 1, 0]]]]
_ACROSS = [[[[1, 0, 0, 1], [0, 0, 1, 0], [0, 1, 0, 0]]]]
_OTHERS = [[[[2, 4, 4, 4], [4, 4, 4, 2], [4, 4, 2, 4]]]]

PAGES = [
    _case("page-1", [[[[0], [3], [2]]]], [[[[0, 1]]]], _ROWS, 3),
    _case("page-2", [[[[0, 2, 1, 0]]]], [[[[0, 1]]]], _ACROSS, 2),
    _case("page-3", [[[[0], [3], [2]]]], [[[[4], [2], [9]]]], _OTHERS, 3),
    _case("page-4", [[[[-3], [100], [3]]]], [[[[0, 1]]]], [[[[0, 1, 0, 0], [0] * 4, [0, 0, 0, 1]]]], 3, np.int32),
]

TYPES = [
    _case(f"{dtype.name}-by-{kind}", [[2, 0, 3]], [[5, 7]], [[5, 7, 5], [5, 5, 5], [7, 5, 5]], 0, kind, dtype)
    for dtype in DATA_TYPES
    for kind in ("int64", "int32", "uint64", "uint32")
]

_NANS = np.array([0x7FC01234, 0xFF812345], np.uint32).view(np.float32)
_MANY = np.arange(1000) % 7
_HOT = np.arange(5)[:, None] == _MANY

OTHERS = [
    _case("before-the-beginning", [[-3], [-4], [-(2**63)]], [[0, 1]], [[1, 0, 0], [0] * 3, [0] * 3], 1, np.int64),
    _case("ends-of-indices", [[2**64 - 1], [2**63], [2]], [[0, 1]], [[0] * 3, [0] * 3, [0, 0, 1]], 1, np.uint64),
    _case("nan-payloads", [[1], [0]], [_NANS], _NANS[[[0, 1], [1, 0]]], 1),
    _case("one-long", [[0, 1]], [[3, 4]], [[4, 3]], 0, dtype=np.int8),
    _case("one-dimension", [1], [8, 9], [8, 9, 8], 0, dtype=np.int16),
    _case("many-across", _MANY[None], [[2, 3]], _HOT + 2, 0, np.int32, np.int8),
    _case("many-rows", _MANY[:, None], [[2, 3]], _HOT.T + 2, 1, np.int64),
    _case(
        "strides",
        [[[2, 0]], [[1, 1]]],
        [[[6], [5]]],
        [[[6, 5], [6, 6], [5, 6]], [[6, 6], [5, 5], [6, 6]]],
        1,
        np.int32,
        np.float16,
        ((1, 7, 3), (9, 5, 2), (1, 5, 20)),
    ),
    _case("one-index-is-shared", [[1]] * 3, [[0, 1]], [[0, 1]] * 3, 1, strides=((0, 0), None, None)),
]

CASES = [*PAGES, *TYPES, *OTHERS]


def _one_hot(**members: Any) -> DML_ONE_HOT_OPERATOR_DESC:
    right = {
        "IndicesTensor": tensor((3, 1), "INT32"),
        "ValuesTensor": tensor((1, 2)),
        "OutputTensor": tensor((3, 4)),
        "Axis": 1,
    }
    return DML_ONE_HOT_OPERATOR_DESC(**{**right, **members})


RIGHT = [_one_hot(), _one_hot(ValuesTensor=tensor((5, 1)))]
NEGATIVES = [
    Negative("(C1)", _one_hot(OutputTensor=tensor((3, 4), "INT8")), "OutputTensor.DataType", "INT8", "FLOAT32, that"),
    Negative("(C2)", _one_hot(ValuesTensor=tensor((2,))), "ValuesTensor.DimensionCount", "1", "2, that of Indices"),
    Negative("(C2)", _one_hot(OutputTensor=tensor((1, 3, 4))), "OutputTensor.DimensionCount", "3", "2, that of"),
    Negative("(C3)", _one_hot(Axis=2), "Axis", "2", "less than 2, the DimensionCount"),
    Negative(
        "(C4)",
        _one_hot(IndicesTensor=tensor((3, 2), "INT32")),
        "IndicesTensor.Sizes[1]",
        "2",
        "1, along Axis",
    ),
    Negative(
        "(C5)", _one_hot(ValuesTensor=tensor((1, 1))), "ValuesTensor.Sizes", "of 1 element", "at least 2 elements"
    ),
    Negative("(C6)", _one_hot(OutputTensor=tensor((2, 4))), "OutputTensor.Sizes[0]", "2", "3"),
]


def _desc(operator: str, **shapes: Shape) -> OperatorDesc:
    """Values of two elements."""
    ones = {name: tensor((1,) * rank, kind.name) for name, (rank, kind) in shapes.items()}
    rank, kind = shapes["ValuesTensor"]
    ones["ValuesTensor"] = tensor(((1,) * (rank - 1) + (2,))[:rank], kind.name)
    return DML_ONE_HOT_OPERATOR_DESC(**ones, Axis=0)


def _others(operator: str, tensor: str, shape: Shape) -> Mapping[str, Shape]:
    data = (shape[0], TensorDataType.FLOAT32) if tensor == "IndicesTensor" else shape
    indices = (shape[0], TensorDataType.UINT32)
    return {"IndicesTensor": indices, "ValuesTensor": data, "OutputTensor": data, tensor: shape}


KERNELS = {"ONE_HOT": "one-hot vectors of "}
_DATA = [("2.0", 4, 4, FLOATS), ("2.1", 4, 4, ALL_32), ("3.0", 1, 8, ALL_32), ("4.1", 1, 8, ALL)]
SUPPORT = {
    "ONE_HOT": Support(
        {
            "IndicesTensor": [("2.0", 4, 4, "UINT32"), ("3.0", 1, 8, INDICES)],
            "ValuesTensor": _DATA,
            "OutputTensor": _DATA,
        },
        desc=_desc,
        others=_others,
    ),
}
