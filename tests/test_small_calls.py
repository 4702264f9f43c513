"""The cache of prepared calls: a call like one before takes a shorter way, which does and says the same.

The function without its cache is what each call is compared with, for the small example of every operator.
"""

from __future__ import annotations

import copy
import inspect
import pickle
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from enum import Enum
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

import anydml
from anydml import Device, DMLError, FeatureLevel
from anydml.draw import EXAMPLES
from anydml.functions import _call_cache
from applied import arguments_of, function_of
from harness import GPU
from together import Row, together

pytestmark = pytest.mark.skipif(_call_cache.CALL_CACHE is None, reason="there is no compiled module")

on_gpu = pytest.mark.skipif(not GPU, reason="needs PyTorch and Triton: make test-gpu")
every = together(
    "name",
    [Row(name[0], name, (name,)) for name in EXAMPLES],
    before=lambda: _call_cache.CALL_CACHE.clear(),  # type: ignore[union-attr]
)
Arguments = dict[str, Any]


@pytest.fixture(params=["numpy", "torch"])
def kind(request: pytest.FixtureRequest) -> Callable[[np.ndarray], Any]:
    """What makes an operand of an array."""
    if request.param == "numpy":
        return np.copy
    pytest.importorskip("torch")
    return as_tensor


def as_tensor(array: np.ndarray) -> Any:
    import torch

    return torch.from_numpy(np.copy(array))


def zeros_like(array: Any) -> Any:
    return np.zeros_like(array) if isinstance(array, np.ndarray) else array.new_zeros(array.shape)


def as_out_has_it(name: str, made: Arguments) -> Any:
    """The results of a call as `out` has them: of coordinates their number and all rows."""
    call = function(name).__wrapped__
    plain = call(**made)
    if name != "NONZERO_COORDINATES":
        return plain
    x = made["x"]
    shapes = (1,), (int(np.prod(x.shape)), x.ndim)
    if isinstance(plain, np.ndarray):
        return call(**made, out=[np.zeros(shape, plain.dtype) for shape in shapes])
    return call(**made, out=[plain.new_zeros(shape) for shape in shapes])


@pytest.fixture(autouse=True)
def _empty_cache() -> None:
    assert _call_cache.CALL_CACHE is not None
    _call_cache.CALL_CACHE.clear()


def operands_of(name: str, change: Callable[[np.ndarray], Any] = np.copy) -> list[Any]:
    return [None if array is None else change(array) for array in EXAMPLES[name][1]]


def arguments(name: str, change: Callable[[np.ndarray], Any] = np.copy, **more: Any) -> Arguments:
    return {**arguments_of(EXAMPLES[name][0], operands_of(name, change)), **more}


def function(name: str) -> Any:
    return getattr(anydml, function_of(name))


def arrays_in(value: Any) -> Iterator[Any]:
    for each in value if isinstance(value, (list, tuple)) else [value]:
        if hasattr(each, "__array__"):
            yield each


def outcome(call: Callable[..., Any], given: Arguments) -> Any:
    """What a call does: the types and bits of its results, or its error; and what its arrays hold then."""
    result: Any
    try:
        result = [_bits(each) for each in arrays_in(call(**given))]
    except (DMLError, TypeError) as error:
        result = f"{type(error).__name__}: {error}"
    return result, [_bits(each) for value in given.values() for each in arrays_in(value)]


def _bits(array: Any) -> tuple[Any, ...]:
    known = np.asarray(array.cpu() if hasattr(array, "cpu") else array)
    return type(array), known.dtype, known.shape, known.tobytes()


def is_prepared(call: Any, given: Arguments) -> bool:
    """Whether a call takes the shorter way, on which the function itself runs nothing."""
    with patch("anydml.functions._call.note", wraps=_call_cache.note) as note:
        call(**given)
    return not note.called


def assert_alike(name: str, make: Callable[[], Arguments]) -> None:
    """After the plain call, these arguments twice, as without a cache."""
    call = function(name)
    call(**arguments(name))
    expected = outcome(call.__wrapped__, make())
    assert outcome(call, make()) == expected
    assert outcome(call, make()) == expected


# The shorter way is taken


@every
def test_a_call_like_one_before_is_prepared(name: str, kind: Any) -> None:
    call = function(name)
    assert not is_prepared(call, arguments(name, kind))
    assert is_prepared(call, arguments(name, kind))
    assert outcome(call, arguments(name, kind)) == outcome(call.__wrapped__, arguments(name, kind))


@every
def test_one_with_out_is_prepared_and_gives_it(name: str, kind: Any) -> None:
    call = function(name)
    plain = as_out_has_it(name, arguments(name, kind))
    out = [*map(zeros_like, plain)] if isinstance(plain, list) else zeros_like(plain)
    call(**arguments(name, kind, out=out))
    assert is_prepared(call, arguments(name, kind, out=out))
    result = call(**arguments(name, kind, out=out))
    for given, same, right in zip(arrays_in(out), arrays_in(result), arrays_in(plain), strict=True):
        assert same is given
        assert _bits(given) == _bits(right)


@every
def test_results_are_made_anew(name: str) -> None:
    call = function(name)
    results = [each for _ in range(3) for each in arrays_in(call(**arguments(name)))]
    assert len({each.ctypes.data for each in results}) == len(results)


@pytest.mark.gpu
@on_gpu
@every
def test_a_call_on_a_device_is_prepared(name: str) -> None:
    """What is made of numbers lies there from the first call on."""
    call, device = function(name), Device(GPU)

    def given(**more: Any) -> Arguments:
        return arguments(name, lambda array: as_tensor(array).to(device.memory.device), device=device, **more)

    plain = as_out_has_it(name, given())
    zeros = sys.modules["torch"].zeros_like
    out = list(map(zeros, plain)) if isinstance(plain, list) else zeros(plain)
    # What a function remembers beneath it is forgotten, too.
    assert _call_cache.CALL_CACHE is not None
    _call_cache.CALL_CACHE.clear()
    for more in ({}, {"out": out}):
        assert not is_prepared(call, given(**more))
        assert is_prepared(call, given(**more))
        assert outcome(call, given(**more))[0] == outcome(call.__wrapped__, given(**more))[0]
    results = [each for _ in range(2) for each in arrays_in(call(**given()))]
    assert len({each.data_ptr() for each in results}) == len(results)


@pytest.mark.gpu
@on_gpu
def test_numbers_beside_tensors_on_a_device() -> None:
    device = Device(GPU)
    x = as_tensor(np.full((1, 1, 2, 2), 8, np.uint8)).to(device.memory.device)
    for scale in (1.0, 0.5, 1.0):
        options = {"output_scale": 1.0, "window_size": 2, "device": device}
        call = {"x": x, "input_scale": scale, **options}
        assert anydml.quantized_linear_average_pooling(**call).item() == 8 * scale
        assert is_prepared(anydml.quantized_linear_average_pooling, call)
    with pytest.raises(DMLError, match=r"\(B7\)"):
        anydml.quantized_linear_average_pooling(**call, out=x[..., :1, :1])


@every
def test_what_is_called_is_like_a_function(name: str) -> None:
    call = function(name)
    for attribute in ("__module__", "__name__", "__qualname__", "__doc__", "__annotations__"):
        assert getattr(call, attribute) == getattr(call.__wrapped__, attribute)
    assert inspect.signature(call) == inspect.signature(call.__wrapped__)
    assert inspect.isroutine(call)
    assert repr(call).startswith(f"<function {call.__name__} at ")
    assert pickle.loads(pickle.dumps(call)) is call
    assert copy.deepcopy(call) is call
    assert weakref.ref(call)() is call
    owner = type("Owner", (), {"method": call})
    assert owner.method is call
    assert owner().method.__func__ is call


# What tells calls apart


@every
def test_other_values(name: str, kind: Any) -> None:
    assert_alike(name, lambda: arguments(name, lambda array: kind(np.flip(array))))


@every
@pytest.mark.parametrize(
    "change",
    [
        lambda array: np.asfortranarray(array),
        lambda array: np.flip(np.flip(array).copy()),
        lambda array: np.repeat(array, 2, -1)[..., ::2],
        lambda array: np.broadcast_to(array[..., :1], array.shape),
        lambda array: np.frombuffer(b"0" + array.tobytes(), np.uint8)[1:].view(array.dtype).reshape(array.shape),
    ],
    ids=["transposed", "reversed", "gapped", "repeated", "unaligned"],
)
def test_other_strides(name: str, change: Any) -> None:
    assert_alike(name, lambda: arguments(name, change))


@every
@pytest.mark.parametrize("dtype", [np.float16, np.float64, np.int32, np.bool_, ">f4", np.complex64])
def test_other_types(name: str, dtype: Any) -> None:
    assert_alike(name, lambda: arguments(name, lambda array: array.astype(dtype)))


@every
def test_other_shapes(name: str) -> None:
    assert_alike(name, lambda: arguments(name, lambda array: np.concatenate([array, array], -1)))
    assert_alike(name, lambda: arguments(name, lambda array: array[np.newaxis]))
    assert_alike(name, lambda: arguments(name, lambda array: array[..., :0]))


def others(value: Any) -> list[Any]:
    """What differs from a value a little."""
    if isinstance(value, Enum):
        return [*type(value), int(value.value)]
    if isinstance(value, bool):
        return [not value, int(value), "yes"]
    if isinstance(value, int):
        return [value + 1, -value, float(value), bool(value)]
    if isinstance(value, float):
        return [value + 1, -value, -0.0, 0.0, float("nan"), np.float32(value)]
    if isinstance(value, (tuple, list)):
        return [list(value), value[:-1], [*value[:-1], 1], [True for _ in value], [[each] for each in value]]
    return [None, 0, "float16"]


@every
def test_other_options(name: str) -> None:
    options = {option: value for option, value in arguments(name).items() if not [*arrays_in(value)]}
    for option, value in options.items():
        for other in others(value):
            assert_alike(name, lambda option=option, other=other: arguments(name, **{option: other}))


@every
@pytest.mark.parametrize(
    "device",
    ["reference", Device(), Device("reference"), Device(feature_level=FeatureLevel.LEVEL_1_0), "nowhere", 5],
    ids=["named", "cpu", "reference", "1.0", "nowhere", "number"],
)
def test_other_devices(name: str, device: Any) -> None:
    assert_alike(name, lambda: arguments(name, device=device))


@every
def test_arguments_by_place(name: str) -> None:
    call = function(name)
    call(**arguments(name))
    first = next(iter(inspect.signature(call).parameters))

    def by_place(**given: Any) -> Any:
        return call(given.pop(first), **given)

    assert outcome(by_place, arguments(name)) == outcome(call.__wrapped__, arguments(name))
    assert outcome(by_place, arguments(name)) == outcome(call.__wrapped__, arguments(name))
    with pytest.raises(TypeError):
        call(**arguments(name), unknown=1)
    with pytest.raises(TypeError):
        call(*range(40))
    assert outcome(call, arguments(name)) == outcome(call.__wrapped__, arguments(name))


# What is refused stays refused


def outs(name: str, given: Arguments) -> tuple[Any, list[np.ndarray]]:
    """Something to write to that fits, and its arrays."""
    plain = as_out_has_it(name, given)
    return plain, [*arrays_in(plain)]


@every
def test_out_that_does_not_fit(name: str) -> None:
    plain, _ = outs(name, arguments(name))
    is_list = isinstance(plain, list)

    def changed(change: Callable[[np.ndarray], Any]) -> Any:
        copies = [change(np.copy(each)) for each in arrays_in(plain)]
        return copies if is_list else copies[0]

    def read_only(array: np.ndarray) -> np.ndarray:
        array.flags.writeable = False
        return array

    for change in (
        np.asfortranarray,
        read_only,
        lambda array: array.astype(np.float64),
        lambda array: array[..., :0],
        lambda array: np.lib.stride_tricks.as_strided(array, array.shape, (0,) * array.ndim),
        lambda array: np.ma.masked_array(array),
        lambda array: None,
        lambda array: "nothing",
    ):
        assert_alike(name, lambda change=change: arguments(name, out=changed(change)))
    function(name)(**arguments(name, out=changed(np.copy)))
    assert_alike(name, lambda: arguments(name, out=changed(read_only)))


@every
@pytest.mark.parametrize("shift", [0, 1])
def test_out_that_shares_memory_with_an_operand(name: str, shift: int) -> None:
    """The prepared call sees it, though it is alike in all that its key holds."""

    def given(is_shared: bool) -> Arguments:
        made = arguments(name)
        operands = [each for value in made.values() for each in arrays_in(value)]
        plain, results = outs(name, made)
        if not operands:
            return {**made, "out": plain}
        size = max(operands[0].nbytes, results[0].nbytes) + 64
        memory = np.zeros(2 * size, np.uint8)
        at = shift * operands[0].itemsize if is_shared else size
        shared = memory[: operands[0].nbytes].view(operands[0].dtype).reshape(operands[0].shape)
        shared[...] = operands[0]
        out = memory[at : at + results[0].nbytes].view(results[0].dtype).reshape(results[0].shape)

        def replaced(value: Any) -> Any:
            if isinstance(value, list):
                return [replaced(each) for each in value]
            return shared if value is operands[0] else value

        rest = [np.copy(each) for each in results[1:]]
        changed = {argument: replaced(value) for argument, value in made.items()}
        return {**changed, "out": [out, *rest] if isinstance(plain, list) else out}

    call = function(name)
    call(**given(False))
    expected = outcome(call.__wrapped__, given(True))
    assert outcome(call, given(True)) == expected
    assert outcome(call, given(False)) == outcome(call.__wrapped__, given(False))


def test_outputs_that_share_memory() -> None:
    x = np.arange(8, dtype=np.float32)
    memory = np.zeros(8, np.float32)
    anydml.split(x, 2, out=[memory[:4], memory[4:]])
    with pytest.raises(DMLError, match=r"\(B8\)"):
        anydml.split(x, 2, out=[memory[:4], memory[3:7]])
    with pytest.raises(DMLError, match=r"\(B8\)"):
        anydml.split(x, 2, out=[memory[:4], memory[3:7]])


@every
def test_a_call_after_one_that_was_refused(name: str) -> None:
    call = function(name)
    first = next(iter(arguments(name)))
    for _ in range(2):
        with pytest.raises((DMLError, TypeError)):
            call(**arguments(name, **{first: object()}))
        assert outcome(call, arguments(name)) == outcome(call.__wrapped__, arguments(name))


def test_values_that_are_refused_the_second_time() -> None:
    x = np.arange(4, dtype=np.float32)
    anydml.gather(x, np.array([1, -4]))
    with pytest.raises(DMLError, match=r"5 at \(1,\).*\(V1\)"):
        anydml.gather(x, np.array([1, 5]))
    square, out = np.arange(6).reshape(2, 3), np.full((2, 3), -7)
    for call, places in (
        (lambda at: anydml.gather_elements(square, np.array([[0, at, 1]]), 0, out=out[:1]), range(-2, 2)),
        (lambda at: anydml.gather_nd(square, np.array([[1, 0], [0, at]]), out=out[0, :2]), range(-3, 3)),
        (lambda at: anydml.scatter_elements(square, np.array([[0, at, 1]]), square[:1], 0, out=out), range(-2, 2)),
        (lambda at: anydml.scatter_nd(square, np.array([[1, 0], [0, at]]), square[0, :2], out=out), range(-3, 3)),
    ):
        for _ in range(2):
            call(places.start)
            call(places.stop - 1)
            for at in (places.start - 1, places.stop):
                out[...] = -7
                with pytest.raises(DMLError, match=rf"{at} at .*from {places.start} to {places.stop - 1}.*\(V1\)"):
                    call(at)
                assert (out == -7).all()
    image = np.ones((1, 1, 2, 2), np.uint8)
    for scale, ok in ((0.5, True), (0.0, False), (np.nan, False), (2.0, True)):
        scales = np.full(1, scale, np.float32)
        call = lambda scales=scales: anydml.quantized_linear_average_pooling(  # noqa: E731
            image, scales, output_scale=1.0, window_size=2
        )
        if ok:
            assert call() == np.rint(scale)
        else:
            with pytest.raises(DMLError, match=r"\(V1\)"):
                call()


def test_lengths_that_are_refused_the_second_time() -> None:
    x, weight = np.ones((1, 2, 1, 1), np.float32), np.ones((1, 1, 1, 1), np.float32)

    def call(length: int) -> Any:
        lengths = np.full((1, 1, 1, 1), length, np.uint32)
        return anydml.rnn(x, weight, weight, sequence_lengths=lengths)

    first = call(2)
    with pytest.raises(DMLError, match=r"3 for sequence 0.*\(V1\)"):
        call(3)
    assert np.array_equal(call(2)[0], first[0])
    assert not np.array_equal(call(1)[0], first[0])


# Classes


class Subclass(np.ndarray):
    pass


def test_subclasses_are_not_taken_for_arrays() -> None:
    x = np.ones(3, np.float32)
    anydml.relu(x)
    for odd in (np.ma.masked_array(x, [True, False, False]), x.view(Subclass), np.asmatrix(x)):
        expected = outcome(anydml.relu.__wrapped__, {"x": odd})
        assert outcome(anydml.relu, {"x": odd}) == expected
    with pytest.raises(DMLError, match="a mask has no meaning here"):
        anydml.relu(np.ma.masked_array(x, [True, False, False]))


def test_tensors_that_are_refused() -> None:
    torch = pytest.importorskip("torch")
    x = torch.ones(3)
    anydml.relu(x)
    odd = [x.clone().requires_grad_(), torch._neg_view(x), x.to_sparse(), x.bfloat16(), torch.nn.Parameter(x)]
    for each in odd:
        for _ in range(2):
            with pytest.raises(DMLError, match=r"relu|RELU"):
                anydml.relu(each)
    assert type(anydml.relu(torch.ones(3))) is torch.Tensor
    assert type(anydml.add(torch.ones(3), np.ones(3, np.float32))) is torch.Tensor
    assert type(anydml.add(np.ones(3, np.float32), torch.ones(3))) is np.ndarray
    assert type(anydml.add(np.ones(3, np.float32), np.ones(3, np.float32))) is np.ndarray


# Values of options, exactly


def test_the_sign_of_zero() -> None:
    for value in (0.0, -0.0, 0.0, -0.0):
        assert np.signbit(anydml.fill_value_constant(2, value)).all() == np.signbit(value)


def test_one_is_not_true() -> None:
    x = np.ones((2, 2), np.float32)
    anydml.cumulative_summation(x, 1)
    with pytest.raises(DMLError, match=r"\(A5\)"):
        anydml.cumulative_summation(x, True)
    anydml.cumulative_summation(x, 1, exclusive=True)
    with pytest.raises(DMLError, match=r"\(A11\)"):
        anydml.cumulative_summation(x, 1, exclusive=1.0)


def test_numbers_beside_an_array() -> None:
    for dtype in (np.float32, np.int32, np.float16):
        x = np.arange(3).astype(dtype)
        for number in (2, 3, 2, -1):
            assert np.array_equal(anydml.add(x, number), x + dtype(number))
            assert np.array_equal(anydml.subtract(number, x), dtype(number) - x)
    with pytest.raises(DMLError, match=r"\(A13\)"):
        anydml.add(np.arange(3, dtype=np.uint8), -1)


def test_lists_are_known_by_what_they_hold() -> None:
    x = np.arange(6, dtype=np.float32)
    sizes = [2, 4]
    assert [each.size for each in anydml.split(x, sizes)] == [2, 4]
    sizes[:] = [3, 3]
    assert [each.size for each in anydml.split(x, sizes)] == [3, 3]
    numbers = [1.0, 2.0]
    for value in (2.0, 5.0, 2.0):
        numbers[1] = value
        assert anydml.cumulative_summation(numbers)[1] == 1 + value
    given = anydml.identity(numbers)
    given[...] = 9
    assert anydml.identity(numbers).tolist() == numbers


def test_descs_are_known_by_what_they_hold() -> None:
    x = np.array([-2.0, 2.0], np.float32)
    for alpha, expected in ((0.5, -2.0), (0.25, -1.0), (0.5, -2.0)):
        activation = anydml.DML_ACTIVATION_LEAKY_RELU_OPERATOR_DESC(Alpha=alpha)
        assert anydml.add(x, x, activation=activation)[0] == expected
    again = anydml.DML_ACTIVATION_LEAKY_RELU_OPERATOR_DESC(Alpha=0.25)
    assert is_prepared(anydml.add, {"a": x, "b": x, "activation": again})


def test_one_array_twice_is_not_two() -> None:
    x, y = np.arange(3, dtype=np.float32), np.full(3, 5, np.float32)
    assert np.array_equal(anydml.multiply(x, x), x * x)
    assert np.array_equal(anydml.multiply(x, y), x * y)
    assert np.array_equal(anydml.multiply(y, x), x * y)
    assert np.array_equal(anydml.subtract(x, y), x - y)
    assert np.array_equal(anydml.subtract(y, x), y - x)
    assert np.array_equal(anydml.join([x, x]), [*x, *x])
    assert np.array_equal(anydml.join([x, y]), [*x, *y])
    assert np.array_equal(anydml.join((x, y)), [*x, *y])


def test_an_option_that_is_an_array_is_known_by_its_values() -> None:
    x = np.arange(6, dtype=np.float32)
    for sizes in ([2, 4], [3, 3], [2, 4]):
        assert [each.size for each in anydml.split(x, np.array(sizes))] == sizes


def test_expressions_are_not_arrays() -> None:
    graph = anydml.Graph(Device())
    x = np.ones(3, np.float32)
    anydml.add(x, x)
    tensor = anydml.DML_BUFFER_TENSOR_DESC(DataType=anydml.TensorDataType.FLOAT32, Sizes=(3,))
    assert isinstance(anydml.add(graph.input(tensor), x), anydml.Expression)


# The cache itself


def test_the_cache_is_bounded() -> None:
    cache = _call_cache.CALL_CACHE
    assert cache is not None
    x = np.ones(2, np.float32)
    lengths = []
    for i in range(700):
        assert anydml.add(x, float(i))[0] == 1 + i
        lengths.append(len(cache))
    assert 1 < max(lengths) <= 512


def test_a_long_list_of_arrays() -> None:
    for count in (7, 500, 500, 7):
        pieces = [np.full(2, i, np.int16) for i in range(count)]
        assert np.array_equal(anydml.join(pieces), np.repeat(np.arange(count, dtype=np.int16), 2))


def test_large_arrays() -> None:
    x = np.arange(1 << 16, dtype=np.float32)
    for y in (x, x[::-1].copy(), x + 1):
        assert np.array_equal(anydml.add(x, y), x + y)


def test_threads_at_once() -> None:
    """Each with values of its own, of calls that are alike, while the cache is emptied."""
    cache = _call_cache.CALL_CACHE
    assert cache is not None
    wrong: list[Any] = []
    barrier = threading.Barrier(6)

    def work(number: int) -> None:
        x = np.full((3, 4), number, np.float32)
        out = np.empty_like(x)
        barrier.wait()
        for i in range(300):
            if number == 0 and i % 20 == 0:
                cache.clear()
            if not (anydml.add(x, x, out=out) is out and (out == 2 * number).all()):
                wrong.append(out.copy())
            if not (anydml.subtract(x, float(i % 3)) == number - i % 3).all():
                wrong.append(i)
            if not (anydml.reduce(x, anydml.ReduceFunction.SUM, 1) == 4 * number).all():
                wrong.append(number)

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(work, range(6)))
    assert not wrong


def test_references_are_given_back() -> None:
    x, out = np.ones(5, np.float32), np.ones(5, np.float32)
    pieces = [np.ones(2, np.float32) for _ in range(9)]
    before = [sys.getrefcount(each) for each in (x, out, *pieces)]
    for _ in range(50):
        anydml.relu(x, out=out)
        anydml.add(x, 1.0)
        anydml.join(pieces)
    assert [sys.getrefcount(each) for each in (x, out, *pieces)] == before
    x.resize(7)  # which NumPy refuses while a buffer is held
