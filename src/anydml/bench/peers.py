"""The libraries beside which the operators are measured, as far as they are installed."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from ..layout import Array
from .cases import Case, Join, Pooling, Scan, Work

PEERS = ("numpy", "torch", "onnxruntime", "jax")
Run = Callable[[], object]


class Peers:
    """What is there, loaded once."""

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self.modules: dict[str, Any] = {"numpy": np}
        self.versions = {"numpy": np.__version__}
        self.absent: dict[str, str] = {}
        for name in PEERS[1:]:
            try:
                self._load(name)
            except Exception as problem:  # an installed library may fail in any way when it is loaded
                self.absent[name] = " ".join(str(problem).split())

    def _load(self, name: str) -> None:
        if name == "onnxruntime":
            import_module("onnx")
        module = import_module(name)
        if name == "torch":
            module.set_num_threads(self.threads)
        if name == "jax":
            module.config.update("jax_enable_x64", True)
        self.modules[name] = module
        with contextlib.suppress(PackageNotFoundError):
            self.versions[name] = version(name)

    def of(self, case: Case, work: Work, output: Array) -> Iterator[tuple[str, Run]]:
        """Each peer that has the operator, writing into `output`, or into memory of its own where it only can so."""
        make: Any = {Scan: self._scan, Join: self._join, Pooling: self._pooling}[type(case)]
        for name in self.modules:
            try:
                run = make(name, case, work, output)
                if run is not None:
                    run()
            except Exception:  # no kernel for the type, no memory, ...: peers raise what they like
                continue
            if run is not None:
                yield name, run

    def _scan(self, name: str, case: Scan, work: Work, output: Array) -> Run | None:
        x, axis = work.inputs[0], case.axis
        assert x is not None
        if case.exclusive or case.decreasing:
            return None
        summing = case.operator == "CUMULATIVE_SUMMATION"
        if name == "numpy":
            ufunc = np.add if summing else np.multiply
            return lambda: ufunc.accumulate(x, axis=axis, dtype=x.dtype, out=output)
        if name == "torch":
            torch = self.modules["torch"]
            function = torch.cumsum if summing else torch.cumprod
            given, out = torch.from_numpy(x), torch.from_numpy(output)
            return lambda: function(given, axis, dtype=given.dtype, out=out)
        if name == "jax":
            jax: Any = self.modules["jax"]
            compiled = jax.jit(lambda v: (jax.numpy.cumsum if summing else jax.numpy.cumprod)(v, axis))
            array = jax.numpy.asarray(x)
            return lambda: compiled(array).block_until_ready()
        if not summing or not x.flags.c_contiguous:
            return None
        return self._session("CumSum", [x], output, {"a": np.array(axis, np.int64)}, {})

    def _join(self, name: str, case: Join, work: Work, output: Array) -> Run | None:
        pieces = [piece for piece in work.inputs if piece is not None]
        if name == "numpy":
            return lambda: np.concatenate(pieces, 1, out=output)
        if name == "torch":
            torch = self.modules["torch"]
            given, out = [torch.from_numpy(piece) for piece in pieces], torch.from_numpy(output)
            return lambda: torch.cat(given, 1, out=out)
        if name == "jax":
            jax: Any = self.modules["jax"]
            arrays = [jax.numpy.asarray(piece) for piece in pieces]
            compiled = jax.jit(lambda *a: jax.numpy.concatenate(a, 1))
            return lambda: compiled(*arrays).block_until_ready()
        return self._session("Concat", pieces, output, {}, {"axis": 1})

    def _pooling(self, name: str, case: Pooling, work: Work, output: Array) -> Run | None:
        x = work.inputs[0]
        assert x is not None
        if case.per_channel or case.dilation > 1:
            return None
        spatial = x.ndim - 2
        window, stride, padding = ([value] * spatial for value in (case.window, case.stride, case.padding))
        if name == "torch":
            torch = self.modules["torch"]
            kind = torch.quint8 if x.dtype == np.uint8 else torch.qint8
            pool = getattr(torch.ao.nn.quantized.functional, f"avg_pool{spatial}d")
            # Its output scale is its input's.
            if kind != torch.quint8:
                return None
            quantised = torch._make_per_tensor_quantized_tensor(torch.from_numpy(x), 0.05, 3)
            return lambda: pool(quantised, window, stride, padding, count_include_pad=False)
        if name != "onnxruntime":
            return None
        scalars = {"xs": np.float32(0.05), "xz": x.dtype.type(3), "ys": np.float32(0.04), "yz": x.dtype.type(5)}
        options = {"kernel_shape": window, "strides": stride, "pads": padding * 2, "count_include_pad": 0}
        constants = {key: np.asarray(value) for key, value in scalars.items()}
        return self._session("QLinearAveragePool", [x], output, constants, options, "com.microsoft")

    def _session(
        self,
        operator: str,
        inputs: list[Array],
        output: Array,
        constants: dict[str, Array],
        options: dict[str, Any],
        domain: str = "",
    ) -> Run:
        """A model of one node, its memory bound."""
        onnxruntime = self.modules["onnxruntime"]
        helper: Any = import_module("onnx.helper")
        numpy_helper: Any = import_module("onnx.numpy_helper")
        names = [f"x{i}" for i in range(len(inputs))]

        def value(name: str, array: Any) -> Any:
            return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)

        graph = helper.make_graph(
            [helper.make_node(operator, [*names, *constants], ["y"], domain=domain, **options)],
            "bench",
            [value(*pair) for pair in zip(names, inputs, strict=True)],
            [value("y", output)],
            [numpy_helper.from_array(array, key) for key, array in constants.items()],
        )
        sets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
        model = helper.make_model(graph, opset_imports=sets, ir_version=8)
        settings = onnxruntime.SessionOptions()
        settings.intra_op_num_threads = self.threads
        session = onnxruntime.InferenceSession(model.SerializeToString(), settings, providers=["CPUExecutionProvider"])
        binding = session.io_binding()
        for name, array in zip(names, inputs, strict=True):
            binding.bind_cpu_input(name, array)
        binding.bind_output("y", "cpu", 0, output.dtype, output.shape, output.ctypes.data)
        return lambda: session.run_with_iobinding(binding)


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
