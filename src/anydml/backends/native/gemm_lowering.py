"""Products of matrices with the activations that are fused into them, as instructions on single precision."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core.enums import TensorDataType
from ...core.strided_layout import Layout
from ...operators import spec_of
from .pointwise_lowering import NoLowering, program_of
from .request import Lowered


def gemm(desc: Any, inputs: Sequence[Layout | None], outputs: Sequence[Layout | None]) -> Lowered | None:
    spec = spec_of(desc)
    activation = spec_of(desc.FusedActivation)
    if spec is None or activation is None or activation.pointwise is None:
        return None
    try:
        program = program_of(desc.FusedActivation, [TensorDataType.FLOAT32])
    except NoLowering:
        return None
    return spec.name, {**spec.attributes(desc), **program.attributes}
