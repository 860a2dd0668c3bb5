"""The operations that both sides have, element by element and without attributes, under two names."""

__all__ = ["COMPARISONS", "ELEMENTWISE", "IDENTITIES", "REDUCTIONS", "WINDOWS"]

# Ours -> theirs. What is of `chlo` is not StableHLO itself but its extension for clients, which JAX writes, too.
ELEMENTWISE: dict[str, str] = {
    "abs": "stablehlo.abs",
    "acos": "chlo.acos",
    "acosh": "chlo.acosh",
    "add": "stablehlo.add",
    "and": "stablehlo.and",
    "asin": "chlo.asin",
    "asinh": "chlo.asinh",
    "atan": "chlo.atan",
    "atan2": "stablehlo.atan2",
    "atanh": "chlo.atanh",
    "cbrt": "stablehlo.cbrt",
    "ceil": "stablehlo.ceil",
    "clz": "stablehlo.count_leading_zeros",
    "complex": "stablehlo.complex",
    "conj": "chlo.conj",
    "cos": "stablehlo.cosine",
    "cosh": "chlo.cosh",
    "digamma": "chlo.digamma",
    "div": "stablehlo.divide",
    "erf": "chlo.erf",
    "erf_inv": "chlo.erf_inv",
    "erfc": "chlo.erfc",
    "exp": "stablehlo.exponential",
    "expm1": "stablehlo.exponential_minus_one",
    "floor": "stablehlo.floor",
    "imag": "stablehlo.imag",
    "is_finite": "stablehlo.is_finite",
    "lgamma": "chlo.lgamma",
    "log": "stablehlo.log",
    "log1p": "stablehlo.log_plus_one",
    "logistic": "stablehlo.logistic",
    "max": "stablehlo.maximum",
    "min": "stablehlo.minimum",
    "mul": "stablehlo.multiply",
    "neg": "stablehlo.negate",
    "nextafter": "chlo.next_after",
    "not": "stablehlo.not",
    "or": "stablehlo.or",
    "population_count": "stablehlo.popcnt",
    "pow": "stablehlo.power",
    "real": "stablehlo.real",
    "rem": "stablehlo.remainder",
    "rsqrt": "stablehlo.rsqrt",
    "shift_left": "stablehlo.shift_left",
    "shift_right_arithmetic": "stablehlo.shift_right_arithmetic",
    "shift_right_logical": "stablehlo.shift_right_logical",
    "sign": "stablehlo.sign",
    "sin": "stablehlo.sine",
    "sinh": "chlo.sinh",
    "sqrt": "stablehlo.sqrt",
    "square": "chlo.square",
    "sub": "stablehlo.subtract",
    "tan": "stablehlo.tan",
    "tanh": "stablehlo.tanh",
    "xor": "stablehlo.xor",
}

# Ours -> the direction of a comparison.
COMPARISONS = {"eq": "EQ", "ne": "NE", "lt": "LT", "le": "LE", "gt": "GT", "ge": "GE"}

# Ours -> what combines two elements, and what it begins with: a number, or the least or greatest of the type.
REDUCTIONS = {
    "reduce_sum": ("add", 0),
    "reduce_prod": ("mul", 1),
    "reduce_max": ("max", "least"),
    "reduce_min": ("min", "greatest"),
    "reduce_and": ("and", "ones"),
    "reduce_or": ("or", 0),
}
WINDOWS = {
    "reduce_window_sum": ("add", 0),
    "reduce_window_max": ("max", "least"),
    "reduce_window_min": ("min", "greatest"),
}

# What means something to transforms or to a mesh, and computes nothing.
IDENTITIES = {"stop_gradient", "checkpoint_name", "sharding_constraint"}
