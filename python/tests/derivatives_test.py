"""The conventions of derivatives and of associative_scan: arguments, structures of results, errors. Compared with JAX
where it is installed, with NumPy and closed forms everywhere."""

import itertools
import math

import numpy as np
import pytest

import weft
import weft.numpy as wnp


def f64(x):
    return wnp.array(x, dtype="float64")


def equal(ours, theirs):
    """Structures and values of two trees."""
    jax = pytest.importorskip("jax")
    a, b = weft.tree.map(np.asarray, ours), jax.tree.map(np.asarray, theirs)
    assert weft.tree.structure(a) == weft.tree.structure(b), (ours, theirs)
    for u, v in zip(weft.tree.leaves(a), weft.tree.leaves(b)):
        assert u.shape == v.shape
        np.testing.assert_allclose(u.astype(v.dtype), v, rtol=2e-5, atol=1e-6)


PARAMS = {"w": np.array([[0.5, -1.0, 2.0], [0.3, 0.4, -0.2]], np.float32), "b": np.array([0.1, 0.2], np.float32)}
X, Y = np.array([1.0, 2.0, 3.0], np.float32), np.array([0.5, -0.5], np.float32)


def model(np_):
    def f(p, x, y=Y):
        out = np_.tanh(p["w"] @ x + p["b"])
        return ((out - y) ** 2).sum()

    return f


AUX = {  # x -> what the transform passes on: the cube of x
    "grad": lambda f, x: weft.grad(f, has_aux=True)(x)[1],
    "value_and_grad": lambda f, x: weft.value_and_grad(f, has_aux=True)(x)[0][1],
    "vjp": lambda f, x: weft.vjp(f, x, has_aux=True)[2],
    "jvp": lambda f, x: weft.jvp(f, (x,), (wnp.ones_like(x),), has_aux=True)[2],
    "linearize": lambda f, x: weft.linearize(f, x, has_aux=True)[2],
    "jacfwd": lambda f, x: weft.jacfwd(f, has_aux=True)(x)[1],
    "jacrev": lambda f, x: weft.jacrev(f, has_aux=True)(x)[1],
    "hessian": lambda f, x: weft.hessian(f, has_aux=True)(x)[1],
}


@pytest.mark.parametrize("name", AUX)
def test_aux_has_derivatives_of_its_own(name):
    """The transform that it is a by-product of does not differentiate it, those around do."""
    aux = lambda x: AUX[name](lambda a: (a * a, {"cube": a**3}), x)["cube"]
    assert aux(3.0) == 27
    assert weft.grad(aux)(3.0) == 27
    assert weft.jvp(aux, (3.0,), (2.0,))[1] == 54
    assert weft.grad(weft.grad(aux))(3.0) == 18
    np.testing.assert_array_equal(weft.jit(weft.vmap(weft.grad(aux)))(f64([1.0, 2.0])), [3, 12])


@pytest.mark.parametrize("name", AUX)
def test_aux_that_is_no_traced_value_comes_back_as_it_is(name):
    """Other objects, Python's numbers, NumPy's arrays: as JAX returns them (of jacfwd and hessian, which map their aux,
    it takes no objects)."""
    kept = {"object": object(), "type": int, "number": 3, "array": np.arange(2), "known": wnp.ones(2)}
    aux = AUX[name](lambda a: (a * a, {**kept, "none": None, "traced": a}), 3.0)
    assert aux.pop("traced") == 3 and aux.pop("none") is None
    assert aux.keys() == kept.keys() and all(aux[key] is kept[key] for key in ("object", "type", "number"))
    np.testing.assert_array_equal(aux["array"], kept["array"])
    np.testing.assert_array_equal(aux["known"], kept["known"])


TANGENTS_OF_OTHER_KINDS = {
    "jvp": lambda x, t: weft.jvp(lambda a: a * 2, (x,), (t,))[1],
    "vjp": lambda x, t: weft.vjp(lambda a: a * 2, x)[1](t)[0],
    "linearize": lambda x, t: weft.linearize(lambda a: a * 2, x)[1](t),
    "linear_transpose": lambda x, t: weft.linear_transpose(lambda a: a * 2, x)(t)[0],
    "jet": lambda x, t: weft.jet(lambda a: a * 2, (x,), ((t,),))[1][0],
}


@pytest.mark.parametrize("name", TANGENTS_OF_OTHER_KINDS)
def test_numbers_as_tangents(name):
    """A Python number is converted, unless that would take its imaginary part away."""
    run = TANGENTS_OF_OTHER_KINDS[name]
    assert run(1.0, 5) == run(1.0, 5.0) == 10 and run(1j, 5.0) == 10
    for tangent in (1j, True):
        with pytest.raises(TypeError, match=r"(c64|bool)\[\]"):
            run(1.0, tangent)
    with weft.jax_semantics():
        assert run(1.0, 5.0) == 10
        with pytest.raises(TypeError, match=r"i32\[\]"):
            run(1.0, 5)


def test_stop_gradient_of_what_has_no_derivative():
    key = weft.random.key(0)
    tree = {"key": key, "n": wnp.arange(2), "flag": True, "x": 2.0}
    stopped = weft.stop_gradient(tree)
    assert stopped["key"].dtype == key.dtype and stopped["flag"] is True and stopped["n"].tolist() == [0, 1]
    assert weft.jit(weft.stop_gradient)(tree)["n"].dtype == "int32"
    f = lambda x: x * weft.random.normal(weft.stop_gradient(key)) + weft.stop_gradient(x)
    assert weft.grad(f)(2.0) == weft.random.normal(key)


def test_aux_takes_no_part_in_the_derivative():
    f = lambda a: (a * a, wnp.sqrt(a))  # whose derivative at 0 is infinite
    assert weft.vjp(f, 0.0, has_aux=True)[1](1.0) == (0,)
    assert weft.linearize(f, 0.0, has_aux=True)[1](1.0) == 0
    # ... also where the plan is forward mode, which is that of a derivative of one number.
    g = lambda a: (weft.grad(lambda b: b**3)(a), wnp.sqrt(a))
    assert weft.vjp(g, 0.0, has_aux=True)[1](1.0) == (0,)
    assert weft.grad(lambda a: weft.vjp(g, a, has_aux=True)[2])(4.0) == 0.25


def features(np_):
    return lambda p, x: {"a": np_.sin(p["w"] @ x), "b": (p["b"] * x[0], np_.exp(x).sum())}


CALLS = {
    "grad": lambda w, np_: w.grad(model(np_))(PARAMS, X),
    "grad of a keyword argument": lambda w, np_: w.grad(model(np_))(PARAMS, X, y=Y),
    "argnums": lambda w, np_: w.grad(model(np_), argnums=1)(PARAMS, X),
    "negative argnums": lambda w, np_: w.grad(model(np_), argnums=-1)(PARAMS, X),
    "several argnums": lambda w, np_: w.grad(model(np_), argnums=(1, 0))(PARAMS, X),
    "one in a tuple": lambda w, np_: w.grad(model(np_), argnums=(1,))(PARAMS, X),
    "value_and_grad": lambda w, np_: w.value_and_grad(model(np_), (0, 1))(PARAMS, X),
    "grad has_aux": lambda w, np_: w.grad(lambda p: (model(np_)(p, X), {"p": p["b"]}), has_aux=True)(PARAMS),
    "value_and_grad has_aux": lambda w, np_: w.value_and_grad(lambda x: (x.sum(), (x, 2.0)), 0, True)(X),
    "holomorphic": lambda w, np_: w.grad(lambda z: np_.sin(z) * z, holomorphic=True)(np.complex64(0.3 + 0.7j)),
    "real result of a complex argument": lambda w, np_: w.grad(lambda z: abs(z * z))(np.complex64(0.3 + 0.7j)),
    "vjp": lambda w, np_: w.vjp(features(np_), PARAMS, X)[1](features(np_)(PARAMS, X)),
    "vjp has_aux": lambda w, np_: (lambda v, pull, aux: (v, pull(v), aux))(
        *w.vjp(lambda x: (np_.sin(x), x.sum()), X, has_aux=True)
    ),
    "jvp": lambda w, np_: w.jvp(features(np_), (PARAMS, X), (PARAMS, 2 * X)),
    "jvp has_aux": lambda w, np_: w.jvp(lambda x: (np_.sin(x), x.sum()), (X,), (X,), has_aux=True),
    "linearize": lambda w, np_: (lambda v, f: (v, f(PARAMS, X)))(*w.linearize(features(np_), PARAMS, X)),
    "linearize has_aux": lambda w, np_: (lambda v, f, aux: (v, f(X), aux))(
        *w.linearize(lambda x: (np_.sin(x), x.sum()), X, has_aux=True)
    ),
    "linear_transpose": lambda w, np_: w.linear_transpose(lambda p, x: (2 * p["w"][0] + x, x[:2]), PARAMS, X)((X, Y)),
    "linear_transpose of integers": lambda w, np_: w.linear_transpose(lambda x: 2 * x, 1)(3),
    "linear_transpose of a number": lambda w, np_: w.linear_transpose(lambda x: 2 * x, 1.0)(3.0),
    "jacfwd": lambda w, np_: w.jacfwd(features(np_))(PARAMS, X),
    "jacrev": lambda w, np_: w.jacrev(features(np_))(PARAMS, X),
    "jacfwd argnums": lambda w, np_: w.jacfwd(features(np_), argnums=(1, 0))(PARAMS, X),
    "jacrev argnums": lambda w, np_: w.jacrev(features(np_), argnums=(1, 0))(PARAMS, X),
    "jacfwd has_aux": lambda w, np_: w.jacfwd(lambda x: (np_.sin(x), {"s": x.sum()}), has_aux=True)(X),
    "jacrev has_aux": lambda w, np_: w.jacrev(lambda x: (np_.sin(x), {"s": x.sum()}), has_aux=True)(X),
    "jacfwd holomorphic": lambda w, np_: w.jacfwd(lambda z: z * z, holomorphic=True)(X + 1j * X),
    "jacrev holomorphic": lambda w, np_: w.jacrev(lambda z: z * z, holomorphic=True)(X + 1j * X),
    "hessian": lambda w, np_: w.hessian(model(np_))(PARAMS, X),
    "hessian argnums": lambda w, np_: w.hessian(model(np_), argnums=(0, 1))(PARAMS, X),
    "hessian has_aux": lambda w, np_: w.hessian(lambda x: ((x**3).sum(), x[0]), has_aux=True)(X),
    "vmap of a prefix": lambda w, np_: w.vmap(features(np_), in_axes=(None, 0))(PARAMS, np.stack([X, 2 * X])),
    "vmap of a tree of axes": lambda w, np_: w.vmap(
        lambda p, x: (p["w"] @ x, p["b"]), in_axes=({"w": 1, "b": None}, None), out_axes=(0, None)
    )({"w": np.ones((2, 4, 3), np.float32), "b": Y}, X),
    "vmap with out_axes as prefix": lambda w, np_: w.vmap(features(np_), in_axes=(None, 0), out_axes={"a": 1, "b": 0})(
        PARAMS, np.stack([X, 2 * X])
    ),
    "a flag that is not differentiated": lambda w, np_: w.value_and_grad(
        lambda x, flags: np_.sin(x) * (2.0 if flags["train"] is True else 3.0)
    )(0.5, {"train": True}),
    "a static argument of jit inside grad": lambda w, np_: w.grad(power_of(w))(2.0, 3),
    "a static argument by name": lambda w, np_: w.value_and_grad(power_of(w))(2.0, k=3),
    "a static argument inside vmap": lambda w, np_: w.vmap(power_of(w), in_axes=(0, None))(X, 3),
    "vmap with a mode": lambda w, np_: w.vmap(
        lambda x, how: x * how["scale"] if how["mode"] == "scale" else x, in_axes=(0, None)
    )(X, {"mode": "scale", "scale": 3.0}),
    "vmap with an axis and None in one argument": lambda w, np_: w.vmap(
        lambda both: both[0] * 2 if both[1] == "twice" else both[0], in_axes=((0, None),)
    )((X, "twice")),
    "a pullback out of jit": lambda w, np_: w.jit(lambda x: w.vjp(np_.sin, x))(1.0)[1](2.0),
    "a pullback into jit": lambda w, np_: w.jit(lambda p, g: p(g))(w.vjp(model(np_), PARAMS, X)[1], 1.0),
    "a derivative out of jit": lambda w, np_: w.jit(lambda x: w.linearize(np_.sin, x))(X)[1](Y[0] * X),
    "a derivative into jit": lambda w, np_: w.jit(lambda f, t: f(t))(w.linearize(np_.sin, X)[1], X),
    "pullbacks of every lane": lambda w, np_: w.vmap(lambda p, g: p(g))(w.vmap(lambda x: w.vjp(np_.sin, x)[1])(X), X),
    "a pullback as the residual of a rule": lambda w, np_: [
        nth_derivative(w, with_pullback(w, np_), n)(0.3) for n in range(1, 4)
    ],
}


def power_of(w):
    return w.jit(lambda x, k: x**k if k > 2 else x, static_argnums=1, static_argnames="k")


def nth_derivative(w, f, n):
    for _ in range(n):
        f = w.grad(f)
    return f


def with_pullback(w, np_):
    f = w.custom_vjp(np_.sin)
    f.defvjp(lambda x: w.vjp(np_.sin, x), lambda pull, ct: pull(3 * ct))
    return f


@pytest.mark.parametrize("name", CALLS)
def test_results_are_those_of_jax(name):
    jax = pytest.importorskip("jax")
    equal(CALLS[name](weft, wnp), CALLS[name](jax, jax.numpy))


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: weft.grad(lambda x: x, allow_int=False)(3), TypeError, "argument x of .* is i32"),
        (lambda: weft.grad(lambda x: x, holomorphic=True)(3.0), TypeError, "must be complex"),
        (lambda: weft.grad(lambda x: x, argnums=1)(3.0), ValueError, "argnums has 1"),
        (lambda: weft.grad(lambda x: x * 1j)(3.0), TypeError, "real floating-point"),
        (lambda: weft.grad(lambda x: x, has_aux=True)(3.0), TypeError, "must return \\(value, aux\\)"),
        (lambda: weft.vjp(lambda x: x, 3.0, has_aux=True), TypeError, "must return \\(value, aux\\)"),
        (lambda: weft.jvp(lambda x: x, (X,), (X,), has_aux=True), TypeError, "jvp: .* must return \\(value, aux\\)"),
        (lambda: weft.linearize(lambda x: (x,), 3.0, has_aux=True), TypeError, "must return \\(value, aux\\)"),
        (lambda: weft.linearize(lambda x: x, 3.0, has_aux=True), TypeError, "must return \\(value, aux\\)"),
        (lambda: weft.linearize(lambda x: x, 3.0)[1](wnp.ones(2)), TypeError, "the tangent of argument x is f32"),
        (lambda: weft.linear_transpose(wnp.sin, 1.0), weft.DerivativeError, "sin is not linear"),
        (lambda: weft.linear_transpose(lambda x: x * x, 1.0), weft.DerivativeError, "both depend on the linear inputs"),
        (lambda: weft.linear_transpose(lambda x: x.astype(wnp.float32), 1), TypeError, "returns f32"),
        (lambda: weft.linear_transpose(lambda x: x, 1.0)((1.0, 2.0)), TypeError, "the cotangent is a tuple"),
        (lambda: weft.jacfwd(lambda x: x)(1 + 1j), TypeError, "holomorphic=True"),
        (lambda: weft.jacrev(lambda x: x * 1j)(1.0), TypeError, "holomorphic=True"),
        (lambda: weft.jacfwd(lambda x: x, holomorphic=True)(1.0), TypeError, "expected complex"),
        (lambda: weft.jacrev(lambda x: x)(1), TypeError, "differentiated in an argument i32"),
    ],
)
def test_errors(call, error, words):
    with pytest.raises(error, match=words):
        call()


READERS = {
    "a function of one argument": lambda x: np.sin(x),
    "a function of two arguments": lambda x: np.maximum(x, 0.0),
    "a product": lambda x: np.dot(np.ones((2, 2), np.float32), x),
    "into an array": lambda x: np.add(np.ones(2), x, out=np.zeros(2)),
    "asarray": lambda x: np.asarray(x, np.float64),
    "array": lambda x: np.array([x, x]),
    "DLPack": lambda x: np.from_dlpack(x),
    "a list": lambda x: x.tolist(),
    "of a result": lambda x: np.sin(2 * x + 1),
    "in a branch": lambda x: weft.cond(True, lambda: wnp.asarray(np.sin(2 * x)), lambda: x),
    "in vmap, not mapped": lambda x: weft.vmap(lambda a, b: a * np.sin(b), in_axes=(0, None))(wnp.ones(3), x),
    "in a derivative by something else": lambda x: weft.grad(lambda y, z: (y * np.sin(z)).sum())(wnp.ones(2), x),
    "in a loop": lambda x: weft.fori_loop(0, 2, lambda i, c: c * np.sin(x), x),
}
DERIVATIVES = {
    "grad": lambda f, x: weft.grad(lambda x: wnp.sum(f(x)))(x),
    "jvp": lambda f, x: weft.jvp(f, (x,), (x,)),
    "vjp": lambda f, x: weft.vjp(f, x),
    "linearize": lambda f, x: weft.linearize(f, x),
    "jet": lambda f, x: weft.jet(f, (x,), ([x, x],)),
    "jacfwd": lambda f, x: weft.jacfwd(f)(x),
    "jacrev": lambda f, x: weft.jacrev(f)(x),
    "hessian": lambda f, x: weft.hessian(lambda x: wnp.sum(f(x)))(x),
    "grad of grad": lambda f, x: weft.grad(lambda x: weft.grad(lambda y: (y * f(x)).sum())(x).sum())(x),
}


@pytest.mark.parametrize("reader", READERS)
def test_numpy_does_not_take_what_is_differentiated(reader):
    with pytest.raises(weft.errors.TracerArrayConversionError, match=r"weft\.numpy.*weft\.stop_gradient"):
        weft.vjp(READERS[reader], wnp.array([0.5, 1.5]))


@pytest.mark.parametrize("derivative", DERIVATIVES)
def test_no_derivative_is_lost_in_numpy(derivative):
    with pytest.raises(weft.TracerError, match=r"carries a derivative.*\n  at .*derivatives_test\.py"):
        DERIVATIVES[derivative](np.sin, wnp.array([0.5, 1.5]))


def test_numpy_takes_what_has_no_derivative():
    def f(x, fixed):
        assert np.count_nonzero(x > 1) == 1
        assert np.argmax(wnp.argmax(x)) == 0
        scale = np.max(weft.stop_gradient(2 * x))
        inner = weft.vmap(lambda a, b: a * np.sin(b), in_axes=(0, None))(x, fixed)
        return (x * scale * np.sin(fixed)).sum() + inner.sum() + (np.float32(2) * x).sum() + (x @ np.ones(2)).sum()

    gradient = weft.grad(f)(wnp.array([0.5, 1.5]), wnp.array(0.3))
    np.testing.assert_allclose(gradient, [3 * math.sin(0.3) + math.sin(0.3) + 3] * 2, rtol=1e-6)
    assert np.sin(wnp.array(0.5)) == np.float32(math.sin(0.5))


@pytest.mark.parametrize("number", [0.5, 3, True, 2j])
def test_a_number_that_is_not_differentiated_reaches_the_function_as_it_is(number):
    """As in JAX: one may ask for its type, count with it, and raise to it."""

    def f(x, rate, options, *, scale):
        assert type(rate) is type(number) and rate == number
        assert type(options["scale"]) is type(number) and type(scale) is type(number)
        return abs((wnp.sin(x) * rate * scale * options["scale"]).sum())

    want = abs((np.sin(X) * number**3).sum())
    options = {"scale": number, "array": wnp.ones(2)}
    assert weft.value_and_grad(f)(X, number, options, scale=number)[0] == pytest.approx(want, rel=1e-6)
    weft.jit(weft.grad(lambda x: f(x, number, options, scale=number)))(X)
    weft.vmap(lambda x, n, o: f(x, n, o, scale=n), in_axes=(0, None, None))(X, number, options)
    weft.grad(lambda x: weft.grad(f)(x, number, options, scale=number).sum())(X)


def test_numbers_beside_what_is_differentiated():
    assert weft.grad(lambda x, n: x**n)(2.0, 3) == 12
    assert weft.grad(lambda x, n: sum(x for _ in range(n)))(2.0, 4) == 4
    assert weft.vmap(lambda x, n: x[:n].sum(), in_axes=(0, None))(wnp.ones((2, 5)), 3).tolist() == [3.0, 3.0]
    with weft.enable_x64(True):  # with the digits that it was given
        assert weft.grad(lambda x, r: x * r)(wnp.float64(1), 0.1) == 0.1


def test_a_static_argument_has_no_derivative():
    with pytest.raises(weft.TracerError, match="static argument of a traced value that carries a derivative"):
        weft.grad(weft.jit(lambda x, y: x * y, static_argnums=1), argnums=1)(2.0, 3.0)


def test_integers_have_no_cotangent():
    gradient = weft.grad(lambda p: p["x"] * p["n"], allow_int=True)({"x": 2.0, "n": 3})
    assert float(gradient["x"]) == 3
    assert gradient["n"].dtype == bool


def test_aux_is_computed_once():
    calls = []

    def f(x):
        calls.append(1)
        return wnp.sin(x), x

    weft.vjp(f, 1.0, has_aux=True)
    weft.linearize(f, 1.0, has_aux=True)
    assert len(calls) == 2


def test_a_linear_transpose_needs_no_numbers():
    transposed = weft.linear_transpose(lambda x: x[::2], weft.ShapeDtype((5,), "float64"))
    np.testing.assert_array_equal(transposed(f64([1.0, 2.0, 3.0]))[0], [1, 0, 2, 0, 3])


def test_closure_convert():
    def outer(a):
        f, consts = weft.closure_convert(lambda x: x * a + x, 1.0)
        assert len(consts) == 1
        return f(2.0, *[c * 10 for c in consts])

    assert float(weft.jit(outer)(3.0)) == 62.0
    assert float(weft.grad(outer)(3.0)) == 20.0


def test_rules_of_functions_with_integers():
    @weft.custom_jvp
    def f(x, n):
        return x * n, n + 1

    @f.defjvp
    def rule(primals, tangents):
        (x, n), (dx, _) = primals, tangents
        return f(x, n), (10 * n * dx, 0 * n)

    for wrap in (lambda g: g, weft.jit):
        assert float(wrap(weft.grad(lambda x, n: f(x, n)[0]))(2.0, 3)) == 30
        assert [int(v) for v in weft.vmap(lambda x, n: f(x, n)[1], (None, 0))(2.0, wnp.arange(3))] == [1, 2, 3]

    @weft.custom_vjp
    def g(x, n):
        return x * n, n + 1

    g.defvjp(lambda x, n: (g(x, n), n), lambda n, ct: (10 * n * ct[0], None))
    for wrap in (lambda h: h, weft.jit):
        assert float(wrap(weft.grad(lambda x, n: g(x, n)[0]))(2.0, 3)) == 30
        assert float(wrap(lambda x, n: weft.jvp(lambda v: g(v, n)[0], (x,), (1.0,))[1])(2.0, 3)) == 30


def test_rules_take_arguments_by_position():
    @weft.custom_jvp
    def f(x, factor=2.0):
        return x * factor

    @f.defjvp
    def rule(primals, tangents):
        return f(*primals), 10 * primals[1] * tangents[0]

    assert float(weft.grad(lambda x: f(x, factor=3.0))(1.0)) == 30
    assert float(weft.grad(lambda x: f(factor=3.0, x=x))(1.0)) == 30

    def power(x, mode, n):
        return x**n if mode == "up" else x ** (1 / n)

    by_name = weft.custom_vjp(power, nondiff_argnames=("mode",), nondiff_argnums=(2,))
    by_name.defvjp(lambda x, mode, n: (by_name(x, mode, n), x), lambda mode, n, x, ct: (ct * n * x ** (n - 1) * 10,))
    assert float(weft.grad(lambda x: by_name(x, n=3, mode="up"))(2.0)) == 120
    with pytest.raises(ValueError, match="nondiff_argnames has 'speed'"):
        weft.custom_jvp(power, nondiff_argnames="speed")
    with pytest.raises(TypeError, match="by keyword alone"):
        g = weft.custom_jvp(lambda x, *, n: x)
        g.defjvp(lambda p, t: (p[0], t[0]))
        g(1.0, n=2)


def test_eval_shape():
    spec = weft.eval_shape(
        lambda p: {"y": p["x"].sum(0), "n": p["n"]}, {"x": weft.ShapeDtype((3, 4), "float32"), "n": 2}
    )
    assert spec == {"y": weft.ShapeDtype((4,), "float32"), "n": weft.ShapeDtype((), "int32", weak_type=True)}


# --- associative_scan -------------------------------------------------------------------------------------------------


def recurrence(a, b):
    """x -> a[0] x + a[1], then b."""
    return a[0] * b[0], a[1] * b[0] + b[1]


@pytest.mark.parametrize("n", [0, 1, 2, 3, 4, 5, 7, 8, 9, 16, 31])
@pytest.mark.parametrize("reverse", [False, True])
def test_associative_scan_is_the_loop(n, reverse):
    rng = np.random.default_rng(n)
    x = rng.uniform(-1, 1, (2, n, 3))
    np.testing.assert_allclose(
        weft.lax.associative_scan(wnp.add, f64(x), reverse=reverse, axis=1),
        np.flip(np.cumsum(np.flip(x, 1), 1), 1) if reverse else np.cumsum(x, 1),
    )
    a, b = rng.uniform(-1, 1, n), rng.uniform(-1, 1, n)
    s, expected = (1.0, 0.0), []
    for pair in reversed(list(zip(a, b))) if reverse else zip(a, b):
        s = recurrence(s, pair)
        expected.append(s[1])
    got = weft.lax.associative_scan(recurrence, (f64(a), f64(b)), reverse=reverse)[1]
    np.testing.assert_allclose(got, expected[::-1] if reverse else expected)


def test_associative_scan_of_matrices_is_not_commutative():
    m = np.random.default_rng(1).uniform(-1, 1, (6, 2, 2))
    expected = list(itertools.accumulate(m, np.matmul))
    np.testing.assert_allclose(weft.lax.associative_scan(wnp.matmul, f64(m)), expected)


def test_depth_is_logarithmic():
    def combines(n):
        calls = []

        def add(a, b):
            calls.append(1)
            return a + b

        weft.eval_shape(lambda x: weft.lax.associative_scan(add, x), weft.ShapeDtype((n,), "float32"))
        return len(calls)

    assert combines(1024) <= 2 * 10
    assert combines(1000) <= 2 * 10


def test_derivatives_and_lanes_of_associative_scan():
    rng = np.random.default_rng(2)
    a, b = rng.uniform(0.2, 1, 9), rng.uniform(-1, 1, 9)
    f = lambda a, b: weft.lax.associative_scan(recurrence, (a, b))[1]
    loop = lambda a, b: weft.scan(lambda s, ab: (s * ab[0] + ab[1],) * 2, f64(0.0), (a, b))[1]
    weights = f64(rng.uniform(-1, 1, 9))
    for wrap in (lambda g: g, weft.jit):
        ours = wrap(weft.grad(lambda a, b: (weights * wnp.sin(f(a, b))).sum(), (0, 1)))(f64(a), f64(b))
        theirs = weft.grad(lambda a, b: (weights * wnp.sin(loop(a, b))).sum(), (0, 1))(f64(a), f64(b))
        np.testing.assert_allclose(ours[0], theirs[0])
        np.testing.assert_allclose(ours[1], theirs[1])
    np.testing.assert_allclose(weft.jacfwd(f)(f64(a), f64(b)), weft.jacrev(loop)(f64(a), f64(b)), atol=1e-12)
    many = f64(np.stack([a, 2 * a, -a]))
    np.testing.assert_allclose(weft.vmap(f, (0, None))(many, f64(b)), np.stack([loop(f64(v), f64(b)) for v in many]))


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: weft.lax.associative_scan(3, wnp.ones(3)), TypeError, "fn must be a function"),
        (lambda: weft.lax.associative_scan(wnp.add, {}), ValueError, "no arrays"),
        (lambda: weft.lax.associative_scan(wnp.add, wnp.ones(3), axis=2), (ValueError, IndexError), "axis"),
        (lambda: weft.lax.associative_scan(wnp.add, (wnp.ones(3), wnp.ones(4))), ValueError, r"\[\(3,\), \(4,\)\]"),
        (lambda: weft.lax.associative_scan(lambda a, b: (a, b), wnp.ones(3)), TypeError, "fn returns a tuple"),
    ],
)
def test_errors_of_associative_scan(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_what_is_not_differentiated_may_be_anything():
    """As in JAX: strings, functions, objects beside the argument that is differentiated, by position or by name."""

    class Config:
        scale = 2.0

    def f(x, how, config=None):
        y = wnp.sin(x) if how["kind"] == "sin" else how["function"](x)
        return y if config is None else y * config.scale * how["weight"]

    point, weight = 0.3, wnp.array(3.0)
    for how, slope in [
        ({"kind": "sin", "function": None, "weight": weight}, np.cos(point)),
        ({"kind": "given", "function": wnp.exp, "weight": weight}, np.exp(point)),
    ]:
        np.testing.assert_allclose(weft.grad(f)(point, how), slope, rtol=1e-6)
        np.testing.assert_allclose(weft.grad(f)(point, how, config=Config()), 6 * slope, rtol=1e-6)
        np.testing.assert_allclose(weft.value_and_grad(f)(point, how, Config())[1], 6 * slope, rtol=1e-6)
        np.testing.assert_allclose(weft.jacrev(f)(point, how, Config()), 6 * slope, rtol=1e-6)
        np.testing.assert_allclose(
            weft.grad(weft.grad(weft.grad(f)))(0.3, how), [-slope, slope][how["kind"] != "sin"], rtol=1e-5
        )

    def power(x, n):
        return x**2 if n == "square" else x

    np.testing.assert_allclose(weft.jit(weft.grad(power), static_argnums=1)(3.0, "square"), 6)
    np.testing.assert_allclose(weft.grad(lambda x, some: x * len(some))(1.0, {1, 2}), 2)
    with pytest.raises(TypeError, match="argument n of 'power' is 'square' of type 'str'"):
        weft.grad(power, argnums=1)(3.0, "square")


@pytest.mark.parametrize("passed", ["by position", "by keyword"])
@pytest.mark.parametrize("jitted", [False, True])
def test_derivatives_with_respect_to_arguments_by_name(passed, jitted):
    def f(x, w, *, b=1.0):
        return wnp.sum(wnp.tanh(x * w) * b)

    def jit(g):
        return weft.jit(g) if jitted else g

    x, w, b = np.array([0.1, -0.4, 2.0]), 0.7, 1.3
    t = np.tanh(x * w)
    want = {"x": b * w * (1 - t**2), "w": np.sum(b * x * (1 - t**2)), "b": np.sum(t)}  # by hand
    args, kwargs = ((x, w), {"b": b}) if passed == "by position" else ((x,), {"w": w, "b": b})
    for name, slope in want.items():
        np.testing.assert_allclose(jit(weft.grad(f, argnames=name))(*args, **kwargs), slope, 1e-6)
    value, (db, dx) = jit(weft.value_and_grad(f, argnames=("b", "x")))(*args, **kwargs)
    np.testing.assert_allclose([value, db], [np.sum(t) * b, want["b"]], 1e-6)
    np.testing.assert_allclose(dx, want["x"], 1e-6)
    for jacobian in [weft.jacfwd, weft.jacrev]:
        (dw,) = jit(jacobian(f, argnames=["w"]))(*args, **kwargs)
        np.testing.assert_allclose(dw, want["w"], 1e-6)
    second = np.sum(-2 * b * x**2 * t * (1 - t**2))
    np.testing.assert_allclose(jit(weft.hessian(f, argnames="w"))(*args, **kwargs), second, 1e-6)


def test_tangents_of_integers():
    """There are none but the zeros of dtype bool that derivatives give, or JAX's float0."""
    f = lambda x, n: x * n
    value, tangent = weft.jvp(f, (2.0, 3), (1.0, False))
    assert (value, tangent) == (6.0, 3.0)
    float0 = np.zeros((), np.dtype([("float0", np.void, 0)]))
    assert weft.jvp(f, (2.0, 3), (1.0, float0))[1] == 3.0
    with pytest.raises(TypeError, match=r"jvp: argument n is i32\[\], which has no derivative, and its tangent is i32"):
        weft.jvp(f, (2.0, 3), (1.0, 1))
    with pytest.raises(TypeError, match=r"has no derivative, and its tangent is f32"):
        weft.jvp(lambda x: x * 2, (3,), (1.0,))


@pytest.mark.parametrize("transform", [weft.grad, weft.value_and_grad, weft.jacfwd, weft.jacrev, weft.hessian])
def test_an_argument_is_named_once(transform):
    for argnums in [(0, 0), (0, -2)]:
        with pytest.raises(ValueError, match="has argument 0 of 'product' twice"):
            transform(product, argnums)(2.0, 3.0)


def product(x, y):
    return x * y


def test_jacfwd_of_a_boolean():
    with pytest.raises(TypeError, match=r"a result bool\[\], which has no derivative"):
        weft.jacfwd(lambda x: (x, x > 0))(0.5)


def test_python_numbers_keep_their_digits():
    x = np.float64(1)
    identity = lambda x: x
    assert float(weft.jvp(identity, (x,), (0.1,))[1]) == 0.1
    assert float(weft.vjp(identity, x)[1](0.1)[0]) == 0.1
    assert float(weft.linearize(identity, x)[1](0.1)) == 0.1
    assert float(weft.linear_transpose(identity, x)(0.1)[0]) == 0.1


def test_aux_may_hold_anything():
    word = object()
    gradient, aux = weft.grad(lambda x: (x * x, {"x": x, "word": word}), has_aux=True)(3.0)
    assert float(gradient) == 6 and float(aux["x"]) == 3 and aux["word"] is word
    inside = weft.jit(lambda x: weft.grad(lambda x: (x * x, word), has_aux=True)(x)[0])
    assert float(inside(3.0)) == 6


def test_tangents_of_integers_are_tangents_again():
    y, dy = weft.jvp(lambda x: (x * 2.0, wnp.int32(3)), (2.0,), (1.0,))
    value, tangent = weft.jvp(lambda y: y[0] * y[1], (y,), (dy,))
    assert float(value) == 12 and float(tangent) == 6
