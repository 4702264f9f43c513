"""What moves elements, or looks at them under another shape."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from ...directmlx import Expression
from ..context import Lowering, NodeContext, NotLowered
from ..values import Shape
from .shapes import axes_of, axis_of, broadcast, filled, like, reshaped, viewed


def _reshaped(node: NodeContext, shape: Shape) -> Any:
    """The same elements; by another desc of the same bytes where one says them."""
    return viewed(node, shape, lambda x: x.reshape(shape), lambda x: reshaped(x, shape))


def identity(node: NodeContext) -> Any:
    value = node.value(0) if node.has(0) else None
    if value is None or isinstance(value, list):
        return [value]
    return _reshaped(node, node.shape(0))


def reshape(node: NodeContext) -> Any:
    own, wanted = node.shape(0), node.integers(1)
    if not node.get("allowzero", 0):
        wanted = [own[i] if size == 0 and i < len(own) else size for i, size in enumerate(wanted)]
    rest = prod(size for size in wanted if size != -1)
    if -1 in wanted and rest:
        wanted[wanted.index(-1)] = prod(own) // rest
    if prod(wanted) != prod(own) or min(wanted, default=0) < 0:
        raise NotLowered(f"shape {tuple(node.integers(1))} of an array of shape {own}")
    return _reshaped(node, tuple(wanted))


def flatten(node: NodeContext) -> Any:
    shape, axis = node.shape(0), node.get("axis", 1)
    axis = axis + len(shape) if axis < 0 else axis
    return _reshaped(node, (prod(shape[:axis]), prod(shape[axis:])))


def _axes(node: NodeContext) -> list[int] | None:
    """An attribute, since operator set 13 an input."""
    found: list[int] | None = node.integers(1) if node.opset >= 13 else node.get("axes")
    return found


def squeeze(node: NodeContext) -> Any:
    shape, axes = node.shape(0), _axes(node)
    gone = [i for i, size in enumerate(shape) if size == 1] if axes is None else axes_of(axes, len(shape))
    return _reshaped(node, tuple([size for i, size in enumerate(shape) if i not in gone]))


def unsqueeze(node: NodeContext) -> Any:
    shape, axes = [*node.shape(0)], _axes(node) or []
    for axis in sorted(axes_of(axes, len(shape) + len(axes))):
        shape.insert(axis, 1)
    return _reshaped(node, tuple(shape))


def transpose(node: NodeContext) -> Any:
    shape = node.shape(0)
    order = axes_of(node.get("perm", range(len(shape))[::-1]), len(shape))
    wanted = tuple([shape[axis] for axis in order])
    return viewed(node, wanted, lambda x: x.transpose(order), lambda x: x.transpose(*order) if order else x)


def expand(node: NodeContext) -> Any:
    shape = tuple(np.broadcast_shapes(node.shape(0), tuple(node.integers(1))))
    if node.is_known(0) and node.dtype(0).kind in "OUST":
        return np.broadcast_to(node.value(0), shape)
    return filled(node, shape, lambda: broadcast(node.x(0), shape))


def concat(node: NodeContext) -> Any:
    axis = axis_of(node.get("axis", 1), node.rank(0))
    shapes = [node.shape(i) for i in range(len(node))]
    shape = [*max(shapes, key=prod)]
    shape[axis] = sum(each[axis] for each in shapes)
    parts = [i for i, each in enumerate(shapes) if 0 not in each]
    if len(parts) == 1:
        return filled(node, tuple(shape), lambda: node.x(parts[0]))
    return filled(node, tuple(shape), lambda: node.call("join", [node.x(i) for i in parts], axis))


def sizes_of_parts(size: int, count: int) -> list[int]:
    """Sizes of so many parts, as equal as those before the last can be."""
    each = -(-size // count)
    return [max(min(each, size - i * each), 0) for i in range(count)]


def cut(node: NodeContext, sizes: list[int], axis: int) -> list[Any]:
    """The first input cut along an axis, into parts some of which may have no elements."""
    shape = node.shape(0)
    if sum(sizes) != shape[axis]:
        raise NotLowered(f"parts of {sizes} of a dimension of {shape[axis]}")
    shapes = [(*shape[:axis], size, *shape[axis + 1 :]) for size in sizes]
    kept = [size for size in sizes if size]
    if 0 in shape:
        return [np.zeros(each, node.dtype(0)) for each in shapes]
    pieces = iter(node.call("split", node.x(0), kept, axis) if len(kept) > 1 else [node.x(0)])
    return [node.shaped(next(pieces), each) if 0 not in each else np.zeros(each, node.dtype(0)) for each in shapes]


def split(node: NodeContext) -> list[Any]:
    axis = axis_of(node.get("axis", 0), node.rank(0))
    sizes = node.integers(1) if node.opset >= 13 else node.get("split")
    if sizes is None:
        count = node.get("num_outputs", len(node.node.outputs))
        size = node.shape(0)[axis]
        if count != len(node.node.outputs):
            raise NotLowered(f"{count} parts for {len(node.node.outputs)} outputs")
        if node.opset < 18 and size % count:
            raise NotLowered(f"{count} equal parts of a dimension of {size}")
        sizes = sizes_of_parts(size, count)
    return cut(node, list(sizes), axis)


def sliced(node: NodeContext) -> Any:
    given = [node.get(name) if node.opset < 10 else node.integers(i) for name, i in _ENDS]
    starts, ends, axes, steps = given
    axes = axes_of(range(len(starts)) if axes is None else axes, node.rank(0))
    shape = node.shape(0)
    windows = [range(size) for size in shape]
    for axis, *each in zip(axes, starts, ends, steps or [1] * len(starts), strict=True):
        windows[axis] = _window(shape[axis], *each)
    return window_of(node, windows)


def _window(size: int, start: int, end: int, step: int) -> range:
    """ONNX's: of a negative step a start before the first element is that, where Python's is nothing."""
    last, before = (size, 0) if step > 0 else (size - 1, -1)
    start, end = (each + size if each < 0 else each for each in (start, end))
    return range(min(max(start, 0), last), min(max(end, before), last), step)


_ENDS = (("starts", 1), ("ends", 2), ("axes", 3), ("steps", 4))


def window_of(node: NodeContext, reached: Sequence[range]) -> Any:
    """The first input's elements at these places along each dimension."""
    shape = node.shape(0)
    wanted = tuple(map(len, reached))

    def make() -> Expression:
        x = node.x(0)
        if all(each == range(size) for each, size in zip(reached, shape, strict=True)):
            return x
        offsets = [min(each) for each in reached]
        sizes = [max(each) - min(each) + 1 for each in reached]
        found: Expression = node.call("slice", x, offsets, sizes, [each.step for each in reached])
        return found

    return filled(node, wanted, make)


_MODES = {"constant": "CONSTANT", "edge": "EDGE", "reflect": "REFLECTION", "wrap": "WRAP"}


def pad(node: NodeContext) -> Any:
    """Elements around those of an array; fewer of these where padding is negative."""
    rank = node.rank(0)
    given, value = (node.get("pads"), node.get("value", 0.0)) if node.opset < 11 else (node.integers(1), None)
    axes = axes_of(node.integers(3, range(rank)), rank)
    padding = np.zeros((2, rank), int)
    padding[:, axes] = np.reshape(given, (2, -1))
    if value is None:
        value = node.number(2, 0)
    return padded(node, padding, node.get("mode", "constant"), value)


def padded(node: NodeContext, padding: Any, mode: str, value: Any) -> Any:
    """The first input with padding, {ends, dimensions}, negative for what is left out."""
    own = node.shape(0)
    shape = tuple([int(size) for size in own + padding.sum(0)])
    start, end = np.maximum(padding, 0).tolist()
    if min(shape, default=1) < 0:
        raise NotLowered(f"padding that leaves shape {shape}")
    if 0 in own and 0 not in shape:
        if mode != "constant":
            raise NotLowered("an empty tensor that is padded with its own elements")
        return node.shaped(broadcast(node.constant(np.array([value], node.dtype(0))), shape), shape)
    windows = [range(max(-int(a), 0), size - max(-int(b), 0)) for size, a, b in zip(own, *padding, strict=True)]

    def make() -> Expression:
        inner: Expression = window_of(node, windows).expression
        if not any(start) and not any(end):
            return inner
        number = int(value) if isinstance(value, bool) else value
        return like(node, node.call("padding", inner, start, end, mode=_MODES[mode], value=number))

    return filled(node, shape, make)


def tile(node: NodeContext) -> Any:
    """Copies one behind the other: by strides of 0 where dimensions of one element are repeated, and others by TILE.

    TILE lacks 8-byte floats: they become {copies, size} by strides, which are copied as they lie.
    """
    own, repeats = node.shape(0), node.integers(1)
    shape = tuple([size * count for size, count in zip(own, repeats, strict=True)])

    def make() -> Expression:
        x = node.x(0)
        if all(size == 1 or count == 1 for size, count in zip(own, repeats, strict=True)):
            return broadcast(x, shape)
        if node.dtype(0) != np.float64:
            found: Expression = node.call("tile", x, repeats)
            return found
        ones = [size for each in own for size in (1, each)]
        wide = [size for pair in zip(repeats, own, strict=True) for size in pair]
        return broadcast(x.reshape(*ones), tuple(wide)).reshape(*shape)

    return filled(node, shape, make)


_ORDERS = {"DCR": "DEPTH_COLUMN_ROW", "CRD": "COLUMN_ROW_DEPTH"}


def rearranged(function: str) -> Lowering:
    """Blocks of depth, in rows and columns."""

    def lowering(node: NodeContext) -> Any:
        (n, c, h, w), block = node.shape(0), node.required("blocksize")
        to_space = function == "depth_to_space"
        shape = (n, c // block**2, h * block, w * block) if to_space else (n, c * block**2, h // block, w // block)
        order = _ORDERS[node.get("mode", "DCR")]
        return filled(node, shape, lambda: node.call(function, node.x(0), block, order))

    return lowering


def reverse_sequence(node: NodeContext) -> Any:
    """The first elements along an axis backwards, as many as each batch says."""
    shape = node.shape(0)
    time, batch = node.get("time_axis", 0), node.get("batch_axis", 1)

    def make() -> Expression:
        lengths = node.x(1).astype(np.uint32)
        lengths = lengths.reshape([size if i == batch else 1 for i, size in enumerate(shape)])
        found: Expression = node.call("reverse_subsequences", node.x(0), lengths, time)
        return found

    return filled(node, shape, make)


def center_crop_pad(node: NodeContext) -> Any:
    """Windows in the middle of dimensions that are too large, and padding around those that are too small."""
    own = node.shape(0)
    axes = axes_of(node.get("axes", range(len(own))), len(own))
    padding = np.zeros((2, len(own)), int)
    for axis, size in zip(axes, node.integers(1), strict=True):
        more = size - own[axis]
        # What is odd is behind, be it padded or cut.
        padding[:, axis] = (more // 2, more - more // 2) if more > 0 else (-(-more // 2), more + -more // 2)
    return padded(node, padding, "constant", 0)


LOWERINGS: dict[str, Lowering] = {
    "CenterCropPad": center_crop_pad,
    "Concat": concat,
    "DepthToSpace": rearranged("depth_to_space"),
    "Expand": expand,
    "Flatten": flatten,
    "Identity": identity,
    "Pad": pad,
    "Reshape": reshape,
    "ReverseSequence": reverse_sequence,
    "Slice": sliced,
    "SpaceToDepth": rearranged("space_to_depth"),
    "Split": split,
    "Squeeze": squeeze,
    "Tile": tile,
    "Transpose": transpose,
    "Unsqueeze": unsqueeze,
}
