"""RESAMPLE, its revisions and gradients: ties, ends, offsets, ratios that single precision has not, antialiasing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from anydml.core.enums import AxisDirection, InterpolationMode
from anydml.operators import spec
from anydml.operators.schema import OperatorDesc
from support_tables import FLOATS, Support

from . import Case, Negative, tensor, tensor_of

INF, NAN = np.inf, np.nan
NEAREST, LINEAR = InterpolationMode.NEAREST_NEIGHBOR, InterpolationMode.LINEAR
UP, DOWN = AxisDirection.INCREASING, AxisDirection.DECREASING
_GRADIENTS = ("RESAMPLE_GRAD", "RESAMPLE_GRAD1")
_NAMES = ("RESAMPLE", "RESAMPLE1", "RESAMPLE2", "RESAMPLE3", *_GRADIENTS)


def _case(
    operator: str,
    id: str,
    x: Any,
    y: Any,
    scales: Sequence[float],
    mode: InterpolationMode = LINEAR,
    offsets: tuple[float, float] = (0.5, -0.5),
    direction: AxisDirection = DOWN,
    antialiased: bool = False,
    dtype: Any = np.float32,
    strides: Sequence[int] | None = None,
    out_strides: Sequence[int] | None = None,
) -> Case:
    x, y = np.asarray(x, dtype), np.asarray(y, dtype)
    first, second = spec(operator).tensors
    members = {
        first: tensor_of(x, strides),
        second: tensor_of(y, out_strides),
        "InterpolationMode": mode,
        "RoundingDirection": direction,
        "Scales": scales,
        "InputPixelOffsets": [offsets[0]] * x.ndim,
        "OutputPixelOffsets": [offsets[1]] * x.ndim,
        "Antialiased": antialiased,
    }
    found = spec(operator)
    desc = found.desc(**{name: value for name, value in members.items() if name in found.members})
    return Case(f"{operator.lower()}-{id}", desc, [x], [y])


_SQUARE = [[0.0, 4], [8, 16]]
_ENLARGED = [[0, 1, 3, 4], [2, 3.25, 5.75, 7], [6, 7.75, 11.25, 13], [8, 10, 14, 16]]
_NANS = np.array([0x7FC01234, 0xFF812345], np.uint32).view(np.float32)

CASES = [
    # Every revision, at the same places.
    *[_case(name, "linear", _SQUARE, _ENLARGED, (2, 2)) for name in _NAMES[:4]],
    *[_case(name, "rows", _SQUARE, [[0, 1, 3, 4], [8, 10, 14, 16]], (1, 2)) for name in _NAMES[:4]],
    *[_case(name, "rows", [[1, 2, 3, 4], [0, 4, 8, 4]], [[3.25, 6.75], [5, 11]], (1, 2)) for name in _GRADIENTS],
    *[_case(name, "linear-float16", _SQUARE, _ENLARGED, (2, 2), dtype=np.float16) for name in _NAMES[:4]],
    *[_case(name, "nearest", [1, 2, 3], [1, 1, 2, 2, 3, 3], (2,), NEAREST) for name in _NAMES[:2]],
    # Of two as near the later one: (o + 1/2) / 1.5 - 1/2 is 1/2 for the second.
    *[_case(name, "nearest-tie", [1, 2], [1, 2, 2], (1.5,), NEAREST) for name in _NAMES[:2]],
    *[_case(name, "nearest-nan-payloads", _NANS, _NANS.repeat(3), (3,), NEAREST) for name in _NAMES[:2]],
    # 0, 2/3, 4/3.
    *[_case(name, "down", [1, 2], [1, 1, 2], (1.5,), NEAREST, (0, 0)) for name in _NAMES[2:4]],
    *[_case(name, "up", [1, 2], [1, 2, 2], (1.5,), NEAREST, (0, 0), UP) for name in _NAMES[2:4]],
    # Single precision has no third and no seventh; the elements are whole places apart all the same.
    *[_case(name, "third", range(7), [0, 3, 6], (1 / 3,), NEAREST, (0, 0)) for name in _NAMES[2:4]],
    *[_case(name, "seventh", range(16), [0, 7, 14], (1 / 7,), NEAREST, (0, 0)) for name in _NAMES[2:4]],
    _case("RESAMPLE2", "third-up", range(7), [0, 3, 6], (1 / 3,), NEAREST, (0, 0), UP),
    # Of integers the nearest, of two the even one.
    *[_case(name, "linear-int8", [-4, -1, 2], [-4, -3, -2, 0, 1, 2], (2,), dtype=np.int8) for name in _NAMES[:4]],
    *[_case(name, "linear-uint8", [0, 255], [0, 64, 191, 255], (2,), dtype=np.uint8) for name in _NAMES[:4]],
    *[_case(name, "ties-to-even", [0, 1, 2], [0, 0, 1, 2, 2], (2,), offsets=(0, 0), dtype=np.uint8)
        for name in _NAMES[1:4]],
    # The ends of what is cut off, and of what is too small.
    _case("RESAMPLE", "cropped", [0, 4, 8], [0, 1, 3], (2,)),
    _case("RESAMPLE", "clamped", [0, 4], [0, 1, 3, 4, 4, 4], (2,)),
    _case("RESAMPLE1", "before-the-first", [1, 3], [1, 1, 1, 2, 3], (1,), offsets=(0.5, 2)),
    _case("RESAMPLE1", "corners", [0, 3, 6], [0, 1, 2, 3, 4, 5, 6], (3,), offsets=(0, 0)),
    _case("RESAMPLE1", "special", [INF, 1, NAN], [INF, INF, 1, NAN, NAN], (2,), offsets=(0, 0)),
    _case("RESAMPLE", "one-element", [[7]], [[7, 7, 7]] * 2, (2, 3)),
    _case("RESAMPLE", "reduced", [0, 1, 2, 3], [0.5, 2.5], (0.5,)),
    _case("RESAMPLE", "quadrilinear", np.arange(16).reshape(2, 2, 2, 2), [[[[7.5]]]], (0.5, 0.5, 0.5, 0.5)),
    _case("RESAMPLE", "channels", [[[[0]], [[4]]]], [[[[0]], [[1]], [[3]], [[4]]]], (1, 2, 1, 1)),
    _case("RESAMPLE", "transposed-to-gapped", [_SQUARE], [_ENLARGED], (1, 2, 2), strides=(4, 1, 2),
        out_strides=(99, 17, 3)),
    _case("RESAMPLE2", "nearest-broadcast-to-gapped", [[5, 5], [5, 5]], [[5] * 4] * 4, (2, 2), NEAREST,
        strides=(0, 0), out_strides=(9, 2)),
    # 0.6 stretches the filter to 5/3: weights 1 and 3/5, of which 1/5 is of the first element, which ends there.
    _case("RESAMPLE3", "antialiased", np.arange(1, 17).reshape(4, 4), [[2.875, 4.5], [9.375, 11]], (0.6, 0.6),
        antialiased=True),
    # Weights 1, 3, 3, 1 of eighths, of which the first are the first element's.
    _case("RESAMPLE3", "antialiased-half", [0, 8, 16, 24], [5, 19], (0.5,), antialiased=True),
    _case("RESAMPLE3", "antialiased-enlarged", [0, 4], [0, 1, 3, 4], (2,), antialiased=True),
    _case("RESAMPLE3", "antialiased-nearest", [0, 1, 2, 3], [0, 2], (0.5,), NEAREST, antialiased=True),
    # The pages' example.
    _case("RESAMPLE_GRAD", "page", [[4, 5, 6]], [[9, 6], [0, 0]], (0.5, 1.5), NEAREST, (0.5, 0)),
    _case("RESAMPLE_GRAD1", "page", [[4, 5, 6]], [[9, 6], [0, 0]], (0.5, 1.5), NEAREST, (0, 0)),
    *[_case(name, "linear", [1, 2, 3, 4], [3.25, 6.75], (2,)) for name in _GRADIENTS],
    *[_case(name, "linear-float16", [1, 2, 3, 4], [3.25, 6.75], (2,), dtype=np.float16) for name in _GRADIENTS],
    *[_case(name, "reduced", [2, 6], [1, 1, 3, 3], (0.5,)) for name in _GRADIENTS],
    # The third output is the second element's, and the first's a multiple of 0 of it.
    _case("RESAMPLE_GRAD", "special", [1, 2, INF], [2, INF], (2,), offsets=(0, 0)),
    _case("RESAMPLE_GRAD", "cancels-in-order", [2.0**60, 1, -(2.0**60)], [0], (3,), NEAREST),
    _case("RESAMPLE_GRAD1", "transposed-to-gapped", [[1, 2, 3, 4], [5, 6, 7, 8]], [[3.25, 6.75], [11.25, 14.75]],
        (1, 2), strides=(1, 2), out_strides=(9, 2)),
]  # fmt: skip


def _right(operator: str, **members: Any) -> OperatorDesc:
    found = spec(operator)
    first, second = found.tensors
    right: dict[str, Any] = {
        first: tensor((2, 3)),
        second: tensor((4, 3)),
        "InterpolationMode": LINEAR,
        "RoundingDirection": UP,
        "Scales": (2, 1),
        "InputPixelOffsets": (0.5, 0.5),
        "OutputPixelOffsets": (-0.5, -0.5),
        "Antialiased": False,
    }
    return found.desc(**{name: value for name, value in right.items() if name in found.members} | members)


def _negatives(operator: str) -> list[Negative]:
    (first, second), count = spec(operator).tensors, next(iter(spec(operator).desc.counts))
    half, long, _as_first = tensor((4, 3), "FLOAT16"), tensor((4, 3, 1)), f"FLOAT32, that of {first}"
    negatives = [
        Negative(
            "(C1)", _right(operator, **{second: half}), f"{second}.DataType", "FLOAT16", f"FLOAT32, that of {first}"
        ),
        Negative("(C2)", _right(operator, **{second: long}), f"{second}.DimensionCount", "3", f"2, that of {first}"),
        Negative(
            "(C3)",
            _right(operator, **dict.fromkeys(spec(operator).desc.counts[count], (1, 1, 1))),
            count,
            "3",
            f"2, that of {first}",
        ),
        *[
            Negative("(C4)", _right(operator, Scales=(1, scale)), "Scales[1]", str(float(scale)), "a positive number")
            for scale in (0, -2, INF, NAN)
        ],
    ]
    if operator == "RESAMPLE":
        return negatives
    return negatives + [
        Negative("(C5)", _right(operator, **{name: (INF, 0)}), f"{name}[0]", "inf", "a finite number")
        for name in ("InputPixelOffsets", "OutputPixelOffsets")
    ]


NEGATIVES = [negative for operator in _NAMES for negative in _negatives(operator)]
RIGHT = [_right(operator) for operator in _NAMES]
KERNELS = dict.fromkeys(_NAMES, "weighted sums of |units of |movement ")


def _members(*names: str) -> Any:
    return lambda output: {name: (1,) * output[0] for name in names}


_ARRAYS = _members("Scales", "InputPixelOffsets", "OutputPixelOffsets")
_ALL = f"{FLOATS} INT8 UINT8"
SUPPORT = {
    "RESAMPLE": Support(
        [("2.0", 4, 4, FLOATS), ("5.1", 1, 4, FLOATS), ("6.2", 1, 4, _ALL)], members=_members("Scales")
    ),
    "RESAMPLE1": Support([("2.1", 4, 4, FLOATS), ("5.1", 1, 4, FLOATS), ("6.2", 1, 4, _ALL)], members=_ARRAYS),
    "RESAMPLE_GRAD": Support([("3.0", 4, 4, FLOATS), ("5.1", 1, 4, FLOATS)], members=_ARRAYS),
    "RESAMPLE2": Support([("5.1", 1, 4, FLOATS), ("6.2", 1, 4, _ALL)], members=_ARRAYS),
    "RESAMPLE_GRAD1": Support([("5.1", 1, 4, FLOATS)], members=_ARRAYS),
    "RESAMPLE3": Support([("6.4", 1, 4, _ALL)], members=lambda output: {**_ARRAYS(output), "Antialiased": False}),
}
