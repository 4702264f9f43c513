"""Normalisations."""

from __future__ import annotations

from anydml.frontends.directmlx import Expression

from .layouts import broadcast_all
from .node import Adapter, Node, along, as_laid_out, channels_first, per_channel


def batch_normalization(node: Node) -> Expression:
    x, axis = node.operand("input"), node.get("axis", 1)
    count = x.shape[axis : axis + 1]
    parameters = {
        "MeanTensor": node.operand("mean"),
        "VarianceTensor": node.operand("variance"),
        "ScaleTensor": node.optional("scale", node.filled(x, count, 1)),
        "BiasTensor": node.optional("bias", node.filled(x, count, 0)),
    }
    return node(
        "BATCH_NORMALIZATION",
        InputTensor=x,
        Spatial=True,
        Epsilon=node.number("epsilon", 1e-5),
        **{name: per_channel(one, x.ndim, axis) for name, one in parameters.items()},
    )


def normalized(node: Node, x: Expression, axes: list[int], of: list[int]) -> Expression:
    """Along axes, with a scale and a bias whose dimensions are, in turn, `of` x's."""
    sizes = [x.shape[axis] for axis in of]
    scale, bias = (
        along(node.optional(name, node.filled(x, sizes, default)), of, x.ndim)
        for name, default in (("scale", 1), ("bias", 0))
    )
    return node(
        "MEAN_VARIANCE_NORMALIZATION1",
        InputTensor=x,
        ScaleTensor=scale,
        BiasTensor=bias,
        Axes=axes,
        NormalizeVariance=True,
        Epsilon=node.number("epsilon", 1e-5),
    )


def instance_normalization(node: Node) -> Expression:
    layout = node.get("layout", "nchw")
    return as_laid_out(normalized(node, channels_first(node.operand("input"), layout), [2, 3], [1]), layout)


def layer_normalization(node: Node) -> Expression:
    x = node.operand("input")
    axes = node.get("axes", list(range(1, x.ndim)))
    if axes:
        return normalized(node, x, sorted(axes), axes)
    # Each element is its own mean.
    zeros = node("ELEMENT_WISE_SUBTRACT", ATensor=x, BTensor=x)
    if not node.has("bias"):
        return zeros
    a, b = broadcast_all(zeros, node.operand("bias"))
    return node("ELEMENT_WISE_ADD", ATensor=a, BTensor=b)


ADAPTERS: dict[str, Adapter] = {
    "batchNormalization": batch_normalization,
    "instanceNormalization": instance_normalization,
    "layerNormalization": layer_normalization,
}
