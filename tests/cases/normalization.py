"""The normalisations: numbers that come out even, every parameter alone, and what is special about floats."""

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
NAMES = {
    "BATCH_NORMALIZATION": ("InputTensor", "MeanTensor", "VarianceTensor", "ScaleTensor", "BiasTensor"),
    "MEAN_VARIANCE_NORMALIZATION": ("InputTensor", "ScaleTensor", "BiasTensor"),
    "MEAN_VARIANCE_NORMALIZATION1": ("InputTensor", "ScaleTensor", "BiasTensor"),
    "MEAN_VARIANCE_NORMALIZATION2": ("InputTensor", "ScaleTensor", "BiasTensor"),
    "LOCAL_RESPONSE_NORMALIZATION": ("InputTensor",),
}


def _case(
    id: str,
    operator: str,
    inputs: Sequence[np.ndarray | None],
    y: Any,
    strides: Sequence[int] | None = None,
    output_strides: Sequence[int] | None = None,
    **options: Any,
) -> Case:
    x = inputs[0]
    assert x is not None
    tensors = {
        name: None if each is None else tensor_of(each) for name, each in zip(NAMES[operator], inputs, strict=True)
    }
    tensors["InputTensor"] = tensor_of(x, strides)
    output = np.broadcast_to(np.asarray(y, x.dtype), x.shape)
    desc = getattr(anydml, f"DML_{operator}_OPERATOR_DESC")
    defaults: dict[str, dict[str, Any]] = {
        "BATCH_NORMALIZATION": {"Spatial": True, "Epsilon": 0},
        "MEAN_VARIANCE_NORMALIZATION": {"CrossChannel": False, "NormalizeVariance": True, "Epsilon": 0},
        "MEAN_VARIANCE_NORMALIZATION1": {"NormalizeVariance": True, "Epsilon": 0},
        "MEAN_VARIANCE_NORMALIZATION2": {"UseMean": True, "UseVariance": True, "Epsilon": 0},
        "LOCAL_RESPONSE_NORMALIZATION": {"Alpha": 1, "Beta": 1, "Bias": 1},
    }
    members = {**defaults[operator], **options}
    return Case(
        f"{operator.lower()}-{id}",
        desc(**tensors, OutputTensor=tensor_of(output, output_strides), **members),
        inputs,
        [output],
    )


def _batch() -> list[Case]:
    cases = []
    for dtype in (np.float32, np.float16):
        kind = np.dtype(dtype).name

        def per_channel(*values: float, dtype: Any = dtype) -> np.ndarray:
            return np.array(values, dtype).reshape(1, -1, 1, 1)

        x = np.array([1, 3, 5, 7, INF, NAN], dtype).reshape(1, 2, 3, 1)
        parameters = [per_channel(*pair) for pair in ((1, 5), (3, 15), (2, -4), (10, 20))]
        y = np.reshape([10, 12, 14, 18, -INF, NAN], x.shape)
        cases.append(_case(kind, "BATCH_NORMALIZATION", [x, *parameters], y, Epsilon=1))
        # The variance is 0, then below 0.
        even = np.array([[[[0, 1, -1]], [[0, 1, -1]]]], dtype)
        parameters = [per_channel(*pair) for pair in ((0, 0), (0, -1), (1, 1), (0, 0))]
        y = np.array([[[[NAN, INF, -INF]], [[NAN, NAN, NAN]]]])
        cases.append(_case(f"{kind}-variances-of-none", "BATCH_NORMALIZATION", [even, *parameters], y))
        # Each of these is more than the type holds, but not more than the next wider one.
        largest = np.finfo(dtype).max
        x = np.array([[largest, -largest]], dtype)
        parameters = [np.array([[value]], dtype) for value in (-largest, 4, 1, -largest)]
        cases.append(_case(f"{kind}-wide", "BATCH_NORMALIZATION", [x, *parameters], [[0, -largest]]))
    x = np.arange(12, dtype=np.float32).reshape(3, 2, 2)
    one = np.ones((1, 1, 1), np.float32)
    means = np.float32([0, 4, 8]).reshape(3, 1, 1)
    parameters = [means, 4 * one, 2 * np.ones((1, 2, 1), np.float32), np.float32([[[0, 100]]])]
    y = [[[0, 101], [2, 103]]] * 3
    cases.append(_case("any-dimension", "BATCH_NORMALIZATION", [x, *parameters], y, (1, 3, 6), (7, 3, 1)))
    x = np.arange(5, dtype=np.float32)
    parameters = [np.float32([value]) for value in (2, 1, 1, 0)]
    cases.append(_case("1-d", "BATCH_NORMALIZATION", [x, *parameters], x - 2, Spatial=False))
    return cases


def _mean_variance() -> list[Case]:
    cases = []
    for dtype in (np.float32, np.float16):
        kind = np.dtype(dtype).name
        # Mean 3 and variance 4, then mean 6 and variance 4; together mean 4.5 and variance 6.25.
        x = np.array([[[[1, 1], [5, 5]], [[4, 8], [8, 4]]]], dtype)
        scale, bias = (np.array(values, dtype).reshape(1, 2, 1, 1) for values in ((1, 3), (10, 20)))
        alone = np.array([[[[-1, -1], [1, 1]], [[-1, 1], [1, -1]]]])
        every = [[[[-1.4, -1.4], [0.2, 0.2]], [[-0.2, 1.4], [1.4, -0.2]]]]
        for operator, by_channel, by_all in (
            ("MEAN_VARIANCE_NORMALIZATION", {"CrossChannel": False}, {"CrossChannel": True}),
            ("MEAN_VARIANCE_NORMALIZATION1", {"Axes": (2, 3)}, {"Axes": (3, 1, 2)}),
        ):
            cases += [
                _case(kind, operator, [x, None, None], alone, **by_channel),
                _case(f"{kind}-epsilon", operator, [x, None, None], alone * 0.8, Epsilon=2.25, **by_channel),
                _case(f"{kind}-across", operator, [x, None, None], every, **by_all),
                _case(f"{kind}-scale", operator, [x, scale, None], alone * scale, **by_channel),
                _case(f"{kind}-bias", operator, [x, None, bias], alone + bias, **by_channel),
                _case(f"{kind}-both", operator, [x, scale, bias], alone * scale + bias, **by_channel),
                _case(f"{kind}-differences", operator, [x, scale, bias], alone * 2 * scale + bias,
                    NormalizeVariance=False, Epsilon=9, **by_channel),
            ]  # fmt: skip
    x = np.float32([[1, 3, 5], [2, INF, 4], [7, 7, 7], [NAN, 1, 2]])
    root = 1.224744871391589
    y = [[-root, 0, root], [NAN] * 3, [NAN] * 3, [NAN] * 3]
    cases.append(_case("special", "MEAN_VARIANCE_NORMALIZATION1", [x, None, None], y, Axes=(1,)))
    x = np.float32([[7, 7, 7]])
    cases.append(_case("all-equal", "MEAN_VARIANCE_NORMALIZATION1", [x, None, None], [[0, 0, 0]], Axes=(1,), Epsilon=1))
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    options: dict[str, Any] = {"Axes": (0,), "NormalizeVariance": False, "strides": (1, 4), "output_strides": (9, 2)}
    y = [[-1.5, -1.5, -1.5], [1.5, 1.5, 1.5]]
    cases.append(_case("strided", "MEAN_VARIANCE_NORMALIZATION1", [x, None, None], y, **options))
    x = np.arange(5, dtype=np.float16)
    options = {"Axes": (0,), "NormalizeVariance": False}
    cases.append(_case("1-d", "MEAN_VARIANCE_NORMALIZATION1", [x, np.float16([3]), None], 3 * (x - 2), **options))
    return cases


def _mean_or_not() -> list[Case]:
    """Of MEAN_VARIANCE_NORMALIZATION2, with and without each of both."""
    cases = []
    operator = "MEAN_VARIANCE_NORMALIZATION2"
    for dtype in (np.float32, np.float16):
        kind = np.dtype(dtype).name
        # Means 2 and 0, variances 1 and 2, means of squares 5 and 2.
        x = np.array([[1, 3, 1, 3], [2, -2, 0, 0]], dtype)
        scale, bias = np.array([[2], [4]], dtype), np.array([[1, 2, 3, 4]], dtype)
        centred = np.array([[-1, 1, -1, 1], [2, -2, 0, 0]])
        root = np.sqrt([[4.0], [5.0]])
        half = anydml.DML_ACTIVATION_LEAKY_RELU_OPERATOR_DESC(Alpha=0.5)
        cases += [
            _case(kind, operator, [x, None, None], centred / root, Axes=(1,), Epsilon=3),
            _case(f"{kind}-both", operator, [x, scale, bias], centred / root * scale + bias, Axes=(1,), Epsilon=3),
            _case(f"{kind}-squares", operator, [x, None, None], x / np.sqrt([[9.0], [6.0]]),
                Axes=(1,), Epsilon=4, UseMean=False),
            _case(f"{kind}-differences", operator, [x, scale, None], centred * scale,
                Axes=(1,), UseVariance=False),
            _case(f"{kind}-neither", operator, [x, scale, bias], x * scale + bias,
                Axes=(1,), UseMean=False, UseVariance=False),
            _case(f"{kind}-leaky", operator, [x, None, None], np.where(centred > 0, centred, centred * 0.5),
                Axes=(1,), UseVariance=False, FusedActivation=half),
        ]  # fmt: skip
        # Squares beyond the type's range are not beyond that of what they are computed in.
        largest = float(np.finfo(dtype).max)
        x = np.array([largest, -largest, largest], dtype)
        cases.append(_case(f"{kind}-wide", operator, [x, None, None], [1, -1, 1], Axes=(0,), UseMean=False))
        x = np.array([[0, 0], [1, NAN], [3, INF]], dtype)
        y = [[NAN, NAN], [NAN, NAN], [0, NAN]]
        cases.append(_case(f"{kind}-special", operator, [x, None, None], y, Axes=(1,), UseMean=False))
    x = np.arange(12, dtype=np.float32).reshape(2, 3, 2)
    options: dict[str, Any] = {"Axes": (2, 0), "UseVariance": False, "strides": (1, 2, 7), "output_strides": (9, 1, 30)}
    cases.append(_case("strided", operator, [x, None, None], x - np.float32([[[3.5], [5.5], [7.5]]]), **options))
    return cases


def _local_response() -> list[Case]:
    cases = []
    for dtype in (np.float32, np.float16):
        kind = np.dtype(dtype).name
        x = np.array([1, 2, 3, 4], dtype).reshape(1, 4, 1, 1)

        def across(count: int, sums: Sequence[float], x: np.ndarray = x, kind: str = kind, **options: Any) -> Case:
            y = x / (1 + np.reshape(sums, x.shape) / count)
            members = {"CrossChannel": True, "LocalSize": count, **options}
            return _case(f"{kind}-across-{count}", "LOCAL_RESPONSE_NORMALIZATION", [x], y, **members)

        cases += [
            across(1, [1, 4, 9, 16]),
            across(2, [5, 13, 25, 16]),
            across(3, [5, 14, 29, 25]),
            across(4, [14, 30, 29, 25]),
            across(5, [14, 30, 30, 29]),
            across(9, [30, 30, 30, 30]),
            across(2**32 - 1, [30, 30, 30, 30]),
        ]
        # Of the square's elements, those inside the tensor; divided by LocalSize and not by their count.
        x = np.array([[[[1, 2, 0], [0, 3, 1]], [[0, 0, 0], [0, 0, 5]]]], dtype)
        sums = np.array([[[[14, 15, 14], [14, 15, 14]], [[0, 25, 25], [0, 25, 25]]]])
        options: dict[str, Any] = {"CrossChannel": False, "LocalSize": 3, "Alpha": 3, "Bias": 2}
        cases.append(_case(f"{kind}-within", "LOCAL_RESPONSE_NORMALIZATION", [x], x / (2 + sums), **options))
        sums = np.array([[[[14, 14, 1], [10, 10, 1]], [[0, 25, 25], [0, 25, 25]]]])
        options |= {"LocalSize": 2, "Alpha": 2, "Beta": 2}
        cases.append(_case(f"{kind}-within-2", "LOCAL_RESPONSE_NORMALIZATION", [x], x / (2.0 + sums) ** 2, **options))
        x = np.array([0, 3, INF, 2, NAN, 1, 0, 4], dtype).reshape(1, 8, 1, 1)
        # A NaN and an infinity reach as far as their squares do, and no farther.
        y = [0, 0, NAN, NAN, NAN, NAN, 0, 4 / 17]
        options = {"CrossChannel": True, "LocalSize": 3, "Alpha": 3}
        cases.append(_case(f"{kind}-special", "LOCAL_RESPONSE_NORMALIZATION", [x], np.reshape(y, x.shape), **options))
        x = np.array([0, 4], dtype).reshape(1, 2, 1, 1)
        options = {"CrossChannel": True, "LocalSize": 1, "Bias": 0}
        y = np.reshape([NAN, 0.25], x.shape)
        cases.append(_case(f"{kind}-without-bias", "LOCAL_RESPONSE_NORMALIZATION", [x], y, **options))
    x = np.float32([[[[1, 2], [3, 4]]]])
    options = {"CrossChannel": True, "LocalSize": 1, "Beta": 0.5, "Bias": 0}
    cases.append(_case("strided", "LOCAL_RESPONSE_NORMALIZATION", [x], np.ones(x.shape),
        (0, 0, 1, 2), (30, 20, 9, 4), **options))  # fmt: skip
    return cases


def _fused() -> list[Case]:
    cases = []
    for dtype in (np.float32, np.float16):
        kind = np.dtype(dtype).name
        largest = float(np.finfo(dtype).max)
        halved = anydml.DML_ACTIVATION_LINEAR_OPERATOR_DESC(Alpha=0.5, Beta=1)
        x = np.array([1, 3, -1, -largest], dtype).reshape(1, 1, 2, 2)
        one = np.ones((1, 1, 1, 1), dtype)
        # What is activated is not rounded before: 2 * largest is more than the type holds.
        parameters = [one, one, 2 * one, 0 * one]
        y = np.reshape([1, 3, -1, -largest], x.shape)
        cases.append(_case(f"{kind}-linear", "BATCH_NORMALIZATION", [x, *parameters], y, FusedActivation=halved))
        below = anydml.DML_ACTIVATION_LEAKY_RELU_OPERATOR_DESC(Alpha=0.25)
        x = np.array([1, 3, 5, 7], dtype).reshape(1, 1, 2, 2)
        y = np.reshape([-0.75, -0.25, 1, 3], x.shape)
        options: dict[str, Any] = {"NormalizeVariance": False, "FusedActivation": below}
        cases.append(
            _case(f"{kind}-leaky", "MEAN_VARIANCE_NORMALIZATION", [x, None, None], y, CrossChannel=True, **options)
        )
        cases.append(_case(f"{kind}-leaky", "MEAN_VARIANCE_NORMALIZATION1", [x, None, None], y, Axes=(2, 3), **options))
        kept = anydml.DML_ACTIVATION_RELU_OPERATOR_DESC()
        bias = np.array([2], dtype).reshape(1, 1, 1, 1)
        options = {"NormalizeVariance": False, "FusedActivation": kept}
        y = np.reshape([0, 1, 3, 5], x.shape)
        cases.append(_case(f"{kind}-relu", "MEAN_VARIANCE_NORMALIZATION1", [x, None, bias], y, Axes=(2, 3), **options))
    return cases


CASES = [*_batch(), *_mean_variance(), *_mean_or_not(), *_local_response(), *_fused()]


IMAGE = tensor((2, 3, 4, 5))
CHANNELS = tensor((1, 3, 1, 1))
NORMALIZATIONS: dict[str, dict[str, Any]] = {
    "BATCH_NORMALIZATION": {"Spatial": True, "Epsilon": 0},
    "MEAN_VARIANCE_NORMALIZATION": {"CrossChannel": True, "NormalizeVariance": True, "Epsilon": 0},
    "MEAN_VARIANCE_NORMALIZATION1": {"Axes": (2, 3), "NormalizeVariance": True, "Epsilon": 0},
    "MEAN_VARIANCE_NORMALIZATION2": {"Axes": (2, 3), "UseMean": True, "UseVariance": True, "Epsilon": 0},
    "LOCAL_RESPONSE_NORMALIZATION": {"CrossChannel": True, "LocalSize": 5, "Alpha": 1, "Beta": 1, "Bias": 1},
}


def normalization(operator: str, **members: Any) -> OperatorDesc:
    """With a parameter for each channel."""
    found = spec(operator)
    tensors = {name: IMAGE if name in ("InputTensor", "OutputTensor") else CHANNELS for name in found.tensors}
    return found.desc(**{**tensors, **NORMALIZATIONS[operator], **members})


RIGHT = [normalization(operator) for operator in NORMALIZATIONS]
NEGATIVES = [
    *(
        negative
        for operator in NORMALIZATIONS
        for name in spec(operator).tensors
        if name != "InputTensor"
        for negative in (
            Negative(
                "(C1)",
                normalization(operator, **{name: tensor((2, 3, 4, 5), "FLOAT16")}),
                f"{name}.DataType",
                "FLOAT16",
                "FLOAT32, that of InputTensor",
            ),
            Negative(
                "(C2)" if name == "OutputTensor" else "(C3)",
                normalization(operator, **{name: tensor((2, 3, 4, 6))}),
                f"{name}.Sizes[3]",
                "6",
                "5",
            ),
        )
    ),
    *(
        negative
        for operator in NORMALIZATIONS
        if operator != "LOCAL_RESPONSE_NORMALIZATION"
        for negative in (
            Negative(
                "(F11)", normalization(operator, FusedActivation="RELU"), "FusedActivation", "str 'RELU'", "or None"
            ),
            Negative(
                "(F11)",
                normalization(
                    operator,
                    FusedActivation=anydml.DML_ELEMENT_WISE_ADD1_OPERATOR_DESC(
                        ATensor=IMAGE, BTensor=IMAGE, OutputTensor=IMAGE
                    ),
                ),
                "FusedActivation",
                "DML_ELEMENT_WISE_ADD1",
                "fused",
            ),
            Negative(
                "(F11)",
                normalization(operator, FusedActivation=anydml.DML_ACTIVATION_RELU_OPERATOR_DESC(OutputTensor=IMAGE)),
                "FusedActivation.OutputTensor",
                "DML_BUFFER_TENSOR_DESC",
                "None",
            ),
            Negative(
                "(F8)",
                normalization(operator, FusedActivation=anydml.DML_ACTIVATION_ELU_OPERATOR_DESC(Alpha=None)),
                "FusedActivation.Alpha",
                "None",
                "a number of single precision",
            ),
            Negative(
                "(S4)",
                normalization(operator, FusedActivation=anydml.DML_ACTIVATION_SOFTMAX_OPERATOR_DESC()),
                "FusedActivation",
                "ACTIVATION_SOFTMAX",
                "ACTIVATION_RELU",
            ),
        )
    ),
    # The others take 4 dimensions only.
    *(
        Negative(
            "(C2)",
            normalization(operator, **{name: tensor((1,))}),
            f"{name}.DimensionCount",
            "1",
            "4, that of InputTensor",
        )
        for operator in ("BATCH_NORMALIZATION", "MEAN_VARIANCE_NORMALIZATION1", "MEAN_VARIANCE_NORMALIZATION2")
        for name in spec(operator).tensors
        if name != "InputTensor"
    ),
    *(
        Negative(rule, normalization(operator, Axes=axes), where, found, expected)
        for operator in ("MEAN_VARIANCE_NORMALIZATION1", "MEAN_VARIANCE_NORMALIZATION2")
        for rule, axes, where, found, expected in (
            ("(C4)", (), "AxisCount", "0", "at least 1"),
            ("(C5)", (4,), "Axes[0]", "4", "less than 4"),
            ("(C6)", (2, 3, 2), "Axes[2]", "2 again", "axis once"),
        )
    ),
    Negative("(C3)", normalization("LOCAL_RESPONSE_NORMALIZATION", LocalSize=0), "LocalSize", "0", "at least 1"),
]

SUPPORT = {
    "BATCH_NORMALIZATION": Support(
        [("1.0", 4, 4, FLOATS), ("3.1", 1, 8, FLOATS)], members=lambda output: {"Spatial": True}
    ),
    "MEAN_VARIANCE_NORMALIZATION": Support(
        [("1.0", 4, 4, FLOATS)], members=lambda output: {"CrossChannel": True, "NormalizeVariance": True}
    ),
    "MEAN_VARIANCE_NORMALIZATION1": Support(
        [("2.1", 4, 4, FLOATS), ("3.1", 1, 8, FLOATS)], members=lambda output: {"Axes": [0], "NormalizeVariance": True}
    ),
    "MEAN_VARIANCE_NORMALIZATION2": Support(
        [("6.3", 1, 8, FLOATS)], members=lambda output: {"Axes": [0], "UseMean": True, "UseVariance": True}
    ),
    "LOCAL_RESPONSE_NORMALIZATION": Support(
        [("1.0", 4, 4, FLOATS)], members=lambda output: {"CrossChannel": True, "LocalSize": 1}
    ),
}

_OF_GROUPS = "mean and variance of (each (channel|image), normalization, a channel at a time|groups of )"
KERNELS = {
    "BATCH_NORMALIZATION": "normalization, (a channel at a time|element by element)",
    "MEAN_VARIANCE_NORMALIZATION": _OF_GROUPS,
    "MEAN_VARIANCE_NORMALIZATION1": _OF_GROUPS,
    "MEAN_VARIANCE_NORMALIZATION2": "mean and variance of groups of ",
    "LOCAL_RESPONSE_NORMALIZATION": "local responses, (columns of channels|planes)",
}
