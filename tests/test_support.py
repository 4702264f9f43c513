"""The support tables, transcribed once more from the pages, against the validator: every tensor at every level.

The tables stand in `cases`, beside the cases of their family.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from itertools import product
from typing import Any

import pytest

from anydml import (
    DML_BUFFER_TENSOR_DESC,
    DML_PADDING_OPERATOR_DESC,
    Device,
    DMLValueError,
    FeatureLevel,
    HResult,
    PaddingMode,
    ReduceFunction,
    TensorDataType,
    validate,
)
from anydml.operators import OPERATORS
from anydml.operators.schema import OperatorDesc
from cases import all_support
from support_tables import Shape

pytestmark = pytest.mark.slow

SUPPORT = all_support()
PAGES = {name: support.by_tensor(name.split()[0]) for name, support in SUPPORT.items()}


def build(operator: str, tensor: str, shape: Shape) -> tuple[OperatorDesc, Mapping[str, Shape]]:
    name = operator.split()[0]
    shapes = SUPPORT[operator].shapes(name, tensor, shape)
    return SUPPORT[operator].build(name, shapes), shapes


@cache
def row_at(operator: str, tensor: str, level: FeatureLevel) -> tuple[range, frozenset[str]] | None:
    """Dimension counts and data types of a tensor at a level; None where the operator is not there."""
    found = None
    for since, fewest, most, types in PAGES[operator][tensor]:
        major, minor = map(int, since.split("."))
        if level.value >= major * 0x1000 + minor * 0x100:
            found = range(fewest, most + 1), frozenset(types.split())
    return found


def code(fits_later: bool) -> HResult:
    return HResult.DXGI_ERROR_UNSUPPORTED if fits_later else HResult.E_INVALIDARG


Finding = tuple[str, str, HResult]
"""Rule, place, code."""


def labelled(tensor: str) -> str:
    return f"{tensor}[0]" if tensor.endswith("s") else tensor


def expected_findings(operator: str, shapes: Mapping[str, Shape], level: FeatureLevel) -> Iterator[Finding]:
    later = [higher for higher in FeatureLevel if higher > level]
    for tensor, (count, data_type) in shapes.items():
        label = labelled(tensor)
        if not 1 <= count <= 8:
            yield "(T2)", f"{label}.Sizes", HResult.E_INVALIDARG
        if data_type == TensorDataType.UNKNOWN:
            yield "(T1)", f"{label}.DataType", HResult.E_INVALIDARG
        row = row_at(operator, tensor, level)
        if row is None:
            continue
        rows = [found for higher in later if (found := row_at(operator, tensor, higher))]
        if 1 <= count <= 8 and count not in row[0]:
            yield "(S2)", f"{label}.DimensionCount", code(any(count in counts for counts, _ in rows))
        if data_type != TensorDataType.UNKNOWN and data_type.name not in row[1]:
            yield "(S3)", f"{label}.DataType", code(any(data_type.name in types for _, types in rows))
    if row_at(operator, next(iter(shapes)), level) is None:
        yield "(S1)", "", HResult.DXGI_ERROR_UNSUPPORTED


def test_every_operator_is_transcribed() -> None:
    assert {name.split()[0] for name in PAGES} == set(OPERATORS)
    assert {name for name in PAGES if name.startswith("REDUCE")} == {f"REDUCE {each.name}" for each in ReduceFunction}


# Every count and every type, and some of both that only one of two tables has.
SHAPES = [
    *product(range(10), [TensorDataType.FLOAT32]),
    *product([4], TensorDataType),
    *product([1, 8], [TensorDataType.INT8, TensorDataType.UINT64]),
]


def shapes_of(operator: str) -> list[Mapping[str, Shape]]:
    """With each of these shapes for each tensor of an operator in turn: where all tensors are alike, these are the same
    for each."""
    name, found = operator.split()[0], []
    for tensor, shape in product(PAGES[operator], SHAPES):
        shapes = SUPPORT[operator].shapes(name, tensor, shape)
        if shapes not in found:
            found.append(shapes)
    return found


@pytest.mark.parametrize("operator", PAGES)
def test_accepts_and_refuses_as_the_page_says(operator: str) -> None:
    for shapes in shapes_of(operator):
        desc = SUPPORT[operator].build(operator.split()[0], shapes)
        for level in FeatureLevel:
            expected = set(expected_findings(operator, shapes, level))
            violations = validate(desc, level)
            found = {(v.rule, v.where, v.hresult) for v in violations if v.rule[1] in "ST"}
            assert found == expected, (level, shapes, violations)
            assert expected or not violations, (level, shapes, violations)
            for violation in violations:
                if violation.rule[1] == "S":
                    assert violation.feature_level == level
                    assert f"at feature level {level.number}" in str(violation)


@pytest.mark.parametrize("operator", PAGES)
def test_a_tensor_alone_can_break_the_table(operator: str) -> None:
    """One tensor outside the table, all others inside it: the violation names that tensor."""
    for tensor in PAGES[operator]:
        shapes: dict[str, Any] = {
            name: (4, TensorDataType[rows[0][3].split()[0]]) for name, rows in PAGES[operator].items()
        }
        is_taken = "UINT4" in PAGES[operator][tensor][-1][3].split()
        shapes[tensor] = (4, TensorDataType.FLOAT64 if is_taken else TensorDataType.UINT4)
        refused = [v.where for v in validate(SUPPORT[operator].build(operator.split()[0], shapes)) if v.rule == "(S3)"]
        assert refused == [f"{labelled(tensor)}.DataType"]


def test_the_remedy_names_the_first_level_that_helps() -> None:
    desc, _ = build("JOIN", "InputTensors", (4, TensorDataType.UINT8))
    first, second = validate(desc, FeatureLevel.LEVEL_1_0)
    assert first.remedy == second.remedy == "UINT8 needs feature level 2.1"
    desc, _ = build("JOIN", "InputTensors", (5, TensorDataType.FLOAT32))
    assert {v.remedy for v in validate(desc, FeatureLevel.LEVEL_2_1)} == {"5 needs feature level 3.0"}


def test_a_device_refuses_what_its_level_lacks() -> None:
    desc, _ = build("CUMULATIVE_PRODUCT", "InputTensor", (4, TensorDataType.FLOAT32))
    Device("reference", FeatureLevel.LEVEL_3_1).create_operator(desc)
    with pytest.raises(DMLValueError, match=r"\(S1\)") as raised:
        Device("reference", FeatureLevel.LEVEL_3_0).create_operator(desc)
    assert raised.value.hresult == HResult.DXGI_ERROR_UNSUPPORTED
    assert "feature level 3.1 or higher" in str(raised.value)


def test_cumulative_integers_are_there_from_the_first_level_on() -> None:
    """The newer page has INT32 where an older translation has UINT16."""
    for data_type, accepted in (("INT32", True), ("UINT32", True), ("UINT16", False)):
        desc, _ = build("CUMULATIVE_PRODUCT", "InputTensor", (4, TensorDataType[data_type]))
        assert (not validate(desc, FeatureLevel.LEVEL_3_1)) == accepted


def test_a_value_of_an_enum_may_be_newer_than_its_operator() -> None:
    x = DML_BUFFER_TENSOR_DESC(DataType=TensorDataType.FLOAT32, Sizes=(1, 1, 2, 3))
    ends = {"StartPadding": (0,) * 4, "EndPadding": (0,) * 4, "PaddingValue": 0}
    later = {PaddingMode.SYMMETRIC: FeatureLevel.LEVEL_3_0, PaddingMode.WRAP: FeatureLevel.LEVEL_6_4}
    for mode, level in product(PaddingMode, FeatureLevel):
        desc = DML_PADDING_OPERATOR_DESC(InputTensor=x, OutputTensor=x, PaddingMode=mode, **ends)
        violations = validate(desc, level)
        since = later.get(mode, FeatureLevel.LEVEL_1_0)
        assert [(v.rule, v.where, v.hresult) for v in violations] == (
            [("(S5)", "PaddingMode", HResult.DXGI_ERROR_UNSUPPORTED)] if level < since else []
        )
        for violation in violations:
            assert violation.found == mode.name
            assert violation.remedy == f"{mode.name} needs feature level {since.number}"
            assert ("SYMMETRIC" in violation.expected) == (level >= FeatureLevel.LEVEL_3_0)
