"""Sessions: ONNX models that run by DirectML's operators, compiled for each signature that they are fed with."""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from hashlib import sha256
from threading import Lock
from typing import TYPE_CHECKING, Any, Never

import numpy as np
import onnx

from ...core.annotations import unquoted
from ...core.enums import ExecutionFlags, FeatureLevel
from ...core.errors import closest, kind_of, listing, refuse
from ...core.interop import as_array_of, converted
from ...device import Device
from ...graph.compile import CompiledGraph
from ...runtime.compiled import check_flags
from ..chunked import batches_for
from .dispatch import dispatch, key_of, on_host, run_step, type_of, where_it_is, with_known
from .fusion import fused
from .model import Model, ModelInput, read
from .node import Node
from .quantized import in_integers
from .trace import Piece, Report, trace
from .values import Held, Value

if TYPE_CHECKING:
    from os import PathLike

_MOST_KEPT = 64
"""Signatures that are kept compiled, those that ran last; of each piece as many that follow it."""


@unquoted
class InferenceSession:
    """An ONNX model, run by DirectML's operators.

    It is compiled when it first meets the types and shapes that it is fed with, at once where the model says all of
    them, and kept for these. Several threads may run it at once.

    Args:
        model: its path, its bytes, or a ModelProto.
        device: where to run, a Device or its name; "cpu" where None.
        feature_level: the level of a device that is given by name, or its number, such as "5.0"; the newest where None.
        fallback: whether nodes that DirectML's operators don't do run on ONNX Runtime, where that is installed, or on
            ONNX's reference. :meth:`explain` shows each of them.
        flags: as for :meth:`anydml.Device.compile_operator`: ALLOW_HALF_PRECISION_COMPUTATION, for instance.

    Raises:
        DMLError: (N1), (N2); (D1), (D7).
        OSError: for a file that cannot be read.
    """

    _is_trial = False
    """Whether nothing is compiled but what shapes depend on."""

    def __init__(
        self,
        model: str | PathLike[str] | bytes | onnx.ModelProto,
        *,
        device: Device | str | None = None,
        feature_level: FeatureLevel | str | None = None,
        fallback: bool = False,
        flags: ExecutionFlags = ExecutionFlags.NONE,
        **others: Never,
    ) -> None:
        for name in others:
            expected = "device, feature_level, fallback or flags"
            remedy = _OF_ONNX_RUNTIME.get(name) or closest(name, ("device", "feature_level", "fallback", "flags"))
            refuse("InferenceSession", "(A15)", name, "an argument that is unknown", expected, remedy, kind="type")
        check_flags("InferenceSession", flags)
        self.device = _device_of(device, feature_level)
        self._model: Model = read(model)
        self._path = os.fspath(model) if isinstance(model, (str, os.PathLike)) else None
        self._fallback = fallback
        self._flags = flags
        outputs = [each.name for each in self._model.outputs]
        nodes = _needed(self._model.nodes, outputs)
        nodes = _needed(in_integers(nodes, self._model.constants, outputs), outputs)
        self._nodes = _needed(fused(nodes, outputs), outputs)
        self._kept: OrderedDict[Hashable, Piece] = OrderedDict()
        self._lock = Lock()
        self._last: list[Piece] = []
        self._names = [each.name for each in self._model.inputs]
        self._output_names = outputs
        if all(_is_static(each) for each in self._model.inputs):
            types = {each.name: Held(each.name, _static(each), _dtype_of(each)) for each in self._model.inputs}
            self._first(types)

    def __reduce__(self) -> tuple[Any, ...]:
        """Read anew, where it is unpickled or copied, from its bytes, or of a file that is too large from that."""
        is_large = self._path is not None and self._model.size >= 2**31
        model = self._path if is_large else self._model.whole().SerializeToString(deterministic=True)
        return _opened, (model, self.device, self._fallback, self._flags)

    def __dask_tokenize__(self) -> tuple[Any, ...]:
        _, (model, device, fallback, flags) = self.__reduce__()
        name = sha256(model).hexdigest() if isinstance(model, bytes) else model
        return type(self).__name__, name, device, fallback, flags

    def __repr__(self) -> str:
        return f"<InferenceSession of {len(self._nodes)} nodes on {self.device}>"

    def get_inputs(self) -> list[ModelInput]:
        """What the model is fed with, with ``name``, ``shape`` and ``type``, as ONNX Runtime has them."""
        return list(self._model.inputs)

    def get_outputs(self) -> list[ModelInput]:
        """What it gives, likewise."""
        return list(self._model.outputs)

    def run(
        self, output_names: Sequence[str] | None, feeds: Mapping[str, Any], run_options: object = None
    ) -> list[Any]:
        """Runs the model.

        Args:
            output_names: which outputs are wanted, in the order in which they are returned; all where None.
            feeds: an array of any library for each input, by its name; a list of them for a sequence. Dask arrays are
                cut into batches, along dimension 0: of the model it is assumed that rows do not depend on each other.
                What is in memory goes to all batches as it is.
            run_options: ONNX Runtime's, which are not looked at.

        Returns:
            Arrays like the first that was fed; Dask arrays of batches where one was fed.

        Raises:
            DMLError: (N2) to (N5), and the operators' own rules on values; (K1), (K4) of Dask arrays.
        """
        names = self._output_names
        if isinstance(output_names, str):
            remedy = f"Write [{output_names!r}]"
            refuse("run", "(N3)", "output_names", kind_of(output_names), "a list of names", remedy, kind="type")
        wanted = names if output_names is None else list(output_names)
        for name in wanted:
            if name not in names:
                refuse("run", "(N3)", "output_names", repr(name), f"outputs of the model: {listing(names)}")
        known = self._known_signature(feeds)
        if known is None:
            batches = batches_for(feeds.values()) if isinstance(feeds, Mapping) else None
            if batches is not None:
                lazy: list[Any] = batches.run_session(self, wanted, feeds)
                return lazy
        ran = list(self._pieces_of(known, feeds))
        self._last = [piece for piece, _ in ran]
        last, held = ran[-1]
        results = dict(zip(names, [where_it_is(each, held) for each in last.results], strict=True))
        if known is not None and self.device.memory.is_host:
            # NumPy's arrays were fed, and are what is wanted.
            return [results[name] for name in wanted]
        like = next((each for each in feeds.values() if not isinstance(each, (list, tuple))), None)
        return [self._as_fed(like, results[name]) for name in wanted]

    def shapes_of(
        self, wanted: Sequence[str], feeds: Mapping[str, Any], rows: int
    ) -> list[tuple[tuple[int, ...], np.dtype[Any]]]:
        """The shapes and types of outputs, which are not computed.

        Args:
            wanted: the names of outputs.
            feeds: arrays of which nothing but types and shapes matters.
            rows: what the first size of an output is that the model leaves free, where shapes depend on values.

        Raises:
            DMLError: (K4), (N2), (N3).
        """
        trial: InferenceSession = object.__new__(type(self))
        own = {"_is_trial": True, "_kept": OrderedDict(), "_lock": Lock(), "_last": []}
        trial.__dict__.update(vars(self) | own)
        _, types = trial._fed(feeds)
        piece = trial._first(types)
        found: list[tuple[tuple[int, ...], np.dtype[Any]]] = []
        results = dict(zip([each.name for each in self._model.outputs], piece.results, strict=False))
        said = {each.name: each for each in self._model.outputs}
        for name in wanted:
            value, info = results.get(name), said[name]
            if isinstance(value, (Held, np.ndarray)):
                found.append((tuple(value.shape), np.dtype(value.dtype)))
                continue
            sizes = [rows, *info.shape[1:]] if info.shape else [None]
            if piece.rest is None or not info.data_type or not all(isinstance(size, int) for size in sizes):
                expected = "an output whose shape depends on those of the inputs alone, or is that of the model"
                refuse("run", "(K4)", name, f"{info.type} of shape {info.shape}", expected)
            found.append((tuple([int(size) for size in sizes if size is not None]), _dtype_of(info)))
        return found

    def reports(self) -> list[Report]:
        """What serves each node, of the signature that ran last or was compiled."""
        return [report for piece in self._last for report in piece.reports]

    def explain(self) -> str:
        """For each node: DirectML's operators, the engine, or why it is left to another runtime."""
        if not self._last:
            return "not compiled yet: the model's shapes are known only when it runs"
        lines = [str(report) for report in self.reports()]
        kernels = sum(len(each.steps) for each in self.graphs)
        head = f"{_counted(len(lines), 'node')}, {_counted(kernels, 'kernel')} in {_counted(len(self.graphs), 'graph')}"
        return "\n".join([head, *lines])

    @property
    def graphs(self) -> list[CompiledGraph]:
        """The graphs that were compiled for the signature that ran last: one, but where values are read on the host."""
        return [piece.compiled for piece in self._last if piece.compiled is not None]

    @property
    def graph(self) -> CompiledGraph:
        """The graph, where it is one.

        Raises:
            DMLError: (N5) where there are several, or none yet.
        """
        graphs = self.graphs
        if len(graphs) != 1:
            refuse("InferenceSession", "(N5)", "graph", f"{len(graphs)} graphs", "one", "graphs has all of them")
        return graphs[0]

    def pieces(self, feeds: Mapping[str, Any]) -> Iterator[tuple[Piece, dict[str, Any]]]:
        """The pieces of a run, each before it is dispatched, with the arrays that are there by then.

        Args:
            feeds: as for :meth:`run`.
        """
        yield from self._pieces_of(self._known_signature(feeds), feeds)

    def _pieces_of(
        self, known: tuple[Piece, dict[str, Any]] | None, feeds: Mapping[str, Any]
    ) -> Iterator[tuple[Piece, dict[str, Any]]]:
        if known is not None:
            piece, held = known
        else:
            held, types = self._fed(feeds)
            piece = self._first(types)
        while True:
            yield piece, held
            dispatch(piece, held)
            if piece.rest is None:
                return
            piece = self._next(piece, held)

    # Compiling

    def _known_signature(self, feeds: Mapping[str, Any]) -> tuple[Piece, dict[str, Any]] | None:
        """What serves NumPy's arrays whose types and shapes were looked at before, and the arrays."""
        if type(feeds) is not dict or len(feeds) != len(self._names):
            return None
        key = []
        for name in self._names:
            array = feeds.get(name)
            if type(array) is not np.ndarray:
                return None
            key.append((array.dtype, array.shape))
        found = self._found(self._kept, tuple(key))
        return None if found is None else (found, dict(feeds))

    def _first(self, types: dict[str, Value]) -> Piece:
        key = tuple([key_of(each) for each in types.values()])
        found = self._compiled(self._kept, key, lambda: (self._nodes, self._model.constants | types))
        self._last = self._last or [found]
        return found

    def _next(self, piece: Piece, held: dict[str, Any]) -> Piece:
        rest = piece.rest
        assert rest is not None
        if rest.step is not None:
            run_step(rest, rest.step, held)
        # Copies, as they may become constants, and what was fed may change.
        known = {key: np.array(on_host(held[key])) for key in rest.read}
        given = {name: held[name] for name in rest.resized}
        given |= {name: held.get(name) for name in rest.step.outputs if name} if rest.step is not None else {}
        types = {name: type_of(name, value) for name, value in given.items()}
        key = (
            tuple((name, key_of(each)) for name, each in known.items()),
            tuple((name, key_of(each)) for name, each in types.items()),
        )

        def state() -> tuple[Sequence[Node], dict[str, Value]]:
            values = {name: with_known(value, known) for name, value in rest.values.items()}
            return rest.nodes, values | types

        return self._compiled(piece.following, key, state)

    def _found(self, kept: OrderedDict[Hashable, Piece], key: Hashable) -> Piece | None:
        """What was compiled for a signature, which is then the one that ran last."""
        with self._lock:
            found = kept.get(key)
            if found is not None:
                kept.move_to_end(key)
            return found

    def _compiled(self, kept: OrderedDict[Hashable, Piece], key: Hashable, state: Any) -> Piece:
        found = self._found(kept, key)
        if found is not None:
            return found
        nodes, values = state()
        outputs = [each.name for each in self._model.outputs]
        made = trace(self.device, nodes, values, outputs, self._fallback, self._is_trial, self._flags)
        with self._lock:
            kept[key] = made
            while len(kept) > _MOST_KEPT:
                kept.popitem(last=False)
        return made

    # Feeds and results

    def _fed(self, feeds: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Value]]:
        """The arrays that a run is fed with, and their types."""
        wanted = {each.name: each for each in self._model.inputs}
        if not isinstance(feeds, Mapping):
            refuse("run", "(N3)", "feeds", kind_of(feeds), "a dictionary of arrays", kind="type")
        unknown = [name for name in feeds if name not in wanted]
        missing = [name for name in wanted if name not in feeds and not wanted[name].type.startswith("optional")]
        if unknown or missing:
            found = f"no {listing(missing, 'and')}" if missing else f"{unknown[0]!r}"
            refuse("run", "(N3)", "feeds", found, f"an array for each input: {listing(wanted, 'and')}")
        held: dict[str, Any] = {}
        types: dict[str, Value] = {}
        for name, info in wanted.items():
            value = feeds.get(name)
            if isinstance(value, (list, tuple)) and info.shape is None:
                each = [self._array(f"{name}[{i}]", one, info) for i, one in enumerate(value)]
                held |= {f"{name}[{i}]": one for i, one in enumerate(each)}
                types[name] = [type_of(f"{name}[{i}]", one) for i, one in enumerate(each)]
            else:
                held[name] = None if value is None else self._array(name, value, info)
                types[name] = type_of(name, held[name])
        return held, types

    def _array(self, name: str, value: Any, info: ModelInput) -> Any:
        """What is fed for an input, checked."""
        wanted = None if info.shape is None else _dtype_of(info)
        found = value if isinstance(value, np.ndarray) else _imported(self.device, name, value, wanted)
        if info.shape is None or wanted is None:
            return found
        is_string = found.dtype.kind in "OUST" and wanted.kind in "OUST"
        if found.dtype != wanted and not is_string:
            expected = f"{wanted}, as the model says"
            remedy = "" if wanted.kind in "OUST" else converted(wanted)
            refuse("run", "(N3)", name, f"elements of {found.dtype}", expected, remedy, kind="type")
        shape = tuple(found.shape)
        fits = len(shape) == len(info.shape) and all(
            not isinstance(size, int) or size == own for size, own in zip(info.shape, shape, strict=True)
        )
        if not fits:
            refuse("run", "(N3)", name, f"shape {shape}", f"{info.shape}, as the model says")
        return found

    def _as_fed(self, like: Any, result: Any) -> Any:
        if isinstance(result, list):
            return [self._as_fed(like, each) for each in result]
        memory = self.device.memory
        if not memory.is_host:
            if like is None or not hasattr(like, "__dlpack__") or isinstance(like, np.ndarray):
                return on_host(result)
            there = memory.to_device(result)
            return there if isinstance(there, np.ndarray) else memory.export(like, None, there)
        if like is None or type(like) is np.ndarray or not isinstance(result, np.ndarray):
            return result
        return memory.export(like, None, result) if result.dtype in _DLPACK else result


_OF_ONNX_RUNTIME = {
    "providers": 'device says where to run: "cpu", or "cuda"',
    "provider_options": 'device says where to run: "cpu", or "cuda"',
    "sess_options": "OMP_NUM_THREADS says on how many threads to run, flags how",
}
"""What takes the place of what ONNX Runtime's sessions are given."""
_DLPACK = frozenset(map(np.dtype, ["?", "b", "B", "h", "H", "i", "I", "l", "L", "e", "f", "d"]))


def _opened(model: Any, device: Device, fallback: bool, flags: ExecutionFlags) -> InferenceSession:
    return InferenceSession(model, device=device, fallback=fallback, flags=flags)


def _device_of(device: Device | str | None, feature_level: FeatureLevel | str | None) -> Device:
    if isinstance(device, Device):
        if feature_level is not None:
            expected = "None beside a Device, which has its own"
            refuse("InferenceSession", "(N1)", "feature_level", kind_of(feature_level), expected)
        return device
    options: dict[str, Any] = {} if feature_level is None else {"feature_level": feature_level}
    return Device("cpu" if device is None else device, **options)


def _needed(nodes: Sequence[Node], outputs: Sequence[str]) -> list[Node]:
    """The nodes that outputs depend on."""
    wanted = {*outputs}
    kept = []
    for node in reversed(nodes):
        if not wanted.isdisjoint(node.outputs):
            wanted |= node.reads()
            kept.append(node)
    return kept[::-1]


def _is_static(info: ModelInput) -> bool:
    """Whether all that matters before a run is known; of strings their values matter, as no device has any."""
    is_shape_known = info.shape is not None and all(isinstance(size, int) for size in info.shape)
    return is_shape_known and info.type != "tensor(string)"


def _static(info: ModelInput) -> tuple[int, ...]:
    return tuple(size for size in info.shape or () if isinstance(size, int))


def _dtype_of(info: ModelInput) -> np.dtype[Any]:
    return np.dtype(onnx.helper.tensor_dtype_to_np_dtype(info.data_type))


def _imported(device: Device, name: str, value: Any, wanted: np.dtype[Any] | None) -> Any:
    """An array of another library; lists of numbers as arrays of the model's type, where that holds them."""
    if isinstance(value, (list, tuple)) and wanted is not None and wanted.kind in "iuf":
        value = as_array_of("run", name, value, wanted)
    if isinstance(value, (list, tuple, int, float, str, bool, np.generic)):
        return np.asarray(value)
    return device.memory.import_array("run", name, value)


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'s' * (count != 1)}"
