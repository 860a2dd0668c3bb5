"""dtypes combine as JAX's table says, without its truncation to 32 bits."""

import functools

import numpy as np
import pytest

import weft
import weft.numpy as wnp

# Page "Type promotion semantics" of JAX, columns as rows. i*, f*, c* are Python numbers.
NAMES = ["b1", "u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8", "f2", "f4", "f8", "c8", "c16", "i*", "f*", "c*"]
TABLE = {
    "b1": "b1 u1 u2 u4 u8 i1 i2 i4 i8 f2 f4 f8 c8 c16 i* f* c*",
    "u1": "u1 u1 u2 u4 u8 i2 i2 i4 i8 f2 f4 f8 c8 c16 u1 f* c*",
    "u2": "u2 u2 u2 u4 u8 i4 i4 i4 i8 f2 f4 f8 c8 c16 u2 f* c*",
    "u4": "u4 u4 u4 u4 u8 i8 i8 i8 i8 f2 f4 f8 c8 c16 u4 f* c*",
    "u8": "u8 u8 u8 u8 u8 f* f* f* f* f2 f4 f8 c8 c16 u8 f* c*",
    "i1": "i1 i2 i4 i8 f* i1 i2 i4 i8 f2 f4 f8 c8 c16 i1 f* c*",
    "i2": "i2 i2 i4 i8 f* i2 i2 i4 i8 f2 f4 f8 c8 c16 i2 f* c*",
    "i4": "i4 i4 i4 i8 f* i4 i4 i4 i8 f2 f4 f8 c8 c16 i4 f* c*",
    "i8": "i8 i8 i8 i8 f* i8 i8 i8 i8 f2 f4 f8 c8 c16 i8 f* c*",
    "f2": "f2 f2 f2 f2 f2 f2 f2 f2 f2 f2 f4 f8 c8 c16 f2 f2 c8",
    "f4": "f4 f4 f4 f4 f4 f4 f4 f4 f4 f4 f4 f8 c8 c16 f4 f4 c8",
    "f8": "f8 f8 f8 f8 f8 f8 f8 f8 f8 f8 f8 f8 c16 c16 f8 f8 c16",
    "c8": "c8 c8 c8 c8 c8 c8 c8 c8 c8 c8 c8 c16 c8 c16 c8 c8 c8",
    "c16": "c16 c16 c16 c16 c16 c16 c16 c16 c16 c16 c16 c16 c16 c16 c16 c16 c16",
    "i*": "i* u1 u2 u4 u8 i1 i2 i4 i8 f2 f4 f8 c8 c16 i* f* c*",
    "f*": "f* f* f* f* f* f* f* f* f* f2 f4 f8 c8 c16 f* f* c*",
    "c*": "c* c* c* c* c* c* c* c* c* c8 c8 c16 c8 c16 c* c* c*",
}
NUMPY = {
    "b1": "bool",
    "u1": "uint8",
    "u2": "uint16",
    "u4": "uint32",
    "u8": "uint64",
    "i1": "int8",
    "i2": "int16",
    "i4": "int32",
    "i8": "int64",
    "f2": "float16",
    "f4": "float32",
    "f8": "float64",
    "c8": "complex64",
    "c16": "complex128",
}
WEAK = {"i*": (1, "int32"), "f*": (1.5, "float32"), "c*": (1j, "complex64")}


def value(name):
    return WEAK[name][0] if name in WEAK else wnp.ones(2, NUMPY[name])


@pytest.mark.parametrize("a", NAMES)
def test_table(a):
    for b, want in zip(NAMES, TABLE[a].split()):
        dtype, weak = weft._weft.weak_result_type(value(a), value(b))
        assert (dtype, weak) == (WEAK[want][1] if want in WEAK else NUMPY[want], want in WEAK), (a, b)


@pytest.mark.parametrize("a", NAMES)
def test_operations_agree_with_the_table(a):
    for b in NAMES:
        if (a in WEAK and b in WEAK) or "b1" in (a, b):
            continue
        out = value(a) + value(b)
        assert str(out.dtype) == str(wnp.result_type(value(a), value(b))), (a, b)


def test_against_jax():
    jnp = pytest.importorskip("jax.numpy")
    import jax

    with jax.enable_x64(True):
        for a in NUMPY.values():
            for b in NUMPY.values():
                want = jnp.promote_types(a, b)
                # uint64 and a signed integer: JAX's weak float is float64 with x64, ours follows weft.config.
                got = wnp.promote_types(a, b)
                assert got == want or ({a, b} & {"uint64"} and got == np.float32), (a, b, got, want)


def test_weak_results_stay_weak():
    x = weft.jit(lambda: wnp.sin(wnp.asarray(1.0) * 1))()
    assert x.weak_type and not wnp.array([1.0]).sum().weak_type  # as in JAX
    f = weft.jit(lambda x: x * 2)
    assert f(3).weak_type and f(3.0).weak_type and not f(np.float32(3)).weak_type
    assert (f(2.0) * wnp.ones(2, "float16")).dtype == np.float16


def test_inexact():
    assert wnp.sin(wnp.arange(3)).dtype == np.float32
    assert wnp.sin(np.arange(3)).dtype == np.float64  # int64
    assert (wnp.arange(4) / 2).dtype == np.float32
    assert wnp.mean(wnp.arange(4)).dtype == np.float32


def test_x64_is_a_default_only():
    assert np.asarray(wnp.ones(2)).dtype == np.float32
    f = weft.jit(lambda x: x + wnp.zeros(2))
    assert f(wnp.ones(2)).dtype == np.float32
    weft.config.x64 = True
    try:
        assert wnp.ones(2).dtype == np.float64 and wnp.arange(3).dtype == np.int64
        assert wnp.asarray(np.float32(1)).dtype == np.float32
        assert f(wnp.ones(2, "float32")).dtype == np.float64  # zeros(2) is float64 now: the cache key knows
    finally:
        weft.config.x64 = False


def test_64_bit_is_kept():
    big = np.array([2**40 + 1, -(2**53) - 1])
    assert (wnp.asarray(big) + 1).dtype == np.int64
    assert (wnp.asarray(big) + 1).tolist() == [2**40 + 2, -(2**53)]
    assert (wnp.asarray(np.ones(2)) * 0.1).tolist() == [0.1, 0.1]


def test_integers_that_do_not_fit():
    with pytest.raises(OverflowError, match=r"300.*u8"):
        wnp.ones(2, "uint8") + 300
    with pytest.raises(OverflowError, match="does not fit"):
        wnp.asarray(2**40)
    assert wnp.asarray(2**40, "int64").item() == 2**40
    assert (wnp.ones(1, "uint64") * (2**64 - 1)).tolist() == [2**64 - 1]


def test_no_common_dtype():
    with pytest.raises(TypeError, match="no common dtype"):
        wnp.ones(2, "float8_e5m2") + wnp.ones(2, "float16")


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint32", "int64", "uint64"])
@pytest.mark.parametrize("number", [300.7, -1.5, 1e30, -1e30, float("inf"), float("-inf"), float("nan")])
def test_floats_put_among_integers(dtype, number):
    """As astype: truncated, to the ends of the range, NaN to 0; eagerly and compiled."""
    ends = np.iinfo(dtype)
    want = 0 if number != number else int(min(max(number, ends.min), ends.max))
    for f in (
        lambda v: wnp.full((2,), v, dtype)[0],
        lambda v: wnp.zeros(2, dtype).at[0].set(v)[0],
        lambda v: wnp.full_like(wnp.zeros(2, dtype), v)[1],
        lambda v: wnp.asarray(wnp.asarray(v, "float64")).astype(dtype),
    ):
        assert int(f(number)) == int(weft.jit(functools.partial(f, number))()) == want


def test_floats_that_are_no_integers():
    """A number is converted as those of a list are."""
    for number in [float("nan"), float("inf"), 1e10]:
        with pytest.raises((ValueError, OverflowError), match=r"\n  at .*promotion_test\.py"):
            wnp.array(number, "int32")
    assert wnp.array(-1.7, "int32") == -1
