"""SqueezeNet and MobileNet by PyDirectML's names on a GPU, beside the same networks in PyTorch, eager, many pictures.

    PYTHONPATH=tests python benchmarks/classifiers_gpu.py [DEVICE] [BATCH]

All tensors lie on the device, "cuda" where none is named, whose own events count: the medians of runs that take turns.
Both are measured in single precision, which is anydml's default, and with convolutions in TF32, whose results are apart
by up to a hundredth: PyTorch's default, and anydml's ALLOW_HALF_PRECISION_COMPUTATION. Weights are as for
classifiers.py.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

import anydml
import networks
import pydirectml as dml
from anydml.bench import interleaved
from anydml.bench.places import Gpu

RUNS = 11


def dispatching(library: networks.Built, output: Any, device: torch.device) -> tuple[Callable[[], None], torch.Tensor]:
    """What dispatches a network, and where it writes its output."""
    graph = library.build(output)._graph
    bound: list[Any] = [None] * len(graph.inputs)
    for binding in library.bindings:
        number = binding._expr.port.number
        wanted = graph.inputs[number]
        if wanted is not None:
            bound[number] = torch.tensor(np.reshape(binding._data, wanted.Sizes)).to(device)
    owned = [tensor is not None and bool(tensor.Flags) for tensor in graph.inputs]
    sides = list(zip(bound, owned, strict=True))
    persistent = graph.initialise([each if own else None for each, own in sides])
    inputs = [None if own else each for each, own in sides]
    (tensor,) = graph.outputs
    y = torch.empty(tensor.TotalTensorSizeInBytes or 0, dtype=torch.uint8, device=device)
    return lambda: graph.dispatch(inputs, [y], persistent=persistent), y


def main(name: str = "cuda", batch: int = 64) -> None:
    os.environ["ANYDML_DEVICE"] = name
    device = anydml.Device(name).memory.device
    place = Gpu(device)
    print(f"{place.name}, anydml {anydml.__version__}, PyTorch {torch.__version__}, batch of {batch}")
    image = np.random.default_rng(0).random((batch, 3, 224, 224), np.float32)
    single, reduced = dml.ExecutionFlags.NONE, dml.ExecutionFlags.ALLOW_HALF_PRECISION_COMPUTATION
    for network, builders in (
        (networks.squeezenet, {"anydml": networks.Built}),
        (networks.mobilenet, {"anydml": networks.Built, "anydml, all owned": networks.Owned}),
    ):
        eager = networks.Prepared(device)
        for words, flags, bound in (("single precision", single, 1e-4), ("TF32", reduced, 2e-2)):
            made = {}
            for title, builder in builders.items():
                library = builder(dml.Device(), flags)
                made[title] = dispatching(library, network(library, image), device)
            runs: dict[str, Callable[[], object]] = {title: run for title, (run, _) in made.items()}
            runs["PyTorch"] = lambda: network(eager, image)  # noqa: B023
            torch.backends.cudnn.allow_tf32 = flags == reduced
            with torch.inference_mode():
                wanted = network(eager, image).reshape(-1)
                for title, (run, y) in made.items():
                    run()
                    error = float((y.view(torch.float32) - wanted).abs().max() / wanted.abs().max())
                    assert error < bound, (title, error)
                found = {title: np.median(each) * 1e3 for title, each in interleaved(runs, RUNS, place).items()}
            ratios = ", ".join(
                f"{title} {found[title]:.2f} ms, {found[title] / found['PyTorch']:.2f}" for title in made
            )
            print(f"{network.__name__}, {words}: PyTorch {found['PyTorch']:.2f} ms; {ratios}")


if __name__ == "__main__":
    main(*sys.argv[1:2], *map(int, sys.argv[2:3]))
