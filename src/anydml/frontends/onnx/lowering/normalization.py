"""Normalisations."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from ...directmlx import Expression
from ..context import Lowering, NodeContext, NotLowered
from .empty import may_be_empty

TINY = float(np.finfo(np.float32).tiny)
"""No norm is as small but 0, of which the result is 0."""


def batch_normalization(node: NodeContext) -> Any:
    """scale * (x - mean) / sqrt(variance + epsilon) + bias, a number of each for a channel."""
    if node.get("training_mode", 0) if node.opset >= 14 else any(node.wants(i) for i in range(1, 5)):
        return _in_training(node)
    x = node.x(0)
    scale, bias, mean, variance = (_parameter(node, i, x) for i in range(1, 5))
    epsilon = node.get("epsilon", 1e-5)
    shape = x.shape
    seen = x.reshape(*shape, 1) if len(shape) == 1 else x
    y = node.call("batch_normalization", seen, mean, variance, scale, bias, epsilon=epsilon)
    return y.reshape(shape)


def _parameter(node: NodeContext, i: int, x: Expression) -> Expression:
    """A parameter along the channels, in x's type; before version 9 one for each element of an image, too."""
    found = node.x(i).reshape(1, *node.shape(i), *(1,) * (max(x.ndim, 2) - 1 - node.rank(i)))
    return found if found.dtype == x.dtype else found.astype(x.dtype)


def _in_training(node: NodeContext) -> list[Expression]:
    """By x's own means and variances, of which a part enters the running ones: running * m + own * (1 - m)."""
    if node.opset < 14:
        raise NotLowered("a training of version 9 or older")
    x = node.x(0)
    scale, bias = (_parameter(node, i, x) for i in (1, 2))
    momentum = node.get("momentum", 0.9)
    y, *own = node.call("batch_normalization_training", x, scale, bias, epsilon=node.get("epsilon", 1e-5))
    found = [y]
    for i, each in zip((3, 4), own, strict=True):
        running = node.x(i)
        found.append(running * momentum + each.astype(running.dtype).reshape(running.shape) * (1 - momentum))
    return found


def layer_normalization(node: NodeContext) -> Any:
    """(x - mean) / sqrt(variance + epsilon) * scale + bias, along the axes from a given one on.

    Also RMSNormalization, which subtracts no mean; its variance is the mean of squares.
    """
    x, epsilon = node.x(0), node.get("epsilon", 1e-5)
    axes = list(range(node.get("axis", -1) % x.ndim, x.ndim))
    has_mean = node.op == "LayerNormalization"
    y = normalized(node, x, axes, epsilon, has_mean, *(node.x(i) if node.has(i) else None for i in (1, 2)))
    if not (node.wants(1) or node.wants(2)):
        return y
    return [y, *moments(node, x, axes, epsilon, has_mean)]


def normalized(
    node: NodeContext,
    x: Expression,
    axes: Sequence[int],
    epsilon: float,
    has_mean: bool = True,
    scale: Expression | None = None,
    bias: Expression | None = None,
) -> Expression:
    """A normalisation along axes, with parameters that broadcast from the last dimension on, in x's type.

    Of other types parameters and x are of single precision, and the result of the type of the scale.
    """
    given = [None if each is None else each.reshape((1,) * (x.ndim - each.ndim) + each.shape) for each in (scale, bias)]
    kinds = {each.dtype for each in (x, *given) if each is not None}
    seen, result = x, x.dtype
    if len(kinds) > 1:
        single = np.dtype(np.float32)
        seen = x if x.dtype == single else x.astype(single)
        given = [each if each is None or each.dtype == single else each.astype(single) for each in given]
        result = scale.dtype if scale is not None else x.dtype
    y: Expression = node.call(
        "mean_variance_normalization", seen, *given, axes=list(axes), use_mean=has_mean, epsilon=epsilon
    )
    return y if y.dtype == result else y.astype(result)


def moments(
    node: NodeContext, x: Expression, axes: Sequence[int], epsilon: float, has_mean: bool = True
) -> list[Expression]:
    """Means and 1 / sqrt(variance + epsilon) along axes, in single precision."""
    seen = x if x.dtype == np.float32 else x.astype(np.float32)
    mean = node.call("reduce", seen, "average", axes=list(axes))
    apart = seen - mean if has_mean else seen
    variance = node.call("reduce", apart * apart, "average", axes=list(axes))
    return [mean, (variance + epsilon) ** -0.5]


def group_normalization(node: NodeContext) -> Expression:
    """Of {N, C, ...} as {N, groups, C / groups, elements}; before version 21 there are parameters for each group."""
    x, groups = node.x(0), node.required("num_groups")
    if x.shape[1] % groups:
        raise NotLowered(f"{groups} groups of {x.shape[1]} channels")
    scale, bias = node.x(1), node.x(2)
    return in_groups(node, x, groups, node.get("epsilon", 1e-5), scale, bias)


def in_groups(
    node: NodeContext, x: Expression, groups: int, epsilon: float, scale: Expression, bias: Expression
) -> Expression:
    """A normalisation of groups of channels; parameters are of groups or of channels."""
    within = x.shape[1] // groups
    split = (x.shape[0], groups, within, prod(x.shape[2:]))
    each = [one.reshape(1, groups, one.shape[0] // groups, 1) for one in (scale, bias)]
    return normalized(node, x.reshape(split), (2, 3), epsilon, True, *each).reshape(x.shape)


def instance_normalization(node: NodeContext) -> Expression:
    x = node.x(0)
    ones = (1,) * (x.ndim - 2)
    scale, bias = (node.x(i).reshape(1, x.shape[1], *ones) for i in (1, 2))
    return normalized(node, x, range(2, x.ndim), node.get("epsilon", 1e-5), True, scale, bias)


def mean_variance_normalization(node: NodeContext) -> Expression:
    """(x - mean) / (deviation + 1e-9), of which the 1e-9 counts for constant rows alone: 1e-18 beside the variance."""
    return normalized(node, node.x(0), [axis % node.rank(0) for axis in node.get("axes", [0, 2, 3])], 1e-18)


def lp_normalization(node: NodeContext) -> Expression:
    """Of 4 dimensions: those before the axis, it, and those behind."""
    x = node.x(0)
    axis = node.get("axis", -1) % x.ndim
    four = (1, prod(x.shape[:axis]), x.shape[axis], prod(x.shape[axis + 1 :]))
    y: Expression = node.call("lp_normalization", x.reshape(four), 2, p=node.get("p", 2), epsilon=TINY)
    return y.reshape(x.shape)


def lrn(node: NodeContext) -> Expression:
    """Across channels, so that spatial dimensions count as one."""
    x = node.x(0)
    shape = x.shape
    four = shape if len(shape) == 4 else (*shape[:2], prod(shape[2:]), 1)
    y: Expression = node.call(
        "local_response_normalization",
        x.reshape(four),
        node.required("size"),
        alpha=node.get("alpha", 1e-4),
        beta=node.get("beta", 0.75),
        bias=node.get("bias", 1.0),
    )
    return y.reshape(shape)


LOWERINGS: dict[str, Lowering] = may_be_empty(
    {
        "BatchNormalization": batch_normalization,
        "GroupNormalization": group_normalization,
        "InstanceNormalization": instance_normalization,
        "LRN": lrn,
        "LayerNormalization": layer_normalization,
        "LpNormalization": lp_normalization,
        "MeanVarianceNormalization": mean_variance_normalization,
        "RMSNormalization": layer_normalization,
    }
)
