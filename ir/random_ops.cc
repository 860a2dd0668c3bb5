#include "ir/random_ops.h"

#include "ir/prims/threefry.h"

namespace weft {
namespace {

const Type kWord{DType::kU32, {}, {}};

// u64 or i64 scalars: (high word, low word); narrower integers: (0, value).
std::pair<Atom, Atom> Halves(Builder& b, const Atom& x) {
  const DType dtype = b.DTypeOf(x);
  const Atom low = Convert(b, x, DType::kU32);
  if (ByteWidth(dtype) < 8) return {Zeros(b, b.TypeOf(low)), low};
  return {Convert(b, b.Emit1(FindPrim("shift_right_logical"), {x, Atom::Scalar(dtype, 32)}), DType::kU32), low};
}

void CheckKey(Builder& b, const Atom& key, const char* what) {
  const Type& type = b.TypeOf(key);
  if (type.dtype != DType::kKey || type.rank() != 0)
    throw TypeError(what, ": the key is ", type, "; expected key[] (vmap draws from several keys)");
}

void CheckScalar(Builder& b, const Atom& x, const char* what) {
  const Type& type = b.TypeOf(x);
  if (!IsInteger(type.dtype) || type.rank() != 0) throw TypeError(what, " is ", type, "; expected an integer scalar");
}

// The words of a key[], each repeated to `shape`.
std::pair<Atom, Atom> KeyWords(Builder& b, const Atom& key, const Dims& shape) {
  const Atom words = RandomUnwrap(b, key);
  auto word = [&](int64_t i) { return Broadcast(b, Reshape(b, Slice(b, words, {i}, {i + 1}, {1}), {}), shape, {}); };
  return {word(0), word(1)};
}

// Each element's position in row-major order, as high and low word.
std::pair<Atom, Atom> Positions(Builder& b, const Dims& shape) {
  const Dim size = NumElements(shape);
  const Dims flat = {size};
  if (size.is_static() && size.value() <= int64_t{1} << 32) {
    return {Zeros(b, kWord.With(shape)), Reshape(b, Iota(b, flat, 0, DType::kU32), shape)};
  }
  return Halves(b, Reshape(b, Iota(b, flat, 0, DType::kU64), shape));
}

// Two words for each element of `shape`.
std::pair<Atom, Atom> HashPositions(Builder& b, const Atom& key, const Dims& shape) {
  const auto [k0, k1] = KeyWords(b, key, shape);
  const auto [c0, c1] = Positions(b, shape);
  return Threefry2x32(b, k0, k1, c0, c1);
}

// Two arrays as entries 0 and 1 of a new last dimension, as keys.
Atom AsKeys(Builder& b, const Atom& x0, const Atom& x1) {
  Dims shape = b.TypeOf(x0).dims;
  const int64_t rank = static_cast<int64_t>(shape.size());
  shape.push_back(1);
  return RandomWrap(b, Concatenate(b, {Reshape(b, x0, shape), Reshape(b, x1, shape)}, rank));
}

}  // namespace

Atom RandomUnwrap(Builder& b, const Atom& key) { return b.Emit1(FindPrim("random_unwrap"), {key}); }
Atom RandomWrap(Builder& b, const Atom& words) { return b.Emit1(FindPrim("random_wrap"), {words}); }

Atom RandomKey(Builder& b, const Atom& seed) {
  CheckScalar(b, seed, "random key: the seed");
  const auto [high, low] = Halves(b, seed);
  return AsKeys(b, high, low);
}

Atom RandomSplit(Builder& b, const Atom& key, const Dims& shape) {
  CheckKey(b, key, "random split");
  const auto [x0, x1] = HashPositions(b, key, shape);
  return AsKeys(b, x0, x1);
}

Atom RandomFoldIn(Builder& b, const Atom& key, const Atom& data) {
  CheckKey(b, key, "random fold_in");
  CheckScalar(b, data, "random fold_in: the data");
  const auto [k0, k1] = KeyWords(b, key, {});
  const auto [x0, x1] = Threefry2x32(b, k0, k1, Zeros(b, kWord), Convert(b, data, DType::kU32));
  return AsKeys(b, x0, x1);
}

Atom RandomBits(Builder& b, const Atom& key, int width, const Dims& shape) {
  CheckKey(b, key, "random bits");
  if (width != 8 && width != 16 && width != 32 && width != 64)
    throw ValueError("random bits: width is ", width, "; expected 8, 16, 32 or 64");
  const auto [high, low] = HashPositions(b, key, shape);
  if (width == 64) {
    const Atom shifted =
        b.Emit1(FindPrim("shift_left"), {Convert(b, high, DType::kU64), Atom::Scalar(DType::kU64, 32)});
    return Or(b, shifted, Convert(b, low, DType::kU64));
  }
  return Convert(b, Xor(b, high, low), width == 8 ? DType::kU8 : width == 16 ? DType::kU16 : DType::kU32);
}

std::pair<Atom, Atom> Threefry2x32(Builder& b, const Atom& k0, const Atom& k1, const Atom& c0, const Atom& c1) {
  const Atoms y = b.Emit(FindPrim("threefry2x32"), {k0, k1, c0, c1});
  return {y[0], y[1]};
}

namespace {

// An atom of dtype u32 with the operations that the rounds use.
struct Word {
  Builder* b;
  Atom atom;
  friend Word operator+(const Word& x, const Word& y) { return {x.b, Add(*x.b, x.atom, y.atom)}; }
  friend Word operator+(const Word& x, uint32_t y) { return {x.b, Add(*x.b, x.atom, Atom::Scalar(DType::kU32, y))}; }
  friend Word operator^(const Word& x, const Word& y) { return {x.b, Xor(*x.b, x.atom, y.atom)}; }
  friend Word operator^(const Word& x, uint32_t y) { return {x.b, Xor(*x.b, x.atom, Atom::Scalar(DType::kU32, y))}; }
  friend Word RotateLeft(const Word& x, int bits) {
    auto shift = [&](const char* name, int by) {
      return x.b->Emit1(FindPrim(name), {x.atom, Atom::Scalar(DType::kU32, by)});
    };
    return {x.b, Or(*x.b, shift("shift_left", bits), shift("shift_right_logical", 32 - bits))};
  }
};

}  // namespace

std::pair<Atom, Atom> ExpandThreefry2x32(Builder& b, const Atom& k0, const Atom& k1, const Atom& c0, const Atom& c1) {
  const auto [x, y] = ThreefryRounds(Word{&b, k0}, Word{&b, k1}, Word{&b, c0}, Word{&b, c1});
  return {x.atom, y.atom};
}

}  // namespace weft
