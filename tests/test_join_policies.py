"""Which algorithm joins what: every policy is reached, explain() names it, and says why those before it declined."""

from __future__ import annotations

import os

import pytest

from anydml import DML_JOIN_OPERATOR_DESC
from cases import tensor
from harness import compiled

native = pytest.importorskip("anydml._native")

INSTRUCTION_SET = os.environ.get("ANYDML_CPU", native.build_info()["instruction_sets"][0])
HAS_SHUFFLES = "baseline" not in INSTRUCTION_SET
LARGE = 16 << 20
"""Bytes of an output that is stored past the caches."""


def explained(runs: tuple[int, ...], rows: int, *, gap: int = 0, step: int = 1, out_step: int = 1) -> str:
    """What explain() says of a JOIN of rows of bytes, after who serves it.

    `gap` bytes lie between rows of the output; an input's bytes are `step` apart, those of an output's row `out_step`.
    """
    row = sum(runs)
    inputs = [tensor((rows, run), "UINT8", (run * step, step)) for run in runs]
    out = tensor((rows, row), "UINT8", (row * out_step + gap, out_step))
    desc = DML_JOIN_OPERATOR_DESC(InputTensors=inputs, OutputTensor=out, Axis=1)
    return compiled("cpu", desc).explain().partition(": ")[2]


def rows_of(runs: tuple[int, ...]) -> int:
    return LARGE // sum(runs) + 1


POLICIES = {
    "byte shuffles": ((1, 1, 1), 1000),
    "transposed squares": ((1,) * 64, 1000),
    "appended runs, non-temporal stores": ((300, 300), rows_of((300, 300))),
    "appended runs, rows interleaved, non-temporal stores": ((1024,) * 32, rows_of((1024,) * 32)),
    "tiles, non-temporal stores": ((96,) * 64, rows_of((96,) * 64)),
    "long runs": ((4096, 4096), 100),
    "blocks": ((20, 30), 1000),
    "blocks, non-temporal stores": ((20, 30), rows_of((20, 30))),
}


@pytest.mark.parametrize("name", POLICIES)
def test_every_policy_is_reached(name: str) -> None:
    runs, rows = POLICIES[name]
    expected = "blocks" if name == "byte shuffles" and not HAS_SHUFFLES else name
    chosen, _, _ = explained(runs, rows).rpartition(" (")[0].partition("; declined: ")
    assert chosen == f"join uint8, inputs: {len(runs)}, {expected}"


def test_rows_with_gaps_are_joined_element_by_element() -> None:
    words = explained((4, 4), 9, out_step=2)
    assert words.startswith("join uint8, inputs: 2, element by element; declined: row algorithms (")


REASONS = {
    "rows do not follow each other in every tensor": ((8, 8), 100, {"gap": 3}),
    "runs are not all of 1, 2 or 4 bytes": ((3, 3, 3, 3, 3, 3, 3, 3, 3), 100, {}),
    "the output fits the caches, or its rows have gaps": ((300, 300), 100, {}),
    "inputs have gaps": ((300, 300), LARGE // 600 + 1, {"step": 2}),
    "few inputs": ((20, 30), LARGE // 50 + 1, {}),
    "a run is wider than a tile": ((2000, *(8,) * 16), LARGE // 2128 + 1, {}),
    "rows of 340 bytes": ((20,) * 17, LARGE // 340 + 1, {}),
    "runs of 25 bytes on average": ((20, 30), 100, {}),
}


@pytest.mark.parametrize("reason", REASONS)
def test_candidates_say_why_they_decline(reason: str) -> None:
    runs, rows, layout = REASONS[reason]
    assert f"({reason})" in explained(runs, rows, **layout)


@pytest.mark.skipif(not HAS_SHUFFLES, reason="this instruction set has no byte shuffle")
def test_shuffles_decline() -> None:
    assert "byte shuffles (more than 8 inputs)" in explained((3,) * 9, 100)
    assert "byte shuffles (runs of more than 8 bytes on average)" in explained((20, 30), 100)
    assert "byte shuffles (rows of 64 bytes are transposed in less time)" in explained((1,) * 64, 100)


@pytest.mark.skipif(HAS_SHUFFLES, reason="this instruction set has byte shuffles")
def test_there_are_no_shuffles() -> None:
    assert "byte shuffles (this instruction set has no byte shuffle)" in explained((1, 1, 1), 100)
