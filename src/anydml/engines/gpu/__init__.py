"""The engine of Triton kernels and calls of PyTorch over its tensors, for every device that both reach."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from importlib import import_module
from operator import add, attrgetter, mod
from typing import TYPE_CHECKING, Any, TypeAlias

from ...errors import Violation, error
from ...layout import Layout
from ...schema import OperatorDesc, OperatorSpec
from .. import Declined, Kernel, TryRun, calls
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
    **dict.fromkeys(("AVERAGE_POOLING", "MAX_POOLING", "MAX_POOLING1", "MAX_POOLING2"), "float_pooling"),
    "BATCH_NORMALIZATION": "normalization",
    "CONVOLUTION": "convolution",
}
"""The module whose `plan` plans an operator's kernels; all others, and what it declines, are calls of PyTorch."""


class GpuEngine:
    """`device` is PyTorch's, where kernels run; its CPU in Triton's interpreter."""

    takes_chains = False

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
        run = self._run_there(planned.run)

        def run_arrays(inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
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
                return calls.plan(spec, desc, inputs, outputs) if spec.name in calls.FAMILIES else planned
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

    def _run_there(self, run: calls.Run) -> calls.Run:
        """`run` while the device is PyTorch's current one, with no context where it is already."""
        import torch

        if self.device.type == "cpu":
            return run
        backend, device, index = getattr(torch, self.device.type), self.device, self.device.index

        def run_there(inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
            if backend.current_device() == index:
                run(inputs, outputs)
            else:
                with backend.device(device):
                    run(inputs, outputs)

        return run_there

    def _try_run(self, run: calls.Run, inputs: Sequence[Layout | None], outputs: Sequence[Layout | None]) -> TryRun:
        from torch import Tensor

        from .launch import TYPES

        def steps_of(layout: Layout) -> tuple[int, ...]:
            """Strides; along a size of 1, which move nothing, as PyTorch has them in packed tensors."""
            steps: list[int] = []
            for size, step in zip(layout.sizes[::-1], layout.strides[::-1], strict=True):
                packed = steps[0] * layout.sizes[-len(steps)] if steps else 1
                steps.insert(0, step // layout.dtype.itemsize if size > 1 else packed)
            return tuple(steps)

        # Asked of all tensors at once, as there may be hundreds.
        facts, strides, address = (
            attrgetter("dtype", "shape", "device", "requires_grad"),
            Tensor.stride,
            Tensor.data_ptr,
        )
        kinds = [type(None) if layout is None else Tensor for layout in (*inputs, *outputs)]
        layouts = [layout for layout in (*inputs, *outputs) if layout is not None]
        wanted_facts = [(TYPES[layout.type], layout.sizes, self.device, False) for layout in layouts]
        wanted_strides = [steps_of(layout) for layout in layouts]
        items = [layout.dtype.itemsize for layout in layouts]
        spans = [layout.bounds()[1] for layout in layouts]
        count, is_whole = len(inputs), len(layouts) == len(kinds)
        first_output = sum(layout is not None for layout in inputs)
        alike = [
            {i for i in range(first_output) if wanted_facts[i] == facts and wanted_strides[i] == steps}
            for facts, steps in zip(wanted_facts[first_output:], wanted_strides[first_output:], strict=True)
        ]
        """Of each output the inputs that lie as it does."""

        def try_run(inputs: Sequence[Any], outputs: Sequence[Any], in_place: bool) -> bool:
            given = [*inputs, *outputs]
            if len(inputs) != count or list(map(type, given)) != kinds:
                return False
            tensors = given if is_whole else [tensor for tensor in given if tensor is not None]
            if list(map(facts, tensors)) != wanted_facts or list(map(strides, tensors)) != wanted_strides:
                return False
            starts = list(map(address, tensors))
            if any(map(mod, starts, items)):
                return False
            ends = list(map(add, starts, spans))
            for output, inputs_alike in enumerate(alike, first_output):
                start, end = starts[output], ends[output]
                for i in [i for i in range(output) if starts[i] < end and ends[i] > start]:
                    if not (in_place and starts[i] == start and i in inputs_alike):
                        return False
            run(inputs, outputs)
            return True

        return try_run
