"""Joins and pooling on a GPU, streams and captured graphs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import anydml
from anydml import (
    DML_CUMULATIVE_PRODUCT_OPERATOR_DESC,
    DML_CUMULATIVE_SUMMATION_OPERATOR_DESC,
    DML_JOIN_OPERATOR_DESC,
    DML_QUANTIZED_LINEAR_AVERAGE_POOLING_OPERATOR_DESC,
    Device,
    TensorDataType,
)
from anydml.operators.schema import OperatorDesc
from cases import tensor
from exact import check_join, check_pooling
from gpu_calls import on_gpu
from harness import GPU

pytestmark = pytest.mark.gpu

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
        ([(3, 93), (3, 231)], 1),
        ([(1, 331)] * 3, 0),
        ([(1, 300)] * 3, 0),
        ([(1300, 1)] * 3, 1),
        ([(6, 1), (6, 1)], 1),
        ([(2, 2047), (2, 4093)], 1),
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
