"""Triton's interpreter without work of which nothing comes, which takes it longer than the kernels themselves."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any


def quicken() -> None:
    """For this process, in which kernels are interpreted and none is compiled."""
    from triton.runtime import interpreter

    # Sums and products of integers are computed again, in 64 bits, for assertions that are made with `debug` alone.
    builder = interpreter.interpreter_builder
    assert not builder.options.debug
    builder.options = replace(builder.options, sanitize_overflow=False)
    # The language is searched for what is to be patched at each launch, and at each call of a function in a kernel.
    interpreter._patch_lang = cache(interpreter._patch_lang)
    interpreter._LangPatchScope.restore = lambda scope: None
    # For the type of each tensor a table of all types is made.
    find, found = interpreter._get_np_dtype, dict[str, Any]()

    def np_dtype(dtype: Any) -> Any:
        if dtype.name not in found:
            found[dtype.name] = find(dtype)
        return found[dtype.name]

    interpreter._get_np_dtype = np_dtype
