"""UNFOLD: the page's examples, every data type, windows that are padded, dilated and of 1 to 6 dimensions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from anydml import DML_UNFOLD_OPERATOR_DESC
from anydml.core.strided_layout import DATA_TYPES
from anydml.operators.schema import OperatorDesc
from support_tables import ALL, Shape, Support, ones

from . import Case, Negative, tensor, tensor_of

_NOTHING = {"Strides": 1, "Dilations": 1, "StartPadding": 0, "EndPadding": 0}


def _case(
    id: str,
    x: np.ndarray,
    y: Any,
    windows: Sequence[int],
    strides: Sequence[int] | None = None,
    out_strides: Sequence[int] | None = None,
    **options: Sequence[int],
) -> Case:
    output = np.array(y, x.dtype)
    each = {name: (number,) * len(windows) for name, number in _NOTHING.items()} | options
    tensors = {"InputTensor": tensor_of(x, strides), "OutputTensor": tensor_of(output, out_strides)}
    return Case(f"unfold-{id}", DML_UNFOLD_OPERATOR_DESC(**tensors, WindowSizes=windows, **each), [x], [output])


_PAGE = np.arange(25, dtype=np.float32).reshape(1, 1, 5, 5)
_COLUMNS = [
    [0, 1, 2, 5, 6, 7, 10, 11, 12],
    [1, 2, 3, 6, 7, 8, 11, 12, 13],
    [2, 3, 4, 7, 8, 9, 12, 13, 14],
    [5, 6, 7, 10, 11, 12, 15, 16, 17],
    [6, 7, 8, 11, 12, 13, 16, 17, 18],
    [7, 8, 9, 12, 13, 14, 17, 18, 19],
    [10, 11, 12, 15, 16, 17, 20, 21, 22],
    [11, 12, 13, 16, 17, 18, 21, 22, 23],
    [12, 13, 14, 17, 18, 19, 22, 23, 24],
]
_ABOVE, _BELOW = [0, 0, 0], [[15, 16, 17], [16, 17, 18], [17, 18, 19]]
_PADDED = [
    [*_ABOVE, *_COLUMNS[0], *_BELOW[0]],
    [*_ABOVE, *_COLUMNS[1], *_BELOW[1]],
    [*_ABOVE, *_COLUMNS[2], *_BELOW[2]],
    [*_COLUMNS[0], *_BELOW[0], 20, 21, 22],
    [*_COLUMNS[1], *_BELOW[1], 21, 22, 23],
    [*_COLUMNS[2], *_BELOW[2], 22, 23, 24],
    [*_COLUMNS[3], 20, 21, 22, 0, 0, 0],
    [*_COLUMNS[4], 21, 22, 23, 0, 0, 0],
    [*_COLUMNS[5], 22, 23, 24, 0, 0, 0],
]


def _drawn(id: str, sizes: Sequence[int], windows: Sequence[int], **options: Sequence[int]) -> Case:
    """Elements that are their own numbers, from 1 on, each looked up by the place that the page says it has."""
    each = {name: (number,) * len(windows) for name, number in _NOTHING.items()} | options
    x = np.arange(1, prod(sizes) + 1).astype(np.int32).reshape(sizes)
    ends = zip(sizes[2:], windows, *each.values(), strict=True)
    blocks = [
        (size + start + end - dilation * (taps - 1) - 1) // stride + 1
        for size, taps, stride, dilation, start, end in ends
    ]
    y = np.zeros((sizes[0], sizes[1], *windows, *blocks), np.int32)
    for place in np.ndindex(*y.shape):
        batch, channel, *rest = place
        steps = zip(rest[: len(windows)], rest[len(windows) :], *each.values(), strict=True)
        at = [block * stride + tap * dilation - start for tap, block, stride, dilation, start, _ in steps]
        if all(0 <= i < size for i, size in zip(at, sizes[2:], strict=True)):
            y[place] = x[(batch, channel, *at)]
    return _case(id, x, y.reshape(sizes[0], sizes[1] * prod(windows), prod(blocks)), windows, **options)  # fmt: skip


_NANS = np.array([[[0x7FC01234, 0xFF812345, 0x7F800001]]], np.uint32).view(np.float32)

CASES = [
    _case("page-1", _PAGE, [_COLUMNS], (3, 3)),
    _case("page-2", _PAGE, [_PADDED], (3, 3), StartPadding=(1, 0), EndPadding=(1, 0)),
    *(
        _case(dtype.name, np.array([[[1, 2, 3]]], dtype), [[[0, 1, 2], [1, 2, 3]]], (2,), StartPadding=(1,))
        for dtype in DATA_TYPES
    ),
    _case("nan-payloads", _NANS, [_NANS[0, 0, [[0, 1], [1, 2]]]], (2,)),
    _case("window-of-1", _PAGE[0], _PAGE[0], (1,)),
    _case("all-padding", np.array([[[7]]], np.int8), [[[0, 0, 7], [0, 7, 0], [7, 0, 0]]], (3,),
          StartPadding=(2,), EndPadding=(2,)),
    _case("nothing-but-padding", np.array([[[7]]], np.int8), [[[0, 0]]], (1,),
          Strides=(4,), StartPadding=(2,), EndPadding=(2,)),
    _case("transposed-to-gapped", _PAGE[0, :, :2, :3].reshape(1, 2, 3), [[[0, 1], [1, 2], [5, 6], [6, 7]]], (2,),
          (6, 1, 2), (50, 11, 3)),
    _case("broadcast", np.full((1, 2, 4), 5, np.uint8), [[[5, 5], [5, 0], [5, 5], [5, 0]]], (2,), (0, 0, 0),
          Strides=(3,), EndPadding=(1,)),
    _drawn("channels", (2, 3, 4, 5), (2, 3)),
    _drawn("strides-and-padding", (2, 3, 5, 6), (3, 2), Strides=(2, 3), StartPadding=(2, 1), EndPadding=(1, 2)),
    _drawn("dilated", (1, 2, 5, 7), (2, 3), Dilations=(3, 2), StartPadding=(0, 3), EndPadding=(2, 0)),
    _drawn("long-padding", (1, 1, 2), (4,), StartPadding=(9,), EndPadding=(5,), Strides=(3,), Dilations=(2,)),
    _drawn("long-window", (1, 1, 40), (30,), StartPadding=(20,), EndPadding=(20,), Strides=(7,)),
    _drawn("three-dimensions", (1, 2, 3, 3, 4), (2, 2, 2), StartPadding=(1, 0, 1), EndPadding=(0, 0, 1)),
    _drawn("six-dimensions", (1, 1, 2, 2, 2, 2, 2, 2), (2, 1, 2, 1, 2, 1), StartPadding=(0, 0, 1, 0, 0, 0)),
]  # fmt: skip


def _unfold(**members: Any) -> DML_UNFOLD_OPERATOR_DESC:
    right = {
        "InputTensor": tensor((2, 3, 4, 5)),
        "OutputTensor": tensor((2, 18, 6)),
        "WindowSizes": (2, 3),
        **{name: (number,) * 2 for name, number in _NOTHING.items()},
        "Strides": (1, 2),
    }
    return DML_UNFOLD_OPERATOR_DESC(**{**right, **members})


_ONE = {name: (number,) for name, number in _NOTHING.items()}
NEGATIVES = [
    Negative(
        "(C1)", _unfold(OutputTensor=tensor((2, 18, 6), "INT8")), "OutputTensor.DataType", "INT8", "FLOAT32, that"
    ),
    Negative(
        "(C2)",
        _unfold(WindowSizes=(2,), **_ONE),
        "DimensionCount",
        "1",
        "2, 2 less than the DimensionCount of InputTensor",
    ),
    Negative("(C3)", _unfold(WindowSizes=(2, 0)), "WindowSizes[1]", "0", "at least 1"),
    Negative("(C3)", _unfold(Strides=(0, 2)), "Strides[0]", "0", "at least 1"),
    Negative("(C3)", _unfold(Dilations=(1, 0)), "Dilations[1]", "0", "at least 1"),
    Negative(
        "(C4)",
        _unfold(Dilations=(1, 3)),
        "WindowSizes[1]",
        "3, with a dilation of 3 an extent of 7",
        "an extent of at most 5, the padded size",
    ),
    Negative("(C5)", _unfold(OutputTensor=tensor((2, 18, 5))), "OutputTensor.Sizes[2]", "5", "6"),
    Negative("(C5)", _unfold(OutputTensor=tensor((2, 6, 6))), "OutputTensor.Sizes[1]", "6", "18"),
]


def _of_shapes(operator: str, **tensors: Shape) -> OperatorDesc:
    spatial = max(tensors["InputTensor"][0] - 2, 0)
    each = {name: (number,) * spatial for name, number in {"WindowSizes": 1, **_NOTHING}.items()}
    return DML_UNFOLD_OPERATOR_DESC(**{name: ones(shape) for name, shape in tensors.items()}, **each)


def _others(operator: str, tensor: str, shape: Shape) -> Mapping[str, Shape]:
    return {"InputTensor": (4, shape[1]), "OutputTensor": (3, shape[1]), tensor: shape}


RIGHT = [_unfold()]
KERNELS = {"UNFOLD": "movement |rows of windows of "}
SUPPORT = {
    "UNFOLD": Support(
        {"InputTensor": [("6.4", 3, 8, ALL)], "OutputTensor": [("6.4", 3, 3, ALL)]}, desc=_of_shapes, others=_others
    ),
}
