"""Images, and what is made of nothing."""

from __future__ import annotations

from random import Random

from anydml import (
    DML_SIZE_2D,
    DML_UPSAMPLE_2D_OPERATOR_DESC,
    DML_VALUE_SCALE_2D_OPERATOR_DESC,
    AxisDirection,
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


def good_resample(random: Random) -> OperatorDesc:
    name = random.choice(["RESAMPLE", "RESAMPLE1", "RESAMPLE2", "RESAMPLE3", "RESAMPLE_GRAD", "RESAMPLE_GRAD1"])
    found = spec(name)
    first, second = found.tensors
    data_type = random.choice(found.tensors[first].data_types)
    rank = random.randint(1, 4)
    members = {
        first: tensor_of(random, data_type, small_sizes(random, rank, 64)),
        second: tensor_of(random, data_type, small_sizes(random, rank, 64), True),
        "InterpolationMode": random.choice(list(InterpolationMode)),
        "RoundingDirection": random.choice(list(AxisDirection)),
        "Scales": [random.choice([1, 2, 0.5, 1 / 3, 1.7, 1e-9, 1e9]) for _ in range(rank)],
        "InputPixelOffsets": [random.choice([0.5, 0, 1, -3.3]) for _ in range(rank)],
        "OutputPixelOffsets": [random.choice([-0.5, 0, 2, 1e6]) for _ in range(rank)],
        "Antialiased": random.random() < 0.5,
    }
    return found.desc(**{member: value for member, value in members.items() if member in found.members})


DRAWN = [good_image, good_fill, good_resample]
