"""Softmax and normalisations along chunked axes: statistics by partial results, then chunk by chunk.

A first pass over the chunks gives statistics in double precision, which a tree combines; a second one computes each
chunk by them, in double precision, rounded once. Softmax needs the largest element and the sum of exponentials,
normalisations by variances the sum and the squared distances from the mean, which are combined as Chan, Golub and
LeVeque do: no chunk needs another one's mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import dask.array as da
import numpy as np

from ...core.enums import ReduceFunction
from ...core.strided_layout import Array
from ...operators.fused_activation import activated, kept_apart
from ...operators.specs.batch_training import summed_axes
from ...operators.specs.reduce import DML_ARGMAX_OPERATOR_DESC
from . import wide
from .call import Call
from .passes import read_again
from .pieces import in_pieces, squared_distances
from .reduce import Located, apply, is_worth_it, located, total, tree

MOMENTS = np.dtype([("count", np.float64), ("sum", np.float64), ("squares", np.float64)])
"""Of some elements their number, their sum, and the sum of their squared distances from their mean."""


def softmax(call: Call) -> list[da.Array] | None:
    """ACTIVATION_SOFTMAX and ACTIVATION_LOG_SOFTMAX, and those of several axes."""
    x, axes = call.array("InputTensor"), _axes(call)
    if not is_worth_it(x, call, axes):
        return None
    name = call.spec.name.lower()
    combined = total(x, axes, ReduceFunction.LOG_SUM_EXP, call.device, name)
    return [apply(_Softmax("LOG" in call.spec.name), name, x.dtype, [read_again(x), combined])]


def hardmax(call: Call) -> list[da.Array] | None:
    """ACTIVATION_HARDMAX and ACTIVATION_HARDMAX1."""
    x, axes = call.array("InputTensor"), _axes(call)
    if not is_worth_it(x, call, axes):
        return None
    name = call.spec.name.lower()
    desc: Any = call.desc
    argmax = DML_ARGMAX_OPERATOR_DESC(InputTensor=desc.InputTensor, OutputTensor=desc.OutputTensor, Axes=axes)
    how = Located(argmax, axes, ReduceFunction.MAX, False, call.device)
    sizes = tuple([x.shape[axis] for axis in axes])
    found = located(x, how, name)
    return [apply(_Hardmax(axes, sizes), name, x.dtype, [read_again(x), found], places=True)]


def lp_normalization(call: Call) -> list[da.Array] | None:
    """LP_NORMALIZATION."""
    desc: Any = call.desc
    x = call.array("InputTensor")
    if not is_worth_it(x, call, (desc.Axis,)):
        return None
    name = call.spec.name.lower()
    function = ReduceFunction.L1 if desc.P == 1 else ReduceFunction.SUM_SQUARE
    combined = total(x, (desc.Axis,), function, call.device, name)
    return [apply(_Quotient(desc.P, desc.Epsilon), name, x.dtype, [read_again(x), combined])]


def mean_variance(call: Call) -> list[da.Array] | None:
    """MEAN_VARIANCE_NORMALIZATION, and those of any axes."""
    desc: Any = call.desc
    axes = tuple(sorted(desc.Axes)) if hasattr(desc, "Axes") else (1, 2, 3) if desc.CrossChannel else (2, 3)
    scales = desc.UseVariance if hasattr(desc, "UseVariance") else desc.NormalizeVariance
    x = call.array("InputTensor")
    if not is_worth_it(x, call, axes) or not _is_applied_apart(call, x):
        return None
    name, centres = call.spec.name.lower(), bool(getattr(desc, "UseMean", True))
    function = _Normalize(tuple(call.there), centres, bool(scales), desc.Epsilon, desc.FusedActivation)
    moments = _moments(x, axes, centres, call, name)
    return [apply(function, name, x.dtype, [read_again(x), moments, *_others(call, x)])]


def batch_training(call: Call) -> list[da.Array] | None:
    """BATCH_NORMALIZATION_TRAINING."""
    desc: Any = call.desc
    x, axes = call.array("InputTensor"), summed_axes(desc)
    if not is_worth_it(x, call, axes) or not _is_applied_apart(call, x):
        return None
    name = call.spec.name.lower()
    moments = _moments(x, axes, True, call, name)
    function = _Normalize(tuple(call.there), True, True, desc.Epsilon, desc.FusedActivation)
    return [
        apply(function, name, x.dtype, [read_again(x), moments, *_others(call, x)]),
        apply(_Mean(x.dtype), f"{name}-mean", x.dtype, [moments]),
        apply(_Variance(x.dtype), f"{name}-variance", x.dtype, [moments]),
    ]


def _axes(call: Call) -> tuple[int, ...]:
    desc: Any = call.desc
    return tuple(sorted(desc.Axes)) if hasattr(desc, "Axes") else (len(desc.InputTensor.Sizes) - 1,)


def _is_applied_apart(call: Call, x: da.Array) -> bool:
    """Whether the fused activation, if any, is computed chunk by chunk."""
    desc: Any = call.desc
    kept = kept_apart(desc.FusedActivation, desc.OutputTensor)
    return all(count == 1 or i in kept for i, count in enumerate(x.numblocks))


def _others(call: Call, x: da.Array) -> list[da.Array]:
    """All operands but the first, in chunks that line up with its own."""
    found = []
    for label in list(call.there)[1:]:
        array = call.array(label)
        seen = zip(array.shape, x.chunks, strict=True)
        found.append(array.rechunk(tuple([chunks if size == sum(chunks) else (size,) for size, chunks in seen])))
    return found


def _moments(x: da.Array, axes: Sequence[int], centres: bool, call: Call, name: str) -> da.Array:
    partials = apply(_Moments(tuple(axes), centres, call.device), f"{name}-partial", MOMENTS, [x], axes)
    return tree(partials, axes, _add_moments if centres else _add_squares, name)


@dataclass(frozen=True, slots=True)
class _Moments:
    axes: tuple[int, ...]
    centres: bool
    device: Any

    def __call__(self, x: Array) -> Array:
        sums = wide.partial(ReduceFunction.SUM, x, self.axes, self.device)
        y = np.zeros(sums.shape, MOMENTS)
        y["count"], y["sum"] = x.size // max(sums.size, 1), sums
        if x.size == 0:
            return y
        with np.errstate(all="ignore"):
            if self.centres:
                y["squares"] = squared_distances(x, y["sum"] / y["count"], self.axes)
            else:
                y["squares"] = wide.partial(ReduceFunction.SUM_SQUARE, x, self.axes, self.device)
        return y


def _add_squares(a: Array, b: Array) -> Array:
    y = np.empty_like(a)
    for name in MOMENTS.names or ():
        y[name] = a[name] + b[name]
    return y


def _add_moments(a: Array, b: Array) -> Array:
    """Two sums of squares, and what the distance of the means adds: d^2 n(a) n(b) / (n(a) + n(b))."""
    y = _add_squares(a, b)
    distance = b["sum"] / b["count"] - a["sum"] / a["count"]
    added = distance**2 * (a["count"] * b["count"] / y["count"])
    y["squares"] += np.where((a["count"] == 0) | (b["count"] == 0), 0.0, added)
    return y


def _mean(moments: Array) -> Array:
    mean: Array = moments["sum"] / moments["count"]
    return mean


def _variance(moments: Array) -> Array:
    variance: Array = moments["squares"] / moments["count"]
    return variance


@dataclass(frozen=True, slots=True)
class _Mean:
    dtype: np.dtype[Any]

    def __call__(self, moments: Array) -> Array:
        with np.errstate(all="ignore"):
            return _mean(moments).astype(self.dtype)


@dataclass(frozen=True, slots=True)
class _Variance:
    dtype: np.dtype[Any]

    def __call__(self, moments: Array) -> Array:
        with np.errstate(all="ignore"):
            return _variance(moments).astype(self.dtype)


@dataclass(frozen=True, slots=True)
class _Normalize:
    """f((x - mean) / sqrt(variance + epsilon) * scale + bias + added)"""

    labels: Sequence[str]
    centres: bool
    scales: bool
    epsilon: float
    activation: Any

    def __call__(self, x: Array, moments: Array, *others: Array) -> Array:
        with np.errstate(all="ignore"):
            mean, root = _mean(moments), np.sqrt(_variance(moments) + self.epsilon)
        return in_pieces(self._normalized, x.dtype, x, mean, root, *others)

    def _normalized(self, x: Array, mean: Array, root: Array, *others: Array) -> Array:
        y = x.astype(np.float64)
        y = y - mean if self.centres else y
        y = y / root if self.scales else y
        for label, other in zip(self.labels[1:], others, strict=True):
            y = y * other if label == "ScaleTensor" else y + other
        return activated(self.activation, y)


@dataclass(frozen=True, slots=True)
class _Softmax:
    """d = x - largest; e^d / sum, or d - ln(sum), of which the sum may be close to 1."""

    is_logarithm: bool

    def __call__(self, x: Array, combined: Array) -> Array:
        largest = np.where(np.isfinite(combined["largest"]), combined["largest"], np.nan)
        rest = combined["sum"] + (combined["count"] - 1)
        with np.errstate(all="ignore"):
            given = np.log1p(rest) if self.is_logarithm else rest + 1
        function = _log_softmax if self.is_logarithm else _softmax
        return in_pieces(function, x.dtype, x, largest, given)


def _softmax(x: Array, largest: Array, total: Array) -> Array:
    result: Array = np.exp(x.astype(np.float64) - largest) / total
    return result


def _log_softmax(x: Array, largest: Array, logarithm: Array) -> Array:
    result: Array = x.astype(np.float64) - largest - logarithm
    return result


@dataclass(frozen=True, slots=True)
class _Hardmax:
    axes: tuple[int, ...]
    sizes: tuple[int, ...]

    def __call__(self, x: Array, found: Array, places: tuple[slice, ...]) -> Array:
        y = np.ones(x.shape, bool)
        for axis, index in zip(self.axes, np.unravel_index(found["index"], self.sizes), strict=True):
            along = np.arange(places[axis].start, places[axis].stop)
            y &= np.expand_dims(along, [i for i in range(x.ndim) if i != axis]) == index
        return y.astype(x.dtype)


@dataclass(frozen=True, slots=True)
class _Quotient:
    """x over the norm, which is not below epsilon."""

    power: int
    epsilon: float

    def __call__(self, x: Array, total: Array) -> Array:
        norm = np.maximum(total if self.power == 1 else np.sqrt(total), self.epsilon)
        return in_pieces(_divided, x.dtype, x, norm)


def _divided(x: Array, norm: Array) -> Array:
    result: Array = x.astype(np.float64) / norm
    return result
