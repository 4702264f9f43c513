"""WebNN's conformance cases: what their JSON says, and how their suite compares."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from anydml import PackedArray

COMPARED = 1000
"""The suite looks at so many of an output's values, the first ones."""

Case = dict[str, Any]


def number(value: Any) -> Any:
    """What JSON has no number for is a string: infinities, NaN, -0 and integers past 2^53."""
    if not isinstance(value, str):
        return value
    return int(value) if value != "-0" and value.lstrip("-").isdigit() else float(value)


def array(operand: Mapping[str, Any], limit: int | None = None) -> np.ndarray:
    """An operand's values, which one number may stand for; with a limit so many of them, flat.

    Decimals of FLOAT16 are rounded to FLOAT32 first. Integers of 4 bits are those of 8.
    """
    shape, data = operand["descriptor"]["shape"], operand["data"]
    dtype = np.dtype(operand["descriptor"]["dataType"].replace("int4", "int8"))
    if limit is not None:
        shape = (min(limit, int(np.prod(shape))),)
    with np.errstate(over="ignore"):
        if not isinstance(data, list):
            return np.full(shape, number(data), np.float32 if dtype.kind == "f" else dtype).astype(dtype)
        values = list(map(number, data[:limit]))
        return np.array(values, np.float32 if dtype.kind == "f" else dtype).astype(dtype).reshape(shape)


def cases(folder: Path) -> list[Case]:
    """Those of all JSON files below a folder.

    What has no tolerance has that of the first one with the same operator and type of output.
    """
    found = [case for path in sorted(folder.rglob("*.json")) for case in json.loads(path.read_text())["cases"]]
    tolerances: dict[Any, Any] = {}
    for case in found:
        if "value" in (case.get("tolerance") or {}):
            tolerances.setdefault(_kind(case), case["tolerance"])
    for case in found:
        if "value" not in (case.get("tolerance") or {}):
            case["tolerance"] = tolerances.get(_kind(case)) if len(case["operators"]) == 1 else None
    return found


def _kind(case: Case) -> tuple[str, str]:
    output = next(iter(case["expectedOutputs"].values()))
    return case["operators"][0]["name"], output["descriptor"]["dataType"]


def differences(case: Case, outputs: Mapping[str, Any]) -> Iterator[str]:
    """What is not as the case expects it; nothing where it passes."""
    for name, operand in case["expectedOutputs"].items():
        y, expected = outputs[name], array(operand, COMPARED)
        y = y.unpack() if isinstance(y, PackedArray) else y
        # Graphs give truth values as the library's, which WebNN has as bytes.
        y = y.view(np.uint8) if y.dtype == np.bool_ else y
        # What has no dimensions has one of size 1 in DirectML.
        shape = tuple(operand["descriptor"]["shape"]) or (1,)
        if (y.dtype, y.shape) != (expected.dtype, shape):
            yield f"{name} is {y.dtype} {y.shape}, not {expected.dtype} {shape}"
            continue
        distance, limit = distances(y.reshape(-1)[:COMPARED], expected, case["tolerance"])
        if not (distance <= limit).all():
            i = int(np.argmax(np.where(distance <= limit, 0, np.nan_to_num(distance, nan=np.inf))))
            yield f"{name}[{i}] is {y.reshape(-1)[i]} for {expected[i]}, off by {distance[i]:.4g} of {limit}"


def distances(y: np.ndarray, expected: np.ndarray, tolerance: Mapping[str, Any] | None) -> tuple[np.ndarray, float]:
    """How far off each value is, in the tolerance's metric, and how far it may be.

    ULP counts the values of the type that lie between, of integers their difference; ATOL is the difference. Where the
    suite gives none, a value may be off by a thousandth, an integer by nothing.
    """
    metric = (tolerance or {}).get("metricType")
    if metric == "ULP" and y.dtype.kind == "f":
        steps = np.abs(_places(y) - _places(expected)).astype(float)
        return np.where(np.isnan(y) & np.isnan(expected), 0, steps), tolerance["value"]
    if y.dtype.kind != "f":
        # Python's integers, which no difference of 64 bits overflows.
        steps = np.array([abs(int(a) - int(b)) for a, b in zip(y, expected, strict=True)], float)
        return steps, (tolerance or {"value": 0})["value"]
    a, b = y.astype(float), expected.astype(float)
    with np.errstate(invalid="ignore"):
        off = np.where((a == b) | (np.isnan(a) & np.isnan(b)), 0, np.abs(a - b))
    if metric == "ATOL":
        return off, tolerance["value"]
    return off / (1 + np.abs(b)), 1e-3


def _places(x: np.ndarray) -> np.ndarray:
    """The numbers of floats in their order, 0 for both zeros."""
    bits = x.view(f"i{x.itemsize}").astype(np.int64)
    return np.where(bits < 0, -(bits & np.iinfo(f"i{x.itemsize}").max), bits)
