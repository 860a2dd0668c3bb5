"""Keys of every generator: the words of keys, and the bits that they give, are JAX's; transforms; what is refused. Bits
from a state, of every algorithm, dtype and shape."""

import pickle

import numpy as np
import pytest

import weft
import weft.numpy as wnp
from weft import lax, random
from weft.lax import _random_bits as hashes

jax = pytest.importorskip("jax")

OTHERS = ["rbg", "unsafe_rbg", "threefry4x32", "philox2x32", "philox4x32"]


def same(ours, theirs, what=""):
    ours, theirs = np.asarray(ours), np.asarray(theirs)
    assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape), what
    np.testing.assert_array_equal(ours.astype("float64"), theirs.astype("float64"), err_msg=what)


@pytest.fixture(params=[False, True], ids=["32 bits", "x64"])
def x64(request):
    with weft.enable_x64(request.param), jax.enable_x64(request.param):
        yield request.param


@pytest.mark.parametrize("impl", OTHERS)
def test_keys_and_bits_are_those_of_jax(impl, x64):
    for seed in (42, 2**31 + 5):
        ours, theirs = random.key(seed, impl=impl), jax.random.key(seed, impl=impl)
        assert (str(ours.dtype), ours.shape, random.key_impl(ours)) == (theirs.dtype.name, (), impl)
        same(random.key_data(ours), jax.random.key_data(theirs))
        same(random.PRNGKey(seed, impl=impl), jax.random.PRNGKey(seed, impl=impl))
        for num in (3, (2, 2)):
            mine, others = random.split(ours, num), jax.random.split(theirs, num)
            assert mine.shape == others.shape
            same(random.key_data(mine), jax.random.key_data(others), str(num))
        same(random.key_data(random.fold_in(ours, 7)), jax.random.key_data(jax.random.fold_in(theirs, 7)))
        for dtype in ("uint8", "uint16", "uint32", *["uint64"] * x64):
            for shape in ((2, 3),):
                same(random.bits(ours, shape, dtype), jax.random.bits(theirs, shape, dtype), f"{dtype}{shape}")
        for dtype in ("float32", "float16", "bfloat16", *["float64"] * x64):
            same(random.uniform(ours, (7,), dtype), jax.random.uniform(theirs, (7,), dtype), dtype)
        # The inverse of erf is rounded otherwise.
        np.testing.assert_allclose(
            random.normal(ours, (5,)), jax.random.normal(theirs, (5,)), rtol=1e-15 if x64 else 1e-6
        )
        same(random.randint(ours, (5,), 0, 99), jax.random.randint(theirs, (5,), 0, 99))
        same(random.permutation(ours, 9), jax.random.permutation(theirs, 9))
        same(random.bernoulli(ours, 0.3, (9,)), jax.random.bernoulli(theirs, 0.3, (9,)))
        mine, others = random.gamma(ours, 0.8, (4,)), jax.random.gamma(theirs, 0.8, (4,))
        np.testing.assert_allclose(mine, others, rtol=2e-6)


@pytest.mark.parametrize("impl", OTHERS)
def test_keys_go_through_transforms(impl):
    key = random.key(3, impl=impl)
    keys = random.split(key, 4)
    each = np.stack([random.uniform(k, (3,)) for k in keys])
    draw = lambda k: random.uniform(k, (3,))
    np.testing.assert_array_equal(weft.vmap(draw)(keys), each)
    np.testing.assert_array_equal(weft.jit(weft.vmap(draw))(keys), each)
    np.testing.assert_array_equal(lax.scan(lambda c, k: (c, draw(k)), 0, keys)[1], each)
    np.testing.assert_array_equal(weft.jit(lambda s: draw(random.key(s, impl=impl)))(3), draw(key))
    np.testing.assert_array_equal(lax.cond(True, draw, draw, keys[1]), each[1])
    folded = weft.vmap(lambda i: random.fold_in(key, i))(wnp.arange(3))
    assert folded.shape == (3,)
    if impl not in ("unsafe_rbg",):  # whose splits are no folds
        np.testing.assert_array_equal(random.key_data(random.split(key, 3)), random.key_data(folded))
    assert float(weft.grad(lambda x: (x * draw(key)).sum())(2.0)) == pytest.approx(float(draw(key).sum()))
    carried, _ = lax.scan(lambda k, _: (random.split(k)[0], None), key, None, length=3)
    assert random.key_impl(carried) == impl


@pytest.mark.parametrize("impl", OTHERS)
def test_arrays_of_keys(impl):
    keys = random.split(random.key(1, impl=impl), 6)
    words = random.key_data(keys)
    assert (len(keys), keys.size, keys.ndim, keys.itemsize, keys.nbytes) == (6, 6, 1, 4 * words.shape[1], words.nbytes)
    np.testing.assert_array_equal(random.key_data(keys.reshape(2, 3).T[1]), np.asarray(words).reshape(2, 3, -1)[:, 1])
    np.testing.assert_array_equal(random.key_data(keys[::2]), words[::2])
    np.testing.assert_array_equal(random.key_data(keys.reshape(3, 2)[..., 0]), words[::2])
    np.testing.assert_array_equal(random.key_data(keys[wnp.array([5, 0])]), words[wnp.array([5, 0])])
    assert bool((keys == keys).all()) and not bool((keys[:-1] == keys[1:]).any())
    assert keys.reshape((2, 3)).ravel().shape == (6,)
    again = pickle.loads(pickle.dumps(keys))
    np.testing.assert_array_equal(random.key_data(again), words)
    assert again.dtype == keys.dtype
    for made in (
        random.wrap_key_data(words, impl=impl),
        random.wrap_key_data(words, dtype=keys.dtype),
        random.clone(keys),
        keys.copy(),
    ):
        np.testing.assert_array_equal(random.key_data(made), words)
    assert random.key_impl(random.key(0, dtype=keys.dtype)) == impl


def test_what_is_refused():
    key = random.key(0, impl="rbg")
    for f, kind, message in [
        (lambda: random.key(0, impl="mersenne"), ValueError, "impl must be one of threefry2x32, rbg"),
        (lambda: random.key(0, impl="rbg", dtype=key.dtype), ValueError, "give one of them"),
        (lambda: random.key(0, dtype="float32"), TypeError, "dtype must be None or that of random keys"),
        (lambda: random.wrap_key_data(wnp.zeros(2, "uint32"), impl="rbg"), TypeError, r"words uint32\[..., 4\]"),
        (lambda: random.uniform(random.split(key)), TypeError, "a single key is needed"),
        (lambda: random.split(random.split(key)), TypeError, "a single key is needed"),
        (lambda: random.uniform(random.key_data(key)), TypeError, "key"),
        (lambda: hash(key), TypeError, "unhashable"),
        (lambda: len(key), TypeError, "single key"),
        (lambda: iter(key), TypeError, "single key"),
        (lambda: np.asarray(key), TypeError, "random keys are no numbers"),
        (lambda: lax.rng_bit_generator(wnp.zeros(3, "uint32"), (2,)), TypeError, r"uint32\[4\] or uint64\[2\]"),
        (lambda: lax.rng_bit_generator(wnp.zeros(4, "uint32"), (2,), "int32"), TypeError, "dtype must be uint8"),
        (lambda: lax.rng_bit_generator(wnp.zeros(4, "uint32"), (2,), "uint32", 9), ValueError, "RandomAlgorithm"),
    ]:
        with pytest.raises(kind, match=message):
            f()


ALIKE = [((), "uint32"), ((4,), "uint8"), ((5,), "uint16"), ((2, 3), "uint32"), ((3, 3), "uint32"), ((0, 3), "uint32")]


@pytest.mark.parametrize("algorithm", ["RNG_DEFAULT", "RNG_PHILOX", "RNG_THREE_FRY"])
def test_bits_from_a_state_are_those_of_jax(algorithm, x64):
    ours, theirs = lax.RandomAlgorithm[algorithm], jax.lax.RandomAlgorithm.__members__[algorithm]
    states = [np.array(words, "uint32") for words in ([1, 2, 3, 4], [9, 8, 2**32 - 2, 2**32 - 1])]
    states += [np.array([1, 2**40 + 7], "uint64")] * x64
    for state in states:
        for shape, dtype in [*ALIKE, *[(shape, "uint64") for shape in ((5,), (2, 3))] * x64]:
            expected = jax.lax.rng_bit_generator(state, shape, dtype, algorithm=theirs)
            draw = lambda s, shape=shape, dtype=dtype: lax.rng_bit_generator(s, shape, dtype, ours)
            for got in (draw(state), weft.jit(draw)(state)):
                for a, b in zip(got, expected, strict=True):
                    same(a, b, f"{shape} {dtype}")


# Of the authors' library Random123: key, counter, words.
KNOWN = [
    (hashes.philox2x32, [0x13198A2E], [0x243F6A88, 0x85A308D3], [0xDD7CE038, 0xF62A4C12]),
    (
        hashes.philox4x32,
        [0xA4093822, 0x299F31D0],
        [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344],
        [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1],
    ),
    (
        hashes.threefry4x32,
        [0xA4093822, 0x299F31D0, 0x082EFA98, 0xEC4E6C89],
        [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344],
        [0x59CD1DBB, 0xB8879579, 0x86B5D00C, 0xAC8B6D84],
    ),
]


@pytest.mark.parametrize(("hashed", "key", "counter", "expected"), KNOWN, ids=lambda v: getattr(v, "__name__", ""))
def test_hashes_are_those_of_their_authors(hashed, key, counter, expected):
    key, counter = ([wnp.array(word, "uint32") for word in words] for words in (key, counter))
    assert [int(word) for word in hashed(key if len(key) > 1 else key[0], counter)] == expected
