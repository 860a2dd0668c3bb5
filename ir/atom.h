// Operands and results of equations: variables and literals.
#ifndef WEFT_IR_ATOM_H_
#define WEFT_IR_ATOM_H_

#include <atomic>
#include <complex>
#include <cstdint>
#include <optional>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "ir/tensor.h"
#include "ir/type.h"

namespace weft {

// Captured arrays up to this size are literals: printed, hashed, foldable.
inline constexpr int64_t kMaxLiteralElements = 64;

struct Var {
  uint32_t id = 0;
  friend bool operator==(Var a, Var b) { return a.id == b.id; }
};

// An array that never changes, with what transforms ask of it again and again. Atoms share it.
class Literal {
 public:
  explicit Literal(Tensor tensor);
  Literal(const Literal&) = delete;
  const Tensor& tensor() const { return tensor_; }
  const Type& type() const { return *type_; }
  size_t hash() const { return hash_; }  // of type and bytes
  // The number that every element equals; nullopt where they differ or there are none.
  const std::optional<std::complex<double>>& splat() const { return splat_; }

 private:
  friend class Atom;
  mutable std::atomic<uint32_t> atoms_ = 0;  // that refer to it
  Tensor tensor_;
  const Type* type_;
  size_t hash_ = 0;
  std::optional<std::complex<double>> splat_;
};

// A variable, or a literal array of at most kMaxLiteralElements elements. A literal of rank 0 may stand beside arrays
// in element-wise operations and means that number everywhere. One word: a function of 100,000 equations has some
// 300,000 of them, and each transform writes them anew.
class Atom {
 public:
  Atom() : Atom(Var()) {}
  Atom(Var var) : word_(uintptr_t{var.id} << 1 | 1) {}  // NOLINT: a variable is an atom
  explicit Atom(Tensor literal) : word_(reinterpret_cast<uintptr_t>(new Literal(std::move(literal)))) { Hold(); }
  Atom(const Atom& other) : word_(other.word_) { Hold(); }
  Atom(Atom&& other) noexcept : word_(std::exchange(other.word_, 1)) {}
  Atom& operator=(const Atom& other) {
    other.Hold();
    Release();
    word_ = other.word_;
    return *this;
  }
  Atom& operator=(Atom&& other) noexcept {
    std::swap(word_, other.word_);
    return *this;
  }
  ~Atom() { Release(); }
  // A literal of rank 0; equal ones that a thread asks for in turn are shared.
  static Atom Scalar(DType dtype, double value);

  bool is_var() const { return (word_ & 1) != 0; }
  bool is_literal() const { return !is_var(); }
  Var var() const { return Var{id()}; }
  uint32_t id() const { return static_cast<uint32_t>(word_ >> 1); }
  const Tensor& literal() const { return shared()->tensor(); }
  const Type& literal_type() const { return shared()->type(); }
  size_t literal_hash() const { return shared()->hash(); }
  // True for a literal all of whose elements equal `value`.
  bool IsSplat(double value) const { return is_literal() && shared()->splat() == std::complex<double>(value); }

  // The same variable, or one and the same literal in memory: equal, and cheaper to see than that.
  bool Is(const Atom& other) const { return word_ == other.word_; }
  friend bool operator==(const Atom& a, const Atom& b) {
    if (a.word_ == b.word_) return true;
    return a.is_literal() && b.is_literal() && a.literal_hash() == b.literal_hash() &&
           a.literal().BitEquals(b.literal());
  }

 private:
  const Literal* shared() const {
    return reinterpret_cast<const Literal*>(word_);  // NOLINT(performance-no-int-to-ptr): that is what the word is
  }
  void Hold() const {
    if (is_literal()) shared()->atoms_.fetch_add(1, std::memory_order_relaxed);
  }
  void Release() {
    if (is_literal() && shared()->atoms_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete shared();
  }

  uintptr_t word_;  // 2 * id + 1, or the address of a literal
};

// Most operations have one or two operands: those lie in the equation itself.
using Atoms = absl::InlinedVector<Atom, 2>;

}  // namespace weft
#endif  // WEFT_IR_ATOM_H_
