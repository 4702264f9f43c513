"""The libraries beside which the operators are measured on a GPU.

All take the row's tensors as they lie; those that have ``out=`` write into its output.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from ..device import Device
from .cases import INPUT_SCALE, INPUT_ZERO_POINT, OUTPUT_SCALE, OUTPUT_ZERO_POINT, Case, Join, Pooling, Scan, Work
from .computation import Computation
from .computation_peers import NOTHING, function_of, function_peer
from .element_wise import ElementWise
from .element_wise_peers import functions_of, in_turn, with_truth_values
from .peer import Absent, Peer, calling
from .peers import Peers
from .places import Place

_OF_ANY_TENSORS = ("torch", "torch.compile")
_NOT_ASKED = "asked for scans and joins alone"


class GpuPeers(Peers):
    names = ("torch", "torch.compile", "cupy", "jax")

    def __init__(self, place: Place) -> None:
        self._place = place
        super().__init__(threads=0)

    def _load(self, name: str) -> Any:
        if name == "torch.compile":
            return self.modules["torch"]
        if name == "jax":
            # Else it takes three quarters of the device's memory at once.
            os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
        module = super()._load(name)
        if name in ("cupy", "jax"):
            # What is installed without its part for this device cannot look at a tensor there.
            self._given(module, self._place.empty((1,), "int32"))
        return module

    def of(self, case: Case, work: Work, device: Device) -> Any:
        try:
            yield from super().of(case, work, device)
        finally:
            if hasattr(self.modules.get("cupy"), "get_default_memory_pool"):
                self.modules["cupy"].get_default_memory_pool().free_all_blocks()

    def _scan(self, name: str, case: Scan, work: Work, ours: Any, device: Device) -> Peer:
        (x,), y, axis = work.inputs, work.output, case.axis
        word = "cumsum" if case.operator == "CUMULATIVE_SUMMATION" else "cumprod"
        if name == "jax":
            return self._jax_scan(case, x, ours)
        function = getattr(self.modules[name], word)
        if name == "torch.compile":
            return self._inductor(lambda x: function(x, axis, dtype=x.dtype), [x], ours)
        given, out = (self._given(self.modules[name], each) for each in (x, y))
        return Peer(lambda: function(given, axis, dtype=given.dtype, out=out), lambda: y, ours)

    def _join(self, name: str, case: Join, work: Work, ours: Any, device: Device) -> Peer:
        pieces, y = work.inputs, work.output
        module = self.modules[name]
        if name == "jax":
            return self._jax_join(pieces, ours)
        if name == "torch.compile":
            return self._inductor(lambda *pieces: module.cat(pieces, -1), pieces, ours)
        given, out = [self._given(module, piece) for piece in pieces], self._given(module, y)
        function = module.cat if name == "torch" else module.concatenate
        return Peer(lambda: function(given, -1, out=out), lambda: y, ours)

    def _pooling(self, name: str, case: Pooling, work: Work, ours: Any, device: Device) -> Peer:
        """In float, from the quantised values and to them, as no library has it quantised."""
        if name in ("cupy", "jax"):
            raise Absent("no quantised pooling")
        torch, x = self.modules["torch"], work.inputs[0]
        average = getattr(torch.nn.functional, f"avg_pool{x.ndim - 2}d")
        limits = torch.iinfo(x.dtype)
        options = {"stride": case.stride, "padding": case.padding, "count_include_pad": case.include_padding}

        def pool(x: Any) -> Any:
            values = (x.float() - INPUT_ZERO_POINT) * INPUT_SCALE
            steps = torch.round(average(values, case.window, **options) / OUTPUT_SCALE) + OUTPUT_ZERO_POINT
            return steps.clamp(limits.min, limits.max).to(x.dtype)

        return self._inductor(pool, [x], ours) if name == "torch.compile" else self._new(pool, [x], ours)

    def _element_wise(self, name: str, case: ElementWise, work: Work, ours: Any, device: Device) -> Peer:
        """The library's function for each operator, one after the other; those of its compiler in one."""
        torch = self.modules["torch"]
        if name not in _OF_ANY_TENSORS:
            raise Absent(_NOT_ASKED)
        functions = functions_of(case, "torch", torch)
        arrays = with_truth_values(case, [*work.inputs, work.output], torch.bool)
        given, output = arrays[:-1], arrays[-1]

        def outputs() -> list[Any]:
            types = [getattr(torch, dtype.name) for *_, dtype in functions]
            return [torch.empty(output.shape, dtype=dtype, device=output.device) for dtype in types]

        if name == "torch.compile":
            peer = self._inductor(lambda *given: in_turn(functions, given, outputs()), given, ours)
        else:
            kept = [*outputs()[:-1], output]
            peer = self._new(lambda *given: in_turn(functions, given, kept), given, ours)
        return peer._replace(result=lambda: peer.result().view(ours.dtype))

    def _computation(self, name: str, case: Computation, work: Work, ours: Any, device: Device) -> Peer:
        if name not in _OF_ANY_TENSORS:
            raise Absent(_NOT_ASKED)
        torch = self.modules["torch"]
        compute = function_of(torch, "torch", work, lambda array: array)
        if name == "torch.compile":
            compute = self._compiled_by_torch(compute)
        return function_peer(compute, work, ours, lambda found: found)

    def _tabled(self, name: str, case: Case, work: Work, ours: Any, device: Device) -> Peer:
        if name not in _OF_ANY_TENSORS:
            raise Absent(_NOT_ASKED)
        torch, function = self.modules["torch"], work.functions.get("torch")
        if function is None:
            raise Absent(NOTHING)
        arrays = [*work.inputs, *work.outputs]
        call = self._compiled_by_torch(function) if name == "torch.compile" else function
        return calling(lambda: call(torch, *arrays), work.output, ours, lambda found: found)

    def _compiled_by_torch(self, function: Callable[..., Any]) -> Callable[..., Any]:
        torch = self.modules["torch"]
        self.tell("torch.compile compiles")
        torch._dynamo.reset()  # after some functions of the same code it would no longer compile
        compiled: Callable[..., Any] = torch.compile(function, dynamic=False, fullgraph=True)
        return compiled

    def _inductor(self, function: Callable[..., Any], inputs: list[Any], ours: Any) -> Peer:
        return self._new(self._compiled_by_torch(function), inputs, ours)

    @staticmethod
    def _new(function: Callable[..., Any], inputs: list[Any], ours: Any) -> Peer:
        """What gives out new memory at each run."""
        last: list[Any] = []

        def run() -> None:
            last.clear()
            last.append(function(*inputs))

        return Peer(run, lambda: last[0], ours)

    @staticmethod
    def _given(module: Any, tensor: Any) -> Any:
        """The tensor as that library's array, on the same memory."""
        if module.__name__ == "torch":
            return tensor
        return getattr(module, "numpy", module).from_dlpack(tensor)

    def _to_jax(self, array: Any) -> Any:
        return self._given(self.modules["jax"], array)

    def _from_jax(self, array: Any) -> Any:
        return self.modules["torch"].from_dlpack(array)

    def _await_jax(self, array: Any) -> Any:
        """It runs on a stream of its own, and is waited for where time is taken."""
        return array
