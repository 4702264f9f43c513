"""What is measured: the matrix, each row as data, and how its arrays and its operator are made."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import isqrt, prod
from typing import Any, ClassVar

import numpy as np

from ..device import Device
from ..dispatchables import Compiled, CompiledOperator
from ..enums import AxisDirection
from ..functions import quantized_linear_average_pooling
from ..layout import DATA_TYPES, Array
from ..operators import spec
from ..schema import OperatorDesc
from ..tensor import DML_BUFFER_TENSOR_DESC
from .places import SEED, UFUNCS, Host, Place, count_of, place_of

LARGE, MIDDLE, SMALL = 128 << 20, 1 << 20, 64 << 10
"""Bytes of a tensor; the limits hold for large ones, which for pooling are half as large."""
LARGE_ON_GPU, LITTLE_ON_GPU = 512 << 20, 1 << 20
"""Likewise; of the little ones the checks are the CPU's, by the specification's own NumPy code."""
GAP = 16
"""Elements between the rows of a gapped input."""
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

    @property
    def bytes_moved(self) -> int:
        """Read once and written once; what is broadcast or left out by strides does not count."""
        arrays = [*self.inputs, self.output]
        return sum(array.nbytes for array in arrays if not isinstance(array, np.ndarray) or 0 not in array.strides)


@dataclass(frozen=True)
class Case(ABC):
    """A row of the matrix."""

    operator: str
    name: str
    limit: float
    """The ratio to a copy that is allowed a large tensor; or to the plain case, where there is one."""
    dtype: str
    size: int = LARGE
    group: str = ""
    """On a GPU, the cell; the limit there is always one beside a copy."""

    @property
    def title(self) -> str:
        return f"{self.dtype} {self.name}, {format_size(self.size)}"

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

    def plain(self) -> Case | None:
        """The case beside which this one is judged; None where that is a copy."""
        return None

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

    @property
    def cell(self) -> str:
        if self.group:
            return self.group
        if self.layout != "packed":
            return "transposed or gapped input"
        is_odd = self.decreasing or self.exclusive or any(self.name == name for name, _, _ in _ODD)
        return f"{self.dtype}, odd shapes, options" if is_odd else self.dtype

    def make(self, device: Device) -> Work:
        place, dtype = place_of(device), np.dtype(self.dtype)
        shape = tuple(max(1, size) for size in self.shape(self.size // dtype.itemsize))
        x = self._lay(self._values(place, shape, dtype))
        output = place.empty(shape, dtype)
        member = "HasExclusiveSum" if self.operator == "CUMULATIVE_SUMMATION" else "HasExclusiveProduct"
        direction = AxisDirection.DECREASING if self.decreasing else AxisDirection.INCREASING
        desc = _desc(
            self.operator,
            InputTensor=_tensor(device, x),
            OutputTensor=_tensor(device, output),
            Axis=self.axis,
            AxisDirection=direction,
            **{member: self.exclusive},
        )
        return Work(place, [x], output, _compile(device, desc), lambda y: self._check(place, x, y))

    def _values(self, place: Place, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
        """Floats whose tallies are exact and near 1, whatever the order of combining: what differs is wrong, nothing
        overflows, and no subnormals slow anyone down. Integers whose products never come to 0."""
        axis = self.axis
        if dtype.kind == "f":
            summing = self.operator == "CUMULATIVE_SUMMATION"
            tallies = place.integers(*((-32, 32) if summing else (-1, 1)), shape)
            steps = place.copy(tallies)
            later, earlier = [(slice(None),) * axis + (part,) for part in (slice(1, None), slice(None, -1))]
            steps[later] -= tallies[earlier]
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

    def _lay(self, x: Array) -> Array:
        if self.layout == "transposed":
            order = tuple(reversed(range(x.ndim)))
            return np.ascontiguousarray(x.transpose(order)).transpose(order)
        if self.layout == "gapped":
            wide = np.zeros((*x.shape[:-1], x.shape[-1] + GAP), x.dtype)
            wide[..., :-GAP] = x
            return wide[..., :-GAP]
        return x

    def _check(self, place: Place, x: Any, y: Any) -> str:
        """Lines along the axis, tallied by NumPy in the next wider type; all of them where there are few. What is large
        on a GPU is tallied there, in whole."""
        if not place.is_host and y.nbytes > LITTLE_ON_GPU:
            expected = place.cast(place.tally(self.operator, x, self.axis, self._wide), self.dtype)
            return "" if place.are_same(y, expected) else "it differs from PyTorch's in the next wider type"
        x, y = place.numpy(x), place.numpy(y)
        x, y = np.moveaxis(x, self.axis, -1), np.moveaxis(y, self.axis, -1)
        lines = [np.unravel_index(i, x.shape[:-1]) for i in self._sample(prod(x.shape[:-1]), x.shape[-1])]
        for line in lines:
            expected = self._tally(x[line])
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

    def _tally(self, line: Array) -> Array:
        step = -1 if self.decreasing else 1
        with np.errstate(all="ignore"):
            tallies = Host().tally(self.operator, line[::step], 0, self._wide)
            if self.exclusive:
                identity = UFUNCS[self.operator].identity
                tallies = np.concatenate([np.array([identity], tallies.dtype), tallies[:-1]])
            return tallies.astype(line.dtype)[::step]


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
        tensors = [_tensor(device, piece) for piece in pieces]
        desc = _desc("JOIN", InputTensors=tensors, OutputTensor=_tensor(device, output), Axis=len(outer))

        def check(y: Any) -> str:
            start = 0
            for i, (piece, size) in enumerate(zip(pieces, sizes, strict=True)):
                if not place.are_same(y[..., start : start + size], piece):
                    return f"input {i} is not where it belongs"
                start += size
            return ""

        return Work(place, [*pieces], output, _compile(device, desc), check)


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
        quantisation = [place.bring(value.reshape(1, per, *[1] * dimensions)) for value in values]
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
        scale, zero_point, out_scale, out_zero_point = [_tensor(device, each) for each in quantisation]
        desc = _desc(
            "QUANTIZED_LINEAR_AVERAGE_POOLING",
            InputTensor=_tensor(device, x),
            InputScaleTensor=scale,
            InputZeroPointTensor=zero_point,
            OutputScaleTensor=out_scale,
            OutputZeroPointTensor=out_zero_point,
            OutputTensor=_tensor(device, output),
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

        return Work(place, [x, *quantisation], output, _compile(device, desc), check)

    def _batch(self) -> tuple[int, int]:
        images = max(1, self.size // prod(self.spatial))
        channels = min(self.CHANNELS, images)
        return max(1, images // channels), channels


def _tensor(device: Device, given: Any) -> DML_BUFFER_TENSOR_DESC:
    array = device.memory.peek("bench", "", given)
    strides = tuple(stride // array.itemsize for stride in array.strides)
    return DML_BUFFER_TENSOR_DESC(DataType=DATA_TYPES[array.dtype], Sizes=array.shape, Strides=strides)


def _desc(operator: str, **members: Any) -> OperatorDesc:
    desc: Any = spec(operator).desc
    return desc(**members)  # type: ignore[no-any-return]


def _compile(device: Device, desc: OperatorDesc) -> CompiledOperator:
    return device.compile_operator(device.create_operator(desc))


def format_size(size: int) -> str:
    for unit, bytes_ in (("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size >= bytes_:
            return f"{size // bytes_} {unit}"
    return f"{size} B"


# Shapes of n elements


def _square(n: int) -> tuple[int, ...]:
    width = 1 << (n.bit_length() // 2)
    return (n // width, width)


def _middle(n: int) -> tuple[int, ...]:
    width = 1 << ((n // 64).bit_length() // 2)
    return (1, 64, n // 64 // width, width)


def _short(n: int) -> tuple[int, ...]:
    return (n // 32, 32)


def _inner(width: int, most: int = 1021) -> Callable[[int], tuple[int, ...]]:
    def shape(n: int) -> tuple[int, ...]:
        length = min(most, max(1, n // width))
        return (n // width // length, length, width)

    return shape


def _primes(n: int) -> tuple[int, ...]:
    length = next(p for p in range(isqrt(n), 0, -1) if all(p % d for d in range(2, isqrt(p) + 1)))
    return (n // length, length)


def _eight(n: int) -> tuple[int, ...]:
    return (2, 2, 4, max(1, n // 2048), 4, 2, 4, 4)


_SHAPES: tuple[tuple[str, Callable[[int], tuple[int, ...]], int], ...] = (
    ("one row", lambda n: (n,), 0),
    ("long rows", _square, 1),
    ("columns", _square, 0),
    ("middle axis", _middle, 1),
    ("rows of 32", _short, 1),
)
_ODD: tuple[tuple[str, Callable[[int], tuple[int, ...]], int], ...] = (
    *((f"middle axis, inner {width}", _inner(width), 1) for width in (1, 3, 17, 31)),
    ("rows of prime length", _primes, 1),
    ("8 dimensions", _eight, 3),
)


def _scans() -> Iterator[Scan]:
    for operator in UFUNCS:
        for dtype in ("float32", "float16", "int32", "uint32", "int64", "uint64"):
            limit = 1.4 if dtype == "float16" or (operator == "CUMULATIVE_PRODUCT" and dtype.endswith("64")) else 1.15
            for name, shape, axis in _SHAPES:
                yield Scan(operator, name, limit, dtype, shape=shape, axis=axis)
        for dtype in ("float32", "float16", "int64"):
            limit = 1.4 if dtype == "float16" or (operator == "CUMULATIVE_PRODUCT" and dtype.endswith("64")) else 1.15
            for name, shape, axis in _ODD:
                yield Scan(operator, name, limit, dtype, shape=shape, axis=axis)
            for name, shape, axis in _SHAPES[:3]:
                yield Scan(operator, f"{name}, DECREASING", limit, dtype, shape=shape, axis=axis, decreasing=True)
                yield Scan(operator, f"{name}, exclusive", limit, dtype, shape=shape, axis=axis, exclusive=True)
        for dtype, layout in product(("float32", "float16", "int64"), ("transposed", "gapped")):
            for name, shape, axis in _SHAPES[1:3]:
                yield Scan(operator, f"{name}, {layout}", 1.6, dtype, shape=shape, axis=axis, layout=layout)


def _joins() -> Iterator[Join]:
    for inputs, run in ((2, 2048), (2, 32768), (2, 10007), (16, 4096), (512, 2048), (512, 32768)):
        yield Join("JOIN", f"{inputs} runs of {run} B", 1.05, "uint8", runs=(run,), inputs=inputs)
    for inputs, run in ((2, 65), (2, 128), (3, 333), (16, 200), (512, 96), (2, 1024)):
        yield Join("JOIN", f"{inputs} runs of {run} B", 1.3, "uint8", runs=(run,), inputs=inputs)
    for inputs, run in ((3, 1), (4, 1), (2, 2), (3, 4), (2, 8), (4, 12), (2, 16), (2, 64), (64, 4), (512, 1)):
        yield Join("JOIN", f"{inputs} runs of {run} B", 1.6, "uint8", runs=(run,), inputs=inputs)
    yield Join("JOIN", "runs of 12 and 20 B", 1.6, "float32", runs=(12, 20))
    yield Join("JOIN", "2 runs of 16384 B", 1.05, "int64", runs=(16384,), inputs=2)


def _poolings() -> Iterator[Pooling]:
    def pooling(name: str, limit: float, **options: Any) -> Pooling:
        return Pooling("QUANTIZED_LINEAR_AVERAGE_POOLING", name, limit, options.pop("dtype", "uint8"), **options)

    deep = (16, 56, 56)
    for dtype in ("uint8", "int8"):
        yield pooling("2x2 stride 2", 1.5, dtype=dtype)
        yield pooling("3x3 stride 2", 1.5, window=3, dtype=dtype)
        yield pooling("3x3 stride 1", 2.0, window=3, stride=1, dtype=dtype)
    yield pooling("7x7 stride 1", 3.0, window=7, stride=1)
    yield pooling("3x3x3 stride 1", 3.0, spatial=deep, window=3, stride=1)
    yield pooling("2x2x2 stride 2", 1.5, spatial=deep)
    for size in (7, 14, 112):
        yield pooling(f"global {size}x{size}", 1.1, spatial=(size, size), window=size, stride=1)
    # Beside the plain case.
    for name, options in (
        ("2x2 stride 2", {"window": 2}),
        ("3x3 stride 2", {"window": 3}),
        ("3x3 stride 1", {"window": 3, "stride": 1}),
        ("7x7 stride 1", {"window": 7, "stride": 1}),
    ):
        padding = options["window"] // 2
        yield pooling(f"{name}, per channel", 1.3, **options, per_channel=True)
        yield pooling(f"{name}, padded", 1.3, **options, padding=padding)
        if name.startswith("3x3"):
            yield pooling(f"{name}, padding counted", 1.3, **options, padding=padding, include_padding=True)
            yield pooling(f"{name}, dilated", 1.3, **options, dilation=2)
            yield pooling(
                f"{name}, per channel, padded and dilated", 1.3, **options, per_channel=True, padding=2, dilation=2
            )
    yield pooling("3x3x3 stride 1, padded", 1.3, spatial=deep, window=3, stride=1, padding=1)
    yield pooling("global 14x14, per channel", 1.3, spatial=(14, 14), window=14, stride=1, per_channel=True)


def matrix(quick: bool = False, sizes: Sequence[int] = (LARGE, MIDDLE, SMALL)) -> list[Case]:
    """All rows for a CPU, by operator; where quick, a few of each operator."""
    # On call, as they are cases themselves.
    from .element_wise import element_wise

    scans, joins, poolings, others = list(_scans()), list(_joins()), list(_poolings()), list(element_wise())
    if quick:
        scans = [row for row in scans if row.cell in ("float32", "int64")]
        joins = joins[::3]
        poolings = [row for row in poolings if row.dtype == "uint8" and (row.plain() is None or row == poolings[-1])]
        others = others[::3]
    rows: list[Case] = [*scans, *joins, *poolings, *others]
    return [row.scaled(size) for size in sizes for row in rows]


# For a GPU: tensors of 2^28 elements, and bytes for JOIN and pooling as they come out


def _rows(length: int) -> Callable[[int], tuple[int, ...]]:
    return lambda n: (n // min(length, n), min(length, n))


_SHAPES_ON_GPU: tuple[tuple[str, str, Callable[[int], tuple[int, ...]], int, float, float], ...] = (
    # cell, name, shape, axis, limit, that of float16
    *(("many rows", f"rows of {length}", _rows(length), 1, 1.12, 1.25) for length in (32, 512, 16384, 65536)),
    ("outer axis", "columns", _square, 0, 1.15, 1.25),
    ("outer axis", "middle axis", lambda n: (4, 64, *_square(n // 256)), 1, 1.15, 1.25),
    ("one long row or few", "one row", lambda n: (n,), 0, 1.45, 1.6),
    ("one long row or few", "4 rows", lambda n: (4, n // 4), 1, 1.45, 1.6),
    ("one long row or few", "256 rows", lambda n: (256, n // 256), 1, 1.45, 1.6),
    *(
        ("middle axis, inner 1 to 31", f"middle axis of {length}, inner {width}", _inner(width, length), 1, 1.4, 1.4)
        for length, width in ((700, 3), (1 << 18, 16), (512, 17))
    ),
)


def _scans_on_gpu() -> Iterator[Scan]:
    for operator, dtypes in (
        ("CUMULATIVE_SUMMATION", ("float32", "float16", "int32", "int64")),
        ("CUMULATIVE_PRODUCT", ("float32", "int64")),
    ):
        for dtype in dtypes:
            size = np.dtype(dtype).itemsize << 28
            for cell, name, shape, axis, limit, half in _SHAPES_ON_GPU:
                group = f"{cell}, float16" if dtype == "float16" and half != limit else cell
                yield Scan(operator, name, half if dtype == "float16" else limit, dtype, size, group, shape, axis)


def _joins_on_gpu() -> Iterator[Join]:
    for inputs, rows, dtype in ((2, 1, "float32"), (2, 16384, "float32"), (16, 16, "float32"), (512, 1, "float16")):
        name = f"{inputs} runs in each of {count_of(rows, 'row')}"
        yield Join("JOIN", name, 1.06, dtype, 1 << 30, "long runs", inputs=inputs, rows=rows)
    for name, dtype, size, runs, inputs in (
        ("runs of 12 and 20 B", "float32", 1 << 30, (12, 20), 0),
        ("16 runs of 20 B", "uint8", 640 << 20, (20,), 16),
        ("3 runs of 1 B", "uint8", 768 << 20, (1,), 3),
    ):
        yield Join("JOIN", name, 1.5, dtype, size, "runs of 1 to 20 B", runs=runs, inputs=inputs)


def _poolings_on_gpu() -> Iterator[Pooling]:
    wide, deep = (112, 112), (16, 112, 112)
    for group, name, limit, spatial, window, stride, padding in (
        ("2x2 and 3x3 stride 2", "2x2 stride 2", 1.3, wide, 2, 2, 0),
        ("2x2 and 3x3 stride 2", "3x3 stride 2, padded", 1.3, wide, 3, 2, 1),
        ("3x3 stride 1", "3x3 stride 1, padded", 1.6, wide, 3, 1, 1),
        ("7x7 and 3x3x3 stride 1", "7x7 stride 1, padded", 3.0, wide, 7, 1, 3),
        ("7x7 and 3x3x3 stride 1", "3x3x3 stride 1, padded", 3.0, deep, 3, 1, 1),
        ("global", "global 32x32", 1.2, (32, 32), 32, 1, 0),
        ("global", "global 14x14", 1.2, (14, 14), 14, 1, 0),
    ):
        options: dict[str, Any] = {"spatial": spatial, "window": window, "stride": stride, "padding": padding}
        yield Pooling("QUANTIZED_LINEAR_AVERAGE_POOLING", name, limit, "uint8", 784 << 20, group, **options)


_LITTLE = ("float32 rows of 512", "float32 columns", "float32 one row", "runs of 12 and 20 B", "uint8 2x2 stride 2")


def matrix_on_gpu(quick: bool = False, sizes: Sequence[int] | None = None) -> list[Case]:
    """All rows for a GPU, by operator, and a few of little tensors; where quick, one of each cell. All of the given
    sizes, where there are any."""
    rows: list[Case] = [*_scans_on_gpu(), *_joins_on_gpu(), *_poolings_on_gpu()]
    summing = [row for row in rows if row.operator != "CUMULATIVE_PRODUCT"]
    little = [row.scaled(LITTLE_ON_GPU) for row in summing if f"{row.dtype} {row.name}".endswith(_LITTLE)]
    if quick:
        cells: dict[tuple[str, str], Case] = {}
        for row in rows:
            cells.setdefault((row.operator, row.cell), row)
        rows = list(cells.values())
    return rows + little if sizes is None else [row.scaled(size) for size in sizes for row in rows]
