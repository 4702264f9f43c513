"""Reductions."""

from __future__ import annotations

from random import Random

from anydml import DML_REDUCE_OPERATOR_DESC, AxisDirection, ReduceFunction
from anydml.operators import spec
from anydml.operators.schema import OperatorDesc
from fuzzing.common import small_sizes, tensor_of


def good_reduce(random: Random) -> OperatorDesc:
    function, sizes = random.choice(list(ReduceFunction)), small_sizes(random)
    rows = spec("REDUCE").support_by[1][function].newest  # type: ignore[index]
    data_type = random.choice(rows["InputTensor"].data_types)
    of_output = data_type
    if function in (ReduceFunction.ARGMAX, ReduceFunction.ARGMIN):
        of_output = random.choice(rows["OutputTensor"].data_types)
    axes = random.sample(range(len(sizes)), random.randint(1, len(sizes)))
    return DML_REDUCE_OPERATOR_DESC(
        Function=function,
        InputTensor=tensor_of(random, data_type, sizes),
        OutputTensor=tensor_of(random, of_output, [1 if i in axes else n for i, n in enumerate(sizes)], True),
        Axes=axes,
    )


def good_index(random: Random) -> OperatorDesc:
    found, sizes = spec(random.choice(["ARGMIN", "ARGMAX"])), small_sizes(random)
    axes = random.sample(range(len(sizes)), random.randint(1, len(sizes)))
    rows = found.support.newest
    of_input, of_output = [random.choice(rows[name].data_types) for name in ("InputTensor", "OutputTensor")]
    return found.desc(
        InputTensor=tensor_of(random, of_input, sizes),
        OutputTensor=tensor_of(random, of_output, [1 if i in axes else n for i, n in enumerate(sizes)], True),
        Axes=axes,
        AxisDirection=random.choice(list(AxisDirection)),
    )


DRAWN = [good_reduce, good_index]
