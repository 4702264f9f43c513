"""softmax(a Q K^T) V on a GPU: PyTorch's scaled_dot_product_attention, which holds no scores in memory.

FLOAT16 stays as it is on a GPU, where products are summed, and exponentials taken, in single precision.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch.nn import functional

from ....core.strided_layout import Layout
from ....core.tensor_desc import is_packed
from ....operators.schema import OperatorDesc, OperatorSpec
from ...base import Declined
from ...torch import lowering as calls
from ...torch.lowering import dense
from ..launch import Planned, Tensors


def plan(
    spec: OperatorSpec, desc: OperatorDesc, inputs: Sequence[Layout | None], outputs: Sequence[Layout], device: str
) -> Planned | Declined:
    (y,) = outputs
    order = sorted(range(4), key=lambda i: -y.strides[i])
    is_dense = is_packed([y.sizes[i] for i in order], [y.strides[i] // y.dtype.itemsize for i in order])
    return Planned("PyTorch's scaled_dot_product_attention", _Run(spec.name, desc, order), gives=is_dense)


class _Run:
    """What a dispatch does; `order` is that of the output's dimensions in memory."""

    def __init__(self, name: str, desc: Any, order: Sequence[int]) -> None:
        self._desc = desc
        self._order = order
        self._back = sorted(range(4), key=order.__getitem__)
        self._run = calls.guarded(name, self._write)
        self.give = calls.guarded(name, self._given)

    def _given(self, inputs: Tensors) -> Any:
        return self._computed(inputs).permute(self._order).contiguous().permute(self._back)

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
