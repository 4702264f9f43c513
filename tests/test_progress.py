"""Progress: a bar with the time left on a terminal, lines elsewhere, and nothing for what is quick."""

from __future__ import annotations

import io
import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from anydml import cli, terminal
from anydml.cli import commands
from anydml.frontends.dxdispatch.jsonc import parse
from anydml.terminal import Progress, duration

ROOT = Path(__file__).parent.parent
PRODUCT = ROOT / "examples" / "cumulative_product.json"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Clock:
    """Seconds that pass when a test says so."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr(terminal, "perf_counter", found)
    return found


@pytest.fixture
def no_rich(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terminal, "find_spec", lambda name: None)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.4, "0 s"), (59.4, "59 s"), (59.6, "1 min 0 s"), (130, "2 min 10 s"), (3600, "1 h 0 min"), (7500, "2 h 5 min")],
)
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_lines_in_a_pipe_with_the_time_left(clock: Clock) -> None:
    file = io.StringIO()
    with Progress(file) as progress:
        progress.step("first", 0, 4)
        clock.now += 30
        progress.step("second", 1, 4)
        progress.step("second", 1, 4)
        clock.now += 30
        progress.step("third", 2, 4)
    assert file.getvalue() == "  0% first\n 25% second, 1 min 30 s left\n 50% third, 1 min 0 s left\n"


def test_lines_in_a_pipe_are_few(clock: Clock) -> None:
    file = io.StringIO()
    with Progress(file, between=10) as progress:
        for done in range(100):
            progress.step("sum", done, 100)
            clock.now += 1
    assert file.getvalue().splitlines()[:2] == [" 10% sum, 1 min 30 s left", " 20% sum, 1 min 20 s left"]
    assert len(file.getvalue().splitlines()) == 9


def test_one_line_on_a_terminal_without_rich(clock: Clock, no_rich: None) -> None:
    file = Terminal()
    with Progress(file) as progress:
        progress.step("sum", 1, 2)
        clock.now += 2
        progress.step("sum", 1, 2)
    assert file.getvalue() == "\r\x1b[K 50% sum, 0 s left\r\x1b[K 50% sum, 2 s left\r\x1b[K"


def test_a_line_is_cut_where_the_terminal_ends(clock: Clock, no_rich: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terminal, "get_terminal_size", lambda: os.terminal_size((10, 2)))
    file = Terminal()
    Progress(file).step("a long title", 1, 2)
    assert file.getvalue() == "\r\x1b[K 50% a lo"


def test_a_bar_on_a_terminal(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("rich", reason="rich is not installed")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    file = Terminal()
    with Progress(file) as progress:
        clock.now += 5
        progress.step("[bold]sum", 1, 4)
        shown = re.sub(r"\x1b\[[^a-zA-Z]*[a-zA-Z]", "", file.getvalue())
        assert "[bold]sum" in shown
        assert "25%" in shown
        assert "15 s left" in shown
        assert "━" in shown
        progress.clear()
        cleared = len(file.getvalue())
        progress.step("again", 2, 4)
        assert "again" in file.getvalue()[cleared:]


def test_nothing_is_shown_of_what_is_quick(clock: Clock) -> None:
    for file in (Terminal(), io.StringIO()):
        with Progress(file, delay=0.5) as progress:
            clock.now += 0.4
            progress.step("sum", 1, 2)
        assert file.getvalue() == ""


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """Standard error, to which every step is told, as if all were slow."""
    file = io.StringIO()
    monkeypatch.setattr(commands, "_progress", lambda: Progress(file))
    return file


def test_run_tells_how_far_it_is(slow: io.StringIO, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = parse(PRODUCT.read_text())
    model["commands"] *= 2
    path = tmp_path / "model.json"
    path.write_text(json.dumps(model))
    assert cli.main(["run", str(path)]) == 0
    found = [line.partition(",")[0] for line in slow.getvalue().splitlines()]
    assert found == ["  0% product", "  0% product", " 25% Out", " 50% product", " 75% Out"]
    assert capsys.readouterr().out == "Resource 'Out': 2, 8, 64, 192\n" * 2


def test_run_tells_how_far_the_iterations_are(slow: io.StringIO, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("anydml.frontends.dxdispatch.session._SECONDS_BETWEEN_REPORTS", -1)
    assert cli.main(["run", str(PRODUCT), "-i", "4"]) == 0
    lines = [line.partition(",")[0] for line in slow.getvalue().splitlines()]
    assert lines[1:6] == ["  0% product", " 12% product", " 25% product", " 38% product", " 50% product"]


def test_warmup_tells_how_far_it_is(slow: io.StringIO, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["warmup", str(PRODUCT), str(PRODUCT), "-d", "reference"]) == 0
    assert [line[:4] for line in slow.getvalue().splitlines()] == ["  0%", " 50%"]
    assert len(capsys.readouterr().out.splitlines()) == 2


def test_the_benchmark_tells_the_time_left(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    from anydml.bench import Result, command

    def rows(cases: Any, device: Any, peers: Any, runs: int, progress: Any) -> list[Any]:
        clock.now += 10
        progress("[2/4] JOIN", 1, 4)
        return []

    file = io.StringIO()
    monkeypatch.setattr(command, "run", rows)
    monkeypatch.setattr(sys, "stderr", file)
    command._measure(Result({}), [], None, None, True, None, None, (0, 1))  # type: ignore[arg-type]
    assert file.getvalue() == " 25% [2/4] JOIN, 30 s left\n"
