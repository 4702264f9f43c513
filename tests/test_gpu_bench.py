"""``anydml bench`` on a GPU, or in Triton's interpreter: what it says, on tensors of a few kilobytes."""

from __future__ import annotations

import json
import sys
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from anydml import Device
from anydml.backends.torch.devices import is_interpreted
from anydml.bench import Row, measure, run, small_calls, wrong
from anydml.bench.accuracy import accuracy
from anydml.bench.cases import Case, Join, Pooling, Scan
from anydml.bench.command import bench
from anydml.bench.first import OPERATORS, first_runs
from anydml.bench.matrix import matrix_on_gpu
from anydml.bench.peer import Peer
from anydml.bench.places import place_of
from anydml.core.errors import Violation
from harness import GPU

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not GPU, reason="needs PyTorch and Triton: make test-gpu")]

TINY = 2048
SLOW = ("7x7", "3x3x3", "5x5, any number", "14x14, 2 samples")
"""What takes the interpreter long."""


@pytest.fixture(autouse=True)
def _quick_libraries(monkeypatch: pytest.MonkeyPatch) -> None:
    """PyTorch's compiler takes seconds for a row; NumPy stands for CuPy, which has no arrays without a GPU."""
    import torch._dynamo

    monkeypatch.setattr(torch, "compile", lambda function, **options: function)
    monkeypatch.setattr(torch._dynamo, "reset", lambda: None)
    if is_interpreted():
        monkeypatch.setitem(sys.modules, "cupy", np)


def rows(*texts: str) -> list[Case]:
    cases = matrix_on_gpu(sizes=[TINY])
    return [case for case in cases for text in texts if text in f"{case.operator} {case.title}"]


def peers(device: Device) -> Any:
    from anydml.bench.gpu_peers import GpuPeers

    return GpuPeers(place_of(device))


def test_every_cell_computes_what_its_check_expects() -> None:
    """Of what stands in tables, a row of each operator: its cells are made alike."""
    device = Device(GPU)
    kernels, others = [], {}
    for case in matrix_on_gpu(quick=True, sizes=[TINY]):
        if isinstance(case, (Scan, Join, Pooling)):
            kernels.append(case)
        elif not case.name.startswith(SLOW):
            others.setdefault(case.operator, case)
    cases = [*(case for case in kernels if not case.name.startswith(SLOW)), *others.values()]
    assert len(others) > 40
    assert not [problem for case in cases if (problem := wrong(case.make(device)))]


@pytest.mark.parametrize("text", ["PRODUCT float32 rows of 32,", "JOIN uint8 16 runs of 20 B", "global 14x14"])
@pytest.mark.parametrize("little", [0, 1 << 20])
def test_checks_notice_a_wrong_element(text: str, little: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """On the device, as of large tensors, and on the CPU."""
    monkeypatch.setattr("anydml.bench.matrix.LITTLE_ON_GPU", little)
    (case,) = rows(text)
    work = case.make(Device(GPU))
    work.compiled.dispatch(work.inputs, [work.output])
    assert not work.check(work.output)
    work.output.reshape(-1)[-1] += 2
    assert work.check(work.output)


def test_an_element_left_out_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    work = rows("SUMMATION float32 rows of 32,")[0].make(Device(GPU))
    monkeypatch.setattr(type(work.compiled), "dispatch", lambda self, inputs, outputs: None)
    assert "left elements out" in wrong(work)


@pytest.mark.parametrize("text", ["float16 rows of 32,", "PRODUCT int64 columns", "float32 runs of 12", "2x2 stride 2"])
def test_libraries_compute_what_we_do(text: str) -> None:
    device = Device(GPU)
    libraries = peers(device)
    assert {"torch", "torch.compile"} <= set(libraries.modules)
    (case,) = rows(text)
    reasons = {name: peer for name, peer in libraries.of(case, case.make(device), device) if not isinstance(peer, Peer)}
    assert set(reasons.values()) <= {"no quantised pooling"}
    assert ("cupy" in reasons) == ("2x2" in text)


@pytest.mark.parametrize(
    "text",
    [
        *("float32 ADD, a column for all, 1021", "float32 LOGICAL_GREATER_THAN, IF", "uint8 transpose, square"),
        *("float32 SUM, rows of 1021, transposed", "TOP_K float32 8 of rows of 1024,", "50 % of rows of 3"),
        *("NORMALIZATION1 float32 planes of 56 x 56, channels last", "POOLING float16 global 7x7,"),
    ],
)
def test_pytorch_computes_what_we_do_of_any_operator(text: str) -> None:
    """On tensors that lie there as the row asks for."""
    device = Device(GPU)
    libraries = peers(device)
    case = rows(text)[0]
    found = dict(libraries.of(case, case.make(device), device))
    assert all(isinstance(found[name], Peer) for name in ("torch", "torch.compile")), found
    assert {peer for peer in found.values() if isinstance(peer, str)} <= {"asked for scans and joins alone"}


def test_what_has_no_room_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    def make(self: Case, device: Device) -> Any:
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr("anydml.bench.cases.Join.make", make)
    device = Device(GPU)
    cases = [*rows("JOIN uint8 16 runs of 20 B"), *rows("int32 rows of 32,")]
    problem, row = run(cases, device, peers(device), 1)
    assert isinstance(problem, Violation)
    assert "no room for uint8 16 runs of 20 B, expected a few times 2 KiB on cuda (D6)" in str(problem)
    assert isinstance(row, Row)
    assert not row.error


def test_a_library_without_room_does_not_stop_the_row(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    def cumsum(*values: Any, **options: Any) -> Any:
        raise torch.OutOfMemoryError("CUDA out of memory")

    device, (case,) = Device(GPU), rows("int32 rows of 32,")
    libraries = peers(device)
    libraries.modules = {"torch": SimpleNamespace(__name__="torch", cumsum=cumsum)}
    row = measure(case, device, libraries, 1)
    assert row.ratio > 0
    assert row.unmeasured == {"torch": "no room for what it needs beside the row's tensors"}


def test_the_command_prints_writes_and_draws(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cases = rows("runs in each of 16 rows", "runs of 12 and", "SUMMATION float32 rows of 32,")
    monkeypatch.setattr("anydml.bench.first.first_runs", lambda device, size: {"JOIN": 0.5, "CUMULATIVE_PRODUCT": 4.0})
    monkeypatch.setattr("anydml.bench.command.matrix_on_gpu", lambda quick, sizes: cases)
    monkeypatch.setattr("anydml.bench.accuracy.QUICK_VALUES", 1 << 12)
    path, chart = tmp_path / "gpu.json", tmp_path / "gpu.svg"
    plot_file = str(chart) if find_spec("matplotlib") else None
    assert bench(device=GPU, quick=True, json_file=str(path), plot_file=plot_file, sizes=[TINY]) == 0
    out, err = capsys.readouterr()
    written = json.loads(path.read_text())
    assert (written["header"]["device"], written["header"]["threads"]) == (GPU, 0)
    assert written["problems"] == []
    assert {row["yardstick"] for row in written["rows"]} == {"torch.copy_"}
    assert all("torch" in row["peers"] and row["ratio"] > 0 for row in written["rows"])
    assert set(written["small"]) == {"compiled.dispatch", "cumulative_summation(out=)", "torch.cumsum(out=)"}
    assert {line["library"] for line in written["accuracy"]} == {"anydml", "torch"}
    assert all(line["worst"] <= 1 for line in written["accuracy"] if line["library"] == "anydml")
    assert "float32 rows of 32, 2 KiB: torch.compile compiles" in err
    assert "first runs" in err
    assert "threads" not in out
    assert ", Triton " in out
    assert "CUMULATIVE_PRODUCT  4.00 s  3.00 s  MISS" in out
    if plot_file is not None:
        assert "long runs" in chart.read_text()


def test_first_runs_are_those_of_every_operator() -> None:
    longest = first_runs(GPU, TINY)
    assert set(longest) == set(OPERATORS)
    # The interpreter compiles nothing.
    assert all(seconds >= 0 for seconds in longest.values())
    with pytest.raises(RuntimeError, match="D1"):
        first_runs("gpu", TINY)


def test_small_calls_and_accuracy_are_measured() -> None:
    device = Device(GPU)
    assert min(small_calls(device).values()) > 0
    assert [line["library"] for line in accuracy(peers(device), device, 1 << 12)][:2] == ["anydml", "torch"]
