"""What operators are compiled and run in: a memory, engines in order, and the rules that hold.

Operators, compiled operators and graphs take a context. :class:`anydml.Device` is the one that users make.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from ..backends import engines
from ..backends.base import Declined, Engine, Kernel
from ..backends.torch.devices import NAMES as GPU_NAMES
from ..backends.torch.devices import find
from ..core.annotations import unquoted
from ..core.enums import ExecutionFlags, FeatureLevel, HResult
from ..core.errors import Violation, kind_of, listing, refuse
from ..core.memory import HOST, Memory
from ..core.strided_layout import Layout
from ..operators.schema import OperatorDesc, OperatorSpec, no_value_checks
from ..operators.validate import check_values, flag_of, level_of
from .kernel_selection import KernelSelection
from .slots import Slot

DEVICE_NAMES = ("cpu", "reference")


@unquoted
class Context:
    """Where operators run, and by which rules; the arguments are those of :class:`anydml.Device`."""

    def __init__(
        self,
        name: str = "cpu",
        feature_level: FeatureLevel | str = FeatureLevel.LEVEL_6_4,
        strict: bool = False,
        debug: bool = False,
    ) -> None:
        if type(name).__module__ == "torch" and type(name).__name__ == "device":
            name = str(name)
        is_gpu = isinstance(name, str) and GPU_NAMES.fullmatch(name) is not None
        if not is_gpu and (not isinstance(name, str) or name not in DEVICE_NAMES):
            expected = listing([*DEVICE_NAMES, "cuda", "cuda:1", "xpu"])
            remedy = "Names are PyTorch's: cuda is a GPU of NVIDIA or AMD, xpu one of Intel"
            refuse("Device", "(D1)", "name", kind_of(name), expected, remedy, hresult=HResult.DXGI_ERROR_UNSUPPORTED)
        self.feature_level = level_of("Device", feature_level)
        self.name = name
        self.strict = flag_of("Device", "strict", strict)
        self.debug = flag_of("Device", "debug", debug)
        self.memory: Memory = HOST
        self._engines: tuple[Engine, ...]
        self._reduced: tuple[Engine, ...]
        """Where half precision is allowed."""
        if is_gpu:
            self.memory, self._engines, self._reduced = _gpu(name)
        else:
            self._engines = self._reduced = engines(name)

    def __repr__(self) -> str:
        strict = ", strict=True" if self.strict else ""
        return f"Device({self.name!r}, FeatureLevel.{self.feature_level.name}{strict})"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.name, self.feature_level, self.strict, self.debug)

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        """A place, which what is copied stays in."""
        return self


def select_kernel(
    context: Context,
    spec: OperatorSpec,
    desc: OperatorDesc,
    inputs: Sequence[Slot],
    outputs: Sequence[Slot],
    flags: ExecutionFlags = ExecutionFlags.NONE,
) -> KernelSelection:
    """Asks the engines in turn; the functions compile here too, for the layouts of their arrays."""
    declined: list[tuple[str, Declined]] = []
    is_reduced = ExecutionFlags.ALLOW_HALF_PRECISION_COMPUTATION in flags
    for engine in context._reduced if is_reduced else context._engines:
        answer = engine.compile(spec, desc, [slot.aligned for slot in inputs], [slot.aligned for slot in outputs])
        if isinstance(answer, Kernel):
            return KernelSelection(engine, answer, tuple(declined))
        declined.append((engine.name, answer))
    reasons = "; ".join(f"{name}: {each.reason}" for name, each in declined)
    refuse(
        spec.name,
        "(D8)",
        "",
        reasons,
        f"a kernel on {context}",
        'The device "cpu" has one',
        hresult=HResult.DXGI_ERROR_UNSUPPORTED,
    )


def fuses(
    context: Context,
    spec: OperatorSpec,
    desc: OperatorDesc,
    inputs: Sequence[Layout | None],
    outputs: Sequence[Layout | None],
) -> bool:
    """Whether a chain of operators of a graph is better given to the engines as one."""
    engine = context._engines[0]
    return engine.fuses_pointwise and isinstance(engine.compile(spec, desc, inputs, outputs), Kernel)


def checks_values(context: Context, spec: OperatorSpec) -> bool:
    """Whether values of an operator's inputs are looked at before it runs."""
    return spec.check_values is not no_value_checks and (context.memory.is_host or context.debug)


def wrong_values(context: Context, spec: OperatorSpec, desc: OperatorDesc, inputs: Sequence[Any]) -> list[Violation]:
    """What an operator demands of the values of its inputs; nothing on a GPU, but with `debug`."""
    if not checks_values(context, spec):
        return []
    if not context.memory.is_host:
        inputs = [None if array is None else array.numpy() for array in inputs]
    return check_values(spec, desc, inputs)


def _gpu(name: str) -> tuple[Memory, tuple[Engine, ...], tuple[Engine, ...]]:
    found = find(name)
    if isinstance(found, tuple):
        problem, remedy = found
        expected = "a device that PyTorch and Triton reach"
        refuse("Device", "(D7)", "name", problem, expected, remedy, hresult=HResult.DXGI_ERROR_UNSUPPORTED)
    # On first use, as PyTorch takes a second to load.
    from ..backends.torch.memory import TorchMemory
    from ..backends.triton.engine import GpuEngine

    return TorchMemory(found), (GpuEngine(name, found),), (GpuEngine(name, found, allow_tf32=True),)
