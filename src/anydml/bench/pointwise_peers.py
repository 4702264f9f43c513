"""What libraries compute pointwise operators by: one table of their functions, and how these are called."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from .element_wise import Step

Function: TypeAlias = str | tuple[Any, ...] | None
"""Its name in the library's module, with the arguments behind the inputs, and last, where there are some, a dictionary
of those with names; strings that are members of the desc stand for their values. None where there is none."""


class Functions(NamedTuple):
    """Of one operator."""

    numpy: Function = None
    torch: Function = None
    """Those of `ops.aten` write into a tensor as others do, which those of `nn.functional` can't."""
    onnxruntime: Function = None
    """A node, with constants behind the inputs, and attributes."""


def _all(name: str, torch: str = "", onnx: str = "") -> Functions:
    """Of the same name everywhere."""
    return Functions(name, torch or name, onnx or name.capitalize())


_CLIP = Functions(("clip", "Min", "Max"), ("clamp", "Min", "Max"), ("Clip", "Min", "Max"))
_COPY = Functions("positive", "ops.aten.clone.out", "Identity")
_TANH = _all("tanh")

# PyTorch's quantised tensors, which are no arguments of `torch` functions on arrays, are made in `peers.py`.
FUNCTIONS: dict[str, Functions] = {
    "ACTIVATION_CELU": Functions(None, ("ops.aten.celu.out", "Alpha"), ("Celu", {"alpha": "Alpha"})),
    "ACTIVATION_ELU": Functions(None, ("ops.aten.elu.out", "Alpha"), ("Elu", {"alpha": "Alpha"})),
    "ACTIVATION_GELU": Functions(None, "ops.aten.gelu.out", "Gelu"),
    "ACTIVATION_HARD_SIGMOID": Functions(
        None, "ops.aten.hardsigmoid.out", ("HardSigmoid", {"alpha": "Alpha", "beta": "Beta"})
    ),
    "ACTIVATION_HARD_SWISH": Functions(None, "ops.aten.hardswish.out", "HardSwish"),
    "ACTIVATION_IDENTITY": _COPY,
    "ACTIVATION_LEAKY_RELU": Functions(None, ("ops.aten.leaky_relu.out", "Alpha"), ("LeakyRelu", {"alpha": "Alpha"})),
    "ACTIVATION_PARAMETERIZED_RELU": Functions(None, None, "PRelu"),
    "ACTIVATION_PARAMETRIC_SOFTPLUS": Functions(None, ("ops.aten.softplus.out", "Beta")),
    "ACTIVATION_RELU": Functions(("maximum", 0), ("clamp_min", 0), "Relu"),
    "ACTIVATION_SCALED_ELU": Functions(
        None, ("ops.aten.elu.out", "Alpha", "Gamma"), ("Selu", {"alpha": "Alpha", "gamma": "Gamma"})
    ),
    "ACTIVATION_SHRINK": Functions(
        None, ("ops.aten.softshrink.out", "Bias"), ("Shrink", {"bias": "Bias", "lambd": "Threshold"})
    ),
    "ACTIVATION_SIGMOID": Functions(None, "sigmoid", "Sigmoid"),
    "ACTIVATION_SOFTPLUS": Functions(None, "ops.aten.softplus.out", "Softplus"),
    "ACTIVATION_SOFTSIGN": Functions(None, "nn.functional.softsign", "Softsign"),
    "ACTIVATION_SWISH": Functions(
        None, "ops.aten.silu.out", ("com.microsoft.QuickGelu", {"alpha": "SigmoidInputScale"})
    ),
    "ACTIVATION_TANH": _TANH,
    "ACTIVATION_THRESHOLDED_RELU": Functions(
        None, ("ops.aten.threshold.out", "Alpha", 0), ("ThresholdedRelu", {"alpha": "Alpha"})
    ),
    "ELEMENT_WISE_ABS": _all("abs"),
    "ELEMENT_WISE_ACOS": _all("arccos", "acos", "Acos"),
    "ELEMENT_WISE_ACOSH": _all("arccosh", "acosh", "Acosh"),
    "ELEMENT_WISE_ADD": _all("add"),
    "ELEMENT_WISE_ASIN": _all("arcsin", "asin", "Asin"),
    "ELEMENT_WISE_ASINH": _all("arcsinh", "asinh", "Asinh"),
    "ELEMENT_WISE_ATAN": _all("arctan", "atan", "Atan"),
    "ELEMENT_WISE_ATANH": _all("arctanh", "atanh", "Atanh"),
    "ELEMENT_WISE_ATAN_YX": Functions("arctan2", "atan2"),
    "ELEMENT_WISE_BIT_AND": _all("bitwise_and", onnx="BitwiseAnd"),
    "ELEMENT_WISE_BIT_COUNT": Functions("bitwise_count"),
    "ELEMENT_WISE_BIT_NOT": _all("invert", "bitwise_not", "BitwiseNot"),
    "ELEMENT_WISE_BIT_OR": _all("bitwise_or", onnx="BitwiseOr"),
    "ELEMENT_WISE_BIT_SHIFT_LEFT": Functions("left_shift", "bitwise_left_shift", ("BitShift", {"direction": "LEFT"})),
    "ELEMENT_WISE_BIT_SHIFT_RIGHT": Functions(
        "right_shift", "bitwise_right_shift", ("BitShift", {"direction": "RIGHT"})
    ),
    "ELEMENT_WISE_BIT_XOR": _all("bitwise_xor", onnx="BitwiseXor"),
    "ELEMENT_WISE_CEIL": _all("ceil"),
    "ELEMENT_WISE_CLIP": _CLIP,
    "ELEMENT_WISE_CLIP1": _CLIP,
    "ELEMENT_WISE_CONSTANT_POW": Functions(("power", "Exponent"), ("pow", "Exponent"), ("Pow", "Exponent")),
    "ELEMENT_WISE_COS": _all("cos"),
    "ELEMENT_WISE_COSH": _all("cosh"),
    "ELEMENT_WISE_DEQUANTIZE_LINEAR": Functions(onnxruntime="DequantizeLinear"),
    "ELEMENT_WISE_DIVIDE": _all("divide", "div", "Div"),
    "ELEMENT_WISE_ERF": Functions(None, "erf", "Erf"),
    "ELEMENT_WISE_EXP": _all("exp"),
    "ELEMENT_WISE_FLOOR": _all("floor"),
    "ELEMENT_WISE_IDENTITY": _COPY,
    "ELEMENT_WISE_IF": _all("where"),
    "ELEMENT_WISE_IS_INFINITY": _all("isinf", "ops.aten.isinf.out", "IsInf"),
    "ELEMENT_WISE_IS_NAN": _all("isnan", "ops.aten.isnan.out", "IsNaN"),
    "ELEMENT_WISE_LOG": _all("log"),
    "ELEMENT_WISE_LOGICAL_AND": _all("logical_and", onnx="And"),
    "ELEMENT_WISE_LOGICAL_EQUALS": _all("equal", "eq", "Equal"),
    "ELEMENT_WISE_LOGICAL_GREATER_THAN": _all("greater", "gt", "Greater"),
    "ELEMENT_WISE_LOGICAL_GREATER_THAN_OR_EQUAL": _all("greater_equal", "ge", "GreaterOrEqual"),
    "ELEMENT_WISE_LOGICAL_LESS_THAN": _all("less", "lt", "Less"),
    "ELEMENT_WISE_LOGICAL_LESS_THAN_OR_EQUAL": _all("less_equal", "le", "LessOrEqual"),
    "ELEMENT_WISE_LOGICAL_NOT": _all("logical_not", onnx="Not"),
    "ELEMENT_WISE_LOGICAL_OR": _all("logical_or", onnx="Or"),
    "ELEMENT_WISE_LOGICAL_XOR": _all("logical_xor", onnx="Xor"),
    "ELEMENT_WISE_MAX": _all("fmax", onnx="Max"),
    "ELEMENT_WISE_MEAN": Functions(None, None, "Mean"),
    "ELEMENT_WISE_MIN": _all("fmin", onnx="Min"),
    "ELEMENT_WISE_MODULUS_FLOOR": Functions("remainder", "remainder"),
    "ELEMENT_WISE_MODULUS_TRUNCATE": Functions("fmod", "fmod", ("Mod", {"fmod": 1})),
    "ELEMENT_WISE_MULTIPLY": _all("multiply", "mul", "Mul"),
    "ELEMENT_WISE_NEGATE": _all("negative", "neg", "Neg"),
    "ELEMENT_WISE_POW": _all("power", "pow", "Pow"),
    "ELEMENT_WISE_QUANTIZE_LINEAR": Functions(onnxruntime="QuantizeLinear"),
    "ELEMENT_WISE_QUANTIZED_LINEAR_ADD": Functions(onnxruntime="com.microsoft.QLinearAdd"),
    "ELEMENT_WISE_RECIP": _all("reciprocal"),
    "ELEMENT_WISE_ROUND": _all("rint", "round", "Round"),
    "ELEMENT_WISE_SIGN": _all("sign"),
    "ELEMENT_WISE_SIN": _all("sin"),
    "ELEMENT_WISE_SINH": _all("sinh"),
    "ELEMENT_WISE_SQRT": _all("sqrt"),
    "ELEMENT_WISE_SUBTRACT": _all("subtract", "sub", "Sub"),
    "ELEMENT_WISE_TAN": _all("tan"),
    "ELEMENT_WISE_TANH": _TANH,
    "ELEMENT_WISE_THRESHOLD": Functions(("maximum", "Min"), ("clamp_min", "Min"), ("Max", "Min")),
}
OF_INTEGERS: dict[str, Functions] = {
    # Of what is positive, as the rows' integers are, floors are truncated.
    "ELEMENT_WISE_DIVIDE": Functions("floor_divide", ("div", {"rounding_mode": "trunc"}), "Div"),
    "ELEMENT_WISE_MODULUS_FLOOR": Functions("remainder", "remainder", "Mod"),
}
"""Where those of integers are others."""


def array_function(library: str, module: Any, step: Step) -> Callable[..., Any] | None:
    """``function(*inputs, out)``, which gives the result: the output, or new memory where it only can so."""
    found = _call_of(library, step)
    if found is None:
        return None
    name, given, named = found
    function = attrgetter(name)(module)
    if (library, name) == ("numpy", "where") or name.startswith("nn.functional"):
        return lambda *arrays: function(*arrays[:-1], *given, **named)
    return lambda *arrays: function(*arrays[:-1], *given, out=arrays[-1], **named)


def node_of(step: Step) -> tuple[str, list[Any], dict[str, Any]] | None:
    """ONNX's operator, with its domain before it where that is another, its constant inputs and its attributes."""
    return _call_of("onnxruntime", step)


def _call_of(library: str, step: Step) -> tuple[str, list[Any], dict[str, Any]] | None:
    """The name of what a library computes an operator by, the arguments behind the inputs, and those with names."""
    functions = FUNCTIONS.get(step.operator, Functions())
    if np.dtype(step.dtype).kind != "f":
        functions = OF_INTEGERS.get(step.operator, functions)
    function = getattr(functions, library)
    members = dict(step.members)
    if function is None or "ScaleBias" in members:
        return None
    name, *given = function if isinstance(function, tuple) else (function,)
    named = given.pop() if given and isinstance(given[-1], dict) else {}
    values = {key: members.get(value, value) for key, value in named.items()}
    return name, [members.get(value, value) for value in given], values
