"""``benchmarks/overhead.py``: that every operator's function has its line, not how long it takes."""

from __future__ import annotations

import re
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from anydml.draw import EXAMPLES
from anydml.functions._call_cache import CALL_CACHE

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CALL_CACHE is None, reason="calls are kept by the compiled module"),
]


@pytest.fixture
def overhead(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The program, for a function with a kernel of its own and for one that calls another."""
    source = spec_from_file_location("overhead", Path(__file__).parents[1] / "benchmarks" / "overhead.py")
    assert source is not None
    assert source.loader is not None
    module = module_from_spec(source)
    source.loader.exec_module(module)
    few = {name: EXAMPLES[name] for name in ("JOIN", "NONZERO_COORDINATES")}
    monkeypatch.setattr(module, "EXAMPLES", few)
    monkeypatch.setattr(module, "JOINED", 5)
    return module


def test_functions_without_a_kernel_of_their_own_are_measured(overhead: Any) -> None:
    join, nonzero, many = overhead.small_calls(np.array, lambda: None)
    assert (join.name, nonzero.name, many.name) == ("JOIN", "NONZERO_COORDINATES", "JOIN of 5")
    assert nonzero.whole > 0
    assert (nonzero.kernel, nonzero.share) == (None, None)
    for each in (join, many):
        assert min(each.whole, each.kernel) > 0


def test_they_have_lines_of_their_own(overhead: Any, capsys: pytest.CaptureFixture[str]) -> None:
    overhead.print_small_calls()
    lines = capsys.readouterr().out.splitlines()
    of_each = {name: [line for line in lines if line.startswith(f"{name} ")] for name in overhead.EXAMPLES}
    assert all(of_each.values())
    for line in of_each["NONZERO_COORDINATES"]:
        assert re.fullmatch(r"NONZERO_COORDINATES +[\d.]+ +- +- +\d\.0(  above)?  no kernel of its own", line)


def test_what_is_slower_than_its_limit_is_marked(overhead: Any) -> None:
    whole = overhead.SmallCall("JOIN", 2, 5.0, 1.0, 4.0)
    assert (whole.mark(6), whole.mark(4)) == ("", "  above")
    alone = overhead.SmallCall("NONZERO_COORDINATES", 1, 5.0)
    assert (alone.mark(6), alone.mark(4)) == ("  no kernel of its own", "  above  no kernel of its own")
