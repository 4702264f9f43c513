"""Devices, graphs that are built on them, and models, which these become."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import anydml
from anydml import ExecutionFlags
from anydml.backends.torch.devices import gpus
from anydml.core.errors import kind_of
from anydml.core.memory import Memory
from anydml.core.strided_layout import Array, Layout
from anydml.draw import draw_graph
from anydml.frontends.directmlx import Expression as Built
from anydml.graph.compile import CompiledGraph

from ._expressions import Binding, Expression, TensorData, built_of
from ._tensors import wrong


class Model:
    """A compiled graph; GraphBuilder.build makes it."""

    _graph: CompiledGraph
    _outputs: list[Built]
    _owned: list[Array | None]
    """What the persistent resource was filled from."""
    _persistent: Array | None

    def __init__(self) -> None:
        raise TypeError("GraphBuilder.build makes a Model")

    @classmethod
    def _of(cls, graph: CompiledGraph, outputs: list[Built]) -> Model:
        model = cls.__new__(cls)
        model._graph, model._outputs, model._owned, model._persistent = graph, outputs, [], None
        return model

    def explain(self) -> str:
        """What was folded and fused, and which engine serves each operator."""
        return self._graph.explain()

    def draw(self, path: str | os.PathLike[str]) -> None:
        """Writes a picture of it, an SVG."""
        Path(path).write_text(draw_graph(self._graph))

    def _is_initialised(self, owned: list[Array | None]) -> bool:
        """With these very data: a Binding never changes its."""
        return len(owned) == len(self._owned) and all(a is b for a, b in zip(owned, self._owned, strict=True))

    def _array(self, output: Expression, results: Sequence[Any]) -> Array:
        built = built_of("compute", "outputs", output)
        for each, result in zip(self._outputs, results, strict=True):
            if each is built:
                flat: Array = result if isinstance(result, np.ndarray) else result.numpy()
                return Layout.of_desc(each.tensor).view(flat)
        raise wrong(
            "compute", "an expression that the model was not built with", "one that it was built with", "outputs"
        )


class Dimensions(list[int]):
    """Sizes; wherever one is wanted, any list of integers does."""


class Device:
    """A device.

    Args:
        use_gpu: whether to run on a GPU, where there is one.
        use_debug_layer: whether to look at values that break a rule also where that means to wait.
    """

    def __init__(self, use_gpu: bool = True, use_debug_layer: bool = False) -> None:
        usable = (name for name, answer in gpus() if answer.startswith("yes"))
        name = os.environ.get("ANYDML_DEVICE") or next(usable, "cpu") if use_gpu else "cpu"
        self._device = anydml.Device(name, debug=bool(use_debug_layer))

    def __repr__(self) -> str:
        return f"dml.Device on {'CPU' if self._device.name in ('cpu', 'reference') else 'GPU'}"

    def compute(
        self, model: Model, inputs: Sequence[Binding | None], outputs: Sequence[Expression], /
    ) -> list[TensorData]:
        """Runs a model.

        Args:
            model: what GraphBuilder.build gave.
            inputs: bindings; None is skipped.
            outputs: of those that the model was built with.

        Returns:
            The outputs' data.
        """
        if not isinstance(model, Model):
            raise wrong("compute", kind_of(model), "a Model", "model")
        memory = self._device.memory
        tensors = model._graph.inputs
        bound: list[Array | None] = [None] * len(tensors)
        for binding in inputs:
            # What no output needs is no input of the graph.
            if binding is not None and tensors[binding._expr.port.number] is not None:
                bound[binding._expr.port.number] = binding._shaped if memory.is_host else binding._data
        is_owned = [tensor is not None and bool(tensor.Flags) for tensor in tensors]

        def there(wanted: bool) -> list[Any]:
            sides = zip(bound, is_owned, strict=True)
            return [_on(memory, each) if each is not None and own == wanted else None for each, own in sides]

        owned = [each for each, own in zip(bound, is_owned, strict=True) if own]
        if owned and not model._is_initialised(owned):
            model._persistent = model._graph.initialise(there(True))
            model._owned = owned
        sizes = [tensor.TotalTensorSizeInBytes or 0 for tensor in model._graph.outputs if tensor]
        results = [memory.empty((size,), np.dtype(np.uint8)) for size in sizes]
        model._graph.dispatch(there(False), [_on(memory, each) for each in results], persistent=model._persistent)
        return [TensorData(model._array(each, results)) for each in outputs]


def _on(memory: Memory, array: Array) -> Any:
    """An array on a device, as a dispatch takes it."""
    brought: Any = memory.to_device(array)
    return brought if memory.is_host else brought.tensor


class GraphBuilder:
    """Builds a graph of expressions."""

    def __init__(self, device: Device) -> None:
        self._graph = anydml.Graph(device._device)

    def build(self, flags: ExecutionFlags, outputs: Sequence[Expression], /) -> Model:
        """Compiles what the outputs need."""
        built = [built_of("build", f"outputs[{i}]", each) for i, each in enumerate(outputs)]
        return Model._of(self._graph.compile(built, flags), built)
