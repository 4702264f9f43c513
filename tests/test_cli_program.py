"""The command line as a program: wrong usage, help, terminals, pipes."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import anydml
from anydml import FeatureLevel, cli
from cases import all_cases
from cli_models import PRODUCT, ROOT, _model_of


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["walk"],
        ["run"],
        ["run", PRODUCT, "-i", "0"],
        ["draw", PRODUCT, "--times"],
        ["run", PRODUCT, "-i", "9" * 5000],
        ["run", PRODUCT, "--memory-limit", "lots"],
        ["check", PRODUCT, "--feature-level", "7.0"],
    ],
)
def test_wrong_usage(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        cli.main(arguments)
    assert caught.value.code == 2
    assert "usage: anydml" in capsys.readouterr().err


def test_version_and_help(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (
        ["--version"],
        ["--help"],
        *([word, "--help"] for word in ("run", "check", "ops", "devices", "draw", "bench", "warmup")),
    ):
        with pytest.raises(SystemExit) as caught:
            cli.main(arguments)
        assert caught.value.code == 0
        out = capsys.readouterr().out
        assert out == f"anydml {anydml.__version__}\n" if arguments == ["--version"] else "examples:\n  anydml " in out


@pytest.mark.parametrize("level", FeatureLevel)
def test_feature_levels(anydml_: Any, level: FeatureLevel) -> None:
    code, out, _ = anydml_("check", PRODUCT, "--feature-level", level.number)
    assert code == (0 if level >= FeatureLevel.LEVEL_3_1 else 1)
    assert f"feature level {level.number}" in out


@pytest.mark.parametrize(
    ("problem", "code", "message"),
    [
        (KeyboardInterrupt(), 130, ""),
        (MemoryError(), 1, f"{PRODUCT}: there is not enough memory\n"),
        (OSError(28, "No space left on device"), 1, f"{PRODUCT}: [Errno 28] No space left on device\n"),
    ],
)
def test_no_traceback(
    anydml_: Any, monkeypatch: pytest.MonkeyPatch, problem: BaseException, code: int, message: str
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise problem

    monkeypatch.setattr("anydml.frontends.dxdispatch.session.Session.execute", fail)
    assert anydml_("run", PRODUCT) == (code, "", message)


@pytest.mark.skipif(not hasattr(signal, "SIGPIPE"), reason="there are no such pipes here")
def test_a_reader_that_leaves_is_no_error() -> None:
    command = [sys.executable, "-m", "anydml", "ops", "JOIN"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""


def test_names_that_the_terminal_can_not_show() -> None:
    text = json.dumps(
        {
            "resources": {"Größe": {"initialValuesDataType": "INT8", "initialValues": [1]}},
            "dispatchables": {},
            "commands": [{"type": "print", "resource": "Größe"}],
        }
    )
    environment = {"PYTHONIOENCODING": "ascii", "PYTHONPATH": str(ROOT / "src")}
    command = [sys.executable, "-m", "anydml", "run", "-"]
    done = subprocess.run(command, input=text.encode(), capture_output=True, env=environment, check=True)
    assert done.stdout == b"Resource 'Gr\\xf6\\xdfe': 1\n"


@pytest.mark.parametrize("output", ["picture.png", "model.json", "picture"])
def test_draw_writes_svg_files_only(anydml_: Any, tmp_path: Path, output: str) -> None:
    path = tmp_path / output
    path.write_text("as it was")
    code, out, err = anydml_("draw", "JOIN", "-o", path)
    assert (code, out) == (1, "")
    assert "(P3)" in err
    assert path.read_text() == "as it was"


def test_numbers_that_json_does_not_have(anydml_: Any, tmp_path: Path) -> None:
    case = next(each for each in all_cases() if each.id == "clip-float32")
    path = _model_of(case, tmp_path)
    text = path.read_text()
    for written, code in (('"inf"', 0), ('"NaN"', 0), ("3", 0), ("1e999", 1), ('"1"', 1), ("true", 1), ("1e39", 1)):
        path.write_text(text.replace('"Max": 2.5', f'"Max": {written}'))
        returned, _, err = anydml_("run", path)
        assert (returned, "Max: found" in err) == (code, bool(code)), err
