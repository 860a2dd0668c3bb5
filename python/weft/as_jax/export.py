"""jax.export: programs of jitted functions that are kept as bytes, read in other processes, and called there, also
inside of functions that are traced. What is kept is Weft's program (docs/ir.md), not JAX's StableHLO: only Weft reads
it."""

from __future__ import annotations

import ast
import functools
import inspect
import json
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import optree

import weft

from .. import _weft
from .._core import tree as _tree
from .._core.errors import not_implemented, type_error, value_error
from .._core.shapes import ShapedArray, ShapeDtype
from ..program import IR
from . import sizes
from .export_places import (
    Places,
    around_types,
    check_devices,
    mesh_for,
    module_text,
    names_a_mesh,
    on_devices,
    places_of,
    read,
    typed,
    written,
)
from .settings import config
from .treedefs import PyTreeDef

minimum_supported_calling_convention_version = 9
maximum_supported_calling_convention_version = 10

_MAGIC = b"weft export 1\n"


class DisabledSafetyCheck:
    """A check that JAX makes of what XLA calls. Weft's programs call nothing of that kind: accepted, without effect."""

    def __init__(self, what: str):
        self._what = what

    @classmethod
    def platform(cls) -> DisabledSafetyCheck:
        """That the program runs where it was made for."""
        return cls("platform")

    @classmethod
    def custom_call(cls, target_name: str) -> DisabledSafetyCheck:
        """That a call of the host is known."""
        return cls(f"custom_call:{target_name}")

    def is_custom_call(self) -> str | None:
        """The call that custom_call named."""
        return self._what.partition(":")[2] or None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DisabledSafetyCheck) and self._what == other._what

    def __hash__(self) -> int:
        return hash(self._what)

    def __repr__(self) -> str:
        return f"DisabledSafetyCheck.{self._what}"


class Exported:
    """A program that has left its function. `call` runs it, `serialize` writes it.

    Attributes:
        fun_name: the name of the function.
        in_tree, out_tree: the structures of (arguments, keyword arguments) and of the result.
        in_avals, out_avals: the types of their leaves.
        platforms: what it was made for.
        places: how these lie on devices, and on how many.
    """

    ordered_effects: tuple[Any, ...] = ()
    unordered_effects: tuple[Any, ...] = ()
    calling_convention_version = maximum_supported_calling_convention_version

    def __init__(
        self,
        ir: IR,
        fun_name: str,
        in_tree: PyTreeDef,
        out_tree: PyTreeDef,
        in_avals: Sequence[ShapedArray],
        out_avals: Sequence[ShapedArray],
        platforms: Sequence[str],
        disabled_checks: Sequence[Any] = (),
        vjp: Exported | None = None,
        places: Places | None = None,
    ):
        self._ir, self.fun_name, self.in_tree, self.out_tree = ir, fun_name, in_tree, out_tree
        self.in_avals, self.out_avals = tuple(in_avals), tuple(out_avals)
        self.platforms, self.disabled_safety_checks = tuple(platforms), tuple(disabled_checks)
        self.module_kept_var_idx = tuple(range(len(self.in_avals)))
        self._vjp = vjp
        self.places = places or Places.of_one_device(len(self.in_avals), len(self.out_avals))
        self._on: dict[Any, Callable[..., Any]] = {}

    @property
    def nr_devices(self) -> int:
        """How many devices it was made for. What was made for one runs on any number."""
        return self.places.devices

    def in_shardings_jax(self, mesh: Any) -> tuple[weft.NamedSharding | None, ...]:
        """How each argument lies on a mesh; None where the program does not say it."""
        return tuple(place and weft.NamedSharding(mesh, place.spec) for place in self.places.arguments)

    def out_shardings_jax(self, mesh: Any) -> tuple[weft.NamedSharding | None, ...]:
        """How each result lies on a mesh; None where the program does not say it."""
        return tuple(place and weft.NamedSharding(mesh, place.spec) for place in self.places.results)

    @property
    def uses_global_constants(self) -> bool:
        """Whether sizes are open."""
        return any(is_symbolic_dim(size) for aval in self.in_avals for size in aval.shape)

    def mlir_module(self) -> str:
        """The program as StableHLO, with the names of its arguments, and how they lie on devices."""
        return module_text(self._ir, self.places, _paths(self.in_tree), _paths(self.out_tree))

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the program: of the arguments' structure, shapes and dtypes it was made for."""
        here = default_export_platform()
        if here not in self.platforms and DisabledSafetyCheck.platform() not in self.disabled_safety_checks:
            raise value_error(
                f"Function '{self.fun_name}' was exported for platforms {self.platforms!r} but it is used on {here!r}; "
                "disabled_checks=[DisabledSafetyCheck.platform()] lets it run here"
            )
        leaves, tree = _tree.flatten((args, kwargs))
        if PyTreeDef(tree) != self.in_tree:
            raise value_error(
                "The invocation args and kwargs must have the same pytree structure as when the function "
                f"'{self.fun_name}' was exported, which is {self.in_tree}, got {PyTreeDef(tree)}"
            )
        names = [f"{'args' if path.startswith('[0]') else 'kwargs'}{path[3:]}" for path in _tree.path_texts(tree)]
        for leaf, aval, name in zip(leaves, self.in_avals, names):
            _check(leaf, aval, name)
        if self.uses_global_constants:
            sizes.check(names, [aval.shape for aval in self.in_avals], [_weft.abstract(leaf)[0] for leaf in leaves])
        arrays = [_weft.astype(leaf, aval.dtype) for leaf, aval in zip(leaves, self.in_avals)]
        return self.out_tree.unflatten(self._run(arrays))

    def _run(self, arrays: list[Any]) -> Any:
        if self.nr_devices == 1 and not self._names_a_mesh:
            return _weft.apply(self._ir._fn, arrays + self._ir.constants, self._ir._weak)
        devices = check_devices(self.fun_name, self.nr_devices, arrays)
        typed_mesh = any(place.mesh.explicit_axes for place in self.places.said)  # types say on which mesh it runs
        if typed_mesh or (devices is None and self.nr_devices > 1):
            return _weft.apply(self._ir._fn, arrays + self._ir.constants, self._ir._weak)
        key = tuple(device.id for device in devices or ())
        if key not in self._on:
            self._on[key] = on_devices(self._ir, self.places, devices or ())
        return self._on[key](*arrays)

    @functools.cached_property
    def _names_a_mesh(self) -> bool:
        return names_a_mesh(self._ir)

    def has_vjp(self) -> bool:
        """Whether vjp() gives a program."""
        return self._vjp is not None or any(_weft.is_inexact(aval.dtype) for aval in self.in_avals)

    def vjp(self) -> Exported:
        """The program (arguments, cotangents of the results) -> cotangents of the arguments, all as leaves."""
        if self._vjp is None:
            n = len(self.in_avals)

            def backward(*values: Any) -> tuple[Any, ...]:
                flat = lambda *leaves: tuple(
                    _weft.apply(self._ir._fn, list(leaves) + self._ir.constants, self._ir._weak)
                )
                return tuple(weft.vjp(flat, *values[:n])[1](tuple(values[n:])))

            cotangents = [ShapeDtype(aval.shape, aval.dtype) for aval in self.out_avals]
            specs = [*(ShapeDtype(aval.shape, aval.dtype) for aval in self.in_avals), *cotangents]
            said = self.places.said
            if said and not any(place.mesh.explicit_axes for place in said):
                mesh = mesh_for(said[0].mesh, weft.devices())
                places = (*self.in_shardings_jax(mesh), *self.out_shardings_jax(mesh))
                backward = weft.jit(backward, in_shardings=places, out_shardings=places[:n])
            self._vjp = _exported(backward, self.platforms, self.disabled_safety_checks, specs, {})
        return self._vjp

    def serialize(self, vjp_order: int = 0) -> bytearray:
        """The program as bytes, with that of its vjp, the vjp's vjp and so on, `vjp_order` of them."""
        program, arrays = self._ir.serialize(), [np.asarray(c) for c in self._ir.constants]
        rest = bytes(self.vjp().serialize(vjp_order - 1)) if vjp_order else b""
        head = {
            "name": self.fun_name,
            "in_tree": _written(self.in_tree),
            "out_tree": _written(self.out_tree),
            "in_avals": [_written_type(aval) for aval in self.in_avals],
            "out_avals": [_written_type(aval) for aval in self.out_avals],
            "weak": list(map(bool, self._ir._weak)),
            "platforms": list(self.platforms),
            "arrays": [[a.dtype.name, list(a.shape), a.nbytes] for a in arrays],
            "program": len(program),
            "vjp": len(rest),
            "devices": self.nr_devices,
            "places": [list(map(written, places)) for places in (self.places.arguments, self.places.results)],
        }
        text = json.dumps(head).encode()
        parts = [_MAGIC, len(text).to_bytes(8, "little"), text, program, *(a.tobytes() for a in arrays), rest]
        return bytearray(b"".join(parts))


def _paths(tree: PyTreeDef) -> list[str]:
    """What the leaves of a structure are called in it."""
    return list(_tree.path_texts(_tree.structure(tree.unflatten([0] * tree.num_leaves))))


def _check(leaf: Any, aval: ShapedArray, what: str) -> None:
    shape, dtype, weak, text = _weft.abstract(leaf)
    exported_for = f"it is {text}, the program was exported for {aval.str_short(True)}"
    if len(shape) != len(aval.shape):
        raise value_error(f"Rank mismatch for {what}: {exported_for}")
    for d, (have, want) in enumerate(zip(shape, aval.shape)):
        if isinstance(want, int) and have != want:
            raise value_error(f"Shape mismatch for {what}.shape[{d}] (expected same constant): {exported_for}")
    if dtype != aval.dtype and not weak:
        raise value_error(f"Dtype mismatch for {what}: {exported_for}")


# --- Structures and types as JSON -------------------------------------------------------------------------------------

_classes: dict[str, tuple[type, Callable[[Any], bytes], Callable[[bytes], Any]]] = {}


def register_namedtuple_serialization(nodetype: type, *, serialized_name: str) -> type:
    """Says under which name a namedtuple stands in serialized programs."""
    _classes[serialized_name] = (nodetype, lambda _: b"", lambda _: nodetype)
    return nodetype


def register_pytree_node_serialization(
    nodetype: type,
    *,
    serialized_name: str,
    serialize_auxdata: Callable[[Any], bytes],
    deserialize_auxdata: Callable[[bytes], Any],
    from_children: Callable[[Any, Any], Any] | None = None,
) -> type:
    """Says under which name a registered class stands in serialized programs, and how its static data are written."""
    del from_children
    _classes[serialized_name] = (nodetype, serialize_auxdata, deserialize_auxdata)
    return nodetype


def _written(treedef: PyTreeDef) -> Any:
    def node(cls: type, data: Any, parts: Sequence[Any]) -> Any:
        if cls is type(None):
            return ["none"]
        if cls in (tuple, list):
            return [cls.__name__, list(parts)]
        if cls is dict:
            if not all(isinstance(key, (str, int)) for key in data):
                raise not_implemented(
                    f"export: keys of dictionaries are written where they are texts or integers: {data}"
                )
            return ["dict", list(data), list(parts)]
        for name, (known, write, _) in _classes.items():
            if known is cls:
                return ["class", name, write(data).decode("latin1"), list(parts)]
        raise value_error(
            f"export: Cannot serialize PyTreeDef: containers of the class {cls} have no name; give one by "
            "jax.export.register_namedtuple_serialization or register_pytree_node_serialization"
        )

    return treedef.spec.walk(["*"] * treedef.num_leaves, node, lambda leaf: leaf)


def _read(written: Any) -> Any:
    """A tree of that structure."""
    if written == "*":
        return object()
    kind, *rest = written
    if kind == "none":
        return None
    parts = [_read(part) for part in rest[-1]]
    if kind == "dict":
        return dict(zip(rest[0], parts))
    if kind == "class":
        if rest[0] not in _classes:
            raise value_error(
                f"export: the program has containers called {rest[0]!r}, a name that is not registered here"
            )
        cls, _, read = _classes[rest[0]]
        data = read(rest[1].encode("latin1"))
        return cls(*parts) if hasattr(cls, "_fields") else _tree.unflatten(_structure_of(cls, data, len(parts)), parts)
    return tuple(parts) if kind == "tuple" else parts


def _structure_of(cls: type, data: Any, n: int) -> Any:
    entry: Any = optree.register_pytree_node.get(cls, namespace=_tree.NAMESPACE)
    return _tree.structure(entry.unflatten_func(data, [0] * n))


def _written_type(aval: ShapedArray) -> Any:
    return [str(aval.dtype), [n if isinstance(n, int) else str(n) for n in aval.shape], bool(aval.weak_type)]


def _read_type(written: Any) -> ShapedArray:
    dtype, shape, weak = written
    return ShapedArray(symbolic_shape(",".join(map(str, shape))) if shape else (), dtype, weak)


# --- What JAX has -----------------------------------------------------------------------------------------------------


def _exported(
    fun: Callable[..., Any],
    platforms: Sequence[str],
    checks: Sequence[Any],
    args: Sequence[Any],
    kwargs: dict[str, Any],
) -> Exported:
    version, lowest = config.read("jax_export_calling_convention_version"), minimum_supported_calling_convention_version
    if not lowest <= version <= maximum_supported_calling_convention_version:
        raise value_error(
            f"The requested export calling convention version {version} is outside the range of supported versions "
            f"[{lowest}..{maximum_supported_calling_convention_version}]"
        )
    static = getattr(fun, "_static_argnums", ())
    fixed = {name: kwargs[name] for name in kwargs if name in getattr(fun, "_static_argnames", ())}
    given = {name: value for name, value in kwargs.items() if name not in fixed}
    traced = functools.partial(fun, **fixed) if fixed else fun
    with around_types((args, kwargs)):
        ir, shapes = weft.make_ir(traced, static_argnums=tuple(static), return_shape=True)(*args, **given)
    leaves, in_tree = _tree.flatten((tuple(a for i, a in enumerate(args) if i not in static), given))
    outs, out_tree = _tree.flatten(shapes)
    like = lambda x: ShapedArray(*_weft.abstract(x)[:3])
    name = getattr(fun, "__name__", "<unnamed function>")
    trees = PyTreeDef(in_tree), PyTreeDef(out_tree)
    with around_types((args, kwargs)):
        places = places_of(fun, args, kwargs, (len(leaves), len(outs)))
    types = list(map(like, leaves)), list(map(like, outs))
    return Exported(ir, name, *trees, *typed(types, places), platforms, checks, None, places)


def export(
    fun_jit: Callable[..., Any],
    *,
    platforms: Sequence[str] | None = None,
    disabled_checks: Sequence[Any] = (),
    _override_lowering_rules: Any = None,
) -> Callable[..., Exported]:
    """A function of types, or of arrays, that gives the program of a jitted function for them."""
    del _override_lowering_rules
    if not hasattr(fun_jit, "lower") and not isinstance(inspect.unwrap(fun_jit), type(weft.numpy.exp)):
        raise value_error(f"Function to be exported must be the result of `jit` but is: {fun_jit!r}")
    where = (default_export_platform(),) if platforms is None else tuple(platforms)

    @functools.wraps(fun_jit)
    def of_types(*args: Any, **kwargs: Any) -> Exported:
        return _exported(fun_jit, where, disabled_checks, args, kwargs)

    return of_types


def deserialize(blob: bytes | bytearray) -> Exported:
    """The program of Exported.serialize()."""
    data = bytes(blob)
    if not data.startswith(_MAGIC):
        raise value_error("export.deserialize: these bytes are not from weft.as_jax's Exported.serialize()")
    at = len(_MAGIC) + 8
    size = int.from_bytes(data[at - 8 : at], "little")
    head, at = json.loads(data[at : at + size]), at + size
    fn = weft.deserialize_ir(data[at : at + head["program"]])._fn
    at += head["program"]
    arrays = []
    for dtype, shape, nbytes in head["arrays"]:
        part = np.frombuffer(data[at : at + nbytes], _weft.dtype(dtype)).reshape(shape)
        arrays.append(_weft.array(part, None, True))
        at += nbytes
    tree = lambda name: PyTreeDef(_tree.structure(_read(head[name])))
    trees = tree("in_tree"), tree("out_tree")
    types = [[_read_type(t) for t in head[name]] for name in ("in_avals", "out_avals")]
    vjp = deserialize(data[at : at + head["vjp"]]) if head["vjp"] else None
    ir = IR(fn, arrays, None, None, head["weak"])
    places = Places(head["devices"], *(tuple(map(read, part)) for part in head["places"]))
    return Exported(ir, head["name"], *trees, *typed(types, places), head["platforms"], (), vjp, places)


def default_export_platform() -> str:
    """Where programs run."""
    return weft.default_backend()


_OPERATORS: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}


def symbolic_shape(
    shape_spec: str | None, *, constraints: Iterable[str] = (), scope: Any = None, like: Sequence[Any] | None = None
) -> tuple[Any, ...]:
    """Sizes of a text: "b, 2*n, 3"; `_` is that of `like`, and `...` are the rest of its."""
    del constraints, scope

    def size(node: ast.expr) -> Any:
        if isinstance(node, ast.Name):
            return weft.Dim(node.id)
        if isinstance(node, ast.Constant) and isinstance(node.value, int):
            return node.value
        if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
            return _OPERATORS[type(node.op)](size(node.left), size(node.right))
        raise value_error(f"symbolic_shape: cannot read {shape_spec!r}; expected names, numbers, +, -, *, // and mod")

    text = (shape_spec if shape_spec is not None else "...").strip().removeprefix("(").removesuffix(")")
    parts = [part.strip() for part in text.split(",") if part.strip()]
    found: list[Any] = []
    for part in parts:
        if part in ("_", "...") and like is None:
            raise value_error(
                f"symbolic_shape: {part!r} in {shape_spec!r} stands for sizes of `like`, which is not given"
            )
        if part == "...":
            found += list(like or ())[len(found) : len(like or ()) - (len(parts) - 1 - parts.index("..."))]
        else:
            found.append((like or ())[len(found)] if part == "_" else size(ast.parse(part, mode="eval").body))
    return tuple(found)


def symbolic_args_specs(args: Any, shapes_specs: Any, constraints: Iterable[str] = (), scope: Any = None) -> Any:
    """The types of arguments, with sizes that texts say: one for all, or a tree of them (a prefix suffices)."""
    del constraints, scope
    leaves, tree = _tree.flatten(args)
    is_text = lambda x: x is None or isinstance(x, str)
    if isinstance(args, tuple) and isinstance(shapes_specs, list):
        shapes_specs = tuple(shapes_specs)
    texts = _tree.prefix_leaves(shapes_specs, args, "symbolic_args_specs: shapes_specs", is_text)
    made = []
    for leaf, text in zip(leaves, texts):
        shape, dtype, *_ = _weft.abstract(leaf)
        made.append(ShapeDtype(symbolic_shape(text, like=shape), dtype))
    return _tree.unflatten(tree, made)


def is_symbolic_dim(size: Any) -> bool:
    """Whether a size is not known until the program runs."""
    return isinstance(size, weft.Dim)


class SymbolicScope:
    """The names of sizes that belong together; Weft's are equal where their names are."""

    def __init__(self, constraints_str: Iterable[str] = ()):
        if tuple(constraints_str):
            raise type_error("SymbolicScope: constraints between sizes have no counterpart in Weft")
