"""The names of DirectML's that this package does not have, and what rule (F13) of ``validate.py`` says of each."""

from __future__ import annotations

from collections.abc import Iterable

from ..core.enums import OperatorType
from ..core.errors import Violation, closest, violation

STAND_INS = {
    "DML_TENSOR_DESC": "a DML_BUFFER_TENSOR_DESC itself, which has no Type beside it",
    "DML_OPERATOR_DESC": "the operator's own desc, such as DML_JOIN_OPERATOR_DESC, which has no Type beside it",
    "DML_BINDING_DESC": "a DML_BUFFER_BINDING or a DML_BUFFER_ARRAY_BINDING itself, or None",
    "DML_BINDING_TABLE_DESC": "device.create_binding_table(dispatchable), which needs no descriptors",
    "DML_GRAPH_NODE_DESC": "a DML_OPERATOR_GRAPH_NODE_DESC or a DML_CONSTANT_DATA_GRAPH_NODE_DESC itself",
    "DML_GRAPH_EDGE_DESC": "a DML_INPUT_, DML_OUTPUT_ or DML_INTERMEDIATE_GRAPH_EDGE_DESC itself",
    "DML_GRAPH_NODE_TYPE": "the class of the node, which tells its type",
    "DML_GRAPH_EDGE_TYPE": "the list of DML_GRAPH_DESC that the edge stands in, which tells its type",
    "DML_CREATE_DEVICE_FLAGS": "Device(debug=True), which looks at values on a GPU, or Device(strict=True)",
    "DML_FEATURE_QUERY_TENSOR_DATA_TYPE_SUPPORT": "device.check_feature_support(feature, data_type)",
    "DML_FEATURE_DATA_TENSOR_DATA_TYPE_SUPPORT": "what device.check_feature_support returns",
    "DML_FEATURE_QUERY_FEATURE_LEVELS": "device.check_feature_support(feature, levels)",
    "DML_FEATURE_DATA_FEATURE_LEVELS": "what device.check_feature_support returns",
    "DMLCreateDevice": 'Device("cpu") or Device("cuda")',
    "DMLCreateDevice1": 'Device("cpu", feature_level=...)',
    "DMLCalcBufferTensorSize": "DML_BUFFER_TENSOR_DESC(...).TotalTensorSizeInBytes, which is derived",
    "IDMLDevice": "Device",
    "IDMLDevice1": "Device, with compile_graph",
    "IDMLOperator": "what device.create_operator returns",
    "IDMLCompiledOperator": "what device.compile_operator returns",
    "IDMLOperatorInitializer": "what device.create_operator_initializer returns",
    "IDMLBindingTable": "what device.create_binding_table returns",
    "IDMLCommandRecorder": "device.dispatch(dispatchable, bindings)",
}
"""What Python has instead of the header's structs of type and pointer, its interfaces and its functions."""


OTHER_NAMES = {
    "absolute": "abs",
    "arange": "fill_value_sequence",
    **dict.fromkeys(("avg_pool1d", "avg_pool2d", "avg_pool3d", "averagepool"), "average_pooling"),
    **dict.fromkeys(("batch_norm", "batchnormalization"), "batch_normalization"),
    **dict.fromkeys(("cat", "concat", "concatenate", "hstack", "vstack"), "join"),
    **dict.fromkeys(("conv", "conv1d", "conv2d", "conv3d"), "convolution"),
    "cumprod": "cumulative_product",
    "cumsum": "cumulative_summation",
    "div": "divide",
    **dict.fromkeys(("dot", "bmm", "matmul", "mm"), "gemm"),
    "eye": "diagonal_matrix",
    "full": "fill_value_constant",
    "isinf": "is_infinity",
    "isnan": "is_nan",
    **dict.fromkeys(("layer_norm", "layernormalization", "instance_norm"), "mean_variance_normalization"),
    **dict.fromkeys(("max_pool1d", "max_pool2d", "max_pool3d", "maxpool"), "max_pooling"),
    "maximum": "max",
    "minimum": "min",
    "mul": "multiply",
    "nonzero": "nonzero_coordinates",
    "pad": "padding",
    "power": "pow",
    "prod": 'reduce(x, "multiply")',
    "sub": "subtract",
    "sum": 'reduce(x, "sum")',
    "take": "gather",
    "take_along_axis": "gather_elements",
    "topk": "top_k",
}
"""What NumPy, PyTorch and ONNX call functions, and what they are here."""


def of_desc(name: str) -> OperatorType | None:
    """The operator that a name is the desc's of, by any of the header's names of it; None where it is no such name."""
    short = name.removeprefix("DML_").removesuffix("_OPERATOR_DESC")
    return OperatorType.__members__.get(short) if name == f"DML_{short}_OPERATOR_DESC" else None


def why_absent(name: str, known: Iterable[str]) -> Violation | None:
    """Rule (F13) of a name that the package does not have; None where it is no name of DirectML's.

    Args:
        name: the name: ``DML_TENSOR_DESC``, ``one_hott``.
        known: the names of the package.
    """
    if name in STAND_INS:
        return _absent(name, "a name that Python has no use for", STAND_INS[name])
    if name.startswith(("DML_", "IDML")):
        remedy = _like_desc(name) or closest(name, known)
        return _absent(name, "no such name", "a name of DirectML's that this version has", remedy)
    if name in OTHER_NAMES:
        remedy = f"It is anydml.{OTHER_NAMES[name]} here"
        return _absent(name, "another library's name", "a function by its name of DirectMLX", remedy)
    return None


def _like_desc(name: str) -> str:
    """As a remedy, the desc of the shortest operator that has the word of a desc's name in it; "" where none has."""
    word = name.removeprefix("DML_").removesuffix("_OPERATOR_DESC")
    having = [each for each in OperatorType.__members__ if word in each]
    is_desc = len(word) > 2 and name == f"DML_{word}_OPERATOR_DESC"
    return f"Did you mean DML_{min(having, key=len)}_OPERATOR_DESC?" if is_desc and having else ""


def _absent(name: str, found: str, expected: str, remedy: str = "") -> Violation:
    return violation("anydml", "(F13)", name, found, expected, remedy, kind="attribute")
