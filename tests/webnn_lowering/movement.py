"""What moves elements, makes them or changes their type."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from anydml import TensorDataType
from anydml.core.enums import AxisDirection, InterpolationMode, PaddingMode
from anydml.frontends.directmlx import Expression

from .layouts import broadcast, packed
from .node import Adapter, Node

_PADDING = {"constant": "CONSTANT", "edge": "EDGE", "reflection": "REFLECTION", "symmetric": "SYMMETRIC"}
_INTERPOLATION = {"nearest-neighbor": "NEAREST_NEIGHBOR", "linear": "LINEAR"}


def cast(node: Node) -> Expression:
    return node("CAST", InputTensor=node.x, OutputTensor=TensorDataType[node.get("type").upper()])


def concat(node: Node) -> Expression:
    each = [node.value_of(name) for name in node.get("inputs")]
    return node("JOIN", InputTensors=each, Axis=node.get("axis"))


def copied(node: Node, x: Expression) -> Expression:
    return node("ELEMENT_WISE_IDENTITY", InputTensor=x)


def expand(node: Node) -> Expression:
    return copied(node, broadcast(node.x, node.get("newShape") or (1,)))


def reshape(node: Node) -> Expression:
    return copied(node, node.x.reshape(tuple(node.get("newShape")) or (1,)))


def transpose(node: Node) -> Expression:
    return node.x.transpose(node.get("permutation"))


def tile(node: Node) -> Expression:
    return node("TILE", InputTensor=node.x, Repeats=node.get("repetitions") or [1])


def sliced(node: Node) -> Expression:
    x = node.x
    return node(
        "SLICE1",
        InputTensor=x,
        InputWindowOffsets=node.get("starts") or [0],
        InputWindowSizes=node.get("sizes") or [1],
        InputWindowStrides=node.get("strides") or [1] * x.ndim,
    )


def reverse(node: Node) -> Expression:
    x = node.x
    axes = node.get("axes", range(x.ndim))
    strides = [-1 if i in axes else 1 for i in range(x.ndim)]
    whole = {"InputWindowOffsets": [0] * x.ndim, "InputWindowSizes": x.shape}
    return node("SLICE1", InputTensor=x, InputWindowStrides=strides, **whole)


def split(node: Node) -> list[Expression]:
    x, axis, splits = node.x, node.get("axis", 0), node.get("splits")
    parts = splits if isinstance(splits, list) else [x.shape[axis] // splits] * splits
    pieces = [packed(x.tensor.DataType, (*x.shape[:axis], part, *x.shape[axis + 1 :])) for part in parts]
    return node.apply("SPLIT", InputTensor=x, OutputTensors=pieces, Axis=axis)


def pad(node: Node) -> Expression:
    return node(
        "PADDING",
        InputTensor=node.x,
        PaddingMode=PaddingMode[_PADDING[node.get("mode", "constant")]],
        PaddingValue=node.number("value", 0),
        StartPadding=node.get("beginningPadding"),
        EndPadding=node.get("endingPadding"),
    )


def clamped(node: Node, sizes: Any) -> Expression:
    """Indices brought into dimensions of these sizes, from whose ends the negative ones count."""
    indices = node.operand("indices")
    sizes = np.array(sizes, indices.dtype).reshape((1,) * (indices.ndim - 1) + (-1,))
    last = broadcast(node.constant(sizes - 1), indices.shape)
    indices = node("ELEMENT_WISE_MIN", ATensor=indices, BTensor=last)
    if indices.dtype.kind == "u":
        return indices
    first = broadcast(node.constant(-sizes), indices.shape)
    return node("ELEMENT_WISE_MAX", ATensor=indices, BTensor=first)


def with_ones_before(x: Expression, rank: int) -> Expression:
    return x.reshape((1,) * (rank - x.ndim) + x.shape)


def gather(node: Node) -> Expression:
    x, axis = node.operand("input"), node.get("axis", 0)
    indices, count = clamped(node, [x.shape[axis]]), node.rank("indices")
    rank = max(x.ndim, x.ndim - 1 + count, indices.ndim)
    y = node(
        "GATHER",
        InputTensor=with_ones_before(x, rank),
        IndicesTensor=with_ones_before(indices, rank),
        Axis=axis + rank - x.ndim,
        IndexDimensions=count,
    )
    named = indices.shape[indices.ndim - count :]
    return y.reshape((*x.shape[:axis], *named, *x.shape[axis + 1 :]) or (1,))


def gather_elements(node: Node) -> Expression:
    x, axis = node.operand("input"), node.get("axis", 0)
    return node("GATHER_ELEMENTS", InputTensor=x, IndicesTensor=clamped(node, [x.shape[axis]]), Axis=axis)


def gather_nd(node: Node) -> Expression:
    x, indices = node.operands("input", "indices")
    depth = indices.shape[-1]
    rank = max(x.ndim, indices.ndim, indices.ndim - 1 + x.ndim - depth)
    sizes = (*indices.shape[:-1], *x.shape[depth:])
    y = node(
        "GATHER_ND1",
        InputTensor=with_ones_before(x, rank),
        IndicesTensor=with_ones_before(clamped(node, x.shape[:depth]), rank),
        OutputTensor=packed(x.tensor.DataType, (1,) * (rank - len(sizes)) + sizes),
        InputDimensionCount=x.ndim,
        IndicesDimensionCount=indices.ndim,
        BatchDimensionCount=0,
    )
    return y.reshape(sizes or (1,))


def scatter_elements(node: Node) -> Expression:
    x, indices, updates = node.operands("input", "indices", "updates")
    return node(
        "SCATTER_ELEMENTS", InputTensor=x, IndicesTensor=indices, UpdatesTensor=updates, Axis=node.get("axis", 0)
    )


def scatter_nd(node: Node) -> Expression:
    x, indices, updates = node.operands("input", "indices", "updates")
    rank = max(x.ndim, indices.ndim, updates.ndim)
    y = node(
        "SCATTER_ND",
        InputTensor=with_ones_before(x, rank),
        IndicesTensor=with_ones_before(indices, rank),
        UpdatesTensor=with_ones_before(updates, rank),
        InputDimensionCount=x.ndim,
        IndicesDimensionCount=indices.ndim,
    )
    return y.reshape(x.shape)


def resample2d(node: Node) -> Expression:
    """Pixels are at their centres: a half is added before scales apply, and taken off behind. Half a pixel more,
    rounded up, is the nearest, of two as near the first one."""
    x = node.x
    sizes, scales = list(x.shape), [1.0] * x.ndim
    for i, axis in enumerate(node.get("axes", [2, 3])):
        if node.has("sizes"):
            sizes[axis] = node.get("sizes")[i]
            scales[axis] = sizes[axis] / x.shape[axis]
        else:
            scales[axis] = node.get("scales", [1, 1])[i]
            sizes[axis] = math.floor(x.shape[axis] * scales[axis])
    mode = InterpolationMode[_INTERPOLATION[node.get("mode", "nearest-neighbor")]]
    half = 0.5 if mode == InterpolationMode.NEAREST_NEIGHBOR else 0
    return node(
        "RESAMPLE2",
        InputTensor=x,
        OutputTensor=packed(x.tensor.DataType, sizes),
        InterpolationMode=mode,
        RoundingDirection=AxisDirection.INCREASING,
        Scales=scales,
        InputPixelOffsets=[0.5 + half] * x.ndim,
        OutputPixelOffsets=[-0.5] * x.ndim,
    )


def triangular(node: Node) -> Expression:
    """A band of zeros, which reaches to the corner."""
    x, diagonal = node.x, node.get("diagonal", 0)
    least, most = np.iinfo(np.int32).min, np.iinfo(np.int32).max
    band = (least, diagonal) if node.get("upper", True) else (diagonal + 1, most)
    return node(
        "DIAGONAL_MATRIX1",
        InputTensor=x,
        OutputTensor=packed(x.tensor.DataType, x.shape),
        ValueDataType=x.tensor.DataType,
        Value=0,
        DiagonalFillBegin=band[0],
        DiagonalFillEnd=band[1],
    )


ADAPTERS: dict[str, Adapter] = {
    "cast": cast,
    "concat": concat,
    "expand": expand,
    "gather": gather,
    "gatherElements": gather_elements,
    "gatherND": gather_nd,
    "pad": pad,
    "resample2d": resample2d,
    "reshape": reshape,
    "reverse": reverse,
    "scatterElements": scatter_elements,
    "scatterND": scatter_nd,
    "slice": sliced,
    "split": split,
    "tile": tile,
    "transpose": transpose,
    "triangular": triangular,
}
