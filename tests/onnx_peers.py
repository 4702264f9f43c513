"""Models of one ONNX node, run by :class:`anydml.onnx.InferenceSession` and by ONNX Runtime."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import onnx
import onnxruntime

import anydml.onnx


def model_of(
    op: str,
    inputs: Sequence[Any],
    attributes: Mapping[str, Any],
    *,
    outputs: int = 1,
    opset: int = 17,
    constants: Sequence[int] = (),
    wanted: Sequence[Any] | None = None,
) -> onnx.ModelProto:
    """A model of one node.

    Args:
        op: its operator, with its domain before it where that is not ONNX's own.
        inputs: arrays, None for those that are left out.
        attributes: by name.
        outputs: how many there are.
        opset: the version of ONNX's operators.
        constants: which inputs are initializers; all others are fed.
        wanted: what the outputs are like; not said where None.
    """
    domain, _, kind = op.rpartition(".")
    names = [f"x{i}" if x is not None else "" for i, x in enumerate(inputs)]
    node = onnx.helper.make_node(kind, names, [f"y{i}" for i in range(outputs)], domain=domain, **attributes)
    fed = [(i, x) for i, x in enumerate(inputs) if x is not None and i not in constants]
    ends = [onnx.ValueInfoProto(name=f"y{i}") for i in range(outputs)]
    if wanted is not None:
        ends = [_info(f"y{i}", y) for i, y in enumerate(wanted)]
    graph = onnx.helper.make_graph(
        [node],
        "node",
        [_info(f"x{i}", x) for i, x in fed],
        ends,
        [onnx.numpy_helper.from_array(inputs[i], f"x{i}") for i in constants if inputs[i] is not None],
    )
    imports = [onnx.helper.make_opsetid("", opset)] + ([onnx.helper.make_opsetid(domain, 1)] if domain else [])
    return onnx.helper.make_model(graph, opset_imports=imports, ir_version=10)


def _info(name: str, x: Any) -> onnx.ValueInfoProto:
    return onnx.helper.make_tensor_value_info(name, onnx.helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)


def by_runtime(model: onnx.ModelProto, feeds: Mapping[str, Any]) -> list[Any]:
    """What ONNX Runtime computes."""
    return list(_session(model).run(None, dict(feeds)))


def _session(model: Any) -> Any:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    # Where processors have no VNNI it adds products of bytes in 16 bits, saturated, unless it is asked to be exact;
    # then it has no kernel for some convolutions.
    options.add_session_config_entry("session.x64quantprecision", "1")
    data, providers = model.SerializeToString(), ["CPUExecutionProvider"]
    try:
        return onnxruntime.InferenceSession(data, options, providers)
    except onnxruntime.capi.onnxruntime_pybind11_state.NotImplemented:
        options.add_session_config_entry("session.x64quantprecision", "0")
        return onnxruntime.InferenceSession(data, options, providers)


@cache
def saturates_products() -> bool:
    """Whether ONNX Runtime adds products of bytes in 16 bits here, where it cannot be asked to be exact."""
    model = model_of("MatMulInteger", [np.full((1, 8), 255, np.uint8), np.full((8, 8), 127, np.int8)], {})
    feeds = {"x0": np.full((1, 8), 255, np.uint8), "x1": np.full((8, 8), 127, np.int8)}
    return bool((by_runtime(model, feeds)[0] != 8 * 255 * 127).any())


def weights_of(numbers: Any) -> Any:
    """Bytes to multiply others by: below 64 where ONNX Runtime saturates, as two products have room in 16 bits then."""
    return numbers // 2 if numbers.dtype == np.int8 and saturates_products() else numbers


def assert_alike(
    op: str,
    inputs: Sequence[Any],
    attributes: Mapping[str, Any] | None = None,
    *,
    rtol: float = 1e-5,
    atol: float = 1e-5,
    compared: int | None = None,
    **options: Any,
) -> anydml.onnx.InferenceSession:
    """Asserts that both give outputs of the same types, shapes and numbers, of which `compared` are looked at.

    Returns:
        The session.
    """
    model = model_of(op, inputs, attributes or {}, **options)
    constants = options.get("constants", ())
    feeds = {f"x{i}": x for i, x in enumerate(inputs) if x is not None and i not in constants}
    expected = by_runtime(model, feeds)
    session = anydml.onnx.InferenceSession(model_of(op, inputs, attributes or {}, **options, wanted=expected))
    for i, (y, wanted) in enumerate([*zip(session.run(None, feeds), expected, strict=True)][:compared]):
        assert (y.dtype, y.shape) == (wanted.dtype, wanted.shape), f"{op}, output {i}"
        y, wanted = (np.asarray(each, np.float64) for each in (y, wanted))
        np.testing.assert_allclose(y, wanted, rtol, atol, err_msg=f"{op} {attributes}, output {i}")
    return session
