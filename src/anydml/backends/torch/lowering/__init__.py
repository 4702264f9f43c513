"""Operators as calls of PyTorch, on tensors of any strides: for GPUs, and for what is large on the CPU.

A family's module has `plan`, which decides all that depends on the desc and the layouts, and returns what a dispatch
does: a few calls that write the elements of the outputs. No call waits for a device or looks at a value, so that
a graph may capture them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, NamedTuple, ParamSpec, TypeAlias

from ....core.errors import Violation, error, violation
from ....core.strided_layout import Layout
from ....operators.schema import OperatorDesc, OperatorSpec
from ...base import Declined

Tensors: TypeAlias = Sequence[Any]
"""PyTorch's, in header order, None for what is left out."""

Run: TypeAlias = Callable[[Tensors, Tensors], None]
"""Takes inputs and outputs of the layouts planned for."""

Given = ParamSpec("Given")

FAMILIES = {
    **dict.fromkeys(
        (
            "ELEMENT_WISE_IDENTITY",
            "ELEMENT_WISE_ABS",
            "ELEMENT_WISE_ADD",
            "ELEMENT_WISE_CLIP",
            "ELEMENT_WISE_DIVIDE",
            "ELEMENT_WISE_EXP",
            "ELEMENT_WISE_LOG",
            "ELEMENT_WISE_MAX",
            "ELEMENT_WISE_MEAN",
            "ELEMENT_WISE_MIN",
            "ELEMENT_WISE_MULTIPLY",
            "ELEMENT_WISE_POW",
            "ELEMENT_WISE_RECIP",
            "ELEMENT_WISE_SQRT",
            "ELEMENT_WISE_SUBTRACT",
            "ELEMENT_WISE_THRESHOLD",
            "ELEMENT_WISE_ADD1",
            "ELEMENT_WISE_MODULUS_TRUNCATE",
            "ELEMENT_WISE_CLIP1",
            "ELEMENT_WISE_NEGATE",
        ),
        "element_wise",
    ),
    **dict.fromkeys(
        (
            "ACTIVATION_ELU",
            "ACTIVATION_HARDMAX",
            "ACTIVATION_HARD_SIGMOID",
            "ACTIVATION_IDENTITY",
            "ACTIVATION_LEAKY_RELU",
            "ACTIVATION_LINEAR",
            "ACTIVATION_LOG_SOFTMAX",
            "ACTIVATION_PARAMETERIZED_RELU",
            "ACTIVATION_PARAMETRIC_SOFTPLUS",
            "ACTIVATION_RELU",
            "ACTIVATION_SCALED_ELU",
            "ACTIVATION_SCALED_TANH",
            "ACTIVATION_SIGMOID",
            "ACTIVATION_SOFTMAX",
            "ACTIVATION_SOFTPLUS",
            "ACTIVATION_SOFTSIGN",
            "ACTIVATION_TANH",
            "ACTIVATION_THRESHOLDED_RELU",
            "ACTIVATION_SHRINK",
            "ACTIVATION_SOFTMAX1",
            "ACTIVATION_LOG_SOFTMAX1",
            "ACTIVATION_HARDMAX1",
        ),
        "activation",
    ),
    **dict.fromkeys(
        (
            "SLICE",
            "CAST",
            "SPLIT",
            "PADDING",
            "VALUE_SCALE_2D",
            "UPSAMPLE_2D",
            "GATHER",
            "FILL_VALUE_CONSTANT",
            "FILL_VALUE_SEQUENCE",
            "SLICE1",
        ),
        "movement",
    ),
    **dict.fromkeys(("CONVOLUTION", "GEMM"), "dense"),
    **dict.fromkeys(("RNN", "LSTM", "GRU"), "recurrent"),
    **dict.fromkeys(
        (
            "AVERAGE_POOLING",
            "LP_POOLING",
            "MAX_POOLING",
            "MAX_POOLING1",
            "MAX_POOLING2",
            "LOCAL_RESPONSE_NORMALIZATION",
        ),
        "windows",
    ),
    **dict.fromkeys(
        ("REDUCE", "BATCH_NORMALIZATION", "MEAN_VARIANCE_NORMALIZATION", "MEAN_VARIANCE_NORMALIZATION1"), "statistics"
    ),
}
"""The module that plans an operator, loaded on first use, as PyTorch takes a second."""


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
    if spec.name not in FAMILIES:
        return Declined("there is no kernel for it yet")
    for layout in (*inputs, *outputs):
        if layout is not None and any(stride < 0 or stride % layout.dtype.itemsize for stride in layout.strides):
            return Declined("PyTorch has no strides that are negative or no multiple of an element")
    family = import_module(f".{FAMILIES[spec.name]}", __name__)
    calls = family.plan(spec, desc, inputs, outputs, **options)
    if isinstance(calls, Declined):
        return calls
    import torch

    return Plan(f"calls of PyTorch {torch.__version__}, in {family.__name__}", guarded(spec.name, calls))


def guarded(name: str, calls: Callable[Given, None]) -> Callable[Given, None]:
    """An operator's calls, which take no part in differentiation, with a named error where there is no memory."""
    import torch

    def run(*given: Given.args, **named: Given.kwargs) -> None:
        try:
            # Also for tensors that were made in this mode, which nothing else may write.
            with torch.inference_mode():
                calls(*given, **named)
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
