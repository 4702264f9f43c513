"""Second passes over the same chunks.

A chunk that two tasks need stays in memory until both are done, and where the second one waits for all of the first
ones, so would the whole array. What was read from a store, or computed from it chunk by chunk, is read again instead.
"""

from __future__ import annotations

import dask.array as da
from dask._task_spec import Task
from dask.base import tokenize
from dask.blockwise import Blockwise
from dask.graph_manipulation import clone


def read_again(x: da.Array) -> da.Array:
    """The same array by tasks of its own, where these are no more than reading and computing chunk by chunk; the array
    itself where its chunks are in memory, or come of what goes between chunks."""
    layers = x.dask.layers
    if not isinstance(layers.get(x.name), Blockwise):
        return x
    sources = [layer for layer in layers.values() if not isinstance(layer, Blockwise)]
    if any(isinstance(value, (Task, tuple)) for layer in sources for value in layer.values()):
        return x
    again: da.Array = clone(x, seed=f"again-{tokenize(x.name)}", assume_layers=True)
    return again
