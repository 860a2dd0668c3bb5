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


def test_boxes_from_outside_change_their_structure_in_jitted_functions():
    found = both(
        _BOXES
        + """
traced = []

@jax.jit
def of_argument(box, x):
    traced.append(1)
    box.set(x if box.get() is None else [x, x])

box, seen = Box(None), []
for x in (1.0, 2.0, 3.0, 4.0):
    of_argument(box, x)
    seen.append(shown(box.get()))
out["of an argument"] = seen, len(traced)

traced, box, other = [], Box(None), Box(None)

@jax.jit
def closed_over():
    traced.append(1)
    held = box.get()
    box.set(0 if held is None else held + 1 if not isinstance(held, dict) else dict(held, b=5))
    if isinstance(held, dict):
        other.set(3)

for _ in range(3):
    closed_over()
out["closed over"], before = shown(box.get()), len(traced)
box.set(None)
closed_over(); closed_over()
out["a structure that it had"] = shown(box.get()), len(traced) - before
box.set({"a": jnp.int32(1)})
closed_over(); closed_over()
out["two boxes"] = shown(box.get()), shown(other.get())

nested = Box([])

@jax.jit
def around():
    @jax.jit
    def inner():
        nested.set([*nested.get(), 1.0])
    inner(); inner()
    return len(nested.get())

around()
out["nested"] = shown(nested.get())

def moved(box, x):
    box.set(box.get() + x)
    return x

box, tangent = Box(5.0), Box(1.0)
out["jvp"] = shown(jax.jvp(moved, (box, 2.0), (tangent, 1.0))), float(box.get()), float(tangent.get())
"""
    )
    assert (
        found["a structure that it had"][1] == 0
        and found["nested"] == ["1.0", "1.0"]
        and found["jvp"][1:] == [7.0, 2.0]
    )


def test_boxes_keep_their_structure_in_loops():
    found = lines(
        _BOXES
        + """
box = Box(jnp.float32(1))
try:
    lax.fori_loop(0, 3, lambda i, c: box.set([box.get()]), None)
except TypeError as error:
    out["error"] = "type-changing mutations not allowed" in str(error)
out["kept"] = float(box.get())
""",
        "-m",
        "weft.as_jax",
    )
    assert found == {"error": True, "kept": 1.0}


def test_logs():
    found = both(
        """
        from jax._src.hijax import Box, Log

        log, traced = Log(), []

        @jax.jit
        def f(log, x):
            traced.append(1)
            log.append("x", x + 1)
            inner = jax.jit(lambda: log.append("x", x + 2) or log.append("y", 2 * x))
            inner()
            inner()

        f(log, 0)
        before = len(traced)
        f(log, 5)
        out["jit"] = shown(log._dct), len(traced) - before

        log, box = Log(), Box(0)

        def body(_, x):
            log.append("x", x + box.get())
            jax.jit(lambda: log.append("twice", 2 * x))()
            box.set(box.get() + 1)
            return (), x

        _, ys = lax.scan(body, (), jnp.arange(3))
        out["scan"] = shown(log._dct), shown(ys)
        """
    )
    assert found["jit"][1] == 0 and found["scan"][0] == {"x": ["[0 2 4]"], "twice": ["[0 2 4]"]}


def test_a_reference_that_a_function_gets_twice():
    both(
        """
ref = jax.new_ref(0.0)
f = jax.custom_vjp(lambda x_ref, y_ref: x_ref[...])
f.defvjp(lambda x_ref, y_ref: (0.0, None), lambda _, ct: (None, None))
g = jax.custom_vjp(lambda ref: ref)
g.defvjp(lambda ref: (ref, None), lambda *_: (None,))
programs = {
    "custom_vjp": (lambda: f(ref, ref), "x_ref and y_ref"),
    "jit": (lambda: jax.jit(f)(ref, ref), "x_ref and y_ref"),
    "vjp": (lambda: jax.vjp(f, ref, ref), "x_ref and y_ref"),
    "cond": (lambda: lax.cond(True, lambda a, b: a[...], lambda a, b: b[...], ref, ref), "at both a and b"),
    "cond and outside": (lambda: lax.cond(True, lambda a: a[...] + ref[...], lambda a: a[...], ref),
                         "closed over and passed as the argument a"),
    "scan": (lambda: lax.scan(lambda c, _: (c, None), (ref, ref), None, length=1), "appeared at both c[0] and c[1]"),
    "scan and outside": (lambda: lax.scan(lambda c, _: (ref[...] + c[...], None), ref, None, length=1),
                         "closed over and passed as the argument c"),
    "returned": (lambda: g(ref), "returned a mutable array"),
}
for name, (program, phrase) in programs.items():
    try:
        program()
        out[name] = "nothing is raised"
    except Exception as error:
        out[name] = [isinstance(error, ValueError), phrase in str(error)]
"""
    )


def test_equations_of_references():
    found = both(
        """
        from jax._src.state.discharge import discharge_state
        from jax._src.state.types import shaped_array_ref
        from jax._src.state.primitives import addupdate_p, get_p, ref_addupdate, ref_swap, swap_p

        one, row = shaped_array_ref((), np.int32), shaped_array_ref((1, 2), np.int32)
        def text(f, *kinds):
            return str(jax.make_jaxpr(f)(*kinds))
        def write(ref):
            ref[:, 0] = jnp.int32([5])
        out["get"] = text(lambda r: r[...], one), text(lambda r: r[:, 0], row)
        out["several"] = [
            [e.primitive in (get_p, swap_p, addupdate_p) for e in jax.make_jaxpr(f)(one).eqns]
            for f in (
                lambda r: (ref_addupdate(r, ..., jnp.int32(1)), r[...]),
                lambda r: (ref_swap(r, ..., jnp.int32(1)), r[...])[1],
                lambda r: jnp.sin(r[...] * 2.0),
            )
        ]
        out["swap"] = text(lambda r: ref_swap(r, ..., jnp.int32(2)), one)
        out["set"] = "a[:,0] <- " in text(write, row)
        out["add"] = "a[...] += 2" in text(lambda r: ref_addupdate(r, ..., jnp.int32(2)), one)
        closed = discharge_state(jax.make_jaxpr(lambda r: (write(r), r[0, 0] * 2)[1])(row))
        out["values"] = shown(jax.core.eval_jaxpr(closed.jaxpr, closed.consts, jnp.int32([[1, 2]])))
        """
    )
    assert found["get"][0] == "{ lambda ; a:Ref{i32[]}. let b:i32[] <- a[...] in (b,) }"


def test_references_that_derivatives_leave_alone():
    both(
        """
        seen = jax.new_ref(1.0, kind="no_grad_no_remat")
        @jax.jit
        def f(x, ref):
            ref[...] += x * x
            return x * x
        out["jit"] = shown([jax.grad(f)(2.0, seen), seen[...]])
        out["remat"] = shown([jax.grad(jax.remat(lambda x: f(x, seen)))(3.0), seen[...]])
        """
    )


def test_pullbacks_of_functions_that_stash_cotangents_add_into_references():
    both(
        """
        @jax.custom_vjp
        def stash(ref, x):
            return x
        stash.defvjp(lambda ref, x: (x, ref), lambda ref, ct: (ref.__setitem__(..., ct), ct))
        held, total = jax.new_ref(jnp.float32(0.0)), jax.new_ref(jnp.float32(1.0))
        _, pull = jax.vjp(lambda x: jnp.sin(stash(held, jnp.sin(x))), jnp.float32(1.0))
        pull.with_refs(total)(jnp.float32(1.0))
        out["held"] = shown([held[...].round(5), total[...].round(5)])
        """
    )


def test_rules_give_on_the_references_that_they_get():
    """A reference that was made in the function that is differentiated, whose trace is over when the rule runs."""
    both(
        """
        f = jax.custom_vjp(lambda ref: ref[...] * 2.0)
        f.defvjp(lambda ref: (f(ref), None), lambda _, g: (3.0 * g,))
        for name, g in {"plain": f, "jit": jax.jit(f)}.items():
            y, pull = jax.vjp(lambda x: g(jax.new_ref(x)), 2.0)
            out[name] = [float(y), float(pull(1.0)[0])]
        """
    )


def test_addresses_of_references():
    both(
        """
        ref = jax.new_ref(jnp.arange(3.0))
        first = ref.unsafe_buffer_pointer()
        out["kind"] = type(first).__name__
        out["read"] = first == ref.unsafe_buffer_pointer()
        """
    )


def test_programs_of_functions_that_use_references_from_outside():
    found = both(
        """
        x, y, z = jax.new_ref(jnp.zeros(3)), jax.new_ref(1.0), jax.new_ref(5.0)

        def add(a):
            x[0] += a
            y[...] = y[...] * 2
            return x[1] * a

        def run(name, f, *args):
            closed = jax.make_jaxpr(f)(*args)
            kinds = sorted({type(e).__name__ for e in closed.effects})
            before = [x[...].tolist(), float(y[...])]
            results = [np.asarray(r).tolist() for r in jax.core.eval_jaxpr(closed.jaxpr, closed.consts, *args)]
            # A call does the same, and what was only looked at has changed nothing.
            again = jax.tree.map(lambda r: np.asarray(r).tolist(), jax.tree.leaves(f(*args)))
            out[name] = [kinds, len(closed.consts), before, results, again, x[...].tolist(), float(y[...])]

        run("as it is", add, 2.0)
        run("jit", jax.jit(add), 2.0)
        run("reads", lambda a: y[...] + a, 1.0)
        run("loop", lambda a: lax.fori_loop(0, 3, lambda i, c: (add(c), c)[1], a), 1.0)
        run("none", lambda a: a * 2, 1.0)
        out["unused"] = float(z[...])
        """
    )
    assert found["reads"][:2] == [["ReadEffect"], 1] and found["none"][:2] == [[], 0]
