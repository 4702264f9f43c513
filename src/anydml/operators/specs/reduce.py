"""REDUCE: one value from the elements along some axes, by one of twelve functions; ARGMIN and ARGMAX, its indices.

Decisions where the page is silent: integers are computed modulo 2^n, floats in the next wider type and rounded once. A
product or a LOG_SUM_EXP whose result is finite does not overflow on the way. Of a NaN and a number, the larger and the
smaller is the number, and ARGMAX and ARGMIN find that number; where all are NaN, MAX and MIN give NaN, ARGMAX and
ARGMIN take them for equals. All other functions give NaN where there is one. Among equals REDUCE finds the first. An
index along several axes is row-major, in the order of the dimensions, and so is what comes last of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Any, ClassVar

import numpy as np

from ...core import enums
from ...core.enums import OperatorType, ReduceFunction
from ...core.strided_layout import DTYPES, Array, Layout
from ..constraints import axes_within, gathered, rounded, same, widened
from ..independence import all_but
from ..schema import Choices, ConstraintFailure, Count, OperatorDesc, OperatorSpec, Tensor, UINTs, any_of, support_table


@dataclass(frozen=True, slots=True, kw_only=True)
class DML_REDUCE_OPERATOR_DESC(OperatorDesc):
    """Reduces the elements along some axes to one value, for each place along the others.

    AVERAGE, MAX, MIN, MULTIPLY and SUM are what they say; L1 is the sum of absolute values, SUM_SQUARE that of squares, L2
    its square root, LOG_SUM the natural logarithm of the sum, LOG_SUM_EXP that of the sum of exponentials. ARGMAX and
    ARGMIN give the index of the first largest or smallest element. Integers wrap modulo 2^n. Not in-place.

    Args:
        Function: what is computed.
        InputTensor: the elements.
        OutputTensor: the results; of ARGMAX and ARGMIN indices, of an integer type of its own.
        AxisCount: how many axes are reduced; derived from Axes.
        Axes: the dimensions along which is reduced, in any order. Of several axes an index is row-major.

    Constraints:
        (C1) InputTensor and OutputTensor have the same DataType, but for ARGMAX and ARGMIN.
        (C2) InputTensor and OutputTensor have the same DimensionCount.
        (C3) AxisCount is at least 1.
        (C4) Axes are less than the DimensionCount of InputTensor.
        (C5) No axis comes twice.
        (C6) OutputTensor has the sizes of InputTensor, and 1 along Axes.
        (C7) The DataType of OutputTensor holds every index, for ARGMAX and ARGMIN.

    Source: the page of DML_REDUCE_OPERATOR_DESC; since feature level 1.0.
    """

    Function: enums.ReduceFunction
    InputTensor: Tensor
    OutputTensor: Tensor
    AxisCount: Count = None
    Axes: UINTs

    counts: ClassVar[Mapping[str, tuple[str, ...]]] = {"AxisCount": ("Axes",)}


@dataclass(frozen=True, slots=True, kw_only=True)
class DML_ARGMIN_OPERATOR_DESC(OperatorDesc):
    """Finds the smallest element along some axes, for each place along the others, and gives its index.

    A NaN is no number to be found; where all elements are NaN they count as equal. Not in-place.

    Args:
        InputTensor: the elements.
        OutputTensor: the indices; of several axes they are row-major.
        AxisCount: how many axes are reduced; derived from Axes.
        Axes: the dimensions along which is looked, in any order.
        AxisDirection: of equal elements INCREASING finds the first, DECREASING the last.

    Constraints:
        (C1) InputTensor and OutputTensor have the same DimensionCount.
        (C2) AxisCount is at least 1.
        (C3) Axes are less than the DimensionCount of InputTensor.
        (C4) No axis comes twice.
        (C5) OutputTensor has the sizes of InputTensor, and 1 along Axes.
        (C6) The DataType of OutputTensor holds every index.

    Source: the page of DML_ARGMIN_OPERATOR_DESC; since feature level 3.0.
    """

    InputTensor: Tensor
    OutputTensor: Tensor
    AxisCount: Count = None
    Axes: UINTs
    AxisDirection: enums.AxisDirection = enums.AxisDirection.INCREASING

    counts: ClassVar[Mapping[str, tuple[str, ...]]] = {"AxisCount": ("Axes",)}


@dataclass(frozen=True, slots=True, kw_only=True)
class DML_ARGMAX_OPERATOR_DESC(OperatorDesc):
    """Finds the largest element along some axes, for each place along the others, and gives its index.

    A NaN is no number to be found; where all elements are NaN they count as equal. Not in-place.

    Args:
        InputTensor: the elements.
        OutputTensor: the indices; of several axes they are row-major.
        AxisCount: how many axes are reduced; derived from Axes.
        Axes: the dimensions along which is looked, in any order.
        AxisDirection: of equal elements INCREASING finds the first, DECREASING the last.

    Constraints:
        (C1) InputTensor and OutputTensor have the same DimensionCount.
        (C2) AxisCount is at least 1.
        (C3) Axes are less than the DimensionCount of InputTensor.
        (C4) No axis comes twice.
        (C5) OutputTensor has the sizes of InputTensor, and 1 along Axes.
        (C6) The DataType of OutputTensor holds every index.

    Source: the page of DML_ARGMAX_OPERATOR_DESC; since feature level 3.0.
    """

    InputTensor: Tensor
    OutputTensor: Tensor
    AxisCount: Count = None
    Axes: UINTs
    AxisDirection: enums.AxisDirection = enums.AxisDirection.INCREASING

    counts: ClassVar[Mapping[str, tuple[str, ...]]] = {"AxisCount": ("Axes",)}


_ArgDesc = DML_ARGMIN_OPERATOR_DESC | DML_ARGMAX_OPERATOR_DESC
_INDICES = (ReduceFunction.ARGMAX, ReduceFunction.ARGMIN)


def _constraints(desc: DML_REDUCE_OPERATOR_DESC) -> Iterator[ConstraintFailure]:
    if desc.Function not in _INDICES:
        yield from same(desc, "(C1)", "DataType", "InputTensor", "OutputTensor")
    yield from same(desc, "(C2)", "DimensionCount", "InputTensor", "OutputTensor")
    yield from axes_within(desc, "(C3)", "(C4)", "(C5)")
    if desc.Function in _INDICES:
        yield from _holds_indices(desc, "(C7)")


def _constraints_of_indices(desc: _ArgDesc) -> Iterator[ConstraintFailure]:
    yield from same(desc, "(C1)", "DimensionCount", "InputTensor", "OutputTensor")
    yield from axes_within(desc, "(C2)", "(C3)", "(C4)")
    yield from _holds_indices(desc, "(C6)")


def _holds_indices(desc: DML_REDUCE_OPERATOR_DESC | _ArgDesc, label: str) -> Iterator[ConstraintFailure]:
    sizes, dtype = desc.InputTensor.Sizes, DTYPES.get(desc.OutputTensor.DataType)
    if dtype is None or dtype.kind not in "iu":
        return
    last = prod(sizes[axis] for axis in set(desc.Axes) if axis < len(sizes)) - 1
    if last > np.iinfo(dtype).max:
        expected = f"a type that holds {last}, the last index"
        yield ConstraintFailure(label, "OutputTensor.DataType", desc.OutputTensor.DataType.name, expected)


def _infer_sizes(desc: DML_REDUCE_OPERATOR_DESC | _ArgDesc) -> dict[str, Choices]:
    sizes = enumerate(desc.InputTensor.Sizes)
    return {"OutputTensor": tuple((1 if i in desc.Axes else size,) for i, size in sizes)}


# Not by NumPy's fmax and fmin, which on some processors pass over numbers beside a NaN.


def _largest(x: Array) -> Any:
    return _but_for_nans(np.maximum, -np.inf, x)


def _smallest(x: Array) -> Any:
    return _but_for_nans(np.minimum, np.inf, x)


def _but_for_nans(function: np.ufunc, beyond: float, x: Array) -> Any:
    """Of the numbers alone; a NaN where there are none."""
    if x.dtype.kind != "f":
        return function.reduce(x, axis=-1)
    is_nan = np.isnan(x)
    found = function.reduce(np.where(is_nan, x.dtype.type(beyond), x), axis=-1)
    return np.where(is_nan.all(axis=-1), x.dtype.type(np.nan), found)


def _first(x: Array, values: Array) -> Any:
    return np.argmax(x == values[:, None], axis=-1)


def _sum(x: Array) -> Any:
    return np.add.reduce(x, axis=-1, dtype=x.dtype)


def _product(x: Array) -> Any:
    """x = m * 2^e: the m are multiplied in pairs and kept in [0.5, 1), the e are added."""
    if x.dtype.kind != "f":
        return np.multiply.reduce(x, axis=-1, dtype=x.dtype)
    m, e = np.frexp(x)
    e = e.astype(np.int64)
    while (half := m.shape[-1] // 2) > 0:
        pairs, carry = np.frexp(m[:, :half] * m[:, half : 2 * half])
        m = np.concatenate([pairs, m[:, 2 * half :]], axis=-1)
        e = np.concatenate([e[:, :half] + e[:, half : 2 * half] + carry, e[:, 2 * half :]], axis=-1)
    return np.ldexp(m[:, 0], np.clip(e[:, 0], -(2**30), 2**30).astype(np.int32))


def _log_sum_exp(x: Array) -> Any:
    """m + log(1 + sum of exp(x - m)) over all but one of the largest, m: nothing overflows, and what is small stays."""
    m = np.maximum.reduce(x, axis=-1)
    rest = np.exp(x - np.where(np.isfinite(m), m, 0)[:, None])
    np.put_along_axis(rest, np.argmax(x, axis=-1)[:, None], 0, axis=-1)
    return m + np.log1p(_sum(rest))


_FUNCTIONS: Mapping[ReduceFunction, Callable[[Array], Any]] = {
    ReduceFunction.ARGMAX: lambda x: _first(x, _largest(x)),
    ReduceFunction.ARGMIN: lambda x: _first(x, _smallest(x)),
    ReduceFunction.AVERAGE: lambda x: _sum(x) / x.shape[-1],
    ReduceFunction.L1: lambda x: _sum(np.abs(x)),
    ReduceFunction.L2: lambda x: np.sqrt(_sum(x * x)),
    ReduceFunction.LOG_SUM: lambda x: np.log(_sum(x)),
    ReduceFunction.LOG_SUM_EXP: _log_sum_exp,
    ReduceFunction.MAX: _largest,
    ReduceFunction.MIN: _smallest,
    ReduceFunction.MULTIPLY: _product,
    ReduceFunction.SUM: _sum,
    ReduceFunction.SUM_SQUARE: lambda x: _sum(x * x),
}
"""Of the rows of a matrix."""


def _index_reference(function: ReduceFunction, desc: _ArgDesc, x: Array) -> Array:
    output = Layout.of_desc(desc.OutputTensor)
    rows = gathered(widened(x), desc.Axes)
    with np.errstate(all="ignore"):
        if desc.AxisDirection == enums.AxisDirection.DECREASING:
            y = rows.shape[-1] - 1 - _FUNCTIONS[function](rows[:, ::-1])
        else:
            y = _FUNCTIONS[function](rows)
    return rounded(y, output.dtype).reshape(output.sizes)


def _reference(desc: DML_REDUCE_OPERATOR_DESC, x: Array) -> Array:
    output = Layout.of_desc(desc.OutputTensor)
    with np.errstate(all="ignore"):
        y = _FUNCTIONS[desc.Function](gathered(widened(x), desc.Axes))
        return rounded(y, output.dtype).reshape(output.sizes)


_OF_INDICES = support_table("""
    DML_FEATURE_LEVEL_4_1 and above
    InputTensor  | Input  | 1 to 8 | FLOAT32, FLOAT16, INT64, INT32, INT16, INT8, UINT64, UINT32, UINT16, UINT8
    OutputTensor | Output | 1 to 8 | INT64, INT32, UINT64, UINT32
    DML_FEATURE_LEVEL_3_0 and above
    InputTensor  | Input  | 1 to 8 | FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8
    OutputTensor | Output | 1 to 8 | INT64, INT32, UINT64, UINT32
    DML_FEATURE_LEVEL_2_1 and above
    InputTensor  | Input  | 4      | FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8
    OutputTensor | Output | 4      | UINT32
    DML_FEATURE_LEVEL_1_0 and above
    InputTensor  | Input  | 4      | FLOAT32, FLOAT16
    OutputTensor | Output | 4      | UINT32
""")
_OF_FLOATS = support_table("""
    DML_FEATURE_LEVEL_3_0 and above
    InputTensor  | Input  | 1 to 8 | FLOAT32, FLOAT16
    OutputTensor | Output | 1 to 8 | FLOAT32, FLOAT16
    DML_FEATURE_LEVEL_1_0 and above
    InputTensor  | Input  | 4      | FLOAT32, FLOAT16
    OutputTensor | Output | 4      | FLOAT32, FLOAT16
""")
_OF_NORMS = support_table("""
    DML_FEATURE_LEVEL_5_0 and above
    InputTensor  | Input  | 1 to 8 | FLOAT32, FLOAT16, INT64, INT32, UINT64, UINT32
    OutputTensor | Output | 1 to 8 | FLOAT32, FLOAT16, INT64, INT32, UINT64, UINT32
    DML_FEATURE_LEVEL_3_0 and above
    InputTensor  | Input  | 1 to 8 | FLOAT32, FLOAT16
    OutputTensor | Output | 1 to 8 | FLOAT32, FLOAT16
    DML_FEATURE_LEVEL_1_0 and above
    InputTensor  | Input  | 4      | FLOAT32, FLOAT16
    OutputTensor | Output | 4      | FLOAT32, FLOAT16
""")
_OF_ENDS = support_table("""
    DML_FEATURE_LEVEL_5_0 and above
    InputTensor  | Input  | 1 to 8 | FLOAT32, FLOAT16, INT64, INT32, INT16, INT8, UINT64, UINT32, UINT16, UINT8
    OutputTensor | Output | 1 to 8 | FLOAT32, FLOAT16, INT64, INT32, INT16, INT8, UINT64, UINT32, UINT16, UINT8
    DML_FEATURE_LEVEL_3_0 and above
    InputTensor  | Input  | 1 to 8 | FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8
    OutputTensor | Output | 1 to 8 | FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8
    DML_FEATURE_LEVEL_2_1 and above
    InputTensor  | Input  | 4      | FLOAT32, FLOAT16, INT32, UINT32
    OutputTensor | Output | 4      | FLOAT32, FLOAT16, INT32, UINT32
    DML_FEATURE_LEVEL_1_0 and above
    InputTensor  | Input  | 4      | FLOAT32, FLOAT16
    OutputTensor | Output | 4      | FLOAT32, FLOAT16
""")
_OF_TALLIES = support_table("""
    DML_FEATURE_LEVEL_5_0 and above
    InputTensor  | Input  | 1 to 8 | FLOAT32, FLOAT16, INT64, INT32, UINT64, UINT32
    OutputTensor | Output | 1 to 8 | FLOAT32, FLOAT16, INT64, INT32, UINT64, UINT32
    DML_FEATURE_LEVEL_3_0 and above
    InputTensor  | Input  | 1 to 8 | FLOAT32, FLOAT16, INT32, UINT32
    OutputTensor | Output | 1 to 8 | FLOAT32, FLOAT16, INT32, UINT32
    DML_FEATURE_LEVEL_2_1 and above
    InputTensor  | Input  | 4      | FLOAT32, FLOAT16, INT32, UINT32
    OutputTensor | Output | 4      | FLOAT32, FLOAT16, INT32, UINT32
    DML_FEATURE_LEVEL_1_0 and above
    InputTensor  | Input  | 4      | FLOAT32, FLOAT16
    OutputTensor | Output | 4      | FLOAT32, FLOAT16
""")
_TABLES = {
    ReduceFunction.ARGMAX: _OF_INDICES,
    ReduceFunction.ARGMIN: _OF_INDICES,
    ReduceFunction.AVERAGE: _OF_FLOATS,
    ReduceFunction.L1: _OF_NORMS,
    ReduceFunction.L2: _OF_FLOATS,
    ReduceFunction.LOG_SUM: _OF_FLOATS,
    ReduceFunction.LOG_SUM_EXP: _OF_FLOATS,
    ReduceFunction.MAX: _OF_ENDS,
    ReduceFunction.MIN: _OF_ENDS,
    ReduceFunction.MULTIPLY: _OF_TALLIES,
    ReduceFunction.SUM: _OF_TALLIES,
    ReduceFunction.SUM_SQUARE: _OF_NORMS,
}

REDUCE = OperatorSpec(
    operator_type=OperatorType.REDUCE,
    desc=DML_REDUCE_OPERATOR_DESC,
    constraints=_constraints,
    infer_sizes=_infer_sizes,
    sizes_rule="(C6)",
    reference=_reference,
    independent=lambda desc: all_but(desc, desc.Axes),
    support=any_of(_TABLES.values()),
    support_by=("Function", _TABLES),
)

_OF_INDEX_OPERATORS = support_table("""
    DML_FEATURE_LEVEL_4_1 and above
    InputTensor  | Input  | 1 to 8 | FLOAT32, FLOAT16, INT64, INT32, INT16, INT8, UINT64, UINT32, UINT16, UINT8
    OutputTensor | Output | 1 to 8 | INT64, INT32, UINT64, UINT32
    DML_FEATURE_LEVEL_3_0 and above
    InputTensor  | Input  | 1 to 8 | FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8
    OutputTensor | Output | 1 to 8 | INT64, INT32, UINT64, UINT32
""")

ARGMIN = OperatorSpec(
    operator_type=OperatorType.ARGMIN,
    desc=DML_ARGMIN_OPERATOR_DESC,
    constraints=_constraints_of_indices,
    infer_sizes=_infer_sizes,
    sizes_rule="(C5)",
    reference=partial(_index_reference, ReduceFunction.ARGMIN),
    independent=lambda desc: all_but(desc, desc.Axes),
    support=_OF_INDEX_OPERATORS,
)

ARGMAX = OperatorSpec(
    operator_type=OperatorType.ARGMAX,
    desc=DML_ARGMAX_OPERATOR_DESC,
    constraints=_constraints_of_indices,
    infer_sizes=_infer_sizes,
    sizes_rule="(C5)",
    reference=partial(_index_reference, ReduceFunction.ARGMAX),
    independent=lambda desc: all_but(desc, desc.Axes),
    support=_OF_INDEX_OPERATORS,
)
