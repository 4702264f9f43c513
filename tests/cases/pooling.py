"""AVERAGE_POOLING and LP_POOLING: padding, output sizes, what is held in the wider type.
QUANTIZED_LINEAR_AVERAGE_POOLING: ties, saturation, padding, dilation, output sizes, per channel and per tensor.

The pages have no worked example; numbers here are worked by hand from their formulas.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import anydml
from anydml import DML_QUANTIZED_LINEAR_AVERAGE_POOLING_OPERATOR_DESC, TensorDataType
from anydml.operators import spec
from anydml.operators.schema import OperatorDesc
from support_tables import BYTES, FLOATS, Shape, Support, one_tap

from . import Case, Negative, tensor, tensor_of
from .max_pooling import negatives_of_dilations, negatives_of_windows, windowed


def _case(
    id: str,
    x: Any,
    y: Any,
    *,
    window: Sequence[int],
    dtype: Any = np.uint8,
    out_dtype: Any = None,
    input_scale: Any = 1.0,
    input_zero_point: Any = None,
    output_scale: Any = 1.0,
    output_zero_point: Any = None,
    strides: Sequence[int] | None = None,
    start: Sequence[int] | None = None,
    end: Sequence[int] | None = None,
    dilations: Sequence[int] | None = None,
    include_padding: bool = False,
) -> Case:
    """`x` and `y` in as many dimensions as the case has; scales and zero points a number, or one for each channel."""
    x, y = np.array(x, dtype), np.array(y, out_dtype or dtype)
    spatial = len(window)
    ones, zeros = [1] * spatial, [0] * spatial
    strides, dilations, start, end = strides or ones, dilations or ones, start or zeros, end or zeros

    def quantisation(value: Any, kind: Any) -> np.ndarray | None:
        return None if value is None else np.array(value, kind).reshape(1, -1, 1, 1)

    inputs = [
        x,
        quantisation(input_scale, np.float32),
        quantisation(input_zero_point, x.dtype),
        quantisation(output_scale, np.float32),
        quantisation(output_zero_point, y.dtype),
    ]
    tensors = [None if array is None else tensor_of(array) for array in inputs]
    desc = DML_QUANTIZED_LINEAR_AVERAGE_POOLING_OPERATOR_DESC(
        InputTensor=tensors[0],
        InputScaleTensor=tensors[1],
        InputZeroPointTensor=tensors[2],
        OutputScaleTensor=tensors[3],
        OutputZeroPointTensor=tensors[4],
        OutputTensor=tensor_of(y),
        Strides=strides,
        WindowSize=window,
        StartPadding=start,
        EndPadding=end,
        Dilations=dilations,
        IncludePadding=include_padding,
    )
    options = {
        "output_scale": output_scale,
        "output_zero_point": output_zero_point,
        "window_size": window,
        "strides": strides,
        "start_padding": start,
        "end_padding": end,
        "dilations": dilations,
        "include_padding": include_padding,
        "output_sizes": y.shape[2:],
        "output_dtype": y.dtype,
    }
    arguments = [x, input_scale, input_zero_point]
    return Case(f"pooling-{id}", desc, inputs, [y], "quantized_linear_average_pooling", arguments, options)


def _plain(
    id: str,
    x: Any,
    y: Any,
    *,
    window: Sequence[int],
    dtype: Any = np.float32,
    p: int | None = None,
    strides: Sequence[int] | None = None,
    start: Sequence[int] | None = None,
    end: Sequence[int] | None = None,
    dilations: Sequence[int] | None = None,
    include_padding: bool = False,
    layouts: Sequence[Any] = (None, None),
) -> Case:
    """LP_POOLING with a `p`, AVERAGE_POOLING without, or their revisions with dilations; `layouts` are the strides of
    input and output."""
    x, y = np.array(x, dtype), np.array(y, dtype)
    ones, zeros = [1] * len(window), [0] * len(window)
    members: dict[str, Any] = {
        "InputTensor": tensor_of(x, layouts[0]),
        "OutputTensor": tensor_of(y, layouts[1]),
        "WindowSize": window,
        "Strides": strides or ones,
        "StartPadding": start or zeros,
        "EndPadding": end or zeros,
    }
    members |= {"P": p} if p is not None else {"IncludePadding": include_padding}
    members |= {"Dilations": dilations} if dilations else {}
    operator = f"{'AVERAGE' if p is None else 'LP'}_POOLING{'1' if dilations else ''}"
    desc = getattr(anydml, f"DML_{operator}_OPERATOR_DESC")(**members)
    return Case(f"{operator.lower().replace('_', '-')}-{id}", desc, [x], [y])


_SQUARE = [[[[1, 2, 3], [4, 5, 6], [7, 8, 9]]]]
_ROW = [[[[10, 20, 30, 40, 50]]]]

INF, NAN = np.inf, np.nan
_PADDED: dict[str, Any] = {"window": [1, 2], "start": [0, 1], "end": [0, 1]}
_BEYOND: dict[str, Any] = {"window": [1, 2], "strides": [1, 2]}

CASES = [
    *(
        _plain(np.dtype(dtype).name, _SQUARE, [[[[3, 4], [6, 7]]]], window=[2, 2], dtype=dtype)
        for dtype in (np.float32, np.float16)
    ),
    _plain("padding", [[[[6, 9]]]], [[[[6, 7.5, 9]]]], **_PADDED),
    _plain("padding-included", [[[[6, 9]]]], [[[[3, 7.5, 4.5]]]], include_padding=True, **_PADDED),
    _plain("padding-alone", [[[[6]]]], [[[[0, 6, 0, 0]]]], window=[1, 1], start=[0, 1], end=[0, 2]),
    _plain(
        "padding-both-ways",
        [[[[4]]]],
        [[[[1, 1], [1, 1]]]],
        window=[2, 2],
        start=[1, 1],
        end=[1, 1],
        include_padding=True,
    ),
    _plain("stride", _ROW, [[[[15, 35]]]], **_BEYOND),
    # Rounded up, the second tap of the last window is beyond the padded extent, and never counted.
    _plain("stride-rounded-up", _ROW, [[[[15, 35, 50]]]], include_padding=True, **_BEYOND),
    _plain("window-beyond", _ROW, [[[[10, 0]]]], window=[1, 1], strides=[1, 7]),
    _plain("three-dimensions", np.arange(8).reshape(1, 1, 2, 2, 2), [[[[[3.5]]]]], window=[2, 2, 2]),
    _plain("global", np.arange(12).reshape(2, 2, 1, 3), [[[[1]], [[4]]], [[[7]], [[10]]]], window=[1, 3]),
    _plain("specials", [[[[INF, 1, -INF, INF, NAN]]]], [[[[INF, -INF, NAN, NAN]]]], window=[1, 2]),
    _plain("float16-held-wide", [[[[60000, 60000, -60000]]]], [[[[60000, 0]]]], window=[1, 2], dtype=np.float16),
    _plain("float32-held-wide", [[[[3e38, 3e38, -3e38]]]], [[[[3e38, 0]]]], window=[1, 2]),
    _plain(
        "huge-padding",
        [[[[2**31]]]],
        [[[[1]]]],
        window=[1, 2**31],
        start=[0, 2**30],
        end=[0, 2**30 - 1],
        include_padding=True,
    ),
    _plain("strided", _SQUARE, [[[[3, 4], [6, 7]]]], window=[2, 2], layouts=[(9, 9, 1, 3), (20, 20, 2, 7)]),
    _plain("broadcast", np.full((1, 3, 2, 2), 5), np.full((1, 3, 1, 1), 5), window=[2, 2], layouts=[(0,) * 4, None]),
    *(
        _plain(np.dtype(dtype).name, [[[[3, -4, 0, 12]]]], [[[[5, 4, 12]]]], window=[1, 2], dtype=dtype, p=2)
        for dtype in (np.float32, np.float16)
    ),
    _plain("sum-of-absolute-values", [[[[3, -4, 0, 12]]]], [[[[7, 4, 12]]]], window=[1, 2], p=1),
    # 3^3 + 4^3 + 5^3 = 6^3, whatever the signs
    _plain("cubes", [[[[3, -4], [-5, 0]]]], [[[[6]]]], window=[2, 2], p=3),
    _plain("padding", [[[[-3, 4]]]], [[[[3, 5, 4, 0]]]], window=[1, 2], start=[0, 1], end=[0, 2], p=2),
    _plain("stride-rounded-up", [[[[3, 4, -7]]]], [[[[5, 7]]]], p=2, **_BEYOND),
    _plain("three-dimensions", np.ones((1, 1, 2, 2, 4)), [[[[[4]]]]], window=[2, 2, 4], p=2),
    _plain("specials", [[[[-INF, 1, NAN]]]], [[[[INF, NAN]]]], window=[1, 2], p=3),
    _plain("held-wide", [[[[3e30, 4e30]]]], [[[[5e30]]]], window=[1, 2], p=2),
    _plain("float16-held-wide", [[[[300, 400]]]], [[[[500]]]], window=[1, 2], dtype=np.float16, p=2),
    _plain(
        "strided",
        _SQUARE,
        [[[[3, 5], [15, 17]]]],
        window=[1, 2],
        p=1,
        strides=[2, 1],
        layouts=[(9, 9, 3, 1), (20, 20, 2, 7)],
    ),
    *(
        _plain(f"dilation-{np.dtype(dtype).name}", _ROW, y, window=[1, 2], dilations=[1, 2], dtype=dtype, p=p)
        for dtype in (np.float32, np.float16)
        for p, y in ((None, [[[[20, 30, 40]]]]), (1, [[[[40, 60, 80]]]]))
    ),
    _plain("dilations-of-1", _SQUARE, [[[[3, 4], [6, 7]]]], window=[2, 2], dilations=[1, 1]),
    _plain("dilations-of-1", [[[[3, -4, 0, 12]]]], [[[[5, 4, 12]]]], window=[1, 2], dilations=[1, 1], p=2),
    _plain("dilation-both-ways", _SQUARE, [[[[5]]]], window=[2, 2], dilations=[2, 2]),
    _plain("dilation-both-ways", _SQUARE, [[[[20]]]], window=[2, 2], dilations=[2, 2], p=1),
    _plain("dilated-padding", [[[[6, 9]]]], [[[[9, 6, 9]]]], window=[1, 2], dilations=[1, 2], start=[0, 1], end=[0, 2]),
    _plain(
        "dilated-padding-included",
        [[[[6, 9]]]],
        [[[[4.5, 3, 4.5]]]],
        window=[1, 2],
        dilations=[1, 2],
        start=[0, 1],
        end=[0, 2],
        include_padding=True,
    ),
    _plain(
        "dilated-padding",
        [[[[-6, 9]]]],
        [[[[9, 6, 9]]]],
        window=[1, 2],
        dilations=[1, 2],
        start=[0, 1],
        end=[0, 2],
        p=2,
    ),
    # Rounded up, the second tap of the last window is beyond the padded extent.
    _plain("dilated-channels", [[[[6, 9, 2]], [[1, 5, 3]]]] * 2, [[[[4]], [[2]]]] * 2, window=[1, 2], dilations=[1, 2]),
    _plain(
        "dilated-channels", [[[[6, 9, 2]], [[1, 5, 3]]]] * 2, [[[[8]], [[4]]]] * 2, window=[1, 2], dilations=[1, 2], p=1
    ),
    _plain("dilated-stride-rounded-up", _ROW, [[[[20, 40]]]], window=[1, 2], strides=[1, 2], dilations=[1, 2]),
    _plain(
        "dilated-rounded-up",
        _ROW,
        [[[[25, 40]]]],
        window=[1, 2],
        strides=[1, 3],
        dilations=[1, 3],
        include_padding=True,
    ),
    _plain(
        "dilated-three-dimensions",
        np.arange(27).reshape(1, 1, 3, 3, 3),
        [[[[[13]]]]],
        window=[2] * 3,
        dilations=[2] * 3,
    ),
    _plain(
        "dilated-and-strided",
        _SQUARE,
        [[[[8, 10, 12]]]],
        window=[2, 1],
        p=1,
        dilations=[2, 1],
        layouts=[(9, 9, 1, 3), (20, 20, 2, 7)],
    ),
    _plain("huge-dilation", [[[[4, 2]]]], [[[[4, 2]]]], window=[1, 2], dilations=[1, 2**31], end=[0, 2**31]),
    _plain("sixth-powers", [[[[1, -1, 2, 0]]]], [[[[2 ** (1 / 6), 65 ** (1 / 6), 2]]]], window=[1, 2], p=6),
    _plain("large-powers", [[[[0.5, -3, 2, 0]]]], [[[[3, 3, 2]]]], window=[1, 2], p=100),
    _case("average", _SQUARE, [[[[3, 4], [6, 7]]]], window=[2, 2]),
    _case("int8", [[[[-1, -2], [-3, -6]]]], [[[[-3]]]], window=[2, 2], dtype=np.int8),
    # (5 - 3) * 0.5 = 1 and so on: the average of 1, 2, 3, 4 is 2.5; 2.5 / 0.25 + 7 = 17
    _case(
        "dequantise-and-quantise",
        [[[[5, 7], [9, 11]]]],
        [[[[17]]]],
        window=[2, 2],
        input_scale=0.5,
        input_zero_point=3,
        output_scale=0.25,
        output_zero_point=7,
    ),
    # Halves round to even before the zero point is added: 0.5 -> 0, 1.5 -> 2, -0.5 -> 0, -1.5 -> -2
    _case("ties", [[[[0, 1, 2, 1]]]], [[[[0, 2, 2]]]], window=[1, 2]),
    _case("ties-zero-point", [[[[0, 1, 2]]]], [[[[1, 3]]]], window=[1, 2], output_zero_point=1),
    _case("ties-negative", [[[[0, -1, -2]]]], [[[[5, 3]]]], window=[1, 2], dtype=np.int8, output_zero_point=5),
    _case("saturates-high", [[[[200]]]], [[[[255]]]], window=[1, 1], input_scale=2.0),
    _case("saturates-low", [[[[3]]]], [[[[0]]]], window=[1, 1], input_zero_point=9),
    _case("saturates-int8", [[[[-100, 100]]]], [[[[-128, 127]]]], window=[1, 1], dtype=np.int8, input_scale=4.0),
    _case("saturates-far", [[[[255]]]], [[[[255]]]], window=[1, 1], input_scale=3e38, output_scale=1e-45),
    _case(
        "uint8-to-int8",
        [[[[0, 128, 255]]]],
        [[[[-128, 0, 127]]]],
        window=[1, 1],
        out_dtype=np.int8,
        output_zero_point=-128,
    ),
    _case(
        "int8-to-uint8",
        [[[[-128, 0, 127]]]],
        [[[[0, 128, 255]]]],
        window=[1, 1],
        dtype=np.int8,
        out_dtype=np.uint8,
        output_zero_point=128,
    ),
    _case("stride", _ROW, [[[[15, 35]]]], window=[1, 2], strides=[1, 2]),
    # Rounded up, the last window's second tap is beyond the padded extent and never counts.
    _case("stride-rounded-up", _ROW, [[[[15, 35, 50]]]], window=[1, 2], strides=[1, 2], include_padding=True),
    # Rounded up so far that the last window is wholly beyond: the output zero point.
    _case("window-beyond", _ROW, [[[[14, 4]]]], window=[1, 1], strides=[1, 7], output_zero_point=4),
    _case("dilation", _ROW, [[[[20, 30, 40]]]], window=[1, 2], dilations=[1, 2]),
    _case("padding", [[[[6, 9]]]], [[[[6, 8, 9]]]], window=[1, 2], start=[0, 1], end=[0, 1]),
    _case(
        "padding-included", [[[[6, 9]]]], [[[[3, 8, 4]]]], window=[1, 2], start=[0, 1], end=[0, 1], include_padding=True
    ),
    # Padding is the real number 0, not the raw one: (6 - 4) / 2 + 0 = 1
    _case(
        "padding-is-real-zero",
        [[[[6]]]],
        [[[[1, 1]]]],
        window=[1, 2],
        start=[0, 1],
        end=[0, 1],
        input_zero_point=4,
        include_padding=True,
    ),
    _case(
        "only-padding", [[[[6]]]], [[[[9, 9, 15, 9, 9]]]], window=[1, 1], start=[0, 2], end=[0, 2], output_zero_point=9
    ),
    _case("start-padding-only", [[[[6, 9]]]], [[[[6, 8]]]], window=[1, 3], start=[0, 2]),
    _case(
        "per-channel",
        [[[[4]], [[4]]], [[[8]], [[8]]]],
        [[[[3]], [[17]]], [[[7]], [[25]]]],
        window=[1, 1],
        input_scale=[1.0, 2.0],
        input_zero_point=[1, 0],
        output_scale=1.0,
        output_zero_point=[0, 9],
    ),
    _case(
        "per-channel-output-scale",
        [[[[4]], [[4]]]],
        [[[[8]], [[2]]]],
        window=[1, 1],
        output_scale=[0.5, 2.0],
    ),
    _case("three-dimensions", np.arange(8).reshape(1, 1, 2, 2, 2), [[[[[4]]]]], window=[2, 2, 2]),
    _case(
        "three-dimensions-per-channel",
        np.arange(16).reshape(1, 2, 2, 2, 2),
        [[[[[2]]], [[[23]]]]],
        window=[2, 2, 2],
        input_scale=[0.5, 2.0],
    ),
    _case("global", np.full((2, 3, 7, 5), 77), np.full((2, 3, 1, 1), 77), window=[7, 5]),
    _case("window-in-padding", [[[[100]]]], [[[[100]]]], window=[1, 101], start=[0, 50], end=[0, 50]),
    _case("huge-padding", [[[[100]]]], [[[[100]]]], window=[1, 2**31], start=[0, 2**30], end=[0, 2**30 - 1]),
    _case("huge-dilation", [[[[100, 50]]]], [[[[100, 50]]]], window=[1, 2], end=[0, 2**31], dilations=[1, 2**31]),
]


def pooling(**members: Any) -> OperatorDesc:
    """A window of 2 by 2 over {1, 3, 4, 5}."""
    right = {
        "InputTensor": tensor((1, 3, 4, 5), "UINT8"),
        "InputScaleTensor": tensor((1, 1, 1, 1)),
        "InputZeroPointTensor": tensor((1, 3, 1, 1), "UINT8"),
        "OutputScaleTensor": tensor((1, 1, 1, 1)),
        "OutputZeroPointTensor": tensor((1, 1, 1, 1), "UINT8"),
        "OutputTensor": tensor((1, 3, 3, 4), "UINT8"),
        "Strides": (1, 1),
        "WindowSize": (2, 2),
        "StartPadding": (0, 0),
        "EndPadding": (0, 0),
        "Dilations": (1, 1),
    }
    return DML_QUANTIZED_LINEAR_AVERAGE_POOLING_OPERATOR_DESC(**{**right, **members})


_FLOAT = "AVERAGE_POOLING", "LP_POOLING", "AVERAGE_POOLING1", "LP_POOLING1"
RIGHT = [pooling(), *(windowed(operator) for operator in _FLOAT)]
NEGATIVES = [
    *(negative for operator in _FLOAT for negative in negatives_of_windows(operator)),
    *(Negative("(C7)", windowed(operator, P=0), "P", "0", "at least 1") for operator in ("LP_POOLING", "LP_POOLING1")),
    *(negative for operator in ("AVERAGE_POOLING1", "LP_POOLING1") for negative in negatives_of_dilations(operator)),
    Negative(
        "(C1)",
        pooling(OutputTensor=tensor((1, 3, 3, 4, 1), "UINT8")),
        "OutputTensor.DimensionCount",
        "5",
        "4, that of InputTensor",
    ),
    Negative(
        "(C2)",
        pooling(InputZeroPointTensor=tensor((1,) * 4, "INT8")),
        "InputZeroPointTensor.DataType",
        "INT8",
        "UINT8, that of Input",
    ),
    Negative(
        "(C3)",
        pooling(OutputZeroPointTensor=tensor((1,) * 4, "INT8")),
        "OutputZeroPointTensor.DataType",
        "INT8",
        "UINT8, that of O",
    ),
    Negative(
        "(C4)",
        pooling(
            **dict.fromkeys(("Strides", "WindowSize", "Dilations"), (1,) * 3),
            StartPadding=(0,) * 3,
            EndPadding=(0,) * 3,
        ),
        "DimensionCount",
        "3",
        "2, 2 less than",
    ),
    Negative("(C5)", pooling(Strides=(1, 0)), "Strides[1]", "0", "at least 1"),
    Negative("(C5)", pooling(WindowSize=(0, 2)), "WindowSize[0]", "0", "at least 1"),
    Negative("(C5)", pooling(Dilations=(0, 1)), "Dilations[0]", "0", "at least 1"),
    Negative(
        "(C6)",
        pooling(OutputScaleTensor=tensor((3,))),
        "OutputScaleTensor.Sizes",
        "{3}",
        "{1, 1, 1, 1} or {1, 3, 1, 1}",
    ),
    Negative("(C7)", pooling(WindowSize=(5, 2)), "WindowSize[0]", "5", "at most 4, the padded size"),
    Negative("(C7)", pooling(Dilations=(1, 5)), "WindowSize[1]", "an extent of 6", "at most 5"),
    Negative("(C8)", pooling(OutputTensor=tensor((1, 3, 4, 4), "UINT8")), "OutputTensor.Sizes[2]", "4", "3"),
    Negative("(C8)", pooling(OutputTensor=tensor((2, 3, 3, 4), "UINT8")), "OutputTensor.Sizes[0]", "2", "1"),
]


def _others(operator: str, tensor: str, shape: Shape) -> Mapping[str, Shape]:
    """Zero points have the type of what they are for."""
    byte, real = TensorDataType.INT8, TensorDataType.FLOAT32
    others = {name: (4, real if "Scale" in name else byte) for name in spec(operator).tensors}
    count, data_type = shape
    if tensor in ("InputTensor", "OutputTensor"):
        others["InputTensor"] = others["OutputTensor"] = (count, byte)
    for side in ("Input", "Output"):
        if tensor in (f"{side}Tensor", f"{side}ZeroPointTensor"):
            others[f"{side}Tensor"] = (others[f"{side}Tensor"][0], data_type)
            others[f"{side}ZeroPointTensor"] = (4, data_type)
    return {**others, tensor: shape}


SUPPORT = {
    "AVERAGE_POOLING": Support([("1.0", 4, 5, FLOATS)], desc=one_tap),
    "AVERAGE_POOLING1": Support([("6.2", 4, 5, FLOATS)], desc=one_tap),
    "LP_POOLING": Support([("1.0", 4, 5, FLOATS)], desc=one_tap),
    "LP_POOLING1": Support([("6.2", 4, 5, FLOATS)], desc=one_tap),
    "QUANTIZED_LINEAR_AVERAGE_POOLING": Support(
        {
            "InputTensor": [("6.2", 4, 5, BYTES)],
            "InputScaleTensor": [("6.2", 1, 5, "FLOAT32")],
            "InputZeroPointTensor": [("6.2", 1, 5, BYTES)],
            "OutputScaleTensor": [("6.2", 1, 5, "FLOAT32")],
            "OutputZeroPointTensor": [("6.2", 1, 5, BYTES)],
            "OutputTensor": [("6.2", 4, 5, BYTES)],
        },
        desc=one_tap,
        others=_others,
    ),
}

KERNELS = {
    **dict.fromkeys(("AVERAGE_POOLING", "AVERAGE_POOLING1"), "averages"),
    **dict.fromkeys(("LP_POOLING", "LP_POOLING1"), "norms"),
    "QUANTIZED_LINEAR_AVERAGE_POOLING": "average pooling ",
}
