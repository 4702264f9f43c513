"""Terminal output: headings, tables and code, printed as plain text or, on a terminal that has it, with rich."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from typing import NamedTuple, TextIO

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
