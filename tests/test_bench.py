"""``anydml bench``: what it says, not how fast it finds anything."""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from anydml import Device, DMLError, ReduceFunction
from anydml.bench import Result, Row, header, measure, spread, wrong
from anydml.bench.accuracy import accuracy
from anydml.bench.cases import LARGE, LARGE_ON_GPU, SMALL, Case, Join, Pooling, Scan, desc_of, lines_of, tensor_of
from anydml.bench.command import bench
from anydml.bench.computation import Computation, are_close, sample_of
from anydml.bench.element_wise import ElementWise, types_of
from anydml.bench.matrix import matrix, matrix_on_gpu
from anydml.bench.odd_shapes import CELLS, odd_shapes
from anydml.bench.operations import Operation
from anydml.bench.peer import Peer
from anydml.bench.peers import HostPeers
from anydml.bench.places import read_plan
from anydml.bench.pointwise_peers import FUNCTIONS, OF_INTEGERS
from anydml.bench.regions import regions
from anydml.bench.report import _worst, as_json, from_json, page
from anydml.bench.sample import sampled
from anydml.bench.selection import selection
from anydml.cli import main
from anydml.graph.compile import CompiledGraph
from anydml.operators import OPERATORS, Trait, with_trait
from anydml.terminal import plain_text

pytestmark = pytest.mark.slow

TINY = 2048
"""Bytes of a tensor."""


@pytest.fixture(autouse=True)
def _own_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """The command sets OMP_NUM_THREADS, for runtimes not loaded yet; other libraries would take long to load."""
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    for name in ("torch", "onnxruntime", "jax"):
        monkeypatch.setitem(sys.modules, name, None)


def a_row(**members: object) -> Row:
    values = {"operator": "JOIN", "cell": "runs", "name": "2 runs", "dtype": "uint8", "size": TINY, "threads": 1}
    times = {"limit": 1.0, "engine": "cpu", "seconds": 1.0, "ratio": 1.0, "yardstick": "np.copyto"}
    return Row(**{**values, **times, "yardstick_seconds": 1.0, **members})  # type: ignore[arg-type]


def titles(cases: list[Case]) -> list[str]:
    return [f"{case.operator} {case.title}" for case in cases]


def test_rows_have_names_of_their_own() -> None:
    assert len(set(titles(matrix()))) == len(matrix())
    assert set(titles(matrix(quick=True))) < set(titles(matrix()))
    assert {row.operator for row in matrix(quick=True)} == {row.operator for row in matrix()}


def test_every_pointwise_operator_has_a_row() -> None:
    rows = [row for row in matrix(sizes=[TINY]) if isinstance(row, ElementWise)]
    alone = {row.steps[0].operator for row in rows if len(row.steps) == 1}
    assert alone == {*with_trait(Trait.POINTWISE)}
    assert {*FUNCTIONS, *OF_INTEGERS} <= alone
    assert sum(isinstance(row, ElementWise) for row in matrix(quick=True, sizes=[TINY])) <= 16


def of_tables(size: int) -> list[Operation]:
    return [row for row in matrix(sizes=[size]) if isinstance(row, Operation)]


def test_movement_and_reductions_have_rows() -> None:
    moved = {row.line.operator for row in of_tables(TINY) if row.operator == "MOVEMENT"}
    assert moved >= {
        *("SLICE", "SLICE1", "SPLIT", "PADDING", "TILE", "GATHER", "UPSAMPLE_2D", "CAST", "ELEMENT_WISE_IDENTITY"),
        *("FILL_VALUE_CONSTANT", "FILL_VALUE_SEQUENCE"),
        *("GATHER_ELEMENTS", "GATHER_ND", "SCATTER_ELEMENTS", "SCATTER_ND"),
    }
    reduced = {row.name.partition(",")[0] for row in of_tables(TINY) if row.operator == "REDUCE"}
    assert reduced == {*ReduceFunction.__members__} - {"LOG_SUM"}
    assert {row.dtype for row in of_tables(TINY) if row.operator == "REDUCE"} == {
        *("float32", "float16", "int32", "int64", "uint8")
    }


def test_movement_and_reductions_have_the_limits_of_their_cells() -> None:
    limits = {row.cell: row.limit for row in of_tables(LARGE) if row.operator == "MOVEMENT"}
    assert limits == {
        "runs of 1 to 7 B": 2.5,
        "runs of 8 to 63 B": 1.6,
        "runs of 64 B and longer": 1.15,
        "transposes of 1 and 2 B": 1.8,
        "transposes of 4 and 8 B": 1.3,
        "gathered rows of 1 to 63 B": None,
        "gathered rows of 64 to 255 B": 2.5,
        "gathered rows of 256 B and longer": 1.3,
        "conversions": 1.15,
        "gathers by points": None,
        "scatters": None,
    }
    reductions = [row for row in of_tables(LARGE) if row.operator == "REDUCE"]
    by_arithmetic = [row for row in reductions if row.title.split(", ")[0].endswith(("MULTIPLY", "LOG_SUM_EXP"))]
    assert {row.limit for row in by_arithmetic} == {None}
    assert {row.limit for row in reductions if row not in by_arithmetic} == {1.15}


@pytest.mark.parametrize("row", [*selection()], ids=lambda row: row.title)
def test_what_is_chosen_is_right(row: Case) -> None:
    assert wrong(row.scaled(TINY).make(Device("cpu"))) == ""


@pytest.mark.parametrize("row", [*regions()], ids=lambda row: row.operator + " " + row.title)
def test_what_is_placed_is_right(row: Case) -> None:
    work = row.scaled(TINY).make(Device("cpu"))
    assert (wrong(work), work.compiled.engine) == ("", "cpu")


def test_tensors_of_tables_are_as_large_as_the_row_says() -> None:
    """But for what no whole run fills."""
    size = 1 << 20
    for row in of_tables(size):
        work = row.make(Device("cpu"))
        largest = max(array.nbytes for array in [*work.inputs, work.output])
        assert 0.85 * size < largest <= size, row.title


def test_operators_that_are_not_there_have_no_row(monkeypatch: pytest.MonkeyPatch) -> None:
    there = {name: op for name, op in OPERATORS.items() if name != "TILE"}
    monkeypatch.setattr("anydml.bench.movement.OPERATORS", there)
    names = [row.line.operator for row in of_tables(TINY)]
    assert "SPLIT" in names
    assert "TILE" not in names


@pytest.mark.parametrize("shape", [(1000,), (3, 64), (40, 16), (7, 100), (2, 3, 80)])
@pytest.mark.parametrize("order", ["packed", "transposed", "every other row", "left halves"])
def test_lines_are_those_of_memory(shape: tuple[int, ...], order: str) -> None:
    """For arrays whose runs begin with a line."""
    wide = np.empty((*shape[:-1], -(-shape[-1] // 64) * 128), np.uint8)
    memory = np.empty(wide.nbytes + 64, np.uint8)
    start = -memory.ctypes.data % 64
    whole = memory[start : start + wide.nbytes].reshape(wide.shape)
    x = {
        "packed": memory[start : start + int(np.prod(shape))].reshape(shape),
        "transposed": whole.T,
        "every other row": whole[::2],
        "left halves": whole[..., : shape[-1]],
    }[order]
    offsets = sum(
        np.arange(size).reshape(-1, *[1] * (x.ndim - i - 1)) * stride
        for i, (size, stride) in enumerate(zip(x.shape, x.strides, strict=True))
    )
    assert lines_of(x) == len(np.unique(np.asarray(offsets) // 64))


@pytest.mark.parametrize("count", [1, 7, 31, 32, 33, 1000, (1 << 17) + 5])
def test_reading_combines_all_bytes(count: int) -> None:
    """Each one in turn of the first, the last and some between."""
    x = np.zeros(count, np.uint64)
    plan, y = read_plan(x), np.empty(1, np.uint8)
    bytes_ = x.view(np.uint8)
    for place in {0, count, 8 * count // 3, 8 * count - 1}:
        bytes_[place] = 0x24
        plan.run([x], [y])
        assert y[0] == 0x24
        bytes_[place] = 0
    plan.run([x], [y])
    assert y[0] == 0


def test_reductions_are_measured_by_reading() -> None:
    case = next(row for row in of_tables(TINY) if row.operator == "REDUCE")
    row = measure(case, Device("cpu"), HostPeers(1), runs=1)
    assert row.yardstick in ("READ", "np.bitwise_or.reduce")
    assert set(row.peers) == {"numpy"}


def test_a_star_in_a_filter_is_any_text(tmp_path: Path) -> None:
    path = tmp_path / "bench.json"
    assert bench(text="movement*UINT8*tile*3 B", threads=1, json_file=str(path), sizes=[TINY], rows_only=True) == 0
    (row,) = json.loads(path.read_text())["rows"]
    assert (row["operator"], row["name"]) == ("MOVEMENT", "TILE by 4, runs of 3 B")
    assert row["yardstick"] != "READ"


def test_types_of_tensors_are_those_of_their_groups() -> None:
    assert [*types_of("ELEMENT_WISE_LOGICAL_EQUALS", "int32").values()] == ["int32", "int32", "uint8"]
    assert [*types_of("ELEMENT_WISE_IF", "float16").values()] == ["uint8", *["float16"] * 3]
    assert [*types_of("ELEMENT_WISE_QUANTIZE_LINEAR", "float16").values()] == ["float16", "float16", "uint8", "uint8"]
    assert [*types_of("ELEMENT_WISE_QUANTIZE_LINEAR", "uint8", "float32").values()] == [
        "float32",
        "float32",
        "uint8",
        "uint8",
    ]
    assert [*types_of("ELEMENT_WISE_DEQUANTIZE_LINEAR", "int8").values()] == ["int8", "float32", "int8", "float32"]


def test_chains_are_one_kernel() -> None:
    for row in matrix(sizes=[TINY]):
        if isinstance(row, ElementWise) and len(row.steps) > 1:
            compiled = row.make(Device("cpu")).compiled
            assert isinstance(compiled, CompiledGraph)
            assert len(compiled.steps) == 1, row.title


def test_tensors_are_as_large_as_the_limits_want() -> None:
    sizes = {type(row): row.size for row in matrix(sizes=[LARGE])}
    assert sizes[Scan] == 128 << 20
    assert sizes[Pooling] == 64 << 20


def test_scans_of_floats_are_exact_and_tame() -> None:
    """In any order of combining: what a library gets wrong is no rounding, and no overflow slows it down."""
    for case in matrix(sizes=[1 << 18]):
        if isinstance(case, Scan) and case.dtype.startswith("float"):
            work = case.make(Device("cpu"))
            work.compiled.dispatch(work.inputs, work.outputs)
            numbers = work.output.astype(np.float64)
            summing = case.operator == "CUMULATIVE_SUMMATION"
            assert np.abs(numbers).max() <= 2
            assert (numbers * 32 % 1 == 0).all() if summing else np.isin(numbers, [0.5, 1, 2]).all()


def test_every_row_computes_what_its_check_expects() -> None:
    device = Device("cpu")
    problems = {case.title: wrong(case.make(device)) for case in matrix(sizes=[TINY])}
    assert not {title: problem for title, problem in problems.items() if problem}


@pytest.mark.parametrize(
    "text",
    [
        "CUMULATIVE_PRODUCT float32 rows of 32",
        "JOIN uint8 2 runs of 8 B",
        "2x2 stride 2",
        "ELEMENT_WISE float32 SIN",
        "ELEMENT_WISE int8 LOGICAL_EQUALS",
        "DEQUANTIZE_LINEAR to QUANTIZE_LINEAR, 8 operators",
        "MOVEMENT uint8 SLICE, runs of 7 B",
        "MOVEMENT float32 SPLIT in 3, runs of 20 B",
        "MOVEMENT float32 GATHER, runs of 64 B",
        "MOVEMENT float32 CAST to float16",
        "REDUCE float32 SUM, 1024 columns",
        "REDUCE float32 LOG_SUM_EXP, all",
        "REDUCE float32 ARGMAX, rows of 1024",
        "READ uint64 all",
        "GEMM float32 1021 x 509 x 763",
        "GEMM float16 256 x 256 x 256",
        "CONVOLUTION float32 MobileNet, depthwise 144, 3x3, 56, batch of 8",
        "CONVOLUTION_INTEGER uint8 ResNet-50's stem",
        "QUANTIZED_LINEAR_MATRIX_MULTIPLY int8",
        "DEQUANTIZE float32 from int8, blocks of 32",
        "MULTIHEAD_ATTENTION float32 16 heads of 128, one row",
        "LSTM float32 256, 32 steps, batch of 8",
        "SOFTMAX1 float16 channels of 61 x 53 x 47, channels last",
        "BATCH_NORMALIZATION_TRAINING_GRAD float32 planes of 53 x 47",
        "MAX_POOLING_GRAD float32 3x3/2, channels last",
        "LP_POOLING float16 3x3x3/2, padded",
    ],
)
def test_checks_notice_a_wrong_element(text: str) -> None:
    case = next(case for case in matrix(sizes=[TINY]) if text in f"{case.operator} {case.title}")
    work = case.make(Device("cpu"))
    work.compiled.dispatch(work.inputs, work.outputs)
    assert not work.check(work.output)
    work.output.reshape(-1)[-1] += 2
    assert work.check(work.output)


def a_layer(text: str, size: int = TINY) -> Computation:
    cases = (case for case in matrix(sizes=[size]) if text in f"{case.operator} {case.title}")
    case = next(cases)
    assert isinstance(case, Computation)
    return case


def test_results_next_to_0_may_be_rounded_to_it() -> None:
    """As softmax of a long row of FLOAT16 is, all of whose results are less than half of its least number."""
    exact = np.full(3, 1e-8, np.float32)
    least = np.finfo(np.float16).smallest_subnormal
    for found in (0, least):
        assert are_close(np.full(3, found, np.float16), exact, {"float16": 4})
    assert not are_close(np.full(3, 2 * least, np.float16), exact, {"float16": 4})
    assert not are_close(np.zeros(3, np.float32), exact, {"float32": 64})


def test_layers_have_one_size() -> None:
    layers = [case for case in matrix() if isinstance(case, Computation) and case.is_layer]
    assert len(layers) == len({(case.operator, case.dtype, case.name) for case in layers})
    assert {case.operator for case in layers} == {
        *("GEMM", "CONVOLUTION", "MATRIX_MULTIPLY_INTEGER", "MATRIX_MULTIPLY_INTEGER_TO_FLOAT"),
        *("QUANTIZED_LINEAR_MATRIX_MULTIPLY", "CONVOLUTION_INTEGER", "QUANTIZED_LINEAR_CONVOLUTION"),
        *("MULTIHEAD_ATTENTION", "RNN", "LSTM", "GRU"),
    }
    product = a_layer("GEMM float32 transformer, 128 x 768 x 3072", LARGE)
    assert (product.size, product.built().products) == (4 * 768 * 3072, 128 * 768 * 3072)
    stem = a_layer("ResNet-50's stem, 3 to 64, 7x7/2, 224", LARGE)
    assert stem.built().outputs["OutputTensor"].shape == (1, 64, 112, 112)
    assert stem.built().products == 7 * 7 * 3 * 64 * 112 * 112


def test_lines_that_fit_the_second_cache_have_the_narrower_limit() -> None:
    limits = {case.title: case.limit for case in matrix(sizes=[LARGE]) if case.operator == "ACTIVATION_SOFTMAX1"}
    assert limits["float32 rows of 50257, 128 MiB"] == limits["float16 1024 columns, 128 MiB"] == 1.3
    assert limits["float32 one row, 128 MiB"] == 1.7
    pooled = [case for case in matrix(sizes=[LARGE]) if case.operator == "MAX_POOLING_GRAD"]
    assert {case.limit for case in pooled} == {1.3}
    large = {case.operator: case.limit for case in matrix(sizes=[LARGE]) if "BATCH_NORMALIZATION" in case.operator}
    assert large == {
        "BATCH_NORMALIZATION": 1.3,
        "BATCH_NORMALIZATION_TRAINING": 1.7,
        "BATCH_NORMALIZATION_GRAD": 1.3,
        "BATCH_NORMALIZATION_TRAINING_GRAD": 1.7,
    }
    assert all(case.has_limit(2) and not case.has_limit(1) for case in pooled)


def test_channels_last_lie_so_in_inputs_and_outputs() -> None:
    work = a_layer("AVERAGE_POOLING float32 3x3/2, channels last").make(Device("cpu"))
    for array in (*work.inputs, *work.outputs):
        assert array.strides[1] == array.itemsize
        assert np.moveaxis(array, 1, -1).flags.c_contiguous
    assert work.output.flags.c_contiguous
    assert np.shares_memory(work.output, work.outputs[0])


def test_what_stays_is_there_before() -> None:
    """Weights are OWNED_BY_DML: what becomes of the array afterwards changes nothing."""
    work = a_layer("GEMM float32 transformer, 128 x 768 x 768").make(Device("cpu"))
    assert not wrong(work)
    before = work.output.copy()
    work.inputs[1][...] = 0
    work.compiled.dispatch(work.inputs, work.outputs)
    assert np.array_equal(work.output, before)
    assert before.any()


def test_large_layers_are_sampled_with_their_ends() -> None:
    case = a_layer("GEMM float32 1024 x 1024", LARGE)
    built = case.built()
    arrays = {name: np.zeros(tensor.shape, np.float32) for name, tensor in built.inputs.items()}
    outputs = {name: np.zeros(tensor.shape, np.float32) for name, tensor in built.outputs.items()}
    tensors = {name: tensor_of(Device("cpu"), each) for name, each in {**arrays, **outputs}.items()}
    part, cut = sample_of(desc_of("GEMM", **tensors, **built.members), arrays, outputs)
    _, _, rows, columns = part.OutputTensor.Sizes  # type: ignore[attr-defined]
    assert 2 <= rows < 100
    assert 2 <= columns < 100
    assert part.ATensor.Sizes[2:] == (rows, 1024)  # type: ignore[attr-defined]
    outputs["OutputTensor"][..., -1, -1] = 1
    assert cut("OutputTensor", outputs["OutputTensor"])[..., -1, -1] == 1


def test_layers_are_judged_beside_the_best_peer() -> None:
    assert a_row(products=10, limit=None, peers={"torch": 0.92}).verdict == "ok"
    assert a_row(products=10, limit=None, peers={"torch": 0.9}).verdict == "BEATEN"
    row = a_row(products=2_500_000_000, limit=None, ratio=30.0, peers={"torch": 20.0})
    text = plain_text(page(Result(header(Device("cpu"), HostPeers(1)), [row])))
    assert re.search(r"BEATEN +torch +1\.50 +2\.5\n", text)
    assert "yardstick" not in text
    assert "its ratio" in plain_text(page(Result(header(Device("cpu"), HostPeers(1)), [a_row()])))


def test_layers_of_halves_are_judged_beside_singles() -> None:
    """On one thread, too."""
    case = a_layer("GEMM float16 256 x 256 x 256", 1 << 14)
    plain = case.plain()
    assert (case.limit, plain is not None and plain.dtype, plain is not None and plain.plain()) == (
        1.3,
        "float32",
        None,
    )
    assert isinstance(plain, Computation)
    assert plain.built().inputs == case.built().inputs
    row = measure(case, Device("cpu"), HostPeers(1), runs=1)
    assert row.plain_ratio is not None
    assert row.limit == pytest.approx(1.3 * row.plain_ratio)
    text = plain_text(page(Result(header(Device("cpu"), HostPeers(1)), [row])))
    assert f"{row.ratio / row.plain_ratio:.2f} (1.30)" in text


def test_an_element_left_out_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    work = matrix(sizes=[TINY])[0].make(Device("cpu"))
    monkeypatch.setattr(type(work.compiled), "dispatch", lambda self, inputs, outputs: None)
    assert "left elements out" in wrong(work)


def test_what_is_wrong_has_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("anydml.bench.cases.Scan._check", lambda self, place, x, y: "all wrong")
    row = measure(matrix(sizes=[TINY])[0], Device("cpu"), HostPeers(1), runs=1)
    assert (row.error, row.verdict, row.seconds, row.peers) == ("all wrong", "WRONG", 0, {})


def test_the_command_prints_and_writes_what_it_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "bench.json"
    assert bench(text="rows of 32", quick=True, threads=1, json_file=str(path), sizes=[TINY]) == 0
    out, err = capsys.readouterr()
    written = json.loads(path.read_text())
    keys = {"header", "rows", "accuracy", "small", "compiling", "problems", "seconds", "interrupted", "seed", "left"}
    assert set(written) == keys
    assert {"processor", "cores", "threads", "python", "anydml", "peers", "absent"} <= set(written["header"])
    assert set(written["header"]["absent"]) == {"torch", "onnxruntime", "jax"}
    assert len(written["rows"]) == 4
    assert written["seconds"] > 0
    for row in written["rows"]:
        assert row["seconds"] > 0
        assert row["ratio"] == pytest.approx(row["seconds"] / row["yardstick_seconds"])
        assert set(row["verdict"].split()) <= {"ok", "MISS", "BEATEN"}
        assert set(row["peers"]) == {"numpy"}
        assert row["threads"] == 1
    assert "[1/4] CUMULATIVE_SUMMATION float32 rows of 32" in err
    assert "4 rows in " in out


def test_every_beginning_of_a_sample_has_as_many_of_each_operator() -> None:
    cases = matrix(sizes=[4 * TINY, TINY])
    order = sampled(cases, 7)
    assert sorted(titles(order)) == sorted(titles(cases))
    assert titles(order) == titles(sampled(cases, 7)) != titles(sampled(cases, 8))
    counts = Counter(case.of_operator for case in cases)
    assert {"GATHER", "SLICE", "REDUCE", "ELEMENT_WISE_SIN", "CUMULATIVE_PRODUCT"} < set(counts)
    rounds = [order[: sum(min(count, taken) for count in counts.values())] for taken in (1, 2, 5)]
    for taken, first in zip((1, 2, 5), rounds, strict=True):
        assert Counter(case.of_operator for case in first) == {name: min(n, taken) for name, n in counts.items()}


def test_a_sample_has_different_rows_of_an_operator() -> None:
    sizes = [4 * TINY, 2 * TINY, TINY]
    scans = [case for case in matrix(sizes=sizes) if case.operator == "CUMULATIVE_SUMMATION"]
    taken = sampled(scans, 3)[:6]
    assert Counter(case.size for case in taken) == dict.fromkeys(sizes, 2)
    assert {case.dtype for case in taken} == {"float32", "float16", "int32", "uint32", "int64", "uint64"}
    assert len({case.cell for case in taken}) > 3


def written_by(path: Path, **options: Any) -> Any:
    assert bench(text="one row", quick=True, json_file=str(path), sizes=[TINY], **options) == 0
    return json.loads(path.read_text())


def test_the_command_takes_a_sample(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "bench.json"
    first = written_by(path, threads=1, sample=3, seed=5)
    assert len(first["rows"]) == 3
    assert (first["accuracy"], first["small"], first["left"]) == ([], {}, {})
    assert "Rows at random: --seed 5 takes them in the same order again.\n" in capsys.readouterr().out
    names = [(row["operator"], row["dtype"], row["name"]) for row in first["rows"]]
    assert [
        (row["operator"], row["dtype"], row["name"]) for row in written_by(path, threads=1, sample=3, seed=5)["rows"]
    ] == names
    order = [(case.operator, case.dtype, case.name) for case in matrix(True, [TINY])]
    assert names == sorted(names, key=order.index)
    assert written_by(path, threads=1, sample=1)["seed"] is not None


def test_the_command_ends_after_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """At once, with the row under way; on one thread likewise."""
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    found = written_by(tmp_path / "bench.json", minutes=1e-9)
    assert [row["threads"] for row in found["rows"]] == [2, 1]
    assert found["left"]["2"] == found["left"]["1"] > 3
    out = capsys.readouterr().out
    assert f"; {found['left']['2']} rows were not reached on 2 threads; {found['left']['1']} rows were not" in out


def test_parts_are_all_rows_once(tmp_path: Path) -> None:
    """What two devices measure of a sample, read again from their files."""
    options: dict[str, Any] = {"threads": 1, "sample": 3, "seed": 5}
    parts = [tmp_path / f"{part}.json" for part in range(2)]
    for part, path in enumerate(parts):
        written_by(path, **options, part=(part, 2))
    results = [from_json(path.read_text()) for path in parts]
    assert [len(result.rows) for result in results] == [2, 1]
    whole = {
        (row["operator"], row["dtype"], row["name"]) for row in written_by(tmp_path / "all.json", **options)["rows"]
    }
    assert {(row.operator, row.dtype, row.name) for result in results for row in result.rows} == whole
    assert [as_json(result) for result in results] == [path.read_text() for path in parts]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--minutes", "0"], "'0' is no time in minutes"),
        (["--minutes", "nan"], "'nan' is no time in minutes"),
        (["--sample", "0"], "'0' is no number from 1 on"),
        (["--seed", "3"], "argument --seed: is that of a random order"),
    ],
)
def test_options_of_samples_are_checked(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as raised:
        main(["bench", *words])
    assert raised.value.code == 2
    assert message in capsys.readouterr().err


def test_a_wrong_result_is_the_exit_code(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("anydml.bench.cases.Scan._check", lambda self, place, x, y: "all wrong")
    assert bench(text="int64 one row", quick=True, threads=1, sizes=[TINY]) == 1
    assert "all wrong" in capsys.readouterr().out


def test_an_interruption_prints_what_there_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*args: object) -> object:
        yield a_row(name="a case")
        raise KeyboardInterrupt

    monkeypatch.setattr("anydml.bench.command.run", interrupted)
    assert bench(threads=1, sizes=[TINY]) == 130
    out = capsys.readouterr().out
    assert "Interrupted" in out
    assert "a case" in out


def test_one_thread_is_measured_beside_several(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    path = tmp_path / "bench.json"
    assert bench(text="int64 one row, 2 KiB", quick=True, json_file=str(path), sizes=[TINY]) == 0
    assert [row["threads"] for row in json.loads(path.read_text())["rows"]] == [2, 2, 1, 1]


def test_the_page_tells_how_much_threads_compute_together() -> None:
    result = Result(header(Device("cpu"), HostPeers(2)))
    assert result.header["speedup"] > 0
    assert "2 threads, which compute " in plain_text(page(result))
    assert "1 thread, Linux" in plain_text(page(Result({**header(Device("cpu"), HostPeers(1)), "system": "Linux"})))


def test_accuracy_is_within_the_promise() -> None:
    lines = [line for line in accuracy(HostPeers(1), Device("cpu"), 1 << 17) if line["library"] == "anydml"]
    assert [(line["dtype"], line["range"]) for line in lines] == [
        (dtype, range_) for dtype in ("float32", "float16") for range_ in ("(0, 1)", "(-1, 1)")
    ]
    assert all(line["mean"] <= line["worst"] <= 1 for line in lines)


def test_spread_is_that_of_the_middle_half() -> None:
    assert spread([1.0, 1.0, 1.0, 1.0, 9.0]) == 0
    assert spread([1.0, 2.0, 3.0]) == pytest.approx(0.5)


def test_infinities_are_json() -> None:
    result = Result(header(Device("cpu"), HostPeers(1)), accuracy=[{"worst": np.inf}])
    assert json.loads(as_json(result))["accuracy"] == [{"worst": "inf"}]
    assert page(Result(result.header))


def test_a_chart_without_matplotlib_names_the_remedy(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert main(["bench", "--plot", "bench.svg"]) == 1
    assert "pip install 'anydml[plot]'" in capsys.readouterr().err
    with pytest.raises(DMLError):
        bench(plot_file="bench.svg", sizes=[TINY])


def test_a_chart_shows_every_cell_of_the_largest_tensors(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    path = tmp_path / "bench.svg"
    assert bench(text="int64", quick=True, threads=1, plot_file=str(path), sizes=[2 * TINY, TINY]) == 0
    chart = path.read_text()
    texts = "CUMULATIVE_SUMMATION", "CUMULATIVE_PRODUCT", ">int64<", "numpy", "tensors of 4 KiB"
    assert not [text for text in texts if text not in chart]


def test_a_chart_shows_functions_that_have_no_limit() -> None:
    from anydml.bench.plot import _groups

    rows = [a_row(size=LARGE), a_row(size=LARGE, cell="functions", limit=None), a_row(limit=None, cell="small")]
    assert [*_groups(Result(header(Device("cpu"), HostPeers(1)), rows))["JOIN"]] == ["runs", "functions"]


def test_a_filter_without_rows_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert bench(text="zzz", quick=True, threads=1, sizes=[TINY]) == 1
    assert "no row has 'zzz'" in capsys.readouterr().err


def test_a_chart_of_nothing_is_drawn() -> None:
    pytest.importorskip("matplotlib")
    from anydml.bench.plot import plot

    assert b"nothing was measured" in plot(Result(header(Device("cpu"), HostPeers(1))))


def test_a_verdict_names_each_thing_that_is_wrong() -> None:
    assert a_row().verdict == "ok"
    assert a_row(peers={"numpy": 0.96}).verdict == "ok"
    assert a_row(peers={"numpy": 2.0, "torch": 0.95}).verdict == "BEATEN"
    assert a_row(ratio=1.2, peers={"numpy": 1.3}).verdict == "MISS"
    assert a_row(ratio=1.2, peers={"numpy": 1.0}).verdict == "MISS BEATEN"
    assert a_row(ratio=1.2, error="all wrong").verdict == "WRONG"


def test_less_exact_peers_may_be_faster() -> None:
    """Others than those whose functions are within a unit in the last place: by some in the caches, by less beyond."""
    errors = {"anydml": 0.7, "numpy": 1.0, "torch": 1.3}
    assert a_row(errors=errors, ratio=1.5, peers={"numpy": 1.4}).verdict == "MISS BEATEN"
    assert a_row(errors=errors, limit=None, ratio=1.5, peers={"numpy": 1.45, "torch": 1.0}).verdict == "ok"
    assert a_row(errors=errors, limit=None, ratio=1.5, peers={"torch": 0.9}).verdict == "BEATEN"
    assert a_row(errors=errors, limit=None, ratio=1.5, peers={"torch": 1.0}, size=LARGE).verdict == "BEATEN"
    text = plain_text(page(Result(header(Device("cpu"), HostPeers(1)), [a_row(errors=errors), a_row()])))
    assert "anydml 0.70, numpy 1.00, torch 1.30" in text


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_errors_of_functions_are_measured(dtype: str) -> None:
    case = next(case for case in matrix(sizes=[TINY]) if f"{case.dtype} {case.name}" == f"{dtype} LOG")
    work = case.make(Device("cpu"))
    assert work.error is not None
    work.compiled.dispatch(work.inputs, work.outputs)
    assert 0.3 < work.error(work.output) <= 1
    work.output[0, 0] = np.nextafter(work.output[0, 0], work.output.dtype.type(np.inf)) + 2 * np.spacing(
        work.output[0, 0]
    )
    assert 2 <= work.error(work.output) <= 4
    work.output[0, 1] = np.nan
    assert work.error(work.output) == np.inf
    row = measure(case, Device("cpu"), HostPeers(1), runs=1)
    assert (row.limit, set(row.errors)) == (None, {"anydml", "numpy"})
    assert row.errors["anydml"] <= 1


def test_long_chains_are_judged_beside_the_caches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("anydml.bench.cases.LARGE", 4 * SMALL)
    case = next(case for case in matrix(sizes=[4 * SMALL]) if case.name.endswith("8 operators"))
    plain = case.plain()
    assert plain is not None
    assert (plain.size, plain.plain()) == (SMALL, None)
    row = measure(case, Device("cpu"), HostPeers(2), runs=1)
    assert row.plain_ratio is not None
    assert row.limit == pytest.approx(max(1.15, 1.1 * row.plain_ratio))


def test_limits_are_for_large_tensors_on_several_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    case, device = matrix(sizes=[TINY])[0], Device("cpu")
    assert measure(case, device, HostPeers(2), runs=1).limit is None
    monkeypatch.setattr("anydml.bench.cases.LARGE", TINY)
    assert measure(case, device, HostPeers(2), runs=1).limit == case.limit
    assert measure(case, device, HostPeers(1), runs=1).limit is None
    assert a_row(limit=None, ratio=9.0).verdict == "ok"


def test_what_is_beaten_is_seen_in_its_row() -> None:
    result = Result(header(Device("cpu"), HostPeers(1)), [a_row(ratio=0.9, peers={"numpy": 0.5})])
    text = plain_text(page(result))
    assert re.search(r"0\.90 +1\.00 +BEATEN +numpy +0\.50", text)
    assert "1 BEATEN" in text


def test_padding_is_judged_beside_the_plain_case(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("anydml.bench.cases.LARGE", 1 << 16)
    case = next(case for case in matrix(sizes=[1 << 15]) if case.name == "3x3 stride 1, padded")
    plain = case.plain()
    assert isinstance(plain, Pooling)
    assert (plain.padding, plain.dilation, plain.per_channel, plain.plain()) == (0, 1, False, None)
    row = measure(case, Device("cpu"), HostPeers(2), runs=1)
    assert row.plain_ratio is not None
    assert row.limit == pytest.approx(1.3 * row.plain_ratio)
    assert "(1.3 x plain)" in plain_text(page(Result(header(Device("cpu"), HostPeers(1)), [row])))


class Library(HostPeers):
    """What says that it has JOIN alone, and how it computes it."""

    def __init__(self, change: int = 0, problem: str = "") -> None:
        super().__init__(1)
        self.modules = {"numpy": np}
        self.change, self.problem = change, problem

    def _join(self, name: str, case: Any, work: Any, ours: Any, device: Any) -> Peer:
        if self.problem:
            raise RuntimeError(f"{self.problem}\n  at line 1")
        peer = super()._join(name, case, work, ours, device)

        def run() -> None:
            peer.run()
            work.output[-1, -1] += self.change

        return peer._replace(run=run)


def a_join() -> Case:
    return next(case for case in matrix(sizes=[TINY]) if case.operator == "JOIN")


def test_a_peer_with_a_wrong_result_does_not_count() -> None:
    right, wrong_ = (measure(a_join(), Device("cpu"), Library(change), runs=1) for change in (0, 1))
    assert (set(right.peers), right.unmeasured) == ({"numpy"}, {})
    assert (wrong_.peers, wrong_.unmeasured) == ({}, {"numpy": "not counted, its result is wrong: other numbers"})


def test_why_a_peer_is_absent_is_told() -> None:
    row = measure(a_join(), Device("cpu"), Library(problem="not implemented"), runs=1)
    assert row.unmeasured == {"numpy": "no kernel: not implemented at line 1"}
    result = Result(header(Device("cpu"), HostPeers(1)), [row, row, row])
    assert "numpy, not in uint8 2 runs of 2048 B: no kernel: not implemented at line 1" in plain_text(page(result))
    assert json.loads(as_json(result))["rows"][0]["unmeasured"] == row.unmeasured


def test_what_has_no_native_kernel_is_seen() -> None:
    rows = [a_row(), a_row(engine="reference")]
    text = plain_text(page(Result(header(Device("cpu"), HostPeers(1)), rows)))
    assert re.search(r"yardstick +engine\n", text)
    assert re.search(r" reference\n", text)
    assert "engine" not in plain_text(page(Result(header(Device("cpu"), HostPeers(1)), rows[:1])))


def test_libraries_that_are_absent_for_one_reason_share_a_line() -> None:
    row = a_row(unmeasured={"numpy": "no function", "torch": "no dilation", "onnxruntime": "no function"})
    text = plain_text(page(Result(header(Device("cpu"), HostPeers(1)), [row])))
    assert "\nnumpy, onnxruntime, not in uint8 2 runs: no function\ntorch, not in uint8 2 runs: no dilation\n" in text


def test_one_thread_that_fails_is_a_problem(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    monkeypatch.setattr(sys, "executable", "false")
    assert bench(text="int64 one row, 2 KiB", quick=True, sizes=[TINY]) == 1
    assert "on 1 thread nothing was measured" in capsys.readouterr().out


@pytest.mark.parametrize("library", ["torch", "onnxruntime", "jax"])
def test_libraries_compute_what_we_do(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where they are installed: each row is measured, or for a reason that is known."""
    monkeypatch.undo()
    for name in ("OMP_NUM_THREADS", "NPROC", "PJRT_NPROC"):
        monkeypatch.setenv(name, "1")
    pytest.importorskip(library)
    if library == "onnxruntime":
        pytest.importorskip("onnx")
    peers, device = HostPeers(1), Device("cpu")
    assert library in peers.modules
    peers.modules = {library: peers.modules[library]}
    measured, reasons = 0, set()
    for case in matrix(sizes=[TINY]):
        for _, peer in peers.of(case, case.make(device), device):
            if isinstance(peer, Peer):
                measured += 1
            else:
                reasons.add(peer)
    assert measured > 60
    known = "no kernel: .*(not implemented|NOT_IMPLEMENTED)|no cumulative product|no option|no quantisation|no dilation"
    known += "|no quantised pooling|no tensors with negative strides|takes packed arrays only|no function|not asked"
    known += "|no kernel: .*(Type Error|Quantize only works on)|no node for"
    if library == "onnxruntime":
        from onnx_peers import saturates_products

        known += "|not counted, its result is wrong" if saturates_products() else ""
    assert not [reason for reason in reasons if not re.match(known, reason)]


def test_rows_of_a_gpu_have_the_limits_of_their_cells() -> None:
    every = matrix_on_gpu()
    assert len(set(titles(every))) == len(every)
    rows = [row for row in every if isinstance(row, (Scan, Join, Pooling))]
    large = [row for row in rows if row.is_large]
    assert {row.cell: row.limit for row in large if row.dtype != "float16" or "float16" in row.cell} == {
        "many rows": 1.12,
        "outer axis": 1.15,
        "one long row or few": 1.45,
        "many rows, float16": 1.25,
        "outer axis, float16": 1.25,
        "one long row or few, float16": 1.6,
        "middle axis, inner 1 to 31": 1.4,
        "long runs": 1.06,
        "runs of 1 to 20 B": 1.5,
        "2x2 and 3x3 stride 2": 1.3,
        "3x3 stride 1": 1.6,
        "7x7 and 3x3x3 stride 1": 3.0,
        "global": 1.2,
    }
    assert min(row.size for row in large) >= LARGE_ON_GPU
    assert {row.size for row in rows if not row.is_large} == {1 << 20}
    others = [row for row in every if row not in rows]
    assert {row.of_operator for row in others} >= {
        "REDUCE",
        "GATHER",
        "TOP_K",
        "ELEMENT_WISE_ADD",
        "CONVOLUTION",
        "LSTM",
    }
    assert all(row.is_large and row.plain() is None for row in others)
    limits = {
        "ELEMENT_WISE": {1.2},
        "REDUCE": {1.2},
        "MOVEMENT": {1.2, None},
        "ACTIVATION_SOFTMAX1": {1.3},
        "GEMM": {None},
    }
    for operator, expected in limits.items():
        assert {row.limit for row in others if row.operator == operator} == expected
    assert {row.cell for row in matrix_on_gpu(quick=True)} == {row.cell for row in (*large, *others)}


def test_without_a_gpu_it_says_why(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "--device", "cuda"]) == 1
    assert "torch is not installed, expected a device that PyTorch and Triton reach (D7)" in capsys.readouterr().err


def test_threads_are_for_the_cpu(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as raised:
        main(["bench", "--device", "cuda", "--threads", "2"])
    assert raised.value.code == 2
    assert "argument --threads: chooses the CPU's threads, not for cuda" in capsys.readouterr().err


def test_shapes_at_random_are_those_of_their_seed_and_have_limits() -> None:
    rows = odd_shapes(7)
    assert titles(rows) == titles(odd_shapes(7))
    assert titles(rows) != titles(odd_shapes(8))
    assert len(set(titles(rows))) == len(rows) == 60
    assert {row.cell for seed in range(20) for row in odd_shapes(seed)} == set(CELLS)
    assert all(row.is_large and row.limit for row in rows)


def test_the_worst_of_shapes_at_random_are_told() -> None:
    cell = CELLS[0]
    rows = [
        Row("CUMULATIVE_SUMMATION", cell, f"rows of {n}", "float32", 1 << 29, 0, 1.456, seconds=1e-3, ratio=ratio)
        for n, ratio in ((11, 1.1), (33, 1.4), (55, 1.0))
    ]
    assert _worst(rows).rows == [(cell, "3", "1.10", "1.12", "1.40", "1.46", "ok", "float32 rows of 33")]
    rows[0].ratio = 1.2
    assert _worst(rows).rows[0][6] == "MISS"
