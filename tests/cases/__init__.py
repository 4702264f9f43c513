"""Cases as data: a desc, its inputs, the outputs that it must give. One harness runs them all, on every engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, NamedTuple

import numpy as np

from anydml import DML_BUFFER_TENSOR_DESC, TensorDataType
from anydml.core.enums import PREFIXES
from anydml.core.strided_layout import DATA_TYPES
from anydml.operators import spec, spec_of
from anydml.operators.schema import OperatorDesc
from support_tables import Support


@dataclass(frozen=True)
class Case:
    """One operator on given values."""

    id: str
    desc: OperatorDesc
    inputs: Sequence[np.ndarray | None]
    outputs: Sequence[np.ndarray | None]
    function: str = ""
    """The function that does the same, where there is one."""
    arguments: Sequence[Any] = ()
    options: Mapping[str, Any] = field(default_factory=dict)


class Negative(NamedTuple):
    """A desc that breaks one rule, at one place."""

    rule: str
    desc: Any
    where: str
    found: str
    expected: str
    strict: bool = False


def tensor(
    sizes: Sequence[int], data_type: str = "FLOAT32", strides: Sequence[int] | None = None
) -> DML_BUFFER_TENSOR_DESC:
    return DML_BUFFER_TENSOR_DESC(DataType=TensorDataType[data_type], Sizes=sizes, Strides=strides)


def tensor_of(array: np.ndarray, strides: Sequence[int] | None = None) -> DML_BUFFER_TENSOR_DESC:
    return DML_BUFFER_TENSOR_DESC(DataType=DATA_TYPES[array.dtype], Sizes=array.shape, Strides=strides)


def bad(**members: Any) -> DML_BUFFER_TENSOR_DESC:
    """A tensor with something wrong; {2, 3} FLOAT32 is what is right."""
    return DML_BUFFER_TENSOR_DESC(**{"DataType": TensorDataType.FLOAT32, "Sizes": (2, 3), **members})


GOOD = bad()


def alike(operator: str, **members: Any) -> OperatorDesc:
    """An operator whose tensors are all alike."""
    found = spec(operator)
    values = {"Tensor": GOOD, "FLOAT": 1, "SCALAR": 1, "UINTs": (0,), "enums.TensorDataType": TensorDataType.FLOAT32}
    values = {f"enums.{enum.__name__}": next(iter(enum)) for enum in PREFIXES} | values
    right = {name: values[kind] for name, kind in found.members.items() if kind in values}
    return found.desc(**{**right, **members})


def pointwise(
    id: str, operator: str, inputs: Sequence[np.ndarray], y: Any, strides: Sequence[int] | None = None, **options: Any
) -> Case:
    """Of a pointwise operator, whose result has the type of the first input; `strides` are those of the last one."""
    found = spec(operator)
    *names, output = found.tensors
    expected = np.asarray(y, inputs[0].dtype)
    tensors = {name: tensor_of(x) for name, x in zip(names, inputs, strict=True)}
    tensors |= {names[-1]: tensor_of(inputs[-1], strides), output: tensor_of(expected)}
    name = operator.removeprefix("ELEMENT_WISE_").removeprefix("ACTIVATION_").lower()
    return Case(f"{name}-{id}", found.desc(**tensors, **options), list(inputs), [expected])


def negatives_of_alike(operators: Sequence[str]) -> list[Negative]:
    """Those of an output that is not as the inputs are."""
    negatives = []
    for operator in operators:
        *_, output = spec(operator).tensors
        # Where another member has the output's type too, that of the input is the wrong one.
        wrong = "InputTensor" if operator in ("ELEMENT_WISE_CLIP1", "ELEMENT_WISE_POW") else output
        half, longer = bad(DataType=TensorDataType.FLOAT16), bad(Sizes=(2, 3, 1))
        negatives += [
            Negative("(C1)", alike(operator, **{wrong: half}), f"{output}.DataType", "FLOAT", "that of"),
            Negative("(C2)", alike(operator, **{output: longer}), f"{output}.DimensionCount", "3", "2, that of"),
            Negative("(C2)", alike(operator, **{output: bad(Sizes=(2, 4))}), f"{output}.Sizes[1]", "4", "3"),
        ]
    return negatives


def modules(name: str) -> list[Any]:
    """What families' files have under a name, as CASES, RIGHT, NEGATIVES, SUPPORT or KERNELS; new files are found."""
    families = sorted(module.name for module in iter_modules(__path__))
    return [getattr(import_module(f".{family}", __name__), name, {}) for family in families]


def collected(name: str) -> list[Any]:
    return [each for found in modules(name) for each in found]


def all_cases() -> list[Case]:
    return collected("CASES")


def operator_of(case: Case) -> str:
    found = spec_of(case.desc)
    assert found is not None, case.id
    return found.name


def some_of_each(cases: Sequence[Case], most: int = 8) -> list[Case]:
    """Of each operator at most so many, from all over its list: for what a new way of calling it shows, of which
    kernels know nothing."""
    by_operator: dict[type, list[Case]] = {}
    for case in cases:
        by_operator.setdefault(type(case.desc), []).append(case)
    return [case for each in by_operator.values() for case in each[:: -(-len(each) // most)]]


def all_kernels() -> dict[str, str]:
    """What the description of the CPU's kernel begins with, a pattern, for each operator that has one for its cases."""
    return {name: each for kernels in modules("KERNELS") for name, each in kernels.items()}


def all_support() -> dict[str, Support]:
    """By operator, with the function that tables are for where there are several."""
    tables = {name: each for support in modules("SUPPORT") for name, each in support.items()}
    return {name: each if isinstance(each, Support) else Support(each) for name, each in tables.items()}
