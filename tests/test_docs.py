"""What the documentation shows is what happens."""

from __future__ import annotations

import doctest
import pkgutil
import re
import runpy
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import anydml
from anydml import _native
from anydml.cli import main
from anydml.draw import draw_operator, draw_tasks
from anydml.operators import OPERATORS

ROOT = Path(__file__).parent.parent
MODULES = [
    module.name
    for module in pkgutil.walk_packages(anydml.__path__, "anydml.")
    if not module.name.endswith(("__main__", "_native"))
]
OF_EXTRAS = ("dask", "onnx", "torch", "triton")
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


@pytest.mark.parametrize(
    "path",
    [ROOT / "README.md", *(ROOT / "docs" / name for name in ("dask.md", "from-cpp.md", "onnx.md", "training.md"))],
    ids=lambda path: path.name,
)
def test_pages(path: Path) -> None:
    if path.stem in OF_EXTRAS:
        pytest.importorskip(path.stem, reason=f"{path.stem} is not installed")
    result = doctest.testfile(
        str(path), module_relative=False, optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    )
    assert result.failed == 0
    assert result.attempted > 0


IMAGES = sorted((ROOT / "docs" / "images").glob("*.svg"))
OPERATORS_DRAWN = [path for path in IMAGES if path.stem.upper() in OPERATORS]


@pytest.mark.parametrize("path", OPERATORS_DRAWN, ids=lambda path: path.name)
def test_pictures(path: Path) -> None:
    """They are what `anydml draw NAME` draws."""
    assert path.read_text() == draw_operator(path.stem.upper())


def test_the_picture_of_the_classifier(tmp_path: Path) -> None:
    """It is what `anydml draw examples/classifier.onnx --dim batch=2` draws where processors have AVX-512; elsewhere
    packed weights have another size, as vectors have another width."""
    pytest.importorskip("onnx", reason="onnx is not installed")
    drawn = tmp_path / "classifier.svg"
    model = str(ROOT / "examples" / "classifier.onnx")
    assert main(["draw", model, "--dim", "batch=2", "-o", str(drawn)]) == 0
    pictures = (ROOT / "docs" / "images" / "classifier.svg", drawn)
    there, here = (picture.read_text() for picture in pictures)
    if _native.build_info()["instruction_sets"][0] != "avx512":
        there, here = (re.sub(r"once; \d+ bytes", "once; bytes", text) for text in (there, here))
    assert there == here


@pytest.mark.parametrize("name", ["dask_scan", "dask_windows"])
def test_pictures_of_tasks(name: str) -> None:
    """They have the tasks that there are; what Dask calls its own is left to it."""
    da = pytest.importorskip("dask.array", reason="dask is not installed")
    x = da.zeros((1, 1, 12, 8), chunks=(1, 1, 4, 8), dtype=np.float32)
    calls = {
        "dask_scan": lambda: anydml.cumulative_summation(x[0, 0, :, 0]),
        "dask_windows": lambda: anydml.max_pooling(x, 3, start_padding=1, end_padding=1),
    }
    operators = r">((?:cumulative|max)_[a-z-]+)</text>"
    drawn = (ROOT / "docs" / "images" / f"{name}.svg").read_text()
    assert sorted(re.findall(operators, drawn)) == sorted(re.findall(operators, draw_tasks(calls[name]())))


def test_the_classifier_is_what_its_script_writes() -> None:
    onnx = pytest.importorskip("onnx", reason="onnx is not installed")
    written = runpy.run_path(str(ROOT / "examples" / "classifier.py"))["classifier"]()
    assert written == onnx.load(ROOT / "examples" / "classifier.onnx")


DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_files_that_documents_link_to_exist(path: Path) -> None:
    links = re.findall(r"\]\((?!https?:|#)([^)#]+)", path.read_text())
    assert [link for link in links if not (path.parent / link).exists()] == []


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_source_files_that_documents_name_exist(path: Path) -> None:
    """A path that a document gives is one from the root, from the package, or from the native code."""
    named = set(re.findall(r"`((?:[\w.]+/)+\w+\.(?:py|pyi|cpp|h|md|json))`", path.read_text()))
    places = [ROOT, ROOT / "src" / "anydml", ROOT / "src" / "native"]
    assert [name for name in sorted(named) if not any((place / name).exists() for place in places)] == []


def test_every_environment_variable_is_documented() -> None:
    sources = [path for kind in ("*.py", "*.cpp") for path in (ROOT / "src").rglob(kind)]
    read = re.compile(r"""(?:environ(?:\.get\(|\[)|getenv\()"((?:ANYDML|OMP|TRITON)_\w+)""")
    used = {name for path in sources for name in read.findall(path.read_text())}
    documented = set(re.findall(r"^\| `(\w+)`", (ROOT / "docs" / "environment.md").read_text(), re.MULTILINE))
    assert {"ANYDML_CPU", "OMP_NUM_THREADS"} <= used <= documented


GENERATED = ("src/anydml/_generated.pyi", "docs/status.md")


@pytest.mark.parametrize("name", ["ACTIVATION_SCALED_TANH", "ACTIVATION_SOFTSIGN", "ELEMENT_WISE_RECIP"])
def test_a_pointwise_operator_stands_in_few_files(name: str) -> None:
    """By hand in the enum, the operators' table, its family's specification and cases, ONNX's and WebNN's lowering, and
    the tables of libraries' functions that it is measured beside, and of what GPUs compute in single precision."""
    word = re.compile(rf"\b(?:DML_)?{name}(?:_OPERATOR_DESC)?\b")
    kinds = ("*.py", "*.pyi", "*.cpp", "*.h", "*.inc", "*.md")
    paths = [
        path for folder in ("src", "tests", "tools", "docs") for kind in kinds for path in (ROOT / folder).rglob(kind)
    ]
    found = {path.relative_to(ROOT).as_posix() for path in paths if word.search(path.read_text())}
    family = OPERATORS[name].family
    required = {"registry.py", f"specs/{family}.py"}
    assert {f"src/anydml/operators/{each}" for each in required} | {f"tests/cases/{family}.py"} <= found
    elsewhere = {*GENERATED, "tests/test_docs.py", f"tests/webnn_lowering/{family}.py"}
    elsewhere |= {"src/anydml/bench/pointwise_peers.py", "src/anydml/backends/triton/pointwise/narrow.py"}
    assert len(found - elsewhere) <= 5, sorted(found)
