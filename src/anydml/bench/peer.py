"""A library that has a row's operator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from .places import Run


class Peer(NamedTuple):
    """A library that has the operator, made ready for a row."""

    run: Run
    result: Callable[[], Any]
    """What the last run computed."""
    expected: Any
    """What it is to compute, where that differs from what we do by its parameters."""
    seconds: float = 0.0
    """Of the run that was checked."""
    error: float | None = None
    """Of its result, in units in the last place, where that is measured."""


class Absent(Exception):
    """Why a library is not measured in a row."""
