"""Runs ONNX's own cases by its backend interface, ``anydml.onnx.backend``, and counts.

``PYTHONPATH=src python tests/onnx_cases.py [PATTERN]`` prints a row for each operator and what does not pass, of the
cases whose names match.
"""

from __future__ import annotations

import argparse
import re
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from typing import Any

import numpy as np
import onnx
from onnx.backend.test.case import node

from anydml import DMLError
from anydml.onnx import backend

COARSE = {
    "test_averagepool_2d_ceil_last_window_starts_on_pad": 1e-3,
    "test_roialign_aligned_false": 1e-3,
    "test_roialign_aligned_true": 1e-3,
}
"""Cases whose outputs ONNX gives with no more digits."""


NEAR_ZERO = {"test_dft_inverse": 1e-6, "test_dft_inverse_opset19": 1e-6}
"""Cases some of whose outputs are 0, of which ONNX gives what rounding left."""


@cache
def cases() -> tuple[Any, ...]:
    """ONNX's cases of one node, and of what it expands such nodes to."""
    return tuple(case for module in modules() for case in cases_of(module))


@cache
def modules() -> tuple[str, ...]:
    """ONNX's modules of cases, one for each of its operators, which compute them when they are imported."""
    found = [each for each in walk_packages(node.__path__, f"{node.__name__}.") if not each.ispkg]
    return tuple(each.name for each in found if not each.name.rpartition(".")[2].startswith("_"))


@cache
def cases_of(module: str) -> tuple[Any, ...]:
    """Those of a module, and of others that it imports first."""
    known = len(node._NodeTestCases)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import_module(module)
    return tuple(node._NodeTestCases[known:])


@cache
def stored_cases() -> tuple[Any, ...]:
    """The models that ONNX's wheel brings with inputs and outputs: simple ones, and those that PyTorch wrote."""
    from onnx.backend.test.loader import load_model_tests

    return tuple(
        _stored(each)
        for kind in ("simple", "pytorch-converted", "pytorch-operator")
        for each in load_model_tests(kind=kind)
    )


def _stored(case: Any) -> Any:
    folder = Path(case.model_dir)
    model = onnx.load(folder / "model.onnx")
    types = [[each.type for each in side] for side in (model.graph.input, model.graph.output)]
    sets = []
    for data in sorted(folder.glob("test_data_set_*")):
        sides = []
        for kind, own in zip(("input", "output"), types, strict=True):
            files = [data / f"{kind}_{i}.pb" for i in range(len(list(data.glob(f"{kind}_*.pb"))))]
            sides.append([_read(path, type_) for path, type_ in zip(files, own, strict=False)])
        sets.append(tuple(sides))
    return replace(case, model=model, data_sets=sets)


def _read(path: Path, type_: Any) -> Any:
    kinds = {"sequence_type": onnx.SequenceProto, "optional_type": onnx.OptionalProto}
    return kinds.get(type_.WhichOneof("value"), onnx.TensorProto).FromString(path.read_bytes())


def array(value: Any) -> Any:
    """What a case gives, as arrays and lists of them."""
    if isinstance(value, onnx.TensorProto):
        return onnx.numpy_helper.to_array(value)
    if isinstance(value, onnx.SequenceProto):
        return onnx.numpy_helper.to_list(value)
    if isinstance(value, onnx.OptionalProto):
        return onnx.numpy_helper.to_optional(value)
    return [array(each) for each in value] if isinstance(value, (list, tuple)) else value


def outcome(case: Any, fallback: bool = False) -> str | None:
    """What is wrong; None where a case passes."""
    try:
        ready = backend.prepare(case.model, "CPU", fallback=fallback)
        for inputs, outputs in case.data_sets:
            found = ready.run([array(each) for each in inputs])
            wrong = [*differences(case, found, [array(each) for each in outputs])]
            if wrong:
                return "; ".join(wrong)
    except DMLError as problem:
        return f"refused: {problem}"
    except Exception as problem:  # that a case cannot be run is what it counts as
        return f"{type(problem).__name__}: {problem}"
    return None


def differences(case: Any, found: Sequence[Any], expected: Sequence[Any]) -> Iterator[str]:
    """What differs of a case's outputs."""
    for i, (y, wanted) in enumerate(zip(found, expected, strict=True)):
        if isinstance(wanted, list):
            if not isinstance(y, list) or len(y) != len(wanted):
                yield f"output {i}: a sequence of {len(wanted)} is {y!r}"
            else:
                yield from differences(case, y, wanted)
            continue
        if wanted is None or y is None:
            if wanted is not y:
                yield f"output {i}: {y!r} where {wanted!r} is expected"
            continue
        y, wanted = np.asarray(y), np.asarray(wanted)
        if y.shape != wanted.shape or y.dtype != wanted.dtype:
            yield f"output {i}: {y.dtype} of shape {y.shape}, expected {wanted.dtype} of shape {wanted.shape}"
        elif wanted.dtype.kind in "OUST":
            if y.tolist() != wanted.tolist():
                yield f"output {i}: other strings"
        else:
            rtol = max(case.rtol, COARSE.get(case.name, 0), 2e-3 if wanted.dtype == np.float16 else 0)
            try:
                np.testing.assert_allclose(
                    y.astype(np.float64),
                    wanted.astype(np.float64),
                    rtol=rtol,
                    atol=max(case.atol, NEAR_ZERO.get(case.name, 0)),
                )
            except AssertionError as problem:
                yield f"output {i}: {' '.join(str(problem).split())[:300]}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pattern", nargs="?", default="", help="a regular expression that names match")
    parser.add_argument("--fallback", action="store_true")
    options = parser.parse_args()
    rows: dict[str, list[int]] = {}
    chosen = [case for case in cases() if re.search(options.pattern, case.name)]
    for case in chosen:
        wrong = outcome(case, options.fallback)
        row = rows.setdefault(case.model.graph.node[0].op_type, [0, 0])
        row[0] += wrong is None
        row[1] += 1
        if wrong is not None:
            print(f"{case.name}: {wrong[:400]}")
    for name, (passed, total) in sorted(rows.items()):
        print(f"{name}: {passed} of {total}")
    print(f"{sum(row[0] for row in rows.values())} of {len(chosen)} cases pass")


if __name__ == "__main__":
    main()
