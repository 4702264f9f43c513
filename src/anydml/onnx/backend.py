"""ONNX's backend interface: ``prepare``, ``run_model``, ``run_node``, ``supports_device``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx
from onnx.backend.base import Backend, BackendRep, DeviceType
from onnx.backend.base import Device as BackendDevice

from ..frontends.onnx.session import InferenceSession
from .comparing import with_types


class AnydmlRep(BackendRep):
    """A model that is ready to run."""

    def __init__(self, session: InferenceSession) -> None:
        self.session = session

    def run(self, inputs: Any, **options: Any) -> tuple[Any, ...]:
        """Runs the model.

        Args:
            inputs: arrays in the order of the model's inputs, or by their names; one array for one input.
            options: none is known.
        """
        if not isinstance(inputs, dict):
            given = inputs if isinstance(inputs, (list, tuple)) else [inputs]
            names = [each.name for each in self.session.get_inputs()]
            inputs = dict(zip(names, given, strict=False))
        return tuple(self.session.run(None, inputs))


class AnydmlBackend(Backend):
    """DirectML's operators as a backend of ONNX."""

    @classmethod
    def prepare(cls, model: Any, device: str = "CPU", **options: Any) -> AnydmlRep:
        """A model that is ready to run.

        Args:
            model: a ModelProto, bytes or a path.
            device: "CPU", or "CUDA" with a number as in "CUDA:1".
            options: as :class:`anydml.onnx.InferenceSession` has them.
        """
        return AnydmlRep(InferenceSession(model, device=_name_of(device), **options))

    @classmethod
    def run_model(cls, model: Any, inputs: Any, device: str = "CPU", **options: Any) -> tuple[Any, ...]:
        """Runs a model once."""
        return cls.prepare(model, device, **options).run(inputs)

    @classmethod
    def run_node(
        cls,
        node: onnx.NodeProto,
        inputs: Any,
        device: str = "CPU",
        outputs_info: Sequence[Any] | None = None,
        **options: Any,
    ) -> tuple[Any, ...]:
        """Runs a node on arrays; options are those of :meth:`prepare`, and ``opset_version``."""
        import numpy as np

        version = options.pop("opset_version", onnx.defs.onnx_opset_version())
        given = inputs if isinstance(inputs, (list, tuple)) else [inputs]
        arrays = dict(zip([name for name in node.input if name], map(np.asarray, given), strict=True))
        infos = [
            onnx.helper.make_tensor_value_info(name, onnx.helper.np_dtype_to_tensor_dtype(each.dtype), each.shape)
            for name, each in arrays.items()
        ]
        outputs = [onnx.ValueInfoProto(name=name) for name in node.output if name]
        graph = onnx.helper.make_graph([node], "node", infos, outputs)
        imports = [onnx.helper.make_opsetid(node.domain, version)]
        model = onnx.helper.make_model(graph, opset_imports=imports)
        model = with_types(onnx.shape_inference.infer_shapes(model))
        return cls.run_model(model, arrays, device, **options)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Whether there is such a device here."""
        from ..device import Device

        try:
            Device(_name_of(device))
        except (ValueError, TypeError):
            return False
        return True


def _name_of(device: str) -> str:
    found = BackendDevice(device)
    return "cpu" if found.type == DeviceType.CPU else f"cuda:{found.device_id}"


prepare = AnydmlBackend.prepare
run_model = AnydmlBackend.run_model
run_node = AnydmlBackend.run_node
supports_device = AnydmlBackend.supports_device
