"""Sequences reversed within their lengths."""

from __future__ import annotations

from random import Random

from anydml import DML_REVERSE_SUBSEQUENCES_OPERATOR_DESC, TensorDataType
from anydml.operators.schema import OperatorDesc
from fuzzing.common import JOINED, small_sizes, tensor_of


def good_reverse(random: Random) -> OperatorDesc:
    sizes, data_type = small_sizes(random), random.choice(JOINED)
    axis = random.randrange(len(sizes))
    kind = random.choice([TensorDataType.UINT32, TensorDataType.UINT64])
    return DML_REVERSE_SUBSEQUENCES_OPERATOR_DESC(
        InputTensor=tensor_of(random, data_type, sizes),
        SequenceLengthsTensor=tensor_of(random, kind, (*sizes[:axis], 1, *sizes[axis + 1 :])),
        OutputTensor=tensor_of(random, data_type, sizes, True),
        Axis=axis,
    )


DRAWN = [good_reverse]
