"""The command line: ``anydml run``, ``check``, ``ops``, ``devices``, ``draw``, ``bench``, ``compare`` and ``warmup``.

Exit codes: 0, all is well; 1, the model or what it needs is wrong, as standard error says; 2, the command line is
wrong, or the model that it names can't be read; 130, interrupted.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from .. import __version__
from ..core.enums import FeatureLevel
from ..core.errors import DMLError, Violation, error, violation
from ..frontends.dxdispatch.limits import parse_size
from ..terminal import Progress
from . import onnx_models
from .dxdispatch_options import Parser, add_timing, number_from, timing_of

if TYPE_CHECKING:
    from ..frontends.dxdispatch import Model
    from ..frontends.dxdispatch.session import Session
    from ..operators.schema import OperatorSpec


def main(argv: Sequence[str] | None = None) -> int:
    """Runs a command line.

    Args:
        argv: the arguments behind the program's name; those of the process where None.

    Returns:
        The exit code.
    """
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    arguments = _parser().parse_args(argv)
    try:
        code: int = arguments.command(arguments)
        sys.stdout.flush()
        return code
    except DMLError as problem:
        for violation in problem.violations:
            print(f"{_prefix(arguments)}: {violation}", file=sys.stderr)
        return _code_of(problem.violations)
    except BrokenPipeError:
        # Whoever read the output has gone. What is left in the buffer must not raise again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as problem:
        print(f"{_prefix(arguments)}: {problem}", file=sys.stderr)
    except MemoryError:
        print(f"{_prefix(arguments)}: there is not enough memory", file=sys.stderr)
    except KeyboardInterrupt:
        return 130
    return 1


def _code_of(violations: Sequence[Violation]) -> int:
    if any(violation.rule == "(M1)" for violation in violations):
        return 2
    return 1 if violations else 0


def _prefix(arguments: argparse.Namespace) -> str:
    """What stands before a message: the model, as compilers put the file."""
    return _title(getattr(arguments, "model", "anydml"))


def _title(model: str) -> str:
    return "standard input" if model == "-" else model or "anydml"


# Commands


def _run(arguments: argparse.Namespace) -> int:
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


def _check(arguments: argparse.Namespace) -> int:
    title = _title(arguments.model)
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
    return _code_of(violations)


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


def _ops(arguments: argparse.Namespace) -> int:
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


def _devices(arguments: argparse.Namespace) -> int:
    from ..terminal import show
    from .pages import devices_page

    show(devices_page())
    return 0


def _draw(arguments: argparse.Namespace) -> int:
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


def _bench(arguments: argparse.Namespace) -> int:
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


def _compare(arguments: argparse.Namespace) -> int:
    return onnx_models.compare(arguments, _progress())


def _warmup(arguments: argparse.Namespace) -> int:
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
                progress.step(f"{_title(source)}: {name}", i + j / count, len(arguments.models))
                start = perf_counter()
                compiled: Any
                if isinstance(dispatchable, Whole):
                    compiled = dispatchable.prepare(device)
                else:
                    compiled = device.compile_operator(device.create_operator(dispatchable.desc), dispatchable.flags)
                seconds = perf_counter() - start
                progress.clear()
                print(f"{_title(source)}: {name}: {seconds:.2f} s, {compiled.explain()}", flush=True)
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


# Arguments


def _feature_level(text: str) -> FeatureLevel:
    levels = {level.number: level for level in FeatureLevel}
    if text not in levels:
        raise argparse.ArgumentTypeError(f"{text!r} is none of {', '.join(levels)}")
    return levels[text]


def _size(text: str) -> int:
    size = parse_size(text)
    if size is None:
        raise argparse.ArgumentTypeError(f"{text!r} is no size, such as 4096, 500M or 2G")
    return size


def _minutes(text: str) -> float:
    try:
        minutes = float(text)
    except ValueError:
        minutes = 0
    if not 0 < minutes < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is no time in minutes, such as 10 or 0.5")
    return minutes


def _new_file(text: str) -> str:
    """What is written at the end is known to have a folder at the beginning."""
    if not text or Path(text).is_dir() or not Path(text).parent.is_dir():
        raise argparse.ArgumentTypeError(f"{text!r} is no file in a folder that there is")
    return text


def _parser() -> argparse.ArgumentParser:
    from ..runtime.context import DEVICE_NAMES

    devices = ", ".join([*DEVICE_NAMES, "cuda, cuda:1 or xpu"])
    parser = _resolve(
        Parser,
        """DirectML's operators on any machine.""",
        """
        anydml run model.json                        run a model as DxDispatch does
        anydml check model.json --feature-level 3.1  say all that is wrong with it
        anydml ops JOIN                              what an operator does
        """,
        prog="anydml",
    )
    parser.add_argument("--version", action="version", version=f"anydml {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)

    run = _resolve(
        commands.add_parser,
        """Run a model: all of it is checked first, then its commands are executed in order.

A model is JSON as DxDispatch has it; // and /* */ comments and trailing commas may stand in it. Or it is ONNX's: its
outputs are printed, or written to .npy files.""",
        """
        anydml run model.json
        anydml run model.json -i 1000            time each dispatch; one in-place takes its own results as inputs
        anydml run model.json -t 500 -v 1        for half a second each, with the least and the largest time
        generate | anydml run -                  a model from standard input, with files in the current folder
        anydml run model.onnx --input x=x.npy --output-dir results
        anydml run model.onnx --random 0 --dim batch=8 -i 100
        """,
        name="run",
        help="run a model",
    )
    _add_model_arguments(run)
    run.add_argument("-d", "--device", default="cpu", help=f"where to run: {devices} (default: cpu)")
    run.add_argument("--verbose", action="store_true", help="tell on standard error which kernels serve")
    add_timing(run)
    onnx_models.add_feeds(run, is_random=False)
    run.add_argument("--output-dir", metavar="DIR", help="write outputs of an ONNX model to DIR/NAME.npy")
    run.set_defaults(command=_run, parser=run)

    check = _resolve(
        commands.add_parser,
        """Check a model without running it: print every rule that it breaks, one in a line.

Of an ONNX model these are the nodes that a device of the feature level refuses, each with the reason and the level
that takes it; dimensions that it leaves free have size 1 where --dim does not say one. Only what shapes depend on is
run.""",
        """
        anydml check model.json
        anydml check model.json --feature-level 3.1
        anydml check model.json --json           the same for machines
        anydml check model.onnx --feature-level 5.0
        anydml check model.onnx --dim batch=8 --json
        """,
        name="check",
        help="say all that is wrong with a model",
    )
    _add_model_arguments(check)
    check.add_argument("--json", action="store_true", help="print the violations as JSON")
    onnx_models.add_feeds(check, is_random=True)
    check.set_defaults(command=_check, parser=check)

    ops = _resolve(
        commands.add_parser,
        """List the operators, or tell all about one: members, constraints, support, engines, examples.""",
        """
        anydml ops
        anydml ops JOIN                          also join, DML_OPERATOR_JOIN, DML_JOIN_OPERATOR_DESC
        anydml ops --json                        for machines: family, data types, and the engines by type
        """,
        name="ops",
        help="list the operators, or tell about one",
    )
    ops.add_argument("name", nargs="?", metavar="NAME", help="an operator")
    ops.add_argument(
        "--json",
        action="store_true",
        help="print JSON objects: the data types of each tensor, and for each type which of the CPU's engines "
        "serve the operator's small example, native or reference",
    )
    ops.set_defaults(command=_ops)

    listing = _resolve(
        commands.add_parser,
        """List the devices, and whether this machine can use them.""",
        """anydml devices""",
        name="devices",
        help="list the devices",
    )
    listing.set_defaults(command=_devices)

    draw = _resolve(
        commands.add_parser,
        """Draw an operator's small example, or the dispatches of a model, as SVG.

With --graph a model is drawn as the one graph that its dispatches are, each connected to the one whose results it
reads: the kernels that it is compiled to for the CPU, the sizes of what they give, and what was fused into them. An
ONNX model is always drawn so; one whose values are read on the host is several graphs.""",
        """
        anydml draw CUMULATIVE_SUMMATION -o summation.svg
        anydml draw model.json -o model.svg      model-1.svg and so on, where it has several dispatches
        anydml draw --graph model.json -o g.svg  all dispatches in one picture
        anydml draw --graph --times model.json -o times.svg
        anydml draw --times model.onnx -o model.svg
        """,
        name="draw",
        help="draw an operator or a model",
    )
    draw.add_argument("model", metavar="NAME|MODEL", help="an operator, or the file of a model")
    draw.add_argument(
        "-o", "--output", type=_new_file, default="-", metavar="FILE", help="where to write (default: standard output)"
    )
    draw.add_argument("--graph", action="store_true", help="draw the kernels of one graph")
    draw.add_argument("--times", action="store_true", help="with --graph, measure each kernel and show its time")
    _add_level_arguments(draw)
    _add_file_arguments(draw)
    onnx_models.add_feeds(draw, is_random=True)
    draw.set_defaults(command=_draw, parser=draw)

    bench = _resolve(
        commands.add_parser,
        """Measure the operators beside the fastest copy that this machine shows, and beside the libraries installed.

A ratio of 1 is what memory allows a copy of as many bytes, or of reductions the time to read them once; every result
is checked before it counts, other libraries' too. A MISS, a ratio above the project's own limit for several threads
and tensors of 128 MiB (of quantised pooling, 64 MiB; on a GPU, 512 MiB and more), and BEATEN, where a library is faster
by more than 5%, are no errors: the exit code is 0, and 1 where a result is wrong, or there is no room for a row. Of
functions such as SIN, errors are measured, too: peers that are further than a unit in the last place from the exact
result may be faster, in memory by 10% and in the caches by 60%.

What consists of products, such as GEMM, CONVOLUTION or LSTM, is measured on layers of networks: by products in a
second, and beside the best library's time, BEATEN from 10% on.

ONNX models are measured whole, beside ONNX Runtime on as many threads where it is installed.""",
        """
        anydml bench --quick                     10 minutes on 2 cores; without --quick, hours
        anydml bench --sample 60                 60 rows at random, as many of each operator as of the others
        anydml bench --sample 60 --seed 7        the same 60 each time, as before and after a change
        anydml bench --minutes 10 --threads 1    rows in such an order until 10 minutes are over
        anydml bench --filter "float32 SIN"      pointwise operators by type and name
        anydml bench --filter "float16 one row"  rows with this text alone, here on all threads and on 1
        anydml bench --filter "CONVOLUTION*ResNet" --threads 1
        anydml bench --filter "MOVEMENT*128 MiB" what copies and converts, at one size; REDUCE are reductions
        anydml bench --json bench.json --plot bench.svg
        anydml bench --device cuda --quick       a GPU, beside PyTorch and its compiler, CuPy and JAX: a minute or two
        anydml bench --device cuda > gpu.txt     all rows; most of the time is that of PyTorch's compiler
        anydml bench model.onnx other.onnx --dim batch=1 --threads 2
        """,
        name="bench",
        help="measure speed and accuracy",
    )
    bench.add_argument("models", nargs="*", metavar="MODEL", help="ONNX models to measure, in place of the operators")
    bench.add_argument("-d", "--device", default="cpu", help=f"what to measure: {devices} (default: cpu)")
    bench.add_argument(
        "--filter", default="", metavar="TEXT", help="only rows with this text in operator or case; * is any text"
    )
    bench.add_argument("--quick", action="store_true", help="fewer rows, runs and values")
    bench.add_argument(
        "--sample",
        type=number_from(1),
        metavar="N",
        help="N rows at random: as many of each operator as of the others, and of an operator different types, sizes "
        "and kinds; what is no row is left out",
    )
    bench.add_argument(
        "--minutes",
        type=_minutes,
        metavar="M",
        help="rows in such an order until M minutes are over, and tell how many were not reached; half of the time is "
        "for 1 thread where that is measured, too",
    )
    bench.add_argument(
        "--seed",
        type=number_from(0),
        metavar="N",
        help="the random order of --sample and --minutes, and on a GPU shapes (default: another each time)",
    )
    bench.add_argument(
        "--threads",
        type=number_from(1),
        metavar="N",
        help="on N threads of the CPU alone (default: on all that there are, and on 1)",
    )
    bench.add_argument("--json", type=_new_file, metavar="FILE", help="write all that was measured as JSON")
    bench.add_argument(
        "--plot", type=_new_file, metavar="FILE", help="draw a chart as SVG; needs matplotlib, the extra plot"
    )
    _add_level_arguments(bench)
    onnx_models.add_feeds(bench, is_random=True)
    bench.set_defaults(command=_bench, parser=bench)

    compare = _resolve(
        commands.add_parser,
        """Compare every value of an ONNX model with what another engine computes for it.

The first node in order that diverges is named, by how much, and whether it does so when it is fed with the other's
values; then the worst are listed. The exit code is 1 where a value diverges. Values are those of the model's nodes, one
by one: each is an output of the copies that are run, so that nothing is fused across them.""",
        """
        anydml compare model.onnx                beside ONNX Runtime
        anydml compare model.onnx --with reference --input x=x.npy
        anydml compare model.onnx --with other.onnx --tolerance 1e-4
        anydml compare model.onnx --with onnxruntime --provider DmlExecutionProvider
        anydml compare model.onnx -d cuda --with cpu --json
        """,
        name="compare",
        help="find the node of an ONNX model whose result is another than elsewhere",
    )
    compare.add_argument("model", metavar="MODEL", help="an ONNX model's file")
    compare.add_argument("-d", "--device", default="cpu", help=f"what is looked into: {devices} (default: cpu)")
    onnx_models.add_compare(compare)
    _add_level_arguments(compare)
    onnx_models.add_feeds(compare, is_random=True)
    compare.set_defaults(command=_compare)

    warmup = _resolve(
        commands.add_parser,
        """Compile the kernels of models' operators for a GPU, and run nothing.

The compiler takes up to some seconds for a kernel that it has not seen before, and keeps what it has made in its cache
(TRITON_CACHE_DIR; ~/.triton/cache by default): later processes load that.""",
        """
        anydml warmup model.json other.json
        anydml warmup model.json -d cuda:1
        """,
        name="warmup",
        help="compile a GPU's kernels beforehand",
    )
    warmup.add_argument("models", nargs="+", metavar="MODEL", help="a model's file")
    warmup.add_argument("-d", "--device", default="cuda", help=f"for which device: {devices} (default: cuda)")
    _add_level_arguments(warmup)
    _add_reading_arguments(warmup)
    warmup.set_defaults(command=_warmup)
    return parser


def _resolve(make: Callable[..., Any], description: str, examples: str, **options: Any) -> argparse.ArgumentParser:
    from inspect import cleandoc
    from textwrap import indent

    parser = make(
        description=description,
        epilog=f"examples:\n{indent(cleandoc(examples), '  ')}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        **options,
    )
    return cast(argparse.ArgumentParser, parser)


def _add_model_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL", help="a model's file, or - for standard input")
    _add_level_arguments(parser)
    _add_file_arguments(parser)


def _add_level_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--feature-level",
        type=_feature_level,
        default=FeatureLevel.LEVEL_6_4,
        metavar="LEVEL",
        help="the level whose support tables hold (default: 6.4)",
    )
    parser.add_argument("--strict", action="store_true", help="hold DirectML's own limits, too")


def _add_reading_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--allow-outside", action="store_true", help="let files lie outside of the model's folder")
    parser.add_argument("--allow-unknown-fields", action="store_true", help="pass over fields that mean nothing")


def _add_file_arguments(parser: argparse.ArgumentParser) -> None:
    _add_reading_arguments(parser)
    parser.add_argument(
        "--memory-limit",
        type=_size,
        metavar="SIZE",
        help="what resources may take, such as 500M or 2G (default: three quarters of the machine's memory)",
    )
