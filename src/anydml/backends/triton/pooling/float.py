"""MAX_POOLING and AVERAGE_POOLING of packed FLOAT32 planes on a GPU: a thread for each output, or for several."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from operator import le
from typing import Any

import torch

from ....core.enums import TensorDataType
from ....core.strided_layout import Layout
from ....operators.schema import OperatorDesc, OperatorSpec
from ....operators.window_math import pooling_windows
from ...base import Declined
from ..launch import Launch, Planned, Tensors
from . import float_kernels as float_pooling_kernels
from . import general

BLOCK = 512
"""Outputs of a program."""
OUTPUTS, STRIPS = 4, 256
"""Outputs of a thread whose windows overlap, and threads' strips of a program."""
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
    is_whole = general.is_whole(pooling_windows(d), outputs)
    is_planes = not is_whole and x.type == TensorDataType.FLOAT32 and len(x.sizes) == 4 and len(outputs) == 1
    if not (is_planes and x.is_packed() and y.is_packed() and max(prod(x.sizes), prod(y.sizes)) < MOST):
        return general.plan(spec, desc, inputs, outputs, device)
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
    if constants["UNROLLED"] and rows.dilation == columns.dilation == 1:
        return _strips(x, y, rows, columns, constants)
    count = prod(y.sizes)
    launch = Launch(float_pooling_kernels.pool, -(-count // BLOCK), (count, *x.sizes[2:], *y.sizes[2:]), constants)

    def run(inputs: Tensors, outputs: Tensors) -> None:
        launch(inputs[0], outputs[0])

    words = f"windows of {rows.taps} x {columns.taps}, a thread for each output"
    return Planned(words, run, ((launch, [torch.float32] * 2),))


def _strips(x: Layout, y: Layout, rows: Any, columns: Any, constants: dict[str, Any]) -> Planned:
    """By threads with several outputs, one below the other, where their windows overlap."""
    height, width = y.sizes[2:]
    outputs = min(OUTPUTS if rows.taps > rows.stride else 1, height)
    strip_rows = -(-height // outputs)
    strips = prod(y.sizes[:2]) * strip_rows * width
    ends = [(count - 1) * each.stride + each.taps for count, each in zip(y.sizes[2:], (rows, columns), strict=True)]
    is_inside = rows.start == columns.start == 0 and all(map(le, ends, x.sizes[2:]))
    launch = Launch(
        float_pooling_kernels.pool_strips,
        -(-strips // STRIPS),
        (strips, strip_rows, *x.sizes[2:], height, width),
        {
            **{name: value for name, value in constants.items() if name != "UNROLLED"},
            "OUTPUTS": outputs,
            "IS_INSIDE": is_inside,
            "BLOCK": STRIPS,
        },
    )

    def run(inputs: Tensors, outputs: Tensors) -> None:
        launch(inputs[0], outputs[0])

    words = f"windows of {rows.taps} x {columns.taps}, a thread for {outputs} outputs"
    return Planned(words, run, ((launch, [torch.float32] * 2),))
