"""Dask arrays among what graphs are called with. Dask is not loaded where there are none."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from importlib import import_module
from typing import Any


def batches_for(values: Iterable[Any]) -> Any:
    """The module ``dask/batches.py``, where a value is a Dask array; None where none is."""
    library = sys.modules.get("dask.array")
    if library is None or not any(isinstance(each, library.Array) for each in values):
        return None
    return import_module("anydml.frontends.dask.batches")
