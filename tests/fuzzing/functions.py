"""Functions with operands and options of all kinds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

import numpy as np

import anydml
from fuzzing.bindings import ARENA, Part, fits
from fuzzing.common import ENGINES, expect, junk, note, outcome, small_sizes, strides_for
from fuzzing.descs import same_results
from fuzzing.drawing.pooling import pooling_numbers


def part(random: Random, dtype: str, sizes: Sequence[int]) -> Part:
    """An array of any strides, somewhere in the arena."""
    item = np.dtype(dtype).itemsize
    strides = [item * step for step in strides_for(random, sizes, True) or packed(sizes)]
    offset = item * random.randrange(16) + (random.choice([1, 2, 3]) if random.random() < 0.1 else 0)
    for i, size in enumerate(sizes):
        if random.random() < 0.2:
            strides[i] = -strides[i]
            offset -= (size - 1) * strides[i] if size else 0
        elif random.random() < 0.05:
            strides[i] = 0
    return Part(offset, dtype, tuple(sizes), tuple(strides), random.choice(["array"] * 9 + ["memoryview", "read-only"]))


def packed(sizes: Sequence[int]) -> list[int]:
    strides = [1] * len(sizes)
    for i in range(len(sizes) - 1, 0, -1):
        strides[i - 1] = strides[i] * max(1, sizes[i])
    return strides


def function_sizes(random: Random) -> tuple[int, ...]:
    sizes = small_sizes(random, random.choice([0, 1, 1, 2, 2, 3, 4, 8, 9, 12]), 32)
    return tuple(0 if random.random() < 0.05 else size for size in sizes)


def function_call(random: Random) -> tuple[str, list[Any], dict[str, Any]]:
    """A function's name, its arguments and its options; parts stand for arrays."""
    name = random.choice(["cumulative_summation", "cumulative_product", "join", "quantized_linear_average_pooling"])
    options: dict[str, Any] = {}
    if name == "quantized_linear_average_pooling":
        return name, *pooling_call(random)
    dtype = random.choice(["<i4", "<u4", "<i8", "<u8"] + ["<i2", "u1", ">i4", "<f8", "?"] * (random.random() < 0.2))
    sizes = function_sizes(random)
    axis = random.randrange(-len(sizes), len(sizes)) if sizes else 0
    if name == "join":
        pieces, total = [], 0
        for _ in range(random.randint(1, 4)):
            changed = list(sizes)
            if changed:
                changed[axis] = random.choice([0, 1, 2, 3])
                total += changed[axis]
            if random.random() < 0.05 and changed:
                changed[random.randrange(len(changed))] += 1
            pieces.append(part(random, dtype, changed))
        arguments: list[Any] = [pieces]
        sizes = tuple(total if i == axis % len(sizes) else size for i, size in enumerate(sizes))
    else:
        arguments = [part(random, dtype, sizes)]
        options = {"exclusive": random.choice([True, False]), "reverse": random.choice([True, False])}
    options["axis"] = axis
    if random.random() < 0.4:
        out = part(random, dtype, sizes)
        same = name != "join" and random.random() < 0.4
        options["out"] = arguments[0] if same else out._replace(offset=out.offset + random.choice([0, 256, 512]))
    return name, arguments, options


def pooling_call(random: Random) -> tuple[list[Any], dict[str, Any]]:
    sizes = (random.randint(0, 2), random.randint(0, 3), *small_sizes(random, random.choice([2, 2, 3]), 32))
    numbers, places = pooling_numbers(random, sizes[2:])
    names = ("strides", "window_size", "start_padding", "end_padding", "dilations")
    options: dict[str, Any] = dict(zip(names, numbers.values(), strict=True))
    dtype, channels = random.choice(["u1", "i1"]), sizes[1]

    def scale() -> Any:
        choices = [
            1.0,
            2,
            0.1,
            [0.5] * channels,
            np.float32(3),
            np.full(channels, 2.0),
            np.full((1, channels, 1, 1), 3),
        ]
        return random.choice(choices)

    def zero_point(dtype: str) -> Any:
        return random.choice([None, None, 0, 5, [1] * channels, np.ones((), dtype), np.full(channels, 3, dtype)])

    out_dtype = random.choice([dtype, "u1", "i1"])
    options |= {
        "output_scale": scale(),
        "output_zero_point": zero_point(out_dtype),
        "include_padding": random.choice([True, False]),
    }
    if random.random() < 0.5:
        options["output_sizes"] = places
    if random.random() < 0.5:
        options["output_dtype"] = out_dtype
    if random.random() < 0.4:
        out = part(random, out_dtype, (*sizes[:2], *places))
        options["out"] = out._replace(offset=out.offset + 512)
    return [part(random, dtype, sizes), scale(), zero_point(dtype)], options


def on_arena(value: Any, arena: np.ndarray) -> Any:
    if isinstance(value, Part):
        return value.on(arena)
    if type(value) is list:
        return [each.on(arena) if isinstance(each, Part) else each for each in value]
    return value


def parts_in(value: Any) -> Iterator[Part]:
    if isinstance(value, Part):
        yield value
    elif type(value) is list:
        yield from (each for each in value if isinstance(each, Part))


def functions(random: Random) -> None:
    name, arguments, options = function_call(random)
    if not all(fits(each) for value in [*arguments, *options.values()] for each in parts_in(value)):
        return
    for _ in range(random.choice([0, 0, 0, 1, 2])):
        key = random.choice([*options, *range(len(arguments))])
        if isinstance(key, int):
            arguments[key] = junk(random)
        elif key != "device":
            options[key] = junk(random)
    note(name, arguments, options)
    if not modest(options):
        return
    function = getattr(anydml, name)
    start = np.frombuffer(random.randbytes(ARENA), np.uint8)
    seen = []
    for engine in ENGINES:
        arena = start.copy()
        # What is junk may be an iterator or an array: each engine gets what the other got, if it can be had again.
        made = [on_arena(argument, arena) for argument in arguments]
        keywords = {key: on_arena(value, arena) for key, value in options.items()}
        result = outcome(lambda made=made, keywords=keywords: function(*made, **keywords, device=engine))  # noqa: B023
        if result.rules is not None:
            expect(bytes(arena) == bytes(start), engine, "refused", result.rules, "and wrote")
        else:
            if keywords.get("out") is not None:
                expect(result.result is keywords["out"], "out is not returned")
            written = options.get("out")
            check_part(written if isinstance(written, Part) else None, start, arena)
        seen.append((result.rules, arena, result.result))
    (rules, arena, value), (other_rules, other_arena, other_value) = seen
    same_results((name, arguments, options), rules, arena, other_rules, other_arena)
    if rules is None and isinstance(value, np.ndarray):
        expect(value.dtype == other_value.dtype, "engines differ in type:", value.dtype, other_value.dtype)
        same_results((name, arguments, options), None, value, None, other_value)


def modest(options: dict[str, Any]) -> bool:
    """Whether junk does not by chance ask, rightly, for a result of gigabytes."""
    numbers = (number for key in ("start_padding", "end_padding", "output_sizes") for number in flat(options.get(key)))
    return all(not isinstance(value, (int, np.integer)) or value < 2**9 or value >= 2**32 for value in numbers)


def flat(value: Any, most: int = 8) -> Iterator[Any]:
    """What lists and arrays of any shapes hold, but for what lies deeper than so many lists; one may hold itself."""
    if isinstance(value, np.ndarray):
        yield from value.ravel().tolist()
    elif not isinstance(value, (list, tuple)):
        yield value
    elif most > 0:
        for each in value:
            yield from flat(each, most - 1)


def check_part(written: Part | None, before: np.ndarray, after: np.ndarray) -> None:
    marks = np.zeros(ARENA, np.uint8)
    if written is not None:
        dtype = f"u{np.dtype(written.dtype).itemsize}"
        np.ndarray(written.sizes, dtype, marks, written.offset, written.strides)[...] = np.iinfo(dtype).max
    expect(bool((before == after)[marks == 0].all()), "wrote beside the elements of out")
