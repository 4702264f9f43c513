"""Nodes of ONNX made of attributes and arrays, run by a session and by another runtime, and compared."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import onnx
from onnx import helper

import anydml.onnx


class Form(NamedTuple):
    """A node.

    Attributes:
        op: its operator.
        opset: of which set.
        attributes: its attributes.
        inputs: arrays; None for one that is left out.
        known: the numbers of inputs that are initializers.
        outputs: how many it gives.
        rtol: how near results have to be.
        atol: likewise.
        by_reference: whether ONNX's reference says what is right, where ONNX Runtime departs from it.
    """

    op: str
    opset: int
    attributes: dict[str, Any]
    inputs: tuple[Any, ...]
    known: tuple[int, ...] = ()
    outputs: int = 1
    rtol: float = 1e-5
    atol: float = 1e-5
    by_reference: bool = False

    def __str__(self) -> str:
        shapes = [None if x is None else f"{x.dtype}{list(x.shape)}" for x in self.inputs]
        small = [x.tolist() for x in self.inputs if x is not None and x.dtype == np.int64 and x.size < 9]
        return f"{self.op}-{self.opset} {self.attributes} of {shapes}, {small}, known {self.known}"


def model_of(form: Form, results: Sequence[Any] = ()) -> onnx.ModelProto:
    """A model of the node alone, whose other inputs are fed; its outputs have the types of these results."""
    names = ["" if x is None else f"x{i}" for i, x in enumerate(form.inputs)]
    node = helper.make_node(form.op, names, [f"y{i}" for i in range(form.outputs)], **form.attributes)
    given = {name: x for name, x in zip(names, form.inputs, strict=True) if name}
    infos = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
        for name, x in given.items()
        if int(name[1:]) not in form.known
    ]
    constants = [onnx.numpy_helper.from_array(x, name) for name, x in given.items() if int(name[1:]) in form.known]
    outputs = [onnx.ValueInfoProto(name=f"y{i}") for i in range(form.outputs)]
    for output, result in zip(outputs, results, strict=False):
        array = np.asarray(result)
        element = helper.np_dtype_to_tensor_dtype(array.dtype)
        output.type.CopyFrom(helper.make_tensor_type_proto(element, [None] * array.ndim))
    graph = helper.make_graph([node], "form", infos, outputs, constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", form.opset)], ir_version=9)


def feeds_of(form: Form) -> dict[str, Any]:
    return {f"x{i}": x for i, x in enumerate(form.inputs) if x is not None and i not in form.known}


def expected_of(form: Form) -> Sequence[Any]:
    """By ONNX Runtime, or, of what it has no kernel for, ONNX's reference."""
    import onnxruntime
    from onnx.reference import ReferenceEvaluator

    model = model_of(form)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    try:
        if not form.by_reference:
            session = onnxruntime.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])
            return list(session.run(None, feeds_of(form)))
    except onnxruntime.capi.onnxruntime_pybind11_state.NotImplemented:
        pass
    return list(ReferenceEvaluator(model).run(None, feeds_of(form)))


def check(form: Form) -> None:
    """Asserts that types, shapes and elements are those of the other runtime."""
    expected = expected_of(form)
    session = anydml.onnx.InferenceSession(model_of(form, expected))
    for found, wanted in zip(session.run(None, feeds_of(form)), expected, strict=True):
        found, wanted = np.asarray(found), np.asarray(wanted)
        assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape), str(form)
        np.testing.assert_allclose(
            found.astype(np.float64), wanted.astype(np.float64), rtol=form.rtol, atol=form.atol, err_msg=str(form)
        )
