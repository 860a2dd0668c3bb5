"""Programs compiled as they are, weft.compile; functions compiled from their source, weft.script."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, overload

from ._core.errors import type_error
from .compiled import Compiled, jit
from .program import IR
from .scripted import Script
from .transforms import arguments_of

__all__ = ["compile", "script"]


def compile(
    ir: IR,
    *,
    optimize: str | None = None,
    passes: Iterable[Any] | None = None,
    disable: Iterable[str] | None = None,
    backend: str = "cpu",
) -> Compiled:
    """Compiles a program for arguments of its types, now.

    Args:
        ir: the program, from weft.make_ir, weft.parse_ir or weft.transforms.
        optimize: as for weft.jit.
        passes: as for weft.jit.
        disable: as for weft.jit.
        backend: as for weft.jit.

    Returns: a function of arrays, with as_text().

    Raises:
        TypeError: ir is no program; when called: an argument has another type.
        ValueError: a size of the program is symbolic.

    Example:
        >>> ir = weft.parse_ir("fn f(x: f32[]) -> (f32[]) { y = mul x x; return y }")
        >>> weft.compile(weft.transforms.grad(ir))(3.0)
        Array(6., dtype=float32)
    """
    if not isinstance(ir, IR):
        raise type_error(f"compile: expected a weft.IR, which weft.make_ir makes, got '{type(ir).__name__}'")
    args, kwargs = arguments_of(ir)
    jitted = jit(ir, optimize=optimize, passes=passes, disable=disable, backend=backend)
    return jitted.lower(*args, **kwargs).compile()


@overload
def script(fun: Callable[..., Any], *, strict: bool = False, **options: Any) -> Script: ...
@overload
def script(fun: None = None, *, strict: bool = False, **options: Any) -> Callable[[Callable[..., Any]], Script]: ...
def script(fun: Callable[..., Any] | None = None, *, strict: bool = False, **options: Any) -> Any:
    """Compiles a function from its source: jit(fun, capture="script"). Python's if, for and while become control flow
    of the program, and each stage on the way there can be looked at.

    What cannot be converted (docs/control_flow.md lists it) is run by Python, operation by operation, for all arguments
    of the signature, with one weft.autograph.FallbackWarning for each construct; explain("fallbacks") counts the calls.
    What the trace had changed by then is put back; what it had printed stays printed.

    Args:
        fun: the function; without it a decorator is returned.
        strict: what cannot be converted is an error instead.
        **options: others of weft.jit.

    Returns: a function like those of weft.jit, with stage(name, *args) and stages(*args).

    Raises:
        weft.autograph.ConversionError: with strict=True: there is no source; when called: a construct has no place in a
            traced program. The message names it, its file and line.

    Example:
        >>> @weft.script
        ... def collatz(n):
        ...     steps = 0
        ...     while n != 1:
        ...         n = n // 2 if n % 2 == 0 else 3 * n + 1
        ...         steps += 1
        ...     return steps
        >>> collatz(6)
        Array(8, dtype=int32, weak_type=True)
        >>> "while" in collatz.stage("ir", 6)
        True
    """
    return jit(fun, capture="script", strict=strict, **options)
