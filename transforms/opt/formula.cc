#include "transforms/opt/formula.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <string_view>
#include <utility>

#include "ir/error.h"
#include "ir/eval/eval.h"
#include "ir/ops.h"
#include "ir/prim_table.h"
#include "transforms/opt/same_value.h"

namespace weft {

struct Formula::Node {
  enum class Kind : uint8_t { kOperand, kNumberLetter, kNumber, kOperation, kWholePower, kWide };
  Kind kind = Kind::kNumber;
  int letter = 0;              // kOperand, kNumberLetter
  double number = 0;           // kNumber; the exponent of kWholePower
  const Prim* prim = nullptr;  // kOperation
  std::vector<Node> in;
  std::string text;           // equal for equal nodes
  const Prim* key = nullptr;  // of the outermost node of a pattern: one of its operands has to be the result of this
};

namespace {

using Node = Formula::Node;
using Kind = Node::Kind;

struct OperatorPrims {
  const Prim &add = FindPrim("add"), &sub = FindPrim("sub"), &mul = FindPrim("mul"), &div = FindPrim("div"),
             &neg = FindPrim("neg"), &square = FindPrim("square"), &integer_pow = FindPrim("integer_pow"),
             &pow = FindPrim("pow"), &broadcast = FindPrim("broadcast");
};
const OperatorPrims& Prims() {
  static const OperatorPrims prims;
  return prims;
}

constexpr std::string_view kOperands = "wxyz", kNumbers = "abcd";

// --- Text ------------------------------------------------------------------------------------------------------------

Node Number(double value) {
  Node n;
  n.number = value;
  n.text = std::to_string(value);
  if (!(value == std::floor(value) && std::fabs(value) < 1e6)) {
    char exact[40];
    std::snprintf(exact, sizeof exact, "%a", value);
    n.text = exact;
  }
  return n;
}

Node Operation(const Prim& prim, std::vector<Node> in) {
  Node n;
  n.kind = Kind::kOperation;
  n.prim = &prim;
  n.text = prim.name + "(";
  for (const Node& x : in) n.text += x.text + ",";
  n.text += ")";
  n.in = std::move(in);
  return n;
}

class Reader {
 public:
  explicit Reader(const std::string& text) : text_(text) {}

  Node Whole() {
    Node n = Compared();
    if (At() != '\0') Fail("an operator");
    return n;
  }

 private:
  [[noreturn]] void Fail(const std::string& expected) {
    throw ValueError("the formula '", text_, "': expected ", expected, " at '", text_.substr(at_), "'");
  }
  char At() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool Take(const std::string& token) {
    At();
    if (text_.compare(at_, token.size(), token) != 0) return false;
    at_ += token.size();
    return true;
  }

  Node Compared() {
    Node left = Sum();
    static const auto& names = *new std::vector<std::pair<const char*, const char*>>{
        {"<=", "le"}, {">=", "ge"}, {"==", "eq"}, {"!=", "ne"}, {"<", "lt"}, {">", "gt"}};
    for (const auto& [token, prim] : names) {
      if (Take(token)) return Operation(FindPrim(prim), {std::move(left), Sum()});
    }
    return left;
  }
  Node Sum() {
    Node left = Product();
    for (;;) {
      if (Take("+")) {
        left = Operation(Prims().add, {std::move(left), Product()});
      } else if (Take("-")) {
        left = Operation(Prims().sub, {std::move(left), Product()});
      } else {
        return left;
      }
    }
  }
  bool AtPower() { return At() == '*' && text_.compare(at_, 2, "**") == 0; }
  Node Product() {
    Node left = Signed();
    for (;;) {
      if (At() == '*' && !AtPower()) {
        ++at_;
        left = Operation(Prims().mul, {std::move(left), Signed()});
      } else if (Take("/")) {
        left = Operation(Prims().div, {std::move(left), Signed()});
      } else {
        return left;
      }
    }
  }
  Node Signed() {
    if (!Take("-")) return Power();
    Node n = Signed();
    return n.kind == Kind::kNumber ? Number(-n.number) : Operation(Prims().neg, {std::move(n)});
  }
  Node Power() {
    Node base = Single();
    if (!AtPower()) return base;
    at_ += 2;
    const Node exponent = Signed();
    if (exponent.kind != Kind::kNumber || exponent.number != std::floor(exponent.number)) Fail("a whole exponent");
    Node n;
    n.kind = Kind::kWholePower;
    n.number = exponent.number;
    n.text = base.text + "**" + exponent.text;
    n.in = {std::move(base)};
    return n;
  }
  Node Single() {
    if (Take("(")) {
      Node n = Compared();
      if (!Take(")")) Fail("')'");
      return n;
    }
    const char c = At();
    if (std::isdigit(static_cast<unsigned char>(c)) != 0 || c == '.') {
      size_t length = 0;
      const double value = std::stod(text_.substr(at_), &length);
      at_ += length;
      return Number(value);
    }
    if (std::isalpha(static_cast<unsigned char>(c)) == 0) Fail("an operand");
    const size_t begin = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) != 0 || text_[at_] == '_'))
      ++at_;
    const std::string name = text_.substr(begin, at_ - begin);
    if (Take("(")) return Called(name);
    if (name == "nan") return Number(std::numeric_limits<double>::quiet_NaN());
    if (name == "inf") return Number(std::numeric_limits<double>::infinity());
    Node n;
    n.text = name;
    if (const size_t i = kOperands.find(name); name.size() == 1 && i != std::string_view::npos) {
      n.kind = Kind::kOperand, n.letter = static_cast<int>(i);
    } else if (const size_t k = kNumbers.find(name); name.size() == 1 && k != std::string_view::npos) {
      n.kind = Kind::kNumberLetter, n.letter = static_cast<int>(k);
    } else {
      at_ = begin;
      Fail("w, x, y, z, a, b, c, d, nan, inf, or a primitive with its operands");
    }
    return n;
  }
  Node Called(const std::string& name) {
    std::vector<Node> in = {Compared()};
    while (Take(",")) in.push_back(Compared());
    if (!Take(")")) Fail("')'");
    if (name == "wide") {
      if (in.size() != 1 && in.size() != 3)
        throw ValueError("the formula '", text_, "': wide takes 1 operand or 3, got ", in.size());
      Node n;
      n.kind = Kind::kWide;
      n.text = "wide(" + in[0].text;
      for (size_t i = 1; i < in.size(); ++i) n.text += "," + in[i].text;
      n.text += ")";
      n.in = std::move(in);
      return n;
    }
    const Prim* prim = TryFindPrim(name);
    if (prim == nullptr) throw ValueError("the formula '", text_, "': there is no primitive named '", name, "'");
    if (prim->num_operands != static_cast<int>(in.size()))
      throw ValueError("the formula '", text_, "': ", name, " takes ", prim->num_operands, " operands, got ",
                       in.size());
    return Operation(*prim, std::move(in));
  }

  const std::string& text_;
  size_t at_ = 0;
};

// --- Numbers ---------------------------------------------------------------------------------------------------------

bool IsNumber(const Node& n) {
  if (n.kind == Kind::kOperand || n.kind == Kind::kWide) return false;
  for (const Node& x : n.in) {
    if (!IsNumber(x)) return false;
  }
  return true;
}

double NumberOf(const Node& n, const FormulaMatch& m);

double ValueOfOperation(const Node& n, const FormulaMatch& m) {
  static const PrimTable<double (*)(double)> unary = {{"neg", [](double x) { return -x; }},
                                                      {"abs", [](double x) { return std::fabs(x); }},
                                                      {"floor", [](double x) { return std::floor(x); }},
                                                      {"log", [](double x) { return std::log(x); }},
                                                      {"exp", [](double x) { return std::exp(x); }},
                                                      {"sqrt", [](double x) { return std::sqrt(x); }},
                                                      {"log2", [](double x) { return std::log2(x); }}};
  static const PrimTable<double (*)(double, double)> binary = {
      {"add", [](double x, double y) { return x + y; }},
      {"sub", [](double x, double y) { return x - y; }},
      {"mul", [](double x, double y) { return x * y; }},
      {"div", [](double x, double y) { return x / y; }},
      {"pow", [](double x, double y) { return std::pow(x, y); }},
      {"lt", [](double x, double y) -> double { return x < y; }},
      {"le", [](double x, double y) -> double { return x <= y; }},
      {"gt", [](double x, double y) -> double { return x > y; }},
      {"ge", [](double x, double y) -> double { return x >= y; }},
      {"eq", [](double x, double y) -> double { return x == y; }},
      {"ne", [](double x, double y) -> double { return x != y; }}};
  if (n.in.size() == 1 && unary[*n.prim] != nullptr) return unary[*n.prim](NumberOf(n.in[0], m));
  if (n.in.size() == 2 && binary[*n.prim] != nullptr)
    return binary[*n.prim](NumberOf(n.in[0], m), NumberOf(n.in[1], m));
  throw ValueError("a formula of numbers: ", n.prim->name, " is not computed of numbers");
}

double NumberOf(const Node& n, const FormulaMatch& m) {
  switch (n.kind) {
    case Kind::kNumber: return n.number;
    case Kind::kNumberLetter: return *m.numbers[static_cast<size_t>(n.letter)];
    case Kind::kWholePower: return std::pow(NumberOf(n.in[0], m), n.number);
    default: return ValueOfOperation(n, m);
  }
}

// --- Patterns --------------------------------------------------------------------------------------------------------

// What is known of one element of a pattern: an atom, and what defines it.
class Matcher {
 public:
  explicit Matcher(const Builder& b) : b_(b) {}

  bool Operand(const Node& n, const Atom& a, FormulaMatch* m) const {
    switch (n.kind) {
      case Kind::kOperand: {
        auto& bound = m->operands[static_cast<size_t>(n.letter)];
        if (bound) return SameValue(b_, *bound, a);
        bound = a;
        return true;
      }
      case Kind::kNumberLetter: {
        const Atom* s = Splat(b_, a);
        if (s == nullptr) return false;
        const double value = s->literal().Get(0).real();
        auto& bound = m->numbers[static_cast<size_t>(n.letter)];
        if (bound) return *bound == value;
        bound = value;
        return true;
      }
      case Kind::kNumber: {
        const Atom* s = Splat(b_, a);
        return s != nullptr && Equal(*s, n.number);
      }
      case Kind::kWide: return false;
      default: {
        const Eqn* e = b_.Definition(a);
        return e != nullptr && Equation(n, *e, e->operands, m);
      }
    }
  }

  // Tried on a copy of the match where there is another way.
  bool Equation(const Node& n, const Eqn& e, const Atoms& x, FormulaMatch* m) const {
    if (n.kind == Kind::kWholePower) return Power(n, e, x, m);
    const OperatorPrims& p = Prims();
    if (e.prim == n.prim) {
      if (!e.attrs.entries().empty() || x.size() != n.in.size()) return false;
      FormulaMatch first = *m;
      if (All(n, x, &first)) {
        *m = std::move(first);
        return true;
      }
      if (!e.prim->commutes) return false;
      return Operand(n.in[0], x[1], m) && Operand(n.in[1], x[0], m);
    }
    // x - 1 written as x + -1, and x / 2 as x * 0.5.
    if (n.prim == &p.sub && e.prim == &p.add && IsNumber(n.in[1])) return Other(n, 1, x, Inverse::kNegative, m);
    if (n.prim == &p.add && e.prim == &p.sub) {
      for (int i : {0, 1}) {
        if (!IsNumber(n.in[static_cast<size_t>(i)])) continue;
        FormulaMatch tried = *m;
        if (!Is(n.in[static_cast<size_t>(i)], x[1], Inverse::kNegative, &tried)) continue;
        if (!Operand(n.in[static_cast<size_t>(1 - i)], x[0], &tried)) continue;
        *m = std::move(tried);
        return true;
      }
      return false;
    }
    if (n.prim == &p.mul && e.prim == &p.div) {
      for (int i : {0, 1}) {
        if (!IsNumber(n.in[static_cast<size_t>(i)])) continue;
        FormulaMatch tried = *m;
        if (!Is(n.in[static_cast<size_t>(i)], x[1], Inverse::kReciprocal, &tried)) continue;
        if (!Operand(n.in[static_cast<size_t>(1 - i)], x[0], &tried)) continue;
        *m = std::move(tried);
        return true;
      }
      return false;
    }
    // 1 / x written as x ** -1.
    if (n.prim == &p.div && e.prim == &p.integer_pow)
      return e.attrs.GetInt("y") == -1 && IsOne(n.in[0], m) && Operand(n.in[1], x[0], m);
    if (n.prim == &p.div && e.prim == &p.mul && IsNumber(n.in[1])) return Other(n, 1, x, Inverse::kReciprocal, m);
    return false;
  }

 private:
  enum class Inverse : uint8_t { kNegative, kReciprocal };

  bool All(const Node& n, const Atoms& x, FormulaMatch* m) const {
    for (size_t i = 0; i < x.size(); ++i) {
      if (!Operand(n.in[i], x[i], m)) return false;
    }
    return true;
  }

  static bool IsOne(const Node& number, FormulaMatch* m) {
    if (number.kind != Kind::kNumberLetter) return number.kind == Kind::kNumber && number.number == 1;
    auto& bound = m->numbers[static_cast<size_t>(number.letter)];
    if (!bound) bound = 1;
    return *bound == 1;
  }

  // The number that node `number` of the pattern has to be is the negative or the reciprocal of the literal.
  bool Is(const Node& number, const Atom& a, Inverse how, FormulaMatch* m) const {
    const Atom* s = Splat(b_, a);
    if (s == nullptr) return false;
    const double given = s->literal().Get(0).real();
    if (how == Inverse::kReciprocal) {
      int exponent;
      if (std::fabs(std::frexp(given, &exponent)) != 0.5 || std::abs(exponent) > 14) return false;  // no power of 2
    }
    const double value = how == Inverse::kNegative ? -given : 1 / given;
    if (number.kind == Kind::kNumberLetter) {
      auto& bound = m->numbers[static_cast<size_t>(number.letter)];
      if (bound) return *bound == value;
      bound = value;
      return true;
    }
    return number.kind == Kind::kNumber && Equal(Atom::Scalar(s->literal().dtype(), value), number.number);
  }

  bool Other(const Node& n, size_t number, const Atoms& x, Inverse how, FormulaMatch* m) const {
    for (size_t i : {size_t{1}, size_t{0}}) {
      FormulaMatch tried = *m;
      if (!Is(n.in[number], x[i], how, &tried) || !Operand(n.in[1 - number], x[1 - i], &tried)) continue;
      *m = std::move(tried);
      return true;
    }
    return false;
  }

  bool Power(const Node& n, const Eqn& e, const Atoms& x, FormulaMatch* m) const {
    const OperatorPrims& p = Prims();
    const bool square = n.number == 2;
    if (e.prim == &p.integer_pow)
      return static_cast<double>(e.attrs.GetInt("y")) == n.number && Operand(n.in[0], x[0], m);
    if (square && e.prim == &p.square) return Operand(n.in[0], x[0], m);
    if (square && e.prim == &p.mul) return SameValue(b_, x[0], x[1]) && Operand(n.in[0], x[0], m);
    if (e.prim != &p.pow) return false;
    const Atom* s = Splat(b_, x[1]);
    return s != nullptr && Equal(*s, n.number) && Operand(n.in[0], x[0], m);
  }

  // A number of a formula, rounded to the dtype of the literal.
  static bool Equal(const Atom& literal, double number) {
    const Tensor& t = literal.literal();
    return t.Get(0).real() == Atom::Scalar(t.dtype(), number).literal().Get(0).real() && t.Get(0).imag() == 0;
  }

  const Builder& b_;
};

// --- Replacements ----------------------------------------------------------------------------------------------------

class Emitter {
 public:
  Emitter(Builder& b, const FormulaMatch& m, DType dtype) : b_(b), m_(m), dtype_(dtype) {}

  Atom Of(const Node& n) {
    if (const auto at = made_.find(n.text); at != made_.end()) return at->second;
    const Atom made = New(n);
    made_.emplace(n.text, made);
    return made;
  }

 private:
  Atom New(const Node& n) {
    if (IsNumber(n)) return Atom::Scalar(dtype_, NumberOf(n, m_));
    switch (n.kind) {
      case Kind::kOperand: return *m_.operands[static_cast<size_t>(n.letter)];
      case Kind::kWide: return Wide(n);
      case Kind::kWholePower: {
        const Atom base = Of(n.in[0]);
        return n.number == 2 ? Mul(b_, base, base) : IntegerPow(b_, base, static_cast<int64_t>(n.number));
      }
      default: break;
    }
    Atoms in;
    DType dtype = dtype_;
    for (const Node& x : n.in) {
      if (!IsNumber(x)) in.push_back(Of(x));
    }
    // Numbers have the dtype of what they stand beside.
    for (const Atom& a : in) {
      if (IsInexact(b_.DTypeOf(a))) dtype = b_.DTypeOf(a);
    }
    in.clear();
    for (const Node& x : n.in) in.push_back(IsNumber(x) ? Atom::Scalar(dtype, NumberOf(x, m_)) : Of(x));
    if (std::all_of(in.begin(), in.end(), [](const Atom& a) { return a.is_literal(); })) return Computed(*n.prim, in);
    if (n.prim == &Prims().neg) return Neg(b_, in[0]);
    if (n.prim == &Prims().add) return Add(b_, in[0], in[1]);
    if (n.prim == &Prims().sub) return Sub(b_, in[0], in[1]);
    if (n.prim == &Prims().mul) return Mul(b_, in[0], in[1]);
    if (n.prim == &Prims().div) return Div(b_, in[0], in[1]);
    return b_.Emit1(*n.prim, in);
  }

  Atom Wide(const Node& n) {
    const Atom narrow = Of(n.in[0]);
    // A number may stand beside arrays, what it is converted to may not.
    Atom wide = narrow.is_literal() && narrow.literal().rank() == 0
                    ? Atom::Scalar(DType::kF64, narrow.literal().Get(0).real())
                    : Convert(b_, narrow, DType::kF64);
    if (n.in.size() == 1) return wide;
    const Atom lo = Atom::Scalar(DType::kF64, NumberOf(n.in[1], m_)),
               hi = Atom::Scalar(DType::kF64, NumberOf(n.in[2], m_));
    static const Prim& clamp = FindPrim("clamp");
    return wide.is_literal() ? Computed(clamp, {lo, wide, hi}) : b_.Emit1(clamp, {lo, wide, hi});
  }

  // Of literals, which may stand beside arrays as one.
  static Atom Computed(const Prim& prim, const Atoms& in) {
    Tensors values;
    for (const Atom& a : in) values.push_back(a.literal());
    return Atom(EvalEqn(Eqn{&prim, in, 0, 1, {}, {}, {}}, values)[0]);
  }

  Builder& b_;
  const FormulaMatch& m_;
  const DType dtype_;
  std::map<std::string, Atom> made_;
};

bool Any(const Node& n, Kind kind, int letter) {
  if (n.kind == kind && n.letter == letter) return true;
  for (const Node& x : n.in) {
    if (Any(x, kind, letter)) return true;
  }
  return false;
}

bool HoldsWide(const Node& n) {
  return (n.kind == Kind::kWide && n.in.size() == 3) || std::any_of(n.in.begin(), n.in.end(), HoldsWide);
}

}  // namespace

namespace {

// The number that an array of floating-point numbers repeats; null: they differ. Several are looked at together.
const Atom* OnlyNumber(const Tensor& array) {
  if (!IsInexact(array.dtype()) || array.size() == 0) return nullptr;
  const auto* bytes = static_cast<const char*>(array.raw());
  const auto width = static_cast<size_t>(array.bytes() / array.size());
  if (width == 0) return nullptr;  // several in a byte
  for (int64_t i = 1; i < array.size(); ++i) {
    if (std::memcmp(bytes, bytes + static_cast<size_t>(i) * width, width) != 0) return nullptr;
  }
  constexpr size_t kTogether = 32;
  thread_local std::array<Atom, kTogether> numbers;
  thread_local size_t next = 0;
  Tensor number(array.dtype(), {});
  number.Set(0, array.Get(0));
  Atom& place = numbers[next++ % kTogether];
  place = Atom(std::move(number));
  return &place;
}

}  // namespace

const Atom* Splat(const Builder& b, const Atom& a) {
  if (a.is_literal()) {
    const Tensor& t = a.literal();
    if (t.rank() == 0) return &a;
    return OnlyNumber(t);
  }
  const Eqn* e = b.Definition(a);
  if (e == nullptr || e->prim != &Prims().broadcast) return nullptr;
  return e->operands[0].is_literal() && e->operands[0].literal().rank() == 0 ? &e->operands[0] : nullptr;
}

Formula::Formula(const std::string& text) : node_(std::make_unique<Node>(Reader(text).Whole())) {
  const OperatorPrims& p = Prims();
  for (const Node& x : node_->in) {
    // Those that are written in one way only.
    const bool only = x.prim != &p.add && x.prim != &p.sub && x.prim != &p.mul && x.prim != &p.div;
    if (x.kind == Kind::kOperation && only && !IsNumber(x)) node_->key = x.prim;
  }
}
Formula::~Formula() = default;

Formula::Formula(Formula&&) noexcept = default;

std::vector<const Prim*> Formula::Roots() const {
  const Node& n = *node_;
  WEFT_CHECK(n.kind == Kind::kOperation) << "the pattern of a rule is an operation";
  std::vector<const Prim*> roots = {n.prim};
  const OperatorPrims& p = Prims();
  const bool number_last = n.in.size() == 2 && IsNumber(n.in[1]), number = number_last || IsNumber(n.in[0]);
  if (n.prim == &p.sub && number_last) roots.push_back(&p.add);
  if (n.prim == &p.add && number) roots.push_back(&p.sub);
  if (n.prim == &p.mul && number) roots.push_back(&p.div);
  if (n.prim == &p.div && number_last) roots.push_back(&p.mul);
  if (n.prim == &p.div && IsNumber(n.in[0])) roots.push_back(&p.integer_pow);
  return roots;
}

const Prim* Formula::Key() const { return node_->key; }

bool Formula::Matches(const Builder& b, const Eqn& e, const Atoms& x, FormulaMatch* match) const {
  return Matcher(b).Equation(*node_, e, x, match);
}

Atom Formula::Emit(Builder& b, const FormulaMatch& match, DType dtype) const {
  return Convert(b, Emitter(b, match, dtype).Of(*node_), dtype);
}

double Formula::Number(const FormulaMatch& match) const { return NumberOf(*node_, match); }
bool Formula::HasOperand(int i) const { return Any(*node_, Kind::kOperand, i); }
bool Formula::HasNumber(int i) const { return Any(*node_, Kind::kNumberLetter, i); }
std::string Formula::TextOfOneDtype() const {
  if (HoldsWide(*node_)) return "";
  std::string text = node_->text;
  for (size_t at; (at = text.find("wide(")) != std::string::npos;) {
    size_t end = at + 5;
    for (int open = 1; open > 0; ++end) open += text[end] == '(' ? 1 : text[end] == ')' ? -1 : 0;
    text = text.substr(0, at) + text.substr(at + 5, end - at - 6) + text.substr(end);
  }
  return text;
}

}  // namespace weft
