"""FILL_VALUE_SEQUENCE for the CPU's kernel."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...operators.specs.fill import value_as
from .request import Lowered, bits_of


def sequence(desc: Any, *_: object) -> Lowered:
    """Start and step as doubles, or as integers."""
    numbers = [value_as(each, desc.ValueDataType) for each in (desc.ValueStart, desc.ValueDelta)]
    exact = [bits_of(each.astype(np.float64) if each.dtype.kind == "f" else each) for each in numbers]
    return "FILL_VALUE_SEQUENCE", {"Start": (exact[0],), "Delta": (exact[1],)}
