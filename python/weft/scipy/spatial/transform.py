"""Rotations of space."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ... import numpy as wnp
from ... import tree_util
from ..._core.errors import type_error, value_error
from ..._weft import Array
from ...random import normal
from ...typing import NestedLike

__all__ = ["Rotation", "Slerp"]


def _unit(v: Array) -> Array:
    return v / wnp.sqrt(wnp.sum(v * v, -1, keepdims=True))


def _times(p: Array, q: Array) -> Array:
    """The product of quaternions x, y, z, w."""
    u, a, v, b = p[..., :3], p[..., 3:], q[..., :3], q[..., 3:]
    vector = a * v + b * u + wnp.cross(u, v)
    return wnp.concatenate([vector, a * b - wnp.sum(u * v, -1, keepdims=True)], -1)


def _sinc_half(angle: Array) -> Array:
    """sin(angle / 2) / angle, of small angles by its series."""
    small = wnp.abs(angle) <= 1e-3
    safe = wnp.where(small, 1, angle)
    return wnp.where(small, 0.5 - angle * angle / 48, wnp.sin(safe / 2) / safe)


def _floating(x: NestedLike) -> Array:
    x = wnp.asarray(x)
    return x.astype(wnp.result_type(x, 1.0))


def _given(value: NestedLike, name: str, *shape: int) -> Array:
    x = _floating(value)
    if x.shape[-len(shape) :] != shape or x.ndim > len(shape) + 1:
        wanted = ", ".join(map(str, shape))
        raise value_error(f"Rotation.{name}: expected the shape ({wanted}) or (n, {wanted}), got {x.shape}")
    return x


_AXES = {"x": 0, "y": 1, "z": 2}


def _sequence(seq: str) -> tuple[list[int], bool]:
    """Numbers of axes, and whether each turns with the ones before it."""
    ok = 1 <= len(seq) <= 3 and (set(seq) <= set("xyz") or set(seq) <= set("XYZ"))
    if not ok or any(a == b for a, b in zip(seq, seq[1:])):
        raise value_error(
            f"Rotation: seq must be one to three of 'xyz' (fixed axes) or 'XYZ' (axes that turn), none twice in a row, "
            f"got {seq!r}"
        )
    return [_AXES[c] for c in seq.lower()], seq.isupper()


def _about(axis: int, angle: Array) -> Array:
    parts = [wnp.zeros_like(angle)] * 3 + [wnp.cos(angle / 2)]
    parts[axis] = wnp.sin(angle / 2)
    return wnp.stack(parts, -1)


class Rotation:
    """A rotation of space, or several: a tree whose leaf is the array of quaternions (x, y, z, w).

    Args:
        quat: array [4] or [n, 4] of quaternions of length 1.

    Source: Shuster, "A survey of attitude representations", 1993.

    Example:
        >>> quarter = weft.scipy.spatial.transform.Rotation.from_rotvec(wnp.array([0.0, 0.0, wnp.pi / 2]))
        >>> wnp.round(quarter.apply(wnp.array([1.0, 0.0, 0.0])), 3)
        Array([0., 1., 0.], dtype=float32)
    """

    quat: Any

    def __init__(self, quat: NestedLike):
        self.quat = wnp.asarray(quat)

    @classmethod
    def from_quat(cls, quat: NestedLike) -> Rotation:
        """Of quaternions of any length but 0.

        Args:
            quat: array [4] or [n, 4]: x, y, z, w.

        Returns: rotation.
        """
        return cls(_unit(_given(quat, "from_quat", 4)))

    @classmethod
    def identity(cls, num: int | None = None, dtype: Any = float) -> Rotation:
        """The rotation that turns nothing.

        Args:
            num: how many; None: one, without a dimension.
            dtype: the dtype of the quaternion; float: the default float dtype.

        Returns: rotation.
        """
        q = wnp.array([0.0, 0.0, 0.0, 1.0], dtype)
        return cls(q if num is None else wnp.tile(q, (num, 1)))

    @classmethod
    def random(cls, random_key: Array, num: int | None = None) -> Rotation:
        """Random rotations, uniform by Haar's measure.

        Args:
            random_key: the key that determines them.
            num: how many; None: one, without a dimension.

        Returns: rotation.
        """
        return cls(_unit(normal(random_key, (4,) if num is None else (num, 4))))

    @classmethod
    def from_rotvec(cls, rotvec: NestedLike, degrees: bool = False) -> Rotation:
        """Of vectors along the axis, as long as the angle.

        Args:
            rotvec: array [3] or [n, 3].
            degrees: whether angles are in degrees.

        Returns: rotation.
        """
        v = _given(rotvec, "from_rotvec", 3)
        v = v * (math.pi / 180) if degrees else v
        square = wnp.sum(v * v, -1, keepdims=True)
        zero = square == 0
        angle = wnp.where(zero, 0, wnp.sqrt(wnp.where(zero, 1, square)))
        return cls(wnp.concatenate([v * _sinc_half(angle), wnp.cos(angle / 2)], -1))

    @classmethod
    def from_mrp(cls, mrp: NestedLike) -> Rotation:
        """Of modified Rodrigues parameters: along the axis, as long as tan(angle / 4).

        Args:
            mrp: array [3] or [n, 3].

        Returns: rotation.
        """
        v = _given(mrp, "from_mrp", 3)
        square = wnp.sum(v * v, -1, keepdims=True)
        return cls(wnp.concatenate([2 * v, 1 - square], -1) / (1 + square))

    @classmethod
    def from_euler(cls, seq: str, angles: NestedLike, degrees: bool = False) -> Rotation:
        """Of angles about axes, one after the other.

        Args:
            seq: one to three axes: of "xyz", which stay, or of "XYZ", which turn.
            angles: a number or array [n] for one axis; array [axes] or [n, axes] for several.
            degrees: whether angles are in degrees.

        Returns: rotation.
        """
        axes, turning = _sequence(seq)
        a = _floating(angles)
        a = a * (math.pi / 180) if degrees else a
        if len(axes) == 1 and (a.ndim == 0 or (a.ndim == 1 and a.shape[0] != 1)):
            a = a[..., None]
        if a.ndim not in (1, 2) or a.shape[-1] != len(axes):
            raise value_error(f"Rotation.from_euler: {len(axes)} angles are needed for {seq!r}, got shape {a.shape}")
        q = _about(axes[0], a[..., 0])
        for k, axis in enumerate(axes[1:], 1):
            other = _about(axis, a[..., k])
            q = _times(q, other) if turning else _times(other, q)
        return cls(q)

    @classmethod
    def from_matrix(cls, matrix: NestedLike) -> Rotation:
        """Of orthogonal matrices with determinant 1.

        Args:
            matrix: array [3, 3] or [n, 3, 3].

        Returns: rotation.
        """
        m = _given(matrix, "from_matrix", 3, 3)
        d = wnp.diagonal(m, axis1=-2, axis2=-1)
        trace = wnp.sum(d, -1)
        # The largest of x, y, z, w is found by a root, the others by quotients.
        candidates = []
        for i in range(3):
            j, k = (i + 1) % 3, (i + 2) % 3
            parts: list[Any] = [None] * 4
            parts[i] = 1 - trace + 2 * d[..., i]
            parts[j] = m[..., j, i] + m[..., i, j]
            parts[k] = m[..., k, i] + m[..., i, k]
            parts[3] = m[..., k, j] - m[..., j, k]
            candidates.append(wnp.stack(parts, -1))
        candidates.append(
            wnp.stack(
                [
                    m[..., 2, 1] - m[..., 1, 2],
                    m[..., 0, 2] - m[..., 2, 0],
                    m[..., 1, 0] - m[..., 0, 1],
                    1 + trace,
                ],
                -1,
            )
        )
        best = wnp.argmax(wnp.concatenate([d, trace[..., None]], -1), -1)
        all_of_them = wnp.stack(candidates, -2)
        chosen = wnp.take_along_axis(all_of_them, best[..., None, None], -2)[..., 0, :]
        return cls(_unit(chosen))

    @classmethod
    def concatenate(cls, rotations: Any) -> Rotation:
        """Several rotations as one object.

        Args:
            rotations: list of rotations.

        Returns: rotation.
        """
        return cls(wnp.concatenate([wnp.atleast_2d(r.quat) for r in rotations]))

    def as_quat(self, canonical: bool = False, scalar_first: bool = False) -> Array:
        """The quaternions.

        Args:
            canonical: whether of q and -q the one is taken whose last part that is not 0 is positive.
            scalar_first: whether w stands first.

        Returns: array [4] or [n, 4]: x, y, z, w.
        """
        q = self.quat
        if canonical:
            x, y, z, w = (q[..., i] for i in range(4))
            negative = z < 0
            for v in (y, x, w):
                negative = (v < 0) | ((v == 0) & negative)
            q = wnp.where(negative[..., None], -q, q)
        return wnp.roll(q, 1, -1) if scalar_first else q

    def as_matrix(self) -> Array:
        """The orthogonal matrices.

        Returns: array [3, 3] or [n, 3, 3].
        """
        x, y, z, w = (self.quat[..., i] for i in range(4))
        rows = [
            [x * x - y * y - z * z + w * w, 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), -x * x + y * y - z * z + w * w, 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), -x * x - y * y + z * z + w * w],
        ]
        return wnp.stack([wnp.stack(row, -1) for row in rows], -2)

    def as_rotvec(self, degrees: bool = False) -> Array:
        """Vectors along the axis, as long as the angle.

        Args:
            degrees: whether angles are in degrees.

        Returns: array [3] or [n, 3].
        """
        q = wnp.where(self.quat[..., 3:] < 0, -self.quat, self.quat)
        square = wnp.sum(q[..., :3] ** 2, -1, keepdims=True)
        zero = square == 0
        sine = wnp.where(zero, 0, wnp.sqrt(wnp.where(zero, 1, square)))
        angle = 2 * wnp.arctan2(sine, q[..., 3:])
        out = q[..., :3] / _sinc_half(angle)
        return out * (180 / math.pi) if degrees else out

    def as_mrp(self) -> Array:
        """Modified Rodrigues parameters: along the axis, as long as tan(angle / 4).

        Returns: array [3] or [n, 3].
        """
        q = wnp.where(self.quat[..., 3:] < 0, -self.quat, self.quat)
        return q[..., :3] / (1 + q[..., 3:])

    def as_euler(self, seq: str, degrees: bool = False) -> Array:
        """Angles about three axes, one after the other.

        Args:
            seq: three axes, as of from_euler.
            degrees: whether angles are in degrees.

        Returns: array [3] or [n, 3]; where the first and the last axis fall together the last angle is 0 (of turning
            axes the first one's equals are joined in it).

        Source: Bernardes and Viollet, "Quaternion to Euler angles conversion", PLoS ONE, 2022.
        """
        axes, turning = _sequence(seq)
        if len(axes) != 3:
            raise value_error(f"Rotation.as_euler: three axes are needed, got {seq!r}")
        i, j, k = axes if not turning else axes[::-1]
        symmetric = i == k
        k = 3 - i - j if symmetric else k
        sign = (i - j) * (j - k) * (k - i) // 2
        q = [self.quat[..., n] for n in range(4)]
        if symmetric:
            a, b, c, d = q[3], q[i], q[j], q[k] * sign
        else:
            a, b, c, d = q[3] - q[j], q[i] + q[k] * sign, q[j] + q[3], q[k] * sign - q[i]
        second = 2 * wnp.arctan2(wnp.hypot(c, d), wnp.hypot(a, b))
        half_sum, half_difference = wnp.arctan2(b, a), wnp.arctan2(d, c)
        low, high = wnp.abs(second) <= 1e-7, wnp.abs(second - math.pi) <= 1e-7
        ends = wnp.where(low, 2 * half_sum, 2 * half_difference * (1 if turning else -1))
        first, third = half_sum - half_difference, half_sum + half_difference
        if turning:
            first, third = third, first
            edge_first, edge_third = ends, wnp.zeros_like(ends)
        else:
            edge_first, edge_third = ends, wnp.zeros_like(ends)
        first = wnp.where(low | high, edge_first, first)
        third = wnp.where(low | high, edge_third, third)
        if not symmetric:
            second = second - math.pi / 2
            if turning:
                first = first * sign
            else:
                third = third * sign
        angles = wnp.stack([first, second, third], -1)
        angles = (angles + math.pi) % (2 * math.pi) - math.pi
        return angles * (180 / math.pi) if degrees else angles

    def apply(self, vectors: NestedLike, inverse: bool = False) -> Array:
        """Turned vectors.

        Args:
            vectors: array [3] or [n, 3].
            inverse: whether they are turned back.

        Returns: array [3] or [n, 3].
        """
        v = _floating(vectors)
        m = self.as_matrix()
        return wnp.einsum("...kj,...k->...j" if inverse else "...jk,...k->...j", m, v)

    def inv(self) -> Rotation:
        """The rotation back.

        Returns: rotation.
        """
        return Rotation(self.quat * wnp.asarray([-1.0, -1.0, -1.0, 1.0], self.quat.dtype))

    def magnitude(self) -> Array:
        """The angles, in [0, pi].

        Returns: array of one number, or [n].
        """
        q = self.quat
        return 2 * wnp.arctan2(wnp.sqrt(wnp.sum(q[..., :3] ** 2, -1)), wnp.abs(q[..., 3]))

    def mean(self, weights: NestedLike | None = None) -> Rotation:
        """The rotation in the middle of several.

        Args:
            weights: array [n]; None: all the same.

        Returns: rotation.

        Source: Markley et al., "Averaging quaternions", 2007.
        """
        q = wnp.atleast_2d(self.quat)
        w = wnp.ones(q.shape[0], q.dtype) if weights is None else wnp.asarray(weights, q.dtype)
        if w.shape != q.shape[:1]:
            raise value_error(f"Rotation.mean: weights must have the shape {q.shape[:1]}, got {w.shape}")
        return Rotation(wnp.linalg.eigh((w[:, None] * q).T @ q)[1][:, -1])

    @property
    def single(self) -> bool:
        """Whether it is one rotation, without a dimension."""
        return bool(self.quat.ndim == 1)

    def __mul__(self, other: Rotation) -> Rotation:
        """First the other, then this one."""
        return Rotation(_times(*wnp.broadcast_arrays(self.quat, other.quat)))

    def __getitem__(self, index: Any) -> Rotation:
        if self.single:
            raise type_error("Rotation: a single rotation has no length and no parts")
        return Rotation(self.quat[index])

    def __len__(self) -> int:
        if self.single:
            raise type_error("Rotation: a single rotation has no length and no parts")
        return int(self.quat.shape[0])

    def __bool__(self) -> bool:
        return True


def _of_leaf(_, leaves) -> Rotation:
    out = object.__new__(Rotation)
    (out.quat,) = leaves
    return out


tree_util.register_pytree_node(Rotation, lambda r: ([r.quat], None), _of_leaf)


class Slerp:
    """Rotations between given ones, at a constant speed from one to the next.

    Args:
        times: array [n], increasing.
        rotations: n rotations, two or more.

    Source: Shoemake, "Animating rotation with quaternion curves", 1985.

    Example:
        >>> ends = weft.scipy.spatial.transform.Rotation.from_euler("z", wnp.array([0.0, 90.0]), degrees=True)
        >>> half = weft.scipy.spatial.transform.Slerp(wnp.array([0.0, 1.0]), ends)(0.5)
        >>> wnp.round(half.as_rotvec(degrees=True), 2)
        Array([ 0.,  0., 45.], dtype=float32)
    """

    def __init__(self, times: NestedLike, rotations: Rotation):
        if rotations.single or len(rotations) < 2:
            raise value_error("Slerp: two rotations or more are needed")
        self.times = _floating(times)
        if self.times.shape != (len(rotations),):
            raise value_error(f"Slerp: times must have the shape ({len(rotations)},), got {self.times.shape}")
        if isinstance(times, (list, np.ndarray)) and not np.all(np.diff(np.asarray(times)) > 0):
            raise value_error("Slerp: times must increase")
        self.rotations = rotations[:-1]
        self.rotvecs = (self.rotations.inv() * rotations[1:]).as_rotvec()

    @classmethod
    def init(cls, times: NestedLike, rotations: Rotation) -> Slerp:
        """The same as the class itself.

        Args:
            times: array [n], increasing.
            rotations: n rotations, two or more.

        Returns: Slerp.
        """
        return cls(times, rotations)

    def __call__(self, times: NestedLike) -> Rotation:
        t = _floating(times)
        index = wnp.clip(wnp.searchsorted(self.times, t, side="right") - 1, 0, self.rotvecs.shape[0] - 1)
        start = self.times[index]
        share = (t - start) / (self.times[index + 1] - start)
        return self.rotations[index] * Rotation.from_rotvec(share[..., None] * self.rotvecs[index])
