"""ONNX models that are broken, or ask for what no machine has: each is refused in words, and nothing crashes."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from anydml import DMLError
from anydml.onnx import InferenceSession
from onnx_samples import chain, model_of, saved, value, with_words

onnx = pytest.importorskip("onnx", reason="onnx is not installed")


def node(op: str, inputs: list[str], outputs: list[str], **attributes: Any) -> Any:
    return onnx.helper.make_node(op, inputs, outputs, name=op.lower(), **attributes)


def single(op: str, shapes: list[Any], **attributes: Any) -> Any:
    """A model of one node; what is no shape is a constant."""
    names = [f"x{i}" for i in range(len(shapes))]
    inputs = [value(name, each) for name, each in zip(names, shapes, strict=True) if isinstance(each, list)]
    constants = {name: each for name, each in zip(names, shapes, strict=True) if not isinstance(each, list)}
    return model_of([node(op, names, ["y"], **attributes)], inputs, [value("y", ["a"])], constants)


def run(source: Any) -> list[Any]:
    """Runs a model on zeros, of size 1 where a dimension is free."""
    session = InferenceSession(source)
    feeds = {
        each.name: np.zeros(
            [size if isinstance(size, int) else 1 for size in each.shape or ()],
            onnx.helper.tensor_dtype_to_np_dtype(each.data_type),
        )
        for each in session.get_inputs()
    }
    return session.run(None, feeds)


def changed(change: Callable[[Any], object], model: Any = None) -> Any:
    model = chain() if model is None else model
    change(model)
    return model


def swapped(model: Any) -> None:
    first, second = onnx.NodeProto(), onnx.NodeProto()
    first.CopyFrom(model.graph.node[0])
    second.CopyFrom(model.graph.node[1])
    model.graph.node[0].CopyFrom(second)
    model.graph.node[1].CopyFrom(first)


def cyclic(model: Any) -> None:
    model.graph.node[0].input[1] = "y"


def outside(model: Any) -> None:
    tensor = model.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="../../weights.bin")


def too_short(model: Any) -> None:
    model.graph.initializer[0].raw_data = b"\0" * 3


def untyped(model: Any) -> None:
    model.graph.input[0].type.tensor_type.elem_type = 0


def of_no_type(model: Any) -> None:
    model.graph.input[0].type.tensor_type.elem_type = 99


def recursive(model: Any) -> None:
    function = model.functions.add(name="again", domain="own")
    function.input.append("a")
    function.output.append("b")
    function.opset_import.add(domain="own", version=1)
    function.node.add(op_type="again", domain="own", input=["a"], output=["b"])
    model.opset_import.add(domain="own", version=1)
    model.graph.node[0].op_type, model.graph.node[0].domain = "again", "own"
    del model.graph.node[0].input[1:]


@pytest.mark.parametrize(
    "change",
    [
        swapped,
        cyclic,
        outside,
        too_short,
        untyped,
        of_no_type,
        recursive,
        lambda model: model.ClearField("graph"),
        lambda model: model.ClearField("ir_version"),
        lambda model: model.ClearField("opset_import"),
        lambda model: model.opset_import[0].CopyFrom(onnx.helper.make_opsetid("", 10**6)),
        lambda model: model.graph.ClearField("output"),
        lambda model: model.graph.output[0].CopyFrom(value("nothing", [1])),
        lambda model: model.graph.node[0].input.__setitem__(0, "nothing"),
        lambda model: model.graph.node[1].output.__setitem__(0, "scaled"),
        lambda model: model.graph.initializer[0].dims.__setitem__(0, 2**62),
        lambda model: model.graph.initializer[0].dims.__setitem__(0, -1),
    ],
)
def test_broken_models_are_no_models(change: Callable[[Any], object]) -> None:
    with pytest.raises(DMLError, match=r"\(N1\)"):
        run(changed(change).SerializeToString())


@pytest.mark.parametrize("end", [0, 1, 10, 50, 100, 200])
def test_a_model_that_is_cut_off(tmp_path: Path, end: int) -> None:
    data = chain().SerializeToString()
    assert end < len(data)
    for source in (data[:end], tmp_path / "cut.onnx"):
        (tmp_path / "cut.onnx").write_bytes(data[:end])
        with pytest.raises(DMLError, match=r"\(N1\)"):
            run(source)


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (with_words, "node 'count': TfIdfVectorizer: found DirectML has no operator for it"),
        (lambda: single("Add", [[2], [3]]), "node 'add': Add: found attributes, types or shapes"),
        (lambda: single("Add", [[2], np.array([1], np.int64)]), "inconsistent type"),
        (lambda: single("Concat", [[2], [3, 1]], axis=0), "node 'concat': Concat: found"),
        (lambda: single("Reshape", [[4], np.array([3, -1])]), "node 'reshape': Reshape: found"),
        (lambda: single("Reshape", [[4], np.array([2**62, 2**62])]), "node 'reshape': Reshape: found"),
        (lambda: single("Expand", [[1], np.array([2**62])]), r"\(N2\)|\(D6\)|\(T5\)"),
        (lambda: single("Tile", [[1], np.array([2**62])]), r"\(N2\)|\(D6\)|\(T5\)"),
        (lambda: single("Pad", [[1], np.array([2**61, 2**61])]), r"\(N2\)|\(D6\)|\(T5\)"),
        (lambda: single("ConstantOfShape", [np.array([2**62])]), r"\(N2\)|\(D6\)|\(T5\)"),
        (lambda: single("Range", [np.array(0), np.array(2**62), np.array(1)]), r"\(N2\)|\(D6\)|\(T5\)"),
        (lambda: single("Conv", [[1, 2, 4, 4], [3, 1, 2, 2]]), "node 'conv': Conv: found"),
        (lambda: single("Conv", [[1, 2, 4, 4], [3, 2, 2, 2]], strides=[0, 1]), "node 'conv': Conv: found"),
        (lambda: single("Flatten", [[1, 2]], axis=3), "node 'flatten': Flatten: found"),
        (lambda: single("LayerNormalization", [[2, 2], [2]], axis=2**31), "node 'layernormalization'"),
        (lambda: single("Transpose", [[1, 2]], perm=[0, 0]), "node 'transpose': Transpose: found"),
        (lambda: single("MatMul", [[2, 3], [4, 5]]), "node 'matmul': MatMul: found"),
        (lambda: single("Gather", [[2], np.array([5])]), r"\(N2\)|\(V1\)"),
    ],
)
def test_nodes_that_nothing_can_do_are_named(model: Callable[[], Any], said: str) -> None:
    with pytest.raises(DMLError) as refused:
        run(model().SerializeToString())
    assert re.search(said, str(refused.value)), refused.value


def test_a_split_into_more_parts_than_there_are_outputs() -> None:
    with pytest.raises(DMLError, match="node 'split': Split: found"):
        run(single("Split", [[4]], num_outputs=2**31).SerializeToString())


def test_an_input_without_a_shape_takes_any() -> None:
    model = chain()
    model.graph.input[0].type.tensor_type.ClearField("shape")
    session = InferenceSession(model)
    assert session.get_inputs()[0].shape is None
    for shape in ((4,), (2, 4), (1, 2, 3, 4)):
        assert session.run(None, {"x": np.zeros(shape, np.float32)})[0].shape == shape
    with pytest.raises(DMLError, match="node 'scale': Mul: found attributes, types or shapes"):
        session.run(None, {"x": np.zeros((3, 3), np.float32)})


def test_a_loop_without_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("anydml.frontends.onnx.control._MOST_ITERATIONS", 50)
    body = onnx.helper.make_graph(
        [node("Identity", ["go"], ["again"]), node("Relu", ["v"], ["w"])],
        "body",
        [value("i", [], np.int64), value("go", [], np.bool_), value("v", [2])],
        [value("again", [], np.bool_), value("w", [2])],
    )
    constants = {"n": np.array(2**62), "c": np.array(True)}
    loop = model_of([node("Loop", ["n", "c", "x"], ["y"], body=body)], [value("x", [2])], [value("y", [2])], constants)
    with pytest.raises(DMLError, match="node 'loop': Loop: found a loop of more than 50 iterations"):
        run(loop)


@pytest.mark.parametrize("place", ["../weights.bin", "/etc/hosts", "weights.bin", "link.bin"])
def test_external_data_are_in_the_models_folder(tmp_path: Path, place: str) -> None:
    folder = tmp_path / "models"
    folder.mkdir()
    (tmp_path / "weights.bin").write_bytes(np.ones(4, np.float32).tobytes())
    if sys.platform != "win32":
        (folder / "link.bin").symlink_to(tmp_path / "weights.bin")
    model = chain()
    outside(model)
    model.graph.initializer[0].external_data[0].value = place
    with pytest.raises((DMLError, OSError)) as refused:
        run(saved(folder, "model.onnx", model))
    assert isinstance(refused.value, DMLError), refused.value
    assert refused.value.violations[0].rule == "(N1)"


def test_external_data_in_the_folder_are_read(tmp_path: Path) -> None:
    model = chain()
    onnx.save(model, tmp_path / "model.onnx", save_as_external_data=True, size_threshold=0, location="w.bin")
    assert (tmp_path / "w.bin").exists()
    assert np.array_equal(run(tmp_path / "model.onnx")[0], run(chain())[0])


def test_another_runtime_refuses_it_too() -> None:
    model = with_words()
    next(each for each in model.graph.node[1].attribute if each.name == "mode").s = b"none"
    session = InferenceSession(model, fallback=True)
    with pytest.raises(DMLError, match=r"node 'count': TfIdfVectorizer: found .*\(N2\)"):
        session.run(None, {"x": np.zeros(3, np.int64)})


@pytest.mark.slow
def test_bytes_that_were_changed() -> None:
    random = Random("1")
    data = chain().SerializeToString()
    for _ in range(300):
        broken = bytearray(data)
        for _ in range(random.choice([1, 2, 5])):
            broken[random.randrange(len(broken))] = random.randrange(256)
        with suppress(DMLError):  # and nothing else
            assert run(bytes(broken))
