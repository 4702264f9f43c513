"""What a model is made of: dispatchables with their bindings, commands, and the violations of its rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

from ...core.enums import PREFIXES, ExecutionFlags, HResult, OperatorType
from ...core.enums import parse as parse_enum
from ...core.errors import DMLError, Violation, error, listing, violation
from ...core.strided_layout import Array
from ...operators import ANY_OPERATOR, OPERATORS, spec
from ...operators.header_names import OTHER_NAMES
from ...operators.schema import OperatorDesc, OperatorSpec
from ...runtime.binding import DML_BUFFER_BINDING
from .buffers import Buffer, describe
from .limits import format_size

if TYPE_CHECKING:
    pass


@dataclass(frozen=True, slots=True)
class Binding:
    """The elements of a resource that a tensor lies in."""

    where: str
    resource: str
    offset: int = 0
    """In elements."""
    count: int = 0
    """Of elements; 0 for all to the end of the resource."""
    item: int = 0
    """The size of an element in bytes; 0 for the resource's own."""
    shape: tuple[int, ...] | None = None
    """That a tensor of an ONNX model has with it."""

    def of(self, buffer: Buffer, memory: Array) -> DML_BUFFER_BINDING:
        """The same in bytes; as the resource's size is, so is the binding's rounded up to 4 where there is room."""
        item = self.item or buffer.dtype.itemsize
        start = self.offset * item
        size = -(-self.count * item // 4) * 4 if self.count else buffer.size - start
        if start + size > buffer.size:
            size = self.count * item
        return DML_BUFFER_BINDING(Buffer=memory, Offset=start, SizeInBytes=size)


Bindings = Mapping[str, Sequence[Binding | None]]
"""By member of the desc; None for a tensor that is not bound."""


@dataclass(frozen=True, slots=True)
class Dispatchable:
    """An operator with its desc, and what is bound when it is initialised."""

    where: str
    spec: OperatorSpec
    desc: OperatorDesc
    flags: ExecutionFlags
    bindings: Bindings
    as_graph: bool = False
    """Whether it is compiled as a graph of its own, which does not run in-place."""

    @property
    def in_place(self) -> bool:
        return self.spec.in_place and not self.as_graph


@dataclass(frozen=True, slots=True)
class Dispatch:
    """Runs a dispatchable."""

    where: str
    dispatchable: str
    bindings: Bindings


@dataclass(frozen=True, slots=True)
class Print:
    """Prints a resource."""

    resource: str
    verbose: bool


@dataclass(frozen=True, slots=True)
class WriteFile:
    """Writes a resource to a file."""

    where: str
    resource: str
    target: str
    """As the model has it."""
    path: Path
    dimensions: tuple[int, ...] | None
    """Of a .npy file, None for one dimension; or of an image."""


Command = Dispatch | Print | WriteFile


def at(where: str, key: str) -> str:
    """The path of a member: ``resources.A``, with quotation marks where the key is not a plain word."""
    word = key if key.replace("-", "_").replace("$", "_").isidentifier() else describe(key)
    return f"{where}.{word}" if where else word


def model_violation(where: str, rule: str, found: str, expected: str, remedy: str = "") -> Violation:
    return violation("", rule, where, found, expected, remedy)


def no_memory(where: str, size: int) -> Violation:
    """Rule (M13), where a limit allows more than there is."""
    return violation(
        "",
        "(M13)",
        where,
        format_size(size),
        "a size that there is memory for",
        hresult=HResult.E_OUTOFMEMORY,
        kind="memory",
    )


def placed(where: str, violations: Sequence[Violation]) -> list[Violation]:
    """Violations of an operator's rules, with their place in the model."""
    return [replace(each, place=where) for each in violations]


def operator_named(where: str, name: str) -> OperatorSpec | Violation:
    """The operator of a name, in full (``DML_OPERATOR_JOIN``) or short; or what rule (M11) says of it."""
    found = parse_enum(OperatorType, name)
    if found is None or found == OperatorType.INVALID:
        like = _operators_like(name.upper().removeprefix(PREFIXES[OperatorType]))
        remedy = f"Did you mean {listing(like)}?" if like else ""
        text = f"{describe(name)}, no operator of DirectML"
        return model_violation(where, "(M11)", text, ANY_OPERATOR, remedy)
    return spec(found.name)


def _operators_like(word: str) -> list[str]:
    """Those that other libraries call so, those that end in a word, those that have it, and the one that is closest,
    with or without its family's name."""
    known = {name: name for name in OperatorType.__members__ if name != "INVALID"}
    short = {name.removeprefix("ACTIVATION_").removeprefix("ELEMENT_WISE_"): name for name in OPERATORS}
    having = [name for name in OPERATORS if len(word) > 1 and word in name]
    having.sort(key=lambda name: (not name.endswith(f"_{word}"), len(name)))
    closest = [(short | known)[each] for each in get_close_matches(word[:100], short | known, 1)]
    called = OTHER_NAMES.get(word.lower(), "").partition("(")[0]
    meant = [name for name, each in OPERATORS.items() if called and each.function == called]
    return [*dict.fromkeys([*meant, *having[:_MOST_LIKE], *closest])]


_MOST_LIKE = 6


def in_model(where: str, problem: DMLError) -> DMLError:
    """An error of an operator, with its place in the model."""
    return error(placed(where, problem.violations))
