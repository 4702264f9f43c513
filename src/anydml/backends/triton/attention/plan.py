"""softmax(a Q K^T) V on a GPU: PyTorch's scaled_dot_product_attention, which holds no scores in memory.

FLOAT16 stays as it is on a GPU, where products are summed, and exponentials taken, in single precision.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch.nn import functional

from ....core.strided_layout import Layout
from ....operators.schema import OperatorDesc, OperatorSpec
from ...base import Declined
from ...torch import lowering as calls
from ...torch.lowering import dense
from ..launch import Planned, Tensors


def plan(
    spec: OperatorSpec, desc: OperatorDesc, inputs: Sequence[Layout | None], outputs: Sequence[Layout], device: str
) -> Planned | Declined:
    run = _Run(spec.name, desc, outputs[0].is_packed())
    return Planned("PyTorch's scaled_dot_product_attention", run, gives=outputs[0].is_packed())


class _Run:
    def __init__(self, name: str, desc: Any, is_packed: bool) -> None:
        self._desc = desc
        self._run = calls.guarded(name, self._write)
        self.give = calls.guarded(name, lambda inputs: self._computed(inputs).contiguous())

    def __call__(self, inputs: Tensors, outputs: Tensors) -> None:
        self._run(inputs, outputs)

    def _write(self, inputs: Tensors, outputs: Tensors) -> None:
        outputs[0].copy_(self._computed(inputs))

    def _computed(self, inputs: Tensors) -> Any:
        dtype, halves = inputs[0].dtype, dense.are_halves(*inputs)
        q, k, v = inputs if halves else (x.float() for x in inputs)
        k = k.mT if self._desc.are_columns else k
        # Where elements of a line lie apart, there is no fast kernel.
        q, k, v = (x if x.stride(-1) == 1 else x.contiguous() for x in (q, k, v))
        with dense.precision(False):
            return functional.scaled_dot_product_attention(q, k, v, scale=self._desc.scale).to(dtype)
