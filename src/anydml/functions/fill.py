"""Arrays made of a number or two."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.errors import kind_of, refuse
from ..core.strided_layout import DATA_TYPES
from ..core.tensor_desc import DML_BUFFER_TENSOR_DESC
from ..device import Device
from ._apply import apply
from ._arguments import as_dtype, as_shape
from ._documentation import documented
from ._names import refuse_unknown
from ._types import DataTypeLike, Output, Result

if TYPE_CHECKING:
    from ..frontends.directmlx import Graph


@documented("FILL_VALUE_CONSTANT")
def fill_value_constant(
    shape: int | Sequence[int],
    value: float,
    dtype: DataTypeLike = np.float32,
    *,
    graph: Graph | None = None,
    out: Output | None = None,
    device: Device | str | None = None,
    **others: Any,
) -> Result:
    """Every element the same value: DML_OPERATOR_FILL_VALUE_CONSTANT.

    Args:
        shape: the result's, 1 to 8 dimensions.
        value: what every element is.
        dtype: any of DirectML's data types, NumPy's, another library's or DirectML's, or its name.
        graph: the graph that an expression of it is wanted in; None for an array.
        out: where to write, of any strides. Returned.

    Returns:
        An array in the memory of the device, or an expression.

    >>> fill_value_constant((1, 3), 7, np.int8)
    array([[7, 7, 7]], dtype=int8)
    """
    if others:
        refuse_unknown(fill_value_constant, "FILL_VALUE_CONSTANT", others)
    return _filled("FILL_VALUE_CONSTANT", shape, dtype, graph, out, device, Value=value)


@documented("FILL_VALUE_SEQUENCE")
def fill_value_sequence(
    shape: int | Sequence[int],
    start: float = 0,
    delta: float = 1,
    dtype: DataTypeLike = np.float32,
    *,
    graph: Graph | None = None,
    out: Output | None = None,
    device: Device | str | None = None,
    **others: Any,
) -> Result:
    """Counts in equal steps through the elements, in row-major order: DML_OPERATOR_FILL_VALUE_SEQUENCE.

    Args:
        shape: the result's, 1 to 8 dimensions.
        start: the first element.
        delta: the step from each to the next.
        dtype: any of DirectML's data types but float64, NumPy's, another library's or DirectML's, or its name.
        graph: the graph that an expression of it is wanted in; None for an array.
        out: where to write, of any strides. Returned.

    Returns:
        An array in the memory of the device, or an expression. Integers wrap.

    >>> fill_value_sequence(4, 10, -0.5)
    array([10. ,  9.5,  9. ,  8.5], dtype=float32)
    """
    if others:
        refuse_unknown(fill_value_sequence, "FILL_VALUE_SEQUENCE", others)
    return _filled("FILL_VALUE_SEQUENCE", shape, dtype, graph, out, device, ValueStart=start, ValueDelta=delta)


def _filled(name: str, shape: Any, dtype: Any, graph: Graph | None, out: Any, device: Any, **values: Any) -> Any:
    if graph is not None and not hasattr(type(graph), "__anydml_graph_adapter__"):
        refuse(name, "(G9)", "graph", kind_of(graph), "a Graph", kind="type")
    data_type = DATA_TYPES[as_dtype(name, "dtype", dtype)]
    tensor = DML_BUFFER_TENSOR_DESC(DataType=data_type, Sizes=as_shape(name, shape))
    return apply(name, out, device, graph=graph, OutputTensor=tensor, ValueDataType=data_type, **values)
