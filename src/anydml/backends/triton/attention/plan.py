"""softmax(a Q K^T) V on a GPU, with no scores in memory: of FLOAT16 by PyTorch's scaled_dot_product_attention, in which
products are summed, and exponentials taken, in single precision; of FLOAT32 by a kernel for tensor cores.

PyTorch's own calls for FLOAT32 have no tensor cores where TF32 is not allowed, and take three times as long.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from triton.runtime.errors import OutOfResources

from ....core.enums import TensorDataType
from ....core.strided_layout import Layout
from ....core.tensor_desc import is_packed
from ....operators.schema import OperatorDesc, OperatorSpec
from ...base import Declined
from ...torch import lowering as calls
from ...torch.devices import is_interpreted
from ...torch.lowering import dense
from ...torch.lowering.attention import by_call
from ...torch.lowering.precision import precision
from ..launch import Launch, Planned, Tensors, next_power_of_2, too_many
from .kernels import attend

LARGEST = 64
"""Elements of a head, of which a program holds blocks."""

ROWS, KEYS, WARPS = 128, {False: 64, True: 32}, 8
"""Queries of a program, keys of a block by whether TF32 is allowed, and warps."""

TENSOR_CORES = 8, 0
"""The capability from which on they take TF32."""


def plan(
    spec: OperatorSpec,
    desc: OperatorDesc,
    inputs: Sequence[Layout | None],
    outputs: Sequence[Layout],
    device: str,
    allow_tf32: bool = False,
) -> Planned | Declined:
    (y,) = outputs
    q, k, v = (layout for layout in inputs if layout is not None)
    if y.type == TensorDataType.FLOAT32 and max(q.sizes[3], v.sizes[3]) <= LARGEST and _has_tensor_cores(device):
        try:
            return _by_kernel(desc, (q, k, v, y), allow_tf32, torch.device(device))
        except OutOfResources:
            pass  # on a GPU whose multiprocessors have less memory
    order = sorted(range(4), key=lambda i: -y.strides[i])
    is_dense = is_packed([y.sizes[i] for i in order], [y.strides[i] // y.dtype.itemsize for i in order])
    return Planned("PyTorch's scaled_dot_product_attention", _Run(spec.name, desc, order), gives=is_dense)


def _has_tensor_cores(device: str) -> bool:
    if is_interpreted():
        return True
    return torch.version.cuda is not None and torch.cuda.get_device_capability(device) >= TENSOR_CORES


def _by_kernel(desc: Any, layouts: Sequence[Layout], allow_tf32: bool, device: torch.device) -> Planned | Declined:
    y = layouts[-1]
    steps = [[step // layout.dtype.itemsize for step in layout.strides] for layout in layouts]
    if desc.are_columns:
        steps[1] = [*steps[1][:2], steps[1][3], steps[1][2]]
    batch, heads, queries, value_size = y.sizes
    size, keys = layouts[0].sizes[3], layouts[2].sizes[2]
    constants = {
        "SIZE": size,
        "VALUE_SIZE": value_size,
        "SIZES": max(16, next_power_of_2(size)),
        "VALUE_SIZES": max(16, next_power_of_2(value_size)),
        "ROWS": ROWS,
        "KEYS": KEYS[allow_tf32],
        "PRECISION": "tf32" if allow_tf32 else "tf32x3",
    }
    programs = batch * heads * -(-queries // ROWS)
    declined = too_many(programs)
    if declined is not None:
        return declined
    arguments = (queries, keys, heads, float(desc.scale), *map(tuple, steps))
    launch = Launch(attend, programs, arguments, constants, num_warps=WARPS)

    launch.compile(device, [torch.float32] * 4)

    def run(inputs: Tensors, outputs: Tensors) -> None:
        launch(*desc.own_heads(*inputs), outputs[0])

    words = "flash attention by tensor cores, " + ("TF32 allowed" if allow_tf32 else "three products of TF32 for one")
    return Planned(words, run, ((launch, [torch.float32] * 4),))


class _Run:
    """What a dispatch does; `order` is that of the output's dimensions in memory."""

    def __init__(self, name: str, desc: Any, order: Sequence[int]) -> None:
        self._desc = desc
        self._order = order
        self._back = sorted(range(4), key=order.__getitem__)
        self._run = calls.guarded(name, self._write)
        self.give = calls.guarded(name, self._given)

    def _given(self, inputs: Tensors) -> Any:
        return self._computed(inputs).permute(self._order).contiguous().permute(self._back)

    def __call__(self, inputs: Tensors, outputs: Tensors) -> None:
        self._run(inputs, outputs)

    def _write(self, inputs: Tensors, outputs: Tensors) -> None:
        outputs[0].copy_(self._computed(inputs))

    def _computed(self, inputs: Tensors) -> Any:
        dtype, halves = inputs[0].dtype, dense.are_halves(*inputs)
        q, k, v = inputs if halves else (x.float() for x in inputs)
        q, k, v = self._desc.own_heads(q, k, v)
        k = k.mT if self._desc.are_columns else k
        # Where elements of a line lie apart, there is no fast kernel.
        q, k, v = (x if x.stride(-1) == 1 else x.contiguous() for x in (q, k, v))
        with precision(False):
            return by_call(q, k, v, None, self._desc.scale).to(dtype)
