"""NONZERO_COORDINATES: the page's example, every data type, what counts as 0, columns, dimensions and strides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from anydml import DML_NONZERO_COORDINATES_OPERATOR_DESC, TensorDataType
from anydml.core.strided_layout import DATA_TYPES
from support_tables import ALL_32, Shape, Support

from . import Case, Negative, tensor, tensor_of


def _case(
    id: str,
    x: object,
    rows: Sequence[Sequence[int]],
    columns: int,
    dtype: Any = np.float32,
    leading: int | None = None,
    count: Sequence[int] = (1,),
    strides: Sequence[Sequence[int] | None] = (None, None, None),
) -> Case:
    """Of coordinates with so many dimensions of 1 before their two; those of InputTensor where None. What is not
    written is 0 here."""
    array = np.array(x, dtype)
    leading = max(array.ndim - 2, 0) if leading is None else leading
    sizes = (*(1,) * leading, array.size, columns)
    coordinates = np.zeros(sizes, np.uint32)
    coordinates[..., : len(rows), :] = np.reshape(rows, (-1, columns))
    number = np.full(count, len(rows), np.uint32)
    tensors = [tensor_of(each, stride) for each, stride in zip((array, number, coordinates), strides, strict=True)]
    names = ("InputTensor", "OutputCountTensor", "OutputCoordinatesTensor")
    desc = DML_NONZERO_COORDINATES_OPERATOR_DESC(**dict(zip(names, tensors, strict=True)))
    return Case(f"nonzero-{id}", desc, [array], [number, coordinates])


_PAGE = [[[[1.0, 0.0, 0.0, 2.0], [-0.0, 3.5, 0.0, -5.2]]]]
_ROWS = [[0, 0, 0], [0, 0, 3], [0, 1, 1], [0, 1, 3]]

PAGES = [_case("page", _PAGE, _ROWS, 3, count=(1, 1, 1, 1))]

_TYPES = [dtype for dtype in DATA_TYPES if dtype.itemsize < 8]
TYPES = [
    case
    for dtype in _TYPES
    for case in (
        _case(dtype.name, [[0, 1, 0], [0, 0, 2], [3, 0, 4]], [[0, 1], [1, 2], [2, 0], [2, 2]], 2, dtype),
        _case(f"one-dimension-{dtype.name}", [5, 0, 0, 7], [[0], [3]], 1, dtype),
    )
]


def _ends(dtype: np.dtype[Any]) -> Case:
    """Elements of one bit each, of which the lowest and the highest count as all do."""
    x = np.array([0, 1, 0, 1 << 8 * dtype.itemsize - 1], f"u{dtype.itemsize}").view(dtype)
    return _case(f"ends-{dtype.name}", x, [[1], [3]], 1, dtype)


ENDS = [_ends(dtype) for dtype in _TYPES if dtype.kind in "iu"]

_SPECIAL = [np.nan, 0.0, -0.0, np.inf, -np.inf, 6e-8, -6e-8]
_SPARSE = (np.arange(5 * 7 * 11 * 13) * 7919 % 31 == 0).reshape(5, 7, 11, 13)
_DENSE = (np.arange(3001) * 7919 % 31 != 0).reshape(1, 3001)


def _found(x: np.ndarray) -> list[list[int]]:
    return np.argwhere(x).tolist()


OTHERS = [
    *(
        _case(f"special-{dtype.__name__}", _SPECIAL, [[0], [3], [4], [5], [6]], 1, dtype)
        for dtype in (np.float32, np.float16)
    ),
    _case("least-float32", [1e-45, 0], [[0]], 1),
    _case("all-columns", _PAGE, [[0, *row] for row in _ROWS], 4),
    _case("fewest-columns", _PAGE, [row[1:] for row in _ROWS], 2),
    _case("no-leading-dimensions", _PAGE, _ROWS, 3, leading=0),
    _case("more-dimensions-than-the-input", [0, 1], [[1]], 1, np.int8, leading=3, count=(1, 1)),
    _case("one-element", [[[[7]]]], [[0]], 1, np.int32),
    _case("one-element-all-columns", [[[[7]]]], [[0, 0, 0, 0]], 4, np.int32),
    _case("one-zero", [[0]], [], 2, np.uint8),
    _case("none", np.zeros((3, 5)), [], 2, np.float16),
    _case("all", np.ones((3, 5)), _found(np.ones((3, 5))), 2, np.uint16),
    _case("sparse", _SPARSE, _found(_SPARSE), 4, np.uint8),
    _case("dense", _DENSE, _found(_DENSE), 2, np.int16),
    _case(
        "eight-dimensions",
        np.arange(256).reshape((2,) * 8) % 5,
        _found(np.arange(256).reshape((2,) * 8) % 5),
        8,
        np.int32,
    ),
    _case(
        "strides",
        [[[1, 0, 2], [0, 0, 3]], [[0, 4, 0], [5, 6, 0]]],
        [[0, 0, 0], [0, 0, 2], [0, 1, 2], [1, 0, 1], [1, 1, 0], [1, 1, 1]],
        3,
        np.int16,
        strides=((2, 5, 11), (3,), (1, 2, 30)),
    ),
    _case(
        "one-row-is-shared",
        [[0, 1, 0, 1]] * 3,
        [[i, j] for i in range(3) for j in (1, 3)],
        2,
        np.float16,
        strides=((0, 2), None, (5, 2)),
    ),
]

CASES = [*PAGES, *TYPES, *ENDS, *OTHERS]


def _desc(**members: Any) -> DML_NONZERO_COORDINATES_OPERATOR_DESC:
    right = {
        "InputTensor": tensor((1, 3, 4)),
        "OutputCountTensor": tensor((1,), "UINT32"),
        "OutputCoordinatesTensor": tensor((12, 2), "UINT32"),
    }
    return DML_NONZERO_COORDINATES_OPERATOR_DESC(**{**right, **members})


def _wrong_sizes(tensor_name: str, sizes: Sequence[int], place: int, expected: str) -> Negative:
    desc = _desc(**{tensor_name: tensor(sizes, "UINT32")})
    return Negative("(C1)", desc, f"{tensor_name}.Sizes[{place}]", str(sizes[place]), expected)


RIGHT = [_desc(), _desc(OutputCoordinatesTensor=tensor((1, 1, 12, 3), "UINT32"))]
NEGATIVES = [
    _wrong_sizes("OutputCountTensor", (1, 2), 1, "1"),
    _wrong_sizes("OutputCoordinatesTensor", (11, 2), 0, "12"),
    _wrong_sizes("OutputCoordinatesTensor", (2, 12, 2), 0, "1"),
    _wrong_sizes("OutputCoordinatesTensor", (12, 1), 1, "2 or 3"),
    _wrong_sizes("OutputCoordinatesTensor", (12, 4), 1, "2 or 3"),
    Negative(
        "(C2)",
        _desc(
            InputTensor=tensor((2**32,), strides=(0,)),
            OutputCoordinatesTensor=tensor((2**32, 1), "UINT32"),
        ),
        "InputTensor.Sizes",
        "4294967296 elements",
        "less than 4294967296",
    ),
]

KERNELS = {"NONZERO_COORDINATES": "coordinates of what is not 0"}


def _others(operator: str, tensor: str, shape: Shape) -> Mapping[str, Shape]:
    """A level that has an input of 1 dimension has coordinates of 2."""
    data = (shape[0], TensorDataType.FLOAT32)
    indices = (max(shape[0], 2), TensorDataType.UINT32)
    count = (shape[0], TensorDataType.UINT32)
    return {"InputTensor": data, "OutputCountTensor": count, "OutputCoordinatesTensor": indices, tensor: shape}


SUPPORT = {
    "NONZERO_COORDINATES": Support(
        {
            "InputTensor": [("3.0", 4, 5, ALL_32), ("4.0", 1, 8, ALL_32)],
            "OutputCountTensor": [("3.0", 4, 5, "UINT32"), ("4.0", 1, 8, "UINT32")],
            "OutputCoordinatesTensor": [("3.0", 4, 5, "UINT32"), ("4.0", 2, 8, "UINT32")],
        },
        others=_others,
    )
}
