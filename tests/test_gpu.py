"""The GPU engine beyond the cases, on a device or in Triton's interpreter: devices and arrays.

``make test-gpu`` runs this file and the cases; elsewhere only what takes neither PyTorch nor Triton is run.
"""

from __future__ import annotations

import os
import subprocess
import sys
from importlib import util
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

import anydml
from anydml import (
    DML_BUFFER_BINDING,
    DML_BUFFER_TENSOR_DESC,
    DML_CUMULATIVE_SUMMATION_OPERATOR_DESC,
    DML_JOIN_OPERATOR_DESC,
    Device,
    ExecutionFlags,
    HResult,
    TensorDataType,
)
from anydml.draw import EXAMPLES
from cases import tensor
from gpu_calls import on_gpu, refused
from harness import GPU, run
from test_library import LARGE, check_large

pytestmark = pytest.mark.gpu

# Devices


@pytest.mark.parametrize("missing", ["torch", "triton"])
@pytest.mark.parametrize("name", ["cuda", "cuda:1", "xpu"])
def test_what_a_gpu_takes_is_not_installed(name: str, missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def find_spec(module: str) -> Any:
        return None if module == missing else object()

    monkeypatch.setattr("anydml.backends.torch.devices.find_spec", find_spec)
    monkeypatch.setattr("anydml.backends.torch.devices._built_for", lambda torch: ["cuda", "xpu"])
    if util.find_spec("torch") is None:  # a module without devices stands for it: only Triton's absence is in question
        torch, backend = ModuleType("torch"), SimpleNamespace(is_available=lambda: False, device_count=lambda: 0)
        vars(torch).update(cuda=backend, xpu=backend, __version__="0")
        monkeypatch.setitem(sys.modules, "torch", torch)
    error = refused(lambda: Device(name), "(D7)")
    assert error.hresult == HResult.DXGI_ERROR_UNSUPPORTED
    assert f"{missing} is not installed" in str(error)
    assert "pip install 'anydml[gpu]'" in str(error)


@on_gpu
def test_a_gpu_that_is_not_there() -> None:
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("the interpreter takes any name")
    assert f"of {torch.cuda.device_count()}" in str(refused(lambda: Device("cuda:999"), "(D7)"))


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
@pytest.mark.longest
def test_all_kernels_compile() -> None:
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    script = [sys.executable, str(Path(__file__).with_name("gpu_compile.py"))]
    done = subprocess.run(script, env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-5000:]
    _, *kernels = done.stdout.split()
    assert kernels == [
        "apply_lines",
        "average_gradients",
        "average_planes",
        "best_of_blocks",
        "choose_scale",
        "clear_places",
        "compute_lines",
        "count_nonzero",
        "count_up",
        "dequantize_blocks",
        "fill_diagonals",
        "find_maxima",
        "find_range",
        "finish",
        "finish_along_channels",
        "finish_lines",
        "fold",
        "gather_gradients",
        "gradient_strips",
        "join_columns",
        "join_elements",
        "join_packed_rows",
        "join_runs",
        "join_shifted",
        "kernel",
        "largest_bytes",
        "local_response",
        "mark_elements",
        "mark_places",
        "mark_points",
        "normalize",
        "normalize_channels",
        "normalize_lines",
        "one_hot",
        "plane_gradients",
        "pool_gradients",
        "pool_rows",
        "pool_strips",
        "pool_windows",
        "quantize",
        "quantize_blocks",
        "random_blocks",
        "rank_lines",
        "reduce_lines",
        "reduce_rows",
        "reread_lines",
        "reverse_subsequences",
        "roi_align",
        "roi_pooling",
        "scale_channels",
        "scan_chain",
        "scan_narrow",
        "scan_narrow_chain",
        "scan_row_chain",
        "scan_rows",
        "scan_short_rows",
        "scan_tiles",
        "select_of_lines",
        "settle_lines",
        "sort_lines",
        "sum_lines",
        "take_elements",
        "take_or_clear",
        "take_slices",
        "unfold",
        "weigh_samples",
        "write_addresses",
        "write_coordinates",
    ]


@on_gpu
def test_tensors_of_any_size_are_planned_and_offsets_are_wide_enough() -> None:
    import triton

    if tuple(map(int, triton.__version__.split(".")[:2])) < (3, 9):
        pytest.skip(f"Triton {triton.__version__}: its interpreter works with today's NumPy from 3.9 on")
    script = [sys.executable, str(Path(__file__).with_name("gpu_addresses.py"))]
    done = subprocess.run(script, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, (done.stdout + done.stderr)[-5000:]


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
