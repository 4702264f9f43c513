"""What the commands do, with their arguments; each gives an exit code."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core.enums import FeatureLevel
from ..core.errors import DMLError, Violation, error, violation
from ..terminal import Progress
from . import onnx_models
from .dxdispatch_options import timing_of

if TYPE_CHECKING:
    from ..frontends.dxdispatch import Model
    from ..frontends.dxdispatch.session import Session
    from ..operators.schema import OperatorSpec


def code_of(violations: Sequence[Violation]) -> int:
    if any(violation.rule == "(M1)" for violation in violations):
        return 2
    return 1 if violations else 0


def title_of(model: str) -> str:
    return "standard input" if model == "-" else model or "anydml"


def run(arguments: argparse.Namespace) -> int:
    if onnx_models.is_onnx(arguments.model):
        return onnx_models.run(arguments, _progress())
    onnx_models.refuse_options(arguments)
    from ..device import Device
    from ..frontends.dxdispatch import Dispatch
    from ..frontends.dxdispatch.session import Session

    model = _load(arguments.model, arguments)
    device = Device(arguments.device, arguments.feature_level, arguments.strict)
    timing = timing_of(arguments)
    with _progress() as progress:
        session = Session(model, device, arguments.memory_limit, progress.step)
    if arguments.verbose or timing is not None:
        print(f"Running on '{device.name}'", file=sys.stderr)
    if arguments.verbose:
        for name, compiled in session.compiled.items():
            print(f"{name}: {compiled.explain()}", file=sys.stderr)
    with _progress() as progress:

        def write(text: str) -> None:
            progress.clear()
            sys.stdout.write(text)

        session.tell_initialisation(timing, write)
        for i, command in enumerate(model.commands):

            def step(name: str, done: int, total: int, i: int = i) -> None:
                progress.step(name, i + done / max(1, total), len(model.commands))

            step(command.dispatchable if isinstance(command, Dispatch) else command.resource, 0, 1)
            session.execute(command, timing, write, step)
    return 0


def _progress() -> Progress:
    """What shows how far a command is where it takes longer than one likes to wait without a word."""
    return Progress(sys.stderr, delay=0.5, between=10)


def check(arguments: argparse.Namespace) -> int:
    title = title_of(arguments.model)
    level: FeatureLevel = arguments.feature_level
    note = ""
    try:
        violations: Sequence[Violation]
        if onnx_models.is_onnx(arguments.model):
            violations, note = onnx_models.check(arguments, _progress())
        else:
            onnx_models.refuse_options(arguments)
            model = _load(arguments.model, arguments)
            violations = model.check(level, arguments.strict, arguments.memory_limit)
    except DMLError as problem:
        violations = problem.violations
    if arguments.json:
        import json

        print(json.dumps([_as_json(violation) for violation in violations], indent=2))
    elif violations:
        for violation in violations:
            print(f"{title}: {violation}")
    else:
        print(f"{title}: no violations at feature level {level.number}")
    if note and not arguments.json:
        print(f"{title}: {note}")
    return code_of(violations)


def _as_json(violation: Violation) -> dict[str, Any]:
    level = violation.feature_level
    return {
        "place": violation.place,
        "operator": violation.operator,
        "where": violation.where,
        "found": violation.found,
        "expected": violation.expected,
        "rule": violation.rule,
        "remedy": violation.remedy,
        "feature_level": None if level is None else level.number,
        "hresult": violation.hresult.name,
    }


def ops(arguments: argparse.Namespace) -> int:
    if arguments.json:
        import json

        from ..operators import OPERATORS, spec
        from .catalogue import catalogue

        found = map(spec, OPERATORS) if arguments.name is None else [_operator(arguments.name)]
        print(json.dumps(catalogue(found), indent=2))
        return 0
    from ..terminal import show
    from .pages import operator_page, operators_page

    show(operators_page() if arguments.name is None else operator_page(_operator(arguments.name)))
    return 0


def devices(arguments: argparse.Namespace) -> int:
    from ..terminal import show
    from .pages import devices_page

    show(devices_page())
    return 0


def draw(arguments: argparse.Namespace) -> int:
    output: str = arguments.output
    is_onnx = onnx_models.is_onnx(arguments.model)
    if arguments.times and not (arguments.graph or is_onnx):
        arguments.parser.error("argument --times: measures kernels, which --graph draws")
    if output != "-" and Path(output).suffix.lower() != ".svg":
        # Any other name might be that of a model, or promise another format.
        raise error([_no_picture(repr(output), "a name that ends in .svg, or - for standard output")])
    if is_onnx:
        pictures = onnx_models.pictures(arguments, _progress())
    else:
        onnx_models.refuse_options(arguments)
        pictures = [_graph_picture(arguments)] if arguments.graph else _pictures(arguments)
    if output == "-":
        if len(pictures) > 1:
            found = f"a model of {len(pictures)} {'graphs' if is_onnx else 'dispatches'}"
            remedy = "-o FILE.svg writes a file for each"
            raise error([_no_picture(found, "one, for standard output", remedy)])
        sys.stdout.writelines(pictures)
        return 0
    from ..frontends.dxdispatch.files import write_whole

    for i, picture in enumerate(pictures, 1):
        path = Path(output)
        if len(pictures) > 1:
            path = path.with_stem(f"{path.stem}-{i}")
        data = picture.encode()
        write_whole(path, lambda file, data=data: file.write(data))  # type: ignore[misc]
        print(f"Drawn to '{path}'")
    return 0


def bench(arguments: argparse.Namespace) -> int:
    from ..bench.command import bench
    from ..runtime.context import DEVICE_NAMES

    if arguments.threads is not None and arguments.device not in DEVICE_NAMES:
        arguments.parser.error(f"argument --threads: chooses the CPU's threads, not for {arguments.device}")
    is_ordered = arguments.sample is not None or arguments.minutes is not None
    if arguments.seed is not None and not is_ordered and arguments.device in DEVICE_NAMES:
        arguments.parser.error("argument --seed: is that of a random order, which --sample and --minutes measure in")
    if arguments.models:
        if arguments.filter or arguments.plot or arguments.sample is not None or arguments.minutes is not None:
            arguments.parser.error("argument MODEL: is measured whole, without options that choose rows or draw them")
        return onnx_models.bench(arguments, _progress())
    onnx_models.refuse_options(arguments, "dim", "fallback")
    return bench(
        device=arguments.device,
        text=arguments.filter,
        quick=arguments.quick,
        threads=arguments.threads,
        json_file=arguments.json,
        plot_file=arguments.plot,
        sample=arguments.sample,
        seed=arguments.seed,
        minutes=arguments.minutes,
    )


def compare(arguments: argparse.Namespace) -> int:
    return onnx_models.compare(arguments, _progress())


def warmup(arguments: argparse.Namespace) -> int:
    from time import perf_counter

    from ..device import Device
    from ..frontends.dxdispatch.whole import Whole

    device = Device(arguments.device, arguments.feature_level, arguments.strict)
    with _progress() as progress:
        for i, source in enumerate(arguments.models):
            arguments.model = source
            model = _load(source, arguments)
            violations = model.check(device.feature_level, device.strict)
            if violations:
                raise error(violations)
            count = max(1, len(model.dispatchables))
            for j, (name, dispatchable) in enumerate(model.dispatchables.items()):
                assert dispatchable is not None
                progress.step(f"{title_of(source)}: {name}", i + j / count, len(arguments.models))
                start = perf_counter()
                compiled: Any
                if isinstance(dispatchable, Whole):
                    compiled = dispatchable.prepare(device)
                else:
                    compiled = device.compile_operator(device.create_operator(dispatchable.desc), dispatchable.flags)
                seconds = perf_counter() - start
                progress.clear()
                print(f"{title_of(source)}: {name}: {seconds:.2f} s, {compiled.explain()}", flush=True)
    return 0


def _pictures(arguments: argparse.Namespace) -> list[str]:
    from ..draw import draw_operator

    if _is_operator(arguments.model):
        return [draw_operator(_operator(arguments.model).name)]
    from ..frontends.dxdispatch import Dispatch

    session = _session(arguments)
    return [_picture(session, command) for command in session.model.commands if isinstance(command, Dispatch)]


def _graph_picture(arguments: argparse.Namespace) -> str:
    from ..draw import draw_graph, example_graph
    from ..draw.connected import Connected

    if _is_operator(arguments.model):
        graph, times = example_graph(_operator(arguments.model).name)
    else:
        connected = Connected(_session(arguments))
        graph, times = connected.compiled, connected.times
    return draw_graph(graph, times() if arguments.times else None)


def _is_operator(source: str) -> bool:
    return source != "-" and not Path(source).suffix and not Path(source).exists()


def _session(arguments: argparse.Namespace) -> Session:
    from ..device import Device
    from ..frontends.dxdispatch.session import Session

    return Session(_load(arguments.model, arguments), Device("cpu"), arguments.memory_limit)


def _picture(session: Session, command: Any) -> str:
    from ..draw import draw
    from ..draw.connected import operator_of

    used = operator_of(session, command)
    inputs, _ = session.tensors(command)
    before = [None if array is None else array.copy() for array in inputs]
    session.execute(command)
    _, outputs = session.tensors(command)
    return draw(used.desc, before, outputs)


def _no_picture(found: str, expected: str, remedy: str = "") -> Violation:
    return violation("draw", "(P3)", "output", found, expected, remedy)


def _load(source: str, arguments: argparse.Namespace) -> Model:
    from ..frontends.dxdispatch import load, loads, read_text

    options: dict[str, Any] = {
        "allow_outside": arguments.allow_outside,
        "allow_unknown_fields": arguments.allow_unknown_fields,
        "fallback": getattr(arguments, "fallback", False),
        "sizes": dict(getattr(arguments, "dim", None) or ()),
    }
    return loads(read_text(sys.stdin.buffer), **options) if source == "-" else load(source, **options)


def _operator(name: str) -> OperatorSpec:
    """The operator that someone means: ``join``, ``DML_OPERATOR_JOIN``, ``DML_JOIN_OPERATOR_DESC``."""
    from ..frontends.dxdispatch import operator_named

    word = name.strip().upper().replace("-", "_").removesuffix("_OPERATOR_DESC")
    found = operator_named("operator", word.removeprefix("DML_").removeprefix("OPERATOR_"))
    if isinstance(found, Violation):
        raise error([found])
    return found
