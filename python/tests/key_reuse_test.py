"""Random keys that are used twice: weft.ir.check_key_reuse, weft.debug_key_reuse."""

import numpy as np
import pytest

import weft
import weft.numpy as wnp
from weft import random
from weft.errors import KeyReuseError
from weft.ir import Forward, KeyReuseSignature, Sink, Source, check_key_reuse

KEY = random.key(0)
KEYS = random.split(KEY, 3)


def _scan_with_same(key):
    return weft.scan(lambda c, _: (c, random.uniform(key)), 0.0, None, length=3)


def _while(step, carry):
    return weft.while_loop(lambda c: c[1] < 10, step, carry)


def _step(state):
    key, sub = random.split(state[0])
    return key, state[1] + random.uniform(sub)


def _branch(flag, on_true, on_false, key):
    return weft.cond(flag, on_true, on_false, key), random.uniform(key)


TWICE = {
    "two draws": (lambda k: random.normal(k) + random.uniform(k), "random.uniform: the key"),
    "a draw and a split": (lambda k: (random.uniform(k), random.split(k)), "random.split: the key"),
    "two splits": (lambda k: (random.split(k), random.split(k)), "random.split: the key"),
    "a result that nothing reads": (lambda k: (random.bits(k), random.bits(k))[0], "random.bits: the key"),
    "in another shape": (lambda k: random.bits(k) + weft.vmap(random.bits)(k.reshape(1)), "random.bits: the key"),
    "twice out of an array": (lambda k: [random.bits(random.split(k)[i]) for i in (0, 1)], "random.split"),
    "the same place of an array": (
        lambda k: (lambda ks: random.bits(ks[0]) + random.bits(ks[0]))(random.split(k)),
        "slice",
    ),
    "computed places": (
        lambda k: (lambda ks: [random.bits(ks[random.key_data(k)[0] * 0 + i]) for i in (0, 1)])(random.split(k)),
        "random.bits: the key",
    ),
    "one branch": (lambda k: _branch(True, random.uniform, lambda k: 1.0, k), "random.uniform: the key"),
    "in a jitted function": (lambda k: (weft.jit(random.bits)(k), random.bits(k)), "random.bits: the key"),
    "a scan": (_scan_with_same, "scan: the body uses a key"),
    "a scan that carries it": (
        lambda k: weft.scan(lambda k, _: (k, random.bits(k)), k, None, length=3),
        "scan: the body uses a key",
    ),
    "a while loop": (
        lambda k: _while(lambda c: (c[0], c[1] + random.uniform(c[0])), (k, 0.0)),
        "while: the body uses a key",
    ),
    "a condition": (
        lambda k: weft.while_loop(lambda i: i < random.uniform(k), lambda i: i + 1, 0.0),
        "while: the condition uses a key",
    ),
    "vmap of the values": (
        lambda k: weft.vmap(lambda x: x + random.uniform(k))(wnp.ones(3)) + random.uniform(k),
        "random.uniform: the key",
    ),
    "vmap of the key": (
        lambda k: weft.vmap(lambda k: random.bits(k) + random.bits(k))(random.split(k)),
        "the key",
    ),
    "grad": (
        lambda k: weft.grad(lambda x: x * random.uniform(k) * random.normal(k))(1.0),
        "random.uniform: the key",
    ),
    "checkpoint": (
        lambda k: weft.grad(weft.checkpoint(lambda x: wnp.sin(x * random.uniform(k)) * random.uniform(k)))(1.0),
        "random.uniform: the key",
    ),
    "a key of the program": (lambda k: random.bits(KEY) + random.bits(KEY), "the key"),
    "samplers of many keys": (lambda k: random.gamma(k, 2.0) + random.poisson(k, 3.0), "the key"),
}

ONCE = {
    "split": (lambda k: [random.normal(part) for part in random.split(k)], KeyReuseSignature(Sink(0))),
    "fold_in": (
        lambda k: [random.normal(random.fold_in(k, i)) for i in range(3)] + [random.normal(k)],
        KeyReuseSignature(Sink(0)),
    ),
    "clone": (lambda k: random.normal(k) + random.normal(random.clone(k)), KeyReuseSignature(Sink(0))),
    "words": (lambda k: (random.key_data(k), random.key_data(k), random.bits(k)), KeyReuseSignature(Sink(0))),
    "branches": (lambda k: weft.cond(True, random.uniform, random.normal, k), KeyReuseSignature(Sink(0))),
    "a scan": (
        lambda k: weft.scan(lambda k, _: tuple(random.split(k)), k, None, length=3),
        KeyReuseSignature(Sink(0), Source(0), Source(1)),
    ),
    "a scan over keys": (lambda k: weft.map(random.bits, random.split(k, 3)), KeyReuseSignature(Sink(0))),
    "keys that change places": (
        lambda k: weft.scan(lambda c, _: ((c[1], random.split(c[0])[0]), 0), tuple(random.split(k)), None, length=4)[1],
        KeyReuseSignature(Sink(0)),
    ),
    "a while loop": (lambda k: _while(_step, (k, 0.0))[1], KeyReuseSignature(Sink(0))),
    "a body that runs once": (
        lambda k: weft.scan(lambda c, _: (c, random.bits(k)), 0, None, length=1),
        KeyReuseSignature(Sink(0)),
    ),
    "vmap": (lambda k: weft.vmap(random.bits)(random.split(k)), KeyReuseSignature(Sink(0))),
    "vmap of a branch": (
        lambda k: weft.vmap(lambda k, on: weft.cond(on, random.uniform, random.normal, k))(
            random.split(k), wnp.array([True, False])
        ),
        KeyReuseSignature(Sink(0)),
    ),
    "vmap of nothing": (lambda k: weft.vmap(random.bits)(random.split(k, 0)), KeyReuseSignature(Sink(0))),
    "grad": (lambda k: weft.grad(lambda x: wnp.sin(x * random.uniform(k)))(1.0), KeyReuseSignature(Sink(0))),
    "checkpoint": (
        lambda k: weft.grad(weft.checkpoint(lambda x: wnp.sin(x * random.uniform(k))))(1.0),
        KeyReuseSignature(Sink(0)),
    ),
    "the derivative of a loop": (
        lambda k: weft.grad(
            lambda x: weft.scan(lambda c, k: (wnp.sin(c * random.uniform(k)), None), x, random.split(k, 3))[0]
        )(1.0),
        KeyReuseSignature(Sink(0)),
    ),
    "nothing": (lambda k: (k, k.reshape(1)), KeyReuseSignature(Forward(0, 0), Forward(0, 1))),
    "a choice": (lambda k: random.bits(wnp.where(True, *random.split(k))), KeyReuseSignature(Sink(0))),
}


@pytest.mark.parametrize("name", TWICE)
def test_key_that_is_used_twice_is_found(name):
    function, message = TWICE[name]
    with pytest.raises(KeyReuseError, match=message) as found:
        check_key_reuse(function, KEY)
    assert "key_reuse_test.py" in str(found.value)


@pytest.mark.parametrize("name", ONCE)
def test_program_that_uses_keys_once_passes(name):
    function, signature = ONCE[name]
    assert check_key_reuse(function, KEY) == signature


_OTHER_ARGUMENTS = {
    "ball": (2,),
    "beta": (2.0, 3.0),
    "binomial": (5.0, 0.5),
    "categorical": (wnp.ones(3),),
    "chisquare": (2.0,),
    "choice": (5, (2,), False),
    "dirichlet": (wnp.ones(3),),
    "double_sided_maxwell": (0.0, 1.0),
    "f": (2.0, 3.0),
    "gamma": (2.0,),
    "generalized_normal": (2.0,),
    "geometric": (0.5,),
    "loggamma": (2.0,),
    "multinomial": (5.0, wnp.array([0.25, 0.75])),
    "multivariate_normal": (wnp.zeros(2), wnp.eye(2)),
    "orthogonal": (2,),
    "pareto": (2.0,),
    "permutation": (5,),
    "poisson": (3.0,),
    "randint": ((3,), 0, 9),
    "rayleigh": (1.0,),
    "t": (3.0,),
    "triangular": (0.0, 0.5, 1.0),
    "truncated_normal": (-1.0, 1.0),
    "wald": (1.0,),
    "weibull_min": (1.0, 2.0),
}
_NO_DRAWS = {"PRNGKey", "clone", "fold_in", "key", "key_data", "key_dtype", "key_impl", "split", "wrap_key_data"}
SAMPLERS = sorted(set(random.__all__) - _NO_DRAWS)


@pytest.mark.parametrize("name", SAMPLERS)
def test_each_sampler_is_one_use(name):
    sampler, rest = getattr(random, name), _OTHER_ARGUMENTS.get(name, ())
    assert check_key_reuse(lambda k: sampler(k, *rest), KEY) == KeyReuseSignature(Sink(0))
    key = random.clone(KEY)
    with weft.debug_key_reuse():
        key = random.clone(KEY)
        sampler(key, *rest)
        with pytest.raises(KeyReuseError, match="has been used before"):
            sampler(key, *rest)


def test_parts_of_arrays_of_keys():
    assert check_key_reuse(lambda keys: random.bits(keys[1]), KEYS) == KeyReuseSignature(
        Sink(0, np.array([False, True, False]))
    )
    assert check_key_reuse(lambda keys: [random.bits(k) for k in keys], KEYS) == KeyReuseSignature(Sink(0))
    with pytest.raises(KeyReuseError):
        check_key_reuse(lambda keys: (random.bits(keys[1]), weft.vmap(random.bits)(keys)), KEYS)
    # Transposed and put together they are the same keys.
    square = KEYS[:2].reshape(2, 1)
    assert check_key_reuse(lambda keys: random.bits(keys.T[0, 1]), square) == KeyReuseSignature(
        Sink(0, np.array([[False], [True]]))
    )


def test_option_looks_at_jitted_functions():
    twice = lambda k: random.bits(k) + random.bits(k)
    assert weft.jit(twice)(KEY) == twice(KEY)
    with weft.debug_key_reuse():
        with pytest.raises(KeyReuseError, match="bits: the key"):
            weft.jit(twice)(KEY)
        assert weft.jit(random.bits)(KEY) == random.bits(random.clone(KEY))
    weft.config.debug_key_reuse = True
    try:
        with pytest.raises(KeyReuseError):
            weft.jit(twice)(KEY)
    finally:
        weft.config.debug_key_reuse = False


def test_programs_that_run_have_no_marks(capfd):
    f = weft.jit(lambda k: weft.jit(random.uniform)(k))
    with weft.debug_key_reuse():
        check_key_reuse(f, KEY)
        f(random.clone(KEY)).block_until_ready()
    f(KEY).block_until_ready()
    assert capfd.readouterr().out == ""
    assert "debug_print" not in weft.make_ir(f)(KEY).text


def test_keys_outside_of_programs_are_forgotten_with_their_objects():
    from weft import _key_uses as _uses

    before = len(_uses._used)
    with weft.debug_key_reuse():
        for seed in range(3):
            random.bits(random.key(seed))
    assert len(_uses._used) == before


def test_signatures_do_not_change():
    mask = np.array([True, False])
    sink = Sink(0, mask)
    mask[1] = True
    assert sink == Sink(0, np.array([True, False])) and not sink.mask.flags.writeable
    with pytest.raises(ValueError, match="Sink does not change"):
        sink.idx = 1
    assert Sink(0, np.array([True, True])) == Sink(0) and hash(Sink(0)) != hash(Source(0))
    assert repr(KeyReuseSignature(Sink(1), Sink(0), Source(0))) == "KeyReuseSignature(Sink(0), Sink(1), Source(0))"


def test_a_clone_is_another_array():
    key = weft.random.key(0)
    same = weft.random.clone(key)
    assert same is not key and np.array_equal(weft.random.key_data(same), weft.random.key_data(key))
