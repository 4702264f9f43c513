"""SOFTMAX, LOG_SOFTMAX and HARDMAX, of groups of elements along axes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from ....core.strided_layout import Layout
from ....operators import OPERATORS
from ....operators.schema import OperatorDesc, OperatorSpec
from . import Run, Tensors
from .values import double, store


def _hardmax(x: Any, axes: Sequence[int]) -> Any:
    """Whether an element is the first of the largest of its group; NaN is not larger than any number."""
    last = tuple(range(-len(axes), 0))
    groups = x.movedim(tuple(sorted(axes)), last)
    flat = groups.flatten(-len(axes))
    largest = flat.nan_to_num(nan=-torch.inf, posinf=torch.inf, neginf=-torch.inf).amax(-1, keepdim=True)
    first = (flat == largest).to(torch.uint8).argmax(-1, keepdim=True)
    is_first = torch.arange(flat.shape[-1], device=x.device) == first
    return is_first.reshape(groups.shape).movedim(last, tuple(sorted(axes)))


def _softmax(x: Any, axes: Sequence[int]) -> Any:
    if len(axes) == 1:
        return torch.softmax(x, axes[0])
    e = torch.exp(x - x.amax(axes, keepdim=True))
    return e / e.sum(axes, keepdim=True)


def _log_softmax(x: Any, axes: Sequence[int]) -> Any:
    """d - ln(1 + sum of e^d over all but the first of the largest), d = x - max: what is close to 0 stays exact."""
    d = x - x.amax(axes, keepdim=True)
    others = torch.exp(d) * ~_hardmax(x, axes)
    return d - torch.log1p(others.sum(axes, keepdim=True))


_ALONG: dict[str, Callable[[Any, Sequence[int]], Any]] = {
    "hardmax": lambda x, axes: _hardmax(x, axes).to(x.dtype),
    "log_softmax": _log_softmax,
    "softmax": _softmax,
}
"""By the function that an operator and its later revisions are."""


def function_of(spec: OperatorSpec, desc: OperatorDesc) -> Callable[[Any], Any]:
    """What one of them computes of a tensor, to be stored."""
    along = _ALONG[OPERATORS[spec.name].function]
    axes = getattr(desc, "Axes", (-1,))
    return lambda x: along(double(x), axes)


def plan(
    spec: OperatorSpec, desc: OperatorDesc, inputs: Sequence[Layout | None], outputs: Sequence[Layout | None]
) -> Run:
    function = function_of(spec, desc)

    def run(read: Tensors, written: Tensors) -> None:
        store(function(read[0]), written[0])

    return run
