"""How operators of ONNX become operators of DirectML: a table with an entry for each, in a file for each family."""

from __future__ import annotations

from ..context import Lowering
from . import (
    activation,
    attention,
    cast,
    convolution,
    element_wise,
    fill,
    gemm,
    indexing,
    integer,
    logical,
    movement,
    normalization,
    pooling,
    quantization,
    recurrent,
    reduce,
    regions,
    resize,
    scatter,
    selection,
    sequences,
)

LOWERINGS: dict[str, Lowering] = {
    **activation.LOWERINGS,
    **attention.LOWERINGS,
    **cast.LOWERINGS,
    **convolution.LOWERINGS,
    **element_wise.LOWERINGS,
    **fill.LOWERINGS,
    **gemm.LOWERINGS,
    **indexing.LOWERINGS,
    **integer.LOWERINGS,
    **logical.LOWERINGS,
    **movement.LOWERINGS,
    **normalization.LOWERINGS,
    **pooling.LOWERINGS,
    **quantization.LOWERINGS,
    **recurrent.LOWERINGS,
    **reduce.LOWERINGS,
    **regions.LOWERINGS,
    **resize.LOWERINGS,
    **scatter.LOWERINGS,
    **selection.LOWERINGS,
    **sequences.LOWERINGS,
}
"""By operator; those that are not ONNX's own with their domain, such as ``com.microsoft.Gelu``."""
