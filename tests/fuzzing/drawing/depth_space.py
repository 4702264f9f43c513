"""Channels as blocks of an image, and back."""

from __future__ import annotations

from random import Random

from anydml import DepthSpaceOrder
from anydml.operators import spec
from anydml.operators.schema import OperatorDesc
from fuzzing.common import JOINED, tensor_of


def good_depth_space(random: Random) -> OperatorDesc:
    block, data_type = random.randint(1, 4), random.choice(JOINED)
    batch, channels, height, width = (random.randint(1, 4) for _ in range(4))
    deep = (batch, channels * block**2, height, width)
    image = (batch, channels, height * block, width * block)
    name = random.choice(["DEPTH_TO_SPACE", "DEPTH_TO_SPACE1", "SPACE_TO_DEPTH", "SPACE_TO_DEPTH1"])
    sizes, output = (deep, image) if name.startswith("DEPTH") else (image, deep)
    order = {"Order": random.choice(list(DepthSpaceOrder))} if name.endswith("1") else {}
    return spec(name).desc(
        InputTensor=tensor_of(random, data_type, sizes),
        OutputTensor=tensor_of(random, data_type, output, True),
        BlockSize=block,
        **order,
    )


DRAWN = [good_depth_space]
