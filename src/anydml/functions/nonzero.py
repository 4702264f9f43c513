"""Coordinates of what is not 0."""

from __future__ import annotations

import sys
from math import prod
from typing import Any

import numpy as np

from ..core.enums import TensorDataType
from ..core.memory import result_array
from ..core.tensor_desc import DML_BUFFER_TENSOR_DESC
from ..core.truth_values import BOOL, UINT8
from ..device import Device
from ._apply import apply_all
from ._call_cache import remembering
from ._documentation import documented
from ._names import refuse_unknown
from ._operand_adapter import ArrayAdapter, adapter_for
from ._types import Operand, Output, Result

_NAME = "NONZERO_COORDINATES"


@documented(_NAME)
def nonzero_coordinates(
    x: Operand,
    *,
    out: list[Output] | tuple[Output, ...] | None = None,
    device: Device | str | None = None,
    **others: Any,
) -> Result | list[Result]:
    """Finds the elements that are not 0, in row-major order, as np.argwhere: DML_OPERATOR_NONZERO_COORDINATES.

    How many there are is known only then. Of arrays, rows are therefore made for all elements, and those that there are
    returned; a graph, Dask arrays and `out` have them all.

    Args:
        x: an array or an expression, float32, float16, of an integer type of at most 32 bits, or truth
            values; NaN is not 0.
        out: a list of what to write to, of uint32 and of any strides: an array of one element for the number of rows,
            and one of shape (x.size, x.ndim) for the rows, of which those behind the number stay as they were. No
            memory shared with x. Returned.

    Returns:
        An array of uint32 like `x`, of shape (rows, x.ndim), with the coordinates of an element in each row. Of an
        expression or a Dask array, or with `out`, a list: the number of rows, of shape (1,), and the rows.

    >>> nonzero_coordinates([[0, 5, 0], [7, 0, -1]])
    array([[0, 1],
           [1, 0],
           [1, 2]], dtype=uint32)
    """
    if others:
        refuse_unknown(nonzero_coordinates, _NAME, others)
    if out is None and _is_plain(x):
        # Nothing is to be adapted, which would take longer than a small array's coordinates.
        return _found(x, device)
    side = adapter_for(_NAME, [x], out, device)
    shape, dtype = side.look("x", x)
    if dtype == BOOL and isinstance(side, ArrayAdapter):
        x = _bytes_of(x)
    if out is not None or not isinstance(side, ArrayAdapter):
        return _count_and_rows(x, out, device)
    if 0 in shape:
        nothing = result_array(side.memory, _NAME, None, np.dtype(np.uint32), (0, len(shape)))
        return side.memory.export(x, None, nothing)
    return _found(x, device)


def _is_plain(x: Any) -> bool:
    """Whether it is an array of NumPy's or a tensor of PyTorch's, with elements that are no truth values."""
    if type(x) is np.ndarray:
        return bool(x.size) and x.dtype != BOOL
    torch = sys.modules.get("torch")
    return torch is not None and type(x) is torch.Tensor and bool(x.numel()) and x.dtype is not torch.bool


def _found(x: Any, device: Any) -> Any:
    count, rows = _count_and_rows(x, None, device)
    return rows[: int(count[0])]


def _bytes_of(x: Any) -> Any:
    """Truth values as the bytes that they are, in the same library's array."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(x, torch.Tensor):
        return x.view(torch.uint8)
    return (x if hasattr(x, "view") else np.asarray(x)).view(UINT8)


def _of_arrays_or_expressions(x: Any, out: Any, device: Any) -> list[Any]:
    """All that the operator writes; called so, as a call is remembered by whole results."""
    shape = adapter_for(_NAME, [x], out, device).look("x", x).shape

    def tensor(*sizes: int) -> DML_BUFFER_TENSOR_DESC:
        return DML_BUFFER_TENSOR_DESC(DataType=TensorDataType.UINT32, Sizes=sizes)

    rows = tensor(prod(shape), len(shape))
    return apply_all(_NAME, out, device, InputTensor=x, OutputCountTensor=tensor(1), OutputCoordinatesTensor=rows)


_count_and_rows = remembering(_of_arrays_or_expressions)
