"""WebNN's conformance cases, in DirectML's operators as a browser's backend has them, on every engine."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from webnn import FOLDER, outcome
from webnn_lowering import NotThereYet
from webnn_lowering.case import cases

pytestmark = pytest.mark.slow

if not FOLDER.is_dir():
    pytest.skip(f"no cases of WebNN in {FOLDER}", allow_module_level=True)

MISSES = {
    "l2Pool2d float32 4D tensor options.outputSizes ignores options.roundingType=floor": (
        "in corners on the right the sum of squares is expected, and not the root of that"
    ),
}
"""Cases that do not pass, by their names, and why."""

FEW = 0.02
"""Of the cases whose operators are there."""

CASES = cases(FOLDER)

found = cache(lambda i: outcome(CASES[i]))


def each_case() -> list[Any]:
    return [
        pytest.param(i, id=case["name"], marks=[pytest.mark.xfail(reason=MISSES[case["name"]])])
        if case["name"] in MISSES
        else pytest.param(i, id=case["name"])
        for i, case in enumerate(CASES)
    ]


@pytest.mark.parametrize("i", each_case())
def test_webnn(i: int) -> None:
    wrong = found(i)
    if isinstance(wrong, NotThereYet):
        pytest.skip(f"{wrong} is not there yet")
    assert wrong is None, wrong


def test_misses_are_few() -> None:
    there = [case["name"] for i, case in enumerate(CASES) if not isinstance(found(i), NotThereYet)]
    assert sum(name in MISSES for name in there) <= FEW * len(there)
