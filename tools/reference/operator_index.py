"""The index of operators: a table that a script filters, and that is whole without one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape
from typing import Any

from anydml.core.enums import FeatureLevel, TensorDataType
from anydml.operators import OPERATORS, spec
from anydml.operators.schema import OperatorSpec

from .markup import html
from .operator_page import Known, cpu_engines, gpu_engines, summary

ENGINES = {
    "native": "native code",
    "reference": "NumPy's reference",
    "triton": "Triton, on GPUs",
    "pytorch": "PyTorch, on GPUs",
}


def page(known: Known) -> str:
    names = list(known.entries)
    hidden = "\n".join(map(str.lower, names))
    head = f"""\
# Operators

DirectML has {len(names)} operators, and each has a page here: what it computes, its members and constraints, its data
types at each feature level, a picture, examples, and what serves it.
"""
    toctree = f"```{{toctree}}\n:hidden:\n:titlesonly:\n\n{hidden}\n```\n"
    return "\n".join([head, html(f"{_form(names)}\n{_table(known)}"), toctree])


def _form(names: Iterable[str]) -> str:
    families = sorted({OPERATORS[name].family for name in names})
    types = [each.name for each in TensorDataType if each is not TensorDataType.UNKNOWN]
    levels = [(level.number, f"{level.number} has it") for level in sorted(FeatureLevel)]
    return f"""\
<form id="filter" class="filter" role="search" hidden>
<label class="words">Name or word
<input type="search" name="words" autocomplete="off" placeholder="pool, int8, softmax"></label>
{_choice("family", "Family", [(each, each.replace("_", " ")) for each in families])}
{_choice("type", "Data type", [(each, each) for each in types])}
{_choice("level", "Feature level", levels)}
{_choice("engine", "Engine", list(ENGINES.items()))}
<button type="reset">Clear</button>
<output class="count" aria-live="polite"></output>
</form>"""


def _choice(name: str, label: str, options: Iterable[tuple[str, str]]) -> str:
    every = "".join(f'<option value="{value}">{escape(shown)}</option>' for value, shown in options)
    return f'<label>{label} <select name="{name}"><option value="">any</option>{every}</select></label>'


def _table(known: Known) -> str:
    rows = "\n".join(_row(name, entry) for name, entry in known.entries.items())
    head = "".join(f'<th scope="col">{each}</th>' for each in ("Operator", "Since", "Family", "What it does"))
    return (
        f'<table id="every-operator" class="table operators"><thead><tr>{head}</tr></thead>\n'
        f"<tbody>\n{rows}\n</tbody></table>\n"
        '<p id="nothing" hidden>No operator is like that.</p>'
    )


def _row(name: str, entry: Mapping[str, Any]) -> str:
    found, op = spec(name), OPERATORS[name]
    since = found.support.introduced.number
    types = " ".join(f"{each.name}:{level.number}" for each, level in _types(found).items())
    engines = " ".join([*cpu_engines(entry), *(each.lower() for each in gpu_engines(found))])
    shown = name.replace("_", "_<wbr>")
    return (
        f'<tr data-name="{name}" data-function="{op.function}" data-family="{op.family}" data-level="{since}" '
        f'data-types="{types}" data-engines="{engines}">'
        f'<td><a href="{name.lower()}.html">{shown}</a><br><code>{op.function}</code></td>'
        f"<td>{since}</td><td>{op.family.replace('_', ' ')}</td><td>{escape(summary(found))}</td></tr>"
    )


def _types(found: OperatorSpec) -> dict[TensorDataType, FeatureLevel]:
    """The data types that any tensor may have, with the lowest level that has each."""
    lowest: dict[TensorDataType, FeatureLevel] = {}
    for level, rows in found.support.levels:  # newest first
        for row in rows.values():
            lowest |= dict.fromkeys(row.data_types, level)
    return {each: lowest[each] for each in TensorDataType if each in lowest}
