"""The command line: ``anydml run``, ``check``, ``ops``, ``devices``, ``draw``, ``bench``, ``compare`` and ``warmup``.

Exit codes: 0, all is well; 1, the model or what it needs is wrong, as standard error says; 2, the command line is
wrong, or the model that it names can't be read; 130, interrupted.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from ..core.errors import DMLError
from .arguments import argument_parser
from .commands import code_of, title_of


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
    arguments = argument_parser().parse_args(argv)
    try:
        code: int = arguments.command(arguments)
        sys.stdout.flush()
        return code
    except DMLError as problem:
        for violation in problem.violations:
            print(f"{_prefix(arguments)}: {violation}", file=sys.stderr)
        return code_of(problem.violations)
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


def _prefix(arguments: argparse.Namespace) -> str:
    """What stands before a message: the model, as compilers put the file."""
    return title_of(getattr(arguments, "model", "anydml"))
