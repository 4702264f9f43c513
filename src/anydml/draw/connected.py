"""The dispatches of a model as one graph, each connected to the one whose results it reads."""

from __future__ import annotations

from collections.abc import Container, Sequence
from itertools import count
from typing import Any, NamedTuple

import numpy as np

from ..core.errors import Violation, error, listing, refuse, violation
from ..core.strided_layout import Array
from ..frontends.directmlx import Expression, Graph
from ..frontends.dxdispatch import Dispatch, Dispatchable
from ..frontends.dxdispatch.session import Session
from ..graph.compile import CompiledGraph
from ..operators.schema import Tensor
from ..operators.shape_inference import is_input
from ..runtime.binding import DML_BUFFER_BINDING
from ..runtime.call import OPTIONS_OF_CALLS


class _Written(NamedTuple):
    """Bytes of a resource that a dispatch wrote."""

    start: int
    end: int
    by: str
    expression: Expression


class Connected:
    """A model's dispatches as a graph.

    What a model prints or writes to a file, and what no dispatch reads, are its outputs; what no dispatch wrote before
    it is read are its inputs.

    Args:
        session: the model, on the device where the graph will run.

    Raises:
        DMLError: (P4).
    """

    def __init__(self, session: Session) -> None:
        self.session = session
        self.graph = Graph(session.device)
        self._written: dict[str, list[_Written]] = {}
        self._inputs: dict[tuple[str, int, Tensor], Expression] = {}
        self._names: list[str] = []
        """Of inputs."""
        self._memory: list[Array] = []
        self._read: set[Expression] = set()
        outputs: dict[Expression, str] = {}
        for command in session.model.commands:
            if isinstance(command, Dispatch):
                self._add(command)
            else:
                shown = self._written.get(command.resource, ())
                outputs |= {each.expression: command.resource for each in shown}
        last = [(each.expression, name) for name, written in self._written.items() for each in written]
        outputs |= {each: name for each, name in last if each not in self._read}
        names: dict[str, Expression] = {}
        for each, name in outputs.items():
            names[_unlike(name, names)] = each
        self.compiled: CompiledGraph = self.graph.compile(names)

    def times(self) -> list[float]:
        """How long each kernel takes on what the model's resources begin with, in seconds."""
        tensors = zip(self._memory, self.compiled.inputs, strict=True)
        owned, read = [], []
        for memory, tensor in tensors:
            is_owned = tensor is not None and bool(tensor.Flags)
            owned.append(memory if is_owned else None)
            read.append(None if is_owned or tensor is None else memory)
        persistent = self.compiled.initialise(owned) if any(each is not None for each in owned) else None
        outputs = [np.empty(tensor.TotalTensorSizeInBytes or 0, np.uint8) for tensor in self.compiled.outputs if tensor]
        return self.compiled.times(read, outputs, persistent=persistent)

    def _add(self, command: Dispatch) -> None:
        used = operator_of(self.session, command)
        inputs, outputs = self.session.model.arrange(used, {**used.bindings, **command.bindings}, self.session.memory)
        operands: dict[str, Any] = {}
        for (label, tensor), binding in zip(used.spec.inputs(used.desc), inputs, strict=True):
            member, bracket, _ = label.partition("[")
            each = None if tensor is None or binding is None else self._operand(command, label, tensor, binding)
            if bracket:
                operands.setdefault(member, []).append(each)
            elif each is not None:
                operands[member] = each
        results = iter(self.graph.operator(used.spec.desc, command.dispatchable, **operands, **_others(used)))
        for (_, tensor), binding in zip(used.spec.outputs(used.desc), outputs, strict=True):
            if tensor is None or binding is None:
                continue
            name, size = self._name(binding), tensor.TotalTensorSizeInBytes or 0
            written = _Written(binding.Offset, binding.Offset + size, command.dispatchable, next(results))
            before = self._written.get(name, [])
            inside = [each for each in before if each.start < written.start or each.end > written.end]
            self._written[name] = [*inside, written]

    def _operand(self, command: Dispatch, label: str, tensor: Tensor, binding: DML_BUFFER_BINDING) -> Expression:
        name, start, size = self._name(binding), binding.Offset, tensor.TotalTensorSizeInBytes or 0
        # What is owned was read when the session began.
        written = [] if tensor.Flags else self._written.get(name, [])
        found = [each for each in written if each.start < start + size and start < each.end]
        if not found:
            key = name, start, tensor
            if key not in self._inputs:
                taken = [*OPTIONS_OF_CALLS, *self._names]
                self._names.append(_unlike(name, taken))
                self._inputs[key] = self.graph.input(tensor, name=self._names[-1])
                self._memory.append(np.frombuffer(self.session.memory[name], np.uint8)[start : start + size])
            return self._inputs[key]
        if len(found) > 1 or (found[0].start, found[0].end) != (start, start + size):
            raise error([_not_whole(command, label, name, found)])
        source = found[0].expression
        self._read.add(source)
        return source.reinterpret(tensor.DataType, tensor.Sizes, tensor.Strides)

    def _name(self, binding: DML_BUFFER_BINDING) -> str:
        """The resource that it is of."""
        return next(name for name, memory in self.session.memory.items() if memory is binding.Buffer)


def operator_of(session: Session, command: Dispatch) -> Dispatchable:
    """What a dispatch runs.

    Raises:
        DMLError: (P4), it is no operator.
    """
    used = session.model.dispatchables[command.dispatchable]
    if not isinstance(used, Dispatchable):
        found = f"{command.dispatchable!r}, a model of its own"
        refuse("draw", "(P4)", "", found, "operators", "anydml draw takes ONNX models as they are", place=command.where)
    return used


def _unlike(name: str, others: Container[str]) -> str:
    """A resource's name, with a number where several inputs or outputs are of it."""
    names = (f"{name} ({number})" if number > 1 else name for number in count(1))
    return next(each for each in names if each not in others)


def _others(used: Dispatchable) -> dict[str, Any]:
    """The members of a desc that are no inputs, and there."""
    names = [name for name in used.spec.members if name not in used.spec.tensors or not is_input(used.spec, name)]
    members = {name: getattr(used.desc, name) for name in names}
    return {name: each for name, each in members.items() if each is not None or name not in used.spec.tensors}


def _not_whole(command: Dispatch, label: str, name: str, found: Sequence[_Written]) -> Violation:
    writers = listing([repr(by) for by in dict.fromkeys(each.by for each in found)], "and")
    return violation(
        "draw",
        "(P4)",
        f"{command.dispatchable}.{label}",
        f"other bytes of {name!r} than {writers} wrote",
        "the very bytes that one dispatch wrote, or none of them",
        "Without --graph, each dispatch is drawn for itself",
        place=command.where,
    )
