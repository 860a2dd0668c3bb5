"""What reverse mode keeps: checkpoint, its policies, and what a gradient saves.

    f = weft.checkpoint(layer, policy=weft.checkpoint_policies.dots_saveable)
    weft.print_saved_residuals(f, params, x)

Spelled as jax.ad_checkpoint: checkpoint, checkpoint_name, checkpoint_policies, print_saved_residuals, saved_residuals.
"""

from __future__ import annotations

import contextlib
import functools
import os
import types
import weakref
from collections.abc import Callable, Iterable
from typing import Any, ParamSpec, TypeVar, overload

from . import _weft
from ._core import stateful
from ._core import tree as _tree
from ._core.errors import not_implemented, type_error, value_error
from ._core.names import wraps
from ._core.shapes import ShapeDtype
from ._core.tracing import check_callable, flat_function, trace_flat
from .arguments import ints, names_of
from .arguments import text as checked_text

__all__ = [
    "Policy",
    "Residual",
    "checkpoint",
    "checkpoint_name",
    "checkpoint_policies",
    "print_saved_residuals",
    "remat",
    "saved_residuals",
]


_P = ParamSpec("_P")
_R = TypeVar("_R")
_T = TypeVar("_T")


# --- Policies ---------------------------------------------------------------------------------------------------------


class Policy:
    """Which values of a checkpointed function are kept.

    Made by weft.checkpoint_policies. A policy is a text in the program
    (ir/prims/control/policy.h) and, like JAX's policies, a
    function: policy(primitive, *operands, **attributes) says whether the results of such an equation are kept.

    Args:
        text: what stands in the program.
        rule: (name of a primitive, dict of its attributes) -> bool, the same in Python.

    Example:
        >>> keep = weft.checkpoint_policies.save_only_these_names("a", "b")
        >>> keep
        save_only_these_names("a","b")
        >>> keep("checkpoint_name", name="b"), keep("sin")
        (True, False)
    """

    def __init__(self, text: str, rule: Callable[..., bool]):
        self.text, self._rule = text, rule

    def __call__(self, prim, *operands, **attributes) -> bool:
        return bool(self._rule(_prim_name(prim), attributes))

    def __repr__(self) -> str:
        return self.text

    def __eq__(self, other) -> bool:
        return isinstance(other, Policy) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)


class Primitive:
    """What a policy that is a Python function is given as its first argument: the name of an operation."""

    def __init__(self, name: str):
        self.name = name

    def __repr__(self) -> str:
        return self.name

    def __eq__(self, other) -> bool:
        return isinstance(other, Primitive) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)


def _prim_name(prim) -> str:
    return prim if isinstance(prim, str) else prim.name


def _has_batch_dims(spec: str) -> bool:
    operands, result = spec.split("->")
    left, right = operands.split(",")
    return bool(set(left) & set(right) & set(result))


def _quoted(names: Iterable[str], what: str) -> str:
    names = list(names)
    for name in names:
        if not isinstance(name, str):
            raise type_error(f"{what}: the names are strings, got {name!r}")
    escaped = (name.replace("\\", "\\\\").replace('"', '\\"') for name in names)
    return ",".join(f'"{name}"' for name in escaped)


_everything_saveable = Policy("everything_saveable", lambda prim, attrs: True)
_nothing_saveable = Policy("nothing_saveable", lambda prim, attrs: False)
_dots_saveable = Policy("dots_saveable", lambda prim, attrs: prim in ("contract", "conv"))
_dots_with_no_batch_dims_saveable = Policy(
    "dots_with_no_batch_dims_saveable", lambda prim, attrs: prim == "contract" and not _has_batch_dims(attrs["spec"])
)


def _save_only_these_names(*names: str) -> Policy:
    """Only values that checkpoint_name gave one of these names."""
    text = f"save_only_these_names({_quoted(names, 'save_only_these_names')})"
    return Policy(text, lambda prim, attrs: prim == "checkpoint_name" and attrs["name"] in names)


def _save_any_names_but_these(*names: str) -> Policy:
    """Values that have a name, but for these names."""
    text = f"save_any_names_but_these({_quoted(names, 'save_any_names_but_these')})"
    return Policy(text, lambda prim, attrs: prim == "checkpoint_name" and attrs["name"] not in names)


def _save_anything_except_these_names(*names: str) -> Policy:
    """Every value, named or not, but those that have one of these names."""
    text = f"save_anything_except_these_names({_quoted(names, 'save_anything_except_these_names')})"
    return Policy(text, lambda prim, attrs: prim != "checkpoint_name" or attrs["name"] not in names)


def _save_from_both_policies(policy_1, policy_2):
    """Values that either policy keeps."""
    if isinstance(policy_1, Policy) and isinstance(policy_2, Policy):
        return Policy(
            f"save_from_both_policies({policy_1.text},{policy_2.text})",
            lambda prim, attrs: policy_1(prim, **attrs) or policy_2(prim, **attrs),
        )
    for policy in (policy_1, policy_2):
        if not callable(policy):
            raise type_error(f"save_from_both_policies: expected two policies, got {policy!r}")
    return lambda prim, *args, **params: policy_1(prim, *args, **params) or policy_2(prim, *args, **params)


def _offload(name: str):
    def refused(*_args, **_kwargs):
        raise not_implemented(
            f"checkpoint_policies.{name}: the CPU has one memory, so there is none to move values to; "
            f"use the policy without offloading"
        )

    refused.__name__ = name
    refused.__doc__ = "Refused: the CPU has one memory."
    return refused


checkpoint_policies = types.SimpleNamespace(
    everything_saveable=_everything_saveable,
    nothing_saveable=_nothing_saveable,
    dots_saveable=_dots_saveable,
    checkpoint_dots=_dots_saveable,
    dots_with_no_batch_dims_saveable=_dots_with_no_batch_dims_saveable,
    checkpoint_dots_with_no_batch_dims=_dots_with_no_batch_dims_saveable,
    offload_dot_with_no_batch_dims=_offload("offload_dot_with_no_batch_dims"),
    save_anything_except_these_names=_save_anything_except_these_names,
    save_any_names_but_these=_save_any_names_but_these,
    save_only_these_names=_save_only_these_names,
    save_from_both_policies=_save_from_both_policies,
    save_and_offload_only_these_names=_offload("save_and_offload_only_these_names"),
)


# The n of the text callback(n) in a program, by policy: the same whenever it is used, so that programs are recognised.
_numbers: weakref.WeakKeyDictionary[Callable, int] = weakref.WeakKeyDictionary()


class _HeldPolicy(str):
    """The text of a policy that is a Python function, which it keeps."""

    held: _weft.HostFunction


def _operand(shape: tuple, dtype: Any) -> ShapeDtype:
    operand = ShapeDtype(shape)
    operand.dtype = dtype  # "tape" is one that ShapeDtype takes from nobody else
    return operand


def _ask(policy: Callable, prim: str, operands: list, attrs: dict) -> bool:
    answer = policy(Primitive(prim), *(_operand(shape, dtype) for shape, dtype in operands), **attrs)
    if isinstance(answer, (bool, int)) or type(answer).__name__ == "bool_":
        return bool(answer)
    raise type_error(f"checkpoint: the policy {policy!r} answered {answer!r}; expected True (keep) or False")


_weft.set_policy_hook(_ask)


def policy_text(policy: Any, what: str) -> str:
    """The policy as it stands in a program. Raises TypeError for what is none."""
    if policy is None:
        return _nothing_saveable.text
    if isinstance(policy, Policy):
        return policy.text
    if isinstance(policy, str):
        return checked_text(policy, f"{what}: policy")
    if not callable(policy):
        raise type_error(f"{what}: policy is {policy!r}; expected one of weft.checkpoint_policies or a function")
    if policy in checkpoint_policies.__dict__.values():
        name = getattr(policy, "__name__", "").lstrip("_")
        if "offload" in name:
            policy()
        raise type_error(f"{what}: policy is checkpoint_policies.{name} itself; call it with the names, or policies")
    try:
        number = _numbers.get(policy, 0)
    except TypeError:  # has no hash, or no weak references: it is a new one every time
        number = 0
    held = _weft.hold_policy(policy, number)
    with contextlib.suppress(TypeError):
        _numbers[policy] = held.number
    text = _HeldPolicy(f"callback({held.number})")
    text.held = held
    return text


# --- checkpoint -------------------------------------------------------------------------------------------------------


@overload
def checkpoint(
    fun: Callable[_P, _R],
    *,
    prevent_cse: bool = True,
    policy: Any = None,
    static_argnums: int | Iterable[int] = (),
    static_argnames: str | Iterable[str] = (),
    concrete: bool = False,
) -> Callable[_P, _R]: ...
@overload
def checkpoint(
    fun: None = None,
    *,
    prevent_cse: bool = True,
    policy: Any = None,
    static_argnums: int | Iterable[int] = (),
    static_argnames: str | Iterable[str] = (),
    concrete: bool = False,
) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]: ...
def checkpoint(
    fun: Callable[..., Any] | None = None,
    *,
    prevent_cse: bool = True,
    policy: Any = None,
    static_argnums: int | Iterable[int] = (),
    static_argnames: str | Iterable[str] = (),
    concrete: bool = False,
) -> Any:
    """Marks a function whose intermediate values are computed again in the backward pass, instead of being kept.

    Values and derivatives, of any order, are those of the function itself; calls may be nested.

    Args:
        fun: the function; without it a decorator is returned.
        prevent_cse: False allows the compiler to merge what is computed again with what was computed forwards: of use
            where it cannot anyway, as in the body of a scan.
        policy: what is kept after all: one of weft.checkpoint_policies, None for nothing but the arguments, or a
            function policy(primitive, *operands, **attributes) -> bool that is asked for each equation of the
            differentiated function.
        static_argnums: positions of arguments that are passed to Python as they are.
        static_argnames: names of keyword arguments that are.
        concrete: must be False, as in JAX.

    Returns: function of the same arguments.

    Raises:
        NotImplementedError: concrete is given, or a policy that offloads: there is one memory.
        TypeError: the policy is none.

    Source: Griewank, "Achieving logarithmic growth of temporal and spatial complexity in reverse automatic
    differentiation", 1992.

    Example:
        >>> f = weft.checkpoint(lambda x: wnp.sin(wnp.sin(x)), policy=weft.checkpoint_policies.nothing_saveable)
        >>> weft.grad(f)(1.0)
        Array(0.36003944, dtype=float32, weak_type=True)
        >>> weft.print_saved_residuals(f, 1.0)
        f32[] from the argument x
        4 bytes in 1 value
    """
    if concrete:
        raise not_implemented("checkpoint: concrete=True was taken out of JAX too; use static_argnums")
    if isinstance(prevent_cse, (tuple, list, dict)):  # JAX takes one for each argument, or for parts of it
        flags = _tree.leaves(prevent_cse)
        prevent_cse = any(flags) if all(isinstance(flag, bool) for flag in flags) else prevent_cse
    if not isinstance(prevent_cse, bool):
        raise type_error(f"checkpoint: prevent_cse is {prevent_cse!r}; expected True or False")
    text = policy_text(policy, "checkpoint")
    numbers = ints(static_argnums, "checkpoint: static_argnums")
    names = names_of(static_argnames, "checkpoint: static_argnames")
    if fun is None:
        return functools.partial(
            checkpoint,
            prevent_cse=prevent_cse,
            policy=policy,
            static_argnums=numbers,
            static_argnames=names,
        )
    check_callable(fun, "checkpoint")
    inner = fun

    @wraps(inner)
    def rematerialised(*args, **kwargs):
        for n in numbers:
            if not -len(args) <= n < len(args):
                raise value_error(f"checkpoint: static_argnums has {n}, but there are {len(args)} positional arguments")
        fixed = {n % len(args): args[n % len(args)] for n in numbers}
        keywords = {k: v for k, v in kwargs.items() if k in names}
        called: Callable = inner
        places = [i for i in range(len(args)) if i not in fixed]
        if fixed or keywords:

            def called(*dynamic, **rest):
                values = iter(dynamic)
                full = [fixed[i] if i in fixed else next(values) for i in range(len(args))]
                return inner(*full, **rest, **keywords)

        def run(function: Callable, args: tuple, kwargs: dict) -> Any:
            flat = flat_function(function, args, kwargs, positions=places, original=inner)
            t = trace_flat(flat, "checkpoint", known=False)
            return _tree.unflatten(flat.out_tree, _weft.remat(t, flat.leaves, text, prevent_cse))

        dynamic = tuple(args[i] for i in places)
        named = {k: v for k, v in kwargs.items() if k not in keywords}
        if stateful.references is not None:
            return stateful.references.plainly("checkpoint", run, called, dynamic, named)
        return run(called, dynamic, named)

    return rematerialised


remat = checkpoint


# A name of arguments that a barrier leaves out: what is computed of them again may be merged with what was before.
NO_BARRIER = "no barrier"


def checkpoint_name(x: _T, name: str) -> _T:
    """x; its arrays have a name, by which the policies of checkpoint choose.

    Args:
        x: array, number or tree of them.
        name: the name.

    Returns: array or tree like x.

    Raises:
        TypeError: the name is no string.

    Example:
        >>> def f(x):
        ...     y = weft.ad_checkpoint.checkpoint_name(wnp.sin(x), "hidden")
        ...     return wnp.exp(wnp.sin(y))
        >>> keep = weft.checkpoint_policies.save_only_these_names("hidden")
        >>> [r.name for r in weft.saved_residuals(weft.checkpoint(f, policy=keep), 1.0) if r.name]
        ['hidden']
    """
    if not isinstance(name, str):
        raise type_error(f"checkpoint_name: the name is a string, got {name!r}")
    return _tree.map(lambda leaf: _weft.bind("checkpoint_name", [leaf], {"name": name})[0], x)


# --- What a gradient saves --------------------------------------------------------------------------------------------


class Residual:
    """A value that reverse mode keeps for its backward pass: what weft.saved_residuals returns.

    Args:
        facts: what the program says about it; each is an attribute of its own: type, as text (of a loop of unknown
            length the type of what every trip adds), shape, dtype; bytes (a text where the size is symbolic) and tape:
            whether they are per trip; kind: "argument", "constant" (a captured array), "literal" or "value"; primitive,
            name (from checkpoint_name), file, line, function, transforms: the operation that computes it and where that
            is; repeats: how often it is kept ("1000 steps", "10 snapshots of 1000 steps", "every trip"), "" for once:
            bytes are those of all of them.
        argument: the argument's name, "" for other values.

    Example:
        >>> [r] = weft.saved_residuals(lambda x: x * x, wnp.ones(3))
        >>> r.type, r.bytes, r.kind, r.argument
        ('f32[3]', 12, 'argument', 'x')
        >>> r
        f32[3] from the argument x
    """

    def __init__(self, facts: dict, argument: str):
        self.type: str = facts["type"]
        self.shape, self.dtype = facts["shape"], facts["dtype"]
        self.bytes: int | str = facts["bytes"]
        self.tape: bool = facts["tape"]
        self.kind: str = facts["kind"]
        self.argument = argument
        self.position: int = facts["param"] if facts["kind"] == "argument" else -1  # of the argument
        self.primitive: str = facts["primitive"]
        self.name: str = facts["name"]
        self.file: str = facts["file"]
        self.line: int = facts["line"]
        self.function: str = facts["function"]
        self.transforms: tuple[str, ...] = facts["transforms"]
        self.repeats: str = facts["repeats"]

    @property
    def source(self) -> str:
        """Where the value comes from, in words.

        Example:
            >>> weft.saved_residuals(lambda x: x * x, 2.0)[0].source
            'from the argument x'
        """
        if self.kind == "argument":
            return f"from the argument {self.argument}" if self.argument else "from an argument"
        if self.kind == "constant":
            return "from a constant"
        if self.kind == "literal":
            return "from a literal"
        text = f"named '{self.name}'" if self.name else f"output of {self.primitive}"
        if self.repeats:
            text += f" ({self.repeats})"
        if self.file:
            text += f" from {os.path.basename(self.file)}:{self.line}" + (
                f" ({self.function})" if self.function else ""
            )
        return text + (f" via {', '.join(self.transforms)}" if self.transforms else "")

    def __repr__(self) -> str:
        return f"{self.type} {self.source}"


def residuals_of(forward, first: int, names: list[str]) -> list[Residual]:
    """The results of a program from `first` on, as residuals; names: of the arguments."""
    found = []
    for facts in _weft.residuals(forward, first):
        named = facts["kind"] == "argument" and facts["param"] < len(names)
        found.append(Residual(facts, names[facts["param"]] if named else ""))
    return found


def residual_lines(residuals: list[Residual]) -> list[str]:
    """A line for each residual, those of one user line together, and the sum of their bytes."""
    groups: dict[tuple, list[Residual]] = {}
    for r in residuals:
        groups.setdefault((r.kind != "argument", r.kind != "constant", r.file, r.line), []).append(r)
    lines = [repr(r) for group in groups.values() for r in group]
    known = sum(r.bytes for r in residuals if isinstance(r.bytes, int) and not r.tape)
    text = f"{known} bytes in {len(residuals)} value{'' if len(residuals) == 1 else 's'}"
    for r in residuals:
        if r.tape:
            text += f", and {r.bytes} per trip"
        elif not isinstance(r.bytes, int):
            text += f", and {r.bytes}"
    return [*lines, text]


def saved_residuals(function: Callable[..., Any], *args: Any, **kwargs: Any) -> list[Residual]:
    """What reverse mode of function(*args, **kwargs) keeps between its passes. Nothing is computed.

    Args:
        function: the function.
        *args: its arguments: arrays, numbers, or weft.ShapeDtype where only the type matters.
        **kwargs: its keyword arguments.

    Returns: list of weft.ad_checkpoint.Residual: types, bytes, origins.

    Raises:
        weft.DerivativeError: an operation has no derivative; the message names it.

    Example:
        >>> sorted(r.primitive or r.source for r in weft.saved_residuals(lambda x: wnp.sin(x) * x, 2.0))
        ['cos', 'from the argument x', 'sin']
    """
    return kept_and_pullback(function, args, kwargs)[0]


def kept_and_pullback(function: Callable[..., Any], args: tuple, kwargs: dict) -> tuple[list[Residual], Any]:
    """What reverse mode keeps, and the program of its way back, which holds arrays of few elements itself."""
    flat = flat_function(function, args, kwargs)
    active = [_weft.is_inexact(_weft.abstract(leaf)[1]) for leaf in flat.leaves]
    t = trace_flat(flat, "vjp", known=False)
    forward, back, _ = _weft.vjp(t, active)
    return residuals_of(forward, t.num_results, flat.names), back


def print_saved_residuals(function: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
    """Prints what reverse mode of a function keeps: values of one user line together, then the bytes of all.

    Args:
        function: the function.
        *args: its arguments, as for saved_residuals.
        **kwargs: its keyword arguments.

    Returns: None.

    Raises:
        weft.DerivativeError: an operation has no derivative; the message names it.

    Example:
        >>> weft.print_saved_residuals(lambda x: (x * x).sum(), wnp.ones((2, 3)))
        f32[2,3] from the argument x
        24 bytes in 1 value
    """
    for line in residual_lines(saved_residuals(function, *args, **kwargs)):
        print(line)
