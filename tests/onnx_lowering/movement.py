"""What moves elements, makes them or changes their type."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from anydml.core.enums import AxisDirection, DepthSpaceOrder, InterpolationMode, PaddingMode, TensorDataType
from anydml.core.strided_layout import DATA_TYPES
from anydml.frontends.directmlx import Expression

from .node import Adapter, Node, NotSaid, broadcast, packed, reshaped, sizes_of

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
        "PADDING1",
        InputTensor=x,
        PaddingMode=PaddingMode[_PADDING[node.get("mode", b"constant")]],
        PaddingValueDataType=x.tensor.DataType,
        PaddingValue=np.asarray(node.value(2, 0)).item(),
        StartPadding=padding[0],
        EndPadding=padding[1],
    )


_ORDERS = {b"DCR": DepthSpaceOrder.DEPTH_COLUMN_ROW, b"CRD": DepthSpaceOrder.COLUMN_ROW_DEPTH}


def rearranged(name: str) -> Adapter:
    def lower(node: Node) -> Expression:
        order = _ORDERS[node.get("mode", b"DCR")]
        return node(name, InputTensor=node.input(0), BlockSize=node.get("blocksize"), Order=order)

    return lower


def reverse_sequence(node: Node) -> Expression:
    x, lengths = node.all
    time, batch = node.get("time_axis", 0), node.get("batch_axis", 1)
    sizes = sizes_of(x)
    ones = [size if i == batch else 1 for i, size in enumerate(sizes)]
    lengths = reshaped(node("CAST", InputTensor=lengths, OutputTensor=TensorDataType.UINT32), ones)
    lengths = broadcast(lengths, [1 if i == time else size for i, size in enumerate(sizes)])
    return node("REVERSE_SUBSEQUENCES", InputTensor=x, SequenceLengthsTensor=lengths, Axis=time)


def led(x: Expression, rank: int) -> Expression:
    """With leading dimensions of 1, so that there are so many."""
    return reshaped(x, (1,) * (rank - len(sizes_of(x))) + sizes_of(x))


def gather(node: Node) -> Expression:
    x, indices = node.all
    axis, own, of_indices = node.get("axis", 0), len(sizes_of(x)), node.values[1].ndim
    rank = max(own, own - 1 + of_indices)
    x, indices = led(x, rank), led(indices, rank)
    axis = axis % own + rank - own
    return node("GATHER", InputTensor=x, IndicesTensor=indices, Axis=axis, IndexDimensions=of_indices)


def gather_elements(node: Node) -> Expression:
    x, indices = node.all
    return node("GATHER_ELEMENTS", InputTensor=x, IndicesTensor=indices, Axis=node.get("axis", 0) % len(sizes_of(x)))


def gather_nd(node: Node) -> Expression:
    x, indices = node.all
    batch, own, of_indices = node.get("batch_dims", 0), len(sizes_of(x)), len(sizes_of(indices))
    rank = max(own, of_indices, of_indices - 1 + own - batch - sizes_of(indices)[-1])
    return node(
        "GATHER_ND1",
        InputTensor=led(x, rank),
        IndicesTensor=led(indices, rank),
        InputDimensionCount=own,
        IndicesDimensionCount=of_indices,
        BatchDimensionCount=batch,
    )


def without_reduction(node: Node) -> list[Expression]:
    if node.get("reduction", b"none") not in (b"none", "none"):
        raise NotSaid("a scatter that reduces")
    return node.all


def scatter_elements(node: Node) -> Expression:
    x, indices, updates = without_reduction(node)
    axis = node.get("axis", 0) % len(sizes_of(x))
    return node("SCATTER_ELEMENTS", InputTensor=x, IndicesTensor=indices, UpdatesTensor=updates, Axis=axis)


def scatter_nd(node: Node) -> Expression:
    x, indices, updates = without_reduction(node)
    rank = max(len(sizes_of(each)) for each in (x, indices, updates))
    return node(
        "SCATTER_ND",
        InputTensor=led(x, rank),
        IndicesTensor=led(indices, rank),
        UpdatesTensor=led(updates, rank),
        InputDimensionCount=len(sizes_of(x)),
        IndicesDimensionCount=len(sizes_of(indices)),
    )


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
    "DepthToSpace": rearranged("DEPTH_TO_SPACE1"),
    "Gather": gather,
    "GatherElements": gather_elements,
    "GatherND": gather_nd,
    "Pad": pad,
    "Range": sequence,
    "Resize": lambda node: resized(node, node.value(2), node.value(3)),
    "ReverseSequence": reverse_sequence,
    "Scatter": scatter_elements,
    "ScatterElements": scatter_elements,
    "ScatterND": scatter_nd,
    "Slice": sliced,
    "SpaceToDepth": rearranged("SPACE_TO_DEPTH1"),
    "Split": split,
    "Upsample": lambda node: resized(node, node.value(1)),
}
