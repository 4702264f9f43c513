"""PyDirectML: the names, defaults and orders of Microsoft's module, and that its models compute."""

from __future__ import annotations

import inspect
from enum import IntEnum, IntFlag
from typing import Any

import numpy as np
import pytest

import pydirectml as dml
from anydml import DMLError

FUNCTIONS = {
    "input_tensor": "scope input_index tensor_desc",
    "convolution": "input filter bias=None mode=CROSS_CORRELATION direction=FORWARD strides=() dilations=() "
    "start_padding=() end_padding=() output_padding=() group_count=1 fused_activation=none output_sizes=()",
    "up_sample_2d": "input scale_size interpolation_mode",
    "activation_relu": "input",
    "activation_sigmoid": "input",
    "activation_identity": "input",
    "activation_tanh": "input",
    "activation_linear": "input alpha beta",
    "activation_soft_max": "input",
    "add": "a b fused_activation=none",
    "subtract": "a b",
    "multiply": "a b",
    "divide": "a b",
    "padding": "input padding_mode padding_value start_padding end_padding",
    "mean_variance_normalization": "input scale=None bias=None axes=() normalize_variance epsilon "
    "fused_activation=none",
    "slice": "input input_window_offsets input_window_sizes input_window_strides",
    "value_scale_2d": "input scale bias",
    "batch_normalization": "input mean variance scale bias spatial epsilon fused_activation=none",
    "local_response_normalization": "input cross_channel local_size alpha beta bias",
    "gemm": "a b c=None trans_a=NONE trans_b=NONE alpha=1.0 beta=1.0 fused_activation=none",
    "average_pooling": "input strides window_sizes start_padding end_padding include_padding",
    "max_pooling": "input window_sizes strides=() start_padding=() end_padding=() dilations=() output_indices=False",
    "reinterpret": "input new_type new_size new_strides",
    "join": "input axis",
    "gru": "input weight recurrence bias=None hidden_init=None sequence_lengths=None activation_descs direction "
    "linear_before_reset=1 output_options",
    "gather": "input indices axis index_dimensions",
}
CLASSES = (
    "Binding Device GraphBuilder Model Dimensions TensorPolicy TensorDesc TensorData Expression Size2D FusedActivation "
    "MaxPoolingOutputs GRUOutputs"
)
ENUMS = (
    "TensorDataType TensorFlags MatrixTransform RecurrentNetworkDirection OutputOptions ConvolutionMode "
    "ConvolutionDirection InterpolationMode PaddingMode ExecutionFlags OperatorType"
)


def shown(default: Any) -> str:
    if isinstance(default, dml.FusedActivation):
        assert default.activation == dml.OperatorType.INVALID
        return "none"
    return default.name if isinstance(default, IntEnum) else str(default)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_have_the_names_orders_and_defaults(name: str) -> None:
    parameters = list(inspect.signature(getattr(dml, name)).parameters.values())
    expected = [each.partition("=") for each in FUNCTIONS[name].split()]
    assert [each.name for each in parameters] == [word for word, _, _ in expected]
    for parameter, (_, has_default, default) in zip(parameters, expected, strict=True):
        if has_default:
            assert shown(parameter.default) in (default, {"1": "True"}.get(default)), parameter


def test_there_is_everything() -> None:
    assert len(FUNCTIONS) == 26
    assert all(inspect.isclass(getattr(dml, name)) for name in CLASSES.split())
    assert len(CLASSES.split()) == 13
    assert all(issubclass(getattr(dml, name), (IntEnum, IntFlag)) for name in ENUMS.split())
    assert len(ENUMS.split()) == 11


def test_members_of_enums_are_names_of_the_module() -> None:
    assert dml.NONE is dml.ExecutionFlags.NONE
    assert dml.FORWARD is dml.ConvolutionDirection.FORWARD
    assert dml.CONVOLUTION is dml.OperatorType.CONVOLUTION
    assert dml.FLOAT32 is dml.TensorDataType.FLOAT32
    assert dml.BIDIRECTIONAL is dml.RecurrentNetworkDirection.BIDIRECTIONAL
    assert not hasattr(dml, "Both")


def test_tensor_descs() -> None:
    kind, owned = dml.TensorDataType.FLOAT32, dml.TensorFlags.OWNED_BY_DML
    plain = dml.TensorDesc(kind, [1, 2, 3, 4])
    assert (plain.data_type, plain.flags, plain.sizes, plain.strides) == (
        kind,
        dml.TensorFlags.NONE,
        [1, 2, 3, 4],
        None,
    )
    assert (plain.total_tensor_size_in_bytes, plain.guaranteed_base_offset_alignment) == (96, 0)
    assert repr(plain) == "dml.TensorDesc of type 1 and shape [1,2,3,4] with flags 0"
    assert dml.TensorDesc(kind, owned, [1, 2]).flags == owned
    assert dml.TensorDesc(kind, [1, 8, 3, 3], [8, 1, 0, 0]).total_tensor_size_in_bytes == 32
    full = dml.TensorDesc(kind, owned, [2], [2], 64, 256)
    assert (full.strides, full.total_tensor_size_in_bytes, full.guaranteed_base_offset_alignment) == ([2], 64, 256)
    interleaved = dml.TensorDesc(kind, [2, 3, 4, 5], dml.TensorPolicy.interleaved_channel)
    assert interleaved.strides == [60, 1, 15, 3]
    assert dml.TensorDesc(kind, owned, [2, 3, 4, 5], dml.TensorPolicy.default).strides is None
    with pytest.raises(DMLError, match="TensorDesc: found"):
        dml.TensorDesc(kind)


def test_a_model_computes() -> None:
    device = dml.Device(False, True)
    assert repr(device) == "dml.Device on CPU"
    builder = dml.GraphBuilder(device)
    kind, owned = dml.TensorDataType.FLOAT32, dml.TensorFlags.OWNED_BY_DML
    x = dml.input_tensor(builder, 0, dml.TensorDesc(kind, [1, 2, 1, 3]))
    weights = dml.input_tensor(builder, 1, dml.TensorDesc(kind, owned, [1, 2, 1, 3]))
    scale = dml.input_tensor(builder, 2, dml.TensorDesc(kind, [1, 2, 1, 3], [2, 1, 0, 0]))
    unused = dml.input_tensor(builder, 3, dml.TensorDesc(kind, [1]))
    relu = dml.FusedActivation(dml.OperatorType.ACTIVATION_RELU)
    added = dml.add(x, weights, relu)
    result = dml.multiply(added, scale)
    assert result.get_output_desc().sizes == [1, 2, 1, 3]
    model = builder.build(dml.ExecutionFlags.NONE, [result, added])
    data = np.array([1, -2, 3, 4, 5, -6])  # of integers, which become float32
    bindings = [dml.Binding(x, data), dml.Binding(weights, np.full(6, 1.0)), None]
    bindings += [dml.Binding(scale, [10, 100]), dml.Binding(unused, [7])]
    expected = np.maximum(0, data + 1).reshape(1, 2, 1, 3).astype(np.float32)
    for _ in range(2):
        first, second = device.compute(model, bindings, [result, added])
        np.testing.assert_array_equal(np.array(first), expected * np.array([10, 100], np.float32).reshape(1, 2, 1, 1))
        np.testing.assert_array_equal(np.array(second), expected)
    # Other weights are initialised anew.
    bindings[1] = dml.Binding(weights, np.zeros(6))
    (first,) = device.compute(model, bindings, [added])
    np.testing.assert_array_equal(np.array(first).ravel(), np.maximum(0, data))


def test_data_keep_the_type_of_their_tensor() -> None:
    device = dml.Device(False)
    builder = dml.GraphBuilder(device)
    x = dml.input_tensor(builder, 0, dml.TensorDesc(dml.TensorDataType.INT32, [2]))
    results = [x - x, x + x]
    model = builder.build(dml.NONE, results)
    outputs = [np.array(each) for each in device.compute(model, [dml.Binding(x, [2**30 + 1, 3])], results)]
    assert [each.dtype for each in outputs] == [np.int32, np.int32]
    assert outputs[1].tolist() == [-(2**31) + 2, 6]


def test_a_remainder_has_the_sign_of_the_left() -> None:
    device = dml.Device(False)
    builder = dml.GraphBuilder(device)
    x = dml.input_tensor(builder, 0, dml.TensorDesc(dml.TensorDataType.FLOAT32, [2]))
    result = x % 3
    (found,) = device.compute(builder.build(dml.NONE, [result]), [dml.Binding(x, [7, -7])], [result])
    assert np.array(found).tolist() == [1, -1]


def test_a_fused_activation_is_one_that_may_be() -> None:
    builder = dml.GraphBuilder(dml.Device(False))
    x = dml.input_tensor(builder, 0, dml.TensorDesc(dml.TensorDataType.FLOAT32, [2]))
    for wrong in (dml.OperatorType.GEMM, 7, None):
        with pytest.raises(DMLError, match=r"FusedActivation: found .*, expected .*OperatorType.ACTIVATION_ELU"):
            dml.add(x, x, dml.FusedActivation(wrong))
    with pytest.raises(DMLError, match=r"ELEMENT_WISE_ADD1.FusedActivation: found ACTIVATION_SOFTMAX.*\(S4\)"):
        dml.add(x, x, dml.FusedActivation(dml.OperatorType.ACTIVATION_SOFTMAX))


def test_operators_of_expressions_take_numbers_and_arrays_of_numpy() -> None:
    builder = dml.GraphBuilder(dml.Device(False))
    x = dml.input_tensor(builder, 0, dml.TensorDesc(dml.TensorDataType.FLOAT32, [2]))
    row = np.array([3, 5], np.float32)
    y = np.float32(2) * (row - x) % 3
    model = builder.build(dml.NONE, [y])
    (result,) = dml.Device(False).compute(model, [dml.Binding(x, [1, 1])], [y])
    np.testing.assert_array_equal(np.array(result), [1, 2])


def test_what_is_no_expression_is_named() -> None:
    builder = dml.GraphBuilder(dml.Device(False))
    x = dml.input_tensor(builder, 0, dml.TensorDesc(dml.TensorDataType.FLOAT32, [2]))
    with pytest.raises(DMLError, match=r"ELEMENT_WISE_ADD1.ATensor: found int 3, expected an Expression \(G9\)"):
        dml.add(3, 4)
    with pytest.raises(DMLError, match=r"ELEMENT_WISE_ADD1.BTensor: found an Expression of nothing"):
        dml.add(x, dml.Expression())
    with pytest.raises(DMLError, match=r"compute.outputs: found an expression that the model was not built with"):
        dml.Device(False).compute(builder.build(dml.NONE, [x + 1]), [dml.Binding(x, [1, 2])], [x])
    with pytest.raises(DMLError, match=r"compute.model: found None, expected a Model"):
        dml.Device(False).compute(None, [], [])
    with pytest.raises(TypeError, match=r"GraphBuilder.build"):
        dml.Model()
