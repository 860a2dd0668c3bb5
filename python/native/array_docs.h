// What help() says of the members of weft.Array that are written in C++: shapes, dtypes, errors, an example that
// docs_test runs. The first line of a method's text is its signature, which Python takes apart.
#ifndef WEFT_PYTHON_NATIVE_ARRAY_DOCS_H_
#define WEFT_PYTHON_NATIVE_ARRAY_DOCS_H_

namespace weft::python::docs {

inline constexpr const char* kArray = R"(An immutable array in host memory, of any shape and one dtype.

weft.numpy.array and asarray make one; so do all operations. Its operators and methods are those of NumPy's arrays,
with the promotion of dtypes of weft.numpy. It converts to NumPy without a copy (numpy.asarray), through the buffer
protocol, and to other libraries through DLPack. x[...] reads as NumPy does; x.at[...] makes changed copies.

Raises:
    TypeError: on construction; on assignment to elements.

Example:
    >>> x = wnp.array([[1.0, 2.0], [3.0, 4.0]])
    >>> x @ x
    Array([[ 7., 10.],
           [15., 22.]], dtype=float32)
    >>> x.shape, x.dtype, float(x[1, 0])
    ((2, 2), dtype('float32'), 3.0)
)";

inline constexpr const char* kTracer =
    R"(A value of a function that is being traced: an Array with a shape and a dtype, whose numbers are not known.

Operations on it are recorded. Asking for its number (if, float(), numpy.asarray) raises weft.TracerError, and so does
any use after its trace has ended.

Example:
    >>> seen = []
    >>> traced = weft.make_ir(lambda x: (seen.append(x), x + 1)[1])(wnp.ones((2, 3)))
    >>> isinstance(seen[0], weft.Tracer)
    True
    >>> float(seen[0])  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    weft.UnexpectedTracerError: ...
)";

inline constexpr const char* kShape = R"(The dimensions, a tuple: integers, and weft.Dim where a size is a symbol.

Example:
    >>> wnp.ones((2, 3)).shape
    (2, 3)
)";
inline constexpr const char* kDType = R"(The NumPy dtype of the elements (bfloat16: that of the package ml_dtypes).

Example:
    >>> wnp.ones((2, 3)).dtype
    dtype('float32')
)";
inline constexpr const char* kNdim = R"(The number of dimensions.

Example:
    >>> wnp.ones((2, 3)).ndim
    2
)";
inline constexpr const char* kSize = R"(The number of elements; a weft.Dim where a dimension is a symbol.

Example:
    >>> wnp.ones((2, 3)).size
    6
)";
inline constexpr const char* kNbytes = R"(The size of all elements, in bytes.

Example:
    >>> wnp.ones((2, 3)).nbytes
    24
)";
inline constexpr const char* kItemsize = R"(The size of one element, in bytes.

Example:
    >>> wnp.ones((2, 3)).itemsize
    4
)";
inline constexpr const char* kT = R"(The array with its dimensions reversed.

Example:
    >>> wnp.ones((2, 3)).T.shape
    (3, 2)
)";
inline constexpr const char* kMT = R"(The array with its last two dimensions exchanged.

Raises:
    ValueError: the array has fewer than two dimensions.

Example:
    >>> wnp.ones((5, 2, 3)).mT.shape
    (5, 3, 2)
)";
inline constexpr const char* kWeak =
    R"(Whether the value came from Python numbers alone, so that it takes the dtype of what it meets.

Example:
    >>> weft.jit(lambda x: x)(1.0).weak_type
    True
)";
inline constexpr const char* kSharding = R"(How the array lies on devices: a weft.Sharding.

weft.device_put, shard_map and pmap say it; other results lie on the first device.

Example:
    >>> wnp.arange(3).sharding
    SingleDeviceSharding(device=CpuDevice(id=0))
)";
inline constexpr const char* kFullyAddressable = R"(Whether this process has all devices that hold a part.

Example:
    >>> wnp.arange(3).is_fully_addressable
    True
)";
inline constexpr const char* kFullyReplicated = R"(Whether every device that holds a part holds all of it.

Example:
    >>> wnp.arange(3).is_fully_replicated
    True
)";
inline constexpr const char* kShards =
    R"(What each device of this process holds of the array: a list of weft.Shard, with device, index, replica_id, data.

Example:
    >>> [shard.data for shard in wnp.arange(3).addressable_shards]
    [Array([0, 1, 2], dtype=int32)]
)";
inline constexpr const char* kType = R"(The type in the IR's spelling.

Example:
    >>> wnp.ones((3, 4)).type
    'f32[3,4]'
)";

inline constexpr const char* kAstype = R"(astype($self, dtype, copy=None)
--

The elements converted to a dtype.

Args:
    dtype: the new dtype, a name or a type (float: the default one). Floats become integers by truncation towards 0,
        limited to the integers' range, NaN becomes 0; complex numbers lose their imaginary part.
    copy: accepted, without effect: arrays never change.

Returns: array of the same shape.

Raises:
    TypeError: dtype is no dtype.

Example:
    >>> wnp.array([1.5, -2.5]).astype("int32")
    Array([ 1, -2], dtype=int32)
)";
inline constexpr const char* kReshape = R"(reshape($self, /, *shape, order='C')
--

The same elements in another shape.

Args:
    *shape: integers, or one tuple of them; one may be -1, which stands for what remains.
    order: "C": the last dimension counts fastest, in both; "F": the first.

Returns: array of that shape and the same dtype.

Raises:
    TypeError: the numbers of elements differ.

Example:
    >>> wnp.arange(6).reshape(2, -1)
    Array([[0, 1, 2],
           [3, 4, 5]], dtype=int32)
)";
inline constexpr const char* kTranspose = R"(transpose($self, /, *axes)
--

The dimensions in another order.

Args:
    *axes: for each dimension of the result the one it was, as integers or one tuple; none: reversed.

Returns: array of the same dtype.

Raises:
    ValueError: axes are no permutation of the dimensions.

Example:
    >>> wnp.ones((2, 3, 4)).transpose(1, 0, 2).shape
    (3, 2, 4)
)";
inline constexpr const char* kSum =
    R"(sum($self, axis=None, dtype=None, out=None, keepdims=False, initial=None, where=None)
--

The sum over axes.

Args:
    axis: an axis or a tuple of axes, negative from the end; None: all of them.
    dtype: the dtype to sum in. Otherwise that of the array; booleans and integers of fewer than 32 bits count in the
        default integer dtype.
    out: must be None: arrays never change.
    keepdims: whether the axes stay, with size 1.
    initial: a number that counts as one more element.
    where: booleans that broadcast with the array: which elements count.

Returns: array without the axes.

Raises:
    TypeError: out is given.
    IndexError: an axis is out of range.

Example:
    >>> wnp.array([[1, 2], [3, 4]]).sum(axis=0)
    Array([4, 6], dtype=int32)
)";
inline constexpr const char* kProd =
    R"(prod($self, axis=None, dtype=None, out=None, keepdims=False, initial=None, where=None)
--

The product over axes.

Args:
    axis: an axis or a tuple of axes, negative from the end; None: all of them.
    dtype: the dtype to multiply in, as for sum.
    out: must be None: arrays never change.
    keepdims: whether the axes stay, with size 1.
    initial: a number that counts as one more element.
    where: booleans that broadcast with the array: which elements count.

Returns: array without the axes.

Raises:
    TypeError: out is given.
    IndexError: an axis is out of range.

Example:
    >>> wnp.array([[1, 2], [3, 4]]).prod(axis=0)
    Array([3, 8], dtype=int32)
)";
inline constexpr const char* kItem = R"(item($self, /, *index)
--

One element as a Python number.

Args:
    *index: integers, one per dimension, or one that counts through the flattened array; none for an array of one
        element.

Returns: bool, int, float or complex.

Raises:
    TypeError: the array has several elements and no index is given.
    IndexError: the index is out of range.
    weft.TracerError: the number is not known, because the array is traced.

Example:
    >>> wnp.array([[1, 2], [3, 4]]).item(1, 0)
    3
)";
inline constexpr const char* kToBytes = R"(tobytes($self, order='C')
--

The memory of the elements, without gaps.

Args:
    order: 'C', row by row, or 'F', column by column.

Returns: bytes.

Raises:
    weft.TracerError: the numbers are not known, because the array is traced.

Example:
    >>> wnp.array([1, 256], "uint16").tobytes()
    b'\x01\x00\x00\x01'
)";

inline constexpr const char* kToList = R"(tolist($self, /)
--

The elements as nested lists of Python numbers; of an array without dimensions, the number.

Returns: list, or a number.

Raises:
    weft.TracerError: the numbers are not known, because the array is traced.

Example:
    >>> wnp.array([[1, 2], [3, 4]]).tolist()
    [[1, 2], [3, 4]]
)";
inline constexpr const char* kDevices = R"(devices($self, /)
--

The devices that hold a part of the array.

Returns: set of weft.Device.

Example:
    >>> wnp.arange(3).devices()
    {CpuDevice(id=0)}
)";
inline constexpr const char* kCopy = R"(copy($self, /)
--

An equal array with memory of its own.

Returns: array of the same shape and dtype.

Example:
    >>> x = wnp.arange(3)
    >>> x.copy()
    Array([0, 1, 2], dtype=int32)
)";
inline constexpr const char* kBlock = R"(block_until_ready($self, /)
--

Waits until the array is computed. Calls return when their work is done, so there is nothing to wait for.

Returns: the array.

Example:
    >>> wnp.arange(3).block_until_ready()
    Array([0, 1, 2], dtype=int32)
)";
inline constexpr const char* kCopyToHostAsync = R"(copy_to_host_async($self, /)
--

Puts the blocks of an array that is cut over devices together in host memory, for NumPy to find them. What one device
holds is there already.

Returns: nothing.

Example:
    >>> wnp.arange(3).copy_to_host_async()
)";
inline constexpr const char* kDelete = R"(delete($self, /)
--

Gives the memory back at once. Views of it (NumPy's, DLPack's) keep theirs.

Returns: None. Using the array afterwards raises RuntimeError.

Raises:
    TypeError: the array is traced.

Example:
    >>> x = wnp.arange(3)
    >>> x.delete()
    >>> x.is_deleted()
    True
)";
inline constexpr const char* kIsDeleted = R"(is_deleted($self, /)
--

Whether the array was deleted, or donated to a call (donate_argnums of weft.jit).

Returns: bool.

Example:
    >>> wnp.arange(3).is_deleted()
    False
)";

}  // namespace weft::python::docs
#endif  // WEFT_PYTHON_NATIVE_ARRAY_DOCS_H_
