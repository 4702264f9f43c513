"""The five networks of PyDirectML's samples where PyTorch is installed, and as where it is not.

    PYTHONPATH=tests python benchmarks/five_networks.py

One picture on all cores of the CPU. Where PyTorch is there, runs with and without it take turns, and the ratio of the
fastest ones is printed; else the times alone. The weights are those that tests/networks.py finds or makes up.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any
from unittest.mock import patch

import numpy as np

import networks
import pydirectml as dml
from anydml.backends.torch import cpu_engine

NETWORKS = {
    networks.mnist: (1, 1, 28, 28),
    networks.squeezenet: (1, 3, 224, 224),
    networks.mobilenet: (1, 3, 224, 224),
    networks.super_resolution: (1, 1, 224, 224),
    networks.candy: (1, 3, 720, 720),
}
SECONDS = 4.0
"""For each network."""


def compiled(network: Callable[..., Any], image: np.ndarray, with_torch: bool) -> Callable[[], Any]:
    """What runs a network once."""
    seen: Callable[[str], Any] = find_spec if with_torch else lambda name: None
    cpu_engine.missing.cache_clear()
    with patch.object(cpu_engine, "find_spec", seen):
        built = networks.Built(dml.Device())
        output = network(built, image)
        model = built.build(output)
    cpu_engine.missing.cache_clear()
    return lambda: built.device.compute(model, built.bindings, [output])


def main() -> None:
    os.environ["ANYDML_DEVICE"] = "cpu"
    kinds = [True, False] if find_spec("torch") else [False]
    for network, sizes in NETWORKS.items():
        image = np.random.default_rng(0).random(sizes, np.float32) * (255 if network is networks.candy else 1)
        runs = {kind: compiled(network, image, kind) for kind in kinds}
        times: dict[bool, list[float]] = {kind: [] for kind in kinds}
        for run in runs.values():
            run()
        end = time.perf_counter() + SECONDS
        while time.perf_counter() < end:
            for kind, run in runs.items():
                begin = time.perf_counter()
                run()
                times[kind].append(time.perf_counter() - begin)
        least = {kind: min(each) for kind, each in times.items()}
        line = f"{network.__name__:<17}without PyTorch {least[False] * 1e3:9.2f} ms"
        if True in least:
            line += f", with it {least[True] * 1e3:9.2f} ms, ratio {least[False] / least[True]:.2f}"
        print(line, flush=True)


if __name__ == "__main__":
    main()
