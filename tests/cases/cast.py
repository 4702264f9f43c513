"""CAST: every pair of types, and what becomes of values that the other type does not have."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from anydml import DML_CAST_OPERATOR_DESC
from anydml.core.strided_layout import DATA_TYPES
from support_tables import ALL, ALL_BUT_DOUBLE, Support

from . import Case, Negative, tensor, tensor_of

INF, NAN = np.inf, np.nan


def _case(
    id: str,
    x: np.ndarray,
    y: np.ndarray,
    strides: Sequence[int] | None = None,
    out_strides: Sequence[int] | None = None,
) -> Case:
    desc = DML_CAST_OPERATOR_DESC(InputTensor=tensor_of(x, strides), OutputTensor=tensor_of(y, out_strides))
    return Case(f"cast-{id}", desc, [x], [y])


PAIRS = [
    _case(f"{a.name}-to-{b.name}", np.array([0, 1, 2, 100], a), np.array([0, 1, 2, 100], b))
    for a in DATA_TYPES
    for b in DATA_TYPES
]

_INTEGERS = {dtype: (int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)) for dtype in DATA_TYPES if dtype.kind in "iu"}
_FLOATS = [dtype for dtype in DATA_TYPES if dtype.kind == "f"]
_ODD = [2.5, -2.5, 0.99, -0.99, 3.5, NAN, INF, -INF]

OF_FLOATS = [
    _case(
        f"odd-{a.name}-to-{b.name}",
        np.array(_ODD, a),
        # Truncated, and saturated: those below 0 to 0 where there are no negative ones.
        np.array([2, -2 if low else 0, 0, 0, 3, 0, high, low], b),
    )
    for a in _FLOATS
    for b, (low, high) in _INTEGERS.items()
] + [
    _case(
        f"special-{a.name}-to-{b.name}", np.array([-0.0, 1.5, NAN, INF, -INF], a), np.array([0, 1.5, NAN, INF, -INF], b)
    )
    for a in _FLOATS
    for b in _FLOATS
]

_ENDS = [-1.0, 127.0, 128.0, -128.0, -129.0, 255.0, 256.0, 65504.0]
_LARGE = np.array([2.0**31, -(2.0**31), 2.0**32, 2.0**63, -(2.0**63), 2.0**64], np.float32)
_HALF_WAY = 1 + 2.0**-11  # between 1 and the next float of half precision
_NANS = np.array([0x7FC01234, 0xFF812345, 0x7F800001], np.uint32).view(np.float32)
_TABLE = np.array([[1.5, -2.5, 3.5], [-4.5, 5.5, 300]], np.float32)

EDGES = [
    _case("ends-to-int8", np.array(_ENDS, np.float16), np.array([-1, 127, 127, -128, -128, 127, 127, 127], np.int8)),
    _case("ends-to-uint8", np.array(_ENDS, np.float16), np.array([0, 127, 128, 0, 0, 255, 255, 255], np.uint8)),
    _case("ends-to-uint16", np.array(_ENDS, np.float16), np.array([0, 127, 128, 0, 0, 255, 256, 65504], np.uint16)),
    _case(
        "large-to-int32",
        _LARGE,
        np.array([2**31 - 1, -(2**31), 2**31 - 1, 2**31 - 1, -(2**31), 2**31 - 1], np.int32),
    ),
    _case("large-to-uint32", _LARGE, np.array([2**31, 0, 2**32 - 1, 2**32 - 1, 0, 2**32 - 1], np.uint32)),
    _case(
        "large-to-int64",
        _LARGE,
        np.array([2**31, -(2**31), 2**32, 2**63 - 1, -(2**63), 2**63 - 1], np.int64),
    ),
    _case("large-to-uint64", _LARGE, np.array([2**31, 0, 2**32, 2**63, 0, 2**64 - 1], np.uint64)),
    _case("int64-to-int8", np.array([127, 128, 255, 256, -129]), np.array([127, -128, -1, 0, 127], np.int8)),
    _case("int8-to-uint64", np.array([-1, -128, 5], np.int8), np.array([2**64 - 1, 2**64 - 128, 5], np.uint64)),
    _case("uint32-to-int32", np.array([2**32 - 1, 2**31], np.uint32), np.array([-1, -(2**31)], np.int32)),
    # To the nearest, and of two such to the even one.
    _case(
        "integers-to-float32",
        np.array([2**24 + 1, 2**24 + 3, 2**62 + 2**38 + 1, -(2**24) - 1, 2**63 - 1]),
        np.array([2.0**24, 2.0**24 + 4, 2.0**62 + 2.0**39, -(2.0**24), 2.0**63], np.float32),
    ),
    _case("uint64-to-float64", np.array([2**64 - 1, 2**53 + 1], np.uint64), np.array([2.0**64, 2.0**53])),
    _case("uint32-to-float16", np.array([65519, 65520, 2049], np.uint32), np.array([65504, INF, 2048], np.float16)),
    # A float between two others of half precision, but nearer to one of them than single precision has it.
    _case(
        "float64-to-float16-rounds-once",
        np.array([_HALF_WAY, _HALF_WAY + 2.0**-40, 65519.9, 1e300, 1e-300]),
        np.array([1, 1 + 2.0**-10, 65504, INF, 0], np.float16),
    ),
    _case("float64-to-float32", np.array([0.1, 1e39, -1e39, 1e-46]), np.array([0.1, INF, -INF, 0], np.float32)),
    _case("float32-to-float16", np.array([65520, -65519, 1e-8], np.float32), np.array([INF, -65504, 0], np.float16)),
    _case("nan-payloads-of-one-type", _NANS, _NANS),
    _case("transposed-to-gapped", _TABLE, np.array([[1, -2, 3], [-4, 5, 127]], np.int8), (1, 2), (20, 3)),
    _case("eight-dimensions", _TABLE.reshape(1, 2, 1, 1, 3, 1, 1, 1), np.array([1, 0, 3, 0, 5, 255], np.uint8)
        .reshape(1, 2, 1, 1, 3, 1, 1, 1)),
]  # fmt: skip

CASES = [*PAIRS, *OF_FLOATS, *EDGES]


def _cast(output: Sequence[int]) -> DML_CAST_OPERATOR_DESC:
    return DML_CAST_OPERATOR_DESC(InputTensor=tensor((2, 3)), OutputTensor=tensor(output, "INT8"))


NEGATIVES = [
    Negative("(C1)", _cast((2, 3, 1)), "OutputTensor.DimensionCount", "3", "2, that of InputTensor"),
    Negative("(C1)", _cast((2, 4)), "OutputTensor.Sizes[1]", "4", "3"),
]

RIGHT = [_cast((2, 3))]
KERNELS = {"CAST": "(cast|movement) of "}
SUPPORT = {
    "CAST": Support(
        [
            ("1.0", 4, 4, "FLOAT32 FLOAT16 INT16 INT8 UINT16 UINT8"),
            ("3.0", 4, 4, ALL_BUT_DOUBLE),
            ("3.1", 1, 8, ALL_BUT_DOUBLE),
            ("4.1", 1, 8, ALL),
        ]
    ),
}
