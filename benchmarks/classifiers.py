"""SqueezeNet and MobileNet by PyDirectML's names, beside the same networks in PyTorch, eager: one picture on the CPU.

    PYTHONPATH=tests python benchmarks/classifiers.py

The weights are those of PyDirectML's samples, in the folder that tests/networks.py names.
"""

from __future__ import annotations

import platform
import statistics
import time
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import torch

import anydml
import networks
import pydirectml as dml


class Prepared(networks.Eager):
    """In single precision, each weight brought to PyTorch once."""

    def __init__(self) -> None:
        super().__init__(torch.float32)
        self._tensors: dict[int, tuple[np.ndarray, Any]] = {}

    def input(self, data: np.ndarray) -> Any:
        if id(data) not in self._tensors:
            self._tensors[id(data)] = data, super().input(data)
        return self._tensors[id(data)][1]


def weights(folder: str) -> Callable[[str], np.ndarray]:
    """As tests/networks.py has them, but each read once."""
    return cache(_READ(folder))


_READ = cache(networks._weights)


def milliseconds(run: Callable[[], object], runs: int = 15) -> float:
    run()
    times = []
    for _ in range(runs):
        begin = time.perf_counter()
        run()
        times.append(time.perf_counter() - begin)
    return statistics.median(times) * 1e3


def main() -> None:
    networks._weights = cache(weights)
    print(f"{platform.platform()}, anydml {anydml.__version__}, PyTorch {torch.__version__}, ", end="")
    print(f"{torch.get_num_threads()} threads")
    image = np.random.default_rng(0).random((1, 3, 224, 224), np.float32)
    for network in (networks.squeezenet, networks.mobilenet):
        built, eager = networks.Built(dml.Device(False)), Prepared()
        output = network(built, image)
        model = built.build(output)
        with torch.inference_mode():
            theirs = milliseconds(lambda: network(eager, image))  # noqa: B023
        ours = milliseconds(lambda: built.device.compute(model, built.bindings, [output]))  # noqa: B023
        print(f"{network.__name__}: {ours:.1f} ms, PyTorch {theirs:.1f} ms, ratio {ours / theirs:.2f}")


if __name__ == "__main__":
    main()
