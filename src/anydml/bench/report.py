"""What was measured, as a page and as JSON."""

from __future__ import annotations

import json
import math
import statistics
from typing import Any

from ..terminal import Block, Heading, Table
from . import COMPILE_LIMIT, COMPUTING_FASTER, DISPATCH_LIMIT, FASTER, Result, Row
from .cases import format_size
from .odd_shapes import CELLS, ODD
from .places import count_of


def page(result: Result) -> list[Block]:
    """The machine, a table for each operator, accuracy and small calls."""
    blocks: list[Block] = [_machine(result), *result.problems]
    if result.interrupted:
        blocks.append("Interrupted: what follows was measured until then.")
    blocks += _sample(result)
    if any(row.cell in CELLS for row in result.rows):
        seed = result.header["shapes"]
        blocks += [Heading(f"The worst of shapes at random: --seed {seed} has them again"), _worst(result.rows)]
    for operator in dict.fromkeys(row.operator for row in result.rows):
        rows = [row for row in result.rows if row.operator == operator]
        blocks += [Heading(operator), _table(rows), *_unmeasured(result, operator)]
    if result.accuracy:
        blocks += [Heading("Accuracy of running sums, in units in the last place"), _accuracy(result)]
    if result.small:
        blocks += [Heading("A call with 12 elements"), _small(result)]
    if result.compiling:
        blocks += [Heading("The longest first run, with nothing compiled before"), _compiling(result)]
    blocks.append(_summary(result))
    return blocks


def _worst(rows: list[Row]) -> Table:
    """Of each cell: the median has the limit of even sizes."""
    lines = []
    for cell in CELLS:
        found = sorted((row for row in rows if row.cell == cell and row.limit), key=lambda row: row.ratio)
        if found:
            worst, middle = found[-1], statistics.median(row.ratio for row in found)
            limit = worst.limit or 0.0
            is_missed = worst.ratio > limit or middle > limit / ODD or any(row.error for row in found)
            numbers = f"{middle:.2f}", f"{limit / ODD:.2f}", f"{worst.ratio:.2f}", f"{limit:.2f}"
            lines.append(
                (cell, str(len(found)), *numbers, "MISS" if is_missed else "ok", f"{worst.dtype} {worst.name}")
            )
    return Table(("shapes", "rows", "median", "limit", "worst", "limit", "", "case"), lines)


def _sample(result: Result) -> list[Block]:
    """How to measure the same rows again, and how many no time was left for."""
    if result.seed is None:
        return []
    left = [
        f"{count_of(count, 'row')} {'was' if count == 1 else 'were'} not reached"
        + (f" on {count_of(threads, 'thread')}" if threads else "")
        for threads, count in result.left.items()
    ]
    return ["; ".join([f"Rows at random: --seed {result.seed} takes them in the same order again", *left]) + "."]


_TITLES = ("type", "case", "size", "threads", "time", "ratio", "limit", "", "best peer", "its ratio", "yardstick")
_ERRORS = "errors in units in the last place"
_ENGINE, _OTHER_ENGINES = "engine", ("torch", "reference")
"""Told where some rows have no kernel of the compiled module."""
_OF_COPIES = ("ratio", "limit", "its ratio", "yardstick")
_OF_PRODUCTS = ("beside its time", "10^9 products/s", "beside FLOAT32")
"""Columns of what computes for longer than memory takes, where it says little how long a copy takes."""


def _table(rows: list[Row]) -> Table:
    titles: tuple[str, ...] = *_TITLES[:9], _OF_PRODUCTS[0], *_TITLES[9:], *_OF_PRODUCTS[1:], _ENGINE, _ERRORS
    table = [titles, *(_cells(row) for row in rows)]
    left_out = ["threads"] * (not any(row.threads for row in rows)) + [_ERRORS] * (not any(row.errors for row in rows))
    left_out += [] if any(row.engine in _OTHER_ENGINES for row in rows) else [_ENGINE]
    left_out += _OF_COPIES if all(row.products for row in rows) else []
    left_out += [] if any(row.products for row in rows) else _OF_PRODUCTS
    shown = [column for column, title in enumerate(table[0]) if title not in left_out]
    titles, *lines = [tuple(cells[column] for column in shown) for cells in table]
    return Table(titles, lines)


def _errors(row: Row) -> str:
    return ", ".join(f"{name} {error:.2f}" for name, error in row.errors.items())


def _cells(row: Row) -> tuple[str, ...]:
    start = (row.dtype, row.name, format_size(row.size), str(row.threads))
    if row.error:
        return (*start, "", "", "", row.verdict, row.error, *[""] * 5, row.engine, _errors(row))
    name, ratio = row.best_peer or ("", 0.0)
    limit = "" if row.limit is None else f"{row.limit:.2f}"
    if row.limit is not None and row.plain_ratio is not None:
        limit += f" ({row.limit / row.plain_ratio:.1f} x plain)"
    unsteady = "" if row.steady else f" (unsteady, {row.spread:.0%})"
    return (
        *start,
        _time(row.seconds),
        f"{row.ratio:.2f}",
        limit,
        row.verdict,
        name,
        f"{row.ratio / ratio:.2f}" if name and row.products else "",
        f"{ratio:.2f}" if name else "",
        f"{row.yardstick} {_time(row.yardstick_seconds)}{unsteady}",
        f"{row.products / row.seconds / 1e9:.1f}" if row.products else "",
        _beside_plain(row) if row.products else "",
        row.engine,
        _errors(row),
    )


def _beside_plain(row: Row) -> str:
    """How many times FLOAT32's time FLOAT16 takes, and how many it may."""
    if row.plain_ratio is None or row.limit is None:
        return ""
    return f"{row.ratio / row.plain_ratio:.2f} ({row.limit / row.plain_ratio:.2f})"


def _unmeasured(result: Result, operator: str) -> list[str]:
    """Which peers are not in how many rows of an operator, and why: a line for each reason and those that it is of."""
    rows: dict[tuple[str, str], list[str]] = {}
    for row in result.rows:
        if row.operator == operator:
            for name, reason in row.unmeasured.items():
                place = f"{row.dtype} {row.name}"
                rows.setdefault((name, reason), []).append(place)
    peers: dict[tuple[str, str], list[str]] = {}
    for (name, reason), places in sorted(rows.items()):
        peers.setdefault((_places(places), reason), []).append(name)
    lines = [f"{', '.join(names)}, not in {places}: {reason}" for (places, reason), names in peers.items()]
    return ["\n".join(lines)] if lines else []


def _places(places: list[str]) -> str:
    """The cases where they are few, else how many rows."""
    different = list(dict.fromkeys(places))
    return ", ".join(different) if len(different) <= 2 else f"{len(places)} rows, such as {different[0]}"


def _time(seconds: float) -> str:
    return f"{seconds * 1e3:.2f} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.1f} us"


def _machine(result: Result) -> str:
    header = result.header
    versions = ", ".join(f"{name} {version}" for name, version in header["peers"].items())
    absent = "".join(f"\nabsent: {name} ({problem})" for name, problem in header["absent"].items())
    counts, build = "", f", {header['build']}"
    if header["threads"]:
        counts, build = f"{count_of(header['cores'], 'core')}, {count_of(header['threads'], 'thread')}, ", ""
        if header["speedup"] is not None:
            counts += f"which compute {header['speedup']:.1f} times as much as one, "
    return (
        f"{header['processor']}, {counts}{header['system']}, Python {header['python']}\n"
        f"anydml {header['anydml']} on {header['device']}{build}, beside {versions}{absent}\n"
        "ratio: time by that of the fastest copy of as many bytes in the same run; smaller is better\n"
        "products: multiplications with their additions; what consists of them is measured beside the best peer's time"
    )


def _small(result: Result) -> Table:
    """On a GPU a dispatch has a limit beside the library's call, which is the last."""
    *_, theirs = result.small.values()
    rows = []
    for name, seconds in result.small.items():
        ratio, cells = seconds / theirs, ("", "")
        if name == "compiled.dispatch" and not result.header["threads"]:
            cells = f"{DISPATCH_LIMIT:.2f}", "MISS" if ratio > DISPATCH_LIMIT else "ok"
        rows.append((name, f"{seconds * 1e6:.2f} us", f"{ratio:.2f}", *cells))
    return Table(("call", "time", "ratio to the last", "limit", ""), rows)


def _compiling(result: Result) -> Table:
    rows = [
        (name, f"{seconds:.2f} s", f"{COMPILE_LIMIT:.2f} s", "MISS" if seconds > COMPILE_LIMIT else "ok")
        for name, seconds in result.compiling.items()
    ]
    return Table(("operator", "time", "limit", ""), rows)


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
    words = [word for row in result.rows for word in row.verdict.split()]
    unsteady = sum(not row.steady for row in result.rows)
    rows = count_of(len(result.rows), "row")
    return (
        f"{rows} in {result.seconds / 60:.1f} minutes: {words.count('ok')} ok, {words.count('MISS')} "
        f"MISS, {words.count('WRONG')} WRONG; {words.count('BEATEN')} BEATEN by a peer that is faster by more than "
        f"{FASTER - 1:.0%}, of products {COMPUTING_FASTER - 1:.0%}"
        + (f"; in {unsteady} the yardstick stayed unsteady" if unsteady else "")
    )


def as_json(result: Result) -> str:
    return json.dumps(_finite(result.as_json()), indent=2) + "\n"


def from_json(text: str) -> Result:
    """What `as_json` has made of a result; ratios that are not finite are numbers again."""
    found = json.loads(text)
    rows = [{key: value for key, value in row.items() if key in Row.__dataclass_fields__} for row in found["rows"]]
    for row in rows:
        row["peers"] = {name: float(ratio) for name, ratio in row["peers"].items()}
        row["errors"] = {name: float(error) for name, error in row["errors"].items()}
    left = {int(threads): count for threads, count in found["left"].items()}
    return Result(**{**found, "rows": [Row(**row) for row in rows], "left": left})


def _finite(value: Any) -> Any:
    """JSON has no infinity: it becomes a string."""
    if isinstance(value, dict):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(each) for each in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
