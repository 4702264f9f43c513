"""The tasks of a Dask array as a picture: which chunk each of them computes, and of which others."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from ..core.errors import refuse
from .boxes import MUTED, PANEL, TRACED_FILL, WHITE
from .graph import document, line, panel
from .layers import Vertex, layered

if TYPE_CHECKING:
    import dask.array as da

_MOST = 120
"""Tasks of a picture that one can read."""
_TOKEN = re.compile(r"-[0-9a-f]{32}")


def draw_tasks(array: da.Array, optimize: bool = False) -> str:
    """An SVG picture of the tasks that compute a Dask array: each below those whose results it takes.

    Args:
        array: what a function of this package made, or any other Dask array.
        optimize: whether tasks are drawn as Dask fuses them before it computes.

    Returns:
        An SVG document, in ASCII.

    Raises:
        DMLError: (P5) where there are more than 120 tasks.

    >>> import anydml, dask.array as da
    >>> x = da.zeros((8, 3), chunks=(4, 3), dtype="float32")
    >>> draw_tasks(anydml.softmax(x))[:40]
    '<svg xmlns="http://www.w3.org/2000/svg" '
    """
    import dask
    from dask.core import toposort

    tasks = dict(dask.optimize(array)[0].__dask_graph__() if optimize else array.__dask_graph__())
    if len(tasks) > _MOST:
        remedy = "Draw fewer chunks: the tasks of the others are alike"
        refuse("draw_tasks", "(P5)", "array", f"{len(tasks)} tasks", f"at most {_MOST}", remedy)
    order = toposort(tasks)
    numbers = {key: number for number, key in enumerate(order)}
    wanted = {*array.__dask_keys__()} if array.ndim == 0 else {*_flat(array.__dask_keys__())}
    vertices = []
    for key in order:
        sources = sorted(numbers[each] for each in _dependencies(tasks, key))
        name, place = _words(key, array.ndim)
        fill = TRACED_FILL if key in wanted else WHITE if sources else PANEL
        lines = [line(name, 13, bold=True), *([line(place, 11, MUTED)] if place else [])]
        vertices.append(Vertex(panel(lines, fill), sources))
    return document(layered(vertices), "tasks")


def _dependencies(tasks: Any, key: Any) -> set[Any]:
    from dask.core import get_dependencies

    return {each for each in get_dependencies(tasks, key) if each in tasks and each != key}


def _flat(keys: Any) -> list[Any]:
    return [each for key in keys for each in (_flat(key) if isinstance(key, list) else [key])]


def _words(key: Any, dimensions: int) -> tuple[str, str]:
    """The name of a task without its token, and the chunk's place."""
    name, *place = key if isinstance(key, tuple) else (key,)
    return _TOKEN.sub("", str(name)), ", ".join(map(str, place[:dimensions]))
