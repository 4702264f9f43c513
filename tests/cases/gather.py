"""GATHER: the page's examples, every data type and type of indices, negative indices, axes and dimensions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from anydml import DML_GATHER_OPERATOR_DESC, TensorDataType
from anydml.core.strided_layout import DATA_TYPES
from support_tables import ALL, ALL_32, FLOATS, INDICES, Shape, Support

from . import Case, Negative, tensor, tensor_of


def _case(
    id: str,
    x: np.ndarray,
    indices: object,
    y: object,
    axis: int,
    dimensions: int,
    kind: Any = np.uint32,
    strides: Sequence[Sequence[int] | None] = (None, None, None),
) -> Case:
    which, output = np.array(indices, kind), np.array(y, x.dtype)
    tensors = [tensor_of(each, stride) for each, stride in zip((x, which, output), strides, strict=True)]
    desc = DML_GATHER_OPERATOR_DESC(
        InputTensor=tensors[0], IndicesTensor=tensors[1], OutputTensor=tensors[2], Axis=axis, IndexDimensions=dimensions
    )
    return Case(f"gather-{id}", desc, [x, which], [output])


def _f(values: object) -> np.ndarray:
    return np.array(values, np.float32)


_PAIRS = _f([[1, 2], [3, 4], [5, 6]])

PAGES = [
    _case("page-1", _f([11, 12, 13, 14]), [3, 1, 3, 0, 2], [14, 12, 14, 11, 13], 0, 1),
    _case("page-2", _PAIRS, [[0, 1, 1, 2]], [[1, 2], [3, 4], [3, 4], [5, 6]], 0, 1),
    _case("page-3", _PAIRS, [[1, 0]], [[2, 1], [4, 3], [6, 5]], 1, 2),
    _case("page-4", _f([[[1, 2, 3], [4, 5, 6], [7, 8, 9]]]), [[[0, 2]]], [[[1, 3]], [[4, 6]], [[7, 9]]], 2, 2),
    _case("page-5", _PAIRS[None], [[[0, 1], [1, 2]]], [[[1, 2], [3, 4]], [[3, 4], [5, 6]]], 1, 2),
]

TYPES = [
    _case(f"{dtype.name}-by-{kind}", np.array([[1, 2, 3], [4, 5, 6]], dtype), [[2, 0]], [[3, 1], [6, 4]], 1, 1, kind)
    for dtype in DATA_TYPES
    for kind in ("int64", "int32", "uint64", "uint32")
]

_NANS = np.array([0x7FC01234, 0xFF812345, 0x7F800001], np.uint32).view(np.float32)
_CUBE = np.arange(24, dtype=np.int16).reshape(2, 3, 4)

OTHERS = [
    _case("negative", np.array([1, 2, 3], np.uint8), [-1, -3, 2, 0], [3, 1, 3, 1], 0, 1, np.int32),
    _case("nan-payloads", _NANS, [2, 0, 1], _NANS[[2, 0, 1]], 0, 1),
    # 0 index dimensions: an element of the axis, which is there no more.
    _case("one-index-of-no-dimension", _CUBE, [[[1]]], _CUBE[:, 1][None], 1, 0),
    _case("one-element", np.array([[7]], np.int8), [[0]], [[7]], 1, 2),
    _case(
        "one-index-is-shared", _CUBE, np.full((1, 1, 5), 2), _CUBE[:, [2] * 5], 1, 1, strides=(None, (0, 0, 0), None)
    ),
    _case(
        "transposed-to-gapped",
        _CUBE,
        [[[3, 1]]],
        _CUBE[:, :, [3, 1]],
        2,
        1,
        np.int64,
        ((1, 2, 6), (9, 9, 3), (20, 3, 1)),
    ),
    # Both the input's leading 1s and the indices' leave room for dimensions.
    _case("1s-of-both", _CUBE[:1, :2], [[[1, 3]]], [[[1, 3]], [[5, 7]]], 2, 3),
    _case(
        "eight-dimensions",
        np.arange(6).reshape((1,) * 6 + (3, 2)),
        np.array([2, 1, 0]).reshape((1,) * 6 + (1, 3)),
        np.array([[4, 5], [2, 3], [0, 1]]).reshape((1,) * 6 + (3, 2)),
        6,
        2,
    ),
]

CASES = [*PAGES, *TYPES, *OTHERS]


def _gather(**members: Any) -> DML_GATHER_OPERATOR_DESC:
    right = {
        "InputTensor": tensor((3, 4)),
        "IndicesTensor": tensor((1, 2), "INT32"),
        "OutputTensor": tensor((3, 2)),
        "Axis": 1,
        "IndexDimensions": 1,
    }
    return DML_GATHER_OPERATOR_DESC(**{**right, **members})


NEGATIVES = [
    Negative("(C1)", _gather(OutputTensor=tensor((3, 2), "INT8")), "OutputTensor.DataType", "INT8", "FLOAT32, that of"),
    Negative("(C2)", _gather(OutputTensor=tensor((1, 3, 2))), "OutputTensor.DimensionCount", "3", "2, that of Input"),
    Negative("(C2)", _gather(IndicesTensor=tensor((2,), "INT32")), "IndicesTensor.DimensionCount", "1", "2, that of"),
    Negative("(C3)", _gather(Axis=2), "Axis", "2", "less than 2, the DimensionCount"),
    Negative("(C4)", _gather(IndexDimensions=3), "IndexDimensions", "3", "at most 2, the DimensionCount"),
    Negative("(C5)", _gather(IndicesTensor=tensor((2, 2), "INT32")), "IndicesTensor.Sizes[0]", "2", "1, before the"),
    Negative(
        "(C6)",
        _gather(IndicesTensor=tensor((5, 2), "INT32"), IndexDimensions=2),
        "IndexDimensions",
        "2, and so a result of sizes (3, 5, 2)",
        "a result of at most 2 dimensions",
    ),
    Negative("(C7)", _gather(OutputTensor=tensor((3, 3))), "OutputTensor.Sizes[1]", "3", "2"),
    Negative(
        "(C7)",
        _gather(IndexDimensions=0, IndicesTensor=tensor((1, 1), "INT32"), OutputTensor=tensor((3, 3))),
        "OutputTensor.Sizes[0]",
        "3",
        "1",
    ),
]


def _others(operator: str, tensor: str, shape: Shape) -> Mapping[str, Shape]:
    """Indices of a type that every level has, or of what is gathered a type that every level has."""
    data = (shape[0], TensorDataType.FLOAT32) if tensor == "IndicesTensor" else shape
    indices = (shape[0], TensorDataType.UINT32)
    return {"InputTensor": data, "IndicesTensor": indices, "OutputTensor": data, tensor: shape}


RIGHT = [_gather()]
KERNELS = {"GATHER": "gather of "}
SUPPORT = {
    "GATHER": Support(
        {
            "InputTensor": [
                ("1.0", 4, 4, FLOATS),
                ("2.1", 4, 4, ALL_32),
                ("3.0", 1, 8, ALL_32),
                ("4.1", 1, 8, ALL),
            ],
            "IndicesTensor": [("1.0", 4, 4, "UINT32"), ("3.0", 1, 8, INDICES)],
            "OutputTensor": [
                ("1.0", 4, 4, FLOATS),
                ("2.1", 4, 4, ALL_32),
                ("3.0", 1, 8, ALL_32),
                ("4.1", 1, 8, ALL),
            ],
        },
        members=lambda output: {"Axis": 0, "IndexDimensions": 1},
        others=_others,
    ),
}
