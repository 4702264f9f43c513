"""Truth values of libraries, whose bytes are those of UINT8: arrays of them are looked at as such, without a copy.

What a pointwise operator says of truth values stands in its row. Its result has the library's type where its operator
makes truth values, or keeps those that it is given.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ..core.enums import TensorDataType
from ..core.strided_layout import Array
from ..operators import spec
from ._messages import argument_of

BOOL, UINT8 = np.dtype(np.bool_), np.dtype(np.uint8)


def is_bool(value: Any) -> bool:
    """Whether it is a truth value, or an array of them, of any library."""
    return isinstance(value, bool) or str(getattr(value, "dtype", "")).rpartition(".")[2] == "bool"


def as_bytes(array: Array) -> Array:
    """Truth values as UINT8; all else as it is."""
    return array.view(UINT8) if array.dtype == BOOL else array


def type_of_truth(out: Any) -> TensorDataType:
    """Of an operator that gives UINT8 or UINT32: that of what is written to, and UINT8 where there is none."""
    is_long = str(getattr(out, "dtype", "")).endswith("uint32")
    return TensorDataType.UINT32 if is_long else TensorDataType.UINT8


class TruthValues:
    """Which operands of a call are truth values, and whether its result is one.

    Args:
        name: the operator.
    """

    def __init__(self, name: str) -> None:
        self._row = spec(name).pointwise
        self.are_taken = self._row is not None and bool(self._row.truth)
        self._arguments: set[str] = set()

    def note(self, where: str) -> None:
        """Says that an argument has truth values."""
        self._arguments.add(where)

    def taken(self, where: str, array: Array) -> Array:
        """An operand, as bytes where it has truth values and the operator takes such."""
        if not self.are_taken or array.dtype != BOOL:
            return array
        self.note(where)
        return as_bytes(array)

    def are_results(self, labels: Iterable[str]) -> bool:
        """Whether the results are truth values, of operands with these labels."""
        if not self.are_taken or self._row.truth == "made":
            return self.are_taken
        group = self._row.group_of("OutputTensor")
        return all(argument_of(label) in self._arguments for label in labels if label in group)
