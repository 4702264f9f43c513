"""Puts the site's sources together in a folder, where Sphinx reads them; only what has changed is written."""

from __future__ import annotations

import argparse
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from anydml.cli.catalogue import catalogue
from anydml.operators import OPERATORS, spec

from . import benchmarks, lowered, operator_index, operator_page, public_names, results

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
SITE = DOCS / "site"

TOP = {
    "README.md": "inside/readme.md",
    "CONTRIBUTING.md": "inside/contributing.md",
    "CHANGELOG.md": "inside/changelog.md",
}
"""Documents of the root and where the site has them; those of `docs` lie beside these."""


class Folder:
    """The folder that is written."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._written: set[Path] = set()

    def put(self, name: str, content: str | bytes) -> None:
        path = self.path / name
        data = content.encode() if isinstance(content, str) else content
        self._written.add(path)
        if not path.exists() or path.read_bytes() != data:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)

    def remove_the_rest(self) -> None:
        """What an earlier run wrote, and this one did not."""
        for path in self.path.rglob("*"):
            if path.is_file() and path not in self._written:
                path.unlink()


def assemble(target: Path) -> None:
    folder = Folder(target)
    for path in [path for path in sorted(SITE.rglob("*.md")) if "_build" not in path.parts]:
        folder.put(path.relative_to(SITE).as_posix(), _shown(path.read_text()))
    for name, content in _documents():
        folder.put(name, content)
    known = operator_page.Known(
        {entry["name"]: entry for entry in catalogue(map(spec, OPERATORS))}, lowered.recorded(), results.runs(DOCS)
    )
    folder.put("operators/index.md", operator_index.page(known))
    for name in OPERATORS:
        folder.put(f"operators/{name.lower()}.md", operator_page.page(name, known))
    folder.put("benchmarks.md", benchmarks.page(known.runs))
    public_names.write(folder.put)
    folder.remove_the_rest()


def _documents() -> Iterator[tuple[str, str | bytes]]:
    """The maintainers' documents as they are, but for where their links lead."""
    for path in sorted(DOCS.glob("*.md")):
        yield f"inside/{path.name}", _linked(path.read_text(), "")
    for name, place in TOP.items():
        yield place, _linked((ROOT / name).read_text(), "docs/")
    for pattern in ("images/*", "*.svg", "*.txt", "*.json"):
        for path in sorted(DOCS.glob(pattern)):
            yield f"inside/{path.relative_to(DOCS).as_posix()}", path.read_bytes()


def _linked(document: str, prefix: str) -> str:
    """With links to other documents as they lie in the site, and code that is a session as one."""

    def link(found: re.Match[str]) -> str:
        target = found[1].removeprefix("../").removeprefix(prefix)
        return f"]({Path(TOP[target]).name if target in TOP else target}{found[2]})"

    linked = re.sub(r"\]\((?!https?:|#)([^)#]+)(#[^)]*)?\)", lambda found: link(found).replace("None", ""), document)
    return _shown(re.sub(r"^```python\n(?=>>> )", "```pycon\n", linked, flags=re.MULTILINE))


def _shown(document: str) -> str:
    """Without the empty line at the end of a session, which doctest needs and nobody else."""
    return re.sub(r"(^```pycon\n.*?\n)\n```$", r"\1```", document, flags=re.MULTILINE | re.DOTALL)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--clean", action="store_true", help="write everything anew")
    options = parser.parse_args()
    if options.clean:
        shutil.rmtree(options.folder, ignore_errors=True)
    assemble(options.folder)


if __name__ == "__main__":
    main()
