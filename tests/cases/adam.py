"""ADAM_OPTIMIZER: coefficients that are powers of 2, steps of each type, and what is special about floats."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from anydml import DML_ADAM_OPTIMIZER_OPERATOR_DESC, TensorDataType
from support_tables import FLOATS, Shape, Support

from . import Case, Negative, tensor, tensor_of

INF, NAN = np.inf, np.nan
NAMES = ("InputParametersTensor", "InputFirstMomentTensor", "InputSecondMomentTensor", "GradientTensor")
OUTPUTS = ("OutputParametersTensor", "OutputFirstMomentTensor", "OutputSecondMomentTensor")


def _case(
    id: str, inputs: Sequence[Any], step: Any, outputs: Sequence[Any], dtype: Any = np.float32, step_type: Any = None,
    strides: Sequence[Sequence[int] | None] = (None,) * 7, **options: float,
) -> Case:  # fmt: skip
    x = np.asarray(inputs[0], dtype)
    shape = (1,) * (4 - x.ndim) + x.shape
    given = [np.broadcast_to(np.asarray(each, dtype), x.shape).reshape(shape) for each in inputs]
    written = [np.broadcast_to(np.asarray(each, dtype), x.shape).reshape(shape) for each in outputs]
    t = np.full((1, 1, 1, 1), step, step_type or dtype)
    members: dict[str, Any] = {"LearningRate": 1, "Beta1": 0.5, "Beta2": 0.75, "Epsilon": 0, **options}
    tensors = {name: tensor_of(each, own) for name, each, own in zip(NAMES, given, strides[:4], strict=True)}
    tensors |= {name: tensor_of(each, own) for name, each, own in zip(OUTPUTS, written, strides[4:], strict=True)}
    desc = DML_ADAM_OPTIMIZER_OPERATOR_DESC(**tensors, TrainingStepTensor=tensor_of(t), **members)
    return Case(f"adam_optimizer-{id}", desc, [*given, t], written)


def _cases() -> list[Case]:
    cases = []
    for dtype in (np.float32, np.float16):
        kind = np.dtype(dtype).name
        # M = 0.5 * M + 0.5 * G and V = 0.75 * V + 0.25 * G * G: of (2, 4, 4) and of (0, 0, 2).
        inputs = [[1, 10], [2, 0], [4, 0], [4, 2]]
        m, v = np.array([3.0, 1.0]), np.array([7.0, 1.0])
        for step, alpha in ((1, 0.5 / 0.5), (2, np.sqrt(7 / 16) / 0.75), (0, 1.0), (40, 1.0)):
            outputs = [np.array([1, 10]) - alpha * m / np.sqrt(v), m, v]
            if step == 40:
                outputs[0] = np.array([1, 10]) - np.sqrt(1 - 0.75**40) / (1 - 0.5**40) * m / np.sqrt(v)
            cases.append(_case(f"{kind}-step-{step}", inputs, step, outputs, dtype))
            if dtype == np.float32 or step < 3:
                cases.append(_case(f"{kind}-step-{step}-uint32", inputs, step, outputs, dtype, np.uint32))
        outputs = [np.array([1, 10]) - 0.25 * m / (np.sqrt(v) + 2), m, v]
        cases.append(_case(f"{kind}-epsilon", inputs, 1, outputs, dtype, LearningRate=0.25, Epsilon=2))
        # Squares beyond the type's range.
        largest = float(np.finfo(dtype).max)
        outputs = [[0, -1], [largest / 2, 0.5], [INF, 0.25]]
        cases.append(_case(f"{kind}-wide", [[1, 0], 0, 0, [largest, 1]], 1, outputs, dtype))
        outputs = [[NAN, NAN, NAN, NAN], [0, INF, NAN, 0], [0, INF, NAN, -0.75]]
        cases.append(_case(f"{kind}-special", [[1] * 4, 0, [0, 0, 0, -1], [0, INF, NAN, 0]], 1, outputs, dtype))
    x = np.arange(6, dtype=np.float32).reshape(1, 2, 1, 3)
    inputs, outputs = [x, 0, 0, 4], [x - 1, 2, 4]
    strides = ((0, 1, 9, 2), (0, 9, 1, 3), (30, 3, 3, 1), (1, 1, 1, 2), (9, 1, 5, 2), (6, 3, 3, 1), (20, 1, 1, 5))
    cases.append(_case("strided", inputs, 1, outputs, strides=strides))
    return cases


CASES = _cases()


def _adam(**members: Any) -> DML_ADAM_OPTIMIZER_OPERATOR_DESC:
    tensors = dict.fromkeys((*NAMES, *OUTPUTS), tensor((2, 3, 4, 5)))
    numbers = {"LearningRate": 1, "Beta1": 0.5, "Beta2": 0.5, "Epsilon": 0}
    return DML_ADAM_OPTIMIZER_OPERATOR_DESC(
        **{**tensors, "TrainingStepTensor": tensor((1, 1, 1, 1)), **numbers, **members}
    )


RIGHT = [_adam(), _adam(TrainingStepTensor=tensor((1, 1, 1, 1), "UINT32"))]
NEGATIVES = [
    *(
        negative
        for name in (*NAMES[1:], *OUTPUTS)
        for negative in (
            Negative("(C1)", _adam(**{name: tensor((2, 3, 4, 5), "FLOAT16")}), f"{name}.DataType", "FLOAT16",
                "FLOAT32, that of InputParametersTensor"),
            Negative("(C2)", _adam(**{name: tensor((2, 3, 4, 6))}), f"{name}.Sizes{'[3]' * (name in OUTPUTS)}", "6",
                "5"),
        )
    ),
    Negative("(C1)", _adam(TrainingStepTensor=tensor((1, 1, 1, 1), "FLOAT16")), "TrainingStepTensor.DataType",
        "FLOAT16", "FLOAT32, that of InputParametersTensor"),
    Negative("(C3)", _adam(TrainingStepTensor=tensor((1, 1, 4, 1))), "TrainingStepTensor.Sizes[2]", "4", "1, of one"),
]  # fmt: skip


def _others(operator: str, tensor: str, shape: Shape) -> Mapping[str, Shape]:
    data = (shape[0], TensorDataType.FLOAT32) if shape[1] == TensorDataType.UINT32 else shape
    return {**dict.fromkeys((*NAMES, "TrainingStepTensor", *OUTPUTS), data), tensor: shape}


SUPPORT = {
    "ADAM_OPTIMIZER": Support(
        {
            **{name: [("3.0", 4, 4, FLOATS)] for name in NAMES},
            "TrainingStepTensor": [("3.0", 4, 4, f"{FLOATS} UINT32")],
            **{name: [("3.0", 4, 4, FLOATS)] for name in OUTPUTS},
        },
        others=_others,
    )
}

KERNELS = {"ADAM_OPTIMIZER": "a step of Adam"}
