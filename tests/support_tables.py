"""The support tables of the pages, transcribed once more as data: rows, and how a desc of given tensors is made."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from anydml import DML_BUFFER_TENSOR_DESC, TensorDataType
from anydml.core.enums import PREFIXES, ConvolutionDirection, ConvolutionMode
from anydml.operators import spec
from anydml.operators.schema import OperatorDesc

FLOATS = "FLOAT32 FLOAT16"
BYTES = "INT8 UINT8"
ARITHMETIC_32 = "FLOAT32 FLOAT16 INT32 UINT32"
ARITHMETIC_64 = "FLOAT32 FLOAT16 INT64 INT32 UINT64 UINT32"
WORDS_32 = "FLOAT32 FLOAT16 INT32 INT16 UINT32 UINT16"
ALL_32 = "FLOAT32 FLOAT16 INT32 INT16 INT8 UINT32 UINT16 UINT8"
ALL_BUT_DOUBLE = "FLOAT32 FLOAT16 INT64 INT32 INT16 INT8 UINT64 UINT32 UINT16 UINT8"
ALL = "FLOAT64 FLOAT32 FLOAT16 INT64 INT32 INT16 INT8 UINT64 UINT32 UINT16 UINT8"
SIGNED_32 = "FLOAT32 FLOAT16 INT32 INT16 INT8"
SIGNED_64 = "FLOAT32 FLOAT16 INT64 INT32 INT16 INT8"
INDICES = "INT64 INT32 UINT64 UINT32"

Rows = Sequence[tuple[str, int, int, str]]
"""What holds from a level on: level, fewest dimensions, most dimensions, data types."""
Shape = tuple[int, TensorDataType]
"""Dimension count and data type."""


def ones(shape: Shape) -> DML_BUFFER_TENSOR_DESC:
    return DML_BUFFER_TENSOR_DESC(DataType=shape[1], Sizes=(1,) * shape[0])


@dataclass(frozen=True)
class Support:
    """The tables of an operator's page."""

    tables: Rows | Mapping[str, Rows]
    """By tensor, or of all tensors alike."""
    members: Callable[[Shape], Mapping[str, Any]] = lambda output: {}
    """Those beside tensors, floats, which are 1, and enums, which are their first, by the shape of the output."""
    desc: Callable[..., OperatorDesc] | None = None
    """Makes a desc of the operator's name and of shapes by tensor, where that takes more than `members`."""
    others: Callable[[str, str, Shape], Mapping[str, Shape]] | None = None
    """All shapes, of which one is given, such that no rule but the table can be broken wherever that is possible."""

    def by_tensor(self, operator: str) -> Mapping[str, Rows]:
        if isinstance(self.tables, Mapping):
            return self.tables
        return {name: self.tables for name in spec(operator).tensors}

    def build(self, operator: str, shapes: Mapping[str, Shape]) -> OperatorDesc:
        if self.desc is not None:
            return self.desc(operator, **shapes)
        found = spec(operator)
        others = {name: 1 for name, kind in found.members.items() if kind == "FLOAT"}
        firsts = {f"enums.{enum.__name__}": next(iter(enum)) for enum in PREFIXES}
        others |= {name: firsts[kind] for name, kind in found.members.items() if kind in firsts}
        tensors = {name: ones(shape) for name, shape in shapes.items()}
        return found.desc(**{**others, **tensors, **self.members(shapes[[*shapes][-1]])})

    def shapes(self, operator: str, tensor: str, shape: Shape) -> Mapping[str, Shape]:
        if self.others is not None:
            return self.others(operator, tensor, shape)
        return dict.fromkeys(self.by_tensor(operator), shape)


def one_tap(operator: str, **tensors: Shape) -> OperatorDesc:
    """A window, or a filter, of one tap in each dimension."""
    found, spatial = spec(operator), max(0, tensors["InputTensor"][0] - 2)
    numbers = dict.fromkeys(("GroupCount", "P"), 1)
    arrays = {name: [int("Padding" not in name)] * spatial for name, kind in found.members.items() if kind == "UINTs"}
    enums = {"Mode": ConvolutionMode.CONVOLUTION, "Direction": ConvolutionDirection.FORWARD}
    members = {name: value for name, value in {**numbers, **enums}.items() if name in found.members}
    return found.desc(**{name: ones(shape) for name, shape in tensors.items()}, **arrays, **members)
