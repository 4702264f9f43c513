"""CUMULATIVE_SUMMATION and CUMULATIVE_PRODUCT: the pages' examples, every data type, what is special about floats."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from anydml import (
    DML_CUMULATIVE_PRODUCT_OPERATOR_DESC,
    DML_CUMULATIVE_SUMMATION_OPERATOR_DESC,
    AxisDirection,
    TensorDataType,
)
from anydml.operators.schema import OperatorDesc
from support_tables import ARITHMETIC_32, ARITHMETIC_64, Support

from . import GOOD, Case, Negative, bad, tensor_of

INF, NAN = np.inf, np.nan


def _case(
    id: str,
    operation: str,
    x: np.ndarray,
    y: np.ndarray,
    *,
    axis: int,
    reverse: bool = False,
    exclusive: bool = False,
    strides: Sequence[int] | None = None,
    out_strides: Sequence[int] | None = None,
) -> Case:
    direction = AxisDirection.DECREASING if reverse else AxisDirection.INCREASING
    common = {
        "InputTensor": tensor_of(x, strides),
        "OutputTensor": tensor_of(y, out_strides),
        "Axis": axis,
        "AxisDirection": direction,
    }
    desc = (
        DML_CUMULATIVE_SUMMATION_OPERATOR_DESC(**common, HasExclusiveSum=exclusive)
        if operation == "sum"
        else DML_CUMULATIVE_PRODUCT_OPERATOR_DESC(**common, HasExclusiveProduct=exclusive)
    )
    function = "cumulative_summation" if operation == "sum" else "cumulative_product"
    options = {"axis": axis, "reverse": reverse, "exclusive": exclusive}
    return Case(f"{operation}-{id}", desc, [x], [y], function, [x], options)


_X = np.array([[[[2, 1, 3, 5], [3, 8, 7, 3], [9, 6, 2, 4]]]], np.float32)


def _page(rows: Sequence[Sequence[int]]) -> np.ndarray:
    return np.array([[rows]], np.float32)


PAGES = [
    # DML_CUMULATIVE_SUMMATION_OPERATOR_DESC, examples 1 to 4
    _case("example-1", "sum", _X, _page([[2, 3, 6, 11], [3, 11, 18, 21], [9, 15, 17, 21]]), axis=3),
    _case("example-2", "sum", _X, _page([[0, 2, 3, 6], [0, 3, 11, 18], [0, 9, 15, 17]]), axis=3, exclusive=True),
    _case("example-3", "sum", _X, _page([[11, 9, 8, 5], [21, 18, 10, 3], [21, 12, 6, 4]]), axis=3, reverse=True),
    _case("example-4", "sum", _X, _page([[2, 1, 3, 5], [5, 9, 10, 8], [14, 15, 12, 12]]), axis=2),
    # DML_CUMULATIVE_PRODUCT_OPERATOR_DESC, examples 1 to 4
    _case("example-1", "product", _X, _page([[2, 2, 6, 30], [3, 24, 168, 504], [9, 54, 108, 432]]), axis=3),
    _case("example-2", "product", _X, _page([[1, 2, 2, 6], [1, 3, 24, 168], [1, 9, 54, 108]]), axis=3, exclusive=True),
    _case(
        "example-3", "product", _X, _page([[30, 15, 15, 5], [504, 168, 21, 3], [432, 48, 8, 4]]), axis=3, reverse=True
    ),
    _case("example-4", "product", _X, _page([[2, 1, 3, 5], [6, 8, 21, 15], [54, 48, 42, 60]]), axis=2),
]


def _types() -> list[Case]:
    """[1, 2, 3] in every mode and type, along an inner and an outer axis."""
    modes = {
        (False, False): ([1, 3, 6], [1, 2, 6]),
        (False, True): ([0, 1, 3], [1, 1, 2]),
        (True, False): ([6, 5, 3], [6, 6, 3]),
        (True, True): ([5, 3, 0], [6, 3, 1]),
    }
    cases = []
    for dtype in (np.float32, np.float16, np.int32, np.uint32, np.int64, np.uint64):
        for (reverse, exclusive), results in modes.items():
            for operation, result in zip(("sum", "product"), results, strict=True):
                id = f"{np.dtype(dtype).name}{'-reverse' * reverse}{'-exclusive' * exclusive}"
                x, y = np.array([1, 2, 3], dtype), np.array(result, dtype)
                cases.append(_case(f"{id}-inner", operation, x, y, axis=0, reverse=reverse, exclusive=exclusive))
                x, y = np.repeat(x[:, None], 5, 1), np.repeat(y[:, None], 5, 1)
                cases.append(_case(f"{id}-outer", operation, x, y, axis=0, reverse=reverse, exclusive=exclusive))
    return cases


def _row(operation: str, id: str, x: Sequence[float], y: Sequence[float], dtype: type, **mode: bool) -> Case:
    with np.errstate(over="ignore"):
        return _case(id, operation, np.array(x, dtype), np.array(y, dtype), axis=0, **mode)


_BIG, _TINY = float(np.finfo(np.float32).max), 2.0**-149
_TOP = 2**31 - 1

VALUES = [
    # Integers wrap.
    _row("sum", "wraps-int32", [_TOP, 1, 1], [_TOP, -(2**31), -(2**31) + 1], np.int32),
    _row("sum", "wraps-uint32", [2**32 - 1, 2, 3], [2**32 - 1, 1, 4], np.uint32),
    _row("product", "wraps-int32", [2**16, 2**15, 2, 5], [2**16, -(2**31), 0, 0], np.int32),
    _row("product", "wraps-int64", [3**30, 3**15], [3**30, (3**45 + 2**63) % 2**64 - 2**63], np.int64),
    _row("product", "wraps-uint64", [2**63, 3, 2], [2**63, 2**63, 0], np.uint64),
    # The accumulator is wider than the type: neither overflows on its way nor forgets small terms.
    _row("sum", "no-overflow-inside", [_BIG, _BIG, -_BIG, -_BIG], [_BIG, INF, _BIG, 0], np.float32),
    _row("sum", "half-no-overflow-inside", [65504, 65504, -65504], [65504, INF, 65504], np.float16),
    _row("sum", "keeps-small-terms", [2.0**24, 1, 1, 1], [2.0**24, 2.0**24, 2.0**24 + 2, 2.0**24 + 4], np.float32),
    _row(
        "product",
        "no-overflow-inside",
        [2.0**100, 2.0**100, 2.0**-100, 2.0**-100],
        [2.0**100, INF, 2.0**100, 1],
        np.float32,
    ),
    _row("product", "no-underflow-inside", [2.0**-100, 2.0**-100, 2.0**100], [2.0**-100, 0, 2.0**-100], np.float32),
    _row("sum", "subnormals", [_TINY, _TINY, -_TINY], [_TINY, 2 * _TINY, _TINY], np.float32),
    # Infinities and NaNs stay where the sequence has them.
    _row("sum", "infinities", [1, INF, 2, -INF, 3], [1, INF, INF, NAN, NAN], np.float32),
    _row("sum", "nan-exclusive", [1, NAN, 2], [0, 1, NAN], np.float32, exclusive=True),
    _row("sum", "nan-reverse", [1, NAN, 2], [NAN, NAN, 2], np.float16, reverse=True),
    _row("product", "zero-first", [2, 0, 1e38, 1e38, 1e38], [2, 0, 0, 0, 0], np.float32),
    _row("product", "infinity-then-zero", [2, INF, 0, 3], [2, INF, NAN, NAN], np.float32),
    _row("product", "zero-then-infinity", [2, 0, INF], [2, 0, NAN], np.float32),
    _row(
        "product",
        "half-zero-first",
        [2, 0, 60000, 60000, 60000, 60000, 60000, 60000, 60000, 60000],
        [2] + [0] * 9,
        np.float16,
    ),
]

_MATRIX = np.arange(1, 7, dtype=np.int32).reshape(2, 3)
_SUMS = _MATRIX.cumsum(1, dtype=np.int32)

LAYOUTS = [
    _case("transposed-input", "sum", _MATRIX, _SUMS, axis=1, strides=(1, 2)),
    _case("gapped-input", "sum", _MATRIX, _SUMS, axis=1, strides=(10, 3)),
    _case("transposed-output", "sum", _MATRIX, _SUMS, axis=1, out_strides=(1, 2)),
    _case("gapped-output", "sum", _MATRIX, _SUMS, axis=1, out_strides=(9, 2)),
    _case(
        "broadcast-input",
        "sum",
        np.array([[4, 4, 4]] * 2, np.int32),
        np.array([[4, 8, 12]] * 2, np.int32),
        axis=1,
        strides=(0, 0),
    ),
    _case(
        "eight-dimensions",
        "sum",
        _MATRIX.reshape(1, 2, 1, 1, 3, 1, 1, 1),
        _SUMS.reshape(1, 2, 1, 1, 3, 1, 1, 1),
        axis=4,
    ),
    _case("one-element", "product", np.array([7], np.int64), np.array([1], np.int64), axis=0, exclusive=True),
    _case(
        "middle-axis",
        "sum",
        np.ones((2, 3, 4), np.float32),
        np.ones((2, 3, 4), np.float32).cumsum(1, dtype=np.float32),
        axis=1,
    ),
]

CASES = [*PAGES, *_types(), *VALUES, *LAYOUTS]


def summation(**members: Any) -> OperatorDesc:
    return DML_CUMULATIVE_SUMMATION_OPERATOR_DESC(**{"InputTensor": GOOD, "OutputTensor": GOOD, "Axis": 1, **members})


def multiplication(**members: Any) -> OperatorDesc:
    return DML_CUMULATIVE_PRODUCT_OPERATOR_DESC(**{"InputTensor": GOOD, "OutputTensor": GOOD, "Axis": 1, **members})


RIGHT = [summation(), multiplication()]
NEGATIVES = [
    *(
        negative
        for operator in (summation, multiplication)
        for negative in (
            Negative(
                "(C1)",
                operator(OutputTensor=bad(DataType=TensorDataType.INT32)),
                "OutputTensor.DataType",
                "INT32",
                "FLOAT32, that of",
            ),
            Negative(
                "(C2)",
                operator(OutputTensor=bad(Sizes=(2, 3, 1))),
                "OutputTensor.DimensionCount",
                "3",
                "2, that of InputTensor",
            ),
            Negative("(C2)", operator(OutputTensor=bad(Sizes=(2, 4))), "OutputTensor.Sizes[1]", "4", "3"),
            Negative("(C3)", operator(Axis=2), "Axis", "2", "less than 2, the DimensionCount"),
        )
    ),
]

SUPPORT = {
    "CUMULATIVE_SUMMATION": Support(
        [("2.1", 4, 4, ARITHMETIC_32), ("4.0", 1, 8, ARITHMETIC_32), ("5.0", 1, 8, ARITHMETIC_64)],
        members=lambda output: {"Axis": 0},
    ),
    "CUMULATIVE_PRODUCT": Support(
        [("3.1", 4, 4, ARITHMETIC_32), ("4.0", 1, 8, ARITHMETIC_32), ("5.0", 1, 8, ARITHMETIC_64)],
        members=lambda output: {"Axis": 0},
    ),
}

KERNELS = {"CUMULATIVE_SUMMATION": "scan ", "CUMULATIVE_PRODUCT": "scan "}
