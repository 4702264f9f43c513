"""Running sums and products of Dask arrays along chunked axes, beside Dask's own, and beside what moves the same bytes.

    python benchmarks/dask_scan.py graph
    python benchmarks/dask_scan.py memory [--mib 512] [--threads 2]
    python benchmarks/dask_scan.py files [--mib 4096] [--folder /tmp] [--without 'cumsum, blelloch']

`graph` builds the task graph of 10,000 chunks. `memory` compares functions of 16 chunks in memory, on the threaded
scheduler with persist(), with the function of the whole array. `files` scans a memory-mapped file into another one on
a cluster of two processes limited to 512 MiB each, in chunks of 32 MiB, beside Dask's cumsum by both of its methods and
its cumprod, a copy of the file, and two map_blocks: one reads the chunks and combines their bits by OR, the other
copies them into the same store. Candidates take turns; each has the minimum of several runs, and ratios are printed,
of the time and of the workers' processor time. Files are written to a temporary folder, and removed.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np

import anydml

CHUNK_BYTES = 32 << 20
COLUMNS = 1024


def fastest(candidates: Mapping[str, Callable[[], Any]], runs: int) -> dict[str, float]:
    """The shortest time of each, in seconds, where they take turns."""
    found = dict.fromkeys(candidates, float("inf"))
    for _ in range(runs):
        for name, run in candidates.items():
            begin = time.perf_counter()
            run()
            found[name] = min(found[name], time.perf_counter() - begin)
    return found


def graph() -> None:
    x = da.zeros((10_000, 4), dtype=np.float32, chunks=(1, 4))
    functions = {
        "running sum": lambda: anydml.cumulative_summation(x, 0),
        "running product": lambda: anydml.cumulative_product(x, 0),
        "sum": lambda: anydml.reduce(x, "sum", [0]),
        "softmax": lambda: anydml.softmax(x, axes=[0]),
    }
    for name, seconds in fastest(functions, 2).items():
        tasks = len(dict(functions[name]().__dask_graph__())) - x.npartitions
        print(f"{name} of 10,000 chunks: built in {seconds:.2f} s, {tasks / x.npartitions:.2f} tasks a chunk")


def memory(mib: int, threads: int, runs: int) -> None:
    size = (mib << 20) // 4
    flat = np.random.default_rng(1).random(size, np.float32) + np.float32(0.5)
    for shape, axis in (((size,), 0), ((size // COLUMNS, COLUMNS), 0)):
        x = flat.reshape(shape)
        operand = da.from_array(x, chunks=(len(x) // 16, *shape[1:])).persist()
        functions: dict[str, Callable[[Any], Any]] = {
            "running sum": lambda x, axis=axis: anydml.cumulative_summation(x, axis),
            "running product": lambda x, axis=axis: anydml.cumulative_product(x, axis),
            "square root": anydml.sqrt,
            "exponential": anydml.exp,
        }
        for name, function in functions.items():
            with dask.config.set(scheduler="threads", num_workers=threads):
                candidates = {
                    "whole": lambda function=function, x=x: function(x),
                    "chunks": lambda function=function, operand=operand: function(operand).persist(),
                }
                found = fastest(candidates, runs)
            ratio = found["chunks"] / found["whole"]
            print(f"{name} of {shape}: {found['whole']:.3f} s, in chunks {found['chunks']:.3f} s, ratio {ratio:.2f}")


class Mapped:
    """A file of FLOAT32, which each task maps."""

    def __init__(self, path: Path, shape: tuple[int, ...]) -> None:
        self.path, self.shape, self.ndim, self.dtype = path, shape, len(shape), np.dtype(np.float32)

    def __getitem__(self, place: Any) -> np.ndarray:
        return np.memmap(self.path, self.dtype, "r", shape=self.shape)[place]

    def __setitem__(self, place: Any, values: np.ndarray) -> None:
        np.memmap(self.path, self.dtype, "r+", shape=self.shape)[place] = values


def combined_bits(block: np.ndarray) -> np.ndarray:
    return np.bitwise_or.reduce(block.view(np.uint32), axis=0, keepdims=True)


def copied(block: np.ndarray) -> np.ndarray:
    return block.copy()


def files(mib: int, folder: str | None, runs: int, without: list[str]) -> None:
    from distributed import Client, KilledWorker, LocalCluster

    shape = ((mib << 20) // 4 // COLUMNS, COLUMNS)
    rows = CHUNK_BYTES // 4 // COLUMNS
    with tempfile.TemporaryDirectory(dir=folder) as place:
        source, target = Mapped(Path(place, "source"), shape), Mapped(Path(place, "target"), shape)
        block = np.random.default_rng(1).random((rows, COLUMNS), np.float32) + np.float32(0.5)
        with source.path.open("wb") as file:
            for _ in range(shape[0] // rows):
                block.tofile(file)
        shutil.copyfile(source.path, target.path)
        cluster = LocalCluster(n_workers=2, threads_per_worker=1, memory_limit="512MiB", dashboard_address=None)
        with cluster, Client(cluster) as client:
            x = da.from_array(source, chunks=(rows, COLUMNS), asarray=False)

            def store(y: da.Array) -> None:
                da.store(y, target, lock=False)

            def two_blocks() -> None:
                x.map_blocks(combined_bits, dtype=np.uint32, chunks=(1, COLUMNS)).sum().compute()
                store(x.map_blocks(copied, dtype=np.float32))

            candidates: dict[str, Callable[[], Any]] = {
                "two map_blocks": two_blocks,
                "running sum": lambda: store(anydml.cumulative_summation(x, 0)),
                "running product": lambda: store(anydml.cumulative_product(x, 0)),
                "cumsum, sequential": lambda: store(da.cumsum(x, 0, dtype=np.float32, method="sequential")),
                "cumsum, blelloch": lambda: store(da.cumsum(x, 0, dtype=np.float32, method="blelloch")),
                "cumprod, sequential": lambda: store(da.cumprod(x, 0, dtype=np.float32, method="sequential")),
                "copy of the file": lambda: shutil.copyfile(source.path, target.path),
            }
            candidates = {name: run for name, run in candidates.items() if name not in without}
            found = dict.fromkeys(candidates, (float("inf"), float("inf")))
            for name, run in [*candidates.items()] * runs:
                before, begin = processor_time(client), time.perf_counter()
                try:
                    run()
                except KilledWorker:
                    print(f"{name}: does not finish, as it wants more memory than workers have", flush=True)
                    continue
                found[name] = min(found[name], (time.perf_counter() - begin, processor_time(client) - before))
                print(f"{name}: {found[name][0]:.2f} s, of processors {found[name][1]:.2f} s", flush=True)
            workers = len(client.scheduler_info(n_workers=-1)["workers"])
        basis = found["two map_blocks"]
        for name, (seconds, of_processors) in found.items():
            ratio, of_time = seconds / basis[0], of_processors / basis[1]
            print(f"{name}: {ratio:.2f} of two map_blocks, {of_time:.2f} of their processor time")
        print(f"{mib} MiB in {shape[0] // rows} chunks, {workers} workers of 512 MiB at the end")


def processor_time(client: Any) -> float:
    """Of the workers, in seconds: another measure where other programs take turns with them."""
    return sum(client.run(time.process_time).values())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["graph", "memory", "files"])
    parser.add_argument("--mib", type=int)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--folder")
    parser.add_argument("--without", action="append", default=[], help="leave out a candidate of `files`")
    parser.add_argument("--runs", type=int, default=3)
    given = parser.parse_args()
    if given.what == "graph":
        graph()
    elif given.what == "memory":
        memory(given.mib or 512, given.threads, given.runs)
    else:
        files(given.mib or 4096, given.folder, given.runs, given.without)


if __name__ == "__main__":
    main()
