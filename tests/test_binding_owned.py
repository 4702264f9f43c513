"""Bindings of what DirectML owns: initialisers and persistent resources."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from anydml import (
    DML_BUFFER_ARRAY_BINDING,
    DML_BUFFER_BINDING,
    DML_BUFFER_TENSOR_DESC,
    DML_CONVOLUTION_OPERATOR_DESC,
    DML_ELEMENT_WISE_ADD_OPERATOR_DESC,
    CompiledOperator,
    ConvolutionDirection,
    ConvolutionMode,
    DMLError,
    TensorDataType,
    TensorFlags,
)
from anydml.runtime.binding import address
from binding_calls import X, at, engine, poisoned, pooling, run_table, summation, whole
from cases import tensor
from harness import compiled

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


def test_what_was_prepared_runs_at_a_glance_only_where_the_rules_hold() -> None:
    """A dispatch that is like the one before does not look at the rules again, and must see what is not like it."""
    sizes = {"InputTensor": (1, 2, 1, 4), "FilterTensor": (1, 2, 1, 1), "OutputTensor": (1, 1, 1, 4)}
    tensors: dict[str, Any] = {
        name: DML_BUFFER_TENSOR_DESC(DataType=TensorDataType.FLOAT32, Sizes=each) for name, each in sizes.items()
    }
    tensors["FilterTensor"] = replace(tensors["FilterTensor"], Flags=TensorFlags.OWNED_BY_DML)
    operator = compiled(
        "cpu",
        DML_CONVOLUTION_OPERATOR_DESC(
            **tensors,
            Mode=ConvolutionMode.CROSS_CORRELATION,
            Direction=ConvolutionDirection.FORWARD,
            Strides=(1, 1),
            Dilations=(1, 1),
            StartPadding=(0, 0),
            EndPadding=(0, 0),
            OutputPadding=(0, 0),
            GroupCount=1,
        ),
    )
    x = np.arange(8, dtype=np.float32).reshape(sizes["InputTensor"])
    filters = np.array([1, 10], np.float32).reshape(sizes["FilterTensor"])
    first, second = operator.initialise([None, filters, None]), operator.initialise([None, -filters, None])
    output = np.empty(sizes["OutputTensor"], np.float32)
    for persistent, sign in ((first, 1), (first, 1), (second, -1), (second, -1), (first, 1)):
        output[...] = np.nan
        operator.dispatch([x, None, None], [output], persistent=persistent)
        np.testing.assert_array_equal(output.ravel(), sign * (x[0, 0, 0] + 10 * x[0, 1, 0]))
    inside = first[-16:].view(np.float32).reshape(output.shape)
    for inputs, written in ([x, filters, None], output), ([x, None, None], inside), ([x[:, :1], None, None], output):
        operator.dispatch([x, None, None], [output], persistent=first)
        with pytest.raises(DMLError):
            operator.dispatch(inputs, [written], persistent=first)
    first[:64] = 0
    with pytest.raises(DMLError):
        operator.dispatch([x, None, None], [output], persistent=first)


def test_owned_inputs_that_are_not_prepared_run_at_a_glance_only_where_the_rules_hold() -> None:
    """As above, of an operator that reads them where they lie."""
    plain = tensor((1, 1, 2, 3), "INT32")
    owned = replace(plain, Flags=TensorFlags.OWNED_BY_DML)
    operator = compiled("cpu", DML_ELEMENT_WISE_ADD_OPERATOR_DESC(ATensor=plain, BTensor=owned, OutputTensor=plain))
    a = np.arange(6, dtype=np.int32).reshape(1, 1, 2, 3)
    first, second = operator.initialise([None, 10 * a]), operator.initialise([None, -a])
    output = np.empty_like(a)
    for persistent, factor in ((first, 11), (first, 11), (second, 0), (second, 0), (first, 11)):
        output[...] = 77
        operator.dispatch([a, None], [output], persistent=persistent)
        np.testing.assert_array_equal(output, factor * a)
    inside = first[-24:].view(np.int32).reshape(a.shape)
    for inputs, written in ([a, a], output), ([a, None], inside), ([a[:, :, :1], None], output), ([None, None], output):
        operator.dispatch([a, None], [output], persistent=first)
        with pytest.raises(DMLError):
            operator.dispatch(inputs, [written], persistent=first)
    first[:64] = 0
    with pytest.raises(DMLError):
        operator.dispatch([a, None], [output], persistent=first)
