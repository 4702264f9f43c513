"""Random numbers."""

from __future__ import annotations

from random import Random

from anydml import DML_RANDOM_GENERATOR_OPERATOR_DESC, RandomGeneratorType, TensorDataType
from anydml.operators.schema import OperatorDesc
from fuzzing.common import small_sizes, tensor_of

UINT32 = TensorDataType.UINT32


def good_random(random: Random) -> OperatorDesc:
    state = (*(1,) * random.randint(0, 4), 6)
    return DML_RANDOM_GENERATOR_OPERATOR_DESC(
        InputStateTensor=tensor_of(random, UINT32, state),
        OutputTensor=tensor_of(random, UINT32, small_sizes(random), True),
        OutputStateTensor=random.choice([None, tensor_of(random, UINT32, state, True)]),
        Type=RandomGeneratorType.PHILOX_4X32_10,
    )


DRAWN = [good_random]
