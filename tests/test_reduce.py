"""REDUCE over random shapes, axes, strides and values, against exact arithmetic."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from itertools import product
from math import isqrt, prod
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from anydml import DML_REDUCE_OPERATOR_DESC, Device, DMLError, ReduceFunction, TensorDataType, validate
from anydml.core.strided_layout import DTYPES
from anydml.operators import spec
from cases import tensor, tensor_of
from exact import FLOATS, Float, _near
from harness import bits, run
from test_properties import shapes, strides, values

pytestmark = pytest.mark.slow

property_test = settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
INTEGERS = [dtype for dtype in DTYPES.values() if dtype.kind in "iu"]


def reduced(
    function: str, x: np.ndarray, axes: Sequence[int], output: Any = None, layout: Sequence[int] | None = None
) -> np.ndarray:
    sizes = [1 if i in axes else size for i, size in enumerate(x.shape)]
    y = np.empty(sizes, x.dtype if output is None else output)
    desc = DML_REDUCE_OPERATOR_DESC(
        Function=ReduceFunction[function], InputTensor=tensor_of(x, layout), OutputTensor=tensor_of(y), Axes=axes
    )
    (result,) = run("reference", desc, [x])
    assert result is not None
    return result


def rows(x: np.ndarray, axes: Sequence[int]) -> list[list[Any]]:
    """The elements of each output, by counting: row-major over the axes, in the order of the dimensions."""
    found = []
    for place in product(*[range(1 if i in axes else size) for i, size in enumerate(x.shape)]):
        group = [range(size) if i in axes else [place[i]] for i, size in enumerate(x.shape)]
        found.append([x[index] for index in product(*group)])
    return found


@st.composite
def reductions(draw: st.DrawFn) -> tuple[tuple[int, ...], list[int]]:
    sizes = draw(shapes())
    axes = draw(st.permutations(range(len(sizes))))[: draw(st.integers(1, len(sizes)))]
    return sizes, list(axes)


def wrapped(value: int, dtype: np.dtype[Any]) -> int:
    limits = np.iinfo(dtype)
    return (value - int(limits.min)) % 2**limits.bits + int(limits.min)


INTEGER_RESULTS: dict[str, Callable[[list[int]], int]] = {
    "L1": lambda row: sum(map(abs, row)),
    "MAX": max,
    "MIN": min,
    "MULTIPLY": prod,
    "SUM": sum,
    "SUM_SQUARE": lambda row: sum(value * value for value in row),
}


def test_integers_of_every_function_are_checked() -> None:
    _, tables = spec("REDUCE").support_by or ("", {})
    whole = {
        each.name for each, table in tables.items() if TensorDataType.INT32 in table.newest["InputTensor"].data_types
    }
    assert whole == {*INTEGER_RESULTS, "ARGMAX", "ARGMIN"}


@pytest.mark.parametrize(
    ("dtype", "function"),
    [(dtype, each) for dtype in INTEGERS for each in INTEGER_RESULTS if dtype.itemsize >= 4 or each in ("MAX", "MIN")],
    ids=str,
)
@property_test
@given(data=st.data())
def test_integers(dtype: np.dtype[Any], function: str, data: st.DataObject) -> None:
    sizes, axes = data.draw(reductions())
    x = values(dtype, sizes, data.draw(st.integers(0, 2**32 - 1)), data.draw(st.sampled_from(["ordinary", "any"])))
    y = reduced(function, x, axes, layout=data.draw(strides(sizes)))
    exact = [wrapped(INTEGER_RESULTS[function]([int(value) for value in row]), dtype) for row in rows(x, axes)]
    assert y.ravel().tolist() == exact


@pytest.mark.parametrize("dtype", [*INTEGERS, *FLOATS], ids=str)
@property_test
@given(data=st.data())
def test_indices_are_those_of_the_first_that_is_largest_or_smallest(dtype: np.dtype[Any], data: st.DataObject) -> None:
    sizes, axes = data.draw(reductions())
    kind = data.draw(st.sampled_from(["ordinary", "special"]))
    x = values(dtype, sizes, data.draw(st.integers(0, 2**32 - 1)), kind)
    x = np.floor(x) if dtype.kind == "f" else x % 4  # with ties
    layout = data.draw(strides(sizes))
    output = data.draw(st.sampled_from([np.int32, np.uint32, np.int64, np.uint64]))
    for index, end, pick in (("ARGMAX", "MAX", max), ("ARGMIN", "MIN", min)):
        found = reduced(index, x, axes, output, layout).ravel().tolist()
        ends = reduced(end, x, axes, layout=layout).ravel()
        for row, i, value in zip(rows(x, axes), found, ends, strict=True):
            numbers = [each for each in row if each == each]
            if numbers:
                assert value == pick(numbers)
                assert i == row.index(pick(numbers))
            else:
                assert np.isnan(value)
                assert i == 0


def root(x: Fraction) -> Fraction:
    """Within 2^-300 of it."""
    return Fraction(isqrt(x.numerator * 2**800 // x.denominator), 2**400)


def magnitude(row: Sequence[Fraction]) -> Fraction:
    return sum(map(abs, row), Fraction(0))


Exact = Callable[[list[Fraction]], Fraction]
# The exact result, and what a relative error of a unit for each element may come to.
FLOAT_RESULTS: dict[str, tuple[Exact, Exact]] = {
    "AVERAGE": (lambda row: sum(row, Fraction(0)) / len(row), lambda row: magnitude(row) / len(row)),
    "L1": (magnitude, magnitude),
    "L2": (lambda row: root(sum((x * x for x in row), Fraction(0))),) * 2,
    "MULTIPLY": (prod, lambda row: abs(prod(row))),
    "SUM": (lambda row: sum(row, Fraction(0)), magnitude),
    "SUM_SQUARE": (lambda row: sum((x * x for x in row), Fraction(0)),) * 2,
}


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("function", FLOAT_RESULTS)
@property_test
@given(data=st.data())
def test_floats(dtype: np.dtype[Any], function: str, data: st.DataObject) -> None:
    """Within a unit in the last place, and a rounding of the wider type for each element."""
    sizes, axes = data.draw(reductions())
    x = values(dtype, sizes, data.draw(st.integers(0, 2**32 - 1)), data.draw(st.sampled_from(["ordinary", "any"])))
    y = reduced(function, x, axes, layout=data.draw(strides(sizes)))
    result, error = FLOAT_RESULTS[function]
    for row, value in zip(rows(x, axes), y.ravel(), strict=True):
        exact = [Fraction(float(each)) for each in row]
        slack = (len(row) + 2) * FLOATS[dtype].unit * error(exact)
        assert _near(FLOATS[dtype], value, result(exact), slack), (row, value)


CONTEXT = Context(prec=150, Emax=10**15, Emin=-(10**15))


def fraction(x: Decimal) -> Fraction:
    return Fraction(x) if abs(x) > Decimal("1e-400") else Fraction(0)


def check_logarithm(float_: Float, value: Any, exact: Decimal, slack: Fraction) -> None:
    assert _near(float_, value, fraction(exact), slack + float_.ulp(value) / 2), (value, exact)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@property_test
@given(data=st.data())
def test_logarithms_of_sums(dtype: np.dtype[Any], data: st.DataObject) -> None:
    sizes, axes = data.draw(reductions())
    x = np.abs(
        values(dtype, sizes, data.draw(st.integers(0, 2**32 - 1)), data.draw(st.sampled_from(["ordinary", "any"])))
    )
    y = reduced("LOG_SUM", x, axes, layout=data.draw(strides(sizes)))
    unit = FLOATS[dtype].unit
    for row, value in zip(rows(x, axes), y.ravel(), strict=True):
        total = sum((Fraction(float(each)) for each in row), Fraction(0))
        if not total:
            assert value == -np.inf
            continue
        exact = CONTEXT.ln(CONTEXT.divide(Decimal(total.numerator), Decimal(total.denominator)))
        check_logarithm(FLOATS[dtype], value, exact, (len(row) + 2) * unit + abs(fraction(exact)) * unit)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@property_test
@given(data=st.data())
def test_logarithms_of_sums_of_exponentials(dtype: np.dtype[Any], data: st.DataObject) -> None:
    """Within a rounding of the largest element and of the rest: what is close to 0 keeps its digits beside a 0."""
    sizes, axes = data.draw(reductions())
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    scale = data.draw(st.sampled_from([1e-3, 1, 20, 80]))
    x = (rng.uniform(-1, 1, sizes) * scale).astype(dtype)
    if data.draw(st.booleans()):
        x = np.minimum(x, dtype.type(0))
    y = reduced("LOG_SUM_EXP", x, axes, layout=data.draw(strides(sizes)))
    unit = FLOATS[dtype].unit
    for row, value in zip(rows(x, axes), y.ravel(), strict=True):
        largest = Decimal(float(max(row)))
        with localcontext(CONTEXT):
            rest = sum((Decimal(float(each)) - largest).exp() for each in row) - 1
            logarithm = (1 + rest).ln()
            exact = largest + logarithm
            # e^d is as good as the d of the wider type, |d| roundings of it, is.
            slack = unit * fraction(abs(largest) + (len(row) + 4 + 2 * Decimal(float(np.ptp(row)))) * logarithm)
        check_logarithm(FLOATS[dtype], value, exact, slack)


@pytest.mark.parametrize("dtype", [*FLOATS, np.dtype(np.int32)], ids=str)
@pytest.mark.parametrize("function", ReduceFunction, ids=lambda each: each.name)
def test_the_bits_depend_on_no_stride(function: ReduceFunction, dtype: np.dtype[Any]) -> None:
    if dtype.kind == "i" and function.name not in (*INTEGER_RESULTS, "ARGMAX", "ARGMIN"):
        return
    sizes, output = (3, 37, 5, 41), np.uint32 if function.name.startswith("ARG") else dtype
    x = values(dtype, sizes, 1, "ordinary")
    layouts = [None, (1, 3, 111, 555), (37 * 5 * 50, 250, 50, 1), (2, 6, 6 * 37, 6 * 37 * 5)]
    for axes in ([1], [3], [1, 3], [0, 1, 2, 3]):
        first, *others = [reduced(function.name, x, axes, output, layout) for layout in layouts]
        for other in others:
            np.testing.assert_array_equal(first.view(bits(first)), other.view(bits(other)))


def test_the_order_of_a_sum_depends_on_no_stride() -> None:
    """What is left of these depends on which of the ones meet before the large numbers do."""
    x = np.ones((37, 64), np.float32)
    x[:, 0], x[:, -1] = 2**54, -(2**54)
    first, second = (reduced("SUM", x, [1], layout=layout) for layout in ((64, 1), (1, 37)))
    np.testing.assert_array_equal(first, second)


def test_a_long_sum_of_half_precision() -> None:
    """A running sum of FLOAT16 would stay at 2048, one of FLOAT32 at 2^24."""
    x = tensor((1, 2**25), "FLOAT16", (0, 0))
    desc = DML_REDUCE_OPERATOR_DESC(
        Function=ReduceFunction.AVERAGE, InputTensor=x, OutputTensor=tensor((1, 1), "FLOAT16"), Axes=[1]
    )
    (y,) = run("reference", desc, [np.float16([[1]])])
    assert y is not None
    assert y.item() == 1


def test_more_than_memory_holds_is_an_error() -> None:
    x = tensor((2**47,), "INT64", (0,))  # more than addresses reach, as some systems promise any memory
    desc = DML_REDUCE_OPERATOR_DESC(
        Function=ReduceFunction.SUM, InputTensor=x, OutputTensor=tensor((1,), "INT64"), Axes=[0]
    )
    assert validate(desc) == []
    device = Device("reference")
    with pytest.raises(DMLError, match=r"\(D6\)"):
        device.compile_operator(device.create_operator(desc)).dispatch([np.zeros(1, np.int64)], [np.zeros(1, np.int64)])
