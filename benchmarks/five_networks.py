"""The five networks of PyDirectML's samples.

    PYTHONPATH=tests python benchmarks/five_networks.py

One picture on all cores of the CPU; the time of the fastest run is printed. The weights are those that
tests/networks.py finds or makes up.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import networks
import pydirectml as dml

NETWORKS = {
    networks.mnist: (1, 1, 28, 28),
    networks.squeezenet: (1, 3, 224, 224),
    networks.mobilenet: (1, 3, 224, 224),
    networks.super_resolution: (1, 1, 224, 224),
    networks.candy: (1, 3, 720, 720),
}
SECONDS = 4.0
"""For each network."""


def compiled(network: Callable[..., Any], image: np.ndarray) -> Callable[[], Any]:
    """What runs a network once."""
    built = networks.Built(dml.Device())
    output = network(built, image)
    model = built.build(output)
    return lambda: built.device.compute(model, built.bindings, [output])


def main() -> None:
    os.environ["ANYDML_DEVICE"] = "cpu"
    for network, sizes in NETWORKS.items():
        image = np.random.default_rng(0).random(sizes, np.float32) * (255 if network is networks.candy else 1)
        run = compiled(network, image)
        run()
        least = float("inf")
        end = time.perf_counter() + SECONDS
        while time.perf_counter() < end:
            begin = time.perf_counter()
            run()
            least = min(least, time.perf_counter() - begin)
        print(f"{network.__name__:<17}{least * 1e3:9.2f} ms", flush=True)


if __name__ == "__main__":
    main()
