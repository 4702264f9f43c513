"""DYNAMIC_QUANTIZE_LINEAR: a tensor quantised by the scale and the zero point that its own elements ask for.

Decisions where the page is silent, or its formula leaves the range: what the page has does not keep 0 in the range, does
not round the zero point, and divides by 0 for a constant.

1. As in ONNX, the range is that of the elements and of 0: from min(0, x) to max(0, x), so that 0 is quantised exactly.
   INT8, which ONNX does not have, is by analogy: Min is -128, and Max 127.
2. OutputScale is (max - min) / 255, in double precision, rounded once to FLOAT32; 1 where that is 0, as it is where all
   elements are. ONNX Runtime rounds the difference to FLOAT32 first, and may be a unit in the last place off.
3. OutputZeroPoint is clamp(round(-min / OutputScale) + Min), the quotient in FLOAT32, halves to the even integer.
4. OutputTensor is what ELEMENT_WISE_QUANTIZE_LINEAR gives by that scale and zero point: quotients are of FLOAT32, and a
   NaN is the zero point.
5. A NaN takes no part in the range. An infinity makes the scale infinite, and every element the zero point, which is Min.
6. Nothing runs in-place.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...core.enums import OperatorType
from ...core.strided_layout import DTYPES, Array
from ..constraints import same, sizes_of
from ..schema import Choices, ConstraintFailure, Independence, OperatorDesc, OperatorSpec, Tensor, support_table


@dataclass(frozen=True, slots=True, kw_only=True)
class DML_DYNAMIC_QUANTIZE_LINEAR_OPERATOR_DESC(OperatorDesc):
    """Quantises a tensor to the range of its own elements, and says the scale and the zero point.

    With min and max the least and the largest of all elements and 0, and Min and Max the ends of the output's type:
    OutputScale = (max - min) / (Max - Min), OutputZeroPoint = clamp(round(-min / OutputScale) + Min), and an element is
    clamp(round(x / OutputScale) + OutputZeroPoint), with halves to the even integer. Not in-place.

    Args:
        InputTensor: the real numbers x.
        OutputTensor: the quantised numbers.
        OutputScaleTensor: the scale, of one element.
        OutputZeroPointTensor: the zero point, of one element.

    Constraints:
        (C1) Every tensor has the same DimensionCount.
        (C2) OutputTensor and OutputZeroPointTensor have the same DataType.
        (C3) OutputTensor has the sizes of InputTensor, and the scale and the zero point have sizes of 1.

    Source: the page of DML_DYNAMIC_QUANTIZE_LINEAR_OPERATOR_DESC; since feature level 4.0.
    """

    InputTensor: Tensor
    OutputTensor: Tensor
    OutputScaleTensor: Tensor
    OutputZeroPointTensor: Tensor


_Desc = DML_DYNAMIC_QUANTIZE_LINEAR_OPERATOR_DESC


def _constraints(desc: _Desc) -> Iterator[ConstraintFailure]:
    yield from same(
        desc, "(C1)", "DimensionCount", "InputTensor", "OutputTensor", "OutputScaleTensor", "OutputZeroPointTensor"
    )
    yield from same(desc, "(C2)", "DataType", "OutputTensor", "OutputZeroPointTensor")


def _infer_sizes(desc: _Desc) -> dict[str, Choices]:
    one = tuple((1,) for _ in desc.InputTensor.Sizes)
    return {
        "OutputTensor": sizes_of(desc.InputTensor),
        "OutputScaleTensor": one,
        "OutputZeroPointTensor": one,
    }


def _reference(desc: _Desc, x: Array) -> tuple[Array, Array, Array]:
    dtype = DTYPES[desc.OutputTensor.DataType]
    limits = np.iinfo(dtype)
    x = x.astype(np.float32)
    with np.errstate(all="ignore"):
        numbers = np.where(np.isnan(x), np.float32(0), x)
        least, largest = min(0.0, float(numbers.min())), max(0.0, float(numbers.max()))
        scale = np.float32((largest - least) / 255)
        scale = scale if scale != 0 else np.float32(1)
        zero_point = _whole(np.float32(-least) / scale) + limits.min
        zero_point = np.clip(zero_point, limits.min, limits.max)
        y = np.clip(_whole(x / scale) + zero_point, limits.min, limits.max)
    one = (1,) * x.ndim
    return y.astype(dtype), np.full(one, scale, np.float32), np.full(one, zero_point, dtype)


def _whole(quotient: Any) -> Array:
    whole: Array = np.where(np.isnan(quotient), 0, np.rint(quotient)).astype(np.float64)
    return whole


def _independent(desc: _Desc) -> Independence:
    """Nothing: every element has a say in the range."""
    return {name: [None] * len(getattr(desc, name).Sizes) for name in desc.__dataclass_fields__}


DYNAMIC_QUANTIZE_LINEAR = OperatorSpec(
    operator_type=OperatorType.DYNAMIC_QUANTIZE_LINEAR,
    desc=DML_DYNAMIC_QUANTIZE_LINEAR_OPERATOR_DESC,
    constraints=_constraints,
    infer_sizes=_infer_sizes,
    sizes_rule="(C3)",
    reference=_reference,
    independent=_independent,
    support=support_table("""
        DML_FEATURE_LEVEL_4_0 and above
        InputTensor           | Input  | 1 to 8 | FLOAT32, FLOAT16
        OutputTensor          | Output | 1 to 8 | INT8, UINT8
        OutputScaleTensor     | Output | 1 to 8 | FLOAT32
        OutputZeroPointTensor | Output | 1 to 8 | INT8, UINT8
    """),
)
