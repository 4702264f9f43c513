"""Logic, comparisons and IF: every type, truth values other than 1, NaN, zeros of both signs, and strides."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from anydml import IsInfinityMode
from anydml.core.strided_layout import DATA_TYPES
from anydml.operators import spec
from anydml.operators.schema import OperatorDesc
from support_tables import ALL, ALL_32, ALL_BUT_DOUBLE, FLOATS, Shape, Support

from . import Case, Negative, tensor, tensor_of

INF, NAN = np.inf, np.nan
LOGIC = ("LOGICAL_AND", "LOGICAL_OR", "LOGICAL_XOR", "LOGICAL_NOT")
COMPARISONS = tuple(
    [
        f"LOGICAL_{name}"
        for name in ("EQUALS", "GREATER_THAN", "LESS_THAN", "GREATER_THAN_OR_EQUAL", "LESS_THAN_OR_EQUAL")
    ]
)
FROM_ONE = ("IS_NAN", "IS_INFINITY")


def _case(
    id: str,
    operator: str,
    inputs: Sequence[np.ndarray],
    y: np.ndarray,
    strides: Sequence[Sequence[int] | None] = (),
    out_strides: Sequence[int] | None = None,
    **options: Any,
) -> Case:
    """`strides` are those of the inputs, in order."""
    found = spec(f"ELEMENT_WISE_{operator}")
    layouts = [*strides, *[None] * (len(inputs) - len(strides))]
    names = found.pointwise.inputs
    tensors = {name: tensor_of(x, steps) for name, x, steps in zip(names, inputs, layouts, strict=True)}
    desc = found.desc(**tensors, OutputTensor=tensor_of(y, out_strides), **options)
    return Case(f"{operator.lower()}-{id}", desc, list(inputs), [y])


def _logic() -> list[Case]:
    cases = []
    for dtype in (np.uint8, np.uint32):
        high = np.iinfo(dtype).max
        # Of 32 bits one is true whose low bits are 0.
        a, b = np.array([0, 0, 1, 1, 2, high, high ^ 255 or 7], dtype), np.array([0, 1, 0, 2, 4, 0, 1], dtype)
        expected = {"AND": [0, 0, 0, 1, 1, 0, 1], "OR": [0, 1, 1, 1, 1, 1, 1], "XOR": [0, 1, 1, 0, 0, 1, 0]}
        name = np.dtype(dtype).name
        cases += [_case(name, f"LOGICAL_{each}", [a, b], np.array(y, dtype)) for each, y in expected.items()]
        cases.append(_case(name, "LOGICAL_NOT", [a], np.array([1, 1, 0, 0, 0, 0, 0], dtype)))
    return cases


def _comparisons() -> list[Case]:
    cases = []
    for dtype in DATA_TYPES:
        if dtype == np.float64:
            continue
        is_float = dtype.kind == "f"
        low, high = (-INF, INF) if is_float else (np.iinfo(dtype).min, np.iinfo(dtype).max)
        pairs = [(3, 3), (2, 3), (3, 2), (low, high), (high, low), (high, high)]
        if is_float:
            pairs += [(0.0, -0.0), (NAN, NAN), (NAN, 1), (1, NAN)]
        elif dtype.itemsize == 8:
            # Beside each other, where doubles are not.
            pairs += [(high, high - 1), (high - 1, high)]
        a, b = (np.array(side, dtype) for side in zip(*pairs, strict=True))
        less, equal = [0, 1, 0, 1, 0, 0], [1, 0, 0, 0, 0, 1]
        greater = [0, 0, 1, 0, 1, 0]
        if is_float:
            less, greater, equal = [*less, 0, 0, 0, 0], [*greater, 0, 0, 0, 0], [*equal, 1, 0, 0, 0]
        elif dtype.itemsize == 8:
            less, greater, equal = [*less, 0, 1], [*greater, 1, 0], [*equal, 0, 0]
        expected = {
            "EQUALS": equal,
            "LESS_THAN": less,
            "GREATER_THAN": greater,
            "LESS_THAN_OR_EQUAL": np.add(less, equal),
            "GREATER_THAN_OR_EQUAL": np.add(greater, equal),
        }
        for kind in (np.uint8, np.uint32):
            id = f"{dtype.name}-to-{np.dtype(kind).name}"
            cases += [_case(id, f"LOGICAL_{name}", [a, b], np.array(y, kind)) for name, y in expected.items()]
    return cases


def _from_one() -> list[Case]:
    cases = []
    for dtype in (np.float32, np.float16):
        x = np.array([0, 1, -INF, INF, NAN, np.finfo(dtype).max, np.finfo(dtype).smallest_subnormal], dtype)
        x = np.append(x, -x[4:5])
        name = np.dtype(dtype).name
        cases += [
            _case(f"{name}-to-{np.dtype(kind).name}", "IS_NAN", [x], np.array([0, 0, 0, 0, 1, 0, 0, 1], kind))
            for kind in (np.uint8, np.uint32)
        ]
        found = {
            IsInfinityMode.EITHER: [0, 0, 1, 1, 0, 0, 0, 0],
            IsInfinityMode.POSITIVE: [0, 0, 0, 1, 0, 0, 0, 0],
            IsInfinityMode.NEGATIVE: [0, 0, 1, 0, 0, 0, 0, 0],
        }
        cases += [
            _case(f"{name}-{mode.name}", "IS_INFINITY", [x], np.array(y, np.uint8), InfinityMode=mode)
            for mode, y in found.items()
        ]
    # NaN of every kind: quiet and signalling, of either sign.
    nans = np.array([0x7FC01234, 0xFF812345, 0x7F800001, 0x7F800000, 0xFF800000], np.uint32).view(np.float32)
    halves = np.array([0x7E00, 0x7C01, 0xFD00, 0x7C00, 0xFC00], np.uint16).view(np.float16)
    cases += [_case(f"payloads-{x.dtype}", "IS_NAN", [x], np.array([1, 1, 1, 0, 0], np.uint8)) for x in (nans, halves)]
    return cases


# The page's example
_CONDITION = np.array([[1, 0], [1, 1]], np.uint8)
_A, _B = np.array([[1, 2], [3, 4]]), np.array([[9, 8], [7, 6]])
_CHOSEN = np.array([[1, 8], [3, 4]])
_NANS = np.array([0x7FC01234, 0xFF812345, 0x7F800001], np.uint32).view(np.float32)
_X = np.arange(6, dtype=np.float32).reshape(2, 3)
_ROW, _COLUMN = np.broadcast_to(np.float32([1, 4, 2]), (2, 3)), np.broadcast_to(np.float32([[1], [4]]), (2, 3))

IFS = [
    *(
        _case(dtype.name, "IF", [_CONDITION, _A.astype(dtype), _B.astype(dtype)], _CHOSEN.astype(dtype))
        for dtype in DATA_TYPES
    ),
    _case("true-is-not-0", "IF", [np.uint8([2, 255, 128]), _X[0], _X[1]], _X[0]),
    _case("nan-payloads", "IF", [np.uint8([1, 0, 1]), _NANS, _NANS[::-1].copy()], _NANS),
    _case(
        "strides",
        "IF",
        [np.broadcast_to(np.uint8([0, 1, 0]), (2, 3)), _X, _COLUMN],
        np.float32([[1, 1, 1], [4, 4, 4]]),
        strides=((0, 1), (1, 2), (1, 0)),
        out_strides=(4, 1),
    ),
]

LAYOUTS = [
    _case("broadcast", "LOGICAL_LESS_THAN", [_X, _ROW], np.uint8([[1, 1, 0], [0, 0, 0]]), strides=(None, (0, 1))),
    _case("strides", "LOGICAL_EQUALS", [_X, _COLUMN], np.uint8([[0, 1, 0], [0, 1, 0]]), ((1, 2), (1, 0)), (8, 2)),
    _case(
        "strides",
        "LOGICAL_XOR",
        [np.uint8([[1, 0, 2], [3, 0, 0]]), np.uint8([[1, 1, 1], [0, 0, 0]])],
        np.uint8([[0, 1, 0], [1, 0, 0]]),
        ((1, 2), (1, 0)),
        (4, 1),
    ),
]

CASES = [*_logic(), *_comparisons(), *_from_one(), *IFS, *LAYOUTS]


def _right(operator: str, **members: Any) -> OperatorDesc:
    """On tensors {2, 3} of types that it takes."""
    found = spec(f"ELEMENT_WISE_{operator}")
    kinds = {name: row.data_types[0].name for name, row in found.tensors.items()}
    tensors = {name: tensor((2, 3), kind) for name, kind in kinds.items()}
    mode = {"InfinityMode": IsInfinityMode.EITHER} if operator == "IS_INFINITY" else {}
    return found.desc(**{**tensors, **mode, **members})


HERE = (*LOGIC, *COMPARISONS, *FROM_ONE, "IF")
RIGHT = [_right(name) for name in HERE]


def _negatives() -> list[Negative]:
    found = []
    for operator in HERE:
        first = spec(f"ELEMENT_WISE_{operator}").pointwise.inputs[0]
        of_sizes = "(C1)" if operator in FROM_ONE else "(C2)"
        kind = spec(f"ELEMENT_WISE_{operator}").tensors["OutputTensor"].data_types[0].name
        wider, longer = tensor((2, 4), kind), tensor((2, 3, 1), kind)
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
        if operator in LOGIC:
            other = _right(operator, OutputTensor=tensor((2, 3), "UINT8"))
            found.append(Negative("(C1)", other, "OutputTensor.DataType", "UINT8", f"UINT32, that of {first}"))
        if operator in COMPARISONS:
            other = _right(operator, BTensor=tensor((2, 3), "INT8"))
            found.append(Negative("(C1)", other, "BTensor.DataType", "INT8", "FLOAT32, that of ATensor"))
    half = tensor((2, 3), "FLOAT16")
    return [
        *found,
        Negative("(C1)", _right("IF", BTensor=half), "BTensor.DataType", "FLOAT16", "FLOAT64, that of ATensor"),
        Negative(
            "(C1)", _right("IF", OutputTensor=half), "OutputTensor.DataType", "FLOAT16", "FLOAT64, that of ATensor"
        ),
        Negative(
            "(C2)",
            _right("IF", BTensor=tensor((2, 4), "FLOAT64")),
            "BTensor.Sizes",
            "(2, 4)",
            "(2, 3), that of ConditionTensor",
        ),
    ]


def by_tensor(of_inputs: Sequence[tuple[str, int, int, str]], of_output: str, names: Sequence[str]) -> Any:
    rows = {name: of_inputs for name in names}
    levels = dict(pair.split(":") for pair in of_output.split("; "))
    return {
        **rows,
        "OutputTensor": [(since, low, high, levels.get(since, levels[""])) for since, low, high, _ in of_inputs],
    }


def types_beside(operator: str, name: str, shape: Shape) -> dict[str, Shape]:
    """Those of other types by the first line of the newest table that has such dimensions."""
    found = spec(operator)
    group = found.pointwise.group_of(name)
    others = {
        each: (shape[0], row.data_types[-1] if each not in group else shape[1]) for each, row in found.tensors.items()
    }
    return {**others, name: shape}


_LOGIC = [("1.0", 4, 4, "UINT32"), ("2.0", 4, 4, "UINT32 UINT8"), ("3.0", 1, 8, "UINT32 UINT8")]
_COMPARED = [
    ("1.0", 4, 4, FLOATS),
    ("2.0", 4, 4, FLOATS),
    ("2.1", 4, 4, ALL_32),
    ("3.0", 1, 8, ALL_32),
    ("4.1", 1, 8, ALL_BUT_DOUBLE),
]
_IF = [("2.0", 4, 4, "FLOAT16"), ("3.0", 1, 8, ALL_32), ("5.0", 1, 8, ALL)]
_BOTH, _TRUTH = ("ATensor", "BTensor"), "1.0:UINT32; :UINT32 UINT8"

NEGATIVES = _negatives()
SUPPORT = {
    **{f"ELEMENT_WISE_{name}": _LOGIC for name in LOGIC},
    **{
        f"ELEMENT_WISE_{name}": Support(
            by_tensor(_COMPARED[3:] if name.endswith("OR_EQUAL") else _COMPARED, _TRUTH, _BOTH), others=types_beside
        )
        for name in COMPARISONS
    },
    "ELEMENT_WISE_IS_NAN": Support(
        by_tensor([("2.0", 4, 4, FLOATS), ("3.0", 1, 8, FLOATS)], ":UINT32 UINT8", ["InputTensor"]), others=types_beside
    ),
    "ELEMENT_WISE_IS_INFINITY": Support(
        by_tensor([("2.1", 4, 4, FLOATS), ("3.0", 1, 8, FLOATS)], ":UINT8", ["InputTensor"]), others=types_beside
    ),
    "ELEMENT_WISE_IF": Support(
        {
            "ConditionTensor": [("2.0", 4, 4, "UINT8"), ("3.0", 1, 8, "UINT8")],
            "ATensor": _IF,
            "BTensor": _IF,
            "OutputTensor": _IF,
        },
        others=types_beside,
    ),
}
