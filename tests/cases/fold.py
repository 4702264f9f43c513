"""FOLD: the page's examples, every data type, windows of all kinds in 1 to 6 dimensions, strides."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod
from typing import Any

import numpy as np

from anydml import DML_FOLD_OPERATOR_DESC
from anydml.core.strided_layout import DATA_TYPES
from support_tables import ALL, Support

from . import Case, Negative, tensor, tensor_of


def _case(
    id: str,
    x: np.ndarray,
    y: Any,
    window: Sequence[int],
    strides: Sequence[int] | None = None,
    dilations: Sequence[int] | None = None,
    start: Sequence[int] | None = None,
    end: Sequence[int] | None = None,
    in_strides: Sequence[int] | None = None,
    out_strides: Sequence[int] | None = None,
) -> Case:
    output = np.asarray(y, x.dtype)
    n = len(window)
    desc = DML_FOLD_OPERATOR_DESC(
        InputTensor=tensor_of(x, in_strides),
        OutputTensor=tensor_of(output, out_strides),
        WindowSizes=window,
        Strides=strides or (1,) * n,
        Dilations=dilations or (1,) * n,
        StartPadding=start or (0,) * n,
        EndPadding=end or (0,) * n,
    )
    return Case(f"fold-{id}", desc, [x], [output])


def _placed(
    id: str, sizes: Sequence[int], window: Sequence[int], dtype: Any = np.float32, leading: int = 0, **options: Any
) -> Case:
    """Of small whole numbers, whose sums are exact, block by block and element by element."""
    n = len(window)
    ones, nothing = (1,) * n, (0,) * n
    steps, dilations = options.get("strides", ones), options.get("dilations", ones)
    start, end = options.get("start", nothing), options.get("end", nothing)
    ends = zip(sizes[2:], window, steps, dilations, start, end, strict=True)
    blocks = [(size + a + b - (k - 1) * d - 1) // s + 1 for size, k, s, d, a, b in ends]
    shape = (*(1,) * leading, sizes[0], sizes[1] * prod(window), prod(blocks))
    x = (np.arange(prod(shape)) % 7).reshape(shape).astype(dtype)
    columns = x.reshape(sizes[0], sizes[1], *window, *blocks)
    y = np.zeros(sizes, dtype)
    for tap in product(*map(range, window)):
        for block in product(*map(range, blocks)):
            at = tuple(b * s + k * d - a for b, s, k, d, a in zip(block, steps, tap, dilations, start, strict=True))
            if all(0 <= i < size for i, size in zip(at, sizes[2:], strict=True)):
                y[:, :, *at] += columns[:, :, *tap, *block]
    return _case(id, x, y, window, **options)


_PADDED = [[26, 70, 102, 60], [78, 183, 231, 129], [84, 195, 243, 135], [82, 182, 214, 116]]
_SECOND = [[170, 358, 390, 204], [294, 615, 663, 345], [300, 627, 675, 351], [226, 470, 502, 260]]
_ENDS = {"start": (1, 0), "end": (1, 0)}

CASES = [
    _case(
        "page-1",
        np.arange(36, dtype=np.float32).reshape(1, 9, 4),
        [[[[0, 5, 13, 9], [14, 38, 54, 32], [38, 86, 102, 56], [26, 57, 65, 35]]]],
        (3, 3),
    ),
    _case("page-2", np.arange(72, dtype=np.float32).reshape(1, 9, 8), [[_PADDED]], (3, 3), **_ENDS),
    _case("page-3", np.arange(144, dtype=np.float32).reshape(1, 18, 8), [[_PADDED, _SECOND]], (3, 3), **_ENDS),
    *(_placed(dtype.name, (2, 2, 4, 5), (2, 3), dtype) for dtype in DATA_TYPES),
    _placed("one-dimension", (2, 3, 9), (4,), strides=(2,), start=(1,), end=(2,)),
    _placed("three-dimensions", (1, 2, 4, 3, 5), (2, 2, 3), strides=(2, 1, 2), start=(1, 0, 2), end=(0, 1, 1)),
    _placed("six-dimensions", (1, 1, 2, 3, 2, 2, 3, 2), (1, 2, 2, 1, 2, 1)),
    _placed("leading-ones", (2, 2, 4, 4), (3, 3), leading=2),
    _placed("dilated", (1, 2, 7, 8), (3, 2), dilations=(2, 3)),
    _placed("dilated-and-padded", (2, 1, 6, 9), (2, 3), np.float16, dilations=(3, 2), start=(2, 1), end=(1, 3)),
    _placed("gaps-between-blocks", (1, 2, 7, 8), (2, 2), strides=(3, 3)),
    _placed("rest-that-no-block-has", (1, 1, 8, 8), (3, 3), strides=(3, 4)),
    _placed("blocks-on-padding-alone", (1, 1, 2, 2), (1, 1), start=(2, 1), end=(1, 3)),
    _placed("stride-and-dilation", (1, 1, 12), (3,), strides=(2,), dilations=(3,), start=(4,), end=(3,)),
    _placed("window-of-one", (2, 3, 4, 5), (1, 1)),
    _placed("one-block", (2, 3, 4, 5), (4, 5)),
    _placed("long-rows", (1, 2, 3, 1500), (2, 3)),
    _placed("long-rows-with-steps", (1, 1, 2, 2300), (2, 5), np.int16, strides=(1, 2), start=(0, 3), end=(0, 1)),
    _placed("large", (2, 16, 40, 50), (3, 3), start=(1, 1), end=(1, 1)),
    _placed("large-float16", (2, 16, 40, 50), (3, 3), np.float16, start=(1, 1), end=(1, 1)),
    _placed("transposed-input", (2, 2, 4, 4), (2, 2), in_strides=(1, 2, 16)),
    _placed("gapped", (2, 2, 3, 4), (2, 2), np.uint8, in_strides=(200, 20, 3), out_strides=(100, 40, 13, 3)),
    _placed("transposed-output", (2, 3, 3, 4), (2, 2), np.float64, out_strides=(36, 1, 3, 9)),
    _case("broadcast", np.ones((2, 4, 3), np.float32), [[[1, 2, 3, 3, 2, 1]]] * 2, (4,), in_strides=(0, 0, 0)),
    # In the type itself 1 would be lost beside the number before it.
    _case(
        "float32-held-wide",
        np.array([[[0, 0, -(2.0**24)], [0, 1, 0], [2.0**24, 0, 0]]], np.float32),
        [[[0, 0, 1, 0, 0]]],
        (3,),
    ),
    _case(
        "float16-held-wide",
        np.array([[[0, 0, -2048], [0, 1, 0], [2048, 0, 0]]], np.float16),
        [[[0, 0, 1, 0, 0]]],
        (3,),
    ),
    _case(
        "float16-overflow-that-goes",
        np.array([[[0, 0, -65504], [0, 65504, 0], [65504, 0, 0]]], np.float16),
        [[[0, 0, 65504, 0, 0]]],
        (3,),
    ),
    _case("float16-overflows", np.array([[[0, 65504], [65504, 0]]], np.float16), [[[0, np.inf, 0]]], (2,)),
    _case("wraps-uint8", np.array([[[0, 200], [100, 0]]], np.uint8), [[[0, 44, 0]]], (2,)),
    _case("wraps-int64", np.array([[[0, 2**63 - 1], [1, 0]]], np.int64), [[[0, -(2**63), 0]]], (2,)),
    _case("nan-and-infinity", np.array([[[np.nan, np.inf], [-np.inf, 1]]], np.float32), [[[np.nan, np.nan, 1]]], (2,)),
]


def _right(x: Sequence[int] = (2, 12, 6), y: Sequence[int] = (2, 3, 3, 4), **members: Any) -> DML_FOLD_OPERATOR_DESC:
    right = {"InputTensor": tensor(x), "OutputTensor": tensor(y), "WindowSizes": (2, 2)}
    ends = {"Strides": (1, 1), "Dilations": (1, 1), "StartPadding": (0, 0), "EndPadding": (0, 0)}
    return DML_FOLD_OPERATOR_DESC(**{**right, **ends, **members})


_THREE = {name: (1, 1, 1) for name in ("Strides", "Dilations", "StartPadding", "EndPadding")}

NEGATIVES = [
    Negative(
        "(C1)", _right(OutputTensor=tensor((2, 3, 3, 4), "INT8")), "OutputTensor.DataType", "INT8", "FLOAT32, that of"
    ),
    Negative("(C2)", _right((2, 2, 12, 6)), "InputTensor.Sizes[0]", "2", "1, before the last three"),
    Negative(
        "(C3)", _right(WindowSizes=(2, 2, 1), **_THREE), "DimensionCount", "3", "2, 2 less than the DimensionCount"
    ),
    Negative("(C4)", _right(WindowSizes=(2, 0)), "WindowSizes[1]", "0", "at least 1"),
    Negative("(C4)", _right(Strides=(0, 1)), "Strides[0]", "0", "at least 1"),
    Negative("(C4)", _right(Dilations=(1, 0)), "Dilations[1]", "0", "at least 1"),
    Negative("(C5)", _right(WindowSizes=(4, 2)), "WindowSizes[0]", "4", "an extent of at most 3, the padded size"),
    Negative("(C6)", _right((1, 12, 6)), "InputTensor.Sizes[0]", "1", "2, the batch of OutputTensor"),
    Negative(
        "(C6)", _right((2, 13, 6)), "InputTensor.Sizes[1]", "13", "12, 3 channels of OutputTensor times 4 elements"
    ),
    Negative("(C6)", _right((1, 2, 12, 7)), "InputTensor.Sizes[3]", "7", "6, the blocks that the window cuts out"),
]

RIGHT = [_right(), _right((1, 2, 12, 6)), _right((2, 12, 12), StartPadding=(1, 0), EndPadding=(1, 0))]
KERNELS = {"FOLD": "sums of blocks"}


def _built(operator: str, **shapes: Any) -> DML_FOLD_OPERATOR_DESC:
    """Of one element."""
    tensors = {name: tensor((1,) * rank, kind.name) for name, (rank, kind) in shapes.items()}
    n = max(0, shapes["OutputTensor"][0] - 2)
    ones = {name: (1,) * n for name in ("WindowSizes", "Strides", "Dilations")}
    return DML_FOLD_OPERATOR_DESC(**tensors, **ones, StartPadding=(0,) * n, EndPadding=(0,) * n)


SUPPORT = {"FOLD": Support([("6.4", 3, 8, ALL)], desc=_built)}
