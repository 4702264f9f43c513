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

class LayoutMatcher:
    """The layouts of a dispatch's inputs."""

    def __init__(self, inputs: Sequence[Layout | None], array_type: type) -> None: ...
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

def compile(
    name: str,
    inputs: Sequence[Layout | None],
    outputs: Sequence[Layout | None],
    attributes: Mapping[str, AttributeValues],
) -> Plan | str:
    """A plan, or the reason why there is none."""

def kernels() -> list[str]:
    """The operators that have a kernel; ELEMENT_WISE stands for all pointwise ones."""

def build_info() -> dict[str, str]:
    """How this module was built."""
