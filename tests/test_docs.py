"""What the documentation shows is what happens."""

from __future__ import annotations

import doctest
import pkgutil
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import anydml
from anydml.draw import draw_operator

ROOT = Path(__file__).parent.parent
MODULES = [
    module.name
    for module in pkgutil.walk_packages(anydml.__path__, "anydml.")
    if not module.name.endswith(("__main__", "_native"))
]
OF_EXTRAS = ("torch", "triton")
"""What some modules of engines cannot do without, and the package can."""


@pytest.mark.parametrize("name", ["anydml", *MODULES])
def test_docstrings(name: str) -> None:
    try:
        module = import_module(name)
    except ModuleNotFoundError as missing:
        if missing.name not in OF_EXTRAS:
            raise
        pytest.skip(f"{missing.name} is not installed")
    assert doctest.testmod(module, extraglobs={"np": np}).failed == 0


@pytest.mark.parametrize("path", [ROOT / "README.md"], ids=lambda path: path.name)
def test_pages(path: Path) -> None:
    result = doctest.testfile(str(path), module_relative=False, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert result.failed == 0
    assert result.attempted > 0


@pytest.mark.parametrize("path", sorted((ROOT / "docs" / "images").glob("*.svg")), ids=lambda path: path.name)
def test_pictures(path: Path) -> None:
    """They are what `anydml draw NAME` draws."""
    assert path.read_text() == draw_operator(path.stem.upper())


def test_adding_an_operator_takes_at_most_12_lines() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text()
    section = text.partition("## Adding an operator\n")[2].partition("\n## ")[0]
    assert 0 < len([line for line in section.splitlines() if line.strip()]) <= 12
