"""BATCH_NORMALIZATION of packed FLOAT32 tensors by channels on a GPU, RELU fused: all is read and written once."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import torch

from ....core.enums import TensorDataType
from ....core.strided_layout import Layout
from ....operators import spec_of
from ....operators.schema import OperatorDesc, OperatorSpec
from ...base import Declined
from ..launch import MOST, Launch, Planned, Tensors, next_power_of_2
from ..pointwise import plan as pointwise
from . import kernels as normalization_kernels

LARGEST, SMALLEST = 2048, 128
"""Elements of a program."""


def plan(
    spec: OperatorSpec, desc: OperatorDesc, inputs: Sequence[Layout | None], outputs: Sequence[Layout], device: str
) -> Planned | Declined:
    d: Any = desc
    x, *parameters = inputs
    assert x is not None
    if x.type != TensorDataType.FLOAT32 or len(x.sizes) < 2 or not (x.is_packed() and outputs[0].is_packed()):
        return pointwise.plan(spec, desc, inputs, outputs, device)
    activation = spec_of(d.FusedActivation)
    if activation is not None and activation.name != "ACTIVATION_RELU":
        return pointwise.plan(spec, desc, inputs, outputs, device)
    steps = []
    for parameter in parameters:
        assert parameter is not None
        strides = [0 if size == 1 else step for size, step in zip(parameter.sizes, parameter.strides, strict=True)]
        channel = strides.pop(1)
        if any(strides) or channel % 4:
            return pointwise.plan(spec, desc, inputs, outputs, device)
        steps.append(channel // 4)
    constants = {"STEPS": tuple(steps), "EPSILON": d.Epsilon, "HAS_RELU": activation is not None}
    launch = by_channel(normalization_kernels.normalize, x.sizes, constants)
    if isinstance(launch, Declined):
        return launch

    def run(inputs: Tensors, outputs: Tensors) -> None:
        launch(*inputs, outputs[0])

    return Planned(f"{prod(x.sizes[:2])} rows by channel", run, ((launch, [torch.float32] * 6),))


def by_channel(kernel: Any, sizes: Sequence[int], constants: dict[str, Any]) -> Launch | Declined:
    """A launch on rows of one channel each, of packed sizes, in blocks: the kernel takes `inner`, `channels` and
    `blocks`, and BLOCK after the other constants."""
    inner = prod(sizes[2:])
    block = min(max(next_power_of_2(inner), SMALLEST), LARGEST)
    blocks = -(-inner // block)
    programs = prod(sizes[:2]) * blocks
    if max(programs, inner) >= MOST:
        return Declined(f"this kernel takes less than {MOST} elements of a channel, and programs")
    return Launch(kernel, programs, (inner, sizes[1], blocks), {**constants, "BLOCK": block})
