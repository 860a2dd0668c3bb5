"""The documented modules of JAX, but for jax.extend and jax.experimental."""

from __future__ import annotations

from ..lax_primitives import NAMES
from ..served import Served, Value, because, of, refused
from .version import VERSION, VERSION_INFO

_SETTINGS = "weft.as_jax.settings"
_CORE = "weft.as_jax.core"

_OPTIONS = """check_tracer_leaks checking_leaks debug_infs debug_key_reuse debug_nans default_device
default_matmul_precision default_prng_impl enable_checks enable_custom_prng enable_x64 explain_cache_misses
legacy_prng_key log_compiles no_execution no_tracing numpy_dtype_promotion numpy_rank_promotion
threefry_partitionable transfer_guard transfer_guard_device_to_device transfer_guard_device_to_host
transfer_guard_host_to_device softmax_custom_jvp allow_f16_reductions auto_pcast array_garbage_collection_guard
thread_guard"""

# Names of dtypes that say 64 bits, whatever arrays of them have.
_WIDE = {"int_": "int64", "uint": "uint64", "float_": "float64", "complex_": "complex128"}

PRIMITIVES = of("weft.as_jax.lax_primitives", " ".join(f"{name}_p" for name in NAMES))

_TRACE_CLASSES = because(
    "transforms of Weft's are written on its IR; see docs/write_a_transform.md", "JVPTrace linearize"
)

_MLIR = because(
    "lowerings are made by mlir.lower_fun(f); programs are Weft's own IR, which weft.make_ir shows",
    "dense_int_elements flatten_ir_types flatten_ir_values ir_attribute ir_constants ir_type_handlers jaxpr_subcomp "
    "lower_jaxpr_to_fun lower_jaxpr_to_module make_ir_context merge_mlir_modules module_to_bytecode module_to_string "
    "register_constant_handler shape_tensor token_type custom_call",
)

# Functions of jax.tree_util that take or give the structure of a tree.
TREES = of(
    "weft.as_jax.treedefs",
    "PyTreeDef tree_flatten tree_flatten_with_path tree_structure tree_transpose tree_unflatten treedef_children "
    "treedef_is_leaf treedef_tuple",
)

PUBLIC: dict[str, Served] = {
    "jax": Served(
        everything_of=("weft",),
        names={
            "__version__": Value(VERSION),
            "__version_info__": Value(VERSION_INFO),
            "config": f"{_SETTINGS}:config",
            **of(_SETTINGS, _OPTIONS),
            **of("weft.as_jax.dtypes", "float0"),
            **of("weft.as_jax.core", "typeof"),
            **of(
                "weft.as_jax.transforms",
                "jit make_jaxpr eval_shape fwd_and_bwd linear_transpose linearize device_put_replicated "
                "device_put_sharded",
            ),
            **of("weft.as_jax.rematerialised", "checkpoint remat"),
            **of("weft.as_jax.vmappable", "vmap"),
            **of("weft.as_jax.state", "clear_backends print_environment_info"),
            **of("weft.as_jax.devices", "device_count local_device_count process_count process_index"),
            **of(
                "weft.as_jax.devices",
                "devices device_put local_devices copy_to_host_async process_indices host_count host_id "
                "make_array_from_callback",
            ),
            **of("weft.as_jax.devices", "host_ids default_backend"),
            **of("weft.as_jax.meshes", "set_mesh reshard shard_map smap make_mesh"),
            "typeof": f"{_CORE}:typeof",
            "ds": "weft.as_jax.arrays:ds",
            **of("weft.as_jax.callbacks", "pure_callback"),
            **of("weft.as_jax.object_refs", "new_ref empty_ref freeze"),
            "ffi": "jax.ffi",
            "ad": "weft.pullbacks",
        },
        absent={
            **because("the name is jax.new_ref", "ArrayRef array_ref mutable_array MutableArray"),
            **because("jax.linear_util went with JAX 0.4; use jax.extend.linear_util", "linear_util"),
            **because("jax.tree_map went with JAX 0.4.26; use jax.tree.map", "tree_map tree_leaves tree_flatten"),
            **because("it went with JAX 0.4; it is jax.experimental.export's", "abstract_arrays util"),
        },
        without=frozenset(
            [
                "Communication",
                "DerivativeError",
                "Dim",
                "IR",
                "InternalError",
                "ParseError",
                "PassRecord",
                "ShapeDtype",
                "ShapedArray",
                "Tracer",
                "TracerError",
                "aot",
                "autograph",
                "cond",
                "deserialize_ir",
                "fori_loop",
                "jet",
                "make_ir",
                "map",
                "parse_ir",
                "pjit",
                "scan",
                "switch",
                "while_loop",
                "with_sharding_constraint",
                "io_callback",
                "jax_semantics",
                "custom_vmap",
            ]
        ),
    ),
    "jax.ref": Served(everything_of=("weft.ref",), names=of("weft.as_jax.object_refs", "new_ref empty_ref freeze")),
    "jax.numpy": Served(
        everything_of=("weft.numpy",),
        names={
            **of("weft.as_jax.dtypes", "iinfo issubdtype"),
            **of("weft.as_jax.dtype_rules", "isdtype promote_types"),
            "ndarray": "weft:Array",
            "newaxis": Value(None),
            **of("weft.numpy", "__array_api_version__"),
            **of("weft.as_jax.numpy_internals", "__array_namespace_info__ einsum_path"),
            **{name: f"weft.numpy:{of}" for name, of in _WIDE.items()},
            "float0": "weft.as_jax.dtypes:float0",
            **of("numpy", "character flexible object_"),
            **of("numpy.exceptions", "ComplexWarning"),
        },
        without=frozenset(["fix", "row_stack"]),  # JAX has no more of them
    ),
    "jax.numpy.linalg": Served(everything_of=("weft.numpy.linalg",), names=of("weft.as_jax.arrays", "qr slogdet")),
    "jax.numpy.fft": Served(everything_of=("weft.numpy.fft",)),
    "jax.lax": Served(
        everything_of=("weft.lax",),
        names={
            **of("weft.as_jax.choices", "AccuracyMode DotAlgorithm DotAlgorithmPreset Tolerance"),
            **of("weft", "cond fori_loop map scan switch while_loop stop_gradient"),
            **of("weft.as_jax.transforms", "with_sharding_constraint"),
            **of("weft.as_jax.effects", "dce_sink create_token after_all"),
            **of("weft.as_jax.arrays", "shape_as_value top_k"),
            **of("weft.as_jax.literals", "stage"),
            **of("weft.as_jax.annotations", "ConvGeneralDilatedDimensionNumbers DotDimensionNumbers PrecisionLike"),
            **PRIMITIVES,
        },
    ),
    "jax.lax.linalg": Served(
        everything_of=("weft.lax.linalg",),
        names={**of("weft.as_jax.choices", "EigImplementation EighImplementation SvdAlgorithm"), **PRIMITIVES},
    ),
    "jax.random": Served(
        everything_of=("weft.random",),
        names=of("weft.as_jax.random_keys", "PRNGKey key_data key_impl random_gamma_p wrap_key_data"),
    ),
    "jax.tree_util": Served(
        everything_of=("weft.tree_util",),
        names={
            **of("weft.as_jax.trees", "default_registry"),
            **of("weft.tree_util", "KeyEntry KeyPath"),
            **TREES,
        },
    ),
    "jax.tree": Served(
        everything_of=("weft.tree",),
        names={
            "reduce_associative": "weft.tree_util:tree_reduce_associative",
            "static": "weft.as_jax.trees:static",
            **{name.removeprefix("tree_"): place for name, place in TREES.items() if name.startswith("tree_")},
        },
        without=frozenset(["TreeDef", "register", "register_dataclass"]),
    ),
    "jax.nn": Served(everything_of=("weft.nn",), without=frozenset(["BlockScaleConfig"])),
    "jax.nn.initializers": Served(
        everything_of=("weft.nn.initializers",), names=of("weft.as_jax.arrays", "Initializer")
    ),
    "jax.scipy": Served(),
    **{
        f"jax.scipy.{name}": Served(everything_of=(f"weft.scipy.{name}",))
        for name in [
            "linalg",
            "special",
            "stats",
            "signal",
            "fft",
            "ndimage",
            "interpolate",
            "integrate",
            "cluster",
            "cluster.vq",
            "optimize",
            "sparse",
            "sparse.linalg",
            "spatial",
            "spatial.transform",
        ]
    },
    **{
        f"jax.scipy.stats.{name}": Served(everything_of=(f"weft.scipy.stats:{name}",))
        for name in [
            "bernoulli",
            "beta",
            "betabinom",
            "binom",
            "cauchy",
            "chi2",
            "dirichlet",
            "expon",
            "gamma",
            "gennorm",
            "geom",
            "gumbel_l",
            "gumbel_r",
            "laplace",
            "logistic",
            "multinomial",
            "multivariate_normal",
            "nbinom",
            "norm",
            "pareto",
            "poisson",
            "t",
            "truncnorm",
            "uniform",
            "vonmises",
            "wrapcauchy",
        ]
    },
    "jax.sharding": Served(
        names={
            **of("weft", "Mesh NamedSharding PartitionSpec Sharding SingleDeviceSharding"),
            **of("weft.as_jax.meshes", "AbstractMesh AxisType get_abstract_mesh get_mesh set_mesh use_mesh"),
            **of("weft.as_jax.meshes", "use_abstract_mesh reshard auto_axes explicit_axes"),
            "AbstractDevice": "weft._sharding.devices:AbstractDevice",
            "ManualAxisType": "weft._core.shapes:ManualAxisType",
            "PositionalSharding": "weft.as_jax.meshes:PositionalSharding",
        },
        absent=because("weft.NamedSharding and shard_map say how arrays are cut", "GSPMDSharding"),
    ),
    "jax.memory": Served(names={"Space": "weft.as_jax.core:MemorySpace"}),
    "jax.core": Served(
        names={
            **of(_CORE, "AbstractValue Trace Tracer ShapedArray ParamDict Value get_aval valid_jaxtype eval_context"),
            **of(_CORE, "max_dim min_dim trace_state_clean get_opaque_trace_state concrete_or_error is_concrete"),
            **of(_CORE, "pytype_aval_mappings"),
            **of("weft", "ensure_compile_time_eval"),
            **of("weft.as_jax.jaxprs", "Atom eval_jaxpr ClosedJaxpr Jaxpr JaxprEqn Literal Var jaxpr_as_fun"),
            # Those from here on warn in JAX: they will go.
            **of(
                "weft.as_jax.jaxprs", "Effect Effects no_effects JaxprTypeError jaxprs_in_params new_jaxpr_eqn gensym"
            ),
            **of("weft.as_jax.jaxpr_text", "JaxprPpContext JaxprPpSettings"),
            **of("weft.as_jax.check_jaxprs", "check_jaxpr"),
            **of(_CORE, "find_top_trace primal_dtype_to_tangent_dtype aval_mapping_handlers"),
            **of("weft.as_jax.internals", "is_constant_dim is_constant_shape call"),
        },
    ),
    "jax.typing": Served(names=of("weft.typing", "ArrayLike DTypeLike")),
    "jax.test_util": Served(names=of("weft.as_jax.test_util", "check_grads check_jvp check_vjp")),
    "jax.flatten_util": Served(everything_of=("weft.flatten_util",)),
    "jax.dtypes": Served(
        names={
            **of("ml_dtypes", "bfloat16"),
            **of("weft.as_jax.dtypes", "canonicalize_dtype extended float0 issubdtype"),
            "TypePromotionError": "weft.errors:TypePromotionError",
            **of("weft.as_jax.dtypes", "itemsize_bits prng_key scalar_type_of"),
            **of("weft.numpy", "finfo iinfo result_type"),
        }
    ),
    "jax.errors": Served(
        everything_of=("weft.errors",),
        names=of("weft.as_jax.jaxprs", "JaxprTypeError"),
        without=frozenset(
            ["ArgumentError", "AxisError", "OutOfMemoryError", "ShardingTypeError", "TypePromotionError"]
        ),
    ),
    "jax.debug": Served(
        everything_of=("weft.debug",),
        names={
            **of("weft.as_jax.debugging", "print callback log"),
            **of("weft.as_jax.pictures", "visualize_array_sharding visualize_sharding"),
        },
    ),
    "jax.custom_batching": Served(everything_of=("weft.custom_batching",)),
    "jax.custom_derivatives": Served(
        everything_of=("weft.custom_derivatives",),
        names={
            **{name: PRIMITIVES[name] for name in ("custom_jvp_call_p", "custom_vjp_call_p")},
            **of("weft", "closure_convert custom_gradient custom_jvp custom_vjp"),
            **of("weft.as_jax.rules", "CustomVJPPrimal zero_from_primal"),
        },
    ),
    "jax.ad_checkpoint": Served(
        everything_of=("weft.ad_checkpoint",),
        names={
            **of("weft.ad_checkpoint", "checkpoint_name checkpoint_policies print_saved_residuals"),
            **of("weft.as_jax.rematerialised", "checkpoint remat"),
            **of("weft.as_jax.residuals", "saved_residuals"),
            **refused("jax.ad_checkpoint", "Offloadable Recompute", "policies are those of checkpoint_policies"),
        },
    ),
    "jax.interpreters": Served(),
    "jax.interpreters.ad": Served(
        everything_of=("weft.as_jax.ad",), names={"add_jaxvals_p": PRIMITIVES["add_any_p"]}, absent=_TRACE_CLASSES
    ),
    "jax.interpreters.batching": Served(
        everything_of=("weft.as_jax.batch_rules",),
        names={
            **of("weft.as_jax.vmappable", "register_vmappable unregister_vmappable is_vmappable"),
            **of("weft.as_jax.mapped_types", "infer"),
        },
    ),
    "jax.interpreters.mlir": Served(
        everything_of=("weft.as_jax.mlir",),
        names={**of("weft.as_jax.mlir", "_lowerings _constant_handlers"), "ir": "weft.as_jax.mlir_ir"},
        absent=_MLIR,
    ),
    "jax.interpreters.partial_eval": Served(
        names={
            **of("weft.as_jax.partial_eval", "PartialVal trace_to_jaxpr_nounits DynamicJaxprTracer JaxprTracer Tracer"),
            **of("weft.as_jax.partial_eval", "trace_to_jaxpr_dynamic close_jaxpr convert_constvars_jaxpr dce_jaxpr"),
            **of("weft.as_jax.partial_eval", "dce_jaxpr_consts"),
        }
    ),
    "jax.interpreters.pxla": Served(),
    "jax.interpreters.xla": Served(
        names={
            **of(_CORE, "canonicalize_dtype_handlers pytype_aval_mappings"),
            **of("weft.as_jax.state", "apply_primitive"),
            "Backend": "weft.as_jax.devices:Backend",
        },
        absent=because(
            "lowerings are made by jax.interpreters.mlir.register_lowering and mlir.lower_fun(f)",
            "register_translation translations backend_specific_translations register_collective_primitive lower_fun",
        ),
    ),
    "jax.monitoring": Served(everything_of=("weft.as_jax.monitoring",)),
    "jax.profiler": Served(
        everything_of=("weft.as_jax.profiler",),
        absent=because(
            "jit(f).explain() and lower(...).stage(...) show what a program does",
            "trace start_trace stop_trace ProfileData ProfileEvent ProfileOptions ProfilePlane start_server "
            "stop_server "
            "device_memory_profile "
            "save_device_memory_profile",
        ),
    ),
    "jax.dlpack": Served(
        names={**of("weft.numpy", "from_dlpack"), "is_supported_dtype": "weft.as_jax.arrays:is_dlpack_dtype"},
        absent=because("call numpy.from_dlpack(x), or the library's own: arrays have __dlpack__", "to_dlpack"),
    ),
    "jax.version": Served(names={"__version__": Value(VERSION), "__version_info__": Value(VERSION_INFO)}),
    "jax.stages": Served(names=of("weft.as_jax.stages", "Wrapped Lowered Compiled Traced CompilerOptions ArgInfo")),
    "jax.image": Served(everything_of=("weft.image",)),
    "jax.ops": Served(everything_of=("weft.ops",)),
    "jax.distributed": Served(everything_of=("weft.as_jax.distributed",)),
    "jax.api_util": Served(
        names=of(
            "weft.as_jax.api_util",
            "argnums_partial flatten_fun flatten_fun_nokwargs safe_map debug_info shaped_abstractify",
        )
    ),
    "jax.export": Served(
        names=of(
            "weft.as_jax.export",
            "DisabledSafetyCheck Exported SymbolicScope default_export_platform deserialize export is_symbolic_dim "
            "maximum_supported_calling_convention_version minimum_supported_calling_convention_version "
            "register_namedtuple_serialization register_pytree_node_serialization symbolic_args_specs symbolic_shape",
        )
    ),
    "jax.ffi": Served(absent=because("call C from Python by jax.pure_callback", "ffi_call register_ffi_target")),
    "jax.example_libraries": Served(),
    "jax.example_libraries.optimizers": Served(everything_of=("weft.as_jax.optimizers",)),
    "jax.example_libraries.stax": Served(everything_of=("weft.as_jax.stax",)),
    "jax.lib": Served(names={"__version__": Value(VERSION)}),
    "jaxlib": Served(names={"__version__": Value(VERSION)}),
    "jaxlib.version": Served(names={"__version__": Value(VERSION)}),
}
