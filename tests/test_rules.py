"""Every rule on descs, broken: the label, the place, what was found and what is expected.

The descs stand in `cases`, those of operators beside the cases of their family.
"""

from __future__ import annotations

import inspect
import re
from importlib import import_module
from typing import Any

import numpy as np
import pytest

from anydml import (
    DML_BUFFER_TENSOR_DESC,
    DML_CUMULATIVE_SUMMATION_OPERATOR_DESC,
    DML_SCALE_BIAS,
    AxisDirection,
    Device,
    DMLError,
    DMLMemoryError,
    DMLTypeError,
    DMLValueError,
    FeatureLevel,
    HResult,
    TensorDataType,
    Violation,
    quantized_linear_average_pooling,
    validate,
)
from anydml.core.errors import error
from anydml.operators import OPERATORS, spec, spec_of
from anydml.operators.schema import OperatorDesc
from cases import GOOD, Negative, bad, collected, tensor
from cases.activation import activation, add1
from cases.clip import clip1
from cases.cumulative import summation
from cases.element_wise import element_wise
from cases.join import join
from cases.normalization import normalization
from cases.pooling import pooling
from cases.reduce import reduce
from together import Row, together

validation = import_module("anydml.operators.validate")  # the name in the package is the function's


NEGATIVES: list[Negative] = collected("NEGATIVES")


def id_of(negative: Negative) -> str:
    found = spec_of(negative.desc)
    return f"{found.name if found else 'none'}-{negative.rule}-{negative.where}"


@together("negative", [Row(id_of(negative).partition("-")[0], id_of(negative), (negative,)) for negative in NEGATIVES])
def test_broken(negative: Negative) -> None:
    rule, desc, where, found, expected, strict = negative
    (violation,) = validate(desc, strict=strict)
    assert (violation.rule, violation.where) == (rule, where)
    assert found in violation.found
    assert expected in violation.expected
    assert violation.hresult == HResult.E_INVALIDARG
    operator = spec_of(desc)
    assert violation.operator == (operator.name if operator else "")
    with pytest.raises(DMLError) as raised:
        Device("reference", strict=strict).create_operator(desc)
    assert raised.value.violations == (violation,)
    for part in (violation.operator, where, violation.found, violation.expected, rule, "E_INVALIDARG 0x80070057"):
        assert part in str(raised.value)


# What can't be broken alone: an unknown type is also not that of the output, and so on.
@pytest.mark.parametrize(
    ("rule", "desc", "where", "strict"),
    [
        ("(T1)", summation(InputTensor=bad(DataType=TensorDataType.UNKNOWN)), "InputTensor.DataType", False),
        ("(T2)", summation(InputTensor=bad(Sizes=())), "InputTensor.Sizes", False),
        ("(T2)", summation(InputTensor=bad(Sizes=(1,) * 9)), "InputTensor.Sizes", False),
        ("(T2)", summation(InputTensor=bad(Sizes=(2, 0))), "InputTensor.Sizes[1]", False),
        ("(T2)", summation(InputTensor=bad(Sizes=(-2, 3))), "InputTensor.Sizes[0]", False),
        ("(T5)", summation(InputTensor=bad(Sizes=(2**31, 2**31))), "InputTensor.Sizes", False),
        ("(T10)", pooling(InputTensor=tensor((1, 3, 2**16, 2**16), "UINT8")), "InputTensor.Sizes", True),
    ],
)
def test_broken_among_others(rule: str, desc: OperatorDesc, where: str, strict: bool) -> None:
    assert (rule, where) in [(v.rule, v.where) for v in validate(desc, strict=strict)]


@pytest.mark.parametrize("operator", OPERATORS)
def test_every_constraint_of_every_operator_is_broken_here(operator: str) -> None:
    labels = re.findall(r"^ +(\(C\d+\)) ", inspect.getdoc(spec(operator).desc) or "", re.MULTILINE)
    broken = {negative.rule for negative in NEGATIVES if type(negative.desc) is spec(operator).desc}
    assert set(labels) <= broken


def test_all_rules_on_members_and_tensors_are_broken_here() -> None:
    broken = {negative.rule for negative in NEGATIVES}
    members = {f"(F{i})" for i in range(1, 12)} - {"(F7)"}
    assert members | {f"(T{i})" for i in range(2, 11)} <= broken


def test_right_descs_are_right() -> None:
    """Every operator has one, so that a negative case can break one rule of it."""
    right = collected("RIGHT")
    assert {spec_of(desc).name for desc in right} == set(OPERATORS)  # type: ignore[union-attr]
    for desc in right:
        assert validate(desc) == []
        assert validate(desc, strict=True) == []


FUSED_ANYWHERE = (
    *("ELU", "HARD_SIGMOID", "IDENTITY", "LEAKY_RELU", "LINEAR", "PARAMETRIC_SOFTPLUS", "RELU", "SCALED_ELU"),
    *("SCALED_TANH", "SIGMOID", "SOFTPLUS", "SOFTSIGN", "TANH", "THRESHOLDED_RELU", "SHRINK"),
)
NUMBERS = {"SWISH": {"SigmoidInputScale": 1}, "HARD_SWISH": {"Alpha": 1, "Beta": 1}}
FUSED_LATER = {"CELU": FeatureLevel.LEVEL_3_0, "GELU": FeatureLevel.LEVEL_5_1}


def fused(name: str) -> OperatorDesc:
    """An activation of ordinary numbers."""
    members = spec(f"ACTIVATION_{name}").members
    return activation(name, **{member: 1 for member, kind in members.items() if kind == "FLOAT"})


@pytest.mark.parametrize("level", [FeatureLevel.LEVEL_2_0, FeatureLevel.LEVEL_6_4], ids=lambda level: level.number)
def test_what_may_be_fused(level: FeatureLevel) -> None:
    x = tensor((1, 1, 2, 3))
    tensors = dict.fromkeys(("ATensor", "BTensor", "OutputTensor"), x)
    names = {*FUSED_ANYWHERE, *FUSED_LATER}
    refused = {name for name in names if validate(add1(fused(name), **tensors), level)}
    assert refused == {name for name, since in FUSED_LATER.items() if since > level}
    for name in ("SWISH", "HARD_SWISH"):
        (violation,) = validate(add1(spec(f"ACTIVATION_{name}").desc(InputTensor=x, OutputTensor=x, **NUMBERS[name])))
        assert violation.rule == "(F11)"


def test_an_activation_is_fused_from_its_level_on() -> None:
    missing, early = validate(add1(fused("SHRINK")), FeatureLevel.LEVEL_1_0)
    assert (missing.rule, early.rule) == ("(S1)", "(S4)")
    assert (early.where, early.found) == ("FusedActivation", "ACTIVATION_SHRINK")
    assert early.remedy == "ACTIVATION_SHRINK needs feature level 2.0"
    assert early.hresult == HResult.DXGI_ERROR_UNSUPPORTED


def test_a_fused_activation_keeps_its_own_constraints(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that depend on tensors, were they fused here."""
    monkeypatch.setattr(validation, "fused_since", lambda *names: FeatureLevel.LEVEL_1_0)
    (violation,) = validate(add1(activation("SOFTMAX1", Axes=[1, 2])))
    assert (violation.rule, violation.where) == ("(F11)", "FusedActivation.Axes[1]")
    assert (violation.operator, violation.found) == ("ELEMENT_WISE_ADD1", "2")
    x = tensor((2, 1, 3))
    (violation,) = validate(add1(activation("SOFTMAX"), ATensor=x, BTensor=x, OutputTensor=x))
    assert (violation.rule, violation.where) == ("(F11)", "FusedActivation.InputTensor.Sizes[0]")
    assert violation.remedy == "DML_ACTIVATION_SOFTMAX1_OPERATOR_DESC takes any axes"
    assert validate(add1(activation("SOFTMAX1", Axes=[1, 0]))) == []


def test_numpy_integers_and_lists_are_numbers_and_tuples() -> None:
    desc = pooling(WindowSize=np.array([2, 2]), Strides=[np.int64(1), np.uint8(1)])
    assert validate(desc) == []
    assert desc == pooling()
    assert summation(Axis=np.int32(1)) == summation()


@pytest.mark.parametrize("data_type", ["UINT4", "INT4", "FLOAT64"])
def test_clip1_of_a_type_that_no_table_has(data_type: str) -> None:
    assert {v.rule for v in validate(clip1(TensorDataType[data_type]))} == {"(S3)"}


def test_a_power_of_another_type_is_not_refused_below_3_0() -> None:
    """As its docstring says; DirectML would refuse it."""
    x, e = (tensor((1, 1, 2, 3), data_type) for data_type in ("FLOAT32", "FLOAT16"))
    desc = element_wise("POW", InputTensor=x, ExponentTensor=e, OutputTensor=x)
    assert validate(desc, FeatureLevel.LEVEL_2_1) == []


@pytest.mark.parametrize(
    ("desc", "level", "where", "found"),
    [
        (
            normalization(operator, **{name: None}),
            FeatureLevel.LEVEL_5_2,
            name,
            "None beside a " + {"ScaleTensor": "BiasTensor", "BiasTensor": "ScaleTensor"}[name],
        )
        for operator in ("MEAN_VARIANCE_NORMALIZATION", "MEAN_VARIANCE_NORMALIZATION1")
        for name in ("ScaleTensor", "BiasTensor")
    ]
    + [
        (
            normalization(operator, **{name: tensor((1, 1, 4, 5))}),
            FeatureLevel.LEVEL_4_0,
            f"{name}.Sizes[1]",
            "1",
        )
        for operator in ("BATCH_NORMALIZATION", "MEAN_VARIANCE_NORMALIZATION1")
        for name in spec(operator).tensors
        if name not in ("InputTensor", "OutputTensor")
    ]
    + [
        (
            normalization("BATCH_NORMALIZATION", Spatial=False, **{name: tensor(sizes), other: tensor((1, 3, 4, 5))}),
            FeatureLevel.LEVEL_4_0,
            f"{name}.Sizes[{sizes.index(1, 1)}]",
            "1",
        )
        for name, other in (("MeanTensor", "VarianceTensor"), ("VarianceTensor", "MeanTensor"))
        for sizes in ((1, 3, 4, 1), (1, 3, 1, 5))
    ],
    ids=lambda each: "",
)
def test_what_a_later_level_takes(desc: OperatorDesc, level: FeatureLevel, where: str, found: str) -> None:
    assert validate(desc, level) == []
    before = [each for each in FeatureLevel if each < level][-1]
    (violation,) = validate(desc, before)
    assert (violation.rule, violation.where, violation.found) == ("(S5)", where, found)
    assert violation.hresult == HResult.DXGI_ERROR_UNSUPPORTED
    assert violation.remedy == f"{found} needs feature level {level.number}"


def test_what_an_earlier_level_takes_too() -> None:
    for operator in ("MEAN_VARIANCE_NORMALIZATION", "MEAN_VARIANCE_NORMALIZATION1"):
        without = normalization(operator, ScaleTensor=None, BiasTensor=None)
        assert validate(without, FeatureLevel.LEVEL_2_1) == []
    assert validate(normalization("BATCH_NORMALIZATION", Spatial=True), FeatureLevel.LEVEL_1_0) == []
    of_pixels = tensor((1, 3, 4, 5))
    desc = normalization("BATCH_NORMALIZATION", Spatial=False, MeanTensor=of_pixels, VarianceTensor=of_pixels)
    assert validate(desc, FeatureLevel.LEVEL_1_0) == []


def test_a_table_is_that_of_the_function() -> None:
    x = tensor((2, 3, 1, 1), "INT32")
    y = tensor((1, 3, 1, 1), "INT32")
    assert validate(reduce("SUM", InputTensor=x, OutputTensor=y), FeatureLevel.LEVEL_2_1) == []
    refused = validate(reduce("L1", InputTensor=x, OutputTensor=y), FeatureLevel.LEVEL_2_1)
    assert {v.remedy for v in refused} == {"INT32 needs feature level 5.0"}
    refused = validate(reduce("L2", InputTensor=x, OutputTensor=y))
    assert [(v.rule, v.where, v.remedy) for v in refused] == [
        ("(S3)", f"{name}.DataType", "") for name in ("InputTensor", "OutputTensor")
    ]


def test_without_a_function_its_operators_table_holds() -> None:
    x = tensor((2, 3), "FLOAT64")
    desc = reduce(Function=7, InputTensor=x, OutputTensor=tensor((1, 3), "INT32"))
    assert [v.rule for v in validate(desc)] == ["(F4)", "(S3)"]


def test_a_float_member_has_single_precision() -> None:
    desc = element_wise("CLIP", Min=0.1, Max=np.inf, ScaleBias=DML_SCALE_BIAS(Scale=0.1, Bias=2**24 + 1))
    assert desc.Min == desc.ScaleBias.Scale == float(np.float32(0.1))
    assert desc.ScaleBias.Bias == 2**24
    assert validate(desc) == []


# All violations, not the first


def test_a_desc_with_five_mistakes_gives_five() -> None:
    wrong = DML_BUFFER_TENSOR_DESC(
        DataType=TensorDataType.INT32,
        Sizes=(2, 4),
        Strides=(1, 1),
        TotalTensorSizeInBytes=5,
        GuaranteedBaseOffsetAlignment=3,
    )
    desc = summation(OutputTensor=wrong, Axis=2)
    violations = validate(desc)
    assert [(v.rule, v.where) for v in violations] == [
        ("(T7)", "OutputTensor.GuaranteedBaseOffsetAlignment"),
        ("(T6)", "OutputTensor.TotalTensorSizeInBytes"),
        ("(T9)", "OutputTensor.Strides"),
        ("(C1)", "OutputTensor.DataType"),
        ("(C3)", "Axis"),
        ("(C2)", "OutputTensor.Sizes[1]"),
    ]
    with pytest.raises(DMLValueError, match=r"^CUMULATIVE_SUMMATION: 6 violations") as raised:
        Device("reference").create_operator(desc)
    assert raised.value.violations == tuple(violations)
    assert str(raised.value).splitlines()[1:] == [f"  {violation}" for violation in violations]


def test_all_malformed_members_are_named() -> None:
    desc = DML_CUMULATIVE_SUMMATION_OPERATOR_DESC(
        InputTensor=bad(DataType=0, Strides="no", Flags=0),
        OutputTensor=None,
        Axis=-1,
        AxisDirection=0,
        HasExclusiveSum=7,
    )
    assert sorted(v.where for v in validate(desc)) == [
        "Axis",
        "AxisDirection",
        "HasExclusiveSum",
        "InputTensor.DataType",
        "InputTensor.Flags",
        "InputTensor.Strides",
        "OutputTensor",
    ]


@pytest.mark.parametrize(
    ("desc", "where"),
    [
        (join(InputTensors=GOOD), "InputTensors"),
        (pooling(Strides=None), "Strides"),
        (summation(InputTensor=bad(Sizes=(2, 3.0))), "InputTensor.Sizes"),
        (summation(InputTensor=bad(Strides=(3, 1.0))), "InputTensor.Strides"),
    ],
)
def test_one_mistake_gives_one_violation(desc: OperatorDesc, where: str) -> None:
    assert [v.where for v in validate(desc)] == [where]


# Exceptions


@pytest.mark.parametrize(
    ("kind", "dml", "builtin"),
    [("value", DMLValueError, ValueError), ("type", DMLTypeError, TypeError), ("memory", DMLMemoryError, MemoryError)],
)
def test_exceptions_are_builtin_ones_too(kind: Any, dml: type[DMLError], builtin: type[Exception]) -> None:
    violation = Violation(operator="JOIN", where="Axis", found="2", expected="1", rule="(C4)", remedy="Do", kind=kind)
    raised = error([violation])
    assert type(raised) is dml
    assert isinstance(raised, DMLError)
    assert isinstance(raised, builtin)
    assert raised.violations == (violation,)
    code = "E_OUTOFMEMORY 0x8007000E" if kind == "memory" else "E_INVALIDARG 0x80070057"
    assert raised.hresult.name == code.split()[0]
    assert str(raised) == f"JOIN.Axis: found 2, expected 1 (C4). Do [{code}]"


def test_wrong_types_are_type_errors_and_wrong_values_value_errors() -> None:
    with pytest.raises(DMLTypeError):
        Device("reference").create_operator(summation(Axis="1"))
    with pytest.raises(DMLValueError):
        Device("reference").create_operator(summation(Axis=-1))


@pytest.mark.parametrize(
    ("ends", "found"),
    [(2**30, r"uint8 of shape \(1, 1, 2147483649, 2147483649\)"), (2**31, r"out.shape: found a span of 18\d+ bytes")],
)
def test_a_result_larger_than_memory_is_a_memory_error(ends: int, found: str) -> None:
    x = np.ones((1, 1, 1, 1), np.uint8)
    padding = {"start_padding": ends, "end_padding": ends}
    with pytest.raises(DMLMemoryError, match=found) as raised:
        quantized_linear_average_pooling(x, 1.0, output_scale=1.0, window_size=1, **padding, device="reference")
    assert raised.value.hresult == HResult.E_OUTOFMEMORY


def test_levels_and_strictness_of_a_device_are_those_of_validate() -> None:
    desc = summation(AxisDirection=AxisDirection.DECREASING)
    device = Device("reference", FeatureLevel.LEVEL_2_1)
    with pytest.raises(DMLValueError) as raised:
        device.create_operator(desc)
    assert raised.value.violations == tuple(validate(desc, FeatureLevel.LEVEL_2_1))
    assert raised.value.hresult == HResult.DXGI_ERROR_UNSUPPORTED
