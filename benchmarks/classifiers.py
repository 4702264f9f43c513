"""SqueezeNet and MobileNet by PyDirectML's names, beside the same networks in PyTorch, eager, and in ONNX Runtime.

    PYTHONPATH=tests python benchmarks/classifiers.py

One picture on two cores of the CPU. The runs take turns, and the medians are compared. MobileNet is measured twice: as
PyDirectML's sample has it, where the statistics of its normalisations are given with each picture, and with all of its
parameters OWNED_BY_DML, as those of the others are constants. The weights are those of PyDirectML's samples, in the
folder that tests/networks.py names.
"""

from __future__ import annotations

import platform
import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import onnx
import onnxruntime
import torch
from onnx import TensorProto, helper, numpy_helper

import anydml
import networks
import pydirectml as dml

THREADS = 2


class Exported:
    """The same as a model of ONNX, for the operators that the classifiers have."""

    def __init__(self) -> None:
        self._nodes: list[Any] = []
        self._constants: list[Any] = []

    def _node(self, operator: str, *inputs: str, activation: str = "", **attributes: Any) -> str:
        name = f"{operator}{len(self._nodes)}"
        self._nodes.append(helper.make_node(operator, inputs, [name], **attributes))
        return self._node("Relu", name) if activation == networks.RELU else name

    def _constant(self, data: np.ndarray) -> str:
        name = f"constant{len(self._constants)}"
        self._constants.append(numpy_helper.from_array(np.ascontiguousarray(data), name))
        return name

    def input(self, data: np.ndarray) -> str:
        return "picture"

    def convolution(
        self,
        x: str,
        weights: np.ndarray,
        bias: np.ndarray | None,
        activation: str = "",
        *,
        pad: int = 0,
        stride: int = 1,
        groups: int = 1,
    ) -> str:
        parameters = [weights] if bias is None else [weights, bias.reshape(-1)]
        attributes = {"pads": [pad] * 4, "strides": [stride] * 2, "group": groups}
        return self._node("Conv", x, *map(self._constant, parameters), activation=activation, **attributes)

    def batch_normalization(self, x: str, parameters: list[np.ndarray], epsilon: float, activation: str) -> str:
        mean, variance, scale, bias = (self._constant(each.reshape(-1)) for each in parameters)
        attributes = {"epsilon": epsilon, "activation": activation}
        return self._node("BatchNormalization", x, scale, bias, mean, variance, **attributes)

    def max_pooling(self, x: str, window: int, stride: int) -> str:
        return self._node("MaxPool", x, kernel_shape=[window] * 2, strides=[stride] * 2)

    def average_pooling(self, x: str, window: int) -> str:
        return self._node("AveragePool", x, kernel_shape=[window] * 2, strides=[window] * 2)

    def soft_max(self, x: str) -> str:
        return self._node("Softmax", self._node("Reshape", x, self._constant(np.array([1, 1, 1, -1]))), axis=-1)

    def identity(self, x: str) -> str:
        return x

    def add(self, a: str, b: str) -> str:
        return self._node("Add", a, b)

    def join(self, each: list[str]) -> str:
        return self._node("Concat", *each, axis=1)

    def computed(self, output: str, image: np.ndarray) -> Callable[[], np.ndarray]:
        """What runs it on a picture."""
        given = helper.make_tensor_value_info("picture", TensorProto.FLOAT, image.shape)
        found = helper.make_tensor_value_info(output, TensorProto.FLOAT, None)
        graph = helper.make_graph(self._nodes, "classifier", [given], [found], self._constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = THREADS
        # Its threads would wait busily while others are measured.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        return lambda: session.run(None, {"picture": image})[0]


def built(library: networks.Built, network: Callable[..., Any], image: np.ndarray) -> Callable[[], np.ndarray]:
    output = network(library, image)
    model = library.build(output)
    return lambda: np.asarray(library.device.compute(model, library.bindings, [output])[0])


def milliseconds(runs: Mapping[str, Callable[[], object]], rounds: int = 25) -> dict[str, float]:
    """The median of each, in turns."""
    times: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(rounds):
        for name, run in runs.items():
            begin = time.perf_counter()
            run()
            times[name].append(time.perf_counter() - begin)
    return {name: statistics.median(each[2:]) * 1e3 for name, each in times.items()}


def main() -> None:
    torch.set_num_threads(THREADS)
    print(f"{platform.platform()}, anydml {anydml.__version__}, PyTorch {torch.__version__}, ", end="")
    print(f"ONNX {onnx.__version__}, ONNX Runtime {onnxruntime.__version__}, {THREADS} threads")
    image = np.random.default_rng(0).random((1, 3, 224, 224), np.float32)
    for network, builders in (
        (networks.squeezenet, {"anydml": networks.Built}),
        (networks.mobilenet, {"anydml": networks.Built, "anydml, all owned": networks.Owned}),
    ):
        eager, exported = networks.Prepared(), Exported()
        runs = {name: built(builder(dml.Device(False)), network, image) for name, builder in builders.items()}
        runs["PyTorch"] = lambda: network(eager, image).numpy()  # noqa: B023
        runs["ONNX Runtime"] = exported.computed(network(exported, image), image)
        with torch.inference_mode():
            wanted = runs["PyTorch"]()
            for name, run in runs.items():
                error = np.abs(run() - wanted).max() / np.abs(wanted).max()
                assert error < 1e-4, (name, error)
            found = milliseconds(runs)
        print(f"{network.__name__}: PyTorch {found['PyTorch']:.1f} ms, ONNX Runtime {found['ONNX Runtime']:.1f} ms")
        for name in builders:
            to_eager, to_runtime = found[name] / found["PyTorch"], found[name] / found["ONNX Runtime"]
            print(f"  {name} {found[name]:.1f} ms: {to_eager:.2f} and {to_runtime:.2f} times as long")


if __name__ == "__main__":
    main()
