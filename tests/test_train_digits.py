"""Training: the example that learns to read digits, and the table of what differentiates which operator."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from anydml.operators import OPERATORS

FOLDER = Path(__file__).parents[1]
EPOCHS = 6
"""Half of the example's own, after which 98% are read right; each has the same graph 22 times."""
pytestmark = pytest.mark.slow


def trained(threads: int) -> str:
    source = str(Path(sys.modules["anydml"].__file__).parents[1])
    environment = {**os.environ, "PYTHONPATH": source, "OMP_NUM_THREADS": str(threads)}
    command = [sys.executable, str(FOLDER / "examples" / "train_digits.py"), "--device", "cpu", f"--epochs={EPOCHS}"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_digits_are_learnt_to_the_same_bits_on_one_thread_and_two() -> None:
    one, two = trained(1), trained(2)
    found = re.search(r"(\d+\.\d+)% of 360 digits held out are read right\nparameters [0-9a-f]{16}\n$", one)
    assert found is not None, one
    assert float(found[1]) >= 97
    assert two == one


def test_the_table_names_all_gradients() -> None:
    table = (FOLDER / "docs" / "training.md").read_text().partition("| --- ")[2].partition("\n\n")[0]
    named = {name for row in table.splitlines() for name in re.findall(r"[A-Z0-9_]+_GRAD1?\b", row)}
    assert named == {name for name in OPERATORS if re.search(r"_GRAD1?$", name)}
