"""Models with QuantizeLinear and DequantizeLinear around their nodes, which are computed in integers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx", reason="onnx is not installed")

from onnx import TensorProto, helper, numpy_helper

import anydml.onnx

SCALES = {"x": 0.02, "w": 0.01, "y": 0.05}


def model(
    op: str, shape: tuple[int, ...], weights: Any = None, bias: Any = None, relu: bool = False, **attributes: Any
):
    """x, quantised, then an operator between DequantizeLinear and QuantizeLinear, then floats again."""
    constants = {
        "xs": np.float32(SCALES["x"]),
        "ws": np.float32(SCALES["w"]),
        "ys": np.float32(SCALES["y"]),
        "xz": np.uint8(120),
        "wz": np.int8(0),
        "yz": np.uint8(0 if relu else 131),
    }
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "xs", "xz"], ["xq"]),
        helper.make_node("DequantizeLinear", ["xq", "xs", "xz"], ["xd"]),
    ]
    inputs = ["xd"]
    if weights is not None:
        constants["wq"] = weights
        nodes.append(helper.make_node("DequantizeLinear", ["wq", "ws", "wz"], ["wd"]))
        inputs.append("wd")
    if bias is not None:
        constants |= {"b": bias, "bs": np.float32(np.float32(SCALES["x"]) * np.float32(SCALES["w"])), "bz": np.int32(0)}
        nodes.append(helper.make_node("DequantizeLinear", ["b", "bs", "bz"], ["bd"]))
        inputs.append("bd")
    if op in ("Add", "Concat"):
        inputs.append("xd")
    nodes.append(helper.make_node(op, inputs, ["f"], **attributes))
    if relu:
        nodes.append(helper.make_node("Relu", ["f"], ["r"]))
    scale, zero = ("xs", "xz") if op in ("MaxPool", "Concat") else ("ys", "yz")
    nodes += [
        helper.make_node("QuantizeLinear", ["r" if relu else "f", scale, zero], ["yq"]),
        helper.make_node("DequantizeLinear", ["yq", scale, zero], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "quantised",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9)


def weights(*shape: int) -> np.ndarray:
    return np.random.default_rng(7).integers(-90, 90, shape).astype(np.int8)


BIAS = np.arange(-3, 2, dtype=np.int32) * 700

MODELS = {
    "Conv": ("QUANTIZED_LINEAR_CONVOLUTION", model("Conv", (1, 3, 9, 8), weights(5, 3, 3, 3), BIAS, pads=[1, 1, 1, 1])),
    "Conv, Relu": ("QUANTIZED_LINEAR_CONVOLUTION", model("Conv", (2, 3, 9, 8), weights(5, 3, 3, 3), BIAS, True)),
    "MatMul": ("QUANTIZED_LINEAR_MATRIX_MULTIPLY", model("MatMul", (7, 12), weights(12, 5))),
    "Gemm": ("MATRIX_MULTIPLY_INTEGER", model("Gemm", (7, 12), weights(5, 12), BIAS, transB=1)),
    "Add": ("ELEMENT_WISE_QUANTIZED_LINEAR_ADD", model("Add", (3, 4, 5))),
    "MaxPool": ("MAX_POOLING", model("MaxPool", (1, 2, 8, 9), kernel_shape=[3, 3], strides=[2, 2])),
    "Concat": ("JOIN", model("Concat", (1, 2, 8, 9), axis=1)),
    "GlobalAveragePool": ("QUANTIZED_LINEAR_AVERAGE_POOLING", model("GlobalAveragePool", (1, 4, 7, 9))),
}
"""With the operator that each comes to."""


@pytest.mark.parametrize("name", MODELS)
def test_is_computed_in_integers(name: str) -> None:
    operator, proto = MODELS[name]
    session = anydml.onnx.InferenceSession(proto)
    used = [each for report in session.reports() for each in report.operators]
    assert any(each.startswith(operator) for each in used), used
    assert not {"CONVOLUTION", "GEMM", "ELEMENT_WISE_ADD", "AVERAGE_POOLING"} & {*used}


@pytest.mark.parametrize("name", MODELS)
def test_is_what_floats_give(name: str) -> None:
    """Beside the reference's floats: the same, but where these round on the way to a half."""
    from onnx.reference import ReferenceEvaluator

    _, proto = MODELS[name]
    shape = [each.dim_value for each in proto.graph.input[0].type.tensor_type.shape.dim]
    x = np.random.default_rng(3).standard_normal(shape).astype(np.float32)
    (wanted,) = ReferenceEvaluator(proto).run(None, {"x": x})
    (found,) = anydml.onnx.InferenceSession(proto).run(None, {"x": x})
    step = SCALES["x"] if name in ("MaxPool", "Concat") else SCALES["y"]
    steps = np.abs(found.astype(np.float64) - wanted) / step
    assert steps.max() <= 1 + 1e-5
    assert (steps > 0.5).mean() <= 0.02


def test_a_value_that_others_read_stays_a_float() -> None:
    proto = MODELS["Conv"][1]
    proto.graph.output.append(helper.make_tensor_value_info("f", TensorProto.FLOAT, None))
    session = anydml.onnx.InferenceSession(proto)
    proto.graph.output.pop()
    assert "CONVOLUTION" in [each for report in session.reports() for each in report.operators]
