"""The step of an optimizer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..device import Device
from ._apply import apply_all, leading
from ._documentation import documented
from ._names import refuse_unknown
from ._operand_adapter import Shape, adapter_for
from ._types import Operand, Output, Result

_RANK = 4
"""The dimensions that the operator has."""


@documented("ADAM_OPTIMIZER")
def adam_optimizer(
    input_parameters: Operand,
    input_first_moment: Operand,
    input_second_moment: Operand,
    gradient: Operand,
    training_step: Operand | float,
    *,
    learning_rate: float = 1e-3,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-8,
    out: list[Output] | tuple[Output, ...] | None = None,
    device: Device | str | None = None,
    **others: Any,
) -> list[Result]:
    """A step of the Adam optimizer: DML_OPERATOR_ADAM_OPTIMIZER.

    m = beta1 * m + (1 - beta1) * g, v = beta2 * v + (1 - beta2) * g * g, x = x - learning_rate * alpha * m / (sqrt(v) +
    epsilon), with alpha = sqrt(1 - beta2^t) / (1 - beta1^t), and 1 at step 0.

    Args:
        input_parameters: x, an array or an expression, float32 or float16 of at most 4 dimensions.
        input_first_moment: m, likewise, of the same shape; zeros at first.
        input_second_moment: v, likewise.
        gradient: g, likewise.
        training_step: t, a number, or an array or an expression of one, of the same type or uint32. The first step is
            1, with the correction for moments that were 0.
        learning_rate: the factor of the step.
        beta1: what part of the first moment stays.
        beta2: what part of the second moment stays.
        epsilon: added to the root, so that it is not 0.
        out: a list of three arrays to write to, of any strides; each may be an operand but the training step. Returned.

    Returns:
        The next parameters, first and second moments, arrays like `input_parameters`.

    >>> options = {"learning_rate": 0.25, "beta1": 0.5, "beta2": 0.5, "epsilon": 0}
    >>> x, m, v = adam_optimizer([1.0, 2.0], [0.0, 0.0], [0.0, 0.0], [5.0, -0.5], 1, **options)
    >>> x
    array([0.75, 2.25], dtype=float32)
    """
    if others:
        refuse_unknown(adam_optimizer, "ADAM_OPTIMIZER", others)
    name = "ADAM_OPTIMIZER"
    operands = {
        "InputParametersTensor": input_parameters,
        "InputFirstMomentTensor": input_first_moment,
        "InputSecondMomentTensor": input_second_moment,
        "GradientTensor": gradient,
        "TrainingStepTensor": training_step,
    }
    seen = adapter_for(name, operands.values(), out, device).look("input_parameters", input_parameters)
    return apply_all(
        name,
        out,
        device,
        spread=_to_4,
        lent=max(0, _RANK - len(seen.shape)),
        **operands,
        LearningRate=learning_rate,
        Beta1=beta1,
        Beta2=beta2,
        Epsilon=epsilon,
    )


def _to_4(name: str, shapes: Mapping[str, Shape]) -> dict[str, Shape]:
    """As many dimensions as the operator has, those that are missing before the others."""
    return {label: leading(shape, _RANK) for label, shape in shapes.items() if len(shape) < _RANK}
