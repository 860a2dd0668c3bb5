"""Parameters of JAX's functions that few programs use, beside JAX: value, dtype, and whether it is weak."""

import math

import pytest
from as_jax_both import lines

import weft
import weft.numpy as wnp


def alike(found, wanted):
    """Whether they are the same, but for roundings."""
    if isinstance(wanted, list) and isinstance(found, list):
        return len(found) == len(wanted) and all(map(alike, found, wanted))
    if isinstance(wanted, float) and isinstance(found, float):
        return math.isclose(found, wanted, rel_tol=1e-3, abs_tol=1e-5) or (math.isnan(found) and math.isnan(wanted))
    return found == wanted


def checked(expressions):
    """Compares expressions of `x` (an array of floats), `i` (of integers), `c` (of complex numbers) and `key`; an error
    is to be of the kind that JAX raises."""
    pytest.importorskip("jax")
    each = [one.strip() for line in expressions.splitlines() for one in line.split(" | ")]
    code = f"""
        import jax.scipy.linalg, jax.scipy.signal, jax.scipy.special, jax.scipy.stats
        i = jnp.arange(-2, 8)
        x = jnp.linspace(-2.0, 7.0, 10)
        c = x + 1j * x[::-1]
        key = jax.random.key(3)
        def said(v):
            if isinstance(v, jax.Array):
                number = np.asarray(v)
                parts = [number.real.tolist(), number.imag.tolist()]
                return [str(v.dtype), bool(v.weak_type), list(v.shape), *parts]
            return [type(v).__name__, *map(said, v)] if isinstance(v, (tuple, list)) else repr(v)
        def value(expression):
            try:
                return said(eval(expression))
            except Exception as error:
                kinds = (IndexError, KeyError, NotImplementedError, OverflowError, TypeError, ValueError)
                return {{"error": [kind.__name__ for kind in kinds if isinstance(error, kind)]}}
        for expression in {each!r}:
            out[expression] = value(expression)
        """
    ours, theirs = lines(code, "-m", "weft.as_jax"), lines(code, JAX_PLATFORMS="cpu")
    for expression in each:
        found, wanted = ours[expression], theirs[expression]
        if isinstance(wanted, dict):
            assert isinstance(found, dict) and set(wanted["error"]) <= set(found["error"]), (expression, found, wanted)
        else:
            assert alike(found, wanted), (expression, found, wanted)


def test_activations_of_integers_and_complex_numbers():
    checked(
        """jax.nn.elu(i) | jax.nn.celu(i, 2) | jax.nn.selu(i) | jax.nn.relu6(i) | jax.nn.sparse_plus(i)
        jax.nn.squareplus(i) | jax.nn.squareplus(i, 2.0) | jax.nn.squareplus(x) | jax.nn.relu(i) | jax.nn.silu(x)
        jax.nn.soft_sign(c) | jax.nn.squareplus(c) | jax.nn.soft_sign(x) | jax.nn.relu6(x)"""
    )


def test_carries_that_get_another_dtype_are_no_python_numbers():
    checked(
        """lax.scan(lambda a, b: (a + 1.0, b), 0, x)[0] | lax.while_loop(lambda a: a < 3, lambda a: a + 1.0, 1)
        lax.fori_loop(0, 3, lambda _, a: a * 0.5, 1) | lax.fori_loop(0, 3, lambda _, a: a + 1, 1)
        lax.scan(lambda a, b: (a * b, b), 1.0, x)[0] | lax.scan(lambda a, b: (a * 2, b), 1.0, x)[0]"""
    )


def test_factorisations_and_norms():
    checked(
        """jax.scipy.linalg.svd(jnp.eye(2))[1] | len(jax.scipy.linalg.svd(jnp.eye(2)))
        type(jax.scipy.linalg.svd(jnp.eye(2))) | type(jnp.linalg.qr(jnp.eye(2), mode="raw")).__name__
        jnp.linalg.slogdet(jnp.eye(2), method="qr")[0] | jnp.linalg.slogdet(jnp.eye(2), method="no")
        jnp.linalg.trace(0.7 * jnp.eye(3), dtype="int8") | jnp.linalg.vector_norm(x, ord=None)
        jnp.linalg.vector_norm(x, ord="fro") | jnp.matmul(x, x, precision="no") | jnp.dot(x, x, precision="highest")
        jnp.dot(x, x, precision=lax.DotAlgorithmPreset.F32_F32_F32) | lax.dot(x, x, precision=("high", "no"))"""
    )


def test_samplers():
    checked(
        """jax.random.t(key, jnp.array([2.0, 3.0])) | jax.random.t(key, 2.0) | jax.random.t(key, 2.0, (3,))
        jax.random.categorical(key, x, shape=3) | jax.random.categorical(key, x, shape=[2, 3])
        jax.random.choice(key, jnp.ones((3, 4)), axis=5) | jax.random.choice(key, jnp.eye(3), axis=-1)
        jax.random.key_data(jax.random.fold_in(key, 2.7)) | jax.random.key_data(jax.random.fold_in(key, x[8]))"""
    )


def test_normal_vectors_of_half_precision():
    key, cov = weft.random.key(0), wnp.array([[2.0, 0.5], [0.5, 1.0]])
    for method in ("cholesky", "eigh", "svd"):
        wide = weft.random.multivariate_normal(key, wnp.zeros(2), cov, (500,), method=method)
        half = weft.random.multivariate_normal(key, wnp.zeros(2), cov, (500,), "float16", method=method)
        assert half.dtype == "float16" and half.shape == wide.shape
        assert wnp.allclose(wnp.cov(half.astype("float32").T), cov, atol=0.3)


def test_names_and_defaults():
    checked(
        """jax.scipy.special.log_ndtr(x, 5) | jax.scipy.special.log_ndtr(x, series_order=-1)
        jax.scipy.special.log_ndtr(x, series_order=31) | jax.scipy.special.log_ndtr(x, series_order=2.0)
        jnp.mask_indices(3, jnp.triu, size=4) | jnp.isscalar(element=3) | jnp.issubdtype(arg1="int8", arg2=jnp.integer)
        jnp.einsum_path("ij,jk,kl", jnp.ones((2, 3)), jnp.ones((3, 4)), jnp.ones((4, 5)))[0]
        issubclass(jnp.ComplexWarning, Warning) | jnp.object_ | jnp.flexible | jnp.character
        hasattr(lax, "PrecisionLike") and hasattr(lax, "DotDimensionNumbers")
        jax.image.resize(x, 5, "linear") | jax.scipy.stats.gaussian_kde(i[:4]).evaluate(x[:3])"""
    )


def test_types_of_other_sizes_and_texts_of_structures():
    checked(
        """jax.typeof(jnp.ones((2, 3))).update(shape=(4,)) | jax.typeof(jnp.ones((2, 3))).update(shape=(4, 5, 6))
        str(jax.tree.structure(__import__("collections").OrderedDict(b=1, a=2)))
        str(jax.tree.structure(__import__("collections").defaultdict(int, a=1)))
        jax.ShapeDtypeStruct((2,), "int8") == jax.ShapeDtypeStruct((2,), "int8", sharding=jnp.ones(2).sharding)
        jax.ShapeDtypeStruct((2,), "int8") == jax.ShapeDtypeStruct([2], jnp.int8)"""
    )


def test_arrays_and_bytes():
    checked(
        """jnp.frombuffer(np.arange(3.0).tobytes()) | jnp.frombuffer(np.arange(3.0).tobytes(), dtype="float64")
        jnp.from_dlpack(np.arange(2.0)) | jnp.from_dlpack(np.arange(2)) | jnp.from_dlpack(np.ones(2, "int8"))
        jnp.frombuffer(b"ab", dtype="uint8") | jnp.frombuffer(np.arange(2).tobytes(), dtype=int)
        jnp.take_along_axis(i, jnp.array([1, 15]), 0, mode="drop") | jnp.sum(x, out=x) | jnp.take(x, 0, out=x)
        lax.full((2,), 0.5) | lax.full(3, x[0]) | lax.full(3, 1, "int8") | lax.top_k(x, 2) | lax.top_k(x, 2)[1]
        jnp.gradient(x, edge_order=1) | jnp.linspace(0.2, 0.8, 3, dtype=bool)
        jnp.arange(jnp.int8(3), out_sharding=jax.sharding.NamedSharding(jax.make_mesh((1,), ("x",)), P()))"""
    )


def test_whole_numbers_at_equal_distances():
    for first in range(-20, 20):
        for count in (3, 7, 49, 50, 100):
            assert (wnp.linspace(first, first, count, dtype=int) == first).all()
            assert (wnp.linspace(first, first + count - 1, count, dtype=int) == first + wnp.arange(count)).all()
    assert wnp.linspace(0, 5, 5, endpoint=False, dtype=int).tolist() == [0, 1, 2, 3, 4]


def test_windows():
    names = ["barthann", "blackmanharris", "bohman", "cosine", "exponential", "flattop", "lanczos", "nuttall"]
    names += ["parzen", "triang", "tukey"]
    more = [("tukey", 0.3), ("gaussian", 3.0), ("general_gaussian", 1.5, 3.0), ("general_hamming", 0.7)]
    more += [("general_cosine", (1, 0.5, 0.2)), ("exponential", None, 3.0), ("kaiser", 4.0)]
    lengths = {8: names + more, 9: names + more, 1: ["parzen"]}
    welch = "jax.scipy.signal.welch(jnp.sin(x ** 2), window={!r}, nperseg={})[1]"
    checked("\n".join(welch.format(window, n) for n, windows in lengths.items() for window in windows))
    checked("jax.scipy.signal.welch(x, window='no', nperseg=4) | jax.scipy.signal.welch(x, window='kaiser', nperseg=4)")


def test_exponential_integrals_of_negative_order():
    checked("jax.scipy.special.expn(jnp.array([-1, 0, 2, -2]), jnp.array([2.0, 2.0, 2.0, 9.0]))")
    f = weft.scipy.special.expn
    assert wnp.allclose(f(-3, 0.5), wnp.exp(-0.5) * (6 / 0.5**4 + 6 / 0.5**3 + 3 / 0.5**2 + 1 / 0.5), rtol=1e-5)
    assert wnp.allclose(weft.jit(f)(-3, 0.5), f(-3, 0.5), rtol=1e-6)


def test_logs_have_the_names_of_jax():
    found = lines(
        """
        import logging
        class Kept(logging.Handler):
            def emit(self, record):
                out.setdefault(record.name, record.levelname)
        logging.getLogger("jax").addHandler(Kept())
        f = jax.jit(lambda x: 7 * x)
        with jax.log_compiles():
            f(1.0)
        with jax.explain_cache_misses(True):
            f(jnp.ones(3))
        """,
        "-m",
        "weft.as_jax",
    )
    assert found == {
        "jax._src.dispatch": "WARNING",
        "jax._src.interpreters.pxla": "WARNING",
        "jax._src.interpreters.partial_eval": "WARNING",
    }
