#include "transforms/opt/network.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cctype>
#include <cmath>
#include <map>
#include <unordered_set>

#include "ir/ops.h"
#include "ir/prim_table.h"
#include "ir/prims/contraction.h"
#include "ir/prims/indexing.h"
#include "transforms/opt/formula.h"
#include "transforms/opt/matrix_forms.h"
#include "transforms/opt/rewrite.h"

namespace weft {
namespace {

constexpr char kUnit = 127;
constexpr size_t kMostTerms = 6, kMostLetters = 52;
// A number that is taken out of a product may be so large or small: it then overflows where the product nearly did.
constexpr double kLargestScale = 4096;
// What has to be saved, in multiplications: small programs stay as they are written.
constexpr double kWorthwhile = 1024;
constexpr double kClearly = 0.85;
// Per element, of a product that a kernel sums without writing it.
constexpr double kFusedElement = 3;

struct Sought {
  const Prim &contract = FindPrim("contract"), &mul = FindPrim("mul"), &div = FindPrim("div"), &neg = FindPrim("neg"),
             &sum = FindPrim("reduce_sum"), &gather = FindPrim("gather"), &broadcast = FindPrim("broadcast"),
             &reshape = FindPrim("reshape"), &transpose = FindPrim("transpose"), &concatenate = FindPrim("concatenate");
};
const Sought& Prims() {
  static const Sought prims;
  return prims;
}

// Products of half precision overflow in another order; of booleans they are no sums.
bool Reorders(DType t) {
  return t == DType::kF32 || t == DType::kF64 || t == DType::kBF16 || t == DType::kC64 || t == DType::kC128 ||
         IsInteger(t);
}

bool IsPlainProduct(const Eqn& e) {
  return e.prim == &Prims().contract && e.attrs.entries().size() == 1;  // no order, no other dtype
}

double SizeOr64(const Dim& d) { return d.is_static() ? static_cast<double>(d.value()) : 64; }
double Elements(const Dims& dims) {
  double n = 1;
  for (const Dim& d : dims) n *= SizeOr64(d);
  return n;
}

// Networks of which no order is cheaper than what is written, of this thread: long programs have the same one again
// and again.
bool IsKnownNotCheaper(const std::string& network, bool add) {
  constexpr size_t kMost = 256;
  thread_local std::unordered_set<std::string> known;
  if (!add) return known.count(network) != 0;
  if (known.size() >= kMost) known.clear();
  known.insert(network);
  return true;
}

// Whether Add does more with the factor than to multiply by it.
bool IsTakenApart(const Builder& b, const Atom& a) {
  if (a.is_literal()) return true;
  static const auto& seen_through = *new PrimSet{"contract",  "mul",     "div",       "neg",     "reduce_sum", "gather",
                                                 "broadcast", "reshape", "transpose", "convert", "select"};
  const Eqn* e = b.Definition(a);
  return e != nullptr && seen_through.Has(*e->prim);
}

}  // namespace

bool ProductNetwork::IsSingle(const Builder& b, const Eqn& e, const Atoms& x) {
  if (!IsPlainProduct(e) || IsTakenApart(b, x[0]) || IsTakenApart(b, x[1])) return false;
  // Of the operands and the result: a bit per letter.
  Set letters[3] = {0, 0, 0};
  int part = 0;
  for (const char c : e.attrs.Get<std::string>("spec")) {
    if (std::isalpha(static_cast<unsigned char>(c)) == 0) {
      if (c != '>') ++part;  // of "->" one counts
      continue;
    }
    const Set letter = Set{1} << (c & 63);
    if ((letters[part] & letter) != 0) return false;
    letters[part] |= letter;
  }
  return ((letters[0] ^ letters[1]) & ~letters[2]) == 0;
}

std::string ProductNetwork::Letters(const Dims& dims) {
  std::string letters;
  for (const Dim& d : dims) letters += NewLetter(d);
  return letters;
}

char ProductNetwork::NewLetter(const Dim& size) {
  if (dims_.size() >= kMostLetters) {
    failed_ = true;
    return 0;
  }
  dims_.push_back(size);
  sizes_.push_back(SizeOr64(size));
  return static_cast<char>(dims_.size() - 1);
}

ProductNetwork::Set ProductNetwork::SetOf(const std::string& letters) {
  Set set = 0;
  for (const char c : letters) {
    if (c != kUnit) set |= Set{1} << c;
  }
  return set;
}

double ProductNetwork::Size(Set letters) const {
  double n = 1;
  for (; letters != 0; letters &= letters - 1) n *= sizes_[static_cast<size_t>(std::countr_zero(letters))];
  return n;
}

Dims ProductNetwork::DimsOf(const std::string& letters) const {
  Dims dims;
  for (const char c : letters) dims.push_back(c == kUnit ? Dim(1) : dims_[static_cast<size_t>(c)]);
  return dims;
}

bool ProductNetwork::AddRoot(const Eqn& e, const Atoms& x, const std::string& letters) {
  const Type& type = b_.TypeOf(x[0]);
  return Reorders(type.dtype) && type.varying.empty() && AddEquation(e, x, letters, true) && !failed_;
}

// Replaces `a` by what it is a view of.
bool ProductNetwork::ThroughView(Atom& a, std::string& letters) {
  const Eqn* e = b_.Definition(a);
  if (e == nullptr) return false;
  const Sought& p = Prims();
  std::string inner;
  if (e->prim == &p.transpose) {
    const Ints& perm = e->attrs.Get<Ints>("perm");
    inner.resize(perm.size());
    for (size_t i = 0; i < perm.size(); ++i) inner[static_cast<size_t>(perm[i])] = letters[i];
  } else if (e->prim == &p.broadcast) {
    const Ints& dims = e->attrs.Get<Ints>("dims");
    const Dims &from = b_.TypeOf(e->operands[0]).dims, &to = b_.TypeOf(a).dims;
    for (size_t i = 0; i < dims.size(); ++i) {
      const auto d = static_cast<size_t>(dims[i]);
      inner += from[i] == Dim(1) && !(to[d] == Dim(1)) ? kUnit : letters[d];
    }
  } else if (e->prim == &p.reshape) {
    // Dimensions of size 1 come and go; others may be several in one.
    const Dims &from = b_.TypeOf(e->operands[0]).dims, &to = b_.TypeOf(a).dims;
    size_t i = 0;
    std::vector<std::pair<char, std::string>> split;
    const size_t named = dims_.size();
    const auto no_view = [&] {
      for (size_t k = named; k < dims_.size(); ++k) gone_ |= Set{1} << k;
      return false;
    };
    for (size_t d = 0; d < to.size(); ++d) {
      if (to[d] == Dim(1)) continue;
      while (i < from.size() && from[i] == Dim(1)) inner += kUnit, ++i;
      if (i < from.size() && from[i] == to[d]) {
        inner += letters[d];
        ++i;
        continue;
      }
      if (!to[d].is_static() || letters[d] == kUnit || !ReadOnce(b_, a)) return no_view();
      int64_t product = 1;
      std::string parts;
      while (i < from.size() && product < to[d].value() && from[i].is_static()) {
        if (from[i] == Dim(1)) {
          inner += kUnit;
        } else {
          parts += NewLetter(from[i]);
          inner += parts.back();
        }
        product *= from[i++].value();
      }
      if (product != to[d].value() || parts.size() < 2 || failed_) return no_view();
      split.emplace_back(letters[d], parts);
    }
    for (; i < from.size(); ++i) {
      if (!(from[i] == Dim(1))) return no_view();
      inner += kUnit;
    }
    split_.insert(split_.end(), split.begin(), split.end());
  } else {
    return false;
  }
  a = e->operands[0];
  letters = inner;
  return true;
}

void ProductNetwork::Add(const Atom& a, std::string letters) {
  Atom at = a;
  while (!failed_ && ThroughView(at, letters)) {}
  if (failed_) return;
  if (const Atom* number = Splat(b_, at)) {
    const std::complex<double> value = number->literal().Get(0);
    if (value.imag() == 0 && std::abs(value.real()) <= kLargestScale && std::abs(value.real()) >= 1 / kLargestScale) {
      scale_ *= value.real();
      return;
    }
  }
  const Eqn* found = b_.Definition(at);
  if (found != nullptr && found->num_results == 1 && ReadOnce(b_, at) && letters.find(kUnit) == std::string::npos) {
    if (terms_.size() + waiting_ + 1 < kMostTerms && left_-- > 0) {
      const Eqn e = *found;
      if (AddEquation(e, e.operands, letters, false)) return;
    } else {
      is_whole_ = false;
    }
  }
  std::optional<SparseArray> sparse = SparseArrayOf(b_, at);
  if (sparse && sparse->kind == SparseArray::Kind::kDiagonal) {
    const char p = letters[static_cast<size_t>(sparse->dim)], q = letters[static_cast<size_t>(sparse->other)];
    if (p != kUnit && q != kUnit) {
      equal_.emplace_back(p, q);
      if (sparse->value) Add(*sparse->value, letters);
      if (!sparse->value && letters.size() > 2) failed_ = true;  // a stack of them: rare
      return;
    }
  }
  terms_.push_back({at, letters, sparse});
}

bool ProductNetwork::AddEquation(const Eqn& e, const Atoms& x, const std::string& letters, bool root) {
  const Sought& p = Prims();
  if (!Reorders(b_.DTypeOf(x.empty() || !x[0].is_var() ? (x.size() > 1 ? x[1] : Atom::Scalar(DType::kBool, 0)) : x[0])))
    return false;
  if (IsPlainProduct(e)) {
    const ContractSpec spec = ContractSpec::Parse(e.attrs.Get<std::string>("spec"));
    std::array<char, 128> name;  // by letter of the spec; letters of the network are less than kMostLetters, or kUnit
    constexpr char kNone = 126;
    name.fill(kNone);
    for (size_t i = 0; i < spec.out.size(); ++i) name[static_cast<unsigned char>(spec.out[i])] = letters[i];
    const auto named = [&](const std::string& term, const Atom& a) {
      std::string out;
      for (size_t i = 0; i < term.size(); ++i) {
        char& known = name[static_cast<unsigned char>(term[i])];
        if (known == kNone) known = NewLetter(b_.TypeOf(a).dims[i]);
        out += known;
      }
      return out;
    };
    const std::string left = named(spec.lhs, x[0]), right = named(spec.rhs, x[1]);
    if (failed_) return true;
    written_ += 2 * Size(SetOf(left) | SetOf(right)) +
                kCostOfElement * (Size(SetOf(left)) + Size(SetOf(right)) + Size(SetOf(letters)));
    AddBoth(x, left, right);
    return true;
  }
  if (e.prim == &p.sum) {
    if (e.attrs.entries().size() != 1) return false;
    const Ints& dims = e.attrs.Get<Ints>("dims");
    const Type& type = b_.TypeOf(x[0]);
    std::string all;
    size_t next = 0;
    for (int d = 0; d < type.rank(); ++d)
      all += Contains(dims, d) ? NewLetter(type.dims[static_cast<size_t>(d)]) : letters[next++];
    if (failed_) return true;
    // A kernel sums a product by broadcasting without writing it.
    const Atom& inner = x[0];
    const Eqn* of = b_.Definition(inner);
    const bool fused = of != nullptr && of->prim->is_elementwise();
    written_ += (fused ? kFusedElement - kCostOfElement : kCostOfElement) * Elements(type.dims);
    Add(x[0], all);
    return true;
  }
  if (TakesDiagonal(b_, e, x)) {
    const char other = NewLetter(b_.TypeOf(x[0]).dims[1]);
    if (failed_) return true;
    equal_.emplace_back(letters[0], other);
    Add(x[0], letters + other);
    return true;
  }
  if (root) return false;
  if (e.prim == &p.neg) {
    scale_ = -scale_;
    written_ += kCostOfElement * Elements(b_.TypeOf(x[0]).dims);
    Add(x[0], letters);
    return true;
  }
  if (e.prim != &p.mul && e.prim != &p.div) return false;
  const Dims dims = b_.TypeOf(x[b_.TypeOf(x[0]).rank() > 0 ? 0 : 1]).dims;
  const auto is_scale = [&](const Atom& a) {
    const Atom* s = Splat(b_, a);
    if (s == nullptr || !IsFloat(s->literal_type().dtype)) return false;
    const double v = std::abs(s->literal().Get(0).real());
    return v <= kLargestScale && v >= 1 / kLargestScale;
  };
  if (e.prim == &p.div) {
    if (!is_scale(x[1]) || !x[0].is_var()) return false;
    scale_ /= Splat(b_, x[1])->literal().Get(0).real();
    written_ += kCostOfElement * Elements(dims);
    Add(x[0], letters);
    return true;
  }
  for (const size_t i : {size_t{0}, size_t{1}}) {
    if (!is_scale(x[i]) || b_.TypeOf(x[1 - i]).dims != dims) continue;
    scale_ *= Splat(b_, x[i])->literal().Get(0).real();
    written_ += kCostOfElement * Elements(dims);
    Add(x[1 - i], letters);
    return true;
  }
  // A product by broadcasting: some factor is the same along some dimension.
  if (b_.TypeOf(x[0]).dims != dims || b_.TypeOf(x[1]).dims != dims) return false;
  const auto repeats = [&](const Atom& a) {
    for (size_t d = 0; d < dims.size(); ++d) {
      if (!(dims[d] == Dim(1)) && IsConstantAlong(b_, a, static_cast<int>(d), 4)) return true;
    }
    return false;
  };
  if (!repeats(x[0]) && !repeats(x[1])) return false;
  written_ += kCostOfElement * Elements(dims);
  AddBoth(x, letters, letters);
  return true;
}

void ProductNetwork::AddBoth(const Atoms& x, const std::string& left, const std::string& right) {
  ++waiting_;
  Add(x[0], left);
  --waiting_;
  Add(x[1], right);
}

// Leaves a letter that a term has twice once: the elements where both dimensions have the same index.
bool ProductNetwork::TakeDiagonals(Term& t) {
  for (size_t i = 0; i < t.letters.size(); ++i) {
    const char c = t.letters[i];
    const size_t j = t.letters.find(c, i + 1);
    if (j == std::string::npos) continue;
    if (!b_.TypeOf(t.atom).is_static()) return false;
    Ints perm = OtherDims(static_cast<int>(t.letters.size()), {static_cast<int64_t>(i), static_cast<int64_t>(j)});
    std::string others;
    for (const int64_t d : perm) others += t.letters[static_cast<size_t>(d)];
    perm.push_back(static_cast<int64_t>(i));
    perm.push_back(static_cast<int64_t>(j));
    t.atom = DiagonalOf(b_, Transpose(b_, t.atom, perm));
    t.letters = others + c;
    t.sparse.reset();
    return TakeDiagonals(t);
  }
  return true;
}

std::string ProductNetwork::Text(const std::string& out) const {
  std::string text = out;
  const auto add = [&](const auto& number) { text.append(reinterpret_cast<const char*>(&number), sizeof(number)); };
  for (const Term& t : terms_) {
    text += '\x80' + t.letters;
    if (!t.sparse) continue;
    add(t.sparse->kind);
    add(t.sparse->dim);
    add(t.sparse->other);
    add(t.sparse->value.has_value());
  }
  for (const auto& [p, q] : equal_) text += std::string{'\x81', p, q};
  for (const auto& [letter, parts] : split_) text += std::string{'\x82', letter} + parts;
  text += '\x83';
  for (const double size : sizes_) add(size);
  for (const double number : {scale_, written_}) add(number);
  add(gone_);
  return text;
}

bool ProductNetwork::Resolve(const std::string& out) {
  out_ = out;
  for (auto [p, q] : equal_) {  // as the letters are called by then
    if (p == q) continue;
    if (out_.find(q) != std::string::npos) std::swap(p, q);
    if (out_.find(q) != std::string::npos) return false;  // the result has both
    gone_ |= Set{1} << q;
    const auto rename = [p = p, q = q](std::string& s) { std::replace(s.begin(), s.end(), q, p); };
    for (Term& t : terms_) {
      if (t.sparse && t.letters.find(q) != std::string::npos && t.letters.find(p) != std::string::npos) return false;
      rename(t.letters);
    }
    for (auto& [from, parts] : split_) {
      if (parts.find(q) != std::string::npos) return false;
      if (from == q) from = p;  // the diagonal of what is several dimensions in one
    }
    for (auto& [x, y] : equal_) {
      if (x == q) x = p;
      if (y == q) y = p;
    }
  }
  // A letter that stands for several: other factors have it too.
  std::map<char, std::string> parts;
  for (const auto& [letter, of] : split_) {
    const auto [at, fresh] = parts.emplace(letter, of);
    if (fresh) {
      gone_ |= Set{1} << letter;
      continue;
    }
    gone_ |= SetOf(of);
    if (DimsOf(at->second) != DimsOf(of)) return false;
    for (Term& t : terms_) {
      for (size_t i = 0; i < of.size(); ++i) std::replace(t.letters.begin(), t.letters.end(), of[i], at->second[i]);
    }
  }
  for (const auto& [letter, of] : parts) {
    for (const char c : of) {
      if (parts.count(c) != 0) return false;
    }
    for (Term& t : terms_) {
      const size_t at = t.letters.find(letter);
      if (at == std::string::npos) continue;
      t.letters = t.letters.substr(0, at) + of + t.letters.substr(at + 1);
      t.sparse.reset();
      t.atom = Reshape(b_, t.atom, DimsOf(t.letters));
    }
    const size_t at = out_.find(letter);
    if (at != std::string::npos) out_ = out_.substr(0, at) + of + out_.substr(at + 1);
  }
  Set named = SetOf(out_) | gone_;
  for (Term& t : terms_) {
    std::string seen;
    for (const char c : t.letters) {
      if (c != kUnit) seen += c;
    }
    if (seen != t.letters) {
      t.atom = Reshape(b_, t.atom, DimsOf(seen));
      t.letters = seen;
      t.sparse.reset();
    }
    if (!TakeDiagonals(t)) return false;
    named |= SetOf(t.letters);
  }
  // What is summed and nothing varies along.
  for (size_t i = 0; i < dims_.size(); ++i) {
    if (named >> i & 1) continue;
    if (!dims_[i].is_static()) return false;
    scale_ *= static_cast<double>(dims_[i].value());
  }
  return true;
}

// --- The order -------------------------------------------------------------------------------------------------------

bool ProductNetwork::Selects(const Term& t, Set other, Set keep) const {
  if (!t.sparse || t.sparse->value) return false;
  const Set own = SetOf(t.letters), dim = Set{1} << t.letters[static_cast<size_t>(t.sparse->dim)];
  if (t.sparse->kind == SparseArray::Kind::kOneHot)
    return (dim & other & ~keep) != 0 && (own & ~dim & other) == 0 && (own & ~dim & ~keep) == 0;
  if (t.sparse->kind != SparseArray::Kind::kLowerTriangle || t.letters.size() != 2) return false;
  const Set shared = own & other;
  return (shared & ~keep) == shared && (shared == dim || shared == (own & ~dim)) && ((own & ~shared) & ~keep) == 0;
}

bool ProductNetwork::Spreads(const Term& t, Set other, Set keep) const {
  if (!t.sparse || t.sparse->value || t.sparse->kind != SparseArray::Kind::kOneHot) return false;
  const Set dim = Set{1} << t.letters[static_cast<size_t>(t.sparse->dim)], rows = SetOf(t.letters) & ~dim;
  return rows != 0 && (dim & keep) != 0 && (dim & other) == 0 && (rows & ~other) == 0 && (rows & keep) == 0;
}

double ProductNetwork::PairCost(Set x, Set y, Set keep, const Term* tx, const Term* ty, double elements) const {
  const Set result = (x | y) & keep;
  const double through_memory = kCostOfElement * elements;
  if (tx != nullptr && Selects(*tx, y, keep)) return kCostOfElement * (Size(y & result) + 2 * Size(result));
  if (ty != nullptr && Selects(*ty, x, keep)) return kCostOfElement * (Size(x & result) + 2 * Size(result));
  if (tx != nullptr && Spreads(*tx, y, keep)) return kCostOfElement * (2 * Size(y) + Size(result));
  if (ty != nullptr && Spreads(*ty, x, keep)) return kCostOfElement * (2 * Size(x) + Size(result));
  const Set lone = (x ^ y) & ~keep;  // summed before
  x &= ~lone;
  y &= ~lone;
  if ((x & y & ~keep) == 0) return through_memory;  // no sum: fused with what reads it
  return 2 * Size(x | y) + through_memory;
}

std::optional<double> ProductNetwork::BestCost(const std::string& out) {
  if (failed_ || !Resolve(out)) return std::nullopt;
  const size_t n = terms_.size();
  if (n == 0 || n > kMostTerms) return std::nullopt;
  const uint32_t all = (uint32_t{1} << n) - 1;
  std::vector<Set> letters(all + 1, 0);
  std::vector<double> cost(all + 1, 0);
  split_at_.assign(all + 1, 0);
  kept_.assign(all + 1, 0);
  for (uint32_t s = 1; s <= all; ++s) {
    for (size_t i = 0; i < n; ++i) {
      if (s >> i & 1) letters[s] |= SetOf(terms_[i].letters);
    }
  }
  for (uint32_t s = 1; s <= all; ++s) kept_[s] = letters[s] & (SetOf(out_) | letters[all & ~s]);
  std::vector<double> size(all + 1, 0);  // of a factor, or of a product
  for (uint32_t s = 1; s <= all; ++s) size[s] = Size((s & (s - 1)) == 0 ? letters[s] : kept_[s]);
  const auto single = [&](uint32_t s) -> const Term* {
    return (s & (s - 1)) == 0 ? &terms_[static_cast<size_t>(__builtin_ctz(s))] : nullptr;
  };
  for (uint32_t s = 1; s <= all; ++s) {
    if (const Term* t = single(s)) {
      // A sum over what it alone has; as a factor that costs nothing more than to read it.
      if (n == 1 && (letters[s] & ~kept_[s]) != 0) cost[s] = kCostOfElement * Size(SetOf(t->letters));
      continue;
    }
    cost[s] = -1;
    for (uint32_t part = (s - 1) & s; part > (s & ~part); part = (part - 1) & s) {
      const uint32_t rest = s & ~part;
      const auto of = [&](uint32_t p) { return single(p) ? letters[p] : kept_[p]; };
      const double before = cost[part] + cost[rest], elements = size[part] + size[rest] + size[s];
      if (cost[s] >= 0 && before >= cost[s]) continue;
      const double c = before + PairCost(of(part), of(rest), kept_[s], single(part), single(rest), elements);
      if (cost[s] >= 0 && c >= cost[s]) continue;
      cost[s] = c;
      split_at_[s] = part;
    }
  }
  best_ = cost[all] + (scale_ == 1 ? 0 : Size(SetOf(out_)));
  return best_;
}

std::optional<Atom> ProductNetwork::Cheaper(const std::string& out, const Type& type) {
  for (const Term& t : terms_) {
    const Type& of = b_.TypeOf(t.atom);
    if (of.dtype != type.dtype || !of.varying.empty() || !of.is_static()) return std::nullopt;
  }
  const std::string network = Text(out);
  if (IsKnownNotCheaper(network, /*add=*/false)) return std::nullopt;
  const std::optional<double> best = BestCost(out);
  if (IsInteger(type.dtype) && (scale_ < 0 || scale_ > 127)) return std::nullopt;
  if (!best || *best + kWorthwhile > kClearly * written_) {
    IsKnownNotCheaper(network, /*add=*/true);
    return std::nullopt;
  }
  return Emit(type);
}

}  // namespace weft
