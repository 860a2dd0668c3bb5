"""jax.extend.core.Primitive: operations of a library's own, with rules in JAX's tables. Each is a weft.Primitive.

JAX keeps the rules beside the primitive: its methods say what it computes and of which types, ad.py, batching.py and
mlir.py have the tables of the others. Here a rule is an attribute of the primitive, which those tables set.

What is called when: outside of transforms `impl` on arrays; inside of them the lowering, traced. A primitive without a
lowering is computed by its impl there, too, on the host, when the program runs."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import weft

from .. import _weft
from .._core.errors import not_implemented, type_error, value_error
from .._core.shapes import ShapedArray
from ..custom_primitive import Linear
from . import effects
from .extended_dtypes import (
    ExtendedArray,
    as_extended,
    as_stored,
    dtype_of,
    logical_aval,
    made,
    own_dtypes_exist,
    physical_aval,
)
from .rules import SymbolicZero, UndefinedPrimal, Zero


class AxisData(NamedTuple):
    """The axis that vmap adds, as batching rules get it."""

    name: Any
    size: Any
    spmd_name: Any = None
    explicit_mesh_axis: Any = None


class Primitive:
    """An operation.

    Attributes:
        name: what programs and messages call it.
        multiple_results: whether bind gives a list.
    """

    is_weft = False  # whether it is one of Weft's own operations
    multiple_results = False
    call_primitive = map_primitive = ref_primitive = False

    def __init__(self, name: str):
        self.name = name
        self._rules: dict[str, Callable[..., Any]] = {}
        self._operation: _Operation | None = None
        self._effectful: Callable[..., Any] | None = None

    def __repr__(self) -> str:
        return self.name

    def rule(self, kind: str) -> Callable[..., Any] | None:
        """The rule of a kind, if there is one: impl, abstract_eval, lower, jvp, transpose, batch."""
        return self._rules.get(kind)

    def set_rule(self, kind: str, rule: Callable[..., Any]) -> None:
        """Gives or replaces a rule."""
        self._rules[kind] = rule
        self._operation = None

    def remove_rule(self, kind: str) -> None:
        """Takes a rule away."""
        del self._rules[kind]
        self._operation = None

    def def_impl(self, impl: Callable[..., Any]) -> Callable[..., Any]:
        """(*arrays, **params) -> what it computes; a decorator."""
        self.set_rule("impl", impl)
        self.__dict__["impl"] = impl
        return impl

    def def_abstract_eval(self, abstract_eval: Callable[..., Any]) -> Callable[..., Any]:
        """(*avals, **params) -> the type of the result, or a list of them; a decorator."""
        self.set_rule("abstract_eval", abstract_eval)
        self.__dict__["abstract_eval"] = lambda *avals, **params: (abstract_eval(*avals, **params), frozenset())
        return abstract_eval

    def def_effectful_abstract_eval(self, abstract_eval: Callable[..., Any]) -> Callable[..., Any]:
        """The same, which gives (types, effects). What the lowering does besides computing happens in the order of the
        program, whatever the effects say."""
        self.set_rule("abstract_eval", lambda *avals, **params: abstract_eval(*avals, **params)[0])
        self.__dict__["abstract_eval"] = self._effectful = abstract_eval
        return abstract_eval

    def effects_of(self, operands: Sequence[Any], params: dict[str, Any]) -> Any:
        """What it does besides computing: values, or variables of programs, as operands."""
        if self._effectful is None:
            return effects.no_effects
        avals = [x.aval if hasattr(x, "aval") else ShapedArray.like(x) for x in operands]
        return self._effectful(*avals, **params)[1]

    def impl(self, /, *args: Any, **params: Any) -> Any:
        """What def_impl gave."""
        raise not_implemented(f"Evaluation rule for '{self.name}' not implemented: give it one by def_impl")

    def abstract_eval(self, /, *avals: Any, **params: Any) -> Any:
        """(types, effects), by what def_abstract_eval gave."""
        raise not_implemented(f"Abstract evaluation for '{self.name}' not implemented: give it by def_abstract_eval")

    def bind(self, /, *args: Any, **params: Any) -> Any:
        """The operation on arrays."""
        args = tuple(map(as_extended, args))
        for i, arg in enumerate(args):
            if not _weft.is_operand(arg) and not isinstance(arg, ExtendedArray):
                raise type_error(
                    f"Error interpreting argument to {self.name} as a JAX value. The problematic value is of type "
                    f"{type(arg)} and was passed to {self.name} at position {i}."
                )
        if self._effectful is not None:
            effects.check(self.effects_of(args, params))
        if not _weft.is_recorded(*args) and ("impl" in self._rules or "lower" not in self._rules):
            return self.impl(*args, **params)
        if self._operation is None:
            self._operation = _Operation(self)
        given = self._operation.params_of(params, tuple(map(dtype_of, args)))
        stored = list(map(as_stored, args))
        kept = self._effectful is not None and _weft.is_tracing() and bool(self.effects_of(args, params))
        if kept:  # one array for both calls
            stored = list(map(weft.numpy.asarray, stored))
        out = self._operation(*stored, given=given)
        if kept and self.multiple_results and not out:
            keep(given, stored)
        return self._operation.of_own_dtypes(out, args, given)

    def get_bind_params(self, params: dict[str, Any]) -> dict[str, Any]:
        """The parameters that bind takes."""
        return dict(params)


class Params:
    """The parameters of calls. They need no hash; equal ones that have one are one object."""

    def __init__(self, primitive: Primitive, values: dict[str, Any], number: int, dtypes: tuple[Any, ...]):
        self.primitive, self.values, self._number = primitive, values, number
        self.dtypes = dtypes  # of a library's own, that operands have; None: they have another

    def avals(self, types: Sequence[Any]) -> list[Any]:
        """The types of the operands, by those of what they are stored as."""
        return [logical_aval(t, dtype) for t, dtype in zip(types, self.dtypes)]

    def arrays(self, operands: Sequence[Any]) -> list[Any]:
        """The operands, by what they are stored as."""
        return [x if dtype is None else ExtendedArray(dtype, x) for x, dtype in zip(operands, self.dtypes)]

    def __repr__(self) -> str:
        return f"#{self._number}"


_numbers = itertools.count()
_LIMIT = 1000  # calls with other parameters that a primitive remembers
# The number in a program's text -> the parameters, for the view of programs.
_shown: dict[str, Params] = {}


def call_of(params: str) -> Params | None:
    """Primitive and parameters of an operation in a program, by the text it has there."""
    return _shown.get(params.removeprefix("given="))


def keep(given: Params, operands: Sequence[Any]) -> None:
    """Keeps a call that has effects and no results in the program that is traced, though it may compute nothing there:
    as a check that holds, whose message names it."""
    message = f"given={given!r}{'{}' * len(operands)}"
    _weft.bind("assert", [_weft.full((), True, "bool"), *operands], {"message": message})


def kept_call(attrs: dict[str, Any]) -> Params | None:
    """The call that a check in a program keeps; None: it is a check."""
    return call_of(str(attrs.get("message", "")).partition("{")[0])


class _Operation(weft.Primitive):
    """The weft.Primitive that stands for one of JAX's. Its rules take the parameters of JAX's as one, `given`."""

    def __init__(self, of: Primitive):
        super().__init__(_free_name(of.name))
        self._of, self._known = of, dict[Any, Params]()
        lower, impl = of.rule("lower"), of.rule("impl")
        if of.rule("abstract_eval") is None and lower is None:
            of.abstract_eval()  # the error that says what to give
        if lower is not None:
            self.def_lower(self._lowered)
        elif impl is not None:
            self.def_eval(self._computed)
        else:
            self.def_eval(self._not_there)  # a program may have it, which is looked at, or transformed further
        if of.rule("abstract_eval") is not None:
            self.def_infer(self._inferred)
        if of.rule("jvp") is not None or lower is None:
            self._symbolic = True
            self.def_jvp(self._jvp_rule)
        if of.rule("transpose") is not None or lower is None:
            self.def_transpose(self._transposed)
        if of.rule("batch") is not None:
            self.def_batch(lambda *_: None)  # see _batched

    def params_of(self, values: dict[str, Any], dtypes: tuple[Any, ...]) -> Params:
        """The parameters, and the dtypes of a library's own, as one; the same object for equal ones."""
        key: Any
        try:
            # 1, 1.0 and True are equal, and rules may make different things of them.
            key = (tuple((name, type(value), value) for name, value in sorted(values.items())), dtypes)
            found = self._known.get(key)
        except TypeError:
            key, found = object(), None
        if found is None:
            if len(self._known) >= _LIMIT:
                for old in self._known.values():
                    _shown.pop(repr(old), None)
                self._known.clear()
            found = self._known[key] = Params(self._of, values, next(_numbers), dtypes)
            _shown[repr(found)] = found
        return found

    def _types_of(self, avals: Sequence[Any], given: Params) -> list[Any]:
        abstract_eval = self._of.rule("abstract_eval")
        assert abstract_eval is not None
        found = abstract_eval(*avals, **given.values)
        if isinstance(found, (tuple, list)) != self._of.multiple_results:
            name = self._of.name
            raise value_error(
                f"{name}.abstract_eval() method should return a tuple or a list iff {name}.multiple_results, which is "
                f"{self._of.multiple_results}; got {found!r}"
            )
        return list(found) if self._of.multiple_results else [found]

    def _inferred(self, *types: Any, given: Params) -> Any:
        found = self._types_of(given.avals([ShapedArray(t.shape, t.dtype, t.weak_type) for t in types]), given)
        found = [physical_aval(t) if dtype_of(t) is not None else t for t in found]
        return found if self._of.multiple_results else found[0]

    def _lowered(self, *operands: Any, given: Params) -> Any:
        lower = self._of.rule("lower")
        assert lower is not None
        avals = given.avals([weft.typeof(x) for x in operands])
        types = self._types_of(avals, given) if self._of.rule("abstract_eval") is not None else None
        results = [as_stored(r) for r in lower(self._of, avals, types, given.arrays(operands), given.values)]
        if types is not None:
            # Types that are not weak stay so whatever the lowering makes; types of objects have none of that.
            results = [
                weft.lax.convert_element_type(r, t.dtype)
                if dtype_of(t) is None and not getattr(t, "weak_type", True) and weft.typeof(r).weak_type
                else r
                for r, t in zip(results, types)
            ]
        return results if self._of.multiple_results else results[0]

    def of_own_dtypes(self, results: Any, operands: Sequence[Any], given: Params) -> Any:
        """The results, of the dtypes of a library's own that the rule for types says."""
        if self._of.rule("abstract_eval") is None or not own_dtypes_exist():
            return results
        types = self._types_of([ShapedArray.like(x) if dtype_of(x) is None else x.aval for x in operands], given)
        each = results if self._of.multiple_results else [results]
        own = [r if dtype_of(t) is None else made(t.dtype, r) for r, t in zip(each, types)]
        return own if self._of.multiple_results else own[0]

    def _not_there(self, *_: Any, **__: Any) -> Any:
        name = self._of.name
        raise not_implemented(
            f"MLIR translation rule for primitive '{name}' not found: give it one by "
            f"mlir.register_lowering({name}_p, mlir.lower_fun(f, multiple_results=...)), or an impl by def_impl"
        )

    def _computed(self, *arrays: Any, given: Params) -> Any:
        return self._of.impl(*map(weft.numpy.asarray, arrays), **given.values)

    def _jvp_rule(self, primals: Sequence[Any], tangents: Sequence[Any], given: Params) -> tuple[Any, Any]:
        rule = self._of.rule("jvp")
        if rule is None:
            raise not_implemented(
                f"Differentiation rule for '{self._of.name}' not implemented: give it one by "
                f"ad.primitive_jvps[{self._of.name}_p] = rule"
            )
        zero = lambda x: Zero(weft.typeof(x).to_tangent_aval())
        moved = [zero(x) if isinstance(t, SymbolicZero) else t for x, t in zip(primals, tangents)]
        values, slopes = rule(tuple(primals), tuple(moved), **given.values)
        still = lambda t: None if t is None or _is_zero(t) else t
        if not self._of.multiple_results:
            return values, still(slopes)
        return list(values), [still(t) for t in slopes]

    def _transposed(self, cotangent: Any, *operands: Any, given: Params) -> list[Any]:
        rule = self._of.rule("transpose")
        if rule is None:
            raise not_implemented(
                f"Transpose rule (for reverse-mode differentiation) for '{self._of.name}' not implemented: give it one "
                f"by ad.primitive_transposes[{self._of.name}_p] = rule"
            )
        linear = [UndefinedPrimal(ShapedArray.like(x.aval)) if isinstance(x, Linear) else x for x in operands]
        cts = list(cotangent) if isinstance(cotangent, (tuple, list)) else [cotangent]
        cts = [ct if _weft.is_inexact(weft.typeof(ct).dtype) else Zero(weft.typeof(ct).to_tangent_aval()) for ct in cts]
        found = rule(cts if self._of.multiple_results else cts[0], *linear, **given.values)
        if _is_zero(found):
            found = [None] * len(operands)
        return [None if ct is None or _is_zero(ct) else ct for ct in found]

    def _batched(self, size: Any, operands: Sequence[Any], axes: Sequence[Any], params: dict[str, Any]) -> Any:
        """The batch rule, with the size of the new axis."""
        rule = self._of.rule("batch")
        assert rule is not None
        given = params["given"]
        out, places = rule(AxisData(None, size), tuple(given.arrays(operands)), tuple(axes), **given.values)
        return ([as_stored(x) for x in out] if self._of.multiple_results else as_stored(out)), places


def _is_zero(x: Any) -> bool:
    return isinstance(x, Zero) or x is Zero


def _free_name(name: str) -> str:
    """A name that programs can show, and that is none of Weft's own operations."""
    word = "".join(c if c.isalnum() or c == "_" else "_" for c in name)
    word = word if word.isidentifier() else f"_{word}"
    while _weft.has_primitive(word):
        word += "_"
    return word
