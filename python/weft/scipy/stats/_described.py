"""What the docstrings of distributions say alike, with an example for each method."""

from __future__ import annotations

from ... import numpy as wnp
from ..._weft import Array

# For each method arguments, and what it gives.
_EXAMPLES = {
    "norm": {
        "isf": ("0.025", "Array(1.9599639, dtype=float32)"),
        "logpdf": ("0.0", "Array(-0.9189385, dtype=float32, weak_type=True)"),
        "cdf": ("1.96", "Array(0.9750021, dtype=float32, weak_type=True)"),
        "logcdf": ("-30.0", "Array(-454.32123, dtype=float32, weak_type=True)"),
        "sf": ("1.96", "Array(0.02499789, dtype=float32, weak_type=True)"),
        "logsf": ("30.0", "Array(-454.32123, dtype=float32, weak_type=True)"),
        "ppf": ("0.975", "Array(1.9599642, dtype=float32)"),
        "pdf": ("0.0", "Array(0.3989423, dtype=float32, weak_type=True)"),
    },
    "uniform": {
        "ppf": ("0.25, 0.0, 2.0", "Array(0.5, dtype=float32, weak_type=True)"),
        "logpdf": ("0.5, 0.0, 2.0", "Array(-0.6931472, dtype=float32, weak_type=True)"),
        "cdf": ("0.5, 0.0, 2.0", "Array(0.25, dtype=float32, weak_type=True)"),
        "pdf": ("0.5, 0.0, 2.0", "Array(0.5, dtype=float32, weak_type=True)"),
    },
    "expon": {
        "logcdf": ("2.0", "Array(-0.14541346, dtype=float32, weak_type=True)"),
        "sf": ("2.0", "Array(0.13533528, dtype=float32, weak_type=True)"),
        "logsf": ("2.0", "Array(-2., dtype=float32, weak_type=True)"),
        "ppf": ("0.5", "Array(0.6931472, dtype=float32, weak_type=True)"),
        "logpdf": ("2.0", "Array(-2., dtype=float32, weak_type=True)"),
        "cdf": ("2.0", "Array(0.86466473, dtype=float32, weak_type=True)"),
        "pdf": ("2.0", "Array(0.13533528, dtype=float32, weak_type=True)"),
    },
    "gamma": {
        "cdf": ("2.0, 3.0", "Array(0.3233236, dtype=float32, weak_type=True)"),
        "logcdf": ("2.0, 3.0", "Array(-1.1291015, dtype=float32, weak_type=True)"),
        "sf": ("2.0, 3.0", "Array(0.6766764, dtype=float32, weak_type=True)"),
        "logsf": ("2.0, 3.0", "Array(-0.39056212, dtype=float32, weak_type=True)"),
        "logpdf": ("2.0, 3.0", "Array(-1.3068528, dtype=float32, weak_type=True)"),
        "pdf": ("2.0, 3.0", "Array(0.27067056, dtype=float32, weak_type=True)"),
    },
    "beta": {
        "cdf": ("0.5, 2.0, 3.0", "Array(0.6875, dtype=float32, weak_type=True)"),
        "logcdf": ("0.5, 2.0, 3.0", "Array(-0.37469345, dtype=float32, weak_type=True)"),
        "sf": ("0.5, 2.0, 3.0", "Array(0.3125, dtype=float32, weak_type=True)"),
        "logsf": ("0.5, 2.0, 3.0", "Array(-1.1631508, dtype=float32, weak_type=True)"),
        "logpdf": ("0.5, 2.0, 3.0", "Array(0.40546513, dtype=float32, weak_type=True)"),
        "pdf": ("0.5, 2.0, 3.0", "Array(1.5, dtype=float32, weak_type=True)"),
    },
    "laplace": {
        "cdf": ("1.0", "Array(0.8160603, dtype=float32, weak_type=True)"),
        "logpdf": ("1.0", "Array(-1.6931472, dtype=float32, weak_type=True)"),
        "pdf": ("1.0", "Array(0.18393973, dtype=float32, weak_type=True)"),
    },
    "logistic": {
        "sf": ("1.0", "Array(0.26894143, dtype=float32, weak_type=True)"),
        "ppf": ("0.75", "Array(1.0986123, dtype=float32, weak_type=True)"),
        "isf": ("0.75", "Array(-1.0986123, dtype=float32, weak_type=True)"),
        "logpdf": ("1.0", "Array(-1.6265234, dtype=float32, weak_type=True)"),
        "cdf": ("1.0", "Array(0.7310586, dtype=float32, weak_type=True)"),
        "pdf": ("1.0", "Array(0.19661193, dtype=float32, weak_type=True)"),
    },
    "cauchy": {
        "cdf": ("1.0", "Array(0.75, dtype=float32, weak_type=True)"),
        "logcdf": ("1.0", "Array(-0.28768206, dtype=float32, weak_type=True)"),
        "sf": ("1.0", "Array(0.24999999, dtype=float32, weak_type=True)"),
        "logsf": ("1.0", "Array(-1.3862944, dtype=float32, weak_type=True)"),
        "ppf": ("0.75", "Array(1., dtype=float32, weak_type=True)"),
        "isf": ("0.75", "Array(-1., dtype=float32, weak_type=True)"),
        "logpdf": ("1.0", "Array(-1.837877, dtype=float32, weak_type=True)"),
        "pdf": ("1.0", "Array(0.15915495, dtype=float32, weak_type=True)"),
    },
    "t": {
        "logpdf": ("1.0, 4.0", "Array(-1.5386882, dtype=float32, weak_type=True)"),
        "pdf": ("1.0, 4.0", "Array(0.21466252, dtype=float32, weak_type=True)"),
    },
    "bernoulli": {
        "cdf": ("0, 0.25", "Array(0.75, dtype=float32, weak_type=True)"),
        "ppf": ("0.9, 0.25", "Array(1., dtype=float32)"),
        "logpmf": ("1, 0.25", "Array(-1.3862944, dtype=float32, weak_type=True)"),
        "pmf": ("1, 0.25", "Array(0.25, dtype=float32, weak_type=True)"),
    },
    "poisson": {
        "cdf": ("2, 3.0", "Array(0.42319012, dtype=float32, weak_type=True)"),
        "entropy": ("3.0", "Array(1.9314702, dtype=float32)"),
        "logpmf": ("2, 3.0", "Array(-1.4959226, dtype=float32, weak_type=True)"),
        "pmf": ("2, 3.0", "Array(0.22404182, dtype=float32, weak_type=True)"),
    },
    "multivariate_normal": {
        "logpdf": ("wnp.zeros(2), wnp.zeros(2), wnp.eye(2)", "Array(-1.837877, dtype=float32)"),
        "pdf": ("wnp.zeros(2), wnp.zeros(2), wnp.eye(2)", "Array(0.15915495, dtype=float32)"),
    },
    "dirichlet": {
        "logpdf": ("wnp.array([0.2, 0.8]), wnp.array([1.0, 2.0])", "Array(0.47000366, dtype=float32)"),
        "pdf": ("wnp.array([0.2, 0.8]), wnp.array([1.0, 2.0])", "Array(1.6, dtype=float32)"),
    },
    "chi2": {
        "logpdf": ("2.0, 3.0", "Array(-1.5723649, dtype=float32, weak_type=True)"),
        "pdf": ("2.0, 3.0", "Array(0.20755374, dtype=float32, weak_type=True)"),
        "cdf": ("2.0, 3.0", "Array(0.4275933, dtype=float32, weak_type=True)"),
        "logcdf": ("2.0, 3.0", "Array(-0.8495828, dtype=float32, weak_type=True)"),
        "sf": ("2.0, 3.0", "Array(0.5724067, dtype=float32, weak_type=True)"),
        "logsf": ("2.0, 3.0", "Array(-0.5579055, dtype=float32, weak_type=True)"),
    },
    "gennorm": {
        "logpdf": ("0.5, 1.5", "Array(-0.94438565, dtype=float32, weak_type=True)"),
        "pdf": ("0.5, 1.5", "Array(0.38891843, dtype=float32, weak_type=True)"),
        "cdf": ("0.5, 1.5", "Array(0.74174935, dtype=float32, weak_type=True)"),
    },
    "gumbel_l": {
        "logpdf": ("0.5", "Array(-1.1487212, dtype=float32, weak_type=True)"),
        "pdf": ("0.5", "Array(0.31704193, dtype=float32, weak_type=True)"),
        "cdf": ("0.5", "Array(0.8077043, dtype=float32, weak_type=True)"),
        "logcdf": ("0.5", "Array(-0.2135592, dtype=float32, weak_type=True)"),
        "sf": ("0.5", "Array(0.19229566, dtype=float32, weak_type=True)"),
        "logsf": ("0.5", "Array(-1.6487212, dtype=float32, weak_type=True)"),
        "ppf": ("0.5", "Array(-0.36651292, dtype=float32, weak_type=True)"),
    },
    "gumbel_r": {
        "logpdf": ("0.5", "Array(-1.1065307, dtype=float32, weak_type=True)"),
        "pdf": ("0.5", "Array(0.3307043, dtype=float32, weak_type=True)"),
        "cdf": ("0.5", "Array(0.5452392, dtype=float32, weak_type=True)"),
        "logcdf": ("0.5", "Array(-0.60653067, dtype=float32, weak_type=True)"),
        "sf": ("0.5", "Array(0.4547608, dtype=float32, weak_type=True)"),
        "logsf": ("0.5", "Array(-0.7879837, dtype=float32, weak_type=True)"),
        "ppf": ("0.5", "Array(0.36651292, dtype=float32, weak_type=True)"),
    },
    "pareto": {
        "logpdf": ("2.0, 3.0", "Array(-1.6739764, dtype=float32, weak_type=True)"),
        "pdf": ("2.0, 3.0", "Array(0.1875, dtype=float32, weak_type=True)"),
        "cdf": ("2.0, 3.0", "Array(0.875, dtype=float32, weak_type=True)"),
        "logcdf": ("2.0, 3.0", "Array(-0.13353139, dtype=float32, weak_type=True)"),
        "sf": ("2.0, 3.0", "Array(0.125, dtype=float32, weak_type=True)"),
        "logsf": ("2.0, 3.0", "Array(-2.0794415, dtype=float32, weak_type=True)"),
        "ppf": ("0.5, 3.0", "Array(1.2599211, dtype=float32, weak_type=True)"),
    },
    "truncnorm": {
        "logpdf": ("0.5, -1.0, 2.0", "Array(-0.8437722, dtype=float32, weak_type=True)"),
        "pdf": ("0.5, -1.0, 2.0", "Array(0.43008512, dtype=float32, weak_type=True)"),
        "cdf": ("0.5, -1.0, 2.0", "Array(0.65088046, dtype=float32, weak_type=True)"),
        "logcdf": ("0.5, -1.0, 2.0", "Array(-0.42942932, dtype=float32, weak_type=True)"),
        "sf": ("0.5, -1.0, 2.0", "Array(0.3491196, dtype=float32, weak_type=True)"),
        "logsf": ("0.5, -1.0, 2.0", "Array(-1.0523407, dtype=float32, weak_type=True)"),
    },
    "vonmises": {
        "logpdf": ("0.5, 2.0", "Array(-0.90670556, dtype=float32, weak_type=True)"),
        "pdf": ("0.5, 2.0", "Array(0.40385252, dtype=float32, weak_type=True)"),
    },
    "wrapcauchy": {
        "logpdf": ("0.5, 0.3", "Array(-1.3585117, dtype=float32, weak_type=True)"),
        "pdf": ("0.5, 0.3", "Array(0.25704306, dtype=float32, weak_type=True)"),
    },
    "betabinom": {
        "logpmf": ("2, 5, 1.5, 2.5", "Array(-1.5153711, dtype=float32, weak_type=True)"),
        "pmf": ("2, 5, 1.5, 2.5", "Array(0.21972664, dtype=float32, weak_type=True)"),
    },
    "binom": {
        "logpmf": ("2, 5, 0.3", "Array(-1.1753855, dtype=float32, weak_type=True)"),
        "pmf": ("2, 5, 0.3", "Array(0.30869997, dtype=float32, weak_type=True)"),
    },
    "geom": {
        "logpmf": ("2, 0.3", "Array(-1.5606477, dtype=float32, weak_type=True)"),
        "pmf": ("2, 0.3", "Array(0.21000001, dtype=float32, weak_type=True)"),
    },
    "nbinom": {
        "logpmf": ("2, 5, 0.3", "Array(-4.0251637, dtype=float32, weak_type=True)"),
        "pmf": ("2, 5, 0.3", "Array(0.0178605, dtype=float32, weak_type=True)"),
    },
    "multinomial": {
        "logpmf": ("wnp.array([1, 2]), 3, wnp.array([0.4, 0.6])", "Array(-0.8393295, dtype=float32)"),
        "pmf": ("wnp.array([1, 2]), 3, wnp.array([0.4, 0.6])", "Array(0.4320001, dtype=float32)"),
    },
}
# What they take.
_PARAMETERS = {
    "x": "array or number: where.",
    "k": "array or number: where, whole numbers.",
    "q": "array or number in [0, 1]: the probability.",
    "loc": "array or number: it is subtracted from x first.",
    "scale": "array or number > 0: x is divided by it then; z is what comes out.",
    "a": "array or number > 0: the first parameter.",
    "b": "array or number > 0: the second parameter.",
    "df": "array or number > 0: degrees of freedom.",
    "p": "array or number in [0, 1]: the probability of 1.",
    "mu": "array or number >= 0: the mean.",
    "mean": "array [n]: the mean.",
    "cov": "array [n, n]: the covariance matrix, positive definite.",
    "alpha": "array [n]: the parameters, > 0.",
    "beta": "array or number > 0: the exponent.",
    "kappa": "array or number >= 0: the concentration.",
    "c": "array or number in (0, 1): the concentration.",
    "n": "array or number: how many trials (nbinom: successes that are waited for).",
    "allow_singular": "accepted, without effect: a singular matrix gives NaN.",
}
_VECTORS = {
    "multivariate_normal": {"x": "array [..., n]: vectors."},
    "multinomial": {
        "x": "array [..., outcomes]: how often each outcome came.",
        "p": "array [..., outcomes]: the probabilities, which add up to 1.",
    },
    "truncnorm": {"a": "array or number: the lower end of z.", "b": "array or number: the upper end of z."},
    "pareto": {"b": "array or number > 0: the exponent."},
    "dirichlet": {"x": "array [n] or [n, ...]: vectors along the first axis, which add up to 1."},
}


UNIVARIATE = 'Johnson, Kotz and Balakrishnan, "Continuous univariate distributions", chapter {}'
MULTIVARIATE = 'Kotz, Balakrishnan and Johnson, "Continuous multivariate distributions", chapter {}'
DISCRETE = 'Johnson, Kemp and Kotz, "Univariate discrete distributions", chapter {}'


def described(source: str):
    """Gives a distribution pdf (or pmf) as the exponential of its logarithm, and its methods their descriptions."""

    def describe(cls):
        log_name = "logpdf" if "logpdf" in cls.__dict__ else "logpmf"
        log_density = cls.__dict__[log_name].__func__

        def density(*args, **kwargs) -> Array:
            return wnp.exp(log_density(*args, **kwargs))

        density.__name__ = log_name[3:]
        density.__wrapped__ = log_density  # type: ignore[attr-defined]  # whose signature it has
        density.__doc__ = f"The {'density' if log_name == 'logpdf' else 'probability'}: exp of {log_name}."
        setattr(cls, log_name[3:], staticmethod(density))
        parameters = _PARAMETERS | _VECTORS.get(cls.__name__, {})
        for name, member in cls.__dict__.items():
            if isinstance(member, staticmethod):
                function = member.__func__
                code = getattr(function, "__wrapped__", function).__code__
                arguments = "".join(f"    {n}: {parameters[n]}\n" for n in code.co_varnames[: code.co_argcount])
                function.__qualname__ = f"{cls.__name__}.{name}"
                function.__doc__ = (
                    f"{function.__doc__}\n\nArgs:\n{arguments}\n"
                    "Returns: array of the shape that the arguments have together, of a float dtype.\n\n"
                    f"Source: {source}.\n\n{_example(cls, name)}"
                )
        cls.__doc__ = f"{cls.__doc__}\n\n{_example(cls, log_name)}"
        return cls

    return describe


def _example(cls, name: str) -> str:
    arguments, result = _EXAMPLES[cls.__name__][name]
    return f"Example:\n    >>> weft.scipy.stats.{cls.__name__}.{name}({arguments})\n    {result}\n"
