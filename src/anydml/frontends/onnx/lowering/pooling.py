"""Pools, by a window or of all."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from ....core.enums import TensorDataType
from ...directmlx import Expression
from ..context import Lowering, NodeContext, NotLowered
from .empty import may_be_empty
from .windows import Window, window_of


def pooled(node: NodeContext, x: Expression, function: str, window: Window, **options: Any) -> Any:
    """A pool of {N, C, ...}; DirectML's have two or three spatial dimensions, so that one is the second of two."""
    sizes = results_of(node, x.shape[2:], window)
    seen, outer = (x, x.shape[:2])
    if len(window.taps) == 1:
        seen, window, sizes = x.reshape(*outer, 1, x.shape[2]), window.with_height(), (1, *sizes)
    given = window.options()
    if set(window.dilations) == {1}:
        given.pop("dilations")
    found = node.call(function, seen, [*window.taps], **given, output_sizes=[*sizes], **options)
    shape = (*outer, *sizes[len(sizes) - len(x.shape[2:]) :])
    return [each.reshape(shape) for each in found] if isinstance(found, list) else found.reshape(shape)


def results_of(node: NodeContext, sizes: Sequence[int], window: Window) -> tuple[int, ...]:
    """The spatial sizes of a pool's result: (size + start + end - reach) / stride + 1.

    With ceil_mode it is rounded up, but for a window that would begin on the padding behind.
    """
    found = []
    for size, stride, start, end, reach in zip(
        sizes, window.strides, window.start, window.end, window.reach, strict=True
    ):
        room = size + start + end - reach
        count = room // stride + 1
        if node.get("ceil_mode", 0):
            count = -(-room // stride) + 1
            count -= (count - 1) * stride >= size + start
        found.append(count)
    return tuple(found)


def average_pool(node: NodeContext) -> Any:
    x = node.x(0)
    window = window_of(node, x.shape[2:], node.required("kernel_shape"))
    include = bool(node.get("count_include_pad", 0))
    return pooled(node, x, "average_pooling", window, include_padding=include)


def lp_pool(node: NodeContext) -> Any:
    x = node.x(0)
    window = window_of(node, x.shape[2:], node.required("kernel_shape"))
    return pooled(node, x, "lp_pooling", window, p=node.get("p", 2))


def max_pool(node: NodeContext) -> Any:
    x = node.x(0)
    window = window_of(node, x.shape[2:], node.required("kernel_shape"))
    if not node.wants(1):
        return pooled(node, x, "max_pooling", window)
    values, indices = pooled(node, x, "max_pooling", window, indices_dtype="uint64")
    found = indices.reinterpret(TensorDataType.INT64, indices.shape)
    return [values, _by_columns(found, x.shape) if node.get("storage_order", 0) else found]


def _by_columns(index: Expression, shape: tuple[int, ...]) -> Expression:
    """Indices that count the elements of each image column by column, of two spatial dimensions or more.

    i = image * size + row-major offset; its coordinates are counted in the opposite order.
    """
    spatial = shape[2:]
    size = prod(spatial)
    image, rest = index // np.int64(size), index % np.int64(size)
    found, step = image * np.int64(size), 1
    behind = size
    for extent in spatial:
        behind //= extent
        found = found + (rest // np.int64(behind)) * np.int64(step)
        rest = rest % np.int64(behind)
        step *= extent
    return found


def max_unpool(node: NodeContext) -> Any:
    """Zeros, with the elements at their indices, which count the elements of what the window covers.

    A larger output_shape has zeros behind these.
    """
    x, index = node.x(0), node.x(1)
    window = window_of(node, x.shape[2:], node.required("kernel_shape"))
    each = zip(x.shape[2:], window.strides, window.reach, window.start, window.end, strict=True)
    sizes = [(size - 1) * stride + reach - start - end for size, stride, reach, start, end in each]
    covered = (*x.shape[:2], *sizes)
    wanted = tuple(node.integers(2, covered))
    if len(wanted) != len(covered) or any(size < own for size, own in zip(wanted, covered, strict=True)):
        raise NotLowered(f"an output of shape {wanted}, smaller than {covered}, which the window covers")
    # DirectML's has two spatial dimensions; an index counts all elements, whatever the shape.
    flat = (*covered[:2], prod(covered[2:-1]), covered[-1])
    own = (*x.shape[:2], prod(x.shape[2:-1]), x.shape[-1])
    places = index.reshape(own).reinterpret(TensorDataType.UINT64, own)
    y = node.call("max_unpooling", x.reshape(own), places, flat).reshape(covered)
    behind = [size - own for size, own in zip(wanted, covered, strict=True)]
    if not any(behind):
        return y
    return node.call("padding", y, [0] * len(behind), behind)


def of_all(function: str) -> Lowering:
    """A pool of the whole image, for each channel."""

    def lowering(node: NodeContext) -> Any:
        x = node.x(0)
        count = x.ndim - 2
        if count < 1:
            return x if function == "average_pooling" or function == "max_pooling" else node.call("abs", x)
        # All spatial dimensions are one image of two.
        seen = x.reshape(*x.shape[:2], prod(x.shape[2:-1]), x.shape[-1])
        options = {"p": node.get("p", 2)} if function == "lp_pooling" else {}
        found = node.call(function, seen, [*seen.shape[2:]], **options)
        return found.reshape(*x.shape[:2], *(1,) * count)

    return lowering


LOWERINGS: dict[str, Lowering] = may_be_empty(
    {
        "AveragePool": average_pool,
        "GlobalAveragePool": of_all("average_pooling"),
        "GlobalLpPool": of_all("lp_pooling"),
        "GlobalMaxPool": of_all("max_pooling"),
        "LpPool": lp_pool,
        "MaxPool": max_pool,
        "MaxUnpool": max_unpool,
    }
)
