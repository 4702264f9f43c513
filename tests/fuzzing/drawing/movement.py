"""What moves elements or changes their type."""

from __future__ import annotations

from random import Random

import numpy as np

from anydml import (
    DML_CAST_OPERATOR_DESC,
    DML_GATHER_OPERATOR_DESC,
    DML_PADDING1_OPERATOR_DESC,
    DML_PADDING_OPERATOR_DESC,
    DML_SLICE1_OPERATOR_DESC,
    DML_SLICE_GRAD_OPERATOR_DESC,
    DML_SLICE_OPERATOR_DESC,
    PaddingMode,
    TensorDataType,
)
from anydml.operators.schema import OperatorDesc
from fuzzing.common import JOINED, small_sizes, tensor_of


def good_slice(random: Random) -> OperatorDesc:
    sizes, data_type = small_sizes(random), random.choice(JOINED)
    offsets = [random.randrange(size) for size in sizes]
    windows = [random.randint(1, size - offset) for size, offset in zip(sizes, offsets, strict=True)]
    strides = [random.choice([1, 1, 2, 7]) for _ in sizes]
    taken = [random.randint(1, (window - 1) // stride + 1) for window, stride in zip(windows, strides, strict=True)]
    tensors = {
        "InputTensor": tensor_of(random, data_type, sizes),
        "OutputTensor": tensor_of(random, data_type, taken, True),
    }
    if random.random() < 0.3:
        return DML_SLICE_OPERATOR_DESC(**tensors, Offsets=offsets, Sizes=taken, Strides=strides)
    window = {
        "InputWindowOffsets": offsets,
        "InputWindowSizes": windows,
        "InputWindowStrides": [stride * random.choice([1, -1]) for stride in strides],
    }
    if random.random() < 0.5:
        return DML_SLICE1_OPERATOR_DESC(**tensors, **window)
    return DML_SLICE_GRAD_OPERATOR_DESC(
        InputGradientTensor=tensor_of(random, data_type, taken),
        OutputGradientTensor=tensor_of(random, data_type, sizes, True),
        **window,
    )


def good_padding(random: Random) -> OperatorDesc:
    sizes, data_type = small_sizes(random, most=64), random.choice(JOINED)
    start, end = ([random.choice([0, 0, 0, 1, 2, 9]) for _ in sizes] for _ in range(2))
    start, end = ([n if size < 4 else 0 for n, size in zip(each, sizes, strict=True)] for each in (start, end))
    padded = [sum(each) for each in zip(sizes, start, end, strict=True)]
    if np.prod(padded) > 4096:
        padded, start, end = list(sizes), [0] * len(sizes), [0] * len(sizes)
    members = {
        "InputTensor": tensor_of(random, data_type, sizes),
        "OutputTensor": tensor_of(random, data_type, padded, True),
        "PaddingMode": random.choice(list(PaddingMode)),
        "StartPadding": start,
        "EndPadding": end,
    }
    if random.random() < 0.5:
        return DML_PADDING1_OPERATOR_DESC(
            **members, PaddingValueDataType=data_type, PaddingValue=random.choice([0, 1, 127])
        )
    return DML_PADDING_OPERATOR_DESC(**members, PaddingValue=random.choice([0, 1.5, -3, 1e30, float("nan")]))


def good_gather(random: Random) -> OperatorDesc:
    sizes, data_type = small_sizes(random, most=64), random.choice(JOINED)
    axis, rank = random.randrange(len(sizes)), len(sizes)
    indices = small_sizes(random, random.choice([0, 1, 1, min(2, rank)]), 32)
    result = [*sizes[:axis], *indices, *sizes[axis + 1 :]]
    while len(result) > rank and result[0] == 1:
        del result[0]
    if len(result) > rank:
        indices, result = (3,), [*sizes[:axis], 3, *sizes[axis + 1 :]]
    kind = random.choice([TensorDataType[name] for name in ("INT64", "INT32", "UINT64", "UINT32")])
    return DML_GATHER_OPERATOR_DESC(
        InputTensor=tensor_of(random, data_type, sizes),
        IndicesTensor=tensor_of(random, kind, (*(1,) * (rank - len(indices)), *indices)),
        OutputTensor=tensor_of(random, data_type, (*(1,) * (rank - len(result)), *result), True),
        Axis=axis,
        IndexDimensions=len(indices),
    )


def good_cast(random: Random) -> OperatorDesc:
    sizes = small_sizes(random)
    return DML_CAST_OPERATOR_DESC(
        InputTensor=tensor_of(random, random.choice(JOINED), sizes),
        OutputTensor=tensor_of(random, random.choice(JOINED), sizes, True),
    )


DRAWN = [good_slice, good_padding, good_gather, good_cast]
