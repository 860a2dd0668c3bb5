"""jax.stages: the kinds of what jit(f), .lower() and .compile() give."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from typing import Any

import weft

from .. import _weft
from .._core import tree as _tree
from .._core.errors import not_implemented, runtime_error, value_error
from .._core.shapes import ShapedArray
from .._sharding.meshes import mesh_around
from .._sharding.partitioning import places_of_results, shardings_of
from ..compiled import Compiled, Lowered
from ..described import ArgInfo, Described
from . import debug_infos, jaxprs, shown_stages
from .device_assignment import for_devices, lowered_on, where_types_lie
from .equation_params import specs_in
from .hlo_shardings import named_sharding_to_xla_hlo_sharding
from .monitoring import test_event

Wrapped = type(weft.jit(lambda: None))
CompilerOptions = dict[str, Any]

__all__ = ["ArgInfo", "Compiled", "CompilerOptions", "Lowered", "Traced", "Wrapped"]

# Options of XLA's compiler, besides those that begin with xla_.
_OPTIONS = frozenset(
    [
        "exec_time_optimization_effort",
        "memory_fitting_effort",
        "memory_fitting_level",
        "num_partitions",
        "num_replicas",
        "optimization_level",
    ]
)

# Of those, some that are True or False.
_FLAGS = frozenset(
    [
        "xla_embed_ir_in_executable",
        "xla_cpu_enable_fast_math",
        "xla_cpu_enable_fast_min_max",
        "xla_cpu_use_thunk_runtime",
        "xla_dump_hlo_as_text",
    ]
)


def check_options(options: Mapping[str, Any] | None) -> None:
    """Raises RuntimeError for options that XLA's compiler has not. The others have no effect: Weft's compiles."""
    for name, given in (options or {}).items():
        if not name.startswith("xla_") and name not in _OPTIONS:
            raise runtime_error(f"No such compile option: {name!r}")
        if name in _FLAGS and str(given).lower() not in ("true", "false", "0", "1"):
            raise runtime_error(f"{name}: {given!r} is not a valid bool value.")


class Traced(Described):
    """What jit(f).trace(*args) gives: the program as jaxpr, and lower()."""

    def __init__(self, lowered: Lowered, name: str, of_types: bool = False):
        self._describe(lowered)
        self._lowered, self.fun_name, self._of_types = lowered, name, of_types

    @property
    def jaxpr(self) -> Any:
        """A view of the program."""
        closed = jaxprs.closed(self._ir)
        jitted = self._lowered._jitted
        out_tree = None if isinstance(self._lowered._out, int) else self._lowered._out
        closed.jaxpr._debug_info = debug_infos.of_program(
            jitted._function, self._ir._in_tree, out_tree, sorted(jitted._static_argnums)
        )
        return closed

    @property
    def lojax(self) -> Any:
        """A view of the program in which operations with rules of their own, and those on types of a library's own, are
        what they compute."""
        low = jaxprs.closed(self._ir.optimized("drop-rules"))
        low.jaxpr._is_high = False
        return low

    @property
    def out_info(self) -> Any:
        """The types of the result, with how it lies on a mesh without devices around, where types say it."""
        around, types = self._lowered._around, super().out_info
        if not isinstance(around, weft.AbstractMesh):
            return types
        with mesh_around(around):
            places = places_of_results(self._traced, self._lowered._shardings, False)
        leaves = [t if place is None else t.update(sharding=place) for t, place in zip(_tree.leaves(types), places)]
        return _tree.unflatten(self._result_tree(), leaves)

    def lower(self, *, lowering_platforms: Any = None, **_: Any) -> Lowered:
        """The program, to be compiled."""
        if self._of_types and lowering_platforms is None:
            raise value_error(
                "Passing lowering_platforms via `jit(f).trace(*args).lower(lowering_platforms=...)` is required where "
                "shardings are of meshes without devices"
            )
        return self._lowered


def with_trace(jitted: Any) -> Any:
    """A jitted function that has trace, too, if it has programs."""
    if not hasattr(jitted, "lower"):
        return jitted
    # It has the function's attributes, too.
    own = getattr(jitted, "__wrapped__", None)
    jitted.__dict__.update((k, v) for k, v in getattr(own, "__dict__", {}).items() if not k.startswith("_weft"))
    jitted.__dict__["_is_jax"] = True
    if not isinstance(jitted, Wrapped):
        lower = jitted.lower
        jitted.__dict__["trace"] = functools.partial(_trace, lower, jitted)
        jitted.__dict__["lower"] = functools.partial(_lower, lower, jitted)
    return jitted


def _trace(lower: Any, jitted: Any, *args: Any, **kwargs: Any) -> Traced:
    lowered, of_types = lowered_on(lower, jitted, args, kwargs)
    return Traced(lowered, getattr(jitted, "__name__", "<unnamed function>"), of_types)


def _lower(lower: Any, jitted: Any, *args: Any, **kwargs: Any) -> Lowered:
    lowered, of_types = lowered_on(lower, jitted, args, kwargs)
    return Traced(lowered, "", of_types).lower()


class _Executable:
    """What a compiled program knows of its arguments: those that are read, or all where jit was to keep them."""

    def __init__(self, compiled: Compiled):
        keeps = compiled._lowered._jitted.__dict__.get("_keeps_unused", False)
        read = [keeps or stays for stays in _weft.stays(compiled._lowered._traced, True)]
        kept = [i for i, stays in enumerate(read) if stays and i < len(compiled._in_specs)]
        self._kept_var_idx = set(kept)
        self.in_avals = [ShapedArray(*compiled._in_specs[i]) for i in kept]


class Module:
    """What lower().compiler_ir() gives: a program as StableHLO, whose text str() is. It is no object of MLIR's."""

    def __init__(self, text: str):
        self._text = text

    def __str__(self) -> str:
        return self._text


class HloModule(Module):
    """What lower().compiler_ir("hlo") gives: the program that the compiler takes, to be read by people."""

    def as_hlo_text(self, *_: Any, **__: Any) -> str:
        """The text."""
        return self._text


_CONSTRAINT = re.compile(
    r"^\s*\w+: \w+\[([^\]]*)\] = sharding_constraint\[mesh=mesh\((.*?)\),.*?(sharding=shardings\(.*\))\]", re.M
)

_KEPT_CALL = re.compile(r"^.* = call\[out_of_line=true\].*$", re.M)


def _compiler_text(lowered: Lowered) -> str:
    """The program that the compiler takes, which is Weft's: JAX gives XLA's there, called HLO. How values lie on
    several devices is said in XLA's notation, of arguments at the end; calls that compute again what checkpoint does
    not keep have XLA's word for what holds them apart."""

    def with_tiles(line: re.Match[str]) -> str:
        mesh = weft.AbstractMesh(*zip(*[(int(n), name) for name, n in re.findall(r"(\w+)=(\d+)", line[2])]))
        (spec,) = specs_in(line[3])
        rank = len(line[1].split(",")) if line[1] else 0
        return f"{line[0]}, sharding={named_sharding_to_xla_hlo_sharding(weft.NamedSharding(mesh, spec), rank)}"

    text = _CONSTRAINT.sub(with_tiles, lowered._ir.text)
    text = _KEPT_CALL.sub(r"\g<0>, opt-barrier", text)
    if _weft.has_constraint(lowered._traced) or any(lowered._shardings):
        places = zip(lowered._names, lowered._in_specs, lowered._shardings)
        for name, (shape, *_), place in places:
            tiles = "{replicated}" if place is None else named_sharding_to_xla_hlo_sharding(place, len(shape))
            text += f"{name}, sharding={tiles}\n"
    return text


def _compiler_ir(lowered: Lowered, dialect: str | None = None) -> Module:
    """The program as StableHLO, or as the compiler takes it."""
    if dialect == "hlo":
        return HloModule(_compiler_text(lowered))
    if dialect not in (None, "stablehlo"):
        raise not_implemented(f"compiler_ir: the dialect {dialect!r} is XLA's; Weft writes 'stablehlo'")
    return Module(lowered.as_text("stablehlo"))


def _runtime_executable(compiled: Compiled) -> Any:
    """What runs the program."""
    return compiled._run


def _text_of_jitted(self: Any) -> str:
    try:
        return f"<PjitFunction of {self.__wrapped__!r}>"
    except Exception:
        return "<PjitFunction>"


def _state_of_jitted(self: Any) -> dict[str, Any]:
    """What JAX's jitted functions say of themselves when they are pickled, as far as Weft's know it."""
    fun = self.__wrapped__
    while isinstance(fun, functools.partial) and not hasattr(fun, "__name__"):
        fun = fun.func
    return {"function_name": getattr(fun, "__name__", str(fun)), "fun": self.__wrapped__}


def lying_as_asked(fun: Any, found: Any) -> Any:
    """The types of a function's results, with the shardings that jit(out_shardings=) gives them."""
    _, asked = getattr(fun, "__dict__", {}).get("_shardings") or (None, None)
    if asked is None:
        return found
    leaves, tree = _tree.flatten(found)
    places = shardings_of(asked, found, "eval_shape: out_shardings")
    lying = [x if place is None else x.update(sharding=place) for x, place in zip(leaves, places)]
    return _tree.unflatten(tree, lying)


def install() -> None:
    """From now on lowered and compiled programs have the methods that JAX's have besides Weft's."""
    shown_stages.install(Lowered, Compiled)
    lowered: Any = Lowered
    compile_ = lowered.compile

    @functools.wraps(compile_)
    def compiled(
        self: Lowered, compiler_options: Mapping[str, Any] | None = None, *, device_assignment: Any = None, **_: Any
    ) -> Compiled:
        check_options(self.__dict__.get("_compiler_options"))
        check_options(compiler_options)
        result: Compiled = compile_(for_devices(self, device_assignment))
        return result

    lowered.compile, lowered.compiler_ir = compiled, _compiler_ir
    text = lowered.as_text

    @functools.wraps(text)
    def as_text(self: Lowered, dialect: str | None = None, **options: Any) -> str:
        return _compiler_text(self) if dialect == "hlo" else text(self, dialect, **options)

    lowered.as_text = as_text
    program: Any = Compiled
    call = program.__call__

    @functools.wraps(call)
    def counted(self: Any, *args: Any, **kwargs: Any) -> Any:
        if "_is_called" not in self.__dict__:
            self.__dict__["_is_called"] = True
            test_event("stages_compiled_call")
        device = self._lowered.__dict__.get("_to_device")  # of jit's device=
        if device is None:
            return call(self, *args, **kwargs)
        args, kwargs = weft.device_put((args, kwargs), device)
        return weft.device_put(call(self, *args, **kwargs), device)

    program.__call__ = counted
    jitted: Any = Wrapped
    own = jitted.lower.fget

    def lower(self: Any) -> Any:
        return functools.partial(_lower, own(self), self) if "_is_jax" in self.__dict__ else own(self)

    def trace(self: Any) -> Any:
        if "_is_jax" not in self.__dict__:
            raise AttributeError("trace")
        return functools.partial(_trace, own(self), self)

    jitted.lower, jitted.trace = property(lower), property(trace)
    types_of = jitted.eval_shape.fget

    def eval_shape(self: Any) -> Any:
        def of_types(*args: Any, **kwargs: Any) -> Any:
            with where_types_lie((args, kwargs)):
                return lying_as_asked(self, types_of(self)(*args, **kwargs))

        return of_types

    jitted.eval_shape = property(eval_shape)
    Compiled._executable = property(_Executable)  # type: ignore[attr-defined]
    jitted.__repr__, jitted.__getstate__ = _text_of_jitted, _state_of_jitted
    lowered._no_kwargs = Compiled._no_kwargs = False  # type: ignore[attr-defined]
    Compiled.runtime_executable = _runtime_executable  # type: ignore[attr-defined]
