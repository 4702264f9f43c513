"""Which operands of a function are truth values, and whether its result is one, as the row of its operator says."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..core.enums import TensorDataType
from ..core.strided_layout import Array
from ..core.truth_values import BOOL, as_bytes
from ..operators import spec
from ._messages import argument_of


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
        group = self._row.group_of(self._row.output)
        return all(argument_of(label) in self._arguments for label in labels if label in group)
