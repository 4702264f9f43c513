"""Runs ONNX models by :class:`anydml.onnx.InferenceSession` and by ONNX Runtime, and compares outputs and times.

``PYTHONPATH=src python tests/onnx_models.py [--threads N] [--seconds S] [MODEL.onnx ...]`` prints a row for each: the
nine light models that ONNX's wheel brings, with random weights, where none is named.
"""

from __future__ import annotations

import argparse
import math
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx

LIGHT = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"

OWN: dict[str, dict[str, tuple[int, ...]]] = {
    "ch_PP-OCRv4_rec_infer": {"x": (1, 3, 48, 320)},
    "silero_vad": {"input": (1, 576), "state": (2, 1, 128)},
}
"""Shapes that models want which don't say so."""

FREE = {"batch": 1, "height": 640, "width": 640, "sequence": 576, "sequence_length": 4}
"""Sizes of free dimensions, by their names; of all others 1, and of a picture's 96."""


LARGE = 1e-3
"""A difference that is no rounding, as a share of the largest element of an output that counts."""


def light_models() -> list[Path]:
    """The classifiers in ONNX's wheel, whose weights are constants."""
    return sorted(LIGHT.glob("light_*.onnx"))


def with_random_weights(model: onnx.ModelProto, seed: int = 0) -> onnx.ModelProto:
    """A light model whose weights are drawn, scaled as He's, so that nothing dies or overflows."""
    model = onnx.ModelProto.FromString(model.SerializeToString())
    # From then on an initializer needs no input beside it.
    model.ir_version = max(model.ir_version, 4)
    generator = np.random.default_rng(seed)
    shapes = {each.name: onnx.numpy_helper.to_array(each) for each in model.graph.initializer}
    uses = {name: (node, i) for node in model.graph.node for i, name in enumerate(node.input)}
    made = [node for node in model.graph.node if node.op_type == "ConstantOfShape"]
    for node in made:
        (name,) = node.output
        user, position = uses[name]
        while user.op_type in ("Unsqueeze", "Reshape", "Identity"):
            user, position = uses[user.output[0]]
        array = _drawn(generator, tuple(map(int, shapes[node.input[0]])), user, position)
        model.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
    for node in made:
        model.graph.node.remove(node)
    if model.graph.node[-1].op_type == "Softmax":
        # Before it nothing is lost, as all but one of its outputs would be.
        model.graph.output[0].name = model.graph.node.pop().input[0]
    return model


def _drawn(generator: np.random.Generator, shape: tuple[int, ...], user: onnx.NodeProto, position: int) -> np.ndarray:
    if user.op_type == "Conv" and position == 1:
        array = generator.standard_normal(shape) * math.sqrt(2 / math.prod(shape[1:]))
    elif user.op_type == "Gemm" and position == 1:
        turned = any(each.name == "transB" and each.i for each in user.attribute)
        array = generator.standard_normal(shape) * math.sqrt(2 / shape[1 if turned else 0])
    elif (user.op_type == "BatchNormalization" and position in (1, 4)) or user.op_type == "Mul":
        array = generator.uniform(0.5, 1.5, shape)
    else:
        array = generator.standard_normal(shape) * 0.1
    return array.astype(np.float32)


def feeds_of(session: Any, name: str = "", seed: int = 0) -> dict[str, np.ndarray]:
    """Random arrays for a model's inputs."""
    generator = np.random.default_rng(seed)
    feeds = {}
    for each in session.get_inputs():
        free = [_size(size, i, len(each.shape)) for i, size in enumerate(each.shape)]
        shape = OWN.get(name, {}).get(each.name, free)
        if "float" in each.type:
            feeds[each.name] = generator.standard_normal(shape).astype(np.float16 if "16" in each.type else np.float32)
        else:
            feeds[each.name] = np.full(shape, 16000 if each.name == "sr" else 1, _integer(each.type))
            if each.name == "bytes":
                feeds[each.name] = generator.integers(0, 256, shape).astype(_integer(each.type))
    return feeds


def _integer(name: str) -> str:
    return name.removeprefix("tensor(").removesuffix(")")


def _size(size: Any, i: int, rank: int) -> int:
    if isinstance(size, int) and size > 0:
        return size
    return (
        FREE.get(size, 96 if rank == 4 and i > 1 else 1) if isinstance(size, str) else 96 if rank == 4 and i > 1 else 1
    )


def best(call: Callable[[], Any], seconds: float) -> float:
    """The shortest of runs that take some seconds in all."""
    call()
    shortest, end = math.inf, time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.perf_counter()
        call()
        shortest = min(shortest, time.perf_counter() - start)
    return shortest


def difference(found: list[np.ndarray], wanted: list[np.ndarray]) -> float:
    """The largest of outputs, as a share of the largest element of each."""
    worst = 0.0
    for y, z in zip(found, wanted, strict=True):
        assert (y.shape, y.dtype) == (z.shape, z.dtype)
        if z.size:
            scale = max(float(np.max(np.abs(z.astype(np.float64)))), 1e-30)
            worst = max(worst, float(np.max(np.abs(y.astype(np.float64) - z.astype(np.float64)))) / scale)
    return worst


def compared(name: str, model: onnx.ModelProto, threads: int, seconds: float) -> Iterator[str]:
    """A row: the largest difference beside the largest output, times, and their ratio.

    Where that is large, it also has by how much ONNX Runtime differs from itself without its optimisations: where this
    is no less, the outputs are rounding, such as probabilities of 1e-6, or the order of detections of one score.
    """
    import onnxruntime

    import anydml.onnx

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = threads, 3
    start = time.perf_counter()
    theirs = onnxruntime.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])
    created = time.perf_counter() - start
    start = time.perf_counter()
    ours = anydml.onnx.InferenceSession(model)
    feeds = feeds_of(ours, name)
    found = ours.run(None, feeds)
    compiled = time.perf_counter() - start
    wanted = theirs.run(None, feeds)
    worst, note = difference(found, wanted), ""
    if worst > LARGE:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        plain = onnxruntime.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])
        note = f"; ONNX Runtime from itself: {difference(plain.run(None, feeds), wanted):.1e}"
    times = [math.inf, math.inf]
    for _ in range(3):
        for i, call in enumerate((lambda: ours.run(None, feeds), lambda: theirs.run(None, feeds))):
            times[i] = min(times[i], best(call, seconds / 6))
    kernels = sum(len(each.steps) for each in ours.graphs)
    yield (
        f"{name:34} {worst:9.1e} {times[0] * 1e3:9.2f} ms {times[1] * 1e3:9.2f} ms {times[0] / times[1]:6.2f}"
        f" {compiled:7.2f} s {created:6.2f} s {len(ours.graphs):3} graphs {kernels:4} kernels{note}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*", type=Path)
    parser.add_argument("--threads", type=int, default=int(os.environ.get("OMP_NUM_THREADS", "2")))
    parser.add_argument("--seconds", type=float, default=2)
    options = parser.parse_args()
    # Read when the package is first used, further up.
    os.environ["OMP_NUM_THREADS"] = str(options.threads)
    print(f"{'model':34} {'error':>9} {'anydml':>12} {'runtime':>12}  ratio  first run  created")
    for path in options.models or light_models():
        try:
            model = onnx.load(path)
            if not options.models:
                model = with_random_weights(model)
            for line in compared(path.stem, model, options.threads, options.seconds):
                print(line, flush=True)
        except Exception as problem:  # a row of its own
            print(f"{path.stem:34} {type(problem).__name__}: {str(problem)[:200]}", flush=True)


if __name__ == "__main__":
    main()
