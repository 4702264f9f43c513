"""``anydml bench``: how near the operators are to the limit that memory sets, and where others are.

Every time is divided by that of the fastest copy that the machine shows in the same run: one that reads and writes as
many bytes, by memmove on all threads, by NumPy, or by PyTorch. Rows count only once their results have been checked.
"""

from __future__ import annotations

import ctypes
import platform
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from .. import __version__
from ..device import Device
from ..layout import Array
from .cases import Case, Work
from .peers import Peers, Run, cores, processor

RUNS, QUICK_RUNS = 7, 3
STEADY = 0.15
"""A yardstick whose middle half spreads wider, relative to its median, is taken again."""
ATTEMPTS = 3
_LEAST_SECONDS = 1e-3
"""What is shorter is repeated, and the time divided."""
FASTER = 1.05
"""A peer that takes less than our time by this counts as faster."""
_FAR, _SLOW = 3.0, 0.02
"""A peer that takes so many times as long as we, and at least so many seconds, is not worth more runs."""
_LONG = 0.1
"""Seconds of a run beyond which it is not taken again for being near ours."""


@dataclass
class Row:
    """What was measured of a case; times in seconds, ratios to the yardstick."""

    operator: str
    cell: str
    name: str
    dtype: str
    size: int
    threads: int
    limit: float | None
    """Of the ratio: for large tensors on several threads. Elsewhere what counts is that no peer is faster."""
    engine: str = ""
    error: str = ""
    """What is wrong with the result; no times then."""
    seconds: float = 0.0
    ratio: float = 0.0
    yardstick: str = ""
    yardstick_seconds: float = 0.0
    spread: float = 0.0
    steady: bool = True
    plain_ratio: float | None = None
    """Of the plain case, where the limit is one beside that."""
    peers: dict[str, float] = field(default_factory=dict)
    """The ratio of each."""
    unmeasured: dict[str, str] = field(default_factory=dict)
    """Why others are not among them."""

    @property
    def verdict(self) -> str:
        """WRONG; or MISS where the limit is missed, and BEATEN where a peer is faster; else ok."""
        if self.error:
            return "WRONG"
        words = {"MISS": self.limit is not None and self.ratio > self.limit, "BEATEN": self.is_beaten}
        return " ".join(word for word, holds in words.items() if holds) or "ok"

    @property
    def is_beaten(self) -> bool:
        return self.best_peer is not None and self.best_peer[1] * FASTER < self.ratio

    @property
    def best_peer(self) -> tuple[str, float] | None:
        return min(self.peers.items(), key=lambda peer: peer[1], default=None)


@dataclass
class Result:
    """All of a run, and the machine that it was made on."""

    header: dict[str, Any]
    rows: list[Row] = field(default_factory=list)
    accuracy: list[dict[str, Any]] = field(default_factory=list)
    small: dict[str, float] = field(default_factory=dict)
    """Seconds of a call with 12 elements."""
    problems: list[str] = field(default_factory=list)
    """What could not be measured at all."""
    seconds: float = 0.0
    """That all of it took."""
    interrupted: bool = False

    def as_json(self) -> dict[str, Any]:
        rows = [asdict(row) | {"verdict": row.verdict} for row in self.rows]
        return {**asdict(self), "rows": rows}


Progress = Callable[[str, int, int], None]


def header(device: Device, peers: Peers) -> dict[str, Any]:
    """The machine, and the versions of all that is measured."""
    info: dict[str, Any] = {
        "processor": processor(),
        "cores": cores(),
        "threads": peers.threads,
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "anydml": __version__,
        "device": device.name,
        "peers": peers.versions,
        "absent": peers.absent,
    }
    try:
        from .. import _native

        info["build"] = _native.build_info()
    except ImportError as problem:
        info["build"] = str(problem)
    return info


def run(
    cases: Sequence[Case], device: Device, peers: Peers, runs: int = RUNS, progress: Progress | None = None
) -> Iterator[Row]:
    """Measures the cases one by one; the arrays of one are gone before the next are made."""
    for i, case in enumerate(cases):
        if progress is not None:
            progress(f"{case.operator} {case.title}", i, len(cases))
        yield measure(case, device, peers, runs)


def measure(case: Case, device: Device, peers: Peers, runs: int = RUNS) -> Row:
    """One row: the check, then the times."""
    work = case.make(device)
    has_limit = case.is_large and peers.threads > 1
    limit = case.limit if has_limit else None
    row = Row(case.operator, case.cell, case.name, case.dtype, case.size, peers.threads, limit)
    row.engine = work.compiled.engine
    row.error = wrong(work)
    if row.error:
        return row
    plain = case.plain() if has_limit else None
    beside = None if plain is None else plain.make(device)
    with _copies(work.bytes_moved // 2, peers) as copies:
        for _ in range(ATTEMPTS):
            _measure(row, case, work, beside, copies, runs)
            if row.steady:
                break
        _measure_peers(row, case, work, peers, device, copies[row.yardstick], runs)
    return row


def wrong(work: Work) -> str:
    """What is wrong with the operator's result, "" if nothing: two runs into differently poisoned outputs agree, which
    an element left out would not, and hold what the case expects."""
    first: Array | None = None
    for poison in (0xA5, 0x5A):
        work.output.reshape(-1).view(np.uint8)[...] = poison
        work.compiled.dispatch(work.inputs, [work.output])
        if first is None:
            first = work.output.copy()
    bits = f"u{work.output.itemsize}"
    if not np.array_equal(first.view(bits), work.output.view(bits)):  # type: ignore[union-attr]
        return "two runs differ, or left elements out"
    del first
    return work.check(work.output)


def _measure(row: Row, case: Case, work: Work, beside: Work | None, copies: dict[str, Run], runs: int) -> None:
    ours: dict[str, Run] = {"anydml": _dispatch(work)}
    if beside is not None:
        ours["plain"] = _dispatch(beside)
    times = interleaved({**copies, **ours}, runs)
    row.yardstick = min(copies, key=lambda name: statistics.median(times[name]))
    samples = times[row.yardstick]
    row.yardstick_seconds = statistics.median(samples)
    row.spread = spread(samples)
    row.steady = row.spread <= STEADY
    row.seconds = statistics.median(times["anydml"])
    row.ratio = row.seconds / row.yardstick_seconds
    if beside is not None:
        row.plain_ratio = statistics.median(times["plain"]) / row.yardstick_seconds
        row.limit = case.limit * row.plain_ratio


def _dispatch(work: Work) -> Run:
    inputs, outputs = work.inputs, [work.output]
    return lambda: work.compiled.dispatch(inputs, outputs)


def _measure_peers(row: Row, case: Case, work: Work, peers: Peers, device: Device, copy: Run, runs: int) -> None:
    """Each beside a copy and us, so that whoever is faster is so at the same time. Afterwards, as ten slow ones would
    stand between a copy and us."""
    for name, peer in peers.of(case, work, device):
        if isinstance(peer, str):
            row.unmeasured[name] = peer
            continue
        # What compiles at its first run has done so before this one.
        if peer.seconds > max(_SLOW, _FAR * row.seconds):
            row.peers[name] = peer.seconds / row.yardstick_seconds
            continue
        times: dict[str, list[float]] = {}
        for _ in range(ATTEMPTS):
            for key, samples in interleaved({"copy": copy, "anydml": _dispatch(work), "peer": peer.run}, runs).items():
                times.setdefault(key, []).extend(samples)
            ours, theirs = statistics.median(times["anydml"]), statistics.median(times["peer"])
            # Near the threshold more samples decide, whichever way it leans; long ones are steady by themselves.
            is_near = 1 / FASTER**2 < ours / theirs / FASTER < FASTER**2
            if not is_near or theirs > _LONG:
                break
        row.peers[name] = theirs / ours * row.ratio


def spread(samples: Sequence[float]) -> float:
    """The width of the middle half of the samples, relative to the median."""
    low, _, high = statistics.quantiles(samples, n=4, method="inclusive") if len(samples) > 1 else (0.0, 0.0, 0.0)
    return (high - low) / statistics.median(samples)


def interleaved(functions: dict[str, Run], runs: int) -> dict[str, list[float]]:
    """Seconds of each in turn, so that what disturbs the machine disturbs all; short ones repeated within a run."""
    repeats = {}
    for name, function in functions.items():
        function()
        start = time.perf_counter()
        function()
        repeats[name] = max(1, round(_LEAST_SECONDS / max(time.perf_counter() - start, 1e-8)))
    times: dict[str, list[float]] = {name: [] for name in functions}
    for _ in range(runs):
        for name, function in functions.items():
            start = time.perf_counter()
            for _ in range(repeats[name]):
                function()
            times[name].append((time.perf_counter() - start) / repeats[name])
    return times


@contextmanager
def _copies(size: int, peers: Peers) -> Iterator[dict[str, Run]]:
    """Copies of that many bytes, by all that may be fastest."""
    source, target = np.ones(size, np.uint8), np.zeros(size, np.uint8)
    move = ctypes.memmove
    threads = peers.threads
    step = -(-size // threads // 64) * 64 or 64
    parts = [(target.ctypes.data + i, source.ctypes.data + i, min(step, size - i)) for i in range(0, size, step)]
    copies: dict[str, Run] = {"np.copyto": lambda: np.copyto(target, source)}
    torch = peers.modules.get("torch")
    if torch is not None:
        given, out = torch.from_numpy(source), torch.from_numpy(target)
        copies["torch.copy_"] = lambda: out.copy_(given)
    with ThreadPoolExecutor(threads) as pool:
        copies[f"memmove, {count_of(threads, 'thread')}"] = lambda: list(pool.map(lambda part: move(*part), parts))
        yield copies


def small_calls(device: Device) -> dict[str, float]:
    """Seconds of a call with 12 elements: the best of many runs, as only what disturbs makes one longer."""
    from timeit import repeat

    from ..functions import cumulative_summation
    from .cases import Scan

    work = Scan("CUMULATIVE_SUMMATION", "12 elements", 1.0, "float32", size=48, shape=lambda n: (n,)).make(device)
    x, out = work.inputs[0], work.output
    assert x is not None
    inputs, outputs = [x], [out]
    calls: dict[str, Run] = {
        "compiled.dispatch": lambda: work.compiled.dispatch(inputs, outputs),
        "cumulative_summation(out=)": lambda: cumulative_summation(x, out=out, device=device),
        "np.add.accumulate(out=)": lambda: np.add.accumulate(x, out=out),
    }
    return {name: min(repeat(call, number=1000, repeat=9)) / 1000 for name, call in calls.items()}


def count_of(number: int, thing: str) -> str:
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def progress_to(file: Any) -> Progress:
    """Shows which row is at work: on a terminal in one line, else a line each."""

    def show(title: str, done: int, total: int) -> None:
        text = f"[{done + 1}/{total}] {title}"
        if file.isatty():
            file.write(f"\r\x1b[K{text[:100]}")
        else:
            file.write(text + "\n")
        file.flush()

    return show
