"""References, beside JAX's: one text of programs for both. Where JAX raises, Weft does, with a message that says
where the
reference was made."""

import pathlib
import re
import types

import numpy as np
import pytest

import weft
import weft.numpy as wnp
from weft import pullbacks

jax = pytest.importorskip("jax")

TEXT = (pathlib.Path(__file__).parent / "references_programs.py").read_text()
FILE = "references_programs.py"


class _Weft(types.SimpleNamespace):
    """Weft under JAX's names."""

    def __getattr__(self, name):
        return getattr(weft, name)


class _Lax(types.SimpleNamespace):
    def __getattr__(self, name):
        return getattr(weft.lax, name) if hasattr(weft.lax, name) else getattr(weft, name)


def _programs(module, arrays):
    names = {"jax": module, "jnp": arrays, "np": np}
    exec(compile(TEXT, FILE, "exec"), names)
    return {name: f for name, f in names.items() if isinstance(f, types.FunctionType)}


def _core():
    return types.SimpleNamespace(Tracer=weft.Tracer)


THEIRS = _programs(jax, jax.numpy)
MINE = _programs(_Weft(lax=_Lax(), core=_core(), ds=lambda i, n: slice(i, i + n)), wnp)
NAMES = sorted(set(THEIRS) - {"dice"})

# Where JAX has a number: why it raises in Weft. Where it raises: what Weft's number is right by.
ON_PURPOSE = {
    "while_cond_write": "a condition that writes: JAX loses the last write",
    "boolmask": "masks that are known",
    "negstep": "negative steps",
    "while_cond_read": "a condition that reads what the body writes: JAX takes them for aliases",
    "grad_local": "JAX's second derivative fails",
    "checkpoint_grad_write": "a rematerialised function that writes once; in JAX twice",
    "none_idx": "a new dimension, which JAX leaves out",
    "set_np": "NumPy's 64 bits stay 64 bits outside of JAX's meaning, and do not fit 32",
}


@pytest.mark.parametrize("name", NAMES)
def test_program(name):
    def outcome(programs):
        try:
            return programs[name](), None
        except Exception as error:
            return None, error

    theirs, their_error = outcome(THEIRS)
    mine, my_error = outcome(MINE)
    if ON_PURPOSE.get(name):
        assert (my_error is None) != (their_error is None) or repr(mine) != repr(theirs), "is it the same now?"
        return
    if their_error is not None:
        assert my_error is not None, f"JAX raises {their_error!r}"
        assert FILE in str(my_error) or isinstance(my_error, TypeError), my_error
        return
    if my_error is not None:
        raise my_error
    flat = jax.tree.leaves(theirs)
    found = weft.tree.leaves(mine)
    assert len(found) == len(flat), (mine, theirs)
    for a, b in zip(found, flat, strict=True):
        if hasattr(b, "shape") and hasattr(b, "dtype"):
            assert tuple(a.shape) == tuple(b.shape) and a.dtype == b.dtype
            if hasattr(b, "weak_type") and hasattr(b, "addressable_shards"):
                np.testing.assert_allclose(np.asarray(a, np.float64), np.asarray(b, np.float64), rtol=2e-6)
        elif isinstance(b, (bool, int, float)):
            assert a == b


@pytest.mark.parametrize("seed", range(12))
def test_random_programs(seed):
    for a, b in zip(MINE["dice"](seed), THEIRS["dice"](seed), strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=3e-6)


def test_aliases_say_both_places():
    with pytest.raises(
        ValueError,
        match=r"argument a and argument b of 'f' are the same.*made \(at "
        r".*references_test.*give it once",
    ) as e:
        _alias()
    assert len(re.findall(r"references_test\.py:\d+", str(e.value))) >= 2


def _alias():
    r = weft.new_ref(1.0)

    def f(a, b):
        return a[...] + b[...]

    return weft.jit(f)(r, r)


def test_a_jitted_function_is_compiled_once_for_all_references():
    traces = []

    @weft.jit
    def add(r, x):
        traces.append(1)
        r[...] += x

    for start in (1.0, 2.0, 3.0):
        r = weft.new_ref(wnp.asarray(start))
        add(r, 1.0)
        add(r, 1.0)
        assert r[...] == start + 2
    assert len(traces) == 1


def test_a_function_of_references_from_outside_is_traced_again_for_each_of_them_once():
    a, b, traces = weft.new_ref(0.0), weft.new_ref(0.0), []

    @weft.jit
    def f(x):
        traces.append(1)
        a[...] += x
        b[...] += 2 * x

    for _ in range(5):
        f(1.0)
    assert (a[...], b[...]) == (5.0, 10.0) and len(traces) <= 3


def test_nested_loops_are_traced_a_few_times():
    r, traces = weft.new_ref(0.0), []

    def nest(depth):
        if depth == 0:
            traces.append(1)
            r[...] += 1.0
            return
        weft.fori_loop(0, 2, lambda i, c: nest(depth - 1) or c, 0)

    nest(6)
    assert r[...] == 64.0 and len(traces) <= 8


def test_what_was_written_before_an_error_stays():
    r = weft.new_ref(1.0)

    def f(x):
        r[...] = x
        raise KeyError("mine")

    with pytest.raises(KeyError):
        weft.jit(f)(2.0)
    assert r[...] == 1.0  # nothing ran
    with pytest.raises(KeyError):
        f(2.0)
    assert r[...] == 2.0


def test_frozen():
    r = weft.new_ref(1.0)
    assert weft.freeze(r) == 1.0
    with pytest.raises(RuntimeError, match="freeze has ended"):
        r[...]
    with weft.jax_semantics():
        assert r[...] == 1.0


def test_empty():
    r = weft.empty_ref(weft.ShapeDtype((2,), "int32"))
    assert r.shape == (2,) and r.dtype == np.int32
    weft.free_ref(r)
    with pytest.raises(TypeError, match="a type"):
        weft.empty_ref(3)


def test_backward_rules_write_in_the_order_of_the_derivative():
    log = weft.new_ref(wnp.zeros(8))
    at = weft.new_ref(wnp.zeros(()))

    @weft.custom_vjp
    def tap(x):
        return x

    def bwd(_, g):
        i = at[...].astype("int32")
        log[i] = g
        at[...] += 1.0
        return (g,)

    tap.defvjp(lambda x: (tap(x), None), bwd)

    def f(x):
        for k in range(1, 4):
            x = tap(x * k)
        return weft.fori_loop(0, 2, lambda i, c: tap(c * c), x)

    for g in (weft.grad(f), weft.jit(weft.grad(f))):
        log[...], at[...] = wnp.zeros(8), wnp.zeros(())
        g(0.5)
        # 3, then 9, 81 by the loop; backwards: d81/d81, d81/d9, d81/d3, by 3, by 2
        assert at[...] == 5.0
        np.testing.assert_allclose(log[...][:5], [1.0, 18.0, 108.0, 324.0, 648.0], rtol=1e-6)
    _, pull = weft.vjp(f, 0.5)
    log[...], at[...] = wnp.zeros(8), wnp.zeros(())
    pull(2.0)
    np.testing.assert_allclose(log[...][:5], [2.0, 36.0, 216.0, 648.0, 1296.0], rtol=1e-6)


def test_arguments_of_other_transforms_are_refused_by_name():
    r = weft.new_ref(1.0)
    with pytest.raises(TypeError, match="is a reference"):
        weft.linear_transpose(lambda r: r, r)
    with pytest.raises(ValueError, match="references are not carried"):
        weft.while_loop(lambda c: c[1] < 3, lambda c: c, (r, 1))


def test_threads():
    import concurrent.futures

    def work(n):
        r = weft.new_ref(0.0)
        f = weft.jit(lambda x: r.__setitem__(..., r[...] + x))
        for _ in range(20):
            f(float(n))
        return float(r[...])

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        assert list(pool.map(work, range(4))) == [0.0, 20.0, 40.0, 60.0]


def test_references_that_are_cut():
    mesh = weft.make_mesh((1,), ("i",))
    r = weft.new_ref(wnp.zeros(4))

    def add(r, x):
        r[...] += x
        return weft.lax.psum(x.sum(), "i")

    total = weft.shard_map(add, mesh=mesh, in_specs=(weft.P("i"), weft.P("i")), out_specs=weft.P())(r, wnp.arange(4.0))
    assert total == 6.0 and list(r[...]) == [0, 1, 2, 3]


def test_programs_without_references_do_not_pay_for_them():
    import subprocess
    import sys

    text = (
        "import weft\nfrom weft._core import stateful\nweft.Ref, weft.new_ref\nassert stateful.references is None\n"
        "f = lambda x: weft.new_ref(x)[...] * 2\nassert weft.grad(f)(1.0) == 2.0\n"
        "assert stateful.references is not None and weft.jit(weft.vmap(f))(weft.numpy.ones(2)).shape == (2,)"
    )
    subprocess.run([sys.executable, "-c", text], check=True)


def test_gradients_by_references():
    # vjp by what references among the arguments hold; JAX 0.10.2 refuses it. The gradient's reference holds the
    # cotangent of what the reference holds at last, before, and that of what it held at first, after.
    x, y = np.array([2.0, 1.0], "float32"), {"a": np.array([2.0, 3.0], "float32")}

    def f(ref, y):
        ref[...] = wnp.sin(ref[...])
        return (ref[...] ** 2 * y["a"]).sum()

    def run(x, y, given):
        ref, total = weft.new_ref(x), weft.new_ref(given)
        value, pullback = weft.vjp(f, ref, y)
        marks = pullback.with_refs(total, pullbacks.GradValue())(1.0)
        return value, ref[...], total[...], marks[1]["a"]

    for name, call in {"alone": run, "jit": weft.jit(run)}.items():
        for given in (np.zeros(2, "float32"), np.array([1.0, 10.0], "float32")):
            value, last, total, by_y = call(x, y, given)
            s = np.sin(x)
            np.testing.assert_allclose(value, (s**2 * y["a"]).sum(), rtol=1e-6, err_msg=name)
            np.testing.assert_allclose(last, s, rtol=1e-6)
            np.testing.assert_allclose(total, (2 * s * y["a"] + given) * np.cos(x), rtol=1e-5)
            np.testing.assert_allclose(by_y, s**2, rtol=1e-5)
    ref, unwanted = weft.new_ref(x), pullbacks.DontWant()
    _, pullback = weft.vjp(lambda ref, y: (ref[...] * y).sum(), ref, x)
    assert pullback.with_refs(unwanted, pullbacks.GradValue())(1.0)[1].tolist() == x.tolist()
    with pytest.raises(ValueError, match="with_refs"):
        pullback(1.0)
    with pytest.raises(TypeError, match="accumulated into a reference"):
        pullback.with_refs(pullbacks.GradValue(), unwanted)(1.0)
    with pytest.raises(ValueError, match=r"argument a and argument b of .* are the same reference"):
        weft.vjp(lambda a, b: a[...] * b[...], ref, ref)


def _through_scan(f):
    return lambda part: weft.scan(lambda c, _: (c, f(part))[:1] + (None,), 0, None, length=1)


@pytest.mark.parametrize(
    "transform",
    [
        weft.jit,
        weft.checkpoint,
        lambda f: lambda part: weft.cond(wnp.array(True), f, f, part),
        _through_scan,
        lambda f: weft.jit(weft.checkpoint(weft.jit(f))),
    ],
    ids=["jit", "checkpoint", "cond", "scan", "nested"],
)
@pytest.mark.parametrize("jitted", [False, True])
@pytest.mark.parametrize("dynamic", [False, True])
def test_parts_of_references_as_arguments(transform, jitted, dynamic):
    def program(i):
        ref = weft.new_ref(wnp.zeros((4, 5)))
        part = ref.at[i if dynamic else 2, 1:4]

        def add(part):
            part[...] = part[...] + wnp.arange(3.0) + part.shape[0]

        transform(add)(part)
        transform(lambda part: add(part.at[...]))(part)
        return ref[...]

    want = np.zeros((4, 5))
    want[2, 1:4] = 2 * (np.arange(3) + 3)
    np.testing.assert_array_equal((weft.jit(program) if jitted else program)(wnp.asarray(2)), want)


def test_parts_of_references_that_are_mapped():
    def add(part, x):
        part[...] = part[...] + x

    ref = weft.new_ref(wnp.zeros((4, 3)))
    weft.vmap(add)(ref.at[1:3], wnp.array([1.0, 2.0]))
    weft.jit(lambda part: weft.vmap(add, (1, 0))(part, wnp.arange(3.0)))(ref.at[2:])
    weft.scan(lambda c, part: (c + 1, add(part, c)), wnp.array(10.0), ref.at[:2])
    np.testing.assert_array_equal(ref[...], [[10, 10, 10], [12, 12, 12], [2, 3, 4], [0, 1, 2]])
    # One that is the same for all may be read.
    out = weft.vmap(lambda x, part: part[...] * x, (0, None))(wnp.arange(2.0), ref.at[0])
    np.testing.assert_array_equal(out, [[0, 0, 0], [10, 10, 10]])
    for wrong in (
        lambda: weft.vmap(lambda a, b: None)(ref.at[:2], ref.at[1:3]),
        lambda: weft.vmap(lambda a, b: None, (0, None))(ref.at[:2], ref),
        lambda: weft.scan(lambda c, part: (c, ref[...].sum()), 0, ref.at[1:]),
        lambda: weft.jit(lambda a, b: None)(ref.at[0], ref),
    ):
        with pytest.raises(ValueError, match=r"same reference|uses from outside"):
            wrong()


@pytest.mark.parametrize(
    "wrap", [lambda f: f, weft.jit, lambda f: weft.jit(lambda *a: f(*a))], ids=["", "jit", "inner"]
)
def test_rules_and_what_references_hold(wrap):
    @weft.custom_vjp
    def doubled(ref, y):
        return ref[...] * 2 * y

    def backward(kept, ct):
        held, y = kept
        return 100 * ct * y, 2 * held * ct

    doubled.defvjp(lambda ref, y: (ref[...] * 2 * y, (ref[...], y)), backward)
    f = wrap(doubled)
    # The rule's own cotangent of what the reference held, a hundred instead of two.
    assert [float(g) for g in weft.grad(lambda x, y: f(weft.new_ref(x * x), y), (0, 1))(3.0, 5.0)] == [3000.0, 18.0]

    def captured(x):
        ref = weft.new_ref(x)

        @weft.custom_vjp
        def scaled(y):
            return ref[...] * y

        scaled.defvjp(lambda y: (scaled(y), None), lambda _, ct: (ct,))
        return wrap(scaled)(1.0)

    assert weft.jit(captured)(3.0) == 3
    with pytest.raises(weft.DerivativeError, match="with respect to what that holds"):
        weft.grad(captured)(3.0)


def test_functions_of_parts():
    x = np.arange(5.0, dtype=np.float32)

    def f(x):
        ref = weft.new_ref(x)
        part = ref.at[1:]
        weft.ref.addupdate(part, wnp.array([0, 0, 2]), wnp.array([1.0, 2.0, 3.0]))
        weft.ref.set(part.at[3:], 0, 7.0)
        return weft.ref.get(part, 0), weft.ref.swap(ref.at[0], ..., 9.0), weft.freeze(ref)

    want = 4.0, 0.0, [9.0, 4.0, 2.0, 6.0, 7.0]
    for run in (f, weft.jit(f)):
        for got, expected in zip(run(x), want):
            np.testing.assert_array_equal(got, expected)


def test_jvp_of_references():
    def f(ref, x):
        y = ref[...] * x
        ref[...] = wnp.sin(y)
        return y + ref[...]

    def g(value, x):
        y = value * x
        return y + wnp.sin(y), wnp.sin(y)

    value, dvalue = np.float32([1.0, 2.0]), np.float32([0.5, 3.0])
    want = weft.jvp(g, (value, 2.0), (dvalue, 1.0))

    def run(value, dvalue):
        ref, dref = weft.new_ref(value), weft.new_ref(dvalue)
        out = weft.jvp(f, (ref, 2.0), (dref, 1.0))
        return (out[0], ref[...]), (out[1], dref[...])

    for got in (run(value, dvalue), weft.jit(run)(value, dvalue)):
        for x, y in zip(weft.tree.leaves(got), weft.tree.leaves(want)):
            np.testing.assert_allclose(x, y, rtol=1e-6)
    ref = weft.new_ref(value)
    with pytest.raises(TypeError, match="tangents of references"):
        weft.jvp(f, (ref, 2.0), (dvalue, 1.0))
    with pytest.raises(ValueError, match="twice"):
        weft.jvp(f, (ref, 2.0), (ref, 1.0))


@pytest.mark.parametrize("nested", [False, True])
def test_backward_rules_write_references_among_arguments_of_jitted_functions(nested):
    @weft.custom_vjp
    def keep(ref, x):
        return x

    def backward(ref, ct):
        ref[...] = ct
        return None, ct

    keep.defvjp(lambda ref, x: (x, ref), backward)

    @weft.jit
    def f(ref, x):
        return wnp.sin(keep(ref, wnp.sin(x)))

    g = weft.jit(lambda ref, x: f(ref, x)) if nested else f
    ref = weft.new_ref(0.0)
    for x in (1.0, 2.0):
        np.testing.assert_allclose(g(ref, x), np.sin(np.sin(x)), rtol=1e-6)
        slope = weft.grad(g, 1)(ref, x)
        np.testing.assert_allclose(ref[...], np.cos(np.sin(x)), rtol=1e-6)
        np.testing.assert_allclose(slope, np.cos(np.sin(x)) * np.cos(x), rtol=1e-6)
    _, pull = weft.vjp(lambda x: g(ref, x), 3.0)
    pull(2.0)
    np.testing.assert_allclose(ref[...], 2 * np.cos(np.sin(3.0)), rtol=1e-6)


def test_lowered_and_compiled_programs_of_references():
    total, scale = weft.new_ref(0.0), weft.new_ref(wnp.ones(2))

    @weft.jit
    def f(ref, x):
        ref[...] += x
        total[...] += x.sum() * scale[0]
        return ref[0]

    ref = weft.new_ref(wnp.zeros(2))
    lowered = f.lower(ref, wnp.ones(2))
    assert "f32[2]" in lowered.as_text() and ref[...].tolist() == [0, 0] and float(total[...]) == 0
    compiled = lowered.compile()
    assert [float(compiled(ref, wnp.full(2, n))) for n in (1.0, 2.0)] == [1, 3]
    assert ref[...].tolist() == [3, 3] and float(total[...]) == 6
    scale[...] = 10 * scale[...]
    other = weft.new_ref(wnp.ones(2))
    assert float(compiled(other, wnp.ones(2))) == 2 and float(total[...]) == 26 and ref[...].tolist() == [3, 3]
    with pytest.raises(TypeError, match="the program was compiled for"):
        compiled(weft.new_ref(wnp.zeros(3)), wnp.ones(3))
    assert float(f(ref, wnp.ones(2))) == 4


def test_references_that_are_freed_have_ended():
    ref = weft.new_ref(1.0)
    weft.free_ref(ref)
    with weft.jax_semantics():
        for use in (lambda: ref[...], lambda: weft.free_ref(ref)):
            with pytest.raises(RuntimeError, match="free_ref has ended"):
                use()


def test_jitted_functions_that_can_reach_references_are_traced_once():
    refs, traced = [weft.new_ref(float(n)) for n in range(3)], []

    @weft.jit
    def f(x):
        traced.append(1)
        return x + sum(ref[...] for ref in refs[:2])

    assert float(f(1.0)) == 2 and len(traced) == 1
    refs[1][...] = 5.0
    assert float(f(1.0)) == 6 and len(traced) == 1

    def g(values):
        left = list(map(weft.new_ref, values))
        return weft.jit(lambda: wnp.sin(left.pop()[...]) * left.pop()[...])()

    np.testing.assert_allclose(weft.grad(g)([2.0, 3.0]), [np.sin(3.0), 2 * np.cos(3.0)], rtol=1e-6)
