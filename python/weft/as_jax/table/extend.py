"""jax.extend."""

from __future__ import annotations

from ..served import Served, of, refused
from .public import PRIMITIVES

_JAXPRS = """Atom eval_jaxpr ClosedJaxpr Jaxpr JaxprEqn Literal Var DropVar jaxpr_as_fun Effect Effects no_effects
jaxprs_in_params subjaxprs new_jaxpr_eqn gensym"""

_TRACES = "transforms of Weft's are written on its IR; see docs/write_a_transform.md"

_XLA = "programs are compiled by Weft, not by XLA"

EXTEND: dict[str, Served] = {
    "jax.extend": Served(),
    "jax.extend.core": Served(
        names={
            **of("weft.as_jax.jaxprs", _JAXPRS),
            **of("weft.as_jax.check_jaxprs", "check_jaxpr"),
            **of("weft.as_jax.core", "get_opaque_trace_state valid_jaxtype concrete_or_error TraceTag"),
            **of("weft.as_jax.user_primitives", "Primitive"),
            **of("weft.as_jax.core", "find_top_trace mapped_aval unmapped_aval primal_dtype_to_tangent_dtype"),
            **refused("jax.extend.core", "take_current_trace set_current_trace", _TRACES),
            "array_types": "weft.as_jax.core:array_types",
        },
    ),
    "jax.extend.core.primitives": Served(names=PRIMITIVES),
    "jax.extend.linear_util": Served(everything_of=("weft.as_jax.linear_util",)),
    "jax.extend.backend": Served(names=of("weft.as_jax.devices", "get_backend backends clear_backends")),
    "jax.extend.ifrt_programs": Served(
        names=refused("jax.extend.ifrt_programs", "ifrt_programs make_plugin_program make_plugin_compile_options", _XLA)
    ),
    **{
        f"{start}{name}": Served(everything_of=places)
        for start, last in (("jax.extend.", "stablehlo"), ("jaxlib.", "stablehlo"), ("jax._src.lib.", "hlo"))
        for name, places in {
            "mlir": (),
            "mlir.ir": ("weft.as_jax.mlir_ir",),
            "mlir.dialects": (),
            "mlir.dialects.func": ("weft.as_jax.mlir_func",),
            f"mlir.dialects.{last}": ("weft.as_jax.mlir_stablehlo",),
        }.items()
    },
    "jax.extend.random": Served(
        names=of(
            "weft.as_jax.random_keys",
            "define_prng_impl random_seed seed_with_impl threefry_prng_impl rbg_prng_impl unsafe_rbg_prng_impl",
        )
    ),
    "jax.extend.source_info_util": Served(everything_of=("weft.as_jax.source_info_util",)),
}
