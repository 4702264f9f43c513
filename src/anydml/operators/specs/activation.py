"""Activations of each element: f(x). All may be fused into other operators, and then have no tensors.

Decisions where the pages are silent: floats are computed in double precision and rounded once, but for exponentials of
FLOAT32 that nothing scales before, which are within 1 unit in the last place; NaN stays NaN, as in PyTorch, also where
a formula's comparison would make a number of it; formulas are taken at their limits where they overflow or have no
value at an infinity. Integers of SHRINK are computed in double precision too, truncated and saturated. SHRINK has
integers from feature level 5.1 on, as its page says; the feature level history has them in 2.1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...core.enums import FeatureLevel, OperatorType
from ...core.strided_layout import Array
from ..constraints import rounded, same, sizes_of
from ..schema import (
    FLOAT,
    FUSED,
    Choices,
    ConstraintFailure,
    LevelRequirement,
    OperatorDesc,
    OperatorSpec,
    SupportTable,
    Tensor,
    no_level_requirements,
    support_table,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Activation(OperatorDesc):
    InputTensor: Tensor = FUSED
    OutputTensor: Tensor = FUSED


@dataclass(frozen=True, slots=True, kw_only=True)
class _OfAlpha(_Activation):
    Alpha: FLOAT


@dataclass(frozen=True, slots=True, kw_only=True)
class _OfAlphaAndBeta(_Activation):
    Alpha: FLOAT
    Beta: FLOAT


@dataclass(frozen=True, slots=True, kw_only=True)
class DML_ACTIVATION_ELU_OPERATOR_DESC(_OfAlpha):
    """The exponential linear unit: f(x) = x where x >= 0, else Alpha * (e^x - 1). May run in-place.

    Args:
        InputTensor: the elements.
        OutputTensor: the results, of the same type and sizes.
        Alpha: minus the limit at minus infinity; commonly 1.

    Constraints:
        (C1) InputTensor and OutputTensor have the same DataType.
        (C2) InputTensor and OutputTensor have the same DimensionCount and Sizes.

    Source: the page of DML_ACTIVATION_ELU_OPERATOR_DESC; since feature level 1.0.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class DML_ACTIVATION_HARD_SIGMOID_OPERATOR_DESC(_OfAlphaAndBeta):
    """A sigmoid of straight lines: f(x) = max(0, min(Alpha * x + Beta, 1)). May run in-place.

    Args:
        InputTensor: the elements.
        OutputTensor: the results, of the same type and sizes.
        Alpha: the slope between 0 and 1; commonly 0.2.
        Beta: the value at 0; commonly 0.5.

    Constraints:
        (C1) InputTensor and OutputTensor have the same DataType.
        (C2) InputTensor and OutputTensor have the same DimensionCount and Sizes.

    Source: the page of DML_ACTIVATION_HARD_SIGMOID_OPERATOR_DESC; since feature level 1.0.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class DML_ACTIVATION_IDENTITY_OPERATOR_DESC(_Activation):
    """f(x) = x, a copy of bits. May run in-place.

    Args:
        InputTensor: the elements.
        OutputTensor: the results, of the same type and sizes.

    Constraints:
        (C1) InputTensor and OutputTensor have the same DataType.
        (C2) InputTensor and OutputTensor have the same DimensionCount and Sizes.

    Source: the page of DML_ACTIVATION_IDENTITY_OPERATOR_DESC; since feature level 1.0.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class DML_ACTIVATION_LEAKY_RELU_OPERATOR_DESC(_OfAlpha):
    """f(x) = x where x >= 0, else Alpha * x. May run in-place.

    Args:
        InputTensor: the elements.
        OutputTensor: the results, of the same type and sizes.
        Alpha: the slope below 0; commonly 0.01.

    Constraints:
        (C1) InputTensor and OutputTensor have the same DataType.
        (C2) InputTensor and OutputTensor have the same DimensionCount and Sizes.

    Source: the page of DML_ACTIVATION_LEAKY_RELU_OPERATOR_DESC; since feature level 1.0.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class DML_ACTIVATION_LINEAR_OPERATOR_DESC(_OfAlphaAndBeta):
    """f(x) = Alpha * x + Beta. May run in-place.

    Args:
        InputTensor: the elements.
        OutputTensor: the results, of the same type and sizes.
        Alpha: the slope.
        Beta: the value at 0.

    Constraints:
        (C1) InputTensor and OutputTensor have the same DataType.
        (C2) InputTensor and OutputTensor have the same DimensionCount and Sizes.

    Source: the page of DML_ACTIVATION_LINEAR_OPERATOR_DESC; since feature level 1.0.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class DML_ACTIVATION_PARAMETRIC_SOFTPLUS_OPERATOR_DESC(_OfAlphaAndBeta):
    """f(x) = Alpha * ln(1 + e^(Beta * x)). May run in-place.

    Args:
        InputTensor: the elements.
        OutputTensor: the results, of the same type and sizes.
        Alpha: the scale of results.
        Beta: the scale of elements.

    Constraints:
        (C1) InputTensor and OutputTensor have the same DataType.
        (C2) InputTensor and OutputTensor have the same DimensionCount and Sizes.

    Source: the page of DML_ACTIVATION_PARAMETRIC_SOFTPLUS_OPERATOR_DESC; since feature level 1.0.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class DML_ACTIVATION_RELU_OPERATOR_DESC(_Activation):
    """The rectified linear unit: f(x) = max(0, x). May run in-place.

    Args:
        InputTensor: the elements.
        OutputTensor: the results, of the same type and sizes.

    Constraints:
        (C1) InputTensor and OutputTensor have the same DataType.
        (C2) InputTensor and OutputTensor have the same DimensionCount and Sizes.

    Source: the page of DML_ACTIVATION_RELU_OPERATOR_DESC; since feature level 1.0.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class DML_ACTIVATION_SCALED_ELU_OPERATOR_DESC(_Activation):
    """f(x) = Gamma * x where x > 0, else Gamma * Alpha * (e^x - 1). May run in-place.

    Args:
        InputTensor: the elements.
        OutputTensor: the results, of the same type and sizes.
        Alpha: commonly 1.6732.
        Gamma: commonly 1.0507.

    Constraints:
        (C1) InputTensor and OutputTensor have the same DataType.
        (C2) InputTensor and OutputTensor have the same DimensionCount and Sizes.

    Source: the page of DML_ACTIVATION_SCALED_ELU_OPERATOR_DESC; since feature level 1.0.
    """

    Alpha: FLOAT
    Gamma: FLOAT


@dataclass(frozen=True, slots=True, kw_only=True)
class DML_ACTIVATION_SCALED_TANH_OPERATOR_DESC(_OfAlphaAndBeta):
    """f(x) = Alpha * tanh(Beta * x). May run in-place.

    Args:
        InputTensor: the elements.
        OutputTensor: the results, of the same type and sizes.
        Alpha: the limit at infinity; commonly 1.
        Beta: the scale of elements; commonly 0.5.

    Constraints:
        (C1) InputTensor and OutputTensor have the same DataType.
        (C2) InputTensor and OutputTensor have the same DimensionCount and Sizes.

    Source: the page of DML_ACTIVATION_SCALED_TANH_OPERATOR_DESC; since feature level 1.0.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class DML_ACTIVATION_SIGMOID_OPERATOR_DESC(_Activation):
    """The logistic function: f(x) = 1 / (1 + e^-x). May run in-place.

    Args:
        InputTensor: the elements.
        OutputTensor: the results, of the same type and sizes.

    Constraints:
        (C1) InputTensor and OutputTensor have the same DataType.
        (C2) InputTensor and OutputTensor have the same DimensionCount and Sizes.

    Source: the page of DML_ACTIVATION_SIGMOID_OPERATOR_DESC; since feature level 1.0.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class DML_ACTIVATION_SOFTPLUS_OPERATOR_DESC(_Activation):
    """f(x) = ln(1 + e^(Steepness * x)) / Steepness. May run in-place.

    Args:
        InputTensor: the elements.
        OutputTensor: the results, of the same type and sizes.
        Steepness: how close to RELU; commonly 1. Below feature level 6.4 at least 1.

    Constraints:
        (C1) InputTensor and OutputTensor have the same DataType.
        (C2) InputTensor and OutputTensor have the same DimensionCount and Sizes.

    Source: the page of DML_ACTIVATION_SOFTPLUS_OPERATOR_DESC; since feature level 1.0.
    """

    Steepness: FLOAT


@dataclass(frozen=True, slots=True, kw_only=True)
class DML_ACTIVATION_SOFTSIGN_OPERATOR_DESC(_Activation):
    """f(x) = x / (1 + |x|). May run in-place.

    Args:
        InputTensor: the elements.
        OutputTensor: the results, of the same type and sizes.

    Constraints:
        (C1) InputTensor and OutputTensor have the same DataType.
        (C2) InputTensor and OutputTensor have the same DimensionCount and Sizes.

    Source: the page of DML_ACTIVATION_SOFTSIGN_OPERATOR_DESC; since feature level 1.0.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class DML_ACTIVATION_TANH_OPERATOR_DESC(_Activation):
    """The hyperbolic tangent of each element. May run in-place.

    Args:
        InputTensor: the elements.
        OutputTensor: the results, of the same type and sizes.

    Constraints:
        (C1) InputTensor and OutputTensor have the same DataType.
        (C2) InputTensor and OutputTensor have the same DimensionCount and Sizes.

    Source: the page of DML_ACTIVATION_TANH_OPERATOR_DESC; since feature level 1.0.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class DML_ACTIVATION_THRESHOLDED_RELU_OPERATOR_DESC(_OfAlpha):
    """f(x) = x where x > Alpha, else 0. May run in-place.

    Args:
        InputTensor: the elements.
        OutputTensor: the results, of the same type and sizes.
        Alpha: the threshold; commonly 1.

    Constraints:
        (C1) InputTensor and OutputTensor have the same DataType.
        (C2) InputTensor and OutputTensor have the same DimensionCount and Sizes.

    Source: the page of DML_ACTIVATION_THRESHOLDED_RELU_OPERATOR_DESC; since feature level 1.0.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class DML_ACTIVATION_SHRINK_OPERATOR_DESC(_Activation):
    """f(x) = x - Bias where x > Threshold, x + Bias where x < -Threshold, else 0. May run in-place.

    Args:
        InputTensor: the elements.
        OutputTensor: the results, of the same type and sizes.
        Bias: what results are nearer to 0 by; commonly 0.
        Threshold: the largest magnitude that gives 0; commonly 0.5.

    Constraints:
        (C1) InputTensor and OutputTensor have the same DataType.
        (C2) InputTensor and OutputTensor have the same DimensionCount and Sizes.

    Source: the page of DML_ACTIVATION_SHRINK_OPERATOR_DESC; since feature level 2.0.
    """

    Bias: FLOAT
    Threshold: FLOAT


def _constraints(desc: Any) -> Iterator[ConstraintFailure]:
    yield from same(desc, "(C1)", "DataType", "InputTensor", "OutputTensor")
    yield from same(desc, "(C2)", "DimensionCount", "InputTensor", "OutputTensor")


def _infer_sizes(desc: Any) -> dict[str, Choices]:
    return {"OutputTensor": sizes_of(desc.InputTensor)}


def _needs_of_softplus(desc: DML_ACTIVATION_SOFTPLUS_OPERATOR_DESC) -> Iterator[LevelRequirement]:
    if not desc.Steepness >= 1:
        yield LevelRequirement(FeatureLevel.LEVEL_6_4, "Steepness", str(desc.Steepness), "at least 1")


def _each(function: Callable[[Any, Array], Any]) -> Callable[..., Array]:
    """The reference of ``function(desc, x)``, computed in double precision; NaN stays NaN."""

    def reference(desc: Any, x: Array) -> Array:
        with np.errstate(all="ignore"):
            wide = x.astype(np.float64)
            return rounded(np.where(np.isnan(wide), wide, function(desc, wide)), x.dtype)

    return reference


def _shrink(desc: DML_ACTIVATION_SHRINK_OPERATOR_DESC, x: Array) -> Array:
    return np.where(x > desc.Threshold, x - desc.Bias, np.where(x < -desc.Threshold, x + desc.Bias, 0))


def _softsign(desc: DML_ACTIVATION_SOFTSIGN_OPERATOR_DESC, x: Array) -> Array:
    return np.where(np.isinf(x), np.sign(x), x / (1 + np.abs(x)))


_FLOATS = support_table("""
    DML_FEATURE_LEVEL_3_0 and above
    InputTensor  | Input  | 1 to 8 | FLOAT32, FLOAT16
    OutputTensor | Output | 1 to 8 | FLOAT32, FLOAT16
    DML_FEATURE_LEVEL_2_0 and above
    InputTensor  | Input  | 4 to 5 | FLOAT32, FLOAT16
    OutputTensor | Output | 4 to 5 | FLOAT32, FLOAT16
    DML_FEATURE_LEVEL_1_0 and above
    InputTensor  | Input  | 4      | FLOAT32, FLOAT16
    OutputTensor | Output | 4      | FLOAT32, FLOAT16
""")


def _spec(
    operator_type: OperatorType,
    desc: type[OperatorDesc],
    reference: Callable[..., Array],
    support: SupportTable = _FLOATS,
    needs: Callable[[Any], Iterator[LevelRequirement]] = no_level_requirements,
) -> OperatorSpec:
    return OperatorSpec(
        operator_type=operator_type,
        desc=desc,
        constraints=_constraints,
        infer_sizes=_infer_sizes,
        sizes_rule="(C2)",
        reference=reference,
        needs=needs,
        in_place=True,
        support=support,
    )


ACTIVATION_ELU = _spec(
    OperatorType.ACTIVATION_ELU,
    DML_ACTIVATION_ELU_OPERATOR_DESC,
    _each(lambda desc, x: np.where(x >= 0, x, desc.Alpha * np.expm1(x))),
)

ACTIVATION_HARD_SIGMOID = _spec(
    OperatorType.ACTIVATION_HARD_SIGMOID,
    DML_ACTIVATION_HARD_SIGMOID_OPERATOR_DESC,
    _each(lambda desc, x: np.clip(desc.Alpha * x + desc.Beta, 0, 1)),
)

ACTIVATION_IDENTITY = _spec(
    OperatorType.ACTIVATION_IDENTITY,
    DML_ACTIVATION_IDENTITY_OPERATOR_DESC,
    lambda desc, x: x,
)

ACTIVATION_LEAKY_RELU = _spec(
    OperatorType.ACTIVATION_LEAKY_RELU,
    DML_ACTIVATION_LEAKY_RELU_OPERATOR_DESC,
    _each(lambda desc, x: np.where(x >= 0, x, desc.Alpha * x)),
)

ACTIVATION_LINEAR = _spec(
    OperatorType.ACTIVATION_LINEAR,
    DML_ACTIVATION_LINEAR_OPERATOR_DESC,
    _each(lambda desc, x: desc.Alpha * x + desc.Beta),
)

ACTIVATION_PARAMETRIC_SOFTPLUS = _spec(
    OperatorType.ACTIVATION_PARAMETRIC_SOFTPLUS,
    DML_ACTIVATION_PARAMETRIC_SOFTPLUS_OPERATOR_DESC,
    _each(lambda desc, x: desc.Alpha * np.logaddexp(0, desc.Beta * x)),
)

ACTIVATION_RELU = _spec(
    OperatorType.ACTIVATION_RELU,
    DML_ACTIVATION_RELU_OPERATOR_DESC,
    _each(lambda desc, x: np.maximum(0, x)),
    support_table("""
        DML_FEATURE_LEVEL_5_1 and above
        InputTensor  | Input  | 1 to 8 | FLOAT32, FLOAT16, INT32, INT16, INT8
        OutputTensor | Output | 1 to 8 | FLOAT32, FLOAT16, INT32, INT16, INT8
        DML_FEATURE_LEVEL_3_0 and above
        InputTensor  | Input  | 1 to 8 | FLOAT32, FLOAT16
        OutputTensor | Output | 1 to 8 | FLOAT32, FLOAT16
        DML_FEATURE_LEVEL_2_0 and above
        InputTensor  | Input  | 4 to 5 | FLOAT32, FLOAT16
        OutputTensor | Output | 4 to 5 | FLOAT32, FLOAT16
        DML_FEATURE_LEVEL_1_0 and above
        InputTensor  | Input  | 4      | FLOAT32, FLOAT16
        OutputTensor | Output | 4      | FLOAT32, FLOAT16
    """),
)

ACTIVATION_SCALED_ELU = _spec(
    OperatorType.ACTIVATION_SCALED_ELU,
    DML_ACTIVATION_SCALED_ELU_OPERATOR_DESC,
    _each(lambda desc, x: desc.Gamma * np.where(x > 0, x, desc.Alpha * np.expm1(x))),
)

ACTIVATION_SCALED_TANH = _spec(
    OperatorType.ACTIVATION_SCALED_TANH,
    DML_ACTIVATION_SCALED_TANH_OPERATOR_DESC,
    _each(lambda desc, x: desc.Alpha * np.tanh(desc.Beta * x)),
)

ACTIVATION_SIGMOID = _spec(
    OperatorType.ACTIVATION_SIGMOID,
    DML_ACTIVATION_SIGMOID_OPERATOR_DESC,
    _each(lambda desc, x: 1 / (1 + np.exp(-x))),
)

ACTIVATION_SOFTPLUS = _spec(
    OperatorType.ACTIVATION_SOFTPLUS,
    DML_ACTIVATION_SOFTPLUS_OPERATOR_DESC,
    _each(lambda desc, x: np.logaddexp(0, desc.Steepness * x) / desc.Steepness),
    needs=_needs_of_softplus,
)

ACTIVATION_SOFTSIGN = _spec(
    OperatorType.ACTIVATION_SOFTSIGN,
    DML_ACTIVATION_SOFTSIGN_OPERATOR_DESC,
    _each(_softsign),
)

ACTIVATION_TANH = _spec(
    OperatorType.ACTIVATION_TANH,
    DML_ACTIVATION_TANH_OPERATOR_DESC,
    _each(lambda desc, x: np.tanh(x)),
)

ACTIVATION_THRESHOLDED_RELU = _spec(
    OperatorType.ACTIVATION_THRESHOLDED_RELU,
    DML_ACTIVATION_THRESHOLDED_RELU_OPERATOR_DESC,
    _each(lambda desc, x: np.where(x > desc.Alpha, x, 0)),
)

ACTIVATION_SHRINK = _spec(
    OperatorType.ACTIVATION_SHRINK,
    DML_ACTIVATION_SHRINK_OPERATOR_DESC,
    _each(_shrink),
    support_table("""
        DML_FEATURE_LEVEL_5_1 and above
        InputTensor  | Input  | 1 to 8 | FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8
        OutputTensor | Output | 1 to 8 | FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8
        DML_FEATURE_LEVEL_3_0 and above
        InputTensor  | Input  | 1 to 8 | FLOAT32, FLOAT16
        OutputTensor | Output | 1 to 8 | FLOAT32, FLOAT16
        DML_FEATURE_LEVEL_2_0 and above
        InputTensor  | Input  | 4 to 5 | FLOAT32, FLOAT16
        OutputTensor | Output | 4 to 5 | FLOAT32, FLOAT16
    """),
)
