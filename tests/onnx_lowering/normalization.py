"""Normalisations."""

from __future__ import annotations

from math import prod

import numpy as np

from anydml import DML_SCALE_BIAS
from anydml.core.strided_layout import DTYPES
from anydml.frontends.directmlx import Expression

from .node import Adapter, Node, broadcast, per_channel, reshaped, sizes_of


def batch_normalization(node: Node) -> Expression | list[Expression]:
    if node.get("training_mode", 0):
        return _in_training(node)
    x, *parameters = node.all
    names = ("ScaleTensor", "BiasTensor", "MeanTensor", "VarianceTensor")
    rank = len(sizes_of(x))
    each = {name: per_channel(one, rank) for name, one in zip(names, parameters, strict=True)}
    return node("BATCH_NORMALIZATION", InputTensor=x, Spatial=True, Epsilon=node.get("epsilon", 1e-5), **each)


def scaled(node: Node, x: Expression, factor: float) -> Expression:
    return node("ELEMENT_WISE_IDENTITY", InputTensor=x, ScaleBias=DML_SCALE_BIAS(Scale=factor, Bias=0))


def _in_training(node: Node) -> list[Expression]:
    """With running means and variances, of which a part stays."""
    x, *parameters = node.all
    rank, momentum = len(sizes_of(x)), node.get("momentum", 0.9)
    scale, bias, *running = [per_channel(one, rank) for one in parameters]
    y, *own = node.apply(
        "BATCH_NORMALIZATION_TRAINING",
        InputTensor=x,
        ScaleTensor=scale,
        BiasTensor=bias,
        Epsilon=node.get("epsilon", 1e-5),
    )
    both = [
        (scaled(node, old, momentum), scaled(node, new, 1 - momentum)) for old, new in zip(running, own, strict=True)
    ]
    return [y, *(node("ELEMENT_WISE_ADD", ATensor=a, BTensor=b) for a, b in both)]


def _parameter(x: Expression, rank: int) -> Expression:
    return reshaped(x, (1,) * (rank - len(sizes_of(x))) + sizes_of(x))


def layer_normalization(node: Node) -> list[Expression]:
    """Means and deviations come of a batch normalisation in training, whose scale is 1."""
    x, epsilon = node.input(0), node.get("epsilon", 1e-5)
    rank = len(sizes_of(x))
    axes = list(range(node.get("axis", -1) % rank, rank))
    parameters = [None if not node.has(i) else _parameter(node.input(i), rank) for i in (1, 2)]
    members = {"Axes": axes, "UseMean": node.op == "LayerNormalization", "UseVariance": True, "Epsilon": epsilon}
    scale, bias = parameters
    y = node("MEAN_VARIANCE_NORMALIZATION2", InputTensor=x, ScaleTensor=scale, BiasTensor=bias, **members)
    if len(node.outputs) == 1:
        return [y]
    kept = [1 if i in axes else size for i, size in enumerate(sizes_of(x))]
    one = broadcast(node.constant(np.ones((1,) * rank, DTYPES[x.tensor.DataType])), kept)
    each = {"InputTensor": x, "ScaleTensor": one, "BiasTensor": one}
    _, mean, variance = node.apply("BATCH_NORMALIZATION_TRAINING", **each, Epsilon=epsilon)
    square = DML_SCALE_BIAS(Scale=1, Bias=epsilon)
    inverse = node("ELEMENT_WISE_CONSTANT_POW", InputTensor=variance, ScaleBias=square, Exponent=-0.5)
    return [y, mean, inverse][: len(node.outputs)]


def group_normalization(node: Node) -> Expression:
    """Of {N, C, ...} as {N, groups, C / groups, elements}."""
    x, groups = node.input(0), node.get("num_groups")
    sizes = sizes_of(x)
    within = sizes[1] // groups
    scale, bias = [reshaped(node.input(i), (1, groups, within, 1)) for i in (1, 2)]
    y = node(
        "MEAN_VARIANCE_NORMALIZATION1",
        InputTensor=reshaped(x, (sizes[0], groups, within, prod(sizes[2:]))),
        ScaleTensor=scale,
        BiasTensor=bias,
        Axes=(2, 3),
        NormalizeVariance=True,
        Epsilon=node.get("epsilon", 1e-5),
    )
    return reshaped(y, sizes)


def lp_normalization(node: Node) -> Expression:
    """Of 4 dimensions: those before the axis, it, and those behind."""
    x = node.input(0)
    sizes = sizes_of(x)
    axis = node.get("axis", -1) % len(sizes)
    four = (1, prod(sizes[:axis]), sizes[axis], prod(sizes[axis + 1 :]))
    # No norm is as small but 0, of which the result is 0.
    tiny = float(np.finfo(np.float32).tiny)
    y = node("LP_NORMALIZATION", InputTensor=reshaped(x, four), Axis=2, Epsilon=tiny, P=node.get("p", 2))
    return reshaped(y, sizes)


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
    "GroupNormalization": group_normalization,
    "InstanceNormalization": instance_normalization,
    "LRN": lrn,
    "LayerNormalization": layer_normalization,
    "LpNormalization": lp_normalization,
    "MeanVarianceNormalization": mean_variance_normalization,
    "RMSNormalization": layer_normalization,
}
