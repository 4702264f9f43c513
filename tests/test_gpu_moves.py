"""Movement on a GPU: views and lookups in one kernel, of any layout, by offsets of 64 bits too."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from anydml import Device, PaddingMode, spec
from cases import tensor_of
from gpu_calls import on_gpu
from harness import GPU, compiled, run

pytestmark = pytest.mark.gpu

PLAN = "anydml.backends.triton.movement.plan"
RUNS = ("TILE", "GATHER", "GATHER_ND")
"""What moves runs of elements, beside PADDING by a constant."""


def moves(random: np.random.Generator) -> list[tuple[str, tuple[int, ...], dict[str, Any], list[np.ndarray]]]:
    """Of a tensor of {4, 3, 7}: the operator, its output's sizes, what else it is given."""
    padding = {"StartPadding": (1, 0, 11), "EndPadding": (1, 9, 4), "PaddingValue": 5}
    indices = random.integers(-3, 3, (1, 1, 5)).astype(np.int64)
    sequence = random.integers(-7, 7, (4, 3, 5)).astype(np.int32)
    points = random.integers(0, 3, (1, 5, 2)).astype(np.uint32)
    return [
        *[("PADDING", (6, 12, 22), {**padding, "PaddingMode": mode}, []) for mode in PaddingMode],
        ("TILE", (8, 3, 21), {"Repeats": (2, 1, 3)}, []),
        ("GATHER", (4, 5, 7), {"Axis": 1, "IndexDimensions": 1}, [indices]),
        ("GATHER_ELEMENTS", (4, 3, 5), {"Axis": 2}, [sequence]),
        ("GATHER_ND", (1, 5, 7), {"InputDimensionCount": 3, "IndicesDimensionCount": 2}, [points]),
    ]


@on_gpu
@pytest.mark.parametrize("is_wide", [False, True])
@pytest.mark.parametrize("how", ["packed", "turned", "packed, by words"])
def test_moves(how: str, is_wide: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """By small programs, of which a padded dimension has several; and as large tensors are moved."""
    monkeypatch.setattr(f"{PLAN}.BLOCK", 64)
    is_by_words = "words" in how
    if is_by_words:
        for name, value in {"LARGE": 0, "LONG_RUN": dict.fromkeys((1, 8), 1), "TILE": 64, "FEW": 4}.items():
            monkeypatch.setattr(f"{PLAN}.{name}", value)
    if is_wide:
        monkeypatch.setattr(f"{PLAN}.WIDE", 1)
    random = np.random.default_rng(6)
    for dtype in (np.uint8, np.int64):
        x = random.integers(0, 99, (4, 3, 7)).astype(dtype)
        if how == "turned":
            x = np.ascontiguousarray(x.T).T
        given = tensor_of(x, [stride // x.itemsize for stride in x.strides])
        for name, sizes, members, others in moves(random):
            has_runs = name in RUNS or members.get("PaddingMode") == PaddingMode.CONSTANT
            if is_by_words and not has_runs:
                continue  # by the same kernel as where it is packed
            if others:
                members["IndicesTensor"] = tensor_of(others[0])
            desc = spec(name).desc(InputTensor=given, OutputTensor=tensor_of(np.empty(sizes, dtype)), **members)
            assert ("by words" in compiled(GPU, desc).explain()) == is_by_words
            found, wanted = (run(engine, desc, [x, *others])[0] for engine in (GPU, "reference"))
            np.testing.assert_array_equal(found, wanted, f"{name} {members}")


@on_gpu
@pytest.mark.parametrize("is_odd", [False, True])
@pytest.mark.parametrize("dtype", [np.uint8, np.float16, np.float32])
def test_runs_that_begin_anywhere(
    torch: Any, place: Any, dtype: Any, is_odd: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of more words than a part has, from and to addresses that are no multiple of a word."""
    monkeypatch.setattr(f"{PLAN}.LARGE", 0)
    x = np.random.default_rng(7).integers(0, 99, (3, 1037)).astype(dtype)
    members = {"PaddingMode": PaddingMode.CONSTANT, "PaddingValue": 5, "StartPadding": (1, 2), "EndPadding": (0, 70)}
    y = np.empty((4, 1109), dtype)
    desc = spec("PADDING").desc(InputTensor=tensor_of(x), OutputTensor=tensor_of(y), **members)
    device = Device(GPU)
    operator = device.compile_operator(device.create_operator(desc))
    assert "by words" in operator.explain()
    given, out = [
        torch.zeros(each.size + is_odd, dtype=torch.from_numpy(x).dtype, device=place)[is_odd:].reshape(each.shape)
        for each in (x, y)
    ]
    given.copy_(torch.from_numpy(x))
    operator.dispatch([given], [out])
    np.testing.assert_array_equal(out.cpu().numpy(), run("reference", desc, [x])[0])


@on_gpu
@pytest.mark.parametrize("dtype", [np.uint8, np.float16, np.float32])
def test_places_in_tiles(dtype: type) -> None:
    """Of more than a tile: bands whose ends few tiles have, classes in rows and in columns, runs copied by words."""
    random = np.random.default_rng(9)

    def same(name: str, given: dict[str, Any], out: tuple[int, ...], **members: Any) -> None:
        tensors = {key: tensor_of(value) for key, value in given.items()}
        desc = spec(name).desc(OutputTensor=tensor_of(np.empty(out, dtype)), **tensors, **members)
        found, wanted = (run(engine, desc, [*given.values()])[0] for engine in (GPU, "reference"))
        np.testing.assert_array_equal(found, wanted, f"{name} {members}")

    x = random.integers(0, 99, (2, 70, 517)).astype(dtype)
    data_type = tensor_of(x).DataType
    for begin, end in ((3, 9), (-20, -20), (2**31 - 1, 0), (60, -60), (-(2**31), 2**31 - 1), (200, 2**31 - 1)):
        ends = {"DiagonalFillBegin": begin, "DiagonalFillEnd": end}
        same("DIAGONAL_MATRIX1", {"InputTensor": x}, x.shape, ValueDataType=data_type, Value=dtype(7), **ends)
    same("DIAGONAL_MATRIX", {}, (2, 130, 300), Offset=-5, Value=3.0)
    values = np.array([2, 5], dtype)
    for axis, sizes in ((1, (3, 37, 48)), (1, (3, 37, 49)), (2, (3, 35, 40)), (0, (37, 3, 16))):
        shape = tuple(1 if i == axis else size for i, size in enumerate(sizes))
        indices = random.integers(-37, 37, shape).astype(np.int64)
        same("ONE_HOT", {"IndicesTensor": indices, "ValuesTensor": values.reshape(1, 1, 2)}, sizes, Axis=axis)
    for sizes, axis in (((2, 5, 3, 601), 1), ((2, 3, 5, 600), 2), ((1, 4, 2, 5), 1), ((3, 2, 1, 600), 2)):
        # A length for all of the last dimension, where a run of it is one, and one for each.
        for is_one in (True, False):
            shape = [1 if i == axis else size for i, size in enumerate(sizes)]
            lengths = random.integers(0, 7, [*shape[:3], 1] if is_one else shape).astype(np.uint32)
            strides = [*[step // 4 for step in lengths.strides[:3]], 0 if is_one else 1]
            x = random.integers(0, 99, sizes).astype(dtype)
            lengths = np.broadcast_to(lengths, shape)
            desc = spec("REVERSE_SUBSEQUENCES").desc(
                InputTensor=tensor_of(x),
                SequenceLengthsTensor=tensor_of(lengths, strides),
                OutputTensor=tensor_of(x),
                Axis=axis,
            )
            found, wanted = (run(engine, desc, [x, lengths])[0] for engine in (GPU, "reference"))
            np.testing.assert_array_equal(found, wanted)
