"""What gathers elements and slices by an index or a tuple for each, and what scatters them."""

from __future__ import annotations

from random import Random

from anydml import (
    DML_GATHER_ELEMENTS_OPERATOR_DESC,
    DML_GATHER_ND1_OPERATOR_DESC,
    DML_GATHER_ND_OPERATOR_DESC,
    DML_SCATTER_ELEMENTS_OPERATOR_DESC,
    DML_SCATTER_ND_OPERATOR_DESC,
    TensorDataType,
)
from anydml.operators.schema import OperatorDesc
from fuzzing.common import JOINED, small_sizes, tensor_of

_INDICES = [TensorDataType[name] for name in ("INT64", "INT32", "UINT64", "UINT32")]


def good_elements(random: Random) -> OperatorDesc:
    sizes, data_type = small_sizes(random, most=256), random.choice(JOINED)
    axis = random.randrange(len(sizes))
    many = (*sizes[:axis], random.choice([1, 2, 3, 9]), *sizes[axis + 1 :])
    x, indices = tensor_of(random, data_type, sizes), tensor_of(random, random.choice(_INDICES), many)
    if random.random() < 0.5:
        y = tensor_of(random, data_type, many, True)
        return DML_GATHER_ELEMENTS_OPERATOR_DESC(InputTensor=x, IndicesTensor=indices, OutputTensor=y, Axis=axis)
    return DML_SCATTER_ELEMENTS_OPERATOR_DESC(
        InputTensor=x,
        IndicesTensor=indices,
        UpdatesTensor=tensor_of(random, data_type, many),
        OutputTensor=tensor_of(random, data_type, sizes, True),
        Axis=axis,
    )


def good_tuples(random: Random) -> OperatorDesc:
    sizes, data_type = small_sizes(random, random.choice([1, 2, 3]), most=64), random.choice(JOINED)
    batch = random.choice([0, 0, random.randrange(len(sizes))])
    coordinates = random.randint(1, len(sizes) - batch)
    tuples = (*sizes[:batch], *small_sizes(random, random.choice([0, 1, 2]), most=16), coordinates)
    result = (*tuples[:-1], *sizes[batch + coordinates :])
    rank = max(len(sizes), len(tuples), len(result)) + random.choice([0, 0, 1])

    def led(own: tuple[int, ...]) -> tuple[int, ...]:
        return (1,) * (rank - len(own)) + own

    members = {
        "InputTensor": tensor_of(random, data_type, led(sizes)),
        "IndicesTensor": tensor_of(random, random.choice(_INDICES), led(tuples)),
        "InputDimensionCount": len(sizes),
        "IndicesDimensionCount": len(tuples),
    }
    if batch == 0 and random.random() < 0.5:
        updates, y = tensor_of(random, data_type, led(result)), tensor_of(random, data_type, led(sizes), True)
        return DML_SCATTER_ND_OPERATOR_DESC(**members, UpdatesTensor=updates, OutputTensor=y)
    y = tensor_of(random, data_type, led(result), True)
    if batch == 0 and random.random() < 0.5:
        return DML_GATHER_ND_OPERATOR_DESC(**members, OutputTensor=y)
    return DML_GATHER_ND1_OPERATOR_DESC(**members, OutputTensor=y, BatchDimensionCount=batch)


DRAWN = [good_elements, good_tuples]
