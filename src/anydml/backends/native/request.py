"""What a kernel of the CPU is asked for: its name, and attributes, which are integers and floats."""

from __future__ import annotations

from typing import TypeAlias

from ...core.strided_layout import Array
from ...operators.schema import AttributeValues

Lowered: TypeAlias = tuple[str, dict[str, AttributeValues]]
"""The name of a kernel, and its attributes."""


def bits_of(value: Array) -> int:
    """The bits of an element, in a signed integer of 64."""
    return int.from_bytes(value.tobytes().ljust(8, b"\0"), "little", signed=True)
