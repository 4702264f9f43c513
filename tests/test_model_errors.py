"""Models: everything that is wrong with one is said, with its place."""

from __future__ import annotations

import json
from typing import Any

import pytest

from anydml import DMLError, FeatureLevel
from anydml.frontends import dxdispatch as model
from model_texts import (
    BASE,
    DELETE,
    SPLIT,
    UPSAMPLE,
    VALUE_SCALE,
    assert_said,
    changed,
    float32,
    image_to_image,
    one_operator,
    run,
)

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
        ({VALUES: "deferred"}, "found the deferred resource 'A', expected one with a size (M12)"),
        ({VALUES: "deferred", "resources/A/sizeInBytes": 16}, "sizeInBytes: found 16, expected none.*(M8)"),
        ({VALUES: 3}, "resources.A.initialValues: found 3, expected a list of values, .*(M4)"),
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
            {TYPED: "CUMULATIVE_PRODCUT"},
            '"CUMULATIVE_PRODCUT", no operator of DirectML.*Did you mean CUMULATIVE_PRODUCT?',
        ),
        ({TYPED: "INVALID"}, "no operator of DirectML.*(M11)"),
        ({TYPED: "HLSL"}, 'found "HLSL", a shader.*(M11)'),
        ({TYPED: "onnx"}, "dispatchables.product: found no sourcePath, .*(M3)"),
        ({TYPED: "dmlSerializedGraph"}, "dispatchables.product: found no sourcePath, .*(M3)"),
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
