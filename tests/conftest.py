"""Fixtures that tests of several files share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import settings

from anydml import Device, cli
from harness import GPU

settings.register_profile("without a clock", deadline=None)
settings.load_profile("without a clock")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--site", help="the folder of a site that `make docs` has built, to be tested")
    parser.addoption("--share", default="0/1", help="of the tests with large tensors the i-th of n alone, as in 0/3")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves large tests to other runs, whose shares make up all of them together; and in a GPU's run the tests of
    other engines, which run without one."""
    if config.getoption("markexpr") == "gpu" and GPU:
        items[:] = [item for item in items if engine_of(item) in ("", GPU)]
    number, count = map(int, config.getoption("--share").split("/"))
    large = [item for item in items if item.path.stem.endswith("_large")]
    left = {id(item) for i, item in enumerate(large) if i % count != number}
    items[:] = [item for item in items if id(item) not in left]


def engine_of(item: pytest.Item) -> Any:
    """The engine that a test is for, of those that its parameter names; "" where it has none."""
    return item.callspec.params.get("engine", "") if hasattr(item, "callspec") else ""


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
