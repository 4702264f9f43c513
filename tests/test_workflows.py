"""The workflows of .github: what their checkers say where these are installed, and what no checker knows of."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
if not WORKFLOWS:
    pytest.skip("a sdist has no workflows", allow_module_level=True)


@pytest.mark.parametrize(
    "command", [["actionlint"], ["zizmor", "--offline", "--quiet"]], ids=lambda command: command[0]
)
def test_checkers_find_nothing(command: list[str]) -> None:
    # That of the environment which the tests run in, or of the system.
    program = shutil.which(command[0], path=str(Path(sys.executable).parent)) or shutil.which(command[0])
    if program is None:
        pytest.skip(f"{command[0]} is not installed")
    checked = subprocess.run([program, *command[1:], *WORKFLOWS], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert checked.returncode == 0, checked.stdout + checked.stderr


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_may_little(path: Path) -> None:
    """Reading by default, what writes is in jobs that run none of the project's code; no secrets, versions named."""
    text = path.read_text()
    assert "\npermissions:\n  contents: read\n" in text
    assert "\nconcurrency:\n" in text
    assert "secrets." not in text
    assert "pull_request_target" not in text
    for job in re.split(r"\n  (?=[a-z]+:\n)", text.partition("\njobs:")[2]):
        assert "timeout-minutes:" in job or not job.strip(), job
        if re.search(r"^ +[a-z-]+: write", job, re.MULTILINE):
            assert "run:" not in job, job
    for action in re.findall(r"uses: (\S+)", text):
        assert re.fullmatch(r"(actions|pypa)/[a-z-]+@(v\d[\d.]*|release/v1)", action), action
    assert len(re.findall("actions/checkout", text)) == len(re.findall("persist-credentials: false", text))


def test_what_they_run_is_there() -> None:
    text = "".join(path.read_text() for path in WORKFLOWS)
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert set(re.findall(r"run: make ([a-z-]+)", text)) <= {*targets, "docs"}
    files = re.findall(r"(?:run: |python )([\w.]+/[\w./]+)", text)
    assert ".ci/run" in files
    assert "tools/check_wheel.py" in files
    assert [file for file in files if not (ROOT / file).exists()] == []
