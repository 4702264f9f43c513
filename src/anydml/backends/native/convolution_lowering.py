"""CONVOLUTION with what is fused into it, as an instruction on results of FLOAT16 that are not rounded yet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core.enums import TensorDataType
from ...core.strided_layout import Layout
from .normalization_lowering import normalization
from .request import Lowered


def convolution(desc: Any, inputs: Sequence[Layout | None], outputs: Sequence[Layout | None]) -> Lowered | None:
    # Of FLOAT32 another kernel applies it, to what is rounded.
    if desc.OutputTensor.DataType != TensorDataType.FLOAT16:
        return None
    return normalization(desc, inputs, outputs)
