"""Operator initializers, which fill the persistent resources of what is compiled."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from ..core.annotations import unquoted
from ..core.enums import DML_PERSISTENT_BUFFER_ALIGNMENT
from ..core.errors import Violation, error, kind_of, refuse
from ..core.memory import address
from ..core.strided_layout import Array
from .binding import (
    DML_BUFFER_ARRAY_BINDING,
    BindingTable,
    Bound,
    bind,
    bind_range,
    check_range,
    check_sharing,
)
from .compiled import BindingProperties, Compiled, DeviceObject
from .slots import Slot

if TYPE_CHECKING:
    from .context import Context


@unquoted
class OperatorInitializer(DeviceObject):
    """Initialises compiled operators and graphs, once: copies what is OWNED_BY_DML into their persistent resources.

    Its table binds as inputs, for each operator, a DML_BUFFER_ARRAY_BINDING with a binding for each of the operator's
    inputs (None for those not owned), or None where nothing is owned; and as outputs, for each operator, its persistent
    resource, or None where it needs none.
    """

    def __init__(self, device: Context, operators: Sequence[Compiled]) -> None:
        super().__init__(device)
        self._operators = operators
        self._dispatched = False
        self._lock = Lock()

    def binding_properties(self) -> BindingProperties:
        """What has to be bound for the dispatch."""
        return BindingProperties(2 * len(self._operators), 0, 0)

    def _dispatch_table(self, table: BindingTable) -> None:
        with self._lock:
            if self._dispatched:
                found = "an initializer that was dispatched before"
                refuse("OperatorInitializer", "(D3)", "", found, "one dispatch of each initializer")
            for side, given in (("bind_inputs", table.inputs), ("bind_outputs", table.outputs)):
                count = len(self._operators)
                if given is not None and len(given) != count:
                    expected = f"{count}, one for each operator"
                    refuse("OperatorInitializer", "(B1)", side, str(len(given)), expected)
            plans = [self._plan(operator, i, table) for i, operator in enumerate(self._operators)]
            self._check_sharing(plans)
            for operator, plan in zip(self._operators, plans, strict=True):
                operator._fill(*plan)
            self._dispatched = True

    def _check_sharing(self, plans: Sequence[tuple[list[Bound | None], Array, int]]) -> None:
        """Rules (B7) and (B8), for persistent resources and what they are filled from."""
        read = [bound for owned, _, _ in plans for bound in owned if bound is not None]
        written = []
        for i, (operator, (_, memory, offset)) in enumerate(zip(self._operators, plans, strict=True)):
            start = address(memory) + offset
            slot = Slot(f"bind_outputs[{i}]", None, None, None, True)
            written.append(Bound(slot, memory, start, start + operator._persistent_size))
        shared = check_sharing("OperatorInitializer", False, read, written)
        if shared:
            raise error(shared)

    @staticmethod
    def _plan(operator: Compiled, i: int, table: BindingTable) -> tuple[list[Bound | None], Array, int]:
        """All that can be wrong is found before anything is written."""
        name, size = operator.name, operator._persistent_size
        if not size:
            return [], np.empty(0, np.uint8), 0
        array = table.inputs[i] if table.inputs is not None else None
        if not isinstance(array, DML_BUFFER_ARRAY_BINDING):
            expected = "a DML_BUFFER_ARRAY_BINDING with the inputs that are OWNED_BY_DML"
            refuse(name, "(B2)", f"bind_inputs[{i}]", kind_of(array), expected)
        side = f"bind_inputs[{i}].Bindings", operator._inputs, array.Bindings
        (owned,) = bind(operator.device.memory, name, [side], True, bind_range)
        resource = table.outputs[i] if table.outputs is not None else None
        where = f"bind_outputs[{i}]"
        place = check_range(operator.device.memory, name, where, resource, size, DML_PERSISTENT_BUFFER_ALIGNMENT, True)
        if isinstance(place, Violation):
            raise error([place])
        return owned, *place


Dispatchable: TypeAlias = Compiled | OperatorInitializer
