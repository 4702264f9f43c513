"""How operators of ONNX become operators of DirectML: a table with an entry for each, in a file for each family."""

from __future__ import annotations

from ..context import Lowering
from . import (
    activation,
    element_wise,
    fill,
    grid_sample,
    indexing,
    movement,
    regions,
    resize,
    scatter,
    selection,
    sequences,
)

LOWERINGS: dict[str, Lowering] = {
    **activation.LOWERINGS,
    **element_wise.LOWERINGS,
    **fill.LOWERINGS,
    **grid_sample.LOWERINGS,
    **indexing.LOWERINGS,
    **movement.LOWERINGS,
    **regions.LOWERINGS,
    **resize.LOWERINGS,
    **scatter.LOWERINGS,
    **selection.LOWERINGS,
    **sequences.LOWERINGS,
}
"""By operator; those that are not ONNX's own with their domain, such as ``com.microsoft.Gelu``."""
