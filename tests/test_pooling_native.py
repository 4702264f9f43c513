"""Pooling by the CPU's kernels: every type of its tables in any layout, and what lies at the edges of how they go."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import anydml
from anydml.backends.base import Declined
from anydml.backends.native.engine import CpuEngine
from anydml.core.strided_layout import DTYPES, Layout
from anydml.operators import spec
from anydml.operators.schema import OperatorDesc
from cases import tensor_of
from test_properties import property_test

OPERATORS = (
    *(
        "AVERAGE_POOLING",
        "AVERAGE_POOLING1",
        "LP_POOLING",
        "LP_POOLING1",
        "MAX_POOLING",
        "MAX_POOLING1",
        "MAX_POOLING2",
    ),
    *("AVERAGE_POOLING_GRAD", "MAX_POOLING_GRAD", "MAX_UNPOOLING"),
)

LAYOUTS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "packed": lambda x: x.copy(),
    "channels last": lambda x: np.moveaxis(np.ascontiguousarray(np.moveaxis(x, 1, -1)), -1, 1),
    "transposed": lambda x: np.ascontiguousarray(x.T).T,
    "backwards": lambda x: np.ascontiguousarray(x[..., ::-1, ::-1])[..., ::-1, ::-1],
    "gapped": lambda x: np.repeat(np.repeat(x, 2, -1), 3, 1)[:, ::3, ..., ::2],
    "at odd addresses": lambda x: np.frombuffer(bytearray(b"\0" + x.tobytes()), x.dtype, x.size, 1).reshape(x.shape),
}


def arrays_of(name: str, dtype: Any, sizes: tuple[int, ...], places: tuple[int, ...]) -> dict[str, np.ndarray]:
    """By member, the output's empty, of a window over `sizes` that has `places`."""
    rng = np.random.default_rng(len(name))

    def drawn(shape: tuple[int, ...]) -> np.ndarray:
        return rng.integers(-5 if np.dtype(dtype).kind != "u" else 0, 6, shape).astype(dtype)

    if name == "MAX_UNPOOLING":
        indices = rng.integers(0, np.prod(sizes) + 3, places).astype(np.uint32)
        return {"InputTensor": drawn(places), "IndicesTensor": indices, "OutputTensor": drawn(sizes)}
    if name.endswith("GRAD"):
        x = {"InputTensor": drawn(sizes)} if name.startswith("MAX") else {}
        return {**x, "InputGradientTensor": drawn(places), "OutputGradientTensor": drawn(sizes)}
    indices = {} if name in ("MAX_POOLING1", "MAX_POOLING2") else None
    found = {"InputTensor": drawn(sizes), "OutputTensor": drawn(places)}
    return found if indices is None else {**found, "OutputIndicesTensor": np.zeros(places, np.uint64)}


def desc_of(name: str, arrays: dict[str, np.ndarray], **members: Any) -> OperatorDesc:
    found = spec(name)
    more = {"P": 3, "IncludePadding": True, **members}
    tensors = {member: tensor_of(array) for member, array in arrays.items()}
    desc: OperatorDesc = found.desc(**tensors, **{key: value for key, value in more.items() if key in found.members})
    return desc


def native(desc: OperatorDesc, name: str, arrays: dict[str, np.ndarray]) -> list[np.ndarray]:
    """The outputs of the CPU's kernel, written to arrays of those strides."""
    found = spec(name)
    outputs = [array for member, array in arrays.items() if "output" in found.tensors[member].kind.lower()]
    inputs = [array for member, array in arrays.items() if "output" not in found.tensors[member].kind.lower()]
    layouts = [[Layout.of_array(array) for array in each] for each in (inputs, outputs)]
    kernel = CpuEngine().compile(found, desc, *layouts)
    assert not isinstance(kernel, Declined), (desc, kernel)
    kernel.run(inputs, outputs)
    return outputs


def check(name: str, arrays: dict[str, np.ndarray], lying: Callable[[np.ndarray], np.ndarray], **members: Any) -> None:
    desc = desc_of(name, arrays, **members)
    laid = {member: lying(array) for member, array in arrays.items()}
    inputs = [array for member, array in arrays.items() if "output" not in spec(name).tensors[member].kind.lower()]
    expected = spec(name).reference(desc, *inputs)
    expected = expected if isinstance(expected, tuple) else (expected,)
    for found, right in zip(native(desc, name, laid), expected, strict=True):
        np.testing.assert_array_equal(found, right)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", OPERATORS)
def test_every_type_of_the_tables_has_a_kernel_in_any_layout(name: str, layout: str) -> None:
    first = next(iter(spec(name).support.newest.values()))
    for data_type in first.data_types:
        for rank in first.dimension_counts:
            sizes, places = (2, 9, 5, 6, 7)[:rank], (2, 9, 6, 3, 8)[:rank]
            window = {
                "WindowSize": (2, 3, 2)[: rank - 2],
                "Strides": (1, 2, 1)[: rank - 2],
                "StartPadding": (1, 0, 2)[: rank - 2],
                "EndPadding": (1, 1, 0)[: rank - 2],
                "Dilations": (1, 1, 1)[: rank - 2],
            }
            check(name, arrays_of(name, DTYPES[data_type], sizes, places), LAYOUTS[layout], **window)


@pytest.mark.parametrize("channels", [8, 23, 64, 77])
@pytest.mark.parametrize("name", OPERATORS)
def test_channels_that_lie_last(name: str, channels: int) -> None:
    """Vectors of channels and the rest of them, with what no number is larger than."""
    for data_type in next(iter(spec(name).support.newest.values())).data_types:
        for rank in (4, 5) if name not in ("MAX_POOLING_GRAD", "MAX_UNPOOLING") else (4,):
            sizes, places = (2, channels, 6, 5, 7)[:rank], (2, channels, 6, 3, 8)[:rank]
            window = {
                "WindowSize": (3, 3, 2)[: rank - 2],
                "Strides": (1, 2, 1)[: rank - 2],
                "StartPadding": (1, 1, 2)[: rank - 2],
                "EndPadding": (1, 1, 0)[: rank - 2],
                "Dilations": (1, 1, 1)[: rank - 2],
            }
            arrays = arrays_of(name, DTYPES[data_type], sizes, places)
            first = next(iter(arrays.values()))
            if first.dtype.kind == "f" and name.startswith("MAX_POOLING"):
                first[:, ::3, 2:] = np.random.default_rng(1).choice([np.nan, -np.inf, 1], first[:, ::3, 2:].shape)
            check(name, arrays, LAYOUTS["channels last"], **{**window, "IncludePadding": channels % 2 == 0})


LARGE: dict[str, tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = {
    "wide": ((1, 1, 2, 5001), (1, 1, 1, 2499), {"WindowSize": (2, 5), "Strides": (1, 2)}),
    "wide windows": ((1, 2, 2, 9000), (1, 2, 1, 2001), {"WindowSize": (2, 7000), "Strides": (1, 1)}),
    "one wide window": ((2, 3, 1, 9000), (2, 3, 1, 1), {"WindowSize": (1, 9000), "Strides": (1, 1)}),
    "wide strides": ((1, 2, 3, 9000), (1, 2, 3, 90), {"WindowSize": (1, 3), "Strides": (1, 101)}),
    "wide dilation": (
        (1, 2, 3, 9000),
        (1, 2, 3, 3000),
        {"WindowSize": (1, 4), "Strides": (1, 1), "Dilations": (1, 2000)},
    ),
    "global": ((3, 5, 31, 37), (3, 5, 1, 1), {"WindowSize": (31, 37), "Strides": (1, 1)}),
    "of threads": ((4, 16, 60, 70), (4, 16, 58, 68), {"WindowSize": (3, 3), "Strides": (1, 1)}),
    "halves of threads": ((4, 16, 60, 70), (4, 16, 30, 35), {"WindowSize": (2, 2), "Strides": (2, 2)}),
    "large windows": ((1, 3, 150, 160), (1, 3, 71, 61), {"WindowSize": (80, 100), "Strides": (1, 1)}),
}


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("shape", LARGE)
@pytest.mark.parametrize("name", OPERATORS)
def test_large(name: str, shape: str, dtype: Any) -> None:
    sizes, places, window = LARGE[shape]
    has_dilations = "Dilations" in spec(name).members
    if "Dilations" in window and not has_dilations and "WindowSize" in spec(name).members:
        places = (*places[:3], sizes[3] - 3)
    nothing = {"StartPadding": (0, 0), "EndPadding": (0, 0), "Dilations": (1, 1)}
    check(name, arrays_of(name, dtype, sizes, places), LAYOUTS["packed"], **{**nothing, **window})


@property_test
@given(
    p=st.one_of(st.integers(1, 12), st.sampled_from([31, 64, 65, 100, 1000, 2**20, 2**32 - 1])),
    dtype=st.sampled_from([np.float32, np.float16]),
    exponent=st.integers(-20, 14),
    seed=st.integers(0, 2**32 - 1),
)
def test_norms_are_within_a_unit(p: int, dtype: Any, exponent: int, seed: int) -> None:
    """Of exact powers and roots, where double precision holds the powers."""
    mpmath = pytest.importorskip("mpmath")
    x = (np.random.default_rng(seed).uniform(-1, 1, (1, 1, 4, 5)) * 2.0**exponent).astype(dtype)
    y = anydml.lp_pooling(x, (2, 2), p=p)
    with mpmath.workprec(200):
        for row, column in np.ndindex(3, 4):
            powers = [mpmath.mpf(float(each)) ** p for each in np.abs(x[0, 0, row : row + 2, column : column + 2]).flat]
            if not 1e-290 < mpmath.fsum(powers) < 1e300:
                continue
            exact = dtype(float(mpmath.root(mpmath.fsum(powers), p)))
            np.testing.assert_array_max_ulp(y[0, 0, row, column], exact)
