"""GATHER_ND, GATHER_ND1 and SCATTER_ND: the pages' examples, every data type and type of indices, slices, batches,
strides, and tuples that are the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from anydml import (
    DML_GATHER_ND1_OPERATOR_DESC,
    DML_GATHER_ND_OPERATOR_DESC,
    DML_SCATTER_ND_OPERATOR_DESC,
    TensorDataType,
)
from anydml.core.strided_layout import DATA_TYPES
from support_tables import ALL, ALL_32, INDICES, Shape, Support

from . import Case, Negative, tensor, tensor_of

Strides = Sequence[Sequence[int] | None]


def _case(
    id: str,
    x: np.ndarray,
    indices: object,
    y: object,
    counts: tuple[int, int],
    batch: int | None = None,
    kind: str = "uint32",
    updates: object = None,
    strides: Strides = (None,) * 4,
) -> Case:
    """Of SCATTER_ND where there are updates, of GATHER_ND1 where there is a batch."""
    which, output = np.array(indices, kind), np.array(y, x.dtype)
    arrays = [x, which, output] if updates is None else [x, which, np.array(updates, x.dtype), output]
    tensors = [tensor_of(each, stride) for each, stride in zip(arrays, strides, strict=False)]
    members: dict[str, Any] = {"InputTensor": tensors[0], "IndicesTensor": tensors[1], "OutputTensor": tensors[-1]}
    members |= {"InputDimensionCount": counts[0], "IndicesDimensionCount": counts[1]}
    if updates is not None:
        desc: Any = DML_SCATTER_ND_OPERATOR_DESC(**members, UpdatesTensor=tensors[2])
        return Case(f"scatter_nd-{id}", desc, arrays[:3], [output])
    if batch is None:
        return Case(f"gather_nd-{id}", DML_GATHER_ND_OPERATOR_DESC(**members), arrays[:2], [output])
    return Case(
        f"gather_nd1-{id}", DML_GATHER_ND1_OPERATOR_DESC(**members, BatchDimensionCount=batch), arrays[:2], [output]
    )


def _f(values: object) -> np.ndarray:
    return np.array(values, np.float32)


_CUBE = np.arange(24, dtype=np.int16).reshape(2, 3, 4)
_NANS = np.array([0x7FC01234, 0xFF812345, 0x7F800001], np.uint32).view(np.float32)
_BATCHES = _f([[[[0, 1], [2, 3]], [[4, 5], [6, 7]], [[8, 9], [10, 11]]]])
_LARGE = np.arange(3 * 4 * 5 * 6 * 7, dtype=np.float32).reshape(3, 4, 5, 6, 7)

GATHERS = [
    *(
        _case(f"page-1{batch}", _f([[0, 1], [2, 3]]), [[1], [0]], [[2, 3], [0, 1]], (2, 2), batch)
        for batch in (None, 0)
    ),
    _case(
        "page-2",
        _f([[[[0, 1], [2, 3]], [[4, 5], [6, 7]]]]),
        [[[[0, 1], [1, 0]]]],
        [[[[2, 3], [4, 5]]]],
        (3, 2),
    ),
    # The page says IndicesDimensionCount 3 of what is {1, 3, 2, 2}.
    _case(
        "page-2",
        _BATCHES,
        [[[[0, 0], [1, 1]], [[1, 1], [0, 0]], [[0, 1], [1, 0]]]],
        [[[[0, 3], [7, 4], [9, 10]]]],
        (3, 3),
        1,
    ),
    # The sizes that the pages show: {1, 2} of the indices and {6, 7} of the input.
    _case("page-sizes", _LARGE, [[[[[0, 1, 2], [2, 3, 4]]]]], _LARGE[[0, 2], [1, 3], [2, 4]][None, None], (5, 3)),
    *(
        _case(
            f"{dtype.name}-by-{kind}",
            np.array([[1, 2, 3], [4, 5, 6]], dtype),
            [[1, 2], [0, 1]],
            [[6, 2]],
            (2, 2),
            batch,
            kind,
        )
        for batch in (None, 0)
        for dtype in DATA_TYPES
        for kind in ("int64", "int32", "uint64", "uint32")
    ),
    _case("negative", _CUBE, [[[-1, -3]], [[0, -1]]], [[[12, 13, 14, 15]], [[8, 9, 10, 11]]], (3, 3), None, "int32"),
    _case("nan-payloads", _NANS, [2], _NANS[[2]], (1, 1)),
    _case("whole-tuples", _CUBE, [[[1, 2, 3], [0, 0, 1]]], [[[23, 1]]], (3, 2), None, "int64"),
    _case(
        "two-dimensions-of-batches",
        _CUBE,
        [[[3], [2], [1]], [[0], [-1], [-2]]],
        [[[3, 6, 9], [12, 19, 22]]],
        (3, 3),
        2,
        "int64",
    ),
    _case(
        "slices-of-batches",
        _CUBE,
        [[[2], [0]], [[1], [1]]],
        [_CUBE[0, [2, 0]], _CUBE[1, [1, 1]]],
        (3, 3),
        1,
        "int64",
    ),
    _case(
        "strides",
        _CUBE,
        [[[1, 2], [0, 1]]],
        [_CUBE[[1, 0], [2, 1]]],
        (3, 2),
        None,
        "int64",
        strides=((1, 2, 6), (9, 1, 5), (20, 9, 2)),
    ),
    _case(
        "one-tuple-is-shared", _CUBE, [[[1, 2]] * 3], [[[20, 21, 22, 23]] * 3], (3, 2), strides=(None, (0, 0, 1), None)
    ),
    _case(
        "eight-dimensions",
        np.arange(6).reshape((1,) * 6 + (3, 2)),
        np.full((1,) * 8, 2),
        np.array([4, 5]).reshape((1,) * 7 + (2,)),
        (2, 1),
    ),
]

SCATTERS = [
    # Indices are integers, though the page says FLOAT32; and of as many dimensions as the others.
    _case(
        "page",
        np.arange(1, 9, dtype=np.float32)[None],
        [[4], [3], [1], [7]],
        [[1, 11, 3, 10, 9, 6, 7, 12]],
        (1, 2),
        updates=[[9, 10, 11, 12]],
    ),
    *(
        _case(
            f"{dtype.name}-by-{kind}",
            np.array([[1, 2, 3], [4, 5, 6]], dtype),
            [[1, 2], [0, 1]],
            [[1, 8, 3], [4, 5, 7]],
            (2, 2),
            None,
            kind,
            [[7, 8]],
        )
        for dtype in DATA_TYPES
        for kind in ("int64", "int32", "uint64", "uint32")
    ),
    _case(
        "negative-and-the-same",
        np.arange(6, dtype=np.uint8).reshape(3, 2),
        [[-1], [0], [2], [-3]],
        [[16, 17], [2, 3], [14, 15]],
        (2, 2),
        None,
        "int32",
        [[10, 11], [12, 13], [14, 15], [16, 17]],
    ),
    _case("nan-payloads", _NANS, [2], _NANS[[0, 1, 0]], (1, 1), updates=_NANS[[0]]),
    _case(
        "slices",
        _CUBE,
        [[[1], [0]]],
        _CUBE[::-1],
        (3, 2),
        updates=_CUBE[[0, 1]],
    ),
    _case(
        "strides",
        _CUBE,
        [[[1, 2], [0, 1]]],
        [[[0, 1, 2, 3], [-1, -2, -3, -4], [8, 9, 10, 11]], [[12, 13, 14, 15], [16, 17, 18, 19], [-1, -2, -3, -4]]],
        (3, 2),
        None,
        "int64",
        [[[-1, -2, -3, -4]] * 2],
        ((1, 2, 6), (9, 1, 5), (0, 0, 2), (40, 9, 2)),
    ),
    _case(
        "eight-dimensions",
        np.arange(6).reshape((1,) * 6 + (3, 2)),
        np.full((1,) * 8, 2),
        np.array([0, 1, 2, 3, 8, 9]).reshape((1,) * 6 + (3, 2)),
        (2, 1),
        updates=np.array([8, 9]).reshape((1,) * 7 + (2,)),
    ),
]

CASES = [*GATHERS, *SCATTERS]

_GATHER = {
    "InputTensor": tensor((1, 3, 4)),
    "IndicesTensor": tensor((1, 2, 1), "INT32"),
    "OutputTensor": tensor((1, 2, 4)),
    "InputDimensionCount": 2,
    "IndicesDimensionCount": 2,
}


def _gather(**members: Any) -> DML_GATHER_ND_OPERATOR_DESC:
    return DML_GATHER_ND_OPERATOR_DESC(**{**_GATHER, **members})


def _gather1(**members: Any) -> DML_GATHER_ND1_OPERATOR_DESC:
    right = {
        **_GATHER,
        "InputTensor": tensor((2, 3, 4)),
        "IndicesTensor": tensor((2, 2, 1), "INT32"),
        "OutputTensor": tensor((2, 2, 4)),
        "InputDimensionCount": 3,
        "IndicesDimensionCount": 3,
        "BatchDimensionCount": 1,
    }
    return DML_GATHER_ND1_OPERATOR_DESC(**{**right, **members})


def _scatter(**members: Any) -> DML_SCATTER_ND_OPERATOR_DESC:
    right = {**_GATHER, "UpdatesTensor": tensor((1, 2, 4)), "OutputTensor": tensor((1, 3, 4))}
    return DML_SCATTER_ND_OPERATOR_DESC(**{**right, **members})


_WIDE = tensor((1, 2, 3), "INT32")
_BEFORE = {
    "InputTensor": tensor((2, 2, 4)),
    "IndicesTensor": tensor((1, 2, 1), "INT32"),
    "OutputTensor": tensor((1, 1, 2)),
    "InputDimensionCount": 2,
    "IndicesDimensionCount": 2,
}
_DEEP = {
    "InputTensor": tensor((2, 3, 4)),
    "OutputTensor": tensor((2, 3, 4)),
    "InputDimensionCount": 3,
    "IndicesDimensionCount": 3,
}

NEGATIVES = [
    *(
        negative
        for make in (_gather, _scatter)
        for negative in (
            Negative(
                "(C1)",
                make(OutputTensor=tensor(make().OutputTensor.Sizes, "INT8")),
                "OutputTensor.DataType",
                "INT8",
                "FLOAT32",
            ),
            Negative(
                "(C2)", make(IndicesTensor=tensor((2, 1), "INT32")), "IndicesTensor.DimensionCount", "2", "3, that of"
            ),
            Negative("(C3)", make(InputDimensionCount=4), "InputDimensionCount", "4", "from 1 to 3"),
            Negative("(C4)", make(IndicesDimensionCount=0), "IndicesDimensionCount", "0", "from 1 to 3"),
            Negative(
                "(C5)",
                make(IndicesTensor=tensor((2, 2, 1), "INT32")),
                "IndicesTensor.Sizes[0]",
                "2",
                "1, before the last",
            ),
            Negative("(C6)", make(IndicesTensor=_WIDE), "IndicesTensor.Sizes[2]", "3", "at most 2 coordinates"),
            Negative("(C7)", make(**_DEEP), "InputDimensionCount", "of sizes (1, 2, 3, 4)", "of at most 3 dimensions"),
        )
    ),
    Negative("(C8)", _gather(OutputTensor=tensor((1, 3, 4))), "OutputTensor.Sizes[1]", "3", "2"),
    Negative("(C8)", _scatter(UpdatesTensor=tensor((1, 3, 4))), "UpdatesTensor.Sizes[1]", "3", "2"),
    Negative("(C9)", _scatter(OutputTensor=tensor((1, 2, 4))), "OutputTensor.Sizes[1]", "2", "3"),
    Negative("(C1)", _gather1(OutputTensor=tensor((2, 2, 4), "INT8")), "OutputTensor.DataType", "INT8", "FLOAT32"),
    Negative(
        "(C2)",
        _gather1(IndicesTensor=tensor((2, 1), "INT32"), IndicesDimensionCount=2),
        "IndicesTensor.DimensionCount",
        "2",
        "3, that of",
    ),
    Negative("(C3)", _gather1(InputDimensionCount=4), "InputDimensionCount", "4", "from 1 to 3"),
    Negative("(C4)", _gather1(IndicesDimensionCount=4), "IndicesDimensionCount", "4", "from 1 to 3"),
    Negative("(C5)", _gather1(**_BEFORE), "InputTensor.Sizes[0]", "2", "1, before the last"),
    Negative("(C6)", _gather1(BatchDimensionCount=3), "BatchDimensionCount", "3", "less than 3"),
    Negative(
        "(C7)",
        _gather1(IndicesTensor=tensor((3, 2, 1), "INT32"), OutputTensor=tensor((3, 2, 4))),
        "IndicesTensor.Sizes[0]",
        "3",
        "2, that of",
    ),
    Negative("(C8)", _gather1(IndicesTensor=tensor((2, 2, 3), "INT32")), "IndicesTensor.Sizes[2]", "3", "at most 2"),
    Negative(
        "(C9)",
        _gather1(BatchDimensionCount=0),
        "InputDimensionCount",
        "of sizes (2, 2, 3, 4)",
        "of at most 3 dimensions",
    ),
    Negative("(C10)", _gather1(OutputTensor=tensor((2, 3, 4))), "OutputTensor.Sizes[1]", "3", "2"),
]


def _others(operator: str, tensor: str, shape: Shape) -> Mapping[str, Shape]:
    """Indices of a type that every level has, or elements of a type that every level has."""
    data = (shape[0], TensorDataType.FLOAT32) if tensor == "IndicesTensor" else shape
    elements = dict.fromkeys(("InputTensor", "UpdatesTensor", "OutputTensor"), data)
    if operator != "SCATTER_ND":
        del elements["UpdatesTensor"]
    return {**elements, "IndicesTensor": (shape[0], TensorDataType.UINT32), tensor: shape}


_ELEMENTS = [("2.1", 4, 4, ALL_32), ("3.0", 1, 8, ALL_32), ("4.1", 1, 8, ALL)]
_OF_INDICES = [("2.1", 4, 4, "UINT32"), ("3.0", 1, 8, INDICES)]
_COUNTS = {"InputDimensionCount": 1, "IndicesDimensionCount": 1}

RIGHT = [_gather(), _gather1(), _scatter()]
KERNELS = {"GATHER_ND": "gather of ", "GATHER_ND1": "gather of ", "SCATTER_ND": "scatter of "}
SUPPORT = {
    "GATHER_ND": Support(
        {"InputTensor": _ELEMENTS, "IndicesTensor": _OF_INDICES, "OutputTensor": _ELEMENTS},
        members=lambda output: _COUNTS,
        others=_others,
    ),
    "GATHER_ND1": Support(
        {"InputTensor": _ELEMENTS[1:], "IndicesTensor": _OF_INDICES[1:], "OutputTensor": _ELEMENTS[1:]},
        members=lambda output: {**_COUNTS, "BatchDimensionCount": 0},
        others=_others,
    ),
    "SCATTER_ND": Support(
        {**dict.fromkeys(("InputTensor", "UpdatesTensor", "OutputTensor"), _ELEMENTS), "IndicesTensor": _OF_INDICES},
        members=lambda output: _COUNTS,
        others=_others,
    ),
}
