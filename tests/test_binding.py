"""Bindings: every rule through ``compiled.dispatch`` and through the table; where one is broken, nothing is written."""

from __future__ import annotations

import array
import gc
import mmap
from typing import Any

import numpy as np
import pytest

from anydml import (
    DML_BUFFER_ARRAY_BINDING,
    DML_BUFFER_TENSOR_DESC,
    BindingTable,
    CompiledOperator,
    DMLError,
    TensorDataType,
    TensorFlags,
)
from anydml.operators.schema import OperatorDesc
from binding_calls import (
    SUMS,
    X,
    at,
    engine,
    initialise,
    join,
    poisoned,
    pooling,
    run_dispatch,
    run_table,
    summation,
    whole,
)
from cases import tensor
from harness import compiled

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
