"""Arrays of more than 2^31 elements: positions are 64 bits wide everywhere. Each array is of bytes (2 GiB)."""

import mmap

import numpy as np
import pytest

import weft
import weft.lax as lax
import weft.numpy as wnp

N = 2**31 + 10
MARKS = {7: -2, 2**31 - 1: 3, N - 3: 5}


@pytest.fixture(scope="module")
def x():
    # Pages of an anonymous mapping that nobody writes to are all the same one of zeros.
    array = np.frombuffer(mmap.mmap(-1, N), np.int8)
    for i, v in MARKS.items():
        array[i] = v
    return wnp.from_dlpack(array)  # shared, not copied


def full(i):
    return MARKS.get(i % N, 0)


CASES = {
    "sum": (lambda v: v.sum(dtype="int32"), 6),
    "max": (lambda v: v.max(), 5),
    "argmax": (lambda v: wnp.argmax(v), N - 3),
    "argmin": (lambda v: wnp.argmin(v), 7),
    "count": (lambda v: (v == 0).sum(dtype="int64"), N - 3),
    "any": (lambda v: (v > 4).any(), True),
    "slice": (lambda v: v[2**31 - 2 :], [full(i) for i in range(2**31 - 2, N)]),
    "slice with a step": (lambda v: v[2**31 - 1 - 2**30 :: 2**30], [0, 3]),
    "reversed": (lambda v: v[::-1][:5], [0, 0, 5, 0, 0]),
    "element": (lambda v: v[N - 3], 5),
    "element from the end": (lambda v: v[-3], 5),
    "traced index": (lambda v: v[wnp.argmax(v)], 5),
    "gather": (lambda v: v[wnp.asarray([N - 3, 7, -3, 2**31 - 1], "int64")], [5, -2, 5, 3]),
    "dynamic_slice": (lambda v: lax.dynamic_slice(v, (wnp.asarray(N - 4, "int64"),), (4,)), [0, 5, 0, 0]),
    "reshape": (lambda v: v.reshape(2, -1)[1, -4:], [0, 5, 0, 0]),
    "rows": (lambda v: v.reshape(-1, 2).sum(axis=0, dtype="int32"), [0, 6]),
    "columns": (lambda v: v.reshape(2, -1).sum(axis=1, dtype="int32"), [-2, 8]),
    "elementwise": (lambda v: (v * 2 + 1)[N - 4 :], [1, 11, 1, 1]),
    "concatenate": (lambda v: wnp.concatenate([v, v[:8]])[-11:], [5, 0, 0, 0, 0, 0, 0, 0, 0, 0, -2]),
    "roll": (lambda v: wnp.roll(v, 1)[-3:], [0, 5, 0]),
    "pad": (lambda v: wnp.pad(v, (1, 1))[-4:], [5, 0, 0, 0]),
    "transpose": (lambda v: (v.reshape(2, -1).T + 1)[-3:], [[1, 6], [1, 1], [1, 1]]),
}


@pytest.mark.parametrize("case", CASES)
def test_beyond_31_bits(x, case):
    f, want = CASES[case]
    assert np.asarray(weft.jit(f)(x)).tolist() == want


@pytest.mark.parametrize("at", [N - 2, -2])
def test_updates(x, at):
    for index in [at, wnp.asarray(at, "int64")]:
        assert np.asarray(weft.jit(lambda v, i=index: v.at[i].set(9)[N - 3 :])(x)).tolist() == [5, 9, 0]


def test_written_results(x):
    """A whole result of more than 2^31 elements, written by threads."""
    y = np.asarray(weft.jit(lambda v: v * 2 + 1)(x))
    assert y.shape == (N,)
    assert {i: int(y[i]) for i in [0, 7, 2**31 - 1, 2**31, N - 3, N - 1]} == {
        0: 1,
        7: -3,
        2**31 - 1: 7,
        2**31: 1,
        N - 3: 11,
        N - 1: 1,
    }


def test_positions_have_room(x):
    assert weft.jit(lambda v: wnp.argmax(v))(x).dtype == "int64"
    assert weft.jit(lambda: lax.iota("int64", N)[-1])() == N - 1
    with pytest.raises(ValueError, match=f"iota: dimension 0 of i32.{N}. has more positions than i32 has numbers"):
        lax.iota("int32", N)
    with pytest.raises(OverflowError, match="does not fit i32"):
        weft.jit(lambda v, i: v[i])(x, N - 3)
    for f in (wnp.argsort, lambda v: lax.top_k(v, 2), lambda v: wnp.nonzero(v, size=3)):
        with pytest.raises(ValueError, match="has more positions than i32 has numbers"):
            weft.jit(f)(x)
    with pytest.raises(
        ValueError, match=f"argmax: index_dtype int32 does not hold the positions of an axis of size {N}"
    ):
        lax.argmax(x, 0)
    assert lax.argmax(x, 0, "uint32") == N - 3


def test_counts_have_room(x):
    for f in (lambda v: (v == v).sum(), lambda v: wnp.count_nonzero(v + 10)):
        assert weft.jit(f)(x).item() == N


@pytest.mark.parametrize("f", [wnp.mean, wnp.argmax, wnp.argsort, lambda v: lax.top_k(v, 2)])
def test_symbolic_sizes_are_checked(x, f):
    ir = weft.make_ir(f)(weft.ShapeDtype(("n",), "int8"))
    few = x[:8]
    for got, want in zip(weft.tree.leaves(ir(few)), weft.tree.leaves(f(few))):
        assert np.asarray(got).tolist() == np.asarray(want).tolist()
    with pytest.raises(TypeError, match=f"dimension 0 of .* has size {N}, where n = {N}; expected at most 21474836"):
        ir(x)


def test_inner_product():
    """Of vectors, which BLAS counts in 32 bits."""
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    numbers = np.frombuffer(mmap.mmap(-1, 4 * N, flags=flags), np.float32)
    for i, v in MARKS.items():
        numbers[i] = v
    v = wnp.from_dlpack(numbers)
    assert (v @ v).item() == 4 + 9 + 25


def test_working_memory_of_more_than_31_bits():
    n = 23170
    matrix = wnp.from_dlpack(np.frombuffer(mmap.mmap(-1, 4 * n * n), np.float32).reshape(n, n))
    with pytest.raises(RuntimeError, match=f"svd: a matrix of {n} x {n} needs more than LAPACK can count"):
        weft.jit(wnp.linalg.svd)(matrix)


def test_qr_of_many_rows():
    """LAPACK counts in 32 bits, its workspace too, which may be 64 numbers for each row."""
    n = 2**31 // 64 + 1000
    q, r = (np.asarray(a) for a in weft.jit(wnp.linalg.qr)(wnp.ones((n, 1), "float32")))
    assert q.shape == (n, 1) and r.shape == (1, 1)
    assert abs(abs(r[0, 0]) - n**0.5) < 1e-2 * n**0.5
    assert abs(q * r[0, 0] - 1).max() < 1e-2
