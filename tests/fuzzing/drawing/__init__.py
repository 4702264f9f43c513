"""Good descs, drawn at random: a family of operators has a file, whose DRAWN is found here without being listed."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pkgutil import iter_modules
from random import Random

from anydml.operators.schema import OperatorDesc

_FAMILIES = sorted(module.name for module in iter_modules(__path__))
GOOD: list[Callable[[Random], OperatorDesc]] = [
    draw for family in _FAMILIES for draw in import_module(f".{family}", __name__).DRAWN
]


def good_desc(random: Random) -> OperatorDesc:
    return random.choice(GOOD)(random)
