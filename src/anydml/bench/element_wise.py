"""The rows of pointwise operators, alone and in chains."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..core.enums import IsInfinityMode, RoundingMode
from ..core.strided_layout import DATA_TYPES, DTYPES, Array
from ..core.tensor_desc import DML_BUFFER_TENSOR_DESC, DML_SCALE_BIAS
from ..device import Device
from ..frontends.directmlx import Graph
from ..operators import OPERATORS, Trait, spec, with_trait
from ..runtime.compiled import Compiled
from .cases import SMALL, Case, Work, compiled_of, desc_of, tensor_of
from .places import Host, place_of

WIDTH, ODD_WIDTH = 1024, 1021
"""Of a row, where some input has one row or one column that is broadcast."""
SAMPLE = 1 << 18
"""Elements of which the error is measured."""
IN_CACHES = 1.1
"""How many times as long as in the caches an element of a long chain may take in memory."""
SCALE, ZERO_POINT = 1 / 32, 3
"""Of what is quantised: exact, so that libraries round alike."""


class Step(NamedTuple):
    """An operator of a chain, or alone."""

    operator: str
    dtype: str
    """Of all tensors that may have it, see :func:`types_of`."""
    members: tuple[tuple[str, Any], ...] = ()


@dataclass(frozen=True)
class ElementWise(Case):
    steps: tuple[Step, ...] = ()
    """From the second on each takes the result of the one before first."""
    broadcast: str = ""
    """Of the last input: "row" or "column", the same for all."""
    width: int = WIDTH

    @property
    def cell(self) -> str:
        if self.group:
            return self.group
        if len(self.steps) > 1:
            return "long chains" if self.is_long else "chains"
        if self.limit is None:
            return "functions" if self.is_rounded_otherwise else "quotients and powers"
        return OPERATORS[self.steps[0].operator].family.replace("_", " ")

    @property
    def of_operator(self) -> str:
        return self.steps[0].operator if len(self.steps) == 1 else "chains"

    @property
    def is_long(self) -> bool:
        """Whether it computes for longer than it takes to read and write."""
        return len(self.steps) >= 8

    @property
    def is_rounded_otherwise(self) -> bool:
        """Whether libraries differ in the last places of its results, as its values are no exact ones."""
        return any(step.operator in FUNCTIONS for step in self.steps) and np.dtype(self.dtype).kind == "f"

    def plain(self) -> Case | None:
        return self.scaled(SMALL) if self.is_long and self.size > SMALL and not self.group else None

    def limit_beside(self, plain_ratio: float) -> float | None:
        return None if self.limit is None else max(self.limit, IN_CACHES * plain_ratio)

    def types(self) -> list[dict[str, str]]:
        """NumPy's types of each step's tensors."""
        found, fed = [], ""
        for step in self.steps:
            found.append(types_of(step.operator, step.dtype, fed))
            fed = [*found[-1].values()][-1]
        return found

    def make(self, device: Device) -> Work:
        place, values, types = place_of(device), Host(), self.types()
        widest = max(np.dtype(dtype).itemsize for each in types for dtype in each.values())
        count = max(1, self.size // widest)
        shape = (max(1, count // self.width), min(count, self.width))
        inputs = []
        for i, (step, each) in enumerate(zip(self.steps, types, strict=True)):
            *names, _ = each
            taken = names[1:] if i else names
            inputs += [self._input(values, step.operator, name, each[name], shape) for name in taken]
        if self.broadcast:
            part = inputs[-1][:1] if self.broadcast == "row" else inputs[-1][:, :1]
            inputs[-1] = np.broadcast_to(part, shape)
        output = place.empty(shape, [*types[-1].values()][-1])
        given = [place.to_device(array) for array in inputs]
        compiled = self._operator(device, given, output) if len(types) == 1 else self._graph(device, given, shape)
        error = (lambda y: self._error(inputs, place.numpy(y))) if self.is_rounded_otherwise else None
        moved = sum(array.nbytes for array in inputs if 0 not in array.strides) + output.nbytes
        return Work(place, given, output, compiled, lambda y: self._check(inputs, place.numpy(y)), error, moved=moved)

    def _input(self, place: Host, operator: str, name: str, dtype: str, shape: tuple[int, ...]) -> Any:
        """Integers from 1 to 100, by which integers are divided as well, and floats from -4 to 4, but for 0; elsewhere
        what an operator is defined for."""
        if "Scale" in name or "ZeroPoint" in name:
            value = np.full((1, 1), SCALE if "Scale" in name else ZERO_POINT, dtype)
            return value if name in spec(operator).pointwise.scalars else np.broadcast_to(value, shape)
        if is_truth(operator, name):
            return place.cast(place.integers(0, 2, shape), dtype)
        low, high = _DOMAINS.get((operator, name), (-4, 4))
        if np.dtype(dtype).kind != "f":
            return place.cast(place.integers(1, 4 if (operator, name) in _SMALL_INTEGERS else 100, shape), dtype)
        if self.is_rounded_otherwise:
            steps = place.integers(0, 1 << 20, shape, np.int32)
            return place.cast(place.cast(steps, np.float32) * ((high - low) / 2**20) + (low + 2**-21), dtype)
        return place.cast(
            place.cast(place.integers(int(16 * low), int(16 * high), shape), np.float32) / 16 + 1 / 32, dtype
        )

    def _operator(self, device: Device, inputs: list[Any], output: Any) -> Compiled:
        (step,) = self.steps
        tensors = [tensor_of(device, array) for array in (*inputs, output)]
        named = dict(zip(spec(step.operator).tensors, tensors, strict=True))
        return compiled_of(device, desc_of(step.operator, **named, **dict(step.members)))

    def _graph(self, device: Device, inputs: list[Any], shape: tuple[int, ...]) -> Compiled:
        graph = Graph(device)
        values = [graph.input(tensor_of(device, array)) for array in inputs]
        result = values.pop(0)
        for step, types in zip(self.steps, self.types(), strict=True):
            first, *others, output = types
            taken: dict[str, Any] = {first: result, **{name: values.pop(0) for name in others}}
            taken[output] = _tensor(shape, types[output])
            (result,) = graph.operator(spec(step.operator).desc, **taken, **dict(step.members))
        return graph.compile([result])

    def _reference(self, inputs: Sequence[Array], is_double: bool = False) -> Array:
        """What the operators' own references give; in double precision on request."""
        given = [array.astype(np.float64) if is_double else array for array in inputs]
        result: Any = given.pop(0)
        for step, types in zip(self.steps, self.types(), strict=True):
            found, shape = spec(step.operator), result.shape
            *names, output = types
            tensors = {name: _tensor(shape, "float64" if is_double else types[name]) for name in (*names, output)}
            others = [given.pop(0) for _ in names[1:]]
            result = found.reference(found.desc(**tensors, **dict(step.members)), result, *others)
        y: Array = result
        return y

    def _check(self, inputs: Sequence[Any], y: Any) -> str:
        """The first and the last row, by the operators' own references."""
        for part in (slice(0, 1), slice(-1, None)):
            if not are_near(y[part], self._reference([array[part] for array in inputs])):
                return "a row differs from the reference's"
        return ""

    def _error(self, inputs: Sequence[Any], y: Any) -> float:
        """The largest of some rows, in units in the last place, beside double precision; infinite where a result is
        not finite, and the exact one is."""
        rows = slice(0, max(1, SAMPLE // self.width))
        exact = self._reference([array[rows] for array in inputs], is_double=True)
        with np.errstate(all="ignore"):
            nearest = exact.astype(y.dtype)
            errors = np.abs(y[rows].astype(np.float64) - exact) / np.spacing(np.abs(nearest)).astype(np.float64)
        finite = np.isfinite(nearest)
        return float(np.max(np.where(np.isnan(errors), np.inf, errors)[finite], initial=0.0))


def _tensor(shape: Sequence[int], dtype: str) -> DML_BUFFER_TENSOR_DESC:
    return DML_BUFFER_TENSOR_DESC(DataType=DATA_TYPES[np.dtype(dtype)], Sizes=shape)


def types_of(operator: str, dtype: str, fed: str = "") -> dict[str, str]:
    """The types of an operator's tensors: of the first that of what is fed to it, of others that of their group, else
    the given one, else FLOAT32 or UINT8, whichever the support table has."""
    found = spec(operator)
    types: dict[str, str] = {}
    for name, row in found.tensors.items():
        kinds = [DTYPES[kind].name for kind in row.data_types]
        alike = [types[other] for other in found.pointwise.group_of(name) if other in types]
        given = [fed] if fed and not types else []
        types[name] = next(kind for kind in (*given, *alike, dtype, "float32", "uint8") if kind in kinds)
    return types


def is_truth(operator: str, tensor: str) -> bool:
    """Whether a tensor holds truth values, which libraries have a type for."""
    found = spec(operator)
    if tensor == found.pointwise.output:
        return bool(found.pointwise.truth == "made")
    return tensor == "ConditionTensor" or operator in _OF_TRUTH


def are_near(one: Any, other: Any, relative: float = 0.0) -> bool:
    """But for what libraries round otherwise."""
    if one.dtype.kind != "f":
        return np.array_equal(one, other)
    return np.allclose(one, other, rtol=max(relative, 4 * np.finfo(one.dtype).eps), atol=1e-6, equal_nan=True)


FUNCTIONS = {
    *(f"ELEMENT_WISE_{name}" for name in ("ACOS", "ASIN", "ATAN", "COS", "SIN", "TAN", "EXP", "LOG", "ERF")),
    *(f"ELEMENT_WISE_{name}" for name in ("SINH", "COSH", "TANH", "ASINH", "ACOSH", "ATANH", "ATAN_YX")),
    *(f"ELEMENT_WISE_{name}" for name in ("POW", "CONSTANT_POW")),
    *(f"ACTIVATION_{name}" for name in ("ELU", "SCALED_ELU", "CELU", "SIGMOID", "TANH", "SCALED_TANH")),
    *(f"ACTIVATION_{name}" for name in ("SOFTPLUS", "PARAMETRIC_SOFTPLUS", "GELU", "SWISH")),
}
"""Operators on floats that take longer than memory does, and of which libraries differ in the last places."""
_LONG = {"MODULUS_TRUNCATE", "MODULUS_FLOOR"}
_LONG_OF_INTEGERS = {"DIVIDE", "POW"}
"""Likewise divisions, whose results are exact."""

_OF_TRUTH = {f"ELEMENT_WISE_LOGICAL_{name}" for name in ("AND", "OR", "XOR", "NOT")}
_DOMAINS = {
    **{(f"ELEMENT_WISE_{name}", "InputTensor"): (-1, 1) for name in ("ACOS", "ASIN", "ATANH")},
    ("ELEMENT_WISE_ACOSH", "InputTensor"): (1, 9),
    **{(f"ELEMENT_WISE_{name}", "InputTensor"): (0, 8) for name in ("LOG", "SQRT")},
    **{(f"ELEMENT_WISE_{name}", "InputTensor"): (0.5, 8) for name in ("POW", "CONSTANT_POW")},
}
"""Where floats come from, if not from -4 to 4."""
_SMALL_INTEGERS = {
    ("ELEMENT_WISE_POW", "ExponentTensor"),
    ("ELEMENT_WISE_BIT_SHIFT_LEFT", "BTensor"),
    ("ELEMENT_WISE_BIT_SHIFT_RIGHT", "BTensor"),
}

_MEMBERS: dict[str, Any] = {
    **{"Alpha": 0.5, "Beta": 2.0, "Gamma": 1.5, "Bias": 0.5, "Threshold": 0.5, "Exponent": 1.75},
    **{"Steepness": 1.0, "SigmoidInputScale": 1.0},
    "FusedActivation": spec("ACTIVATION_RELU").desc(),
    "InfinityMode": IsInfinityMode.EITHER,
    "RoundingMode": RoundingMode.HALVES_TO_NEAREST_EVEN,
}
_OF_HARD = {"Alpha": float(np.float32(1 / 6)), "Beta": 0.5}
"""Those that libraries have fixed, where they have."""
_SAMPLED = (("float32",), ("float16",), ("int32", "uint32"), ("int8", "uint8"))
"""Types of rows: of each of these the first that an operator takes."""


def _step(operator: str, dtype: str, **members: Any) -> Step:
    """An operator with the members of its rows, or with others."""
    limits = {"Min": -1.0, "Max": 1.0} if np.dtype(dtype).kind == "f" else {"Min": 20, "Max": 50}
    usual = {**_MEMBERS, **limits, "MinMaxDataType": DATA_TYPES[np.dtype(dtype)]}
    usual |= _OF_HARD if "_HARD_" in operator else {}
    own = {name: usual[name] for name in spec(operator).members if name in usual}
    return Step(operator, dtype, tuple({**own, **members}.items()))


def _row(operator: str, dtype: str, name: str = "", members: Any = (), **options: Any) -> ElementWise:
    short, is_float = operator.removeprefix("ELEMENT_WISE_"), np.dtype(dtype).kind == "f"
    is_long = short in _LONG or (operator in FUNCTIONS if is_float else short in _LONG_OF_INTEGERS)
    limit = None if is_long else 1.1
    steps = (_step(operator, dtype, **dict(members)),)
    return ElementWise("ELEMENT_WISE", f"{short}{name}", limit, dtype, steps=steps, **options)


def element_wise() -> Iterator[ElementWise]:
    """All pointwise operators, on some types each."""
    for operator in with_trait(Trait.POINTWISE):
        row = spec(operator).pointwise
        element = next(name for name in row.inputs if name != "ConditionTensor")
        taken = [DTYPES[kind].name for kind in row.table.newest[element].data_types]
        for choice in _SAMPLED:
            for dtype in [dtype for dtype in choice if dtype in taken][:1]:
                yield _row(operator, dtype)
    scaled = {"ScaleBias": DML_SCALE_BIAS(Scale=0.5, Bias=1)}
    yield _row("ELEMENT_WISE_IDENTITY", "float32", ", scaled", scaled)
    for operator, dtype in (
        ("ADD", "float32"),
        ("ADD", "int8"),
        ("LOGICAL_GREATER_THAN", "float32"),
        ("IF", "float16"),
    ):
        yield _row(f"ELEMENT_WISE_{operator}", dtype, f", rows of {ODD_WIDTH}", width=ODD_WIDTH)
        for part in ("row", "column"):
            for width in (WIDTH, ODD_WIDTH):
                yield _row(
                    f"ELEMENT_WISE_{operator}", dtype, f", a {part} for all, {width}", broadcast=part, width=width
                )
    yield from _chains()


def _chains() -> Iterator[ElementWise]:
    """Of operators by their short names; a type before one is that of its tensors."""
    for dtype, limit, text in (
        ("float32", 1.1, "MULTIPLY, ADD, CLIP"),
        ("float16", 1.1, "MULTIPLY, ADD, CLIP"),
        ("float32", 1.1, "LOGICAL_GREATER_THAN, IF"),
        ("float16", 1.1, "LOGICAL_LESS_THAN, LOGICAL_NOT, IF"),
        ("float32", 1.1, "uint8 DEQUANTIZE_LINEAR, MULTIPLY, ACTIVATION_RELU, QUANTIZE_LINEAR"),
        (
            "float32",
            1.15,
            "uint8 DEQUANTIZE_LINEAR, MULTIPLY, ADD, ACTIVATION_HARD_SWISH, LOGICAL_GREATER_THAN, LOGICAL_NOT, IF, "
            "QUANTIZE_LINEAR",
        ),
        ("float32", 1.15, "SUBTRACT, MULTIPLY, ABS, SQRT, ADD, ACTIVATION_LEAKY_RELU, DIVIDE, CLIP"),
    ):
        types, names = zip(*(name.rpartition(" ")[::2] for name in text.split(", ")), strict=True)
        prefixes = ["" if name.startswith("ACTIVATION_") else "ELEMENT_WISE_" for name in names]
        steps = [
            _step(f"{prefix}{name}", own or dtype) for prefix, name, own in zip(prefixes, names, types, strict=True)
        ]
        title = ", ".join(names) if len(names) < 4 else f"{names[0]} to {names[-1]}, {len(names)} operators"
        yield ElementWise("ELEMENT_WISE", title, limit, dtype, steps=tuple(steps))
