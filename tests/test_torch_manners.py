"""PyTorch's manners: its compiler, automatic differentiation, subclasses, memory formats, and builds without a GPU."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import anydml
from anydml import DMLError
from harness import ENGINES

torch: Any = pytest.importorskip("torch")
engine = pytest.mark.parametrize("engine", ENGINES)

X = np.array([[1, -2, 3], [-4, 5, -6]], np.float32)


# Its compiler

COMPILED = """
{imports}

def network(x):
    y = anydml.relu(x * 2) + 1
    z = anydml.cumulative_summation(y, axis=0) * 2
    return anydml.join([y, z], axis=1).sum()

x = torch.tensor([[1.0, -2.0], [3.0, 4.0]])
expected = network(x)
compiled = torch.compile(network, backend="eager")
for _ in range(3):
    assert torch.equal(compiled(x), expected)
breaks = torch._dynamo.utils.counters["graph_break"]
assert breaks and all("anydml" in reason for reason in breaks), breaks
torch._dynamo.reset()
try:
    torch.compile(network, backend="eager", fullgraph=True)(x)
except torch._dynamo.exc.Unsupported as problem:
    assert "anydml" in str(problem)
else:
    raise AssertionError("a graph without a break")
"""


@pytest.mark.parametrize("imports", ["import anydml, torch", "import torch, torch._dynamo, anydml"])
def test_compile_breaks_the_graph(imports: str) -> None:
    """Whichever is loaded first, in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", COMPILED.format(imports=imports)], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr[-3000:]


# Automatic differentiation


@engine
@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_tensors_that_require_gradients_where_none_are_recorded(engine: str, mode: Any) -> None:
    x = torch.from_numpy(X.copy()).requires_grad_()
    for function in (anydml.relu, anydml.cumulative_summation, lambda x, **options: anydml.join([x, x], **options)):
        with pytest.raises(DMLError, match=r"Use \.detach\(\)"):
            function(x, device=engine)
        with mode():
            result = function(x, device=engine)
            expected = function(x.detach(), device=engine)
        assert torch.equal(result, expected)
        assert not result.requires_grad


def test_a_parameter_is_written_to_where_no_gradients_are_recorded() -> None:
    parameter = torch.nn.Parameter(torch.from_numpy(X.copy()))
    with torch.no_grad():
        assert anydml.relu(parameter, out=parameter) is parameter
    assert parameter.tolist() == np.maximum(X, 0).tolist()


def test_tensors_of_inference_mode_are_taken() -> None:
    with torch.inference_mode():
        x = torch.ones(3)
    assert anydml.cumulative_summation(x).tolist() == [1, 2, 3]


# Subclasses and memory formats


class Tagged(torch.Tensor):
    """A subclass whose results PyTorch's own functions make of it."""


@engine
def test_a_subclass_is_kept(engine: str) -> None:
    x = torch.from_numpy(X.copy()).as_subclass(Tagged)
    assert type(torch.relu(x)) is Tagged
    for result in (
        anydml.relu(x, device=engine),
        anydml.cumulative_summation(x, device=engine),
        anydml.join([x, torch.ones(1, 3)], device=engine),
        anydml.split(x, 2, device=engine)[1],
    ):
        assert type(result) is Tagged
    with torch.no_grad():
        assert type(anydml.relu(torch.nn.Parameter(torch.ones(3)), device=engine)) is torch.Tensor


@engine
def test_the_memory_format_is_kept(engine: str) -> None:
    for ndim, format in ((4, torch.channels_last), (5, torch.channels_last_3d)):
        random = np.random.default_rng(0).random((2, 3, *(4,) * (ndim - 2)), np.float32)
        rows = torch.from_numpy(random)
        x, filter = rows.to(memory_format=format), torch.ones(2, 3, *(2,) * (ndim - 2))
        for function in (
            anydml.relu,
            lambda x, **options: anydml.add(x, 1, **options),
            lambda x, **options: anydml.convolution(x, filter, [1, 2], **options),  # noqa: B023
            lambda x, **options: anydml.average_pooling(x, 2, **options),
            anydml.cumulative_summation,
            lambda x, **options: anydml.join([x, x], axis=1, **options),
        ):
            for _ in range(2):
                result = function(x, device=engine)
                assert result.is_contiguous(memory_format=format)
                assert function(rows, device=engine).is_contiguous()
                assert torch.allclose(result, function(rows, device=engine), rtol=1e-6)
        assert anydml.reduce(x, "sum", axis=1, device=engine).shape == (2, 1, *(4,) * (ndim - 2))
        assert anydml.gather(x, 0, device=engine).is_contiguous()


# Builds


@pytest.mark.parametrize(
    ("built_for", "found"),
    [({}, "is a build for the CPU alone"), ({"xpu": "20250000"}, "is a build for the CPU and xpu alone")],
)
def test_a_build_without_a_gpu_is_named(built_for: dict[str, str], found: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    for name in ("cuda", "hip", "xpu"):
        monkeypatch.setattr(torch.version, name, built_for.get(name), raising=False)
    with pytest.raises(DMLError) as raised:
        anydml.relu([1.0], device="cuda")
    assert f"PyTorch {torch.__version__} {found}" in str(raised.value)
    assert "Install a build of PyTorch for cuda" in str(raised.value)
    assert raised.value.violations[0].rule == "(D7)"
