"""The engine that runs every operator's own reference, in NumPy."""

from __future__ import annotations

from collections.abc import Sequence

from ..core.errors import Violation, error, violation
from ..core.strided_layout import Array, Layout
from ..operators.schema import OperatorDesc, OperatorSpec
from .base import Kernel


def _no_memory(operator: str, problem: MemoryError) -> Violation:
    return violation(
        operator,
        "(D6)",
        "",
        " ".join(str(problem).split()) or "too little memory",
        "memory for the reference's intermediate results",
        'The device "cpu" works without',
        kind="memory",
    )


class ReferenceEngine:
    name = "reference"
    fuses_pointwise = False

    def compile(
        self,
        spec: OperatorSpec,
        desc: OperatorDesc,
        inputs: Sequence[Layout | None],
        outputs: Sequence[Layout | None],
    ) -> Kernel:
        def run(inputs: Sequence[Array | None], outputs: Sequence[Array | None]) -> None:
            try:
                found = spec.reference(desc, *inputs)
            except MemoryError as problem:
                raise error([_no_memory(spec.name, problem)]) from None
            results = found if isinstance(found, tuple) else (found,)
            for output, result, place in zip(outputs, results, spec.written(desc, results), strict=True):
                if output is not None:
                    output[place] = result if place is ... else result[place]

        return Kernel(f"the specification's own reference, in {spec.reference.__module__}", run)
