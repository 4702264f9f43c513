"""NONZERO_COORDINATES."""

from __future__ import annotations

from math import prod
from random import Random

from anydml import DML_NONZERO_COORDINATES_OPERATOR_DESC, TensorDataType
from anydml.operators.schema import OperatorDesc
from anydml.operators.specs.nonzero import effective_rank
from fuzzing.common import JOINED, small_sizes, tensor_of

_TYPES = [each for each in JOINED if not each.name.endswith("64")]


def good_nonzero(random: Random) -> OperatorDesc:
    sizes, uint32 = small_sizes(random), TensorDataType.UINT32
    columns = random.randint(max(1, effective_rank(sizes)), len(sizes))
    rows = (*(1,) * random.randint(0, 6), prod(sizes), columns)
    return DML_NONZERO_COORDINATES_OPERATOR_DESC(
        InputTensor=tensor_of(random, random.choice(_TYPES), sizes),
        OutputCountTensor=tensor_of(random, uint32, (1,) * random.randint(1, 8), True),
        OutputCoordinatesTensor=tensor_of(random, uint32, rows, True),
    )


DRAWN = [good_nonzero]
