"""What a dispatch of a graph works in: memory of the tensors between kernels, the arrays and the call of each step."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ..backends.base import GivingRun, Run
from ..core.memory import restride
from ..core.strided_layout import Array, Layout
from .ir import Place, Step
from .verify import Port

if TYPE_CHECKING:
    from .._native import PlanSequence


class BindingSlot(NamedTuple):
    """Where what a dispatch brings is put."""

    arrays: list[Array | None]
    position: int
    place: Place
    is_output: bool
    number: int
    """Among the inputs or the outputs of the graph."""
    is_whole: bool
    """Whether it is the very tensor that is bound."""


class Workspace(NamedTuple):
    """Memory of the intermediate tensors, with the arrays of each step; one dispatch at a time has it."""

    memory: Array
    arrays: list[tuple[list[Array | None], list[Array | None]]]
    calls: list[Callable[[], None]]
    """What runs each step."""
    holes: list[list[BindingSlot]]
    """Of each step."""
    looks: list[bool]
    """Whether values are looked at before a step runs."""
    parts: list[PlanSequence | int]
    """What a dispatch does in turn: native plans at once, or a step by its number."""
    dropped: list[list[Given]]
    """What is not read again after each step."""
    recording: Any
    """What replays the dispatches of a device; None of others."""


class Given:
    """A tensor that a kernel brings in memory of its own, from then on until nothing reads it any more."""

    def __init__(self) -> None:
        self.array: Any = None


class Seen:
    """A given tensor, as an operator has it."""

    def __init__(self, given: Given, layout: Layout) -> None:
        self._given = given
        self._layout = layout

    @property
    def tensor(self) -> Any:
        return restride(self._given.array, self._layout.sizes, self._layout.strides).tensor  # type: ignore[attr-defined]


class Work(NamedTuple):
    """What the kernels want beside a dispatch's inputs and outputs, as long as the persistent resource stays."""

    known: dict[Port, tuple[Array, int]]
    """Memory and offset of what is constant, owned or prepared."""
    runs: list[Run]
    """Each step's, prepared for what is known."""
    free: dict[int, list[Workspace]]
    """By lane."""


def sequence_of(steps: list[tuple[Any, list[int], list[int]]]) -> Iterator[PlanSequence]:
    if steps:
        from .._native import PlanSequence

        yield PlanSequence(steps)


def bring(run: GivingRun, reads: Sequence[Array | None], given: Given) -> None:
    given.array = run.give(reads)


def looks_at_values(step: Step, work: Work, reads: Sequence[Array | None]) -> bool:
    """Whether values that a step refuses may come with a dispatch; those that are known are looked at here."""
    if step.demands is None:
        return False
    spec, desc = step.vertex.spec, step.vertex.desc
    limited = spec.value_limits(desc)
    members = [name for name, _ in spec.inputs(desc)]
    places = [place for name, place in zip(members, step.reads, strict=True) if name.partition("[")[0] in limited]
    if not limited or any(place is not None and place.port not in work.known for place in places):
        return True
    step.check(reads)
    return False
