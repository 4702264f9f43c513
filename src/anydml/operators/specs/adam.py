"""The step of an optimizer.

Decisions where the page is silent or contradicts itself:

1. TrainingStepTensor is of the type of the other tensors, as the page's table and its constraint have it, or UINT32, as
   its text has it.
2. At step 0, at which training starts by the text, the page's formula divides 0 by 0: Alpha is 1 there, as in ONNX.
3. All is computed in double precision and rounded once for each output. Parameters are those of the moments as they are
   before they are rounded.
4. Each output may be the memory of any input but TrainingStepTensor, laid out as that is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ...core.enums import OperatorType, TensorDataType
from ...core.strided_layout import Array
from ..constraints import rounded, same, sizes_of
from ..independence import all_dimensions
from ..schema import FLOAT, Choices, ConstraintFailure, OperatorDesc, OperatorSpec, Tensor, support_table


@dataclass(frozen=True, slots=True, kw_only=True)
class DML_ADAM_OPTIMIZER_OPERATOR_DESC(OperatorDesc):
    """A step of the Adam optimizer. May run in-place: each output over any input but TrainingStepTensor.

    M = Beta1 * M + (1 - Beta1) * G, V = Beta2 * V + (1 - Beta2) * G * G and X = X - LearningRate * Alpha * M / (sqrt(V) +
    Epsilon), with Alpha = sqrt(1 - Beta2 ^ T) / (1 - Beta1 ^ T), and 1 at step 0.

    Args:
        InputParametersTensor: X, the parameters.
        InputFirstMomentTensor: M, the running means of gradients.
        InputSecondMomentTensor: V, the running means of their squares.
        GradientTensor: G, the gradients.
        TrainingStepTensor: T, one number.
        OutputParametersTensor: the next X.
        OutputFirstMomentTensor: the next M.
        OutputSecondMomentTensor: the next V.
        LearningRate: the factor of the step.
        Beta1: what part of M stays.
        Beta2: what part of V stays.
        Epsilon: added to the root, so that it is not 0.

    Constraints:
        (C1) All tensors have the same DataType, but for a TrainingStepTensor of UINT32.
        (C2) All tensors have the same DimensionCount and, but for TrainingStepTensor, the same Sizes.
        (C3) All Sizes of TrainingStepTensor are 1.

    Source: the page of DML_ADAM_OPTIMIZER_OPERATOR_DESC; since feature level 3.0.
    """

    InputParametersTensor: Tensor
    InputFirstMomentTensor: Tensor
    InputSecondMomentTensor: Tensor
    GradientTensor: Tensor
    TrainingStepTensor: Tensor
    OutputParametersTensor: Tensor
    OutputFirstMomentTensor: Tensor
    OutputSecondMomentTensor: Tensor
    LearningRate: FLOAT
    Beta1: FLOAT
    Beta2: FLOAT
    Epsilon: FLOAT


_INPUTS = ("InputFirstMomentTensor", "InputSecondMomentTensor", "GradientTensor")
_OUTPUTS = ("OutputParametersTensor", "OutputFirstMomentTensor", "OutputSecondMomentTensor")


def _constraints(desc: DML_ADAM_OPTIMIZER_OPERATOR_DESC) -> Iterator[ConstraintFailure]:
    first, step = "InputParametersTensor", "TrainingStepTensor"
    typed = (*_INPUTS, *_OUTPUTS) if desc.TrainingStepTensor.DataType == TensorDataType.UINT32 else (
        *_INPUTS, step, *_OUTPUTS)  # fmt: skip
    yield from same(desc, "(C1)", "DataType", first, *typed)
    yield from same(desc, "(C2)", "DimensionCount", first, *_INPUTS, step, *_OUTPUTS)
    yield from same(desc, "(C2)", "Sizes", first, *_INPUTS)
    for i, size in enumerate(desc.TrainingStepTensor.Sizes):
        if size != 1:
            yield ConstraintFailure("(C3)", f"TrainingStepTensor.Sizes[{i}]", str(size), "1, of one number")


def _infer_sizes(desc: DML_ADAM_OPTIMIZER_OPERATOR_DESC) -> dict[str, Choices]:
    return dict.fromkeys(_OUTPUTS, sizes_of(desc.InputParametersTensor))


def _reference(
    desc: DML_ADAM_OPTIMIZER_OPERATOR_DESC, x: Array, m: Array, v: Array, gradient: Array, step: Array
) -> tuple[Array, ...]:
    wide, m, v, g, t = (each.astype(np.float64) for each in (x, m, v, gradient, step.reshape(())))
    with np.errstate(all="ignore"):
        m = desc.Beta1 * m + (1 - desc.Beta1) * g
        v = desc.Beta2 * v + (1 - desc.Beta2) * g * g
        alpha = np.sqrt(1 - desc.Beta2**t) / (1 - desc.Beta1**t) if t != 0 else 1.0
        wide = wide - desc.LearningRate * alpha * m / (np.sqrt(v) + desc.Epsilon)
        return tuple(rounded(each, x.dtype) for each in (wide, m, v))


ADAM_OPTIMIZER = OperatorSpec(
    operator_type=OperatorType.ADAM_OPTIMIZER,
    desc=DML_ADAM_OPTIMIZER_OPERATOR_DESC,
    constraints=_constraints,
    infer_sizes=_infer_sizes,
    sizes_rule="(C2)",
    reference=_reference,
    independent=all_dimensions,
    in_place=True,
    support=support_table("""
        DML_FEATURE_LEVEL_3_0 and above
        InputParametersTensor    | Input  | 4 | FLOAT32, FLOAT16
        InputFirstMomentTensor   | Input  | 4 | FLOAT32, FLOAT16
        InputSecondMomentTensor  | Input  | 4 | FLOAT32, FLOAT16
        GradientTensor           | Input  | 4 | FLOAT32, FLOAT16
        TrainingStepTensor       | Input  | 4 | FLOAT32, FLOAT16, UINT32
        OutputParametersTensor   | Output | 4 | FLOAT32, FLOAT16
        OutputFirstMomentTensor  | Output | 4 | FLOAT32, FLOAT16
        OutputSecondMomentTensor | Output | 4 | FLOAT32, FLOAT16
    """),
)
