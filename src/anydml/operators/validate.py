"""THE validator: every rule that a desc can break before an engine sees it.

Rules of every operator, beside the labelled constraints in ``operators/``:

(F1) A tensor member is a DML_BUFFER_TENSOR_DESC, a member of several tensors a list of them.
(F2) A UINT is an integer from 0 to 2^32 - 1, an INT one from -2^31 to 2^31 - 1; a member of several is a list of them.
(F3) A BOOL is True or False, or 1 or 0.
(F4) An enum member holds a member of its enum.
(F5) A count agrees with every array that it counts.
(F6) A desc is a desc of an operator in this package.
(F7) A feature level is one of FeatureLevel, by its member, its value, its number such as "5.0", or its name.
(F8) A FLOAT is a real number that single precision holds, infinities and NaN among them; a SCALAR any real number, or
     a DML_SCALAR_UNION with a number in the member of the desc's data type.
(F9) A ScaleBias is a DML_SCALE_BIAS of two FLOATs, or None.
(F10) A size is a DML_SIZE_2D of two UINTs.
(F11) An operator as a member is the desc of an activation that may be fused, its tensors None, its other members well
      formed; a FusedActivation may be None, and keeps its own constraints on the OutputTensor that it is applied to.
(F12) A struct's members are those that the header has; ``core/tensor_desc.py``.
(F13) A name of DirectML's that is asked of the package is one that this version has, or has a use for;
      ``header_names.py``.
(T1) DataType is a member of TensorDataType, not UNKNOWN.
(T2) A tensor has 1 to 8 dimensions, each of at least 1 element.
(T3) Strides, where given, are as many as Sizes, and not negative.
(T4) DimensionCount is the length of Sizes.
(T5) The elements span fewer than 2^63 bytes.
(T6) TotalTensorSizeInBytes is a multiple of 4, and no less than the bytes that the elements span.
(T7) GuaranteedBaseOffsetAlignment is 0, or a power of two no smaller than an element.
(T8) Flags are TensorFlags, and OWNED_BY_DML is for inputs.
(T9) An output's elements do not overlap: sorted by stride, each stride is larger than the span of those below it.
(T10) On a strict device, a tensor has at most 2^32 - 1 elements, in at most 4 GiB, and its Sizes and Strides are UINTs.
(T11) Elements of 4 bits lie two in a byte, in row-major order without gaps: Strides are None, or the packed ones.
(S1) The operator is there at the feature level.
(S2) A tensor's dimension count is in the support table of the feature level.
(S3) A tensor's data type is in the support table of the feature level.
(S4) An activation that is a member may be there, at the feature level.
(S5) What an operator takes from a later feature level on, values of enums among it, it takes from that level on.

A violation of (S1) to (S5) that a higher level would lift carries DXGI_ERROR_UNSUPPORTED, every other one
E_INVALIDARG.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from math import prod
from typing import Any

from ..core.annotations import unquoted
from ..core.enums import (
    DML_TENSOR_DIMENSION_COUNT_MAX1,
    FeatureLevel,
    HResult,
    TensorDataType,
    TensorFlags,
    member_spelt,
)
from ..core.errors import Violation, kind_of, listing, refuse, violation
from ..core.strided_layout import overlaps_itself
from ..core.tensor_desc import (
    DML_BUFFER_TENSOR_DESC,
    DML_SCALAR_UNION,
    are_integers,
    is_packed,
    minimum_size_in_bytes,
    packed_strides,
    scalar_member,
)
from .fused_activation import FUSIBLE, fused_since
from .member_types import ELEMENTS, UINT_MAX, check_of, is_tensor, is_uint
from .registry import ANY_OPERATOR, spec_of
from .schema import ConstraintFailure, OperatorDesc, OperatorSpec, SupportRow, SupportTable


@unquoted
def validate(
    desc: OperatorDesc, feature_level: FeatureLevel | str = FeatureLevel.LEVEL_6_4, strict: bool = False
) -> list[Violation]:
    """Every rule that a desc breaks at a feature level; an empty list where there is none.

    Constraints between members are looked at where every member is well formed.

    Args:
        desc: the desc of an operator.
        feature_level: the level whose support tables hold, or its number, such as "5.0".
        strict: whether DirectML's own limits hold, which this package does without: 2^32 - 1 elements and 4 GiB
            for each tensor, and pooling's output sizes rounded down.

    Raises:
        DMLError: (F7), with DXGI_ERROR_UNSUPPORTED, or (F3).

    >>> from anydml import *
    >>> x = DML_BUFFER_TENSOR_DESC(DataType=TensorDataType.FLOAT32, Sizes=(3, 4))
    >>> desc = DML_JOIN_OPERATOR_DESC(InputTensors=[x, x], OutputTensor=x, Axis=0)
    >>> print(*validate(desc, FeatureLevel.LEVEL_3_0), sep="\\n")  # doctest: +ELLIPSIS
    JOIN.InputTensors[0].DimensionCount: found 2 at feature level 3.0, expected 4 or 5 (S2). 2 needs feature level 4.1
    ...
    JOIN.OutputTensor.Sizes[0]: found 3, expected 6 (C6)
    """
    feature_level = level_of("validate", feature_level)
    strict = flag_of("validate", "strict", strict)
    spec = spec_of(desc)
    if spec is None:
        known = f"the desc, DML_..._OPERATOR_DESC, of {ANY_OPERATOR}"
        return [violation("", "(F6)", "desc", kind_of(desc), known, kind="type")]
    violations = list(_fields(spec, desc))
    is_well_formed = not violations
    tensors = list(_all_tensors(spec, desc)) if is_well_formed else _well_formed_tensors(spec, desc)
    for name, tensor in tensors:
        is_output = "output" in spec.tensors[name.partition("[")[0]].kind.lower()
        violations += check_tensor(spec.name, name, tensor, strict, is_output)
    violations += _support(spec, desc, tensors, feature_level)
    if is_well_formed:
        violations += _activations(spec, desc, feature_level)
        violations += _needs(spec, spec, desc, feature_level)
        violations += [_violation(spec, broken) for broken in spec.constraints(desc)]
        violations += _sizes(spec, desc, strict)
    return violations


def check_tensor(
    operator: str, name: str, tensor: DML_BUFFER_TENSOR_DESC, strict: bool = False, is_output: bool = False
) -> Iterator[Violation]:
    """The rules that a tensor breaks by itself, (T1) to (T11), whose members are of the header's kinds."""
    for rule, where, found, expected, remedy in _tensor(tensor, is_output, strict):
        yield violation(operator, rule, f"{name}.{where}" if name else where, found, expected, remedy)


def level_of(operator: str, level: object) -> FeatureLevel:
    """A feature level, given by its member, its value, its number or its name; rule (F7)."""
    known = {each.number: each for each in FeatureLevel}
    found = known.get(level, member_spelt(FeatureLevel, level)) if isinstance(level, str) else level
    if isinstance(found, int) and found in FeatureLevel.__members__.values():
        return FeatureLevel(found)
    meant = [each.name for each in FeatureLevel if type(level) is float and str(level) == each.number]
    refuse(
        operator,
        "(F7)",
        "feature_level",
        kind_of(level),
        listing(f"FeatureLevel.{name}" for name in FeatureLevel.__members__),
        f"Write FeatureLevel.{meant[0]}, or {str(level)!r}" if meant else "",
        hresult=HResult.DXGI_ERROR_UNSUPPORTED,
    )


def flag_of(operator: str, where: str, value: object) -> bool:
    """A flag of a method; rule (F3)."""
    rule, expected, is_flag = check_of("BOOL")
    if is_flag(value):
        return bool(value)
    refuse(operator, rule, where, kind_of(value), expected, kind="type")


def check_values(spec: OperatorSpec, desc: OperatorDesc, inputs: Any) -> list[Violation]:
    """The rules (V1).. of the operator that the values of inputs break."""
    return [_violation(spec, each) for each in spec.check_values(desc, inputs)]


def _violation(spec: OperatorSpec, broken: ConstraintFailure) -> Violation:
    rule, where, found, expected, remedy = broken
    return violation(spec.name, rule, where, found, expected, remedy)


# Members: (F1) to (F5)


def _fields(spec: OperatorSpec, desc: OperatorDesc) -> Iterator[Violation]:
    yield from _members(spec, spec, desc, spec.members, "")
    for label, tensor in _all_tensors(spec, desc):
        for member, found, expected, rule in _tensor_fields(tensor):
            yield _malformed(spec, rule, f"{label}.{member}", found, expected)


def _members(
    owner: OperatorSpec, spec: OperatorSpec, desc: object, members: Mapping[str, str], prefix: str
) -> Iterator[Violation]:
    """Of a desc, or of an activation in it, whose members a prefix tells from its own."""
    for name, annotation in members.items():
        value = getattr(desc, name)
        rule, expected, check = check_of(ELEMENTS.get(annotation, annotation))
        items = {f"{prefix}{name}": value}
        if annotation in ELEMENTS:
            if not isinstance(value, tuple):
                yield _malformed(owner, rule, f"{prefix}{name}", value, f"a list, each {expected}")
                continue
            items = {f"{prefix}{name}[{i}]": item for i, item in enumerate(value)}
        for where, item in items.items():
            if isinstance(item, DML_SCALAR_UNION) and isinstance(desc, OperatorDesc):
                # The desc has replaced it where the member of its data type is given.
                in_union = scalar_member(desc.scalar_type)
                note = f", or a DML_SCALAR_UNION with one in {in_union}" if in_union else ""
                yield _malformed(owner, rule, where, item, f"{expected}{note}")
            elif not check(item):
                yield _malformed(owner, rule, where, item, expected)
            elif isinstance(item, OperatorDesc):
                yield from _activation(owner, item, where)
    for count, arrays in spec.desc.counts.items():
        given = getattr(desc, count)
        for name in arrays:
            array = getattr(desc, name)
            if isinstance(array, tuple) and is_uint(given) and len(array) != given:
                found, expected = f"{len(array)} elements", f"{given}, which {count} says"
                yield _violation(owner, ConstraintFailure("(F5)", f"{prefix}{name}", found, expected))


def _activation(owner: OperatorSpec, activation: OperatorDesc, where: str) -> Iterator[Violation]:
    spec = spec_of(activation)
    assert spec is not None
    for name in spec.tensors:
        value = getattr(activation, name)
        if value is not None:
            remedy = f"{owner.name} has the tensors"
            yield _violation(owner, ConstraintFailure("(F11)", f"{where}.{name}", kind_of(value), "None", remedy))
    rest = {name: kind for name, kind in spec.members.items() if name not in spec.tensors}
    yield from _members(owner, spec, activation, rest, f"{where}.")


def _all_tensors(spec: OperatorSpec, desc: OperatorDesc) -> Iterator[tuple[str, DML_BUFFER_TENSOR_DESC]]:
    """What tensor descs there are, whatever stands beside them."""
    for name in spec.tensors:
        value = getattr(desc, name)
        if isinstance(value, tuple):
            yield from ((f"{name}[{i}]", item) for i, item in enumerate(value) if is_tensor(item))
        elif isinstance(value, DML_BUFFER_TENSOR_DESC):
            yield name, value


def _well_formed_tensors(spec: OperatorSpec, desc: OperatorDesc) -> list[tuple[str, DML_BUFFER_TENSOR_DESC]]:
    return [(label, tensor) for label, tensor in _all_tensors(spec, desc) if not any(_tensor_fields(tensor))]


def _malformed(spec: OperatorSpec, rule: str, where: str, value: object, expected: str) -> Violation:
    return violation(spec.name, rule, where, kind_of(value), expected, kind="value" if type(value) is int else "type")


def _tensor_fields(tensor: DML_BUFFER_TENSOR_DESC) -> Iterator[tuple[str, object, str, str]]:
    """Members that nothing can be computed from."""

    def is_integer(value: object) -> bool:
        # A derived TotalTensorSizeInBytes may be this large; (T5) refuses it in better words.
        return type(value) is int and value.bit_length() <= 1024

    if not isinstance(tensor.DataType, TensorDataType):
        yield "DataType", tensor.DataType, "a TensorDataType, such as TensorDataType.FLOAT32", "(T1)"
    if not are_integers(tensor.Sizes):
        yield "Sizes", tensor.Sizes, "a list of integers below 2^64", "(T2)"
    if tensor.Strides is not None and not are_integers(tensor.Strides):
        yield "Strides", tensor.Strides, "a list of integers below 2^64, or None", "(T3)"
    if tensor.DimensionCount is not None and not is_integer(tensor.DimensionCount):
        yield "DimensionCount", tensor.DimensionCount, "an integer, or None", "(T4)"
    if tensor.TotalTensorSizeInBytes is not None and not is_integer(tensor.TotalTensorSizeInBytes):
        yield "TotalTensorSizeInBytes", tensor.TotalTensorSizeInBytes, "an integer, or None", "(T6)"
    if not is_integer(tensor.GuaranteedBaseOffsetAlignment):
        yield "GuaranteedBaseOffsetAlignment", tensor.GuaranteedBaseOffsetAlignment, "an integer", "(T7)"
    if not isinstance(tensor.Flags, TensorFlags):
        yield "Flags", tensor.Flags, "TensorFlags", "(T8)"


# Tensors: (T1) to (T11)


def _tensor(tensor: DML_BUFFER_TENSOR_DESC, is_output: bool, strict: bool) -> Iterator[ConstraintFailure]:
    sizes, strides, alignment = tensor.Sizes, tensor.Strides, tensor.GuaranteedBaseOffsetAlignment
    total = tensor.TotalTensorSizeInBytes
    if tensor.DataType == TensorDataType.UNKNOWN:
        yield ConstraintFailure("(T1)", "DataType", "UNKNOWN", "a data type")
    if not 1 <= len(sizes) <= DML_TENSOR_DIMENSION_COUNT_MAX1:
        yield ConstraintFailure("(T2)", "Sizes", f"{len(sizes)} dimensions", f"1 to {DML_TENSOR_DIMENSION_COUNT_MAX1}")
        return
    for i, size in enumerate(sizes):
        if size < 1:
            yield ConstraintFailure("(T2)", f"Sizes[{i}]", str(size), "at least 1", "DirectML has no empty tensors")
    if tensor.DimensionCount != len(sizes):
        yield ConstraintFailure(
            "(T4)", "DimensionCount", str(tensor.DimensionCount), f"{len(sizes)}, the length of Sizes"
        )
    if strides is not None:
        if len(strides) != len(sizes):
            yield ConstraintFailure("(T3)", "Strides", f"{len(strides)} strides", f"{len(sizes)}, as many as Sizes")
        for i, stride in enumerate(strides):
            if stride < 0:
                remedy = "The functions take arrays with negative strides"
                yield ConstraintFailure("(T3)", f"Strides[{i}]", str(stride), "at least 0", remedy)
    yield from _alignment(tensor.DataType, alignment)
    if tensor.Flags not in (TensorFlags.NONE, TensorFlags.OWNED_BY_DML):
        yield ConstraintFailure("(T8)", "Flags", hex(tensor.Flags), "NONE or OWNED_BY_DML")
    elif is_output and tensor.Flags == TensorFlags.OWNED_BY_DML:
        yield ConstraintFailure("(T8)", "Flags", "OWNED_BY_DML", "NONE, for an output")
    if strides is not None and (len(strides) != len(sizes) or any(stride < 0 for stride in strides)):
        return
    if any(size < 1 for size in sizes):
        return
    minimum = minimum_size_in_bytes(tensor.DataType, sizes, strides)
    if minimum >= 2**63:
        yield ConstraintFailure("(T5)", "Sizes", f"a span of {minimum} bytes", "fewer than 2^63")
    elif total is not None and (total < minimum or total % 4 or total >= 2**63):
        yield ConstraintFailure(
            "(T6)", "TotalTensorSizeInBytes", str(total), f"a multiple of 4, at least {minimum}, below 2^63"
        )
    if strides is not None and tensor.DataType.bits == 4 and not is_packed(sizes, strides):
        found, packed = f"{tuple(strides)} for Sizes {tuple(sizes)}", packed_strides(sizes)
        yield ConstraintFailure(
            "(T11)", "Strides", found, f"{packed}, as two elements share a byte", "Leave Strides out"
        )
    if is_output and strides is not None and overlaps_itself(sizes, strides, 1):
        found = f"{tuple(strides)} for Sizes {tuple(sizes)}"
        expected = "strides that prove that no two elements overlap"
        yield ConstraintFailure("(T9)", "Strides", found, expected, "Leave Strides out for a packed output")
    if strict:
        for i, stride in enumerate(strides or ()):
            if stride > UINT_MAX:
                yield ConstraintFailure("(T10)", f"Strides[{i}]", str(stride), f"at most {UINT_MAX} on a strict device")
        if prod(sizes) > UINT_MAX:
            expected = f"at most {UINT_MAX} elements on a strict device"
            yield ConstraintFailure("(T10)", "Sizes", f"{prod(sizes)} elements", expected)
        if max(minimum, total or 0) > 2**32:
            expected = "at most 4 GiB on a strict device"
            yield ConstraintFailure("(T10)", "TotalTensorSizeInBytes", str(max(minimum, total or 0)), expected)


def _alignment(data_type: TensorDataType, alignment: int) -> Iterator[ConstraintFailure]:
    element = max(1, data_type.bits // 8)
    if alignment and (alignment < element or alignment & (alignment - 1) or alignment > UINT_MAX):
        expected = f"0, or a power of two, at least {element}, the bytes of an element"
        yield ConstraintFailure("(T7)", "GuaranteedBaseOffsetAlignment", str(alignment), expected)


# Feature levels: (S1) to (S5)


def _support(
    spec: OperatorSpec,
    desc: OperatorDesc,
    tensors: Iterable[tuple[str, DML_BUFFER_TENSOR_DESC]],
    level: FeatureLevel,
) -> Iterator[Violation]:
    support = spec.support_of(desc)
    rows = support.at(level)
    if rows is None:
        yield violation(
            spec.name,
            "(S1)",
            "",
            "no such operator",
            f"feature level {support.introduced.number} or higher",
            feature_level=level,
            hresult=HResult.DXGI_ERROR_UNSUPPORTED,
        )
        return
    for label, tensor in tensors:
        name = label.partition("[")[0]
        row, count, data_type = rows[name], len(tensor.Sizes), tensor.DataType
        if count not in row.dimension_counts and 1 <= count <= DML_TENSOR_DIMENSION_COUNT_MAX1:
            higher = _level_with(support, name, level, lambda row: count in row.dimension_counts)  # noqa: B023
            expected = listing(row.dimension_counts)
            yield _unsupported(spec, f"{label}.DimensionCount", str(count), expected, "(S2)", level, higher)
        if data_type not in row.data_types and data_type != TensorDataType.UNKNOWN:
            higher = _level_with(support, name, level, lambda row: data_type in row.data_types)  # noqa: B023
            expected = listing(kind.name for kind in row.data_types)
            yield _unsupported(spec, f"{label}.DataType", data_type.name, expected, "(S3)", level, higher)


def _activations(spec: OperatorSpec, desc: Any, level: FeatureLevel) -> Iterator[Violation]:
    for member, kind in spec.members.items():
        given = getattr(desc, member) if kind in ("OptionalActivation", "Activations") else None
        for i, each in enumerate(given if isinstance(given, tuple) else (given,)):
            activation = spec_of(each)
            if activation is None:
                continue
            where = f"{member}[{i}]" if isinstance(given, tuple) else member
            yield from _needs(spec, activation, each, level, f"{where}.")
            since = fused_since(activation.name, spec.name)
            if since is None or since > level:
                expected = listing(name for name in FUSIBLE if (fused_since(name, spec.name) or level + 1) <= level)
                yield _unsupported(spec, where, activation.name, expected, "(S4)", level, since)
            elif kind == "OptionalActivation":
                applied = replace(each, **dict.fromkeys(activation.tensors, desc.OutputTensor))
                for broken in activation.constraints(applied):
                    yield _violation(spec, broken._replace(rule="(F11)", where=f"{where}.{broken.where}"))


def _needs(
    owner: OperatorSpec, spec: OperatorSpec, desc: object, level: FeatureLevel, prefix: str = ""
) -> Iterator[Violation]:
    """Of a desc, or of an activation in it, whose members a prefix tells from its own."""
    for member in spec.members:
        value: Any = getattr(desc, member)
        since = getattr(value, "since", level)
        if since > level:
            expected = listing(each.name for each in type(value) if each.since <= level)
            yield _unsupported(owner, f"{prefix}{member}", value.name, expected, "(S5)", level, since)
    for since, where, found, expected in spec.needs(desc):
        if since > level:
            yield _unsupported(owner, f"{prefix}{where}", found, expected, "(S5)", level, since)


def _level_with(
    support: SupportTable, name: str, level: FeatureLevel, fits: Callable[[SupportRow], bool]
) -> FeatureLevel | None:
    """The first level above `level` whose table has a fitting row."""
    tables = reversed(support.levels)
    return next((since for since, rows in tables if since > level and fits(rows[name])), None)


def _unsupported(
    spec: OperatorSpec,
    where: str,
    found: str,
    expected: str,
    rule: str,
    level: FeatureLevel,
    higher: FeatureLevel | None,
) -> Violation:
    return violation(
        spec.name,
        rule,
        where,
        found,
        expected,
        f"{found} needs feature level {higher.number}" if higher is not None else "",
        feature_level=level,
        hresult=HResult.DXGI_ERROR_UNSUPPORTED if higher is not None else HResult.E_INVALIDARG,
    )


# Sizes of outputs


def _sizes(spec: OperatorSpec, desc: OperatorDesc, strict: bool) -> Iterator[Violation]:
    outputs = dict(spec.outputs(desc))
    for label, choices in spec.infer_sizes(desc).items() if spec.sizes_rule else ():
        output = outputs[label]
        sizes = () if output is None else output.Sizes
        if len(sizes) != len(choices):
            continue  # a labelled constraint of the operator says this
        for i, (size, right) in enumerate(zip(sizes, choices, strict=True)):
            if size not in (right[:1] if strict and isinstance(right, tuple) else right):
                note = " (a strict device takes the first only)" if strict and size in right else ""
                is_long = isinstance(right, range) and len(right) > 2
                expected = f"{right[0]} to {right[-1]}" if is_long else listing(right) + note
                yield _violation(spec, ConstraintFailure(spec.sizes_rule, f"{label}.Sizes[{i}]", str(size), expected))
