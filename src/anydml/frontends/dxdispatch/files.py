"""The files around a model: where they may lie, what may be read, and writing them so that nothing is half-written."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import IO
from uuid import uuid4

import numpy as np

from ...core.strided_layout import Array


class Refused(Exception):
    """Why a path won't do. Its caller makes a violation of it."""

    def __init__(self, found: str, expected: str, remedy: str = "") -> None:
        super().__init__(found)
        self.found = found
        self.expected = expected
        self.remedy = remedy


def resolve(text: str, folder: Path, allow_outside: bool, base: Path | None = None) -> Path:
    """The path that a model's `text` means, with symbolic links followed.

    Args:
        text: the path as the model has it.
        folder: the model's folder.
        allow_outside: whether it may lie outside of that.
        base: what it is relative to; the model's folder where None.

    Raises:
        Refused: it is absolute or leaves the folder, and `allow_outside` is not given; or it is no path at all.
    """
    try:
        path = ((base or folder) / text).resolve()
        inside = path.is_relative_to(folder.resolve()) and not Path(text).is_absolute()
    except (OSError, RuntimeError, ValueError) as problem:  # loops of links, names too long, NUL
        raise Refused(f"{text!r} ({problem})", "a path") from None
    if not text:
        raise Refused("an empty path", "a path")
    if not inside and not allow_outside:
        target = "" if str(path) == text else f", which is {str(path)!r}"
        raise Refused(
            f"{text!r}{target}",
            f"a relative path inside the model's folder, {str(folder)!r}",
            "--allow-outside (allow_outside=True) lifts this",
        )
    return path


def resolve_source(text: str, folder: Path, allow_outside: bool) -> Path:
    """The path of a file to be read, relative to the model's folder or, where none is there, to the current one.

    Raises:
        Refused: as :func:`resolve` does, of a file in the current folder too: it may lie outside of the model's.
    """
    refused = None
    path = Path()
    try:
        path = resolve(text, folder, allow_outside)
    except Refused as problem:
        refused = problem
    if (refused is not None or not os.path.exists(path)) and os.path.exists(text):
        return resolve(text, folder, allow_outside, Path.cwd())
    if refused is not None:
        raise refused
    return path


def source_size(path: Path) -> int:
    """The size in bytes of a regular file that can be read.

    Raises:
        Refused: there is no such file, or it is a folder, a pipe or a device.
    """
    status = _status(path)
    if not stat.S_ISREG(status.st_mode):
        raise Refused(f"{_KINDS.get(stat.S_IFMT(status.st_mode), 'something else')} {str(path)!r}", "a regular file")
    if not os.access(path, os.R_OK):
        raise Refused(f"{str(path)!r}, which may not be read", "a readable file")
    return status.st_size


_KINDS = {
    stat.S_IFDIR: "the folder",
    stat.S_IFIFO: "the pipe",
    stat.S_IFCHR: "the device",
    stat.S_IFBLK: "the device",
    stat.S_IFSOCK: "the socket",
}


def _status(path: Path) -> os.stat_result:
    try:
        return path.stat()
    except (OSError, ValueError) as problem:
        reason = problem.strerror if isinstance(problem, OSError) else str(problem)
        raise Refused(f"{str(path)!r} ({reason})", "a file that can be read") from None


def check_target(path: Path) -> None:
    """Looks whether a file could be written at `path`.

    Raises:
        Refused: it is something else than a regular file, or its folder may not be written to.
    """
    try:
        is_other = path.exists() and not path.is_file()
        parent = next(folder for folder in path.parents if folder.exists())
    except OSError as problem:
        raise Refused(f"{str(path)!r} ({problem.strerror})", "a path that can be written to") from None
    if is_other:
        raise Refused(f"{str(path)!r}, which is not a regular file", "the path of a file, or a new one")
    if not parent.is_dir() or not os.access(parent, os.W_OK):
        raise Refused(f"{str(path)!r}", f"a path in a folder that can be written to, which {str(parent)!r} is not")


def npy_array(path: Path) -> Array:
    """A .npy file's array, mapped into memory and not yet read.

    Raises:
        Refused: the file is no .npy file, or is cut off.
    """
    try:
        with np.errstate(all="ignore"):
            return np.lib.format.open_memmap(path, mode="r")
    except Exception as problem:  # a hostile header makes NumPy raise many things; all mean the same here
        reason = " ".join(str(problem).split())[:200]
        found = f"{str(path)!r} ({type(problem).__name__}: {reason})"
        raise Refused(found, "a whole .npy file, without objects") from None


def write_whole(path: Path, write: Callable[[IO[bytes]], object]) -> None:
    """Writes a file at once: until all of it is there, `path` is what it was before.

    Raises:
        OSError: it can't be written.
    """
    if not path.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "there is no such folder", str(path.parent))
    temporary = path.parent / f".{uuid4().hex}.tmp"
    try:
        with open(temporary, "xb") as file:
            write(file)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
