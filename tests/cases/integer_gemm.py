"""Products of matrices of integers: zero points, scales, ties, saturation, wrapping. Numbers are worked by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from anydml.operators import spec

from . import Case, tensor_of

INF, NAN = np.inf, np.nan
INT8, UINT8, FLOAT32, FLOAT16 = np.int8, np.uint8, np.float32, np.float16
INTEGERS = "INT32 INT16 INT8 UINT32 UINT16 UINT8"


def _case(id: str, operator: str, y: Any, strides: Mapping[str, Sequence[int]] | None = None, **arrays: Any) -> Case:
    """`arrays` are tensors by their names without the last word, `strides` those of tensors by the same names. A number
    as a scale or a zero point is one for all."""
    found = spec(operator)
    *names, _ = found.tensors
    rank = np.ndim(arrays["A"])
    inputs = [
        None if (x := arrays.get(name.removesuffix("Tensor"))) is None else x.reshape((1,) * rank) if x.ndim == 0 else x
        for name in names
    ]
    every = {**dict(zip(names, inputs, strict=True)), "OutputTensor": y}
    steps = strides or {}
    tensors = {
        name: None if x is None else tensor_of(x, steps.get(name.removesuffix("Tensor"))) for name, x in every.items()
    }
    return Case(id, found.desc(**tensors), inputs, [y])


def _integer(id: str, a: Any, b: Any, y: Any, a_zero: Any = None, b_zero: Any = None, **strides: Any) -> Case:
    arrays = {"A": a, "B": b, "AZeroPoint": a_zero, "BZeroPoint": b_zero}
    return _case(f"integer-gemm-{id}", "MATRIX_MULTIPLY_INTEGER", np.array(y, np.int32), strides or None, **arrays)


_A, _B = [[1, 2], [3, 4]], [[5, 6], [7, 8]]
_PRODUCT = [[19, 22], [43, 50]]
_COLUMN = np.array([[1], [2]], UINT8)


def _integers() -> list[Case]:
    u8, i8 = (lambda x: np.array(x, UINT8)), (lambda x: np.array(x, INT8))
    long = np.full((1, 1), 255, UINT8)
    wide = np.broadcast_to(long, (1, 70000)), np.broadcast_to(long, (70000, 1))
    rows = np.arange(3 * 37).reshape(3, 37) % 256
    columns = np.arange(37 * 41).reshape(37, 41) % 256
    exact = [[sum(int(a) * int(b) for a, b in zip(row, column, strict=True)) for column in columns.T] for row in rows]
    return [
        *(
            _integer(f"{left.__name__}-{right.__name__}", np.array(_A, left), np.array(_B, right), _PRODUCT)
            for left in (INT8, UINT8)
            for right in (INT8, UINT8)
        ),
        # ONNX's example
        _integer(
            "onnx",
            u8([[11, 7, 3], [10, 6, 2], [9, 5, 1], [8, 4, 0]]),
            u8([[1, 4], [2, 5], [3, 6]]),
            [[-38, -83], [-44, -98], [-50, -113], [-56, -128]],
            u8(12),
            u8(0),
        ),
        _integer("ends", i8([[-128, 127]]), u8([[255], [255]]), [[-255]]),
        _integer("farthest", u8([[255, 255]]), u8([[0], [255]]), [[-65025]], u8(0), u8(255)),
        # (1 - 1) * 5 + (2 - 1) * 7 and so on; (3 - 3) and (4 - 3) in the second row
        _integer("zero-point-of-rows", u8(_A), u8(_B), [[7, 8], [7, 8]], u8([[1], [3]])),
        # (5 - 5), (7 - 5) and (6 - 8), (8 - 8)
        _integer("zero-point-of-columns", u8(_A), i8(_B), [[4, -2], [8, -6]], None, i8([[5, 8]])),
        _integer("zero-point-of-columns-alone", u8(_A), i8(_B), [[4, -2], [8, -6]], None, i8([5, 8])),
        _integer("both-zero-points", u8(_A), i8(_B), [[2, 0], [2, 0]], u8([[1], [3]]), i8([[5, 8]])),
        _integer("one-element", i8([[-3]]), i8([[5]]), [[-15]]),
        _integer("one-row", u8([[1, 2]]), u8(_B), [[19, 22]], u8([[0]])),
        _integer("one-column", u8(_A), u8([[5], [7]]), [[19], [43]]),
        _integer("batch", u8([[_A, _B]]), u8([[_B, _A]]), [[_PRODUCT, [[23, 34], [31, 46]]]]),
        _integer("three-dimensions", u8([_A, _B]), u8([_B, _A]), [_PRODUCT, [[23, 34], [31, 46]]], u8([[[0]]])),
        _integer("transposed", u8(_A), u8(_B), _PRODUCT, A=(1, 2), B=(1, 2), Output=(1, 2)),
        _integer("strided", u8(_A), u8(_B), _PRODUCT, A=(7, 3), B=(9, 2), Output=(5, 2)),
        _integer("broadcast", u8([_A, _B]), u8([_B, _B]), [_PRODUCT, [[67, 78], [91, 106]]], B=(0, 2, 1)),
        # 70,000 * 65,025 = 4,551,750,000, less 2^32
        _integer("wraps", wide[0], wide[1], [[256782704]], A=(0, 0), B=(0, 0)),
        _integer("oblong", rows.astype(UINT8), columns.astype(UINT8), exact),
    ]


def _quantised(id: str, a: Any, b: Any, y: Any, scales: Sequence[Any], **more: Any) -> Case:
    """`scales` of A, B and the output; `more` are zero points."""
    real = [np.array(scale, FLOAT32) for scale in scales]
    arrays = dict(zip(("AScale", "BScale", "OutputScale"), real, strict=True))
    strides = more.pop("strides", None)
    return _case(f"quantized-gemm-{id}", "QUANTIZED_LINEAR_MATRIX_MULTIPLY", y, strides, A=a, B=b, **arrays, **more)


def _all_quantised() -> list[Case]:
    u8, i8 = (lambda x: np.array(x, UINT8)), (lambda x: np.array(x, INT8))
    ones = (1, 1, 1)
    # Sums of 1 to 6, and those below 0
    sums, one = u8([[1], [2], [3], [4], [5], [6]]), i8([[1]])
    return [
        *(
            _quantised(
                f"{left.__name__}-{right.__name__}-{kind.__name__}",
                np.array(_A, left),
                np.array(_B, right),
                np.array([[17, 18], [29, 32]], kind),
                (0.5, 0.5, 0.5),
                OutputZeroPoint=kind(7),
            )
            for left in (INT8, UINT8)
            for right in (INT8, UINT8)
            for kind in (INT8, UINT8)
        ),
        # ONNX's example
        _quantised(
            "onnx",
            u8([[208, 236, 0, 238], [3, 214, 255, 29]]),
            u8([[152, 51, 244], [60, 26, 255], [0, 127, 246], [127, 254, 247]]),
            u8([[168, 115, 255], [1, 66, 151]]),
            (0.0066, 0.00705, 0.0107),
            AZeroPoint=u8(113),
            BZeroPoint=u8(114),
            OutputZeroPoint=u8(118),
        ),
        # Halves to the even integer, and then the zero point: 0.5, 1, 1.5, 2, 2.5 and 3
        _quantised("ties", sums, one, u8([[1], [2], [3], [3], [3], [4]]), (1, 1, 2), OutputZeroPoint=u8(1)),
        _quantised(
            "ties-below-0", sums, i8([[-1]]), i8([[5], [4], [3], [3], [3], [2]]), (1, 1, 2), OutputZeroPoint=i8(5)
        ),
        # What is a half of scales that are no powers of 2: 3 / 6
        _quantised("ties-of-thirds", u8([[1], [9], [3]]), one, u8([[0], [2], [0]]), (1, 1, 6)),
        # 2.5000001, which is 2.5 in single precision
        _quantised("next-to-a-tie", u8([[1]]), one, u8([[3]]), (0.1, 0.5, 0.02)),
        # 3.4999999, likewise 3.5
        _quantised("next-to-a-tie-below", u8([[1]]), one, u8([[3]]), (0.25, 0.7, 0.05)),
        _quantised("saturates", i8([[100, -100]]), i8([[100, 1], [0, 101]]), i8([[127, -128]]), ones),
        _quantised("saturates-uint8", i8([[100, -100]]), i8([[100, 1], [0, 101]]), u8([[255, 0]]), ones),
        _quantised("saturates-far", u8([[255, 0]]), i8([[1], [1]]), i8([[127]]), (3e38, 3e38, 1e-45)),
        _quantised("rounds-to-nothing", u8([[255, 0]]), i8([[1], [1]]), i8([[0]]), (1e-45, 1e-45, 3e38)),
        # 1, 2 and 3 in the first row by 1/2, 4, 5 and 6 in the second by 2
        _quantised(
            "scales-of-rows-and-columns",
            u8([[1], [2]]),
            u8([[2, 4, 6]]),
            u8([[1, 4, 9], [8, 32, 72]]),
            ([[0.5], [2]], [[1, 2, 3]], 1),
        ),
        _quantised(
            "output-scale-of-rows",
            u8([[4], [4]]),
            u8([[2, 4]]),
            i8([[15, 31], [3, 7]]),
            (1, 1, [[0.5], [2]]),
            OutputZeroPoint=i8([[-1], [-1]]),
        ),
        _quantised(
            "output-zero-point-of-rows",
            u8([[4], [4]]),
            u8([[2, 4]]),
            u8([[9, 17], [11, 19]]),
            ones,
            OutputZeroPoint=u8([[1], [3]]),
        ),
        _quantised(
            "parameters-of-one-dimension",
            u8([[4], [4]]),
            u8([[2, 4]]),
            u8([[8, 0], [8, 0]]),
            ([1], [1, 0.5], [1]),
            BZeroPoint=u8([0, 4]),
        ),
        _quantised("below-0", u8(_A), u8(_B), i8([[-19, -22], [-43, -50]]), (1, -1, 1)),
        _quantised("output-scale-below-0", u8(_A), u8(_B), i8([[-10, -11], [-22, -25]]), (1, 1, -2)),
        # S is 1, 0 and -1: infinities saturate, and a NaN is the zero point.
        _quantised("scale-of-0", i8([[1], [0], [-1]]), one, i8([[127], [9], [-128]]), (1, 1, 0), OutputZeroPoint=i8(9)),
        _quantised(
            "infinite-scale", i8([[1], [0], [-1]]), one, i8([[127], [9], [-128]]), (INF, 1, 1), OutputZeroPoint=i8(9)
        ),
        _quantised("nan-scale", i8([[1], [0], [-1]]), one, i8([[9], [9], [9]]), (NAN, 1, 1), OutputZeroPoint=i8(9)),
        _quantised(
            "infinite-output-scale", i8([[1], [0], [-1]]), one, i8([[9], [9], [9]]), (1, 1, INF), OutputZeroPoint=i8(9)
        ),
        _quantised("batch", u8([[_A, _B]]), u8([[_B, _A]]), u8([[_PRODUCT, [[23, 34], [31, 46]]]]), ones),
        _quantised(
            "strided",
            u8(_A),
            u8(_B),
            u8(_PRODUCT),
            ([[1], [1]], 1, 1),
            strides={"A": (1, 5), "B": (9, 2), "AScale": (3, 1), "Output": (1, 4)},
        ),
    ]


def _real(id: str, a: Any, b: Any, y: Any, scales: Sequence[Any], **more: Any) -> Case:
    real = [np.array(scale, y.dtype) for scale in scales]
    strides = more.pop("strides", None)
    name = "MATRIX_MULTIPLY_INTEGER_TO_FLOAT"
    return _case(f"gemm-to-float-{id}", name, y, strides, A=a, B=b, AScale=real[0], BScale=real[1], **more)


def _all_real() -> list[Case]:
    u8, i8 = (lambda x: np.array(x, UINT8)), (lambda x: np.array(x, INT8))
    halved = [[9.5, 11], [21.5, 25]]
    kinds = [np.dtype(name.lower()) for name in INTEGERS.split()]
    least, most = np.full((1, 1), -(2**31), np.int32), np.full((1, 1), 2**31 - 1, np.int32)
    wide = np.broadcast_to(u8([[255]]), (1, 70000)), np.broadcast_to(u8([[255]]), (70000, 1))
    return [
        *(
            _real(f"{kind}-{real.__name__}", np.array(_A, kind), np.array(_B, kind), np.array(halved, real), (2, 0.25))
            for kind in kinds
            for real in (FLOAT32, FLOAT16)
        ),
        *(
            # (1 - 3) * (5 - 9) + (2 - 3) * (7 - 9) and so on
            _real(
                f"{kind}-zero-points",
                np.array(_A, kind),
                np.array(_B, kind),
                np.array([[10, 7], [-2, -1]], FLOAT32),
                (1, 1),
                AZeroPoint=np.array(3, kind),
                BZeroPoint=np.array(9, kind),
            )
            for kind in kinds
        ),
        _real("uint8-int8", u8([[200]]), i8([[-100]]), np.array([[-20000]], FLOAT32), (1, 1)),
        _real("int8-uint32", i8([[-1]]), np.array([[2**32 - 1]], np.uint32), np.array([[-(2.0**32)]], FLOAT32), (1, 1)),
        _real(
            "uint16",
            np.full((1, 2), 65535, np.uint16),
            np.full((2, 1), 65535, np.uint16),
            np.array([[2.0**33 - 2**18]], FLOAT32),
            (1, 1),
        ),
        # (-2^31 - (2^31 - 1)) * (2^31 - 1): exact, and rounded once
        _real(
            "farthest",
            least,
            most,
            np.array([[-(2.0**63)]], FLOAT32),
            (1, 1),
            AZeroPoint=most[0, 0],
            BZeroPoint=np.int32(0),
        ),
        # (-2^32 + 1)^2 is 2^64 - 2^33 + 1, which is 1 - 2^33 modulo 2^64
        _real(
            "wraps",
            least,
            least,
            np.array([[-(2.0**33)]], FLOAT32),
            (1, 1),
            AZeroPoint=most[0, 0],
            BZeroPoint=most[0, 0],
        ),
        # 70,000 * 65,025, beyond 32 bits
        _real(
            "long", wide[0], wide[1], np.array([[4551750144.0]], FLOAT32), (1, 1), strides={"A": (0, 0), "B": (0, 0)}
        ),
        _real(
            "bias",
            u8(_A),
            u8(_B),
            np.array([[29, 42], [73, 90]], FLOAT32),
            (1, 1),
            Bias=np.array([[10, 20], [30, 40]], FLOAT32),
        ),
        _real(
            "bias-of-columns",
            u8(_A),
            u8(_B),
            np.array([[29, 42], [53, 70]], FLOAT16),
            (1, 1),
            Bias=np.array([[10, 20], [10, 20]], FLOAT16),
            strides={"Bias": (0, 1)},
        ),
        # 2^24 + 1 is held in double precision, and 1 taken away again.
        _real(
            "rounds-once",
            u8([[1]]),
            u8([[1]]),
            np.array([[2.0**24]], FLOAT32),
            (1, 1),
            Bias=np.array([[2.0**24]], FLOAT32),
        ),
        _real(
            "float16-held-wide",
            u8([[255]]),
            u8([[255]]),
            np.array([[20688]], FLOAT16),
            (2, 1),
            Bias=np.array([[-65504]], FLOAT16),
            AZeroPoint=u8(0),
            BZeroPoint=u8(86),
        ),
        _real("float16-overflows", u8([[255, 255]]), u8([[255], [255]]), np.array([[INF]], FLOAT16), (1, 1)),
        _real(
            "scales-of-rows-and-columns",
            u8([[1], [2]]),
            u8([[2, 4, 6]]),
            np.array([[1, 4, 9], [8, 32, 72]], FLOAT32),
            ([[0.5], [2]], [[1, 2, 3]]),
        ),
        _real(
            "zero-points-of-rows-and-columns",
            np.array(_A, np.int16),
            np.array(_B, np.int16),
            np.array([[2, 0], [2, 0]], FLOAT32),
            (1, 1),
            AZeroPoint=np.array([[1], [3]], np.int16),
            BZeroPoint=np.array([[5, 8]], np.int16),
        ),
        _real("specials", u8([[1], [0]]), u8([[1, 0]]), np.array([[INF, NAN], [NAN, NAN]], FLOAT32), (INF, 1)),
        _real("batch", u8([[_A, _B]]), u8([[_B, _A]]), np.array([[_PRODUCT, [[23, 34], [31, 46]]]], FLOAT32), (1, 1)),
        _real(
            "strided",
            np.array(_A, np.uint16),
            np.array(_B, np.int32),
            np.array(_PRODUCT, FLOAT32),
            (1, 1),
            strides={"A": (1, 5), "B": (9, 2), "Output": (1, 4)},
        ),
    ]


CASES = [*_integers(), *_all_quantised(), *_all_real()]
