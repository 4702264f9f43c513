"""Normalisations with the activations that are fused into them, as instructions on what is not rounded yet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core.enums import TensorDataType
from ...core.strided_layout import Layout
from ...operators import spec_of
from .pointwise_lowering import program_of
from .request import Lowered


def normalization(desc: Any, inputs: Sequence[Layout | None], outputs: Sequence[Layout | None]) -> Lowered | None:
    spec = spec_of(desc)
    if spec is None or desc.FusedActivation is None:
        return None
    program = program_of(desc.FusedActivation, [TensorDataType.FLOAT64])
    return spec.name, {**spec.attributes(desc), "Program": program.attributes["Program"]}
