"""Convolutions of integers: what is refused, and the support tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from anydml import TensorDataType
from anydml.operators import spec
from anydml.operators.schema import OperatorDesc
from support_tables import BYTES, Shape, Support, one_tap

from . import Negative, tensor
from .integer_convolution import windows_of


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
    return found.desc(**{**{name: right[name] for name in found.tensors}, **windows_of(2, groups=2), **members})


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
        Negative("(C3)", _right(operator, **windows_of(3, groups=2)), "DimensionCount", "3", "2, 2 less than"),
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
