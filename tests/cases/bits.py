"""Operators on bits: every type as it lies in memory, shifts by more bits than there are, and strides."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from anydml.core.strided_layout import DATA_TYPES
from anydml.operators import spec
from anydml.operators.schema import OperatorDesc
from support_tables import ALL, Support

from . import Case, Negative, tensor, tensor_of
from .logical import by_tensor, types_beside

OF_PAIRS = ("BIT_SHIFT_LEFT", "BIT_SHIFT_RIGHT", "BIT_AND", "BIT_OR", "BIT_XOR")
HERE = (*OF_PAIRS, "BIT_NOT", "BIT_COUNT")


def _case(
    id: str,
    operator: str,
    inputs: Sequence[np.ndarray],
    y: np.ndarray,
    strides: Sequence[int] | None = None,
    out_strides: Sequence[int] | None = None,
) -> Case:
    """`strides` are those of the last input."""
    found = spec(f"ELEMENT_WISE_{operator}")
    tensors = {name: tensor_of(x) for name, x in zip(found.pointwise.inputs, inputs, strict=True)}
    tensors[found.pointwise.inputs[-1]] = tensor_of(inputs[-1], strides)
    desc = found.desc(**tensors, OutputTensor=tensor_of(y, out_strides))
    return Case(f"{operator.lower()}-{id}", desc, list(inputs), [y])


def _of_every_type() -> list[Case]:
    """All bits of elements, NaN among the floats; no float computes what stands here."""
    cases = []
    for dtype in DATA_TYPES:
        width = 8 * dtype.itemsize
        ones, top = 2**width - 1, 1 << width - 1
        high = ones ^ (ones >> width // 2)

        def bits(*numbers: int, dtype: np.dtype[Any] = dtype) -> np.ndarray:
            return np.array(numbers, f"u{dtype.itemsize}").view(dtype)

        a, b = bits(0, ones, high, top, 12, top | 5), bits(ones, ones, ones ^ high, top | 3, 10, 6)
        expected = {
            "BIT_AND": bits(0, ones, 0, top, 8, 4),
            "BIT_OR": bits(ones, ones, ones, top | 3, 14, top | 7),
            "BIT_XOR": bits(ones, 0, ones, 3, 6, top | 3),
        }
        cases += [_case(dtype.name, operator, [a, b], y) for operator, y in expected.items()]
        cases.append(
            _case(dtype.name, "BIT_NOT", [a], bits(ones, 0, ones ^ high, ones ^ top, ones ^ 12, top ^ 5 ^ ones))
        )
        counts = [0, width, width // 2, 1, 2, 3]
        cases += [
            _case(f"{dtype.name}-to-{np.dtype(kind).name}", "BIT_COUNT", [a], np.array(counts, kind))
            for kind in (np.uint8, np.uint32)
        ]
    return cases


def _shifts() -> list[Case]:
    cases = []
    for dtype in map(np.dtype, (np.uint8, np.uint16, np.uint32, np.uint64)):
        width = 8 * dtype.itemsize
        ones, top = 2**width - 1, 1 << width - 1
        # By 0, by all but one, and by more: only the amount modulo the width counts.
        a = np.array([5, ones, ones, top, 3, ones, top | 1, 9], dtype)
        b = np.array([0, 1, width - 1, 1, width, width + 2, ones, 3], dtype)
        left = np.array([5, ones - 1, top, 0, 3, ones - 3, top, 72], dtype)
        right = np.array([5, ones >> 1, 1, top >> 1, 3, ones >> 2, 1, 1], dtype)
        cases += [_case(dtype.name, f"BIT_SHIFT_{side}", [a, b], y) for side, y in (("LEFT", left), ("RIGHT", right))]
    return cases


_X = np.arange(6, dtype=np.uint16).reshape(2, 3)
PAGES = [
    _case("page", "BIT_COUNT", [np.array([[0, 123], [456, 789]], np.uint32)], np.array([[0, 6], [4, 5]], np.uint32)),
    _case("page", "BIT_NOT", [np.array([[0, 128], [42, 255]], np.uint8)], np.array([[255, 127], [213, 0]], np.uint8)),
]
LAYOUTS = [
    _case(
        "broadcast",
        "BIT_SHIFT_LEFT",
        [_X, np.array([[1, 1, 1], [2, 2, 2]], np.uint16)],
        np.array([[0, 2, 4], [12, 16, 20]], np.uint16),
        strides=(1, 0),
    ),
    _case("transposed", "BIT_OR", [_X, _X[::-1].copy()], np.array([[3, 5, 7], [3, 5, 7]], np.uint16), strides=(1, 2)),
    _case("gapped", "BIT_COUNT", [_X], np.array([[0, 1, 1], [2, 1, 2]], np.uint8), (1, 2), (8, 2)),
    _case(
        "transposed",
        "BIT_NOT",
        [np.float16([[1, 2], [3, 4]])],
        (~np.float16([[1, 2], [3, 4]]).view(np.uint16)).view(np.float16),
        (1, 2),
    ),
]

CASES = [*_of_every_type(), *_shifts(), *PAGES, *LAYOUTS]


def _right(operator: str, **members: Any) -> OperatorDesc:
    found = spec(f"ELEMENT_WISE_{operator}")
    return found.desc(**{**{name: tensor((2, 3), "UINT32") for name in found.tensors}, **members})


RIGHT = [_right(name) for name in HERE]


def _negatives() -> list[Negative]:
    found = []
    for operator in HERE:
        first = spec(f"ELEMENT_WISE_{operator}").pointwise.inputs[0]
        of_sizes = "(C1)" if operator == "BIT_COUNT" else "(C2)"
        longer, wider = tensor((2, 3, 1), "UINT32"), tensor((2, 4), "UINT32")
        found += [
            Negative(
                of_sizes,
                _right(operator, OutputTensor=longer),
                "OutputTensor.DimensionCount",
                "3",
                f"2, that of {first}",
            ),
            Negative(of_sizes, _right(operator, OutputTensor=wider), "OutputTensor.Sizes[1]", "4", "3"),
        ]
        if operator != "BIT_COUNT":
            other = _right(operator, OutputTensor=tensor((2, 3), "UINT8"))
            found.append(Negative("(C1)", other, "OutputTensor.DataType", "UINT8", f"UINT32, that of {first}"))
    return found


NEGATIVES = _negatives()

_WIDTHS = "UINT32 UINT16 UINT8"
_SHIFTS = [("2.1", 4, 4, _WIDTHS), ("3.0", 1, 8, _WIDTHS), ("4.1", 1, 8, f"UINT64 {_WIDTHS}")]
_BITS = [("3.0", 1, 8, _WIDTHS), ("4.1", 1, 8, ALL)]
SUPPORT = {
    **{f"ELEMENT_WISE_BIT_{name}": _BITS for name in ("AND", "OR", "XOR", "NOT")},
    **{f"ELEMENT_WISE_BIT_SHIFT_{side}": _SHIFTS for side in ("LEFT", "RIGHT")},
    "ELEMENT_WISE_BIT_COUNT": Support(by_tensor(_BITS, ":UINT32 UINT8", ["InputTensor"]), others=types_beside),
}
