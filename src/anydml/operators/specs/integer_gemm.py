"""Products of matrices of integers: MATRIX_MULTIPLY_INTEGER, QUANTIZED_LINEAR_MATRIX_MULTIPLY and
MATRIX_MULTIPLY_INTEGER_TO_FLOAT.

Decisions where the pages are silent or contradict themselves; S is the sum of (a - zero point of a) * (b - zero point of b)
along a row of A and a column of B:

1. MATRIX_MULTIPLY_INTEGER gives S modulo 2^32, as INT32. Up to 33,025 products never leave its range.
2. QUANTIZED_LINEAR_MATRIX_MULTIPLY gives clamp(round(S * AScale * BScale / OutputScale) + OutputZeroPoint), with S exact
   and the quotient that of exact numbers: what is rounded is the quotient itself, halves to the even integer. ONNX Runtime
   multiplies S, as FLOAT32, by a quotient of scales that was rounded to FLOAT32, and so may be 1 off where the quotient is
   a half or next to one: for S = 1 and scales of 0.1, 0.5 and 0.02, all FLOAT32, it is 2.5000001, so 3 here and 2 there.
3. A quotient that is NaN counts as 0, so that the zero point is the result; infinities, those of an output scale of 0
   too, which the pages call undefined, saturate. No value is refused. So it is in ELEMENT_WISE_QUANTIZE_LINEAR.
4. MATRIX_MULTIPLY_INTEGER_TO_FLOAT takes S modulo 2^64, which only elements of 32 bits reach, in double precision,
   multiplies it by the product of the scales, in which that is exact, adds the bias, and rounds once to the output's type.
5. There ATensor and BTensor may be of different types, as they are in ONNX Runtime; the page has one type for both.
   The page describes OutputScaleTensor and OutputZeroPointTensor, which the desc does not have.
6. Scales and zero points of fewer dimensions than the matrices have their last ones: of A, {M} would be columns.
   Those that the pages want of one DimensionCount have one, which may be another than the matrices'.
7. Nothing runs in-place.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...core.enums import OperatorType
from ...core.strided_layout import DTYPES, Array, Layout
from ..constraints import rounded, same
from ..requantization import Along, aligned, differences, lined_up, requantised, wrong_parameters, wrong_types
from ..schema import (
    Choices,
    ConstraintFailure,
    Independence,
    OperatorDesc,
    OperatorSpec,
    OptionalTensor,
    Tensor,
    support_table,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DML_MATRIX_MULTIPLY_INTEGER_OPERATOR_DESC(OperatorDesc):
    """(A - zero point) x (B - zero point), a product of matrices of integers for each batch and channel.

    Sums are exact modulo 2^32. Not in-place.

    Args:
        ATensor: matrices of M rows and K columns. Dimensions before those two are batch and channels.
        AZeroPointTensor: {1, 1, 1, 1} for one zero point, {1, 1, M, 1} for one for each row; None for 0.
        BTensor: matrices of K rows and N columns.
        BZeroPointTensor: {1, 1, 1, 1} for one zero point, {1, 1, 1, N} for one for each column; None for 0.
        OutputTensor: matrices of M rows and N columns.

    Constraints:
        (C1) ATensor, BTensor and OutputTensor have the same DimensionCount.
        (C2) A zero point has the DataType of what it is for.
        (C3) ATensor and BTensor have the same sizes of batch and channels. Strides of 0 broadcast.
        (C4) BTensor has as many rows as ATensor has columns.
        (C5) Zero points have one value, or those of A one for each row and those of B one for each column. Fewer
            dimensions than the matrices' are the last ones.
        (C6) OutputTensor has the batch and channels of ATensor, M rows and N columns.

    Source: the page of DML_MATRIX_MULTIPLY_INTEGER_OPERATOR_DESC; since feature level 2.1.
    """

    ATensor: Tensor
    AZeroPointTensor: OptionalTensor = None
    BTensor: Tensor
    BZeroPointTensor: OptionalTensor = None
    OutputTensor: Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class DML_QUANTIZED_LINEAR_MATRIX_MULTIPLY_OPERATOR_DESC(OperatorDesc):
    """A x B of quantised matrices, quantised: a product for each batch and channel.

    With the exact sum S of (a - zero point) * (b - zero point), an element is S * AScale * BScale / OutputScale, rounded
    to the nearest integer, a half to the even one, plus the zero point, saturated. Not in-place.

    Args:
        ATensor: matrices of M rows and K columns. Dimensions before those two are batch and channels.
        AScaleTensor: {1, 1, 1, 1} for one scale, {1, 1, M, 1} for one for each row.
        AZeroPointTensor: likewise; None for 0.
        BTensor: matrices of K rows and N columns.
        BScaleTensor: {1, 1, 1, 1} for one scale, {1, 1, 1, N} for one for each column.
        BZeroPointTensor: likewise; None for 0.
        OutputScaleTensor: {1, 1, 1, 1} for one scale, {1, 1, M, 1} for one for each row.
        OutputZeroPointTensor: likewise; None for 0.
        OutputTensor: matrices of M rows and N columns.

    Constraints:
        (C1) ATensor, BTensor and OutputTensor have the same DimensionCount.
        (C2) A zero point has the DataType of what it is for.
        (C3) ATensor and BTensor have the same sizes of batch and channels. Strides of 0 broadcast.
        (C4) BTensor has as many rows as ATensor has columns.
        (C5) Scales and zero points have one value, or those of A and of the output one for each row and those of B one
            for each column. Fewer dimensions than the matrices' are the last ones.
        (C6) OutputTensor has the batch and channels of ATensor, M rows and N columns.
        (C7) Scales and zero points have the same DimensionCount.

    Source: the page of DML_QUANTIZED_LINEAR_MATRIX_MULTIPLY_OPERATOR_DESC; since feature level 2.1.
    """

    ATensor: Tensor
    AScaleTensor: Tensor
    AZeroPointTensor: OptionalTensor = None
    BTensor: Tensor
    BScaleTensor: Tensor
    BZeroPointTensor: OptionalTensor = None
    OutputScaleTensor: Tensor
    OutputZeroPointTensor: OptionalTensor = None
    OutputTensor: Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class DML_MATRIX_MULTIPLY_INTEGER_TO_FLOAT_OPERATOR_DESC(OperatorDesc):
    """A x B + bias of quantised matrices, as real numbers: a product for each batch and channel.

    With the sum S of (a - zero point) * (b - zero point), modulo 2^64, an element is S * (AScale * BScale) + bias, in
    double precision, rounded once. Not in-place.

    Args:
        ATensor: matrices of M rows and K columns. Dimensions before those two are batch and channels.
        AScaleTensor: {1, 1, 1, 1} for one scale, {1, 1, M, 1} for one for each row.
        AZeroPointTensor: likewise; None for 0.
        BTensor: matrices of K rows and N columns.
        BScaleTensor: {1, 1, 1, 1} for one scale, {1, 1, 1, N} for one for each column.
        BZeroPointTensor: likewise; None for 0.
        BiasTensor: what is added, of the sizes of OutputTensor, broadcast by strides of 0; None for nothing.
        OutputTensor: matrices of M rows and N columns.

    Constraints:
        (C1) ATensor, BTensor, BiasTensor and OutputTensor have the same DimensionCount.
        (C2) A zero point has the DataType of what it is for.
        (C3) ATensor and BTensor have the same sizes of batch and channels. Strides of 0 broadcast.
        (C4) BTensor has as many rows as ATensor has columns.
        (C5) Scales and zero points have one value, or those of A one for each row and those of B one for each column.
            Fewer dimensions than the matrices' are the last ones.
        (C6) OutputTensor has the batch and channels of ATensor, M rows and N columns.
        (C7) Scales and zero points have the same DimensionCount.
        (C8) AScaleTensor, BScaleTensor, BiasTensor and OutputTensor have the same DataType.
        (C9) BiasTensor has the Sizes of OutputTensor.

    Source: the page of DML_MATRIX_MULTIPLY_INTEGER_TO_FLOAT_OPERATOR_DESC; since feature level 6.2.
    """

    ATensor: Tensor
    AScaleTensor: Tensor
    AZeroPointTensor: OptionalTensor = None
    BTensor: Tensor
    BScaleTensor: Tensor
    BZeroPointTensor: OptionalTensor = None
    BiasTensor: OptionalTensor = None
    OutputTensor: Tensor


_SCALES_AND_ZERO_POINTS = {"A": -2, "B": -1, "Output": -2}
"""Which dimension of the output theirs is."""


def _along(desc: Any) -> Along:
    a, b = desc.ATensor.Sizes, desc.BTensor.Sizes
    counts = {-2: a[-2], -1: b[-1]} if min(len(a), len(b)) >= 2 else {}
    return {
        name: (axis, counts[axis])
        for side, axis in _SCALES_AND_ZERO_POINTS.items()
        for name in (f"{side}ScaleTensor", f"{side}ZeroPointTensor")
        if name in desc.__dataclass_fields__ and axis in counts
    }


def _constraints(desc: DML_MATRIX_MULTIPLY_INTEGER_OPERATOR_DESC) -> Iterator[ConstraintFailure]:
    return _of_matrices(desc, "(C1)", "(C2)", "(C3)", "(C4)", "(C5)")


def _constraints_of_quantised(desc: DML_QUANTIZED_LINEAR_MATRIX_MULTIPLY_OPERATOR_DESC) -> Iterator[ConstraintFailure]:
    yield from _of_matrices(desc, "(C1)", "(C2)", "(C3)", "(C4)", "(C5)")
    yield from same(desc, "(C7)", "DimensionCount", *_parameters(desc))


def _constraints_of_floats(desc: DML_MATRIX_MULTIPLY_INTEGER_TO_FLOAT_OPERATOR_DESC) -> Iterator[ConstraintFailure]:
    yield from _of_matrices(desc, "(C1)", "(C2)", "(C3)", "(C4)", "(C5)")
    yield from same(desc, "(C7)", "DimensionCount", *_parameters(desc))
    bias = [] if desc.BiasTensor is None else ["BiasTensor"]
    yield from same(desc, "(C8)", "DataType", "AScaleTensor", "BScaleTensor", *bias, "OutputTensor")
    if desc.BiasTensor is not None:
        # Those that A and B give: while outputs are inferred, OutputTensor has others.
        sizes = tuple([size for (size,) in _infer_sizes(desc).get("OutputTensor", ())])
        if len(desc.BiasTensor.Sizes) == len(sizes) and desc.BiasTensor.Sizes != sizes:
            found = str(desc.BiasTensor.Sizes)
            yield ConstraintFailure("(C9)", "BiasTensor.Sizes", found, f"{sizes}, that of OutputTensor")


def _parameters(desc: Any) -> list[str]:
    """The scales and zero points that there are."""
    names = [name for name in desc.__dataclass_fields__ if "Scale" in name or "ZeroPoint" in name]
    return [name for name in names if getattr(desc, name) is not None]


def _of_matrices(
    desc: Any, count: str, types: str, outer: str, inner: str, parameters: str
) -> Iterator[ConstraintFailure]:
    """Those of all three, each by its label."""
    found = _parameters(desc)
    there = [name for name in desc.__dataclass_fields__ if getattr(desc, name) is not None]
    yield from same(desc, count, "DimensionCount", *[name for name in there if name not in found])
    yield from wrong_types(desc, types)
    a, b = desc.ATensor.Sizes, desc.BTensor.Sizes
    if len(a) == len(b) >= 2:
        for i, (of_b, size) in enumerate(zip(b[:-2], a[:-2], strict=True)):
            if of_b != size:
                yield ConstraintFailure(outer, f"BTensor.Sizes[{i}]", str(of_b), f"{size}, that of ATensor")
        if b[-2] != a[-1]:
            expected = f"{a[-1]}, that of ATensor.Sizes[{len(a) - 1}]"
            yield ConstraintFailure(inner, f"BTensor.Sizes[{len(b) - 2}]", str(b[-2]), expected)
        yield from wrong_parameters(desc, parameters, _along(desc), len(a))


def _infer_sizes(desc: Any) -> dict[str, Choices]:
    a, b = desc.ATensor.Sizes, desc.BTensor.Sizes
    if not len(a) == len(b) >= 2:
        return {}
    return {"OutputTensor": tuple((size,) for size in (*a[:-1], b[-1]))}


def _align(desc: Any, inputs: Sequence[Layout | None]) -> list[Layout | None]:
    return aligned(desc, inputs, _along(desc), len(desc.ATensor.Sizes))


def _independent(desc: Any) -> Independence:
    """Batch and channels of all, the rows of A and the columns of B."""
    rank = len(desc.OutputTensor.Sizes)
    *outer, row, column = range(rank)
    matrices: dict[str, Sequence[int | None]] = {
        "ATensor": [*outer, row, None],
        "BTensor": [*outer, None, column],
        "OutputTensor": [*outer, row, column],
    }
    if getattr(desc, "BiasTensor", None) is not None:
        matrices["BiasTensor"] = [*outer, row, column]
    return {**matrices, **lined_up(desc, _along(desc), rank)}


def _sums(a: Array, a_zero_point: Array | None, b: Array, b_zero_point: Array | None) -> Array:
    """Modulo 2^64."""
    with np.errstate(over="ignore"):
        total: Array = np.matmul(differences(a, a_zero_point), differences(b, b_zero_point))
        return total


def _reference(desc: Any, a: Array, a_zero_point: Array | None, b: Array, b_zero_point: Array | None) -> Array:
    return _sums(a, a_zero_point, b, b_zero_point).astype(np.int32)


def _factor(a_scale: Array, b_scale: Array) -> Array:
    """In double precision, in which the product of two singles is exact."""
    with np.errstate(all="ignore"):
        product: Array = a_scale.astype(np.float64) * b_scale.astype(np.float64)
        return product


def _quantised(
    desc: Any,
    a: Array,
    a_scale: Array,
    a_zero_point: Array | None,
    b: Array,
    b_scale: Array,
    b_zero_point: Array | None,
    scale: Array,
    zero_point: Array | None,
) -> Array:
    total = _sums(a, a_zero_point, b, b_zero_point)
    return requantised(total, _factor(a_scale, b_scale), scale, zero_point, DTYPES[desc.OutputTensor.DataType])


def _to_float(
    desc: Any,
    a: Array,
    a_scale: Array,
    a_zero_point: Array | None,
    b: Array,
    b_scale: Array,
    b_zero_point: Array | None,
    bias: Array | None,
) -> Array:
    total = _sums(a, a_zero_point, b, b_zero_point)
    with np.errstate(all="ignore"):
        y = total.astype(np.float64) * _factor(a_scale, b_scale)
        return rounded(y if bias is None else y + bias.astype(np.float64), a_scale.dtype)


MATRIX_MULTIPLY_INTEGER = OperatorSpec(
    operator_type=OperatorType.MATRIX_MULTIPLY_INTEGER,
    desc=DML_MATRIX_MULTIPLY_INTEGER_OPERATOR_DESC,
    constraints=_constraints,
    infer_sizes=_infer_sizes,
    sizes_rule="(C6)",
    reference=_reference,
    independent=_independent,
    align=_align,
    support=support_table("""
        DML_FEATURE_LEVEL_5_2 and above
        ATensor          | Input          | 2 to 4 | INT8, UINT8
        AZeroPointTensor | Optional input | 1 to 4 | INT8, UINT8
        BTensor          | Input          | 2 to 4 | INT8, UINT8
        BZeroPointTensor | Optional input | 1 to 4 | INT8, UINT8
        OutputTensor     | Output         | 2 to 4 | INT32
        DML_FEATURE_LEVEL_4_0 and above
        ATensor          | Input          | 2 to 4 | INT8, UINT8
        AZeroPointTensor | Optional input | 1 to 4 | INT8, UINT8
        BTensor          | Input          | 2 to 4 | INT8, UINT8
        BZeroPointTensor | Optional input | 2 to 4 | INT8, UINT8
        OutputTensor     | Output         | 2 to 4 | INT32
        DML_FEATURE_LEVEL_2_1 and above
        ATensor          | Input          | 4      | INT8, UINT8
        AZeroPointTensor | Optional input | 4      | INT8, UINT8
        BTensor          | Input          | 4      | INT8, UINT8
        BZeroPointTensor | Optional input | 4      | INT8, UINT8
        OutputTensor     | Output         | 4      | INT32
    """),
)

QUANTIZED_LINEAR_MATRIX_MULTIPLY = OperatorSpec(
    operator_type=OperatorType.QUANTIZED_LINEAR_MATRIX_MULTIPLY,
    desc=DML_QUANTIZED_LINEAR_MATRIX_MULTIPLY_OPERATOR_DESC,
    constraints=_constraints_of_quantised,
    infer_sizes=_infer_sizes,
    sizes_rule="(C6)",
    reference=_quantised,
    independent=_independent,
    align=_align,
    support=support_table("""
        DML_FEATURE_LEVEL_4_0 and above
        ATensor               | Input          | 2 to 4 | INT8, UINT8
        AScaleTensor          | Input          | 1 to 4 | FLOAT32
        AZeroPointTensor      | Optional input | 1 to 4 | INT8, UINT8
        BTensor               | Input          | 2 to 4 | INT8, UINT8
        BScaleTensor          | Input          | 1 to 4 | FLOAT32
        BZeroPointTensor      | Optional input | 1 to 4 | INT8, UINT8
        OutputScaleTensor     | Input          | 1 to 4 | FLOAT32
        OutputZeroPointTensor | Optional input | 1 to 4 | INT8, UINT8
        OutputTensor          | Output         | 2 to 4 | INT8, UINT8
        DML_FEATURE_LEVEL_2_1 and above
        ATensor               | Input          | 4      | INT8, UINT8
        AScaleTensor          | Input          | 4      | FLOAT32
        AZeroPointTensor      | Optional input | 4      | INT8, UINT8
        BTensor               | Input          | 4      | INT8, UINT8
        BScaleTensor          | Input          | 4      | FLOAT32
        BZeroPointTensor      | Optional input | 4      | INT8, UINT8
        OutputScaleTensor     | Input          | 4      | FLOAT32
        OutputZeroPointTensor | Optional input | 4      | INT8, UINT8
        OutputTensor          | Output         | 4      | INT8, UINT8
    """),
)

MATRIX_MULTIPLY_INTEGER_TO_FLOAT = OperatorSpec(
    operator_type=OperatorType.MATRIX_MULTIPLY_INTEGER_TO_FLOAT,
    desc=DML_MATRIX_MULTIPLY_INTEGER_TO_FLOAT_OPERATOR_DESC,
    constraints=_constraints_of_floats,
    infer_sizes=_infer_sizes,
    sizes_rule="(C6)",
    reference=_to_float,
    independent=_independent,
    align=_align,
    support=support_table("""
        DML_FEATURE_LEVEL_6_2 and above
        ATensor          | Input          | 2 to 4 | INT32, INT16, INT8, UINT32, UINT16, UINT8
        AScaleTensor     | Input          | 1 to 4 | FLOAT32, FLOAT16
        AZeroPointTensor | Optional input | 1 to 4 | INT32, INT16, INT8, UINT32, UINT16, UINT8
        BTensor          | Input          | 2 to 4 | INT32, INT16, INT8, UINT32, UINT16, UINT8
        BScaleTensor     | Input          | 1 to 4 | FLOAT32, FLOAT16
        BZeroPointTensor | Optional input | 1 to 4 | INT32, INT16, INT8, UINT32, UINT16, UINT8
        BiasTensor       | Optional input | 2 to 4 | FLOAT32, FLOAT16
        OutputTensor     | Output         | 2 to 4 | FLOAT32, FLOAT16
    """),
)
