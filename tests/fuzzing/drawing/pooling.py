"""Pooling."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

from anydml import (
    DML_BUFFER_TENSOR_DESC,
    DML_MAX_UNPOOLING_OPERATOR_DESC,
    DML_QUANTIZED_LINEAR_AVERAGE_POOLING_OPERATOR_DESC,
    TensorDataType,
)
from anydml.operators import spec
from anydml.operators.schema import OperatorDesc
from fuzzing.common import small_sizes, tensor_of

BYTES = [TensorDataType.INT8, TensorDataType.UINT8]


def pooling_numbers(
    random: Random, sizes: Sequence[int], dilated: bool = True, ceiling: bool = True
) -> tuple[dict[str, list[int]], list[int]]:
    """Options that fit, and the output sizes that they give."""
    options: dict[str, list[int]] = {
        name: [] for name in ("Strides", "WindowSize", "StartPadding", "EndPadding", "Dilations")
    }
    places = []
    for size in sizes:
        start, end = random.choice([0, 0, 1, 2]), random.choice([0, 0, 1, 3])
        dilation, stride = random.choice([1, 1, 2, 3] if dilated else [1]), random.choice([1, 1, 2, 5])
        window = random.randint(1, (size + start + end - 1) // dilation + 1)
        rest = size + start + end - ((window - 1) * dilation + 1)
        places.append(rest // stride + 1 + (ceiling and rest % stride > 0 and random.random() < 0.3))
        for name, value in zip(options, (stride, window, start, end, dilation), strict=True):
            options[name].append(value)
    return options, places


def good_pooling(random: Random) -> OperatorDesc:
    sizes = (random.randint(1, 2), random.randint(1, 3), *small_sizes(random, random.choice([2, 3]), 64))
    options, places = pooling_numbers(random, sizes[2:])
    types = random.choice(BYTES), random.choice(BYTES)

    def quantisation(data_type: TensorDataType) -> DML_BUFFER_TENSOR_DESC:
        channels = random.choice([1, sizes[1]])
        return tensor_of(random, data_type, (1, channels, 1, 1))

    real = TensorDataType.FLOAT32
    return DML_QUANTIZED_LINEAR_AVERAGE_POOLING_OPERATOR_DESC(
        InputTensor=tensor_of(random, types[0], sizes),
        InputScaleTensor=quantisation(real),
        InputZeroPointTensor=random.choice([None, quantisation(types[0])]),
        OutputScaleTensor=quantisation(real),
        OutputZeroPointTensor=random.choice([None, quantisation(types[1])]),
        OutputTensor=tensor_of(random, types[1], (*sizes[:2], *places), True),
        **options,
        IncludePadding=random.choice([True, False]),
    )


def good_float_pooling(random: Random) -> OperatorDesc:
    revisions = ["AVERAGE_POOLING", "AVERAGE_POOLING1", "LP_POOLING", "LP_POOLING1"]
    found = spec(random.choice([*revisions, "MAX_POOLING", "MAX_POOLING1", "MAX_POOLING2"]))
    sizes = (random.randint(1, 2), random.randint(1, 3), *small_sizes(random, random.choice([2, 3]), 64))
    options, places = pooling_numbers(random, sizes[2:], "Dilations" in found.members)
    data_type, output = random.choice(found.tensors["InputTensor"].data_types), (*sizes[:2], *places)
    more = {
        "IncludePadding": random.choice([True, False]),
        "P": random.choice([1, 2, 3, 2**32 - 1]),
        "OutputIndicesTensor": random.choice(
            [None, tensor_of(random, random.choice([TensorDataType.UINT32, TensorDataType.UINT64]), output, True)]
        ),
    }
    members: dict[str, Any] = {
        "InputTensor": tensor_of(random, data_type, sizes),
        "OutputTensor": tensor_of(random, data_type, output, True),
        **{name: value for name, value in {**options, **more}.items() if name in found.members},
    }
    return found.desc(**members)


def good_pooling_grad(random: Random) -> OperatorDesc:
    found = spec(random.choice(["AVERAGE_POOLING_GRAD", "MAX_POOLING_GRAD"]))
    spatial = random.choice([2, 3] if found.name == "AVERAGE_POOLING_GRAD" else [2])
    sizes = (random.randint(1, 2), random.randint(1, 3), *small_sizes(random, spatial, 64))
    options, places = pooling_numbers(random, sizes[2:], "Dilations" in found.members)
    data_type = random.choice(found.tensors["InputGradientTensor"].data_types)
    more = {"IncludePadding": random.choice([True, False]), "InputTensor": tensor_of(random, data_type, sizes)}
    members: dict[str, Any] = {
        "InputGradientTensor": tensor_of(random, data_type, (*sizes[:2], *places)),
        "OutputGradientTensor": tensor_of(random, data_type, sizes, True),
        **{name: value for name, value in {**options, **more}.items() if name in found.members},
    }
    return found.desc(**members)


def good_unpooling(random: Random) -> OperatorDesc:
    sizes, output = ((random.randint(1, 2), *small_sizes(random, 3, 64)) for _ in range(2))
    data_type = random.choice(spec("MAX_UNPOOLING").tensors["InputTensor"].data_types)
    return DML_MAX_UNPOOLING_OPERATOR_DESC(
        InputTensor=tensor_of(random, data_type, sizes),
        IndicesTensor=tensor_of(random, random.choice([TensorDataType.UINT32, TensorDataType.UINT64]), sizes),
        OutputTensor=tensor_of(random, data_type, output, True),
    )


DRAWN = [good_pooling, good_float_pooling, good_pooling_grad, good_unpooling]
