"""How fast the operators run on a GPU, as ratios to a copy on the device that reads and writes as many bytes.

    python benchmarks/gpu.py [cuda] > docs/gpu.txt

Tensors of 512 MiB and more; times are medians by the device's own events, PyTorch's operator beside ours. Outputs are
poisoned before the run that is checked: integers and copies against PyTorch's bits, float sums against a tally in
the next wider type, pooling against the sums of a window in double precision.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable, Iterator
from math import prod
from typing import Any, NamedTuple

import numpy as np
import torch
import triton

import anydml
from anydml import (
    DML_BUFFER_TENSOR_DESC,
    DML_CUMULATIVE_PRODUCT_OPERATOR_DESC,
    DML_CUMULATIVE_SUMMATION_OPERATOR_DESC,
    DML_JOIN_OPERATOR_DESC,
    DML_QUANTIZED_LINEAR_AVERAGE_POOLING_OPERATOR_DESC,
    Device,
    TensorDataType,
)
from anydml.schema import OperatorDesc

TYPES = {
    torch.float32: TensorDataType.FLOAT32,
    torch.float16: TensorDataType.FLOAT16,
    torch.int32: TensorDataType.INT32,
    torch.int64: TensorDataType.INT64,
    torch.uint8: TensorDataType.UINT8,
}
SCANS = [
    # shape, axis, limits for float16 and the others
    ((2**23, 32), 1, 1.25, 1.12),
    ((2**19, 512), 1, 1.25, 1.12),
    ((16384, 16384), 1, 1.25, 1.12),
    ((4096, 65536), 1, 1.25, 1.12),
    ((16384, 16384), 0, 1.25, 1.15),
    ((4, 64, 1024, 1024), 1, 1.25, 1.15),
    ((2**28,), 0, 1.6, 1.45),
    ((4, 2**26), 1, 1.6, 1.45),
    ((256, 2**20), 1, 1.6, 1.45),
    ((2**15, 512, 17), 1, 1.4, 1.4),
    ((2**17, 700, 3), 1, 1.4, 1.4),
    ((64, 2**18, 16), 1, 1.4, 1.4),
]
JOINS = [
    ([(8192, 16384)] * 2, 0, torch.float32, 1.06),
    ([(16384, 8192)] * 2, 1, torch.float32, 1.06),
    ([(16, 32, 512, 256)] * 16, 1, torch.float32, 1.06),
    ([(4096, 256)] * 512, 0, torch.float16, 1.06),
    ([(2**25, 3), (2**25, 5)], 1, torch.float32, 1.5),
    ([(2**21, 20)] * 16, 1, torch.uint8, 1.5),
    ([(2**28, 1)] * 3, 1, torch.uint8, 1.5),
]
POOLS = [
    # shape, window, stride, padding, limit
    ((64, 1024, 112, 112), (2, 2), 2, 0, 1.3),
    ((64, 1024, 112, 112), (3, 3), 2, 1, 1.3),
    ((64, 1024, 112, 112), (3, 3), 1, 1, 1.6),
    ((64, 1024, 112, 112), (7, 7), 1, 3, 3.0),
    ((64, 64, 16, 112, 112), (3, 3, 3), 1, 1, 3.0),
    ((256, 2048, 32, 32), (32, 32), 1, 0, 1.2),
    ((1024, 2048, 14, 14), (14, 14), 1, 0, 1.2),
]
INPUT_SCALE, INPUT_ZERO_POINT, OUTPUT_SCALE, OUTPUT_ZERO_POINT = 0.05, 3, 0.04, 5


class Work(NamedTuple):
    name: str
    limit: float
    inputs: list[torch.Tensor]
    output: torch.Tensor
    desc: OperatorDesc
    torch: Callable[[], object] | None
    """The same by PyTorch, into memory of its own or the output."""
    is_right: Callable[[], bool]


def milliseconds(run: Callable[[], object], runs: int = 9) -> float:
    for _ in range(2):
        run()
    times = []
    for _ in range(runs):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        run()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end))
    return statistics.median(times)


def described(tensor: torch.Tensor) -> DML_BUFFER_TENSOR_DESC:
    return DML_BUFFER_TENSOR_DESC(DataType=TYPES[tensor.dtype], Sizes=tuple(tensor.shape))


def scan(place: Any, shape: tuple[int, ...], axis: int, dtype: torch.dtype, limit: float, operation: str) -> Work:
    sums = operation == "sum"
    if dtype.is_floating_point:
        x = torch.randn(shape, device=place).mul_(0.01)
        x = (x if sums else x.mul_(0.1).add_(1)).to(dtype)
    else:
        x = torch.randint(0, 3, shape, device=place, dtype=dtype)
    y = torch.empty_like(x)
    cumulate = torch.cumsum if sums else torch.cumprod
    kind = DML_CUMULATIVE_SUMMATION_OPERATOR_DESC if sums else DML_CUMULATIVE_PRODUCT_OPERATOR_DESC
    desc = kind(InputTensor=described(x), OutputTensor=described(y), Axis=axis)
    wide = {torch.float32: torch.float64, torch.float16: torch.float32}.get(dtype, dtype)

    def is_right() -> bool:
        expected = cumulate(x, axis, dtype=wide)
        if wide == dtype:
            return torch.equal(expected, y)
        steps = (y.to(wide) - expected).abs() / (expected.abs() + 1)
        return bool(steps.max() <= 2 * torch.finfo(dtype).eps)

    name = f"{operation} {str(dtype)[6:]} {shape} axis {axis}"
    return Work(name, limit, [x], y, desc, lambda: cumulate(x, axis, dtype=dtype, out=y), is_right)


def join(place: Any, shapes: list[tuple[int, ...]], axis: int, dtype: torch.dtype, limit: float) -> Work:
    pieces = [torch.randint(0, 100, shape, device=place, dtype=torch.int32).to(dtype) for shape in shapes]
    y = torch.cat(pieces, axis)
    desc = DML_JOIN_OPERATOR_DESC(InputTensors=list(map(described, pieces)), OutputTensor=described(y), Axis=axis)
    name = f"join {len(shapes)} x {str(dtype)[6:]} {shapes[0]} axis {axis}"

    def is_right() -> bool:
        return torch.equal(torch.cat(pieces, axis), y)

    return Work(name, limit, pieces, y, desc, lambda: torch.cat(pieces, axis, out=y), is_right)


def pool(place: Any, shape: tuple[int, ...], window: tuple[int, ...], stride: int, padding: int, limit: float) -> Work:
    x = torch.randint(0, 256, shape, device=place, dtype=torch.uint8)
    sizes = [(n + 2 * padding - k) // stride + 1 for n, k in zip(shape[2:], window, strict=True)]
    y = torch.empty((*shape[:2], *sizes), device=place, dtype=torch.uint8)
    one = (1,) * len(shape)
    quantisation = [
        torch.full(one, value, device=place, dtype=dtype)
        for value, dtype in (
            (INPUT_SCALE, torch.float32),
            (INPUT_ZERO_POINT, torch.uint8),
            (OUTPUT_SCALE, torch.float32),
            (OUTPUT_ZERO_POINT, torch.uint8),
        )
    ]
    names = ("InputScaleTensor", "InputZeroPointTensor", "OutputScaleTensor", "OutputZeroPointTensor")
    spatial = len(window)
    desc = DML_QUANTIZED_LINEAR_AVERAGE_POOLING_OPERATOR_DESC(
        InputTensor=described(x),
        OutputTensor=described(y),
        **dict(zip(names, map(described, quantisation), strict=True)),
        Strides=[stride] * spatial,
        WindowSize=window,
        StartPadding=[padding] * spatial,
        EndPadding=[padding] * spatial,
        Dilations=[1] * spatial,
    )
    average = getattr(torch.nn.functional, f"avg_pool{spatial}d")

    def is_right() -> bool:
        """In the first and the last planes."""
        for batch in (0, -1):
            part = x[batch, -2:].double()
            total, count = (
                torch.round(average(each, window, stride, padding) * prod(window))
                for each in (part, torch.ones_like(part))
            )
            scales = float(np.float32(INPUT_SCALE)), float(np.float32(OUTPUT_SCALE))
            q = torch.round(((total - INPUT_ZERO_POINT * count) * scales[0]) / (count * scales[1]))
            if not torch.equal((q + OUTPUT_ZERO_POINT).clamp(0, 255).to(torch.uint8), y[batch, -2:]):
                return False
        return True

    name = f"pooling {shape} window {window} stride {stride} padding {padding}"
    return Work(name, limit, [x, *quantisation], y, desc, None, is_right)


def every(place: Any) -> Iterator[Work]:
    for operation, dtype in (
        ("sum", torch.float32),
        ("sum", torch.float16),
        ("sum", torch.int32),
        ("sum", torch.int64),
        ("product", torch.float32),
        ("product", torch.int64),
    ):
        for shape, axis, half, other in SCANS:
            yield scan(place, shape, axis, dtype, half if dtype == torch.float16 else other, operation)
    for shapes, axis, dtype, limit in JOINS:
        yield join(place, shapes, axis, dtype, limit)
    for shape, window, stride, padding, limit in POOLS:
        yield pool(place, shape, window, stride, padding, limit)


def main(name: str) -> None:
    device = Device(name)
    place = device.memory.device  # type: ignore[attr-defined]
    versions = f"anydml {anydml.__version__}, PyTorch {torch.__version__}, Triton {triton.__version__}"
    print(f"{torch.cuda.get_device_name(place)}, {versions}")
    print("Made by `python benchmarks/gpu.py`. Times as ratios to a copy on the device of as many bytes.\n")
    print(f"{'anydml':>7} {'limit':>6} {'torch':>7} {'copy GB/s':>10}")
    for work in every(place):
        compiled = device.compile_operator(device.create_operator(work.desc))
        work.output.view(torch.uint8).fill_(0xA5)
        compiled.dispatch(work.inputs, [work.output])
        right = work.is_right()
        size = sum(each.nbytes for each in (*work.inputs, work.output)) // 2
        source, target = (torch.empty(size, dtype=torch.uint8, device=place) for _ in range(2))
        # A copy before and one after, as the clock of memory changes.
        copies = [milliseconds(lambda target=target, source=source: target.copy_(source))]
        ours = milliseconds(lambda work=work, compiled=compiled: compiled.dispatch(work.inputs, [work.output]))
        copies.append(milliseconds(lambda target=target, source=source: target.copy_(source)))
        copy = statistics.mean(copies)
        theirs = "" if work.torch is None else f"{milliseconds(work.torch, 5) / copy:.2f}"
        verdict = "WRONG" if not right else "MISS" if ours / copy > work.limit else ""
        row = f"{ours / copy:7.2f} {work.limit:6.2f} {theirs:>7} {2 * size / copy / 1e6:10.0f}  {work.name}  {verdict}"
        print(row.rstrip(), flush=True)
        del work, compiled, source, target
        torch.cuda.empty_cache()


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "cuda")
