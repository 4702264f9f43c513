"""Activations, by themselves and fused into other operators."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from ....core.enums import TensorDataType
from ....core.strided_layout import Layout
from ....operators import spec_of
from ....operators.schema import OperatorDesc, OperatorSpec
from . import Run, Tensors
from .values import bits, clipped, double, store


def _softplus(x: Any) -> Any:
    """ln(1 + e^x)"""
    return x.clamp(min=0) + torch.log1p(torch.exp(-x.abs()))


def _shrink(desc: Any, x: Any) -> Any:
    y = torch.where(x > desc.Threshold, x - desc.Bias, torch.where(x < -desc.Threshold, x + desc.Bias, 0.0))
    return torch.where(x.isnan(), x, y)


_EACH: dict[str, Callable[[Any, Any], Any]] = {
    "ELU": lambda desc, x: torch.where(x >= 0, x, desc.Alpha * torch.expm1(x)),
    "HARD_SIGMOID": lambda desc, x: (desc.Alpha * x + desc.Beta).clamp(0, 1),
    "IDENTITY": lambda desc, x: x,
    "LEAKY_RELU": lambda desc, x: torch.where(x >= 0, x, desc.Alpha * x),
    "LINEAR": lambda desc, x: desc.Alpha * x + desc.Beta,
    "PARAMETRIC_SOFTPLUS": lambda desc, x: desc.Alpha * _softplus(desc.Beta * x),
    "RELU": lambda desc, x: x.clamp(min=0),
    "SCALED_ELU": lambda desc, x: desc.Gamma * torch.where(x > 0, x, desc.Alpha * torch.expm1(x)),
    "SCALED_TANH": lambda desc, x: desc.Alpha * torch.tanh(desc.Beta * x),
    "SIGMOID": lambda desc, x: torch.sigmoid(x),
    "SOFTPLUS": lambda desc, x: _softplus(desc.Steepness * x) / desc.Steepness,
    "SOFTSIGN": lambda desc, x: torch.where(x.isinf(), x.sign(), x / (1 + x.abs())),
    "TANH": lambda desc, x: torch.tanh(x),
    "THRESHOLDED_RELU": lambda desc, x: torch.where((x > desc.Alpha) | x.isnan(), x, 0.0),
    "SHRINK": _shrink,
}
"""Of doubles. NaN stays NaN."""

_AS_THEY_ARE = ("IDENTITY", "RELU")
"""Those that give the same in any type."""


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
    "HARDMAX": lambda x, axes: _hardmax(x, axes).to(x.dtype),
    "LOG_SOFTMAX": _log_softmax,
    "SOFTMAX": _softmax,
}


def fused(desc: OperatorDesc | None) -> Callable[[Any], Any]:
    """An activation of what another operator has computed, to be stored."""
    spec = spec_of(desc)
    if desc is None or spec is None:
        return lambda y: y
    if spec.name == "ELEMENT_WISE_CLIP":
        return clipped(desc, TensorDataType.FLOAT32)
    return _function(spec.name.removeprefix("ACTIVATION_"), desc)


def finish(desc: OperatorDesc | None) -> Callable[[Any, Any], None]:
    """Writes what another operator has computed, after an activation."""
    spec, activation = spec_of(desc), fused(desc)

    def write(y: Any, out: Any) -> None:
        if spec is not None and spec.name == "ACTIVATION_RELU" and y.dtype == out.dtype:
            torch.clamp(y, min=0, out=out)  # in one pass
        else:
            store(activation(y), out)

    return write


def _function(name: str, desc: OperatorDesc) -> Callable[[Any], Any]:
    if name in _AS_THEY_ARE:
        return lambda x: _EACH[name](desc, x)
    if name in _EACH:
        return lambda x: _EACH[name](desc, double(x))
    along = _ALONG[name.removesuffix("1")]
    axes = getattr(desc, "Axes", (-1,))
    return lambda x: along(double(x), axes)


def plan(
    spec: OperatorSpec, desc: OperatorDesc, inputs: Sequence[Layout | None], outputs: Sequence[Layout | None]
) -> Run:
    name = spec.name.removeprefix("ACTIVATION_")
    if name == "IDENTITY":
        return lambda read, written: bits(written[0]).copy_(bits(read[0]))
    if name == "RELU":
        return lambda read, written: torch.clamp(read[0], min=0, out=written[0])
    if name == "PARAMETERIZED_RELU":
        # x * slope is rounded once in the elements' own type, too.
        return lambda read, written: written[0].copy_(torch.where(read[0] >= 0, read[0], read[1] * read[0]))
    function = _function(name, desc)

    def run(read: Tensors, written: Tensors) -> None:
        store(function(read[0]), written[0])

    return run
