"""MAX_POOLING and its revisions: every type, ties, padding, NaN, and indices into the whole input.

What all pooling of floats refuses is here too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import anydml
from anydml import TensorDataType
from anydml.operators import spec, spec_of
from anydml.operators.schema import OperatorDesc
from support_tables import ALL_BUT_DOUBLE, BYTES, FLOATS, Shape, Support, one_tap

from . import Case, Negative, tensor, tensor_of

INF, NAN = np.inf, np.nan


def _case(
    id: str,
    x: Any,
    y: Any,
    indices: Any = None,
    *,
    window: Sequence[int],
    dtype: Any = np.float32,
    index_dtype: Any = np.uint32,
    strides: Sequence[int] | None = None,
    start: Sequence[int] | None = None,
    end: Sequence[int] | None = None,
    dilations: Sequence[int] | None = None,
    revision: str = "",
    layouts: Sequence[Any] = (None, None, None),
) -> Case:
    """`layouts` are the strides of input, output and indices."""
    x, y = np.array(x, dtype), np.array(y, dtype)
    ones, zeros = [1] * len(window), [0] * len(window)
    members: dict[str, Any] = {} if dilations is None else {"Dilations": dilations}
    revision = "2" if dilations else "1" if indices is not None else revision
    outputs: list[np.ndarray | None] = [y]
    if revision:
        outputs.append(None if indices is None else np.array(indices, index_dtype))
    if indices is not None:
        members["OutputIndicesTensor"] = tensor_of(outputs[1], layouts[2])
    desc = getattr(anydml, f"DML_MAX_POOLING{revision}_OPERATOR_DESC")(
        InputTensor=tensor_of(x, layouts[0]),
        OutputTensor=tensor_of(y, layouts[1]),
        WindowSize=window,
        Strides=strides or ones,
        StartPadding=start or zeros,
        EndPadding=end or zeros,
        **members,
    )
    return Case(f"max-pooling{revision}-{id}", desc, [x], outputs)


def _types() -> list[Case]:
    cases = []
    for name in ("float32", "float16", "int64", "int32", "int16", "int8", "uint64", "uint32", "uint16", "uint8"):
        dtype = np.dtype(name)
        limits: Any = np.finfo(dtype) if dtype.kind == "f" else np.iinfo(dtype)
        low, high = limits.min, limits.max
        x = [[[[low, 3, high, 7]]]]
        cases.append(_case(name, x, [[[[3, high, high]]]], window=[1, 2], dtype=dtype))
        cases.append(_case(name, x, [[[[3, high, high]]]], [[[[1, 2, 2]]]], window=[1, 2], dtype=dtype))
        # A window on padding alone
        lowest = -INF if dtype.kind == "f" else low
        y, indices = [[[[lowest, low, 3]]]], [[[[0, 0, 1]]]]
        cases.append(_case(f"{name}-padding", [[[[low, 3]]]], y, indices, window=[1, 1], start=[0, 1], dtype=dtype))
        # Of lowest numbers the first that there is, be it not under the first tap
        y, indices = [[[[3, 3]], [[low, low]]]], [[[[0, 0]], [[2, 2]]]]
        x = [[[[3, low]], [[low, low]]]]
        cases.append(_case(f"{name}-lowest", x, y, indices, window=[1, 2], start=[0, 1], dtype=dtype))
    return cases


_SQUARE = [[[[1, 2, 3], [4, 5, 6], [7, 8, 9]]]]
_COUNTED = np.arange(2 * 3 * 5 * 23).reshape(2, 3, 5, 23)
_BOXES = _COUNTED.reshape(2, 1, 3, 5, 23)
_PAGE = [[[[3, 5, 7, 1], [9, 4, 2, 8]]]]

CASES = [
    *_types(),
    _case("page", _PAGE, [[[[7, 7], [9, 8]]]], [[[[2, 2], [4, 7]]]], window=[1, 3]),
    _case("without-indices", _PAGE, [[[[7, 7], [9, 8]]]], window=[1, 3], revision="1"),
    _case("square", _SQUARE, [[[[5, 6], [8, 9]]]], window=[2, 2]),
    # Of equal maxima the first in memory: in row 0 though row 1 has one further left
    _case("ties", [[[[1, 9], [9, 9]]]], [[[[9]]]], [[[[1]]]], window=[2, 2]),
    _case("ties-of-zeros", [[[[-1, -0.0, 0.0]]]], [[[[0]]]], [[[[1]]]], window=[1, 3]),
    # Batch and channels count
    _case(
        "whole-input",
        [[[[1, 2]], [[4, 3]]], [[[5, 6]], [[8, 7]]]],
        [[[[2]], [[4]]], [[[6]], [[8]]]],
        [[[[1]], [[2]]], [[[5]], [[6]]]],
        window=[1, 2],
    ),
    _case("uint64", _PAGE, [[[[9]]]], [[[[4]]]], window=[2, 4], index_dtype=np.uint64),
    _case("padding", [[[[-5, -7]]]], [[[[-5, -5, -7]]]], [[[[0, 0, 1]]]], window=[1, 2], start=[0, 1], end=[0, 1]),
    _case("infinities", [[[[-INF, -INF, INF]]]], [[[[-INF, INF]]]], [[[[0, 2]]]], window=[1, 2]),
    _case("nan", [[[[NAN, -INF, NAN, NAN, 3]]]], [[[[-INF, -INF, NAN, 3]]]], [[[[1, 1, 2, 4]]]], window=[1, 2]),
    _case("nan-in-rows", [[[[NAN, NAN], [NAN, 2]]]], [[[[2]]]], [[[[3]]]], window=[2, 2]),
    # Also of a signalling NaN, of which the C library's fmax makes a quiet one.
    _case(
        "nan-signalling",
        np.array([0x3F800000, 0x7F800001, 0x3F000000], np.uint32).view(np.float32).reshape(1, 1, 1, 3),
        [[[[1]]]],
        [[[[0]]]],
        window=[1, 3],
    ),
    _case("nan-alone", [[[[NAN, NAN], [NAN, NAN]]]], [[[[NAN]]]], [[[[0]]]], window=[2, 2]),
    _case("stride", [[[[1, 2, 3, 4, 5]]]], [[[[2, 4]]]], [[[[1, 3]]]], window=[1, 2], strides=[1, 2]),
    _case("stride-rounded-up", [[[[1, 2, 3, 4, 5]]]], [[[[2, 4, 5]]]], [[[[1, 3, 4]]]], window=[1, 2], strides=[1, 2]),
    _case("window-beyond", [[[[1, 2, 3, 4, 5]]]], [[[[1, -INF]]]], [[[[0, 0]]]], window=[1, 1], strides=[1, 7]),
    _case("dilation", [[[[1, 9, 2, 3, 4]]]], [[[[2, 9, 4]]]], [[[[2, 1, 4]]]], window=[1, 2], dilations=[1, 2]),
    _case("dilation-without-indices", [[[[1, 9, 2]]]], [[[[2]]]], window=[1, 2], dilations=[1, 2]),
    _case(
        "dilation-both-ways", np.arange(9).reshape(1, 1, 3, 3), [[[[8]]]], [[[[8]]]], window=[2, 2], dilations=[2, 2]
    ),
    _case(
        "dilation-padding",
        [[[[5, 4]]]],
        [[[[4, 5, 4]]]],
        [[[[1, 0, 1]]]],
        window=[1, 2],
        start=[0, 1],
        end=[0, 2],
        dilations=[1, 2],
    ),
    _case("three-dimensions", np.arange(8)[::-1].reshape(1, 1, 2, 2, 2), [[[[[7]]]]], [[[[[0]]]]], window=[2, 2, 2]),
    _case(
        "three-dimensions-ties",
        np.ones((1, 2, 2, 2, 2)),
        np.ones((1, 2, 1, 1, 2)),
        [[[[[0, 1]]], [[[8, 9]]]]],
        window=[2, 2, 1],
    ),
    # Rows of several planes, whose elements are their own indices
    _case("planes", _COUNTED, _COUNTED[..., 1:, 2:], _COUNTED[..., 1:, 2:], window=[2, 3]),
    _case("planes-back", -_COUNTED, -_COUNTED[..., :-1, :-2], _COUNTED[..., :-1, :-2], window=[2, 3]),
    _case("planes-stride", -_COUNTED, -_COUNTED[..., :-2, ::2], _COUNTED[..., :-2, ::2], window=[3, 1], strides=[1, 2]),
    _case("boxes", _BOXES, _BOXES[..., 1:, 1:, 2:], _BOXES[..., 1:, 1:, 2:], window=[2, 2, 3]),
    _case("boxes-back", -_BOXES, -_BOXES[..., :-1, :-1, :-2], _BOXES[..., :-1, :-1, :-2], window=[2, 2, 3]),
    _case("huge-padding", [[[[7]]]], [[[[7]]]], [[[[0]]]], window=[1, 2**31], start=[0, 2**30], end=[0, 2**30 - 1]),
    _case(
        "strided",
        _PAGE,
        [[[[7, 7], [9, 8]]]],
        [[[[2, 2], [4, 7]]]],
        window=[1, 3],
        layouts=[(16, 16, 1, 2), (9, 9, 4, 2), (9, 9, 2, 4)],
    ),
    _case(
        "broadcast", np.full((1, 1, 2, 3), 4), [[[[4, 4]]]], [[[[0, 1]]]], window=[2, 2], layouts=[(0,) * 4, None, None]
    ),
]


def windowed(operator: str, **members: Any) -> OperatorDesc:
    """Pooling of floats, by a window of 2 by 2 over {1, 3, 4, 5}."""
    right = {
        "InputTensor": tensor((1, 3, 4, 5)),
        "OutputTensor": tensor((1, 3, 3, 4)),
        "Strides": (1, 1),
        "WindowSize": (2, 2),
        "StartPadding": (0, 0),
        "EndPadding": (0, 0),
    }
    more = {"P": 2, "OutputIndicesTensor": tensor((1, 3, 3, 4), "UINT32"), "Dilations": (1, 1)}
    found = spec(operator)
    right.update({name: value for name, value in more.items() if name in found.members})
    return found.desc(**{**right, **members})


def negatives_of_windows(operator: str) -> list[Negative]:
    return [
        Negative(
            "(C1)",
            windowed(operator, OutputTensor=tensor((1, 3, 3, 4), "FLOAT16")),
            "OutputTensor.DataType",
            "FLOAT16",
            "FLOAT32, that of I",
        ),
        Negative(
            "(C2)",
            windowed(operator, OutputTensor=tensor((1, 3, 3, 4, 1))),
            "OutputTensor.DimensionCount",
            "5",
            "4, that of InputTensor",
        ),
        Negative(
            "(C3)",
            windowed(operator, **{name: (1,) * 3 for name in spec(operator).desc.counts["DimensionCount"]}),
            "DimensionCount",
            "3",
            "2, 2 less than",
        ),
        Negative("(C4)", windowed(operator, Strides=(0, 1)), "Strides[0]", "0", "at least 1"),
        Negative("(C4)", windowed(operator, WindowSize=(2, 0)), "WindowSize[1]", "0", "at least 1"),
        Negative(
            "(C5)",
            windowed(operator, WindowSize=(5, 2)),
            "WindowSize[0]",
            "5",
            "an extent of at most 4, the padded size",
        ),
        Negative("(C6)", windowed(operator, OutputTensor=tensor((1, 3, 3, 5))), "OutputTensor.Sizes[3]", "5", "4"),
        Negative("(C6)", windowed(operator, OutputTensor=tensor((2, 3, 3, 4))), "OutputTensor.Sizes[0]", "2", "1"),
    ]


def negatives_of_dilations(operator: str) -> list[Negative]:
    return [
        Negative("(C4)", windowed(operator, Dilations=(0, 1)), "Dilations[0]", "0", "at least 1"),
        Negative(
            "(C5)",
            windowed(operator, Dilations=(1, 5)),
            "WindowSize[1]",
            "2, with a dilation of 5 an extent of 6",
            "at most 5",
        ),
    ]


RIGHT = [windowed(operator) for operator in ("MAX_POOLING", "MAX_POOLING1", "MAX_POOLING2")]
NEGATIVES = [
    *(negative for desc in RIGHT for negative in negatives_of_windows(spec_of(desc).name)),  # type: ignore[union-attr]
    *negatives_of_dilations("MAX_POOLING2"),
    *(
        negative
        for operator in ("MAX_POOLING1", "MAX_POOLING2")
        for negative in (
            Negative(
                "(C2)",
                windowed(operator, OutputIndicesTensor=tensor((1, 3, 3, 4, 1), "UINT32")),
                "OutputIndicesTensor.DimensionCount",
                "5",
                "4, that of InputTensor",
            ),
            Negative(
                "(C6)",
                windowed(operator, OutputIndicesTensor=tensor((1, 3, 3, 5), "UINT32")),
                "OutputIndicesTensor.Sizes[3]",
                "5",
                "4",
            ),
            # Rounded down, and rounded up
            Negative(
                "(C7)",
                windowed(
                    operator,
                    InputTensor=tensor((1, 3, 4, 8)),
                    Strides=(1, 2),
                    WindowSize=(2, 1),
                    OutputIndicesTensor=tensor((1, 3, 3, 5), "UINT32"),
                ),
                "OutputIndicesTensor.Sizes",
                "(1, 3, 3, 5)",
                "(1, 3, 3, 4), that of OutputTensor",
            ),
            Negative(
                "(C8)",
                windowed(operator, InputTensor=tensor((1, 3, 2**16, 2**16)), WindowSize=(2**16 - 2, 2**16 - 3)),
                "OutputIndicesTensor.DataType",
                "UINT32, of 12884901888 elements",
                "UINT64",
            ),
        )
    ),
]

KERNELS = dict.fromkeys(("MAX_POOLING", "MAX_POOLING1", "MAX_POOLING2"), "maxima")


def _others(operator: str, tensor: str, shape: Shape) -> Mapping[str, Shape]:
    """Indices are of a type of their own."""
    is_index = tensor == "OutputIndicesTensor"
    values = (shape[0], TensorDataType.FLOAT32) if is_index else shape
    indices = shape if is_index else (shape[0], TensorDataType.UINT32)
    return {"InputTensor": values, "OutputTensor": values, "OutputIndicesTensor": indices}


_LATER = [("3.0", 4, 5, f"{FLOATS} {BYTES}"), ("5.0", 4, 5, ALL_BUT_DOUBLE)]
SUPPORT = {
    "MAX_POOLING": Support([("1.0", 4, 5, FLOATS), *_LATER], desc=one_tap),
    "MAX_POOLING1": Support(
        {
            "InputTensor": [("2.0", 4, 5, FLOATS), *_LATER],
            "OutputTensor": [("2.0", 4, 5, FLOATS), *_LATER],
            "OutputIndicesTensor": [("2.0", 4, 5, "UINT32"), ("5.0", 4, 5, "UINT32 UINT64")],
        },
        desc=one_tap,
        others=_others,
    ),
    "MAX_POOLING2": Support(
        {
            "InputTensor": [("2.1", 4, 5, FLOATS), *_LATER],
            "OutputTensor": [("2.1", 4, 5, FLOATS), *_LATER],
            "OutputIndicesTensor": [("2.1", 4, 5, "UINT32"), ("5.0", 4, 5, "UINT32 UINT64")],
        },
        desc=one_tap,
        others=_others,
    ),
}
