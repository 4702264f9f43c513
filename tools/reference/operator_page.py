"""The page of an operator, all of it from its specification, its function, and the engines."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from importlib import import_module
from importlib.util import find_spec
from typing import Any, NamedTuple

from anydml.backends.base import Declined
from anydml.backends.torch import lowering as calls
from anydml.backends.triton.engine import KERNELS
from anydml.cli import pages
from anydml.cli.catalogue import NATIVE
from anydml.draw import draw_operator
from anydml.functions import ALIASES, function_of, load
from anydml.operators import OPERATORS, Trait, spec
from anydml.operators.schema import OperatorSpec, SupportTable

from . import charts, lowered, results
from .examples import as_session
from .markup import block, code, documentation, html, html_table, page_of, text

GPU = {"triton": "Triton", "torch": "PyTorch"}


class Known(NamedTuple):
    """What is read once for all pages.

    Attributes:
        entries: what ``anydml ops --json`` says of each operator.
        ways: see ``lowered.py``.
        runs: what was measured.
    """

    entries: Mapping[str, Mapping[str, Any]]
    ways: Mapping[str, lowered.Ways]
    runs: Sequence[results.Run]


def page(name: str, known: Known) -> str:
    """The page as MyST."""
    found = spec(name)
    paragraphs, sections = pages.docstring(found.desc)
    parts = [
        f"# {name}\n",
        html(_facts(found)),
        *(_paragraph(each, name) for each in paragraphs),
        html(f'<figure class="picture">{_picture(name)}</figure>'),
        "## As a function\n",
        _function(found),
        "## As a desc\n",
        _desc(found, sections["Args"]),
        "What the picture shows, as a program:\n",
        block("pycon", as_session(found)),
        "## Constraints\n",
        _constraints(sections["Constraints"], name),
        *_decisions(found),
        *_support(found),
        "## Engines\n",
        *_engines(found, known.entries[name]),
        "## Measured\n",
        *_measured(name, known.runs),
        "## ONNX and WebNN\n",
        *_lowered(name, known.ways),
        f"Source: {text(sections['Source'][''], name)}\n",
    ]
    return "\n".join(parts)


def _paragraph(plain: str, name: str) -> str:
    """A point of a list remains one."""
    point = re.match(r"(?:- |\d+\. )?", plain)
    assert point is not None
    return f"{point[0]}{text(plain[point.end() :], name, '')}\n"


def summary(found: OperatorSpec) -> str:
    """The first sentence of what an operator does."""
    first = pages.docstring(found.desc)[0][0]
    sentence = re.match(r".+?[.:](?=\s|$)", first)
    return (sentence[0] if sentence else first).rstrip(":.") + "."


def revisions(name: str) -> list[str]:
    """The operators that share a function, this one among them."""
    return [each for each, op in OPERATORS.items() if op.function == OPERATORS[name].function]


def _facts(found: OperatorSpec) -> str:
    op = OPERATORS[found.name]
    traits = [trait.name.lower().replace("_", " ") for trait in Trait if trait in op.traits and trait.name]
    facts = [
        f'<a href="index.html?level={found.support.introduced.number}">since {found.support.introduced.number}</a>',
        f'<a href="index.html?family={op.family}">{op.family.replace("_", " ")}</a>',
        *(f"<span>{trait}</span>" for trait in traits),
        f"<code>DML_OPERATOR_{found.name} = {found.operator_type.value}</code>",
    ]
    return f'<p class="facts">{" ".join(facts)}</p>'


def _picture(name: str) -> str:
    """It stands on the page's own card, and takes the page's colours where that is dark."""
    return draw_operator(name).strip()


# The function and the desc


def _function(found: OperatorSpec) -> str:
    function = load(function_of(found.name))
    shared = revisions(found.name)
    others = [each for each in shared if each != found.name]
    own = "" if shared[0] == found.name else ":no-index:\n"
    body = documentation(inspect.getdoc(function), found.name, "", skip=("Source",))
    entry = f"````{{py:function}} {pages.signature_line(function)}\n:module: anydml\n{own}\n{body}\n````\n"
    aliases = [each for each, family in ALIASES.items() if _aliased(each, family) is function]
    if aliases and not own:
        entry += "".join(
            f"```{{py:function}} {pages.signature_line(function).replace(function.__name__, each, 1)}\n"
            f":module: anydml\n\nAnother name of {{py:func}}`anydml.{function.__name__}`.\n```\n"
            for each in aliases
        )
    if others:
        links = ", ".join(f"[{each}]({page_of(each)})".replace("_", "\\_") for each in others)
        links = re.sub(r"\((.*?)\)", lambda link: link[0].replace("\\_", "_"), links)
        entry += f"\nThe function is also that of {links}: it takes the oldest that does what is asked.\n"
    return entry


def _aliased(name: str, family: str) -> Any:
    return getattr(import_module(f"anydml.functions.{family}"), name)


def _desc(found: OperatorSpec, meanings: Mapping[str, str]) -> str:
    lines = [f"````{{py:class}} {found.desc.__name__}\n:module: anydml\n"]
    for member, words, meaning in pages.members(found, dict(meanings)):
        lines.append(f"{code(member)}\n: *{text(words)}.* {text(meaning, found.name, '')}\n")
    return "\n".join([*lines, "````\n"])


def _constraints(rules: Mapping[str, str], name: str) -> str:
    rows = [
        f'<dt id="{label.lower()}"><a href="#{label.lower()}">({label})</a></dt><dd>{_in_html(rule)}</dd>'
        for label, rule in rules.items()
    ]
    return html(f'<dl class="rules">{"".join(rows)}</dl>')


def _in_html(plain: str) -> str:
    return re.sub(r"``?([^`]+)``?", r"<code>\1</code>", escape(plain, quote=False))


def _decisions(found: OperatorSpec) -> Iterator[str]:
    _, *taken = [*pages.decisions(found)] or [None]
    if taken:
        yield "## Decisions\n"
        yield from (_paragraph(str(each), found.name) for each in taken)


# What is supported


def _support(found: OperatorSpec) -> Iterator[str]:
    for condition, rows in pages.support_tables(found):
        yield f"## Support{', ' * bool(condition)}{text(condition)}\n"
        yield _support_table(rows)


def _support_table(found: SupportTable) -> str:
    """A table for each feature level, newest first."""
    parts = []
    for level, rows in found.levels:
        lines = []
        for tensor, row in rows.items():
            low, high = row.dimension_counts[0], row.dimension_counts[-1]
            counts = str(low) if low == high else f"{low} to {high}"
            types = " ".join(f"<code>{each.name}</code>" for each in row.data_types)
            lines.append((f"<code>{tensor}</code>", row.kind, counts, types))
        number = level.number
        parts.append(f'<p class="level" id="level-{number.replace(".", "-")}">Feature level {number} and above</p>')
        titles = ("Tensor", "Kind", "Dimensions", "Data types")
        made = html_table(titles, lines, "support stacked")
        parts.append(made.removeprefix("```{raw} html\n").removesuffix("\n```\n"))
    return html("\n".join(parts))


# Who serves it


def gpu_engines(found: OperatorSpec) -> list[str]:
    """What serves an operator on GPUs, by the engine's own tables: kernels first."""
    op = OPERATORS[found.name]
    kernels = found.pointwise is not None or found.name in KERNELS
    own = "movement" if Trait.MOVEMENT in op.traits else op.family
    module = calls.MODULES.get(op.family, own)
    by_calls = find_spec(f".{module}", calls.__name__) is not None
    return [GPU["triton"]] * kernels + [GPU["torch"]] * by_calls


def cpu_engines(entry: Mapping[str, Any]) -> list[str]:
    """The engines of the device "cpu" that serve any type of any tensor."""
    return sorted({each for types in entry["engines"].values() for names in types.values() for each in names})


def _engines(found: OperatorSpec, entry: Mapping[str, Any]) -> Iterator[str]:
    rows = []
    for tensor, types in entry["engines"].items():
        by_engine: dict[str, list[str]] = {}
        for data_type, names in types.items():
            by_engine.setdefault(", ".join(names), []).append(data_type)
        for names, each in by_engine.items():
            shown = " ".join(f"<code>{one}</code>" for one in each)
            rows.append((f"<code>{tensor}</code>", names.replace(NATIVE, "native code"), shown))
    yield "On the CPU, by the types of each tensor:\n"
    yield html_table(("Tensor", "Served by", "Data types"), rows, "engines stacked")
    described = []
    for engine, answer in pages.answers(found):
        said = f"declines: {answer.reason}" if isinstance(answer, Declined) else answer.description
        described.append(f"- {code(engine)}: {text(said)}")
    yield "What each engine says to the example above, on the machine that wrote this page:\n"
    yield "\n".join(described) + "\n"
    kernels, *also = gpu_engines(found) or [""]
    if kernels == GPU["triton"]:
        behind = "; what these decline are calls of PyTorch" * bool(also)
        yield f"On GPUs kernels of Triton serve it{behind}.\n"
    elif kernels:
        yield "On GPUs calls of PyTorch serve it.\n"


def _measured(name: str, runs: Sequence[results.Run]) -> Iterator[str]:
    there = results.rows_of(name, runs)
    if not there:
        yield "Nothing is recorded of its speed. [Tuning](../inside/tuning.md) tells how to measure.\n"
    for run, rows in there:
        yield charts.section(run, rows)
    if there:
        yield "[All that is recorded](../benchmarks.md), and how it is measured.\n"


def _lowered(name: str, ways: Mapping[str, lowered.Ways]) -> Iterator[str]:
    said = False
    for standard, title in (("onnx", "ONNX"), ("webnn", "WebNN")):
        alone, among = lowered.lowered_to(name, ways[standard])
        rows = []
        if alone:
            rows.append(("becomes this operator", ", ".join(map(code, alone))))
        if among:
            rows.append(("becomes several, of which it is one", ", ".join(map(code, among))))
        for words, names in rows:
            said = True
            yield f"- {title}, {words}: {names}"
    yield "" if said else "No operator of ONNX or WebNN that the tests have becomes this one."
    yield ""
