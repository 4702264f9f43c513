"""The command: what ``anydml bench`` does with its options."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from random import randrange
from typing import Any

from ..core.errors import Violation
from ..device import Device
from ..frontends.dxdispatch.files import write_whole
from ..runtime.context import DEVICE_NAMES
from ..terminal import Progress, show
from . import QUICK_RUNS, RUNS, Result, header, run, small_calls
from .cases import LARGE, LITTLE_ON_GPU, MIDDLE, SMALL, Case
from .matrix import matrix, matrix_on_gpu
from .odd_shapes import odd_shapes
from .peers import HostPeers, Peers, cores
from .places import place_of
from .report import as_json, from_json, page
from .sample import sampled

SEEDS = 10_000
"""So many there are where none is given: short ones, which one types again."""


def bench(
    *,
    device: str = "cpu",
    text: str = "",
    quick: bool = False,
    threads: int | None = None,
    json_file: str | None = None,
    plot_file: str | None = None,
    sizes: Sequence[int] | None = None,
    rows_only: bool = False,
    sample: int | None = None,
    seed: int | None = None,
    minutes: float | None = None,
    part: tuple[int, int] = (0, 1),
) -> int:
    """Measures, prints and writes; `sizes` is for tests.

    On a GPU there are rows of shapes at random, those of the seed. With `sample` or `minutes` it measures rows alone,
    in an order of `sampled`: so many of them, until so much time has passed, half of it on 1 thread where that is
    measured as well. A `part` (i, n) has every n-th row of those from the i-th on: several devices measure one each.

    Returns:
        1 where a result is wrong, where rows could not be measured or there are none, 130 where interrupted, else 0.
    """
    if plot_file is not None:
        from .plot import check

        check()
    is_cpu, every, shapes = device in DEVICE_NAMES, threads is None, None
    peers: Peers
    if is_cpu:
        threads = threads or int(os.environ.get("OMP_NUM_THREADS", "0").partition(",")[0] or 0) or cores()
        # Before any OpenMP runtime is loaded, which looks at it once.
        os.environ["OMP_NUM_THREADS"] = str(threads)
        place, peers = Device(device), HostPeers(threads)
        cases = matrix(quick, sizes or (LARGE, MIDDLE, SMALL))
    else:
        from .gpu_peers import GpuPeers

        place = Device(device)
        peers = GpuPeers(place_of(place))
        cases = matrix_on_gpu(quick, sizes)
        if not quick and sizes is None:
            shapes = randrange(SEEDS) if seed is None else seed
            cases += odd_shapes(shapes)
    chosen = re.compile(".*".join(map(re.escape, text.split("*"))), re.IGNORECASE)
    cases = [case for case in cases if chosen.search(f"{case.operator} {case.title}")]
    if not cases:
        print(f"anydml: no row has {text!r} in its operator or case, such as JOIN or one row", file=sys.stderr)
        return 1
    result = Result(header(place, peers) | ({} if shapes is None else {"shapes": shapes}))
    is_sample = sample is not None or minutes is not None
    if is_sample:
        result.seed = randrange(SEEDS) if seed is None else seed
    start = time.monotonic()
    has_one_thread = every and peers.threads > 1 and device == "cpu"
    if minutes is not None and has_one_thread:
        minutes /= 2
    try:
        _measure(result, cases, place, peers, quick, sample, minutes, part)
        if not (text or rows_only or is_sample):
            _measure_more(result, place, peers, quick, sizes)
        if has_one_thread:
            limits = {"sample": sample, "seed": result.seed, "minutes": minutes, "part": part}
            _measure_on_one_thread(result, {"text": text, "quick": quick, **limits}, sizes)
    except KeyboardInterrupt:
        result.interrupted = True
    result.seconds = time.monotonic() - start
    show(page(result))
    if json_file is not None:
        data = as_json(result).encode()
        write_whole(Path(json_file), lambda file: file.write(data))
    if plot_file is not None:
        from .plot import plot

        chart = plot(result)
        write_whole(Path(plot_file), lambda file: file.write(chart))
    if result.interrupted:
        return 130
    return 1 if result.problems or any(row.error for row in result.rows) else 0


def _measure(
    result: Result,
    cases: Sequence[Case],
    device: Device,
    peers: Peers,
    quick: bool,
    sample: int | None,
    minutes: float | None,
    part: tuple[int, int],
) -> None:
    """Adds to the result as it goes, so that what there is at an interruption is kept."""
    places = {(case.operator, case.dtype, case.name, case.size): i for i, case in enumerate(cases)}
    first, parts = part
    chosen = (cases if result.seed is None else sampled(cases, result.seed)[:sample])[first::parts]
    end = None if minutes is None else time.monotonic() + 60 * minutes
    measured = 0
    try:
        with Progress(sys.stderr) as progress:
            for row in run(chosen, device, peers, QUICK_RUNS if quick else RUNS, progress.step):
                measured += 1
                if isinstance(row, Violation):
                    result.problems.append(str(row))
                else:
                    result.rows.append(row)
                if end is not None and time.monotonic() >= end:
                    break
    finally:
        if minutes is not None:
            result.left[peers.threads] = len(chosen) - measured
        # Tables show them in the order that the matrix has them in.
        result.rows.sort(key=lambda row: places.get((row.operator, row.dtype, row.name, row.size), len(places)))


def _measure_more(result: Result, device: Device, peers: Peers, quick: bool, sizes: Sequence[int] | None) -> None:
    """What is no row."""
    from .accuracy import QUICK_VALUES, VALUES, accuracy

    with Progress(sys.stderr) as progress:
        progress.step("a call with 12 elements", 0, 3)
        result.small = small_calls(device)
        if not device.memory.is_host:
            from .first import first_runs

            progress.step("first runs, with nothing compiled", 1, 3)
            try:
                result.compiling = first_runs(device.name, min(sizes or [LITTLE_ON_GPU]))
            except RuntimeError as problem:
                result.problems.append(f"first runs were not measured: {problem}")
        progress.step("accuracy", 2, 3)
        for line in accuracy(peers, device, QUICK_VALUES if quick else VALUES):
            result.accuracy.append(line)


def _measure_on_one_thread(result: Result, given: dict[str, Any], sizes: Sequence[int] | None) -> None:
    """The same rows in a process of its own, as an OpenMP runtime asks for the number of threads when it is loaded."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.json"
        options = {**given, "threads": 1, "json_file": str(path), "sizes": sizes and tuple(sizes), "rows_only": True}
        code = f"from anydml.bench.command import bench; bench(**{options!r})"
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        command = [sys.executable, "-c", code]
        done = subprocess.run(command, stdout=subprocess.DEVNULL, env=environment, check=False)
        if not path.exists():
            result.problems.append(f"on 1 thread nothing was measured: its process ended with {done.returncode}")
            return
        found = from_json(path.read_text())
    result.rows += found.rows
    result.left |= found.left
