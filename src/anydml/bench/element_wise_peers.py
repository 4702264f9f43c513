"""How the CPU's libraries compute rows of pointwise operators, by the functions of `pointwise_peers.py`."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
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
    arrays = with_truth_values(case, [*work.inputs, output], np.bool_)
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
    functions = functions_of(case, name, module)
    outputs = [arrays[-1] if dtype == arrays[-1].dtype else np.empty(output.shape, dtype) for *_, dtype in functions]
    given = arrays[:-1]
    if name == "torch":
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of what is broadcast, and only read
            given, outputs = ([module.from_numpy(each) for each in side] for side in (given, outputs))
    last: list[Any] = []

    def run() -> None:
        last.clear()
        last.append(in_turn(functions, given, outputs))

    return Peer(run, lambda: np.asarray(last[0]).view(ours.dtype), ours)


def functions_of(case: ElementWise, name: str, module: Any) -> list[tuple[Callable[..., Any], int, np.dtype[Any]]]:
    """The library's function for each operator of a chain, how many operands it takes beside the result of the one
    before, and NumPy's type of its own result.

    Raises:
        Absent: it has none for one of them.
    """
    functions = []
    for step, types in zip(case.steps, case.types(), strict=True):
        found = array_function(name, module, step)
        if found is None:
            raise Absent(f"no function of one call for {step.operator}")
        *_, result = types
        dtype = np.dtype(bool if is_truth(step.operator, result) and types[result] == "uint8" else types[result])
        functions.append((found, len(types) - 2, dtype))
    return functions


def in_turn(
    functions: Sequence[tuple[Callable[..., Any], int, Any]], given: Sequence[Any], outputs: Sequence[Any]
) -> Any:
    """What the last function gives: each writes into its output."""
    result, *rest = given
    for (function, others, _), target in zip(functions, outputs, strict=True):
        result = function(result, *[rest.pop(0) for _ in range(others)], target)
    return result


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


def with_truth_values(case: ElementWise, arrays: Sequence[Any], truth: Any) -> list[Any]:
    """Bytes that hold truth values as arrays of the library's type for such, the inputs of all steps and the output."""
    places = [
        (step.operator, tensor, types[tensor])
        for i, (step, types) in enumerate(zip(case.steps, case.types(), strict=True))
        for tensor in [*types][min(i, 1) : -1]
    ]
    last = case.types()[-1]
    output = [*last][-1]
    places.append((case.steps[-1].operator, output, last[output]))
    return [
        array.view(truth) if dtype == "uint8" and is_truth(operator, tensor) else array
        for (operator, tensor, dtype), array in zip(places, arrays, strict=True)
    ]


def _packed(array: Array) -> Array:
    """Without what is broadcast; one value without dimensions."""
    part = array[tuple(slice(None, None if stride else 1) for stride in array.strides)]
    return part.reshape(()) if part.size == 1 else np.ascontiguousarray(part)
