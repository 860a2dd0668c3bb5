"""Corners of jax._src that libraries import, though they are private to JAX."""

from __future__ import annotations

from ..served import Served, Value, of
from .public import PRIMITIVES, PUBLIC
from .version import VERSION, VERSION_INFO

_CORE = "weft.as_jax.core"

PRIVATE: dict[str, Served] = {
    "jax._src": Served(),
    "jax._src.core": Served(
        names={
            **of(
                _CORE, "AbstractValue Trace Tracer ShapedArray Value get_aval valid_jaxtype trace_state_clean TraceTag"
            ),
            **of(_CORE, "get_opaque_trace_state concrete_or_error is_concrete physical_aval max_dim min_dim"),
            **of(_CORE, "mapped_aval unmapped_aval primal_dtype_to_tangent_dtype"),
            **of("weft.as_jax.user_primitives", "Primitive"),
            **of("weft.as_jax.jaxprs", "jaxprs_in_params subjaxprs new_jaxpr_eqn gensym check_jaxpr"),
            **of("weft.as_jax.jaxprs", "Atom eval_jaxpr ClosedJaxpr Jaxpr JaxprEqn Literal Var jaxpr_as_fun"),
        },
    ),
    "jax._src.traceback_util": Served(
        everything_of=("weft.as_jax.traceback_util",), names=of("weft.as_jax.traceback_util", "_exclude_paths")
    ),
    "jax._src.tree_util": Served(
        everything_of=("weft.tree_util",),
        names=of("weft.as_jax.trees", "_registry default_registry broadcast_prefix"),
    ),
    "jax._src.dtypes": Served(
        everything_of=("weft.as_jax.dtypes", "weft.as_jax.dtype_rules"),
        names={
            **of("weft.numpy", "finfo iinfo result_type promote_types"),
            **of(
                "weft.as_jax.dtype_rules", "_weak_types _float8_dtypes _float4_dtypes _intn_dtypes _dtype_and_weaktype"
            ),
            **of("weft.as_jax.dtype_rules", "int1 uint1 dtype"),
            **of(
                "ml_dtypes",
                "bfloat16 int2 int4 uint2 uint4 float8_e3m4 float8_e4m3 float8_e4m3b11fnuz float8_e4m3fn "
                "float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float8_e8m0fnu float4_e2m1fn",
            ),
            "TypePromotionError": "weft.errors:TypePromotionError",
        },
    ),
    "jax._src.api_util": Served(
        names=of("weft.as_jax.api_util", "flatten_fun flatten_fun_nokwargs safe_map infer_argnums_and_argnames")
    ),
    "jax._src.api": Served(
        everything_of=("weft",),
        names={"_infer_argnums_and_argnames": "weft.as_jax.api_util:infer_argnums_and_argnames"},
    ),
    "jax._src.flatten_util": Served(everything_of=("weft.flatten_util",)),
    "jax._src.config": Served(
        names={"config": "weft.as_jax.settings:config", **of("weft.as_jax.settings", "enable_x64 debug_nans")}
    ),
    "jax._src.dispatch": Served(names=of("weft.as_jax.state", "wait_for_tokens apply_primitive")),
    "jax._src.literals": Served(names=of(_CORE, "LiteralArray TypedNdArray TypedInt TypedFloat TypedComplex")),
    "jax._src.distributed": Served(names=of("weft.as_jax.distributed", "global_state")),
    "jax._src.mesh": Served(
        names=of("weft.as_jax.meshes", "AbstractMesh AxisType get_abstract_mesh thread_resources"), everything_of=()
    ),
    "jax._src.lib": Served(names={"xla_client": "jaxlib.xla_client", "version": Value(VERSION_INFO)}),
    "jaxlib.xla_client": Served(names=of("weft.as_jax.devices", "Client Device XlaRuntimeError")),
    "jaxlib.xla_extension": Served(names=of("weft.as_jax.devices", "XlaRuntimeError")),
    "jax._src.numpy": Served(),
    "jax._src.numpy.lax_numpy": Served(everything_of=("weft.numpy",)),
    "jax._src.lax": Served(
        everything_of=("weft.lax",), names={"linalg": "jax.lax.linalg", **of("weft", "stop_gradient")}
    ),
    "jax._src.lax.lax": Served(
        everything_of=("weft.lax",), names=of("weft.as_jax.arrays", "_convert_element_type _const _delta _zeros")
    ),
    "jax._src.array": Served(
        names={"ArrayImpl": "weft:Array", **of("weft", "make_array_from_callback")}, everything_of=()
    ),
    "jax._src.numpy.util": Served(
        names=of("weft.as_jax.arrays", "promote_dtypes promote_dtypes_inexact promote_dtypes_complex check_arraylike")
    ),
    "jax._src.lax.control_flow": Served(names=of("weft", "cond fori_loop map scan switch while_loop")),
    "jax._src.random": Served(everything_of=("weft.random",)),
    "jax._src.prng": Served(),
    "jax._src.typing": Served(names=of("weft.typing", "ArrayLike DTypeLike Shape"), everything_of=()),
    "jax._src.nn": Served(),
    "jax._src.nn.functions": Served(everything_of=("weft.nn",)),
    "jax._src.nn.initializers": Served(everything_of=("weft.nn.initializers",)),
    "jax._src.scipy": Served(),
    "jax._src.scipy.special": Served(everything_of=("weft.scipy.special",)),
    "jax._src.ops": Served(),
    "jax._src.ops.scatter": Served(everything_of=("weft.ops",)),
    "jax._src.public_test_util": Served(names=of("weft.as_jax.test_util", "check_grads check_jvp check_vjp")),
    "jax._src.util": Served(
        names=of("weft.as_jax.api_util", "safe_map safe_zip unzip2 partition_list merge_lists split_list"),
        everything_of=(),
    ),
    "jax._src.version": Served(names={"__version__": Value(VERSION), "__version_info__": Value(VERSION_INFO)}),
    "jax._src.xla_bridge": Served(
        names=of(
            "weft.as_jax.devices",
            "_backends get_backend backends default_backend devices local_devices device_count process_count "
            "process_index",
        )
    ),
    "jax._src.compiler": Served(),
    "jax._src.interpreters": Served(),
    "jax._src.interpreters.pxla": Served(names={"global_result_handlers": Value({})}),
    **{
        f"jax._src.interpreters.{name}": PUBLIC[f"jax.interpreters.{name}"]
        for name in ("ad", "batching", "mlir", "partial_eval", "xla")
    },
    "jax._src.ad_util": Served(
        names={**of("weft.as_jax.rules", "Zero SymbolicZero"), "stop_gradient_p": PRIMITIVES["stop_gradient_p"]}
    ),
    "jax._src.checkify": Served(everything_of=("weft.experimental.checkify",)),
    "jax._src.state": Served(),
    "jax._src.state.types": Served(names=of("weft.as_jax.hijax", "AbstractRef")),
    "jax._src.earray": Served(names=of("weft.as_jax.hijax", "EArray")),
    "jax._src.pjit": Served(names={"jit_p": PRIMITIVES["jit_p"], **of("weft", "pjit with_sharding_constraint")}),
}
