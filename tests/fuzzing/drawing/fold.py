"""Blocks put back."""

from __future__ import annotations

from math import prod
from random import Random

from anydml import DML_FOLD_OPERATOR_DESC
from anydml.operators import spec
from anydml.operators.schema import OperatorDesc
from fuzzing.common import small_sizes, tensor_of


def good_fold(random: Random) -> OperatorDesc:
    n = random.randint(1, 3)
    sizes = small_sizes(random, n, 64)
    start, end = (tuple([random.choice([0, 0, 1, 2]) for _ in sizes]) for _ in range(2))
    padded = [sum(each) for each in zip(sizes, start, end, strict=True)]
    window = tuple([random.randint(1, min(3, size)) for size in padded])
    dilations = tuple([random.choice([1, 2]) if 2 * k < size else 1 for k, size in zip(window, padded, strict=True)])
    strides = tuple([random.choice([1, 1, 2, 3]) for _ in sizes])
    steps = zip(padded, window, dilations, strides, strict=True)
    blocks = prod((size - (k - 1) * dilation - 1) // stride + 1 for size, k, dilation, stride in steps)
    batch, channels, ones = random.randint(1, 2), random.randint(1, 3), (1,) * random.choice([0, 0, 2])
    data_type = random.choice(spec("FOLD").tensors["InputTensor"].data_types)
    return DML_FOLD_OPERATOR_DESC(
        InputTensor=tensor_of(random, data_type, (*ones, batch, channels * prod(window), blocks)),
        OutputTensor=tensor_of(random, data_type, (batch, channels, *sizes), True),
        WindowSizes=window,
        Strides=strides,
        Dilations=dilations,
        StartPadding=start,
        EndPadding=end,
    )


DRAWN = [good_fold]
