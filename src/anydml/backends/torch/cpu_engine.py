"""The engine of PyTorch's calls on the CPU, for what is large enough to pay for them, and for PyTorch's loading."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import cache, partial
from importlib.util import find_spec
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.enums import ConvolutionDirection, MatrixTransform
from ...core.strided_layout import Array, Layout
from ...operators.schema import OperatorDesc, OperatorSpec
from ..base import BindableRun, Declined, Kernel, Run
from . import lowering as calls

if TYPE_CHECKING:
    from . import prepack as packed


def _of_convolution(desc: Any) -> int:
    """Each element of what the filter's taps are counted from, times the taps, times the channels of a group."""
    is_forward = desc.Direction == ConvolutionDirection.FORWARD
    counted = desc.OutputTensor if is_forward else desc.InputTensor
    return int(prod(counted.Sizes) * prod(desc.FilterTensor.Sizes[1:]))


def _of_gemm(desc: Any) -> int:
    inner = -2 if desc.TransA == MatrixTransform.TRANSPOSE else -1
    return int(prod(desc.OutputTensor.Sizes) * desc.ATensor.Sizes[inner])


def _elements(desc: Any) -> int:
    return prod(desc.InputTensor.Sizes)


_SERVED: dict[str, tuple[Callable[[Any], int], str, int]] = {
    "CONVOLUTION": (_of_convolution, "multiplications", 1 << 16),
    "GEMM": (_of_gemm, "multiplications", 1 << 20),
    "BATCH_NORMALIZATION": (_elements, "elements", 1 << 13),
    **dict.fromkeys(("MEAN_VARIANCE_NORMALIZATION", "MEAN_VARIANCE_NORMALIZATION1"), (_elements, "elements", 1 << 17)),
    **dict.fromkeys(("MAX_POOLING", "MAX_POOLING1", "MAX_POOLING2"), (_elements, "elements", 1 << 14)),
}
"""How much work it is, in which words, and how much from which on PyTorch is faster than the reference."""


class TorchEngine:
    name = "torch"
    fuses_pointwise = False

    def compile(
        self,
        spec: OperatorSpec,
        desc: OperatorDesc,
        inputs: Sequence[Layout | None],
        outputs: Sequence[Layout | None],
    ) -> Kernel | Declined:
        if spec.name not in _SERVED:
            return Declined(f"it serves {', '.join(_SERVED)} alone")
        counted, what, large = _SERVED[spec.name]
        count = counted(desc)
        if count < large:
            return Declined(f"{count} {what}, fewer than the {large} from which on PyTorch is faster")
        reason = missing()
        if reason:
            return Declined(reason)
        plan = calls.plan(spec, desc, inputs, outputs)
        if isinstance(plan, Declined):
            return plan
        run = _on_arrays(plan.run)
        if spec.name != "CONVOLUTION":
            return Kernel(plan.description, run)
        return _convolution(plan.description, run, desc, inputs, outputs)


def _convolution(
    description: str, run: Run, desc: Any, inputs: Sequence[Layout | None], outputs: Sequence[Layout | None]
) -> Kernel:
    from . import prepack as packed

    if not packed.is_served(desc):
        return Kernel(f"{description}; {packed.missing() or 'no filter of this kind is prepared'}", run)
    x, y = inputs[0], outputs[0]
    assert x is not None and y is not None
    planned = packed.prepares(desc, x, y)
    if planned is None:
        return Kernel(f"{description}; a filter is prepared where channels lie last", run, channels_last=True)

    def prepare(fixed: Sequence[Array | None]) -> Run | None:
        found: list[packed.Packed | None] = []
        calls.guarded("CONVOLUTION", lambda: found.append(planned(_tensors(fixed))))()
        return None if found[0] is None else _OnTensors("CONVOLUTION", found[0])

    return Kernel(f"{description}; a filter that stays is prepared once", run, prepare=prepare, channels_last=True)


class _OnTensors(BindableRun):
    """What is bound to PyTorch's tensors, on NumPy's arrays."""

    def __init__(self, name: str, prepared: packed.Packed) -> None:
        self._name = name
        self._bind, self.size = prepared
        self._run = _on_arrays(calls.guarded(name, lambda read, written: prepared.bind(read, written)()))

    def __call__(self, inputs: Sequence[Array | None], outputs: Sequence[Array | None]) -> None:
        self._run(inputs, outputs)

    def bound(self, inputs: Sequence[Array | None], outputs: Sequence[Array | None]) -> Callable[[], None]:
        if not all(each is None or each.flags.aligned for each in (*inputs, *outputs)):
            return partial(self._run, inputs, outputs)
        return calls.guarded(self._name, self._bind(_tensors(inputs), _tensors(outputs)))


def _on_arrays(run: calls.Run) -> Run:
    """A run of PyTorch's tensors as one of NumPy's arrays."""
    import torch

    def on_arrays(inputs: Sequence[Array | None], outputs: Sequence[Array | None]) -> None:
        # PyTorch wants elements at multiples of their size.
        places = [each if each is None or each.flags.aligned else np.empty_like(each) for each in outputs]
        run(_tensors(inputs), [None if each is None else torch.from_numpy(each) for each in places])
        for place, output in zip(places, outputs, strict=True):
            if place is not output and output is not None:
                output[...] = place

    return on_arrays


def _tensors(arrays: Sequence[Array | None]) -> calls.Tensors:
    import torch

    return [None if each is None else torch.from_numpy(_plain(each)) for each in arrays]


class _Writeable:
    """An array's memory, said to be writeable: PyTorch knows no other, and warns of all others."""

    def __init__(self, array: Array) -> None:
        self._array = array
        interface = array.__array_interface__
        self.__array_interface__ = {**interface, "data": (interface["data"][0], False)}


def _plain(x: Array) -> Array:
    """An input as PyTorch takes it, with no copy but of what is not aligned."""
    if not x.flags.aligned:
        return x.copy()
    return x if x.flags.writeable else np.asarray(_Writeable(x))


@cache
def missing() -> str:
    """Why PyTorch cannot be used; nothing where it can."""
    if find_spec("torch") is None:
        return "PyTorch is not installed: pip install 'anydml[gpu]'"
    try:
        import torch
    except Exception as problem:  # a broken installation raises what it likes
        return f"PyTorch cannot be loaded: {' '.join(str(problem).split())}"
    if hasattr(os, "register_at_fork"):
        # The threads of its library are not there in a forked child, which would wait for them.
        os.register_at_fork(after_in_child=lambda: torch.set_num_threads(1))
    return ""
