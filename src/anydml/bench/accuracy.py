"""How far running sums are from the exact ones, ours and others'.

Exact because of the values: uniform over the multiples of 2^-b in the range, with b so large as a type's precision
allows. Scaled by 2^b they are integers below 2^24, and the sums of 2^26 of them stay below 2^50: int64 adds them
exactly, float64 holds each sum exactly, and one conversion rounds it to the type as IEEE 754 says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..core.strided_layout import Array
from ..functions.scan import cumulative_summation
from .peers import Peers

VALUES, QUICK_VALUES = 1 << 26, 1 << 22
_CHUNK = 1 << 20


@dataclass(frozen=True)
class Kind:
    dtype: str
    bits: int
    """Values are multiples of 2^-bits."""
    row: int
    """Elements of a row at most: the sums of longer ones of float16 would leave its range."""


KINDS = (Kind("float32", 24, 1 << 26), Kind("float16", 11, 1 << 16))


def accuracy(peers: Peers, device: Any, values: int = VALUES) -> Iterator[dict[str, Any]]:
    """A line for each type and range: the worst and the mean error of each library, in units in the last place of the
    exact result rounded to the type; what comes out infinite or NaN where the exact result is not counts as infinite.
    """
    for kind in KINDS:
        for low in (0, -1):
            row = min(values, kind.row)
            scaled = _scaled(kind, low, values).reshape(-1, row)
            unit = 2.0 ** -(kind.bits + low)
            x = (scaled * unit).astype(kind.dtype)
            for name, run in _libraries(peers, device, x):
                worst, mean = _errors(run(), scaled, unit)
                yield {
                    "dtype": kind.dtype,
                    "range": f"({low}, 1)",
                    "rows": values // row,
                    "row": row,
                    "library": name,
                    "worst": worst,
                    "mean": mean,
                }


def _scaled(kind: Kind, low: int, values: int) -> Array:
    """Integers that, times 2^-bits, are uniform in (0, 1), or with one bit less, in (-1, 1)."""
    bits = kind.bits + low
    random = np.random.default_rng(0)
    return random.integers(low * 2**bits + 1, 2**bits, values, np.int32)


def _libraries(peers: Peers, device: Any, x: Array) -> Iterator[tuple[str, Callable[[], Array]]]:
    yield "anydml", lambda: cumulative_summation(x, 1, device=device)
    if "numpy" in peers.modules:
        yield "numpy", lambda: np.add.accumulate(x, 1, dtype=x.dtype)
    torch = peers.modules.get("torch")
    if torch is not None:
        given = torch.from_numpy(x).to(getattr(device.memory, "device", "cpu"))
        yield "torch", lambda: torch.cumsum(given, 1).cpu().numpy()


def _errors(y: Array, scaled: Array, unit: float) -> tuple[float, float]:
    """Worst and mean, chunk by chunk, so that little memory is taken beside the arrays."""
    worst, total = 0.0, 0.0
    for given, got in zip(scaled, y, strict=True):
        carry = 0
        for start in range(0, given.size, _CHUNK):
            sums = np.cumsum(given[start : start + _CHUNK], dtype=np.int64) + carry
            carry = int(sums[-1])
            with np.errstate(over="ignore"):
                exact = (sums * unit).astype(y.dtype)
            part = got[start : start + _CHUNK]
            ulps = np.abs(np.spacing(np.abs(exact))).astype(np.float64)
            with np.errstate(invalid="ignore"):
                errors = np.abs(part.astype(np.float64) - exact.astype(np.float64)) / ulps
            errors[~np.isfinite(part)] = np.inf
            worst = max(worst, float(errors.max()))
            total += float(errors.sum())
    return worst, total / y.size
