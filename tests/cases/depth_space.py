"""DEPTH_TO_SPACE and SPACE_TO_DEPTH and their revisions: the pages' examples, every data type, there and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from anydml import DepthSpaceOrder
from anydml.core.strided_layout import DATA_TYPES
from anydml.operators import spec
from support_tables import ALL, ALL_32, FLOATS, Support

from . import Case, Negative, tensor, tensor_of

_DCR, _CRD = DepthSpaceOrder.DEPTH_COLUMN_ROW, DepthSpaceOrder.COLUMN_ROW_DEPTH


def _desc(operator: str, x: Any, y: Any, block: int, order: DepthSpaceOrder | None) -> Any:
    options = {} if order is None else {"Order": order}
    return spec(operator).desc(InputTensor=x, OutputTensor=y, BlockSize=block, **options)


def _there_and_back(
    id: str,
    depth: np.ndarray,
    space: Any,
    order: DepthSpaceOrder | None,
    block: int,
    strides: Sequence[int] | None = None,
    out_strides: Sequence[int] | None = None,
) -> list[Case]:
    """An order of None is the operators' without one."""
    revision = "" if order is None else "1"
    image = np.array(space, depth.dtype)
    to_space, to_depth = f"DEPTH_TO_SPACE{revision}", f"SPACE_TO_DEPTH{revision}"
    deep, wide = tensor_of(depth, strides), tensor_of(image, out_strides)
    return [
        Case(f"{to_space.lower()}-{id}", _desc(to_space, deep, wide, block, order), [depth], [image]),
        Case(f"{to_depth.lower()}-{id}", _desc(to_depth, wide, deep, block, order), [image], [depth]),
    ]


_DEPTH = np.add.outer(9 * np.arange(8), np.arange(6)).astype(np.uint32).reshape(1, 8, 2, 3)
_SPACE = [
    [
        [
            [0, 18, 1, 19, 2, 20],
            [36, 54, 37, 55, 38, 56],
            [3, 21, 4, 22, 5, 23],
            [39, 57, 40, 58, 41, 59],
        ],
        [
            [9, 27, 10, 28, 11, 29],
            [45, 63, 46, 64, 47, 65],
            [12, 30, 13, 31, 14, 32],
            [48, 66, 49, 67, 50, 68],
        ],
    ]
]
_SPACE_CRD = [
    [
        [
            [0, 9, 1, 10, 2, 11],
            [18, 27, 19, 28, 20, 29],
            [3, 12, 4, 13, 5, 14],
            [21, 30, 22, 31, 23, 32],
        ],
        [
            [36, 45, 37, 46, 38, 47],
            [54, 63, 55, 64, 56, 65],
            [39, 48, 40, 49, 41, 50],
            [57, 66, 58, 67, 59, 68],
        ],
    ]
]
_NANS = np.array([0x7FC01234, 0xFF812345, 0x7F800001, 0], np.uint32).view(np.float32)
_FLAT = np.arange(12).reshape(2, 1, 2, 3)
_GAPPED = (300, 100, 20, 3)
_IN_COLUMNS = (48, 1, 24, 8)

CASES = [
    *_there_and_back("page", _DEPTH, _SPACE, None, 2),
    *_there_and_back("page-dcr", _DEPTH, _SPACE, _DCR, 2),
    *_there_and_back("page-crd", _DEPTH, _SPACE_CRD, _CRD, 2),
    *(
        case
        for dtype in DATA_TYPES
        for order, space in ((None, _SPACE), (_DCR, _SPACE), (_CRD, _SPACE_CRD))
        for case in _there_and_back(dtype.name, _DEPTH.astype(dtype), space, order, 2)
    ),
    *(
        case
        for order, space in ((_DCR, _SPACE), (_CRD, _SPACE_CRD))
        for case in _there_and_back(f"strides-{order.name.lower()}", _DEPTH, space, order, 2, _IN_COLUMNS, _GAPPED)
    ),
    *(
        case
        for order in (None, *DepthSpaceOrder)
        for name in [order.name.lower() if order else "plain"]
        for case in [
            *_there_and_back(f"blocks-of-1-{name}", _FLAT, _FLAT, order, 1),
            *_there_and_back(f"one-block-{name}", _NANS.reshape(1, 4, 1, 1), _NANS.reshape(1, 1, 2, 2), order, 2),
            *_there_and_back(
                f"two-images-{name}",
                np.arange(36, dtype=np.int16).reshape(2, 9, 1, 2),
                [
                    [[[0, 2, 4, 1, 3, 5], [6, 8, 10, 7, 9, 11], [12, 14, 16, 13, 15, 17]]],
                    [[[18, 20, 22, 19, 21, 23], [24, 26, 28, 25, 27, 29], [30, 32, 34, 31, 33, 35]]],
                ],
                order,
                3,
            ),
        ]
    ),
]


def _negatives(order: DepthSpaceOrder | None) -> list[Negative]:
    revision = "" if order is None else "1"
    deep, wide = tensor((1, 8, 2, 3)), tensor((1, 2, 4, 6))

    def to_space(x: Any = deep, y: Any = wide, block: int = 2) -> Any:
        return _desc(f"DEPTH_TO_SPACE{revision}", x, y, block, order)

    def to_depth(x: Any = wide, y: Any = deep, block: int = 2) -> Any:
        return _desc(f"SPACE_TO_DEPTH{revision}", x, y, block, order)

    bytes_wide, bytes_deep = tensor((1, 2, 4, 6), "INT8"), tensor((1, 8, 2, 3), "INT8")
    return [
        Negative("(C1)", to_space(y=bytes_wide), "OutputTensor.DataType", "INT8", "FLOAT32, that"),
        Negative("(C1)", to_depth(y=bytes_deep), "OutputTensor.DataType", "INT8", "FLOAT32, that"),
        Negative("(C2)", to_space(block=0), "BlockSize", "0", "at least 1"),
        Negative("(C2)", to_depth(block=0), "BlockSize", "0", "at least 1"),
        Negative("(C3)", to_space(block=3), "InputTensor.Sizes[1]", "8", "a multiple of 9, which is BlockSize"),
        Negative("(C3)", to_depth(tensor((1, 2, 4, 5))), "InputTensor.Sizes[3]", "5", "a multiple of 2, the BlockSize"),
        Negative("(C3)", to_depth(tensor((1, 2, 3, 6))), "InputTensor.Sizes[2]", "3", "a multiple of 2, the BlockSize"),
        Negative("(C4)", to_space(y=tensor((1, 2, 4, 3))), "OutputTensor.Sizes[3]", "3", "6"),
        Negative("(C4)", to_depth(y=tensor((1, 4, 2, 3))), "OutputTensor.Sizes[1]", "4", "8"),
    ]


NEGATIVES = [*_negatives(None), *_negatives(_DCR)]
RIGHT = [
    desc
    for order in (None, _CRD)
    for case in _there_and_back("right", np.ones((1, 8, 2, 3), np.float32), np.ones((1, 2, 4, 6)), order, 2)
    for desc in [case.desc]
]
_OPERATORS = ("SPACE_TO_DEPTH", "DEPTH_TO_SPACE", "DEPTH_TO_SPACE1", "SPACE_TO_DEPTH1")
KERNELS = dict.fromkeys(_OPERATORS, "movement ")
SUPPORT = {
    name: Support(
        [*([] if name.endswith("1") else [("1.0", 4, 4, FLOATS)]), ("2.1", 4, 4, ALL_32), ("5.0", 4, 4, ALL)],
        members=lambda output: {"BlockSize": 1},
    )
    for name in _OPERATORS
}
