"""How the CPU's libraries compute rows of pointwise operators, by the functions of `pointwise_peers.py`."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from ..core.strided_layout import Array
from .cases import Work
from .element_wise import SCALE, ZERO_POINT, ElementWise, is_truth
from .peer import Absent, Peer
from .pointwise_peers import array_function, node_of


def element_wise_peer(
    module: Any, session: Callable[..., Peer], name: str, case: ElementWise, work: Work, ours: Array
) -> Peer:
    """The library's function for each operator, one after the other, into the output where that has their type."""
    output = work.output
    if name == "jax":
        raise Absent("not asked: it fuses only what it compiles into new memory")
    if name == "torch" and len(case.steps) == 1 and "QUANTIZE" in case.steps[0].operator:
        return _quantisation(module, case, work, ours)
    arrays = _with_truth_values(case, [*work.inputs, output])
    if name == "onnxruntime":
        if len(case.steps) > 1:
            raise Absent("not asked for more than one operator")
        node = node_of(case.steps[0])
        if node is None:
            raise Absent(f"no node for {case.steps[0].operator}")
        operator, constants, attributes = node
        operands = [_packed(array) for array in arrays[:-1]]
        values = {f"c{i}": np.asarray(each, operands[0].dtype) for i, each in enumerate(constants)}
        domain, _, operator = operator.rpartition(".")
        return session(operator, operands, arrays[-1], ours, values, attributes, domain)._replace(result=lambda: output)
    functions, outputs = [], []
    for step, types in zip(case.steps, case.types(), strict=True):
        found = array_function(name, module, step)
        if found is None:
            raise Absent(f"no function of one call for {step.operator}")
        *_, result = types
        dtype = np.dtype(bool if is_truth(step.operator, result) and types[result] == "uint8" else types[result])
        outputs.append(arrays[-1] if dtype == arrays[-1].dtype else np.empty(output.shape, dtype))
        functions.append((found, len(types) - 2))
    given = arrays[:-1]
    if name == "torch":
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of what is broadcast, and only read
            given, outputs = ([module.from_numpy(each) for each in side] for side in (given, outputs))
    last: list[Any] = []

    def run() -> None:
        last.clear()
        rest = list(given)
        result = rest.pop(0)
        for (function, others), target in zip(functions, outputs, strict=True):
            result = function(result, *[rest.pop(0) for _ in range(others)], target)
        last.append(result)

    return Peer(run, lambda: np.asarray(last[0]).view(ours.dtype), ours)


def _quantisation(torch: Any, case: ElementWise, work: Work, ours: Array) -> Peer:
    """PyTorch's quantised tensors, which are made before where they are inputs."""
    (step,) = case.steps
    is_quantised = step.operator != "ELEMENT_WISE_QUANTIZE_LINEAR"
    kind = {"uint8": torch.quint8, "int8": torch.qint8}.get(ours.dtype.name)
    # Scales and zero points, which are arguments here, are one value each.
    given = [torch.from_numpy(each) for each in work.inputs if each.size > 1 and 0 not in each.strides]
    last: list[Any] = []

    def run() -> None:
        last.clear()
        if not is_quantised:
            last.append(torch.quantize_per_tensor(*given, SCALE, ZERO_POINT, kind))
        elif kind is None:
            last.append(given[0].dequantize())
        else:
            last.append(torch.ops.quantized.add(*given, SCALE, ZERO_POINT))

    with warnings.catch_warnings():
        # That quantised tensors will leave PyTorch concerns no one here.
        warnings.filterwarnings("ignore", r"torch\.quantize_per_tensor", UserWarning)
        if is_quantised:
            given = [torch._make_per_tensor_quantized_tensor(each, SCALE, ZERO_POINT) for each in given]
        run()
    return Peer(run, lambda: (last[0] if kind is None else last[0].int_repr()).numpy(), ours)


def _with_truth_values(case: ElementWise, arrays: list[Array]) -> list[Array]:
    """Bytes that hold truth values as arrays of such, the inputs of all steps and the output."""
    places = [
        (step.operator, tensor)
        for i, (step, types) in enumerate(zip(case.steps, case.types(), strict=True))
        for tensor in [*types][min(i, 1) : -1]
    ]
    places.append((case.steps[-1].operator, [*case.types()[-1]][-1]))
    return [
        array.view(np.bool_) if array.dtype == np.uint8 and is_truth(*place) else array
        for place, array in zip(places, arrays, strict=True)
    ]


def _packed(array: Array) -> Array:
    """Without what is broadcast; one value without dimensions."""
    part = array[tuple(slice(None, None if stride else 1) for stride in array.strides)]
    return part.reshape(()) if part.size == 1 else np.ascontiguousarray(part)
