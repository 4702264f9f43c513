"""Which operators of ONNX and of WebNN become which of DirectML's, as recorded in `lowered.json`.

The record is made while the tests of ONNX's operators run, and from WebNN's conformance cases: what each node was
lowered to. ``PYTHONPATH=src:tests:tools python -m reference.lowered`` makes it anew.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

RECORD = Path(__file__).parent / "lowered.json"
ROOT = Path(__file__).parents[2]

Ways = dict[str, dict[str, list[str]]]
"""Of each operator those of DirectML that it can become alone, and those that it can become with others."""


def recorded() -> dict[str, Ways]:
    found: dict[str, Ways] = json.loads(RECORD.read_text())
    return found


def lowered_to(operator: str, ways: Ways) -> tuple[list[str], list[str]]:
    """Operators of another standard that can become this one alone, and those that it is one among others of."""
    alone = [name for name, way in ways.items() if operator in way["alone"]]
    among = [name for name, way in ways.items() if operator in way["among"]]
    return alone, [name for name in among if name not in alone]


def webnn(folder: Path) -> Ways:
    """Those of WebNN's conformance cases that are of one operator."""
    from webnn_lowering import operators_of
    from webnn_lowering.case import cases

    found: dict[str, set[frozenset[str]]] = {}
    for case in cases(folder):
        if len(case["operators"]) == 1:
            found.setdefault(case["operators"][0]["name"], set()).add(frozenset(operators_of(case)))
    return _sorted(found)


class _Collector:
    """A plugin of pytest's that keeps the report of each node that a session traces."""

    def __init__(self) -> None:
        from anydml.frontends.onnx import trace

        self.reports: list[Any] = []
        self._make: Callable[..., Any] = trace.Report
        trace.Report = self  # type: ignore[misc, assignment]

    def __call__(self, *given: Any, **named: Any) -> Any:
        self.reports.append(self._make(*given, **named))
        return self.reports[-1]


def onnx(files: Iterable[Path]) -> Ways:
    """What the nodes in these tests become."""
    import pytest

    collector = _Collector()
    if pytest.main(["-q", "-p", "no:cacheprovider", "-p", "no:xdist", *map(str, files)], plugins=[collector]):
        raise SystemExit("The tests do not pass")
    found: dict[str, set[frozenset[str]]] = {}
    for report in collector.reports:
        if report.operators and not report.refused:
            found.setdefault(report.op, set()).add(frozenset(report.operators))
    return _sorted(found)


def _sorted(found: dict[str, set[frozenset[str]]]) -> Ways:
    return {
        name: {
            "alone": sorted({each for variant in variants if len(variant) == 1 for each in variant}),
            "among": sorted({each for variant in variants if len(variant) > 1 for each in variant}),
        }
        for name, variants in sorted(found.items())
        if any(variants)
    }


def as_text(record: dict[str, Ways]) -> str:
    """As JSON, a line for each operator."""
    parts = []
    for key, ways in record.items():
        rows = ",\n".join(f"    {json.dumps(name)}: {json.dumps(way)}" for name, way in ways.items())
        parts.append(f'  "{key}": {{\n{rows}\n  }}')
    return "{\n" + ",\n".join(parts) + "\n}\n"


def main() -> None:
    from webnn import FOLDER

    if not FOLDER.is_dir():
        raise SystemExit(f"There are no cases of WebNN in {FOLDER}")
    tests = sorted((ROOT / "tests").glob("test_onnx*.py"))
    RECORD.write_text(as_text({"onnx": onnx(tests), "webnn": webnn(FOLDER)}))


if __name__ == "__main__":
    sys.exit(main())
