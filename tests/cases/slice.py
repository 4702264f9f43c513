"""SLICE, SLICE1 and SLICE_GRAD: the pages' examples, every data type, strides of both signs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from anydml import DML_SLICE1_OPERATOR_DESC, DML_SLICE_GRAD_OPERATOR_DESC, DML_SLICE_OPERATOR_DESC
from anydml.core.strided_layout import DATA_TYPES
from support_tables import ALL, ALL_32, WORDS_32, Support

from . import Case, Negative, tensor, tensor_of

_SQUARE = np.arange(1, 17, dtype=np.float32).reshape(1, 1, 4, 4)
_NANS = np.array([0x7FC01234, 0, 0xFF812345, 0, 0x7F800001], np.uint32).view(np.float32)


def _case(
    id: str,
    x: np.ndarray,
    y: object,
    options: dict[str, Sequence[int]],
    strides: Sequence[int] | None = None,
    out_strides: Sequence[int] | None = None,
) -> Case:
    output = np.array(y, x.dtype)
    desc = DML_SLICE_OPERATOR_DESC if "Offsets" in options else DML_SLICE1_OPERATOR_DESC
    tensors: dict[str, Any] = {"InputTensor": tensor_of(x, strides), "OutputTensor": tensor_of(output, out_strides)}
    return Case(id, desc(**tensors, **options), [x], [output])


def _part(offsets: Sequence[int], sizes: Sequence[int], strides: Sequence[int]) -> dict[str, Sequence[int]]:
    return {"Offsets": offsets, "Sizes": sizes, "Strides": strides}


def _window(offsets: Sequence[int], sizes: Sequence[int], strides: Sequence[int]) -> dict[str, Sequence[int]]:
    return {"InputWindowOffsets": offsets, "InputWindowSizes": sizes, "InputWindowStrides": strides}


PAGES = [
    _case("slice-page-1", _SQUARE, [[[[7, 8], [11, 12], [15, 16]]]], _part((0, 0, 1, 2), (1, 1, 3, 2), (1, 1, 1, 1))),
    _case("slice-page-2", _SQUARE, [[[[5, 8], [13, 16]]]], _part((0, 0, 1, 0), (1, 1, 2, 2), (1, 1, 2, 3))),
    _case("slice1-page-1", _SQUARE, [[[[2, 4], [10, 12]]]], _window((0, 0, 0, 1), (1, 1, 4, 3), (1, 1, 2, 2))),
    _case("slice1-page-2", _SQUARE, [[[[14, 16], [6, 8]]]], _window((0, 0, 0, 1), (1, 1, 4, 3), (1, 1, -2, 2))),
]

_ROW = np.arange(6)

TYPES = [
    case
    for dtype in DATA_TYPES
    for case in (
        _case(f"slice-{dtype.name}", _ROW.astype(dtype), [1, 3], _part((1,), (2,), (2,))),
        _case(f"slice1-{dtype.name}", _ROW.astype(dtype), [5, 3, 1], _window((0,), (6,), (-2,))),
    )
]

_TABLE = np.arange(12, dtype=np.int16).reshape(3, 4)
_EIGHT = np.arange(24, dtype=np.uint8).reshape(1, 2, 1, 3, 1, 2, 1, 2)

LAYOUTS = [
    _case("slice-all", _TABLE, _TABLE, _part((0, 0), (3, 4), (1, 1))),
    _case("slice-one-element", _TABLE, [[11]], _part((2, 3), (1, 1), (2**32 - 1, 7))),
    _case("slice-nan-payloads", _NANS, _NANS[::2], _part((0,), (3,), (2,))),
    _case("slice-transposed-to-gapped", _TABLE, [[1, 3], [5, 7]], _part((0, 1), (2, 2), (1, 2)), (1, 3), (9, 2)),
    _case("slice-broadcast", np.full((3, 4), 7, np.int8), [[7, 7]], _part((2, 0), (1, 2), (1, 3)), (0, 0)),
    _case("slice1-backward", _TABLE, _TABLE[::-1, ::-1], _window((0, 0), (3, 4), (-1, -1))),
    _case("slice1-fewer-than-fit", _TABLE, [[10], [6]], _window((0, 1), (3, 2), (-1, -1))),
    _case("slice1-stride-beyond-the-window", _TABLE, [[5]], _window((1, 1), (1, 3), (-(2**31), 2**31 - 1))),
    _case("slice1-transposed-to-gapped", _TABLE, [[9, 8], [1, 0]], _window((0, 0), (3, 2), (-2, -1)), (1, 3), (2, 5)),
    _case(
        "slice1-eight-dimensions",
        _EIGHT,
        _EIGHT[:, ::-1, :, ::2, :, 1:, :, ::-1],
        _window((0, 0, 0, 0, 0, 1, 0, 0), (1, 2, 1, 3, 1, 1, 1, 2), (1, -1, 1, 2, -5, 1, 1, -1)),
    ),
]


def _grad(
    id: str,
    x: np.ndarray,
    y: object,
    options: dict[str, Sequence[int]],
    strides: Sequence[int] | None = None,
    out_strides: Sequence[int] | None = None,
) -> Case:
    output = np.array(y, x.dtype)
    tensors = {
        "InputGradientTensor": tensor_of(x, strides),
        "OutputGradientTensor": tensor_of(output, out_strides),
    }
    return Case(f"slice_grad-{id}", DML_SLICE_GRAD_OPERATOR_DESC(**tensors, **options), [x], [output])


_SMALL = np.array([[1, 2, 3], [4, 5, 6]], np.int16)
_BACK = [[0, 0, 0, 0, 0, 0, 0], [6, 0, 5, 0, 4, 0, 0], [3, 0, 2, 0, 1, 0, 0], [0, 0, 0, 0, 0, 0, 0]]
_EVERY_3 = np.arange(1, 1001, dtype=np.uint8)
_ALL_3 = np.zeros((1000, 3), np.uint8)
_ALL_3[:, 0] = _EVERY_3


GRADIENTS = [
    _grad("page", np.array([[1, 3], [9, 11]], np.float32), [[1, 0, 3, 0], [0] * 4, [9, 0, 11, 0], [0] * 4],
          _window((0, 0), (4, 4), (2, 2))),
    *(
        _grad(dtype.name, np.array([1, 2], dtype), [0, 2, 0, 0, 1, 0], _window((1,), (4,), (-3,)))
        for dtype in DATA_TYPES
    ),
    _grad("all", _SMALL, _SMALL, _window((0, 0), (2, 3), (1, 1))),
    _grad("all-backward", _SMALL, _SMALL[::-1, ::-1], _window((0, 0), (2, 3), (-1, -1))),
    _grad("rows-in-the-middle", _SMALL, [[0] * 3, [1, 2, 3], [4, 5, 6], [0] * 3], _window((1, 0), (2, 3), (1, 1))),
    _grad("every-other-column-backward", _SMALL, _BACK, _window((1, 0), (2, 5), (-1, -2))),
    _grad("fewer-than-fit", _SMALL[:1, :1], [[0, 0, 0], [0, 0, 1]], _window((1, 0), (1, 3), (5, -1))),
    _grad("one-element", np.array([9], np.int8), [0, 0, 9], _window((0,), (3,), (-(2**31),))),
    _grad("every-third-of-many", _EVERY_3, _ALL_3.ravel(), _window((0,), (3000,), (3,))),
    _grad("every-third-of-many-rows", np.stack([_EVERY_3] * 2, 1), np.stack([_ALL_3.ravel()] * 2, 1),
          _window((0, 0), (3000, 2), (3, 1))),
    _grad("nan-payloads", _NANS[::2], _NANS,
          _window((0,), (5,), (2,))),
    _grad("transposed-to-gapped", _SMALL, _BACK, _window((1, 0), (2, 5), (-1, -2)), (1, 2), (50, 3)),
    _grad("broadcast", np.full((2, 2), 7, np.uint8), [[7, 0, 7], [7, 0, 7]], _window((0, 0), (2, 3), (1, 2)), (0, 0)),
    _grad("eight-dimensions", _SMALL.reshape(1, 2, 1, 1, 3, 1, 1, 1), np.reshape(_BACK, (1, 4, 1, 1, 7, 1, 1, 1)),
          _window((0, 1, 0, 0, 0, 0, 0, 0), (1, 2, 1, 1, 5, 1, 1, 1), (1, -1, 1, 1, -2, 1, 1, 1))),
]  # fmt: skip

CASES = [*PAGES, *TYPES, *LAYOUTS, *GRADIENTS]


def _slice(**members: Any) -> DML_SLICE_OPERATOR_DESC:
    right = {"InputTensor": tensor((3, 4)), "OutputTensor": tensor((2, 2)), **_part((1, 0), (2, 2), (1, 3))}
    return DML_SLICE_OPERATOR_DESC(**{**right, **members})


def _slice1(**members: Any) -> DML_SLICE1_OPERATOR_DESC:
    right = {"InputTensor": tensor((3, 4)), "OutputTensor": tensor((2, 2)), **_window((1, 0), (2, 4), (-1, 3))}
    return DML_SLICE1_OPERATOR_DESC(**{**right, **members})


def _slice_grad(**members: Any) -> DML_SLICE_GRAD_OPERATOR_DESC:
    right = {
        "InputGradientTensor": tensor((2, 2)),
        "OutputGradientTensor": tensor((3, 4)),
        **_window((1, 0), (2, 4), (-1, 3)),
    }
    return DML_SLICE_GRAD_OPERATOR_DESC(**{**right, **members})


_GRADIENT = "OutputGradientTensor"
OF_GRADIENTS = [
    Negative("(C1)", _slice_grad(**{_GRADIENT: tensor((3, 4), "INT8")}), f"{_GRADIENT}.DataType", "INT8", "FLOAT32"),
    Negative("(C2)", _slice_grad(**{_GRADIENT: tensor((3, 4, 1))}), f"{_GRADIENT}.DimensionCount", "3", "2, that"),
    Negative("(C3)", _slice_grad(**_window((1,), (2,), (1,))), "DimensionCount", "1", "2, that of InputGradientTensor"),
    Negative("(C4)", _slice_grad(InputWindowSizes=(2, 0)), "InputWindowSizes[1]", "0", "at least 1"),
    Negative("(C5)", _slice_grad(InputWindowOffsets=(2, 0)), "InputWindowOffsets[0]", "an end of 4", f"of {_GRADIENT}"),
    Negative("(C6)", _slice_grad(InputWindowStrides=(0, 1)), "InputWindowStrides[0]", "0", "not 0"),
    Negative("(C7)", _slice_grad(InputWindowStrides=(-2, 3)), "InputGradientTensor.Sizes[0]", "2", "at most 1, which"),
]

NEGATIVES = [
    *OF_GRADIENTS,
    *(
        negative
        for operator in (_slice, _slice1)
        for negative in (
            Negative(
                "(C1)", operator(OutputTensor=tensor((2, 2), "INT8")), "OutputTensor.DataType", "INT8", "FLOAT32, that"
            ),
            Negative(
                "(C2)", operator(OutputTensor=tensor((2, 2, 1))), "OutputTensor.DimensionCount", "3", "2, that of"
            ),
        )
    ),
    Negative("(C3)", _slice(**_part((1,), (2,), (1,))), "DimensionCount", "1", "2, that of InputTensor"),
    Negative("(C4)", _slice(Strides=(1, 0)), "Strides[1]", "0", "at least 1"),
    Negative("(C4)", _slice(Sizes=(0, 2)), "Sizes[0]", "0", "at least 1"),
    Negative("(C5)", _slice(Offsets=(2, 0)), "Offsets[0]", "Sizes[0] 2 and Strides[0] 1 a last element 3", "below 3"),
    Negative("(C5)", _slice(Strides=(1, 4)), "Offsets[1]", "0, with Sizes[1] 2 and Strides[1] 4", "below 4, the size"),
    Negative("(C6)", _slice(OutputTensor=tensor((2, 1))), "OutputTensor.Sizes[1]", "1", "2"),
    Negative("(F2)", _slice1(InputWindowStrides=(1, 2**31)), "InputWindowStrides[1]", "2147483648", "from -2^31 to"),
    Negative("(F2)", _slice1(InputWindowStrides=(-(2**31) - 1, 1)), "InputWindowStrides[0]", "-21474", "from -2^31"),
    Negative("(F2)", _slice1(InputWindowStrides=(True, 1)), "InputWindowStrides[0]", "bool True", "an integer"),
    Negative("(F2)", _slice1(InputWindowStrides=-1), "InputWindowStrides", "int -1", "a list, each an integer"),
    Negative("(F2)", _slice1(InputWindowOffsets=(-1, 0)), "InputWindowOffsets[0]", "int -1", "an integer from 0"),
    Negative("(C3)", _slice1(**_window((1,), (2,), (1,))), "DimensionCount", "1", "2, that of InputTensor"),
    Negative("(C4)", _slice1(InputWindowSizes=(2, 0)), "InputWindowSizes[1]", "0", "at least 1"),
    Negative("(C5)", _slice1(InputWindowOffsets=(2, 0)), "InputWindowOffsets[0]", "an end of 4", "an end of at most 3"),
    Negative("(C6)", _slice1(InputWindowStrides=(0, 1)), "InputWindowStrides[0]", "0", "not 0"),
    Negative("(C7)", _slice1(InputWindowStrides=(-2, 3)), "OutputTensor.Sizes[0]", "2", "at most 1, which the window"),
]

RIGHT = [_slice(), _slice1(), _slice_grad()]
KERNELS = {"SLICE": "movement ", "SLICE1": "movement ", "SLICE_GRAD": "movement "}
SUPPORT = {
    "SLICE": Support(
        [
            ("1.0", 4, 5, WORDS_32),
            ("2.1", 4, 5, ALL_32),
            ("3.0", 1, 8, ALL_32),
            ("4.1", 1, 8, ALL),
        ],
        members=lambda output: {"Offsets": (0,) * output[0], "Sizes": (1,) * output[0], "Strides": (1,) * output[0]},
    ),
    "SLICE1": Support(
        [
            ("2.1", 4, 5, ALL_32),
            ("3.0", 1, 8, ALL_32),
            ("4.1", 1, 8, ALL),
        ],
        members=lambda output: {
            "InputWindowOffsets": (0,) * output[0],
            "InputWindowSizes": (1,) * output[0],
            "InputWindowStrides": (1,) * output[0],
        },
    ),
    "SLICE_GRAD": Support(
        [
            ("3.0", 4, 5, ALL_32),
            ("3.1", 1, 8, ALL_32),
            ("4.1", 1, 8, ALL),
        ],
        members=lambda output: {
            "InputWindowOffsets": (0,) * output[0],
            "InputWindowSizes": (1,) * output[0],
            "InputWindowStrides": (1,) * output[0],
        },
    ),
}
