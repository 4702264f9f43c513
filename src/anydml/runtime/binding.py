"""Bindings: the memory that a dispatch reads and writes, and the rules on it.

(B1) There are as many bindings as inputs (or outputs), optional ones included.
(B2) What the desc has is bound; what it leaves out is None, as is an OWNED_BY_DML input at dispatch.
(B3) A buffer is contiguous memory, writable where it is an output or is initialised; on a GPU it begins at a multiple
     of 8 bytes.
(B4) A binding lies inside its buffer, and has at least the tensor's TotalTensorSizeInBytes.
(B5) Its offset is a multiple of GuaranteedBaseOffsetAlignment, or of 16 where that is 0.
(B6) An array has the desc's type, sizes and strides, or is flat and contiguous with all the bytes of the tensor. Of
     INT4 and UINT4 it is the latter, of uint8, or a PackedArray of the desc's type and sizes.
(B7) An output shares memory with an input only where the operator runs in-place, and then both are the same elements
     of the same range.
(B8) Outputs share no memory with each other.
(B9) A persistent resource is the one that the operator was initialised with.
(B10) A binding lies in the memory of the operator's device.
(B11) A call gives inputs by position, or by names that there are, each once.

Explicit bindings are judged by the range that their tensors' TotalTensorSizeInBytes covers, arrays by the bytes of
their elements. An array needs only its own bytes; the rounding up to 4 is for explicit bindings.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ..core.annotations import unquoted
from ..core.enums import DML_MINIMUM_BUFFER_TENSOR_ALIGNMENT
from ..core.errors import Violation, error, kind_of, refuse, violation
from ..core.interop import as_operand
from ..core.memory import Memory, address, restride
from ..core.packed_array import PackedArray
from ..core.strided_layout import DATA_TYPES, Array, Layout
from ..core.tensor_desc import Struct
from .slots import Slot


@dataclass(frozen=True, slots=True, kw_only=True)
class DML_BUFFER_BINDING(Struct):
    """A range of a buffer.

    Args:
        Buffer: any contiguous buffer: a NumPy array, a bytearray, a memoryview, an mmap.
        Offset: first byte.
        SizeInBytes: length in bytes; None for the rest of the buffer.
    """

    Buffer: Any
    Offset: int = 0
    SizeInBytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DML_BUFFER_ARRAY_BINDING(Struct):
    """Several ranges, bound as one: an operator's inputs when it is initialised."""

    Bindings: Sequence[DML_BUFFER_BINDING | None]


class Bound(NamedTuple):
    """A slot with its memory."""

    slot: Slot
    array: Array
    """What the engine gets."""
    start: int
    """The first address that counts as the binding's."""
    end: int


def _bytes_of(memory: Memory, operator: str, slot_label: str, buffer: Any, writable: bool) -> Array | Violation:
    """The memory of a buffer object as a flat array of bytes."""
    expected = "writable contiguous memory" if writable else "contiguous memory"
    try:
        found = memory.bytes_of(buffer)
    except (TypeError, ValueError, BufferError) as problem:
        return violation(operator, "(B3)", slot_label, f"{type(buffer).__name__} ({problem})", expected)
    if writable and not found.flags.writeable:
        return violation(operator, "(B3)", slot_label, f"read-only {type(buffer).__name__}", expected)
    return found


def check_range(
    memory: Memory, operator: str, where: str, binding: object, needed: int, alignment: int, writable: bool
) -> tuple[Array, int] | Violation:
    """The memory and the offset of an explicit binding; rules (B3) to (B5)."""
    if not isinstance(binding, DML_BUFFER_BINDING):
        return violation(operator, "(B2)", where, kind_of(binding), "a DML_BUFFER_BINDING(Buffer=...)")
    buffer = _bytes_of(memory, operator, where, binding.Buffer, writable)
    if isinstance(buffer, Violation):
        return buffer
    offset, size_given = binding.Offset, binding.SizeInBytes
    if type(offset) is not int or type(size_given) not in (int, type(None)):
        found = f"offset {kind_of(offset)}, size {kind_of(size_given)}"
        return violation(operator, "(B4)", where, found, "integers")
    size = buffer.size - offset if size_given is None else size_given
    if offset < 0 or size < 0 or offset + size > buffer.size:
        found = f"bytes {offset} to {offset + size}"
        return violation(operator, "(B4)", where, found, f"a range inside the buffer's {buffer.size} bytes")
    if size < needed:
        rounded = "TotalTensorSizeInBytes is rounded up to a multiple of 4, and so must the binding be"
        remedy = rounded if needed - size < 4 else ""
        return violation(operator, "(B4)", where, f"{size} bytes", f"at least {needed}, TotalTensorSizeInBytes", remedy)
    if offset % alignment:
        found = f"offset {offset}"
        return violation(operator, "(B5)", where, found, f"a multiple of {alignment}")
    return buffer, offset


BindOne: TypeAlias = Callable[[Memory, str, Slot, Any], Bound | Violation]


Side: TypeAlias = tuple[str, Sequence[Slot], object]
"""What inputs or outputs are called in messages, their slots, and what was given for them."""


def bind(
    memory: Memory, operator: str, sides: Sequence[Side], owned: bool, bind_one: BindOne
) -> list[list[Bound | None]]:
    """Binds what a dispatch (`owned` False) or an initialisation (True) takes to its slots; rules (B1) to (B6).

    Raises:
        DMLError: every violation, of all sides.
    """
    violations: list[Violation] = []
    bound = [_bind_side(memory, operator, side, owned, bind_one, violations) for side in sides]
    if violations:
        raise error(violations)
    return bound


def try_bind(memory: Memory, operator: str, side: Side, bind_one: BindOne) -> list[Bound | None] | None:
    """One side of what `bind` gives for a dispatch; None where something is wrong with it."""
    violations: list[Violation] = []
    bound = _bind_side(memory, operator, side, False, bind_one, violations)
    return None if violations else bound


def _bind_side(
    memory: Memory, operator: str, side: Side, owned: bool, bind_one: BindOne, violations: list[Violation]
) -> list[Bound | None]:
    where, slots, given = side
    is_list = isinstance(given, (list, tuple))
    if not isinstance(given, (list, tuple)) or len(given) != len(slots):
        found = str(len(given)) if isinstance(given, (list, tuple)) else kind_of(given)
        labels = ", ".join(slot.label for slot in slots)
        expected = f"a list of {len(slots)}: {labels}" if slots else "an empty list: the operator has none"
        violations.append(violation(operator, "(B1)", where, found, expected, kind="value" if is_list else "type"))
        return []
    every: list[Bound | None] = []
    for slot, item in zip(slots, given, strict=True):
        bound: Bound | Violation | None = None
        if slot.tensor is not None and slot.owned == owned:
            bound = bind_one(memory, operator, slot, item)
        elif item is not None:
            bound = violation(operator, "(B2)", slot.label, kind_of(item), f"None: {_why_absent(slot)}")
        if isinstance(bound, Violation):
            violations.append(bound)
        else:
            every.append(bound)
    return every


def _why_absent(slot: Slot) -> str:
    if slot.tensor is None:
        return "the desc leaves it out"
    return "it is OWNED_BY_DML, bound at initialisation" if slot.owned else "only what is OWNED_BY_DML is initialised"


def bind_range(memory: Memory, operator: str, slot: Slot, binding: object) -> Bound | Violation:
    """Binds a slot to a range of a buffer."""
    assert slot.tensor is not None and slot.aligned is not None
    needed = slot.tensor.TotalTensorSizeInBytes or 0
    alignment = slot.tensor.GuaranteedBaseOffsetAlignment or DML_MINIMUM_BUFFER_TENSOR_ALIGNMENT
    place = check_range(memory, operator, slot.label, binding, needed, alignment, slot.is_output)
    if isinstance(place, Violation):
        return place
    buffer, offset = place
    start = address(buffer) + offset
    return Bound(slot, memory.view(slot.aligned, buffer, offset), start, start + needed)


def bind_array(memory: Memory, operator: str, slot: Slot, given: Any) -> Bound | Violation:
    """Binds a slot to an array that matches its desc, or to a flat one with the tensor's bytes; rules (B3), (B6)."""
    assert slot.layout is not None and slot.aligned is not None
    layout = slot.layout
    if given is None:
        return violation(operator, "(B2)", slot.label, "None", f"an array of {layout.dtype}, sizes {layout.sizes}")
    if slot.is_output and isinstance(given, (list, tuple)):
        return violation(operator, "(B3)", slot.label, kind_of(given), "an array or a buffer to write to")
    if slot.is_packed and isinstance(given, PackedArray):
        if not slot.fits(given):
            return violation(operator, "(B6)", slot.label, repr(given), slot.expected_packed())
        given = given.data
    given = given if slot.is_output else as_operand(operator, slot.label, given)
    array = memory.import_array(operator, slot.label, given)
    if not memory.is_host and isinstance(array, np.ndarray):
        remedy = "Functions bring it there; here, pass a tensor on the device"
        found = f"{kind_of(given)} in the CPU's memory"
        return violation(operator, "(B10)", slot.label, found, "memory of the operator's device", remedy)
    if slot.is_output and not array.flags.writeable:
        return violation(operator, "(B3)", slot.label, "a read-only array", "writable memory")
    data_type = DATA_TYPES.get(array.dtype)
    if data_type == layout.type and Layout(data_type, array.shape, array.strides).same_place(layout):
        low, high = layout.bounds()
        start = address(array)
        view = array if slot.aligned is layout else restride(array, slot.aligned.sizes, slot.aligned.strides)
        return Bound(slot, view, start + low, start + high)
    span = layout.bounds()[1]
    if array.ndim == 1 and array.flags.c_contiguous and array.dtype in (layout.dtype, np.dtype(np.uint8)):
        if array.nbytes < span:
            expected = f"at least {span}, which the tensor spans"
            return violation(operator, "(B6)", slot.label, f"{array.nbytes} bytes", expected)
        start = address(array)
        if not memory.is_host and start % layout.dtype.itemsize:
            found = f"an address that is no multiple of {layout.dtype.itemsize}"
            return violation(operator, "(A12)", slot.label, found, "elements at multiples of their size")
        return Bound(slot, memory.view(slot.aligned, array.view(np.uint8), 0), start, start + span)
    strides = tuple(step / array.itemsize for step in array.strides)
    found = f"an array of {array.dtype}, sizes {array.shape}, strides {_numbers(strides)} elements"
    assert slot.tensor is not None
    if slot.is_packed:
        return violation(operator, "(B6)", slot.label, found, slot.expected_packed(), "PackedArray.pack makes one")
    expected = f"{layout.dtype}, sizes {layout.sizes}, strides {slot.tensor.strides}, or a flat array of {span} bytes"
    return violation(operator, "(B6)", slot.label, found, expected)


def _numbers(values: Sequence[float]) -> str:
    """As a tuple of numbers is written, whole ones without a point."""
    return str(tuple(int(value) if value == int(value) else value for value in values))


def check_sharing(operator: str, in_place: bool, inputs: Sequence[Bound], outputs: Sequence[Bound]) -> list[Violation]:
    """Rules (B7) and (B8)."""
    violations = []
    wanted = "the very elements of the input, or memory of its own" if in_place else "memory of its own"
    remedy = "" if in_place else f"{operator} does not run in-place"
    for i, output in enumerate(outputs):
        for given in inputs:
            overlap = output.start < given.end and given.start < output.end
            if overlap and not (in_place and _same_elements(output, given)):
                found = f"memory shared with {given.slot.label}"
                violations.append(violation(operator, "(B7)", output.slot.label, found, wanted, remedy))
        for other in outputs[:i]:
            if output.start < other.end and other.start < output.end:
                found = f"memory shared with {other.slot.label}"
                violations.append(violation(operator, "(B8)", output.slot.label, found, "memory of its own"))
    return violations


def _same_elements(a: Bound, b: Bound) -> bool:
    if a.slot.aligned is None or b.slot.aligned is None or (a.start, a.end) != (b.start, b.end):
        return False
    return address(a.array) == address(b.array) and a.slot.aligned.same_place(b.slot.aligned)


@unquoted
class BindingTable:
    """The bindings of a dispatchable; what was bound is checked when it is dispatched.

    Attributes:
        dispatchable: the compiled operator or initializer that they are for.
        inputs: for a compiled operator a DML_BUFFER_BINDING for each input in header order, arrays taken apart, None
            for what is absent or owned; for an initializer see :class:`anydml.OperatorInitializer`.
        outputs: likewise.
        persistent: a compiled operator's persistent resource.
    """

    def __init__(self, dispatchable: Any) -> None:
        self.reset(dispatchable)

    def reset(self, dispatchable: Any) -> None:
        """Empties the table, for a dispatchable."""
        self.dispatchable = dispatchable
        self.inputs: Sequence[Any] | None = None
        self.outputs: Sequence[Any] | None = None
        self.persistent: DML_BUFFER_BINDING | None = None

    def bind_inputs(self, bindings: Sequence[DML_BUFFER_BINDING | DML_BUFFER_ARRAY_BINDING | None]) -> None:
        """Binds all inputs."""
        self.inputs = _sequence("bind_inputs", bindings)

    def bind_outputs(self, bindings: Sequence[DML_BUFFER_BINDING | None]) -> None:
        """Binds all outputs."""
        self.outputs = _sequence("bind_outputs", bindings)

    def bind_persistent_resource(self, binding: DML_BUFFER_BINDING | None) -> None:
        """Binds what the operator was initialised with."""
        self.persistent = binding

    def bind_temporary_resource(self, binding: DML_BUFFER_BINDING | None) -> None:
        """Accepted for the sake of code that binds one; no engine here wants temporary memory."""


def _sequence(method: str, bindings: object) -> Sequence[Any]:
    if not isinstance(bindings, (list, tuple)):
        refuse("BindingTable", "(B1)", method, kind_of(bindings), "a list of bindings")
    return bindings
