"""What the tensors of multi-head attention are, the sizes that they have, and the constraints on both."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

from ..core.enums import MultiheadAttentionMaskType as MaskType
from ..core.enums import TensorDataType
from ..core.errors import listing
from .constraints import same
from .schema import ConstraintFailure, Tensor

INPUTS = (
    "QueryTensor",
    "KeyTensor",
    "ValueTensor",
    "StackedQueryKeyTensor",
    "StackedKeyValueTensor",
    "StackedQueryKeyValueTensor",
    "BiasTensor",
    "MaskTensor",
    "RelativePositionBiasTensor",
    "PastKeyTensor",
    "PastValueTensor",
    "PastSequenceLengthsTensor",
)
OUTPUTS = ("OutputTensor", "OutputPresentKeyTensor", "OutputPresentValueTensor")
PARTS = {
    "query": ("QueryTensor", "StackedQueryKeyTensor", "StackedQueryKeyValueTensor"),
    "key": ("KeyTensor", "StackedQueryKeyTensor", "StackedKeyValueTensor", "StackedQueryKeyValueTensor"),
    "value": ("ValueTensor", "StackedKeyValueTensor", "StackedQueryKeyValueTensor"),
}
"""The tensors that may have each of the three."""


class Heads(NamedTuple):
    """The numbers that all sizes of a desc are made of."""

    batch: int
    queries: int
    keys: int
    """Those that are new."""
    past: int
    query_heads: int
    heads: int
    """Of keys and values."""
    size: int
    value_size: int

    @property
    def total(self) -> int:
        return self.past + self.keys


def heads_of(desc: Any) -> Heads:
    """Those of a desc that keeps (C2) and (C4), and whose tensors have enough dimensions."""
    query_heads, heads = head_counts(desc)
    query, key, value = (_source(desc, part) for part in PARTS)
    queries, keys, values = (getattr(desc, name).Sizes for name in (query, key, value))
    size = queries[-1] if query.startswith("Stacked") else queries[-1] // query_heads
    return Heads(
        batch=_batch(query, queries),
        queries=_length(query, queries),
        keys=_length(key, keys),
        past=0 if desc.PastKeyTensor is None else desc.PastKeyTensor.Sizes[-2],
        query_heads=query_heads,
        heads=heads,
        size=size,
        value_size=values[-1] if value.startswith("Stacked") else values[-1] // heads,
    )


def head_counts(desc: Any) -> tuple[int, int]:
    """Of queries, and of keys and values."""
    if hasattr(desc, "QueryHeadCount"):
        return desc.QueryHeadCount, desc.KeyValueHeadCount
    return desc.HeadCount, desc.HeadCount


def _source(desc: Any, part: str) -> str:
    return next(name for name in PARTS[part] if getattr(desc, name) is not None)


def _batch(name: str, sizes: Sequence[int]) -> int:
    return sizes[-5 if name.startswith("Stacked") else -3]


def _length(name: str, sizes: Sequence[int]) -> int:
    return sizes[-4 if name.startswith("Stacked") else -2]


Words: TypeAlias = tuple[tuple[str, int], ...]
"""For each dimension how its size is made up, and what that gives."""


def sizes_of(desc: Any, name: str) -> Words:
    """Of a tensor, without dimensions of 1 that may lead."""
    n = heads_of(desc)
    grouped = hasattr(desc, "QueryHeadCount")
    of_query = "query_head_count" if grouped else "head_count"
    batch, queries, keys = ("batch_size", n.batch), ("query_length", n.queries), ("key_length", n.keys)
    past, total = ("past_length", n.past), ("total_length", n.total)
    query_heads, heads = (of_query, n.query_heads), ("head_count", n.heads)
    size, value_size = ("head_size", n.size), ("value_head_size", n.value_size)
    scores = batch, query_heads, queries, total
    biases = n.query_heads * n.size + n.heads * (n.size + n.value_size)
    masks: dict[Any, Words] = {
        MaskType.BOOLEAN: scores,
        MaskType.KEY_SEQUENCE_LENGTH: (batch,),
        MaskType.KEY_SEQUENCE_END_START: (("an end and a start", 2), batch),
        MaskType.KEY_QUERY_SEQUENCE_LENGTH_START_END: (("3 * batch_size + 2", 3 * n.batch + 2),),
    }
    found: dict[str, Words] = {
        "QueryTensor": (batch, queries, _product(query_heads, size)),
        "KeyTensor": (batch, keys, _product(heads, size)),
        "ValueTensor": (batch, keys, _product(heads, value_size)),
        "StackedQueryKeyTensor": (batch, queries, heads, ("query and key", 2), size),
        "StackedKeyValueTensor": (batch, keys, heads, ("key and value", 2), size),
        "StackedQueryKeyValueTensor": (batch, queries, heads, ("query, key and value", 3), size),
        "BiasTensor": (("the biases of query, key and value", biases),),
        "MaskTensor": masks.get(desc.MaskType, ()),
        "RelativePositionBiasTensor": scores,
        "PastKeyTensor": (batch, heads, past, size),
        "PastValueTensor": (batch, heads, past, value_size),
        "PastSequenceLengthsTensor": (batch,),
        "OutputTensor": (batch, queries, _product(query_heads, value_size)),
        "OutputPresentKeyTensor": (batch, heads, total, size),
        "OutputPresentValueTensor": (batch, heads, total, value_size),
    }
    return found[name]


def _product(first: tuple[str, int], second: tuple[str, int]) -> tuple[str, int]:
    return f"{first[0]} * {second[0]}", first[1] * second[1]


def broadcasts(desc: Any, name: str) -> bool:
    return name == "RelativePositionBiasTensor" or (name == "MaskTensor" and desc.MaskType == MaskType.BOOLEAN)


def inputs(desc: Any) -> dict[str, Tensor]:
    """Those that are there."""
    every = {name: getattr(desc, name) for name in INPUTS if hasattr(desc, name)}
    return {name: tensor for name, tensor in every.items() if tensor is not None}


def outputs(desc: Any) -> dict[str, Tensor]:
    return {name: getattr(desc, name) for name in OUTPUTS if getattr(desc, name) is not None}


# Constraints


def of_one_type(desc: Any, label: str) -> Iterator[ConstraintFailure]:
    other = {"MaskTensor", "PastSequenceLengthsTensor"}
    names = [name for name in (inputs(desc) | outputs(desc)) if name not in other]
    yield from same(desc, label, "DataType", *names)
    lengths = getattr(desc, "PastSequenceLengthsTensor", None)
    if lengths is not None and lengths.DataType != TensorDataType.INT32:
        yield from same(desc, label, "DataType", names[0], "PastSequenceLengthsTensor")


def one_of_each(desc: Any, label: str) -> Iterator[ConstraintFailure]:
    for part, (alone, *stacked) in PARTS.items():
        there = [name for name in (alone, *stacked) if getattr(desc, name) is not None]
        if not there:
            yield ConstraintFailure(label, alone, "None", f"a {part} here, or in {listing(stacked)}")
        for name in there[1:]:
            yield ConstraintFailure(label, name, f"another {part}", f"one {part}, which {there[0]} has")


def both_of_past(desc: Any, label: str) -> Iterator[ConstraintFailure]:
    for name, other in (("PastKeyTensor", "PastValueTensor"), ("PastValueTensor", "PastKeyTensor")):
        if getattr(desc, name) is None and getattr(desc, other) is not None:
            yield ConstraintFailure(label, name, "None", f"a tensor, as {other} is one")


def whole_heads(desc: Any, label: str) -> Iterator[ConstraintFailure]:
    counts = [
        name for name in ("HeadCount", "QueryHeadCount", "KeyValueHeadCount") if name in desc.__dataclass_fields__
    ]
    for name in counts:
        if getattr(desc, name) == 0:
            yield ConstraintFailure(label, name, "0", "at least 1")
    for name, count in (("QueryTensor", counts[0]), ("KeyTensor", counts[-1]), ("ValueTensor", counts[-1])):
        sizes = () if getattr(desc, name) is None else getattr(desc, name).Sizes
        number = getattr(desc, count)
        if sizes and number and sizes[-1] % number:
            where = f"{name}.Sizes[{len(sizes) - 1}]"
            yield ConstraintFailure(label, where, str(sizes[-1]), f"a multiple of {number}, {count}")


def meaning_of_mask(desc: Any, label: str) -> Iterator[ConstraintFailure]:
    if desc.MaskTensor is not None and desc.MaskType == MaskType.NONE:
        yield ConstraintFailure(label, "MaskType", "NONE", "what MaskTensor means, as there is one")


def can_be_sized(desc: Any) -> bool:
    """Whether all sizes follow from a desc."""
    rules = (one_of_each, both_of_past, whole_heads, meaning_of_mask)
    query_heads, heads = head_counts(desc)
    return (
        not any(list(rule(desc, "")) for rule in rules)
        and query_heads % heads == 0
        and all(len(tensor.Sizes) >= _FEWEST.get(name, 1) for name, tensor in inputs(desc).items())
    )


_FEWEST = dict.fromkeys(("QueryTensor", "KeyTensor", "ValueTensor"), 3) | {"PastKeyTensor": 4, "PastValueTensor": 4}
_FEWEST |= dict.fromkeys([name for name in INPUTS if name.startswith("Stacked")], 5)


def sizes_of_inputs(desc: Any, label: str) -> Iterator[ConstraintFailure]:
    """That each has its sizes, and 1 before them; what broadcasts may have 1 for any of them, or fewer."""
    for name, tensor in inputs(desc).items() if can_be_sized(desc) else ():
        sizes, words, is_spread = tensor.Sizes, sizes_of(desc, name), broadcasts(desc, name)
        missing = len(words) - len(sizes)
        if missing > 0 and not is_spread:
            expected = f"at least {len(words)}, for {', '.join(word for word, _ in words)}"
            yield ConstraintFailure(label, f"{name}.DimensionCount", str(len(sizes)), expected)
            continue
        aligned = words[missing:] if missing > 0 else (("", 1),) * -missing + words
        for i, (found, (word, size)) in enumerate(zip(sizes, aligned, strict=True)):
            if found != size and not (is_spread and found == 1):
                expected = f"{size}, {word}" if word else f"1, before the last {len(words)} dimensions"
                yield ConstraintFailure(label, f"{name}.Sizes[{i}]", str(found), expected)
