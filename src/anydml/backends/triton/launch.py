"""Launches of Triton kernels, prepared as far as they can be before the pointers are known."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import zip_longest
from typing import Any, NamedTuple, TypeAlias

import torch
import triton

from ...core.strided_layout import Layout
from ..base import Declined
from ..torch.devices import is_interpreted

BITS: dict[int, torch.dtype] = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
"""The integers that stand for all types of a size: sums and products wrap alike, and copies copy bits."""

Tensors: TypeAlias = Sequence[Any]
"""Tensors in header order, None for what is left out."""

MOST = WIDE = 1 << 31
"""Programs, of which a launch has fewer; offsets, which are counted in 32 bits below it."""

LARGE = (1 << 40) + 1
"""An argument of 64 bits that is a multiple of nothing: Triton compiles for what it sees."""


def too_many(programs: int) -> Declined | None:
    """What is said of more programs than a GPU takes."""
    return Declined(f"{programs} programs, where a GPU takes fewer than {MOST}") if programs >= MOST else None


def between_elements(layouts: Iterable[Layout]) -> Declined | None:
    """What is said of strides that no tensor of PyTorch's has."""
    are_whole = all(stride % layout.dtype.itemsize == 0 for layout in layouts for stride in layout.strides)
    return None if are_whole else Declined("strides are no multiple of an element")


class Planned(NamedTuple):
    """What a family makes of an operator: it launches kernels on the current stream, and never waits."""

    description: str
    run: Callable[[Tensors, Tensors], None]
    launches: Sequence[tuple[Launch, Sequence[torch.dtype | None]]] = ()
    """Those that are compiled at once, as nearly every dispatch uses them, with the types of the tensors that they get;
    others are compiled when they are needed."""
    run_at: Callable[[Tensors, Tensors, bytes], None] | None = None
    """As `run`, also given the addresses of inputs and outputs, 8 bytes each, where asking for them takes time."""
    prepare: Callable[[Tensors], Callable[[Tensors, Tensors], None] | None] | None = None
    """Takes the inputs whose values stay, None for the others; returns what runs in place of `run` while they do."""
    channels_last: bool = False
    """Whether it is faster where channels lie last."""
    gives: bool = False
    """Whether `run`, and what `prepare` returns, has a method `give` that takes the inputs and returns the output."""


class Launch:
    """A kernel with its grid and all arguments but the pointers, which come first.

    Args:
        kernel: decorated with triton.jit.
        programs: their number.
        arguments: integers after the pointers, tuples of them too.
        constants: by name, in the order of the signature.
        types: what the pointers point to, of Triton's types; None for the tensor's own.
    """

    def __init__(
        self,
        kernel: Any,
        programs: int,
        arguments: Sequence[Any],
        constants: dict[str, Any],
        types: Sequence[Any] = (),
        num_warps: int = 4,
    ) -> None:
        self._kernel = kernel
        self._grid = (programs, 1, 1)
        self._arguments = tuple(arguments)
        self._constants = constants
        self._values = tuple(constants.values())
        self._types = types
        # No multiplication and addition in one: results do not depend on what a compiler makes of them.
        self._options = {"num_warps": num_warps, "enable_fp_fusion": False}
        self._compiled: dict[tuple[int, ...], Callable[..., None]] = {}

    def __call__(self, *tensors: torch.Tensor | None, arguments: Sequence[Any] | None = None) -> None:
        """Launches on the current stream.

        Args:
            tensors: what the pointers point to; None where the kernel takes it.
            arguments: others than those prepared, of the same types; an integer may differ only where the kernel is not
                specialised on it.
        """
        arguments = self._arguments if arguments is None else arguments
        addresses = [None if tensor is None else tensor.data_ptr() for tensor in tensors]
        # Triton compiles for pointers to multiples of 16 bytes apart from others. What it has compiled takes addresses.
        key = tuple([address % 16 if address else 0 for address in addresses])
        launch = self._compiled.get(key)
        if launch is not None:
            launch(*addresses, *arguments, *self._values)
            return
        compiled = self._kernel[self._grid](*self.pointers(tensors), *arguments, **self._constants, **self._options)
        if compiled is not None:  # the interpreter compiles nothing
            self._compiled[key] = self._launcher(compiled)

    def _launcher(self, compiled: Any) -> Callable[..., None]:
        """As `compiled[grid]` on the device that is PyTorch's current one now, as whoever launches sees to; without the
        hooks of Triton's profiler, which take as long as all else to look for."""
        driver, grid = triton.runtime.driver.active, self._grid
        stream_on, device = driver.get_current_stream, driver.get_current_device()
        run, function, metadata = compiled.run, compiled.function, compiled.packed_metadata

        def launch(*arguments: Any) -> None:
            run(*grid, stream_on(device), function, metadata, None, None, None, *arguments)

        return launch

    def compile(self, device: torch.device, types: Sequence[torch.dtype | None]) -> None:
        """Compiles and loads the kernel for tensors at multiples of 16 bytes, on PyTorch's current device.

        Args:
            types: of the tensors; None for one that is left out.
        """
        if is_interpreted():
            return
        some = [None if dtype is None else torch.empty(1, dtype=dtype, device=device) for dtype in types]
        pointers = self.pointers(some)
        compiled = self._kernel.warmup(*pointers, *self._arguments, grid=self._grid, **self._constants, **self._options)
        self._compiled[(0,) * len(pointers)] = self._launcher(compiled)

    def pointers(self, tensors: Sequence[torch.Tensor | None]) -> list[Any]:
        """What Triton takes for tensors, of the kernel's types."""
        return [
            triton.reinterpret(tensor, dtype) if dtype is not None else tensor
            for tensor, dtype in zip_longest(tensors, self._types[: len(tensors)])
        ]


def next_power_of_2(n: int) -> int:
    return 1 << max(n - 1, 0).bit_length()
