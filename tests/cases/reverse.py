"""REVERSE_SUBSEQUENCES: the page's examples, every data type, every axis, lengths that the axis does not have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from anydml import DML_REVERSE_SUBSEQUENCES_OPERATOR_DESC, TensorDataType
from anydml.core.strided_layout import DATA_TYPES
from support_tables import ALL, ALL_32, Shape, Support

from . import Case, Negative, tensor, tensor_of


def _case(
    id: str,
    x: np.ndarray,
    lengths: Any,
    y: Any,
    axis: int,
    strides: Sequence[int] | None = None,
    out_strides: Sequence[int] | None = None,
    of_lengths: Sequence[int] | None = None,
    kind: Any = np.uint32,
) -> Case:
    output, each = np.array(y, x.dtype), np.array(lengths, kind)
    desc = DML_REVERSE_SUBSEQUENCES_OPERATOR_DESC(
        InputTensor=tensor_of(x, strides),
        SequenceLengthsTensor=tensor_of(each, of_lengths),
        OutputTensor=tensor_of(output, out_strides),
        Axis=axis,
    )
    return Case(f"reverse_subsequences-{id}", desc, [x, each], [output])


_PAGE = np.arange(1, 13, dtype=np.float32).reshape(1, 1, 3, 4)
_SMALL = np.arange(1, 7).reshape(2, 3)
_ROWS = [[2, 1, 3, 4], [8, 7, 6, 5], [11, 10, 9, 12]]
_COLUMNS = [[5, 10, 3, 4], [1, 6, 7, 8], [9, 2, 11, 12]]
_TABLE = _PAGE[0, 0].astype(np.int16)
_NANS = np.array([0x7FC01234, 0xFF812345, 0x7F800001], np.uint32).view(np.float32)
_LONG = np.arange(1, 301, dtype=np.uint8)
_BLOCKS = np.arange(24, dtype=np.int64).reshape(2, 3, 4)

CASES = [
    _case("page-1", _PAGE, [[[[2], [4], [3]]]], [[_ROWS]], 3),
    _case("page-2", _PAGE, [[[[2, 3, 1, 0]]]], [[_COLUMNS]], 2),
    *(
        _case(f"{dtype.name}-{kind.__name__}", _SMALL.astype(dtype), [[3], [2]], [[3, 2, 1], [5, 4, 6]], 1, kind=kind)
        for dtype in DATA_TYPES
        for kind in (np.uint32, np.uint64)
    ),
    _case("nothing", _TABLE, [[0], [1], [0]], _TABLE, 1),
    _case("everything", _TABLE, [[4], [4], [4]], _TABLE[:, ::-1], 1),
    _case("beyond-the-axis", _TABLE, [[5], [2**32 - 1], [2**31]], _TABLE[:, ::-1], 1),
    _case("far-beyond-the-axis", _TABLE, [[2**64 - 1], [2**32], [2**63]], _TABLE[:, ::-1], 1, kind=np.uint64),
    _case("beyond-the-axis-of-columns", _TABLE, [[9, 3, 2**32 - 1, 4]], _TABLE[::-1], 0),
    _case("axis-of-1", _TABLE[:1], [[1, 0, 1, 7]], _TABLE[:1], 0),
    _case("nan-payloads", _NANS, [2], _NANS[[1, 0, 2]], 0),
    _case("long", _LONG, [299], np.append(_LONG[298::-1], _LONG[299:]), 0),
    _case(
        "blocks",
        _BLOCKS,
        [[[3, 2, 1, 0]], [[0, 1, 2, 9]]],
        [[[8, 5, 2, 3], [4, 1, 6, 7], [0, 9, 10, 11]], [[12, 13, 18, 23], [16, 17, 14, 19], [20, 21, 22, 15]]],
        1,
    ),
    _case("transposed-to-gapped", _TABLE, [[2], [4], [3]], _ROWS, 1, (1, 3), (11, 2), (5, 1)),
    _case("broadcast-lengths", _TABLE, [[3]] * 3, [[3, 2, 1, 4], [7, 6, 5, 8], [11, 10, 9, 12]], 1, None, None, (0, 0)),
    _case("broadcast", np.full((3, 4), 7, np.int8), [[3], [0], [9]], np.full((3, 4), 7), 1, (0, 0)),
    _case(
        "eight-dimensions",
        _BLOCKS.reshape(2, 1, 3, 1, 1, 4, 1, 1),
        np.array([3, 2, 1, 0, 0, 1, 2, 9]).reshape(2, 1, 1, 1, 1, 4, 1, 1),
        np.array([8, 5, 2, 3, 4, 1, 6, 7, 0, 9, 10, 11, 12, 13, 18, 23, 16, 17, 14, 19, 20, 21, 22, 15]).reshape(
            2, 1, 3, 1, 1, 4, 1, 1
        ),
        2,
    ),
]  # fmt: skip


def _reverse(**members: Any) -> DML_REVERSE_SUBSEQUENCES_OPERATOR_DESC:
    right = {
        "InputTensor": tensor((2, 3)),
        "SequenceLengthsTensor": tensor((2, 1), "UINT32"),
        "OutputTensor": tensor((2, 3)),
        "Axis": 1,
    }
    return DML_REVERSE_SUBSEQUENCES_OPERATOR_DESC(**{**right, **members})


_LENGTHS = "SequenceLengthsTensor"
NEGATIVES = [
    Negative(
        "(C1)", _reverse(OutputTensor=tensor((2, 3), "INT8")), "OutputTensor.DataType", "INT8", "FLOAT32, that of"
    ),
    Negative("(C2)", _reverse(OutputTensor=tensor((2, 3, 1))), "OutputTensor.DimensionCount", "3", "2, that of Input"),
    Negative(
        "(C2)",
        _reverse(SequenceLengthsTensor=tensor((2, 1, 1), "UINT32")),
        f"{_LENGTHS}.DimensionCount",
        "3",
        "2, that of InputTensor",
    ),
    Negative("(C3)", _reverse(Axis=2), "Axis", "2", "less than 2, the DimensionCount"),
    Negative(
        "(C4)",
        _reverse(SequenceLengthsTensor=tensor((2, 3), "UINT32")),
        f"{_LENGTHS}.Sizes[1]",
        "3",
        "1, along Axis",
    ),
    Negative(
        "(C4)",
        _reverse(SequenceLengthsTensor=tensor((1, 1), "UINT32")),
        f"{_LENGTHS}.Sizes[0]",
        "1",
        "2, that of InputTensor",
    ),
    Negative("(C5)", _reverse(OutputTensor=tensor((2, 4))), "OutputTensor.Sizes[1]", "4", "3"),
]


def _others(operator: str, tensor: str, shape: Shape) -> Mapping[str, Shape]:
    data = (shape[0], TensorDataType.FLOAT32) if tensor == _LENGTHS else shape
    lengths = (shape[0], TensorDataType.UINT32)
    return {"InputTensor": data, _LENGTHS: lengths, "OutputTensor": data, tensor: shape}


_DATA = [("2.1", 4, 4, ALL_32), ("3.0", 4, 5, ALL_32), ("4.0", 1, 8, ALL_32), ("5.0", 1, 8, ALL)]
RIGHT = [_reverse()]
KERNELS = {"REVERSE_SUBSEQUENCES": "subsequences of "}
SUPPORT = {
    "REVERSE_SUBSEQUENCES": Support(
        {
            "InputTensor": _DATA,
            _LENGTHS: [
                ("2.1", 4, 4, "UINT32"),
                ("3.0", 4, 5, "UINT32"),
                ("4.0", 1, 8, "UINT32"),
                ("5.0", 1, 8, "UINT64 UINT32"),
            ],
            "OutputTensor": _DATA,
        },
        members=lambda output: {"Axis": 0},
        others=_others,
    ),
}
