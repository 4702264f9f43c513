"""What a process allows PyTorch to compute in less than single precision, undone while a call is made."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from threading import Lock
from typing import Any

import torch


class Undone(AbstractContextManager[None]):
    """A context in which settings of the process allow nothing less; where they allow nothing, nothing is set.

    Any number of threads may be in it: it keeps what it finds allowed, and the last one to leave gives it back.

    Args:
        settings: of each the object that it is an attribute of, its name, and its values that allow nothing less, of
            which the first is set.
    """

    def __init__(self, *settings: tuple[Any, str, tuple[Any, ...]]) -> None:
        self._settings = settings
        self._lock = Lock()
        self._users = 0
        self._allowed: dict[int, Any] = {}

    def __enter__(self) -> None:
        with self._lock:
            self._users += 1
            for i, (owner, name, whole) in enumerate(self._settings):
                value = getattr(owner, name)
                if value not in whole:
                    self._allowed[i] = value
                    setattr(owner, name, whole[0])

    def __exit__(self, *raised: object) -> None:
        with self._lock:
            self._users -= 1
            if self._users:
                return
            for i, value in self._allowed.items():
                owner, name, _ = self._settings[i]
                setattr(owner, name, value)
            self._allowed.clear()


class _Matmul:
    """The one setting that there was before PyTorch 2.9."""

    @property
    def precision(self) -> str:
        return str(torch.get_float32_matmul_precision())

    @precision.setter
    def precision(self, value: str) -> None:
        torch.set_float32_matmul_precision(value)


_backends = torch.backends
_kinds = (_backends.cuda.matmul, getattr(_backends.mkldnn, "matmul", None), getattr(_backends.mkldnn, "conv", None))
_settings: list[tuple[Any, str, tuple[str, ...]]] = [
    (each, "fp32_precision", ("ieee", "none")) for each in _kinds if hasattr(each, "fp32_precision")
]

SINGLE_PRECISION = Undone(*(_settings or [(_Matmul(), "precision", ("highest",))]))
"""In which FLOAT32 is computed in single precision."""

WHOLE_SUMS = Undone((_backends.cuda.matmul, "allow_fp16_reduced_precision_reduction", (False,)))
"""In which parts of sums of FLOAT16 are added in single precision, where a process allows less by default."""


def precision(allow_tf32: bool) -> AbstractContextManager[None]:
    """In which calls are made: of single precision, or of what the process allows."""
    return nullcontext() if allow_tf32 else SINGLE_PRECISION
