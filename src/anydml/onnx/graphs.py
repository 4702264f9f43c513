"""The graphs that a model was compiled to: the names of what they read and give, and the times of their kernels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from ..core.memory import Memory
from ..frontends.onnx.dispatch import bound_to, on_host
from ..frontends.onnx.session import InferenceSession
from ..graph.compile import CompiledGraph
from ..operators.schema import Tensor


class NamedGraph(NamedTuple):
    """A graph of a model.

    Attributes:
        graph: compiled.
        inputs: the names of what it reads, as the model has them.
        outputs: the names of what it gives.
        seconds: of each kernel; None where they were not measured.
    """

    graph: CompiledGraph
    inputs: list[str]
    outputs: list[str]
    seconds: list[float] | None


def graphs_of(session: InferenceSession, feeds: Mapping[str, Any], times: bool = False) -> list[NamedGraph]:
    """The graphs that run for given feeds, in order: one, but where values are read on the host.

    Args:
        session: the model.
        feeds: an array for each input.
        times: whether kernels are measured.

    Raises:
        DMLError: as :meth:`InferenceSession.run` does.
    """
    found = []
    for piece, held in session.pieces(feeds):
        graph = piece.compiled
        if graph is None:
            continue
        seconds = None
        if times:
            memory = graph.device.memory
            inputs = [_bytes(memory, *each) for each in zip(graph.inputs, bound_to(piece, held), strict=True)]
            outputs = [_bytes(memory, each) for each in graph.outputs]
            seconds = graph.times(inputs, outputs)
        constants = [f"constant {i}" for i in range(len(piece.weights))]
        found.append(NamedGraph(graph, [*piece.reads, *constants], [key for key, _ in piece.writes], seconds))
    return found


def _bytes(memory: Memory, tensor: Tensor | None, array: Any = None) -> Any:
    """A tensor's bytes on a device, with an array's."""
    if tensor is None:
        return None
    room = np.zeros(tensor.TotalTensorSizeInBytes or 0, np.uint8)
    if array is not None:
        data = np.frombuffer(np.ascontiguousarray(on_host(array)).tobytes(), np.uint8)
        room[: data.size] = data
    return memory.to_device(room)
