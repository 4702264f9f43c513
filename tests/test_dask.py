"""Functions of Dask arrays: every operator on random chunks beside itself in memory, bit for bit."""

from __future__ import annotations

import gc
import pickle
import random
import runpy
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pytest

import anydml
from anydml import DMLError, TensorDataType
from anydml.draw import draw_tasks
from anydml.operators import OPERATORS, spec_of
from anydml.operators.schema import OperatorDesc
from applied import applied, as_described, operands_of
from cases import Case, all_cases
from dask_chunks import chunked, da
from function_calls import refused
from harness import GPU, assert_same

IN_ANY_ORDER = {
    "BATCH_NORMALIZATION_GRAD",
    "BATCH_NORMALIZATION_TRAINING",
    "BATCH_NORMALIZATION_TRAINING_GRAD",
    "CONVOLUTION",
    "GEMM",
    "GRU",
    "LSTM",
    "MATRIX_MULTIPLY_INTEGER_TO_FLOAT",
    "MULTIHEAD_ATTENTION",
    "MULTIHEAD_ATTENTION1",
    "RNN",
}
"""Whose specifications leave the order of a sum's terms open."""

EXPONENTIALS = {f"ACTIVATION_{name}" for name in ("SOFTMAX", "SOFTMAX1", "LOG_SOFTMAX", "LOG_SOFTMAX1")}
"""Which are of single precision in memory, within 3 units in the last place, and of double precision in pieces."""

LOGARITHMS = {"ACTIVATION_LOG_SOFTMAX", "ACTIVATION_LOG_SOFTMAX1"}
"""Whose results below 0 may be too small for their type."""

OF_NO_OPERAND = {"FILL_VALUE_CONSTANT", "FILL_VALUE_SEQUENCE", "DIAGONAL_MATRIX"}
"""Which have nothing that could be chunked."""


def sampled() -> dict[str, list[Case]]:
    """Some cases of each operator, the same ones on every day."""
    by_operator: dict[str, list[Case]] = {}
    for case in all_cases():
        found = spec_of(case.desc)
        assert found is not None
        if any(x is not None and x.size > 1 for x in case.inputs) and not gives_packed(case.desc):
            by_operator.setdefault(found.name, []).append(case)
    return {name: random.Random(name).sample(cases, min(len(cases), 4)) for name, cases in by_operator.items()}


def gives_packed(desc: OperatorDesc) -> bool:
    found = spec_of(desc)
    assert found is not None
    return any(tensor is not None and tensor.DataType.bits == 4 for _, tensor in found.outputs(desc))


def compared(case: Case, operands: Sequence[Any], lazy: Sequence[Any]) -> bool:
    """Whether a function gives the same of chunks as of arrays, where it takes these."""
    found = spec_of(case.desc)
    assert found is not None
    try:
        expected = applied(case.desc, operands)
    except DMLError:
        return False  # layouts that a function has no operand for
    actual = applied(case.desc, lazy)
    if found.name == "NONZERO_COORDINATES":
        # Of chunks all rows are made, as of expressions, and their number.
        made = as_described(case.desc, [each.compute() for each in actual])
        return all(map(np.array_equal, made, as_described(case.desc, expected)))
    for made, wanted in zip(actual, expected, strict=True):
        assert (made is None) == (wanted is None)
        if made is None:
            continue
        assert isinstance(made, da.Array), type(made)
        assert (made.shape, made.dtype) == (wanted.shape, wanted.dtype)
        result = made.compute(scheduler="synchronous")
        assert (result.shape, result.dtype) == (wanted.shape, wanted.dtype)
        if found.name in IN_ANY_ORDER and result.dtype.kind == "f":
            np.testing.assert_allclose(result, wanted, rtol=2e-2 if result.dtype == np.float16 else 1e-4, atol=1e-4)
        elif found.name in EXPONENTIALS:
            assert_same(result, wanted, 1 if result.dtype == np.float16 else 3)
        else:
            np.testing.assert_array_equal(result, wanted)
            # The sign of a NaN says nothing, that of a zero does, unless it is what is left of a smaller number.
            signs_differ = (np.signbit(result) != np.signbit(wanted)) & (result == result)
            assert found.name in LOGARITHMS or not signs_differ.any()
    return True


CASES = sampled()


@pytest.mark.parametrize("name", CASES)
def test_every_operator_on_random_chunks(name: str) -> None:
    are_compared = []
    for case in CASES[name]:
        rng = np.random.default_rng(crc32(case.id.encode()))
        operands = operands_of(case.desc, case.inputs)
        lazy = [chunked(rng, x) if isinstance(x, np.ndarray) and x.ndim else x for x in operands]
        are_compared.append(any(isinstance(each, da.Array) for each in lazy) and compared(case, operands, lazy))
    assert any(are_compared)


def test_every_operator_is_among_them() -> None:
    assert {*OPERATORS} - {*CASES} == OF_NO_OPERAND


# What is refused, when the graph is built


X = np.arange(24, dtype=np.float32).reshape(4, 6)


def test_out_is_refused_with_the_way_to_store() -> None:
    x = da.from_array(X, chunks=2)
    refused("(K2)", lambda: anydml.sigmoid(x, out=X.copy()), "ACTIVATION_SIGMOID.out", "da.store(result, out)")


def test_chunks_of_unknown_sizes() -> None:
    x = da.from_array(X, chunks=2)
    refused("(K1)", lambda: anydml.sigmoid(x[x[:, 0] > 3]), "ACTIVATION_SIGMOID.x", "compute_chunk_sizes()")


def test_data_types_and_sizes_in_the_words_of_functions() -> None:
    x = da.from_array(X.astype(np.float64), chunks=2)
    refused("(S3)", lambda: anydml.cumulative_summation(x), "CUMULATIVE_SUMMATION.x.dtype", ".astype(np.float32)")
    refused("(A13)", lambda: anydml.add(da.from_array(X, chunks=2), X[:, :4]), "ELEMENT_WISE_ADD.b")
    refused("(A5)", lambda: anydml.top_k(da.from_array(X, chunks=2), 1, axis=2), "axis")
    refused("(A2)", lambda: anydml.sigmoid(da.from_array(X.astype(">f4"), chunks=2)), "byte-swapped")


def test_results_of_4_bits_are_refused() -> None:
    x = da.from_array(X, chunks=2)
    refused("(K3)", lambda: anydml.quantize(x, np.ones((1, 1), np.float32), output_dtype=TensorDataType.INT4), "INT4")


# What becomes of chunks


def test_nothing_is_computed_before_it_is_asked_for() -> None:
    def fails(block: np.ndarray) -> np.ndarray:
        raise AssertionError("computed")

    x = da.map_blocks(fails, da.from_array(X, chunks=2), dtype=np.float32, meta=np.empty((0, 0), np.float32))
    y = anydml.softmax(anydml.add(x, 1.0))
    with pytest.raises(AssertionError, match="computed"):
        y.compute(scheduler="synchronous")


def test_names_tell_calls_apart_and_nothing_else() -> None:
    def made(value: float) -> Any:
        return anydml.clip(da.from_array(X, chunks=2), 0, value)

    assert made(1.0).name == made(1.0).name
    assert len({made(1.0).name, made(2.0).name, anydml.sigmoid(da.from_array(X, chunks=2)).name}) == 3


def test_garbage_is_collected_again_behind_a_graph() -> None:
    x = da.from_array(X, chunks=2)
    anydml.padding(x, [1, 1], [1, 1])
    assert gc.isenabled()
    with pytest.raises(DMLError):
        anydml.gather(da.from_array(X, chunks=2), np.array([9], np.uint32), axis=0)
    assert gc.isenabled()


def test_truth_values() -> None:
    x = da.from_array(X, chunks=(2, 3))
    greater = anydml.greater_than(x, 7)
    assert greater.dtype == bool
    both = anydml.logical_and(greater, anydml.less_than(x, X + 1))
    np.testing.assert_array_equal(both.compute(), X > 7)
    np.testing.assert_array_equal(anydml.where(greater, x, 0.0).compute(), np.where(X > 7, X, 0))


def test_arrays_of_no_dimensions() -> None:
    y = anydml.add(da.from_array(X, chunks=2)[1, 2], 1.0)
    assert (y.shape, float(y.compute())) == ((), 9.0)


def test_empty_arrays_and_empty_chunks() -> None:
    assert anydml.sigmoid(da.zeros((0, 3), dtype=np.float32)).compute().shape == (0, 3)
    x = da.from_array(X, chunks=((0, 3, 0, 1), (6, 0)))
    assert_same(anydml.softmax(x).compute(), anydml.softmax(X), 3)
    values, indices = anydml.top_k(x, 2)
    np.testing.assert_array_equal(values.compute(), anydml.top_k(X, 2)[0])
    np.testing.assert_array_equal(indices.compute(), anydml.top_k(X, 2)[1])


def test_operands_in_memory_and_numbers_beside_chunks() -> None:
    x = da.from_array(X, chunks=((3, 1), (2, 4)))
    np.testing.assert_array_equal(anydml.add(X, x).compute(), X + X)
    np.testing.assert_array_equal(anydml.multiply(x, [1, 2, 3, 4, 5, 6]).compute(), X * np.arange(1, 7))
    np.testing.assert_array_equal(anydml.subtract(1, x).compute(), 1 - X)


def test_what_broadcasts_adds_no_chunks() -> None:
    x = da.zeros((100, 8, 4, 4), chunks=(1, 8, 4, 4), dtype=np.float32)
    y = anydml.batch_normalization(x, *np.ones((4, 8), np.float32))
    assert y.numblocks == (100, 1, 1, 1)
    assert len(dict(y.__dask_graph__())) <= 2 * 100 + 8


def test_values_are_looked_at_by_the_task_that_has_them() -> None:
    indices = da.from_array(np.array([[9]], np.uint32), chunks=1)
    y = anydml.gather_nd(da.from_array(X, chunks=-1), indices)
    expected = refused_in_memory(lambda: anydml.gather_nd(X, np.array([[9]], np.uint32)))
    assert refused_in_memory(y.compute) == expected


def refused_in_memory(call: Any) -> str | None:
    """The text of an error; None where there is none, as indices are clamped."""
    try:
        call()
    except DMLError as error:
        return str(error)
    return None


def test_devices_are_those_of_workers() -> None:
    x = da.from_array(X, chunks=2)
    y = anydml.sigmoid(x, device="reference")
    np.testing.assert_array_equal(y.compute(), anydml.sigmoid(X, device="reference"))
    # Only who computes has to have the device.
    assert anydml.sigmoid(x, device="cuda:99").shape == X.shape
    refused("(D1)", lambda: anydml.sigmoid(x, device="nowhere"), "nowhere")


def test_a_graph_of_many_chunks_is_small_until_it_is_computed() -> None:
    x = da.zeros((10_000, 4), chunks=(1, 4), dtype=np.float32)
    layers = anydml.softmax(x).__dask_graph__().layers
    assert all(layer.is_materialized() is False for layer in layers.values())


def test_a_task_can_be_sent_to_other_machines() -> None:
    y = anydml.softmax(da.from_array(X, chunks=(2, 6)))
    again = pickle.loads(pickle.dumps(y))
    np.testing.assert_array_equal(again.compute(), anydml.softmax(X))


def test_the_example_scans_a_file_in_chunks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    example = runpy.run_path(str(Path(__file__).parents[1] / "examples" / "larger_than_memory.py"))
    monkeypatch.setitem(example["run"].__globals__, "CHUNK", 1000)
    told = example["run"](tmp_path, 10_500)
    numbers, sums = np.load(tmp_path / "numbers.npy"), np.load(tmp_path / "sums.npy")
    np.testing.assert_array_equal(sums, np.cumsum(numbers, dtype=np.float64).astype(np.float32))
    assert told.startswith("10500 numbers")


# Pictures


def test_tasks_as_a_picture() -> None:
    x = da.zeros((6, 2), chunks=(2, 2), dtype=np.float32)
    picture = draw_tasks(anydml.gemm(x, x, trans_b=True))
    assert picture.count(">gemm</text>") == 9
    assert picture.count('marker-end="') + picture.count("<path") >= 12
    refused("(P5)", lambda: draw_tasks(anydml.sigmoid(da.zeros((999,), chunks=1, dtype=np.float32))), "at most 120")


@pytest.mark.gpu
@pytest.mark.skipif(not GPU, reason="needs PyTorch and Triton: make test-gpu")
def test_chunks_on_a_gpu() -> None:
    """Each task's kernel runs there; chunks are NumPy's. Triton's interpreter takes one thread at a time."""
    x = da.from_array(X, chunks=(2, 4))
    calls = {
        "sigmoid": anydml.sigmoid,
        "running sums": lambda x, **on: anydml.cumulative_summation(x, 0, **on),
        "softmax along chunks": lambda x, **on: anydml.softmax(x, axes=[1], **on),
        "joined": lambda x, **on: anydml.join([x, x], 0, **on),
        "the largest": lambda x, **on: anydml.top_k(x, 2, **on)[0],
    }
    for name, call in calls.items():
        result = call(x, device=GPU).compute(scheduler="synchronous")
        assert isinstance(result, np.ndarray), name
        np.testing.assert_allclose(result, call(X), rtol=1e-6, err_msg=name)
