"""A short round of the fuzzer: 20 seconds in all. ``ANYDML_FUZZ_SEED`` gives it another seed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from anydml.operators import OPERATORS, spec_of
from fuzz import TARGETS, one_case
from fuzzing.drawing import any_good_desc

pytestmark = [pytest.mark.fuzz, pytest.mark.slow]

FUZZER = Path(__file__).with_name("fuzz.py")
SEED = os.environ.get("ANYDML_FUZZ_SEED", "1")
SECONDS = 20


@pytest.mark.parametrize("target", TARGETS)
def test_a_short_round_finds_nothing(target: str) -> None:
    arguments = ["--seconds", str(SECONDS / len(TARGETS)), "--seed", SEED, "--target", target]
    done = subprocess.run([sys.executable, FUZZER, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]


@pytest.mark.parametrize("target", TARGETS)
def test_a_finding_is_reported_with_its_place(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(random: object) -> None:
        raise KeyError("what no one expects")

    monkeypatch.setitem(TARGETS, target, broken)
    found = one_case(target, "1", 0)
    assert found is not None
    assert found[0].startswith("KeyError at test_fuzz.py:")
    assert "what no one expects" in found[1]


def test_a_case_is_made_from_its_seed_and_number_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[float] = []
    monkeypatch.setitem(TARGETS, "validator", lambda random: drawn.append(random.random()))
    for seed, case in (("1", 5), ("1", 5), ("1", 6), ("2", 5)):
        assert one_case("validator", seed, case) is None
    assert drawn[0] == drawn[1]
    assert len(set(drawn)) == 3


def test_every_operator_is_drawn() -> None:
    random = Random("1")
    drawn = {spec_of(any_good_desc(random)).name for _ in range(10_000)}  # type: ignore[union-attr]
    assert drawn == set(OPERATORS)
