"""What functions of Dask arrays move between machines: counted by a cluster, beside what docs/dask.md says.

    python benchmarks/dask_network.py [--workers 3] [--chunks 12]

Each worker is a process that holds its chunks; the bytes that workers send each other are those of the cluster's own
statistics. Three sizes of chunks show which part of them grows with the chunks.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster, wait

import anydml

LINES = 256
"""Of each chunk: what is scanned, reduced or normalised goes along the chunks."""

Call = Callable[[Any], Any]
FAMILIES: dict[str, tuple[Call, Callable[[int, int, int], float]]] = {
    "element by element": (anydml.sigmoid, lambda n, rows, machines: 0),
    "independent dimensions": (lambda x: anydml.softmax(x, axes=[1]), lambda n, rows, machines: 0),
    "running sums": (
        lambda x: anydml.cumulative_summation(x, 0),
        lambda n, rows, machines: (machines + 1) * n * LINES * 8,
    ),
    "running products": (
        lambda x: anydml.cumulative_product(x, 0),
        lambda n, rows, machines: (machines + 1) * n * LINES * 16,
    ),
    "reductions": (lambda x: anydml.reduce(x, "SUM", axes=[0]), lambda n, rows, machines: n * LINES * 8),
    "softmax along chunks": (lambda x: anydml.softmax(x, axes=[0]), lambda n, rows, machines: 2 * n * LINES * 24),
    "joined": (lambda x: anydml.join([x, x], 0), lambda n, rows, machines: 0),
    "windows of 3": (
        lambda x: anydml.max_pooling(x[None, None], 3, start_padding=1, end_padding=1),
        lambda n, rows, machines: 2 * n * LINES * 4,
    ),
    "products of matrices": (
        lambda x: anydml.gemm(x, x, trans_a=True),
        lambda n, rows, machines: n * LINES * LINES * 4,
    ),
    "a whole axis gathered": (lambda x: anydml.top_k(x, 3, axis=0)[0], lambda n, rows, machines: n * rows * LINES * 4),
}
"""A function of an array in chunks of rows, and the most bytes that it moves for n chunks of so many rows."""


def sent(client: Client) -> int:
    return sum(client.run(lambda dask_worker: dask_worker.transfer_outgoing_bytes_total).values())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--chunks", type=int, default=12)
    options = parser.parse_args()
    count = options.chunks
    cluster = LocalCluster(n_workers=options.workers, threads_per_worker=1, dashboard_address=None)
    with cluster, Client(cluster) as client:
        print(f"{options.workers} workers, {count} chunks; KiB sent, and at most, for chunks of")
        sizes = (256, 1024, 4096)
        print(f"{'':28}" + "".join(f"{rows * LINES * 4 >> 10:>16} KiB" for rows in sizes))
        for name, (call, most) in FAMILIES.items():
            cells = []
            for rows in sizes:
                x = client.persist(da.random.random((count * rows, LINES), chunks=(rows, -1)).astype(np.float32))
                wait(x)
                before = sent(client)
                y = client.persist(call(x))
                wait(y)
                cells.append(
                    f"{(sent(client) - before) / 1024:>9.0f} {most(count, rows, options.workers) / 1024:>9.0f}"
                )
                del x, y
            print(f"{name:28}" + "".join(f"{cell:>20}" for cell in cells), flush=True)


if __name__ == "__main__":
    main()
