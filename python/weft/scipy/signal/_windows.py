"""Windows for spectra: vectors of n numbers, the same from both ends.

Source: Harris, "On the use of windows for harmonic analysis with the discrete Fourier transform", 1978; nuttall:
Nuttall, "Some windows with very good sidelobe behavior", 1981; flattop: D'Antona and Ferrero, "Digital signal
processing for measurement systems", 2006.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ... import numpy as wnp
from ..._core.errors import value_error
from ..._weft import Array


def _cosines(n: int, factors: Sequence[float]) -> np.ndarray:
    angle = np.linspace(-np.pi, np.pi, n)
    return np.asarray(sum(a * np.cos(k * angle) for k, a in enumerate(factors)))


def _middle(n: int) -> np.ndarray:
    """The distances from the middle, below it negative."""
    return np.arange(n) - (n - 1) / 2


def _bohman(n: int) -> np.ndarray:
    x = np.abs(np.linspace(-1, 1, n))
    out = (1 - x) * np.cos(np.pi * x) + np.sin(np.pi * x) / np.pi
    out[[0, -1]] = 0
    return out


def _parzen(n: int) -> np.ndarray:
    x = np.abs(_middle(n)) / (n / 2)
    return np.where(np.abs(_middle(n)) <= (n - 1) / 4, 1 - 6 * x**2 + 6 * x**3, 2 * (1 - x) ** 3)


def _barthann(n: int) -> np.ndarray:
    x = np.abs(np.arange(n) / (n - 1) - 0.5)
    return 0.62 - 0.48 * x + 0.38 * np.cos(2 * np.pi * x)


def _tukey(n: int, alpha: float = 0.5) -> np.ndarray:
    if alpha <= 0:
        return np.ones(n)
    near = np.arange(n).clip(max=np.arange(n)[::-1])  # steps from the nearer end
    width = min(alpha, 1) * (n - 1) / 2
    return np.where(near < width, 0.5 - 0.5 * np.cos(np.pi * near / width), 1.0)


def _exponential(n: int, center: float | None = None, tau: float = 1.0) -> np.ndarray:
    return np.exp(-np.abs(np.arange(n) - ((n - 1) / 2 if center is None else center)) / tau)


_NAMED: dict[str, Callable[..., Any]] = {
    "barthann": _barthann,
    "bartlett": np.bartlett,
    "blackman": np.blackman,
    "blackmanharris": lambda n: _cosines(n, (0.35875, 0.48829, 0.14128, 0.01168)),
    "bohman": _bohman,
    "boxcar": np.ones,
    "cosine": lambda n: np.sin(np.pi * (np.arange(n) + 0.5) / n),
    "exponential": _exponential,
    "flattop": lambda n: _cosines(n, (0.21557895, 0.41663158, 0.277263158, 0.083578947, 0.006947368)),
    "gaussian": lambda n, std: np.exp(-((_middle(n) / std) ** 2) / 2),
    "general_cosine": _cosines,
    "general_gaussian": lambda n, p, sig: np.exp(-0.5 * np.abs(_middle(n) / sig) ** (2 * p)),
    "general_hamming": lambda n, alpha: _cosines(n, (alpha, 1 - alpha)),
    "hamming": np.hamming,
    "hann": np.hanning,
    "hanning": np.hanning,
    "kaiser": np.kaiser,
    "lanczos": lambda n: np.sinc(2 * np.arange(n) / (n - 1) - 1),
    "nuttall": lambda n: _cosines(n, (0.3635819, 0.4891775, 0.1365995, 0.0106411)),
    "parzen": _parzen,
    "triang": lambda n: 1 - np.abs((2 * np.arange(n) - n + 1) / (n + n % 2)),
    "tukey": _tukey,
}
_NEEDS = {"gaussian": 1, "general_cosine": 1, "general_gaussian": 2, "general_hamming": 1, "kaiser": 1}


def periodic(window: str | tuple, n: int, name: str) -> Array:
    """A window of n points by its name, or a tuple of that and its parameters; of one that is a point longer the last,
    which would be the first again, is left out."""
    kind, *parameters = (window,) if isinstance(window, str) else window
    if kind not in _NAMED:
        raise value_error(f"{name}: window must be an array or one of {', '.join(_NAMED)}, got {window!r}")
    if len(parameters) < _NEEDS.get(kind, 0):
        raise value_error(f"{name}: the window {kind!r} has parameters: give a tuple ({kind!r}, ...)")
    return wnp.asarray(_NAMED[kind](n + 1, *parameters)[:-1] if n > 1 else np.ones(n), float)
