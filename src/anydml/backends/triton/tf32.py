"""CONVOLUTION, GEMM and attention where ALLOW_HALF_PRECISION_COMPUTATION is set: operands may be rounded to TF32.

Those of GEMM where one matrix B is multiplied with all of A, as weights are; of a batch of matrices where the process
allows it, as PyTorch has no call that allows it to such products alone.

TF32 has the 10 fraction bits of FLOAT16, and the range of FLOAT32, so that nothing overflows; sums are
held in single precision.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...core.strided_layout import Layout
from ...operators.schema import OperatorDesc, OperatorSpec
from ..base import Declined
from ..torch import lowering as calls
from ..torch.lowering import dense
from .attention import plan as attention
from .convolution import plan as convolution
from .launch import Planned, Tensors


def plan(
    spec: OperatorSpec, desc: OperatorDesc, inputs: Sequence[Layout | None], outputs: Sequence[Layout], device: str
) -> Planned | Declined:
    if spec.name == "PRODUCT_ATTENTION":
        return attention.plan(spec, desc, inputs, outputs, device, allow_tf32=True)
    if spec.name != "GEMM":
        planned = convolution.plan(spec, desc, inputs, outputs, device, allow_tf32=True)
        if not isinstance(planned, Declined):
            return planned
    called = calls.plan(spec, desc, inputs, outputs, allow_tf32=True)
    if isinstance(called, Declined):
        return called
    words, run = f"{called.description}, TF32 allowed", called.run
    if spec.name != "GEMM" or inputs[1] is None:
        return Planned(words, run)
    layout = inputs[1]

    def prepare(known: Tensors) -> Callable[[Tensors, Tensors], None] | None:
        ready = None if known[1] is None else dense.ready_for_tf32(desc, layout, known[1])  # type: ignore[arg-type]
        return None if ready is None else lambda inputs, outputs: run((inputs[0], ready, *inputs[2:]), outputs)

    return Planned(words, run, prepare=prepare)
