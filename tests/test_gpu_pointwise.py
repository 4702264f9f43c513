"""Pointwise operators and chains of them on a GPU, each in one kernel: of any shape, the same as on the CPU."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import erf
from typing import Any

import numpy as np
import pytest

import anydml
from anydml import Device, Graph
from anydml.backends.base import Declined
from anydml.core.strided_layout import Layout
from anydml.operators import OPERATORS, Trait, spec_of
from cases import all_cases
from gpu_calls import on_gpu
from harness import GPU, assert_same

pytestmark = pytest.mark.gpu

POINTWISE = [name for name, operator in OPERATORS.items() if Trait.POINTWISE in operator.traits]
PLAN = "anydml.backends.triton.pointwise.plan"


@pytest.fixture(params=["as planned", "small blocks", "wide offsets"])
def ways(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The kernels' ways for large tensors, on small ones."""
    from anydml.functions._call import _compile

    if request.param != "as planned":
        monkeypatch.setattr(f"{PLAN}.BLOCK", 16)
    if request.param == "wide offsets":
        monkeypatch.setattr(f"{PLAN}.WIDE", 1)
    _compile.cache_clear()
    yield
    _compile.cache_clear()


@on_gpu
@pytest.mark.parametrize("name", POINTWISE)
def test_every_operator_is_one_kernel_or_one_call(
    torch: Any, place: Any, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No call is one that there is no expression for, also where the interpreter cannot run the kernel."""
    from anydml.backends.triton.pointwise import plan

    monkeypatch.setattr(f"{PLAN}.is_interpreted", lambda: False)
    for case in all_cases():
        spec = spec_of(case.desc)
        if spec is None or spec.name != name:
            continue
        inputs, outputs = (
            [None if tensor is None else Layout.of_desc(tensor) for _, tensor in side(case.desc)]
            for side in (spec.inputs, spec.outputs)
        )
        if any(layout is not None and min(layout.strides, default=0) < 0 for layout in (*inputs, *outputs)):
            continue
        planned = plan.plan(spec, case.desc, inputs, [layout for layout in outputs if layout is not None], GPU)
        assert not isinstance(planned, Declined) or planned.reason == "one call of PyTorch does it", planned


def laid_out(random: np.random.Generator, shape: tuple[int, ...], dtype: type, how: str) -> np.ndarray[Any, Any]:
    x = (random.standard_normal(shape) * 4).astype(dtype)
    if how == "transposed":
        return np.ascontiguousarray(x.T).T
    if how == "gapped":
        return np.repeat(x, 2, axis=-1)[..., ::2]
    return x


@on_gpu
@pytest.mark.usefixtures("ways")
@pytest.mark.parametrize(
    ("dtype", "shape", "others", "how"),
    [
        (np.float32, (1,), (1,), "packed"),
        (np.float16, (17,), (17,), "gapped"),
        (np.float32, (3, 5, 7), (3, 5, 7), "transposed"),
        (np.float16, (4, 33), (1, 33), "packed"),
        (np.float32, (4, 33), (4, 1), "transposed"),
        (np.float32, (2, 3, 4, 5), (1, 3, 1, 5), "gapped"),
        (np.float32, (1025, 3), (1, 1), "packed"),
    ],
)
def test_shapes(torch: Any, place: Any, dtype: type, shape: tuple[int, ...], others: tuple[int, ...], how: str) -> None:
    random = np.random.default_rng(3)
    x, y = laid_out(random, shape, dtype, how), laid_out(random, others, dtype, how)

    def on_device(array: np.ndarray[Any, Any]) -> Any:
        whole = torch.from_numpy(array.base if array.base is not None else array).to(place)
        steps = [stride // array.itemsize for stride in array.strides]
        return whole.as_strided(array.shape, steps)

    operations: list[Callable[..., Any]] = [
        lambda x, y, **device: anydml.mean(x, y, **device),
        lambda x, y, **device: anydml.clip(x, -1, 2, **device),
        lambda x, y, **device: anydml.threshold(x, 0.5, **device),
        lambda x, y, **device: anydml.greater_than(x, y, **device),
    ]
    for operation in operations:
        there = operation(on_device(x), on_device(y), device=GPU)
        np.testing.assert_array_equal(there.cpu().numpy(), operation(x, y))


@on_gpu
@pytest.mark.usefixtures("ways")
def test_a_chain_is_one_kernel_with_every_output(torch: Any, place: Any) -> None:
    random = np.random.default_rng(4)
    x = random.standard_normal((5, 37)).astype(np.float32)
    row = random.standard_normal((1, 37)).astype(np.float32)

    def built(device: Device) -> Any:
        graph = Graph(device)
        a, b = graph.input(x.shape), graph.input(row.shape)
        middle = anydml.relu(anydml.mean(a, b) * 2 - 1)
        return graph.compile([anydml.if_(anydml.greater_than(middle, a), middle, a / 4), middle])

    there = built(Device(GPU))
    assert "one kernel for" in there.explain()
    found = there(torch.from_numpy(x).to(place), torch.from_numpy(row).to(place))
    for mine, expected in zip(found, built(Device("cpu"))(x, row), strict=True):
        np.testing.assert_array_equal(mine.cpu().numpy(), expected)


@on_gpu
def test_error_functions_and_quotients_in_single_precision() -> None:
    """Of halves all are right, and of singles within a unit in the last place."""

    def run(f: Callable[..., Any], *arrays: Any) -> Any:
        graph = Graph(Device(GPU))
        return graph.compile([f(*[graph.input(each) for each in arrays])])(*arrays)

    halves = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    halves = halves[~np.isnan(halves)]
    bits = np.random.default_rng(1).integers(0, 1 << 32, 20000, dtype=np.uint32)
    near = np.random.default_rng(2).uniform(-4, 4, 20000)
    singles = np.concatenate([bits.view(np.float32), near.astype(np.float32), np.float32([0.0, -0.0, np.inf, -np.inf])])
    singles = singles[~np.isnan(singles)]
    for x, units in ((halves, 0), (singles, 1)):
        found = run(anydml.erf, x)
        wanted = np.array([erf(float(each)) for each in x]).astype(x.dtype)
        assert_same(found, wanted, units)
        np.testing.assert_array_equal(np.signbit(found), np.signbit(x))
    assert np.isnan(run(anydml.erf, np.float32([np.nan])))
    a, b = (np.random.default_rng(seed).permutation(halves) for seed in (3, 4))
    ends = np.float16([0, -0.0, np.inf, -np.inf, 1, 6e-8, 65504])
    a, b = np.concatenate([a, np.repeat(ends, 7)]), np.concatenate([b, np.tile(ends, 7)])
    with np.errstate(all="ignore"):
        wanted = np.abs((a.astype(np.float64) / b).astype(np.float16))
    assert_same(run(lambda a, b: anydml.abs(a / b), a, b), wanted)
