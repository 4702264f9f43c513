"""DxDispatch's options on the command line: those that mean the same here, and a hint for each of the others."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

from ..frontends.dxdispatch.timing import Timing, Verbosity

HINTS = {
    ("-d", "--debug"): "DxDispatch's debug layer has no counterpart, as every rule is checked always; here -d NAME is "
    "the device, and --strict holds DirectML's own limits, too",
    ("-a", "--adapter"): "an adapter is a device here: -d cuda, see `anydml devices`",
    ("-s", "--show_adapters"): "`anydml devices` shows them",
    ("-S", "--show_dependencies"): "`anydml --version` and `anydml devices` tell the versions",
    ("-m", "--model"): "the model stands without an option: anydml run model.json",
    ("--input_path",): "files to be read lie in the model's folder or the current one",
    ("--output_path",): "files that are written lie in the model's folder, or with --allow-outside elsewhere",
    ("--dml_feature_level",): "--feature-level 6.2 is the same",
    ("-f", "--onnx_free_dim_name_override"): "--dim NAME=SIZE is the same",
    ("-b", "--binding_shape"): "--dim NAME=SIZE says the size of a dimension, --input NAME=FILE.npy feeds an array",
    ("-p", "--print_onnx_bindings"): "--verbose tells of a model's inputs, outputs and nodes",
    (
        *("-F", "--onnx_free_dim_denotation_override", "-e", "--onnx_session_config_entry"),
        *("-l", "--onnx_graph_optimization_level", "-L", "--onnx_logging_level", "-x", "--enable_ort_extensions"),
    ): "this is an option of ONNX Runtime's, which does not run the models here",
    ("-q", "-c", "-o", "--queue_type", "--pix_capture_type", "--post_dispatch_barriers", "--clear_shader_caches"): (
        "this is an option for Direct3D 12, which is not used here"
    ),
}
"""What to do instead, by DxDispatch's options that are none here, or mean something else."""


class Parser(argparse.ArgumentParser):
    """A parser whose messages know what users of DxDispatch write."""

    _given: Sequence[str] = ()

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        self._given = sys.argv[1:] if args is None else args
        return super().parse_known_args(args, namespace)

    def error(self, message: str) -> NoReturn:
        super().error(f"{message}{_remedy(message, self._given)}")


def _remedy(message: str, arguments: Sequence[str]) -> str:
    """What stands behind a message of argparse's: a hint, or nothing."""
    unknown = re.search(r"unrecognized arguments: (.*)", message)
    lacking = re.search(r"argument -d/.*expected one argument|required: MODEL", message)
    # A -d without a name takes the model's, where it stands before it.
    words = unknown[1].split() if unknown else [word for word in arguments if lacking and word == "-d"]
    given = [word.partition("=")[0] for word in words]
    hints = [f"{name}: {hint}" for name in given for names, hint in HINTS.items() if name in names]
    command = re.search(r"invalid choice: '([^']*)'", message)
    if command and Path(command[1]).suffix.lower() == ".json":
        hints.append(f"anydml run {command[1]} runs a model")
    return "".join(f"\n{hint}" for hint in dict.fromkeys(hints))


def add_timing(parser: argparse.ArgumentParser) -> None:
    """The options for timing, under DxDispatch's names, too."""
    group = parser.add_argument_group("timing, as DxDispatch has it")
    group.add_argument(
        "-i",
        "--iterations",
        "--dispatch_iterations",
        type=number_from(1),
        metavar="N",
        help="run each dispatch N times and time it",
    )
    group.add_argument(
        "-r", "--repeat", "--dispatch_repeat", type=number_from(1), metavar="N", help="dispatches in each iteration"
    )
    group.add_argument(
        "-t",
        "--milliseconds",
        "--milliseconds_to_run",
        type=number_from(0),
        metavar="MS",
        help="run each dispatch for this time, whatever -i says",
    )
    group.add_argument(
        "-I",
        "--interval",
        "--dispatch_interval",
        type=number_from(0),
        metavar="MS",
        help="the least time from the start of an iteration to that of the next",
    )
    group.add_argument(
        "-w",
        "--warmup",
        "--warmup_samples",
        type=number_from(0),
        metavar="N",
        help="the first samples that are cold, and left out of the median (default: 1)",
    )
    group.add_argument(
        "-v",
        "--timing-verbosity",
        "--timing_verbosity",
        type=_verbosity,
        metavar="LEVEL",
        help="0: the median; 1: initialisation, and average, min, median, max of cold and hot samples; 2: all samples",
    )


def timing_of(arguments: argparse.Namespace) -> Timing | None:
    """How dispatches are timed; None where no option says so, and nothing is told of times."""
    names = ("iterations", "repeat", "milliseconds", "interval", "warmup")
    given = {name: value for name in names if (value := getattr(arguments, name)) is not None}
    if arguments.timing_verbosity is not None:
        given["verbosity"] = arguments.timing_verbosity
    return Timing(**given) if given else None


def number_from(low: int) -> Callable[[str], int]:
    """A type of argument: integers from a number on."""

    def number(text: str) -> int:
        if not text.isdecimal() or len(text) > 12 or int(text) < low:
            raise argparse.ArgumentTypeError(f"{text!r} is no number from {low} on")
        return int(text)

    return number


def _verbosity(text: str) -> Verbosity:
    levels = {str(level.value): level for level in Verbosity}
    if text not in levels:
        raise argparse.ArgumentTypeError(f"{text!r} is none of {', '.join(levels)}")
    return levels[text]
