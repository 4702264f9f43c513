"""Dispatchables that are models of their own: ONNX's, and DirectML's serialised graphs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from ...core.enums import FeatureLevel
from ...core.errors import Violation, closest, listing
from ...core.strided_layout import Array
from ...device import Device
from .buffers import Buffer
from .commands import Binding, Bindings, Dispatch, at, model_violation

Buffers = Mapping[str, Buffer | None]


class Prepared(ABC):
    """A model on a device, ready to be dispatched."""

    @abstractmethod
    def explain(self) -> str:
        """What serves it."""

    @abstractmethod
    def bound(self, command: Dispatch, buffers: Buffers, memory: Mapping[str, Array], there: Mapping[str, Any]) -> Run:
        """A dispatch with its resources.

        Args:
            command: the dispatch.
            buffers: resources, with what is known of them by now.
            memory: their bytes on the host.
            there: the same where the device computes.
        """


class Run(ABC):
    """What a dispatch runs, once or often."""

    @abstractmethod
    def __call__(self) -> None:
        """Runs it once."""

    def results(self) -> Sequence[tuple[Binding, Any]]:
        """The arrays that outputs are to hold; none where they have been written to."""
        return ()


class Whole(ABC):
    """A dispatchable whose inputs and outputs have the names that its file gives them.

    Attributes:
        where: its place in the model.
    """

    where: str

    @property
    @abstractmethod
    def inputs(self) -> Sequence[str]:
        """The names that a dispatch binds resources to."""

    @property
    @abstractmethod
    def outputs(self) -> Sequence[str]:
        """Likewise."""

    @abstractmethod
    def check(self, feature_level: FeatureLevel, strict: bool) -> list[Violation]:
        """What is wrong with it by itself."""

    @abstractmethod
    def check_dispatch(
        self, command: Dispatch, buffers: Buffers, feature_level: FeatureLevel, strict: bool
    ) -> list[Violation]:
        """What is wrong with a dispatch whose bindings have names that there are."""

    @abstractmethod
    def prepare(self, device: Device) -> Prepared:
        """Compiles it."""

    def check_names(self, command: Dispatch) -> list[Violation]:
        """Rule (M12): bindings name inputs and outputs, each once."""
        known = [*self.inputs, *self.outputs]
        wrong = []
        for name, given in command.bindings.items():
            place = at(f"{command.where}.bindings", name)
            if name not in known:
                expected = f"an input or an output: {listing(known)}"
                wrong.append(model_violation(place, "(M12)", "no such tensor", expected, closest(name, known)))
            elif len(given) != 1 or given[0] is None:
                wrong.append(model_violation(place, "(M12)", f"{len(given)} bindings", "one"))
        return wrong


def bound_to(bindings: Bindings, name: str) -> Binding | None:
    """What a tensor is bound to."""
    return bindings[name][0] if name in bindings else None
