"""Activations, alone and fused into another operator."""

from __future__ import annotations

from random import Random
from typing import Any

from anydml.operators import OPERATORS, spec
from anydml.operators.fused_activation import FUSIBLE, fused_since
from anydml.operators.schema import OperatorDesc
from fuzzing.common import small_sizes, tensor_of

FLOATS = [0.0, 1.0, -1.0, 0.25, 100.0, 1e30, float("inf"), float("-inf"), float("nan")]


def good_activation(random: Random) -> OperatorDesc:
    of_families = [name for name, op in OPERATORS.items() if op.family in ("activation", "softmax")]
    found = spec(random.choice(of_families))
    *_, output = found.tensors
    sizes, data_type = small_sizes(random), random.choice(found.tensors[output].data_types)
    if OPERATORS[found.name].family == "softmax" and "Axes" not in found.members:
        sizes = (*[1] * len(sizes[:-2]), *sizes[-2:])
    members: dict[str, Any] = {name: tensor_of(random, data_type, sizes, name == output) for name in found.tensors}
    for name, kind in found.members.items():
        if kind == "FLOAT":
            members[name] = random.choice(FLOATS)
        elif kind == "UINTs":
            members[name] = random.sample(range(len(sizes)), random.randint(1, len(sizes)))
    return found.desc(**members)


def fused(random: Random, operator: str = "") -> OperatorDesc:
    """An activation that may be fused into an operator; where none is named, into some."""
    found = spec(random.choice([name for name in FUSIBLE if not operator or fused_since(name, operator) is not None]))
    members: dict[str, Any] = dict.fromkeys(found.tensors)
    for name, kind in found.members.items():
        if kind == "FLOAT":
            members[name] = random.choice(FLOATS)
        elif kind == "UINTs":
            members[name] = [random.randrange(2 if operator else 4)]
    return found.desc(**members)


DRAWN = [good_activation]
