"""Operators on bits, which take the elements of any type as they lie in memory.

Decisions where the pages are silent:

1. A shift is by the amount modulo the number of the elements' bits, as Direct3D's shifts of 32 and 64 bits are.
2. Shifts are logical, as the pages say, and of types without a sign alone: zeros come in on either side.
3. BIT_COUNT, whose page does not speak of it, is not in-place.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...core.strided_layout import DTYPES, Array
from ..pointwise import Pointwise


def _of_bits(function: Callable[..., Any]) -> Callable[..., Array]:
    """The reference of ``function(*elements)``, on the bits as numbers without a sign, as elements of the output."""

    def reference(desc: Any, *elements: Array) -> Array:
        numbers: Array = function(*[each.view(f"u{each.itemsize}") for each in elements])
        dtype = DTYPES[desc.OutputTensor.DataType]
        return numbers.view(dtype) if numbers.dtype.itemsize == dtype.itemsize else numbers.astype(dtype)

    return reference


def _amount(b: Array) -> Array:
    amount: Array = b & b.dtype.type(8 * b.itemsize - 1)
    return amount


def _count(x: Array) -> Array:
    counts: Array = np.unpackbits(np.ascontiguousarray(x)[..., np.newaxis].view(np.uint8), axis=-1).sum(-1, np.uint8)
    return counts


def _shifted_left_by_torch(torch: Any, desc: Any, a: Any, b: Any) -> Any:
    return a << (b & (8 * a.itemsize - 1))


def _shifted_right_by_torch(torch: Any, desc: Any, a: Any, b: Any) -> Any:
    """PyTorch's numbers of 16 bits and more have a sign, which comes in from the left, and is taken away there."""
    width = 8 * a.itemsize
    amount = b & (width - 1)
    signs = torch.full_like(a, -1 if a.is_signed() else 0) << ((width - amount) & (width - 1))
    return torch.where(amount == 0, a, (a >> amount) & ~signs)


def _count_by_torch(torch: Any, desc: Any, x: Any) -> Any:
    """Sums of neighbouring bits, of neighbouring sums, and so on, all of an element at once."""
    bits, width = 8 * x.itemsize, 1
    if bits < 32:
        x = x.to(torch.int32) & ((1 << bits) - 1)  # of which processors count the bits
    while width < 8 * x.itemsize:
        # Runs of as many ones and zeros: none of them is the sign, which a shift copies.
        every_other = sum(((1 << width) - 1) << place for place in range(0, 8 * x.itemsize, 2 * width))
        x = (x & every_other) + ((x >> width) & every_other)
        width *= 2
    return x


_OF_SHIFTS = """
    4.1 | 1 to 8 | UINT64, UINT32, UINT16, UINT8
    3.0 | 1 to 8 | UINT32, UINT16, UINT8
    2.1 | 4      | UINT32, UINT16, UINT8
"""

_OF_BITS = """
    4.1 | 1 to 8 | FLOAT64, FLOAT32, FLOAT16, INT64, INT32, INT16, INT8, UINT64, UINT32, UINT16, UINT8
    3.0 | 1 to 8 | UINT32, UINT16, UINT8
"""

_NUMBERS = np.array([[[[0, 128, 42], [255, 7, 96]]]], np.uint8), np.array([[[[3, 1, 0], [4, 2, 5]]]], np.uint8)
_PAIR = {"ATensor": _NUMBERS[0], "BTensor": _NUMBERS[1]}
"""What small examples compute with."""

ELEMENT_WISE_BIT_SHIFT_LEFT = Pointwise(
    summary="a << b, for each pair of elements: the bits of a moved by b places, with zeros behind them.",
    inputs=("ATensor", "BTensor"),
    reference=_of_bits(lambda a, b: a << _amount(b)),
    native="BIT_SHIFT_LEFT",
    torch=_shifted_left_by_torch,
    torch_takes="bits",
    example=_PAIR,
    doctest="""
        >>> import numpy as np
        >>> bit_shift_left(np.array([1, 255], np.uint8), 4)
        array([ 16, 240], dtype=uint8)
    """,
    support=_OF_SHIFTS,
)

ELEMENT_WISE_BIT_SHIFT_RIGHT = Pointwise(
    summary="a >> b, for each pair of elements: the bits of a moved by b places, with zeros before them.",
    inputs=("ATensor", "BTensor"),
    reference=_of_bits(lambda a, b: a >> _amount(b)),
    native="BIT_SHIFT_RIGHT",
    torch=_shifted_right_by_torch,
    torch_takes="bits",
    example=_PAIR,
    doctest="""
        >>> import numpy as np
        >>> bit_shift_right(np.array([16, 255], np.uint8), 4)
        array([ 1, 15], dtype=uint8)
    """,
    support=_OF_SHIFTS,
)

ELEMENT_WISE_BIT_AND = Pointwise(
    summary="a & b, for each pair of elements: the bits that both have.",
    inputs=("ATensor", "BTensor"),
    truth="kept",
    reference=_of_bits(np.bitwise_and),
    native="BIT_AND",
    torch="bitwise_and",
    torch_takes="bits",
    example=_PAIR,
    doctest="""
        >>> bit_and([12, 10], 6)
        array([4, 2])
    """,
    support=_OF_BITS,
)

ELEMENT_WISE_BIT_OR = Pointwise(
    summary="a | b, for each pair of elements: the bits that one of them has.",
    inputs=("ATensor", "BTensor"),
    truth="kept",
    reference=_of_bits(np.bitwise_or),
    native="BIT_OR",
    torch="bitwise_or",
    torch_takes="bits",
    example=_PAIR,
    doctest="""
        >>> bit_or([12, 10], 6)
        array([14, 14])
    """,
    support=_OF_BITS,
)

ELEMENT_WISE_BIT_XOR = Pointwise(
    summary="a ^ b, for each pair of elements: the bits that exactly one of them has.",
    inputs=("ATensor", "BTensor"),
    truth="kept",
    reference=_of_bits(np.bitwise_xor),
    native="BIT_XOR",
    torch="bitwise_xor",
    torch_takes="bits",
    example=_PAIR,
    doctest="""
        >>> bit_xor([12, 10], 6)
        array([10, 12])
    """,
    support=_OF_BITS,
)

ELEMENT_WISE_BIT_NOT = Pointwise(
    summary="~x for each element x: the bits that it has not.",
    reference=_of_bits(np.bitwise_not),
    native="BIT_NOT",
    torch="bitwise_not",
    torch_takes="bits",
    example={"InputTensor": _NUMBERS[0]},
    doctest="""
        >>> bit_not([0, 5])
        array([-1, -6])
    """,
    support=_OF_BITS,
)

ELEMENT_WISE_BIT_COUNT = Pointwise(
    summary="How many bits of each element are 1.",
    members={"OutputTensor": "the counts, of the same sizes."},
    same_types=(),
    in_place=False,
    reference=_of_bits(_count),
    native="BIT_COUNT",
    torch=_count_by_torch,
    torch_takes="bits",
    example={"InputTensor": _NUMBERS[0]},
    doctest="""
        >>> bit_count([0, 255, -1])
        array([ 0,  8, 64], dtype=uint8)
    """,
    support="""
        4.1 | 1 to 8 | FLOAT64, FLOAT32, FLOAT16, INT64, INT32, INT16, INT8, UINT64, UINT32, UINT16, UINT8 -> UINT32, UINT8
        3.0 | 1 to 8 | UINT32, UINT16, UINT8 -> UINT32, UINT8
    """,
)
