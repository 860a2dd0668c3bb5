"""The primitives of JAX, by the names of jax.lax: `exp_p` and so on."""

from typing import Any

from .jaxprs import primitive

NAMES = """abs acos acosh add add_any after_all all_gather all_to_all and argmax argmin asin asinh atan atan2 atanh
axis_index bessel_i0e bessel_i1e bitcast_convert_type broadcast_in_dim call cbrt ceil cholesky clamp clz closed_call
complex concatenate cond conj conv_general_dilated convert_element_type copy cos cosh cumlogsumexp cummax cummin cumprod
cumsum custom_jvp_call custom_vjp_call device_put digamma div dot_general dynamic_slice dynamic_update_slice eig eigh eq
erf erf_inv erfc exp exp2 expm1 fft floor gather ge gt igamma igammac imag integer_pow iota is_finite jit le lgamma
linear_solve log log1p logistic lt lu max min mul name ne neg nextafter not or pad pjit pmax pmin population_count pow
ppermute psum qr random_bits random_fold_in random_gamma random_seed random_split random_wrap random_unwrap real reduce
reduce_and reduce_max reduce_min reduce_or reduce_precision reduce_prod reduce_sum reduce_window reduce_window_max
reduce_window_min reduce_window_sum reduce_xor rem remat reshape rev rng_bit_generator rng_uniform round rsqrt scan
scatter scatter_add scatter_max scatter_min scatter_mul select_and_gather_add select_and_scatter_add select_n
sharding_constraint shift_left shift_right_arithmetic shift_right_logical sign sin sinh slice sort split sqrt square
squeeze stop_gradient sub svd tan tanh threefry2x32 top_k transpose triangular_solve tridiagonal_solve while xor zeta
""".split()


def __getattr__(name: str) -> Any:
    if name.endswith("_p") and name[:-2] in NAMES:
        return primitive(name[:-2])
    raise AttributeError(f"JAX has no primitive {name}")
