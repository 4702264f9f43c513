"""Engines, best first for each of the CPU's devices; those of GPUs are ``triton/engine.py``'s."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .base import Engine


def engines(device: str) -> tuple[Engine, ...]:
    """The engines of the CPU's devices, best first. The reference takes everything, and so ends every list."""
    from .native.engine import CpuEngine
    from .reference import ReferenceEngine

    return {"cpu": (CpuEngine(), ReferenceEngine()), "reference": (ReferenceEngine(),)}[device]
