"""ONNX models measured whole, beside ONNX Runtime on as many threads."""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..core.errors import DMLError
from ..device import Device
from ..frontends.dxdispatch.files import write_whole
from ..runtime.context import DEVICE_NAMES
from ..terminal import Block, Table, show
from .peers import cores

_SECONDS, _QUICK = 6.0, 1.0
"""For each model, of both runtimes together, behind loading."""
_BLOCK = 0.15
"""Seconds of one runtime before it is the other's turn: much longer than threads of the one before go on spinning."""
_MOST_ERROR = 1e-3
"""A share of the largest element, beyond which a result is not the same."""


class ModelRow(NamedTuple):
    """What was measured of a model.

    Attributes:
        model: its file.
        load: seconds to the end of the first run: reading, compiling and running.
        seconds: the least of many runs.
        kernels: how many run.
        peer_load: likewise of ONNX Runtime; None where it is not installed.
        peer_seconds: likewise.
        error: the largest difference of an output, as a share of its largest element.
        note: what ONNX Runtime says where it does not run the model.
    """

    model: str
    load: float
    seconds: float
    kernels: int
    peer_load: float | None = None
    peer_seconds: float | None = None
    error: float | None = None
    note: str = ""

    @property
    def ratio(self) -> float | None:
        """Of the time beside ONNX Runtime's."""
        return None if self.peer_seconds is None else self.seconds / self.peer_seconds


def set_threads(threads: int | None) -> int:
    """Sets the threads of the CPU, before the compiled module is loaded, which looks at them once."""
    found = threads or int(os.environ.get("OMP_NUM_THREADS", "0").partition(",")[0] or 0) or cores()
    os.environ["OMP_NUM_THREADS"] = str(found)
    return found


def bench_models(
    models: Sequence[str],
    feeds_of: Callable[[Any], Mapping[str, Any]],
    *,
    device: str = "cpu",
    threads: int | None = None,
    quick: bool = False,
    fallback: bool = False,
    json_file: str | None = None,
    progress: Callable[[str, float, float], object] | None = None,
) -> int:
    """Measures models, prints a table, and writes what was measured.

    Args:
        models: their files.
        feeds_of: what a session is fed with.
        device: where to run.
        threads: of both runtimes; as many as there are, or OMP_NUM_THREADS says, where None.
        quick: a shorter time for each.
        fallback: as :class:`anydml.onnx.InferenceSession` has it.
        json_file: where to write the rows.
        progress: takes the model, how many were measured, and of how many.

    Returns:
        1 where a result is not ONNX Runtime's, else 0.
    """
    count = set_threads(threads)
    place = Device(device)
    rows = []
    for i, model in enumerate(models):
        if progress is not None:
            progress(model, i, len(models))
        rows.append(_row(model, feeds_of, place, count, _QUICK if quick else _SECONDS, fallback))
    show(_page(rows, place, count))
    if json_file is not None:
        text = json.dumps([{**row._asdict(), "threads": count, "ratio": row.ratio} for row in rows], indent=2)
        write_whole(Path(json_file), lambda file: file.write(text.encode()))
    return 1 if any(row.error is not None and not row.error <= _MOST_ERROR for row in rows) else 0


def _row(
    model: str,
    feeds_of: Callable[[Any], Mapping[str, Any]],
    device: Device,
    threads: int,
    seconds: float,
    fallback: bool,
) -> ModelRow:
    from ..onnx import InferenceSession
    from ..onnx.comparing import onnx_runtime, runtime_options, runtime_session

    start = time.perf_counter()
    ours = InferenceSession(model, device=device, fallback=fallback)
    loaded = time.perf_counter() - start
    feeds = dict(feeds_of(ours))
    start = time.perf_counter()
    found = ours.run(None, feeds)
    loaded += time.perf_counter() - start
    runs: list[Callable[[], Any]] = [lambda: ours.run(None, feeds)]
    kernels = sum(len(each.steps) for each in ours.graphs)
    peer_load = error = None
    note = ""
    if find_spec("onnxruntime") is not None and device.name in DEVICE_NAMES:
        try:
            module = onnx_runtime()
            start = time.perf_counter()
            peer = runtime_session(module, model, runtime_options(module, threads), "CPUExecutionProvider")
            expected = peer.run(None, feeds)
            peer_load = time.perf_counter() - start
            runs.append(lambda: peer.run(None, feeds))
            error = max(map(_error, found, expected), default=0.0)
        except DMLError as problem:
            note = str(problem.violations[0].found)
    least = _least(runs, seconds)
    return ModelRow(model, loaded, least[0], kernels, peer_load, least[1] if len(least) > 1 else None, error, note)


def _error(found: Any, expected: Any) -> float:
    from ..onnx.comparing import error_of

    if not isinstance(found, np.ndarray) or not isinstance(expected, np.ndarray):
        return 0.0
    if found.shape != expected.shape or found.dtype != expected.dtype:
        return math.inf
    error = error_of(found, expected)[0]
    largest = float(np.abs(expected.astype(np.float64)).max(initial=0.0)) if expected.dtype.kind in "iu" else 1.0
    return error / (largest or 1.0)


def _least(runs: Sequence[Callable[[], Any]], seconds: float) -> list[float]:
    """The least time of each, measured in turn."""
    least = [math.inf] * len(runs)
    end = time.perf_counter() + seconds
    while True:
        for i, run in enumerate(runs):
            until = time.perf_counter() + _BLOCK
            while True:
                start = time.perf_counter()
                run()
                now = time.perf_counter()
                least[i] = min(least[i], now - start)
                if now >= until:
                    break
        if time.perf_counter() >= end:
            return least


def _page(rows: Sequence[ModelRow], device: Device, threads: int) -> list[Block]:
    head = ("Model", "Kernels", "Load, ms", "Run, ms", "ONNX Runtime's load", "its run", "Ratio", "Error")
    cells = [
        (
            row.model,
            str(row.kernels),
            _milliseconds(row.load),
            _milliseconds(row.seconds),
            _milliseconds(row.peer_load),
            _milliseconds(row.peer_seconds),
            "" if row.ratio is None else f"{row.ratio:.2f}",
            "" if row.error is None else f"{row.error:.1e}",
        )
        for row in rows
    ]
    page: list[Block] = [f"{device.name}, {threads} thread{'s' * (threads != 1)}", Table(head, cells)]
    ratios = [row.ratio for row in rows if row.ratio is not None]
    if len(ratios) > 1:
        page.append(f"Geometric mean of the ratios: {math.exp(sum(map(math.log, ratios)) / len(ratios)):.2f}")
    page += [f"{row.model}: ONNX Runtime: {row.note}" for row in rows if row.note]
    if find_spec("onnxruntime") is None:
        page.append("ONNX Runtime is not installed, so nothing is beside it: pip install onnxruntime")
    return page


def _milliseconds(seconds: float | None) -> str:
    return "" if seconds is None else f"{1e3 * seconds:.4g}"
