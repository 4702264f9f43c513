"""Large initializers are read beside protobuf: the same arrays, whatever the model is given as."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from anydml.core.errors import DMLError
from anydml.frontends.onnx.initializers import split
from anydml.frontends.onnx.model import read
from anydml.onnx import InferenceSession

_TYPES = (
    *("float32", "float16", "float64", "int8", "uint8", "int32", "int64", "bool"),
    *(ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.int4),
)


def _arrays() -> dict[str, np.ndarray]:
    generator = np.random.default_rng(5)
    sizes = {"small": (3, 5), "large": (61, 199), "none": (0, 4), "number": ()}
    return {
        f"{np.dtype(kind).name} {name}": generator.integers(0, 7, shape).astype(kind)
        for kind in _TYPES
        for name, shape in sizes.items()
    }


def _model(initializers: list[TensorProto]) -> onnx.ModelProto:
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, (199,))
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, (61, 199))
    node = helper.make_node("Add", ["x", "float32 large"], ["y"])
    return helper.make_model(helper.make_graph([node], "graph", [x], [y], initializers), ir_version=11)


@pytest.fixture
def model() -> onnx.ModelProto:
    made = [numpy_helper.from_array(array, name) for name, array in _arrays().items()]
    # Numbers in a field of their type, too, which is no raw data.
    made.append(helper.make_tensor("in a field", TensorProto.FLOAT, (2000,), np.arange(2000, dtype=np.float32)))
    return _model(made)


@pytest.mark.parametrize("given", ["path", "bytes", "proto"])
def test_arrays_are_what_onnx_reads(model, given, tmp_path):
    onnx.save(model, tmp_path / "model.onnx")
    source = {"path": tmp_path / "model.onnx", "bytes": model.SerializeToString(), "proto": model}[given]
    before = model.SerializeToString()
    found = read(source)
    for each in model.graph.initializer:
        expected = numpy_helper.to_array(each)
        array = found.constants[each.name]
        assert (array.dtype, array.shape) == (expected.dtype, expected.shape), each.name
        assert array.tobytes() == expected.tobytes(), each.name
        assert array.nbytes < 4096 or each.name in ("in a field", "int4 large") or not array.flags.writeable
    assert model.SerializeToString() == before
    whole = {each.name: numpy_helper.to_array(each) for each in found.whole().graph.initializer}
    assert {name: array.tobytes() for name, array in whole.items()} == {
        name: array.tobytes() for name, array in found.constants.items()
    }


def test_large_initializers_are_not_in_the_proto(model):
    found = split(model.SerializeToString())
    large = {name for name, array in _arrays().items() if array.nbytes >= 4096 and array.dtype != ml_dtypes.int4}
    assert found.arrays.keys() == large
    assert len(found.proto.SerializeToString()) < 40_000


def test_changes_to_a_model_come_too_late(model):
    session = InferenceSession(model)
    x = np.zeros(199, np.float32)
    (before,) = session.run(None, {"x": x})
    for each in model.graph.initializer:
        each.raw_data = bytes(len(each.raw_data))
    assert np.array_equal(session.run(None, {"x": x})[0], before)
    assert np.array_equal(before, _arrays()["float32 large"])


@pytest.mark.parametrize("size", [0, 4096, 61 * 199 * 4 - 1, 61 * 199 * 4 + 4])
def test_data_of_another_size_is_refused(size):
    tensor = TensorProto(name="float32 large", data_type=TensorProto.FLOAT, dims=(61, 199), raw_data=bytes(size))
    with pytest.raises(DMLError, match=r"\(N1\)"):
        InferenceSession(_model([tensor]).SerializeToString())


def test_broken_bytes_are_left_to_protobuf(model):
    data = model.SerializeToString()
    for cut in (1, 7, 5000, len(data) // 2, len(data) - 1):
        with pytest.raises(DMLError, match=r"\(N1\)"):
            InferenceSession(data[:cut])


def test_what_is_fed_is_no_constant_of_the_next_run():
    """A value that the host reads is copied: whoever fed it may change it."""
    sizes = helper.make_tensor_value_info("shape", TensorProto.INT64, (2,))
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, (6,))
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in ("y",)]
    nodes = [
        helper.make_node("Reshape", ["x", "shape"], ["shaped"]),
        helper.make_node("Cast", ["shape"], ["numbers"], to=TensorProto.FLOAT),
        helper.make_node("ReduceSum", ["numbers"], ["sum"], keepdims=0),
        helper.make_node("Add", ["shaped", "sum"], ["y"]),
    ]
    session = InferenceSession(helper.make_model(helper.make_graph(nodes, "graph", [x, sizes], ends), ir_version=10))
    shape = np.array([2, 3])
    feeds = {"x": np.zeros(6, np.float32), "shape": shape}
    assert np.array_equal(session.run(None, feeds)[0], np.full((2, 3), 5, np.float32))
    shape[:] = 1, 6
    assert np.array_equal(session.run(None, feeds)[0], np.full((1, 6), 7, np.float32))
    shape[:] = 2, 3
    assert np.array_equal(session.run(None, feeds)[0], np.full((2, 3), 5, np.float32))
