"""Many arrays joined: by copying where they are there, with the values and errors of programs that join them."""

import numpy as np
import pytest

import weft as wf
import weft.numpy as wnp
from weft._core import copied
from weft.flatten_util import ravel_pytree

_DTYPES = ["float32", "float64", "float16", "bfloat16", "int8", "int32", "uint32", "bool", "complex64"]


@pytest.mark.parametrize("dtype", _DTYPES)
@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (0, 2)])
def test_joined_by_copying_as_by_a_program(dtype, shape):
    arrays = [wnp.asarray(np.random.default_rng(i).normal(size=shape) * 9).astype(dtype) for i in range(7)]
    joins = [wnp.stack, wnp.array, wf.lax.stack, lambda parts: wnp.stack(parts, axis=-1)]
    if shape:
        joins += [wnp.concatenate, lambda parts: wf.lax.concatenate(parts, len(shape) - 1), wnp.hstack]
    for join in joins:
        copied, traced = join(arrays), wf.jit(join)(arrays)
        assert (copied.dtype, copied.shape, copied.weak_type) == (traced.dtype, traced.shape, traced.weak_type)
        assert np.asarray(copied).tobytes() == np.asarray(traced).tobytes()


@pytest.mark.parametrize(
    "first", [0, 0.5, True, 1j, 2**40], ids=["integer", "float", "bool", "complex", "large integer"]
)
def test_numbers_of_python_beside_arrays(first):
    arrays = [wnp.float32(i) for i in range(5)]
    made, few = wnp.array([first, *arrays]), wnp.array([first, arrays[0]])
    assert made.dtype == few.dtype and made.weak_type == few.weak_type
    np.testing.assert_array_equal(np.asarray(made), np.array([first, *map(float, range(5))], made.dtype))


def test_dtypes_are_promoted():
    arrays = [wnp.int32(3), wnp.float16(1.5), wnp.int8(2), wnp.float32(0.25), wnp.array(True)]
    assert wnp.array(arrays).dtype == wnp.stack(arrays).dtype == np.float32
    np.testing.assert_array_equal(np.asarray(wnp.stack(arrays)), [3, 1.5, 2, 0.25, 1])


def test_arrays_that_do_not_fit_are_refused_as_they_were():
    five, other = [wnp.ones((2, 3))] * 5, wnp.ones((3, 3))
    with pytest.raises(TypeError, match=r"stack: array 5 has shape \(3, 3\)"):
        wnp.stack([*five, other])
    with pytest.raises(ValueError, match="must have one shape"):
        wnp.array([*five, other])
    with pytest.raises(TypeError, match="all dimensions but axis 0"):
        wnp.concatenate([*five, wnp.ones((2, 2))])
    with pytest.raises(OverflowError):
        wnp.array([300, *[wnp.int8(1)] * 5])
    deleted = wnp.ones((2, 3)) + 1
    deleted.delete()
    with pytest.raises(RuntimeError, match="delete"):
        wnp.stack([*five, deleted])


def test_transforms_see_what_is_joined():
    assert float(wf.grad(lambda x: wnp.stack([x * i for i in range(5)]).sum())(2.0)) == 10
    assert wf.vmap(lambda x: wnp.array([x] * 5))(wnp.ones(3)).shape == (3, 5)
    assert wf.jit(lambda: wnp.stack([wnp.ones(2)] * 5))().shape == (5, 2)


def test_what_a_loop_has_collected_needs_no_program_of_that_length(monkeypatch):
    """A program of n arrays is compiled for each n, and takes milliseconds for each array."""
    longest = []

    def watched(function, items, *more):
        if isinstance(items, list):
            longest.append(len(items))
        return function(items, *more)

    class Watched:
        def __getattr__(self, name):
            function = getattr(wf._weft, name)
            if name not in ("stack", "concatenate", "array"):
                return function
            return lambda items, *more: watched(function, items, *more)

    parts = [wnp.arange(3.0) * i for i in range(40)]
    scalars = [part[1] for part in parts]
    monkeypatch.setattr(copied, "_weft", Watched())
    assert wnp.stack(parts, axis=1).shape == (3, 40)
    assert wnp.concatenate(parts).shape == wnp.hstack(parts).shape == wf.lax.concatenate(parts, 0).shape == (120,)
    assert wnp.vstack(parts).shape == wnp.array(parts).shape == (40, 3)
    assert wnp.array([0, *scalars]).shape == (41,)
    assert wnp.asarray(scalars).shape == wf.lax.stack(scalars).shape == (40,)
    assert ravel_pytree(parts)[0].shape == (120,)
    assert max(longest) == 2  # a number and an array, to know the dtype


def test_the_result_is_an_array_of_its_own():
    arrays = [wnp.zeros(3) + i for i in range(5)]
    joined = wnp.stack(arrays)
    wf.jit(lambda x: x + 1, donate_argnums=0)(joined)
    np.testing.assert_array_equal(np.asarray(arrays[4]), [4, 4, 4])
