"""quantized_linear_average_pooling: scales, zero points, output sizes and options."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import anydml
from anydml import Device, DMLError, cumulative_summation, quantized_linear_average_pooling
from function_calls import TRUTHS, engine, image, pool, refused
from harness import assert_same


@engine
def test_scalars_and_vectors_for_channels(engine: str) -> None:
    x = np.full((2, 3, 2, 2), 20, np.uint8)
    column = (1, 3, 1, 1)
    expected = np.broadcast_to(np.array([10, 11, 17], np.uint8).reshape(column), x.shape)
    for make in (list, tuple, np.array, lambda v: np.array(v).reshape(1, 3, 1, 1)):
        result = quantized_linear_average_pooling(
            x,
            make([1.0, 2.0, 3.0]),
            np.asarray(make([10, 5, 0])).astype(np.uint8),
            output_scale=make([1, 3, 4]),
            output_zero_point=[0, 1, 2],
            window_size=1,
            device=engine,
        )
        assert_same(result, expected)


@pytest.mark.parametrize(
    "zero_point", [3, np.uint8(3), np.array(3, np.uint8), [3], [3, 3], np.uint8([3, 3]), np.uint8([[[[3]], [[3]]]])]
)
def test_zero_points_typed_and_not(zero_point: Any) -> None:
    x = np.full((1, 2, 1, 1), 10, np.uint8)
    np.testing.assert_array_equal(pool(x, input_zero_point=zero_point), np.full(x.shape, 7))
    np.testing.assert_array_equal(pool(x, output_zero_point=zero_point), np.full(x.shape, 13))


@pytest.mark.parametrize("zero_point", [np.int8(3), np.uint32(3), np.uint8([3]).astype(np.int16)])
def test_a_typed_zero_point_has_the_tensors_type(zero_point: Any) -> None:
    refused(
        "(A9)", lambda: pool(image(1, 1, 2, 2), input_zero_point=zero_point), "input_zero_point", "uint8, the type of"
    )
    refused(
        "(A9)",
        lambda: pool(image(1, 1, 2, 2), output_zero_point=zero_point, output_dtype=np.uint8),
        "output_zero_point",
        "uint8, the type of",
    )


@pytest.mark.parametrize(
    ("dtype", "zero_point"),
    [(np.uint8, -1), (np.uint8, 256), (np.int8, 128), (np.int8, -129), (np.uint8, [0, 256]), (np.int8, 2**62)],
)
def test_a_zero_point_fits_its_type(dtype: Any, zero_point: Any) -> None:
    x, limits = np.ones((1, 2, 2, 2), dtype), np.iinfo(dtype)
    for name in ("input_zero_point", "output_zero_point"):
        refused("(A9)", lambda: pool(x, **{name: zero_point}), name, f"{limits.min} to {limits.max}")  # noqa: B023


@pytest.mark.parametrize("zero_point", [2**70, -(2**70), [1.5], 1.0, "3", [None], 1j, [True]])
def test_a_zero_point_is_an_integer(zero_point: Any) -> None:
    with pytest.raises(DMLError, match="input_zero_point"):
        pool(image(1, 1, 2, 2), input_zero_point=zero_point)
    with pytest.raises(DMLError, match="output_zero_point"):
        pool(image(1, 1, 2, 2), output_zero_point=zero_point)


@pytest.mark.parametrize(
    "value", [[1], [1, 1, 1], [], [[1, 1]], np.ones((2, 1)), np.ones((1, 2, 1)), np.ones((2, 1, 1, 1))]
)
def test_one_value_or_one_for_each_channel(value: Any) -> None:
    x = image(1, 2, 2, 2)
    if np.shape(value) in ((1,), (1, 2)) and np.size(value) == 1:
        pool(x, value)
        return
    for name in ("input_scale", "output_scale"):
        call = {"input_scale": value} if name == "input_scale" else {"output_scale": value}
        refused("(A9)", lambda: pool(x, **call), name, f"shape {np.shape(value)}", "2 of them")  # noqa: B023


@pytest.mark.parametrize("scale", ["1", None, 1j, [None], True, [True], object()])
def test_a_scale_is_a_number(scale: Any) -> None:
    with pytest.raises(DMLError, match="input_scale") as raised:
        pool(image(1, 1, 2, 2), scale)
    assert isinstance(raised.value, TypeError)


@pytest.mark.parametrize("scale", [[[1], [1, 2]], 10**5000], ids=["ragged", "huge"])
def test_a_scale_that_numpy_cannot_read(scale: Any) -> None:
    with pytest.raises(DMLError, match="input_scale"):
        pool(image(1, 1, 2, 2), scale)


@engine
@pytest.mark.parametrize("scale", [0, 0.0, -1, np.nan, np.inf, -np.inf, 1e-50, 1e39, [1, 0], [np.nan, 1]])
@pytest.mark.parametrize("name", ["input_scale", "output_scale"])
def test_scales_that_are_none_are_refused_and_nothing_written(engine: str, scale: Any, name: str) -> None:
    out = np.full((1, 2, 2, 2), 0xA5, np.uint8)
    refused("(V1)", lambda: pool(image(1, 2, 2, 2), **{name: scale}, out=out, device=engine), "finite scale")
    assert (out == 0xA5).all()


def test_the_output_type_is_outs_then_the_zero_points_then_xs() -> None:
    x = image(1, 1, 2, 2)
    assert pool(x).dtype == np.uint8
    assert pool(x, output_zero_point=3).dtype == np.uint8
    assert pool(x, output_zero_point=np.int8(3)).dtype == np.int8
    assert pool(x, output_zero_point=np.int8([3])).dtype == np.int8
    assert pool(x, out=np.zeros(x.shape, np.int8)).dtype == np.int8
    assert pool(x, output_dtype=np.int8).dtype == np.int8
    assert pool(x, output_dtype="int8", output_zero_point=-3).dtype == np.int8
    refused("(A9)", lambda: pool(x, output_dtype=np.int8, output_zero_point=np.uint8(3)))
    refused("(A9)", lambda: pool(x, out=np.zeros(x.shape, np.int8), output_zero_point=np.uint8(3)))
    refused("(A4)", lambda: pool(x, output_dtype=np.uint8, out=np.zeros(x.shape, np.int8)))


@pytest.mark.parametrize("dtype", ["nope", 5, object(), {}, [("a", "i1")], "int32", np.float32, ">i2", "O"])
def test_other_output_types_are_refused(dtype: Any) -> None:
    refused(
        "(S3)",
        lambda: pool(image(1, 1, 2, 2), output_dtype=dtype),
        "int8 or uint8",
    )


@pytest.mark.parametrize("dtype", ["f4,(", "i4,,", "3i1"])
def test_output_types_that_numpy_stumbles_over(dtype: str) -> None:
    refused("(S3)", lambda: pool(image(1, 1, 2, 2), output_dtype=dtype))


@engine
def test_output_sizes_rounded_up(engine: str) -> None:
    x = np.array([10, 20, 30, 40, 50], np.uint8).reshape(1, 1, 1, 5)
    options: dict[str, Any] = {"window_size": (1, 2), "strides": (1, 2), "device": engine}
    np.testing.assert_array_equal(pool(x, **options).ravel(), [15, 35])
    np.testing.assert_array_equal(pool(x, **options, output_sizes=(1, 2)).ravel(), [15, 35])
    np.testing.assert_array_equal(pool(x, **options, output_sizes=(1, 3)).ravel(), [15, 35, 50])
    np.testing.assert_array_equal(pool(x, **options, out=np.zeros((1, 1, 1, 3), np.uint8)).ravel(), [15, 35, 50])
    for sizes in ((1, 4), (1, 1), (2, 2), (1, 0)):
        with pytest.raises(DMLError, match=r"out\.shape|output_sizes"):
            pool(x, **options, output_sizes=sizes)
    strict = Device(engine, strict=True)
    refused("(C8)", lambda: pool(x, **{**options, "device": strict}, output_sizes=(1, 3)), "strict")


@pytest.mark.parametrize("sizes", [(1,), (1, 2, 3), (1.0, 2.0), "12"])
def test_output_sizes_are_one_for_each_dimension(sizes: Any) -> None:
    refused("(A10)", lambda: pool(image(1, 1, 2, 3), output_sizes=sizes), "output_sizes")


def test_negative_output_sizes() -> None:
    with pytest.raises(ValueError, match=r"\(A10\)"):
        pool(image(1, 1, 2, 3), output_sizes=(-1, 3))


def test_an_out_of_other_dimensions_is_told_the_right_shape() -> None:
    refused("(A4)", lambda: pool(image(1, 1, 2, 3), out=np.zeros(6, np.uint8)), "of shape (1, 1, 2, 3)")


@engine
@pytest.mark.parametrize("one", [2, np.int64(2), np.array(2), [2, 2], (2, 2), np.array([2, 2]), [np.uint8(2), 2]])
def test_options_are_a_number_or_one_for_each_dimension(engine: str, one: Any) -> None:
    x = image(1, 1, 5, 5)
    pooled = pool(x, window_size=one, strides=one, device=engine)
    np.testing.assert_array_equal(pooled, [[[[3, 5], [13, 15]]]])
    assert pool(x, window_size=one, dilations=one, start_padding=one, end_padding=one).shape == (1, 1, 7, 7)


@pytest.mark.parametrize("name", ["window_size", "strides", "start_padding", "end_padding", "dilations"])
@pytest.mark.parametrize("value", [[1], [1, 1, 1], 1.0, "11", [1.0, 1], {}, [[1, 1]], *TRUTHS, [1, True]])
def test_other_options_are_refused(name: str, value: Any) -> None:
    refused("(A10)", lambda: pool(image(1, 1, 5, 5), **{name: value}), name, "an integer, or 2 of them")


@pytest.mark.parametrize("truth", TRUTHS)
def test_truth_values_are_no_integers(truth: Any) -> None:
    x = np.ones((1, 4), np.float32)
    for rule, call, name in (
        ("(A5)", lambda: anydml.reduce(x, anydml.ReduceFunction.SUM, axes=truth), "axes"),
        ("(A5)", lambda: anydml.reduce(x, anydml.ReduceFunction.SUM, axes=[truth]), "axes"),
        ("(A5)", lambda: anydml.gather(x, [[0]], axis=truth), "axis"),
        ("(A10)", lambda: anydml.padding(x, truth, 0), "start_padding"),
        ("(A10)", lambda: anydml.slice(x, 0, [1, truth]), "sizes"),
        ("(A10)", lambda: anydml.fill_value_constant([2, truth], 1), "shape"),
        ("(A14)", lambda: anydml.split(x, truth), "sizes"),
        ("(A14)", lambda: anydml.split(x, [truth, 3], 1), "sizes"),
    ):
        refused(rule, call, f"{name}: found ", "integer")


def test_a_tensor_of_truth_is_no_integer_either() -> None:
    truth = pytest.importorskip("torch").tensor(True)
    refused("(A5)", lambda: cumulative_summation([[1]], truth), "an integer")


def test_an_array_that_is_one_number_is_a_number() -> None:
    x = np.ones((2, 4), np.float32)
    np.testing.assert_array_equal(anydml.reduce(x, anydml.ReduceFunction.SUM, axes=np.array(1)), [[4], [4]])
    assert anydml.fill_value_constant(np.array(2), 1).shape == (2,)
    assert len(anydml.split(x, np.array(2))) == 2


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        ({"window_size": 0}, "(C5)"),
        ({"strides": 0}, "(C5)"),
        ({"dilations": 0}, "(C5)"),
        ({"window_size": -1}, "(F2)"),
        ({"start_padding": -1}, "(F2)"),
        ({"end_padding": 2**32}, "(F2)"),
        ({"window_size": 6}, "(C7)"),
        ({"window_size": 2, "dilations": 5}, "(C7)"),
    ],
)
def test_options_out_of_range(options: dict[str, Any], rule: str) -> None:
    for more in ({}, {"output_sizes": (5, 5)}):
        out = np.full((1, 1, 5, 5), 0xA5, np.uint8)
        with pytest.raises(DMLError, match=rf"\({rule[1:-1]}\)"):
            pool(image(1, 1, 5, 5), **options, **more, out=out)
        assert (out == 0xA5).all()


@pytest.mark.parametrize("shape", [(), (3,), (3, 3), (1, 3, 3), (1, 1, 1, 1, 1, 1)])
def test_an_image_has_4_or_5_dimensions(shape: tuple[int, ...]) -> None:
    with pytest.raises(DMLError, match=r"\(S2\)|\(T2\)"):
        pool(np.ones(shape, np.uint8))


@engine
def test_end_padding_does_not_follow_start_padding(engine: str) -> None:
    x = np.array([4, 8], np.uint8).reshape(1, 1, 1, 2)
    result = pool(x, window_size=(1, 2), start_padding=(0, 1), device=engine)
    np.testing.assert_array_equal(result.ravel(), [4, 6])
