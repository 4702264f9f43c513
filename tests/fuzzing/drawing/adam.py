"""The step of an optimizer."""

from __future__ import annotations

from random import Random

from anydml import DML_ADAM_OPTIMIZER_OPERATOR_DESC, TensorDataType
from anydml.operators import spec
from anydml.operators.schema import OperatorDesc
from fuzzing.common import REALS, small_sizes, tensor_of


def good_adam(random: Random) -> OperatorDesc:
    sizes, data_type = small_sizes(random, 4), random.choice(REALS)
    tensors = {
        name: tensor_of(random, data_type, sizes, name.startswith("Output"))
        for name in spec("ADAM_OPTIMIZER").tensors
        if name != "TrainingStepTensor"
    }
    step = tensor_of(random, random.choice([data_type, TensorDataType.UINT32]), [1] * 4)
    numbers = {name: random.choice([0, 0.5, 0.999, 1, -1]) for name in ("LearningRate", "Beta1", "Beta2", "Epsilon")}
    return DML_ADAM_OPTIMIZER_OPERATOR_DESC(**tensors, **numbers, TrainingStepTensor=step)


DRAWN = [good_adam]
