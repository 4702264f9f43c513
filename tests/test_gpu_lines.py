"""Reductions, softmax and normalisations on a GPU: lines of any layout, whole, in parts and in two passes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from anydml import Device, ReduceFunction, spec
from cases import tensor_of
from gpu_calls import on_gpu
from harness import GPU, run

pytestmark = pytest.mark.gpu

REDUCTION = "anydml.backends.triton.reduction.plan"
LINES = "anydml.backends.triton.normalization.lines"


@pytest.fixture
def in_parts(monkeypatch: pytest.MonkeyPatch) -> Callable[[bool], None]:
    """The kernels' ways for large tensors, on small ones, by offsets of 64 bits too."""

    def small(is_wide: bool) -> None:
        for name, value in {
            "TILE": 16,
            "HEAVY_TILE": 16,
            "WIDE_TILE": 32,
            "SIDE_BY_SIDE": 4,
            "FEW_LINES": 3,
            "SPAN": 8,
            "EXPONENTIALS": {False: (16, 1), True: (16, 1)},
        }.items():
            monkeypatch.setattr(f"{REDUCTION}.{name}", value)
        for name, value in {"WHOLE": 0, "TILE": 16, "ACROSS": 4, "FEW_LINES": 3}.items():
            monkeypatch.setattr(f"{LINES}.{name}", value)
        if is_wide:
            monkeypatch.setattr("anydml.backends.triton.lines.WIDE", 1)

    return small


def explained(desc: Any) -> str:
    device = Device(GPU)
    return device.compile_operator(device.create_operator(desc)).explain()


def laid_out(random: np.random.Generator, shape: tuple[int, ...], dtype: Any, how: str) -> np.ndarray[Any, Any]:
    x = (random.standard_normal(shape) * 4).astype(dtype)
    if how == "turned":
        return np.ascontiguousarray(x.T).T
    if how == "gapped":
        return np.repeat(x, 2, axis=-1)[..., ::2]
    return x


SHAPES = [((37, 5), (0,), "gapped"), ((2, 3, 9, 4), (0, 2), "turned"), ((1, 150), (0, 1), "packed")]


def desc_of(name: str, x: np.ndarray[Any, Any], y: np.ndarray[Any, Any], **members: Any) -> Any:
    steps = [stride // x.itemsize for stride in x.strides]
    return spec(name).desc(InputTensor=tensor_of(x, steps), OutputTensor=tensor_of(y), **members)


@on_gpu
@pytest.mark.parametrize(("shape", "axes", "how"), SHAPES)
@pytest.mark.parametrize(
    ("function", "dtype"),
    [
        ("SUM", np.float32),
        ("MIN", np.uint8),
        ("MULTIPLY", np.float32),
        ("LOG_SUM_EXP", np.float32),
        ("ARGMIN", np.float32),
    ],
)
def test_reductions(in_parts: Any, function: str, dtype: Any, shape: tuple[int, ...], axes: Any, how: str) -> None:
    in_parts(how == "gapped")
    x = laid_out(np.random.default_rng(3), shape, dtype, how)
    sizes = [1 if i in axes else size for i, size in enumerate(shape)]
    y = np.empty(sizes, np.uint32 if "ARG" in function else dtype)
    desc = desc_of("REDUCE", x, y, Function=ReduceFunction[function], Axes=axes)
    found, wanted = (run(engine, desc, [x])[0] for engine in (GPU, "reference"))
    np.testing.assert_allclose(found, wanted, 0 if dtype not in (np.float16, np.float32) else 2e-7)
    assert ("parts" in explained(desc)) == (x.size // y.size > 16)


LINES_OF: dict[str, Callable[[Any], dict[str, Any]]] = {
    "ACTIVATION_SOFTMAX1": lambda axes: {"Axes": axes},
    "ACTIVATION_LOG_SOFTMAX1": lambda axes: {"Axes": axes},
    "ACTIVATION_HARDMAX1": lambda axes: {"Axes": axes},
    "MEAN_VARIANCE_NORMALIZATION1": lambda axes: {"Axes": axes, "NormalizeVariance": True},
    "LP_NORMALIZATION": lambda axes: {"Axis": axes[0], "P": 2},
}


@on_gpu
@pytest.mark.parametrize(("shape", "axes", "how"), SHAPES)
@pytest.mark.parametrize("name", LINES_OF)
def test_lines_in_two_passes(in_parts: Any, name: str, shape: tuple[int, ...], axes: Any, how: str) -> None:
    in_parts(how == "gapped")
    assert "two passes" in check_lines(name, shape, axes, how)


@on_gpu
@pytest.mark.parametrize(("shape", "axes"), [((2, 700), (1,)), ((9, 131), (1,)), ((2, 9, 11), (1,))])
@pytest.mark.parametrize("name", LINES_OF)
def test_lines_that_are_read_once(name: str, shape: tuple[int, ...], axes: Any) -> None:
    """In two tiles, and across."""
    assert "each read once" in check_lines(name, shape, axes, "packed")


def check_lines(name: str, shape: tuple[int, ...], axes: Any, how: str) -> str:
    """Compares with the reference, and returns what is said of the kernel."""
    # LP_NORMALIZATION takes tensors of 4 dimensions.
    axes = [axis + 4 - len(shape) for axis in axes]
    shape = (1,) * (4 - len(shape)) + shape
    random = np.random.default_rng(4)
    dtype = np.float16 if how == "gapped" else np.float32
    x = laid_out(random, shape, dtype, how)
    members, inputs = LINES_OF[name](axes), [x]
    if name.startswith("MEAN"):
        # Of broadcast factors, and of one for each element.
        scale, bias = laid_out(random, (1,) * len(shape), dtype, "packed"), laid_out(random, shape, dtype, "packed")
        members |= {"ScaleTensor": tensor_of(scale), "BiasTensor": tensor_of(bias)}
        inputs += [scale, bias]
    desc = desc_of(name, x, np.empty(shape, dtype), **members)
    found, wanted = (run(engine, desc, inputs)[0] for engine in (GPU, "reference"))
    np.testing.assert_allclose(found, wanted, 1e-3 if dtype == np.float16 else 2e-7, 1e-7)
    return explained(desc)


@on_gpu
def test_a_variance_far_from_0(monkeypatch: pytest.MonkeyPatch) -> None:
    """In two passes, by differences from an element: that is as far from the others as can be."""
    monkeypatch.setattr(f"{LINES}.WHOLE", 0)
    x = np.full((1, 999), 1e6, np.float32) + np.random.default_rng(5).standard_normal((1, 999)).astype(np.float32)
    x[0, 0] = -1e7
    desc = desc_of("MEAN_VARIANCE_NORMALIZATION1", x, x, Axes=(1,), NormalizeVariance=True)
    found, wanted = (run(engine, desc, [x, None, None])[0] for engine in (GPU, "reference"))
    np.testing.assert_allclose(found, wanted, 1e-6)


@on_gpu
@pytest.mark.parametrize(("shape", "axes", "how"), SHAPES)
@pytest.mark.parametrize("name", LINES_OF)
def test_lines_that_are_read_again(
    in_parts: Any, monkeypatch: pytest.MonkeyPatch, name: str, shape: tuple[int, ...], axes: Any, how: str
) -> None:
    in_parts(how == "gapped")
    monkeypatch.setattr(f"{LINES}.BUSY", 0)
    assert "read again" in check_lines(name, shape, axes, how)


@on_gpu
@pytest.mark.parametrize("last", [80.0, -np.inf, np.inf, np.nan])
@pytest.mark.parametrize("name", ["REDUCE", "ACTIVATION_SOFTMAX1", "ACTIVATION_LOG_SOFTMAX1"])
def test_exponentials_of_elements_that_grow(in_parts: Any, name: str, last: float) -> None:
    """Each is the largest so far; before them come ones that are 0, and lines that are nothing but these."""
    in_parts(False)
    x = np.linspace(-90, 80, 3 * 151, dtype=np.float32).reshape(3, 151)
    x[:, :40], x[1, -1], x[2] = -np.inf, last, -np.inf
    members: dict[str, Any] = {"Function": ReduceFunction.LOG_SUM_EXP} if name == "REDUCE" else {}
    y = np.empty((3, 1) if name == "REDUCE" else x.shape, np.float32)
    desc = desc_of(name, x, y, Axes=(1,), **members)
    found, wanted = (run(engine, desc, [x])[0] for engine in (GPU, "reference"))
    np.testing.assert_allclose(found, wanted, 2e-7)


@on_gpu
@pytest.mark.parametrize("shape", [(3, 7), (2, 3, 101), (2, 201)])
@pytest.mark.parametrize("is_odd", [False, True])
@pytest.mark.parametrize(
    ("function", "dtype"),
    [
        *[(function, dtype) for function in ("MIN", "MAX") for dtype in (np.uint8, np.int8)],
        *[(function, np.float16) for function in ("SUM", "L2", "ARGMIN")],
    ],
)
def test_rows_that_begin_anywhere(
    torch: Any,
    place: Any,
    monkeypatch: pytest.MonkeyPatch,
    function: str,
    dtype: Any,
    is_odd: bool,
    shape: tuple[int, ...],
) -> None:
    """Read by whole vectors, but for those that the tensor has in part."""
    for name, value in {"FEW_ROWS": 1, "LONG_ROW": 1, "ROW_TILE": 64, "BYTES_TILE": 16}.items():
        monkeypatch.setattr(f"{REDUCTION}.{name}", value)
    x = laid_out(np.random.default_rng(6), shape, dtype, "packed")
    y = np.empty((*shape[:-1], 1), np.uint32 if "ARG" in function else dtype)
    desc = desc_of("REDUCE", x, y, Function=ReduceFunction[function], Axes=(len(shape) - 1,))
    assert "rows" in explained(desc)
    device = Device(GPU)
    operator = device.compile_operator(device.create_operator(desc))
    given = torch.zeros(x.size + is_odd, dtype=torch.from_numpy(x).dtype, device=place)[is_odd:].reshape(shape)
    given.copy_(torch.from_numpy(x))
    out = torch.zeros(y.shape, dtype=torch.from_numpy(y).dtype, device=place)
    operator.dispatch([given], [out])
    np.testing.assert_allclose(out.cpu().numpy(), run("reference", desc, [x])[0], 1e-3)
