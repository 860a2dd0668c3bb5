"""Convolutions, correlations and spectra under SciPy's names."""

from ._convolutions import convolve, convolve2d, correlate, correlate2d, fftconvolve
from ._spectra import csd, detrend, istft, stft, welch

__all__ = [
    "convolve",
    "convolve2d",
    "correlate",
    "correlate2d",
    "csd",
    "detrend",
    "fftconvolve",
    "istft",
    "stft",
    "welch",
]
