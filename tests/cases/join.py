"""JOIN and SPLIT: the pages' examples, every data type, strides."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from anydml import DML_JOIN_OPERATOR_DESC, DML_SPLIT_OPERATOR_DESC, TensorDataType
from anydml.core.strided_layout import DATA_TYPES
from anydml.operators.schema import OperatorDesc
from support_tables import ALL, ALL_32, WORDS_32, Shape, Support, ones

from . import GOOD, Case, Negative, bad, tensor, tensor_of


def _case(
    id: str,
    pieces: Sequence[np.ndarray],
    y: np.ndarray,
    axis: int,
    strides: Sequence[Sequence[int] | None] | None = None,
    out_strides: Sequence[int] | None = None,
) -> Case:
    tensors = [tensor_of(piece, stride) for piece, stride in zip(pieces, strides or [None] * len(pieces), strict=True)]
    desc = DML_JOIN_OPERATOR_DESC(InputTensors=tensors, OutputTensor=tensor_of(y, out_strides), Axis=axis)
    return Case(f"join-{id}", desc, pieces, [y], "join", [pieces], {"axis": axis})


def _f(values: object) -> np.ndarray:
    return np.array(values, np.float32)


_SQUARES = [_f([[[[1, 2], [3, 4]]]]), _f([[[[5, 6], [7, 8]]]]), _f([[[[9, 10], [11, 12]]]])]

PAGES = [
    _case(
        "example-1",
        [_f([[[[1, 2, 3], [4, 5, 6]]]]), _f([[[[7, 8, 9, 10], [11, 12, 13, 14]]]])],
        _f([[[[1, 2, 3, 7, 8, 9, 10], [4, 5, 6, 11, 12, 13, 14]]]]),
        3,
    ),
    _case("example-2-axis-1", _SQUARES, _f([[[[1, 2], [3, 4]], [[5, 6], [7, 8]], [[9, 10], [11, 12]]]]), 1),
    _case("example-2-axis-2", _SQUARES, _f([[[[1, 2], [3, 4], [5, 6], [7, 8], [9, 10], [11, 12]]]]), 2),
    _case("example-2-axis-3", _SQUARES, _f([[[[1, 2, 5, 6, 9, 10], [3, 4, 7, 8, 11, 12]]]]), 3),
]

TYPES = [
    _case(
        dtype.name,
        [np.array([[1, 2], [3, 4]], dtype), np.array([[5], [6]], dtype)],
        np.array([[1, 2, 5], [3, 4, 6]], dtype),
        1,
    )
    for dtype in DATA_TYPES
]

_NANS = np.array([0x7FC01234, 0xFF812345, 0x7F800001, 0x80000000], np.uint32).view(np.float32)
_ROW = np.arange(6, dtype=np.int16)

LAYOUTS = [
    _case("single-input-is-copied", [_ROW.reshape(2, 3)], _ROW.reshape(2, 3), 1),
    _case("nan-payloads", [_NANS[:2], _NANS[2:]], _NANS, 0),
    _case("many-inputs", [np.array([i], np.uint8) for i in range(100)], np.arange(100, dtype=np.uint8), 0),
    _case(
        "many-inputs-inner",
        [np.full((3, 1), i, np.uint8) for i in range(70)],
        np.tile(np.arange(70, dtype=np.uint8), (3, 1)),
        1,
    ),
    _case(
        "strided-and-broadcast",
        [_ROW.reshape(2, 3), np.full((2, 2), 9, np.int16)],
        np.array([[0, 1, 2, 9, 9], [3, 4, 5, 9, 9]], np.int16),
        1,
        [(1, 2), (0, 0)],
    ),
    _case("gapped-output", [_ROW[:2], _ROW[2:]], _ROW, 0, None, (3,)),
    _case(
        "transposed-output", [_ROW.reshape(3, 2), _ROW.reshape(3, 2)], np.tile(_ROW.reshape(3, 2), 2), 1, None, (1, 3)
    ),
    _case(
        "eight-dimensions",
        [_ROW.reshape(1, 2, 1, 3, 1, 1, 1, 1)] * 2,
        np.tile(_ROW.reshape(1, 2, 1, 3, 1, 1, 1, 1), (1, 1, 1, 2, 1, 1, 1, 1)),
        3,
    ),
]


def _split(
    id: str,
    x: np.ndarray,
    pieces: Sequence[object],
    axis: int,
    strides: Sequence[int] | None = None,
    out_strides: Sequence[Sequence[int] | None] | None = None,
) -> Case:
    outputs = [np.array(piece, x.dtype) for piece in pieces]
    tensors = [tensor_of(y, stride) for y, stride in zip(outputs, out_strides or [None] * len(outputs), strict=True)]
    desc = DML_SPLIT_OPERATOR_DESC(InputTensor=tensor_of(x, strides), OutputTensors=tensors, Axis=axis)
    return Case(f"split-{id}", desc, [x], outputs)


_PAIRS = np.arange(1, 13, dtype=np.float32).reshape(1, 1, 6, 2)
_GRID = np.arange(12, dtype=np.int16).reshape(3, 4)

SPLITS = [
    _split("page-1", _PAIRS, [[[[[1, 2], [3, 4]]]], [[[[5, 6]]]], [[[[7, 8], [9, 10], [11, 12]]]]], 2),
    _split("page-2", _PAIRS, [[[[[1], [3], [5], [7], [9], [11]]]], [[[[2], [4], [6], [8], [10], [12]]]]], 3),
    *(_split(dtype.name, np.arange(6).astype(dtype), [[0], [1, 2, 3], [4, 5]], 0) for dtype in DATA_TYPES),
    _split("into-one-is-a-copy", _GRID, [_GRID], 1),
    _split("nan-payloads", _NANS, [_NANS[:1], _NANS[1:]], 0),
    _split("into-many", np.arange(100, dtype=np.uint8), [[i] for i in range(100)], 0),
    _split("transposed-to-gapped", _GRID, [_GRID[:1], _GRID[1:]], 0, (1, 3), [(7, 2), (1, 2)]),
    _split("broadcast", np.full((3, 4), 7, np.int8), [np.full((3, 1), 7), np.full((3, 3), 7)], 1, (0, 0)),
    _split(
        "eight-dimensions",
        _ROW.reshape(1, 2, 1, 3, 1, 1, 1, 1),
        [_ROW[:3].reshape(1, 1, 1, 3, 1, 1, 1, 1), _ROW[3:].reshape(1, 1, 1, 3, 1, 1, 1, 1)],
        1,
    ),
]

CASES = [*PAGES, *TYPES, *LAYOUTS, *SPLITS]


def _cut(**members: Any) -> DML_SPLIT_OPERATOR_DESC:
    right = {"InputTensor": tensor((3, 4)), "OutputTensors": [tensor((3, 1)), tensor((3, 3))], "Axis": 1}
    return DML_SPLIT_OPERATOR_DESC(**{**right, **members})


_OF_SPLIT = [
    Negative("(F1)", _cut(OutputTensors=tensor((3, 4))), "OutputTensors", "DML_BUFFER_TENSOR_DESC", "a list, each a D"),
    Negative("(F1)", _cut(OutputTensors=[tensor((3, 4)), None]), "OutputTensors[1]", "None", "a DML_BUFFER_TENSOR"),
    Negative("(F5)", _cut(OutputCount=3), "OutputTensors", "2 elements", "3, which OutputCount says"),
    Negative("(C1)", _cut(OutputTensors=[]), "OutputCount", "0", "at least 1"),
    Negative(
        "(C2)",
        _cut(OutputTensors=[tensor((3, 1)), tensor((3, 3), "INT8")]),
        "OutputTensors[1].DataType",
        "INT8",
        "FLOAT32, that of InputTensor",
    ),
    Negative(
        "(C3)",
        _cut(InputTensor=tensor((4, 3)), OutputTensors=[tensor((4,))], Axis=0),
        "OutputTensors[0].DimensionCount",
        "1",
        "2, that of InputTensor",
    ),
    Negative("(C4)", _cut(Axis=2), "Axis", "2", "less than 2, the DimensionCount"),
    Negative("(C5)", _cut(OutputTensors=[tensor((3, 1)), tensor((2, 3))]), "OutputTensors[1].Sizes[0]", "2", "3"),
    Negative("(C6)", _cut(OutputTensors=[tensor((3, 1))] * 2), "OutputTensors", "that add up to 2", "4, that of Input"),
]


def join(**members: Any) -> OperatorDesc:
    right = {"InputTensors": [GOOD, GOOD], "OutputTensor": tensor((4, 3)), "Axis": 0}
    return DML_JOIN_OPERATOR_DESC(**{**right, **members})


RIGHT = [join(), _cut()]
NEGATIVES = [
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
    *_OF_SPLIT,
]


def _joined(operator: str, InputTensors: Shape, OutputTensor: Shape) -> OperatorDesc:
    return DML_JOIN_OPERATOR_DESC(InputTensors=[ones(InputTensors)], OutputTensor=ones(OutputTensor), Axis=0)


def _divided(operator: str, InputTensor: Shape, OutputTensors: Shape) -> OperatorDesc:
    return DML_SPLIT_OPERATOR_DESC(InputTensor=ones(InputTensor), OutputTensors=[ones(OutputTensors)], Axis=0)


SUPPORT = {
    "JOIN": Support(
        [
            ("1.0", 4, 4, WORDS_32),
            ("2.1", 4, 4, ALL_32),
            ("3.0", 4, 5, ALL_32),
            ("4.1", 1, 8, ALL),
        ],
        desc=_joined,
    ),
    "SPLIT": Support(
        [
            ("1.0", 4, 4, WORDS_32),
            ("2.1", 4, 4, ALL_32),
            ("3.0", 1, 8, ALL_32),
            ("4.1", 1, 8, ALL),
        ],
        desc=_divided,
    ),
}

KERNELS = {"JOIN": "join ", "SPLIT": "movement "}
