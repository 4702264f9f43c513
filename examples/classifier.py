"""Writes classifier.onnx: a small network for pictures of 8 x 8, as exporters write them, with weights that are drawn.

pip install '.[onnx]'
python examples/classifier.py
anydml run examples/classifier.onnx --random 0
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def classifier(seed: int = 0) -> onnx.ModelProto:
    """Convolutions with their normalisations, a branch around the second, and a softmax of 10 classes."""
    generator = np.random.default_rng(seed)

    def weights(name: str, *shape: int, scale: float = 1, mean: float = 0) -> onnx.TensorProto:
        drawn = generator.standard_normal(shape, np.float32)
        return numpy_helper.from_array((drawn * np.float32(scale) + np.float32(mean)).astype(np.float32), name)

    def normalization(i: int) -> list[onnx.TensorProto]:
        parameters = [weights(f"scale{i}", 8, scale=0.1, mean=1), weights(f"bias{i}", 8, scale=0.1)]
        variance = numpy_helper.from_array(np.ones(8, np.float32), f"var{i}")
        return [*parameters, weights(f"mean{i}", 8, scale=0.1), variance]

    same = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}
    nodes = [
        helper.make_node("Conv", ["pictures", "filter1"], ["conv1"], "conv1", **same),
        helper.make_node("BatchNormalization", ["conv1", "scale1", "bias1", "mean1", "var1"], ["norm1"], "norm1"),
        helper.make_node("Relu", ["norm1"], ["relu1"], "relu1"),
        helper.make_node("Conv", ["relu1", "filter2"], ["conv2"], "conv2", **same),
        helper.make_node("BatchNormalization", ["conv2", "scale2", "bias2", "mean2", "var2"], ["norm2"], "norm2"),
        helper.make_node("Add", ["norm2", "relu1"], ["sum"], "sum"),
        helper.make_node("Relu", ["sum"], ["relu2"], "relu2"),
        helper.make_node("GlobalAveragePool", ["relu2"], ["average"], "average"),
        helper.make_node("Flatten", ["average"], ["flat"], "flat"),
        helper.make_node("Gemm", ["flat", "matrix", "offset"], ["scores"], "scores"),
        helper.make_node("Softmax", ["scores"], ["classes"], "classes"),
    ]
    constants = [weights("filter1", 8, 1, 3, 3, scale=0.5), weights("filter2", 8, 8, 3, 3, scale=0.2)]
    constants += [*normalization(1), *normalization(2), weights("matrix", 8, 10), weights("offset", 10, scale=0.1)]
    graph = helper.make_graph(
        nodes,
        "classifier",
        [helper.make_tensor_value_info("pictures", TensorProto.FLOAT, ["batch", 1, 8, 8])],
        [helper.make_tensor_value_info("classes", TensorProto.FLOAT, ["batch", 10])],
        constants,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8, producer_name="anydml")


if __name__ == "__main__":
    onnx.save(classifier(), Path(__file__).with_name("classifier.onnx"))
