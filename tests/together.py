"""Many cases in one test: one for each group of them, which runs all and names those that fail.

A test for each case takes pytest longer than most cases take to run. `pytest --each` makes one of each again, to run a
case alone, as after a crash; `-k` finds the tests of the groups that a case is in by its name either way.
"""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest
from _pytest.outcomes import Skipped

SHOWN = 3
"""The failures of a test that are shown whole."""
EACH = False
"""Whether each case is to be a test, as the command line says."""


class Row(NamedTuple):
    """A case: the test that it belongs to, its name, and what the function is called with."""

    group: str
    id: str
    values: tuple[Any, ...]
    marks: Any = ()


@dataclass
class Group:
    """The cases of a test."""

    names: tuple[str, ...]
    rows: list[Row] = field(default_factory=list)

    def value(self, name: str) -> Any:
        """What the first case, and so each where groups are made by it, has of a name; None without it."""
        return dict(zip(self.names, self.rows[0].values, strict=True)).get(name)


def together(
    names: str | tuple[str, ...], rows: Iterable[Row], before: Callable[[], None] = lambda: None
) -> Callable[[Any], Any]:
    """Calls a test for each case, like `pytest.mark.parametrize`, but those of a group in one test; and `before` before
    each."""
    given = (names,) if isinstance(names, str) else names
    groups: dict[str, Group] = {}
    all_rows = list(rows)
    for row in all_rows:
        groups.setdefault(row.group, Group(given)).rows.append(row)

    def decorate(function: Any) -> Any:
        if EACH:
            each = [pytest.param(*row.values, id=f"{row.group}-{row.id}", marks=row.marks) for row in all_rows]
            return pytest.mark.parametrize(given, each)(function)

        def test(group: Group, **others: Any) -> None:
            run(function, group, others, before)

        parameters = inspect.signature(function).parameters.values()
        kept = [each.replace(kind=each.KEYWORD_ONLY) for each in parameters if each.name not in given]
        first = inspect.Parameter("group", inspect.Parameter.POSITIONAL_OR_KEYWORD)
        test.__signature__ = inspect.Signature([first, *kept])  # type: ignore[attr-defined]
        for name in ("__name__", "__qualname__", "__doc__", "__module__"):
            setattr(test, name, getattr(function, name))
        test.pytestmark = [*getattr(function, "pytestmark", ())]  # type: ignore[attr-defined]
        params = [pytest.param(each, id=name, marks=each.rows[0].marks) for name, each in groups.items()]
        return pytest.mark.parametrize("group", params)(test)

    return decorate


def run(
    function: Callable[..., None],
    group: Group,
    others: Mapping[str, Any] = MappingProxyType({}),
    before: Callable[[], None] = lambda: None,
) -> None:
    """Runs all cases; what fails, and what alone of them would be skipped, is told at the end."""
    failed: list[str] = []
    shown: list[str] = []
    skipped: list[str] = []
    for row in group.rows:
        before()
        try:
            function(**dict(zip(group.names, row.values, strict=True)), **others)
        except Skipped as skip:
            skipped.append(str(skip))
        except (Exception, pytest.fail.Exception) as error:
            failed.append(row.id)
            if len(shown) < SHOWN:
                shown.append(f"{row.id}:\n{''.join(traceback.format_exception(error))}")
    if skipped and len(skipped) == len(group.rows):
        pytest.skip(skipped[0])
    if skipped:
        failed.append(f"{len(skipped)} skipped, which nobody would see: {skipped[0]}")
    if failed:
        told = f"{len(failed)} of {len(group.rows)} cases fail: {', '.join(failed)}"
        pytest.fail("\n".join([told, *shown]), pytrace=False)
