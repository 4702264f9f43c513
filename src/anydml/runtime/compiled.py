"""What a device runs: compiled operators, and the initializers that fill the memory which they own.

Their rules are (D3) and (D4) in ``device.py`` and (B1) to (B9) in ``runtime/binding.py``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..backends.base import BindableRun, Run, TryRun
from ..core.annotations import unquoted
from ..core.enums import DML_PERSISTENT_BUFFER_ALIGNMENT, ExecutionFlags
from ..core.errors import DMLError, Violation, error, kind_of, refuse
from ..core.memory import address, no_room
from ..core.strided_layout import Array
from ..core.truth_values import BOOL
from ..operators import spec_of
from ..operators.schema import OperatorDesc, OperatorSpec, Tensor
from ..operators.validate import check_values, validate
from .binding import (
    DML_BUFFER_BINDING,
    BindingTable,
    Bound,
    bind,
    bind_array,
    bind_range,
    check_range,
    check_sharing,
    try_bind,
)
from .call import Names, arranged, names_of, operand, place_for, places_of, result_of
from .context import Context, checks_values, select_kernel, wrong_values
from .persistent import KEPT, InitialisedResource, ResourceTag
from .slots import Slot, slots_of

if TYPE_CHECKING:
    from .._native import LayoutMatcher


_ALL_FLAGS = ExecutionFlags(sum(ExecutionFlags))


def check_flags(method: str, flags: object) -> None:
    """Refuses what are no flags; rule (D4)."""
    if not isinstance(flags, ExecutionFlags) or flags not in _ALL_FLAGS:
        refuse(method, "(D4)", "flags", kind_of(flags), "ExecutionFlags, such as ExecutionFlags.NONE")


@unquoted
class DeviceObject:
    """What belongs to a device."""

    noun = ""
    """What messages call it, where that is not its class."""

    def __init__(self, device: Context) -> None:
        self.device = device


@unquoted
class Operator(DeviceObject):
    """A desc that passed the rules, on a device."""

    def __repr__(self) -> str:
        return f"<Operator {self.spec.name} of {self.device}>"

    def __init__(self, device: Context, spec: OperatorSpec, desc: OperatorDesc) -> None:
        super().__init__(device)
        self.spec = spec
        self.desc = desc

    @cached_property
    def tensors(self) -> tuple[Sequence[tuple[str, Tensor | None]], Sequence[tuple[str, Tensor | None]]]:
        """The desc's inputs and outputs, by their labels."""
        return self.spec.inputs(self.desc), self.spec.outputs(self.desc)

    @classmethod
    def of(cls, device: Context, desc: OperatorDesc) -> Operator:
        """Of a desc that keeps the rules on a device; a DMLError with every violation of one that does not."""
        violations = validate(desc, device.feature_level, device.strict)
        if violations:
            raise error(violations)
        spec = spec_of(desc)
        assert spec is not None
        return cls(device, spec, desc)

    def __reduce__(self) -> tuple[Any, ...]:
        return Operator.of, (self.device, self.desc)


@unquoted
class BindingProperties(NamedTuple):
    """``DML_BINDING_PROPERTIES``: what a dispatchable wants bound."""

    RequiredDescriptorCount: int
    TemporaryResourceSize: int
    """In bytes; 0, as no engine here wants temporary memory."""
    PersistentResourceSize: int
    """In bytes; holds what is OWNED_BY_DML."""


@unquoted
class Compiled(DeviceObject, ABC):
    """What reads and writes memory that is bound to it: an operator or a graph, with its kernel. Immutable; several
    threads may dispatch it at once."""

    noun = "CompiledOperator or CompiledGraph"
    _any_values = True
    """Whether no value breaks a rule that `_try_run` does not look at."""
    _takes_unread = False
    """Whether a call may give what nothing reads."""

    def __init__(
        self,
        device: Context,
        name: str,
        inputs: list[Slot],
        outputs: list[Slot],
        names: Names,
        by_name: bool = False,
        in_place: bool = False,
    ) -> None:
        super().__init__(device)
        self.name = name
        self._names = names
        self._by_name = by_name
        self._in_place = in_place
        self._inputs = inputs
        self._outputs = outputs
        self._initialised = False
        self._try_run: TryRun | None = None
        self._fit: LayoutMatcher | None = None
        """What sees at a glance that inputs, which may be many, are as they should be."""
        self._mark = ResourceTag()
        self._offsets: dict[str, int] = {}
        """Of owned inputs in the persistent resource."""
        self._persistent_size = 0
        self._kept: dict[tuple[int, int], InitialisedResource] = {}
        """By address and number of the initialisation, the one used last at the end."""
        self._recent: tuple[Array | None, int | None, TryRun | None] = None, None, None
        """The resource of the dispatch before, the number of its initialisation, and what runs with it."""
        for slot in inputs:
            if slot.owned and slot.tensor is not None:
                self._offsets[slot.label] = max(self._persistent_size, DML_PERSISTENT_BUFFER_ALIGNMENT)
                blocks = -(-(slot.tensor.TotalTensorSizeInBytes or 0) // DML_PERSISTENT_BUFFER_ALIGNMENT)
                self._persistent_size = self._offsets[slot.label] + blocks * DML_PERSISTENT_BUFFER_ALIGNMENT

    @property
    def inputs(self) -> list[Tensor | None]:
        """The descs of what a dispatch takes as inputs, in order; None for what is left out."""
        return [slot.tensor for slot in self._inputs]

    @property
    def outputs(self) -> list[Tensor | None]:
        """Likewise of the outputs."""
        return [slot.tensor for slot in self._outputs]

    @property
    def input_names(self) -> list[str]:
        """What messages and pictures call the inputs: by the members of a desc, or the names that a graph has for them,
        or by their numbers."""
        return [slot.label for slot in self._inputs]

    @property
    def output_names(self) -> list[str]:
        """Likewise of the outputs."""
        return [slot.label for slot in self._outputs]

    def binding_properties(self) -> BindingProperties:
        """What has to be bound for a dispatch."""
        return BindingProperties(len(self._inputs) + len(self._outputs), 0, self._persistent_size)

    def dispatch(self, inputs: Sequence[Any], outputs: Sequence[Any], *, persistent: Array | None = None) -> None:
        """Runs it on arrays.

        Args:
            inputs: in order, None for what the desc leaves out and for what is OWNED_BY_DML. Each is an array of
                the desc's data type, sizes and strides, or a flat buffer with the bytes of the tensor.
            outputs: likewise. An output may be the input's array where the operator runs in-place.
            persistent: what :meth:`initialise` returned, where an input is OWNED_BY_DML.

        Raises:
            DMLError: (B1) to (B9), and what the operator demands of values. Nothing is written then.
        """
        if persistent is None:
            quick = self._try_run if self._any_values or self._are_fine(inputs) else None
        else:
            quick = self._try_prepared(persistent, outputs) if self._any_values else None
        try:
            if quick is not None and quick(inputs, outputs, self._in_place):
                return
            resource = None if persistent is None else DML_BUFFER_BINDING(Buffer=persistent)
            sides = ("inputs", self._inputs, inputs), ("outputs", self._outputs, outputs)
            if self._fit is not None:
                found = try_bind(self.device.memory, self.name, sides[1], bind_array)
                if found is not None and self._fit.fits(inputs, [(each.start, each.end) for each in found if each]):
                    self._run([None] * len(inputs), found, resource, inputs)
                    return
            read, written = bind(self.device.memory, self.name, sides, False, bind_array)
            self._run(read, written, resource)
        except MemoryError as problem:
            raise problem if isinstance(problem, DMLError) else no_room(self.name, [*inputs, *outputs]) from None
        if persistent is not None:
            self._remember(persistent)

    def _try_prepared(self, persistent: Array, outputs: Sequence[Any]) -> TryRun | None:
        """What runs with a resource that was used before, is as it was, and shares no memory with the outputs."""
        resource, number, quick = self._recent
        if resource is not persistent or self._mark.number(persistent, 0) != number:
            return None
        apart = all(type(each) is np.ndarray and not np.may_share_memory(each, persistent) for each in outputs)
        return quick if apart else None

    def _remember(self, persistent: Array) -> None:
        """Keeps what was prepared for a resource on the CPU where the next dispatch finds it at a glance."""
        if type(persistent) is not np.ndarray or persistent.ndim != 1 or persistent.dtype != np.uint8:
            return
        number = self._mark.number(persistent, 0)
        filled = self._kept.get((address(persistent), number or 0))
        self._recent = persistent, number, None if filled is None else self._quick(filled)

    def _quick(self, filled: InitialisedResource) -> TryRun | None:
        """What runs at a glance with what was prepared."""
        plan = filled.work.plan if isinstance(filled.work, BindableRun) else None
        return None if plan is None else plan.try_run

    def __call__(self, /, *inputs: Any, out: Any = None, persistent: Array | None = None, **named: Any) -> Any:
        """Runs it on arrays, as functions run: of any kind and strides, lists and buffers too; outputs are allocated.

        Args:
            inputs: in order, each of the data type and sizes of its desc; None for what the desc leaves out and for
                what is OWNED_BY_DML. Numbers in lists become of that type. Those at the end may be left out, or given
                by name: of an operator the member of its desc, of a graph what the input was named. What no output of
                a graph needs may be given, and is not looked at.
            out: where to write, of any strides; a list where there are several outputs, a dictionary where they have
                names. Returned.
            persistent: what :meth:`initialise` returned, where an input is OWNED_BY_DML.

        Returns:
            The output, an array like the first input; a list where there are several, a dictionary where they have
            names.

        Raises:
            DMLError: (A1) to (A4), (A7), (A12), (B1) to (B11), and what the operator demands of values. Nothing is
                written then.
        """
        memory = self.device.memory
        given = arranged(self.name, self._inputs, self._names, inputs, named)
        arrays = [
            None if slot.tensor is None and self._takes_unread else operand(memory, self.name, slot, each)
            for slot, each in zip(self._inputs, given, strict=True)
        ]
        there = [slot for slot in self._outputs if slot.tensor is not None]
        wanted = places_of(self.name, there, self._by_name, out)
        places = {
            slot.label: place_for(memory, self.name, slot, each) for slot, each in zip(there, wanted, strict=True)
        }
        written = [places[slot.label][1] if slot.label in places else None for slot in self._outputs]
        self.dispatch(arrays, written, persistent=persistent)
        like = next((each for each in given if each is not None), None)
        results = {}
        for slot, each in zip(there, wanted, strict=True):
            place, own = places[slot.label]
            if place is not own:
                memory.copy(place, own)
            found = place.view(BOOL) if slot.is_truth and each is None else place
            results[slot.label] = result_of(memory, slot, like, each, found)
        if self._by_name:
            return results
        return [*results.values()] if len(results) > 1 else next(iter(results.values()))

    @property
    @abstractmethod
    def engine(self) -> str:
        """Who serves it: "cpu", for instance, or "reference"."""

    @abstractmethod
    def explain(self) -> str:
        """Which kernels serve it, and why other engines declined."""

    def _are_fine(self, inputs: Sequence[Any]) -> bool:
        """Whether one sees at a glance that these values break none."""
        return False

    def _check(self, inputs: list[Any]) -> list[Violation]:
        """What is wrong with values, before anything is written."""
        return []

    def initialise(self, inputs: Sequence[Any]) -> Array:
        """Copies the inputs that are OWNED_BY_DML into a new persistent resource, and returns it for `dispatch`.

        Args:
            inputs: in header order, None for all that is not OWNED_BY_DML.

        Raises:
            DMLError: (B1) to (B6).
        """
        memory = self.device.memory
        resource = memory.empty((self._persistent_size,), np.dtype(np.uint8))
        (owned,) = bind(memory, self.name, [("inputs", self._inputs, inputs)], True, bind_array)
        self._fill(owned, resource, 0)
        return resource

    def _fill(self, owned: Sequence[Bound | None], memory: Array, offset: int) -> None:
        if self._persistent_size:
            self._mark.remove(memory, offset)
            start = address(memory) + offset
            for key in [key for key in list(self._kept) if key[0] == start]:
                self._kept.pop(key, None)
        for bound in owned:
            if bound is not None and bound.slot.aligned is not None:
                place = self.device.memory.view(bound.slot.aligned, memory, offset + self._offsets[bound.slot.label])
                self.device.memory.copy(place, bound.array)
        self._prepare(memory, offset)
        if self._persistent_size:
            self._mark.put(memory, offset)
        self._initialised = True

    def _run(
        self,
        read: list[Bound | None],
        written: list[Bound | None],
        persistent: DML_BUFFER_BINDING | None,
        fitting: Sequence[Array | None] | None = None,
    ) -> None:
        """With inputs that are bound; or with arrays that fit, and share no memory with what is written."""
        name = self.name
        work = None
        inputs = [bound.array if bound is not None else None for bound in read] if fitting is None else [*fitting]
        if self._persistent_size:
            filled = self._filled(*self._check_persistent(name, persistent))
            work = filled.work
            for i, bound in filled.inputs.items():
                read[i], inputs[i] = bound, bound.array
        elif persistent is not None:
            refuse(name, "(B9)", "persistent", kind_of(persistent), "None: nothing is OWNED_BY_DML")
        there = [[bound for bound in side if bound is not None] for side in (read, written)]
        shared = check_sharing(name, self._in_place, *there)
        if shared:
            raise error(shared)
        wrong = self._check(inputs)
        if wrong:
            raise error(wrong)
        self._work(work, inputs, [bound.array if bound is not None else None for bound in written])

    def _prepare(self, memory: Array, offset: int) -> None:
        """Computes what depends on a persistent resource alone; what fails leaves one that is not initialised."""

    def _filled(self, memory: Array, offset: int) -> InitialisedResource:
        start = address(memory) + offset
        key = start, self._mark.number(memory, offset) or 0
        filled = self._kept.pop(key, None)
        if filled is None:
            inputs = {}
            for i, slot in enumerate(self._inputs):
                if slot.owned and slot.aligned is not None:
                    array = self.device.memory.view(slot.aligned, memory, offset + self._offsets[slot.label])
                    inputs[i] = Bound(slot, array, start, start + self._persistent_size)
            filled = InitialisedResource(inputs, self._prepared(inputs, memory, offset))
        self._kept[key] = filled
        for old in list(self._kept)[:-KEPT]:
            self._kept.pop(old, None)
        return filled

    @abstractmethod
    def _prepared(self, inputs: dict[int, Bound], memory: Array, offset: int) -> Any:
        """What `_work` gets with a persistent resource."""

    @abstractmethod
    def _work(self, prepared: Any, inputs: Sequence[Array | None], outputs: Sequence[Array | None]) -> None:
        """Computes the outputs, with what was prepared, or with None."""

    def _check_persistent(self, name: str, given: object) -> tuple[Array, int]:
        where, expected = "persistent", "the persistent resource that this operator was initialised with"
        remedy = "Pass what initialise() returned, or bind what an OperatorInitializer was dispatched with"
        if given is None:
            refuse(name, "(B9)", where, "None", expected, remedy)
        place = check_range(
            self.device.memory, name, where, given, self._persistent_size, DML_PERSISTENT_BUFFER_ALIGNMENT, False
        )
        if isinstance(place, Violation):
            raise error([place])
        memory, offset = place
        if self._mark.number(memory, offset) is None:
            refuse(name, "(B9)", where, "another buffer", expected, remedy)
        return place

    def _dispatch_table(self, table: BindingTable) -> None:
        name = self.name
        if not self._initialised:
            remedy = "Dispatch an OperatorInitializer first, or call compiled.dispatch, which does"
            refuse(name, "(D3)", "", "an operator not initialised", "an initialised one", remedy)
        sides = ("bind_inputs", self._inputs, table.inputs), ("bind_outputs", self._outputs, table.outputs)
        read, written = bind(self.device.memory, name, sides, False, bind_range)
        self._run(read, written, table.persistent)


@unquoted
class CompiledOperator(Compiled):
    """An operator with its kernel. Immutable; several threads may dispatch it at once."""

    def __repr__(self) -> str:
        return f"<CompiledOperator {self.name} served by {self.engine}>"

    def __reduce__(self) -> tuple[Any, ...]:
        """Compiled anew, where it is unpickled or copied; what was initialised stays with this one."""
        return CompiledOperator, (self._operator, self._flags)

    def __init__(self, operator: Operator, flags: ExecutionFlags = ExecutionFlags.NONE) -> None:
        spec, device = operator.spec, operator.device
        inputs, outputs = slots_of(spec, operator.desc)
        served = select_kernel(device, spec, operator.desc, inputs, outputs, flags)
        super().__init__(device, spec.name, inputs, outputs, names_of(inputs), in_place=spec.in_place)
        self._operator, self._flags = operator, flags
        self.spec = spec
        self.desc = operator.desc
        self._served = served
        # Memory that an operator owns takes more than a glance.
        self._try_run = None if any(slot.owned for slot in inputs) else served.kernel.try_run
        self._any_values = served.kernel.checks_values or not checks_values(device, spec)

    @property
    def engine(self) -> str:
        """The engine that serves it: "cpu" or "reference"."""
        return self._served.engine.name

    def explain(self) -> str:
        """Which kernel serves it, and why other engines declined."""
        return self._served.explain(self.spec)

    def _prepared(self, inputs: dict[int, Bound], memory: Array, offset: int) -> Run | None:
        prepare = self._served.kernel.prepare
        if prepare is None:
            return None
        return prepare([inputs[i].array if i in inputs else None for i in range(len(self._inputs))])

    def _quick(self, filled: InitialisedResource) -> TryRun | None:
        try_run = self._served.kernel.try_run
        if filled.work is not None or try_run is None:
            return super()._quick(filled)
        count, owned = len(self._inputs), [(i, bound.array) for i, bound in filled.inputs.items()]

        def run(inputs: Sequence[Any], outputs: Sequence[Any], in_place: bool) -> bool:
            if len(inputs) != count or any(inputs[i] is not None for i, _ in owned):
                return False
            every = [*inputs]
            for i, array in owned:
                every[i] = array
            return try_run(every, outputs, in_place)

        return run

    def _work(self, prepared: Run | None, inputs: Sequence[Array | None], outputs: Sequence[Array | None]) -> None:
        (prepared or self._served.kernel.run)(inputs, outputs)

    def _are_fine(self, inputs: Sequence[Any]) -> bool:
        if type(inputs) is not list or len(inputs) != len(self._inputs):
            return False
        for x, slot in zip(inputs, self._inputs, strict=True):
            if (x is None) != (slot.layout is None):
                return False
            if slot.layout is None:
                continue
            if type(x) is not np.ndarray or (x.dtype, x.shape) != (slot.layout.dtype, slot.layout.sizes):
                return False
        return not check_values(self.spec, self.desc, inputs)

    def _check(self, inputs: list[Any]) -> list[Violation]:
        return wrong_values(self.device, self.spec, self.desc, inputs)
