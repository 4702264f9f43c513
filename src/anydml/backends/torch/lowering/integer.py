"""Products of matrices and convolutions of integers, exact in double precision, and their requantisation.

Products of bytes are integer ones where one matrix is multiplied with all others, as weights are.

Differences of 8 and 16 bits, and products of them, are integers that doubles hold, and so are sums of at most 2^20 of
the longest: in whatever order a library adds them, the bits are the same. Differences of 32 bits are parted into digits
of 16.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any, TypeAlias

import torch
from torch.nn import functional

from ....core.strided_layout import Layout
from ....operators.requantization import NEAR
from ....operators.schema import OperatorDesc, OperatorSpec
from ....operators.specs.convolution import filter_windows
from . import Run, Tensors
from .values import double, store, widened

_EXACT = 1 << 20
"""How many products of 32 bits doubles hold the sum of."""
_BYTES = 1 << 15
"""How many products of bytes 32 bits hold the sum of."""
_MANY = 1 << 22
"""Bytes of a matrix, from which on integer products take less time than doubles, with all calls around them."""
_DIGITS = (0, 16, 32)
_SPLITTER = float((1 << 27) + 1)

Sums: TypeAlias = Callable[[Any, Any, Any, Any], Any]
"""Of operands and their zero points, in 64 bits, modulo 2^64."""


def plan(
    spec: OperatorSpec, desc: OperatorDesc, inputs: Sequence[Layout | None], outputs: Sequence[Layout | None]
) -> Run:
    sums: Sums = _convolved(desc) if hasattr(desc, "FilterTensor") else _multiplied
    if hasattr(desc, "OutputScaleTensor"):
        return _quantised(sums, hasattr(desc, "FilterTensor"))
    return _to_float if hasattr(desc, "AScaleTensor") else _integers(sums)


def _integers(sums: Sums) -> Run:
    def run(read: Tensors, written: Tensors) -> None:
        x, x_zero, w, w_zero = read
        store(sums(x, x_zero, w, w_zero), written[0])

    return run


def _quantised(sums: Sums, has_bias: bool) -> Run:
    def run(read: Tensors, written: Tensors) -> None:
        x, x_scale, x_zero, w, w_scale, w_zero, *bias, scale, zero = read
        total = sums(x, x_zero, w, w_zero)
        if has_bias and bias[0] is not None:
            total += bias[0]
        store(_requantised(total, double(x_scale) * double(w_scale), double(scale), zero), written[0])

    return run


def _to_float(read: Tensors, written: Tensors) -> None:
    a, a_scale, a_zero, b, b_scale, b_zero, bias = read
    y = double(_multiplied(a, a_zero, b, b_zero)) * (double(a_scale) * double(b_scale))
    store(y if bias is None else y + double(bias), written[0])


def _difference(x: Any, zero: Any) -> Any:
    return widened(x) if zero is None else widened(x) - widened(zero)


def _multiplied(a: Any, a_zero: Any, b: Any, b_zero: Any) -> Any:
    if _are_bytes(a, a_zero, b, b_zero):
        found = _multiplied_bytes(a, a_zero, b, b_zero)
        if found is not None:
            return found
    left, right = _digits(_difference(a, a_zero), a.itemsize), _digits(_difference(b, b_zero), b.itemsize)
    total: Any = None
    for (i, x), (k, y) in product(left, right):
        if i + k < 64:
            part = _product(x, y) << (i + k)
            total = part if total is None else total + part
    return total


def _are_bytes(a: Any, a_zero: Any, b: Any, b_zero: Any) -> bool:
    """Whether integer products of a GPU serve: of many bytes, with one matrix B for all, and zero points that are the
    same for all that is summed."""
    if a.itemsize != 1 or b.itemsize != 1 or not 0 < a.shape[-1] <= _BYTES:
        return False
    if max(a.numel(), b.shape[-2] * b.shape[-1]) < _MANY:
        return False
    is_one = all(size == 1 or step == 0 for size, step in zip(b.shape[:-2], b.stride()[:-2], strict=True))
    pairs = (a, a_zero, -1), (b, b_zero, -2)
    return is_one and all(
        zero is None or (zero.ndim == x.ndim and (zero.shape[axis] == 1 or zero.stride(axis) == 0))
        for x, zero, axis in pairs
    )


def _multiplied_bytes(a: Any, a_zero: Any, b: Any, b_zero: Any) -> Any:
    """sum (a - za)(b - zb) = sum a b - za sum b - zb sum a + n za zb, modulo 2^32, as which it is what 32 bits hold.

    None where the library has no kernel for matrices of these sizes, which it tells when it is asked.
    """
    rows, depth, columns = a.shape[:-1], a.shape[-1], b.shape[-1]
    left, a_less = _signed(a, None if a_zero is None else a_zero[..., :1])
    right, b_less = _signed(b, None if b_zero is None else b_zero[..., :1, :])
    left, right = left.reshape(-1, depth), right[(0,) * (b.ndim - 2)]
    # The library takes more than 16 rows, and multiples of 8.
    short, odd, narrow = max(17 - left.shape[0], 0), -depth % 8, -columns % 8
    x = functional.pad(left, (0, odd, 0, short)) if odd or short else left
    y = functional.pad(right, (0, narrow, 0, odd)) if odd or narrow else right
    try:
        total = torch._int_mm(x, y)
    except RuntimeError as problem:
        if isinstance(problem, torch.OutOfMemoryError):
            raise
        return None
    total = total[: left.shape[0], :columns].reshape(*rows, columns)
    if a_less is not None:
        total = total - a_less * right.sum(0, dtype=torch.int32)
    if b_less is not None:
        of_rows = left.sum(1, dtype=torch.int32).reshape(*rows, 1)
        total = total - b_less * (of_rows if a_less is None else of_rows - a_less * depth)
    return total.long()


def _signed(x: Any, zero: Any) -> tuple[Any, Any]:
    """Bytes as signed ones, and what is to be taken from each. Unsigned ones are so, less 128, with another highest
    bit."""
    less = None if zero is None else zero.to(torch.int32)
    if x.dtype == torch.int8:
        return x, less
    return (x ^ 0x80).view(torch.int8), x.new_full((1,), -128, dtype=torch.int32) if less is None else less - 128


def _digits(x: Any, itemsize: int) -> list[tuple[int, Any]]:
    """Digits of 16 bits, the last one signed, with their shifts."""
    if itemsize < 4:
        return [(0, double(x))]
    return [(shift, double(x >> shift if shift == _DIGITS[-1] else (x >> shift) & 0xFFFF)) for shift in _DIGITS]


def _product(a: Any, b: Any) -> Any:
    count = a.shape[-1]
    if count <= _EXACT:
        return torch.matmul(a, b).long()
    parts = [slice(begin, begin + _EXACT) for begin in range(0, count, _EXACT)]
    return sum(torch.matmul(a[..., part], b[..., part, :]).long() for part in parts)


def _convolved(desc: Any) -> Sums:
    """As the reference does it: a product of matrices for each tap that lies on elements somewhere."""
    groups, output = desc.GroupCount, desc.OutputTensor.Sizes
    windows = filter_windows(desc, desc.InputTensor.Sizes[2:])
    slices = [window.tap_slices(places) for window, places in zip(windows, output[2:], strict=True)]
    steps = [tuple(zip(*each, strict=True)) for each in product(*slices)]

    def sums(x: Any, x_zero: Any, w: Any, w_zero: Any) -> Any:
        # One number, which may have more dimensions than the input.
        x = double(_difference(x, None if x_zero is None else x_zero.reshape(()))).unflatten(1, (groups, -1))
        w = w.unflatten(0, (groups, -1))
        zeros = None if w_zero is None else w_zero.reshape(-1).expand(output[1]).reshape(groups, -1, 1)
        y = x.new_zeros((x.shape[0], groups, w.shape[1], *output[2:]))
        for tap, places, elements in steps:
            weighed = x[(..., *elements)]
            terms = torch.matmul(double(_difference(w[(..., *tap)], zeros)), weighed.flatten(3))
            y[(..., *places)] += terms.unflatten(3, weighed.shape[3:])
        return y.reshape(output).long()

    return sums


def _requantised(total: Any, factor: Any, scale: Any, zero: Any) -> Any:
    """round(total * factor / scale) + zero, of exact numbers, halves to the even integer; not yet saturated.

    A quotient in double precision says which integer is next, but close to a half. There total * factor, as the sum of
    two doubles, is compared with the half times scale, which is exact.
    """
    total = double(total)
    quotient = total * (factor / scale)
    nearest = quotient.round()
    rest = quotient - nearest
    step = torch.where(rest < 0, -1.0, 1.0).to(rest.dtype)
    high, low = _exact_product(total, factor)
    beyond = ((high - (nearest + step / 2) * scale) + low) * step * scale.sign()
    is_near = (rest.abs() - 0.5).abs() < NEAR
    is_next = is_near & ((beyond > 0) | ((beyond == 0) & (nearest.remainder(2) != 0)))
    whole = torch.where(is_next, nearest + step, nearest)
    whole = whole.masked_fill(whole.isnan(), 0)
    return whole if zero is None else whole + double(zero)


def _exact_product(a: Any, b: Any) -> tuple[Any, Any]:
    """Dekker's product: the two doubles whose sum it is."""
    a_high, a_low = _halves(a)
    b_high, b_low = _halves(b)
    high = a * b
    return high, ((a_high * b_high - high) + a_high * b_low + a_low * b_high) + a_low * b_low


def _halves(x: Any) -> tuple[Any, Any]:
    """Veltkamp's splitting: two doubles of half as many bits."""
    scaled = x * _SPLITTER
    high = scaled - (scaled - x)
    return high, x - high
