"""How operators of ONNX become operators of DirectML: a table with an entry for each, in a file for each family."""

from __future__ import annotations

from ..context import Lowering
from . import (
    activation,
    attention,
    convolution,
    element_wise,
    gemm,
    integer,
    microsoft,
    microsoft_attention,
    microsoft_integer,
    movement,
    normalization,
    pooling,
    recurrent,
)

LOWERINGS: dict[str, Lowering] = {
    **activation.LOWERINGS,
    **attention.LOWERINGS,
    **convolution.LOWERINGS,
    **element_wise.LOWERINGS,
    **gemm.LOWERINGS,
    **integer.LOWERINGS,
    **microsoft.LOWERINGS,
    **microsoft_attention.LOWERINGS,
    **microsoft_integer.LOWERINGS,
    **movement.LOWERINGS,
    **normalization.LOWERINGS,
    **pooling.LOWERINGS,
    **recurrent.LOWERINGS,
}
"""By operator; those that are not ONNX's own with their domain, such as ``com.microsoft.Gelu``."""
