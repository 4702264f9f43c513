"""WebNN's conformance cases, in DirectML's operators as a browser's backend has them, on every engine."""

from __future__ import annotations

import json
from functools import cache

import pytest

from together import Row, together
from webnn import FOLDER, RECORDED, as_text, counted, outcome
from webnn_lowering.case import cases

pytestmark = pytest.mark.slow

if not FOLDER.is_dir():
    pytest.skip(f"no cases of WebNN in {FOLDER}", allow_module_level=True)

RECORD = json.loads(RECORDED.read_text())

MISSES: dict[str, str] = RECORD["misses"]
"""Cases that do not pass, by their names, and why."""

FEW = 0.02

CASES = cases(FOLDER)

found = cache(lambda i: outcome(CASES[i]))


def each_case() -> list[Row]:
    """A test for each operator, and for each miss."""
    return [
        Row(name, name, (i,), [pytest.mark.xfail(reason=MISSES[name])])
        if name in MISSES
        else Row(name.split()[0], name, (i,))
        for i, name in enumerate(case["name"] for case in CASES)
    ]


@together("i", each_case())
def test_webnn(i: int) -> None:
    wrong = found(i)
    assert wrong is None, wrong


def test_misses_are_few_and_explained() -> None:
    assert len(MISSES) <= FEW * len(CASES)
    assert all(MISSES.values())


def test_counts_are_those_recorded() -> None:
    """Which the status page shows: ``tests/webnn.py --record`` writes them."""
    assert {**counted([(case, found(i)) for i, case in enumerate(CASES)]), "misses": MISSES} == RECORD
    assert RECORDED.read_text() == as_text(RECORD)
