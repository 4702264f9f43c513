"""LOCAL_RESPONSE_NORMALIZATION_GRAD; the cases of what it differentiates are in `normalization.py`.

By the definition: each result is a sum over pairs of an element and one that it lies around.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np

from anydml import DML_LOCAL_RESPONSE_NORMALIZATION_GRAD_OPERATOR_DESC
from support_tables import FLOATS, Support

from . import Case, Negative, tensor, tensor_of

NAN = np.nan


def _lies_around(one: Sequence[int], other: Sequence[int], across: bool, count: int) -> bool:
    """Whether the other one's square counts for this one."""
    along = (1,) if across else (2, 3)
    apart = [other[i] - one[i] for i in range(4)]
    return all(
        -((count - 1) // 2) <= apart[i] <= count // 2 if i in along else apart[i] == 0 for i in range(4)
    )  # fmt: skip


def expected(
    x: np.ndarray, g: np.ndarray, across: bool, count: int, alpha: float = 1, beta: float = 1, bias: float = 1
) -> np.ndarray:
    """d/dx of sum of g * x * s^-beta, pair by pair."""
    places = list(product(*map(range, x.shape)))
    wide, dy = x.astype(np.float64), g.astype(np.float64)
    s = np.empty(x.shape)
    for place in places:
        around = [other for other in places if _lies_around(place, other, across, count)]
        s[place] = bias + alpha / count * sum(wide[other] ** 2 for other in around)
    y = dy / s**beta
    for place in places:
        for other in places:
            if _lies_around(other, place, across, count):
                inner = -beta * s[other] ** (-beta - 1) * 2 * alpha / count * wide[place]
                y[place] += dy[other] * wide[other] * inner
    return y


def _case(
    id: str, x: np.ndarray, g: np.ndarray, across: bool, count: int, y: Any = None,
    strides: Sequence[Sequence[int] | None] = (None, None, None), **options: float,
) -> Case:  # fmt: skip
    members = {"Alpha": 1.0, "Beta": 1.0, "Bias": 1.0, **options}
    named = {name.lower(): value for name, value in members.items()}
    y = np.asarray(expected(x, g, across, count, **named) if y is None else y, x.dtype)
    desc = DML_LOCAL_RESPONSE_NORMALIZATION_GRAD_OPERATOR_DESC(
        InputTensor=tensor_of(x, strides[0]),
        InputGradientTensor=tensor_of(g, strides[1]),
        OutputGradientTensor=tensor_of(y, strides[2]),
        CrossChannel=across,
        LocalSize=count,
        **members,
    )
    return Case(f"local_response_normalization_grad-{id}", desc, [x, g], [y])


def _cases() -> list[Case]:
    cases = []
    for dtype in (np.float32, np.float16):
        kind = np.dtype(dtype).name
        x, g = np.array([1, 2, -3, 4], dtype).reshape(1, 4, 1, 1), np.array([2, -1, 0, 5], dtype).reshape(1, 4, 1, 1)
        cases += [_case(f"{kind}-across-{count}", x, g, True, count) for count in (1, 2, 3, 4, 9)]
        x = np.array([[[[1, 2, 0], [0, 3, 1]], [[0, 0, 0], [0, -1, 5]]]], dtype)
        g = np.array([[[[1, 1, 2], [3, 0, 1]], [[4, 0, 0], [2, 2, -1]]]], dtype)
        cases += [_case(f"{kind}-within-{count}", x, g, False, count, Alpha=3, Bias=2) for count in (1, 2, 3, 8)]
        cases.append(_case(f"{kind}-beta", x, g, False, 2, Beta=0.5, Bias=1))
        cases.append(_case(f"{kind}-without-alpha", x, g, True, 3, g, Alpha=0))
        # A NaN reaches as far as regions do that have it.
        x = np.array([0, NAN, 1, 0, 0, 3], dtype).reshape(1, 6, 1, 1)
        y = np.reshape([NAN, NAN, NAN, NAN, 0.1, 0.1 - 2 * 3 * 3 / 100], x.shape)
        cases.append(_case(f"{kind}-special", x, np.ones(x.shape, dtype), True, 3, y, Alpha=3))
        # Beside a NaN, what is far larger than Bias is not taken for little; and an infinite gradient stays one.
        x = np.array([[NAN, 0.25, 0.25, 4], [1, 64, 0.5, 1]], dtype).T.reshape(1, 4, 1, 2)
        g = np.array([[1, 2, 1, 1], [1, -2, 1, 3]], dtype).T.reshape(1, 4, 1, 2)
        cases.append(_case(f"{kind}-beside-nan", x, g, True, 3, Alpha=3 / 128))
        x, g = np.full((1, 3, 1, 1), 0.25, dtype), np.array([1, np.inf, 1], dtype).reshape(1, 3, 1, 1)
        y = np.reshape([-np.inf, NAN, -np.inf], x.shape)
        cases.append(_case(f"{kind}-infinite", x, g, True, 3, y, Alpha=3 / 128))
        # What the type does not hold is infinite.
        g, y = np.array([1, np.finfo(dtype).max, 0], dtype).reshape(x.shape), np.reshape([2, np.inf, 0], x.shape)
        cases.append(_case(f"{kind}-overflow", x, g, True, 3, y, Alpha=0, Bias=0.5))
    x = np.float32([[[[1, 2], [3, 4]], [[0, -1], [2, 5]]]])
    g = np.float32([[[[1, 0], [2, 1]], [[1, 1], [0, 3]]]])
    strides = ((0, 4, 1, 2), (9, 1, 2, 4), (80, 30, 4, 9))
    cases.append(_case("strided", x, g, True, 2, strides=strides))
    cases.append(_case("strided-within", x, g, False, 2, strides=strides))
    return cases


CASES = _cases()


def _gradient(**members: Any) -> DML_LOCAL_RESPONSE_NORMALIZATION_GRAD_OPERATOR_DESC:
    x = tensor((2, 3, 4, 5))
    tensors = dict.fromkeys(("InputTensor", "InputGradientTensor", "OutputGradientTensor"), x)
    numbers = {"Alpha": 1, "Beta": 1, "Bias": 1, "LocalSize": 5, "CrossChannel": True}
    return DML_LOCAL_RESPONSE_NORMALIZATION_GRAD_OPERATOR_DESC(**{**tensors, **numbers, **members})


RIGHT = [_gradient()]
NEGATIVES = [
    *(
        negative
        for name in ("InputGradientTensor", "OutputGradientTensor")
        for negative in (
            Negative("(C1)", _gradient(**{name: tensor((2, 3, 4, 5), "FLOAT16")}), f"{name}.DataType", "FLOAT16",
                "FLOAT32, that of InputTensor"),
            Negative("(C2)", _gradient(**{name: tensor((2, 3, 4, 6))}),
                "InputGradientTensor.Sizes" if name == "InputGradientTensor" else f"{name}.Sizes[3]", "6", "5"),
        )
    ),
    Negative("(C3)", _gradient(LocalSize=0), "LocalSize", "0", "at least 1"),
]  # fmt: skip

SUPPORT = {
    "LOCAL_RESPONSE_NORMALIZATION_GRAD": Support(
        [("3.1", 4, 4, FLOATS)], members=lambda output: {"CrossChannel": True, "LocalSize": 1}
    )
}

KERNELS = {"LOCAL_RESPONSE_NORMALIZATION_GRAD": "gradients of local responses, (columns of channels|planes)"}
