"""Numbers that 64 bits, Python's own limits or strict devices do not hold, and sizes in bytes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from anydml import DML_JOIN_OPERATOR_DESC, Device, DMLError, FeatureLevel, HResult, validate
from anydml.operators.schema import OperatorDesc
from cases import GOOD, bad, tensor
from cases.cumulative import summation
from cases.join import join
from cases.pooling import pooling
from harness import ENGINES, compiled


def test_the_largest_span_is_just_below_63_bits() -> None:
    for stride, rules in ((2**61 - 2, []), (2**61 - 1, ["(T5)"]), (2**61, ["(T5)"])):
        desc = summation(InputTensor=bad(Sizes=(2,), Strides=(stride,)), OutputTensor=tensor((2,)), Axis=0)
        assert [violation.rule for violation in validate(desc)] == rules


DIGITS = 10**5000
"""More digits than Python prints."""


@pytest.mark.parametrize(
    "desc",
    [
        lambda: summation(InputTensor=bad(Sizes=(2**62, 2**62))),
        lambda: summation(InputTensor=bad(Sizes=(2**64, 3), Strides=(0, 1))),
        lambda: summation(InputTensor=bad(Strides=(2**62, 2**62))),
        lambda: summation(InputTensor=bad(Strides=(2**400, 1))),
        lambda: summation(InputTensor=bad(Sizes=(10**4000, 3))),
        lambda: summation(InputTensor=bad(TotalTensorSizeInBytes=2**80)),
        lambda: summation(InputTensor=bad(GuaranteedBaseOffsetAlignment=2**80)),
        lambda: summation(Axis=2**80),
        lambda: pooling(StartPadding=(2**80, 0)),
    ],
)
def test_huge_numbers_are_refused(desc: Callable[[], OperatorDesc]) -> None:
    with pytest.raises(DMLError):
        Device("reference").create_operator(desc())


@pytest.mark.parametrize(
    "desc",
    [
        lambda: summation(InputTensor=bad(Sizes=(DIGITS, 3))),
        lambda: summation(InputTensor=bad(Strides=(DIGITS, 1))),
        lambda: summation(InputTensor=bad(TotalTensorSizeInBytes=DIGITS)),
        lambda: summation(Axis=DIGITS),
        lambda: pooling(WindowSize=(DIGITS, 1)),
        # Sizes that Python multiplies as it repeats a string or a tuple
        lambda: summation(InputTensor=bad(Sizes=(2**62, "a"))),
        lambda: summation(InputTensor=bad(Sizes=(2**62, (1, 2)))),
    ],
)
def test_absurd_numbers_are_refused(desc: Callable[[], OperatorDesc]) -> None:
    with pytest.raises(DMLError):
        Device("reference").create_operator(desc())


def test_a_list_that_holds_itself_is_refused() -> None:
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(DMLError, match="Sizes"):
        Device("reference").create_operator(summation(InputTensor=bad(Sizes=endless)))


def test_no_dimensions_on_a_strict_device() -> None:
    assert "(T2)" in {v.rule for v in validate(summation(InputTensor=bad(Sizes=())), strict=True)}


@pytest.mark.parametrize("stride", [2**61, 2**62, 2**70])
def test_a_huge_stride_of_a_size_of_1_is_refused_or_served(stride: int) -> None:
    """It moves no element, but has to survive the way to a kernel."""
    x = np.ones(4, np.float32)
    desc = summation(InputTensor=bad(Sizes=(1, 4), Strides=(stride, 1)), OutputTensor=tensor((1, 4)))
    for engine in ENGINES:
        y = np.zeros(4, np.float32)
        if not validate(desc):
            compiled(engine, desc).dispatch([x], [y])
            np.testing.assert_array_equal(y, [1, 2, 3, 4])


@pytest.mark.parametrize("level", ["6.5", None, 7, 0x6500, [FeatureLevel.LEVEL_6_4]])
def test_a_level_that_is_none_is_refused(level: Any) -> None:
    with pytest.raises(DMLError, match=r"feature_level: .* FeatureLevel.LEVEL_6_4 \(F7\)") as raised:
        validate(summation(), level)
    assert raised.value.hresult == HResult.DXGI_ERROR_UNSUPPORTED


def test_a_level_by_its_value() -> None:
    level: Any = 0x2100
    assert validate(summation(), level) == validate(summation(), FeatureLevel.LEVEL_2_1) != []


# TotalTensorSizeInBytes


@pytest.mark.parametrize(
    ("data_type", "sizes", "strides", "total"),
    [
        ("FLOAT32", (1,), None, 4),
        ("FLOAT32", (1, 1, 3, 4), None, 48),
        ("FLOAT64", (3,), None, 24),
        ("FLOAT16", (3,), None, 8),
        ("UINT8", (1,), None, 4),
        ("UINT8", (5,), None, 8),
        ("INT16", (2, 3), None, 12),
        ("INT16", (3, 3), None, 20),
        # 1 + the last index times the stride, for each dimension
        ("FLOAT32", (2, 3), (3, 1), 24),
        ("FLOAT32", (2, 3), (1, 2), 24),
        ("FLOAT32", (2, 3), (10, 3), 68),
        ("UINT8", (2, 3), (10, 3), 20),
        ("UINT8", (2, 3), (9, 3), 16),
        ("INT8", (4,), (5,), 16),
        ("FLOAT32", (4, 4), (0, 0), 4),
        ("FLOAT32", (100, 4), (0, 1), 16),
        ("FLOAT64", (1, 1), (77, 99), 8),
        ("UINT4", (1,), None, 4),
        ("UINT4", (8,), None, 4),
        ("UINT4", (9,), None, 8),
        ("INT4", (3, 3), (4, 1), 8),
        ("INT4", (2, 2), (5, 1), 4),
        # A sum in 32 bits would wrap to a few bytes.
        ("FLOAT32", (2, 2), (2**32 - 1, 1), 17179869188),
        ("UINT8", (65536, 65536), None, 4294967296),
        ("UINT8", (2, 65537), (4294967295, 1), 4294967295 + 65537),
        ("FLOAT32", (2**20, 2**20), None, 4398046511104),
        ("FLOAT64", (2**30, 2**29), None, 4611686018427387904),
        ("FLOAT64", (2**31, 2**30), None, 18446744073709551616),
        ("UNKNOWN", (3,), None, 0),
    ],
)
def test_total_tensor_size_in_bytes(
    data_type: str, sizes: Sequence[int], strides: Sequence[int] | None, total: int
) -> None:
    assert tensor(sizes, data_type, strides).TotalTensorSizeInBytes == total


def test_a_total_that_a_32_bit_sum_would_give_is_refused() -> None:
    wrapped = bad(Sizes=(2, 2), Strides=(2**32 - 1, 1), TotalTensorSizeInBytes=16)
    (violation,) = validate(summation(InputTensor=wrapped, OutputTensor=tensor((2, 2))))
    assert violation.rule == "(T6)"
    assert "17179869188" in violation.expected


def test_a_larger_total_is_fine() -> None:
    assert validate(summation(InputTensor=bad(TotalTensorSizeInBytes=4096))) == []


def test_derived_members_can_be_given() -> None:
    given = bad(DimensionCount=2, TotalTensorSizeInBytes=24)
    assert given == GOOD
    assert validate(join(InputCount=2)) == []
    assert validate(pooling(DimensionCount=2)) == []


def test_limits_of_4_gib_hold_on_strict_devices_only() -> None:
    for large in (tensor((2**16, 2**16)), tensor((2**30 + 1,)), tensor((2, 2), "FLOAT32", (2**31, 1))):
        desc = summation(InputTensor=large, OutputTensor=large, Axis=0)
        assert validate(desc) == []
        assert {v.rule for v in validate(desc, strict=True)} == {"(T10)"}


def test_a_stride_of_more_than_32_bits_is_named_on_a_strict_device() -> None:
    far = tensor((1, 3), "FLOAT32", (2**32, 1))
    desc = summation(InputTensor=far, OutputTensor=far)
    assert validate(desc) == []
    said = [str(each).partition(": ")[2] for each in validate(desc, strict=True)]
    assert said == ["found 4294967296, expected at most 4294967295 on a strict device (T10)"] * 2
    assert [each.where for each in validate(desc, strict=True)] == ["InputTensor.Strides[0]", "OutputTensor.Strides[0]"]


def test_the_limits_themselves_are_fine_on_a_strict_device() -> None:
    most = tensor((2**32 - 1,), "UINT8")
    assert validate(DML_JOIN_OPERATOR_DESC(InputTensors=[most], OutputTensor=most, Axis=0), strict=True) == []
    four_gib = tensor((2**30,))
    assert validate(summation(InputTensor=four_gib, OutputTensor=four_gib, Axis=0), strict=True) == []
