"""Two products of matrices with a softmax between them, as one operator, on devices whose libraries do them at once."""

from __future__ import annotations

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
        network.vertices[i] = Vertex(f"{first.name} to {last.name}", PRODUCT_ATTENTION, desc, sources, titles=titles)
        network.notes.append(f"attention, in one: {first.name}, {softmax.name}, {last.name}")


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
