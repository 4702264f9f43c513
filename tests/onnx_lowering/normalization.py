"""Normalisations."""

from __future__ import annotations

from anydml.frontends.directmlx import Expression

from .node import Adapter, Node, NotSaid, per_channel, sizes_of


def batch_normalization(node: Node) -> Expression:
    if node.get("training_mode", 0):
        raise NotSaid("training")
    x, *parameters = node.all
    names = ("ScaleTensor", "BiasTensor", "MeanTensor", "VarianceTensor")
    rank = len(sizes_of(x))
    each = {name: per_channel(one, rank) for name, one in zip(names, parameters, strict=True)}
    return node("BATCH_NORMALIZATION", InputTensor=x, Spatial=True, Epsilon=node.get("epsilon", 1e-5), **each)


def instance_normalization(node: Node) -> Expression:
    x, scale, bias = node.all
    rank = len(sizes_of(x))
    return node(
        "MEAN_VARIANCE_NORMALIZATION1",
        InputTensor=x,
        ScaleTensor=per_channel(scale, rank),
        BiasTensor=per_channel(bias, rank),
        Axes=list(range(2, rank)),
        NormalizeVariance=True,
        Epsilon=node.get("epsilon", 1e-5),
    )


def mean_variance_normalization(node: Node) -> Expression:
    x, axes = node.input(0), node.get("axes", [0, 2, 3])
    return node("MEAN_VARIANCE_NORMALIZATION1", InputTensor=x, Axes=axes, NormalizeVariance=True, Epsilon=0)


def lrn(node: Node) -> Expression:
    return node(
        "LOCAL_RESPONSE_NORMALIZATION",
        InputTensor=node.input(0),
        CrossChannel=True,
        LocalSize=node.get("size"),
        Alpha=node.get("alpha", 0.0001),
        Beta=node.get("beta", 0.75),
        Bias=node.get("bias", 1),
    )


ADAPTERS: dict[str, Adapter] = {
    "BatchNormalization": batch_normalization,
    "InstanceNormalization": instance_normalization,
    "LRN": lrn,
    "MeanVarianceNormalization": mean_variance_normalization,
}
