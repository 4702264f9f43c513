"""How much memory a model may take: sizes as people write them, and what the machine or its container has."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def parse_size(text: str) -> int | None:
    """Bytes from ``500M``, ``2G``, ``1.5GiB`` or ``4096``, in powers of 1024; None where the text is no size.

    >>> parse_size("2K")
    2048
    """
    match = re.fullmatch(r"(\d{1,15}(?:\.\d{1,9})?) ?([KMGT]?)(?:i?B)?", text.strip(), re.IGNORECASE | re.ASCII)
    return None if match is None else int(float(match[1]) * _UNITS[match[2].upper()])


def format_size(size: int) -> str:
    """Bytes, with a rounded reading beside them where they are many.

    >>> format_size(3 << 20)
    '3145728 bytes (3.0 MiB)'
    """
    for unit in "TGMK":
        if size >= _UNITS[unit]:
            return f"{size} bytes ({size / _UNITS[unit]:.1f} {unit}iB)"
    return f"{size} bytes"


def default_limit() -> int:
    """Three quarters of the memory that the machine, or the container around this process, has."""
    return min(_machine_memory(), *_container_limits(Path("/"), sys.maxsize)) * 3 // 4


def _machine_memory() -> int:
    if sys.platform == "win32":
        import ctypes

        class Status(ctypes.Structure):
            _fields_ = (
                ("length", ctypes.c_ulong),
                ("load", ctypes.c_ulong),
                *((name, ctypes.c_ulonglong) for name in ("total", "free", "a", "b", "c", "d", "e")),
            )

        status = Status(length=ctypes.sizeof(Status))
        ctypes.windll.kernel32.GlobalMemoryStatusEx(ctypes.byref(status))
        return int(status.total)
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _container_limits(root: Path, none: int) -> Iterator[int]:
    """The limits of the control groups that this process is in, of both versions; `none` where there is none.

    A group is limited by all groups above it too.
    """
    yield none
    for line in _read(root / "proc/self/cgroup").splitlines():
        _, _, rest = line.partition(":")
        controllers, _, group = rest.partition(":")
        if controllers == "":
            mount, name = root / "sys/fs/cgroup", "memory.max"
        elif "memory" in controllers.split(","):
            mount, name = root / "sys/fs/cgroup/memory", "memory.limit_in_bytes"
        else:
            continue
        # Inside a container the path may be that of the host, and the mount the group itself.
        place = mount / group.strip("/")
        for folder in (place, *place.parents):
            if folder.is_relative_to(mount):
                text = _read(folder / name).strip()
                yield int(text) if text.isdecimal() else none


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
