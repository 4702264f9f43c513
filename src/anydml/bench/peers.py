"""The libraries beside which the operators are measured, as far as they are installed; here those of the CPU."""

from __future__ import annotations

import contextlib
import os
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any, ClassVar

import numpy as np

from ..core.strided_layout import Array
from ..device import Device
from ..functions.pooling import quantized_linear_average_pooling
from .cases import (
    GAP,
    INPUT_SCALE,
    INPUT_ZERO_POINT,
    OUTPUT_SCALE,
    OUTPUT_ZERO_POINT,
    Case,
    Join,
    Pooling,
    Scan,
    Work,
)
from .computation import Computation, are_close
from .computation_peers import NOTHING, function_of, function_peer, node_peer
from .element_wise import ElementWise, are_near
from .element_wise_peers import element_wise_peer
from .operations import Operation
from .peer import Absent, Peer, calling
from .places import UFUNCS, Host
from .sessions import session

_ROUGH_UNITS = {"float32": 2.0**13, "float16": 2.0**5}
"""Of the last place of the largest result: how far sums of products may be off that are rounded otherwise."""
_ROUGHLY = 1e-3
"""How far a function may be off whose error is told: such libraries count, too."""


class Peers(ABC):
    """What is there of a device's libraries, loaded once."""

    names: ClassVar[tuple[str, ...]]

    def __init__(self, threads: int) -> None:
        self.threads = threads
        """0 on a GPU."""
        self.modules: dict[str, Any] = {}
        self.versions: dict[str, str] = {}
        self.absent: dict[str, str] = {}
        self.tell: Callable[[str], None] = lambda text: None
        """Takes what a library is at, where that takes long."""
        for name in self.names:
            try:
                self.modules[name] = self._load(name)
            except Exception as problem:  # an installed library may fail in any way when it is loaded
                self.absent[name] = _reason(problem)

    def _load(self, name: str) -> Any:
        module: Any = import_module(name)
        if name == "jax":
            module.config.update("jax_enable_x64", True)
        self.versions[name] = module.__version__
        return module

    def of(self, case: Case, work: Work, device: Device) -> Iterator[tuple[str, Peer | str]]:
        """Each peer, or why it is not measured: it has no kernel, or computes something else.

        Peers write into the row's output, or into memory of their own where they only can so.
        """
        makers: dict[type, Any] = {Scan: self._scan, Join: self._join, Pooling: self._pooling}
        makers |= {ElementWise: self._element_wise, Computation: self._computation}
        make = makers.get(type(case), self._tabled)
        place = work.place
        work.compiled.dispatch(work.inputs, work.outputs)
        ours = place.copy(work.output)
        for name in self.modules:
            peer: Peer | None = None
            place.release()
            try:
                peer = make(name, case, work, ours, device)
                if not place.is_host:
                    peer.run()  # what is loaded and compiled then shall not count as slow
                place.poison(work.output, 0xA5)
                peer = peer._replace(seconds=place.seconds(peer.run))
                wrong = _wrong(case, work, peer)
                if work.error is not None and not wrong:
                    peer = peer._replace(error=work.error(peer.result()))
            except Absent as problem:
                yield name, str(problem)
            except place.no_memory:
                yield name, "no room for what it needs beside the row's tensors"
            except Exception as problem:  # no kernel for the type, or another reason: peers raise what they like
                yield name, f"no kernel: {_reason(problem)}"
            else:
                yield name, f"not counted, its result is wrong: {wrong}" if wrong else peer

    @abstractmethod
    def _scan(self, name: str, case: Scan, work: Work, ours: Any, device: Device) -> Peer: ...

    @abstractmethod
    def _join(self, name: str, case: Join, work: Work, ours: Any, device: Device) -> Peer: ...

    @abstractmethod
    def _pooling(self, name: str, case: Pooling, work: Work, ours: Any, device: Device) -> Peer: ...

    @abstractmethod
    def _element_wise(self, name: str, case: ElementWise, work: Work, ours: Any, device: Device) -> Peer: ...

    @abstractmethod
    def _computation(self, name: str, case: Computation, work: Work, ours: Any, device: Device) -> Peer: ...

    @abstractmethod
    def _tabled(self, name: str, case: Case, work: Work, ours: Any, device: Device) -> Peer:
        """By the function that the row's own table has."""

    # JAX, which is asked alike everywhere

    @abstractmethod
    def _to_jax(self, array: Any) -> Any: ...

    @abstractmethod
    def _from_jax(self, array: Any) -> Any: ...

    def _await_jax(self, array: Any) -> Any:
        return array.block_until_ready()

    def _jax_scan(self, case: Scan, x: Any, ours: Any) -> Peer:
        """Strided input as a view that the compiler sees, of the packed memory that holds it."""
        if case.exclusive:
            raise Absent("no option for exclusive")
        jax: Any = self.modules["jax"]
        function = jax.lax.cumsum if case.operator == "CUMULATIVE_SUMMATION" else jax.lax.cumprod
        packed, order = x, tuple(reversed(range(x.ndim)))
        if case.layout == "transposed":
            packed = x.transpose(order)
        elif case.layout == "gapped" and x.base is not None:
            packed = x.base

        def scan(given: Any) -> Any:
            if case.layout == "transposed":
                given = given.transpose(order)
            elif case.layout == "gapped":
                given = given[..., :-GAP]
            return function(given, axis=case.axis, reverse=case.decreasing)

        return self._compiled(scan, [packed], ours)

    def _jax_join(self, pieces: list[Any], ours: Any) -> Peer:
        jax: Any = self.modules["jax"]
        return self._compiled(lambda *arrays: jax.numpy.concatenate(arrays, -1), pieces, ours)

    def _compiled(self, function: Callable[..., Any], inputs: list[Any], ours: Any) -> Peer:
        """What gives out new memory at each run."""
        jax: Any = self.modules["jax"]
        arrays = [self._to_jax(each) for each in inputs]
        compiled = jax.jit(function)
        last: list[Any] = [compiled(*arrays).block_until_ready()]

        def run() -> Any:
            # What was computed before makes room first, as another's output would be written over.
            last.clear()
            last.append(self._await_jax(compiled(*arrays)))
            return last[0]

        return Peer(run, lambda: self._from_jax(last[0]), ours)


class HostPeers(Peers):
    """Of the CPU."""

    names = ("numpy", "torch", "onnxruntime", "jax")

    def _load(self, name: str) -> Any:
        if name == "onnxruntime":
            import_module("onnx")
        if name == "jax":
            # What its runtime, once loaded, takes for the number of processors.
            os.environ["NPROC"] = os.environ["PJRT_NPROC"] = str(self.threads)
        module = super()._load(name)
        if name == "torch":
            module.set_num_threads(self.threads)
        if name == "jax":
            # Where it has a GPU, it would compute there, and the CPU see but the call.
            module.config.update("jax_platforms", "cpu")
        return module

    def _to_jax(self, array: Any) -> Any:
        return self.modules["jax"].numpy.asarray(array)

    def _from_jax(self, array: Any) -> Any:
        return np.asarray(array)

    def _scan(self, name: str, case: Scan, work: Work, ours: Array, device: Device) -> Peer:
        x, output, axis = work.inputs[0], work.output, case.axis
        summing = case.operator == "CUMULATIVE_SUMMATION"
        given, out = x, output
        if case.decreasing:
            given, out = np.flip(x, axis), np.flip(output, axis)
        if case.exclusive:
            given, out = (array.swapaxes(0, axis) for array in (given, out))
            given, out, first = (array.swapaxes(0, axis) for array in (given[:-1], out[1:], out[:1]))
        if name == "numpy":
            ufunc = UFUNCS[case.operator]

            def accumulate() -> None:
                ufunc.accumulate(given, axis=axis, dtype=x.dtype, out=out)
                if case.exclusive:
                    first[...] = ufunc.identity

            return Peer(accumulate, lambda: output, ours)
        if name == "torch":
            torch = self.modules["torch"]
            if case.decreasing:
                raise Absent("no tensors with negative strides, and no option for the direction")
            function = torch.cumsum if summing else torch.cumprod
            tensor, target = torch.from_numpy(given), torch.from_numpy(out)

            def cumulate() -> None:
                function(tensor, axis, dtype=tensor.dtype, out=target)
                if case.exclusive:
                    first[...] = 0 if summing else 1

            return Peer(cumulate, lambda: output, ours)
        if name == "jax":
            return self._jax_scan(case, x, ours)
        if not summing:
            raise Absent("no cumulative product in ONNX")
        if not x.flags.c_contiguous:
            raise Absent("takes packed arrays only")
        options = {"exclusive": int(case.exclusive), "reverse": int(case.decreasing)}
        return self._session("CumSum", [x], output, ours, {"a": np.array(axis, np.int64)}, options)

    def _join(self, name: str, case: Join, work: Work, ours: Array, device: Device) -> Peer:
        pieces, output = work.inputs, work.output
        if name == "numpy":
            return Peer(lambda: np.concatenate(pieces, 1, out=output), lambda: output, ours)
        if name == "torch":
            torch = self.modules["torch"]
            given, out = [torch.from_numpy(piece) for piece in pieces], torch.from_numpy(output)
            return Peer(lambda: torch.cat(given, 1, out=out), lambda: output, ours)
        if name == "jax":
            return self._jax_join(pieces, ours)
        return self._session("Concat", pieces, output, ours, {}, {"axis": 1})

    def _pooling(self, name: str, case: Pooling, work: Work, ours: Array, device: Device) -> Peer:
        x = work.inputs[0]
        spatial = x.ndim - 2
        window, stride, padding = ([value] * spatial for value in (case.window, case.stride, case.padding))
        if name in ("numpy", "jax"):
            raise Absent("no quantised pooling")
        if case.per_channel:
            raise Absent("no quantisation per channel in its average pooling")
        if case.dilation > 1:
            raise Absent("no dilation in its quantised average pooling")
        if name == "torch":
            torch = self.modules["torch"]
            with warnings.catch_warnings():
                # That quantised tensors will leave PyTorch concerns no one here.
                warnings.filterwarnings("ignore", r"torch\.quantize_per_tensor", UserWarning)
                quantised = torch._make_per_tensor_quantized_tensor(torch.from_numpy(x), INPUT_SCALE, INPUT_ZERO_POINT)
            pool = getattr(torch.ao.nn.quantized.functional, f"avg_pool{spatial}d")
            last: list[Any] = []

            def run() -> None:
                last.clear()
                last.append(pool(quantised, window, stride, padding, count_include_pad=case.include_padding))

            # Its output is quantised as its input is.
            like_input = quantized_linear_average_pooling(
                x,
                INPUT_SCALE,
                INPUT_ZERO_POINT,
                output_scale=INPUT_SCALE,
                output_zero_point=INPUT_ZERO_POINT,
                window_size=window,
                strides=stride,
                start_padding=padding,
                end_padding=padding,
                include_padding=case.include_padding,
                device=device,
            )
            return Peer(run, lambda: last[0].int_repr().numpy(), like_input)
        scalars = {
            "xs": np.float32(INPUT_SCALE),
            "xz": x.dtype.type(INPUT_ZERO_POINT),
            "ys": np.float32(OUTPUT_SCALE),
            "yz": x.dtype.type(OUTPUT_ZERO_POINT),
        }
        options = {
            "kernel_shape": window,
            "strides": stride,
            "pads": padding * 2,
            "count_include_pad": int(case.include_padding),
        }
        constants = {key: np.asarray(value) for key, value in scalars.items()}
        return self._session("QLinearAveragePool", [x], work.output, ours, constants, options, "com.microsoft")

    def _element_wise(self, name: str, case: ElementWise, work: Work, ours: Array, device: Device) -> Peer:
        return element_wise_peer(self.modules[name], self._session, name, case, work, ours)

    def _computation(self, name: str, case: Computation, work: Work, ours: Array, device: Device) -> Peer:
        if name == "onnxruntime":
            return node_peer(self._session, work, ours)
        module = self.modules[name]
        of = module.from_numpy if name == "torch" else lambda array: array
        return function_peer(function_of(module, name, work, of), work, ours, np.asarray)

    def _tabled(self, name: str, case: Case, work: Work, ours: Array, device: Device) -> Peer:
        node = case.line.node if isinstance(case, Operation) else None
        if name == "onnxruntime" and node is not None:
            operator, options = node
            return self._session(operator, work.inputs, work.output, ours, {}, dict(options))
        function = work.functions.get(name)
        if function is None:
            raise Absent(NOTHING)
        module = self.modules[name]
        arrays = [*work.inputs, *work.outputs]
        if name == "torch":
            arrays = [module.from_numpy(array) for array in arrays]
        return calling(lambda: function(module, *arrays), work.output, ours, np.asarray)

    def _session(
        self,
        operator: str,
        inputs: list[Array],
        output: Array,
        ours: Array,
        constants: dict[str, Array],
        options: Mapping[str, Any],
        domain: str = "",
        order: Sequence[str] = (),
        outputs: int = 1,
    ) -> Peer:
        given = inputs, output, constants, options, domain, order, outputs
        return Peer(session(self.modules["onnxruntime"], self.threads, operator, *given), lambda: output, ours)


def _wrong(case: Case, work: Work, peer: Peer) -> str:
    """What a peer computed otherwise than we, beyond rounding; "" if nothing.

    Sums and products of the floats in `cases.py` are exact in any order. In pooling, the order of a formula's
    operations decides about what lies halfway between two integers.
    """
    result, expected, place = peer.result(), peer.expected, work.place
    if not isinstance(case, (Scan, Join, Pooling)):
        result, expected, place = place.numpy(result), place.numpy(expected), Host()
    if result.shape != expected.shape or result.dtype != expected.dtype:
        return f"{result.dtype} of shape {tuple(result.shape)}"
    if isinstance(case, Computation):
        if result.dtype.kind in "iu" and work.computation[0].may_be_one_off:
            return "" if place.most_apart(result, expected) <= 1 else "other numbers"
        return "" if are_close(result, expected, _ROUGH_UNITS) else "other numbers"
    if isinstance(case, Pooling):
        most = place.most_apart(result, expected)
        return f"up to {most} off" if most > 1 else ""
    if isinstance(case, ElementWise):
        is_right = are_near(result, expected, _ROUGHLY if work.error is not None else 0)
    elif isinstance(case, Operation) and case.line.is_rounded and case.dtype == "uint8":
        is_right = place.most_apart(result, expected) <= 1  # of interpolation in fixed-point numbers
    elif isinstance(case, Operation) and case.is_rounded:
        is_right = are_near(result, expected, _ROUGHLY)
    else:
        is_right = place.are_same(result, expected)
    return "" if is_right else "other numbers"


def _reason(problem: Exception) -> str:
    """Of what another library says, what fits in a line."""
    text = " ".join(str(problem).split()) or type(problem).__name__
    return text if len(text) <= 160 else f"{text[:157]}..."


def processor() -> str:
    """The processor's name, as the system gives it."""
    import platform

    with contextlib.suppress(OSError), open("/proc/cpuinfo", encoding="utf-8") as file:
        for line in file:
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def cores() -> int:
    """Those that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
