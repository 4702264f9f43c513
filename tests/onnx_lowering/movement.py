"""What moves elements, makes them or changes their type."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from anydml.core.enums import (
    AxisDirection,
    InterpolationMode,
    PaddingMode,
)
from anydml.core.strided_layout import DATA_TYPES
from anydml.frontends.directmlx import Expression

from .node import Adapter, Node, NotSaid, packed, reshaped, sizes_of

_PADDING = {b"constant": "CONSTANT", b"edge": "EDGE", b"reflect": "REFLECTION", b"wrap": "WRAP"}


def sliced(node: Node) -> Expression:
    x, (starts, ends) = node.input(0), node.values[1:3]
    sizes = sizes_of(x)
    windows = [slice(0, size, 1) for size in sizes]
    axes, steps = node.value(3, range(len(starts))), node.value(4, [1] * len(starts))
    for axis, *each in zip(axes, starts, ends, steps, strict=True):
        windows[axis] = slice(*map(int, each))
    reached = [range(*window.indices(size)) for window, size in zip(windows, sizes, strict=True)]
    if not all(reached):
        raise NotSaid("a size of 0")
    return node(
        "SLICE1",
        InputTensor=x,
        InputWindowOffsets=[min(each) for each in reached],
        InputWindowSizes=[max(each) - min(each) + 1 for each in reached],
        InputWindowStrides=[each.step for each in reached],
    )


def split(node: Node) -> list[Expression]:
    x, axis, count = node.input(0), node.get("axis", 0), len(node.outputs)
    size = sizes_of(x)[axis]
    each = -(-size // count)
    parts = node.value(1, [min(each, size - i * each) for i in range(count)])
    sizes = [[part if i == axis % x.tensor.DimensionCount else n for i, n in enumerate(sizes_of(x))] for part in parts]
    pieces = [packed(x.tensor.DataType, piece) for piece in sizes]
    return node.apply("SPLIT", InputTensor=x, OutputTensors=pieces, Axis=axis % len(sizes_of(x)))


def pad(node: Node) -> Expression:
    x = node.input(0)
    padding = np.zeros((2, len(sizes_of(x))), int)
    padding[:, node.value(3, slice(None))] = np.reshape(node.values[1], (2, -1))
    return node(
        "PADDING",
        InputTensor=x,
        PaddingMode=PaddingMode[_PADDING[node.get("mode", b"constant")]],
        PaddingValue=float(node.value(2, 0)),
        StartPadding=padding[0],
        EndPadding=padding[1],
    )


def gather(node: Node) -> Expression:
    x, indices = node.all
    axis, own, of_indices = node.get("axis", 0), len(sizes_of(x)), node.values[1].ndim
    rank = max(own, own - 1 + of_indices)
    x, indices = (reshaped(each, (1,) * (rank - len(sizes_of(each))) + sizes_of(each)) for each in (x, indices))
    axis = axis % own + rank - own
    return node("GATHER", InputTensor=x, IndicesTensor=indices, Axis=axis, IndexDimensions=of_indices)


def concat(node: Node) -> Expression:
    each = node.all
    return node("JOIN", InputTensors=each, Axis=node.get("axis") % len(sizes_of(each[0])))


def cast(node: Node) -> Expression:
    from onnx.helper import tensor_dtype_to_np_dtype

    to = tensor_dtype_to_np_dtype(node.get("to"))
    if to not in DATA_TYPES:
        raise NotSaid(f"elements of {to}")
    return node("CAST", InputTensor=node.input(0), OutputTensor=DATA_TYPES[to])


def constant_of_shape(node: Node) -> Expression:
    value = node.get("value", np.zeros(1, np.float32))
    data_type = DATA_TYPES[value.dtype]
    output = packed(data_type, node.values[0].tolist())
    return node("FILL_VALUE_CONSTANT", OutputTensor=output, ValueDataType=data_type, Value=value.item())


def sequence(node: Node) -> Expression:
    start, limit, delta = node.values
    if start.dtype not in DATA_TYPES:
        raise NotSaid(f"elements of {start.dtype}")
    data_type = DATA_TYPES[start.dtype]
    count = max(math.ceil((limit.item() - start.item()) / delta.item()), 0)
    output = packed(data_type, (count,))
    ends = {"ValueStart": start.item(), "ValueDelta": delta.item()}
    return node("FILL_VALUE_SEQUENCE", OutputTensor=output, ValueDataType=data_type, **ends)


def resized(node: Node, scales: Any, sizes: Any = None) -> Expression:
    x = node.input(0)
    shape = sizes_of(x)
    axes = [axis % len(shape) for axis in node.get("axes", range(len(shape)))]
    mode = node.get("mode", b"nearest")
    upsample = node.op == "Upsample"
    transform = node.get("coordinate_transformation_mode", b"asymmetric" if upsample else b"half_pixel")
    if mode == b"cubic" or node.get("exclude_outside", 0):
        raise NotSaid("that interpolation")
    out_sizes, factors = list(shape), [1.0] * len(shape)
    if sizes is not None:
        ratios = [size / shape[axis] for axis, size in zip(axes, sizes, strict=True)]
        choose = {b"not_larger": min, b"not_smaller": max}.get(node.get("keep_aspect_ratio_policy"))
        scales = [choose(ratios)] * len(ratios) if choose else ratios
        sizes = [math.floor(choose(ratios) * shape[axis] + 0.5) for axis in axes] if choose else sizes
    for i, axis in enumerate(axes):
        factors[axis] = float(scales[i])
        out_sizes[axis] = math.floor(shape[axis] * factors[axis]) if sizes is None else int(sizes[i])
    regions = (
        {axis: node.values[1][[i, i + len(axes)]] for i, axis in enumerate(axes)} if transform.startswith(b"tf") else {}
    )
    if any(start < 0 or end > 1 for start, end in regions.values()):
        raise NotSaid("a value for what lies beyond the ends")
    before, behind = [0.5] * len(shape), [-0.5] * len(shape)
    for axis in axes:
        size, out_size = shape[axis], out_sizes[axis]
        if transform == b"asymmetric":
            before[axis], behind[axis] = 0.0, 0.0
        elif transform == b"half_pixel_symmetric":
            before[axis] = 0.5 - size / 2 * (1 - out_size / (factors[axis] * size))
        elif transform == b"pytorch_half_pixel" and out_size == 1:
            before[axis], behind[axis] = 0.0, 0.0
        elif transform == b"align_corners":
            before[axis], behind[axis] = 0.0, 0.0
            # ONNX's output is as long as the scale says, be it no whole number.
            factors[axis] = (size * factors[axis] - 1) / (size - 1) if min(out_size, size) > 1 else 1.0
        elif regions:
            start, end = regions[axis]
            before[axis], behind[axis] = -float(start) * (size - 1), 0.0
            factors[axis] = (out_size - 1) / float((end - start) * (size - 1)) if out_size > 1 and end > start else 1.0
    rounding = node.get("nearest_mode", b"floor" if upsample else b"round_prefer_floor")
    if mode == b"nearest" and rounding.startswith(b"round"):
        half = 0.5 if rounding == b"round_prefer_floor" else -0.5
        before = [each + half for each in before]
    upward = rounding in (b"ceil", b"round_prefer_floor")
    return node(
        "RESAMPLE3",
        InputTensor=x,
        OutputTensor=packed(x.tensor.DataType, out_sizes),
        InterpolationMode=InterpolationMode.NEAREST_NEIGHBOR if mode == b"nearest" else InterpolationMode.LINEAR,
        RoundingDirection=AxisDirection.INCREASING if upward else AxisDirection.DECREASING,
        Scales=factors,
        InputPixelOffsets=before,
        OutputPixelOffsets=behind,
        Antialiased=bool(node.get("antialias", 0)),
    )


ADAPTERS: dict[str, Adapter] = {
    "Cast": cast,
    "Concat": concat,
    "ConstantOfShape": constant_of_shape,
    "Gather": gather,
    "Pad": pad,
    "Range": sequence,
    "Resize": lambda node: resized(node, node.value(2), node.value(3)),
    "Slice": sliced,
    "Split": split,
    "Upsample": lambda node: resized(node, node.value(1)),
}
