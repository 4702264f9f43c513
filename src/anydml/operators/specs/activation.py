"""Activations of each element: f(x), and the gradients of RELU. All but those of two operands, SWISH and HARD_SWISH may be
fused into other operators, and then have no tensors.

Decisions where the pages are silent: floats are computed in double precision and rounded once, but for exponentials of
FLOAT32 that nothing scales before, GELU, HARD_SWISH, SOFTSIGN and SWISH, which are within 1 unit in the last place; NaN
stays NaN, as in PyTorch, also where a formula's comparison would make a number of it; formulas are taken at their limits where they overflow or have no
value at an infinity. Integers of SHRINK are computed in double precision too, truncated and saturated. SHRINK has
integers from feature level 5.1 on, as its page says; the feature level history has them in 2.1. PARAMETERIZED_RELU
computes floats in the next wider type, and integers modulo 2^n. GELU, SWISH and HARD_SWISH of minus infinity are 0, where
their factors are. RELU_GRAD of NaN is 0, as its page's formula has it; the page does not say that it runs in-place.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import copysign, erfc, inf, sqrt
from typing import Any

import numpy as np

from ...core.enums import FeatureLevel, TensorDataType
from ...core.strided_layout import Array
from ..pointwise import POSITIVE, SIGNED, Constants, Pointwise, in_double, in_wider_type
from ..schema import LevelRequirement


def _shrink(desc: Any, x: Array) -> Array:
    return np.where(x > desc.Threshold, x - desc.Bias, np.where(x < -desc.Threshold, x + desc.Bias, 0))


def _shrink_by_torch(torch: Any, desc: Any, x: Any) -> Any:
    y = torch.where(x > desc.Threshold, x - desc.Bias, torch.where(x < -desc.Threshold, x + desc.Bias, 0.0))
    return torch.where(x.isnan(), x, y)


def _product(x: Array, factor: Any) -> Array:
    """x * factor, and 0 where that is 0 and x infinite."""
    return np.where(np.isinf(x) & (factor == 0), 0, x * factor)


def _product_by_torch(torch: Any, x: Any, factor: Any) -> Any:
    return torch.where(x.isinf() & (factor == 0), 0.0, x * factor)


def _gelu(desc: Any, x: Array) -> Array:
    # 1 + erf(z) is erfc(-z), which keeps its digits where z is far below 0.
    return _product(x, np.vectorize(erfc, "d")(-x / sqrt(2)) / 2)


def _softplus(torch: Any, x: Any) -> Any:
    """ln(1 + e^x)"""
    return x.clamp(min=0) + torch.log1p(torch.exp(-x.abs()))


def _softplus_level(desc: Any) -> Iterator[LevelRequirement]:
    if not desc.Steepness >= 1:
        yield LevelRequirement(FeatureLevel.LEVEL_6_4, "Steepness", str(desc.Steepness), "at least 1")


def _softplus_code(desc: Any, data_type: TensorDataType) -> Constants:
    steepness = desc.Steepness
    if steepness == 1:
        return "SOFTPLUS", ()
    return "SCALED_SOFTPLUS", (1 / steepness if steepness else copysign(inf, steepness), steepness)


_TABLE_1 = """
    3.0 | 1 to 8 | FLOAT32, FLOAT16
    2.0 | 4 to 5 | FLOAT32, FLOAT16
    1.0 | 4      | FLOAT32, FLOAT16
"""

_TABLE_2 = """
    5.1 | 1 to 8 | FLOAT32, FLOAT16, INT32, INT16, INT8
    3.0 | 1 to 8 | FLOAT32, FLOAT16
    2.0 | 4 to 5 | FLOAT32, FLOAT16
    1.0 | 4      | FLOAT32, FLOAT16
"""

_TABLE_3 = """
    6.2 | 1 to 8 | FLOAT32, FLOAT16
"""

ACTIVATION_ELU = Pointwise(
    summary="The exponential linear unit: f(x) = x where x >= 0, else Alpha * (e^x - 1).",
    members={
        "Alpha": "minus the limit at minus infinity; by default 1.",
    },
    fused=True,
    reference=in_double(lambda desc, x: np.where(x >= 0, x, desc.Alpha * np.expm1(x))),
    native=("ELU", "Alpha"),
    torch=lambda torch, desc, x: torch.where(x >= 0, x, desc.Alpha * torch.expm1(x)),
    example={"Alpha": 1},
    typical={"Alpha": 1.0},
    doctest="""
        >>> elu([1.0, -1.0])
        array([ 1.        , -0.63212055], dtype=float32)
    """,
    support=_TABLE_1,
)

ACTIVATION_HARD_SIGMOID = Pointwise(
    summary="A sigmoid of straight lines: f(x) = max(0, min(Alpha * x + Beta, 1)).",
    members={
        "Alpha": "the slope between 0 and 1; by default 0.2.",
        "Beta": "the value at 0; by default 0.5.",
    },
    fused=True,
    reference=in_double(lambda desc, x: np.clip(desc.Alpha * x + desc.Beta, 0, 1)),
    native=("HARD_SIGMOID", "Alpha", "Beta"),
    torch=lambda torch, desc, x: (desc.Alpha * x + desc.Beta).clamp(0, 1),
    example={"Alpha": 0.25, "Beta": 0.5},
    typical={"Alpha": 0.2, "Beta": 0.5},
    doctest="""
        >>> hard_sigmoid([-4.0, 0.0, 1.0])
        array([0. , 0.5, 0.7], dtype=float32)
    """,
    support=_TABLE_1,
)

ACTIVATION_IDENTITY = Pointwise(
    summary="f(x) = x, a copy of bits.",
    fused=True,
    reference=lambda desc, x: x,
    native="COPY",
    torch=lambda torch, desc, x: x,
    torch_in_own_type="all",
    support=_TABLE_1,
)

ACTIVATION_LEAKY_RELU = Pointwise(
    summary="f(x) = x where x >= 0, else Alpha * x.",
    members={
        "Alpha": "the slope below 0; by default 0.01.",
    },
    fused=True,
    reference=in_double(lambda desc, x: np.where(x >= 0, x, desc.Alpha * x)),
    native=("LEAKY_RELU", "Alpha"),
    torch=lambda torch, desc, x: torch.where(x >= 0, x, desc.Alpha * x),
    example={"Alpha": 0.25},
    typical={"Alpha": 0.01},
    doctest="""
        >>> leaky_relu([1.0, -1.0])
        array([ 1.  , -0.01], dtype=float32)
    """,
    support=_TABLE_1,
)

ACTIVATION_LINEAR = Pointwise(
    summary="f(x) = Alpha * x + Beta.",
    members={
        "Alpha": "the slope.",
        "Beta": "the value at 0.",
    },
    fused=True,
    reference=in_double(lambda desc, x: desc.Alpha * x + desc.Beta),
    native=("LINEAR", "Alpha", "Beta"),
    torch=lambda torch, desc, x: desc.Alpha * x + desc.Beta,
    example={"Alpha": 2, "Beta": 1},
    defaults={"Beta": 0.0},
    doctest="""
        >>> linear([1.0, 2.0], 10, 1)
        array([11., 21.], dtype=float32)
    """,
    support=_TABLE_1,
)

ACTIVATION_PARAMETERIZED_RELU = Pointwise(
    summary="f(x) = x where x >= 0, else slope * x, modulo 2^n of integers.",
    inputs=("InputTensor", "SlopeTensor"),
    members={
        "SlopeTensor": "a slope for each element, of the same type and sizes.",
    },
    reference=in_wider_type(lambda desc, x, slope: np.where(x >= 0, x, slope * x)),
    native="PARAMETERIZED_RELU",
    example={"InputTensor": SIGNED, "SlopeTensor": POSITIVE},
    doctest="""
        >>> parameterized_relu([[1.0, -2.0], [-3.0, 4.0]], [[0.5], [10.0]])
        array([[  1.,  -1.],
               [-30.,   4.]], dtype=float32)
    """,
    support=_TABLE_2,
)

ACTIVATION_PARAMETRIC_SOFTPLUS = Pointwise(
    summary="f(x) = Alpha * ln(1 + e^(Beta * x)).",
    members={
        "Alpha": "the scale of results.",
        "Beta": "the scale of elements.",
    },
    fused=True,
    reference=in_double(lambda desc, x: desc.Alpha * np.logaddexp(0, desc.Beta * x)),
    native=("SCALED_SOFTPLUS", "Alpha", "Beta"),
    torch=lambda torch, desc, x: desc.Alpha * _softplus(torch, desc.Beta * x),
    example={"Alpha": 2, "Beta": 0.5},
    doctest="""
        >>> parametric_softplus([0.0, 1.0], 2, 1)
        array([1.3862944, 2.6265233], dtype=float32)
    """,
    support=_TABLE_1,
)

ACTIVATION_RELU = Pointwise(
    summary="The rectified linear unit: f(x) = max(0, x).",
    fused=True,
    reference=in_double(lambda desc, x: np.maximum(0, x)),
    native="RELU",
    torch=lambda torch, desc, x: x.clamp(min=0),
    torch_in_own_type="all",
    doctest="""
        >>> relu([1.0, -1.0])
        array([1., 0.], dtype=float32)
    """,
    support=_TABLE_2,
)

ACTIVATION_SCALED_ELU = Pointwise(
    summary="f(x) = Gamma * x where x > 0, else Gamma * Alpha * (e^x - 1).",
    members={
        "Alpha": "by default 1.6732.",
        "Gamma": "by default 1.0507.",
    },
    fused=True,
    reference=in_double(lambda desc, x: desc.Gamma * np.where(x > 0, x, desc.Alpha * np.expm1(x))),
    native=("SCALED_ELU", "Alpha", "Gamma"),
    torch=lambda torch, desc, x: desc.Gamma * torch.where(x > 0, x, desc.Alpha * torch.expm1(x)),
    example={"Alpha": 1.6732, "Gamma": 1.0507},
    typical={"Alpha": 1.6732, "Gamma": 1.0507},
    doctest="""
        >>> scaled_elu([1.0, -1.0])
        array([ 1.0507   , -1.1112876], dtype=float32)
    """,
    support=_TABLE_1,
)

ACTIVATION_SCALED_TANH = Pointwise(
    summary="f(x) = Alpha * tanh(Beta * x).",
    members={
        "Alpha": "the limit at infinity; by default 1.",
        "Beta": "the scale of elements; by default 0.5.",
    },
    fused=True,
    reference=in_double(lambda desc, x: desc.Alpha * np.tanh(desc.Beta * x)),
    native=("SCALED_TANH", "Alpha", "Beta"),
    torch=lambda torch, desc, x: desc.Alpha * torch.tanh(desc.Beta * x),
    example={"Alpha": 1, "Beta": 0.5},
    typical={"Alpha": 1.0, "Beta": 0.5},
    doctest="""
        >>> scaled_tanh([0.0, 1.0])
        array([0.        , 0.46211717], dtype=float32)
    """,
    support=_TABLE_1,
)

ACTIVATION_SIGMOID = Pointwise(
    summary="The logistic function: f(x) = 1 / (1 + e^-x).",
    fused=True,
    reference=in_double(lambda desc, x: 1 / (1 + np.exp(-x))),
    native="SIGMOID",
    torch="sigmoid",
    doctest="""
        >>> sigmoid([0.0, 2.0])
        array([0.5      , 0.8807971], dtype=float32)
    """,
    support=_TABLE_1,
)

ACTIVATION_SOFTPLUS = Pointwise(
    summary="f(x) = ln(1 + e^(Steepness * x)) / Steepness.",
    members={
        "Steepness": "how close to RELU; by default 1. Below feature level 6.4 at least 1.",
    },
    fused=True,
    level_requirements=_softplus_level,
    reference=in_double(lambda desc, x: np.logaddexp(0, desc.Steepness * x) / desc.Steepness),
    native=_softplus_code,
    torch=lambda torch, desc, x: _softplus(torch, desc.Steepness * x) / desc.Steepness,
    example={"Steepness": 1},
    typical={"Steepness": 1.0},
    doctest="""
        >>> softplus([0.0, 1.0])
        array([0.6931472, 1.3132616], dtype=float32)
    """,
    support=_TABLE_1,
)

ACTIVATION_SOFTSIGN = Pointwise(
    summary="f(x) = x / (1 + |x|).",
    fused=True,
    reference=in_double(lambda desc, x: np.where(np.isinf(x), np.sign(x), x / (1 + np.abs(x)))),
    native="SOFTSIGN",
    torch=lambda torch, desc, x: torch.where(x.isinf(), x.sign(), x / (1 + x.abs())),
    doctest="""
        >>> softsign([1.0, -3.0])
        array([ 0.5 , -0.75], dtype=float32)
    """,
    support=_TABLE_1,
)

ACTIVATION_TANH = Pointwise(
    summary="The hyperbolic tangent of each element.",
    fused=True,
    reference=in_double(lambda desc, x: np.tanh(x)),
    native="TANH",
    torch="tanh",
    doctest="""
        >>> tanh([0.0, 1.0])
        array([0.       , 0.7615942], dtype=float32)
    """,
    support=_TABLE_1,
)

ACTIVATION_THRESHOLDED_RELU = Pointwise(
    summary="f(x) = x where x > Alpha, else 0.",
    members={
        "Alpha": "the threshold; by default 1.",
    },
    fused=True,
    reference=in_double(lambda desc, x: np.where(x > desc.Alpha, x, 0)),
    native=("THRESHOLDED_RELU", "Alpha"),
    torch=lambda torch, desc, x: torch.where((x > desc.Alpha) | x.isnan(), x, 0.0),
    example={"Alpha": 0.5},
    typical={"Alpha": 1.0},
    doctest="""
        >>> thresholded_relu([0.5, 1.5])
        array([0. , 1.5], dtype=float32)
    """,
    support=_TABLE_1,
)

ACTIVATION_SHRINK = Pointwise(
    summary="f(x) = x - Bias where x > Threshold, x + Bias where x < -Threshold, else 0.",
    members={
        "Bias": "what results are nearer to 0 by; by default 0.",
        "Threshold": "the largest magnitude that gives 0; by default 0.5.",
    },
    fused=True,
    reference=in_double(_shrink),
    native=("SHRINK", "Bias", "Threshold"),
    torch=_shrink_by_torch,
    example={"Bias": 0.5, "Threshold": 0.5},
    typical={"Bias": 0.0, "Threshold": 0.5},
    doctest="""
        >>> shrink([-2.0, 0.25, 2.0], 0.5)
        array([-1.5,  0. ,  1.5], dtype=float32)
    """,
    support="""
        5.1 | 1 to 8 | FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8
        3.0 | 1 to 8 | FLOAT32, FLOAT16
        2.0 | 4 to 5 | FLOAT32, FLOAT16
    """,
)

ACTIVATION_CELU = Pointwise(
    summary=(
        "The continuously differentiable exponential linear unit: f(x) = max(0, x) + min(0, Alpha * (e^(x / Alpha) - 1))."
    ),
    members={
        "Alpha": "minus the limit at minus infinity; by default 1.",
    },
    fused=True,
    reference=in_double(lambda desc, x: np.where(x >= 0, x, desc.Alpha * np.expm1(x / np.float64(desc.Alpha)))),
    native=("CELU", "Alpha"),
    torch=lambda torch, desc, x: torch.where(x >= 0, x, desc.Alpha * torch.expm1(x / desc.Alpha)),
    example={"Alpha": 2},
    typical={"Alpha": 1.0},
    doctest="""
        >>> celu([1.0, -1.0], 2)
        array([ 1.        , -0.78693867], dtype=float32)
    """,
    support="""
        3.0 | 1 to 8 | FLOAT32, FLOAT16
    """,
)

ACTIVATION_RELU_GRAD = Pointwise(
    summary="The gradients of RELU: the incoming gradient for each element x where x > 0, else 0.",
    inputs=("InputTensor", "InputGradientTensor"),
    output="OutputGradientTensor",
    in_place=False,
    reference=lambda desc, x, gradient: np.where(x > 0, gradient, gradient.dtype.type(0)),
    native="RELU_GRAD",
    doctest="""
        >>> relu_grad([-2.0, 0.0, 3.0], [10.0, 20.0, 30.0])
        array([ 0.,  0., 30.], dtype=float32)
    """,
    support="""
        5.1 | 1 to 8 | FLOAT32, FLOAT16, INT32, INT16, INT8
        4.0 | 1 to 8 | FLOAT32, FLOAT16
        3.0 | 1 to 8 | FLOAT32, FLOAT16
    """,
)

ACTIVATION_GELU = Pointwise(
    summary="The Gaussian error linear unit: f(x) = x / 2 * (1 + erf(x / sqrt(2))).",
    fused=True,
    reference=in_double(_gelu),
    native="GELU",
    torch=lambda torch, desc, x: _product_by_torch(torch, x, torch.erfc(-x / sqrt(2)) / 2),
    doctest="""
        >>> gelu([-1.0, 1.0])
        array([-0.15865526,  0.8413448 ], dtype=float32)
    """,
    support="""
        5.1 | 1 to 8 | FLOAT32, FLOAT16
    """,
)

ACTIVATION_SWISH = Pointwise(
    summary="f(x) = x * sigmoid(SigmoidInputScale * x).",
    members={
        "SigmoidInputScale": "how close to RELU; by default 1.",
    },
    reference=in_double(lambda desc, x: _product(x, 1 / (1 + np.exp(-desc.SigmoidInputScale * x)))),
    native=("SWISH", "SigmoidInputScale"),
    torch=lambda torch, desc, x: _product_by_torch(torch, x, 1 / (1 + torch.exp(-desc.SigmoidInputScale * x))),
    example={"SigmoidInputScale": 1},
    typical={"SigmoidInputScale": 1.0},
    doctest="""
        >>> swish([-1.0, 2.0])
        array([-0.26894143,  1.7615942 ], dtype=float32)
    """,
    support=_TABLE_3,
)

ACTIVATION_HARD_SWISH = Pointwise(
    summary="f(x) = x * max(0, min(Alpha * x + Beta, 1)).",
    members={
        "Alpha": "the slope of the factor between 0 and 1; by default 1/6.",
        "Beta": "the factor at 0; by default 0.5.",
    },
    reference=in_double(lambda desc, x: _product(x, np.clip(desc.Alpha * x + desc.Beta, 0, 1))),
    native=("HARD_SWISH", "Alpha", "Beta"),
    torch=lambda torch, desc, x: _product_by_torch(torch, x, (desc.Alpha * x + desc.Beta).clamp(0, 1)),
    example={"Alpha": 0.25, "Beta": 0.5},
    typical={"Alpha": 1 / 6, "Beta": 0.5},
    doctest="""
        >>> hard_swish([-1.0, 1.0, 4.0], 0.25)
        array([-0.25,  0.75,  4.  ], dtype=float32)
    """,
    support=_TABLE_3,
)
