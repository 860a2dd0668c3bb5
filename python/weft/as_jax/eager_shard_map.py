"""What Python asks of the values inside of a shard_map outside of any jitted function: `if`, `str(x)`. JAX
runs such a function operation by operation on all devices; here it is traced, and where it asks, what it has computed
so far runs, and the function is traced again with the answer: what it prints or counts itself happens as often."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

import weft

from .. import _weft
from .._core.errors import value_error
from .._sharding.meshes import get_mesh


class _Asks(BaseException):
    """The function asks for a value that is not known yet."""

    def __init__(self, value: Any):
        super().__init__()
        self.value = value


class _Run:
    """One trace of the function, with the answers to what it has asked for before."""

    def __init__(self, answers: list[Any]):
        self._answers, self._asked, self.trace = answers, 0, 0

    def value_of(self, x: Any) -> Any:
        """What x is."""
        if self._asked == len(self._answers):
            raise _Asks(x)
        self._asked += 1
        return self._answers[self._asked - 1]


class _Inside(threading.local):
    run: _Run | None = None


_inside = _Inside()


def _here(x: Any) -> _Run | None:
    """The run of which x is a value, itself and not one of a function that is traced inside of it."""
    run = _inside.run
    return run if run is not None and _weft.trace_of(x) == run.trace == _weft.current_trace() else None


def is_eager() -> bool:
    """Whether what runs here is a shard_map's function, outside of any jitted one."""
    run = _inside.run
    return run is not None and run.trace == _weft.current_trace()


def _known_everywhere(own: Callable[[Any], bool]) -> Callable[[Any], bool]:
    """bool() of a traced value: of one that is the same on all devices it is known."""

    @functools.wraps(own)
    def called(self: Any) -> bool:
        run = _here(self)
        return own(self) if run is None or _weft.varying(self) else bool(run.value_of(self))

    return called


def _text(own: Callable[[Any], str]) -> Callable[[Any], str]:
    """str() of a traced value: what each device has."""

    @functools.wraps(own)
    def called(self: Any) -> str:
        run = _here(self)
        return own(self) if run is None else str(run.value_of(_OnEach(self)))

    return called


class _OnEach:
    """A value, asked for as each device has it."""

    def __init__(self, value: Any):
        self.value = value


def _on_each_device(stacked: Any, mesh: weft.Mesh | weft.AbstractMesh) -> str:
    names = f"({', '.join(map(str, mesh.axis_names))},)"
    devices = getattr(mesh, "devices", np.full(mesh.axis_sizes, "a device", dtype=object))
    blocks = zip(np.ndenumerate(devices), stacked)
    return "\n".join(f"On {device} at mesh coordinates {names} = {at}:\n{block}\n" for (at, device), block in blocks)


def shard_map(make: Callable[..., Any], f: Callable[..., Any], mesh: Any, in_specs: Any, out_specs: Any) -> Any:
    """make(f, in_specs, out_specs), a shard_map's function, which outside of all others may ask for values."""

    @functools.wraps(f)
    def body(*args: Any) -> Any:
        if _inside.run is not None and not _inside.run.trace:
            _inside.run.trace = _weft.current_trace()
        return f(*args)

    made = make(body, in_specs, out_specs)

    @functools.wraps(made)
    def called(*args: Any) -> Any:
        if _weft.is_tracing():
            return made(*args)
        answers: list[Any] = []
        while True:
            try:
                return _with_answers(made, args, answers)
            except _Asks:
                answers.append(_answer(make, body, mesh, in_specs, args, answers))

    return called


def _with_answers(made: Callable[..., Any], args: tuple, answers: list[Any]) -> Any:
    before, _inside.run = _inside.run, _Run(answers)
    try:
        return made(*args)
    finally:
        _inside.run = before


def _answer(
    make: Callable[..., Any], body: Callable[..., Any], mesh: Any, in_specs: Any, args: tuple, answers: list[Any]
) -> Any:
    """What the function asks for after these answers."""
    found: list[Any] = []

    def until_it_asks(*given: Any) -> Any:
        try:
            body(*given)
        except _Asks as ask:
            found[:] = [ask.value]
            x = ask.value.value if isinstance(ask.value, _OnEach) else ask.value
            return x.reshape(1, -1)
        raise value_error("shard_map: the function asked for a value in its first run, and does not in its second")

    where = get_mesh() if mesh is None else mesh
    stacked = np.asarray(_with_answers(make(until_it_asks, in_specs, weft.P(tuple(where.axis_names))), args, answers))
    if isinstance(found[0], _OnEach):
        return _on_each_device(stacked.reshape(len(stacked), *found[0].value.shape), where)
    return stacked[0].reshape(found[0].shape)


def install() -> None:
    """From now on such values answer."""
    tracer: Any = weft.Tracer
    tracer.__bool__ = _known_everywhere(tracer.__bool__)
    tracer.__str__ = _text(tracer.__str__)
