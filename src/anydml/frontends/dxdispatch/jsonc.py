"""JSON as people write it: with ``//`` and ``/* */`` comments and with trailing commas.

Both are overwritten with spaces, so that every position stays that of the text; Python's json reads the rest. Whatever
it says is rule (M2) of ``model.py``.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable
from typing import Any, NoReturn

from ...core.errors import refuse

MAX_DEPTH = 64
"""How deep lists and objects may nest; a model needs a tenth of it."""

_MAX_DIGITS = 400
"""An integer of more digits is beyond every double; Python's own limit of digits would raise."""

# A string, closed or not; a comment, closed or not; a bracket. Each takes linear time, whatever follows.
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*+"?|//[^\n]*|/\*.*?(?:\*/|\Z)|[\[{\]}]', re.DOTALL)
_COMMA = re.compile(r'"(?:[^"\\]|\\.)*+"?|,(?=[ \t\r\n]*+[\]}])', re.DOTALL)
_SURROGATE = re.compile("[\ud800-\udfff]")
_ESCAPES = re.compile(r"\\u[dD][89abAB]..\\u[dD][c-fC-F]..|\\u[dD][89a-fA-F]|\\[^u]|\\u")


class Object(dict[str, Any]):
    """A JSON object, which remembers the keys that it was given more than once."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        self.repeated: tuple[str, ...] = ()
        if len(self) < len(pairs):
            self.repeated = tuple(name for name, count in Counter(name for name, _ in pairs).items() if count > 1)

    def changed(self, pairs: Iterable[tuple[str, Any]]) -> Object:
        """An object of other pairs, which remembers the same."""
        other = Object(list(pairs))
        other.repeated += self.repeated
        return other


class OddNumber:
    """A number that is none in JSON (NaN), or that no double holds (1e999)."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text


def parse(text: str | bytes) -> Any:
    """The value that a text stands for; objects are :class:`Object`, odd numbers :class:`OddNumber`.

    Args:
        text: JSON; bytes in UTF-8. A byte order mark is skipped.

    Raises:
        DMLValueError: (M2), with line, column and the text there.

    >>> parse('[1, /* two */ 2, 1e999,] // done')
    [1, 2, 1e999]
    """
    if isinstance(text, bytes):
        try:
            text = text.decode("utf-8")
        except UnicodeDecodeError as problem:
            line = problem.object.count(b"\n", 0, problem.start) + 1
            found = f"byte 0x{problem.object[problem.start]:02X} ({problem.reason})"
            _refuse(f"line {line}, byte {problem.start} of the file", found, "text in UTF-8")
    text = text.removeprefix("\ufeff")
    lone = _SURROGATE.search(text)
    if lone is not None:
        _refuse_at(text, lone.start(), "both halves of a surrogate pair")
    plain = _without_trailing_commas(_without_comments(text))
    try:
        return json.loads(
            plain,
            object_pairs_hook=Object,
            parse_int=_integer,
            parse_float=_float,
            parse_constant=OddNumber,
        )
    except json.JSONDecodeError as problem:
        _refuse_at(text, problem.pos, f"JSON ({problem.msg})")


def _integer(digits: str) -> int | OddNumber:
    return int(digits) if len(digits) <= _MAX_DIGITS else OddNumber(digits)


def _float(digits: str) -> float | OddNumber:
    value = float(digits)
    return value if abs(value) != float("inf") else OddNumber(digits)


def _without_comments(text: str) -> str:
    depth = 0

    def replace(match: re.Match[str]) -> str:
        nonlocal depth
        token = match[0]
        if token[0] == '"':
            _check_surrogates(text, match)
        elif token[0] == "/":
            if token.startswith("/*") and (len(token) < 4 or not token.endswith("*/")):
                _refuse_at(text, match.start(), "a comment with an end, */")
            return re.sub(r"[^\n]", " ", token)
        else:
            depth += 1 if token in "[{" else -1
            if depth > MAX_DEPTH:
                _refuse_at(text, match.start(), f"at most {MAX_DEPTH} lists and objects in each other")
        return token

    return _TOKEN.sub(replace, text)


def _check_surrogates(text: str, match: re.Match[str]) -> None:
    if "\\u" not in match[0]:
        return
    for escape in _ESCAPES.finditer(match[0]):
        if len(escape[0]) == 4:  # \uD8 and the like, without the other half
            _refuse_at(text, match.start() + escape.start(), "both halves of a surrogate pair")


def _without_trailing_commas(text: str) -> str:
    def replace(match: re.Match[str]) -> str:
        if match[0] != ",":
            return match[0]
        before = match.start() - 1
        while before >= 0 and text[before] in " \t\r\n":
            before -= 1
        follows_value = before >= 0 and text[before] not in "[{,:"
        return " " if follows_value else ","

    return _COMMA.sub(replace, text)


def _refuse_at(text: str, position: int, expected: str) -> NoReturn:
    line = text.count("\n", 0, position) + 1
    column = position - text.rfind("\n", 0, position)
    snippet = text[position : position + 30].partition("\n")[0].rstrip()
    ended = not text[position:].strip()
    _refuse(f"line {line}, column {column}", "the end of the text" if ended else repr(snippet), expected)


def _refuse(where: str, found: str, expected: str) -> NoReturn:
    refuse("", "(M2)", where, found, expected)
