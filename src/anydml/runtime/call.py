"""Calls of what is compiled, as functions are called: arrays of any kind in, new arrays of the same kind out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..core.errors import kind_of, listing, refuse
from ..core.interop import as_array_of, as_operand
from ..core.memory import Memory, result_array
from ..core.packed_array import PackedArray, as_packed
from ..core.strided_layout import Array, Layout, overlaps_itself
from ..core.truth_values import BOOL, as_bytes, is_bool
from .slots import Slot

OPTIONS_OF_CALLS = ("out", "persistent")
"""What a call takes by name beside its inputs."""

Names = Mapping[str, int | list[int]]
"""The numbers of inputs by name; of what is an array of tensors, all of them."""


def names_of(slots: Sequence[Slot]) -> Names:
    """The inputs of an operator, by the members of its desc."""
    names: dict[str, Any] = {}
    for i, slot in enumerate(slots):
        member, bracket, _ = slot.label.partition("[")
        if bracket:
            names.setdefault(member, []).append(i)
        else:
            names[member] = i
    return names


def arranged(
    operator: str, slots: Sequence[Slot], names: Names, given: Sequence[Any], named: Mapping[str, Any]
) -> list[Any]:
    """What a call gives for each input, None for what it leaves out; rule (B11)."""
    if len(given) > len(slots):
        labels = ", ".join(slot.label for slot in slots)
        expected = f"at most {len(slots)}: {labels}" if slots else "none: there are no inputs"
        refuse(operator, "(B11)", "", f"{len(given)} inputs", expected, kind="type")
    values: list[Any] = [*given, *[None] * (len(slots) - len(given))]
    taken = {*range(len(given))}
    for name, value in named.items():
        numbers = names.get(name)
        if numbers is None:
            expected = f"{listing(names)}, {listing(OPTIONS_OF_CALLS)}" if names else listing(OPTIONS_OF_CALLS)
            remedy = "" if names else "Inputs without names are given by position"
            refuse(operator, "(B11)", name, "an input of that name", expected, remedy, kind="type")
        if isinstance(numbers, int):
            numbers, value = [numbers], [value]
        if not isinstance(value, (list, tuple)) or len(value) != len(numbers):
            expected = f"a list of {len(numbers)}: {', '.join(slots[i].label for i in numbers)}"
            refuse(operator, "(B11)", name, kind_of(value), expected, kind="type")
        if not taken.isdisjoint(numbers):
            refuse(operator, "(B11)", name, "an input that is given by position, too", "each once", kind="type")
        for i, each in zip(numbers, value, strict=True):
            values[i] = each
    return values


def operand(memory: Memory, operator: str, slot: Slot, value: Any) -> Any:
    """What a dispatch binds for an array, which may be of other strides and lie elsewhere; rules (A1), (A2), (A12)."""
    if slot.layout is None or slot.owned or value is None:
        return value  # a dispatch says what is wrong
    layout = slot.layout
    if slot.is_packed:
        value = _packed(operator, slot, value)
    given = as_array_of(operator, slot.label, as_operand(operator, slot.label, value), layout.dtype)
    array = memory.import_array(operator, slot.label, given)
    array = memory.to_device(as_bytes(array) if slot.is_truth else array)
    is_alike = array.dtype == layout.dtype and tuple(array.shape) == layout.sizes
    if not is_alike or Layout.of_array(array).same_place(layout) or _overlaps(layout):
        return array
    own = _empty(memory, operator, layout)
    memory.copy(own, array)
    return own


def _packed(operator: str, slot: Slot, value: Any) -> Any:
    """The bytes of a packed array, of one of ml_dtypes' or of lists; all else as it is. Rules (A19), (B6)."""
    assert slot.tensor is not None
    packed = PackedArray.pack(value, slot.tensor.DataType) if isinstance(value, (list, tuple)) else as_packed(value)
    if packed is None:
        return value
    if not slot.fits(packed):
        refuse(operator, "(B6)", slot.label, repr(packed), slot.expected_packed())
    return packed.data


def place_for(memory: Memory, operator: str, slot: Slot, out: Any) -> tuple[Array, Array]:
    """Where a result is to be, and what a dispatch writes to, which may be the same; rules (A1) to (A4) and (A7)."""
    assert slot.layout is not None
    layout = slot.layout
    if out is None:
        own = _empty(memory, operator, layout)
        return own, own
    if slot.is_packed and isinstance(out, PackedArray):
        if not slot.fits(out):
            refuse(operator, "(A4)", "out", repr(out), slot.expected_packed())
        out = out.data
    dtype = BOOL if slot.is_truth and is_bool(out) else layout.dtype
    place = as_bytes(result_array(memory, operator, out, dtype, layout.sizes))
    return place, place if Layout.of_array(place).same_place(layout) else _empty(memory, operator, layout)


def result_of(memory: Memory, slot: Slot, like: Any, out: Any, found: Array) -> Any:
    """What a call returns for an output, `out` or an array like another one; of 4 bits a packed one."""
    if isinstance(out, PackedArray):
        memory.export(out.data if like is None else like, out.data, found)
        return out
    like = like.data if isinstance(like, PackedArray) else like
    result = memory.export(found if like is None else like, out, found)
    if not slot.is_packed or out is not None:
        return result
    assert slot.tensor is not None
    return PackedArray(result, slot.tensor.DataType, slot.tensor.Sizes)


def places_of(operator: str, slots: Sequence[Slot], by_name: bool, out: Any) -> list[Any]:
    """What a call gives to write to, for each output that there is."""
    if out is None:
        return [None] * len(slots)
    labels = [slot.label for slot in slots]
    if by_name:
        if isinstance(out, Mapping) and out.keys() <= {*labels}:
            return [out.get(label) for label in labels]
        refuse(
            operator, "(A4)", "out", kind_of(out), f"a dictionary of arrays, for {listing(labels, 'and')}", kind="type"
        )
    if len(slots) == 1:
        return [out]
    if isinstance(out, (list, tuple)) and len(out) == len(slots):
        return list(out)
    expected = f"a list of {len(slots)} arrays: {', '.join(labels)}"
    refuse(operator, "(A4)", "out", kind_of(out), expected, kind="type")


def _overlaps(layout: Layout) -> bool:
    """Whether elements share memory, as those do that are broadcast, so that no copy may be brought there."""
    return overlaps_itself(layout.sizes, layout.strides, layout.dtype.itemsize)


def _empty(memory: Memory, operator: str, layout: Layout) -> Array:
    if layout.is_packed():
        return result_array(memory, operator, None, layout.dtype, layout.sizes)
    flat = result_array(memory, operator, None, np.dtype(np.uint8), (layout.bounds()[1],))
    return memory.view(layout, flat, 0)
