"""sparsify: functions of arrays as functions of sparse arrays, operation by operation."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

import weft
import weft.numpy as wnp

from ..._core import tree as _tree
from ..._core.errors import not_implemented, type_error
from .. import jaxprs, weft_primitives
from ..transforms import make_jaxpr
from . import products, shapes
from .bcoo import BCOO, bcoo_sum_duplicates, bcoo_update_layout
from .bcsr import BCSR
from .util import WHOLE, JAXSparse, sparsifying


class _OfSparsify(type):
    def __instancecheck__(cls, x: Any) -> bool:
        return bool(sparsifying.get()) and isinstance(x, weft.Tracer)


class SparseTracer(metaclass=_OfSparsify):
    """What values are inside of sparsify(f, use_tracer=True)."""


def sparsify(f: Callable[..., Any], use_tracer: bool = False) -> Callable[..., Any]:
    """f as a function of arrays of which any may be sparse (BCOO, BCSR): its program is computed on stored elements.

    Args:
        use_tracer: values in f are instances of SparseTracer.

    Raises:
        NotImplementedError: an operation would make a whole array of a sparse one, or has no rule.
    """

    @functools.wraps(f)
    def of_sparse(*args: Any, **kwargs: Any) -> Any:
        leaves, structure = _tree.flatten((args, kwargs), is_leaf=_is_sparse)
        described = [_described(leaf) for leaf in leaves]

        def of_leaves(*values: Any) -> Any:
            args, kwargs = _tree.unflatten(structure, values)
            return f(*args, **kwargs)

        token = sparsifying.set(use_tracer)
        try:
            program, shape = make_jaxpr(of_leaves, return_shape=True)(*described)
        finally:
            sparsifying.reset(token)
        by_rows = any(isinstance(leaf, BCSR) for leaf in leaves)
        values = [
            leaf.to_bcoo() if isinstance(leaf, JAXSparse) and not isinstance(leaf, BCOO) else leaf for leaf in leaves
        ]
        results = _run(program.jaxpr, program.consts, values)
        made = [_as_given(result, leaves, values) if by_rows else result for result in results]
        return _tree.unflatten(_tree.structure(shape), made)

    return of_sparse


def _is_sparse(x: Any) -> bool:
    return isinstance(x, JAXSparse)


def _described(leaf: Any) -> Any:
    if isinstance(leaf, (JAXSparse, weft.Tracer)):
        weak = bool(getattr(leaf, "weak_type", False))
        return weft.ShapeDtypeStruct(leaf.shape, leaf.dtype, weak_type=weak)
    return leaf


def _as_given(result: Any, given: Sequence[Any], values: Sequence[Any]) -> Any:
    """By rows, where an array was given so and the result has its places, or is of the same kind."""
    if not isinstance(result, BCOO) or result.n_sparse != 2:
        return result
    for leaf, value in zip(given, values, strict=True):
        if isinstance(leaf, BCSR) and result.indices is value.indices:
            return leaf._with(result.data)
    return BCSR.from_bcoo(result)


def _run(jaxpr: Any, consts: Sequence[Any], args: Sequence[Any]) -> list[Any]:
    values: dict[Any, Any] = {}
    values.update(zip(jaxpr.constvars, consts, strict=True))
    values.update(zip(jaxpr.invars, args, strict=True))

    def read(atom: Any) -> Any:
        value = atom.val if isinstance(atom, jaxprs.Literal) else values[atom]
        return value if isinstance(value, BCOO) else jaxprs._strong(value, atom.aval)

    for eqn in jaxpr.eqns:
        operands = [read(atom) for atom in eqn.invars]
        results = _apply(eqn, operands)
        values.update(zip(eqn.outvars, results, strict=True))
    return [read(atom) for atom in jaxpr.outvars]


def _dense(eqn: Any, operands: Sequence[Any]) -> Sequence[Any]:
    results = eqn.primitive.bind(*operands, **eqn.primitive.get_bind_params(eqn.params))
    return results if isinstance(results, (list, tuple)) else [results]


def _apply(eqn: Any, operands: list[Any]) -> Sequence[Any]:
    if not any(isinstance(x, BCOO) for x in operands):
        return _dense(eqn, operands)
    name = eqn.primitive.name
    rule = _RULES.get(name)
    if rule is not None:
        return rule(eqn, operands)
    if (computed := eqn.params.get(weft_primitives.COMPUTES)) is not None:
        return _run(computed.program, (), operands)
    if len(operands) == 1 and eqn.primitive._ours in weft_primitives.elementwise():
        return [_one_by_one(operands[0], lambda x: _dense(eqn, [x])[0], name, linear=name in _LINEAR)]
    raise NotImplementedError(f"sparse rule for {name} is not implemented.")  # programs look for the whole text


def _is_elementwise(eqn: Any) -> bool:
    """Whether what an equation computes of an element depends on this element alone."""
    if eqn.primitive._ours in weft_primitives.elementwise():
        return True
    computed = eqn.params.get(weft_primitives.COMPUTES)
    regions = eqn.params.get("regions", ())
    inside = computed.program.eqns if computed is not None else [inner for region in regions for inner in region.eqns]
    return bool(inside) and all(hasattr(e.primitive, "_ours") and _is_elementwise(e) for e in inside)


# Of sums of elements they are the sums of what they are of elements.
_LINEAR = frozenset(["conj", "imag", "neg", "real", "reduce_precision"])


def _one_by_one(mat: BCOO, f: Callable[[Any], Any], name: str, linear: bool = False) -> BCOO:
    """A function of single elements, which is 0 at 0, on the stored ones."""
    zero = f(np.zeros((), mat.dtype))
    if bool(wnp.asarray(zero) != 0):
        raise not_implemented(f"sparse rule for {name} is not implemented because it would result in dense output.")
    if not (linear or mat.unique_indices):
        mat = bcoo_sum_duplicates(mat, nse=mat.nse)
    return mat._with(f(mat.data))


def _convert(eqn: Any, operands: list[Any]) -> Sequence[Any]:
    to = eqn.outvars[0].aval.dtype
    linear = wnp.issubdtype(to, np.inexact) or to == operands[0].dtype
    return [_one_by_one(operands[0], lambda x: wnp.asarray(x).astype(to), "convert_element_type", linear=linear)]


def _add(sign: int) -> Callable[..., Any]:
    def rule(eqn: Any, operands: list[Any]) -> Sequence[Any]:
        x, y = operands
        if isinstance(x, BCOO) and isinstance(y, BCOO):
            if x.indices is y.indices:
                return [x._with(x.data + y.data if sign > 0 else x.data - y.data)]
            return [products.add(x, y if sign > 0 else -y)]
        if x.shape != y.shape:
            raise not_implemented(
                "Addition between a sparse array X and a dense array Y is not implemented for shapes "
                f"{x.shape} and {y.shape}: convert X by sparse.todense"
            )
        x, y = (z.todense() if isinstance(z, BCOO) else z for z in operands)
        return [x + y if sign > 0 else x - y]

    return rule


def _mul(eqn: Any, operands: list[Any]) -> Sequence[Any]:
    x, y = operands if isinstance(operands[0], BCOO) else operands[::-1]
    if isinstance(y, BCOO) and x.indices is y.indices and x.unique_indices:
        return [x._with(x.data * y.data)]
    return [products.multiply(x, y)]


def _div(eqn: Any, operands: list[Any]) -> Sequence[Any]:
    x, y = operands
    if isinstance(y, BCOO):
        raise not_implemented("sparse rule for div with a sparse denominator is not implemented.")
    return [products.divide(x, y)]


def _name(eqn: Any, operands: list[Any]) -> Sequence[Any]:
    return [operands[0].todense() if eqn.params["name"] == WHOLE else operands[0]]


def _power(eqn: Any, operands: list[Any]) -> Sequence[Any]:
    if eqn.params["y"] <= 0:
        raise not_implemented("sparse rule for integer_pow with non-positive exponent is not implemented.")
    return [_one_by_one(operands[0], lambda x: _dense(eqn, [x])[0], "integer_pow", linear=eqn.params["y"] == 1)]


def _dot(eqn: Any, operands: list[Any]) -> Sequence[Any]:
    inputs, out = eqn.params["spec"].split("->")
    x, y = inputs.split(",")
    batch = [c for c in x if c in y and c in out]
    contracted = [c for c in x if c in y and c not in out]
    numbers = tuple(tuple([side.index(c) for c in chosen] for side in (x, y)) for chosen in (contracted, batch))
    if any(c not in x + out for c in y) or any(c not in y + out for c in x):
        raise not_implemented("sparse rule for dot_general with sums over one array is not implemented.")
    result = products.bcoo_dot_general(*operands, dimension_numbers=numbers)
    order = [*batch, *(c for c in x if c not in batch + contracted), *(c for c in y if c not in batch + contracted)]
    perm = [order.index(c) for c in out]
    to = eqn.outvars[0].aval.dtype
    result = result if perm == sorted(perm) else result.transpose(perm)
    return [result if result.dtype == to else result.astype(to)]


def _reshape(eqn: Any, operands: list[Any]) -> Sequence[Any]:
    """Dimensions of size 1 come and go; all else is a reshape."""
    (mat,), new = operands, eqn.outvars[0].aval.shape
    i, gone, kept = 0, [], []
    for j, size in enumerate(new):
        while i < mat.ndim and mat.shape[i] == 1 and size != 1:
            gone.append(i)
            i += 1
        if i < mat.ndim and mat.shape[i] == size:
            kept.append(j)
            i += 1
        elif size != 1:
            return [shapes.bcoo_reshape(mat, new_sizes=new)]
    if any(size != 1 for size in mat.shape[i:]):
        return [shapes.bcoo_reshape(mat, new_sizes=new)]
    gone += range(i, mat.ndim)
    mat = shapes.bcoo_squeeze(mat, dimensions=gone) if gone else mat
    if len(kept) == len(new):
        return [mat]
    return [shapes.bcoo_broadcast_in_dim(mat, shape=new, broadcast_dimensions=kept)]


def _broadcast(eqn: Any, operands: list[Any]) -> Sequence[Any]:
    new, dims = eqn.outvars[0].aval.shape, eqn.params["dims"]
    return [shapes.bcoo_broadcast_in_dim(operands[0], shape=new, broadcast_dimensions=dims)]


def _concatenate(eqn: Any, operands: list[Any]) -> Sequence[Any]:
    mats = [x if isinstance(x, BCOO) else BCOO.fromdense(x, nse=x.size) for x in operands]
    n_batch, n_dense = min(m.n_batch for m in mats), min(m.n_dense for m in mats)
    mats = [bcoo_update_layout(m, n_batch=n_batch, n_dense=n_dense) for m in mats]
    return [shapes.bcoo_concatenate(mats, dimension=eqn.params["dim"])]


def _convolution(eqn: Any, operands: list[Any]) -> Sequence[Any]:
    p = eqn.params
    return [
        shapes.bcoo_conv_general_dilated(
            *operands,
            window_strides=tuple(p["strides"]),
            padding=list(zip(p["lo"], p["hi"], strict=True)),
            lhs_dilation=p["lhs_dilation"],
            rhs_dilation=p["rhs_dilation"],
            feature_group_count=p["feature_groups"],
            batch_group_count=p["batch_groups"],
        )
    ]


def _slice(eqn: Any, operands: list[Any]) -> Sequence[Any]:
    p = eqn.params
    return [shapes.bcoo_slice(operands[0], start_indices=p["start"], limit_indices=p["limit"], strides=p["strides"])]


def _sum(eqn: Any, operands: list[Any]) -> Sequence[Any]:
    out = products.bcoo_reduce_sum(operands[0], axes=eqn.params["dims"])
    return [out if out.ndim else out.todense()]


def _call(eqn: Any, operands: list[Any]) -> Sequence[Any]:
    (region,) = eqn.params["regions"]
    one = [x for x in operands if isinstance(x, BCOO)]
    simple = all(_is_elementwise(e) for e in region.eqns if hasattr(e.primitive, "_ours"))
    if eqn.primitive.name == "custom_jvp_call" and len(operands) == len(one) == len(eqn.outvars) == 1 and simple:
        return [_one_by_one(one[0], lambda x: _of_elements(region.jaxpr, x), eqn.primitive.name)]
    return _run(region.jaxpr, (), operands)


def _of_elements(jaxpr: Any, x: Any) -> Any:
    return jaxprs.eval_jaxpr(jaxpr, (), wnp.asarray(x))[0]


def _plain(value: Any) -> Any:
    """What a loop or branch hands on: nothing is known of the order of places."""
    return BCOO((value.data, value.indices), shape=value.shape) if isinstance(value, BCOO) else value


def _while(eqn: Any, operands: list[Any]) -> Sequence[Any]:
    condition, body = eqn.params["regions"]
    n = eqn.params["num_carry"]
    constants = operands[n:]

    def again(carry: Any) -> Any:
        return _run(condition.jaxpr, (), [*carry, *constants])[0]

    def step(carry: Any) -> Any:
        return [_plain(x) for x in _run(body.jaxpr, (), [*carry, *constants])]

    return weft.while_loop(again, step, [_plain(x) for x in operands[:n]])


def _scan(eqn: Any, operands: list[Any]) -> Sequence[Any]:
    (body,) = eqn.params["regions"]
    consts, n = eqn.params["num_consts"], eqn.params["num_carry"]
    constants, carry, xs = operands[:consts], operands[consts : consts + n], operands[consts + n :]
    if any(isinstance(x, BCOO) for x in xs):
        raise not_implemented("sparse rule for scan over the elements of a sparse array is not implemented.")

    def step(carry: Any, x: Any) -> Any:
        results = _run(body.jaxpr, (), [*constants, *carry, *x])
        return [_plain(v) for v in results[:n]], results[n:]

    length = int(eqn.params["length"])
    carry, ys = weft.scan(step, [_plain(x) for x in carry], xs, length=length, reverse=eqn.params["reverse"])
    return [*carry, *ys]


def _cond(eqn: Any, operands: list[Any]) -> Sequence[Any]:
    which, *rest = operands
    branches = [
        lambda *xs, region=region: [_plain(x) for x in _run(region.jaxpr, (), xs)] for region in eqn.params["regions"]
    ]
    shown = [_tree.structure(weft.eval_shape(branch, *rest)) for branch in branches]
    for other in shown[1:]:
        if other != shown[0]:
            raise type_error(
                "sparsified true_fun output must have same type structure as sparsified false_fun output: "
                f"{other} and {shown[0]}"
            )
    return weft.switch(wnp.asarray(which).astype("int32"), branches, *rest)


_RULES: dict[str, Callable[..., Sequence[Any]]] = {
    "add": _add(1),
    "broadcast_in_dim": _broadcast,
    "concatenate": _concatenate,
    "cond": _cond,
    "conv_general_dilated": _convolution,
    "convert_element_type": _convert,
    "custom_jvp_call": _call,
    "custom_vjp_call": _call,
    "div": _div,
    "dot_general": _dot,
    "dynamic_slice": lambda eqn, x: [shapes.bcoo_dynamic_slice(x[0], x[1:], eqn.params["sizes"])],
    "integer_pow": _power,
    "jit": _call,
    "mul": _mul,
    "name": _name,
    "reduce_sum": _sum,
    "remat": _call,
    "reshape": _reshape,
    "rev": lambda eqn, x: [shapes.bcoo_rev(x[0], dimensions=eqn.params["dims"])],
    "scan": _scan,
    "slice": _slice,
    "sub": _add(-1),
    "transpose": lambda eqn, x: [shapes.bcoo_transpose(x[0], permutation=eqn.params["perm"])],
    "while": _while,
}


class SparsifyValue(NamedTuple):
    """An array by the numbers of its parts in a SparsifyEnv; of a sparse one there are indices."""

    shape: tuple[int, ...]
    data_ref: int | None
    indices_ref: int | None = None
    indptr_ref: int | None = None
    indices_sorted: bool = False
    unique_indices: bool = False


class SparsifyEnv:
    """Arrays, by their numbers: sparse arrays may share their places."""

    def __init__(self, bufs: Sequence[Any] = ()):
        self._buffers = list(bufs)

    def _push(self, part: Any) -> int:
        self._buffers.append(wnp.asarray(part))
        return len(self._buffers) - 1

    def dense(self, data: Any) -> SparsifyValue:
        """An array."""
        return SparsifyValue(tuple(wnp.shape(data)), self._push(data))

    def sparse(
        self,
        shape: Sequence[int],
        data: Any = None,
        indices: Any = None,
        *,
        data_ref: int | None = None,
        indices_ref: int | None = None,
        indices_sorted: bool = False,
        unique_indices: bool = False,
    ) -> SparsifyValue:
        """A BCOO, of parts that are given or there already."""
        return SparsifyValue(
            tuple(shape),
            self._push(data) if data_ref is None else data_ref,
            self._push(indices) if indices_ref is None else indices_ref,
            None,
            indices_sorted,
            unique_indices,
        )


def _is_value(x: Any) -> bool:
    return isinstance(x, SparsifyValue)


def arrays_to_spvalues(spenv: SparsifyEnv, args: Any) -> Any:
    """The arrays of a tree as values of an environment."""

    def value(x: Any) -> SparsifyValue:
        if not isinstance(x, BCOO):
            return spenv.dense(x)
        flags = {"indices_sorted": x.indices_sorted, "unique_indices": x.unique_indices}
        return spenv.sparse(x.shape, x.data, x.indices, **flags)

    return _tree.map(value, args, is_leaf=_is_sparse)


def spvalues_to_arrays(spenv: SparsifyEnv, spvalues: Any) -> Any:
    """The values of an environment as arrays."""

    def array(value: SparsifyValue) -> Any:
        data = spenv._buffers[value.data_ref]  # type: ignore[index]
        if value.indices_ref is None:
            return data
        flags = {"indices_sorted": value.indices_sorted, "unique_indices": value.unique_indices}
        return BCOO((data, spenv._buffers[value.indices_ref]), shape=value.shape, **flags)

    return _tree.map(array, spvalues, is_leaf=_is_value)


def sparsify_raw(f: Callable[..., Any]) -> Callable[..., Any]:
    """sparsify on values of an environment: (flat list of the results' values, structure of the results)."""

    def of_values(spenv: SparsifyEnv, *spvalues: Any) -> Any:
        results = sparsify(f)(*spvalues_to_arrays(spenv, spvalues))
        leaves, structure = _tree.flatten(results, is_leaf=_is_sparse)
        return arrays_to_spvalues(spenv, leaves), structure

    return of_values
