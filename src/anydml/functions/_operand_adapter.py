"""Operand adapters: what a function's operands are, be they arrays, or expressions of a graph.

A class whose objects are operands of their own kind, such as :class:`anydml.Expression`, brings its adapter: its
attribute ``__anydml_adapter__(operand, name, out, device)`` makes one. For classes of other libraries, which have no
such attribute, `FOREIGN` names what does. All else are arrays.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from math import prod
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np

from ..core.enums import TensorDataType
from ..core.errors import kind_of, listing, refuse
from ..core.interop import as_operand, converted
from ..core.memory import Memory, restride, result_array
from ..core.packed_array import PackedArray, as_packed, bytes_for, unpacked_dtype
from ..core.strided_layout import Array
from ..core.truth_values import BOOL, UINT8, as_bytes, is_bool
from ..device import Device
from ._call import as_device, resolve, run
from ._messages import argument_label, row_of
from ._truth_values import TruthValues

Shape: TypeAlias = tuple[int, ...]


class OperandInfo(NamedTuple):
    """What is to be known of an operand before it is taken."""

    shape: Shape
    dtype: np.dtype[Any]


class OperandAdapter(Protocol):
    """Takes operands of one kind, and applies operators to them."""

    memory: Memory
    """Where its arrays lie."""

    def take(self, where: str, value: Any) -> Any:
        """What a caller gave for an argument, as an operand."""
        ...

    def shape(self, operand: Any) -> Shape: ...

    def dtype(self, operand: Any) -> np.dtype[Any]: ...

    def look(self, where: str, value: Any) -> OperandInfo:
        """What a caller gave, looked at without being taken."""
        ...

    def spread(self, operand: Any, shape: Shape) -> Any:
        """The operand, broadcast to a shape."""
        ...

    def wanted_sizes(self, rank: int) -> Shape:
        """The spatial sizes of what is to be written to, where that is known."""
        ...

    def apply(
        self, operands: Mapping[str, Any], options: Mapping[str, Any], sizes: Shape, like: Any, lent: int
    ) -> list[Any]:
        """The outputs of the operator, like `like`, without leading dimensions that were lent to the operands."""
        ...


def adapter_of(values: Iterable[Any], name: str, out: Any, device: Any) -> OperandAdapter | None:
    """The adapter that the first value brings which brings one; None where all are arrays."""
    for value in values:
        make = _maker_of(value)
        if make is not None:
            adapter: OperandAdapter = make(value, name, out, device)
            return adapter
    return None


FOREIGN = {"dask.array": ("Array", "anydml.frontends.dask")}
"""Modules of other libraries, their class of operands, and the front end, loaded on first use, whose `adapter.adapter`
takes such. By name, as front ends are above functions."""


def front_end_of(value: Any) -> str | None:
    """The front end of another library's operands; None of all others."""
    for library, (kind, front_end) in FOREIGN.items():
        module = sys.modules.get(library)
        if module is not None and isinstance(value, getattr(module, kind)):
            return front_end
    return None


def _maker_of(value: Any) -> Any:
    """What makes the adapter that a value brings; None of arrays."""
    made = getattr(type(value), "__anydml_adapter__", None)
    front_end = None if made is not None else front_end_of(value)
    return made if front_end is None else import_module(f"{front_end}.adapter").adapter


def brings_adapter(value: Any) -> bool:
    """Whether a value is no array."""
    return _maker_of(value) is not None


def adapter_for(name: str, values: Iterable[Any], out: Any, device: Any) -> OperandAdapter:
    """What takes these operands: of arrays alone, or of expressions with arrays among them."""
    return adapter_of(values, name, out, device) or ArrayAdapter(name, out, device)


def are_arrays(values: Iterable[Any]) -> bool:
    """Whether no value brings an adapter of its own."""
    return not any(map(brings_adapter, values))


def packed_operand(name: str, where: str, value: Any) -> PackedArray | None:
    """An operand of 4 bits, which few operators take; None of all others. Rules (A19) and (S3)."""
    packed = as_packed(value)
    if packed is not None and packed.data_type not in (row := row_of(name, where)).data_types:
        expected = listing(kind.name.lower() for kind in row.data_types)
        wide = unpacked_dtype(packed.data_type)
        remedy = f"Its unpack() gives {wide}" if packed is value else converted(wide)
        refuse(name, "(S3)", where, packed.data_type.name.lower(), expected, remedy, kind="type")
    return packed


def broadcast_strides(sizes: Shape, strides: Sequence[int], shape: Shape) -> list[int]:
    """Strides that broadcast a tensor to a shape, as NumPy does: 0 along what is repeated. Where the shape has the same
    sizes but for 1s, they go with their sizes, wherever those stand."""
    if [size for size in sizes if size != 1] == [size for size in shape if size != 1]:
        steps = iter([step for size, step in zip(sizes, strides, strict=True) if size != 1])
        return [0 if size == 1 else next(steps) for size in shape]
    missing = len(shape) - len(sizes)
    own = zip(sizes, strides, shape[missing:], strict=True)
    return [0] * missing + [step if size == wanted else 0 for size, step, wanted in own]


class ArrayAdapter:
    """Operands in the memory of a device."""

    def __init__(self, name: str, out: Any, device: Any) -> None:
        self.name = name
        self.out = out
        self.device: Device = as_device(device)
        self.memory = self.device.memory
        self._truth = TruthValues(name)

    def take(self, where: str, value: Any) -> Any:
        packed = packed_operand(self.name, where, value)
        if packed is None:
            return self.memory.to_device(self._imported(where, value))
        data = self.memory.to_device(self._imported(where, packed.data))
        return PackedArray(data, packed.data_type, packed.shape)

    def _imported(self, where: str, value: Any) -> Array:
        if self._truth.are_taken and isinstance(value, bool):
            value = np.bool_(value)
        array = self.memory.import_array(self.name, where, as_operand(self.name, where, value))
        return self._truth.taken(where, array)

    def shape(self, operand: Any) -> Shape:
        return tuple(operand.shape)

    def dtype(self, operand: Any) -> np.dtype[Any]:
        dtype: np.dtype[Any] = unpacked_dtype(operand.data_type) if isinstance(operand, PackedArray) else operand.dtype
        return dtype

    def look(self, where: str, value: Any) -> OperandInfo:
        packed = packed_operand(self.name, where, value)
        if packed is not None:
            return OperandInfo(packed.shape, unpacked_dtype(packed.data_type))
        array = self._imported(where, value)
        return OperandInfo(tuple(array.shape), array.dtype)

    def spread(self, operand: Any, shape: Shape) -> Any:
        if operand.shape == shape:
            return operand
        return restride(operand, shape, broadcast_strides(self.shape(operand), operand.strides, shape))

    def wanted_sizes(self, rank: int) -> Shape:
        if not isinstance(self.out, (list, tuple)) or not self.out or self.out[0] is None:
            return ()
        shape = self.memory.import_array(self.name, "out", self.out[0]).shape
        return tuple(shape[2:]) if len(shape) == rank else ()

    def apply(
        self, operands: Mapping[str, Any], options: Mapping[str, Any], sizes: Shape, like: Any, lent: int
    ) -> list[Any]:
        named = {argument_label(label): operand for label, operand in operands.items()}
        described = resolve(self.name, named, self.device, options, sizes)
        count = len(described.results)
        out = [None] * count if self.out is None else self.out
        if not isinstance(out, (list, tuple)) or len(out) != count:
            expected = f"a list of {count} arrays, one for each output"
            refuse(self.name, "(A4)", "out", kind_of(out), expected, kind="type")
        are_truth = self._truth.are_results(operands)
        results = []
        kinds = [tensor.DataType for _, tensor in described.spec.outputs(described.desc) if tensor is not None]
        for place, kind, (dtype, shape) in zip(out, kinds, described.results, strict=True):
            if kind.bits == 4:
                results.append(self._packed_result(place, kind, shape))
                continue
            is_library_s = are_truth and dtype == UINT8 and (place is None or is_bool(place))
            results.append(
                result_array(self.memory, self.name, place, BOOL if is_library_s else dtype, shape[lent:], like)
            )
        written = [as_bytes(result) for result in results]
        written = [self.spread(result, (1,) * lent + result.shape) for result in written] if lent else written
        read = [each.data if isinstance(each, PackedArray) else each for each in operands.values()]
        run(described, read, written, self.device)
        # What has no operand to be like is the device's own.
        sides = zip(out, kinds, results, described.results, strict=True)
        return [self._given(operands, like, place, kind, result, shape) for place, kind, result, (_, shape) in sides]

    def _packed_result(self, place: Any, kind: TensorDataType, shape: Shape) -> Array:
        """The bytes that a result of 4 bits is written to; rules (A4) and (A19)."""
        if place is not None and not isinstance(place, PackedArray):
            refuse(self.name, "(A19)", "out", kind_of(place), f"a PackedArray of {kind.name}, or None", kind="type")
        if place is not None and (place.data_type, place.shape) != (kind, shape):
            refuse(self.name, "(A4)", "out", repr(place), f"one of {kind.name} {shape}")
        data = None if place is None else place.data
        return result_array(self.memory, self.name, data, UINT8, (bytes_for(prod(shape)),))

    def _given(
        self, operands: Mapping[str, Any], like: Any, place: Any, kind: TensorDataType, result: Array, shape: Shape
    ) -> Any:
        model = result if like is None else like.data if isinstance(like, PackedArray) else like
        if kind.bits != 4:
            return self.memory.export(model, place, result)
        data = self.memory.export(model, None if place is None else place.data, result)
        return PackedArray(data, kind, shape) if place is None else place
