"""Transforms whose results JAX gives in another form."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import weft

from .._core import tree as _tree
from .._core.shapes import ShapedArray
from .._sharding.partitioning import OnAllDevices
from . import jaxprs
from .arrays import without_layouts
from .stages import with_trace


def jit(fun: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """weft.jit with JAX's options: what says where and how XLA compiles (device, backend, compiler_options) has no
    effect."""
    for name in ("device", "backend", "compiler_options", "abstracted_axes"):
        options.pop(name, None)
    if fun is None:
        return functools.partial(jit, **options)
    for name in ("in_shardings", "out_shardings"):
        if name in options:
            options[name] = without_layouts(options[name])
    jitted = weft.jit(fun, **options)
    return with_trace(jitted) if hasattr(jitted, "lower") else jitted


def pjit(fun: Callable[..., Any] | None = None, /, *shardings: Any, **options: Any) -> Any:
    """jit, where out_shardings=None says that results lie on every device of the mesh around the call; in_shardings and
    out_shardings may be given by position."""
    options.update(zip(("in_shardings", "out_shardings"), shardings))
    if fun is None:
        return functools.partial(pjit, **options)
    if options.get("out_shardings", 0) is None:
        options["out_shardings"] = OnAllDevices()
    return jit(fun, **options)


def eval_shape(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """The types of a function's result: a tree of ShapeDtypeStruct. Arguments that are no arrays, as dtypes and
    functions are, are refused, as JAX does."""
    return weft.eval_shape(fun, *args, **kwargs)


def make_jaxpr(
    fun: Callable[..., Any],
    static_argnums: int | Iterable[int] = (),
    axis_env: Sequence[tuple[Any, int]] | None = None,
    return_shape: bool = False,
    **_: Any,
) -> Callable[..., Any]:
    """A function that traces: make_jaxpr(f)(*args) is a ClosedJaxpr, a view of Weft's program."""
    make = weft.make_ir(fun, static_argnums=static_argnums, axis_env=axis_env, return_shape=True)

    def made(*args: Any, **kwargs: Any) -> Any:
        ir, shapes = make(*args, **kwargs)
        closed = jaxprs.closed(ir)
        return (closed, shapes) if return_shape else closed

    return made


@weft.rewrite("stop_gradient(x)")
def _let_through(x: Any) -> Any:
    return x


def linear_transpose(fun: Callable[..., Any], *primals: Any, reduce_axes: Sequence[Any] = ()) -> Callable[[Any], Any]:
    """weft.linear_transpose, where stop_gradient is the linear function that it computes: the identity. lineax gives
    JAX this rule."""
    del reduce_axes
    return weft.linear_transpose(_let_through(fun), *primals)


def fwd_and_bwd(
    fun: Callable[..., Any], argnums: int | Sequence[int], has_aux: bool = False, jitted: bool = True
) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """The two halves of vjp: fwd(*args) is (result, residuals), bwd(residuals, cotangent) the gradients."""
    chosen = (argnums,) if isinstance(argnums, int) else tuple(argnums)

    def fwd(*args: Any) -> Any:
        def of_chosen(*values: Any) -> Any:
            full = list(args)
            for n, value in zip(chosen, values, strict=True):
                full[n] = value
            return fun(*full)

        out = weft.vjp(of_chosen, *(args[n] for n in chosen), has_aux=has_aux)
        return (out[0], out[1], out[2]) if has_aux else out

    def bwd(pull: Any, cotangent: Any) -> Any:
        found = pull(cotangent)
        return found[0] if isinstance(argnums, int) else found

    return (weft.jit(fwd), weft.jit(bwd)) if jitted else (fwd, bwd)


def _stacked(shards: Sequence[Any], devices: Sequence[Any]) -> Any:
    mesh = weft.Mesh(list(devices), ("devices",))
    whole = _tree.map(lambda *parts: weft.numpy.stack(parts), *shards)
    return weft.device_put(whole, weft.NamedSharding(mesh, weft.P("devices")))


def device_put_sharded(shards: Sequence[Any], devices: Sequence[Any]) -> Any:
    """Trees on several devices as one, whose arrays have a first axis over them."""
    return _stacked(shards, devices)


def device_put_replicated(x: Any, devices: Sequence[Any]) -> Any:
    """A tree on each of several devices, as one whose arrays have a first axis over them."""
    return _stacked([x] * len(devices), devices)


class _LinearFunction:
    """What linearize's function calls, with its program where JAX's has it: f_jvp.func.args[0]."""

    def __init__(self, function: Any):
        self._function = function

    @property
    def fun(self) -> _LinearFunction:
        return self

    @property
    def args(self) -> tuple[Any, ...]:
        return (jaxprs.Region(self._function._fn),)

    def __call__(self, *args: Any) -> Any:
        return self._function(*args)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _LinearFunction) and self._function == other._function

    def __hash__(self) -> int:
        return hash(self._function)


def linearize(fun: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """weft.linearize, whose function shows its program."""
    run: Callable[..., Any] = weft.linearize
    value, applied, *aux = run(fun, *primals, has_aux=has_aux)
    if hasattr(applied.func, "_fn"):
        applied = weft.tree_util.Partial(_LinearFunction(applied.func), *applied.args)
    return (value, applied, *aux)


def saved_residuals(f: Callable[..., Any], *args: Any, **kwargs: Any) -> list[tuple[Any, str]]:
    """What reverse mode keeps: pairs of a type and where it is from."""
    return [(ShapedArray(kept.shape, kept.dtype), kept.source) for kept in weft.saved_residuals(f, *args, **kwargs)]


def with_sharding_constraint(x: Any, shardings: Any) -> Any:
    """weft.with_sharding_constraint, which also takes Formats, whose layouts have no effect."""
    return weft.with_sharding_constraint(x, without_layouts(shardings))
