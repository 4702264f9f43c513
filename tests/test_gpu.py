"""The GPU engine, beyond the cases: on a device, or in Triton's interpreter where there is none.

``make test-gpu`` runs this file and the cases; elsewhere only what takes neither PyTorch nor Triton is run.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib import util
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import anydml
from anydml import (
    DML_BUFFER_BINDING,
    DML_BUFFER_TENSOR_DESC,
    DML_CUMULATIVE_PRODUCT_OPERATOR_DESC,
    DML_CUMULATIVE_SUMMATION_OPERATOR_DESC,
    DML_JOIN_OPERATOR_DESC,
    DML_QUANTIZED_LINEAR_AVERAGE_POOLING_OPERATOR_DESC,
    Device,
    DMLError,
    ExecutionFlags,
    HResult,
    TensorDataType,
)
from anydml.draw import EXAMPLES
from anydml.operators.schema import OperatorDesc
from cases import tensor
from exact import check_join, check_last, check_pooling, check_tally
from harness import GPU, run
from test_library import LARGE, check_large

on_gpu = pytest.mark.skipif(not GPU, reason="needs PyTorch and Triton: make test-gpu")


def refused(call: Callable[[], Any], *rules: str) -> DMLError:
    with pytest.raises(DMLError) as raised:
        call()
    assert [violation.rule for violation in raised.value.violations] == list(rules)
    return raised.value


# Devices


@pytest.mark.parametrize("missing", ["torch", "triton"])
@pytest.mark.parametrize("name", ["cuda", "cuda:1", "xpu"])
def test_what_a_gpu_takes_is_not_installed(name: str, missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    there = util.find_spec

    def find_spec(module: str) -> Any:
        return None if module == missing else (there(module) or object())

    monkeypatch.setattr("anydml.backends.torch.devices.find_spec", find_spec)
    error = refused(lambda: Device(name), "(D7)")
    assert error.hresult == HResult.DXGI_ERROR_UNSUPPORTED
    assert f"{missing} is not installed" in str(error)
    assert "pip install 'anydml[gpu]'" in str(error)


@on_gpu
def test_a_gpu_that_is_not_there() -> None:
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("the interpreter takes any name")
    assert "of 1" in str(refused(lambda: Device("cuda:999"), "(D7)"))


@on_gpu
def test_it_says_who_serves() -> None:
    device = Device(GPU)
    desc = DML_CUMULATIVE_SUMMATION_OPERATOR_DESC(InputTensor=tensor((4,)), OutputTensor=tensor((4,)), Axis=0)
    operator = device.compile_operator(device.create_operator(desc))
    assert operator.engine == GPU
    assert operator.explain().startswith(f"CUMULATIVE_SUMMATION is served by {GPU}: scan by tiles")


@on_gpu
@pytest.mark.parametrize("name", EXAMPLES)
def test_every_operator_has_a_kernel_or_calls(name: str) -> None:
    device = Device(GPU)
    assert device.compile_operator(device.create_operator(EXAMPLES[name][0])).engine == GPU


@on_gpu
def test_no_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("anydml.backends.triton.engine.KERNELS", {})
    refused(lambda: anydml.cumulative_summation([1, 2], device=Device(GPU)), "(D8)")


@on_gpu
def test_all_kernels_compile() -> None:
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    script = [sys.executable, str(Path(__file__).with_name("gpu_compile.py"))]
    done = subprocess.run(script, env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-5000:]
    _, *kernels = done.stdout.split()
    assert kernels == [
        "average_planes",
        "finish",
        "join_columns",
        "join_elements",
        "join_pieces",
        "join_runs",
        "normalize",
        "pool",
        "pool_rows",
        "pool_windows",
        "scan_chain",
        "scan_narrow",
        "scan_tiles",
        "write_addresses",
    ]


@on_gpu
def test_nothing_is_compiled_during_a_capture(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("anydml.backends.torch.tensors.stream_key_of", lambda device: None)
    x = np.ones((1, 2, 3, 4, 5), np.int64)
    assert "before the capture" in str(refused(lambda: anydml.cumulative_summation(x, 2, device=GPU), "(D9)"))


@on_gpu
def test_an_index_that_the_axis_lacks_stays_within_the_tensor() -> None:
    """A GPU is not asked for values but with `debug`, and a read elsewhere would end the process's use of it."""
    x, indices, y = tensor((1, 3)), tensor((1, 4), "INT64"), tensor((1, 4))
    desc = anydml.DML_GATHER_OPERATOR_DESC(
        InputTensor=x, IndicesTensor=indices, OutputTensor=y, Axis=1, IndexDimensions=1
    )
    (found,) = run(GPU, desc, [np.float32([[1, 2, 3]]), np.array([[-4, 3, 2**62, -(2**63)]])])
    assert found is not None
    assert set(found.ravel()) <= {1, 2, 3}


# Arrays


@pytest.fixture
def torch() -> Any:
    return pytest.importorskip("torch")


@pytest.fixture
def place(torch: Any) -> Any:
    """PyTorch's name of the device."""
    return Device(GPU).memory.device  # type: ignore[attr-defined]


@on_gpu
def test_tensors_in_and_out(torch: Any, place: Any) -> None:
    x = torch.arange(6, dtype=torch.int32, device=place).reshape(2, 3)
    sums = anydml.cumulative_summation(x, device=GPU)
    assert isinstance(sums, torch.Tensor)
    assert sums.device == place
    assert sums.tolist() == [[0, 1, 3], [3, 7, 12]]
    assert anydml.join([x.T, x.T], axis=1, device=GPU).tolist() == [[0, 3, 0, 3], [1, 4, 1, 4], [2, 5, 2, 5]]


@on_gpu
def test_out_is_written_where_it_lies(torch: Any, place: Any) -> None:
    x = torch.tensor([2, 3, 4], dtype=torch.int64, device=place)
    out = torch.zeros((3, 2), dtype=torch.int64, device=place)[:, 1]
    assert anydml.cumulative_product(x, out=out, device=GPU) is out
    assert out.tolist() == [2, 6, 24]
    assert anydml.cumulative_product(x, out=x, exclusive=True, device=GPU) is x
    assert x.tolist() == [1, 2, 6]


@on_gpu
def test_numpy_is_brought_and_taken_back() -> None:
    x = np.arange(8, dtype=np.uint64)[::-1]
    sums = anydml.cumulative_summation(x, device=GPU)
    assert isinstance(sums, np.ndarray)
    np.testing.assert_array_equal(sums, np.cumsum(x))
    out = np.zeros((8, 3), np.uint64)[:, 1]
    assert anydml.cumulative_summation(x, out=out, device=GPU) is out
    np.testing.assert_array_equal(out, np.cumsum(x))
    read_only = np.zeros(8, np.uint64)
    read_only.flags.writeable = False
    refused(lambda: anydml.cumulative_summation(x, out=read_only, device=GPU), "(A3)")
    assert anydml.join([[1, 2], [3]], device=GPU).tolist() == [1, 2, 3]


@on_gpu
def test_no_room(torch: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*arguments: Any, **options: Any) -> Any:
        raise torch.OutOfMemoryError("Tried to allocate 8 bytes. GPU 0 is full")

    x = np.ones(2, np.float32)
    monkeypatch.setattr(torch, "empty", full)
    refused(lambda: anydml.cumulative_summation(x, device=GPU), "(A4)")
    monkeypatch.setattr(torch, "from_numpy", full)
    error = refused(lambda: anydml.cumulative_summation(x, device=GPU), "(D6)")
    assert isinstance(error, MemoryError)
    assert "Tried to allocate 8 bytes" in str(error)


@on_gpu
def test_lists_with_an_empty_piece_and_many_dimensions(torch: Any, place: Any) -> None:
    empty = torch.empty((0, 2), device=place)
    assert anydml.join([empty, torch.ones((1, 2), device=place)], device=GPU).tolist() == [[1, 1]]
    assert anydml.cumulative_summation(empty, device=GPU).shape == (0, 2)
    x = torch.ones((1, 2, 1, 2, 1, 2, 1, 2, 1, 2), device=place)
    assert anydml.cumulative_summation(x, axis=3, device=GPU).sum().item() == 48


@on_gpu
def test_tensors_elsewhere_are_refused(torch: Any, place: Any) -> None:
    elsewhere = torch.ones(3, device="meta")
    here = torch.ones(3, device=place)
    error = refused(lambda: anydml.cumulative_summation(elsewhere, device=GPU), "(A12)")
    assert "meta" in str(error)
    refused(lambda: anydml.join([here, elsewhere], device=GPU), "(A12)")
    refused(lambda: anydml.cumulative_summation(here, out=elsewhere, device=GPU), "(A12)")


@on_gpu
def test_tensors_that_are_more_than_numbers_are_refused(torch: Any, place: Any) -> None:
    x = torch.ones(3, device=place)
    refused(lambda: anydml.cumulative_summation(x.clone().requires_grad_(), device=GPU), "(A1)")
    refused(lambda: anydml.cumulative_summation(x.to_sparse(), device=GPU), "(A1)")
    error = refused(lambda: anydml.cumulative_summation(x.to(torch.bfloat16), device=GPU), "(S3)")
    assert "found torch.bfloat16, expected one of DirectML's data types (S3). Convert it with .float()" in str(error)
    refused(lambda: anydml.cumulative_summation(x.to(torch.float64), device=GPU), "(S3)")
    refused(lambda: anydml.cumulative_summation(x > 0, device=GPU), "(S3)")


@on_gpu
@pytest.mark.parametrize("name", LARGE)
def test_half_precision_where_it_is_allowed(name: str) -> None:
    device = Device(GPU)
    operator = device.create_operator(LARGE[name])
    assert "TF32" not in device.compile_operator(operator).explain()
    allowed = ExecutionFlags.ALLOW_HALF_PRECISION_COMPUTATION
    assert "TF32 allowed" in device.compile_operator(operator, allowed).explain()
    check_large(name, GPU, 2.0**-10, allowed)


@on_gpu
def test_half_precision_in_a_graph() -> None:
    graph = anydml.Graph(Device(GPU))
    x, w = (graph.input(tensor(sizes)) for sizes in ((1, 3, 8, 8), (4, 3, 3, 3)))
    y = anydml.convolution(x, w)
    assert "TF32 allowed" in graph.compile([y], ExecutionFlags.ALLOW_HALF_PRECISION_COMPUTATION).explain()
    assert "TF32" not in graph.compile([y]).explain()
    refused(lambda: graph.compile([y], 1), "(D4)")  # type: ignore[arg-type]


@on_gpu
def test_a_binding_in_the_cpus_memory_is_refused(torch: Any, place: Any) -> None:
    device = Device(GPU)
    four = tensor((4,))
    desc = DML_JOIN_OPERATOR_DESC(InputTensors=[four], OutputTensor=four, Axis=0)
    operator = device.compile_operator(device.create_operator(desc))
    x = np.ones(4, np.float32)
    error = refused(lambda: operator.dispatch([x], [torch.empty(4, device=place)]), "(B10)")
    assert "pass a tensor on the device" in str(error)
    operator.initialise([None])
    table = device.create_binding_table(operator)
    table.bind_inputs([DML_BUFFER_BINDING(Buffer=x)])
    table.bind_outputs([DML_BUFFER_BINDING(Buffer=torch.empty(4, device=place))])
    refused(lambda: device.dispatch(operator, table), "(B3)")
    shared = torch.ones(4, device=place)
    refused(lambda: operator.dispatch([shared], [shared]), "(B7)")


@on_gpu
def test_memory_at_odd_addresses_is_refused(torch: Any, place: Any) -> None:
    device = Device(GPU)
    four = tensor((4,))
    desc = DML_JOIN_OPERATOR_DESC(InputTensors=[four], OutputTensor=four, Axis=0)
    operator = device.compile_operator(device.create_operator(desc))
    odd, even = torch.zeros(101, dtype=torch.uint8, device=place)[1:], torch.empty(4, device=place)
    assert "multiple of 4" in str(refused(lambda: operator.dispatch([odd], [even]), "(A12)"))
    operator.initialise([None])
    table = device.create_binding_table(operator)
    table.bind_inputs([DML_BUFFER_BINDING(Buffer=odd)])
    table.bind_outputs([DML_BUFFER_BINDING(Buffer=even)])
    assert "multiple of 8" in str(refused(lambda: device.dispatch(operator, table), "(B3)"))


@on_gpu
def test_views_that_are_negated_when_read_are_refused(torch: Any, place: Any) -> None:
    x = torch.tensor([1 + 1j, 2 + 2j], device=place).conj().imag
    assert "resolve_neg()" in str(refused(lambda: anydml.cumulative_summation(x, 0, device=GPU), "(A1)"))
    device = Device(GPU)
    t = DML_BUFFER_TENSOR_DESC(DataType=TensorDataType.FLOAT32, Sizes=(2,), Strides=(2,))
    desc = DML_CUMULATIVE_SUMMATION_OPERATOR_DESC(InputTensor=t, OutputTensor=tensor((2,)), Axis=0)
    operator = device.compile_operator(device.create_operator(desc))
    out = torch.zeros(2, device=place)
    refused(lambda: operator.dispatch([x], [out]), "(A1)")
    assert out.tolist() == [0, 0]


@on_gpu
def test_in_place_needs_no_second_look(torch: Any, place: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    device = Device(GPU)
    t = tensor((2, 3))
    desc = DML_CUMULATIVE_SUMMATION_OPERATOR_DESC(InputTensor=t, OutputTensor=t, Axis=1)
    operator = device.compile_operator(device.create_operator(desc))
    x = torch.ones((2, 3), device=place)
    monkeypatch.setattr("anydml.runtime.compiled.bind", None)
    operator.dispatch([x], [x])
    assert x.tolist() == [[1, 2, 3]] * 2


@on_gpu
@pytest.mark.parametrize("sizes", [(1, 1, 6), (6, 1), (1, 2, 1, 3, 1)])
def test_sizes_of_1_need_no_second_look(
    torch: Any, place: Any, sizes: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    device = Device(GPU)
    t = tensor(sizes)
    desc = DML_JOIN_OPERATOR_DESC(InputTensors=[t], OutputTensor=t, Axis=0)
    operator = device.compile_operator(device.create_operator(desc))
    monkeypatch.setattr("anydml.runtime.compiled.bind", None)
    x, y = torch.rand(sizes, device=place), torch.empty(sizes, device=place)
    operator.dispatch([x], [y])
    assert torch.equal(x, y)


@on_gpu
def test_in_place_of_shifted_memory_is_refused(torch: Any, place: Any) -> None:
    device = Device(GPU)
    t = tensor((3,))
    desc = DML_CUMULATIVE_SUMMATION_OPERATOR_DESC(InputTensor=t, OutputTensor=t, Axis=0)
    operator = device.compile_operator(device.create_operator(desc))
    x = torch.ones(4, device=place)
    refused(lambda: operator.dispatch([x[:3]], [x[1:]]), "(B7)")
    assert x.tolist() == [1] * 4


@on_gpu
def test_owned_inputs(torch: Any, place: Any) -> None:
    device = Device(GPU)
    owned = anydml.DML_BUFFER_TENSOR_DESC(
        DataType=anydml.TensorDataType.FLOAT32, Sizes=(2,), Flags=anydml.TensorFlags.OWNED_BY_DML
    )
    desc = DML_JOIN_OPERATOR_DESC(InputTensors=[owned, tensor((2,))], OutputTensor=tensor((4,)), Axis=0)
    operator = device.compile_operator(device.create_operator(desc))
    ones, twos = (torch.full((2,), value, device=place) for value in (1.0, 2.0))
    resource = operator.initialise([ones, None])
    out = torch.empty(4, device=place)
    operator.dispatch([None, twos], [out], persistent=resource)
    assert out.tolist() == [1, 1, 2, 2]
    refused(lambda: operator.dispatch([None, twos], [out], persistent=torch.zeros(512, device=place)), "(B9)")


@on_gpu
@pytest.mark.parametrize("scale", [0.0, -1.0, np.inf, np.nan])
def test_a_scale_that_means_nothing_gives_the_zero_point(scale: float) -> None:
    x = np.full((1, 2, 4, 4), 9, np.uint8)
    options = {"output_scale": [1.0, 1.0], "output_zero_point": 7, "window_size": 2}
    y = anydml.quantized_linear_average_pooling(x, [1.0, scale], **options, device=GPU)
    assert (y[:, 0] == 16).all()
    assert (y[:, 1] == 7).all()
    debug = Device(GPU, debug=True)
    refused(lambda: anydml.quantized_linear_average_pooling(x, [1.0, scale], **options, device=debug), "(V1)")


# Scans


@pytest.fixture(params=["as planned", "small tiles", "chain", "wide indices"])
def tiles(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The kernels' ways for large tensors, on small ones."""
    from anydml.functions._call import _compile

    scan = "anydml.backends.triton.scan.plan"
    if request.param == "wide indices":
        from triton import language

        monkeypatch.setattr(f"{scan}.Geometry.index", property(lambda self: language.int64))
    elif request.param != "as planned":
        small = {"TILE": 32, "LONG": 16, "DEEP": 4, "PIECE": 32, "TILES": 2, "GROUPS": (2, 4, 4)}
        small["FLAT_TILE"] = 32
        small["PIECES"] = {size: 512 * size for size in (2, 4, 8)}
        small["FACTORS"] = 512
        small["FEW"] = 10**6 if request.param == "chain" else 0
        for name, value in small.items():
            monkeypatch.setattr(f"{scan}.{name}", value)
    _compile.cache_clear()
    yield request.param
    _compile.cache_clear()


SHAPES = [
    ((90,), 0),
    ((2, 70), 1),
    ((40, 5), 0),
    ((2, 21, 9), 1),
    ((2, 21, 18), 1),
    ((2, 1, 3), 1),
    ((2, 3, 1, 9, 2), 3),
]
OPERATIONS = [("sum", np.float32), ("sum", np.uint64), ("product", np.float16), ("product", np.float32)]


@on_gpu
@pytest.mark.parametrize(("shape", "axis"), SHAPES)
@pytest.mark.parametrize(("operation", "dtype"), OPERATIONS)
def test_scans(operation: str, dtype: type, shape: tuple[int, ...], axis: int, tiles: str) -> None:
    """In every mode, also of transposed input."""
    random = np.random.default_rng(0)
    x = (random.uniform(-3, 3, shape) if dtype != np.uint64 else random.integers(0, 9, shape)).astype(dtype)
    call = anydml.cumulative_summation if operation == "sum" else anydml.cumulative_product
    for i in range(4):
        mode = {"reverse": bool(i & 1), "exclusive": bool(i & 2)}
        given = np.asfortranarray(x) if i == 3 else x
        check_tally(operation, x, call(given, axis, **mode, device=GPU), axis, **mode)


@on_gpu
def test_a_scan_runs_again_and_again(torch: Any, place: Any, tiles: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A chain uses its words again: beyond their last mark, beside another stream, and after a launch that failed."""
    from anydml.backends.triton.launch import Launch

    monkeypatch.setattr("anydml.backends.triton.scan.plan.LAST_MARK", 2)
    device, t = Device(GPU), tensor((2, 70))
    desc = DML_CUMULATIVE_SUMMATION_OPERATOR_DESC(InputTensor=t, OutputTensor=t, Axis=1)
    operator = device.compile_operator(device.create_operator(desc))
    x, y = torch.ones((2, 70), device=place), torch.empty((2, 70), device=place)

    def check(value: int) -> None:
        x.fill_(value)
        operator.dispatch([x], [y])
        assert y.tolist() == [[value * (i + 1) for i in range(70)]] * 2

    for value in (1, 2, 3, 4):
        check(value)
    if place.type == "cuda":
        with torch.cuda.stream(torch.cuda.Stream()):
            check(5)
    with monkeypatch.context() as patch:
        patch.setattr(Launch, "__call__", None)
        with pytest.raises(TypeError):
            operator.dispatch([x], [y])
    check(6)


SPECIAL = [0.0, -0.0, 1.0, -2.0, 1e30, -1e30, 1e-30, 3e38, 1e-45, np.inf, -np.inf, np.nan]


@on_gpu
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("operation", ["sum", "product"])
def test_special_values_in_any_place(operation: str, dtype: type, tiles: str) -> None:
    random = np.random.default_rng(1)
    with np.errstate(over="ignore"):
        x = random.choice(np.array(SPECIAL, np.float32), (6, 40), p=[0.04, 0.03, 0.2, 0.2] + [0.1] * 5 + [0.01] * 3)
        x = x.astype(dtype)
    call = anydml.cumulative_summation if operation == "sum" else anydml.cumulative_product
    check_tally(operation, x, call(x, 1, device=GPU), 1)
    check_tally(operation, x.T, call(np.ascontiguousarray(x.T), 0, device=GPU), 0)


def split(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """As the kernels have it, in NumPy."""
    mantissa, exponent = np.frexp(x)
    is_small = np.abs(mantissa) < np.sqrt(0.5)
    mantissa, exponent = np.where(is_small, mantissa * 2, mantissa), exponent - is_small
    is_ordinary = np.isfinite(x) & (x != 0)
    return np.where(is_ordinary, mantissa, x), np.where(is_ordinary, exponent, 0)


def in_any_order(random: np.random.Generator, parts: list[Any], combine: Callable[[Any, Any], Any]) -> Any:
    """Neighbours combined in a random order, as the scan of some GPU, or of another one, might."""
    while len(parts) > 1:
        i = int(random.integers(len(parts) - 1))
        parts[i : i + 2] = [combine(parts[i], parts[i + 1])]
    return parts[0]


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("operation", ["sum", "product"])
def test_promises_hold_in_any_order_of_combining(operation: str, dtype: type) -> None:
    """The interpreter combines one element after the other; what a device does may differ from it, and from another."""
    random = np.random.default_rng(2)
    for _ in range(150):
        with np.errstate(all="ignore"):
            kind = random.integers(3)
            n = int(random.integers(1, 60))
            x = random.choice(np.array(SPECIAL[: 9 if kind == 0 else 12], np.float32), n)
            x = (x if kind < 2 else random.uniform(-3, 3, n)).astype(dtype)
            if operation == "sum":
                wide = np.float64 if dtype == np.float32 else np.float32
                total = in_any_order(random, list(x.astype(wide)), lambda a, b: a + b)
            else:
                # Some of what comes together is split anew, as at the end of a part, a tile or a piece.
                def multiply(a: Any, b: Any) -> Any:
                    mantissa, more = split(a[0] * b[0]) if random.integers(2) else (a[0] * b[0], 0)
                    return mantissa, a[1] + b[1] + more

                factors = list(zip(*split(x.astype(np.float64)), strict=True))
                mantissa, exponent = in_any_order(random, factors, multiply)
                total = mantissa * np.ldexp(1.0, np.clip(exponent, -1022, 1023))
            y = np.asarray(total).astype(dtype)
        check_last(operation, x[None], y.reshape(1))


@on_gpu
def test_the_model_splits_as_the_kernels_do(torch: Any, place: Any) -> None:
    import triton

    from gpu_kernels import take_apart

    x = np.random.default_rng(3).choice(np.array([*SPECIAL, 1e300, 3.1, 0.7, 0.708], np.float64), 256)
    mantissa, exponent = split(x)
    found = [torch.empty(256, dtype=each, device=place) for each in (torch.float64, torch.int32, torch.float64)]
    take_apart[(1,)](torch.from_numpy(x).to(place), *found, N=triton.language.constexpr(256))
    for got, expected in zip(found, (mantissa, exponent, x), strict=True):
        np.testing.assert_array_equal(got.cpu().numpy(), expected)


@on_gpu
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("values", [(2.0**100, 2.0**-100), (1e-40, 1e38, 100.0), (1.41, 0.7092), (-1.3, 0.769)])
def test_no_part_of_a_product_leaves_the_range(values: tuple[float, ...], axis: int, tiles: str) -> None:
    """Elements as a tree may bring them together: all large ones, or all small ones, or all mantissas on one side."""
    count = 240 if tiles in ("small tiles", "chain") else 2400
    x = np.tile(np.array(values, np.float32), count // len(values))
    wide = np.cumprod(x.astype(np.float64))
    x, wide = (each.reshape(1, -1) if axis else each.reshape(-1, 1) for each in (x, wide))
    y = anydml.cumulative_product(x, axis, device=GPU)
    np.testing.assert_allclose(y, wide.astype(np.float32), rtol=2e-7, atol=1e-45)


@on_gpu
def test_a_product_that_is_far_beyond_the_range_stays_there() -> None:
    x = np.repeat(np.array([[1e-40, 1e38]], np.float32).T, 3000, 1)
    y = anydml.cumulative_product(x, 1, device=GPU)
    assert (y[0, 2:] == 0).all()
    assert np.isposinf(y[1, 1:]).all()


# Joins


@on_gpu
@pytest.mark.parametrize("dtype", [np.uint8, np.float16, np.float32, np.int64])
@pytest.mark.parametrize(
    ("shapes", "axis"),
    [
        ([(5, 3), (5, 4)], 1),
        ([(4, 16)] * 3, 0),
        ([(6, 1)] * 40, 1),
        ([(3, 2, 8), (3, 5, 8)], 1),
        ([(2, 100), (2, 1), (2, 37)], 1),
        ([(1, 300)] * 3, 0),
        ([(1300, 1)] * 3, 1),
        ([(6, 1), (6, 1)], 1),
    ],
)
def test_joins(torch: Any, place: Any, dtype: type, shapes: list[tuple[int, ...]], axis: int) -> None:
    """Also of pieces that lie at odd addresses, and transposed."""
    random = np.random.default_rng(4)
    pieces = [random.integers(0, 100, shape).astype(dtype) for shape in shapes]
    tensors = [torch.from_numpy(piece).to(place) for piece in pieces]
    check_join(pieces, anydml.join(tensors, axis, device=GPU).cpu().numpy(), axis)
    odd = [torch.empty(t.numel() + 1, dtype=t.dtype, device=place)[1:].reshape(t.shape).copy_(t) for t in tensors]
    check_join(pieces, anydml.join(odd, axis, device=GPU).cpu().numpy(), axis)
    turned = [t.mT.contiguous().mT for t in tensors]
    check_join(pieces, anydml.join(turned, axis, device=GPU).cpu().numpy(), axis)


@on_gpu
def test_a_join_with_other_addresses_each_time(torch: Any, place: Any) -> None:
    kept = []
    for i in range(80):
        pieces = [torch.full((3,), float(i + k), device=place) for k in range(3)]
        assert anydml.join(pieces, device=GPU).tolist() == [i] * 3 + [i + 1] * 3 + [i + 2] * 3
        kept.append(pieces)


@on_gpu
def test_a_join_of_more_inputs_than_a_launch_takes_addresses(torch: Any, place: Any) -> None:
    pieces = [torch.full((2,), i, dtype=torch.int32, device=place) for i in range(150)]
    assert anydml.join(pieces, device=GPU).tolist() == [i for i in range(150) for _ in range(2)]


@on_gpu
def test_streams_and_graphs_have_addresses_of_their_own(
    torch: Any, place: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A table that one stream has only begun to write must not be read by another."""
    from anydml.backends.triton.join import plan as join

    stream, recorded = [1], [False]
    monkeypatch.setattr(join, "stream_key_of", lambda device: None if recorded[0] else stream[0])
    written = []
    write = join.Addresses.write
    monkeypatch.setattr(join.Addresses, "write", lambda self, places: written.append(places) or write(self, places))
    device = Device(GPU)
    three = tensor((3,))
    desc = DML_JOIN_OPERATOR_DESC(InputTensors=[three, three], OutputTensor=tensor((6,)), Axis=0)
    operator = device.compile_operator(device.create_operator(desc))
    pieces, out = [torch.ones(3, device=place)] * 2, torch.empty(6, device=place)

    def tables_for(stream_number: int, in_graph: bool) -> int:
        stream[0], recorded[0] = stream_number, in_graph
        before = len(written)
        operator.dispatch(pieces, [out])
        assert out.tolist() == [1] * 6
        out.zero_()
        return len(written) - before

    assert [tables_for(1, False), tables_for(1, False), tables_for(2, False), tables_for(2, False)] == [1, 0, 1, 0]
    assert [tables_for(2, True), tables_for(2, True), tables_for(2, False)] == [1, 1, 0]


# Pooling


@pytest.fixture(params=["as planned", "small strips and tiles"])
def parts(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The kernels' ways for large tensors, on small ones."""
    from anydml.functions._call import _compile

    if request.param != "as planned":
        for name, value in {"STRIP": 5, "PLANE_TILE": 64, "PROGRAMS": 1}.items():
            monkeypatch.setattr(f"anydml.backends.triton.pooling.quantized.{name}", value)
    _compile.cache_clear()
    yield
    _compile.cache_clear()


def every(random: np.random.Generator, dtype: Any, shape: tuple[int, ...]) -> np.ndarray:
    limits = np.iinfo(dtype)
    return random.integers(limits.min, limits.max + 1, shape).astype(dtype)


@on_gpu
@pytest.mark.parametrize("seed", range(25))
def test_pooling(seed: int, parts: None, torch: Any, place: Any) -> None:
    """Windows by rows, by themselves, and over whole planes, from and to any address; gaps keep their bytes."""
    random = np.random.default_rng(seed)
    spatial = int(random.integers(2, 4))
    kinds = [(np.uint8, np.int8)[int(random.integers(2))] for _ in range(2)]
    sizes = [*(int(random.integers(1, 6 if seed % 3 else 12)) for _ in range(spatial - 1)), int(random.integers(1, 15))]
    window = [int(random.integers(1, min(size, 4) + 1)) for size in sizes]
    strides = [int(random.integers(1, 3)) for _ in sizes]
    start = [int(random.integers(0, size)) for size in window]
    end = [int(random.integers(0, size)) for size in window]
    if seed % 5 == 0:
        window, start, end = sizes, [0] * spatial, [0] * spatial
    elif seed % 2:
        # Rows of whole words come in and, of stride 1, out.
        sizes[-1] += -sizes[-1] % 4
        start[-1] += -(sizes[-1] + start[-1] + end[-1] - window[-1] + 1) % 4
    dilations = [1] * spatial
    include_padding = bool(seed % 3 == 0)
    channels = 3
    out_sizes = [
        (size + before + after - width) // step + 1
        for size, before, after, width, step in zip(sizes, start, end, window, strides, strict=True)
    ]
    offsets = [0 if seed % 2 else int(random.integers(4)) for _ in range(2)]

    def lay(array: np.ndarray, offset: int) -> Any:
        """On the device, `offset` bytes and more behind a multiple of 16; the rest of the memory is 77."""
        memory = torch.full((array.size + 8,), 77, device=place, dtype=getattr(torch, array.dtype.name))
        return memory, memory[offset : offset + array.size].reshape(array.shape).copy_(torch.from_numpy(array))

    x = every(random, kinds[0], (2, channels, *sizes))
    _, given = lay(x, offsets[0])
    memory, out = lay(np.zeros((2, channels, *out_sizes), kinds[1]), offsets[1])
    scales = [random.choice([0.25, 0.5, 0.3, 1.0, 0.05, 0.04, 1e30], channels).astype(np.float32) for _ in range(2)]
    zero_points = [every(random, kind, (channels,)) for kind in kinds]
    anydml.quantized_linear_average_pooling(
        given,
        scales[0],
        zero_points[0],
        output_scale=scales[1],
        output_zero_point=zero_points[1],
        window_size=window,
        strides=strides,
        start_padding=start,
        end_padding=end,
        include_padding=include_padding,
        out=out,
        device=GPU,
    )
    quantisation = scales[0], zero_points[0], scales[1], zero_points[1]
    check_pooling(x, out.cpu().numpy(), *quantisation, window, strides, start, end, dilations, include_padding)
    assert (memory[: offsets[1]] == 77).all()
    assert (memory[offsets[1] + out.numel() :] == 77).all()


@on_gpu
def test_averages_are_rounded_as_in_double_precision(torch: Any, place: Any) -> None:
    """At half steps and as near to them as scales can be, of sums and counts of any window that goes by rows."""
    import triton

    from gpu_kernels import round_all

    random = np.random.default_rng(5)
    number = 2**16
    height, left = (random.integers(1, 17, number) for _ in range(2))
    inside, width = np.minimum(height, left), random.integers(1, 256, number) // height + 1
    count = inside * width
    total = random.integers(1, 255 * np.minimum(count, 257) + 1)
    wanted = np.ldexp(random.integers(1, 2**24, number), -random.integers(0, 24, number)).astype(np.float32)
    half = random.integers(0, 256, number) + 0.5
    given = (half * count * wanted.astype(np.float64) / total).astype(np.float32)
    given = np.where(random.random(number) < 0.3, np.nextafter(given, np.float32(random.choice([0, 1e9]))), given)
    total *= random.choice([-1, 1], number)
    exact = np.rint((total * given.astype(np.float64)) / (count * wanted.astype(np.float64)))
    # Of windows that lie inside but for some rows, whose share of the rows is a factor apart.
    factor = given / (height * width * wanted.astype(np.float64)) * (height / inside)
    y = torch.empty(number, dtype=torch.int32, device=place)
    arguments = (torch.from_numpy(each.astype(np.float64)).to(place) for each in (total, factor))
    round_all[(1,)](*arguments, y, N=triton.language.constexpr(number))
    np.testing.assert_array_equal(np.clip(y.cpu().numpy(), -255, 255), np.clip(exact, -255, 255))


@on_gpu
def test_pooling_of_channels_far_apart(torch: Any, place: Any) -> None:
    """More than 2^31 bytes lie between channels 0 and 2. Of those, only the pages with elements are ever touched."""
    shape, strides = (1, 3, 1, 4), (0, 2**30 + 16, 4, 1)
    x, y = (torch.from_numpy(np.zeros(2**31 + 64, np.uint8)).to(place).as_strided(shape, strides) for _ in range(2))
    x[0, 0], x[0, 1], x[0, 2] = 3, 7, 11
    for window in ((1, 4), (1, 2)):
        out = y[..., : 5 - window[1]]
        anydml.quantized_linear_average_pooling(x, 1.0, output_scale=1.0, window_size=window, out=out, device=GPU)
        assert (out == x[..., : out.shape[-1]]).all()


def small_descs() -> list[OperatorDesc]:
    rows, long = tensor((4, 1000)), tensor((1, 1 << 20))
    images, windows = tensor((2, 3, 8, 8), "UINT8"), tensor((2, 3, 4, 4), "UINT8")
    plane, one = tensor((2, 3, 1, 1), "UINT8"), tensor((1, 1, 1, 1))
    pooling = {"InputTensor": images, "InputScaleTensor": one, "OutputScaleTensor": one}
    pooling |= {"StartPadding": (0, 0), "EndPadding": (0, 0), "Dilations": (1, 1)}
    return [
        DML_CUMULATIVE_SUMMATION_OPERATOR_DESC(InputTensor=rows, OutputTensor=rows, Axis=1),
        DML_CUMULATIVE_SUMMATION_OPERATOR_DESC(InputTensor=long, OutputTensor=long, Axis=1),
        DML_CUMULATIVE_PRODUCT_OPERATOR_DESC(InputTensor=long, OutputTensor=long, Axis=1),
        DML_JOIN_OPERATOR_DESC(InputTensors=[rows, rows], OutputTensor=tensor((4, 2000)), Axis=1),
        DML_QUANTIZED_LINEAR_AVERAGE_POOLING_OPERATOR_DESC(
            **pooling, OutputTensor=windows, WindowSize=(2, 2), Strides=(2, 2)
        ),
        DML_QUANTIZED_LINEAR_AVERAGE_POOLING_OPERATOR_DESC(
            **pooling, OutputTensor=plane, WindowSize=(8, 8), Strides=(1, 1)
        ),
    ]


@on_gpu
@pytest.mark.parametrize("number", range(len(small_descs())))
def test_a_graph_replays_a_dispatch(torch: Any, place: Any, number: int) -> None:
    """The first dispatch may be the captured one, and the operator may be gone when the graph is replayed."""
    if place.type != "cuda":
        pytest.skip("graphs are CUDA's")
    device = Device(GPU)
    operator = device.compile_operator(device.create_operator(small_descs()[number]))
    kinds = {TensorDataType.FLOAT32: torch.float32, TensorDataType.UINT8: torch.uint8}

    def ones(tensors: Any) -> list[Any]:
        return [it and torch.ones(it.Sizes, dtype=kinds[it.DataType], device=place) for _, it in tensors]

    inputs, outputs = ones(operator.spec.inputs(operator.desc)), ones(operator.spec.outputs(operator.desc))
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        operator.dispatch(inputs, outputs)
    for i, each in enumerate(inputs[:1] if len(inputs) > 2 else inputs):
        each.fill_(1 + i)
    wanted = [torch.empty_like(each) for each in outputs]
    operator.dispatch(inputs, wanted)
    for again in range(2):
        outputs[0].fill_(99)
        graph.replay()
        assert torch.equal(outputs[0], wanted[0])
        if again == 0:
            del operator


@on_gpu
@pytest.mark.parametrize("shape", [(4, 1000), (1, 300_000)])
@pytest.mark.parametrize("call", [anydml.cumulative_summation, anydml.cumulative_product])
def test_what_a_graph_captures_is_replayed(torch: Any, place: Any, call: Any, shape: tuple[int, int]) -> None:
    """One tile of several lines, and a chain, whose words each replay begins anew."""
    if place.type != "cuda":
        pytest.skip("graphs are CUDA's")
    x, y = torch.ones(shape, device=place), torch.empty(shape, device=place)
    call(x, 1, out=y, device=GPU)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        call(x, 1, out=y, device=GPU)
    for i in range(3):
        x.fill_(1).view(-1)[-1] = i
        y.zero_()
        graph.replay()
        expected = shape[1] - 1 + i if call is anydml.cumulative_summation else i
        assert y.view(-1)[-1].item() == expected
