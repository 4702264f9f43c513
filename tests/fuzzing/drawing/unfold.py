"""Blocks under a window, as columns."""

from __future__ import annotations

from math import prod
from random import Random

from anydml import DML_UNFOLD_OPERATOR_DESC
from anydml.operators.schema import OperatorDesc
from fuzzing.common import JOINED, tensor_of


def good_unfold(random: Random) -> OperatorDesc:
    rank, data_type = random.choice([1, 1, 2, 2, 3]), random.choice(JOINED)
    batch, channels = random.randint(1, 3), random.randint(1, 3)
    sizes, taps, strides, dilations, start, end, blocks = ([] for _ in range(7))  # type: ignore[var-annotated]
    for _ in range(rank):
        size, stride, dilation = random.randint(1, 6), random.randint(1, 3), random.randint(1, 3)
        before, behind = random.choice([0, 0, 1, 4]), random.choice([0, 0, 1, 4])
        window = random.randint(1, min(4, (size + before + behind - 1) // dilation + 1))
        number = (size + before + behind - dilation * (window - 1) - 1) // stride + 1
        for those, value in zip(
            (sizes, taps, strides, dilations, start, end, blocks),
            (size, window, stride, dilation, before, behind, number),
            strict=True,
        ):
            those.append(value)
    return DML_UNFOLD_OPERATOR_DESC(
        InputTensor=tensor_of(random, data_type, (batch, channels, *sizes)),
        OutputTensor=tensor_of(random, data_type, (batch, channels * prod(taps), prod(blocks)), True),
        WindowSizes=taps,
        Strides=strides,
        Dilations=dilations,
        StartPadding=start,
        EndPadding=end,
    )


DRAWN = [good_unfold]
