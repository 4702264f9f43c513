"""The engine of compiled kernels for the CPU, in C++."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from ...core.strided_layout import Array, Layout
from ...operators.pointwise_chain import PointwiseChain
from ...operators.schema import OperatorDesc, OperatorSpec
from ..base import BindableRun, Declined, Kernel

if TYPE_CHECKING:
    from ..._native import Plan

CHANNELS_LAST = ("CONVOLUTION",)
"""Whose kernels are there, or faster, where channels lie last."""
OVER_INPUT = ("BATCH_NORMALIZATION",)
"""Whose kernels read each element before they write it, and never again."""


class CpuEngine:
    name = "cpu"
    fuses_pointwise = True

    def compile(
        self,
        spec: OperatorSpec,
        desc: OperatorDesc,
        inputs: Sequence[Layout | None],
        outputs: Sequence[Layout | None],
    ) -> Kernel | Declined:
        # On first use, so that anydml works where there is no compiled module for the platform.
        try:
            from ..._native import compile as compile_plan
        except ImportError as error:
            return Declined(f"the compiled module cannot be loaded: {error}")

        name, words = spec.name, ""
        if spec.pointwise is not None or isinstance(desc, PointwiseChain):
            from . import pointwise_lowering

            try:
                program = pointwise_lowering.program_of(desc, [each.type for each in inputs if each is not None])
            except pointwise_lowering.NoLowering as reason:
                return Declined(str(reason))
            attributes = {"Program": tuple([word for instruction in program for word in instruction])}
            name, words = "ELEMENT_WISE", f"{pointwise_lowering.described(program)}, "
        else:
            attributes = spec.attributes(desc)
        plan = compile_plan(name, inputs, outputs, attributes)
        if isinstance(plan, str):
            return Declined(plan)
        return Kernel(
            words + plan.description,
            plan.run,
            plan.try_run,
            partial(_prepared, plan) if plan.prepares else None,
            channels_last=name in CHANNELS_LAST,
            may_overwrite_input=name in OVER_INPUT,
        )


def _prepared(plan: Plan, fixed: Sequence[Array | None]) -> BindableRun | None:
    ready = plan.prepare(fixed)
    return None if ready is None else _Prepared(ready)


class _Prepared(BindableRun):
    def __init__(self, plan: Plan) -> None:
        self._run = plan.run
        self.size = plan.prepared_bytes

    def __call__(self, inputs: Sequence[Array | None], outputs: Sequence[Array | None]) -> None:
        self._run(inputs, outputs)

    def bound(self, inputs: Sequence[Array | None], outputs: Sequence[Array | None]) -> Callable[[], None]:
        return partial(self._run, inputs, outputs)
