"""CONVOLUTION: both directions and modes, groups, paddings of three kinds. Numbers are worked by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from anydml import DML_CONVOLUTION_OPERATOR_DESC, DML_ELEMENT_WISE_CLIP_OPERATOR_DESC
from anydml.core.enums import ConvolutionDirection, ConvolutionMode
from anydml.operators.schema import OperatorDesc
from support_tables import FLOATS, Support, one_tap

from . import Case, Negative, tensor, tensor_of

INF, NAN = np.inf, np.nan
BACKWARD, TURNED = ConvolutionDirection.BACKWARD, ConvolutionMode.CONVOLUTION


def _case(
    id: str,
    x: Any,
    w: Any,
    y: Any,
    bias: Sequence[float] | None = None,
    *,
    dtype: Any = np.float32,
    mode: ConvolutionMode = ConvolutionMode.CROSS_CORRELATION,
    direction: ConvolutionDirection = ConvolutionDirection.FORWARD,
    strides: Sequence[int] | None = None,
    dilations: Sequence[int] | None = None,
    start: Sequence[int] | None = None,
    end: Sequence[int] | None = None,
    output: Sequence[int] | None = None,
    groups: int = 1,
    activation: Any = None,
    layouts: Any = None,
) -> Case:
    """`layouts` are the strides of tensors by their names."""
    x, w, y = (np.array(each, dtype) for each in (x, w, y))
    spatial = x.ndim - 2
    ones, zeros = [1] * spatial, [0] * spatial
    arrays = {
        "InputTensor": x,
        "FilterTensor": w,
        "BiasTensor": None if bias is None else np.array(bias, dtype).reshape(1, -1, *ones),
        "OutputTensor": y,
    }
    desc = DML_CONVOLUTION_OPERATOR_DESC(
        **{name: None if z is None else tensor_of(z, (layouts or {}).get(name)) for name, z in arrays.items()},
        Mode=mode,
        Direction=direction,
        Strides=strides or ones,
        Dilations=dilations or ones,
        StartPadding=start or zeros,
        EndPadding=end or zeros,
        OutputPadding=output or zeros,
        GroupCount=groups,
        FusedActivation=activation,
    )
    *inputs, result = arrays.values()
    return Case(f"convolution-{id}", desc, inputs, [result])


_NINE = np.arange(1, 10).reshape(1, 1, 3, 3)
_HALVES = np.full((1, 1, 2, 2), 0.5)
_ROW, _DIGITS = [[[1, 2, 3, 4]]], [[[1, 10, 100]]]
_PAIR = [[[1, 2]]]
_CLIP = DML_ELEMENT_WISE_CLIP_OPERATOR_DESC(InputTensor=None, OutputTensor=None, Min=2, Max=13)

CASES = [
    # DxDispatch's sample
    *(
        _case(f"sample-{np.dtype(dtype).name}", _NINE, _HALVES, [[[[6, 8], [12, 14]]]], dtype=dtype)
        for dtype in (np.float32, np.float16)
    ),
    # 1 + 2 * 10 + 3 * 100, or with the filter turned round 100 + 2 * 10 + 3
    _case("one-dimension", _ROW, _DIGITS, [[[321, 432]]]),
    _case("one-dimension-turned", _ROW, _DIGITS, [[[123, 234]]], mode=TURNED),
    _case("turned", _NINE, [[[[1, 10], [100, 1000]]]], [[[[1245, 2356], [4578, 5689]]]], mode=TURNED),
    _case("stride", [[[1, 2, 3, 4, 5, 6]]], _DIGITS, [[[321, 543]]], strides=[2]),
    _case("dilation", [[[1, 2, 3, 4, 5, 6]]], _DIGITS, [[[531, 642]]], dilations=[2]),
    _case("padding", _PAIR, _DIGITS, [[[100, 210, 21, 2]]], start=[2], end=[2]),
    _case("padding-uneven", _PAIR, _DIGITS, [[[210]]], start=[1]),
    _case("padding-with-stride", _PAIR, _DIGITS, [[[210, 2]]], start=[1], end=[2], strides=[2]),
    # Taps on padding add nothing, not 0 * inf.
    _case("padding-adds-nothing", [[[1]]], [[[INF, 1, INF]]], [[[1]]], start=[1], end=[1]),
    _case("padding-alone", _PAIR, [[[5]]], [[[0, 5, 10, 0]]], start=[1], end=[1]),
    _case("padding-huge", _PAIR, [[[5]]], [[[0, 0]]], start=[2**31], end=[2**31 - 1], strides=[2**32 - 1]),
    _case("specials", [[[INF, 1, NAN, 0, 0]]], [[[0, 1]]], [[[NAN, NAN, NAN, 0]]]),
    _case("bias", _ROW, [[[1]], [[-1]]], [[[11, 12, 13, 14], [19, 18, 17, 16]]], [10, 20]),
    _case("channels", [[[1, 2], [10, 20]]], [[[1], [1]], [[2], [0]], [[0], [3]]], [[[11, 22], [2, 4], [30, 60]]]),
    _case(
        "groups",
        [[[1], [2], [3], [4]]],
        [[[1], [10]], [[2], [0]], [[1], [10]], [[0], [2]]],
        [[[21], [2], [43], [8]]],
        groups=2,
    ),
    _case("depthwise", [[[1, 2], [3, 4]]], [[[1, 1]], [[1, -1]]], [[[3], [-1]]], groups=2),
    _case("depthwise-twofold", [[[1], [3]]], [[[1]], [[2]], [[3]], [[4]]], [[[1], [2], [9], [12]]], groups=2),
    _case("batch", [[[1]], [[2]]], [[[3]]], [[[3]], [[6]]]),
    _case("three-dimensions", np.ones((1, 2, 3, 3, 3)), np.ones((1, 2, 2, 2, 2)), np.full((1, 1, 2, 2, 2), 16)),
    # Along the width 1 and 10, along the height 1 and 100, along the depth 1 and 10000
    _case(
        "three-dimensions-in-order",
        np.arange(1, 9).reshape(1, 1, 2, 2, 2),
        np.outer([1, 10**4], np.outer([1, 100], [1, 10])).reshape(1, 1, 2, 2, 2),
        [[[[[1 + 20 + 300 + 4000 + 50000 + 600000 + 7000000 + 80000000]]]]],
    ),
    # Zeros behind the result, before bias and activation
    _case("output-padding", _ROW, _DIGITS, [[[321, 432, 0, 0]]], output=[2]),
    _case("output-padding-bias", _ROW, [[[1]]], [[[3, 4, 5, 6, 2]]], [2], output=[1]),
    _case("output-padding-clip", _ROW, [[[1]]], [[[2, 2, 3, 4, 2]]], output=[1], activation=_CLIP),
    _case("fused-clip", _NINE, _HALVES, [[[[6, 8], [12, 13]]]], activation=_CLIP),
    _case("fused-clip-bias", _NINE, _HALVES, [[[[2, 2], [5, 7]]]], [-7], activation=_CLIP),
    _case("float16-held-wide", [[[300], [300]]], [[[300], [-300]], [[300], [300]]], [[[0], [INF]]], dtype=np.float16),
    _case("rounds-once", [[[1, 2**-11, 2**-11]]], [[[1, 1, 1]]], [[[1 + 2**-10]]], dtype=np.float16),
    _case("broadcast-filter", _NINE, _HALVES, [[[[6, 8], [12, 14]]]], layouts={"FilterTensor": (0, 0, 0, 0)}),
    _case(
        "strided",
        _NINE,
        _HALVES,
        [[[[6, 8], [12, 14]]]],
        layouts={"InputTensor": (9, 9, 1, 3), "OutputTensor": (40, 40, 1, 5)},
    ),
    # y[j] is the sum of w[k] * x[o] with o + k = j.
    _case("backward", _PAIR, _DIGITS, [[[1, 12, 120, 200]]], direction=BACKWARD),
    _case("backward-turned", _PAIR, _DIGITS, [[[100, 210, 21, 2]]], direction=BACKWARD, mode=TURNED),
    _case("backward-stride", _PAIR, _DIGITS, [[[1, 10, 102, 20, 200]]], direction=BACKWARD, strides=[2]),
    _case("backward-float16", _PAIR, _DIGITS, [[[1, 12, 120, 200]]], direction=BACKWARD, dtype=np.float16),
    # One element more is reached by no tap, as where PyDirectML's sample `candy` turns 180 rows into 362 ...
    _case("backward-larger", _PAIR, _DIGITS, [[[1, 10, 102, 20, 200, 0]]], direction=BACKWARD, strides=[2]),
    # ... but where padding had cut one off, it is there again, and the zeros of OutputPadding are behind.
    _case("backward-cut", _PAIR, _DIGITS, [[[1, 10, 102, 20]]], direction=BACKWARD, strides=[2], end=[1]),
    _case("backward-uncut", _PAIR, _DIGITS, [[[1, 10, 102, 20, 200]]], direction=BACKWARD, strides=[2], end=[1]),
    _case(
        "backward-output-padding",
        _PAIR,
        _DIGITS,
        [[[2, 11, 103, 21, 1]]],
        [1],
        direction=BACKWARD,
        strides=[2],
        end=[1],
        output=[1],
    ),
    _case("backward-start", _PAIR, _DIGITS, [[[10, 102, 20, 200]]], direction=BACKWARD, strides=[2], start=[1]),
    _case("backward-dilation", _PAIR, _DIGITS, [[[1, 2, 10, 20, 100, 200]]], direction=BACKWARD, dilations=[2]),
    _case("backward-gaps", _PAIR, [[[5]]], [[[5, 0, 0, 10]]], direction=BACKWARD, strides=[3]),
    _case("backward-bias", _PAIR, [[[5]]], [[[7, 2, 2, 12, 2]]], [2], direction=BACKWARD, strides=[3]),
    # Filters of {input channels, output channels / groups}
    _case(
        "backward-channels", [[[1], [10]]], [[[1], [2], [3]], [[4], [5], [6]]], [[[41], [52], [63]]], direction=BACKWARD
    ),
    _case(
        "backward-groups",
        [[[1], [10]]],
        [[[1], [2]], [[3], [4]]],
        [[[1], [2], [30], [40]]],
        direction=BACKWARD,
        groups=2,
    ),
    _case(
        "backward-two-dimensions",
        [[[[1, 2], [3, 4]]]],
        [[[[1, 10], [100, 1000]]]],
        [[[[1, 12, 20], [103, 1234, 2040], [300, 3400, 4000]]]],
        direction=BACKWARD,
    ),
    _case(
        "backward-three-dimensions",
        [[[[[2]]]]],
        np.arange(8).reshape(1, 1, 2, 2, 2),
        np.arange(0, 16, 2).reshape(1, 1, 2, 2, 2),
        direction=BACKWARD,
    ),
    _case("backward-fused-clip", _PAIR, _DIGITS, [[[2, 12, 13, 13]]], direction=BACKWARD, activation=_CLIP),
]


def _convolution(**members: Any) -> OperatorDesc:
    """A filter of 3 by 3 over {1, 4, 5, 6}, in 2 groups."""
    right = {
        "InputTensor": tensor((1, 4, 5, 6)),
        "FilterTensor": tensor((6, 2, 3, 3)),
        "BiasTensor": tensor((1, 6, 1, 1)),
        "OutputTensor": tensor((1, 6, 3, 4)),
        "Mode": ConvolutionMode.CROSS_CORRELATION,
        "Direction": ConvolutionDirection.FORWARD,
        "Strides": (1, 1),
        "Dilations": (1, 1),
        "StartPadding": (0, 0),
        "EndPadding": (0, 0),
        "OutputPadding": (0, 0),
        "GroupCount": 2,
    }
    return DML_CONVOLUTION_OPERATOR_DESC(**{**right, **members})


def _backward(**members: Any) -> OperatorDesc:
    """From {1, 6, 3, 4} back, each second row and column."""
    right = {
        "InputTensor": tensor((1, 6, 3, 4)),
        "BiasTensor": tensor((1, 4, 1, 1)),
        "OutputTensor": tensor((1, 4, 7, 10)),
        "Direction": ConvolutionDirection.BACKWARD,
        "Strides": (2, 2),
    }
    return _convolution(**{**right, **members})


NEGATIVES = [
    Negative(
        "(C1)",
        _convolution(FilterTensor=tensor((6, 2, 3, 3), "FLOAT16")),
        "FilterTensor.DataType",
        "FLOAT16",
        "FLOAT32, that of I",
    ),
    Negative(
        "(C1)",
        _convolution(BiasTensor=tensor((1, 6, 1, 1), "FLOAT16")),
        "BiasTensor.DataType",
        "FLOAT16",
        "FLOAT32, that of I",
    ),
    Negative(
        "(C2)", _convolution(BiasTensor=tensor((6, 1, 1))), "BiasTensor.DimensionCount", "3", "4, that of InputTensor"
    ),
    Negative(
        "(C2)",
        _convolution(OutputTensor=tensor((1, 6, 3, 4, 1))),
        "OutputTensor.DimensionCount",
        "5",
        "4, that of InputTensor",
    ),
    Negative(
        "(C3)",
        _convolution(**{name: (1,) * 3 for name in DML_CONVOLUTION_OPERATOR_DESC.counts["DimensionCount"]}),
        "DimensionCount",
        "3",
        "2, 2 less than",
    ),
    Negative("(C4)", _convolution(Strides=(1, 0)), "Strides[1]", "0", "at least 1"),
    Negative("(C4)", _convolution(Dilations=(0, 1)), "Dilations[0]", "0", "at least 1"),
    Negative("(C4)", _convolution(GroupCount=0), "GroupCount", "0", "at least 1"),
    Negative("(C5)", _convolution(GroupCount=3), "GroupCount", "3", "a divisor of 4, the channels of InputTensor"),
    Negative(
        "(C5)",
        _convolution(GroupCount=4, FilterTensor=tensor((6, 1, 3, 3))),
        "GroupCount",
        "4",
        "a divisor of 6, the channels of OutputTensor",
    ),
    Negative(
        "(C5)",
        _backward(GroupCount=4, BiasTensor=None, OutputTensor=tensor((1, 8, 7, 10))),
        "GroupCount",
        "4",
        "a divisor of 6, the channels of InputTensor",
    ),
    Negative(
        "(C6)",
        _convolution(FilterTensor=tensor((6, 4, 3, 3))),
        "FilterTensor.Sizes[1]",
        "4",
        "2, the channels of a group of InputTensor",
    ),
    Negative(
        "(C6)",
        _backward(FilterTensor=tensor((4, 2, 3, 3))),
        "FilterTensor.Sizes[0]",
        "4",
        "6, the channels of InputTensor",
    ),
    Negative("(C7)", _convolution(BiasTensor=tensor((1, 1, 1, 1))), "BiasTensor.Sizes", "(1, 1, 1, 1)", "(1, 6, 1, 1)"),
    Negative("(C7)", _backward(BiasTensor=tensor((1, 6, 1, 1))), "BiasTensor.Sizes", "(1, 6, 1, 1)", "(1, 4, 1, 1)"),
    Negative(
        "(C8)",
        _convolution(FilterTensor=tensor((6, 2, 6, 3))),
        "FilterTensor.Sizes[2]",
        "6",
        "at most 5, the padded size",
    ),
    Negative(
        "(C8)", _convolution(Dilations=(1, 3)), "FilterTensor.Sizes[3]", "an extent of 7", "at most 6, the padded size"
    ),
    # 7 rows, or 8, of which padding may cut off 7.
    Negative(
        "(C8)",
        _backward(StartPadding=(4, 0), EndPadding=(4, 0)),
        "StartPadding[0]",
        "4, with an EndPadding of 4",
        "leave at least one element",
    ),
    Negative("(C9)", _convolution(OutputTensor=tensor((1, 6, 4, 4))), "OutputTensor.Sizes[2]", "4", "3"),
    Negative(
        "(C9)", _convolution(OutputTensor=tensor((1, 4, 3, 4)), BiasTensor=None), "OutputTensor.Sizes[1]", "4", "6"
    ),
    Negative("(C9)", _convolution(OutputPadding=(0, 1)), "OutputTensor.Sizes[3]", "4", "5"),
    Negative("(C9)", _backward(OutputTensor=tensor((1, 4, 7, 8))), "OutputTensor.Sizes[3]", "8", "9 or 10"),
    Negative("(C9)", _backward(OutputTensor=tensor((1, 4, 9, 10))), "OutputTensor.Sizes[2]", "9", "7 or 8"),
    Negative("(C9)", _backward(Strides=(2, 5)), "OutputTensor.Sizes[3]", "10", "18 to 22"),
]

RIGHT = [_convolution(), _backward()]
SUPPORT = {
    "CONVOLUTION": Support([("1.0", 4, 5, FLOATS), ("4.0", 3, 5, FLOATS)], desc=one_tap),
}
KERNELS = {"CONVOLUTION": "(transposed |depthwise )?convolution, window of [0-9x]+, "}
