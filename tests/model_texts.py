"""Texts of models for tests: a base model with something changed, and small ones of one operator."""

from __future__ import annotations

import copy
import json
import re
from pathlib import Path
from typing import Any

from anydml.frontends import dxdispatch as model

BASE: dict[str, Any] = {
    "resources": {
        "A": {"initialValuesDataType": "FLOAT32", "initialValues": [2, 4, 8, 3]},
        "Out": {"initialValuesDataType": "FLOAT32", "initialValues": {"valueCount": 4, "value": 0}},
    },
    "dispatchables": {
        "product": {
            "type": "DML_OPERATOR_CUMULATIVE_PRODUCT",
            "desc": {
                "InputTensor": {"DataType": "FLOAT32", "Sizes": [4]},
                "OutputTensor": {"DataType": "FLOAT32", "Sizes": [4]},
                "Axis": 0,
            },
        }
    },
    "commands": [
        {"type": "dispatch", "dispatchable": "product", "bindings": {"InputTensor": "A", "OutputTensor": "Out"}},
        {"type": "print", "resource": "Out"},
    ],
}

DELETE = object()


def changed(changes: dict[str, Any]) -> str:
    """The text of the base model with values put at paths such as ``resources/A/initialValues/0``."""
    value = copy.deepcopy(BASE)
    for path, new in changes.items():
        *parents, last = path.split("/")
        place: Any = value
        for key in parents:
            place = place[int(key)] if isinstance(place, list) else place[key]
        if new is DELETE:
            del place[last]
        elif isinstance(place, list):
            place[int(last)] = new
        else:
            place[last] = new
    return json.dumps(value)


def run(text: str, folder: Path | str = ".", **options: Any) -> str:
    """What a model prints."""
    pieces: list[str] = []
    model.loads(text, folder).run(write=pieces.append, **options)
    return "".join(pieces)


def printed(resource: dict[str, Any], folder: Path | str = ".", **options: Any) -> str:
    """What the print command says of a resource."""
    commands = [{"type": "print", "resource": "R", **options}]
    text = run(json.dumps({"resources": {"R": resource}, "dispatchables": {}, "commands": commands}), folder)
    return text.removeprefix("Resource 'R':").removesuffix("\n").removeprefix(" ")


def values(data_type: str, initial: object) -> dict[str, Any]:
    return {"initialValuesDataType": data_type, "initialValues": initial}


def desc_of_join(sizes: list[int], data_type: str = "INT32", **first: Any) -> dict[str, Any]:
    tensors: list[dict[str, Any]] = [{"DataType": data_type, "Sizes": [size]} for size in sizes]
    tensors[0].update(first)
    return {"InputTensors": tensors, "OutputTensor": {"DataType": data_type, "Sizes": [sum(sizes)]}, "Axis": 0}


def joining(dispatchable: dict[str, Any], inputs: object, data_type: str = "INT32", **command: Any) -> str:
    """A model that joins A = 1, 2, 3, 4, 5, 6, 7, 8 and B = 9."""
    resources = {
        "A": values(data_type, {"valueCount": 8, "valueStart": 1, "valueDelta": 1}),
        "B": values(data_type, [9]),
        "Out": values(data_type, {"valueCount": 4, "value": 0}),
    }
    bindings = {"InputTensors": inputs, "OutputTensor": "Out"}
    commands = [
        {"type": "dispatch", "dispatchable": "join", "bindings": bindings, **command},
        {"type": "print", "resource": "Out"},
    ]
    return json.dumps({"resources": resources, "dispatchables": {"join": dispatchable}, "commands": commands})


def writing(target: str, **command: Any) -> str:
    return changed({"commands/1": {"type": "writeFile", "resource": "Out", "targetPath": target, **command}})


def sourcing(path: str) -> str:
    return changed({"resources/A": {"initialValues": {"sourcePath": path}}})


def assert_said(text: str, message: str) -> None:
    violations = [str(violation) for violation in model.loads(text).check()]
    pattern = re.escape(message).replace(r"\.\*", ".*")
    assert any(re.search(pattern, violation) for violation in violations), violations


def one_operator(kind: str, desc: dict[str, Any], **bindings: Any) -> str:
    """Float32 in resources of 8 elements that begin with 1, 2, 3."""
    names = [name for each in bindings.values() for name in (each if isinstance(each, list) else [each])]
    resource = values("FLOAT32", {"valueCount": 8, "valueStart": 1, "valueDelta": 1})
    commands = [{"type": "dispatch", "dispatchable": "it", "bindings": bindings}]
    commands += [{"type": "print", "resource": name} for name in names]
    return json.dumps(
        {
            "resources": dict.fromkeys(names, resource),
            "dispatchables": {"it": {"type": kind, "desc": desc}},
            "commands": commands,
        }
    )


def image_to_image(kind: str, desc: dict[str, Any]) -> str:
    return one_operator(kind, desc, InputTensor="X", OutputTensor="Y")


def float32(*sizes: int) -> dict[str, Any]:
    return {"DataType": "FLOAT32", "Sizes": sizes}


UPSAMPLE = {
    "InputTensor": float32(1, 1, 1, 2),
    "OutputTensor": float32(1, 1, 2, 4),
    "ScaleSize": {"Width": 2, "Height": 2},
    "InterpolationMode": "DML_INTERPOLATION_MODE_NEAREST_NEIGHBOR",
}
IMAGE = float32(1, 3, 1, 2)
VALUE_SCALE = {"InputTensor": IMAGE, "OutputTensor": IMAGE, "Scale": 2, "ChannelCount": 3, "Bias": [0, 0.5, "-inf"]}


SPLIT = {"InputTensor": float32(3), "OutputTensors": [float32(2), float32(1)], "Axis": 0}
