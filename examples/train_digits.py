"""A small network learns to read the digits that scikit-learn ships, by a graph of DirectML's operators.

A step of training, forward, gradients and Adam, is one graph, compiled once.

    pip install . scikit-learn
    python examples/train_digits.py
"""

from __future__ import annotations

import argparse
import sys
from hashlib import sha256
from math import prod, sqrt

import numpy as np
from sklearn.datasets import load_digits

import anydml
from anydml import Expression, Graph
from anydml.terminal import Progress, Table, show

BATCH = 64
HELD_OUT = 360
KEEP = 0.9
"""What a step keeps of the running mean and variance of normalisation."""
SIZES = {
    "filter1": (16, 1, 3, 3),
    "scale1": (16,),
    "bias1": (16,),
    "filter2": (32, 16, 3, 3),
    "scale2": (32,),
    "bias2": (32,),
    "weights": (128, 10),
    "bias": (1, 10),
}
"""Of the parameters, which stand one behind the other in one array, as Adam takes them."""
STATISTICS = {"mean1": (1, 16, 1, 1), "variance1": (1, 16, 1, 1), "mean2": (1, 32, 1, 1), "variance2": (1, 32, 1, 1)}
"""Of the layers that are normalised, likewise."""
PADDED = {"start_padding": 1, "end_padding": 1}
POOLED = {"window_size": 2, "strides": 2}


def count(sizes: dict[str, tuple[int, ...]]) -> int:
    return sum(map(prod, sizes.values()))


def cut(joined: Expression, sizes: dict[str, tuple[int, ...]]) -> dict[str, Expression]:
    """The arrays that stand one behind the other."""
    found, start = {}, 0
    for name, shape in sizes.items():
        found[name] = joined[start : start + prod(shape)].reshape(shape)
        start += prod(shape)
    return found


def joined(parts: list[Expression]) -> Expression:
    return anydml.join([part.reshape(-1) for part in parts], 0)


def filter_gradient(x: Expression, g: Expression) -> Expression:
    """Of a convolution: the correlation of its input with its output's gradient, batch and channels exchanged."""
    return anydml.convolution(x.transpose(1, 0, 2, 3), g.transpose(1, 0, 2, 3), **PADDED).transpose(1, 0, 2, 3)


def training_step(learning_rate: float, device: str | None) -> anydml.CompiledGraph:
    """From images, labels, parameters, moments, statistics and the step's number to all that changes, and the loss."""
    graph = Graph(device)
    images = graph.input((BATCH, 1, 8, 8), name="images")
    labels = graph.input((BATCH,), np.uint32, name="labels")
    parameters, first, second = (graph.input((count(SIZES),), name=name) for name in ("parameters", "first", "second"))
    statistics = graph.input((count(STATISTICS),), name="statistics")
    step = graph.input((1,), np.uint32, name="step")
    p = cut(parameters, SIZES)

    # Forward: convolution, normalisation, ReLU and pooling, twice; then a product of matrices.
    convolved1 = anydml.convolution(images, p["filter1"], **PADDED)
    normalized1, mean1, variance1 = anydml.batch_normalization_training(convolved1, p["scale1"], p["bias1"])
    active1 = anydml.relu(normalized1)
    pooled1 = anydml.max_pooling(active1, **POOLED)
    convolved2 = anydml.convolution(pooled1, p["filter2"], **PADDED)
    normalized2, mean2, variance2 = anydml.batch_normalization_training(convolved2, p["scale2"], p["bias2"])
    active2 = anydml.relu(normalized2)
    pooled2 = anydml.max_pooling(active2, **POOLED)
    flat = pooled2.reshape(BATCH, -1)
    scores = anydml.gemm(flat, p["weights"], p["bias"])

    # Cross entropy, whose gradient is the softmax without what is right.
    right = anydml.one_hot(labels, 10, np.float32([0, 1]))
    loss = anydml.reduce(anydml.log_softmax(scores) * right, "SUM") * (-1 / BATCH)
    g = (anydml.softmax(scores) - right) * (1 / BATCH)

    # Backward, the other way round.
    of = {"weights": anydml.gemm(flat, g, trans_a=True), "bias": anydml.reduce(g, "SUM", 0)}
    g = anydml.gemm(g, p["weights"], trans_b=True).reshape(pooled2.shape)
    g = anydml.max_pooling_grad(active2, g, **POOLED)
    g = anydml.relu_grad(normalized2, g)
    g, of["scale2"], of["bias2"] = anydml.batch_normalization_training_grad(
        convolved2, g, mean2, variance2, p["scale2"]
    )
    of["filter2"] = filter_gradient(pooled1, g)
    g = anydml.convolution(g, p["filter2"], direction="BACKWARD", **PADDED)
    g = anydml.max_pooling_grad(active1, g, **POOLED)
    g = anydml.relu_grad(normalized1, g)
    g, of["scale1"], of["bias1"] = anydml.batch_normalization_training_grad(
        convolved1, g, mean1, variance1, p["scale1"]
    )
    of["filter1"] = filter_gradient(images, g)

    gradient = joined([of[name] for name in SIZES])
    stepped = anydml.adam_optimizer(parameters, first, second, gradient, step, learning_rate=learning_rate)
    kept = statistics * KEEP + joined([mean1, variance1, mean2, variance2]) * (1 - KEEP)
    changed = dict(zip(("parameters", "first", "second"), stepped, strict=True))
    return graph.compile({**changed, "statistics": kept, "loss": loss})


def reader(size: int, device: str | None) -> anydml.CompiledGraph:
    """From images, parameters and statistics to scores; each normalisation and its ReLU are one operator."""
    graph = Graph(device)
    images = graph.input((size, 1, 8, 8), name="images")
    p = cut(graph.input((count(SIZES),), name="parameters"), SIZES)
    s = cut(graph.input((count(STATISTICS),), name="statistics"), STATISTICS)
    x = images
    for layer in "12":
        x = anydml.convolution(x, p[f"filter{layer}"], **PADDED)
        own = s[f"mean{layer}"], s[f"variance{layer}"], p[f"scale{layer}"], p[f"bias{layer}"]
        x = anydml.max_pooling(anydml.batch_normalization(x, *own, activation="RELU"), **POOLED)
    return graph.compile([anydml.gemm(x.reshape(size, -1), p["weights"], p["bias"])])


def initial(rng: np.random.Generator) -> np.ndarray:
    """Filters and weights of a variance that keeps that of ReLUs, scales of 1, biases of 0."""
    parts = []
    for name, shape in SIZES.items():
        inputs = shape[0] if name == "weights" else prod(shape[1:])
        spread = sqrt(2 / inputs) if len(shape) == 4 or name == "weights" else 0
        parts.append((rng.standard_normal(shape) * spread + name.startswith("scale")).ravel())
    return np.concatenate(parts).astype(np.float32)


def main() -> None:
    parser = argparse.ArgumentParser(description="A small network learns to read digits.")
    parser.add_argument("--epochs", type=int, default=12, help="how often it sees each digit (default: 12)")
    parser.add_argument("--learning-rate", type=float, default=3e-3, help="Adam's (default: 0.003)")
    parser.add_argument("--device", help="such as cpu or cuda (default: a GPU where there is one)")
    arguments = parser.parse_args()
    rng = np.random.default_rng(0)
    digits, labels = load_digits(return_X_y=True)
    order = rng.permutation(len(digits))
    digits = (digits[order] / 16).astype(np.float32).reshape(-1, 1, 8, 8)
    labels = labels[order].astype(np.uint32)
    held_out, answers = digits[:HELD_OUT], labels[:HELD_OUT]
    digits, labels = digits[HELD_OUT:], labels[HELD_OUT:]

    step, read = training_step(arguments.learning_rate, arguments.device), reader(HELD_OUT, arguments.device)
    state = {name: np.zeros(count(SIZES), np.float32) for name in ("first", "second")}
    state |= {"parameters": initial(rng), "statistics": np.zeros(count(STATISTICS), np.float32)}
    batches, number, rows = len(digits) // BATCH, 0, []
    with Progress(sys.stderr, delay=2.0, between=5.0) as progress:
        for epoch in range(1, arguments.epochs + 1):
            losses = []
            for batch in rng.permutation(len(digits))[: batches * BATCH].reshape(batches, BATCH):
                progress.step(f"epoch {epoch}", number, arguments.epochs * batches)
                number += 1
                state = step(images=digits[batch], labels=labels[batch], step=np.uint32([number]), **state)
                losses.append(state.pop("loss").item())
            scores = read(held_out, state["parameters"], state["statistics"])
            accuracy = np.mean(scores.argmax(1) == answers)
            rows.append([str(epoch), f"{np.mean(losses):.4f}", f"{accuracy:.2%}"])
    show([Table(["epoch", "loss", "right of those held out"], rows)])
    print(f"{rows[-1][-1]} of {HELD_OUT} digits held out are read right")
    print(f"parameters {sha256(state['parameters'].tobytes()).hexdigest()[:16]}")


if __name__ == "__main__":
    main()
