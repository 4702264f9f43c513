"""How functions run an operator on arrays: described, validated and compiled once for each layout."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from types import NoneType
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ..core.enums import TensorDataType
from ..core.errors import DMLError, Violation, error, listing, refuse
from ..core.interop import has_data_type
from ..core.memory import address, no_room
from ..core.packed_array import PackedArray
from ..core.strided_layout import DATA_TYPES, DTYPES, Array, Layout
from ..core.tensor_desc import DML_BUFFER_TENSOR_DESC
from ..device import Device
from ..operators import spec
from ..operators.schema import OperatorDesc, OperatorSpec, no_value_checks
from ..operators.shape_inference import complete, inferred_sizes, is_input
from ..operators.validate import validate
from ..runtime.binding import Bound, check_sharing
from ..runtime.context import select_kernel, wrong_values
from ..runtime.kernel_selection import KernelSelection
from ..runtime.slots import Slot
from ._call_cache import Ran, exact, note
from ._messages import conversion, in_function_terms, row_of

Shapes: TypeAlias = tuple[tuple[str, tuple[TensorDataType, tuple[int, ...]] | None], ...]
"""Data types and sizes of operands, by their names; None for those left out."""


@dataclass(frozen=True, slots=True, eq=False)
class ResolvedCall:
    """An operator on operands of given types and sizes, which passed the rules."""

    spec: OperatorSpec
    desc: OperatorDesc
    """Where an operand is empty, as if it had one element: there are no empty tensors."""
    names: Mapping[str, str]
    """Of the operands, by the header's labels."""
    results: tuple[tuple[np.dtype[Any], tuple[int, ...]], ...]
    """Types and shapes of the outputs that there are."""
    is_empty: bool


class _Compiled(NamedTuple):
    served: KernelSelection
    inputs: list[Slot]
    outputs: list[Slot]


_MOST_KEPT = 512
_DESCRIBED: dict[Any, ResolvedCall] = {}


def resolve(
    name: str,
    operands: Mapping[str, Array | None],
    device: Device,
    members: Mapping[str, Any],
    last_sizes: tuple[int, ...] = (),
) -> ResolvedCall:
    """What an operator makes of operands, in header order; what was right before is kept.

    Args:
        name: the operator.
        operands: by what messages call them.
        device: where it will run.
        members: all others; outputs as :func:`anydml.operators.shape_inference.complete` has them.
        last_sizes: those of the last dimensions of outputs, where several are right.
    """
    shapes = tuple(
        [(w, None if x is None else (data_type_of(name, w, x), tuple(x.shape))) for w, x in operands.items()]
    )
    key = device, name, shapes, tuple([(member, exact(value)) for member, value in members.items()]), last_sizes
    try:
        found = _DESCRIBED.get(key)
    except TypeError:  # what can't be hashed is refused
        return _resolve(name, shapes, device, members, last_sizes)
    if found is None:
        found = _resolve(name, shapes, device, members, last_sizes)
        if len(_DESCRIBED) >= _MOST_KEPT:
            _DESCRIBED.clear()
        _DESCRIBED[key] = found
    return found


def _resolve(
    name: str, shapes: Shapes, device: Device, members: Mapping[str, Any], last_sizes: tuple[int, ...]
) -> ResolvedCall:
    found = spec(name)
    labels: list[str] = []
    for member, row in found.tensors.items():
        if is_input(found, member):
            count = len(shapes) - len(labels)
            labels += [f"{member}[{i}]" for i in range(count)] if "array" in row.kind else [member]
    names = dict(zip(labels, [where for where, _ in shapes], strict=True))
    try:
        desc = complete(found, _tensors(found, shapes, members, 1), device.feature_level, last_sizes)
        raise_any(validate(desc, device.feature_level, device.strict))
        true = _tensors(found, shapes, members, 0)
        true = {member: each for member, each in true.items() if not isinstance(each, TensorDataType)}
        is_empty = any(0 in tensor.Sizes for tensor in _every(true.values()))
        sizes = _true_sizes(found, replace(desc, **true), true, last_sizes) if is_empty else {}
        results = []
        for label, tensor in found.outputs(desc):
            if tensor is not None:
                results.append((Layout.of_desc(tensor).dtype, tuple(sizes.get(label, tensor.Sizes))))
        if is_empty and not all(0 in shape for _, shape in results):
            # Something from nothing: there is no such tensor.
            raise_any(validate(replace(desc, **true), device.feature_level, device.strict))
    except DMLError as problem:
        raise error(in_function_terms(problem.violations, device, names)) from None
    return ResolvedCall(found, desc, names, tuple(results), is_empty)


def _tensors(found: OperatorSpec, shapes: Shapes, members: Mapping[str, Any], least: int) -> dict[str, Any]:
    """The members with the operands as tensors, whose sizes are at least so large."""

    def tensor(data_type: TensorDataType, sizes: Sequence[int]) -> DML_BUFFER_TENSOR_DESC:
        return DML_BUFFER_TENSOR_DESC(DataType=data_type, Sizes=[max(size, least) for size in sizes])

    def resized(given: Any) -> Any:
        if isinstance(given, tuple):
            return tuple(map(resized, given))
        return tensor(given.DataType, given.Sizes) if isinstance(given, DML_BUFFER_TENSOR_DESC) else given

    rest = [None if shape is None else tensor(*shape) for _, shape in shapes]
    made = {member: resized(value) for member, value in members.items()}
    for member, row in found.tensors.items():
        if is_input(found, member):
            made[member] = rest if "array" in row.kind else rest.pop(0)
    return made


def _every(values: Iterable[Any]) -> Iterator[DML_BUFFER_TENSOR_DESC]:
    for value in values:
        many = value if isinstance(value, (list, tuple)) else [value]
        yield from (each for each in many if isinstance(each, DML_BUFFER_TENSOR_DESC))


def _true_sizes(
    found: OperatorSpec, given: OperatorDesc, true: Mapping[str, Any], last_sizes: tuple[int, ...]
) -> dict[str, Sequence[int]]:
    """Of outputs, by label, where an operand is empty."""
    outputs = [(label, tensor) for label, tensor in found.outputs(given) if label.partition("[")[0] in true]
    whole = {label: tensor.Sizes for label, tensor in outputs if tensor is not None}
    return {**inferred_sizes(found, given, last_sizes), **whole}


def run(described: ResolvedCall, operands: Sequence[Array | None], outputs: Sequence[Array], device: Device) -> None:
    """Compiles and runs an operator on arrays; compiled operators are kept.

    Args:
        described: the operator, on operands like these.
        operands: in header order, None for those left out.
        outputs: what to write to, of the described results.
        device: where the arrays lie.
    """
    if described.is_empty:
        return
    inputs, operator = list(operands), described.spec
    layouts = tuple([None if x is None else Layout.of_array(x) for x in inputs])
    compiled = _compile(device, described, layouts, tuple([Layout.of_array(y) for y in outputs]))
    kernel = compiled.served.kernel
    places = iter(outputs)
    written = [None if slot.layout is None else next(places) for slot in compiled.outputs]
    # To see that nothing is shared takes longer here than in the kernel's own language.
    quick = kernel.try_run if kernel.checks_values or operator.check_values is no_value_checks else None
    try:
        if quick is None or not quick(inputs, written, operator.in_place):
            _run_checked(described, compiled, inputs, written, device)
    except MemoryError as problem:
        raise problem if isinstance(problem, DMLError) else no_room(operator.name, [*inputs, *written]) from None
    note(Ran(operator, described.desc, kernel, device, tuple(described.names.values()), inputs, written))


def _run_checked(
    described: ResolvedCall,
    compiled: _Compiled,
    inputs: Sequence[Array | None],
    written: Sequence[Array | None],
    device: Device,
) -> None:
    """Runs a kernel where the rules on sharing and on values hold."""
    operator = described.spec
    bound = [_bound(slot, array) for slot, array in zip(compiled.inputs, inputs, strict=True) if array is not None]
    targets = [_bound(slot, array) for slot, array in zip(compiled.outputs, written, strict=True) if array is not None]
    raise_any(check_sharing(operator.name, operator.in_place, bound, targets))
    wrong = wrong_values(device, operator, described.desc, inputs)
    raise_any(in_function_terms(wrong, device, described.names))
    compiled.served.kernel.run(inputs, written)


def _bound(slot: Slot, array: Array) -> Bound:
    start = address(array)
    low, high = Layout.of_array(array).bounds()
    return Bound(slot, array, start + low, start + high)


@lru_cache(maxsize=_MOST_KEPT)
def _compile(
    device: Device, described: ResolvedCall, operands: tuple[Layout | None, ...], outputs: tuple[Layout, ...]
) -> _Compiled:
    operator, desc = described.spec, described.desc
    aligned = operator.align(desc, operands)
    seen = zip(described.names.values(), operands, aligned, strict=True)
    slots = [Slot(where, None, layout, sees) for where, layout, sees in seen]
    many, places = len(outputs) > 1, iter(outputs)
    there = [None if tensor is None else next(places) for _, tensor in operator.outputs(desc)]
    results = [Slot(f"out[{i}]" if many else "out", None, layout, layout, True) for i, layout in enumerate(there)]
    return _Compiled(select_kernel(device, operator, desc, slots, results), slots, results)


@lru_cache
def _device_named(name: str) -> Device:
    return Device(name)


def as_device(device: Any) -> Device:
    if isinstance(device, Device):
        return device
    return _device_named("cpu" if device is None else device) if isinstance(device, (str, NoneType)) else Device(device)


def data_type_of(name: str, where: str, array: Any) -> TensorDataType:
    """Of what has a dtype, or is packed."""
    if isinstance(array, PackedArray):
        return array.data_type
    if not has_data_type(array):
        row = row_of(name, where)
        expected = listing(DTYPES[data_type].name for data_type in row.data_types)
        refuse(name, "(S3)", where, str(array.dtype), expected, conversion(array.dtype, row.data_types), "type")
    return DATA_TYPES[array.dtype]


def raise_any(violations: Iterable[Violation]) -> None:
    found = list(violations)
    if found:
        raise error(found)
