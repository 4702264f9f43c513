"""Batch normalisation in training, and gradients: statistics that come out even, and what is special about floats."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import anydml
from anydml.operators import spec
from anydml.operators.schema import OperatorDesc
from support_tables import FLOATS, Support

from . import Case, Negative, tensor, tensor_of

INF, NAN = np.inf, np.nan
TRAINING, OF_TRAINING, OF_CONSTANTS = (
    *("BATCH_NORMALIZATION_TRAINING", "BATCH_NORMALIZATION_TRAINING_GRAD"),
    "BATCH_NORMALIZATION_GRAD",
)


def _case(
    id: str,
    operator: str,
    inputs: Sequence[np.ndarray | None],
    outputs: Sequence[Any],
    strides: Sequence[Sequence[int] | None] = (),
    **options: Any,
) -> Case:
    """`strides` are those of all tensors in header order."""
    x, parameter = inputs[0], inputs[1 if operator == TRAINING else 2]
    assert x is not None
    assert parameter is not None
    sizes = (x.shape, parameter.shape, parameter.shape)
    written = [np.broadcast_to(np.asarray(y, x.dtype), size) for y, size in zip(outputs, sizes, strict=True)]
    arrays = [*inputs, *written]
    tensors = {
        name: None if array is None else tensor_of(array, strides[i] if strides else None)
        for i, (name, array) in enumerate(zip(spec(operator).tensors, arrays, strict=True))
    }
    desc = getattr(anydml, f"DML_{operator}_OPERATOR_DESC")(**tensors, **{"Epsilon": 0, **options})
    return Case(f"{operator.lower()}-{id}", desc, inputs, written)


def _training() -> list[Case]:
    cases = []
    for dtype in (np.float32, np.float16):
        kind = np.dtype(dtype).name
        # Means 3 and 6, variances 4 and 16 of two images' channels.
        x = np.array([[[[1, 5]], [[2, 10]]], [[[5, 1]], [[10, 2]]]], dtype)
        scale, bias = (np.array(values, dtype).reshape(1, 2, 1, 1) for values in ((1, 3), (10, 20)))
        mean, variance = np.array([3, 6]).reshape(1, 2, 1, 1), np.array([4, 16]).reshape(1, 2, 1, 1)
        normal = np.array([[[[-1, 1]], [[-1, 1]]], [[[1, -1]], [[1, -1]]]])
        added = np.array([[[[0, 1]], [[2, 3]]], [[[4, 5]], [[6, 7]]]], dtype)
        y = normal * scale.astype(np.float64) + bias
        root = np.sqrt(variance + 5.0)
        relu = anydml.DML_ACTIVATION_RELU_OPERATOR_DESC()
        halved = anydml.DML_ACTIVATION_LINEAR_OPERATOR_DESC(Alpha=0.5, Beta=-1)
        cases += [
            _case(kind, TRAINING, [x, scale, bias, None], [y, mean, variance]),
            _case(f"{kind}-added", TRAINING, [x, scale, bias, added], [y + added, mean, variance]),
            _case(f"{kind}-epsilon", TRAINING, [x, scale, bias, added],
                [(x - mean) / root * scale + bias + added, mean, variance], Epsilon=5),
            _case(f"{kind}-relu", TRAINING, [x, scale, -bias, added],
                [np.maximum(y - 2 * bias + added, 0), mean, variance], FusedActivation=relu),
            _case(f"{kind}-linear", TRAINING, [x, scale, bias, added],
                [(y + added) / 2 - 1, mean, variance], FusedActivation=halved),
        ]  # fmt: skip
        # Sums and squares beyond the type's range.
        largest = float(np.finfo(dtype).max)
        x = np.array([[largest], [-largest], [largest], [-largest]], dtype)
        one = np.ones((1, 1), dtype)
        y = np.array([[1], [-1], [1], [-1]]) + 2
        cases.append(_case(f"{kind}-wide", TRAINING, [x, one, 2 * one, None], [y, 0, INF]))
        x = np.array([[1, INF, 2], [1, 0, NAN]], dtype)
        one = np.ones((1, 3), dtype)
        special = [[[NAN] * 3] * 2, [[1, INF, NAN]], [[0, NAN, NAN]]]
        cases.append(_case(f"{kind}-special", TRAINING, [x, one, one, None], special))
    # Of single elements, each with its own scale.
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    bias = np.float32([[0, 1, 2], [3, 4, 5]])
    cases.append(_case("of-one", TRAINING, [x, 2 * x, bias, None], [bias, x, 0], Epsilon=1))
    x = np.float32([2, 4, 9, 1])
    one = np.float32([1])
    cases.append(_case("1-d", TRAINING, [x, 2 * one, one, None], [(x - 4) / np.sqrt(9.5) * 2 + 1, 4, 9.5]))
    x = np.float32([[[1, 9], [3, 9], [5, 9]], [[2, 9], [4, 9], [6, 9]]])
    mean = np.float32([[[6]], [[6.5]]])
    variance = ((x - mean.astype(np.float64)) ** 2).sum((1, 2), keepdims=True) / 6
    one = np.ones((2, 1, 1), np.float32)
    y = (x - mean) / np.sqrt(variance + 1)
    strides = ((1, 4, 2), (3, 1, 1), (0, 1, 1), None, (40, 9, 2), (7, 1, 1), (5, 1, 1))
    cases.append(_case("strided", TRAINING, [x, one, 0 * one, None], [y, mean, variance], strides, Epsilon=1))
    return cases


def _gradients() -> list[Case]:
    cases = []
    for dtype in (np.float32, np.float16):
        kind = np.dtype(dtype).name
        x = np.array([[[[1, 5]], [[2, 10]]], [[[5, 1]], [[10, 2]]]], dtype)
        g = np.array([[[[4, 0]], [[1, 1]]], [[[0, 0]], [[1, 5]]]], dtype)
        mean, variance, scale = (np.array(each, dtype).reshape(1, 2, 1, 1) for each in ((3, 6), (4, 16), (2, -4)))
        inputs = [x, g, mean, variance, scale]
        wide = [each.astype(np.float64) for each in inputs]
        sums = g.astype(np.float64).sum((0, 2, 3), keepdims=True)
        products = (wide[1] * (wide[0] - wide[2])).sum((0, 2, 3), keepdims=True)
        for epsilon in (0, 5):
            square = wide[3] + epsilon
            root = np.sqrt(square)
            own = g - sums / 4 - (wide[0] - wide[2]) * products / 4 / square
            name = f"{kind}-epsilon" if epsilon else kind
            outputs = [own * wide[4] / root, products / root, sums]
            cases.append(_case(name, OF_TRAINING, inputs, outputs, Epsilon=epsilon))
            outputs = [g * wide[4] / root, products / root, sums]
            cases.append(_case(name, OF_CONSTANTS, inputs, outputs, Epsilon=epsilon))
        # Sums beyond the type's range, of which the mean is not.
        largest = float(np.finfo(dtype).max)
        one, g = np.ones((1, 1), dtype), np.array([[largest], [largest]], dtype)
        x = np.array([[2], [0]], dtype)
        inputs = [x, g, one, one, one]
        cases.append(_case(f"{kind}-wide", OF_TRAINING, inputs, [0, 0, INF]))
        cases.append(_case(f"{kind}-wide", OF_CONSTANTS, inputs, [g, 0, INF]))
        # Variances of 0 and below.
        x, g = np.array([[2, 2], [0, 0]], dtype), np.array([[1, 1], [0, 3]], dtype)
        inputs = [x, g, *(np.array([each], dtype) for each in ((0, 1), (0, -1), (1, 1)))]
        cases.append(_case(f"{kind}-special", OF_TRAINING, inputs,
            [[[-INF, NAN], [NAN, NAN]], [[INF, NAN]], [[1, 4]]]))  # fmt: skip
        cases.append(_case(f"{kind}-special", OF_CONSTANTS, inputs,
            [[[INF, NAN], [NAN, NAN]], [[INF, NAN]], [[1, 4]]]))  # fmt: skip
    x = np.float32([1, 2, 3, 6])
    g, one = np.float32([1, 0, 0, 3]), np.float32([1])
    inputs = [x, g, 3 * one, 3 * one, 2 * one]
    cases.append(_case("1-d", OF_TRAINING, inputs, [g - 1 - (x - 3) * 7 / 16, 3.5, 4], Epsilon=1))
    cases.append(_case("1-d", OF_CONSTANTS, inputs, [g, 3.5, 4], Epsilon=1))
    # Each element by itself; then along two axes around one that is kept.
    x, g = np.float32([[1, 2], [3, 4]]), np.float32([[1, -1], [2, 5]])
    inputs = [x, g, 0 * x, 4 * x**0, x]
    cases.append(_case("of-one", OF_TRAINING, inputs, [-x * (g * x) / 4 * x / 2, g * x / 2, g]))
    cases.append(_case("of-one", OF_CONSTANTS, inputs, [g * x / 2, g * x / 2, g]))
    x = np.arange(8, dtype=np.float32).reshape(2, 2, 2)
    g = np.broadcast_to(np.float32([[1, 0], [0, 2]]), (2, 2, 2))
    mean, variance, scale = (np.float32(each).reshape(1, 2, 1) for each in ((2, 4), (4, 16), (2, 8)))
    sums, products, root = g.sum((0, 2), keepdims=True), (g * (x - mean)).sum((0, 2), keepdims=True), np.sqrt(variance)
    own = g - sums / 4 - (x - mean) * products / 4 / variance
    strides = ((1, 2, 5), (0, 9, 3), (3, 1, 1), (0, 2, 1), (1, 5, 1), (40, 9, 2), (7, 1, 1), (5, 3, 1))
    inputs = [x, g, mean, variance, scale]
    cases.append(_case("strided", OF_TRAINING, inputs, [own * scale / root, products / root, sums], strides))
    cases.append(_case("strided", OF_CONSTANTS, inputs, [g * scale / root, products / root, sums], strides))
    return cases


CASES = [*_training(), *_gradients()]

IMAGE, CHANNELS = tensor((2, 3, 4, 5)), tensor((1, 3, 1, 1))
_OF_ELEMENTS = ("InputTensor", "FusedAddTensor", "InputGradientTensor", "OutputTensor", "OutputGradientTensor")


def _normalization(operator: str, **members: Any) -> OperatorDesc:
    found = spec(operator)
    tensors = {name: IMAGE if name in _OF_ELEMENTS else CHANNELS for name in found.tensors}
    return found.desc(**{**tensors, "Epsilon": 0, **members})


def _negatives(operator: str) -> list[Negative]:
    tensors = [name for name in spec(operator).tensors if name != "InputTensor"]
    first = next(name for name in tensors if name not in _OF_ELEMENTS)
    negatives = []
    for name in tensors:
        is_of_elements = name in _OF_ELEMENTS
        sizes = (2, 3, 4, 5) if is_of_elements else (1, 3, 1, 1)
        rule = "(C5)" if name.startswith("Output") else "(C2)" if is_of_elements else "(C3)"
        wrong = tensor((2, 3, 4, 6)) if is_of_elements else tensor((1, 3, 4, 1))
        negatives += [
            Negative("(C1)", _normalization(operator, **{name: tensor(sizes, "FLOAT16")}), f"{name}.DataType",
                "FLOAT16", "FLOAT32, that of InputTensor"),
            Negative("(C2)", _normalization(operator, **{name: tensor(sizes[:2])}), f"{name}.DimensionCount", "2",
                "4, that of InputTensor"),
        ]  # fmt: skip
        if name != first:
            place = f"[{3 if is_of_elements else 2}]" if rule == "(C5)" else ""
            negatives.append(Negative(rule, _normalization(operator, **{name: wrong}), f"{name}.Sizes{place}", "", ""))
    parameters = [name for name in tensors if name not in _OF_ELEMENTS]
    wrong = dict.fromkeys(parameters, tensor((1, 2, 1, 1)))
    negatives.append(
        Negative("(C4)", _normalization(operator, **wrong), f"{first}.Sizes[1]", "2", "3, that of InputTensor, or 1")
    )
    return negatives


RIGHT = [_normalization(operator) for operator in (TRAINING, OF_TRAINING, OF_CONSTANTS)]
NEGATIVES = [negative for operator in (TRAINING, OF_TRAINING, OF_CONSTANTS) for negative in _negatives(operator)]

SUPPORT = {
    TRAINING: Support([("4.1", 1, 8, FLOATS)]),
    OF_TRAINING: Support([("4.1", 1, 8, FLOATS)]),
    OF_CONSTANTS: Support([("3.1", 1, 8, FLOATS)]),
}

KERNELS = {
    TRAINING: "mean and variance of (each channel, normalization, a channel at a time|groups of )",
    OF_TRAINING: "sums of gradients of groups of ",
    OF_CONSTANTS: "sums of gradients of groups of ",
}
