"""What programmers of DirectML write in C++, in Python: the header's names, unions, defaults, and misspelt members."""

from __future__ import annotations

import copy
import pickle
import re
from dataclasses import MISSING, fields
from enum import Enum
from typing import Any

import numpy as np
import pytest

import anydml
from anydml import (
    DML_ACTIVATION_ELU_OPERATOR_DESC,
    DML_BUFFER_ARRAY_BINDING,
    DML_BUFFER_BINDING,
    DML_BUFFER_TENSOR_DESC,
    DML_ELEMENT_WISE_CLIP1_OPERATOR_DESC,
    DML_FILL_VALUE_CONSTANT_OPERATOR_DESC,
    DML_GRAPH_DESC,
    DML_INPUT_GRAPH_EDGE_DESC,
    DML_JOIN_OPERATOR_DESC,
    DML_SCALAR_UNION,
    DML_SCALE_BIAS,
    DML_SIZE_2D,
    DMLAttributeError,
    DMLError,
    DMLTypeError,
    OperatorType,
    TensorDataType,
    validate,
)
from anydml.core.enums import PREFIXES, TYPE_NAMES, named
from anydml.core.strided_layout import DTYPES
from anydml.operators import OPERATORS, spec
from anydml.operators.header_names import OTHER_NAMES, STAND_INS
from cases import tensor

# Names


@pytest.mark.parametrize("name", TYPE_NAMES)
def test_enums_have_the_headers_names(name: str) -> None:
    enum = getattr(anydml, name)
    assert enum.__doc__.startswith(f"``{name}``")
    assert getattr(anydml, enum.__name__) is enum
    for member in enum.__members__:
        assert getattr(anydml, PREFIXES[enum] + member) is enum[member]


def test_every_enum_has_its_name() -> None:
    assert set(TYPE_NAMES.values()) == set(PREFIXES)


def test_names_that_are_no_enums() -> None:
    for name in ("DML_TENSOR_DATA_TYPE_FLOAT33", "DML_TENSOR_DATA_TYPES", "TENSOR_DATA_TYPE", "FLOAT32", ""):
        assert named(name) is None
        assert not hasattr(anydml, name)


def test_the_older_name_of_scatter_elements() -> None:
    assert anydml.DML_OPERATOR_SCATTER is OperatorType.SCATTER_ELEMENTS
    assert anydml.DML_SCATTER_OPERATOR_DESC is anydml.DML_SCATTER_ELEMENTS_OPERATOR_DESC
    assert len(OperatorType) == 178


def test_the_structs_of_bindings_have_the_headers_names() -> None:
    assert anydml.DML_BINDING_PROPERTIES is anydml.BindingProperties
    for name in ("DML_BUFFER_BINDING", "DML_BUFFER_ARRAY_BINDING", "DML_BINDING_PROPERTIES", "DML_BINDING_TYPE"):
        assert name in anydml.__all__


def test_every_operator_is_there() -> None:
    assert [*OPERATORS] == [each.name for each in OperatorType if each.name != "INVALID"]
    assert len(OPERATORS) == 177
    for name in OPERATORS:
        assert getattr(anydml, f"DML_{name}_OPERATOR_DESC") is spec(name).desc
    with pytest.raises(DMLAttributeError, match=r"found no such name.*\(F13\)"):
        _ = anydml.DML_INVALID_OPERATOR_DESC


@pytest.mark.parametrize("name", STAND_INS)
def test_names_that_python_has_no_use_for(name: str) -> None:
    with pytest.raises(DMLAttributeError) as refused:
        getattr(anydml, name)
    assert STAND_INS[name] in str(refused.value)
    assert refused.value.hresult == anydml.HResult.E_INVALIDARG


def test_misspelt_names() -> None:
    with pytest.raises(DMLAttributeError, match=r"found no such name.*Did you mean DML_BUFFER_BINDING\?"):
        _ = anydml.DML_BUFER_BINDING
    for name, meant in (("CONV", "CONVOLUTION"), ("RELU", "ACTIVATION_RELU"), ("JION", "JOIN")):
        with pytest.raises(DMLAttributeError, match=rf"Did you mean DML_{meant}_OPERATOR_DESC\?"):
            getattr(anydml, f"DML_{name}_OPERATOR_DESC")
    for name in ("nonsense", "JOIN", "__wrapped__", "_one_hot"):
        with pytest.raises(AttributeError) as refused:
            getattr(anydml, name)
        assert not isinstance(refused.value, DMLError)


@pytest.mark.parametrize("name", OTHER_NAMES)
def test_names_of_other_libraries(name: str) -> None:
    assert callable(getattr(anydml, OTHER_NAMES[name].partition("(")[0]))
    with pytest.raises(DMLAttributeError, match=rf"\(F13\)\. It is anydml\.{re.escape(OTHER_NAMES[name])} here"):
        getattr(anydml, name)


# Members


@pytest.mark.parametrize("struct", [DML_BUFFER_TENSOR_DESC, anydml.DML_JOIN_OPERATOR_DESC, anydml.DML_GRAPH_DESC])
def test_members_have_names(struct: Any) -> None:
    with pytest.raises(DMLError, match=r"found 2 members without names, expected \w+=\.\.\., .*\(F12\)"):
        struct(1, 2)


STRUCTS: list[tuple[Any, str, str]] = [
    (DML_BUFFER_TENSOR_DESC, "Size", "Sizes"),
    (DML_SCALE_BIAS, "Scales", "Scale"),
    (DML_SIZE_2D, "width", "Width"),
    (DML_SCALAR_UNION, "Flaot32", "Float32"),
    (DML_BUFFER_BINDING, "SizeInByte", "SizeInBytes"),
    (DML_BUFFER_ARRAY_BINDING, "Binding", "Bindings"),
    (DML_GRAPH_DESC, "Node", "Nodes"),
    (DML_INPUT_GRAPH_EDGE_DESC, "ToNode", "ToNodeIndex"),
    (DML_JOIN_OPERATOR_DESC, "InputTensor", "InputTensors"),
]


@pytest.mark.parametrize(("struct", "given", "meant"), STRUCTS, ids=lambda value: getattr(value, "__name__", value))
def test_misspelt_members_are_told_which_was_meant(struct: Any, given: str, meant: str) -> None:
    with pytest.raises(DMLTypeError, match=rf"{struct.__name__}\.{given}: found no such member, .*\(F12\)") as refused:
        struct(**{given: 0})
    (violation,) = refused.value.violations
    assert violation.remedy == f"Did you mean {meant}?"
    assert violation.expected.replace(" or ", ", ").split(", ") == [member.name for member in fields(struct)]


@pytest.mark.parametrize("name", OPERATORS)
def test_misspelt_members_of_operators(name: str) -> None:
    found = spec(name)
    member = next(iter(found.members))
    with pytest.raises(TypeError, match=rf"Did you mean {member}\?"):
        found.desc(**{member.lower() + "s": None})


def test_members_like_nothing_have_no_hint() -> None:
    with pytest.raises(DMLTypeError) as refused:
        DML_SIZE_2D(Comment="")  # type: ignore[call-arg]
    assert refused.value.violations[0].remedy == ""


def test_structs_are_copied_and_pickled() -> None:
    x = tensor((2, 3))
    desc = DML_JOIN_OPERATOR_DESC(InputTensors=[x], OutputTensor=x, Axis=0)
    for struct in (x, desc, DML_SCALAR_UNION(Int8=3), DML_SIZE_2D(Width=1, Height=2)):
        assert copy.deepcopy(struct) == struct
        assert pickle.loads(pickle.dumps(struct)) == struct


# Members that may be left out

TYPICAL = {
    "ACTIVATION_CELU": {"Alpha": 1.0},
    "ACTIVATION_ELU": {"Alpha": 1.0},
    "ACTIVATION_HARD_SIGMOID": {"Alpha": 0.2, "Beta": 0.5},
    "ACTIVATION_HARD_SWISH": {"Alpha": 1 / 6, "Beta": 0.5},
    "ACTIVATION_LEAKY_RELU": {"Alpha": 0.01},
    "ACTIVATION_SCALED_ELU": {"Alpha": 1.6732, "Gamma": 1.0507},
    "ACTIVATION_SCALED_TANH": {"Alpha": 1.0, "Beta": 0.5},
    "ACTIVATION_SHRINK": {"Bias": 0.0, "Threshold": 0.5},
    "ACTIVATION_SOFTPLUS": {"Steepness": 1.0},
    "ACTIVATION_SWISH": {"SigmoidInputScale": 1.0},
    "ACTIVATION_THRESHOLDED_RELU": {"Alpha": 1.0},
    "LOCAL_RESPONSE_NORMALIZATION": {"Alpha": 1e-4, "Beta": 0.75, "Bias": 1.0},
    "LOCAL_RESPONSE_NORMALIZATION_GRAD": {"Alpha": 1e-4, "Beta": 0.75, "Bias": 1.0},
    "LP_NORMALIZATION": {"Epsilon": 1e-5},
    "MEAN_VARIANCE_NORMALIZATION": {"Epsilon": 1e-5},
    "MEAN_VARIANCE_NORMALIZATION1": {"Epsilon": 1e-5},
    "MEAN_VARIANCE_NORMALIZATION2": {"Epsilon": 1e-5},
}
"""The numbers that the operators' pages call typical defaults, or recommend as defaults."""


@pytest.mark.parametrize("name", OPERATORS)
def test_what_is_optional_in_the_header_has_a_default(name: str) -> None:
    found = spec(name)
    defaults = {member.name: member.default for member in fields(found.desc) if member.default is not MISSING}
    optional = [
        member
        for member, kind in found.members.items()
        if kind.startswith("Optional")
        or kind == "Count"
        or "Optional" in getattr(found.tensors.get(member), "kind", "")
    ]
    assert {defaults[member] for member in optional} <= {None}
    floats = {member: value for member, value in defaults.items() if found.members[member] == "FLOAT"}
    assert floats == TYPICAL.get(name, {})
    zeros = [value for member, value in defaults.items() if member not in optional and member not in floats]
    # As `desc = {}` has them, which names of enums and flags mean; the tensors of what may be fused are None.
    assert all(value is None or value == 0 for value in zeros)


def test_what_is_left_out_is_what_the_page_says() -> None:
    x = tensor((2, 3))
    desc = DML_ACTIVATION_ELU_OPERATOR_DESC(InputTensor=x, OutputTensor=x)
    assert desc == DML_ACTIVATION_ELU_OPERATOR_DESC(InputTensor=x, OutputTensor=x, Alpha=1)
    assert validate(desc) == []
    with pytest.raises(TypeError, match="Alpha"):
        anydml.DML_ACTIVATION_LINEAR_OPERATOR_DESC(InputTensor=x, OutputTensor=x, Beta=0)


# DML_SCALAR_UNION

IN_UNION = {kind: kind.name.replace("UINT", "UInt").replace("INT", "Int").replace("FLOAT", "Float") for kind in DTYPES}
IN_UNION[TensorDataType.FLOAT16] = "UInt16"


def clip(data_type: TensorDataType, low: object, high: object) -> Any:
    x = DML_BUFFER_TENSOR_DESC(DataType=data_type, Sizes=(2,))
    return DML_ELEMENT_WISE_CLIP1_OPERATOR_DESC(
        InputTensor=x,
        OutputTensor=x,
        MinMaxDataType=data_type,
        Min=low,  # type: ignore[arg-type]
        Max=high,  # type: ignore[arg-type]
    )


@pytest.mark.parametrize("data_type", IN_UNION, ids=lambda kind: kind.name)
def test_unions_are_numbers(data_type: TensorDataType) -> None:
    def union(value: int) -> DML_SCALAR_UNION:
        as_given = np.float16(value).view(np.uint16) if data_type == TensorDataType.FLOAT16 else value
        return DML_SCALAR_UNION(**{IN_UNION[data_type]: as_given})

    desc = clip(data_type, union(1), union(3))
    assert desc == clip(data_type, 1, 3)
    assert (desc.Min, desc.Max) == (1, 3)
    assert not [violation for violation in validate(desc) if violation.rule == "(F8)"]


@pytest.mark.parametrize(
    ("data_type", "union", "member"),
    [
        (TensorDataType.FLOAT32, DML_SCALAR_UNION(Int32=3), "Float32"),
        (TensorDataType.FLOAT16, DML_SCALAR_UNION(Float32=3), "UInt16"),
        (TensorDataType.FLOAT32, DML_SCALAR_UNION(), "Float32"),
        (TensorDataType.INT8, DML_SCALAR_UNION(Int8=128), "Int8"),
        (TensorDataType.INT8, DML_SCALAR_UNION(Int8=-129), "Int8"),
        (TensorDataType.UINT8, DML_SCALAR_UNION(UInt8=-1), "UInt8"),
        (TensorDataType.INT32, DML_SCALAR_UNION(Int32=1.5), "Int32"),  # type: ignore[arg-type]
        (TensorDataType.INT32, DML_SCALAR_UNION(Int32=True), "Int32"),
        (TensorDataType.FLOAT32, DML_SCALAR_UNION(Float32="3"), "Float32"),  # type: ignore[arg-type]
    ],
)
def test_unions_without_the_number(data_type: TensorDataType, union: DML_SCALAR_UNION, member: str) -> None:
    (violation,) = [each for each in validate(clip(data_type, union, 9)) if each.rule == "(F8)"]
    assert violation.where == "Min"
    assert violation.found == repr(union)
    assert violation.expected == f"a real number, or a DML_SCALAR_UNION with one in {member}"


def test_unions_stand_only_where_the_header_has_them() -> None:
    x = tensor((2, 3))
    desc = DML_ACTIVATION_ELU_OPERATOR_DESC(InputTensor=x, OutputTensor=x, Alpha=DML_SCALAR_UNION(Float32=1))  # type: ignore[arg-type]
    assert [violation.rule for violation in validate(desc)] == ["(F8)"]
    for data_type in (None, "FLOAT32", TensorDataType.UNKNOWN, TensorDataType.UINT4):
        odd = DML_FILL_VALUE_CONSTANT_OPERATOR_DESC(
            OutputTensor=x,
            ValueDataType=data_type,  # type: ignore[arg-type]
            Value=DML_SCALAR_UNION(Float32=1),
        )
        assert {"(F8)"} <= {violation.rule for violation in validate(odd)}


def test_members_of_enums_are_what_they_are_elsewhere() -> None:
    assert isinstance(anydml.DML_AXIS_DIRECTION_DECREASING, Enum)
    assert anydml.DML_AXIS_DIRECTION_DECREASING is anydml.AxisDirection.DECREASING
