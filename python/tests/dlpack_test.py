"""Arrays by DLPack whose headers say what cannot be: refused, and left to whoever made them."""

import ctypes

import numpy as np
import pytest

import weft.numpy as wnp


class Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Managed(ctypes.Structure):
    _fields_ = [("tensor", Tensor), ("context", ctypes.c_void_p), ("deleter", DELETER)]


class Versioned(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", DELETER),
        ("flags", ctypes.c_uint64),
        ("tensor", Tensor),
    ]


capsule_of = ctypes.pythonapi.PyCapsule_New
capsule_of.restype = ctypes.py_object
capsule_of.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
is_valid = ctypes.pythonapi.PyCapsule_IsValid
is_valid.argtypes = [ctypes.py_object, ctypes.c_char_p]


class Exporter:
    """Six numbers, 2 by 3, and what is changed of their header."""

    def __init__(self, kind, numbers=None, **changes):
        self.numbers = np.arange(6, dtype=np.float32) if numbers is None else numbers
        self.deleted = 0
        shape = changes.pop("shape", (2, 3))
        self.shape = None if shape is None else (ctypes.c_int64 * len(shape))(*shape)
        self.strides = (ctypes.c_int64 * 2)(*changes.pop("strides", (3, 1)))
        self.managed = kind()
        if kind is Versioned:
            self.managed.major = changes.pop("major", 1)
            self.managed.minor = changes.pop("minor", 0)
        self.deleter = DELETER(lambda _: setattr(self, "deleted", self.deleted + 1))
        self.managed.deleter = self.deleter
        t = self.managed.tensor
        t.data = self.numbers.ctypes.data
        t.device_type, t.ndim, t.code, t.bits, t.lanes = 1, 2, 2, 32, 1
        t.shape = ctypes.cast(self.shape, ctypes.POINTER(ctypes.c_int64))
        t.strides = ctypes.cast(self.strides, ctypes.POINTER(ctypes.c_int64))
        for name, value in changes.items():
            setattr(t, name, value)
        self.name = b"dltensor_versioned" if kind is Versioned else b"dltensor"
        self.capsule = capsule_of(ctypes.addressof(self.managed), self.name, None)

    def __dlpack__(self, **options):
        return self.capsule

    def __dlpack_device__(self):
        return (self.managed.tensor.device_type, 0)


KINDS = [Managed, Versioned]


@pytest.mark.parametrize("kind", KINDS)
def test_what_it_is_meant_to_be(kind):
    x = Exporter(kind)
    y = wnp.from_dlpack(x)
    np.testing.assert_array_equal(np.asarray(y), np.arange(6).reshape(2, 3))
    with pytest.raises(ValueError, match=r"a capsule 'used_dltensor(_versioned)?'; expected one named 'dltensor'"):
        wnp.from_dlpack(x)
    del y
    assert x.deleted == 1


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"shape": (-2, 3)}, ValueError, "dimension 0 has the size -2"),
        ({"shape": (2, -3)}, ValueError, "dimension 1 has the size -3"),
        ({"shape": (-2, -3)}, ValueError, "dimension 0 has the size -2"),
        ({"shape": (0, -3)}, ValueError, "dimension 1 has the size -3"),
        ({"shape": (2**62, 3)}, ValueError, r"more than 2\^63"),
        ({"shape": (2**40, 2**21)}, ValueError, r"more than 2\^63 bytes"),
        ({"ndim": -1}, ValueError, "-1 dimensions"),
        ({"ndim": 65}, ValueError, "65 dimensions"),
        ({"ndim": 2**31 - 1}, ValueError, "2147483647 dimensions"),
        ({"shape": None}, ValueError, "2 dimensions and no sizes"),
        ({"data": None}, ValueError, "6 elements and no data"),
        ({"byte_offset": 2**63}, ValueError, "begins 9223372036854775808 bytes"),
        ({"strides": (2**61, 1)}, ValueError, "dimension 0 has the stride 2305843009213693952, beyond all memory"),
        ({"strides": (3, -(2**63))}, ValueError, "dimension 1 has the stride -9223372036854775808"),
        ({"strides": (2**60, 2**59)}, ValueError, "dimension 1 has the stride"),
        ({"device_type": 2}, NotImplementedError, "not in host memory"),
        ({"bits": 7}, TypeError, "no counterpart"),
        ({"code": 99}, TypeError, "no counterpart"),
        ({"lanes": 4}, TypeError, "no counterpart"),
        ({"lanes": 0}, TypeError, "no counterpart"),
    ],
)
@pytest.mark.parametrize("copy", [None, False, True])
def test_headers_that_say_what_cannot_be(kind, changes, error, message, copy):
    x = Exporter(kind, **changes)
    with pytest.raises(error, match=message):
        wnp.from_dlpack(x, copy=copy)
    # Not taken: its maker deletes it.
    assert x.deleted == 0 and is_valid(x.capsule, x.name)


def test_versions():
    assert wnp.from_dlpack(Exporter(Versioned, minor=7)).shape == (2, 3)
    for major in (0, 2, 2**32 - 1):
        x = Exporter(Versioned, major=major)
        with pytest.raises(NotImplementedError, match=rf"of version {major}\.0 of DLPack; expected 1"):
            wnp.from_dlpack(x)
        assert x.deleted == 0 and is_valid(x.capsule, x.name)


@pytest.mark.parametrize("given", [None, 3, "capsule", object()])
def test_what_is_no_capsule(given):
    class Wrong:
        def __dlpack__(self, **options):
            return given

    with pytest.raises(ValueError, match="no capsule of DLPack; expected one named 'dltensor'"):
        wnp.from_dlpack(Wrong())


@pytest.mark.parametrize("kind", KINDS)
def test_memory_that_is_not_aligned(kind):
    """Code loads whole numbers; what lies between them is copied."""
    bytes_ = np.zeros(100, np.uint8)
    bytes_[3:27].view(np.uint8)[:] = np.frombuffer(np.arange(6, dtype=np.float32).tobytes(), np.uint8)
    x = Exporter(kind, numbers=bytes_, byte_offset=3)
    np.testing.assert_array_equal(np.asarray(wnp.from_dlpack(x) + 1), np.arange(6).reshape(2, 3) + 1)


@pytest.mark.parametrize("kind", KINDS)
def test_arrays_without_elements(kind):
    assert wnp.from_dlpack(Exporter(kind, shape=(0, 3), data=None, strides=(7, 9))).shape == (0, 3)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("strides", [(1, 2), (1, 0), (-1, 1), (0, 0)])
def test_headers_of_arrays_that_lie_otherwise(kind, strides):
    x = Exporter(kind, strides=strides, byte_offset=4 if strides[0] < 0 else 0)
    with pytest.raises(ValueError, match="copy=False"):
        wnp.from_dlpack(x, copy=False)
    want = np.lib.stride_tricks.as_strided(x.numbers[strides[0] < 0 :], (2, 3), [4 * s for s in strides])
    got = wnp.from_dlpack(x)
    np.testing.assert_array_equal(np.asarray(got), want)
    assert x.deleted == 1  # copied: nothing holds its memory


def test_arrays_that_lie_otherwise_are_copied():
    transposed = np.arange(6.0).reshape(2, 3).T
    assert np.array_equal(wnp.from_dlpack(transposed), transposed)
    memory = np.zeros(64, np.uint8)
    start = next(i for i in range(8) if (memory.ctypes.data + i) % 8 == 2)
    shifted = memory[start : start + 16].view(np.float32)  # in the middle of a number
    shifted[:] = 7
    assert np.array_equal(wnp.from_dlpack(shifted), shifted)
    for x in (transposed, shifted):
        with pytest.raises(ValueError, match="copy=False"):
            wnp.from_dlpack(x, copy=False)
    whole = np.arange(4.0)
    ours = wnp.from_dlpack(whole, copy=False)
    whole[0] = 5
    assert float(ours[0]) == 5
