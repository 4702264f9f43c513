"""What a model says: resources, dispatchables and commands, with the rules that need all of them.

The package's docstring has the rules.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ...core.enums import FeatureLevel, HResult
from ...core.errors import DMLError, Violation, closest, listing, violation
from ...core.memory import HOST
from ...core.strided_layout import Array
from ...operators.validate import validate
from ...runtime.binding import DML_BUFFER_BINDING, bind, bind_range, check_sharing
from ...runtime.slots import Slot, slots_of
from .buffers import DEFERRED, Buffer
from .commands import Binding, Bindings, Command, Dispatch, Dispatchable, at, model_violation, no_memory, placed
from .limits import default_limit, format_size
from .whole import Whole


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """A model as it was read; what could not be read is None, so that all that is right can be checked all the same."""

    resources: Mapping[str, Buffer | None]
    dispatchables: Mapping[str, Dispatchable | Whole | None]
    commands: Sequence[Command]
    unreadable: Sequence[Violation]
    """What is wrong with the text."""

    @property
    def memory_needed(self) -> int:
        """The bytes of all resources."""
        return sum(buffer.size for buffer in self.resources.values() if buffer is not None)

    def check(
        self,
        feature_level: FeatureLevel = FeatureLevel.LEVEL_6_4,
        strict: bool = False,
        memory_limit: int | None = None,
    ) -> list[Violation]:
        """Every rule that the model breaks, in text, descs, commands and bindings; nothing is run.

        Args:
            feature_level: the level whose support tables hold.
            strict: whether DirectML's own limits hold, see :func:`anydml.validate`.
            memory_limit: the bytes that resources may take together; None for three quarters of what the machine, or
                its container, has.
        """
        limit = default_limit() if memory_limit is None else memory_limit
        violations = [*self._check_memory(limit), *self.unreadable]
        broken = set()
        for name, dispatchable in self.dispatchables.items():
            if dispatchable is not None:
                if isinstance(dispatchable, Whole):
                    wrong = dispatchable.check(feature_level, strict)
                else:
                    wrong = placed(dispatchable.where, validate(dispatchable.desc, feature_level, strict))
                violations += wrong
                if wrong:
                    broken.add(name)
        if self.memory_needed <= limit:
            try:
                violations += self._check_bindings(broken, feature_level, strict)
            except MemoryError:
                violations.append(no_memory("resources", self.memory_needed))
        return violations

    def _check_memory(self, limit: int) -> list[Violation]:
        needed = self.memory_needed
        if needed <= limit:
            return []
        sizes = {name: buffer.size for name, buffer in self.resources.items() if buffer is not None}
        largest, size = max(sizes.items(), key=lambda item: item[1])
        return [
            violation(
                "",
                "(M13)",
                "resources",
                f"{format_size(needed)} in all, of which {at('resources', largest)} takes {size}",
                f"at most {format_size(limit)}",
                "--memory-limit SIZE (memory_limit=) sets another limit",
                hresult=HResult.E_OUTOFMEMORY,
                kind="memory",
            )
        ]

    def _check_bindings(self, broken: set[str], feature_level: FeatureLevel, strict: bool) -> list[Violation]:
        """Binds every dispatch, as it would be run, to memory that nothing is written to."""
        buffers = {name: buffer for name, buffer in self.resources.items() if buffer is not None}
        memory = {name: np.zeros(buffer.size, np.uint8) for name, buffer in buffers.items()}
        violations = []
        for name, dispatchable in self.dispatchables.items():
            if isinstance(dispatchable, Dispatchable) and name not in broken:
                where = dispatchable.where
                violations += self._try(where, dispatchable, dispatchable.bindings, memory, owned=True)
        for command in self.commands:
            if isinstance(command, Dispatch) and command.dispatchable not in broken:
                used = self.dispatchables[command.dispatchable]
                if isinstance(used, Whole):
                    wrong = used.check_names(command)
                    violations += wrong or used.check_dispatch(command, self.resources, feature_level, strict)
                elif used is not None:
                    violations += self._try(command.where, used, command.bindings, memory, owned=False)
        return violations

    def _try(
        self, where: str, used: Dispatchable, bindings: Bindings, memory: Mapping[str, Array], owned: bool
    ) -> list[Violation]:
        if any(
            each is not None and self.resources[each.resource] is None for every in bindings.values() for each in every
        ):
            return []  # the resource has been complained of
        deferred = [
            model_violation(f"{where}.bindings", "(M12)", f"the deferred resource {each.resource!r}", "one with a size")
            for every in bindings.values()
            for each in every
            if each is not None and getattr(self.resources[each.resource], "initial", None) is DEFERRED
        ]
        if deferred:
            return deferred
        inputs, outputs = slots_of(used.spec, used.desc)
        wrong = _check_members(f"{where}.bindings", used, bindings, [*inputs, *outputs], owned)
        if wrong:
            return wrong
        name = used.spec.name
        read, written = self.arrange(used, bindings, memory)
        sides = ("inputs", inputs, read), ("outputs", outputs, written)
        try:
            bound = bind(HOST, name, sides, owned, bind_range)
        except DMLError as problem:
            return placed(where, problem.violations)
        there = [[each for each in every if each is not None] for every in bound]
        return placed(where, check_sharing(name, used.in_place, *there))

    def arrange(
        self, used: Dispatchable, bindings: Bindings, memory: Mapping[str, Array]
    ) -> tuple[list[DML_BUFFER_BINDING | None], list[DML_BUFFER_BINDING | None]]:
        """The bindings of the inputs and the outputs of a dispatchable, in header order."""

        def find(label: str) -> DML_BUFFER_BINDING | None:
            binding = _binding(bindings, label)
            if binding is None:
                return None
            buffer = self.resources[binding.resource]
            assert buffer is not None
            return binding.of(buffer, memory[binding.resource])

        inputs = [find(label) for label, _ in used.spec.inputs(used.desc)]
        return inputs, [find(label) for label, _ in used.spec.outputs(used.desc)]


def _check_members(
    where: str, used: Dispatchable, bindings: Bindings, slots: Sequence[Slot], owned: bool
) -> list[Violation]:
    """Rule (M12)."""
    known = used.spec.tensors
    wrong = []
    for member, given in bindings.items():
        tensors = getattr(used.desc, member, None)
        count = len(tensors) if isinstance(tensors, tuple) else 1
        if member not in known:
            remedy = closest(member, known)
            wrong.append(model_violation(at(where, member), "(M12)", "no tensor of the desc", listing(known), remedy))
        elif len(given) != count:
            found = f"{len(given)} bindings"
            wrong.append(model_violation(at(where, member), "(M12)", found, f"{count}, one for each tensor"))
    for slot in slots if not wrong else ():
        if slot.tensor is not None and slot.owned == owned and _binding(bindings, slot.label) is None:
            remedy = "It is OWNED_BY_DML, and so bound in the dispatchable" if owned else ""
            found = f"no binding for {slot.label}"
            wrong.append(model_violation(where, "(M12)", found, 'a resource\'s name, or {"name": ...}', remedy))
    return wrong


def _binding(bindings: Bindings, label: str) -> Binding | None:
    """The binding of ``InputTensor`` or ``InputTensors[1]``."""
    member, _, index = label.partition("[")
    return bindings[member][int(index[:-1]) if index else 0] if member in bindings else None
