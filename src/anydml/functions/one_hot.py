"""One-hot vectors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..core.errors import refuse
from ..core.tensor_desc import DML_BUFFER_TENSOR_DESC
from ..device import Device
from ._apply import apply, leading
from ._arguments import as_axis, as_shape
from ._call import data_type_of
from ._documentation import documented
from ._names import REQUIRED, refuse_unknown
from ._operand_adapter import Shape, adapter_for
from ._types import Operand, Output, Result

_OFF_AND_ON = np.array([0, 1], np.float32)


@documented("ONE_HOT")
def one_hot(
    indices: Operand,
    depth: int = REQUIRED,
    values: Operand = _OFF_AND_ON,
    axis: int = -1,
    *,
    out: Output | None = None,
    device: Device | str | None = None,
    **others: Any,
) -> Result:
    """Makes one-hot vectors along an axis: DML_OPERATOR_ONE_HOT.

    Args:
        indices: an array or an expression, int32, int64, uint32 or uint64; negative ones count from the end. An index
            that there is not gives off values only.
        depth: how long the vectors are.
        values: the off value and the on value, of any of DirectML's data types; 0 and 1, float32, where not given.
        axis: the dimension of the result along which the vectors lie; negative counts from the last. Where the indices
            have a size of 1 there, it becomes the vectors'; elsewhere they get the dimension, as in PyTorch and ONNX.
        out: where to write, of any strides; no memory shared with an input. Returned.

    Returns:
        An array like `indices`, of the type of `values`.

    >>> one_hot([2, -3, 5], 3)
    array([[0., 0., 1.],
           [1., 0., 0.],
           [0., 0., 0.]], dtype=float32)
    >>> one_hot([[2], [0]], 3).shape
    (2, 3)
    """
    if others or depth is REQUIRED:
        refuse_unknown(one_hot, "ONE_HOT", others, depth=depth)
    name = "ONE_HOT"
    side = adapter_for(name, [indices, values], out, device)
    shape = side.look("indices", indices).shape
    axis, shape = _axis_of(name, axis, shape)
    (depth,) = as_shape(name, [depth], "depth")
    if depth < 1:
        refuse(name, "(A10)", "depth", str(depth), "at least 1")
    output = DML_BUFFER_TENSOR_DESC(
        DataType=data_type_of(name, "values", side.look("values", values)),
        Sizes=(*shape[:axis], depth, *shape[axis + 1 :]),
    )
    operands = {"IndicesTensor": indices, "ValuesTensor": values}

    def spread(name: str, shapes: Mapping[str, Shape]) -> dict[str, Shape]:
        return {"IndicesTensor": shape, "ValuesTensor": leading(shapes["ValuesTensor"], len(shape))}

    return apply(name, out, device, spread=spread, **operands, OutputTensor=output, Axis=axis)


def _axis_of(name: str, axis: Any, shape: Shape) -> tuple[int, Shape]:
    """The axis, and the shape of the indices with a size of 1 along it, which they get where they have another."""
    rank = len(shape)
    added = as_axis(name, axis, rank + 1)
    # The axis of as many dimensions as there are; none where it is one behind them.
    own = added - (axis < 0)
    if 0 <= own < rank and shape[own] == 1:
        return own, shape
    return added, (*shape[:added], 1, *shape[added:])
