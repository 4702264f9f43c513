"""CONVOLUTION with a filter and a bias that stay, on the CPU: they are brought into the library's order once.

What has one tap is a product of matrices, written where it belongs. For the rest oneDNN wants the channels to lie last,
in the filter an order of its own, and gives its result in memory of its own, from where the activation brings it. With
channels that lie elsewhere it would reorder the tensors themselves, which takes longer than what it saves.

Both libraries come with PyTorch. The choice, in microseconds on one thread of an AMD EPYC with AVX2, by NumPy 2.4.6 and
PyTorch 2.13.0 (2026-11-21, ``python benchmarks/convolutions.py``)::

    channels, size, taps, stride, groups    OpenBLAS, im2col    oneDNN    oneDNN, prepared    MKL, in place
    3 to 64, 224, 3, 2, 1                               4214      5301                2741                -
    16 to 64, 55, 3, 1, 1                               1241       919                 768                -
    64 to 256, 13, 3, 1, 1                               879       818                 655                -
    512 to 1000, 13, 1, 1, 1                            2425      2534                2175             2176
    16 to 96, 112, 1, 1, 1                              1937      1554                1086              972
    64 to 384, 28, 1, 1, 1                               906       696                 649              531
    384 to 64, 28, 1, 1, 1                               634       537                 563              513
    160 to 960, 7, 1, 1, 1                               312       264                 262              225
    144 to 144, 56, 3, 1, 144                              -       526                 427                -
    384 to 384, 28, 3, 1, 384                              -       404                 342                -

oneDNN by itself, as Intel's package for Python has it, is a library for C with a runtime of its own, for one kind of
processor.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import torch
from torch.nn import functional

from ...core.enums import ConvolutionDirection, ConvolutionMode, TensorDataType
from ...core.strided_layout import Layout, fold
from ...operators.specs.convolution import DML_CONVOLUTION_OPERATOR_DESC
from ...operators.window_math import Window, windows_of
from .lowering import Tensors
from .lowering.dense import SETTINGS, is_extreme, single_precision
from .lowering.pointwise import finish

Bind = Callable[[Tensors, Tensors], Callable[[], None]]
"""Takes the tensors of a dispatch, or of many, and gives what computes it."""


class Packed(NamedTuple):
    """What was prepared."""

    bind: Bind
    size: int
    """In bytes."""


Prepare = Callable[[Tensors], Packed | None]
"""Takes the inputs that stay, None for the others."""

_LAST = (0, 2, 3, 1)
"""The dimensions of a tensor whose channels lie last, in the order of its memory."""

_LIBRARY = [each for each in SETTINGS if each is not torch.backends.cuda.matmul]
"""What may allow the CPU's libraries less than single precision."""


def missing() -> str:
    """Why there is no oneDNN with prepared filters; nothing where there is."""
    names = "_reorder_convolution_weight", "_convolution_pointwise"
    is_there = torch.backends.mkldnn.is_available() and all(hasattr(torch.ops.mkldnn, name) for name in names)
    return "" if is_there else f"PyTorch {torch.__version__} has no oneDNN that takes prepared filters"


def is_served(desc: DML_CONVOLUTION_OPERATOR_DESC) -> bool:
    """Whether a filter can be prepared, at least where channels lie last."""
    is_plain = len(desc.InputTensor.Sizes) == 4 and desc.Direction == ConvolutionDirection.FORWARD
    return is_plain and not any(desc.OutputPadding) and not any(map(is_extreme, _windows(desc))) and not missing()


def prepares(desc: DML_CONVOLUTION_OPERATOR_DESC, x: Layout, y: Layout) -> Prepare | None:
    """For what `is_served`; None where nothing is gained, as the tensors lie."""
    windows = _windows(desc)
    is_product = desc.GroupCount == 1 and all(window[1:5] == (1, 1, 0, 0) for window in windows)
    if is_product and x.type == TensorDataType.FLOAT32:
        if all(map(_is_rows, (x, y))):
            return _product(desc, _by_rows)
        if all(map(_is_columns, (x, y))):
            return _product(desc, _by_columns)
    return _by_library(desc, windows) if _lies_last(y) else None


def _windows(desc: DML_CONVOLUTION_OPERATOR_DESC) -> list[Window]:
    taps = desc.FilterTensor.Sizes[2:]
    return windows_of(
        desc.InputTensor.Sizes[2:], taps, desc.Strides, desc.StartPadding, desc.EndPadding, desc.Dilations
    )


def _lies_last(layout: Layout) -> bool:
    """Whether neighbours in memory are channels of one place."""
    return layout.sizes[1] > 1 and layout.strides[1] == layout.dtype.itemsize


def _is_rows(layout: Layout) -> bool:
    """Whether it is a matrix with a row for each place of the batch, and a column for each channel."""
    sizes, strides = ([each[i] for i in _LAST] for each in (layout.sizes, layout.strides))
    return _lies_last(layout) and len(fold(sizes, [strides], 3)[0]) <= 2


def _is_columns(layout: Layout) -> bool:
    """Whether each image is a matrix with a row for each channel, and a column for each place."""
    sizes, strides = layout.sizes[2:], layout.strides[2:]
    return strides[1] == layout.dtype.itemsize and strides[0] == sizes[1] * strides[1] and min(sizes) > 1


_Multiply = Callable[[Any, Any], Callable[[], Any]]
"""Takes what is multiplied, and where the result goes; gives what does it."""


def _by_rows(w: Any, bias: Any) -> _Multiply:
    w = w.flatten(1).mT.contiguous()

    def product(x: Any, y: Any) -> Callable[[], Any]:
        x, y = (each.permute(_LAST).flatten(0, 2) for each in (x, y))
        return partial(torch.addmm, bias, x, w, out=y)

    return product


def _by_columns(w: Any, bias: Any) -> _Multiply:
    w, bias = w.flatten(1), bias[:, None]

    def product(x: Any, y: Any) -> Callable[[], Any]:
        pairs = list(zip(x.flatten(2), y.flatten(2), strict=True))

        def each() -> None:
            for image, result in pairs:
                torch.addmm(bias, w, image, out=result)

        return each

    return product


def _exactly(call: Callable[..., Any], *operands: Any) -> Any:
    """A call in single precision; to look whether less is allowed costs less than to forbid it."""
    if _LIBRARY and all(setting.fp32_precision in ("none", "ieee") for setting in _LIBRARY):
        return call(*operands)
    with single_precision():
        return call(*operands)


def _stays(desc: DML_CONVOLUTION_OPERATOR_DESC, fixed: Tensors) -> tuple[Any, Any] | None:
    """Filter, as it is applied, and bias; None where one of them may change."""
    w, bias = fixed[1].float() if fixed[1] is not None else None, fixed[2]
    if w is None or (bias is None and desc.BiasTensor is not None):
        return None
    w = w.flip((2, 3)) if desc.Mode == ConvolutionMode.CONVOLUTION else w.clone()
    return w, w.new_zeros(len(w)) if bias is None else bias.reshape(-1).to(w.dtype, copy=True)


def _bytes(tensors: Sequence[Any]) -> int:
    return sum(each.numel() * each.element_size() for each in tensors)


def _product(desc: DML_CONVOLUTION_OPERATOR_DESC, by: Callable[[Any, Any], _Multiply]) -> Prepare:
    write = finish(desc.FusedActivation)

    def prepare(fixed: Tensors) -> Packed | None:
        parameters = _stays(desc, fixed)
        if parameters is None:
            return None
        product = by(*parameters)

        def bind(read: Tensors, written: Tensors) -> Callable[[], None]:
            y = written[0]
            call = product(read[0], y)

            def run() -> None:
                _exactly(call)
                if desc.FusedActivation is not None:
                    write(y, y)

            return run

        return Packed(bind, _bytes(parameters))

    return prepare


def _by_library(desc: DML_CONVOLUTION_OPERATOR_DESC, windows: Sequence[Window]) -> Prepare:
    write = finish(desc.FusedActivation)
    is_even = all(window.start == window.end for window in windows)
    padding = [window.start if is_even else 0 for window in windows]
    ends = [] if is_even else [each for window in reversed(windows) for each in (window.start, window.end)]
    numbers = padding, list(desc.Strides), list(desc.Dilations), desc.GroupCount
    padded = [window.padded if ends else window.size for window in windows]
    sizes = [*desc.InputTensor.Sizes[:2], *padded]

    def prepare(fixed: Tensors) -> Packed | None:
        parameters = _stays(desc, fixed)
        if parameters is None:
            return None
        bias = parameters[1]
        w = torch.ops.mkldnn._reorder_convolution_weight(parameters[0], *numbers, sizes)
        call = torch.ops.mkldnn._convolution_pointwise.default

        def bind(read: Tensors, written: Tensors) -> Callable[[], None]:
            def run() -> None:
                x = read[0].float()
                x = functional.pad(x, ends) if ends else x
                y = _exactly(call, x, w, bias, *numbers, "none", [], "")
                write(y, written[0])

            return run

        return Packed(bind, _bytes((w, bias)))

    return prepare
