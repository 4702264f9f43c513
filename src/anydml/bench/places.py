"""Where the arrays of a row lie, which copy they are measured by, and by which clock: on the CPU, or on a GPU.

Arrays are NumPy's on the CPU and PyTorch's tensors on a GPU. What is asked of both in the same words, such as shapes,
slices and arithmetic, is asked of them directly; the rest is asked of a place: `Host` tells what its words mean.
"""

from __future__ import annotations

import ctypes
import gc
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from threading import Barrier
from typing import Any, TypeAlias

import numpy as np
from numpy.lib.stride_tricks import as_strided

from ..core.strided_layout import DATA_TYPES, Array, Layout
from ..device import Device

Run = Callable[[], object]

UFUNCS = {"CUMULATIVE_SUMMATION": np.add, "CUMULATIVE_PRODUCT": np.multiply}
SEED = 0
_WAKING = 1.0
"""Seconds of work after which a device has its full speed."""
_ROUNDS, _EXPONENTIALS = 5, 500
_AHEAD, _MOST_PRODUCTS = 1.5, 1000
"""How much longer other work takes than the host for the runs that it is to get ahead of, and the most of it."""
_CALMING, _CALMINGS = 5e-3, 40
"""Seconds after which threads may no longer spin, and how often they are waited for."""


def speedup(threads: int) -> float:
    """How many times as much as one thread so many of them compute, each in its caches.

    Less than their number, where what the system calls cores are threads of one, which share its arithmetic, or are
    others' as well.
    """
    # One call for all rounds, over the same few elements: threads that go back to Python wait for each other there.
    arrays = [np.broadcast_to(np.ones(1 << 13), (_EXPONENTIALS, 1 << 13)) for _ in range(threads)]
    outputs = [as_strided(np.empty(1 << 13), x.shape, x.strides) for x in arrays]
    barrier = Barrier(threads)

    def work(i: int, alone: bool) -> float:
        if not alone:
            barrier.wait()
        start = time.perf_counter()
        np.exp(arrays[i], out=outputs[i])
        return time.perf_counter() - start

    ratios = []
    with ThreadPoolExecutor(threads) as pool:
        for _ in range(_ROUNDS):
            one = work(0, True)
            ratios.append(threads * one / max(pool.map(work, range(threads), [False] * threads)))
    return statistics.median(ratios)


class Host:
    """The CPU."""

    is_host = True
    name = ""
    """Of a GPU, as its driver gives it."""
    least_seconds = 1e-3
    """What is shorter is repeated, and the time divided."""
    no_memory: tuple[type[Exception], ...] = (MemoryError,)
    """What is raised where there is no room for an array."""

    def __init__(self) -> None:
        self._random = np.random.default_rng(SEED)

    def build(self) -> Any:
        """What the kernels are compiled with and for."""
        try:
            from .. import _native
        except ImportError as problem:
            return str(problem)
        return _native.build_info()

    def empty(self, shape: Sequence[int], dtype: Any) -> Array:
        return np.empty(shape, dtype)

    def integers(self, low: int, high: int, shape: Sequence[int], dtype: Any = np.int8) -> Array:
        """Random ones below `high`, the same in every process."""
        return self._random.integers(low, high, shape, dtype)

    def to_device(self, array: Array) -> Array:
        """An array of the CPU's memory here, with the same strides, none of which is negative."""
        return array

    def cast(self, array: Array, dtype: Any) -> Array:
        """The values as another type: itself where it is of that type."""
        cast: Array = array.astype(dtype, copy=False)
        return cast

    def view(self, array: Array, dtype: Any) -> Array:
        """The bits as another type."""
        return array.view(dtype)

    def copy(self, array: Array) -> Array:
        return array.copy()

    def numpy(self, array: Array) -> Array:
        """The values in the CPU's memory."""
        return array

    def poison(self, array: Array, byte: int) -> None:
        """Fills a packed array with a byte."""
        array.reshape(-1).view(np.uint8)[...] = byte

    def are_same(self, one: Array, other: Array) -> bool:
        """Whether two arrays of a type have the same bits."""
        bits = f"u{one.itemsize}"
        return np.array_equal(one.view(bits), other.view(bits))

    def most_apart(self, one: Array, other: Array) -> int:
        """How far two arrays of 8-bit integers are from each other."""
        differences = np.subtract(one, other, dtype=np.int16)
        return int(max(differences.max(), -differences.min()))

    def scan(self, operator: str, x: Array, axis: int, dtype: Any) -> Array:
        """Running sums or products in that type, by the library that the arrays are of."""
        scans: Array = UFUNCS[operator].accumulate(x, axis, dtype=dtype)
        return scans

    def summation(self, x: Array, out: Array) -> tuple[str, Run]:
        """A running sum by the library whose calls are the shortest, and the words for it."""
        return "np.add.accumulate(out=)", lambda: np.add.accumulate(x, out=out)

    def seconds(self, run: Run, repeats: int = 1) -> float:
        """That a run takes, once all is done that was asked for before."""
        start = time.perf_counter()
        for _ in range(repeats):
            run()
        return (time.perf_counter() - start) / repeats

    @contextmanager
    def copies(self, size: int, modules: dict[str, Any], threads: int) -> Iterator[dict[str, Run]]:
        """Copies of that many bytes, by all that may be fastest."""
        source, target = np.ones(size, np.uint8), np.zeros(size, np.uint8)
        move = ctypes.memmove
        step = -(-size // threads // 64) * 64 or 64
        parts = [(target.ctypes.data + i, source.ctypes.data + i, min(step, size - i)) for i in range(0, size, step)]
        copies: dict[str, Run] = {"np.copyto": lambda: np.copyto(target, source)}
        torch = modules.get("torch")
        if torch is not None:
            given, out = torch.from_numpy(source), torch.from_numpy(target)
            copies["torch.copy_"] = lambda: out.copy_(given)
        with ThreadPoolExecutor(threads) as pool:
            copies[f"memmove, {count_of(threads, 'thread')}"] = lambda: list(pool.map(lambda part: move(*part), parts))
            yield copies

    @contextmanager
    def reads(self, size: int) -> Iterator[dict[str, Run]]:
        """Reads that many bytes once, and combines them by OR: by the kernel READ, on its threads, and by NumPy."""
        source = np.ones(max(1, size // 8), np.uint64)
        reads: dict[str, Run] = {"np.bitwise_or.reduce": lambda: np.bitwise_or.reduce(source)}
        with suppress(ImportError):
            reads["READ"] = partial(read_plan(source).run, [source], [np.empty(1, np.uint8)])
        yield reads

    def calm(self) -> None:
        """Waits until threads sleep that a library lets spin behind its work, or they would slow whoever comes next."""
        for _ in range(_CALMINGS):
            before = time.process_time()
            time.sleep(_CALMING)
            if time.process_time() - before < _CALMING / 10:
                return

    def wake(self) -> None:
        """Makes a device ready that idled; processors are at once."""

    def release(self) -> None:
        """Gives back what is kept for arrays to come; NumPy keeps nothing."""


class Gpu:
    """A device that PyTorch reaches, on its current stream; its CPU in Triton's interpreter."""

    is_host = False
    least_seconds = 5e-3
    """Several runs in a row, so that the host's work for one passes beside another's."""

    def __init__(self, place: Any) -> None:
        import torch

        self.device = place
        self._torch: Any = torch
        self._backend: Any = getattr(torch, place.type)
        self._backend.set_device(place)
        is_cpu = place.type == "cpu"
        self.name = "Triton's interpreter" if is_cpu else self._backend.get_device_name(place)
        self._random = torch.Generator(place).manual_seed(SEED)
        self.no_memory: tuple[type[Exception], ...] = (MemoryError, torch.OutOfMemoryError)
        self._matrix: Any = None
        self._product_seconds = 0.0

    def _type(self, dtype: Any) -> Any:
        return getattr(self._torch, np.dtype(dtype).name)

    def build(self) -> str:
        import triton

        return f"Triton {triton.__version__}"

    def empty(self, shape: Sequence[int], dtype: Any) -> Any:
        return self._torch.empty(tuple(shape), dtype=self._type(dtype), device=self.device)

    def integers(self, low: int, high: int, shape: Sequence[int], dtype: Any = np.int8) -> Any:
        options = {"dtype": self._type(dtype), "device": self.device, "generator": self._random}
        return self._torch.randint(low, high, tuple(shape), **options)

    def to_device(self, array: Array) -> Any:
        if array.flags.c_contiguous and array.flags.writeable:
            return self._torch.from_numpy(array).to(self.device)
        # What lies between the elements goes with them, so that they lie there as they do here.
        strides = [stride // array.itemsize for stride in array.strides]
        extent = 1 + sum(stride * (size - 1) for stride, size in zip(strides, array.shape, strict=True))
        memory = as_strided(array, (extent,), (array.itemsize,), writeable=False).copy()
        return self._torch.from_numpy(memory).to(self.device).as_strided(array.shape, strides)

    def cast(self, array: Any, dtype: Any) -> Any:
        return array.to(self._type(dtype))

    def view(self, array: Any, dtype: Any) -> Any:
        return array.view(self._type(dtype))

    def copy(self, array: Any) -> Any:
        return array.clone()

    def numpy(self, array: Any) -> Array:
        values: Array = array.cpu().numpy()
        return values

    def poison(self, array: Any, byte: int) -> None:
        array.reshape(-1).view(self._torch.uint8).fill_(byte)

    def are_same(self, one: Any, other: Any) -> bool:
        bits = self._type(f"i{one.itemsize}")
        return bool(self._torch.equal(one.view(bits), other.view(bits)))

    def most_apart(self, one: Any, other: Any) -> int:
        return int((one.to(self._torch.int16) - other.to(self._torch.int16)).abs_().max())

    def scan(self, operator: str, x: Any, axis: int, dtype: Any) -> Any:
        function = self._torch.cumsum if operator == "CUMULATIVE_SUMMATION" else self._torch.cumprod
        return function(x, axis, dtype=self._type(dtype))

    def summation(self, x: Any, out: Any) -> tuple[str, Run]:
        return "torch.cumsum(out=)", lambda: self._torch.cumsum(x, 0, out=out)

    def seconds(self, run: Run, repeats: int = 1) -> float:
        """By the device's own events, which a library on a stream of its own is waited for in between. Before several
        runs come as many that do not count, and then other work: while that lasts, the host gets ahead of the device,
        so that what counts is the device's time. The host's has rows of its own."""
        if self.device.type == "cpu":
            return Host().seconds(run, repeats)
        self._backend.synchronize()
        start, end = (self._backend.Event(enable_timing=True) for _ in range(2))
        if repeats > 1:
            begin = time.perf_counter()
            for _ in range(repeats):
                last = run()
            behind = time.perf_counter() - begin
            self._await_other_streams(last)
            if not hasattr(last, "block_until_ready"):
                self._keep_busy(_AHEAD * behind)
        start.record()
        for _ in range(repeats):
            last = run()
        self._await_other_streams(last)
        end.record()
        end.synchronize()
        return float(start.elapsed_time(end)) / 1e3 / repeats

    def _keep_busy(self, seconds: float) -> None:
        """By products of matrices that take about as long."""
        if self._matrix is None:
            matrix = self._matrix = self._torch.ones((2048, 2048), device=self.device)
            self._product_seconds = min(self.seconds(lambda: matrix @ matrix) for _ in range(3))
        for _ in range(min(_MOST_PRODUCTS, int(seconds / self._product_seconds))):
            self._matrix @ self._matrix

    @staticmethod
    def _await_other_streams(result: object) -> None:
        if hasattr(result, "block_until_ready"):
            result.block_until_ready()

    @contextmanager
    def copies(self, size: int, modules: dict[str, Any], threads: int) -> Iterator[dict[str, Run]]:
        source, target = self.integers(0, 256, (size,), np.uint8), self.empty((size,), np.uint8)
        yield {"torch.copy_": lambda: target.copy_(source)}

    def calm(self) -> None:
        """Nothing of others runs on it by itself."""

    def wake(self) -> None:
        # Idle ones lower the clocks of their processors more than that of memory: a kernel is slower beside a copy.
        matrix = self._torch.ones((2048, 2048), device=self.device)
        end = time.monotonic() + (_WAKING if self.device.type != "cpu" else 0)
        while time.monotonic() < end:
            self.seconds(lambda: matrix @ matrix, 10)

    def release(self) -> None:
        gc.collect()
        if self.device.type != "cpu":
            self._backend.empty_cache()


Place: TypeAlias = Host | Gpu


def place_of(device: Device) -> Place:
    return Host() if device.memory.is_host else Gpu(device.memory.device)  # type: ignore[attr-defined]


def read_plan(x: Array) -> Any:
    """The native plan that reads a packed array of one dimension, and writes the OR of its bytes.

    Raises:
        ImportError: there is no compiled module.
    """
    from .._native import compile as compile_plan

    layouts = [Layout(DATA_TYPES[array.dtype], array.shape, array.strides) for array in (x, np.empty(1, np.uint8))]
    plan = compile_plan("READ", layouts[:1], layouts[1:], {})
    assert not isinstance(plan, str), plan
    return plan


def count_of(number: int, thing: str) -> str:
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"
