"""What was measured and recorded in `docs`: pages as ``anydml bench`` prints them, what its ``--json`` writes, and of
charts that it drew the medians and ends of each line."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from anydml.bench import plot
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
        spans: of us and of each library the least and the largest ratio, where a row stands for several cases.
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
    spans: dict[str, tuple[float, float]] = field(default_factory=dict)

    @property
    def operators(self) -> list[str]:
        """The operators that are measured; of a kind, those whose name without a prefix the case begins with."""
        if self.group in OPERATORS:
            return [self.group]
        word = re.split(r"[\s,(]", self.case, maxsplit=1)[0]
        names = [word, f"ELEMENT_WISE_{word}", f"ACTIVATION_{word}", f"{self.group}_{word}"]
        return [name for name in dict.fromkeys(names) if name in OPERATORS]

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
    told = {run.path.stem for run in found}
    found += [_from_chart(path) for path in sorted(folder.glob("*.svg")) if path.stem not in told]
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


_SVG = "{http://www.w3.org/2000/svg}"
_LOW, _HIGH = 0.4, 400.0
"""Of the charts' logarithmic axis."""


def _from_chart(path: Path) -> Run:
    """A row for each line of cases in each panel, of what ``anydml bench --plot`` drew."""
    figure = ElementTree.parse(path).getroot()
    heads = [text.text or "" for text in figure.iter(f"{_SVG}text") if "Time by that" in (text.text or "")]
    machine = [text.text or "" for text in figure.iter(f"{_SVG}text") if "tensors of" in (text.text or "")]
    panels = [each for each in figure.iter(f"{_SVG}g") if each.get("id", "").startswith("axes_")]
    return Run(path, [*machine, *heads], [row for panel in panels for row in _rows_of_panel(panel)])


def _rows_of_panel(panel: ElementTree.Element) -> Iterator[Row]:
    parts = {part.get("id", ""): part for part in panel}
    _, axis, *_ = [*(part for name, part in parts.items() if name.startswith("matplotlib.axis_")), None, None]
    titles = [text for name, part in parts.items() if name.startswith("text_") for text in part.iter(f"{_SVG}text")]
    frame = next((_points(each.get("d", "")) for each in panel.iter(f"{_SVG}path")), [])
    if axis is None or not titles or not frame:
        return
    left, right = min(x for x, _ in frame), max(x for x, _ in frame)
    ticks = [text for text in axis.iter(f"{_SVG}text") if text.text]
    # A text's own y is that of its baseline, a third of its height below the middle.
    cells = {text.text or "": float(text.get("y", 0)) - 3 for text in ticks}
    names = {plot.OURS: "anydml", **{colour: name for name, (_, colour) in plot.PEERS.items()}}

    def ratio(x: float) -> float:
        return _LOW * (_HIGH / _LOW) ** ((x - left) / (right - left))

    spans: dict[str, dict[str, tuple[float, float]]] = {cell: {} for cell in cells}
    medians: dict[str, dict[str, float]] = {cell: {} for cell in cells}
    limits: dict[str, float] = {}

    def nearest(y: float) -> str:
        return min(cells, key=lambda cell: abs(cells[cell] - y))

    for name, part in parts.items():
        shapes = [*part.iter(f"{_SVG}path"), *part.iter(f"{_SVG}use")]
        colours = [
            found[1] for each in shapes if (found := re.search(r"(?:stroke|fill): (#\w+)", each.get("style", "")))
        ]
        who = names.get(colours[0]) if colours else None
        if name.startswith("LineCollection") and shapes:
            (x1, y1), (x2, y2) = _points(shapes[0].get("d", ""))
            cell = nearest((y1 + y2) / 2)
            if who is not None and y1 == y2:
                spans[cell][who] = ratio(x1), ratio(x2)
            elif x1 == x2:
                limits[cell] = ratio(x1)
        elif name.startswith("PathCollection") and who is not None:
            (mark,) = part.iter(f"{_SVG}use")
            medians[nearest(float(mark.get("y", 0)))][who] = ratio(float(mark.get("x", 0)))
    for cell, found in medians.items():
        if "anydml" in found:
            ours = found.pop("anydml")
            size, verdict = "", "ok"
            yield Row(titles[-1].text or "", cell, "", size, "", ours, limits.get(cell), found, verdict, spans[cell])


def _points(path: str) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in re.findall(r"[ML] ([-\d.]+) ([-\d.]+)", path)]


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
    )
