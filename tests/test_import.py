"""Importing the package is cheap, needs NumPy only, and stays so with all 177 operators in the table."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import anydml
from anydml import OperatorType

BUDGET_MS = 40
"""What `import anydml` may add to `import numpy`."""


def run_python(code: str, path: Path | None = None) -> str:
    """What code prints in a fresh process, in which modules may be kept compiled."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    if path is not None:
        environment["PYTHONPATH"] = str(path)
    command = [sys.executable, "-c", code]
    return subprocess.run(command, capture_output=True, check=True, text=True, env=environment, timeout=60).stdout


LOADED = "import sys, numpy; before = set(sys.modules); import anydml; print(*sorted(set(sys.modules) - before))"


def test_imports_nothing_but_numpy_and_the_standard_library() -> None:
    outside = {name.partition(".")[0] for name in run_python(LOADED).split()} - {"anydml", "numpy"}
    assert outside <= set(sys.stdlib_module_names)


def test_loads_no_family_and_no_kernels() -> None:
    families = {f"anydml.operators.{family}" for family in anydml.OPERATORS.values()}
    unwanted = {*families, "anydml._native", "anydml.cli", "anydml.frontends.dxdispatch", "json", "argparse", "rich"}
    assert not unwanted & set(run_python(LOADED).split())


def test_177_operators_import_within_the_budget(tmp_path: Path) -> None:
    """A copy of the package whose table has every operator of DirectML, each in a family file of its own."""
    package = tmp_path / "anydml"
    shutil.copytree(Path(anydml.__file__).parent, package)
    table = package / "operators" / "registry.py"
    specs = package / "operators" / "specs"
    join = (specs / "join.py").read_text()
    names = [operator.name for operator in OperatorType if operator is not OperatorType.INVALID]
    lines = []
    for name in names:
        lines.append(f'    "{name}": Op("family_{name.lower()}", "join"),')
        (specs / f"family_{name.lower()}.py").write_text(re.sub(r"\bJOIN|(?<=DML_)JOIN", name, join))
    text = re.sub(r"OPERATORS = \{.*?\n\}", "OPERATORS = {\n" + "\n".join(lines) + "\n}", table.read_text(), flags=re.S)
    table.write_text(text)

    code = """
import sys, time, numpy
start = time.process_time()
import anydml
print((time.process_time() - start) * 1e3, len(anydml.OPERATORS), anydml.__file__)
assert not [name for name in sys.modules if name.startswith("anydml.operators.specs.family_")]
anydml.DML_JOIN_OPERATOR_DESC, anydml.DML_GEMM_OPERATOR_DESC
assert len([name for name in sys.modules if name.startswith("anydml.operators.specs.family_")]) == 2
"""
    runs = [run_python(code, tmp_path).split() for _ in range(10)]
    assert {(count, Path(file).parent) for _, count, file in runs} == {("177", package)}
    # Of the processor's time the least of ten: on a machine that others use too it varies, but less than the clock's.
    assert min(float(milliseconds) for milliseconds, _, _ in runs) < BUDGET_MS
