"""What the tests of functions share: calls that break one rule, images, an engine that only looks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from anydml import Device, DMLError, cumulative_product, cumulative_summation, quantized_linear_average_pooling
from anydml.backends.base import Kernel
from harness import ENGINES

engine = pytest.mark.parametrize("engine", ENGINES)
scan = pytest.mark.parametrize("scan", [cumulative_summation, cumulative_product], ids=["sum", "product"])


def refused(rule: str, call: Callable[[], Any], *parts: str) -> DMLError:
    """The error of a call that breaks one rule; `parts` are in its text."""
    with pytest.raises(DMLError) as raised:
        call()
    assert {violation.rule for violation in raised.value.violations} == {rule}, raised.value
    for part in parts:
        assert part in str(raised.value)
    return raised.value


def image(*shape: int, dtype: Any = np.uint8) -> np.ndarray:
    return np.arange(np.prod(shape)).reshape(shape).astype(dtype)


def pool(x: Any, input_scale: Any = 1.0, input_zero_point: Any = None, **options: Any) -> Any:
    """A window of one element, unless told otherwise."""
    return quantized_linear_average_pooling(
        x, input_scale, input_zero_point, **{"output_scale": 1.0, "window_size": 1, **options}
    )


class Interface:
    """An object with ``__array_interface__`` and nothing else."""

    def __init__(self, memory: np.ndarray) -> None:
        self.memory = memory

    @property
    def __array_interface__(self) -> dict[str, Any]:
        return self.memory.__array_interface__


class Capsule:
    """An object with DLPack and nothing else."""

    def __init__(self, memory: np.ndarray) -> None:
        self.memory = memory

    def __dlpack__(self, **options: Any) -> Any:
        return self.memory.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self.memory.__dlpack_device__()


class Spy:
    """An engine that keeps what it is given."""

    name = "spy"
    inputs: tuple[Any, ...] = ()
    outputs: tuple[Any, ...] = ()

    def compile(self, *operator: Any) -> Kernel:
        return Kernel("keeps what it is given", self.run)

    def run(self, inputs: Any, outputs: Any) -> None:
        self.inputs, self.outputs = tuple(inputs), tuple(outputs)


def spying() -> tuple[Device, Spy]:
    device, spy = Device("reference"), Spy()
    device._engines = (spy,)
    return device, spy


TRUTHS = (True, np.True_, np.array(True))
