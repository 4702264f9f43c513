"""The adapter of Dask arrays, which functions take their operands by."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import dask.array as da
import numpy as np
from dask.base import normalize_token

from ...core.errors import DMLError, kind_of, refuse
from ...core.memory import HOST
from ...core.packed_array import PackedArray
from ...core.truth_values import BOOL, UINT8
from ...device import Device
from ...functions._arguments import check_pieces
from ...functions._call import as_device, resolve
from ...functions._messages import argument_label
from ...functions._operand_adapter import ArrayAdapter, OperandInfo, Shape
from ...functions._truth_values import TruthValues
from .call import Call, Operand, check_sizes
from .methods import outputs_of

normalize_token.register(Device, repr)


def adapter(operand: da.Array, name: str, out: Any, device: Any) -> DaskAdapter:
    """What takes operands of an operator, of which one is a Dask array."""
    if out is not None:
        remedy = "Leave it out, and store the result, as da.store(result, out) or result.to_zarr(path)"
        given = out[0] if isinstance(out, list) and len(out) == 1 else out
        refuse(name, "(K2)", "out", kind_of(given), "None, as tasks give new arrays", remedy, kind="type")
    return DaskAdapter(name, device)


def _with_rules_of(device: Any) -> Device:
    """A device here whose rules hold for one that only workers may have."""
    try:
        return as_device(device)
    except DMLError as problem:
        if any(violation.rule != "(D7)" for violation in problem.violations):
            raise
        return as_device("cpu")


class DaskAdapter:
    """Operands of which one at least is a Dask array.

    Args:
        name: the operator.
        device: where each task is to run: the name of a device, which only workers have to have, or a Device.
    """

    memory = HOST

    def __init__(self, name: str, device: Any) -> None:
        self.name = name
        self.device = "cpu" if device is None else device
        self._rules = _with_rules_of(device)
        self._on_host = ArrayAdapter(name, None, None)
        self._truth = TruthValues(name)

    def take(self, where: str, value: Any) -> Operand:
        if not isinstance(value, da.Array):
            taken = self._on_host.take(where, value)
            return Operand.of(taken)
        check_sizes(self.name, where, value)
        if not value.dtype.isnative:
            remedy = "Convert it with .astype(x.dtype.newbyteorder('='))"
            refuse(self.name, "(A2)", where, f"byte-swapped {value.dtype.str}", "the machine's byte order", remedy)
        if self._truth.are_taken and value.dtype == BOOL:
            self._truth.note(where)
        return Operand.of(value)

    def shape(self, operand: Operand) -> Shape:
        return operand.shape

    def dtype(self, operand: Operand) -> np.dtype[Any]:
        return UINT8 if self._truth.are_taken and operand.dtype == BOOL else operand.dtype

    def look(self, where: str, value: Any) -> OperandInfo:
        operand = self.take(where, value)
        return OperandInfo(operand.shape, operand.dtype)

    def spread(self, operand: Operand, shape: Shape) -> Operand:
        return operand.spread(shape)

    def wanted_sizes(self, rank: int) -> Shape:
        return ()

    def apply(
        self, operands: Mapping[str, Operand | None], options: Mapping[str, Any], sizes: Shape, like: Any, lent: int
    ) -> list[da.Array]:
        if self.name == "JOIN":
            operands = self._with_elements(operands, options["Axis"])
        named: dict[str, Any] = {}
        for label, operand in operands.items():
            named[argument_label(label)] = None if operand is None else self._seen(operand)
        described = resolve(self.name, named, self._rules, options, sizes)
        gives_truth = self._truth.are_results(operands)
        if described.is_empty:
            dtypes = [BOOL if gives_truth and dtype == UINT8 else dtype for dtype, _ in described.results]
            shapes = [shape[lent:] for _, shape in described.results]
            return [da.empty(shape, dtype=dtype) for shape, dtype in zip(shapes, dtypes, strict=True)]
        call = Call(
            spec=described.spec,
            desc=described.desc,
            operands=operands,
            device=self.device,
            gives_truth=gives_truth and all(dtype == UINT8 for dtype, _ in described.results),
        )
        for label, tensor in call.outputs.items():
            if tensor.DataType.bits == 4:
                found, expected = tensor.DataType.name, "elements of 8 bits or more"
                refuse(self.name, "(K3)", argument_label(label), found, expected, kind="type")
        return [result[(0,) * lent] for result in outputs_of(call)] if lent else outputs_of(call)

    def _with_elements(self, pieces: Mapping[str, Operand | None], axis: int) -> Mapping[str, Operand | None]:
        """Pieces to be joined but for empty ones, where there are others; rule (A8)."""
        there = {label: piece for label, piece in pieces.items() if piece is not None}
        check_pieces(self.name, [piece.array for piece in there.values()], axis)
        return {label: piece for label, piece in there.items() if piece.shape[axis]} or pieces

    def _seen(self, operand: Operand) -> Any:
        """What rules look at: the type and the shape."""
        is_packed = isinstance(operand.array, PackedArray)
        return operand.array if is_packed else OperandInfo(operand.shape, self.dtype(operand))
