"""What DxDispatch's models may say: every kind of value, desc, resource, dispatchable and command."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from anydml import DML_SCATTER_ELEMENTS_OPERATOR_DESC, DMLError, TensorDataType
from anydml.core.enums import ExecutionFlags
from anydml.core.strided_layout import DTYPES
from anydml.frontends import dxdispatch
from anydml.frontends.dxdispatch import Dispatch, Model
from anydml.operators import OPERATORS, spec

FLOATS = ("FLOAT16", "FLOAT32", "FLOAT64")
SIGNED = ("INT8", "INT16", "INT32", "INT64")
UNSIGNED = ("UINT8", "UINT16", "UINT32", "UINT64")


def load(
    resources: dict[str, Any] | None = None,
    dispatchables: dict[str, Any] | None = None,
    commands: list[Any] | None = None,
    folder: Path | str = ".",
    **options: Any,
) -> Model:
    value = {"resources": resources or {}, "dispatchables": dispatchables or {}, "commands": commands or []}
    return dxdispatch.loads(json.dumps(value), folder, **options)


def elements(resource: dict[str, Any], **options: Any) -> np.ndarray:
    """A resource's elements, as a model that does nothing leaves them."""
    return load({"R": resource}, **options).run()["R"]


def refusal(resource: dict[str, Any]) -> str:
    """All that is wrong with a resource."""
    violations = load({"R": resource}).check()
    assert violations
    return "\n".join(map(str, violations))


def of(data_type: str, initial: object) -> dict[str, Any]:
    return {"initialValuesDataType": data_type, "initialValues": initial}


def operator(kind: str, desc: dict[str, Any], **rest: Any) -> Model:
    return load(dispatchables={"op": {"type": kind, "desc": desc, **rest}})


def desc_of(kind: str, desc: dict[str, Any]) -> Any:
    """A desc that is right."""
    model = operator(kind, desc)
    assert model.check() == []
    dispatchable = model.dispatchables["op"]
    assert dispatchable is not None
    return dispatchable.desc


def wrong(kind: str, desc: object, **rest: Any) -> str:
    """All that is wrong with a desc."""
    violations = load(dispatchables={"op": {"type": kind, "desc": desc, **rest}}).check()
    assert violations
    return "\n".join(map(str, violations))


def tensor(*sizes: int, data_type: str = "FLOAT32", **members: Any) -> dict[str, Any]:
    return {"DataType": data_type, "Sizes": list(sizes), **members}


# Values of each data type


@pytest.mark.parametrize("data_type", FLOATS)
def test_floats(data_type: str) -> None:
    expected = np.array([1.2, 5, -1.2345], DTYPES[TensorDataType[data_type]])
    assert elements(of(data_type, [1.2, 5, -1.2345])).tobytes() == expected.tobytes()
    constant = elements(of(data_type, {"valueCount": 2, "value": 1.2}))
    assert constant.tolist() == [expected[0], expected[0]]


@pytest.mark.parametrize("data_type", FLOATS)
def test_floats_that_json_has_no_numbers_for(data_type: str) -> None:
    found = elements(of(data_type, ["NaN", "nan", "Inf", "inf", "-Inf", "-inf", 1.5]))
    assert np.isnan(found[:2]).all()
    assert found[2:].tolist() == [np.inf, np.inf, -np.inf, -np.inf, 1.5]


@pytest.mark.parametrize("value", [None, {}, [], "cat", True])
@pytest.mark.parametrize("data_type", FLOATS)
def test_what_is_no_float(data_type: str, value: object) -> None:
    message = refusal(of(data_type, [value]))
    assert message.startswith("resources.R.initialValues[0]: found")
    assert "(M7)" in message


@pytest.mark.parametrize("data_type", SIGNED)
def test_signed_integers(data_type: str) -> None:
    limits = np.iinfo(DTYPES[TensorDataType[data_type]])
    values = [1, 5, -3, int(limits.min), int(limits.max)]
    assert elements(of(data_type, values)).tolist() == values


@pytest.mark.parametrize("data_type", UNSIGNED)
def test_unsigned_integers(data_type: str) -> None:
    values = [1, 5, int(np.iinfo(DTYPES[TensorDataType[data_type]]).max)]
    assert elements(of(data_type, values)).tolist() == values


@pytest.mark.parametrize("value", [None, {}, [], "cat", True, 1.2, "nan"])
@pytest.mark.parametrize("data_type", [*SIGNED, *UNSIGNED])
def test_what_is_no_integer(data_type: str, value: object) -> None:
    assert "resources.R.initialValues[1]: found" in refusal(of(data_type, [1, value]))


@pytest.mark.parametrize("data_type", [*SIGNED, *UNSIGNED])
def test_integers_are_not_narrowed(data_type: str) -> None:
    limits = np.iinfo(DTYPES[TensorDataType[data_type]])
    for value in (int(limits.min) - 1, int(limits.max) + 1):
        assert f"expected an integer from {limits.min} to {limits.max} (M7)" in refusal(of(data_type, [value]))


def test_values_of_several_types() -> None:
    values = [("FLOAT32", 1.23), ("UINT8", 55), ("INT16", -12), ("FLOAT32", 3.1415), ("FLOAT32", 19)]
    mixed = [{"type": kind, "value": value} for kind, value in values]
    expected = b"".join(np.array(value, DTYPES[TensorDataType[kind]]).tobytes() for kind, value in values)
    for resource in ({"initialValues": mixed}, of("UNKNOWN", mixed)):
        found = load({"R": resource})
        buffer = found.resources["R"]
        assert buffer is not None
        assert (buffer.size, buffer.data_type) == (16, TensorDataType.UNKNOWN)
        assert found.run()["R"].tobytes() == expected


# Lists: numbers of single precision, integers with and without a sign

SCALED = {"InputTensor": tensor(1, 3, 1, 1), "OutputTensor": tensor(1, 3, 1, 1), "Scale": 1, "ChannelCount": 3}
WINDOW = {
    "InputTensor": tensor(4),
    "OutputTensor": tensor(2),
    "InputWindowOffsets": [0],
    "InputWindowSizes": [4],
    "InputWindowStrides": [2],
}


def test_lists_of_floats() -> None:
    assert desc_of("VALUE_SCALE_2D", {**SCALED, "Bias": [1.2, 5, -3.5]}).Bias == (float(np.float32(1.2)), 5, -3.5)
    found = desc_of("VALUE_SCALE_2D", {**SCALED, "Bias": [1, "NaN", "Inf"]}).Bias
    assert np.isnan(found[1])
    assert found[2] == np.inf


@pytest.mark.parametrize("bias", [None, {}, "cat", True, 123, 2.4, ["cat"], [None], []])
def test_what_is_no_list_of_floats(bias: object) -> None:
    assert "Bias" in wrong("VALUE_SCALE_2D", {**SCALED, "Bias": bias})


def test_lists_of_integers() -> None:
    found = desc_of("SLICE1", {**WINDOW, "InputWindowStrides": [-2]})
    assert (found.InputWindowStrides, found.InputWindowSizes) == ((-2,), (4,))


@pytest.mark.parametrize("strides", [None, {}, "cat", True, 123, 2.4, [1.2], ["nan"], [2**31], []])
def test_what_is_no_list_of_integers(strides: object) -> None:
    assert "InputWindowStrides" in wrong("SLICE1", {**WINDOW, "InputWindowStrides": strides})


@pytest.mark.parametrize("sizes", [None, {}, "cat", True, 123, 2.4, [1.2], ["nan"], [-15], [2**32], []])
def test_what_is_no_list_of_unsigned_integers(sizes: object) -> None:
    assert "InputWindowSizes" in wrong("SLICE1", {**WINDOW, "InputWindowSizes": sizes})


@pytest.mark.parametrize("member", WINDOW)
def test_members_that_are_needed(member: str) -> None:
    assert f"found no {member}" in wrong("SLICE1", {name: each for name, each in WINDOW.items() if name != member})


# Enums and flags


@pytest.mark.parametrize("prefix", ["", "DML_TENSOR_DATA_TYPE_"])
@pytest.mark.parametrize("data_type", [*FLOATS, *SIGNED, *UNSIGNED])
def test_data_types_in_full_and_short(data_type: str, prefix: str) -> None:
    assert elements(of(prefix + data_type, [3])).dtype == DTYPES[TensorDataType[data_type]]


@pytest.mark.parametrize("data_type", [None, {}, [], "cat", True, 1.2, -5])
def test_what_is_no_data_type(data_type: object) -> None:
    assert "initialValuesDataType: found" in refusal({"initialValuesDataType": data_type, "initialValues": [1]})


IDENTITY = {"InputTensor": tensor(3), "OutputTensor": tensor(3)}


@pytest.mark.parametrize("name", ExecutionFlags.__members__)
def test_execution_flags(name: str) -> None:
    for given in (name, f"DML_EXECUTION_FLAG_{name}", [name]):
        found = operator("ELEMENT_WISE_IDENTITY", IDENTITY, executionFlags=given)
        assert found.check() == []
        assert found.dispatchables["op"].flags == ExecutionFlags[name]  # type: ignore[union-attr]


def test_several_execution_flags() -> None:
    both = ["ALLOW_HALF_PRECISION_COMPUTATION", "DESCRIPTORS_VOLATILE"]
    for given, flags in (([], 0), (both, 5)):
        found = operator("ELEMENT_WISE_IDENTITY", IDENTITY, executionFlags=given)
        assert found.dispatchables["op"].flags == flags  # type: ignore[union-attr]


@pytest.mark.parametrize("flags", [None, {}, "cat", True, 1.2, -5, ["cat"], [1]])
def test_what_are_no_execution_flags(flags: object) -> None:
    assert "executionFlags" in wrong("ELEMENT_WISE_IDENTITY", IDENTITY, executionFlags=flags)


# Structs: DML_SIZE_2D, DML_SCALAR_UNION, DML_SCALE_BIAS

UPSAMPLED = {
    "InputTensor": tensor(1, 1, 1, 1),
    "OutputTensor": tensor(1, 1, 15, 4),
    "InterpolationMode": "NEAREST_NEIGHBOR",
}


def test_sizes_in_two_dimensions() -> None:
    found = desc_of("UPSAMPLE_2D", {**UPSAMPLED, "ScaleSize": {"Width": 4, "Height": 15}}).ScaleSize
    assert (found.Width, found.Height) == (4, 15)


@pytest.mark.parametrize("size", [{"Width": 4.2, "Height": 15.1}, {"Width": 4}, {}, None, "cat", [], 5])
def test_what_is_no_size(size: object) -> None:
    assert "ScaleSize" in wrong("UPSAMPLE_2D", {**UPSAMPLED, "ScaleSize": size})
    assert "found no ScaleSize" in wrong("UPSAMPLE_2D", UPSAMPLED)


def filled(data_type: str, value: object) -> dict[str, Any]:
    return {"OutputTensor": tensor(4, data_type=data_type), "ValueDataType": data_type, "Value": value}


SCALARS = [
    ("INT8", "Int8", -100),
    ("UINT8", "UInt8", 32),
    ("INT16", "Int16", 123),
    ("UINT16", "UInt16", 15),
    ("INT32", "Int32", 33),
    ("UINT32", "UInt32", 1000),
    ("INT64", "Int64", -12345),
    ("UINT64", "UInt64", 2**64 - 1),
    ("FLOAT32", "Float32", 1.2),
]


@pytest.mark.parametrize(("data_type", "member", "value"), SCALARS)
def test_scalars_as_numbers_and_as_unions(data_type: str, member: str, value: float) -> None:
    kind = "FILL_VALUE_CONSTANT"
    assert desc_of(kind, filled(data_type, value)).Value == value
    assert desc_of(kind, filled(data_type, {member: value})).Value == value
    # A union has all members in one memory; the one of the desc's data type is read.
    assert desc_of(kind, filled(data_type, {member: value, "Float64": 3})).Value == value


def test_halves_in_unions_are_bits() -> None:
    bits = int(np.float16(2.5).view(np.uint16))
    assert desc_of("FILL_VALUE_CONSTANT", filled("FLOAT16", {"UInt16": bits})).Value == 2.5


def test_a_union_computes_what_its_number_does() -> None:
    resources = {"Out": of("FLOAT32", {"valueCount": 3, "value": 0})}
    desc = {
        "OutputTensor": tensor(3),
        "ValueDataType": "FLOAT32",
        "ValueStart": {"Float32": 3.5},
        "ValueDelta": {"Float32": -1},
    }
    commands = [{"type": "dispatch", "dispatchable": "op", "bindings": {"OutputTensor": "Out"}}]
    model = load(resources, {"op": {"type": "FILL_VALUE_SEQUENCE", "desc": desc}}, commands)
    assert model.run()["Out"].tolist() == [3.5, 2.5, 1.5]


@pytest.mark.parametrize(
    ("data_type", "value", "message"),
    [
        ("INT16", {"Int8": -100}, "found DML_SCALAR_UNION(Int8=-100), expected a real number, or a DML_SCALAR_UNION"),
        ("INT16", {"Int8": -100}, "with one in Int16 (F8)"),
        ("UINT32", {"UInt32": 1.2}, "found DML_SCALAR_UNION(UInt32=1.2)"),
        ("UINT8", {"UInt8": 256}, "found DML_SCALAR_UNION(UInt8=256)"),
        ("FLOAT16", {"Float32": 2.5}, "with one in UInt16 (F8)"),
        ("FLOAT32", {"Float32": "cat"}, 'Value.Float32: found "cat"'),
        ("FLOAT32", {"Flaot32": 2.5}, "Value.Flaot32: found an unknown field"),
        ("FLOAT32", {"Flaot32": 2.5}, "Did you mean Float32?"),
        ("FLOAT32", {}, "found DML_SCALAR_UNION()"),
        ("FLOAT32", None, "Value: found null"),
        ("FLOAT32", [2.5], "Value: found a list of 1"),
    ],
)
def test_what_is_no_scalar(data_type: str, value: object, message: str) -> None:
    assert message in wrong("FILL_VALUE_CONSTANT", filled(data_type, value))


def test_a_union_keeps_the_rules_on_values() -> None:
    bad = {**filled("FLOAT32", {"Float32": 2.5}), "ValueDataType": "INT32", "Value": {"Int32": 5}}
    assert "(C1)" in wrong("FILL_VALUE_CONSTANT", bad)


def test_scale_and_bias() -> None:
    given = desc_of("ELEMENT_WISE_IDENTITY", {**IDENTITY, "ScaleBias": {"Scale": 4.5, "Bias": 15.5}})
    assert (given.ScaleBias.Scale, given.ScaleBias.Bias) == (4.5, 15.5)
    for absent in (IDENTITY, {**IDENTITY, "ScaleBias": None}):
        assert desc_of("ELEMENT_WISE_IDENTITY", absent).ScaleBias is None
    assert "found no Bias" in wrong("ELEMENT_WISE_IDENTITY", {**IDENTITY, "ScaleBias": {"Scale": 4.5}})


# Tensor descs

WHOLE = {
    "DataType": "DML_TENSOR_DATA_TYPE_FLOAT16",
    "Flags": "DML_TENSOR_FLAG_OWNED_BY_DML",
    "DimensionCount": 2,
    "Sizes": [1, 4],
    "Strides": [4, 1],
    "TotalTensorSizeInBytes": 16,
    "GuaranteedBaseOffsetAlignment": 4,
}


@pytest.mark.parametrize(
    "given",
    [
        WHOLE,
        {"Type": "DML_TENSOR_TYPE_BUFFER", **WHOLE},
        {"Type": "BUFFER", "Desc": WHOLE},
        {"Type": "DML_TENSOR_TYPE_BUFFER", "Desc": WHOLE},
    ],
)
def test_tensors_with_all_members(given: dict[str, Any]) -> None:
    desc = {"InputTensor": given, "OutputTensor": tensor(1, 4, data_type="FLOAT16")}
    owned = {"type": "ELEMENT_WISE_IDENTITY", "desc": desc, "bindings": {"InputTensor": "A"}}
    model = load({"A": of("FLOAT16", {"valueCount": 8, "value": 0})}, {"op": owned})
    assert model.check() == []
    found = model.dispatchables["op"].desc.InputTensor  # type: ignore[union-attr, attr-defined]
    assert (found.DataType, found.Flags, found.DimensionCount) == (TensorDataType.FLOAT16, 1, 2)
    assert (found.Sizes, found.Strides, found.TotalTensorSizeInBytes) == ((1, 4), (4, 1), 16)
    assert found.GuaranteedBaseOffsetAlignment == 4


@pytest.mark.parametrize(("strides", "size"), [(None, 120), ([0, 0, 1], 20), ([], 120)])
def test_tensors_with_few_members(strides: list[int] | None, size: int) -> None:
    given = tensor(3, 2, 5) if strides is None else tensor(3, 2, 5, Strides=strides)
    found = desc_of("ELEMENT_WISE_IDENTITY", {"InputTensor": given, "OutputTensor": tensor(3, 2, 5)}).InputTensor
    assert (found.Flags, found.DimensionCount, found.GuaranteedBaseOffsetAlignment) == (0, 3, 0)
    assert found.Strides == (tuple(strides) if strides else None)
    assert found.TotalTensorSizeInBytes == size


# Operator descs


@pytest.mark.parametrize("kind", ["ELEMENT_WISE_ADD", "DML_OPERATOR_ELEMENT_WISE_ADD"])
def test_operators_with_and_without_a_desc_of_their_own(kind: str) -> None:
    members = {name: tensor(3) for name in ("ATensor", "BTensor", "OutputTensor")}
    for given in (
        {"type": kind, "desc": members},
        {"type": kind, **members},
        {"Type": kind, "Desc": members},
        {"Type": kind, **members},
    ):
        found = load(dispatchables={"op": given})
        assert found.check() == []
        used = found.dispatchables["op"]
        assert used is not None
        assert used.spec.name == "ELEMENT_WISE_ADD"
        assert [name for name, _ in used.spec.inputs(used.desc)] == ["ATensor", "BTensor"]
        assert [name for name, _ in used.spec.outputs(used.desc)] == ["OutputTensor"]


ADD1 = {name: tensor(3) for name in ("ATensor", "BTensor", "OutputTensor")}


@pytest.mark.parametrize(
    "activation",
    [
        {"Type": "ACTIVATION_ELU", "Desc": {"Alpha": 0.5}},
        {"Type": "ACTIVATION_ELU", "Alpha": 0.5},
        {"type": "DML_OPERATOR_ACTIVATION_ELU", "Alpha": 0.5, "InputTensor": None, "OutputTensor": None},
    ],
)
def test_fused_activations(activation: dict[str, Any]) -> None:
    found = desc_of("ELEMENT_WISE_ADD1", {**ADD1, "FusedActivation": activation}).FusedActivation
    assert (type(found).__name__, found.Alpha) == ("DML_ACTIVATION_ELU_OPERATOR_DESC", 0.5)


def test_typical_defaults_may_be_left_out() -> None:
    found = desc_of("ELEMENT_WISE_ADD1", {**ADD1, "FusedActivation": {"Type": "ACTIVATION_LEAKY_RELU"}})
    assert found.FusedActivation.Alpha == float(np.float32(0.01))
    sizes = {"InputTensor": tensor(1, 2, 1, 1), "OutputTensor": tensor(1, 2, 1, 1)}
    found = desc_of("LOCAL_RESPONSE_NORMALIZATION", {**sizes, "CrossChannel": True, "LocalSize": 1})
    assert (found.Alpha, found.Beta, found.Bias) == (float(np.float32(1e-4)), 0.75, 1)
    assert "found no Alpha" in wrong("ACTIVATION_LINEAR", {**IDENTITY, "Beta": 0})


@pytest.mark.parametrize(
    ("kind", "found"),
    [
        ("hlsl", "a shader"),
        ("DML_OPERATOR_JOINT", "Did you mean JOIN?"),
    ],
)
def test_operators_that_are_not_there(kind: str, found: str) -> None:
    message = wrong(kind, {}, sourcePath="test.hlsl", compiler="dxc", compilerArgs=["-T", "cs_6_0"])
    assert found in message
    assert "(M11)" in message


def test_the_older_name_of_scatter_elements() -> None:
    elements, indices = tensor(3), {"DataType": "UINT32", "Sizes": [2]}
    members = {"InputTensor": elements, "IndicesTensor": indices, "UpdatesTensor": tensor(2), "OutputTensor": elements}
    assert isinstance(desc_of("DML_OPERATOR_SCATTER", {**members, "Axis": 0}), DML_SCATTER_ELEMENTS_OPERATOR_DESC)


@pytest.mark.parametrize("name", OPERATORS)
def test_misspelt_members_are_told_which_was_meant(name: str) -> None:
    member = next(iter(spec(name).members))
    message = wrong(name, {member[:-1] + member[-1] * 2: None})
    assert f"Did you mean {member}?" in message
    assert f"{member}{member[-1]}: found an unknown field" in message


# Resources


def test_values_at_an_offset() -> None:
    given = {**of("FLOAT32", [1, 2, 3, 4]), "initialValuesOffsetInBytes": 8, "sizeInBytes": 100}
    found = load({"R": given}).resources["R"]
    assert found is not None
    assert (found.size, found.offset) == (100, 8)
    assert found.create()[:24].view(np.float32).tolist() == [0, 0, 1, 2, 3, 4]
    given |= {"initialValuesOffsetInBytes": 9, "sizeInBytes": 24}
    assert "sizeInBytes: found 24 bytes, expected at least 25" in refusal(given)


def test_constants_and_sequences() -> None:
    assert elements(of("DML_TENSOR_DATA_TYPE_UINT32", {"valueCount": 6, "value": 2})).tolist() == [2] * 6
    counted = {"valueCount": 5, "valueStart": 3, "valueDelta": 2}
    assert elements(of("DML_TENSOR_DATA_TYPE_FLOAT32", counted)).tolist() == [3, 5, 7, 9, 11]


# Commands


def commanded(bindings: object) -> Model:
    resources = {name: of("FLOAT32", {"valueCount": 16, "value": 0}) for name in "ABC"}
    dispatchables = {"join": {"type": "JOIN", "desc": JOINED}}
    return load(resources, dispatchables, [{"type": "dispatch", "dispatchable": "join", "bindings": bindings}])


JOINED = {"InputTensors": [tensor(4), tensor(4)], "OutputTensor": tensor(8), "Axis": 0}


def test_bindings_by_name_by_object_and_in_lists() -> None:
    ranged = {"name": "B", "elementCount": 4, "elementOffset": 8, "elementSizeInBytes": 4, "format": "R32_FLOAT"}
    model = commanded({"InputTensors": ["A", ranged], "OutputTensor": {"name": "C"}})
    assert model.check() == []
    (command,) = model.commands
    assert isinstance(command, Dispatch)
    assert command.dispatchable == "join"
    first, second = command.bindings["InputTensors"]
    assert first is not None
    assert second is not None
    assert (first.resource, first.offset, first.count, first.item) == ("A", 0, 0, 0)
    assert (second.resource, second.offset, second.count, second.item) == ("B", 8, 4, 4)


@pytest.mark.parametrize("bindings", [None, [], "A", {"InputTensors": [3]}, {"InputTensors": {"elementCount": 2}}])
def test_what_are_no_bindings(bindings: object) -> None:
    assert any("bindings" in violation.where for violation in commanded(bindings).check())


# Fields that mean nothing


COMMENTED = {
    "comment": "what the model is for",
    "resources": {"A": {**of("FLOAT32", [1, 2]), "comment": "the input"}},
    "dispatchables": {
        "copy": {
            "type": "ELEMENT_WISE_IDENTITY",
            "comment": "copies",
            "desc": {"InputTensor": tensor(2, comment="two"), "OutputTensor": tensor(2), "comment": 1},
        }
    },
    "commands": [
        {
            "type": "dispatch",
            "dispatchable": "copy",
            "comment": [],
            "bindings": {"InputTensor": "A", "OutputTensor": {"name": "A", "comment": "in place"}},
        },
        {"type": "print", "resource": "A", "comment": None},
    ],
}


def test_unknown_fields_pass_where_they_are_allowed(tmp_path: Path) -> None:
    text = json.dumps(COMMENTED)
    refused = dxdispatch.loads(text).check()
    assert len(refused) == 8
    assert {violation.rule for violation in refused} == {"(M3)"}
    assert "--allow-unknown-fields (allow_unknown_fields=True) lets it pass" in str(refused[0])
    assert dxdispatch.loads(text, allow_unknown_fields=True).run()["A"].tolist() == [1, 2]
    (tmp_path / "model.json").write_text(text)
    assert dxdispatch.load(tmp_path / "model.json", allow_unknown_fields=True).check() == []


def test_missing_and_repeated_fields_do_not_pass_for_unknown_ones() -> None:
    text = '{"resources": {}, "resources": {}, "commands": [], "comment": 1}'
    rules = [violation.where for violation in dxdispatch.loads(text, allow_unknown_fields=True).check()]
    assert rules == ["resources", "the model"]


# Files


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with models in a folder, which is not the current one."""
    (tmp_path / "models").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def source(name: str, **options: Any) -> np.ndarray:
    return elements(of("FLOAT32", {"sourcePath": name}), folder="models", **options)


def test_a_source_is_looked_for_in_the_current_folder_too(folders: Path) -> None:
    np.save(folders / "models" / "x.npy", np.float32([1, 2]))
    assert source("x.npy").tolist() == [1, 2]
    assert source("models/x.npy").tolist() == [1, 2]


def test_a_source_beside_the_model_comes_first(folders: Path) -> None:
    np.save(folders / "models" / "x.npy", np.float32([1, 2]))
    np.save(folders / "x.npy", np.float32([3]))
    assert source("x.npy").tolist() == [1, 2]
    assert source("x.npy", allow_outside=True).tolist() == [1, 2]


def test_a_source_in_the_current_folder_lies_outside_of_the_models(folders: Path) -> None:
    np.save(folders / "x.npy", np.float32([3]))
    with pytest.raises(DMLError, match=r"found 'x.npy', which is .*x.npy', expected .*\(M9\)\. --allow-outside"):
        source("x.npy")
    assert source("x.npy", allow_outside=True).tolist() == [3]
    with pytest.raises(DMLError, match=r"\(M9\)"):
        source("../x.npy")
    with pytest.raises(DMLError, match=r"sourcePath: found .*models/y.npy' \(No such file.*\(M10\)"):
        source("y.npy")


@pytest.mark.parametrize(
    ("name", "found"),
    [("network.onnx", "an ONNX model"), ("Partition_0.BIN", "a serialised graph")],
)
def test_files_that_are_no_models(tmp_path: Path, name: str, found: str) -> None:
    (tmp_path / name).write_bytes(b"\x08\x07")
    with pytest.raises(DMLError, match=found) as refused:
        dxdispatch.load(tmp_path / name)
    assert refused.value.violations[0].rule == "(M1)"
