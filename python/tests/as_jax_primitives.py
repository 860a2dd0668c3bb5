"""Primitives of a library's own, as JAX's documentation and libraries write them. Run by JAX itself, and by
`python -m weft.as_jax`: each program prints the same numbers, as one line of JSON."""

import functools
import json

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.core import ShapedArray
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

# A primitive of three operands that is linear in two ways, as JAX's page on primitives has it.
multiply_add_p = Primitive("multiply_add")
multiply_add_p.def_impl(lambda x, y, z: np.add(np.multiply(x, y), z))
multiply_add_p.def_abstract_eval(lambda x, y, z: ShapedArray(np.broadcast_shapes(x.shape, y.shape, z.shape), x.dtype))
mlir.register_lowering(multiply_add_p, mlir.lower_fun(lambda x, y, z: x * y + z, multiple_results=False))


def multiply_add(x, y, z):
    return multiply_add_p.bind(x, y, z)


def multiply_add_jvp(primals, tangents):
    x, y, z = primals
    made = [jnp.zeros_like(x) if type(t) is ad.Zero else t for t in tangents]
    return multiply_add(x, y, z), multiply_add(made[0], y, multiply_add(x, made[1], made[2]))


def multiply_add_transpose(ct, x, y, z):
    ct_z = ct if ad.is_undefined_primal(z) else None
    if not ad.is_undefined_primal(x):
        if not ad.is_undefined_primal(y):
            return None, None, ct_z
        return None, multiply_add(x, ct, jnp.zeros_like(x)), ct_z
    return multiply_add(ct, y, jnp.zeros_like(y)), None, ct_z


ad.primitive_jvps[multiply_add_p] = multiply_add_jvp
ad.primitive_transposes[multiply_add_p] = multiply_add_transpose
batching.defbroadcasting(multiply_add_p)


def square_add(a, b):
    return multiply_add(a, a, b)


def documentation():
    a, b = jnp.arange(1.0, 4.0), jnp.ones(3)
    return (
        square_add(2.0, 10.0),
        jax.jit(square_add)(2.0, 10.0),
        jax.jvp(square_add, (2.0, 10.0), (1.0, 1.0)),
        jax.jit(lambda p, t: jax.jvp(square_add, p, t))((2.0, 10.0), (1.0, 1.0)),
        jax.grad(square_add)(2.0, 10.0),
        jax.jit(jax.grad(square_add, (0, 1)))(2.0, 10.0),
        jax.vmap(square_add)(a, b),
        jax.vmap(square_add, (0, None))(a, 2.0),
        jax.jit(jax.vmap(jax.grad(square_add)))(a, b),
        jax.grad(jax.grad(lambda x: square_add(x, x) * x))(1.5),
    )


# Several results, a parameter, rules one by one.
split_p = Primitive("split_of_test")
split_p.multiple_results = True


def _split(x, *, at):
    return [x[:at], x[at:]]


split_p.def_impl(_split)


@split_p.def_abstract_eval
def _split_types(x, *, at):
    return [x.update(shape=(at,)), x.update(shape=(x.shape[0] - at,))]


mlir.register_lowering(split_p, mlir.lower_fun(_split, multiple_results=True))
ad.deflinear2(split_p, lambda cts, x, *, at: [jnp.concatenate([ad.instantiate_zeros(ct) for ct in cts])])


@functools.partial(batching.primitive_batchers.__setitem__, split_p)
def _split_batch(operands, axes, *, at):
    (x,), (axis,) = operands, axes
    parts = jnp.moveaxis(x, axis, 0)
    return [parts[:, :at], parts[:, at:]], [0, 0]


def several_results():
    x = jnp.arange(5.0)

    def f(x):
        a, b = split_p.bind(x, at=2)
        return (a**2).sum() + (b**3).sum()

    def g(x):
        a, _ = split_p.bind(x, at=2)
        return (a**3).sum()

    rows = jnp.stack([x, 2 * x])
    return (
        f(x),
        jax.jit(jax.grad(f))(x),
        jax.grad(g)(x),
        jax.vmap(f)(rows),
        jax.vmap(jax.grad(f), in_axes=1)(rows.T),
        jax.linear_transpose(lambda v: split_p.bind(v, at=1), x)([jnp.ones(1), 2 * jnp.ones(4)]),
    )


# Rules by the functions that define several at a time.
twist_p = Primitive("twist")
twist_p.def_impl(lambda x, y: jnp.sin(x) * y)
twist_p.def_abstract_eval(lambda x, y: ShapedArray(x.shape, x.dtype))
mlir.register_lowering(twist_p, mlir.lower_fun(lambda x, y: jnp.sin(x) * y, multiple_results=False))
ad.defjvp(twist_p, lambda t, x, y: t * jnp.cos(x) * y, lambda t, x, y: jnp.sin(x) * t)
batching.defbroadcasting(twist_p)

root_p = Primitive("root_of_test")
root_p.def_impl(jnp.sqrt)
root_p.def_abstract_eval(lambda x: x)
mlir.register_lowering(root_p, mlir.lower_fun(jnp.sqrt, multiple_results=False))
ad.defjvp2(root_p, lambda t, y, x: t / (2 * y))
batching.defvectorized(root_p)

outer_p = Primitive("outer_of_test")
outer_p.def_impl(jnp.outer)
outer_p.def_abstract_eval(lambda x, y: ShapedArray(x.shape + y.shape, x.dtype))
mlir.register_lowering(outer_p, mlir.lower_fun(jnp.outer, multiple_results=False))
ad.defbilinear(outer_p, lambda ct, x, y: ct @ y, lambda ct, x, y: x @ ct)

twice_p = Primitive("twice-of-test")  # no word
twice_p.def_impl(lambda x: 2 * x)
twice_p.def_abstract_eval(lambda x: x)
mlir.register_lowering(twice_p, mlir.lower_fun(lambda x: 2 * x, multiple_results=False))
ad.deflinear(twice_p, lambda ct: [2 * ct])
batching.defvectorized(twice_p)

total_p = Primitive("total")
total_p.def_impl(lambda x, *, axes: x.sum(axes))
total_p.def_abstract_eval(lambda x, *, axes: x.update(shape=tuple(n for i, n in enumerate(x.shape) if i not in axes)))
mlir.register_lowering(total_p, mlir.lower_fun(lambda x, *, axes: x.sum(axes), multiple_results=False))
batching.defreducer(total_p)


def defined_at_once():
    x, y = jnp.array([0.3, 0.5]), jnp.array([2.0, 3.0])
    return (
        jax.grad(lambda x: twist_p.bind(x, y).sum())(x),
        jax.grad(lambda y: twist_p.bind(x, y).sum())(y),
        jax.hessian(lambda x: twist_p.bind(x, x).sum())(x),
        jax.vmap(jax.grad(twist_p.bind))(x, y),
        jax.jit(jax.grad(jax.grad(root_p.bind)))(4.0),
        jax.grad(lambda x: (outer_p.bind(x, y) ** 2).sum())(x),
        jax.jacobian(lambda y: outer_p.bind(x, y))(y),
        jax.jvp(outer_p.bind, (x, y), (y, x)),
        jax.vmap(jax.grad(lambda v: twice_p.bind(v) * 3))(x),
        jax.vmap(lambda v: total_p.bind(v, axes=(0,)), in_axes=1)(jnp.arange(6.0).reshape(2, 3)),
    )


# A parameter that is a container, rules of vmap with the axis, and a result that is the same for the whole batch.
poly_p = Primitive("poly")
poly_p.def_impl(lambda x, *, given: sum(c * x**i for i, c in enumerate(given)))
poly_p.def_abstract_eval(lambda x, *, given: ShapedArray(x.shape, x.dtype))
mlir.register_lowering(poly_p, mlir.lower_fun(poly_p.impl, multiple_results=False))
ad.primitive_jvps[poly_p] = lambda primals, tangents, *, given: (
    poly_p.bind(*primals, given=given),
    poly_p.bind(*primals, given=tuple(i * c for i, c in enumerate(given))[1:] or (0.0,)) * tangents[0],
)
sizes = []


def _poly_batch(axis_data, operands, axes, *, given):
    sizes.append(axis_data.size)
    return poly_p.bind(*operands, given=given), axes[0]


batching.fancy_primitive_batchers[poly_p] = _poly_batch

any_p = Primitive("any_of_batch")
any_p.def_impl(jnp.any)
any_p.def_abstract_eval(lambda x: ShapedArray((), jnp.bool_.dtype))
mlir.register_lowering(any_p, mlir.lower_fun(jnp.any, multiple_results=False))
batching.primitive_batchers[any_p] = lambda operands, axes: (any_p.bind(*operands), None)

size_p = Primitive("size_of_batch")
size_p.def_impl(lambda x: x)
size_p.def_abstract_eval(lambda x: x)
mlir.register_lowering(size_p, lambda ctx, x: [x])  # passes its operand on
batching.axis_primitive_batchers[size_p] = lambda size, name, _, operands, axes: (operands[0] * size, axes[0])


def parameters_and_axes():
    x = jnp.array([1.0, 2.0, 3.0])
    given = (1.0, 2.0, 3.0)
    out = (
        poly_p.bind(2.0, given=given),
        jax.jit(lambda x: poly_p.bind(x, given=given))(2.0),
        jax.grad(jax.grad(lambda x: poly_p.bind(x, given=given)))(2.0),
        jax.vmap(jax.grad(lambda x: poly_p.bind(x, given=given)))(x),
        jax.vmap(lambda x: any_p.bind(x > 2.5) * 1.0, out_axes=None)(x),
        jax.vmap(lambda x: jnp.where(any_p.bind(x > 2.5), x, 0.0))(x),
        jax.vmap(lambda x: any_p.bind(x > 3.5))(x),
        jax.jit(size_p.bind)(2.0),
        jax.vmap(size_p.bind)(x),
        jax.vmap(jax.vmap(size_p.bind))(x.reshape(1, 3)),
    )
    assert set(sizes) == {3}, sizes
    return out


def inside_of_control_flow():
    def loop(x):
        def step(carry, t):
            carry = multiply_add(carry, t, x)
            return carry, twist_p.bind(carry, t)

        last, all_ = lax.scan(step, x, jnp.array([0.5, 1.5, 2.0]))
        return last + all_.sum()

    def branch(x):
        return lax.cond(x > 1, lambda v: twist_p.bind(v, v), lambda v: twice_p.bind(v), x)

    def until(x):
        return lax.while_loop(lambda v: v < 100, lambda v: multiply_add(v, v, 1.0), x)

    x = jnp.array([0.5, 1.5])
    return (
        loop(0.5),
        jax.jit(jax.grad(loop))(0.5),
        jax.vmap(jax.grad(loop))(x),
        jax.vmap(branch)(x),
        jax.vmap(jax.grad(branch))(x),
        until(1.5),
        jax.jvp(until, (1.5,), (1.0,)),
        jax.grad(jax.checkpoint(loop))(0.5),
    )


def programs():
    closed = jax.make_jaxpr(lambda x: jnp.exp(split_p.bind(x, at=1)[0]))(jnp.arange(3.0))
    found = next(eqn for eqn in closed.jaxpr.eqns if eqn.primitive is split_p)
    assert found.params == {"at": 1}, found.params
    again = jax.core.eval_jaxpr(closed.jaxpr, closed.consts, jnp.arange(3.0) + 1)
    rule = ad.primitive_transposes[multiply_add_p]
    assert rule is multiply_add_transpose
    types = split_p.abstract_eval(ShapedArray((4,), jnp.float32), at=1)[0]
    return again, [t.shape for t in types], isinstance(lax.sin_p, Primitive)


PROGRAMS = [
    documentation,
    several_results,
    defined_at_once,
    parameters_and_axes,
    inside_of_control_flow,
    programs,
]


def main():
    leaves = lambda f: [np.asarray(x).tolist() for x in jax.tree.leaves(f())]
    print(json.dumps({f.__name__: leaves(f) for f in PROGRAMS}))


if __name__ == "__main__":
    main()
