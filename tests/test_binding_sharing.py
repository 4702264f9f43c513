"""Bindings: which tensors may share memory, with several outputs and without inputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from anydml import (
    DML_BUFFER_BINDING,
    DML_BUFFER_TENSOR_DESC,
    DML_FILL_VALUE_SEQUENCE_OPERATOR_DESC,
    DML_SPLIT_OPERATOR_DESC,
    CompiledOperator,
    Device,
    DMLError,
    TensorDataType,
)
from binding_calls import SUMS, X, at, engine, initialise, join, pooling, run_table, summation
from cases import tensor
from harness import compiled

# Sharing


def grid(n: int = 4) -> np.ndarray:
    return np.arange(n * n, dtype=np.float32).reshape(n, n)


@engine
@pytest.mark.parametrize(
    "again", [lambda x: x, lambda x: x[:], lambda x: x.view(), lambda x: np.asarray(memoryview(x))]
)
def test_in_place(engine: str, again: Any) -> None:
    x = X.copy()
    compiled(engine, summation(tensor((4,)))).dispatch([x], [again(x)])
    np.testing.assert_array_equal(x, SUMS)


@engine
def test_in_place_through_the_table(engine: str) -> None:
    operator, memory = compiled(engine, summation(tensor((4,)))), np.zeros(12, np.float32)
    memory[4:8] = X
    initialise(operator)
    run_table(operator, [at(memory, 16, 16)], [at(memory, 16, 16)])
    np.testing.assert_array_equal(memory, [0, 0, 0, 0, *SUMS, 0, 0, 0, 0])


@engine
@pytest.mark.parametrize("strides", [(1, 4), (8, 2), (5, 1)])
def test_in_place_with_equal_strides(engine: str, strides: tuple[int, int]) -> None:
    operator = compiled(engine, summation(tensor((4, 4), "FLOAT32", strides), axis=1))
    memory = np.ones(40, np.float32)
    operator.dispatch([memory], [memory])
    layout = np.lib.stride_tricks.as_strided(memory, (4, 4), [4 * step for step in strides])
    np.testing.assert_array_equal(layout, [[1, 2, 3, 4]] * 4)
    assert memory.sum() == 40 + 4 * (0 + 1 + 2 + 3)


@engine
def test_strides_of_sizes_of_1_do_not_matter_in_place(engine: str) -> None:
    desc = summation(tensor((1, 4), "FLOAT32", (0, 1)), tensor((1, 4)), axis=1)
    x = X.copy()
    compiled(engine, desc).dispatch([x], [x])
    np.testing.assert_array_equal(x, SUMS)


def check_shared(operator: CompiledOperator, inputs: Sequence[Any], output: Any, memory: np.ndarray) -> None:
    before = memory.copy()
    with pytest.raises(DMLError, match=r"memory shared with Input\w+(\[\d\])?, expected .* \(B7\)"):
        operator.dispatch(inputs, [output])
    np.testing.assert_array_equal(memory, before)


@engine
@pytest.mark.parametrize("shift", [-3, -1, 1, 2, 3])
def test_shifted_is_refused_and_side_by_side_is_not(engine: str, shift: int) -> None:
    memory = np.arange(12, dtype=np.float32)
    operator = compiled(engine, summation(tensor((4,))))
    check_shared(operator, [memory[4:8]], memory[4 + shift : 8 + shift], memory)
    for start in (0, 8):
        operator.dispatch([memory[4:8]], [memory[start : start + 4]])
        np.testing.assert_array_equal(memory[start : start + 4], [4, 9, 15, 22])


@engine
def test_transposed_is_refused(engine: str) -> None:
    operator = compiled(engine, summation(tensor((4, 4)), tensor((4, 4), "FLOAT32", (1, 4)), axis=1))
    x = grid()
    check_shared(operator, [x], x.T, x)
    check_shared(operator, [x.ravel()], x.ravel(), x)


@engine
def test_interleaved_is_judged_by_address_range(engine: str) -> None:
    operator = compiled(engine, summation(tensor((4,), "FLOAT32", (2,))))
    memory = np.arange(8, dtype=np.float32)
    check_shared(operator, [memory[::2]], memory[1::2], memory)


@engine
def test_a_broadcast_input_is_not_run_in_place(engine: str) -> None:
    operator = compiled(engine, summation(tensor((4,), "FLOAT32", (0,)), tensor((4,))))
    memory = X.copy()
    check_shared(operator, [memory], memory, memory)


@engine
def test_join_and_pooling_do_not_run_in_place(engine: str) -> None:
    x = X.copy()
    check_shared(compiled(engine, join(tensor((4,)), output=tensor((4,)))), [x], x, x)
    bytes_, scale = np.arange(4, dtype=np.uint8).reshape(1, 1, 1, 4), np.ones(1, np.float32)
    operator = compiled(engine, pooling())
    check_shared(operator, [bytes_, scale, None, scale, None], bytes_, bytes_)
    check_shared(operator, [bytes_, scale, None, scale, None], scale.view(np.uint8), scale)


@engine
def test_inputs_may_share(engine: str) -> None:
    operator = compiled(engine, join(tensor((4,)), tensor((3,)), tensor((4,)), output=tensor((11,))))
    memory = np.concatenate([np.arange(8), np.zeros(11)]).astype(np.float32)
    operator.dispatch([memory[:4], memory[2:5], memory[:4]], [memory[8:]])
    np.testing.assert_array_equal(memory[8:], [0, 1, 2, 3, 2, 3, 4, 0, 1, 2, 3])
    check_shared(operator, [memory[:4], memory[2:5], memory[6:10]], memory[8:], memory)


@engine
def test_join_with_all_in_one_buffer(engine: str) -> None:
    operator = compiled(engine, join(tensor((4,)), tensor((4,)), output=tensor((8,))))
    initialise(operator)
    memory = np.arange(16, dtype=np.float32)
    run_table(operator, [at(memory, 16, 16), at(memory, 0, 16)], [at(memory, 32, 32)])
    np.testing.assert_array_equal(memory, [0, 1, 2, 3, 4, 5, 6, 7, 4, 5, 6, 7, 0, 1, 2, 3])
    with pytest.raises(DMLError, match=r"memory shared with InputTensors\[0\], .* \(B7\)"):
        run_table(operator, [at(memory, 16, 16), at(memory, 0, 16)], [at(memory, 16, 32)])


@engine
def test_explicit_bindings_are_judged_with_their_padding(engine: str) -> None:
    """Six bytes of elements, eight of TotalTensorSizeInBytes."""
    halves = DML_BUFFER_TENSOR_DESC(DataType=TensorDataType.FLOAT16, Sizes=(3,), GuaranteedBaseOffsetAlignment=2)
    operator = compiled(engine, summation(halves))
    initialise(operator)
    memory = np.arange(16, dtype=np.float16)
    before = memory.copy()
    with pytest.raises(DMLError, match=r"\(B7\)"):
        run_table(operator, [at(memory, 0, 8)], [at(memory, 6, 8)])
    with pytest.raises(DMLError, match=r"\(B7\)"):
        run_table(operator, [at(memory, 6, 8)], [at(memory, 0, 8)])
    np.testing.assert_array_equal(memory, before)
    operator.dispatch([memory[:3]], [memory[3:6]])
    np.testing.assert_array_equal(memory[:8], [0, 1, 2, 0, 1, 3, 6, 7])
    run_table(operator, [at(memory, 0, 8)], [at(memory, 8, 8)])
    np.testing.assert_array_equal(memory[:8], [0, 1, 2, 0, 0, 1, 3, 7])


# Several outputs, no inputs


@engine
def test_pieces_share_no_memory(engine: str) -> None:
    x, memory = np.arange(6, dtype=np.float32), np.full(12, 9, np.float32)
    desc = DML_SPLIT_OPERATOR_DESC(InputTensor=tensor((6,)), OutputTensors=[tensor((4,)), tensor((2,))], Axis=0)
    device = Device(engine)
    operator = device.compile_operator(device.create_operator(desc))
    with pytest.raises(DMLError, match=r"OutputTensors\[1\]: found memory shared with OutputTensors\[0\].*\(B8\)"):
        operator.dispatch([x], [memory[:4], memory[3:5]])
    with pytest.raises(DMLError, match=r"OutputTensors\[1\]: found memory shared with InputTensor, .*\(B7\)"):
        operator.dispatch([x], [memory[:4], x[:2]])
    with pytest.raises(DMLError, match=r"outputs: found 1, expected a list of 2: OutputTensors\[0\], Out.*\(B1\)"):
        operator.dispatch([x], [memory[:4]])
    with pytest.raises(DMLError, match=r"OutputTensors\[1\]: found None, expected an array of float32.*\(B2\)"):
        operator.dispatch([x], [memory[:4], None])
    assert (memory == 9).all()
    operator.dispatch([x], [memory[:4], memory[4:6]])
    np.testing.assert_array_equal(memory[:7], [0, 1, 2, 3, 4, 5, 9])
    assert operator.binding_properties().RequiredDescriptorCount == 3
    initializer = device.create_operator_initializer([operator])
    device.dispatch(initializer, device.create_binding_table(initializer))
    table = device.create_binding_table(operator)
    table.bind_inputs([DML_BUFFER_BINDING(Buffer=x)])
    for second, rule in ((0, "(B8)"), (16, ""), (12, "(B5)")):
        table.bind_outputs([DML_BUFFER_BINDING(Buffer=memory, Offset=offset) for offset in (0, second)])
        if rule:
            with pytest.raises(DMLError) as raised:
                device.dispatch(operator, table)
            assert [violation.rule for violation in raised.value.violations] == [rule]
        else:
            device.dispatch(operator, table)


@engine
def test_an_operator_without_inputs_takes_an_empty_list(engine: str) -> None:
    desc = DML_FILL_VALUE_SEQUENCE_OPERATOR_DESC(
        OutputTensor=tensor((3,)), ValueDataType=TensorDataType.FLOAT32, ValueStart=1, ValueDelta=2
    )
    device = Device(engine)
    operator = device.compile_operator(device.create_operator(desc))
    assert "FILL_VALUE_SEQUENCE is served by " in operator.explain()
    y = np.zeros(3, np.float32)
    for inputs, found in (([y], "1"), ([None], "1"), (None, "None"), (y, "ndarray")):
        with pytest.raises(DMLError, match=rf"inputs: found {found}.*an empty list: the operator has none \(B1\)"):
            operator.dispatch(inputs, [y])  # type: ignore[arg-type]
    operator.dispatch([], [y])
    np.testing.assert_array_equal(y, [1, 3, 5])
    assert operator.initialise([]).size == 0
    assert operator.binding_properties()[0] == 1
