"""The operators whose kernels are asked for in another way than by the operator's name and its desc's members."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from ...core.strided_layout import Layout
from .attention_lowering import attention
from .convolution_lowering import addition, convolution
from .diagonal_lowering import diagonal
from .gather_lowering import by_points, gather
from .gemm_lowering import gemm
from .movement_lowering import PARTS, VIEWS
from .movement_lowering import lowered as moved
from .normalization_lowering import normalization
from .quantize_lowering import quantized
from .recurrent_lowering import recurrent
from .request import Lowered
from .resample_lowering import resample, upsample
from .sequence_lowering import sequence

Lowering: TypeAlias = Callable[[Any, Sequence[Layout | None], Sequence[Layout | None]], Lowered | None]
"""Of a desc and the layouts of its inputs and outputs; None where there is none for these."""

LOWERINGS: Mapping[str, Lowering] = {
    **dict.fromkeys([*VIEWS, *PARTS], moved),
    **dict.fromkeys(("BATCH_NORMALIZATION", "BATCH_NORMALIZATION_TRAINING"), normalization),
    **dict.fromkeys([f"MEAN_VARIANCE_NORMALIZATION{revision}" for revision in ("", "1", "2")], normalization),
    "CONVOLUTION": convolution,
    "CONVOLUTION_ADD_RELU": addition,
    "DEQUANTIZE": quantized,
    "DIAGONAL_MATRIX": diagonal,
    "DIAGONAL_MATRIX1": diagonal,
    "FILL_VALUE_SEQUENCE": sequence,
    "GATHER": gather,
    "GEMM": gemm,
    "MULTIHEAD_ATTENTION": attention,
    "MULTIHEAD_ATTENTION1": attention,
    "QUANTIZE": quantized,
    **dict.fromkeys(("GATHER_ELEMENTS", "SCATTER_ELEMENTS", "GATHER_ND", "GATHER_ND1", "SCATTER_ND"), by_points),
    **dict.fromkeys(("GRU", "LSTM", "RNN"), recurrent),
    **dict.fromkeys(("RESAMPLE", "RESAMPLE1", "RESAMPLE2", "RESAMPLE3", "RESAMPLE_GRAD", "RESAMPLE_GRAD1"), resample),
    "UPSAMPLE_2D": upsample,
}
