"""ONE_HOT, TOP_K and TOP_K1."""

from __future__ import annotations

from random import Random

from anydml import (
    DML_ONE_HOT_OPERATOR_DESC,
    DML_TOP_K1_OPERATOR_DESC,
    DML_TOP_K_OPERATOR_DESC,
    AxisDirection,
    TensorDataType,
)
from anydml.operators.schema import OperatorDesc
from fuzzing.common import JOINED, small_sizes, tensor_of


def good_one_hot(random: Random) -> OperatorDesc:
    sizes, data_type = [*small_sizes(random, most=64)], random.choice(JOINED)
    axis, depth = random.randrange(len(sizes)), random.choice([1, 2, 9])
    indices, vectors = ([size if i != axis else own for i, size in enumerate(sizes)] for own in (1, depth))
    kind = random.choice([TensorDataType[name] for name in ("INT64", "INT32", "UINT64", "UINT32")])
    return DML_ONE_HOT_OPERATOR_DESC(
        IndicesTensor=tensor_of(random, kind, indices),
        ValuesTensor=tensor_of(random, data_type, (*(1,) * (len(sizes) - 1), random.choice([2, 3]))),
        OutputTensor=tensor_of(random, data_type, vectors, True),
        Axis=axis,
    )


def good_top_k(random: Random) -> OperatorDesc:
    sizes = small_sizes(random)
    data_type = random.choice([each for each in JOINED if each != TensorDataType.FLOAT64])
    axis = random.randrange(len(sizes))
    k = random.randint(1, sizes[axis])
    chosen = [k if i == axis else size for i, size in enumerate(sizes)]
    kind = random.choice([TensorDataType.UINT32, TensorDataType.UINT64])
    members = {
        "InputTensor": tensor_of(random, data_type, sizes),
        "OutputValueTensor": tensor_of(random, data_type, chosen, True),
        "OutputIndexTensor": tensor_of(random, kind, chosen, True),
        "Axis": axis,
        "K": k,
    }
    if random.random() < 0.5:
        return DML_TOP_K_OPERATOR_DESC(**members)
    return DML_TOP_K1_OPERATOR_DESC(**members, AxisDirection=random.choice(list(AxisDirection)))


DRAWN = [good_one_hot, good_top_k]
