"""A pointwise operator, or a chain of them, as one kernel of Triton: read once, computed in registers, written once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from functools import lru_cache
from math import prod
from typing import Any

from ....core.strided_layout import Layout, fold
from ....operators import spec_of
from ....operators.pointwise_chain import PointwiseChain
from ....operators.schema import OperatorDesc, OperatorSpec
from ...base import Declined
from ...torch.devices import is_interpreted
from ...torch.lowering import adam, movement, statistics
from ...torch.lowering import pointwise as calls
from ...torch.tensors import TYPES
from ..division import divisors
from ..launch import WIDE, Launch, Planned, Tensors, next_power_of_2, too_many
from .narrow import call_of
from .source import IN_ORDER, line_kernel, tile_kernel
from .trace import NotTraced, Traced, composed, traced

BLOCK = 1024
"""Elements of a program; of halves twice, and of bytes four times as many."""
TILE_SIDES, TILE_WARPS = {1: 128, 2: 64, 4: 64, 8: 32}, 8
"""Of tiles in which an operand is transposed, by the bytes of the largest elements; and warps of a program then."""
SHORT = 16
"""Elements of a loop below which nothing is gained by tiles."""

_PLANS: Mapping[str, Callable[..., Any]] = {
    "ADAM_OPTIMIZER": adam.plan,
    "BATCH_NORMALIZATION": statistics.plan,
    "CAST": movement.plan,
}
"""What plans the calls of operators that are no rows of the pointwise table, and compute element by element."""


def plan(
    spec: OperatorSpec, desc: OperatorDesc, inputs: Sequence[Layout | None], outputs: Sequence[Layout], device: str
) -> Planned | Declined:
    read = [layout for layout in inputs if layout is not None]
    for layout in (*read, *outputs):
        if any(stride < 0 or stride % layout.dtype.itemsize for stride in layout.strides):
            return Declined("PyTorch has no strides that are negative or no multiple of an element")
    try:
        body = _traced(_Meaning(desc), tuple([layout and layout.type for layout in inputs]))
    except NotTraced as problem:
        return Declined(f"no expression for {problem}")
    # Operands in another order, broadcast, or of other sizes than the result's, PyTorch reads element by element; and
    # bytes by fours.
    items = {layout.dtype.itemsize for layout in (*read, *outputs)}
    is_plain = len(items) == 1 and (items != {1} or not body.lines)
    if body.calls < 2 and is_plain and len({_walk(layout) for layout in (*read, *outputs)}) == 1:
        return Declined("one call of PyTorch does it")
    if body.needs_libdevice and is_interpreted():
        return Declined("Triton's interpreter has no libdevice")
    sizes = outputs[0].sizes
    strides = [_steps(layout, sizes) for layout in (*read, *outputs)]
    # In the order of the output's memory.
    order = sorted(range(len(sizes)), key=lambda i: -strides[len(read)][i])
    strides = [tuple([each[i] for i in order]) for each in strides]
    folded, _, last = fold([sizes[i] for i in order], strides, -1)
    steps = [tuple([each[i] for i in last]) for each in strides]
    count = 1
    for size in folded:
        count *= size
    block = BLOCK * max(1, 4 // max(layout.dtype.itemsize for layout in (*read, *outputs)))
    programs = -(-count // block)
    declined = too_many(programs)
    if declined is not None:
        return declined
    reach = max(sum((size - 1) * step for size, step in zip(folded, each, strict=True)) for each in steps)
    is_wide = max(reach, programs * block) >= WIDE
    crossed = _crossed(folded, steps)
    if crossed is not None:
        return _by_tiles(body, folded, steps, crossed, desc, (*read, *outputs), is_wide)
    # Triton sees that remainders lie side by side where a size is a multiple of 16, and loads several at once.
    divides = is_wide or (folded or (0,))[-1] % 16 == 0
    in_order = tuple([prod(folded[d + 1 :]) for d in range(len(folded))])
    taken = tuple(
        [(IN_ORDER,) * len(each) if each == in_order else tuple([min(step, 2) for step in each]) for each in steps]
    )
    kernel = line_kernel(body, taken, len(read), is_wide, divides)
    inner = [*folded[1:], *[number for each in divisors(folded[1:]) for number in each]] if len(folded) > 1 else []
    arguments = [count, *inner, *[step for each in steps if each != in_order for step in each if step > 1]]
    launch = Launch(kernel, programs, arguments, {"BLOCK": block})
    return _planned(launch, f"one kernel for {body.calls} calls of PyTorch", desc, (*read, *outputs))


def _planned(launch: Launch, words: str, desc: OperatorDesc, layouts: Sequence[Layout]) -> Planned:
    def run(inputs: Tensors, outputs: Tensors) -> None:
        launch(*[each for each in inputs if each is not None], *outputs)

    # A graph looks at many chains that it does not keep.
    is_chain = isinstance(desc, PointwiseChain)
    return Planned(words, run, () if is_chain else ((launch, [TYPES[layout.type] for layout in layouts]),))


def _crossed(sizes: Sequence[int], steps: Sequence[Sequence[int]]) -> int | None:
    """The loop whose elements lie side by side in an input, where those of the output's innermost one lie apart in it;
    None where there is none, or one of the two loops is short."""
    if not sizes or steps[-1][-1] != 1 or sizes[-1] < SHORT:
        return None
    loops = [each.index(1) for each in steps[:-1] if each[-1] > 1 and 1 in each]
    return next((loop for loop in loops if sizes[loop] >= SHORT), None)


def _by_tiles(
    body: Traced,
    sizes: Sequence[int],
    steps: Sequence[Sequence[int]],
    crossed: int,
    desc: OperatorDesc,
    layouts: Sequence[Layout],
    is_wide: bool,
) -> Planned | Declined:
    """A tile of two loops for each program, so that a transposed operand is read as it lies in memory."""
    side = TILE_SIDES[max(layout.dtype.itemsize for layout in layouts)]
    rows, columns = (min(side, next_power_of_2(sizes[loop])) for loop in (crossed, -1))
    blocks = -(-sizes[crossed] // rows), -(-sizes[-1] // columns)
    around = [loop for loop in range(len(sizes) - 1) if loop != crossed]
    programs = prod(blocks) * prod(sizes[loop] for loop in around)
    declined = too_many(programs)
    if declined is not None:
        return declined
    taken = tuple([tuple([min(step, 2) for step in each]) for each in steps])
    kernel = tile_kernel(body, taken, crossed, is_wide)
    arguments = [*sizes, *blocks, *[step for each in steps for step in each if step > 1]]
    launch = Launch(kernel, programs, arguments, {"ROWS": rows, "COLUMNS": columns}, num_warps=TILE_WARPS)
    words = f"one kernel for {body.calls} calls of PyTorch, in tiles of {rows} x {columns}"
    return _planned(launch, words, desc, layouts)


def _steps(layout: Layout, sizes: Sequence[int]) -> tuple[int, ...]:
    """In elements; 0 where a dimension is broadcast."""
    item, lacking = layout.dtype.itemsize, len(sizes) - len(layout.sizes)
    own = [0 if size == 1 else stride // item for size, stride in zip(layout.sizes, layout.strides, strict=True)]
    return (0,) * lacking + tuple(own)


def _walk(layout: Layout) -> tuple[tuple[int, int], ...]:
    """Sizes, and strides in elements."""
    item = layout.dtype.itemsize
    pairs = zip(layout.sizes, layout.strides, strict=True)
    return tuple([(size, stride // item if size > 1 else 0) for size, stride in pairs])


class _Meaning:
    """A desc, equal to others that compute the same of elements."""

    def __init__(self, desc: OperatorDesc) -> None:
        self.desc = desc
        self._key = _key(desc)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Meaning) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)


def _key(value: Any) -> Any:
    """What tells a member of a desc from others; of tensors the type."""
    if hasattr(value, "DataType") and hasattr(value, "Sizes"):
        return value.DataType
    if hasattr(value, "__dataclass_fields__"):
        return type(value), *[_key(getattr(value, each.name)) for each in fields(value)]
    if isinstance(value, (list, tuple)):
        return tuple(map(_key, value))
    return value.hex() if isinstance(value, float) else value


@lru_cache(maxsize=512)
def _traced(meaning: _Meaning, types: tuple[Any, ...]) -> Traced:
    desc = meaning.desc
    read = [None if each is None else TYPES[each] for each in types]
    if isinstance(desc, PointwiseChain):
        links = []
        for link in desc.links:
            of_link = spec_of(link.desc)
            assert of_link is not None
            layouts, written = _layouts(of_link, link.desc)
            links.append((_calls(of_link, link.desc, layouts, written), link.operands, TYPES[written[0].type]))
        outputs = [TYPES[tensor.DataType] for tensor in desc.Outputs]
        return traced(composed(links, desc.results), read, outputs)
    spec = spec_of(desc)
    assert spec is not None
    layouts, written = _layouts(spec, desc)
    planned: Callable[..., Any] = _PLANS.get(spec.name, _calls)
    run = planned(spec, desc, layouts, written)
    if isinstance(run, Declined):
        raise NotTraced(run.reason)
    return traced(run, read, [TYPES[layout.type] for layout in written])


def _calls(
    spec: OperatorSpec, desc: OperatorDesc, inputs: Sequence[Layout | None], outputs: Sequence[Layout]
) -> Callable[..., None]:
    return call_of(spec.name, desc, TYPES[outputs[0].type]) or calls.plan(spec, desc, inputs, outputs)


def _layouts(spec: OperatorSpec, desc: OperatorDesc) -> tuple[list[Layout | None], list[Layout]]:
    inputs, outputs = (
        [None if tensor is None else Layout.of_desc(tensor) for _, tensor in side(desc)]
        for side in (spec.inputs, spec.outputs)
    )
    return inputs, [layout for layout in outputs if layout is not None]
