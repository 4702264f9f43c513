"""Activations that other operators apply to their results: which may be, and how.

Source: the page on fused activations and the feature level history. The page gives no level of its own for an
activation: it may be fused from the level on that has it, but for the last three.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..core.enums import FeatureLevel
from ..core.strided_layout import Array
from ..core.tensor_desc import DML_BUFFER_TENSOR_DESC
from .registry import Trait, spec, spec_of, with_trait
from .schema import OperatorDesc

_SOMEWHERE = {
    "ELEMENT_WISE_CLIP": (FeatureLevel.LEVEL_6_0, ("CONVOLUTION", "GEMM")),
    "ACTIVATION_SOFTMAX": (FeatureLevel.LEVEL_6_1, ("GEMM",)),
    "ACTIVATION_SOFTMAX1": (FeatureLevel.LEVEL_6_1, ("GEMM",)),
}

FUSIBLE = with_trait(Trait.FUSIBLE)
"""What may be fused into some operator."""


def fused_since(activation: str, operator: str) -> FeatureLevel | None:
    """The feature level from which on an activation may be fused into an operator; None where it never may."""
    since, operators = _SOMEWHERE.get(activation, (None, ()))
    if operator in operators:
        return since
    return None if activation in _SOMEWHERE or activation not in FUSIBLE else spec(activation).support.introduced


def activated(activation: OperatorDesc | None, y: Array) -> Array:
    """f(y), in the type that y was computed in; y where there is no activation."""
    spec = spec_of(activation)
    if spec is None:
        return y
    result = spec.reference(activation, y)
    assert not isinstance(result, tuple)
    return result


def kept_apart(activation: OperatorDesc | None, output: DML_BUFFER_TENSOR_DESC) -> Sequence[int]:
    """The dimensions of an output that are independent in what is applied to it; all where that is nothing."""
    spec = spec_of(activation)
    if activation is None or spec is None:
        return range(len(output.Sizes))
    whole = replace(activation, **dict.fromkeys(spec.tensors, output))
    return [i for i in spec.independent(whole)["OutputTensor"] if i is not None]
