"""Functions: devices, and what errors tell a newcomer to do."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import anydml
from anydml import (
    Device,
    DMLError,
    FeatureLevel,
    cumulative_product,
    cumulative_summation,
    join,
    quantized_linear_average_pooling,
)
from function_calls import engine, image, pool, refused


@pytest.mark.parametrize("device", ["nope", "", 5, object(), ["cpu"], np.float32])
def test_no_device(device: Any) -> None:
    for call in (
        lambda: cumulative_summation([1], device=device),
        lambda: join([[1]], device=device),
        lambda: pool(image(1, 1, 1, 1), device=device),
    ):
        refused("(D1)", call, "cpu, reference, cuda, cuda:1 or xpu")


def test_a_devices_level_holds_in_functions() -> None:
    device = Device("reference", FeatureLevel.LEVEL_3_0)
    refused("(S1)", lambda: cumulative_product(np.ones((1, 1, 1, 1), np.float32), device=device), "3.1 or higher")
    refused("(S2)", lambda: join([np.ones((2, 2), np.float32)], device=device), "4 or 5")


@engine
def test_results_do_not_alias_each_other(engine: str) -> None:
    x = np.ones(4, np.int32)
    first = cumulative_summation(x, device=engine)
    second = cumulative_summation(first, device=engine)
    np.testing.assert_array_equal(first, [1, 2, 3, 4])
    np.testing.assert_array_equal(second, [1, 3, 6, 10])


def test_the_functions_are_public() -> None:
    for function in (cumulative_summation, cumulative_product, join, quantized_linear_average_pooling):
        assert getattr(anydml, function.__name__) is function
        assert function.__name__ in anydml.__all__


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn"])
def test_floats_of_ml_dtypes_come_with_a_remedy(name: str) -> None:
    x = np.ones(3, getattr(pytest.importorskip("ml_dtypes"), name))
    for call in (lambda: cumulative_summation(x), lambda: anydml.relu(x)):
        refused("(S3)", call, name, "Convert it to float32, as .astype(np.float32) does")


@pytest.mark.parametrize("dtype", ["UINT8", "uint8", np.uint8, anydml.TensorDataType.UINT8])
def test_a_data_type_may_be_its_name(dtype: Any) -> None:
    assert anydml.cast([1.0, 2.0], dtype).dtype == np.uint8
    assert anydml.fill_value_constant(2, 1, dtype).dtype == np.uint8
    assert pool(image(1, 1, 2, 2), output_dtype=dtype).dtype == np.uint8


@pytest.mark.parametrize("dtype", ["UNKNOWN", "UINT4", "Uint8", "bfloat16", ""])
def test_other_names_are_no_data_types(dtype: str) -> None:
    refused("(S3)", lambda: anydml.cast([1.0, 2.0], dtype), "dtype: found ", "a data type, such as np.float32")


@pytest.mark.parametrize("flag", [2, "yes", None, np.zeros(2), 0.5])
@pytest.mark.parametrize("name", ["exclusive", "reverse"])
def test_a_flag_is_true_or_false(name: str, flag: Any) -> None:
    with pytest.raises(DMLError, match=rf"{name}: .*\(A11\)"):
        anydml.cumulative_summation(np.ones(3, np.float32), **{name: flag})


def test_a_number_too_large_for_float32_is_named() -> None:
    with pytest.raises(DMLError, match=r"1e\+300 is too large for float32"):
        anydml.cumulative_summation([1.0, 1e300])


@pytest.mark.parametrize("x", [[2**63, 1], [-1, 2**63], [[1, 2], [-3, 2**64 - 1]]])
def test_integers_that_numpy_would_round_are_refused(x: list[Any]) -> None:
    with pytest.raises(DMLError, match=r"integers that no data type holds together.*\(A1\)"):
        anydml.cumulative_summation(x)


NO_ROOM = """
import resource
import numpy as np
import anydml

x = np.ones(1 << 24, np.float32)
anydml.{call}
with open("/proc/self/statm") as pages:
    used = int(pages.read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (32 << 20),) * 2)
try:
    anydml.{call}
except anydml.DMLMemoryError as error:
    assert error.violations[0].rule == "(A4)", error
    assert isinstance(error, MemoryError)
else:
    raise AssertionError("there was room")
"""


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs Linux, which tells what a process uses")
@pytest.mark.parametrize("call", ["cumulative_summation(x)", "join([x, x])"])
def test_no_room_for_a_result_the_second_time(call: str) -> None:
    """A call like the one before takes a shorter way, which says the same."""
    command = [sys.executable, "-c", NO_ROOM.format(call=call)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]


class Odd:
    """An object whose words mean something else."""

    shape = 5
    dtype = "odd"


@pytest.mark.parametrize("odd", [np.float32, np, Odd(), type, ...], ids=["class", "module", "object", "type", "..."])
def test_anything_odd_is_a_named_error(odd: Any) -> None:
    """Classes have NumPy's words for arrays, too."""
    x = np.ones((1, 1, 2, 2), np.float32)
    right = {"output_scale": 1.0, "window_size": 1}
    calls: list[Callable[[], Any]] = [
        lambda: anydml.cumulative_summation(odd),
        lambda: anydml.cumulative_summation(x, axis=odd),
        lambda: anydml.cumulative_summation(x, exclusive=odd),
        lambda: anydml.cumulative_summation(x, out=odd),
        lambda: anydml.cumulative_summation(x, device=odd),
        lambda: anydml.join(odd),
        lambda: anydml.join([x, odd]),
        lambda: anydml.quantized_linear_average_pooling(x.astype(np.uint8), odd, **right),
        lambda: anydml.quantized_linear_average_pooling(x.astype(np.uint8), 1.0, **{**right, "window_size": odd}),
        lambda: anydml.Device(odd),
        lambda: anydml.Device(feature_level=odd),
        lambda: anydml.Device(strict=odd),
        lambda: anydml.Device().create_operator(odd),
        lambda: anydml.Device().compile_operator(odd),
        lambda: anydml.Device().check_feature_support(anydml.Feature.FEATURE_LEVELS, odd),
        lambda: anydml.validate(odd, strict=odd),
    ]
    for call in calls:
        with pytest.raises(DMLError):
            call()
    tensor = anydml.DML_BUFFER_TENSOR_DESC(DataType=odd, Sizes=odd, Strides=odd)
    desc = anydml.DML_CUMULATIVE_SUMMATION_OPERATOR_DESC(
        InputTensor=tensor, OutputTensor=odd, Axis=odd, AxisDirection=odd
    )
    assert {violation.rule for violation in anydml.validate(desc)} >= {"(F1)", "(F2)", "(F4)", "(T1)", "(T2)"}


def test_remedies_that_newcomers_need() -> None:
    x = np.ones((2, 3), np.float32)
    with pytest.raises(DMLError, match=r"Convert it to float32, as \.astype\(np\.float32\) does"):
        anydml.join([x, x.astype(np.int32)])
    with pytest.raises(DMLError, match=r"x\[np\.newaxis, np\.newaxis\] adds them"):
        anydml.quantized_linear_average_pooling(np.ones((2, 3), np.uint8), 1.0, output_scale=1.0, window_size=())
    with pytest.raises(DMLError, match=r"Write FeatureLevel\.LEVEL_2_1, or '2\.1'"):
        anydml.Device(feature_level=2.1)  # type: ignore[arg-type]
    with pytest.raises(DMLError, match="cuda is a GPU of NVIDIA or AMD"):
        anydml.Device("gpu")
    with pytest.raises(DMLError, match="found str 'yes', expected True or False"):
        anydml.Device(debug="yes")  # type: ignore[arg-type]


MISSING = [
    ("average_pooling", 1, ["window_size"]),
    ("average_pooling_grad", 1, ["output_sizes", "window_size"]),
    ("fold", 1, ["output_sizes", "window_sizes"]),
    ("lp_pooling", 1, ["window_size"]),
    ("max_pooling", 1, ["window_size"]),
    ("max_pooling_grad", 2, ["window_size"]),
    ("max_unpooling", 2, ["output_sizes"]),
    ("multihead_attention", 1, ["head_count"]),
    ("one_hot", 1, ["depth"]),
    ("roi_pooling", 2, ["pooled_size"]),
    ("tile", 1, ["repeats"]),
    ("top_k", 1, ["k"]),
]


@pytest.mark.parametrize(("name", "operands", "missing"), MISSING)
def test_arguments_that_are_missing_are_named(name: str, operands: int, missing: list[str]) -> None:
    """Of the functions that look for other libraries' words first; of others Python says it."""
    function, x = getattr(anydml, name), np.ones((1, 1, 2, 2), np.float32)
    expected = f"{missing[0]}: found nothing, expected {' and '.join(missing)}, which {name}() has no default for"
    assert isinstance(refused("(A15)", lambda: function(*[x] * operands), expected), TypeError)
    refused("(A15)", lambda: function(*[x] * operands, nonsense=1), "nonsense: found an argument that is unknown")


def test_a_window_that_is_missing_is_named() -> None:
    refused(
        "(A15)",
        lambda: quantized_linear_average_pooling(image(1, 1, 2, 2), 1.0, output_scale=1.0),
        "window_size: found nothing",
    )


@pytest.mark.parametrize("window", [2, [2], (2, 2)])
def test_an_array_without_spatial_dimensions_is_named_before_its_windows(window: Any) -> None:
    refused("(S2)", lambda: anydml.unfold(np.ones((2, 3), np.float32), window), "x.ndim: found 2, expected 3, 4")


def test_two_types_become_one() -> None:
    floats, integers = np.ones(3, np.float32), np.ones(3, np.int32)
    refused("(C1)", lambda: anydml.add(floats, integers), "Convert it to float32, as .astype(np.float32) does")
    assert "Convert" not in str(refused("(C1)", lambda: anydml.add(integers, floats), "b.dtype: found float32"))


@pytest.mark.parametrize("call", [lambda x: anydml.where(x, x, x), lambda x: anydml.logical_not(x)])
def test_numbers_become_truth_values(call: Callable[[np.ndarray], Any]) -> None:
    refused("(S3)", lambda: call(np.ones(3, np.float32)), "!= 0 does: truth values are taken")
