"""Steps of optimizers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...directmlx import Expression
from ..context import Lowering, NodeContext

Step = Callable[[NodeContext, list[Expression]], list[Expression]]


def of_each(kinds: int, step: Step) -> Lowering:
    """A step of several tensors: behind the rate and the number of the step come the parameters, then the gradients,
    and each of the states, and so do the results."""

    def lowering(node: NodeContext) -> list[Any]:
        count = (len(node) - 2) // kinds
        found = []
        for i in range(count):
            places = [2 + kind * count + i for kind in range(kinds)]
            results = step(node, [node.x(place) for place in places])
            shape = node.shape(places[0])
            found.append([node.shaped(each, shape) for each in results])
        return [each for results in zip(*found, strict=True) for each in results]

    return lowering


def _regularised(node: NodeContext, x: Expression, gradient: Expression) -> Expression:
    """With a part of the parameters, which decay so."""
    decay = node.get("norm_coefficient", 0.0)
    return gradient + x * decay if decay else gradient


def adam(node: NodeContext, given: list[Expression]) -> list[Expression]:
    """By the operator, whose tensors are of 4 dimensions, and whose rate is a number."""
    x, gradient, first, second = given
    after = node.get("norm_coefficient_post", 0.0)
    shape = x.shape
    four = (1,) * (4 - len(shape)) + shape
    given = [each.reshape(four) for each in (x, first, second, _regularised(node, x, gradient))]
    step = node.narrowed(node.x(1), np.uint32).reshape(1, 1, 1, 1)
    results = node.call(
        "adam_optimizer",
        *given,
        step,
        learning_rate=node.number(0),
        beta1=node.get("alpha", 0.9),
        beta2=node.get("beta", 0.999),
        epsilon=node.get("epsilon", 1e-6),
    )
    x, *moments = (each.reshape(shape) for each in results)
    return [x * (1 - after) if after else x, *moments]


def adagrad(node: NodeContext, given: list[Expression]) -> list[Expression]:
    """h = h + g^2; x = x - rate / (1 + step * decay) * g / (sqrt(h) + epsilon)"""
    x, gradient, squares = given
    gradient = _regularised(node, x, gradient)
    squares = squares + gradient * gradient
    rate = node.x(0) / (node.x(1).astype(x.dtype) * node.get("decay_factor", 0.0) + 1)
    below = node.call("sqrt", squares) + node.get("epsilon", 1e-6)
    return [x - rate * gradient / below, squares]


def momentum(node: NodeContext, given: list[Expression]) -> list[Expression]:
    """v = alpha * v + beta * g, with beta 1 in the first step; x = x - rate * v, Nesterov's of g + alpha * v."""
    x, gradient, velocity = given
    gradient = _regularised(node, x, gradient)
    alpha, beta = node.required("alpha"), node.required("beta")
    later = node.x(1) > node.constant(np.zeros(1, node.dtype(1)))
    factor = node.call("if_", later, node.constant(np.full(1, beta, x.dtype)), node.constant(np.ones(1, x.dtype)))
    velocity = velocity * alpha + gradient * factor
    step = gradient + velocity * alpha if node.get("mode") == "nesterov" else velocity
    return [x - node.x(0) * step, velocity]


LOWERINGS: dict[str, Lowering] = {
    f"{domain}.{name}": of_each(kinds, step)
    for domain in ("ai.onnx.preview.training", "ai.onnx.training")
    for name, kinds, step in (("Adagrad", 3, adagrad), ("Adam", 4, adam), ("Momentum", 3, momentum))
}
