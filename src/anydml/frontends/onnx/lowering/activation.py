"""Activations."""

from __future__ import annotations

from ..context import Lowering, NodeContext
from ..values import Traced


def unary(function: str, **attributes: tuple[str, float]) -> Lowering:
    """A function of one operand; each option is an attribute, with its default."""

    def lowering(node: NodeContext) -> Traced:
        options = {option: node.get(*each) for option, each in attributes.items()}
        return node.shaped(node.call(function, node.x(0), **options), node.shape(0))

    return lowering


LOWERINGS: dict[str, Lowering] = {
    "Relu": unary("relu"),
    "Sigmoid": unary("sigmoid"),
    "Tanh": unary("tanh"),
}
