"""Derivatives at special points, of everything public that takes one or two numbers, a short vector or a small matrix:
zeros of both signs, kinks, poles, ties, infinities and NaN, against JAX. What differs is listed with its reason.
"""

import inspect
import itertools
import zlib

import numpy as np
import pytest

import weft
import weft.numpy as wnp
from weft.scipy import special, stats

jax = pytest.importorskip("jax")
jnp = jax.numpy

inf, nan = np.inf, np.nan
NUMBERS = np.float32([0, -0.0, 1, -1, 0.5, -0.5, 2, -2, 3, -3, 6, inf, -inf, nan])
PAIRS = np.float32(list(itertools.product(NUMBERS, [0, -0.0, 1, -1, 0.5, 2, inf, -inf, nan])))
VECTORS = np.float32(list(itertools.product([0, 1, -1, inf, -inf, nan], repeat=3)))
ROWS = [(0, 0), (1, 1), (1, 0), (0, 1), (-1, 1), (1, 2), (2, 4), (0, -3)]
MATRICES = np.float32(list(itertools.product(ROWS, repeat=2)))
WIDE = np.float32(
    [[[0, 0, 0]] * 2, [[1, 1, 1]] * 2, [[1, 0, 0], [0, 1, 0]], [[1, 2, 3], [2, 4, 6]], [[1, 2, 3], [4, 5, 6]]]
)
ARGUMENTS = {
    "number": (NUMBERS,),
    "pair": tuple(PAIRS.T.copy()),
    "vector": (VECTORS,),
    "matrix": (MATRICES,),
    "wide": (WIDE,),
}
# Not functions of the values of their arguments, or other names of functions that are here.
LEFT_OUT = """
    abs acos acosh amax amin asin asinh atan atan2 atanh around absolute conj degrees radians pow true_divide
    permute_dims empty empty_like zeros_like ones_like full_like swish hard_swish fix histogram histogram_bin_edges
    linspace logspace geomspace vectorize unravel_index roll double float64 softmax log_softmax dot_product_attention
"""


MODULES = {
    "numpy": (wnp, jnp),
    "nn": (weft.nn, jax.nn),
    "lax": (weft.lax, jax.lax),
    "special": (special, jax.scipy.special),
}


def public(module):
    """(name, Weft's, JAX's) of its functions."""
    ours, theirs = MODULES[module]
    for name in sorted(set(ours.__all__) - set(LEFT_OUT.split())):
        function = getattr(ours, name)
        if callable(function) and not inspect.isclass(function) and callable(getattr(theirs, name, None)):
            yield name, function, getattr(theirs, name)


def infinite(at, ours, theirs):
    return np.isinf(at).any()


def missing(at, ours, theirs):
    return np.isnan(at).any()


def first_zero(at, ours, theirs):
    return at[0] == 0


def second_zero(at, ours, theirs):
    return at[1] == 0


def first_infinite(at, ours, theirs):
    return at[0] == inf


def end(at, ours, theirs):
    return at[0] in (0, 1)


def outside(at, ours, theirs):
    return at[0] < 0


def nan_in_jax(at, ours, theirs):
    """JAX multiplies 0 by an infinity where Weft does not."""
    return np.isnan(theirs).any() and not np.isnan(ours).any() and not np.isnan(at).any()


def no_ordinary_gamma(at, ours, theirs):
    return not (0 < at[0] < inf and 0 < at[1] < inf)


def either(*where):
    return lambda *a: any(w(*a) for w in where)


# Where derivatives are not JAX's: at these points, for this reason.
DIFFERENCES = {
    "x ** y": (nan_in_jax, "at (0, 0) it is 0 times the infinity 1 / x in JAX"),
    "numpy.power": (nan_in_jax, "as x ** y"),
    "numpy.float_power": (nan_in_jax, "as x ** y"),
    "numpy.vander": (lambda at, ours, theirs: 0 in at[0], "as x ** y"),
    "numpy.arccosh": (outside, "not in the domain: the sign of an infinity at -1"),
    "numpy.logaddexp": (infinite, "JAX's rule takes infinities for 0"),
    "numpy.logaddexp2": (infinite, "JAX's rule takes infinities for 0"),
    "lax.cumlogsumexp": (infinite, "as logaddexp"),
    "numpy.i0": (nan_in_jax, "infinite beyond the dtype, as the function; in JAX infinity times 0"),
    "special.i1": (nan_in_jax, "as numpy.i0"),
    "lax.bessel_i1e": (missing, "NaN at NaN; JAX has 1/2"),
    "lax.igamma": (no_ordinary_gamma, "NaN outside of the domain, limits at its ends; JAX mixes both"),
    "lax.igammac": (no_ordinary_gamma, "as igamma"),
    "special.gammainc": (no_ordinary_gamma, "as igamma"),
    "special.gammaincc": (no_ordinary_gamma, "as igamma"),
    "numpy.max": (missing, "of one number it is the number; JAX divides 0 by 0"),
    "numpy.min": (missing, "as max"),
    "numpy.quantile": (nan_in_jax, "q = inf counts as the end; JAX multiplies it by the 0 of a row of one number"),
    "numpy.nanquantile": (nan_in_jax, "as quantile"),
    "numpy.percentile": (nan_in_jax, "as quantile"),
    "numpy.nanpercentile": (nan_in_jax, "as quantile"),
    "nn.soft_sign": (infinite, "0, the limit; NaN in JAX"),
    "nn.squareplus": (
        either(infinite, lambda at, o, t: not np.any(at)),
        "the limits; at b = 0 there is none. NaN in JAX",
    ),
    "nn.celu": (lambda at, ours, theirs: at[0] > 0, "alpha has no part in it there; NaN for some in JAX"),
    "nn.log1mexp": (outside, "not in the domain"),
    "nn.standardize": (lambda at, ours, theirs: len(set(at[0])) == 1, "equal numbers: what rounding leaves of them"),
    "lax.digamma": (infinite, "0 at inf; NaN in JAX"),
    "special.digamma": (infinite, "as lax.digamma"),
    "special.boxcox": (second_zero, "the derivative by lmbda at 0 is 0 in JAX, from a branch"),
    "special.boxcox1p": (second_zero, "as boxcox"),
    "special.i0": (first_zero, "JAX differentiates exp(abs(x)) and its inverse apart"),
    "special.ndtri": (end, "0 in JAX, from a branch"),
    "special.poch": (nan_in_jax, "JAX subtracts infinities"),
    "special.xlogy": (first_zero, "a term that is left out has the derivatives 0"),
    "special.xlog1py": (first_zero, "as xlogy"),
    "linalg.slogdet": (
        lambda at, ours, theirs: abs(np.linalg.det(at[0])) < 1e-3,
        "of singular matrices: NaN or infinite",
    ),
    "norm.ppf": (end, "as ndtri"),
    "bernoulli.logpmf": (
        either(end, lambda at, o, t: at[0] == 0.5),
        "as xlogy; k that is not whole has the probability 0",
    ),
    "bernoulli.pmf": (either(end, lambda at, o, t: at[0] == 0.5), "as logpmf"),
    "beta.logpdf": (either(end, outside), "as xlogy; parameters outside of their domain"),
    "beta.pdf": (either(end, outside, lambda at, o, t: at[0] == 0.5), "as logpdf; infinite for the parameter 0.5"),
    "gamma.logpdf": (either(first_zero, missing), "as xlogy; JAX's value at NaN is -inf"),
    "gamma.pdf": (either(first_zero, missing), "as logpdf"),
    "uniform.cdf": (missing, "JAX's value at NaN is 0"),
}


SPECTRAL = ("ord=2", "ord=-2", "ord='nuc'", "cond(x, None)", "cond(x, -2)", "svdvals", "eigvalsh")


def undetermined(name, at):
    """Whether the derivative is one of many, of which rounding inside LAPACK chooses, differently from one CPU to the
    next: by equal singular values or eigenvalues, and by the singular value 0. Diagonal matrices are not rounded.
    """
    x = np.float64(at[0])
    if x.ndim != 2 or not any(part in name for part in SPECTRAL):
        return False
    values = np.linalg.eigvalsh(x + x.T) if "eigvalsh" in name else np.append(np.linalg.svd(x)[1], 0)
    return np.any(x * (1 - np.eye(*x.shape))) and np.min(np.diff(np.sort(values))) < 1e-3


# Parameters of the distributions; each is tried as the argument, too.
PARAMETERS = {
    "gamma": [(2.5,), (1.0,)],
    "beta": [(2.5, 1.5), (1.0, 1.0)],
    "t": [(4.0,)],
    "bernoulli": [(0.25,), (1.0,)],
}
PARAMETERS["poisson"] = [(3.0,)]


def of_x(method, parameters):
    return lambda x: method(x, *parameters)


def of_parameter(method, parameters, i):
    return lambda p: method(1.0, *parameters[:i], p, *parameters[i + 1 :])


def distributions():
    for name in sorted(set(stats.__all__) - {"dirichlet", "multivariate_normal"}):
        ours, theirs = getattr(stats, name), getattr(jax.scipy.stats, name)
        methods = [m for m in dir(ours) if not m.startswith("_") and hasattr(theirs, m)]
        for method, parameters in itertools.product(methods, PARAMETERS.get(name, [()])):
            f, g = getattr(ours, method), getattr(theirs, method)
            yield f"{name}.{method}{parameters}", of_x(f, parameters), of_x(g, parameters)
            for i in range(len(parameters)):
                yield (
                    f"{name}.{method} of parameter {i}",
                    of_parameter(f, parameters, i),
                    of_parameter(g, parameters, i),
                )


# Names are those of weft.numpy (np), nn, lax, special.
EXPRESSIONS = {
    "number": [f"x ** {p}" for p in (0, 1, 2, 3, -1, -2, 0.5, -0.5)]
    + [f"{p} ** x" for p in (0, 1, 2, -1)]
    + ["nn.gelu(x, approximate=False)", "np.nan_to_num(x, nan=x)", "special.multigammaln(x, 2)"],
    "pair": [f"x {sign} y" for sign in ("+", "-", "*", "/", "//", "%", "**")]
    + ["np.clip(x, y)", "abs(x) * y", "lax.clamp(y, x, 1.0)", "lax.clamp(0.0, x, y)"],
    "vector": [f"np.linalg.norm(x, ord={o})" for o in (0, 1, 2, 3, 0.5, -1, "np.inf", "-np.inf")]
    + [f"lax.{c}(x, reverse=True)" for c in ("cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp")]
    + [f"np.{f}(x, ddof=1)" for f in ("var", "std", "nanvar", "nanstd")]
    + [f"np.{f}(x, {q})" for f in ("quantile", "nanquantile") for q in (0.25, 1)]
    + [f"np.{f}(x, initial=1.0)" for f in ("max", "min", "prod")]
    + ["lax.top_k(x, 2)[0]"],
    "matrix": [f"np.linalg.norm(x, ord={o})" for o in (None, 1, -1, 2, -2, "np.inf", "-np.inf", "'nuc'")]
    + [f"np.linalg.cond(x, {o})" for o in (None, -2, 1, "'fro'")]
    + [f"np.linalg.{f}(x)" for f in ("det", "inv", "pinv", "slogdet", "svdvals", "eigvalsh", "cholesky")],
    "wide": [f"np.linalg.norm(x, ord={o})" for o in (1, 2, -2, "np.inf", "'nuc'")] + ["np.linalg.pinv(x)"],
}


def expressions(kind):
    ours, theirs = ({"np" if m == "numpy" else m: pair[i] for m, pair in MODULES.items()} for i in (0, 1))
    variables = "x, y" if kind == "pair" else "x"
    for text in EXPRESSIONS[kind]:
        yield text, eval(f"lambda {variables}: {text}", ours), eval(f"lambda {variables}: {text}", theirs)


def weighted(library, f):
    """The sum of all numbers that f returns, each with a weight of its own."""
    leaves, np_ = (jax.tree_util.tree_leaves, jnp) if library is jax else (weft.tree.leaves, wnp)

    def total(*args):
        floats = [x for x in leaves(f(*args)) if str(x.dtype) == "float32"]
        if not floats:
            raise TypeError("no numbers of float32")
        weights = [np.arange(10 * k + 1, 10 * k + 1 + x.size, dtype="float32") for k, x in enumerate(floats)]
        return sum(np_.sum(x * w.reshape(x.shape)) for x, w in zip(floats, weights))

    return total


def derivatives(library, f, args, forward):
    """By each argument, in forward or in reverse mode. JAX's compiled as a whole: a third of the time."""
    f, places = weighted(library, f), range(len(args))
    of = lambda i, a: lambda x: f(*a[:i], x, *a[i + 1 :])
    if forward:
        all_of = lambda *a: [library.jacfwd(of(i, a))(a[i]) for i in places]
    else:
        all_of = library.grad(f, tuple(places))
    run = jax.jit if library is jax else lambda f: f
    return [np.asarray(d) for d in run(library.vmap(all_of))(*args)]


def same(a, b):
    with np.errstate(invalid="ignore"):
        near = np.abs(a - b) <= 2e-4 * np.maximum(np.abs(a), np.abs(b)) + 3e-5
    return (a == b) | (np.isnan(a) & np.isnan(b)) | (np.isfinite(a) & np.isfinite(b) & near)


def takes(kind, f):
    """Whether a function of JAX has a gradient at such arguments."""
    try:
        jax.eval_shape(jax.grad(weighted(jax, f), tuple(range(len(ARGUMENTS[kind])))), *(a[2] for a in ARGUMENTS[kind]))
    except Exception:
        return False
    return True


def differences(kind, f, g):
    """(point, derivatives in both modes, JAX's) where one of f, Weft's, is that of neither mode of JAX, which differ
    where 0 meets an infinity."""
    args = ARGUMENTS[kind]
    ours = [derivatives(weft, f, args, forward) for forward in (False, True)]
    theirs = [derivatives(jax, g, args, False)]

    def agree(i):
        return np.all([np.any([same(mode[i], other[i]) for other in theirs], 0) for mode in ours], 0)

    if not all(agree(i).all() for i in range(len(args))):
        theirs.append(derivatives(jax, g, args, True))
    found = []
    for i in range(len(args)):
        good = agree(i).reshape(len(args[i]), -1).all(-1)
        found += [
            ([a[k] for a in args], [m[i][k] for m in ours], [m[i][k] for m in theirs]) for k in np.flatnonzero(~good)
        ]
    return found


def elementwise(g):
    return getattr(jax.eval_shape(g, VECTORS[0]), "shape", None) == (3,)


def functions(group):
    """(name, kind of arguments, Weft's function, JAX's) of a group, each function once."""
    if group == "stats":
        yield from ((name, "number", f, g) for name, f, g in distributions())
    elif group == "expressions":
        for kind in EXPRESSIONS:
            yield from ((text, kind, f, g) for text, f, g in expressions(kind))
    else:
        before = set() if group == "numpy" else {id(f) for _, f, _ in public("numpy")}
        for name, f, g in public(group):
            if id(f) in before:
                continue
            for kind in ("number", "pair", "vector"):
                yield f"{group}.{name}", kind, f, g


def listed(name):
    """The name that a function has among the differences."""
    plain = name.replace("np.linalg", "linalg").split(" of ")[0]
    return name if name in DIFFERENCES else plain.split("(")[0]


# Not compared: JAX's loops do not end at some of these points; and what these have at the ends of their domains and
# outside, where JAX mixes limits, zeros and NaN, is not settled.
APART = {
    "special.expn",
    "beta.cdf",
    "beta.logcdf",
    "beta.logsf",
    "beta.sf",
    "expon.logcdf",
    "expon.logsf",
    "expon.sf",
    "gamma.cdf",
    "gamma.logcdf",
    "gamma.logsf",
    "gamma.sf",
    "gumbel_l.cdf",
    "norm.isf",
    "poisson.cdf",
    "poisson.entropy",
    "special.exp1",
    "special.i1e",
    "special.spence",
    "special.zeta",
}
# Groups, in parts that take about as long, and how many functions each compares at least.
GROUPS = {"numpy": (2, 40), "nn": (1, 20), "lax": (1, 15), "special": (4, 8), "stats": (1, 25), "expressions": (1, 60)}


@pytest.mark.parametrize("group, part", [(group, i) for group, (parts, _) in GROUPS.items() for i in range(parts)])
def test_derivatives_are_those_of_jax(group, part):
    parts, least = GROUPS[group]
    compared, wrong, used = set(), [], set()
    for name, kind, f, g in functions(group):
        if zlib.crc32(listed(name).encode()) % parts != part or listed(name) in APART or not takes(kind, g):
            continue
        # What is done to every element has been compared at every number.
        if kind == "vector" and name in compared and elementwise(g) and "cum" not in name:
            continue
        found = [difference for difference in differences(kind, f, g) if not undetermined(name, difference[0])]
        allowed, _ = DIFFERENCES.get(listed(name), (lambda *_: False, ""))
        wrong += [
            f"{name} at {at}: {ours}, JAX {theirs}" for at, ours, theirs in found if not allowed(at, ours, theirs)
        ]
        used |= {listed(name) for difference in found if allowed(*difference)}
        compared.add(name)
    assert not wrong, "\n".join(wrong)
    assert len(compared) >= least
    mine = {n for n in DIFFERENCES if n in compared or any(listed(c) == n for c in compared)}
    assert used == mine, "differences that are none"


@pytest.mark.parametrize("order", [2, "nuc"])
def test_undetermined_derivatives_of_norms_are_subgradients(order):
    """A plane through a convex function's graph, with such a slope, lies nowhere above the graph."""
    at = np.stack([x for x in MATRICES if undetermined(f"ord={order!r}", [x])])
    assert len(at) > 20
    slopes = np.asarray(weft.vmap(weft.grad(lambda x: wnp.linalg.norm(x, ord=order)))(at))
    steps = np.random.default_rng(0).standard_normal((200, 2, 2))
    for x, slope in zip(at, slopes):
        change = np.linalg.norm(x + steps, order, axis=(1, 2)) - np.linalg.norm(x, order)
        assert np.all(change >= np.sum(slope * steps, (1, 2)) - 1e-5), x


def test_relative_entropy_of_nan():
    special = pytest.importorskip("scipy.special")
    for p, q in [(2, np.nan), (np.nan, 2), (-1, np.nan), (np.nan, -1), (0, np.nan), (0, -1), (2, 0), (0, 0), (-1, 2)]:
        for name in ("rel_entr", "kl_div"):
            got = getattr(weft.scipy.special, name)(float(p), float(q))
            np.testing.assert_array_equal(got, getattr(special, name)(p, q), f"{name}({p}, {q})")
