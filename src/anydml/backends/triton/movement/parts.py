"""In which parts runs of bytes are copied by words."""

from __future__ import annotations

WORD = 8
"""Bytes of a word."""
COLUMNS, WASTE = (1024, 512, 256, 128, 64), 1.15
"""Words of a part of a run, the most that leave few threads idle."""


def parts_of(run: int) -> tuple[int, int]:
    """The words of a part of a run of so many bytes, and the number of parts."""
    words = max(-(-run // WORD), 1)
    columns = next((size for size in COLUMNS if -(-words // size) * size <= WASTE * words), COLUMNS[-1])
    while columns > 1 and columns // 2 >= words:
        columns //= 2
    return columns, -(-words // columns)
