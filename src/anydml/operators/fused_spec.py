"""Specifications of what graphs make of several operators, for kernels that do them at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from ..core.enums import OperatorType
from .registry import spec_of
from .schema import ConstraintFailure, OperatorDesc, OperatorSpec


def _none(desc: Any) -> Iterator[ConstraintFailure]:
    return iter(())


@dataclass(frozen=True, kw_only=True)
class FusedSpec(OperatorSpec):
    """No operator of DirectML's, and without rules: the descs of its parts have been checked.

    `support` says which members are tensors, and no more.
    """

    title: str
    parts: Callable[[Any], list[str]]
    """The names of the operators that a desc stands for, in their order."""
    operator_type: OperatorType = OperatorType.INVALID
    constraints: Callable[[Any], Iterator[ConstraintFailure]] = _none
    sizes_rule: str = ""

    @property
    def name(self) -> str:
        return self.title


def names_of(desc: OperatorDesc, spec: OperatorSpec | None = None) -> list[str]:
    """The operators that a desc stands for, with the activations fused into them, in their order.

    Args:
        desc: of any operator.
        spec: its specification, which a desc that a graph has made does not tell.
    """
    if isinstance(spec, FusedSpec):
        return spec.parts(desc)
    own, activation = spec_of(desc), getattr(desc, "FusedActivation", None)
    assert own is not None
    return [own.name, *([] if activation is None else names_of(activation))]
