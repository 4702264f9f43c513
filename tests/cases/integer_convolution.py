"""Convolutions of integers: padding, zero points, scales, groups, dilation. Numbers are worked by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from anydml import DML_CONVOLUTION_INTEGER_OPERATOR_DESC, DML_QUANTIZED_LINEAR_CONVOLUTION_OPERATOR_DESC

from . import Case, tensor_of

INT8, UINT8, FLOAT32 = np.int8, np.uint8, np.float32


def windows_of(
    spatial: int,
    strides: Sequence[int] | None = None,
    dilations: Sequence[int] | None = None,
    start: Sequence[int] | None = None,
    end: Sequence[int] | None = None,
    groups: int = 1,
) -> dict[str, Any]:
    ones, zeros = [1] * spatial, [0] * spatial
    return {
        "Strides": strides or ones,
        "Dilations": dilations or ones,
        "StartPadding": start or zeros,
        "EndPadding": end or zeros,
        "GroupCount": groups,
    }


def _parameter(value: Any, dtype: Any, rank: int) -> np.ndarray | None:
    """One for all, one for each channel, or whatever it is."""
    if value is None or np.ndim(value) > 1:
        return None if value is None else np.array(value, dtype)
    return np.array(value, dtype).reshape(1, -1, *(1,) * (rank - 2))


def _integer(
    id: str,
    x: Any,
    w: Any,
    y: Any,
    x_zero: Any = None,
    w_zero: Any = None,
    *,
    types: tuple[Any, Any] = (UINT8, INT8),
    layouts: Mapping[str, Sequence[int]] | None = None,
    **windows: Any,
) -> Case:
    """`layouts` are the strides of tensors by their names."""
    x, w, y = np.array(x, types[0]), np.array(w, types[1]), np.array(y, np.int32)
    arrays = {
        "InputTensor": x,
        "InputZeroPointTensor": _parameter(x_zero, x.dtype, x.ndim),
        "FilterTensor": w,
        "FilterZeroPointTensor": _parameter(w_zero, w.dtype, x.ndim),
        "OutputTensor": y,
    }
    tensors = {name: None if z is None else tensor_of(z, (layouts or {}).get(name)) for name, z in arrays.items()}
    desc = DML_CONVOLUTION_INTEGER_OPERATOR_DESC(**tensors, **windows_of(x.ndim - 2, **windows))
    *inputs, output = arrays.values()
    return Case(f"integer-convolution-{id}", desc, inputs, [output])


def _quantised(
    id: str,
    x: Any,
    w: Any,
    y: Any,
    scales: Sequence[Any],
    bias: Sequence[int] | None = None,
    *,
    zeros: Sequence[Any] = (None, None, None),
    types: tuple[Any, Any, Any] = (UINT8, INT8, UINT8),
    layouts: Mapping[str, Sequence[int]] | None = None,
    **windows: Any,
) -> Case:
    x, w, y = (np.array(each, kind) for each, kind in zip((x, w, y), types, strict=True))
    real = [_parameter(scale, FLOAT32, x.ndim) for scale in scales]
    zero = [_parameter(value, each.dtype, x.ndim) for value, each in zip(zeros, (x, w, y), strict=True)]
    arrays = {
        "InputTensor": x,
        "InputScaleTensor": real[0],
        "InputZeroPointTensor": zero[0],
        "FilterTensor": w,
        "FilterScaleTensor": real[1],
        "FilterZeroPointTensor": zero[1],
        "BiasTensor": _parameter(bias, np.int32, x.ndim),
        "OutputScaleTensor": real[2],
        "OutputZeroPointTensor": zero[2],
        "OutputTensor": y,
    }
    tensors = {name: None if z is None else tensor_of(z, (layouts or {}).get(name)) for name, z in arrays.items()}
    desc = DML_QUANTIZED_LINEAR_CONVOLUTION_OPERATOR_DESC(**tensors, **windows_of(x.ndim - 2, **windows))
    *inputs, output = arrays.values()
    return Case(f"quantized-convolution-{id}", desc, inputs, [output])


_SQUARE = [[[[1, 2, 3], [4, 5, 6], [7, 8, 9]]]]
_ONES = [[[[1, 1], [1, 1]]]]
_SUMS = [[[[12, 16], [24, 28]]]]
_ROW = [[[[1, 2, 3, 4, 5]]]]
_STEPS = [[[[1, 10]]]]

_INTEGERS = [
    *(
        _integer(f"{left.__name__}-{right.__name__}", _SQUARE, _ONES, _SUMS, types=(left, right))
        for left in (INT8, UINT8)
        for right in (INT8, UINT8)
    ),
    # ONNX's examples
    _integer("onnx", [[[[2, 3, 4], [5, 6, 7], [8, 9, 10]]]], _ONES, _SUMS, 1, types=(UINT8, UINT8)),
    _integer(
        "onnx-padding",
        [[[[2, 3, 4], [5, 6, 7], [8, 9, 10]]]],
        _ONES,
        [[[[1, 3, 5, 3], [5, 12, 16, 9], [11, 24, 28, 15], [7, 15, 17, 9]]]],
        1,
        types=(UINT8, UINT8),
        start=[1, 1],
        end=[1, 1],
    ),
    _integer("ends", [[[[0, 255]]]], [[[[127, -128]]]], [[[[-32640]]]]),
    _integer("farthest", [[[[0, 0]]]], [[[[-128, -128]]]], [[[[130050]]]], 255, 127),
    # Padding is the zero point, not 0: (1 - 3) * 10 first, (5 - 3) * 1 last
    _integer("padding", _ROW, _STEPS, [[[[-20, -12, -1, 10, 21, 2]]]], 3, start=[0, 1], end=[0, 1]),
    _integer("padding-before", _ROW, _STEPS, [[[[0, 10, 21, 32, 43, 54]]]], start=[0, 2]),
    _integer("padding-alone", [[[[6]]]], [[[[2]]]], [[[[0, 12, 0, 0]]]], start=[0, 1], end=[0, 2]),
    _integer("stride", _ROW, _STEPS, [[[[21, 43]]]], strides=[1, 2]),
    _integer("stride-beyond", _ROW, [[[[3]]]], [[[[3]]]], strides=[1, 7]),
    _integer("dilation", _ROW, _STEPS, [[[[31, 42, 53]]]], dilations=[1, 2]),
    _integer(
        "dilation-and-padding",
        _ROW,
        _STEPS,
        [[[[20, 42, 4]]]],
        dilations=[1, 2],
        start=[0, 1],
        end=[0, 1],
        strides=[1, 2],
    ),
    _integer("window-in-padding", [[[[100]]]], np.ones((1, 1, 1, 101)), [[[[100]]]], start=[0, 50], end=[0, 50]),
    _integer("huge-dilation", [[[[100, 50]]]], [[[[3, 7]]]], [[[[300, 150]]]], end=[0, 2**31], dilations=[1, 2**31]),
    _integer("three-dimensions", [[[1, 2, 3, 4]]], [[[1, 10]]], [[[21, 32, 43]]]),
    _integer("three-dimensions-per-channel", [[[1, 2, 3]]], [[[1]], [[2]]], [[[0, 0, 0], [3, 6, 9]]], None, [1, -1]),
    _integer(
        "three-dimensions-as-the-page-has-it",
        [[[1, 2, 3]]],
        [[[1]], [[2]]],
        [[[0, 0, 0], [3, 6, 9]]],
        [[[[0]]]],
        [[[[1]], [[-1]]]],
    ),
    _integer("zero-point-of-one-dimension", _SQUARE, _ONES, _SUMS, [[0]], [[0]]),
    # Channels of 1 and 2, by filters of 1, 10 and of 100, -1
    _integer(
        "channels",
        [[[[1, 2]], [[3, 4]]]],
        [[[[1]], [[10]]], [[[100]], [[-1]]]],
        [[[[31, 42]], [[97, 196]]]],
    ),
    _integer("groups", [[[[1, 2]], [[3, 4]]]], [[[[10]]], [[[100]]]], [[[[10, 20]], [[300, 400]]]], groups=2),
    _integer(
        "groups-per-channel",
        [[[[1, 2]], [[3, 4]]]],
        [[[[1]]], [[[2]]], [[[3]]], [[[4]]]],
        [[[[0, 0]], [[1, 2]], [[9, 12]], [[15, 20]]]],
        None,
        [1, 1, 0, -1],
        groups=2,
    ),
    # 3 x 3 with padding around, each channel by its own filter
    _integer(
        "depthwise",
        np.concatenate([_SQUARE, np.array(_SQUARE)[..., ::-1]], 1),
        [[[[0, 0, 0], [0, 1, 0], [0, 0, 0]]], [[[1, 1, 1], [1, 1, 1], [1, 1, 1]]]],
        [[[[1, 2, 3], [4, 5, 6], [7, 8, 9]], [[16, 21, 12], [33, 45, 27], [28, 39, 24]]]],
        start=[1, 1],
        end=[1, 1],
        groups=2,
    ),
    _integer("batch", [[[[1, 2, 3]]], [[[4, 5, 6]]]], _STEPS, [[[[21, 32]]], [[[54, 65]]]]),
    _integer(
        "strided",
        _SQUARE,
        [[[[1, 0], [0, 10]]]],
        [[[[51, 62], [84, 95]]]],
        layouts={"InputTensor": (9, 9, 1, 3), "FilterTensor": (8, 8, 1, 4), "OutputTensor": (30, 30, 2, 7)},
    ),
    _integer(
        "broadcast",
        np.full((1, 3, 2, 2), 5),
        np.full((2, 3, 2, 2), 3),
        np.full((1, 2, 1, 1), 180),
        layouts={"InputTensor": (0,) * 4, "FilterTensor": (0,) * 4},
    ),
    # 70,000 * 65,025, less 2^32
    _integer(
        "wraps",
        np.broadcast_to(UINT8(255), (1, 70000, 1, 1)),
        np.broadcast_to(UINT8(255), (1, 70000, 1, 1)),
        [[[[256782704]]]],
        types=(UINT8, UINT8),
        layouts={"InputTensor": (0,) * 4, "FilterTensor": (0,) * 4},
    ),
]

_QUANTISED = [
    *(
        _quantised(
            f"{left.__name__}-{right.__name__}-{kind.__name__}",
            _SQUARE,
            _ONES,
            [[[[13, 15], [19, 21]]]],
            (0.5, 1, 1),
            zeros=(None, None, 7),
            types=(left, right, kind),
        )
        for left in (INT8, UINT8)
        for right in (INT8, UINT8)
        for kind in (INT8, UINT8)
    ),
    # The first row of ONNX's example
    _quantised(
        "onnx",
        [[[[255, 174, 162, 25, 203, 168, 58]]]],
        [[[[0]]]],
        [[[[0, 81, 93, 230, 52, 87, 197]]]],
        (0.00369204697, 0.00172794575, 0.00162681262),
        zeros=(132, 255, 123),
        types=(UINT8, UINT8, UINT8),
    ),
    _quantised("bias", _ROW, _STEPS, [[[[16, 22, 27, 32]]]], (0.5, 1, 1), [11]),
    # 2^31 - 1 and sums of 1 and more: exact, and not wrapped
    _quantised("largest-bias", _ROW, _STEPS, [[[[255] * 4]]], (1, 1, 1), [2**31 - 1]),
    _quantised("least-bias", _ROW, _STEPS, [[[[-128] * 4]]], (1, 1, 1), [-(2**31)], types=(UINT8, INT8, INT8)),
    # 2^31 - 1 + 1 + 40 by 2^-26 is 32 and 41 * 2^-26
    _quantised("long-sum", [[[[1]]]], [[[[41]]]], [[[[32]]]], (2.0**-13, 2.0**-13, 1), [2**31 - 1]),
    # Halves to the even integer, and then the zero point
    _quantised("ties", _ROW, [[[[1]]]], [[[[1, 2, 3, 3, 3]]]], (1, 1, 2), zeros=(None, None, 1)),
    _quantised("next-to-a-tie", [[[[1]]]], [[[[1]]]], [[[[3]]]], (0.1, 0.5, 0.02)),
    _quantised("saturates", [[[[200, 0]]]], [[[[2]]], [[[-2]]]], [[[[255, 0]], [[0, 0]]]], (1, 1, 1)),
    _quantised(
        "per-channel",
        [[[[1, 2]]]],
        [[[[3]]], [[[5]]]],
        [[[[1, 2]], [[12, 22]]]],
        (1, [0.5, 2], 1),
        [0, 1],
        zeros=(0, [1, 0], 0),
    ),
    _quantised(
        "padding", _ROW, _STEPS, [[[[0, 8, 19, 30, 41, 22]]]], (1, 1, 1), zeros=(3, None, 20), start=[0, 1], end=[0, 1]
    ),
    _quantised("scale-of-0", _ROW, [[[[1]]]], [[[[255] * 5]]], (1, 1, 0)),
    _quantised("groups", [[[[1, 2]], [[3, 4]]]], [[[[10]]], [[[20]]]], [[[[10, 20]], [[60, 80]]]], (1, 1, 1), groups=2),
    _quantised("stride-and-dilation", _ROW, _STEPS, [[[[31, 53]]]], (1, 1, 1), strides=[1, 2], dilations=[1, 2]),
    _quantised(
        "strided",
        _SQUARE,
        [[[[1, 0], [0, 10]]]],
        [[[[51, 62], [84, 95]]]],
        (1, 1, 1),
        layouts={"InputTensor": (9, 9, 1, 3), "FilterTensor": (8, 8, 1, 4), "OutputTensor": (30, 30, 2, 7)},
    ),
]
CASES = [*_INTEGERS, *_QUANTISED]
