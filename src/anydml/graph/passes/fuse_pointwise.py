"""Element-wise operators that feed each other, and nothing else, made one."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

from ...core.strided_layout import Layout
from ...operators.pointwise_chain import POINTWISE_CHAIN, ChainStep, PointwiseChain
from ...operators.schema import Tensor
from ...runtime.context import Context
from ..ir import Network, Vertex
from ..verify import Port


def chain_pointwise(network: Network) -> None:
    """Makes operators one where the device runs them as one, in the place of the last of them."""
    left, readers = dict(network.vertices), network.readers()
    for i in network.vertices:
        while (merged := _with_one_more(left, i, readers, network.device)) is not None:
            left[i] = merged
    network.vertices = left
    chains = [vertex.name for vertex in left.values() if isinstance(vertex.desc, PointwiseChain)]
    network.notes += [f"in one pass: {name}" for name in chains]


def _with_one_more(left: dict[int, Vertex], i: int, readers: Counter[Port | None], device: Context) -> Vertex | None:
    """A vertex with one of those that feed it, removed; None where it is to be with none."""
    vertex = left[i]
    if not _is_element_wise(vertex):
        return None
    for port in dict.fromkeys(vertex.sources):
        producer = None if port is None else left.get(port.node)
        if port is None or producer is None or not _is_element_wise(producer):
            continue
        if readers[port] != vertex.sources.count(port):
            continue
        both = _both(producer, vertex, port)
        if both is None or not _is_taken(both, device):
            continue
        del left[port.node]
        # What both read is read once now.
        readers.subtract(producer.sources)
        readers.subtract(vertex.sources)
        readers.update(both.sources)
        return both
    return None


def _is_element_wise(vertex: Vertex) -> bool:
    """Whether it is a chain, or an operator of which no input is absent, nor has other sizes."""
    if vertex.spec.pointwise is None:
        return isinstance(vertex.desc, PointwiseChain)
    sizes: Any = vertex.spec.outputs(vertex.desc)[0][1]
    inputs = vertex.spec.inputs(vertex.desc)
    return all(tensor is not None and tensor.Sizes == sizes.Sizes for _, tensor in inputs)


def _is_taken(vertex: Vertex, device: Context) -> bool:
    layouts = [
        [_layout(tensor) for _, tensor in side(vertex.desc)] for side in (vertex.spec.inputs, vertex.spec.outputs)
    ]
    return device.fuses(vertex.spec, vertex.desc, *layouts)


def _layout(tensor: Tensor | None) -> Layout | None:
    return None if tensor is None else Layout.of_desc(tensor)


def _both(producer: Vertex, vertex: Vertex, port: Port) -> Vertex | None:
    """The chain of both, where what lies between them lies for both alike."""
    first, last = _as_chain(producer), _as_chain(vertex)
    between = Layout.of_desc(first.OutputTensor)
    inputs: list[tuple[Port | None, Any]] = list(zip(producer.sources, first.Inputs, strict=True))
    places: list[int] = []
    """Of the vertex's inputs: numbers of inputs of the chain, -1 for what lies between."""
    for source, tensor in zip(vertex.sources, last.Inputs, strict=True):
        if source == port:
            if not between.same_place(Layout.of_desc(tensor)):
                return None
            places.append(-1)
            continue
        found = [k for k, (other, known) in enumerate(inputs) if other == source and known == tensor]
        places.append(found[0] if found else len(inputs))
        if not found:
            inputs.append((source, tensor))
    count, before = len(inputs), len(first.Inputs)
    links = [replace(link, operands=_moved(link, before, count)) for link in first.links]
    given = count + len(links)
    # What the vertex's own numbers are in the chain of both.
    places = [given - 1 if place < 0 else place for place in places]
    for link in last.links:
        numbers = [places[n] if n < len(places) else given + n - len(places) for n in link.operands]
        links.append(replace(link, operands=tuple(numbers)))
    chain = PointwiseChain(
        Inputs=tuple([tensor for _, tensor in inputs]), OutputTensor=last.OutputTensor, links=tuple(links)
    )
    name, titles = f"{producer.name} + {vertex.name}", producer.titles + vertex.titles
    return type(vertex)(name, POINTWISE_CHAIN, chain, [source for source, _ in inputs], titles=titles)


def _moved(link: ChainStep, before: int, count: int) -> tuple[int, ...]:
    """The operands of a link of a chain that has more inputs now."""
    return tuple([operand if operand < before else operand + count - before for operand in link.operands])


def _as_chain(vertex: Vertex) -> PointwiseChain:
    if isinstance(vertex.desc, PointwiseChain):
        return vertex.desc
    tensors: list[Any] = [tensor for _, tensor in vertex.spec.inputs(vertex.desc)]
    output: Any = vertex.spec.outputs(vertex.desc)[0][1]
    return PointwiseChain(
        Inputs=tuple(tensors), OutputTensor=output, links=(ChainStep(vertex.desc, tuple(range(len(tensors)))),)
    )
