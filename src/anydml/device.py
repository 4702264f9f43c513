"""Devices, and an operator's life on one: create, compile, initialise, bind, dispatch.

(D1) A device has one of the names that ``Device`` lists.
(D2) Objects of one device do not meet another's.
(D3) An initializer is dispatched once; a compiled operator is dispatched after it.
(D4) Execution flags are ExecutionFlags.
(D5) A feature is asked for as ``check_feature_support`` says.
(D6) There is the memory that an engine works in.
(D7) A GPU is one that PyTorch and Triton, which are installed, reach.
(D8) An operator of a GPU has a kernel there.
(D9) An operator is compiled before a graph is captured that has it, not while.

In DirectML a mistake in a method without a return value removes the device. Here it raises, and the device stays.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .core.annotations import unquoted
from .core.enums import ExecutionFlags, Feature, FeatureLevel, HResult, TensorDataType
from .core.errors import kind_of, listing, refuse
from .operators.schema import OperatorDesc
from .runtime.binding import BindingTable
from .runtime.compiled import (
    Compiled,
    CompiledOperator,
    DeviceObject,
    Operator,
    check_flags,
)
from .runtime.context import Context
from .runtime.initializer import Dispatchable, OperatorInitializer

if TYPE_CHECKING:
    from .graph.compile import CompiledGraph
    from .graph.desc import DML_GRAPH_DESC


@unquoted
class Device(Context):
    """A place to run operators. Thread-safe.

    Args:
        name: "cpu" for native code, "reference" for every operator's reference in NumPy, "cuda" or "cuda:1" for a GPU
            of NVIDIA or AMD, "xpu" for one of Intel, as PyTorch names them; or a torch.device.
        feature_level: the level whose support tables hold, or its number, such as "5.0".
        strict: whether DirectML's own limits hold too: 2^32 - 1 elements and 4 GiB for a tensor, and pooling's output
            sizes rounded down.
        debug: whether a GPU, too, is asked for values that break a rule, which means to wait for it.

    Raises:
        DMLError: (D1), (D7) or (F7), with DXGI_ERROR_UNSUPPORTED; (F3).

    >>> import numpy as np
    >>> from anydml import *
    >>> tensor = DML_BUFFER_TENSOR_DESC(DataType=TensorDataType.FLOAT32, Sizes=(1, 1, 1, 4))
    >>> device = Device("cpu")
    >>> operator = device.create_operator(DML_CUMULATIVE_PRODUCT_OPERATOR_DESC(
    ...     InputTensor=tensor, OutputTensor=tensor, Axis=3))
    >>> x = np.array([[[[2, 4, 8, 3]]]], np.float32)
    >>> device.compile_operator(operator).dispatch([x], [x])
    >>> x
    array([[[[  2.,   8.,  64., 192.]]]], dtype=float32)
    """

    def create_operator(self, desc: OperatorDesc) -> Operator:
        """Checks a desc against the rules and this device's feature level.

        Raises:
            DMLError: every violation, as :func:`anydml.validate` lists them.
        """
        return Operator.of(self, desc)

    def compile_operator(self, operator: Operator, flags: ExecutionFlags = ExecutionFlags.NONE) -> CompiledOperator:
        """Plans an operator for the sizes and strides in its desc.

        Args:
            operator: of this device.
            flags: ALLOW_HALF_PRECISION_COMPUTATION lets a GPU compute in TF32, as ExecutionFlags tells; the others are
                accepted, and no engine here needs them.
        """
        self._owns("compile_operator", operator, Operator)
        check_flags("compile_operator", flags)
        return CompiledOperator(operator, flags)

    def compile_graph(self, desc: DML_GRAPH_DESC, flags: ExecutionFlags = ExecutionFlags.NONE) -> CompiledGraph:
        """Plans a graph: folds what is constant, fuses activations, chains element-wise operators, lays out the memory.

        Args:
            desc: the graph, of operators of this device.
            flags: as for :meth:`compile_operator`.

        Raises:
            DMLError: (G1) to (G8), (D4).
        """
        # On first use, as most never use graphs.
        from .graph.compile import compile_graph

        return compile_graph(self, desc, flags)

    def create_operator_initializer(self, operators: Sequence[Compiled]) -> OperatorInitializer:
        """What initialises compiled operators and graphs of this device, once."""
        if not isinstance(operators, (list, tuple)):
            expected = "a list of CompiledOperator"
            refuse("create_operator_initializer", "(D2)", "", kind_of(operators), expected)
        compiled = list(operators)
        for operator in compiled:
            self._owns("create_operator_initializer", operator, Compiled)
        return OperatorInitializer(self, compiled)

    def create_binding_table(self, dispatchable: Dispatchable) -> BindingTable:
        """What holds the bindings of an initializer or a compiled operator."""
        self._owns("create_binding_table", dispatchable, OperatorInitializer, Compiled)
        return BindingTable(dispatchable)

    def dispatch(self, dispatchable: Dispatchable, bindings: BindingTable) -> None:
        """Runs an initializer or a compiled operator, as RecordDispatch and ExecuteCommandLists do.

        Raises:
            DMLError: (B1) to (B9), (D2), (D3), and what the operator demands of values. Nothing is written then.
        """
        self._owns("dispatch", dispatchable, OperatorInitializer, Compiled)
        if not isinstance(bindings, BindingTable) or bindings.dispatchable is not dispatchable:
            refuse("dispatch", "(D2)", "bindings", kind_of(bindings), "the table of this dispatchable")
        dispatchable._dispatch_table(bindings)

    def check_feature_support(self, feature: Feature, query: Any) -> bool | FeatureLevel:
        """Whether a data type is there, or which of the given feature levels is the highest that is.

        Args:
            feature: TENSOR_DATA_TYPE_SUPPORT with a TensorDataType, or FEATURE_LEVELS with FeatureLevels.

        Raises:
            DMLError: DXGI_ERROR_UNSUPPORTED where no level is there.

        >>> Device().check_feature_support(Feature.TENSOR_DATA_TYPE_SUPPORT, TensorDataType.FLOAT16)
        True
        """
        if feature == Feature.TENSOR_DATA_TYPE_SUPPORT and isinstance(query, TensorDataType):
            four_bit = query in (TensorDataType.UINT4, TensorDataType.INT4)
            since = FeatureLevel.LEVEL_6_3 if four_bit else FeatureLevel.LEVEL_1_0
            return query != TensorDataType.UNKNOWN and self.feature_level >= since
        if feature == Feature.FEATURE_LEVELS and isinstance(query, (list, tuple)):
            levels = [level for level in query if level in FeatureLevel.__members__.values()]
            there = [level for level in levels if level <= self.feature_level]
            if there:
                return FeatureLevel(max(there))
            expected = f"a level up to {self.feature_level.number}"
            refuse(
                "check_feature_support",
                "(D5)",
                "query",
                kind_of(query),
                expected,
                hresult=HResult.DXGI_ERROR_UNSUPPORTED,
            )
        expected = "TENSOR_DATA_TYPE_SUPPORT with a TensorDataType, or FEATURE_LEVELS with a list of FeatureLevel"
        found = f"{kind_of(feature)} with {kind_of(query)}"
        refuse("check_feature_support", "(D5)", "feature", found, expected)

    def _owns(self, method: str, child: object, *kinds: type[DeviceObject]) -> None:
        if not isinstance(child, kinds):
            expected = listing(kind.noun or kind.__name__ for kind in kinds)
            refuse(method, "(D2)", "", kind_of(child), expected, kind="type")
        if child.device is not self:
            found = f"an object of another device, {child.device}"
            refuse(method, "(D2)", "", found, f"one of this device, {self}")
