"""What a release says of itself: versions, licences, the bill of materials, and the check of its files."""

from __future__ import annotations

import io
import json
import re
import tarfile
import tomllib
import zipfile
from importlib import metadata
from pathlib import Path
from types import ModuleType

import pytest

import anydml

ROOT = Path(__file__).parent.parent


@pytest.fixture
def check_wheel(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The script that looks at a release's files."""
    pytest.importorskip("elftools", reason="pyelftools is not installed: it comes with the extra release")
    monkeypatch.syspath_prepend(ROOT / "tools")
    return __import__("check_wheel")


def test_the_version_is_that_of_what_was_built() -> None:
    """Sources that nothing has built say so; what is installed has the version of its metadata."""
    built = (Path(anydml.__file__).parent / "_version.py").exists()
    assert anydml.__version__ == (metadata.version("anydml") if built else "0+unbuilt")


def words(text: str) -> list[str]:
    """Without the marks of a comment."""
    return re.sub(r"^ ?\*+/?|^/\*+", "", text, flags=re.MULTILINE).split()


def test_licences_are_those_of_what_is_linked_in() -> None:
    nanobind = pytest.importorskip("nanobind")
    (licence,) = (path for path in metadata.files("nanobind") or () if path.name == "LICENSE")
    assert words((ROOT / "licenses" / "nanobind.txt").read_text()) == words(licence.read_text())
    header = Path(nanobind.include_dir()).parent / "ext" / "robin_map" / "include" / "tsl" / "robin_map.h"
    comment = header.read_text().partition("*/")[0]
    assert words((ROOT / "licenses" / "robin-map.txt").read_text()) == words(comment)


def test_the_bill_of_materials_lists_what_has_a_licence() -> None:
    """Libraries that auditwheel puts in stand in a bill of its own."""
    bill = json.loads((ROOT / "tools" / "anydml.cdx.json.in").read_text())
    assert (bill["bomFormat"], bill["metadata"]["component"]["name"]) == ("CycloneDX", "anydml")
    listed = {component["name"] for component in bill["components"]}
    assert {f"{name}.txt" for name in listed} | {"libgomp.txt", "README.md"} == {
        path.name for path in (ROOT / "licenses").iterdir()
    }
    places = [bill["metadata"]["component"], *bill["components"]]
    assert all(re.fullmatch(r"@\w+@", place["version"]) for place in places)
    assert {place["bom-ref"] for place in places} == {each["ref"] for each in bill["dependencies"]}


def test_what_builds_the_package_is_listed_alike() -> None:
    """By pyproject.toml, the extra for those who build without isolation, and the Makefile."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    needed = {re.split("[<>=]", each)[0] for each in project["build-system"]["requires"]}
    extra = {re.split("[<>=]", each)[0] for each in project["project"]["optional-dependencies"]["dev"]}
    (made,) = re.findall(r"^BUILDS_WITH := (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert needed <= extra | {"numpy"}
    assert set(made.split()) == needed | {"cmake", "ninja"}


def test_a_sdist_with_what_was_built_is_refused(check_wheel: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "anydml-1.tar.gz"
    with tarfile.open(path, "w:gz") as sdist:
        for name in ("PKG-INFO", "build/x.txt", "src/anydml/_native.so"):
            sdist.addfile(tarfile.TarInfo(f"anydml-1/{name}"), io.BytesIO())
    wrong = check_wheel.check_sdist(path)
    assert {"lacks pyproject.toml", "has build/x.txt", "has src/anydml/_native.so"} <= {*wrong}
    assert "lacks PKG-INFO" not in wrong


def test_a_large_wheel_of_other_things_is_refused(check_wheel: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "anydml-1-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr("anydml-1.dist-info/METADATA", "Version: 1\n")
        wheel.writestr("other/__init__.py", "")
        wheel.writestr("anydml/large.bin", bytes(check_wheel.MOST_BYTES))
    wrong = check_wheel.check_wheel(path)
    assert {"has other/__init__.py", "lacks the native module", "lacks anydml/_version.py"} <= {*wrong}
    assert any(line.endswith(f"at most {check_wheel.MOST_BYTES}") for line in wrong)
    says = [{"name": name, "version": "1"} for name in ("anydml", "nanobind", "robin-map")]
    bill = {"metadata": {"component": says[0]}, "components": says[1:]}
    wrong = check_wheel.check_versions("Version: 2\n", bill, 'version = "1"')
    assert wrong[0] == "anydml/_version.py does not say 2"
    assert wrong[1].startswith("its SBOM says ")
