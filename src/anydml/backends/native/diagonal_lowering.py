"""DIAGONAL_MATRIX and DIAGONAL_MATRIX1 for the CPU's kernel."""

from __future__ import annotations

from typing import Any

from ...operators.specs.diagonal import band_of, value_of
from .request import Lowered, bits_of


def diagonal(desc: Any, *_: object) -> Lowered:
    """The band, and the bits of what it is filled with."""
    begin, end = band_of(desc)
    return "DIAGONAL_MATRIX", {"Begin": (begin,), "End": (end,), "Value": (bits_of(value_of(desc)),)}
