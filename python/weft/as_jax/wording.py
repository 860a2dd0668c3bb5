"""JAX's words for an error, after Weft's: programs look for them (`pytest.raises(match=...)`), and people search.

An entry is a pattern of Weft's message and what JAX says there; {0}, {1} are what the pattern's groups found, {type0} a
type of Weft's as JAX writes it (f32[3] -> float32[3])."""

from __future__ import annotations

import re
from typing import Any

from .. import errors
from .._core.errors import MissingRule
from .wording_of_arrays import WORDS

_DTYPES = {"f": "float", "i": "int", "u": "uint", "c": "complex", "bf": "bfloat"}
_T = r"((?:\w+)\[[^\]]*\])"  # a type
_V = r"'([^']*)'"  # a name

_WORDS: list[tuple[str, str]] = [
    # Arguments and results of functions.
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
        r"the program was compiled for \d+ argument",
        "Function compiled with input pytree does not match the input pytree it was called with.",
    ),
    (
        r"the result (\[.*?\]|)(?: |)of '([^']*)' is (.*) of type '([^']*)'; a traced function returns",
        "function {1} returned a value of type <class '{3}'> at output component {0}, which is not a valid JAX type. "
        "Output from batched function {2} with type <class '{3}'> is not a valid JAX type",
    ),
    (
        r"(\w+): (\w+) is no prefix of the structure of the values",
        "{0} {1} specification must be a tree prefix of the corresponding value",
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
    (
        r"an index of a traced value: " + _T,
        "The __index__() method was called on traced array with shape {type0}. Shapes must be 1D sequences of concrete "
        "values of integer type.",
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
        r"jvp: tangents are .*, primals ",
        "primal and tangent arguments to jax.jvp must have the same tree structure",
    ),
    (r"jvp: primals and tangents must be tuples", "primal and tangent arguments to jax.jvp must be tuples or lists"),
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
        r"custom_vjp: the backward rule of '[^']*' gives a cotangent of its arguments (\[.*?\])? ?"
        + _T
        + ", exp.* "
        + _T,
        "Custom VJP bwd rule must produce a tuple of the arguments' types: at output{0} the bwd rule produced an "
        "output of type {type1} corresponding to an input of type {type2}",
    ),
    (
        r"custom_vjp: the backward rule of '([^']*)' must return a tuple",
        "Custom VJP bwd rule for function {0} must produce a tuple of the same structure as the arguments, must "
        "produce an output with the same container (pytree) structure as the args tuple of the primal function",
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
        r"vmap: in_axes maps axis (-?)(\d+) of argument .*, which is (\w+)\[(.*?)\], of (\d+) dimensions",
        "vmap was requested to map its argument along axis {0}{1}, which implies that its rank should be at least {1}, "
        "but is only {4} (its shape is ({3}))",
    ),
    (
        r"(vmap|pmap): (in_axes|out_axes) must hold integers and None, got (.*)",
        "{0} {1} must be an int, None, or a tuple of entries corresponding to the positional arguments, or a container "
        "of them, but got {2}.",
    ),
    (r"(vmap|pmap): mapped sizes of '[^']*' differ", "{0} got inconsistent sizes for array axes to be mapped"),
    # References.
    (r"argument (\S+) and argument (\S+) of '[^']*' are the same reference", "appeared at both {0} and {1}"),
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
        r"mapped reference \d+ and mapped reference",
        "only one reference to a mutable array may be passed as an argument",
    ),
    (r"vmap: '[^']*' changes a reference of", "cannot write to an unbatched array reference"),
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
        r"make_array_from_single_device_arrays: 0 arrays for",
        "If the Array has no addressable shards, `dtype` must be provided via the `dtype` argument to "
        "`jax.make_array_from_single_device_arrays`.",
    ),
    (r"\d+ axis_types .* for the axes", "Number of axis names should match the number of axis_types"),
    (r"Mesh: .*axis names \(.*None", "Mesh axis names cannot be None."),
    (r"NamedSharding: .*unreduced=.* which is no axis of", "Unreduced axes not found in mesh"),
    (
        r"PartitionSpec: the name of an axis is a string, got \(",
        "A tuple inside PartitionSpec cannot contain a nested tuple.",
    ),
    (r"device_put: expected a device or a sharding, got (.*) of type", "Received invalid value for device_put: {0}"),
    (
        r"has constraints or functions for several meshes|operands lie on several sets of devices",
        "Received incompatible devices for jitted computation.",
    ),
    (
        r"out_axes entry is None",
        "vmap has mapped output but out_axes is None; at vmap out_axes",
    ),
    (
        r"may differ between the devices along '(\w+)', but its out_specs entry",
        "shard_map applied to the function was given out_specs which require replication which can't be statically "
        "inferred given the mesh: along axis {0}",
    ),
    (
        r"dot: shapes (\(.*?\)) and (\(.*?\)) do not fit",
        "dot_general requires contracting dimensions to have the same shape, got {0} and {1}.",
    ),
    # Containers.
    (
        r"flatten_one_level(?:_with_keys)?: a container is needed, got the leaf (.*)",
        "can't tree-flatten type of {0}",
    ),
    (
        r"a static part of an argument is an array",
        "Exception raised while checking equality of metadata fields of pytree.",
    ),
    # Checks.
    (r"debug_check: pred must be one boolean", "debug_check takes a scalar pred"),
    (r"check: what fills in the message must be arrays", "Formatting arguments to checkify.check must be arrays"),
]
_COMPILED = [(re.compile(pattern, re.DOTALL), words) for pattern, words in [*_WORDS, *WORDS]]


def _type(text: str) -> str:
    """f32[3] -> float32[3]."""
    found = re.fullmatch(r"(bf|[fiuc])(\d+)(.*)", text, re.DOTALL)
    return f"{_DTYPES[found[1]]}{found[2]}{found[3]}" if found else text


def in_jax_words(message: str) -> str:
    """What JAX says where Weft says this; empty where the table has no entry."""
    head = message.split("\n  at ", 1)[0]
    for pattern, words in _COMPILED:
        found = pattern.search(head)
        if found:
            groups = [group or "" for group in found.groups()]
            named = {f"type{i}": _type(text) for i, text in enumerate(groups)}
            kinds = {f"kind{i}": _DTYPES.get(text, text) for i, text in enumerate(groups)}
            return words.format(*groups, **named, **kinds)
    return ""


def _mismatches(message: str) -> str:
    """Of arguments that do not fit a compiled program: JAX lists all."""
    found = re.findall(r"for argument (\S+) (\S+), got ([^;\s]+)", message.split("\n  at ", 1)[0])
    if not found or "the program was compiled for argument" not in message:
        return ""
    lines = [f"Argument '{name}' compiled with {_type(a)} and called with {_type(b)}" for name, a, b in found]
    return (
        "Argument types differ from the types for which this computation was compiled. The mismatches are:\n"
        + "\n".join(lines)
    )


def _text(error: BaseException) -> str:
    message = " ".join(map(str, error.args)) if len(error.args) == 1 else str(error.args)
    words = in_jax_words(message) or _mismatches(message)
    if not words:
        return message
    head, separator, stack = message.partition("\n  at ")
    return f"{head}\nJAX says: {words}{separator}{stack}"


def install() -> None:
    """From now on the exceptions that Weft alone raises say it in JAX's words, too."""
    kinds: list[Any] = [MissingRule, *(getattr(errors, name) for name in errors.__all__)]
    for kind in kinds:
        if kind.__module__ != "builtins":
            kind.__str__ = _text
