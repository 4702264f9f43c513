"""Joining and splitting."""

from __future__ import annotations

from random import Random
from typing import Any

from anydml import (
    DML_JOIN_OPERATOR_DESC,
    DML_SPLIT_OPERATOR_DESC,
)
from anydml.operators.schema import OperatorDesc
from fuzzing.common import JOINED, small_sizes, tensor_of


def good_join(random: Random) -> OperatorDesc:
    sizes, data_type = list(small_sizes(random, most=64)), random.choice(JOINED)
    axis = random.randrange(len(sizes))
    pieces = []
    for _ in range(random.choice([1, 2, 3, 9])):
        sizes[axis] = random.randint(1, 4)
        pieces.append(tensor_of(random, data_type, sizes))
    sizes[axis] = sum(piece.Sizes[axis] for piece in pieces)
    return DML_JOIN_OPERATOR_DESC(
        InputTensors=pieces, OutputTensor=tensor_of(random, data_type, sizes, True), Axis=axis
    )


def good_split(random: Random) -> OperatorDesc:
    desc: Any = good_join(random)
    pieces = [tensor_of(random, piece.DataType, piece.Sizes, True) for piece in desc.InputTensors]
    whole = tensor_of(random, desc.OutputTensor.DataType, desc.OutputTensor.Sizes)
    return DML_SPLIT_OPERATOR_DESC(InputTensor=whole, OutputTensors=pieces, Axis=desc.Axis)


DRAWN = [good_join, good_split]
