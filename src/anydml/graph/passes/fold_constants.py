"""Constant folding: what depends on constants alone runs when the graph is compiled, what depends on weights alone once
when those are bound."""

from __future__ import annotations

import numpy as np

from ..ir import Network


def fold_constants(network: Network) -> None:
    """Runs what depends on constants alone."""
    folded = []
    for i, vertex in list(network.vertices.items()):
        if any(port is not None and port not in network.constants for port in vertex.sources):
            continue
        step = network.step(vertex, i)
        memory = network.device.memory
        outputs = {
            place.port: memory.empty((place.room,), np.dtype(np.uint8)) for place in step.writes if place is not None
        }
        known = {**network.constants, **outputs}
        read, written = (
            [None if place is None else memory.view(place.layout, known[place.port], 0) for place in side]
            for side in (step.reads, step.writes)
        )
        step.check(read)
        step.served.kernel.run(read, written)
        network.constants |= outputs
        folded.append(vertex.name)
        del network.vertices[i]
    if folded:
        network.notes.append(f"folded into constants: {', '.join(folded)}")


def take_prepared(network: Network) -> None:
    """Takes out what depends on what is OWNED_BY_DML alone: it runs once, when that is bound."""
    prepared = network.prepared
    for i, vertex in list(network.vertices.items()):
        fed = [port for port in vertex.sources if port is not None and port not in network.constants]
        if all(port in network.owned or port.node in prepared for port in fed):
            prepared[i] = network.vertices.pop(i)
    if prepared:
        names = ", ".join(vertex.name for vertex in prepared.values())
        network.notes.append(f"run once, when it is initialised: {names}")
