"""CONVOLUTION and GEMM where ALLOW_HALF_PRECISION_COMPUTATION is set: operands may be rounded to TF32.

Those of GEMM where the process allows it, as PyTorch has no call that allows it to one product alone.

TF32 has the 10 fraction bits of FLOAT16, and the range of FLOAT32, so that nothing overflows; sums are
held in single precision.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...core.strided_layout import Layout
from ...operators.schema import OperatorDesc, OperatorSpec
from ..base import Declined
from ..torch import lowering as calls
from .convolution import plan as convolution
from .launch import Planned


def plan(
    spec: OperatorSpec, desc: OperatorDesc, inputs: Sequence[Layout | None], outputs: Sequence[Layout], device: str
) -> Planned | Declined:
    if spec.name != "GEMM":
        planned = convolution.plan(spec, desc, inputs, outputs, device, allow_tf32=True)
        if not isinstance(planned, Declined):
            return planned
    called = calls.plan(spec, desc, inputs, outputs, allow_tf32=True)
    return called if isinstance(called, Declined) else Planned(f"{called.description}, TF32 allowed", called.run)
