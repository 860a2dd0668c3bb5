"""Traced functions as objects: weft.IR, and what makes one."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, overload

from . import _weft
from ._core import ir_view as _ir_view
from ._core import shapes as _shapes
from ._core import stateful
from ._core import tree as _tree
from ._core.errors import type_error, value_error
from ._core.ir_view import PassRecord
from ._core.names import wraps
from ._core.python_text import to_python
from ._core.shapes import ShapedArray, ShapeDtype
from ._core.tracing import check_callable, flat_function, trace_flat, without_deleted
from .arguments import ints
from .arguments import text as checked_text
from .collectives import check_axis_name

__all__ = ["IR", "PassRecord", "ShapeDtype", "ShapedArray", "deserialize_ir", "eval_shape", "make_ir", "parse_ir"]


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
        (Array(0., dtype=float32, weak_type=True), Array(2., dtype=float32, weak_type=True))
    """

    def __init__(self, fn, captures: Sequence = (), in_tree=None, out_tree=None, weak=(), applied=()):
        self._fn, self._captures, self._in_tree, self._out_tree, self._weak = (
            fn,
            list(captures),
            in_tree,
            out_tree,
            list(weak),
        )
        self._applied: list[_ir_view.Applied] = list(applied)  # the rules that made it
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

    @functools.cached_property
    def _view(self) -> _ir_view.View:
        return _ir_view.View(self._fn, IR)

    def _with(self, fn: Any) -> IR:
        """Another program for the same arguments and results."""
        return IR(fn, self._captures, self._in_tree, self._out_tree, self._weak, self._applied)

    def walk(self, regions: bool = True) -> list[_ir_view.Operation]:
        """The operations as objects, in order: what they read and make, types, attributes, regions, places, costs.

        Args:
            regions: whether operations inside others are among them, each after the one that it is inside of.

        Returns: list of weft.ir.Operation.

        Example:
            >>> ir = weft.make_ir(lambda x: weft.cond(x > 0, wnp.sin, wnp.cos, x))(1.0)
            >>> [(op.name, op.depth) for op in ir.walk()]
            [('gt', 0), ('cond', 0), ('cos', 1), ('sin', 1)]
        """
        return list(_ir_view.walk(self._view, bool(regions)))

    @property
    def parameters(self) -> list[_ir_view.Value]:
        """The parameters as objects: those of the arguments, then those of captured arrays.

        Example:
            >>> weft.make_ir(lambda x, y: x + y)(1.0, 2.0).parameters
            [x: f32[], y: f32[]]
        """
        return list(self._view.parameters)

    @property
    def results(self) -> list[_ir_view.Value | _ir_view.Literal]:
        """What it returns, as objects.

        Example:
            >>> weft.make_ir(lambda x: wnp.sin(x))(1.0).results[0].definition.name
            'sin'
        """
        return list(self._view.results)

    def cost_by_line(self) -> dict[tuple[str, int], tuple[float, float]]:
        """What each line of the user's costs: the operations that come from it, those in loops as often as they run, of
        branches all, each as if it stood alone.

        Returns: {(file, line): (flops, bytes)}.

        Example:
            >>> ir = weft.make_ir(lambda x: wnp.sin(x) * x)(wnp.ones(100))
            >>> [flops for flops, bytes in ir.cost_by_line().values()]
            [1600.0]
        """
        costs: dict[tuple[str, int], tuple[float, float]] = {}
        _ir_view.cost_by_line(self._view, 1.0, costs)
        return costs

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
        flops, accessed = _weft.cost(self.optimized()._fn)
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

        Running it defines a function of the program's name, which is the same program (`name_1` where the name is a
        word of Python's, or one that the source itself needs). Captured arrays are its last parameters, in the order of
        `constants`.

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

    def optimized(self, *passes: str, disable: Iterable[str] = ()) -> IR:
        """The program after passes. The locations of operations that rules made name these.

        Args:
            *passes: their names, in order; none: those that run before a program is compiled.
            disable: names of rules that do not run (weft.ir.rules()).

        Returns: weft.IR.

        Raises:
            TypeError: a name is no text.
            ValueError: there is no such pass or rule.

        Example:
            >>> ir = weft.make_ir(lambda x: x - -x)(wnp.ones(3)).optimized()
            >>> ir.results[0].definition.location.transforms
            ('sub-neg',)
        """
        names = [checked_text(name, "IR.optimized: the name of a pass") for name in passes] or ["optimize"]
        if isinstance(disable, str):
            raise type_error(f"IR.optimized: disable must be a list of names of rules, got {disable!r}")
        disabled = {checked_text(name, "IR.optimized: disable: the name of a rule") for name in disable}
        if unknown := disabled.difference(_weft.rule_names()):
            raise value_error(
                f"IR.optimized: disable has {min(unknown)!r}, which is no rule; weft.ir.rules() names them"
            )
        fn, records = _weft.run_passes(self._fn, names, disabled, True, texts=True)
        other = self._with(fn)
        other._applied += map(_ir_view.Applied.of, records)
        return other

    def opt_trail(self) -> list[_ir_view.Applied]:
        """The rules that made this program of what was traced, one after the other: those that put stable forms in
        place before a derivative was taken, then those of optimized().

        Returns: list of weft.ir.Applied, with the pass, the rule, what was there before and after it, as expressions,
            and the user's lines.

        Example:
            >>> ir = weft.make_ir(weft.grad(lambda x: wnp.log(1 + wnp.exp(x))))(100.0)
            >>> [(a.pass_, a.before, a.after) for a in ir.opt_trail()]
            [('stabilize', 'log(1 + exp(x))', 'softplus(x)')]
        """
        return list(self._applied)

    def trail(self, value: Any = 0) -> _ir_view.Trail:
        """What made an operation: the transforms and rules that it has been through, down to the user's lines.

        Args:
            value: a weft.ir.Value or an Operation of this program, inside of loops and branches, too, or the index of
                a result.

        Returns: Trail, which prints as lines.

        Raises:
            ValueError: it is no value of this program, or no operation made it.

        Example:
            >>> print(weft.make_ir(lambda x: x - -x)(wnp.ones(3)).optimized().trail(0).operation)
            add
        """
        found = _ir_view.value_of(self._view, value)
        if found.definition is None:
            raise value_error(f"IR.trail: {found} is a parameter, which no operation made")
        at = found.definition.location
        rules = _ir_view.rules_of(at, self._applied)
        return _ir_view.Trail(found.definition.primitive, at.transforms, at.stack, at.derivative_of, rules)

    def stage(self, name: str) -> str:
        """The program at a stage of compilation.

        Args:
            name: "ir", "optimized", "fusion", "schedule", "liveness", "buffers", "mlir", "llvm" or "asm".

        Returns: str.

        Raises:
            TypeError: name is no string.
            ValueError: there is no such stage.

        Example:
            >>> "sin" in weft.make_ir(lambda x: wnp.sin(x) * 1)(wnp.ones(3)).stage("optimized")
            True
        """
        return _weft.stage(self._fn, "cpu", checked_text(name, "IR.stage: name"), False)

    def to_svg(self, *, values: bool = False, buffers: bool = False, most: int | None = 60, layout: bool = True) -> str:
        """A picture of the program, laid out by Graphviz's program `dot`, as SVG: operations, what they read of each
        other, regions around what is inside them. A notebook shows it when an IR is displayed.

        Args:
            values: whether every value is a node, too, as in a graph of data and operations.
            buffers: steps of compiled code instead, and the buffers that they read and write: sizes, and lifetimes.
            most: a program of more operations is folded to about as many boxes: regions, lines, then functions.
            layout: False gives the text that `dot` takes.

        Returns: str. Raises: RuntimeError: `dot` is not installed. ValueError: most is less than 1.

        Example:
            >>> ir = weft.make_ir(lambda x: wnp.sin(x) * 2)(1.0)
            >>> [line for line in ir.to_svg(layout=False).splitlines() if "->" in line]
            ['  n0 -> n1;', '  n1 -> n2 [label="f32[]"];', '  n2 -> n3 [label="f32[]"];']
        """
        from .ir.pictures import picture_of

        return picture_of(self, bool(values), bool(buffers), most, bool(layout))

    def _repr_svg_(self) -> str | None:
        """What notebooks show; without Graphviz they show the text."""
        from .ir.pictures import can_lay_out

        return self.to_svg() if can_lay_out() else None

    @property
    def passes(self) -> list[PassRecord]:
        """What each pass before code generation does to the program: they run anew whenever this is asked for.

        Returns: list of weft.PassRecord, in the order of the passes.

        Example:
            >>> ir = weft.make_ir(lambda x: (x + 0) * 1)(1.0)
            >>> [(p.name, p.equations_before, p.equations_after) for p in ir.passes if p.name == "simplify"][0]
            ('simplify', 2, 1)
        """
        return [PassRecord(*record) for record in _weft.passes(self._fn)]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        leaves, in_tree = _tree.flatten((args, kwargs))
        if self._in_tree is not None and in_tree != self._in_tree:
            raise type_error(
                f"'{self.__name__}' was traced for "
                f"{_tree.arguments_in_words(self._in_tree)}, got {_tree.arguments_in_words(in_tree)}"
            )
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


@overload
def make_ir(
    fun: Callable[..., Any],
    *,
    static_argnums: int | Iterable[int] | None = None,
    axis_env: Iterable[tuple[str, int]] | None = None,
    return_shape: Literal[False] = False,
) -> Callable[..., IR]: ...
@overload
def make_ir(
    fun: Callable[..., Any],
    *,
    static_argnums: int | Iterable[int] | None = None,
    axis_env: Iterable[tuple[str, int]] | None = None,
    return_shape: bool,
) -> Callable[..., Any]: ...
def make_ir(
    fun: Callable[..., Any],
    *,
    static_argnums: int | Iterable[int] | None = None,
    axis_env: Iterable[tuple[str, int]] | None = None,
    return_shape: bool = False,
) -> Callable[..., Any]:
    """A function that traces instead of computing: make_ir(f)(*args) is the IR of f for such arguments.

    Arguments may be arrays, numbers, or weft.ShapeDtype where only the type matters; dimensions may be symbolic.

    Args:
        fun: the function.
        static_argnums: positions of arguments that are passed to Python as they are.
        axis_env: named axes that collectives inside may refer to, with their sizes: [("i", 4)].
        return_shape: whether to say also what the function returns.

    Returns: function that takes the arguments of `function` and returns weft.IR; with return_shape a pair of weft.IR
        and the result as a tree of weft.ShapeDtype.

    Raises:
        TypeError: when called: an argument or a result is no array, number or container of them.
        weft.TracerError: when called: the function needs the number behind a traced value.

    Example:
        >>> weft.make_ir(lambda x: x.sum(0))(weft.ShapeDtype(("n", 784), "float32")).out_types
        ['f32[784]']
    """
    check_callable(fun, "make_ir")
    axes = [(check_axis_name(name, "make_ir"), size, False) for name, size in axis_env or ()]
    static_places = ints(static_argnums, "make_ir: static_argnums")

    @wraps(fun)
    def traced(*args, **kwargs) -> IR | tuple[IR, Any]:
        if stateful.references is not None:
            return stateful.references.looking("make_ir", run, fun, args, kwargs)
        return run(fun, args, kwargs)

    def run(fun: Callable, args: tuple, kwargs: dict) -> IR | tuple[IR, Any]:
        static = {i % max(len(args), 1) for i in static_places}
        if static:
            fixed = {i: args[i] for i in static}
            inner = lambda *dynamic, **kw: fun(*_merge(fixed, dynamic, len(args)), **kw)
            flat = flat_function(
                inner,
                tuple(a for i, a in enumerate(args) if i not in static),
                kwargs,
                original=fun,
                positions=[i for i in range(len(args)) if i not in static],
            )
        else:
            flat = flat_function(fun, args, kwargs)
        t = trace_flat(flat, "make_ir", known=False, axes=axes)
        applied = map(_ir_view.Applied.of, t.rules)
        ir = IR(t.fn, t.captures, flat.in_tree, flat.out_tree, t.weak_results, applied)
        return (ir, _result_types(t, flat.out_tree)) if return_shape else ir

    return traced


def _result_types(traced: Any, out_tree: Any) -> Any:
    return _tree.unflatten(
        out_tree, [ShapeDtype(shape, dtype, weak_type=weak) for shape, dtype, weak in _weft.result_specs(traced)]
    )


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
        TypeError: text is no string.
        ValueError: text or file has half of a surrogate pair.
        weft.ParseError: the text is malformed, or no valid program; the message shows the place.

    Example:
        >>> text = weft.make_ir(lambda x: x + 1)(2.0).text
        >>> weft.parse_ir(text)(3.0)
        Array(4., dtype=float32)
    """
    return IR(_weft.parse_fn(checked_text(text, "parse_ir: text"), checked_text(str(file), "parse_ir: file")))


def deserialize_ir(data: bytes) -> IR:
    """The function that bytes in the exchange form (IR.serialize, `weft opt --binary`) describe.

    Args:
        data: the bytes.

    Returns: weft.IR.

    Raises:
        TypeError: data is not bytes.
        weft.ParseError: the bytes are damaged, foreign or of a later version.

    Example:
        >>> data = weft.make_ir(lambda x: x + 1)(2.0).serialize()
        >>> weft.deserialize_ir(data)(3.0)
        Array(4., dtype=float32)
    """
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise type_error(f"deserialize_ir: data must be bytes, got '{type(data).__name__}'")
    return IR(_weft.deserialize(bytes(data)))


def eval_shape(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """The shapes and dtypes of a function's result, without computing anything.

    Args:
        fun: the function.
        *args: its arguments: arrays, numbers, or weft.ShapeDtype where only the type matters.
        **kwargs: its keyword arguments.

    Returns: tree of weft.ShapeDtype.

    Raises:
        TypeError: an argument or a result is no array, number or container of them.

    Example:
        >>> weft.eval_shape(lambda x: x @ x.T, weft.ShapeDtype((3, 4), "float32"))
        ShapeDtype((3, 3), float32)
    """
    check_callable(fun, "eval_shape")
    if stateful.references is not None:
        return stateful.references.looking("eval_shape", _eval_shape, fun, args, kwargs)
    return _eval_shape(fun, args, kwargs)


def _eval_shape(fun: Callable[..., Any], args: tuple, kwargs: dict) -> Any:
    args, kwargs = without_deleted((args, kwargs))
    flat = flat_function(fun, args, kwargs)
    # Inside shard_map types say along which axes values differ.
    if any(_weft.varying(leaf) for leaf in flat.leaves if _weft.is_traced(leaf)):
        flat.specs = list(map(ShapeDtype.like, flat.leaves))
    types: list[Any] = []
    flat.function = _types_alone(flat.function, types)
    _weft.being_lowered(True)  # only shapes are asked for, so no way of compiling is lost
    try:
        trace_flat(flat, "eval_shape", known=False)
    finally:
        _weft.being_lowered(False)
    return _tree.unflatten(types[0], types[1:])


def _types_alone(fun: Callable[..., Any], types: list[Any]) -> Callable[..., Any]:
    """The function without its result, whose structure and types are put into a list: a result may be a type itself, or
    a value of a trace that nothing here may compute with."""

    @wraps(fun)
    def typed(*args: Any, **kwargs: Any) -> Any:
        result = fun(*args, **kwargs)
        leaves, tree = _tree.flatten(result)
        if not all(_weft.is_operand(leaf) or isinstance(leaf, ShapeDtype) for leaf in leaves):
            return result  # which is refused
        types[:] = [tree]
        for leaf in leaves:
            shape, dtype, weak, _ = _weft.abstract(leaf)
            differ = leaf.varying if isinstance(leaf, ShapeDtype) else _weft.varying(leaf)
            types.append(ShapeDtype(shape, dtype, weak, differ, sharding=_shapes.typed_sharding(leaf)))
        return ()

    return typed
