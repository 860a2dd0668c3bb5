"""Programs that say which of their checks failed: an interpretation of the IR that hands on an error."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import _weft
from .. import numpy as wnp
from .._core import ir_view as _view
from .._core import options
from .._core import tree as _tree
from .._core.ir_view import Operation
from .._core.shapes import ShapedArray
from ..api import stop_gradient
from ..control import cond as _cond
from ..control import scan as _scan
from ..control import switch as _switch
from ..control import while_loop as _while_loop
from ..ir.interpreter import Interpreter, rule
from ..program import IR, make_ir
from .errors import Check, DivisionByZeroError, Error, FailedCheckError, JaxException, NaNError, OOBError

# Operations that make a NaN of numbers, or hand one on, with JAX's name for those that have another one there.
_NAN = {
    **dict.fromkeys(
        (
            *("acos", "acosh", "add", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "cos", "cosh", "cumlogsumexp"),
            *("cummax", "cummin", "cumprod", "cumsum", "digamma", "div", "erf", "erf_inv", "erfc", "exp", "exp2"),
            *("expm1", "fft", "integer_pow", "lgamma", "log", "log10", "log1p", "log2", "log_product"),
            *("log_quotient", "logistic", "normal_cdf", "normal_density"),
            *("logistic_density", "mul", "pad", "pow", "psum", "reduce_prod", "reduce_sum", "rem", "rsqrt"),
            *("sech_squared", "sin", "sinh", "softplus", "sqrt", "square", "sub", "tan", "tanh", "trigamma"),
            *("cholesky", "eigh", "eig", "lu", "qr", "svd", "triangular_solve", "linear_solve"),
            *("scatter", "scatter_add", "scatter_mul", "scatter_min", "scatter_max", "reduce_window_sum"),
        ),
        "",
    ),
    "contract": "dot_general",
    "conv": "conv_general_dilated",
}
_SCATTERS = ("scatter", "scatter_add", "scatter_mul", "scatter_min", "scatter_max")

# By the number in an `assert`: the check, and whether it counts in checkified functions alone.
KNOWN: dict[int, tuple[Check, bool]] = {}

_OOB = (((3,), "int32"),)
State = tuple[Any, list]


class Checks(Interpreter):
    """`enabled`: the kinds of exceptions that are looked for."""

    def __init__(self, enabled: frozenset[type[JaxException]]):
        self._enabled = enabled
        self._kinds: list[tuple] = []
        self._checks: set[Check] = set()
        self._state: State = (0, [])
        self._sites: dict[int, bool] = {}

    def checkified(self, function: Callable[..., Any], args: tuple, kwargs: dict) -> tuple[Error, Any]:
        """(error, result) of a call."""
        leaves, tree = _tree.flatten((args, kwargs))
        # Flags decide what is computed, as static arguments do.
        moving = [_weft.is_operand(leaf) and not isinstance(leaf, bool) for leaf in leaves]

        def called(*values: Any) -> Any:
            rest = iter(values)
            given, named = _tree.unflatten(tree, [next(rest) if on else leaf for leaf, on in zip(leaves, moving)])
            return function(*given, **named)

        values = [leaf for leaf, on in zip(leaves, moving) if on]
        ir = make_ir(called)(*values)
        self._kinds = sorted({check.spec for op in ir.walk() for check in self._checks_of(op)}, key=repr)
        empty = [[wnp.zeros(shape, dtype) for shape, dtype in kind] for kind in self._kinds]
        self._state = (wnp.zeros((), "int32"), empty)
        # The user's own operations have met the options while they were traced; those of checks are not the user's.
        with options.numpy_rank_promotion("allow"), options.numpy_dtype_promotion("standard"):
            results = self._run(ir, [*map(wnp.asarray, values), *ir.constants])
        code, payload = self._state
        out = _tree.unflatten(ir._out_tree, _weft.with_weak(results, ir._weak))
        return Error(code, dict(zip(self._kinds, payload)), frozenset(self._checks)), out

    # Which checks there are.

    def _checks_of(self, op: Operation) -> list[Check]:
        found: list[Check] = []
        line = op.location.stack
        shape = lambda i: tuple(_type(op.operands[i]).shape)
        if op.name == "assert":
            known = KNOWN.get(op.attributes.get("check", 0))
            if FailedCheckError in self._enabled:
                found.append(known[0] if known is not None else _plain(op))
        if op.name == "div" and DivisionByZeroError in self._enabled:
            found.append(Check(DivisionByZeroError, (), (), line))
        if OOBError in self._enabled and op.name in ("gather", "dynamic_slice", "dynamic_update_slice", *_SCATTERS):
            found.append(Check(OOBError, (op.name, shape(0)), _OOB, line))
        if NaNError in self._enabled and op.name in _NAN and any(map(_is_float, op.results)):
            found.append(Check(NaNError, (_NAN[op.name] or op.name,), (), line))
        return found

    def _has_checks(self, region: IR) -> bool:
        if id(region) not in self._sites:
            self._sites[id(region)] = any(self._checks_of(op) for op in region.walk())
        return self._sites[id(region)]

    def _note(self, check: Check, failed: Any, numbers: Sequence[Any] = ()) -> None:
        """Where a check failed, and none had before, the error is that."""
        code, payload = self._state
        self._checks.add(check)
        first = wnp.logical_and(failed, code == 0)
        payload = list(payload)
        if check.spec:
            at = self._kinds.index(check.spec)
            payload[at] = [wnp.where(first, wnp.asarray(n).astype(o.dtype), o) for n, o in zip(numbers, payload[at])]
        self._state = (wnp.where(first, np.int32(check.number), code), payload)

    # Operations.

    def default(self, op: Operation, *values: Any) -> Any:
        checks = {check.kind: check for check in self._checks_of(op)}
        out = op.bind(*values)
        if (check := checks.get(DivisionByZeroError)) is not None:
            self._note(check, wnp.any(wnp.equal(values[1], 0)))
        if (check := checks.get(OOBError)) is not None:
            indices, highest, axes = _indices(op, values)
            outside = (indices < 0) | (indices > highest)
            self._note(check, outside.any(), [_first(outside, indices, axes, values[0].shape)])
        if (check := checks.get(NaNError)) is not None:
            results = out if isinstance(out, tuple) else (out,)
            nans = [wnp.isnan(r).any() for r, own in zip(results, op.results) if _is_float(own)]
            self._note(check, wnp.stack(nans).any())
        return out

    @rule("assert")
    def check(self, op: Operation, condition: Any, *numbers: Any) -> tuple:
        if FailedCheckError not in self._enabled:
            return ()
        known = KNOWN.get(op.attributes.get("check", 0))
        if known is None:
            self._note(_plain(op), wnp.logical_not(condition).any(), numbers)
            return ()
        check, debug = known
        if debug:  # its own condition always holds
            condition, *numbers = numbers  # type: ignore[assignment]
        rank = len(condition.shape)
        failed = wnp.logical_not(condition)
        # Of several batch elements the last one that failed.
        place = (failed.size - 1 - wnp.argmax(failed.reshape(-1)[::-1])) if rank else None
        own = []
        for number, (shape, _) in zip(numbers, check.spec):
            batch = len(number.shape) - len(shape)
            flat = wnp.reshape(number, (-1, *shape)) if batch else number
            own.append(flat if not batch else flat[place] if place is not None and batch == rank else flat[0])
        self._note(check, failed.any(), own)
        return ()

    # Calls, branches and loops.

    def call(self, op: Operation, *values: Any) -> Any:
        if not any(map(self._has_checks, op.regions)):
            out = op.bind(*values)
            return out if isinstance(out, tuple) else (out,)
        if _view.region_use(op.name) != _view.WITH_RULES:
            return super().call(op, *values)
        # Its value and derivative are what its rules say. What its checks say has no derivative.
        region = op.regions[1] if op.name == "custom_linear" and len(op.regions) > 1 else op.regions[0]
        self._run(region, [wnp.asarray(stop_gradient(v)) for v in values])
        out = op.bind(*values, regions=tuple(map(_without_asserts, op.regions)))
        return out if isinstance(out, tuple) else (out,)

    def _within(self, region: IR, state: State, values: Sequence[Any]) -> tuple[State, tuple]:
        before, self._state = self._state, state
        try:
            out = tuple(self._run(region, list(values)))
            return self._state, out
        finally:
            self._state = before

    def cond(self, op: Operation, *values: Any) -> Any:
        index, rest = values[0], values[1:]
        branches = [lambda s, *v, region=region: self._within(region, s, v) for region in op.regions]
        if _weft.dtype_kind(_weft.abstract(index)[1]) == "bool":
            self._state, out = _cond(index, branches[1], branches[0], self._state, *rest)
        else:
            self._state, out = _switch(index, branches, self._state, *rest)
        return out

    def scan(self, op: Operation, *values: Any) -> Any:
        if not self._has_checks(op.regions[0]):
            out = op.bind(*values)
            return out if isinstance(out, tuple) else (out,)
        if op.name != "scan":
            return self._checked_after(op, values)
        at, carried = op.attributes["num_consts"], op.attributes["num_carry"]
        constants, carry, xs = values[:at], values[at : at + carried], values[at + carried :]

        def body(state: Any, x: tuple) -> tuple:
            error, own = state
            error, out = self._within(op.regions[0], error, [*constants, *own, *x])
            return (error, out[:carried]), out[carried:]

        length: Any = op.trips if op.trips is not None else _weft.Dim(op._kinds["length"][1][0])
        own: Any
        ys: Any
        (self._state, own), ys = _scan(
            body, (self._state, tuple(carry)), tuple(xs), length=length, reverse=op.attributes["reverse"]
        )
        return (*own, *ys)

    def while_loop(self, op: Operation, *values: Any) -> Any:
        if not any(map(self._has_checks, op.regions)):
            out = op.bind(*values)
            return out if isinstance(out, tuple) else (out,)
        if op.name != "while" or len(op.results) != op.attributes["num_carry"]:
            return self._checked_after(op, values)
        n = op.attributes["num_carry"]
        constants = values[n:]
        condition, step = op.regions
        checks_condition = self._has_checks(condition)

        def go_on(state: Any) -> Any:
            return self._within(condition, state[0], [*state[1], *constants])[1][0]

        def body(state: Any) -> tuple:
            error, out = self._within(step, state[0], [*state[1], *constants])
            if checks_condition:  # that of the next step
                error, _ = self._within(condition, error, [*out, *constants])
            return error, out

        if checks_condition:
            self._state, _ = self._within(condition, self._state, values)
        self._state, own = _while_loop(go_on, body, (self._state, tuple(values[:n])))
        return own

    @rule("spmd")
    def on_devices(self, op: Operation, *values: Any) -> Any:
        """A program of the devices of a mesh: each begins with the error so far, and has its own at the end."""
        region = op.regions[0]
        if not self._has_checks(region):
            return op.bind(*values)
        axes = [(name, int(size)) for name, size in re.findall(r"(\w+)=(\d+)", op.attributes["mesh"])]
        state, tree = _tree.flatten(self._state)
        ranks = [len(_weft.abstract(leaf)[0]) for leaf in state]

        def on_each(leaves: list) -> list:
            error = _tree.unflatten(tree, leaves[: len(state)])
            error, out = self._within(region, error, leaves[len(state) :])
            mine = [_weft.pvary(leaf, [name for name, _ in axes]) for leaf in _tree.leaves(error)]
            return [*(_weft.expand_dims(leaf, 0) for leaf in mine), *out]

        specs = [*map(ShapedArray.like, state), *(p.type for p in region.parameters)]
        bound = [(name, size, True, False) for name, size in axes]
        mask = [False] * len(specs)
        traced = _weft.trace(on_each, specs, [""] * len(specs), "checked", "shard_map", mask, bound)
        whole = lambda rank: "(" + ",".join("-" * rank) + ")"
        cut = ".".join(name for name, _ in axes)
        given = [whole(rank) for rank in ranks]
        captured = [whole(len(_weft.abstract(x)[0])) for x in traced.captures]
        made = [f"({','.join([cut, *'-' * rank])})" for rank in ranks]
        kinds = dict(op._kinds)
        for name, first, last in (("in_shardings", given, captured), ("out_shardings", made, [])):
            kind, text = kinds[name]
            inside = text.removeprefix("shardings(").removesuffix(")")
            kinds[name] = (kind, f"shardings({','.join([*first, *([inside] if inside else []), *last])})")
        operands = [*state, *values, *traced.captures]
        out = list(_weft.bind_program(op.name, operands, kinds, [traced.fn]))
        found, out = out[: len(state)], out[len(state) :]
        code, payload = _tree.unflatten(tree, found)
        failed = code != 0
        at = failed.size - 1 - wnp.argmax(failed[::-1])
        self._state = (code[at], [[n[at] for n in numbers] for numbers in payload])
        return out[0] if len(out) == 1 else tuple(out)

    def _checked_after(self, op: Operation, values: Sequence[Any]) -> tuple:
        """A loop as reverse mode makes it, which has no other interpretation: what is looked for is looked for in its
        results, and its own checks raise when it runs."""
        out = op.bind(*values)
        out = out if isinstance(out, tuple) else (out,)
        if NaNError in self._enabled:
            nans = [wnp.isnan(r).any() for r, own in zip(out, op.results) if _is_float(own)]
            if nans:
                self._note(Check(NaNError, (op.name,), (), op.location.stack), wnp.stack(nans).any())
        return out


def _type(operand: Any) -> Any:
    """The type of an operand."""
    return ShapedArray.like(operand.array) if isinstance(operand, _view.Literal) else operand.type


def _is_float(value: Any) -> bool:
    """Whether it holds floats or complex numbers; a tape of a loop does not."""
    return str(value.type).startswith(("f", "bf", "c"))


def _without_asserts(region: IR) -> IR:
    """A program whose checks are looked for elsewhere."""
    if not any(op.name == "assert" for op in region.walk()):
        return region

    class Silent(Interpreter):
        def default(self, op: Operation, *values: Any) -> Any:
            return op.bind(*values)

        @rule("assert")
        def nothing(self, op: Operation, *values: Any) -> tuple:
            del op, values
            return ()

    return make_ir(lambda *v: tuple(Silent().run(region, *v)))(*(p.type for p in region.parameters))


def _plain(op: Operation) -> Check:
    """The check of a weft.debug.check."""
    types = tuple((tuple(t.shape), str(t.dtype)) for t in map(_type, op.operands[1:]))
    tree = _tree.structure(((0,) * len(types), {}))
    return Check(FailedCheckError, (op.attributes["message"], tree), types, op.location.stack)


def _first(outside: Any, indices: Any, axes: Sequence[int], shape: Sequence[int]) -> Any:
    """The first index that is out of bounds, its axis, and that axis's size. The last dimension of `indices` is over
    `axes`."""
    at = wnp.argmax(outside.reshape(-1))
    axis = wnp.asarray(list(axes), "int32")[at % len(axes)]
    return wnp.stack([indices.reshape(-1)[at].astype("int32"), axis, wnp.asarray(list(shape), "int32")[axis]])


def _indices(op: Operation, values: Sequence[Any]) -> tuple[Any, Any, list[int]]:
    """The indices of an operation, over whose last dimension are axes of its first operand; the highest that are in
    bounds;
    and these axes."""
    shape = values[0].shape
    if op.name in ("dynamic_slice", "dynamic_update_slice"):
        sizes = op.attributes["sizes"] if op.name == "dynamic_slice" else values[1].shape
        starts = wnp.stack([wnp.asarray(v) for v in values[1 if op.name == "dynamic_slice" else 2 :]])
        return starts, wnp.asarray([n - k for n, k in zip(shape, sizes)], starts.dtype), list(range(len(shape)))
    attributes, indices = op.attributes, values[1]
    if op.name == "gather":
        axes, sizes = attributes["start_index_map"], attributes["slice_sizes"]
    else:
        axes = attributes["scatter_dims"]
        left_out = {*attributes["inserted_dims"], *attributes["operand_batch_dims"]}
        window = iter(attributes["update_window_dims"])
        sizes = [1 if d in left_out else values[2].shape[next(window)] for d in range(len(shape))]
    return indices, wnp.asarray([shape[d] - sizes[d] for d in axes], indices.dtype), list(axes)
