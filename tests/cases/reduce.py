"""REDUCE: every function on every class of types, its axes, and what is special about floats; ARGMIN and ARGMAX."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from anydml import DML_REDUCE_OPERATOR_DESC, AxisDirection, ReduceFunction
from anydml.operators import spec
from anydml.operators.schema import OperatorDesc
from support_tables import ALL_32, ALL_BUT_DOUBLE, ARITHMETIC_32, ARITHMETIC_64, FLOATS, INDICES, Rows, Support

from . import GOOD, Case, Negative, tensor, tensor_of

INF, NAN = np.inf, np.nan


def _case(
    id: str,
    function: str,
    x: Any,
    axes: Sequence[int],
    y: Any,
    strides: Sequence[int] | None = None,
    output_strides: Sequence[int] | None = None,
) -> Case:
    x, y = np.asarray(x), np.asarray(y)
    desc = DML_REDUCE_OPERATOR_DESC(
        Function=ReduceFunction[function],
        InputTensor=tensor_of(x, strides),
        OutputTensor=tensor_of(y, output_strides),
        Axes=axes,
    )
    return Case(f"reduce-{function.lower()}-{id}", desc, [x], [y])


def _page() -> list[Case]:
    x = np.array([[1, 2, 3], [3, 0, 4], [2, 4, 2]], np.float32)
    return [
        _case("page-columns", "SUM", x, [0], np.float32([[6, 6, 9]])),
        _case("page-rows", "SUM", x, [1], np.float32([[6], [7], [8]])),
        _case("page-all", "SUM", x, [0, 1], np.float32([[21]])),
    ]


def _floats() -> list[Case]:
    cases = []
    for dtype in (np.float32, np.float16):
        kind = np.dtype(dtype).name
        x = np.array([[3, -4, 12], [0.25, 0.25, 0.5]], dtype)
        expected = {
            "AVERAGE": [11 / 3, 1 / 3],
            "L1": [19, 1],
            "L2": [13, 0.6123724356957945],
            "LOG_SUM": [2.3978952727983707, 0],
            "LOG_SUM_EXP": [12.000123514711005, 1.4390699311119119],
            "MAX": [12, 0.5],
            "MIN": [-4, 0.25],
            "MULTIPLY": [-144, 0.03125],
            "SUM": [11, 1],
            "SUM_SQUARE": [169, 0.375],
        }
        cases += [_case(kind, name, x, [1], np.array(y, dtype)[:, None]) for name, y in expected.items()]
        cases.append(_case(kind, "ARGMAX", x, [1], np.uint32([[2], [2]])))
        cases.append(_case(kind, "ARGMIN", x, [1], np.int64([[1], [0]])))
        # Infinities of one sign, of both, NaN among numbers, NaN alone, minus infinity alone, infinity among zeros, NaN
        # beside infinity.
        odd = np.array(
            [[INF, 1, INF], [INF, -INF, 2], [NAN, -5, 3], [NAN] * 3, [-INF] * 3, [0, INF, 0], [NAN, INF, 1]], dtype
        )
        specials = {
            "AVERAGE": [INF, NAN, NAN, NAN, -INF, INF, NAN],
            "L1": [INF, INF, NAN, NAN, INF, INF, NAN],
            "L2": [INF, INF, NAN, NAN, INF, INF, NAN],
            "LOG_SUM": [INF, NAN, NAN, NAN, NAN, INF, NAN],
            "LOG_SUM_EXP": [INF, INF, NAN, NAN, -INF, INF, NAN],
            "MAX": [INF, INF, 3, NAN, -INF, INF, INF],
            "MIN": [1, -INF, -5, NAN, -INF, 0, 1],
            "MULTIPLY": [INF, -INF, NAN, NAN, -INF, NAN, NAN],
            "SUM": [INF, NAN, NAN, NAN, -INF, INF, NAN],
            "SUM_SQUARE": [INF, INF, NAN, NAN, INF, INF, NAN],
        }
        cases += [_case(f"{kind}-special", name, odd, [1], np.array(y, dtype)[:, None]) for name, y in specials.items()]
        cases.append(_case(f"{kind}-special", "ARGMAX", odd, [1], np.uint32([0, 0, 2, 0, 0, 1, 1])[:, None]))
        cases.append(_case(f"{kind}-special", "ARGMIN", odd, [1], np.uint32([1, 1, 1, 0, 0, 0, 2])[:, None]))
        hidden = np.array([NAN, -INF], dtype)
        cases.append(_case(f"{kind}-minus-infinity-beside-nan", "ARGMAX", hidden, [0], np.uint64([1])))
        largest, smallest = np.finfo(dtype).max, np.finfo(dtype).smallest_subnormal
        ends = np.array([[largest, largest, largest], [smallest, smallest, smallest]], dtype)
        beyond = {
            "AVERAGE": [largest, smallest],
            "L2": [INF, dtype(3**0.5 * float(smallest))],
            "SUM": [INF, 3 * float(smallest)],
            # The largest but for log(3), which FLOAT32's unit hides, and log(3).
            "LOG_SUM_EXP": [largest, 1.0986122886681098],
            "MULTIPLY": [INF, 0],
        }
        cases += [_case(f"{kind}-ends", name, ends, [1], np.array(y, dtype)[:, None]) for name, y in beyond.items()]
        # Each would leave the wider type's range on the way, or what is small would vanish beside 1.
        way = np.array([[largest] * 40 + [1 / largest] * 40 + [2]], dtype)
        inverse = float(largest) * float(way[0, 40])
        cases.append(_case(f"{kind}-way", "MULTIPLY", way, [1], np.array([[2 * inverse**40]], dtype)))
        cases.append(_case(f"{kind}-small", "LOG_SUM_EXP", np.array([0, -9], dtype), [0],
            np.array([1.2340218972325882e-4], dtype)))  # fmt: skip
    cases.append(_case("float32-tiny", "LOG_SUM_EXP", np.float32([-80, 0]), [0], np.float32([1.8048513878454153e-35])))
    return cases


def _integers() -> list[Case]:
    cases = []
    for name in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"):
        dtype = np.dtype(name)
        low, high = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
        x = np.array([[high, 7, high], [low, 5, low]], dtype)
        expected: dict[str, list[int]] = {"MAX": [high, 5], "MIN": [7, low]}
        if dtype.itemsize >= 4:
            n = 2 ** (8 * dtype.itemsize)
            exact = {
                "SUM": [2 * high + 7, 2 * low + 5],
                "MULTIPLY": [7 * high * high, 5 * low * low],
                "L1": [2 * high + 7, -2 * low + 5],
                "SUM_SQUARE": [2 * high * high + 49, 2 * low * low + 25],
            }
            expected |= {key: [(value - low) % n + low for value in values] for key, values in exact.items()}
        cases += [_case(name, key, x, [1], np.array(y, dtype)[:, None]) for key, y in expected.items()]
        cases += [
            _case(f"{name}-to-{kind}", key, x, [1], np.array(y, kind)[:, None])
            for kind in ("int32", "uint32", "int64", "uint64")
            for key, y in (("ARGMAX", [0, 1]), ("ARGMIN", [1, 0]))
        ]
    return cases


def _axes_and_layouts() -> list[Case]:
    x = np.arange(24, dtype=np.int32).reshape(2, 3, 4)
    odd = np.array([[[5, 1], [9, 9]], [[2, 9], [0, 0]]], np.int32)
    wide = np.arange(2**7, dtype=np.float32).reshape((2,) * 7)
    return [
        _case("first-and-last", "SUM", x, [2, 0], np.int32([60, 92, 124]).reshape(1, 3, 1)),
        _case("middle", "MAX", x, [1], np.int32([[8, 9, 10, 11], [20, 21, 22, 23]]).reshape(2, 1, 4)),
        _case("of-one-element", "L2", np.float32([[-3], [4]]), [1], np.float32([[3], [4]])),
        _case("all", "ARGMAX", x[:, ::-1], [0, 1, 2], np.uint32([[[15]]])),
        # Row-major, in the order of the dimensions and not of Axes.
        _case("ties", "ARGMAX", odd, [2, 1], np.uint32([2, 1]).reshape(2, 1, 1)),
        _case("ties", "ARGMIN", odd, [0, 2], np.uint32([1, 2]).reshape(1, 2, 1)),
        _case("transposed", "SUM", x, [1], np.int32([[12, 15, 18, 21], [48, 51, 54, 57]]).reshape(2, 1, 4), (1, 2, 6)),
        _case("gapped", "MIN", x, [2], np.int32([0, 4, 8, 12, 16, 20]).reshape(2, 3, 1), (16, 5, 1), (10, 3, 7)),
        _case("broadcast", "SUM", np.full((3, 5), 2, np.float32), [1], np.full((3, 1), 10, np.float32), (0, 0)),
        _case("8-d", "AVERAGE", wide[None], [0, 3, 7], wide.mean((2, 6), keepdims=True)[None]),
    ]


def _index_case(
    id: str,
    operator: str,
    x: Any,
    axes: Sequence[int],
    y: Any,
    decreasing: bool = False,
    strides: Sequence[int] | None = None,
) -> Case:
    x, y = np.asarray(x), np.asarray(y)
    desc = spec(operator).desc(
        InputTensor=tensor_of(x, strides),
        OutputTensor=tensor_of(y),
        Axes=axes,
        AxisDirection=AxisDirection(decreasing),
    )
    options = {"reverse": decreasing, "output_dtype": y.dtype}
    function = "" if strides else operator.lower()
    return Case(f"{id}-{operator.lower()}", desc, [x], [y], function, (x, axes), options)


def _indices() -> list[Case]:
    x = np.array([[1, 2, 3], [3, 0, 4], [2, 5, 2]], np.float32)
    cases = [
        _index_case("page-columns", "ARGMIN", x, [0], np.uint32([[0, 1, 2]])),
        _index_case("page-rows", "ARGMIN", x, [1], np.uint32([[0], [1], [0]])),
        _index_case("page-all", "ARGMIN", x, [0, 1], np.uint32([[4]])),
        _index_case("page-columns", "ARGMAX", x, [0], np.uint32([[1, 2, 1]])),
        _index_case("page-rows", "ARGMAX", x, [1], np.uint32([[2], [2], [1]])),
        _index_case("page-all", "ARGMAX", x, [0, 1], np.uint32([[7]])),
        _index_case("page-last", "ARGMIN", np.float32([1, 2, 3, 2, 1]), [0], np.uint32([4]), True),
        _index_case("page-last", "ARGMAX", np.float32([3, 2, 1, 2, 3]), [0], np.uint32([4]), True),
        # Row-major, in the order of the dimensions and not of Axes.
        _index_case("ties", "ARGMAX", np.int32([[[5, 1], [9, 9]], [[2, 0], [0, 2]]]), [2, 1],
            np.uint32([3, 3]).reshape(2, 1, 1), True),
        _index_case("ties", "ARGMIN", np.int32([[[5, 1], [9, 9]], [[2, 1], [0, 9]]]), [0, 2],
            np.uint32([3, 2]).reshape(1, 2, 1), True),
        _index_case("transposed", "ARGMAX", np.int32([[4, 4, 1], [0, 4, 4]]), [0, 1], np.uint32([[5]]), True, (1, 2)),
        _index_case("broadcast", "ARGMIN", np.full((3, 5), 2, np.int8), [1], np.int64([[4]] * 3), True, (0, 0)),
    ]  # fmt: skip
    for name in ("float32", "float16"):
        odd = np.array([[NAN, 1, NAN, 1], [NAN] * 4, [-INF] * 4, [INF, NAN, -INF, INF], [0.0, -0.0, 0.0, NAN]], name)
        found = {
            ("ARGMAX", False): [1, 0, 0, 0, 0],
            ("ARGMAX", True): [3, 3, 3, 3, 2],
            ("ARGMIN", False): [1, 0, 0, 2, 0],
            ("ARGMIN", True): [3, 3, 3, 2, 2],
        }
        for (operator, decreasing), y in found.items():
            id = f"{name}-special{'-last' if decreasing else ''}"
            cases.append(_index_case(id, operator, odd, [1], np.int32(y)[:, None], decreasing))
            columns = np.int32(y)[None]
            cases.append(_index_case(f"{id}-columns", operator, odd.T.copy(), [0], columns, decreasing))
    for name in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"):
        low, high = int(np.iinfo(name).min), int(np.iinfo(name).max)
        ends = np.array([[high, 7, high, 8], [low, 5, 6, low]], name)
        for kind in ("int32", "uint32", "int64", "uint64"):
            id = f"{name}-to-{kind}"
            cases += [
                _index_case(id, "ARGMAX", ends, [1], np.array([[0], [2]], kind)),
                _index_case(f"{id}-last", "ARGMAX", ends, [1], np.array([[2], [2]], kind), True),
                _index_case(id, "ARGMIN", ends, [1], np.array([[1], [0]], kind)),
                _index_case(f"{id}-last", "ARGMIN", ends, [1], np.array([[1], [3]], kind), True),
            ]
    return cases


CASES = [*_page(), *_floats(), *_integers(), *_axes_and_layouts(), *_indices()]
KERNELS = {"REDUCE": "reduce ", "ARGMIN": "reduce .* argmin", "ARGMAX": "reduce .* argmax"}


def reduce(function: str = "SUM", **members: Any) -> OperatorDesc:
    right = {"InputTensor": GOOD, "OutputTensor": tensor((1, 3)), "Axes": (0,)}
    return DML_REDUCE_OPERATOR_DESC(**{"Function": ReduceFunction[function], **right, **members})


def reduce_many(size: int) -> OperatorDesc:
    """The index among so many elements, as an INT32."""
    x = tensor((size,), "UINT8", (0,))
    return reduce("ARGMAX", InputTensor=x, OutputTensor=tensor((1,), "INT32"))


RIGHT = [reduce()]
NEGATIVES = [
    Negative(
        "(C1)", reduce(OutputTensor=tensor((1, 3), "INT32")), "OutputTensor.DataType", "INT32", "FLOAT32, that of"
    ),
    Negative("(C2)", reduce(OutputTensor=tensor((3,))), "OutputTensor.DimensionCount", "1", "2, that of InputTensor"),
    Negative("(C3)", reduce(Axes=(), OutputTensor=GOOD), "AxisCount", "0", "at least 1"),
    Negative("(C4)", reduce(Axes=(0, 2)), "Axes[1]", "2", "less than 2, the DimensionCount of InputTensor"),
    Negative("(C5)", reduce(Axes=(0, 0)), "Axes[1]", "0 again", "every axis once"),
    Negative("(C6)", reduce(OutputTensor=GOOD), "OutputTensor.Sizes[0]", "2", "1"),
    Negative("(C6)", reduce(OutputTensor=tensor((1, 4))), "OutputTensor.Sizes[1]", "4", "3"),
    Negative("(C7)", reduce_many(2**31 + 1), "OutputTensor.DataType", "INT32", "a type that holds 2147483648"),
    Negative("(F5)", reduce(AxisCount=2), "Axes", "1 elements", "2, which AxisCount says"),
]


def index(operator: str, **members: Any) -> OperatorDesc:
    right = {"InputTensor": GOOD, "OutputTensor": tensor((1, 3), "UINT32"), "Axes": (0,)}
    return spec(operator).desc(**{**right, **members})


def _negatives_of_indices(operator: str) -> list[Negative]:
    of, place = partial(index, operator), "OutputTensor.DimensionCount"
    longer = tensor((2, 3), "UINT32")
    many = of(InputTensor=tensor((2**31 + 1,), "UINT8", (0,)), OutputTensor=tensor((1,), "INT32"))
    return [
        Negative("(C1)", of(OutputTensor=tensor((3,), "UINT32")), place, "1", "2, that of InputTensor"),
        Negative("(C2)", of(Axes=(), OutputTensor=longer), "AxisCount", "0", "at least 1"),
        Negative("(C3)", of(Axes=(0, 2)), "Axes[1]", "2", "less than 2, the DimensionCount of InputTensor"),
        Negative("(C4)", of(Axes=(0, 0)), "Axes[1]", "0 again", "every axis once"),
        Negative("(C5)", of(OutputTensor=longer), "OutputTensor.Sizes[0]", "2", "1"),
        Negative("(C6)", many, "OutputTensor.DataType", "INT32", "a type that holds 2147483648"),
    ]


RIGHT += [index("ARGMIN"), index("ARGMAX")]
NEGATIVES += [*_negatives_of_indices("ARGMIN"), *_negatives_of_indices("ARGMAX")]


def _support(function: str, tables: Rows | Mapping[str, Rows]) -> Support:
    return Support(tables, lambda output: {"Function": ReduceFunction[function], "Axes": [0]})


# Each function has tables of its own.
SUPPORT = {
    f"REDUCE {function}": _support(function, rows)
    for functions, rows in {
        "AVERAGE L2 LOG_SUM LOG_SUM_EXP": [("1.0", 4, 4, FLOATS), ("3.0", 1, 8, FLOATS)],
        "L1 SUM_SQUARE": [("1.0", 4, 4, FLOATS), ("3.0", 1, 8, FLOATS), ("5.0", 1, 8, ARITHMETIC_64)],
        "MIN MAX": [
            ("1.0", 4, 4, FLOATS),
            ("2.1", 4, 4, ARITHMETIC_32),
            ("3.0", 1, 8, ALL_32),
            ("5.0", 1, 8, ALL_BUT_DOUBLE),
        ],
        "MULTIPLY SUM": [
            ("1.0", 4, 4, FLOATS),
            ("2.1", 4, 4, ARITHMETIC_32),
            ("3.0", 1, 8, ARITHMETIC_32),
            ("5.0", 1, 8, ARITHMETIC_64),
        ],
        "ARGMIN ARGMAX": {
            "InputTensor": [
                ("1.0", 4, 4, FLOATS),
                ("2.1", 4, 4, ALL_32),
                ("3.0", 1, 8, ALL_32),
                ("4.1", 1, 8, ALL_BUT_DOUBLE),
            ],
            "OutputTensor": [("1.0", 4, 4, "UINT32"), ("3.0", 1, 8, INDICES)],
        },
    }.items()
    for function in functions.split()
}

SUPPORT |= {
    name: Support(
        {
            "InputTensor": [("3.0", 1, 8, ALL_32), ("4.1", 1, 8, ALL_BUT_DOUBLE)],
            "OutputTensor": [("3.0", 1, 8, INDICES)],
        },
        lambda output: {"Axes": [0]},
    )
    for name in ("ARGMIN", "ARGMAX")
}
