"""Pointwise operators whose tensors have several types: logic, comparisons, bits and quantisation."""

from __future__ import annotations

from random import Random
from typing import Any

from anydml import TensorDataType
from anydml.core import enums
from anydml.operators import OPERATORS, spec
from anydml.operators.schema import OperatorDesc
from fuzzing.common import small_sizes, tensor_of

NAMES = [name for name, op in OPERATORS.items() if op.family in ("logical", "bits", "quantization")]


def good_mixed(random: Random) -> OperatorDesc:
    found = spec(random.choice(NAMES))
    row, sizes = found.pointwise, small_sizes(random)
    types = {name: random.choice(each.data_types) for name, each in found.tensors.items()}
    for group in row.groups:
        types |= dict.fromkeys(group, types[group[0]])
    if found.name == "ELEMENT_WISE_QUANTIZE_LINEAR":
        is_whole = types["InputTensor"] == TensorDataType.INT32
        types["ScaleTensor"] = TensorDataType.FLOAT32 if is_whole else types["InputTensor"]
    members: dict[str, Any] = {}
    for name, data_type in types.items():
        own = (1,) * len(sizes) if name in row.scalars else sizes
        is_absent = "Optional" in found.tensors[name].kind and random.random() < 0.4
        members[name] = None if is_absent else tensor_of(random, data_type, own, name == "OutputTensor")
    for name, kind in found.members.items():
        if kind.startswith("enums."):
            members[name] = random.choice(list(getattr(enums, kind.removeprefix("enums."))))
    return found.desc(**members)


DRAWN = [good_mixed]
