"""What values are computed in, and how results are stored: in PyTorch the rules that `operators/constraints.py` states.

PyTorch has few kernels for unsigned integers of more than 8 bits. Copies and what is computed modulo 2^n take them for
the signed ones of their size; all else computes UINT16 and UINT32 in a wider signed type.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from ....core.enums import TensorDataType
from ....operators.specs.clip import limits

LOWEST = -(1 << 63)
_SIGNED = {torch.uint16: torch.int16, torch.uint32: torch.int32, torch.uint64: torch.int64}
_BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
_WIDER = {torch.float32: torch.float64, torch.float16: torch.float32}
_DROPPED = (1 << 29) - 1
"""The bits that a double has and a float hasn't."""


def bits(x: Any) -> Any:
    """The elements as integers, to be copied."""
    return x.view(_BITS[x.itemsize])


def modular(x: Any) -> Any:
    """Floats as they are, integers as those of a type in which PyTorch computes the same modulo 2^n."""
    return x.view(_SIGNED[x.dtype]) if x.dtype in _SIGNED else x


def widened(x: Any) -> Any:
    """Floats in the next wider type, integers in 64 bits; UINT64 modulo 2^64."""
    if x.dtype == torch.uint64:
        return x.view(torch.int64)
    return x.to(_WIDER[x.dtype] if x.dtype in _WIDER else x.dtype if x.is_floating_point() else torch.int64)


def double(x: Any) -> Any:
    return x.to(torch.float64)


def flipped(x: Any) -> Any:
    """Unsigned numbers of 64 bits, seen as signed ones, in an order that signed comparison keeps; and back."""
    return x ^ LOWEST


def ordered(x: Any) -> Any:
    """Numbers that compare as the elements do."""
    return flipped(widened(x)) if x.dtype == torch.uint64 else widened(x)


def store(y: Any, out: Any) -> None:
    """Writes what was computed: floats are rounded, and become integers by truncation, saturated; integers wrap."""
    if not y.is_floating_point():
        modular(out).copy_(y)
    elif out.is_floating_point():
        out.copy_(_sticky(y) if y.dtype == torch.float64 and out.dtype == torch.float16 else y)
    else:
        modular(out).copy_(_truncated(y, out.dtype))


def _sticky(y: Any) -> Any:
    """Doubles of which a rounding to float is exact and tells all that one to half needs: the last bit kept is 1
    wherever one below it was. PyTorch goes from double to half by way of float, and would round twice."""
    number = y.contiguous().view(torch.int64)
    low = number & _DROPPED
    return ((number - low) | ((low + _DROPPED) & (_DROPPED + 1))).view(torch.float64)


def _truncated(y: Any, dtype: torch.dtype) -> Any:
    """As integers that hold the type's, of 64 bits modulo 2^64 for UINT64; NaN is 0."""
    limits = torch.iinfo(dtype)
    # Of 8 and 16 bits a single holds both ends.
    y = y if y.dtype == torch.float32 and limits.bits <= 16 else double(y)
    y = y.masked_fill(y.isnan(), 0.0)
    if limits.bits < 64:
        return y.clamp(limits.min, limits.max).to(torch.int64 if limits.max >> 31 else torch.int32)
    # No double is beside the highest integer: what reaches the power of 2 behind it is set as an integer. The upper
    # half of an unsigned type is shifted into the signed one.
    end = float(limits.max + 1)
    is_upper = y >= end / 2 if limits.min == 0 else torch.zeros_like(y, dtype=torch.bool)
    y = y.clamp(min=float(limits.min))
    whole = torch.where(y < end, torch.where(is_upper, y - float(1 << 63), y), 0.0).to(torch.int64)
    whole = torch.where(is_upper, flipped(whole), whole)
    return torch.where(y < end, whole, -1 if limits.min == 0 else limits.max)


def clipped(desc: Any, data_type: TensorDataType, shift: int = 0) -> Callable[[Any], Any]:
    """CLIP, CLIP1 or THRESHOLD of values of a type, or of integers that are shifted down."""
    low, high = limits(data_type, getattr(desc, "Min", -math.inf), getattr(desc, "Max", math.inf))
    if data_type == TensorDataType.FLOAT32:
        # PyTorch refuses an end that the type does not hold.
        with np.errstate(over="ignore"):
            low, high = (float(np.float32(end)) for end in (low, high))
    is_clip1 = hasattr(desc, "MinMaxDataType")
    # Of a NaN and a number the smaller and the larger is the number, and so an end that is NaN limits nothing.
    of_nan = float(np.fmax(low, np.fmin(math.nan, high)) if is_clip1 else np.fmin(high, np.fmax(low, math.nan)))
    low = -math.inf if low != low else low - shift
    high = math.inf if high != high else high - shift

    def clip(x: Any) -> Any:
        if x.is_floating_point():
            x = torch.nan_to_num(x, nan=of_nan, posinf=math.inf, neginf=-math.inf)
        # Where the ends are crossed, the last one holds.
        return x.clamp(max=high).clamp(min=low) if is_clip1 else x.clamp(min=low).clamp(max=high)

    return clip
