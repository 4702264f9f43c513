"""Numbers as text."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np


def number(value: Any) -> str:
    """A value in few characters: exactly where 6 digits do it, else with 4 digits, unless exactly is as short."""
    whole = isinstance(value, (int, np.integer)) or (math.isfinite(value) and value == int(value))
    # str() gives a float the fewest digits that are it and no other: 0.1 for a FLOAT16 that is nearer to 0.09998.
    exact = _plain_exponent(f"{value:.0f}" if whole else str(value))
    short = _plain_exponent(f"{float(value):.4g}")
    return minus(exact if len(exact.lstrip("-")) <= 6 or len(exact) <= len(short) else short)


def _plain_exponent(text: str) -> str:
    mantissa, _, exponent = text.partition("e")
    return f"{mantissa}e{int(exponent)}" if exponent else text


def minus(text: str) -> str:
    """With the sign that is as wide as a plus, in place of the hyphen."""
    return text.replace("-", "\N{MINUS SIGN}")


def factor(value: Any) -> str:
    """A value as an operand, where a leading sign would read as an operator."""
    text = number(value)
    return f"({text})" if value < 0 else text


def plus_term(value: Any) -> str:
    """A value added: `` + 3``, `` - 3``, nothing for 0."""
    return minus(f" {'-' if value < 0 else '+'} {number(abs(value))}") if value else ""


def braces(numbers: Iterable[object]) -> str:
    return "{" + ", ".join(map(str, numbers)) + "}"
