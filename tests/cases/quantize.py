"""QUANTIZE and DEQUANTIZE: every type, blocks of all shapes, odd numbers of elements of 4 bits, NaN, strides."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from anydml import (
    DML_BUFFER_TENSOR_DESC,
    DML_DEQUANTIZE_OPERATOR_DESC,
    DML_QUANTIZE_OPERATOR_DESC,
    QuantizationType,
    TensorDataType,
)
from anydml.core.strided_layout import DTYPES
from support_tables import FLOATS, Shape, Support, ones

from . import Case, Negative, tensor

INF, NAN = np.inf, np.nan
LIMITS = {"INT8": (-128, 127), "UINT8": (0, 255), "INT4": (-8, 7), "UINT4": (0, 15)}
_QUANTISED = "INT8 INT4 UINT8 UINT4"
_PARAMETERS = f"{FLOATS} {_QUANTISED}"


def stored(values: Any, data_type: str) -> np.ndarray:
    """What a tensor's memory holds: elements, or the bytes of those of 4 bits, the first one in the low half."""
    if not data_type.endswith("INT4"):
        return np.asarray(values, DTYPES[TensorDataType[data_type]])
    codes = [int(each) % 16 for each in np.ravel(values)]
    codes += [0] * (len(codes) % 2)
    return np.array([low + 16 * high for low, high in zip(codes[::2], codes[1::2], strict=True)], np.uint8)


def _case(
    id: str,
    kind: type,
    x: tuple[Any, str],
    parameters: Sequence[tuple[Any, str]],
    y: tuple[Any, str],
    strides: Sequence[Sequence[int] | None] = (),
) -> Case:
    """Of arrays with their data types. `strides` are those of the input, the parameters and the output."""
    given = [*strides, *[None] * (len(parameters) + 2 - len(strides))]
    tensors = [tensor(np.shape(v), t, s) for (v, t), s in zip([x, *parameters, y], given, strict=True)]
    desc = kind(
        InputTensor=tensors[0],
        QuantizationType=QuantizationType(len(parameters)),
        QuantizationTensors=tensors[1:-1],
        OutputTensor=tensors[-1],
    )
    name = "quantize" if kind is DML_QUANTIZE_OPERATOR_DESC else "dequantize"
    return Case(f"{name}-{id}", desc, [stored(*each) for each in (x, *parameters)], [stored(*y)])


def at_blocks(parameter: Any, shape: Sequence[int]) -> np.ndarray:
    """The number of the block that each element is in."""
    of = np.asarray(parameter)
    y = np.empty(shape, of.dtype)
    for place in np.ndindex(*shape):
        y[place] = of[tuple(i * n // size for i, n, size in zip(place, of.shape, shape, strict=True))]
    return y


def _quantize(id: str, x: Any, real: str, scale: Any, zero_point: Any, kind: str, strides: Any = ()) -> Case:
    """Of quotients that are exact: halves go to the even integer, before the zero point is added."""
    x, low, high = np.asarray(x), *LIMITS[kind]
    whole = np.rint(x / at_blocks(scale, x.shape))
    zero = 0 if zero_point is None else at_blocks(zero_point, x.shape)
    y = np.clip(whole + zero, low, high)
    parameters = [(scale, real), *([] if zero_point is None else [(zero_point, kind)])]
    return _case(id, DML_QUANTIZE_OPERATOR_DESC, (x, real), parameters, (y, kind), strides)


def _dequantize(id: str, x: Any, kind: str, scale: Any, zero_point: Any, real: str, strides: Any = ()) -> Case:
    """Of products that the real numbers' type holds."""
    x = np.asarray(x)
    zero = 0 if zero_point is None else at_blocks(zero_point, x.shape)
    y = (x - zero) * at_blocks(scale, x.shape)
    parameters = [(scale, real), *([] if zero_point is None else [(zero_point, kind)])]
    return _case(id, DML_DEQUANTIZE_OPERATOR_DESC, (x, kind), parameters, (y, real), strides)


def _halves(*sizes: int) -> np.ndarray:
    """Multiples of a quarter, of both signs, of which some are beyond 4 bits."""
    return ((np.arange(np.prod(sizes)) * 7) % 83 - 41).reshape(sizes) / 4


def _codes(kind: str, *sizes: int) -> np.ndarray:
    low, high = LIMITS[kind]
    return ((np.arange(np.prod(sizes)) * 5 + 3) % (high - low + 1) + low).reshape(sizes)


def _scales(*sizes: int) -> np.ndarray:
    """Powers of two, so that nothing is rounded but to integers."""
    return 2.0 ** ((np.arange(np.prod(sizes)) * 3) % 4 - 2).reshape(sizes)


_ENDS = [0, 0.25, 0.75, 1.25, -0.25, -0.75, 3, 1000, -1000, NAN, INF, -INF, 2.75]
"""An odd number of them."""
_Y = {
    "INT8": [3, 3, 5, 5, 3, 1, 9, 127, -128, 3, 127, -128, 9],
    "UINT8": [3, 3, 5, 5, 3, 1, 9, 255, 0, 3, 255, 0, 9],
    "INT4": [3, 3, 5, 5, 3, 1, 7, 7, -8, 3, 7, -8, 7],
    "UINT4": [3, 3, 5, 5, 3, 1, 9, 15, 0, 3, 15, 0, 9],
}
"""Quotients by a half, with a zero point of 3. Halves go to the even integer before the odd zero point is added."""


def _ends() -> list[Case]:
    cases = []
    for real in FLOATS.split():
        for kind, y in _Y.items():
            id = f"{real}-{kind}".lower()
            given, scale = (_ENDS, real), ([0.5], real)
            low, high = LIMITS[kind]
            cases += [
                _case(id, DML_QUANTIZE_OPERATOR_DESC, given, [scale, ([3], kind)], (y, kind)),
                _case(
                    f"{id}-no-zero-point",
                    DML_QUANTIZE_OPERATOR_DESC,
                    ([-2, -0.25, 0.25, 0.75, 1, INF, NAN], real),
                    [scale],
                    ([max(low, -4), 0, 0, 2, 2, high, 0], kind),
                ),
                _case(
                    f"{id}-scale-of-0",
                    DML_QUANTIZE_OPERATOR_DESC,
                    ([0, 1, -1], real),
                    [([0], real), ([low + 2], kind)],
                    ([low + 2, high, low], kind),
                ),
                _dequantize(f"{id}-all", np.arange(low, high + 1), kind, [0.25], [3], real),
                _dequantize(f"{id}-ends", [low, high, 0], kind, [-0.5], [high], real),
                _dequantize(f"{id}-no-zero-point", [low, high, 1, low, high], kind, [2], None, real),
                _case(
                    f"{id}-scales",
                    DML_DEQUANTIZE_OPERATOR_DESC,
                    ([1, 1, 1, 0, 0], kind),
                    [([INF, NAN, -0.5, INF, 3], real)],
                    ([INF, NAN, -0.5, NAN, 0], real),
                ),
            ]
    # The quotients in FLOAT32 are halves, the exact ones are not.
    quotients = _case(
        "quotients-of-float32",
        DML_QUANTIZE_OPERATOR_DESC,
        ([0.15, 0.25, 0.35, 0.45], "FLOAT32"),
        [([0.1], "FLOAT32")],
        ([2, 2, 4, 4], "INT4"),
    )
    # 255 * 65504 is more than FLOAT16 holds, 3 * 0.1 is rounded to it once.
    products = _case(
        "products-of-float16",
        DML_DEQUANTIZE_OPERATOR_DESC,
        ([255, 3], "UINT8"),
        [([65504, 0.1], "FLOAT16")],
        ([INF, 0.29980469], "FLOAT16"),
    )
    return [*cases, quotients, products]


_BLOCKS: dict[str, tuple[Sequence[int], Sequence[int], Sequence[int]]] = {
    "one": ((3, 5), (1, 1), (1, 1)),
    "last": ((3, 8), (3, 2), (3, 2)),
    "last-of-three": ((2, 9), (2, 3), (2, 3)),
    "first": ((6, 5), (2, 5), (2, 5)),
    "both": ((6, 8), (3, 2), (3, 2)),
    "channels": ((2, 3, 2, 3), (1, 3, 1, 1), (1, 3, 1, 1)),
    "each": ((3, 3, 3), (3, 3, 3), (3, 3, 3)),
    "nested": ((2, 12), (2, 2), (2, 6)),
    "nested-otherwise": ((2, 12), (1, 6), (2, 3)),
    "crossing": ((3, 12), (3, 2), (1, 3)),
    "crossing-first": ((12, 3), (4, 1), (6, 3)),
    "batch": ((4, 1, 6), (2, 1, 3), (4, 1, 1)),
    "eight-dimensions": ((2, 1, 2, 3, 2, 1, 2, 2), (1, 1, 2, 1, 2, 1, 1, 2), (2, 1, 1, 3, 1, 1, 2, 1)),
    "one-element": ((1,), (1,), (1,)),
    "one-dimension": ((15,), (5,), (3,)),
    "long-row": ((2, 1500), (2, 25), (1, 75)),
    "long-columns": ((70, 31), (7, 31), (1, 31)),
}


def _blocks() -> list[Case]:
    cases = []
    for number, (id, (sizes, scales, zeros)) in enumerate(_BLOCKS.items()):
        for kind in LIMITS:
            real = FLOATS.split()[number % 2]
            scale, zero_point = _scales(*scales), _codes(kind, *zeros)
            name = f"{id}-{kind.lower()}"
            cases += [
                _quantize(name, _halves(*sizes), real, scale, zero_point, kind),
                _dequantize(name, _codes(kind, *sizes), kind, scale, zero_point, real),
            ]
    return cases


def _strided() -> list[Case]:
    cases = []
    for kind in LIMITS:
        # Tensors of 4 bits are packed; the last number says which of the three may have gaps.
        is_packed = kind.endswith("INT4")
        x, codes = _halves(4, 6), _codes(kind, 4, 6)
        scale, zero_point = _scales(2, 3), _codes(kind, 2, 3)
        apart: list[Any] = [(1, 5), (1, 4), None if is_packed else (9, 2), None if is_packed else (20, 3)]
        gapped: list[Any] = [(20, 3), (10, 2), None if is_packed else (1, 2), None if is_packed else (1, 4)]
        for id, steps in (("transposed", apart), ("gapped", gapped)):
            of_x, of_scale, of_zero_point, of_codes = steps
            layouts = [of_x, of_scale, of_zero_point, of_codes]
            cases.append(_quantize(f"{id}-{kind.lower()}", x, "FLOAT32", scale, zero_point, kind, layouts))
            turned = [of_codes, of_scale, of_zero_point, of_x]
            cases.append(_dequantize(f"{id}-{kind.lower()}", codes, kind, scale, zero_point, "FLOAT16", turned))
        ones_ = np.ones((4, 6))
        cases.append(
            _quantize(f"broadcast-{kind.lower()}", ones_, "FLOAT32", ones_[:2, :3] / 2, None, kind, [(0, 0), (0, 0)])
        )
    return cases


CASES = [*_ends(), *_blocks(), *_strided()]


def _right(kind: type = DML_QUANTIZE_OPERATOR_DESC, **members: Any) -> Any:
    """On {2, 6}, to and from UINT4, by blocks of 3."""
    real, quantised = tensor((2, 6)), tensor((2, 6), "UINT4")
    ends = (real, quantised) if kind is DML_QUANTIZE_OPERATOR_DESC else (quantised, real)
    usual = {
        "InputTensor": ends[0],
        "QuantizationType": QuantizationType.SCALE_ZERO_POINT,
        "QuantizationTensors": [tensor((2, 2)), tensor((2, 2), "UINT4")],
        "OutputTensor": ends[1],
    }
    return kind(**{**usual, **members})


def _both(**members: Any) -> list[Any]:
    return [_right(kind, **members) for kind in (DML_QUANTIZE_OPERATOR_DESC, DML_DEQUANTIZE_OPERATOR_DESC)]


_SCALE = {"QuantizationType": QuantizationType.SCALE, "QuantizationTensors": [tensor((2, 2))]}
RIGHT = [
    *_both(),
    *_both(**_SCALE),
    *_both(QuantizationTensors=[tensor((1, 6)), tensor((2, 1), "UINT4")]),
    # Strides that say nothing else than none.
    _right(OutputTensor=tensor((2, 6), "UINT4", (6, 1))),
    _right(
        QuantizationTensors=[tensor((1, 1)), tensor((1, 1), "UINT4", (7, 9))],
    ),
]


def _parameters(first: DML_BUFFER_TENSOR_DESC, *rest: DML_BUFFER_TENSOR_DESC) -> dict[str, Any]:
    return {"QuantizationTensors": [first, *rest]}


_ZERO_POINT = tensor((2, 2), "UINT4")


def _negatives(kind: type) -> list[Negative]:
    real, quantised = ("Input", "Output") if kind is DML_QUANTIZE_OPERATOR_DESC else ("Output", "Input")
    first, longer = "QuantizationTensors[0]", tensor((2, 6, 1), "UINT4" if real == "Input" else "FLOAT32")
    wider = tensor((2, 7), "UINT4" if real == "Input" else "FLOAT32")
    return [
        Negative("(C1)", _right(kind, OutputTensor=longer), "OutputTensor.DimensionCount", "3", "2, that of"),
        Negative(
            "(C1)", _right(kind, **_parameters(tensor((2,)), _ZERO_POINT)), f"{first}.DimensionCount", "1", "2, that of"
        ),
        Negative(
            "(C2)",
            _right(kind, QuantizationType=QuantizationType.NONE, QuantizationTensors=[]),
            "QuantizationType",
            "NONE",
            "SCALE or SCALE_ZERO_POINT",
        ),
        Negative(
            "(C2)",
            _right(kind, **_parameters(tensor((2, 2)))),
            "QuantizationTensorCount",
            "1",
            "2, a scale and a zero point",
        ),
        Negative(
            "(C2)",
            _right(kind, QuantizationType=QuantizationType.SCALE),
            "QuantizationTensorCount",
            "2",
            "1, a scale, with",
        ),
        Negative(
            "(C3)",
            _right(kind, **_parameters(tensor((2, 2), "FLOAT16"), _ZERO_POINT)),
            f"{first}.DataType",
            "FLOAT16",
            f"FLOAT32, that of {real}Tensor",
        ),
        Negative(
            "(C4)",
            _right(kind, **_parameters(tensor((2, 2)), tensor((2, 2), "INT4"))),
            "QuantizationTensors[1].DataType",
            "INT4",
            f"UINT4, that of {quantised}Tensor",
        ),
        Negative(
            "(C5)",
            _right(kind, **_parameters(tensor((2, 4)), _ZERO_POINT)),
            f"{first}.Sizes[1]",
            "4",
            "a number that divides 6",
        ),
        Negative(
            "(C5)",
            _right(kind, **_parameters(tensor((2, 2)), tensor((2, 12), "UINT4"))),
            "QuantizationTensors[1].Sizes[1]",
            "12",
            "a number that divides 6",
        ),
        Negative("(C6)", _right(kind, OutputTensor=wider), "OutputTensor.Sizes[1]", "7", "6"),
        Negative(
            "(F5)",
            _right(kind, QuantizationTensorCount=3),
            "QuantizationTensors",
            "2 elements",
            "3, which Quantization",
        ),
        Negative(
            "(T11)",
            _right(kind, **_parameters(tensor((2, 2)), tensor((2, 2), "UINT4", (0, 0)))),
            "QuantizationTensors[1].Strides",
            "(0, 0) for Sizes (2, 2)",
            "(2, 1), as two elements share a byte",
        ),
    ]


NEGATIVES = [*_negatives(DML_QUANTIZE_OPERATOR_DESC), *_negatives(DML_DEQUANTIZE_OPERATOR_DESC)]


def _desc(operator: str, **shapes: Shape) -> Any:
    """A scale; with it a zero point where the type given is one of quantised numbers."""
    kind = DML_QUANTIZE_OPERATOR_DESC if operator == "QUANTIZE" else DML_DEQUANTIZE_OPERATOR_DESC
    real = "InputTensor" if operator == "QUANTIZE" else "OutputTensor"
    parameter = shapes["QuantizationTensors"]
    with_zero_point = parameter[1].name in LIMITS
    scale = (parameter[0], shapes[real][1])
    return kind(
        InputTensor=ones(shapes["InputTensor"]),
        QuantizationType=QuantizationType(1 + with_zero_point),
        QuantizationTensors=[ones(scale), ones(parameter)] if with_zero_point else [ones(parameter)],
        OutputTensor=ones(shapes["OutputTensor"]),
    )


def _others(operator: str, name: str, shape: Shape) -> dict[str, Shape]:
    """Of types that go with the one given."""
    real, quantised = ("InputTensor", "OutputTensor") if operator == "QUANTIZE" else ("OutputTensor", "InputTensor")
    count, kind = shape
    shapes = {
        real: (count, TensorDataType.FLOAT32),
        quantised: (count, TensorDataType.UINT8),
        "QuantizationTensors": (count, TensorDataType.FLOAT32),
        name: shape,
    }
    if name == "QuantizationTensors" and kind.name in LIMITS:
        shapes[quantised] = (count, kind)
    elif name == "QuantizationTensors":
        shapes[real] = (count, kind)
    elif name == real:
        shapes["QuantizationTensors"] = (count, kind)
    return shapes


_TABLES = {"INPUT": [("6.3", 1, 8, FLOATS)], "OUTPUT": [("6.3", 1, 8, _QUANTISED)]}
_OF_PARAMETERS = [("6.3", 1, 8, _PARAMETERS)]
SUPPORT = {
    "QUANTIZE": Support(
        {
            "InputTensor": _TABLES["INPUT"],
            "QuantizationTensors": _OF_PARAMETERS,
            "OutputTensor": _TABLES["OUTPUT"],
        },
        desc=_desc,
        others=_others,
    ),
    "DEQUANTIZE": Support(
        {
            "InputTensor": _TABLES["OUTPUT"],
            "QuantizationTensors": _OF_PARAMETERS,
            "OutputTensor": _TABLES["INPUT"],
        },
        desc=_desc,
        others=_others,
    ),
}

KERNELS = {"QUANTIZE": "blocks of ", "DEQUANTIZE": "blocks of "}
