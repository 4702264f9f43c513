"""Small ONNX models for tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np


def value(name: str, shape: Sequence[int | str | None] | None, dtype: Any = np.float32) -> Any:
    """An input or an output."""
    import onnx

    return onnx.helper.make_tensor_value_info(name, onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), shape)


def model_of(
    nodes: Sequence[Any],
    inputs: Sequence[Any],
    outputs: Sequence[Any],
    constants: Mapping[str, Any] | None = None,
    opset: int = 18,
) -> Any:
    """A model, not checked."""
    import onnx

    tensors = [onnx.numpy_helper.from_array(array, name) for name, array in (constants or {}).items()]
    graph = onnx.helper.make_graph(nodes, "graph", inputs, outputs, tensors)
    return onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", opset)], ir_version=9)


def chain(wrong: bool = False) -> Any:
    """y = sigmoid(relu(x * w + b)) + b, of x {N, 4}; with one element of b another where `wrong`."""
    import onnx

    node = onnx.helper.make_node
    weights = np.array([0.5, -1.5, 2.0, 1.0], np.float32)
    biases = np.array([0.25, 0.5, -0.75, 1.0 + wrong], np.float32)
    nodes = [
        node("Mul", ["x", "w"], ["scaled"], name="scale"),
        node("Add", ["scaled", "b"], ["shifted"], name="shift"),
        node("Relu", ["shifted"], ["positive"], name="rectify"),
        node("Sigmoid", ["positive"], ["y"], name="squash"),
    ]
    return model_of(nodes, [value("x", ["N", 4])], [value("y", ["N", 4])], {"w": weights, "b": biases})


def with_words() -> Any:
    """A model with a node that DirectML has no operator for between two that it has: how often 2 and 4 are in 2x."""
    import onnx

    node = onnx.helper.make_node
    pool = {"ngram_counts": [0], "ngram_indexes": [0, 1], "pool_int64s": [2, 4]}
    lengths = {"mode": "TF", "min_gram_length": 1, "max_gram_length": 1, "max_skip_count": 0}
    nodes = [
        node("Add", ["x", "x"], ["twice"], name="double"),
        node("TfIdfVectorizer", ["twice"], ["counts"], name="count", **pool, **lengths),
        node("Relu", ["counts"], ["y"], name="rectify"),
    ]
    return model_of(nodes, [value("x", [3], np.int64)], [value("y", [2])])


def saved(folder: Path, name: str, model: Any) -> str:
    """The path of a model's file."""
    import onnx

    path = folder / name
    onnx.save(model, path)
    return str(path)
