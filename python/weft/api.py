"""Functions that transform functions: jit, grad, vmap and the others.

Each traces its function into the typed IR, applies a transform that is written in C++, and then either inlines the
result into the function that is being traced, or runs it.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from . import _weft
from . import tree as _tree
from ._tracing import Flat, ShapeDtype, call_name, flat_function, trace_flat

__all__ = [
    "IR",
    "ShapeDtype",
    "block_until_ready",
    "checkpoint",
    "eval_shape",
    "grad",
    "hessian",
    "jacfwd",
    "jacrev",
    "jit",
    "jvp",
    "linear_transpose",
    "linearize",
    "make_ir",
    "named_call",
    "parse_ir",
    "remat",
    "stop_gradient",
    "value_and_grad",
    "vjp",
    "vmap",
]


# --- jit ---------------------------------------------------------------------------------------------------------------


def jit(
    function: Callable | None = None,
    *,
    static_argnums: int | Iterable[int] | None = None,
    static_argnames: str | Iterable[str] | None = None,
    donate_argnums: int | Iterable[int] | None = None,
    donate_argnames: str | Iterable[str] | None = None,
) -> Callable:
    """Compiles a function. The first call with arguments of new shapes, dtypes or structure traces it; calls after that
    run the compiled code without Python.

    Arguments are arrays, numbers, or containers of them (see weft.tree). Those named by static_argnums or
    static_argnames are passed to Python as they are; they must be hashable, and every new value compiles anew.
    donate_argnums and donate_argnames are accepted so that programs that donate run; nothing is overwritten yet.

        @weft.jit
        def f(x):
            return x * 2 + 1

    Raises TypeError for arguments that are no arrays, ValueError for static arguments that are not hashable, TracerError
    where the function needs the number behind a traced value. f.explain() lists the compiled versions.
    """
    if function is None:
        return functools.partial(
            jit,
            static_argnums=static_argnums,
            static_argnames=static_argnames,
            donate_argnums=donate_argnums,
            donate_argnames=donate_argnames,
        )
    if not callable(function):
        raise TypeError(f"jit: expected a function, got {function!r}")
    nums, names = _static(function, static_argnums, static_argnames)
    options = {"donate_argnums": _ints(donate_argnums), "donate_argnames": _strings(donate_argnames)}
    jitted = _weft.JitFunction(function, frozenset(nums), frozenset(names), options)
    for attribute in ("__module__", "__name__", "__qualname__", "__doc__", "__annotations__"):
        if hasattr(function, attribute):
            jitted.__dict__[attribute] = getattr(function, attribute)
    jitted.__dict__["__wrapped__"] = function
    return jitted


def _ints(value) -> tuple[int, ...]:
    if value is None:
        return ()
    return (value,) if isinstance(value, int) else tuple(value)


def _strings(value) -> tuple[str, ...]:
    if value is None:
        return ()
    return (value,) if isinstance(value, str) else tuple(value)


def _static(function, argnums, argnames) -> tuple[set[int], set[str]]:
    """Static arguments by position and by name: each way of naming them covers both ways of passing them."""
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
                f"jit: static_argnums has {n}, but '{call_name(function)}' takes {len(positional)} positional arguments"
            )
        if n < len(positional):
            names.add(positional[n])
    for name in _strings(argnames):
        if name in positional:
            nums.add(positional.index(name))
        elif name not in {p.name for p in parameters} and not any(p.kind == p.VAR_KEYWORD for p in parameters):
            raise ValueError(f"jit: static_argnames has '{name}', which is no argument of '{call_name(function)}'")
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
    if tree == _LEAF_TREE:
        return traced, None
    if tree.num_children == tree.num_leaves and tree.type is tuple:
        return traced, tree.num_leaves
    return traced, tree


def _weft_array(x):
    return _weft.array(x, None, False)


_LEAF_TREE = _tree.structure(0)


def disable_jit(disable: bool = True):
    """A context manager: inside it jitted functions run as plain Python, operation by operation."""
    return _DisableJit(disable)


class _DisableJit:
    def __init__(self, disable: bool):
        self._disable = disable

    def __enter__(self):
        self._saved = _weft.disable_jit()
        _weft.set_disable_jit(self._disable)

    def __exit__(self, *_):
        _weft.set_disable_jit(self._saved)


# --- The IR of a function ------------------------------------------------------------------------------------------------


class IR:
    """A traced function: look at it, call it, transform it.

    print(ir) shows its text; ir.eqns are its equations; ir.stage("optimized") a later stage as text. Calling it runs it;
    weft.grad, weft.vmap and the others take it like any function.
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
        """The text form; weft.parse_ir reads it back."""
        return self._fn.text()

    def text_with_locations(self) -> str:
        """The text form with the user's line of every equation."""
        return self._fn.text(locations=True)

    @property
    def eqns(self) -> list[dict]:
        """The equations in order: dicts with name, operands, results, attrs, regions and location."""
        return self._fn.eqns

    @property
    def in_types(self) -> list[str]:
        return self._fn.param_types

    @property
    def out_types(self) -> list[str]:
        return self._fn.result_types

    @property
    def constants(self) -> list:
        """The arrays that the function captured, in the order of its `const` parameters."""
        return list(self._captures)

    def stage(self, name: str) -> str:
        """The program at a stage of compilation: "ir", "optimized", "schedule", "mlir", "llvm" or "asm"."""
        return _weft.stage(self._fn, name)

    def __call__(self, *args, **kwargs):
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


def make_ir(function: Callable, *, static_argnums: int | Iterable[int] | None = None) -> Callable[..., IR]:
    """A function that traces instead of computing: make_ir(f)(*args) is the IR of f for such arguments.

    Arguments may be arrays, numbers, or weft.ShapeDtype where only the type matters; dimensions may be symbolic:

        weft.make_ir(f)(weft.ShapeDtype(("n", 784), "float32"))
    """

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
        t = trace_flat(flat, "make_ir", known=False)
        return IR(t.fn, t.captures, flat.in_tree, flat.out_tree, t.weak_results)

    return traced


def _merge(fixed: dict, dynamic: Sequence, n: int) -> list:
    rest = iter(dynamic)
    return [fixed[i] if i in fixed else next(rest) for i in range(n)]


def parse_ir(text: str, file: str = "") -> IR:
    """The function that a text in the IR's form describes. Raises weft.ParseError, which shows the place."""
    return IR(_weft.parse_fn(text, file))


def eval_shape(function: Callable, *args, **kwargs):
    """The shapes and dtypes of function(*args, **kwargs), as a tree of ShapeDtype, without computing anything."""
    flat = flat_function(function, args, kwargs)
    t = trace_flat(flat, "eval_shape", known=False)
    return _tree.unflatten(
        flat.out_tree, [ShapeDtype(shape, dtype, weak_type=weak) for shape, dtype, weak in _weft.result_specs(t)]
    )


# --- Derivatives ---------------------------------------------------------------------------------------------------------


def _argnums_flat(flat: Flat, args: tuple, argnums, what: str) -> tuple[list[bool], list[int], bool]:
    single = isinstance(argnums, int)
    nums = [argnums] if single else list(argnums)
    for n in nums:
        if not -len(args) <= n < len(args):
            raise ValueError(
                f"{what}: argnums has {n}, but '{flat.name}' was called with {len(args)} positional arguments"
            )
    nums = [n % len(args) for n in nums]
    owner = [i for i, a in enumerate(args) for _ in _tree.leaves(a)]
    owner += [-1] * (len(flat.leaves) - len(owner))
    mask = [o in nums for o in owner]
    return mask, nums, single


def _check_inexact(flat: Flat, mask: list[bool], what: str, allow_int: bool = False) -> None:
    for leaf, wanted, name in zip(flat.leaves, mask, flat.names):
        if wanted and not allow_int and not _weft.is_inexact(_weft.abstract(leaf)[1]):
            raise TypeError(
                f"{what}: argument {name} of '{flat.name}' is {_weft.abstract(leaf)[3]}; derivatives need a float or complex dtype"
            )


def grad(
    function: Callable,
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    *,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable:
    """The gradient of a scalar function, by reverse mode, with respect to the arguments argnums.

    The result has the structure, shapes and dtypes of the argument (a tuple when argnums is a tuple). With has_aux the
    function returns (value, aux) and grad(f) returns (gradient, aux).

        weft.grad(lambda x: (x ** 2).sum())(x)   # 2 x

    Outside jit the function is traced with the given numbers known, so Python `if` and `float()` work on its values; the
    path that is taken is the one that is differentiated. Raises TypeError when the result is not a real scalar or an
    argument is not of a float dtype, DerivativeError for an operation without derivative.
    """
    inner = value_and_grad(function, argnums, has_aux, holomorphic=holomorphic, allow_int=allow_int)

    @functools.wraps(function, updated=())
    def gradient(*args, **kwargs):
        value, g = inner(*args, **kwargs)
        return (g, value[1]) if has_aux else g

    return gradient


def value_and_grad(
    function: Callable,
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    *,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable:
    """Like grad, but returns (value, gradient); with has_aux ((value, aux), gradient)."""

    @functools.wraps(function, updated=())
    def value_and_gradient(*args, **kwargs):
        what = "grad"
        flat = flat_function(function, args, kwargs)
        if not args:
            raise TypeError(
                f"{what}: '{flat.name}' was called without positional arguments; derivatives are with respect to one"
            )
        mask, nums, single = _argnums_flat(flat, args, argnums, what)
        _check_inexact(flat, mask, what, allow_int)
        t = trace_flat(flat, what, known=True)
        if has_aux:
            if flat.out_tree.num_children != 2 or flat.out_tree.type is not tuple:
                raise TypeError(f"{what}: with has_aux '{flat.name}' must return (value, aux)")
            value_tree, aux_tree = flat.out_tree.children()
        else:
            value_tree, aux_tree = flat.out_tree, None
        if value_tree != _LEAF_TREE:
            raise TypeError(
                f"{what}: '{flat.name}' must return one scalar, got a result of structure {value_tree}"
                + ("" if has_aux else "; pass has_aux=True if it returns (value, aux)")
            )
        fn = _weft.grad(t, mask, True, has_aux, holomorphic)
        out = _weft.apply(fn, flat.leaves + t.captures)
        n = sum(mask)
        value, grads, aux = out[0], out[1 : 1 + n], out[1 + n :]
        by_arg = _split(grads, args, nums)
        result = by_arg[0] if single else tuple(by_arg)
        return ((value, _tree.unflatten(aux_tree, aux)) if has_aux else value), result

    return value_and_gradient


def _split(grads: list, args: tuple, nums: list[int]) -> list:
    """Gradients, in the order of the flat arguments, as one tree per entry of nums."""
    pieces, at = {}, 0
    for n in sorted(set(nums)):
        tree = _tree.structure(args[n])
        pieces[n] = _tree.unflatten(tree, grads[at : at + tree.num_leaves])
        at += tree.num_leaves
    return [pieces[n] for n in nums]


def jvp(function: Callable, primals: Sequence, tangents: Sequence, has_aux: bool = False):
    """Forward mode: (function(*primals), its directional derivative along tangents).

    Tangents have the structure, shapes and dtypes of the primals (integers: anything, ignored).
    """
    if not isinstance(primals, (tuple, list)) or not isinstance(tangents, (tuple, list)):
        raise TypeError("jvp: primals and tangents must be tuples of arguments")
    primals, tangents = tuple(primals), tuple(tangents)
    flat = flat_function(function, primals, {})
    t_leaves, t_tree = _tree.flatten((tangents, {}))
    if t_tree != flat.in_tree:
        raise TypeError(f"jvp: tangents have the structure {t_tree}, primals {flat.in_tree}")
    active = [_weft.is_inexact(_weft.abstract(leaf)[1]) for leaf in flat.leaves]
    moving = []
    for leaf, tangent, name, on in zip(flat.leaves, t_leaves, flat.names, active):
        if not on:
            continue
        (shape, dtype, _, text), (t_shape, t_dtype, t_weak, t_text) = _weft.abstract(leaf), _weft.abstract(tangent)
        if shape != t_shape or (dtype != t_dtype and not t_weak):
            raise TypeError(f"jvp: the tangent of argument {name} is {t_text}, the argument itself {text}")
        moving.append(_weft.astype(tangent, dtype))
    t = trace_flat(flat, "jvp", known=True)
    fn, active_out = _weft.jvp(t, active)
    out = _weft.apply(fn, flat.leaves + t.captures + moving)
    n = t.num_results
    values, rest = out[:n], iter(out[n:])
    derivative = [next(rest) if a else _zero_tangent(v) for v, a in zip(values, active_out)]
    primal_out, tangent_out = _tree.unflatten(flat.out_tree, values), _tree.unflatten(flat.out_tree, derivative)
    if has_aux:
        return primal_out[0], tangent_out[0], primal_out[1]
    return primal_out, tangent_out


def _zero_tangent(value):
    return _weft.full(value.shape, 0, value.dtype if _weft.is_inexact(value.dtype) else None)


def vjp(function: Callable, *primals, has_aux: bool = False):
    """Reverse mode: (function(*primals), pullback). pullback(cotangent) returns a tuple: the cotangent of each primal."""
    flat = flat_function(function, primals, {})
    active = [_weft.is_inexact(_weft.abstract(leaf)[1]) for leaf in flat.leaves]
    t = trace_flat(flat, "vjp", known=True)
    if has_aux:
        return _vjp_aux(flat, t, active)
    forward, backward, _ = _weft.vjp(t, active)
    out = _weft.apply(forward, flat.leaves + t.captures)
    n = t.num_results
    values, residuals = out[:n], out[n:]
    out_tree, in_tree = flat.out_tree, flat.in_tree
    types = [(v.shape, v.dtype, v.type) for v in values]
    leaf_types = [_weft.abstract(leaf) for leaf in flat.leaves]

    def pullback(cotangent):
        cts, ct_tree = _tree.flatten(cotangent)
        if ct_tree != out_tree:
            raise TypeError(f"vjp: the cotangent has the structure {ct_tree}, the result {out_tree}")
        moving = []
        for ct, (shape, dtype, text) in zip(cts, types):
            if not _weft.is_inexact(dtype):
                continue
            ct_shape, ct_dtype, ct_weak, ct_text = _weft.abstract(ct)
            if ct_shape != shape or (ct_dtype != dtype and not ct_weak):
                raise TypeError(f"vjp: a cotangent is {ct_text}, the result {text}")
            moving.append(_weft.astype(ct, dtype))
        back = iter(_weft.apply(backward, residuals + moving))
        grads = [next(back) if a else _weft.full(s[0], 0, "bool") for a, s in zip(active, leaf_types)]
        return _tree.unflatten(in_tree, grads)[0]

    return _tree.unflatten(out_tree, values), pullback


def _vjp_aux(flat: Flat, t, active):
    value_tree, aux_tree = flat.out_tree.children()
    count = value_tree.num_leaves

    def first(*leaves):
        args, kwargs = _tree.unflatten(flat.in_tree, leaves)
        return flat.function(*args, **kwargs)[0]

    args, _ = _tree.unflatten(flat.in_tree, flat.leaves)
    value, pullback = vjp(lambda *a: flat.function(*a)[0], *args)
    aux = _weft.apply(t.fn, flat.leaves + t.captures)[count:]
    del first
    return value, pullback, _tree.unflatten(aux_tree, aux)


def linearize(function: Callable, *primals):
    """(function(*primals), f_jvp): f_jvp(*tangents) is the derivative at the primals, without computing them again."""
    flat = flat_function(function, primals, {})
    active = [_weft.is_inexact(_weft.abstract(leaf)[1]) for leaf in flat.leaves]
    t = trace_flat(flat, "linearize", known=True)
    primal, tangent, _ = _weft.linearize(t, active)
    out = _weft.apply(primal, flat.leaves + t.captures)
    n = t.num_results
    values, residuals = out[:n], out[n:]
    out_tree, in_tree = flat.out_tree, flat.in_tree
    dtypes = [_weft.abstract(leaf)[1] for leaf in flat.leaves]

    def apply_tangents(*tangents):
        leaves, tangent_tree = _tree.flatten((tangents, {}))
        if tangent_tree != in_tree:
            raise TypeError(f"linearize: tangents have the structure {tangent_tree}, primals {in_tree}")
        moving = [_weft.astype(x, d) for x, a, d in zip(leaves, active, dtypes) if a]
        results = iter(_weft.apply(tangent, residuals + moving))
        return _tree.unflatten(
            out_tree, [next(results) if _weft.is_inexact(v.dtype) else _zero_tangent(v) for v in values]
        )

    return _tree.unflatten(out_tree, values), apply_tangents


def linear_transpose(function: Callable, *primals):
    """The transpose of a linear function: (cotangent) -> tuple of cotangents of its arguments."""
    _, pullback = vjp(function, *_tree.map(lambda x: _weft.full(x.shape, 0, x.dtype), primals))
    return pullback


def _standard_basis(tree):
    """The unit vectors of a tree of arrays, stacked along a new first axis; and the leaves' sizes."""
    from . import numpy as wnp

    leaves, treedef = _tree.flatten(tree)
    sizes = [wnp.size(leaf) for leaf in leaves]
    total = sum(sizes)
    basis, at = [], 0
    for leaf, size in zip(leaves, sizes):
        block = wnp.eye(total, size, -at, dtype=leaf.dtype)
        basis.append(block.reshape((total, *leaf.shape)))
        at += size
    return _tree.unflatten(treedef, basis), sizes


def jacfwd(function: Callable, argnums: int | Sequence[int] = 0, has_aux: bool = False) -> Callable:
    """The Jacobian, column by column with forward mode. Shape: result shape + argument shape."""

    @functools.wraps(function, updated=())
    def jacobian(*args, **kwargs):
        single = isinstance(argnums, int)
        nums = [argnums] if single else list(argnums)
        picked = tuple(args[n] for n in nums)

        def partial_function(*chosen):
            full = list(args)
            for n, a in zip(nums, chosen):
                full[n] = a
            return function(*full, **kwargs)

        picked = _tree.map(_weft_array, picked)
        basis, sizes = _standard_basis(picked)

        def push(*tangents):
            out = jvp(partial_function, picked, tangents, has_aux=has_aux)
            return (out[1], out[2]) if has_aux else out[1]

        pushed = vmap(push, in_axes=0, out_axes=(-1, None) if has_aux else -1)(*basis)
        columns, aux = pushed if has_aux else (pushed, None)
        leaves, treedef = _tree.flatten(picked)

        def one_result(y):
            blocks, at = [], 0
            for leaf, size in zip(leaves, sizes):
                blocks.append(y[..., at : at + size].reshape(y.shape[:-1] + leaf.shape))
                at += size
            result = _tree.unflatten(treedef, blocks)
            return result[0] if single else result

        result = _tree.map(one_result, columns)
        return (result, aux) if has_aux else result

    return jacobian


def jacrev(function: Callable, argnums: int | Sequence[int] = 0, has_aux: bool = False) -> Callable:
    """The Jacobian, row by row with reverse mode. Shape: result shape + argument shape."""

    @functools.wraps(function, updated=())
    def jacobian(*args, **kwargs):
        single = isinstance(argnums, int)
        nums = [argnums] if single else list(argnums)
        picked = _tree.map(_weft_array, tuple(args[n] for n in nums))

        def partial_function(*chosen):
            full = list(args)
            for n, a in zip(nums, chosen):
                full[n] = a
            return function(*full, **kwargs)

        if has_aux:
            value, pullback, aux = vjp(partial_function, *picked, has_aux=True)
        else:
            value, pullback = vjp(partial_function, *picked)
            aux = None
        basis, sizes = _standard_basis(value)
        rows = vmap(pullback)(basis)
        leaves, treedef = _tree.flatten(value)

        def for_result(i):
            at = sum(sizes[:i])
            result = _tree.map(lambda r: r[at : at + sizes[i]].reshape(leaves[i].shape + r.shape[1:]), rows)
            return result[0] if single else result

        result = _tree.unflatten(treedef, [for_result(i) for i in range(len(leaves))])
        return (result, aux) if has_aux else result

    return jacobian


def hessian(function: Callable, argnums: int | Sequence[int] = 0, has_aux: bool = False) -> Callable:
    """The matrix of second derivatives: forward mode over reverse mode."""
    return jacfwd(jacrev(function, argnums, has_aux), argnums, has_aux)


# --- Vectorisation -------------------------------------------------------------------------------------------------------


def vmap(function: Callable, in_axes: Any = 0, out_axes: Any = 0, *, axis_size: int | None = None) -> Callable:
    """A function of one more dimension: maps `function` over an axis of its arguments.

    in_axes gives that axis per argument: an integer, None for an argument that is the same for all, or a tree of them
    (a prefix of the argument's structure suffices). out_axes likewise places the new axis of each result.

        weft.vmap(lambda x, w: x @ w, in_axes=(0, None))(batch, w)

    Raises ValueError when mapped sizes differ, when nothing is mapped, or when a result with out_axes None is mapped.
    """
    if isinstance(in_axes, list):
        in_axes = tuple(in_axes)

    @functools.wraps(function, updated=())
    def mapped(*args, **kwargs):
        flat = flat_function(function, args, kwargs)
        name = flat.name
        if isinstance(in_axes, tuple) and len(in_axes) != len(args):
            raise ValueError(
                f"vmap: in_axes has {len(in_axes)} entries, but '{name}' was called with {len(args)} positional arguments"
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
                    f"vmap: in_axes maps axis {axis} of argument {path} of '{name}', which is {text}, of {len(shape)} dimensions"
                )
            axis %= len(shape)
            if size is None:
                size, first = shape[axis], f"axis {axis} of argument {path}"
            elif size != shape[axis]:
                raise ValueError(
                    f"vmap: mapped sizes of '{name}' differ: {size} ({first}) and {shape[axis]} (axis {axis} of argument {path})"
                )
            moved.append(_weft.moveaxis(leaf, axis, 0) if axis else leaf)
            specs.append(ShapeDtype(shape[:axis] + shape[axis + 1 :], dtype, weak_type=weak))
        if size is None:
            raise ValueError(f"vmap: no argument of '{name}' is mapped")
        flat.specs = specs
        batched = [axis is not None for axis in axes]
        t = trace_flat(flat, "vmap", known=[not b for b in batched])
        outs = _tree.prefix_leaves(
            out_axes, _tree.unflatten(flat.out_tree, [0] * flat.out_tree.num_leaves), "vmap: out_axes"
        )
        ranks = [len(shape) for shape, _, _ in _weft.result_specs(t)]
        for axis, rank in zip(outs, ranks):
            if axis is not None and not -rank - 1 <= axis <= rank:
                raise ValueError(
                    f"vmap: out_axes has {axis} for a result of {rank} dimensions (without the mapped one)"
                )
        fn = _weft.vmap(t, batched, size, outs)
        return _tree.unflatten(flat.out_tree, _weft.apply(fn, moved + t.captures, t.weak_results))

    return mapped


# --- The rest ------------------------------------------------------------------------------------------------------------


def checkpoint(function: Callable | None = None, *, policy: str = "nothing") -> Callable:
    """Marks a function whose intermediate values are computed again in the backward pass instead of being kept."""
    if function is None:
        return functools.partial(checkpoint, policy=policy)

    @functools.wraps(function, updated=())
    def rematerialised(*args, **kwargs):
        flat = flat_function(function, args, kwargs)
        t = trace_flat(flat, "checkpoint", known=False)
        return _tree.unflatten(flat.out_tree, _weft.remat(t, flat.leaves, policy))

    return rematerialised


remat = checkpoint


def named_call(function: Callable, *, name: str | None = None) -> Callable:
    """The function itself; the name is for readers."""
    del name
    return function


def stop_gradient(x):
    """x, treated as a constant by derivatives. Works on trees."""
    return _tree.map(lambda leaf: _weft.bind_elementwise("stop_gradient", (leaf,), {}), x)


def block_until_ready(x):
    """Waits until the arrays of a tree are computed; returns the tree."""
    return x


_weft.set_hooks(lambda x: _tree.flatten(x), _trace_jit)
