"""Products of matrices of integers: what is refused, and the support tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from anydml import TensorDataType
from anydml.operators import spec
from anydml.operators.schema import OperatorDesc
from support_tables import BYTES, FLOATS, Shape, Support

from . import Negative, tensor
from .integer_gemm import INTEGERS


def _right(operator: str, **members: Any) -> OperatorDesc:
    """{2, 3, 4} by {2, 4, 5}."""
    one, rows, columns = (1, 1, 1), (1, 3, 1), (1, 1, 5)
    right = {
        "ATensor": tensor((2, 3, 4), "UINT8"),
        "AScaleTensor": tensor(rows),
        "AZeroPointTensor": tensor(rows, "UINT8"),
        "BTensor": tensor((2, 4, 5), "INT8"),
        "BScaleTensor": tensor(one),
        "BZeroPointTensor": tensor(columns, "INT8"),
        "OutputScaleTensor": tensor(one),
        "OutputZeroPointTensor": tensor(one, "UINT8"),
        "BiasTensor": tensor((2, 3, 5)),
        "OutputTensor": tensor((2, 3, 5), _OUTPUTS[operator]),
    }
    found = spec(operator)
    return found.desc(**{**{name: right[name] for name in found.tensors}, **members})


_OUTPUTS = {
    "MATRIX_MULTIPLY_INTEGER": "INT32",
    "QUANTIZED_LINEAR_MATRIX_MULTIPLY": "UINT8",
    "MATRIX_MULTIPLY_INTEGER_TO_FLOAT": "FLOAT32",
}
_INTEGER, _QUANTISED, _REAL = _OUTPUTS


def _negatives(operator: str) -> list[Negative]:
    output = _OUTPUTS[operator]
    return [
        Negative(
            "(C1)",
            _right(operator, BTensor=tensor((4, 5), "INT8")),
            "BTensor.DimensionCount",
            "2",
            "3, that of ATensor",
        ),
        Negative(
            "(C1)",
            _right(operator, OutputTensor=tensor((3, 5), output)),
            "OutputTensor.DimensionCount",
            "2",
            "3, that of ATensor",
        ),
        Negative(
            "(C2)",
            _right(operator, AZeroPointTensor=tensor((1, 1, 1), "INT8")),
            "AZeroPointTensor.DataType",
            "INT8",
            "UINT8, that of ATensor",
        ),
        Negative(
            "(C2)",
            _right(operator, BZeroPointTensor=tensor((1, 1, 1), "UINT8")),
            "BZeroPointTensor.DataType",
            "UINT8",
            "INT8, that of BTensor",
        ),
        Negative(
            "(C3)", _right(operator, BTensor=tensor((1, 4, 5), "INT8")), "BTensor.Sizes[0]", "1", "2, that of ATensor"
        ),
        Negative(
            "(C4)",
            _right(operator, BTensor=tensor((2, 3, 5), "INT8")),
            "BTensor.Sizes[1]",
            "3",
            "4, that of ATensor.Sizes[2]",
        ),
        Negative(
            "(C5)",
            _right(operator, AZeroPointTensor=tensor((1, 1, 3), "UINT8")),
            "AZeroPointTensor.Sizes",
            "(1, 1, 3)",
            "(1, 1, 1), or (1, 3, 1)",
        ),
        Negative(
            "(C5)",
            _right(operator, BZeroPointTensor=tensor((1, 5, 1), "INT8")),
            "BZeroPointTensor.Sizes",
            "(1, 5, 1)",
            "(1, 1, 1), or (1, 1, 5)",
        ),
        Negative(
            "(C5)",
            _right(operator, BZeroPointTensor=tensor((2, 1, 1), "INT8")),
            "BZeroPointTensor.Sizes",
            "(2, 1, 1)",
            "(1, 1, 1)",
        ),
        Negative(
            "(C6)",
            _right(operator, OutputTensor=tensor((2, 3, 4), output), **_bias(operator)),
            "OutputTensor.Sizes[2]",
            "4",
            "5",
        ),
        Negative(
            "(C6)",
            _right(operator, OutputTensor=tensor((1, 3, 5), output), **_bias(operator)),
            "OutputTensor.Sizes[0]",
            "1",
            "2",
        ),
    ]


def _bias(operator: str) -> dict[str, None]:
    return {"BiasTensor": None} if operator == _REAL else {}


NEGATIVES = [
    *(negative for operator in _OUTPUTS for negative in _negatives(operator)),
    Negative(
        "(C2)",
        _right(_QUANTISED, OutputZeroPointTensor=tensor((1, 1, 1), "INT8")),
        "OutputZeroPointTensor.DataType",
        "INT8",
        "UINT8, that of OutputTensor",
    ),
    Negative(
        "(C5)",
        _right(_QUANTISED, OutputScaleTensor=tensor((1, 1, 5))),
        "OutputScaleTensor.Sizes",
        "(1, 1, 5)",
        "(1, 3, 1)",
    ),
    *(
        Negative(
            "(C7)",
            _right(operator, BScaleTensor=tensor((1,))),
            "BScaleTensor.DimensionCount",
            "1",
            "3, that of AScaleTensor",
        )
        for operator in (_QUANTISED, _REAL)
    ),
    Negative("(C1)", _right(_REAL, BiasTensor=tensor((3, 5))), "BiasTensor.DimensionCount", "2", "3, that of ATensor"),
    Negative(
        "(C8)",
        _right(_REAL, BScaleTensor=tensor((1, 1, 1), "FLOAT16")),
        "BScaleTensor.DataType",
        "FLOAT16",
        "FLOAT32, that of AScaleTensor",
    ),
    Negative(
        "(C8)", _right(_REAL, BiasTensor=tensor((2, 3, 5), "FLOAT16")), "BiasTensor.DataType", "FLOAT16", "FLOAT32"
    ),
    Negative(
        "(C8)", _right(_REAL, OutputTensor=tensor((2, 3, 5), "FLOAT16")), "OutputTensor.DataType", "FLOAT16", "FLOAT32"
    ),
    Negative(
        "(C9)",
        _right(_REAL, BiasTensor=tensor((1, 3, 5))),
        "BiasTensor.Sizes",
        "(1, 3, 5)",
        "(2, 3, 5), that of Output",
    ),
]

RIGHT = [
    *(_right(operator) for operator in _OUTPUTS),
    _right(_INTEGER, AZeroPointTensor=None, BZeroPointTensor=None),
    _right(_QUANTISED, AZeroPointTensor=None, BZeroPointTensor=None, OutputZeroPointTensor=None),
    _right(_REAL, AZeroPointTensor=None, BZeroPointTensor=None, BiasTensor=None),
]


def _others(operator: str, name: str, shape: Shape) -> Mapping[str, Shape]:
    """Matrices have one DimensionCount, and scales and zero points another; zero points have the type of what they are
    for, floats are of one type."""
    count, data_type = shape
    kinds = {"Scale": TensorDataType.FLOAT32, "Bias": TensorDataType.FLOAT32}
    others = {}
    is_parameter = "Scale" in name or "ZeroPoint" in name
    is_real = name in ("AScaleTensor", "BScaleTensor", "BiasTensor") or (name, operator) == ("OutputTensor", _REAL)
    for each in spec(operator).tensors:
        of_parameter = "Scale" in each or "ZeroPoint" in each
        kind = next((found for word, found in kinds.items() if word in each), TensorDataType.INT8)
        if each == "OutputTensor":
            kind = TensorDataType[{**_OUTPUTS, _QUANTISED: "INT8"}[operator]]
        if operator == _REAL and is_real and kind == TensorDataType.FLOAT32:
            kind = data_type
        same_count = of_parameter == is_parameter and (operator != _INTEGER or not is_parameter)
        others[each] = (count if same_count else 4, kind)
    of = name.removesuffix("Tensor").removesuffix("ZeroPoint")
    if not is_real and "Scale" not in name and f"{of}ZeroPointTensor" in others:
        for each in (f"{of}Tensor", f"{of}ZeroPointTensor"):
            others[each] = (others[each][0], data_type)
    return {**others, name: shape}


def _rows(counts: tuple[int, int], types: str, more: str = "4.0") -> list[tuple[str, int, int, str]]:
    return [("2.1", 4, 4, types), (more, *counts, types)]


SUPPORT = {
    _INTEGER: Support(
        {
            "ATensor": _rows((2, 4), BYTES),
            "AZeroPointTensor": _rows((1, 4), BYTES),
            "BTensor": _rows((2, 4), BYTES),
            "BZeroPointTensor": [*_rows((2, 4), BYTES), ("5.2", 1, 4, BYTES)],
            "OutputTensor": _rows((2, 4), "INT32"),
        },
        others=_others,
    ),
    _QUANTISED: Support(
        {
            name: _rows(
                (1, 4) if "Scale" in name or "Zero" in name else (2, 4), "FLOAT32" if "Scale" in name else BYTES
            )
            for name in spec(_QUANTISED).tensors
        },
        others=_others,
    ),
    _REAL: Support(
        {
            name: [
                (
                    "6.2",
                    1 if "Scale" in name or "Zero" in name else 2,
                    4,
                    FLOATS if "Scale" in name or name in ("BiasTensor", "OutputTensor") else INTEGERS,
                )
            ]
            for name in spec(_REAL).tensors
        },
        others=_others,
    ),
}
KERNELS = dict.fromkeys(_OUTPUTS, "product of matrices of u?int[0-9]+ by u?int[0-9]+, sums of ")
