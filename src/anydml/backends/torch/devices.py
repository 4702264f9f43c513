"""Which of PyTorch's devices can be used, and why others can't. Nothing is imported that takes long."""

from __future__ import annotations

import os
import re
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from ...core.errors import listing

if TYPE_CHECKING:
    import torch

NAMES = re.compile(r"(cuda|xpu)(?::(0|[1-9][0-9]{0,3}))?")
"""What Device takes: ROCm's devices are "cuda" too, as in PyTorch."""


def is_interpreted() -> bool:
    """Whether Triton's kernels run in its interpreter, in the CPU's memory."""
    return os.environ.get("TRITON_INTERPRET") == "1"


def find(name: str) -> torch.device | tuple[str, str]:
    """PyTorch's device of that name, or why there is none and what helps."""
    missing = [module for module in ("torch", "triton") if find_spec(module) is None]
    absent = f"{name}, but {missing[0]} is not installed" if missing else "", "pip install 'anydml[gpu]'"
    if "torch" in missing:
        return absent
    try:
        import torch
    except Exception as problem:  # a broken installation raises what it likes
        return f"{name}, but PyTorch cannot be loaded: {' '.join(str(problem).split())}", "Install PyTorch anew"

    match = NAMES.fullmatch(name)
    assert match is not None
    backend = getattr(torch, match[1], None)
    is_there = backend is not None and backend.is_available()
    built_for = _built_for(torch)
    if not is_interpreted() and not is_there and match[1] not in built_for:
        found = (
            f"{name}, but PyTorch {torch.__version__} is a build for the {listing(['CPU', *built_for], 'and')} alone"
        )
        return found, f"Install a build of PyTorch for {match[1]}: https://pytorch.org/get-started/locally"
    if missing:
        return absent
    if is_interpreted():
        return torch.device("cpu")
    if backend is None or not is_there:
        remedy = f"Install a driver, and a build of PyTorch that supports {match[1]}"
        return f"{name}, but PyTorch {torch.__version__} finds no such device", remedy
    index = int(match[2] or backend.current_device())
    if index >= backend.device_count():
        return f"{name}, of {backend.device_count()}", f"{match[1]}:0 is the first"
    return torch.device(match[1], index)


def _built_for(torch: Any) -> list[str]:
    """The backends that a build of PyTorch has code for."""
    versions = {"cuda": ("cuda", "hip"), "xpu": ("xpu",)}
    return [each for each, names in versions.items() if any(getattr(torch.version, name, None) for name in names)]


def gpus() -> list[tuple[str, str]]:
    """The GPUs, by name, and what they are; a backend that has none, and why."""
    rows = []
    for backend in ("cuda", "xpu"):
        found = find(backend)
        if isinstance(found, tuple):
            problem, remedy = found
            rows.append((backend, f"no: {problem.partition(', but ')[2] or problem}. {remedy}"))
            continue
        import torch

        if found.type == "cpu":
            rows.append((backend, "in Triton's interpreter, on the CPU"))
            continue
        module = getattr(torch, backend)
        for i in range(module.device_count()):
            properties = module.get_device_properties(i)
            memory = f"{properties.total_memory / 2**30:.0f} GiB"
            rows.append((f"{backend}:{i}", f"yes: {properties.name}, {memory}, PyTorch {torch.__version__}"))
    return rows
