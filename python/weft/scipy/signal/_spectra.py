"""Spectra of signals that are cut in overlapping segments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ... import numpy as wnp
from ..._core import docs as _docs
from ..._core.errors import value_error
from ..._core.tree import jax_semantics
from ..._weft import Array
from ...typing import NestedLike
from ._windows import periodic

__all__ = ["csd", "detrend", "istft", "stft", "welch"]


def _window(window: Any, nperseg: int | None, length: int, name: str) -> tuple[Array, int]:
    """The window and its length. Named ones are periodic: one more point than is taken would be the first again."""
    if isinstance(window, (str, tuple)):
        given = 256 if nperseg is None else int(nperseg)
        if given < 1:
            raise value_error(f"{name}: nperseg must be positive, got {nperseg}")
        n = min(given, length)
        return periodic(window, n, name), n
    values = wnp.asarray(window)
    if values.ndim != 1 or values.shape[0] > length or nperseg not in (None, values.shape[0]):
        raise value_error(
            f"{name}: window must be a vector of nperseg = {nperseg} elements, at most {length}, got {values.shape}"
        )
    return values, int(values.shape[0])


def detrend(
    data: NestedLike,
    axis: int = -1,
    type: str = "linear",
    bp: int | Sequence[int] | np.ndarray = 0,
    overwrite_data: None = None,
) -> Array:
    """A signal less its mean, or less the line that fits it best, piece by piece.

    Args:
        data: array.
        type: "linear" or "constant".
        bp: the places, in order, at which the next piece of its own line begins.
        overwrite_data: must be None: arrays never change.

    Returns: array of the shape of data, of a float or complex dtype.

    Raises:
        ValueError: there is no such type, a place is beyond the end, or overwrite_data is given.

    Source: least squares; Golub and Van Loan, "Matrix computations", 5.3.

    Example:
        >>> weft.scipy.signal.detrend(wnp.array([1.0, 3.0, 2.0]), type="constant")
        Array([-1.,  1.,  0.], dtype=float32)
    """
    if overwrite_data is not None:
        raise value_error("detrend: overwrite_data must be None: arrays never change")
    if type not in ("constant", "linear"):
        raise value_error(f"detrend: type must be 'linear' or 'constant', got {type!r}")
    x = wnp.asarray(data)
    x = x.astype(wnp.result_type(x, 1.0))
    if type == "constant":
        return x - wnp.mean(x, axis, keepdims=True)
    n = x.shape[axis]
    edges = sorted({0, n, *np.atleast_1d(np.asarray(bp)).tolist()})
    if edges[-1] > n or edges[0] < 0:
        raise value_error(f"detrend: places of bp must be between 0 and {n}, got {bp}")
    moved = wnp.moveaxis(x, axis, -1)
    pieces = []
    for start, end in zip(edges[:-1], edges[1:]):
        piece, m = moved[..., start:end], end - start
        # The line of the mean, and the slope by its inner product with places around their middle.
        place = np.arange(m) - (m - 1) / 2
        square = float((place**2).sum())
        line = wnp.asarray(place, wnp.real(x).dtype)
        slope = wnp.sum(piece * line, -1, keepdims=True) / (square if square else 1.0)
        pieces.append(piece - wnp.mean(piece, -1, keepdims=True) - slope * line)
    return wnp.moveaxis(wnp.concatenate(pieces, -1), -1, axis)


def _segments(x: Array, nperseg: int, step: int) -> Array:
    """[..., n] -> [..., segments, nperseg]."""
    count = (x.shape[-1] - nperseg) // step + 1
    places = np.arange(count)[:, None] * step + np.arange(nperseg)[None, :]
    return wnp.take(x, wnp.asarray(places, "int32"), axis=-1)


def _detrended(detrend_by: Any, segments: Array) -> Array:
    if not detrend_by:
        return segments
    if callable(detrend_by):
        out: Array = detrend_by(segments)
        return out
    return detrend(segments, -1, detrend_by)


def _sizes(nperseg: int, noverlap: int | None, nfft: int | None, name: str) -> tuple[int, int]:
    overlap = nperseg // 2 if noverlap is None else int(noverlap)
    if not 0 <= overlap < nperseg:
        raise value_error(f"{name}: noverlap must be between 0 and nperseg - 1 = {nperseg - 1}, got {noverlap}")
    n = nperseg if nfft is None else int(nfft)
    if n < nperseg:
        raise value_error(f"{name}: nfft must be nperseg = {nperseg} or more, got {nfft}")
    return overlap, n


def _frequencies(n: int, fs: Any, onesided: bool) -> Array:
    return (wnp.fft.rfftfreq(n) if onesided else wnp.fft.fftfreq(n)) * fs


def _transformed(segments: Array, window: Array, nfft: int, onesided: bool) -> Array:
    tapered = segments * window
    return wnp.fft.rfft(tapered, nfft) if onesided else wnp.fft.fft(tapered, nfft)


def csd(
    x: NestedLike,
    y: NestedLike | None,
    fs: Any = 1.0,
    window: Any = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: Any = "constant",
    return_onesided: bool = True,
    scaling: str = "density",
    axis: int = -1,
    average: str = "mean",
) -> tuple[Array, Array]:
    """The cross spectral density of two signals, by Welch's method.

    Args:
        x: array: the first signal.
        y: array: the second one; None: x itself.
        fs: samples in a unit of time.
        window: its name, "hann", "hamming", "blackman", "bartlett", "boxcar", ..., a tuple of a name and parameters,
            ("kaiser", beta), ("tukey", alpha), ("gaussian", std), ..., or a vector.
        nperseg: the length of segments; None: that of the window, or of the whole signal; never more than that.
        noverlap: by how much segments overlap; None: half.
        nfft: the length of Fourier transforms; None: that of segments.
        detrend: "constant", "linear", False, or a function of segments.
        return_onesided: whether real signals give frequencies >= 0 alone.
        scaling: "density": by frequency; "spectrum": the squared amplitude.
        average: "mean" or "median" over segments.

    Returns: pair (frequencies, density).

    Raises:
        ValueError: an argument is none of these.

    Source: Welch, "The use of the fast Fourier transform for the estimation of power spectra", 1967.

    Example:
        >>> weft.scipy.signal.csd(wnp.ones(8), wnp.ones(8), nperseg=4, detrend=False)[1].shape
        (3,)
    """
    same = y is None
    a = wnp.asarray(x)
    b = a if y is None else wnp.asarray(y)
    dtype = wnp.result_type(a, b, 1.0)
    a, b = wnp.moveaxis(a.astype(dtype), axis, -1), wnp.moveaxis(b.astype(dtype), axis, -1)
    n = max(a.shape[-1], b.shape[-1])
    a, b = (wnp.pad(v, [(0, 0)] * (v.ndim - 1) + [(0, n - v.shape[-1])]) for v in (a, b))
    values, length = _window(window, n if nperseg is None and isinstance(window, (str, tuple)) else nperseg, n, "csd")
    real = not wnp.issubdtype(dtype, wnp.complexfloating)
    onesided = return_onesided and real
    values = values.astype(wnp.real(a).dtype)
    overlap, size = _sizes(length, noverlap, nfft, "csd")
    if scaling not in ("density", "spectrum"):
        raise value_error(f"csd: scaling must be 'density' or 'spectrum', got {scaling!r}")
    if average not in ("mean", "median"):
        raise value_error(f"csd: average must be 'mean' or 'median', got {average!r}")
    step = length - overlap
    spectra = [_transformed(_detrended(detrend, _segments(v, length, step)), values, size, onesided) for v in (a, b)]
    power = wnp.conj(spectra[0]) * spectra[1]
    scale = 1 / (fs * wnp.sum(values * values)) if scaling == "density" else 1 / wnp.sum(values) ** 2
    power = power * scale
    if onesided:  # what is beside each frequency > 0 counts with it, but that of half of fs is alone
        twice = np.ones(power.shape[-1])
        twice[1 : None if size % 2 else -1] = 2
        power = power * wnp.asarray(twice, values.dtype)
    power = wnp.moveaxis(power, -2, -1)
    if average == "mean":
        out = wnp.mean(power, -1)
    else:
        count = power.shape[-1]
        places = np.arange(1, (count - 1) // 2 + 1) * 2.0
        bias = 1 + float(np.sum(1 / (places + 1) - 1 / places))
        out = (wnp.median(wnp.real(power), -1) + 1j * wnp.median(wnp.imag(power), -1)) / bias
    if same:
        out = wnp.real(out)
    return _frequencies(size, fs, onesided), wnp.moveaxis(out, -1, axis)


def welch(
    x: NestedLike,
    fs: Any = 1.0,
    window: Any = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: Any = "constant",
    return_onesided: bool = True,
    scaling: str = "density",
    axis: int = -1,
    average: str = "mean",
) -> tuple[Array, Array]:
    """The power spectral density of a signal, by Welch's method: csd of the signal and itself.

    Args:
        x: array: the signal.
        fs: samples in a unit of time.
        window: as of csd.
        nperseg: as of csd.
        noverlap: as of csd.
        nfft: as of csd.
        detrend: as of csd.
        return_onesided: as of csd.
        scaling: as of csd.
        average: as of csd.

    Returns: pair (frequencies, density).

    Raises:
        ValueError: an argument is none of these.

    Source: Welch, "The use of the fast Fourier transform for the estimation of power spectra", 1967.

    Example:
        >>> weft.scipy.signal.welch(wnp.arange(8.0), nperseg=4)[1].shape
        (3,)
    """
    return csd(x, None, fs, window, nperseg, noverlap, nfft, detrend, return_onesided, scaling, axis, average)


def stft(
    x: NestedLike,
    fs: Any = 1.0,
    window: Any = "hann",
    nperseg: int = 256,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: Any = False,
    return_onesided: bool = True,
    boundary: str | None = "zeros",
    padded: bool = True,
    axis: int = -1,
) -> tuple[Array, Array, Array]:
    """The Fourier transforms of segments of a signal.

    Args:
        x: array: the signal.
        fs: samples in a unit of time.
        window: as of csd.
        nperseg: as of csd.
        noverlap: as of csd.
        nfft: as of csd.
        detrend: as of csd.
        return_onesided: as of csd.
        boundary: what half a segment at both ends is filled with: "zeros", "even", "odd", "constant"; None: nothing.
        padded: whether zeros complete the last segment.

    Returns: triple (frequencies, times, transforms), with frequencies in place of the axis and times last.

    Raises:
        ValueError: an argument is none of these.

    Source: Oppenheim and Schafer, "Discrete-time signal processing", 10.3.

    Example:
        >>> weft.scipy.signal.stft(wnp.arange(8.0), nperseg=4)[2].shape
        (3, 5)
    """
    a = wnp.asarray(x)
    a = wnp.moveaxis(a.astype(wnp.result_type(a, 1.0)), axis, -1)
    values, length = _window(window, nperseg, a.shape[-1], "stft")
    onesided = return_onesided and not wnp.issubdtype(a.dtype, wnp.complexfloating)
    values = values.astype(wnp.real(a).dtype)
    overlap, size = _sizes(length, noverlap, nfft, "stft")
    step = length - overlap
    half = length // 2
    before = [(0, 0)] * (a.ndim - 1)
    modes = {"zeros": "constant", "even": "reflect", "constant": "edge"}
    if boundary == "odd":
        ends = a[..., :1], a[..., -1:]
        left, right = a[..., half:0:-1], a[..., -2 : -half - 2 : -1]
        a = wnp.concatenate([2 * ends[0] - left, a, 2 * ends[1] - right], -1)
    elif boundary is not None:
        if boundary not in modes:
            raise value_error(f"stft: boundary must be 'zeros', 'even', 'odd', 'constant' or None, got {boundary!r}")
        a = wnp.pad(a, [*before, (half, half)], modes[boundary])
    if padded:
        a = wnp.pad(a, [*before, (0, -(a.shape[-1] - length) % step)])
    out = _transformed(_detrended(detrend, _segments(a, length, step)), values, size, onesided) / wnp.sum(values)
    times = wnp.asarray(np.arange(length / 2, a.shape[-1] - length / 2 + 1, step), float) / fs
    if boundary is not None:
        times = times - (length / 2) / fs
    out = wnp.swapaxes(out, -1, -2)
    return _frequencies(size, fs, onesided), times, wnp.moveaxis(out, -2, axis if axis >= 0 else axis - 1)


def istft(
    Zxx: NestedLike,
    fs: Any = 1.0,
    window: Any = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    input_onesided: bool = True,
    boundary: bool = True,
    time_axis: int = -1,
    freq_axis: int = -2,
) -> tuple[Array, Array]:
    """The signal whose segments have given Fourier transforms: the inverse of stft.

    Args:
        Zxx: array of transforms.
        fs: samples in a unit of time.
        window: as of stft.
        nperseg: as of stft; None: from the number of frequencies.
        noverlap: as of stft.
        nfft: as of stft.
        input_onesided: whether frequencies < 0 are left out.
        boundary: whether half a segment at both ends is cut off.
        time_axis: the axis of segments.
        freq_axis: the axis of frequencies.

    Returns: pair (times, signal).

    Raises:
        ValueError: an argument is none of these.

    Source: Griffin and Lim, "Signal estimation from modified short-time Fourier transform", 1984.

    Example:
        >>> transforms = weft.scipy.signal.stft(wnp.arange(8.0), nperseg=4)[2]
        >>> wnp.round(weft.scipy.signal.istft(transforms, nperseg=4)[1], 3)
        Array([0., 1., 2., 3., 4., 5., 6., 7.], dtype=float32)
    """
    z = wnp.asarray(Zxx)
    if z.ndim < 2 or time_axis % max(z.ndim, 1) == freq_axis % max(z.ndim, 1):
        raise value_error("istft: Zxx must have two dimensions or more, and time_axis and freq_axis must differ")
    place = time_axis % z.ndim, freq_axis % z.ndim
    z = wnp.moveaxis(z, place, (-2, -1))  # [..., segments, frequencies]
    size = 2 * (z.shape[-1] - 1) if input_onesided else z.shape[-1]
    length = size if nperseg is None else int(nperseg)
    size = (size + 1 if input_onesided and length == size + 1 else size) if nfft is None else int(nfft)
    values, _ = _window(window, None if not isinstance(window, (str, tuple)) else length, length, "istft")
    if values.shape[0] != length:
        raise value_error(f"istft: window must have nperseg = {length} elements, got {values.shape[0]}")
    overlap, size = _sizes(length, noverlap, size, "istft")
    step = length - overlap
    pieces = wnp.fft.irfft(z, size) if input_onesided else wnp.fft.ifft(z, size)
    pieces = pieces[..., :length]
    values = values.astype(wnp.real(pieces).dtype)
    pieces = pieces * values * wnp.sum(values)
    count = z.shape[-2]
    total = length + (count - 1) * step
    places = np.arange(count)[:, None] * step + np.arange(length)[None, :]
    targets = wnp.asarray(places.reshape(-1), "int32")
    flat = pieces.reshape((*pieces.shape[:-2], count * length))
    signal = wnp.zeros((*flat.shape[:-1], total), flat.dtype).at[..., targets].add(flat)
    norm = wnp.zeros(total, values.dtype).at[targets].add(wnp.tile(values * values, count))
    if boundary:
        half = length // 2
        signal, norm = signal[..., half : total - half], norm[half : total - half]
    signal = signal / wnp.where(norm > 1e-10, norm, 1)
    # The axis of time stays where it was, without that of frequencies.
    kept = place[0] - (place[1] < place[0])
    signal = wnp.moveaxis(signal, -1, kept)
    # SciPy and JAX count along the first axis, whatever it is.
    return wnp.arange(signal.shape[0 if jax_semantics() else kept]) / fs, signal


_docs.complete(globals(), {})
