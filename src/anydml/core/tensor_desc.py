"""The structs that descs are made of: ``DML_BUFFER_TENSOR_DESC``, ``DML_SCALE_BIAS``, ``DML_SIZE_2D``, and the union
``DML_SCALAR_UNION``.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import Field, dataclass, fields
from math import prod
from typing import Any, ClassVar, Self, cast

import numpy as np

from .enums import DML_TENSOR_DIMENSION_COUNT_MAX1, TensorDataType, TensorFlags, member_spelt
from .errors import closest, listing, refuse


class Struct:
    """The base of the header's structs: (F12) their members are those of the header."""

    __slots__: tuple[str, ...] = ()
    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    def __new__(cls, *values: Any, **members: Any) -> Self:
        # Python's own message, of the dataclass's __init__, names neither the struct's members nor the one meant.
        if not members.keys() <= cls.__dataclass_fields__.keys():
            known = [member.name for member in fields(cls)]
            name = next(name for name in members if name not in known)
            found, expected = "no such member", listing(known)
            refuse(cls.__name__, "(F12)", name, found, expected, closest(name, known), kind="type")
        if values and all(member.kw_only for member in fields(cls)):
            expected = ", ".join(f"{member.name}=..." for member in fields(cls))
            refuse(cls.__name__, "(F12)", "", f"{len(values)} members without names", expected, kind="type")
        return super().__new__(cls)


@dataclass(frozen=True, slots=True, kw_only=True)
class DML_BUFFER_TENSOR_DESC(Struct):
    """A tensor in a buffer; a passive struct, whose mistakes are named when an operator is created.

    Args:
        DataType: type of the elements, or its name, such as "FLOAT32".
        Sizes: elements along each of 1 to 8 dimensions, each at least 1. Sizes and strides of more than 32 bits, which
            DirectML has not, are refused where `validate` or the device is strict.
        Strides: distance of neighbours along each dimension, in elements (not bytes) and unsigned; 0 broadcasts,
            gaps are allowed. None: packed, row major.
        Flags: ``TensorFlags.OWNED_BY_DML`` for an input that is bound when the operator is initialised.
        TotalTensorSizeInBytes: a multiple of 4, at least what the elements span. None: just that.
        GuaranteedBaseOffsetAlignment: 0, or a power of two, at least the size of an element, that divides every
            offset at which the tensor is bound.
        DimensionCount: the length of Sizes; checked where it is given.

    Source: the page of DML_BUFFER_TENSOR_DESC; every feature level.

    >>> DML_BUFFER_TENSOR_DESC(DataType=TensorDataType.FLOAT16, Sizes=(1, 1, 3, 3)).TotalTensorSizeInBytes
    20
    """

    DataType: TensorDataType
    Sizes: Sequence[int]
    Strides: Sequence[int] | None = None
    Flags: TensorFlags = TensorFlags.NONE
    TotalTensorSizeInBytes: int | None = None
    GuaranteedBaseOffsetAlignment: int = 0
    DimensionCount: int | None = None

    def __post_init__(self) -> None:
        # Derived members are filled in as the header's helper would; from nonsense nothing can be derived, and the
        # validator names it.
        fill = object.__setattr__
        fill(self, "DataType", member_spelt(TensorDataType, self.DataType))
        fill(self, "Sizes", plain(self.Sizes))
        fill(self, "Strides", plain(self.Strides))
        if self.DimensionCount is None and isinstance(self.Sizes, tuple):
            fill(self, "DimensionCount", len(self.Sizes))
        if self.TotalTensorSizeInBytes is None and self._has_a_size():
            fill(self, "TotalTensorSizeInBytes", minimum_size_in_bytes(self.DataType, self.Sizes, self.Strides))

    def _has_a_size(self) -> bool:
        if not isinstance(self.DataType, TensorDataType) or not are_integers(self.Sizes):
            return False
        if self.Strides is not None and not (are_integers(self.Strides) and len(self.Strides) == len(self.Sizes)):
            return False
        return len(self.Sizes) <= DML_TENSOR_DIMENSION_COUNT_MAX1

    @property
    def strides(self) -> tuple[int, ...]:
        """Strides in elements, the packed ones where none are given."""
        return packed_strides(self.Sizes) if self.Strides is None else cast("tuple[int, ...]", self.Strides)


@dataclass(frozen=True, slots=True, kw_only=True)
class DML_SCALE_BIAS(Struct):
    """What is applied to each element that an operator reads: g(x) = x * Scale + Bias.

    Args:
        Scale: a number of single precision.
        Bias: likewise.

    Source: the page of DML_SCALE_BIAS; every feature level.
    """

    Scale: float
    Bias: float

    def __post_init__(self) -> None:
        for name in ("Scale", "Bias"):
            object.__setattr__(self, name, single(plain(getattr(self, name))))


@dataclass(frozen=True, slots=True, kw_only=True)
class DML_SIZE_2D(Struct):
    """A size, or a scale, in two dimensions.

    Args:
        Width: along the last dimension.
        Height: along the one before.

    Source: the page of DML_SIZE_2D; every feature level.
    """

    Width: int
    Height: int

    def __post_init__(self) -> None:
        for name in ("Width", "Height"):
            object.__setattr__(self, name, plain(getattr(self, name)))


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class DML_SCALAR_UNION(Struct):
    """A number of one of several types; a desc's other member says of which. A plain number does as well.

    Args:
        Int8: the number where it is an INT8, and so on.
        UInt16: a UINT16, or the bits of a FLOAT16, for which the header has no member.

    Source: the page of DML_SCALAR_UNION; since feature level 2.1.

    >>> DML_SCALAR_UNION(UInt16=0x4100).value_of(TensorDataType.FLOAT16)
    2.5
    """

    Int8: int | None = None
    UInt8: int | None = None
    Int16: int | None = None
    UInt16: int | None = None
    Int32: int | None = None
    UInt32: int | None = None
    Int64: int | None = None
    UInt64: int | None = None
    Float32: float | None = None
    Float64: float | None = None

    def __post_init__(self) -> None:
        for member in fields(self):
            object.__setattr__(self, member.name, plain(getattr(self, member.name)))

    def __repr__(self) -> str:
        given = {member.name: getattr(self, member.name) for member in fields(self)}
        return f"DML_SCALAR_UNION({', '.join(f'{name}={each!r}' for name, each in given.items() if each is not None)})"

    def value_of(self, data_type: TensorDataType) -> int | float | None:
        """The number as one of `data_type`; None where the member of that type is not given, or holds no such number.

        The members share memory in C++; here only the one that was given can be read.
        """
        name = scalar_member(data_type)
        value: Any = getattr(self, name) if name else None
        if data_type in (TensorDataType.FLOAT32, TensorDataType.FLOAT64):
            return cast("int | float", value) if type(value) in (int, float) else None
        is_held = type(value) is int and 0 <= value + _bias(name) < 2 ** int(name.lstrip("UInt"))
        if data_type == TensorDataType.FLOAT16 and is_held:
            return float(np.uint16(value).view(np.float16))
        return cast(int, value) if is_held else None


def scalar_member(data_type: object) -> str:
    """The member of DML_SCALAR_UNION that a number of a type is in; "" where it has none."""
    if not isinstance(data_type, TensorDataType):
        return ""
    if data_type == TensorDataType.FLOAT16:
        return "UInt16"
    return next((name for name in DML_SCALAR_UNION.__dataclass_fields__ if name.upper() == data_type.name), "")


def _bias(name: str) -> int:
    """What makes the values of a union's integer member begin at 0."""
    return 0 if name.startswith("U") else 2 ** (int(name.lstrip("Int")) - 1)


def plain(value: Any) -> Any:
    """Lists as tuples and NumPy's numbers as Python's, so that a desc is immutable and never overflows."""
    if type(value) in _PLAIN or (type(value) is tuple and all([type(item) is int for item in value])):
        return value
    if getattr(value, "shape", ()) and hasattr(value, "tolist"):
        with suppress(Exception):  # of a class, for instance, which the validator names
            value = value.tolist()
    if isinstance(value, (list, tuple)):
        return tuple([item if type(item) is int else _plain_number(item) for item in value])
    return _plain_number(value)


_PLAIN = (int, str, float, bool, type(None))
"""Types of what stays as it is, which most members are."""


def _plain_number(value: Any) -> Any:
    return value.item() if isinstance(value, (np.integer, np.floating, np.bool_)) else value


def single(value: Any) -> Any:
    """A number as the header's FLOAT holds it, in single precision; one that is too large for it stays what it is."""
    if type(value) not in (int, float) or abs(value) >= SINGLE_END:
        return value
    return float(np.float32(value))


SINGLE_END = 2.0**128 - 2.0**103
"""What rounds to infinity in single precision."""


def are_integers(value: object) -> bool:
    """Whether a value is a tuple of integers that 64 bits could hold."""
    return isinstance(value, tuple) and all([type(item) is int and abs(item) < 2**64 for item in value])


def packed_strides(sizes: Sequence[int]) -> tuple[int, ...]:
    """The strides, in elements, of a row-major tensor without gaps."""
    strides = [1] * len(sizes)
    for i in range(len(sizes) - 1, 0, -1):
        strides[i - 1] = strides[i] * sizes[i]
    return tuple(strides)


def is_packed(sizes: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether strides are those of a row-major tensor without gaps; that of a size of 1 does not matter."""
    each = zip(sizes, strides, packed_strides(sizes), strict=True)
    return all(size == 1 or stride == packed for size, stride, packed in each)


def minimum_size_in_bytes(data_type: TensorDataType, sizes: Sequence[int], strides: Sequence[int] | None) -> int:
    """The bytes that the elements span, rounded up to 4, as DMLCalcBufferTensorSize has it but never wrapping.

    elements = product of sizes, packed, or 1 + sum((size - 1) * stride), strided.
    """
    if strides is None:
        elements = prod(sizes)
    else:
        elements = 1 + sum((size - 1) * stride for size, stride in zip(sizes, strides, strict=True))
    return ((elements * data_type.bits + 7) // 8 + 3) // 4 * 4
