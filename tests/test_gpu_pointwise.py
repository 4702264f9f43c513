"""Pointwise operators and chains of them on a GPU, each in one kernel: of any shape, the same as on the CPU."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import erf, erfc, sqrt
from typing import Any

import numpy as np
import pytest

import anydml
from anydml import Device, Graph, spec
from anydml.backends.base import Declined
from anydml.backends.torch.devices import is_interpreted
from anydml.core.strided_layout import Layout
from anydml.operators import OPERATORS, Trait, spec_of
from cases import all_cases, tensor_of
from gpu_calls import on_gpu
from harness import GPU, assert_same, run

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
        (np.float32, (70, 131), (70, 131), "transposed"),
        (np.float16, (3, 40, 67), (1, 40, 1), "transposed"),
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


def softplus(x: Any) -> Any:
    return np.logaddexp(0, x)


def expm1_below(x: Any) -> Any:
    return np.where(x >= 0, x, np.expm1(x))


NARROW: dict[str, Callable[[Any], Any]] = {
    **{name: getattr(np, name) for name in ("cos", "sin", "tan", "cosh", "sinh", "tanh", "exp", "log", "sqrt")},
    **{f"a{name}": getattr(np, f"arc{name}") for name in ("cos", "sin", "tan", "cosh", "sinh", "tanh")},
    "celu": expm1_below,
    "elu": expm1_below,
    "erf": np.vectorize(erf, "d"),
    "gelu": lambda x: np.where(x == -np.inf, 0, x * np.vectorize(erfc, "d")(-x / sqrt(2)) / 2),
    "parametric_softplus": softplus,
    "scaled_elu": lambda x: np.float32(1.0507).astype("d") * np.where(x > 0, x, np.float32(1.6732) * np.expm1(x)),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "softplus": softplus,
    "softsign": lambda x: np.where(np.isinf(x), np.sign(x), x / (1 + abs(x))),
    "swish": lambda x: np.where(x == -np.inf, 0, x / (1 + np.exp(-x))),
}
CONSTANTS = {
    **dict.fromkeys(("celu", "elu"), (1.0,)),
    "parametric_softplus": (1.0, 1.0),
    "scaled_elu": (1.6732, 1.0507),
    "softplus": (1.0,),
    "swish": (1.0,),
}


def run_on_gpu(f: Callable[..., Any], *arrays: Any) -> Any:
    graph = Graph(Device(GPU))
    return graph.compile([f(*[graph.input(each) for each in arrays])])(*arrays)


HALVES = np.arange(1 << 16, dtype=np.uint16).view(np.float16)


@on_gpu
@pytest.mark.parametrize("name", NARROW)
def test_functions_in_single_precision(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of halves all are right, and of singles within a unit in the last place, of any sign and size."""
    if is_interpreted():  # where a program takes long
        monkeypatch.setattr(f"{PLAN}.BLOCK", 1 << 15)
    random = np.random.default_rng(1)
    bits = random.integers(0, 1 << 32, 12000, dtype=np.uint32).view(np.float32)
    near = np.concatenate([random.uniform(-end, end, 4000) for end in (1, 4, 20, 110)]).astype(np.float32)
    beside_1 = (1 + random.standard_normal(2000) * 10.0 ** random.uniform(-7, 0, 2000)).astype(np.float32)
    ends = np.float32([0, 1e-45, 1.1754944e-38, 1, 2, 3.4028235e38, np.inf])
    singles = np.concatenate([bits, near, beside_1, -beside_1, ends, -ends, [np.float32(np.nan)]])
    for x, units in ((HALVES, 0), (singles, 1)):
        found = run_on_gpu(lambda x: getattr(anydml, name)(x, *CONSTANTS.get(name, ())), x)
        with np.errstate(all="ignore"):
            wanted = NARROW[name](x.astype(np.float64)).astype(x.dtype)
        np.testing.assert_array_equal(np.isnan(found), np.isnan(wanted))
        is_number = ~np.isnan(wanted)
        assert_same(found[is_number], wanted[is_number], units)
        np.testing.assert_array_equal(np.signbit(found[is_number]), np.signbit(wanted[is_number]))


@on_gpu
def test_constants_of_functions_in_single_precision() -> None:
    """By which halves are computed so only where that was tried."""
    x = np.random.default_rng(5).uniform(-12, 12, 4000).astype(np.float32)
    wanted = {
        "elu": (2.5, lambda v: np.where(v >= 0, v, 2.5 * np.expm1(v))),
        "scaled_tanh": (1.0, 0.25, lambda v: np.tanh(v / 4)),
    }
    for name, (*constants, function) in wanted.items():
        found = run_on_gpu(lambda x, name=name, constants=constants: getattr(anydml, name)(x, *constants), x)
        assert_same(found, function(x.astype(np.float64)).astype(np.float32), 1)
    halves = HALVES[~np.isnan(HALVES)]
    found = run_on_gpu(lambda x: anydml.scaled_tanh(x, 1.0, 0.5), halves)
    assert_same(found, np.tanh(halves.astype(np.float64) / 2).astype(np.float16))


@on_gpu
@pytest.mark.parametrize(("alpha", "beta"), [(0.5, 2.0), (1.25, 0.6875), (0.25, 1.5)])
def test_activations_with_any_constants(alpha: float, beta: float) -> None:
    """Of halves all are right, and of singles within a unit in the last place."""
    random = np.random.default_rng(7)
    sizes = 10.0 ** random.uniform(-30, 1, 1000) * random.choice([-1, 1], 1000)
    singles = np.concatenate([random.uniform(-30, 30, 3000), sizes, [0, -0.0, np.inf, -np.inf]]).astype(np.float32)
    wanted: dict[str, tuple[tuple[float, ...], Callable[[Any], Any]]] = {
        "celu": ((alpha,), lambda v: np.where(v >= 0, v, alpha * np.expm1(v / alpha))),
        "elu": ((alpha,), lambda v: np.where(v >= 0, v, alpha * np.expm1(v))),
        "parametric_softplus": ((alpha, beta), lambda v: alpha * softplus(beta * v)),
        "scaled_elu": ((alpha, beta), lambda v: beta * np.where(v >= 0, v, alpha * np.expm1(v))),
        "scaled_tanh": ((alpha, beta), lambda v: alpha * np.tanh(beta * v)),
    }
    for name, (constants, function) in wanted.items():
        for x, units in ((HALVES[~np.isnan(HALVES)], 0), (singles, 1)):
            found = run_on_gpu(lambda x, name=name, constants=constants: getattr(anydml, name)(x, *constants), x)
            with np.errstate(all="ignore"):
                assert_same(found, function(x.astype(np.float64)).astype(x.dtype), units)


def _pairs(dtype: type) -> tuple[Any, Any]:
    """Numbers of any bits, multiples and powers of each other among them, and all pairs of special ones."""
    random = np.random.default_rng(5)
    kind = np.uint16 if dtype == np.float16 else np.uint32
    a, b = (random.integers(0, 1 << 8 * dtype().itemsize, 20000).astype(kind).view(dtype) for _ in range(2))
    with np.errstate(all="ignore"):
        a[:5000] = b[:5000] * random.integers(-50, 50, 5000).astype(dtype)
    b[5000:9000] = random.integers(-6, 7, 4000)
    b[9000:12000] = random.integers(-9, 9, 3000) / 2
    special = np.array([0, -0.0, 1, -1, np.inf, -np.inf, np.nan, 3, -3, 0.5, np.finfo(dtype).max, 6e-8], dtype)
    return np.concatenate([a, np.repeat(special, 12)]), np.concatenate([b, np.tile(special, 12)])


@on_gpu
@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_remainders(dtype: type) -> None:
    """Exact, but for the divisor's sign, which takes an addition."""
    a, b = _pairs(dtype)
    with np.errstate(all="ignore"):
        exact = np.fmod(a.astype(np.float64), b)
        floored = np.where((exact != 0) & ((exact < 0) != (b < 0)), exact + b, exact)
    found = run_on_gpu(lambda a, b: anydml.modulus_truncate(a, b), a, b)
    assert_same(found, exact.astype(dtype))
    np.testing.assert_array_equal(np.signbit(found[exact == 0]), np.signbit(a[exact == 0]))
    assert_same(run_on_gpu(lambda a, b: anydml.modulus_floor(a, b), a, b), floored.astype(dtype))


@on_gpu
@pytest.mark.parametrize(("dtype", "units"), [(np.float16, 0), (np.float32, 1)])
def test_powers(dtype: type, units: int) -> None:
    """Of halves right, of singles within a unit, and exact where a single holds them; C's of infinities and NaN."""
    x, e = _pairs(dtype)
    with np.errstate(all="ignore"):
        exact = np.power(x.astype(np.longdouble), e)
        wanted = exact.astype(np.float64).astype(dtype)
    found = run_on_gpu(lambda x, e: anydml.pow(x, e), x, e)
    assert_same(found, wanted, units)
    is_held = exact == wanted
    assert_same(found[is_held], wanted[is_held])
    for exponent in (1.75, 2.0, -0.5, 3.0):
        with np.errstate(all="ignore"):
            wanted = np.power(x.astype(np.float64), exponent).astype(dtype)
        assert_same(run_on_gpu(lambda x, exponent=exponent: anydml.pow(x, exponent), x), wanted, units)


@on_gpu
def test_quotients_in_single_precision() -> None:
    halves = HALVES[~np.isnan(HALVES)]
    a, b = (np.random.default_rng(seed).permutation(halves) for seed in (3, 4))
    ends = np.float16([0, -0.0, np.inf, -np.inf, 1, 6e-8, 65504])
    a, b = np.concatenate([a, np.repeat(ends, 7)]), np.concatenate([b, np.tile(ends, 7)])
    with np.errstate(all="ignore"):
        wanted = np.abs((a.astype(np.float64) / b).astype(np.float16))
    assert_same(run_on_gpu(lambda a, b: anydml.abs(a / b), a, b), wanted)


@on_gpu
@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32])
def test_quotients_of_integers(dtype: Any) -> None:
    """Of all bytes, and of the least, the largest and some other numbers; by 0 and -1 too."""
    ends = np.iinfo(dtype)
    numbers = np.arange(ends.min, ends.max + 1) if ends.bits == 8 else np.arange(max(-9, ends.min), 9)
    if ends.bits > 8:
        some = np.random.default_rng(3).integers(ends.min, ends.max, 90)
        special = [ends.min, ends.min + 1, ends.max // 2, ends.max // 2 + 1, ends.max - 1, ends.max]
        numbers = np.concatenate([numbers, special, some])
    a, b = (np.ascontiguousarray(each.astype(dtype)) for each in np.meshgrid(numbers, numbers))
    for name in ("DIVIDE", "MODULUS_TRUNCATE", "MODULUS_FLOOR"):
        x, y = tensor_of(a), tensor_of(b)
        desc = spec(f"ELEMENT_WISE_{name}").desc(ATensor=x, BTensor=y, OutputTensor=x)
        (found,), (wanted,) = (run(engine, desc, [a, b]) for engine in (GPU, "reference"))
        np.testing.assert_array_equal(found, wanted, err_msg=name)
