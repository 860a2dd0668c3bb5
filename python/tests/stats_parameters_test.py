"""Distributions at parameters that are none of theirs, and with a share left out, against SciPy."""

import numpy as np
import pytest

import weft
from weft.scipy import stats

theirs = pytest.importorskip("scipy.stats")

X = np.array([-1.0, 0.0, 0.3, 0.9, 2.0])
FUNCTIONS = ["pdf", "logpdf", "cdf", "logcdf", "sf", "logsf"]


@pytest.mark.parametrize("name", ["beta", "truncnorm"])
@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize(("a", "b", "scale"), [(1.5, 2.0, 1.0), (-1.0, 2.0, 1.0), (2.0, -1.0, 1.0), (1.0, 2.0, -1.0)])
def test_parameters_that_are_none_give_nan(name, function, a, b, scale):
    ours, other = (getattr(getattr(module, name), function) for module in (stats, theirs))
    with np.errstate(all="ignore"):
        expected = other(X, a, b, 0.1, scale)
    for run in (ours, weft.jit(ours)):
        np.testing.assert_allclose(run(X, a, b, 0.1, scale), expected, rtol=1e-5, atol=1e-12)


def test_the_last_share_may_be_left_out():
    alpha, p = np.array([0.5, 2.0, 3.0]), np.array([[0.2, 0.1], [0.3, 0.5]])
    expected = theirs.dirichlet.logpdf(p, alpha)
    np.testing.assert_allclose(stats.dirichlet.logpdf(p, alpha), expected)
    whole = np.concatenate([p, 1 - p.sum(0, keepdims=True)])
    np.testing.assert_allclose(stats.dirichlet.logpdf(whole, alpha), expected)
