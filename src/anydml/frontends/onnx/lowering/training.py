"""Steps of optimizers, of several tensors at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ...directmlx import Expression
from ..context import Lowering, NodeContext, NotLowered
from .pointwise import call
from .shapes import broadcast


def _of_each(states: int, step: Callable[..., list[Expression]]) -> Lowering:
    """A step of each tensor.

    Args:
        states: how many tensors an optimizer keeps of each one.
        step: what becomes of a tensor and of what is kept, which are given flat, with the gradient as the second.
    """

    def lowering(node: NodeContext) -> list[Any]:
        count = (len(node) - 2) // (2 + states)
        found = [[*_step(node, i, count, states, step)] for i in range(count)]
        return [each for kind in zip(*found, strict=True) for each in kind]

    return lowering


def _step(node: NodeContext, i: int, count: int, states: int, step: Callable[..., list[Expression]]) -> Iterator[Any]:
    places = [2 + i + part * count for part in range(2 + states)]
    shape = node.shape(places[0])
    if any(node.shape(place) != shape for place in places):
        raise NotLowered("a tensor and what an optimizer keeps of it of other shapes")
    if 0 in shape:
        kept = [places[0], *places[2:]]
        yield from (np.zeros(shape, node.dtype(place)) for place in kept)
        return
    x, gradient, *kept_of_it = [node.x(place).reshape(-1) for place in places]
    decay = float(node.get("norm_coefficient", 0.0))
    if decay:
        gradient = gradient + x * decay
    for y in step(node, x, gradient, *kept_of_it):
        yield node.shaped(y, shape)


def _adam(node: NodeContext, x: Expression, gradient: Expression, first: Expression, second: Expression) -> Any:
    """ADAM_OPTIMIZER, whose rate is in its desc: one that is fed is a factor of the step from 0 at a rate of 1."""
    is_known = node.is_known(0)
    origin = x if is_known else broadcast(node.constant(np.zeros(1, x.dtype)), x.shape)
    y, *moments = node.call(
        "adam_optimizer",
        origin,
        first,
        second,
        gradient,
        node.narrowed(node.x(1), np.uint32),
        learning_rate=float(node.number(0)) if is_known else 1.0,
        beta1=float(node.get("alpha", 0.9)),
        beta2=float(node.get("beta", 0.999)),
        epsilon=float(node.get("epsilon", 1e-6)),
    )
    y = y if is_known else x + y * node.x(0)
    after = float(node.get("norm_coefficient_post", 0.0))
    return [y * (1 - after) if after else y, *moments]


def _adagrad(node: NodeContext, x: Expression, gradient: Expression, squares: Expression) -> Any:
    """h = h + g^2, x = x - r / (1 + t * decay) * g / (sqrt(h) + epsilon)."""
    rate = node.x(0) / (node.x(1).astype(x.dtype) * float(node.get("decay_factor", 0.0)) + 1)
    squares = squares + gradient * gradient
    root = call(node, "sqrt", squares) + float(node.get("epsilon", 1e-6))
    return [x - rate * gradient / root, squares]


def _momentum(node: NodeContext, x: Expression, gradient: Expression, velocity: Expression) -> Any:
    """v = alpha * v + beta * g, with a beta of 1 at step 0; x = x - r * v, or x - r * (g + alpha * v) of Nesterov."""
    alpha, beta = float(node.required("alpha")), float(node.required("beta"))
    factor = call(node, "if_", node.x(1) > 0, node.constant(np.full(1, beta, x.dtype)), 1.0)
    velocity = velocity * alpha + factor * gradient
    is_nesterov = node.required("mode") == "nesterov"
    return [x - node.x(0) * (gradient + velocity * alpha if is_nesterov else velocity), velocity]


_DOMAIN = "ai.onnx.preview.training"

LOWERINGS: dict[str, Lowering] = {
    f"{_DOMAIN}.Adagrad": _of_each(1, _adagrad),
    f"{_DOMAIN}.Adam": _of_each(2, _adam),
    f"{_DOMAIN}.Momentum": _of_each(1, _momentum),
}
