"""CONVOLUTION with what is fused into it: an activation, as an instruction on results of FLOAT16 that are not rounded
yet, or an addition and RELU."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ...core.enums import TensorDataType
from ...core.strided_layout import Layout
from ...operators import spec, spec_of
from ...operators.convolution_addition import ConvolutionAddition
from .normalization_lowering import normalization
from .request import Lowered


def convolution(desc: Any, inputs: Sequence[Layout | None], outputs: Sequence[Layout | None]) -> Lowered | None:
    # Of FLOAT32 another kernel applies it, to what is rounded.
    if desc.OutputTensor.DataType != TensorDataType.FLOAT16:
        return None
    return normalization(desc, inputs, outputs)


def addition(
    desc: ConvolutionAddition, inputs: Sequence[Layout | None], outputs: Sequence[Layout | None]
) -> Lowered | None:
    """The convolution's kernel, with what is added as its last input."""
    relu = spec("ACTIVATION_RELU").desc(InputTensor=None, OutputTensor=None) if desc.is_rectified else None
    inner = replace(desc.convolution, FusedActivation=relu)
    found = spec_of(inner)
    return None if found is None else (found.name, found.attributes(inner))
