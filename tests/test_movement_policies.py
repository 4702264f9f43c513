"""Which algorithm moves what: each is reached, explain() names it, and says why those before it declined."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from anydml import (
    DML_PADDING_OPERATOR_DESC,
    DML_SLICE_GRAD_OPERATOR_DESC,
    DML_SLICE_OPERATOR_DESC,
    DML_TILE_OPERATOR_DESC,
    DML_UNFOLD_OPERATOR_DESC,
    PaddingMode,
)
from cases import tensor
from harness import explained

pytest.importorskip("anydml._native")


def copied(sizes: Sequence[int], strides: Sequence[int] | None = None, out_strides: Sequence[int] | None = None) -> Any:
    """A copy of bytes."""
    return DML_SLICE_OPERATOR_DESC(
        InputTensor=tensor(sizes, "UINT8", strides),
        OutputTensor=tensor(sizes, "UINT8", out_strides),
        Offsets=[0] * len(sizes),
        Sizes=sizes,
        Strides=[1] * len(sizes),
    )


def tiled(sizes: Sequence[int], repeats: Sequence[int]) -> Any:
    output = [size * times for size, times in zip(sizes, repeats, strict=True)]
    return DML_TILE_OPERATOR_DESC(
        InputTensor=tensor(sizes, "UINT8"), OutputTensor=tensor(output, "UINT8"), Repeats=repeats
    )


def padded(mode: PaddingMode) -> Any:
    return DML_PADDING_OPERATOR_DESC(
        InputTensor=tensor((9, 9), "UINT8"),
        OutputTensor=tensor((9, 14), "UINT8"),
        PaddingMode=mode,
        PaddingValue=0,
        StartPadding=(0, 2),
        EndPadding=(0, 3),
    )


def spread(stride: int) -> Any:
    return DML_SLICE_GRAD_OPERATOR_DESC(
        InputGradientTensor=tensor((9, 30), "UINT8"),
        OutputGradientTensor=tensor((9, 90), "UINT8"),
        InputWindowOffsets=(0, 0),
        InputWindowSizes=(9, 90),
        InputWindowStrides=(1, stride),
    )


def unfolded(start: int, stride: int = 1) -> Any:
    """A window of 4 elements on 9, which lie apart, with a padding before these."""
    return DML_UNFOLD_OPERATOR_DESC(
        InputTensor=tensor((2, 3, 9), "UINT8", (54, 18, 2)),
        OutputTensor=tensor((2, 12, (5 + start) // stride + 1), "UINT8"),
        WindowSizes=[4],
        Strides=[stride],
        Dilations=[1],
        StartPadding=[start],
        EndPadding=[0],
    )


ALGORITHMS = {
    "long runs": [copied((90, 300), (400, 1)), copied((5, 7))],
    "repeated elements": [tiled((90, 1), (1, 3)), tiled((90, 8, 1), (1, 1, 5))],
    "tiles": [copied((90, 50), (1, 90)), copied((90, 3), (1, 90)), copied((3, 90), (1, 3))],
    "a table of offsets": [copied((90, 2, 3, 5), (30, 1, 2, 6)), tiled((90, 3), (1, 4))],
    "rows": [copied((9, 90), (180, 2)), copied((90, 5), (7, 1)), tiled((9, 1), (1, 400))],
    "segments": [padded(PaddingMode.CONSTANT), padded(PaddingMode.REFLECTION), spread(3), spread(-3)],
}


@pytest.mark.parametrize(("algorithm", "desc"), [(name, desc) for name in ALGORITHMS for desc in ALGORITHMS[name]])
def test_every_algorithm_is_reached(algorithm: str, desc: Any) -> None:
    engine, words = explained(desc)
    assert engine == "cpu"
    chosen = words.partition("\n")[0].rpartition(" (")[0].partition("; declined: ")[0]
    assert chosen == f"movement of uint8, {algorithm}"


REASONS = {
    "runs of 1 bytes": copied((9, 90), (180, 2)),
    "neighbours of the output differ": copied((9, 90), (180, 2)),
    "there is one element": tiled((1,), (300,)),
    "units of 3 bytes": tiled((90, 3), (1, 4)),
    "there are many of each": tiled((9, 1), (1, 400)),
    "the output has gaps": copied((9, 90), (1, 9), (200, 2)),
    "neighbours of the output are neighbours of the input": copied((9, 90), (180, 2)),
    "the input's lines hold nothing of two rows": copied((9, 90), (200, 20_000)),
    "tiles are small": copied((90, 2, 3, 5), (30, 1, 2, 6)),
    "runs fill lines, and fit the caches": copied((9, 90, 64), (64, 9 * 64, 1)),
    "rows are long": copied((9, 90), (180, 2)),
    "there is one row": copied((9,), (2,)),
}


@pytest.mark.parametrize("reason", REASONS)
def test_candidates_say_why_they_decline(reason: str) -> None:
    _, words = explained(REASONS[reason])
    assert f"({reason})" in words


@pytest.mark.parametrize(
    ("desc", "parts"), [(unfolded(0), 1), (unfolded(3), 4), (unfolded(4, 2), 2), (unfolded(2, 4), 2)]
)
def test_rows_that_are_padded_alike_are_one_part(desc: Any, parts: int) -> None:
    engine, words = explained(desc)
    assert engine == "cpu"
    assert f"parts: {parts}" in words if parts > 1 else "parts" not in words
