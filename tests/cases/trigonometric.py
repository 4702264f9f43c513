"""The circular and hyperbolic functions and their inverses: ordinary values, ends, and angles of any size."""

from __future__ import annotations

import numpy as np

from anydml import DML_SCALE_BIAS
from anydml.operators import OPERATORS
from support_tables import FLOATS, Rows, Support

from . import Case, Negative, alike, bad, negatives_of_alike, pointwise

INF, NAN = np.inf, np.nan

X = [-INF, -2, -1, -0.5, 0, 0.25, 1, 2, INF, NAN]
PI = 3.141592653589793
RESULTS = {
    "ACOS": [NAN, NAN, PI, 2.0943951023931957, PI / 2, 1.318116071652818, 0, NAN, NAN, NAN],
    "ASIN": [NAN, NAN, -PI / 2, -0.5235987755982989, 0, 0.25268025514207865, PI / 2, NAN, NAN, NAN],
    "ATAN":
        [-PI / 2, -1.1071487177940904, -PI / 4, -0.4636476090008061, 0, 0.24497866312686414, PI / 4,
         1.1071487177940904, PI / 2, NAN],
    "SIN":
        [NAN, -0.9092974268256817, -0.8414709848078965, -0.479425538604203, 0, 0.24740395925452294,
         0.8414709848078965, 0.9092974268256817, NAN, NAN],
    "COS":
        [NAN, -0.4161468365471424, 0.5403023058681398, 0.8775825618903728, 1, 0.9689124217106447, 0.5403023058681398,
         -0.4161468365471424, NAN, NAN],
    "TAN":
        [NAN, 2.185039863261519, -1.5574077246549023, -0.5463024898437905, 0, 0.25534192122103627,
         1.5574077246549023, -2.185039863261519, NAN, NAN],
    "SINH":
        [-INF, -3.6268604078470186, -1.1752011936438014, -0.5210953054937474, 0, 0.2526123168081683,
         1.1752011936438014, 3.6268604078470186, INF, NAN],
    "COSH":
        [INF, 3.7621956910836314, 1.5430806348152437, 1.1276259652063807, 1, 1.0314130998795732, 1.5430806348152437,
         3.7621956910836314, INF, NAN],
    "TANH":
        [-1, -0.9640275800758169, -0.7615941559557649, -0.46211715726000974, 0, 0.24491866240370913,
         0.7615941559557649, 0.9640275800758169, 1, NAN],
    "ASINH":
        [-INF, -1.4436354751788103, -0.881373587019543, -0.48121182505960347, 0, 0.24746646154726346,
         0.881373587019543, 1.4436354751788103, INF, NAN],
    "ACOSH": [NAN, NAN, NAN, NAN, NAN, NAN, 0, 1.3169578969248168, INF, NAN],
    "ATANH": [NAN, NAN, -INF, -0.5493061443340549, 0, 0.25541281188299536, INF, NAN, NAN, NAN],
}  # fmt: skip
"""f(X)."""

SCALED = {
    "ACOS": [1.8234765819369754, 1.318116071652818, 0.7227342478134157],
    "ASIN": [-0.25268025514207865, 0.25268025514207865, 0.848062078981481],
    "ATAN": [-0.24497866312686414, 0.24497866312686414, 0.6435011087932844],
    "SIN": [-0.24740395925452294, 0.24740395925452294, 0.6816387600233341],
    "COS": [0.9689124217106447, 0.9689124217106447, 0.7316888688738209],
    "TAN": [-0.25534192122103627, 0.25534192122103627, 0.9315964599440725],
    "SINH": [-0.2526123168081683, 0.2526123168081683, 0.82231673193583],
    "COSH": [1.0314130998795732, 1.0314130998795732, 1.2946832846768448],
    "TANH": [-0.24491866240370913, 0.24491866240370913, 0.6351489523872873],
    "ASINH": [-0.24746646154726346, 0.24746646154726346, 0.6931471805599453],
    "ACOSH": [NAN, NAN, NAN],
    "ATANH": [-0.25541281188299536, 0.25541281188299536, 0.9729550745276566],
}
"""f(x / 2 + 1/4) of -1, 0 and 1."""


def _case(id: str, operator: str, x: np.ndarray, y: object, **options: object) -> Case:
    return pointwise(id, f"ELEMENT_WISE_{operator}", [x], y, **options)


def _floats() -> list[Case]:
    cases = []
    for dtype in (np.float32, np.float16):
        kind = np.dtype(dtype).name
        cases += [_case(kind, operator, np.array(X, dtype), y) for operator, y in RESULTS.items()]
        scaling = DML_SCALE_BIAS(Scale=0.5, Bias=0.25)
        x = np.array([-1, 0, 1], dtype)
        cases += [_case(f"{kind}-scaled", operator, x, y, ScaleBias=scaling) for operator, y in SCALED.items()]
        # From the positive half of the axis x counter-clockwise; of two zeros by their signs.
        points = [
            *((0, 1, 0), (1, 1, PI / 4), (2, 0, PI / 2), (1, -1, 3 * PI / 4), (0, -1, PI), (-0.0, -1, -PI)),
            *((-1, -1, -3 * PI / 4), (-2, 0, -PI / 2), (-1, 1, -PI / 4), (-0.0, 1, 0)),
            *((0, 0, 0), (0, -0.0, PI), (-0.0, -0.0, -PI), (-0.0, 0, 0)),
            *((INF, INF, PI / 4), (INF, -INF, 3 * PI / 4), (-INF, 5, -PI / 2), (5, INF, 0), (5, -INF, PI)),
            *((NAN, 1, NAN), (1, NAN, NAN)),
        ]
        y, x, angles = (np.array(each, dtype) for each in zip(*points, strict=True))
        cases.append(pointwise(kind, "ELEMENT_WISE_ATAN_YX", [y, x], angles))
    return cases


def _far() -> list[Case]:
    """Angles that are reduced by many digits of pi; and where a formula taken literally would overflow, or would lose
    what is near 0."""
    large, largest, tiny = ([np.float32(each)] for each in (1e30, 3.4028234663852886e38, 1e-30))
    results = {
        "SIN": (-0.7911634385219837, -0.5218765233336585, 1.0000000031710769e-30),
        "COS": (-0.6116047854178966, 0.8530210398303042, 1),
        "TAN": (1.2935860826880194, -0.6117979498342481, 1.0000000031710769e-30),
        "ASINH": (69.77069998542878, 89.4159862326283, 1.0000000031710769e-30),
        "ACOSH": (69.77069998542878, 89.4159862326283, NAN),
        "SINH": (INF, INF, 1.0000000031710769e-30),
    }
    x = np.array([*large, *largest, *tiny])
    cases = [_case("far", operator, x, y) for operator, y in results.items()]
    half = np.array([65504], np.float16)
    of_half = {"SIN": 0.9753761096791481, "COS": -0.22054805523325388, "TAN": -4.42251058912118}
    return cases + [_case("far-float16", operator, half, [y]) for operator, y in of_half.items()]


def _layouts() -> list[Case]:
    x = np.array([[0, 1, -1], [2, 0.25, -0.5]], np.float32)
    sines = [
        [0, 0.8414709848078965, -0.8414709848078965],
        [0.9092974268256817, 0.24740395925452294, -0.479425538604203],
    ]
    y = np.array([[1, 1, 1], [-1, -1, -1]], np.float32)
    return [
        pointwise("transposed", "ELEMENT_WISE_SIN", [x], sines, strides=(1, 2)),
        pointwise("broadcast", "ELEMENT_WISE_ATAN_YX", [y, np.array([[1, 0, -1]] * 2, np.float32)],
            [[PI / 4, PI / 2, 3 * PI / 4], [-PI / 4, -PI / 2, -3 * PI / 4]], strides=(0, 1)),
        pointwise("eight-dimensions", "ELEMENT_WISE_COS", [np.zeros((1, 2, 1, 1, 2, 1, 1, 2), np.float16)],
            np.ones((1, 2, 1, 1, 2, 1, 1, 2))),
    ]  # fmt: skip


CASES = [*_floats(), *_far(), *_layouts()]

OPERATORS_HERE = [name for name, op in OPERATORS.items() if op.family == "trigonometric"]

RIGHT = [alike(name) for name in OPERATORS_HERE]
NEGATIVES = [
    *negatives_of_alike(OPERATORS_HERE),
    Negative(
        "(C2)", alike("ELEMENT_WISE_ATAN_YX", BTensor=bad(Sizes=(3, 2))), "BTensor.Sizes", "(3, 2)", "(2, 3), that"
    ),
]

_CIRCULAR = [("1.0", 4, 4, FLOATS), ("3.0", 1, 8, FLOATS)]
_HYPERBOLIC = [("2.0", 4, 4, FLOATS), ("3.0", 1, 8, FLOATS)]
SUPPORT: dict[str, Rows | Support] = {
    "ELEMENT_WISE_ACOS": _CIRCULAR,
    "ELEMENT_WISE_ASIN": _CIRCULAR,
    "ELEMENT_WISE_ATAN": _CIRCULAR,
    "ELEMENT_WISE_COS": _CIRCULAR,
    "ELEMENT_WISE_SIN": _CIRCULAR,
    "ELEMENT_WISE_TAN": _CIRCULAR,
    "ELEMENT_WISE_SINH": _HYPERBOLIC,
    "ELEMENT_WISE_COSH": _HYPERBOLIC,
    "ELEMENT_WISE_TANH": _HYPERBOLIC,
    "ELEMENT_WISE_ASINH": _HYPERBOLIC,
    "ELEMENT_WISE_ACOSH": _HYPERBOLIC,
    "ELEMENT_WISE_ATANH": _HYPERBOLIC,
    "ELEMENT_WISE_ATAN_YX": [("3.1", 1, 8, FLOATS)],
}
