"""Pooling."""

from __future__ import annotations

from typing import Any

from anydml.frontends.directmlx import Expression

from .convolution import paddings
from .layouts import packed
from .node import Adapter, Node, as_laid_out, channels_first


def pooled(name: str, dilated: str, **more: Any) -> Adapter:
    """By one operator, or where there are dilations by another."""

    def adapter(node: Node) -> Expression:
        layout = node.get("layout", "nchw")
        x = channels_first(node.operand("input"), layout)
        start, end = paddings(node)
        members = {
            "WindowSize": node.get("windowDimensions", x.shape[2:]),
            "Strides": node.get("strides", [1, 1]),
            "StartPadding": start,
            "EndPadding": end,
        }
        dilations = node.get("dilations", [1, 1])
        sizes = node.get("outputSizes")
        if sizes is None:
            rounded_up = node.get("roundingType", "floor") == "ceil"
            each = zip(x.shape[2:], dilations, *members.values(), strict=True)
            sizes = [places(*one, rounded_up) for one in each]
        has_dilations = dilations != [1, 1] or name == dilated
        y = node(
            dilated if has_dilations else name,
            InputTensor=x,
            OutputTensor=packed(x.tensor.DataType, (*x.shape[:2], *sizes)),
            **members,
            **({"Dilations": dilations} if has_dilations else {}),
            **more,
        )
        return as_laid_out(y, layout)

    return adapter


def places(size: int, dilation: int, taps: int, stride: int, start: int, end: int, rounded_up: bool) -> int:
    """How many windows there are."""
    room = size + start + end - (taps - 1) * dilation - 1
    return (-(-room // stride) if rounded_up else room // stride) + 1


ADAPTERS: dict[str, Adapter] = {
    "averagePool2d": pooled("AVERAGE_POOLING", "AVERAGE_POOLING1", IncludePadding=False),
    "l2Pool2d": pooled("LP_POOLING", "LP_POOLING1", P=2),
    "maxPool2d": pooled("MAX_POOLING2", "MAX_POOLING2"),
}
