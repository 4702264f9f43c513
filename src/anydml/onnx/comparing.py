"""Every value of a model beside what another engine computes for it: where a wrong result comes from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import onnx

from ..core.errors import listing, refuse
from ..frontends.onnx.functions import proto_of
from ..frontends.onnx.model import Model, read
from ..frontends.onnx.node import Node
from ..frontends.onnx.session import InferenceSession

Engine = Callable[[onnx.ModelProto, Mapping[str, Any]], dict[str, Any]]
"""Runs a model: the arrays of its outputs by name."""

TOLERANCES = {"f": 1e-3, "e": 1e-2, "E": 5e-2}
"""By the character of a floating type, and E for bfloat16 and smaller ones, a share of the largest element."""


class Difference(NamedTuple):
    """A value beside another's.

    Attributes:
        node: the label of the node that gives it.
        op: the node's operator.
        value: its name.
        type: its data type and shape.
        error: the largest difference, as a share of the other's largest finite element; of integers and truth values
            the difference itself.
        limit: what `error` may be.
        at: where the largest difference is.
        found: the element there.
        expected: the other's.
        note: what tells types, shapes or engines apart, where no elements were compared.
        own: the error of the node by itself, fed with the other's values; None where that was not measured.
    """

    node: str
    op: str
    value: str
    type: str
    error: float
    limit: float
    at: tuple[int, ...] = ()
    found: Any = None
    expected: Any = None
    note: str = ""
    own: float | None = None

    @property
    def diverges(self) -> bool:
        return not self.error <= self.limit


def compare(
    model: Any,
    ours: Engine,
    other: Engine,
    feeds: Mapping[str, Any],
    *,
    beside: Any = None,
    tolerance: float | None = None,
    progress: Callable[[str, int, int], object] | None = None,
) -> list[Difference]:
    """All values that the nodes of a model give, in the order of the nodes, beside those of another engine.

    Both run a copy of the model that has every value as an output, so nothing is fused across values. The first that
    diverge are also computed by their nodes alone, fed with the other's values: this tells a node that is wrong from
    one that is fed with what is.

    Args:
        model: a path, bytes or a ModelProto.
        ours: what is looked into.
        other: what is taken for right.
        feeds: an array for each input.
        beside: the model that the other runs, with the same names; the same one where None.
        tolerance: what errors may be, in place of `TOLERANCES`.
        progress: takes what is done, how much is, and of how much.

    Raises:
        DMLError: (N1), (N3), and what the engines raise.
    """
    tell = progress or (lambda title, done, total: None)
    first = read(model)
    second = first if beside is None else read(beside)
    names = _values_of(first)
    others = {*names} if second is first else {*names} & {*_values_of(second)}
    if not others:
        refuse("compare", "(N3)", "the other model", "no value of the same name", "names as the model has them")
    names = [name for name in names if name in others]
    tell("this engine", 0, 3)
    found = ours(with_outputs(first, names), feeds)
    tell("the other", 1, 3)
    expected = other(with_outputs(second, names), feeds)
    tell("differences", 2, 3)
    differences = []
    for node in first.nodes:
        for name in (each for each in node.outputs if each in others):
            differences.append(_difference(node, name, found.get(name), expected.get(name), tolerance))
    known = first.constants | expected | dict(feeds)
    return _with_own(differences, first, ours, known, tolerance)


def with_outputs(model: Model, names: Sequence[str]) -> onnx.ModelProto:
    """A copy of a model with these values as its outputs."""
    copy = model.whole()
    types = {each.name: each for each in (*copy.graph.value_info, *copy.graph.output)}
    if any(name not in types for name in names):
        types = {each.name: each for each in _inferred(copy)} | types
    outputs = [onnx.ValueInfoProto(name=name) for name in names]
    for each in outputs:
        # The checker takes an output without a type, but none with a type that lacks a shape.
        if each.name in types and types[each.name].type.tensor_type.HasField("shape"):
            each.CopyFrom(types[each.name])
    del copy.graph.output[:]
    copy.graph.output.extend(outputs)
    return copy


def with_types(model: onnx.ModelProto) -> onnx.ModelProto:
    """A copy of a model whose outputs have types, as the checker wants; those that have none get any, to be unseen."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    for each in copy.graph.output:
        tensor = each.type.tensor_type
        if not each.HasField("type") or (each.type.HasField("tensor_type") and not tensor.HasField("shape")):
            each.CopyFrom(onnx.helper.make_tensor_value_info(each.name, tensor.elem_type or onnx.TensorProto.FLOAT, []))
    return copy


def _inferred(proto: onnx.ModelProto) -> Sequence[onnx.ValueInfoProto]:
    try:
        return list(onnx.shape_inference.infer_shapes(proto).graph.value_info)
    except Exception:  # what is too large for protobuf, or beyond what inference knows, stays without a type
        return []


def _values_of(model: Model) -> list[str]:
    """The values that nodes give, in order; constants are known."""
    return [name for node in model.nodes if node.op != "Constant" for name in node.outputs if name]


def _difference(node: Node, name: str, found: Any, expected: Any, tolerance: float | None) -> Difference:
    if not isinstance(found, np.ndarray) or not isinstance(expected, np.ndarray):
        both = isinstance(found, list) and isinstance(expected, list)
        note = "a sequence, not compared" if both else "no tensor of one of them, not compared"
        return Difference(node.label, node.op, name, "", 0.0, 0.0, note=note)
    kind = f"{found.dtype} {tuple(found.shape)}"
    if found.dtype != expected.dtype or found.shape != expected.shape:
        note = f"{kind} beside {expected.dtype} {tuple(expected.shape)}"
        return Difference(node.label, node.op, name, kind, np.inf, 0.0, note=note)
    error, at = error_of(found, expected)
    limit = _limit(found.dtype, tolerance)
    here, there = (found[at].item(), expected[at].item()) if found.size and found.dtype.kind != "O" else (None, None)
    return Difference(node.label, node.op, name, kind, error, limit, at, here, there)


def _limit(dtype: np.dtype[Any], tolerance: float | None) -> float:
    if dtype.kind in "iub":
        # Quantised values that lie between two numbers are rounded either way.
        return 1.0 if dtype.itemsize == 1 and dtype.kind != "b" else 0.0
    if dtype.kind in "OUST":
        return 0.0
    return (
        tolerance
        if tolerance is not None
        else TOLERANCES.get(dtype.char, TOLERANCES["f" if dtype.kind in "fc" else "E"])
    )


def error_of(found: Any, expected: Any) -> tuple[float, tuple[int, ...]]:
    """The largest difference of two arrays of one type and shape, and where it is.

    Of floats it is a share of the largest finite element of `expected`; a NaN or an infinity in one of them alone is an
    infinite difference.

    >>> error_of(np.array([1.0, 4.5]), np.array([1.0, 4.0]))
    (0.125, (1,))
    """
    if not found.size:
        return 0.0, ()
    if found.dtype.kind in "OUST" or found.dtype.kind == "b":
        differences = (found != expected).astype(np.float64)
    elif found.dtype.kind in "iu":
        differences = np.abs(found.astype(np.float64) - expected.astype(np.float64))
        differences = np.where((differences == 0) & (found != expected), 1.0, differences)
    else:
        wide = np.complex128 if found.dtype.kind == "c" else np.float64
        a, b = found.astype(wide), expected.astype(wide)
        largest = np.max(np.abs(b), initial=0.0, where=np.isfinite(b)) or 1.0
        with np.errstate(invalid="ignore", over="ignore"):
            differences = np.abs(a - b) / largest
        same = (a == b) | (np.isnan(a) & np.isnan(b))
        differences = np.where(same, 0.0, np.where(np.isnan(differences), np.inf, differences))
    at = np.unravel_index(int(np.argmax(differences)), found.shape)
    return float(differences[at]), tuple(map(int, at))


_MOST_ALONE = 8
"""Nodes that are also computed by themselves: the first that diverge."""


def _with_own(
    differences: list[Difference], model: Model, ours: Engine, known: Mapping[str, Any], tolerance: float | None
) -> list[Difference]:
    """The first that diverge, with the errors of their nodes alone."""
    by_output = {name: node for node in model.nodes for name in node.outputs if name}
    left = _MOST_ALONE
    results = []
    for each in differences:
        if each.diverges and left:
            left -= 1
            each = each._replace(own=_error_alone(by_output[each.value], each, model, ours, known, tolerance))
        results.append(each)
    return results


def _error_alone(
    node: Node, difference: Difference, model: Model, ours: Engine, known: Mapping[str, Any], tolerance: float | None
) -> float | None:
    inputs = {name: known[name] for name in node.reads() if name in known}
    if inputs.keys() != node.reads() or not all(isinstance(each, np.ndarray) for each in inputs.values()):
        return None
    proto = onnx.ModelProto()
    proto.CopyFrom(_without_graph(model.proto))
    constants = {name: each for name, each in inputs.items() if name in model.constants}
    infos = [
        onnx.helper.make_tensor_value_info(name, onnx.helper.np_dtype_to_tensor_dtype(each.dtype), each.shape)
        for name, each in inputs.items()
        if name not in constants
    ]
    tensors = [onnx.numpy_helper.from_array(each, name) for name, each in constants.items()]
    outputs = [onnx.ValueInfoProto(name=name) for name in node.outputs if name]
    proto.graph.CopyFrom(onnx.helper.make_graph([proto_of(node)], "node", infos, outputs, tensors))
    try:
        typed = onnx.shape_inference.infer_shapes(proto)
        found = ours(typed, {name: each for name, each in inputs.items() if name not in constants})
    except Exception:  # the node cannot stand alone, which says nothing of its result
        return None
    return _difference(node, difference.value, found.get(difference.value), known[difference.value], tolerance).error


def _without_graph(proto: onnx.ModelProto) -> onnx.ModelProto:
    return onnx.ModelProto(ir_version=proto.ir_version, opset_import=proto.opset_import)


# Engines


def by_anydml(device: Any, fallback: bool = False) -> Engine:
    """A device of this package."""

    def run(model: onnx.ModelProto, feeds: Mapping[str, Any]) -> dict[str, Any]:
        session = InferenceSession(with_types(model), device=device, fallback=fallback)
        names = [each.name for each in session.get_outputs()]
        return dict(zip(names, session.run(None, feeds), strict=True))

    return run


def by_onnxruntime(provider: str = "CPUExecutionProvider", threads: int | None = None) -> Engine:
    """ONNX Runtime, without its own changes of the graph."""
    onnxruntime = onnx_runtime(provider)

    def run(model: onnx.ModelProto, feeds: Mapping[str, Any]) -> dict[str, Any]:
        options = runtime_options(onnxruntime, threads)
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        session = runtime_session(onnxruntime, model, options, provider)
        names = [each.name for each in session.get_outputs()]
        return dict(zip(names, session.run(None, dict(feeds)), strict=True))

    return run


def by_onnx() -> Engine:
    """ONNX's own reference."""

    def run(model: onnx.ModelProto, feeds: Mapping[str, Any]) -> dict[str, Any]:
        from onnx.reference import ReferenceEvaluator

        names = [each.name for each in model.graph.output]
        return dict(zip(names, ReferenceEvaluator(model).run(names, dict(feeds)), strict=True))

    return run


def onnx_runtime(provider: str = "CPUExecutionProvider") -> Any:
    """ONNX Runtime.

    Raises:
        DMLError: (N3), it is not installed, or has no such provider.
    """
    try:
        import onnxruntime
    except ImportError:
        remedy = "pip install onnxruntime"
        refuse("compare", "(N3)", "onnxruntime", "no such package", "ONNX Runtime", remedy)
    there = onnxruntime.get_available_providers()
    if provider not in there:
        refuse("compare", "(N3)", "provider", repr(provider), f"one that ONNX Runtime has here: {listing(there)}")
    return onnxruntime


def runtime_options(onnxruntime: Any, threads: int | None) -> Any:
    """Options of a session on so many threads."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4  # what fails is raised, too
    if threads is not None:
        options.intra_op_num_threads = threads
    return options


def runtime_session(onnxruntime: Any, model: onnx.ModelProto | str, options: Any, provider: str) -> Any:
    """A session of ONNX Runtime's, of a model or its file.

    Raises:
        DMLError: (N2), it does not load the model.
    """
    try:
        source = model if isinstance(model, str) else model.SerializeToString()
        return onnxruntime.InferenceSession(source, options, [provider])
    except Exception as problem:  # its own classes of exceptions are those of its C++ code
        found = " ".join(str(problem).split())[:400]
        refuse("compare", "(N2)", "ONNX Runtime", found, "a model that it runs")
