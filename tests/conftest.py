"""Fixtures that tests of several files share."""

from __future__ import annotations

import ctypes
import gc
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import settings

import interpreted
import together
from anydml import Device, cli
from harness import GPU

CASES = "cases"
"""The property of a test that says how many it has."""

settings.register_profile("without a clock", deadline=None)
settings.load_profile("without a clock")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--site", help="the folder of a site that `make docs` has built, to be tested")
    parser.addoption("--each", action="store_true", help="a test for each case, where they are many in one")
    parser.addoption("--share", default="0/1", help="of the cases that a test has the i-th of n alone, as in 0/3")
    parser.addoption("--share-large", default="0/1", help="of the tests with large tensors the i-th of n alone")


def pytest_configure(config: pytest.Config) -> None:
    together.EACH = config.getoption("--each")
    if sys.platform == "linux":
        keep_memory()
    if GPU and os.environ.get("TRITON_INTERPRET") == "1":
        interpreted.quicken()


def keep_memory() -> None:
    """Has glibc keep what arrays leave, up to 256 MiB: the system takes longer to give pages again than many tests to
    compute on them. Of this process alone: those that tests start may look at how much memory they take."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        trim_threshold, mmap_threshold = -1, -3
        mallopt(trim_threshold, 2**28)
        mallopt(mmap_threshold, 2**26)


@pytest.hookimpl(hookwrapper=True)
def pytest_collection() -> Iterator[None]:
    """Without garbage collection, which would look at all tests again and again, now and when they run: they stay.
    By its threshold, as modules that are imported meanwhile, Dask's, would take it for switched off."""
    threshold = gc.get_threshold()
    gc.set_threshold(0)
    yield
    gc.freeze()
    gc.set_threshold(*threshold)


@pytest.hookimpl(tryfirst=True)  # before those are left out that `-k` does not name
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Tells of how many cases a test is, and finds it by their names. Leaves cases and large tests to other runs, whose
    shares make up all of them together; and in a GPU's run the tests of other engines, which run without one. The
    longest come first, so that no process has one left when all others are done."""
    number, count = map(int, config.getoption("--share").split("/"))
    for group in {id(group): group for item in items if (group := group_of(item)) is not None}.values():
        # One that has few has its first in each.
        group.rows = group.rows[number::count] or group.rows[:1]
    for item in items:
        if (group := group_of(item)) is not None:
            item.user_properties.append((CASES, len(group.rows)))
            if config.getoption("keyword"):
                item.extra_keyword_matches.update(row.id for row in group.rows)
    if config.getoption("markexpr") == "gpu" and GPU:
        items[:] = [item for item in items if engine_of(item) in ("", GPU)]
    number, count = map(int, config.getoption("--share-large").split("/"))
    large = [item for item in items if item.path.stem.endswith("_large")]
    left = {id(item) for i, item in enumerate(large) if i % count != number}
    items[:] = [item for item in items if id(item) not in left]
    items.sort(key=lambda item: item.get_closest_marker("longest") is None)


def engine_of(item: pytest.Item) -> Any:
    """The engine that a test is for, of those that its parameter names; "" where it has none."""
    if (group := group_of(item)) is not None:
        return group.value("engine") or ""
    return item.callspec.params.get("engine", "") if hasattr(item, "callspec") else ""


def group_of(item: pytest.Item) -> together.Group | None:
    """The cases that a test has, where it has several."""
    found = item.callspec.params.get("group") if hasattr(item, "callspec") else None
    return found if isinstance(found, together.Group) else None


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Tells how many cases were run, too, as one test has many."""
    reports = [report for kind in ("passed", "failed") for report in terminalreporter.stats.get(kind, ())]
    counts = [
        count for report in reports if report.when == "call" for name, count in report.user_properties if name == CASES
    ]
    if counts:
        terminalreporter.write_line(f"{len(counts)} of these tests had {sum(counts)} cases")


@pytest.fixture
def torch() -> Any:
    return pytest.importorskip("torch")


@pytest.fixture
def place(torch: Any) -> Any:
    """PyTorch's name of the device."""
    return Device(GPU).memory.device  # type: ignore[attr-defined]


@pytest.fixture
def anydml_(capsys: pytest.CaptureFixture[str]) -> Any:
    """Runs a command line: its exit code, also that of a wrong one, and what it prints."""

    def run(*arguments: object) -> tuple[int, str, str]:
        try:
            code = cli.main([str(argument) for argument in arguments])
        except SystemExit as end:
            code = int(end.code or 0)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of models with a file in it, and one beside it."""
    inside = tmp_path / "models"
    inside.mkdir()
    np.save(inside / "x.npy", np.zeros(4, np.float32))
    np.save(tmp_path / "secret.npy", np.zeros(4, np.float32))
    return inside
