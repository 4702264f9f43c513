"""The rows of interpolation: images of planes and of pixels, enlarged and reduced."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

from ..core.enums import InterpolationMode
from .operations import Line, Operation, Shape

_MODES = {"bilinear": InterpolationMode.LINEAR, "nearest": InterpolationMode.NEAREST_NEIGHBOR}
_RATIOS = {"by 2": Fraction(2), "by 3/2": Fraction(3, 2), "by 11/7": Fraction(11, 7), "by 1/2": Fraction(1, 2)}


def _shapes(ratio: Fraction, channels: int, last: bool) -> Callable[[int, int], Sequence[Shape]]:
    """Images that are about as wide in memory, and whose height is what is left."""

    def shapes(n: int, run: int) -> Sequence[Shape]:
        unit = 1536 // channels if last else 512
        width = max(1, unit // ratio.denominator) * ratio.denominator
        # Of the larger one of both.
        rows = n / (channels * width * max(ratio, Fraction(1)) ** 2)
        height = max(1, int(rows) // ratio.denominator) * ratio.denominator
        sizes = (height, width), (int(height * ratio), int(width * ratio))
        return [(1, *size, channels) if last else (1, channels, *size) for size in sizes]

    return shapes


def _members(mode: str, ratio: Fraction, last: bool) -> Callable[[Sequence[Shape], str], Mapping[str, Any]]:
    scales = (1, ratio, ratio, 1) if last else (1, 1, ratio, ratio)
    members = {"InterpolationMode": _MODES[mode], "Scales": [float(scale) for scale in scales]}
    return lambda shapes, dtype: members


def _by_torch(mode: str, last: bool) -> Callable[..., Any]:
    """By the name that PyTorch has for the element that is nearest to a pixel's centre."""
    name = {"nearest": "nearest-exact"}.get(mode, mode)

    def by_torch(torch: Any, x: Any, y: Any) -> Any:
        x, size = (x.permute(0, 3, 1, 2), y.shape[1:3]) if last else (x, y.shape[2:])
        result = torch.nn.functional.interpolate(x, size=tuple(size), mode=name)
        return result.permute(0, 2, 3, 1) if last else result

    return by_torch


def _by_numpy(ratio: Fraction, last: bool) -> Callable[..., Any]:
    first = 1 if last else 2

    def by_numpy(np: Any, x: Any, y: Any) -> None:
        p, q = ratio.as_integer_ratio()
        rows, columns = ((2 * np.arange(y.shape[axis]) + 1) * q // (2 * p) for axis in (first, first + 1))
        np.take(np.take(x, rows, first), columns, first + 1, y, "clip")

    return by_numpy


def resampling() -> Iterator[Operation]:
    for mode in _MODES:
        for words, ratio in _RATIOS.items():
            for channels, last in ((3, False), (3, True), (64, True)):
                for dtype in ("float32", "float16", "uint8"):
                    if dtype != "float32" and words == "by 11/7":
                        continue
                    line = Line(
                        "RESAMPLE",
                        _shapes(ratio, channels, last),
                        _members(mode, ratio, last),
                        numpy=_by_numpy(ratio, last) if mode == "nearest" else None,
                        torch=_by_torch(mode, last),
                        is_rounded=mode == "bilinear",
                    )
                    layout = f"{channels} channels last" if last else f"{channels} planes"
                    yield Operation(
                        "RESAMPLE", f"{mode} {words}, {layout}", None, dtype, line=line, of=f"{mode} {words}"
                    )
