"""Models: good ones with bytes, words or values exchanged, and made-up ones."""

from __future__ import annotations

import contextlib
import io
import json
import math
import re
import shutil
import tempfile
from collections.abc import Iterator
from enum import Enum
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from anydml import DML_BUFFER_TENSOR_DESC, DML_SCALE_BIAS, DML_SIZE_2D, Device, TensorDataType
from anydml.frontends import (
    dxdispatch as model,
)
from anydml.operators import spec_of
from anydml.operators.schema import OperatorDesc
from fuzzing.common import ENGINES, check_violation, expect, note, outcome
from fuzzing.descs import any_level, elements, is_of_sums_in_singles, members_of, same_results
from fuzzing.drawing import good_desc
from harness import units_of

MODELS = [
    """{
      // A running product
      "resources": {
        "A": {"initialValuesDataType": "FLOAT32", "initialValues": [2, 4, 8, 3]},
        "Out": {"initialValuesDataType": "FLOAT32", "initialValues": {"valueCount": 4, "value": 0}},
      },
      "dispatchables": {
        "p": {"type": "DML_OPERATOR_CUMULATIVE_PRODUCT", "desc": {
          "InputTensor": {"DataType": "FLOAT32", "Sizes": [1, 1, 1, 4]},
          "OutputTensor": {"DataType": "FLOAT32", "Sizes": [1, 1, 1, 4]},
          "Axis": 3, "AxisDirection": "DML_AXIS_DIRECTION_INCREASING", "HasExclusiveProduct": false}}
      },
      "commands": [
        {"type": "dispatch", "dispatchable": "p", "bindings": {"InputTensor": "A", "OutputTensor": "Out"}},
        {"type": "print", "resource": "Out"}
      ]
    }""",
    """{
      "resources": {
        "A": {"initialValuesDataType": "INT32", "initialValues": {"valueCount": 8, "valueStart": 1, "valueDelta": 3}},
        "B": {"initialValuesDataType": "INT32", "initialValues": {"sourcePath": "values.npy"}, "sizeInBytes": 64},
        "C": {"initialValues": [{"type": "INT32", "value": 7}, {"type": "UINT8", "value": 255}]},
        "D": {"initialValuesDataType": "INT32", "initialValues": {"sourcePath": "values.bin"}},
        "Out": {"initialValuesDataType": "INT32", "initialValues": {"valueCount": 12, "value": -1}}
      },
      "dispatchables": {
        "j": {"type": "JOIN", "desc": {"Axis": 0, "InputCount": 3, "InputTensors": [
            {"DataType": "INT32", "Sizes": [4]},
            {"DataType": "INT32", "Sizes": [2], "Strides": [2], "Flags": ["DML_TENSOR_FLAG_NONE"]},
            {"Type": "DML_TENSOR_TYPE_BUFFER", "Desc": {"DataType": "INT32", "Sizes": [6]}}],
          "OutputTensor": {"DataType": "INT32", "Sizes": [12], "TotalTensorSizeInBytes": 48}}},
        "s": {"type": "CUMULATIVE_SUMMATION", "executionFlags": "DISABLE_META_COMMANDS", "desc": {
          "InputTensor": {"DataType": "INT32", "Sizes": [12], "GuaranteedBaseOffsetAlignment": 4},
          "OutputTensor": {"DataType": "INT32", "Sizes": [12]}, "Axis": 0,
          "AxisDirection": "DECREASING", "HasExclusiveSum": true}}
      },
      "commands": [
        {"type": "dispatch", "dispatchable": "j", "bindings": {"InputTensors": [
          {"name": "A", "elementCount": 4, "elementOffset": 4}, "B", "D"], "OutputTensor": "Out"}},
        {"type": "dispatch", "dispatchable": "s", "bindings": {"InputTensor": "Out", "OutputTensor": "Out"}},
        {"type": "print", "resource": "Out", "verbose": true},
        {"type": "print", "resource": "C"},
        {"type": "writeFile", "resource": "Out", "targetPath": "out/out.npy", "dimensions": [3, 4]},
        {"type": "writeFile", "resource": "A", "targetPath": "a.bin"}
      ]
    }""",
    """{
      "resources": {
        "X": {"initialValuesDataType": "UINT8", "initialValues": {"valueCount": 16, "valueStart": 0, "valueDelta": 5}},
        "S": {"initialValuesDataType": "FLOAT32", "initialValues": [0.5, 2]},
        "Z": {"initialValuesDataType": "UINT8", "initialValues": [3]},
        "Y": {"initialValuesDataType": "INT8", "initialValues": {"valueCount": 16, "value": 0}}
      },
      "dispatchables": {
        "q": {"type": "QUANTIZED_LINEAR_AVERAGE_POOLING", "bindings": {"OutputScaleTensor": "S"}, "desc": {
          "InputTensor": {"DataType": "UINT8", "Sizes": [1, 1, 4, 4]},
          "InputScaleTensor": {"DataType": "FLOAT32", "Sizes": [1]},
          "InputZeroPointTensor": {"DataType": "UINT8", "Sizes": [1, 1, 1, 1]},
          "OutputScaleTensor": {"DataType": "FLOAT32", "Sizes": [1], "Flags": "OWNED_BY_DML"},
          "OutputTensor": {"DataType": "INT8", "Sizes": [1, 1, 3, 3], "Strides": [16, 16, 4, 1]},
          "Strides": [1, 1], "WindowSize": [2, 2], "StartPadding": [0, 0], "EndPadding": [0, 0],
          "Dilations": [1, 1], "IncludePadding": true}}
      },
      "commands": [
        {"type": "dispatch", "dispatchable": "q", "bindings": {"InputTensor": "X",
          "InputScaleTensor": {"name": "S", "elementCount": 1}, "InputZeroPointTensor": "Z", "OutputTensor": "Y"}},
        {"type": "print", "resource": "Y"}
      ]
    }""",
]
TOKENS = re.compile(r'"(?:[^"\\]|\\.)*"|[-+.\w]+|[{}\[\]:,]|//[^\n]*|\s+|.', re.DOTALL)
WORDS = [
    "{",
    "}",
    "[",
    "]",
    ":",
    ",",
    "//",
    "/*",
    "*/",
    "0",
    "-1",
    "1e999",
    "1e-400",
    "-0",
    "0.5",
    "4294967296",
    "9223372036854775808",
    "1e18",
    "NaN",
    "Infinity",
    "null",
    "true",
    "false",
    '"nan"',
    '"inf"',
    '"-inf"',
    '""',
    '"A"',
    '"Out"',
    '"S"',
    '"FLOAT32"',
    '"FLOAT16"',
    '"UINT4"',
    '"INT8"',
    '"UNKNOWN"',
    '"DML_TENSOR_DATA_TYPE_FLOAT64"',
    '"value"',
    '"valueCount"',
    '"valueStart"',
    '"valueDelta"',
    '"sourcePath"',
    '"values.npy"',
    '"values.bin"',
    '"../values.npy"',
    '"/etc/hosts"',
    '"."',
    '"out"',
    '"sizeInBytes"',
    '"initialValuesOffsetInBytes"',
    '"name"',
    '"type"',
    '"desc"',
    '"Desc"',
    '"Type"',
    '"elementCount"',
    '"elementOffset"',
    '"elementSizeInBytes"',
    '"JOIN"',
    '"DML_OPERATOR_GEMM"',
    '"OWNED_BY_DML"',
    '"$schema"',
    '"\\ud800"',
    '"\\u0000"',
    '"print"',
    '"PRINT"',
    '"writeFile"',
    '"Strides"',
    '"Flags"',
    '"bindings"',
    '"dimensions"',
    '"shape"',
    '"format"',
    '"counter"',
    '"deferred"',
    '"hlsl"',
    '"onnx"',
    '"dmlCompileType"',
    "4611686018427387904",
    "0x10",
    "01",
    "1.",
    ".5",
]


def mutated_bytes(random: Random, text: bytes) -> bytes:
    data = bytearray(text)
    for _ in range(random.choice([1, 1, 2, 5, 20])):
        i = random.randrange(len(data) + 1)
        j = min(len(data), i + random.choice([1, 1, 2, 8, 100]))
        way = random.randrange(5)
        if way == 0:
            data[i:j] = b""
        elif way == 1:
            data[i:i] = random.choice(
                [random.randbytes(2), b"\xef\xbb\xbf", b"\0", b'"', b"\\", b"[" * 99, b"9" * 5000]
            )
        elif way == 2 and i < len(data):
            data[i] ^= 1 << random.randrange(8)
        elif way == 3:
            data[i:i] = data[i:j]
        else:
            data[i:i] = random.choice(MODELS).encode()[i:j]
    return bytes(data)


def mutated_tokens(random: Random, text: str) -> str:
    tokens = TOKENS.findall(text)
    solid = [i for i, token in enumerate(tokens) if not token.isspace()]
    for _ in range(random.choice([1, 1, 1, 2, 3, 6])):
        i, j = random.choice(solid), random.choice(solid)
        way = random.randrange(5)
        if way == 0:
            tokens[i] = ""
        elif way == 1:
            tokens[i], tokens[j] = tokens[j], tokens[i]
        elif way == 2:
            tokens[i] = tokens[i] + " " + tokens[j]
        else:
            tokens[i] = random.choice(WORDS)
    return "".join(tokens)


def nodes(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every place in a tree: a container and a key."""
    if isinstance(value, (dict, list)):
        for key in list(value) if isinstance(value, dict) else range(len(value)):
            yield value, key
            yield from nodes(value[key])


def mutated_tree(random: Random, text: str) -> str:
    tree = json.loads(re.sub(r",(\s*[}\]])", r"\1", re.sub(r"//[^\n]*", "", text)))
    for _ in range(random.choice([1, 1, 2, 3])):
        places = list(nodes(tree))
        container, key = random.choice(places)
        other, other_key = random.choice(places)
        way = random.randrange(6)
        if way == 0:
            del container[key]
        elif way == 1:
            container[key] = json.loads(json.dumps(other[other_key]))
        elif way == 2 and isinstance(container, dict):
            container[random.choice(WORDS).strip('"')] = container.pop(key)
        elif way == 3 and isinstance(container[key], int):
            container[key] += random.choice([-1, 1, 2, 2**32, -5])
        else:
            word = random.choice(WORDS)
            with contextlib.suppress(ValueError):
                container[key] = json.loads(word)
    return json.dumps(tree)


def json_tensor(tensor: DML_BUFFER_TENSOR_DESC) -> dict[str, Any]:
    found: dict[str, Any] = {"DataType": tensor.DataType.name, "Sizes": list(tensor.Sizes)}
    if tensor.Strides is not None:
        found["Strides"] = list(tensor.Strides)
    return found


def json_value(value: Any) -> Any:
    if isinstance(value, DML_BUFFER_TENSOR_DESC):
        return json_tensor(value)
    if isinstance(value, (DML_SCALE_BIAS, DML_SIZE_2D)):
        return members_of(value)
    if isinstance(value, OperatorDesc):
        members = {name: json_value(each) for name, each in members_of(value).items() if each is not None}
        return {"Type": spec_of(value).name, **members}  # type: ignore[union-attr]
    if isinstance(value, tuple):
        return [json_value(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value.name if isinstance(value, Enum) else value


def made_up(random: Random) -> str:
    """A model of a good desc, with a resource for each tensor; it has nothing wrong."""
    desc = good_desc(random)
    found = spec_of(desc)
    assert found is not None
    resources: dict[str, Any] = {}
    bound: dict[str, Any] = {}
    for label, tensor in [*found.inputs(desc), *found.outputs(desc)]:
        if tensor is None:
            continue
        name = f"R{len(resources)}"
        # Resources have no elements of 4 bits; tensors of them lie in bytes.
        kind = TensorDataType.UINT8 if tensor.DataType.bits == 4 else tensor.DataType
        size = (tensor.TotalTensorSizeInBytes or 0) // (kind.bits // 8) + 1
        value: Any = 1 if "Scale" in label or "Lengths" in label else random.choice([0, 1, 2])
        sequence = {"valueCount": size, "valueStart": value, "valueDelta": random.choice([0, 1])}
        resources[name] = {
            "initialValuesDataType": kind.name,
            "initialValues": random.choice([{"valueCount": size, "value": value}, [value] * size, sequence]),
        }
        member, _, index = label.partition("[")
        bound.setdefault(member, []) if index else bound.update({member: name})
        if index:
            bound[member].append(name)
    members = {
        name: json_value(value)
        for name, value in members_of(desc).items()
        if value is not None and random.random() < 0.99
    }
    commands: list[Any] = [{"type": "dispatch", "dispatchable": "it", "bindings": bound}]
    commands += [{"type": "print", "resource": name} for name in resources]
    return json.dumps(
        {
            "resources": resources,
            "dispatchables": {"it": {"type": found.name, "desc": members}},
            "commands": commands,
        }
    )


@cache
def home() -> Path:
    return Path(tempfile.mkdtemp(prefix="anydml-fuzz-"))


def folder() -> Path:
    """The folder of a model, as it was before any model wrote to it."""
    place = home() / "model"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    np.save(place / "values.npy", np.arange(6, dtype=np.int32))
    (place / "values.bin").write_bytes(bytes(range(24)))
    return place


def models(random: Random) -> None:
    base = random.choice(MODELS) if random.random() < 0.6 else made_up(random)
    text: str | bytes = base
    way = random.choice(["none", "bytes", "tokens", "tree", "tree"])
    if way == "bytes":
        text = mutated_bytes(random, base.encode())
    elif way == "tokens":
        text = mutated_tokens(random, base)
    elif way == "tree":
        text = mutated_tree(random, base)
    note(text if isinstance(text, str) else repr(text))
    level, strict = any_level(random), random.random() < 0.2
    loaded = outcome(lambda: model.loads(text, folder()))
    if loaded.rules is not None:
        return
    violations = loaded.result.check(level, strict, memory_limit=1 << 20)
    for violation in violations:
        check_violation(violation)
    descs = [each.desc for each in loaded.result.dispatchables.values() if each is not None]
    if not violations and any(elements(desc) > 50_000 for desc in descs):
        return  # takes its time, rightly
    seen = []
    for engine in ENGINES:
        folder()
        printed = io.StringIO()
        device = Device(engine, level, strict)
        result = outcome(lambda d=device, p=printed: loaded.result.run(d, memory_limit=1 << 20, write=p.write))
        expect(not violations or result.rules is not None, "check finds fault, and run does not:", violations)
        expect(bool(violations) or all(rule[1] in "VM" for rule, _ in result.rules or ()), "run refuses:", result.rules)
        expect(result.rules is None or not violations or not printed.getvalue(), "printed before it was checked")
        seen.append((result, printed.getvalue()))
    (first, first_text), (second, second_text) = seen
    expect(first.rules == second.rules, "engines refuse differently:", first.rules, second.rules)
    # A unit in the last place may become anything further down.
    if not any(units_of(desc) or is_of_sums_in_singles(desc) for desc in descs):
        expect(first_text == second_text, "engines differ:", first_text, second_text)
        for name, array in (first.result or {}).items():
            same_results(name, None, array, None, second.result[name])
    strangers = [path.name for path in home().iterdir() if path.name != "model"]
    expect(not strangers, "wrote outside of the folder:", strangers)
