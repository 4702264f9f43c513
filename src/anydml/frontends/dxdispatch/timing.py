"""Benchmark timing as DxDispatch has it: how often a dispatch runs, and the statistics of its samples.

The first samples of a dispatch are cold, as caches and threads are; at least the last is hot, and what is told is of
the hot ones. With several dispatches in an iteration, a sample is the mean of them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum


class Verbosity(IntEnum):
    """What is told of the times of a dispatch."""

    HOT = 0
    """The median of the hot samples."""
    EXTENDED = 1
    """Initialisation, cold and hot samples."""
    ALL = 2
    """Every sample, too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """How a dispatch is timed.

    Args:
        iterations: how many samples are taken.
        repeat: dispatches in each iteration.
        milliseconds: the time to run for, instead of a number of iterations; at least one is run.
        interval: the least milliseconds from the start of an iteration to that of the next.
        warmup: how many of the first samples are cold; the last sample never is.
        verbosity: what is told.
    """

    iterations: int = 1
    repeat: int = 1
    milliseconds: int | None = None
    interval: int = 0
    warmup: int = 1
    verbosity: Verbosity = Verbosity.HOT

    def sample(self, dispatch: Callable[[], object], progress: Callable[[float], object]) -> list[float]:
        """Runs a dispatch as often as is asked, and gives the seconds of each sample.

        Args:
            dispatch: runs it once.
            progress: takes the share that is done after each iteration, from 0 to 1.
        """
        samples: list[float] = []
        start = time.perf_counter()
        while True:
            begin = time.perf_counter()
            for _ in range(self.repeat):
                dispatch()
            end = time.perf_counter()
            samples.append((end - begin) / self.repeat)
            pause = max(0.0, self.interval / 1000 - (end - begin))
            if self.milliseconds is None:
                share = len(samples) / self.iterations
            else:
                share = (end + pause - start) * 1000 / self.milliseconds if self.milliseconds else 1
            progress(min(share, 1.0))
            if share >= 1:
                return samples
            if pause:
                time.sleep(pause)

    def report(self, name: str, samples: Sequence[float]) -> Iterator[str]:
        """The lines that tell of the samples of a dispatch."""
        cold = min(self.warmup, len(samples) - 1)
        head = f"Dispatch '{name}': {len(samples)} iterations"
        if self.verbosity == Verbosity.HOT:
            yield f"{head}, {1000 * median(samples[cold:]):.4f} ms median (CPU)\n"
            return
        yield f"{head}\n"
        for kind, part in (("(Cold)", samples[:cold]), ("(Hot) ", samples[cold:])):
            if part:
                yield f"CPU Timings {kind} : {statistics_of(part)}\n"
        if self.verbosity == Verbosity.ALL:
            yield "The timings of each iteration:\n"
            for i, seconds in enumerate(samples):
                yield f"iteration {i}: {1000 * seconds:.4f} ms (CPU)\n"


def median(samples: Sequence[float]) -> float:
    """The upper median, which is one of the samples."""
    return sorted(samples)[len(samples) // 2]


def statistics_of(samples: Sequence[float]) -> str:
    """The average, the least, the median and the largest of samples in seconds, in milliseconds.

    >>> statistics_of([0.003, 0.001, 0.0015])
    '3 samples, 1.8333 ms average, 1.0000 ms min, 1.5000 ms median, 3.0000 ms max'
    """
    values = {
        "average": sum(samples) / len(samples),
        "min": min(samples),
        "median": median(samples),
        "max": max(samples),
    }
    told = ", ".join(f"{1000 * value:.4f} ms {name}" for name, value in values.items())
    return f"{len(samples)} samples, {told}"
