"""What is measured: each row as data, and how its arrays and its operator are made."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any, ClassVar

import numpy as np

from ..core.enums import AxisDirection
from ..core.strided_layout import DATA_TYPES, Array
from ..core.tensor_desc import DML_BUFFER_TENSOR_DESC
from ..device import Device
from ..functions.pooling import quantized_linear_average_pooling
from ..operators import spec
from ..operators.schema import OperatorDesc
from ..runtime.compiled import Compiled, CompiledOperator
from .places import SEED, UFUNCS, Host, Place, Run, place_of

LARGE, MIDDLE, SMALL = 128 << 20, 1 << 20, 64 << 10
"""Bytes of a tensor; the limits hold for large ones, which for pooling are half as large."""
LARGE_ON_GPU, LITTLE_ON_GPU = 512 << 20, 1 << 20
"""Likewise; of the little ones the checks are the CPU's, by the specification's own NumPy code."""
GAP = 16
"""Elements between the rows of a gapped input."""
LINE = 64
"""Bytes of a cache line: what memory moves."""
Function = Callable[..., Any]
"""``function(library, *inputs, *outputs)``, which gives the result, or None where that is in the outputs."""
INPUT_SCALE, INPUT_ZERO_POINT, OUTPUT_SCALE, OUTPUT_ZERO_POINT = 0.05, 3, 0.04, 5


@dataclass
class Work:
    """A row made ready: its arrays, and its operator compiled for them."""

    place: Place
    inputs: list[Any]
    output: Any
    compiled: Compiled
    check: Callable[[Any], str]
    """What is wrong with an output, "" if nothing is."""
    error: Callable[[Any], float] | None = None
    """How far an output is from the exact one, in units in the last place; None where libraries do not differ."""
    outputs: list[Any] = field(default_factory=list)
    """Of several outputs each, which lie in `output` one behind the other."""
    functions: Mapping[str, Function] = field(default_factory=dict)
    """What libraries compute it by, where the table of its rows has them."""
    moved: int = 0
    """The bytes that are read and written, where they are others than those of the arrays."""
    computation: Any = None
    """Of a row of `computation.py`: how it is built, its inputs and its outputs, by the desc's members."""
    products: int = 0
    """Multiplications, where these take longer than memory does."""
    is_read: bool = False
    """Whether it is measured by the time that it takes to read its input, as next to nothing is written."""

    def __post_init__(self) -> None:
        self.outputs = self.outputs or [self.output]

    def yardsticks(self, modules: dict[str, Any], threads: int) -> AbstractContextManager[dict[str, Run]]:
        if self.is_read and isinstance(self.place, Host):
            return self.place.reads(self.bytes_moved)
        return self.place.copies(self.bytes_moved // 2, modules, threads)

    @property
    def bytes_moved(self) -> int:
        """Read once and written once; what is broadcast or left out by strides does not count."""
        if self.moved:
            return self.moved
        arrays = [*self.inputs, self.output]
        return sum(array.nbytes for array in arrays if not isinstance(array, np.ndarray) or 0 not in array.strides)


@dataclass(frozen=True)
class Case(ABC):
    """A row of the matrix."""

    operator: str
    name: str
    limit: float | None
    """The ratio to a copy that is allowed a large tensor; or to the plain case, where there is one. None where others
    alone are what it is judged by."""
    dtype: str
    size: int = LARGE
    group: str = ""
    """On a GPU, the cell; the limit there is always one beside a copy."""

    @property
    def title(self) -> str:
        return f"{self.dtype} {self.name}, {format_size(self.size)}"

    @property
    def of_operator(self) -> str:
        """DirectML's operator that is measured, where `operator` says what several of them do."""
        return self.operator

    @property
    @abstractmethod
    def cell(self) -> str:
        """What rows of the same limit have in common; a chart shows them as one."""

    @abstractmethod
    def make(self, device: Device) -> Work:
        """The arrays, filled, and the operator compiled for them."""

    @property
    def is_large(self) -> bool:
        return self.size >= LARGE_ON_GPU if self.group else self.size == self.scaled(LARGE).size

    def has_limit(self, threads: int) -> bool:
        """Whether the limit holds: on several threads, or on a GPU, whose number is 0."""
        return self.is_large and threads != 1

    def plain(self) -> Case | None:
        """The case beside which this one is judged; None where that is a copy."""
        return None

    def times_plain(self, plain: Case) -> float:
        """How often the plain case's time counts."""
        return self.size / plain.size

    def limit_beside(self, plain_ratio: float) -> float | None:
        """The ratio to a copy that is allowed, where there is a plain case, whose ratio that is."""
        return None if self.limit is None else self.limit * plain_ratio

    def scaled(self, size: int) -> Case:
        return replace(self, size=size)


@dataclass(frozen=True)
class Scan(Case):
    shape: Callable[[int], tuple[int, ...]] = lambda n: (n,)
    axis: int = 0
    decreasing: bool = False
    exclusive: bool = False
    layout: str = "packed"
    """Or "transposed", or "gapped": how the input lies."""
    has_odd_shape: bool = False

    @property
    def cell(self) -> str:
        if self.group:
            return self.group
        if self.layout != "packed":
            return "transposed or gapped input"
        is_odd = self.decreasing or self.exclusive or self.has_odd_shape
        return f"{self.dtype}, odd shapes, options" if is_odd else self.dtype

    def make(self, device: Device) -> Work:
        place, dtype = place_of(device), np.dtype(self.dtype)
        shape = tuple(max(1, size) for size in self.shape(self.size // dtype.itemsize))
        x = lay(self._values(place, shape, dtype), self.layout)
        output = place.empty(shape, dtype)
        member = "HasExclusiveSum" if self.operator == "CUMULATIVE_SUMMATION" else "HasExclusiveProduct"
        direction = AxisDirection.DECREASING if self.decreasing else AxisDirection.INCREASING
        desc = desc_of(
            self.operator,
            InputTensor=tensor_of(device, x),
            OutputTensor=tensor_of(device, output),
            Axis=self.axis,
            AxisDirection=direction,
            **{member: self.exclusive},
        )
        return Work(place, [x], output, compiled_of(device, desc), lambda y: self._check(place, x, y))

    def _values(self, place: Place, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
        """Floats whose scans are exact and near 1, whatever the order of combining: what differs is wrong, nothing
        overflows, and no subnormals slow anyone down. Integers whose products never come to 0."""
        axis = self.axis
        if dtype.kind == "f":
            summing = self.operator == "CUMULATIVE_SUMMATION"
            scans = place.integers(*((-32, 32) if summing else (-1, 1)), shape)
            steps = place.copy(scans)
            later, earlier = [(slice(None),) * axis + (part,) for part in (slice(1, None), slice(None, -1))]
            steps[later] -= scans[earlier]
            if summing:  # multiples of 1/32
                sums = place.cast(steps, np.float32)
                sums *= 2.0**-5
                return place.cast(sums, dtype)
            # Powers of 2, by their exponents.
            form = np.finfo(dtype)
            exponents = place.cast(steps, f"i{dtype.itemsize}")
            exponents += form.maxexp - 1
            exponents <<= form.nmant
            return place.view(exponents, dtype)
        if self.operator == "CUMULATIVE_SUMMATION":
            return place.cast(place.integers(0, 100, shape), dtype)
        return place.cast(place.integers(0, 4, shape) * 2 + 1, dtype)

    def _check(self, place: Place, x: Any, y: Any) -> str:
        """Lines along the axis, scanned by NumPy in the next wider type; all of them where there are few. What is large
        on a GPU is scanned there, in whole."""
        if not place.is_host and y.nbytes > LITTLE_ON_GPU:
            expected = place.cast(place.scan(self.operator, x, self.axis, self._wide), self.dtype)
            return "" if place.are_same(y, expected) else "it differs from PyTorch's in the next wider type"
        x, y = place.numpy(x), place.numpy(y)
        x, y = np.moveaxis(x, self.axis, -1), np.moveaxis(y, self.axis, -1)
        lines = [np.unravel_index(i, x.shape[:-1]) for i in self._sample(prod(x.shape[:-1]), x.shape[-1])]
        for line in lines:
            expected = self._scan(x[line])
            if not np.array_equal(y[line], expected):
                return f"the line at {tuple(map(int, line))} differs from NumPy's"
        return ""

    def _sample(self, lines: int, length: int) -> Sequence[int]:
        most = max(1, min(256, (1 << 20) // length))
        if lines <= most:
            return range(lines)
        return sorted({0, lines - 1, *map(int, np.random.default_rng(SEED).integers(0, lines, most))})

    @property
    def _wide(self) -> Any:
        return {"float32": np.float64, "float16": np.float32}.get(self.dtype, self.dtype)

    def _scan(self, line: Array) -> Array:
        step = -1 if self.decreasing else 1
        with np.errstate(all="ignore"):
            scans = Host().scan(self.operator, line[::step], 0, self._wide)
            if self.exclusive:
                identity = UFUNCS[self.operator].identity
                scans = np.concatenate([np.array([identity], scans.dtype), scans[:-1]])
            return scans.astype(line.dtype)[::step]


@dataclass(frozen=True)
class Join(Case):
    runs: tuple[int, ...] = (1,)
    """Bytes of each input's run in a row."""
    inputs: int = 0
    """So many inputs, of the runs in turn; as many as runs where 0."""
    rows: int = 0
    """So many rows, of one run of each input, as long as the size allows; where 0, as many as the size allows."""

    @property
    def cell(self) -> str:
        if self.group:
            return self.group
        longest = max(self.runs)
        return f"runs of {'2 KiB and longer' if longest >= 2048 else '65 B to 2 KiB' if longest > 64 else '1 to 64 B'}"

    def make(self, device: Device) -> Work:
        place, dtype = place_of(device), np.dtype(self.dtype)
        runs = [self.runs[i % len(self.runs)] for i in range(self.inputs or len(self.runs))]
        if self.rows:
            runs = [self.size // self.rows // len(runs)] * len(runs)
        rows = self.rows or max(1, self.size // sum(runs))
        outer = () if self.rows == 1 else (rows,)
        sizes = [max(1, run // dtype.itemsize) for run in runs]
        pieces = [place.cast(place.integers(0, 256, (*outer, size), np.uint8), dtype) for size in sizes]
        output = place.empty((*outer, sum(sizes)), dtype)
        tensors = [tensor_of(device, piece) for piece in pieces]
        desc = desc_of("JOIN", InputTensors=tensors, OutputTensor=tensor_of(device, output), Axis=len(outer))

        def check(y: Any) -> str:
            start = 0
            for i, (piece, size) in enumerate(zip(pieces, sizes, strict=True)):
                if not place.are_same(y[..., start : start + size], piece):
                    return f"input {i} is not where it belongs"
                start += size
            return ""

        return Work(place, [*pieces], output, compiled_of(device, desc), check)


@dataclass(frozen=True)
class Pooling(Case):
    spatial: tuple[int, ...] = (112, 112)
    window: int = 2
    stride: int = 2
    padding: int = 0
    dilation: int = 1
    per_channel: bool = False
    include_padding: bool = False

    CHANNELS: ClassVar[int] = 64

    @property
    def cell(self) -> str:
        if self.group:
            return self.group
        if self.plain() is not None:
            return "per channel, dilated or padded"
        return "global" if self.name.startswith("global") else self.name

    def plain(self) -> Case | None:
        plain = replace(self, padding=0, dilation=1, per_channel=False, include_padding=False)
        return None if plain == self or self.group else plain

    def scaled(self, size: int) -> Case:
        return replace(self, size=size if self.group else min(size, LARGE // 2))

    def make(self, device: Device) -> Work:
        place, dtype = place_of(device), np.dtype(self.dtype)
        limits = np.iinfo(dtype)
        batch, channels = self._batch()
        x = place.integers(limits.min, limits.max + 1, (batch, channels, *self.spatial), dtype)
        extent = (self.window - 1) * self.dilation + 1
        pooled = [(size + 2 * self.padding - extent) // self.stride + 1 for size in self.spatial]
        output = place.empty((batch, channels, *pooled), dtype)
        per = channels if self.per_channel else 1
        values = (
            np.full(per, INPUT_SCALE, np.float32),
            np.full(per, INPUT_ZERO_POINT, dtype),
            np.full(per, OUTPUT_SCALE, np.float32),
            np.full(per, OUTPUT_ZERO_POINT, dtype),
        )
        dimensions = len(self.spatial)
        quantisation = [place.to_device(value.reshape(1, per, *[1] * dimensions)) for value in values]
        options: dict[str, Any] = {
            "window_size": [self.window] * dimensions,
            "strides": [self.stride] * dimensions,
            "start_padding": [self.padding] * dimensions,
            "end_padding": [self.padding] * dimensions,
            "dilations": [self.dilation] * dimensions,
        }
        members = dict(
            zip(("WindowSize", "Strides", "StartPadding", "EndPadding", "Dilations"), options.values(), strict=True)
        )
        scale, zero_point, out_scale, out_zero_point = [tensor_of(device, each) for each in quantisation]
        desc = desc_of(
            "QUANTIZED_LINEAR_AVERAGE_POOLING",
            InputTensor=tensor_of(device, x),
            InputScaleTensor=scale,
            InputZeroPointTensor=zero_point,
            OutputScaleTensor=out_scale,
            OutputZeroPointTensor=out_zero_point,
            OutputTensor=tensor_of(device, output),
            IncludePadding=self.include_padding,
            **members,
        )

        def check(y: Any) -> str:
            for part in ((slice(0, 1), slice(0, 2)), (slice(-1, None), slice(-2, None))):
                expected = quantized_linear_average_pooling(
                    np.ascontiguousarray(place.numpy(x[part])),
                    INPUT_SCALE,
                    INPUT_ZERO_POINT,
                    output_scale=OUTPUT_SCALE,
                    output_zero_point=OUTPUT_ZERO_POINT,
                    include_padding=self.include_padding,
                    device="reference",
                    **options,
                )
                if not np.array_equal(place.numpy(y[part]), expected):
                    return "a channel differs from the reference's"
            return ""

        return Work(place, [x, *quantisation], output, compiled_of(device, desc), check)

    def _batch(self) -> tuple[int, int]:
        images = max(1, self.size // prod(self.spatial))
        channels = min(self.CHANNELS, images)
        return max(1, images // channels), channels


def lay(x: Array, layout: str) -> Array:
    """The values as they lie "transposed", or "gapped"; "packed" as they are."""
    if layout == "transposed":
        order = tuple(reversed(range(x.ndim)))
        return np.ascontiguousarray(x.transpose(order)).transpose(order)
    if layout == "gapped":
        wide = np.zeros((*x.shape[:-1], x.shape[-1] + GAP), x.dtype)
        wide[..., :-GAP] = x
        return wide[..., :-GAP]
    return x


def tensor_of(device: Device, given: Any) -> DML_BUFFER_TENSOR_DESC:
    array = device.memory.import_array("bench", "", given)
    strides = tuple(stride // array.itemsize for stride in array.strides)
    return DML_BUFFER_TENSOR_DESC(DataType=DATA_TYPES[array.dtype], Sizes=array.shape, Strides=strides)


def desc_of(operator: str, **members: Any) -> OperatorDesc:
    desc: Any = spec(operator).desc
    return desc(**members)  # type: ignore[no-any-return]


def compiled_of(device: Device, desc: OperatorDesc) -> CompiledOperator:
    return device.compile_operator(device.create_operator(desc))


def lines_of(x: Array) -> int:
    """How many lines of memory hold an array, as if each run began with one; shorter gaps are moved, too."""
    run, runs = x.itemsize, 1
    for stride, size in sorted((abs(stride), size) for stride, size in zip(x.strides, x.shape, strict=True)):
        if stride - run < LINE and runs == 1:
            run += (size - 1) * stride
        elif stride:
            runs *= size
    return runs * -(-run // LINE)


def format_size(size: int) -> str:
    for unit, bytes_ in (("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size >= bytes_:
            return f"{size // bytes_} {unit}"
    return f"{size} B"


# Shapes of n elements
