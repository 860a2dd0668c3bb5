"""Forward and backward passes handed to compilers of one's own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import _weft
from ._core import tree as _tree
from ._core.errors import type_error
from ._core.shapes import ShapeDtype
from ._core.tracing import flat_function, ir_name, trace_flat
from .ad_checkpoint import Policy, Residual, checkpoint, residual_lines, residuals_of
from .callbacks import pure_callback
from .program import IR

__all__ = ["aot"]


class Pass(IR):
    """The program of a forward or backward pass, as compilers receive it.

    num_results: how many results of the forward pass are the function's; num_residuals: how many of its results after
    them, and of the first arguments of the backward pass, are residuals; residuals: what those are.
    """

    num_results: int
    num_residuals: int
    residuals: list[Residual]


class _Version:
    """The passes of one signature, and what the compilers made of them."""

    forward: Pass
    backward: Pass
    tangent: Any  # residuals, tangents -> tangents of the results
    residuals: list[Residual]
    num_results: int
    out_tree: Any
    specs: list[ShapeDtype]  # of the arguments
    weak: list[bool]
    run_forward: Callable
    run_backward: Callable


class AheadOfTime:
    """What weft.aot returns: a function that runs what the compilers returned. See weft.aot."""

    def __init__(self, function: Callable, fw_compiler: Callable, bw_compiler: Callable, partition: Any):
        self._function, self._fw, self._bw, self._partition = function, fw_compiler, bw_compiler, partition
        self._versions: dict = {}
        self.__name__ = ir_name(function)
        self.__doc__ = function.__doc__
        self.__wrapped__ = function

    def __call__(self, *args, **kwargs):
        flat = flat_function(self._function, args, kwargs)
        version = self._version(flat)
        if any(_weft.is_traced(leaf) for leaf in flat.leaves):
            results = _as_equation(version, flat.leaves, self.__name__)
        else:
            arrays = [_weft.array(leaf, None, False) for leaf in flat.leaves]
            results = _call(version.run_forward, arrays, version.forward, "forward")[: version.num_results]
        return _tree.unflatten(version.out_tree, results)

    def _version(self, flat) -> _Version:
        specs = [_weft.abstract(leaf) for leaf in flat.leaves]
        key = (flat.in_tree, tuple((text, weak) for _, _, weak, text in specs))
        if key not in self._versions:
            self._versions[key] = self._make(flat, specs)
        return self._versions[key]

    def _make(self, flat, specs) -> _Version:
        v = _Version()
        abstract = [ShapeDtype(shape, dtype, weak_type=weak) for shape, dtype, weak, _ in specs]
        called = self._function if self._partition is None else checkpoint(self._function, policy=self._partition)
        args, kwargs = _tree.unflatten(flat.in_tree, abstract)
        inner = flat_function(called, args, kwargs, original=self._function)
        traced = trace_flat(inner, "aot", known=False)
        if any(_weft.is_traced(value) for value in traced.captures):
            raise type_error(
                f"aot: '{self.__name__}' uses a traced value from outside; make it an argument of the function"
            )
        active = [_weft.is_inexact(dtype) for _, dtype, _, _ in specs]
        forward, backward, num_residuals = _weft.vjp(traced, active, as_linearized=True)
        _, v.tangent, _ = _weft.linearize(traced, active)
        v.out_tree, v.num_results = inner.out_tree, traced.num_results
        v.weak = traced.weak_results
        v.specs = abstract
        v.forward, v.backward = Pass(forward, traced.captures), Pass(backward)
        v.residuals = residuals_of(forward, traced.num_results, flat.names)
        for each in (v.forward, v.backward):
            each.num_results, each.num_residuals, each.residuals = v.num_results, num_residuals, v.residuals
        v.run_forward = _compiled(self._fw, v.forward, "fw_compiler")
        v.run_backward = _compiled(self._bw, v.backward, "bw_compiler")
        return v

    def explain(self) -> str:
        """For each signature: the sizes of both passes, and what the forward pass saves, by user line."""
        lines = []
        for (_, types), v in self._versions.items():
            lines.append(f"{self.__name__}({', '.join(text for text, _ in types)})")
            lines.append(f"  forward: {v.forward._fn.num_eqns} equations, backward: {v.backward._fn.num_eqns}")
            lines += ["  saved: " + line for line in residual_lines(v.residuals)]
            for name, ir in (("forward", v.forward), ("backward", v.backward)):
                lines += [f"  {name}, {line}" for line in ir.loops()]
        return "\n".join(lines)


def _compiled(compiler: Callable, ir: IR, what: str) -> Callable:
    run = compiler(ir)
    if not callable(run):
        raise type_error(f"aot: {what} returned {run!r}; expected a function of the program's arguments")
    return run


def _call(run: Callable, args: list, ir: IR, what: str) -> list:
    """Runs what a compiler returned; checks that it gives what the program gives."""
    out = run(*args)
    out = list(out) if isinstance(out, (tuple, list)) else [out]
    if len(out) != len(ir.out_types):
        raise type_error(f"aot: the compiled {what} pass returned {len(out)} arrays, expected {len(ir.out_types)}")
    arrays = [_weft.array(value, None, False) for value in out]
    for i, (array, wanted) in enumerate(zip(arrays, ir.out_types)):
        text = _weft.abstract(array)[3]
        if text != wanted:
            raise type_error(f"aot: result {i} of the compiled {what} pass is {text}, expected {wanted}")
    return arrays


def _traceable(run: Callable) -> bool:
    return isinstance(run, (IR, _weft.JitFunction))


def _as_equation(v: _Version, leaves: list, name: str) -> list:
    """The call as part of a program that is being traced: an equation whose derivative is the backward pass. What is no
    function of Weft's is called back by the program; derivatives of the passes themselves, and forward mode, use their
    IR."""

    def caller(run, ir: IR, what: str):
        specs = ir._fn.result_specs

        def on_values(values: list) -> list:
            if _traceable(run):
                return _call(run, values, ir, what)
            return pure_callback(lambda *args: _call(run, list(args), ir, what), specs, *values)

        return on_values

    run_forward = caller(v.run_forward, v.forward, "forward")
    run_backward = caller(v.run_backward, v.backward, "backward")
    hints: list[str] = [""] * len(leaves)

    def trace(function, specs):
        return _weft.trace(function, specs, hints, name, "aot", [False] * len(specs))

    forward_specs = v.forward._fn.result_specs
    outputs, residuals = forward_specs[: v.num_results], forward_specs[v.num_results :]
    cotangents, tangents = _moving(outputs, outputs), _moving(v.specs, v.specs)

    def pull_back(values: list) -> list:
        """Residuals and cotangents of all results -> cotangents of all arguments, zeros for integers."""
        kept, moving = values[: len(residuals)], _moving(outputs, values[len(residuals) :])
        back = _with_derivative(trace, run_backward, v.backward, residuals + cotangents, kept + moving)
        return _spread(v.specs, back)

    primal = trace(lambda values: run_forward(values)[: v.num_results], v.specs)
    forward = trace(lambda values: _with_derivative(trace, run_forward, v.forward, v.specs, values), v.specs)
    backward = trace(pull_back, residuals + outputs)
    tangent = trace(lambda values: _weft.apply(v.tangent, values), residuals + tangents)
    results = _weft.custom_vjp(primal, forward, backward, leaves, tangent)
    return _weft.with_weak(results, v.weak)


def _moving(specs: list, values: list) -> list:
    """The values whose spec has a tangent."""
    return [value for spec, value in zip(specs, values) if _weft.has_tangents(spec)]


def _spread(specs: list, values: list) -> list:
    """One value per spec: those given where it has a tangent, zeros elsewhere."""
    rest = iter(values)
    return [next(rest) if _weft.has_tangents(s) else _weft.zeros(s) for s in specs]


def _with_derivative(trace: Callable, run: Callable, ir: IR, specs: list, values: list) -> list:
    """A compiled pass as an equation whose own derivative is that of its IR."""
    active = [_weft.has_tangents(s) for s in specs]
    plain = trace(lambda inner: _weft.apply(ir._fn, inner + ir._captures), specs)
    derivative, active_out = _weft.jvp(plain, active)
    count, results = len(specs), ir._fn.result_specs

    def rule(inner: list) -> list:
        """Arguments and tangents of all -> results and tangents of all."""
        out = _weft.apply(derivative, inner[:count] + plain.captures + _moving(specs, inner[count:]))
        primals, rest = out[: len(results)], iter(out[len(results) :])
        return primals + [next(rest) if a else _weft.zeros(s) for s, a in zip(results, active_out)]

    return _weft.custom_jvp(trace(run, specs), trace(rule, specs + specs), values)


def aot(
    function: Callable,
    fw_compiler: Callable[[IR], Callable],
    bw_compiler: Callable[[IR], Callable] | None = None,
    *,
    partition: Policy | Callable | None = None,
) -> AheadOfTime:
    """The function, with its forward and backward pass compiled by functions of yours.

    For each new signature (structure, shapes, dtypes) the function is traced once, and both compilers receive their
    program, a weft.IR, once:

        forward: the function's flat arguments -> its results, then residuals
        backward: residuals, then cotangents of the float and complex results -> cotangents of such arguments

    forward.num_results, backward.num_residuals and `residuals` (what is saved; see weft.saved_residuals) tell the parts
    apart. A residual of type tape[], which loops of unknown length and recursive functions save, has no form outside of
    Weft: a pass takes it and hands it on. The outcome is differentiated like any function: reverse mode runs the
    compiled passes; forward mode and derivatives of higher order use the programs. Its explain() lists the signatures
    and what they save, by user line.

    Args:
        function: the function.
        fw_compiler: program -> any function that takes the program's arrays by position and returns its results as a
            tuple or list: the program itself, weft.jit of it, or something that leaves Weft.
        bw_compiler: the same for the backward pass; None: fw_compiler.
        partition: what is saved: None for all that the backward pass needs, or a policy of weft.checkpoint_policies.

    Returns: function of the same arguments.

    Raises:
        TypeError: a compiler returns no function, or the function something else than the program does.

    Example:
        >>> f = weft.aot(lambda x: wnp.sin(x) ** 2, fw_compiler=lambda ir: ir, bw_compiler=weft.jit)
        >>> weft.grad(f)(0.0)
        Array(0., dtype=float32, weak_type=True)
        >>> print(f.explain().splitlines()[0])
        f(f32[])
    """
    for compiler, what in ((fw_compiler, "fw_compiler"), (bw_compiler, "bw_compiler")):
        if compiler is not None and not callable(compiler):
            raise type_error(f"aot: {what} is {compiler!r}; expected a function of the program")
    return AheadOfTime(function, fw_compiler, bw_compiler or fw_compiler, partition)
