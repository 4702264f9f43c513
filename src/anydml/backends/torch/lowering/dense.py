"""CONVOLUTION and GEMM by the libraries that PyTorch calls: in single precision throughout, FLOAT16 too, rounded once.

Sums are held in single precision, where the references hold those of FLOAT32 in double; and a tap on padding is a
product with 0, which is NaN where the filter has an infinity.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from itertools import product
from typing import Any

import numpy as np
import torch
from torch.nn import functional

from ....core.enums import ConvolutionDirection, ConvolutionMode, MatrixTransform
from ....core.strided_layout import Layout
from ....operators.schema import OperatorDesc, OperatorSpec
from ....operators.specs.convolution import DML_CONVOLUTION_OPERATOR_DESC
from ....operators.specs.gemm import DML_GEMM_OPERATOR_DESC
from ....operators.window_math import Window, windows_of
from . import Run, Tensors
from .pointwise import finish

_LARGEST = 2**31 - 1
"""Strides and paddings that libraries take."""

_backends = torch.backends
SETTINGS: list[Any] = [
    setting
    for setting in (
        _backends.cuda.matmul,
        getattr(_backends.mkldnn, "matmul", None),
        getattr(_backends.mkldnn, "conv", None),
    )
    if hasattr(setting, "fp32_precision")
]
"""Where a process may allow PyTorch less than single precision; not there before 2.9."""


@contextmanager
def single_precision() -> Iterator[None]:
    """Undoes for a call what a process has allowed; where it has allowed nothing, nothing is set."""
    if not SETTINGS:
        allowed = torch.get_float32_matmul_precision()
        torch.set_float32_matmul_precision("highest")
        try:
            yield
        finally:
            torch.set_float32_matmul_precision(allowed)
        return
    reduced = [(each, each.fp32_precision) for each in SETTINGS if each.fp32_precision not in ("none", "ieee")]
    for setting, _ in reduced:
        setting.fp32_precision = "ieee"
    try:
        yield
    finally:
        for setting, precision in reduced:
            setting.fp32_precision = precision


def precision(allow_tf32: bool) -> AbstractContextManager[None]:
    """In which calls are made: of single precision, or of what the process allows."""
    return nullcontext() if allow_tf32 else single_precision()


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
    is_product = isinstance(desc, DML_GEMM_OPERATOR_DESC)
    function = _gemm(desc) if is_product else convolution(desc, allow_tf32)  # type: ignore[arg-type]
    write = finish(desc.FusedActivation)  # type: ignore[attr-defined]

    def run(read: Tensors, written: Tensors) -> None:
        with precision(allow_tf32):
            y = function(*[None if x is None else x.float() for x in read])
        write(y, written[0])

    return run


def _gemm(desc: DML_GEMM_OPERATOR_DESC) -> Callable[..., Any]:
    turn = [transform == MatrixTransform.TRANSPOSE for transform in (desc.TransA, desc.TransB)]
    sizes = desc.OutputTensor.Sizes
    is_one_product = all(size == 1 for size in sizes[:-2])
    first = (0,) * (len(sizes) - 2) if is_one_product else ()

    def function(a: Any, b: Any, c: Any) -> Any:
        a, b = (x[first].mT if is_turned else x[first] for x, is_turned in zip((a, b), turn, strict=True))
        # A Beta of 0 would leave out what is infinite in C.
        if is_one_product and c is not None and desc.Beta != 0:
            c = c[first]
            return torch.addmm(c, a, b, beta=desc.Beta, alpha=desc.Alpha).reshape(sizes)
        y = torch.matmul(a, b).reshape(sizes)
        if desc.Alpha != 1:
            y.mul_(desc.Alpha)
        return y if c is None else y.add_(c * desc.Beta)

    return function


def convolution(desc: DML_CONVOLUTION_OPERATOR_DESC, allow_tf32: bool = False) -> Callable[..., Any]:
    """What computes it of the input, the filter and the bias: the result with its OutputPadding, and then the bias."""
    axes = tuple(range(2, len(desc.InputTensor.Sizes)))
    found = [size - padding for size, padding in zip(desc.OutputTensor.Sizes[2:], desc.OutputPadding, strict=True)]
    is_forward = desc.Direction == ConvolutionDirection.FORWARD
    sizes = desc.InputTensor.Sizes[2:] if is_forward else found
    windows = windows_of(
        sizes, desc.FilterTensor.Sizes[2:], desc.Strides, desc.StartPadding, desc.EndPadding, desc.Dilations
    )
    by = _by_taps if any(map(is_extreme, windows)) else _forward if is_forward else _backward
    convolve = by(desc, windows, found, allow_tf32)
    is_turned = desc.Mode == ConvolutionMode.CONVOLUTION and by is not _by_taps
    behind = [number for padding in reversed(desc.OutputPadding) for number in (0, padding)]

    def function(x: Any, w: Any, bias: Any) -> Any:
        w = w.flip(axes) if is_turned else w
        if not any(behind):
            return convolve(x, w, None if bias is None else bias.reshape(-1))
        y = functional.pad(convolve(x, w, None), behind)
        return y if bias is None else y.add_(bias)

    return function


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
