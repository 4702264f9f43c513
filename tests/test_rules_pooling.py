"""QUANTIZED_LINEAR_AVERAGE_POOLING: the shapes and values of scales and zero points, and output sizes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest

from anydml import Device, DMLValueError, validate
from anydml.operators.schema import OperatorDesc
from cases import tensor
from cases.pooling import pooling
from harness import ENGINES, compiled

QUANTISATION = ("InputScaleTensor", "InputZeroPointTensor", "OutputScaleTensor", "OutputZeroPointTensor")
SHAPES = {
    4: {
        (1,): True,
        (1, 1): True,
        (1, 1, 1): True,
        (1, 1, 1, 1): True,
        (1, 3, 1, 1): True,
        (3, 1, 1): True,
        (3,): False,
        (1, 3): False,
        (3, 1): False,
        (1, 3, 1): False,
        (2, 1, 1): False,
        (1, 2, 1, 1): False,
        (3, 1, 1, 1): False,
        (1, 1, 3, 1): False,
        (1, 1, 1, 3): False,
        (1, 3, 1, 2): False,
        (1, 3, 1, 1, 1): False,
    },
    5: {
        (1,): True,
        (1, 1): True,
        (1, 1, 1): True,
        (1, 1, 1, 1): True,
        (1, 1, 1, 1, 1): True,
        (1, 3, 1, 1): True,
        (1, 3, 1, 1, 1): True,
        (3, 1, 1, 1): True,
        (3,): False,
        (3, 1, 1): False,
        (1, 2, 1, 1): False,
        (1, 1, 3, 1): False,
        (1, 1, 3, 1, 1): False,
        (3, 1, 1, 1, 1): False,
        (1, 1, 1, 3): False,
    },
}


def pooling_of_rank(rank: int, **shapes: Sequence[int]) -> OperatorDesc:
    """Three channels, a window of one element."""
    spatial = rank - 2
    sizes = (2, 3, *(2,) * spatial)
    quantisation = {
        name: tensor(shapes.get(name, (1,) * rank), "FLOAT32" if "Scale" in name else "UINT8") for name in QUANTISATION
    }
    return pooling(
        InputTensor=tensor(sizes, "UINT8"),
        OutputTensor=tensor(sizes, "UINT8"),
        **quantisation,
        **dict.fromkeys(("Strides", "WindowSize", "Dilations"), (1,) * spatial),
        **dict.fromkeys(("StartPadding", "EndPadding"), (0,) * spatial),
    )


@pytest.mark.parametrize("name", QUANTISATION)
@pytest.mark.parametrize(("rank", "shape"), [(rank, shape) for rank, shapes in SHAPES.items() for shape in shapes])
def test_quantisation_shapes(rank: int, shape: tuple[int, ...], name: str) -> None:
    violations = validate(pooling_of_rank(rank, **{name: shape}))
    if SHAPES[rank][shape]:
        assert violations == []
    else:
        (violation,) = violations
        assert (violation.rule, violation.where) == ("(C6)", f"{name}.Sizes")
        assert "{1, 3, 1, 1}" in violation.remedy


def test_the_batch_is_never_taken_for_the_channels() -> None:
    shape = (2, 1, 1)
    assert [v.rule for v in validate(pooling_of_rank(4, InputScaleTensor=shape))] == ["(C6)"]


@pytest.mark.parametrize("rank", [4, 5])
def test_each_quantisation_tensor_is_per_tensor_or_per_channel_for_itself(rank: int) -> None:
    for shapes in product([(1, 1, 1, 1), (1, 3, 1, 1)], repeat=4):
        assert validate(pooling_of_rank(rank, **dict(zip(QUANTISATION, shapes, strict=True)))) == []


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("rank", "shape"), [(4, (1, 3, 1, 1)), (4, (3, 1, 1)), (5, (1, 3, 1, 1)), (5, (1, 3, 1, 1, 1)), (5, (3, 1, 1, 1))]
)
def test_per_channel_means_the_channels(engine: str, rank: int, shape: tuple[int, ...]) -> None:
    desc = pooling_of_rank(rank, **dict.fromkeys(QUANTISATION, shape))
    x = np.full(desc.InputTensor.Sizes, 20, np.uint8)
    scale_in, zero_in = np.array([1, 2, 3], np.float32), np.array([10, 5, 0], np.uint8)
    scale_out, zero_out = np.array([1, 3, 4], np.float32), np.array([0, 1, 2], np.uint8)
    y = np.zeros(x.shape, np.uint8)
    compiled(engine, desc).dispatch([x, scale_in, zero_in, scale_out, zero_out], [y])
    # (20 - 10) * 1 / 1 + 0, (20 - 5) * 2 / 3 + 1, (20 - 0) * 3 / 4 + 2
    np.testing.assert_array_equal(y, np.broadcast_to(np.array([10, 11, 17]).reshape(3, *(1,) * (rank - 2)), y.shape))


# Pooling: output sizes, and strict devices


def strided(size: int, **members: Any) -> OperatorDesc:
    """Five elements, a window of two, steps of two: one and a half places after the first."""
    return pooling(
        InputTensor=tensor((1, 1, 1, 5), "UINT8"),
        InputZeroPointTensor=None,
        OutputTensor=tensor((1, 1, 1, size), "UINT8"),
        **{"Strides": (1, 2), "WindowSize": (1, 2), **members},
    )


@pytest.mark.parametrize(
    ("size", "strict", "right"),
    [(1, False, False), (2, False, True), (3, False, True), (4, False, False), (2, True, True), (3, True, False)],
)
def test_output_sizes_are_rounded_down_or_up_but_up_on_no_strict_device(size: int, strict: bool, right: bool) -> None:
    violations = validate(strided(size), strict=strict)
    assert (violations == []) == right
    for violation in violations:
        assert violation.rule == "(C8)"
        assert "2 or 3" in violation.expected


def test_a_strict_device_says_that_it_is_strict() -> None:
    (violation,) = validate(strided(3), strict=True)
    assert "strict" in violation.expected
    with pytest.raises(DMLValueError, match=r"\(C8\)"):
        Device("reference", strict=True).create_operator(strided(3))
    Device("reference").create_operator(strided(3))


def test_output_sizes_that_divide_have_one_value() -> None:
    (violation,) = validate(strided(5, Strides=(1, 1)))
    assert (violation.rule, violation.expected) == ("(C8)", "4")


@pytest.mark.parametrize(
    ("members", "size"),
    [
        ({"Dilations": (1, 4), "Strides": (1, 1)}, 1),
        ({"Dilations": (1, 3), "Strides": (1, 1)}, 2),
        ({"Dilations": (1, 3), "Strides": (1, 1), "EndPadding": (0, 4)}, 6),
        ({"StartPadding": (0, 1), "EndPadding": (0, 2)}, 4),
    ],
)
def test_dilation_and_padding_in_output_sizes(members: dict[str, Any], size: int) -> None:
    assert validate(strided(size, **members), strict=True) == []
    assert validate(strided(size - 1 or 9, **members)) != []


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("scale", [0.0, -0.0, -1.0, np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("which", [1, 3])
def test_a_scale_that_is_no_scale_is_refused_and_nothing_written(engine: str, scale: float, which: int) -> None:
    desc = pooling(InputScaleTensor=tensor((1, 3, 1, 1)), OutputScaleTensor=tensor((1, 3, 1, 1)))
    inputs = [
        np.ones((1, 3, 4, 5), np.uint8),
        np.ones((1, 3, 1, 1), np.float32),
        np.zeros((1, 3, 1, 1), np.uint8),
        np.ones((1, 3, 1, 1), np.float32),
        np.zeros((1, 1, 1, 1), np.uint8),
    ]
    inputs[which][0, 2] = scale
    output = np.full((1, 3, 3, 4), 0xA5, np.uint8)
    with pytest.raises(DMLValueError, match=r"\(V1\)") as raised:
        compiled(engine, desc).dispatch(inputs, [output])
    (violation,) = raised.value.violations
    assert violation.where == ("InputScaleTensor" if which == 1 else "OutputScaleTensor")
    assert f"{scale}" in violation.found
    assert "channel 2" in violation.found
    assert (output == 0xA5).all()


def test_both_scales_are_named_at_once() -> None:
    inputs = [
        np.ones((1, 3, 4, 5), np.uint8),
        np.zeros(1, np.float32),
        np.zeros(3, np.uint8),
        np.zeros(1, np.float32),
        np.zeros(1, np.uint8),
    ]
    with pytest.raises(DMLValueError, match="2 violations"):
        compiled("reference", pooling()).dispatch(inputs, [np.zeros((1, 3, 3, 4), np.uint8)])


def test_the_smallest_scale_is_a_scale() -> None:
    inputs = [
        np.ones((1, 3, 4, 5), np.uint8),
        np.float32([1e-45]),
        np.zeros(3, np.uint8),
        np.float32([1e-45]),
        np.zeros(1, np.uint8),
    ]
    output = np.zeros((1, 3, 3, 4), np.uint8)
    compiled("reference", pooling()).dispatch(inputs, [output])
    assert (output == 1).all()
