"""Division by a norm along an axis.

Decision 1, as the page does not say where Epsilon comes in: it is the least that is divided by, Input / max(norm,
Epsilon), as in PyTorch. So it changes nothing where a norm is not close to 0, and a vector of zeros stays one, as in
ONNX. A norm is computed in double precision, and results are rounded once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ...core.enums import OperatorType
from ...core.strided_layout import Array
from ..constraints import gathered, rounded, same, sizes_of
from ..independence import all_but
from ..schema import FLOAT, UINT, Choices, ConstraintFailure, OperatorDesc, OperatorSpec, Tensor, support_table


@dataclass(frozen=True, slots=True, kw_only=True)
class DML_LP_NORMALIZATION_OPERATOR_DESC(OperatorDesc):
    """Input / max(norm, Epsilon), the norm of the elements along an axis: (sum of |x| ^ P) ^ (1 / P). Not in-place.

    Args:
        InputTensor: the elements.
        OutputTensor: the results, of the same type and sizes.
        Axis: the dimension along which norms are taken.
        Epsilon: the least divisor, so that it is not 0; 0.00001 by default, as is recommended.
        P: the exponent, 1 or 2.

    Constraints:
        (C1) InputTensor and OutputTensor have the same DataType.
        (C2) InputTensor and OutputTensor have the same DimensionCount and Sizes.
        (C3) Axis is less than the DimensionCount of InputTensor.
        (C4) P is 1 or 2.

    Source: the page of DML_LP_NORMALIZATION_OPERATOR_DESC; since feature level 1.0.
    """

    InputTensor: Tensor
    OutputTensor: Tensor
    Axis: UINT
    Epsilon: FLOAT = 1e-5
    P: UINT


def _constraints(desc: DML_LP_NORMALIZATION_OPERATOR_DESC) -> Iterator[ConstraintFailure]:
    yield from same(desc, "(C1)", "DataType", "InputTensor", "OutputTensor")
    yield from same(desc, "(C2)", "DimensionCount", "InputTensor", "OutputTensor")
    count = len(desc.InputTensor.Sizes)
    if desc.Axis >= count:
        yield ConstraintFailure("(C3)", "Axis", str(desc.Axis), f"less than {count}, the DimensionCount of InputTensor")
    if desc.P not in (1, 2):
        yield ConstraintFailure("(C4)", "P", str(desc.P), "1 or 2")


def _infer_sizes(desc: DML_LP_NORMALIZATION_OPERATOR_DESC) -> dict[str, Choices]:
    return {"OutputTensor": sizes_of(desc.InputTensor)}


def _reference(desc: DML_LP_NORMALIZATION_OPERATOR_DESC, x: Array) -> Array:
    wide = x.astype(np.float64)
    sizes = [1 if i == desc.Axis else size for i, size in enumerate(x.shape)]
    with np.errstate(all="ignore"):
        sums = np.add.reduce(gathered(np.abs(wide) ** desc.P, [desc.Axis]), axis=-1)
        norms = np.maximum(sums if desc.P == 1 else np.sqrt(sums), desc.Epsilon)
        return rounded(wide / norms.reshape(sizes), x.dtype)


LP_NORMALIZATION = OperatorSpec(
    operator_type=OperatorType.LP_NORMALIZATION,
    desc=DML_LP_NORMALIZATION_OPERATOR_DESC,
    constraints=_constraints,
    infer_sizes=_infer_sizes,
    sizes_rule="(C2)",
    reference=_reference,
    independent=lambda desc: all_but(desc, [desc.Axis]),
    support=support_table("""
        DML_FEATURE_LEVEL_1_0 and above
        InputTensor  | Input  | 4 | FLOAT32, FLOAT16
        OutputTensor | Output | 4 | FLOAT32, FLOAT16
    """),
)
