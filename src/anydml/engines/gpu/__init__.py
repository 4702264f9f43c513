"""The engine of Triton kernels over PyTorch's tensors, for every device that both reach."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module

from ...layout import Layout
from ...schema import OperatorDesc, OperatorSpec
from .. import Declined, Kernel

Plan = Callable[[OperatorSpec, OperatorDesc, Sequence[Layout | None], Sequence[Layout], str], Kernel | Declined]

_FAMILIES = {
    "JOIN": "join",
    "CUMULATIVE_SUMMATION": "scan",
    "CUMULATIVE_PRODUCT": "scan",
    "QUANTIZED_LINEAR_AVERAGE_POOLING": "pooling",
}
"""The module whose `plan` makes an operator's kernel."""


class GpuEngine:
    """`device` is PyTorch's name of where its kernels run; "cpu" in Triton's interpreter."""

    name = "gpu"

    def __init__(self, device: str) -> None:
        self.device = device

    def compile(
        self,
        spec: OperatorSpec,
        desc: OperatorDesc,
        inputs: Sequence[Layout | None],
        outputs: Sequence[Layout],
    ) -> Kernel | Declined:
        if spec.name not in _FAMILIES:
            return Declined("there is no kernel for it yet")
        # On first use, as PyTorch and Triton take seconds to load.
        plan: Plan = import_module(f".{_FAMILIES[spec.name]}", __name__).plan
        return plan(spec, desc, inputs, outputs, self.device)
