"""CUMULATIVE_SUMMATION and CUMULATIVE_PRODUCT: prefix scans, running sums and products, along an axis."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ...core import enums
from ...core.enums import OperatorType
from ...core.strided_layout import Array
from ..constraints import widened
from ..independence import all_but
from ..schema import BOOL, UINT, Choices, ConstraintFailure, OperatorDesc, OperatorSpec, Tensor, support_table


@dataclass(frozen=True, slots=True, kw_only=True)
class DML_CUMULATIVE_SUMMATION_OPERATOR_DESC(OperatorDesc):
    """Adds the elements along an axis and writes the running sum.

    Integers wrap modulo 2^n. FLOAT32 is summed in double and FLOAT16 in single precision, and rounded once for each
    output. May run in-place.

    Args:
        InputTensor: the elements to add.
        OutputTensor: the sums, of the same type and sizes.
        Axis: the dimension along which is added.
        AxisDirection: INCREASING starts at index 0 of the axis, DECREASING at its end.
        HasExclusiveSum: leaves the current element out of its sum, so that the first sum is 0 and the total appears nowhere.

    Constraints:
        (C1) InputTensor and OutputTensor have the same DataType.
        (C2) InputTensor and OutputTensor have the same DimensionCount and Sizes.
        (C3) Axis is less than the DimensionCount of InputTensor.

    Source: the page of DML_CUMULATIVE_SUMMATION_OPERATOR_DESC; since feature level 2.1.
    """

    InputTensor: Tensor
    OutputTensor: Tensor
    Axis: UINT
    AxisDirection: enums.AxisDirection = enums.AxisDirection.INCREASING
    HasExclusiveSum: BOOL = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DML_CUMULATIVE_PRODUCT_OPERATOR_DESC(OperatorDesc):
    """Multiplies the elements along an axis and writes the running product.

    Integers wrap modulo 2^n. FLOAT32 is multiplied in double and FLOAT16 in single precision, and rounded once for each
    output. May run in-place.

    Args:
        InputTensor: the elements to multiply.
        OutputTensor: the products, of the same type and sizes.
        Axis: the dimension along which is multiplied.
        AxisDirection: INCREASING starts at index 0 of the axis, DECREASING at its end.
        HasExclusiveProduct: leaves the current element out of its product, so that the first product is 1 and the
            total appears nowhere.

    Constraints:
        (C1) InputTensor and OutputTensor have the same DataType.
        (C2) InputTensor and OutputTensor have the same DimensionCount and Sizes.
        (C3) Axis is less than the DimensionCount of InputTensor.

    Source: the page of DML_CUMULATIVE_PRODUCT_OPERATOR_DESC; since feature level 3.1.
    """

    InputTensor: Tensor
    OutputTensor: Tensor
    Axis: UINT
    AxisDirection: enums.AxisDirection = enums.AxisDirection.INCREASING
    HasExclusiveProduct: BOOL = False


_Desc = DML_CUMULATIVE_SUMMATION_OPERATOR_DESC | DML_CUMULATIVE_PRODUCT_OPERATOR_DESC


def _constraints(desc: _Desc) -> Iterator[ConstraintFailure]:
    x, y = desc.InputTensor, desc.OutputTensor
    if y.DataType != x.DataType:
        expected = f"{x.DataType.name}, that of InputTensor"
        yield ConstraintFailure("(C1)", "OutputTensor.DataType", y.DataType.name, expected)
    if len(y.Sizes) != len(x.Sizes):
        expected = f"{len(x.Sizes)}, that of InputTensor"
        yield ConstraintFailure("(C2)", "OutputTensor.DimensionCount", str(len(y.Sizes)), expected)
    if desc.Axis >= len(x.Sizes):
        yield ConstraintFailure(
            "(C3)", "Axis", str(desc.Axis), f"less than {len(x.Sizes)}, the DimensionCount of InputTensor"
        )


def _infer_sizes(desc: _Desc) -> dict[str, Choices]:
    return {"OutputTensor": tuple((size,) for size in desc.InputTensor.Sizes)}


def _scan(operation: np.ufunc, desc: _Desc, exclusive: bool, x: Array) -> Array:
    """y[i] = operation over x[0..i], or over x[0..i-1] where exclusive, i counted in the axis's direction."""
    wide = widened(np.moveaxis(x, desc.Axis, -1))
    if desc.AxisDirection == enums.AxisDirection.DECREASING:
        wide = wide[..., ::-1]
    if exclusive:
        wide = np.concatenate([np.full_like(wide[..., :1], operation.identity), wide[..., :-1]], axis=-1)
    with np.errstate(all="ignore"):
        y = operation.accumulate(wide, axis=-1, dtype=wide.dtype).astype(x.dtype)
    if desc.AxisDirection == enums.AxisDirection.DECREASING:
        y = y[..., ::-1]
    return np.moveaxis(y, -1, desc.Axis)


def _running_sum(desc: DML_CUMULATIVE_SUMMATION_OPERATOR_DESC, x: Array) -> Array:
    return _scan(np.add, desc, desc.HasExclusiveSum, x)


def _running_product(desc: DML_CUMULATIVE_PRODUCT_OPERATOR_DESC, x: Array) -> Array:
    return _scan(np.multiply, desc, desc.HasExclusiveProduct, x)


CUMULATIVE_SUMMATION = OperatorSpec(
    operator_type=OperatorType.CUMULATIVE_SUMMATION,
    desc=DML_CUMULATIVE_SUMMATION_OPERATOR_DESC,
    constraints=_constraints,
    infer_sizes=_infer_sizes,
    sizes_rule="(C2)",
    reference=_running_sum,
    independent=lambda desc: all_but(desc, [desc.Axis]),
    in_place=True,
    support=support_table("""
        DML_FEATURE_LEVEL_5_0 and above
        InputTensor  | Input  | 1 to 8 | FLOAT32, FLOAT16, INT64, INT32, UINT64, UINT32
        OutputTensor | Output | 1 to 8 | FLOAT32, FLOAT16, INT64, INT32, UINT64, UINT32
        DML_FEATURE_LEVEL_4_0 and above
        InputTensor  | Input  | 1 to 8 | FLOAT32, FLOAT16, INT32, UINT32
        OutputTensor | Output | 1 to 8 | FLOAT32, FLOAT16, INT32, UINT32
        DML_FEATURE_LEVEL_2_1 and above
        InputTensor  | Input  | 4      | FLOAT32, FLOAT16, INT32, UINT32
        OutputTensor | Output | 4      | FLOAT32, FLOAT16, INT32, UINT32
    """),
)

CUMULATIVE_PRODUCT = OperatorSpec(
    operator_type=OperatorType.CUMULATIVE_PRODUCT,
    desc=DML_CUMULATIVE_PRODUCT_OPERATOR_DESC,
    constraints=_constraints,
    infer_sizes=_infer_sizes,
    sizes_rule="(C2)",
    reference=_running_product,
    independent=lambda desc: all_but(desc, [desc.Axis]),
    in_place=True,
    support=support_table("""
        DML_FEATURE_LEVEL_5_0 and above
        InputTensor  | Input  | 1 to 8 | FLOAT32, FLOAT16, INT64, INT32, UINT64, UINT32
        OutputTensor | Output | 1 to 8 | FLOAT32, FLOAT16, INT64, INT32, UINT64, UINT32
        DML_FEATURE_LEVEL_4_0 and above
        InputTensor  | Input  | 1 to 8 | FLOAT32, FLOAT16, INT32, UINT32
        OutputTensor | Output | 1 to 8 | FLOAT32, FLOAT16, INT32, UINT32
        DML_FEATURE_LEVEL_3_1 and above
        InputTensor  | Input  | 4      | FLOAT32, FLOAT16, INT32, UINT32
        OutputTensor | Output | 4      | FLOAT32, FLOAT16, INT32, UINT32
    """),
)
