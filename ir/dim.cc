#include "ir/dim.h"

#include <algorithm>
#include <cctype>
#include <mutex>
#include <set>

#include "base/fork_safe_mutex.h"
#include "ir/error.h"

namespace weft {

const Dim::Polynomial* Dim::Intern(Polynomial terms) {
  if (terms.empty()) return nullptr;
  static auto& mutex = *new ForkSafeMutex;
  static auto& table = *new std::set<Polynomial>();
  std::lock_guard<ForkSafeMutex> lock(mutex);
  return &*table.insert(std::move(terms)).first;
}

Dim Dim::Make(int64_t constant, Polynomial terms) {
  for (auto it = terms.begin(); it != terms.end();) it = it->second == 0 ? terms.erase(it) : std::next(it);
  Dim d(constant);
  d.terms_ = Intern(std::move(terms));
  return d;
}

Dim Dim::Symbol(const std::string& name) { return Make(0, {{{name}, 1}}); }

int64_t Dim::value(const char* what) const {
  if (!is_static()) {
    throw UserError(ErrorKind::kUnsupported, {}, what, " cannot take a symbolic size yet; got ", ToString());
  }
  return constant_;
}

namespace {

// INT64_MIN is refused too: its negative does not exist.
int64_t Sum(int64_t a, int64_t b) {
  if (__builtin_add_overflow(a, b, &a) || a == INT64_MIN)
    throw ValueError("a size of 2^63 or more; expected one that fits 64 bits");
  return a;
}
int64_t Product(int64_t a, int64_t b) {
  if (__builtin_mul_overflow(a, b, &a) || a == INT64_MIN)
    throw ValueError("a size of 2^63 or more; expected one that fits 64 bits");
  return a;
}

// Foreign text can multiply sums of many symbols.
constexpr size_t kMaxTerms = 1024, kMaxDegree = 256;

}  // namespace

Dim operator+(const Dim& a, const Dim& b) {
  if (a.is_static() && b.is_static()) return Dim(Sum(a.constant_, b.constant_));
  Dim::Polynomial sum = a.terms();
  for (const auto& [monomial, coefficient] : b.terms()) sum[monomial] = Sum(sum[monomial], coefficient);
  return Dim::Make(Sum(a.constant_, b.constant_), std::move(sum));
}

Dim operator-(const Dim& a, const Dim& b) { return a + b * Dim(-1); }

Dim operator*(const Dim& a, const Dim& b) {
  if (a.is_static() && b.is_static()) return Dim(Product(a.constant_, b.constant_));
  Dim::Polynomial x = a.terms(), y = b.terms(), product;
  if (a.constant_ != 0) x[{}] = a.constant_;
  if (b.constant_ != 0) y[{}] = b.constant_;
  if (x.size() * y.size() > kMaxTerms)
    throw ValueError("a symbolic size has ", x.size() * y.size(), " terms; expected at most ", kMaxTerms);
  for (const auto& [m, c] : x) {
    for (const auto& [n, d] : y) {
      Dim::Monomial key;
      std::merge(m.begin(), m.end(), n.begin(), n.end(), std::back_inserter(key));
      if (key.size() > kMaxDegree)
        throw ValueError("a symbolic size has degree ", key.size(), "; expected at most ", kMaxDegree);
      product[key] = Sum(product[key], Product(c, d));
    }
  }
  const int64_t constant = product.count({}) ? product[{}] : 0;
  product.erase(Dim::Monomial{});
  return Dim::Make(constant, std::move(product));
}

bool Dim::AtLeast(int64_t size) const {
  if (terms_ != nullptr) {
    for (const auto& [monomial, coefficient] : *terms_) {
      if (coefficient < 0) return false;
    }
  }
  return constant_ >= size;
}

std::optional<Dim> Dim::ExactQuotient(const Dim& a, const Dim& b) {
  if (a == b && !(b == Dim(0))) return Dim(1);
  // The divisor must be a single term: c * s1 * s2 ...
  Polynomial divisor = b.terms();
  if (b.constant_ != 0) divisor[{}] = b.constant_;
  if (divisor.size() != 1) return std::nullopt;
  const auto& [monomial, coefficient] = *divisor.begin();
  Polynomial dividend = a.terms(), quotient;
  if (a.constant_ != 0) dividend[{}] = a.constant_;
  for (const auto& [m, c] : dividend) {
    Monomial rest;
    std::set_difference(m.begin(), m.end(), monomial.begin(), monomial.end(), std::back_inserter(rest));
    if (rest.size() + monomial.size() != m.size() || c % coefficient != 0) return std::nullopt;
    quotient[rest] = c / coefficient;
  }
  const int64_t constant = quotient.count({}) ? quotient[{}] : 0;
  quotient.erase(Monomial{});
  return Make(constant, std::move(quotient));
}

int64_t Dim::Evaluate(const std::map<std::string, int64_t>& symbols) const {
  int64_t total = constant_;
  if (is_static()) return total;
  bool overflow = false;
  for (const auto& [monomial, coefficient] : *terms_) {
    int64_t product = coefficient;
    for (const std::string& name : monomial) {
      auto it = symbols.find(name);
      if (it == symbols.end()) throw ValueError("size ", ToString(), ": symbol ", name, " has no value");
      overflow |= __builtin_mul_overflow(product, it->second, &product);
    }
    overflow |= __builtin_add_overflow(total, product, &total);
  }
  if (overflow) throw ValueError("size ", ToString(), " is beyond 2^63");
  return total;
}

Dim Dim::Substitute(const std::map<std::string, Dim>& symbols) const {
  if (is_static()) return *this;
  Dim total(constant_);
  for (const auto& [monomial, coefficient] : *terms_) {
    Dim product(coefficient);
    for (const std::string& name : monomial) {
      auto it = symbols.find(name);
      product = product * (it == symbols.end() ? Symbol(name) : it->second);
    }
    total = total + product;
  }
  return total;
}

std::vector<std::string> Dim::Symbols() const {
  std::set<std::string> names;
  for (const auto& [monomial, coefficient] : terms()) names.insert(monomial.begin(), monomial.end());
  return {names.begin(), names.end()};
}

std::optional<std::pair<std::string, Dim>> Dim::Solve(const Dim& size) const {
  if (is_static() || terms_->size() != 1) return std::nullopt;
  const auto& [monomial, coefficient] = *terms_->begin();
  if (monomial.size() != 1) return std::nullopt;
  std::optional<Dim> value = ExactQuotient(size - Dim(constant_), Dim(coefficient));
  if (!value) return std::nullopt;
  return std::make_pair(monomial[0], *std::move(value));
}

std::vector<Dim::Term> Dim::Terms() const {
  std::vector<Term> list;
  for (const auto& [monomial, coefficient] : terms()) list.push_back({coefficient, monomial});
  if (constant_ != 0 || list.empty()) list.push_back({constant_, {}});
  return list;
}

std::string Dim::ToString() const {
  if (is_static()) return std::to_string(constant_);
  std::string text;
  for (const auto& [monomial, coefficient] : *terms_) {
    const int64_t magnitude = coefficient < 0 ? -coefficient : coefficient;
    if (coefficient < 0) text += "-";
    if (coefficient > 0 && !text.empty()) text += "+";
    if (magnitude != 1) text += std::to_string(magnitude) + "*";
    for (size_t i = 0; i < monomial.size(); ++i) text += (i ? "*" : "") + monomial[i];
  }
  if (constant_ > 0) text += "+";
  if (constant_ != 0) text += std::to_string(constant_);
  return text;
}

std::optional<Dim> Dim::Parse(const std::string& text) {
  Dim total(0);
  size_t i = 0;
  bool any = false;
  while (i < text.size()) {
    int64_t sign = 1;
    if (text[i] == '+' || text[i] == '-') {
      if (text[i] == '+' && !any) return std::nullopt;
      sign = text[i++] == '-' ? -1 : 1;
    } else if (any) {
      return std::nullopt;
    }
    Dim product(sign);
    while (true) {  // factor (* factor)*
      if (i >= text.size()) return std::nullopt;
      if (std::isdigit(static_cast<unsigned char>(text[i]))) {
        int64_t number = 0;
        while (i < text.size() && std::isdigit(static_cast<unsigned char>(text[i]))) {
          if (__builtin_mul_overflow(number, 10, &number) || __builtin_add_overflow(number, text[i] - '0', &number))
            return std::nullopt;
          ++i;
        }
        product = product * Dim(number);
      } else if (std::isalpha(static_cast<unsigned char>(text[i])) || text[i] == '_') {
        const size_t begin = i;
        while (i < text.size() && (std::isalnum(static_cast<unsigned char>(text[i])) || text[i] == '_')) ++i;
        product = product * Symbol(text.substr(begin, i - begin));
      } else {
        return std::nullopt;
      }
      if (i >= text.size() || text[i] != '*') break;
      ++i;
    }
    total = total + product;
    any = true;
  }
  if (!any) return std::nullopt;
  return total;
}

std::string ToString(const Dims& dims) {
  std::string text;
  for (size_t i = 0; i < dims.size(); ++i) text += (i ? "," : "") + dims[i].ToString();
  return text;
}

Dim NumElements(const Dims& dims) {
  Dim product(1);
  for (const Dim& d : dims) product = product * d;
  return product;
}

bool IsStatic(const Dims& dims) {
  return std::all_of(dims.begin(), dims.end(), [](const Dim& d) { return d.is_static(); });
}

std::vector<int64_t> StaticSizes(const Dims& dims, const char* what) {
  std::vector<int64_t> sizes;
  sizes.reserve(dims.size());
  for (const Dim& d : dims) sizes.push_back(d.value(what));
  return sizes;
}

}  // namespace weft
