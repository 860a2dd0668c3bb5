"""jit(capture="script"): functions converted from their source, which Python runs where that cannot be.

A construct that has no place in a traced program (docs/control_flow.md lists them) shows when the function is traced.
What the trace has changed is put back then, and the call, with all later ones of its signature, runs in Python,
operation by operation. That is never silent: there is one warning for each construct, and a count of calls.
"""

from __future__ import annotations

import dataclasses
import threading
import types
import warnings
from collections.abc import Callable
from typing import Any

from . import _weft
from ._core import tree as _tree
from ._core.errors import value_error
from ._core.names import update_wrapper
from ._core.static import Key
from ._core.tracing import Flat, call_name, flatten_result
from .autograph import autograph as _autograph
from .autograph.errors import ConversionError, FallbackWarning, place_of
from .jitted import ALL, _pickled
from .static_arguments import signature_of

FRONT = ("source", "ast", "analysed", "ssa", "converted", "types")


class Stages(dict[str, str]):
    """The stages of a function from its source to its program, by name, in order; printed one below the other."""

    def __str__(self) -> str:
        return "\n".join(f"--- {name} ---\n{text.rstrip()}\n" for name, text in self.items())


@dataclasses.dataclass
class _Fallback:
    """One construct of a function that Python has to run. `error`: why; `calls`: how often it did."""

    error: Exception
    file: str
    line: int
    calls: int = 0

    def as_dict(self) -> dict[str, Any]:
        kind = type(self.error).__name__
        return {"error": kind, "file": self.file, "line": self.line, "reason": self.reason, "calls": self.calls}

    @property
    def reason(self) -> str:
        return str(self.error).partition("\n")[0]


class _Here(threading.local):
    """Of one thread: how many traces of the function are under way, and the exception that ended the last one."""

    depth = 0
    failed: Exception | None = None


class Script:
    """What jit(capture="script") and weft.script return."""

    __name__: str

    def __init__(self, function: Callable, strict: bool):
        self._function, self._strict = function, strict
        self._here, self._lock = _Here(), threading.Lock()
        self._fallbacks: dict[tuple, _Fallback] = {}  # by kind of exception and place
        self._on_host: dict[Key, _Fallback] = {}
        self._refused: ConversionError | None = None
        self._converted: Any = None
        try:
            self._converted = _autograph(function)
        except ConversionError as error:
            if strict:
                raise
            self._refused = error
        for attribute, value in getattr(function, "__dict__", {}).items():
            if not attribute.startswith("_"):
                self.__dict__[attribute] = value
        update_wrapper(self, function)
        self._jitted: Any = None

    def _attempt(self) -> Callable:
        """The function as it is traced."""

        def attempt(*args: Any, **kwargs: Any) -> Any:
            if self._refused is not None:
                self._failed(self._refused)
                raise self._refused.with_traceback(None)
            return _autograph._attempt(self._converted, args, kwargs, self._failed)

        return update_wrapper(attempt, self._function)

    def _under(self, jitted: Any) -> Script:
        """The same, with what _attempt() gives under jit."""
        self._jitted = jitted
        ALL.add(self)
        return self

    def _failed(self, error: Exception) -> None:
        self._here.failed = error

    # --- Calls ---

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if _weft.disable_jit():
            return self._function(*args, **kwargs)
        here = self._here
        if self._on_host and not here.depth:
            flat, key = self._signature(args, kwargs)
            if (known := self._on_host.get(key)) is not None:
                return self._run_on_host(known, flat, args, kwargs)
        here.failed = None
        here.depth += 1
        try:
            return self._jitted(*args, **kwargs)
        except Exception as error:
            if self._strict or here.depth > 1 or here.failed is None:
                raise
            failed = error
        finally:
            here.depth -= 1
        flat, key = self._signature(args, kwargs)
        fallback = self._fall_back(failed)
        self._on_host[key] = fallback
        return self._run_on_host(fallback, flat, args, kwargs)

    def _signature(self, args: tuple, kwargs: dict) -> tuple[Flat, Key]:
        jitted = self._jitted
        return signature_of(self._function, jitted._static_argnums, jitted._static_argnames, args, kwargs)

    def _fall_back(self, error: Exception) -> _Fallback:
        """Takes down why, with a warning if it is new."""
        code = getattr(self._function, "__code__", None)
        file, line = place_of(error) or (getattr(code, "co_filename", "?"), getattr(code, "co_firstlineno", 0))
        if error is self._refused and code is not None:
            file, line = code.co_filename, code.co_firstlineno
        known = (type(error), file, line)
        with self._lock:
            found = self._fallbacks.get(known)
            new = found is None
            if found is None:
                found = self._fallbacks[known] = _Fallback(error.with_traceback(None), file, line)
        if new:
            at = "" if f"{file}:{line}" in found.reason else f" (at {file}:{line})"
            warnings.warn(
                f"jit: Python runs '{call_name(self._function)}', operation by operation: {found.reason}{at}. With "
                "strict=True this is an error; explain('fallbacks') counts the calls",
                FallbackWarning,
                stacklevel=3,
            )
        return found

    def _run_on_host(self, fallback: _Fallback, flat: Flat, args: tuple, kwargs: dict) -> Any:
        with self._lock:
            fallback.calls += 1
        if _weft.is_tracing():  # where numbers may be known: of grad outside of jit
            try:
                return self._function(*args, **kwargs)
            except _weft.TracerError:
                raise fallback.error.with_traceback(None) from None
        leaves = [leaf if isinstance(leaf, _weft.Array) else _weft.array(leaf, None, False) for leaf in flat.leaves]
        args, kwargs = _tree.unflatten(flat.in_tree, leaves)
        results = flatten_result(flat, flat.function(*args, **kwargs))
        arrays = [leaf if isinstance(leaf, _weft.Array) else _weft.array(leaf, None, False) for leaf in results]
        return _tree.unflatten(flat.out_tree, arrays)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    # --- Looking at it ---

    def stage(self, name: str, /, *args: Any, **kwargs: Any) -> str:
        """The function at a stage on the way from its source to its program, or to code.

        Args:
            name: "source"; "ast", the syntax tree; "analysed", which definitions of variables each line makes and
                reads, what the control flow does to them, what may be one object; "ssa", the source with a name for
                each definition; "converted", the source with control flow as functions; "types", each name at each line
                with the types that it has; "ir", the program, and the stages of weft.jit(f).lower(*args).
            *args: the arguments that it is traced with; for "types" and what is behind it.
            **kwargs: its keyword arguments.

        Returns: str.

        Raises:
            ValueError: there is no such stage.
            weft.autograph.ConversionError: the function has no source, or a construct cannot be converted.

        Example:
            >>> @weft.script
            ... def f(x):
            ...     y = x * 2
            ...     return y
            >>> print(f.stage("types", wnp.ones(3)), end="")
            @weft.script
            def f(x):                         # x: f32[3]
                y = x * 2                     # y: f32[3]
                return y                      # result: f32[3]
        """
        if name in FRONT:
            return _autograph._stage(self._function, name, lambda: self._jitted.lower(*args, **kwargs))
        try:
            return self._jitted.lower(*args, **kwargs).stage(name)
        except ValueError as error:
            if str(error).startswith("there is no stage"):
                raise value_error(f"stage: there are {', '.join(FRONT)}, and those of a program: {error}") from None
            raise

    def stages(self, *args: Any, **kwargs: Any) -> Stages:
        """The function at each stage from its source to its program, traced with these arguments.

        Args:
            *args: arguments of the function.
            **kwargs: its keyword arguments.

        Returns: dict from the names of the stages to texts, in order, which prints as all of them.

        Raises:
            weft.autograph.ConversionError: the function has no source, or a construct cannot be converted.

        Example:
            >>> @weft.script
            ... def f(x):
            ...     return x * 2
            >>> list(f.stages(1.0))
            ['source', 'ast', 'analysed', 'ssa', 'converted', 'types', 'ir']
        """
        return Stages({name: self.stage(name, *args, **kwargs) for name in (*FRONT, "ir")})

    def explain(self, what: str | None = None) -> Any:
        """What the compiled versions are, as of every jitted function; or "fallbacks": what Python has to run.

        Args:
            what: None, "rules" or "fallbacks".

        Returns: list of dicts; of fallbacks with "error", "file", "line", "reason", and "calls", how often Python ran.

        Example:
            >>> weft.script(lambda x: x + 1).explain("fallbacks")
            []
        """
        if what == "fallbacks":
            return [fallback.as_dict() for fallback in self._fallbacks.values()]
        if what not in (None, "rules"):
            raise value_error(f"explain: expected nothing, 'rules' or 'fallbacks', got {what!r}")
        return self._jitted.explain(what)

    def lower(self, *args: Any, **kwargs: Any) -> Any:
        """The program for such arguments, as of every jitted function. What cannot be converted is an error here.

        Args:
            *args: arguments of the function.
            **kwargs: its keyword arguments; `target`.

        Returns: Lowered.

        Example:
            >>> weft.script(lambda x: x + 1).lower(1.0).compile()(2.0)
            Array(3., dtype=float32, weak_type=True)
        """
        return self._jitted.lower(*args, **kwargs)

    def eval_shape(self, *args: Any, **kwargs: Any) -> Any:
        """The shapes and dtypes of the result, as of every jitted function.

        Args:
            *args: arguments of the function.
            **kwargs: its keyword arguments.

        Returns: tree of weft.ShapeDtype.

        Example:
            >>> weft.script(lambda x: x + 1).eval_shape(wnp.ones(2))
            ShapeDtype((2,), float32)
        """
        return self._jitted.eval_shape(*args, **kwargs)

    def clear_cache(self) -> None:
        """Forgets the compiled versions, and for which arguments Python runs the function; not the counts.

        Returns: None.

        Example:
            >>> weft.script(lambda x: x + 1).clear_cache()
        """
        self._jitted.clear_cache()
        self._on_host.clear()

    def __repr__(self) -> str:
        return f"<script of {self._function!r}>"

    def __reduce__(self) -> Any:
        make, (function, options, is_jax) = _pickled(self._jitted)
        options.pop("autograph", None)
        return make, (function, {**options, "capture": "script", "strict": self._strict}, is_jax)
