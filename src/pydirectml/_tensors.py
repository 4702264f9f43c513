"""Tensors as PyDirectML describes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from anydml import DML_BUFFER_TENSOR_DESC, TensorDataType, TensorFlags
from anydml.core.errors import error, kind_of, listing, violation


def wrong(function: str, found: str, expected: str, where: str = "") -> Exception:
    return error([violation(function, "(G9)", where, found, expected, kind="type")])


class TensorPolicy:
    """How the strides of tensors follow from their sizes."""

    default: TensorPolicy
    interleaved_channel: TensorPolicy

    def __init__(self, order: str) -> None:
        self._order = order

    def __repr__(self) -> str:
        return f"dml.TensorPolicy.{self._order}"

    def _strides(self, sizes: Sequence[int]) -> list[int] | None:
        """None for packed ones. Interleaved, channels, the second dimension, are next to each other."""
        if self._order == "default" or len(sizes) < 3:
            return None
        strides = [1] * len(sizes)
        step = sizes[1]
        for i in reversed(range(2, len(sizes))):
            strides[i] = step
            step *= sizes[i]
        strides[0] = step
        return strides


TensorPolicy.default = TensorPolicy("default")
TensorPolicy.interleaved_channel = TensorPolicy("interleaved_channel")


class TensorDesc:
    """A tensor in a buffer.

    Args:
        data_type: type of its elements.
        flags: TensorFlags; may be left out.
        sizes: elements along each dimension.
        strides: in elements, or None; or a TensorPolicy, or nothing.
        total_tensor_size_in_bytes, guaranteed_base_offset_alignment: with flags and strides alone.
    """

    def __init__(self, data_type: TensorDataType, *rest: Any, **named: Any) -> None:
        if "flags" in named:
            rest = (named.pop("flags"), *rest)
        flags = rest[0] if rest and isinstance(rest[0], TensorFlags) else TensorFlags.NONE
        rest = rest[1:] if rest and isinstance(rest[0], TensorFlags) else rest
        names = ("sizes", "strides", "total_tensor_size_in_bytes", "guaranteed_base_offset_alignment")
        given = {**dict(zip(names, rest, strict=False)), **named}
        policy = given.pop("tensor_policy", TensorPolicy.default)
        if isinstance(given.get("strides"), TensorPolicy):
            policy = given.pop("strides")
        if len(rest) > len(names) or "sizes" not in given or set(given) - set(names):
            expected = "(data_type, [flags], sizes, [policy or strides], [total size, alignment])"
            found = listing([kind_of(each) for each in (data_type, *rest)], "and")
            raise wrong("TensorDesc", found, expected)
        sizes = list(given["sizes"])
        strides = given["strides"] if "strides" in given else policy._strides(sizes)
        self._desc = DML_BUFFER_TENSOR_DESC(
            DataType=data_type,
            Sizes=sizes,
            Strides=strides,
            Flags=flags,
            TotalTensorSizeInBytes=given.get("total_tensor_size_in_bytes"),
            GuaranteedBaseOffsetAlignment=given.get("guaranteed_base_offset_alignment", 0),
        )

    @classmethod
    def _of(cls, desc: DML_BUFFER_TENSOR_DESC) -> TensorDesc:
        found = cls.__new__(cls)
        found._desc = desc
        return found

    def __repr__(self) -> str:
        shape = ",".join(map(str, self.sizes))
        return f"dml.TensorDesc of type {int(self.data_type)} and shape [{shape}] with flags {int(self.flags)}"

    @property
    def data_type(self) -> TensorDataType:
        return self._desc.DataType

    @property
    def flags(self) -> TensorFlags:
        return self._desc.Flags

    @property
    def sizes(self) -> list[int]:
        return list(self._desc.Sizes)

    @property
    def strides(self) -> list[int] | None:
        return None if self._desc.Strides is None else list(self._desc.Strides)

    @property
    def total_tensor_size_in_bytes(self) -> int:
        return self._desc.TotalTensorSizeInBytes or 0

    @property
    def guaranteed_base_offset_alignment(self) -> int:
        return self._desc.GuaranteedBaseOffsetAlignment
