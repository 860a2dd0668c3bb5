"""Operations that a program defines: weft.Primitive."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from . import _weft
from ._core import tree as _tree
from ._core.c_functions import c_function, is_c_function
from ._core.errors import type_error, value_error
from ._core.ir_view import USER_PRIMITIVES
from ._core.shapes import ShapeDtype
from ._core.tracing import check_callable, flat_function, trace_flat
from .arguments import is_integer
from .callbacks import pure_callback
from .custom import _HostRule, _JvpRule
from .custom_batching import _rule_of
from .symbolic_zeros import SymbolicZero

__all__ = ["Linear", "Primitive"]

_F = TypeVar("_F", bound=Callable[..., Any])


class Linear:
    """Stands for a linear operand in the transpose rule of a weft.Primitive, which gives the cotangent of it.

    Args:
        shape: of the operand.
        dtype: of the operand.

    Example:
        >>> weft.Linear((3,), "float32")
        Linear((3,), float32)
    """

    __slots__ = ("aval",)

    def __init__(self, shape: Sequence, dtype: Any):
        self.aval = ShapeDtype(shape, dtype)

    @property
    def shape(self) -> tuple:
        """The dimensions.

        Example:
            >>> weft.Linear((3,), "float32").shape
            (3,)
        """
        return self.aval.shape

    @property
    def dtype(self) -> Any:
        """The dtype.

        Example:
            >>> weft.Linear((3,), "float32").dtype
            dtype('float32')
        """
        return self.aval.dtype

    def __repr__(self) -> str:
        return f"Linear({self.shape}, {self.dtype})"


class Primitive:
    """An operation with rules of its own. Called with operands, and with parameters by keyword, it is one operation of
    the program, under its name, until it is compiled: jit, loops, branches, meshes, grad, vmap and all that is made of
    them meet it and use its rules.

    What it computes is said by `lower`, in operations on arrays or by a C function, or by `eval`, a function of NumPy
    arrays that the program calls. Rules that are not given follow from a lowering in Python; of `eval` and C functions
    no derivative is known, so to need one is an error that names the rule and the user's line. Without a batch rule
    vmap maps a lowering in Python, and calls the others for each lane. On a mesh a lowering in Python is cut like any
    program; operands of the others are put together, and every device calls them with whole arrays.

    Rules have JAX's arguments. Parameters are passed to all of them by keyword, and must be hashable.

    Args:
        name: what programs and messages call it. Several may have one name, as when a cell of a notebook runs again:
            each has its own rules, and patterns and interpreters, which go by names, meet all of them.
        infer: (*types, **params) -> the type of the result (weft.ShapeDtype), or a list of them where there are several
            results. Needed unless lower is a Python function.
        eval: (*arrays, **params) -> arrays, of NumPy: what the host computes.
        jvp: (primals, tangents, **params) -> (result, tangent). A tangent that is zero is an array of zeros, with
            symbolic_zeros a weft.custom_derivatives.SymbolicZero; the rule may give None for one.
        transpose: (cotangent, *operands, **params) -> a cotangent for each operand, None for one that is not linear.
            Linear operands are weft.Linear. Of several results it gets a list of cotangents. A primitive with a
            transpose rule and no jvp is linear in all operands.
        batch: (operands, axes, **params) -> (result, axis): axes are 0, where an operand is mapped, or None.
        lower: (*operands, **params) -> result, of traced arrays; or a C function: (library, symbol), an address, or a
            function of ctypes (docs/extend_from_python.md has its arguments).
        symbolic_zeros: see jvp.

    Raises:
        TypeError: a rule is no function, nothing says what it computes; when called: the types of the rules differ.
        ValueError: the C function is not there.
        weft.DerivativeError: when differentiated: a rule is missing.

    Example:
        >>> cube = weft.Primitive(
        ...     "cube",
        ...     infer=lambda x: weft.ShapeDtype(x.shape, x.dtype),
        ...     eval=lambda x: x**3,
        ...     jvp=lambda primals, tangents: (cube(*primals), 3 * primals[0] ** 2 * tangents[0]),
        ... )
        >>> weft.jit(weft.grad(cube))(2.0)
        Array(12., dtype=float32, weak_type=True)
    """

    def __init__(
        self,
        name: str,
        infer: Callable[..., Any] | None = None,
        eval: Callable[..., Any] | None = None,
        jvp: Callable[..., Any] | None = None,
        transpose: Callable[..., Any] | None = None,
        batch: Callable[..., Any] | None = None,
        lower: Any = None,
        *,
        symbolic_zeros: bool = False,
    ):
        if not isinstance(name, str) or not name.isidentifier():
            raise type_error(f"Primitive: the name must be a word, got {name!r}")
        if _weft.has_primitive(name):
            raise value_error(f"Primitive: '{name}' is an operation of Weft's; choose another name")
        self.name = self.__name__ = name
        self._rules: dict[str, Callable[..., Any]] = {}
        self._c: Callable[..., Any] | None = None
        self._lower: Callable[..., Any] | None = None
        self._symbolic = bool(symbolic_zeros)
        self._numbers: dict[Any, list[int]] = {}
        USER_PRIMITIVES.add(name)
        for kind, rule in (("infer", infer), ("eval", eval), ("jvp", jvp), ("transpose", transpose), ("batch", batch)):
            if rule is not None:
                self._set(kind, rule)
        if lower is not None:
            self.def_lower(lower)

    def _set(self, kind: str, rule: _F) -> _F:
        if not callable(rule):
            raise type_error(f"primitive '{self.name}': {kind} must be a function, got {rule!r}")
        self._rules[kind] = rule
        self._numbers.clear()
        return rule

    def def_infer(self, rule: _F) -> _F:
        """Gives the infer rule; a decorator.

        Args:
            rule: see weft.Primitive.

        Returns: the rule.

        Example:
            >>> p = weft.Primitive("p", eval=lambda x: x)
            >>> _ = p.def_infer(lambda x: x)
            >>> p(1.0)
            Array(1., dtype=float32)
        """
        return self._set("infer", rule)

    def def_eval(self, rule: _F) -> _F:
        """Gives what the host computes; a decorator.

        Args:
            rule: see weft.Primitive.

        Returns: the rule.

        Example:
            >>> p = weft.Primitive("p", infer=lambda x: x)
            >>> _ = p.def_eval(lambda x: x + 1)
            >>> p(1.0)
            Array(2., dtype=float32)
        """
        return self._set("eval", rule)

    def def_jvp(self, rule: _F) -> _F:
        """Gives the jvp rule; a decorator.

        Args:
            rule: see weft.Primitive.

        Returns: the rule.

        Example:
            >>> p = weft.Primitive("p", lower=lambda x: x)
            >>> _ = p.def_jvp(lambda primals, tangents: (p(*primals), 7 * tangents[0]))
            >>> weft.grad(p)(1.0)
            Array(7., dtype=float32, weak_type=True)
        """
        return self._set("jvp", rule)

    def def_transpose(self, rule: _F) -> _F:
        """Gives the transpose rule; a decorator.

        Args:
            rule: see weft.Primitive.

        Returns: the rule.

        Example:
            >>> p = weft.Primitive("p", infer=lambda x: x, eval=lambda x: 2 * x)
            >>> _ = p.def_transpose(lambda ct, x: (p(ct),))
            >>> weft.grad(p)(1.0)
            Array(2., dtype=float32, weak_type=True)
        """
        return self._set("transpose", rule)

    def def_batch(self, rule: _F) -> _F:
        """Gives the batch rule; a decorator.

        Args:
            rule: see weft.Primitive.

        Returns: the rule.

        Example:
            >>> p = weft.Primitive("p", lower=lambda x: x.sum())
            >>> _ = p.def_batch(lambda operands, axes: (operands[0].sum(1), 0))
            >>> weft.vmap(p)(wnp.ones((2, 3)))
            Array([3., 3.], dtype=float32)
        """
        return self._set("batch", rule)

    def def_lower(self, rule: Any) -> Any:
        """Gives the lowering; a decorator.

        Args:
            rule: see weft.Primitive.

        Returns: the rule.

        Example:
            >>> p = weft.Primitive("p")
            >>> _ = p.def_lower(lambda x: x * 2)
            >>> p(1.0)
            Array(2., dtype=float32, weak_type=True)
        """
        self._numbers.clear()
        if is_c_function(rule):
            self._c, self._lower = c_function(rule, self.name), None
        else:
            check_callable(rule, f"primitive '{self.name}': lower")
            self._c, self._lower = None, rule
        return rule

    def _ask(self, kind: str, rule: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """What a rule of the user's gives. What it raises says which rule it was."""
        try:
            return rule(*args, **kwargs)
        except Exception as error:
            code = getattr(rule, "__code__", None)
            place = f" ({code.co_filename}:{code.co_firstlineno})" if code else ""
            note = f"raised by the {kind} rule of the primitive '{self.name}'{place}"
            if note not in getattr(error, "__notes__", ()):
                error.add_note(note)
            raise

    def _asking(self, kind: str, params: dict[str, Any]) -> Callable[..., Any]:
        return functools.partial(self._ask, kind, self._rules[kind], **params)

    def __call__(self, *operands: Any, **params: Any) -> Any:
        """The operation on operands; p.bind(...) is the same.

        Args:
            *operands: arrays and numbers.
            **params: hashable values, which the rules get by keyword.

        Returns: array, or a list of them where the rules give one.

        Raises:
            TypeError: an operand is no array, a parameter is not hashable, or types of the rules differ.

        Example:
            >>> scaled = weft.Primitive("scaled", lower=lambda x, by: x * by)
            >>> scaled.bind(2.0, by=3)
            Array(6., dtype=float32, weak_type=True)
        """
        try:
            hash(tuple(params.values()))
        except TypeError as error:
            raise type_error(f"primitive '{self.name}': parameters must be hashable: {error}") from None
        for i, operand in enumerate(operands):
            if not _weft.is_operand(operand):
                kind = type(operand).__name__
                raise type_error(f"primitive '{self.name}': operand {i} must be one array, got {kind}")
        several: list[bool] = []
        flat = flat_function(self._body(params, several), operands, {}, original=self._shown())
        flat.name = self.name
        traced = trace_flat(flat, f"primitive '{self.name}'", known=False)
        if self._rules.get("infer") and self._lower is not None:
            self._check_types(flat, traced, params)
        if not _weft.is_tracing():
            out = _weft.apply(traced.fn, flat.leaves + traced.captures, traced.weak_results)
        else:
            out = self._emit(flat, traced, params)
        return list(out) if several[0] else out[0]

    bind = __call__

    def __repr__(self) -> str:
        return f"<weft.Primitive {self.name}>"

    def _batched(self, size: Any, operands: Sequence, axes: Sequence, params: dict[str, Any]) -> Any:
        """The result of the batch rule; `size`: of the axis that is added."""
        del size
        return self._asking("batch", params)(operands, axes)

    def _shown(self) -> Callable[..., Any]:
        """The function whose parameters name the operands."""
        shown: Any = self._lower or self._rules.get("infer") or self._rules.get("eval")
        if shown is None and self._c is not None:
            raise type_error(self._without_infer())
        if shown is None:
            raise type_error(f"primitive '{self.name}': nothing says what it computes; give it lower=... or eval=...")
        return shown

    def _body(self, params: dict[str, Any], several: list[bool]) -> Callable[..., Any]:
        """What it computes, of traced arrays; a list, and whether that was one in `several`."""

        def body(*operands: Any) -> list:
            if self._lower is not None:
                out = self._ask("lower", self._lower, *operands, **params)
            else:
                types = self._types(operands, params)
                shapes = list(types) if isinstance(types, (tuple, list)) else [types]
                results = pure_callback(functools.partial(self._on_host, shapes, params), shapes, *operands)
                out = results if isinstance(types, (tuple, list)) else results[0]
            several[:] = [isinstance(out, (tuple, list))]
            results = list(out) if several[0] else [out]
            for result in results:
                if not _weft.is_operand(result):
                    kind = type(result).__name__
                    raise type_error(
                        f"primitive '{self.name}': lower must return an array, or a list of them, got {kind}"
                    )
            return results

        return body

    def _on_host(self, types: list, params: dict[str, Any], *arrays: Any) -> list:
        inputs = [np.asarray(a) for a in arrays]
        if self._c is not None:
            return self._c(inputs, types)
        out = self._asking("eval", params)(*inputs)
        results = list(out) if isinstance(out, (tuple, list)) else [out]
        if len(results) != len(types):
            raise type_error(f"primitive '{self.name}': infer says {len(types)} results, and eval gives {len(results)}")
        return [self._fitting(i, x, t) for i, (x, t) in enumerate(zip(results, types))]

    def _fitting(self, i: int, given: Any, said: ShapeDtype) -> Any:
        """A result of eval, of the type that infer says."""
        if isinstance(given, _weft.Array):
            return given
        found = np.asarray(given)
        if found.dtype == object or found.dtype.kind in "SU":
            raise type_error(f"primitive '{self.name}': eval must return arrays of numbers, result {i} is {given!r}")
        numbers = {found.dtype.kind, getattr(said.dtype, "kind", "")} <= set("biufc")
        if tuple(found.shape) != tuple(said.shape) or (
            numbers and not np.can_cast(found.dtype, said.dtype, "same_kind")
        ):
            raise type_error(
                f"primitive '{self.name}': infer says that result {i} is {_named(said.dtype, said.shape)}, and eval "
                f"gives {found.dtype}[{','.join(map(str, found.shape))}]"
            )
        return found

    def _types(self, operands: Sequence, params: dict[str, Any]) -> Any:
        if self._c is None and "eval" not in self._rules:
            raise type_error(f"primitive '{self.name}': nothing says what it computes; give it lower=... or eval=...")
        if "infer" not in self._rules:
            raise type_error(self._without_infer())
        if self._c is not None and params:
            raise type_error(f"primitive '{self.name}': a C function takes no parameters, got {', '.join(params)}")
        out = self._asking("infer", params)(*map(_spec, operands))
        for part in out if isinstance(out, (tuple, list)) else [out]:
            if not (hasattr(part, "shape") and hasattr(part, "dtype")):
                raise type_error(f"primitive '{self.name}': infer must return weft.ShapeDtype, got {part!r}")
        if isinstance(out, (tuple, list)):
            return [ShapeDtype(part.shape, part.dtype) for part in out]
        return ShapeDtype(out.shape, out.dtype)

    def _without_infer(self) -> str:
        return (
            f"primitive '{self.name}' has no infer rule, which says the types of what its "
            f"{'C function' if self._c else 'eval'} gives: weft.Primitive('{self.name}', ..., infer=...)"
        )

    def _check_types(self, flat: Any, traced: Any, params: dict[str, Any]) -> None:
        said = self._asking("infer", params)(*map(_spec, flat.leaves))
        said = list(said) if isinstance(said, (tuple, list)) else [said]
        made = _weft.result_specs(traced)
        for i, (spec, (shape, dtype, _)) in enumerate(zip(said, made)):
            if (tuple(spec.shape), _weft.dtype(spec.dtype)) != (tuple(shape), dtype):
                raise type_error(
                    f"primitive '{self.name}': infer says that result {i} is {_named(spec.dtype, spec.shape)}, and "
                    f"lower gives {_named(dtype, shape)}"
                )
        if len(said) != len(made):
            raise type_error(f"primitive '{self.name}': infer says {len(said)} results, and lower gives {len(made)}")

    def _emit(self, flat: Any, traced: Any, params: dict[str, Any]) -> list:
        jvp = transpose = batch = None
        results = _weft.result_specs(traced)
        if "jvp" in self._rules:
            jvp = _Forward("primitive", self._asking("jvp", params), (), flat, traced, self._symbolic)
        if "transpose" in self._rules:
            transpose = _Transpose(self, params, flat, traced)
        if "batch" in self._rules:
            batch = _rule_of(_Batch(self, params), flat, results, "primitive")
        specs = tuple(_weft.abstract(leaf)[2:] for leaf in flat.leaves)
        # 1, 1.0 and True are equal, and rules may make different things of them.
        given = tuple((k, type(v), repr(v), v) for k, v in sorted(params.items()))
        key = specs, given, _weft.context_key()
        if len(self._numbers) > 1000:
            self._numbers.clear()
        numbers = self._numbers.get(key) or self._numbers.setdefault(key, [_weft.new_rule_number() for _ in range(3)])
        text = ", ".join(f"{k}={v!r}" for k, v in sorted(params.items()))
        names = [name if name.isidentifier() else "" for name in flat.names]
        opaque = self._lower is None
        return _weft.primitive_call(traced, flat.leaves, names, self.name, text, opaque, jvp, transpose, batch, numbers)


class _Forward(_JvpRule):
    """The user's rule returns one result, or a list of them; the primitive's own are always a list."""

    def _run(self, rule: Callable, args: tuple) -> Any:
        out = super()._run(rule, args)
        if not isinstance(out, (tuple, list)) or len(out) != 2:
            return out
        value, tangent = (list(x) if isinstance(x, (tuple, list)) else [x] for x in out)
        return value, [SymbolicZero(None) if t is None else t for t in tangent]


class _Transpose(_HostRule):
    """(operands, None for those that are linear; cotangents) -> the cotangents of the linear operands."""

    def __init__(self, primitive: Primitive, params: dict[str, Any], flat: Any, traced: Any):
        super().__init__("primitive", primitive._asking("transpose", params), (), flat, traced, False)
        self._specs = [_weft.abstract(leaf)[:2] for leaf in flat.leaves]

    def __call__(self, operands: list, cotangents: list, where: str) -> list:
        role = "transpose rule"
        given = [Linear(*s) if x is None else x for x, s in zip(operands, self._specs)]
        cts = cotangents if len(cotangents) != 1 else cotangents[0]
        out = self._run(self._rule, (cts, *given))
        if out is None:
            raise type_error(self._said(role, "must return cotangents, one for each operand, got None", where))
        out = list(out) if isinstance(out, (tuple, list)) else [out]
        if len(out) != len(operands):
            problem = f"must return {len(operands)} cotangents, one for each operand, got {len(out)}"
            raise type_error(self._said(role, problem, where))
        wanted = [(ct, (*spec, False)) for ct, x, spec in zip(out, operands, self._specs) if x is None]
        known = [None if isinstance(ct, SymbolicZero) else ct for ct, _ in wanted]
        specs = [spec for _, spec in wanted]
        tree = _tree.structure(tuple(range(len(wanted))))
        fitting = self._fitting(known, specs, tree, role, "cotangent ", where)
        return [_weft.full(s[0], 0, s[1]) if ct is None else ct for ct, s in zip(fitting, specs)]


class _Batch:
    """A batch rule with JAX's arguments as custom_vmap calls one."""

    def __init__(self, primitive: Primitive, params: dict[str, Any]):
        self._primitive, self._params = primitive, params
        self.__name__ = primitive.name

    def __call__(self, size: Any, in_batched: list, *operands: Any) -> tuple:
        axes = tuple(0 if on else None for on in in_batched)
        out = self._primitive._batched(size, operands, axes, self._params)
        if not isinstance(out, (tuple, list)) or len(out) != 2:
            raise type_error(f"primitive '{self._primitive.name}': the batch rule must return (result, axis)")
        results, places = out
        if not isinstance(results, (tuple, list)):
            results, places = [results], [places]
        elif not isinstance(places, (tuple, list)):
            places = [places] * len(results)
        if len(places) != len(results):
            raise type_error(
                f"primitive '{self._primitive.name}': the batch rule gives {len(results)} results and "
                f"{len(places)} axes"
            )
        moved = [x if axis is None else self._to_front(x, axis) for x, axis in zip(results, places)]
        return moved, [axis is not None for axis in places]

    def _to_front(self, x: Any, axis: Any) -> Any:
        if not _weft.is_operand(x):
            kind = type(x).__name__
            raise type_error(f"primitive '{self._primitive.name}': the batch rule must return arrays, got {kind}")
        rank = len(_weft.abstract(x)[0])
        if not is_integer(axis) or not -rank <= axis < rank:
            raise type_error(
                f"primitive '{self._primitive.name}': the batch rule says that axis {axis!r} of an array of {rank} "
                "dimensions is mapped; expected one of them, or None"
            )
        return x if axis == 0 else _weft.transpose(x, [axis % rank, *(i for i in range(rank) if i != axis % rank)])


def _spec(operand: Any) -> ShapeDtype:
    shape, dtype, weak, _ = _weft.abstract(operand)
    return ShapeDtype(shape, dtype, weak_type=weak)


def _named(dtype: Any, shape: Sequence) -> str:
    return f"{_weft.dtype(dtype)}[{','.join(map(str, shape))}]"
