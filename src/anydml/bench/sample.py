"""A sample of the rows: in which order they are measured where not all can be."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from random import Random

from .cases import Case


def sampled(cases: Sequence[Case], seed: int) -> list[Case]:
    """All cases in a random order whose every beginning is a stratified sample: it has as many of each operator as of
    the others, as far as there are so many, and of an operator as many of each type, size and cell."""
    random = Random(seed)
    strata: dict[str, list[Case]] = {}
    for case in cases:
        strata.setdefault(case.of_operator, []).append(case)
    orders = [_spread(rows, random) for rows in strata.values()]
    found: list[Case] = []
    while orders:
        random.shuffle(orders)
        found += [order.pop(0) for order in orders]
        orders = [order for order in orders if order]
    return found


def _spread(cases: Sequence[Case], random: Random) -> list[Case]:
    """Cases of an operator, next always one whose type, size and cell were taken the least often."""
    left, taken = list(cases), Counter[tuple[str, object]]()
    random.shuffle(left)
    order = []
    while left:
        case = min(left, key=lambda case: sum(taken[kind] for kind in _kinds(case)))
        left.remove(case)
        taken.update(_kinds(case))
        order.append(case)
    return order


def _kinds(case: Case) -> list[tuple[str, object]]:
    return [("type", case.dtype), ("size", case.size), ("cell", case.cell)]
