from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

Layout: TypeAlias = tuple[int, Sequence[int], Sequence[int]]
"""The data type, the sizes, and the strides in bytes."""
AttributeValues: TypeAlias = Sequence[int] | Sequence[float] | Sequence[tuple[str, Mapping[str, AttributeValues]]]
"""The values of a member of a desc, as ``OperatorSpec.attributes`` gives them."""

class Plan:
    """An operator made ready; several threads may run it at once."""

    @property
    def description(self) -> str: ...
    @property
    def checks_values(self) -> bool:
        """Whether try_run() looks at the values that inputs have to have."""

    @property
    def prepares(self) -> bool:
        """Whether there is anything to prepare."""

    @property
    def prepared_bytes(self) -> int: ...
    def prepare(self, inputs: Sequence[Any]) -> Plan | None:
        """A plan that has prepared what takes time, of inputs that stay as they are, None for the others; None where it
        is of no use."""

    def run(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        """Runs on buffers, each the address of its element [0, ..., 0]; None for an absent tensor."""

    def try_run(self, inputs: Sequence[Any], outputs: Sequence[Any], in_place: bool) -> bool:
        """Runs on lists of buffers that plainly fit; False, and nothing done, where the rules have to look."""

class PlanSequence:
    """Plans that run one after the other, one run at a time.

    Args:
        steps: plans with the addresses of their inputs and outputs: 0 for an absent tensor, -1 - n for the n-th of the
            arrays of a run. What lies there has to stay.
    """

    def __init__(self, steps: Sequence[tuple[Plan, Sequence[int], Sequence[int]]]) -> None: ...
    def run(self, arrays: list[Any]) -> None:
        """Runs all, on arrays that lie as the plans have them; None for one that nothing reads."""

class LayoutMatcher:
    """The layouts of a dispatch's inputs."""

    def __init__(self, inputs: Sequence[Layout | None]) -> None: ...
    def fits(self, inputs: Sequence[Any], written: Sequence[tuple[int, int]]) -> bool:
        """Whether a list of arrays is plainly laid out so, and apart from ranges of addresses."""

class DeviceLayoutMatcher:
    """The layouts of a dispatch's tensors on a device.

    Args:
        tensor_type: whose functions for C DLPack tells of; of a type that has none, no tensor fits.
        device: as DLPack numbers it.
        questions: asked of each tensor; the answers have to be False.
    """

    def __init__(
        self,
        tensor_type: type,
        inputs: Sequence[Layout | None],
        outputs: Sequence[Layout | None],
        device: tuple[int, int],
        questions: Sequence[Callable[[Any], bool]],
    ) -> None: ...
    def places(self, inputs: Sequence[Any], outputs: Sequence[Any], in_place: bool) -> bytes | None:
        """The addresses of lists of tensors, 8 bytes each, where they are plainly laid out so and no output shares
        memory with another tensor; else None."""

class CallKey:
    """The key of a call: all that tells it from others but for the values and places of its arrays."""

    def equals(self, other: CallKey) -> bool:
        """Whether it is of a call that is alike."""

class CallCache:
    """The prepared calls of all functions; all are forgotten where there would be more than `capacity`.

    Args:
        classify: of a class how its objects stand in a key, as a number of KeyKind in ``call_key.h``.
        canonical: of an object of kind kValue the one that stands for all that are equal to it.
    """

    def __init__(self, capacity: int, classify: Callable[[type], int], canonical: Callable[[Any], Any]) -> None: ...
    def clear(self) -> None: ...
    def __len__(self) -> int: ...

class CachedFunction:
    """One function's share of a cache.

    Args:
        names: its parameters; `out` is what is written to.
    """

    def __init__(self, cache: CallCache, names: Sequence[str]) -> None: ...
    def key(self, args: tuple[Any, ...], options: dict[str, Any]) -> CallKey | None:
        """The key of a call that could be remembered and is not; else None."""

    def arrays(self, key: CallKey) -> list[tuple[str, int | None, Any]]:
        """The arrays of a call, in the key's order: the parameter, the place in its list or None, the array."""

    def keep(
        self,
        key: CallKey,
        run: Callable[..., None],
        plan: Plan | None,
        in_place: bool,
        on_device: bool,
        inputs: Sequence[tuple[int | None, Any, Layout, tuple[float, float] | None] | None],
        outputs: Sequence[tuple[int | None, Any, Any, Any, Layout] | None],
        results: Sequence[int],
        is_list: bool,
    ) -> None:
        """Remembers what a call comes down to.

        Args:
            run: the kernel, for what has no plan: of lists of inputs and outputs, and on a device of their addresses,
                8 bytes each.
            on_device: whether the kernel takes tensors as they are given, and not NumPy's arrays.
            inputs: the number of an array of the key, what makes of it the operand (None: it is it), the operand's
                layout, and the least and the largest value that it may hold (None: it may hold any); or None, a
                constant, its layout and None. None for what is absent.
            outputs: the number of the array given for it, or None; what makes a new one, on the host its data type and
                shape; what makes of it what the kernel writes to, and what the caller gets (None: it itself); the
                layout of what is written.
            results: the outputs that the function gives.
            is_list: whether it gives a list of them.
        """

class function:
    """What tries its cache first, and, where no call was like this one, calls `otherwise` with the arguments; in all
    else like a function of Python's, once :func:`functools.update_wrapper` has made it like one."""

    def __init__(
        self, cached: CachedFunction, otherwise: Callable[[tuple[Any, ...], dict[str, Any]], Any], /
    ) -> None: ...
    def __call__(self, *args: Any, **options: Any) -> Any: ...

def compile(
    name: str,
    inputs: Sequence[Layout | None],
    outputs: Sequence[Layout | None],
    attributes: Mapping[str, AttributeValues],
) -> Plan | str:
    """A plan, or the reason why there is none."""

def kernels() -> list[str]:
    """The operators that have a kernel; ELEMENT_WISE stands for all pointwise ones."""

def opcodes() -> list[str]:
    """The instructions of pointwise programs, by their numbers."""

def build_info() -> dict[str, str]:
    """How this module was built."""
