"""Compiles kernels for an NVIDIA GPU on a machine without one: the interpreter cannot tell what a compiler refuses.

A script, as Triton decides when it is loaded whether it interprets.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import torch
import triton
from triton.backends.compiler import GPUTarget

import anydml
from anydml import DML_BUFFER_TENSOR_DESC, TensorDataType
from anydml.backends.triton.engine import KERNELS
from anydml.backends.triton.launch import Launch
from anydml.backends.triton.movement import plan as movement
from anydml.backends.triton.normalization import lines
from anydml.backends.triton.pooling import gradient
from anydml.backends.triton.reduction import plan as reduction
from anydml.backends.triton.scan import plan as scan
from anydml.draw import EXAMPLES
from anydml.graph.ir import with_channels_last
from cases import all_cases, some_of_each


class Driver:
    """Of a GPU that is not there."""

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, device: int) -> int:
        return 0

    def get_current_target(self) -> GPUTarget:
        return GPUTarget("cuda", 90, 32)


FEW = (
    *(".reduction.plan", ".normalization.lines", ".movement.plan", ".movement.placed", ".movement.scattered"),
    *(
        ".pointwise.counted",
        ".pooling.gradient",
        ".pooling.plan",
        ".quantizing.blocks",
        ".quantizing.plan",
        ".selection.plan",
        ".regions.gradient",
        ".regions.plan",
        ".resampling.plan",
        ".training.plan",
    ),
    ".windows.local",
    ".windows.plan",
)
"""Modules of which one case of each operator is enough."""

compiled: list[str] = []


def compile_only(launch: Launch, *tensors: torch.Tensor | None, arguments: Any = None) -> None:
    arguments = launch._arguments if arguments is None else arguments
    pointers = launch.pointers(tensors)
    launch._kernel.warmup(*pointers, *arguments, grid=(1,), **launch._constants, **launch._options)
    compiled.append(launch._kernel.__name__)


SHAPES = (((3, 70), 1), ((3, 601), 1), ((2, 40, 64), 1), ((90, 17), 0), ((90, 5), 0), ((90, 3), 0), ((9,), 0))
"""Of scans, and the axis: those of few columns have kernels of their own."""


def scans(alike: tuple[tuple[int, ...], ...]) -> None:
    """In every mode, but for shapes whose kernels another one has in every mode, with other sizes of tiles alone: these
    as a sum and a product of each type, one plain, one reversed and exclusive."""
    for (shape, axis), reverse, exclusive in product(SHAPES, (False, True), (False, True)):
        for dtype in (np.float32, np.float16, np.int64):
            x = torch.from_numpy(np.ones(shape, dtype))
            mode = {"reverse": reverse, "exclusive": exclusive, "device": "cuda"}
            if shape not in alike or not (reverse or exclusive):
                anydml.cumulative_summation(x, axis, **mode)
            if reverse == exclusive and (shape not in alike or reverse):
                anydml.cumulative_product(x, axis, **mode)


def main() -> None:
    triton.runtime.driver.set_active(Driver())
    anydml.runtime.context.find = lambda name: torch.device("cpu")
    Launch.__call__ = compile_only  # type: ignore[method-assign]
    Launch.compile = lambda launch, device, types: None  # type: ignore[method-assign]
    scans(alike=((90, 3), (9,)))
    # The same shapes as long lines.
    scan.TILE, scan.LONG, scan.DEEP, scan.FEW_PROGRAMS = 8, 4, 4, 10**6
    scan.HELD = dict.fromkeys(scan.HELD, (256, 2))
    scan.SEGMENT = 64
    from anydml.functions._call import _compile
    from anydml.functions._call_cache import CALL_CACHE

    _compile.cache_clear()
    CALL_CACHE.clear()
    scans(alike=((90, 17), (90, 3)))
    for shape, count in (((8, 1), 3), ((4, 100), 2)):
        x = torch.ones(shape)
        anydml.join([x] * count, 1, device="cuda")
        anydml.join([x.mT] * count, 1, device="cuda")
        anydml.join([x.to(torch.uint8)] * count, 1, device="cuda")
    for size, window, stride in product((8, 9), (2, 5), (1, 2, 3)):
        x = torch.ones((1, 2, size, size), dtype=(torch.uint8, torch.int8)[(size + window) % 2])
        options = {"window_size": window, "strides": stride, "start_padding": window // 3, "device": "cuda"}
        anydml.quantized_linear_average_pooling(x, 0.5, 1, output_scale=[0.5, 1.0], **options)
    for sizes, window in (((3, 8, 8), 3), ((2, 9, 1), 1), ((1, 1, 9), 1), ((40, 40), 40), ((200, 300), (200, 300))):
        x = torch.ones((3, 1, *sizes), dtype=torch.uint8)
        anydml.quantized_linear_average_pooling(x, 0.5, output_scale=0.5, window_size=window, device="cuda")
        anydml.quantized_linear_average_pooling(x[::2], 0.5, output_scale=0.5, window_size=window, device="cuda")
    Launch.compile = lambda launch, device, types: compile_only(  # type: ignore[method-assign]
        launch, *[None if dtype is None else torch.empty(1, dtype=dtype) for dtype in types]
    )
    device = anydml.Device("cuda")
    cases = all_cases()
    few = {id(case) for case in some_of_each(cases, 1)}
    for case in cases:
        name = type(case.desc).__name__.removeprefix("DML_").removesuffix("_OPERATOR_DESC")
        module = KERNELS.get(name)
        is_all = module in (".convolution.plan", ".normalization.plan")
        if is_all or (module in FEW and id(case) in few):
            device.compile_operator(device.create_operator(case.desc))
    x, w, bias, y = (
        DML_BUFFER_TENSOR_DESC(DataType=TensorDataType.FLOAT16, Sizes=sizes)
        for sizes in ((1, 3, 6, 6), (4, 3, 1, 1), (1, 4, 1, 1), (1, 4, 6, 6))
    )
    sides = {"InputTensor": with_channels_last(x), "OutputTensor": with_channels_last(y)}
    none = dict.fromkeys(("StartPadding", "EndPadding", "OutputPadding"), (0, 0))
    desc = replace(EXAMPLES["CONVOLUTION"][0], **sides, **none, FilterTensor=w, BiasTensor=bias)
    device.compile_operator(device.create_operator(desc))
    example = EXAMPLES["BATCH_NORMALIZATION"][0]
    sides = {name: with_channels_last(getattr(example, name)) for name in ("InputTensor", "OutputTensor")}
    device.compile_operator(device.create_operator(replace(example, **sides)))
    # Planes that have one window.
    plane, one = (DML_BUFFER_TENSOR_DESC(DataType=x.DataType, Sizes=(2, 3, *sizes)) for sizes in ((5, 7), (1, 1)))
    ends = {"Strides": (1, 1), "WindowSize": (5, 7), "StartPadding": (0, 0), "EndPadding": (0, 0)}
    for name in ("MAX_POOLING_GRAD", "AVERAGE_POOLING_GRAD"):
        read = {"InputTensor": plane, "Dilations": (1, 1)} if name.startswith("MAX") else {"IncludePadding": False}
        desc = anydml.spec(name).desc(InputGradientTensor=one, OutputGradientTensor=plane, **read, **ends)
        device.compile_operator(device.create_operator(desc))
    # Averages of windows that move by several elements.
    places = DML_BUFFER_TENSOR_DESC(DataType=plane.DataType, Sizes=(2, 3, 2, 3))
    apart = {**ends, "Strides": (2, 2), "WindowSize": (2, 2), "IncludePadding": False}
    desc = anydml.spec("AVERAGE_POOLING_GRAD").desc(InputGradientTensor=places, OutputGradientTensor=plane, **apart)
    device.compile_operator(device.create_operator(desc))
    # As if windows over an element were too many to list.
    gradient.UNROLLED = 0
    device.compile_operator(device.create_operator(EXAMPLES["MAX_POOLING_GRAD"][0]))
    # Lines from which some are selected, by a tree of blocks.
    for dtype in (torch.float32, torch.int64):
        anydml.top_k(torch.ones((2, 9000), dtype=dtype), 4, device="cuda")
    # Rows of bytes and halves, and runs of bytes, as if they were long.
    reduction.FEW_ROWS, reduction.LONG_ROW, movement.LARGE = 1, 1, 0
    for dtype in (torch.uint8, torch.float16):
        anydml.reduce(torch.ones((3, 7), dtype=dtype), anydml.ReduceFunction.MAX, axes=[1], device="cuda")
        anydml.padding(torch.ones((3, 77), dtype=dtype), start_padding=[1, 1], end_padding=[0, 40], device="cuda")
    # Lines as if they were too long to be held: in two passes, and read again.
    lines.WHOLE = lines.HELD_MOMENTS = 0
    for name in ("ACTIVATION_SOFTMAX1", "MEAN_VARIANCE_NORMALIZATION1"):
        device.compile_operator(device.create_operator(EXAMPLES[name][0]))
    lines.BUSY = 0
    for name in ("ACTIVATION_SOFTMAX1", "MEAN_VARIANCE_NORMALIZATION1"):
        device.compile_operator(device.create_operator(EXAMPLES[name][0]))
    print(len(compiled), *sorted(set(compiled)))


if __name__ == "__main__":
    sys.exit(main())
