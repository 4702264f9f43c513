"""DxDispatch's options on the command line: timing as it has it, and hints for those that are none here."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from anydml.cli.dxdispatch_options import HINTS
from anydml.frontends.dxdispatch import Timing, timing
from anydml.frontends.dxdispatch.jsonc import parse
from anydml.frontends.dxdispatch.timing import Verbosity, statistics_of

PRODUCT = Path(__file__).parent.parent / "examples" / "cumulative_product.json"
RESULT = "Resource 'Out': 2, 8, 64, 192"
TIMES = r"\d+\.\d{4} ms average, \d+\.\d{4} ms min, \d+\.\d{4} ms median, \d+\.\d{4} ms max"


class Clock:
    """Seconds that pass with each dispatch and each pause."""

    def __init__(self, *seconds: float) -> None:
        self.now = 0.0
        self.seconds = list(seconds)
        self.paused: list[float] = []

    def perf_counter(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.paused.append(seconds)
        self.now += seconds

    def dispatch(self) -> None:
        self.now += self.seconds.pop(0) if len(self.seconds) > 1 else self.seconds[0]


@pytest.fixture
def sampled(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The clock behind, and the milliseconds of, the samples of dispatches that take the given milliseconds."""

    def sample(how: Timing, *milliseconds: float) -> tuple[Clock, list[float]]:
        clock = Clock(*(each / 1000 for each in milliseconds))
        monkeypatch.setattr(timing, "time", clock)
        shares: list[float] = []
        samples = how.sample(clock.dispatch, shares.append)
        assert shares == sorted(shares)
        assert shares[-1] == 1
        return clock, [round(1000 * each, 6) for each in samples]

    return sample


# How often a dispatch runs


def test_iterations(sampled: Any) -> None:
    assert sampled(Timing(), 5)[1] == [5]
    assert sampled(Timing(iterations=3), 5, 1, 2)[1] == [5, 1, 2]


def test_repeated_dispatches_are_one_sample(sampled: Any) -> None:
    clock, samples = sampled(Timing(iterations=2, repeat=2), 5, 1, 2, 4)
    assert samples == [3, 3]
    assert clock.now == pytest.approx(0.012)


def test_a_time_to_run_overrides_iterations(sampled: Any) -> None:
    assert sampled(Timing(iterations=1, milliseconds=10), 3)[1] == [3, 3, 3, 3]
    assert sampled(Timing(milliseconds=0), 3)[1] == [3]


def test_an_interval_is_from_start_to_start(sampled: Any) -> None:
    clock, samples = sampled(Timing(iterations=3, interval=10), 4, 12, 1)
    assert samples == [4, 12, 1]
    assert clock.paused == [pytest.approx(0.006)]


def test_a_pause_counts_as_time_to_run(sampled: Any) -> None:
    assert len(sampled(Timing(milliseconds=25, interval=10), 1)[1]) == 3


# What is told


def test_the_median_is_of_the_hot_samples() -> None:
    samples = [0.9, 0.003, 0.001, 0.002, 0.004]
    assert list(Timing().report("sum", samples)) == ["Dispatch 'sum': 5 iterations, 3.0000 ms median (CPU)\n"]
    assert next(Timing(warmup=0).report("sum", samples[:2])).endswith("900.0000 ms median (CPU)\n")
    # At least one sample is hot.
    assert next(Timing(warmup=9).report("sum", samples)).endswith("4.0000 ms median (CPU)\n")
    assert next(Timing().report("sum", samples[:1])).endswith("900.0000 ms median (CPU)\n")


def test_statistics() -> None:
    assert statistics_of([0.002, 0.006, 0.001]) == (
        "3 samples, 3.0000 ms average, 1.0000 ms min, 2.0000 ms median, 6.0000 ms max"
    )


def test_cold_and_hot_samples_are_told_apart() -> None:
    lines = list(Timing(warmup=2, verbosity=Verbosity.EXTENDED).report("sum", [0.004, 0.002, 0.001]))
    assert lines == [
        "Dispatch 'sum': 3 iterations\n",
        "CPU Timings (Cold) : 2 samples, 3.0000 ms average, 2.0000 ms min, 4.0000 ms median, 4.0000 ms max\n",
        "CPU Timings (Hot)  : 1 samples, 1.0000 ms average, 1.0000 ms min, 1.0000 ms median, 1.0000 ms max\n",
    ]
    every = list(Timing(warmup=2, verbosity=Verbosity.ALL).report("sum", [0.004, 0.002, 0.001]))
    assert every[:3] == lines
    assert every[3:] == [
        "The timings of each iteration:\n",
        "iteration 0: 4.0000 ms (CPU)\n",
        "iteration 1: 2.0000 ms (CPU)\n",
        "iteration 2: 1.0000 ms (CPU)\n",
    ]


# The command line


@pytest.mark.parametrize(
    ("options", "lines"),
    [
        ("", []),
        ("-i 3", [r"Dispatch 'product': 3 iterations, \d+\.\d{4} ms median \(CPU\)"]),
        ("-r 2", [r"Dispatch 'product': 1 iterations, \d+\.\d{4} ms median \(CPU\)"]),
        ("-w 2", [r"Dispatch 'product': 1 iterations, .*"]),
        ("-I 1 -i 2", [r"Dispatch 'product': 2 iterations, .*"]),
        ("-t 0", [r"Dispatch 'product': 1 iterations, .*"]),
        (
            "-i 4 -w 1 -v 1",
            [
                r"Initialize 'product': \d+\.\d{4} ms",
                "Dispatch 'product': 4 iterations",
                rf"CPU Timings \(Cold\) : 1 samples, {TIMES}",
                rf"CPU Timings \(Hot\)  : 3 samples, {TIMES}",
            ],
        ),
        (
            "--dispatch_iterations 2 --dispatch_repeat 3 --warmup_samples 0 --timing_verbosity 2",
            [
                r"Initialize 'product': .*",
                "Dispatch 'product': 2 iterations",
                rf"CPU Timings \(Hot\)  : 2 samples, {TIMES}",
                "The timings of each iteration:",
                r"iteration 0: .* ms \(CPU\)",
                r"iteration 1: .* ms \(CPU\)",
            ],
        ),
        ("--milliseconds_to_run 0 --dispatch_interval 0", [r"Dispatch 'product': 1 iterations, .*"]),
    ],
)
def test_options_for_timing(anydml_: Any, options: str, lines: list[str]) -> None:
    code, out, err = anydml_("run", PRODUCT, *options.split())
    assert code == 0
    *told, result = out.splitlines()
    assert len(told) == len(lines)
    assert all(re.fullmatch(line, each) for line, each in zip(lines, told, strict=True)), told
    assert result == RESULT
    assert err == ("Running on 'cpu'\n" if options else "")


@pytest.mark.parametrize(
    ("option", "value"),
    [("-i", "0"), ("-r", "0"), ("-r", "x"), ("-t", "-1"), ("-w", "1.5"), ("-I", ""), ("-v", "3"), ("-v", "yes")],
)
def test_what_is_no_time(anydml_: Any, option: str, value: str) -> None:
    code, _, err = anydml_("run", PRODUCT, f"{option}={value}" if value.startswith("-") else option, value)
    assert code == 2
    assert "error: " in err


def test_times_of_models_run_in_python() -> None:
    from anydml.frontends.dxdispatch import load

    pieces: list[str] = []
    load(PRODUCT).run(timing=Timing(iterations=3, verbosity=Verbosity.EXTENDED), write=pieces.append)
    text = "".join(pieces)
    assert text.startswith("Initialize 'product': ")
    assert "CPU Timings (Hot)  : 2 samples" in text


@pytest.mark.parametrize("option", [name for names in HINTS for name in names if name != "-d"])
def test_hints_for_options_of_dxdispatch(anydml_: Any, option: str) -> None:
    code, out, err = anydml_("run", PRODUCT, option)
    assert (code, out) == (2, "")
    hint = next(text for names, text in HINTS.items() if option in names)
    assert err.splitlines()[-1] == f"{option}: {hint}"


def test_hints_for_the_debug_layer_and_for_a_model_without_a_command(anydml_: Any) -> None:
    for arguments in ((PRODUCT, "-d"), ("-d", PRODUCT), (PRODUCT, "-d", "-i", "3")):
        code, _, err = anydml_("run", *arguments)
        assert code == 2
        assert "DxDispatch's debug layer" in err
    assert "debug layer" not in anydml_("run")[2]
    code, _, err = anydml_(PRODUCT)
    assert code == 2
    assert err.endswith(f"anydml run {PRODUCT} runs a model\n")
    code, _, err = anydml_("rum", PRODUCT)
    assert code == 2
    assert "runs a model" not in err


@pytest.mark.parametrize(
    ("command", "name", "found"),
    [
        ("warmup", "a.onnx", "an ONNX model"),
        *((command, "a.bin", "a serialised graph") for command in ("run", "check", "warmup", "draw")),
    ],
)
def test_files_that_are_no_models(anydml_: Any, tmp_path: Path, command: str, name: str, found: str) -> None:
    rest = ["-o", tmp_path / "a.svg"] if command == "draw" else ["-d", "cpu"] if command == "warmup" else []
    code, out, err = anydml_(command, tmp_path / name, *rest)
    assert code == 2
    assert found in out + err
    assert "(M1)" in out + err


@pytest.mark.parametrize("command", ["run", "check", "warmup", "draw"])
def test_unknown_fields_pass_where_they_are_allowed(anydml_: Any, tmp_path: Path, command: str) -> None:
    path = tmp_path / "model.json"
    path.write_text(json.dumps({**parse(PRODUCT.read_text()), "comment": "a product"}))
    rest = ["-o", tmp_path / "a.svg"] if command == "draw" else ["-d", "cpu"] if command == "warmup" else []
    code, out, err = anydml_(command, path, *rest)
    assert code == 1
    assert "comment: found an unknown field" in out + err
    assert anydml_(command, path, "--allow-unknown-fields", *rest)[0] == 0


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("DML_MULTIHED_ATTENTION_OPERATOR_DESC", "Did you mean MULTIHEAD_ATTENTION"),
        ("DML_OPERATOR_JOINT", "Did you mean JOIN?"),
    ],
)
def test_names_of_the_header(anydml_: Any, name: str, found: str) -> None:
    code, _, err = anydml_("ops", name)
    assert code == 1
    assert found in err
