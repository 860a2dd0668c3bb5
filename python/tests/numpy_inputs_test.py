"""What comes in from NumPy: every kind of scalar and array, by every way in, is taken as it is or refused by name; and
an array never shows what is written to NumPy's memory afterwards."""

import functools
import gc
import operator
import warnings

import numpy as np
import pytest

import weft
import weft.numpy as wnp

ml_dtypes = pytest.importorskip("ml_dtypes")

NUMBERS = [
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "longlong", "ulonglong"),
    *("float16", "float32", "float64", "complex64", "complex128"),
    *(ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2),
    *(ml_dtypes.int4, ml_dtypes.uint4, ml_dtypes.int2, ml_dtypes.uint2),
]

WAYS = {
    "asarray": wnp.asarray,
    "array": wnp.array,
    "device_put": weft.device_put,
    "operand": lambda x: wnp.reshape(x, np.shape(x)),
    "argument": lambda x: weft.jit(lambda v: v)(x),
    "argument in a list": lambda x: weft.jit(lambda v: v[1])([1.0, x]),
    "argument of a nested call": lambda x: weft.jit(lambda: weft.jit(lambda v: v)(x))(),
    "captured": lambda x: weft.jit(lambda: wnp.asarray(x))(),
    "result": lambda x: weft.jit(lambda: x)(),
    "item of a list": lambda x: wnp.asarray([x, x])[0],
    "argument of vmap": lambda x: weft.vmap(lambda v: v)(np.asarray(x)[None])[0],
    "update": lambda x: wnp.zeros((2, *np.shape(x)), np.asarray(x).dtype.newbyteorder("=")).at[1].set(x)[1],
}


def numbers(dtype):
    x = np.array([[0, 1, 2], [3, 1, 0]]).astype(dtype)
    return x - x[::-1] * 1j if x.dtype.kind == "c" else x


def same(got, want):
    want = np.asarray(want)
    got = np.asarray(got)
    assert got.dtype == want.dtype.newbyteorder("=") and got.shape == want.shape
    bits = {"int2": "int8", "int4": "int8", "uint2": "uint8", "uint4": "uint8"}  # ml_dtypes' own bytes hold more
    as_stored = lambda x: x.astype(bits.get(str(x.dtype), x.dtype)).tobytes()
    assert as_stored(got) == as_stored(want.astype(got.dtype))


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize("dtype", NUMBERS, ids=str)
def test_arrays_and_scalars_of_numbers(way, dtype):
    x = numbers(dtype)
    for each in (x, x[1, 0], np.array(x[1, 0]), x[:0]):
        same(way(each), each)


def unaligned(x):
    memory = np.zeros(x.nbytes + 1, np.uint8)
    view = memory[1:].view(x.dtype).reshape(x.shape)
    view[...] = x
    assert not view.flags.aligned
    return view


def read_only(x):
    x = x.copy()
    x.flags.writeable = False
    return x


class Subclass(np.ndarray):
    pass


LAYOUTS = {
    "transposed": lambda x: x.T,
    "Fortran": np.asfortranarray,
    "backwards": lambda x: x[::-1, ::-1],
    "every second": lambda x: x[:, ::2],
    "zero strides": lambda x: np.broadcast_to(x[0], (4, 3)),
    "one number everywhere": lambda x: np.broadcast_to(x[1, 0], (2, 5)),
    "read-only": read_only,
    "unaligned": unaligned,
    "other byte order": lambda x: x.astype(x.dtype.newbyteorder()),
    "other byte order, backwards": lambda x: x.astype(x.dtype.newbyteorder())[:, ::-1],
    "scalar of the other byte order": lambda x: x.astype(x.dtype.newbyteorder())[1, 0],
    "matrix": lambda x: x.view(np.matrix),
    "subclass": lambda x: x.view(Subclass),
    "with metadata": lambda x: x.view(np.dtype(x.dtype, metadata={"unit": "m"})),
    "many dimensions": lambda x: x.reshape((1,) * 20 + x.shape),
}


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
@pytest.mark.parametrize("dtype", ["float32", "int16", "complex128"])
def test_layouts(layout, dtype):
    x = layout(numbers(dtype))
    for way in WAYS.values():
        same(way(x), x)


def test_memory_maps(tmp_path):
    x = np.arange(100, dtype="float32")
    x.tofile(tmp_path / "x")
    for mode in ("r", "r+", "c"):
        mapped = np.memmap(tmp_path / "x", "float32", mode)
        y = wnp.asarray(mapped)
        same(y, x)
        np.memmap(tmp_path / "x", "float32", "r+")[3] = 7  # another may write what this one may only read
        assert y[3] == 3
        x.tofile(tmp_path / "x")


class WithArray:
    def __array__(self, dtype=None, copy=None):
        return np.arange(3, dtype=dtype or "int16")


def test_objects_that_give_an_array():
    same(wnp.asarray(WithArray()), np.arange(3, dtype="int16"))
    with pytest.raises(TypeError, match=r"argument v of 'f' is .*WithArray"):
        weft.jit(named(lambda v: v))(WithArray())


def named(function):
    function.__name__ = "f"
    return function


REFUSED = {
    "dates": np.array(["2020-01-01", "2021-01-01"], "datetime64[D]"),
    "no date": np.array(["NaT"], "datetime64[s]"),
    "durations": np.array([1, 2], "timedelta64[ns]"),
    "bytes": np.array([b"abc", b"d"]),
    "texts": np.array(["abc", "d"]),
    "objects": np.array([1.0, None]),
    "records": np.zeros(2, [("a", "f4"), ("b", "i4")]),
    "raw memory": np.zeros(2, "V4"),
    "long doubles": np.ones(2, np.longdouble),
    "complex long doubles": np.ones(2, np.clongdouble),
    "6-bit floats": np.ones(2, ml_dtypes.float6_e2m3fn),
}


@pytest.mark.parametrize("x", REFUSED.values(), ids=REFUSED)
def test_what_has_no_counterpart_is_refused(x):
    """As an array, without dimensions, and as a scalar, whose buffer would be plain bytes."""
    calls = {
        "asarray": wnp.asarray,
        "array": lambda x: wnp.array(x, dtype=None),
        "device_put": weft.device_put,
        "operand": wnp.sin,
        "other operand": lambda x: wnp.ones(2) + x,
        "argument": weft.jit(named(lambda v: v)),
        "argument in a list": lambda x: weft.jit(named(lambda v: v))([x]),
        "differentiated": weft.grad(named(lambda v: v)),
        "captured": lambda x: weft.jit(lambda: wnp.asarray(x))(),
        "result": lambda x: weft.jit(lambda: x)(),
        "list": lambda x: wnp.asarray([x]),
        "index": lambda x: wnp.ones(3)[x],
        "update": lambda x: wnp.ones(3).at[:2].set(x),
    }
    for each in (x, x[:1].reshape(()), x[0]):
        if not isinstance(each, (np.ndarray, np.generic)):
            continue  # an object as it is
        for name, call in calls.items():
            with pytest.raises((TypeError, IndexError)) as info:
                call(each)
            text = str(info.value)
            assert "counterpart" in text or "argument v" in text or "'f' is" in text or "unsupported operand" in text, (
                name,
                text,
            )


def test_arguments_without_counterpart_are_named():
    with pytest.raises(TypeError, match=r"argument p\['t'\] of 'f' is a NumPy scalar of dtype datetime64\[D\], which"):
        weft.jit(named(lambda p: p))({"s": 1.0, "t": np.datetime64("2020-01-01")})
    with pytest.raises(TypeError, match=r"dtype float128 has no counterpart; round it, .astype\('float64'\)"):
        wnp.asarray(np.longdouble(1))
    with pytest.raises(TypeError, match=r"dtype timedelta64\[s\] has no counterpart; take its numbers"):
        wnp.ones(2) * np.timedelta64(1, "s")


def test_masked_arrays_are_refused():
    for x in (np.ma.array([1.0, 2.0], mask=[0, 1]), np.ma.array(1.0), np.ma.masked):
        for call in (wnp.asarray, wnp.sin, weft.jit(lambda v: v), lambda x: weft.jit(lambda: wnp.cos(x))()):
            with pytest.raises(ValueError, match="masked arrays have no counterpart"):
                call(x)


def test_static_arguments_are_numpys_own():
    seen = []
    f = weft.jit(lambda x, s: seen.append(s) or x, static_argnums=1)
    for s in (np.datetime64("2020-01-01"), np.str_("a"), np.bytes_(b"a"), np.float32(2), np.longdouble(2)):
        f(1.0, s)
        f(2.0, s)
        assert seen.pop() is s and not seen


# --- Memory ---


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize("n", [1, 6, 65, 100000])
def test_later_writes_are_not_seen(way, n):
    for dtype in ("float32", "bool", ml_dtypes.bfloat16):
        x = np.ones(n, dtype)
        for view in (x, x[::-1], x[:]):
            y = way(view)
            x[:] = 0
            assert np.asarray(y).astype("float32").sum() == n
            x[:] = 1


def test_a_read_only_view_of_what_can_be_written_is_copied():
    x = np.ones(1000, "float32")
    view = x[:]
    view.flags.writeable = False
    owner = np.ones(1000, "float32")
    owner.flags.writeable = False
    ys = [wnp.asarray(view), wnp.asarray(owner), wnp.array(view, copy=False)]
    x[:] = 0
    owner.flags.writeable = True
    owner[:] = 0
    assert [y.sum().item() for y in ys] == [1000] * 3


def test_memory_that_cannot_be_written_is_shared():
    def address(x):
        return np.asarray(x).__array_interface__["data"][0]

    x = wnp.arange(1000.0)
    for view in (np.asarray(x), np.asarray(x)[10:], np.asarray(x).reshape(10, 100)):
        assert address(wnp.asarray(view)) == address(view)
        assert address(wnp.array(view)) != address(view)
    text = bytes(4000)
    view = np.frombuffer(text, "float32")
    y = wnp.asarray(view)
    assert address(y) == address(view)
    del view, text
    gc.collect()
    assert y.sum() == 0
    z = wnp.asarray(np.asarray(x))
    del x
    gc.collect()
    assert z[999] == 999


def test_from_dlpack_shares_unless_asked():
    x = np.ones(10, "float32")
    shared, own = wnp.from_dlpack(x), wnp.from_dlpack(x, copy=True)
    x[:] = 2
    assert shared[0] == 2 and own[0] == 1


def test_callbacks_keep_what_they_were_given():
    kept = []

    def keep(v):
        kept.append(v)
        return v

    x = np.ones(1000, "float32")
    weft.jit(lambda v: weft.pure_callback(keep, weft.ShapeDtype((1000,), "float32"), v))(x)
    x[:] = 0
    assert np.asarray(kept[0]).sum() == 1000


def count(function, *args):
    return len(weft.make_ir(function)(*args)._captures)


def test_an_array_that_is_captured_often_is_there_once():
    x, y = np.ones((30, 30), "float32"), np.ones((30, 30), "float32")
    scale = weft.jit(lambda a, b: a * b)

    def f(v):
        for _ in range(5):
            v = v @ x + wnp.asarray(x) + scale(x, v) + wnp.sum(x) + x
        return weft.lax.scan(lambda c, _: (c + x, wnp.sin(x)), v, None, length=3)

    assert count(f, x) == 1
    assert count(lambda v: f(v)[0] + y, x) == 2
    assert count(lambda v: v + x.T + x.T, x) == 1
    assert count(lambda v: v + x[:, ::2] + x[:, ::2], x[:, ::2]) == 1
    np.testing.assert_allclose(weft.jit(lambda v: v + x.T + x[::-1])(x), x * 3)


def test_an_array_that_changes_while_traced_is_captured_twice():
    x = np.ones(1000, "float32")

    def f(v):
        a = v + x
        x[:] = 2
        b = v + x
        x[:] = 1
        return a, b, v + x

    a, b, c = weft.jit(f)(np.zeros(1000, "float32"))
    assert (a[0], b[0], c[0]) == (1, 2, 1)
    x[:] = 1
    assert count(f, np.zeros(1000, "float32")) <= 3


def test_captured_arrays_are_freed():
    import weakref

    freed = []

    def once():
        x = np.ones(1000, "float32").view(Subclass)
        weakref.finalize(x, freed.append, True)
        weft.jit(lambda v: v + x + x)(1.0)

    once()
    gc.collect()
    assert freed == [True]


# --- Donation ---


def tree(n):
    return {f"w{i}": np.ones((8, 8), "float32") * i for i in range(n)}


@pytest.mark.parametrize("make", [wnp.asarray, wnp.array, weft.device_put])
def test_arrays_made_of_numpys_are_donated(make):
    step = weft.jit(lambda p: weft.tree.map(lambda w: w + 1, p), donate_argnums=0)
    params = weft.tree.map(make, tree(30))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        new = step(params)
    assert all(w.is_deleted() for w in params.values())
    same(new["w3"], np.full((8, 8), 4, "float32"))


def test_one_warning_for_all_that_is_not_donated():
    step = weft.jit(named(lambda p: weft.tree.map(lambda w: w + 1, p)), donate_argnums=0)
    params = weft.tree.map(wnp.asarray, tree(30))
    views = [np.asarray(w) for w in params.values()]
    params |= {f"x{i}": wnp.from_dlpack(np.ones((8, 8), "float32")) for i in range(3)}
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        step(params)
    texts = sorted(str(w.message) for w in seen)
    assert len(texts) == 2
    assert texts[0].startswith(
        "jit: 3 arguments were not donated: their memory belongs to another library; the first is"
    )
    assert texts[1].startswith("jit: 30 arguments were not donated: a NumPy array, DLPack")
    assert texts[1].endswith("the first is argument p['w0'] of 'f', f32[8,8]")
    assert views[3][0, 0] == 3


def test_one_warning_for_all_that_was_donated_for_nothing():
    step = weft.jit(named(lambda p: sum(w[0, 0] for w in p.values())), donate_argnums=0)
    with pytest.warns(UserWarning) as seen:
        step(weft.tree.map(wnp.asarray, tree(30)))
    assert len(seen) == 1
    assert str(seen[0].message).startswith("jit: donating 30 arguments brings nothing: no result or temporary fits")


# --- Python's large integers ---


@pytest.mark.parametrize("n", [2**63, 2**64, 2**70 + 1, -(2**70), 10**30, 2**1023])
def test_integers_beyond_64_bits_are_floats_beside_floats(n):
    for dtype in ("float16", "float32", "float64", "complex64", "complex128"):
        x = np.array([1, 2], dtype)
        with np.errstate(over="ignore"):
            scalar = np.array(float(n)).astype(dtype)
            want = {"+": x + scalar, "*": scalar * x, "-": scalar - x}
        y = wnp.asarray(x)
        for f in (lambda v: (v + n, n * v, n - v), weft.jit(lambda v: (v + n, n * v, n - v))):
            for got, wanted in zip(f(y), want.values()):
                same(got, wanted)
    assert wnp.asarray(n, "float64").item() == float(n)
    assert weft.grad(lambda v: v * n)(np.float64(2)) == float(n)
    assert wnp.asarray([float(n), n], "float64").tolist() == [float(n)] * 2


def test_integers_beyond_64_bits_do_not_fit_integers():
    for n in (2**70, -(2**70)):
        for dtype in ("bool", "int8", "int32", "int64", "uint64"):
            x = wnp.ones(2, dtype)
            for f in (operator.add, lambda v, n: n * v, wnp.maximum, lambda v, n: wnp.where(v > 0, v, n)):
                f = functools.partial(lambda f, n, v: f(v, n), f, n)
                for call in (f, weft.jit(f), weft.vmap(f)):
                    with pytest.raises(
                        OverflowError, match=r"does not fit [iu].*; use an array of a float dtype\n  at "
                    ):
                        call(x)
            # Compared, they are what they are.
            if dtype != "bool":
                assert ((x < n).all(), (x == n).any(), (x != n).all()) == (n > 0, False, True)
        with pytest.raises(OverflowError, match="does not fit"):
            wnp.asarray(n)
        with pytest.raises(OverflowError, match="does not fit"):
            weft.jit(lambda v: v)(n)
        with pytest.raises(OverflowError, match=f"array: the Python integer {n} does not fit 64 bits"):
            wnp.asarray([1, [n]][1:])
    with pytest.raises(OverflowError, match="the Python integer of 1101 bits does not fit a float64"):
        wnp.ones(2) + 2**1100


@pytest.mark.parametrize("of", [lambda *a: wnp.array(*a), lambda *a: wnp.asarray(*a)])
@pytest.mark.parametrize(
    "values",
    [
        [1.0, 2**70],
        [[1.0, 2**70], [3, 4]],
        ([True, -(2**63) - 1], (np.float32(2.5), 2**64)),
        [1j, 2**70],
        [np.complex64(1j), True, -(2**70)],
    ],
    ids=repr,
)
def test_integers_beyond_64_bits_beside_floats(of, values):
    expected = np.array(values, complex)
    got = of(values)
    assert got.dtype == ("complex64" if expected.imag.any() else "float32")
    np.testing.assert_array_equal(np.asarray(got), expected.astype("complex64"))


def test_integers_beyond_64_bits_and_beyond_floats():
    for values in ([1, 2**70], [True, 2**70], [1.0, 2**2000]):
        with pytest.raises(OverflowError):
            wnp.array(values)


CODES = [order + kind + size for order in ("", "=", "<", "|") for kind, sizes in
         {"i": "1248", "u": "1248", "f": "248", "b": "1"}.items() for size in sizes]  # fmt: skip


@pytest.mark.parametrize("code", [*CODES, "c8", "c16", *"?bBhHiIlLqQefdFD"])
def test_codes_of_dtypes_are_numpys(code):
    """`i4` has four bytes, though the IR calls the integers of four bits so."""
    wanted = np.dtype(code)
    for dtype in (code, wanted):
        assert wnp.zeros(2, dtype).dtype == wanted
        assert wnp.arange(3).astype(dtype).dtype == wanted
        assert wnp.asarray([0, 1], dtype).dtype == wanted
        assert weft.ShapeDtype((2,), dtype).dtype == wanted
        assert weft.jit(lambda x, dtype=dtype: x.astype(dtype))(wnp.ones(2)).dtype == wanted


@pytest.mark.parametrize("name", ["f32", "f64", "i32", "u16", "bf16", "c64", "f8e5m2", "int4", "uint2", "bool"])
def test_names_that_numpy_lacks_are_the_irs(name):
    assert name in str(weft.make_ir(lambda: wnp.zeros(2, name))().out_types[0]) or name in ("int4", "uint2")
    assert wnp.zeros(2, name).dtype == wnp.zeros(2, wnp.zeros(1, name).dtype).dtype


@pytest.mark.parametrize("code", [">i2", ">i4", ">u8", ">f4", ">f8", ">c8"])
def test_other_byte_orders(code):
    """Arrays have the machine's; the values of NumPy's arrays are read whatever theirs is."""
    x = np.arange(3).astype(code)
    y = wnp.asarray(x)
    assert y.dtype == x.dtype.newbyteorder("=")
    np.testing.assert_array_equal(y, np.arange(3))
    np.testing.assert_array_equal(weft.jit(lambda x: x + x)(x), 2 * np.arange(3))
    for dtype in (code, np.dtype(code)):
        for make in (
            lambda: wnp.zeros(2, dtype),  # noqa: B023
            lambda: wnp.arange(3).astype(dtype),  # noqa: B023
            lambda: wnp.asarray(x, dtype),  # noqa: B023
            lambda: weft.ShapeDtype((2,), dtype),  # noqa: B023
        ):
            with pytest.raises(TypeError, match=f'not in this machine\'s byte order.*expected "{y.dtype.name}"'):
                make()
