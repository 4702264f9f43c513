"""Models: what their text may be, what they mean, what they print and write."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from anydml import DMLError, DMLValueError
from anydml.frontends import dxdispatch as model
from anydml.frontends.dxdispatch.jsonc import MAX_DEPTH, parse
from model_texts import BASE, changed, desc_of_join, joining, printed, run, values, writing

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
        ({"Type": "ACTIVATION_LINEAR"}, r"FusedActivation: found no Alpha, .* \(M3\)"),
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
