"""What the package costs before any work is done: importing it, creating and compiling an operator, a small dispatch.

    python benchmarks/overhead.py

Importing is measured in fresh processes, after NumPy has been imported; the best of many stands for what the package
itself costs on a machine that others use too.
"""

from __future__ import annotations

import platform
import statistics
import subprocess
import sys
import timeit

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
from anydml.operators.schema import OperatorDesc

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


def main() -> None:
    versions = f"Python {platform.python_version()}, NumPy {np.__version__}, anydml {anydml.__version__}"
    print(f"{platform.platform()}, {versions}")
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


if __name__ == "__main__":
    main()
