"""Errors in a function's words: ``x.shape`` for InputTensor.Sizes; with remedies that an array has, too."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from ..core.enums import FeatureLevel, TensorDataType
from ..core.errors import DMLError, Kind, Violation, error
from ..core.interop import converted
from ..core.strided_layout import DATA_TYPES, DTYPES
from ..device import Device
from ..operators import spec
from ..operators.schema import SupportRow

_ARGUMENTS = {
    "InputTensor": "x",
    "InputTensors": "arrays",
    "OutputTensor": "out",
    "OutputTensors": "out",
    "OutputGradientTensor": "out",
    "FusedActivation": "activation",
    "ActivationDescs": "activations",
    "InputWindowOffsets": "offsets",
    "InputWindowSizes": "sizes",
    "InputWindowStrides": "strides",
    "PaddingMode": "mode",
    "PaddingValue": "value",
    "QueryHeadCount": "head_count",
    "ValueStart": "start",
    "ValueDelta": "delta",
    "UseVariance": "normalize_variance",
}
"""What functions call members otherwise than by their names in snake case."""

_OF_ARRAYS = {"QuantizationTensors[0]": "scale", "QuantizationTensors[1]": "zero_point"}
"""Of arrays of tensors, those that are arguments of their own."""

_WORDS = {"DataType": "dtype", "DimensionCount": "ndim", "Sizes": "shape"} | {
    data_type.name: data_type.name.lower() for data_type in TensorDataType
}
"""How NumPy calls what the header names otherwise."""

_WORD_BEGINS = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_HEADER_WORD = re.compile(r"\b[A-Z][A-Za-z0-9]*\b(?!\.[A-Z][A-Z0-9_])")
"""But for an enum's, such as PaddingMode.EDGE, which a member may be called as."""


def argument_of(member: str) -> str:
    """A function's argument for a member: ``window_size`` for WindowSize, ``filter`` for FilterTensor."""
    if member in _ARGUMENTS:
        return _ARGUMENTS[member]
    return _WORD_BEGINS.sub("_", member.removesuffix("Tensor")).lower()


@cache
def argument_label(label: str) -> str:
    """A function's argument for a tensor's label: ``arrays[1]`` for InputTensors[1]."""
    member, bracket, rest = label.partition("[")
    return _OF_ARRAYS.get(label) or f"{argument_of(member)}{bracket}{rest}"


def in_function_terms(violations: Iterable[Violation], device: Device, names: Mapping[str, str]) -> Iterator[Violation]:
    """Violations of a desc as those of a call.

    Args:
        violations: of one desc.
        device: whose rules hold.
        names: the arguments for labels of tensors where they are not what :func:`argument_of` says.
    """
    said = set()
    for violation in violations:
        each = _reworded(violation, names)
        # The result is like the operands: what is wrong with both is said once.
        if each.where.startswith("out.") and (each.rule, each.found) in said:
            continue
        said.add((each.rule, each.found))
        # NumPy and PyTorch raise TypeError for a data type that they don't take.
        kind: Kind = "type" if violation.rule == "(S3)" else violation.kind
        # A result that no memory holds.
        kind = "memory" if each.where.startswith("out.") and violation.rule == "(T5)" else kind
        # Who calls a function has mostly chosen no level.
        level = None if device.feature_level == max(FeatureLevel) else each.feature_level
        remedy = each.remedy or _remedy(violation, each.where.partition(".")[0])
        yield replace(each, remedy=remedy, kind=kind, feature_level=level)


def _remedy(violation: Violation, argument: str) -> str:
    """What can be done about an argument of a wrong type or rank."""
    row = spec(violation.operator).tensors.get(re.split(r"[\[.]", violation.where)[0])
    if row is None:
        return ""
    if violation.rule == "(S3)" and violation.found in TensorDataType.__members__:
        allowed = [each for each in TensorDataType if each.name in re.findall(r"\w+", violation.expected)]
        if TensorDataType.UINT8 in allowed and _takes_truth(violation.operator):
            return f"Compare it, as {argument} != 0 does: truth values are taken"
        return conversion(DTYPES.get(TensorDataType[violation.found]), allowed)
    wanted = TensorDataType.__members__.get(violation.expected.partition(",")[0])
    if violation.rule.startswith("(C") and violation.where.endswith(".DataType") and wanted is not None:
        return conversion(DTYPES.get(TensorDataType[violation.found]), [wanted])
    if violation.rule == "(S2)" and int(violation.found) < min(row.dimension_counts):
        return _more_dimensions(argument, min(row.dimension_counts) - int(violation.found))
    return _more_dimensions(argument, 1) if (violation.rule, violation.found) == ("(T2)", "0 dimensions") else ""


def _takes_truth(name: str) -> bool:
    """Whether an operand that takes UINT8, but no floats, takes truth values."""
    return name == "ELEMENT_WISE_IF" or name.startswith("ELEMENT_WISE_LOGICAL_")


def _more_dimensions(argument: str, missing: int) -> str:
    return f"{argument}[{', '.join(['np.newaxis'] * missing)}] adds {'a dimension' if missing == 1 else 'them'}"


@contextmanager
def in_words_of(operands: Mapping[str, Any]) -> Iterator[None]:
    """Has remedies of what is raised in the words of the library whose tensor the argument is.

    Args:
        operands: what was given, by arguments as messages call them.
    """
    try:
        yield
    except DMLError as problem:
        words = [_in_words_of(each, operands) for each in problem.violations]
        if words == [each.remedy for each in problem.violations]:
            raise
        violations = zip(problem.violations, words, strict=True)
        raise error([replace(each, remedy=remedy) for each, remedy in violations]) from None


def _in_words_of(violation: Violation, operands: Mapping[str, Any]) -> str:
    value = operands.get(violation.where.partition(".")[0])
    if type(value).__module__.partition(".")[0] != "torch":
        return violation.remedy
    remedy = violation.remedy.replace("np.newaxis", "None").replace("np.ascontiguousarray", ".contiguous()")
    for dtype in DATA_TYPES:
        remedy = remedy.replace(converted(dtype), f"Convert it with {_TORCH.get(dtype.name, f'.to(torch.{dtype})')}")
    return remedy


_TORCH = {"float32": ".float()", "float16": ".half()", "float64": ".double()", "int32": ".int()", "int64": ".long()"}
"""How PyTorch converts a tensor."""


def row_of(name: str, where: str) -> SupportRow:
    """What an operator's newest table says of the tensor that an argument is."""
    tensors = spec(name).tensors
    rows = {argument_of(member): row for member, row in tensors.items()}
    members = {argument: label.partition("[")[0] for label, argument in _OF_ARRAYS.items()}
    rows |= {argument: tensors[member] for argument, member in members.items() if member in tensors}
    return rows.get(where.partition("[")[0]) or next(iter(rows.values()))


def conversion(found: np.dtype | None, data_types: Sequence[TensorDataType]) -> str:
    """How to come to a data type that an operator takes."""
    if found is None:
        return ""
    floats = [d for d in (np.float32, np.float64) if DATA_TYPES[np.dtype(d)] in data_types]
    integers = [d for d in (np.int32, np.int64, np.uint32, np.uint64) if DATA_TYPES[np.dtype(d)] in data_types]
    # Floats of other libraries, such as bfloat16, are of no kind that NumPy knows.
    fitting = floats if "float" in found.name else [d for d in integers if np.can_cast(found, d)]
    if not fitting and found.kind in "iu":
        fitting = floats
    return converted(np.dtype(fitting[0])) if fitting else ""


def _reworded(violation: Violation, names: Mapping[str, str]) -> Violation:
    members = spec(violation.operator).members
    # SLICE has Sizes of its own beside those of its tensors.
    own = {"Sizes": "sizes"} if "Sizes" in members else {}

    def word(match: re.Match[str]) -> str:
        name = match[0]
        return names.get(name) or own.get(name) or _WORDS.get(name) or (argument_of(name) if name in members else name)

    def text(given: str) -> str:
        return _HEADER_WORD.sub(word, given)

    # Labels such as InputTensors[0] are looked up whole.
    member, dot, rest = violation.where.partition(".")
    of_tensor = re.sub(r"^[A-Za-z]+", lambda match: _WORDS.get(match[0], match[0]), rest)
    where = f"{names[member] if member in names else text(member)}{dot}{of_tensor}"
    found, expected, remedy = map(text, (violation.found, violation.expected, violation.remedy))
    return replace(violation, where=where, found=found, expected=expected, remedy=remedy)
