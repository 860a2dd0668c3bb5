"""weft.as_jax: indices out of bounds, and what functions of indices make of shapes that do not fit. Each program runs
under JAX, too."""

import pytest
from as_jax_both import both

OUT_OF_BOUNDS = """
x, i, m = jnp.array([1.0, 2.0, 3.0]), jnp.array([0, 5, -7, -1]), jnp.arange(12.0).reshape(3, 4)
far = jnp.array(7)
def all_of(f, x):
    weights = jnp.arange(1.0, f(x).size + 1).reshape(f(x).shape)
    weighted = lambda x: (f(x) * weights).sum()
    return shown([
        f(x).tolist(), jax.grad(weighted)(x).tolist(), jax.jit(jax.grad(weighted))(x).tolist(),
        jax.jvp(f, (x,), (x + 1,))[1].tolist(), jax.linear_transpose(f, x)(weights)[0].tolist(),
        jax.vmap(jax.grad(weighted))(jnp.stack([x, 2 * x])).tolist(), jax.hessian(weighted)(x).sum().tolist(),
    ])
"""


def test_derivatives_of_what_is_read_out_of_bounds():
    """The nearest element is read, and only one that the index names gets the derivative, unless the mode says so."""
    found = both(
        OUT_OF_BOUNDS
        + """
for mode in (None, "promise_in_bounds", "clip", "fill"):
    out[f"get {mode}"] = all_of(lambda x: x.at[i].get(mode=mode, fill_value=0.0), x)
for name, f in {
    "rows": lambda m: m[i], "columns": lambda m: m[:, i], "pairs": lambda m: m[i, i], "after": lambda m: m[i][:, 1:3],
    "steps": lambda m: m[i, ::2], "new": lambda m: m[None, i], "one": lambda m: m[far],
    "one of a row": lambda m: m[1, far],
    "window": lambda m: jax.lax.dynamic_index_in_dim(m, 7), "take": lambda m: jnp.take(m, i, axis=0, mode="clip"),
    "along": lambda m: jnp.take_along_axis(m, i[:3, None], axis=1, mode="clip"), "flat": lambda m: m.ravel()[i * 9],
}.items():
    out[name] = all_of(f, m)
out["counted"] = shown(jax.jit(jax.grad(lambda x, i: x[i].sum()))(x, i))
out["in a loop"] = shown(jax.grad(lambda x: jax.lax.scan(lambda c, k: (c + x[k[None]].sum(), None), 0.0, i)[0])(x))
"""
    )
    assert found["get None"][1] == ["1.0", "0.0", "4.0"] and found["get clip"][1] == ["4.0", "0.0", "6.0"]


def test_updates_out_of_bounds():
    both(
        OUT_OF_BOUNDS
        + """
for mode in (None, "promise_in_bounds", "clip", "drop"):
    for method in ("set", "add", "mul", "min", "max"):
        update = lambda place: getattr(place, method)(9.0, mode=mode).tolist()
        out[f"{method} {mode}"] = [
            update(x.at[i]), update(m.at[far]), update(m.at[1, far]), update(m.at[i, ::2]), update(m.at[far, 1:3])
        ]
"""
    )


def test_functions_of_indices():
    both("""
zeros = jnp.zeros((3, 4))
def tried(f):
    try:
        return shown(f().tolist())
    except (TypeError, ValueError, OverflowError, IndexError) as error:
        kinds = (OverflowError, ValueError, TypeError, IndexError)  # Weft's are of several
        return next(kind.__name__ for kind in kinds if isinstance(error, kind))
for axis, given in [(1, [[1]]), (1, [[1], [2], [3]]), (1, [[1, 2]]), (1, [[1], [2]]), (0, [[0, 1, 2, 0]]), (0, [[2]]),
                    (0, [[0, 1]]), (-1, [[-1]])]:
    out[f"{given} {axis}"] = [
        tried(lambda: jnp.put_along_axis(zeros, jnp.array(given), 9.0, axis=axis, inplace=False)),
        tried(lambda: jnp.take_along_axis(jnp.arange(12.0).reshape(3, 4), jnp.array(given), axis=axis)),
    ]
put = lambda v: jnp.put_along_axis(zeros, jnp.array([[1]]), v, 1, inplace=False)
out["gradient"] = tried(lambda: jax.grad(lambda v: put(v).sum())(2.0))
for mode in (None, "clip", "wrap"):
    for given in ([0, 9], [-1], [-9], [5, -6]):
        values = jnp.arange(1.0, 3.0)[: len(given)]
        out[f"put {mode} {given}"] = tried(
            lambda: jnp.put(jnp.zeros(4), jnp.array(given), values, mode=mode, inplace=False))
for name in ("cumsum", "cumprod", "nancumsum", "nancumprod"):
    for axis in (None, 0, -1):
        out[f"{name} {axis}"] = tried(lambda: getattr(jnp, name)(jnp.asarray(3), axis=axis))
nothing = jnp.zeros((0, 0))
out["of nothing"] = [nothing[jnp.array([0, -1])].shape, nothing[:, jnp.array([[2]])].shape]
""")


@pytest.mark.parametrize("operand", ["[0, 1, 2]", "(0, 1, 2)", "{}", "{1}", "[]", "[x]"])
def test_operators_refuse_containers(operand):
    """Python would say that they are different from every array, and repeat a list as often as an integer says."""
    found = both(
        """
x, two = jnp.arange(3.0), jnp.int32(2)
def tried(f):
    try:
        return str(f())
    except TypeError:
        return "TypeError"
"""
        + f"given = {operand}\n"
        + """
import operator
for name in ("eq", "ne", "lt", "ge", "add", "sub", "mul", "matmul", "truediv", "floordiv", "mod", "pow", "and_", "or_"):
    f = getattr(operator, name)
    out[name] = [tried(lambda: f(a, b)) for a, b in ((x, given), (given, x), (two, given), (given, two))]
    out[name].append(tried(lambda: jax.jit(lambda x: f(x, given))(x)))
out["none"] = [str(x == None), str(x != None), str(x == "a"), str(x == ...)]
"""
    )
    assert set(found["eq"]) == set(found["mul"]) == {"TypeError"}


def test_integers_that_a_dtype_does_not_hold():
    both("""
def tried(f):
    try:
        return shown(f().tolist())
    except OverflowError:
        return "OverflowError"
for kind in ("int8", "uint8", "int16", "uint16", "int32", "uint32"):
    low, high = int(jnp.iinfo(kind).min), int(jnp.iinfo(kind).max)
    for number in (low - 1, low, high, high + 1, float(high + 1), -2**33):
        out[f"{kind} {number}"] = [
            tried(lambda: getattr(jnp, kind)(number)), tried(lambda: jnp.array(number, kind)),
            tried(lambda: jnp.asarray(number, dtype=kind)),
        ]
    for number in (low - 1, low, high, high + 1):
        out[f"{kind} [{number}]"] = tried(lambda: jnp.array([number], kind))
out["beside an array"] = shown((jnp.zeros(2, "int8") + 300, jnp.zeros(2, "uint8") - 1))
""")
