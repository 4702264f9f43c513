"""MAX_POOLING and AVERAGE_POOLING of packed FLOAT32 planes on a GPU: a thread for each output."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import torch

from ....core.enums import TensorDataType
from ....core.strided_layout import Layout
from ....operators.schema import OperatorDesc, OperatorSpec
from ....operators.window_math import pooling_windows
from ...base import Declined
from ..launch import Launch, Planned, Tensors
from . import float_kernels as float_pooling_kernels

BLOCK = 512
"""Outputs of a program."""
UNROLLED = 25
"""Taps of a window whose loops are unrolled."""
MOST = (1 << 31) - BLOCK
"""Elements that are counted in 32 bits."""


def plan(
    spec: OperatorSpec, desc: OperatorDesc, inputs: Sequence[Layout | None], outputs: Sequence[Layout], device: str
) -> Planned | Declined:
    d: Any = desc
    x, y = inputs[0], outputs[0]
    assert x is not None
    if x.type != TensorDataType.FLOAT32 or len(x.sizes) != 4 or len(outputs) > 1:
        return Declined("this kernel takes planes of FLOAT32, and gives no indices")
    if not (x.is_packed() and y.is_packed() and max(prod(x.sizes), prod(y.sizes)) < MOST):
        return Declined(f"this kernel takes packed tensors of less than {MOST} elements")
    rows, columns = windows = pooling_windows(d)
    if max(max(window.start, window.padded, window.extent) for window in windows) >= MOST:
        return Declined("this kernel counts padding in 32 bits")
    taps = rows.taps * columns.taps
    constants = {
        "IS_MAXIMUM": spec.name != "AVERAGE_POOLING",
        "WITH_PADDING": bool(getattr(d, "IncludePadding", False)),
        "UNROLLED": taps <= UNROLLED,
        "HEIGHT": rows.taps,
        "WIDTH": columns.taps,
        "ROWS": tuple(rows[2:]),
        "COLUMNS": tuple(columns[2:]),
        "BLOCK": BLOCK,
    }
    count = prod(y.sizes)
    launch = Launch(float_pooling_kernels.pool, -(-count // BLOCK), (count, *x.sizes[2:], *y.sizes[2:]), constants)

    def run(inputs: Tensors, outputs: Tensors) -> None:
        launch(inputs[0], outputs[0])

    words = f"windows of {rows.taps} x {columns.taps}, a thread for each output"
    return Planned(words, run, ((launch, [torch.float32] * 2),))
