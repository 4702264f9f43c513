"""Plans kernels for tensors of any size, and looks at what they would reach: there is no memory behind the tensors.

    TRITON_INTERPRET=1 python tests/gpu_addresses.py [--draws N] [--each N] [--seed N]

A script, as Triton decides when it is loaded whether it interprets. Descs are those of the fuzzer with sizes up to
2^33 elements. No plan may raise; its grid must be one that a GPU takes, and what it declines has a reason. The first
and the last program of each launch are interpreted, with addresses that are nobody's: what is read or written must be
a tensor's, which it is not where an offset took 32 bits and needed 64.
"""

from __future__ import annotations

import argparse
import inspect
import os
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from math import prod
from random import Random
from typing import Any

os.environ["TRITON_INTERPRET"] = "1"

import numpy as np
import torch
import triton.language as tl
from triton.runtime import interpreter

from anydml import DML_SIZE_2D, InterpolationMode, ReduceFunction, validate
from anydml.backends.base import Declined
from anydml.backends.torch.tensors import TYPES
from anydml.backends.triton.engine import KERNELS, POINTWISE
from anydml.backends.triton.launch import MOST, Launch
from anydml.core.strided_layout import Layout
from anydml.operators import spec, spec_of
from cases import tensor
from fuzzing.drawing import GOOD
from interpreted import quicken

FAMILIES = (
    *("activation", "adam", "cumulative", "depth_space", "diagonal", "element_wise", "fold", "gathering", "image"),
    *("join", "movement", "normalization", "one_hot", "pooling", "reduce", "reverse", "roi", "unfold"),
)
"""Of the fuzzer's, those that draw what has kernels."""
POINTWISE_NAMES = ("ACTIVATION_GELU", "ELEMENT_WISE_CLIP", "ELEMENT_WISE_DIFFERENCE_SQUARE")
"""Some of all that share a planner."""
BY_CALLS = ("CONVOLUTION", "CONVOLUTION_ADD_RELU", "PRODUCT_ATTENTION")
"""What is not drawn here: kernels only follow calls of PyTorch, or descs are made by graphs alone."""
WAITING = ("scan_chain", "scan_narrow_chain", "scan_row_chain")
"""Kernels whose programs wait for others."""
BY_WORDS = ("average_planes",)
"""Kernels that read whole words in which a tensor begins or ends."""
SIZES = (
    *(1, 1, 2, 3, 5, 7, 8, 9, 17, 31, 33, 63, 65, 127, 255, 257, 511, 513, 1023, 1025, 2047, 2049, 4095, 4097, 16385),
    *(65535, 65537, 99991, (1 << 20) - 1, (1 << 20) + 1, (1 << 26) + 3, 1 << 30, (1 << 31) - 2, (1 << 31) + 1, 1 << 32),
)
LIMITS = (1 << 8, 1 << 16, 1 << 24, 1 << 30, 1 << 32, 1 << 33)
MOST_OF_TABLES = 1 << 16
"""The largest size of a dimension of operators whose tables or windows planning walks."""
ENOUGH = 40
"""Loads and stores of a program, after which it is left."""
FIRST, APART = 1 << 44, 1 << 40
"""Where the tensor of number 0 is said to lie, and how far they are from each other."""


class Large(Random):
    """Draws large numbers where a fuzzer draws counts."""

    def randint(self, a: int, b: int) -> int:
        return int(self.choice(SIZES[:25])) if a == 1 and self.random() < 0.25 else super().randint(a, b)


def large_sizes(random: Random, rank: int | None = None, most: int = 256) -> tuple[int, ...]:
    rank = random.randrange(1, 9) if rank is None else min(rank, 8)
    limit, sizes, count = random.choice(LIMITS), [], 1
    for _ in range(rank):
        size = random.choice(SIZES) if random.random() < 0.6 else 1
        size = size if size * count <= limit else 1
        sizes.append(size)
        count *= size
    random.shuffle(sizes)
    return tuple(sizes)


class Elsewhere(Exception):
    """A program reaches what is not a tensor's."""


class Left(Exception):
    """A program has shown enough."""


class Region:
    """A tensor, of which nothing but its place is there."""

    def __init__(self, number: int, low: int, high: int, dtype: torch.dtype, is_output: bool, shift: int = 0) -> None:
        self.at: int = FIRST + number * APART + shift * dtype.itemsize
        self.low, self.high, self.is_output = self.at + low, self.at + high, is_output
        self.dtype, self.data, self.device, self.shape = dtype, self, None, (1,)

    def data_ptr(self) -> int:
        return self.at


regions: list[Region] = []
launched: list[Launch] = []
steps = 0
kernel_name = ""


def is_virtual(pointers: Any, mask: Any, size: int, is_store: bool) -> Any:
    """Which pointers are to what is not there; refuses those that are no tensor's."""
    global steps
    steps += 1
    if steps > ENOUGH:
        raise Left
    at = pointers.astype(np.int64)
    inside = np.zeros(at.shape, bool)
    for region in regions:
        if is_store and not region.is_output:
            continue
        if kernel_name in BY_WORDS and not is_store:
            inside |= (at % size == 0) & (at + size > region.low) & (at < region.high)
        inside |= (at >= region.low) & (at + size <= region.high)
    is_real = (at > 1 << 46) & (at < 1 << 47) | (at < FIRST - APART) & (at > 1 << 20)
    wrong = np.broadcast_to(mask, at.shape).astype(bool) & ~inside & ~is_real
    if wrong.any():
        address = int(at[wrong].flat[0])
        nearest = min(regions, key=lambda region: abs(address - region.low))
        where = f"{address - nearest.at} of tensor {regions.index(nearest)}"
        raise Elsewhere(f"{kernel_name} {'writes' if is_store else 'reads'} {size} bytes at {where}")
    return ~is_real


load, store = interpreter.InterpreterBuilder.create_masked_load, interpreter.InterpreterBuilder.create_masked_store
atomic = interpreter.InterpreterBuilder.create_atomic_rmw


def only(mask: Any, pointers: Any, others: Any) -> Any:
    found = np.ascontiguousarray(np.broadcast_to(mask.data, pointers.data.shape) & ~others)
    return interpreter.TensorHandle(found, tl.int1)


def size_of(pointers: Any) -> int:
    return int(np.dtype(interpreter._get_np_dtype(pointers.get_element_ty())).itemsize)


def load_checked(self: Any, pointers: Any, mask: Any, other: Any, *policy: Any) -> Any:
    virtual = is_virtual(pointers.data, mask.data, size_of(pointers), False)
    return load(self, pointers, only(mask, pointers, virtual), other, *policy)


def store_checked(self: Any, pointers: Any, value: Any, mask: Any, policy: Any) -> Any:
    virtual = is_virtual(pointers.data, mask.data, size_of(pointers), True)
    return store(self, pointers, value, only(mask, pointers, virtual), policy)


def atomic_checked(self: Any, operation: Any, pointers: Any, value: Any, mask: Any, *policy: Any) -> Any:
    virtual = is_virtual(pointers.data, mask.data, size_of(pointers), True)
    return atomic(self, operation, pointers, value, only(mask, pointers, virtual), *policy)


def argument(value: Any) -> Any:
    """As a GPU gets it: the interpreter has unsigned numbers of 32 bits between 2^31 and 2^32."""
    if isinstance(value, tuple):
        return interpreter._tuple_create(value, map(argument, value))
    if type(value) is int and 1 << 31 <= value < 1 << 32:
        return tl.tensor(interpreter.TensorHandle(np.array([value], np.int64), tl.int64), tl.int64)
    return interpreter._implicit_cvt(value)


def some_programs(self: Any, *given: Any, **constants: Any) -> None:
    """Interprets the first and the last program of a grid."""
    global kernel_name, steps
    kernel_name = self.fn.__name__
    if kernel_name in WAITING:
        raise Left
    names = inspect.getfullargspec(self.fn).args
    constants = {name: value for name, value in constants.items() if name in names}
    scope = interpreter._patch_lang(self.fn)
    try:
        arguments = inspect.getcallargs(self.fn, *given, **constants)
        arguments = {name: value if name in self.constexprs else argument(value) for name, value in arguments.items()}
        (programs, *_) = self.grid
        interpreter.interpreter_builder.set_grid_dim(*self.grid)
        for program in range(programs) if kernel_name == "write_addresses" else {0, programs - 1}:
            interpreter.interpreter_builder.set_grid_idx(program, 0, 0)
            steps = 0
            try:
                self.fn(**arguments)
            except (Left, interpreter.InterpreterError) as problem:
                if "Left()" not in repr(problem):
                    raise
    finally:
        scope.restore()


def made_by(maker: Any) -> Any:
    """A function of PyTorch's that makes tensors; large ones are not there either."""

    def make(shape: Any, *given: Any, dtype: torch.dtype = torch.float32, **options: Any) -> Any:
        count = prod(shape) if isinstance(shape, (tuple, list)) else shape
        if count <= MOST_OF_TABLES:
            return maker(shape, *given, dtype=dtype, **options)
        regions.append(Region(len(regions), 0, count * dtype.itemsize, dtype, True))
        return regions[-1]

    return make


def check_launch(launch: Launch) -> None:
    (programs, *_) = launch._grid
    assert 1 <= programs < MOST, f"{programs} programs"
    numbers = [*launch._arguments, *launch._constants.values()]
    while numbers:
        number = numbers.pop()
        if isinstance(number, (tuple, list)):
            numbers += number
        elif type(number) is int:
            assert -(1 << 63) <= number < 1 << 63, f"{number} as an argument"
    for name in ("BLOCK", "CHANNELS", "COLUMNS", "DEPTH", "LINES", "PARTS", "ROWS"):
        size = launch._constants.get(name, 1)
        is_tile = (name, launch._kernel.fn.__name__) != ("ROWS", "scan_short_rows") and type(size) is int
        assert not is_tile or size.bit_count() == 1, f"{name} of {size}"


def drawn(seed: int) -> Iterator[Any]:
    """Good descs without end, of which the number alone tells what they are."""
    draws = [draw for draw in GOOD if draw.__module__.rpartition(".")[2] in FAMILIES]
    number = 0
    while True:
        random = Large(f"{seed}/{number}")
        number += 1
        try:
            desc = random.choice(draws)(random)
        except (IndexError, ValueError):  # numbers that are too large for the rest
            continue
        found = spec_of(desc)
        assert found is not None
        tensors = [tensor for _, tensor in (*found.inputs(desc), *found.outputs(desc)) if tensor is not None]
        walks = found.name.startswith(("RESAMPLE", "UPSAMPLE", "QUANTIZED_LINEAR_AVERAGE", "MAX_POOLING", "AVERAGE"))
        most = max((max(tensor.Sizes, default=1) for tensor in tensors), default=1)
        if not (walks and most > MOST_OF_TABLES) and not validate(desc):
            yield desc


def found_before() -> Iterator[Any]:
    """Those of which a kernel reached elsewhere, or could not be planned."""
    x, y = tensor((1, 1, 3, 3)), tensor((1, 1, 50001, 50001))
    common: dict[str, Any] = {
        "InterpolationMode": InterpolationMode.LINEAR,
        "ReductionFunction": ReduceFunction.AVERAGE,
    }
    common |= {"SpatialScaleX": 1, "SpatialScaleY": 1, "OutOfBoundsInputValue": 0}
    samples = {"MinimumSamplesPerOutput": 1, "MaximumSamplesPerOutput": 2}
    yield spec("ROI_ALIGN").desc(
        **{"InputTensor": x, "ROITensor": tensor((1, 4)), "BatchIndicesTensor": tensor((1,), "UINT32")},
        **{"OutputTensor": y, **common, **samples},
    )
    corners, sizes = tensor((1, 1, 1, 5)), DML_SIZE_2D(Width=50001, Height=50001)
    yield spec("ROI_POOLING").desc(InputTensor=x, ROITensor=corners, OutputTensor=y, SpatialScale=1, PooledSize=sizes)
    x = tensor((1, 5, 40000, 40000))
    members = {"CrossChannel": True, "LocalSize": 5, "Alpha": 1, "Beta": 0.75, "Bias": 1}
    yield spec("LOCAL_RESPONSE_NORMALIZATION").desc(InputTensor=x, OutputTensor=x, **members)
    for pieces in (((2, 2047), (2, 4093)), (((1 << 29) + 1,), ((1 << 29) + 5,))):
        joined = (*pieces[0][:-1], pieces[0][-1] + pieces[1][-1])
        inputs = [tensor(piece) for piece in pieces]
        yield spec("JOIN").desc(InputTensors=inputs, OutputTensor=tensor(joined), Axis=len(joined) - 1)
    # Of so long rows that 32 bits hold two, but not three, which a window that begins in padding has before its last.
    x, y = tensor((1, 1, 2, 1023 << 20)), tensor((1, 1, 3, 1023))
    padded = {"StartPadding": (2, 0), "EndPadding": (2, 0)}
    window = {"Strides": (1, 1 << 20), "WindowSize": (4, 1), **padded}
    yield spec("MAX_POOLING").desc(InputTensor=x, OutputTensor=y, **window)
    tensors = {"InputTensor": x, "InputGradientTensor": y, "OutputGradientTensor": x}
    yield spec("MAX_POOLING_GRAD").desc(**tensors, **window, Dilations=(1, 1))


def planned(desc: Any, number: int) -> bool:
    """Whether a plan of a desc was not declined, whose addresses are a tensor's then."""
    found = spec_of(desc)
    assert found is not None
    module = KERNELS.get(found.name, POINTWISE)
    given, written = (
        [None if tensor is None else Layout.of_desc(tensor) for _, tensor in side(desc)]
        for side in (found.inputs, found.outputs)
    )
    launched.clear()
    plan = __import__(f"anydml.backends.triton{module}", fromlist=["plan"]).plan
    outputs = [layout for layout in written if layout is not None]
    what = plan(found, desc, given, outputs, "cpu")
    if isinstance(what, Declined):
        assert what.reason
        return False
    for launch in launched:
        check_launch(launch)
    shift = (0, 1, 0, 3)[number % 4]
    placed = [
        None if layout is None else Region(i, *layout.bounds(), TYPES[layout.type], i >= len(given), shift)
        for i, layout in enumerate((*given, *outputs))
    ]
    regions[:] = [region for region in placed if region is not None]
    with suppress(Left):
        what.run(placed[: len(given)], placed[len(given) :])
    return True


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--draws", type=int, default=150, help="descs that are drawn")
    parser.add_argument("--each", type=int, default=1, help="those that are planned of an operator at most")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    quicken()
    init = Launch.__init__

    def kept(launch: Launch, *given: Any, **options: Any) -> None:
        init(launch, *given, **options)
        launched.append(launch)

    Launch.__init__ = kept  # type: ignore[assignment, method-assign]
    Launch.compile = lambda self, device, types: None  # type: ignore[method-assign]
    interpreter.InterpreterBuilder.create_masked_load = load_checked
    interpreter.InterpreterBuilder.create_masked_store = store_checked
    interpreter.InterpreterBuilder.create_atomic_rmw = atomic_checked
    interpreter.GridExecutor.__call__ = some_programs
    for name, module in sys.modules.items():
        if name.startswith("fuzzing.drawing.") and hasattr(module, "small_sizes"):
            module.small_sizes = large_sizes  # type: ignore[attr-defined]
    for name in ("empty", "full", "zeros"):
        setattr(torch, name, made_by(getattr(torch, name)))
    wanted = {*KERNELS, *POINTWISE_NAMES} - {*BY_CALLS}
    counts: Counter[str] = Counter()
    failed = 0
    named = len([*found_before()])
    for number, desc in enumerate((*found_before(), *islice(drawn(options.seed), options.draws))):
        found = spec_of(desc)
        if found is None or found.name not in wanted:
            continue
        if number >= named and counts[found.name] >= options.each:
            continue
        try:
            counts[found.name] += planned(desc, number)
        except Exception as problem:
            failed += 1
            counts[found.name] += 1
            print(f"{number}: {type(problem).__name__}: {problem}\n  {desc!r}", flush=True)
    print(sum(counts.values()), "plans")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
