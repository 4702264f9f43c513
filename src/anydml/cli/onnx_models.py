"""The command line for ONNX models: run, check, draw, bench and compare."""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.enums import FeatureLevel
from ..core.errors import Violation, listing, refuse
from ..terminal import Block, Progress, Table, show
from .dxdispatch_options import timing_of

if TYPE_CHECKING:
    from ..onnx import InferenceSession
    from ..onnx.comparing import Difference, Engine

_SHOWN = 64
"""Elements of an output that are printed."""


def is_onnx(source: str) -> bool:
    """Whether a model is ONNX's, by its name."""
    return Path(source).suffix.lower() == ".onnx"


def refuse_options(arguments: argparse.Namespace, *more: str) -> None:
    """Options that mean nothing for what is no ONNX model are wrong there.

    Args:
        arguments: of a command.
        more: the names of others than those that feed a model and take what it gives.
    """
    for name in ("input", "random", "output_dir", *more):
        given = getattr(arguments, name, None)
        if given is not None and given is not False:
            arguments.parser.error(f"argument --{name.replace('_', '-')}: is for ONNX models")


def needed(source: str) -> str:
    """The model's path, where all that its kind needs is installed and it can be read.

    Raises:
        DMLError: (M1).
    """
    if find_spec("onnx") is None:
        remedy = "pip install 'anydml[onnx]'"
        refuse("", "(M1)", "the model", "no package 'onnx', which reads ONNX models", "the extra onnx", remedy)
    try:
        Path(source).open("rb").close()
    except (OSError, ValueError) as problem:
        reason = problem.strerror if isinstance(problem, OSError) else str(problem)
        refuse("", "(M1)", "the model", f"{source!r} ({reason})", "a file that can be read")
    return source


# Commands


def run(arguments: argparse.Namespace, progress: Progress) -> int:
    """Runs a model once, or as often as it is to be timed."""
    timing = timing_of(arguments)
    with progress:
        progress.step(f"{arguments.model}: reading and compiling", 0, 2)
        session = _session(arguments)
        feeds = _feeds(session, arguments)
        if arguments.verbose or timing is not None:
            print(f"Running on '{session.device.name}'", file=sys.stderr)
        results: list[Any] = []

        def dispatch() -> None:
            results[:] = session.run(None, feeds)

        progress.step(f"{arguments.model}: running", 1, 2)
        if timing is None:
            dispatch()
        else:
            samples = timing.sample(dispatch, lambda share: progress.step(arguments.model, 1 + share, 2))
            progress.clear()
            sys.stdout.writelines(timing.report(Path(arguments.model).name, samples))
    if arguments.verbose:
        for side, ends in (("input", session.get_inputs()), ("output", session.get_outputs())):
            for each in ends:
                print(f"{side} {each.name}: {each.type} {each.shape}", file=sys.stderr)
        print(session.explain(), file=sys.stderr)
    names = [each.name for each in session.get_outputs()]
    _give(dict(zip(names, results, strict=True)), arguments.output_dir)
    return 0


def check(arguments: argparse.Namespace, progress: Progress) -> tuple[list[Violation], str]:
    """What a device of a feature level refuses, and what there is to say beside it."""
    source = needed(arguments.model)
    from ..onnx import check as check_model

    level: FeatureLevel = arguments.feature_level
    with progress:
        found = check_model(
            source,
            level,
            strict=arguments.strict,
            sizes=_sizes(arguments),
            feeds=_given(arguments),
            progress=progress.step,
        )
    refused = sum(each.rule == "(N2)" for each in found.violations)
    note = f"{found.nodes} nodes, {refused} refused at feature level {level.number}"
    if found.ended:
        note += f"; what comes behind them was not looked at, as another runtime says: {found.ended}"
    return found.violations, note


def pictures(arguments: argparse.Namespace, progress: Progress) -> list[str]:
    """A picture of each graph that a model is compiled to."""
    needed(arguments.model)
    from ..draw import draw_graph
    from ..onnx.graphs import graphs_of

    with progress:
        progress.step(f"{arguments.model}: compiling", 0, 2)
        session = _session(arguments)
        found = graphs_of(session, _feeds(session, arguments, seed=0), arguments.times)
    return [draw_graph(each.graph, each.seconds, each.inputs, each.outputs) for each in found]


def bench(arguments: argparse.Namespace, progress: Progress) -> int:
    """Measures models beside ONNX Runtime."""
    from ..bench.onnx_models import bench_models, set_threads

    if arguments.device == "cpu":
        set_threads(arguments.threads)
    for model in arguments.models:
        needed(model)
    with progress:
        return bench_models(
            arguments.models,
            lambda session: _feeds(session, arguments, seed=0),
            device=arguments.device,
            threads=arguments.threads,
            quick=arguments.quick,
            fallback=arguments.fallback,
            json_file=arguments.json,
            progress=progress.step,
        )


def compare(arguments: argparse.Namespace, progress: Progress) -> int:
    """Compares all values of a model with another engine's; 1 where one diverges."""
    needed(arguments.model)
    from ..onnx.comparing import by_anydml
    from ..onnx.comparing import compare as compare_values

    with progress:
        session = _session(arguments, fallback=True)
        feeds = _feeds(session, arguments, seed=0)
        other, name = _other(arguments)
        found = compare_values(
            arguments.model,
            by_anydml(session.device, arguments.fallback),
            other,
            feeds,
            beside=needed(arguments.beside) if is_onnx(arguments.beside) else None,
            tolerance=arguments.tolerance,
            progress=progress.step,
        )
    if arguments.json:
        print(json.dumps([_as_json(each) for each in found], indent=2))
    else:
        show(_compared(found, arguments, f"{session.device.name} beside {name}"))
    return 1 if any(each.diverges for each in found) else 0


def _other(arguments: argparse.Namespace) -> tuple[Engine, str]:
    """What a model is compared with."""
    from ..onnx.comparing import by_anydml, by_onnx, by_onnxruntime, onnx_runtime

    word: str = arguments.beside
    if word == "onnxruntime":
        version = onnx_runtime(arguments.provider).__version__
        return by_onnxruntime(arguments.provider), f"ONNX Runtime {version}, {arguments.provider}"
    if word == "onnx":
        return by_onnx(), "ONNX's reference"
    name = arguments.device if is_onnx(word) else word
    return by_anydml(_device(arguments, name), arguments.fallback), f"{word} on {name}" if is_onnx(word) else name


def _compared(found: Sequence[Difference], arguments: argparse.Namespace, sides: str) -> list[Block]:
    """The first that diverges, and the worst."""
    diverging = [each for each in found if each.diverges]
    page: list[Block] = [f"{arguments.model}: {len(found)} values, {sides}"]
    if diverging:
        page += _first(diverging[0])
        others = len(diverging) - 1
        page.append(f"{others} other value{'s' * (others != 1)} diverge{'s' * (others == 1)}.")
    else:
        page.append("No value diverges.")
    worst = sorted(found, key=lambda each: -each.error / (each.limit or 1.0))[: arguments.worst]
    head = ("Node", "Operator", "Value", "Type", "Error", "Alone", "At", "Here", "There")
    page.append("The worst, by the largest difference as a share of the largest element:")
    page.append(Table(head, [_cells(each) for each in worst]))
    skipped = [each.value for each in found if each.note and not each.diverges]
    if skipped:
        page.append(f"Not compared, as they are no tensors: {listing(skipped[:9], 'and')}")
    return page


def _first(first: Difference) -> list[Block]:
    what = (
        first.note
        or f"by {first.error:.3g}: {_number(first.found)} beside {_number(first.expected)} at {list(first.at)}"
    )
    lines: list[Block] = [f"First to diverge: node {first.node!r} ({first.op}), value {first.value!r}, {what}"]
    if first.own is not None:
        is_own = not first.own <= first.limit
        said = "the node itself" if is_own else "what it is fed with, which differs by less than the limit"
        lines.append(f"Fed with the other's values, this node alone is off by {first.own:.3g}: it is {said}.")
    return lines


def _cells(each: Difference) -> tuple[str, ...]:
    own = "" if each.own is None else f"{each.own:.1e}"
    at = str(list(each.at)) if each.at else ""
    return (
        *(each.node, each.op, each.value, each.type),
        *(f"{each.error:.1e}", own, at, _number(each.found), each.note or _number(each.expected)),
    )


def _number(value: Any) -> str:
    return "" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)


def _as_json(each: Difference) -> dict[str, Any]:
    found = {name: str(value) if isinstance(value, complex) else value for name, value in each._asdict().items()}
    # JSON has no infinities.
    plain = {
        name: str(value) if isinstance(value, float) and not np.isfinite(value) else value
        for name, value in found.items()
    }
    return {**plain, "diverges": each.diverges}


# Sessions and feeds


def _device(arguments: argparse.Namespace, name: str) -> Any:
    from ..device import Device

    return Device(name, arguments.feature_level, arguments.strict)


def _session(arguments: argparse.Namespace, fallback: bool = False) -> InferenceSession:
    source = needed(arguments.model)
    from ..onnx import InferenceSession

    device = _device(arguments, getattr(arguments, "device", "cpu"))
    return InferenceSession(source, device=device, fallback=fallback or arguments.fallback)


def _given(arguments: argparse.Namespace) -> dict[str, Any]:
    from ..onnx.feeds import read_array

    return {name: read_array(f"--input {name}", Path(path)) for name, path in arguments.input or ()}


def _sizes(arguments: argparse.Namespace) -> dict[str, int]:
    return dict(arguments.dim or ())


def _feeds(session: InferenceSession, arguments: argparse.Namespace, seed: int | None = None) -> Mapping[str, Any]:
    """What options say, and random values for the rest, where an option or the command asks for them."""
    from ..onnx.feeds import random_feeds

    given = _given(arguments)
    inputs = session.get_inputs()
    names = [each.name for each in inputs]
    for name in given:
        if name not in names:
            refuse("run", "(N3)", f"--input {name}", "no input of the model", listing(names))
    seed = seed if arguments.random is None else arguments.random
    if seed is not None:
        return random_feeds(inputs, seed, _sizes(arguments), given)
    missing = [name for name in names if name not in given]
    if missing:
        described = listing([f"{each.name} {each.type} {each.shape}" for each in inputs], "and")
        remedy = "--input NAME=FILE.npy feeds an array, --random SEED feeds random ones"
        refuse("run", "(N3)", missing[0], "nothing to feed it with", f"an array for each input: {described}", remedy)
    return given


def _give(results: Mapping[str, Any], folder: str | None) -> None:
    """Prints outputs, or writes them to files."""
    used: set[str] = set()
    for name, value in results.items():
        arrays = {f"{name}[{i}]": each for i, each in enumerate(value)} if isinstance(value, list) else {name: value}
        for label, array in arrays.items():
            if folder is None:
                print(f"Output '{label}', {_described(array)}")
            else:
                path = Path(folder, f"{_file_name(label, used)}.npy")
                _write(path, np.asarray(array))
                print(f"Output '{label}' written to '{path}'")


def _described(array: Any) -> str:
    if array is None:
        return "empty"
    flat = np.ravel(array)
    words = [f"{each:g}" if isinstance(each, float) else str(each) for each in flat[:_SHOWN].tolist()]
    more = f", ... ({flat.size} in all; --output-dir DIR writes them)" if flat.size > _SHOWN else ""
    return f"{array.dtype} {list(array.shape)}: {', '.join(words)}{more}"


def _file_name(label: str, used: set[str]) -> str:
    """A name without what leads to another folder."""
    stem = re.sub(r"[^\w.\-\[\]]", "_", label).lstrip(".")[:100] or "output"
    name = stem
    number = 2
    while name in used:
        name, number = f"{stem}-{number}", number + 1
    used.add(name)
    return name


def _write(path: Path, array: Any) -> None:
    from ..frontends.dxdispatch.files import write_whole

    path.parent.mkdir(parents=True, exist_ok=True)
    if array.dtype.kind == "O":
        array = array.astype(str)
    write_whole(path, lambda file: np.lib.format.write_array(file, array, allow_pickle=False))


# Arguments


def add_feeds(parser: argparse.ArgumentParser, is_random: bool) -> None:
    """The options that say what an ONNX model is fed with.

    Args:
        parser: of a command.
        is_random: whether what no option feeds is random without `--random`.
    """
    group = parser.add_argument_group("ONNX models")
    group.add_argument(
        "--input",
        action="append",
        type=_pair,
        metavar="NAME=FILE",
        help="feed an input with a .npy file, or with a TensorProto in a .pb file; may be given several times",
    )
    default = " (default: 0)" if is_random else ""
    group.add_argument(
        "--random", type=_seed, metavar="SEED", help=f"feed what else there is with random values{default}"
    )
    group.add_argument(
        "--dim",
        action="append",
        type=_dimension,
        metavar="NAME=SIZE",
        help="the size of a dimension that the model leaves free; one without a name is INPUT[AXIS]",
    )
    group.add_argument(
        "--fallback",
        action="store_true",
        help="run nodes that DirectML's operators don't do by ONNX Runtime, or else by ONNX's reference",
    )


def _pair(text: str) -> tuple[str, str]:
    # Names may have an equals sign; paths seldom do.
    name, sign, value = text.rpartition("=")
    if not sign or not name or not value:
        raise argparse.ArgumentTypeError(f"{text!r} is no NAME=FILE, such as x=x.npy")
    return name, value


def _dimension(text: str) -> tuple[str, int]:
    name, sign, value = text.rpartition("=")
    if not sign or not name or not value.isdecimal() or len(value) > 12:
        raise argparse.ArgumentTypeError(f"{text!r} is no NAME=SIZE, such as batch=1")
    return name, int(value)


def _seed(text: str) -> int:
    if not text.isdecimal() or len(text) > 12:
        raise argparse.ArgumentTypeError(f"{text!r} is no seed, an integer from 0 on")
    return int(text)


def add_compare(parser: argparse.ArgumentParser) -> None:
    """The options of ``compare``."""
    parser.add_argument(
        "--with",
        dest="beside",
        default="onnxruntime",
        metavar="OTHER",
        help="what is taken for right: onnxruntime, reference (this package's, in NumPy), onnx (ONNX's reference), "
        "another device, such as cuda, or OTHER.onnx, a model whose values have the same names (default: onnxruntime)",
    )
    parser.add_argument(
        "--provider",
        default="CPUExecutionProvider",
        metavar="NAME",
        help="ONNX Runtime's, such as DmlExecutionProvider (default: CPUExecutionProvider)",
    )
    parser.add_argument(
        "--tolerance",
        type=_share,
        metavar="T",
        help="what a difference of floats may be, as a share of the value's largest element (default: 1e-3; of "
        "float16 1e-2). Integers of 8 bits may differ by 1, as they are rounded, others not at all",
    )
    parser.add_argument("--worst", type=_seed, default=10, metavar="N", help="rows of the table (default: 10)")
    parser.add_argument("--json", action="store_true", help="print all values' differences as JSON")


def _share(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is no tolerance, such as 1e-3")
    return value
