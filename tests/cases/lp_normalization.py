"""LP_NORMALIZATION: norms that come out even, Epsilon beside small ones, and what is special about floats."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from anydml import DML_LP_NORMALIZATION_OPERATOR_DESC
from support_tables import FLOATS, Support

from . import Case, Negative, tensor, tensor_of

INF, NAN = np.inf, np.nan


def _case(
    id: str, x: Any, y: Any, axis: int, p: int, epsilon: float = 0, dtype: Any = np.float32,
    strides: tuple[Sequence[int] | None, Sequence[int] | None] = (None, None),
) -> Case:  # fmt: skip
    x, y = np.asarray(x, dtype), np.asarray(y, dtype)
    desc = DML_LP_NORMALIZATION_OPERATOR_DESC(
        InputTensor=tensor_of(x, strides[0]), OutputTensor=tensor_of(y, strides[1]), Axis=axis, Epsilon=epsilon, P=p
    )
    options = {"axis": axis, "p": p, "epsilon": epsilon}
    return Case(f"lp_normalization-{id}", desc, [x], [y], "lp_normalization", [x], options)


def _cases() -> list[Case]:
    cases = []
    for dtype in (np.float32, np.float16):
        kind = np.dtype(dtype).name
        x = np.array([[[[3, 4], [-6, 8]], [[0, 5], [12, -5]]]], dtype)
        of_2 = np.array([[[[5], [10]], [[5], [13]]]])
        of_1 = np.array([[[[7], [14]], [[5], [17]]]])
        cases += [
            _case(f"{kind}-2", x, x / of_2, 3, 2, dtype=dtype),
            _case(f"{kind}-1", x, x / of_1, 3, 1, dtype=dtype),
            _case(f"{kind}-along-rows", x, x / np.array([[[[9, 12]], [[12, 10]]]]), 2, 1, dtype=dtype),
            _case(f"{kind}-along-channels", x, x / np.array([[[[3, 9], [18, 13]]]]), 1, 1, dtype=dtype),
            _case(f"{kind}-of-one", x, np.sign(x), 0, 2, dtype=dtype, epsilon=0.5),
            # Where the norm is less than Epsilon, that is divided by.
            _case(f"{kind}-epsilon", [[[[0, 0]], [[3, 4]]]], [[[[0, 0]], [[0.375, 0.5]]]], 3, 2, 8, dtype),
            _case(f"{kind}-zeros", [[[[0, -0.0, 0]]]], [[[[NAN, NAN, NAN]]]], 3, 1, dtype=dtype),
            _case(f"{kind}-special", [[[[1, INF], [NAN, 1], [-INF, 0]]]], [[[[0, NAN], [NAN, NAN], [NAN, 0]]]], 3, 2, 1,
                dtype),
        ]  # fmt: skip
        # Squares and sums beyond the type's range.
        largest = float(np.finfo(dtype).max)
        x = np.array([[[[largest, -largest, largest, largest]]]], dtype)
        cases.append(_case(f"{kind}-wide-2", x, x / largest / 2, 3, 2, dtype=dtype))
        cases.append(_case(f"{kind}-wide-1", x, x / largest / 4, 3, 1, dtype=dtype))
    x = np.array([[[[3, 4, 0]], [[4, 3, 5]]]], np.float32)
    y = x / 5
    cases += [
        _case("strided", x, y, 1, 2, strides=((9, 1, 5, 2), (40, 5, 9, 1))),
        _case("broadcast", np.ones((1, 1, 2, 4)), np.full((1, 1, 2, 4), 0.25), 3, 1, strides=((0, 0, 0, 0), None)),
    ]
    return cases


CASES = _cases()


def _normalization(**members: Any) -> DML_LP_NORMALIZATION_OPERATOR_DESC:
    x = tensor((2, 3, 4, 5))
    return DML_LP_NORMALIZATION_OPERATOR_DESC(
        **{"InputTensor": x, "OutputTensor": x, "Axis": 1, "Epsilon": 0, "P": 2, **members}
    )


RIGHT = [_normalization(), _normalization(P=1)]
NEGATIVES = [
    Negative("(C1)", _normalization(OutputTensor=tensor((2, 3, 4, 5), "FLOAT16")), "OutputTensor.DataType", "FLOAT16",
        "FLOAT32, that of InputTensor"),
    Negative("(C2)", _normalization(OutputTensor=tensor((2, 3, 4, 6))), "OutputTensor.Sizes[3]", "6", "5"),
    Negative("(C3)", _normalization(Axis=4), "Axis", "4", "less than 4, the DimensionCount of InputTensor"),
    Negative("(C4)", _normalization(P=0), "P", "0", "1 or 2"),
    Negative("(C4)", _normalization(P=3), "P", "3", "1 or 2"),
]  # fmt: skip

SUPPORT = {"LP_NORMALIZATION": Support([("1.0", 4, 4, FLOATS)], members=lambda output: {"Axis": 0, "P": 2})}

KERNELS = {"LP_NORMALIZATION": "norm of groups of "}
