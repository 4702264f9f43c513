"""``anydml bench``: what it says, not how fast it finds anything."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from anydml import Device, DMLError
from anydml.bench import Result, Row, header, measure, spread, wrong
from anydml.bench.accuracy import accuracy
from anydml.bench.cases import Case, matrix
from anydml.bench.command import bench
from anydml.bench.peers import Peers
from anydml.bench.report import as_json, page
from anydml.cli import main

TINY = 2048
"""Bytes of a tensor."""


@pytest.fixture(autouse=True)
def _own_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """The command sets OMP_NUM_THREADS, for runtimes not loaded yet; other libraries would take long to load."""
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    for name in ("torch", "onnxruntime", "jax"):
        monkeypatch.setitem(sys.modules, name, None)


def titles(cases: list[Case]) -> list[str]:
    return [f"{case.operator} {case.title}" for case in cases]


def test_rows_have_names_of_their_own() -> None:
    assert len(set(titles(matrix()))) == len(matrix())
    assert set(titles(matrix(quick=True))) < set(titles(matrix()))


def test_every_row_computes_what_its_check_expects() -> None:
    device = Device("cpu")
    problems = {case.title: wrong(case.make(device)) for case in matrix(sizes=[TINY])}
    assert not {title: problem for title, problem in problems.items() if problem}


@pytest.mark.parametrize("text", ["CUMULATIVE_PRODUCT float32 rows of 32", "JOIN uint8 2 runs of 8 B", "2x2 stride 2"])
def test_checks_notice_a_wrong_element(text: str) -> None:
    case = next(case for case in matrix(sizes=[TINY]) if text in f"{case.operator} {case.title}")
    work = case.make(Device("cpu"))
    work.compiled.dispatch(work.inputs, [work.output])
    assert not work.check(work.output)
    work.output.reshape(-1)[-1] += 1
    assert work.check(work.output)


def test_an_element_left_out_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    work = matrix(sizes=[TINY])[0].make(Device("cpu"))
    monkeypatch.setattr(type(work.compiled), "dispatch", lambda self, inputs, outputs: None)
    assert "left elements out" in wrong(work)


def test_what_is_wrong_has_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("anydml.bench.cases.Scan._check", lambda self, x, y: "all wrong")
    row = measure(matrix(sizes=[TINY])[0], Device("cpu"), Peers(1), runs=1)
    assert (row.error, row.verdict, row.seconds, row.peers) == ("all wrong", "WRONG", 0, {})


def test_the_command_prints_and_writes_what_it_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "bench.json"
    assert bench(text="rows of 32", quick=True, threads=1, json_file=str(path), sizes=[TINY]) == 0
    out, err = capsys.readouterr()
    written = json.loads(path.read_text())
    assert set(written) == {"header", "rows", "accuracy", "small", "interrupted"}
    assert {"processor", "cores", "threads", "python", "anydml", "peers", "absent"} <= set(written["header"])
    assert set(written["header"]["absent"]) == {"torch", "onnxruntime", "jax"}
    assert len(written["rows"]) == 4
    for row in written["rows"]:
        assert row["seconds"] > 0
        assert row["ratio"] == pytest.approx(row["seconds"] / row["yardstick_seconds"])
        assert row["verdict"] in ("ok", "MISS")
        assert set(row["peers"]) == {"numpy"}
        assert row["threads"] == 1
    assert "[1/4] CUMULATIVE_SUMMATION float32 rows of 32" in err
    assert "4 rows:" in out


def test_a_wrong_result_is_the_exit_code(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("anydml.bench.cases.Scan._check", lambda self, x, y: "all wrong")
    assert bench(text="int64 one row", quick=True, threads=1, sizes=[TINY]) == 1
    assert "all wrong" in capsys.readouterr().out


def test_an_interruption_prints_what_there_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*args: object) -> object:
        yield Row("JOIN", "a case", "uint8", TINY, 1, 1.0, "cpu", "", 1.0, 1.0, "np.copyto", 1.0)
        raise KeyboardInterrupt

    monkeypatch.setattr("anydml.bench.command.run", interrupted)
    assert bench(threads=1, sizes=[TINY]) == 130
    out = capsys.readouterr().out
    assert "Interrupted" in out
    assert "a case" in out


def test_one_thread_is_measured_beside_several(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    path = tmp_path / "bench.json"
    assert bench(text="int64 one row, 2 KiB", quick=True, json_file=str(path), sizes=[TINY]) == 0
    assert [row["threads"] for row in json.loads(path.read_text())["rows"]] == [2, 2, 1, 1]


def test_accuracy_is_within_the_promise() -> None:
    lines = [line for line in accuracy(Peers(1), Device("cpu"), 1 << 17) if line["library"] == "anydml"]
    assert [(line["dtype"], line["range"]) for line in lines] == [
        (dtype, range_) for dtype in ("float32", "float16") for range_ in ("(0, 1)", "(-1, 1)")
    ]
    assert all(line["mean"] <= line["worst"] <= 1 for line in lines)


def test_spread_is_that_of_the_middle_half() -> None:
    assert spread([1.0, 1.0, 1.0, 1.0, 9.0]) == 0
    assert spread([1.0, 2.0, 3.0]) == pytest.approx(0.5)


def test_infinities_are_json() -> None:
    result = Result(header(Device("cpu"), Peers(1)), accuracy=[{"worst": np.inf}])
    assert json.loads(as_json(result))["accuracy"] == [{"worst": "inf"}]
    assert page(Result(result.header))


def test_a_chart_without_matplotlib_names_the_remedy(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert main(["bench", "--plot", "bench.svg"]) == 1
    assert "pip install 'anydml[plot]'" in capsys.readouterr().err
    with pytest.raises(DMLError):
        bench(plot_file="bench.svg", sizes=[TINY])


def test_a_chart_shows_every_row(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    path = tmp_path / "bench.svg"
    assert bench(text="rows of 32", quick=True, threads=1, plot_file=str(path), sizes=[TINY]) == 0
    chart = path.read_text()
    assert all(text in chart for text in ("CUMULATIVE_SUMMATION", "int64 rows of 32, 2 KiB", "numpy", "limit"))
