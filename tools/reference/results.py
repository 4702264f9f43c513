"""What was measured and recorded in `docs`: pages as ``anydml bench`` prints them, and what its ``--json`` writes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from anydml.bench.cases import format_size
from anydml.operators import OPERATORS


@dataclass(frozen=True)
class Row:
    """A case.

    Attributes:
        group: the heading that it stands under: an operator, or a kind of operators.
        case: what is measured.
        dtype: of which type.
        size: of how many bytes, as text.
        time: as text.
        ratio: to the yardstick.
        limit: of the ratio; None where there is none.
        peers: the ratios of other libraries; of a page only the best one's.
        verdict: ok, MISS or BEATEN.
        of_products: whether products take the time, so that the ratio to a copy says little.
    """

    group: str
    case: str
    dtype: str
    size: str
    time: str
    ratio: float
    limit: float | None
    peers: dict[str, float]
    verdict: str
    of_products: bool = False

    @property
    def operators(self) -> list[str]:
        """The operators that are measured; of a kind, those whose name without a prefix the case begins with."""
        if self.group in OPERATORS:
            return [self.group]
        word = re.split(r"[\s,(]", self.case, maxsplit=1)[0]
        names = [word, f"ELEMENT_WISE_{word}", f"ACTIVATION_{word}", f"{self.group}_{word}"]
        return [name for name in names if name in OPERATORS] or [self.group] * (self.group in OPERATORS)

    @property
    def best_peer(self) -> tuple[str, float] | None:
        return min(self.peers.items(), key=lambda each: each[1], default=None)


@dataclass
class Run:
    """One run of the benchmark.

    Attributes:
        path: the file.
        head: the machine and the libraries, in lines.
        rows: what was measured.
    """

    path: Path
    head: list[str]
    rows: list[Row] = field(default_factory=list)

    @property
    def on_gpu(self) -> bool:
        return any(" on cuda" in line or " on xpu" in line for line in self.head)


def runs(folder: Path) -> list[Run]:
    """Those recorded in a folder, of CPUs first."""
    found = [_from_page(path) for path in sorted(folder.glob("*.txt")) if _is_page(path)]
    found += [_from_json(path) for path in sorted(folder.glob("*.json")) if "rows" in json.loads(path.read_text())]
    return sorted(found, key=lambda run: run.on_gpu)


def rows_of(operator: str, every: Sequence[Run]) -> list[tuple[Run, list[Row]]]:
    """The rows of an operator, by run."""
    found = [(run, [row for row in run.rows if operator in row.operators]) for run in every]
    return [(run, rows) for run, rows in found if rows]


def _is_page(path: Path) -> bool:
    return "\nratio: time by that of the fastest copy" in path.read_text()


_CELL = re.compile(r"\s{2,}")
_HEADING = re.compile(r"^[A-Z][A-Z0-9_]+$")


def _from_page(path: Path) -> Run:
    head, _, body = path.read_text().partition("\n\n")
    return Run(path, head.splitlines(), [*_rows_of_page(body)])


def _rows_of_page(body: str) -> Iterator[Row]:
    for part in body.split("\n\n"):
        heading, *lines = part.splitlines()
        if not _HEADING.match(heading) or not lines or "ratio" not in lines[0]:
            continue
        # Columns begin where their titles do; a title of nothing stands behind the limit.
        titles = _CELL.split(lines[0].strip())
        starts = [found.start() for found in re.finditer(r"(?<=\s\s)\S|^\s*\S", lines[0])]
        starts = [start if lines[0][start] != " " else 2 for start in starts]
        for line in lines[1:]:
            ends = [*starts[1:], None]
            cells = [line[start:end].strip() for start, end in zip(starts, ends, strict=True)]
            yield _row(heading, dict(zip(titles, cells, strict=True)))


def _row(group: str, cells: dict[str, str]) -> Row:
    limit, _, verdict = cells["limit"].partition(" ")
    if not limit.replace(".", "").isdigit():
        limit, verdict = "", cells["limit"]
    peer = cells["best peer"]
    return Row(
        group=group,
        case=cells["case"],
        dtype=cells["type"],
        size=cells["size"],
        time=cells["time"],
        ratio=float(cells["ratio"]),
        limit=float(limit) if limit else None,
        peers={peer: float(cells["its ratio"])} if peer else {},
        verdict=verdict.split()[-1] if verdict.split() else "ok",
    )


def _from_json(path: Path) -> Run:
    data = json.loads(path.read_text())
    header = data["header"]
    peers = ", ".join(f"{name} {version}" for name, version in header["peers"].items())
    threads = f", {header['threads']} threads" if header["threads"] else ""
    head = [
        f"{header['processor']}{threads}, {header['system']}, Python {header['python']}",
        f"anydml {header['anydml']} on {header['device']}, beside {peers}",
    ]
    return Run(path, head, [_row_of_json(each) for each in data["rows"] if not each["error"]])


def _row_of_json(row: dict[str, Any]) -> Row:
    seconds = row["seconds"]
    threads = f", {row['threads']} thread{'s' * (row['threads'] != 1)}" if row["threads"] else ""
    return Row(
        group=row["operator"],
        case=row["name"],
        dtype=row["dtype"],
        size=format_size(row["size"]) + threads,
        time=f"{seconds * 1e3:.2f} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.1f} us",
        ratio=row["ratio"],
        limit=row["limit"],
        peers=row["peers"],
        verdict=row["verdict"],
        of_products=bool(row["products"]),
    )
