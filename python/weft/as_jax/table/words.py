"""Patterns of Weft's messages, and what JAX says there; {0}, {1} are what the pattern's groups found, {type0} a type of
Weft's as JAX writes it (f32[3] -> float32[3]), {kind0} a kind of dtypes (f -> float). The first entry that fits
counts."""

from __future__ import annotations

_T = r"((?:\w+)\[[^\]]*\])"  # a type
_V = r"'([^']*)'"  # a name

WORDS: list[tuple[str, str]] = [
    # Keys that are used twice.
    (
        r"^random\.(bits|split|gamma): the key \(operand (\d+)\) has been used",
        "In random_{0}, argument {1} is already consumed.",
    ),
    (r"^random\.\w+: the key \(operand (\d+)\) has been used", "In jit, argument {0} is already consumed."),
    (
        r"^random\.(bits|split|gamma): the key has been used",
        "Previously-consumed key passed to random_{0} at index 0",
    ),
    (r"^random\.\w+: the key has been used", "Previously-consumed key passed to jit-compiled function at index 0"),
    (r"^scan: the body uses a key", "scan body function leads to key reuse when repeatedly executed"),
    (r"^while: the body uses a key", "while_loop body function leads to key reuse when repeatedly executed"),
    (r"^while: the condition uses a key", "while_loop cond function leads to key reuse when repeatedly executed"),
    (r"^call: (?:the|a) key .*\(operand (\d+)\) has been used", "In jit, argument {0} is already consumed."),
    (r"^(\w+): (?:the|a) key .*\(operand (\d+)\) has been used", "In {0}, argument {1} is already consumed."),
    # Memory.
    (r"^out of memory: .*?needs (?:at least )?(\d+) bytes", "RESOURCE_EXHAUSTED: Out of memory allocating {0} bytes."),
    (r"^out of memory: ", "RESOURCE_EXHAUSTED: Out of memory."),
    # Arguments and results of functions.
    (
        r"is differentiated with respect to a value that it captured from outside",
        "Encountered an unexpected tracer. The value that it captured escaped from the derivative's trace.",
    ),
    (
        r"linear_transpose: '[^']*' (?:of integers )?returns|linear_transpose: argument",
        "linear_transpose only supports [float or complex] -> [float or complex], and integer -> integer functions.",
    ),
    (r"static argument .* of type '(.*?)', which is not hashable", "Non-hashable static arguments are not supported."),
    (r"cannot be both static and donated", "static_argnames and donate_argnames cannot intersect"),
    (
        r"argument (\S+) of '[^']*' is (.*) of type '([^']*)'; expected an array",
        "Argument {1} of type <class '{2}'> is not a valid JAX type. Error interpreting argument to the function as an "
        "abstract array. The problematic value is of type <class '{2}'> and was passed to the function at path {0}.",
    ),
    (r"of dtype object, which has no counterpart", "Argument is not a valid JAX type."),
    (
        r"an operand: an array of dtype (\S+) has no counterpart",
        "Error interpreting argument to the operation as a JAX value. The problematic value is of type {0}.",
    ),
    (r"masked arrays have no counterpart", "numpy masked arrays are not supported as direct inputs to JAX functions."),
    (r"(?:expected a function|must be a function), got (.*) of type", "Expected a callable value, got {0}"),
    (
        r"is ShapeDtypeStruct.* of type 'ShapeDtype'; a traced function returns",
        "A ShapeDtypeStruct does not have a value and can't be used as a constant in a JAX function.",
    ),
    (
        r"the result (\[.*?\]|)(?: |)of '([^']*)' is (.*) of type '([^']*)'; a traced function returns",
        "function {1} at the lines below returned a value of type <class '{3}'> at output component {0}, which is not "
        "a valid JAX type. Output from batched function {2} with type <class '{3}'> is not a valid JAX type",
    ),
    (
        r"jit: donate_argnames names arguments of '([^']*)', whose signature cannot be read",
        "Getting the signature of function {0} failed. Pass donate_argnums instead of donate_argnames.",
    ),
    (
        r"jit: the arguments of '.*' are not arrays, numbers, or containers of them",
        "Triggering __jax_array__() during abstractification is no longer supported. To avoid this error, either "
        "explicitly convert your object using jax.numpy.array(), or register your object as a pytree.",
    ),
    (
        r"vmap: in_axes must be an integer, None, or a tuple .*, got (.*)",
        "vmap in_axes must be an int, None, or a tuple of entries corresponding to the positional arguments passed to "
        "the function, but got {0}.",
    ),
    (
        r"pmap: static_broadcasted_argnums has (\d+), but '.*' was called with (\d+) positional",
        "pmapped function has static_broadcasted_argnums=({0},) but was called with only {1} positional argument. All "
        "static broadcasted arguments must be passed positionally.",
    ),
    # Tracers.
    (
        r"float\(\) of a traced value",
        "Abstract tracer value encountered where concrete value is expected. Try using `x.astype(float)` instead.",
    ),
    (
        r"int\(\) of a traced value",
        "Abstract tracer value encountered where concrete value is expected. Try using `x.astype(int)` instead.",
    ),
    (
        r"complex\(\) of a traced value",
        "Abstract tracer value encountered where concrete value is expected. Try using `x.astype(complex)` instead.",
    ),
    (r"the truth value of an array of shape \((?:.*, )?0[,)]", "The truth value of an empty array is ambiguous."),
    (
        r"the truth value of an array of shape",
        "The truth value of an array with more than one element is ambiguous. Use a.any() or a.all()",
    ),
    (
        r"(tolist|tobytes)\(\) of a traced value",
        "Abstract tracer value encountered where concrete value is expected. The {0}() method was called on traced "
        "array.",
    ),
    (r"item\(\) of a traced value", "Abstract tracer value encountered where concrete value is expected."),
    (
        r"an index of a traced value: " + _T + r"(.*)",
        "The __index__() method was called on traced array with shape {type0}. This concrete value was not available "
        "in Python because it depends on the value of the argument{1}. Shapes must be 1D sequences of concrete values "
        "of integer type.\nIf using `jit`, try using `static_argnums` or applying `jit` to smaller subfunctions.",
    ),
    (r"bool\(\) of a traced value: " + _T, "Attempted boolean conversion of traced array with shape {type0}."),
    (
        r"numpy\.\w+\(\) of a traced value",
        "The numpy.ndarray conversion method __array__() was called on traced array.",
    ),
    (
        r"traced value (?:that |)escaped: " + _T + r".*?(?:at (\S+?):(\d+)|,)",
        "Encountered an unexpected tracer. A function transformed by JAX had a side effect, allowing for a reference "
        "to an intermediate value with type {type0} wrapped in a DynamicJaxprTracer to escape, through global state, "
        "the scope of the transformation. (unexpected tracer) The leaked intermediate value was created on line "
        "{1}:{2}.",
    ),
    (r"^(\w+): '[^']*' leaked traced values", "Leaked trace DynamicJaxprTrace. Leaked level: {0}"),
    (r"takes a traced value as a key of a dict", "unhashable type: 'DynamicJaxprTracer'"),
    (
        r"(\w+): nothing binds the axis '([^']*)' here",
        "Found an unbound axis name: {1}. To fix this, please call {0} under `jax.shard_map` or `jax.vmap`. "
        "(unbound axis name: {1})",
    ),
    # Numbers.
    (
        r"^'spmd' gives a NaN|^'\w+' gives a NaN inside 'spmd'",
        "Invalid value (nan) encountered in sharded computation.",
    ),
    (
        r"^result .* of '[^']*' holds a NaN",
        "invalid value encountered in jit(...), and the de-optimized function did not give it operation by operation: "
        "it is a literal of the function's, or of what it closes over",
    ),
    (r"^'(\w+)' gives a NaN \(argument '(\w+)'", "the de-optimized function did not raise: the input {1} holds a NaN"),
    (r"^'(\w+)' gives a NaN", "invalid value (nan) encountered in {0}"),
    (r"^'(\w+)' gives an infinity", "invalid value (inf) encountered in {0}"),
    # Derivatives.
    (r"with has_aux '[^']*' must return \(value, aux\)", "with has_aux the function must return a two-element tuple."),
    (
        r"(grad|value_and_grad|jacrev|jacfwd): '[^']*' must return one real floating-point scalar, got ([cif])(\d+)\[",
        "{0} requires real-valued outputs (output dtype that is a sub-dtype of np.floating), but got "
        "{kind1}{2}. Gradient only defined for scalar-output functions.",
    ),
    (
        r"(grad|value_and_grad|jacrev|jacfwd|jvp): argument \S+ of '[^']*' is ([iu])(\d+)\[.*\]; derivatives need",
        "{0} requires real- or complex-valued inputs (input dtype that is a sub-dtype of np.inexact), but got "
        "{kind1}{2}. If you want to use Boolean- or integer-valued inputs, use vjp or set allow_int to True.",
    ),
    (
        r"was called without positional arguments; derivatives are",
        "differentiating with respect to argnums=0 requires at least 1 positional arguments to be passed by the "
        "caller, but got only 0 positional arguments.",
    ),
    (
        r"(grad|value_and_grad): with holomorphic=True argument \S+ of '[^']*' must be complex, got f(\d+)",
        "{0} with holomorphic=True requires inputs with complex dtype, but got float{1}.",
    ),
    (
        r"(jacfwd|jacrev|hessian): '[^']*' has an argument f(\d+)\[.*\]; expected complex ones",
        "{0} with holomorphic=True requires inputs with complex dtype, but got float{1}.",
    ),
    (
        r"(jacfwd|jacrev|hessian): '[^']*' has an argument c(\d+)\[.*\]; expected real floating-point ones",
        "{0} requires real-valued inputs (input dtype that is a sub-dtype of np.floating), but got complex{1}.",
    ),
    (
        r"jvp: the tangent of argument \S+ is (\w+)\[([^\]]*)\], the argument itself (\w+)\[\2\]",
        "primal and tangent arguments to jax.jvp do not match. dtypes must be equal, or in case of int/bool primal "
        "dtype the tangent dtype must be float0. Got primal dtype {type2} and tangent dtype {type0}.",
    ),
    (
        r"jvp: the tangent of argument \S+ is (\w+\[[^\]]*\]), the argument itself (\w+\[[^\]]*\])",
        "jvp called with different primal and tangent shapes; Got primal {type1} and tangent {type0}.",
    ),
    (
        r"jvp: primals and tangents must be tuples of arguments, got (\w+) and (\w+)",
        "primal and tangent arguments to jax.jvp must be tuples or lists; found {0} and {1}.",
    ),
    (
        r"vjp: the function that vjp gave for '([^']*)' was called with (\d+) arguments",
        "The function returned by `jax.vjp` applied to {0} was called with {1} arguments, but functions returned by "
        "`jax.vjp` must be called with a single argument corresponding to the single value returned by {0}.",
    ),
    (
        r"vjp: a cotangent is " + _T + ", the result " + _T,
        "unexpected JAX type (e.g. shape/dtype) for argument to vjp function: got {type0}, but expected {type1}.",
    ),
    (
        r"linear_transpose: a cotangent is " + _T + ", the result " + _T,
        "cotangent type does not match function output, expected {type1} but got {type0}",
    ),
    (
        r"linear_transpose: argument (\S+) of '[^']*' is (\w+)\[.*\]; derivatives need",
        "linear_transpose only supports [float or complex -> float or complex], and [integer -> integer] functions, "
        "but got {1}.",
    ),
    (
        r"custom_jvp: the rule of '([^']*)' must return \(value, tangent\), got (.*)",
        "Custom JVP rule for function {0} must produce a pair (list or tuple of length two) representing primal and "
        "tangent outputs, but got {1}",
    ),
    (
        r"custom_jvp: the rule of '([^']*)' must return a value and a tangent that are each",
        "Custom JVP rule for function {0} must produce primal and tangent outputs with equal container (pytree) "
        "structures",
    ),
    (
        r"custom_jvp: the rule of '[^']*' gives a tangent " + _T + ", expected " + _T,
        "Custom JVP rule must produce primal and tangent outputs with corresponding shapes and dtypes. Expected "
        "{type1} (tangent type of {type1}) but got {type0}.",
    ),
    (
        r"(custom_\w+): the arguments do not fit '([^']*)': (.*)",
        "The input arguments to the {0}-decorated function {1} could not be resolved to positional-only arguments. "
        "Binding failed with the error:\n{2}",
    ),
    (
        r"(custom_\w+): '([^']*)' takes '(\w+)' by keyword alone",
        "The input arguments to the {0}-decorated function {1} could not be resolved to positional-only arguments. "
        "Binding failed with the error:\nThe following keyword arguments could not be resolved to positions: {2}",
    ),
    (
        r"custom_jvp: '([^']*)' has no rule",
        "No JVP defined for custom_jvp function {0} using defjvp.",
    ),
    (r"custom_vmap: '([^']*)' has no rule", "No batching rule defined for custom_vmap function {0} using def_vmap."),
    (r"custom_vjp: '([^']*)' has no rules", "No VJP defined for custom_vjp function {0} using defvjp."),
    (
        r"custom_vjp: the backward rule of '([^']*)' gives a cotangent of its arguments (\[.*?\]) "
        + _T
        + ", expected "
        + _T
        + "; None is a zero",
        "Custom VJP bwd rule {0} must produce a tuple of the arguments' types: at output{1} the bwd rule returned a "
        "SymbolicZero of type {type2} for an input of type {type3}. Consider just returning a None here instead of a "
        "SymbolicZero object.",
    ),
    (
        r"custom_vjp: the backward rule of '[^']*' gives a cotangent of its arguments (\[.*?\])? ?"
        + _T
        + ", exp.* "
        + _T,
        "Custom VJP bwd rule must produce a tuple of the arguments' types: at output{0} the bwd rule produced an "
        "output of type {type1} corresponding to an input of type {type2}",
    ),
    (
        r"custom_vjp: the forward rule of '([^']*)'",
        "Custom VJP fwd rule for function {0} must produce a pair (list or tuple of length two) representing primal "
        "outputs and residuals",
    ),
    (
        r"closure_convert: .* was converted for",
        "The inputs to the closure produced by closure_convert must have the structure of the example arguments",
    ),
    # Batches.
    (
        r"vmap: out_axes has (-?\d+) for a result of (\d+) dimensions",
        "axis {0} is out of bounds for array of dimension {1}, and one more, which is mapped",
    ),
    (
        r"(vmap|pmap): (in_axes|out_axes) must hold integers and None, got (.*)",
        "{0} {1} must be an int, None, or a tuple of entries corresponding to the positional arguments, or a container "
        "of them, but got {2}.",
    ),
    (r"pmap: mapped sizes of '[^']*' differ", "pmap got inconsistent sizes for array axes to be mapped"),
    (
        r"vmap: no argument of '[^']*' is mapped, and axis_size is not given(?:: the arguments, (.*) and (.*), hold)?",
        "vmap must have at least one non-None value in in_axes or axis_size must be specified; vmap wrapped function "
        "must be passed at least one argument containing an array or axis_size must be specified, got empty "
        "*args={0} and **kwargs={1}",
    ),
    (r"pmap: no argument of '[^']*' is mapped", "pmap requires at least one argument with a mapped axis."),
    (
        r"(vmap|pmap): in_axes has (\d+) entries, but '[^']*' was called with (\d+) positional",
        "{0} in_axes must be an int, None, or a tuple of entries corresponding to the positional arguments passed to "
        "the function, but got len(in_axes)={1}, len(args)={2}",
    ),
    (
        r"custom_vmap: the rule of '[^']*' \((\w+)\) returns (.*), the function (.*)",
        "structure of output value and output batching specification returned by custom vmap rule ({0}) do not match. "
        "structure of output returned by custom vmap rule ({0}) does not match that of original custom-vmapped "
        "function: {1} and {2}",
    ),
    # References.
    (r"^Box.set: .* changes the structure", "type-changing mutations not allowed"),
    (
        r"(\w+): argument (\S+) and argument (\S+) of '[^']*' are the same reference",
        "only one reference to a mutable array may be passed as an argument to a function, but when tracing for {0} "
        "the mutable array reference appeared at both {1} and {2}",
    ),
    (
        r"argument (\S+) of '[^']*' is a reference .* also uses from outside",
        "closed over and passed as the argument {0}",
    ),
    (
        r"(\w+): the result.* of '[^']*' is a reference of type (\S+), made \(at (\S+?):(\d+)",
        "Function traced for {0} returned a mutable array reference of type {1}\n\nThe reference was created on line "
        "{2}:{3}",
    ),
    (
        r"(\w+): the result.* of '[^']*' is a reference of type (\S+), the argument (\S+);",
        "Function traced for {0} returned a mutable array reference of type {1}\n\nThe returned mutable array was "
        "passed in as the argument {2}",
    ),
    (
        r"mapped reference \d+ and mapped reference",
        "only one reference to a mutable array may be passed as an argument",
    ),
    (
        r"vmap: '[^']*' changes a reference of",
        "performing an addupdate operation with vmapped value: cannot write to an unbatched array reference",
    ),
    (
        r"a value that is differentiated is written into a reference",
        "Move the array reference to be an argument of the differentiated function",
    ),
    # Arrays and shardings.
    (
        r"the array (\w+\[.*?\]) was deleted|the array (\w+\[.*?\]) was donated",
        "Array has been deleted with shape={type0}. Array has been deleted.",
    ),
    (
        r"the part .* of an array of shape .* has shape (.*); expected (\(.*\))",
        "Expected shard shape {1} doesn't match the single device array shape {0}",
    ),
    (
        r"make_array_from_single_device_arrays: dtype is",
        "If `dtype` is provided to `jax.make_array_from_single_device_arrays`, it must match the dtype of the "
        "addressable shards.",
    ),
    (
        r"an array of shape .* is made of parts that are values of a function that is being traced",
        "jax.make_array_from_callback cannot be called within a traced context.",
    ),
    (
        r"make_array_from_single_device_arrays: 0 arrays for",
        "If the Array has no addressable shards, `dtype` must be provided via the `dtype` argument to "
        "`jax.make_array_from_single_device_arrays`.",
    ),
    (
        r"make_array_from_single_device_arrays: arrays must be a list or tuple, got '(\w+)'",
        "jax.make_array_from_single_device_arrays `arrays` argument must be a list or tuple, but got {0}",
    ),
    (
        r"make_array_from_single_device_arrays: the part .* lies on (\d+) devices",
        "When making an array from single-device arrays the input arrays must have one shard each. An argument array "
        "had {0} shard(s).",
    ),
    (
        r"make_array_from_single_device_arrays: the part .* is a value of a function that is being traced",
        "jax.make_array_from_single_device_arrays requires a list of concrete arrays as input.",
    ),
    (r"\d+ axis_types .* for the axes", "Number of axis names should match the number of axis_types"),
    (r"NamedSharding: .*unreduced=.* which is no axis of", "Unreduced axes not found in mesh"),
    (r"NamedSharding: .* has \d+ entries for an array of shape \(\)", "For scalars the PartitionSpec should be P()"),
    (
        r"(P\(.*\)) names '([^']*)', which is no axis of Mesh\((.*?)\)",
        "Resource axis: {1} of {0} is not found in mesh: ({2}).",
    ),
    (r"NamedSharding: expected a mesh and a PartitionSpec, got .* and None", "Unexpected None for a PartitionSpec"),
    (
        r"dimension (\d+) of an array of shape (\(.*?\)) has size (\d+), which (\d+) devices cannot share evenly",
        "the sharding implies that the global size of its dimension {0} should be divisible by {3}, but it is equal to "
        "{2} (full shape: {1}). The number of devices should evenly divide the shape.",
    ),
    (
        r"shard_map: argument (\S*) of '([^']*)': (P\(.*?\)) has (\d+) entries for an array of shape \(\)",
        "shard_map applied to the function '{1}' was given argument arrays with axis sizes that do not fit in_specs: "
        "{0} has the spec {2}, which has length {3}, for an array which has rank 0; consider using an in_specs entry "
        "of `P()`",
    ),
    (
        r"shard_map: (?:argument|result) ?(\S*) of '([^']*)': (P\(.*?\)) has (\d+) entries for",
        "shard_map applied to the function '{1}' was given specs which are too long: {2} which has length {3}",
    ),
    (
        r"device_put: .*: no mesh is given",
        "Please set a mesh via `jax.set_mesh` if a PartitionSpec is passed to device_put",
    ),
    (r"shard_map: no mesh is given", "The context mesh cannot be empty. Use `jax.set_mesh(mesh)`."),
    (r"shard_map: AbstractMesh\(\) has no devices", "shard_map requires a non-empty mesh."),
    (
        r"shard_map: AbstractMesh\(.*\) has no devices",
        "Please pass `jax.Array`s with a `NamedSharding` as input to `shard_map` when passing `AbstractMesh` to the "
        "mesh argument.",
    ),
    (r"out_shardings, result.*: AbstractMesh\(\) has no devices", "got an empty NamedSharding"),
    (
        r"with_sharding_constraint: AbstractMesh\(.*\) has no devices",
        "with_sharding_constraint with an AbstractMesh requires the input passed should be a `jax.Array` with a "
        "NamedSharding.",
    ),
    (r"scan: carry \d+ lies as", "scan body function carry input and carry output must have equal types"),
    (r"'([^']*)' is bound around the call \(by shard_map", "the sharding contains a manual axes ({0}) of mesh."),
    (
        r"shard_map: (in_specs|out_specs): .* names '([^']*)', over which the function does not run",
        "shard_map {0} refers to '{1}', which is not in axis_names",
    ),
    (
        r"the name of an axis is a string, got .* of type '(?:frozenset|set|list)'",
        "The axis name must be a tuple or a str.",
    ),
    (r"'([^']*)' is an axis that the shard_map around leaves alone", "Found an unbound axis name: {0}."),
    (r"axis_types are weft.AxisType", "axis_types passed to a mesh must be of type `jax.sharding.AxisType`."),
    (r"perm=(\[.*\]) is not a permutation", "`perm` does not represent a permutation: {0}"),
    (r"Mesh: .*axis names \(.*None", "Mesh axis names cannot be None."),
    (
        r"PartitionSpec: (\w+): the name of an axis is a string, got None",
        "{0} cannot contain None. All elements in {0} should refer to the mesh axes.",
    ),
    (
        r"PartitionSpec: (unreduced|reduced) names the axis '([^']*)', which is there already",
        "partitions cannot overlap with {0} axes passed to PartitionSpec. Got {0} axes: {1}",
    ),
    (
        r"PartitionSpec: the name of an axis is a string, got \(",
        "A tuple inside PartitionSpec cannot contain a nested tuple.",
    ),
    (
        r"jit: (\w+): (P\(.*\)) uses the axis '([^']*)' twice",
        "A single {0} specification can map every mesh axis to at most one positional dimension, but {1} has duplicate "
        "entries for `{2}`",
    ),
    (
        r"(P\(.*\)) uses the axis '([^']*)' twice",
        "A single NamedSharding specification can map every mesh axis to at most one positional dimension, but {0} has "
        "duplicate entries for `{1}`",
    ),
    (r"device_put: expected a device or a sharding, got (.*) of type", "Received invalid value for device_put: {0}"),
    (
        r"jit: in_shardings says nothing of arguments by keyword",
        "pjit does not support kwargs when in_shardings is specified.",
    ),
    (
        r"the program was compiled for argument \S+ as (.*); weft",
        "Computation was compiled for input shardings that disagree with the shardings of arguments passed to it. Here "
        "are the mismatches: {0}",
    ),
    (
        r"jit: in_shardings, argument (.*?), (\S+), lies as (.*), and is asked for as (.*); weft",
        "Sharding passed to jit does not match the sharding on the respective arg. Got sharding: {3},\narg sharding: "
        "{2} for arg {0} of type {1}",
    ),
    (
        r"has constraints or functions for several meshes",
        "Received incompatible devices for jitted computation. A function cannot change the size of the mesh that is "
        "around it.",
    ),
    (
        r"out_axes entry is None",
        "vmap has mapped output but out_axes is None; at vmap out_axes",
    ),
    (
        r"may differ between the devices along (.*?), but its out_specs entry, (.*), does not name",
        "shard_map applied to the function was given out_specs which require replication which can't be statically "
        "inferred given the mesh: out_specs is {1}, and the value varies along {0}",
    ),
    (
        r"dot: shapes (\(.*?\)) and (\(.*?\)) do not fit",
        "dot_general requires contracting dimensions to have the same shape, got {0} and {1}.",
    ),
    (
        r"Mesh: (\d+) axis names .* for devices in (\d+) dimensions",
        "Mesh requires the ndim of its first argument (`devices`) to equal the length of its second argument "
        "(`axis_names`), but got devices.ndim == {1} and len(axis_names) == {0}.",
    ),
    # Types and indices.
    (
        r"only integer arrays of no dimensions can be used as an index",
        "Only integer scalar arrays can be converted to a scalar index.",
    ),
    (r"ShapeDtype: shape must be a tuple of sizes, got -?\d+", "'int' object is not iterable"),
    (r"len\(\) of a type without dimensions", "len() of unsized object"),
    # Containers.
    (
        r"^\w+: (Expected an instance of|list arity|tuple arity|dictionary key|Custom node|namedtuple type)",
        "pytree structure error: the trees differ",
    ),
    (
        r"register: what takes a '.*' apart returned (.*); expected a pair",
        "The to_iterable function for a custom PyTree node should return a (children, aux_data) tuple, got {0}. The "
        "to_iterable function for a custom PyTree node should return a (children, aux_data) tuple where 'children' is "
        "iterable, got {0}",
    ),
    (
        r"ravel_pytree: a vector of (\w+) is needed, got (\w+)",
        "unravel function given array of dtype {1}, but expected dtype {0}",
    ),
    (
        r"flatten_one_level(?:_with_keys)?: a container is needed, got the leaf (.*)",
        "can't tree-flatten type of {0}",
    ),
    (
        r"a static part of an argument is an array",
        "Exception raised while checking equality of metadata fields of pytree.",
    ),
    (
        r"custom_root: (\w+) returns (.*), b is (.*)",
        "{0}() output pytree structure must match initial_guess, got {1} and {2}",
    ),
    (
        r"custom_linear_solve: (\w+) returns (.*), b is (.*)",
        "{0}() output pytree structure must match b: got {1}, expected {2}",
    ),
    # Checks.
    (
        r"debug.print: .* has no field for argument \d+",
        'Unused positional arguments to `jax.debug.print`. You may be passing an f-string (i.e, `f"..."`) as the '
        "format string.",
    ),
    (
        r"debug.print: .* has no field for argument '?(\w+)'?",
        "Unused keyword arguments to `jax.debug.print`: ['{0}']. You may be passing an f-string (i.e, `f\"...\"`) as "
        "the format string.",
    ),
    (
        r"(debug_check|check): pred must be one boolean, got (.*?)(?: of type '|; write pred)",
        "{0} takes a scalar pred as argument, got {1}",
    ),
    (
        r"check: what fills in the message must be arrays, got (.*) of type '([^']*)'",
        "Formatting arguments to checkify.check need to be PyTrees of arrays, but got {0} of type <class '{1}'>.",
    ),
]
