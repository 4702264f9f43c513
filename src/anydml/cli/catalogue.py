"""What ``anydml ops --json`` prints: each operator with its data types, and the engines that serve each of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, replace
from functools import cached_property
from itertools import product
from math import prod
from typing import Any

from ..core.enums import TensorDataType
from ..core.strided_layout import DTYPES
from ..core.tensor_desc import DML_BUFFER_TENSOR_DESC
from ..device import Device
from ..draw import EXAMPLES
from ..operators import OPERATORS, Trait
from ..operators.schema import OperatorDesc, OperatorSpec
from ..operators.validate import validate

NATIVE = "native"
_NAMES = {"cpu": NATIVE}
"""Of engines: the first of the device "cpu", whose name it has, is the compiled module."""
_MOST = 4096
"""Descs that are tried of an operator for one type of one tensor."""

Types = dict[str, TensorDataType]
"""Of all that has one in a desc, by label: tensors, those of an array each, and members that are types."""


def catalogue(operators: Iterable[OperatorSpec]) -> list[dict[str, Any]]:
    """A dictionary for each operator."""
    return [_entry(found) for found in operators]


def _entry(found: OperatorSpec) -> dict[str, Any]:
    op = OPERATORS[found.name]
    return {
        "name": found.name,
        "value": found.operator_type.value,
        "family": op.family,
        "function": op.function,
        "since": found.support.introduced.number,
        "traits": [trait.name.lower() for trait in Trait if trait in op.traits and trait.name],
        "data_types": {name: [each.name for each in row.data_types] for name, row in found.tensors.items()},
        "engines": _Example(found).engines(),
    }


class _Example:
    """An operator's small example, of other types."""

    def __init__(self, found: OperatorSpec) -> None:
        self.found = found
        self.desc, _ = EXAMPLES[found.name]
        self.device = Device("cpu")

    def engines(self) -> dict[str, dict[str, list[str]]]:
        """For each tensor of the example and each type that the tensor may have, the engines that serve it then: one,
        or several where that depends on the types of the other tensors."""
        served: dict[tuple[str, TensorDataType], dict[str, None]] = {}

        def note(types: Types, engine: str) -> None:
            for label, data_type in types.items():
                served.setdefault((label.partition("[")[0], data_type), {})[engine] = None

        for types, engine in self._served([self.desc], ""):
            note(types, engine)
        found: dict[str, dict[str, list[str]]] = {}
        for name, row in self.found.tensors.items():
            label = next((each for each in self._types if each.partition("[")[0] == name), None)
            if label is None:
                continue  # the example leaves it out
            for data_type in row.data_types:
                if (name, data_type) not in served:
                    for types, engine in self._served(self._variants, label, data_type):
                        note(types, engine)
            found[name] = {each.name: [*served[name, each]] for each in row.data_types if (name, each) in served}
        return found

    def _served(
        self, descs: list[OperatorDesc], label: str, wanted: TensorDataType | None = None
    ) -> Iterator[tuple[Types, str]]:
        """All types for which the descs are right, and the engine that serves each; with a label only those where that
        tensor has the wanted type, by the first desc that any are right for."""
        for desc in descs:
            is_right = False
            for types in self._choices(label, wanted):
                given = _with_types(desc, types)
                if not [*validate(given, self.device.feature_level, self.device.strict)]:
                    is_right = True
                    compiled = self.device.compile_operator(self.device.create_operator(given))
                    yield types, _NAMES.get(compiled.engine, compiled.engine)
            if is_right:
                return

    def _choices(self, label: str, wanted: TensorDataType | None) -> Iterator[Types]:
        """What has one type in the example has one, as far as it may; where it may not, it stays as it is. With a
        label each tensor has any type, if they are not too many."""
        groups: dict[Any, list[str]] = {}
        for each, data_type in self._types.items():
            groups.setdefault(data_type, []).append(each)
        alone = [[each] for each in self._types]
        if label and prod(len(self._options[each]) for (each,) in alone if each != label) <= _MOST:
            parts = alone
        else:
            parts = list(groups.values())
        options = [dict.fromkeys(one for each in part for one in self._options[each]) for part in parts]
        for choice in product(*options):
            types = dict(self._types)
            for part, data_type in zip(parts, choice, strict=True):
                types |= {each: data_type for each in part if data_type in self._options[each]}
            if wanted is None or types[label] == wanted:
                yield types

    @cached_property
    def _types(self) -> Types:
        return _types_of(self.desc)

    @cached_property
    def _options(self) -> Mapping[str, tuple[TensorDataType, ...]]:
        """What each may be by the table; a member that is a type anything."""
        tensors = self.found.tensors
        every = tuple(DTYPES)
        return {
            label: tensors[name].data_types if (name := label.partition("[")[0]) in tensors else every
            for label in self._types
        }

    @cached_property
    def _variants(self) -> list[OperatorDesc]:
        """The example, also with each value of the member that its tables differ by."""
        member, tables = self.found.support_by or ("", {})
        others: list[Any] = [replace(self.desc, **{member: value}) for value in tables]
        return [self.desc, *others]


def _types_of(desc: OperatorDesc) -> Types:
    types: Types = {}
    for name, value in [(each.name, getattr(desc, each.name)) for each in fields(desc)]:
        if isinstance(value, TensorDataType):
            types[name] = value
        elif isinstance(value, DML_BUFFER_TENSOR_DESC):
            types[name] = value.DataType
        elif isinstance(value, (tuple, list)):
            tensors = [each for each in value if isinstance(each, DML_BUFFER_TENSOR_DESC)]
            types |= {f"{name}[{i}]": each.DataType for i, each in enumerate(tensors)}
    return types


def _with_types(desc: OperatorDesc, types: Types) -> OperatorDesc:
    """A desc of these types, and with numbers that they have."""

    def tensor(label: str, value: DML_BUFFER_TENSOR_DESC) -> DML_BUFFER_TENSOR_DESC:
        return DML_BUFFER_TENSOR_DESC(
            DataType=types[label], Flags=value.Flags, Sizes=value.Sizes, Strides=value.Strides
        )

    members: dict[str, Any] = {}
    for name, value in [(each.name, getattr(desc, each.name)) for each in fields(desc)]:
        if name in types:
            members[name] = tensor(name, value) if isinstance(value, DML_BUFFER_TENSOR_DESC) else types[name]
        elif f"{name}[0]" in types:
            members[name] = [tensor(f"{name}[{i}]", each) for i, each in enumerate(value)]
    changed: Any = replace(desc, **members)
    kind = DTYPES[changed.scalar_type].kind if changed.scalar_type in DTYPES else "f"
    scalars = [each.name for each in fields(desc) if each.type == "SCALAR"]
    typed: OperatorDesc = replace(changed, **{name: _in_kind(getattr(desc, name), kind) for name in scalars})
    return typed


def _in_kind(value: Any, kind: str) -> Any:
    """A number as floats, integers or integers without a sign have it."""
    if not isinstance(value, (int, float)) or kind == "f":
        return value
    return max(int(value), 0) if kind == "u" else int(value)
