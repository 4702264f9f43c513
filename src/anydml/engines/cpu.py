"""The engine of compiled kernels for the CPU, in C++."""

from __future__ import annotations

from collections.abc import Sequence

from ..layout import Layout
from ..schema import OperatorDesc, OperatorSpec
from . import Declined, Kernel


class CpuEngine:
    name = "cpu"

    def compile(
        self,
        spec: OperatorSpec,
        desc: OperatorDesc,
        inputs: Sequence[Layout | None],
        outputs: Sequence[Layout | None],
    ) -> Kernel | Declined:
        # On first use, so that anydml works where there is no compiled module for the platform.
        try:
            from .. import _native
        except ImportError as error:
            return Declined(f"the compiled module cannot be loaded: {error}")

        plan = _native.compile(spec.name, inputs, outputs, spec.attributes(desc))
        if isinstance(plan, str):
            return Declined(plan)
        return Kernel(plan.description, plan.run, plan.try_run)
