"""No kernel reads or writes a byte outside of its tensors, on any instruction set: pages around them cannot be read."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from anydml.operators import OPERATORS

_native = pytest.importorskip("anydml._native", reason="there is no compiled module")

pytestmark = [
    pytest.mark.native,
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="protects pages as Linux does"),
]


SETS = _native.build_info()["instruction_sets"]


def guarded(words: list[str], cpu: str) -> list[str]:
    """What it prints on an instruction set, on all of them where none is named."""
    command = [sys.executable, str(Path(__file__).with_name("guarded.py")), *words]
    environment = {name: value for name, value in os.environ.items() if name != "ANYDML_CPU"}
    if cpu:
        environment["ANYDML_CPU"] = cpu
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-200:] + done.stderr[-2000:]
    return done.stdout.splitlines()


def test_cases_read_nothing_around_tensors() -> None:
    lines = guarded(["0", "1"], "")
    count = len(lines) // len(SETS) - 1
    assert count > len(OPERATORS)
    told = [line for line in lines if "nothing around" in line]
    assert told == [f"{count} cases read nothing around tensors on {cpu}" for cpu in SETS]


@pytest.mark.parametrize("cpu", SETS)
def test_reductions_read_nothing_around_tensors(cpu: str) -> None:
    """In a process each, as functions keep what they have compiled."""
    assert len(guarded(["reductions", "2000"], cpu)) == 2000
