"""Blocks put back."""

from __future__ import annotations

from math import prod

from anydml.frontends.directmlx import Expression

from .node import Adapter, Node, packed, sizes_of, windowed


def col2im(node: Node) -> Expression:
    x, image, window = node.input(0), node.values[1].tolist(), node.values[2].tolist()
    batch, rows, _ = sizes_of(x)
    output = packed(x.tensor.DataType, (batch, rows // prod(window), *image))
    return node("FOLD", InputTensor=x, OutputTensor=output, WindowSizes=window, **windowed(node, len(image)))


ADAPTERS: dict[str, Adapter] = {"Col2Im": col2im}
