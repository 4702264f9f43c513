"""Bindings: every rule through ``compiled.dispatch`` and through the table; where one is broken, nothing is written."""

from __future__ import annotations

import array
import gc
import mmap
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from anydml import (
    DML_BUFFER_ARRAY_BINDING,
    DML_BUFFER_BINDING,
    DML_BUFFER_TENSOR_DESC,
    DML_CUMULATIVE_SUMMATION_OPERATOR_DESC,
    DML_FILL_VALUE_SEQUENCE_OPERATOR_DESC,
    DML_JOIN_OPERATOR_DESC,
    DML_QUANTIZED_LINEAR_AVERAGE_POOLING_OPERATOR_DESC,
    DML_SPLIT_OPERATOR_DESC,
    BindingTable,
    CompiledOperator,
    Device,
    DMLError,
    TensorDataType,
    TensorFlags,
)
from anydml.operators.schema import OperatorDesc
from anydml.runtime.binding import address
from cases import tensor
from harness import ENGINES, compiled

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


# What is refused: rule, inputs, outputs, where, found. OUT stands for a poisoned output of 16 bytes.

OUT = object()
READ_ONLY = np.arange(16, dtype=np.uint8)
READ_ONLY.flags.writeable = False

TABLE_NEGATIVES: list[tuple[str, Any, Any, str, str]] = [
    ("(B1)", [], [OUT], "bind_inputs", "0"),
    ("(B1)", [whole(X), None], [OUT], "bind_inputs", "2"),
    ("(B1)", [whole(X)], [], "bind_outputs", "0"),
    ("(B2)", [None], [OUT], "InputTensor", "None"),
    ("(B2)", [whole(X)], [None], "OutputTensor", "None"),
    ("(B2)", [X], [OUT], "InputTensor", "ndarray"),
    ("(B2)", [whole(X)], [poisoned()], "OutputTensor", "ndarray"),
    ("(B2)", [DML_BUFFER_ARRAY_BINDING(Bindings=[whole(X)])], [OUT], "InputTensor", "DML_BUFFER_ARRAY_BINDING"),
    ("(B3)", [whole(7)], [OUT], "InputTensor", "int"),
    ("(B3)", [whole("text")], [OUT], "InputTensor", "str"),
    ("(B3)", [whole([1.0, 2.0, 3.0, 4.0])], [OUT], "InputTensor", "list"),
    ("(B3)", [whole(np.zeros(8, np.float32)[::2])], [OUT], "InputTensor", "contiguous"),
    ("(B3)", [whole(X)], [whole(READ_ONLY)], "OutputTensor", "read-only ndarray"),
    ("(B3)", [whole(X)], [whole(bytes(16))], "OutputTensor", "read-only bytes"),
    ("(B3)", [whole(X)], [whole(memoryview(bytes(16)))], "OutputTensor", "read-only memoryview"),
    ("(B4)", [whole(X[:3])], [OUT], "InputTensor", "12 bytes"),
    ("(B4)", [at(X, 0, 12)], [OUT], "InputTensor", "12 bytes"),
    ("(B4)", [at(X, 16)], [OUT], "InputTensor", "0 bytes"),
    ("(B4)", [at(X, 0, 17)], [OUT], "InputTensor", "bytes 0 to 17"),
    ("(B4)", [at(X, -16, 16)], [OUT], "InputTensor", "bytes -16 to 0"),
    ("(B4)", [at(X, 32)], [OUT], "InputTensor", "bytes 32"),
    ("(B4)", [at(X, 0, -1)], [OUT], "InputTensor", "bytes 0 to -1"),
    ("(B4)", [at(X, 2**64)], [OUT], "InputTensor", "18446744073709551616"),
    ("(B4)", [at(X, 0, 2**64)], [OUT], "InputTensor", "18446744073709551616"),
    ("(B4)", [at(X, "0")], [OUT], "InputTensor", "str '0'"),
    ("(B4)", [at(X, None)], [OUT], "InputTensor", "None"),
    ("(B4)", [at(X, 0, 16.0)], [OUT], "InputTensor", "float 16.0"),
    ("(B4)", [whole(X)], [whole(poisoned(15))], "OutputTensor", "15 bytes"),
    ("(B4)", [whole(b"")], [OUT], "InputTensor", "0 bytes"),
    ("(B5)", [at(np.zeros(8, np.float32), 4)], [OUT], "InputTensor", "offset 4"),
    ("(B5)", [at(np.zeros(8, np.float32), 8)], [OUT], "InputTensor", "offset 8"),
    ("(B5)", [whole(X)], [at(poisoned(32), 1)], "OutputTensor", "offset 1"),
]

DISPATCH_NEGATIVES: list[tuple[str, Any, Any, str, str]] = [
    ("(B1)", [], [OUT], "inputs", "0"),
    ("(B1)", [X, X], [OUT], "inputs", "2"),
    ("(B1)", X, [OUT], "inputs", "ndarray"),
    ("(B1)", None, [OUT], "inputs", "None"),
    ("(B1)", [X], None, "outputs", "None"),
    ("(B2)", [None], [OUT], "InputTensor", "None"),
    ("(B2)", [X], [None], "OutputTensor", "None"),
    ("(A1)", ["text"], [OUT], "InputTensor", "str"),
    ("(A1)", [object()], [OUT], "InputTensor", "object"),
    ("(A2)", [X.astype(">f4")], [OUT], "InputTensor", "byte-swapped"),
    ("(B3)", [X], [np.broadcast_to(np.float32(0), (4,))], "OutputTensor", "read-only"),
    ("(B3)", [X], [bytes(16)], "OutputTensor", "read-only"),
    ("(B3)", [X], [memoryview(bytes(16))], "OutputTensor", "read-only"),
    ("(B3)", [X], [READ_ONLY], "OutputTensor", "read-only"),
    ("(B6)", [X.astype(np.float64)], [OUT], "InputTensor", "float64, sizes (4,)"),
    ("(B6)", [X.view(np.int32)], [OUT], "InputTensor", "int32"),
    ("(B6)", [X.reshape(2, 2)], [OUT], "InputTensor", "sizes (2, 2)"),
    ("(B6)", [X[:3]], [OUT], "InputTensor", "12 bytes"),
    ("(B6)", [np.zeros(8, np.float32)[::2]], [OUT], "InputTensor", "strides (2,) elements"),
    ("(B6)", [X[::-1]], [OUT], "InputTensor", "strides (-1,) elements"),
    ("(B6)", [np.float32(3)], [OUT], "InputTensor", "sizes ()"),
    ("(B6)", [bytes(15)], [OUT], "InputTensor", "15 bytes"),
    ("(B6)", [np.zeros(4, object)], [OUT], "InputTensor", "object"),
    ("(A1)", [np.ma.masked_equal(X, 0)], [OUT], "InputTensor", "MaskedArray"),
    ("(B6)", [X], [poisoned(15)], "OutputTensor", "15 bytes"),
    ("(B6)", [X], [np.zeros(4, np.float32)[::-1]], "OutputTensor", "strides (-1,) elements"),
    ("(B6)", [X], [np.zeros((4, 1), np.float32)], "OutputTensor", "sizes (4, 1)"),
    ("(B6)", [np.zeros((4, 4), np.uint8)], [OUT], "InputTensor", "uint8, sizes (4, 4)"),
    ("(B9)", [X], [OUT], "persistent", "array"),
]


def check_refused(operator: CompiledOperator, through: str, negative: tuple[str, Any, Any, str, str]) -> None:
    rule, inputs, outputs, where, found = negative
    memory = poisoned()
    stand_in = whole(memory) if through == "table" else memory
    given = [stand_in if output is OUT else output for output in outputs] if outputs is not None else None
    persistent = poisoned() if rule == "(B9)" else None
    run = run_table if through == "table" else run_dispatch
    with pytest.raises(DMLError) as raised:
        run(operator, inputs, given, persistent)
    (violation,) = raised.value.violations
    assert violation.rule == rule
    assert violation.where == where
    assert violation.operator == "CUMULATIVE_SUMMATION"
    assert found in violation.found
    assert (memory == 0xA5).all()
    np.testing.assert_array_equal(X, [1, 2, 3, 4])


@engine
@pytest.mark.parametrize("negative", TABLE_NEGATIVES, ids=lambda n: f"{n[0]}-{n[3]}-{n[4]}")
def test_a_table_refuses(engine: str, negative: tuple[str, Any, Any, str, str]) -> None:
    operator = compiled(engine, summation(tensor((4,))))
    initialise(operator)
    check_refused(operator, "table", negative)


@engine
@pytest.mark.parametrize("negative", DISPATCH_NEGATIVES, ids=lambda n: f"{n[0]}-{n[3]}-{n[4]}")
def test_dispatch_refuses(engine: str, negative: tuple[str, Any, Any, str, str]) -> None:
    check_refused(compiled(engine, summation(tensor((4,)))), "dispatch", negative)


@pytest.mark.parametrize("bindings", [None, 7, "ab", X, whole(X)])
def test_bindings_are_lists(bindings: Any) -> None:
    table = BindingTable(compiled("reference", summation(tensor((4,)))))
    for bind in (table.bind_inputs, table.bind_outputs):
        with pytest.raises(DMLError, match=r"\(B1\)"):
            bind(bindings)


def test_all_wrong_bindings_of_a_side_are_named() -> None:
    operator = compiled("reference", join(tensor((2,)), tensor((2,)), output=tensor((4,))))
    with pytest.raises(DMLError) as raised:
        operator.dispatch([X, X.astype(np.float64)], [poisoned()])
    assert [(v.rule, v.where) for v in raised.value.violations] == [
        ("(B6)", "InputTensors[1]"),
    ]
    with pytest.raises(DMLError) as raised:
        operator.dispatch([X[:1], None], [poisoned()])
    assert [(v.rule, v.where) for v in raised.value.violations] == [
        ("(B6)", "InputTensors[0]"),
        ("(B2)", "InputTensors[1]"),
    ]


@engine
def test_an_absent_tensor_is_bound_as_none(engine: str) -> None:
    operator = compiled(engine, pooling())
    x, scale = np.arange(4, dtype=np.uint8).reshape(1, 1, 1, 4), np.ones((1, 1, 1, 1), np.float32)
    output = poisoned(4)
    with pytest.raises(DMLError, match=r"found ndarray .*, expected None: the desc leaves it out \(B2\)"):
        operator.dispatch([x, scale, x, scale, None], [output])
    with pytest.raises(DMLError, match=r"list of 5: InputTensor, InputScaleTensor, .* \(B1\)"):
        operator.dispatch([x, scale, scale], [output])
    assert (output == 0xA5).all()
    operator.dispatch([x, scale, None, scale, None], [output])
    np.testing.assert_array_equal(output, [0, 1, 2, 3])


# Objects that hold memory


def sources() -> dict[str, Any]:
    """The bytes of X in all sorts of objects."""
    mapped = mmap.mmap(-1, 16)
    mapped[:] = X.tobytes()
    return {
        "bytes": X.tobytes(),
        "bytearray": bytearray(X.tobytes()),
        "memoryview": memoryview(X.tobytes()),
        "typed memoryview": memoryview(X),
        "mmap": mapped,
        "array of floats": array.array("f", X.tolist()),
        "array of bytes": array.array("B", X.tobytes()),
        "bytes in NumPy": X.view(np.uint8),
        "NumPy": X,
        "read-only": np.frombuffer(X.tobytes(), np.float32),
        "unaligned": np.frombuffer(b"\0" + X.tobytes(), np.uint8, offset=1),
        "unaligned floats": np.frombuffer(b"\0" + X.tobytes(), np.float32, offset=1),
        "longer than needed": X.tobytes() + b"\xa5" * 9,
    }


def targets() -> dict[str, Any]:
    return {
        "bytearray": bytearray(16),
        "memoryview": memoryview(bytearray(16)),
        "mmap": mmap.mmap(-1, 16),
        "array of floats": array.array("f", [0] * 4),
        "array of bytes": array.array("B", bytes(16)),
        "bytes in NumPy": np.zeros(16, np.uint8),
        "NumPy": np.zeros(4, np.float32),
        "unaligned": np.frombuffer(bytearray(17), np.uint8, offset=1),
        "longer than needed": bytearray(20),
    }


@engine
@pytest.mark.parametrize("through", ["dispatch", "table"])
@pytest.mark.parametrize("kind", sources())
def test_an_input_is_any_memory(engine: str, through: str, kind: str) -> None:
    operator = compiled(engine, summation(tensor((4,))))
    given, output = sources()[kind], np.zeros(4, np.float32)
    if through == "table":
        initialise(operator)
        run_table(operator, [whole(given)], [whole(output)])
    else:
        operator.dispatch([given], [output])
    np.testing.assert_array_equal(output, SUMS)


@engine
@pytest.mark.parametrize("through", ["dispatch", "table"])
@pytest.mark.parametrize("kind", targets())
def test_an_output_is_any_writable_memory(engine: str, through: str, kind: str) -> None:
    operator = compiled(engine, summation(tensor((4,))))
    output = targets()[kind]
    if through == "table":
        initialise(operator)
        run_table(operator, [whole(X)], [whole(output)])
    else:
        operator.dispatch([X], [output])
    np.testing.assert_array_equal(np.frombuffer(bytes(output), np.float32, 4), SUMS)
    assert not any(bytes(output)[16:])


@engine
def test_a_read_only_mapping_is_no_output(engine: str, tmp_path: Any) -> None:
    path = tmp_path / "data"
    path.write_bytes(X.tobytes())
    operator = compiled(engine, summation(tensor((4,))))
    initialise(operator)
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        output = np.zeros(4, np.float32)
        operator.dispatch([mapped], [output])
        np.testing.assert_array_equal(output, SUMS)
        with pytest.raises(DMLError, match=r"\(B3\)"):
            operator.dispatch([X], [mapped])
        with pytest.raises(DMLError, match=r"\(B3\)"):
            run_table(operator, [whole(X)], [whole(mapped)])
        gc.collect()  # the errors hold no view of the mapping


@engine
def test_an_array_needs_only_its_own_bytes(engine: str) -> None:
    """The rounding up to 4 is for explicit bindings."""
    desc = summation(tensor((3,), "FLOAT16"))
    operator = compiled(engine, desc)
    x, output = np.array([1, 2, 3], np.float16), np.zeros(3, np.float16)
    operator.dispatch([x], [output])
    np.testing.assert_array_equal(output, [1, 3, 6])
    operator.dispatch([x.tobytes()], [output])
    initialise(operator)
    with pytest.raises(DMLError, match=r"found 6 bytes, expected at least 8, TotalTensorSizeInBytes \(B4\)"):
        run_table(operator, [whole(x)], [whole(np.zeros(4, np.float16))])


@engine
def test_strided_descs_take_views_and_flat_memory(engine: str) -> None:
    desc = summation(tensor((2, 2), "FLOAT32", (1, 2)), tensor((2, 2), "FLOAT32", (5, 2)), axis=1)
    operator = compiled(engine, desc)
    memory = np.full(8, -1, np.float32)
    operator.dispatch([X], [memory])
    np.testing.assert_array_equal(memory, [1, -1, 4, -1, -1, 2, -1, 6])
    memory[:] = -1
    operator.dispatch([X.reshape(2, 2).T], [np.lib.stride_tricks.as_strided(memory, (2, 2), (20, 8))])
    np.testing.assert_array_equal(memory, [1, -1, 4, -1, -1, 2, -1, 6])


@engine
def test_guaranteed_alignment_replaces_that_of_16(engine: str) -> None:
    def aligned(alignment: int) -> OperatorDesc:
        return summation(
            DML_BUFFER_TENSOR_DESC(DataType=TensorDataType.FLOAT32, Sizes=(4,), GuaranteedBaseOffsetAlignment=alignment)
        )

    memory = np.zeros(64, np.uint8)
    memory[4:20] = X.view(np.uint8)
    four, sixty_four = compiled(engine, aligned(4)), compiled(engine, aligned(64))
    initialise(four)
    initialise(sixty_four)
    output = np.zeros(4, np.float32)
    run_table(four, [at(memory, 4)], [whole(output)])
    np.testing.assert_array_equal(output, SUMS)
    for operator, offset in ((four, 2), (sixty_four, 16)):
        with pytest.raises(DMLError, match=rf"found offset {offset}, expected a multiple of \d+ \(B5\)"):
            run_table(operator, [at(memory, offset)], [whole(output)])


@pytest.mark.parametrize("output", [[0.0, 0.0, 0.0, 0.0], (0.0, 0.0, 0.0, 0.0)])
def test_a_list_is_no_output(output: Any) -> None:
    with pytest.raises(DMLError):
        compiled("reference", summation(tensor((4,)))).dispatch([X], [output])


def test_an_array_of_objects_is_no_memory() -> None:
    operator = compiled("reference", summation(tensor((4,))))
    initialise(operator)
    output = np.zeros(2, object)
    before = output.tobytes()
    try:
        with pytest.raises(DMLError, match=r"\(B3\)"):
            run_table(operator, [whole(X)], [whole(output)])
        assert output.tobytes() == before
    finally:
        # Puts the pointers back, so that nothing follows what was written over them.
        np.frombuffer(output, np.uint8)[:] = np.frombuffer(before, np.uint8)


def test_a_missing_persistent_resource_is_asked_for_in_dispatchs_own_words() -> None:
    operator = compiled("reference", pooling(TensorFlags.OWNED_BY_DML))
    with pytest.raises(DMLError, match="initialise"):
        operator.dispatch([np.zeros((1, 1, 1, 4), np.uint8), None, None, None, None], [poisoned(4)])


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


# OWNED_BY_DML


X4 = np.arange(4, dtype=np.uint8).reshape(1, 1, 1, 4)
TWO, ONE = np.array([2], np.float32), np.array([1], np.float32)


def owned_inputs(first: Any = TWO, second: Any = ONE) -> list[Any]:
    return [None, first, None, second, None]


EXECUTION_INPUTS = [X4, None, None, None, None]


@engine
def test_owned_inputs_live_in_the_persistent_resource(engine: str) -> None:
    operator = compiled(engine, pooling(TensorFlags.OWNED_BY_DML))
    size = operator.binding_properties().PersistentResourceSize
    assert size > 0
    assert size % 256 == 0
    twice, once = operator.initialise(owned_inputs()), operator.initialise(owned_inputs(ONE))
    for persistent, factor in ((twice, 2), (once, 1), (twice, 2)):
        output = poisoned(4)
        operator.dispatch(EXECUTION_INPUTS, [output], persistent=persistent)
        np.testing.assert_array_equal(output, factor * np.arange(4))


@engine
def test_owned_inputs_are_copied(engine: str) -> None:
    operator = compiled(engine, pooling(TensorFlags.OWNED_BY_DML))
    scale = TWO.copy()
    persistent = operator.initialise(owned_inputs(scale))
    scale[:] = np.nan
    output = poisoned(4)
    operator.dispatch(EXECUTION_INPUTS, [output], persistent=persistent)
    np.testing.assert_array_equal(output, [0, 2, 4, 6])


@engine
@pytest.mark.parametrize("strides", [None, (1, 3), (0, 1), (9, 2)])
def test_an_owned_input_keeps_its_strides(engine: str, strides: tuple[int, int] | None) -> None:
    x = DML_BUFFER_TENSOR_DESC(
        DataType=TensorDataType.INT32, Sizes=(3, 3), Strides=strides, Flags=TensorFlags.OWNED_BY_DML
    )
    operator = compiled(engine, summation(x, tensor((3, 3), "INT32"), axis=1))
    memory = np.arange(25, dtype=np.int32)
    persistent = operator.initialise([memory])
    output = np.zeros((3, 3), np.int32)
    operator.dispatch([None], [output], persistent=persistent)
    view = np.lib.stride_tricks.as_strided(memory, (3, 3), [4 * step for step in strides or (3, 1)])
    np.testing.assert_array_equal(output, view.cumsum(1))


@engine
def test_owned_inputs_are_bound_at_initialisation_only(engine: str) -> None:
    operator = compiled(engine, pooling(TensorFlags.OWNED_BY_DML))
    persistent, output = operator.initialise(owned_inputs()), poisoned(4)
    with pytest.raises(DMLError, match=r"InputScaleTensor: .* it is OWNED_BY_DML, bound at initialisation \(B2\)"):
        operator.dispatch([X4, TWO, None, None, None], [output], persistent=persistent)
    with pytest.raises(DMLError, match=r"InputScaleTensor: found None.*\(B2\)"):
        operator.initialise(owned_inputs(None))
    with pytest.raises(DMLError, match=r"InputTensor: .* only what is OWNED_BY_DML is initialised \(B2\)"):
        operator.initialise([X4, *owned_inputs()[1:]])
    with pytest.raises(DMLError, match=r"\(B6\)"):
        operator.initialise(owned_inputs(np.float64([2])))
    with pytest.raises(DMLError, match=r"\(B1\)"):
        operator.initialise([TWO, ONE])
    assert (output == 0xA5).all()


@engine
def test_a_persistent_resource_is_the_one_initialised(engine: str) -> None:
    operator = compiled(engine, pooling(TensorFlags.OWNED_BY_DML))
    other = compiled(engine, pooling(TensorFlags.OWNED_BY_DML))
    persistent, output = operator.initialise(owned_inputs()), poisoned(4)
    alien = other.initialise(owned_inputs())
    zeros = np.zeros_like(persistent)
    for given, rule in ((None, "(B9)"), (zeros, "(B9)"), (alien, "(B9)"), (persistent[:-1], "(B4)"), (7, "(B3)")):
        with pytest.raises(DMLError) as raised:
            operator.dispatch(EXECUTION_INPUTS, [output], persistent=given)
        assert [v.rule for v in raised.value.violations] == [rule]
        assert (output == 0xA5).all()


@engine
def test_nothing_owned_needs_no_persistent_resource(engine: str) -> None:
    operator = compiled(engine, summation(tensor((4,))))
    assert operator.binding_properties().PersistentResourceSize == 0
    empty = operator.initialise([None])
    assert empty.size == 0
    with pytest.raises(DMLError, match=r"\(B9\)"):
        operator.dispatch([X], [np.zeros(4, np.float32)], persistent=empty)


@engine
def test_an_output_is_not_in_the_persistent_resource(engine: str) -> None:
    operator = compiled(engine, pooling(TensorFlags.OWNED_BY_DML))
    persistent = operator.initialise(owned_inputs())
    before = persistent.copy()
    with pytest.raises(DMLError, match=r"\(B7\)"):
        operator.dispatch(EXECUTION_INPUTS, [persistent[:4]], persistent=persistent)
    np.testing.assert_array_equal(persistent, before)


def initialise_owned(operator: CompiledOperator, resource: DML_BUFFER_BINDING | None, inputs: Any = None) -> None:
    device = operator.device
    initializer = device.create_operator_initializer([operator])
    table = device.create_binding_table(initializer)
    bindings = [item if item is None else whole(item) for item in (inputs or owned_inputs())]
    table.bind_inputs([DML_BUFFER_ARRAY_BINDING(Bindings=bindings)])
    table.bind_outputs([resource])
    device.dispatch(initializer, table)


@engine
def test_owned_inputs_through_the_table(engine: str) -> None:
    operator = compiled(engine, pooling(TensorFlags.OWNED_BY_DML))
    size = operator.binding_properties().PersistentResourceSize
    memory, output = poisoned(size + 512), poisoned(4)
    resource = at(memory, 256, size)
    initialise_owned(operator, resource)
    assert (memory[:256] == 0xA5).all()
    assert (memory[256 + size :] == 0xA5).all()
    inputs = [whole(X4), None, None, None, None]
    run_table(operator, inputs, [whole(output)], resource)
    np.testing.assert_array_equal(output, [0, 2, 4, 6])
    output[:] = 0xA5
    for given, rule in (
        (None, "(B9)"),
        (memory, "(B2)"),
        (at(memory, 0), "(B9)"),
        (at(np.zeros_like(memory), 256), "(B9)"),
        (at(memory, 128), "(B5)"),
        (at(memory, 256, size - 1), "(B4)"),
    ):
        with pytest.raises(DMLError) as raised:
            run_table(operator, inputs, [whole(output)], given)
        assert [v.rule for v in raised.value.violations] == [rule]
        assert (output == 0xA5).all()
    with pytest.raises(DMLError, match=r"\(B2\)"):
        run_table(operator, [whole(X4), whole(TWO), None, None, None], [whole(output)], resource)


@pytest.mark.parametrize(
    ("resource", "rule"),
    [
        (None, "(B2)"),
        (poisoned(1024), "(B2)"),
        (at(poisoned(1024), 16), "(B5)"),
        (at(poisoned(1024), 0, 256), "(B4)"),
        (whole(bytes(1024)), "(B3)"),
    ],
)
def test_initialisation_wants_a_persistent_resource(resource: Any, rule: str) -> None:
    operator = compiled("reference", pooling(TensorFlags.OWNED_BY_DML))
    with pytest.raises(DMLError) as raised:
        initialise_owned(operator, resource)
    assert [v.rule for v in raised.value.violations] == [rule]


@pytest.mark.parametrize(
    ("inputs", "outputs", "rule"),
    [
        (None, None, "(B2)"),
        ([], None, "(B1)"),
        ([None], [whole(poisoned(1024))], "(B2)"),
        ([whole(TWO)], [whole(poisoned(1024))], "(B2)"),
        ([DML_BUFFER_ARRAY_BINDING(Bindings=[whole(TWO)])], [whole(poisoned(1024))], "(B1)"),
        ([DML_BUFFER_ARRAY_BINDING(Bindings=7)], [whole(poisoned(1024))], "(B1)"),
        ([DML_BUFFER_ARRAY_BINDING(Bindings=[None] * 5)], [whole(poisoned(1024))], "(B2)"),
        ([DML_BUFFER_ARRAY_BINDING(Bindings=owned_inputs(whole(TWO), whole(ONE)))], [], "(B1)"),
    ],
)
def test_an_initializers_table(inputs: Any, outputs: Any, rule: str) -> None:
    operator = compiled("reference", pooling(TensorFlags.OWNED_BY_DML))
    initializer = operator.device.create_operator_initializer([operator])
    table = operator.device.create_binding_table(initializer)
    if inputs is not None:
        table.bind_inputs(inputs)
    if outputs is not None:
        table.bind_outputs(outputs)
    with pytest.raises(DMLError) as raised:
        operator.device.dispatch(initializer, table)
    assert {v.rule for v in raised.value.violations} == {rule}


def two_at_once(operators: Sequence[CompiledOperator], resources: Sequence[Any], first: Any = ONE) -> None:
    device = operators[0].device
    initializer = device.create_operator_initializer(operators)
    table = device.create_binding_table(initializer)
    bindings = owned_inputs(whole(TWO), whole(first))
    table.bind_inputs([DML_BUFFER_ARRAY_BINDING(Bindings=bindings)] * len(operators))
    table.bind_outputs(resources)
    device.dispatch(initializer, table)


def on_one_device(count: int) -> list[CompiledOperator]:
    device = compiled("reference", pooling()).device
    operator = device.create_operator(pooling(TensorFlags.OWNED_BY_DML))
    return [device.compile_operator(operator) for _ in range(count)]


def test_an_initializer_writes_nothing_where_one_operator_is_wrong() -> None:
    operators, memory = on_one_device(2), poisoned(4096)
    size = operators[0].binding_properties().PersistentResourceSize
    with pytest.raises(DMLError, match=r"\(B5\)"):
        two_at_once(operators, [at(memory, 0, size), at(memory, 2000)])
    assert (memory == 0xA5).all()
    two_at_once(operators, [at(memory, 0, size), at(memory, 2048)])
    assert (memory[size:2048] == 0xA5).all()


def test_persistent_resources_of_one_initialisation_share_nothing() -> None:
    memory = poisoned(4096)
    with pytest.raises(DMLError, match=r"bind_outputs\[1\]: found memory shared with bind_outputs\[0\].*\(B8\)"):
        two_at_once(on_one_device(2), [at(memory, 0, 2048), at(memory, 256, 2048)])
    assert (memory == 0xA5).all()


def test_a_persistent_resource_shares_nothing_with_what_it_is_filled_from() -> None:
    memory = np.ones(1024, np.float32)
    with pytest.raises(DMLError, match=r"bind_outputs\[0\]: found memory shared with .*Tensor.*\(B7\)"):
        two_at_once(on_one_device(1), [at(memory, 0, 2048)], memory[64:65])
    assert (memory == 1).all()


def test_a_new_buffer_is_not_mistaken_for_one_that_was_freed() -> None:
    operator = compiled("reference", pooling(TensorFlags.OWNED_BY_DML))
    freed = address(operator.initialise(owned_inputs()))
    tried: list[np.ndarray] = []
    while len(tried) < 100 and (not tried or address(tried[-1]) != freed):
        tried.append(np.zeros(operator.binding_properties().PersistentResourceSize, np.uint8))
    with pytest.raises(DMLError, match=r"\(B9\)"):
        operator.dispatch(EXECUTION_INPUTS, [poisoned(4)], persistent=tried[-1])


@engine
def test_a_persistent_resource_may_move(engine: str) -> None:
    """It is known by what it holds."""
    operator = compiled(engine, pooling(TensorFlags.OWNED_BY_DML))
    output = poisoned(4)
    operator.dispatch(EXECUTION_INPUTS, [output], persistent=operator.initialise(owned_inputs()).copy())
    np.testing.assert_array_equal(output, [0, 2, 4, 6])
