"""Convolutions."""

from __future__ import annotations

from typing import Any

from anydml.core.enums import (
    ConvolutionDirection,
    ConvolutionMode,
)
from anydml.core.strided_layout import DATA_TYPES
from anydml.frontends.directmlx import Expression

from .node import Adapter, Node, fitted, halves, packed, per_channel, windowed


def convolution(node: Node, **members: Any) -> Expression:
    bias = per_channel(node.input(2), node.values[0].ndim) if node.has(2) else None
    n = node.values[0].ndim - 2
    return node(
        "CONVOLUTION",
        InputTensor=node.input(0),
        FilterTensor=node.input(1),
        BiasTensor=bias,
        Mode=ConvolutionMode.CROSS_CORRELATION,
        OutputPadding=[0] * n,
        GroupCount=node.get("group", 1),
        **members,
    )


def conv(node: Node) -> Expression:
    x, w = node.values[:2]
    return convolution(node, Direction=ConvolutionDirection.FORWARD, **fitted(node, x.shape[2:], w.shape[2:]))


def conv_transpose(node: Node) -> Expression:
    x, w = node.values[:2]
    n = x.ndim - 2
    members, auto = windowed(node, n), node.get("auto_pad", b"NOTSET")
    each = zip(x.shape[2:], w.shape[2:], members["Strides"], members["Dilations"], strict=True)
    whole = [(size - 1) * stride + (tap - 1) * dilation + 1 for size, tap, stride, dilation in each]
    whole = [size + more for size, more in zip(whole, node.get("output_padding", [0] * n), strict=True)]
    wanted = node.get("output_shape")
    if auto.startswith(b"SAME"):
        wanted = [size * stride for size, stride in zip(x.shape[2:], members["Strides"], strict=True)]
    if wanted:
        totals = [max(size - given, 0) for size, given in zip(whole, wanted, strict=True)]
        members["StartPadding"], members["EndPadding"] = halves(totals, auto)
    else:
        cut = zip(whole, members["StartPadding"], members["EndPadding"], strict=True)
        wanted = [size - start - end for size, start, end in cut]
    # OutputPadding would be zeros: of a larger output the elements are those that the taps reach.
    output = packed(DATA_TYPES[x.dtype], (x.shape[0], w.shape[1] * node.get("group", 1), *wanted))
    return convolution(node, Direction=ConvolutionDirection.BACKWARD, OutputTensor=output, **members)


ADAPTERS: dict[str, Adapter] = {
    "Conv": conv,
    "ConvTranspose": conv_transpose,
}
