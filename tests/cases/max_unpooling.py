"""MAX_UNPOOLING: every type of values and of indices, indices that are the same or nowhere, strides.

The page has no example.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from anydml import DML_MAX_UNPOOLING_OPERATOR_DESC, TensorDataType
from anydml.core.strided_layout import DATA_TYPES
from support_tables import ALL_BUT_DOUBLE, FLOATS, Shape, Support

from . import Case, Negative, tensor, tensor_of


def _case(
    id: str,
    x: Any,
    indices: Any,
    y: Any,
    dtype: Any = np.float32,
    index_dtype: Any = np.uint32,
    layouts: Sequence[Any] = (None, None, None),
) -> Case:
    """`layouts` are the strides of the tensors."""
    arrays = [np.array(x, dtype), np.array(indices, index_dtype), np.array(y, dtype)]
    tensors = [tensor_of(array, layout) for array, layout in zip(arrays, layouts, strict=True)]
    names = "InputTensor", "IndicesTensor", "OutputTensor"
    desc = DML_MAX_UNPOOLING_OPERATOR_DESC(**dict(zip(names, tensors, strict=True)))
    return Case(f"max-unpooling-{id}", desc, arrays[:2], arrays[2:])


def _drawn(
    id: str, sizes: Sequence[int], output: Sequence[int], dtype: Any, most: int, layouts: Sequence[Any] = (None,) * 3
) -> Case:
    """Places that are drawn of so many, one element after the other."""
    rng = np.random.default_rng(len(id))
    x = (np.arange(np.prod(sizes)) % 100 + 1).astype(dtype)
    indices = rng.integers(0, most, x.size)
    y = np.zeros(int(np.prod(output)), dtype)
    for place, value in zip(indices, x, strict=True):
        if place < y.size:
            y[place] = value
    return _case(id, x.reshape(sizes), indices.reshape(sizes), y.reshape(output), dtype, np.uint64, layouts)


_X, _I = [[[[5, 4], [3, 7]]]], [[[[0, 5], [6, 11]]]]
_Y = [[[[5, 0, 0, 0], [0, 4, 3, 0], [0, 0, 0, 7]]]]

CASES = [
    *(
        _case(f"{dtype.name}-{np.dtype(index).name}", _X, _I, _Y, dtype, index)
        for dtype in DATA_TYPES
        if dtype != np.float64
        for index in (np.uint32, np.uint64)
    ),
    _case("last-of-the-same", [[[[1, 2, 3, 4]]]], [[[[2, 0, 2, 0]]]], [[[[4, 0, 3]]]]),
    _case("nowhere", [[[[1, 2, 3, 4]]]], [[[[3, 2, 2**32 - 1, 4]]]], [[[[0, 0, 2]]]]),
    _case("nowhere-far", [[[[1, 2, 3]]]], [[[[2**63, 0, 2**64 - 1]]]], [[[[2, 0, 0]]]], index_dtype=np.uint64),
    _case("a-zero-over-a-number", [[[[1, 0]]]], [[[[1, 1]]]], [[[[0, 0]]]]),
    _case("other-channels", [[[[1]], [[2]]]], [[[[3]], [[1]]]], [[[[0, 2]], [[0, 1]]]]),
    _case("other-batch-and-channels", [[[[1, 2]]]], [[[[7, 2]]]], [[[[0, 0]], [[2, 0]]], [[[0, 0]], [[0, 1]]]]),
    _case("smaller", np.ones((1, 2, 3, 4)), np.arange(24).reshape(1, 2, 3, 4), np.ones((1, 1, 1, 2))),
    _case("one-element", [[[[9]]]], [[[[0]]]], [[[[9]]]]),
    _case("specials", [[[[np.nan, -np.inf, -0.0]]]], [[[[3, 1, 0]]]], [[[[-0.0, -np.inf, 0, np.nan]]]]),
    _case("transposed", _X, _I, _Y, layouts=[(4, 4, 1, 2), (4, 4, 1, 2), (12, 12, 1, 3)]),
    _case("gapped", _X, _I, _Y, np.int16, layouts=[(9, 9, 7, 2), (99, 99, 3, 1), (50, 50, 11, 2)]),
    _case(
        "broadcast",
        np.full((1, 1, 2, 2), 3),
        _I,
        [[[[3, 0, 0, 0], [0, 3, 3, 0], [0, 0, 0, 3]]]],
        layouts=[(0,) * 4, None, None],
    ),
    _case("broadcast-indices", _X, np.full((1, 1, 2, 2), 1), [[[[0, 7]]]], layouts=[None, (0,) * 4, None]),
    _drawn("large", (2, 16, 40, 50), (2, 16, 80, 100), np.float32, 2 * 16 * 80 * 100),
    _drawn("large-crowded", (2, 16, 40, 50), (1, 3, 70, 80), np.uint8, 20000),
    _drawn(
        "large-transposed",
        (2, 9, 40, 50),
        (2, 9, 80, 100),
        np.float16,
        150000,
        (None, (18000, 1, 450, 9), (72000, 1, 900, 9)),
    ),
]


def _right(**tensors: Any) -> DML_MAX_UNPOOLING_OPERATOR_DESC:
    x, indices, y = tensor((1, 2, 3, 4)), tensor((1, 2, 3, 4), "UINT32"), tensor((1, 2, 6, 8))
    return DML_MAX_UNPOOLING_OPERATOR_DESC(**{"InputTensor": x, "IndicesTensor": indices, "OutputTensor": y, **tensors})


RIGHT = [_right(), _right(OutputTensor=tensor((5, 1, 1, 1)))]
NEGATIVES = [
    Negative(
        "(C1)", _right(OutputTensor=tensor((1, 2, 6, 8), "INT8")), "OutputTensor.DataType", "INT8", "FLOAT32, that of"
    ),
    Negative(
        "(C2)",
        _right(IndicesTensor=tensor((1, 2, 3, 5), "UINT32")),
        "IndicesTensor.Sizes",
        "(1, 2, 3, 5)",
        "(1, 2, 3, 4), that of InputTensor",
    ),
]

KERNELS = {"MAX_UNPOOLING": "elements put back"}


def _others(operator: str, name: str, shape: Shape) -> Mapping[str, Shape]:
    """Indices are of a type of their own."""
    is_index = name == "IndicesTensor"
    values = (shape[0], TensorDataType.FLOAT32) if is_index else shape
    indices = shape if is_index else (shape[0], TensorDataType.UINT32)
    return {"InputTensor": values, "IndicesTensor": indices, "OutputTensor": values}


_VALUES = [("3.0", 4, 4, FLOATS), ("5.0", 4, 4, ALL_BUT_DOUBLE)]
SUPPORT = {
    "MAX_UNPOOLING": Support(
        {
            "InputTensor": _VALUES,
            "IndicesTensor": [("3.0", 4, 4, "UINT32"), ("5.0", 4, 4, "UINT32 UINT64")],
            "OutputTensor": _VALUES,
        },
        others=_others,
    )
}
