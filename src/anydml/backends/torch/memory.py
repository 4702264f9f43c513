"""Memory that PyTorch reaches, its tensors in NumPy's words."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import torch

from ...core.errors import Violation, error, kind_of, refuse, violation
from ...core.interop import as_array, of_subclass, remedy_of_float, without_gradients
from ...core.memory import HostStopwatch, Stopwatch
from ...core.strided_layout import DATA_TYPES, Array, Layout
from ...core.truth_values import BOOL
from .tensors import TYPES, stream_key_of

_NUMPY: dict[torch.dtype, np.dtype[Any]] = {
    TYPES[data_type]: dtype for dtype, data_type in DATA_TYPES.items() if data_type in TYPES
} | {torch.bool: BOOL}
_LARGEST = max(dtype.itemsize for dtype in DATA_TYPES)
"""Bytes of an element."""
_CYCLES = 200_000
"""Of the device, in which the host gives it a kernel."""
_SMALL = 1 << 20
"""Bytes that are copied through pinned memory, without waiting."""


class Flags(NamedTuple):
    writeable: bool
    c_contiguous: bool


@dataclass(frozen=True, slots=True, eq=False)
class TensorArray:
    """A tensor, as the rest of anydml looks at arrays."""

    tensor: torch.Tensor
    dtype: np.dtype[Any]

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.tensor.shape)

    @property
    def strides(self) -> tuple[int, ...]:
        """In bytes."""
        return tuple([step * self.dtype.itemsize for step in self.tensor.stride()])

    @property
    def ndim(self) -> int:
        return int(self.tensor.ndim)

    @property
    def size(self) -> int:
        return int(self.tensor.numel())

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        return self.size * self.itemsize

    @property
    def flags(self) -> Flags:
        return Flags(True, self.tensor.is_contiguous())

    @property
    def address(self) -> int:
        return int(self.tensor.data_ptr())

    def restrided(self, shape: Sequence[int], strides: Sequence[int]) -> TensorArray:
        steps = [step // self.itemsize for step in strides]
        return TensorArray(self.tensor.as_strided(shape, steps, self.tensor.storage_offset()), self.dtype)

    def reshape(self, shape: tuple[int, ...]) -> TensorArray:
        return TensorArray(self.tensor.reshape(shape), self.dtype)

    def astype(self, dtype: np.dtype[Any]) -> TensorArray:
        return TensorArray(self.tensor.to(_torch(dtype)), dtype)

    def view(self, dtype: Any) -> TensorArray:
        return TensorArray(self.tensor.view(_torch(np.dtype(dtype))), np.dtype(dtype))

    def numpy(self) -> Array:
        """A copy in the CPU's memory, which waits for the device."""
        array: Array = self.tensor.cpu().numpy()
        return array


def _torch(dtype: np.dtype[Any]) -> torch.dtype:
    return torch.bool if dtype == BOOL else TYPES[DATA_TYPES[dtype]]


class TorchMemory:
    """The memory of one of PyTorch's devices.

    Args:
        device: PyTorch's name of it, with its index; "cpu" in Triton's interpreter.
    """

    is_host = False

    def __init__(self, device: torch.device) -> None:
        self.device = device

    def import_array(self, operator: str, where: str, value: Any) -> Any:
        if isinstance(value, TensorArray):
            return value
        if not isinstance(value, torch.Tensor):
            if isinstance(value, (np.ndarray, np.generic, list, tuple)) or not hasattr(value, "__dlpack__"):
                return as_array(operator, where, value)
            try:
                value = torch.from_dlpack(value)
            except Exception as problem:  # what a foreign array raises is its own business; here it is a wrong operand
                reason = " ".join(str(problem).split())
                found = f"{type(value).__name__} ({reason})" if reason else kind_of(value)
                refuse(operator, "(A1)", where, found, f"an array on {self.device}", kind="type")
        return self._wrapped(operator, where, value)

    def _wrapped(self, operator: str, where: str, tensor: torch.Tensor) -> TensorArray:
        if tensor.device != self.device:
            remedy = f"Move it with .to({str(self.device)!r}), or pass device={str(tensor.device)!r}"
            refuse(operator, "(A12)", where, f"a tensor on {tensor.device}", f"one on {self.device}", remedy)
        expected = "a strided tensor that takes no part in automatic differentiation"
        if tensor.requires_grad and torch.is_grad_enabled():
            refuse(operator, "(A1)", where, "a tensor that requires grad", expected, "Use .detach()", kind="type")
        if tensor.is_neg():
            refuse(
                operator, "(A1)", where, "a view negated when it is read", expected, "Use .resolve_neg()", kind="type"
            )
        if tensor.layout != torch.strided:
            refuse(operator, "(A1)", where, f"a tensor of layout {tensor.layout}", expected, kind="type")
        if tensor.dtype not in _NUMPY:
            expected, remedy = "one of DirectML's data types", remedy_of_float(tensor)
            refuse(operator, "(S3)", where, str(tensor.dtype), expected, remedy, kind="type")
        dtype = _NUMPY[tensor.dtype]
        if tensor.data_ptr() % dtype.itemsize:
            found = f"an address that is no multiple of {dtype.itemsize}"
            refuse(operator, "(A12)", where, found, "elements at multiples of their size")
        return TensorArray(without_gradients(tensor), dtype)

    def to_device(self, array: Any) -> Any:
        if isinstance(array, TensorArray) or array.dtype not in DATA_TYPES:
            return array
        try:
            # The CPU's memory may change as soon as we return: PyTorch waits for a copy that is not from pinned memory.
            tensor = torch.from_numpy(np.array(array, order="C"))
            if self.device.type != "cpu" and array.nbytes <= _SMALL:
                tensor = tensor.pin_memory()
            return TensorArray(tensor.to(self.device, non_blocking=tensor.is_pinned()), array.dtype)
        except (RuntimeError, MemoryError) as problem:  # torch.OutOfMemoryError is the former
            raise error([self._no_memory(array.nbytes, problem)]) from None

    def _no_memory(self, size: int, problem: Exception) -> Violation:
        reason = " ".join(str(problem).split(". ")[0].split())
        return violation(
            "Device",
            "(D6)",
            "",
            f"no room for {size} bytes on {self.device} ({reason})",
            "memory for what is brought there",
            "Free what is not needed there, or go in parts",
            kind="memory",
        )

    def empty(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
        try:
            return TensorArray(torch.empty(shape, dtype=_torch(dtype), device=self.device), dtype)
        except KeyError:
            return np.empty(shape, dtype)  # of a type that is refused later, as an operand's is
        except RuntimeError as problem:  # torch.OutOfMemoryError is one
            raise MemoryError(" ".join(str(problem).split(". ")[0].split())) from None

    def export(self, value: Any, out: Any, result: Any) -> Any:
        if out is not None:
            if self._is_host(out):
                # It was looked at as an operand before.
                as_array("", "out", out)[...] = result.numpy()
            return out
        if isinstance(value, torch.Tensor) or value is result:
            return of_subclass(value, result.tensor)
        if isinstance(value, TensorArray):
            return result
        if self._is_host(value):
            return result.numpy()
        library = sys.modules[type(value).__module__.partition(".")[0]]
        return library.from_dlpack(result.tensor) if hasattr(library, "from_dlpack") else result.tensor

    @staticmethod
    def _is_host(value: Any) -> bool:
        is_numpy = isinstance(value, (np.ndarray, np.generic, list, tuple))
        return is_numpy or not (isinstance(value, torch.Tensor) or hasattr(value, "__dlpack__"))

    def bytes_of(self, buffer: Any) -> Any:
        if isinstance(buffer, TensorArray):
            buffer = buffer.tensor
        if not isinstance(buffer, torch.Tensor):
            if isinstance(buffer, np.ndarray) or not hasattr(buffer, "__dlpack__"):
                raise TypeError(f"it is not on {self.device}")
            buffer = torch.from_dlpack(buffer)
        if buffer.device != self.device:
            raise TypeError(f"it is on {buffer.device}, not on {self.device}")
        if not buffer.is_contiguous():
            raise ValueError("it has gaps")
        if buffer.data_ptr() % _LARGEST:
            raise ValueError(f"it begins at an address that is no multiple of {_LARGEST}")
        return TensorArray(buffer.detach().reshape(-1).view(torch.uint8), np.dtype(np.uint8))

    def view(self, layout: Layout, memory: Any, offset: int) -> Any:
        item = layout.dtype.itemsize
        span = layout.bounds()[1]
        flat = memory.tensor[offset : offset + span].view(_torch(layout.dtype))
        steps = [step // item for step in layout.strides]
        return TensorArray(flat.as_strided(layout.sizes, steps, flat.storage_offset()), layout.dtype)

    def copy(self, target: Any, source: Any) -> None:
        target.tensor.copy_(source.tensor)

    def stream_key(self) -> int | None:
        return stream_key_of(self.device)

    def recording(self, layouts: Sequence[Layout | None], inputs: int, kernels: int) -> Any:
        if self.device.type != "cuda":
            return None
        from .recording import Recording

        return Recording(self, layouts, inputs, kernels)

    @contextmanager
    def stopwatch(self, marks: int) -> Iterator[Stopwatch]:
        if self.device.type == "cpu":
            yield HostStopwatch()
            return
        backend = getattr(torch, self.device.type)
        with backend.device(self.device):
            if self.device.type == "cuda":
                # The device begins when all work was given to it, or it would wait for the host between kernels.
                torch.cuda._sleep(_CYCLES * marks)
            yield _Events(backend)
            backend.synchronize()


class _Events:
    """Marks on the device's own clock."""

    def __init__(self, backend: Any) -> None:
        self._backend = backend
        self._marks: list[Any] = []

    def mark(self) -> None:
        event = self._backend.Event(enable_timing=True)
        event.record()
        self._marks.append(event)

    def seconds(self) -> list[float]:
        self._backend.synchronize()
        return [a.elapsed_time(b) * 1e-3 for a, b in pairwise(self._marks)]
