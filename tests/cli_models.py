"""What the tests of the command line share: the examples, and models made of cases."""

from __future__ import annotations

import json
import math
from dataclasses import fields
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np

from anydml import DML_BUFFER_TENSOR_DESC, DML_SCALE_BIAS, DML_SIZE_2D
from anydml.core.strided_layout import Layout
from anydml.operators import spec_of
from anydml.operators.schema import OperatorDesc
from cases import Case

ROOT = Path(__file__).parent.parent
EXAMPLES = ROOT / "examples"
SAMPLES = ROOT.parent / "shared" / "dxdispatch"

PRODUCT = str(EXAMPLES / "cumulative_product.json")
SUMMATION = str(EXAMPLES / "cumulative_summation.json")


def _tensor(tensor: DML_BUFFER_TENSOR_DESC) -> dict[str, Any]:
    given = {"DataType": tensor.DataType.name, "Sizes": list(tensor.Sizes)}
    return given if tensor.Strides is None else {**given, "Strides": list(tensor.Strides)}


def _json(value: Any) -> Any:
    """A member of a desc as a model has it."""
    if isinstance(value, DML_BUFFER_TENSOR_DESC):
        return _tensor(value)
    if isinstance(value, (DML_SCALE_BIAS, DML_SIZE_2D, OperatorDesc)):
        found = spec_of(value)
        members = {each.name: _json(getattr(value, each.name)) for each in fields(value)}
        return members if found is None else {"Type": found.name, **members}
    if isinstance(value, tuple):
        return [_json(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value.name if isinstance(value, Enum) else value


def _model_of(case: Case, folder: Path) -> Path:
    """A model that does what a case does, with its tensors in files."""
    found = spec_of(case.desc)
    assert found is not None
    resources: dict[str, Any] = {}
    bindings: dict[str, Any] = {}

    def bind(label: str) -> None:
        member, bracket, _ = label.partition("[")
        if bracket:
            bindings.setdefault(member, []).append(label)
        else:
            bindings[member] = label

    for (label, tensor), array in zip(found.inputs(case.desc), case.inputs, strict=True):
        if tensor is None or array is None:
            continue
        memory = np.zeros(tensor.TotalTensorSizeInBytes or 0, np.uint8)
        Layout.of_desc(tensor).view(memory)[...] = array
        (folder / f"{label}.bin").write_bytes(memory.tobytes())
        resources[label] = {"initialValuesDataType": "UINT8", "initialValues": {"sourcePath": f"{label}.bin"}}
        bind(label)
    outputs = {label: tensor for label, tensor in found.outputs(case.desc) if tensor is not None}
    for label, tensor in outputs.items():
        zeros = {"valueCount": tensor.TotalTensorSizeInBytes, "value": 0}
        resources[label] = {"initialValuesDataType": "UINT8", "initialValues": zeros}
        bind(label)
    desc = {name: _json(getattr(case.desc, name)) for name in found.members if getattr(case.desc, name) is not None}
    model = {
        "resources": resources,
        "dispatchables": {"it": {"type": f"DML_OPERATOR_{found.name}", "desc": desc}},
        "commands": [
            {"type": "dispatch", "dispatchable": "it", "bindings": bindings},
            *({"type": "writeFile", "resource": label, "targetPath": f"{label}.out"} for label in outputs),
        ],
    }
    path = folder / "model.json"
    path.write_text(json.dumps(model))
    return path
