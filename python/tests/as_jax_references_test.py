"""weft.as_jax: programs of references as JAX shows them, parts of references, and boxes, whose structure changes.
Programs run under JAX, too, where it is installed."""

from as_jax_both import both, lines


def test_parts_of_references():
    both(
        """
        from jax._src.state.primitives import ref_get, ref_swap

        @jax.jit
        def f(x):
            ref = jax.new_ref(x)
            part = ref.at[1:]
            out = [ref_get(part, 0), ref_swap(part, slice(0, 2), jnp.float32([7, 8])), ref_get(part.at[1:], ...)]
            return out, jax.freeze(ref)

        out["parts"] = shown(f(jnp.arange(4.0)))
        """
    )


def test_programs_of_references():
    found = both(
        """
        from jax._src.state.discharge import discharge_state
        from jax._src.state.types import AbstractRef, AccumEffect, ReadEffect, WriteEffect, shaped_array_ref
        from jax._src.state.primitives import ref_addupdate

        def f(a, b, c, x):
            a[0] = a[1] + x
            b[...]
            ref_addupdate(c, ..., x)
            return a[...].sum()

        kind = shaped_array_ref((3,), np.float32)
        one = shaped_array_ref((), np.float32)
        number = jax.core.ShapedArray((), np.dtype("float32"))
        closed = jax.make_jaxpr(f)(kind, one, shaped_array_ref((), np.float32), number)
        places = closed.jaxpr.invars
        out["types"] = [type(v.aval).__name__ for v in places], [v.aval.shape for v in places], len(closed.out_avals)
        out["effects"] = sorted((type(e).__name__, places.index(e.input)) for e in closed.effects)
        values = [jnp.arange(3.0), jnp.float32(1), jnp.float32(2), jnp.float32(3)]
        whole = discharge_state(closed)
        out["whole"] = len(whole.outvars), shown(jax.core.eval_jaxpr(whole.jaxpr, whole.consts, *values))
        half = discharge_state(closed, should_discharge=[True, False, False, False])
        out["half"] = len(half.outvars), [type(v.aval).__name__ for v in half.invars]
        out["left"] = sorted((type(e).__name__, half.jaxpr.invars.index(e.input)) for e in half.effects)

        def loop(a):
            lax.fori_loop(0, 3, lambda i, _: a.__setitem__(..., a[...] * 2), None)

        out["loop"] = sorted(type(e).__name__ for e in jax.make_jaxpr(loop)(AbstractRef(number)).effects)
        """
    )
    assert found["effects"] == [["AccumEffect", 2], ["ReadEffect", 0], ["ReadEffect", 1], ["WriteEffect", 0]]
    assert found["loop"] == ["ReadEffect", "WriteEffect"]


_BOXES = """
from jax._src.hijax import Box, box_get, box_set, new_box
"""


def test_boxes():
    found = both(
        _BOXES
        + """
traced = []

@jax.jit
def add(box, x):
    traced.append(1)
    box.set(box.get() + x)

@jax.jit
def twice(x):
    inner = new_box()
    inner.set(x)
    jax.jit(lambda: inner.set(inner.get() * 2))()
    return inner.get()

box = Box(jnp.float32(1))
other = Box(jnp.float32(10))
for x in (1.0, 2.0):
    add(box, x)
    add(other, x)
out["jit"] = float(box.get()), float(other.get()), len(traced)
out["inside"] = float(twice(3.0))

@jax.jit
def closed_over(x):
    box.set(box.get() + x)
    jax.lax.scan(lambda c, _: (box.set(box.get() * 2), None), None, None, length=3)
    return jax.lax.cond(x > 0, lambda: box.get(), lambda: x)

out["closed over"] = float(closed_over(2.0)), float(box.get())
out["grad"] = float(jax.grad(lambda x: box.set(jax.lax.stop_gradient(x)) or x * x)(3.0)), float(box.get())
"""
    )
    assert found["jit"] == [4.0, 13.0, 1] and found["closed over"] == [48.0, 48.0]


def test_boxes_whose_structure_changes():
    found = both(
        _BOXES
        + """
traced = []
box = Box(None)

@jax.jit
def f(x):
    traced.append(1)
    held = box.get()
    return x if held is None else sum(jax.tree.leaves(held)) * x

seen = []
for value in (None, jnp.float32(2), jnp.float32(3), {"a": jnp.float32(1), "b": jnp.float32(5)}, None, jnp.ones(2)):
    box.set(value)
    seen.append(shown(f(2.0)))
out["seen"] = seen
"""
    )
    assert found["seen"][:4] == ["2.0", "4.0", "6.0", "12.0"]


def test_boxes_from_outside_keep_their_structure():
    found = lines(
        _BOXES
        + """
def outcome(f, *args):
    try:
        return str(f(*args))
    except Exception as error:
        return type(error).__name__, "type-changing mutations not allowed" in str(error)

box = Box(jnp.float32(1))
out["jit"] = outcome(jax.jit(lambda: box.set(jnp.ones(2))))
out["loop"] = outcome(lambda: lax.fori_loop(0, 3, lambda i, c: box.set([box.get()]), None))
out["kept"] = float(box.get())
""",
        "-m",
        "weft.as_jax",
    )
    assert found == {"jit": ["NotImplementedError", True], "loop": ["ArgumentError", True], "kept": 1.0}
