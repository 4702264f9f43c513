"""How operators of ONNX become operators of DirectML: a table with an entry for each, in a file for each family."""

from __future__ import annotations

from ..context import Lowering
from . import (
    activation,
    cast,
    element_wise,
    fill,
    indexing,
    logical,
    movement,
    quantization,
    reduce,
    regions,
    resize,
    scatter,
    selection,
    sequences,
)

LOWERINGS: dict[str, Lowering] = {
    **activation.LOWERINGS,
    **cast.LOWERINGS,
    **element_wise.LOWERINGS,
    **fill.LOWERINGS,
    **indexing.LOWERINGS,
    **logical.LOWERINGS,
    **movement.LOWERINGS,
    **quantization.LOWERINGS,
    **reduce.LOWERINGS,
    **regions.LOWERINGS,
    **resize.LOWERINGS,
    **scatter.LOWERINGS,
    **selection.LOWERINGS,
    **sequences.LOWERINGS,
}
"""By operator; those that are not ONNX's own with their domain, such as ``com.microsoft.Gelu``."""
