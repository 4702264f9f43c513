"""The rows of operators that compute: any tensors, by the names of a desc's members, checked in double precision.

A row is data: `Built` says of what sizes, types and values its tensors are, and what the libraries beside it compute
the same by. `dense.py`, `integers.py`, `attention.py`, `recurrent.py`, `normalising.py` and `pooled.py` are tables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from math import prod
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ..core.enums import TensorDataType, TensorFlags
from ..core.strided_layout import Array
from ..core.tensor_desc import DML_BUFFER_TENSOR_DESC
from ..device import Device
from ..operators import spec
from ..operators.schema import OperatorDesc
from .cases import LARGE, Case, Work, compiled_of, desc_of, tensor_of
from .places import Host, Place, place_of

Shape: TypeAlias = tuple[int, ...]
Maker: TypeAlias = Callable[..., Callable[[], Any]]
"""``maker(library, *tensors)``: what computes the row, again and again, into the last tensors, or gives the result."""

ALIKE_LIMIT = 1.3
"""Of FLOAT16's time by FLOAT32's, where a row computes for longer than memory takes."""
_STEPS = 1 << 12
"""Values of floats in their range: few enough to be exact in FLOAT16 where the range is a power of 2."""
_ULPS = {"float32": 64, "float16": 4}
"""Units in the last place, of the largest result, that a sum of rounded products may be off by."""
_SAMPLED, _FEW = 1 << 18, 16
"""Elements of all tensors that double precision is asked for at most, if a few of each dimension are so many."""


class Tensor(NamedTuple):
    """A tensor of a row."""

    shape: Shape
    dtype: str = ""
    """That of the row where it is empty."""
    low: float = -1
    high: float = 1
    """Between which values are drawn, of integers with both ends."""
    stays: bool = False
    """Whether its values stay from run to run, as weights do: OWNED_BY_DML, or an initializer of a model."""
    is_last: bool = False
    """Whether its channels lie last in memory."""
    values: Callable[[Place, Shape, Any], Any] | None = None
    """What it holds, by its shape and type, where that is no number of a range."""


class Node(NamedTuple):
    """ONNX Runtime's: a model of one node."""

    operator: str
    """With its domain before it, if that is another than ONNX's own."""
    inputs: tuple[str, ...]
    """Members of the desc in the node's order, "" for one left out. ``/flat``, ``/one``, ``/rest`` and ``/rows`` behind
    one have it without the dimensions that ONNX does not have there: all but one, all, the first, all but two;
    ``/signed`` has it as INT64, ``/lengths`` the first of each row, too."""
    attributes: Mapping[str, Any] = MappingProxyType({})
    outputs: int = 1
    """Of which the first is the row's."""
    constants: tuple[str, ...] = ()
    """Inputs that are initializers, where DirectML's operator does not have them OWNED_BY_DML."""


class Built(NamedTuple):
    """A row for one type and size."""

    inputs: dict[str, Tensor]
    """By the desc's members, in header order."""
    outputs: dict[str, Tensor]
    members: dict[str, Any]
    numpy: Maker | None = None
    torch: Maker | None = None
    node: Node | None = None
    products: int = 0
    """Multiplications, where these take longer than memory does."""
    may_be_one_off: bool = False
    """Whether libraries round halves of integers otherwise."""


@dataclass(frozen=True)
class Computation(Case):
    build: Callable[[int, str], Built] = field(kw_only=True)
    """By the elements of the largest tensor at most, and the type of elements."""
    of: str = ""
    """The cell."""
    is_layer: bool = False
    """Whether it is of one size, such as that of a network's layer, and judged by the libraries beside it alone."""

    @property
    def cell(self) -> str:
        return self.group or self.of or self.name

    @property
    def is_large(self) -> bool:
        return self.is_layer or (super().is_large if self.group else self.size == LARGE)

    def has_limit(self, threads: int) -> bool:
        return self.limit is not None if self.is_layer else super().has_limit(threads)

    def plain(self) -> Case | None:
        """Of a layer of FLOAT16 that of FLOAT32, with as many elements."""
        if not self.is_layer or self.limit is None or self.group:
            return None
        return replace(self, dtype="float32", limit=None, size=2 * self.size)

    def times_plain(self, plain: Case) -> float:
        return 1.0

    def built(self) -> Built:
        return self.build(self.size // np.dtype(self.dtype).itemsize, self.dtype)

    def make(self, device: Device) -> Work:
        place, host, built = place_of(device), Host(), self.built()
        values = {name: _values(host, tensor, self.dtype) for name, tensor in built.inputs.items()}
        arrays = {name: place.to_device(array) for name, array in values.items()}
        bases = {name: _empty(place, tensor, self.dtype) for name, tensor in built.outputs.items()}
        outputs = {name: _as_seen(base, built.outputs[name]) for name, base in bases.items()}
        tensors: dict[str, Any] = {}
        for name, array in {**arrays, **outputs}.items():
            stays = name in built.inputs and built.inputs[name].stays
            found = tensor_of(device, array)
            tensors[name] = replace(found, Flags=TensorFlags.OWNED_BY_DML) if stays else found
        desc = desc_of(self.operator, **grouped(tensors), **built.members)
        compiled: Any = _Prepared.of(device, desc, built, arrays, outputs)
        return Work(
            place,
            [*arrays.values()],
            next(iter(bases.values())),
            compiled,
            lambda y: self._check(desc, values, {name: place.numpy(each) for name, each in outputs.items()}),
            outputs=[*outputs.values()],
            moved=sum(array.nbytes for array in (*arrays.values(), *outputs.values())),
            computation=(built, arrays, outputs),
            products=built.products,
        )

    def _check(self, desc: OperatorDesc, arrays: dict[str, Array], outputs: dict[str, Array]) -> str:
        """All where there is little, else some of each dimension that is independent. References compute FLOAT32 in
        double precision, and round that once; so FLOAT16 is given to them as FLOAT32, but for what comes out as
        integers, which is exact."""
        part, cut = sample_of(desc, arrays, outputs)
        if next(iter(outputs.values())).dtype.kind == "f":
            part, arrays = in_single(part), {name: _as_single(cut(name, each)) for name, each in arrays.items()}
        else:
            arrays = {name: cut(name, each) for name, each in arrays.items()}
        found = spec(self.operator)
        with np.errstate(all="ignore"):
            results = found.reference(part, *[arrays.get(label) for label, _ in found.inputs(part)])
        exact = results if isinstance(results, tuple) else (results,)
        there = {label: each for (label, _), each in zip(found.outputs(part), exact, strict=True)}
        for name, output in outputs.items():
            if not are_close(cut(name, output), there[name], _ULPS):
                return f"{name} differs from what double precision gives"
        return ""

    def scaled(self, size: int) -> Case:
        """Of a layer itself, unless its largest tensor is to be smaller."""
        return replace(self, size=min(size, self.size) if self.is_layer else size)


def layer(operator: str, name: str, dtype: str, build: Callable[[int, str], Built], of: str = "") -> Computation:
    """A row of one size."""
    built = build(1 << 60, dtype)
    every = (*built.inputs.values(), *built.outputs.values())
    size = max(prod(each.shape) * np.dtype(each.dtype or dtype).itemsize for each in every)
    # As many elements of the row's own type as the largest tensor has, of whatever type that is.
    size = max(size, max(prod(each.shape) for each in every) * np.dtype(dtype).itemsize)
    limit = ALIKE_LIMIT if dtype == "float16" else None
    return Computation(operator, name, limit, dtype, size, build=build, of=of or operator.lower(), is_layer=True)


def fitted(most: int, *sizes: int) -> Shape:
    """Sizes of which the largest are halved until there are at most so many elements."""
    found = list(sizes)
    while prod(found) > most and max(found) > 1:
        largest = found.index(max(found))
        found[largest] = (found[largest] + 1) // 2
    return tuple(found)


# Tensors


def _values(place: Host, tensor: Tensor, dtype: str) -> Any:
    kind = np.dtype(tensor.dtype or dtype)
    shape, low, high = _as_it_lies(tensor), tensor.low, tensor.high
    if tensor.values is not None:
        array = tensor.values(place, shape, kind)
    elif low == high:
        array = place.cast(np.full(shape, low), kind)
    elif kind.kind != "f":
        array = place.cast(place.integers(int(low), int(high) + 1, shape, np.int16), kind)
    else:
        steps = place.cast(place.integers(0, _STEPS, shape, np.int16), np.float32)
        steps *= (high - low) / _STEPS
        steps += low
        array = place.cast(steps, kind)
    return _as_seen(array, tensor)


def _empty(place: Place, tensor: Tensor, dtype: str) -> Any:
    return place.empty(_as_it_lies(tensor), tensor.dtype or dtype)


def _as_it_lies(tensor: Tensor) -> Shape:
    return (tensor.shape[0], *tensor.shape[2:], tensor.shape[1]) if tensor.is_last else tensor.shape


def _as_seen(array: Any, tensor: Tensor) -> Any:
    """With the channels second, where they lie last."""
    if not tensor.is_last:
        return array
    order = (0, array.ndim - 1, *range(1, array.ndim - 1))
    return array.transpose(order) if isinstance(array, np.ndarray) else array.permute(order)


def grouped(tensors: Mapping[str, Any]) -> dict[str, Any]:
    """Members of a desc: tensors ``NAME[i]`` as the list NAME."""
    members: dict[str, Any] = {}
    for label, tensor in tensors.items():
        name, bracket, _ = label.partition("[")
        if bracket:
            members.setdefault(name, []).append(tensor)
        else:
            members[name] = tensor
    return members


class _Prepared(NamedTuple):
    """An operator with what stays, dispatched as others are."""

    compiled: Any
    inputs: list[Any]
    outputs: list[Any]
    persistent: Any

    @classmethod
    def of(
        cls,
        device: Device,
        desc: OperatorDesc,
        built: Built,
        arrays: Mapping[str, Any],
        outputs: Mapping[str, Any],
    ) -> _Prepared:
        compiled = compiled_of(device, desc)
        labels = [label for label, _ in spec(compiled.name).inputs(desc)]
        stay = {name for name, tensor in built.inputs.items() if tensor.stays}
        persistent = compiled.initialise([arrays[each] if each in stay else None for each in labels]) if stay else None
        inputs = [None if each in stay else arrays.get(each) for each in labels]
        written = [outputs.get(label) for label, _ in spec(compiled.name).outputs(desc)]
        return cls(compiled, inputs, written, persistent)

    @property
    def engine(self) -> str:
        return str(self.compiled.engine)

    def dispatch(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        self.compiled.dispatch(self.inputs, self.outputs, persistent=self.persistent)


# What is right


def are_close(one: Any, exact: Any, units: Mapping[str, float]) -> bool:
    """Whether no element is further off than so many units in the last place of the largest, or a double one; or than
    the type's least number, where all are next to 0."""
    if one.dtype.kind != "f":
        return np.array_equal(one, exact)
    finite = np.isfinite(exact)
    largest = float(np.max(np.abs(exact[finite]), initial=0.0))
    kind = np.finfo(one.dtype)
    tolerance = max(units[one.dtype.name] * float(kind.eps) * largest, float(kind.smallest_subnormal))
    with np.errstate(all="ignore"):
        off = np.abs(one.astype(np.float64) - exact.astype(np.float64))
    return bool(np.all((off <= tolerance) | (~finite & (one == exact.astype(one.dtype)))))


def sample_of(
    desc: OperatorDesc, arrays: Mapping[str, Array], outputs: Mapping[str, Array]
) -> tuple[OperatorDesc, Callable[[str, Array], Array]]:
    """A part of an operator: the desc of some elements along each independent dimension, the first and the last among
    them, and what takes that part of a tensor."""
    found = spec(_name_of(desc))
    stated = found.independent(desc)
    every = {**arrays, **outputs}
    lengths = {
        number: array.shape[number]
        for name, array in outputs.items()
        for i, number in enumerate(stated[name])
        if number == i
    }

    def pairs(name: str, sizes: Sequence[int]) -> Iterator[tuple[int | None, int]]:
        """The number of each dimension of a tensor among the output's, and its size."""
        return zip(stated[name], sizes, strict=True)

    def elements(most: int) -> int:
        return sum(
            prod([min(size, most) if number in lengths else size for number, size in pairs(name, array.shape)])
            for name, array in every.items()
        )

    most = max(lengths.values(), default=1)
    if elements(most) > _SAMPLED:
        most = _FEW
        while most > 2 and elements(most) > _SAMPLED:
            most //= 2
    taken = {
        number: np.unique(np.linspace(0, size - 1, min(size, most)).astype(int)) for number, size in lengths.items()
    }

    def cut(name: str, array: Array) -> Array:
        for axis, number in enumerate(stated[name]):
            if number in taken:
                array = array.take(taken[number], axis)
        return array

    def tensor(label: str, whole: DML_BUFFER_TENSOR_DESC) -> DML_BUFFER_TENSOR_DESC:
        sizes = [
            len(taken[number]) if number in taken else size
            for number, size in zip(stated[label], whole.Sizes, strict=True)
        ]
        return DML_BUFFER_TENSOR_DESC(DataType=whole.DataType, Sizes=sizes)

    return _changed(desc, tensor), cut


def in_single(desc: OperatorDesc) -> OperatorDesc:
    """With FLOAT32 for FLOAT16."""

    def tensor(label: str, given: DML_BUFFER_TENSOR_DESC) -> DML_BUFFER_TENSOR_DESC:
        is_half = given.DataType == TensorDataType.FLOAT16
        return DML_BUFFER_TENSOR_DESC(DataType=TensorDataType.FLOAT32 if is_half else given.DataType, Sizes=given.Sizes)

    return _changed(desc, tensor)


def _as_single(array: Array) -> Array:
    return array.astype(np.float32) if array.dtype == np.float16 else array


def _changed(desc: OperatorDesc, change: Callable[[str, DML_BUFFER_TENSOR_DESC], Any]) -> OperatorDesc:
    members: dict[str, Any] = {}
    for member in fields(desc):
        value = getattr(desc, member.name)
        if isinstance(value, DML_BUFFER_TENSOR_DESC):
            members[member.name] = change(member.name, value)
        elif isinstance(value, tuple) and value and isinstance(value[0], DML_BUFFER_TENSOR_DESC):
            members[member.name] = [change(f"{member.name}[{i}]", each) for i, each in enumerate(value)]
    return replace(desc, **members)


def _name_of(desc: OperatorDesc) -> str:
    return type(desc).__name__.removeprefix("DML_").removesuffix("_OPERATOR_DESC")


def node_inputs(node: Node, built: Built, arrays: Mapping[str, Array]) -> Iterator[tuple[str, Array | None, bool]]:
    """The node's inputs: a name, the array, None for one left out, and whether it stays."""
    views: dict[str, Callable[[Array], Array]] = {
        "": lambda array: array,
        "flat": lambda array: array.reshape(-1),
        "one": lambda array: array.reshape(()),
        "rest": lambda array: array[0],
        "rows": lambda array: array.reshape(array.shape[-2:]),
        "signed": lambda array: array.astype(np.int64),
        "lengths": lambda array: array[..., 0].reshape(-1).astype(np.int64),
    }
    for text in node.inputs:
        name, _, view = text.partition("/")
        if name not in arrays:
            yield "", None, False
        else:
            stays = built.inputs[name].stays or text in node.constants
            yield name, views[view](arrays[name]), stays
