"""What native kernels and their plans take beside outputs: at most 1 MiB for each thread, whatever the tensors."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from harness import ENGINES

THREADS = 2
LIMIT = THREADS << 20
MEASURED = """
import json, sys
import numpy as np
import anydml

def peak():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) << 10 for line in status if line.startswith("VmHWM"))

def forget_peak():
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")

def grown(call, *warm):
    for each in warm:  # threads start, and what is compiled once is compiled
        each()
    forget_peak()
    before = peak()
    call()
    return peak() - before

def scan(operation, dtype, shape, axis, turn=False, **options):
    def work(shape):
        x = np.ones(shape, dtype)
        x = x.T if turn else x
        out = np.ones(x.shape, dtype)
        return lambda: operation(x, axis, out=out, **options)
    return work(shape), work([min(n, 3) for n in shape])

def join(shape, count, axis):
    def work(shape):
        pieces = [np.ones(shape, np.uint8) for _ in range(count)]
        joined = list(shape)
        joined[axis] *= count
        out = np.ones(joined, np.uint8)
        return lambda: anydml.join(pieces, axis, out=out)
    return work(shape), work([min(n, 3) for n in shape])

def pool(shape, window, stride):
    def work(shape):
        x = np.ones(shape, np.uint8)
        sizes = [(n - window) // stride + 1 for n in shape[2:]]
        out = np.ones((*shape[:2], *sizes), np.uint8)
        return lambda: anydml.quantized_linear_average_pooling(
            x, 0.5, output_scale=0.25, window_size=window, strides=stride, out=out
        )
    return work(shape), work([1, 1] + [window] * (len(shape) - 2))

def reduce(function, dtype, shape, axes, turn=False, **options):
    def work(shape):
        x = np.ones(shape, dtype)
        x = x.T if turn else x
        out = np.ones([1 if i in axes else n for i, n in enumerate(x.shape)], options.get("output_dtype", dtype))
        return lambda: anydml.reduce(x, function, axes, out=out, **options)
    return work(shape), work([min(n, 3) for n in shape])

def cases():
    million = 1 << 20
    for operation in (anydml.cumulative_summation, anydml.cumulative_product):
        for dtype in (np.float32, np.float16, np.int64):
            name = f"{operation.__name__} {dtype.__name__}"
            yield f"{name} one row", scan(operation, dtype, (16 * million,), 0)
            yield f"{name} rows", scan(operation, dtype, (4096, 4096), 1)
            yield f"{name} columns", scan(operation, dtype, (4096, 4096), 0)
            yield f"{name} 256 columns", scan(operation, dtype, (64 << 10, 256), 0)
            yield f"{name} a million columns", scan(operation, dtype, (16, million), 0, exclusive=True)
            yield f"{name} inner 3", scan(operation, dtype, (700, 8000, 3), 1, reverse=True)
            yield f"{name} transposed rows", scan(operation, dtype, (4096, 4096), 1, turn=True)
            yield f"{name} transposed columns", scan(operation, dtype, (4096, 4096), 0, turn=True)
    reduced = {"sum": np.float32, "log_sum_exp": np.float32, "argmax": np.int8, "multiply": np.float16}
    for function, dtype in reduced.items():
        options = {"output_dtype": np.uint32} if function == "argmax" else {}
        name = f"reduce {function}"
        yield f"{name} one row", reduce(function, dtype, (16 * million,), [0], **options)
        yield f"{name} rows", reduce(function, dtype, (4096, 4096), [1], **options)
        yield f"{name} columns", reduce(function, dtype, (4096, 4096), [0], **options)
        yield f"{name} a million columns", reduce(function, dtype, (16, million), [0], **options)
        yield f"{name} 3 columns", reduce(function, dtype, (5 * million, 3), [0], **options)
        yield f"{name} rows of 3", reduce(function, dtype, (5 * million, 3), [1], **options)
        yield f"{name} inner and outer", reduce(function, dtype, (64, 256, 1000), [0, 2], **options)
        yield f"{name} transposed", reduce(function, dtype, (16, 1000, 1000), [0, 2], turn=True, **options)
    yield "join 2", join((32 * million,), 2, 0)
    yield "join 512 of 1", join((64 << 10, 1), 512, 1)
    yield "join 512 of 96", join((1 << 10, 96), 512, 1)
    yield "join 3 of 65", join((256 << 10, 65), 3, 1)
    for window, stride in ((2, 2), (3, 1), (7, 1)):
        yield f"pooling {window}/{stride}", pool((4, 64, 512, 512), window, stride)
    yield "pooling of a wide row", pool((1, 1, 7, 8 * million), 7, 1)
    yield "pooling 3x3x3", pool((2, 4, 32, 512, 512), 3, 1)
    yield "pooling of planes", pool((4, 64, 512, 512), 512, 1)

print(json.dumps({name: grown(*work) for name, work in cases()}))
"""


@pytest.mark.skipif("cpu" not in ENGINES, reason="needs the compiled module")
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="Linux tells a process's peak of memory")
def test_kernels_allocate_little() -> None:
    """Of a process of its own, as the peak of memory is one of a process."""
    environment = {**os.environ, "OMP_NUM_THREADS": str(THREADS)}
    done = subprocess.run(
        [sys.executable, "-c", MEASURED], env=environment, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr[-3000:]
    grown = json.loads(done.stdout)
    assert len(grown) == 90
    assert {name: size for name, size in grown.items() if size > LIMIT} == {}
