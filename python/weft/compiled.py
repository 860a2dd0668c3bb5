"""jit: compiled functions, and a look at what they compile to."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterable
from typing import Any, ParamSpec, TypeVar, overload

from . import _weft
from ._core import ir_view as _ir_view
from ._core import options as _options
from ._core import tree as _tree
from ._core.errors import not_implemented, type_error, value_error
from ._core.facts import trees_differ
from ._core.names import update_wrapper
from ._core.tracing import LEAF_TREE, call_name, check_callable, flat_function, without_deleted
from ._sharding import arrays as _arrays
from ._sharding import committed
from ._sharding import communication as _communication
from ._sharding import partitioning as _partitioning
from ._sharding.meshes import current_mesh
from ._sharding.shardings import NamedSharding
from ._sharding.signatures import signature_of
from .arguments import ints, licences_of, names_of
from .arguments import text as checked_text
from .autograph import autograph as _autograph
from .described import Described, MemoryAnalysis, Placed, in_places, places_asked_for
from .jitted import ALL, UsesReferences, _call_stateful, _refuse, lowered, trace_jitted
from .optimization import being_lowered, explain, following, plan_here, plan_of
from .program import IR
from .recording import Recorded, check_options_of_recordings
from .scripted import Script
from .static_arguments import static_arguments, static_value, types_of_results
from .typing import Jitted

__all__ = ["jit"]

_P = ParamSpec("_P")
_R = TypeVar("_R")


@overload
def jit(
    fun: Callable[_P, _R],
    *,
    static_argnums: int | Iterable[int] | None = None,
    static_argnames: str | Iterable[str] | None = None,
    donate_argnums: int | Iterable[int] | None = None,
    donate_argnames: str | Iterable[str] | None = None,
    autograph: bool = False,
    capture: str = "trace",
    strict: bool = False,
    inline: bool = False,
    keep_unused: bool = False,
    in_shardings: Any = None,
    out_shardings: Any = None,
    deterministic: bool = False,
    backend: str = "cpu",
    optimize: str | None = None,
    passes: Iterable[Any] | None = None,
    disable: Iterable[str] | None = None,
    licence: str | Iterable[str] | None = None,
) -> Jitted[_P, _R]: ...
@overload
def jit(
    fun: None = None,
    *,
    static_argnums: int | Iterable[int] | None = None,
    static_argnames: str | Iterable[str] | None = None,
    donate_argnums: int | Iterable[int] | None = None,
    donate_argnames: str | Iterable[str] | None = None,
    autograph: bool = False,
    capture: str = "trace",
    strict: bool = False,
    inline: bool = False,
    keep_unused: bool = False,
    in_shardings: Any = None,
    out_shardings: Any = None,
    deterministic: bool = False,
    backend: str = "cpu",
    optimize: str | None = None,
    passes: Iterable[Any] | None = None,
    disable: Iterable[str] | None = None,
    licence: str | Iterable[str] | None = None,
) -> Callable[[Callable[_P, _R]], Jitted[_P, _R]]: ...
def jit(
    fun: Callable[..., Any] | None = None,
    *,
    static_argnums: int | Iterable[int] | None = None,
    static_argnames: str | Iterable[str] | None = None,
    donate_argnums: int | Iterable[int] | None = None,
    donate_argnames: str | Iterable[str] | None = None,
    autograph: bool = False,
    capture: str = "trace",
    strict: bool = False,
    inline: bool = False,
    keep_unused: bool = False,
    in_shardings: Any = None,
    out_shardings: Any = None,
    deterministic: bool = False,
    backend: str = "cpu",
    optimize: str | None = None,
    passes: Iterable[Any] | None = None,
    disable: Iterable[str] | None = None,
    licence: str | Iterable[str] | None = None,
) -> Any:
    """Compiles a function. The first call with arguments of new shapes, dtypes or structure traces it; calls after that
    run the compiled code without Python.

    Arguments are arrays, numbers, or containers of them (see weft.tree). An array whose memory somebody else sees (a
    NumPy or DLPack view, a second array) is not donated, with one UserWarning for all of a call; neither are NumPy
    arrays and numbers, which the program only reads: another thread must not write to a NumPy array during the call.

    Args:
        fun: the function; without it a decorator is returned.
        static_argnums: positions of arguments that are passed to Python as they are; they must be hashable, and every
            new value compiles anew.
        static_argnames: names of such arguments.
        donate_argnums: positions of arguments that are given away: their memory is used for results or temporaries, in
            place where the program allows it, and the arrays are deleted; using one afterwards raises RuntimeError.
        donate_argnames: names of such arguments.
        autograph: whether Python's if, for and while may depend on traced values (see weft.autograph).
        capture: "trace"; "script", as weft.script has it: autograph=True, and Python runs what that cannot convert; or
            "auto": Python decides on the numbers of a call, the path that it took is compiled, and used again where its
            recorded decisions come out the same; otherwise Python runs anew. That the function depends on its arguments
            alone is then the caller's promise.
        strict: of capture="script": what cannot be converted is an error. So it is with shardings, deterministic=True,
            passes of one's own and another backend, which Python would not heed.
        inline: where programs are looked at by jax.make_jaxpr, it is no call of its own.
        keep_unused: accepted, without effect.
        in_shardings: how arguments lie on a mesh, as with_sharding_constraint takes it: one for all, or a tuple with
            one for each argument that is not static; an argument that lies otherwise is moved.
        out_shardings: likewise for the results.
        deterministic: sums of floats are taken in one order: results have the same bits on every mesh, and however its
            devices are spread over processes. What is inside shard_map or pmap is cut by its author: it has the same
            bits on every mesh of one size. Costs time. For CPUs. Inside of another jitted function that one decides;
            where something else traces the function (vmap, grad, make_ir) it is refused: jit that.
        backend: who makes code of the program and runs it: "cpu"; "interpreter", which runs it equation by equation
            with every operation rounded once (slow: to compare with); "operations", one operation after the other with
            compiled code's bits, as outside of jit. Inside of another jitted function that one decides.
        optimize: "fast_run", the default; "fast_compile", one round of the passes; "none", the program as it was
            traced. Inside of another jitted function that one decides; weft.optimization and weft.config.optimize say
            it for all functions.
        passes: what is done to the program before it is compiled, in order, in place of that: names (weft.ir.passes()
            has them, "optimize" stands for the default ones), functions of a weft.IR, rules of weft.rewrite.
        disable: names of rules and passes that do not run (weft.ir.rules(), weft.ir.passes()).
        licence: what rules that simplify the program may change of its results, by name, or several names: "exact", no
            bit; "signed-zero", the sign of a zero too; "accurate", also roundings, where results are shown to be at
            least as accurate; "products" (None: that), also the order in which products are multiplied and summed;
            "rounding", other roundings, and computing in f64 what cancels; "no-nan", rules for finite numbers inside of
            functions' domains; "reassociate", sums in another order. Inside of another jitted function that one
            decides.

    Returns: function of the same arguments. Its explain() lists the compiled versions, clear_cache() forgets them, and
        lower(*args) gives the program for such arguments without running it; lower(*args, target="cuda:sm_90a") the
        program for a GPU, for which no GPU has to be there.

    Raises:
        TypeError: function is none; when called: an argument is no array, number or container of them; the message
            names it.
        ValueError: there is no such argument, or it is static and donated; there is no such backend; when called: a
            static argument is not hashable.
        weft.TracerError: when called: the function needs the number behind a traced value.
        NotImplementedError: when called: deterministic=True, and an operation has no fixed order, or what surrounds the
            call would lose it.

    Example:
        >>> @weft.jit
        ... def f(x):
        ...     return x * 2 + 1
        >>> f(wnp.arange(3))
        Array([1, 3, 5], dtype=int32)
    """
    if fun is None:  # what is returned may decorate several functions, so iterators are read here
        return functools.partial(
            jit,
            static_argnums=ints(static_argnums, "jit: static_argnums"),
            static_argnames=names_of(static_argnames, "jit: static_argnames"),
            donate_argnums=ints(donate_argnums, "jit: donate_argnums"),
            donate_argnames=names_of(donate_argnames, "jit: donate_argnames"),
            autograph=autograph,
            capture=capture,
            strict=strict,
            inline=inline,
            in_shardings=in_shardings,
            out_shardings=out_shardings,
            deterministic=deterministic,
            backend=backend,
            optimize=optimize,
            passes=None if passes is None or isinstance(passes, str) else list(passes),
            disable=disable,
            licence=licence if licence is None or isinstance(licence, str) else list(licence),
        )
    check_callable(fun, "jit")
    plan = plan_of("jit", optimize, passes, disable)
    licences = licences_of("accurate" if deterministic and licence is None else licence)  # sums keep their order
    _weft.check_backend(checked_text(backend, "jit: backend"))
    nums, names = static_arguments(fun, static_argnums, static_argnames)
    donate_nums, donate_names = static_arguments(fun, donate_argnums, donate_argnames, "donate")
    if both := sorted(map(str, nums & donate_nums | names & donate_names)):
        raise value_error(f"jit: argument {both[0]} of '{call_name(fun)}' cannot be both static and donated")
    original = fun
    if capture not in ("trace", "script", "auto"):
        raise value_error(f"jit: capture is 'trace', 'script' or 'auto', got {capture!r}")
    if strict and capture != "script":
        raise value_error(f"jit: strict=True is for capture='script', got capture={capture!r}")
    if capture == "auto":
        check_options_of_recordings(
            {
                "neither autograph nor donated arguments": autograph or donate_nums or donate_names,
                "no shardings": in_shardings is not None or out_shardings is not None,
                "no passes, optimize and disable": plan is not None,
                "no licence": licence is not None,
                "no deterministic=True": deterministic,
            },
            backend,
        )
        return Recorded(fun, nums, names)
    script = None
    if capture == "script":
        heeded = (in_shardings, out_shardings, passes) == (None, None, None) and not deterministic and backend == "cpu"
        script = Script(fun, bool(strict) or not heeded)
        fun = script._attempt()
    elif autograph:
        fun = _autograph(fun)
    jitted = _weft.JitFunction(fun, frozenset(nums), frozenset(names), frozenset(donate_nums), frozenset(donate_names))
    for attribute in ("__module__", "__name__", "__qualname__", "__doc__", "__annotations__"):
        if hasattr(original, attribute):
            jitted.__dict__[attribute] = getattr(original, attribute)
    for attribute, value in getattr(original, "__dict__", {}).items():
        if not attribute.startswith("_"):
            jitted.__dict__[attribute] = value
    jitted.__dict__["__wrapped__"] = original
    jitted.__dict__["_deterministic"] = bool(deterministic)
    jitted.__dict__["_backend"] = backend
    jitted.__dict__["_inline"] = bool(inline)
    jitted.__dict__["_plan"] = plan
    jitted.__dict__["_licences"] = licences
    if in_shardings is not None or out_shardings is not None:
        _partitioning.check_shardings(in_shardings, "jit: in_shardings")
        _partitioning.check_shardings(out_shardings, "jit: out_shardings")
        jitted.__dict__["_shardings"] = (in_shardings, out_shardings)
    jitted.__dict__["explain"] = functools.partial(explain, jitted)
    jitted.__dict__["_keeps_unused"] = bool(keep_unused)
    ALL.add(jitted)
    return jitted if script is None else script._under(jitted)


def _lower(jitted, *args: Any, **kwargs: Any) -> Any:
    # No argument of a compiled function is a string, unless it is static.
    names_target = isinstance(kwargs.get("target"), str) and "target" not in jitted._static_argnames
    target = kwargs.pop("target") if names_target else None
    return lowered(jitted, args, kwargs, lambda f, values, named: Lowered(f, values, named, target))


# Of the type: functools.wraps of a jitted function does not make another function one that can be lowered.
_type: Any = _weft.JitFunction
_type.lower = property(lambda jitted: functools.partial(_lower, jitted))
_type.eval_shape = property(lambda jitted: functools.partial(types_of_results, jitted))


class Lowered(Described):
    """The program of a jitted function for arguments of given types: look at it, or compile it.
    weft.jit(f).lower(*args) makes one for this CPU; weft.jit(f).lower(*args, target=...) one for a GPU.

    A GPU is named by its architecture ("cuda:sm_80", "cuda:sm_89", "cuda:sm_90a": the card that is typical for it), or
    described by a text: a line "cuda sm_90a" and lines "sm_count: 132", "threads_per_sm: 2048",
    "shared_bytes_per_block: 49152", "l2_bytes: 52428800", "hbm_gb_per_s: 3350", as far as they differ.

    Example:
        >>> lowered = weft.jit(lambda x: x + 1).lower(1.0)
        >>> lowered.compile()(2.0)
        Array(3., dtype=float32, weak_type=True)
        >>> gpu = weft.jit(lambda x: wnp.exp(x) + 1).lower(wnp.ones(1024), target="cuda:sm_90a")
        >>> ".target sm_90a" in gpu.stage("ptx")
        True
    """

    def __init__(self, jitted, args: tuple, kwargs: dict, target: str | None = None):
        args, kwargs = without_deleted((args, kwargs))
        self.target = target
        self._around = current_mesh()  # of types alone, perhaps
        self._backend: str = jitted._backend if target is None else target
        self._fixed_order = jitted._deterministic
        self._licensed: Callable[[Callable[[], Any]], Any] = functools.partial(_weft.with_licences, jitted._licences)
        if target is not None:
            _weft.check_backend(target)
            if self._fixed_order:
                raise not_implemented("jit: deterministic=True is for CPUs; there is no such program for a GPU yet")
        with being_lowered(jitted._plan):
            known = jitted._traced_before(args, kwargs) if isinstance(jitted, _weft.JitFunction) else None  # by a call
            traced, self._out, self._names = known or self._licensed(lambda: _trace_jit(jitted, args, kwargs))
        if self._fixed_order:
            traced = _weft.fixed_order(traced)
        self._jitted, self._fn, self._traced = jitted, traced.fn, traced
        dynamic = [a for i, a in enumerate(args) if i not in jitted._static_argnums]
        named = {k: v for k, v in kwargs.items() if k not in jitted._static_argnames}
        leaves, self._in_tree = _tree.flatten((tuple(dynamic), named))
        self._in_specs = [_weft.abstract(leaf)[:3] for leaf in leaves]
        self._ir = IR(traced.fn, traced.captures, self._in_tree, None, traced.weak_results)
        given_away = [i in jitted._donate_argnums for i in range(len(args)) if i not in jitted._static_argnums]
        by_argument = [*zip(dynamic, given_away), *((named[k], k in jitted._donate_argnames) for k in sorted(named))]
        self._donated = [donated for argument, donated in by_argument for _ in _tree.leaves(argument)]
        self._shardings = [
            found if isinstance(found := getattr(leaf, "sharding", None), NamedSharding) else None for leaf in leaves
        ]
        self._asked = places_asked_for(jitted, tuple(dynamic), named, self._shardings)
        self._plan = plan_here(jitted._plan)
        if target is not None:
            _partitioning.check_one_device(target.splitlines()[0], self._shardings, self._names)

    def comms(self) -> list[_communication.Communication]:
        """What devices send each other, where arguments are cut over a mesh or a constraint says that values are: every
        collective with its bytes, axes, cause and line, and the spec of an argument that would be cheapest, if one is
        cheaper (weft.Communication).

        Returns: list of weft.Communication.

        Example:
            >>> weft.jit(lambda x: x + 1).lower(1.0).comms()
            []
        """
        with following(self._plan):
            return _communication.comms(self._traced, self._shardings, self._names, self._fixed_order)

    def as_text(self, dialect: str | None = None, *, debug_info: bool = False) -> str:
        """The program as text.

        Args:
            dialect: a stage, as IR.stage names it; "partitioned", the program of the devices of a mesh; "stablehlo", as
                weft.ir.to_stablehlo writes it; None: the traced program, which is StableHLO under weft.as_jax.
            debug_info: with the user's line of every operation, in the traced program.

        Returns: str. Raises: ValueError: there is no such stage. NotImplementedError: StableHLO lacks an operation.

        Example:
            >>> weft.jit(lambda x: x + 1).lower(1.0).as_text().splitlines()[0]
            'fn f(x: f32[]) -> (f32[]) {'
        """
        if dialect == "partitioned":
            with following(self._plan):
                return _partitioning.partitioned_text(self._traced, self._shardings, self._fixed_order)
        if dialect is None and not _weft.setting(_options.JAX_SEMANTICS):
            return self._ir.text_with_locations() if debug_info else self._ir.text
        if dialect not in (None, "stablehlo"):
            return self.stage(dialect)
        from .ir.stablehlo import text_for

        t = self._traced
        fn, devices = _partitioning.with_what_types_say(t, self._shardings, self._around)
        ir = self._ir if fn is None else IR(fn, t.captures, self._in_tree, None, t.weak_results)
        said = signature_of(self, self._jitted) if devices > 1 or any(self._donated) else None
        if said is not None and devices == 1:
            said = said._replace(arguments=[None] * len(said.arguments), results=[None] * len(said.results))
        return text_for(ir, devices, said, as_printed=bool(_weft.setting(_options.JAX_SEMANTICS)) and not debug_info)

    def stage(self, name: str) -> str:
        """The program at a stage of compilation.

        Args:
            name: "ir", "optimized", "schedule", "mlir" or "llvm"; "fusion", "liveness", "buffers" or "asm" for a CPU;
                "ptx" for a GPU.

        Returns: str. Raises: ValueError: there is no such stage. NotImplementedError: an operation has no code for a
        GPU yet; the message names it and the line it is on.

        Example:
            >>> lowered = weft.jit(weft.nn.softmax).lower(wnp.ones((8, 512)), target="cuda:sm_90a")
            >>> [line for line in lowered.stage("schedule").splitlines() if "kernel" in line]
            ['0: kernel k0 (s0, -> s1), 32768 bytes, at least 0.00978 us']
        """
        stage = checked_text(name, "Lowered.stage: name")
        fn, optimized = (self._fn, False) if stage == "ir" else self._planned
        return self._licensed(
            lambda: _weft.stage(fn, self._backend, stage, self._fixed_order, optimized, self._donated)
        )

    @functools.cached_property
    def _planned(self) -> tuple[Any, bool]:
        """The program to compile, and whether its passes have run."""
        plan = self._plan
        if plan is None:
            return self._fn, False
        return self._licensed(lambda: plan.run(IR(self._fn)))._fn, True

    def _optimized(self) -> Any:
        fn, has_passes = self._planned
        return fn if has_passes else self._licensed(lambda: IR(fn).optimized())._fn

    def emulate(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the kernels of a program for a GPU on the CPU, one CUDA thread after the other, and checks what each of
        them does: accesses outside of the arrays or misaligned, threads that touch the same memory with no barrier in
        between, barriers that not all threads reach. Slow: for small arrays and tests.

        Args:
            *args: the arguments of the function, without its static ones.
            **kwargs: its keyword arguments.

        Returns: what the function returns.

        Raises:
            ValueError: the program is for a CPU.
            NotImplementedError: an operation has no code for a GPU yet.
            TypeError: arguments of another structure or type than the program was made for.
            RuntimeError: a check failed.

        Example:
            >>> lowered = weft.jit(lambda x: x * x).lower(wnp.ones(3), target="cuda:sm_80")
            >>> lowered.emulate(wnp.arange(3.0))
            Array([0., 1., 4.], dtype=float32)
        """
        leaves = self._leaves(args, kwargs)
        values = [*leaves, *self._ir._captures]
        return self._result(self._licensed(lambda: _weft.emulate(self._fn, self._backend, values)))

    def export(self, path: str | os.PathLike[str], *, emulation: bool = False) -> None:
        """Writes the compiled program into a file, a bundle, which `weft run f.weftb --inputs in.npz` runs without the
        compiler. Arrays that the function captured are part of it.

        Args:
            path: the file, by custom with the ending .weftb.
            emulation: with a GPU's kernels also write what runs them on this kind of CPU (`--device=emulation`).

        Returns: None.

        Raises:
            ValueError: the program has dimensions whose size is not known.
            NotImplementedError: an operation has no code for a GPU yet.

        Example:
            >>> lowered = weft.jit(lambda x: wnp.tanh(x) * 2).lower(wnp.ones(8), target="cuda:sm_90a")
            >>> import tempfile
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     lowered.export(folder + "/f.weftb")
            ...     print(open(folder + "/f.weftb", "rb").read(11))
            b'weft bundle'
        """
        fn, optimized = self._planned
        how = (emulation, self._fixed_order, optimized)
        with _ir_view.naming_what_bundles_refuse(self._ir.walk):
            data = self._licensed(lambda: _weft.export_bundle(fn, self._backend, self._ir._captures, *how))
        with open(path, "wb") as file:
            file.write(data)

    def _leaves(self, args: tuple, kwargs: dict) -> list:
        leaves, tree = _tree.flatten((args, kwargs))
        if tree != self._in_tree:
            expected, given = (_tree.arguments_in_words(one) for one in (self._in_tree, tree))
            message = f"the program was compiled for {expected}, got {given}"
            raise trees_differ("compiled", message, self._in_tree, tree)
        got = [_weft.abstract(leaf)[3] for leaf in leaves]
        wrong = [
            f"argument {name} {wanted}, got {text}"
            for name, wanted, text in zip(self._names, self._ir.in_types, got)
            if text != wanted
        ]
        if wrong:
            raise type_error(f"the program was compiled for {'; for '.join(wrong)}")
        committed.check_compiled_for(self._asked, leaves, self._names)
        return leaves

    def _result(self, results: list) -> Any:
        if self._out is None:
            return results[0]
        return tuple(results) if isinstance(self._out, int) else _tree.unflatten(self._out, results)

    def compile(self, compiler_options: dict[str, Any] | None = None) -> Compiled:
        """Compiles the program now.

        Args:
            compiler_options: JAX's, which say how XLA compiles: accepted, without effect.

        Returns: Compiled, which is called like the function without its static arguments. What the function takes as
            donated is given away by each call.

        Raises:
            NotImplementedError: the program is for a GPU: those run from bundles (docs/gpu.md), not in this process.

        Example:
            >>> weft.jit(lambda x: x + 1).lower(1.0).compile()(2.0)
            Array(3., dtype=float32, weak_type=True)
        """
        del compiler_options
        fn, optimized = self._planned
        self._licensed(lambda: _weft.compile(fn, self._backend, self._fixed_order, optimized, self._donated))
        return Compiled(self)


class Compiled(Placed):
    """A compiled program for arguments of one structure and types, without the static ones.

    Raises:
        TypeError: when called with arguments of another structure or type.

    Example:
        >>> weft.jit(lambda x: x + 1).lower(1.0).compile()(2.0)
        Array(3., dtype=float32, weak_type=True)
    """

    def __init__(self, lowered: Lowered):
        self._lowered = lowered
        self._describe(lowered)
        self._run = jit(
            lambda *leaves: _weft.apply(self._ir._fn, [*leaves, *self._ir._captures], self._ir._weak),
            donate_argnums=[i for i, donated in enumerate(lowered._donated) if donated],
            deterministic=lowered._fixed_order,
            backend=lowered._backend,
            passes=None if lowered._plan is None else lowered._plan.passes,
            disable=None if lowered._plan is None else lowered._plan.disabled,
        )
        self._run.__dict__["_licences"] = lowered._jitted._licences

    def as_text(self) -> str:
        """The steps and kernels, and what devices send each other.

        Returns: str.

        Raises:
            ValueError: the backend has none.

        Example:
            >>> "kernel" in weft.jit(lambda x: x + 1).lower(wnp.ones(3)).compile().as_text()
            True
        """
        low = self._lowered
        with following(low._plan):
            return low.stage("schedule") + _communication.sent(low._traced, low._shardings, low._fixed_order)

    def memory_analysis(self) -> MemoryAnalysis:
        """How much memory the program takes.

        Returns: numbers of bytes, under JAX's names.

        Raises:
            ValueError: the backend does not plan memory.

        Example:
            >>> weft.jit(lambda x: x.sum()).lower(wnp.ones(1000)).compile().memory_analysis().output_size_in_bytes
            4
        """
        return MemoryAnalysis.of_stages(self._lowered.stage("schedule"), self._lowered.stage("buffers"))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._lowered._result(self._run(*self._lowered._leaves(args, kwargs)))


def _trace_jit(jitted, args: tuple, kwargs: dict, *apart: list):
    """Called from C++ for arguments of a new signature. Returns the traced function and how to build its result.
    `apart`: the leaves of the arguments, and the trees of what is no list, tuple or dict."""
    function, nums, names = jitted._function, jitted._static_argnums, jitted._static_argnames
    static_args = {i: static_value(a) for i, a in enumerate(args) if i in nums}
    static_kwargs = {k: static_value(v) for k, v in kwargs.items() if k in names}
    if static_args or static_kwargs:
        inner = function

        def function(*dynamic, **keywords):
            rest = iter(dynamic)
            full = [static_args[i] if i in static_args else next(rest) for i in range(len(args))]
            return inner(*full, **keywords, **static_kwargs)

        update_wrapper(function, inner)
        signature_args = [(i, a) for i, a in enumerate(args) if i not in nums]
    else:
        signature_args = list(enumerate(args))
    dynamic = tuple(a for _, a in signature_args)
    keywords = {k: v for k, v in kwargs.items() if k not in names}
    shardings = getattr(jitted, "_shardings", None)
    committed.begins(shardings is not None, _weft.is_tracing())
    names_of_leaves: list[str] = []
    if shardings is not None:
        function = _partitioning.with_shardings(function, shardings[0], shardings[1], names_of_leaves)
    flat = flat_function(
        function, dynamic, keywords, [i for i, _ in signature_args], original=jitted._function, apart=apart
    )
    names_of_leaves += flat.names
    traced = trace_jitted(jitted, flat, {**static_args, **static_kwargs})
    committed.traced_last(traced.fn.name, flat.names)
    if shardings is not None and shardings[0] is not None and not keywords:
        committed.check_cut(in_places(shardings[0], dynamic), flat.leaves, flat.names, traced.fn.name)
    tree = flat.out_tree
    if tree == LEAF_TREE:
        return traced, None, flat.names
    if tree.type is tuple and tree.num_nodes == tree.num_leaves + 1:
        return traced, tree.num_leaves, flat.names
    return traced, tree, flat.names


def set_hooks(around: Callable[[Callable], Callable] = lambda hook: hook) -> None:
    """Says what C++ calls for jitted functions; `around`: what each of these functions is wrapped in."""
    hooks = [around(hook) for hook in (_trace_jit, _refuse, _call_stateful)]
    _weft.set_hooks(lambda x: _tree.flatten(x), *hooks, UsesReferences)


set_hooks()


_mover = functools.lru_cache(maxsize=256)(lambda sharding: jit(lambda x: x, out_shardings=sharding))
# An array that spans several processes, moved to another sharding on its mesh.
_arrays.move_by_program = lambda x, sharding: _mover(sharding)(x)
