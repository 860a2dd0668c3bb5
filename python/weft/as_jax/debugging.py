"""jax.debug: prints, calls and logs of running programs, which may be told their options first:
jax.debug.print(ordered=True)("x: {x}", x=x). With partitioned=True each device of a mesh does it with its part."""

from __future__ import annotations

import contextlib
import functools
import logging
import sys
from collections.abc import Callable
from typing import Any

from .. import _weft
from .. import debug as _debug
from .._core.errors import type_error, value_error
from ..callbacks import on_each_device
from .hidden_scopes import debugging
from .weft_primitives import primitive


def _in_two_calls(name: str, keyword: str, function: Callable[..., None]) -> Callable[..., Any]:
    """The function, which without its first argument, called `keyword`, gives a function that takes it."""

    @functools.wraps(function)
    def called(
        first: Any = None, /, *args: Any, ordered: bool = False, partitioned: bool = False, **kwargs: Any
    ) -> Any:
        first = kwargs.pop(keyword, None) if first is None else first
        run = functools.partial(_ordered, name, function, ordered, partitioned)
        if first is not None:
            return run(first, *args, **kwargs)
        if args or kwargs:
            raise type_error(f"{name} received unexpected arguments in the two-call form: {args=} {kwargs=}")
        return run

    return called


def _ordered(
    name: str,
    function: Callable[..., None],
    is_ordered: bool,
    is_partitioned: bool,
    first: Any,
    *args: Any,
    **kwargs: Any,
) -> None:
    if is_ordered and any(_weft.axis_size([axis], "debug") > 1 for axis in _weft.axes_of_lanes()):
        raise value_error(
            f"The following ordered effects are not supported for more than 1 device: those of {first!r} under pmap"
        )
    with debugging(name), on_each_device() if is_partitioned else contextlib.nullcontext():
        function(first, *args, ordered=is_ordered, **kwargs)


def _log(fmt: str, *args: Any, ordered: bool = False, **kwargs: Any) -> None:
    """Writes into JAX's log of such messages, whatever its level."""
    frame = sys._getframe(2)
    file, line, name = frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name

    def write(*args: Any, **kwargs: Any) -> None:
        log = logging.getLogger("jax._src.debugging")
        log.handle(log.makeRecord(log.name, logging.INFO, file, line, fmt.format(*args, **kwargs), (), None, name))

    _debug.callback(write, *args, ordered=ordered, **kwargs)


debug_print_p, debug_callback_p = primitive("debug_print"), primitive("debug_callback")
print = debug_print = _in_two_calls("debug_print", "fmt", _debug.print)
callback = debug_callback = _in_two_calls("debug_callback", "callback", _debug.callback)
log = debug_log = _in_two_calls("debug_log", "fmt", _log)
