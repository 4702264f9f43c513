"""CONVOLUTION of FLOAT32 on a GPU: PyTorch's call, and a bias and RELU in one pass after it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from ....core.enums import TensorDataType
from ....core.strided_layout import Layout
from ....operators import spec_of
from ....operators.schema import OperatorDesc, OperatorSpec
from ...base import Declined
from ...torch import lowering as calls
from ...torch.lowering import dense
from ..launch import Planned, Tensors
from ..normalization.plan import by_channel
from . import kernels as convolution_kernels


def plan(
    spec: OperatorSpec,
    desc: OperatorDesc,
    inputs: Sequence[Layout | None],
    outputs: Sequence[Layout],
    device: str,
    allow_tf32: bool = False,
) -> Planned | Declined:
    d: Any = desc
    bias, y = inputs[2], outputs[0]
    if y.type != TensorDataType.FLOAT32 or not y.is_packed() or not (bias is None or bias.is_packed()):
        return Declined("this kernel takes a packed output of FLOAT32, and a packed bias")
    activation = spec_of(d.FusedActivation)
    if activation is not None and activation.name != "ACTIVATION_RELU":
        return Declined("this kernel fuses no activation but ACTIVATION_RELU")
    if activation is None and bias is None:
        return Declined("nothing follows the convolution")
    constants = {"HAS_BIAS": bias is not None, "HAS_RELU": activation is not None}
    launch = by_channel(convolution_kernels.finish, y.sizes, constants)
    if isinstance(launch, Declined):
        return launch
    convolve = dense.convolution(d, allow_tf32)

    def run(inputs: Tensors, outputs: Tensors) -> None:
        x, w, bias = inputs
        with dense.precision(allow_tf32):
            result = convolve(x, w, None)
        launch(result.contiguous(), bias, outputs[0])

    words = "a call of PyTorch, and what follows in one pass" + (", TF32 allowed" if allow_tf32 else "")
    types = [torch.float32, None if bias is None else torch.float32, torch.float32]
    return Planned(words, calls.guarded(spec.name, run), ((launch, types),))
