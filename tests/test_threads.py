"""One compiled operator, and the functions, from several threads at once."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np
import pytest

from anydml import (
    DML_BUFFER_BINDING,
    DML_BUFFER_TENSOR_DESC,
    DML_CUMULATIVE_SUMMATION_OPERATOR_DESC,
    Device,
    TensorDataType,
    TensorFlags,
    cumulative_product,
    cumulative_summation,
    join,
    quantized_linear_average_pooling,
)
from cases import tensor
from harness import ENGINES, compiled

pytestmark = pytest.mark.slow

THREADS = 8
ROUNDS = 25

engine = pytest.mark.parametrize("engine", ENGINES)


def at_once(work: Callable[[int], None]) -> None:
    """Calls `work` with 0..7, each on a thread of its own, all starting together; raises what one raised."""
    barrier = Barrier(THREADS)

    def start(i: int) -> None:
        barrier.wait()
        for _ in range(ROUNDS):
            work(i)

    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(start, range(THREADS)))


def values(i: int, size: int) -> np.ndarray:
    return np.random.default_rng(i).integers(-9, 9, size).astype(np.int32)


@engine
@pytest.mark.parametrize(("shape", "axis"), [((5,), 0), ((300, 500), 1), ((300, 500), 0), ((2, 3, 40000), 1)])
def test_one_operator_on_different_data(engine: str, shape: tuple[int, ...], axis: int) -> None:
    desc = DML_CUMULATIVE_SUMMATION_OPERATOR_DESC(
        InputTensor=tensor(shape, "INT32"), OutputTensor=tensor(shape, "INT32"), Axis=axis
    )
    operator = compiled(engine, desc)
    inputs = [values(i, int(np.prod(shape))).reshape(shape) for i in range(THREADS)]
    expected = [x.cumsum(axis, dtype=np.int32) for x in inputs]

    def work(i: int) -> None:
        output = np.full(shape, -1, np.int32)
        operator.dispatch([inputs[i]], [output])
        np.testing.assert_array_equal(output, expected[i])

    at_once(work)


@engine
def test_one_input_for_all(engine: str) -> None:
    """Threads may read the same memory."""
    desc = DML_CUMULATIVE_SUMMATION_OPERATOR_DESC(
        InputTensor=tensor((70000,), "INT32"), OutputTensor=tensor((70000,), "INT32"), Axis=0
    )
    operator, x = compiled(engine, desc), values(0, 70000)
    expected = x.cumsum(dtype=np.int32)

    def work(_: int) -> None:
        output = np.empty_like(x)
        operator.dispatch([x], [output])
        np.testing.assert_array_equal(output, expected)

    at_once(work)


@engine
def test_initialised_and_dispatched_at_once(engine: str) -> None:
    x = DML_BUFFER_TENSOR_DESC(DataType=TensorDataType.INT32, Sizes=(100,), Flags=TensorFlags.OWNED_BY_DML)
    desc = DML_CUMULATIVE_SUMMATION_OPERATOR_DESC(InputTensor=x, OutputTensor=tensor((100,), "INT32"), Axis=0)
    operator = compiled(engine, desc)

    def work(i: int) -> None:
        persistent = operator.initialise([values(i, 100)])
        output = np.empty(100, np.int32)
        operator.dispatch([None], [output], persistent=persistent)
        np.testing.assert_array_equal(output, values(i, 100).cumsum())

    at_once(work)


@engine
def test_tables_of_one_operator(engine: str) -> None:
    desc = DML_CUMULATIVE_SUMMATION_OPERATOR_DESC(
        InputTensor=tensor((100,), "INT32"), OutputTensor=tensor((100,), "INT32"), Axis=0
    )
    operator = compiled(engine, desc)
    device = operator.device
    operator.initialise([None])

    def work(i: int) -> None:
        x, output = values(i, 100), np.empty(100, np.int32)
        table = device.create_binding_table(operator)
        table.bind_inputs([DML_BUFFER_BINDING(Buffer=x)])
        table.bind_outputs([DML_BUFFER_BINDING(Buffer=output)])
        device.dispatch(operator, table)
        np.testing.assert_array_equal(output, x.cumsum())

    at_once(work)


@engine
def test_functions(engine: str) -> None:
    device = Device(engine)

    def work(i: int) -> None:
        # Sizes that some threads share and some do not, so that the cache of compiled operators is hit and missed.
        x = np.arange(1, 40 + i % 3, dtype=np.int64)
        np.testing.assert_array_equal(cumulative_summation(x, device=device), x.cumsum())
        np.testing.assert_array_equal(cumulative_product(x[:20], device=engine), x[:20].cumprod())
        np.testing.assert_array_equal(join([x, x + i], device=device), np.concatenate([x, x + i]))
        image = np.full((1, i + 1, 4, 4), 10 * i, np.uint8)
        pooled = quantized_linear_average_pooling(image, 1.0, output_scale=0.5, window_size=2, device=device)
        np.testing.assert_array_equal(pooled, np.full((1, i + 1, 3, 3), 20 * i))

    at_once(work)
