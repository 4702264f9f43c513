"""Devices and the life cycle on them."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from anydml import (
    DML_BUFFER_BINDING,
    DML_CUMULATIVE_SUMMATION_OPERATOR_DESC,
    DML_JOIN_OPERATOR_DESC,
    DML_QUANTIZED_LINEAR_AVERAGE_POOLING_OPERATOR_DESC,
    BindingProperties,
    Device,
    DMLError,
    DMLMemoryError,
    DMLValueError,
    ExecutionFlags,
    Feature,
    FeatureLevel,
    HResult,
    TensorDataType,
)
from anydml.backends.base import Declined, Kernel
from cases import tensor
from harness import ENGINES, compiled

engine = pytest.mark.parametrize("engine", ENGINES)

FOUR = tensor((4,))
SUM = DML_CUMULATIVE_SUMMATION_OPERATOR_DESC(InputTensor=FOUR, OutputTensor=FOUR, Axis=0)
X, SUMS = np.array([1, 2, 3, 4], np.float32), [1, 3, 6, 10]


def refused(call: Callable[[], Any], *rules: str) -> DMLError:
    with pytest.raises(DMLError) as raised:
        call()
    assert [violation.rule for violation in raised.value.violations] == list(rules)
    return raised.value


# Devices


@engine
def test_a_device_by_name(engine: str) -> None:
    device = Device(engine)
    assert (device.name, device.feature_level, device.strict, device.debug) == (engine, 0x6400, False, False)
    assert repr(device) == f"Device('{engine}', FeatureLevel.LEVEL_6_4)"


def test_a_device_has_its_options() -> None:
    device = Device("reference", FeatureLevel.LEVEL_3_1, strict=True, debug=True)
    assert (device.feature_level, device.strict, device.debug) == (FeatureLevel.LEVEL_3_1, True, True)
    assert repr(device) == "Device('reference', FeatureLevel.LEVEL_3_1, strict=True)"


def test_the_cpu_is_the_default() -> None:
    assert Device().name == "cpu"


@pytest.mark.parametrize("name", ["CPU", "", "gpu", "cuda:-1", None, 7, ["cpu"]])
def test_other_names_are_refused(name: Any) -> None:
    error = refused(lambda: Device(name), "(D1)")
    assert error.hresult == HResult.DXGI_ERROR_UNSUPPORTED
    assert repr(name) in str(error)
    assert "reference" in str(error)


@pytest.mark.parametrize("level", ["6.5", 0, 0x6500, None, [FeatureLevel.LEVEL_6_4]])
def test_other_levels_are_refused(level: Any) -> None:
    error = refused(lambda: Device("reference", level), "(F7)")
    assert error.hresult == HResult.DXGI_ERROR_UNSUPPORTED
    assert "LEVEL_6_4" in str(error)


def test_a_level_by_its_value() -> None:
    assert Device("reference", 0x3100).feature_level is FeatureLevel.LEVEL_3_1  # type: ignore[arg-type]


def test_a_name_that_cannot_be_compared() -> None:
    refused(lambda: Device(np.array(["cpu", "reference"])), "(D1)")


# Feature support


@pytest.mark.parametrize("data_type", TensorDataType)
@pytest.mark.parametrize("level", [FeatureLevel.LEVEL_1_0, FeatureLevel.LEVEL_6_2, FeatureLevel.LEVEL_6_3])
def test_data_types_are_there_but_4_bit_ones_from_6_3_on(data_type: TensorDataType, level: FeatureLevel) -> None:
    expected = data_type.name != "UNKNOWN" and (not data_type.name.endswith("INT4") or level.number == "6.3")
    found = Device("reference", level).check_feature_support(Feature.TENSOR_DATA_TYPE_SUPPORT, data_type)
    assert found is expected


@pytest.mark.parametrize(
    ("levels", "highest"),
    [
        (["LEVEL_1_0"], "LEVEL_1_0"),
        (["LEVEL_1_0", "LEVEL_6_4", "LEVEL_3_0"], "LEVEL_3_0"),
        (list(FeatureLevel.__members__), "LEVEL_4_0"),
    ],
)
def test_the_highest_of_the_levels_asked_for(levels: list[str], highest: str) -> None:
    device = Device("reference", FeatureLevel.LEVEL_4_0)
    found = device.check_feature_support(Feature.FEATURE_LEVELS, [FeatureLevel[level] for level in levels])
    assert found is FeatureLevel[highest]


@pytest.mark.parametrize("levels", [[], [FeatureLevel.LEVEL_5_0], ["LEVEL_1_0"], [0x7000]])
def test_no_level_is_there(levels: list[Any]) -> None:
    device = Device("reference", FeatureLevel.LEVEL_4_0)
    error = refused(lambda: device.check_feature_support(Feature.FEATURE_LEVELS, levels), "(D5)")
    assert error.hresult == HResult.DXGI_ERROR_UNSUPPORTED
    assert "up to 4.0" in str(error)


@pytest.mark.parametrize(
    ("feature", "query"),
    [
        (Feature.TENSOR_DATA_TYPE_SUPPORT, "FLOAT32"),
        (Feature.TENSOR_DATA_TYPE_SUPPORT, 1),
        (Feature.FEATURE_LEVELS, FeatureLevel.LEVEL_1_0),
        (Feature.FEATURE_LEVELS, None),
        ("FEATURE_LEVELS", [FeatureLevel.LEVEL_1_0]),
        (7, []),
    ],
)
def test_other_questions_are_refused(feature: Any, query: Any) -> None:
    error = refused(lambda: Device("reference").check_feature_support(feature, query), "(D5)")
    assert error.hresult == HResult.E_INVALIDARG


# The life cycle


@engine
def test_from_desc_to_result(engine: str) -> None:
    device = Device(engine)
    operator = device.create_operator(SUM)
    assert operator.desc is SUM
    ready = device.compile_operator(operator)
    initializer = device.create_operator_initializer([ready])
    device.dispatch(initializer, device.create_binding_table(initializer))
    memory = np.zeros(8, np.float32)
    memory[:4] = X
    table = device.create_binding_table(ready)
    table.bind_inputs([DML_BUFFER_BINDING(Buffer=memory, Offset=0, SizeInBytes=16)])
    table.bind_outputs([DML_BUFFER_BINDING(Buffer=memory, Offset=16, SizeInBytes=16)])
    for _ in range(3):
        memory[4:] = 0
        device.dispatch(ready, table)
        np.testing.assert_array_equal(memory[4:], SUMS)


@engine
def test_explain_says_who_serves(engine: str) -> None:
    operator = compiled(engine, SUM)
    assert operator.explain().startswith(f"CUMULATIVE_SUMMATION is served by {engine}: ")


def test_explain_says_why_others_declined() -> None:
    class Choosy:
        name = "choosy"

        def compile(self, *operator: Any) -> Declined:
            return Declined("it is Saturday")

    device = Device("reference")
    device._engines = (Choosy(), *device._engines)
    operator = device.compile_operator(device.create_operator(SUM))
    assert operator.engine == "reference"
    assert operator.explain().splitlines()[1:] == ["choosy declined: it is Saturday"]


def test_the_first_engine_that_takes_an_operator_serves_it() -> None:
    class Zeros:
        name = "zeros"

        def compile(self, *operator: Any) -> Kernel:
            return Kernel("nothing but zeros", lambda inputs, outputs: outputs[0].fill(0))

    device = Device("reference")
    device._engines = (Zeros(), *device._engines)
    operator = device.compile_operator(device.create_operator(SUM))
    assert operator.explain() == "CUMULATIVE_SUMMATION is served by zeros: nothing but zeros"
    output = np.ones(4, np.float32)
    operator.dispatch([X], [output])
    assert not output.any()


def test_binding_properties() -> None:
    operator = compiled("reference", SUM)
    assert operator.binding_properties() == BindingProperties(2, 0, 0)
    join = DML_JOIN_OPERATOR_DESC(InputTensors=[FOUR] * 3, OutputTensor=tensor((12,)), Axis=0)
    assert compiled("reference", join).binding_properties().RequiredDescriptorCount == 4
    initializer = operator.device.create_operator_initializer([operator, operator])
    assert initializer.binding_properties() == BindingProperties(4, 0, 0)


@pytest.mark.parametrize("flags", [*ExecutionFlags, ExecutionFlags.NONE, ExecutionFlags(7)])
def test_execution_flags_are_accepted(flags: ExecutionFlags) -> None:
    device = Device("reference")
    output = np.zeros(4, np.float32)
    device.compile_operator(device.create_operator(SUM), flags).dispatch([X], [output])
    np.testing.assert_array_equal(output, SUMS)


@pytest.mark.parametrize("flags", [0, 1, None, "NONE"])
def test_other_flags_are_refused(flags: Any) -> None:
    device = Device("reference")
    error = refused(lambda: device.compile_operator(device.create_operator(SUM), flags), "(D4)")
    assert "ExecutionFlags" in str(error)


def test_a_flag_that_is_none_is_refused() -> None:
    device = Device("reference")
    refused(lambda: device.compile_operator(device.create_operator(SUM), ExecutionFlags(64)), "(D4)")


def test_objects_of_another_device_are_refused() -> None:
    here, there = Device("reference"), Device("reference")
    operator = here.create_operator(SUM)
    ready = here.compile_operator(operator)
    initializer = here.create_operator_initializer([ready])
    table = here.create_binding_table(ready)
    for call in (
        lambda: there.compile_operator(operator),
        lambda: there.create_operator_initializer([ready]),
        lambda: there.create_binding_table(ready),
        lambda: there.create_binding_table(initializer),
        lambda: there.dispatch(ready, table),
        lambda: there.dispatch(initializer, here.create_binding_table(initializer)),
    ):
        assert "Device('reference'" in str(refused(call, "(D2)"))


@pytest.mark.parametrize("thing", [None, 7, SUM, "operator"])
def test_things_that_are_no_objects_of_a_device(thing: Any) -> None:
    device = Device("reference")
    ready = device.compile_operator(device.create_operator(SUM))
    for call in (
        lambda: device.compile_operator(thing),
        lambda: device.create_operator_initializer([thing]),
        lambda: device.create_binding_table(thing),
        lambda: device.dispatch(thing, device.create_binding_table(ready)),
        lambda: device.dispatch(ready, thing),
        lambda: device.compile_operator(ready),  # type: ignore[arg-type]
    ):
        refused(call, "(D2)")


@pytest.mark.parametrize("operators", [None, 7])
def test_an_initializer_takes_a_list(operators: Any) -> None:
    with pytest.raises(DMLError):
        Device("reference").create_operator_initializer(operators)


def test_a_table_is_for_its_own_dispatchable() -> None:
    device = Device("reference")
    ready, other = (device.compile_operator(device.create_operator(SUM)) for _ in range(2))
    table = device.create_binding_table(other)
    refused(lambda: device.dispatch(ready, table), "(D2)")
    table.bind_inputs([])
    table.reset(ready)
    assert (table.dispatchable, table.inputs, table.outputs, table.persistent) == (ready, None, None, None)


def test_an_operator_is_initialised_before_a_table_is_dispatched() -> None:
    device = Device("reference")
    ready = device.compile_operator(device.create_operator(SUM))
    table = device.create_binding_table(ready)
    error = refused(lambda: device.dispatch(ready, table), "(D3)")
    assert "OperatorInitializer" in str(error)


def test_an_initializer_is_dispatched_once() -> None:
    device = Device("reference")
    ready = device.compile_operator(device.create_operator(SUM))
    initializer = device.create_operator_initializer([ready])
    table = device.create_binding_table(initializer)
    device.dispatch(initializer, table)
    refused(lambda: device.dispatch(initializer, table), "(D3)")


def test_an_empty_table_is_refused() -> None:
    device = Device("reference")
    ready = device.compile_operator(device.create_operator(SUM))
    ready.initialise([None])
    refused(lambda: device.dispatch(ready, device.create_binding_table(ready)), "(B1)", "(B1)")


def test_a_device_outlives_what_it_refused() -> None:
    """DirectML removes the device."""
    device = Device("reference")
    ready = device.compile_operator(device.create_operator(SUM))
    output = np.zeros(4, np.float32)
    for _ in range(3):
        refused(lambda: ready.dispatch([X], [None]), "(B2)")
    ready.dispatch([X], [output])
    np.testing.assert_array_equal(output, SUMS)


def test_a_desc_is_refused_whole() -> None:
    with pytest.raises(DMLValueError, match=r"CUMULATIVE_SUMMATION\.Axis: found 4, expected less than 1.*\(C3\)"):
        Device("reference").create_operator(
            DML_CUMULATIVE_SUMMATION_OPERATOR_DESC(InputTensor=FOUR, OutputTensor=FOUR, Axis=4)
        )


def test_an_engine_without_enough_memory() -> None:
    """Four bytes of input, broadcast, of which the reference makes a wide copy."""
    size = 2**29
    one, real = tensor((1, 1, size, size), "UINT8", (0, 0, 0, 0)), tensor((1,))
    desc = DML_QUANTIZED_LINEAR_AVERAGE_POOLING_OPERATOR_DESC(
        InputTensor=one,
        InputScaleTensor=real,
        OutputScaleTensor=real,
        OutputTensor=tensor((1, 1, 1, 1), "UINT8"),
        Strides=(1, 1),
        WindowSize=(size, size),
        StartPadding=(0, 0),
        EndPadding=(0, 0),
        Dilations=(1, 1),
    )
    scale, output = np.ones(1, np.float32), np.full(1, 0xA5, np.uint8)
    with pytest.raises(DMLMemoryError) as raised:
        compiled("reference", desc).dispatch([np.ones(4, np.uint8), scale, None, scale, None], [output])
    assert raised.value.violations[0].rule == "(D6)"
    assert raised.value.hresult == HResult.E_OUTOFMEMORY
    assert output[0] == 0xA5


# Threads


@engine
def test_threads_share_a_device(engine: str) -> None:
    device = Device(engine)

    def life(i: int) -> np.ndarray:
        size = 1 + i % 17
        desc = DML_CUMULATIVE_SUMMATION_OPERATOR_DESC(InputTensor=tensor((size,)), OutputTensor=tensor((size,)), Axis=0)
        output = np.zeros(size, np.float32)
        device.compile_operator(device.create_operator(desc)).dispatch([np.full(size, i, np.float32)], [output])
        return output

    with ThreadPoolExecutor(8) as pool:
        for i, output in enumerate(pool.map(life, range(200))):
            np.testing.assert_array_equal(output, i * np.arange(1, 2 + i % 17))


def test_threads_dispatch_an_initializer_once() -> None:
    device = Device("reference")
    ready = device.compile_operator(device.create_operator(SUM))
    initializer = device.create_operator_initializer([ready])

    def dispatch(_: int) -> bool:
        try:
            device.dispatch(initializer, device.create_binding_table(initializer))
        except DMLError:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(dispatch, range(64))) == 1


def test_a_device_has_the_methods_that_users_call_alone() -> None:
    """Which kernel serves an operator is what the package asks itself, not they."""
    methods = {"check_feature_support", "compile_graph", "compile_operator", "create_binding_table", "create_operator"}
    methods |= {"create_operator_initializer", "dispatch"}
    assert {name for name in dir(Device) if not name.startswith("_")} == methods
