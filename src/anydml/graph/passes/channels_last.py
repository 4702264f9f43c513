"""Tensors between the operators of a graph, laid out with their channels last where the kernels are faster so.

Nobody sees such a tensor: it has the same bytes in another order, in the desc of the operator that writes it and of
those that read it. It lies so where each of them is as fast in that order, and one of them faster. Element-wise
operators may see it in another shape, with its channels in groups or its places in one row, as a shuffle of channels
does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from ...core.strided_layout import Layout
from ...operators import Trait, with_trait
from ...operators.schema import OperatorDesc, Tensor
from ..ir import Network, Vertex
from ..verify import Port

_IN_ANY_ORDER = {
    *with_trait(Trait.POINTWISE),
    *("AVERAGE_POOLING", "AVERAGE_POOLING1", "MAX_POOLING", "MAX_POOLING1", "MAX_POOLING2"),
    *("BATCH_NORMALIZATION", "MEAN_VARIANCE_NORMALIZATION", "MEAN_VARIANCE_NORMALIZATION1"),
    *("JOIN", "SLICE", "SLICE1", "SPLIT"),
    *("RESAMPLE", "RESAMPLE1", "RESAMPLE2", "UPSAMPLE_2D"),
}
"""Operators that are as fast in any order of the elements, or faster so, as long as their tensors agree."""
_IN_ANY_SHAPE = frozenset(with_trait(Trait.POINTWISE))
"""Those of which each element of the output depends on that of each input alone."""


class _End(NamedTuple):
    """Where an operator has a tensor."""

    node: int
    vertex: Vertex
    label: str
    tensor: Tensor


def lay_channels_last(network: Network) -> None:
    """Gives tensors other strides."""
    faster = {
        node
        for node, vertex in network.vertices.items()
        if vertex.spec.name == "CONVOLUTION" and network.prefers_channels_last(vertex)
    }
    if not faster:
        return
    ends = _ends(network)
    free = {port: laid for port, each in ends.items() if (laid := _changed(network, port, each, faster)) is not None}
    reached = _reached(network, {*free}, faster)
    wanted = [laid for port, laid in free.items() if port in reached]
    # At once where the rules allow it, as that looks at each operator once; else what they allow, one by one.
    is_done = _lay(network, [end for each in wanted for end in each])
    count = len(wanted) if is_done else sum(_lay(network, each) for each in wanted)
    if count:
        network.notes.append(f"laid out with the channels last: {count} tensors between operators")


def _ends(network: Network) -> dict[Port, list[_End]]:
    """Of what operators write: who writes it, and who reads it."""
    ends: dict[Port, list[_End]] = {}
    for node, vertex in network.vertices.items():
        for i, (label, tensor) in enumerate(vertex.spec.outputs(vertex.desc)):
            if tensor is not None:
                ends[Port(node, i)] = [_End(node, vertex, label, tensor)]
    for node, vertex in network.vertices.items():
        for port, (label, tensor) in zip(vertex.sources, vertex.spec.inputs(vertex.desc), strict=True):
            if port in ends and tensor is not None:
                ends[port].append(_End(node, vertex, label, tensor))
    return ends


def _changed(network: Network, port: Port, ends: Sequence[_End], faster: set[int]) -> list[_End] | None:
    """A tensor with its channels last, as each operator then sees it; None where it stays as it is."""
    seen = [*(end for end in ends if end.node in faster), *ends]
    whole = next((end.tensor for end in seen if len(end.tensor.Sizes) == 4), None)
    if whole is None or whole.Sizes[1] == 1 or port in network.targets.values():
        return None
    packed = Layout.of_desc(whole)
    if not packed.is_packed():
        return None
    changed = []
    for end in ends:
        is_whole = Layout.of_desc(end.tensor).same_place(packed)
        if not (is_whole or end.vertex.spec.name in _IN_ANY_SHAPE):
            return None
        if end.node not in faster and end.vertex.spec.name not in _IN_ANY_ORDER:
            return None
        tensor = _with_channels_last(end.tensor, whole.Sizes)
        if tensor is None:
            return None
        changed.append(end._replace(tensor=tensor))
    return changed


def _with_channels_last(tensor: Tensor, sizes: Sequence[int]) -> Tensor | None:
    """What has the elements of a packed tensor of images, in any shape, with each place's channels side by side; None
    where one of its dimensions goes over channels and places, or channels and images."""
    _, channels, height, width = sizes
    places = height * width
    # Steps in the packed tensor, in this one, and their number.
    runs = ((channels * places, channels * places, sizes[0]), (places, 1, channels), (1, channels, places))
    left = [count - 1 for *_, count in runs]
    strides = []
    for size, stride in zip(tensor.Sizes, tensor.strides, strict=True):
        i = next((i for i, (step, *_) in enumerate(runs) if stride % step == 0 and stride >= step), 0)
        step, changed, _ = runs[i]
        left[i] -= (size - 1) * (stride // step)
        strides.append(stride // step * changed)
    return replace(tensor, Strides=tuple(strides)) if min(left) >= 0 else None


def _reached(network: Network, free: set[Port], faster: set[int]) -> set[Port]:
    """What a faster operator reads or writes, and what stands beside it at operators that want one order."""
    beside: dict[Port, list[int]] = {}
    at: dict[int, list[Port]] = {}
    for node, vertex in network.vertices.items():
        written = [Port(node, i) for i in range(len(vertex.spec.outputs(vertex.desc)))]
        at[node] = [port for port in (*vertex.sources, *written) if port in free]
        for port in at[node]:
            beside.setdefault(port, []).append(node)
    waiting, seen = list(faster), set(faster)
    reached: set[Port] = set()
    while waiting:
        for port in at[waiting.pop()]:
            reached.add(port)
            for node in beside[port]:
                if node not in seen:
                    seen.add(node)
                    waiting.append(node)
    return reached


def _lay(network: Network, ends: Sequence[_End]) -> bool:
    """Gives all operators that have tensors others in their place, where each of them stays valid."""
    changed: dict[int, OperatorDesc] = {}
    for end in ends:
        desc = changed.get(end.node, end.vertex.desc)
        changed[end.node] = _with_tensor(desc, end.label, end.tensor)
    if not network.takes(changed.values()):
        return False
    for end in ends:
        end.vertex.desc = changed[end.node]
    return True


def _with_tensor(desc: OperatorDesc, label: str, tensor: Tensor) -> OperatorDesc:
    """A desc with another tensor, by its label: ``InputTensors[0]``."""
    member, bracket, index = label.partition("[")
    if not bracket:
        return replace(desc, **{member: tensor})
    every = list(getattr(desc, member))
    every[int(index[:-1])] = tensor
    return replace(desc, **{member: every})
