"""Dispatchables of type ``onnx``: ONNX models whose inputs and outputs are bound to resources."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.enums import FeatureLevel
from ...core.errors import DMLError, Violation
from ...core.strided_layout import DATA_TYPES, Array
from ...device import Device
from .buffers import DEFERRED
from .commands import Binding, Dispatch, at, model_violation, placed
from .limits import format_size
from .whole import Buffers, Prepared, Run, Whole, bound_to

if TYPE_CHECKING:
    from ..onnx.model import Model, ModelInput
    from ..onnx.session import InferenceSession


@dataclass(frozen=True, eq=False)
class OnnxDispatchable(Whole):
    """An ONNX model.

    Inputs that are not bound are zeros, and dimensions that nothing gives a size have size 1; outputs that are not
    bound are computed and dropped.

    Attributes:
        where: its place in the model.
        path: its file.
        model: what the file holds.
        sizes: of free dimensions, by name.
        fallback: whether nodes that DirectML does not do run elsewhere.
    """

    where: str
    path: Path
    model: Model
    sizes: Mapping[str, int] = field(default_factory=dict)
    fallback: bool = False

    @property
    def inputs(self) -> Sequence[str]:
        return [each.name for each in self.model.inputs]

    @property
    def outputs(self) -> Sequence[str]:
        return [each.name for each in self.model.outputs]

    def check(self, feature_level: FeatureLevel, strict: bool) -> list[Violation]:
        return []  # what nodes do depends on the shapes of a dispatch

    def check_dispatch(
        self, command: Dispatch, buffers: Buffers, feature_level: FeatureLevel, strict: bool
    ) -> list[Violation]:
        from ..onnx.checking import check

        wrong: list[Violation] = []
        feeds: dict[str, Any] = {}
        is_known = True
        for info in self.model.inputs:
            found = self._shape(command, info)
            if isinstance(found, Violation):
                wrong.append(found)
                continue
            binding = bound_to(command.bindings, info.name)
            buffer = None if binding is None else buffers[binding.resource]
            is_known &= buffer is None or buffer.initial is not DEFERRED
            size = prod(found) * _dtype_of(info).itemsize
            if binding is not None and buffer is not None and buffer.initial is not DEFERRED:
                room = buffer.size - binding.offset * (binding.item or buffer.dtype.itemsize)
                if size > room:
                    wrong.append(_too_small(command, info.name, room, size, found))
                    continue
            if size < 1 << 40:
                feeds[info.name] = np.broadcast_to(np.zeros((), _dtype_of(info)), found)
            else:
                wrong.append(_too_large(command, info.name, size))
        for name in self.outputs:
            wrong += _check_output(command, name, buffers)
        if wrong or self.fallback or not is_known:
            return wrong
        try:
            refused = check(self.path, feature_level, strict=strict, feeds=feeds).violations
        except DMLError as problem:
            refused = [*problem.violations]
        return [_in(command, each) for each in refused]

    def prepare(self, device: Device) -> Prepared:
        from ..onnx.session import InferenceSession

        return _Session(self, InferenceSession(self.path, device=device, fallback=self.fallback))

    def _shape(self, command: Dispatch, info: ModelInput) -> tuple[int, ...] | Violation:
        """The shape of an input: a binding's, or else the model's with the sizes that are given."""
        place = at(f"{command.where}.bindings", info.name)
        if info.shape is None or _dtype_of(info).kind in "OUST":
            return model_violation(place, "(M12)", f"an input of type {info.type}", "a tensor of numbers")
        binding = bound_to(command.bindings, info.name)
        own = [size if isinstance(size, int) else self.sizes.get(size or "") for size in info.shape]
        if binding is None or binding.shape is None:
            return tuple(1 if size is None else size for size in own)
        fits = len(own) == len(binding.shape) and all(
            size is None or size == given for size, given in zip(own, binding.shape, strict=True)
        )
        if not fits:
            named = [known if known is not None else size for known, size in zip(own, info.shape, strict=True)]
            return model_violation(f"{place}.shape", "(M12)", str(list(binding.shape)), f"{named}, as the model says")
        return binding.shape


class _Session(Prepared):
    def __init__(self, used: OnnxDispatchable, session: InferenceSession) -> None:
        self.used = used
        self.session = session

    def explain(self) -> str:
        return self.session.explain()

    def bound(self, command: Dispatch, buffers: Buffers, memory: Mapping[str, Array], there: Mapping[str, Any]) -> Run:
        feeds: dict[str, Any] = {}
        for info in self.used.model.inputs:
            shape = self.used._shape(command, info)
            assert not isinstance(shape, Violation)
            dtype = _dtype_of(info)
            binding = bound_to(command.bindings, info.name)
            if binding is None:
                feeds[info.name] = np.zeros(shape, dtype)
                continue
            buffer = buffers[binding.resource]
            assert buffer is not None
            start, size = binding.offset * (binding.item or buffer.dtype.itemsize), prod(shape) * dtype.itemsize
            if start + size > buffer.size:
                from ...core.errors import error

                raise error([_too_small(command, info.name, buffer.size - start, size, shape)])
            feeds[info.name] = memory[binding.resource][start : start + size].view(dtype).reshape(shape)
        return _Run(self, command, feeds)


class _Run(Run):
    def __init__(self, prepared: _Session, command: Dispatch, feeds: Mapping[str, Any]) -> None:
        self.session = prepared.session
        self.command = command
        self.feeds = feeds
        self.found: list[Any] = []

    def __call__(self) -> None:
        self.found = self.session.run(None, self.feeds)

    def results(self) -> Sequence[tuple[Binding, Any]]:
        names = [each.name for each in self.session.get_outputs()]
        bindings = [bound_to(self.command.bindings, name) for name in names]
        return [(each, value) for each, value in zip(bindings, self.found, strict=True) if each is not None]


def sizes_of(model: Model, denotations: Mapping[str, int]) -> dict[str, int]:
    """The sizes of free dimensions that are given by what they denote, such as DATA_BATCH, by their names."""
    found = {}
    for info in model.proto.graph.input if denotations else ():
        for dim in info.type.tensor_type.shape.dim:
            if dim.dim_param and dim.denotation in denotations:
                found[dim.dim_param] = denotations[dim.denotation]
    return found


def _check_output(command: Dispatch, name: str, buffers: Buffers) -> list[Violation]:
    """A deferred resource is bound as a whole, as its size is the result's."""
    binding = bound_to(command.bindings, name)
    buffer = None if binding is None else buffers[binding.resource]
    if binding is None or buffer is None or buffer.initial is not DEFERRED:
        return []
    if binding.offset or binding.count:
        place = at(f"{command.where}.bindings", name)
        return [model_violation(place, "(M12)", "a part of a deferred resource", "all of it")]
    return []


def _in(command: Dispatch, found: Violation) -> Violation:
    place = f"{command.where}: {found.place}" if found.place else command.where
    return placed(place, [found])[0]


def _too_small(command: Dispatch, name: str, room: int, size: int, shape: Sequence[int]) -> Violation:
    place = at(f"{command.where}.bindings", name)
    return model_violation(place, "(M12)", f"{room} bytes", f"at least {size}, for shape {list(shape)}")


def _too_large(command: Dispatch, name: str, size: int) -> Violation:
    place = at(f"{command.where}.bindings", name)
    return model_violation(place, "(M12)", format_size(size), "a size that there is memory for")


def _dtype_of(info: ModelInput) -> np.dtype[Any]:
    import onnx

    return np.dtype(onnx.helper.tensor_dtype_to_np_dtype(info.data_type))


def data_type_of(array: Any) -> Any:
    """The data type of a resource that holds a result: the header's, or bytes where it has none."""
    from ...core.enums import TensorDataType

    dtype = np.dtype(np.uint8) if array.dtype == np.bool_ else array.dtype
    return DATA_TYPES.get(dtype, TensorDataType.UINT8)
