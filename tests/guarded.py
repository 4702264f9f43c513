"""Tensors between pages that nobody may read: a kernel that reads or writes outside of one ends the process.

`python tests/guarded.py FIRST STEP` runs every so many of the cases so, on every instruction set unless ANYDML_CPU
names one, `python tests/guarded.py reductions COUNT` random reductions. What ran last is printed last.
"""

from __future__ import annotations

import ctypes
import faulthandler
import mmap
import os
import random
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from anydml import Device, DMLError, _native, reduce
from anydml.core.strided_layout import Layout
from anydml.operators import spec_of
from cases import Case, all_cases

PAGE = mmap.PAGESIZE
_C = ctypes.CDLL(None, use_errno=True)
_C.mmap.restype = ctypes.c_void_p
_C.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
_C.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
_C.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]


class Guarded:
    """Memory of so many bytes that meets a page behind it which cannot be read, or one before it.

    Args:
        count: bytes.
        at_end: whether the bytes end where the page behind begins.
    """

    def __init__(self, count: int, at_end: bool) -> None:
        whole = -(-count // PAGE) * PAGE
        self._size = whole + 2 * PAGE
        anonymous = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
        self._start = _C.mmap(None, self._size, mmap.PROT_READ | mmap.PROT_WRITE, anonymous, -1, 0)
        assert self._start not in (None, ctypes.c_void_p(-1).value)
        for page in (self._start, self._start + PAGE + whole):
            assert _C.mprotect(page, PAGE, 0) == 0
        begin = self._start + PAGE + (whole - count if at_end else 0)
        self.bytes = np.frombuffer((ctypes.c_char * count).from_address(begin), np.uint8)

    def free(self) -> None:
        del self.bytes
        _C.munmap(self._start, self._size)


def run(case: Case, device: Device, at_end: bool, instruction_set: str) -> None:
    """A case on tensors whose first and last elements meet the ends of their memory."""
    found = spec_of(case.desc)
    assert found is not None
    kept: list[Guarded] = []

    def placed(tensor: Any, values: np.ndarray | None) -> np.ndarray | None:
        if tensor is None or values is None:
            return None
        layout = Layout.of_desc(tensor)
        low, high = layout.bounds()
        kept.append(Guarded(high - low, at_end))
        array = layout.view(kept[-1].bytes, -low)
        array[...] = values
        return array

    read = [placed(tensor, x) for (_, tensor), x in zip(found.inputs(case.desc), case.inputs, strict=True)]
    written = [placed(tensor, y) for (_, tensor), y in zip(found.outputs(case.desc), case.outputs, strict=True)]
    operator = device.compile_operator(device.create_operator(case.desc))
    assert f"({instruction_set})" in operator.explain(), operator.explain()
    operator.dispatch(read, written)
    del read, written
    for memory in kept:
        memory.free()


def reductions(count: int) -> None:
    """Reductions of random sizes and strides, which few columns and short lines are among, in memory that they fill."""
    chance = random.Random(count)
    for number in range(count):
        dtype = np.dtype(chance.choice(("f4", "f2", "i4", "i8", "i2", "u1")))
        shape = [chance.choice((1, 2, 3, 5, 8, 13, 17, 31, 64, 65, 129)) for _ in range(chance.randint(1, 3))]
        order = chance.sample(range(len(shape)), len(shape))
        lengths = [size + chance.choice((0, 0, 3)) for size in shape]
        strides, step = [0] * len(shape), dtype.itemsize
        for i in order:
            strides[i], step = step, step * lengths[i]
        span = sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True)) + dtype.itemsize
        memory = Guarded(span, number % 2 == 0)
        x = np.ndarray(shape, dtype, memory.bytes.data, 0, strides)
        x[...] = number % 5
        axes = sorted(chance.sample(range(len(shape)), chance.randint(1, len(shape))))
        of_floats = ("SUM", "MAX", "LOG_SUM_EXP", "MULTIPLY", "ARGMAX")
        function = chance.choice(of_floats if dtype.kind == "f" else ("SUM", "MIN"))
        print(function, dtype, shape, strides, axes, flush=True)
        with suppress(DMLError):  # types that a function does not take
            reduce(x, function, axes=axes)
        del x
        memory.free()


def main(words: Sequence[str]) -> None:
    faulthandler.enable()
    if words[0] == "reductions":
        return reductions(int(words[1]))
    first, step = map(int, words)
    # One process for all sets: what cases expect takes as long to compute as all kernels.
    cases = all_cases()[first::step]
    device, given = Device("cpu"), os.environ.get("ANYDML_CPU")
    for instruction_set in [given] if given else _native.build_info()["instruction_sets"]:
        os.environ["ANYDML_CPU"] = instruction_set
        for case in cases:
            print(instruction_set, case.id, flush=True)
            for at_end in (True, False):
                run(case, device, at_end, instruction_set)
        print(f"{len(cases)} cases read nothing around tensors on {instruction_set}")


if __name__ == "__main__":
    main(sys.argv[1:])
