"""Graphs on a GPU: what becomes one call of a library, in which order tensors lie, and replays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import anydml
from anydml import DML_BUFFER_TENSOR_DESC, Device, ExecutionFlags, Graph, TensorDataType
from anydml.backends.torch.devices import is_interpreted
from anydml.draw import draw_graph
from gpu_calls import on_gpu
from harness import GPU

pytestmark = pytest.mark.gpu

on_card = pytest.mark.skipif(not GPU or is_interpreted(), reason="needs a GPU: make test-gpu")
TYPES = (np.float32, np.float16)


def _random(*shape: int, dtype: Any = np.float32, seed: int = 0) -> np.ndarray:
    return np.random.default_rng((seed, *shape)).standard_normal(shape).astype(dtype)


def _constant(graph: Graph, array: np.ndarray) -> Any:
    data_type = TensorDataType[array.dtype.name.upper()]
    data = array.tobytes()
    return graph.constant(DML_BUFFER_TENSOR_DESC(DataType=data_type, Sizes=array.shape), data + bytes(-len(data) % 4))


def _both(build: Any, arrays: list[np.ndarray], weights: list[np.ndarray], flags: Any = ExecutionFlags.NONE) -> Any:
    """A graph on the GPU, and its results there and on the CPU."""
    results = []
    for device in (Device(GPU), Device("cpu")):
        graph = Graph(device)
        inputs = [graph.input(each) for each in arrays]
        compiled = graph.compile([build(*inputs, *[_constant(graph, each) for each in weights])], flags)
        results.append((compiled, compiled(*arrays)))
    (found, y), (_, expected) = results
    return found, y, expected


def _near(found: np.ndarray, expected: np.ndarray, bound: float | None = None) -> None:
    bound = bound or (2e-3 if found.dtype == np.float16 else 1e-5)
    wide = expected.astype(np.float64)
    assert np.abs(found - wide).max() <= bound * np.abs(wide).max()


@on_gpu
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("swapped", [False, True])
def test_relu_of_a_sum_is_part_of_a_convolution(dtype: Any, swapped: bool) -> None:
    x, w = _random(2, 3, 9, 7, dtype=dtype), _random(4, 3, 3, 3, dtype=dtype)
    bias, v = _random(1, 4, 1, 1, dtype=dtype), _random(4, 4, 1, 1, dtype=dtype)

    def build(x: Any, w: Any, bias: Any, v: Any) -> Any:
        before = anydml.relu(anydml.convolution(x, w, bias, start_padding=(1, 1), end_padding=(1, 1)))
        second = anydml.convolution(before, v)
        return anydml.relu(before + second if swapped else second + before) * 2

    graph, found, expected = _both(build, [x], [w, bias, v])
    assert [step.vertex.spec.name for step in graph.steps][:2] == ["CONVOLUTION", "CONVOLUTION_ADD_RELU"]
    assert "RELU fused into" in graph.explain()
    assert "+ ELEMENT_WISE_ADD" in draw_graph(graph)
    _near(found, expected)


@on_gpu
def test_what_a_sum_has_that_is_no_part_of_a_convolution() -> None:
    def kernels(build: Any) -> list[str]:
        graph = Graph(Device(GPU))
        x, w = graph.input((1, 4, 5, 5)), _constant(graph, _random(4, 4, 1, 1))
        return [step.vertex.spec.name for step in graph.compile([*build(x, anydml.convolution(x, w))]).steps]

    assert "CONVOLUTION_ADD_RELU" in kernels(lambda x, y: [anydml.relu(x + y)])
    for build in (
        lambda x, y: [x + y],
        lambda x, y: [anydml.relu(x + y), y],
        lambda x, y: [anydml.relu(y + y)],
        lambda x, y: [anydml.relu(x + y), x + y],
        lambda x, y: [anydml.relu(x - y)],
    ):
        assert "CONVOLUTION_ADD_RELU" not in kernels(build)


@on_gpu
@pytest.mark.parametrize("dtype", TYPES)
def test_a_bias_is_added_by_what_follows(dtype: Any) -> None:
    x, w, bias = _random(2, 3, 6, 5, dtype=dtype), _random(4, 3, 3, 3, dtype=dtype), _random(1, 4, 1, 1, dtype=dtype)
    graph, found, expected = _both(lambda x, w, b: anydml.clip(anydml.convolution(x, w, b), 0, 6), [x], [w, bias])
    assert [step.vertex.spec.name for step in graph.steps] == ["CONVOLUTION", "ELEMENT_WISE_CHAIN"]
    _near(found, expected)


@on_gpu
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("are_columns", [False, True])
def test_attention_of_products(dtype: Any, are_columns: bool) -> None:
    q, k, v = (_random(2, 3, n, 8, dtype=dtype, seed=n) for n in (5, 7, 7))

    def build(q: Any, k: Any, v: Any) -> Any:
        keys = k if are_columns else anydml.identity(k)
        scores = anydml.gemm(q, keys, trans_b=not are_columns, alpha=0.3)
        return anydml.gemm(anydml.softmax(scores, axes=(3,)), v)

    k = np.ascontiguousarray(k.swapaxes(-1, -2)) if are_columns else k
    graph, found, expected = _both(build, [q, k, v], [])
    assert "PRODUCT_ATTENTION" in [step.vertex.spec.name for step in graph.steps]
    assert "+ ACTIVATION_SOFTMAX" in draw_graph(graph)
    _near(found, expected)


@on_gpu
@pytest.mark.parametrize("dtype", TYPES)
def test_attention_takes_scales_and_gives_rows(dtype: Any) -> None:
    x = _random(2, 5, 3 * 24, dtype=dtype)
    scale = np.full((1, 1, 1, 1), 0.4, dtype)

    def heads(x: Any, first: int, last: tuple[int, ...]) -> Any:
        return anydml.slice(x, (0, 0, first), (2, 5, 24)).reshape(2, 5, 3, 8).transpose(last)

    def build(x: Any, scale: Any) -> Any:
        q, k, v = (heads(x, 24 * i, (0, 2, 3, 1) if i == 1 else (0, 2, 1, 3)) for i in range(3))
        y = anydml.gemm(anydml.softmax(anydml.gemm(q * scale, k * scale), axes=(3,)), v)
        return anydml.identity(y.transpose(0, 2, 1, 3))

    graph, found, expected = _both(build, [x], [scale])
    # Queries, keys and values are read where they lie, and the result is given as rows.
    assert [step.vertex.spec.name for step in graph.steps] == ["PRODUCT_ATTENTION"]
    _near(found, expected)


@on_gpu
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("are_read_twice", [False, True])
def test_attention_reads_parts_where_they_lie(dtype: Any, are_read_twice: bool) -> None:
    x, w = _random(2, 5, 20, dtype=dtype), _random(20, 3 * 24, dtype=dtype) / 4
    bias = _random(3 * 24, dtype=dtype)

    def build(x: Any, w: Any, bias: Any) -> Any:
        every = (x.reshape(10, 20) @ w + bias).reshape(2, 5, 72)
        parts = anydml.split(every, 3, axis=2)
        q, k, v = (each.reshape(2, 5, 3, 8).transpose(0, 2, 1, 3) for each in parts)
        y = anydml.gemm(anydml.softmax(anydml.gemm(q, k, trans_b=True, alpha=0.3), axes=(3,)), v)
        return y + (anydml.relu(q) if are_read_twice else 0)

    graph, found, expected = _both(build, [x], [w, bias])
    names = [step.vertex.spec.name for step in graph.steps]
    assert names[0] == "GEMM"
    assert names[1] != "ELEMENT_WISE_ADD"
    assert "PRODUCT_ATTENTION" in names
    assert ("SPLIT" in names) == are_read_twice
    _near(found, expected)


@on_gpu
@pytest.mark.parametrize("sizes", [(1, 1, 1, 1), (3, 130, 65, 64), (2, 7, 200, 20), (1, 33, 70, 65)])
@pytest.mark.parametrize("flags", [ExecutionFlags.NONE, ExecutionFlags.ALLOW_HALF_PRECISION_COMPUTATION])
def test_attention_of_any_sizes(sizes: tuple[int, ...], flags: Any) -> None:
    heads, queries, keys, size = sizes
    q, k, v = (_random(2, heads, n, size, seed=i) for i, n in enumerate((queries, keys, keys)))
    k[1, 0, -1] = np.inf  # Some scores are infinite, of either sign: what is lost is NaN.

    def build(q: Any, k: Any, v: Any) -> Any:
        return anydml.gemm(anydml.softmax(anydml.gemm(q, k, trans_b=True, alpha=0.2), axes=(3,)), v)

    with np.errstate(invalid="ignore"):
        graph, found, _ = _both(build, [q, k, v], [], flags)
        scores = 0.2 * np.matmul(q.astype(np.float64), k.swapaxes(-1, -2).astype(np.float64))
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        wanted = np.matmul(weights / weights.sum(-1, keepdims=True), v.astype(np.float64))
    assert [step.vertex.spec.name for step in graph.steps] == ["PRODUCT_ATTENTION"]
    np.testing.assert_array_equal(np.isnan(found), np.isnan(wanted))
    there = np.isfinite(wanted)
    _near(found[there], wanted[there], 1e-5 if flags == ExecutionFlags.NONE else 4e-3)


@on_gpu
def test_biases_of_halves_are_added_by_products_where_nothing_chains_them() -> None:
    x, w, bias = (_random(*shape, dtype=np.float16) for shape in ((5, 8), (8, 6), (6,)))

    def build(x: Any, w: Any, bias: Any) -> Any:
        return anydml.softmax(x @ w + bias), (x * 2) @ w + bias

    for index, names in ((0, ["GEMM", "ACTIVATION_SOFTMAX"]), (1, None)):
        graph, found, expected = _both(lambda *given, i=index: build(*given)[i], [x], [w, bias])
        assert names is None or [step.vertex.spec.name.rstrip("1") for step in graph.steps] == names
        _near(found, expected)


@on_gpu
def test_products_of_a_batch_with_one_matrix() -> None:
    for dtype in TYPES:
        a, b, c = (_random(*shape, dtype=dtype) for shape in ((3, 2, 5, 4), (4, 6), (6,)))
        wide = a.astype(np.float64) @ b.astype(np.float64)
        for flags in (ExecutionFlags.NONE, ExecutionFlags.ALLOW_HALF_PRECISION_COMPUTATION):
            run = anydml.compile(lambda a, b, c: a @ b + c, device=Device(GPU), flags=flags)
            _near(run(a, b, c), wide + c, 2e-3)
            graph = Graph(Device(GPU))
            x = graph.input(a)
            compiled = graph.compile([x @ _constant(graph, b)], flags)
            for _ in range(2):
                _near(compiled(a), wide, 2e-3)


@on_gpu
def test_sessions_give_tensors_and_take_flags(torch: Any) -> None:
    onnx = pytest.importorskip("onnx")
    from onnx import helper

    from anydml.onnx import InferenceSession

    weights = helper.make_tensor("w", onnx.TensorProto.FLOAT, (8, 8), _random(8, 8).ravel())
    sides = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, (20, 8)) for name in "xy"]
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"])], "one", sides[:1], sides[1:], [weights])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    flags = ExecutionFlags.ALLOW_HALF_PRECISION_COMPUTATION
    session = InferenceSession(model, device=GPU, flags=flags)
    assert "TF32 allowed" in session.graph.explain()
    x = _random(20, 8, seed=1)
    (of_array,), (found,) = (
        session.run(None, {"x": each}) for each in (x, torch.from_numpy(x).to(Device(GPU).memory.device))
    )
    assert isinstance(found, torch.Tensor)
    assert isinstance(of_array, np.ndarray)
    _near(found.cpu().numpy(), of_array)
    _near(of_array, x.astype(np.float64) @ _random(8, 8), 2e-3)


@on_gpu
def test_times_are_those_of_each_kernel() -> None:
    import torch

    graph = Graph(Device(GPU))
    x = graph.input((1, 1, 8, 8))
    compiled = graph.compile([anydml.cumulative_summation(anydml.relu(x), axis=3)])
    place = Device(GPU).memory.device  # type: ignore[attr-defined]
    tensors = [torch.ones((1, 1, 8, 8), device=place) for _ in range(2)]
    times = compiled.times(tensors[:1], tensors[1:], runs=2)
    assert len(times) == len(compiled.steps) == 2
    assert all(seconds > 0 for seconds in times)
    assert tensors[1][0, 0, 0].tolist() == [1, 2, 3, 4, 5, 6, 7, 8]


def _layers(device: Device, dtype: Any = np.float32, count: int = 6) -> Any:
    graph = Graph(device)
    x = graph.input((2, 8, 6, 6), dtype)
    y = x
    for i in range(count):
        y = anydml.relu(anydml.convolution(y, _constant(graph, _random(8, 8, 1, 1, dtype=dtype, seed=i) / 2)))
    return graph.compile([anydml.softmax(y, axes=(1,))])


@on_card
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("moves", [(), (0,), (1,), (0, 1)])
def test_replays_give_the_same(dtype: Any, moves: tuple[int, ...]) -> None:
    import torch

    compiled, expected = _layers(Device(GPU), dtype), _layers(Device("cpu"), dtype)
    fixed = [torch.empty((2, 8, 6, 6), device="cuda", dtype=getattr(torch, np.dtype(dtype).name)) for _ in range(2)]
    kept = []
    for i in range(8):
        x = _random(2, 8, 6, 6, dtype=dtype, seed=i)
        used = [each.clone() if k in moves else each for k, each in enumerate(fixed)]
        kept += used
        used[0].copy_(torch.from_numpy(x))
        used[1].fill_(7)
        compiled.dispatch([used[0]], [used[1]])
        _near(used[1].cpu().numpy(), expected(x), 4e-3 if dtype == np.float16 else 1e-4)
    words = f"replayed as one CUDA graph{f', {len(moves)} tensors by way of buffers' if moves else ''}"
    assert words in compiled.explain()


@on_card
def test_tensors_that_move_later_are_followed() -> None:
    import torch

    compiled = _layers(Device(GPU))
    x = torch.randn((2, 8, 6, 6), device="cuda")
    wanted = compiled(x)
    kept = []
    for i in range(12):
        given = x if i < 5 else x.clone()
        out = torch.full_like(x, 7)
        kept += [given, out]
        compiled.dispatch([given], [out])
        assert torch.equal(out, wanted)


@on_card
def test_threads_and_streams_replay_at_once() -> None:
    from concurrent.futures import ThreadPoolExecutor

    import torch

    compiled = _layers(Device(GPU), count=12)
    xs = [torch.randn((2, 8, 6, 6), device="cuda") for _ in range(8)]
    wanted = [compiled(x) for x in xs]
    torch.cuda.synchronize()

    def work(i: int) -> bool:
        stream = torch.cuda.Stream() if i % 2 else torch.cuda.default_stream()
        with torch.cuda.stream(stream):
            return all(torch.equal(compiled(xs[i]), wanted[i]) for _ in range(100))

    with ThreadPoolExecutor(8) as threads:
        assert all(threads.map(work, range(8)))


@on_card
def test_two_devices_in_one_process() -> None:
    from concurrent.futures import ThreadPoolExecutor

    import torch

    places = [f"cuda:{i}" for i in range(torch.cuda.device_count())]
    graphs = [_layers(Device(place)) for place in places]
    x = torch.randn((2, 8, 6, 6))
    wanted = _layers(Device("cpu"))(x.numpy())

    def work(i: int) -> bool:
        given = x.to(places[i])
        for _ in range(50):
            found = graphs[i](given)
            total = anydml.reduce(found, "SUM", axes=(1,), device=places[i])
            assert found.device == total.device == given.device
            _near(found.cpu().numpy(), wanted, 1e-4)
            _near(total.cpu().numpy(), np.ones((2, 1, 6, 6), np.float32))
        return True

    assert all(work(i) for i in range(len(places)))
    with ThreadPoolExecutor(4) as threads:
        assert all(threads.map(work, [i % len(places) for i in range(8)]))


@on_card
def test_a_capture_of_others_holds_the_kernels() -> None:
    import torch

    compiled = _layers(Device(GPU))
    x = torch.randn((2, 8, 6, 6), device="cuda")
    for _ in range(5):
        wanted = compiled(x)
    graph, found = torch.cuda.CUDAGraph(), torch.empty_like(wanted)
    with torch.cuda.graph(graph):
        compiled.dispatch([x], [found])
    found.zero_()
    graph.replay()
    torch.cuda.synchronize()
    assert torch.equal(found, wanted)
