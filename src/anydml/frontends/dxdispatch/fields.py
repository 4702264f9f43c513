"""JSON values as what they are to be, with all that is wrong with them; the package's docstring has the rules."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum, IntFlag
from functools import reduce
from operator import or_
from pathlib import Path
from typing import Any, Literal, TypeVar

from ...core import enums
from ...core.enums import PREFIXES
from ...core.errors import Violation, closest, listing
from .buffers import Buffer, describe
from .commands import Dispatchable, at, model_violation
from .files import Refused, resolve
from .jsonc import Object
from .whole import Whole

_Member = TypeVar("_Member", bound=IntEnum | IntFlag)


class Fields:
    """Reads JSON values. Each method takes a path for messages and a value; None is its word for wrong."""

    def __init__(self, folder: Path, file: Path | None, allow_outside: bool, allow_unknown_fields: bool) -> None:
        self.folder = folder
        self.file = file
        self.allow_outside = allow_outside
        self.allow_unknown_fields = allow_unknown_fields
        self.violations: list[Violation] = []
        self.resources: dict[str, Buffer | None] = {}
        self.dispatchables: dict[str, Dispatchable | Whole | None] = {}
        self.fallback = False
        self.given_sizes: Mapping[str, int] = {}
        """Of free dimensions of ONNX models."""

    def refuse(self, where: str, rule: str, found: str, expected: str, remedy: str = "") -> None:
        self.violations.append(model_violation(where, rule, found, expected, remedy))

    def mapping(
        self, where: str, value: object, required: Sequence[str] | None = None, optional: Sequence[str] = ()
    ) -> Object | None:
        """An object; without `required`, one whose keys are names."""
        if not isinstance(value, Object):
            self.refuse(where or "the model", "(M4)", describe(value), "an object")
            return None
        for key in value.repeated:
            self.refuse(at(where, key), "(M3)", "the same key again", "every key once")
        if required is None:
            for key in value:
                if not key.isprintable() or not key:
                    self.refuse(at(where, key), "(M5)", describe(key), "a printable name")
            return value
        known = [*required, *optional]
        for key in value:
            if key not in known and not self.allow_unknown_fields:
                remedy = f"{closest(key, known)} --allow-unknown-fields (allow_unknown_fields=True) lets it pass"
                self.refuse(at(where, key), "(M3)", "an unknown field", listing(known), remedy.lstrip())
        for key in required:
            if key not in value:
                self.refuse(where or "the model", "(M3)", f"no {key}", f"an object with {listing(required, 'and')}")
        return value

    def string(self, where: str, value: object) -> str | None:
        if isinstance(value, str):
            return value
        self.refuse(where, "(M4)", describe(value), "a string")
        return None

    def integer(self, where: str, value: object, low: int = 0) -> int | None:
        if type(value) is int and low <= value < 2**63:
            return value
        self.refuse(where, "(M4)", describe(value), f"an integer from {low} to 2^63 - 1")
        return None

    def integers(self, where: str, value: object) -> tuple[int, ...] | None:
        """Sizes and the like; the limits keep products of them printable."""
        if isinstance(value, list) and len(value) <= _MAX_DIMENSIONS:
            wrong = [item for item in value if type(item) is not int or abs(item) >= 2**63]
            if not wrong:
                return tuple(value)
            self.refuse(where, "(M4)", f"{describe(wrong[0])} in it", "integers of 64 bits")
            return None
        self.refuse(where, "(M4)", describe(value), f"a list of at most {_MAX_DIMENSIONS} integers")
        return None

    def enum(self, where: str, enum: type[_Member], value: object) -> _Member | None:
        name = self.string(where, value)
        member = None if name is None else enums.parse(enum, name)
        if name is not None and member is None:
            names = list(enum.__members__)
            self.refuse(
                where, "(M6)", describe(name), listing(names), closest(name.removeprefix(PREFIXES[enum]), names)
            )
        return member

    def flags(self, where: str, enum: type[_Member], value: object) -> _Member | None:
        """A flag's name, or a list of them."""
        if not isinstance(value, list):
            return self.enum(where, enum, value)
        members = [self.enum(f"{where}[{i}]", enum, name) for i, name in enumerate(value)]
        right = [member for member in members if member is not None]
        return reduce(or_, right, enum(0)) if len(right) == len(members) else None

    def reference(self, where: str, kind: Literal["resource", "dispatchable"], value: object) -> str | None:
        name = self.string(where, value)
        known: Mapping[str, Any] = self.resources if kind == "resource" else self.dispatchables
        if name is None or name in known:
            return name
        self.refuse(where, "(M5)", describe(name), f"a {kind}: {listing(map(describe, known))}", closest(name, known))
        return None

    def path(self, where: str, value: object, resolve: Callable[[str, Path, bool], Path] = resolve) -> Path | None:
        text = self.string(where, value)
        if text is None:
            return None
        try:
            return resolve(text, self.folder, self.allow_outside)
        except Refused as problem:
            self.refuse(where, "(M9)", problem.found, problem.expected, problem.remedy)
            return None


_MAX_DIMENSIONS = 32
"""Of a NumPy array; a desc's 8 are the validator's to say."""
