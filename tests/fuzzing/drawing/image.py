"""Images, and what is made of nothing."""

from __future__ import annotations

from random import Random

from anydml import (
    DML_SIZE_2D,
    DML_UPSAMPLE_2D_OPERATOR_DESC,
    DML_VALUE_SCALE_2D_OPERATOR_DESC,
    InterpolationMode,
    TensorDataType,
)
from anydml.operators import spec
from anydml.operators.schema import OperatorDesc
from fuzzing.common import small_sizes, tensor_of


def good_image(random: Random) -> OperatorDesc:
    data_type = random.choice([TensorDataType.FLOAT32, TensorDataType.FLOAT16])
    if random.random() < 0.5:
        sizes: tuple[int, ...] = (random.randint(1, 2), random.choice([1, 3]), *small_sizes(random, 2, 64))
        return DML_VALUE_SCALE_2D_OPERATOR_DESC(
            InputTensor=tensor_of(random, data_type, sizes),
            OutputTensor=tensor_of(random, data_type, sizes, True),
            Scale=random.choice([1, 0.5, -2, float("inf")]),
            Bias=[random.choice([0, 1, -0.5, 1e30]) for _ in range(sizes[1])],
        )
    sizes = small_sizes(random, random.choice([4, 5]), 64)
    height, width = random.choice([1, 2, 3]), random.choice([1, 2, 5])
    return DML_UPSAMPLE_2D_OPERATOR_DESC(
        InputTensor=tensor_of(random, data_type, sizes),
        OutputTensor=tensor_of(random, data_type, (*sizes[:-2], sizes[-2] * height, sizes[-1] * width), True),
        ScaleSize=DML_SIZE_2D(Width=width, Height=height),
        InterpolationMode=random.choice(list(InterpolationMode)),
    )


def good_fill(random: Random) -> OperatorDesc:
    is_constant = random.random() < 0.5
    name = "FILL_VALUE_CONSTANT" if is_constant else "FILL_VALUE_SEQUENCE"
    data_type = random.choice(spec(name).tensors["OutputTensor"].data_types)
    number = random.choice([0, 1, 7, 100])
    members = {"Value": number} if is_constant else {"ValueStart": number, "ValueDelta": random.choice([0, 1, -1])}
    output = tensor_of(random, data_type, small_sizes(random), True)
    return spec(name).desc(OutputTensor=output, ValueDataType=data_type, **members)


DRAWN = [good_image, good_fill]
