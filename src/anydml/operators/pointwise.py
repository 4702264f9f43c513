"""Pointwise operators as rows: a row says what is special about one, and its specification follows from it.

All tensors of a pointwise operator have the same sizes, and mostly the same data type; strides of 0 broadcast. Inputs
that the table calls optional may be absent. A row is data, so that a family of many operators loads fast: the desc's
class is made when the operator is first asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, make_dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from ..core.enums import OperatorType, TensorDataType
from ..core.strided_layout import Array, Layout
from .constraints import rounded, same, scaled, sizes_of, widened
from .independence import all_dimensions
from .schema import (
    FUSED,
    Choices,
    ConstraintFailure,
    LevelRequirement,
    OperatorDesc,
    OperatorSpec,
    SupportTable,
    no_level_requirements,
    support_table,
)

Constants: TypeAlias = tuple[str, tuple[float, ...]]
"""A native opcode and the constants of its instruction."""

NativeCode: TypeAlias = str | tuple[str | float, ...] | Callable[[Any, TensorDataType], Constants]
"""The native opcode, alone or with its constants, which are members' names or numbers; or what gives both for a desc
and the data type that it is computed in."""

SIGNED: Array = np.array([[[[-2.5, -1, 0], [0.5, 1, 4]]]], np.float32)
POSITIVE: Array = np.array([[[[0.25, 1, 2], [4, 9, 10]]]], np.float32)
_PAIR = np.array([[[[7, -7, 4], [1, 2, 9]]]], np.float32), np.array([[[[2, 2, -3], [4, 5, 3]]]], np.float32)
"""What small examples compute with."""

_TENSORS = {
    "InputTensor": "the elements.",
    "ATensor": "the elements a.",
    "BTensor": "the elements b.",
    "InputGradientTensor": "the gradients of the forward operator's results, of the same type and sizes.",
    "OutputGradientTensor": "the gradients of the elements, of the same type and sizes.",
    "OutputTensor": "the results, of the same type and sizes.",
}
_OF_TRUTH = "the truth values, 0 or 1, of the same sizes."
_SCALE_BIAS = "applied to each element first; none where absent."


def uniform_support(tensors: Sequence[str], text: str) -> SupportTable:
    """Support tables in which all tensors have the same row: a line for each feature level, newest first.

    A line says level, dimension counts and data types, with bars between: ``3.0 | 1 to 8 | FLOAT32, FLOAT16``. Types of
    the output that are others stand behind an arrow: ``FLOAT32 -> UINT8``.
    """
    lines = []
    for line in filter(None, map(str.strip, text.splitlines())):
        level, counts, types = (cell.strip() for cell in line.split("|"))
        of_inputs, arrow, of_output = types.partition(" -> ")
        lines.append(f"DML_FEATURE_LEVEL_{level.replace('.', '_')} and above")
        for tensor in tensors:
            is_output = tensor.startswith("Output")
            kind, own = ("Output", of_output if arrow else types) if is_output else ("Input", of_inputs)
            lines.append(f"{tensor} | {kind} | {counts} | {own}")
    return support_table("\n".join(lines))


def in_wider_type(function: Callable[..., Any]) -> Callable[..., Array]:
    """The reference of ``function(desc, *elements)``: computed in the next wider type, the first operand scaled where
    the desc has a ScaleBias, and rounded once."""

    def reference(desc: Any, x: Array, *others: Array) -> Array:
        with np.errstate(all="ignore"):
            return rounded(function(desc, scaled(desc, x), *map(widened, others)), x.dtype)

    return reference


def in_double(function: Callable[..., Any]) -> Callable[..., Array]:
    """The reference of ``function(desc, x)``: computed in double precision, x scaled where the desc has a ScaleBias,
    and rounded once; NaN stays NaN."""

    def reference(desc: Any, x: Array) -> Array:
        with np.errstate(all="ignore"):
            wide = scaled(desc, x).astype(np.float64)
            return rounded(np.where(np.isnan(wide), wide, function(desc, wide)), x.dtype)

    return reference


@dataclass(frozen=True, kw_only=True)
class Pointwise:
    """A row: what is special about one pointwise operator.

    Attributes:
        summary: what it computes, by the page.
        support: its tables; a line for each level where all tensors have the same, see :func:`uniform_support`.
        reference: ``reference(desc, *inputs)``, by NumPy.
        native: the opcode of the native engine's pointwise program; None where that needs code of its own.
        torch: ``torch(library, desc, *inputs)``, by PyTorch in double precision, the first input scaled; or the name of
            its function; None where `backends/torch/lowering/pointwise.py` has code of its own.
        torch_in_own_type: the types of which that function is right in the elements' own type, without a ScaleBias.
        torch_takes: what that function takes: doubles; numbers of at least the elements' precision, in their order; or
            the elements' bits, as integers of their size.
        typical: the values of members that the page calls typical defaults, and that they have where they are absent.
        defaults: of other members, in the operator's function alone.
        doctest: what the docstring of the operator's function shows.
        example: members of a small example; its inputs where they are not the usual ones.
        inputs: the input tensors, in header order.
        output: the output tensor.
        members: the other members with their meanings; a type other than FLOAT stands before, with a bar:
            ``enums.TensorDataType | the type of Min and Max.``
        scale_bias: whether the desc has the optional ScaleBias.
        fused: whether it may be a FusedActivation, and then has no tensors.
        same_types: groups of tensors that have one data type each; all tensors are one group where None.
        scalars: input tensors of one element, whose sizes are 1.
        truth: whether the results are truth values: "made" of any elements; or "kept", where the elements are some.
        in_place: whether the page says that it may run so.
        constraints: those beyond (C1) and (C2), with their sentences by label.
        check: what finds violations of them.
        level_requirements: what later feature levels have lifted.
    """

    summary: str
    support: str
    reference: Callable[..., Array]
    native: NativeCode | None = None
    torch: str | Callable[..., Any] | None = None
    torch_in_own_type: Literal["", "floats", "all"] = ""
    torch_takes: Literal["doubles", "order", "bits"] = "doubles"
    typical: Mapping[str, float] = field(default_factory=dict)
    defaults: Mapping[str, Any] = field(default_factory=dict)
    doctest: str = ""
    example: Mapping[str, Any] = field(default_factory=dict)
    inputs: tuple[str, ...] = ("InputTensor",)
    output: str = "OutputTensor"
    members: Mapping[str, str] = field(default_factory=dict)
    scale_bias: bool = False
    fused: bool = False
    same_types: tuple[tuple[str, ...], ...] | None = None
    scalars: tuple[str, ...] = ()
    truth: Literal["", "made", "kept"] = ""
    in_place: bool = True
    constraints: Mapping[str, str] = field(default_factory=dict)
    check: Callable[[Any], Iterator[ConstraintFailure]] | None = None
    level_requirements: Callable[[Any], Iterator[LevelRequirement]] = no_level_requirements

    @property
    def tensors(self) -> tuple[str, ...]:
        """All tensors, in header order."""
        return (*self.inputs, self.output)

    @property
    def groups(self) -> tuple[tuple[str, ...], ...]:
        """The groups of tensors that have one data type each."""
        return (self.tensors,) if self.same_types is None else self.same_types

    def group_of(self, tensor: str) -> tuple[str, ...]:
        """The tensors of the same data type, itself among them; none where it may have any."""
        return next((group for group in self.groups if tensor in group), ())

    @property
    def table(self) -> SupportTable:
        """The support tables, read."""
        is_whole = "DML_FEATURE_LEVEL_" in self.support
        return support_table(self.support) if is_whole else uniform_support(self.tensors, self.support)

    def specification(self, name: str) -> OperatorSpec:
        """The specification of the operator of that name, with a desc class of its own."""
        table = self.table
        first, *others = [each for each in self.inputs if each not in self.scalars]
        of_sizes = "(C2)" if self.groups else "(C1)"

        def constraints(desc: Any) -> Iterator[ConstraintFailure]:
            def there(tensors: Sequence[str]) -> list[str]:
                return [each for each in tensors if getattr(desc, each) is not None]

            for group in map(there, self.groups):
                yield from same(desc, "(C1)", "DataType", *group)
            yield from same(desc, of_sizes, "DimensionCount", *there(self.tensors))
            yield from same(desc, of_sizes, "Sizes", *there([first, *others]))
            if self.check is not None:
                yield from self.check(desc)

        def infer_sizes(desc: Any) -> dict[str, Choices]:
            return {self.output: sizes_of(getattr(desc, first))}

        return OperatorSpec(
            operator_type=OperatorType[name],
            desc=self._desc(name, table),
            support=table,
            constraints=constraints,
            infer_sizes=infer_sizes,
            sizes_rule=of_sizes,
            reference=self.reference,
            independent=all_dimensions,
            align=self._align,
            needs=self.level_requirements,
            in_place=self.in_place,
            pointwise=self,
            example={**dict(zip(self.inputs, _PAIR if others else (SIGNED,), strict=False)), **self.example},
        )

    def _align(self, desc: Any, inputs: Sequence[Layout | None]) -> Sequence[Layout | None]:
        """Broadcasts what has one element to the sizes of the others, for the engines."""
        sizes = next(layout.sizes for layout in inputs if layout is not None)
        return [
            Layout(layout.type, sizes, (0,) * len(sizes)) if layout is not None and name in self.scalars else layout
            for name, layout in zip(self.inputs, inputs, strict=True)
        ]

    def with_scalars_of_one(self, inputs: Sequence[Layout | None]) -> Sequence[Layout | None]:
        """The layouts that `_align` broadcast as they were, of one element."""
        return [
            Layout(layout.type, (1,) * len(layout.sizes), layout.strides) if layout and name in self.scalars else layout
            for name, layout in zip(self.inputs, inputs, strict=True)
        ]

    def _desc(self, name: str, table: SupportTable) -> type[OperatorDesc]:
        """The class that the header's members make: tensors, then ScaleBias, then the others."""
        optional = [tensor for tensor, row in table.newest.items() if "Optional" in row.kind]
        tensors = [
            (tensor, "OptionalTensor", field(default=None))
            if tensor in optional
            else (tensor, "Tensor", field(default=FUSED))
            if self.fused
            else (tensor, "Tensor")
            for tensor in self.tensors
        ]
        scale_bias = [("ScaleBias", "OptionalScaleBias", field(default=None))] if self.scale_bias else []
        others = [(member, *self._type_of(member)) for member in self.members if member not in self.tensors]
        made = make_dataclass(
            f"DML_{name}_OPERATOR_DESC",
            [*tensors, *scale_bias, *others],
            bases=(OperatorDesc,),
            frozen=True,
            slots=True,
            kw_only=True,
        )
        made.__module__ = "anydml"
        made.__doc__ = self._docstring(name, table)
        return made

    def _type_of(self, member: str) -> tuple[Any, ...]:
        """The header's word for a member's type, and the default of an optional one."""
        text = self.members[member]
        kind = text.partition(" | ")[0] if " | " in text else "FLOAT"
        if member in self.typical:
            return kind, field(default=self.typical[member])
        return (kind, field(default=None)) if kind.startswith("Optional") else (kind,)

    @property
    def annotations(self) -> dict[str, str]:
        """The types of members that are no FLOAT, in the words of functions' signatures."""
        kinds = {member: text.partition(" | ")[0] for member, text in self.members.items() if " | " in text}
        # A member of an enum may be given by its name.
        enums = {member: f"{kind.removeprefix('enums.')} | str" for member, kind in kinds.items() if "enums." in kind}
        return kinds | enums

    def meanings(self) -> dict[str, str]:
        """What the members mean, in header order."""
        texts = {member: text.rpartition(" | ")[2] for member, text in self.members.items()}
        own = {"ScaleBias": _SCALE_BIAS} if self.scale_bias else {}
        usual = {**_TENSORS, "OutputTensor": _OF_TRUTH} if self.truth == "made" else _TENSORS
        return {tensor: texts.pop(tensor, usual.get(tensor, "")) for tensor in self.tensors} | own | texts

    def _docstring(self, name: str, table: SupportTable) -> str:
        types = ", and ".join(f"{_sentence(group)} have the same DataType" for group in self.groups)
        sized = [each for each in self.tensors if each not in self.scalars]
        sizes = f"{_sentence(sized)} have the same DimensionCount and Sizes."
        if self.scalars:
            sizes = f"All tensors have the same DimensionCount; {_sentence(sized)} have the same Sizes."
        general = [f"{types}.", sizes] if types else [sizes]
        rules = {f"(C{i})": sentence for i, sentence in enumerate(general, 1)} | dict(self.constraints)
        sections = [
            f"{self.summary} {'May run' if self.in_place else 'Not'} in-place.",
            "Args:\n" + "\n".join(f"    {member}: {text}" for member, text in self.meanings().items()),
            "Constraints:\n" + "\n".join(f"    {label} {sentence}" for label, sentence in rules.items()),
            f"Source: the page of DML_{name}_OPERATOR_DESC; since feature level {table.introduced.number}.",
        ]
        return "\n\n".join(sections)


def _sentence(names: Sequence[str]) -> str:
    return f"{', '.join(names[:-1])} and {names[-1]}"
