"""What the tests of bindings share: descs of a few operators, bindings, and both ways of running one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from anydml import (
    DML_BUFFER_BINDING,
    DML_BUFFER_TENSOR_DESC,
    DML_CUMULATIVE_SUMMATION_OPERATOR_DESC,
    DML_JOIN_OPERATOR_DESC,
    DML_QUANTIZED_LINEAR_AVERAGE_POOLING_OPERATOR_DESC,
    CompiledOperator,
    TensorDataType,
    TensorFlags,
)
from anydml.operators.schema import OperatorDesc
from cases import tensor
from harness import ENGINES

engine = pytest.mark.parametrize("engine", ENGINES)

X = np.array([1, 2, 3, 4], np.float32)
SUMS = np.array([1, 3, 6, 10], np.float32)


def summation(x: DML_BUFFER_TENSOR_DESC, y: DML_BUFFER_TENSOR_DESC | None = None, axis: int = 0) -> OperatorDesc:
    return DML_CUMULATIVE_SUMMATION_OPERATOR_DESC(InputTensor=x, OutputTensor=y or x, Axis=axis)


def join(*inputs: DML_BUFFER_TENSOR_DESC, output: DML_BUFFER_TENSOR_DESC) -> OperatorDesc:
    return DML_JOIN_OPERATOR_DESC(InputTensors=inputs, OutputTensor=output, Axis=0)


def pooling(scale_flags: TensorFlags = TensorFlags.NONE) -> OperatorDesc:
    """A window of one element, without zero points."""
    scale = DML_BUFFER_TENSOR_DESC(DataType=TensorDataType.FLOAT32, Sizes=(1, 1, 1, 1), Flags=scale_flags)
    x = tensor((1, 1, 1, 4), "UINT8")
    return DML_QUANTIZED_LINEAR_AVERAGE_POOLING_OPERATOR_DESC(
        InputTensor=x,
        InputScaleTensor=scale,
        OutputScaleTensor=scale,
        OutputTensor=x,
        Strides=(1, 1),
        WindowSize=(1, 1),
        StartPadding=(0, 0),
        EndPadding=(0, 0),
        Dilations=(1, 1),
    )


def poisoned(size: int = 16) -> np.ndarray:
    return np.full(size, 0xA5, np.uint8)


def whole(buffer: Any) -> DML_BUFFER_BINDING:
    return DML_BUFFER_BINDING(Buffer=buffer)


def at(buffer: Any, offset: Any, size: Any = None) -> DML_BUFFER_BINDING:
    return DML_BUFFER_BINDING(Buffer=buffer, Offset=offset, SizeInBytes=size)


def initialise(operator: CompiledOperator) -> None:
    """For operators that own nothing."""
    initializer = operator.device.create_operator_initializer([operator])
    operator.device.dispatch(initializer, operator.device.create_binding_table(initializer))


def run_table(operator: CompiledOperator, inputs: Any, outputs: Any, persistent: Any = None) -> None:
    table = operator.device.create_binding_table(operator)
    table.bind_inputs(inputs)
    table.bind_outputs(outputs)
    table.bind_persistent_resource(persistent)
    table.bind_temporary_resource(None)
    operator.device.dispatch(operator, table)


def run_dispatch(operator: CompiledOperator, inputs: Any, outputs: Any, persistent: Any = None) -> None:
    operator.dispatch(inputs, outputs, persistent=persistent)
