"""Dispatchables that are models of their own: ONNX's, and DirectML's serialised graphs."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from anydml import (
    DML_ACTIVATION_LEAKY_RELU_OPERATOR_DESC,
    DML_BUFFER_TENSOR_DESC,
    DML_SCALAR_UNION,
    DMLError,
    FeatureLevel,
    TensorDataType,
)
from anydml.core.strided_layout import DTYPES
from anydml.frontends import dxdispatch
from anydml.frontends.dxdispatch.serialized import read_graph
from anydml.operators import spec, spec_of
from anydml.operators.schema import OperatorDesc
from anydml.operators.validate import validate
from cases import Case, all_cases, some_of_each
from onnx_samples import chain, model_of, saved, value, with_words
from serialized_graphs import Applied, Constant, serialized

pytest.importorskip("onnx", reason="onnx is not installed")
pytest.importorskip("flatbuffers", reason="flatbuffers is not installed")

FLOATS = {"initialValuesDataType": "FLOAT32"}


def zeros(count: int) -> dict[str, Any]:
    return {**FLOATS, "initialValues": {"valueCount": count, "value": 0}}


def values(*numbers: float) -> dict[str, Any]:
    return {**FLOATS, "initialValues": list(numbers)}


def dispatch(**bindings: Any) -> dict[str, Any]:
    return {"type": "dispatch", "dispatchable": "it", "bindings": bindings}


def shown(name: str) -> dict[str, Any]:
    return {"type": "print", "resource": name}


@pytest.fixture
def loaded(tmp_path: Path) -> Callable[..., Any]:
    """A model with one dispatchable of a file."""

    def load(kind: str, resources: Any, commands: Any, options: Any = None, **more: Any) -> Any:
        text = {
            "resources": resources,
            "dispatchables": {"it": {"type": kind, "sourcePath": "it.onnx" if kind == "onnx" else "it.bin", **more}},
            "commands": commands,
        }
        (tmp_path / "model.json").write_text(json.dumps(text))
        return dxdispatch.load(tmp_path / "model.json", **(options or {}))

    return load


def printed(model: Any, **options: Any) -> list[str]:
    found: list[str] = []
    model.run(write=found.append, **options)
    return "".join(found).splitlines()


def refused(model: Any, level: FeatureLevel = FeatureLevel.LEVEL_6_4) -> str:
    """What is wrong with a model, which then does not run."""
    violations = model.check(level)
    assert violations
    with pytest.raises(DMLError):
        model.run()
    return "\n".join(map(str, violations))


# ONNX models


def joined() -> Any:
    """y = x0 and x1, of {N, 2}, one behind the other."""
    import onnx

    node = onnx.helper.make_node("Concat", ["x0", "x1"], ["y"], axis=0, name="join")
    return model_of([node], [value("x0", ["N", 2]), value("x1", ["N", 2])], [value("y", ["M", "K"])])


def test_shapes_of_bindings_and_deferred_resources(tmp_path: Path, loaded: Any) -> None:
    saved(tmp_path, "it.onnx", joined())
    resources = {
        "a": values(1, 2, 3, 4, 5, 6),
        "b": values(7, 8, 9, 10, 11, 12),
        "c": zeros(12),
        "d": {**FLOATS, "initialValues": "deferred"},
    }
    commands = []
    for rows, output in ((1, {"name": "c", "shape": [2, 2]}), (3, "d"), (2, "d")):
        read = {name: {"name": resource, "shape": [rows, 2]} for name, resource in (("x0", "a"), ("x1", "b"))}
        commands += [dispatch(**read, y=output), shown("d" if output == "d" else "c")]
    commands.append({"type": "writeFile", "resource": "d", "targetPath": "d.npy"})
    assert printed(loaded("onnx", resources, commands)) == [
        "Resource 'c': 1, 2, 7, 8, 0, 0, 0, 0, 0, 0, 0, 0",
        "Resource 'd': 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12",
        "Resource 'd': 1, 2, 3, 4, 7, 8, 9, 10",
        "Resource 'd' written to 'd.npy'",
    ]
    assert np.load(tmp_path / "d.npy").tolist() == [[1, 2], [3, 4], [7, 8], [9, 10]]


def test_a_result_feeds_the_next_dispatch(tmp_path: Path, loaded: Any) -> None:
    saved(tmp_path, "it.onnx", joined())
    deferred = {**FLOATS, "initialValues": "deferred"}
    first = dispatch(x0={"name": "a", "shape": [1, 2]}, x1={"name": "a", "shape": [1, 2]}, y="d")
    second = dispatch(x0={"name": "d", "shape": [2, 2]}, x1={"name": "d", "shape": [2, 2]}, y="e")
    model = loaded("onnx", {"a": values(1, 2), "d": deferred, "e": deferred}, [first, second, shown("e")])
    assert printed(model) == ["Resource 'e': 1, 2, 1, 2, 1, 2, 1, 2"]
    third = dispatch(x0={"name": "d", "shape": [9, 2]}, x1={"name": "d", "shape": [9, 2]}, y="e")
    with pytest.raises(DMLError, match=r"commands\[1\].bindings.x0: found 16 bytes, expected at least 72"):
        loaded("onnx", {"a": values(1, 2), "d": deferred, "e": deferred}, [first, third]).run()


@pytest.mark.parametrize(
    ("more", "options", "expected"),
    [
        ({}, {}, "1, 2, 7, 8"),
        ({"freeDimensionNameOverrides": {"N": 2}}, {}, "1, 2, 3, 4, 7, 8, 9, 10"),
        ({"freeDimensionDenotationOverrides": {"DATA_BATCH": 3}}, {}, "1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12"),
        ({"freeDimensionNameOverrides": {"N": 2}}, {"sizes": {"N": 1}}, "1, 2, 7, 8"),
        ({"graphOptimizationLevel": 0, "loggingLevel": 2, "sessionOptionsConfigEntries": {"a": "0"}}, {}, "1, 2, 7, 8"),
    ],
)
def test_free_dimensions(tmp_path: Path, loaded: Any, more: Any, options: Any, expected: str) -> None:
    model = joined()
    for each in model.graph.input:
        each.type.tensor_type.shape.dim[0].denotation = "DATA_BATCH"
    saved(tmp_path, "it.onnx", model)
    resources = {"a": values(1, 2, 3, 4, 5, 6), "b": values(7, 8, 9, 10, 11, 12)}
    resources["d"] = {**FLOATS, "initialValues": "deferred"}
    commands = [dispatch(x0="a", x1="b", y="d"), shown("d")]
    assert printed(loaded("onnx", resources, commands, options, **more)) == [f"Resource 'd': {expected}"]


def test_what_is_not_bound_is_zero_or_dropped(tmp_path: Path, loaded: Any) -> None:
    saved(tmp_path, "it.onnx", chain())
    resources = {"y": zeros(4)}
    assert printed(loaded("onnx", resources, [dispatch(), dispatch(y="y"), shown("y")])) == [
        "Resource 'y': 0.562176, 0.622459, 0.5, 0.731059"
    ]


def test_iterations_are_timed(tmp_path: Path, loaded: Any) -> None:
    saved(tmp_path, "it.onnx", chain())
    (line,) = printed(loaded("onnx", {}, [dispatch()]), iterations=3)
    assert line.startswith("Dispatch 'it': 3 iterations, ")


def test_fallback_where_it_is_allowed(tmp_path: Path, loaded: Any) -> None:
    saved(tmp_path, "it.onnx", with_words())
    resources = {"x": {"initialValuesDataType": "INT64", "initialValues": [1, 2, 1]}, "y": zeros(2)}
    commands = [dispatch(x="x", y="y"), shown("y")]
    found = refused(loaded("onnx", resources, commands))
    assert "commands[0]: node 'count': TfIdfVectorizer: found DirectML has no operator for it" in found
    assert printed(loaded("onnx", resources, commands, {"fallback": True})) == ["Resource 'y': 2, 1"]


@pytest.mark.parametrize(
    ("bindings", "said"),
    [
        ({"z": "a"}, r"bindings.z: found no such tensor, expected an input or an output: x0, x1 or y \(M12\)"),
        ({"x0": ["a", "a"]}, r"bindings.x0: found 2 bindings, expected one \(M12\)"),
        ({"x0": {"name": "a", "shape": [2]}}, r"x0.shape: found \[2\], expected \['N', 2\], as the model says \(M12\)"),
        ({"x0": {"name": "a", "shape": [2, 3]}}, r"x0.shape: found \[2, 3\], expected \['N', 2\]"),
        ({"x0": {"name": "a", "shape": [2, -3]}}, r"x0.shape: found a list of 2, expected sizes of dimensions \(M4\)"),
        ({"x0": {"name": "a", "shape": [99, 2]}}, r"bindings.x0: found 16 bytes, expected at least 792"),
        ({"x0": {"name": "a", "shape": [2**60, 2]}}, r"bindings.x0: found 16 bytes, expected at least"),
        ({"x0": {"name": "a", "shape": [2, 2], "elementOffset": 1}}, r"found 12 bytes, expected at least 16"),
        ({"y": {"name": "d", "elementCount": 1}}, r"bindings.y: found a part of a deferred resource, expected all"),
    ],
)
def test_bindings_of_onnx_models_that_are_wrong(tmp_path: Path, loaded: Any, bindings: Any, said: str) -> None:
    saved(tmp_path, "it.onnx", joined())
    resources = {"a": values(1, 2, 3, 4), "d": {**FLOATS, "initialValues": "deferred"}}
    assert re.search(said, refused(loaded("onnx", resources, [dispatch(**bindings)])))


def test_results_that_do_not_fit(tmp_path: Path, loaded: Any) -> None:
    saved(tmp_path, "it.onnx", joined())
    with pytest.raises(DMLError, match=r"y: found 4 bytes, expected at least the 16 of a result of shape \[2, 2\]"):
        loaded("onnx", {"c": zeros(1)}, [dispatch(y="c")]).run()
    with pytest.raises(DMLError, match=r"y: found shape \[2, 2\], expected shape \[4\], as the binding says"):
        loaded("onnx", {"c": zeros(4)}, [dispatch(y={"name": "c", "shape": [4]})]).run()


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (None, r"No such file.*\(M10\)"),
        (b"no model", r"expected a valid ONNX model \(M10\)"),
        (b"", r"expected a valid ONNX model \(M10\)"),
    ],
)
def test_files_that_are_no_onnx_models(tmp_path: Path, loaded: Any, data: bytes | None, said: str) -> None:
    if data is not None:
        (tmp_path / "it.onnx").write_bytes(data)
    assert re.search(said, refused(loaded("onnx", {}, [dispatch()])))


def test_an_operator_does_not_take_what_is_deferred(tmp_path: Path) -> None:
    tensor = {"DataType": "FLOAT32", "Sizes": [4]}
    text = {
        "resources": {"a": values(1, 2, 3, 4), "d": {**FLOATS, "initialValues": "deferred"}},
        "dispatchables": {"it": {"type": "ACTIVATION_RELU", "desc": {"InputTensor": tensor, "OutputTensor": tensor}}},
        "commands": [dispatch(InputTensor="a", OutputTensor="d")],
    }
    assert "found the deferred resource 'd', expected one with a size (M12)" in refused(
        dxdispatch.loads(json.dumps(text))
    )


# Serialised graphs


def tensor(*sizes: int, **members: Any) -> DML_BUFFER_TENSOR_DESC:
    return DML_BUFFER_TENSOR_DESC(DataType=TensorDataType.FLOAT32, Sizes=sizes, **members)


def desc_of(name: str, **members: Any) -> OperatorDesc:
    found: OperatorDesc = spec(name).desc(**members)
    return found


def product() -> list[Applied | Constant]:
    """y = leaky(x @ w) + b, of w in a file and b in the graph."""
    leaky = DML_ACTIVATION_LEAKY_RELU_OPERATOR_DESC(InputTensor=None, OutputTensor=None, Alpha=0.5)
    gemm = desc_of(
        "GEMM", ATensor=tensor(1, 1, 2, 2), BTensor=tensor(1, 1, 2, 2), CTensor=None, OutputTensor=tensor(1, 1, 2, 2),
        TransA=0, TransB=0, Alpha=1.0, Beta=0.0, FusedActivation=leaky,
    )  # fmt: skip
    add = desc_of(
        "ELEMENT_WISE_ADD", ATensor=tensor(1, 1, 2, 2), BTensor=tensor(1, 1, 2, 2, Strides=(0, 0, 0, 1)),
        OutputTensor=tensor(1, 1, 2, 2),
    )  # fmt: skip
    return [
        Constant("w", "weights"),
        Constant("b", np.array([10, 20], np.float32).tobytes()),
        Applied(gemm, ["x", "w", ""], ["p"], "product"),
        Applied(add, ["p", "b"], ["y"], "shift"),
    ]


@pytest.fixture
def graph(tmp_path: Path) -> Path:
    np.array([1, -1, 2, 1], np.float32).tofile(tmp_path / "weights.bin")
    (tmp_path / "it.bin").write_bytes(serialized(product(), ["x"], ["y"]))
    return tmp_path / "it.bin"


RESOURCES = {"x": values(1, 2, 3, 4), "y": zeros(4)}
COMMANDS = [dispatch(x="x", y="y"), shown("y")]


@pytest.mark.parametrize("device", ["cpu", "reference"])
def test_a_graph_with_constants_in_files(graph: Path, loaded: Any, device: str) -> None:
    # {{1, 2}, {3, 4}} @ {{1, -1}, {2, 1}} = {{5, 1}, {11, 1}}
    model = loaded("dmlSerializedGraph", RESOURCES, COMMANDS)
    assert model.check() == []
    assert printed(model, device=device) == ["Resource 'y': 15, 21, 21, 21"]
    assert printed(model, device=device, iterations=2)[1:] == ["Resource 'y': 15, 21, 21, 21"]


def test_a_graph_at_a_feature_level(graph: Path, loaded: Any) -> None:
    model = loaded("dmlSerializedGraph", RESOURCES, COMMANDS)
    assert "found a constant node at feature level 5.0" in refused_at(model, FeatureLevel.LEVEL_5_0)


def refused_at(model: Any, level: FeatureLevel) -> str:
    return "\n".join(map(str, model.check(level)))


@pytest.mark.parametrize(
    ("bindings", "said"),
    [
        ({"x": "x"}, "commands[0].bindings: found no binding for y"),
        ({"x": "x", "y": "y", "z": "y"}, "bindings.z: found no such tensor, expected an input or an output: x or y"),
        ({"x": "x", "y": "x"}, "y: found memory shared with x"),
        ({"x": "x", "y": "small"}, "y: found 4 bytes"),
        ({"x": "x", "y": "d"}, "bindings.y: found a deferred resource"),
    ],
)
def test_bindings_of_graphs_that_are_wrong(graph: Path, loaded: Any, bindings: Any, said: str) -> None:
    resources = {**RESOURCES, "small": zeros(1), "d": {**FLOATS, "initialValues": "deferred"}}
    assert said in refused(loaded("dmlSerializedGraph", resources, [dispatch(**bindings)]))


def test_constants_that_are_wrong(graph: Path, loaded: Any, tmp_path: Path) -> None:
    np.zeros(5, np.float32).tofile(tmp_path / "weights.bin")
    assert "found 20 bytes in" in refused(loaded("dmlSerializedGraph", RESOURCES, COMMANDS))
    (tmp_path / "weights.bin").unlink()
    assert "weights.bin' (No such file" in refused(loaded("dmlSerializedGraph", RESOURCES, COMMANDS))
    for name in ("../weights", "/etc/hosts", ""):
        graph.write_bytes(serialized([Constant("w", name), *product()[1:]], ["x"], ["y"]))
        assert "(M10)" in refused(loaded("dmlSerializedGraph", RESOURCES, COMMANDS))


def test_edges_and_operators_that_are_wrong(graph: Path, loaded: Any) -> None:
    weights, biases, *nodes = product()
    graph.write_bytes(serialized([weights, *nodes], ["x"], ["y"]))
    assert "node 'shift': found an edge 'b' from nowhere" in refused(loaded("dmlSerializedGraph", RESOURCES, COMMANDS))
    graph.write_bytes(serialized([weights, biases, *nodes[:1]], ["x"], ["y"]))
    assert "(G4)" in refused(loaded("dmlSerializedGraph", RESOURCES, COMMANDS))
    bad = desc_of("ACTIVATION_RELU", InputTensor=tensor(4), OutputTensor=tensor(5))
    graph.write_bytes(serialized([Applied(bad, ["x"], ["y"], "bad")], ["x"], ["y"]))
    assert "node 'bad': ACTIVATION_RELU" in refused(loaded("dmlSerializedGraph", RESOURCES, COMMANDS))


def test_a_graph_that_is_cut_off_or_changed(graph: Path, loaded: Any) -> None:
    data = graph.read_bytes()
    for end in range(0, len(data), 7):
        graph.write_bytes(data[:end])
        assert "(M10)" in "\n".join(map(str, loaded("dmlSerializedGraph", RESOURCES, COMMANDS).check()))
    random = np.random.default_rng(0)
    for _ in range(300):
        changed = bytearray(data)
        changed[random.integers(len(data))] = random.integers(256)
        graph.write_bytes(changed)
        model = loaded("dmlSerializedGraph", RESOURCES, COMMANDS)
        if not model.check():
            model.run(write=lambda text: None)


def of_four_bits(case: Case) -> bool:
    found = spec_of(case.desc)
    assert found is not None
    tensors = [*found.inputs(case.desc), *found.outputs(case.desc)]
    return any(each is not None and each.DataType.bits == 4 for _, each in tensors)


CASES = [case for case in some_of_each(all_cases(), 2) if not of_four_bits(case)]


def number_of(value: Any, data_type: TensorDataType) -> Any:
    """A number as an array of its type; -1 of an unsigned type is the largest."""
    number = value.value_of(data_type) if isinstance(value, DML_SCALAR_UNION) else value
    return np.array(number).astype(DTYPES[data_type])


def alike(read: Any, given: Any) -> bool:
    """Whether a member that was read is the one that was written."""
    if isinstance(given, DML_BUFFER_TENSOR_DESC):
        names = ("DataType", "Sizes", "Strides", "TotalTensorSizeInBytes")
        return all(getattr(read, name) == getattr(given, name) for name in names)
    if isinstance(given, tuple) and len(given) == len(read):
        return all(alike(one, other) for one, other in zip(read, given, strict=True))
    if isinstance(given, float):
        return bool(np.array_equal(np.float32(read), np.float32(given), equal_nan=True))
    if isinstance(given, OperatorDesc):
        return type(read) is type(given) and all(
            alike(getattr(read, each.name), getattr(given, each.name)) for each in fields(given)
        )
    return bool(read == given)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_every_operator_is_read_as_it_was_written(tmp_path: Path, case: Case) -> None:
    found = spec_of(case.desc)
    assert found is not None
    inputs = [label if tensor is not None else "" for label, tensor in found.inputs(case.desc)]
    outputs = [label if tensor is not None else "" for label, tensor in found.outputs(case.desc)]
    there = [[name for name in side if name] for side in (inputs, outputs)]
    path = tmp_path / "it.bin"
    path.write_bytes(serialized([Applied(case.desc, inputs, outputs)], *there))
    (node,) = read_graph(path).nodes
    assert type(node.desc) is type(case.desc)
    scalar = case.desc.scalar_type
    for each in fields(case.desc):
        read, given = getattr(node.desc, each.name), getattr(case.desc, each.name)
        if found.members.get(each.name) == "SCALAR":
            assert number_of(read, scalar).tobytes() == number_of(given, scalar).tobytes(), each.name
        else:
            assert alike(read, given), each.name
    assert validate(node.desc) == []
