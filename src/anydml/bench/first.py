"""How long operators run on a GPU for the first time, when their kernels are compiled.

In a process of its own with an empty cache, as Triton keeps what it compiled in memory and on disk.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from tempfile import TemporaryDirectory

from ..device import Device
from .cases import LITTLE_ON_GPU, Case
from .matrix import matrix_on_gpu
from .places import place_of

OPERATORS = ("CUMULATIVE_SUMMATION", "CUMULATIVE_PRODUCT", "JOIN", "QUANTIZED_LINEAR_AVERAGE_POOLING")
"""Those whose kernels take the longest to compile; the kernels of others are short, or PyTorch's calls."""


def first_runs(device: str, size: int = LITTLE_ON_GPU) -> dict[str, float]:
    """Seconds of the longest first run of each of `OPERATORS`, over a row of each cell.

    Raises:
        RuntimeError: what the process says that failed.
    """
    with TemporaryDirectory() as folder:
        environment = {**os.environ, "TRITON_CACHE_DIR": folder}
        command = [sys.executable, "-m", __name__, device, str(size)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"it ended with {done.returncode}"]
        raise RuntimeError(lines[-1])
    longest: dict[str, float] = json.loads(done.stdout)
    return longest


def _main(name: str, size: str) -> None:
    device = Device(name)
    longest: dict[str, float] = {}
    place = place_of(device)

    def run(case: Case) -> float:
        """Seconds that it takes to make a case, which compiles its operator, and to dispatch it."""
        start = time.perf_counter()
        work = case.make(device)
        work.compiled.dispatch(work.inputs, work.outputs)
        place.numpy(work.output)
        return time.perf_counter() - start

    cases = [case for case in matrix_on_gpu(quick=True, sizes=[int(size)]) if case.operator in OPERATORS]
    run(cases[0])  # which also loads PyTorch's kernels, and Triton
    for case in cases[1:]:
        # Without what making a case takes beside.
        seconds = run(case) - run(case)
        longest[case.operator] = max(seconds, longest.get(case.operator, 0.0))
    print(json.dumps(longest))


if __name__ == "__main__":
    _main(*sys.argv[1:])
