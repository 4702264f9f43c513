"""Convolutions of SqueezeNet and MobileNet by the libraries that could serve them, on one thread, in microseconds.

    python benchmarks/convolutions.py

The filter and the bias stay, the activation is RELU, and the result goes where it is wanted. CPU time is counted, by
turns, of which the smallest is told.
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import platform
import time
from collections.abc import Callable

import numpy as np
import torch
from numpy.lib.stride_tricks import sliding_window_view

CASES = (
    (3, 64, 224, 3, 2, 0, 1),
    (16, 64, 55, 3, 1, 1, 1),
    (64, 256, 13, 3, 1, 1, 1),
    (512, 1000, 13, 1, 1, 0, 1),
    (16, 96, 112, 1, 1, 0, 1),
    (64, 384, 28, 1, 1, 0, 1),
    (384, 64, 28, 1, 1, 0, 1),
    (160, 960, 7, 1, 1, 0, 1),
    (144, 144, 56, 3, 1, 1, 144),
    (384, 384, 28, 3, 1, 1, 384),
)
"""Channels of input and output, height and width, taps, stride, padding, groups."""

Runs = dict[str, Callable[[], object]]


def by_numpy(
    x: np.ndarray, w: np.ndarray, bias: np.ndarray, stride: int, pad: int, y: np.ndarray
) -> Callable[[], object]:
    """A matrix of what lies under the window at each place, times the filter."""
    rows, column = w.reshape(len(w), -1), bias[:, None]

    def run() -> None:
        padded = np.pad(x[0], [(0, 0), (pad, pad), (pad, pad)]) if pad else x[0]
        windows = sliding_window_view(padded, w.shape[2:], (1, 2))[:, ::stride, ::stride]
        columns = windows.transpose(0, 3, 4, 1, 2).reshape(rows.shape[1], -1)
        np.maximum(rows @ columns + column, 0, out=y.reshape(len(w), -1))

    return run


def candidates(c: int, k: int, size: int, taps: int, stride: int, pad: int, groups: int) -> Runs:
    rng = np.random.default_rng(0)
    x, w, bias = (
        rng.standard_normal(sizes, np.float32) for sizes in ((1, c, size, size), (k, c // groups, taps, taps), (k,))
    )
    found = torch.relu(torch.conv2d(*map(torch.from_numpy, (x, w, bias)), stride, pad, 1, groups))
    first, last = found.clone(), found.contiguous(memory_format=torch.channels_last)
    x1, w1, b1 = map(torch.from_numpy, (x, w, bias))
    x2 = x1.contiguous(memory_format=torch.channels_last)
    numbers = [pad, pad], [stride, stride], [1, 1], groups
    filters = torch.ops.mkldnn._reorder_convolution_weight(w1, *numbers, list(x.shape))
    pointwise = torch.ops.mkldnn._convolution_pointwise.default
    runs: Runs = {
        "oneDNN": lambda: torch.clamp(torch.conv2d(x1, w1, b1, stride, pad, 1, groups), min=0, out=first),
        "oneDNN, prepared": lambda: torch.clamp(pointwise(x2, filters, b1, *numbers, "none", [], ""), min=0, out=last),
    }
    if groups == 1:
        runs["OpenBLAS, im2col"] = by_numpy(x, w, bias, stride, pad, np.empty(found.shape, np.float32))
    if taps == stride == 1:
        matrix, result = (each.permute(0, 2, 3, 1).flatten(0, 2) for each in (x2, last))
        columns = w1.flatten(1).T.contiguous()
        runs["MKL, in place"] = lambda: torch.addmm(b1, matrix, columns, out=result).clamp_(min=0)
    return runs


def microseconds(runs: Runs, rounds: int = 40) -> dict[str, float]:
    times: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(rounds):
        for name, run in runs.items():
            begin = time.thread_time()
            run()
            times[name].append(time.thread_time() - begin)
    return {name: min(each[2:]) * 1e6 for name, each in times.items()}


def main() -> None:
    torch.set_num_threads(1)
    print(f"{platform.platform()}, NumPy {np.__version__}, PyTorch {torch.__version__}")
    names = "OpenBLAS, im2col", "oneDNN", "oneDNN, prepared", "MKL, in place"
    print(f"{'channels, size, taps, stride, groups':40}{''.join(f'{name:>18}' for name in names)}")
    with torch.inference_mode():
        for case in CASES:
            c, k, size, taps, stride, _, groups = case
            found = microseconds(candidates(*case))
            figures = "".join(f"{found[name]:18.0f}" if name in found else f"{'-':>18}" for name in names)
            print(f"{f'{c} to {k}, {size}, {taps}, {stride}, {groups}':40}{figures}")


if __name__ == "__main__":
    main()
