"""REDUCE, ARGMIN, ARGMAX, and the normalisations by means and variances."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch

from ....core.enums import AxisDirection, ReduceFunction, TensorDataType
from ....core.strided_layout import Layout
from ....operators.schema import OperatorDesc, OperatorSpec
from . import Run, Tensors
from .pointwise import finish
from .values import flipped, store, widened


def plan(
    spec: OperatorSpec, desc: OperatorDesc, inputs: Sequence[Layout | None], outputs: Sequence[Layout | None]
) -> Run:
    if spec.name == "REDUCE":
        assert inputs[0] is not None
        return _reduce(desc, inputs[0], desc.Function)  # type: ignore[attr-defined]
    if spec.name in ("ARGMIN", "ARGMAX"):
        assert inputs[0] is not None
        return _reduce(desc, inputs[0], ReduceFunction[spec.name])
    if spec.name == "BATCH_NORMALIZATION":
        return _normalization(desc, lambda x, mean, variance, *rest: (x.sub_(mean), variance, *rest))
    axes = getattr(desc, "Axes", (1, 2, 3) if getattr(desc, "CrossChannel", False) else (2, 3))

    has_mean = getattr(desc, "UseMean", True)
    has_variance = getattr(desc, "UseVariance", False) or getattr(desc, "NormalizeVariance", False)

    def centred(x: Any, *rest: Any) -> Sequence[Any]:
        if has_mean:
            x.sub_(x.mean(axes, keepdim=True))
        return x, x.square().mean(axes, keepdim=True) if has_variance else None, *rest

    return _normalization(desc, centred)


def _normalization(desc: Any, centred: Callable[..., Sequence[Any]]) -> Run:
    write = finish(desc.FusedActivation)

    def run(read: Tensors, written: Tensors) -> None:
        # f(Scale * (x - Mean) / sqrt(Variance + Epsilon) + Bias), over what was widened
        y, variance, scale, bias = centred(*[None if each is None else widened(each) for each in read])
        if variance is not None:
            y.div_(torch.sqrt(variance + desc.Epsilon))
        if scale is not None:
            y.mul_(scale)
        if bias is not None:
            y.add_(bias)
        write(y, written[0])

    return run


# REDUCE


def _extreme(x: Any, of: Callable[..., Any], worst: float) -> Any:
    """The largest or smallest of each row, a number where there is one."""
    if not x.is_floating_point():
        return of(x, -1)
    numbers = torch.where(x.isnan(), worst, x)
    return torch.where(x.isnan().all(-1), torch.nan, of(numbers, -1))


def _largest(x: Any) -> Any:
    return _extreme(x, torch.amax, -torch.inf)


def _smallest(x: Any) -> Any:
    return _extreme(x, torch.amin, torch.inf)


def _first(x: Any, values: Any) -> Any:
    return (x == values[..., None]).to(torch.uint8).argmax(-1)


def _product(x: Any) -> Any:
    """x = m * 2^e: the m are multiplied in pairs and kept in [0.5, 1), the e are added."""
    if not x.is_floating_point():
        return x.prod(-1)
    m, e = torch.frexp(x.to(torch.float64))
    e = e.to(torch.int64)
    while (half := m.shape[-1] // 2) > 0:
        pairs, carry = torch.frexp(m[..., :half] * m[..., half : 2 * half])
        m = torch.cat([pairs, m[..., 2 * half :]], -1)
        e = torch.cat([e[..., :half] + e[..., half : 2 * half] + carry, e[..., 2 * half :]], -1)
    # 2^e by its bits; beyond 2^600 everything is infinite, or 0, in the elements' type.
    power = ((e[..., 0].clamp(-600, 600) + 1023) << 52).view(torch.float64)
    return m[..., 0] * power


def _log_sum_exp(x: Any) -> Any:
    """m + log(1 + sum of exp(x - m)) over all but one of the largest, m: nothing overflows, and what is small stays."""
    m = x.amax(-1, keepdim=True)
    rest = torch.exp(x - torch.where(m.isfinite(), m, 0.0))
    rest = rest.scatter(-1, x.argmax(-1, keepdim=True), 0.0)
    return m[..., 0] + torch.log1p(rest.sum(-1))


_FUNCTIONS: dict[ReduceFunction, Callable[[Any], Any]] = {
    ReduceFunction.ARGMAX: lambda x: _first(x, _largest(x)),
    ReduceFunction.ARGMIN: lambda x: _first(x, _smallest(x)),
    ReduceFunction.AVERAGE: lambda x: x.sum(-1) / x.shape[-1],
    ReduceFunction.L1: lambda x: x.abs().sum(-1),
    ReduceFunction.L2: lambda x: torch.sqrt((x * x).sum(-1)),
    ReduceFunction.LOG_SUM: lambda x: torch.log(x.sum(-1)),
    ReduceFunction.LOG_SUM_EXP: _log_sum_exp,
    ReduceFunction.MAX: _largest,
    ReduceFunction.MIN: _smallest,
    ReduceFunction.MULTIPLY: _product,
    ReduceFunction.SUM: lambda x: x.sum(-1),
    ReduceFunction.SUM_SQUARE: lambda x: (x * x).sum(-1),
}
"""Of rows along the last dimension."""

_ORDERED = (ReduceFunction.ARGMAX, ReduceFunction.ARGMIN, ReduceFunction.MAX, ReduceFunction.MIN)


def _last(first: Callable[[Any], Any], x: Any) -> Any:
    return x.shape[-1] - 1 - first(x.flip(-1))


def _reduce(desc: Any, layout: Layout, of: ReduceFunction) -> Run:
    axes = sorted(desc.Axes)
    last = list(range(-len(axes), 0))
    is_long = layout.type == TensorDataType.UINT64
    is_flipped = is_long and of in _ORDERED
    function = _FUNCTIONS[of]
    if is_long and of == ReduceFunction.L1:
        function = _FUNCTIONS[ReduceFunction.SUM]
    if getattr(desc, "AxisDirection", AxisDirection.INCREASING) == AxisDirection.DECREASING:
        function = partial(_last, function)
    is_value = of in (ReduceFunction.MAX, ReduceFunction.MIN)

    def run(read: Tensors, written: Tensors) -> None:
        # Packed, so that the order in which a row is combined depends on no stride.
        x = widened(read[0].movedim(axes, last).contiguous()).flatten(-len(axes))
        y = function(flipped(x) if is_flipped else x)
        store((flipped(y) if is_flipped and is_value else y).reshape(written[0].shape), written[0])

    return run
