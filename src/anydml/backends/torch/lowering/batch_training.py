"""Batch normalisation in training, and the gradients of both kinds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from ....core.strided_layout import Layout
from ....operators.schema import OperatorDesc, OperatorSpec
from ....operators.specs.batch_training import summed_axes
from . import Run, Tensors
from .pointwise import finish
from .values import double, store


def plan(
    spec: OperatorSpec, desc: OperatorDesc, inputs: Sequence[Layout | None], outputs: Sequence[Layout | None]
) -> Run:
    if spec.name == "BATCH_NORMALIZATION_TRAINING":
        return _training(desc)
    return _gradients(desc, spec.name == "BATCH_NORMALIZATION_TRAINING_GRAD")


def _sum(x: Any, axes: Sequence[int]) -> Any:
    return x.sum(axes, keepdim=True) if axes else x


def _training(desc: Any) -> Run:
    axes, write = summed_axes(desc), finish(desc.FusedActivation)

    def run(read: Tensors, written: Tensors) -> None:
        x, scale, bias = map(double, read[:3])
        count = x.numel() // scale.numel()
        mean = _sum(x, axes) / count
        centred = x - mean
        variance = _sum(centred * centred, axes) / count
        y = centred.div_(torch.sqrt(variance + desc.Epsilon)).mul_(scale).add_(bias)
        write(y if read[3] is None else y.add_(read[3]), written[0])
        store(mean, written[1])
        store(variance, written[2])

    return run


def _gradients(desc: Any, is_training: bool) -> Run:
    axes = summed_axes(desc)

    def run(read: Tensors, written: Tensors) -> None:
        x, dy, mean, variance, scale = map(double, read)
        count = x.numel() // mean.numel()
        square = variance + desc.Epsilon
        root = torch.sqrt(square)
        centred = x - mean
        of_bias, of_scale = _sum(dy, axes), _sum(dy * centred, axes)
        own = dy - of_bias / count - centred * (of_scale / count / square) if is_training else dy
        store(own * (scale / root), written[0])
        store(of_scale / root, written[1])
        store(of_bias, written[2])

    return run
