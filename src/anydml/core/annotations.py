"""Annotations that ``help()`` shows as they are written: strings, but without quotes."""

from __future__ import annotations

from types import FunctionType
from typing import Any, TypeVar

Described = TypeVar("Described")


class _Unquoted(str):
    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def unquoted(described: Described) -> Described:
    """A function, or a class with its methods, whose annotations are shown without quotes."""
    members: list[Any] = [described]
    if isinstance(described, type):
        members = [getattr(each, "fget", getattr(each, "__func__", each)) for each in vars(described).values()]
    for each in members:
        if isinstance(each, FunctionType):
            each.__annotations__ = {name: _Unquoted(text) for name, text in each.__annotations__.items()}
    return described
