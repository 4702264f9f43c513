"""Convolutions."""

from __future__ import annotations

from random import Random

from anydml import (
    DML_CONVOLUTION_OPERATOR_DESC,
)
from anydml.core.enums import ConvolutionDirection, ConvolutionMode
from anydml.operators.schema import OperatorDesc
from fuzzing.common import REALS, small_sizes, tensor_of
from fuzzing.drawing.activation import fused
from fuzzing.drawing.pooling import pooling_numbers


def good_convolution(random: Random) -> OperatorDesc:
    large = small_sizes(random, random.choice([1, 2, 3]), 64)
    options, small = pooling_numbers(random, large, ceiling=False)
    forward, data_type = random.random() < 0.5, random.choice(REALS)
    groups, batch = random.choice([1, 1, 2, 3]), random.randint(1, 2)
    inputs, outputs = groups * random.randint(1, 2), groups * random.randint(1, 2)
    padding = [random.choice([0, 0, 1]) for _ in large]
    read, written = (large, small) if forward else (small, large)
    sizes = [place + more for place, more in zip(written, padding, strict=True)]
    channels = (outputs, inputs // groups) if forward else (inputs, outputs // groups)
    bias = (1, outputs, *[1] * len(large))
    return DML_CONVOLUTION_OPERATOR_DESC(
        InputTensor=tensor_of(random, data_type, (batch, inputs, *read)),
        FilterTensor=tensor_of(random, data_type, (*channels, *options.pop("WindowSize"))),
        BiasTensor=random.choice([None, tensor_of(random, data_type, bias)]),
        OutputTensor=tensor_of(random, data_type, (batch, outputs, *sizes), True),
        Mode=random.choice(list(ConvolutionMode)),
        Direction=ConvolutionDirection.FORWARD if forward else ConvolutionDirection.BACKWARD,
        **options,
        OutputPadding=padding,
        GroupCount=groups,
        FusedActivation=random.choice([None, fused(random, "CONVOLUTION")]),
    )


DRAWN = [good_convolution]
