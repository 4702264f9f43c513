"""Engines: what computes. They never validate; one takes an operator, or declines with a reason."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from ..core.strided_layout import Array, Layout
from ..operators.schema import OperatorDesc, OperatorSpec

Run: TypeAlias = Callable[[Sequence[Array | None], Sequence[Array | None]], None]
"""Takes arrays of exactly the layouts compiled for; writes every element of the outputs, and nothing else."""


class BindableRun(ABC):
    """A Run that takes less time where its arrays stay what they are.

    Attributes:
        size: bytes of what was prepared for it.
        plan: the native plan behind it; None of all others.
    """

    size: int
    plan: Any = None

    @abstractmethod
    def __call__(self, inputs: Sequence[Array | None], outputs: Sequence[Array | None]) -> None: ...

    @abstractmethod
    def bound(self, inputs: Sequence[Array | None], outputs: Sequence[Array | None]) -> Callable[[], None]:
        """What runs on these arrays, again and again."""


class GivingRun(ABC):
    """A Run that, where nobody says where its one output is to lie, brings it in memory of its own, in less time."""

    @abstractmethod
    def __call__(self, inputs: Sequence[Array | None], outputs: Sequence[Array | None]) -> None: ...

    @abstractmethod
    def give(self, inputs: Sequence[Array | None]) -> Array:
        """The output, of the layout compiled for."""


Prepare: TypeAlias = Callable[[Sequence[Array | None]], Run | None]
TryRun: TypeAlias = Callable[[Sequence[Any], Sequence[Any], bool], bool]
"""The same for lists of any objects and a word on whether the operator may run in-place. Returns False, having done
nothing, wherever it would take more than a glance to see that the rules on bindings hold."""


@dataclass(frozen=True, slots=True)
class Kernel:
    """What serves one compiled operator. It holds no state: several threads may run it at once."""

    description: str
    run: Run
    try_run: TryRun | None = None
    prepare: Prepare | None = None
    """Takes the inputs whose values stay, None for the others; returns what runs in place of `run` as long as they do,
    having done with them beforehand what takes time. None where there is nothing to gain."""
    plan: Any = None
    """The native plan behind `run`, which takes addresses; None of all others."""
    run_at: Callable[[Sequence[Any], Sequence[Any], bytes], None] | None = None
    """Of a GPU: as `run`, on the library's own tensors and their addresses, 8 bytes each, inputs first."""
    channels_last: bool = False
    """Whether, prepared, it is faster where the channels of its tensors lie last."""
    checks_values: bool = False
    """Whether `try_run` returns False too where the operator's `check_values` would find something."""
    may_overwrite_input: bool = False
    """Whether the output may be the first input's very elements, though the specification does not promise it: what
    lies between the operators of a graph nobody sees."""
    gives: bool = False
    """Whether `run`, and what `prepare` returns, is a GivingRun."""


@dataclass(frozen=True, slots=True)
class Declined:
    """Why an engine does not serve an operator."""

    reason: str


class Engine(Protocol):
    name: str
    fuses_pointwise: bool
    """Whether a chain of element-wise operators is one pass over memory."""

    def compile(
        self,
        spec: OperatorSpec,
        desc: OperatorDesc,
        inputs: Sequence[Layout | None],
        outputs: Sequence[Layout | None],
    ) -> Kernel | Declined:
        """The kernel for a valid desc whose tensors lie as the layouts say; they differ from the desc's own where a
        function was given arrays with strides that no desc can have."""
        ...
