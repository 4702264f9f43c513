"""A fuzzer of descs, bindings, functions, models and ONNX models.

    python tests/fuzz.py --seconds 600 [--seed N] [--target validator|bindings|functions|model|onnx] [--case N]

Whatever it makes up is either refused, by a DMLError with nothing written, or runs on both engines with the same
result. Every case is made from the seed, the target and its number alone; what is found is printed with the command
that does it again. Exits with 1 where something was found.

Cases run in a child process with limited memory, so that a crash and an endless loop are findings too.
"""

from __future__ import annotations

import argparse
import contextlib
import faulthandler
import os
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from random import Random

from fuzzing.bindings import bindings
from fuzzing.common import HANG, MEMORY, NOTES, Finding
from fuzzing.descs import validator
from fuzzing.functions import functions
from fuzzing.models import models
from fuzzing.onnx_models import onnx_models

TARGETS: dict[str, Callable[[Random], None]] = {
    "validator": validator,
    "bindings": bindings,
    "functions": functions,
    "model": models,
}
if find_spec("onnx") is not None:
    TARGETS["onnx"] = onnx_models


def describe(what: object) -> str:
    try:
        return repr(what)[:3000]
    except Exception as problem:  # the case may be about just that
        return f"{type(what).__name__}, whose repr raises {type(problem).__name__}"


def command(target: str, seed: str, case: int) -> str:
    return f"python tests/fuzz.py --target {target} --seed {seed} --case {case}"


def one_case(target: str, seed: str, case: int) -> tuple[str, str] | None:
    """Where a case went wrong, and all that there is to say of it; None where it did not."""
    NOTES.clear()
    try:
        TARGETS[target](Random(f"{seed}/{target}/{case}"))
    except Exception as problem:
        frames = traceback.extract_tb(problem.__traceback__)
        ours = [frame for frame in frames if f"{os.sep}anydml{os.sep}" in frame.filename] or frames
        place = f"{type(problem).__name__} at {Path(ours[-1].filename).name}:{ours[-1].lineno}"
        if isinstance(problem, Finding):
            place = f"Finding at {frames[-2].lineno}: {str(problem)[:40]}"
        return place, "".join(traceback.format_exception(problem, limit=-6))[-3000:]
    return None


def child(target: str, seed: str, seconds: float, cases: Iterator[int], progress: str | None) -> int:
    """Runs cases until the time is over; prints each kind of finding once."""
    faulthandler.enable()
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    slot = os.open(progress, os.O_WRONLY) if progress else None
    seen: set[str] = set()
    end = time.monotonic() + seconds
    for case in cases:
        if slot is not None:
            os.lseek(slot, 0, os.SEEK_SET)
            os.write(slot, b"%20d" % case)
        found = one_case(target, seed, case)
        if found is not None and found[0] not in seen:
            seen.add(found[0])
            print(f"FOUND {found[0]}\n  {command(target, seed, case)}\n  {describe(NOTES)}\n{found[1]}", flush=True)
        if time.monotonic() > end:
            break
    return 1 if seen else 0


def supervise(target: str, seed: str, seconds: float) -> int:
    """Runs a child; crashes and endless cases are findings too. After one, it goes on behind it."""
    end, first, failed = time.monotonic() + seconds, 0, 0
    while (left := end - time.monotonic()) > 0 or first == 0:
        with tempfile.TemporaryDirectory() as place:
            progress = Path(place, "progress")
            progress.touch()
            arguments = ["--target", target, "--seed", seed, "--seconds", str(left), "--first", str(first)]
            process = subprocess.Popen([sys.executable, __file__, *arguments, "--progress", str(progress)])
            last, ended = watch(process, progress, target)
        if process.returncode in (0, 1):
            failed |= process.returncode
            break
        failed = 1
        how = f"ended with {process.returncode}" if ended else "did not end"
        print(f"FOUND a case that {how}\n  {command(target, seed, last)}", flush=True)
        first = last + 1
    return failed


def watch(process: subprocess.Popen[bytes], progress: Path, target: str) -> tuple[int, bool]:
    """Waits for a child, and kills it where a case takes too long. Returns the last case, and whether it ended."""
    last, since, told, ended = -1, time.monotonic(), time.monotonic(), True
    while process.poll() is None:
        time.sleep(0.05)
        now = time.monotonic()
        case = int(progress.read_bytes().strip() or -1)
        if case != last:
            last, since = case, now
        elif now - since > HANG:
            process.kill()
            process.wait()
            ended = False
        if now - told > 10:
            told = now
            print(f"{target}: {last} cases", file=sys.stderr, flush=True)
    last = int(progress.read_bytes().strip() or -1)
    print(f"{target}: {last + 1} cases in all", file=sys.stderr, flush=True)
    return last, ended


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=600, help="time in all; 600 where not given")
    parser.add_argument("--seed", default=None, help="anything; another one at each run where not given")
    parser.add_argument("--target", choices=TARGETS, help="what to fuzz; all in turn where not given")
    parser.add_argument("--case", type=int, help="runs this one only, in this process")
    parser.add_argument("--first", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--progress", help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    seed = options.seed if options.seed is not None else str(time.time_ns())
    if options.case is not None:
        if options.target is None:
            parser.error("--case needs --target")
        return child(options.target, seed, HANG, iter([options.case]), None)
    if options.progress is not None:
        return child(options.target, seed, options.seconds, count(options.first), options.progress)
    targets = [options.target] if options.target else list(TARGETS)
    print(f"seed {seed}", file=sys.stderr, flush=True)
    return max([supervise(target, seed, options.seconds / len(targets)) for target in targets])


if __name__ == "__main__":
    sys.exit(main())
