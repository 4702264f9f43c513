"""The activations: every type, what is special about floats, and where a formula taken literally would overflow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import anydml
from anydml import TensorDataType
from anydml.operators import OPERATORS, spec
from anydml.operators.schema import OperatorDesc
from support_tables import ALL_32, FLOATS, SIGNED_32, Rows, Support

from . import Case, Negative, alike, bad, negatives_of_alike, pointwise, tensor, tensor_of

INF, NAN = np.inf, np.nan


def _case(
    id: str, operator: str, inputs: Sequence[np.ndarray], y: Any, strides: Sequence[int] | None = None, **options: Any
) -> Case:
    """`strides` are those of the last input."""
    return pointwise(id, f"ACTIVATION_{operator}", inputs, y, strides, **options)


X = [-INF, -2, -0.5, 0, 0.5, 2, INF, NAN]
RESULTS: list[tuple[str, dict[str, float], list[float]]] = [
    ("ELU", {"Alpha": 1.5}, [-1.5, -1.296997075145081, -0.5902040104310499, 0, 0.5, 2, INF, NAN]),
    ("HARD_SIGMOID", {"Alpha": 0.25, "Beta": 0.5}, [0, 0, 0.375, 0.5, 0.625, 1, 1, NAN]),
    ("IDENTITY", {}, X),
    ("LEAKY_RELU", {"Alpha": 0.25}, [-INF, -0.5, -0.125, 0, 0.5, 2, INF, NAN]),
    ("LINEAR", {"Alpha": -2, "Beta": 1}, [INF, 5, 2, 1, 0, -3, -INF, NAN]),
    ("PARAMETRIC_SOFTPLUS", {"Alpha": 2, "Beta": 0.5},
        [0, 0.6265233750364456, 1.1518788397576871, 1.3862943611198906, 1.6518788397576871, 2.6265233750364456, INF,
         NAN]),
    ("RELU", {}, [0, 0, 0, 0, 0.5, 2, INF, NAN]),
    ("SCALED_ELU", {"Alpha": 1.5, "Gamma": 2}, [-3, -2.593994150290162, -1.1804080208620997, 0, 1, 4, INF, NAN]),
    ("SCALED_TANH", {"Alpha": 2, "Beta": 0.5},
        [-2, -1.5231883119115297, -0.48983732480741826, 0, 0.48983732480741826, 1.5231883119115297, 2, NAN]),
    ("SIGMOID", {}, [0, 0.11920292202211756, 0.37754066879814546, 0.5, 0.6224593312018546, 0.8807970779778824, 1, NAN]),
    ("SOFTPLUS", {"Steepness": 4},
        [0, 8.385159322394221e-05, 0.031732002760743123, 0.17328679513998632, 0.5317320027607432, 2.000083851593224,
         INF, NAN]),
    ("SOFTSIGN", {}, [-1, -2 / 3, -1 / 3, 0, 1 / 3, 2 / 3, 1, NAN]),
    ("TANH", {}, [-1, -0.9640275800758169, -0.46211715726000974, 0, 0.46211715726000974, 0.9640275800758169, 1, NAN]),
    ("THRESHOLDED_RELU", {"Alpha": 0.5}, [0, 0, 0, 0, 0, 2, INF, NAN]),
    ("SHRINK", {"Bias": 0.25, "Threshold": 0.5}, [-INF, -1.75, 0, 0, 0, 1.75, INF, NAN]),
    ("SHRINK", {"Bias": 0.25, "Threshold": -1}, [-INF, -1.75, -0.75, -0.25, 0.25, 1.75, INF, NAN]),
    ("SHRINK", {"Bias": 0, "Threshold": INF}, [0, 0, 0, 0, 0, 0, 0, NAN]),
    ("CELU", {"Alpha": 2}, [-2, -1.2642411176571153, -0.44239843385719024, 0, 0.5, 2, INF, NAN]),
    ("CELU", {"Alpha": 0}, [0, 0, 0, 0, 0.5, 2, INF, NAN]),
    ("GELU", {},
        [0, -0.04550026389635842, -0.15426876936299344, 0, 0.34573123063700656, 1.9544997361036416, INF, NAN]),
    ("SWISH", {"SigmoidInputScale": 1},
        [0, -0.23840584404423512, -0.18877033439907273, 0, 0.3112296656009273, 1.7615941559557649, INF, NAN]),
    ("SWISH", {"SigmoidInputScale": -2},
        [-INF, -1.964027580075817, -0.36552928931500245, 0, 0.13447071068499755, 0.03597241992418312, 0, NAN]),
    ("HARD_SWISH", {"Alpha": 0.25, "Beta": 0.5}, [0, 0, -0.1875, 0, 0.3125, 2, INF, NAN]),
    ("HARD_SWISH", {"Alpha": -1, "Beta": 0.25}, [-INF, -2, -0.375, 0, 0, 0, 0, NAN]),
]  # fmt: skip
"""Operator, its members, and f(X)."""


def _floats() -> list[Case]:
    cases = []
    for dtype in (np.float32, np.float16):
        kind, largest = np.dtype(dtype).name, np.finfo(dtype).max
        x = np.array(X, dtype)
        cases += [_case(f"{kind}-{i}", operator, [x], y, **options) for i, (operator, options, y) in enumerate(RESULTS)]
        slope = np.array([0.5, 0.5, -2, 3, 3, NAN, 3, 3], dtype)
        cases.append(_case(kind, "PARAMETERIZED_RELU", [x, slope], [-INF, -1, 1, 0, 0.5, 2, INF, NAN]))
        gradient = np.array([1, 2, 3, 4, NAN, -INF, 5, 6], dtype)
        cases.append(_case(kind, "RELU_GRAD", [x, gradient], [0, 0, 0, 0, NAN, -INF, 5, 0]))
        ends = np.array([-largest, largest], dtype)
        far = {
            "ELU": ([-1, largest], {"Alpha": 1}),
            "HARD_SIGMOID": ([0, 1], {"Alpha": 3, "Beta": 0}),
            "LINEAR": ([-INF, INF], {"Alpha": 2, "Beta": 1}),
            "PARAMETRIC_SOFTPLUS": ([0, largest], {"Alpha": 0.5, "Beta": 2}),
            "SIGMOID": ([0, 1], {}),
            "SOFTPLUS": ([0, largest], {"Steepness": 3}),
            "SOFTSIGN": ([-1, 1], {}),
            "TANH": ([-1, 1], {}),
            "CELU": ([-3, largest], {"Alpha": 3}),
            "GELU": ([0, largest], {}),
            "SWISH": ([0, largest], {"SigmoidInputScale": 3}),
            "HARD_SWISH": ([0, largest], {"Alpha": 3, "Beta": 0}),
        }
        cases += [_case(f"{kind}-far", operator, [ends], y, **options) for operator, (y, options) in far.items()]
    # What 1 + e^x and e^x - 1 would have lost.
    tiny = np.array([-80], np.float32)
    cases.append(_case("tiny", "SIGMOID", [tiny], [1.8048513878454153e-35]))
    cases.append(_case("tiny", "SOFTPLUS", [tiny], [1.80485138784542e-35], Steepness=1))
    cases.append(
        _case(
            "infinite-factor", "PARAMETRIC_SOFTPLUS", [np.array([-1, 1], np.float32)], [NAN, -INF], Alpha=-INF, Beta=INF
        )
    )
    cases.append(_case("tiny", "CELU", [np.array([-0.0001], np.float32)], [-9.999749751557997e-05], Alpha=2))
    # What 1 + erf(x / sqrt(2)) and x / (1 + e^-x) would have lost.
    far = np.array([-10, -14], np.float32)
    cases.append(_case("tiny", "GELU", [far], [-7.619853024160526e-23, -1.091095154686992e-43]))
    cases.append(_case("tiny", "SWISH", [np.array([-90], np.float32)], [-7.374611361591464e-38], SigmoidInputScale=1))
    cases.append(_case("tiny", "ELU", [np.array([-0.0001], np.float32)], [-9.99950001666625e-05], Alpha=1))
    return cases


def _integers() -> list[Case]:
    cases = []
    for name in ("int8", "int16", "int32", "uint8", "uint16", "uint32"):
        dtype = np.dtype(name)
        low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
        x = np.array([low, 0, 1, 2, 3, high - 1, high], dtype)
        middle = [0, 0, 0, 1]
        cases.append(_case(name, "SHRINK", [x], [low + 2 if low else 0, *middle, high - 3, high - 2], Bias=1.5,
            Threshold=2))  # fmt: skip
        cases.append(
            _case(f"{name}-saturated", "SHRINK", [x], [low or high, *[high] * 6], Bias=-(2.0**40), Threshold=-0.5)
        )
        if low:
            x = np.array([low, -3, -1, 0, 1, high], dtype)
            cases.append(_case(name, "RELU", [x], [0, 0, 0, 0, 1, high]))
            slope = np.array([-1, 2, low, 5, 5, 5], dtype)
            cases.append(_case(name, "PARAMETERIZED_RELU", [x, slope], [low, -6, low, 0, 1, high]))
            cases.append(_case(name, "RELU_GRAD", [x, slope], [0, 0, 0, 0, 5, 5]))
    return cases


def _layouts() -> list[Case]:
    a = np.arange(-3, 3, dtype=np.float32).reshape(2, 3)
    row = np.array([[-1, 0, 2], [-1, 0, 2]], np.float32)
    gradient = np.array([[7, 7, 7], [8, 8, 8]], np.float32)
    payload = np.array([0x7FC12345], np.uint32).view(np.float32)
    return [
        _case("transposed", "RELU", [a], np.maximum(a, 0), strides=(1, 2)),
        _case("broadcast", "LEAKY_RELU", [row], [[-0.5, 0, 2], [-0.5, 0, 2]], strides=(0, 1), Alpha=0.5),
        _case("eight-dimensions", "TANH", [np.zeros((1, 2, 1, 1, 2, 1, 1, 2), np.float16)],
            np.zeros((1, 2, 1, 1, 2, 1, 1, 2))),
        _case("broadcast", "RELU_GRAD", [a, gradient], [[0, 0, 0], [0, 8, 8]], (1, 0)),
        _case("nan-payload", "IDENTITY", [payload], payload),
    ]  # fmt: skip


def _hardmax() -> list[Case]:
    page = np.array([[[12, 0], [-101, 11]], [[3, 234], [0, -101]]], np.float32)
    both = [[[0, 0], [0, 1]], [[0, 1], [0, 0]]]
    return [
        _case("page-1", "HARDMAX1", [page], [[[1, 0], [0, 1]], [[1, 1], [0, 0]]], Axes=[1]),
        _case("page-2", "HARDMAX1", [page], [[[1, 0], [0, 1]], [[0, 1], [1, 0]]], Axes=[0]),
        _case("page-3", "HARDMAX1", [page], both, Axes=[0, 2]),
        _case("any-order", "HARDMAX1", [page], both, Axes=[2, 0]),
        _case("nan", "HARDMAX", [np.array([[NAN, NAN], [NAN, -INF]], np.float32)], [[1, 0], [0, 1]]),
    ]


# The softmax of (0, 1, 2) and of (1, -1), and their logarithms
THREE = [0.09003057317038046, 0.24472847105479764, 0.6652409557748219]
LOG_THREE = [-2.40760596444438, -1.4076059644443804, -0.4076059644443803]
TWO = [0.8807970779778824, 0.11920292202211756]
LOG_TWO = [-0.1269280110429725, -2.1269280110429727]
NONE = [NAN, NAN, NAN]


def _along_axes() -> list[Case]:
    cases = [*_hardmax()]
    for dtype in (np.float32, np.float16):
        kind, largest = np.dtype(dtype).name, np.finfo(dtype).max
        # A softmax is that of the differences: e to the power of 60000 would be too large.
        up = 60000 if dtype == np.float32 else 0
        rows = np.array([[up, up + 1, up + 2], [1, -1, -INF], [0, INF, 1], [NAN, 1, 2], [-INF, -INF, -INF],
            [-largest, largest, 0]], dtype)  # fmt: skip
        y = [THREE, [*TWO, 0], NONE, NONE, NONE, [0, 1, 0]]
        log_y = [LOG_THREE, [*LOG_TWO, -INF], NONE, NONE, NONE, [-INF, 0, -largest]]
        one_hot = [[0, 0, 1], [1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 0, 0], [0, 1, 0]]
        columns = rows[:2, :2].T
        turned = np.array([[1 / (1 + np.e), TWO[0]], [1 / (1 + 1 / np.e), TWO[1]]])
        block = np.array([0, 5, 1, 5, 2, 5], dtype).reshape(1, 3, 2)
        beside = np.stack([THREE, [1 / 3] * 3], axis=1)[None]
        cases += [
            _case(kind, "SOFTMAX", [rows], y),
            _case(kind, "LOG_SOFTMAX", [rows], log_y),
            _case(kind, "HARDMAX", [rows], one_hot),
            _case(f"{kind}-five-dimensions", "SOFTMAX", [rows[:2].reshape(1, 1, 1, 2, 3)], [[[y[:2]]]]),
            _case(f"{kind}-one-element", "SOFTMAX", [rows[:1, :1]], [[1]]),
            _case(f"{kind}-columns", "SOFTMAX1", [columns], turned, Axes=[0], strides=(1, 2)),
            _case(f"{kind}-columns", "LOG_SOFTMAX1", [columns], np.log(turned), Axes=[0], strides=(1, 2)),
            _case(f"{kind}-middle", "SOFTMAX1", [block], beside, Axes=[1]),
            _case(
                f"{kind}-all", "SOFTMAX1", [np.full((2, 1, 4), -7, dtype)], np.full((2, 1, 4), 0.125), Axes=[2, 0, 1]
            ),
        ]
    # ln(1 - 4e-18), where 1 - 4e-18 would be 1
    far = np.array([0, -40], np.float32)
    return [*cases, _case("far", "LOG_SOFTMAX", [far], [-4.248354255291589e-18, -40])]


def _fused() -> list[Case]:
    a = np.array([-3, -1, 0, 1.5, INF, NAN], np.float32)
    b = np.array([2, 1, 0, 0.5, 1, 1], np.float32)
    activations = [
        (None, [-1, 0, 0, 2, INF, NAN]),
        (anydml.DML_ACTIVATION_RELU_OPERATOR_DESC(), [0, 0, 0, 2, INF, NAN]),
        (anydml.DML_ACTIVATION_LINEAR_OPERATOR_DESC(Alpha=-2, Beta=0.5), [2.5, 0.5, 0.5, -3.5, -INF, NAN]),
        (anydml.DML_ACTIVATION_HARD_SIGMOID_OPERATOR_DESC(Alpha=0.25, Beta=0.5), [0.25, 0.5, 0.5, 1, 1, NAN]),
        (anydml.DML_ACTIVATION_SHRINK_OPERATOR_DESC(Bias=INF, Threshold=1), [0, 0, 0, -INF, NAN, NAN]),
        (
            anydml.DML_ACTIVATION_CELU_OPERATOR_DESC(Alpha=2),
            [-0.7869386805747332, 0, 0, 2, INF, NAN],
        ),
        (anydml.DML_ACTIVATION_GELU_OPERATOR_DESC(), [-0.15865525393145705, 0, 0, 1.9544997361036416, INF, NAN]),
    ]

    def case(id: str, a: np.ndarray, b: np.ndarray, y: Any, activation: OperatorDesc | None) -> Case:
        tensors = dict.fromkeys(("ATensor", "BTensor", "OutputTensor"), tensor_of(a))
        desc = anydml.DML_ELEMENT_WISE_ADD1_OPERATOR_DESC(**tensors, FusedActivation=activation)
        return Case(f"add1-{id}", desc, [a, b], [np.array(y, a.dtype)])

    # 2^24 + 1 is no float32, but the sum that the activation sees: nothing is rounded between the two.
    large, one = np.array([2.0**24], np.float32), np.array([1], np.float32)
    linear = anydml.DML_ACTIVATION_LINEAR_OPERATOR_DESC(Alpha=1, Beta=-(2.0**24))
    return [
        *(
            case(f"{kind}-{i}", a.astype(kind), b.astype(kind), y, activation)
            for kind in ("float32", "float16")
            for i, (activation, y) in enumerate(activations)
        ),
        case("rounds-once", large, one, [1], linear),
    ]


CASES = [*_floats(), *_integers(), *_layouts(), *_along_axes(), *_fused()]

OPERATORS_HERE = [name for name, op in OPERATORS.items() if op.family in ("activation", "softmax")]


def activation(name: str, **members: Any) -> OperatorDesc:
    """One that is fused."""
    return spec(f"ACTIVATION_{name}").desc(**members)


def add1(fused: Any, **members: Any) -> OperatorDesc:
    return alike("ELEMENT_WISE_ADD1", FusedActivation=fused, **members)


RIGHT = [alike(name) for name in OPERATORS_HERE]
NEGATIVES = [
    *negatives_of_alike(OPERATORS_HERE),
    Negative(
        "(C1)",
        alike("ACTIVATION_PARAMETERIZED_RELU", SlopeTensor=bad(DataType=TensorDataType.INT8)),
        "SlopeTensor.DataType",
        "INT8",
        "FLOAT32, that of InputTensor",
    ),
    Negative(
        "(C2)",
        alike("ACTIVATION_PARAMETERIZED_RELU", SlopeTensor=bad(Sizes=(3,))),
        "SlopeTensor.DimensionCount",
        "1",
        "2, that of InputTensor",
    ),
    Negative(
        "(C2)",
        alike("ACTIVATION_PARAMETERIZED_RELU", SlopeTensor=bad(Sizes=(1, 3))),
        "SlopeTensor.Sizes",
        "(1, 3)",
        "(2, 3), that of InputTensor",
    ),
    Negative(
        "(C2)",
        alike("ACTIVATION_RELU_GRAD", InputGradientTensor=bad(Sizes=(3, 2))),
        "InputGradientTensor.Sizes",
        "(3, 2)",
        "(2, 3), that of InputTensor",
    ),
    *(
        Negative(
            "(C3)",
            alike(f"ACTIVATION_{operator}", InputTensor=tensor((1, 2, 3, 1)), OutputTensor=tensor((1, 2, 3, 1))),
            "InputTensor.Sizes[1]",
            "2",
            "1, before the last two",
        )
        for operator in ("HARDMAX", "LOG_SOFTMAX", "SOFTMAX")
    ),
    *(
        negative
        for operator in ("ACTIVATION_HARDMAX1", "ACTIVATION_LOG_SOFTMAX1", "ACTIVATION_SOFTMAX1")
        for negative in (
            Negative("(C3)", alike(operator, Axes=()), "AxisCount", "0", "at least 1"),
            Negative("(C4)", alike(operator, Axes=(0, 2)), "Axes[1]", "2", "less than 2, the DimensionCount"),
            Negative("(C5)", alike(operator, Axes=(0, 1, 0)), "Axes[2]", "0 again", "every axis once"),
            Negative("(F5)", alike(operator, AxisCount=2), "Axes", "1 elements", "2, which AxisCount says"),
        )
    ),
]

_FORMULA = [("1.0", 4, 4, FLOATS), ("2.0", 4, 5, FLOATS), ("3.0", 1, 8, FLOATS)]
SUPPORT: dict[str, Rows | Support] = {
    "ACTIVATION_ELU": _FORMULA,
    "ACTIVATION_HARD_SIGMOID": _FORMULA,
    "ACTIVATION_IDENTITY": _FORMULA,
    "ACTIVATION_LEAKY_RELU": _FORMULA,
    "ACTIVATION_LINEAR": _FORMULA,
    "ACTIVATION_PARAMETERIZED_RELU": [*_FORMULA, ("5.1", 1, 8, SIGNED_32)],
    "ACTIVATION_PARAMETRIC_SOFTPLUS": _FORMULA,
    "ACTIVATION_RELU": [*_FORMULA, ("5.1", 1, 8, SIGNED_32)],
    "ACTIVATION_SCALED_ELU": _FORMULA,
    "ACTIVATION_SCALED_TANH": _FORMULA,
    "ACTIVATION_SIGMOID": _FORMULA,
    "ACTIVATION_SOFTPLUS": _FORMULA,
    "ACTIVATION_SOFTSIGN": _FORMULA,
    "ACTIVATION_TANH": _FORMULA,
    "ACTIVATION_THRESHOLDED_RELU": _FORMULA,
    "ACTIVATION_HARDMAX": _FORMULA,
    "ACTIVATION_LOG_SOFTMAX": _FORMULA,
    "ACTIVATION_SOFTMAX": _FORMULA,
    "ACTIVATION_SOFTMAX1": Support([("5.1", 1, 8, FLOATS)], members=lambda output: {"Axes": [0]}),
    "ACTIVATION_LOG_SOFTMAX1": Support([("5.1", 1, 8, FLOATS)], members=lambda output: {"Axes": [0]}),
    "ACTIVATION_HARDMAX1": Support([("5.1", 1, 8, FLOATS)], members=lambda output: {"Axes": [0]}),
    "ACTIVATION_CELU": [("3.0", 1, 8, FLOATS)],
    "ACTIVATION_RELU_GRAD": [("3.0", 1, 8, FLOATS), ("4.0", 1, 8, FLOATS), ("5.1", 1, 8, SIGNED_32)],
    "ACTIVATION_GELU": [("5.1", 1, 8, FLOATS)],
    "ACTIVATION_SWISH": [("6.2", 1, 8, FLOATS)],
    "ACTIVATION_HARD_SWISH": [("6.2", 1, 8, FLOATS)],
    "ACTIVATION_SHRINK": [("2.0", 4, 5, FLOATS), ("3.0", 1, 8, FLOATS), ("5.1", 1, 8, ALL_32)],
}

KERNELS = {
    "ACTIVATION_SOFTPLUS": "(scaled )?softplus",
    **dict.fromkeys(("ACTIVATION_SOFTMAX", "ACTIVATION_SOFTMAX1"), "softmax of groups of "),
    **dict.fromkeys(("ACTIVATION_LOG_SOFTMAX", "ACTIVATION_LOG_SOFTMAX1"), "logarithms of softmax of groups of "),
    **dict.fromkeys(("ACTIVATION_HARDMAX", "ACTIVATION_HARDMAX1"), "first of the largest of groups of "),
}
