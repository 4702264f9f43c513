"""Kernels of the tests' own."""

from __future__ import annotations

import triton
import triton.language as tl

from anydml.engines.gpu.pooling_kernels import _rounded
from anydml.engines.gpu.scan_kernels import multiply_scaled, split


@triton.jit
def multiply_all(x, y, mantissa, exponent, N: tl.constexpr):
    at = tl.arange(0, N)
    a, a_exponent = split(tl.load(x + at))
    b, b_exponent = split(tl.load(y + at))
    m, e = multiply_scaled(a, a_exponent, b, b_exponent)
    tl.store(mantissa + at, m)
    tl.store(exponent + at, e)


@triton.jit
def round_all(total, factor, y, N: tl.constexpr):
    at = tl.arange(0, N)
    tl.store(y + at, _rounded(tl.load(total + at), tl.load(factor + at)))
