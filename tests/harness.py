"""Runs a desc on an engine, in memory whose every other byte is watched."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import anydml
from anydml import (
    DML_BUFFER_BINDING,
    DML_BUFFER_TENSOR_DESC,
    CompiledOperator,
    Device,
    ExecutionFlags,
    TensorDataType,
)
from anydml.core.strided_layout import Layout
from anydml.operators import spec_of
from anydml.operators.schema import OperatorDesc

GPU = os.environ.get("ANYDML_TEST_DEVICE", "")
"""A device that the cases run on beside the CPU's: "cuda", also in Triton's interpreter."""
ENGINES = ("reference", "cpu", GPU) if GPU else ("reference", "cpu")
ENGINE = GPU or "reference"
"""Where properties are tested that the cases of all engines have no room for."""
GUARD = 64
POISONS = (0xA5, 0x5A)


class Memory:
    """A tensor's memory on the device of an engine, poisoned all over, with poisoned guards around it."""

    def __init__(
        self, tensor: DML_BUFFER_TENSOR_DESC, poison: int, values: np.ndarray | None = None, engine: str = "cpu"
    ) -> None:
        self.layout = Layout.of_desc(tensor)
        self.size = tensor.TotalTensorSizeInBytes or 0
        self._before = np.full(2 * GUARD + self.size, poison, np.uint8)
        if values is not None:
            self.layout.view(self._before, GUARD)[...] = values
        self.memory = Device(engine).memory
        self.bytes = self.memory.to_device(self._before.copy())
        if engine == GPU:
            self.bytes = self.bytes.tensor

    @property
    def array(self) -> Any:
        """As one passes it to a dispatch."""
        view = self.memory.view(self.layout, self.memory.bytes_of(self.bytes), GUARD)
        return view if isinstance(view, np.ndarray) else view.tensor

    @property
    def flat(self) -> Any:
        return self.bytes[GUARD : GUARD + self.size]

    @property
    def binding(self) -> DML_BUFFER_BINDING:
        return DML_BUFFER_BINDING(Buffer=self.bytes, Offset=GUARD, SizeInBytes=self.size)

    @property
    def values(self) -> np.ndarray:
        """The elements now."""
        return self.layout.view(self._now(), GUARD).copy()

    def _now(self) -> np.ndarray:
        return self.bytes.copy() if isinstance(self.bytes, np.ndarray) else self.bytes.cpu().numpy().copy()

    def assert_untouched(self) -> None:
        np.testing.assert_array_equal(self._now(), self._before)

    def assert_only_elements_changed(self) -> None:
        expected = self._before.copy()
        self.layout.view(expected, GUARD)[...] = self.values
        np.testing.assert_array_equal(self._now(), expected)


def engines_of(desc: OperatorDesc) -> tuple[str, ...]:
    """The engines that serve a desc by themselves: the reference, a GPU, and the CPU's kernels where they take it."""
    return tuple(engine for engine in ENGINES if engine != "cpu" or explained(desc)[0] == "cpu")


def explained(desc: OperatorDesc) -> tuple[str, str]:
    """Which engine of the CPU serves a desc, and by which kernel and why not by others, as `explain` says."""
    device = Device("cpu")
    said = device.compile_operator(device.create_operator(desc)).explain()
    found = re.match(r"\w+ is served by (\w+): (.*)", said, re.DOTALL)
    assert found is not None, said
    return found[1], found[2]


def compiled(engine: str, desc: OperatorDesc, flags: ExecutionFlags = ExecutionFlags.NONE) -> CompiledOperator:
    """The operator, compiled on an engine, which serves it and no other."""
    device = Device(engine)
    operator = device.compile_operator(device.create_operator(desc), flags)
    assert operator.engine == engine, operator.explain()
    return operator


def run(
    engine: str,
    desc: OperatorDesc,
    inputs: Sequence[np.ndarray | None],
    through: str = "dispatch",
    flags: ExecutionFlags = ExecutionFlags.NONE,
) -> list[np.ndarray | None]:
    """The outputs for the given inputs, the same from either poison; checks that nothing else was written.

    `through` is "dispatch" (arrays as the desc has them), "flat" (their memory as flat bytes) or "table".
    """
    operator = compiled(engine, desc, flags)
    spec = operator.spec
    results = []
    for poison in POISONS:
        read = [
            None if tensor is None or values is None else Memory(tensor, poison, values, engine)
            for (_, tensor), values in zip(spec.inputs(desc), inputs, strict=True)
        ]
        written = [
            None if tensor is None else Memory(tensor, poison, engine=engine) for _, tensor in spec.outputs(desc)
        ]
        if through == "table":
            device = operator.device
            initializer = device.create_operator_initializer([operator])
            device.dispatch(initializer, device.create_binding_table(initializer))
            table = device.create_binding_table(operator)
            table.bind_inputs([memory and memory.binding for memory in read])
            table.bind_outputs([memory and memory.binding for memory in written])
            device.dispatch(operator, table)
        elif through == "flat":
            operator.dispatch(*[[memory and memory.flat for memory in side] for side in (read, written)])
        else:
            operator.dispatch(*[[memory and memory.array for memory in side] for side in (read, written)])
        for memory in read:
            if memory is not None:
                memory.assert_untouched()
        for memory in written:
            if memory is not None:
                memory.assert_only_elements_changed()
        values = [memory and memory.values for memory in written]
        for array, place in zip(values, spec.written(desc, values), strict=True):
            if array is not None and place is not ...:
                blank_rest(array, place, poison)
        results.append(values)
    for first, second in zip(*results, strict=True):
        if first is None or second is None:
            continue
        np.testing.assert_array_equal(first.view(bits(first)), second.view(bits(second)), "an element was not written")
    return results[0]


def blank_rest(array: np.ndarray, written: Any, poison: int) -> None:
    """Checks that all but what is written of an output is poison still, and makes it 0, as cases have it."""
    rest = np.ones(array.shape, bool)
    rest[written] = False
    assert set(array[rest].tobytes()) <= {poison}, "what is no result was written"
    array[rest] = 0


def bits(array: np.ndarray) -> np.dtype:
    """The unsigned type of the array's element size, to compare bit by bit."""
    return np.dtype(f"u{array.itemsize}")


def assert_same(actual: np.ndarray, expected: np.ndarray, units: int = 0) -> None:
    """Equal values, or within so many units in the last place; NaN equals NaN, and the sign of zero does not matter."""
    assert actual.dtype == expected.dtype
    np.testing.assert_array_equal(within(units, actual, expected), expected)


def within(units: int, actual: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """What is expected, where it is so near, and what is there elsewhere."""
    if not units:
        return actual
    magnitude = np.abs(expected)
    with np.errstate(invalid="ignore", over="ignore"):
        # Above a power of 2 a unit is twice as large as below it.
        toward = np.where(np.abs(actual) > magnitude, np.inf, 0).astype(magnitude.dtype)
        near = np.abs(actual - expected) <= units * np.abs(magnitude - np.nextafter(magnitude, toward))
    return np.where(near & np.isfinite(actual), expected, actual)


IN_SINGLES = {
    *(f"ACTIVATION_{name}" for name in ("ELU", "SCALED_ELU", "SIGMOID", "SOFTPLUS", "TANH")),
    *(f"ELEMENT_WISE_{name}" for name in ("EXP", "LOG", "TANH", "SIN", "COS", "TAN", "ASIN", "ACOS", "ATAN")),
    *(f"ELEMENT_WISE_{name}" for name in ("SINH", "COSH", "ASINH", "ACOSH", "ERF")),
}


ON_GPUS = IN_SINGLES - {"ELEMENT_WISE_EXP"}
"""Those which GPUs compute so; exponentials of FLOAT32 are computed in double precision there."""


def units_of(desc: Any, engine: str = "cpu") -> int:
    """In the last place, by which kernels may be off: 1 for exponentials, circular functions and the like of
    FLOAT32, which are computed in single precision where nothing is scaled before; 3 for softmax."""
    found = spec_of(desc)
    if engine == "reference" or (engine != "cpu" and (found is None or found.name not in ON_GPUS)):
        return 0
    if found is not None and "SOFTMAX" in found.name:
        return 3 * int(desc.OutputTensor.DataType == TensorDataType.FLOAT32)
    fused = getattr(desc, "FusedActivation", None)
    if fused is not None and found is not None and found.name in ("CONVOLUTION", "GEMM"):
        # Computed by the activation's own kernel, of a result that was rounded.
        return units_of(replace(fused, InputTensor=desc.OutputTensor, OutputTensor=desc.OutputTensor))
    if found is None or found.name not in IN_SINGLES or desc.OutputTensor is None:
        return 0
    is_scaled = getattr(desc, "ScaleBias", None) is not None or getattr(desc, "Steepness", 1) != 1
    return int(not is_scaled and desc.OutputTensor.DataType == TensorDataType.FLOAT32)


__all__ = [
    "ENGINE",
    "ENGINES",
    "GPU",
    "GUARD",
    "Memory",
    "anydml",
    "assert_same",
    "bits",
    "compiled",
    "engines_of",
    "run",
]


def printed_everywhere(script: str) -> set[str]:
    """What a program prints on every instruction set, on one thread and on three, in a process for each."""
    found = set()
    for instruction_set in pytest.importorskip("anydml._native").build_info()["instruction_sets"]:
        for threads in ("1", "3"):
            environment = {**os.environ, "ANYDML_CPU": instruction_set, "OMP_NUM_THREADS": threads}
            environment["PYTHONPATH"] = os.pathsep.join(sys.path)
            command = [sys.executable, "-c", script]
            found.add(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout)
    return found
