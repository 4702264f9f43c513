"""Tensors of graphs that are being built, which expressions are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ..core.annotations import unquoted
from ..core.enums import TensorDataType
from ..core.errors import error, kind_of, listing, refuse, violation
from ..core.strided_layout import DATA_TYPES, DTYPES
from ..core.tensor_desc import DML_BUFFER_TENSOR_DESC
from ..core.truth_values import BOOL
from ..functions._arguments import as_index
from ..functions._operand_adapter import Shape
from ..graph.verify import Port
from ..operators.schema import Tensor

if TYPE_CHECKING:
    from .directmlx import Graph


@unquoted
class GraphTensor:
    """A tensor of a graph that is being built: which node gives it, and its desc.

    Attributes:
        graph: the graph.
        tensor: its desc.
    """

    def __init__(self, graph: Graph, port: Port, tensor: Tensor, is_view: bool = False, is_truth: bool = False) -> None:
        self.graph = graph
        self.port = port
        self.tensor = tensor
        self._is_view = is_view
        self._is_truth = is_truth
        """Whether its elements, of UINT8, are truth values."""

    @property
    def shape(self) -> Shape:
        """The sizes."""
        return tuple(self.tensor.Sizes)

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.tensor.Sizes)

    @property
    def dtype(self) -> np.dtype[Any]:
        """NumPy's data type, bool of truth values; a TypeError for those of 4 bits, which NumPy has not."""
        return BOOL if self._is_truth else dtype_of("Expression", self.tensor)

    def reinterpret(
        self, data_type: TensorDataType, sizes: Sequence[int], strides: Sequence[int] | None = None
    ) -> Self:
        """The same bytes as another tensor."""
        if not isinstance(data_type, TensorDataType):
            expected = "a TensorDataType, such as TensorDataType.FLOAT32"
            raise mistake("reinterpret", "data_type", kind_of(data_type), expected, "(G9)")
        tensor = DML_BUFFER_TENSOR_DESC(
            DataType=data_type,
            Sizes=sizes,
            Strides=strides,
            Flags=self.tensor.Flags,
            TotalTensorSizeInBytes=self.tensor.TotalTensorSizeInBytes,
            GuaranteedBaseOffsetAlignment=self.tensor.GuaranteedBaseOffsetAlignment,
        )
        return type(self)(self.graph, self.port, tensor, is_truth=self._is_truth and data_type == self.tensor.DataType)


def dtype_of(operator: str, tensor: Tensor) -> np.dtype[Any]:
    if tensor.DataType not in DTYPES:
        refuse(operator, "(S3)", "", f"an expression of {tensor.DataType.name}", listing(DATA_TYPES), kind="type")
    return DTYPES[tensor.DataType]


def sizes_of(operator: str, rule: str, given: Any) -> Shape:
    """A shape, by one integer or several."""
    try:
        return tuple(map(as_index, given if isinstance(given, (tuple, list)) else [given]))
    except TypeError:
        return refuse(operator, rule, "shape", kind_of(given), "integers", kind="type")


def mistake(operator: str, where: str, found: str, expected: str, rule: str) -> Exception:
    return error([violation(operator, rule, where, found, expected, kind="type")])
