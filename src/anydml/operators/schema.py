"""What an operator's specification is made of: its desc, its support table, its rules, its reference.

A file in ``operators/`` puts one :class:`OperatorSpec` together for each operator; everything else in the package
reads it from there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, TypeAlias

from ..core.enums import FeatureLevel, OperatorType, TensorDataType, parse
from ..core.strided_layout import Array, Layout
from ..core.tensor_desc import (
    DML_BUFFER_TENSOR_DESC,
    DML_SCALAR_UNION,
    DML_SCALE_BIAS,
    DML_SIZE_2D,
    Struct,
    plain,
    single,
)

# The header's words for the types of members. `validate.py` checks a member by the annotation that its class gives it.
Tensor: TypeAlias = DML_BUFFER_TENSOR_DESC
Tensors: TypeAlias = Sequence[DML_BUFFER_TENSOR_DESC]
OptionalTensor: TypeAlias = DML_BUFFER_TENSOR_DESC | None
UINT: TypeAlias = int
UINTs: TypeAlias = Sequence[int]
INT: TypeAlias = int
INTs: TypeAlias = Sequence[int]
BOOL: TypeAlias = bool
FLOAT: TypeAlias = float
FLOATs: TypeAlias = Sequence[float]
SCALAR: TypeAlias = int | float | DML_SCALAR_UNION
OptionalScaleBias: TypeAlias = DML_SCALE_BIAS | None
Size2D: TypeAlias = DML_SIZE_2D
OptionalActivation: TypeAlias = "OperatorDesc | None"
Activations: TypeAlias = Sequence["OperatorDesc"]
Count: TypeAlias = int | None


class OperatorDesc(Struct):
    """The base of every ``DML_..._OPERATOR_DESC``: a passive struct with the header's members.

    Members named in `counts` are derived from the arrays that they count; where they are given, they are checked. A
    DML_SCALAR_UNION is replaced by its number of the type that the desc's only DML_TENSOR_DATA_TYPE says.
    """

    __slots__: tuple[str, ...] = ()
    counts: ClassVar[Mapping[str, tuple[str, ...]]] = {}

    def __post_init__(self) -> None:
        for name, member in self.__dataclass_fields__.items():
            value = getattr(self, name)
            simple = plain(value)
            if isinstance(simple, DML_SCALAR_UNION) and member.type == "SCALAR":
                number = simple.value_of(self.scalar_type)
                simple = simple if number is None else number
            elif member.type == "FLOAT":
                simple = single(simple)
            elif member.type == "FLOATs" and isinstance(simple, tuple):
                simple = tuple([single(each) for each in simple])
            if simple is not value:
                object.__setattr__(self, name, simple)
        for count, arrays in self.counts.items():
            array = getattr(self, arrays[0])
            if getattr(self, count) is None and isinstance(array, tuple):
                object.__setattr__(self, count, len(array))

    @property
    def scalar_type(self) -> Any:
        """The data type of the desc's SCALARs."""
        members = self.__dataclass_fields__.items()
        return next((getattr(self, name) for name, each in members if each.type == "enums.TensorDataType"), None)


class SupportRow(NamedTuple):
    """A line of a support table: what a tensor may be from a feature level on."""

    kind: str
    """As the page has it: Input, Optional input, Input array, Output, Optional output, Output array."""
    dimension_counts: tuple[int, ...]
    data_types: tuple[TensorDataType, ...]


class SupportTable(NamedTuple):
    """An operator's support tables, newest first."""

    levels: tuple[tuple[FeatureLevel, dict[str, SupportRow]], ...]

    @property
    def introduced(self) -> FeatureLevel:
        """The first level that has the operator."""
        return self.levels[-1][0]

    @property
    def newest(self) -> dict[str, SupportRow]:
        return self.levels[0][1]

    def at(self, feature_level: FeatureLevel) -> dict[str, SupportRow] | None:
        """The rows in force at a level; None where the operator is not there yet."""
        return next((rows for since, rows in self.levels if since <= feature_level), None)


def any_of(tables: Collection[SupportTable]) -> SupportTable:
    """What at least one of several tables has, level by level."""
    levels = sorted({level for table in tables for level, _ in table.levels}, reverse=True)
    merged = []
    for level in levels:
        every = [rows for table in tables if (rows := table.at(level))]
        merged.append((level, {tensor: _merged([rows[tensor] for rows in every]) for tensor in every[0]}))
    return SupportTable(tuple(merged))


def _merged(rows: Sequence[SupportRow]) -> SupportRow:
    counts = sorted({count for row in rows for count in row.dimension_counts})
    types = dict.fromkeys(data_type for row in rows for data_type in row.data_types)
    return SupportRow(rows[0].kind, tuple(counts), tuple(types))


def support_table(text: str) -> SupportTable:
    """Reads support tables as the documentation writes them.

    A line ``DML_FEATURE_LEVEL_5_0 and above`` opens a table, newest first; each line in it says tensor, kind,
    dimension counts (``4``, ``4 to 5``) and data types, with bars between.
    """
    levels: list[tuple[FeatureLevel, dict[str, SupportRow]]] = []
    for line in filter(None, map(str.strip, text.splitlines())):
        if line.startswith("DML_FEATURE_LEVEL_"):
            level = parse(FeatureLevel, line.split()[0])
            assert level is not None and (not levels or level < levels[-1][0]), line
            levels.append((level, {}))
        else:
            tensor, kind, counts, types = (cell.strip() for cell in line.split("|"))
            first, *last = map(int, re.findall(r"\d+", counts))
            dimension_counts = tuple(range(first, (last or [first])[0] + 1))
            levels[-1][1][tensor] = SupportRow(
                kind, dimension_counts, tuple(TensorDataType[name.strip()] for name in types.split(","))
            )
    return SupportTable(tuple(levels))


class ConstraintFailure(NamedTuple):
    """A constraint that a desc, or a value, breaks; `validate.py` makes a Violation of it."""

    rule: str
    where: str
    found: str
    expected: str
    remedy: str = ""


class LevelRequirement(NamedTuple):
    """What a desc asks of an operator that only a later feature level than the operator's first has."""

    level: FeatureLevel
    where: str
    found: str
    expected: str
    """Below that level."""


FUSED: Any = None
"""What stands for the tensors of an activation that is fused into another operator."""

Choices: TypeAlias = tuple[tuple[int, ...] | range, ...]
"""For each dimension the sizes that are right there: a tuple has the documented one first, the only one that a strict
device takes; those of a range are equally right."""

Independence: TypeAlias = Mapping[str, Sequence[int | None]]
"""Which dimensions of which tensor are independent: by the label of each tensor that a desc has, for each of its
dimensions the number of the output's dimension that it lines up with, or None.

The operator may be cut along what lines up with one dimension of the output. On a slice of all tensors there, the same
from index to index, and on all of those that do not line up with it, it gives that slice of the output: to the bit, but
for what its docstring leaves open, as the order of a product's terms. The desc is then the same but for sizes: those of
the tensors, and members that repeat them. None is said of what is needed whole, and of a dimension of size 1 that
broadcasts. Where there are several outputs, they are cut along the same dimension."""


AttributeValues: TypeAlias = tuple[Any, ...]
"""The values of a member: signed integers of 64 bits, or floats, or fused activations, each by its operator's name and
its own attributes. A scalar is one value, a ScaleBias or a Size2D its two members."""


def _attributes(desc: OperatorDesc, names: Iterable[str]) -> dict[str, AttributeValues]:
    values = {name: getattr(desc, name) for name in names}
    return {name: _attribute_values(value) for name, value in values.items() if value is not None}


def _attribute_values(value: Any) -> AttributeValues:
    if isinstance(value, tuple):
        return tuple([each for item in value for each in _attribute_values(item)])
    if isinstance(value, float):
        return (value,)
    if isinstance(value, OperatorDesc):
        name = type(value).__name__.removeprefix("DML_").removesuffix("_OPERATOR_DESC")
        return ((name, _attributes(value, [each.name for each in fields(value)])),)
    if isinstance(value, (DML_SCALE_BIAS, DML_SIZE_2D)):
        return tuple([getattr(value, each.name) for each in fields(value)])
    return ((int(value) + 2**63) % 2**64 - 2**63,)


def labelled(desc: OperatorDesc, names: Iterable[str]) -> list[tuple[str, Any]]:
    """The values of some members by label, arrays taken apart: ``InputTensors[0]``."""
    found: list[tuple[str, Any]] = []
    for name in names:
        value = getattr(desc, name)
        if isinstance(value, tuple):
            found += [(f"{name}[{i}]", item) for i, item in enumerate(value)]
        else:
            found.append((name, value))
    return found


def no_value_checks(desc: Any, inputs: Sequence[Array | None]) -> Iterator[ConstraintFailure]:
    """No demands on values."""
    return iter(())


def no_value_limits(desc: Any) -> Mapping[str, tuple[float, float]]:
    """No demands on values."""
    return {}


def no_level_requirements(desc: Any) -> Iterator[LevelRequirement]:
    """No demands on the feature level."""
    return iter(())


def _all_of_each(desc: Any, outputs: Sequence[Any]) -> Sequence[Any]:
    return [...] * len(outputs)


def _as_they_are(desc: Any, inputs: Sequence[Layout | None]) -> Sequence[Layout | None]:
    return inputs


@dataclass(frozen=True, kw_only=True)
class OperatorSpec:
    """An operator: everything that its page says, executable."""

    operator_type: OperatorType
    desc: type[OperatorDesc]
    support: SupportTable
    constraints: Callable[[Any], Iterator[ConstraintFailure]]
    """The labelled constraints on a desc whose members are well formed, but for the sizes of its outputs."""
    infer_sizes: Callable[[Any], Mapping[str, Choices]]
    """The sizes of the outputs, by member; empty where a broken constraint leaves them open."""
    sizes_rule: str
    """The label of the constraint that outputs have the inferred sizes; "" where they may have others."""
    reference: Callable[..., Array | tuple[Array, ...]]
    """``reference(desc, *inputs)``: the output, by NumPy, in the plainest way that keeps the promises; where there are
    several, a tuple of all, of those that are left out too."""
    independent: Callable[[Any], Independence]
    """Which dimensions of which tensor are independent, for a desc without violations."""
    check_values: Callable[[Any, Sequence[Array | None]], Iterator[ConstraintFailure]] = no_value_checks
    """What inputs must hold, looked at before a dispatch writes anything."""
    value_limits: Callable[[Any], Mapping[str, tuple[float, float]]] = no_value_limits
    """The same as the least and the largest value of an input, by member. Of a function that was called so before it is
    all that is looked at."""
    written: Callable[[Any, Sequence[Any]], Sequence[Any]] = _all_of_each
    """What is written of each output, an index of its elements, by what the outputs hold. All else stays as it was."""
    align: Callable[[Any, Sequence[Layout | None]], Sequence[Layout | None]] = _as_they_are
    """Gives inputs of lower rank the place of their dimensions among those of the others, for the engines."""
    needs: Callable[[Any], Iterator[LevelRequirement]] = no_level_requirements
    """What later feature levels have lifted."""
    support_by: tuple[str, Mapping[Any, SupportTable]] | None = None
    """Of an operator whose tables differ by the value of a member: the member, and the table for each of its values.
    `support` then has what any of them has."""
    example: Mapping[str, Any] = field(default_factory=dict)
    """The members of a small example: arrays for its inputs; outputs as :func:`shape_inference.complete` has them. An
    activation is its operator's name with its members."""
    in_place: bool = False
    """Whether the output may be bound to the input's memory."""
    pointwise: Any = None
    """The row of a pointwise operator, see ``pointwise.py``; None for all others."""

    @property
    def name(self) -> str:
        """The header's name without its prefix: ``JOIN``."""
        return self.operator_type.name

    @cached_property
    def members(self) -> dict[str, str]:
        """The names of the desc's members, in header order, and the names of their types."""
        return {member.name: str(member.type) for member in fields(self.desc)}

    @cached_property
    def tensors(self) -> dict[str, SupportRow]:
        """The tensor members in header order, with what the newest table says of them."""
        return {name: self.support.newest[name] for name in self.members if name in self.support.newest}

    def support_of(self, desc: OperatorDesc) -> SupportTable:
        """The table that holds for a desc."""
        member, tables = self.support_by or ("", {})
        return next((table for value, table in tables.items() if value is getattr(desc, member)), self.support)

    @cached_property
    def attribute_names(self) -> tuple[str, ...]:
        """The members that are neither tensors nor counts, in header order."""
        return tuple(name for name in self.members if name not in self.tensors and name not in self.desc.counts)

    def attributes(self, desc: OperatorDesc) -> dict[str, AttributeValues]:
        """The values of those members for a kernel, by name in header order; optional ones that are absent are left
        out."""
        return _attributes(desc, self.attribute_names)

    def inputs(self, desc: OperatorDesc) -> list[tuple[str, Tensor | None]]:
        """Labels and descs of the inputs in header order, arrays taken apart: ``InputTensors[0]``."""
        return labelled(desc, self._roles["input"])

    def outputs(self, desc: OperatorDesc) -> list[tuple[str, Tensor | None]]:
        """Likewise of the outputs."""
        return labelled(desc, self._roles["output"])

    @cached_property
    def _roles(self) -> dict[str, list[str]]:
        roles: dict[str, list[str]] = {"input": [], "output": []}
        for name, row in self.tensors.items():
            roles["output" if "output" in row.kind.lower() else "input"].append(name)
        return roles
