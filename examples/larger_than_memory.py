"""Running sums of a file that is larger than memory, chunk by chunk, by Dask.

    pip install 'anydml[dask]'
    python examples/larger_than_memory.py            # 256 MiB of random numbers in a temporary folder
    python examples/larger_than_memory.py --mib 65536 --workers 4 --memory 2GiB --folder /data

Both files are NumPy's, mapped into memory: what does not fit stays on the disk. The sums go on from chunk to chunk, in
double precision, and are right to the last place, however the file is cut.
"""

from __future__ import annotations

import argparse
import tempfile
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
from dask.diagnostics import ProgressBar

import anydml

CHUNK = 4 << 20
"""Elements: 16 MiB."""


def mapped(path: Path, elements: int | None = None) -> np.ndarray:
    """A file of float32: a new one of so many elements, or one that is there."""
    if elements is None:
        return np.load(path, mmap_mode="r")
    return np.lib.format.open_memmap(path, "w+", np.float32, (elements,))


class File:
    """A file of numbers, as Dask takes arrays: each task maps it anew, in whichever process it runs."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.shape, self.dtype, self.ndim = mapped(path).shape, np.dtype(np.float32), 1

    def __getitem__(self, index: Any) -> np.ndarray:
        return mapped(self.path)[index]

    def __setitem__(self, index: Any, chunk: np.ndarray) -> None:
        np.load(self.path, mmap_mode="r+")[index] = chunk


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mib", type=int, default=256, help="size of the file, default %(default)s")
    parser.add_argument("--folder", type=Path, help="where the files are made; a temporary folder where left out")
    parser.add_argument("--workers", type=int, default=0, help="processes; threads of this one where left out")
    parser.add_argument("--memory", default="512MiB", help="of each worker, default %(default)s")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        print(run(Path(folder), options.mib << 18, options.workers, options.memory))


def run(folder: Path, elements: int, workers: int = 0, memory: str = "512MiB") -> str:
    """Makes a file of random numbers and another of their running sums.

    Args:
        folder: where.
        elements: how many numbers there are.
        workers: how many processes compute; threads of this one where 0.
        memory: what each process may use.

    Returns:
        The last sum beside the sum of all numbers.
    """
    source, target = folder / "numbers.npy", folder / "sums.npy"
    mapped(target, elements)
    numbers = mapped(source, elements)
    for start in range(0, elements, CHUNK):
        part = np.random.default_rng(start).standard_normal(min(CHUNK, elements - start), np.float32)
        numbers[start : start + CHUNK] = part
    total = float(np.sum(numbers, dtype=np.float64))
    del numbers
    sums = anydml.cumulative_summation(da.from_array(File(source), chunks=CHUNK))
    with _cluster(workers, memory) if workers else nullcontext(), nullcontext() if workers else ProgressBar():
        stored = da.store(sums, File(target), lock=False, compute=False)
        if workers:
            from distributed import progress

            stored = stored.persist()
            progress(stored)
        stored.compute()
    return f"{elements} numbers: the last sum is {float(mapped(target)[-1]):.6f}, their sum {total:.6f}"


def _cluster(workers: int, memory: str) -> Any:
    from distributed import Client

    return Client(n_workers=workers, threads_per_worker=1, memory_limit=memory, dashboard_address=None)


if __name__ == "__main__":
    main()
