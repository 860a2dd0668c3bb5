"""JAX's words for errors about products with scales, rows that devices exchange, numbers without a key, and the types
of axes; words.py says how to read them."""

from __future__ import annotations

WORDS: list[tuple[str, str]] = [
    (
        r"^rng_uniform: a and b must have one dtype, got (\S+) and (\S+)",
        "Arguments to rng_uniform must have identical dtypes, got {0} and {1}.",
    ),
    (
        r"^rng_uniform: a and b must be numbers, got arrays of shapes (\(.*?\)) and (\(.*?\))",
        "Arguments to rng_uniform must be scalars; got shapes {0} and {1}.",
    ),
    (
        r"^(stage|rng_uniform): \w must be an array or a number, got .* of type '(\w+)'",
        "Error interpreting argument to {0} as a JAX value. The problematic value is of type <class '{1}'>.",
    ),
    (r"^ragged_all_to_all: (\w+) must be of an integer dtype", "ragged_all_to_all {0} must be integer type."),
    (
        r"^ragged_all_to_all: (\w+) must have one dimension, of size 1 or more, got shape (\(.*?\))",
        "ragged_all_to_all {0} must be rank 1 with positive dimension size, but got shape {1}",
    ),
    (r"^scaled_dot: without dimension_numbers", "scaled_dot does not support 0-rank and 1-rank operands."),
    (
        r"^scaled_dot: operands and scales must have the same number of dimensions, got (\d+) of lhs, (\d+) of rhs",
        "All input tensors must have the same rank. Got lhs rank: {0} rhs rank: {1}",
    ),
    (
        r"^scaled_dot: dimension_numbers has (\d+) batch axes of lhs and (\d+) of rhs",
        "LHS and RHS must have the same number of batch dimensions, got {0} and {1}.",
    ),
    (
        r"^scaled_dot: dimension_numbers has (\d+) contracting axes of lhs and (\d+) of rhs",
        "LHS and RHS must have the same number of contracting dimensions, got {0} and {1}.",
    ),
    (
        r"^scaled_dot: batch dimension (\d+) of lhs has size \d+, dimension (\d+) of rhs",
        "All input tensors must have the same batch dimension size for batch dims ({0}, {1}).",
    ),
    (
        r"^scaled_dot: contracting dimension (\d+) of lhs has size (\d+), dimension (\d+) of rhs (\d+)",
        "LHS contracting dim {0} of size {1} does not match RHS contracting dim {2} of size {3}.",
    ),
    *(
        words
        for side, large in (("lhs", "LHS"), ("rhs", "RHS"))
        for words in (
            (
                rf"^scaled_dot: dimension (\d+) of {side} has size (\d+), of {side}_scale (\d+)",
                f"{large} dim {{0}} of size {{1}} does not match scale dim size {{2}}.",
            ),
            (
                rf"^scaled_dot: the size of the contracting dimension (\d+) of {side} must be .* got (\d+) and (\d+)",
                f"{large} contracting dim {{0}} of size {{1}} must be divisible by its scale's dim size {{2}}.",
            ),
            (
                rf"^scaled_dot: {side}_scale must have a scale for two elements .* contracting dimension (\d+)",
                f"The ratio of {large} contracting dim {{0}} to its scale's dim size (1) must be at least 2.",
            ),
        )
    ),
    (r"^scaled_matmul: \w+ must have three dimensions", "scaled_matmul requires all inputs to be 3-dimensional arrays"),
    (
        r"^scaled_matmul: lhs and rhs must have shapes .* got (\(.*?\)) and (\(.*?\))",
        "scaled_matmul requires inputs a and b to have matching batch (B) and contract (K) dimensions, but got shapes "
        "{0} and {1}",
    ),
    (
        r"^scaled_matmul: lhs_scales and rhs_scales must have as many blocks, got shapes (\(.*?\)) and (\(.*?\))",
        "scaled_matmul requires scales to have matching batch (B) and contract (K) dimensions, but got shapes "
        "{0} and {1}",
    ),
    (
        r"^scaled_matmul: \w+_scales must have the shape of",
        "scaled_matmul requires scales to match non-contract dimensions of inputs",
    ),
    (r"^scaled_dot_general: preferred_element_type must be", "Only support preferred_element_type in (f32, bf16, f16)"),
    (r"^get_scaled_dot_general_config: mode must be .* got '(.*?)'", "Unsupported mode: {0}"),
    (r"^scaled_dot_general: the mode of a configuration must be .* got .(.*?).(?:\n|$)", "Unrecognized mode: {0}."),
    (r"^qdwh: x must be a matrix with as many rows", "The input matrix of shape M x N must have M >= N."),
    (
        r"^qdwh: max_iterations must be",
        "The `max_iterations` argument must be statically specified to use `qdwh` within JAX transformations.",
    ),
    (r"^ManualAxisType: an axis is either varying or (\w+)", "varying and {0} cannot have common mesh axes."),
]
