"""Recurrent networks."""

from __future__ import annotations

from random import Random
from typing import Any

from anydml import (
    TensorDataType,
)
from anydml.core.enums import RecurrentNetworkDirection
from anydml.operators import spec
from anydml.operators.schema import OperatorDesc
from fuzzing.common import tensor_of
from fuzzing.drawing.activation import fused


def good_recurrent(random: Random) -> OperatorDesc:
    operator, gates, activations = random.choice([("RNN", 1, 1), ("LSTM", 4, 3), ("GRU", 3, 2)])
    found, data_type = spec(operator), random.choice([TensorDataType.FLOAT32, TensorDataType.FLOAT16])
    steps, batch, read, hidden = (random.randint(1, 3) for _ in range(4))
    direction = random.choice(list(RecurrentNetworkDirection))
    directions = 2 if direction == RecurrentNetworkDirection.BIDIRECTIONAL else 1
    state = (1, directions, batch, hidden)
    sizes = {
        "InputTensor": (1, steps, batch, read),
        "WeightTensor": (1, directions, gates * hidden, read),
        "RecurrenceTensor": (1, directions, gates * hidden, hidden),
        "BiasTensor": (1, 1, directions, 2 * gates * hidden),
        "SequenceLengthsTensor": (1, 1, 1, batch),
        "PeepholeTensor": (1, 1, directions, 3 * hidden),
        "OutputSequenceTensor": (steps, directions, batch, hidden),
    }
    kept = random.choice([name for name in found.tensors if name.startswith("Output")])
    members: dict[str, Any] = {}
    for name, row in found.tensors.items():
        if name == kept or "Optional" not in row.kind or random.random() < 0.6:
            kind = TensorDataType.UINT32 if "Lengths" in name else data_type
            members[name] = tensor_of(random, kind, sizes.get(name, state), name.startswith("Output"))
    for name, kind in found.members.items():
        if kind == "BOOL":
            members[name] = random.choice([True, False])
        elif kind == "FLOAT":
            members[name] = random.choice([0, 1, 2.5])
    descs = [fused(random, operator) for _ in range(activations * directions)]
    return found.desc(**members, ActivationDescs=descs, Direction=direction)


DRAWN = [good_recurrent]
