"""One shape for everything that can be wrong, and the builders of violations and exceptions.

A :class:`Violation` is a broken rule: which operator, which field, what was found, what is expected, the rule's label,
the remedy. Labels are searchable: a label's letter tells where its rule stands.

======  =========================================================
(F1)..  members of a desc, ``operators/validate.py``
(T1)..  tensor descs, ``operators/validate.py``
(S1)..  feature levels and support tables, ``operators/validate.py``
(C1)..  an operator's own constraints, in its file in ``operators/specs/``
(V1)..  an operator's demands on values, found at dispatch, ibidem
(D1)..  devices and the life cycle, ``device.py``
(G1)..  graphs, ``graph/``
(B1)..  bindings, ``runtime/binding.py``
(A1)..  arrays given to functions, ``core/interop.py``
(K1)..  Dask arrays, ``frontends/dask/``
(M1)..  models, ``frontends/dxdispatch/``
(N1)..  models of ONNX, ``frontends/onnx/``
(P1)..  pictures, ``draw/``
======  =========================================================
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal, NoReturn, TypeAlias

from .enums import FeatureLevel, HResult

Kind: TypeAlias = Literal["value", "type", "memory", "attribute"]
"""The built-in exception that a violation is raised as: ValueError, TypeError, MemoryError or AttributeError."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """A broken rule. ``str()`` gives it in one line.

    Attributes:
        operator: the operator, as the header has it without its prefix; "" where none is concerned.
        where: the member, as one would write it: ``InputTensors[1].Sizes``.
        found: what stands there.
        expected: what would be right.
        rule: the rule's label, such as ``(C3)``.
        remedy: what to do about it, where that is known.
        feature_level: the level in force, where the rule is about one.
        hresult: DirectML's code.
        place: where in a model the operator is; "" outside of models.
        kind: which built-in exception it is raised as: ValueError, TypeError, MemoryError or AttributeError.
    """

    operator: str
    where: str
    found: str
    expected: str
    rule: str
    remedy: str = ""
    feature_level: FeatureLevel | None = None
    hresult: HResult = HResult.E_INVALIDARG
    place: str = ""
    kind: Kind = "value"

    def __post_init__(self) -> None:
        if self.kind == "memory":
            object.__setattr__(self, "hresult", HResult.E_OUTOFMEMORY)

    def __str__(self) -> str:
        member = ".".join(part for part in (self.operator, self.where) if part)
        where = f"{self.place}: {member}" if self.place else member
        level = f" at feature level {self.feature_level.number}" if self.feature_level is not None else ""
        remedy = f". {self.remedy}" if self.remedy else ""
        return f"{where}: found {self.found}{level}, expected {self.expected} {self.rule}{remedy}"


class DMLError(Exception):
    """What every error of this package is, beside ValueError, TypeError, MemoryError or AttributeError.

    ``violations`` holds all that is wrong, ``hresult`` the code that DirectML gives for the first of them.
    """

    def __init__(self, violations: tuple[Violation, ...]) -> None:
        self.violations = violations
        self.hresult = violations[0].hresult
        super().__init__(violations)

    def __str__(self) -> str:
        lines = [str(violation) for violation in self.violations]
        code = f"[{self.hresult.name} 0x{self.hresult.value:08X}]"
        if len(lines) == 1:
            return f"{lines[0]} {code}"
        operators = dict.fromkeys(each.operator for each in self.violations)
        whose = f"{next(iter(operators))}: " if len(operators) == 1 and all(operators) else ""
        return f"{whose}{len(lines)} violations {code}\n  " + "\n  ".join(lines)


class DMLValueError(DMLError, ValueError):
    """A value that a rule refuses."""


class DMLTypeError(DMLError, TypeError):
    """A value of a type that can't stand where it stands."""


class DMLMemoryError(DMLError, MemoryError):
    """More memory than there is, or than a limit allows."""


class DMLAttributeError(DMLError, AttributeError):
    """A name of DirectML's that this version does not have, or needs no class for."""


_CLASSES = {"value": DMLValueError, "type": DMLTypeError, "memory": DMLMemoryError, "attribute": DMLAttributeError}


def error(violations: Iterable[Violation]) -> DMLError:
    """The exception for one or more violations; its class is that of the first."""
    all_of_them = tuple(violations)
    return _CLASSES[all_of_them[0].kind](all_of_them)


def violation(
    operator: str,
    rule: str,
    where: str,
    found: str,
    expected: str,
    remedy: str = "",
    kind: Kind = "value",
    hresult: HResult = HResult.E_INVALIDARG,
    feature_level: FeatureLevel | None = None,
    place: str = "",
) -> Violation:
    """A violation in the order in which one reads it; see :class:`Violation`."""
    return Violation(
        operator=operator,
        where=where,
        found=found,
        expected=expected,
        rule=rule,
        remedy=remedy,
        feature_level=feature_level,
        hresult=hresult,
        place=place,
        kind=kind,
    )


def refuse(*broken: Any, **options: Any) -> NoReturn:
    """Raises the error for one broken rule, which :func:`violation` takes."""
    raise error([violation(*broken, **options)])


def kind_of(value: object) -> str:
    """What a value of the wrong type or size is, for a message."""
    if value is None:
        return "None"
    kind = type(value).__name__
    # Anything may stand here: classes have `shape` too, and Python prints no integer of thousands of digits.
    with suppress(Exception):
        array: Any = value
        return f"{kind} of {array.dtype}, shape {tuple(array.shape)}"
    try:
        text = " ".join(repr(value).split())
    except Exception as problem:
        text = f"whose repr raises {type(problem).__name__}"
    if not text.startswith(kind):
        return f"{kind} {_cut(text, 40)}"
    return _cut(text, max(40, len(kind) + 4))


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 3] + "..."


def listing(names: Iterable[object], last: str = "or") -> str:
    """Names as a sentence has them: ``a, b or c``."""
    words = [str(name) for name in names]
    return f" {last} ".join(filter(None, [", ".join(words[:-1]), words[-1]])) if words else "none"


def closest(word: str, known: Iterable[str]) -> str:
    """What one may have meant by a misspelt word, as a remedy: ``Did you mean Axis?``; "" where nothing is like it."""
    from difflib import get_close_matches

    folded = {each.lower(): each for each in known if each.isprintable()}
    close = get_close_matches(word.lower()[:100], folded, 1)
    return f"Did you mean {folded[close[0]]}?" if close else ""
