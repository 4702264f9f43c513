"""Specifications of what graphs make of several operators, for kernels that do them at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from ..core.enums import OperatorType
from .schema import ConstraintFailure, OperatorSpec


def _none(desc: Any) -> Iterator[ConstraintFailure]:
    return iter(())


@dataclass(frozen=True, kw_only=True)
class FusedSpec(OperatorSpec):
    """No operator of DirectML's, and without rules: the descs of its parts have been checked.

    `support` says which members are tensors, and no more.
    """

    title: str
    operator_type: OperatorType = OperatorType.INVALID
    constraints: Callable[[Any], Iterator[ConstraintFailure]] = _none
    sizes_rule: str = ""

    @property
    def name(self) -> str:
        return self.title
