"""Element-wise operators that feed each other, made one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from ...core.strided_layout import Layout
from ...core.tensor_desc import DML_BUFFER_TENSOR_DESC
from ...operators.pointwise_chain import POINTWISE_CHAIN, ChainStep, PointwiseChain
from ..ir import Network, Vertex
from ..verify import Port


def chain_pointwise(network: Network) -> None:
    """Makes operators one where the device runs them as one; what others read of their results it writes on the way."""
    chaining = _Chaining(network)
    for i in [*network.vertices]:
        while i in network.vertices and chaining.add_one(i):
            pass
    chaining.put_in_order()
    chains = [vertex.name for vertex in network.vertices.values() if isinstance(vertex.desc, PointwiseChain)]
    network.notes += [f"in one pass: {name}" for name in chains]


class _Chaining:
    def __init__(self, network: Network) -> None:
        self._network = network
        # What follows from the vertices is kept beside them, so that a step takes no time proportional to their number.
        self._readers = network.readers()
        self._ranks = {number: rank for rank, number in enumerate(network.vertices)}
        """Where each vertex runs among the others."""
        self._fed: defaultdict[int, set[int]] = defaultdict(set)
        """The vertices that read a vertex."""
        for number, vertex in network.vertices.items():
            self._count(number, vertex, 0)

    def put_in_order(self) -> None:
        """Gives the vertices the order in which they run."""
        vertices = self._network.vertices
        self._network.vertices = {number: vertices[number] for number in sorted(vertices, key=self._ranks.__getitem__)}

    def _count(self, number: int, vertex: Vertex, readers: int) -> None:
        """Counts a vertex among the readers of its sources, or, with -1, no longer."""
        for port in vertex.sources:
            self._readers[port] += readers
            if port is not None and readers >= 0:
                self._fed[port.node].add(number)
            elif port is not None:
                self._fed[port.node].discard(number)

    def add_one(self, i: int) -> bool:
        """Merges a vertex with one of those that feed it; False where it is to be with none."""
        vertices = self._network.vertices
        vertex = vertices[i]
        if not _is_element_wise(vertex):
            return False
        for node in dict.fromkeys(port.node for port in vertex.sources if port is not None):
            producer = vertices.get(node)
            if producer is None or not _is_element_wise(producer):
                continue
            kept = self._read_by_others(node, producer, vertex)
            place = self._place(node, i, vertex) if kept else i
            both = None if place is None else _both(producer, node, vertex, kept)
            if both is not None and place is not None and self._network.fuses(both):
                self._put(both, i, node, place, kept)
                return True
        return False

    def _read_by_others(self, node: int, producer: Vertex, vertex: Vertex) -> list[int]:
        """The numbers of a producer's outputs that not this vertex alone reads."""
        ports = [Port(node, number) for number in range(len(producer.spec.outputs(producer.desc)))]
        return [port.number for port in ports if self._readers[port] > vertex.sources.count(port)]

    def _place(self, node: int, i: int, vertex: Vertex) -> int | None:
        """Where both can run: in the vertex's place, where all other readers stand behind it, or in the producer's,
        where all else that the vertex reads stands before it; None where neither is so."""
        ranks = self._ranks
        if all(ranks[number] > ranks[i] for number in self._fed[node] if number != i):
            return i
        feeding = [ranks.get(port.node, -1) for port in vertex.sources if port is not None and port.node != node]
        return node if all(rank < ranks[node] for rank in feeding) else None

    def _put(self, both: Vertex, i: int, node: int, place: int, kept: Sequence[int]) -> None:
        """Both in the place of one of them, by the vertex's number; its outputs first, then the producer's."""
        vertices = self._network.vertices
        first = len(vertices[i].spec.outputs(vertices[i].desc))
        moved = {Port(node, number): Port(i, first + k) for k, number in enumerate(kept)}
        for number in (i, node):
            self._count(number, vertices.pop(number), -1)
        vertices[i] = both
        self._count(i, both, 1)
        self._ranks[i] = self._ranks[place]
        del self._ranks[node]
        for reader in self._fed.pop(node, ()):
            vertices[reader].sources = [
                None if port is None else moved.get(port, port) for port in vertices[reader].sources
            ]
            self._fed[i].add(reader)
        for old, new in moved.items():
            self._readers[new] = self._readers.pop(old)
        if moved:
            self._network.targets = {end: moved.get(port, port) for end, port in self._network.targets.items()}


def _is_element_wise(vertex: Vertex) -> bool:
    return vertex.spec.pointwise is not None or isinstance(vertex.desc, PointwiseChain)


def _both(producer: Vertex, node: int, vertex: Vertex, kept: Sequence[int]) -> Vertex | None:
    """The chain of both, where what lies between them lies for both alike."""
    (first, first_sources), (last, last_sources) = _as_chain(producer), _as_chain(vertex)
    inputs: list[tuple[Port, Any]] = list(zip(first_sources, first.Inputs, strict=True))
    places: list[int] = []
    """Of the vertex's inputs: the number of an input of both, or below 0 that of an output of the producer."""
    for source, tensor in zip(last_sources, last.Inputs, strict=True):
        if source.node == node:
            if not Layout.of_desc(first.Outputs[source.number]).same_place(Layout.of_desc(tensor)):
                return None
            places.append(-1 - source.number)
            continue
        found = [k for k, (other, known) in enumerate(inputs) if other == source and known == tensor]
        places.append(found[0] if found else len(inputs))
        if not found:
            inputs.append((source, tensor))
    count, before = len(inputs), len(first.Inputs)
    between = count + len(first.links)

    def in_first(n: int) -> int:
        return n if n < before else n + count - before

    def in_last(n: int) -> int:
        if not 0 <= n < len(places):
            return n if n < 0 else between + n - len(places)
        return places[n] if places[n] >= 0 else in_first(first.results[-1 - places[n]])

    chain = PointwiseChain(
        Inputs=tuple([tensor for _, tensor in inputs]),
        Outputs=(*last.Outputs, *(first.Outputs[number] for number in kept)),
        links=(*_renumbered(first, in_first), *_renumbered(last, in_last)),
        results=(*map(in_last, last.results), *(in_first(first.results[number]) for number in kept)),
    )
    name, titles = f"{producer.name} + {vertex.name}", producer.titles + vertex.titles
    return type(vertex)(name, POINTWISE_CHAIN, chain, [source for source, _ in inputs], titles=titles)


def _renumbered(chain: PointwiseChain, number: Callable[[int], int]) -> list[ChainStep]:
    return [replace(link, operands=tuple(map(number, link.operands))) for link in chain.links]


def _as_chain(vertex: Vertex) -> tuple[PointwiseChain, list[Port]]:
    """A vertex as a chain, of one operator where it is none yet, and where the inputs come from that it has."""
    sources = [port for port in vertex.sources if port is not None]
    if isinstance(vertex.desc, PointwiseChain):
        return vertex.desc, sources
    tensors: list[Any] = [tensor for _, tensor in vertex.spec.inputs(vertex.desc)]
    output: Any = vertex.spec.outputs(vertex.desc)[0][1]
    there = [_broadcast(tensor, output) for tensor in tensors if tensor is not None]
    numbers = iter(range(len(there)))
    operands = tuple([-1 if tensor is None else next(numbers) for tensor in tensors])
    link = ChainStep(vertex.desc, operands)
    return PointwiseChain(Inputs=tuple(there), Outputs=(output,), links=(link,), results=(len(there),)), sources


def _broadcast(tensor: DML_BUFFER_TENSOR_DESC, output: DML_BUFFER_TENSOR_DESC) -> DML_BUFFER_TENSOR_DESC:
    """One element for all of the output; itself where it has the output's sizes."""
    if tensor.Sizes == output.Sizes:
        return tensor
    return replace(tensor, Sizes=output.Sizes, Strides=(0,) * len(output.Sizes))
