"""Windows over chunks: the same bits as in memory, each part with no more than its halo."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import anydml
from dask_chunks import chunked, computed, da, same_bits, tasks_per_chunk, untouchable

SEEDS = range(3)


def window(rng: np.random.Generator, rank: int, most: int = 4) -> dict[str, Any]:
    def numbers(low: int, high: int) -> list[int]:
        return rng.integers(low, high, rank).tolist()

    return {
        "strides": numbers(1, 4),
        "dilations": numbers(1, 3),
        "start_padding": numbers(0, most),
        "end_padding": numbers(0, most),
    }


def images(rng: np.random.Generator, *spatial: int, dtype: Any = np.float32) -> np.ndarray:
    x = rng.standard_normal((2, 4, *spatial)) * 50
    return x.astype(dtype)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("spatial", [(19, 31), (7, 8, 9)], ids=["2-D", "3-D"])
def test_averages_and_norms(seed: int, spatial: tuple[int, ...]) -> None:
    rng = np.random.default_rng(seed)
    x = images(rng, *spatial)
    size, options = rng.integers(1, 5, len(spatial)).tolist(), window(rng, len(spatial))
    for pool, more in [
        (anydml.average_pooling, {"include_padding": True}),
        (anydml.average_pooling, {"include_padding": False}),
        (anydml.lp_pooling, {"p": 3}),
    ]:
        found = pool(chunked(rng, x), size, **options, **more)
        same_bits(found, pool(x, size, **options, **more))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("dtype", [np.float32, np.int8])
def test_maxima_and_their_indices_in_the_whole(seed: int, dtype: Any) -> None:
    rng = np.random.default_rng(seed)
    x = images(rng, 23, 17, dtype=dtype)
    size, options = rng.integers(1, 4, 2).tolist(), window(rng, 2)
    same_bits(anydml.max_pooling(chunked(rng, x), size, **options), anydml.max_pooling(x, size, **options))
    options["indices_dtype"] = np.uint32 if seed % 2 else np.uint64
    same_bits(anydml.max_pooling(chunked(rng, x), size, **options), anydml.max_pooling(x, size, **options))


def test_indices_of_pictures_and_channels_in_chunks() -> None:
    x = images(np.random.default_rng(0), 9, 9)
    found = anydml.max_pooling(da.from_array(x, chunks=(1, 3, 9, 9)), 3, indices_dtype=np.uint32)
    assert found[1].chunks == ((1, 1), (3, 1), (7,), (7,))
    same_bits(found, anydml.max_pooling(x, 3, indices_dtype=np.uint32))


def test_chunks_without_elements() -> None:
    x = np.rint(images(np.random.default_rng(0), 9, 9))
    lazy = da.from_array(x, chunks=((0, 2), (4,), (3, 0, 6), (0, 5, 4, 0)))
    same_bits(anydml.average_pooling(lazy, 3), anydml.average_pooling(x, 3))
    same_bits(anydml.resample(lazy, [1, 1, 2, 2]), anydml.resample(x, [1, 1, 2, 2]))
    same_bits(anydml.slice(lazy, 0, [2, 4, 9, 9], [1, 1, -2, -3]), anydml.slice(x, 0, [2, 4, 9, 9], [1, 1, -2, -3]))
    same_bits(anydml.padding(lazy, 2, 1, mode="EDGE"), anydml.padding(x, 2, 1, mode="EDGE"))
    same_bits(anydml.gemm(lazy, lazy, trans_b=True), anydml.gemm(x, x, trans_b=True))


@pytest.mark.parametrize("padding", [(9, 0), (0, 9), (9, 9)])
def test_windows_on_padding_alone(padding: tuple[int, int]) -> None:
    rng = np.random.default_rng(0)
    x = images(rng, 6, 11)
    options = {"start_padding": padding, "end_padding": padding[::-1], "strides": 2}
    for chunks in [(2, 4, 2, 3), (2, 4, 1, 1)]:
        chunks_of_x = da.from_array(x, chunks=chunks)
        for size in (1, 3):
            same_bits(
                anydml.max_pooling(chunks_of_x, size, indices_dtype=np.uint32, **options),
                anydml.max_pooling(x, size, indices_dtype=np.uint32, **options),
            )
            same_bits(anydml.average_pooling(chunks_of_x, size, **options), anydml.average_pooling(x, size, **options))


@pytest.mark.parametrize("include_padding", [False, True])
def test_output_sizes_rounded_up(include_padding: bool) -> None:
    rng = np.random.default_rng(1)
    x = images(rng, 12, 14)
    options = {"strides": 3, "end_padding": 1, "output_sizes": (5, 5), "include_padding": include_padding}
    for _ in range(5):
        same_bits(anydml.average_pooling(chunked(rng, x), 2, **options), anydml.average_pooling(x, 2, **options))


@pytest.mark.parametrize("seed", SEEDS)
def test_quantised_averages(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 255, (2, 4, 15, 18)).astype(np.uint8)
    scales = [rng.uniform(0.1, 2, (1, 4, 1, 1)).astype(np.float32), np.full((1, 1, 1, 1), 0.7, np.float32)]
    size, options = rng.integers(1, 4, 2).tolist(), window(rng, 2)

    def pooled(x: Any) -> Any:
        zero_point = np.full((1, 1, 1, 1), 7, np.uint8)
        return anydml.quantized_linear_average_pooling(
            x, scales[0], zero_point, output_scale=scales[1], output_zero_point=zero_point, window_size=size, **options
        )

    same_bits(pooled(chunked(rng, x)), pooled(x))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("groups", [1, 2])
def test_convolutions_of_integers(seed: int, groups: int) -> None:
    rng = np.random.default_rng(seed)
    x = rng.integers(-100, 100, (2, 4, 18, 21)).astype(np.int8)
    w = rng.integers(-100, 100, (6, 4 // groups, *rng.integers(1, 5, 2))).astype(np.int8)
    options = window(rng, 2) | {"group_count": groups}
    found = anydml.convolution_integer(chunked(rng, x), chunked(rng, w), **options)
    same_bits(found, anydml.convolution_integer(x, w, **options))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("groups", [1, 4])
def test_convolutions(seed: int, groups: int) -> None:
    """Of whole numbers, whose sums are exact in any order."""
    rng = np.random.default_rng(seed)
    x = np.rint(images(rng, 18, 21))
    w = rng.integers(-9, 9, (8, 4 // groups, *rng.integers(1, 5, 2))).astype(np.float32)
    bias = rng.integers(-9, 9, (1, 8, 1, 1)).astype(np.float32)
    options = window(rng, 2) | {"group_count": groups, "activation": "ACTIVATION_RELU"}
    found = anydml.convolution(chunked(rng, x), chunked(rng, w), chunked(rng, bias), **options)
    same_bits(found, anydml.convolution(x, w, bias, **options))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("groups", [1, 4])
def test_transposed_convolutions(seed: int, groups: int) -> None:
    rng = np.random.default_rng(seed)
    x = np.rint(images(rng, 11, 14))
    w = rng.integers(-9, 9, (4, 8 // groups, *rng.integers(2, 5, 2))).astype(np.float32)
    bias = rng.integers(-9, 9, (1, 8, 1, 1)).astype(np.float32)
    options = window(rng, 2, 3) | {"group_count": groups, "activation": "relu", "direction": "BACKWARD"}
    for more in ({}, {"output_padding": [1, 0]}):
        found = anydml.convolution(chunked(rng, x), chunked(rng, w), bias, **options, **more)
        same_bits(found, anydml.convolution(x, w, bias, **options, **more))


@pytest.mark.parametrize("seed", range(6))
def test_gradients_of_pooling(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = images(rng, 17, 22)
    size, options = rng.integers(1, 4, 2).tolist(), window(rng, 2)
    gradient = rng.standard_normal(anydml.max_pooling(x, size, **options).shape).astype(np.float32)
    expected = anydml.max_pooling_grad(x, gradient, size, **options)
    same_bits(anydml.max_pooling_grad(chunked(rng, x), chunked(rng, gradient), size, **options), expected)
    same_bits(anydml.max_pooling_grad(x, chunked(rng, gradient), size, **options), expected)
    del options["dilations"]
    gradient = rng.standard_normal(anydml.average_pooling(x, size, **options).shape).astype(np.float32)
    for include_padding in (False, True):
        options["include_padding"] = include_padding
        found = anydml.average_pooling_grad(chunked(rng, gradient), (17, 22), size, **options)
        assert found.numblocks[2:] != (1, 1)
        same_bits(found, anydml.average_pooling_grad(gradient, (17, 22), size, **options))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("cross_channel", [False, True])
def test_local_response_normalisation(seed: int, cross_channel: bool) -> None:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((2, 19, 12, 13)).astype(np.float32)
    options = {"cross_channel": cross_channel, "local_size": int(rng.integers(1, 7))}
    found = anydml.local_response_normalization(chunked(rng, x), **options)
    same_bits(found, anydml.local_response_normalization(x, **options))


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("dtype", [np.float32, np.uint8])
def test_resampling(seed: int, dtype: Any) -> None:
    rng = np.random.default_rng(seed)
    x = images(rng, 19, 23, dtype=dtype)
    mode = ["LINEAR", "NEAREST_NEIGHBOR"][seed % 2]
    scales = [1, 1, *rng.choice([0.3, 0.5, 2 / 3, 1, 1.7, 2, 3], 2).tolist()]
    offsets = {"input_pixel_offsets": [0.5, 0.5, 0.25, 0.5], "output_pixel_offsets": [-0.5, -0.5, 0, -0.3]}
    directions = [{"rounding_direction": each} for each in ("INCREASING", "DECREASING")]
    antialiased = [{"antialiased": True, **directions[0]}] if mode == "LINEAR" else []
    for more in ({}, offsets, *directions, *antialiased, {"output_sizes": (2, 4, 30, 9)}):
        options = {"scales": scales, "interpolation_mode": mode, **more}
        same_bits(anydml.resample(chunked(rng, x), **options), anydml.resample(x, **options))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("mode", ["LINEAR", "NEAREST_NEIGHBOR"])
def test_upsampling(seed: int, mode: str) -> None:
    rng = np.random.default_rng(seed)
    x = images(rng, 9, 13)
    for scale in ((2, 2), (1, 3), (4, 1)):
        options = {"scale_size": scale, "interpolation_mode": mode}
        same_bits(anydml.upsample_2d(chunked(rng, x), **options), anydml.upsample_2d(x, **options))


def test_chunks_of_what_is_enlarged_grow_no_longer() -> None:
    x = da.zeros((1, 1, 40, 1000), dtype=np.float32, chunks=(1, 1, 40, 100))
    found = anydml.resample(x, scales=[1, 1, 1, 8], interpolation_mode="LINEAR")
    assert found.chunks == ((1,), (1,), (40,), (100,) * 80)
    assert tasks_per_chunk(found, x) <= 3


def test_chunks_stay_and_few_tasks_are_made() -> None:
    x = da.zeros((1, 1, 1, 100_000), dtype=np.float32, chunks=(1, 1, 1, 100))
    found = anydml.average_pooling(x, [1, 3], start_padding=[0, 1], end_padding=[0, 1])
    assert found.chunks == x.chunks
    assert tasks_per_chunk(found, x) <= 3
    squares = da.zeros((1, 1, 512, 512), dtype=np.float32, chunks=(1, 1, 64, 64))
    found = anydml.convolution(squares, np.ones((1, 1, 3, 3), np.float32), start_padding=1, end_padding=1)
    assert found.chunks == squares.chunks
    assert tasks_per_chunk(found, squares) <= 10
    assert anydml.max_pooling(squares, 2, strides=2).npartitions == squares.npartitions
    assert tasks_per_chunk(anydml.max_pooling(squares, 2, strides=2), squares) == 1


def test_no_more_than_a_halo_is_read() -> None:
    read = []

    def noted(block: np.ndarray, block_info: Any = None) -> np.ndarray:
        read.append(block_info[0]["chunk-location"][3])
        return block

    x = da.zeros((1, 1, 1, 100), dtype=np.float32, chunks=(1, 1, 1, 10)).map_blocks(
        noted, dtype=np.float32, meta=np.empty((0,) * 4, np.float32)
    )
    found = anydml.max_pooling(x, [1, 3], start_padding=[0, 1], end_padding=[0, 1])
    computed(found[..., 40:50])
    assert sorted(read) == [3, 4, 5]


def test_nothing_is_computed_while_the_graph_is_made() -> None:
    x = untouchable((2, 3, 20, 20), np.float32, (1, 1, 5, 5))
    w = untouchable((4, 3, 3, 3), np.float32, (2, 3, 3, 3))
    found = [
        anydml.average_pooling(x, 3),
        *anydml.max_pooling(x, 3, indices_dtype=np.uint32),
        anydml.convolution(x, w),
        anydml.local_response_normalization(x, local_size=3),
    ]
    assert all(isinstance(each, da.Array) for each in found)
    assert anydml.convolution(x, w).name == found[3].name
