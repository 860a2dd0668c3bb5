#include "transforms/opt/expression_text.h"

#include <array>
#include <complex>
#include <cstdio>

#include "ir/attr.h"
#include "ir/prim_table.h"

namespace weft {
namespace {

// How an operation is written between its operands, and how tightly it binds; null: as a function.
struct Sign {
  const char* text = nullptr;
  int binds = 0;
};
constexpr int kSum = 1, kProduct = 2, kSigned = 3;

const PrimTable<Sign>& Signs() {
  static const auto& signs = *new PrimTable<Sign>{{"add", {" + ", kSum}},
                                                  {"sub", {" - ", kSum}},
                                                  {"mul", {" * ", kProduct}},
                                                  {"div", {" / ", kProduct}},
                                                  {"neg", {"-", kSigned}}};
  return signs;
}

std::string NumberText(const Tensor& t) {
  if (t.size() != 1) return "[" + std::to_string(t.size()) + " numbers]";
  const std::complex<double> value = t.Get(0);
  std::array<char, 64> text{};
  if (value.imag() != 0)
    std::snprintf(text.data(), text.size(), "%.9g%+.9gj", value.real(), value.imag());
  else
    std::snprintf(text.data(), text.size(), "%.9g", value.real());
  return text.data();
}

std::string AttributesText(const Attrs& attrs) {
  std::string text;
  for (const auto& [name, value] : attrs.entries()) text += (text.empty() ? "" : ", ") + name + "=" + ToString(value);
  return text;
}

std::string Bracketed(std::string text, bool yes) { return yes ? "(" + std::move(text) + ")" : text; }

}  // namespace

std::string ExpressionText::Letter(const Atom& value) {
  static constexpr std::array<char, 6> kLetters = {'x', 'y', 'z', 'w', 'v', 'u'};
  const auto [it, is_new] = letters_.try_emplace(value.id());
  if (!is_new) return it->second;
  const size_t n = letters_.size() - 1;
  it->second = n < kLetters.size() ? std::string(1, kLetters[n]) : "x" + std::to_string(n - kLetters.size() + 1);
  return it->second;
}

std::string ExpressionText::Write(const Atom& value, int depth, int around) {
  if (value.is_literal())
    return Bracketed(NumberText(value.literal()), around > kSum && value.literal().Get(0).real() < 0);
  const Eqn* e = letters_.contains(value.id()) || depth == 0 ? nullptr : definition_(value);
  if (e == nullptr || e->num_results != 1) return Letter(value);
  return Write(*e, e->operands, depth - 1, around);
}

std::string ExpressionText::Write(const Eqn& e, const Atoms& x, int depth, int around) {
  const Sign sign = Signs()[*e.prim];
  if (sign.text != nullptr && x.size() == 1) return Bracketed(sign.text + Write(x[0], depth, kSigned), around > kSum);
  if (sign.text != nullptr) {
    // What stands to the right of a minus or a quotient needs brackets where it binds no tighter.
    std::string text = Write(x[0], depth, sign.binds);
    text += sign.text + Write(x[1], depth, sign.binds + (e.prim->commutes ? 0 : 1));
    return Bracketed(std::move(text), around > sign.binds);
  }
  std::string text = e.prim->name;
  if (const std::string attrs = AttributesText(e.attrs); !attrs.empty()) text += "[" + attrs + "]";
  text += "(";
  for (size_t i = 0; i < x.size(); ++i) text += (i > 0 ? ", " : "") + Write(x[i], depth, 0);
  return text + ")";
}

std::string ExpressionText::Of(const Atom& value, int depth) { return Write(value, depth, 0); }

std::string ExpressionText::Of(const Eqn& e, const Atoms& x, int depth) { return Write(e, x, depth, 0); }

void ExpressionText::Name(const Atom& value, uint32_t first_id, int depth) {
  if (value.is_literal()) return;
  const Eqn* e = value.id() < first_id || depth == 0 ? nullptr : definition_(value);
  if (e == nullptr || e->num_results != 1) {
    Letter(value);
    return;
  }
  for (const Atom& a : e->operands) Name(a, first_id, depth - 1);
}

}  // namespace weft
