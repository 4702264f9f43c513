"""A pointwise operator, or a chain of them, as one kernel of Triton: read once, computed in registers, written once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from functools import lru_cache
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
from ..generated import kernel_of
from ..launch import WIDE, Launch, Planned, Tensors, too_many
from . import circular_functions, functions, half_functions, integer_functions, single_functions
from .narrow import CALLED, call_of
from .trace import NotTraced, Traced, composed, traced

BLOCK = 1024
"""Elements of a program; of halves twice, and of bytes four times as many."""

_FUNCTIONS = {
    "half_quotient": functions.half_quotient,
    **{
        name: function
        for module in (half_functions, single_functions, circular_functions, integer_functions)
        for name, function in vars(module).items()
        if name in CALLED
    },
}
"""What bodies call."""


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
    # Operands in another order, or broadcast, PyTorch reads element by element; and bytes by fours.
    are_bytes = all(layout.dtype.itemsize == 1 for layout in (*read, *outputs))
    is_plain = not are_bytes or not body.lines
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
    kernel = _kernel(body, tuple([tuple([min(step, 2) for step in each]) for each in steps]), len(read), is_wide)
    arguments = [count, *folded[1:], *[step for each in steps for step in each if step > 1]]
    launch = Launch(kernel, programs, arguments, {"BLOCK": block})

    def run(inputs: Tensors, outputs: Tensors) -> None:
        launch(*[each for each in inputs if each is not None], *outputs)

    is_chain = isinstance(desc, PointwiseChain)
    # A graph looks at many chains that it does not keep.
    compiled = () if is_chain else ((launch, [TYPES[layout.type] for layout in (*read, *outputs)]),)
    return Planned(f"one kernel for {body.calls} calls of PyTorch", run, compiled)


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


@lru_cache(maxsize=512)
def _kernel(body: Traced, steps: tuple[tuple[int, ...], ...], inputs: int, is_wide: bool) -> Any:
    """The kernel of a body.

    Args:
        body: what is computed.
        steps: of each tensor along each dimension: 0, 1, or 2 for one that is an argument.
        inputs: how many of the tensors are.
        is_wide: whether offsets take 64 bits.
    """
    return kernel_of(_source(body, steps, inputs, is_wide), "pointwise", **_FUNCTIONS)


def _source(body: Traced, steps: tuple[tuple[int, ...], ...], inputs: int, is_wide: bool) -> str:
    dimensions = len(steps[0])
    pointers = [f"p{i}" for i in range(len(steps))]
    names = [
        *pointers,
        "count",
        *[f"size{d}" for d in range(1, dimensions)],
        *[f"step{i}_{d}" for i, each in enumerate(steps) for d, step in enumerate(each) if step == 2],
        "BLOCK: tl.constexpr",
    ]
    xs = [f"x{i}" for i in range(inputs)]
    lines = ["@triton.jit", f"def compute({', '.join([*xs, 'BLOCK: tl.constexpr'])}):"]
    lines += [f"    {line}" for line in body.lines]
    lines += [f"    return {', '.join(body.results)}", "", ""]
    lines += ["@triton.jit", f"def kernel({', '.join(names)}):"]
    first = "tl.program_id(0).to(tl.int64)" if is_wide else "tl.program_id(0)"
    lines += [f"    start = {first} * BLOCK", "    at = start + tl.arange(0, BLOCK)", "    rest = at"]
    for d in range(dimensions - 1, 0, -1):
        lines += [f"    i{d} = rest % size{d}", f"    rest = rest // size{d}"]
    places = []
    for i, each in enumerate(steps):
        terms = []
        for d, step in enumerate(each):
            index = f"i{d}" if d else "rest"
            if step:
                terms.append(index if step == 1 else f"{index} * step{i}_{d}")
        places.append(f"p{i} + ({' + '.join(terms)})" if terms else f"p{i} + at * 0")
    for condition, mask, stored in (
        ("if start + BLOCK <= count", "", ""),
        ("else", ", mask=at < count, other=0", ", mask=at < count"),
    ):
        lines.append(f"    {condition}:")
        for i in range(inputs):
            is_one = not any(steps[i])
            read = f"tl.broadcast_to(tl.load(p{i}), [BLOCK])" if is_one else f"tl.load({places[i]}{mask})"
            lines.append(f"        x{i} = {read}")
        ys = [f"y{i}" for i in range(inputs, len(steps))]
        lines.append(f"        {', '.join(ys)} = compute({', '.join([*xs, 'BLOCK'])})")
        lines += [f"        tl.store({places[int(y[1:])]}, {y}{stored})" for y in ys]
    return "\n".join(lines) + "\n"
