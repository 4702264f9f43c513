"""``anydml bench``: how near the operators are to the limit that memory sets, and where others are.

Every time is divided by that of the fastest copy that the machine shows in the same run: one that reads and writes as
many bytes, by memmove on all threads, by NumPy, or by PyTorch; on a GPU, from its memory to its memory. Of movement,
those are the bytes of all lines of 64 bytes that it touches. Reductions, which write next to nothing, are divided by
the time to read their input once. Rows count only once their results have been checked.
"""

from __future__ import annotations

import platform
import statistics
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import Any

from .. import __version__
from ..core.errors import Violation, violation
from ..device import Device
from .cases import LARGE, Case, Scan, Work, format_size
from .peers import Peers, cores, processor
from .places import Place, Run, place_of, speedup

RUNS, QUICK_RUNS, SMALL_RUNS = 7, 3, 25
STEADY = 0.15
"""A yardstick whose middle half spreads wider, relative to its median, is taken again."""
ATTEMPTS = 3
DISPATCH_LIMIT, COMPILE_LIMIT = 1.3, 3.0
"""On a GPU: of a dispatch of 12 elements beside PyTorch's call, and of the seconds of an operator's first run."""
FASTER, COMPUTING_FASTER = 1.05, 1.1
"""A peer that takes less than our time by this counts as faster; the second where products take the time."""
EXACT = 1.0
"""Units in the last place, by which a peer's function may be off at most for that."""
LESS_EXACT, LESS_EXACT_IN_MEMORY = 1.6, 1.1
"""Beside others we may take so many times as long, in the caches and beyond them."""
_FAR, _SLOW = 3.0, 0.02
"""A peer that takes so many times as long as we, and at least so many seconds, is not worth more runs."""
_TRIALS = 3
"""That tell how often a short run is repeated."""
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
    """0 on a GPU."""
    limit: float | None
    """Of the ratio: for large tensors, on several threads or a GPU. Elsewhere what counts is that no peer is faster."""
    engine: str = ""
    error: str = ""
    """What is wrong with the result; no times then."""
    seconds: float = 0.0
    ratio: float = 0.0
    yardstick: str = ""
    yardstick_seconds: float = 0.0
    spread: float = 0.0
    steady: bool = True
    products: int = 0
    """Multiplications, where these take longer than memory does; the ratio to a copy says little then."""
    plain_ratio: float | None = None
    """Of the plain case, where the limit is one beside that."""
    peers: dict[str, float] = field(default_factory=dict)
    """The ratio of each."""
    unmeasured: dict[str, str] = field(default_factory=dict)
    """Why others are not among them."""
    errors: dict[str, float] = field(default_factory=dict)
    """Of functions: ours and the peers' largest, in units in the last place."""

    @property
    def verdict(self) -> str:
        """WRONG; or MISS where the limit is missed, and BEATEN where a peer is faster; else ok."""
        if self.error:
            return "WRONG"
        words = {"MISS": self.limit is not None and self.ratio > self.limit, "BEATEN": self.is_beaten}
        return " ".join(word for word, holds in words.items() if holds) or "ok"

    @property
    def is_beaten(self) -> bool:
        return any(ratio * self._allowed(peer) < self.ratio for peer, ratio in self.peers.items())

    def _allowed(self, peer: str) -> float:
        """How many times as long as a peer we may take."""
        if self.errors.get(peer, 0) <= EXACT:
            return self.faster
        return LESS_EXACT_IN_MEMORY if self.size >= LARGE else LESS_EXACT

    @property
    def faster(self) -> float:
        return COMPUTING_FASTER if self.products else FASTER

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
    compiling: dict[str, float] = field(default_factory=dict)
    """Seconds of each operator's first run on a GPU, with nothing compiled before."""
    problems: list[str] = field(default_factory=list)
    """What could not be measured at all."""
    seconds: float = 0.0
    """That all of it took."""
    interrupted: bool = False
    seed: int | None = None
    """Of the order in which rows were measured; None where that is the matrix's own."""
    left: dict[int, int] = field(default_factory=dict)
    """Rows that no time was left for, by the number of threads."""

    def as_json(self) -> dict[str, Any]:
        rows = [asdict(row) | {"verdict": row.verdict} for row in self.rows]
        return {**asdict(self), "rows": rows}


Progress = Callable[[str, int, int], None]


def header(device: Device, peers: Peers) -> dict[str, Any]:
    """The machine, and the versions of all that is measured."""
    place = place_of(device)
    return {
        "processor": place.name or processor(),
        "cores": cores(),
        "threads": peers.threads,
        "speedup": speedup(peers.threads) if peers.threads > 1 else None,
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "anydml": __version__,
        "device": device.name,
        "build": place.build(),
        "peers": peers.versions,
        "absent": peers.absent,
    }


def run(
    cases: Sequence[Case], device: Device, peers: Peers, runs: int = RUNS, progress: Progress = lambda *at: None
) -> Iterator[Row | Violation]:
    """Measures the cases one by one, or tells that there is no room for one; the arrays of one are gone before the next
    are made."""
    place = place_of(device)
    place.wake()
    for i, case in enumerate(cases):

        def tell(text: str, case: Case = case, i: int = i) -> None:
            title = f"[{i + 1}/{len(cases)}] {case.operator} {case.title}"
            progress(f"{title}{text and ': '}{text}", i, len(cases))

        tell("")
        peers.tell = tell
        row: Row | None = None
        with suppress(*place.no_memory):
            row = measure(case, device, peers, runs)
        place.release()  # only here what was made is gone, as an exception holds it
        yield row or _no_room(case, device)


def _no_room(case: Case, device: Device) -> Violation:
    remedy = "Free what others hold there, or choose smaller rows with --filter"
    found = f"no room for {case.dtype} {case.name}"
    expected = f"a few times {format_size(case.size)} on {device.name}"
    return violation(case.operator, "(D6)", "", found, expected, remedy)


def measure(case: Case, device: Device, peers: Peers, runs: int = RUNS) -> Row:
    """One row: the check, then the times."""
    work = case.make(device)
    has_limit = case.has_limit(peers.threads)
    limit = case.limit if has_limit else None
    row = Row(case.operator, case.cell, case.name, case.dtype, case.size, peers.threads, limit)
    row.engine = work.compiled.engine
    row.products = work.products
    row.error = wrong(work)
    if row.error:
        return row
    if work.error is not None:
        row.errors["anydml"] = work.error(work.output)
    plain = case.plain() if has_limit else None
    beside = None if plain is None else plain.make(device)
    more = 1.0 if plain is None else case.times_plain(plain)
    with work.yardsticks(peers.modules, peers.threads) as copies:
        for _ in range(ATTEMPTS):
            _measure(row, case, work, beside, more, copies, runs)
            if row.steady:
                break
        _measure_peers(row, case, work, peers, device, copies[row.yardstick], runs)
    return row


def wrong(work: Work) -> str:
    """What is wrong with the operator's result, "" if nothing: two runs into differently poisoned outputs agree, which
    an element left out would not, and hold what the case expects."""
    first: Any = None
    for poison in (0xA5, 0x5A):
        work.place.poison(work.output, poison)
        work.compiled.dispatch(work.inputs, work.outputs)
        if first is None:
            first = work.place.copy(work.output)
    if not work.place.are_same(first, work.output):
        return "two runs differ, or left elements out"
    del first
    return work.check(work.output)


def _measure(
    row: Row, case: Case, work: Work, beside: Work | None, more: float, copies: dict[str, Run], runs: int
) -> None:
    """Beside a plain case, whose time counts so many times as it has fewer elements."""
    ours: dict[str, Run] = {"anydml": _dispatch(work)}
    if beside is not None:
        ours["plain"] = _dispatch(beside)
    times = interleaved({**copies, **ours}, runs, work.place)
    row.yardstick = min(copies, key=lambda name: statistics.median(times[name]))
    samples = times[row.yardstick]
    row.yardstick_seconds = statistics.median(samples)
    row.spread = spread(samples)
    row.steady = row.spread <= STEADY
    row.seconds = statistics.median(times["anydml"])
    row.ratio = row.seconds / row.yardstick_seconds
    if beside is not None:
        row.plain_ratio = more * statistics.median(times["plain"]) / row.yardstick_seconds
        row.limit = case.limit_beside(row.plain_ratio)


def _dispatch(work: Work) -> Run:
    inputs, outputs = work.inputs, work.outputs
    return lambda: work.compiled.dispatch(inputs, outputs)


def _measure_peers(row: Row, case: Case, work: Work, peers: Peers, device: Device, copy: Run, runs: int) -> None:
    """Each beside a copy and us, so that whoever is faster is so at the same time. Afterwards, as ten slow ones would
    stand between a copy and us."""
    for name, peer in peers.of(case, work, device):
        if isinstance(peer, str):
            row.unmeasured[name] = peer
            continue
        if peer.error is not None:
            row.errors[name] = peer.error
        # What compiles at its first run has done so before this one.
        if peer.seconds > max(_SLOW, _FAR * row.seconds):
            row.peers[name] = peer.seconds / row.yardstick_seconds
            continue
        times: dict[str, list[float]] = {}
        for _ in range(ATTEMPTS):
            functions = {"copy": copy, "anydml": _dispatch(work), "peer": peer.run}
            for key, samples in interleaved(functions, runs, work.place).items():
                times.setdefault(key, []).extend(samples)
            ours, theirs = statistics.median(times["anydml"]), statistics.median(times["peer"])
            # Near the threshold more samples decide, whichever way it leans; long ones are steady by themselves.
            is_near = 1 / FASTER**2 < ours / theirs / row.faster < FASTER**2
            if not is_near or theirs > _LONG:
                break
        row.peers[name] = theirs / ours * row.ratio


def spread(samples: Sequence[float]) -> float:
    """The width of the middle half of the samples, relative to the median."""
    low, _, high = statistics.quantiles(samples, n=4, method="inclusive") if len(samples) > 1 else (0.0, 0.0, 0.0)
    return (high - low) / statistics.median(samples)


def interleaved(functions: dict[str, Run], runs: int, place: Place) -> dict[str, list[float]]:
    """Seconds of each in turn, so that what disturbs the machine disturbs all; short ones repeated within a run."""
    repeats = {}
    for name, function in functions.items():
        # The least, as the first ones wake threads, and load what is called.
        least = min(place.seconds(function) for _ in range(_TRIALS))
        repeats[name] = max(1, round(place.least_seconds / max(least, 1e-8)))
    times: dict[str, list[float]] = {name: [] for name in functions}
    for _ in range(runs):
        for name, function in functions.items():
            place.calm()
            times[name].append(place.seconds(function, repeats[name]))
    return times


def small_calls(device: Device) -> dict[str, float]:
    """Seconds of a call with 12 elements: the best of many runs, as only what disturbs makes one longer."""
    from ..functions.scan import cumulative_summation

    work = Scan("CUMULATIVE_SUMMATION", "12 elements", 1.0, "float32", size=48, shape=lambda n: (n,)).make(device)
    x, out = work.inputs[0], work.output
    inputs, outputs = [x], [out]
    library, theirs = work.place.summation(x, out)
    calls: dict[str, Run] = {
        "compiled.dispatch": lambda: work.compiled.dispatch(inputs, outputs),
        "cumulative_summation(out=)": lambda: cumulative_summation(x, out=out, device=device),
        library: theirs,
    }
    return {name: min(samples) for name, samples in interleaved(calls, SMALL_RUNS, work.place).items()}
