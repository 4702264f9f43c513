"""Normalisations."""

from __future__ import annotations

from random import Random
from typing import Any

from anydml.operators import OPERATORS, spec
from anydml.operators.fused_activation import FUSIBLE, fused_since
from anydml.operators.schema import OperatorDesc
from fuzzing.common import small_sizes, tensor_of

_TRAINING = ("BATCH_NORMALIZATION_TRAINING", "BATCH_NORMALIZATION_TRAINING_GRAD", "BATCH_NORMALIZATION_GRAD")
"""Whose parameters have the same sizes."""
NORMALIZATIONS = [name for name in OPERATORS if "_NORMALIZATION" in name]
_OF_ELEMENTS = ("InputTensor", "InputGradientTensor", "FusedAddTensor", "OutputTensor", "OutputGradientTensor")


FUSED = [name for name in FUSIBLE if fused_since(name, "BATCH_NORMALIZATION")]


def good_normalization(random: Random) -> OperatorDesc:
    found = spec(random.choice(NORMALIZATIONS))
    row = found.tensors["InputTensor"]
    sizes, data_type = small_sizes(random, random.choice(row.dimension_counts)), random.choice(row.data_types)
    members: dict[str, Any] = {}
    parameter = [random.choice([1, size]) for size in sizes]
    for name, kind in found.members.items():
        is_there = kind == "Tensor" or (kind == "OptionalTensor" and random.random() < 0.7)
        if is_there and name in _OF_ELEMENTS:
            members[name] = tensor_of(random, data_type, sizes, name.startswith("Output"))
        elif is_there:
            own = parameter if found.name in _TRAINING else [random.choice([1, size]) for size in sizes]
            members[name] = tensor_of(random, data_type, own, name.startswith("Output"))
        elif kind == "BOOL":
            members[name] = random.choice([True, False])
        elif kind == "FLOAT":
            members[name] = random.choice([0, 0.5, 1, 1e-5, -1])
        elif kind == "OptionalActivation" and random.random() < 0.4:
            fused = spec(random.choice(FUSED))
            numbers = {each: random.choice([0, 0.5, 2]) for each, kind in fused.members.items() if kind == "FLOAT"}
            members[name] = fused.desc(**numbers)
    if "Axes" in found.members:
        members["Axes"] = random.sample(range(len(sizes)), random.randint(1, len(sizes)))
    if "Axis" in found.members:
        members |= {"Axis": random.randrange(len(sizes)), "P": random.choice([1, 2])}
    if "LocalSize" in found.members:
        members["LocalSize"] = random.choice([1, 2, 3, 5, 2**32 - 1])
    return found.desc(**members)


DRAWN = [good_normalization]
