"""The operators whose kernels are asked for in another way than by the operator's name and its desc's members."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from ...core.strided_layout import Layout
from .diagonal_lowering import diagonal
from .gather_lowering import by_points, gather
from .movement_lowering import PARTS, VIEWS
from .movement_lowering import lowered as moved
from .quantize_lowering import quantized
from .request import Lowered
from .sequence_lowering import sequence

Lowering: TypeAlias = Callable[[Any, Sequence[Layout | None], Sequence[Layout | None]], Lowered | None]
"""Of a desc and the layouts of its inputs and outputs; None where there is none for these."""

LOWERINGS: Mapping[str, Lowering] = {
    **dict.fromkeys([*VIEWS, *PARTS], moved),
    "DEQUANTIZE": quantized,
    "DIAGONAL_MATRIX": diagonal,
    "DIAGONAL_MATRIX1": diagonal,
    "FILL_VALUE_SEQUENCE": sequence,
    "GATHER": gather,
    "QUANTIZE": quantized,
    **dict.fromkeys(("GATHER_ELEMENTS", "SCATTER_ELEMENTS", "GATHER_ND", "GATHER_ND1", "SCATTER_ND"), by_points),
}
