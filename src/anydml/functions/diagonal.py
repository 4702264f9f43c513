"""Matrices of a diagonal, or a band of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.errors import kind_of, refuse
from ..core.strided_layout import DATA_TYPES
from ..core.tensor_desc import DML_BUFFER_TENSOR_DESC, plain
from ..device import Device
from ._apply import apply
from ._arguments import as_dtype, as_shape
from ._call import data_type_of
from ._documentation import documented
from ._names import refuse_unknown
from ._operand_adapter import adapter_for
from ._types import DataTypeLike, Operand, Output, Result

if TYPE_CHECKING:
    from ..frontends.directmlx import Graph


@documented("DIAGONAL_MATRIX", "DIAGONAL_MATRIX1")
def diagonal_matrix(
    shape: int | Sequence[int] | None = None,
    value: float = 1.0,
    dtype: DataTypeLike = np.float32,
    *,
    offset: int = 0,
    x: Operand | None = None,
    diagonal_fill_begin: int | None = None,
    diagonal_fill_end: int | None = None,
    graph: Graph | None = None,
    out: Output | None = None,
    device: Device | str | None = None,
    **others: Any,
) -> Result:
    """Matrices that are a value on a diagonal, and 0 elsewhere, as NumPy's eye: DML_OPERATOR_DIAGONAL_MATRIX.

    With a band, or an array, it is DML_OPERATOR_DIAGONAL_MATRIX1: NumPy's tri is a band of 1 from -2^31 to before 1,
    tril and triu of an array are bands of 0 on the other side.

    Args:
        shape: the result's, 2 to 4 dimensions, of which those before the last two count matrices; None for that of x.
        value: what the diagonal's elements are.
        dtype: any of DirectML's data types, NumPy's, another library's or DirectML's, or its name; x's where that is
            given.
        offset: the diagonal: 0 for the main one, 1 for the one above it.
        x: what is left outside of the band, an array or an expression; 0 where None.
        diagonal_fill_begin: the first diagonal of a band; offset where None.
        diagonal_fill_end: the one behind its last; diagonal_fill_begin + 1 where None. Where it is below
            diagonal_fill_begin, all is filled but the diagonals from it to before that.
        graph: the graph that an expression of it is wanted in; None for an array.
        out: where to write, of any strides; no memory shared with x. Returned.

    Returns:
        An array like `x`, or in the memory of the device, or an expression.

    >>> diagonal_matrix((2, 3), offset=1)
    array([[0., 1., 0.],
           [0., 0., 1.]], dtype=float32)
    >>> diagonal_matrix(x=[[1, 2, 3], [4, 5, 6]], value=0, diagonal_fill_begin=1, diagonal_fill_end=3)
    array([[1, 0, 0],
           [4, 5, 0]])
    """
    name = "DIAGONAL_MATRIX"
    if others:
        refuse_unknown(diagonal_matrix, name, others)
    if graph is not None and not hasattr(type(graph), "__anydml_graph_adapter__"):
        refuse(name, "(G9)", "graph", kind_of(graph), "a Graph", kind="type")
    if (shape is None) == (x is None):
        found = "nothing" if x is None else "shape beside x"
        refuse(name, "(A15)", "shape", found, "a shape, or an array x that has one", kind="type")
    if x is None:
        output = DML_BUFFER_TENSOR_DESC(
            DataType=DATA_TYPES[as_dtype(name, "dtype", dtype)], Sizes=as_shape(name, shape)
        )
        members: dict[str, Any] = {"OutputTensor": output}
        kind: Any = output.DataType
        if diagonal_fill_begin is None and diagonal_fill_end is None:
            return apply(name, out, device, graph=graph, **members, Offset=offset, Value=value)
    else:
        name = "DIAGONAL_MATRIX1"
        side = adapter_for(name, [x], None, device)
        members = {}
        kind = data_type_of(name, "x", side.look("x", x))
    begin = plain(offset if diagonal_fill_begin is None else diagonal_fill_begin)
    # What is no integer, (F2) says of the first.
    behind = begin + 1 if type(begin) is int else begin
    end = behind if diagonal_fill_end is None else diagonal_fill_end
    return apply(
        "DIAGONAL_MATRIX1",
        out,
        device,
        graph=graph,
        InputTensor=x,
        **members,
        ValueDataType=kind,
        Value=value,
        DiagonalFillBegin=begin,
        DiagonalFillEnd=end,
    )
