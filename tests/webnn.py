"""Runs WebNN's conformance cases, which lie in a folder as JSON, on every engine, and counts.

``PYTHONPATH=src python tests/webnn.py FOLDER`` prints a row for each of WebNN's operators, then what does not pass.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from pathlib import Path

from anydml import Device
from webnn_lowering import NotThereYet, computed
from webnn_lowering.case import Case, cases, differences

FOLDER = Path(os.environ.get("ANYDML_WEBNN_CASES") or Path(__file__).parents[2] / "shared" / "webnn")
"""They are the suite's own, and not part of this project."""


ENGINES = ("reference", "cpu")


def outcome(case: Case) -> str | NotThereYet | None:
    """What is wrong, or not there yet; None where a case passes on every engine."""
    for engine in ENGINES:
        try:
            wrong = [*differences(case, computed(Device(engine), case))]
        except NotThereYet as awaited:
            return awaited
        except Exception as problem:  # that a case cannot be run is what it counts as
            wrong = [f"{type(problem).__name__}: {problem}"]
        if wrong:
            return f"{engine}: {'; '.join(wrong)}"
    return None


def operator_of(case: Case) -> str:
    """The row that a case counts in."""
    names = [operator["name"] for operator in case["operators"]]
    return names[0] if len(names) == 1 else "subgraphs"


def main(folder: Path) -> None:
    rows: dict[str, Counter[str]] = {}
    awaited: Counter[str] = Counter()
    misses = []
    for case in cases(folder):
        found = outcome(case)
        row = rows.setdefault(operator_of(case), Counter())
        row["cases"] += 1
        row["pass" if found is None else "not there yet" if isinstance(found, NotThereYet) else "miss"] += 1
        if isinstance(found, NotThereYet):
            awaited[str(found)] += 1
        elif found is not None:
            misses.append(f"{case['name']}\n    {found}")
    heads = ("cases", "pass", "not there yet", "miss")
    print(f"{'operator':24}" + "".join(f"{head:>15}" for head in heads))
    for name, row in sorted(rows.items()):
        print(f"{name:24}" + "".join(f"{row[head] or '':>15}" for head in heads))
    for name, count in sorted(awaited.items()):
        print(f"not there yet: {name}, {count} cases")
    for miss in misses:
        print(f"miss: {miss}")
    counts = sum(rows.values(), Counter())
    print(f"{counts['pass']} of {counts['cases']} cases pass")


if __name__ == "__main__":
    given = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    if not given.is_dir():
        raise SystemExit(f"{given} is no folder; cases are JSON files in one, which is this program's argument")
    main(given)
