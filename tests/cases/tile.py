"""TILE: the page's example, every data type, strides."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from anydml import DML_TILE_OPERATOR_DESC, TensorDataType
from anydml.core.strided_layout import DATA_TYPES
from support_tables import ALL_32, ALL_BUT_DOUBLE, FLOATS, Support

from . import Case, Negative, tensor, tensor_of


def _case(id: str, x: np.ndarray, y: Any, repeats: Sequence[int], strides: Any = None, out_strides: Any = None) -> Case:
    output = np.array(y, x.dtype)
    desc = DML_TILE_OPERATOR_DESC(
        InputTensor=tensor_of(x, strides), OutputTensor=tensor_of(output, out_strides), Repeats=repeats
    )
    return Case(f"tile-{id}", desc, [x], [output])


_X = np.array([[[[1, 2, 3], [4, 5, 6]]]], np.float32)
_ROWS = [[1, 2, 3] * 3, [4, 5, 6] * 3]
_NANS = np.array([0x7FC01234, 0xFF812345], np.uint32).view(np.float32)

CASES = [
    _case("page", _X, [[_ROWS * 3]], (1, 1, 3, 3)),
    *(
        _case(dtype.name, np.array([1, 2], dtype), [1, 2, 1, 2, 1, 2], (3,))
        for dtype, data_type in DATA_TYPES.items()
        if data_type != TensorDataType.FLOAT64
    ),
    _case("nothing", _X, _X, (1, 1, 1, 1)),
    _case("along-the-first", _X[0, 0], [[1, 2, 3], [4, 5, 6], [1, 2, 3], [4, 5, 6]], (2, 1)),
    _case("nan-payloads", _NANS, _NANS[[0, 1, 0, 1]], (2,)),
    _case("transposed-to-gapped", _X[0, 0], _ROWS, (1, 3), (1, 2), (11, 1)),
    _case("broadcast", np.full((2, 3), 5, np.uint8), np.full((4, 3), 5), (2, 1), (0, 0)),
    _case("eight-dimensions", _X.reshape(1, 2, 1, 1, 3, 1, 1, 1), np.tile(_X.reshape(1, 2, 1, 1, 3, 1, 1, 1),
          (2, 1, 2, 1, 1, 1, 1, 2)), (2, 1, 2, 1, 1, 1, 1, 2)),
]  # fmt: skip


def _tile(**members: Any) -> DML_TILE_OPERATOR_DESC:
    right = {"InputTensor": tensor((2, 3)), "OutputTensor": tensor((4, 3)), "Repeats": (2, 1)}
    return DML_TILE_OPERATOR_DESC(**{**right, **members})


RIGHT = [_tile()]
NEGATIVES = [
    Negative("(C1)", _tile(OutputTensor=tensor((4, 3), "INT8")), "OutputTensor.DataType", "INT8", "FLOAT32, that of"),
    Negative("(C2)", _tile(OutputTensor=tensor((4, 3, 1))), "OutputTensor.DimensionCount", "3", "2, that of Input"),
    Negative("(C3)", _tile(Repeats=(2,)), "RepeatsCount", "1", "2, that of InputTensor"),
    Negative("(C4)", _tile(Repeats=(2, 0)), "Repeats[1]", "0", "at least 1"),
    Negative("(C5)", _tile(Repeats=(3, 1)), "OutputTensor.Sizes[0]", "4", "6"),
]
KERNELS = {"TILE": "movement "}
SUPPORT = {
    "TILE": Support(
        [("1.0", 4, 4, FLOATS), ("2.1", 4, 4, ALL_32), ("3.1", 1, 8, ALL_32), ("4.1", 1, 8, ALL_BUT_DOUBLE)],
        members=lambda output: {"Repeats": (1,) * output[0]},
    ),
}
