"""GATHER_ELEMENTS and SCATTER_ELEMENTS: the pages' examples, every data type and type of indices, axes, strides, and
indices that are the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from anydml import DML_GATHER_ELEMENTS_OPERATOR_DESC, DML_SCATTER_ELEMENTS_OPERATOR_DESC, TensorDataType
from anydml.core.strided_layout import DATA_TYPES
from support_tables import ALL, ALL_32, FLOATS, INDICES, Shape, Support

from . import Case, Negative, tensor, tensor_of

Strides = Sequence[Sequence[int] | None]


def _tensors(arrays: Sequence[np.ndarray], strides: Strides) -> list[Any]:
    return [tensor_of(each, stride) for each, stride in zip(arrays, strides, strict=True)]


def _gather_case(
    id: str, x: np.ndarray, indices: object, y: object, axis: int, kind: str = "uint32", strides: Strides = (None,) * 3
) -> Case:
    which, output = np.array(indices, kind), np.array(y, x.dtype)
    tensors = _tensors((x, which, output), strides)
    desc = DML_GATHER_ELEMENTS_OPERATOR_DESC(
        InputTensor=tensors[0], IndicesTensor=tensors[1], OutputTensor=tensors[2], Axis=axis
    )
    return Case(f"gather_elements-{id}", desc, [x, which], [output], "gather_elements", (x, which, axis))


def _scatter_case(
    id: str,
    x: np.ndarray,
    indices: object,
    updates: object,
    y: object,
    axis: int,
    kind: str = "uint32",
    strides: Strides = (None,) * 4,
) -> Case:
    which, new, output = np.array(indices, kind), np.array(updates, x.dtype), np.array(y, x.dtype)
    tensors = _tensors((x, which, new, output), strides)
    desc = DML_SCATTER_ELEMENTS_OPERATOR_DESC(
        InputTensor=tensors[0],
        IndicesTensor=tensors[1],
        UpdatesTensor=tensors[2],
        OutputTensor=tensors[3],
        Axis=axis,
    )
    return Case(f"scatter_elements-{id}", desc, [x, which, new], [output], "scatter_elements", (x, which, new, axis))


_SQUARE = np.array([[1, 2, 3], [4, 5, 6], [7, 8, 9]], np.float32)
_CUBE = np.arange(24, dtype=np.int16).reshape(2, 3, 4)
_NANS = np.array([0x7FC01234, 0xFF812345, 0x7F800001], np.uint32).view(np.float32)

GATHERS = [
    _gather_case("page", _SQUARE, [[1, 2, 0], [2, 0, 0]], [[4, 8, 3], [7, 2, 3]], 0),
    *(
        _gather_case(
            f"{dtype.name}-by-{kind}",
            np.array([[1, 2, 3], [4, 5, 6]], dtype),
            [[2, 0], [1, 1]],
            [[3, 1], [5, 5]],
            1,
            kind,
        )
        for dtype in DATA_TYPES
        for kind in ("int64", "int32", "uint64", "uint32")
    ),
    _gather_case("negative", np.array([1, 2, 3], np.uint8), [-1, -3, 2, 0], [3, 1, 3, 1], 0, "int32"),
    _gather_case("nan-payloads", _NANS, [2, 0, 1], _NANS[[2, 0, 1]], 0),
    _gather_case(
        "inner-axis",
        _CUBE,
        [[[1, 0, 2, 2]], [[-1, 0, -3, 1]]],
        [[[4, 1, 10, 11]], [[20, 13, 14, 19]]],
        1,
        "int64",
    ),
    _gather_case("longer-than-the-axis", np.array([[7], [8]], np.int8), [[0, 0, 0], [0, 0, 0]], [[7] * 3, [8] * 3], 1),
    # Transposed elements, indices that are the same along a dimension, and an output with gaps.
    _gather_case(
        "strides",
        _CUBE,
        [[[3, 1]] * 3, [[0, 2]] * 3],
        [[[3, 1], [7, 5], [11, 9]], [[12, 14], [16, 18], [20, 22]]],
        2,
        "int64",
        ((1, 2, 6), (9, 0, 3), (20, 3, 1)),
    ),
    _gather_case(
        "eight-dimensions",
        np.arange(6).reshape((1,) * 6 + (3, 2)),
        np.array([[2, 1], [0, 0]]).reshape((1,) * 6 + (2, 2)),
        np.array([[4, 3], [0, 1]]).reshape((1,) * 6 + (2, 2)),
        6,
    ),
]

_ZEROS = np.zeros((3, 3), np.float32)

SCATTERS = [
    _scatter_case("page-1", np.arange(5, dtype=np.float32), [3, 1, 3, 0], [5, 6, 7, 8], [8, 6, 2, 7, 4], 0),
    # The page calls the input {2, 3}, and shows three rows.
    _scatter_case(
        "page-2",
        _ZEROS,
        [[1, 0, 2], [0, 2, 1]],
        [[10, 11, 12], [20, 21, 22]],
        [[20, 11, 0], [10, 0, 22], [0, 21, 12]],
        0,
    ),
    *(
        _scatter_case(
            f"{dtype.name}-by-{kind}",
            np.array([[1, 2, 3], [4, 5, 6]], dtype),
            [[2, 0], [1, 1]],
            [[7, 8], [9, 10]],
            [[8, 2, 7], [4, 10, 6]],
            1,
            kind,
        )
        for dtype in DATA_TYPES
        for kind in ("int64", "int32", "uint64", "uint32")
    ),
    _scatter_case("negative", np.array([1, 2, 3], np.uint8), [-1, -3, 2], [4, 5, 6], [5, 2, 6], 0, "int32"),
    _scatter_case("nan-payloads", _NANS, [2, 0], _NANS[[0, 1]], _NANS[[1, 1, 0]], 0),
    # Transposed elements, updates that are the same along a dimension, and an output with gaps.
    _scatter_case(
        "strides",
        _CUBE,
        [[[3, 1]] * 3, [[0, -2]] * 3],
        [[[-1, -1]] * 3, [[-2, -2]] * 3],
        [[[0, -1, 2, -1], [4, -1, 6, -1], [8, -1, 10, -1]], [[-2, 13, -2, 15], [-2, 17, -2, 19], [-2, 21, -2, 23]]],
        2,
        "int64",
        ((1, 2, 6), (9, 0, 3), (1, 0, 0), (30, 6, 1)),
    ),
    _scatter_case(
        "eight-dimensions",
        np.arange(6).reshape((1,) * 6 + (3, 2)),
        np.array([[2, 1], [0, 1]]).reshape((1,) * 6 + (2, 2)),
        np.array([[6, 7], [8, 9]]).reshape((1,) * 6 + (2, 2)),
        np.array([[8, 1], [2, 9], [6, 5]]).reshape((1,) * 6 + (3, 2)),
        6,
    ),
]

CASES = [*GATHERS, *SCATTERS]


def _gather(**members: Any) -> DML_GATHER_ELEMENTS_OPERATOR_DESC:
    right = {
        "InputTensor": tensor((3, 4)),
        "IndicesTensor": tensor((3, 2), "INT32"),
        "OutputTensor": tensor((3, 2)),
        "Axis": 1,
    }
    return DML_GATHER_ELEMENTS_OPERATOR_DESC(**{**right, **members})


def _scatter(**members: Any) -> DML_SCATTER_ELEMENTS_OPERATOR_DESC:
    right = {
        "InputTensor": tensor((3, 4)),
        "IndicesTensor": tensor((3, 2), "INT32"),
        "UpdatesTensor": tensor((3, 2)),
        "OutputTensor": tensor((3, 4)),
        "Axis": 1,
    }
    return DML_SCATTER_ELEMENTS_OPERATOR_DESC(**{**right, **members})


NEGATIVES = [
    Negative("(C1)", _gather(OutputTensor=tensor((3, 2), "INT8")), "OutputTensor.DataType", "INT8", "FLOAT32, that of"),
    Negative("(C2)", _gather(IndicesTensor=tensor((2,), "INT32")), "IndicesTensor.DimensionCount", "1", "2, that of"),
    Negative(
        "(C3)",
        _gather(Axis=2, IndicesTensor=tensor((3, 4), "INT32"), OutputTensor=tensor((3, 4))),
        "Axis",
        "2",
        "less than 2",
    ),
    Negative(
        "(C4)",
        _gather(IndicesTensor=tensor((2, 2), "INT32"), OutputTensor=tensor((2, 2))),
        "IndicesTensor.Sizes[0]",
        "2",
        "3, that of Input",
    ),
    Negative("(C5)", _gather(OutputTensor=tensor((3, 4))), "OutputTensor.Sizes[1]", "4", "2"),
    Negative("(C1)", _scatter(UpdatesTensor=tensor((3, 2), "INT8")), "UpdatesTensor.DataType", "INT8", "FLOAT32, that"),
    Negative("(C2)", _scatter(UpdatesTensor=tensor((2,))), "UpdatesTensor.DimensionCount", "1", "2, that of"),
    Negative(
        "(C3)",
        _scatter(Axis=2, IndicesTensor=tensor((3, 4), "INT32"), UpdatesTensor=tensor((3, 4))),
        "Axis",
        "2",
        "less than 2",
    ),
    Negative(
        "(C4)",
        _scatter(IndicesTensor=tensor((2, 2), "INT32"), UpdatesTensor=tensor((2, 2))),
        "IndicesTensor.Sizes[0]",
        "2",
        "3, that of InputTensor",
    ),
    Negative(
        "(C5)", _scatter(UpdatesTensor=tensor((3, 1))), "UpdatesTensor.Sizes", "(3, 1)", "(3, 2), that of Indices"
    ),
    Negative("(C6)", _scatter(OutputTensor=tensor((3, 2))), "OutputTensor.Sizes[1]", "2", "4"),
]


def _others(operator: str, tensor: str, shape: Shape) -> Mapping[str, Shape]:
    """Indices of a type that every level has, or elements of a type that every level has."""
    data = (shape[0], TensorDataType.FLOAT32) if tensor == "IndicesTensor" else shape
    elements = dict.fromkeys(("InputTensor", "UpdatesTensor", "OutputTensor"), data)
    if operator == "GATHER_ELEMENTS":
        del elements["UpdatesTensor"]
    return {**elements, "IndicesTensor": (shape[0], TensorDataType.UINT32), tensor: shape}


_ELEMENTS = [("2.1", 4, 4, ALL_32), ("3.0", 1, 8, ALL_32), ("4.1", 1, 8, ALL)]
_WITH_1_0 = [("1.0", 4, 4, FLOATS), *_ELEMENTS]

RIGHT = [_gather(), _scatter()]
KERNELS = {"GATHER_ELEMENTS": "gather of ", "SCATTER_ELEMENTS": "scatter of "}
SUPPORT = {
    "GATHER_ELEMENTS": Support(
        {
            "InputTensor": _ELEMENTS,
            "IndicesTensor": [("2.1", 4, 4, "UINT32"), ("3.0", 1, 8, INDICES)],
            "OutputTensor": _ELEMENTS,
        },
        members=lambda output: {"Axis": 0},
        others=_others,
    ),
    "SCATTER_ELEMENTS": Support(
        {
            "InputTensor": _WITH_1_0,
            "IndicesTensor": [("1.0", 4, 4, "UINT32"), ("3.0", 1, 8, INDICES)],
            "UpdatesTensor": _WITH_1_0,
            "OutputTensor": _WITH_1_0,
        },
        members=lambda output: {"Axis": 0},
        others=_others,
    ),
}
