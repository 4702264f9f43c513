"""GridSample: an image's elements at places that another tensor says, of any number of spatial dimensions.

A place between -1 and 1 is one of the image. Each of its axes has a few taps, whose weights are products:

    y[n, c, p] = sum over taps of weight[n, p] * x[n, c, element[n, p]]
"""

from __future__ import annotations

from itertools import product
from math import prod
from typing import Any, NamedTuple

import numpy as np

from ...directmlx import Expression
from ..context import Lowering, NodeContext, NotLowered
from .shapes import broadcast, filled


class _Tap(NamedTuple):
    """An element along an axis, for each place: its number, its weight (None for 1), and whether it is there."""

    element: Expression
    weight: Expression | None
    inside: Expression | None


_MODES = {"bilinear": "linear", "bicubic": "cubic"}


def grid_sample(node: NodeContext) -> Any:
    (n, channels, *sizes), grid = node.shape(0), node.shape(1)
    mode = node.get("mode", "linear")
    mode = _MODES.get(mode, mode)
    shape = (n, channels, *grid[1:-1])
    if node.dtype(1) == np.float64 or (mode != "nearest" and node.dtype(0) not in (np.float32, np.float16)):
        raise NotLowered("places of float64, or interpolated elements of other types than float32 and float16")

    def make() -> Expression:
        count, total = prod(grid[1:-1]), prod(sizes)
        places = node.x(1).reshape(n, count, len(sizes)).astype(np.float32)
        # The last coordinate of a place is of the first axis.
        axes = [_taps(node, places[:, :, -1 - i].reshape(n, 1, count), size, mode) for i, size in enumerate(sizes)]
        steps = [prod(sizes[i + 1 :]) for i in range(len(sizes))]
        x = node.x(0).reshape(n, channels, total)
        y: Expression | None = None
        for taps in product(*axes):
            part = _part(node, x, taps, steps, (n, channels, count))
            y = part if y is None else y + part
        assert y is not None
        return y.astype(x.dtype).reshape(*shape)

    return filled(node, shape, make)


def _part(
    node: NodeContext, x: Expression, taps: tuple[_Tap, ...], steps: list[int], shape: tuple[int, ...]
) -> Expression:
    """What one tap of each axis adds."""
    number = taps[0].element * np.array([steps[0]], np.int64)
    for tap, step in zip(taps[1:], steps[1:], strict=True):
        number = number + tap.element * np.array([step], np.int64)
    part: Expression = node.call("gather_elements", x, broadcast(number, shape), 2)
    weights = [tap.weight for tap in taps if tap.weight is not None]
    if weights:
        weight = weights[0]
        for each in weights[1:]:
            weight = weight * each
        part = part.astype(np.float32) * weight
    insides = [tap.inside for tap in taps if tap.inside is not None]
    if insides:
        inside = insides[0]
        for each in insides[1:]:
            inside = inside & each
        # What is not there is 0, be the element in its place infinite.
        part = node.call("if_", inside, part, node.constant(np.zeros(1, part.dtype)))
    return part


def _taps(node: NodeContext, place: Expression, size: int, mode: str) -> list[_Tap]:
    """Those of one axis, {images, 1, places}."""
    aligned = bool(node.get("align_corners", 0))
    place = (place + 1) * ((size - 1) / 2) if aligned else ((place + 1) * float(size) - 1) * 0.5
    if mode == "nearest":
        place = node.call("round", place)
    low, high = (0.0, size - 1.0) if aligned else (-0.5, size - 0.5)
    padding = node.get("padding_mode", "zeros")
    if padding == "border":
        place = node.call("if_", (place < low) | (place > high), node.call("clip", place, 0.0, size - 1.0), place)
    elif padding == "reflection":
        place = _reflected(node, place, low, high)
    if mode == "nearest":
        return [_tap(node, place, None, size, padding, low, high)]
    base = node.call("floor", place)
    weights = _weights(place - base, mode)
    first = 0 if mode == "linear" else -1
    return [_tap(node, base + float(first + i), each, size, padding, low, high) for i, each in enumerate(weights)]


def _tap(
    node: NodeContext, at: Expression, weight: Expression | None, size: int, padding: str, low: float, high: float
) -> _Tap:
    inside = None
    if padding == "zeros":
        inside = (at >= 0.0) & (at <= size - 1.0)
    elif padding == "reflection":
        at = _reflected(node, at, low, high)
    element = node.call("clip", at, 0.0, size - 1.0).astype(np.int64)
    return _Tap(element, weight, inside)


def _reflected(node: NodeContext, at: Expression, low: float, high: float) -> Expression:
    """Thrown back at both ends: a wave of period 2 (high - low), of what lies beyond; what is between stays."""
    span = high - low
    if span == 0:
        return at * 0.0 + low
    along = node.call("modulus_floor", at - low, np.array([2 * span], np.float32))
    found = node.call("min", along, 2 * span - along) + low
    result: Expression = node.call("if_", (at < low) | (at > high), found, at)
    return result


def _weights(f: Expression, mode: str) -> list[Expression]:
    """Of the elements around a place, f behind the one before it: linear, or Keys' cubic with a = -0.75."""
    if mode == "linear":
        return [1 - f, f]
    if mode != "cubic":
        raise NotLowered(f"the mode {mode!r}")
    a = -0.75

    def near(d: Expression) -> Expression:
        return (d * (a + 2) - (a + 3)) * d * d + 1

    def far(d: Expression) -> Expression:
        return ((d * a - 5 * a) * d + 8 * a) * d - 4 * a

    return [far(f + 1), near(f), near(1 - f), far(2 - f)]


LOWERINGS: dict[str, Lowering] = {"GridSample": grid_sample, "com.microsoft.GridSample": grid_sample}
