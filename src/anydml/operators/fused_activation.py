"""Activations that other operators apply to their results: which may be, and how.

Source: the page on fused activations and the feature level history. The page gives no level of its own for an
activation: it may be fused from the level on that has it, but for the last three.
"""

from __future__ import annotations

from ..core.enums import FeatureLevel
from ..core.strided_layout import Array
from . import OPERATORS, spec_of
from .schema import OperatorDesc

_ANYWHERE = {
    **dict.fromkeys(
        (
            "ACTIVATION_ELU",
            "ACTIVATION_HARD_SIGMOID",
            "ACTIVATION_IDENTITY",
            "ACTIVATION_LEAKY_RELU",
            "ACTIVATION_LINEAR",
            "ACTIVATION_PARAMETRIC_SOFTPLUS",
            "ACTIVATION_RELU",
            "ACTIVATION_SCALED_ELU",
            "ACTIVATION_SCALED_TANH",
            "ACTIVATION_SIGMOID",
            "ACTIVATION_SOFTPLUS",
            "ACTIVATION_SOFTSIGN",
            "ACTIVATION_TANH",
            "ACTIVATION_THRESHOLDED_RELU",
        ),
        FeatureLevel.LEVEL_1_0,
    ),
    "ACTIVATION_SHRINK": FeatureLevel.LEVEL_2_0,
}
_SOMEWHERE = {
    "ELEMENT_WISE_CLIP": (FeatureLevel.LEVEL_6_0, ("CONVOLUTION", "GEMM")),
    "ACTIVATION_SOFTMAX": (FeatureLevel.LEVEL_6_1, ("GEMM",)),
    "ACTIVATION_SOFTMAX1": (FeatureLevel.LEVEL_6_1, ("GEMM",)),
}

FUSIBLE = tuple(name for name in OPERATORS if name in (*_ANYWHERE, *_SOMEWHERE))
"""What may be fused into some operator."""


def fused_since(activation: str, operator: str) -> FeatureLevel | None:
    """The feature level from which on an activation may be fused into an operator; None where it never may."""
    since, operators = _SOMEWHERE.get(activation, (None, ()))
    return since if operator in operators else _ANYWHERE.get(activation)


def activated(activation: OperatorDesc | None, y: Array) -> Array:
    """f(y), in the type that y was computed in; y where there is no activation."""
    spec = spec_of(activation)
    if spec is None:
        return y
    result = spec.reference(activation, y)
    assert not isinstance(result, tuple)
    return result
