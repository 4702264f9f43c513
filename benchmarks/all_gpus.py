"""The operators' benchmark on all GPUs of a machine at once, each of which measures a part of the rows; then one page,
and one chart.

    python benchmarks/all_gpus.py --minutes 8 [--seed 5] [--gpus 4] [--page docs/gpu.txt] [--json gpu.json]
        [--plot docs/gpu.svg]

Rows come in the order of `anydml bench --device cuda --minutes M --seed N`, every beginning of which is a stratified
sample of the operators, and what was not reached is told. Without --minutes all rows are measured, for hours.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from random import randrange

from anydml.bench import Result
from anydml.bench.command import SEEDS
from anydml.bench.plot import plot
from anydml.bench.report import as_json, from_json, page
from anydml.terminal import plain_text, show


def measure(gpus: int, minutes: float, seed: int, folder: Path) -> list[Result]:
    """The results of all GPUs, each of which a process of its own sees alone."""
    processes = []
    for gpu in range(gpus):
        options = {"device": "cuda", "seed": seed, "minutes": minutes, "part": (gpu, gpus)}
        given = {**options, "rows_only": True, "json_file": str(folder / f"{gpu}.json")}
        code = f"from anydml.bench.command import bench; bench(**{given!r})"
        environment = {**os.environ, "CUDA_VISIBLE_DEVICES": str(gpu)}
        command = [sys.executable, "-c", code]
        processes.append(subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL))
    for process in processes:
        process.wait()
    missing = [gpu for gpu in range(gpus) if not (folder / f"{gpu}.json").exists()]
    for gpu in missing:
        print(f"GPU {gpu} wrote no result: its rows are missing", file=sys.stderr)
    return [from_json((folder / f"{gpu}.json").read_text()) for gpu in range(gpus) if gpu not in missing]


def joined(results: list[Result]) -> Result:
    """One result of all parts: operators in alphabetical order, and their rows as they come in each part."""
    first = results[0]
    whole = Result(first.header, seed=first.seed)
    for result in results:
        whole.rows += result.rows
        whole.problems += result.problems
        for threads, count in result.left.items():
            whole.left[threads] = whole.left.get(threads, 0) + count
    whole.rows.sort(key=lambda row: (row.operator, row.dtype, row.cell, row.size, row.name))
    return whole


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=1e6, help="until so many minutes are over")
    parser.add_argument("--seed", type=int, default=randrange(SEEDS), help="the order of rows, and shapes at random")
    parser.add_argument("--gpus", type=int, help="how many (default: all)")
    parser.add_argument("--page", type=Path, help="where the page is written to (default: standard output)")
    parser.add_argument("--json", type=Path, help="where all that was measured is written to")
    parser.add_argument("--plot", type=Path, help="where the chart is written to")
    given = parser.parse_args()
    gpus = given.gpus
    if gpus is None:
        import torch

        gpus = torch.cuda.device_count()
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        results = measure(gpus, given.minutes, given.seed, Path(folder))
    if not results:
        return 1
    whole = joined(results)
    whole.seconds = time.monotonic() - start
    if given.json:
        given.json.write_text(as_json(whole))
    if given.plot:
        given.plot.write_bytes(plot(whole))
    if given.page:
        given.page.write_text(plain_text(page(whole)))
    else:
        show(page(whole))
    return 1 if whole.problems or any(row.error for row in whole.rows) else 0


if __name__ == "__main__":
    sys.exit(main())
