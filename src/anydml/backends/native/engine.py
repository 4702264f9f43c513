"""The engine of compiled kernels for the CPU, in C++."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.enums import TensorDataType
from ...core.strided_layout import Array, Layout
from ...operators import spec_of
from ...operators.pointwise_chain import PointwiseChain
from ...operators.schema import AttributeValues, OperatorDesc, OperatorSpec
from ..base import BindableRun, Declined, Kernel, Prepare, Run

if TYPE_CHECKING:
    from ..._native import Plan

CHANNELS_LAST = ("CONVOLUTION",)
"""Whose kernels are faster where channels lie last: elsewhere tensors are copied."""
IN_SINGLE_PRECISION = ("CONVOLUTION", "GEMM")
"""Whose results of FLOAT32 are such before an activation, too."""
OVER_INPUT = ("BATCH_NORMALIZATION",)
"""Whose kernels read each element before they write it, and never again."""


class CpuEngine:
    name = "cpu"
    fuses_pointwise = True

    def compile(
        self,
        spec: OperatorSpec,
        desc: OperatorDesc,
        inputs: Sequence[Layout | None],
        outputs: Sequence[Layout | None],
    ) -> Kernel | Declined:
        # On first use, so that anydml works where there is no compiled module for the platform.
        try:
            from ..._native import compile as compile_plan
        except ImportError as error:
            return Declined(f"the compiled module cannot be loaded: {error}")

        name, words = spec.name, ""
        attributes: dict[str, AttributeValues]
        if spec.pointwise is not None or isinstance(desc, PointwiseChain):
            from . import pointwise_lowering

            try:
                program = pointwise_lowering.program_of(desc, [each and each.type for each in inputs])
            except pointwise_lowering.NoLowering as reason:
                return Declined(str(reason))
            attributes = dict(program.attributes)
            if spec.pointwise is not None:
                # Of one element as they are bound, so that a dispatch need not be told how they were broadcast.
                inputs = spec.pointwise.with_scalars_of_one(inputs)
            name, words = "ELEMENT_WISE", f"{program.described()}, "
            if words == "copy, " and len(inputs) == 1:
                from .movement_lowering import copied

                name, attributes = copied(*inputs, *outputs) or (name, attributes)
        else:
            from .lowerings import LOWERINGS

            lowering = LOWERINGS.get(name)
            lowered = None if lowering is None else lowering(desc, inputs, outputs)
            name, attributes = lowered or (name, spec.attributes(desc))
        plan = compile_plan(name, inputs, outputs, attributes)
        if isinstance(plan, str):
            return self._with_activation(spec, desc, inputs, outputs) or Declined(plan)
        return Kernel(
            words + plan.description,
            plan.run,
            plan.try_run,
            partial(_prepared, plan) if plan.prepares else None,
            plan,
            channels_last=name in CHANNELS_LAST,
            checks_values=plan.checks_values,
            may_overwrite_input=name in OVER_INPUT,
        )

    def _with_activation(
        self, spec: OperatorSpec, desc: Any, inputs: Sequence[Layout | None], outputs: Sequence[Layout | None]
    ) -> Kernel | None:
        """A kernel for a convolution or a product whose fused activation its own kernel does not have: that of the
        operator without it, and one of the activation, in place. None where there is no such pair."""
        # Others compute in a wider type than the output's, and round once, behind the activation.
        is_in_its_type = spec.name in IN_SINGLE_PRECISION and desc.OutputTensor.DataType == TensorDataType.FLOAT32
        activation = desc.FusedActivation if is_in_its_type else None
        if spec.name == "GEMM" and desc.OutputTensor.DataType == TensorDataType.FLOAT16:
            return self._wide_with_activation(spec, desc, inputs, outputs)
        if activation is None:
            return None
        inner = self.compile(spec, replace(desc, FusedActivation=None), inputs, outputs)
        outer_spec = spec_of(activation)
        assert outer_spec is not None
        if isinstance(inner, Declined):
            return None
        outer = self.compile(outer_spec, activation, outputs[:1], outputs[:1])
        if isinstance(outer, Declined):
            return None
        return Kernel(
            f"{inner.description}; then {outer.description}",
            partial(_one_then_other, inner.run, outer.run),
            prepare=None if inner.prepare is None else partial(_prepared_then, inner.prepare, outer.run),
            channels_last=inner.channels_last,
        )

    def _wide_with_activation(
        self, spec: OperatorSpec, desc: Any, inputs: Sequence[Layout | None], outputs: Sequence[Layout | None]
    ) -> Kernel | None:
        """As `_with_activation`, of FLOAT16: in single precision up to the activation's results, which are rounded
        then."""
        from ..._native import compile as compile_plan

        activation, (narrow,) = desc.FusedActivation, outputs
        outer_spec = spec_of(activation)
        if outer_spec is None or narrow is None:
            return None
        strides = [4 * prod(narrow.sizes[i + 1 :]) for i in range(len(narrow.sizes))]
        wide = Layout(TensorDataType.FLOAT32, narrow.sizes, tuple(strides))
        inner = self.compile(spec, replace(desc, FusedActivation=None), inputs, [wide])
        outer = self.compile(outer_spec, activation, [wide], [wide])
        last = compile_plan("CAST", [wide], outputs, {})
        if isinstance(inner, Declined) or isinstance(outer, Declined) or isinstance(last, str):
            return None
        words = f"{inner.description}; then {outer.description}; then {last.description}"
        return Kernel(words, partial(_through, wide, inner.run, outer.run, last.run))


def _through(
    wide: Layout, first: Run, second: Run, last: Run, inputs: Sequence[Array | None], outputs: Sequence[Array | None]
) -> None:
    between = [np.empty(wide.sizes, wide.dtype)]
    first(inputs, between)
    second(between, between)
    last(between, outputs)


def _one_then_other(first: Run, second: Run, inputs: Sequence[Array | None], outputs: Sequence[Array | None]) -> None:
    first(inputs, outputs)
    second(outputs[:1], outputs[:1])


def _prepared_then(prepare: Prepare, second: Run, fixed: Sequence[Array | None]) -> BindableRun | None:
    first = prepare(fixed)
    return _PreparedThen(first, second) if isinstance(first, BindableRun) else None


class _PreparedThen(BindableRun):
    def __init__(self, first: BindableRun, second: Run) -> None:
        self._first, self._second = first, second
        self.size = first.size

    def __call__(self, inputs: Sequence[Array | None], outputs: Sequence[Array | None]) -> None:
        _one_then_other(self._first, self._second, inputs, outputs)

    def bound(self, inputs: Sequence[Array | None], outputs: Sequence[Array | None]) -> Callable[[], None]:
        return partial(self, inputs, outputs)


def _prepared(plan: Plan, fixed: Sequence[Array | None]) -> BindableRun | None:
    ready = plan.prepare(fixed)
    return None if ready is None else _Prepared(ready)


class _Prepared(BindableRun):
    def __init__(self, plan: Plan) -> None:
        self._run = plan.run
        self.plan = plan
        self.size = plan.prepared_bytes

    def __call__(self, inputs: Sequence[Array | None], outputs: Sequence[Array | None]) -> None:
        self._run(inputs, outputs)

    def bound(self, inputs: Sequence[Array | None], outputs: Sequence[Array | None]) -> Callable[[], None]:
        return partial(self._run, inputs, outputs)
