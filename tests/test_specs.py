"""The registry: every operator's file says all that its page says, every rule has a label, a sentence and a test."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from enum import Enum
from functools import cache
from pathlib import Path

import pytest

import anydml
import anydml.core.errors
from anydml.core import enums
from anydml.core.enums import (
    AxisDirection,
    BindingType,
    ConvolutionDirection,
    ConvolutionMode,
    ExecutionFlags,
    Feature,
    FeatureLevel,
    HResult,
    InterpolationMode,
    IsInfinityMode,
    MatrixTransform,
    MultiheadAttentionMaskType,
    OperatorType,
    PaddingMode,
    QuantizationType,
    RecurrentNetworkDirection,
    ReduceFunction,
    TensorDataType,
    TensorFlags,
    TensorType,
    parse,
)
from anydml.operators import OPERATORS, member_types, spec, spec_of
from cases import all_cases
from together import Row, together

SOURCE = Path(anydml.__file__).parent
TESTS = Path(__file__).parent
LABEL = re.compile(r"\([A-Z]\d+\)")

each_operator = together("name", [Row(name.split("_")[0], name, (name,)) for name in OPERATORS])


# Operators


def test_operators_are_in_the_order_of_the_enum() -> None:
    numbers = [OperatorType[name].value for name in OPERATORS]
    assert numbers == sorted(numbers)


@each_operator
def test_spec_is_named_after_its_operator(name: str) -> None:
    found = spec(name)
    assert found.name == name
    assert found.desc.__name__ == f"DML_{name}_OPERATOR_DESC"
    assert getattr(anydml, found.desc.__name__) is found.desc
    # A class that is made of a row is pickled by its public name.
    family = f"anydml.operators.specs.{OPERATORS[name].family}"
    assert found.desc.__module__ == (family if found.pointwise is None else "anydml")


def section(docstring: str, title: str) -> str:
    """The indented lines below a title such as ``Args:``."""
    found = re.search(rf"^{title}:\n((?:[ ]+.*\n|\n)+)", docstring + "\n", re.MULTILINE)
    assert found, f"no section {title}"
    return found[1]


@each_operator
def test_docstring_explains_every_member_in_header_order(name: str) -> None:
    docstring = inspect.getdoc(spec(name).desc) or ""
    explained = re.findall(r"^    (\w+): ", section(docstring, "Args"), re.MULTILINE)
    assert explained == list(spec(name).members)


@each_operator
def test_docstring_numbers_its_constraints_without_a_gap(name: str) -> None:
    docstring = inspect.getdoc(spec(name).desc) or ""
    labels = re.findall(r"^    \(([CV]\d+)\) ", section(docstring, "Constraints"), re.MULTILINE)
    constraints = [label for label in labels if label[0] == "C"]
    demands = [label for label in labels if label[0] == "V"]
    assert constraints == [f"C{i}" for i in range(1, len(constraints) + 1)]
    assert demands == [f"V{i}" for i in range(1, len(demands) + 1)]


@each_operator
def test_docstring_names_its_source_and_first_level(name: str) -> None:
    docstring = inspect.getdoc(spec(name).desc) or ""
    since = spec(name).support.introduced.number
    assert f"Source: the page of DML_{name}_OPERATOR_DESC" in docstring
    assert re.search(rf"since feature level {re.escape(since)}[.;]", " ".join(docstring.split()))


@each_operator
def test_labels_in_code_are_those_of_the_docstring(name: str) -> None:
    found = spec(name)
    code = inspect.getsource(found.constraints) + inspect.getsource(found.check_values) + found.sizes_rule
    if found.pointwise is not None and found.pointwise.check is not None:
        code += inspect.getsource(found.pointwise.check)
    constraints = section(inspect.getdoc(found.desc) or "", "Constraints")
    assert set(LABEL.findall(code)) == set(LABEL.findall(constraints))


@each_operator
def test_every_annotation_is_known_to_the_validator(name: str) -> None:
    for annotation in spec(name).members.values():
        if annotation not in {**member_types.CHECKS, **member_types.ELEMENTS}:
            enum = getattr(enums, annotation.removeprefix("enums."))
            assert issubclass(enum, Enum), annotation


@each_operator
def test_every_table_has_a_row_for_every_tensor(name: str) -> None:
    found = spec(name)
    kinds = ("Tensor", "OptionalTensor", "Tensors")
    tensors = {member for member, kind in found.members.items() if kind in kinds}
    for _, rows in found.support.levels:
        assert set(rows) == tensors


@each_operator
def test_optional_rows_are_optional_members(name: str) -> None:
    for member, row in spec(name).tensors.items():
        annotation = spec(name).members[member]
        assert ("Optional" in row.kind) == (annotation == "OptionalTensor")
        assert ("array" in row.kind) == (annotation == "Tensors")


def test_a_desc_is_known_by_its_class_and_not_by_its_name() -> None:
    impostor = type("DML_JOIN_OPERATOR_DESC", (), {})
    assert spec_of(impostor()) is None
    assert spec_of(anydml.DML_JOIN_OPERATOR_DESC) is None


# Names


def test_all_names_exist() -> None:
    assert len(set(anydml.__all__)) == len(anydml.__all__)
    assert [name for name in anydml.__all__ if not hasattr(anydml, name)] == []
    assert set(anydml.__all__) <= set(dir(anydml))


def test_star_import_brings_the_descs() -> None:
    namespace: dict[str, object] = {}
    exec("from anydml import *", namespace)
    assert set(anydml.__all__) <= set(namespace)


@pytest.mark.parametrize("name", ["DML_INVALID_OPERATOR_DESC", "JOIN", "DML_JOIN", "nonsense"])
def test_other_names_do_not_exist(name: str) -> None:
    with pytest.raises(AttributeError, match=name):
        getattr(anydml, name)


def test_type_checkers_see_every_desc_and_function() -> None:
    """``make generate`` was run after the last change of the table."""
    check = [sys.executable, str(TESTS.parent / "tools" / "generate.py"), "--check"]
    assert subprocess.run(check, capture_output=True, text=True).stdout == ""


# Labels of rules


def strings(path: Path) -> Iterator[str]:
    """The string constants of a file, but for docstrings."""
    tree = ast.parse(path.read_text())
    holders = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    prose = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, holders) and node.body and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in prose:
            yield node.value


@cache
def labels_in(path: Path) -> set[str]:
    return {label for text in strings(path) for label in LABEL.findall(text.replace("\\", ""))}


def homes() -> dict[str, list[str]]:
    """The labels of rules by the module whose docstring has them, each at the start of a line."""
    found = {}
    for path in sorted(SOURCE.rglob("*.py")):
        docstring = ast.get_docstring(ast.parse(path.read_text())) or ""
        if labels := re.findall(r"^(\([A-Z]\d+\)) ", docstring, re.MULTILINE):
            found[path.relative_to(SOURCE).as_posix()] = labels
    return found


HOMES = homes()
DOCUMENTED = [label for labels in HOMES.values() for label in labels]


@pytest.mark.parametrize("module", HOMES)
def test_labels_of_a_module_are_numbered_without_a_gap(module: str) -> None:
    letters = dict.fromkeys(label[1] for label in HOMES[module])
    assert HOMES[module] == [
        f"({letter}{i})" for letter in letters for i in range(1, 1 + sum(label[1] == letter for label in HOMES[module]))
    ]


def test_a_letter_has_one_home_and_errors_name_it() -> None:
    assert len(set(DOCUMENTED)) == len(DOCUMENTED)
    table = dict(
        re.findall(r"^\(([FTSDGBAKMNP])1\)\.\. .*``([\w./]+)``$", anydml.core.errors.__doc__ or "", re.MULTILINE)
    )
    homes = {letter: home.removesuffix(".py").rstrip("/") for letter, home in table.items()}
    for module, labels in HOMES.items():
        for label in labels:
            assert module.removesuffix(".py").startswith(homes[label[1]]), label


def test_labels_in_code_are_documented_and_all_are_used() -> None:
    used = {label for path in SOURCE.rglob("*.py") for label in labels_in(path)}
    assert {label for label in used if label[1] not in "CV"} == set(DOCUMENTED)


def test_every_operator_has_cases() -> None:
    """A new family's file is of no use before `all_cases` lists it."""
    assert {spec_of(case.desc).name for case in all_cases()} == set(OPERATORS)  # type: ignore[union-attr]


@pytest.mark.parametrize("label", DOCUMENTED)
def test_every_rule_has_a_negative_test(label: str) -> None:
    assert any(label in labels_in(path) for pattern in ("test_*.py", "cases/*.py") for path in TESTS.glob(pattern))


# Values of the header


@pytest.mark.parametrize(
    ("enum", "values"),
    [
        (
            TensorDataType,
            "UNKNOWN 0, FLOAT32 1, FLOAT16 2, UINT32 3, UINT16 4, UINT8 5, INT32 6, INT16 7, INT8 8, FLOAT64 9, "
            "UINT64 10, INT64 11, UINT4 12, INT4 13",
        ),
        (AxisDirection, "INCREASING 0, DECREASING 1"),
        (MatrixTransform, "NONE 0, TRANSPOSE 1"),
        (ConvolutionMode, "CONVOLUTION 0, CROSS_CORRELATION 1"),
        (ConvolutionDirection, "FORWARD 0, BACKWARD 1"),
        (PaddingMode, "CONSTANT 0, EDGE 1, REFLECTION 2, SYMMETRIC 3, WRAP 4"),
        (InterpolationMode, "NEAREST_NEIGHBOR 0, LINEAR 1"),
        (IsInfinityMode, "EITHER 0, POSITIVE 1, NEGATIVE 2"),
        (
            ReduceFunction,
            "ARGMAX 0, ARGMIN 1, AVERAGE 2, L1 3, L2 4, LOG_SUM 5, LOG_SUM_EXP 6, MAX 7, MIN 8, MULTIPLY 9, SUM 10, "
            "SUM_SQUARE 11",
        ),
        (QuantizationType, "NONE 0, SCALE 1, SCALE_ZERO_POINT 2"),
        (RecurrentNetworkDirection, "FORWARD 0, BACKWARD 1, BIDIRECTIONAL 2"),
        (
            MultiheadAttentionMaskType,
            "NONE 0, KEY_SEQUENCE_LENGTH 1, KEY_SEQUENCE_END_START 2, KEY_QUERY_SEQUENCE_LENGTH_START_END 3, BOOLEAN 4",
        ),
        (TensorFlags, "NONE 0, OWNED_BY_DML 1"),
        (TensorType, "INVALID 0, BUFFER 1"),
        (
            ExecutionFlags,
            "NONE 0, ALLOW_HALF_PRECISION_COMPUTATION 1, DISABLE_META_COMMANDS 2, DESCRIPTORS_VOLATILE 4",
        ),
        (BindingType, "NONE 0, BUFFER 1, BUFFER_ARRAY 2"),
        (Feature, "TENSOR_DATA_TYPE_SUPPORT 0, FEATURE_LEVELS 1"),
        (
            FeatureLevel,
            "LEVEL_1_0 0x1000, LEVEL_2_0 0x2000, LEVEL_2_1 0x2100, LEVEL_3_0 0x3000, LEVEL_3_1 0x3100, "
            "LEVEL_4_0 0x4000, LEVEL_4_1 0x4100, LEVEL_5_0 0x5000, LEVEL_5_1 0x5100, LEVEL_5_2 0x5200, "
            "LEVEL_6_0 0x6000, LEVEL_6_1 0x6100, LEVEL_6_2 0x6200, LEVEL_6_3 0x6300, LEVEL_6_4 0x6400",
        ),
        (HResult, "E_INVALIDARG 0x80070057, E_OUTOFMEMORY 0x8007000E, DXGI_ERROR_UNSUPPORTED 0x887A0004"),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else "",
)
def test_enum_has_the_values_of_the_header(enum: type[Enum], values: str) -> None:
    expected = {name: int(number, 0) for name, number in (pair.split() for pair in values.split(", "))}
    assert {name: member.value for name, member in enum.__members__.items()} == expected


def test_operator_types() -> None:
    assert len(OperatorType) == 1 + 177
    assert sorted(OperatorType) == list(range(178))
    assert OperatorType.INVALID == 0
    assert OperatorType.JOIN == 63
    assert OperatorType.CUMULATIVE_SUMMATION == 105
    assert OperatorType.CUMULATIVE_PRODUCT == 145
    assert OperatorType.QUANTIZED_LINEAR_AVERAGE_POOLING == 169


def test_constants() -> None:
    assert anydml.DML_TENSOR_DIMENSION_COUNT_MAX == 5
    assert anydml.DML_TENSOR_DIMENSION_COUNT_MAX1 == 8
    assert anydml.DML_TEMPORARY_BUFFER_ALIGNMENT == 256
    assert anydml.DML_PERSISTENT_BUFFER_ALIGNMENT == 256
    assert anydml.DML_MINIMUM_BUFFER_TENSOR_ALIGNMENT == 16


def test_feature_level_numbers() -> None:
    assert [level.number for level in FeatureLevel] == (
        ["1.0", "2.0", "2.1", "3.0", "3.1", "4.0", "4.1", "5.0", "5.1", "5.2", "6.0", "6.1", "6.2", "6.3", "6.4"]
    )


@pytest.mark.parametrize(
    ("enum", "name", "member"),
    [
        (TensorDataType, "FLOAT32", TensorDataType.FLOAT32),
        (TensorDataType, "DML_TENSOR_DATA_TYPE_FLOAT32", TensorDataType.FLOAT32),
        (TensorFlags, "DML_TENSOR_FLAG_OWNED_BY_DML", TensorFlags.OWNED_BY_DML),
        (AxisDirection, "DML_AXIS_DIRECTION_DECREASING", AxisDirection.DECREASING),
        (FeatureLevel, "DML_FEATURE_LEVEL_6_4", FeatureLevel.LEVEL_6_4),
        (OperatorType, "DML_OPERATOR_JOIN", OperatorType.JOIN),
        (TensorDataType, "float32", None),
        (TensorDataType, "DML_TENSOR_DATA_TYPE_", None),
        (TensorDataType, "", None),
    ],
)
def test_parse_reads_full_and_short_names(enum: type[Enum], name: str, member: Enum | None) -> None:
    assert parse(enum, name) is member
