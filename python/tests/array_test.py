"""The array object: exchange with other libraries, conversions, printing, pickling."""

import copy
import ctypes
import gc
import pickle
import weakref

import numpy as np
import pytest

import weft
import weft.numpy as wnp

DTYPES = [
    "bool",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float16",
    "float32",
    "float64",
    "complex64",
    "complex128",
]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (0,), (2, 0, 3)])
def test_numpy_round_trip(dtype, shape):
    rng = np.random.default_rng(0)
    a = (rng.standard_normal(shape) * 3).astype(dtype)
    x = wnp.asarray(a)
    assert x.shape == shape and x.dtype == np.dtype(dtype) and x.ndim == len(shape) and x.size == a.size
    b = np.asarray(x)
    assert b.dtype == a.dtype and b.shape == shape
    np.testing.assert_array_equal(b, a)


def test_export_shares_memory_and_is_read_only():
    x = wnp.arange(5.0)
    a = np.asarray(x)
    assert a.__array_interface__["data"] == np.asarray(x).__array_interface__["data"]
    with pytest.raises(ValueError, match="read-only"):
        a[0] = 1
    assert memoryview(x).readonly
    with pytest.raises((BufferError, TypeError)):
        ctypes.c_char.from_buffer(x)
    address = a.__array_interface__["data"][0]
    del x
    gc.collect()
    assert a[4] == 4 and address == a.__array_interface__["data"][0]


def test_strided_and_foreign_layouts():
    a = np.arange(24.0, dtype=np.float32).reshape(2, 3, 4)
    for view in [a.T, a[:, ::2], a[:, :, ::-1], a[1], np.asfortranarray(a), a[:, None]]:
        np.testing.assert_array_equal(np.asarray(wnp.asarray(view)), view)
    with pytest.raises(TypeError, match="counterpart"):
        wnp.asarray(np.array(["a"]))
    with pytest.raises(TypeError):
        wnp.asarray(np.array([object()]))


def test_jit_does_not_hand_out_numpys_memory():
    a = np.ones(1000, np.float32)
    out = weft.jit(lambda x: x)(a)
    a[0] = 5
    assert out[0] == 1


def test_captured_numpy_is_copied():
    a = np.ones(1000, np.float32)
    f = weft.jit(lambda x: x + a)
    assert f(np.float32(1))[0] == 2
    a[0] = 100
    assert f(np.float32(1))[0] == 2


def test_bytes():
    a = np.arange(6, dtype=np.int16).reshape(2, 3)
    x = wnp.array(a)
    assert x.tobytes() == a.tobytes() and x.tobytes("F") == x.tobytes(order="F") == a.tobytes("F")
    assert wnp.array(1.5).tobytes() == np.float32(1.5).tobytes() and wnp.zeros((0, 3)).tobytes() == b""
    with pytest.raises(weft.TracerError):
        weft.jit(lambda x: x.tobytes())(x)


def test_booleans_of_other_bytes():
    x = np.arange(5, dtype=np.uint8).view(bool)  # True is 1, 2, 3 and 4
    for y in wnp.array(x), wnp.asarray(x), wnp.from_dlpack(x), weft.jit(lambda x: x)(x), wnp.asarray(x[::2])[:2]:
        assert np.asarray(y).view(np.uint8).tolist() == [0, 1, 1, 1, 1][: y.size]
    assert weft.jit(wnp.sum)(x) == 4
    y = np.array([True, False])
    z = wnp.from_dlpack(y)
    y[1] = True
    assert z[1]  # ordinary ones are shared


def test_dlpack():
    x = wnp.arange(6.0).reshape(2, 3)
    a = np.from_dlpack(x)
    np.testing.assert_array_equal(a, np.asarray(x))
    assert a.__array_interface__["data"][0] == np.asarray(x).__array_interface__["data"][0] and not a.flags.writeable
    b = np.arange(3, dtype=np.int64)
    y = wnp.from_dlpack(b)
    b[0] = 9
    assert y[0] == 9 and y.dtype == np.int64
    assert x.__dlpack_device__() == (1, 0)
    del b
    gc.collect()
    assert y[0] == 9
    columns = np.arange(12.0).reshape(3, 4)[:, ::2]  # which arrays cannot lie as
    np.testing.assert_array_equal(wnp.from_dlpack(columns), columns)
    with pytest.raises(ValueError, match=r"not row-major.*requires a copy"):
        wnp.from_dlpack(columns, copy=False)
    for shape in [(0, 3), (2, 0, 3)]:
        assert wnp.from_dlpack(np.zeros(shape, "float32")).shape == shape  # whose strides say nothing


def test_dlpack_with_jax():
    jnp = pytest.importorskip("jax.numpy")
    import jax

    x = wnp.arange(6.0)
    np.testing.assert_array_equal(np.asarray(jnp.from_dlpack(x)), np.arange(6.0))
    np.testing.assert_array_equal(np.asarray(wnp.from_dlpack(jnp.arange(3.0))), np.arange(3.0))
    del jax


def test_python_numbers():
    x = wnp.asarray(2.5)
    assert (
        float(x) == 2.5
        and int(x) == 2
        and bool(x)
        and complex(x) == 2.5
        and x.item() == 2.5
        and type(x.item()) is float
    )
    assert range(10)[wnp.asarray(3)] == 3 and [10, 20][wnp.asarray(1)] == 20
    with pytest.raises(TypeError):
        range(10)[wnp.asarray(3.0)]
    with pytest.raises(ValueError, match="ambiguous"):
        bool(wnp.ones(2))
    with pytest.raises(TypeError):
        float(wnp.ones(2))
    assert wnp.asarray([[1, 2], [3, 4]]).tolist() == [[1, 2], [3, 4]] and wnp.ones((2, 2)).item(1, 1) == 1
    assert f"{wnp.asarray(1.25):.1f}" == "1.2" and round(wnp.asarray(2.6)) == 3


@pytest.mark.parametrize(
    "other", [np.float32(3), np.arange(3.0, dtype=np.float32), np.int8(3), 3, 3.0, True, np.float64(3)]
)
def test_operators_with_numpy_on_either_side(other):
    x, a = wnp.arange(1.0, 4.0), np.arange(1.0, 4.0, dtype=np.float32)
    for f in [
        lambda p, q: p + q,
        lambda p, q: p - q,
        lambda p, q: p * q,
        lambda p, q: p / q,
        lambda p, q: p // q,
        lambda p, q: p % q,
        lambda p, q: p**q,
        lambda p, q: p < q,
        lambda p, q: p >= q,
        lambda p, q: p == q,
        lambda p, q: p != q,
    ]:
        with np.errstate(all="ignore"):
            for got, want in [(f(x, other), f(a, other)), (f(other, x), f(other, a))]:
                assert isinstance(got, weft.Array), (type(got), other)
                np.testing.assert_allclose(np.asarray(got), np.asarray(want), rtol=1e-6)


def test_integer_operators():
    a, b = np.array([7, -7, 7, -7, 0], np.int32), np.array([2, 2, -2, -2, 3], np.int32)
    x, y = wnp.asarray(a), wnp.asarray(b)
    for got, want in [
        (x // y, a // b),
        (x % y, a % b),
        (x & y, a & b),
        (x | y, a | b),
        (x ^ y, a ^ b),
        (~x, ~a),
        (-x, -a),
        (abs(x), abs(a)),
        (x << 2, a << 2),
        (x >> 1, a >> 1),
        (x**2, a**2),
        (+x, a),
    ]:
        np.testing.assert_array_equal(np.asarray(got), want)
    q, r = divmod(x, y)
    np.testing.assert_array_equal(q, a // b)
    np.testing.assert_array_equal(r, a % b)
    u = wnp.asarray(np.array([200, 3], np.uint8))
    assert (u >> 1).tolist() == [100, 1] and (u + u).tolist() == [144, 6]


def test_float_division_and_remainder():
    a = np.array([7.5, -7.5, 7.5, -7.5, 1.0, 0.0, 5.0], np.float32)
    b = np.array([2.0, 2.0, -2.0, -2.0, 0.1, 2.0, 0.0], np.float32)
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(np.asarray(wnp.asarray(a) // b), a // b)
        np.testing.assert_allclose(np.asarray(wnp.asarray(a) % b), a % b, rtol=1e-5)


def test_matmul_operator():
    a, b = np.arange(6.0).reshape(2, 3), np.arange(12.0).reshape(3, 4)
    np.testing.assert_allclose(np.asarray(wnp.asarray(a) @ b), a @ b)
    np.testing.assert_allclose(np.asarray(a @ wnp.asarray(b)), a @ b)


def test_lists_are_no_operands():
    with pytest.raises(TypeError):
        wnp.ones(2) + [1, 2]
    with pytest.raises(TypeError, match=r"sin.*list"):
        wnp.sin([1.0])
    with pytest.raises(TypeError):
        wnp.ones(2) + "a"


def test_repr():
    assert repr(wnp.arange(3)) == "Array([0, 1, 2], dtype=int32)"
    assert repr(wnp.asarray([1.5, 2.0])) == "Array([1.5, 2. ], dtype=float32)"
    assert repr(wnp.ones((2, 2))) == "Array([[1., 1.],\n       [1., 1.]], dtype=float32)"
    assert repr(weft.jit(lambda x: x * 2)(3)) == "Array(6, dtype=int32, weak_type=True)"
    assert repr(wnp.ones((0, 3))) == "Array([], shape=(0, 3), dtype=float32)"
    assert str(wnp.arange(3)) == "[0 1 2]"
    seen = []
    weft.jit(lambda x: seen.append(repr(x)) or x)(wnp.ones((2, 3)))
    assert seen == ["Tracer<f32[2,3]>"]


def test_pickle_and_copy():
    for dtype in DTYPES:
        x = wnp.asarray(np.arange(6).reshape(2, 3).astype(dtype))
        y = pickle.loads(pickle.dumps(x))
        assert y.dtype == x.dtype and y.shape == x.shape and bool((y == x).all())
    x = wnp.ones(3)
    assert copy.copy(x) is x and copy.deepcopy([x])[0] is x
    assert pickle.loads(pickle.dumps(weft.jit(lambda x: x * 1)(2))).weak_type


def test_protocols():
    x = wnp.arange(6.0).reshape(2, 3)
    with pytest.raises(TypeError):
        hash(x)
    with pytest.raises(TypeError):
        x[0] = 1
    with pytest.raises(TypeError):
        weft.Array()
    assert len(x) == 2 and [r.tolist() for r in x] == [[0, 1, 2], [3, 4, 5]]
    with pytest.raises(TypeError):
        len(wnp.asarray(1.0))
    with pytest.raises(TypeError):
        iter(wnp.asarray(1.0))
    r = weakref.ref(x)
    del x
    assert r() is None
    a, b = wnp.arange(2)
    assert (int(a), int(b)) == (0, 1)


def test_bfloat16():
    x = wnp.asarray([1.0, 2.5, 3.14159]).astype("bfloat16")
    assert x.type == "bf16[3]" and x.itemsize == 2
    np.testing.assert_allclose(np.asarray(x.astype("float32")), [1.0, 2.5, 3.140625])
    ml_dtypes = pytest.importorskip("ml_dtypes")
    a = np.asarray(x)
    assert a.dtype == ml_dtypes.bfloat16
    y = wnp.asarray(a)
    assert y.type == "bf16[3]" and bool((y == x).all())


def test_methods():
    a = np.random.default_rng(0).standard_normal((3, 4)).astype(np.float32)
    x = wnp.asarray(a)
    for name, args in [
        ("sum", ()),
        ("mean", (0,)),
        ("max", (1,)),
        ("min", ()),
        ("prod", (0,)),
        ("std", ()),
        ("var", (1,)),
        ("argmax", (1,)),
        ("argmin", ()),
        ("cumsum", (0,)),
        ("ravel", ()),
        ("flatten", ()),
        ("reshape", (4, 3)),
        ("transpose", ()),
        ("swapaxes", (0, 1)),
        ("clip", (-0.5, 0.5)),
        ("round", (1,)),
        ("any", ()),
        ("all", (0,)),
        ("trace", ()),
        ("repeat", (2, 1)),
        ("take", ([0, 2], 1)),
        ("diagonal", ()),
        ("squeeze", ()),
    ]:
        got, want = getattr(x, name)(*args), getattr(a, name)(*args)
        np.testing.assert_allclose(np.asarray(got), want, rtol=2e-5, atol=1e-6, err_msg=name)
    assert (
        x.T.shape == (4, 3)
        and x.mT.shape == (4, 3)
        and x.reshape(-1).shape == (12,)
        and x.reshape((2, 6)).shape == (2, 6)
    )
    assert x.real is not None and x.astype(int).dtype == np.int32


def test_reversed():
    x = wnp.array([[1, 2], [3, 4], [5, 6]])
    assert [row.tolist() for row in reversed(x)] == [[5, 6], [3, 4], [1, 2]]
    assert weft.jit(lambda x: list(reversed(x)))(x)[0].tolist() == [5, 6]
    with pytest.raises(TypeError, match="no dimensions"):
        reversed(wnp.array(1.0))


def test_rows_of_large_arrays():
    x = wnp.arange(30000.0).reshape(3000, 10)
    rows = list(x)
    assert len(rows) == 3000 and all(r.shape == (10,) for r in rows)
    np.testing.assert_array_equal(np.stack(rows), x)
    assert [float(x[i, 0]) for i in range(0, 3000, 100)] == [10.0 * i for i in range(0, 3000, 100)]
    keys = list(weft.random.split(weft.random.key(0), 3))
    assert [k.dtype for k in keys] == [weft.random.key(0).dtype] * 3
    assert [a.weak_type for a in wnp.full((2,), 1.0) + 0] == [a.weak_type for a in [(wnp.full((2,), 1.0) + 0)[0]]] * 2


def test_more_dimensions_than_numpy_has():
    x = wnp.ones((1,) * 65)
    assert (x + 1).ndim == 65
    for read in (np.asarray, repr, lambda v: v.tolist()):
        with pytest.raises(ValueError, match="at most 64 dimensions, this one has 65"):
            read(x)


def test_sums_where():
    a = np.arange(6.0, dtype=np.float32).reshape(2, 3) + 1
    for x in (wnp.asarray(a), None):
        of = (lambda f: weft.jit(f)(a)) if x is None else (lambda f, x=x: f(x))
        np.testing.assert_array_equal(of(lambda x: x.sum(where=x > 2)), a.sum(where=a > 2))
        np.testing.assert_array_equal(of(lambda x: x.prod(1, where=x > 2)), a.prod(1, where=a > 2))
        np.testing.assert_array_equal(of(lambda x: x.sum(0, initial=3)), a.sum(0, initial=3))
        got = of(lambda x: x.prod(axis=0, keepdims=True, initial=2.0, where=[[True], [False]], dtype="float64"))
        np.testing.assert_array_equal(got, a.prod(axis=0, keepdims=True, initial=2.0, where=[[True], [False]]))
        assert got.dtype == "float64"


def test_arrays_are_sequences_for_numpys_functions():
    x = wnp.array([[3, 1, 2], [1, 1, 0]])
    np.testing.assert_array_equal(np.lexsort(x), np.lexsort(np.asarray(x)))
    assert [row.tolist() for row in reversed(x)] == [[1, 1, 0], [3, 1, 2]]
    assert np.stack(x).shape == (2, 3) and 3 in x[0] and 7 not in x
    assert weft.jit(lambda x: sum(reversed(x)))(x).tolist() == [4, 2, 2]
    with pytest.raises(TypeError):
        np.lexsort(wnp.array(1.0))


def test_lists_and_bytes_of_traced_values():
    for name in ("tolist", "tobytes"):
        with pytest.raises(weft.errors.ConcretizationTypeError, match=rf"{name}\(\) of a traced value"):
            weft.jit(lambda x, name=name: getattr(x, name)())(wnp.arange(3))
