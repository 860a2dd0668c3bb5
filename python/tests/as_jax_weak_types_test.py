"""The types of results of Python's numbers, alone and beside arrays: dtype and whether they are weak, of every public
function of jax.numpy, jax.lax, jax.nn, jax.scipy.special and jax.scipy.stats, on Weft and under JAX."""

import textwrap

import pytest
from as_jax_both import both, lines

pytest.importorskip("jax")

PROGRAM = """
import importlib, inspect, itertools
import jax.nn, jax.scipy.special, jax.scipy.stats
# Numbers of Python's (i, f, b, c), arrays (I, F, H, B), weak ones (w, W, V), a number of NumPy's (n).
given = {
    "i": 2, "f": 0.5, "b": True, "c": 0.5 + 1j, "n": np.float32(0.5), "w": jnp.asarray(0.5),
    "I": jnp.array([1, 2, 3]), "F": jnp.array([0.25, 0.5, 0.75], jnp.float32), "B": jnp.array([True, False, True]),
    "H": jnp.array([0.25, 0.5, 0.75], jnp.float16), "W": jnp.asarray(0.5) * jnp.array([1, 1, 1]),
    "V": jnp.asarray(2) * jnp.array([True] * 3),
}
one, two, three = "ifbcnwIFHBWV", "ifbIHwWV", "ifH"
calls = [(a,) for a in one] + [*itertools.product(two, repeat=2), ("f", "c"), ("c", "I"), ("F", "n"), ("i", "B")]
calls += itertools.product(three, repeat=3)
calls += map(tuple, "bbb Iff fIf ffI WWW Wff fWf ffW fff VVV Iii".split())
calls += map(tuple, "iiii ffff ifif FFFF Hfff fHff Ifff fIff ffIf Wfff ffWf fffW iiiW fffff ififi Hffff".split())
def text(value):
    if isinstance(value, (bool, int, float, complex, str, np.ndarray, np.generic)):
        value = jnp.asarray(value)
    weak = " weak" if getattr(value, "weak_type", False) else ""
    return f"{getattr(value, 'dtype', type(value).__name__)}{list(getattr(value, 'shape', ()))}{weak}"
def functions(name):
    module = importlib.import_module(name)
    for attribute in sorted(dir(module)):
        function = getattr(module, attribute, None)
        if attribute.startswith("_") or attribute.endswith("_p") or attribute in LEFT_OUT:
            continue
        if callable(function) and not inspect.isclass(function):
            yield attribute, function
def count(function):
    try:
        kinds = [p.kind for p in inspect.signature(function).parameters.values()]
        needed = [p for p in inspect.signature(function).parameters.values() if p.default is p.empty]
    except (TypeError, ValueError):
        return 1, 5
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    most = 3 if inspect.Parameter.VAR_POSITIONAL in kinds else sum(kind in positional for kind in kinds)
    return sum(p.kind in positional for p in needed), most
for name in MODULES:
    for attribute, function in functions(name):
        fewest, most = count(function)
        for call in calls:
            if not fewest <= len(call) <= most:
                continue
            try:
                found = jax.eval_shape(lambda: function(*(given[kind] for kind in call)))
                out[f"{name}.{attribute}({', '.join(call)})"] = str(jax.tree.map(text, found))
            except Exception:
                pass
"""

_STATS = """
    bernoulli beta betabinom binom cauchy chi2 dirichlet expon gamma gennorm geom gumbel_l gumbel_r laplace logistic
    multinomial multivariate_normal nbinom norm pareto poisson t truncnorm uniform vonmises wrapcauchy
"""
MODULES = {
    "numpy": ["jax.numpy", "jax.numpy.linalg", "jax.numpy.fft"],
    "lax": ["jax.lax"],
    "nn, special": ["jax.nn", "jax.scipy.special"],
    "stats": ["jax.scipy.stats", *(f"jax.scipy.stats.{name}" for name in _STATS.split())],
}
# What asks of arguments what they are, reads files, or makes tokens.
_LEFT_OUT = """
    apply_along_axis apply_over_axes array_repr array_str broadcast_shapes cond create_token frombuffer fromfile
    fori_loop from_dlpack fromfunction fromiter frompyfunc fromstring get_printoptions kaiser load map printoptions
    save savez scan set_printoptions switch vectorize while_loop
"""


@pytest.mark.parametrize("modules", MODULES)
def test_types_of_results(modules):
    program = f"MODULES, LEFT_OUT = {MODULES[modules]}, {_LEFT_OUT.split()}\n{PROGRAM}"
    ours, theirs = lines(program, "-m", "weft.as_jax"), lines(program, JAX_PLATFORMS="cpu")
    shared = ours.keys() & theirs.keys()
    assert len(shared) > 0.85 * len(theirs), f"{len(theirs)} calls work under JAX, {len(shared)} of them on Weft"
    differing = {call: (ours[call], theirs[call]) for call in sorted(shared) if ours[call] != theirs[call]}
    assert not differing, f"on Weft, and under JAX: {differing}"


def test_types_of_results_at_once_and_by_name():
    """Outside of traced functions, and with arguments by name; ufuncs stay ufuncs."""
    found = both(
        textwrap.dedent("""
        import jax.scipy.stats as stats, jax.scipy.special as special
        calls = {
            "gcd": lambda: jnp.gcd(4, 6), "lcm": lambda: jnp.lcm(4, jnp.arange(3)), "norm": lambda: stats.norm.cdf(0.5),
            "named": lambda: stats.norm.pdf(x=jnp.arange(3), loc=0.5), "beta": lambda: stats.beta.cdf(0.5, a=2, b=3),
            "equal": lambda: jnp.equal(2, 2.0), "less": lambda: jnp.less(2, jnp.arange(3)), "i0": lambda: special.i0(2),
            "frexp": lambda: jnp.frexp(0.5), "power": lambda: jnp.power(2.5, jnp.arange(3)), "sem": lambda: stats.sem(
            jnp.ones(3, jnp.float16)), "cov": lambda: jnp.cov(jnp.arange(3), jnp.ones(3, jnp.float16)),
            "nan": lambda: jnp.nan_to_num(jnp.ones(2, jnp.float16), nan=np.float32(1)), "log2": lambda: jnp.log2(2),
            "ppf": lambda: stats.norm.ppf(0.5, loc=jnp.ones(2, jnp.float16)), "and": lambda: jnp.logical_and(1, True),
        }
        for name, f in calls.items():
            out[name] = [str(jax.tree.map(jax.typeof, g())) for g in (f, jax.jit(f), jax.jit(lambda: jax.vmap(
                lambda _: f())(jnp.arange(2))))]
        out["ufuncs"] = [isinstance(f, jnp.ufunc) for f in (jnp.logaddexp, jnp.logical_and, jnp.gcd, jnp.equal)]
        flags = jnp.array([True, False])
        out["reduced"] = [str(jnp.logaddexp.reduce(jnp.zeros(2))), str(jnp.logical_and.reduce(flags))]
        out["carried"] = int(lax.while_loop(lambda c: c[0], lambda c: (jnp.less(c[1], 3), c[1] + 1), (flags[0], 0))[1])
        same = jnp.equal(1, 1)
        out["chosen"] = [str(lax.cond(same, lambda: 1.0, lambda: 2.0)), str(jnp.where(same, 1, 2))]
        """)
    )
    assert found["gcd"][0] == "~int32[]"


def test_functions_are_pickled_by_their_names():
    program = """
import pickle
import jax.scipy.stats as stats
for f in (jnp.gcd, jnp.logaddexp, jnp.logical_and, jnp.equal, stats.norm.cdf, jax.nn.gelu, jax.lax.cumsum):
    out[f.__name__] = pickle.loads(pickle.dumps(f)) is f
"""
    assert all(lines(program, "-m", "weft.as_jax").values())
