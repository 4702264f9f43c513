"""Which nodes of a model a device of a feature level takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from ...core.enums import FeatureLevel
from ...core.errors import Violation, violation
from ...device import Device
from .feeds import random_feeds
from .model import ModelInput
from .session import InferenceSession


class _Trial(InferenceSession):
    """A session that is not run, but for what shapes depend on."""

    _is_trial = True


class Checked(NamedTuple):
    """What a check found.

    Attributes:
        violations: one for each node that is refused, in the order of the model; before them one for the model, (G8),
            where the level has no graphs.
        nodes: how many were looked at.
        ended: why the nodes behind the last were not, where they were not.
    """

    violations: list[Violation]
    nodes: int
    ended: str = ""


def check(
    model: Any,
    feature_level: FeatureLevel = FeatureLevel.LEVEL_6_4,
    *,
    strict: bool = False,
    sizes: Mapping[str, int] | None = None,
    feeds: Mapping[str, Any] | None = None,
    progress: Callable[[str, int, int], object] | None = None,
) -> Checked:
    """Every node of a model that a device of a feature level refuses, and which level takes it.

    Nodes are traced with shapes; what they depend on is computed, with random values where no feeds are given, and by
    another runtime where DirectML does not. The rest is not run.

    Args:
        model: a path, bytes or a ModelProto.
        feature_level: the level whose support tables hold.
        strict: whether DirectML's own limits hold, see :func:`anydml.validate`.
        sizes: of dimensions that the model leaves free, by name; 1 where nothing says one.
        feeds: arrays for inputs.
        progress: takes what is done, how much is, and of how much.

    Raises:
        DMLError: (N1), (N3).
        OSError: for a file that cannot be read.
    """
    higher = [level for level in FeatureLevel if level > feature_level]
    tell = progress or (lambda title, done, total: None)
    tell(f"feature level {feature_level.number}", 0, 1)
    refused, nodes, ended = _refused(model, feature_level, strict, sizes, feeds)
    takers: dict[tuple[str, str], FeatureLevel] = {}
    if refused and higher:
        # Most are refused at every level; the others are asked for level by level.
        waiting = refused.keys() - _refused(model, higher[-1], strict, sizes, feeds)[0].keys()
        for i, level in enumerate(higher):
            if not waiting:
                break
            tell(f"feature level {level.number}", i + 1, len(higher) + 1)
            still = _refused(model, level, strict, sizes, feeds)[0].keys() if level != higher[-1] else set()
            takers |= {key: level for key in waiting if key not in still}
            waiting = {key for key in waiting if key in still}
    wrong = [_violation(*each, feature_level, takers.get(each[0])) for each in refused.items()]
    return Checked([*_no_graphs(feature_level), *wrong], nodes, ended)


def _no_graphs(level: FeatureLevel) -> list[Violation]:
    """What a device that takes single operators says of any model."""
    needed = FeatureLevel.LEVEL_2_1
    if level >= needed:
        return []
    expected = f"feature level {needed.number} or higher"
    return [violation("", "(G8)", "the model", "a graph", expected, feature_level=level)]


def _refused(
    model: Any, level: FeatureLevel, strict: bool, sizes: Mapping[str, int] | None, feeds: Mapping[str, Any] | None
) -> tuple[dict[tuple[str, str], str], int, str]:
    """Reasons by label and operator; the nodes seen; what ended it early."""
    session = _Trial(model, device=Device("cpu", level, strict), fallback=True)
    inputs = session.get_inputs()
    named = {name: 1 for each in inputs for name in _own_names(each)}
    named |= dict(sizes or {})
    reports = []
    ended = ""
    given = random_feeds(inputs, 0, named, feeds)
    try:
        for piece, _ in session.pieces(given):
            reports += piece.reports
            if piece.rest is None:
                break
    except Exception as problem:  # (N3), or what another runtime raises for a node that it does not know either
        if not reports:
            raise
        ended = " ".join(str(problem).split())[:300] or type(problem).__name__
    found: dict[tuple[str, str], str] = {}
    for each in reports:
        if each.refused:
            found.setdefault((each.label, each.op), each.refused)
    return found, len(reports), ended


def _own_names(info: ModelInput) -> list[str]:
    """What free dimensions are called: their names, or the input's with the axis."""
    pairs = enumerate(info.shape or ())
    return [size or f"{info.name}[{axis}]" for axis, size in pairs if not isinstance(size, int)]


def _violation(key: tuple[str, str], reason: str, level: FeatureLevel, taker: FeatureLevel | None) -> Violation:
    label, op = key
    remedy = "No feature level takes it" if taker is None else f"Feature level {taker.number} takes it"
    expected = "what DirectML's operators do"
    # The level is said once, behind all of it.
    found = reason.replace(f" at feature level {level.number}", "")
    return violation(op, "(N2)", "", found, expected, remedy, feature_level=level, place=f"node {label!r}")
