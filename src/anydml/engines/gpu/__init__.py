"""The engine of Triton kernels and calls of PyTorch over its tensors, for every device that both reach."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeAlias

from ...errors import Violation, error
from ...layout import Layout
from ...schema import OperatorDesc, OperatorSpec
from .. import Declined, Kernel, calls
from .devices import is_interpreted

if TYPE_CHECKING:
    import torch

    from .launch import Planned

Plan: TypeAlias = (
    "Callable[[OperatorSpec, OperatorDesc, Sequence[Layout | None], Sequence[Layout], str], Planned | Declined]"
)

KERNELS = {
    "JOIN": "join",
    "CUMULATIVE_SUMMATION": "scan",
    "CUMULATIVE_PRODUCT": "scan",
    "QUANTIZED_LINEAR_AVERAGE_POOLING": "pooling",
}
"""The module whose `plan` plans an operator's kernels; all others are calls of PyTorch."""


class GpuEngine:
    """`device` is PyTorch's, where kernels run; its CPU in Triton's interpreter."""

    def __init__(self, name: str, device: torch.device) -> None:
        self.name = name
        self.device = device

    def compile(
        self,
        spec: OperatorSpec,
        desc: OperatorDesc,
        inputs: Sequence[Layout | None],
        outputs: Sequence[Layout | None],
    ) -> Kernel | Declined:
        from .launch import is_capturing

        if is_capturing(self.device):
            raise error(
                [
                    Violation(
                        operator=spec.name,
                        where="",
                        found="to be compiled while a graph is captured",
                        expected="an operator compiled before",
                        rule="(D9)",
                        remedy="Run it once before the capture",
                    )
                ]
            )
        planned = self._planned(spec, desc, inputs, outputs)
        if isinstance(planned, Declined):
            return planned
        run = planned.run

        def run_arrays(inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
            with self._current():
                run(*[[None if each is None else each.tensor for each in side] for side in (inputs, outputs)])

        return Kernel(planned.description, run_arrays, self._try_run(run, inputs, outputs))

    def _planned(
        self,
        spec: OperatorSpec,
        desc: OperatorDesc,
        inputs: Sequence[Layout | None],
        outputs: Sequence[Layout | None],
    ) -> calls.Plan | Declined:
        if spec.name not in KERNELS:
            return calls.plan(spec, desc, inputs, outputs)
        # On first use, as Triton takes a second to load.
        plan: Plan = import_module(f".{KERNELS[spec.name]}", __name__).plan
        with self._current():
            written = [layout for layout in outputs if layout is not None]
            planned = plan(spec, desc, inputs, written, str(self.device))
            if isinstance(planned, Declined):
                return planned
            for launch, types in planned.launches:
                launch.compile(self.device, types)
        where = ", in Triton's interpreter" if is_interpreted() else ""
        return calls.Plan(planned.description + where, planned.run)

    def _current(self) -> Any:
        """A context in which the device is PyTorch's current one."""
        import torch

        if self.device.type == "cpu":
            return nullcontext()
        backend = getattr(torch, self.device.type)
        return nullcontext() if backend.current_device() == self.device.index else backend.device(self.device)

    def _try_run(
        self, run: calls.Run, inputs: Sequence[Layout | None], outputs: Sequence[Layout | None]
    ) -> Callable[[Sequence[Any], Sequence[Any], bool], bool]:
        import torch

        from .launch import TYPES

        def told(layout: Layout | None) -> tuple[Any, ...] | None:
            if layout is None:
                return None
            # Steps along a size of 1, which move nothing, as PyTorch has them in packed tensors.
            steps: list[int] = []
            for size, step in zip(layout.sizes[::-1], layout.strides[::-1], strict=True):
                packed = steps[0] * layout.sizes[-len(steps)] if steps else 1
                steps.insert(0, step // layout.dtype.itemsize if size > 1 else packed)
            return TYPES[layout.type], layout.sizes, tuple(steps), layout.bounds()[1], layout.dtype.itemsize

        tensor_type, device = torch.Tensor, self.device
        wanted = [told(layout) for layout in (*inputs, *outputs)]
        count = len(inputs)

        def try_run(inputs: Sequence[Any], outputs: Sequence[Any], in_place: bool) -> bool:
            given = [*inputs, *outputs]
            if len(given) != len(wanted) or len(inputs) != count:
                return False
            ranges = []
            for tensor, layout in zip(given, wanted, strict=True):
                if layout is None or tensor is None:
                    if tensor is not layout:
                        return False
                    ranges.append((0, 0))
                    continue
                if type(tensor) is not tensor_type:
                    return False
                dtype, sizes, steps, span, item = layout
                start = tensor.data_ptr()
                if (
                    tensor.dtype is not dtype
                    or tensor.shape != sizes
                    or tensor.stride() != steps
                    or tensor.device != device
                    or tensor.requires_grad
                    or start % item
                ):
                    return False
                ranges.append((start, start + span))
            for layout, (start, end) in zip(wanted[count:], ranges[count:], strict=True):
                for other, (low, high) in zip(wanted, ranges[:count], strict=False):
                    is_same = in_place and (start, end, layout) == (low, high, other)
                    if start < high and low < end and not is_same:
                        return False
            with self._current():
                run(inputs, outputs)
            return True

        return try_run
