"""The arrays that the expressions use."""

import numpy as np

_RNG = np.random.default_rng(7)


def _f32(*shape):
    return _RNG.standard_normal(shape).astype(np.float32)


A = _f32(3, 4)
B = _f32(3, 4)
T = _f32(2, 3, 4)
V = _f32(4)
S = np.array([-0.7, 0.1, 0.6, 1.9], np.float32)  # increasing
Q = np.array([0.1, 0.5, 0.85], np.float32)
P = np.abs(_f32(3, 4)) + 0.1
U = np.clip(A, -0.9, 0.9)
N = np.where(A > 0.8, np.nan, A).astype(np.float32)
Z = (A + 1j * B).astype(np.complex64)
H = _f32(4).astype(np.float16)
I = np.array([[3, -1, 2], [0, 5, -4]], np.int32)
K = np.array([2, 1, 2, 0, 7, 1, 1], np.int32)
I8 = np.array([100, -7, 27, 3], np.int8)
U8 = np.array([0, 3, 200, 255], np.uint8)
M = A > 0
M2 = np.array([[1, 1, 0, 1], [1, 1, 1, 1], [0, 1, 1, 1]], bool)
X4 = _f32(1, 2, 5, 6)
W4 = _f32(2, 2, 3, 2)
Q4 = _f32(1, 3, 2, 4)
SPD = (_f32(3, 3) * 0.3).astype(np.float32)
SPD = SPD @ SPD.T + np.diag(np.array([1.0, 1.5, 2.5], np.float32))
E = np.zeros((0, 3), np.float32)

ARRAYS = {name: value for name, value in globals().items() if isinstance(value, np.ndarray)}
