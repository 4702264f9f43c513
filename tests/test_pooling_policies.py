"""Which algorithm pools what: every policy is reached, explain() names it, and says why those before it declined."""

from __future__ import annotations

from typing import Any

import pytest

from test_pooling_wide import explained

POLICIES: dict[str, tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = {
    "blocks of strips": ((1, 4, 60, 60), (3, 3), {"start_padding": 1, "end_padding": 1}),
    "blocks of strips, non-temporal stores": ((1, 4, 4200, 1030), (2, 2), {}),
    "whole planes": ((2, 64, 7, 7), (7, 7), {}),
    "running sums": ((1, 2, 60, 90), (20, 20), {}),
    "prefix sums": ((1, 1, 400, 400), (300, 300), {}),
    "prefix sums of 64 bits": ((1, 1, 4200, 4200), (4150, 4100), {}),
    "each window by itself": ((1, 1, 50, 640), (3, 64), {"strides": (3, 64)}),
}


@pytest.mark.parametrize("name", POLICIES)
def test_every_policy_is_reached(name: str) -> None:
    shape, window, others = POLICIES[name]
    chosen, _, _ = explained(shape, window, **others).rpartition(" (")[0].partition("; declined: ")
    assert chosen == f"average pooling uint8 to uint8, window of {window[0]}x{window[1]}, {name}"


REASONS: dict[str, tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = {
    "blocks of strips (sums of more than 16 bits)": ((1, 1, 90, 90), (20, 20), {}),
    "blocks of strips (windows are too large)": ((1, 1, 1200, 90), (12, 2), {"dilations": (90, 1)}),
    "blocks of strips (each window along a row is summed by itself)": ((1, 1, 50, 640), (1, 64), {"strides": 64}),
    "blocks of strips (a stride of more than 2 along rows)": ((1, 1, 90, 90), (3, 3), {"strides": 3}),
    "blocks of strips (windows leave most rows unread)": ((1, 1, 900, 90), (2, 2), {"strides": (9, 1)}),
    "blocks of strips (too many windows reach into padding)": (
        (1, 1, 900, 90), (200, 1), {"start_padding": (199, 0), "end_padding": (199, 0)},
    ),
    "whole planes (planes have several outputs)": ((1, 1, 90, 90), (20, 20), {}),
    "whole planes (the window lies in padding)": (
        (1, 1, 3, 3), (1, 1), {"start_padding": 3, "strides": 9},
    ),
    "running sums (sums of more than 24 bits)": ((1, 1, 400, 400), (300, 300), {}),
    "running sums (windows are too wide)": ((1, 1, 20, 30_000), (2, 9), {"dilations": (1, 2000)}),
    "running sums (each window along a row is summed by itself)": ((1, 1, 50, 640), (1, 64), {"strides": 64}),
    "running sums (windows leave most columns unread)": ((1, 1, 50, 640), (2, 2), {"strides": 9}),
    "running sums (too many windows reach into padding)": (
        (1, 1, 4, 9000), (3, 190), {"start_padding": (0, 2500), "end_padding": (0, 2500), "dilations": (1, 30)},
    ),
    "prefix sums (few outputs share a column)": ((1, 1, 50, 640), (1, 64), {"strides": 64}),
}  # fmt: skip


@pytest.mark.parametrize("reason", REASONS)
def test_candidates_say_why_they_decline(reason: str) -> None:
    shape, window, others = REASONS[reason]
    assert reason in explained(shape, window, **others)
