"""No kernel reads or writes a byte outside of its tensors, on any instruction set: pages around them cannot be read."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

_native = pytest.importorskip("anydml._native", reason="there is no compiled module")

pytestmark = [
    pytest.mark.native,
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="protects pages as Linux does"),
]


@pytest.mark.parametrize("words", ["0 1", "reductions 2000"], ids=["cases", "reductions"])
@pytest.mark.parametrize("cpu", _native.build_info()["instruction_sets"])
def test_nothing_is_read_around_tensors(cpu: str, words: str) -> None:
    command = [sys.executable, str(Path(__file__).with_name("guarded.py")), *words.split()]
    done = subprocess.run(command, env={**os.environ, "ANYDML_CPU": cpu}, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-200:] + done.stderr[-2000:]
