"""Good descs, drawn at random: a family of operators has a file, whose DRAWN is found here without being listed."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from random import Random

from anydml.operators import OPERATORS
from anydml.operators.schema import OperatorDesc
from cases import all_cases

_FAMILIES = sorted(module.name for module in iter_modules(__path__))
GOOD: list[Callable[[Random], OperatorDesc]] = [
    draw for family in _FAMILIES for draw in import_module(f".{family}", __name__).DRAWN
]


@cache
def _descs_of_cases() -> dict[str, list[OperatorDesc]]:
    descs: dict[str, list[OperatorDesc]] = {name: [] for name in OPERATORS}
    for case in all_cases():
        descs[type(case.desc).__name__.removeprefix("DML_").removesuffix("_OPERATOR_DESC")].append(case.desc)
    return descs


def desc_of_a_case(random: Random) -> OperatorDesc:
    """That of any operator, be there a function that draws it or not."""
    return random.choice(_descs_of_cases()[random.choice(list(OPERATORS))])


def good_desc(random: Random) -> OperatorDesc:
    """One that is drawn."""
    return random.choice(GOOD)(random)


def any_good_desc(random: Random) -> OperatorDesc:
    """One that is drawn, or a case's."""
    return random.choice([*GOOD, desc_of_a_case])(random)
