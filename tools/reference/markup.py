"""Docstrings as MyST: what is plain text in Python is escaped, code and references are kept."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator, Sequence
from html import escape

from anydml.operators import OPERATORS

_CODE = re.compile(r":(?:\w+:)?(?:class|func|mod|meth|data):`~?([^`]+)`|``(.+?)``|`([^`\n]+)`", re.DOTALL)
_SPECIAL = re.compile(r"([\\`*_\[\]<>|{}#~$])")
_LINE_START = re.compile(r"^(\s*\d*)([-+]|(?<=\d)[.)]|:::+)(?=\s|$)", re.MULTILINE)
_OPERATOR = re.compile(rf"\b({'|'.join(sorted(OPERATORS, key=len, reverse=True))})\b")


def text(plain: str, own: str = "", folder: str | None = None) -> str:
    """A paragraph of a docstring.

    Args:
        plain: the paragraph.
        own: the operator whose page it is on, which needs no link.
        folder: the path of the operators' pages from this one; None where their names are to be no links.
    """
    parts, position, linked = [], 0, {own}
    for found in _CODE.finditer(plain):
        parts += [_escaped(plain[position : found.start()], linked, folder), _code(found)]
        position = found.end()
    parts.append(_escaped(plain[position:], linked, folder))
    return "".join(parts)


def _escaped(plain: str, linked: set[str], folder: str | None) -> str:
    """With a link to each operator at its first place."""

    def link(name: str) -> str:
        shown = _SPECIAL.sub(r"\\\1", name)
        if folder is None or name in linked:
            return shown
        linked.add(name)
        return f"[{shown}]({page_of(name, folder)})"

    # Names stand at odd places.
    return "".join(link(each) if i % 2 else _plain(each) for i, each in enumerate(_OPERATOR.split(plain)))


def _plain(each: str) -> str:
    return _LINE_START.sub(r"\1\\\2", _SPECIAL.sub(r"\\\1", each)).replace("&", "&amp;")


def _code(found: re.Match[str]) -> str:
    if found[1] is not None:
        target = found[1] if found[1].startswith(("anydml.", "pydirectml.")) else ""
        shown = found[1].rpartition(".")[2]
        return f"{{py:obj}}`{shown} <{target}>`" if target else f"`{found[1]}`"
    return code(" ".join((found[2] or found[3]).split()))


def code(value: str) -> str:
    fence = "``" if "`" in value else "`"
    space = " " if value.startswith("`") or value.endswith("`") else ""
    return f"{fence}{space}{value}{space}{fence}"


def page_of(operator: str, folder: str = "") -> str:
    """The file of an operator's page."""
    return f"{folder}{operator.lower()}.md"


def block(language: str, body: str) -> str:
    return f"```{language}\n{body.rstrip()}\n```\n"


def table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Of cells that are MyST already."""
    lines = [titles, ["---"] * len(titles), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def html_table(titles: Sequence[str], rows: Iterable[Sequence[str]], kind: str) -> str:
    """Of cells that are HTML already; each knows its title, for screens that have no room for columns."""
    head = "".join(f'<th scope="col">{escape(each)}</th>' for each in titles)
    body = ""
    for row in rows:
        cells = zip(titles, row, strict=True)
        body += f"<tr>{''.join(f'<td data-title={title!r}>{cell}</td>' for title, cell in cells)}</tr>\n"
    return html(f'<table class="table {kind}"><thead><tr>{head}</tr></thead><tbody>\n{body}</tbody></table>')


def html(body: str) -> str:
    return f"```{{raw}} html\n{body}\n```\n"


def documentation(docstring: str | None, own: str = "", folder: str | None = None, skip: Sequence[str] = ()) -> str:
    """A whole docstring: paragraphs, lists, sections of arguments, examples.

    Args:
        docstring: as it stands in the source.
        own: see :func:`text`.
        folder: likewise.
        skip: titles of sections that are told elsewhere.
    """
    return "\n".join(_sections(inspect.cleandoc(docstring or ""), own, folder, skip))


_TITLES = {
    "Args": ":param {}:",
    "Attributes": ":ivar {}:",
    "Raises": ":raises {}:",
    "Returns": ":returns:",
    "Yields": ":returns:",
    "Constraints": "",
    "Source": "",
}


def _sections(cleaned: str, own: str, folder: str | None, skip: Sequence[str]) -> Iterator[str]:
    parts = re.split(rf"^({'|'.join(_TITLES)}):(?:\n| )", cleaned, flags=re.MULTILINE)
    yield from _body(parts[0], own, folder)
    for title, body in zip(parts[1::2], parts[2::2], strict=True):
        # What is indented belongs to the section, and what comes behind does not.
        inside, behind = _section(body)
        if title not in skip:
            yield from _fields(title, inside, own, folder)
        yield from _body(behind, own, folder)


def _section(body: str) -> tuple[str, str]:
    if not body.startswith(" "):
        first, _, rest = body.partition("\n\n")
        return first, rest
    found = re.search(r"^\S", body, re.MULTILINE)
    return (body[: found.start()], body[found.start() :]) if found else (body, "")


def _fields(title: str, body: str, own: str, folder: str | None) -> Iterator[str]:
    if title == "Source":
        yield f"Source: {text(' '.join(body.split()), own, folder)}\n"
        return
    cleaned = inspect.cleandoc("\n" + body)
    if title in ("Returns", "Yields"):
        yield f":returns: {text(' '.join(cleaned.split()), own, folder)}\n"
        return
    fields = []
    for entry in re.split(r"^(?=\S)", cleaned, flags=re.MULTILINE):
        if not entry.strip():
            continue
        name, colon, meaning = entry.partition(":")
        if not colon or not re.fullmatch(r"[\w, *.]+", name):
            fields.append(f"{_TITLES[title].format('')} {text(' '.join(entry.split()), own, folder)}".strip())
            continue
        # Several names before one colon are several fields with one meaning.
        for each in name.split(","):
            field = _TITLES[title].format(each.strip())
            fields.append(f"{field} {text(' '.join(meaning.split()), own, folder)}")
    yield "\n".join(each for each in fields if each) + "\n"


def _body(body: str, own: str, folder: str | None) -> Iterator[str]:
    """Paragraphs, lists, tables of reStructuredText as they stand, and examples."""
    for paragraph in re.split(r"\n\s*\n", body.strip("\n")):
        bare = inspect.cleandoc("\n" + paragraph)
        if not bare:
            continue
        if bare.startswith(">>>"):
            yield block("pycon", bare)
        elif bare.startswith("===") or paragraph.startswith("    "):
            yield block("text", bare)
        elif bare.startswith("- "):
            for point in re.split(r"\n(?=- )", bare):
                yield f"- {text(' '.join(point[2:].split()), own, folder)}"
            yield ""
        else:
            words = bare.removesuffix("::")
            yield text(" ".join(words.split()), own, folder) + (":" if bare.endswith("::") else "") + "\n"
