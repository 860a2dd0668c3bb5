"""Corners of jax._src that libraries import, though they are private to JAX."""

from __future__ import annotations

from ..served import Served, Value, of, refused
from ..settings import NAMES
from .public import PRIMITIVES, PUBLIC, TREES
from .version import VERSION, VERSION_INFO

_CORE = "weft.as_jax.core"
_KEYS = "weft.as_jax.random_keys"
_NUMPY = "weft.as_jax.numpy_internals"
_SETTINGS = "weft.as_jax.settings"
_INTERNALS = "weft.as_jax.internals"
_XLA = "programs are compiled by Weft, not by XLA"
_TRACES = "transforms of Weft's are written on its IR; see docs/write_a_transform.md"

_OF_HIJAX = """AbstractRef AbstractValue AvalMutableQDD AvalQDD HiPspec HiType MappingSpec
MutableArray MutableHiType Ref TransformedRef Ty Zero aval_method aval_property box_effect
instantiate_zeros is_undefined_primal register_hitype"""
HIJAX = {
    **of("weft.as_jax.hijax", _OF_HIJAX),
    **of("weft.as_jax.boxes", "Box box_get box_set new_box"),
    **of("weft.as_jax.logs", "Log"),
    **of("weft.as_jax.hi_primitives", "HiPrimitive VJPHiPrimitive custom_vjp3 Static"),
    **of("weft.as_jax.core", "ShapedArray"),
}
_OF_KEYS = """PRNGKeyArray PRNGImpl KeyTy prngs random_seed random_wrap random_unwrap random_bits random_split
threefry_prng_impl rbg_prng_impl unsafe_rbg_prng_impl threefry_random_bits threefry_seed
threefry_split threefry_fold_in random_bits_p random_clone_p random_fold_in_p random_gamma_p
random_seed_p random_split_p random_wrap_p random_unwrap_p"""

PRIVATE: dict[str, Served] = {
    "jax._src": Served(),
    "jax._src.core": Served(
        names={
            **of(_CORE, "AbstractValue AxisEnv Trace Tracer ShapedArray Value get_aval get_axis_env valid_jaxtype"),
            **of(_CORE, "trace_state_clean TraceTag"),
            **of(_CORE, "get_opaque_trace_state concrete_or_error is_concrete max_dim min_dim reduced_vary_cast"),
            **of(
                _CORE,
                "aval_mapping_handlers mapped_aval unmapped_aval primal_dtype_to_tangent_dtype typeof eval_context "
                "ParamDict",
            ),
            **of(_CORE, "pytype_aval_mappings ensure_compile_time_eval find_top_trace"),
            **of("weft.as_jax.extended_dtypes", "physical_aval"),
            **of(_INTERNALS, "ShardingTypeError AxisName"),
            **of("weft.as_jax.jaxprs", "JaxprTypeError Effect Effects no_effects"),
            **of(_INTERNALS, "InconclusiveDimensionOperation is_constant_dim is_symbolic_dim is_constant_shape"),
            **of(_INTERNALS, "definitely_equal"),
            "reset_trace_state": f"{_CORE}:trace_state_clean",
            **of("weft.as_jax.api_util", "shaped_abstractify"),
            **of("weft.as_jax.object_refs", "new_ref freeze empty_ref"),
            "ManualAxisType": "weft._core.shapes:ManualAxisType",
            "modify_spec_for_auto_manual": "weft._sharding.shardings:spec_of_types",
            **of("weft.errors", "ConcretizationTypeError UnexpectedTracerError TracerArrayConversionError"),
            **of("weft.errors", "TracerIntegerConversionError TracerBoolConversionError"),
            **of("weft.as_jax.user_primitives", "Primitive"),
            **of("weft.as_jax.jaxprs", "jaxprs_in_params subjaxprs new_jaxpr_eqn gensym DropVar"),
            **of("weft.as_jax.check_jaxprs", "check_jaxpr"),
            **of("weft.as_jax.hijax", "AbstractRef"),
            **of("weft.as_jax.boxes", "cur_qdd"),
            **of("weft.as_jax.meshes", "get_abstract_mesh"),
            **of(_INTERNALS, "call_p closed_call_p call"),
            **of("weft.as_jax.core", "MemorySpace"),
            **of("weft.as_jax.effects", "Token"),
            **of("weft.as_jax.jaxpr_text", "JaxprPpContext JaxprPpSettings pp_kv_pair"),
            **refused("jax._src.core", "take_current_trace set_current_trace", _TRACES),
            **of("weft.as_jax.jaxprs", "Atom eval_jaxpr ClosedJaxpr Jaxpr JaxprEqn Literal Var jaxpr_as_fun"),
        },
    ),
    "jax._src.traceback_util": Served(
        everything_of=("weft.as_jax.traceback_util",), names=of("weft.as_jax.traceback_util", "_exclude_paths")
    ),
    "jax._src.tree_util": Served(
        everything_of=("weft.tree_util",),
        names={
            **of(
                "weft.as_jax.trees",
                "_registry default_registry none_leaf_registry dispatch_registry broadcast_prefix "
                "broadcast_flattened_prefix_with_treedef prefix_errors static treedef_is_strict_leaf",
            ),
            **TREES,
        },
    ),
    "jax._src.dtypes": Served(
        everything_of=("weft.as_jax.dtypes", "weft.as_jax.dtype_rules"),
        names={
            **of("weft.numpy", "finfo iinfo can_cast"),
            **of("weft.as_jax.dtype_rules", "_jax_types _jax_type isdtype promote_types result_type"),
            **of(
                "weft.as_jax.dtype_rules", "_weak_types _float8_dtypes _float4_dtypes _intn_dtypes _dtype_and_weaktype"
            ),
            **of(
                "ml_dtypes",
                "bfloat16 int2 int4 uint2 uint4 float8_e3m4 float8_e4m3 float8_e4m3b11fnuz float8_e4m3fn "
                "float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float8_e8m0fnu float4_e2m1fn float6_e2m3fn float6_e3m2fn",
            ),
            "TypePromotionError": "weft.errors:TypePromotionError",
        },
    ),
    "jax._src.api_util": Served(
        names=of(
            "weft.as_jax.api_util",
            "flatten_fun flatten_fun_nokwargs safe_map infer_argnums_and_argnames argnums_partial debug_info "
            "resolve_argnums resolve_kwargs donation_vector rebase_donate_argnums shaped_abstractify _ensure_index "
            "_ensure_index_tuple",
        )
        | of("weft.as_jax.trees", "flatten_axes flatten_axis_resources")
    ),
    "jax._src.api": Served(
        everything_of=("weft",),
        names={
            "_infer_argnums_and_argnames": "weft.as_jax.api_util:infer_argnums_and_argnames",
            **of(
                "weft.as_jax.transforms",
                "jit make_jaxpr eval_shape fwd_and_bwd linear_transpose linearize device_put_replicated "
                "device_put_sharded _std_basis",
            ),
            **of("weft.as_jax.state", "clear_backends"),
            **of("weft.pullbacks", "GradRef GradValue DontWant DidntWant NotNeeded"),
            **of("weft.as_jax.devices", "device_put copy_to_host_async"),
        },
    ),
    "jax._src.flatten_util": Served(everything_of=("weft.flatten_util",)),
    "jax._src.config": Served(
        names={
            **of(_SETTINGS, " ".join(NAMES)),
            **of(_SETTINGS, "config parse_flags_with_absl config_with_absl update _read FLAGS check_tracer_leaks"),
            **of(_SETTINGS, "jax_export_calling_convention_version"),
            **of(_SETTINGS, "bool_state int_state float_state string_state enum_state optional_string_state"),
            **of(_SETTINGS, "string_or_object_state optional_enum_state bool_flag int_flag float_flag string_flag"),
            **of(_SETTINGS, "enum_flag EffortLevel ExplicitX64Mode"),
            "abstract_mesh_context_manager": "weft.as_jax.meshes:ContextOfMesh",
            "device_context": "weft.as_jax.meshes:ContextOfDevices",
        }
    ),
    "jax._src.dispatch": Served(
        names={
            **of("weft.as_jax.state", "wait_for_tokens apply_primitive simple_impl"),
            "xla_primitive_callable": "weft.as_jax.state:EmptyCache",
            **of("weft.as_jax.effects", "runtime_tokens"),
        }
    ),
    "jax._src.array": Served(
        names={
            "ArrayImpl": "weft:Array",
            **of("weft", "Array make_array_from_single_device_arrays"),
            **of("weft.as_jax.devices", "make_array_from_callback"),
            **of("weft", "make_array_from_process_local_data"),
        }
    ),
    "jax._src.basearray": Served(names=of("weft", "Array")),
    "jax._src.sharding": Served(
        names={**of("weft", "Sharding"), **of(_INTERNALS, "IndivisibleError common_devices_indices_map")}
    ),
    "jax._src.sharding_impls": Served(
        names={
            **of("weft", "NamedSharding SingleDeviceSharding PartitionSpec"),
            **of("weft.as_jax.meshes", "make_mesh set_mesh use_mesh PositionalSharding AbstractMesh"),
            **of(_INTERNALS, "make_single_device_sharding UNSPECIFIED UnspecifiedValue AUTO"),
            **of("weft.as_jax.hlo_shardings", "GSPMDSharding parse_flatten_op_sharding"),
            **of("weft.as_jax.hlo_shardings", "named_sharding_to_xla_hlo_sharding array_mapping_to_axis_resources"),
            **of(_INTERNALS, "hashed_index local_to_global_shape"),
            **refused(
                "jax._src.sharding_impls",
                "physical_hlo_sharding",
                _XLA,
            ),
        }
    ),
    "jax._src.named_sharding": Served(
        names={**of("weft", "NamedSharding PartitionSpec"), **of(_INTERNALS, "DuplicateSpecError UNSPECIFIED AUTO")}
    ),
    "jax._src.partition_spec": Served(names=of("weft", "PartitionSpec")),
    "jax._src.mesh_utils": Served(
        names={
            **of("weft.as_jax.tori", "create_device_mesh create_hybrid_device_mesh"),
            "_TPU_V4": "weft.as_jax.tori:TPU_V4",
            "_TPU_7X": "weft.as_jax.tori:TPU_7X",
            "_TPU_7": "weft.as_jax.tori:TPU_7",
            "_TRANSPOSE_TRICKS": "weft.as_jax.tori:CONTIGUOUS",
            "_get_physical_tpu_mesh": "weft.as_jax.tori:torus_of",
            "_create_device_mesh_for_nd_torus": "weft.as_jax.tori:on_torus",
            "_create_device_mesh_for_nd_torus_splitting_axes": "weft.as_jax.tori:on_split_dimensions",
            "_get_prime_factors": "weft.as_jax.tori:prime_factors",
            "_enumerate_feasible_logical_axis_assignments": "weft.as_jax.tori:shares_of_axes",
            "_prefer_first_logical_axis_assignment": "weft.as_jax.tori:is_better_share",
            "_generate_logical_mesh": "weft.as_jax.tori:by_shares",
        }
    ),
    "jax._src.op_shardings": Served(
        names={
            **of("weft.as_jax.hlo_shardings", "are_hlo_shardings_equal is_hlo_sharding_replicated"),
            **of("weft.as_jax.hlo_shardings", "get_num_ways_dim_sharded"),
        }
    ),
    "jax._src.layout": Served(names=of("weft.as_jax.layouts", "Format Layout AutoLayout")),
    "jax._src.shard_map": Served(
        names={
            **of("weft.as_jax.meshes", "shard_map"),
            **of("weft.as_jax.meshes", "smap"),
            **of("weft.as_jax.meshes", "top_level_all_gather"),
        }
    ),
    "jax._src.pmap": Served(
        names={**of("weft", "pmap"), **of("weft.as_jax.meshes", "host_local_array_to_global_array")}
    ),
    "jax._src.linear_util": Served(everything_of=("weft.as_jax.linear_util",)),
    "jax._src.custom_derivatives": Served(
        everything_of=("weft.custom_derivatives",),
        names={**PUBLIC["jax.custom_derivatives"].names, **of("weft.as_jax.rules", "_maybe_perturbed")},
    ),
    "jax._src.custom_batching": Served(everything_of=("weft.custom_batching",)),
    "jax._src.ad_checkpoint": Served(
        everything_of=("weft.ad_checkpoint",),
        names={
            **PUBLIC["jax.ad_checkpoint"].names,
            **{
                name: f"weft.ad_checkpoint:checkpoint_policies.{name}"
                for name in ("everything_saveable", "nothing_saveable", "dots_saveable")
            },
            **refused("jax._src.ad_checkpoint", "custom_remat", _TRACES),
        },
    ),
    "jax._src.debugger": Served(names=of("weft.debug", "breakpoint")),
    "jax._src.debugging": Served(
        everything_of=("weft.debug",),
        names={
            **of("weft.as_jax.debugging", "debug_print debug_callback debug_log debug_print_p debug_callback_p"),
            **of("weft.as_jax.effects", "DebugEffect debug_effect"),
            **of("weft.as_jax.pictures", "visualize_array_sharding visualize_sharding"),
        },
    ),
    "jax._src.callback": Served(
        names={
            **of("weft.as_jax.callbacks", "pure_callback io_callback"),
            **of("weft.as_jax.effects", "IOEffect"),
            **of("weft.as_jax.mlir", "emit_python_callback"),
        }
    ),
    "jax._src.effects": Served(
        names=of(
            "weft.as_jax.effects",
            "Effect Effects JaxprInputEffect EffectTypeSet no_effects lowerable_effects ordered_effects "
            "shardable_ordered_effects control_flow_allowed_effects custom_derivatives_allowed_effects "
            "remat_allowed_effects partial_eval_kept_effects",
        )
    ),
    "jax._src.errors": Served(everything_of=("weft.errors",)),
    "jax._src.dlpack": Served(names={**PUBLIC["jax.dlpack"].names, **of("weft.as_jax.arrays", "SUPPORTED_DTYPES_SET")}),
    "jax._src.deprecations": Served(everything_of=("weft.as_jax.deprecations",)),
    "jax._src.monitoring": Served(everything_of=("weft.as_jax.monitoring",)),
    "jax._src.source_info_util": Served(everything_of=("weft.as_jax.source_info_util",)),
    "jax._src.stages": Served(names=PUBLIC["jax.stages"].names),
    "jax._src.compilation_cache": Served(
        names=of("weft.as_jax.state", "set_cache_dir reset_cache is_persistent_cache_enabled")
    ),
    "jax._src.jaxpr_util": Served(everything_of=("weft.as_jax.jaxpr_util",)),
    "jax._src.compute_on": Served(names=of("weft.as_jax.hints", "compute_on compute_on2")),
    "jax._src.xla_metadata": Served(names=of("weft.as_jax.hints", "set_xla_metadata")),
    "jax._src.lax.utils": Served(names=of(_NUMPY, "int_dtype_for_dim int_dtype_for_shape")),
    "jax._src.lax.eval_jaxpr": Served(names=of(_INTERNALS, "eval_jaxpr_p")),
    "jax._src.pretty_printer": Served(),
    "jax._src.error_check": Served(
        names=of(
            "weft.as_jax.error_check",
            "JaxValueError set_error_if raise_if_error error_checking_context wrap_for_export unwrap_from_import "
            "_ErrorClass",
        )
    ),
    "jax._src.abstract_arrays": Served(names={"array_types": f"{_CORE}:array_types", **of(_CORE, "ShapedArray")}),
    "jax._src.literals": Served(
        names=of("weft.as_jax.literals", "LiteralArray TypedNdArray TypedInt TypedFloat TypedComplex")
    ),
    "jax._src.distributed": Served(names=of("weft.as_jax.distributed", "global_state")),
    "jax._src.mesh": Served(
        names={
            **of(
                "weft.as_jax.meshes",
                "AbstractMesh AxisType EMPTY_ENV get_abstract_mesh thread_resources use_abstract_mesh",
            ),
            **of("weft", "Mesh"),
            **of(_INTERNALS, "empty_concrete_mesh empty_abstract_mesh"),
        }
    ),
    "jax._src.lib": Served(
        names={
            "xla_client": "jaxlib.xla_client",
            "version": Value(VERSION_INFO),
            "version_str": Value(VERSION),
            "jaxlib_extension_version": Value(1000),
            "cuda_versions": Value(None),
        }
    ),
    "jax._src.indexing": Served(names=of("weft.as_jax.arrays", "Slice ds") | {"dslice": "weft.as_jax.arrays:ds"}),
    "jax._src.lib._jax": Served(
        names={
            **of(_INTERNALS, "is_optimized_build"),
            **of("weft.as_jax.arrays", "dlpack_managed_tensor_to_buffer"),
        }
    ),
    "jaxlib.xla_client": Served(
        names={
            **of("weft.as_jax.devices", "Client Device XlaRuntimeError"),
            **of("weft.as_jax.devices", "batched_device_put"),
            **of("weft.as_jax.hlo_shardings", "GSPMDSharding HloSharding OpSharding"),
        }
    ),
    "jaxlib._jax": Served(
        names={
            "PjitFunction": "weft._weft:JitFunction",
            "ArrayImpl": "weft:Array",
            "JaxRuntimeError": "weft.as_jax.devices:XlaRuntimeError",
            **of("weft.as_jax.devices", "Client Device"),
            **of(_INTERNALS, "is_optimized_build"),
        }
    ),
    "jax._src.numpy": Served(),
    "jax._src.numpy.hijax": Served(names=of(_NUMPY, "searchsorted nonzero")),
    "jax._src.numpy.indexing": Served(
        everything_of=("weft.numpy",), names=of(_NUMPY, "rewriting_take IndexingStrategy")
    ),
    "jax._src.tpu": Served(),
    "jax._src.tpu.linalg": Served(),
    "jax._src.numpy.fft": Served(
        everything_of=("weft.numpy.fft",), names={"_fft_norm": "weft.as_jax.numpy_internals:fft_norm"}
    ),
    "jax._src.tpu.linalg.eigh": Served(names=of(_NUMPY, "eigh")),
    "jax._src.cudnn": Served(),
    "jax._src.cudnn.scaled_matmul_stablehlo": Served(names=of("weft.nn", "BlockScaleConfig")),
    "jax._src.tpu.linalg.qdwh": Served(names=of("weft.lax.linalg", "qdwh")),
    "jax._src.tpu.linalg.svd": Served(names=of(_NUMPY, "svd")),
    "jax._src.numpy.error": Served(
        names=of(
            "weft.as_jax.numpy_errors",
            "_set_error_if_nan _set_error_if_divide_by_zero _set_error_if_with_category error_checking_behavior",
        )
    ),
    "jax._src.numpy.lax_numpy": Served(everything_of=("weft.numpy",)),
    "jax._src.lax": Served(
        everything_of=("weft.lax",), names={"linalg": "jax.lax.linalg", **of("weft", "stop_gradient"), **PRIMITIVES}
    ),
    "jax._src.lax.lax": Served(
        everything_of=("weft.lax",),
        names={
            **PRIMITIVES,
            **of("weft.as_jax.arrays", "_convert_element_type _const _delta _zeros"),
            **of("weft.numpy", "asarray"),
            **of("weft.as_jax.literals", "stage"),
            **of("weft.as_jax.lists", "remaining"),
        },
    ),
    "jax._src.numpy.util": Served(
        names=of("weft.as_jax.arrays", "promote_dtypes promote_dtypes_inexact promote_dtypes_complex check_arraylike")
    ),
    "jax._src.lax.linalg": Served(everything_of=("weft.lax.linalg",), names=PRIMITIVES),
    "jax._src.lax.parallel": Served(
        everything_of=("weft.lax",),
        names={
            **PRIMITIVES,
            **of("weft.as_jax.reductions", "pargmax pargmin"),
            **of("weft.as_jax.futures", "all_gather_start all_to_all_start ppermute_start psum_scatter_start"),
            **of("weft.as_jax.futures", "psum_start"),
        },
    ),
    "jax._src.lax.slicing": Served(everything_of=("weft.lax",), names=PRIMITIVES),
    "jax._src.lax.convolution": Served(everything_of=("weft.lax",), names=PRIMITIVES),
    "jax._src.lax.windowed_reductions": Served(
        everything_of=("weft.lax",),
        names={**PRIMITIVES, **of(_NUMPY, "_select_and_gather_add _select_and_scatter_add")},
    ),
    "jax._src.lax.control_flow": Served(names=of("weft", "cond fori_loop map scan switch while_loop")),
    "jax._src.lax.control_flow.common": Served(
        names=dict.fromkeys(("_dedup_consts", "_pad_constvars"), "weft.as_jax.state:EmptyCache")
    ),
    "jax._src.random": Served(
        everything_of=("weft.random",),
        names=of(_KEYS, "default_prng_impl resolve_prng_impl PRNGKeyArray random_clone_p random_gamma_p"),
    ),
    "jax._src.random.core": Served(
        everything_of=("weft.random",),
        names=of(_KEYS, "default_prng_impl resolve_prng_impl") | of(_NUMPY, "_check_broadcast_shapes"),
    ),
    "jax._src.random.rbg": Served(names=of(_KEYS, "rbg_prng_impl unsafe_rbg_prng_impl")),
    **{
        f"jax._src.random.{name}": Served(names=of("weft.as_jax.random_hashes", f"{name}_p"))
        for name in ("threefry4x32", "philox2x32", "philox4x32")
    },
    "jax._src.random.threefry2x32": Served(
        names=of("weft.as_jax.random_hashes", "threefry2x32_p threefry_2x32")
        | of(_KEYS, "threefry_prng_impl threefry_random_bits threefry_seed threefry_split threefry_fold_in")
    ),
    "jax._src.random.prng": Served(names=of(_KEYS, _OF_KEYS)),
    "jax._src.prng": Served(names=of(_KEYS, _OF_KEYS)),
    "jax._src.typing": Served(
        everything_of=("weft.as_jax.annotations",),
        names={**of("weft.typing", "ArrayLike DTypeLike Shape"), **of("weft", "Array")},
    ),
    "jax._src.nn": Served(),
    "jax._src.nn.functions": Served(everything_of=("weft.nn",)),
    "jax._src.nn.initializers": Served(everything_of=("weft.nn.initializers",)),
    "jax._src.scipy": Served(),
    **{
        f"jax._src.scipy.{name}": Served(everything_of=(f"weft.scipy.{name}",))
        for name in ("fft", "integrate", "linalg", "ndimage", "signal")
    },
    "jax._src.scipy.special": Served(everything_of=("weft.scipy.special",), names=of(_NUMPY, "_xlogx")),
    "jax._src.ops": Served(),
    "jax._src.ops.scatter": Served(everything_of=("weft.ops",)),
    "jax._src.public_test_util": Served(
        names=of("weft.as_jax.test_util", "check_close check_grads check_jvp check_vjp")
    ),
    "jax._src.test_util": Served(
        names=of("weft.as_jax.test_util", "check_close check_grads check_jvp check_vjp create_mesh")
    ),
    "jax._src.util": Served(
        names={
            **of("weft.as_jax.api_util", "safe_map safe_zip unzip2 partition_list merge_lists split_list"),
            **of(
                "weft.as_jax.lists", "tuple_insert tuple_update tuple_delete curry foreach unzip3 concatenate subvals"
            ),
            "test_event": "weft.as_jax.monitoring:test_event",
            "test_event_listener": Value(None),
            **of("weft.as_jax.lists", "toposort wrap_name wraps use_cpp_class use_cpp_method cache weakref_lru_cache"),
            **of(
                "weft.as_jax.lists",
                "HashableFunction HashablePartial NumpyComplexWarning ceil_of_ratio canonicalize_axis prod",
            ),
            **of("weft.as_jax.weak_caches", "multi_weakref_lru_cache weakref_cache_key_types clear_all_caches"),
        },
    ),
    "jax._src.version": Served(names={"__version__": Value(VERSION), "__version_info__": Value(VERSION_INFO)}),
    "jax._src.export": Served(),
    "jax._src.export.shape_poly": Served(
        names=of("weft.as_jax.export", "SymbolicScope is_symbolic_dim symbolic_args_specs symbolic_shape")
    ),
    "jax._src.xla_bridge": Served(
        names=of(
            "weft.as_jax.devices",
            "_backends get_backend backends default_backend devices local_devices device_count process_count "
            "process_index canonicalize_platform",
        )
    ),
    "jax._src.compiler": Served(),
    "jax._src.interpreters": Served(),
    "jax._src.interpreters.pxla": Served(
        names={
            **of("weft.as_jax.extended_dtypes", "global_result_handlers shard_arg_handlers"),
            **of("weft", "Mesh"),
            **of("weft.as_jax.monitoring", "_cached_lowering_to_hlo"),
            **of("weft.as_jax.devices", "batched_device_put"),
        }
    ),
    **{
        f"jax._src.interpreters.{name}": PUBLIC[f"jax.interpreters.{name}"]
        for name in ("batching", "partial_eval", "xla")
    },
    "jax._src.interpreters.ad": PUBLIC["jax.interpreters.ad"]._replace(
        names={**PUBLIC["jax.interpreters.ad"].names, **of("weft.as_jax.hi_primitives", "NullAccum")}
    ),
    "jax._src.interpreters.mlir": PUBLIC["jax.interpreters.mlir"]._replace(
        names={
            **PUBLIC["jax.interpreters.mlir"].names,
            # Arrays that are given away are used again on all of them.
            "_platforms_with_donation": Value(["cpu", "cuda", "rocm", "tpu", "neuron"]),
            "hlo": "weft.as_jax.mlir_stablehlo",
        }
    ),
    "jax._src.ad_util": Served(
        names={
            **of("weft.as_jax.rules", "Zero SymbolicZero"),
            "stop_gradient_p": PRIMITIVES["stop_gradient_p"],
            "add_any_p": PRIMITIVES["add_any_p"],
            "add_jaxvals_p": PRIMITIVES["add_any_p"],
        }
    ),
    "jax._src.checkify": Served(
        everything_of=("weft.experimental.checkify",),
        names=of("weft.as_jax.effects", "ErrorEffect"),
    ),
    "jax._src.state": Served(
        names={
            **of("weft.as_jax.hijax", "AbstractRef TransformedRef"),
            **of("weft.as_jax.effects", "RefEffect ReadEffect WriteEffect AccumEffect"),
        }
    ),
    "jax._src.state.types": Served(
        names={
            **of("weft.as_jax.hijax", "AbstractRef TransformedRef"),
            **of("weft.as_jax.effects", "RefEffect ReadEffect WriteEffect AccumEffect"),
            **of("weft.as_jax.ref_programs", "shaped_array_ref"),
        }
    ),
    "jax._src.state.primitives": Served(
        names={
            **of("weft.ref", "get set swap addupdate"),
            **{f"ref_{name}": f"weft.ref:{name}" for name in ("get", "set", "swap", "addupdate")},
            **of("weft.as_jax.ref_equations", "get_p swap_p addupdate_p"),
            **refused("jax._src.state.primitives", "pin unpin", _TRACES),
        }
    ),
    "jax._src.state.discharge": Served(
        names={
            "run_state": "weft.as_jax.state:run_state",
            "run_state_reference": "weft.as_jax.state:run_state",
            **of("weft.as_jax.ref_programs", "discharge_state"),
        }
    ),
    "jax._src.hijax": Served(names=HIJAX),
    "jax._src.earray": Served(names=of("weft.as_jax.extended_dtypes", "EArray")),
    "jax._src.pjit": Served(
        names={
            "jit_p": PRIMITIVES["jit_p"],
            "pjit": "weft.as_jax.transforms:pjit",
            **of("weft.as_jax.transforms", "with_sharding_constraint"),
            **of("weft.as_jax.meshes", "reshard"),
            **refused("jax._src.pjit", "_pjit_lower make_jit_cpp_cache", _XLA),
        }
    ),
}
