"""Functions that transform functions: jit, grad, vmap and the others.

Each traces its function into the typed IR, applies a transform that is written in C++, and then either inlines the
result into the function that is being traced, or runs it.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ParamSpec, TypeVar, overload

from . import _weft
from . import tree as _tree
from ._tracing import LEAF_TREE, ShapeDtype, call_name, flat_function, trace_flat
from .autograph import autograph as _autograph
from .collectives import check_axis_name
from .recording import Recorded
from .typing import Jitted

__all__ = [
    "IR",
    "ShapeDtype",
    "block_until_ready",
    "deserialize_ir",
    "device_get",
    "eval_shape",
    "jit",
    "make_ir",
    "named_call",
    "named_scope",
    "parse_ir",
    "stop_gradient",
    "vmap",
]


_P = ParamSpec("_P")
_R = TypeVar("_R")


# --- jit --------------------------------------------------------------------------------------------------------------


@overload
def jit(
    function: Callable[_P, _R],
    *,
    static_argnums: int | Iterable[int] | None = None,
    static_argnames: str | Iterable[str] | None = None,
    donate_argnums: int | Iterable[int] | None = None,
    donate_argnames: str | Iterable[str] | None = None,
    autograph: bool = False,
    capture: str = "trace",
    inline: bool = False,
    keep_unused: bool = False,
) -> Jitted[_P, _R]: ...
@overload
def jit(
    function: None = None,
    *,
    static_argnums: int | Iterable[int] | None = None,
    static_argnames: str | Iterable[str] | None = None,
    donate_argnums: int | Iterable[int] | None = None,
    donate_argnames: str | Iterable[str] | None = None,
    autograph: bool = False,
    capture: str = "trace",
    inline: bool = False,
    keep_unused: bool = False,
) -> Callable[[Callable[_P, _R]], Jitted[_P, _R]]: ...
def jit(
    function: Callable[..., Any] | None = None,
    *,
    static_argnums: int | Iterable[int] | None = None,
    static_argnames: str | Iterable[str] | None = None,
    donate_argnums: int | Iterable[int] | None = None,
    donate_argnames: str | Iterable[str] | None = None,
    autograph: bool = False,
    capture: str = "trace",
    inline: bool = False,
    keep_unused: bool = False,
) -> Any:
    """Compiles a function. The first call with arguments of new shapes, dtypes or structure traces it; calls after that
    run the compiled code without Python.

    Arguments are arrays, numbers, or containers of them (see weft.tree). An array whose memory somebody else sees (a
    NumPy or DLPack view, a second array) is not donated, with a UserWarning; neither are NumPy arrays and numbers,
    which are copied.

    Args:
        function: the function; without it a decorator is returned.
        static_argnums: positions of arguments that are passed to Python as they are; they must be hashable, and every
            new value compiles anew.
        static_argnames: names of such arguments.
        donate_argnums: positions of arguments that are given away: their memory is used for results or temporaries, in
            place where the program allows it, and the arrays are deleted; using one afterwards raises RuntimeError.
        donate_argnames: names of such arguments.
        autograph: whether Python's if, for and while may depend on traced values (see weft.autograph).
        capture: "trace"; "script", the same as autograph=True; or "auto": Python decides on the numbers of a call, the
            path that it took is compiled, and used again where its recorded decisions come out the same; otherwise
            Python runs anew. That the function depends on its arguments alone is then the caller's promise.
        inline: accepted, without effect.
        keep_unused: accepted, without effect.

    Returns: function of the same arguments. Its explain() lists the compiled versions, clear_cache() forgets them, and
        lower(*args) gives the program for such arguments without running it.

    Raises:
        TypeError: function is none; when called: an argument is no array, number or container of them; the message
            names it.
        ValueError: there is no such argument, or it is static and donated; when called: a static argument is not
            hashable.
        weft.TracerError: when called: the function needs the number behind a traced value.

    Example:
        >>> @weft.jit
        ... def f(x):
        ...     return x * 2 + 1
        >>> f(wnp.arange(3))
        Array([1, 3, 5], dtype=int32)
    """
    del inline, keep_unused
    if function is None:
        return functools.partial(
            jit,
            static_argnums=static_argnums,
            static_argnames=static_argnames,
            donate_argnums=donate_argnums,
            donate_argnames=donate_argnames,
            autograph=autograph,
            capture=capture,
        )
    if not callable(function):
        raise TypeError(f"jit: expected a function, got {function!r}")
    nums, names = _static(function, static_argnums, static_argnames)
    donate_nums, donate_names = _static(function, donate_argnums, donate_argnames, "donate")
    if both := sorted(map(str, nums & donate_nums | names & donate_names)):
        raise ValueError(f"jit: argument {both[0]} of '{call_name(function)}' cannot be both static and donated")
    original = function
    if capture not in ("trace", "script", "auto"):
        raise ValueError(f"jit: capture is 'trace', 'script' or 'auto', got {capture!r}")
    if capture == "auto":
        if autograph or donate_nums or donate_names:
            raise ValueError("jit: capture='auto' takes neither autograph nor donated arguments")
        return Recorded(function, nums, names)
    if autograph or capture == "script":
        function = _autograph(function)
    jitted = _weft.JitFunction(
        function, frozenset(nums), frozenset(names), frozenset(donate_nums), frozenset(donate_names)
    )
    for attribute in ("__module__", "__name__", "__qualname__", "__doc__", "__annotations__"):
        if hasattr(original, attribute):
            jitted.__dict__[attribute] = getattr(original, attribute)
    jitted.__dict__["__wrapped__"] = original
    jitted.__dict__["lower"] = lambda *args, **kwargs: Lowered(jitted, args, kwargs)
    return jitted


class Lowered:
    """The program of a jitted function for arguments of given types: look at it, or compile it.
    weft.jit(f).lower(*args) makes one.

    Example:
        >>> lowered = weft.jit(lambda x: x + 1).lower(1.0)
        >>> lowered.compile()(2.0)
        Array(3., dtype=float32, weak_type=True)
    """

    def __init__(self, jitted, args: tuple, kwargs: dict):
        traced, self._out = _trace_jit(jitted, args, kwargs)[:2]
        self._jitted, self._fn = jitted, traced.fn
        dynamic = [a for i, a in enumerate(args) if i not in jitted._static_argnums]
        self._in_tree = _tree.structure(
            (tuple(dynamic), {k: v for k, v in kwargs.items() if k not in jitted._static_argnames})
        )
        self._ir = IR(traced.fn, traced.captures, self._in_tree, None, traced.weak_results)

    def as_text(self, dialect: str | None = None) -> str:
        """The program as text.

        Args:
            dialect: a stage, as IR.stage names it; None: the traced program.

        Returns: str.

        Raises:
            ValueError: there is no such stage.

        Example:
            >>> weft.jit(lambda x: x + 1).lower(1.0).as_text().splitlines()[0]
            'fn f(x: f32[]) -> (f32[]) {'
        """
        return self._ir.text if dialect is None else self._ir.stage(dialect)

    def compile(self) -> Compiled:
        """Compiles the program now.

        Returns: Compiled, which is called like the function without its static arguments.

        Example:
            >>> weft.jit(lambda x: x + 1).lower(1.0).compile()(2.0)
            Array(3., dtype=float32, weak_type=True)
        """
        return Compiled(self)


class Compiled:
    """A compiled program for arguments of one structure and types, without the static ones.

    Raises:
        TypeError: when called with arguments of another structure or type.

    Example:
        >>> weft.jit(lambda x: x + 1).lower(1.0).compile()(2.0)
        Array(3., dtype=float32, weak_type=True)
    """

    def __init__(self, lowered: Lowered):
        self._lowered = lowered
        self._ir = lowered._ir
        self._run = jit(lambda *leaves: _weft.apply(self._ir._fn, [*leaves, *self._ir._captures], self._ir._weak))
        self._text = self._ir.stage("schedule")  # compiles

    def as_text(self) -> str:
        """The kernels and their memory.

        Returns: str.

        Example:
            >>> "kernel" in weft.jit(lambda x: x + 1).lower(wnp.ones(3)).compile().as_text()
            True
        """
        return self._text

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        leaves, tree = _tree.flatten((args, kwargs))
        if tree != self._lowered._in_tree:
            raise TypeError(f"the program was compiled for arguments of structure {self._lowered._in_tree}, got {tree}")
        for leaf, wanted in zip(leaves, self._ir.in_types):
            text = _weft.abstract(leaf)[3]
            if text != wanted:
                raise TypeError(f"the program was compiled for an argument {wanted}, got {text}")
        results = self._run(*leaves)
        out = self._lowered._out
        if out is None:
            return results[0]
        return tuple(results) if isinstance(out, int) else _tree.unflatten(out, results)


def _ints(value) -> tuple[int, ...]:
    if value is None:
        return ()
    return (value,) if isinstance(value, int) else tuple(value)


def _strings(value) -> tuple[str, ...]:
    if value is None:
        return ()
    return (value,) if isinstance(value, str) else tuple(value)


def _static(function, argnums, argnames, kind: str = "static") -> tuple[set[int], set[str]]:
    """Static or donated arguments by position and by name: each way of naming them covers both ways of passing."""
    nums, names = set(_ints(argnums)), set(_strings(argnames))
    if not nums and not names:
        return nums, names
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return nums, names
    positional = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    varargs = any(p.kind == p.VAR_POSITIONAL for p in parameters)
    for n in list(nums):
        if n < 0:
            nums.discard(n)
            n += len(positional)
            nums.add(n)
        if n < 0 or (n >= len(positional) and not varargs):
            raise ValueError(
                f"jit: {kind}_argnums has {n}, but '{call_name(function)}' takes {len(positional)} positional arguments"
            )
        if n < len(positional):
            names.add(positional[n])
    for name in _strings(argnames):
        if name in positional:
            nums.add(positional.index(name))
        elif name not in {p.name for p in parameters} and not any(p.kind == p.VAR_KEYWORD for p in parameters):
            raise ValueError(f"jit: {kind}_argnames has '{name}', which is no argument of '{call_name(function)}'")
    return nums, names


def _trace_jit(jitted, args: tuple, kwargs: dict):
    """Called from C++ for arguments of a new signature. Returns the traced function and how to build its result."""
    function, nums, names = jitted._function, jitted._static_argnums, jitted._static_argnames
    static_args = {i: a for i, a in enumerate(args) if i in nums}
    static_kwargs = {k: v for k, v in kwargs.items() if k in names}
    if static_args or static_kwargs:
        inner = function

        def function(*dynamic, **keywords):
            rest = iter(dynamic)
            full = [static_args[i] if i in static_args else next(rest) for i in range(len(args))]
            return inner(*full, **keywords, **static_kwargs)

        functools.update_wrapper(function, inner)
        signature_args = [(i, a) for i, a in enumerate(args) if i not in nums]
    else:
        signature_args = list(enumerate(args))
    dynamic = tuple(a for _, a in signature_args)
    keywords = {k: v for k, v in kwargs.items() if k not in names}
    flat = flat_function(
        function, dynamic, keywords, positions=[i for i, _ in signature_args], original=jitted._function
    )
    traced = trace_flat(flat, "jit", known=False)
    tree = flat.out_tree
    if tree == LEAF_TREE:
        return traced, None, flat.names
    if tree.type is tuple and tree.num_nodes == tree.num_leaves + 1:
        return traced, tree.num_leaves, flat.names
    return traced, tree, flat.names


def _refuse(jitted, args: tuple, kwargs: dict):
    """Called from C++ where a leaf of the arguments is no array: raises TypeError, which names its argument."""
    nums, names = jitted._static_argnums, jitted._static_argnames
    positions = [i for i in range(len(args)) if i not in nums]
    dynamic, keywords = tuple(args[i] for i in positions), {k: v for k, v in kwargs.items() if k not in names}
    try:
        flat_function(jitted._function, dynamic, keywords, positions)
    except TypeError as error:
        hint = "Mark the argument as static (static_argnums, static_argnames) if it decides what is computed"
        raise TypeError(f"jit: {error}. {hint}") from None


def disable_jit(disable: bool = True) -> contextlib.AbstractContextManager[None]:
    """A context manager: inside it jitted functions run as plain Python, operation by operation, and so do cond, scan
    and the other loops.

    Args:
        disable: whether to.

    Returns: context manager.

    Example:
        >>> @weft.jit
        ... def f(x):
        ...     print(x)
        ...     return x * 2
        >>> with weft.disable_jit():
        ...     f(wnp.array(3.0))
        3.0
        Array(6., dtype=float32)
    """
    return _DisableJit(disable)


class _DisableJit(contextlib.AbstractContextManager[None]):
    def __init__(self, disable: bool):
        self._disable = disable

    def __enter__(self) -> None:
        self._saved = _weft.disable_jit()
        _weft.set_disable_jit(self._disable)

    def __exit__(self, *_) -> None:
        _weft.set_disable_jit(self._saved)


# --- The IR of a function ---------------------------------------------------------------------------------------------


class IR:
    """A traced function: look at it, call it, transform it. weft.make_ir and weft.parse_ir make one.

    Its text is what print shows. Called with arguments of the structure and types that it was traced for it runs;
    weft.grad, weft.vmap and the others take it like any function. Two are equal where their programs are.

    Raises:
        TypeError: when called with arguments of another structure or type.

    Example:
        >>> ir = weft.make_ir(lambda x: wnp.sin(x) * 2)(1.0)
        >>> print(ir, end="")
        fn f(x: f32[]) -> (f32[]) {
          a: f32[] = sin x
          b: f32[] = mul a 2.0:f32
          return b
        }
        >>> ir(0.0), weft.grad(ir)(0.0)
        (Array(0., dtype=float32, weak_type=True), Array(2., dtype=float32))
    """

    def __init__(self, fn, captures: Sequence = (), in_tree=None, out_tree=None, weak=()):
        self._fn, self._captures, self._in_tree, self._out_tree, self._weak = (
            fn,
            list(captures),
            in_tree,
            out_tree,
            list(weak),
        )
        self.__name__ = fn.name

    @property
    def text(self) -> str:
        """The text form; weft.parse_ir reads it back.

        Example:
            >>> weft.make_ir(lambda x: x + 1)(1.0).text == str(weft.make_ir(lambda x: x + 1)(1.0))
            True
        """
        return self._fn.text()

    def text_with_locations(self) -> str:
        """The text form with the user's line of every equation.

        Returns: str.

        Example:
            >>> "# " in weft.make_ir(lambda x: x + 1)(1.0).text_with_locations()
            True
        """
        return self._fn.text(locations=True)

    @property
    def eqns(self) -> list[dict]:
        """The equations in order: dicts with name, operands, results, attrs, regions, location (as text) and origin.

        The origin is a dict: the user's file, line, function and stack, and the transforms it has been through.

        Example:
            >>> [eqn["name"] for eqn in weft.make_ir(lambda x: wnp.sin(x) + 1)(1.0).eqns]
            ['sin', 'add']
        """
        return self._fn.eqns

    @property
    def num_eqns(self) -> int:
        """The number of equations, those of regions included.

        Example:
            >>> weft.make_ir(lambda x: wnp.sin(x) + 1)(1.0).num_eqns
            2
        """
        return self._fn.num_eqns

    def cost_analysis(self) -> dict[str, float]:
        """What the optimised program costs, counted on its equations.

        Element-wise work is taken as fused. A scan counts its body times its length, a while
        loop one trip, a cond its most expensive branch; a symbolic size is taken as 64.

        Returns: {"flops": number, "bytes accessed": number}, under JAX's names.

        Example:
            >>> weft.make_ir(lambda x: x * x + 1)(wnp.ones(100)).cost_analysis()
            {'flops': 200.0, 'bytes accessed': 800.0}
        """
        flops, accessed = _weft.cost(self._fn)
        return {"flops": flops, "bytes accessed": accessed}

    @property
    def in_types(self) -> list[str]:
        """The types of the parameters, as text.

        Example:
            >>> weft.make_ir(lambda x: x.sum())(wnp.ones((2, 3))).in_types
            ['f32[2,3]']
        """
        return self._fn.param_types

    @property
    def out_types(self) -> list[str]:
        """The types of the results, as text.

        Example:
            >>> weft.make_ir(lambda x: x.sum())(wnp.ones((2, 3))).out_types
            ['f32[]']
        """
        return self._fn.result_types

    @property
    def constants(self) -> list:
        """The arrays that the function captured, in the order of its `const` parameters.

        Example:
            >>> table = wnp.arange(100.0)
            >>> [c.shape for c in weft.make_ir(lambda i: table[i])(3).constants]
            [(100,)]
        """
        return list(self._captures)

    def to_python(self, locations: bool = False) -> str:
        """Python source of the program, equation by equation, in terms of weft.primitives.

        Running it defines a function of the program's name, which is the same program. Captured arrays are its last
        parameters, in the order of `constants`.

        Args:
            locations: whether every equation has its user line and transforms as a comment.

        Returns: str.

        Example:
            >>> def f(x):
            ...     return wnp.sin(x) * 2
            >>> print(weft.make_ir(f)(1.0).to_python())
            from weft import primitives as prim
            <BLANKLINE>
            <BLANKLINE>
            @prim.function('f32[]')
            def f(x):
                a = prim.sin(x)
                b = prim.mul(a, prim.literal('2.0:f32'))
                return b
            <BLANKLINE>
        """
        from .primitives import to_python

        return to_python(self._fn, locations)[0]

    def serialize(self) -> bytes:
        """The program in the exchange form (docs/ir.md), with its locations; weft.deserialize_ir reads it.

        Captured arrays are no part of it: they become the last arguments, in the order of `constants`.

        Returns: bytes.

        Example:
            >>> weft.deserialize_ir(weft.make_ir(wnp.sin)(1.0).serialize())(0.0)
            Array(0., dtype=float32)
        """
        return _weft.serialize(self._fn)

    def loops(self) -> list[str]:
        """What each loop records for later: bytes per trip, and trips or snapshots where they are known.

        Returns: list of str, a line for each such loop.

        Example:
            >>> g = weft.grad(lambda x: weft.fori_loop(0, 100, lambda i, c: c * c, x))
            >>> [line.split(": ")[1] for line in weft.make_ir(g)(1.0).loops()]
            ['100 steps of 4 bytes, 400 bytes together']
        """
        return _weft.loop_memory(self._fn)

    def stage(self, name: str) -> str:
        """The program at a stage of compilation.

        Args:
            name: "ir", "optimized", "schedule", "mlir", "llvm" or "asm".

        Returns: str.

        Raises:
            ValueError: there is no such stage.

        Example:
            >>> "sin" in weft.make_ir(lambda x: wnp.sin(x) * 1)(wnp.ones(3)).stage("optimized")
            True
        """
        return _weft.stage(self._fn, name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        leaves, in_tree = _tree.flatten((args, kwargs))
        if self._in_tree is not None and in_tree != self._in_tree:
            raise TypeError(f"'{self.__name__}' was traced for arguments of structure {self._in_tree}, got {in_tree}")
        results = _weft.apply(self._fn, leaves + self._captures, self._weak)
        if self._out_tree is not None:
            return _tree.unflatten(self._out_tree, results)
        return results[0] if len(results) == 1 else tuple(results)

    def __repr__(self) -> str:
        return self.text

    def __eq__(self, other) -> bool:
        return isinstance(other, IR) and self._fn == other._fn

    def __hash__(self) -> int:
        return hash(self._fn)


def make_ir(
    function: Callable[..., Any],
    *,
    static_argnums: int | Iterable[int] | None = None,
    axis_env: Iterable[tuple[str, int]] | None = None,
) -> Callable[..., IR]:
    """A function that traces instead of computing: make_ir(f)(*args) is the IR of f for such arguments.

    Arguments may be arrays, numbers, or weft.ShapeDtype where only the type matters; dimensions may be symbolic.

    Args:
        function: the function.
        static_argnums: positions of arguments that are passed to Python as they are.
        axis_env: named axes that collectives inside may refer to, with their sizes: [("i", 4)].

    Returns: function that takes the arguments of `function` and returns weft.IR.

    Raises:
        TypeError: when called: an argument or a result is no array, number or container of them.
        weft.TracerError: when called: the function needs the number behind a traced value.

    Example:
        >>> weft.make_ir(lambda x: x.sum(0))(weft.ShapeDtype(("n", 784), "float32")).out_types
        ['f32[784]']
    """
    axes = [(check_axis_name(name, "make_ir"), size, False) for name, size in axis_env or ()]

    @functools.wraps(function, updated=())
    def traced(*args, **kwargs) -> IR:
        static = {i % max(len(args), 1) for i in _ints(static_argnums)}
        if static:
            fixed = {i: args[i] for i in static}
            inner = lambda *dynamic, **kw: function(*_merge(fixed, dynamic, len(args)), **kw)
            flat = flat_function(
                inner,
                tuple(a for i, a in enumerate(args) if i not in static),
                kwargs,
                original=function,
                positions=[i for i in range(len(args)) if i not in static],
            )
        else:
            flat = flat_function(function, args, kwargs)
        t = trace_flat(flat, "make_ir", known=False, axes=axes)
        return IR(t.fn, t.captures, flat.in_tree, flat.out_tree, t.weak_results)

    return traced


def _merge(fixed: dict, dynamic: Sequence, n: int) -> list:
    rest = iter(dynamic)
    return [fixed[i] if i in fixed else next(rest) for i in range(n)]


def parse_ir(text: str, file: str = "") -> IR:
    """The function that a text in the IR's form describes.

    Args:
        text: the text, as weft.IR prints it; docs/ir.md has the grammar.
        file: what messages call the text.

    Returns: weft.IR.

    Raises:
        weft.ParseError: the text is malformed, or no valid program; the message shows the place.

    Example:
        >>> text = weft.make_ir(lambda x: x + 1)(2.0).text
        >>> weft.parse_ir(text)(3.0)
        Array(4., dtype=float32)
    """
    return IR(_weft.parse_fn(text, file))


def deserialize_ir(data: bytes) -> IR:
    """The function that bytes in the exchange form (IR.serialize, `weft opt --binary`) describe.

    Args:
        data: the bytes.

    Returns: weft.IR.

    Raises:
        weft.ParseError: the bytes are damaged, foreign or of a later version.

    Example:
        >>> data = weft.make_ir(lambda x: x + 1)(2.0).serialize()
        >>> weft.deserialize_ir(data)(3.0)
        Array(4., dtype=float32)
    """
    return IR(_weft.deserialize(data))


def eval_shape(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """The shapes and dtypes of a function's result, without computing anything.

    Args:
        function: the function.
        *args: its arguments: arrays, numbers, or weft.ShapeDtype where only the type matters.
        **kwargs: its keyword arguments.

    Returns: tree of weft.ShapeDtype.

    Raises:
        TypeError: an argument or a result is no array, number or container of them.

    Example:
        >>> weft.eval_shape(lambda x: x @ x.T, weft.ShapeDtype((3, 4), "float32"))
        ShapeDtype((3, 3), float32)
    """
    flat = flat_function(function, args, kwargs)
    t = trace_flat(flat, "eval_shape", known=False)
    return _tree.unflatten(
        flat.out_tree, [ShapeDtype(shape, dtype, weak_type=weak) for shape, dtype, weak in _weft.result_specs(t)]
    )


# --- Vectorisation ----------------------------------------------------------------------------------------------------


def vmap(
    function: Callable[_P, _R],
    in_axes: Any = 0,
    out_axes: Any = 0,
    axis_name: str | None = None,
    axis_size: int | None = None,
) -> Callable[_P, _R]:
    """A function of one more dimension: maps a function over an axis of its arguments. It is traced once, and each
    operation made one on batches; there is no loop.

    Args:
        function: the function.
        in_axes: the axis per argument: an integer, None for an argument that is the same for all, or a tree of them (a
            prefix of the argument's structure suffices); a tuple has one per argument. Keyword arguments map axis 0.
        out_axes: where the new axis is in each result: an integer, None for a result that is the same for all, or a
            tree.
        axis_name: a name for the mapped axis: collectives inside over that name (weft.lax.psum, all_gather, ppermute,
            axis_index ...) work across the lanes.
        axis_size: the size of the axis, where no argument says; otherwise it must agree.

    Returns: function of the same arguments, with one more dimension each.

    Raises:
        ValueError: when called: sizes differ, nothing is mapped, an axis is out of range, or a mapped result has
            out_axes None.
        TypeError: when called: in_axes holds something else.

    Example:
        >>> weft.vmap(lambda x, w: x @ w, in_axes=(0, None))(wnp.ones((5, 3)), wnp.ones(3)).shape
        (5,)
        >>> weft.vmap(lambda x: x - weft.lax.pmean(x, "batch"), axis_name="batch")(wnp.array([1.0, 2.0, 6.0]))
        Array([-2., -1.,  3.], dtype=float32)
    """
    if axis_name is not None:
        check_axis_name(axis_name, "vmap")
    if isinstance(in_axes, list):
        in_axes = tuple(in_axes)

    @functools.wraps(function, updated=())
    def mapped(*args, **kwargs):
        flat = flat_function(function, args, kwargs)
        name = flat.name
        if isinstance(in_axes, tuple) and len(in_axes) != len(args):
            raise ValueError(
                f"vmap: in_axes has {len(in_axes)} entries, but '{name}' was called with {len(args)} "
                f"positional arguments"
            )
        axes = _tree.prefix_leaves(in_axes, args, "vmap: in_axes") if args else []
        axes += [0] * (len(flat.leaves) - len(axes))
        specs, moved, size, first = [], [], axis_size, "axis_size"
        for leaf, axis, path in zip(flat.leaves, axes, flat.names):
            shape, dtype, weak, text = _weft.abstract(leaf)
            if axis is None:
                moved.append(leaf)
                specs.append(leaf)
                continue
            if not isinstance(axis, int) or isinstance(axis, bool):
                raise TypeError(f"vmap: in_axes must hold integers and None, got {axis!r}")
            if not -len(shape) <= axis < len(shape):
                raise ValueError(
                    f"vmap: in_axes maps axis {axis} of argument {path} of '{name}', which is {text}, of "
                    f"{len(shape)} dimensions"
                )
            axis %= len(shape)
            if size is None:
                size, first = shape[axis], f"axis {axis} of argument {path}"
            elif size != shape[axis]:
                raise ValueError(
                    f"vmap: mapped sizes of '{name}' differ: {size} ({first}) and {shape[axis]} (axis "
                    f"{axis} of argument {path})"
                )
            moved.append(_weft.moveaxis(leaf, axis, 0) if axis else leaf)
            specs.append(
                ShapeDtype(shape[:axis] + shape[axis + 1 :], dtype, weak_type=weak, varying=_weft.varying(leaf))
            )
        if size is None:
            raise ValueError(f"vmap: no argument of '{name}' is mapped")
        flat.specs = specs
        batched = [axis is not None for axis in axes]
        bound = [] if axis_name is None else [(axis_name, size, False)]
        t = trace_flat(flat, "vmap", known=[not b for b in batched], axes=bound)
        outs = _tree.prefix_leaves(
            out_axes, _tree.unflatten(flat.out_tree, [0] * flat.out_tree.num_leaves), "vmap: out_axes"
        )
        ranks = [len(shape) for shape, _, _ in _weft.result_specs(t)]
        for axis, rank in zip(outs, ranks):
            if axis is not None and not -rank - 1 <= axis <= rank:
                raise ValueError(
                    f"vmap: out_axes has {axis} for a result of {rank} dimensions (without the mapped one)"
                )
        fn = _weft.vmap(t, batched, size, outs, axis_name or "")
        return _tree.unflatten(flat.out_tree, _weft.apply(fn, moved + t.captures, t.weak_results))

    return mapped


# --- The rest ---------------------------------------------------------------------------------------------------------


def named_call(function: Callable[_P, _R], *, name: str | None = None) -> Callable[_P, _R]:
    """The function itself; the name is for readers.

    Args:
        function: the function.
        name: accepted, without effect.

    Returns: the function.

    Example:
        >>> weft.named_call(abs, name="size")(-3)
        3
    """
    del name
    return function


def stop_gradient(x: _R) -> _R:
    """x, which derivatives treat as a constant.

    Args:
        x: array, number or tree of them.

    Returns: tree like x.

    Example:
        >>> weft.grad(lambda x: x * weft.stop_gradient(x))(3.0)
        Array(3., dtype=float32)
    """
    return _tree.map(lambda leaf: _weft.bind_elementwise("stop_gradient", (leaf,), {}), x)


def named_scope(name: str) -> contextlib.AbstractContextManager[None]:
    """A context manager that names a part of a program for readers; it has no effect.

    Args:
        name: accepted, without effect.

    Returns: context manager.

    Example:
        >>> with weft.named_scope("layer 1"):
        ...     wnp.sin(0.0)
        Array(0., dtype=float32, weak_type=True)
    """
    del name
    return contextlib.nullcontext()


def device_get(x: Any) -> Any:
    """The arrays of a tree as NumPy arrays.

    Args:
        x: array, number or tree of them.

    Returns: tree of numpy.ndarray; read-only views, without copies.

    Raises:
        weft.TracerError: a leaf is traced.

    Example:
        >>> weft.device_get([wnp.ones(2)])
        [array([1., 1.], dtype=float32)]
    """
    import numpy as np

    return _tree.map(np.asarray, x)


def block_until_ready(x: _R) -> _R:
    """Waits until the arrays of a tree are computed. Calls return when their work is done, so there is nothing to wait
    for.

    Args:
        x: array, number or tree of them.

    Returns: x.

    Example:
        >>> weft.block_until_ready(wnp.ones(2))
        Array([1., 1.], dtype=float32)
    """
    return x


_weft.set_hooks(lambda x: _tree.flatten(x), _trace_jit, _refuse)
