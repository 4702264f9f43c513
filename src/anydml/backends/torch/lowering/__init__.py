"""Operators as calls of PyTorch, on tensors of any strides, for GPUs.

A family's module has `plan`, which decides all that depends on the desc and the layouts, and returns what a dispatch
does: a few calls that write the elements of the outputs. No call waits for a device or looks at a value, so that
a graph may capture them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any, NamedTuple, ParamSpec, TypeAlias, TypeVar

from ....core.errors import Violation, error, violation
from ....core.strided_layout import Layout
from ....operators import OPERATORS, Trait
from ....operators.schema import OperatorDesc, OperatorSpec
from ...base import Declined

Tensors: TypeAlias = Sequence[Any]
"""PyTorch's, in header order, None for what is left out."""

Run: TypeAlias = Callable[[Tensors, Tensors], None]
"""Takes inputs and outputs of the layouts planned for."""

Given = ParamSpec("Given")
Found = TypeVar("Found")

MODULES = {
    **dict.fromkeys(("element_wise", "arithmetic", "clip", "trigonometric", "activation"), "pointwise"),
    **dict.fromkeys(("logical", "bits", "quantization"), "pointwise"),
    **dict.fromkeys(("convolution", "gemm"), "dense"),
    **dict.fromkeys(("integer_convolution", "integer_gemm"), "integer"),
    **dict.fromkeys(("pooling", "max_pooling"), "windows"),
    **dict.fromkeys(("reduce", "normalization"), "statistics"),
    **dict.fromkeys(("cast", "image", "fill", "one_hot"), "movement"),
}
"""The module that plans a family, where it has another name and its operators do not all move elements; loaded on first
use, as PyTorch takes a second."""


NO_CALLS = "there is no kernel for it yet"
"""Why an operator is declined that no call serves."""


class Plan(NamedTuple):
    description: str
    run: Run


def plan(
    spec: OperatorSpec,
    desc: OperatorDesc,
    inputs: Sequence[Layout | None],
    outputs: Sequence[Layout | None],
    **options: Any,
) -> Plan | Declined:
    """What runs an operator.

    Args:
        options: what the family's own `plan` takes beside these.
    """
    operator = OPERATORS.get(spec.name)
    if operator is None:
        return Declined(NO_CALLS)
    own = "movement" if Trait.MOVEMENT in operator.traits else operator.family
    module = MODULES.get(operator.family, own)
    if find_spec(f".{module}", __name__) is None:
        return Declined(NO_CALLS)
    for layout in (*inputs, *outputs):
        if layout is not None and any(stride < 0 or stride % layout.dtype.itemsize for stride in layout.strides):
            return Declined("PyTorch has no strides that are negative or no multiple of an element")
    planner = import_module(f".{module}", __name__)
    calls = planner.plan(spec, desc, inputs, outputs, **options)
    if isinstance(calls, Declined):
        return calls
    import torch

    return Plan(f"calls of PyTorch {torch.__version__}, in {planner.__name__}", guarded(spec.name, calls))


def guarded(name: str, calls: Callable[Given, Found]) -> Callable[Given, Found]:
    """An operator's calls, which take no part in differentiation, with a named error where there is no memory."""
    import torch

    def run(*given: Given.args, **named: Given.kwargs) -> Found:
        try:
            # Also for tensors that were made in this mode, which nothing else may write.
            with torch.inference_mode():
                return calls(*given, **named)
        except RuntimeError as problem:
            if not isinstance(problem, torch.OutOfMemoryError) and "allocate memory" not in str(problem):
                raise
            raise error([_no_memory(name, problem)]) from None

    return run


def _no_memory(operator: str, problem: Exception) -> Violation:
    return violation(
        operator,
        "(D6)",
        "",
        " ".join(str(problem).split(". ")[0].split()),
        "memory for intermediate results",
        "Free what is not needed there, or go in parts",
        kind="memory",
    )
