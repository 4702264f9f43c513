"""Scans of short rows that follow each other: the bits of a loop over each row, and nothing beside them written."""

from __future__ import annotations

import numpy as np
import pytest

import anydml

ACCUMULATORS = {"float32": "float64", "float16": "float32", "int32": "int32", "uint64": "uint64"}
ROWS = (1, 7, 41, 333, 1111)
MARGIN = 5

pytestmark = pytest.mark.native


def scanned(x: np.ndarray, accumulator: str, product: bool, exclusive: bool) -> np.ndarray:
    """One element of each row at a time, in the wider type."""
    prefix = np.full(len(x), int(product), accumulator)
    result = np.empty_like(x)
    with np.errstate(over="ignore"):
        for i in range(x.shape[1]):
            after = prefix * x[:, i].astype(accumulator) if product else prefix + x[:, i].astype(accumulator)
            result[:, i] = prefix if exclusive else after
            prefix = after
    return result


@pytest.mark.parametrize("dtype", ACCUMULATORS)
@pytest.mark.parametrize("length", range(1, 16))
@pytest.mark.parametrize("product", [False, True])
def test_bits(dtype: str, length: int, product: bool) -> None:
    rng = np.random.default_rng(length)
    scan = anydml.cumulative_product if product else anydml.cumulative_summation
    for rows in ROWS:
        x = (rng.standard_normal((rows, length)) * 3).astype(dtype)
        if x.dtype.kind == "f":
            x[rng.random(x.shape) < 0.1] = -0.0
        for exclusive, reverse in ((False, False), (True, False), (False, True), (True, True)):
            step = -1 if reverse else 1
            expected = scanned(x[:, ::step], ACCUMULATORS[dtype], product, exclusive)[:, ::step]
            memory = np.full(x.size + 2 * MARGIN, 99, dtype)
            out = memory[MARGIN:-MARGIN].reshape(x.shape)
            scan(x, axis=1, exclusive=exclusive, reverse=reverse, out=out)
            assert out.tobytes() == expected.tobytes()
            assert (memory[:MARGIN] == 99).all()
            assert (memory[-MARGIN:] == 99).all()
            out[...] = x
            scan(out, axis=1, exclusive=exclusive, reverse=reverse, out=out)
            assert out.tobytes() == expected.tobytes()
