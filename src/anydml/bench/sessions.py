"""ONNX Runtime's sessions: models of one node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

from ..core.strided_layout import Array
from .places import Run


def session(
    onnxruntime: Any,
    threads: int,
    operator: str,
    inputs: list[Array],
    output: Array,
    constants: dict[str, Array],
    options: Mapping[str, Any],
    domain: str = "",
    order: Sequence[str] = (),
    outputs: int = 1,
) -> Run:
    """ONNX Runtime: a model of one node, its memory bound; the node's inputs in another order where it is given,
    and with outputs behind the first that nobody sees."""
    helper: Any = import_module("onnx.helper")
    numpy_helper: Any = import_module("onnx.numpy_helper")
    names = [f"x{i}" for i in range(len(inputs))]

    def value(name: str, array: Any) -> Any:
        return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)

    results = ["y", *(f"y{i}" for i in range(1, outputs))]
    graph = helper.make_graph(
        [helper.make_node(operator, order or [*names, *constants], results, domain=domain, **options)],
        "bench",
        [value(*pair) for pair in zip(names, inputs, strict=True)],
        [value("y", output)],
        [numpy_helper.from_array(array, key) for key, array in constants.items()],
    )
    sets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=sets, ir_version=10)
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = threads
    settings.log_severity_level = 4  # what fails is raised, too
    made = onnxruntime.InferenceSession(model.SerializeToString(), settings, providers=["CPUExecutionProvider"])
    binding = made.io_binding()
    for name, array in zip(names, inputs, strict=True):
        binding.bind_cpu_input(name, array)
    binding.bind_output("y", "cpu", 0, output.dtype, output.shape, output.ctypes.data)
    return lambda: made.run_with_iobinding(binding)
