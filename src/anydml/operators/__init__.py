"""The table of operators. A line names the file that specifies the operator; it is loaded on first use."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

from ..schema import OperatorSpec

if TYPE_CHECKING:
    from .cumulative import DML_CUMULATIVE_PRODUCT_OPERATOR_DESC as DML_CUMULATIVE_PRODUCT_OPERATOR_DESC
    from .cumulative import DML_CUMULATIVE_SUMMATION_OPERATOR_DESC as DML_CUMULATIVE_SUMMATION_OPERATOR_DESC
    from .join import DML_JOIN_OPERATOR_DESC as DML_JOIN_OPERATOR_DESC
    from .pooling import (
        DML_QUANTIZED_LINEAR_AVERAGE_POOLING_OPERATOR_DESC as DML_QUANTIZED_LINEAR_AVERAGE_POOLING_OPERATOR_DESC,
    )

OPERATORS = {
    "JOIN": "join",
    "CUMULATIVE_SUMMATION": "cumulative",
    "CUMULATIVE_PRODUCT": "cumulative",
    "QUANTIZED_LINEAR_AVERAGE_POOLING": "pooling",
}
"""Operator to family file, in the order of DML_OPERATOR_TYPE."""

ANY = f"one of the {len(OPERATORS)} operators that `anydml ops` lists"
"""What a message expects; all their names would bury it."""


@cache
def spec(name: str) -> OperatorSpec:
    """The specification of an operator in the table, loading its family where need be."""
    found: OperatorSpec = getattr(import_module(f".{OPERATORS[name]}", __name__), name)
    return found


def spec_of(desc: object) -> OperatorSpec | None:
    """The specification that a desc is of; None where it is no operator's desc."""
    name = type(desc).__name__.removeprefix("DML_").removesuffix("_OPERATOR_DESC")
    if name not in OPERATORS:
        return None
    found = spec(name)
    return found if type(desc) is found.desc else None
