"""Limits to an interval and their gradients: every type, ends that are crossed, between integers or beyond a type."""

from __future__ import annotations

from typing import Any

import numpy as np

from anydml import DML_SCALE_BIAS, TensorDataType
from anydml.core.strided_layout import DATA_TYPES
from anydml.operators import OPERATORS
from anydml.operators.schema import OperatorDesc
from support_tables import ALL_32, ALL_BUT_DOUBLE, FLOATS, Rows, Shape, Support

from . import Case, Negative, alike, bad, negatives_of_alike, pointwise

INF, NAN = np.inf, np.nan


def _case(id: str, operator: str, x: np.ndarray, y: Any, **options: Any) -> Case:
    return pointwise(id, f"ELEMENT_WISE_{operator}", [x], y, **options)


def _gradients(id: str, x: np.ndarray, gradient: Any, y: Any, strides: Any = None, **ends: Any) -> list[Case]:
    """Of CLIP_GRAD, and of CLIP_GRAD1, where the ends are integers or floats alike."""
    inputs = [x, np.array(gradient, x.dtype)]
    return [
        pointwise(id, "ELEMENT_WISE_CLIP_GRAD", inputs, y, strides, **ends),
        pointwise(id, "ELEMENT_WISE_CLIP_GRAD1", inputs, y, strides, **ends, MinMaxDataType=DATA_TYPES[x.dtype]),
    ]


def _floats() -> list[Case]:
    cases = []
    for dtype in (np.float32, np.float16):
        kind = np.dtype(dtype).name
        x = np.array([-2, -0.5, 0, 0.25, 1, 9, INF, -INF, NAN], dtype)
        ends = {"Min": -1, "Max": 2.5}
        cases.append(_case(kind, "CLIP", x, [-1, -0.5, 0, 0.25, 1, 2.5, 2.5, -1, -1], **ends))
        cases.append(_case(f"{kind}-ends-crossed", "CLIP", x, [-1] * 9, Min=2.5, Max=-1))
        cases.append(_case(kind, "THRESHOLD", x, [0.5, 0.5, 0.5, 0.5, 1, 9, INF, 0.5, 0.5], Min=0.5))
        kinds = {"MinMaxDataType": DATA_TYPES[np.dtype(dtype)]}
        cases.append(_case(kind, "CLIP1", x, [-1, -0.5, 0, 0.25, 1, 2.5, 2.5, -1, 2.5], **ends, **kinds))
        cases.append(_case(f"{kind}-ends-crossed", "CLIP1", x, [2.5] * 9, Min=2.5, Max=-1, **kinds))
        gradient = [10, 20, 30, NAN, 50, INF, 70, 80, 90]
        # 0 also where an element is an end, and what passes at NaN.
        cases += _gradients(kind, x, gradient, [0, 0, 30, NAN, 0, 0, 0, 0, 90], Min=-0.5, Max=1)
        cases += _gradients(f"{kind}-ends-crossed", x, gradient, [0] * 8 + [90], Min=1, Max=-0.5)
        # No finite element is at an infinity.
        open_ended = [10, 20, 30, NAN, 50, INF, 0, 0, 90]
        cases += _gradients(f"{kind}-open", x, gradient, open_ended, Min=-INF, Max=INF)
        of_nan = pointwise(f"{kind}-nan", "ELEMENT_WISE_CLIP_GRAD", [x, np.array(gradient, dtype)],
            [10, 20, 30, NAN, 0, 0, 0, 80, 90], Min=NAN, Max=1)  # fmt: skip
        cases.append(of_nan)
    return cases


def _integers() -> list[Case]:
    cases = []
    for name in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"):
        dtype = np.dtype(name)
        low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
        x = np.array([0, 3, 100, high, low], dtype)
        cases.append(_case(name, "CLIP", x, np.array([3, 3, 99, 99, 3], dtype), Min=2.5, Max=99.5))
        cases.append(_case(f"{name}-beyond", "CLIP", x, x, Min=-1e30, Max=INF))
        ends = {"MinMaxDataType": TensorDataType[name.upper()], "Min": 3, "Max": 99}
        cases.append(_case(name, "CLIP1", x, np.array([3, 3, 99, 99, 3], dtype), **ends))
        scaled = {**ends, "Min": 2, "Max": 100, "ScaleBias": DML_SCALE_BIAS(Scale=0.5, Bias=1.75)}
        cases.append(_case(f"{name}-scaled", "CLIP1", x[:3], np.array([2, 3, 51], dtype), **scaled))
        if dtype.itemsize < 8:
            cases.append(_case(name, "THRESHOLD", x, np.array([3, 3, 100, high, 3], dtype), Min=2.5))
        x = np.array([2, 3, 4, 98, 99, 100, high, low], dtype)
        gradient = np.array([high, 5, low, high, 6, 7, 8, 9], dtype)
        passed = np.array([0, 0, low, high, 0, 0, 0, 0], dtype)
        cases += _gradients(name, x, gradient, passed, Min=3, Max=99)
        between = pointwise(f"{name}-between", "ELEMENT_WISE_CLIP_GRAD", [x, gradient], passed, Min=2.5, Max=99.5)
        beyond = pointwise(f"{name}-beyond", "ELEMENT_WISE_CLIP_GRAD", [x, gradient],
            np.array([high, 5, low, high, 6, 7, 0, 0], dtype), Min=-1e30, Max=NAN)  # fmt: skip
        cases += [between, beyond]
    # What single precision does not tell apart.
    long = np.array([2**53, 2**53 + 1, 2**53 + 2], np.int64)
    ends = {"MinMaxDataType": TensorDataType.INT64, "Min": 2**53, "Max": 2**53 + 2}
    cases.append(pointwise("long", "ELEMENT_WISE_CLIP_GRAD1", [long, long], long * [0, 1, 0], **ends))
    return cases


def _layouts() -> list[Case]:
    x, gradient = np.arange(6, dtype=np.float32).reshape(2, 3), np.array([[7, 7, 7], [8, 8, 8]], np.float32)
    return _gradients("broadcast", x, gradient, [[0, 7, 7], [8, 8, 0]], strides=(1, 0), Min=0, Max=5)


CASES = [*_floats(), *_integers(), *_layouts()]

UINT8 = TensorDataType.UINT8
OPERATORS_HERE = [name for name, op in OPERATORS.items() if op.family == "clip"]


def clip1(data_type: TensorDataType, **members: Any) -> OperatorDesc:
    """On a type of its own."""
    return _typed("ELEMENT_WISE_CLIP1", data_type, **members)


def _typed(operator: str, data_type: TensorDataType, **members: Any) -> OperatorDesc:
    gradients = ("InputGradientTensor", "OutputGradientTensor")
    tensors = ("InputTensor", *(gradients if "GRAD" in operator else ("OutputTensor",)))
    x = bad(DataType=data_type)
    return alike(operator, **{**dict.fromkeys(tensors, x), "MinMaxDataType": data_type, **members})


def _negatives_of_ends(operator: str, output: str) -> list[Negative]:
    return [
        Negative(
            "(C3)", alike(operator, MinMaxDataType=UINT8), "MinMaxDataType", "UINT8", f"FLOAT32, that of {output}"
        ),
        Negative("(C4)", _typed(operator, UINT8, Min=-1), "Min", "-1", "an integer from 0 to 255, which UINT8 holds"),
        Negative("(C4)", _typed(operator, UINT8, Max=256), "Max", "256", "an integer from 0 to 255"),
        Negative("(C4)", _typed(operator, UINT8, Max=1.5), "Max", "1.5", "an integer from 0 to 255"),
        Negative("(C4)", _typed(operator, UINT8, Max=np.inf), "Max", "inf", "an integer from 0 to 255"),
        Negative("(C4)", _typed(operator, UINT8, Max=np.nan), "Max", "nan", "an integer from 0 to 255"),
    ]


HALF = bad(DataType=TensorDataType.FLOAT16)
GRADIENTS = ("ELEMENT_WISE_CLIP_GRAD", "ELEMENT_WISE_CLIP_GRAD1")
RIGHT = [alike(name) for name in OPERATORS_HERE]
NEGATIVES = [
    # Of CLIP_GRAD1, MinMaxDataType is the output's type too.
    *negatives_of_alike([name for name in OPERATORS_HERE if name != "ELEMENT_WISE_CLIP_GRAD1"]),
    *_negatives_of_ends("ELEMENT_WISE_CLIP1", "OutputTensor"),
    *_negatives_of_ends("ELEMENT_WISE_CLIP_GRAD1", "OutputGradientTensor"),
    *(
        negative
        for operator in GRADIENTS
        for negative in (
            Negative(
                "(C1)", alike(operator, InputGradientTensor=HALF), "InputGradientTensor.DataType", "FLOAT16", "FLOAT32"
            ),
            Negative(
                "(C2)",
                alike(operator, InputGradientTensor=bad(Sizes=(3, 2))),
                "InputGradientTensor.Sizes",
                "(3, 2)",
                "(2, 3), that of InputTensor",
            ),
        )
    ),
]


def _ends(output: Shape) -> dict[str, Any]:
    return {"MinMaxDataType": output[1], "Min": 0, "Max": 1}


SUPPORT: dict[str, Rows | Support] = {
    "ELEMENT_WISE_CLIP": [
        ("1.0", 4, 4, FLOATS),
        ("2.1", 4, 4, ALL_32),
        ("3.0", 1, 8, ALL_32),
        ("5.0", 1, 8, ALL_BUT_DOUBLE),
    ],
    "ELEMENT_WISE_THRESHOLD": [("1.0", 4, 4, FLOATS), ("2.1", 4, 4, ALL_32), ("3.0", 1, 8, ALL_32)],
    "ELEMENT_WISE_CLIP_GRAD": [("3.1", 1, 8, ALL_32), ("5.0", 1, 8, ALL_BUT_DOUBLE)],
    "ELEMENT_WISE_CLIP1": Support([("5.0", 1, 8, ALL_BUT_DOUBLE)], members=_ends),
    "ELEMENT_WISE_CLIP_GRAD1": Support([("5.0", 1, 8, ALL_BUT_DOUBLE)], members=_ends),
}

KERNELS = {
    "ELEMENT_WISE_CLIP": "(linear, )?clip",
    "ELEMENT_WISE_CLIP1": "(linear, )?clip",
    "ELEMENT_WISE_CLIP_GRAD": "clip grad",
    "ELEMENT_WISE_CLIP_GRAD1": "clip grad",
    "ELEMENT_WISE_THRESHOLD": "(linear, )?clip",
}
