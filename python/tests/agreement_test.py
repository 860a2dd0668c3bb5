"""Expressions that say the same under JAX and under Weft: values, dtypes and shapes agree, and what one refuses the
other does. Each stands for something that once differed."""

# ruff: noqa: E501

import pickle
import warnings

import numpy as np
import pytest

import weft
import weft.numpy as wnp

jax = pytest.importorskip("jax")
import jax.numpy as jnp  # noqa: E402
from jax import flatten_util  # noqa: E402

SAME = """
# Tuples are arrays, too.
jnp.array((1, 2))
jnp.array(((1,), (2,)))
jnp.array(((1, 2), (3, 4)))
jnp.array((1.5, 2))
jnp.array(())
jnp.array((jnp.array([1, 2]), (3, 4)))
jnp.array(jnp.ones((2, 3)).shape)
jnp.asarray((1, 2), dtype='float32')
jnp.array(range(3))
jnp.asarray(range(0, 9, 2))
jnp.arange(6).reshape(2, 3)[0, (1, 2)]
jnp.arange(6).reshape(2, 3)[(1, 0), (1, 2)]
jnp.zeros((4, 4)).at[(1, 2, 3), (2, 3, 1)].set(1)
jnp.take(jnp.arange(5), jnp.array((1, 2)))
jnp.pad(jnp.arange(3), 2, mode='linear_ramp', end_values=(5, -4))
jnp.stack((jnp.array((1, 2)), jnp.array((3, 4))))

# Sums, counts and squares of 16-bit floats are made in 32 bits.
jnp.mean(jnp.full(10, 60000, 'float16'))
jnp.mean(jnp.ones((300, 300), 'float16'))
jnp.mean(jnp.ones((300, 300), 'bfloat16'))
jnp.mean(jnp.ones((300, 300), 'float16'), axis=0, keepdims=True)
jnp.mean(jnp.full(10, 60000, 'float16'), where=jnp.arange(10) > 3)
jnp.mean(jnp.ones(70000, 'float16'), where=jnp.arange(70000) > 3)
jnp.mean(jnp.arange(10), dtype='float16')
jnp.mean(jnp.arange(10.0), dtype='float16', where=jnp.arange(10) > 3)
jnp.average(jnp.full(10, 60000, 'float16'))
jnp.var(jnp.arange(100.0).astype('float16'))
jnp.var(jnp.full(70000, 300, 'float16').at[0].set(0))
jnp.var(jnp.arange(100.0).astype('float16'), where=jnp.arange(100) % 2 == 0)
jnp.var(jnp.arange(100.0).astype('bfloat16'), ddof=1)
jnp.var(jnp.arange(100.0), dtype='float16')
jnp.var(jnp.arange(4) + 1j)
jnp.std(jnp.arange(4) + 1j)
jnp.std(jnp.arange(200.0).astype('float16'))
jnp.var(jnp.array([1.0, 2.0]), ddof=2)
jnp.cov(jnp.arange(12.0).reshape(3, 4).astype('float16'))
jnp.cov(jnp.full((1, 3000), 8.0, 'float16').at[0, 0].set(0))
jnp.cov(jnp.arange(12.0).reshape(3, 4).astype('float16'), fweights=jnp.array([1, 2, 3, 4]))
jnp.nanmean(jnp.full(10, 6000, 'float16'))
jnp.nanvar(jnp.arange(100.0).astype('float16'))
nn.standardize(jnp.arange(100.0).astype('float16'))
nn.standardize(jnp.ones((2, 70000), 'float16'))
jax.grad(lambda x: jnp.mean(x).astype('float32'))(jnp.ones((300, 300), 'float16'))
jax.grad(lambda x: jnp.var(x).astype('float32'))(jnp.arange(100.0).astype('float16'))
jax.jit(jnp.mean)(jnp.full(10, 60000, 'float16'))
jax.vmap(jnp.mean)(jnp.full((2, 10), 60000, 'float16'))

# Random integers at the ends of narrow dtypes: the same bits.
random.randint(random.key(0), (4,), 0, 256, 'uint8')
random.randint(random.key(0), (4,), -128, 128, 'int8')
random.randint(random.key(0), (4,), 0, 2**16, 'uint16')
random.randint(random.key(0), (4,), -200, 200, 'int8')
random.randint(random.key(0), (4,), -5, 10, 'uint8')
random.randint(random.key(0), (4,), 5, 5, 'uint8')
random.randint(random.key(0), (4,), 300, 500, 'uint8')
random.randint(random.key(0), (4,), -2**31, 2**31 - 1, 'int32')
random.randint(random.key(0), (4,), np.int32(0), np.uint32(2**31), 'int32')
random.randint(random.key(0), (4,), np.int32(-2**31), np.uint32(2**31), 'int32')
random.randint(random.key(0), (4,), np.uint32(0), np.uint32(2**32 - 1), 'uint32')
random.randint(random.key(0), (4,), -3, np.uint32(2**32 - 1), 'uint32')
random.randint(random.key(0), (2, 2), jnp.array([0, 5]), jnp.array([[3], [400]]), 'int8')
random.randint(random.key(0), (4,), -7, 7, 'int16')

# Strides, padding and dilations are in the order of the kernels' dimensions.
lax.conv_general_dilated(jnp.arange(24.0).reshape(1, 1, 4, 6), jnp.arange(6.0).reshape(1, 1, 2, 3), (1, 2), [(0, 1), (2, 0)], None, (1, 2), ('NCHW', 'OIWH', 'NCHW'))
lax.conv_general_dilated(jnp.arange(24.0).reshape(1, 1, 4, 6), jnp.arange(6.0).reshape(1, 1, 2, 3), (1, 2), 'SAME', None, None, ('NCHW', 'OIWH', 'NCWH'))
lax.conv_general_dilated(jnp.arange(24.0).reshape(1, 1, 4, 6), jnp.arange(6.0).reshape(1, 1, 2, 3), (2, 1), [(0, 1), (2, 0)], (2, 1), None, ('NCWH', 'OIHW', 'NCWH'))
lax.conv_general_dilated(jnp.arange(24.0).reshape(1, 4, 6, 1), jnp.arange(6.0).reshape(2, 3, 1, 1), (2, 1), 'SAME', None, None, ('NHWC', 'HWIO', 'NHXC'))
lax.conv_general_dilated(jnp.arange(24.0).reshape(1, 1, 4, 6), jnp.arange(6.0).reshape(1, 1, 2, 3), (2, 1), 'SAME_LOWER')
lax.reduce_window(jnp.arange(7.0), 0.0, lax.add, (2,), (2,), 'SAME_LOWER')
lax.reduce_window(jnp.arange(8.0), 0.0, lax.add, (4,), (3,), 'SAME', base_dilation=(2,))
lax.reduce_window(jnp.arange(8.0), 0.0, lax.add, (4,), (3,), 'SAME', base_dilation=(3,), window_dilation=(2,))

# Decreasing bins.
jnp.digitize(jnp.array([0.5, 1.0, 2.0, 0.0]), jnp.array([2.0, 1.0, 0.0]))
jnp.digitize(jnp.array([0.5, 1.0, 2.0, 0.0]), jnp.array([2.0, 1.0, 0.0]), right=True)
jnp.digitize(jnp.array([0.5, 1.0, 2.0, 0.0]), jnp.array([0.0, 1.0, 2.0]), right=True)

# Integers to negative powers: refused where the exponent is one known number.
jnp.power(2, -1)
jnp.power(2, np.int32(-1))
jnp.power(np.int32(2), -1)
2 ** jnp.array(-1)
2 ** jnp.array([-1, 2])
jnp.array(2) ** -1
jnp.array([2, 3]) ** -1
jnp.power(jnp.array([2, 3]), jnp.array(-1))
jnp.power(jnp.array([1, 2, -1]), jnp.array([-1, -2, -3]))
jnp.array([True]) ** -1
jnp.array([2, 4]) ** -1.0
jnp.array([2.0, 4.0]) ** -1
jnp.array([2.0, 4.0]) ** jnp.array(-1)
jax.jit(lambda x: x ** -1)(jnp.array([2, 3]))
jax.jit(lambda x: 2 ** x)(jnp.array([2, -3]))

# .at: JAX's keywords, and no others.
jnp.arange(5).at[0].set(9, indices_are_sorted=True, unique_indices=True)
jnp.arange(5).at[0].set(9, unique=True)
jnp.arange(5).at[0].add(9, mod='clip')
jnp.arange(5).at[0].get(fill=True)
jnp.arange(5).at[jnp.array([-1, 0])].set(9, wrap_negative_indices=False)
jnp.arange(5).at[-1].set(9, wrap_negative_indices=False)
jnp.arange(5).at[-1].set(9, wrap_negative_indices=False, mode='clip')
jnp.arange(5).at[-2:].set(9, wrap_negative_indices=False)
jnp.arange(5).at[jnp.array([-1, 0], 'int8')].get(wrap_negative_indices=False, mode='fill', fill_value=-3)
jnp.arange(6).reshape(2, 3).at[-1, jnp.array([0, -1])].add(9, wrap_negative_indices=False)
jnp.arange(3).at[1].divide(2)
jnp.arange(3).at[1].divide(2.5)
jnp.arange(3.0).at[jnp.array([1, 1])].divide(2.0)
jnp.arange(3).at[1].power(2)
jnp.arange(3.0).at[jnp.array([2, 2])].power(2)
jnp.arange(3.0).at[5].divide(2.0)

# One boolean as a subscript.
jnp.arange(3)[True]
jnp.arange(3)[False]
jnp.arange(6).reshape(2, 3)[:, True]
jnp.arange(6).reshape(2, 3)[:, False, 1:]
jnp.arange(6).reshape(2, 3)[True, :, True]
jnp.arange(6).reshape(2, 3)[True, jnp.array([1, 0])]
jnp.arange(6).reshape(2, 3)[1, True]
jnp.arange(3)[jnp.array(True)]
jnp.arange(3).at[True].set(7)
jnp.arange(3).at[False].set(7)
jnp.arange(3).at[True, 1].add(7)
jnp.array(5)[True]

# Products of booleans are booleans; their differences and signs are not defined.
jnp.array([True, False]) @ jnp.array([True, True])
jnp.ones((2, 300), bool) @ jnp.ones((300, 2), bool)
jnp.ones((4, 2, 3), bool) @ jnp.zeros((4, 3, 2), bool)
jnp.dot(jnp.array([True, False]), jnp.array([False, True]))
jnp.einsum('i,i', jnp.array([True, False]), jnp.array([True, True]))
jnp.einsum('i->', jnp.array([True, True]))
jnp.einsum('ii->i', jnp.array([[True, True], [True, True]]))
jnp.einsum('i,i,i', jnp.array([True, False]), jnp.array([True, True]), jnp.array([True, True]))
jnp.inner(jnp.array([True, False]), jnp.array([True, True]))
jnp.outer(jnp.array([True, False]), jnp.array([True, True]))
jnp.tensordot(jnp.array([True, False]), jnp.array([True, True]), 1)
jnp.vdot(jnp.array([True, False]), jnp.array([True, True]))
jnp.vecdot(jnp.array([True, False]), jnp.array([True, True]))
jnp.matvec(jnp.ones((2, 2), bool), jnp.array([True, True]))
jnp.linalg.multi_dot([jnp.ones((2, 2), bool)] * 3)
lax.dot(jnp.ones((2, 2), bool), jnp.ones((2, 2), bool))
lax.dot_general(jnp.ones((2, 2), bool), jnp.ones((2, 2), bool), (((1,), (0,)), ((), ())))
jnp.array([True, False]) @ jnp.array([2, 3])
jnp.trace(jnp.ones((2, 2), bool))
-jnp.array([True])
jnp.negative(True)
jnp.sign(True)
jnp.array([True]) - jnp.array([True])
jnp.subtract(True, True)
jnp.array([True]) - 1
jnp.square(jnp.array([True, False]))
jnp.abs(jnp.array([True]))
jnp.array([True]) // jnp.array([True])
jnp.array([True]) % jnp.array([True])
jnp.array([True, False]) ** jnp.array([True, True])
lax.neg(jnp.array([True]))
lax.sub(jnp.array([True]), jnp.array([True]))

# Places and their numbers.
jnp.unravel_index(jnp.array([-1, -7, 6, 100, 5, -6]), (2, 3))
jnp.unravel_index(jnp.array([1, 2, 7], 'uint8'), (2, 3))
jnp.ravel_multi_index((jnp.array([0, 1]), jnp.array([1, 2])), (2, 3))
jnp.ravel_multi_index((jnp.array([0, 1]), jnp.array([1, 5])), (2, 3))
jnp.ravel_multi_index((jnp.array([0, 1]), jnp.array([1, 5])), (2, 3), mode='clip')
jnp.ravel_multi_index((jnp.array([0, -1]), jnp.array([1, 5])), (2, 3), mode='wrap', order='F')
jnp.ravel_multi_index((jnp.array([0, 1], 'int8'), jnp.array([1, 2], 'int8')), (2, 300))
jnp.ravel_multi_index((jnp.array([0, 1]), jnp.array([1, 2])), (2, 3), mode='foo')

# Weighted means.
jnp.average(jnp.arange(3.0), weights=jnp.array([1, 2, 3]), returned=True)
jnp.average(jnp.ones((2, 3)), axis=1, weights=jnp.array([1, 2, 3]), returned=True)
jnp.average(jnp.ones((2, 3), 'float16'), axis=1, weights=jnp.array([1, 2, 3]), returned=True)
jnp.average(jnp.arange(24.0).reshape(2, 3, 4), axis=(0, 2), weights=jnp.arange(8.0).reshape(2, 4), returned=True)
jnp.average(jnp.arange(24.0).reshape(2, 3, 4), axis=(2, 0), weights=jnp.arange(8.0).reshape(4, 2), returned=True)
jnp.average(jnp.arange(24.0).reshape(2, 3, 4), axis=(2, 0), weights=jnp.arange(8.0).reshape(2, 4))

# The sign bit, NaN's too; infinities and what is beside a power of two.
jnp.signbit(np.array([-np.nan, np.nan, -0.0, 1.0], 'float32'))
jnp.signbit(jnp.sign(np.array([-0.0, 0.0, -2.0], 'float16')))
lax.fft(np.arange(24, dtype='complex64').reshape(2, 3, 4), 'FFT', (3, 4))
lax.fft(np.arange(24, dtype='complex64').reshape(2, 3, 4), lax.FftType.IFFT, (4,))
lax.fft(np.arange(24, dtype='float32').reshape(2, 3, 4), 'rfft', (3, 4))
lax.fft(np.arange(24, dtype='complex64').reshape(2, 3, 4), 'IRFFT', (3, 6))
lax.fft(np.arange(4, dtype='complex64'), 'FFT', ())
jnp.signbit(jnp.sign(np.array([-0.0, 0.0, -2.0], 'float32')))
jnp.ones(2, bool) ** 2 + jnp.ones(2, 'int8')
2 ** jnp.ones(2, bool) + jnp.ones(2, 'int8')
jnp.ones(2, bool) ** 2.0 + jnp.ones(2, 'float16')
jnp.signbit(np.array([-np.nan, np.nan, -0.0, 1.0], 'float16'))
jnp.signbit(-jnp.array([-np.nan, np.nan]))
jnp.copysign(1.0, np.array([-np.nan, np.nan, -0.0, 2.0], 'float32'))
jnp.copysign(jnp.array([1, -2]), jnp.array([-1, 3]))
jnp.frexp(jnp.array([np.inf, -np.inf, np.nan, 0.0, -0.0, 3.0, 3e38, 0.99999994, 1.0, -8.0]))
jnp.frexp(np.inf)
jnp.ldexp(jnp.array([2.0**-100, 3.0, -0.0, np.inf, np.nan, 1.0, -1.5]), jnp.array([220, 140, 5, -400, 3, -126, 127]))
jnp.ldexp(jnp.array([1.0, 3.0], 'float16'), jnp.array([15, -16], 'int8'))
jnp.ldexp(3, np.uint8(2))
jnp.ldexp(3.0, 2).weak_type

# Weak and strong results.
jnp.max(2.5) * jnp.ones(1, 'float16')
jnp.sum(2.5).weak_type, jnp.mean(2.5).weak_type, jnp.cumsum(jnp.broadcast_to(2.5, (3,))).weak_type
jnp.deg2rad(True) * jnp.ones(1, 'float16')
jnp.deg2rad(np.array([90], 'int16')) * jnp.ones(1, 'float16')
jnp.rad2deg(jnp.arange(3)) * jnp.ones(1, 'float16')
jnp.reciprocal(np.array([True])) * jnp.ones(1, 'float16')
jnp.hypot(np.array([True]), jnp.ones(1, 'float16'))
jnp.logaddexp(True, jnp.ones(1, 'float16'))
jnp.heaviside(jnp.ones(1, 'float16'), True)
jnp.float_power(True, jnp.ones(1, 'float16'))
jax.pure_callback(lambda x: np.ones(3, 'float32'), jax.ShapeDtypeStruct((3,), 'float32'), 1.0) * jnp.ones(3, 'float16')

# Infinities beside NaN; NaN is not left out, and is the largest in either part.
jnp.hypot(jnp.array([np.inf, np.nan, -np.inf, np.nan]), jnp.array([np.nan, np.inf, np.nan, 1.0]))
jax.scipy.special.xlogy(0.0, np.nan), jax.scipy.special.xlog1py(0.0, np.nan)
jnp.isfinite(np.array([1 + 1j, complex(np.inf, 0), complex(0, np.nan)]))
jnp.allclose(np.array([1 + 1j]), np.array([1 + 1.0000001j]))
jnp.nan_to_num(jnp.array([np.nan, np.inf, 1.0], 'bfloat16'))
jnp.take(jnp.array([10, 20]), np.array([True, False]))
jnp.left_shift(True, True)
jax.jit(lambda a, i: a.at[i].get(mode='fill'))(np.ones(4, 'complex64'), np.array([0, 9]))

# Seeds of more than 32 bits, other initialisers.
random.key_data(random.key(2**32 + 5)), random.key_data(random.key(2**31)), random.key_data(random.key(-2**40 + 3))
nn.initializers.delta_orthogonal()(random.key(0), (3, 3, 2, 4))
random.uniform(random.key(0), (1000,), minval=-2.0, maxval=5.0) == 0
random.uniform(random.key(0), (1000,), 'float16', -2.0, 5.0)
random.normal(random.key(3), (1000,), 'float16')
random.normal(random.key(3), (1000,), 'bfloat16')

# NumPy's integers where Python's may stand; aux that is no array.
jax.jit(lambda x, n: x * n, static_argnums=np.int64(1))(2.0, 3)
jnp.split(jnp.arange(4), np.int64(2))
jnp.median(jnp.arange(6.0).reshape(2, 3), axis=np.int64(1))
jnp.histogram(np.arange(5.0, dtype='float32'), np.int64(4))[0]
jnp.tile(jnp.arange(2), np.int64(2))
jnp.linalg.norm(jnp.ones((2, 2)), axis=np.int64(1))
jax.grad(lambda x: (x * x, 'tag'), has_aux=True)(1.0)[0]
jax.grad(lambda x: [x * x, {'a': x}], has_aux=True)(jnp.float32(1))
jax.jvp(lambda y: y[0] * 2, *(((lambda p: ((p[0],), (p[1],)))(jax.jvp(lambda x: (x * 2.0, jnp.int32(3)), (2.0,), (1.0,))))))

# An index that occurs twice applies the function twice.
jnp.array([2.0, 3.0, 4.0]).at[jnp.array([1, 1, 0])].apply(lambda x: x * 10)
jnp.array([2.0, 3.0, 4.0]).at[jnp.array([1, 7, -1, 2])].apply(lambda x: x * 10)
jnp.array([2.0, 3.0, 4.0]).at[jnp.array([1, 7, 2])].apply(lambda x: x * 10, mode='clip')
jnp.arange(6.0).reshape(2, 3).at[jnp.array([0, 0]), 1:].apply(jnp.exp)
jnp.arange(6.0).reshape(2, 3).at[jnp.array([[0, 1], [1, 1]]), jnp.array([2, 0])].apply(jnp.exp)
jax.jit(lambda x, i: x.at[i].apply(lambda v: v * v + 1))(jnp.arange(4), jnp.array([3, 0, 3, 3]))

# Symmetric matrices are made symmetric, or one triangle of them is read.
jnp.linalg.eigvalsh(jnp.array([[1.0, 2.0], [3.0, 4.0]]))
jnp.linalg.eigvalsh(jnp.array([[1.0, 2.0], [3.0, 4.0]]), 'U')
jnp.linalg.eigvalsh(jnp.array([[1.0, 2.0], [3.0, 4.0]]), 'L', symmetrize_input=False)
jnp.linalg.eigh(jnp.array([[1.0, 2.0], [3.0, 4.0]]), UPLO='U')[0]
jnp.linalg.eigh(jnp.array([[1.0, 2.0], [3.0, 4.0]]), symmetrize_input=False)[0]
jnp.linalg.eigh(jnp.array([[1.0, 2.0], [3.0, 4.0]]), 'U', False)[0]
lax.linalg.eigh(jnp.array([[1.0, 2.0], [3.0, 4.0]]), lower=False, symmetrize_input=False)[1]
jnp.linalg.svd(jnp.array([[1.0, 2.0], [2.0, -4.0]]), hermitian=True)[1]
jnp.linalg.svd(jnp.array([[1.0, 2.0], [2.0, -4.0]]), compute_uv=False, hermitian=True)
(lambda u, s, v: (u * s) @ v)(*jnp.linalg.svd(jnp.array([[[1.0, 2.0], [2.0, -4.0]], [[3.0, 1.0], [1.0, 5.0]]]), hermitian=True))
jnp.linalg.pinv(jnp.array([[2.0, 1.0], [1.0, 3.0]]), hermitian=True)
jnp.linalg.pinv(jnp.array([[2.0, 0.0], [0.0, 0.5]]), rtol=0.5)
jnp.linalg.pinv(jnp.array([[2.0, 0.0], [0.0, 0.5]]), 0.5)
jnp.linalg.pinv(jnp.array([[2.0, 0.0], [0.0, 0.5]]), rcond=0.5)
jnp.linalg.pinv(jnp.stack([jnp.diag(jnp.array([2.0, 0.5]))] * 2), rtol=jnp.array([0.5, 0.1]))

# Weak types: a Python number stays one through shapes, and decides no dtype.
jnp.asarray(3.0) * jnp.ones(2, 'float16')
jnp.array(3) * jnp.ones(2, 'int8')
jnp.asarray(jnp.sin(1.0)) * jnp.ones(2, 'float16')
jnp.reshape(2.0, (1,)) * jnp.ones(2, 'float16')
jnp.broadcast_to(2.0, (2,)) * jnp.ones(2, 'float16')
jnp.full((2,), 3.0) * jnp.ones(2, 'float16')
jnp.zeros_like(3.0) * jnp.ones(2, 'float16')
jnp.ones_like(3) * jnp.ones(2, 'int8')
jnp.full_like(3.0, 2) * jnp.ones(2, 'float16')
jnp.stack([1.0, 2.0]) * jnp.ones(2, 'float16')
jnp.array([1.0, 2.0]) * jnp.ones(2, 'float16')
jnp.zeros(2) * jnp.ones(2, 'float16')
jnp.transpose(2.0) * jnp.ones(2, 'float16')
jnp.dot(2.0, 3.0) * jnp.ones(2, 'float16')
jnp.broadcast_to(2.0, (2,))[0] * jnp.ones(2, 'float16')
jnp.where(True, 1.0, 2.0) * jnp.ones(2, 'float16')
jnp.float32(2) * jnp.ones(2, 'float16')

# Limits, and the extremes of complex numbers.
jnp.finfo('bfloat16').eps
jnp.finfo(jnp.bfloat16).bits
float(jnp.finfo(jnp.bfloat16).max)
jnp.finfo(jnp.float32).eps
jnp.iinfo(jnp.int8).max
jnp.iinfo('uint32').bits
jnp.finfo('int32')
jnp.max(jnp.array([1 + 2j, 1 + 3j, 0 + 9j]))
jnp.max(jnp.array([1 + 2j, complex(1, np.nan), 0 + 9j]))
jnp.max(jnp.array([1 + 2j, 1 + 2j, complex(-np.inf, 9)]))
jnp.min(jnp.array([1 + 2j, 1 + 3j, 0 + 9j]))
jnp.max(jnp.array([[1 + 2j, 1 - 3j], [0 + 9j, 5 + 0j]]), axis=0)
jnp.min(jnp.array([[1 + 2j, 1 - 3j], [0 + 9j, 5 + 0j]]), axis=1, keepdims=True)
nn.logsumexp(jnp.array([1 + 2j, 3.0]))
nn.logsumexp(jnp.array([[1 + 2j, 300.0], [-5j, 2]]), axis=1)

# Transforms of nothing.
jnp.fft.fft(jnp.array([]))
jnp.fft.fft(jnp.ones((0, 3)))
jnp.fft.fft(jnp.ones((3, 0)))
jnp.fft.fft(jnp.array([]), 4)
jnp.fft.ifft(jnp.ones((0,)))
jnp.fft.rfft(jnp.ones((0, 4)))
jnp.fft.irfft(jnp.ones((0, 4)))
jnp.fft.fft2(jnp.ones((0, 4, 4)))
jnp.fft.fft(jnp.ones(4), 0)

# Widened borders.
jnp.pad(jnp.array([1.0, 4.0, 2.0, 8.0]), (2, 3), mode='median')
jnp.pad(jnp.array([[1.0, 4.0], [2.0, 8.0]]), 1, mode='median')
jnp.pad(jnp.array([1.0, 4.0, 2.0, 8.0]), (2, 3), mode='mean', stat_length=2)
jnp.pad(jnp.array([1, 4, 2, 8]), (2, 3), mode='mean', stat_length=2)
jnp.pad(jnp.array([1, 4, 2, 8]), (2, 3), mode='median', stat_length=(2, 3))
jnp.pad(jnp.array([[1, 4, 2], [8, 5, 7]]), 2, mode='maximum', stat_length=((1, 2), (2, 1)))
jnp.pad(jnp.array([1, 4, 2, 8]), (2, 3), mode='minimum', stat_length=99)
jnp.pad(jnp.array([1, 4, 2, 8]), (2, 3), mode='reflect', reflect_type='odd')
jnp.pad(jnp.array([1, 4, 2, 8]), (9, 11), mode='reflect', reflect_type='odd')
jnp.pad(jnp.array([1, 4, 2, 8]), (9, 11), mode='symmetric', reflect_type='odd')
jnp.pad(jnp.array([[1.0, 4.0, 2.0], [8.0, 5.0, 7.0]]), 2, mode='symmetric', reflect_type='odd')
jnp.pad(jnp.array([3]), 2, mode='symmetric', reflect_type='odd')
jnp.pad(jnp.array([1, 4, 2, 8]), (2, 3), mode='reflect', reflect_type='strange')

# Sums in another dtype, columns first, names.
jnp.matmul(jnp.full((2, 2), 100, 'int8'), jnp.full((2, 2), 100, 'int8'), preferred_element_type='int32')
jnp.dot(jnp.full(2, 100, 'int8'), jnp.full(2, 100, 'int8'), preferred_element_type=jnp.int32)
jnp.dot(jnp.int8(100), jnp.full(2, 100, 'int8'), preferred_element_type=jnp.int32)
jnp.vdot(jnp.full(2, 100, 'int8'), jnp.full(2, 100, 'int8'), preferred_element_type=jnp.int32)
jnp.inner(jnp.full(2, 100, 'int8'), jnp.full(2, 100, 'int8'), preferred_element_type=jnp.int32)
jnp.tensordot(jnp.full(2, 100, 'int8'), jnp.full(2, 100, 'int8'), 1, preferred_element_type=jnp.int32)
jnp.einsum('i,i', jnp.full(2, 100, 'int8'), jnp.full(2, 100, 'int8'), preferred_element_type=jnp.int32)
jnp.matmul(jnp.ones((2, 2), bool), jnp.ones((2, 2), bool), preferred_element_type='int32')
jnp.matmul(jnp.ones((2, 3)), jnp.ones((3, 2)), precision='highest')
jnp.arange(6).reshape(2, 3, order='F')
jnp.arange(6).reshape(3, -1, order='F')
jnp.arange(12).reshape(2, 6).reshape((3, 4), order='F')
jnp.arange(6).reshape(2, 3, order='C')
jnp.arange(6).reshape(2, 3, order='A' * 2)
nn.initializers.delta_orthogonal()(random.key(0), (3, 2, 2))[0]
nn.initializers.delta_orthogonal()(random.key(0), (3, 3, 2))

# round() without digits gives integers.
round(jnp.float32(2.5))
round(jnp.array([0.4, -1.6, 2.5]))
round(jnp.float16(2.5))
round(jnp.int8(3))
round(jnp.array([0.44, -1.66]), 1)
round(jnp.array([0.44, -1.66]), 0)
round(jnp.array([2.6, jnp.nan, jnp.inf, -1e10]))
jax.jit(lambda x: round(x))(2.5)
jax.jit(lambda x: round(x, 1))(2.55)

# A text that says a number.
jnp.float32('nan')
jnp.float32('-inf')
jnp.int32('3')
jnp.complex64('1+2j')
jnp.bool_('a')
jnp.float16(['1', '2.5'])
jnp.float32(b'1.5')
jnp.array('3', dtype='float32')
jnp.array([['1', '2'], ['3', '4']], dtype='int16')
jnp.float32('abc')

# Python's complex numbers lose no imaginary part; arrays do.
jnp.array(1j, dtype=float)
jnp.array([1j, 2], dtype='float32')
jnp.array([1j, 2], dtype='int32')
jnp.array([[1j, 2]], dtype='int8')
jnp.asarray((1j,), dtype='float16')
jnp.full(2, 1j, 'float32')
jnp.full_like(jnp.arange(3.0), 1j)
lax.full((2,), 1j, 'float32')
jnp.float32(1j)
jnp.array(1j, dtype=bool)
jnp.array(np.array([1j]), dtype='float32')
jnp.array(jnp.array([1j]), dtype='float32')
jnp.array([jnp.array(1j), 2], dtype='float32')
jnp.full(2, jnp.array(1j), 'float32')
jnp.array([1j, 2]).astype('float32')

# Lists become the dtype by themselves: nothing is rounded twice.
jnp.array([[1, 2], [3]])
jnp.array([[1, 2], [3]], dtype='float32')
jnp.array([[1, 2], 3])

# None is the default float dtype.
jnp.zeros(3, 'int8').astype(None)
jnp.astype(jnp.zeros(3, 'int8'), None)

# As many start indices as dimensions.
lax.dynamic_slice(jnp.arange(3.0), (0, 0), (1,))
lax.dynamic_slice(jnp.arange(3.0), (), (1,))
lax.dynamic_slice(jnp.arange(3.0), jnp.array([0, 0]), (1,))
lax.dynamic_update_slice(jnp.arange(3.0), jnp.arange(2.0), (0, 0))

# What is no argument is refused.
jnp.ix_(jnp.zeros((2, 2)))
jnp.ix_(jnp.array([0]), jnp.array(1))
jnp.polyfit(jnp.arange(3.0), jnp.arange(3.0), -1)
jnp.tri(3, k=1.5)
jnp.triu(jnp.ones((2, 3)), 1.5)
jnp.sort(jnp.arange(3), order='a')
jnp.arange(3).argsort(order='a')
jnp.arange(3).ravel('Q')
jnp.ravel(jnp.ones((2, 3)), 'Q')
jnp.reshape(jnp.ones((2, 3)), -1, 'K')
jnp.ones((2, 3)).flatten('Q')
jnp.isin(jnp.arange(3), jnp.arange(2), method='linear')
jnp.isin(jnp.arange(3), jnp.arange(2), method='sort')
jnp.searchsorted(jnp.arange(3), jnp.arange(2), method='linear')
jnp.searchsorted(jnp.arange(3), jnp.arange(2), method='scan_unrolled')
jnp.digitize(jnp.arange(3), jnp.arange(2), method='linear')
jnp.digitize(jnp.arange(3), jnp.arange(2), method='compare_all')
lax.scan(lambda c, x: (c, x), 0.0, jnp.arange(3.0), unroll='a')
lax.scan(lambda c, x: (c, x), 0.0, jnp.arange(3.0), unroll=-1)
lax.scan(lambda c, x: (c + 0.0, x), 0.0, jnp.arange(3.0), unroll=True)[1]
lax.fori_loop(0, 3, lambda i, c: c, 0.0, unroll='a')
f'{jnp.float32(0.5):.2f} {jnp.arange(2.0)} {jnp.float32(0.1)}' == '0.50 [0. 1.] 0.10000000149011612'
f'{jnp.arange(2.0):.2f}'
f'{jnp.arange(2.0):>10}'
jax.jit(lambda x: (f'{x[0]:.2f}', x)[1])(jnp.arange(3.0))
jax.jit(lambda x: (f'{x:>10}', x)[1])(jnp.arange(3.0))
jnp.cov(jnp.arange(3.0), fweights=jnp.arange(3.0))
jnp.histogram(jnp.arange(3.0), weights=jnp.arange(4.0))

# In floating point, and in the dtype of weights.
jnp.polyder(jnp.array([1, 2, 3]))
jnp.polyder(jnp.array([1, 2, 3], 'int8'), 0)
nn.relu6(2)
nn.relu6(jnp.array([-2, 4, 9], 'int8'))
jnp.histogram(jnp.arange(3.0).astype('float16'), weights=jnp.arange(3.0) / 3)
jnp.histogram(jnp.arange(3.0), weights=jnp.arange(3.0).astype('float16'))
jnp.histogram(jnp.arange(3.0).astype('float16'), weights=jnp.arange(3))
jnp.histogram(jnp.arange(3), weights=jnp.arange(3.0).astype('float16'))
jnp.histogram(jnp.arange(3.0).astype('float16'), bins=jnp.arange(3.0))
jnp.histogram(jnp.arange(6).reshape(2, 3), weights=jnp.arange(6.0).reshape(2, 3))
jnp.cov(jnp.arange(3.0).astype('bfloat16'), aweights=jnp.arange(3.0) + 1)
jnp.cov(jnp.arange(3.0).astype('bfloat16'), aweights=(jnp.arange(3.0) + 1).astype('float16'))

# Common elements, filled up with the smallest.
jnp.intersect1d(jnp.zeros(0, 'float16'), jnp.array([-1.446]), assume_unique=True, size=4)
jnp.intersect1d(jnp.zeros(0), jnp.array([-1.446]), size=4)
jnp.intersect1d(jnp.array([5.0, 2, 3]), jnp.array([3.0, 2, -1]), size=4)
jnp.intersect1d(jnp.array([5.0, 2, 3]), jnp.array([3.0, 2, -1]), size=1)
jnp.intersect1d(jnp.array([-5, -2, -3]), jnp.array([-3, -2, 1]), size=4)
jnp.intersect1d(jnp.array([5.0, 2, 3]), jnp.array([2.0]), size=4, fill_value=9)
jnp.intersect1d(jnp.array([5.0, 2, 3]), jnp.array([2.0]), size=4, return_indices=True)
jnp.intersect1d(jnp.array([5.0, 2, 3]), jnp.array([9.0]), size=4, return_indices=True)
jax.jit(lambda x, y: jnp.intersect1d(x, y, size=4))(jnp.array([5, 2, 3, 2]), jnp.array([2, 5]))

# Transforms over all axes, over none, and of nothing.
jnp.fft.fft(jnp.arange(6.0).reshape(2, 3), axis=None)
jnp.fft.fft(jnp.arange(6.0).reshape(2, 3), 2, axis=None)
jnp.fft.ifft(jnp.arange(3.0), axis=None)
jnp.fft.rfft(jnp.arange(6.0).reshape(2, 3), axis=None)
jnp.fft.irfft(jnp.arange(6.0).reshape(2, 3), axis=None)
jnp.fft.fftn(jnp.array(2.0))
jnp.fft.ifftn(jnp.array(2.0))
jnp.fft.rfftn(jnp.array(2.0))
jnp.fft.irfftn(jnp.array(2.0))
jnp.fft.fftn(jnp.arange(3.0), axes=())
jnp.fft.irfft(jnp.arange(1.0))
jnp.fft.irfft(jnp.zeros(0))
jnp.fft.irfft(jnp.zeros((2, 1)))
jnp.fft.irfft2(jnp.zeros((3, 1)))
jnp.fft.irfftn(jnp.zeros((0, 3)))
jnp.fft.hfft(jnp.arange(1.0))
jnp.fft.hfft(jnp.arange(4.0))
jnp.fft.ihfft(jnp.arange(4.0))
jnp.fft.fftfreq(4, dtype='float16')
jnp.fft.rfftfreq(4, 0.5, dtype='complex64')
jnp.fft.fftfreq(4, dtype='int32')

# Few elements.
jnp.bitwise_count(jnp.array([True, False]))
jnp.bitwise_count(True)
jnp.indices([])
jnp.indices((), dtype='float32')
jnp.lexsort(jnp.array([3, 1, 2]))
jnp.lexsort([1, 2], axis=0)
jnp.lexsort(())
jnp.repeat(jnp.array(2), 3, axis=-1)
jnp.repeat(jnp.array(2), jnp.array([3]), axis=0)
jnp.repeat(jnp.array(2), 3, axis=0, total_repeat_length=2)
jax.scipy.linalg.expm(jnp.zeros((0, 0)))
jax.scipy.linalg.expm(jnp.zeros((3, 0, 0)))
jax.vmap(jax.scipy.linalg.expm)(jnp.zeros((3, 0, 0)))
jax.jacrev(jax.scipy.linalg.expm)(jnp.zeros((0, 0)))
jax.jacfwd(jax.scipy.linalg.expm)(jnp.zeros((0, 0)))
jax.grad(lambda x: jax.scipy.linalg.expm(x).sum())(jnp.zeros((2, 0, 0)))

# JAX's keywords.
jnp.sum(jnp.full(3, 100, 'int8'), promote_integers=False)
jnp.sum(jnp.full(3, 100, 'int8'), promote_integers=False, where=jnp.arange(3) > 0, initial=3)
jnp.sum(jnp.full(3, 100, 'int8'), dtype='int16', promote_integers=False)
jnp.sum(jnp.arange(3) > 0, promote_integers=False)
jnp.sum(jnp.full(3, 0.5, 'float16'), promote_integers=False)
jnp.prod(jnp.full((3, 2), 100, 'uint8'), axis=0, promote_integers=False)
jnp.prod(jnp.full(3, 100, 'int8'), promote_integers=True)
jnp.std(jnp.arange(6.0).reshape(2, 3), axis=1, mean=jnp.array([[1.0], [4.0]]))
jnp.std(jnp.arange(6.0).reshape(2, 3), axis=1, mean=2)
jnp.var(jnp.arange(6.0).reshape(2, 3), mean=jnp.zeros((2, 1)))
jnp.var(jnp.arange(6.0).reshape(2, 3) * 1j, mean=1j)
jnp.var(jnp.arange(6.0).reshape(2, 3), mean=1, where=jnp.arange(3) > 0, ddof=1)
jnp.var(jnp.arange(6.0).astype('float16'), mean=jnp.float32(1))
jnp.nanvar(jnp.array([1, jnp.nan, 3]), mean=1, ddof=1)
jnp.nanvar(jnp.arange(6.0).reshape(2, 3), axis=0, mean=jnp.zeros((1, 3)), where=jnp.arange(3) > 0)
jnp.nanstd(jnp.arange(6.0).reshape(2, 3), mean=0.0)
jnp.linalg.matrix_rank(jnp.diag(jnp.array([1.0, 1e-3, 5])), tol=1e-2)
jnp.linalg.matrix_rank(jnp.diag(jnp.array([1.0, 1e-3, 5])), tol=2)
jnp.linalg.matrix_rank(jnp.diag(jnp.array([1.0, 1e-3, -5])), hermitian=True)
jnp.linalg.matrix_rank(jnp.stack([jnp.eye(3), jnp.zeros((3, 3))]), hermitian=True)
jnp.linalg.matrix_rank(jnp.stack([jnp.eye(3), 3 * jnp.eye(3)]), tol=jnp.array([2.0, 2.0]))
jnp.linalg.matrix_rank(M=jnp.eye(3), tol=2, rtol=0.1)
jnp.trim_zeros(jnp.array([0, 1, 0, 2, 0]), axis=0)
jnp.trim_zeros(jnp.array([0, 1, 0, 2, 0]), 'F')
jnp.trim_zeros(jnp.zeros((4, 5)).at[1:3, 2].set(1))
jnp.trim_zeros(jnp.zeros((4, 5)).at[1:3, 2].set(1), 'f', -1)
jnp.trim_zeros(jnp.zeros((4, 5)).at[1:3, 2].set(1), axis=(1, 0))
jnp.trim_zeros(jnp.zeros((4, 5)), axis=0)
jnp.trim_zeros(jnp.zeros((4, 5)), axis=(0, 0))
jnp.trim_zeros(jnp.array(0.0))
jnp.cov(jnp.arange(6.0).reshape(2, 3), dtype='float16')
jnp.cov(jnp.arange(6.0).reshape(2, 3).astype('bfloat16'), dtype='float32')
jnp.cov(jnp.arange(6.0).reshape(2, 3), aweights=jnp.arange(3), dtype='complex64')
jnp.cov(jnp.arange(6.0), dtype='int32')
jnp.corrcoef(jnp.arange(6.0).reshape(2, 3) ** 2, dtype='float16')
jnp.corrcoef(jnp.arange(6.0).reshape(2, 3), dtype=int)
jnp.take_along_axis(jnp.arange(3.0), jnp.array([-1, 1, 5]), 0, wrap_negative_indices=False)
jnp.take_along_axis(jnp.arange(3.0), jnp.array([-1, 1, 5]), 0, wrap_negative_indices=True)
jnp.take_along_axis(jnp.arange(3), jnp.array([-1, 1, 5]), 0, mode='clip', wrap_negative_indices=False)
jnp.take_along_axis(jnp.arange(6).reshape(2, 3), jnp.array([[-1], [1]], 'int8'), 1, fill_value=7, wrap_negative_indices=False)

# Reductions over axes in any order.
lax.reduce_max(np.arange(4, dtype='float32').reshape(2, 2), axes=(1, 0))
lax.reduce_sum(jnp.arange(24.0).reshape(2, 3, 4), axes=(2, 0))
lax.reduce_or(jnp.arange(6).reshape(2, 3) > 4, axes=(1, 0))
lax.cumsum(jnp.arange(3.0), None)

# Conditions of every form.
jnp.piecewise(jnp.arange(3.0), [True], [1, 2])
jnp.piecewise(jnp.arange(3.0), [False], [1])

# What is no size, and no number of times.
jnp.repeat(jnp.arange(3), 1.5)
jnp.repeat(jnp.arange(3), 'a')
jnp.roll(jnp.arange(3), 1.5)
jnp.roll(jnp.arange(3), 'a')
jnp.reshape(jnp.ones((2, 3)), (-2, -3))
jnp.ones((2, 3)).reshape(-2, -3)
jnp.tensordot(jnp.ones((2, 3)), jnp.ones((2, 3)), axes=(0, -2))
jnp.tensordot(jnp.ones((2, 3)), jnp.ones((2, 3)), axes=([0, 1], [0, 1]))
jnp.tensordot(jnp.ones((2, 3)), jnp.ones((2, 3)), axes=(0, 0, 0))
jnp.pad(jnp.arange(3), 1.5)
jnp.vander(jnp.ones((2, 2)))
"""

TOLERANCE = {"float16": 2e-3, "bfloat16": 2e-2, "float32": 3e-5, "complex64": 3e-5}
NAMES = {
    "jax": {"np": np, "jax": jax, "jnp": jnp, "lax": jax.lax, "random": jax.random, "nn": jax.nn},
    "weft": {"np": np, "jax": weft, "jnp": wnp, "lax": weft.lax, "random": weft.random, "nn": weft.nn},
}


def outcome(text: str, library: str):
    """The leaves of the value of an expression, or the exception it raises."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return jax.tree.leaves(eval(text, dict(NAMES[library])))
        except Exception as error:
            return error


@pytest.mark.parametrize("text", [t for t in SAME.splitlines() if t and not t.startswith("#")])
def test_same(text):
    wanted, given = outcome(text, "jax"), outcome(text, "weft")
    if isinstance(wanted, Exception):
        assert isinstance(given, (TypeError, ValueError, IndexError, OverflowError)), (
            f"JAX: {wanted!r}; Weft: {given!r}"
        )
        assert isinstance(given, TypeError) == isinstance(wanted, TypeError) or "NHXC" in text
        return
    if isinstance(given, Exception):
        raise given
    assert len(wanted) == len(given)
    for x, y in zip(map(np.asarray, wanted), map(np.asarray, given)):
        assert (x.dtype, x.shape) == (y.dtype, y.shape)
        if (tolerance := TOLERANCE.get(str(x.dtype))) is None:
            np.testing.assert_array_equal(y, x)
        else:
            wide = complex if x.dtype.kind == "c" else float
            np.testing.assert_allclose(y.astype(wide), x.astype(wide), tolerance, tolerance)


def test_numbers_of_64_bits_in_nested_lists():
    """They took the way through 32 bits, and did not fit."""
    assert wnp.array([[2**40], [3]], dtype="int64").tolist() == [[2**40], [3]]
    assert wnp.array([[0.1]], dtype="float64").tolist() == [[0.1]]


def test_numbers_of_lists_are_rounded_once():
    """In 32 bits this one lies half way between two of 16 bits."""
    assert np.asarray(wnp.array([1 + 2**-11 + 2**-30], "float16"))[0] == np.float16(1 + 2**-10)


def test_standard_deviation_beyond_the_range_of_the_variance():
    """Converted last: JAX's is infinite."""
    x = np.arange(3000).astype("float16")
    assert float(wnp.std(wnp.asarray(x))) == np.float16(np.std(x.astype(float)))


def test_product_of_booleans_does_not_wrap():
    """2^16 * 2^16 products are 0 in 32-bit integers."""
    x = wnp.ones(2**16, bool)
    assert bool(wnp.einsum("i,j,k->", x, x, wnp.ones(1, bool)))
    assert weft.jit(lambda a: a @ a)(x).dtype == bool


def test_at_refuses_shardings():
    with pytest.raises(ValueError, match="out_sharding: no mesh is given"):
        wnp.zeros(3).at[0].set(1, out_sharding=weft.PartitionSpec("x"))


def test_traced_boolean_subscript():
    with pytest.raises(TypeError, match="boolean"):
        weft.jit(lambda x, b: x[b])(wnp.zeros(3), True)


def test_memory_that_is_not_there():
    """What is too large says how large, and where."""
    key = weft.random.key(0)
    for program in (
        lambda: wnp.broadcast_to(wnp.ones(1), (2**45,)),
        lambda: wnp.pad(wnp.ones(3), (0, 2**50)),
        lambda: wnp.linspace(0, 1, 2**45),
        lambda: weft.random.normal(key, (2**45,)),
        weft.jit(lambda: wnp.ones(2**45) + weft.random.normal(key, (2**45,))),
    ):
        with pytest.raises(MemoryError, match=r"(?s)out of memory.*\d{15} bytes.*agreement_test.py"):
            program()


@pytest.mark.parametrize("shape", [(3, 2, 2), (4, 3, 2, 3), (1, 3, 3, 2, 4)])
def test_delta_orthogonal(shape):
    """Orthonormal rows at the middle place, nothing elsewhere."""
    w = np.array(weft.nn.initializers.delta_orthogonal(2.0)(weft.random.key(1), shape))
    middle = tuple((n - 1) // 2 for n in shape[:-2])
    np.testing.assert_allclose(w[middle] @ w[middle].T, 4 * np.eye(shape[-2]), atol=1e-5)
    w[middle] = 0
    assert not w.any()


def test_derivative_of_the_largest_complex_number():
    """That of the element itself, found by finite differences."""
    x = np.array([1 + 2j, 3 + 1j, 3 - 1j], "complex64")
    f = lambda v: wnp.abs(wnp.max(v)) ** 2
    np.testing.assert_allclose(np.asarray(weft.grad(f)(wnp.asarray(x))), [0, 2 * np.conj(x[1]), 0])


def test_complex_nan_is_the_largest_and_the_smallest():
    """As in NumPy; JAX's result depends on the order."""
    x = np.array([1 + 2j, complex(np.nan, 3), 0 + 9j], "complex64")
    for function in (wnp.max, wnp.min):
        np.testing.assert_array_equal(np.asarray(function(wnp.asarray(x))), np.max(x))


def test_every_function_is_pickled_by_name():
    for module in (wnp, wnp.linalg, wnp.fft, weft.lax, weft.nn, weft.random):
        for name in module.__all__:
            function = getattr(module, name)
            if callable(function) and name != "Array":
                assert pickle.loads(pickle.dumps(function)) is function, name


def test_device():
    assert wnp.ones(2).device == weft.devices()[0]
    assert wnp.ones(2).device.platform == jnp.ones(2).device.platform


def test_shapes_of_a_compiled_function():
    f = weft.jit(lambda x, n, *, name: (x, {"a": x[:n]}), static_argnums=1, static_argnames="name")
    shapes = f.eval_shape(weft.ShapeDtype((3,), "float32"), 2, name="it")
    assert (shapes[0].shape, shapes[1]["a"].shape) == ((3,), (2,))


def test_ravel_pytree():
    tree = {"w": np.ones((2, 2), "float16"), "b": [3, np.float32(2)], "none": None}
    vector, back = weft.flatten_util.ravel_pytree(tree)
    wanted, wanted_back = flatten_util.ravel_pytree(tree)
    np.testing.assert_array_equal(np.asarray(vector), np.asarray(wanted))
    assert vector.dtype == wanted.dtype
    for x, y in zip(jax.tree.leaves(wanted_back(2 * wanted)), weft.tree.leaves(back(2 * vector)), strict=True):
        np.testing.assert_array_equal(np.asarray(x), np.asarray(y))
        assert (x.dtype, x.shape) == (y.dtype, y.shape)
    gradient = weft.jit(weft.grad(lambda v: wnp.sum(back(v)["w"]).astype("float32")))(vector)
    np.testing.assert_array_equal(np.asarray(gradient), [0, 0, 1, 1, 1, 1])
    with pytest.raises(TypeError, match="6 elements"):
        back(wnp.ones(5))
    assert weft.flatten_util.ravel_pytree(())[0].shape == (0,)


def test_exceptions_of_other_names():
    with pytest.raises(weft.errors.TracerBoolConversionError):
        weft.jit(lambda x: 1 if x else 2)(1.0)
    with pytest.raises(weft.errors.ConcretizationTypeError):
        weft.jit(lambda x: wnp.zeros(int(x)))(1.0)
    with pytest.raises(weft.errors.JAXTypeError):
        weft.jit(lambda x: np.asarray(x))(1.0)
    assert all(issubclass(getattr(weft.errors, name), Exception) for name in weft.errors.__all__)
    # Of arguments JAX raises Python's own classes, of memory JaxRuntimeError; its TypePromotionError and
    # ShardingTypeError are of other modules.
    ours = {"ArgumentError", "AxisError", "OutOfMemoryError", "ShardingTypeError", "TypePromotionError"}
    assert {name for name in weft.errors.__all__ if not hasattr(jax.errors, name)} == ours


DERIVATIVES = {
    "grad": lambda library, f, x: library.value_and_grad(f)(x),
    "second": lambda library, f, x: library.grad(library.grad(f))(x),
    "jacfwd": lambda library, f, x: library.jacfwd(f)(x),
    "jacrev": lambda library, f, x: library.jacrev(f)(x),
    "hessian": lambda library, f, x: library.hessian(f)(x),
    "jvp": lambda library, f, x: library.jvp(f, (x,), (1.0,)),
    "vjp": lambda library, f, x: library.vjp(f, x)[1](1.0),
    "linearize": lambda library, f, x: library.linearize(f, x)[1](1.0),
    "jit": lambda library, f, x: library.jit(library.grad(f))(x),
    "transpose": lambda library, f, x: library.linear_transpose(lambda y: 3 * y, x)(1.0),
}


@pytest.mark.parametrize("x", [2.0, np.float32(2)], ids=["weak", "strong"])
@pytest.mark.parametrize("derivative", DERIVATIVES)
def test_weak_types_of_derivatives(derivative, x):
    """Cotangents are as weak as their arguments, tangents as the results."""
    for f in (lambda x: x * x, lambda x: x * np.float32(3), lambda x: (x * np.ones(3, "float32")).sum()):
        wanted, given = (
            [y.weak_type for y in jax.tree.leaves(DERIVATIVES[derivative](library, f, x))] for library in (jax, weft)
        )
        assert wanted == given


def test_weak_derivatives_do_not_widen():
    assert (weft.grad(lambda x: x * x)(2.0) * wnp.ones(2, "bfloat16")).dtype == "bfloat16"


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_normal_numbers(dtype):
    """Those of JAX, but for the last digits."""
    with weft.enable_x64(), jax.enable_x64(True):
        draw = jax.jit(
            lambda: jax.random.normal(jax.random.key(7), (100000,), dtype),
            compiler_options={"xla_backend_optimization_level": 3},  # as users have it: with fused products
        )
        theirs = np.asarray(draw())
        given = np.asarray(weft.random.normal(weft.random.key(7), (100000,), dtype))
    ulps = np.abs(given - theirs) / np.spacing(np.abs(theirs))
    assert ulps.max() <= (2 if dtype == "float32" else 3)


@pytest.mark.parametrize("scale", [[1e4, 1, 1, 1e-9], [1e3, 1, 1, 1e-2], [1e-8, 1e8, 1e4, 1]])
@pytest.mark.parametrize("axis", [0, 1])
def test_gradient_of_the_determinant_of_rows_of_other_sizes(scale, axis):
    """The matrix of cofactors; JAX's, by the inverse, in 64 bits."""
    b = np.array([[1, 2, 0, 1], [3, 1, 1, 0], [0, 1, 2, 1], [1, 0, 1, 3.0]])
    a = (b * np.expand_dims(scale, 1 - axis)).astype("float32")
    exact = np.linalg.det(a.astype(float)) * np.linalg.inv(a.astype(float)).T
    np.testing.assert_allclose(np.asarray(weft.grad(wnp.linalg.det)(a)), exact, rtol=2e-5)


def test_largest_of_complex_numbers_that_are_nan_in_part():
    """NumPy's; JAX's depends on the order."""
    x = np.array([complex(0, np.nan), 1 + 1j], "complex64")
    assert np.isnan(np.asarray(wnp.max(x)).imag) and np.asarray(wnp.max(x)).real == 0
    x = np.array([complex(2, np.nan), 1 + 1j], "complex64")
    assert np.isnan(np.asarray(wnp.min(x)).imag) and np.asarray(wnp.min(x)).real == 2


def test_trigamma_in_64_bits():
    mpmath = pytest.importorskip("mpmath")
    with weft.enable_x64():
        x = np.array([0.3, 2.5, 8.5, 10.01, 31.0])
        second = np.asarray(weft.vmap(weft.grad(weft.grad(weft.scipy.special.gammaln)))(x))
    np.testing.assert_allclose(second, [float(mpmath.psi(1, v)) for v in x], rtol=2e-15)
