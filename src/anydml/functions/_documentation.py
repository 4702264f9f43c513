"""What the docstrings of all functions share, appended from the operators' specifications."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from inspect import Parameter, Signature, cleandoc, signature
from typing import Any, TypeVar

from ..core.annotations import unquoted
from ..operators import OPERATORS
from ..operators.pointwise import Pointwise
from ._call_cache import remembering
from ._names import REQUIRED

Function = TypeVar("Function", bound=Callable[..., Any])

_OUT = "where to write, of the result's type and shape and of any strides; may be the operand itself. Returned."
_DEVICE = 'a Device or its name; "cpu" where None.'
_RAISES = "DMLError: a ValueError or TypeError that names the rule; `out` is untouched then."


def documented(*operators: str) -> Callable[[Function], Function]:
    """Completes a function of operators: its docstring, with what `out` and `device` are, what is raised, and the
    source; and the cache of calls before it.

    Args:
        operators: the operator and those of its revisions that the function takes, oldest first.
    """

    def complete(function: Function) -> Function:
        text, prompt, examples = cleandoc(function.__doc__ or "").partition(">>>")
        before, title, rest = text.partition("Args:\n")
        arguments, blank, behind = rest.partition("\n\n")
        known = function_signature(function)
        for name, meaning in (("out", _OUT), ("device", _DEVICE)):
            if name in known.parameters and f"    {name}: " not in f"\n{arguments}":
                arguments = f"{arguments.rstrip()}\n    {name}: {meaning}"
        raises = "" if "Raises:" in behind else f"Raises:\n    {_RAISES}\n\n"
        source = f"Source: {', and '.join(map(_page, operators))}.\n\n"
        function.__doc__ = (
            f"{before}{title}{arguments}{blank}{behind}{raises}{source}{prompt}{examples}".rstrip() + "\n"
        )
        described: Any = function
        described.__signature__ = known
        return remembering(function)

    return complete


def function_signature(function: Callable[..., Any]) -> Signature:
    """A function's signature as it is to be read: without what catches the words of other libraries."""
    whole = signature(unquoted(function))
    parameters = [each for each in whole.parameters.values() if each.kind is not Parameter.VAR_KEYWORD]
    empty = Parameter.empty
    parameters = [each.replace(default=empty) if each.default is REQUIRED else each for each in parameters]
    return whole.replace(parameters=parameters)


def _page(operator: str) -> str:
    found = getattr(import_module(f"anydml.operators.specs.{OPERATORS[operator].family}"), operator)
    support = found.table if isinstance(found, Pointwise) else found.support
    return f"the page of DML_{operator}_OPERATOR_DESC, feature level {support.introduced.number}"
