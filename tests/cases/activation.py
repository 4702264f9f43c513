"""The activations: every type, what is special about floats, and where a formula taken literally would overflow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import anydml

from . import Case, tensor_of

INF, NAN = np.inf, np.nan


def _case(
    id: str, operator: str, inputs: Sequence[np.ndarray], y: Any, strides: Sequence[int] | None = None, **options: Any
) -> Case:
    """`strides` are those of the first input."""
    names = ["InputTensor", "SlopeTensor"][: len(inputs)]
    output = np.asarray(y, inputs[0].dtype)
    tensors = {name: tensor_of(x) for name, x in zip(names, inputs, strict=True)}
    tensors["InputTensor"] = tensor_of(inputs[0], strides)
    desc = getattr(anydml, f"DML_ACTIVATION_{operator}_OPERATOR_DESC")
    return Case(
        f"{operator.lower()}-{id}", desc(**tensors, OutputTensor=tensor_of(output), **options), list(inputs), [output]
    )


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
        }
        cases += [_case(f"{kind}-far", operator, [ends], y, **options) for operator, (y, options) in far.items()]
    # What 1 + e^x and e^x - 1 would have lost.
    tiny = np.array([-80], np.float32)
    cases.append(_case("tiny", "SIGMOID", [tiny], [1.8048513878454153e-35]))
    cases.append(_case("tiny", "SOFTPLUS", [tiny], [1.80485138784542e-35], Steepness=1))
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
    return cases


def _layouts() -> list[Case]:
    a = np.arange(-3, 3, dtype=np.float32).reshape(2, 3)
    row = np.array([[-1, 0, 2], [-1, 0, 2]], np.float32)
    payload = np.array([0x7FC12345], np.uint32).view(np.float32)
    return [
        _case("transposed", "RELU", [a], np.maximum(a, 0), strides=(1, 2)),
        _case("broadcast", "LEAKY_RELU", [row], [[-0.5, 0, 2], [-0.5, 0, 2]], strides=(0, 1), Alpha=0.5),
        _case("eight-dimensions", "TANH", [np.zeros((1, 2, 1, 1, 2, 1, 1, 2), np.float16)],
            np.zeros((1, 2, 1, 1, 2, 1, 1, 2))),
        _case("nan-payload", "IDENTITY", [payload], payload),
    ]  # fmt: skip


CASES = [*_floats(), *_integers(), *_layouts()]
