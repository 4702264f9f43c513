"""The rows of movement: a table of the operators that copy, convert or make elements."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..core.enums import InterpolationMode, PaddingMode
from ..core.strided_layout import DATA_TYPES
from ..core.tensor_desc import DML_SIZE_2D
from ..operators import OPERATORS
from .cases import LINE, Function, lines_of
from .operations import Line, Operation, Shape, no_members, random_inputs
from .places import Place

CONVERSION_LIMIT = 1.15


class Kind(NamedTuple):
    """What rows of one limit have in common."""

    cell: str
    limit: float | None


def of_runs(size: int) -> Kind:
    """By the bytes that are moved at once."""
    if size >= 64:
        return Kind("runs of 64 B and longer", 1.15)
    return Kind("runs of 8 to 63 B", 1.6) if size >= 8 else Kind("runs of 1 to 7 B", 2.5)


def of_gathered(size: int) -> Kind:
    if size >= 256:
        return Kind("gathered rows of 256 B and longer", 1.3)
    return Kind("gathered rows of 64 to 255 B", 2.5) if size >= 64 else Kind("gathered rows of 1 to 63 B", None)


def of_transposed(size: int) -> Kind:
    """By the bytes of an element."""
    return Kind("transposes of 4 and 8 B", 1.3) if size >= 4 else Kind("transposes of 1 and 2 B", 1.8)


# Lines of the table


def _views(pairs: Callable[..., Sequence[tuple[Any, Any]]]) -> tuple[Function, Function]:
    """By NumPy and by PyTorch, what is a copy of views: ``pairs(*inputs, *outputs)`` are each a view of an input and
    one of an output."""

    def by_numpy(library: Any, *arrays: Any) -> None:
        for source, target in pairs(*arrays):
            library.copyto(target, source)

    def by_torch(library: Any, *arrays: Any) -> None:
        for source, target in pairs(*arrays):
            target.copy_(source)

    return by_numpy, by_torch


def _padded(shapes: Sequence[Shape], dtype: str, mode: PaddingMode) -> dict[str, Any]:
    return {"PaddingMode": mode, "PaddingValue": 7, "StartPadding": (0, 1), "EndPadding": (0, 1)}


def _fill(shapes: Sequence[Shape], dtype: str) -> dict[str, Any]:
    return {"ValueDataType": DATA_TYPES[np.dtype(dtype)], "Value": 7}


def _steps(shapes: Sequence[Shape], dtype: str) -> dict[str, Any]:
    return {"ValueDataType": DATA_TYPES[np.dtype(dtype)], "ValueStart": 3, "ValueDelta": 2}


def _indexed(place: Place, shapes: Sequence[Shape], dtype: str) -> list[Any]:
    """Elements, and rows of them in random order."""
    (x,) = random_inputs(place, shapes[:1], dtype)
    return [x, place.integers(0, shapes[0][0], shapes[1], np.int32)]


def _pair(n: int, run: int) -> tuple[Shape, Shape]:
    """Of which one has every other run of the other."""
    return (n // (2 * run), 2 * run), (n // (2 * run), run)


SLICE = Line(
    "SLICE",
    _pair,
    lambda shapes, dtype: {"Offsets": (0, shapes[1][1]), "Sizes": shapes[1], "Strides": (1, 1)},
    *_views(lambda x, y: [(x[:, y.shape[1] :], y)]),
    read=lambda x: lines_of(x[:, x.shape[1] // 2 :]),
)
SLICE1 = Line(
    "SLICE1",
    lambda n, run: [(n // run, run), (n // run, run)],
    lambda shapes, dtype: {
        "InputWindowOffsets": (0, 0),
        "InputWindowSizes": shapes[0],
        "InputWindowStrides": (-1, 1),
    },
    numpy=lambda np, x, y: np.copyto(y, x[::-1]),
    torch=lambda torch, x, y: torch.flip(x, [0]),
)
STEPS = Line(
    "SLICE",
    lambda n, run: [(n // 3 * 3,), (n // 3,)],
    lambda shapes, dtype: {"Offsets": (1,), "Sizes": shapes[1], "Strides": (3,)},
    *_views(lambda x, y: [(x[1::3], y)]),
)
SPLIT = Line(
    "SPLIT",
    lambda n, run: [(n // (3 * run), 3 * run), *[(n // (3 * run), run)] * 3],
    lambda shapes, dtype: {"Axis": 1},
    *_views(lambda x, *y: [(x[:, i * z.shape[1] : (i + 1) * z.shape[1]], z) for i, z in enumerate(y)]),
)
CONSTANT_PADDING = Line(
    "PADDING",
    lambda n, run: [(n // (run + 2), run), (n // (run + 2), run + 2)],
    lambda shapes, dtype: _padded(shapes, dtype, PaddingMode.CONSTANT),
    numpy=lambda np, x, y: np.pad(x, ((0, 0), (1, 1)), constant_values=7),
    torch=lambda torch, x, y: torch.nn.functional.pad(x, (1, 1), value=7),
)
EDGES = CONSTANT_PADDING._replace(
    members=lambda shapes, dtype: _padded(shapes, dtype, PaddingMode.EDGE),
    numpy=lambda np, x, y: np.pad(x, ((0, 0), (1, 1)), mode="edge"),
    torch=lambda torch, x, y: torch.nn.functional.pad(x[None], (1, 1), mode="replicate")[0],
)
TILE = Line(
    "TILE",
    lambda n, run: [(n // (4 * run), run), (n // (4 * run), 4 * run)],
    lambda shapes, dtype: {"Repeats": (1, 4)},
    *_views(lambda x, y: [(x[:, None], y.reshape(x.shape[0], 4, x.shape[1]))]),
)
UPSAMPLE = Line(
    "UPSAMPLE_2D",
    lambda n, run: [(1, 1, n // 2048 or 1, 512), (1, 1, 2 * (n // 2048 or 1), 1024)],
    lambda shapes, dtype: {
        "ScaleSize": DML_SIZE_2D(Width=2, Height=2),
        "InterpolationMode": InterpolationMode.NEAREST_NEIGHBOR,
    },
    numpy=lambda np, x, y: np.copyto(y.reshape(*x.shape[:3], 2, x.shape[3], 2).swapaxes(3, 4), x[..., None, None]),
    torch=lambda torch, x, y: torch.nn.functional.interpolate(x, scale_factor=2, mode="nearest"),
)
GATHER = Line(
    "GATHER",
    lambda n, run: [(n // run, run), (1, n // run), (n // run, run)],
    lambda shapes, dtype: {"Axis": 0, "IndexDimensions": 1},
    lambda np, x, indices, y: np.take(x, indices[0], 0, y, "clip"),
    lambda torch, x, indices, y: torch.index_select(x, 0, indices[0], out=y),
    _indexed,
    # Lines are read again for each row that is in them; and the indices.
    read=lambda x, indices: indices.size * -(-x[0].nbytes // LINE) + lines_of(indices),
)
CONSTANT = Line(
    "FILL_VALUE_CONSTANT",
    lambda n, run: [(n,)],
    _fill,
    lambda np, y: np.copyto(y, 7),
    lambda torch, y: y.fill_(7),
)
SEQUENCE = Line(
    "FILL_VALUE_SEQUENCE",
    lambda n, run: [(n,)],
    _steps,
    lambda np, y: np.arange(3, 3 + 2 * y.size, 2, y.dtype),
    lambda torch, y: torch.arange(3, 3 + 2 * y.numel(), 2, out=y),
    is_rounded=True,
)


def _cast(output_dtype: str) -> Line:
    # NumPy's copies refuse what may lose digits.
    return Line(
        "CAST",
        lambda n, run: [(n,), (n,)],
        no_members,
        lambda np, x, y: np.copyto(y, x, casting="unsafe"),
        lambda torch, x, y: y.copy_(x),
        output_dtype=output_dtype,
    )


def _transposed(order: Shape, shape: Callable[[int], Shape]) -> Line:
    """An identity of an input whose strides are in another order."""

    def inputs(place: Place, shapes: Sequence[Shape], dtype: str) -> list[Any]:
        packed = [0] * len(order)
        for size, axis in zip(shapes[0], order, strict=True):
            packed[axis] = size
        (x,) = random_inputs(place, [tuple(packed)], dtype)
        return [x.transpose(order)]

    return Line(
        "ELEMENT_WISE_IDENTITY",
        lambda n, run: [shape(n)] * 2,
        no_members,
        *_views(lambda x, y: [(x, y)]),
        inputs,
    )


# Rows


def _rows(name: str, line: Line, sizes: Sequence[int], kind: Callable[[int], Kind] = of_runs) -> Iterator[Operation]:
    """For runs of so many bytes, of elements as wide as divide them."""
    for size in sizes:
        dtype = "float32" if size % 4 == 0 else "uint8"
        run = size // np.dtype(dtype).itemsize
        yield Operation(
            "MOVEMENT", f"{name}, runs of {size} B", kind(size).limit, dtype, line=line, run=run, of=kind(size).cell
        )


def _row(name: str, line: Line, dtype: str, kind: Kind) -> Operation:
    return Operation("MOVEMENT", name, kind.limit, dtype, line=line, of=kind.cell)


_SIZES = (3, 20, 1000)


def movement() -> Iterator[Operation]:
    """All, but for those whose operator is not in the registry."""
    return (row for row in _all() if row.line.operator in OPERATORS)


def _all() -> Iterator[Operation]:
    whole, conversion = of_runs(LINE), Kind("conversions", CONVERSION_LIMIT)
    yield from _rows("SLICE", SLICE, (1, 7, 20, 64, 1000, 4096))
    yield _row("SLICE, each third", STEPS, "float32", of_runs(4))
    yield _row("SLICE, each third", STEPS, "uint8", of_runs(1))
    yield from _rows("SLICE1, rows reversed", SLICE1, _SIZES[1:])
    yield from _rows("SPLIT in 3", SPLIT, _SIZES)
    yield from _rows("PADDING", CONSTANT_PADDING, _SIZES)
    yield from _rows("PADDING, edges", EDGES, _SIZES[1:2])
    yield from _rows("TILE by 4", TILE, _SIZES)
    for dtype in ("float32", "float16"):
        yield _row("UPSAMPLE_2D by 2", UPSAMPLE, dtype, of_runs(np.dtype(dtype).itemsize))
    yield from _rows("GATHER", GATHER, (16, 64, 256, 1000), of_gathered)
    for dtype in ("float32", "uint8"):
        yield _row("FILL_VALUE_CONSTANT", CONSTANT, dtype, whole)
    for dtype in ("float32", "uint8"):
        yield _row("FILL_VALUE_SEQUENCE", SEQUENCE, dtype, whole)
    for dtype, output_dtype in (
        ("float32", "float16"),
        ("float16", "float32"),
        ("float32", "int32"),
        ("float32", "uint8"),
        ("uint8", "float32"),
        ("int32", "int64"),
        ("int64", "int32"),
        ("int32", "float32"),
    ):
        yield _row(f"CAST to {output_dtype}", _cast(output_dtype), dtype, conversion)
    every = ("uint8", "float16", "float32", "int64")
    for text, order, shape, dtypes in (
        ("square", (1, 0), lambda n: (1 << (n.bit_length() // 2), n >> (n.bit_length() // 2)), every),
        ("odd", (1, 0), lambda n: (1021, n // 1021), every),
        ("channels last", (0, 2, 3, 1), lambda n: (1, n // (64 * 64), 64, 64), every[::2]),
        ("rows of 3", (1, 0), lambda n: (n // 3, 3), every[1::2]),
    ):
        for dtype in dtypes:
            kind = of_transposed(np.dtype(dtype).itemsize)
            yield _row(f"transpose, {text}", _transposed(order, shape), dtype, kind)
