"""Words for values and for arguments: names of enums' members and of activations, and what other libraries call things.

The rules are (A15) and (A16) of ``core/interop.py``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from inspect import signature
from typing import Any

from ..core import enums
from ..core.enums import MatrixTransform, member_spelt
from ..core.errors import listing, refuse
from ..operators import OPERATORS, spec
from ..operators.fused_activation import FUSIBLE


class _NotGiven:
    def __repr__(self) -> str:
        return "<not given>"


NOT_GIVEN: Any = _NotGiven()
"""The default of `axes` where `axis` may stand for it, as None means all."""
REQUIRED: Any = _NotGiven()
"""That of what has none, where its absence is said behind what other libraries call it."""

_ELSEWHERE = {
    "dilation": ["dilations"],
    "axes": ["axis"],
    "dim": ["axis"],
    "dims": ["axes"],
    "dtype": ["output_dtype", "indices_dtype"],
    "eps": ["epsilon"],
    "group": ["group_count"],
    "groups": ["group_count"],
    "input": ["x", "a"],
    "kernel_shape": ["window_size"],
    "kernel_size": ["window_size", "window_sizes"],
    "output_size": ["output_sizes"],
    "negative_slope": ["alpha"],
    "other": ["b"],
    "pad": ["start_padding", "end_padding"],
    "padding": ["start_padding", "end_padding"],
    "pads": ["start_padding", "end_padding"],
    "pool_size": ["window_size"],
    "reps": ["repeats"],
    "stride": ["strides"],
    "tensors": ["arrays"],
    "transa": ["trans_a"],
    "transb": ["trans_b"],
    "transpose_a": ["trans_a"],
    "transpose_b": ["trans_b"],
    "weight": ["filter", "scale"],
}
"""What other libraries call arguments, and functions here."""

_KEPT = "Dimensions are kept, at a size of 1; np.squeeze leaves them out"
_MANNERS = {"keepdims": _KEPT, "keepdim": _KEPT}
"""What is not to be had by an argument."""


def refuse_unknown(function: Any, name: str, others: Mapping[str, Any], **required: Any) -> None:
    """Refuses arguments that a function does not have, and the absence of those that it has to have; rule (A15).

    Args:
        function: the function.
        name: the operator.
        others: the arguments, by name.
        required: those of which each has to be there.
    """
    own = list(signature(function).parameters)
    for word in others:
        meant = [each for each in _ELSEWHERE.get(word.lower(), ()) if each in own] or get_close_matches(word, own, 1)
        remedy = _MANNERS.get(word, f"Did you mean {listing(meant, 'and')}?" if meant else "")
        refuse(name, "(A15)", word, "an argument that is unknown", listing(own), remedy, kind="type")
    missing = [word for word, value in required.items() if value is REQUIRED]
    if missing:
        expected = f"{listing(missing, 'and')}, which {function.__name__}() has no default for"
        refuse(name, "(A15)", missing[0], "nothing", expected, kind="type")


def axes_of(name: str, axes: Any, axis: Any, default: Any = NOT_GIVEN) -> Any:
    """The axes of a function where ``axis`` may stand for them; rule (A15)."""
    if axis is not None:
        if axes is not NOT_GIVEN:
            refuse(name, "(A15)", "axis", "axis beside axes", "one of them", kind="type")
        return axis
    if axes is not NOT_GIVEN:
        return axes
    if default is NOT_GIVEN:
        refuse(name, "(A5)", "axes", "nothing", "axes, an axis, or None for all", kind="type")
    return default


_MEMBERS_ELSEWHERE = {
    **{"MEAN": "AVERAGE", "PROD": "MULTIPLY", "PRODUCT": "MULTIPLY", "AMAX": "MAX", "AMIN": "MIN", "NORM": "L2"},
    **{"BILINEAR": "LINEAR", "TRILINEAR": "LINEAR", "REPLICATE": "EDGE", "ZEROS": "CONSTANT"},
}
"""What NumPy and PyTorch call members of enums."""


def as_member(name: str, where: str, value: Any, annotation: str) -> Any:
    """A member of an enum by its name, or one of MatrixTransform by a flag; all else, which (F4) is for, as it is."""
    enum = getattr(enums, annotation.rpartition(".")[2])
    if enum is MatrixTransform and isinstance(value, bool):
        return MatrixTransform(value)
    found = member_spelt(enum, value)
    if isinstance(found, str):
        elsewhere = _MEMBERS_ELSEWHERE.get(found.upper(), "")
        meant = [elsewhere] if elsewhere in enum.__members__ else get_close_matches(found.upper(), enum.__members__, 1)
        expected = listing(f"{enum.__name__}.{member}" for member in enum.__members__)
        refuse(name, "(F4)", where, f"str {found!r}", expected, _meant(meant, repr), kind="type")
    return found


def as_activation(name: str, where: str, value: Any) -> Any:
    """The desc of an activation by its function's name, with that one's defaults; all else, which (F11) is for, as it
    is."""
    if not isinstance(value, str):
        return value
    known = {OPERATORS[each].function: each for each in reversed(list(FUSIBLE))}
    operator = known.get(value.lower(), value.upper().removeprefix("DML_OPERATOR_"))
    operator = operator if operator in FUSIBLE else f"ACTIVATION_{operator}"
    if operator not in FUSIBLE:
        expected = f"the desc of an activation, or its name: {listing(known)}"
        meant = get_close_matches(value.lower(), known, 1)
        refuse(name, "(F11)", where, f"str {value!r}", expected, _meant(meant, repr), kind="type")
    found = spec(operator)
    row = found.pointwise
    defaults = {} if row is None else {**row.typical, **row.defaults}
    missing = [member for member in found.attribute_names if member not in defaults]
    if missing:
        expected = f"a desc, {found.desc.__name__}({', '.join(f'{member}=...' for member in missing)})"
        refuse(name, "(A16)", where, f"str {value!r}, which has no default for {listing(missing, 'and')}", expected)
    return found.desc(**{member: defaults[member] for member in found.attribute_names})


def _meant(words: Iterable[str], spell: Any) -> str:
    return next((f"Did you mean {spell(word.lower())}?" for word in words), "")
