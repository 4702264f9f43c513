"""Activations."""

from __future__ import annotations

import numpy as np

from anydml.frontends.directmlx import Expression

from .layouts import broadcast_all
from .node import Adapter, Node, unary


def prelu(node: Node) -> Expression:
    x, slope = broadcast_all(*node.operands("input", "slope"))
    return node("ACTIVATION_PARAMETERIZED_RELU", InputTensor=x, SlopeTensor=slope)


def relu(node: Node) -> Expression:
    x = node.x
    if x.dtype != np.int64:
        return node("ACTIVATION_RELU", InputTensor=x)
    # ACTIVATION_RELU has no INT64.
    limits = {"Min": 0, "Max": np.iinfo(np.int64).max}
    return node("ELEMENT_WISE_CLIP1", InputTensor=x, MinMaxDataType=x.tensor.DataType, **limits)


def softmax(node: Node) -> Expression:
    # The first cases have matrices and no axis.
    return node("ACTIVATION_SOFTMAX1", InputTensor=node.x, Axes=[node.get("axis", 1)])


def hard_swish(node: Node) -> Expression:
    return node("ACTIVATION_HARD_SWISH", InputTensor=node.x, Alpha=1 / 6, Beta=0.5)


ADAPTERS: dict[str, Adapter] = {
    "elu": unary("ACTIVATION_ELU", Alpha=("alpha", 1)),
    "gelu": unary("ACTIVATION_GELU"),
    "hardSigmoid": unary("ACTIVATION_HARD_SIGMOID", Alpha=("alpha", 0.2), Beta=("beta", 0.5)),
    "hardSwish": hard_swish,
    "leakyRelu": unary("ACTIVATION_LEAKY_RELU", Alpha=("alpha", 0.01)),
    "linear": unary("ACTIVATION_LINEAR", Alpha=("alpha", 1), Beta=("beta", 0)),
    "prelu": prelu,
    "relu": relu,
    "sigmoid": unary("ACTIVATION_SIGMOID"),
    "softmax": softmax,
    "softplus": unary("ACTIVATION_SOFTPLUS", Steepness=("", 1)),
    "softsign": unary("ACTIVATION_SOFTSIGN"),
    "tanh": unary("ACTIVATION_TANH"),
}
