"""Kernels of the tests' own."""

from __future__ import annotations

import triton
import triton.language as tl

from anydml.backends.triton.pooling.quantized_kernels import _rounded
from anydml.backends.triton.scan.ops import frexp, ldexp


@triton.jit
def take_apart(x, mantissas, exponents, whole, N: tl.constexpr):
    at = tl.arange(0, N)
    mantissa, exponent = frexp(tl.load(x + at))
    tl.store(mantissas + at, mantissa)
    tl.store(exponents + at, exponent)
    tl.store(whole + at, ldexp(mantissa, exponent))


@triton.jit
def round_all(total, factor, y, N: tl.constexpr):
    at = tl.arange(0, N)
    tl.store(y + at, _rounded(tl.load(total + at), tl.load(factor + at)))
