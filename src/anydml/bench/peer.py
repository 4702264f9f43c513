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


def calling(compute: Callable[[], Any], output: Any, expected: Any, array_of: Callable[[Any], Any]) -> Peer:
    """By a function that writes into the row's output and gives None, or whose result `array_of` gives as an array."""
    last: list[Any] = [None]

    def run() -> None:
        last[0] = None  # makes room for the next one
        last[0] = compute()

    return Peer(run, lambda: output if last[0] is None else array_of(last[0]), expected)


class Absent(Exception):
    """Why a library is not measured in a row."""
