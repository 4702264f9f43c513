"""Runs the examples of a page with what is installed: `python -I tools/examples.py README.md`.

Python's examples, in blocks marked pycon, are one session, as doctest reads it. In blocks marked console `$ ` stands
before commands of a shell, and what they print behind them; a block marked json is a model to run. What needs a package
that is not installed is left out, and named.
"""

from __future__ import annotations

import doctest
import os
import re
import subprocess
import sys
import sysconfig
import tempfile
from importlib.util import find_spec
from pathlib import Path

BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NEEDS = ("dask", "onnx", "torch")
"""The packages beside NumPy that examples need, by their names, which stand in each that does."""

ANYDML = Path(sysconfig.get_path("scripts")) / "anydml"


def lacking(text: str) -> str | None:
    """The package that an example needs and that is not installed; such an example is named."""
    found = next((name for name in NEEDS if name in text and find_spec(name) is None), None)
    if found is not None:
        print(f"left out, as {found} is not installed: {text.splitlines()[0]}")
    return found


def sessions(blocks: list[str], name: str) -> doctest.TestResults:
    """Runs Python's examples."""
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    runner.run(doctest.DocTestParser().get_doctest("\n".join(blocks), {}, name, name, 0))
    return doctest.TestResults(runner.failures, runner.tries)


def command(line: str) -> tuple[int, str]:
    """The exit code of a command of anydml, and what it prints."""
    words = line.split()
    assert words[0] == "anydml", line
    done = subprocess.run([ANYDML, *words[1:]], capture_output=True, text=True, timeout=300)
    return done.returncode, done.stdout + done.stderr


def consoles(blocks: list[str]) -> tuple[int, int]:
    """Runs a shell's examples: how many failed, of how many."""
    failed = ran = 0
    for line, shown in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", "".join(blocks), re.MULTILINE):
        if lacking(line):
            continue
        ran += 1
        code, printed = command(line)
        # Some commands are shown without what they print.
        if code if not shown else printed.split() != shown.split():
            failed += 1
            print(f"$ {line}\nexpected:\n{shown}found:\n{printed}")
    return failed, ran


def main(page: Path) -> int:
    blocks = BLOCK.findall(page.read_text(encoding="utf-8"))
    os.chdir(page.resolve().parent)  # files that it names lie beside it
    parts = {name: [text for kind, text in blocks if kind == name] for name in ("pycon", "console", "json")}
    parts["pycon"] = [text for text in parts["pycon"] if not lacking(text)]
    failures, tries = sessions(parts["pycon"], page.name)
    failed, ran = consoles(parts["console"])
    with tempfile.TemporaryDirectory() as folder:
        for text in parts["json"]:
            model = Path(folder) / "model.json"
            model.write_text(text, encoding="utf-8")
            code, printed = command(f"anydml run {model}")
            print(printed, end="")
            ran += 1
            failed += code != 0
    print(f"{page.name}: {tries} examples of Python, {failures} failed; {ran} commands and models, {failed} failed")
    return failures + failed if tries and ran else 1


if __name__ == "__main__":
    raise SystemExit(min(1, main(Path(sys.argv[1]))))
