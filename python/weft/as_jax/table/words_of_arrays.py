"""JAX's words for errors about arrays, indices, axes, loops and random keys; words.py says how to read them."""

from __future__ import annotations

_SHAPES = "Shapes must be 1D sequences of concrete values of integer type, got {0}."
_CONCRETE = "Abstract tracer value encountered where concrete value is expected."

# Entries for messages that more general ones fit, too.
FIRST: list[tuple[str, str]] = [
    (
        r"^(i?[hr]?fft): axis: an integer is needed, got (.*)",
        "jax.numpy.fft.{0} does not support multiple axes. Please use jax.numpy.fft.{0}n. Got axis = {1}.",
    ),
    (
        r"^NamedSharding: dimension (\d+) of an array of shape (\(.*?\)) has size (\d+), which (\d+) devices cannot",
        "The sharding has a mesh axis of size {3} which does not evenly divide the dimension size {2} of dimension {0} "
        "of shape {1}. The number of devices should evenly divide the shape: it implies that the global size of its "
        "dimension {0} should be divisible by {3}.",
    ),
    (r"^no buffer format for bf16", "Buffers of type BF16 are not supported by the Python buffer protocol."),
    (r"^arange: (start|stop|step): .* of a traced value", f"{_CONCRETE} It arose in the jnp.arange argument '{{0}}'."),
    (r"^(\w+): the (\w+) of a slice: .* of a traced value", f"{_CONCRETE} It arose in slice {{1}} of jnp.{{0}}."),
    (
        r"^one_hot: num_classes: .* of a traced value",
        f"{_CONCRETE} The error arose in jax.nn.one_hot argument `num_classes`.",
    ),
    (
        r"^scan: unroll: .* of a traced value",
        "The `unroll` argument to `scan` expects a concrete `int` or `bool` value.",
    ),
    (r"^scan: length: .* of a traced value", "The `length` argument to `scan` expects a concrete `int` value."),
    (
        r"^ravel_multi_index: .* of a traced value",
        "The error occurred because ravel_multi_index was jit-compiled with mode='raise'. Use mode='wrap' or "
        "mode='clip' instead.",
    ),
    (
        r"^choose: .* of a traced value",
        "The error occurred because jnp.choose was jit-compiled with mode='raise'. Use mode='wrap' or mode='clip' "
        "instead.",
    ),
    (
        r"^(\w+):.* where must be None or a boolean array, got (.*)",
        "jnp.{0}: where must be None or a boolean array; got {1}",
    ),
    (
        r"^conv_general_dilated: lhs and rhs must have the same number of dimensions",
        "conv_general_dilated lhs and rhs must have the same number of dimensions",
    ),
    (
        r"conv_general_dilated: padding must be .* got (.*)",
        "padding argument to conv_general_dilated should be a string or a sequence of (low, high) pairs, got {0}",
    ),
    (
        r"^broadcast_shapes: (.*) is no shape",
        f"{_SHAPES} Only non-negative indices are allowed.",
    ),
    (
        r"^pure_callback cannot be differentiated",
        "Pure callbacks do not support JVP. Please use `jax.custom_jvp` to use callbacks while taking gradients.",
    ),
    (r"^io_callback cannot be differentiated", "IO callbacks do not support JVP."),
    (r"^transpose: io_callback is not linear", "IO callbacks do not support transpose."),
    (r"^sici: x must be real", "Argument `x` to sici must be real-valued."),
    (r"^convolution_matrix: a must be a vector", "a must be at least 1-dimensional"),
    (
        r"^(?:cg|bicgstab|gmres): a matrix must be square, got shape (.*)",
        "linear operator must be a square matrix, but has shape: {0}",
    ),
    (
        r"^(?:cg|bicgstab|gmres): A must be a function",
        "linear operator must be either a function or ndarray",
    ),
    (r"^cg: x0 and b must have the same shapes", "x0 and b must have matching shape"),
    (
        r"^custom_linear_solve: (\w+) returns (.*) where b has (.*)",
        "{0}() output shapes must match b, got {1} and {2}",
    ),
    (
        r"^reverse mode through custom_linear_solve",
        "transpose_solve required for backwards mode automatic differentiation",
    ),
    (
        r"^forward mode through custom_vjp",
        "can't apply forward-mode differentiation (jvp) to a custom_vjp function: "
        "can't apply forward-mode autodiff (jvp) to a custom_vjp function.",
    ),
    (
        r"^(?!linear_transpose).*argument .* of '.*' is (\w+)\[.*\]; derivatives need a float or complex dtype",
        "grad requires real- or complex-valued inputs (input dtype that is a sub-dtype of np.inexact), but got "
        "{type0}.",
    ),
    (r"^ravel_multi_index: an index is out of range", "invalid entry in coordinates array"),
    (
        r"^cumulative_(?:sum|prod): give the axis for an array of (\d+) dimensions",
        "The input array has rank {0}, however axis was not set to an explicit value. The axis argument is only "
        "optional for one-dimensional arrays.",
    ),
    (r"^pad: mode '(.*?)' takes no argument", "unsupported keyword arguments for mode '{0}'"),
    (r"^pad: mode '(.*?)'", "Unimplemented padding mode '{0}' for np.pad."),
    (r"^clip: complex numbers have no order", "Complex values have no ordering and cannot be clipped."),
    (r"^hypot: .*complex", "jnp.hypot is not well defined for complex-valued inputs."),
    (
        r"^arange: complex numbers have no order",
        "Passing complex start/stop/step to jnp.arange is no longer supported.",
    ),
    (
        r"^an index must not be a list",
        "Using a non-tuple sequence for multidimensional indexing is not allowed; use `arr[array(seq)]` instead of "
        "`arr[seq]`, or `arr[tuple(seq)]` instead of `arr[seq]`. See https://github.com/jax-ml/jax/issues/4564 for "
        "more information.",
    ),
    (
        r"index (-?\d+) is out of bounds for axis (\d+) of size (\d+)",
        "index {0} out of bounds for axis {1} with size {2} (normalize_indices=True)",
    ),
    (
        r"^(r?fftfreq): n must be an integer, got (.*)",
        "The n argument of jax.numpy.fft.{0} only takes an int. Got n = {1}.",
    ),
    (
        r"^(r?fftfreq): d must be a number, got (.*)",
        "The d argument of jax.numpy.fft.{0} only takes a single value. Got d = {1}.",
    ),
    (r"^fori_loop: expected a function, got (.*) of", "lax.fori_loop: body_fun argument should be callable, got {0}."),
    (
        r"^while_loop: expected a function, got (.*) of",
        "lax.while_loop: cond_fun argument should be callable, got {0}.",
    ),
    (r"^associative_scan: fn must be a function", "lax.associative_scan: fn argument should be callable."),
    (r"^(switch|cond|scan|associative_scan): .*expected a function, got (.*) of", "lax.{0}: {1} should be callable."),
    (
        r"rot90: axis \d+ is out of range for an array of (\d)",
        "rot90 requires its first argument to have ndim at least two, but got first argument of {0}",
    ),
    (
        r"^PRNGKey: random\.key: the seed must be one integer, got key\[",
        "PRNGKey accepts a scalar seed, but was given a PRNG key.",
    ),
    (
        r"^PRNGKey: random\.key: the seed must be one integer, got (\w+\[.+\])",
        "PRNGKey accepts a scalar seed, but was given an array of shape {0} != (). Use jax.vmap for batching",
    ),
    (r"random\.key: the seed must be one integer, got key\[", "key accepts a scalar seed, but was given a PRNG key."),
    (
        r"random\.key: the seed must be one integer, got (\w+\[.+\])",
        "PRNGKey accepts a scalar seed, key accepts a scalar seed, but was given an array of shape {0} != (). Use "
        "jax.vmap for batching",
    ),
    (
        r"random\.(\w+): impl and dtype say the same",
        "Cannot specify both `impl` and `dtype` arguments to jax.random.{0}",
    ),
    (r"random: expected a key", "JAX encountered invalid PRNG key data: expected key_data.dtype == uint32"),
    (
        r"tensordot: (\d+) axes of arrays of shapes (\(.*?\)) and (\(.*?\))",
        "Number of tensordot axes (axes {0}) exceeds input ranks ({1} and {2})",
    ),
    (
        r"tensordot: (\d+) axes of a and (\d+) of b",
        "tensordot requires axes lists to have equal length, got {0} and {1}.",
    ),
    (
        r"tensordot: axes must be two axes or two lists of axes, got (.*) and (.*)",
        "tensordot requires both axes lists to be either ints, tuples or lists, got {0} and {1}",
    ),
    (
        r"tensordot: axes must be an integer or a pair",
        "tensordot axes argument must be an int, a pair of ints, or a pair of lists/tuples.",
    ),
    (r"array: an array of dtype object has no counterpart", "None is not a valid value for jnp.array"),
    (r"pad: mode (\d+|None)$", "Unimplemented padding mode '{0}' for np.pad."),
    (
        r"an index array must hold integers or booleans, got (\S+)",
        "Indexer must have integer or boolean type, got indexer with type {type0}",
    ),
    (r"pad: lo=.* leave a negative size", "Dimension size after padding is not at least 0"),
    (r"switch: no functions to choose from", "Empty branch sequence"),
    (r"pad: interior=.*; expected 0 or more", "interior padding in padding_config must be nonnegative"),
    (r"cg: .*(?:key|structure)", "x0 and b must have matching tree structure"),
    (
        r"reduce_window: init_value must be a number, got shape (\(.*?\))",
        "reduce_window expected init_values to be scalars but init_values have shapes [{0}].",
    ),
    (
        r"reduce_window: (\w+) must be positive, got (.*)",
        "reduce_window {0} must have every element be positive, got {1}",
    ),
    (r"reduce_window: the function returns", "reduce_window output must have the same tree structure as the operands."),
    (r"reduce: init_values must be numbers", "reduce found non-scalar initial value"),
    (
        r"reduce: operands are .*, init_values .*; expected one structure",
        "Operands must have the same tree structure as init_values",
    ),
    (r"conv_general_dilated: .*ranks", "conv_general_dilated lhs and rhs must have the same number of dimensions"),
]

WORDS: list[tuple[str, str]] = [
    (
        r"^reshape: an array of shape (\(.*?\)) \((\d+) elements?\) does not fit (\(.*?\)) \((\d+) elements?\)",
        "cannot reshape array of shape {0} (size {1}) into shape {2} (size {3})",
    ),
    (
        r"^reshape: more than one dimension of (\(.*\)) is -1",
        "can only specify one unknown axis size with a `-1` value, got {0}",
    ),
    (
        r"an array of dtype \[\('float0', 'V'\)\]",
        "float0s do not support any operations by design because they are not compatible with non-boolean arrays.",
    ),
    (
        r"(?:int|float|complex)\(\): only arrays of (?:one element|no dimensions)",
        "Only scalar arrays can be converted to Python scalars.",
    ),
    # dtypes.
    (
        r"(\w+): random keys and tapes have no numeric value; got key and (\w+);",
        "{0} does not accept dtypes key<fry>, {type1}.",
    ),
    (
        r"(\w+): random keys and tapes have no numeric value; got (\w+) and key;",
        "{0} does not accept dtypes {type1}, key<fry>.",
    ),
    (
        r"(\w+): random keys and tapes have no numeric value; got key;",
        "{0} does not accept dtype key<fry>. Accepted dtypes are subtypes of integer, floating, complexfloating. "
        "Cannot interpret 'key<fry>' as a data type",
    ),
    (
        r"no common dtype for (\w+) and (\w+)",
        "Input dtypes {type0} and {type1} have no available implicit dtype promotion path. 8-bit floats do not support "
        "implicit promotion, 4-bit floats do not support implicit promotion",
    ),
    (
        r"dtypes (\S+).* and (\S+).* meet, and numpy_dtype_promotion is 'strict'",
        "Input dtypes ({type0}, {type1}) have no available implicit dtype promotion path when "
        "jax_numpy_dtype_promotion=strict. Try explicitly casting inputs to the desired output type.",
    ),
    (r"random\.\w+: the seed must be one integer, got \w+\[\]", "PRNG key seed must be an integer."),
    (
        r"dtype: (\d+) is not a dtype",
        "data type {0} not understood. Did you accidentally write `jax.numpy.zeros(2, 3)`, `jax.numpy.ones(2, 3)` or "
        "`jax.numpy.empty(2, 3)` when you meant `jax.numpy.zeros((2, 3))`, `jax.numpy.ones((2, 3))` or "
        "`jax.numpy.empty((2, 3))`",
    ),
    (
        r"dtype: (.*) is not a dtype",
        "data type {0} not understood. JAX only supports number, bool, and string dtypes.",
    ),
    (r"(\w+): dtype must be a float or complex dtype, got", "{0}: dtype must be a subclass of float or complex"),
    (
        r"fft: \w+ of an array of shape (\(.*?\)): it has fewer dimensions than fft_lengths (.*)",
        "FFT input shape {0} must have at least as many input dimensions as fft_lengths {1}.",
    ),
    (
        r"fft: I?(R?FFT) of an array of shape (\(.*?\)): its last sizes must be fft_lengths (.*)",
        "{0} input shape {1} minor dimensions must be equal to fft_lengths {2}",
    ),
    (
        r"fft: (\w+) of an array of shape (\(.*?\)): its last sizes must be but the last of fft_lengths (.*)",
        "{0} input shape {1} minor dimensions must be equal to all except the last fft_length, got fft_lengths={2}",
    ),
    (r"fft: operand is c\d+\[.*kind \"rfft\"", "only real valued inputs supported for rfft"),
    (r"fft: operand is (\w+)\[.*kind \"rfft\"", "RFFT input must be float32 or float64, got {type0}"),
    (r"(\w+): operand.* is (c\d+)\[", "{0} does not accept dtype {type1}. Argument `x` to {0} must be real-valued."),
    (r"(\w+): operands are booleans", "{0} does not accept dtype bool."),
    (r"index_dtype must be an integer dtype", "index_dtype must be an integer type"),
    (
        r"random\.(\w+): an unsigned 8- to 64-bit dtype is needed, got (\S+)",
        "dtype argument to `{0}` must be an unsigned int dtype, got {1}",
    ),
    (r"random\.(\w+): .*dtype is needed, got (\S+)", "dtype argument to `{0}` must be a float dtype, got {1}"),
    (
        r"the Python integer (-?\d+) does not fit i32",
        "Python int {0} too large to convert to int32. int too big to convert. Python integer {0} out of bounds for "
        "int32",
    ),
    # Indices.
    (
        r"too many indices: (\d+) for an array of (\d+) dimensions",
        "Too many indices: array is {1}-dimensional, but {0} were indexed. The input must be non-scalar to take a "
        "cumulative operation.",
    ),
    (
        r"a boolean mask of shape (\(.*?\)) does not fit an array of shape (\(.*?\))",
        "boolean index did not match shape of indexed array: index {0}, array {1}",
    ),
    (
        r"an index must be an integer, slice.* got '(.*)'",
        "JAX does not support string indexing; got idx={0}",
    ),
    (
        r"an index must be an integer, slice.* got (\S+)",
        "Indexer must have integer or boolean type, got indexer with type {0}.",
    ),
    (
        r"axis (\d+) of shape (\(.*?\)) has size 0, so no index",
        "index is out of bounds for axis {0} with size 0; cannot do a non-empty jnp.take() from an empty axis.",
    ),
    (
        r"take_along_axis: indices must be integers, got (\S+)",
        "take_along_axis indices must be of integer type, got {0}",
    ),
    # Axes and shapes.
    (
        r"axis (-?\d+) is given twice",
        "duplicate value in 'axis': ({0}, {0}). dimensions are not unique. repeated axis. axis1 and axis2 can not be "
        "same.",
    ),
    (r"axis (-?\d+) is out of range for an array of (\d+) dim", "axis {0} is out of bounds for array of dimension {1}"),
    (
        r"squeeze: axis .* of an array of shape (.*) has size \d+, not 1",
        "cannot select an axis to squeeze out which has size not equal to one, got shape={0}",
    ),
    (r"axis: an integer is needed, got (\S+)", "'{0}' object cannot be interpreted as an integer"),
    (
        r"(\w+): dims=(\S+) is not strictly increasing",
        "duplicate value in 'axes' of {0}: {1}; {0}_in_dim broadcast_dimensions must not contain duplicates",
    ),
    (r"broadcast: dims=\S+ has \d+ entries for operand", "broadcast_dimensions must have length equal to operand ndim"),
    (
        r"broadcast: dims holds|broadcast_in_dim: broadcast_dimensions .* are not all dimensions",
        "broadcast_in_dim broadcast_dimensions must be a subset of output dimensions. target broadcast shape must have "
        "equal or higher rank to the operand shape",
    ),
    (
        r"broadcast: dimension \d+ of operand .* which is neither 1 nor",
        "operand dimension sizes must either be 1, or be equal to their corresponding dimensions in the target "
        "broadcast shape",
    ),
    (
        r"the value of an indexed update: an array of shape (\(.*?\)) does not broadcast to (\(.*?\))",
        "Cannot broadcast to shape with fewer dimensions: arr_shape={0} shape={1}",
    ),
    (
        r"dot_product_attention: (\d+) heads of keys do not divide (\d+) heads of queries",
        "The number of query heads must be a multiple of key/value heads, but got {1} vs {0}",
    ),
    (
        r"matmul: shapes .* do not fit: (\d+) columns against (\d+) rows",
        "dot_general requires contracting dimensions to have the same shape, got ({0},) and ({1},).",
    ),
    (
        r"broadcast_to: an array of shape (\(.*?\)) does not broadcast to (\(.*?\))",
        "Incompatible shapes for broadcasting: {0} and requested shape {1}. Cannot broadcast to shape with fewer "
        "dimensions.",
    ),
    (r"(?:an integer is needed|a size must be an integer), got (.*)", _SHAPES),
    (r"split: indices_or_sections must be an integer, got Tracer", _CONCRETE),
    (r"split: sizes .*-", "Sizes passed to split must be nonnegative"),
    (
        r"split: sizes \((\d+),\) do not add up to (\d+) along axis (\d+)",
        "Sum of sizes {0} must be equal to dimension {2} of the operand shape, {1}",
    ),
    (
        r"pad: operand 1 .* is (\S+); expected",
        "padding_value must be a scalar; got {0}. reduce_window expected init_values to be scalars",
    ),
    (r"pad: mode '(\w+)' takes no argument '(\w+)'", "unsupported keyword arguments for mode '{0}': ['{1}']"),
    (
        r"(arg\w+): axis .* has no elements",
        "attempt to get {0} of an empty sequence. require non-empty reduced dimension.",
    ),
    (r"initial must be a number, got an array of shape (.*)", "initial value must be a scalar. Got array of shape {0}"),
    (
        r"top_k: dimension .* has more positions than i32",
        "top_k returns int32 indices, which will overflow for array dimensions larger than the maximum int32.",
    ),
    (r"conv: strides=", "conv_general_dilated window and window_strides must have the same number of dimensions"),
    (
        r"pad: lo=\S+ has (\d+) entries; expected one for each of (\d+)",
        "length of padding_config must equal the number of axes of operand, got padding_config of length {0} for "
        "{1} dimensions",
    ),
    # vectorize.
    (
        r"vectorize: argument \d+ has shape (\(.*?\)), but",
        "input with shape {0} does not have enough dimensions for all core dimensions",
    ),
    (r"vectorize: '(\w+)' of .* is both (\d+) and (\d+)", "inconsistent size for core dimension '{0}': {1} vs {2}"),
    (r"vectorize: arguments (\S+) are None, .* for '(.*)'", "Cannot pass None at locations {0} with signature='{1}'"),
    (
        r"vectorize: excluded= may hold",
        "jax.numpy.vectorize can only exclude integer or string arguments",
    ),
    (
        r"vectorize: the signature .* has (\d+) arguments, got (\d+)",
        "wrong number of positional arguments: expected {0}, got {1}",
    ),
    (
        r"vectorize: '.*' has (\d+) results, the function 1",
        "output must be a tuple. wrong number of output arguments: expected {0}, got 1",
    ),
    (
        r"vectorize: '.*' has (\d+) results, the function (\d+)",
        "wrong number of output arguments: expected {0}, got {1}",
    ),
    (r"vectorize: a result has shape (\(.*?\)), but", "output shape {0} does not match core dimensions"),
    # Loops and branches.
    (r"cond: expected an array or a number, got None", "cond predicate is None"),
    (
        r"cond: expected an array or a number, got '(.*)' of type '(str)'",
        "Pred must be a scalar, got {0} of type <class '{1}'>",
    ),
    (
        r"cond: expected an array or a number, got (\(.*\)) of type '(tuple)'",
        "Pred must be a scalar, got {0} of type <class '{1}'>",
    ),
    (r"cond: expected an array or a number, got (.*) of", "Pred type must be either boolean or number, got {0}"),
    (r"switch: the index must be a single integer, got '(.*)'", "Index type must be an integer, got {0}."),
    (
        r"switch: the index must be a single integer, got (\(.*\))",
        "Index type must be an integer, got {0}. Branch index must be scalar, got {0} of shape (2,).",
    ),
    (r"switch: the index must be a single integer, got (.*)", "Index type must be an integer, got {0}"),
    (r"scan: xs.* is a single number", "scan got value with no leading axis to scan over"),
    (r"scan: '.*' must return a pair \(carry, y\), got (.*)", "scan body output must be a pair, got {0}."),
    (r"scan: unroll must not be negative", "`unroll` must be a `bool` or a positive `int`."),
    (
        r"platform_dependent: there is no function for '(\w+)'",
        "translation rule for platform_index not found for platform {0}",
    ),
    (
        r"forward mode through custom_vjp",
        "can't apply forward-mode differentiation (jvp) to a custom_vjp function.",
    ),
    # Random numbers.
    (
        r"random\.\w+: the seed must be one integer, got (.*)",
        "PRNGKey accepts a scalar seed, but was given an array of {0}",
    ),
    (
        r"random\.(\w+): one key is needed, got an array of keys (.*)",
        "{0} accepts a single key, but was given a key array of shape {1}. Use jax.vmap for batching.",
    ),
    (r"impl must be one of .* got '(.*)'", 'unrecognized PRNG implementation "{0}"'),
    (r"impl must be one of .* got (.*)", "unrecognized type {0} for specifying PRNG implementation."),
    (r"random keys are no numbers", "JAX array with PRNGKey dtype cannot be converted to a NumPy array."),
    (
        r"categorical: \d+ different indices of",
        "Number of samples without replacement cannot exceed number of categories.",
    ),
    # Matrices, transforms, images.
    (r"norm: of vectors there is no norm '(.*?)'", "Invalid order '{0}' for vector norm."),
    (r"two coefficients or more are needed", "The length of `a` along the last axis must be at least 2."),
    (r"convolution_matrix: n must be positive, got (\S+)", "n must be a positive integer, got {0}."),
    (
        r"leslie: f must have .* got ([2-9]|\d\d+) and",
        "Incorrect lengths for f and s. Expected the length of s to be one less than the length of f along the last "
        "axis.",
    ),
    (r"leslie: f must have", "The length of f along the last axis must be one more than that of s."),
    (r"convolution_matrix: mode must be", "mode must be one of ('full', 'valid', 'same')"),
    (r"convolution_matrix: a must have", "len(a) must be at least 1."),
    (r"hadamard: n must be a power of 2", "n must be a positive power of 2."),
    (r"helmert: n must be positive", "n must be a positive integer."),
    (r"(?:inv)?pascal: kind must be", "Expected kind to be one of: 'lower', 'upper', 'symmetric'."),
    (r"map_coordinates: order must be 0 or 1", "jax.scipy.ndimage.map_coordinates currently requires order<=1"),
    (
        r"minimize: args must be a tuple, got (.*)",
        "args argument to jax.scipy.optimize.minimize must be a tuple, got {0}",
    ),
    (
        r"variance_scaling: two dimensions or more are needed, or .* got shape \((\d+),\)",
        "Can't compute input and output sizes of a 1-dimensional weights tensor with default in_axis. Must be at least "
        "2D or specify in_axis explicitly.",
    ),
    (r"^(i?[hr]?fft\w*) (only supports|does not support) (.*)", "jax.numpy.fft.{0} {1} {2}"),
    (r"'\w+' gives an infinity", "invalid value (inf) encountered"),
]
