"""Activations by name, fused and not."""

from __future__ import annotations

import numpy as np

from anydml.operators import spec
from anydml.operators.schema import OperatorDesc
from cases import tensor_of
from harness import run


def _members(name: str) -> dict[str, object]:
    values = {"FLOAT": 0.75, "UINTs": [1]}
    found = {member: values[kind] for member, kind in spec(name).members.items() if kind in values}
    return {**found, "Max": 2} if "Max" in found else found


def activation(name: str) -> OperatorDesc:
    """As it is fused: without tensors."""
    tensors = {member: None for member in spec(name).tensors}
    return spec(name).desc(**tensors, **_members(name))


def unfused(name: str, x: np.ndarray) -> np.ndarray:
    tensors = {member: tensor_of(x) for member in spec(name).tensors}
    (y,) = run("reference", spec(name).desc(**tensors, **_members(name)), [x])
    assert y is not None
    return y
