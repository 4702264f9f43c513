"""Convolutions."""

from __future__ import annotations

from typing import Any

from anydml.core.enums import ConvolutionDirection, ConvolutionMode
from anydml.frontends.directmlx import Expression

from .layouts import packed
from .node import Adapter, Node, as_laid_out, channels_first, per_channel


def convolution(node: Node, filters: str, direction: ConvolutionDirection, **members: Any) -> Expression:
    """Filters come in the order of letters that DirectML has."""
    layout = node.get("inputLayout", "nchw")
    bias = node.optional("bias")
    start, end = paddings(node)
    y = node(
        "CONVOLUTION",
        InputTensor=channels_first(node.operand("input"), layout),
        FilterTensor=filter_of(node, filters),
        BiasTensor=None if bias is None else per_channel(bias, 4),
        Mode=ConvolutionMode.CROSS_CORRELATION,
        Direction=direction,
        Strides=node.get("strides", [1, 1]),
        Dilations=node.get("dilations", [1, 1]),
        StartPadding=start,
        EndPadding=end,
        OutputPadding=[0, 0],
        GroupCount=node.get("groups", 1),
        **members,
    )
    return as_laid_out(y, layout)


def filter_of(node: Node, letters: str) -> Expression:
    given = node.get("filterLayout", letters)
    return node.operand("filter").transpose([given.index(letter) for letter in letters])


def paddings(node: Node) -> tuple[list[int], list[int]]:
    """Before and behind: WebNN has the two of a dimension beside each other."""
    padding = node.get("padding", [0] * 4)
    return padding[::2], padding[1::2]


def conv2d(node: Node) -> Expression:
    return convolution(node, "oihw", ConvolutionDirection.FORWARD)


def conv_transpose2d(node: Node) -> Expression:
    x, taps = channels_first(node.operand("input"), node.get("inputLayout", "nchw")), filter_of(node, "iohw")
    sizes = node.get("outputSizes")
    if sizes is None:
        # OutputPadding would be zeros: of a larger output the elements are those that the taps reach.
        each = zip(
            x.shape[2:],
            taps.shape[2:],
            node.get("strides", [1, 1]),
            node.get("dilations", [1, 1]),
            *paddings(node),
            node.get("outputPadding", [0, 0]),
            strict=True,
        )
        sizes = [
            (size - 1) * stride + (tap - 1) * dilation + 1 - start - end + more
            for size, tap, stride, dilation, start, end, more in each
        ]
    output = packed(x.tensor.DataType, (x.shape[0], taps.shape[1] * node.get("groups", 1), *sizes))
    return convolution(node, "iohw", ConvolutionDirection.BACKWARD, OutputTensor=output)


ADAPTERS: dict[str, Adapter] = {
    "conv2d": conv2d,
    "convTranspose2d": conv_transpose2d,
}
