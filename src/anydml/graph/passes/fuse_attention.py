"""Two products of matrices with a softmax between them, as one operator, on devices whose libraries do them at once."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ...core.enums import MatrixTransform
from ...core.strided_layout import Layout
from ...operators.product_attention import PRODUCT_ATTENTION, ProductAttention
from ..ir import Network, Vertex
from ..verify import Port

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
        desc = _as_given(network, Port(i, 0), desc, readers)
        network.vertices[i] = Vertex(f"{first.name} to {last.name}", PRODUCT_ATTENTION, desc, sources, titles=titles)
        network.notes.append(f"attention, in one: {first.name}, {softmax.name}, {last.name}")


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


def _as_given(network: Network, port: Port, desc: ProductAttention, readers: Any) -> ProductAttention:
    """With its output as libraries give it, {batch, length, heads, size} in memory, where one element-wise operator
    reads it."""
    output = desc.OutputTensor
    behind = [each for each in network.vertices.values() if port in each.sources]
    if readers[port] != 1 or len(behind) != 1 or behind[0].spec.pointwise is None or output.Strides is not None:
        return desc
    (reader,) = behind
    h, s, d = output.Sizes[1:]
    steps = dict(zip((h * s * d, s * d, d, 1), (s * h * d, d, h * d, 1), strict=True))
    if len(steps) != 4 or 1 in (h, s, d):
        return desc
    label = reader.spec.inputs(reader.desc)[reader.sources.index(port)][0]
    tensor: Any = getattr(reader.desc, label)
    if any(size > 1 and step not in steps for size, step in zip(tensor.Sizes, tensor.strides, strict=True)):
        return desc
    strides = tuple([steps.get(step, 0) for step in tensor.strides])
    changed = replace(reader.desc, **{label: replace(tensor, Strides=strides)})
    if not network.takes([changed]):
        return desc
    reader.desc = changed
    return replace(desc, OutputTensor=replace(output, Strides=(s * h * d, d, h * d, 1)))


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
