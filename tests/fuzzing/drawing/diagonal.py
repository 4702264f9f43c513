"""Diagonals, and bands of them."""

from __future__ import annotations

from random import Random

from anydml import DML_DIAGONAL_MATRIX1_OPERATOR_DESC, DML_DIAGONAL_MATRIX_OPERATOR_DESC
from anydml.operators import spec
from anydml.operators.schema import OperatorDesc
from fuzzing.common import small_sizes, tensor_of


def good_diagonal(random: Random) -> OperatorDesc:
    data_type = random.choice(spec("DIAGONAL_MATRIX1").tensors["OutputTensor"].data_types)
    sizes = small_sizes(random, random.randint(2, 4))
    output, number = tensor_of(random, data_type, sizes, True), random.choice([0, 1, 7, 100])
    ends = [random.choice([-(2**31), -2, -1, 0, 1, 2, 3, 2**31 - 1]) for _ in range(2)]
    if random.random() < 0.3:
        return DML_DIAGONAL_MATRIX_OPERATOR_DESC(OutputTensor=output, Offset=ends[0], Value=number)
    return DML_DIAGONAL_MATRIX1_OPERATOR_DESC(
        InputTensor=random.choice([None, tensor_of(random, data_type, sizes)]),
        OutputTensor=output,
        ValueDataType=data_type,
        Value=number,
        DiagonalFillBegin=ends[0],
        DiagonalFillEnd=ends[1],
    )


DRAWN = [good_diagonal]
