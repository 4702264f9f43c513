"""UPSAMPLE_2D and VALUE_SCALE_2D: factors even and odd, ends, infinities, channels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from anydml import DML_SIZE_2D, DML_UPSAMPLE_2D_OPERATOR_DESC, DML_VALUE_SCALE_2D_OPERATOR_DESC, InterpolationMode
from support_tables import FLOATS, Support

from . import Case, Negative, tensor, tensor_of

INF, NAN = np.inf, np.nan


def _upsampled(
    id: str,
    x: np.ndarray,
    y: object,
    size: tuple[int, int],
    mode: InterpolationMode = InterpolationMode.LINEAR,
    strides: Sequence[int] | None = None,
    out_strides: Sequence[int] | None = None,
) -> Case:
    """`size` is height and width."""
    output = np.array(y, x.dtype).reshape(*x.shape[:-2], x.shape[-2] * size[0], x.shape[-1] * size[1])
    desc = DML_UPSAMPLE_2D_OPERATOR_DESC(
        InputTensor=tensor_of(x, strides),
        OutputTensor=tensor_of(output, out_strides),
        ScaleSize=DML_SIZE_2D(Height=size[0], Width=size[1]),
        InterpolationMode=mode,
    )
    return Case(f"upsample_2d-{id}", desc, [x], [output])


def _image(*rows: Sequence[float], dtype: Any = np.float32) -> np.ndarray:
    return np.array([[rows]], dtype)


_NEAREST = InterpolationMode.NEAREST_NEIGHBOR
_NANS = np.array([0x7FC01234, 0xFF812345], np.uint32).view(np.float32)
_SMALL = _image([0, 4], [8, 16])

UPSAMPLED = [
    _upsampled("nearest", _SMALL, [[0, 0, 0, 4, 4, 4]] * 2 + [[8, 8, 8, 16, 16, 16]] * 2, (2, 3), _NEAREST),
    _upsampled("nearest-nan-payloads", _NANS.reshape(1, 1, 2, 1), _NANS.repeat(4), (2, 2), _NEAREST),
    # The centres of two pixels for one are a quarter before and behind its own.
    _upsampled(
        "linear",
        _SMALL,
        [[0, 1, 3, 4], [2, 3.25, 5.75, 7], [6, 7.75, 11.25, 13], [8, 10, 14, 16]],
        (2, 2),
    ),
    # Of three, one is in the middle.
    _upsampled("linear-odd", _image([0, 3, 9]), [0, 0, 1, 2, 3, 5, 7, 9, 9], (1, 3)),
    _upsampled("linear-of-1", _SMALL, _SMALL, (1, 1)),
    _upsampled("linear-one-element", _image([7]), [7] * 6, (3, 2)),
    _upsampled("linear-special", _image([INF, 1, NAN]), [INF] * 4 + [1] + [NAN] * 4, (1, 3)),
    _upsampled("linear-float16-rounds-once", _image([1, 1 + 2**-10], dtype=np.float16),
        [1, 1, 1 + 2**-10, 1 + 2**-10], (1, 2)),
    _upsampled("linear-largest", _image([65504, -65504], dtype=np.float16), [65504, 32752, -32752, -65504], (1, 2)),
    _upsampled("linear-5-d", np.arange(8, dtype=np.float32).reshape(2, 1, 2, 1, 2),
        [0, 0.25, 0.75, 1, 2, 2.25, 2.75, 3, 4, 4.25, 4.75, 5, 6, 6.25, 6.75, 7], (1, 2)),
    _upsampled("linear-transposed-to-gapped", _SMALL, [0, 1, 3, 4, 8, 10, 14, 16], (1, 2),
        strides=(4, 4, 1, 2), out_strides=(99, 99, 11, 2)),
    _upsampled("nearest-broadcast", _image([5, 5]), [5] * 4, (1, 2), _NEAREST, strides=(0, 0, 0, 0)),
]  # fmt: skip


def _scaled(
    id: str,
    x: np.ndarray,
    y: object,
    scale: float,
    bias: Sequence[float],
    strides: Sequence[int] | None = None,
    out_strides: Sequence[int] | None = None,
) -> Case:
    output = np.array(y, x.dtype).reshape(x.shape)
    desc = DML_VALUE_SCALE_2D_OPERATOR_DESC(
        InputTensor=tensor_of(x, strides), OutputTensor=tensor_of(output, out_strides), Scale=scale, Bias=bias
    )
    return Case(f"value_scale_2d-{id}", desc, [x], [output])


_RGB = np.arange(12, dtype=np.float32).reshape(2, 3, 1, 2)
_SHIFTED = [10, 12, 24, 26, -2, 0, 22, 24, 36, 38, 10, 12]

SCALED = [
    _scaled("three-channels", _RGB, _SHIFTED, 2, (10, 20, -10)),
    _scaled("one-channel", _image([-1, 0, 0.5]), [2.5, 3, 3.25], 0.5, [3]),
    _scaled("special", _image([INF, NAN, 1, -INF]), [-INF, NAN, 1, INF], -1, [2]),
    _scaled("infinite-bias", _image([INF, 1, -INF]), [INF, INF, NAN], 1, [INF]),
    # 1 + 2^-11 and the 2^-22 that decides are together before they are rounded.
    _scaled("float16-rounds-once", _image([1, 65504], dtype=np.float16), [1 + 2**-10, INF], 1 + 2**-11, [2**-22]),
    _scaled("float32-rounds-once", _image([1 + 2**-23]), [2**-23], 1, [-1]),
    _scaled("transposed-to-gapped", _RGB, _SHIFTED, 2, (10, 20, -10), (1, 4, 2, 2), (40, 7, 5, 2)),
]

CASES = [*UPSAMPLED, *SCALED]


def _upsample(**members: Any) -> DML_UPSAMPLE_2D_OPERATOR_DESC:
    right = {
        "InputTensor": tensor((1, 2, 3, 4)),
        "OutputTensor": tensor((1, 2, 9, 8)),
        "ScaleSize": DML_SIZE_2D(Width=2, Height=3),
        "InterpolationMode": InterpolationMode.LINEAR,
    }
    return DML_UPSAMPLE_2D_OPERATOR_DESC(**{**right, **members})


def _size(width: Any, height: Any) -> DML_UPSAMPLE_2D_OPERATOR_DESC:
    return _upsample(ScaleSize=DML_SIZE_2D(Width=width, Height=height))


def _value_scale(**members: Any) -> DML_VALUE_SCALE_2D_OPERATOR_DESC:
    x = tensor((2, 3, 4, 5))
    return DML_VALUE_SCALE_2D_OPERATOR_DESC(
        **{"InputTensor": x, "OutputTensor": x, "Scale": 2, "Bias": (1, 2, 3), **members}
    )


_PAIR = tensor((1, 2, 4, 5))

NEGATIVES = [
    Negative("(F10)", _upsample(ScaleSize=(2, 3)), "ScaleSize", "tuple (2, 3)", "a DML_SIZE_2D of two integers"),
    Negative("(F10)", _upsample(ScaleSize=None), "ScaleSize", "None", "a DML_SIZE_2D"),
    Negative("(F10)", _size(2.0, 3), "ScaleSize", "DML_SIZE_2D(Width=2.0", "two integers from 0 to 2^32 - 1"),
    Negative("(F10)", _size(2, -3), "ScaleSize", "Height=-3", "from 0 to 2^32 - 1"),
    Negative("(F10)", _size(2**32, 3), "ScaleSize", "Width=4294967296", "from 0 to 2^32 - 1"),
    Negative(
        "(C1)", _upsample(OutputTensor=tensor((1, 2, 9, 8), "FLOAT16")), "OutputTensor.DataType", "FLOAT16", "FLO"
    ),
    Negative("(C2)", _upsample(OutputTensor=tensor((1, 1, 2, 9, 8))), "OutputTensor.DimensionCount", "5", "4, that of"),
    Negative("(C3)", _size(0, 3), "ScaleSize.Width", "0", "from 1 to 1073741823, as the size is 4"),
    Negative("(C3)", _size(2, 0), "ScaleSize.Height", "0", "from 1 to 1431655765, as the size is 3"),
    Negative("(C4)", _size(2, 2), "OutputTensor.Sizes[2]", "9", "6"),
    Negative("(C4)", _upsample(OutputTensor=tensor((2, 2, 9, 8))), "OutputTensor.Sizes[0]", "2", "1"),
    Negative("(F8)", _value_scale(Bias=(1, "2", 3)), "Bias[1]", "str '2'", "a number of single precision"),
    Negative("(F8)", _value_scale(Bias=(1, 2, 1e39)), "Bias[2]", "float 1e+39", "a number of single precision"),
    Negative("(F8)", _value_scale(Bias=3), "Bias", "int 3", "a list, each a number of single precision"),
    Negative(
        "(C1)",
        _value_scale(OutputTensor=tensor((2, 3, 4, 5), "FLOAT16")),
        "OutputTensor.DataType",
        "FLOAT16",
        "FLOAT32",
    ),
    Negative("(C2)", _value_scale(OutputTensor=tensor((2, 3, 4, 6))), "OutputTensor.Sizes[3]", "6", "5"),
    Negative("(C3)", _value_scale(InputTensor=_PAIR, OutputTensor=_PAIR, Bias=(1, 2)), "ChannelCount", "2", "1 or 3"),
    Negative("(C4)", _value_scale(Bias=[1]), "ChannelCount", "1", "3, the channels of InputTensor"),
]

RIGHT = [_upsample(), _value_scale()]
KERNELS = {"UPSAMPLE_2D": "movement |weighted sums of ", "VALUE_SCALE_2D": "scale and bias of channels of "}
SUPPORT = {
    "UPSAMPLE_2D": Support(
        [("1.0", 4, 5, FLOATS)],
        members=lambda output: {
            "ScaleSize": DML_SIZE_2D(Width=1, Height=1),
            "InterpolationMode": InterpolationMode.NEAREST_NEIGHBOR,
        },
    ),
    "VALUE_SCALE_2D": Support([("1.0", 4, 4, FLOATS)], members=lambda output: {"Bias": [0]}),
}
