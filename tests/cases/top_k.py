"""TOP_K and TOP_K1: the pages' examples, every data type, ties, NaN and infinity, axes and strides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from anydml import DML_TOP_K1_OPERATOR_DESC, DML_TOP_K_OPERATOR_DESC, AxisDirection, TensorDataType
from anydml.core.strided_layout import DATA_TYPES
from support_tables import ALL_32, ALL_BUT_DOUBLE, FLOATS, Shape, Support

from . import Case, Negative, tensor, tensor_of

UP, DOWN = AxisDirection.INCREASING, AxisDirection.DECREASING
NAN, INF = np.nan, np.inf


def _case(
    id: str,
    x: object,
    values: object,
    indices: object,
    axis: int,
    direction: AxisDirection | None = DOWN,
    dtype: Any = np.float32,
    kind: Any = np.uint32,
    strides: Sequence[Sequence[int] | None] = (None, None, None),
) -> Case:
    """Of TOP_K where there is no direction."""
    arrays = np.array(x, dtype), np.array(values, dtype), np.array(indices, kind)
    tensors = [tensor_of(each, stride) for each, stride in zip(arrays, strides, strict=True)]
    members: dict[str, Any] = dict(
        zip(("InputTensor", "OutputValueTensor", "OutputIndexTensor"), tensors, strict=True),
        Axis=axis,
        K=arrays[1].shape[axis],
    )
    if direction is None:
        return Case(f"top_k-{id}", DML_TOP_K_OPERATOR_DESC(**members), [arrays[0]], list(arrays[1:]))
    desc = DML_TOP_K1_OPERATOR_DESC(**members, AxisDirection=direction)
    return Case(f"top_k1-{id}", desc, [arrays[0]], list(arrays[1:]))


_X = [[[[0, 1, 10, 11], [3, 2, 9, 8], [4, 5, 6, 7]]]]
_TIED = [[[[1, 2, 2, 3], [3, 4, 5, 5], [6, 6, 6, 6]]]]
_LAST = [[[[11, 10], [9, 8], [7, 6]]]], [[[[3, 2], [2, 3], [3, 2]]]]
_ACROSS = [[[[4, 5, 10, 11], [3, 2, 9, 8]]]], [[[[2, 2, 0, 0], [1, 1, 1, 1]]]]
_LARGEST = [[[[3, 2, 2], [5, 5, 4], [6, 6, 6]]]], [[[[3, 1, 2], [2, 3, 1], [0, 1, 2]]]]
_SMALLEST = [[[[1, 2, 2], [3, 4, 5], [6, 6, 6]]]], [[[[0, 1, 2], [0, 1, 2], [0, 1, 2]]]]

PAGES = [
    *(
        case
        for direction in (None, DOWN)
        for case in (
            _case("page-1", _X, *_LAST, 3, direction),
            _case("page-2", _X, *_ACROSS, 2, direction),
            _case("page-3", _TIED, *_LARGEST, 3, direction),
        )
    ),
    _case("page-4", _TIED, *_SMALLEST, 3, UP),
]

_TYPES = [dtype for dtype in DATA_TYPES if dtype.name != "float64"]
TYPES = [
    case
    for dtype in _TYPES
    for kind in ("uint32", "uint64")
    for case in (
        _case(f"{dtype.name}-{kind}", [3, 1, 7, 3], [7, 3, 3], [2, 0, 3], 0, None, dtype, kind),
        _case(f"down-{dtype.name}-{kind}", [3, 1, 7, 3], [7, 3, 3], [2, 0, 3], 0, DOWN, dtype, kind),
        _case(f"up-{dtype.name}-{kind}", [3, 1, 7, 3], [1, 3, 3], [1, 0, 3], 0, UP, dtype, kind),
    )
]


def _ends(dtype: np.dtype[Any]) -> list[Case]:
    low, high = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
    x = [high, low, low + 1, high - 1]
    return [
        _case(f"ends-down-{dtype.name}", x, [high, high - 1, low + 1, low], [0, 3, 2, 1], 0, DOWN, dtype),
        _case(f"ends-up-{dtype.name}", x, [low, low + 1, high - 1, high], [1, 2, 3, 0], 0, UP, dtype),
    ]


ENDS = [case for dtype in _TYPES if dtype.kind in "iu" for case in _ends(dtype)]

_SPECIAL = [1, NAN, -INF, INF, -1, NAN]
_LONG = np.arange(3000) * 7919 % 3001
_ORDER = np.argsort(_LONG)
OTHERS = [
    *(
        case
        for dtype in (np.float32, np.float16)
        for case in (
            _case(f"special-down-{dtype.__name__}", _SPECIAL, [NAN, NAN, INF, 1], [1, 5, 3, 0], 0, DOWN, dtype),
            _case(f"special-up-{dtype.__name__}", _SPECIAL, [-INF, -1, 1, INF, NAN], [2, 4, 0, 3, 1], 0, UP, dtype),
            _case(f"zeros-down-{dtype.__name__}", [-0.0, 0.0, -0.0, -1], [-0.0, 0.0, -0.0], [0, 1, 2], 0, DOWN, dtype),
            _case(f"zeros-up-{dtype.__name__}", [0.0, -0.0, 1], [0.0, -0.0], [0, 1], 0, UP, dtype),
        )
    ),
    _case("one-element", [[5]], [[5]], [[0]], 1),
    _case("long-down", _LONG, _LONG[_ORDER[::-1]][:1000], _ORDER[::-1][:1000], 0),
    _case("long-up", _LONG, _LONG[_ORDER][:10], _ORDER[:10], 0, UP, np.int32),
    _case(
        "strides",
        [[3, 1, 2], [6, 5, 4]],
        [[3, 2], [6, 5]],
        [[0, 2], [0, 1]],
        1,
        DOWN,
        np.int16,
        strides=((1, 2), (9, 2), (1, 5)),
    ),
]

CASES = [*PAGES, *TYPES, *ENDS, *OTHERS]


def _members(**members: Any) -> dict[str, Any]:
    right = {
        "InputTensor": tensor((3, 4)),
        "OutputValueTensor": tensor((3, 2)),
        "OutputIndexTensor": tensor((3, 2), "UINT32"),
        "Axis": 1,
        "K": 2,
    }
    return {**right, **members}


def _wrong(rule: str, where: str, found: str, expected: str, **members: Any) -> list[Negative]:
    return [
        Negative(rule, DML_TOP_K_OPERATOR_DESC(**_members(**members)), where, found, expected),
        Negative(rule, DML_TOP_K1_OPERATOR_DESC(**_members(**members), AxisDirection=UP), where, found, expected),
    ]


_MANY = {
    "InputTensor": tensor((2**32 + 1,), strides=(0,)),
    "OutputValueTensor": tensor((1,)),
    "OutputIndexTensor": tensor((1,), "UINT32"),
    "Axis": 0,
    "K": 1,
}
RIGHT = [
    DML_TOP_K_OPERATOR_DESC(**_members()),
    DML_TOP_K1_OPERATOR_DESC(**_members(), AxisDirection=UP),
]
NEGATIVES = [
    *_wrong("(C1)", "OutputValueTensor.DataType", "INT8", "FLOAT32", OutputValueTensor=tensor((3, 2), "INT8")),
    *_wrong("(C2)", "OutputValueTensor.DimensionCount", "1", "2, that", OutputValueTensor=tensor((3,))),
    *_wrong("(C2)", "OutputIndexTensor.DimensionCount", "1", "2, that", OutputIndexTensor=tensor((3,), "UINT32")),
    *_wrong("(C3)", "Axis", "2", "less than 2, the DimensionCount", Axis=2),
    *_wrong("(C4)", "K", "0", "from 1 to 4", K=0),
    *_wrong("(C4)", "K", "5", "from 1 to 4", K=5),
    *_wrong("(C5)", "OutputValueTensor.Sizes[1]", "3", "2", OutputValueTensor=tensor((3, 3))),
    *_wrong("(C5)", "OutputIndexTensor.Sizes[0]", "2", "3", OutputIndexTensor=tensor((2, 2), "UINT32")),
    *_wrong("(C6)", "OutputIndexTensor.DataType", "UINT32", "a type that holds 4294967296", **_MANY),
]


KERNELS = dict.fromkeys(("TOP_K", "TOP_K1"), "the (largest|smallest) of ")


def _others(operator: str, tensor: str, shape: Shape) -> Mapping[str, Shape]:
    data = (shape[0], TensorDataType.FLOAT32) if tensor == "OutputIndexTensor" else shape
    indices = (shape[0], TensorDataType.UINT32)
    return {"InputTensor": data, "OutputValueTensor": data, "OutputIndexTensor": indices, tensor: shape}


def _support(first: Sequence[tuple[str, int, int, str]], since: str) -> Support:
    data = [*first, ("2.1", 4, 4, ALL_32), ("3.1", 1, 8, ALL_32), ("5.0", 1, 8, ALL_BUT_DOUBLE)]
    indices = [(since, 4, 4, "UINT32"), ("3.1", 1, 8, "UINT32"), ("5.0", 1, 8, "UINT64 UINT32")]
    return Support(
        {"InputTensor": data, "OutputValueTensor": data, "OutputIndexTensor": indices},
        members=lambda output: {"Axis": 0, "K": 1},
        others=_others,
    )


SUPPORT = {"TOP_K": _support([("2.0", 4, 4, FLOATS)], "2.0"), "TOP_K1": _support([], "2.1")}
