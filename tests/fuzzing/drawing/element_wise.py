"""Element by element."""

from __future__ import annotations

from random import Random
from typing import Any

from anydml import (
    DML_SCALE_BIAS,
)
from anydml.core import enums
from anydml.operators import OPERATORS, spec
from anydml.operators.schema import OperatorDesc
from fuzzing.common import small_sizes, tensor_of
from fuzzing.drawing.activation import fused

FAMILIES = ("element_wise", "arithmetic", "clip", "trigonometric")


def good_element_wise(random: Random) -> OperatorDesc:
    found = spec(random.choice([name for name, op in OPERATORS.items() if op.family in FAMILIES]))
    *_, output = found.tensors
    sizes, data_type = small_sizes(random), random.choice(found.tensors[output].data_types)
    members: dict[str, Any] = {name: tensor_of(random, data_type, sizes, name == output) for name in found.tensors}
    if "ExponentTensor" in members:
        kind = random.choice(found.tensors["ExponentTensor"].data_types)
        members["ExponentTensor"] = tensor_of(random, kind, sizes)
    for name, kind in found.members.items():
        if kind in ("FLOAT", "SCALAR"):
            members[name] = random.choice([0, 1, 2, 100])
        elif kind == "OptionalScaleBias" and random.random() < 0.5:
            members[name] = DML_SCALE_BIAS(Scale=random.choice([0, 1, -0.5, 1e30]), Bias=random.choice([0, 3]))
        elif kind == "OptionalActivation" and random.random() < 0.8:
            members[name] = fused(random)
        elif kind == "enums.TensorDataType":
            members[name] = data_type
        elif kind.startswith("enums."):
            members[name] = random.choice(list(getattr(enums, kind.removeprefix("enums."))))
    return found.desc(**members)


DRAWN = [good_element_wise]
