"""Patterns of Weft's messages that JAX's message stands in the place of, whole: programs compare it, or its beginning.
Weft's own is a note of the exception, which tracebacks show. As in `words`."""

from __future__ import annotations

WHOLE: list[tuple[str, str]] = [
    (
        r"^scan: xs has (\d+) slices, expected (\d+)$",
        "scan got `length` argument of {1} which disagrees with leading axis sizes [{0}].",
    ),
    # Gradients.
    (
        r"^(?:grad|value_and_grad): .* must return one (?:complex|real floating-point) scalar, got \w+\[([\d,]+)\]",
        "Gradient only defined for scalar-output functions. Output had shape: {shape0}.",
    ),
    (
        r"^(?:grad|value_and_grad): .* must return one scalar, got (.*?); choose one of its numbers",
        "Gradient only defined for scalar-output functions. Output was {0}.",
    ),
    # Linear algebra.
    (r"^pinv: give one of rtol and rcond", "pinv: only one of rtol and rcond may be specified."),
    (r"^matrix_rank: both rtol and tol are given", "matrix_rank: only one of tol or rtol may be specified."),
    # Indices and interpolation.
    (
        r"^searchsorted: ((?:invalid argument|batch_dims=|dimension=|batch dimension sizes|dtypes of sorted_arr).*)$",
        "{0}",
    ),
    (r"^ravel_multi_index: an index is out of range", "invalid entry in coordinates array"),
    (r"^choose: an index is out of range", "invalid entry in choice array"),
    (r"^interp: xp and fp must be vectors of one length", "xp and fp must be one-dimensional arrays of equal size"),
    (
        r"^interp: the only valid string value of (\w+) is 'extrapolate', but got: (.*)$",
        "the only valid string value of `{0}` is 'extrapolate', but got: {1}",
    ),
    (r"^interp: x and xp are complex", "jnp.interp: complex x values not supported."),
    (r"^interp: period must be one number, got (.*)$", "period must be a scalar; got {0}"),
]
