"""CONVOLUTION on a GPU: PyTorch's call, its filter prepared once, and a bias and RELU in one pass after it."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import torch

from ....core.enums import TensorDataType
from ....core.strided_layout import Layout
from ....operators import spec_of
from ....operators.convolution_addition import ConvolutionAddition
from ....operators.schema import OperatorDesc, OperatorSpec
from ...base import Declined
from ...torch import lowering as calls
from ...torch.lowering import dense
from ...torch.lowering.precision import precision
from ...torch.tensors import TYPES
from ..launch import Launch, Planned, Tensors, too_many
from ..normalization.plan import by_channel
from . import kernels as convolution_kernels

BLOCK = 1024
"""Elements of a program, where channels lie last."""

CHANNELS_LAST = {(TensorDataType.FLOAT16, False), (TensorDataType.FLOAT16, True), (TensorDataType.FLOAT32, True)}
"""Types, and whether TF32 is allowed, of convolutions that are faster with channels last: those of tensor cores."""


def plan(
    spec: OperatorSpec,
    desc: OperatorDesc,
    inputs: Sequence[Layout | None],
    outputs: Sequence[Layout],
    device: str,
    allow_tf32: bool = False,
) -> Planned | Declined:
    convolution: Any = desc.convolution if isinstance(desc, ConvolutionAddition) else desc
    x, w, bias, *added = inputs
    y = outputs[0]
    assert x is not None and w is not None
    is_last = _has_channels_last(y)
    if not (y.is_packed() or is_last) or not (bias is None or bias.is_packed()):
        return Declined("this kernel takes a packed output, or one with its channels last, and a packed bias")
    activation = spec_of(convolution.FusedActivation)
    if activation is not None and activation.name != "ACTIVATION_RELU":
        return Declined("this kernel fuses no activation but ACTIVATION_RELU")
    has_relu = activation is not None or bool(added)
    launch = None
    if (has_relu or bias is not None) and not added:
        constants = {"HAS_BIAS": bias is not None, "HAS_RELU": has_relu}
        found = _along_channels(y, constants) if is_last else by_channel(convolution_kernels.finish, y.sizes, constants)
        if isinstance(found, Declined):
            return found
        launch = found
    calls_of = _Calls(convolution, has_relu, is_last, _has_channels_last(x), allow_tf32)
    run = _Run(spec.name, calls_of, launch)

    def prepare(known: Tensors) -> _Run | None:
        return None if known[1] is None or not calls_of.prepares else _Run(spec.name, calls_of, launch, known[1])

    words = "a call of PyTorch"
    if calls_of.fused is not None:
        words += f", which {'adds a tensor and ' if added else ''}applies RELU"
    elif launch is not None:
        words += ", and what follows in one pass"
    words += ", TF32 allowed" if allow_tf32 else ""
    dtype = TYPES[y.type]
    types = [dtype, None if bias is None else dtype, dtype]
    launches = () if launch is None or calls_of.fused is not None else ((launch, types),)
    is_faster = (y.type, allow_tf32) in CHANNELS_LAST and calls_of.prepares
    gives = calls_of.fused is not None or bool(added)
    return Planned(words, run, launches, prepare=prepare, channels_last=is_faster, gives=gives)


class _Calls:
    """PyTorch's, for a convolution.

    Attributes:
        writes: the call that writes to a tensor that is there.
        fused: the call that adds a bias and more, applies RELU and gives a new tensor.
        order: of the output.
        prepares: whether they take a filter in an order that may be another than the desc's.
    """

    def __init__(self, desc: Any, has_relu: bool, is_last: bool, reads_last: bool, allow_tf32: bool) -> None:
        self.writes = dense.direct(desc, reads_last or is_last, allow_tf32)
        self.fused = dense.fused_with_relu(desc, allow_tf32) if has_relu else None
        self.order = torch.channels_last if is_last else torch.contiguous_format
        self.prepares = self.writes is not None
        self._gives = dense.convolution(desc, allow_tf32)
        self._turns = dense.turned(desc)
        self._allow_tf32 = allow_tf32

    def ready(self, w: Any) -> Any:
        """A filter as the calls take it, and read it as it lies."""
        return (w.flip(self._turns) if self._turns else w).contiguous(memory_format=self.order)

    def result(self, x: Any, w: Any) -> Any:
        """Without its bias."""
        with precision(self._allow_tf32):
            return self._gives(*((x, w) if dense.are_halves(x) else (x.float(), w.float())), None)


class _Run:
    """What a dispatch does; `ready` is a filter that stays."""

    def __init__(self, name: str, calls_of: _Calls, launch: Launch | None, ready: Any = None) -> None:
        self._calls = calls_of
        self._launch = launch
        self._ready = None if ready is None else calls_of.ready(ready)
        self._run = calls.guarded(name, self._write)
        self.give = calls.guarded(name, self._given)

    def __call__(self, inputs: Tensors, outputs: Tensors) -> None:
        self._run(inputs, outputs)

    def _filter(self, w: Any) -> Any:
        return self._calls.ready(w) if self._ready is None else self._ready

    def _given(self, inputs: Tensors) -> Any:
        x, w, bias, *added = inputs
        of = self._calls
        if of.fused is not None and of.fused.takes(x):
            y = of.fused(x, self._filter(w), bias, *(added or [None]))
        else:
            y = of.result(x, w).float()
            for each in (bias, *added):
                y = y if each is None else y.add_(each)
            y = y.clamp_(min=0).to(x.dtype)
        return y.contiguous(memory_format=of.order)

    def _write(self, inputs: Tensors, outputs: Tensors) -> None:
        (x, w, bias, *added), y = inputs, outputs[0]
        of = self._calls
        if of.fused is not None or added:
            y.copy_(self._given(inputs))
            return
        if of.writes is not None and of.writes.takes(x):
            of.writes(x, self._filter(w), y)
            result = y
        else:
            result = of.result(x, w)
        if self._launch is not None:
            self._launch(result.contiguous(memory_format=of.order), bias, y)
        elif result is not y:
            y.copy_(result)


def _has_channels_last(layout: Layout) -> bool:
    """Whether it is one of images that lie so, and could lie otherwise."""
    if len(layout.sizes) != 4 or layout.is_packed():
        return False
    _, c, h, w = layout.sizes
    item = layout.dtype.itemsize
    pairs = zip(layout.sizes, layout.strides, (h * w * c, 1, w * c, c), strict=True)
    return all(size == 1 or stride == step * item for size, stride, step in pairs)


def _along_channels(layout: Layout, constants: dict[str, Any]) -> Launch | Declined:
    count = prod(layout.sizes)
    programs = -(-count // BLOCK)
    arguments = (count, layout.sizes[1])
    last = {**constants, "BLOCK": BLOCK}
    return too_many(programs) or Launch(convolution_kernels.finish_along_channels, programs, arguments, last)
