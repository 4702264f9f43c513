"""Truth values of libraries, whose bytes are 0 or 1: DirectML's are UINT8, and so they are seen, without a copy."""

from __future__ import annotations

from typing import Any

import numpy as np

from .strided_layout import Array

BOOL, UINT8 = np.dtype(np.bool_), np.dtype(np.uint8)


def is_bool(value: Any) -> bool:
    """Whether it is a truth value, or an array of them, of any library."""
    return isinstance(value, bool) or str(getattr(value, "dtype", "")).rpartition(".")[2] == "bool"


def as_bytes(array: Array) -> Array:
    """Truth values as UINT8; all else as it is."""
    return array.view(UINT8) if array.dtype == BOOL else array
