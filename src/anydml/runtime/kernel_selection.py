"""Which engine serves an operator."""

from __future__ import annotations

from typing import NamedTuple

from ..backends.base import Declined, Engine, Kernel
from ..operators.schema import OperatorSpec


class KernelSelection(NamedTuple):
    """Which engine took an operator, and why those before it declined."""

    engine: Engine
    kernel: Kernel
    declined: tuple[tuple[str, Declined], ...]

    def explain(self, spec: OperatorSpec) -> str:
        lines = [f"{spec.name} is served by {self.engine.name}: {self.kernel.description}"]
        lines += [f"{name} declined: {declined.reason}" for name, declined in self.declined]
        return "\n".join(lines)
