"""CONVOLUTION and GEMM by the libraries that PyTorch calls: in single precision throughout, FLOAT16 too.

Sums are held in single precision, where the references hold those of FLOAT32 in double; and a tap on padding is a
product with 0, which is NaN where the filter has an infinity. Tensor cores multiply FLOAT16 exactly and add in single
precision: on a GPU such operands stay as they are, and a convolution is rounded before its bias is added.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import product
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
import torch
from torch.nn import functional

from ....core.enums import ConvolutionDirection, ConvolutionMode, MatrixTransform
from ....core.strided_layout import Layout
from ....operators import spec_of
from ....operators.schema import OperatorDesc, OperatorSpec
from ....operators.specs.convolution import DML_CONVOLUTION_OPERATOR_DESC
from ....operators.specs.gemm import DML_GEMM_OPERATOR_DESC
from ....operators.window_math import Window, windows_of
from . import Run, Tensors
from .pointwise import finish
from .precision import WHOLE_SUMS, precision

_LARGEST = 2**31 - 1
"""Strides and paddings that libraries take."""

_backends = torch.backends


def are_halves(*tensors: Any) -> bool:
    """Whether operands are FLOAT16 on a GPU, whose libraries take them as they are."""
    return all(x is None or (x.dtype == torch.float16 and x.is_cuda) for x in tensors)


def plan(
    spec: OperatorSpec,
    desc: OperatorDesc,
    inputs: Sequence[Layout | None],
    outputs: Sequence[Layout | None],
    allow_tf32: bool = False,
) -> Run:
    """What a dispatch does.

    Args:
        allow_tf32: whether convolutions may round their operands to TF32, and products of matrices as far as the
            process allows it.
    """
    if isinstance(desc, DML_GEMM_OPERATOR_DESC):
        return _gemm(desc, inputs, outputs[0], allow_tf32)
    assert isinstance(desc, DML_CONVOLUTION_OPERATOR_DESC)
    function = convolution(desc, allow_tf32)
    write = finish(desc.FusedActivation)

    def run(read: Tensors, written: Tensors) -> None:
        with precision(allow_tf32):
            y = function(*[None if x is None else x.float() for x in read])
        write(y, written[0])

    return run


def _gemm(
    desc: DML_GEMM_OPERATOR_DESC, inputs: Sequence[Layout | None], output: Layout | None, allow_tf32: bool
) -> Run:
    assert output is not None
    product = _product(desc, inputs, allow_tf32 and _has_cudnn())
    write = finish(desc.FusedActivation)
    is_relu = getattr(spec_of(desc.FusedActivation), "name", "") == "ACTIVATION_RELU"
    is_own = (desc.FusedActivation is None or is_relu) and output.is_packed()

    def run(read: Tensors, written: Tensors) -> None:
        y, halves = written[0], are_halves(*read)
        if not halves:
            read = [None if x is None else x.float() for x in read]
        with WHOLE_SUMS if halves else precision(allow_tf32):
            if is_own and (halves or y.dtype == torch.float32):
                product(*read, y)
                if is_relu:
                    torch.clamp(y, min=0, out=y)
                return
            # FLOAT16 that another function follows is rounded behind it.
            found = product(*read, None)
        write(found, y)

    return run


def _product(desc: DML_GEMM_OPERATOR_DESC, inputs: Sequence[Layout | None], allow_tf32: bool) -> Callable[..., Any]:
    """What computes it of A, B and C: into the last argument, or in single precision where that is None."""
    turn = [transform == MatrixTransform.TRANSPOSE for transform in (desc.TransA, desc.TransB)]
    sizes = desc.OutputTensor.Sizes
    batch = sizes[:-2]
    of_a, of_b, of_c = inputs
    assert of_a is not None and of_b is not None
    is_row = of_c is not None and _repeats(of_c, len(batch) + 1)
    # A matrix B for all of a batch multiplies the rows of all A's at once.
    is_one = all(size == 1 for size in batch)
    is_one |= not turn[0] and of_a.is_packed() and _repeats(of_b, len(batch)) and (is_row or of_c is None)
    last = (0,) * len(batch)

    def function(a: Any, b: Any, c: Any, out: Any) -> Any:
        if is_one:
            a = a[last].mT if turn[0] else a.reshape(-1, a.shape[-1])
            b = b[last].mT if turn[1] else b[last]
            c = c if c is None else c[(*last, 0)] if is_row else c[last]
        else:
            a, b = (x.mT if is_turned else x for x, is_turned in zip((a, b), turn, strict=True))
            a, b, c = (None if x is None else x.flatten(0, -3) for x in (a, b, c))
        place = None if out is None else out.view(-1, sizes[-1]) if is_one else out.view(-1, *sizes[-2:])
        if allow_tf32 and place is not None and _is_for_tensor_cores(a, b):
            _multiply_reduced(a, b, place)
            _add(place, c, desc.Alpha, desc.Beta)
            return out
        return _multiplied(a, b, c, desc.Alpha, desc.Beta, place).reshape(sizes)

    return function


def _is_for_tensor_cores(a: Any, b: Any) -> bool:
    """Whether two matrices are worth a product in TF32: of whole words of 16 bytes, and of some rows."""
    is_single = a.is_cuda and a.dtype == torch.float32 and a.ndim == 2
    return bool(is_single and a.shape[0] >= _ROWS and a.shape[1] % 4 == 0 and b.shape[1] % 4 == 0)


_ROWS = 16


def _multiply_reduced(a: Any, b: Any, out: Any) -> None:
    """Of operands rounded to TF32, by a convolution of images of one place: PyTorch has a call that allows it to one
    convolution alone, and none that does so for a product of matrices."""
    rows, filters, places = (x[:, :, None, None] for x in (a.contiguous(), b.mT.contiguous(), out))
    torch.ops.aten.cudnn_convolution.out(rows, filters, *_ONE_PLACE, out=places)


_ONE_PLACE: tuple[Any, ...] = ([0, 0], [1, 1], [1, 1], 1, False, True, True)
"""No padding, strides and dilations of 1, one group; not benchmarked, deterministic, TF32 allowed."""


def _add(y: Any, c: Any, alpha: float, beta: float) -> None:
    """alpha y + beta c, in place."""
    if alpha != 1:
        y.mul_(alpha)
    if c is not None and beta != 0:
        y.add_(c, alpha=beta)
    elif c is not None:
        y.add_(c * beta)


def ready_for_tf32(desc: DML_GEMM_OPERATOR_DESC, layout: Layout, b: Any) -> Any:
    """A matrix B that stays, as a product in TF32 reads it: its columns one after the other. None where it lies so."""
    is_turned = desc.TransB == MatrixTransform.TRANSPOSE
    if is_turned or not _repeats(layout, len(layout.sizes) - 2) or not _has_cudnn():
        return None
    return b[(0,) * (b.ndim - 2)].mT.contiguous().mT.expand(b.shape)


def _has_cudnn() -> bool:
    return torch.version.hip is None and bool(torch.backends.cudnn.is_available())


def _multiplied(a: Any, b: Any, c: Any, alpha: float, beta: float, out: Any) -> Any:
    """alpha a b + beta c, of matrices or a batch of them."""
    multiply, both = (torch.mm, torch.addmm) if a.ndim == 2 else (torch.bmm, torch.baddbmm)
    # A Beta of 0 would leave out what is infinite in C.
    if out is None or (c is not None and beta == 0):
        wide = {"out_dtype": torch.float32} if a.dtype == torch.float16 else {}
        y = multiply(a, b, **wide)
        y = y.mul_(alpha) if alpha != 1 else y
        y = y if c is None else y.add_(c.float() * beta)
        return y if out is None else out.copy_(y)
    if c is not None:
        return both(c, a, b, beta=beta, alpha=alpha, out=out)
    return multiply(a, b, out=out) if alpha == 1 else both(out, a, b, beta=0, alpha=alpha, out=out)


def _repeats(layout: Layout, dimensions: int) -> bool:
    """Whether what lies behind so many dimensions is the same all along them."""
    pairs = zip(layout.sizes[:dimensions], layout.strides[:dimensions], strict=True)
    return all(size == 1 or stride == 0 for size, stride in pairs)


def convolution(desc: DML_CONVOLUTION_OPERATOR_DESC, allow_tf32: bool = False) -> Callable[..., Any]:
    """What computes it of the input, the filter and the bias: the result with its OutputPadding, and then the bias."""
    found = _found(desc)
    is_forward = desc.Direction == ConvolutionDirection.FORWARD
    windows = _windows(desc)
    by = _by_taps if any(map(is_extreme, windows)) else _forward if is_forward else _backward
    convolve = by(desc, windows, found, allow_tf32)
    # By taps it is read as the desc has it.
    turns = () if by is _by_taps else turned(desc)
    behind = [number for padding in reversed(desc.OutputPadding) for number in (0, padding)]

    def function(x: Any, w: Any, bias: Any) -> Any:
        w = w.flip(turns) if turns else w
        if not any(behind):
            return convolve(x, w, None if bias is None else bias.reshape(-1))
        y = functional.pad(convolve(x, w, None), behind)
        return y if bias is None else y.add_(bias)

    return function


def _found(desc: DML_CONVOLUTION_OPERATOR_DESC) -> list[int]:
    """The sizes of what is computed, without the OutputPadding."""
    return [size - padding for size, padding in zip(desc.OutputTensor.Sizes[2:], desc.OutputPadding, strict=True)]


def _windows(desc: DML_CONVOLUTION_OPERATOR_DESC) -> list[Window]:
    sizes = desc.InputTensor.Sizes[2:] if desc.Direction == ConvolutionDirection.FORWARD else _found(desc)
    taps = desc.FilterTensor.Sizes[2:]
    return list(windows_of(sizes, taps, desc.Strides, desc.StartPadding, desc.EndPadding, desc.Dilations))


class Direct(NamedTuple):
    """A forward convolution as a call that writes to a tensor which is there."""

    ends: list[int]
    """Of padding that is no part of the call; empty where there is none."""
    arguments: tuple[Any, ...]

    @staticmethod
    def takes(x: Any) -> bool:
        """Whether an input is where the call is served."""
        return bool(x.is_cuda)

    def __call__(self, x: Any, w: Any, out: Any) -> None:
        x = functional.pad(x, self.ends) if self.ends else x
        torch.ops.aten.cudnn_convolution.out(x, w, *self.arguments, out=out)


def direct(desc: DML_CONVOLUTION_OPERATOR_DESC, has_channels_last: bool, allow_tf32: bool) -> Direct | None:
    """Of what cuDNN does for PyTorch, which has other kernels where each group has one channel, and these lie first."""
    if desc.Direction != ConvolutionDirection.FORWARD or any(desc.OutputPadding) or len(desc.InputTensor.Sizes) != 4:
        return None
    if not _has_cudnn():
        return None
    if desc.GroupCount > 1 and desc.GroupCount == desc.InputTensor.Sizes[1] and not has_channels_last:
        return None
    windows = _windows(desc)
    if any(map(is_extreme, windows)):
        return None
    is_even = all(window.start == window.end for window in windows)
    padding = [window.start if is_even else 0 for window in windows]
    ends = [] if is_even else [end for window in reversed(windows) for end in (window.start, window.end)]
    last = (list(desc.Strides), list(desc.Dilations), desc.GroupCount, False, True, allow_tf32)
    return Direct(ends, (padding, *last))


_CUDNN = Lock()
"""Held while what cuDNN may do is set, and a call is made that asks for it."""


class Fused(NamedTuple):
    """A forward convolution, what is added to it and RELU as one call, which gives a new tensor."""

    ends: list[int]
    """As :class:`Direct` has it."""
    last: tuple[Any, ...]
    allow_tf32: bool

    def takes(self, x: Any) -> bool:
        """Whether an input is where the call is served, and a process allows as much as the operator does: what it has
        forbidden is not set for a while, as other threads would see it."""
        is_allowed = not self.allow_tf32 or x.dtype != torch.float32 or _backends.cudnn.allow_tf32
        return bool(x.is_cuda and is_allowed)

    def __call__(self, x: Any, w: Any, bias: Any, added: Any) -> Any:
        x = functional.pad(x, self.ends) if self.ends else x
        bias = None if bias is None else bias.reshape(-1)
        with self._settings(x):
            if added is None:
                return torch.cudnn_convolution_relu(x, w, bias, *self.last)
            return torch.cudnn_convolution_add_relu(x, w, added, 1.0, bias, *self.last)

    @contextmanager
    def _settings(self, x: Any) -> Iterator[None]:
        """These calls look at the process's settings alone, and sum in any order where they may."""
        cudnn = _backends.cudnn
        with _CUDNN:
            before = cudnn.deterministic, cudnn.allow_tf32
            try:
                cudnn.deterministic = True
                if before[1] and x.dtype == torch.float32 and not self.allow_tf32:
                    cudnn.allow_tf32 = False
                yield
            finally:
                cudnn.deterministic = before[0]
                if cudnn.allow_tf32 != before[1]:
                    cudnn.allow_tf32 = before[1]


def fused_with_relu(desc: DML_CONVOLUTION_OPERATOR_DESC, allow_tf32: bool) -> Fused | None:
    """Of what cuDNN does in one pass; not of groups of one channel, which it has no fast kernels for."""
    found = direct(desc, False, allow_tf32)
    if found is None:
        return None
    padding, strides, dilations, groups, *_ = found.arguments
    return Fused(found.ends, (strides, padding, dilations, groups), allow_tf32)


def turned(desc: DML_CONVOLUTION_OPERATOR_DESC) -> tuple[int, ...]:
    """The axes of a filter that a call takes the other way round."""
    is_turned = desc.Mode == ConvolutionMode.CONVOLUTION
    return tuple(range(2, len(desc.InputTensor.Sizes))) if is_turned else ()


def is_extreme(window: Window) -> bool:
    """Whether it lies on padding alone at some places, or is beyond what libraries count."""
    return max(window.start, window.end) >= window.extent or max(window.padded, window.stride) > _LARGEST


def _called(
    desc: DML_CONVOLUTION_OPERATOR_DESC, padding: Sequence[int], extra: Sequence[int] | None, allow_tf32: bool
) -> Any:
    """PyTorch's own call, as its public ones allow cuDNN less than single precision by settings of the process alone.

    Args:
        extra: elements beyond the end of a transposed convolution; None for a forward one.
    """
    last = (list(desc.Strides), list(padding), list(desc.Dilations), extra is not None, extra or [0] * len(padding))
    flags = {"benchmark": False, "deterministic": True, "cudnn_enabled": True, "allow_tf32": allow_tf32}
    return lambda x, w, bias: torch._convolution(x, w, bias, *last, desc.GroupCount, **flags)


def _forward(
    desc: DML_CONVOLUTION_OPERATOR_DESC, windows: Sequence[Window], found: Sequence[int], allow_tf32: bool
) -> Any:
    if all(window.start == window.end for window in windows):
        return _called(desc, [window.start for window in windows], None, allow_tf32)
    call = _called(desc, [0] * len(windows), None, allow_tf32)
    ends = [padding for window in reversed(windows) for padding in (window.start, window.end)]
    return lambda x, w, bias: call(functional.pad(x, ends), w, bias)


def _backward(
    desc: DML_CONVOLUTION_OPERATOR_DESC, windows: Sequence[Window], found: Sequence[int], allow_tf32: bool
) -> Any:
    """What both paddings cut is not computed; the rest that one of them cuts is left out of the result."""
    padding = [min(window.start, window.end) for window in windows]
    places = zip(desc.InputTensor.Sizes[2:], windows, padding, found, strict=True)
    cuts, extra = [slice(None), slice(None)], []
    for size, window, both, wanted in places:
        whole = (size - 1) * window.stride + window.extent
        cuts.append(slice(window.start - both, window.start - both + wanted))
        extra.append(max(0, window.start + wanted + both - whole))
    call = _called(desc, padding, extra, allow_tf32)
    return lambda x, w, bias: call(x, w, bias)[tuple(cuts)]


def _by_taps(
    desc: DML_CONVOLUTION_OPERATOR_DESC, windows: Sequence[Window], found: Sequence[int], allow_tf32: bool
) -> Any:
    """As the reference does it: a product of matrices for each tap that lies on elements somewhere."""
    is_forward = desc.Direction == ConvolutionDirection.FORWARD
    sizes, groups = desc.InputTensor.Sizes, desc.GroupCount
    small = found if is_forward else sizes[2:]
    slices = [window.tap_slices(places) for window, places in zip(windows, small, strict=True)]
    steps = [tuple(zip(*each, strict=True)) for each in product(*slices)]
    if desc.Mode == ConvolutionMode.CONVOLUTION:
        # A filter that is not turned round itself may be huge, by strides of 0.
        last = [window.taps - 1 for window in windows]
        steps = [(tuple(np.subtract(last, tap).tolist()), *rest) for tap, *rest in steps]

    def convolve(x: Any, w: Any, bias: Any) -> Any:
        x = x.unflatten(1, (groups, -1))
        w = w.unflatten(0, (groups, -1))
        w = w if is_forward else w.transpose(1, 2)
        y = x.new_zeros((x.shape[0], groups, w.shape[1], *found))
        for tap, places, elements in steps:
            read, written = (elements, places) if is_forward else (places, elements)
            weighed = x[(..., *read)]
            terms = torch.matmul(w[(..., *tap)], weighed.flatten(3))
            y[(..., *written)] += terms.unflatten(3, weighed.shape[3:])
        y = y.flatten(1, 2)
        return y if bias is None else y.add_(bias.reshape(1, -1, *(1,) * len(found)))

    return convolve
