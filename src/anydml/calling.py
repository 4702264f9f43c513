"""How functions run an operator on arrays: validated, compiled once for each layout, errors in a function's words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from types import NoneType
from typing import Any, Literal, NamedTuple

import numpy as np

from .arrays import converted, has_data_type, refuse
from .binding import Bound, Slot, check_sharing
from .device import Device
from .dispatchables import Served
from .engines import Kernel
from .enums import FeatureLevel, TensorDataType
from .errors import Violation, error, listing
from .layout import DATA_TYPES, DTYPES, Array, Layout
from .memory import address
from .operators import spec, spec_of
from .schema import OperatorDesc, anything_goes
from .tensor import DML_BUFFER_TENSOR_DESC
from .validate import validate


class _Compiled(NamedTuple):
    served: Served
    desc: OperatorDesc
    inputs: list[Slot]
    output: Slot
    names: Mapping[str, str]
    """Of the operands, by the header's labels."""


def run(
    name: str, operands: Mapping[str, Array | None], output: Array, device: Device, attributes: Mapping[str, Any]
) -> Kernel | None:
    """Validates, compiles and runs an operator on arrays; compiled operators are kept.

    Returns what served, or None where there was nothing to compute.
    """
    named = tuple([(where, x if x is None else _layout(name, where, x)) for where, x in operands.items()])
    compiled = _compile(device, name, named, _layout(name, "out", output), tuple(attributes.items()))
    if compiled is None:
        return None
    inputs = list(operands.values())
    kernel, operator = compiled.served.kernel, spec(name)
    # To see that nothing is shared takes longer here than in the kernel's own language.
    quick = kernel.try_run if operator.check_values is anything_goes else None
    if quick is not None and quick(inputs, [output], operator.in_place):
        return kernel
    bound = [_bound(slot, array) for slot, array in zip(compiled.inputs, inputs, strict=True) if array is not None]
    place = _bound(compiled.output, output)
    shared = check_sharing(name, operator.in_place, bound, [place])
    if shared:
        raise error(shared)
    wrong = device.check_values(operator, compiled.desc, inputs)
    raise_any(_worded(each, compiled.names) for each in wrong)
    kernel.run(inputs, [output])
    return kernel


def _bound(slot: Slot, array: Array) -> Bound:
    start = address(array)
    low, high = Layout.of_array(array).bounds()
    return Bound(slot, array, start + low, start + high)


@lru_cache(maxsize=512)
def _compile(
    device: Device,
    name: str,
    operands: tuple[tuple[str, Layout | None], ...],
    output: Layout,
    attributes: tuple[tuple[str, Any], ...],
) -> _Compiled | None:
    """None where there is nothing to compute, though it is right."""
    operator = spec(name)
    is_empty = 0 in output.sizes

    def tensor(layout: Layout | None) -> DML_BUFFER_TENSOR_DESC | None:
        # Descs have no empty tensors; the rules on everything else are looked at as if there were one element.
        sizes = () if layout is None else tuple(max(size, 1) for size in layout.sizes) if is_empty else layout.sizes
        return None if layout is None else DML_BUFFER_TENSOR_DESC(DataType=layout.type, Sizes=sizes)

    inputs = [layout for _, layout in operands]
    rest = [tensor(layout) for layout in inputs]
    members: dict[str, Any] = dict(attributes)
    for member, row in operator.tensors.items():
        if "output" in row.kind.lower():
            members[member] = tensor(output)
        else:
            members[member] = rest if "array" in row.kind else rest.pop(0)
    desc = operator.desc(**members)
    labels = [label for label, _ in operator.inputs(desc)]
    names = dict(zip(labels, [where for where, _ in operands], strict=True))
    raise_any(violations_of(desc, device, names))
    if is_empty:
        return None
    aligned = operator.align(desc, inputs)
    seen = zip(names.values(), inputs, aligned, strict=True)
    slots = [Slot(where, None, layout, sees) for where, layout, sees in seen]
    result = Slot("out", None, output, output, True)
    return _Compiled(device.compile(operator, desc, slots, [result]), desc, slots, result, names)


@lru_cache
def _device_named(name: str) -> Device:
    return Device(name)


def as_device(device: Any) -> Device:
    if isinstance(device, Device):
        return device
    return _device_named("cpu" if device is None else device) if isinstance(device, (str, NoneType)) else Device(device)


def _layout(name: str, where: str, array: Array) -> Layout:
    data_type_of(name, where, array)
    return Layout.of_array(array)


def data_type_of(name: str, where: str, array: Array) -> TensorDataType:
    if not has_data_type(array):
        row = next(iter(spec(name).tensors.values()))
        expected = listing(DTYPES[data_type].name for data_type in row.data_types)
        refuse(name, "(S3)", where, str(array.dtype), expected, _conversion(array.dtype, row.data_types), "type")
    return DATA_TYPES[array.dtype]


def _conversion(found: np.dtype[Any], data_types: Sequence[TensorDataType]) -> str:
    """How to come to a data type that an operator takes."""
    floats = [d for d in (np.float32, np.float64) if DATA_TYPES[np.dtype(d)] in data_types]
    integers = [d for d in (np.int32, np.int64, np.uint32, np.uint64) if DATA_TYPES[np.dtype(d)] in data_types]
    fitting = floats if found.kind == "f" else [d for d in integers if np.can_cast(found, d)]
    return converted(np.dtype(fitting[0])) if fitting else ""


def violations_of(desc: OperatorDesc, device: Device, names: Mapping[str, str]) -> Iterator[Violation]:
    """What the validator says, in the function's words, with the remedies that an array has and a desc has not."""
    row = next(iter(spec_of(desc).tensors.values()))  # type: ignore[union-attr]
    said = set()
    for violation in validate(desc, device.feature_level, device.strict):
        worded = _worded(violation, names)
        # The result is like the operands: what is wrong with both is said once.
        if worded.where.startswith("out.") and (worded.rule, worded.found) in said:
            continue
        said.add((worded.rule, worded.found))
        remedy = worded.remedy
        if violation.rule == "(S3)" and not remedy:
            remedy = _conversion(DTYPES[TensorDataType[violation.found]], row.data_types)
        elif violation.rule == "(S2)" and not remedy and int(violation.found) < min(row.dimension_counts):
            missing = min(row.dimension_counts) - int(violation.found)
            remedy = f"x[{', '.join(['np.newaxis'] * missing)}] adds {'a dimension' if missing == 1 else 'them'}"
        # NumPy and PyTorch raise TypeError for a data type that they don't take.
        kind: Literal["value", "type"] = "type" if violation.rule == "(S3)" else "value"
        # Who calls a function has mostly chosen no level.
        level = None if device.feature_level == max(FeatureLevel) else worded.feature_level
        yield replace(worded, remedy=remedy, kind=kind, feature_level=level)


_HEADER_WORD = re.compile(r"\b[A-Z][A-Za-z0-9]*\b")
_WORDS = {"OutputTensor": "out", "DataType": "dtype", "DimensionCount": "ndim", "Sizes": "shape"} | {
    data_type.name: data_type.name.lower() for data_type in TensorDataType
}
"""How NumPy calls what the header names otherwise."""


def _worded(violation: Violation, names: Mapping[str, str]) -> Violation:
    """A violation in the function's words: ``x.shape`` for InputTensor.Sizes, ``window_size[0]`` for WindowSize[0]."""
    options = spec(violation.operator).members

    def word(match: re.Match[str]) -> str:
        name = match[0]
        option = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower() if name in options else name
        return names.get(name) or _WORDS.get(name, option)

    def worded(text: str) -> str:
        return _HEADER_WORD.sub(word, text)

    # Labels such as InputTensors[0] are looked up whole.
    member, dot, rest = violation.where.partition(".")
    where = f"{names[member] if member in names else worded(member)}{dot}{worded(rest)}"
    found, expected, remedy = map(worded, (violation.found, violation.expected, violation.remedy))
    return replace(violation, where=where, found=found, expected=expected, remedy=remedy)


def raise_any(violations: Iterable[Violation]) -> None:
    found = list(violations)
    if found:
        raise error(found)
