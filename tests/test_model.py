"""Models: what their text may be, what they mean, and every way in which they are wrong."""

from __future__ import annotations

import copy
import json
import os
import re
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from anydml import DMLError, DMLMemoryError, DMLValueError, FeatureLevel
from anydml.frontends import dxdispatch as model
from anydml.frontends.dxdispatch.jsonc import MAX_DEPTH, parse
from anydml.frontends.dxdispatch.limits import _container_limits, default_limit, format_size, parse_size
from anydml.frontends.dxdispatch.session import Session

BASE: dict[str, Any] = {
    "resources": {
        "A": {"initialValuesDataType": "FLOAT32", "initialValues": [2, 4, 8, 3]},
        "Out": {"initialValuesDataType": "FLOAT32", "initialValues": {"valueCount": 4, "value": 0}},
    },
    "dispatchables": {
        "product": {
            "type": "DML_OPERATOR_CUMULATIVE_PRODUCT",
            "desc": {
                "InputTensor": {"DataType": "FLOAT32", "Sizes": [4]},
                "OutputTensor": {"DataType": "FLOAT32", "Sizes": [4]},
                "Axis": 0,
            },
        }
    },
    "commands": [
        {"type": "dispatch", "dispatchable": "product", "bindings": {"InputTensor": "A", "OutputTensor": "Out"}},
        {"type": "print", "resource": "Out"},
    ],
}

DELETE = object()


def changed(changes: dict[str, Any]) -> str:
    """The text of the base model with values put at paths such as ``resources/A/initialValues/0``."""
    value = copy.deepcopy(BASE)
    for path, new in changes.items():
        *parents, last = path.split("/")
        place: Any = value
        for key in parents:
            place = place[int(key)] if isinstance(place, list) else place[key]
        if new is DELETE:
            del place[last]
        elif isinstance(place, list):
            place[int(last)] = new
        else:
            place[last] = new
    return json.dumps(value)


def run(text: str, folder: Path | str = ".", **options: Any) -> str:
    """What a model prints."""
    pieces: list[str] = []
    model.loads(text, folder).run(write=pieces.append, **options)
    return "".join(pieces)


def printed(resource: dict[str, Any], folder: Path | str = ".", **options: Any) -> str:
    """What the print command says of a resource."""
    commands = [{"type": "print", "resource": "R", **options}]
    text = run(json.dumps({"resources": {"R": resource}, "dispatchables": {}, "commands": commands}), folder)
    return text.removeprefix("Resource 'R':").removesuffix("\n").removeprefix(" ")


def values(data_type: str, initial: object) -> dict[str, Any]:
    return {"initialValuesDataType": data_type, "initialValues": initial}


# Text


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("[1, 2,]", [1, 2]),
        ('{"a": 1, /* b */ }', {"a": 1}),
        ("// first\n[ // second\n1 /* third */, ] // last", [1]),
        ('["//", "/*", ",]", "\\",]"]', ["//", "/*", ",]", '",]']),
        ("/**/[]", []),
        ("[1/***/,\n/*\n*/]", [1]),
        ("\ufeff[]", []),
        ("[1.5e3, -0.0, 18446744073709551615]", [1500.0, -0.0, 2**64 - 1]),
        ('["\\ud83d\\ude00", "\\\\ud800"]', ["\U0001f600", "\\ud800"]),
    ],
)
def test_json_as_people_write_it(text: str, value: object) -> None:
    assert parse(text) == value
    assert parse(text.encode()) == value


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1, column 1: found the end of the text, expected JSON (Expecting value) (M2)"),
        ('{\n  "a": 1\n  "b": 2 }', "line 3, column 3: found '\"b\": 2 }', expected JSON"),
        ("[1] 2", "line 1, column 5: found '2'"),
        ("[,]", "line 1, column 2: found ',]'"),
        ("[1,,]", "line 1, column 4"),
        ('{"a":,}', "line 1, column 6"),
        ("[1 /* never", "line 1, column 4: found '/* never', expected a comment with an end"),
        ("/*/", "a comment with an end"),
        ('["never', "line 1, column 2"),
        ('["a\nb"]', "line 1, column 4"),
        ("[/]", "line 1, column 2"),
        ("[" * 10**5, f"column {MAX_DEPTH + 1}: found '[[[[[[[[[["),
        ('["\\ud800"]', "line 1, column 3: found '\\\\ud800\"]', expected both halves of a surrogate pair"),
        ('["\\udc00\\ud800"]', "both halves"),
        ('["\ud800"]', "both halves"),
        ('["\\x"]', "Invalid \\escape"),
        (b"[\xff]", "line 1, byte 1 of the file: found byte 0xFF"),
        (b'["\xed\xa0\x80"]', "text in UTF-8"),
        ("\0", "line 1, column 1"),
    ],
)
def test_text_that_is_no_json(text: str | bytes, message: str) -> None:
    with pytest.raises(DMLValueError) as caught:
        parse(text)
    assert message in str(caught.value)
    assert [violation.rule for violation in caught.value.violations] == ["(M2)"]


# Initial values


@pytest.mark.parametrize(
    ("data_type", "initial", "text"),
    [
        ("FLOAT32", [1, 2.5, "nan", "inf", "-inf", "-Inf"], "1, 2.5, nan, inf, -inf, -inf"),
        ("DML_TENSOR_DATA_TYPE_FLOAT16", [1, 0.1, 65504], "1, 0.0999756, 65504"),
        ("FLOAT64", [0.1, 1e300, 1234567, 123456, -0.0], "0.1, 1e+300, 1.23457e+06, 123456, -0"),
        ("INT8", [-128, 127], "-128, 127"),
        ("UINT8", [0, 255], "0, 255"),
        ("INT64", [-(2**63), 2**63 - 1], "-9223372036854775808, 9223372036854775807"),
        ("UINT64", [2**64 - 1], "18446744073709551615"),
        ("INT16", {"valueCount": 3, "value": -7}, "-7, -7, -7"),
        ("INT32", {"valueCount": 4, "valueStart": 10, "valueDelta": -5}, "10, 5, 0, -5"),
        ("UINT8", {"valueCount": 4, "valueStart": 250, "valueDelta": 3}, "250, 253, 0, 3"),
        ("FLOAT32", {"valueCount": 2, "valueStart": "inf", "valueDelta": "-inf"}, "inf, nan"),
    ],
)
def test_initial_values(data_type: str, initial: object, text: str) -> None:
    assert printed(values(data_type, initial)) == text


@pytest.mark.parametrize("data_type", ["FLOAT32", "FLOAT16"])
def test_a_sequence_rounds_at_every_step(data_type: str) -> None:
    dtype = np.dtype(data_type.lower())
    count = 70_000  # more than one chunk
    initial = {"valueCount": count, "valueStart": 0.1, "valueDelta": 0.1}
    text = json.dumps({"resources": {"R": values(data_type, initial)}, "dispatchables": {}, "commands": []})
    expected, value = [], dtype.type(0.1)
    for _ in range(count):
        expected.append(value)
        value = dtype.type(value + dtype.type(0.1))
    np.testing.assert_array_equal(model.loads(text).run()["R"], np.array(expected, dtype))


def test_values_of_several_types() -> None:
    initial = [
        {"type": "UINT32", "value": 1, "name": "count"},
        {"type": "FLOAT32", "value": 1.5},
        {"type": "INT8", "value": -1},
    ]
    assert printed({"initialValues": initial}) == "01 00 00 00 00 00 C0 3F FF"
    assert printed(values("UNKNOWN", initial)) == "01 00 00 00 00 00 C0 3F FF"


def test_offset_and_size() -> None:
    resource = {**values("UINT8", [1, 2]), "initialValuesOffsetInBytes": 3, "sizeInBytes": 9}
    assert printed(resource) == "0, 0, 0, 1, 2"
    read = model.loads(json.dumps({"resources": {"R": resource}, "dispatchables": {}, "commands": []}))
    assert read.memory_needed == 12


def test_verbose_prints_index_and_bits() -> None:
    resource = values("FLOAT32", {"valueCount": 11, "valueStart": 2, "valueDelta": 0})
    lines = printed(resource, verbose=True).splitlines()
    assert lines[0] == ""
    assert lines[1] == "[ 0] 2 (0x40000000)"
    assert lines[11] == "[10] 2 (0x40000000)"
    assert printed(values("INT8", [-1]), verbose=True) == "\n[0] -1 (0xFF)"


def test_files(tmp_path: Path) -> None:
    array = np.array([[1, 2, 3], [4, 5, 6]], np.int16)
    np.save(tmp_path / "c.npy", array)
    np.save(tmp_path / "fortran.NPY", np.asfortranarray(array))
    (tmp_path / "fortran.NPY.npy").rename(tmp_path / "fortran.NPY")
    np.save(tmp_path / "big.npy", array.astype(">i2"))
    (tmp_path / "raw.dat").write_bytes(array.tobytes())
    for name in ("c.npy", "fortran.NPY", "big.npy"):
        assert printed({"initialValues": {"sourcePath": name}}, tmp_path) == "1, 2, 3, 4, 5, 6"
        assert printed(values("INT16", {"sourcePath": name}), tmp_path) == "1, 2, 3, 4, 5, 6"
    assert printed(values("INT16", {"sourcePath": "raw.dat"}), tmp_path) == "1, 2, 3, 4, 5, 6"


# Running


def test_runs_and_returns_the_elements() -> None:
    pieces: list[str] = []
    results = model.loads(json.dumps(BASE)).run("reference", write=pieces.append)
    assert "".join(pieces) == "Resource 'Out': 2, 8, 64, 192\n"
    np.testing.assert_array_equal(results["Out"], np.array([2, 8, 64, 192], np.float32))
    np.testing.assert_array_equal(results["A"], np.array([2, 4, 8, 3], np.float32))


@pytest.mark.parametrize(
    "changes",
    [
        {"$schema": "./_schema.json", "resources/A/type": "buffer"},
        {"dispatchables/product/type": "CUMULATIVE_PRODUCT"},
        {"dispatchables/product/executionFlags": "DML_EXECUTION_FLAG_DISABLE_META_COMMANDS"},
        {"dispatchables/product/executionFlags": ["NONE", "DESCRIPTORS_VOLATILE"]},
        {"dispatchables/product/dmlCompileType": "DmlCompileGraph"},
        {"dispatchables/product/desc/AxisDirection": "DML_AXIS_DIRECTION_INCREASING"},
        {"dispatchables/product/desc/InputTensor": {"Type": "BUFFER", "Desc": {"DataType": "FLOAT32", "Sizes": [4]}}},
        {"dispatchables/product/desc/InputTensor/Strides": [1], "dispatchables/product/desc/InputTensor/Flags": "NONE"},
        {"dispatchables/product/desc/InputTensor/Strides": [], "dispatchables/product/desc/InputTensor/Flags": []},
        {"dispatchables/product/desc/InputTensor/TotalTensorSizeInBytes": 0},
        {"dispatchables/product/desc/InputTensor/DimensionCount": 1},
        {"dispatchables/product/desc/InputTensor/Type": "DML_TENSOR_TYPE_BUFFER"},
        {"commands/0/type": "DISPATCH", "commands/0/threadGroupCount": [1, 1, 1]},
        {"commands/0/bindings/InputTensor": ["A"]},
        {"commands/0/bindings/InputTensor": {"name": "A", "elementCount": 4, "format": "R32_FLOAT", "shape": [4]}},
        {"commands/0/bindings/InputTensor": {"name": "A", "elementCount": 2, "elementSizeInBytes": 8}},
    ],
)
def test_spellings_that_dxdispatch_takes(changes: dict[str, Any]) -> None:
    assert run(changed(changes)) == "Resource 'Out': 2, 8, 64, 192\n"


def test_members_of_a_desc_may_stand_in_the_dispatchable() -> None:
    flat = {"Type": "JOIN", "executionFlags": [], **desc_of_join([2, 2])}
    assert run(joining(flat, ["A", "A"])) == "Resource 'Out': 1, 2, 1, 2\n"
    aliases = {"Type": "JOIN", "Desc": desc_of_join([2, 2])}
    assert run(joining(aliases, ["A", "A"])) == "Resource 'Out': 1, 2, 1, 2\n"


def adding(activation: object) -> str:
    """A model that adds A = 2, -2 to itself, with an activation."""
    tensor = {"DataType": "FLOAT32", "Sizes": [2]}
    names = ("ATensor", "BTensor", "OutputTensor")
    desc = {**dict.fromkeys(names, tensor), "FusedActivation": activation}
    resources = {"A": values("FLOAT32", [2, -2]), "Out": values("FLOAT32", [0, 0])}
    bindings = dict(zip(names, ("A", "A", "Out"), strict=True))
    commands = [
        {"type": "dispatch", "dispatchable": "add", "bindings": bindings},
        {"type": "print", "resource": "Out"},
    ]
    dispatchables = {"add": {"type": "ELEMENT_WISE_ADD1", "desc": desc}}
    return json.dumps({"resources": resources, "dispatchables": dispatchables, "commands": commands})


@pytest.mark.parametrize(
    ("activation", "output"),
    [
        (None, "4, -4"),
        ({"Type": "ACTIVATION_RELU"}, "4, 0"),
        ({"type": "DML_OPERATOR_ACTIVATION_RELU", "InputTensor": None}, "4, 0"),
        ({"Type": "ACTIVATION_RELU", "Desc": {}}, "4, 0"),
        ({"Type": "ACTIVATION_LEAKY_RELU", "Alpha": 0.5}, "4, -2"),
        ({"type": "ACTIVATION_LEAKY_RELU", "desc": {"Alpha": "inf"}}, "4, -inf"),
    ],
)
def test_a_fused_activation(activation: object, output: str) -> None:
    assert run(adding(activation)) == f"Resource 'Out': {output}\n"


TENSOR = {"DataType": "FLOAT32", "Sizes": [2]}


@pytest.mark.parametrize(
    ("activation", "message"),
    [
        ("ACTIVATION_RELU", r'add.desc.FusedActivation: found "ACTIVATION_RELU", expected an object \(M4\)'),
        ([], r"add.desc.FusedActivation: found a list of 0, expected an object \(M4\)"),
        ({}, r"add.desc.FusedActivation: found no type, expected an object with type \(M3\)"),
        ({"Type": "ACTIVATION_LEAKY_RELU"}, r"FusedActivation: found no Alpha, .* \(M3\)"),
        ({"Type": "ACTIVATION_ELU", "Alfa": 1}, r"FusedActivation.Alfa: .* \(M3\). Did you mean Alpha\?"),
        ({"Type": "ACTIVATION_ELU", "Desc": {}, "Alpha": 1}, r"FusedActivation.Alpha: found an unknown .* \(M3\)"),
        ({"Type": "ACTIVATION_ELU", "Desc": {"Alpha": "a"}}, r'FusedActivation.desc.Alpha: found "a", .* \(M4\)'),
        ({"Type": "ACTIVATION_RELU", "Desc": None}, r"FusedActivation.desc: found null, expected an object \(M4\)"),
        ({"Type": "ACTIVATION_RELOU"}, r"FusedActivation.type: .* \(M11\). Did you mean ACTIVATION_RELU\?"),
        ({"Type": "JOIN"}, r'FusedActivation.type: found "JOIN", expected an activation that may be fused \(M11\)'),
        ({"Type": "ACTIVATION_ELU", "Alpha": 1e39}, r"ADD1.FusedActivation.Alpha: found float 1e\+39, .* \(F8\)"),
        ({"Type": "ACTIVATION_RELU", "OutputTensor": TENSOR}, r"ADD1.FusedActivation.OutputTensor: .* \(F11\)"),
        ({"Type": "ACTIVATION_SOFTMAX"}, r"ADD1.FusedActivation: found ACTIVATION_SOFTMAX .* \(S4\)"),
    ],
)
def test_a_wrong_activation_is_named_with_its_place(activation: object, message: str) -> None:
    with pytest.raises(DMLError, match=message):
        run(adding(activation))


def desc_of_join(sizes: list[int], data_type: str = "INT32", **first: Any) -> dict[str, Any]:
    tensors: list[dict[str, Any]] = [{"DataType": data_type, "Sizes": [size]} for size in sizes]
    tensors[0].update(first)
    return {"InputTensors": tensors, "OutputTensor": {"DataType": data_type, "Sizes": [sum(sizes)]}, "Axis": 0}


def joining(dispatchable: dict[str, Any], inputs: object, data_type: str = "INT32", **command: Any) -> str:
    """A model that joins A = 1, 2, 3, 4, 5, 6, 7, 8 and B = 9."""
    resources = {
        "A": values(data_type, {"valueCount": 8, "valueStart": 1, "valueDelta": 1}),
        "B": values(data_type, [9]),
        "Out": values(data_type, {"valueCount": 4, "value": 0}),
    }
    bindings = {"InputTensors": inputs, "OutputTensor": "Out"}
    commands = [
        {"type": "dispatch", "dispatchable": "join", "bindings": bindings, **command},
        {"type": "print", "resource": "Out"},
    ]
    return json.dumps({"resources": resources, "dispatchables": {"join": dispatchable}, "commands": commands})


@pytest.mark.parametrize(
    ("inputs", "sizes", "data_type", "output"),
    [
        ([{"name": "A", "elementOffset": 4, "elementCount": 3}, "B"], [3, 1], "INT32", "5, 6, 7, 9"),
        ([{"name": "A", "elementOffset": 4}, "B"], [3, 1], "INT32", "5, 6, 7, 9"),
        ([{"name": "A", "elementCount": 3}, "B"], [3, 1], "UINT8", "1, 2, 3, 9"),
        ([{"name": "A", "elementSizeInBytes": 1, "elementCount": 9}, "B"], [3, 1], "INT32", "1, 2, 3, 9"),
    ],
)
def test_bindings_of_parts(inputs: object, sizes: list[int], data_type: str, output: str) -> None:
    dispatchable = {"type": "JOIN", "desc": desc_of_join(sizes, data_type)}
    assert run(joining(dispatchable, inputs, data_type)) == f"Resource 'Out': {output}\n"


def test_owned_inputs_are_bound_in_the_dispatchable() -> None:
    desc = desc_of_join([1, 3], Flags="DML_TENSOR_FLAG_OWNED_BY_DML")
    dispatchable = {"type": "JOIN", "desc": desc, "bindings": {"InputTensors": ["B", None]}}
    assert run(joining(dispatchable, [None, "A"])) == "Resource 'Out': 9, 1, 2, 3\n"
    with pytest.raises(DMLError, match=r"InputTensors\[0\]: found DML_BUFFER_BINDING.*OWNED_BY_DML.*\(B2\)"):
        run(joining(dispatchable, ["B", "A"]))
    del dispatchable["bindings"]
    with pytest.raises(DMLError, match=r"dispatchables.join.bindings: found no binding for InputTensors\[0\].*\(M12\)"):
        run(joining(dispatchable, [None, "A"]))


def test_iterations_are_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[str, int, int]] = []
    monkeypatch.setattr("anydml.frontends.dxdispatch.session._SECONDS_BETWEEN_REPORTS", -1)
    text = run(json.dumps(BASE), iterations=20, progress=lambda *call: calls.append(call))
    first, second = text.splitlines()
    assert re.fullmatch(r"Dispatch 'product': 20 iterations, \d+\.\d{4} ms median \(CPU\)", first)
    assert second == "Resource 'Out': 2, 8, 64, 192"
    assert calls == [("product", done, 20) for done in range(1, 21)]


def test_in_place_dispatches_take_their_own_result() -> None:
    text = changed({"commands/0/bindings/OutputTensor": "A", "commands/1/resource": "A"})
    assert run(text) == "Resource 'A': 2, 8, 64, 192\n"
    assert run(text, iterations=2).endswith("Resource 'A': 2, 16, 1024, 196608\n")


# Files written


def writing(target: str, **command: Any) -> str:
    return changed({"commands/1": {"type": "writeFile", "resource": "Out", "targetPath": target, **command}})


def test_writes_files(tmp_path: Path) -> None:
    expected = np.array([2, 8, 64, 192], np.float32)
    assert run(writing("a/b/out.npy"), tmp_path) == "Resource 'Out' written to 'a/b/out.npy'\n"
    np.testing.assert_array_equal(np.load(tmp_path / "a/b/out.npy"), expected)
    run(writing("out.npy", dimensions=[1, 2, 2]), tmp_path)
    np.testing.assert_array_equal(np.load(tmp_path / "out.npy"), expected.reshape(1, 2, 2))
    run(writing("out.dat"), tmp_path)
    assert (tmp_path / "out.dat").read_bytes() == expected.tobytes()
    assert sorted(path.name for path in tmp_path.rglob("*") if path.is_file()) == ["out.dat", "out.npy", "out.npy"]


def test_raw_files_have_no_padding(tmp_path: Path) -> None:
    command = {"type": "writeFile", "resource": "R", "targetPath": "r.bin"}
    text = {"resources": {"R": values("UINT8", [1, 2, 3])}, "dispatchables": {}, "commands": [command]}
    run(json.dumps(text), tmp_path)
    assert (tmp_path / "r.bin").read_bytes() == b"\1\2\3"


def test_a_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "out.npy").write_bytes(b"old")

    def full(file: Any, *_: Any, **__: Any) -> None:
        file.write(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np.lib.format, "write_array", full)
    with pytest.raises(DMLError, match=r"commands\[1\].targetPath: found .*No space left.*\(M14\)"):
        run(writing("out.npy"), tmp_path)
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("out.npy", b"old")]


def test_nothing_is_run_or_written_where_anything_is_wrong(tmp_path: Path) -> None:
    text = json.loads(writing("out.npy"))
    text["commands"].append({"type": "print", "resource": "Missing"})
    pieces: list[str] = []
    with pytest.raises(DMLError, match=r"\(M5\)"):
        model.loads(json.dumps(text), tmp_path).run(write=pieces.append)
    assert pieces == []
    assert list(tmp_path.iterdir()) == []


def test_values_that_an_operator_refuses_are_placed_in_the_model(tmp_path: Path) -> None:
    image = {"DataType": "UINT8", "Sizes": [1, 1, 1, 1]}
    scale = {"DataType": "FLOAT32", "Sizes": [1]}
    ones = {name: [1, 1] for name in ("Strides", "WindowSize", "Dilations")}
    zeros = {name: [0, 0] for name in ("StartPadding", "EndPadding")}
    desc = {"InputTensor": image, "InputScaleTensor": scale, "OutputScaleTensor": scale, "OutputTensor": image}
    text = {
        "resources": {"X": values("UINT8", [1]), "S": values("FLOAT32", [0]), "Y": values("UINT8", [7])},
        "dispatchables": {"pool": {"type": "QUANTIZED_LINEAR_AVERAGE_POOLING", "desc": {**desc, **ones, **zeros}}},
        "commands": [
            {
                "type": "dispatch",
                "dispatchable": "pool",
                "bindings": dict(zip(desc, "XSSY", strict=True)),
            }
        ],
    }
    assert model.loads(json.dumps(text)).check() == []
    with pytest.raises(DMLError, match=r"  commands\[0\]: QUANTIZED_LINEAR_AVERAGE_POOLING.InputScaleTensor: .*\(V1\)"):
        run(json.dumps(text))


# All that is wrong

TYPED = "dispatchables/product/type"
DESC = "dispatchables/product/desc"
INPUT = "commands/0/bindings/InputTensor"
VALUES = "resources/A/initialValues"
TYPE = "resources/A/initialValuesDataType"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        # Fields
        ({"extra": 1}, "extra: found an unknown field, expected resources, dispatchables, commands or $schema (M3)"),
        ({"command": []}, "command: found an unknown field, .*Did you mean commands?"),
        ({"commands": DELETE}, "the model: found no commands, expected .* (M3)"),
        ({"resources": []}, "resources: found a list of 0, expected an object (M4)"),
        ({"commands": {}}, "commands: found an object, expected a list of commands (M4)"),
        ({"resources/A": 3}, "resources.A: found 3, expected an object (M4)"),
        ({"resources/A/name": "x"}, "resources.A.name: found an unknown field.*(M3)"),
        ({"resources/A/type": "texture"}, 'resources.A.type: found "texture", expected "buffer" (M4)'),
        ({"resources/a\nb": {}}, r"resources.'a\nb': found 'a\nb', expected a printable name (M5)"),
        ({"resources/\x1b[31m": {}}, "expected a printable name (M5)"),
        ({"commands/0": 1}, "commands[0]: found 1, expected an object (M4)"),
        ({"commands/0/type": DELETE}, "commands[0]: found no type, expected an object with type (M3)"),
        ({"commands/0/type": "dispach"}, 'commands[0].type: found "dispach".*Did you mean dispatch?'),
        ({"commands/0/type": 5}, "commands[0].type: found 5, expected a string (M4)"),
        ({"commands/1/verbose": 1}, "commands[1].verbose: found 1, expected true or false (M4)"),
        ({"commands/1/resource": "Outt"}, 'commands[1].resource: found "Outt", .*(M5). Did you mean Out?'),
        ({"commands/0/dispatchable": "sum"}, 'found "sum", expected a dispatchable: "product" (M5)'),
        ({"commands/0/dispatchable": ["x"]}, "commands[0].dispatchable: found a list of 1, expected a string (M4)"),
        ({"commands/0/bindings": DELETE}, "commands[0]: found no bindings, expected .*(M3)"),
        # Initial values
        ({VALUES: [1, 2, "x"]}, 'resources.A.initialValues[2]: found "x", expected a number that FLOAT32 holds.*(M7)'),
        ({VALUES: [True]}, "resources.A.initialValues[0]: found true.*(M7)"),
        ({VALUES: [1, 1e39]}, "resources.A.initialValues[1]: found 1e+39.*(M7)"),
        ({VALUES: [10**400]}, "resources.A.initialValues[0]: found 1000.*(M7)"),
        ({VALUES: [float("nan")]}, "resources.A.initialValues[0]: found NaN.*(M7)"),
        ({VALUES: [None, []]}, "resources.A.initialValues[0]: found null.*(M7)"),
        ({TYPE: "INT8", VALUES: [128]}, "found 128, expected an integer from -128 to 127 (M7)"),
        ({TYPE: "UINT32", VALUES: [-1]}, "found -1, expected an integer from 0 to 4294967295 (M7)"),
        ({TYPE: "INT32", VALUES: [1.0]}, "found 1.0, expected an integer.*(M7)"),
        ({TYPE: "INT32", VALUES: ["nan"]}, 'found "nan", expected an integer.*(M7)'),
        ({TYPE: "FLOT32"}, 'resources.A.initialValuesDataType: found "FLOT32".*(M6). Did you mean FLOAT32?'),
        ({TYPE: "INT4"}, "resources.A.initialValuesDataType: found INT4, .*(M8)"),
        ({TYPE: DELETE}, "resources.A.initialValues[0]: found 2, expected an object with type and value.*(M8)"),
        ({TYPE: DELETE, VALUES: {"valueCount": 1, "value": 1}}, "found no initialValuesDataType.*(M8)"),
        ({TYPE: DELETE, VALUES: [{"type": "INT8", "value": 200}]}, "initialValues[0].value: found 200.*(M7)"),
        ({TYPE: DELETE, VALUES: [{"type": "UNKNOWN", "value": 2}]}, "found a value of UNKNOWN.*(M8)"),
        ({TYPE: DELETE, VALUES: [{"value": 2}]}, "initialValues[0]: found no type.*(M3)"),
        ({VALUES: []}, "resources.A.initialValues: found none, expected at least one initial value (M8)"),
        ({VALUES: "deferred"}, 'found "deferred", expected .*ONNX.*(M8)'),
        ({VALUES: 3}, "resources.A.initialValues: found 3, expected a list of values, or.*(M4)"),
        ({VALUES: {}}, "found no kind of initial values, expected one of value, valueStart and sourcePath (M8)"),
        ({VALUES: {"value": 1, "valueStart": 1, "valueCount": 1}}, "found value and valueStart.*(M8)"),
        ({VALUES: {"value": 1}}, "resources.A.initialValues: found no valueCount.*(M3)"),
        ({VALUES: {"value": 1, "valueCount": 0}}, "valueCount: found 0, expected an integer from 1 to 2^63 - 1 (M4)"),
        ({VALUES: {"value": 1, "valueCount": 2.0}}, "valueCount: found 2.0, expected an integer.*(M4)"),
        ({VALUES: {"value": 1, "valueCount": 2, "valueDelta": 1}}, "valueDelta: found an unknown field.*(M3)"),
        ({VALUES: {"value": {}, "valueCount": 2}}, "initialValues.value: found an object.*(M7)"),
        ({"resources/A/sizeInBytes": 15}, "sizeInBytes: found 15 bytes, expected at least 16.*(M8)"),
        ({"resources/A/initialValuesOffsetInBytes": 4}, "found 16 bytes by default, expected at least 20.*(M8)"),
        ({"resources/A/sizeInBytes": 2**63}, "sizeInBytes: found 9223372036854775808, expected an integer.*(M4)"),
        ({"resources/A/sizeInBytes": "16"}, 'sizeInBytes: found "16", expected an integer.*(M4)'),
        ({"resources/A/initialValuesOffsetInBytes": -4}, "found -4, expected an integer from 0 to 2^63 - 1 (M4)"),
        # Dispatchables
        (
            {TYPED: "DML_OPERATOR_DIAGONAL_MATRIX"},
            "product.type: found DIAGONAL_MATRIX, which this version does not have yet, expected one of the .*(M11)",
        ),
        (
            {TYPED: "CUMULATIVE_PRODCUT"},
            '"CUMULATIVE_PRODCUT", no operator of DirectML.*Did you mean CUMULATIVE_PRODUCT?',
        ),
        ({TYPED: "INVALID"}, "no operator of DirectML.*(M11)"),
        ({TYPED: "HLSL"}, 'found "HLSL", a shader.*(M11)'),
        ({TYPED: "onnx"}, "an ONNX model.*(M11)"),
        ({TYPED: "dmlSerializedGraph"}, "a serialised graph.*(M11)"),
        ({TYPED: DELETE}, "dispatchables.product: found no type.*(M3)"),
        ({TYPED: None}, "dispatchables.product.type: found null, expected a string (M4)"),
        ({"dispatchables/product": []}, "dispatchables.product: found a list of 0, expected an object (M4)"),
        ({"dispatchables/product/desk": {}}, "dispatchables.product.desk: found an unknown field.*(M3)"),
        ({"dispatchables/product/dmlCompileType": "x"}, 'dmlCompileType: found "x".*(M6)'),
        ({"dispatchables/product/dmlCompileType": []}, "dmlCompileType: found a list of 0.*(M6)"),
        ({"dispatchables/product/executionFlags": ["NONE", "FAST"]}, 'executionFlags[1]: found "FAST".*(M6)'),
        ({DESC: []}, "dispatchables.product.desc: found a list of 0, expected an object (M4)"),
        ({f"{DESC}/Axis": DELETE}, "dispatchables.product.desc: found no Axis, .*(M3)"),
        ({f"{DESC}/axis": 0}, "desc.axis: found an unknown field.*(M3). Did you mean Axis?"),
        ({f"{DESC}/Axis": "0"}, "dispatchables.product: CUMULATIVE_PRODUCT.Axis: found str '0'.*(F2)"),
        ({f"{DESC}/HasExclusiveProduct": "yes"}, "HasExclusiveProduct: found str 'yes', expected True or False (F3)"),
        ({f"{DESC}/AxisDirection": 1}, "dispatchables.product.desc.AxisDirection: found 1, expected a string (M4)"),
        ({f"{DESC}/AxisDirection": "UP"}, 'AxisDirection: found "UP", expected INCREASING or DECREASING (M6)'),
        ({f"{DESC}/InputTensor": None}, "desc.InputTensor: found null, expected an object (M4)"),
        ({f"{DESC}/InputTensor/Sizes": DELETE}, "desc.InputTensor: found no Sizes.*(M3)"),
        ({f"{DESC}/InputTensor/Sizes": ["a", 2**62]}, 'InputTensor.Sizes: found "a" in it, expected integers.*(M4)'),
        ({f"{DESC}/InputTensor/Sizes": [1, 2**63]}, "Sizes: found 9223372036854775808 in it, expected integers.*(M4)"),
        ({f"{DESC}/InputTensor/Sizes": 4}, "Sizes: found 4, expected a list of at most 32 integers (M4)"),
        ({f"{DESC}/InputTensor/Sizes": [1] * 33}, "found a list of 33, expected a list of at most 32 integers (M4)"),
        ({f"{DESC}/InputTensor/Sizes": [2**62]}, "OutputTensor.Sizes[0]: found 4, expected 4611686018427387904 (C2)"),
        ({f"{DESC}/InputTensor/Sizes": [2**62] * 2}, "a span of 85070591730234615865843651857942052864 bytes.*(T5)"),
        ({f"{DESC}/InputTensor/Strides": False}, "InputTensor.Strides: found false.*(M4)"),
        ({f"{DESC}/InputTensor/DataType": "FLOAT64"}, "InputTensor.DataType: found FLOAT64.*(S3)"),
        ({f"{DESC}/InputTensor/Type": "INVALID"}, 'InputTensor.Type: found "INVALID", expected BUFFER (M6)'),
        ({f"{DESC}/InputTensor/Desc": {}}, "InputTensor.DataType: found an unknown field.*(M3)"),
        ({f"{DESC}/InputTensor/DimensionCount": None}, "DimensionCount: found null, expected an integer.*(M4)"),
        # Bindings
        (
            {"commands/0/bindings/Input": "A"},
            "bindings.Input: found no tensor of the desc.*(M12). Did you mean InputTensor?",
        ),
        ({INPUT: DELETE}, "commands[0].bindings: found no binding for InputTensor.*(M12)"),
        ({INPUT: ["A", "A"]}, "commands[0].bindings.InputTensor: found 2 bindings, expected 1.*(M12)"),
        ({INPUT: []}, "commands[0].bindings.InputTensor: found 0 bindings.*(M12)"),
        ({INPUT: 7}, "commands[0].bindings.InputTensor: found 7, expected an object (M4)"),
        ({INPUT: "B"}, 'commands[0].bindings.InputTensor: found "B", expected a resource: "A" or "Out" (M5)'),
        ({INPUT: {"elementCount": 4}}, "commands[0].bindings.InputTensor: found no name.*(M3)"),
        ({INPUT: {"name": "A", "elementCount": -1}}, "elementCount: found -1.*(M4)"),
        (
            {INPUT: {"name": "A", "elementCount": 3}},
            "commands[0]: CUMULATIVE_PRODUCT.InputTensor: found 12 bytes.*(B4)",
        ),
        ({INPUT: {"name": "A", "elementOffset": 1}}, "CUMULATIVE_PRODUCT.InputTensor: found 12 bytes.*(B4)"),
        ({INPUT: {"name": "A", "elementCount": 2**62}}, "InputTensor: found bytes 0 to 18446744073709551616.*(B4)"),
        ({INPUT: {"name": "A", "elementOffset": 2**62}}, "InputTensor: found bytes.*(B4)"),
        ({"resources/A/sizeInBytes": 20, INPUT: {"name": "A", "elementOffset": 1}}, "found offset 4.*(B5)"),
        (
            {TYPE: DELETE, VALUES: [{"type": "FLOAT32", "value": 1}] * 4, INPUT: {"name": "A", "elementCount": 1}},
            "found no elementSizeInBytes.*(M12)",
        ),
    ],
)
def test_what_is_wrong_is_said(changes: dict[str, Any], message: str) -> None:
    assert_said(changed(changes), message)
    with pytest.raises(DMLError):
        run(changed(changes))


def assert_said(text: str, message: str) -> None:
    violations = [str(violation) for violation in model.loads(text).check()]
    pattern = re.escape(message).replace(r"\.\*", ".*")
    assert any(re.search(pattern, violation) for violation in violations), violations


def one_operator(kind: str, desc: dict[str, Any], **bindings: Any) -> str:
    """Float32 in resources of 8 elements that begin with 1, 2, 3."""
    names = [name for each in bindings.values() for name in (each if isinstance(each, list) else [each])]
    resource = values("FLOAT32", {"valueCount": 8, "valueStart": 1, "valueDelta": 1})
    commands = [{"type": "dispatch", "dispatchable": "it", "bindings": bindings}]
    commands += [{"type": "print", "resource": name} for name in names]
    return json.dumps(
        {
            "resources": dict.fromkeys(names, resource),
            "dispatchables": {"it": {"type": kind, "desc": desc}},
            "commands": commands,
        }
    )


def image_to_image(kind: str, desc: dict[str, Any]) -> str:
    return one_operator(kind, desc, InputTensor="X", OutputTensor="Y")


def float32(*sizes: int) -> dict[str, Any]:
    return {"DataType": "FLOAT32", "Sizes": sizes}


UPSAMPLE = {
    "InputTensor": float32(1, 1, 1, 2),
    "OutputTensor": float32(1, 1, 2, 4),
    "ScaleSize": {"Width": 2, "Height": 2},
    "InterpolationMode": "DML_INTERPOLATION_MODE_NEAREST_NEIGHBOR",
}
IMAGE = float32(1, 3, 1, 2)
VALUE_SCALE = {"InputTensor": IMAGE, "OutputTensor": IMAGE, "Scale": 2, "ChannelCount": 3, "Bias": [0, 0.5, "-inf"]}


def test_sizes_in_two_dimensions_and_lists_of_numbers() -> None:
    assert (
        run(image_to_image("DML_OPERATOR_UPSAMPLE_2D", UPSAMPLE)).splitlines()[1]
        == "Resource 'Y': 1, 1, 2, 2, 1, 1, 2, 2"
    )
    assert (
        run(image_to_image("DML_OPERATOR_VALUE_SCALE_2D", VALUE_SCALE)).splitlines()[1]
        == "Resource 'Y': 2, 4, 6.5, 8.5, -inf, -inf, 7, 8"
    )


@pytest.mark.parametrize(
    ("size", "message"),
    [
        (2, "ScaleSize: found 2, expected an object (M4)"),
        ([2, 2], "ScaleSize: found a list.*expected an object (M4)"),
        (None, "ScaleSize: found null, expected an object (M4)"),
        ({"Width": 2}, "ScaleSize: found no Height.*(M3)"),
        ({"Width": 2, "Height": 2, "Depth": 2}, "ScaleSize.Depth: found an unknown field.*(M3)"),
        ({"Width": "2", "Height": 2}, 'ScaleSize.Width: found "2", expected an integer.*(M4)'),
        ({"Width": 2.5, "Height": 2}, "ScaleSize.Width: found 2.5, expected an integer.*(M4)"),
        ({"Width": 0, "Height": 2}, "UPSAMPLE_2D.ScaleSize.Width: found 0, expected from 1.*(C3)"),
        ({"Width": -1, "Height": 2}, "ScaleSize.*found.*-1.*expected"),
        ({"Width": 2**32, "Height": 2}, "UPSAMPLE_2D.ScaleSize: found DML_SIZE_2D.*(F10)"),
    ],
)
def test_sizes_in_two_dimensions_that_are_none(size: Any, message: str) -> None:
    assert_said(
        one_operator("UPSAMPLE_2D", {**UPSAMPLE, "ScaleSize": size}, InputTensor="X", OutputTensor="Y"), message
    )


@pytest.mark.parametrize(
    ("bias", "message"),
    [
        ([0, 0], "Bias: found 2 elements, expected 3, which ChannelCount says (F5)"),
        ([0, "x", 0], 'Bias[1]: found "x", expected a number.*(M4)'),
        ([0, True, 0], "Bias[1]: found true, expected a number.*(M4)"),
        ([0, 0, 1e39], "VALUE_SCALE_2D.Bias[2]: found float 1e+39, expected a number of single precision (F8)"),
        (1, "VALUE_SCALE_2D.Bias: found int 1, expected a list, each a number.*(F8)"),
        (None, "VALUE_SCALE_2D.Bias: found None, expected a list.*(F8)"),
    ],
)
def test_lists_of_numbers_that_are_none(bias: Any, message: str) -> None:
    assert_said(
        one_operator("VALUE_SCALE_2D", {**VALUE_SCALE, "Bias": bias}, InputTensor="X", OutputTensor="Y"), message
    )


SPLIT = {"InputTensor": float32(3), "OutputTensors": [float32(2), float32(1)], "Axis": 0}


@pytest.mark.parametrize(
    ("outputs", "message"),
    [
        (["A"], "commands[0].bindings.OutputTensors: found 1 bindings, expected 2, one for each tensor (M12)"),
        ("A", "commands[0].bindings.OutputTensors: found 1 bindings, expected 2.*(M12)"),
        (["A", "A"], "SPLIT.OutputTensors[1]: found memory shared with OutputTensors[0].*(B8)"),
        (["A", "X"], "SPLIT.OutputTensors[1]: found memory shared with InputTensor.*(B7)"),
    ],
)
def test_several_outputs_that_are_bound_wrongly(outputs: Any, message: str) -> None:
    assert_said(one_operator("SPLIT", SPLIT, InputTensor="X", OutputTensors=outputs), message)


def test_several_outputs() -> None:
    printed = run(one_operator("SPLIT", SPLIT, InputTensor="X", OutputTensors=["A", "B"])).splitlines()
    assert printed[1:] == ["Resource 'A': 1, 2, 3, 4, 5, 6, 7, 8", "Resource 'B': 3, 2, 3, 4, 5, 6, 7, 8"]


def test_no_inputs() -> None:
    desc = {"OutputTensor": float32(4), "ValueDataType": "FLOAT32", "Value": "-inf"}
    assert run(one_operator("FILL_VALUE_CONSTANT", desc, OutputTensor="A")) == (
        "Resource 'A': -inf, -inf, -inf, -inf, 5, 6, 7, 8\n"
    )


def test_text_keeps_what_python_would_lose() -> None:
    text = json.dumps(BASE)
    repeated = text.replace('"resources": {', '"resources": {"A": 0, ', 1)
    assert [str(each) for each in model.loads(repeated).check()] == [
        "resources.A: found the same key again, expected every key once (M3)"
    ]
    huge = text.replace("[2, 4, 8, 3]", "[2, 4, 1e999, 3]")
    assert "resources.A.initialValues[2]: found 1e999, expected a number that" in str(model.loads(huge).check()[0])
    longer = text.replace("[2, 4, 8, 3]", "[2, " + "9" * 5000 + "]")
    assert "resources.A.initialValues[1]: found 9999" in str(model.loads(longer).check()[0])
    axis = text.replace('"Axis": 0', '"Axis": NaN')
    assert "CUMULATIVE_PRODUCT.Axis: found OddNumber NaN, expected an integer" in str(model.loads(axis).check()[0])


def test_every_violation_is_listed() -> None:
    changes = {VALUES: [2, "x"], f"{DESC}/Axis": 4, "commands/1/resource": "In", "extra": 0}
    rules = [violation.rule for violation in model.loads(changed(changes)).check()]
    assert rules == ["(M3)", "(M7)", "(M5)", "(C3)"]


def test_descs_are_checked_at_the_feature_level() -> None:
    wanted = model.loads(json.dumps(BASE))
    violations = wanted.check(FeatureLevel.LEVEL_3_1)
    assert [violation.rule for violation in violations] == ["(S2)", "(S2)"]
    assert (violations[0].place, violations[0].operator) == ("dispatchables.product", "CUMULATIVE_PRODUCT")
    assert [violation.rule for violation in wanted.check(FeatureLevel.LEVEL_3_0)] == ["(S1)"]


# Files that are refused


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a file in it, and one beside it."""
    inside = tmp_path / "models"
    inside.mkdir()
    np.save(inside / "x.npy", np.zeros(4, np.float32))
    np.save(tmp_path / "secret.npy", np.zeros(4, np.float32))
    return inside


def sourcing(path: str) -> str:
    return changed({"resources/A": {"initialValues": {"sourcePath": path}}})


def only_violation(text: str, folder: Path, **options: Any) -> str:
    (violation,) = model.loads(text, folder, **options).check()
    return str(violation)


posix = pytest.mark.skipif(os.name == "nt", reason="Windows has no such files")


@posix
@pytest.mark.parametrize("make", [sourcing, writing])
def test_paths_stay_in_the_folder(folder: Path, make: Callable[[str], str]) -> None:
    (folder / "link").symlink_to(folder.parent)
    (folder / "loop").symlink_to(folder / "loop")
    outside = str(folder.parent / "secret.npy")
    for path in ("../secret.npy", "x/../../secret.npy", "link/secret.npy", outside, str(folder / "x.npy")):
        message = only_violation(make(path), folder)
        assert f"Path: found {path!r}" in message
        assert "expected a relative path inside the model's folder" in message
        assert "(M9). --allow-outside" in message
        assert model.loads(make(path), folder, allow_outside=True).check() == []
    for path in ("a\0b", ""):
        assert "(M9)" in only_violation(make(path), folder)
    for path in ("loop", "n" * 5000):
        assert "(M" in only_violation(make(path), folder)
    assert np.load(outside).tolist() == [0] * 4


def test_outside_files_work_where_allowed(folder: Path) -> None:
    assert model.loads(sourcing("../secret.npy"), folder, allow_outside=True).run(write=str)["A"].tolist() == [0] * 4
    model.loads(writing("../new.npy"), folder, allow_outside=True).run(write=str)
    assert np.load(folder.parent / "new.npy").tolist() == [2, 8, 64, 192]


@posix
def test_sources_are_regular_files(folder: Path) -> None:
    os.mkfifo(folder / "pipe.npy")
    (folder / "sub").mkdir()
    for path, found in {
        "pipe.npy": "the pipe",
        "sub": "the folder",
        "no.npy": "No such",
    }.items():
        message = only_violation(sourcing(path), folder)
        assert "resources.A.initialValues.sourcePath: found" in message
        assert found in message
        assert "(M10)" in message
    device = model.loads(sourcing("/dev/zero"), folder, allow_outside=True).check()
    assert "the device '/dev/zero'" in str(device[0])


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (b"", "ValueError"),
        (b"\x93NUMPY\x01\x00\x10\x00{'descr': '<f4'", "ValueError"),
        (b"\x93NUMPY\x01\x00\x40\x00" + b"(" * 64, "Error"),
        (b"\x93NUMPY\x09\x00", "ValueError"),
    ],
)
def test_npy_files_that_are_none(folder: Path, data: bytes, found: str) -> None:
    (folder / "bad.npy").write_bytes(data)
    message = only_violation(sourcing("bad.npy"), folder)
    assert found in message
    assert "expected a whole .npy file, without objects (M10)" in message


def npy(descr: str, shape: str, data: bytes = b"") -> bytes:
    header = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + data


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (npy("'<f4'", "(4,)", b"short"), "(M10)"),
        (npy("'<f4'", f"({2**62},)", b"x"), "(M10)"),
        (npy("'<f4'", f"({2**40}, {2**40})", b"x"), "(M10)"),
        (npy("'|O'", "(1,)", b"xxxxxxxx"), "(M10)"),
        (npy("'<c8'", "(1,)", bytes(8)), "found elements of complex64, expected float32.*(M10)"),
        (npy("[('a', '<f4')]", "(1,)", bytes(4)), "found elements of [('a', '<f4')].*(M10)"),
        (npy("'<f4'", "(0,)"), "found none, expected at least one initial value (M8)"),
    ],
)
def test_npy_files_that_do_not_do(folder: Path, data: bytes, message: str) -> None:
    (folder / "bad.npy").write_bytes(data)
    assert re.search(re.escape(message).replace(r"\.\*", ".*"), only_violation(sourcing("bad.npy"), folder))


def test_files_have_the_type_that_is_said(folder: Path) -> None:
    text = changed({"resources/A": values("INT32", {"sourcePath": "x.npy"})})
    assert "found elements of FLOAT32, expected INT32, which initialValuesDataType says (M10)" in only_violation(
        text, folder
    )
    (folder / "raw.bin").write_bytes(b"12345")
    text = changed({"resources/A": values("FLOAT32", {"sourcePath": "raw.bin"})})
    assert "found 5 bytes, expected whole elements of FLOAT32 (M10)" in only_violation(text, folder)
    assert "found no initialValuesDataType" in only_violation(sourcing("raw.bin"), folder)
    (folder / "raw.bin").write_bytes(b"")
    assert "found none, expected at least one initial value (M8)" in only_violation(text, folder)


@pytest.mark.parametrize("name", ["x.npy", "x.bin"])
def test_a_file_that_changes_after_the_check_is_refused(folder: Path, name: str) -> None:
    np.zeros(4, np.float32).tofile(folder / "x.bin")
    text = changed({"resources/A": values("FLOAT32", {"sourcePath": name})})
    read = model.loads(text, folder)
    (folder / name).write_bytes(b"short")
    with pytest.raises(DMLError, match=r"resources.A: found .*\(M10\)"):
        read.run()
    (folder / name).unlink()
    with pytest.raises(DMLError, match=r"resources.A: found .*\(M10\)"):
        read.run()


def test_targets_that_do_not_do(folder: Path) -> None:
    (folder / "sub").mkdir()
    (folder / "file").write_bytes(b"")
    for path in ("sub", "file/below.npy", "."):
        assert "commands[1].targetPath: found" in only_violation(writing(path), folder)
        assert "(M14)" in only_violation(writing(path), folder)
    for dimensions in ([2, 3], [4, -1, -1], [0], [1] * 33, [2.0, 2.0]):
        message = only_violation(writing("y.npy", dimensions=dimensions), folder)
        assert "commands[1].dimensions: found" in message
        assert "(M14)" in message or "(M4)" in message
    mixed = json.loads(writing("y.npy"))
    mixed["resources"]["Out"] = {"initialValues": [{"type": "FLOAT32", "value": 0}] * 4}
    assert "has values of several types" in only_violation(json.dumps(mixed), folder)


def test_a_model_does_not_overwrite_itself(folder: Path) -> None:
    path = folder / "model.json"
    path.write_text(writing("model.json"))
    (violation,) = model.load(path).check()
    assert str(violation) == "commands[1].targetPath: found the model itself, expected another file (M9)"


def test_models_that_can_not_be_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for path in (folder, folder / "none.json", folder / "a\0b"):
        with pytest.raises(DMLError, match=r"expected a file that can be read \(M1\)"):
            model.load(path)
    (folder / "long.json").write_text("[]" + " " * 20)
    monkeypatch.setattr("anydml.frontends.dxdispatch.reader.MAX_MODEL_BYTES", 20)
    with pytest.raises(DMLError, match=r"found more than 20 bytes.*\(M1\). Put initial values into .npy files"):
        model.load(folder / "long.json")


# Memory


@pytest.mark.parametrize(
    "resource",
    [
        values("FLOAT32", {"valueCount": 10**18, "value": 0}),
        values("INT8", {"valueCount": 2**62, "valueStart": 0, "valueDelta": 1}),
        {**values("INT8", [1]), "sizeInBytes": 2**62},
        values("FLOAT64", {"valueCount": 2**63 - 1, "value": 0}),
    ],
)
def test_what_is_too_large_is_refused_before_it_is_allocated(resource: dict[str, Any]) -> None:
    text = changed({"resources/Huge": resource})
    (violation,) = model.loads(text).check()
    assert violation.rule == "(M13)"
    with pytest.raises(
        DMLMemoryError, match=r"in all, of which resources.Huge takes \d+, expected at most \d+ bytes"
    ) as caught:
        run(text)
    assert caught.value.hresult.name == "E_OUTOFMEMORY"


def test_memory_limit_counts_files_and_all_resources(folder: Path) -> None:
    text = sourcing("x.npy")
    assert model.loads(text, folder).memory_needed == 32
    assert model.loads(text, folder).check(memory_limit=32) == []
    assert model.loads(text, folder).check(memory_limit=31)[0].found == (
        "32 bytes in all, of which resources.A takes 16"
    )


def test_memory_that_is_not_there_after_all(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(self: object, memory: object) -> None:
        raise MemoryError

    wide = changed({"resources/Out/sizeInBytes": 2**62})
    with pytest.raises(DMLMemoryError, match=r"resources: found .*, expected a size that there is memory for \(M13\)"):
        run(wide, memory_limit=2**63)
    monkeypatch.setattr("anydml.frontends.dxdispatch.buffers.Constant.fill", none)
    with pytest.raises(
        DMLMemoryError, match=r"resources.Out: found 16 bytes, expected a size that there is memory for"
    ):
        run(json.dumps(BASE))


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("4096", 4096),
        ("500M", 500 << 20),
        ("2G", 2 << 30),
        ("1.5kB", 1536),
        ("3 GiB", 3 << 30),
        ("0", 0),
        ("1T", 1 << 40),
    ],
)
def test_sizes(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "G", "-1", "1e3", "2X", "1.G", "9" * 30, "\u0662"])
def test_no_sizes(text: str) -> None:
    assert parse_size(text) is None


def test_format_size() -> None:
    assert format_size(1023) == "1023 bytes"
    assert format_size(1536) == "1536 bytes (1.5 KiB)"


def test_limits_of_control_groups(tmp_path: Path) -> None:
    def put(path: str, text: str) -> None:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)

    assert list(_container_limits(tmp_path, 7)) == [7]
    put("proc/self/cgroup", "9:name=systemd:/\n4:cpu,memory:/a/b\n0::/c/d\n")
    put("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "3000\n")
    put("sys/fs/cgroup/c/d/memory.max", "max\n")
    put("sys/fs/cgroup/memory.max", "2000\n")
    assert sorted(set(_container_limits(tmp_path, 10**9))) == [2000, 3000, 10**9]


def test_default_limit_is_below_the_machine() -> None:
    assert 0 < default_limit() < 1 << 60


def test_a_dispatchable_may_be_a_graph_of_its_own() -> None:
    graph = model.loads(changed({"dispatchables/product/dmlCompileType": "DmlCompileGraph"}))
    results = graph.run(write=lambda text: None)
    np.testing.assert_array_equal(results["Out"], np.array([2, 8, 64, 192], np.float32))
    explained = Session(graph).compiled["product"].explain()
    assert explained.startswith("graph: 1 kernels")
    # A graph does not run in-place, which the operator does.
    over = {"commands/0/bindings/OutputTensor": "A"}
    assert model.loads(changed(over)).check() == []
    (violation,) = model.loads(changed({"dispatchables/product/dmlCompileType": "DmlCompileGraph", **over})).check()
    assert violation.rule == "(B7)"
