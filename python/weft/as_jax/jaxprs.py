"""Programs as JAX shows them: a view of Weft's IR with the attributes that libraries read.

    closed = jax.make_jaxpr(f)(x)
    for eqn in closed.jaxpr.eqns:
        eqn.primitive, eqn.invars, eqn.outvars, eqn.params
    jax.core.eval_jaxpr(closed.jaxpr, closed.consts, x)

Equations are Weft's: their parameters have Weft's names (docs/operations.md), and jax_params says which of JAX's they
can be asked for. A primitive is called what JAX calls it where it has one of the same meaning (`exp`, `dot_general`,
`select_n`).
"""

from __future__ import annotations

import functools
import itertools
import operator
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

import weft

from .. import _weft
from .._core.ir_view import is_scope, name_stack
from .._core.shapes import ShapedArray
from .._core.stateful import is_reference
from .._sharding.typed import by_the_compiler, mesh_of
from ..custom import named as named_rules
from ..program import IR
from .constraints import joined
from .conversions import ConvertParams, chooses_by_bool
from .effects import Effect, Effects, JaxprInputEffect, no_effects  # noqa: F401
from .equation_params import Params, ProductParams
from .hidden_scopes import in_hi_primitive, name_of_callback
from .implicit_broadcasts import without_broadcasts, without_what_changes_nothing
from .jax_params import readable
from .jaxpr_text import letters, text_of, text_of_equation
from .mixed_products import as_one
from .one_equation import SAYS_HOW, Computed, as_one_equation
from .precision import of_steps, without_precisions
from .source_info_util import SourceInfo
from .user_primitives import Primitive, call_of, kept_call
from .weft_primitives import COLLECTIVES, COMPUTES, JAX_NAMES, OF_PARTS, attribute_kinds, elementwise, primitive

_CHANGED = {"through", "num_consts"}
_WIDE = {"c128": 16, "f64": 8, "i64": 8, "u64": 8}  # bytes


class Var:
    """A variable; each is one object.

    Attributes:
        wide: where x64 is off, the dtype of 64 bits that the program has for it, as f64, though `aval` shows 32: some
            rules compute so what would cancel. Who takes the program apart may have made them 32. Else empty.
    """

    def __init__(self, aval: Any, name: str = "", wide: str = ""):
        self.aval, self._name, self.wide = aval, name, wide

    def __repr__(self) -> str:
        return self._name or f"v{id(self)}"


class DropVar(Var):
    """A result that nothing reads."""


class Literal:
    """A number in an equation.

    Attributes:
        exact: of one that is wide (see Var) an array of the dtype that the program has; None: of others.
    """

    def __init__(self, val: Any, aval: ShapedArray, exact: Any = None):
        self.val, self.aval, self.exact = val, aval, exact

    def __hash__(self) -> int:
        return id(self)

    def __repr__(self) -> str:
        value = "[...]" if getattr(self.val, "ndim", 0) else self.val
        return f"{value}:{self.aval.str_short(short_dtypes=True)}"


Atom = Var | Literal


class JaxprTypeError(TypeError):
    """A program is not well-formed."""


class JaxprEqn:
    """An equation: outvars = primitive(invars), with params.

    Attributes:
        steps: of each trace that it has been through, of the innermost first, the scopes and transforms around it.
    """

    steps: Sequence[Sequence[str]] = ()

    def __init__(
        self,
        invars: list[Atom],
        outvars: list[Var],
        primitive: Primitive,
        params: dict,
        source_info: Any,
        program: Any = None,
        effects: Any = None,
    ):
        self._effects = effects
        self.invars, self.outvars, self.primitive = invars, outvars, primitive
        self.params, self.source_info = params, source_info
        self.program = program  # that it stands in: it holds the rules that parameters name by number

    @property
    def effects(self) -> Any:
        """What it does besides computing, as the rule of its primitive declares it, and the functions inside of it."""
        if self._effects is None:
            found = {self._of_input(effect) for effect in self.primitive.effects_of(self.invars, self.params)}
            for inner in jaxprs_in_params(self.params):
                # Operands of its own, as the number of a branch, come first.
                rest = self.invars[len(self.invars) - len(inner.invars) :]
                given = dict(zip(inner.invars, rest)) if len(rest) == len(inner.invars) else {}
                for effect in inner.effects:
                    of_input = isinstance(effect, JaxprInputEffect)
                    found.add(effect.replace(given.get(effect.input)) if of_input else effect)
            self._effects = found
        return self._effects

    def _of_input(self, effect: Any) -> Any:
        by_place = isinstance(effect, JaxprInputEffect) and isinstance(effect.input, int)
        return effect.replace(self.invars[effect.input]) if by_place else effect

    def replace(self, **changes: Any) -> JaxprEqn:
        """The equation with some of its attributes changed."""
        names = ("invars", "outvars", "primitive", "params", "source_info", "program")
        return JaxprEqn(**{**{name: getattr(self, name) for name in names}, **changes})

    @property
    def shown_params(self) -> dict[str, Any]:
        """The parameters as a text has them: functions inside by JAX's names."""
        if isinstance(self.params, ConvertParams):
            return self.params.shown
        shown = {name: value for name, value in self.params.items() if name not in ("regions", COMPUTES)}
        regions = self.params.get("regions") or []
        names = _SHOWN_REGIONS.get(self.primitive.name, ("jaxpr",))
        if len(names) == len(regions):
            shown.update(zip(names, regions))
        elif regions:
            shown[names[0] if names != ("jaxpr",) else "jaxprs"] = tuple(regions)
        if "name" in self.params:
            shown["name"] = self.params["name"]
        if self.primitive.name in ("custom_jvp_call", "custom_vjp_call") and shown.get("rule") in named_rules:
            shown.update(named_rules[shown.pop("rule")])
        return shown

    def __repr__(self) -> str:
        return text_of_equation(self)


# What JAX calls the functions inside of an equation, where it is not "jaxpr".
_SHOWN_REGIONS = {
    "cond": ("branches",),
    "custom_jvp_call": ("call_jaxpr",),
    "custom_vjp_call": ("call_jaxpr",),
    "while": ("cond_jaxpr", "body_jaxpr"),
}


class Jaxpr:
    """Equations between variables.

    Attributes:
        uses_of_keys: what it does to random keys, where that is known: its function is traced for that once more.
    """

    uses_of_keys: Callable[[], Any] | None = None
    _is_high: bool | None = None

    def __init__(
        self,
        constvars: Sequence[Var],
        invars: Sequence[Var],
        outvars: Sequence[Atom],
        eqns: Sequence[JaxprEqn],
        effects: Any = None,
        debug_info: Any = None,
        *_: Any,
        **__: Any,
    ):
        self._effects = effects
        self.constvars, self._invars = list(constvars), list(invars)
        self.outvars, self._eqns = list(outvars), list(eqns)
        self._debug_info = debug_info

    # The names that JAX has for the lists: programs are changed in place by them.
    invars, eqns = (property(operator.attrgetter(name)) for name in ("_invars", "_eqns"))

    @property
    def effects(self) -> Any:
        """Those of its equations; of what happens to an input, those to inputs of the program."""
        if self._effects is None:
            known = {*self.constvars, *self.invars}
            is_there = lambda effect: not isinstance(effect, JaxprInputEffect) or effect.input in known
            self._effects = {effect for eqn in self.eqns for effect in eqn.effects if is_there(effect)}
        return self._effects

    @property
    def is_high(self) -> bool:
        """Whether it has primitives on types of a library's own."""
        if self._is_high is None:
            inside = (inner for eqn in self.eqns for inner in jaxprs_in_params(eqn.params))
            of_own = any(in_hi_primitive(eqn.steps) for eqn in self.eqns)
            self._is_high = of_own or any(inner.is_high for inner in inside)
        return self._is_high

    @property
    def debug_info(self) -> Any:
        """What is known of the function that it is of."""
        if callable(self._debug_info):
            self._debug_info = self._debug_info()
        return self._debug_info

    @property
    def in_avals(self) -> list[ShapedArray]:
        return [v.aval for v in self.invars]

    @property
    def out_avals(self) -> list[ShapedArray]:
        return [v.aval for v in self.outvars]

    def replace(self, **changes: Any) -> Jaxpr:
        """The program with some of its attributes changed."""
        names = ("constvars", "invars", "outvars", "eqns")
        known = {name: getattr(self, name) for name in names}
        return Jaxpr(**{**known, "debug_info": self._debug_info, **changes})

    def pretty_print(
        self, *, source_info: bool = False, print_shapes: bool = True, name_stack: bool = False, **_: Any
    ) -> str:
        """The program as text: with the user's lines, without types, with the names of its parts."""
        return text_of(self, source_info=source_info, print_shapes=print_shapes, name_stack=name_stack)

    def __repr__(self) -> str:
        return text_of(self)


class ClosedJaxpr:
    """A program and the arrays that it captured."""

    def __init__(self, jaxpr: Jaxpr, consts: Sequence[Any], ir: IR | None = None):
        self.jaxpr, self.consts, self._ir = jaxpr, list(consts), ir

    @property
    def effects(self) -> Any:
        return self.jaxpr.effects

    @property
    def is_high(self) -> bool:
        return self.jaxpr.is_high

    @property
    def literals(self) -> list[Any]:
        return self.consts

    @property
    def eqns(self) -> list[JaxprEqn]:
        return self.jaxpr.eqns

    @property
    def invars(self) -> list[Var]:
        return self.jaxpr.invars

    @property
    def constvars(self) -> list[Var]:
        return self.jaxpr.constvars

    @property
    def outvars(self) -> list[Atom]:
        return self.jaxpr.outvars

    @property
    def in_avals(self) -> list[ShapedArray]:
        return self.jaxpr.in_avals

    @property
    def out_avals(self) -> list[ShapedArray]:
        return self.jaxpr.out_avals

    def replace(self, **changes: Any) -> ClosedJaxpr:
        """The program with some of its attributes changed."""
        return ClosedJaxpr(**{"jaxpr": self.jaxpr, "consts": self.consts, **changes})

    def pretty_print(self, **settings: Any) -> str:
        """The program as text."""
        return self.jaxpr.pretty_print(**settings)

    def __repr__(self) -> str:
        return repr(self.jaxpr)


class Region(ClosedJaxpr):
    """A function inside an equation: a branch, the body of a loop. It is read when it is looked at."""

    def __init__(self, fn: Any, axes: frozenset[str] = frozenset(), varying: Sequence[Sequence[str]] | None = None):
        self._fn, self.consts = fn, []
        self._axes, self._varying = axes, varying

    @functools.cached_property
    def jaxpr(self) -> Jaxpr:  # type: ignore[override]
        return _jaxpr(self._fn, 0, True, self._axes, self._varying)


_INTEGER = re.compile(r"^(?=[iu]\d)(u?)i?")  # a program's i8 has 8 bits, NumPy's has 8 bytes
_TYPE = re.compile(r"(\w+)(?:\[(.*?)\])?(?:\{(.*?)\})?$")  # f32[3]{x}: differs between the devices along x


def _aval(text: str, weak: bool = False) -> ShapedArray:
    found = _TYPE.match(text)
    assert found is not None, text
    dtype, dims, varying = found.groups()
    shape = [int(d) if d.isdigit() else _weft.Dim(d) for d in (dims or "").split(",") if d]
    aval = ShapedArray(shape, np.float32, weak, varying.split(",") if varying else ())
    aval.dtype = _weft.dtype(_INTEGER.sub(r"\1int", dtype)) if dtype != "tape" else dtype
    return aval


def _wide(kind: str, aval: ShapedArray) -> str:
    """The dtype of a type, if it has 64 bits and is shown with 32."""
    dtype = kind.partition("[")[0]
    return dtype if dtype in _WIDE and np.dtype(aval.dtype).itemsize < _WIDE[dtype] else ""


def _regions(eqn: dict[str, Any], axes: frozenset[str]) -> list[Region]:
    """The functions inside of an equation; `axes`: those of the shard_map around it."""
    if eqn["name"] != "spmd":
        return [Region(region, axes) for region in eqn["regions"]]
    mesh = frozenset(re.findall(r"(\w+)=", str(eqn["attr_values"]["mesh"])))
    outside = [re.findall(r"[A-Za-z_]\w*", cuts) for cuts in _CUTS.findall(str(eqn["attr_values"]["out_shardings"]))]
    return [Region(region, axes | mesh, outside) for region in eqn["regions"]]


_CUTS = re.compile(r"\(([^()]*)\)")  # shardings((x,-),(-)): of each array, the axes that cut its dimensions


def _jaxpr(
    fn: Any,
    num_constants: int,
    inside: bool = False,
    axes: frozenset[str] = frozenset(),
    varying: Sequence[Sequence[str]] | None = None,
) -> Jaxpr:
    """The view of a function; `inside`: of another one's equation. `axes`: of the shard_map around, inside of which
    what is the same on all devices is made to vary (pvary) before it meets what varies, and where its spec says that a
    result does (`varying`)."""
    variables: dict[str, Var] = {}

    def defined(text: str) -> Var:
        number, _, kind = text.partition(": ")
        aval = _aval(kind)
        variables[number] = Var(aval, letters(len(variables)), _wide(kind, aval))
        return variables[number]

    def read(text: str) -> Atom:
        if text.startswith("%"):
            return variables[text.partition(": ")[0]]
        exact, kind = _weft.literal(text), text.rpartition(":")[2]
        value = exact.item() if exact.ndim == 0 and not str(exact.dtype).startswith("key") else exact
        aval = _aval(kind)
        return Literal(value, aval, exact if _wide(kind, aval) else None)

    def made_to_vary(atom: Atom, wanted: Sequence[str], like: Any) -> Atom:
        missing = tuple(sorted(set(wanted) - set(atom.aval.varying)))
        if not missing:
            return atom
        result = Var(atom.aval.update(varying=sorted(wanted)), letters(len(variables)))
        variables[f"pvary {len(variables)}"] = result
        eqns.append(JaxprEqn([atom], [result], primitive("pvary"), {"axes": missing}, like, fn))
        return result

    def as_number(atom: Atom, like: Any) -> Atom:
        result = Var(atom.aval.update(dtype=np.dtype("int32")), letters(len(variables)))
        variables[f"number {len(variables)}"] = result
        of_number = ConvertParams.to("i32")
        eqns.append(JaxprEqn([atom], [result], primitive("convert_element_type"), of_number, like, fn))
        return result

    params = [defined(f"%{i}: {kind}") for i, kind in enumerate(fn.param_types)]
    eqns: list[JaxprEqn] = []
    parts: dict[int, frozenset[str]] = {}  # axes along which a variable counts as a sum in parts
    for eqn in fn.eqns:
        invars = [read(operand) for operand in eqn["operands"]]
        ours = eqn["name"]
        for name, kind in eqn["attr_kinds"].items():
            attribute_kinds[ours, name] = kind
        given = dict(eqn["attr_values"])
        if ours in COLLECTIVES:
            given["axes"] = tuple(given["axes"])
        if eqn["regions"] or ours == "sharding_constraint":
            given = Params(given, regions=_regions(eqn, axes)) if eqn["regions"] else Params(given)
        invariant = ours == "psum" and not axes.isdisjoint(given["axes"])
        shown: Primitive = primitive("psum_invariant" if invariant else JAX_NAMES.get(ours, ours))
        if ours == "io_callback":
            shown = primitive(name_of_callback(eqn["origin"]["steps"]))
        if ours in OF_PARTS and invars and parts.get(id(invars[0]), frozenset()) & set(given["axes"]):
            shown = primitive(OF_PARTS[ours])
        # A primitive of the user's, unless it has captured values or been through vmap without a rule: then it is what
        # it computes.
        call = call_of(given["params"]) if ours == "primitive" and not given.keys() & _CHANGED else None
        kept = kept_call(given) if ours == "assert" else None
        if kept is not None:
            invars = invars[1:]
            if any(e.primitive is kept.primitive and e.params == kept.values and e.invars == invars for e in eqns):
                continue  # what it computes is there itself
            call = kept
        if call is not None:
            shown, given = call.primitive, dict(call.values)
        # An equation inside of another one has the names that are given there.
        steps = [list(filter(is_scope, eqn["origin"]["steps"][0]))] if inside else eqn["origin"]["steps"]
        source_info = SourceInfo(without_precisions(name_stack(steps)), eqn["location"])
        if axes and ours in elementwise():
            wanted = {axis for atom in invars for axis in atom.aval.varying}
            invars = [made_to_vary(atom, sorted(wanted), source_info) for atom in invars]
        if chooses_by_bool(ours, invars):
            invars[0] = as_number(invars[0], source_info)
        outvars = [defined(result) for result in eqn["results"]]
        if axes and ours == "sharding_constraint":
            parts[id(outvars[0])] = frozenset(given.get("unreduced", ()))
        if ours == "convert":
            given = ConvertParams(given)
        if ours == "contract":
            given = ProductParams(given, outvars[0].aval.dtype, of_steps(eqn["origin"]["steps"]))
        elif call is None:
            given = readable(ours, given, invars)
        eqns.append(JaxprEqn(invars, outvars, shown, given, source_info, fn))
        eqns[-1].steps = eqn["origin"]["steps"]
    n = len(params) - num_constants
    results = [read(result) for result in fn.results]
    if varying is not None and len(varying) == len(results):
        results = [made_to_vary(r, wanted, SourceInfo("", "")) for r, wanted in zip(results, varying)]
    eqns = without_broadcasts(as_one(without_what_changes_nothing(eqns, results), results), results)
    eqns = as_one_equation(eqns, results, _merged)
    return Jaxpr(params[n:], params[:n], results, joined(eqns, results))


def _merged(name: str, invars: list[Any], outvars: list[Any], eqns: list[JaxprEqn]) -> JaxprEqn:
    """Equations as one."""
    last = eqns[-1]
    whole = Jaxpr([], invars, outvars, eqns)
    computes = Computed(name, lambda *values: eval_jaxpr(whole, (), *values)[0], whole)
    said = next((eqn.params for eqn in eqns if eqn.primitive.name in (name, SAYS_HOW.get(name))), {})
    params = {**said, COMPUTES: computes}
    one = JaxprEqn(invars, outvars, primitive(name), params, last.source_info, last.program)
    one.steps = last.steps
    return one


def of_program(fn: Any) -> Jaxpr:
    """The view of a program without captured arrays."""
    return _jaxpr(fn, 0)


def closed(ir: IR) -> ClosedJaxpr:
    """The view of a program."""
    jaxpr = _jaxpr(ir._fn, len(ir.constants))
    for var, weak in zip(jaxpr.outvars, ir._weak):
        if weak:
            var.aval = var.aval.update(weak_type=True)
    return ClosedJaxpr(jaxpr, ir.constants, ir)


def eval_jaxpr(jaxpr: Jaxpr, consts: Sequence[Any], *args: Any, **_: Any) -> list[Any]:
    """The results of a program on arrays, equation by equation."""
    values: dict[Var, Any] = {}
    values.update(zip(jaxpr.constvars, consts, strict=True))
    values.update(zip(jaxpr.invars, args, strict=True))
    for eqn in jaxpr.eqns:
        operands = [value_of(atom, values) for atom in eqn.invars]
        params = eqn.primitive.get_bind_params(eqn.params)
        # The program was traced before: its types were looked at then.
        mesh = mesh_of(operands)
        bind = lambda *xs: eqn.primitive.bind(*xs, **params)  # noqa: B023
        if eqn.primitive.name == "jit" and not _weft.is_tracing():
            bind = eqn.__dict__.setdefault("_compiled", weft.jit(bind))  # once, as the function that it was
        results = by_the_compiler(bind, tuple(operands), {}, mesh)
        values.update(zip(eqn.outvars, results if isinstance(results, (list, tuple)) else [results], strict=True))
    return [value_of(atom, values) for atom in jaxpr.outvars]


def value_of(atom: Atom, values: dict[Any, Any]) -> Any:
    """The array of an operand, where those of variables are known."""
    if isinstance(atom, Literal):
        return _strong(atom.val if atom.exact is None else atom.exact, atom.aval)
    value = _strong(values[atom], atom.aval)
    if not atom.wide or _weft.abstract(value)[3].startswith(atom.wide):
        return value
    convert = primitive("convert_element_type")
    return convert.bind(value, **convert.get_bind_params(ConvertParams.to(atom.wide)))


def _strong(value: Any, aval: ShapedArray) -> Any:
    """The value with the dtype that the program says: Python's numbers have none."""
    kept = isinstance(value, _weft.Array) or is_reference(value)
    return value if kept else _weft.array(value, aval.dtype, False)


def jaxpr_as_fun(closed_jaxpr: ClosedJaxpr, *args: Any) -> Any:
    """A program as a function that gives a list; with arguments, its results."""
    run: Callable[..., list[Any]] = lambda *values: eval_jaxpr(closed_jaxpr.jaxpr, closed_jaxpr.consts, *values)
    return run(*args) if args else run


def jaxprs_in_params(params: dict[str, Any]) -> Iterator[Jaxpr]:
    """The programs among the parameters of an equation."""
    for value in params.values():
        for part in value if isinstance(value, (tuple, list)) else [value]:
            if isinstance(part, Jaxpr):
                yield part
            elif isinstance(part, ClosedJaxpr):
                yield part.jaxpr


def subjaxprs(jaxpr: Jaxpr) -> Iterator[Jaxpr]:
    """The programs inside of the equations of one."""
    for eqn in jaxpr.eqns:
        yield from jaxprs_in_params(eqn.params)


def new_jaxpr_eqn(
    invars: Sequence[Atom],
    outvars: Sequence[Var],
    primitive: Primitive,
    params: dict,
    effects: Any = None,
    source_info: Any = None,
    *_: Any,
    **__: Any,
) -> JaxprEqn:
    """An equation."""
    return JaxprEqn(list(invars), list(outvars), primitive, params, source_info, effects=effects)


def gensym(suffix: str = "") -> Callable[[ShapedArray], Var]:
    """What makes variables of types."""
    numbers = itertools.count()
    return lambda aval: Var(aval, letters(next(numbers)) + suffix)
