"""Running sums and products."""

from __future__ import annotations

from random import Random
from typing import Any

from anydml import (
    DML_CUMULATIVE_PRODUCT_OPERATOR_DESC,
    DML_CUMULATIVE_SUMMATION_OPERATOR_DESC,
    AxisDirection,
    TensorDataType,
)
from anydml.operators.schema import OperatorDesc
from fuzzing.common import small_sizes, tensor_of

TALLIED = [TensorDataType[name] for name in ("FLOAT32", "FLOAT16", "INT32", "UINT32", "INT64", "UINT64")]


def good_tally(random: Random) -> OperatorDesc:
    sizes, data_type = small_sizes(random), random.choice(TALLIED)
    members: dict[str, Any] = {
        "InputTensor": tensor_of(random, data_type, sizes),
        "OutputTensor": tensor_of(random, data_type, sizes, True),
        "Axis": random.randrange(len(sizes)),
        "AxisDirection": random.choice(list(AxisDirection)),
    }
    exclusive = random.choice([True, False])
    if random.random() < 0.5:
        return DML_CUMULATIVE_SUMMATION_OPERATOR_DESC(**members, HasExclusiveSum=exclusive)
    return DML_CUMULATIVE_PRODUCT_OPERATOR_DESC(**members, HasExclusiveProduct=exclusive)


DRAWN = [good_tally, good_tally]
