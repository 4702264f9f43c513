"""Convolutions of integers: padding, zero points, scales, groups, dilation. Numbers are worked by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from anydml import DML_CONVOLUTION_INTEGER_OPERATOR_DESC, DML_QUANTIZED_LINEAR_CONVOLUTION_OPERATOR_DESC, TensorDataType
from anydml.operators import spec
from anydml.operators.schema import OperatorDesc
from support_tables import BYTES, Shape, Support, one_tap

from . import Case, Negative, tensor, tensor_of

INT8, UINT8, FLOAT32 = np.int8, np.uint8, np.float32


def _windows(
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
    desc = DML_CONVOLUTION_INTEGER_OPERATOR_DESC(**tensors, **_windows(x.ndim - 2, **windows))
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
    desc = DML_QUANTIZED_LINEAR_CONVOLUTION_OPERATOR_DESC(**tensors, **_windows(x.ndim - 2, **windows))
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


def _right(operator: str, **members: Any) -> OperatorDesc:
    """A filter of 3 by 3, in 2 groups, over {1, 4, 5, 6}."""
    one, channels = (1, 1, 1, 1), (1, 6, 1, 1)
    right = {
        "InputTensor": tensor((1, 4, 5, 6), "UINT8"),
        "InputScaleTensor": tensor(one),
        "InputZeroPointTensor": tensor(one, "UINT8"),
        "FilterTensor": tensor((6, 2, 3, 3), "INT8"),
        "FilterScaleTensor": tensor(channels),
        "FilterZeroPointTensor": tensor(channels, "INT8"),
        "BiasTensor": tensor(channels, "INT32"),
        "OutputScaleTensor": tensor(one),
        "OutputZeroPointTensor": tensor(one, "UINT8"),
        "OutputTensor": tensor((1, 6, 3, 4), _OUTPUTS[operator]),
    }
    found = spec(operator)
    return found.desc(**{**{name: right[name] for name in found.tensors}, **_windows(2, groups=2), **members})


_OUTPUTS = {"CONVOLUTION_INTEGER": "INT32", "QUANTIZED_LINEAR_CONVOLUTION": "UINT8"}
_PLAIN, _SCALED = _OUTPUTS


def _negatives(operator: str) -> list[Negative]:
    output = _OUTPUTS[operator]
    others = {"BiasTensor": None, "FilterScaleTensor": tensor((1,) * 4)} if operator == _SCALED else {}
    return [
        Negative(
            "(C2)",
            _right(operator, InputZeroPointTensor=tensor((1,) * 4, "INT8")),
            "InputZeroPointTensor.DataType",
            "INT8",
            "UINT8, that of InputTensor",
        ),
        Negative(
            "(C2)",
            _right(operator, FilterZeroPointTensor=tensor((1,) * 4, "UINT8")),
            "FilterZeroPointTensor.DataType",
            "UINT8",
            "INT8, that of FilterTensor",
        ),
        Negative("(C3)", _right(operator, **_windows(3, groups=2)), "DimensionCount", "3", "2, 2 less than"),
        Negative("(C4)", _right(operator, Strides=(1, 0)), "Strides[1]", "0", "at least 1"),
        Negative("(C4)", _right(operator, Dilations=(0, 1)), "Dilations[0]", "0", "at least 1"),
        Negative("(C4)", _right(operator, GroupCount=0), "GroupCount", "0", "at least 1"),
        Negative(
            "(C5)", _right(operator, GroupCount=3), "GroupCount", "3", "a divisor of 4, the channels of InputTensor"
        ),
        Negative(
            "(C5)",
            _right(
                operator,
                FilterTensor=tensor((5, 2, 3, 3), "INT8"),
                FilterZeroPointTensor=None,
                OutputTensor=tensor((1, 5, 3, 4), output),
                **others,
            ),
            "GroupCount",
            "2",
            "a divisor of 5, the channels of OutputTensor",
        ),
        Negative(
            "(C6)",
            _right(operator, FilterTensor=tensor((6, 4, 3, 3), "INT8")),
            "FilterTensor.Sizes[1]",
            "4",
            "2, the channels of a group of InputTensor",
        ),
        Negative(
            "(C7)",
            _right(operator, InputZeroPointTensor=tensor((1, 4, 1, 1), "UINT8")),
            "InputZeroPointTensor.Sizes",
            "(1, 4, 1, 1)",
            "(1, 1, 1, 1)",
        ),
        Negative(
            "(C7)",
            _right(operator, FilterZeroPointTensor=tensor((6, 1, 1, 1), "INT8")),
            "FilterZeroPointTensor.Sizes",
            "(6, 1, 1, 1)",
            "(1, 1, 1, 1), or (1, 6, 1, 1)",
        ),
        Negative(
            "(C8)",
            _right(operator, FilterTensor=tensor((6, 2, 6, 3), "INT8")),
            "FilterTensor.Sizes[2]",
            "6",
            "at most 5, the padded size",
        ),
        Negative("(C8)", _right(operator, Dilations=(1, 3)), "FilterTensor.Sizes[3]", "an extent of 7", "at most 6"),
        Negative(
            "(C9)", _right(operator, OutputTensor=tensor((1, 6, 4, 4), output)), "OutputTensor.Sizes[2]", "4", "3"
        ),
        Negative(
            "(C9)", _right(operator, OutputTensor=tensor((1, 4, 3, 4), output)), "OutputTensor.Sizes[1]", "4", "6"
        ),
    ]


NEGATIVES = [
    *(negative for operator in _OUTPUTS for negative in _negatives(operator)),
    Negative(
        "(C1)",
        _right(_PLAIN, FilterTensor=tensor((6, 2, 3), "INT8")),
        "FilterTensor.DimensionCount",
        "3",
        "4, that of InputTensor",
    ),
    Negative(
        "(C10)",
        _right(_PLAIN, InputZeroPointTensor=tensor((1,), "UINT8")),
        "FilterZeroPointTensor.DimensionCount",
        "4",
        "1, that of InputZeroPointTensor",
    ),
    Negative(
        "(C1)",
        _right(_SCALED, BiasTensor=tensor((1, 1, 1, 1), "INT32")),
        "BiasTensor.Sizes",
        "(1, 1, 1, 1)",
        "(1, 6, 1, 1)",
    ),
    Negative(
        "(C7)",
        _right(_SCALED, OutputScaleTensor=tensor((1, 6, 1, 1))),
        "OutputScaleTensor.Sizes",
        "(1, 6, 1, 1)",
        "(1, 1, 1, 1)",
    ),
    Negative(
        "(C2)",
        _right(_SCALED, OutputZeroPointTensor=tensor((1,) * 4, "INT8")),
        "OutputZeroPointTensor.DataType",
        "INT8",
        "UINT8, that of OutputTensor",
    ),
]

RIGHT = [
    *(_right(operator) for operator in _OUTPUTS),
    _right(_PLAIN, InputZeroPointTensor=None, FilterZeroPointTensor=None),
    _right(_SCALED, InputZeroPointTensor=None, FilterZeroPointTensor=None, BiasTensor=None, OutputZeroPointTensor=None),
]


def _others(operator: str, name: str, shape: Shape) -> Mapping[str, Shape]:
    """Zero points have the type of what they are for, and all tensors but scales and zero points one DimensionCount."""
    count, data_type = shape
    others = {}
    for each in spec(operator).tensors:
        kind = "FLOAT32" if "Scale" in each else "INT8"
        kind = "INT32" if each == "BiasTensor" or (each, operator) == ("OutputTensor", _PLAIN) else kind
        is_parameter = "Scale" in each or "ZeroPoint" in each
        others[each] = (count if is_parameter == ("Scale" in name or "ZeroPoint" in name) else 4, TensorDataType[kind])
    of = name.removesuffix("Tensor").removesuffix("ZeroPoint")
    if f"{of}ZeroPointTensor" in others:
        for each in (f"{of}Tensor", f"{of}ZeroPointTensor"):
            others[each] = (others[each][0], data_type)
    return {**others, name: shape}


SUPPORT = {
    _PLAIN: Support(
        {
            "InputTensor": [("2.1", 4, 4, BYTES), ("4.0", 3, 4, BYTES)],
            "InputZeroPointTensor": [("2.1", 4, 4, BYTES), ("4.0", 1, 4, BYTES)],
            "FilterTensor": [("2.1", 4, 4, BYTES), ("4.0", 3, 4, BYTES)],
            "FilterZeroPointTensor": [("2.1", 4, 4, BYTES), ("4.0", 1, 4, BYTES)],
            "OutputTensor": [("2.1", 4, 4, "INT32"), ("4.0", 3, 4, "INT32")],
        },
        desc=one_tap,
        others=_others,
    ),
    _SCALED: Support(
        {
            name: [("2.1", 4, 4, "FLOAT32" if "Scale" in name else "INT32" if name == "BiasTensor" else BYTES)]
            for name in spec(_SCALED).tensors
        },
        desc=one_tap,
        others=_others,
    ),
}
KERNELS = dict.fromkeys(_OUTPUTS, "convolution of u?int8 by u?int8, sums of 32 bits")
