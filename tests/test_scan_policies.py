"""The policies of native scans: each one is chosen for the layouts that it is meant for, says why those before it
declined, and gives exact results."""

from __future__ import annotations

import re
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from anydml import (
    DML_CUMULATIVE_PRODUCT_OPERATOR_DESC,
    DML_CUMULATIVE_SUMMATION_OPERATOR_DESC,
    AxisDirection,
    _native,
)
from cases import tensor
from harness import compiled, run

POLICY = Path(__file__).parent.parent / "src" / "native" / "scan" / "policy.h"
README = POLICY.parent / "README.md"
NAMES = re.findall(r'\{ScanAlgorithm::k\w+, "([\w ]+)"', POLICY.read_text())
DTYPES = {"FLOAT32": np.float32, "FLOAT16": np.float16, "INT32": np.int32, "UINT64": np.uint64}
ALL = tuple(DTYPES)
FLOATS = ALL[:2]
INTEGERS = ALL[2:]

Strides = tuple[int, ...] | None
CASES: list[tuple[str, tuple[int, ...], int, Strides, Strides, tuple[str, ...]]] = [
    # policy, sizes, axis, strides of the input and of the output (None where packed), data types
    ("transposed rows", (40, 70), 1, (1, 40), None, ALL),
    ("transposed rows", (13, 1100), 1, (1, 13), None, ALL),
    ("short rows", (50, 15), 1, None, None, ALL),
    ("short rows", (7, 5), 1, (10, 2), None, ALL),
    ("vector rows", (9, 16), 1, None, None, ALL),
    ("vector rows", (3, 1024), 1, (1030, 1), (1027, 1), ALL),
    ("chained rows", (1, 8193), 1, None, None, ALL),
    ("chained rows", (5, 40_001), 1, None, None, ALL),
    ("chained rows", (1, 20_001), 1, (40_002, 2), None, ALL),
    ("blocked rows", (3, 1025), 1, None, None, ALL),
    ("blocked rows", (2, 5000), 1, (10_000, 2), None, ALL),
    ("packed columns", (5, 301, 3), 1, None, None, FLOATS),
    ("packed columns", (1, 30_001, 2), 1, None, None, FLOATS),
    ("narrow columns", (5, 301, 3), 1, None, None, INTEGERS),
    ("narrow columns", (5, 301, 3), 1, (1204, 4, 1), (1505, 5, 1), ALL),
    ("narrow columns", (2, 300, 3), 1, (1, 6, 2), None, ALL),
    ("register columns", (3, 77, 8), 1, None, None, ALL),
    ("register columns", (3, 77, 31), 1, None, None, ALL),
    ("register columns", (1, 9001, 31), 1, None, None, ALL),
    ("register columns", (60, 20), 0, (1, 60), None, ALL),
    ("column strip", (40, 100), 0, None, None, ALL),
    ("column strip", (3000, 67), 0, (1, 3000), None, ALL),
    ("column strips", (40, 700), 0, None, None, ALL),
    ("column strips", (300, 1021), 0, (1, 300), (1030, 1), ALL),
    ("strided", (40, 70), 1, None, (210, 3), ALL),
]
"""Layouts that reach each policy: the middle of its range, and its ends."""


def desc_of(operation: str, data_type: str, case: Any, reverse: bool, exclusive: bool) -> Any:
    _, sizes, axis, in_strides, out_strides, _ = case
    members: dict[str, Any] = {
        "InputTensor": tensor(sizes, data_type, in_strides),
        "OutputTensor": tensor(sizes, data_type, out_strides),
        "Axis": axis,
        "AxisDirection": AxisDirection.DECREASING if reverse else AxisDirection.INCREASING,
    }
    if operation == "sum":
        return DML_CUMULATIVE_SUMMATION_OPERATOR_DESC(**members, HasExclusiveSum=exclusive)
    return DML_CUMULATIVE_PRODUCT_OPERATOR_DESC(**members, HasExclusiveProduct=exclusive)


def policy_of(desc: Any) -> str:
    """The name in "...: NAME, cached stores, ..."."""
    match = re.search(r"rows?: ([\w ]+), ", compiled("cpu", desc).explain())
    assert match is not None, compiled("cpu", desc).explain()
    return match[1]


def values(operation: str, dtype: type, sizes: tuple[int, ...], axis: int) -> tuple[np.ndarray, np.ndarray]:
    """Elements whose sums or products any order of combining finds exactly, and these, inclusive."""
    rng = np.random.default_rng(5)
    if operation == "product":
        x: np.ndarray = rng.choice([-1, 1] if np.dtype(dtype).kind != "u" else [1, 3], sizes).astype(dtype)
        return x, np.multiply.accumulate(x, axis, dtype=dtype)
    sums: np.ndarray = rng.integers(0, 50, sizes)
    x = np.diff(sums, axis=axis, prepend=0).astype(dtype)
    return x, sums.astype(dtype)


def test_every_policy_has_a_case_and_a_row_of_the_readme() -> None:
    assert len(NAMES) == len(set(NAMES)) >= 11
    assert list(dict.fromkeys(case[0] for case in CASES)) == NAMES
    assert re.findall(r"^\| ([a-z ]+) \|", README.read_text(), re.MULTILINE) == NAMES


@pytest.mark.parametrize("operation", ["sum", "product"])
@pytest.mark.parametrize(
    ("case", "data_type"),
    [
        pytest.param(case, data_type, id=f"{case[0]}-{'x'.join(map(str, case[1]))}-{place}-{data_type.lower()}")
        for place, case in enumerate(CASES)
        for data_type in case[5]
    ],
)
def test_the_policy_is_chosen_and_exact(operation: str, case: Any, data_type: str) -> None:
    name, sizes, axis, *_ = case
    dtype = DTYPES[data_type]
    x, expected = values(operation, dtype, sizes, axis)
    for reverse, exclusive in product((False, True), repeat=2):
        desc = desc_of(operation, data_type, case, reverse, exclusive)
        assert policy_of(desc) == name
        given, wanted = x, expected
        if exclusive:
            wanted = np.roll(expected, 1, axis)
            wanted[(slice(None),) * axis + (0,)] = dtype(operation == "product")
        if reverse:
            given, wanted = np.flip(x, axis), np.flip(wanted, axis)
        (y,) = run("cpu", desc, [given])
        assert y is not None
        np.testing.assert_array_equal(y, wanted)


def test_each_candidate_before_it_says_why_it_declined() -> None:
    for case in CASES:
        for data_type in case[5]:
            explained = compiled("cpu", desc_of("sum", data_type, case, False, False)).explain()
            declined = re.findall(r"([a-z ]+) \([^)]+\)", explained.partition("declined: ")[2])
            assert [each.strip() for each in declined] == NAMES[: NAMES.index(case[0])], explained


@pytest.mark.parametrize("instruction_set", _native.build_info()["instruction_sets"])
def test_every_instruction_set_has_the_same_policies(instruction_set: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANYDML_CPU", instruction_set)
    for case in CASES:
        assert policy_of(desc_of("sum", case[5][0], case, False, False)) == case[0]


def test_large_outputs_are_stored_past_the_caches() -> None:
    """From 16 MiB on; the instruction set of old x86 processors has cached stores alone."""
    small, large = (("vector rows", (rows, 1024), 1, None, None, ALL) for rows in (4095, 4096))
    chosen = _native.build_info()["instruction_sets"][0]
    stores = "cached" if chosen == "baseline" and "avx2" in _native.build_info()["instruction_sets"] else "non-temporal"
    assert "cached stores" in compiled("cpu", desc_of("sum", "FLOAT32", small, False, False)).explain()
    assert f"{stores} stores" in compiled("cpu", desc_of("sum", "FLOAT32", large, False, False)).explain()


def test_the_explanation_says_when_threads_share_the_work() -> None:
    small, large = (("vector rows", (rows, 1024), 1, None, None, ALL) for rows in (63, 64))
    assert "one thread, below 512 KiB" in compiled("cpu", desc_of("sum", "FLOAT32", small, False, False)).explain()
    assert ", parallel" in compiled("cpu", desc_of("sum", "FLOAT32", large, False, False)).explain()
