"""The engine of Triton kernels and calls of PyTorch over its tensors, for every device that both reach."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from importlib import import_module
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeAlias

from ...core.errors import refuse
from ...core.strided_layout import Layout
from ...operators.pointwise_chain import PointwiseChain
from ...operators.schema import OperatorDesc, OperatorSpec
from ..base import Declined, GivingRun, Kernel, Run, TryRun
from ..torch import lowering as calls
from ..torch.devices import is_interpreted

if TYPE_CHECKING:
    import torch

    from .launch import Planned

Plan: TypeAlias = (
    "Callable[[OperatorSpec, OperatorDesc, Sequence[Layout | None], Sequence[Layout], str], Planned | Declined]"
)

KERNELS = {
    "JOIN": ".join.plan",
    "CUMULATIVE_SUMMATION": ".scan.plan",
    "CUMULATIVE_PRODUCT": ".scan.plan",
    "QUANTIZED_LINEAR_AVERAGE_POOLING": ".pooling.quantized",
    **dict.fromkeys(("AVERAGE_POOLING", "AVERAGE_POOLING1", "LP_POOLING", "LP_POOLING1"), ".pooling.plan"),
    **dict.fromkeys(("MAX_POOLING", "MAX_POOLING1", "MAX_POOLING2"), ".pooling.plan"),
    **dict.fromkeys(("AVERAGE_POOLING_GRAD", "MAX_POOLING_GRAD"), ".pooling.gradient"),
    "ADAM_OPTIMIZER": ".pointwise.plan",
    "DYNAMIC_QUANTIZE_LINEAR": ".quantizing.plan",
    **dict.fromkeys(("QUANTIZE", "DEQUANTIZE"), ".quantizing.blocks"),
    "BATCH_NORMALIZATION": ".normalization.plan",
    **dict.fromkeys(("CONVOLUTION", "CONVOLUTION_ADD_RELU"), ".convolution.plan"),
    "PRODUCT_ATTENTION": ".attention.plan",
    **dict.fromkeys(("REDUCE", "ARGMIN", "ARGMAX"), ".reduction.plan"),
    **dict.fromkeys(
        [f"ACTIVATION_{name}{n}" for name in ("SOFTMAX", "LOG_SOFTMAX", "HARDMAX") for n in ("", "1")],
        ".normalization.lines",
    ),
    **dict.fromkeys([f"MEAN_VARIANCE_NORMALIZATION{n}" for n in ("", "1", "2")], ".normalization.lines"),
    "LP_NORMALIZATION": ".normalization.lines",
    **dict.fromkeys(("SLICE", "SLICE1", "SLICE_GRAD", "SPLIT", "TILE", "PADDING", "PADDING1"), ".movement.plan"),
    **dict.fromkeys(("DEPTH_TO_SPACE", "DEPTH_TO_SPACE1", "SPACE_TO_DEPTH", "SPACE_TO_DEPTH1"), ".movement.plan"),
    **dict.fromkeys(("GATHER", "GATHER_ELEMENTS", "GATHER_ND", "GATHER_ND1"), ".movement.plan"),
    **dict.fromkeys(("FILL_VALUE_CONSTANT", "CAST"), ".movement.plan"),
    **dict.fromkeys(("ONE_HOT", "DIAGONAL_MATRIX", "DIAGONAL_MATRIX1", "REVERSE_SUBSEQUENCES"), ".movement.placed"),
    **dict.fromkeys(("SCATTER_ELEMENTS", "SCATTER_ND", "MAX_UNPOOLING"), ".movement.scattered"),
    **dict.fromkeys(("FILL_VALUE_SEQUENCE", "RANDOM_GENERATOR", "VALUE_SCALE_2D"), ".pointwise.counted"),
    **dict.fromkeys(("RESAMPLE", "RESAMPLE1", "RESAMPLE2", "RESAMPLE3", "UPSAMPLE_2D"), ".resampling.plan"),
    **dict.fromkeys(("RESAMPLE_GRAD", "RESAMPLE_GRAD1"), ".resampling.plan"),
    **dict.fromkeys(("ROI_ALIGN", "ROI_ALIGN1", "ROI_POOLING"), ".regions.plan"),
    "ROI_ALIGN_GRAD": ".regions.gradient",
    **dict.fromkeys(
        [f"BATCH_NORMALIZATION_{name}" for name in ("TRAINING", "TRAINING_GRAD", "GRAD")], ".training.plan"
    ),
    **dict.fromkeys(("LOCAL_RESPONSE_NORMALIZATION", "LOCAL_RESPONSE_NORMALIZATION_GRAD"), ".windows.local"),
    **dict.fromkeys(("FOLD", "UNFOLD"), ".windows.plan"),
    **dict.fromkeys(("TOP_K", "TOP_K1", "NONZERO_COORDINATES"), ".selection.plan"),
}
"""The module whose `plan` plans an operator's kernels; all others, and what it declines, are calls of PyTorch."""

POINTWISE = ".pointwise.plan"
"""Likewise of all pointwise operators, and of chains of them."""

REDUCED = {
    **KERNELS,
    **dict.fromkeys(("CONVOLUTION", "CONVOLUTION_ADD_RELU", "GEMM", "PRODUCT_ATTENTION"), ".tf32"),
}
"""Likewise where TF32 is allowed."""


class GpuEngine:
    """`device` is PyTorch's, where kernels run; its CPU in Triton's interpreter. `allow_tf32` is about CONVOLUTION,
    GEMM and attention."""

    fuses_pointwise = True

    def __init__(self, name: str, device: torch.device, allow_tf32: bool = False) -> None:
        self.name = name
        self.device = device
        self._allow_tf32 = allow_tf32

    def compile(
        self,
        spec: OperatorSpec,
        desc: OperatorDesc,
        inputs: Sequence[Layout | None],
        outputs: Sequence[Layout | None],
    ) -> Kernel | Declined:
        import torch

        from ..torch.replay import replayed
        from ..torch.tensors import stream_key_of

        if stream_key_of(self.device) is None:
            refuse(
                spec.name,
                "(D9)",
                "",
                "to be compiled while a graph is captured",
                "an operator compiled before",
                "Run it once before the capture",
            )
        planned = self._planned(spec, desc, inputs, outputs)
        if isinstance(planned, Declined):
            return planned
        run = self._there(planned.run)
        prepare = planned.prepare
        dtype = next((layout.dtype for layout in outputs if layout is not None), None)

        def prepare_arrays(inputs: Sequence[Any]) -> Run | None:
            assert prepare is not None
            with self._current():
                ready = prepare(_tensors(inputs))
                if self.device.type != "cpu" and stream_key_of(self.device) is not None:
                    # Waited for, so that every stream may read it.
                    getattr(torch, self.device.type).current_stream(self.device).synchronize()
            return None if ready is None else self._of_arrays(planned, ready, dtype)

        run_at = planned.run_at and self._there(planned.run_at)

        again = None if planned.launches or run_at else replayed(run, self.device, inputs, outputs)
        called = again or run

        def run_anywhere(inputs: Sequence[Any], outputs: Sequence[Any], places: bytes) -> None:
            called(inputs, outputs)

        quick = self._try_run(called, run_at, inputs, outputs)
        return Kernel(
            planned.description,
            self._of_arrays(planned, planned.run, dtype),
            quick,
            prepare and prepare_arrays,
            run_at=run_at or run_anywhere,
            channels_last=planned.channels_last,
            gives=planned.gives,
        )

    def _planned(
        self,
        spec: OperatorSpec,
        desc: OperatorDesc,
        inputs: Sequence[Layout | None],
        outputs: Sequence[Layout | None],
    ) -> Planned | Declined:
        modules = REDUCED if self._allow_tf32 else KERNELS
        is_pointwise = spec.pointwise is not None or isinstance(desc, PointwiseChain)
        module = modules.get(spec.name, POINTWISE if is_pointwise else None)
        if module is None:
            return self._called(spec, desc, inputs, outputs)
        # On first use, as Triton takes a second to load.
        plan: Plan = import_module(module, __package__).plan
        with self._current():
            written = [layout for layout in outputs if layout is not None]
            planned = plan(spec, desc, inputs, written, str(self.device))
            if isinstance(planned, Declined):
                called = self._called(spec, desc, inputs, outputs)
                return planned if called == Declined(calls.NO_CALLS) else called
            for launch, types in planned.launches:
                launch.compile(self.device, types)
        where = ", in Triton's interpreter" if is_interpreted() else ""
        return planned._replace(description=planned.description + where)

    @staticmethod
    def _called(
        spec: OperatorSpec,
        desc: OperatorDesc,
        inputs: Sequence[Layout | None],
        outputs: Sequence[Layout | None],
    ) -> Planned | Declined:
        from .launch import Planned

        plan = calls.plan(spec, desc, inputs, outputs)
        return plan if isinstance(plan, Declined) else Planned(*plan)

    def _current(self) -> Any:
        """A context in which the device is PyTorch's current one."""
        import torch

        if self.device.type == "cpu":
            return nullcontext()
        backend = getattr(torch, self.device.type)
        return nullcontext() if backend.current_device() == self.device.index else backend.device(self.device)

    def _there(self, run: Callable[..., Any]) -> Callable[..., Any]:
        """`run` while the device is PyTorch's current one, with no context where it is already."""
        import torch

        backend, device, index = getattr(torch, self.device.type), self.device, self.device.index
        if self.device.type == "cpu" or backend.device_count() == 1:
            return run

        def run_there(*given: Any) -> Any:
            if backend.current_device() == index:
                return run(*given)
            with backend.device(device):
                return run(*given)

        return run_there

    def _of_arrays(self, planned: Planned, run: Any, dtype: Any) -> Run:
        """A run, given or prepared, on arrays."""
        there = self._there(run)

        def run_arrays(inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
            there(_tensors(inputs), _tensors(outputs))

        return _Giving(run_arrays, self._there(run.give), dtype) if planned.gives else run_arrays

    def _try_run(
        self,
        run: Callable[..., None],
        run_at: Callable[..., None] | None,
        inputs: Sequence[Layout | None],
        outputs: Sequence[Layout | None],
    ) -> TryRun | None:
        """`run` where all tensors, of which there may be hundreds, are seen to fit by one native call."""
        import torch

        try:
            from ..._native import DeviceLayoutMatcher
        except ImportError:
            return None
        kind, index = torch.empty(0, device=self.device).__dlpack_device__()
        # What DLPack does not tell, and is wrong with a tensor where it is so.
        questions = [attrgetter("requires_grad"), torch.Tensor.is_neg]
        find = DeviceLayoutMatcher(torch.Tensor, inputs, outputs, (int(kind), index), questions).places

        def try_run(inputs: Sequence[Any], outputs: Sequence[Any], in_place: bool) -> bool:
            places = find(inputs, outputs, in_place)
            if places is None:
                return False
            if run_at is None:
                run(inputs, outputs)
            else:
                run_at(inputs, outputs, places)
            return True

        return try_run


def _tensors(arrays: Sequence[Any]) -> list[Any]:
    return [None if each is None else each.tensor for each in arrays]


class _Giving(GivingRun):
    def __init__(self, run: Run, give: Callable[..., Any], dtype: Any) -> None:
        self._run = run
        self._give = give
        self._dtype = dtype

    def __call__(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        self._run(inputs, outputs)

    def give(self, inputs: Sequence[Any]) -> Any:
        from ..torch.memory import TensorArray

        return TensorArray(self._give(_tensors(inputs)), self._dtype)
