"""What JAX says of operands that do not lie as an operation needs them, as as_jax/table/words.py has it."""

_CONTRACT, _GATHER, _SCATTER = r"^(?:\w+: )?contract: ", r"^(?:\w+: )?gather: ", r"^(?:\w+: )?scatter\w*: "
_LIE = r"operands \d+ and \d+ lie as (P\(.*?\)) and (P\(.*?\))"
_OF_GATHER = (
    "Use `.at[...].get(out_sharding=)` to provide output PartitionSpec for the gather indexing as out sharding could "
    "not be resolved unambiguously (or would require collectives on inputs)."
)
_OF_SCATTER = (
    "Use `.at[...].set/add/mul/...(out_sharding=)` to provide output PartitionSpec for the scatter update as out "
    "sharding could not be resolved unambiguously (or would require collectives on inputs)."
)
_OF_RESHAPE = (
    "This reshape is not supported. Please specify the sharding of the output via the `out_sharding` argument of "
    "jax.lax.reshape."
)
_WHOLE = r"operand (\d+) lies as (P\(.*?\)), and the operation needs dimension \d+ of it whole"
_UNEVEN = r"dimension \d+ is cut by (.*?), and (\d+) devices cannot share the (\d+) of the result evenly"
_UNEVEN_WORDS = (
    "on sharded dims where out dim ({2}) is not divisible by mesh axes ({1}) with spec ({0}) is not implemented."
)

_ELSEWHERE = r"an operand lies over (.*), and the mesh around is (.*): weft\.reshard"
_OF_CONTEXT = "For primitive {0}, context mesh {2} should match the aval mesh {1}"

WORDS: list[tuple[str, str]] = [
    (r"^(?:\w+: )?(contract): " + _ELSEWHERE, _OF_CONTEXT.replace("{0}", "dot_general")),
    (r"^(?:\w+: )?(\w+): " + _ELSEWHERE, _OF_CONTEXT),
    (_GATHER + r"(?:operand|the dimension|'\w+' would)", _OF_GATHER),
    (_SCATTER + r"(?:operand|the dimension|'\w+' would)", _OF_SCATTER),
    (
        _CONTRACT + _LIE + r", which do not go together: a dimension that is summed over is cut by (.*?) in one and by "
        r"(.*?) in the other",
        "dot_general requires contracting dimensions to have consistent sharding, got ({2},) and ({3},).",
    ),
    (
        _CONTRACT + _LIE + r", which do not go together: a dimension is cut by (.*?) in one and by (.*?) in the other",
        "dot_general requires lhs batch dimensions and rhs batch dimensions to have the consistent sharding, got "
        "({2},) and ({3},).",
    ),
    (
        _CONTRACT + r"the dimension that is summed over is cut by (.*?) in several operands",
        "Contracting dimensions are sharded and it is ambiguous how the output should be sharded. Please specify the "
        "output sharding via the `out_sharding` parameter. Got lhs_contracting_spec=({0},) and "
        "rhs_contracting_spec=({0},)",
    ),
    (
        _CONTRACT + r"'\w+' would cut two dimensions of the result: operands lie as (P\(.*?\)) and (P\(.*?\));",
        "dot_general operation with inputs: {0}, {1} produces an illegally sharded result",
    ),
    (
        r"^(?:\w+: )?(\w+): '\w+' would cut two dimensions of the result: operands lie as (P\(.*?\)) and (P\(.*?\));",
        "{0} operation with inputs: {1}, {2} produces an illegally sharded result",
    ),
    (
        r"conv: (?:operands?|'\w+' would|dimension|the dimension)",
        "Please specify the output sharding via `out_sharding` parameter of `conv_general_dilated`",
    ),
    (r"select: " + _LIE + ", which do not go together", "select cases must have the same shardings, got [{0}, {1}]."),
    (
        r"concatenate: " + _LIE + ", and have to lie alike",
        "All operands should have the same sharding. Got shardings {0}, {1}",
    ),
    (
        r"dynamic_update_slice: " + _LIE + ", and have to lie alike",
        "dynamic_update_slice operand sharding must be equal to update sharding, got operand sharding {0} and update "
        "sharding {1}.",
    ),
    (r"sort: " + _LIE + ", and have to lie alike", "Arguments to sort must have equal shardings, got: {0} {1}"),
    (
        r"sort: " + _WHOLE,
        "Arguments to sort must be unsharded over the sorting dimension. Got arg sharding={1}",
    ),
    (r"cum\w+: " + _WHOLE, "Input should be unsharded over the axis being reduced. Got input type={1}"),
    (
        r"top_k: " + _WHOLE,
        "The input should be unsharded over the axis along which to compute the top_k values. Got input type={1}",
    ),
    (r"reshape: (?:operand \d+ lies as|operands that lie as|'\w+' would)", _OF_RESHAPE),
    (
        r"(\w+): operand (\d+) lies as (P\(.*?\)), and the operation needs dimension \d+ of it whole",
        "Input {1} to {0} must be unsharded on non-batch dimensions, but got {2}.",
    ),
    (r"\bslice: " + _UNEVEN, "slicing " + _UNEVEN_WORDS),
    (r"\bpad: " + _UNEVEN, "padding " + _UNEVEN_WORDS),
    (r"dynamic_slice: " + _UNEVEN, "dynamic_slice " + _UNEVEN_WORDS),
    (r"\w+: " + _UNEVEN, "reduce_window " + _UNEVEN_WORDS),
    (
        r"(\w+): " + _LIE + ", which do not go together",
        "{0} got incompatible shardings for broadcasting: {1}, {2}.",
    ),
    (
        r"(\w+): operands are sums in parts along (\{.*?\}) and (\{.*?\})",
        "lhs and rhs to `{0}` must be unreduced along the same mesh axes. Got lhs={1}, rhs={2}",
    ),
    (
        r"(\w+): two factors are sums in parts",
        "lhs and rhs to `{0}` cannot be unreduced since {0} is bilinear.",
    ),
    (
        _CONTRACT + r".*sums? in parts",
        "lhs or rhs passed to dot_general cannot be unreduced.",
    ),
    (
        r"mul: one factor is a sum in parts.*operands lie as P\([^)]*\bunreduced=",
        "RHS should be reduced along the same axes LHS is unreduced on.",
    ),
    (
        r"mul: one factor is a sum in parts",
        "LHS should be reduced along the same axes RHS is unreduced on.",
    ),
    (
        r"(\w+): some operands are sums in parts and some are whole: they lie as P\([^)]*\bunreduced=",
        "lhs is unreduced while rhs is not. `{0}` operation does not allow this because there will be implicit "
        "communication. Please reduce lhs via `reshard` before calling `{0}`.",
    ),
    (
        r"(\w+): some operands are sums in parts and some are whole",
        "rhs is unreduced while lhs is not. `{0}` operation does not allow this because there will be implicit "
        "communication. Please reduce rhs via `reshard` before calling `{0}`.",
    ),
    (
        r"(\w+): operand \d+ lies as .*: a sum in parts, which only what is linear in it takes",
        "unreduced rule for {0} is not implemented. Please file an issue at https://github.com/jax-ml/jax/issues",
    ),
    (
        r"pcast: .*: along some of these axes the value is (\w+(?: \w+)?) and along others (\w+(?: \w+)?)",
        "jax.lax.pcast can only accept axis_name which corresponds to one of varying, unreduced, reduced or invarying "
        "state of the input. Got input state: {0}, {1}",
    ),
    (
        r"(P\(.*\)) says that a result is a sum in parts along (.*), along which it is the same on all devices",
        "vary_unreduced_cast is a Varying->Unreduced collective. This means that the axis names mentioned in `axes` "
        "passed to `vary_unreduced_cast` must be present in `jax.typeof(x).mat.varying`. Got out_specs={0}, which "
        "says it of {1}",
    ),
    (
        r"operands are reduced along (\{.*?\}) and (\{.*?\})",
        "All inputs should be reduced across the same mesh axes. Got specs: {0}, {1}",
    ),
    (
        r"is cut along axes that operand \d+ is reduced along",
        "Inputs cannot be sharded/varying on the same axes that another input is reduced on. Reshard the input which "
        "is reduced to be sharded on the mesh axes it is reduced on via `jax.sharding.reshard(inp, jax.P(...))`.",
    ),
    (
        r"is replicated along axes that operand \d+ is reduced along",
        "Inputs cannot be replicated on the same axes that another input is reduced on.",
    ),
    (
        r"vmap: spmd_axis_name is (\(.*?\)), and the mapped dimension of argument .* is cut by (\(.*?\));",
        "Only one of spmd_axis_name or arrays sharded on `Explicit` mesh axis type is allowed. Got spmd_axis_name={0} "
        "and arrays sharded on {1}",
    ),
    (
        r"vmap: argument .* is not mapped, and is cut by (.*), as the mapped",
        "Unmapped values passed to vmap cannot be sharded along the mesh axes that cut the mapped dimension. Got {0}",
    ),
    (
        r"vmap: the mapped dimension of argument .* is cut by (.*), and that of argument .* by (.*); weft",
        "Mapped away dimension of inputs passed to vmap should be sharded the same. Got inconsistent axis specs: {0} "
        "vs {1}",
    ),
    (
        r"(?:pjit|jit): (?:in|out)_shardings: P\(.*\) needs a mesh",
        "pjit requires a non-empty mesh in context if you are passing `PartitionSpec`s to in_shardings.",
    ),
    (
        r"with_sharding_constraint: P\(.*\) needs a mesh",
        "with_sharding_constraint requires a non-empty mesh in context if you are passing `PartitionSpec`s.",
    ),
    (
        r"(?:pjit|jit): (in|out)_shardings: expected weft.NamedSharding, or PartitionSpecs .*, got '?(.*?)'? of type",
        "{0}_shardings leaf specifications are expected to be PartitionSpec instances or None, but got {1}",
    ),
    (
        r"(\w+): out_sharding: no mesh is given",
        "Using PartitionSpec when you are not under a mesh context is not allowed. Please pass a NamedSharding "
        "instance or enter into a mesh context via `jax.set_mesh`.",
    ),
    (
        r"device_put: P\(.*?\): no mesh is given",
        "Please set a mesh via `jax.set_mesh` if a PartitionSpec is passed to device_put",
    ),
    (
        r"jit: '(.*?)' computes with an argument that lies on (.*?), whose axes types name, under the mesh (.*?);",
        "For primitive {0}, context mesh {2} should match the aval mesh {1}.",
    ),
    (r"scan: the loop goes over a dimension that", "0th dimension of all xs should be replicated."),
    (
        r"(scan|while)\w*: carry \d+ lies as (P\(.*?\)) before a trip and as (P\(.*?\)) after it",
        "{0} body function carry input and carry output must have equal types, but the input carry lies as {1} and "
        "the output as {2}",
    ),
    (r"cond: result \d+ lies as", "cond branches must have equal output types but they differ."),
]
