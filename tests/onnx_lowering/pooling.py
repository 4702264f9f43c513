"""Pooling, by a window or of all."""

from __future__ import annotations

from typing import Any

import numpy as np

from anydml import PaddingMode, TensorDataType
from anydml.frontends.directmlx import Expression

from .node import Adapter, Node, NotSaid, fitted, packed, reshaped, sizes_of, windowed

_WINDOW = ("WindowSize", "Strides", "StartPadding", "EndPadding")


def pooled(name: str, **more: Any) -> Adapter:
    def adapter(node: Node) -> list[Expression]:
        x, taps = node.input(0), list(node.get("kernel_shape"))
        members = {"WindowSize": taps, **fitted(node, sizes_of(x)[2:], taps), **{k: f(node) for k, f in more.items()}}
        if len(taps) == 1:  # a window of one dimension is one of two, of height 1
            x = reshaped(x, (*sizes_of(x)[:2], 1, *sizes_of(x)[2:]))
            members |= {name: [int("Padding" not in name), *members[name]] for name in (*_WINDOW, "Dilations")}
        if node.get("ceil_mode", 0):
            places = zip(sizes_of(x)[2:], *(members[name] for name in (*_WINDOW, "Dilations")), strict=True)
            members["OutputTensor"] = packed(x.tensor.DataType, (*sizes_of(x)[:2], *(ceiled(*each) for each in places)))
        return node.apply(name, InputTensor=x, **members)

    return adapter


def ceiled(size: int, taps: int, stride: int, start: int, end: int, dilation: int) -> int:
    """A size rounded up, but for a window that would begin on the padding behind."""
    places = -(-(size + start + end - (taps - 1) * dilation - 1) // stride) + 1
    return places - ((places - 1) * stride >= size + start)


def max_pool(node: Node) -> list[Expression]:
    if node.get("storage_order", 0):
        raise NotSaid("indices by columns")
    if len(node.outputs) == 1:
        return pooled("MAX_POOLING2")(node)
    values, indices = pooled("MAX_POOLING2", OutputIndicesTensor=lambda node: TensorDataType.UINT64)(node)
    return [values, indices.reinterpret(TensorDataType.INT64, sizes_of(indices))]


def max_unpool(node: Node) -> Expression:
    """Indices count the elements of what the window covers; a larger output has zeros behind these."""
    x, index = node.input(0), node.input(1)
    taps = list(node.get("kernel_shape"))
    members = windowed(node, len(taps))
    each = zip(sizes_of(x)[2:], taps, *(members[name] for name in _WINDOW[1:]), strict=True)
    covered = (*sizes_of(x)[:2], *((n - 1) * stride + tap - start - end for n, tap, stride, start, end in each))
    index = index.reinterpret(TensorDataType.UINT64, sizes_of(index))
    y = node("MAX_UNPOOLING", InputTensor=x, IndicesTensor=index, OutputTensor=packed(x.tensor.DataType, covered))
    behind = [wanted - size for wanted, size in zip(node.value(2, np.array(covered)).tolist(), covered, strict=True)]
    if min(behind) < 0:
        raise NotSaid("an output that is smaller than what the window covers")
    constant: dict[str, Any] = {
        "PaddingMode": PaddingMode.CONSTANT,
        "PaddingValue": 0,
        "StartPadding": [0] * len(behind),
    }
    return node("PADDING", InputTensor=y, **constant, EndPadding=behind) if any(behind) else y


def of_all(adapter: Adapter) -> Adapter:
    """Global pooling: by a window of the image's size."""

    def whole(node: Node) -> Any:
        node.attributes = {**node.attributes, "kernel_shape": node.values[0].shape[2:]}
        return adapter(node)

    return whole


ADAPTERS: dict[str, Adapter] = {
    "AveragePool": pooled("AVERAGE_POOLING1", IncludePadding=lambda node: bool(node.get("count_include_pad", 0))),
    "GlobalAveragePool": of_all(pooled("AVERAGE_POOLING1")),
    "GlobalMaxPool": of_all(max_pool),
    "LpPool": pooled("LP_POOLING1", P=lambda node: node.get("p", 2)),
    "MaxPool": max_pool,
    "MaxUnpool": max_unpool,
}
