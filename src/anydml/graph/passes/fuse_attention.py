"""Two products of matrices with a softmax between them, as one operator, on devices whose libraries do them at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from ...core.enums import MatrixTransform
from ...core.strided_layout import Layout
from ...core.tensor_desc import DML_BUFFER_TENSOR_DESC
from ...operators.product_attention import PRODUCT_ATTENTION, ProductAttention
from ...operators.schema import Tensor
from ..ir import Network, Vertex
from ..verify import Port


def _split(desc: Any, number: int) -> tuple[Sequence[int], Sequence[int], Tensor]:
    before = sum(each.Sizes[desc.Axis] for each in desc.OutputTensors[:number])
    offsets = [before if axis == desc.Axis else 0 for axis in range(len(desc.InputTensor.Sizes))]
    return offsets, [1] * len(offsets), desc.OutputTensors[number]


_PARTS: dict[str, Callable[[Any, int], tuple[Sequence[int], Sequence[int], Tensor]]] = {
    "SLICE": lambda desc, _: (desc.Offsets, desc.Strides, desc.OutputTensor),
    "SLICE1": lambda desc, _: (desc.InputWindowOffsets, desc.InputWindowStrides, desc.OutputTensor),
    "SPLIT": _split,
}
"""Operators that give a part of a tensor: where it begins along each dimension, the distance of its elements, and the
output of a number."""

_SOFTMAX = ("ACTIVATION_SOFTMAX", "ACTIVATION_SOFTMAX1")


def fuse_attention(network: Network) -> None:
    """Makes GEMM(softmax(GEMM(q, k)), v) one."""
    if network.device.memory.is_host:
        return
    readers = network.readers()
    for i, last in list(network.vertices.items()):
        if last.spec.name != "GEMM" or not _is_plain(last.desc, 1.0):
            continue
        softmax = _giver(network, last.sources[0], readers)
        first = None if softmax is None else _giver(network, softmax.sources[0], readers)
        if softmax is None or first is None:
            continue
        desc = _fused(first, softmax, last)
        if desc is None:
            continue
        sources = [*first.sources[:2], last.sources[1]]
        titles = first.titles + softmax.titles + last.titles
        for port in (last.sources[0], softmax.sources[0]):
            assert port is not None
            del network.vertices[port.node]
        for at, member in enumerate(("QueryTensor", "KeyTensor")):
            desc = _without_scale(network, desc, sources, at, member, readers)
        for at, member in enumerate(("QueryTensor", "KeyTensor", "ValueTensor")):
            desc = _as_part(network, i, desc, sources, at, member, readers)
        desc, copy = _as_given(network, Port(i, 0), desc, readers)
        network.vertices[i] = Vertex(f"{first.name} to {last.name}", PRODUCT_ATTENTION, desc, sources, titles=titles)
        network.notes.append(f"attention, in one: {first.name}, {softmax.name}, {last.name}")
        if copy is not None:
            network.replace({copy: Port(i, 0)})


def _without_scale(
    network: Network, desc: ProductAttention, sources: list[Port | None], at: int, member: str, readers: Any
) -> ProductAttention:
    """With a number that an operand is multiplied by as part of the scale."""
    product = _giver(network, sources[at], readers)
    if product is None or product.spec.name != "ELEMENT_WISE_MULTIPLY":
        return desc
    inner: Any = product.desc
    own = Layout.of_desc(getattr(desc, member))
    if not Layout.of_desc(inner.OutputTensor).same_place(own) or inner.OutputTensor.Sizes != own.sizes:
        return desc
    for one, (number, tensor) in enumerate(((inner.BTensor, inner.ATensor), (inner.ATensor, inner.BTensor))):
        port, scale = product.sources[1 - one], None
        if port is not None and port in network.constants and not any(Layout.of_desc(number).strides):
            memory = network.device.memory
            known: Any = memory.view(Layout.of_desc(number), network.constants[port], 0)
            scale = float(known.numpy().reshape(-1)[0])
        if scale is not None and 0 < scale < float("inf"):
            moved, given = sources[at], product.sources[one]
            assert moved is not None
            del network.vertices[moved.node]
            sources[at] = given
            return replace(desc, scale=desc.scale * scale, **{member: tensor})
    return desc


def _as_part(
    network: Network,
    number: int,
    desc: ProductAttention,
    sources: list[Port | None],
    at: int,
    member: str,
    readers: Any,
) -> ProductAttention:
    """With an operand that is a part of another tensor read from there, where that is a tensor of more heads."""
    part = _giver(network, sources[at], readers)
    source = part.sources[0] if part is not None and part.spec.name in _PARTS else None
    moved = sources[at]
    if part is None or source is None or moved is None:
        return desc
    inner: Any = part.desc
    offsets, steps, output = _PARTS[part.spec.name](inner, moved.number)
    tensor: Any = getattr(desc, member)
    strides = _strides_in(tensor, output, [a * b for a, b in zip(inner.InputTensor.strides, steps, strict=True)])
    start = sum(a * b for a, b in zip(offsets, inner.InputTensor.strides, strict=True))
    heads = desc.OutputTensor.Sizes[1]
    if strides is None or min(steps) < 1 or strides[1] <= 0 or start % strides[1]:
        return desc
    first = start // strides[1]
    sizes = (tensor.Sizes[0], first + heads, *tensor.Sizes[2:])
    room = inner.InputTensor.TotalTensorSizeInBytes
    whole = DML_BUFFER_TENSOR_DESC(DataType=tensor.DataType, Sizes=sizes, Strides=strides, TotalTensorSizeInBytes=room)
    sources[at] = source
    others = [port for each, vertex in network.vertices.items() if each != number for port in vertex.sources]
    ends = (*others, *sources, *network.targets.values())
    if not any(port is not None and port.node == moved.node for port in ends):
        del network.vertices[moved.node]
    firsts: Any = tuple([first if k == at else each for k, each in enumerate(desc.first_heads)])
    changed: dict[str, Any] = {member: whole, "first_heads": firsts}
    return replace(desc, **changed)


def _strides_in(view: Any, part: Any, strides: Sequence[int]) -> tuple[int, ...] | None:
    """The strides of a view of a tensor, where the tensor's dimensions have others: each of the view's lies within one
    of the tensor's. None where it does not."""
    used = [0] * len(part.Sizes)
    found = []
    for size, step in zip(view.Sizes, view.strides, strict=True):
        if size == 1:
            found.append(0)
            continue
        own = [k for k, each in enumerate(part.strides) if part.Sizes[k] > 1 and 0 < each <= step]
        if not own:
            return None
        k = max(own, key=lambda k: part.strides[k])
        times = step // part.strides[k]
        used[k] += times * (size - 1)
        if step % part.strides[k] or used[k] >= part.Sizes[k]:
            return None
        found.append(times * strides[k])
    return tuple(found)


def _as_given(
    network: Network, port: Port, desc: ProductAttention, readers: Any
) -> tuple[ProductAttention, Port | None]:
    """With its output as libraries give it, {batch, length, heads, size} in memory, where one element-wise operator
    reads it; and what that gives, where it then copies each element to its own place."""
    output = desc.OutputTensor
    behind = [(number, each) for number, each in network.vertices.items() if port in each.sources]
    if readers[port] != 1 or len(behind) != 1 or behind[0][1].spec.pointwise is None or output.Strides is not None:
        return desc, None
    ((number, reader),) = behind
    h, s, d = output.Sizes[1:]
    steps = dict(zip((h * s * d, s * d, d, 1), (s * h * d, d, h * d, 1), strict=True))
    if len(steps) != 4 or 1 in (h, s, d):
        return desc, None
    label = reader.spec.inputs(reader.desc)[reader.sources.index(port)][0]
    tensor: Any = getattr(reader.desc, label)
    if any(size > 1 and step not in steps for size, step in zip(tensor.Sizes, tensor.strides, strict=True)):
        return desc, None
    strides = tuple([steps.get(step, 0) for step in tensor.strides])
    changed: Any = replace(reader.desc, **{label: replace(tensor, Strides=strides)})
    if not network.takes([changed]):
        return desc, None
    reader.desc = changed
    is_copy = reader.spec.name == "ELEMENT_WISE_IDENTITY" and changed.ScaleBias is None
    is_copy = is_copy and Layout.of_desc(changed.InputTensor).same_place(Layout.of_desc(changed.OutputTensor))
    laid = replace(desc, OutputTensor=replace(output, Strides=(s * h * d, d, h * d, 1)))
    return laid, Port(number, 0) if is_copy else None


def _giver(network: Network, port: Port | None, readers: Any) -> Vertex | None:
    """What gives a tensor that nothing else reads."""
    return None if port is None or readers[port] != 1 else network.vertices.get(port.node)


def _is_plain(desc: Any, alpha: float) -> bool:
    return (
        desc.CTensor is None
        and desc.FusedActivation is None
        and desc.TransA == MatrixTransform.NONE
        and desc.Alpha == alpha
        and len(desc.OutputTensor.Sizes) == 4
    )


def _fused(first: Vertex, softmax: Vertex, last: Vertex) -> ProductAttention | None:
    outer: Any = last.desc
    middle: Any = softmax.desc
    inner: Any = first.desc
    if first.spec.name != "GEMM" or softmax.spec.name not in _SOFTMAX or not _is_plain(inner, inner.Alpha):
        return None
    axes = tuple(getattr(middle, "Axes", (3,)))
    if axes != (3,) or outer.TransB != MatrixTransform.NONE or inner.Alpha <= 0:
        return None
    scores = Layout.of_desc(inner.OutputTensor)
    if not all(Layout.of_desc(e).same_place(scores) for e in (middle.InputTensor, middle.OutputTensor, outer.ATensor)):
        return None
    if softmax.spec.name == "ACTIVATION_SOFTMAX" and any(size != 1 for size in scores.sizes[1:3]):
        return None  # along all dimensions but the first
    return ProductAttention(
        QueryTensor=inner.ATensor,
        KeyTensor=inner.BTensor,
        ValueTensor=outer.BTensor,
        OutputTensor=outer.OutputTensor,
        scale=inner.Alpha,
        are_columns=inner.TransB == MatrixTransform.NONE,
    )
