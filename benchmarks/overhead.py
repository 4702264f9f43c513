"""What the package costs before any work is done: importing it, creating and compiling an operator, small calls.

    PYTHONPATH=tests python benchmarks/overhead.py
    PYTHONPATH=tests python benchmarks/overhead.py --device cuda    # what small calls cost the host of a GPU

Importing is measured in fresh processes, after NumPy has been imported; the best of many stands for what the package
itself costs on a machine that others use too. Small calls are those of each operator's small example, which were called
so before; of their time the kernel beneath, on the same arrays, takes a part that no shorter way to it can spare. Of
a function that calls others, and has no kernel of its own, the whole call alone is measured.
"""

from __future__ import annotations

import argparse
import platform
import statistics
import subprocess
import sys
import timeit
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np

import anydml
from anydml import (
    DML_BUFFER_TENSOR_DESC,
    DML_CUMULATIVE_PRODUCT_OPERATOR_DESC,
    DML_CUMULATIVE_SUMMATION_OPERATOR_DESC,
    DML_JOIN_OPERATOR_DESC,
    DML_QUANTIZED_LINEAR_AVERAGE_POOLING_OPERATOR_DESC,
    TensorDataType,
)
from anydml.draw import EXAMPLES
from anydml.functions import _call_cache
from anydml.operators.schema import OperatorDesc
from applied import arguments_of, function_of

_IMPORT = "import time, numpy; start = time.perf_counter(); import anydml; print(time.perf_counter() - start)"


def import_times(runs: int = 20) -> list[float]:
    """Seconds that `import anydml` adds to `import numpy`, in fresh processes."""
    command = [sys.executable, "-c", _IMPORT]
    return [float(subprocess.run(command, capture_output=True, check=True, text=True).stdout) for _ in range(runs)]


def descs() -> dict[str, OperatorDesc]:
    def tensor(*sizes: int, data_type: TensorDataType = TensorDataType.FLOAT32) -> DML_BUFFER_TENSOR_DESC:
        return DML_BUFFER_TENSOR_DESC(DataType=data_type, Sizes=sizes)

    x, one = tensor(1, 1, 3, 4), tensor(1, 1, 1, 1)
    image, pooled = (tensor(1, 8, n, n, data_type=TensorDataType.UINT8) for n in (8, 4))
    return {
        "CUMULATIVE_SUMMATION": DML_CUMULATIVE_SUMMATION_OPERATOR_DESC(InputTensor=x, OutputTensor=x, Axis=3),
        "CUMULATIVE_PRODUCT": DML_CUMULATIVE_PRODUCT_OPERATOR_DESC(InputTensor=x, OutputTensor=x, Axis=2),
        "JOIN": DML_JOIN_OPERATOR_DESC(InputTensors=[x, x], OutputTensor=tensor(1, 1, 6, 4), Axis=2),
        "QUANTIZED_LINEAR_AVERAGE_POOLING": DML_QUANTIZED_LINEAR_AVERAGE_POOLING_OPERATOR_DESC(
            InputTensor=image,
            InputScaleTensor=one,
            OutputScaleTensor=one,
            OutputTensor=pooled,
            Strides=(2, 2),
            WindowSize=(2, 2),
            StartPadding=(0, 0),
            EndPadding=(0, 0),
            Dilations=(1, 1),
        ),
    }


def microseconds(statement: str, names: dict[str, object], repeats: int = 15, number: int = 200) -> tuple[float, float]:
    """Best and median of `repeats` timings of a statement."""
    times = [time / number * 1e6 for time in timeit.repeat(statement, globals=names, repeat=repeats, number=number)]
    return min(times), statistics.median(times)


def chain(device: anydml.Device, length: int) -> dict[str, object]:
    """A graph of so many operators, each of which reads the one before it."""
    graph = anydml.Graph(device)
    end = graph.input(DML_BUFFER_TENSOR_DESC(DataType=TensorDataType.FLOAT32, Sizes=(1, 1, 3, 4)))
    for i in range(length):
        end = end + end if i % 2 else graph.operator(DML_CUMULATIVE_SUMMATION_OPERATOR_DESC, InputTensor=end, Axis=3)[0]
    return {"graph": graph, "end": end}


class SmallCall(NamedTuple):
    """What a call of a function costs that was called so before, in microseconds."""

    name: str
    arrays: int
    """How many it takes."""
    whole: float
    kernel: float | None = None
    """What the kernel beneath takes by itself; None where the function does not come down to one, but calls others."""
    share: float | None = None
    """What is not the kernel's: the whole with a kernel that does nothing; with a native plan the difference, as that
    takes a shorter way yet. None where there is no such kernel."""
    calls: int = 0
    """Of PyTorch, in that kernel; in the whole call where there is none."""

    def mark(self, allowed: float) -> str:
        """What is to be said of it beside its limit."""
        if self.kernel is None:
            return f"{'' if self.whole <= allowed else '  above'}  no kernel of its own"
        return "" if self.whole <= allowed else "  above"


JOINED = 500
"""Pieces of a join of many."""


def small_calls(make: Callable[[Any], Any], wait: Callable[[], object], **more: Any) -> Iterator[SmallCall]:
    """Of every operator's function, on its small example.

    Args:
        make: an operand of an array.
        wait: for the device.
        more: arguments of all calls.
    """
    for name, (desc, inputs) in EXAMPLES.items():
        operands = [None if array is None else make(array.copy()) for array in inputs]
        function = getattr(anydml, function_of(name))
        arrays = sum(each is not None for each in operands)
        yield _small_call(name, function, {**arguments_of(desc, operands), **more}, arrays, wait)
    pieces = [make(np.full(12, i, np.float32)) for i in range(JOINED)]
    yield _small_call(f"JOIN of {JOINED}", anydml.join, {"arrays": pieces, **more}, JOINED, wait)


def _small_call(name: str, function: Any, given: dict[str, Any], arrays: int, wait: Callable[[], object]) -> SmallCall:
    function(**given)
    ran = _call_cache.record(function.__wrapped__, (), given)[1]
    if len(ran) != 1:
        whole = partial(function, **given)
        calls = _calls_of_torch(whole) if "torch" in sys.modules else 0
        return SmallCall(name, arrays, min(_by_turns({"whole": whole}, wait)["whole"]), calls=calls)
    return _small_call_of(ran[0], name, function, given, arrays, wait)


def _small_call_of(
    ran: _call_cache.Ran, name: str, function: Any, given: dict[str, Any], arrays: int, wait: Callable[[], object]
) -> SmallCall:
    """Of a function that ran one kernel."""
    _call_cache.CALL_CACHE.clear()
    # Prepared as if its kernel did nothing, and never prepared anew, as the key is known.
    preparation = _call_cache._OnHost if ran.device.memory.is_host else _call_cache._OnDevice
    with patch.object(preparation, "runs", (lambda *tensors: None, None)):
        function(**given)
    share = min(timeit.repeat(lambda: function(**given), repeat=15, number=100)) / 100 * 1e6
    _call_cache.CALL_CACHE.clear()
    function(**given)
    runs = {"whole": lambda: function(**given), "kernel": lambda: ran.kernel.run(ran.inputs, ran.outputs)}
    times = _by_turns(runs, wait)
    calls = _calls_of_torch(runs["kernel"]) if "torch" in sys.modules else 0
    whole, kernel = min(times["whole"]), min(times["kernel"])
    return SmallCall(name, arrays, whole, kernel, share if ran.kernel.plan is None else whole - kernel, calls)


def _by_turns(runs: dict[str, Callable[[], object]], wait: Callable[[], object]) -> dict[str, list[float]]:
    """Microseconds of each run, many times."""
    times: dict[str, list[float]] = {label: [] for label in runs}
    once = min(timeit.repeat(next(iter(runs.values())), repeat=3, number=1))
    # A millisecond each in turn, as others disturb; and the queue of a device must not fill up.
    number = min(max(int(1e-3 / once), 5), 100)
    for _ in range(25):
        for label, run in runs.items():
            wait()
            times[label].append(timeit.timeit(run, number=number) / number * 1e6)
    return times


def _calls_of_torch(run: Callable[[], object]) -> int:
    """How many of PyTorch's functions it calls which compute tensors."""
    import torch
    from torch.overrides import TorchFunctionMode

    class Counter(TorchFunctionMode):
        calls = 0

        def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            result = function(*args, **(kwargs or {}))
            results = result if isinstance(result, (tuple, list)) else [result]
            is_property = getattr(function, "__name__", "") == "__get__"
            self.calls += not is_property and any(isinstance(each, torch.Tensor) for each in results)
            return result

    with Counter() as counter:
        run()
    return counter.calls


def _figures(call: SmallCall, digits: int) -> str:
    """The whole, the kernel alone and the rest, in columns; a dash for what there is not."""
    return "".join("-".rjust(9) if x is None else f"{x:9.{digits}f}" for x in (call.whole, call.kernel, call.share))


def print_small_calls() -> None:
    """On the CPU, for NumPy's arrays and PyTorch's tensors."""
    kinds: dict[str, tuple[float, Any]] = {"NumPy": (4, np.array)}
    try:
        import torch

        kinds["PyTorch"] = 6, torch.from_numpy
    except ImportError:
        print("PyTorch is not installed")
    for kind, (limit, make) in kinds.items():
        print(f"\nSmall calls with {kind}'s arrays, in microseconds: the whole, the kernel alone, the rest")
        print(f"{'':36}{'call':>9}{'kernel':>9}{'share':>9}{'limit':>9}")
        for each in small_calls(make, lambda: None):
            allowed = limit + 0.5 * max(each.arrays - 3, 0)
            mark = each.mark(allowed)
            if mark and each.share is not None and each.share <= allowed:
                mark = "  its kernel"
            print(f"{each.name:36}{_figures(each, 2)}{allowed:9.1f}{mark}")


def print_small_calls_on(device: str) -> None:
    """What they cost the host of a GPU, which computes meanwhile."""
    import torch

    place = anydml.Device(device)
    backend = getattr(torch, place.memory.device.type)
    wait = getattr(backend, "synchronize", lambda: None)
    print(f"\nSmall calls on {device}, in microseconds of the host: the whole call, its kernel's launch alone")
    print(f"{'':36}{'call':>9}{'launch':>9}{'share':>9}{'calls':>9}{'limit':>9}")
    x = torch.ones(12, device=place.memory.device)
    for each in small_calls(lambda array: torch.from_numpy(array).to(x.device), wait, device=place):
        many = each.name.startswith("JOIN of")
        allowed = 300 if many else 15 if each.calls == 0 else 5 * each.calls + 10
        print(f"{each.name:36}{_figures(each, 1)}{each.calls:9}{allowed:9}{each.mark(allowed)}")
    for label, statement in {"PyTorch's cumsum": "x.cumsum(0)", "PyTorch's add": "x + x"}.items():
        wait()
        print(f"{label:36}{microseconds(statement, {'x': x})[0]:9.1f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--device", help="a GPU, such as cuda, on whose host small calls are measured")
    device_name = parser.parse_args().device
    versions = f"Python {platform.python_version()}, NumPy {np.__version__}, anydml {anydml.__version__}"
    print(f"{platform.platform()}, {versions}")
    if device_name is not None:
        print_small_calls_on(device_name)
        return
    times = [time * 1e3 for time in import_times()]
    print(f"import anydml after numpy: {min(times):.1f} ms best, {statistics.median(times):.1f} ms median, limit 40 ms")
    device = anydml.Device()
    create = "device.compile_operator(device.create_operator(desc))"
    for name, desc in descs().items():
        best, median = microseconds(create, {"device": device, "desc": desc})
        print(f"create and compile {name}: {best:.0f} us best, {median:.0f} us median, limit 150 us")
    best, median = microseconds("graph.compile([end])", chain(device, 2000), repeats=5, number=1)
    print(f"compile a graph of 2000 nodes: {best / 1e3:.0f} ms best, {median / 1e3:.0f} ms median, limit 1000 ms")
    x = np.ones((1, 1, 3, 4), np.float32)
    compiled = device.compile_operator(device.create_operator(descs()["CUMULATIVE_SUMMATION"]))
    names = {"compiled": compiled, "x": x, "out": np.empty_like(x), "np": np, "anydml": anydml}
    for label, statement in {
        "np.add.accumulate(out=)": "np.add.accumulate(x, axis=3, out=out)",
        "compiled.dispatch": "compiled.dispatch([x], [out])",
        "cumulative_summation(out=)": "anydml.cumulative_summation(x, out=out)",
    }.items():
        best, median = microseconds(statement, names)
        print(f"12 elements, {label}: {best:.2f} us best, {median:.2f} us median")
    print_small_calls()


if __name__ == "__main__":
    main()
