"""Terminal output: headings, tables, code and progress, as plain text or, on a terminal that has it, with rich."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from shutil import get_terminal_size
from time import perf_counter
from typing import Any, NamedTuple, Self, TextIO

NARROW = 72
"""Columns of a terminal below which its own wrapping reads better than a table's."""


class Table(NamedTuple):
    """Rows under a header."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]


class Code(NamedTuple):
    """Lines to be printed as they are."""

    text: str


class Heading(NamedTuple):
    """What opens a section."""

    text: str


Block = str | Table | Code | Heading


def show(page: Sequence[Block], file: TextIO | None = None) -> None:
    """Prints a page: with rich on a terminal where it is installed, as unwrapped text otherwise."""
    file = file or sys.stdout
    if file.isatty() and find_spec("rich") is not None:
        _show_rich(page, file)
    else:
        file.write(plain_text(page))


def plain_text(page: Sequence[Block]) -> str:
    """A page without colours and line breaks."""
    text = ""
    for block in page:
        text += f"{_plain(block)}\n" if isinstance(block, Heading) else f"{_plain(block)}\n\n"
    return text.rstrip() + "\n"


def _plain(block: Block) -> str:
    if isinstance(block, Table):
        return "\n".join(_plain_rows(block))
    return block if isinstance(block, str) else block.text


def _plain_rows(table: Table) -> Iterator[str]:
    rows = [table.header, *table.rows]
    widths = [max(len(row[i]) for row in rows) for i in range(len(table.header))]
    for row in rows:
        yield "  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


class Progress:
    """A progress bar with the time left, which is estimated from the time that the share done has taken.

    On a terminal it is rich's, or one line where rich is missing, and goes when all is done; elsewhere it is lines.

    Args:
        file: where it is shown, such as standard error.
        delay: the seconds that pass before it is shown, as what is done by then needs none.
        between: the least seconds from a line to the next, where it is lines.
    """

    def __init__(self, file: TextIO, delay: float = 0.0, between: float = 0.0) -> None:
        self._file = file
        self._delay = delay
        self._between = between
        self._is_terminal = file.isatty()
        self._start = self._shown = perf_counter()
        self._line = ""
        self._bar: Any = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.clear()

    def step(self, title: str, done: float, total: float) -> None:
        """Tells what is at work, and how much of all is done before it."""
        now = perf_counter()
        if now - self._start < self._delay:
            return
        share = done / total if total else 1.0
        left = f"{duration((now - self._start) * (1 - share) / share)} left" if share else ""
        line = ", ".join(filter(None, [f"{100 * share:3.0f}% {title}", left]))
        if self._is_terminal and find_spec("rich") is not None:
            self._show_bar(title, share, left)
        elif self._is_terminal:
            self._file.write(f"\r\x1b[K{line[: get_terminal_size().columns - 1]}")
        elif line != self._line and now - self._shown >= self._between:
            self._file.write(f"{line}\n")
            self._shown = now
        else:
            return
        self._line = line
        self._file.flush()

    def clear(self) -> None:
        """Takes it from the terminal, for others to print there; the next step shows it again."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None
        elif self._is_terminal and self._line:
            self._file.write("\r\x1b[K")
            self._file.flush()
        self._line = self._line if not self._is_terminal else ""

    def _show_bar(self, title: str, share: float, left: str) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

        if self._bar is None:
            self._bar = Progress(
                TextColumn("{task.description}", markup=False),
                BarColumn(),
                TaskProgressColumn(),
                TextColumn("{task.fields[left]}"),
                console=Console(file=self._file),
                # No thread that draws, as it would disturb what is measured; and what is printed is no part of it.
                auto_refresh=False,
                transient=True,
                redirect_stdout=False,
                redirect_stderr=False,
            )
            self._bar.add_task(title, total=1.0, left=left)
            self._bar.start()
        self._bar.update(self._bar.task_ids[0], description=title, completed=share, left=left, refresh=True)


def duration(seconds: float) -> str:
    """A time as one says it.

    >>> duration(8.4), duration(130), duration(3900)
    ('8 s', '2 min 10 s', '1 h 5 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def _show_rich(page: Sequence[Block], file: TextIO) -> None:
    from rich import box
    from rich.console import Console
    from rich.padding import Padding
    from rich.table import Table as RichTable
    from rich.text import Text

    console = Console(file=file, highlight=False)
    if console.width < NARROW:
        file.write(plain_text(page))
        return
    for i, block in enumerate(page):
        if i and not isinstance(page[i - 1], Heading):
            console.print()
        if isinstance(block, Heading):
            console.print(Text(block.text, style="bold"))
        elif isinstance(block, Code):
            console.print(Text(block.text), soft_wrap=True)
        elif isinstance(block, Table):
            table = RichTable(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False)
            for title in block.header:
                # Names stay whole; sentences and lists, which stand in the last column, are what is wrapped.
                table.add_column(title, overflow="fold", no_wrap=title != block.header[-1])
            for row in block.rows:
                table.add_row(*map(Text, row))
            console.print(Padding(table, (0, 2)))
        else:
            console.print(Text(block))
