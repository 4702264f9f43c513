"""Activations."""

from __future__ import annotations

from math import pi, sqrt

import anydml
from anydml.frontends.directmlx import Expression

from .node import Adapter, Node, broadcast_all, sizes_of, unary


def prelu(node: Node) -> Expression:
    x, slope = broadcast_all(*node.all)
    return node("ACTIVATION_PARAMETERIZED_RELU", InputTensor=x, SlopeTensor=slope)


def along_axis(name: str) -> Adapter:
    def adapter(node: Node) -> Expression:
        x = node.input(0)
        return node(name, InputTensor=x, Axes=[node.get("axis", -1) % len(sizes_of(x))])

    return adapter


def gelu(node: Node) -> Expression:
    x = node.input(0)
    if node.get("approximate", b"none") == b"tanh":
        # x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3)))
        return x * (anydml.tanh((x + x**3 * 0.044715) * sqrt(2 / pi)) + 1) / 2
    return node("ACTIVATION_GELU", InputTensor=x)


ADAPTERS: dict[str, Adapter] = {
    "Celu": unary("ACTIVATION_CELU", Alpha=("alpha", 1)),
    "Elu": unary("ACTIVATION_ELU", Alpha=("alpha", 1)),
    "Gelu": gelu,
    "HardSigmoid": unary("ACTIVATION_HARD_SIGMOID", Alpha=("alpha", 0.2), Beta=("beta", 0.5)),
    "HardSwish": unary("ACTIVATION_HARD_SWISH", Alpha=("", 1 / 6), Beta=("", 0.5)),
    "Hardmax": along_axis("ACTIVATION_HARDMAX1"),
    "LeakyRelu": unary("ACTIVATION_LEAKY_RELU", Alpha=("alpha", 0.01)),
    "LogSoftmax": along_axis("ACTIVATION_LOG_SOFTMAX1"),
    "PRelu": prelu,
    "Relu": unary("ACTIVATION_RELU"),
    "Selu": unary("ACTIVATION_SCALED_ELU", Alpha=("alpha", 1.6732632), Gamma=("gamma", 1.050701)),
    "Shrink": unary("ACTIVATION_SHRINK", Bias=("bias", 0), Threshold=("lambd", 0.5)),
    "Sigmoid": unary("ACTIVATION_SIGMOID"),
    "Softmax": along_axis("ACTIVATION_SOFTMAX1"),
    "Softplus": unary("ACTIVATION_SOFTPLUS", Steepness=("", 1)),
    "Softsign": unary("ACTIVATION_SOFTSIGN"),
    "Swish": unary("ACTIVATION_SWISH", SigmoidInputScale=("alpha", 1)),
    "Tanh": unary("ACTIVATION_TANH"),
    "ThresholdedRelu": unary("ACTIVATION_THRESHOLDED_RELU", Alpha=("alpha", 1)),
}
