"""A model as it was read, which can be checked and run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ...core.strided_layout import Array
from ...device import Device
from .content import Content
from .session import Session
from .timing import Timing


@dataclass(frozen=True, slots=True, kw_only=True)
class Model(Content):
    """A model as :func:`load` read it. Immutable.

    What could not be read is None, so that all that is right can be checked all the same.
    """

    def run(
        self,
        device: Device | str = "cpu",
        *,
        iterations: int | None = None,
        timing: Timing | None = None,
        memory_limit: int | None = None,
        write: Callable[[str], object] | None = None,
        progress: Callable[[str, int, int], object] | None = None,
    ) -> dict[str, Array]:
        """Runs every command, once all of the model has been checked.

        Args:
            device: a Device or its name.
            iterations: how often each dispatch is run and timed; None for once, without a word on time. An operator
                that works in-place takes its own result as the next input.
            timing: more of how each dispatch is timed, in place of `iterations`.
            memory_limit: as for :meth:`check`.
            write: takes what commands print, in pieces; standard output where None.
            progress: takes the name of a dispatchable, iterations done, and iterations, now and then; or milliseconds,
                where these are given.

        Returns:
            The elements of every resource afterwards, in one dimension.

        Raises:
            DMLError: every violation; DMLMemoryError where the memory is too little.
        """
        if timing is None and iterations is not None:
            timing = Timing(iterations=iterations)
        session = Session(self, device, memory_limit)
        session.tell_initialisation(timing, write)
        for command in self.commands:
            session.execute(command, timing, write, progress)
        return {name: session.elements(name) for name in self.resources}
