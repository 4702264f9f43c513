"""AVERAGE_POOLING_GRAD and MAX_POOLING_GRAD: the pages' examples, padding, ties, NaN, what is held wide."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np

from anydml import DML_AVERAGE_POOLING_GRAD_OPERATOR_DESC, DML_MAX_POOLING_GRAD_OPERATOR_DESC
from support_tables import FLOATS, Support

from . import Case, Negative, tensor, tensor_of


def _numbers(window: Sequence[int], given: dict[str, Any], *names: str) -> dict[str, Any]:
    """The desc's arrays, where they are not given such as change nothing."""
    words = {"Strides": "strides", "StartPadding": "start", "EndPadding": "end", "Dilations": "dilations"}
    nothing = {name: [int("Padding" not in name)] * len(window) for name in names}
    return {"WindowSize": window, **nothing, **{name: given[words[name]] for name in names if words[name] in given}}


def _average(
    id: str,
    gradient: Any,
    y: Any,
    *,
    window: Sequence[int],
    dtype: Any = np.float32,
    include_padding: bool = False,
    layouts: Sequence[Any] = (None, None),
    **given: Any,
) -> Case:
    """`layouts` are the strides of the tensors."""
    arrays = np.array(gradient, dtype), np.array(y, dtype)
    desc = DML_AVERAGE_POOLING_GRAD_OPERATOR_DESC(
        InputGradientTensor=tensor_of(arrays[0], layouts[0]),
        OutputGradientTensor=tensor_of(arrays[1], layouts[1]),
        **_numbers(window, given, "Strides", "StartPadding", "EndPadding"),
        IncludePadding=include_padding,
    )
    return Case(f"average-pooling-grad-{id}", desc, [arrays[0]], [arrays[1]])


def _max(
    id: str,
    x: Any,
    gradient: Any,
    y: Any,
    *,
    window: Sequence[int],
    dtype: Any = np.float32,
    layouts: Sequence[Any] = (None, None, None),
    **given: Any,
) -> Case:
    arrays = np.array(x, dtype), np.array(gradient, dtype), np.array(y, dtype)
    names = "InputTensor", "InputGradientTensor", "OutputGradientTensor"
    tensors = (tensor_of(array, layout) for array, layout in zip(arrays, layouts, strict=True))
    desc = DML_MAX_POOLING_GRAD_OPERATOR_DESC(
        **dict(zip(names, tensors, strict=True)),
        **_numbers(window, given, "Strides", "StartPadding", "EndPadding", "Dilations"),
    )
    return Case(f"max-pooling-grad-{id}", desc, list(arrays[:2]), [arrays[2]])


def _places(sizes: Sequence[int], window: Sequence[int], given: dict[str, Any]) -> list[int]:
    ones, nothing = [1] * len(window), [0] * len(window)
    start, end = given.get("start", nothing), given.get("end", nothing)
    steps = zip(sizes[2:], start, end, window, given.get("dilations", ones), given.get("strides", ones), strict=True)
    return [(size + a + b - (k - 1) * d - 1) // s + 1 for size, a, b, k, d, s in steps]


def _drawn_average(
    id: str, sizes: Sequence[int], window: Sequence[int], *, dtype: Any = np.float32, **options: Any
) -> Case:
    """Of multiples of what is divided by, so that all is exact: window by window, and tap by tap."""
    places = _places(sizes, window, options)
    n = len(window)
    strides, start = options.get("strides", [1] * n), options.get("start", [0] * n)
    end = options.get("end", [0] * n)
    gradient, y = np.zeros((*sizes[:2], *places)), np.zeros(sizes)
    numbers = np.arange(1, np.prod(sizes[:2]) + 1).reshape(sizes[:2])
    for place in product(*map(range, places)):
        taps = [
            [o * s - a + k for k in range(taps)] for o, s, a, taps in zip(place, strides, start, window, strict=True)
        ]
        inside = [[e for e in each if 0 <= e < size] for each, size in zip(taps, sizes[2:], strict=True)]
        padded = [[e for e in each if e < size + b] for each, size, b in zip(taps, sizes[2:], end, strict=True)]
        count = np.prod([len(each) for each in (padded if options.get("include_padding") else inside)])
        share = numbers * (sum(place) % 3 + 1)
        gradient[:, :, *place] = share * count
        for element in product(*inside):
            y[:, :, *element] += share
    return _average(id, gradient, y, window=window, dtype=dtype, **options)


def _drawn_max(
    id: str, sizes: Sequence[int], window: Sequence[int], *, dtype: Any = np.float32, **options: Any
) -> Case:
    """Of small whole numbers with many ties: window by window, and tap by tap."""
    places = _places(sizes, window, options)
    rng = np.random.default_rng(len(id))
    x = rng.integers(0, 5, sizes)
    gradient, y = rng.integers(-8, 9, (*sizes[:2], *places)), np.zeros(sizes)
    strides, start = options.get("strides", [1, 1]), options.get("start", [0, 0])
    dilations = options.get("dilations", [1, 1])
    for n, c, *place in product(*map(range, gradient.shape)):
        taps = [
            [e for k in range(taps) if 0 <= (e := o * s - a + k * d) < size]
            for o, s, a, d, taps, size in zip(place, strides, start, dilations, window, sizes[2:], strict=True)
        ]
        if all(taps):
            best = max(product(*taps), key=lambda element: x[n, c, *element])
            y[n, c, *best] += gradient[n, c, *place]
    return _max(id, x, gradient, y, window=window, dtype=dtype, **options)


_SQUARE = [[[[1, 2, 3], [2, 4, 2], [5, 6, 7]]]]
_PADDED: dict[str, Any] = {"window": [1, 2], "start": [0, 1], "end": [0, 1]}
INF, NAN = np.inf, np.nan

CASES = [
    *(
        _average(
            f"page-{np.dtype(dtype).name}",
            [[[[1, 2], [3, 4]]]],
            [[[[0.25, 0.75, 0.5], [1, 2.5, 1.5], [0.75, 1.75, 1]]]],
            window=[2, 2],
            dtype=dtype,
        )
        for dtype in (np.float32, np.float16)
    ),
    *(
        _max(
            f"page-{np.dtype(dtype).name}",
            _SQUARE,
            [[[[1, 2], [4, 5]]]],
            [[[[0, 0, 0], [0, 3, 0], [0, 4, 5]]]],
            window=[2, 2],
            dtype=dtype,
        )
        for dtype in (np.float32, np.float16)
    ),
    _average("padding", [[[[1, 2, 4]]]], [[[[2, 5]]]], **_PADDED),
    _average("padding-included", [[[[1, 2, 4]]]], [[[[1.5, 3]]]], include_padding=True, **_PADDED),
    _average("padding-alone", [[[[8, 6, 4, 2]]]], [[[[6]]]], window=[1, 1], start=[0, 1], end=[0, 2]),
    _average("stride", [[[[2, 4]]]], [[[[1, 1, 2, 2, 0]]]], window=[1, 2], strides=[1, 2]),
    _average(
        "stride-rounded-up", [[[[2, 4, 5]]]], [[[[1, 1, 2, 2, 5]]]], window=[1, 2], strides=[1, 2], include_padding=True
    ),
    _average("window-beyond", [[[[3, 9]]]], [[[[3, 0, 0]]]], window=[1, 1], strides=[1, 7]),
    _average("gaps", [[[[3, 9]]]], [[[[3, 0, 0, 9, 0]]]], window=[1, 1], strides=[1, 3]),
    _average("three-dimensions", [[[[[8]]]]], np.ones((1, 1, 2, 2, 2)), window=[2, 2, 2]),
    _average("global", [[[[6]], [[9]]]], [[[[2, 2, 2]], [[3, 3, 3]]]], window=[1, 3]),
    _average("specials", [[[[INF, -INF, NAN]]]], [[[[INF, NAN, NAN, NAN]]]], window=[1, 2]),
    _average(
        "huge-padding",
        [[[[2**31]]]],
        [[[[1]]]],
        window=[1, 2**31],
        start=[0, 2**30],
        end=[0, 2**30 - 1],
        include_padding=True,
    ),
    # In the type itself 1 would be lost beside the number before it.
    _average(
        "float32-held-wide",
        [[[[3 * 2.0**24, 3, -3 * 2.0**24]]]],
        [[[[2.0**24, 2.0**24, 1, 1 - 2.0**24, -(2.0**24)]]]],
        window=[1, 3],
    ),
    _average(
        "float16-held-wide",
        [[[[6144, 3, -6144]]]],
        [[[[2048, 2048, 1, -2047, -2048]]]],
        window=[1, 3],
        dtype=np.float16,
    ),
    _average(
        "float16-overflows",
        [[[[65504, 65504, 65504]]]],
        [[[[32752, 65504, 65504, 32752]]]],
        window=[1, 2],
        dtype=np.float16,
    ),
    _average(
        "strided",
        [[[[1, 2], [3, 4]]]],
        [[[[0.25, 0.75, 0.5], [1, 2.5, 1.5], [0.75, 1.75, 1]]]],
        window=[2, 2],
        layouts=[(4, 4, 1, 2), (40, 40, 3, 13)],
    ),
    _average(
        "broadcast",
        np.full((2, 2, 1, 2), 2),
        np.tile([1.0, 2, 1], (2, 2, 1, 1)),
        window=[1, 2],
        layouts=[(0,) * 4, None],
    ),
    _drawn_average("drawn", (2, 3, 5, 6), [3, 2], strides=[2, 1], start=[1, 0], end=[1, 1]),
    _drawn_average(
        "drawn-with-padding", (2, 3, 5, 6), [3, 2], strides=[2, 1], start=[1, 0], end=[1, 1], include_padding=True
    ),
    _drawn_average("drawn-three-dimensions", (1, 2, 3, 4, 5), [2, 3, 2], start=[1, 1, 0], end=[0, 1, 1]),
    _drawn_average("drawn-strides-wide", (1, 2, 7, 9), [2, 2], strides=[3, 4], dtype=np.float16),
    _drawn_average("channels-last", (2, 9, 4, 5), [2, 3], layouts=[(108, 1, 27, 9), (180, 1, 45, 9)]),
    _drawn_average("long-rows", (1, 1, 2, 1500), [1, 3], strides=[1, 2]),
    _drawn_average("large", (1, 8, 40, 50), [3, 3], start=[1, 1], end=[1, 1]),
    _drawn_average("tiles", (1, 1, 80, 500), [4, 2], strides=[3, 2]),
    _drawn_average("whole", (2, 3, 5, 7), [5, 7]),
    # Of equal maxima the first in memory: in row 0 though row 1 has one further left
    _max("ties", [[[[1, 9], [9, 9]]]], [[[[7]]]], [[[[0, 7], [0, 0]]]], window=[2, 2]),
    _max("ties-of-zeros", [[[[-1, -0.0, 0.0]]]], [[[[3]]]], [[[[0, 3, 0]]]], window=[1, 3]),
    _max("padding", [[[[-5, -7]]]], [[[[1, 2, 4]]]], [[[[3, 4]]]], **_PADDED),
    _max("padding-alone", [[[[-5]]]], [[[[8, 6, 4, 2]]]], [[[[6]]]], window=[1, 1], start=[0, 1], end=[0, 2]),
    _max("infinities", [[[[-INF, -INF, INF]]]], [[[[1, 2]]]], [[[[1, 0, 2]]]], window=[1, 2]),
    _max("nan", [[[[NAN, -INF, NAN, NAN, 3]]]], [[[[1, 2, 4, 8]]]], [[[[0, 3, 4, 0, 8]]]], window=[1, 2]),
    _max("nan-in-rows", [[[[NAN, NAN], [NAN, 2]]]], [[[[5]]]], [[[[0, 0], [0, 5]]]], window=[2, 2]),
    # Of elements among which none is larger the first that there is, be it not under the first tap.
    *(
        _max(
            f"{name}-alone",
            np.full((1, 1, 3, 3), number),
            np.ones((1, 1, 3, 3)),
            [[[[4, 2, 0], [2, 1, 0], [0, 0, 0]]]],
            window=[3, 3],
            start=[1, 1],
            end=[1, 1],
        )
        for name, number in (("nan", NAN), ("lowest", -INF), ("equal", 7))
    ),
    _max("gradients-that-are-none", [[[[1, 3, 2]]]], [[[[NAN, INF]]]], [[[[0, NAN, 0]]]], window=[1, 2]),
    _max("stride", [[[[1, 2, 3, 4, 5]]]], [[[[1, 2]]]], [[[[0, 1, 0, 2, 0]]]], window=[1, 2], strides=[1, 2]),
    _max(
        "stride-rounded-up",
        [[[[1, 2, 3, 4, 5]]]],
        [[[[1, 2, 4]]]],
        [[[[0, 1, 0, 2, 4]]]],
        window=[1, 2],
        strides=[1, 2],
    ),
    _max("window-beyond", [[[[1, 2]]]], [[[[1, 4]]]], [[[[1, 0]]]], window=[1, 1], strides=[1, 7]),
    _max("dilation", [[[[1, 9, 2, 3, 4]]]], [[[[1, 2, 4]]]], [[[[0, 2, 1, 0, 4]]]], window=[1, 2], dilations=[1, 2]),
    _max("huge-padding", [[[[7]]]], [[[[2]]]], [[[[2]]]], window=[1, 2**31], start=[0, 2**30], end=[0, 2**30 - 1]),
    _max(
        "float32-held-wide", [[[[1, 2, 9, 2, 1]]]], [[[[2.0**24, 1, -(2.0**24)]]]], [[[[0, 0, 1, 0, 0]]]], window=[1, 3]
    ),
    _max(
        "float16-overflow-that-goes",
        [[[[1, 2, 9, 2, 1]]]],
        [[[[65504, 65504, -65504]]]],
        [[[[0, 0, 65504, 0, 0]]]],
        window=[1, 3],
        dtype=np.float16,
    ),
    _max(
        "whole-input",
        [[[[1, 2]], [[4, 3]]], [[[5, 6]], [[8, 7]]]],
        [[[[1]], [[2]]], [[[3]], [[4]]]],
        [[[[0, 1]], [[2, 0]]], [[[0, 3]], [[4, 0]]]],
        window=[1, 2],
    ),
    _max(
        "strided",
        _SQUARE,
        [[[[1, 2], [4, 5]]]],
        [[[[0, 0, 0], [0, 3, 0], [0, 4, 5]]]],
        window=[2, 2],
        layouts=[(9, 9, 1, 3), (4, 4, 1, 2), (40, 40, 3, 13)],
    ),
    _max(
        "broadcast",
        np.full((1, 1, 2, 3), 4),
        [[[[2, 2]]]],
        [[[[2, 2, 0], [0, 0, 0]]]],
        window=[2, 2],
        layouts=[(0,) * 4, (0,) * 4, None],
    ),
    _drawn_max("drawn", (2, 3, 5, 6), [3, 2], strides=[2, 1], start=[1, 0], end=[1, 1]),
    _drawn_max("drawn-dilated", (2, 3, 7, 8), [3, 2], dilations=[2, 3], start=[1, 2], end=[2, 1], dtype=np.float16),
    _drawn_max("dilated-down", (2, 3, 8, 7), [3, 2], strides=[1, 2], dilations=[2, 1], start=[3, 1], end=[2, 1]),
    _drawn_max("dilated-across", (2, 3, 7, 8), [3, 2], strides=[2, 1], dilations=[1, 3], start=[1, 2], end=[1, 3]),
    _drawn_max("dilated-and-apart", (1, 2, 9, 9), [2, 3], strides=[3, 2], dilations=[2, 3], start=[2, 3], end=[1, 2]),
    # Elements lie between taps alone.
    _drawn_max("between-taps", (1, 1, 2, 2), [2, 2], dilations=[3, 3], start=[1, 1], end=[1, 1]),
    _drawn_max("between-taps-across", (1, 1, 3, 2), [2, 2], dilations=[1, 3], start=[0, 1], end=[0, 1]),
    _drawn_max("drawn-apart", (2, 3, 7, 9), [2, 2], strides=[3, 4]),
    _drawn_max("side-by-side", (2, 3, 8, 9), [2, 3], strides=[2, 3]),
    _drawn_max("apart-and-padded", (1, 3, 8, 9), [2, 3], strides=[2, 3], start=[1, 2], end=[1, 1]),
    _drawn_max("channels-last", (2, 9, 4, 5), [2, 3], layouts=[(180, 1, 45, 9), (108, 1, 27, 9), (180, 1, 45, 9)]),
    _drawn_max("long-rows", (1, 1, 2, 1500), [2, 3], strides=[1, 2]),
    _drawn_max("large", (1, 8, 40, 50), [3, 3], start=[1, 1], end=[1, 1]),
    _drawn_max("tiles", (1, 1, 80, 500), [4, 2], strides=[3, 2]),
    _drawn_max("large-windows", (1, 2, 22, 26), [18, 20], start=[9, 9], end=[9, 9]),
    # Of as many taps as bytes can number, and of one more; some lie on padding alone, or have an element in a corner.
    *(_drawn_max(f"taps-{h * w}", (1, 1, 3, 4), [h, w], start=[h, w], end=[h, w]) for h, w in ((15, 17), (16, 16))),
]


def _averages(**members: Any) -> DML_AVERAGE_POOLING_GRAD_OPERATOR_DESC:
    """A window of 2 by 2 over {1, 3, 4, 5}."""
    right = {
        "InputGradientTensor": tensor((1, 3, 3, 4)),
        "OutputGradientTensor": tensor((1, 3, 4, 5)),
        "WindowSize": (2, 2),
        "Strides": (1, 1),
        "StartPadding": (0, 0),
        "EndPadding": (0, 0),
    }
    return DML_AVERAGE_POOLING_GRAD_OPERATOR_DESC(**{**right, **members})


def _maxima(**members: Any) -> DML_MAX_POOLING_GRAD_OPERATOR_DESC:
    right = {
        "InputTensor": tensor((1, 3, 4, 5)),
        "InputGradientTensor": tensor((1, 3, 3, 4)),
        "OutputGradientTensor": tensor((1, 3, 4, 5)),
        "WindowSize": (2, 2),
        "Strides": (1, 1),
        "StartPadding": (0, 0),
        "EndPadding": (0, 0),
        "Dilations": (1, 1),
    }
    return DML_MAX_POOLING_GRAD_OPERATOR_DESC(**{**right, **members})


RIGHT = [_averages(), _maxima()]
_THREE = dict.fromkeys(("WindowSize", "Strides", "StartPadding", "EndPadding"), (1, 1, 1))
NEGATIVES = [
    Negative(
        "(C2)",
        _averages(OutputGradientTensor=tensor((1, 3, 4, 5, 1))),
        "OutputGradientTensor.DimensionCount",
        "5",
        "4, that of InputG",
    ),
    *(
        negative
        for make, rules, other in (
            (_averages, ("(C3)", "(C4)", "(C5)", "(C6)"), {}),
            (_maxima, ("(C2)", "(C3)", "(C4)", "(C5)"), {"Dilations": (1, 1, 1)}),
        )
        for negative in (
            Negative(
                "(C1)",
                make(OutputGradientTensor=tensor((1, 3, 4, 5), "FLOAT16")),
                "OutputGradientTensor.DataType",
                "FLOAT16",
                "FLOAT32, that of Input",
            ),
            Negative(rules[0], make(**_THREE, **other), "DimensionCount", "3", "2, 2 less than"),
            Negative(rules[1], make(Strides=(0, 1)), "Strides[0]", "0", "at least 1"),
            Negative(rules[1], make(WindowSize=(2, 0)), "WindowSize[1]", "0", "at least 1"),
            Negative(rules[2], make(WindowSize=(5, 2)), "WindowSize[0]", "5", "an extent of at most 4, the padded"),
            Negative(rules[3], make(WindowSize=(1, 2)), "InputGradientTensor.Sizes[2]", "3", "4"),
            Negative(rules[3], make(Strides=(1, 3)), "InputGradientTensor.Sizes[3]", "4", "2"),
            Negative(
                rules[3], make(InputGradientTensor=tensor((2, 3, 3, 4))), "InputGradientTensor.Sizes[0]", "2", "1"
            ),
        )
    ),
    Negative("(C3)", _maxima(Dilations=(1, 0)), "Dilations[1]", "0", "at least 1"),
    Negative("(C4)", _maxima(Dilations=(4, 1)), "WindowSize[0]", "2, with a dilation of 4 an extent of 5", "at most 4"),
    Negative("(C6)", _maxima(OutputGradientTensor=tensor((1, 3, 4, 6))), "OutputGradientTensor.Sizes[3]", "6", "5"),
]

KERNELS = {"AVERAGE_POOLING_GRAD": "gradients of averages", "MAX_POOLING_GRAD": "gradients of maxima"}


def _one_tap(operator: str, **tensors: Any) -> Any:
    """A window of one tap in each dimension."""
    kind = {"AVERAGE_POOLING_GRAD": _averages, "MAX_POOLING_GRAD": _maxima}[operator]
    spatial = max(0, tensors["InputGradientTensor"][0] - 2)
    ones = dict.fromkeys(("WindowSize", "Strides", *(["Dilations"] if kind is _maxima else [])), (1,) * spatial)
    nothing = dict.fromkeys(("StartPadding", "EndPadding"), (0,) * spatial)
    descs = {name: tensor((1,) * rank, data_type.name) for name, (rank, data_type) in tensors.items()}
    return kind(**descs, **ones, **nothing)


SUPPORT = {
    "AVERAGE_POOLING_GRAD": Support([("3.0", 4, 5, FLOATS)], desc=_one_tap),
    "MAX_POOLING_GRAD": Support([("3.0", 4, 4, FLOATS)], desc=_one_tap),
}
