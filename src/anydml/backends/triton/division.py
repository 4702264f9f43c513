"""Division by a multiplication, by the method of Granlund and Montgomery, in kernels."""

from __future__ import annotations

from collections.abc import Sequence


def magic(divisor: int) -> tuple[int, int]:
    """The multiplier, as a signed number of 32 bits, and the shift that divide numbers below 2^31 by `divisor`.

    n // divisor = (n * multiplier // 2^32 + n) >> shift.
    """
    shift = (divisor - 1).bit_length()
    multiplier = ((1 << 32) * ((1 << shift) - divisor)) // divisor + 1
    return multiplier - (1 << 32) if multiplier >= 1 << 31 else multiplier, shift


def quotient(number: str, multiplier: str, shift: str) -> str:
    """An expression of Triton, of a block of INT32 that are not negative."""
    factor = f"tl.full([BLOCK], {multiplier}, tl.int32).to(tl.uint32, bitcast=True)"
    unsigned = f"{number}.to(tl.uint32, bitcast=True)"
    return f"((tl.umulhi({unsigned}, {factor}) + {unsigned}) >> {shift}).to(tl.int32, bitcast=True)"


def divisors(sizes: Sequence[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Multipliers and shifts for loops of these sizes, as `apart` takes them."""
    multipliers, shifts = zip(*[magic(size) if size < 1 << 31 else (0, 0) for size in sizes], strict=True)
    return multipliers, shifts
