"""JOIN: the page's examples, every data type, strides."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from anydml import DML_JOIN_OPERATOR_DESC
from anydml.layout import DATA_TYPES

from . import Case, tensor_of


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

CASES = [*PAGES, *TYPES, *LAYOUTS]
