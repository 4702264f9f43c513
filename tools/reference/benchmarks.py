"""The page of benchmarks: a chart for each run and each operator that was measured in it."""

from __future__ import annotations

from collections.abc import Sequence

from anydml.operators import OPERATORS

from . import charts
from .markup import page_of
from .results import Row, Run

HEAD = """\
# Benchmarks

Every time is divided by that of the fastest copy, in the same run, that reads and writes as many bytes, so that 1 is
what memory allows; [tuning](inside/tuning.md) tells what stands in its place where products or reads are what takes the
time. Further left is faster. Point at a mark, and it tells what it is of; where it stands for several cases, it is
their median, and a line goes from the best to the worst. Results are checked before they count, those of other
libraries, too.

`anydml bench` measures all of it on your machine; the README tells [on which CPU](inside/readme.md#how-fast) and
[on which GPU](inside/readme.md#gpus), and when, what follows was measured.
"""


def page(runs: Sequence[Run]) -> str:
    parts = [HEAD]
    for run in runs:
        parts.append(f"## {run.head[0].partition(',')[0]}\n")
        groups: dict[str, list[Row]] = {}
        for row in run.rows:
            groups.setdefault(row.group, []).append(row)
        for group, rows in groups.items():
            name = group.replace("_", "\\_")
            linked = f"[{name}]({page_of(group, 'operators/')})" if group in OPERATORS else name
            parts += [f"### {linked}\n", charts.section(run, rows)]
    measured = {name for run in runs for row in run.rows for name in row.operators}
    left = len(OPERATORS) - len(measured)
    parts.append(f"Nothing is recorded of the other {left} operators.\n" if left else "")
    return "\n".join(parts)
