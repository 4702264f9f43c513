"""anydml: DirectML's operators on any machine.

Descs and devices carry the names of directml.h; functions take and give arrays::

    >>> import anydml
    >>> anydml.cumulative_product([2, 4, 8, 3])
    array([  2,   8,  64, 192])

``anydml.operators.OPERATORS`` lists the operators, ``anydml ops NAME`` in a shell prints what one does.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

from .core import errors as errors
from .core.enums import (
    DML_MINIMUM_BUFFER_TENSOR_ALIGNMENT,
    DML_PERSISTENT_BUFFER_ALIGNMENT,
    DML_TEMPORARY_BUFFER_ALIGNMENT,
    DML_TENSOR_DIMENSION_COUNT_MAX,
    DML_TENSOR_DIMENSION_COUNT_MAX1,
    TYPE_NAMES,
    AxisDirection,
    BindingType,
    ConvolutionDirection,
    ConvolutionMode,
    DepthSpaceOrder,
    ExecutionFlags,
    Feature,
    FeatureLevel,
    HResult,
    InterpolationMode,
    IsInfinityMode,
    MatrixTransform,
    MultiheadAttentionMaskType,
    OperatorType,
    PaddingMode,
    QuantizationType,
    RandomGeneratorType,
    RecurrentNetworkDirection,
    ReduceFunction,
    RoundingMode,
    TensorDataType,
    TensorFlags,
    TensorType,
    named,
)
from .core.errors import DMLAttributeError, DMLError, DMLMemoryError, DMLTypeError, DMLValueError, Violation, error
from .functions import ALIASES, BUILTINS, FUNCTIONS
from .operators import OPERATORS, spec
from .operators.header_names import of_desc, why_absent

if TYPE_CHECKING:
    from ._generated import *  # noqa: F403
    from .core.packed_array import PackedArray
    from .core.tensor_desc import DML_BUFFER_TENSOR_DESC, DML_SCALAR_UNION, DML_SCALE_BIAS, DML_SIZE_2D
    from .device import Device
    from .frontends.directmlx import Expression, Graph
    from .frontends.tracing import compile as compile
    from .graph.compile import CompiledGraph
    from .graph.desc import (
        DML_CONSTANT_DATA_GRAPH_NODE_DESC,
        DML_GRAPH_DESC,
        DML_INPUT_GRAPH_EDGE_DESC,
        DML_INTERMEDIATE_GRAPH_EDGE_DESC,
        DML_OPERATOR_GRAPH_NODE_DESC,
        DML_OUTPUT_GRAPH_EDGE_DESC,
    )
    from .operators.validate import validate
    from .runtime.binding import DML_BUFFER_ARRAY_BINDING, DML_BUFFER_BINDING, BindingTable
    from .runtime.compiled import BindingProperties, CompiledOperator, Operator
    from .runtime.initializer import OperatorInitializer

    __version__: str
    DML_BINDING_PROPERTIES = BindingProperties
    """The header's name; those of enums and of their members, such as DML_TENSOR_DATA_TYPE_FLOAT32, are there too."""

__all__ = [
    "DML_BINDING_PROPERTIES",
    "DML_BUFFER_ARRAY_BINDING",
    "DML_BUFFER_BINDING",
    "DML_BUFFER_TENSOR_DESC",
    "DML_CONSTANT_DATA_GRAPH_NODE_DESC",
    "DML_GRAPH_DESC",
    "DML_INPUT_GRAPH_EDGE_DESC",
    "DML_INTERMEDIATE_GRAPH_EDGE_DESC",
    "DML_MINIMUM_BUFFER_TENSOR_ALIGNMENT",
    "DML_OPERATOR_GRAPH_NODE_DESC",
    "DML_OUTPUT_GRAPH_EDGE_DESC",
    "DML_PERSISTENT_BUFFER_ALIGNMENT",
    "DML_SCALAR_UNION",
    "DML_SCALE_BIAS",
    "DML_SIZE_2D",
    "DML_TEMPORARY_BUFFER_ALIGNMENT",
    "DML_TENSOR_DIMENSION_COUNT_MAX",
    "DML_TENSOR_DIMENSION_COUNT_MAX1",
    "AxisDirection",
    "BindingProperties",
    "BindingTable",
    "BindingType",
    "CompiledGraph",
    "CompiledOperator",
    "ConvolutionDirection",
    "ConvolutionMode",
    "DMLAttributeError",
    "DMLError",
    "DMLMemoryError",
    "DMLTypeError",
    "DMLValueError",
    "DepthSpaceOrder",
    "Device",
    "ExecutionFlags",
    "Expression",
    "Feature",
    "FeatureLevel",
    "Graph",
    "HResult",
    "InterpolationMode",
    "IsInfinityMode",
    "MatrixTransform",
    "MultiheadAttentionMaskType",
    "Operator",
    "OperatorInitializer",
    "OperatorType",
    "PackedArray",
    "PaddingMode",
    "QuantizationType",
    "RandomGeneratorType",
    "RoundingMode",
    "RecurrentNetworkDirection",
    "ReduceFunction",
    "TensorDataType",
    "TensorFlags",
    "TensorType",
    "Violation",
    "validate",
    *TYPE_NAMES,
    *(f"DML_{name}_OPERATOR_DESC" for name in OPERATORS),
    *(name for name in FUNCTIONS if name not in BUILTINS),
    *ALIASES,
]


_FILES = {
    "core.packed_array": ("PackedArray",),
    "core.tensor_desc": ("DML_BUFFER_TENSOR_DESC", "DML_SCALAR_UNION", "DML_SCALE_BIAS", "DML_SIZE_2D"),
    "device": ("Device",),
    "frontends.directmlx": ("Expression", "Graph"),
    "frontends.tracing": ("compile",),
    "graph.compile": ("CompiledGraph",),
    "graph.desc": tuple(name for name in __all__ if name.startswith("DML_") and "_GRAPH_" in name),
    "operators.validate": ("validate",),
    "runtime.binding": ("BindingTable", "DML_BUFFER_ARRAY_BINDING", "DML_BUFFER_BINDING"),
    "runtime.compiled": ("BindingProperties", "CompiledOperator", "Operator"),
    "runtime.initializer": ("OperatorInitializer",),
}
_ELSEWHERE = {
    **{name: file for file, names in _FILES.items() for name in names},
    **{name: f"functions.{file}" for name, file in {**FUNCTIONS, **ALIASES}.items()},
}
"""Names that are loaded on first use, by their modules: importing the package costs little beside importing NumPy."""
_MODULES = ("device", "draw", "onnx", "runtime")
"""Those that are attributes before anything has loaded them, as all that is loaded is."""


def _version() -> str:
    """The version that the package was built as: that of the tag, or one between two tags."""
    try:
        version: str = import_module("._version", __name__).version
    except ModuleNotFoundError:
        return "0+unbuilt"  # the sources as they lie
    return version


if not TYPE_CHECKING:  # for whom every name would be there

    def __getattr__(name: str) -> Any:
        if name in _ELSEWHERE:
            # Kept, as a function may be called often.
            return globals().setdefault(name, getattr(import_module(f".{_ELSEWHERE[name]}", __name__), name))
        if name == "DML_BINDING_PROPERTIES":
            return __getattr__("BindingProperties")
        if name == "__version__":
            return globals().setdefault(name, _version())
        if name in _MODULES:
            try:
                return import_module(f".{name}", __name__)
            except ModuleNotFoundError as problem:  # of a package that anydml.onnx takes
                raise AttributeError(str(problem), name=name, obj=sys.modules[__name__]) from problem
        operator = of_desc(name)
        if operator is not None and operator.name in OPERATORS:
            return spec(operator.name).desc
        found = named(name)
        if found is not None:
            return found
        absent = why_absent(name, __dir__())
        if absent is not None:
            raise error([absent])
        raise AttributeError(f"module 'anydml' has no attribute {name!r}", name=name, obj=sys.modules[__name__])


def __dir__() -> list[str]:
    return sorted({"__version__", "errors", *__all__, *_ELSEWHERE})
