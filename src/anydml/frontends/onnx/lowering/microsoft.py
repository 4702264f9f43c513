"""Operators of com.microsoft that are several of ONNX's in one: activations, products, normalisations."""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np

from ...directmlx import Expression
from ..context import Lowering, NodeContext, NotLowered
from . import fill, indexing, movement, quantization
from .convolution import conv, conv_transpose, convolved
from .gemm import gemm
from .normalization import in_groups, moments, normalized


def tanh_gelu(node: NodeContext, x: Expression) -> Expression:
    """x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3)))"""
    inner = (x + x**3 * 0.044715) * sqrt(2 / np.pi)
    found: Expression = x * 0.5 * (node.call("tanh", inner) + 1)
    return found


def gelu(node: NodeContext) -> Any:
    """Of the sum of an input and a bias, where there is one."""
    return node.shaped(node.call("gelu", _biased(node)), node.shape(0))


def fast_gelu(node: NodeContext) -> Any:
    return node.shaped(tanh_gelu(node, _biased(node)), node.shape(0))


def quick_gelu(node: NodeContext) -> Any:
    """x * sigmoid(alpha * x)"""
    return node.shaped(node.call("swish", node.x(0), node.get("alpha", 1.702)), node.shape(0))


def _biased(node: NodeContext) -> Expression:
    return node.x(0) + node.x(1) if node.has(1) else node.x(0)


def bias_add(node: NodeContext) -> Expression:
    return node.x(0) + node.x(1) + node.x(2)


def bias_split_gelu(node: NodeContext) -> Expression:
    """The first half of channels times GELU of the other."""
    x = node.x(0) + node.x(1)
    half = x.shape[-1] // 2
    found: Expression = x[..., :half] * node.call("gelu", x[..., half:])
    return found


_ACTIVATIONS: dict[str, tuple[str, tuple[tuple[str, float], ...]]] = {
    "Clip": ("clip", (("min", 0.0), ("max", 1.0))),
    "Elu": ("elu", (("alpha", 1.0),)),
    "HardSigmoid": ("hard_sigmoid", (("alpha", 0.2), ("beta", 0.5))),
    "LeakyRelu": ("leaky_relu", (("alpha", 0.01),)),
    "Relu": ("relu", ()),
    "Sigmoid": ("sigmoid", ()),
    "Softplus": ("softplus", ()),
    "Softsign": ("softsign", ()),
    "Tanh": ("tanh", ()),
    "ThresholdedRelu": ("thresholded_relu", (("alpha", 1.0),)),
}
"""Functions, with the options that parameters give in this order."""


def activated(node: NodeContext, x: Any, given: list[float]) -> Any:
    """The attribute `activation` applied to a result."""
    name = node.get("activation", "")
    if not name:
        return x
    if name not in _ACTIVATIONS:
        raise NotLowered(f"an activation {name!r}")
    function, options = _ACTIVATIONS[name]
    numbers = {option: given[i] if i < len(given) else value for i, (option, value) in enumerate(options)}
    return node.call(function, x, **numbers)


def fused_conv(node: NodeContext) -> Any:
    """act(conv(x, w) + b + z)"""
    y = conv(node)
    y = y + node.x(3) if node.has(3) else y
    return activated(node, y, node.get("activation_params", []))


def nhwc_conv(node: NodeContext) -> Any:
    """Of {N, H, W, C}, and a filter of {M, H, W, C}, which strides say."""
    x, w = (channels_first(node.x(i)) for i in (0, 1))
    y = convolved(node, x, w, node.x(2) if node.has(2) else None)
    y = y + channels_first(node.x(3)) if node.has(3) else y
    return channels_last(node, activated(node, y, node.get("activation_params", [])))


def channels_first(x: Expression) -> Expression:
    """A view of {N, H, W, C} as {N, C, H, W}."""
    return x.transpose(0, x.ndim - 1, *range(1, x.ndim - 1))


def channels_last(node: NodeContext, y: Expression) -> Expression:
    """The elements of {N, C, H, W} in the order of {N, H, W, C}."""
    found: Expression = node.call("identity", y.transpose(0, *range(2, y.ndim), 1))
    return found


def conv_transpose_with_pads(node: NodeContext) -> Any:
    """Pads are an input."""
    attributes = {**node.node.attributes, "pads": node.integers(2)}
    names = node.node.inputs
    inputs = (*names[:2], *names[3:4])
    return conv_transpose(node.expanded(inputs=inputs, attributes=attributes))


def fused_gemm(node: NodeContext) -> Any:
    given = [node.get(name) for name in ("activation_alpha", "activation_beta", "activation_gamma")]
    return activated(node, gemm(node), [each for each in given if each is not None])


def fused_mat_mul(node: NodeContext) -> Any:
    """alpha * a b of matrices that may be transposed; with transBatch their rows are the first dimension."""
    a, b = (_batched(node, i, flag) for i, flag in enumerate(("transBatchA", "transBatchB")))
    trans_a, trans_b = (bool(node.get(name, 0)) for name in ("transA", "transB"))
    shape_a, shape_b = node.shape(0), node.shape(1)
    if len(shape_a) == 1:
        a, trans_a = a.reshape(1, -1), False
    if len(shape_b) == 1:
        b, trans_b = b.reshape(-1, 1), False
    y = node.call("gemm", a, b, trans_a=trans_a, trans_b=trans_b, alpha=node.get("alpha", 1.0))
    rows = () if len(shape_a) == 1 else y.shape[-2:-1]
    columns = () if len(shape_b) == 1 else y.shape[-1:]
    given = [node.get(name) for name in ("activation_alpha", "activation_beta", "activation_gamma")]
    found = activated(node, y, [each for each in given if each is not None])
    return node.shaped(found, (*y.shape[:-2], *rows, *columns))


def _batched(node: NodeContext, i: int, flag: str) -> Expression:
    x = node.x(i)
    if not node.get(flag, 0) or x.ndim < 3:
        return x
    found: Expression = node.call("identity", x.transpose(*range(1, x.ndim - 1), 0, x.ndim - 1))
    return found


def skip_layer_normalization(node: NodeContext) -> list[Any]:
    """A normalisation of input + skip + bias along the last axis."""
    has_mean = "Simplified" not in node.op
    gamma, beta, bias = (2, 3, 4) if has_mean else (2, None, 3)
    x = node.x(0) + node.x(1)
    if node.has(bias):
        x = x + node.x(bias)
    axes, epsilon = [x.ndim - 1], node.get("epsilon", 1e-12)
    parameters = [node.x(i) if i is not None and node.has(i) else None for i in (gamma, beta)]
    y = normalized(node, x, axes, epsilon, has_mean, *parameters)
    middle = moments(node, x, axes, epsilon, has_mean) if node.wants(1) or node.wants(2) else [None, None]
    return [y, *middle, x]


def simplified_layer_normalization(node: NodeContext) -> list[Any]:
    x, epsilon = node.x(0), node.get("epsilon", 1e-5)
    axes = list(range(node.get("axis", -1) % x.ndim, x.ndim))
    y = normalized(node, x, axes, epsilon, False, node.x(1))
    return [y, moments(node, x, axes, epsilon, False)[1]] if node.wants(1) else [y]


def embed_layer_normalization(node: NodeContext) -> list[Any]:
    """A normalisation of the sum of embeddings of words, places and segments; and how many words there are."""
    ids = node.x(0)
    places = node.x(8) if node.has(8) else node.constant(np.arange(ids.shape[1], dtype=np.int32)[None])
    x = node.call("gather", node.x(2), ids, axis=0) + node.call("gather", node.x(3), places, axis=0)
    if node.has(1) and node.has(4):
        x = x + node.call("gather", node.x(4), node.x(1), axis=0)
    y = normalized(node, x, [2], node.get("epsilon", 1e-12), True, node.x(5), node.x(6))
    count: Any = np.zeros(ids.shape[0], np.int32)
    if node.has(7) and node.get("mask_index_type", 1):
        ones = (node.x(7) == node.constant(np.ones((1, 1), node.dtype(7)))).astype(np.int32)
        count = node.call("reduce", ones, "sum", axes=[1]).reshape(ids.shape[0])
    return [y, count, x]


def group_norm(node: NodeContext) -> Any:
    """In groups of channels, which are last unless the attribute says otherwise; then x * sigmoid(x) where asked for.

    SkipGroupNorm is that of x + skip + bias, a result, too; its skips are of {N, C} or {N, 1, 1, C} also.
    """
    x = node.x(0)
    if node.has(3):
        skip = node.x(3)
        x = x + (skip.reshape(skip.shape[0], 1, 1, skip.shape[1]) if skip.ndim == 2 else skip)
        x = x + node.x(4) if node.has(4) else x
    is_last = bool(node.get("channels_last", 1))
    first = node.call("identity", x.transpose(0, 3, 1, 2)) if is_last else x
    y = in_groups(node, first, node.required("groups"), node.get("epsilon", 1e-5), node.x(1), node.x(2))
    y = node.call("swish", y) if node.required("activation") else y
    y = y if y.dtype == x.dtype else y.astype(x.dtype)
    y = node.call("identity", y.transpose(0, 2, 3, 1)) if is_last else y
    return [y, x] if node.wants(1) else y


def as_of(lowering: Lowering, opset: int) -> Lowering:
    """One of ONNX's own, in the words of a version of its operators."""
    return lambda node: lowering(node.expanded(opset=opset))


def expand_dims(node: NodeContext) -> Any:
    shape, axis = list(node.shape(0)), node.number(1)
    shape.insert(axis if axis >= 0 else len(shape) + 1 + axis, 1)
    return node.shaped(node.x(0), tuple(shape))


LOWERINGS: dict[str, Lowering] = {
    "SimplifiedLayerNormalization": simplified_layer_normalization,
    **{
        f"com.microsoft.{name}": lowering
        for name, lowering in {
            "BiasAdd": bias_add,
            "BiasGelu": gelu,
            "BiasSplitGelu": bias_split_gelu,
            "ConvTransposeWithDynamicPads": conv_transpose_with_pads,
            "DequantizeLinear": as_of(quantization.dequantize, 13),
            "EmbedLayerNormalization": embed_layer_normalization,
            "ExpandDims": expand_dims,
            "FastGelu": fast_gelu,
            "FusedConv": fused_conv,
            "FusedGemm": fused_gemm,
            "FusedMatMul": fused_mat_mul,
            "FusedMatMulActivation": fused_mat_mul,
            "GatherND": as_of(indexing.gather_nd, 11),
            "Gelu": gelu,
            "GroupNorm": group_norm,
            "NhwcConv": nhwc_conv,
            "NhwcFusedConv": nhwc_conv,
            "Pad": as_of(movement.pad, 11),
            "QuantizeLinear": as_of(quantization.quantize, 13),
            "QuickGelu": quick_gelu,
            "Range": as_of(fill.sequence, 11),
            "SimplifiedLayerNormalization": simplified_layer_normalization,
            "SkipGroupNorm": group_norm,
            "SkipLayerNormalization": skip_layer_normalization,
            "SkipSimplifiedLayerNormalization": skip_layer_normalization,
            "TransposeMatMul": fused_mat_mul,
            "Trilu": as_of(fill.trilu, 14),
        }.items()
    },
}
