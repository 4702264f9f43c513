"""Nodes of ONNX made of attributes and arrays from a seed, run by a session and by another runtime, and compared."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import onnx
import onnxruntime
from onnx.reference import ReferenceEvaluator

import anydml.onnx
from onnx_peers import by_runtime
from onnx_peers import model_of as model_of_node


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


def model_of(form: Form, results: Sequence[Any] | None = None) -> onnx.ModelProto:
    """A model of the node alone, whose other inputs are fed; its outputs have the types of these results."""
    known = tuple([i for i in form.known if i < len(form.inputs)])
    wanted = None if results is None else [np.asarray(each) for each in results]
    return model_of_node(
        form.op,
        form.inputs,
        form.attributes,
        outputs=form.outputs,
        opset=form.opset,
        constants=known,
        wanted=wanted,
    )


def feeds_of(form: Form) -> dict[str, Any]:
    return {f"x{i}": x for i, x in enumerate(form.inputs) if x is not None and i not in form.known}


def expected_of(form: Form) -> Sequence[Any]:
    """By ONNX Runtime, or, of what it has no kernel for, ONNX's reference."""
    model = model_of(form)
    if not form.by_reference:
        try:
            return by_runtime(model, feeds_of(form))
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
