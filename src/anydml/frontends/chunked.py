"""Chunked arrays among what graphs are called with: the front end of their library runs a graph on batches."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import Any

from ..functions._operand_adapter import front_end_of


def batches_for(values: Iterable[Any]) -> Any:
    """The module `batches` of the front end of the first value that has one; None where none has."""
    found = next(filter(None, map(front_end_of, values)), None)
    return None if found is None else import_module(f"{found}.batches")
