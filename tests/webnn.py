"""Runs WebNN's conformance cases, which lie in a folder as JSON, on every engine, and counts.

``PYTHONPATH=src python tests/webnn.py FOLDER`` prints a row for each of WebNN's operators and for each of DirectML's
that they are made of, then what does not pass; with ``--record`` it also writes these counts to ``webnn.json``, which
the status page shows.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from anydml import Device
from anydml.core.enums import OperatorType
from webnn_lowering import computed, operators_of
from webnn_lowering.case import Case, cases, differences

FOLDER = Path(os.environ.get("ANYDML_WEBNN_CASES") or Path(__file__).parents[2] / "shared" / "webnn")
"""They are the suite's own, and not part of this project."""

RECORDED = Path(__file__).parent / "webnn.json"
"""What was counted at last, and why the misses are some."""

ENGINES = ("reference", "cpu")


def outcome(case: Case) -> str | None:
    """What is wrong; None where a case passes on every engine."""
    for engine in ENGINES:
        try:
            wrong = [*differences(case, computed(Device(engine), case))]
        except Exception as problem:  # that a case cannot be run is what it counts as
            wrong = [f"{type(problem).__name__}: {problem}"]
        if wrong:
            return f"{engine}: {'; '.join(wrong)}"
    return None


def operator_of(case: Case) -> str:
    """The row that a case counts in."""
    names = [operator["name"] for operator in case["operators"]]
    return names[0] if len(names) == 1 else "subgraphs"


def counted(found: Sequence[tuple[Case, str | None]]) -> dict[str, Any]:
    """How many cases pass, of how many: of all, by WebNN's operator, and by each of DirectML's in their graphs."""
    rows: dict[str, dict[str, list[int]]] = {"webnn": {}, "operators": {}}
    for case, wrong in found:
        keys = [("webnn", operator_of(case)), *(("operators", name) for name in operators_of(case))]
        for table, name in keys:
            row = rows[table].setdefault(name, [0, 0])
            row[0] += wrong is None
            row[1] += 1
    order = [operator.name for operator in OperatorType]
    return {
        "all": [sum(wrong is None for _, wrong in found), len(found)],
        "webnn": dict(sorted(rows["webnn"].items())),
        "operators": dict(sorted(rows["operators"].items(), key=lambda row: order.index(row[0]))),
    }


def as_text(record: dict[str, Any]) -> str:
    """As JSON, a line for each row."""
    lines = []
    for key, value in record.items():
        if isinstance(value, dict):
            rows = ",\n".join(f"    {json.dumps(name)}: {json.dumps(row)}" for name, row in value.items())
            lines.append(f'  "{key}": {{\n{rows}\n  }}')
        else:
            lines.append(f'  "{key}": {json.dumps(value)}')
    return "{\n" + ",\n".join(lines) + "\n}\n"


def main() -> None:
    parser = argparse.ArgumentParser(description="Run WebNN's conformance cases on every engine, and count.")
    parser.add_argument("folder", nargs="?", type=Path, default=FOLDER, help="of JSON (default: %(default)s)")
    parser.add_argument("--record", action="store_true", help=f"write the counts to {RECORDED.name}")
    arguments = parser.parse_args()
    if not arguments.folder.is_dir():
        parser.error(f"{arguments.folder} is no folder; cases are JSON files in one, which is this program's argument")
    found = [(case, outcome(case)) for case in cases(arguments.folder)]
    counts = counted(found)
    for title, rows in (("WebNN's operator", counts["webnn"]), ("DirectML's in graphs", counts["operators"])):
        print(f"{title:45}{'cases':>8}{'pass':>8}{'miss':>8}")
        for name, (passing, count) in rows.items():
            print(f"{name:45}{count:8}{passing:8}{count - passing or '':>8}")
        print()
    misses = {case["name"]: wrong for case, wrong in found if wrong is not None}
    for name, wrong in misses.items():
        print(f"miss: {name}\n    {wrong}")
    print("{} of {} cases pass".format(*counts["all"]))
    if arguments.record:
        known = json.loads(RECORDED.read_text())["misses"] if RECORDED.exists() else {}
        RECORDED.write_text(as_text({**counts, "misses": {name: known.get(name, "") for name in misses}}))


if __name__ == "__main__":
    main()
