"""Checks what a release consists of: `python tools/check_wheel.py dist/*.whl dist/*.tar.gz`, in the root of the tree.

A wheel holds the package, its metadata and what auditwheel puts in, in at most 8 MB, and nothing for a debugger; its
bill of materials tells the versions that it was built with. A sdist holds all sources, and nothing that was built.
"""

from __future__ import annotations

import io
import json
import re
import sys
import tarfile
import zipfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

from elftools.elf.elffile import ELFFile

MOST_BYTES = 8_000_000
ROOT = Path(__file__).parent.parent
LICENSES = ["LICENSE", *sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "licenses").iterdir())]


def check_wheel(path: Path) -> list[str]:
    """What is wrong with a wheel."""
    wrong = []
    if path.stat().st_size > MOST_BYTES:
        wrong.append(f"{path.stat().st_size} bytes, at most {MOST_BYTES}")
    with zipfile.ZipFile(path) as wheel:
        names = wheel.namelist()
        (info,) = {name.partition("/")[0] for name in names if ".dist-info/" in name}
        allowed = (f"{info}/", "anydml/", "anydml.libs/", "pydirectml/")
        modules = [name for name in names if ".so" in Path(name).suffixes]
        wrong += [f"has {name}" for name in names if not name.startswith(allowed) or "__pycache__" in name]
        required = {f"anydml/{file.relative_to(ROOT / 'src/anydml').as_posix()}" for file in sources("src/anydml")}
        required |= {f"{info}/licenses/{file}" for file in LICENSES} | {f"{info}/sboms/anydml.cdx.json"}
        wrong += [f"lacks {name}" for name in sorted({*required, "anydml/_version.py"} - {*names})]
        if not any(name.startswith("anydml/_native.") for name in modules):
            wrong.append("lacks the native module")
        for name in modules:
            sections = {section.name for section in ELFFile(io.BytesIO(wheel.read(name))).iter_sections()}
            unwanted = {
                section for section in sections if section.startswith((".debug", ".zdebug")) or section == ".symtab"
            }
            wrong += [f"{name} has {section}" for section in sorted(unwanted)]
        if f"lacks {info}/sboms/anydml.cdx.json" not in wrong:
            metadata = wheel.read(f"{info}/METADATA").decode()
            sbom = json.loads(wheel.read(f"{info}/sboms/anydml.cdx.json"))
            wrong += check_versions(metadata, sbom, wheel.read("anydml/_version.py").decode())
    return wrong


def check_versions(metadata: str, sbom: Any, module: str) -> list[str]:
    """What differs between the versions that a wheel tells."""
    (own,) = re.findall(r"^Version: (.+)$", metadata, re.MULTILINE)
    found = {each["name"]: each["version"] for each in [sbom["metadata"]["component"], *sbom["components"]]}
    expected = {"anydml": own, "nanobind": version("nanobind"), "robin-map": robin_map()}
    wrong = [] if f'"{own}"' in module else [f"anydml/_version.py does not say {own}"]
    return wrong + [f"its SBOM says {found}, it was built with {expected}"] * (found != expected)


def robin_map() -> str:
    """The version of the hash maps that nanobind brings."""
    import nanobind

    header = Path(nanobind.include_dir()).parent / "ext/robin_map/include/tsl/robin_growth_policy.h"
    return ".".join(
        re.findall(r"^#define TSL_RH_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)$", header.read_text(), re.MULTILINE)
    )


def sources(*folders: str) -> list[Path]:
    """The files of folders that are no products of compilers or of examples."""
    found = [path for folder in folders for path in (ROOT / folder).rglob("*") if path.is_file()]
    products = re.compile(r".*(\.pyc|\.so|\.pyd|/_version\.py|/examples/.*_out\.\w+)")
    return [path for path in found if not products.fullmatch(path.as_posix())]


def check_sdist(path: Path) -> list[str]:
    """What is wrong with a sdist."""
    with tarfile.open(path) as sdist:
        names = {name.partition("/")[2] for name in sdist.getnames()}
    required = {file.relative_to(ROOT).as_posix() for file in sources("src", "tests", "docs", "examples", "tools")}
    required |= {"pyproject.toml", "CMakeLists.txt", "README.md", "CHANGELOG.md", "PKG-INFO", *LICENSES}
    wrong = [f"lacks {name}" for name in sorted(required - names)]
    unwanted = re.compile(r"(^|/)(build|dist|\.venv|__pycache__|\.[a-z]+_cache|\.git)/|\.(so|o|a|pyc|pyd|whl)$")
    return wrong + [f"has {name}" for name in sorted(names) if unwanted.search(name)]


def main(paths: list[str]) -> int:
    failed = 0
    for path in map(Path, paths):
        wrong = check_wheel(path) if path.suffix == ".whl" else check_sdist(path)
        print(f"{path.name}: {path.stat().st_size / 1e6:.2f} MB{'' if wrong else ', as it should be'}")
        for line in wrong:
            print(f"  {line}")
        failed += bool(wrong)
    return failed


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
