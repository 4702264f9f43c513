"""Types: what checkers make of a user's script, what ``help()`` shows, and what ``dir()`` lists."""

from __future__ import annotations

import inspect
import json
import pydoc
import re
import runpy
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import anydml
import pydirectml
from anydml.functions import FUNCTIONS

TYPED = Path(__file__).parent / "typed"
SOURCE = Path(anydml.__file__).parent.parent
SETTINGS = """[mypy]
strict = true
follow_imports = silent
{source}

[mypy-torch.*,triton.*,PIL.*]
follow_imports = skip
ignore_missing_imports = true
"""
"""As for an installed package, whose own lines are not looked at. Libraries that may be absent are not read."""


def mypy(tmp_path: Path, *scripts: str) -> str:
    """What mypy, which has to be installed, says of scripts."""
    if find_spec("mypy") is None:
        pytest.skip("mypy is not installed")
    settings = tmp_path / "mypy.ini"
    # Where packages are installed mypy looks by itself, and wants not to be told.
    path = "" if SOURCE.name == "site-packages" else f"mypy_path = {SOURCE}"
    settings.write_text(SETTINGS.format(source=path))
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--config-file",
        settings,
        "--cache-dir",
        tmp_path / "cache",
        *(TYPED / script for script in scripts),
    ]
    return subprocess.run(command, capture_output=True, text=True, timeout=600).stdout


def pyright(script: str, tmp_path: Path) -> str:
    """What pyright, which has to be installed, says of a script."""
    if find_spec("pyright") is None:
        pytest.skip("pyright is not installed")
    shutil.copy(TYPED / script, tmp_path)
    settings = {"include": ["."], "extraPaths": [str(SOURCE)], "typeCheckingMode": "strict"}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
    command = [sys.executable, "-m", "pyright", "--project", tmp_path, "--pythonpath", sys.executable]
    return subprocess.run(command, capture_output=True, text=True, timeout=600).stdout


def refused_lines(report: str) -> set[int]:
    return {int(line) for line in re.findall(r"wrong\.py:(\d+)(?::\d+)?(?: -)?:? error", report)}


def wrong_lines() -> set[int]:
    text = (TYPED / "wrong.py").read_text().splitlines()
    return {i for i, line in enumerate(text, 1) if line.startswith("anydml.")}


def test_the_package_is_typed() -> None:
    for package in (anydml, pydirectml):
        assert (Path(package.__file__).parent / "py.typed").exists()


def test_a_users_script_runs() -> None:
    runpy.run_path(str(TYPED / "user.py"))


def test_mypy_passes_a_users_script_and_refuses_what_is_wrong(tmp_path: Path) -> None:
    """In one process, most of whose time goes into reading the package."""
    report = mypy(tmp_path, "user.py", "wrong.py")
    assert "user.py:" not in report, report
    assert "checked 2 source files" in report, report
    assert refused_lines(report) == wrong_lines(), report


def test_pyright_passes_a_users_script(tmp_path: Path) -> None:
    report = pyright("user.py", tmp_path)
    assert "0 errors" in report, report


def test_pyright_refuses_what_is_wrong(tmp_path: Path) -> None:
    report = pyright("wrong.py", tmp_path)
    assert refused_lines(report) == wrong_lines(), report


@pytest.mark.parametrize("name", FUNCTIONS)
def test_help_has_no_quoted_annotations(name: str) -> None:
    function = getattr(anydml, name)
    line = next(line for line in pydoc.plain(pydoc.render_doc(function)).splitlines() if line.startswith(f"{name}("))
    assert ": Operand" in line or name.startswith("fill_value") or name == "join"
    assert line.endswith((" -> Result", " -> list[Result]", " -> Result | list[Result]"))
    assert not re.search(r": '|-> '", line)
    assert "others" not in inspect.signature(function).parameters


@pytest.mark.parametrize("kind", [anydml.Device, anydml.Graph, anydml.Expression, anydml.CompiledOperator])
def test_help_of_classes_has_none_either(kind: Any) -> None:
    for line in pydoc.plain(pydoc.render_doc(kind)).splitlines():
        assert not re.search(r"\(self, .*: '|\) -> '", line), line


def test_dir_shows_public_names_alone() -> None:
    shown = set(dir(anydml))
    # It shadows a function of Python's, and so is in no `import *`.
    assert shown == {"__version__", "errors", "compile", *anydml.__all__, *FUNCTIONS}
    for name in shown:
        assert getattr(anydml, name) is not None
