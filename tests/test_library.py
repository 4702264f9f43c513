"""Large convolutions and products on the CPU: how near they are to the references, also of filters that are
prepared, and that PyTorch is not loaded for them."""

from __future__ import annotations

import os
import signal
import threading
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from anydml import (
    DML_ACTIVATION_RELU_OPERATOR_DESC,
    DML_ACTIVATION_TANH_OPERATOR_DESC,
    DML_BUFFER_ARRAY_BINDING,
    DML_BUFFER_BINDING,
    DML_CONVOLUTION_OPERATOR_DESC,
    DML_GEMM_OPERATOR_DESC,
    Device,
    ExecutionFlags,
    TensorFlags,
)
from anydml.backends.base import Kernel
from anydml.backends.native.engine import CpuEngine
from anydml.core.enums import ConvolutionDirection, ConvolutionMode, MatrixTransform
from anydml.core.strided_layout import Layout
from anydml.operators import spec_of
from anydml.operators.schema import OperatorDesc
from cases import tensor
from harness import compiled, run
from test_import import run_python

pytestmark = pytest.mark.slow

BOUND = 4e-6
"""Of the sum of absolute products, by which a result in single precision may differ; half precision rounds it."""


def convolution(
    x: tuple[int, ...],
    w: tuple[int, ...],
    y: tuple[int, ...],
    *,
    data_type: str = "FLOAT32",
    groups: int = 1,
    stride: int = 1,
    start: int = 0,
    end: int = 0,
    **members: Any,
) -> DML_CONVOLUTION_OPERATOR_DESC:
    ones, zeros = [1] * (len(x) - 2), [0] * (len(x) - 2)
    options = {
        "Mode": ConvolutionMode.CROSS_CORRELATION,
        "Direction": ConvolutionDirection.FORWARD,
        "Dilations": ones,
        "OutputPadding": zeros,
        "FusedActivation": DML_ACTIVATION_RELU_OPERATOR_DESC(),
    }
    return DML_CONVOLUTION_OPERATOR_DESC(
        InputTensor=tensor(x, data_type),
        FilterTensor=tensor(w, data_type),
        BiasTensor=tensor((1, y[1], *ones), data_type),
        OutputTensor=tensor(y, data_type),
        Strides=[stride for _ in ones],
        StartPadding=[start for _ in ones],
        EndPadding=[end for _ in ones],
        GroupCount=groups,
        **{**options, **members},
    )


def product(m: int, k: int, n: int, data_type: str = "FLOAT32") -> DML_GEMM_OPERATOR_DESC:
    return DML_GEMM_OPERATOR_DESC(
        ATensor=tensor((1, 1, m, k), data_type),
        BTensor=tensor((1, 1, n, k), data_type),
        CTensor=tensor((1, 1, m, n), data_type, strides=(0, 0, 0, 1)),
        OutputTensor=tensor((1, 1, m, n), data_type),
        TransA=MatrixTransform.NONE,
        TransB=MatrixTransform.TRANSPOSE,
        Alpha=0.5,
        Beta=2,
    )


TURN = {"Direction": ConvolutionDirection.BACKWARD}
LARGE: dict[str, OperatorDesc] = {
    "first": convolution((1, 3, 63, 65), (16, 3, 3, 3), (1, 16, 31, 32), stride=2),
    "uneven": convolution((1, 16, 30, 30), (16, 16, 3, 3), (1, 16, 15, 15), stride=2, end=1),
    "depthwise": convolution((1, 48, 30, 30), (48, 1, 3, 3), (1, 48, 30, 30), groups=48, start=1, end=1),
    "groups": convolution((2, 16, 20, 20), (32, 4, 3, 3), (2, 32, 18, 18), groups=4),
    "turned": convolution((1, 8, 24, 24), (16, 8, 5, 5), (1, 16, 20, 20), Mode=ConvolutionMode.CONVOLUTION),
    "zeros-behind": convolution((1, 8, 24, 24), (16, 8, 3, 3), (1, 16, 24, 24), OutputPadding=[2, 2]),
    "lines": convolution((2, 16, 1000), (16, 16, 9), (2, 16, 992)),
    "volumes": convolution((1, 8, 9, 9, 9), (16, 8, 3, 3, 3), (1, 16, 7, 7, 7)),
    "backward": convolution((1, 16, 20, 20), (16, 8, 3, 3), (1, 8, 40, 40), stride=2, start=1, end=1, **TURN),
    "backward-uneven": convolution((1, 16, 20, 20), (16, 4, 4, 4), (1, 8, 40, 40), groups=2, stride=2, end=2, **TURN),
    "padding-alone": convolution((1, 32, 20, 20), (32, 32, 1, 1), (1, 32, 24, 24), start=2, end=2),
    "half": convolution((1, 8, 30, 30), (16, 8, 3, 3), (1, 16, 28, 28), data_type="FLOAT16"),
    "product": product(100, 130, 120),
    "product-half": product(100, 130, 120, "FLOAT16"),
    "product-row": product(1, 1024, 1100),
}


def dispatched(desc: OperatorDesc, *arrays: np.ndarray | None, device: str = "cpu") -> str:
    """On arrays, the output's last; returns what explains it."""
    place = Device(device)
    operator = place.compile_operator(place.create_operator(desc))
    operator.dispatch(list(arrays[:-1]), [arrays[-1]])
    return operator.explain()


def check_large(name: str, engine: str, bound: float, flags: ExecutionFlags = ExecutionFlags.NONE) -> None:
    """That results differ from the reference's by no more than a part of the sum of absolute products."""
    desc = LARGE[name]
    rng = np.random.default_rng(3)
    spec = spec_of(desc)
    assert spec is not None
    inputs = [rng.standard_normal(t.Sizes).astype(t.DataType.name.lower()) for _, t in spec.inputs(desc) if t]
    if name.startswith("product"):
        inputs[2][...] = inputs[2][:, :, :1]  # which its strides broadcast
    (found,), (expected,) = run(engine, desc, inputs, flags=flags), run("reference", desc, inputs)
    (magnitude,) = run("reference", desc, [np.abs(x) for x in inputs])
    assert found is not None
    assert expected is not None
    unit = np.finfo(np.float16).eps if expected.dtype == np.float16 else 0
    error = np.abs(found.astype(np.float64) - expected)
    assert (error <= bound * np.float64(magnitude) + unit * np.abs(np.float64(expected))).all()


@pytest.mark.parametrize("name", LARGE)
def test_what_is_large_is_computed_in_single_precision(name: str) -> None:
    check_large(name, "cpu", BOUND)


@pytest.mark.filterwarnings("error")
def test_arrays_that_are_read_only_or_lie_anywhere() -> None:
    desc = replace(LARGE["half"], FusedActivation=None)
    rng = np.random.default_rng(4)
    x, w, bias = (
        rng.integers(-2, 3, each.Sizes).astype(np.float16)
        for _, each in spec_of(desc).inputs(desc)  # type: ignore[union-attr]
    )
    (expected,) = run("reference", desc, [x, w, bias])
    assert expected is not None
    x.flags.writeable = False
    memory = np.zeros(w.nbytes + expected.nbytes + 2, np.uint8)
    odd, y = memory[1 : w.nbytes + 1], memory[w.nbytes + 2 :]
    odd[...] = w.view(np.uint8).ravel()
    assert dispatched(desc, x, odd, bias, y).startswith("CONVOLUTION is served by cpu: ")
    np.testing.assert_array_equal(y.tobytes(), expected.tobytes())


def test_nothing_on_the_cpu_loads_pytorch() -> None:
    """Convolutions and products of both types, small and large, forward and transposed."""
    said = run_python("""
import sys
sys.path.insert(0, "tests")
import numpy as np
from anydml.operators import spec_of
from test_library import LARGE, dispatched, lying
for desc in LARGE.values():
    tensors = [each for _, each in spec_of(desc).inputs(desc)] + [desc.OutputTensor]
    dispatched(desc, *(lying(each, 0) for each in tensors))
print("torch" in sys.modules)
""").splitlines()
    assert said[-1] == "False"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child_computes_too() -> None:
    """Not on the threads of its parent, which are not there."""
    desc = LARGE["groups"]
    rng = np.random.default_rng(6)
    inputs = [rng.standard_normal(each.Sizes).astype(np.float32) for _, each in spec_of(desc).inputs(desc)]  # type: ignore[union-attr]
    expected, y = (np.empty(desc.OutputTensor.Sizes, np.float32) for _ in range(2))  # type: ignore[attr-defined]
    dispatched(desc, *inputs, expected)
    child = os.fork()
    if not child:
        signal.alarm(30)
        dispatched(desc, *inputs, y)
        os._exit(0 if np.array_equal(y, expected) else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_less_than_single_precision_is_undone_for_a_call(torch: Any) -> None:
    from anydml.backends.torch.lowering.precision import SINGLE_PRECISION

    allowed = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("medium")
    try:
        with SINGLE_PRECISION:
            assert torch.backends.mkldnn.matmul.fp32_precision == "ieee"
        assert torch.get_float32_matmul_precision() == "medium"
        assert torch.backends.mkldnn.matmul.fp32_precision == "bf16"
    finally:
        torch.set_float32_matmul_precision(allowed)


def test_threads_undo_less_than_single_precision_together(torch: Any) -> None:
    """One that leaves first takes nothing from one that is still in, and the last one gives back what was allowed."""
    from anydml.backends.torch.lowering.precision import Undone

    setting = SimpleNamespace(precision="bf16")
    undone = Undone((setting, "precision", ("ieee", "none")))
    first_has_left = threading.Event()
    seen = []

    def second() -> None:
        with undone:
            second_is_in.set()
            first_has_left.wait(30)
            seen.append(setting.precision)

    second_is_in = threading.Event()
    with undone:
        thread = threading.Thread(target=second)
        thread.start()
        assert second_is_in.wait(30)
    first_has_left.set()
    thread.join()
    assert seen == ["ieee"]
    assert setting.precision == "bf16"
    # Allowed by the process while a thread is in: not for the next one, and given back.
    with undone:
        setting.precision = "tf32"
        with undone:
            assert setting.precision == "ieee"
    assert setting.precision == "tf32"
    setting.precision = "none"
    with undone:
        assert setting.precision == "none"
    assert setting.precision == "none"


# What is prepared for a filter that stays


def laid_last(desc: Any, *members: str) -> Any:
    """With the channels of some tensors last."""

    def last(t: Any) -> Any:
        _, c, h, w = t.Sizes
        return replace(t, Strides=(c * h * w, 1, w * c, c))

    return replace(desc, **{name: last(getattr(desc, name)) for name in members})


LAST = "InputTensor", "OutputTensor"
ONE_TAP = convolution((2, 32, 20, 20), (48, 32, 1, 1), (2, 48, 20, 20))
THREE_TAPS = convolution((1, 16, 30, 30), (16, 16, 3, 3), (1, 16, 30, 30), start=1, end=1)
PREPARED: dict[str, Any] = {
    "one-tap": ONE_TAP,
    "one-tap-last": laid_last(ONE_TAP, *LAST),
    "one-tap-to-last": laid_last(ONE_TAP, "OutputTensor"),
    "one-tap-strided": laid_last(convolution((1, 32, 30, 30), (48, 32, 1, 1), (1, 48, 15, 15), stride=2), *LAST),
    "one-place": laid_last(convolution((1, 512, 1, 1), (300, 512, 1, 1), (1, 300, 1, 1)), *LAST),
    "last": laid_last(THREE_TAPS, *LAST),
    "to-last": laid_last(THREE_TAPS, "OutputTensor"),
    "uneven": laid_last(LARGE["uneven"], *LAST),
    "depthwise": laid_last(LARGE["depthwise"], *LAST),
    "groups": laid_last(LARGE["groups"], *LAST),
    "turned": laid_last(LARGE["turned"], *LAST),
    "half": laid_last(LARGE["half"], *LAST),
    "no-activation": replace(laid_last(THREE_TAPS, *LAST), FusedActivation=None),
    "no-bias": replace(laid_last(THREE_TAPS, *LAST), BiasTensor=None),
    "tanh": replace(laid_last(THREE_TAPS, *LAST), FusedActivation=DML_ACTIVATION_TANH_OPERATOR_DESC()),
    "one-tap-tanh": replace(ONE_TAP, FusedActivation=DML_ACTIVATION_TANH_OPERATOR_DESC()),
}


def lying(t: Any, values: np.ndarray) -> np.ndarray:
    """Values as a tensor has them in memory."""
    layout = Layout.of_desc(t)
    array = layout.view(np.zeros(layout.bounds()[1], np.uint8))
    array[...] = values
    return array


@pytest.mark.parametrize("name", PREPARED)
@pytest.mark.parametrize("with_nan", [False, True])
def test_a_prepared_filter_gives_what_the_reference_gives(name: str, with_nan: bool) -> None:
    desc = PREPARED[name]
    spec = spec_of(desc)
    assert spec is not None
    rng = np.random.default_rng(7)
    tensors = [t for _, t in spec.inputs(desc)]
    dtype = desc.InputTensor.DataType.name.lower()
    inputs = [None if t is None else lying(t, rng.standard_normal(t.Sizes).astype(dtype)) for t in tensors]
    if with_nan:
        inputs[0][0, 0, 0, 0] = np.nan  # type: ignore[index]
    kernel = CpuEngine().compile(
        spec, desc, [None if t is None else Layout.of_desc(t) for t in tensors], [Layout.of_desc(desc.OutputTensor)]
    )
    assert isinstance(kernel, Kernel)
    assert kernel.prepare is not None
    prepared = kernel.prepare([None, *inputs[1:]])
    assert prepared is not None
    assert kernel.prepare([inputs[0], None, *inputs[2:]]) is None
    found = lying(desc.OutputTensor, np.full(desc.OutputTensor.Sizes, 99, dtype))
    prepared(inputs, [found])
    (expected,) = run("reference", desc, inputs)
    (magnitude,) = run(
        "reference", replace(desc, FusedActivation=None), [x if x is None else np.abs(x) for x in inputs]
    )
    assert expected is not None
    is_number = ~np.isnan(expected)
    np.testing.assert_array_equal(np.isnan(found), ~is_number)
    unit = np.finfo(np.float16).eps if dtype == "float16" else 0
    error = np.abs(found.astype(np.float64) - expected)[is_number]
    allowed = BOUND * np.float64(magnitude) + unit * np.abs(np.float64(expected))
    assert (error <= allowed[is_number]).all()


def test_each_persistent_resource_has_what_was_prepared_for_it() -> None:
    """Whichever is used next, wherever it was copied to, and whatever it was filled with before."""
    owned = replace(ONE_TAP, FilterTensor=replace(ONE_TAP.FilterTensor, Flags=TensorFlags.OWNED_BY_DML))
    owned = replace(owned, BiasTensor=None, FusedActivation=None)
    operator = compiled("cpu", owned)
    device = operator.device
    x, y = np.ones((2, 32, 20, 20), np.float32), np.empty((2, 48, 20, 20), np.float32)

    def result(persistent: np.ndarray) -> float:
        operator.dispatch([x, None, None], [y], persistent=persistent)
        assert (y == y[0, 0, 0, 0]).all()
        return float(y[0, 0, 0, 0])

    def filled(value: float) -> np.ndarray:
        return operator.initialise([None, np.full((48, 32, 1, 1), value, np.float32), None])

    many = [filled(value) for value in range(1, 8)]
    for _ in range(2):
        assert [result(each) for each in many] == [32.0 * value for value in range(1, 8)]
    many[0][...] = many[1]
    assert result(many[0]) == 64
    initializer = device.create_operator_initializer([operator])
    table = device.create_binding_table(initializer)
    weights = DML_BUFFER_BINDING(Buffer=np.full((48, 32, 1, 1), 9, np.float32))
    table.bind_inputs([DML_BUFFER_ARRAY_BINDING(Bindings=[None, weights, None])])
    table.bind_outputs([DML_BUFFER_BINDING(Buffer=many[1])])
    device.dispatch(initializer, table)
    assert result(many[1]) == 288
    assert result(many[0]) == 64
