"""What was measured, as a page and as JSON."""

from __future__ import annotations

import json
import math
from typing import Any

from ..cli.pages import Block, Heading, Table
from . import Result, Row
from .cases import format_size


def page(result: Result) -> list[Block]:
    """The machine, a table for each operator, accuracy and small calls."""
    blocks: list[Block] = [_machine(result)]
    if result.interrupted:
        blocks.append("Interrupted: what follows was measured until then.")
    for operator in dict.fromkeys(row.operator for row in result.rows):
        rows = [_cells(row) for row in result.rows if row.operator == operator]
        blocks += [Heading(operator), Table(_TITLES, rows)]
    if result.accuracy:
        blocks += [Heading("Accuracy of running sums, in units in the last place"), _accuracy(result)]
    if result.small:
        rows = [(name, f"{seconds * 1e6:.2f} us") for name, seconds in result.small.items()]
        blocks += [Heading("A call with 12 elements"), Table(("call", "time"), rows)]
    blocks.append(_summary(result))
    return blocks


_TITLES = ("type", "case", "size", "threads", "time", "ratio", "limit", "", "best peer", "its ratio", "yardstick")


def _cells(row: Row) -> tuple[str, ...]:
    start = (row.dtype, row.name, format_size(row.size), str(row.threads))
    if row.error:
        return (*start, "", "", f"{row.limit:.2f}", row.verdict, row.error, "", "")
    name, ratio = row.best_peer or ("", 0.0)
    unsteady = "" if row.steady else f" (unsteady, {row.spread:.0%})"
    return (
        *start,
        _time(row.seconds),
        f"{row.ratio:.2f}",
        f"{row.limit:.2f}",
        row.verdict,
        name,
        f"{ratio:.2f}" if name else "",
        f"{row.yardstick} {_time(row.yardstick_seconds)}{unsteady}",
    )


def _time(seconds: float) -> str:
    return f"{seconds * 1e3:.2f} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.1f} us"


def _machine(result: Result) -> str:
    header = result.header
    versions = ", ".join(f"{name} {version}" for name, version in header["peers"].items())
    absent = "".join(f"\nabsent: {name} ({problem})" for name, problem in header["absent"].items())
    return (
        f"{header['processor']}, {header['cores']} cores, {header['threads']} threads, {header['system']}, "
        f"Python {header['python']}\nanydml {header['anydml']} on {header['device']}, beside {versions}{absent}\n"
        "ratio: time by that of the fastest copy of as many bytes in the same run; smaller is better"
    )


def _accuracy(result: Result) -> Table:
    rows = [
        (
            line["dtype"],
            line["range"],
            f"{line['rows']} of {line['row']}",
            line["library"],
            f"{line['worst']:.3g}",
            f"{line['mean']:.3g}",
        )
        for line in result.accuracy
    ]
    return Table(("type", "values in", "rows", "library", "worst", "mean"), rows)


def _summary(result: Result) -> str:
    verdicts = [row.verdict for row in result.rows]
    beaten = sum(bool(row.best_peer and row.best_peer[1] * 1.05 < row.ratio) for row in result.rows if not row.error)
    return (
        f"{len(verdicts)} rows: {verdicts.count('ok')} ok, {verdicts.count('MISS')} MISS, {verdicts.count('WRONG')} "
        f"WRONG; in {beaten} a peer is faster by more than 5%"
    )


def as_json(result: Result) -> str:
    return json.dumps(_finite(result.as_json()), indent=2) + "\n"


def _finite(value: Any) -> Any:
    """JSON has no infinity: it becomes a string."""
    if isinstance(value, dict):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(each) for each in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
