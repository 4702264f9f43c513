"""What the operators promise, judged by exact arithmetic: integers and fractions, never another float accumulator.

Only the questions that the promise itself leaves to the sequential wide accumulator (which outputs are NaN or infinite,
and what follows once a product has left the wide type's normal range) are put to one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import frexp, prod
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Float:
    """A float type and the wider one in which its accumulators are held."""

    dtype: type
    wide: type
    unit: Fraction
    """The relative rounding error of the wide type."""

    def rounded(self, exact: Fraction) -> Any:
        """`exact` rounded once, half to even; infinite from half a unit above the largest value on."""
        if abs(exact) >= self.threshold:
            return self.dtype(np.inf if exact > 0 else -np.inf)
        with np.errstate(over="ignore"):
            near = self.dtype(float(exact))
            candidates = [near, np.nextafter(near, self.dtype(-np.inf)), np.nextafter(near, self.dtype(np.inf))]
        finite = [value for value in candidates if np.isfinite(value)]
        bits = f"u{np.dtype(self.dtype).itemsize}"
        return min(finite, key=lambda v: (abs(Fraction(float(v)) - exact), int(v.view(bits)) & 1))

    @property
    def threshold(self) -> Fraction:
        limits = np.finfo(self.dtype)
        return Fraction(float(limits.max)) + Fraction(2) ** (limits.maxexp - limits.nmant - 2)

    def ulp(self, value: Any) -> Fraction:
        """A unit in the last place: the distance to the next value away from 0, at an infinity that of the largest."""
        limits = np.finfo(self.dtype)
        magnitude = min(abs(float(value)), float(limits.max))
        exponent = max(frexp(magnitude)[1] - 1, limits.minexp) if magnitude else limits.minexp
        return Fraction(2) ** (exponent - limits.nmant)

    def sequential(self, operation: np.ufunc, prefix: Sequence[float]) -> Any:
        accumulator = self.wide(operation.identity)
        with np.errstate(all="ignore"):
            for value in prefix:
                accumulator = operation(accumulator, self.wide(value))
        return accumulator


FLOATS = {
    np.dtype(np.float32): Float(np.float32, np.float64, Fraction(1, 2**53)),
    np.dtype(np.float16): Float(np.float16, np.float32, Fraction(1, 2**24)),
}


def rows(array: np.ndarray, axis: int, reverse: bool) -> Iterator[np.ndarray]:
    """Every row along the axis, in the order of traversal."""
    moved = np.moveaxis(array, axis, -1).reshape(-1, array.shape[axis])
    yield from (moved[:, ::-1] if reverse else moved)


def check_tally(
    operation: str, x: np.ndarray, y: np.ndarray, axis: int, reverse: bool = False, exclusive: bool = False
) -> None:
    """Asserts that y is the running sum or product of x within the promise."""
    assert y.dtype == x.dtype
    assert y.shape == x.shape
    for given, got in zip(rows(x, axis, reverse), rows(y, axis, reverse), strict=True):
        if x.dtype not in FLOATS:
            assert got.tolist() == _integers(operation, given, exclusive)
        else:
            for i, value in enumerate(got):
                _CHECKS[operation](FLOATS[x.dtype], given[: i if exclusive else i + 1], value)


def check_last(operation: str, x: np.ndarray, last: np.ndarray) -> None:
    """Asserts the promise for the last element of each row of floats alone: a long row has too many to check all."""
    for row, value in zip(x, last, strict=True):
        _CHECKS[operation](FLOATS[x.dtype], row, value)


def _integers(operation: str, row: np.ndarray, exclusive: bool) -> list[int]:
    """Modulo 2^n, in Python's integers."""
    bits = row.dtype.itemsize * 8
    accumulator, accumulators = (0, []) if operation == "sum" else (1, [])
    for value in row.tolist():
        before = accumulator
        accumulator = accumulator + value if operation == "sum" else accumulator * value
        accumulators.append(before if exclusive else accumulator)
    signed = row.dtype.kind == "i"
    return [(t + 2 ** (bits - 1) * signed) % 2**bits - 2 ** (bits - 1) * signed for t in accumulators]


def _same_class(value: Any, wide: Any) -> bool:
    return bool(np.isnan(value) == np.isnan(wide) and (np.isnan(wide) or value == wide))


def _check_float_sum(float_: Float, prefix: np.ndarray, value: Any) -> None:
    if not np.isfinite(prefix).all():
        assert _same_class(value, float_.sequential(np.add, prefix)), (prefix, value)
        return
    terms = [Fraction(float(each)) for each in prefix]
    slack = len(terms) * float_.unit * sum(map(abs, terms))
    assert _near(float_, value, sum(terms, Fraction(0)), slack), (prefix, value)


def _near(float_: Float, value: Any, exact: Fraction, slack: Fraction) -> bool:
    """Within 1 unit in the last place and `slack` of the exact result; infinite just where that is too large."""
    if np.isnan(value):
        return False
    if np.isinf(value):
        return (value > 0) == (exact > 0) and abs(exact) + slack >= float_.threshold
    if abs(exact) - slack >= float_.threshold:
        return False
    rounded = float_.rounded(exact)
    target = Fraction(float(rounded)) if np.isfinite(rounded) else float_.threshold * (1 if rounded > 0 else -1)
    return abs(Fraction(float(value)) - target) <= float_.ulp(rounded) + slack


def _check_float_product(float_: Float, prefix: np.ndarray, value: Any) -> None:
    sequential = float_.sequential(np.multiply, prefix)
    with np.errstate(all="ignore"):
        sequential_rounded = float_.dtype(sequential)
    if not np.isfinite(prefix).all():
        if _left_normal_range(float_, prefix):
            # either accumulator: between the two, anything may come of an infinity or a NaN
            return
        assert _same_class(value, sequential_rounded), (prefix, value)
        return
    exact = prod((Fraction(float(each)) for each in prefix), start=Fraction(1))
    slack = len(prefix) * float_.unit * abs(exact)
    if _near(float_, value, exact, slack):
        return
    assert _left_normal_range(float_, prefix), (prefix, value)
    assert _same_class(value, sequential_rounded), (prefix, value)


_CHECKS = {"sum": _check_float_sum, "product": _check_float_product}


def _left_normal_range(float_: Float, prefix: np.ndarray) -> bool:
    """Whether the true product of some finite part from the start is too large or too small for the wide type."""
    limits = np.finfo(float_.wide)
    smallest, largest = Fraction(float(limits.tiny)), Fraction(float(limits.max))
    accumulator = Fraction(1)
    for value in prefix:
        if not np.isfinite(value):
            break
        accumulator *= Fraction(float(value))
        if accumulator and not smallest <= abs(accumulator) <= largest:
            return True
    return False


def check_join(pieces: Sequence[np.ndarray], y: np.ndarray, axis: int) -> None:
    """Asserts that y holds the bytes of the pieces, one after the other along the axis."""
    start = 0
    for piece in pieces:
        part = y[(slice(None),) * axis + (slice(start, start + piece.shape[axis]),)]
        assert part.tobytes() == piece.tobytes()
        start += piece.shape[axis]
    assert start == y.shape[axis]


def check_pooling(
    x: np.ndarray,
    y: np.ndarray,
    input_scale: np.ndarray,
    input_zero_point: np.ndarray,
    output_scale: np.ndarray,
    output_zero_point: np.ndarray,
    window: Sequence[int],
    strides: Sequence[int],
    start: Sequence[int],
    end: Sequence[int],
    dilations: Sequence[int],
    include_padding: bool,
) -> None:
    """Asserts every output by counting taps one by one; scales and zero points have one value for each channel."""
    limits = np.iinfo(y.dtype)
    sizes = x.shape[2:]
    for n, c in product(*map(range, x.shape[:2])):
        scale = Fraction(float(input_scale[c])), Fraction(float(output_scale[c]))
        for place in product(*map(range, y.shape[2:])):
            total, count = 0, 0
            for tap in product(*map(range, window)):
                at = [o * s + t * d - p for o, s, t, d, p in zip(place, strides, tap, dilations, start, strict=True)]
                inside = all(0 <= i < size for i, size in zip(at, sizes, strict=True))
                declared = all(-p <= i < size + q for i, p, q, size in zip(at, start, end, sizes, strict=True))
                total += int(x[(n, c, *at)]) - int(input_zero_point[c]) if inside else 0
                count += declared if include_padding else inside
            if not count:
                q = 0
            else:
                exact = total * scale[0] / (count * scale[1])
                q = round(exact)  # half to even
                if abs(abs(exact - int(exact)) - Fraction(1, 2)) < Fraction(1, 2**40) * max(1, abs(exact)):
                    # So near to a tie that double precision decides, in the order that the formula has.
                    q = round((total * float(scale[0])) / (count * float(scale[1])))
            expected = min(max(q + int(output_zero_point[c]), limits.min), limits.max)
            assert int(y[(n, c, *place)]) == expected, (n, c, place, total, count)
