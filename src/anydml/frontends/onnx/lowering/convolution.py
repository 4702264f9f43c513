"""Convolutions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...directmlx import Expression
from ..context import Lowering, NodeContext, NotLowered
from .empty import may_be_empty
from .windows import halves, pads_of, window_of


def conv(node: NodeContext) -> Any:
    return convolved(node, node.x(0), node.x(1), node.x(2) if node.has(2) else None)


def convolved(node: NodeContext, x: Expression, w: Expression, bias: Expression | None) -> Expression:
    """A forward convolution, whose window attributes say."""
    window = window_of(node, x.shape[2:], _taps(node, w.shape))
    found: Expression = node.call("convolution", x, w, bias, **window.options(), group_count=node.get("group", 1))
    return found


def _taps(node: NodeContext, w: Sequence[int]) -> tuple[int, ...]:
    taps = tuple(node.get("kernel_shape") or w[2:])
    if taps != tuple(w[2:]):
        raise NotLowered(f"kernel_shape {taps} beside a filter of shape {w}")
    return taps


def conv_transpose(node: NodeContext) -> Expression:
    """A backward convolution, whose whole result has (size - 1) * stride + reach elements; padding is cut off."""
    x, w = node.shape(0), node.shape(1)
    count = len(w) - 2
    window = window_of(node.expanded(attributes={**node.node.attributes, "auto_pad": "NOTSET"}), x[2:], _taps(node, w))
    more = node.get("output_padding") or [0] * count
    each = zip(x[2:], window.strides, window.reach, more, strict=True)
    whole = [(size - 1) * stride + reach + extra for size, stride, reach, extra in each]
    auto, wanted = node.get("auto_pad", "NOTSET"), [*(node.get("output_shape") or [])][-count:]
    if auto.startswith("SAME") and not wanted:
        # Where taps don't reach as far, there is less: no element is put between what they reach and the wanted end.
        wanted = [min(n * stride, most) for n, stride, most in zip(x[2:], window.strides, whole, strict=True)]
    if wanted:
        totals = [max(size - given, 0) for size, given in zip(whole, wanted, strict=True)]
        start, end = halves(totals, auto == "SAME_UPPER")
    else:
        start, end = ((0,) * count,) * 2 if auto == "VALID" else pads_of(node, count)
        wanted = [size - first - last for size, first, last in zip(whole, start, end, strict=True)]
    # An operator's OutputPadding are zeros: of a larger result the elements are those that the taps reach.
    found: Expression = node.call(
        "convolution",
        node.x(0),
        node.x(1),
        node.x(2) if node.has(2) else None,
        direction="BACKWARD",
        **window._replace(start=start, end=end).options(),
        group_count=node.get("group", 1),
        output_sizes=wanted,
    )
    return found


def not_deformable(node: NodeContext) -> Any:
    raise NotLowered("DirectML has no convolution whose taps lie where the data say")


LOWERINGS: dict[str, Lowering] = may_be_empty(
    {
        "Conv": conv,
        "ConvTranspose": conv_transpose,
        "DeformConv": not_deformable,
    }
)
