"""Functions of Triton that are generated: their source, where Triton looks for it."""

from __future__ import annotations

import linecache
from hashlib import sha256
from typing import Any

import triton
import triton.language as tl
from triton.language.extra import libdevice


def kernel_of(source: str, what: str, **functions: Any) -> Any:
    """The function `kernel` of a source, which calls these functions of Triton."""
    # Triton reads a function's source where the inspect module finds it.
    name = f"<anydml {what} {sha256(source.encode()).hexdigest()[:16]}>"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    namespace = {"tl": tl, "triton": triton, "libdevice": libdevice, "__name__": __name__, **functions}
    exec(compile(source, name, "exec"), namespace)
    return namespace["kernel"]
