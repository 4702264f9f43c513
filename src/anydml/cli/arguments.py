"""The arguments of the commands."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from .. import __version__
from ..core.enums import FeatureLevel
from ..frontends.dxdispatch.limits import parse_size
from . import commands, onnx_models
from .dxdispatch_options import Parser, add_timing, number_from

if TYPE_CHECKING:
    pass


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


def argument_parser() -> argparse.ArgumentParser:
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
    subparsers = parser.add_subparsers(metavar="COMMAND", required=True)

    run = _resolve(
        subparsers.add_parser,
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
    run.set_defaults(command=commands.run, parser=run)

    check = _resolve(
        subparsers.add_parser,
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
    check.set_defaults(command=commands.check, parser=check)

    ops = _resolve(
        subparsers.add_parser,
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
    ops.set_defaults(command=commands.ops)

    listing = _resolve(
        subparsers.add_parser,
        """List the devices, and whether this machine can use them.""",
        """anydml devices""",
        name="devices",
        help="list the devices",
    )
    listing.set_defaults(command=commands.devices)

    draw = _resolve(
        subparsers.add_parser,
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
    draw.set_defaults(command=commands.draw, parser=draw)

    bench = _resolve(
        subparsers.add_parser,
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
    bench.set_defaults(command=commands.bench, parser=bench)

    compare = _resolve(
        subparsers.add_parser,
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
    compare.set_defaults(command=commands.compare)

    warmup = _resolve(
        subparsers.add_parser,
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
    warmup.set_defaults(command=commands.warmup)
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
