"""Cases as data: a desc, its inputs, the outputs that it must give. One harness runs them all, on every engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from anydml import DML_BUFFER_TENSOR_DESC, TensorDataType
from anydml.core.strided_layout import DATA_TYPES
from anydml.operators.schema import OperatorDesc


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


FAMILIES = (
    "element_wise",
    "activation",
    "convolution",
    "gemm",
    "max_pooling",
    "cumulative",
    "join",
    "slice",
    "padding",
    "gather",
    "image",
    "cast",
    "fill",
    "pooling",
    "recurrent",
    "reduce",
    "normalization",
)


def all_cases() -> list[Case]:
    return [case for family in FAMILIES for case in import_module(f".{family}", __name__).CASES]


def negatives_beside_cases() -> list[Negative]:
    families = (import_module(f".{family}", __name__) for family in FAMILIES)
    return [negative for family in families for negative in getattr(family, "NEGATIVES", ())]
