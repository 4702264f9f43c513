"""Tasks: an operator on chunks, as a worker of a scheduler computes it.

A task can be sent to other machines. Each worker compiles an operator once for chunks of the same sizes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from ...core.memory import result_array
from ...core.packed_array import PackedArray
from ...core.strided_layout import DTYPES, Array
from ...core.truth_values import BOOL, as_bytes
from ...functions._call import ResolvedCall, as_device, run
from ...functions._messages import argument_label
from ...operators import spec_of
from ...operators.schema import OperatorDesc, OperatorSpec


def operator_of(desc: OperatorDesc) -> OperatorSpec:
    """The specification of a desc's operator."""
    found = spec_of(desc)
    assert found is not None
    return found


@dataclass(frozen=True, slots=True)
class First:
    """The first of several results of a task."""

    function: Any

    def __call__(self, *given: Any) -> Array:
        array: Array = self.function(*given)[0]
        return array


def compute(desc: OperatorDesc, device: Any, operands: Sequence[Any], gives_truth: bool = False) -> list[Array]:
    """The outputs that a desc has, of arrays.

    Args:
        desc: without violations.
        device: a Device or its name.
        operands: arrays for all inputs, in header order, which broadcast to the sizes in the desc; None for those left
            out.
        gives_truth: whether results of UINT8 are truth values.

    Raises:
        DMLError: what the operator demands of values.
    """
    described = _described(desc)
    place = as_device(device)
    memory = place.memory
    read: list[Any] = []
    for array, (label, tensor) in zip(operands, described.spec.inputs(desc), strict=True):
        if array is None or tensor is None:
            read.append(None)
        elif isinstance(array, PackedArray):
            read.append(memory.to_device(memory.import_array(described.spec.name, label, array.data)))
        else:
            array = as_bytes(array) if array.dtype == BOOL else array
            array = array if array.shape == tuple(tensor.Sizes) else np.broadcast_to(array, tensor.Sizes)
            read.append(memory.to_device(memory.import_array(described.spec.name, label, array)))
    model = next((array for array in operands if isinstance(array, np.ndarray)), np.empty(0))
    results = [result_array(memory, described.spec.name, None, dtype, shape) for dtype, shape in described.results]
    run(described, read, results, place)
    exported = [memory.export(model, None, result) for result in results]
    return [each.view(BOOL) for each in exported] if gives_truth else exported


def results_of(desc: OperatorDesc) -> list[tuple[np.dtype[Any], tuple[int, ...]]]:
    """The types and shapes of the outputs that a desc has."""
    found = operator_of(desc)
    tensors = [tensor for _, tensor in found.outputs(desc) if tensor is not None]
    return [(DTYPES[tensor.DataType], tuple(tensor.Sizes)) for tensor in tensors]


@lru_cache(maxsize=512)
def _described(desc: OperatorDesc) -> ResolvedCall:
    found = operator_of(desc)
    names = {label: argument_label(label) for label, _ in found.inputs(desc)}
    return ResolvedCall(found, desc, names, tuple(results_of(desc)), False)
