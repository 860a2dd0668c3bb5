#include "ir/text/printer.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "ir/prim.h"
#include "ir/text/element_text.h"

namespace weft {
namespace {

bool IsWordStart(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool IsWordPart(char c) { return IsWordStart(c) || (c >= '0' && c <= '9'); }

// `hint` as an identifier of the grammar; empty stays empty.
std::string Identifier(const std::string& hint) {
  std::string word;
  for (char c : hint) word += IsWordPart(c) ? c : '_';
  if (!word.empty() && !IsWordStart(word[0])) word.insert(word.begin(), '_');
  if (IsTextKeyword(word)) word += '_';
  return word;
}

// a, b, ..., z, aa, ab, ...
std::string LetterName(size_t index) {
  std::string name;
  for (size_t n = index + 1; n > 0; n = (n - 1) / 26) name.insert(name.begin(), static_cast<char>('a' + (n - 1) % 26));
  return name;
}

// Hands out names, each once.
class Names {
 public:
  std::string Take(const std::string& wanted) {
    std::string name = wanted;
    while (!taken_.insert(name).second) name = wanted + "_" + std::to_string(++copies_[wanted]);
    return name;
  }
  bool Has(const std::string& name) const { return taken_.count(name) > 0; }

 private:
  std::unordered_set<std::string> taken_;
  std::unordered_map<std::string, int> copies_;
};

std::vector<std::string> VariableNames(const Fn& fn) {
  std::vector<std::string> names(fn.num_vars());
  Names taken;
  for (size_t i = 0; i < fn.params().size() && i < names.size(); ++i) {
    const std::string hint = Identifier(fn.params()[i].name);
    if (!hint.empty()) names[i] = taken.Take(hint);
  }
  size_t next = 0;
  for (std::string& name : names) {
    if (!name.empty()) continue;
    do {
      name = LetterName(next++);
    } while (taken.Has(name) || IsTextKeyword(name));
  }
  return names;
}

void AppendNested(const Tensor& t, size_t dim, int64_t& next, std::string& out) {
  if (dim == t.shape().size()) {
    out += ElementText(t, next++);
    return;
  }
  out += '[';
  for (int64_t i = 0; i < t.shape()[dim]; ++i) {
    if (i > 0) out += ',';
    AppendNested(t, dim + 1, next, out);
  }
  out += ']';
}

using FnNames = std::unordered_map<const Fn*, std::string>;

// Writes the equations of one function, and those of its inline regions. `around`: where the equation is from that `fn`
// is a region of; what a transform put into it without a line of its own is from there.
class FnPrinter {
 public:
  FnPrinter(const Fn& fn, const PrintOptions& options, const FnNames& named, bool elide, std::string& out,
            Loc around = {})
      : fn_(fn),
        options_(options),
        named_(named),
        elide_(elide),
        names_(VariableNames(fn)),
        out_(out),
        around_(around) {}

  // (x: f32[3]) -> (f32[]) {...}
  void Signature() {
    out_ += '(';
    for (size_t i = 0; i < fn_.params().size(); ++i) {
      const Param& p = fn_.params()[i];
      if (i > 0) out_ += ", ";
      if (p.kind == Param::Kind::kConstant) out_ += "const ";
      out_ += Name(static_cast<uint32_t>(i)) + ": " + p.type.ToString();
    }
    out_ += ") -> (";
    for (size_t i = 0; i < fn_.results().size(); ++i) {
      if (i > 0) out_ += ", ";
      AppendType(fn_.results()[i]);
    }
    out_ += ')';
  }

  void Body(int indent, const std::string& comment = "") {
    out_ += " {" + comment + "\n";
    Lines(indent);
    out_.append(indent, ' ');
    out_ += '}';
  }

  // `comment` goes behind the first line, the one that names the operation.
  void Equation(const Eqn& e, int indent, std::string comment = "") {
    for (uint32_t r = 0; r < e.num_results && r <= fn_.num_vars(); ++r) {
      if (r > 0) out_ += ", ";
      const Atom result(e.result(static_cast<int>(r)));
      out_ += Name(result.id()) + ": ";
      AppendType(result);
    }
    if (e.num_results > 0) out_ += " = ";
    out_ += e.prim->name;
    if (!e.attrs.empty()) {
      out_ += '[';
      bool first = true;
      for (const Attrs::Entry& entry : e.attrs.entries()) {
        if (!first) out_ += ", ";
        first = false;
        out_ += entry.first + "=" + ToString(entry.second);
      }
      out_ += ']';
    }
    const bool all_named =
        std::all_of(e.regions.begin(), e.regions.end(), [&](const FnRef& r) { return named_.count(r.get()) > 0; });
    if (all_named) Regions(e, indent, comment);
    for (const Atom& a : e.operands) {
      out_ += ' ';
      AppendAtom(a);
    }
    if (!all_named) Regions(e, indent, comment);
    out_ += comment;
  }

 private:
  void Lines(int indent) {
    for (const Eqn& e : fn_.eqns()) {
      out_.append(indent + 2, ' ');
      std::string comment;
      if (const Loc& loc = e.loc ? e.loc : around_; options_.locations && loc) {
        comment = "  # " + loc.ToString();
        std::replace(comment.begin(), comment.end(), '\n', ' ');
      }
      Equation(e, indent + 2, std::move(comment));
      out_ += '\n';
    }
    out_.append(indent + 2, ' ');
    out_ += "return";
    for (size_t i = 0; i < fn_.results().size(); ++i) {
      out_ += i > 0 ? ", " : " ";
      AppendAtom(fn_.results()[i]);
    }
    out_ += '\n';
  }

  // Clears `comment` once it is written.
  void Regions(const Eqn& e, int indent, std::string& comment) {
    for (const FnRef& region : e.regions) {
      if (region == nullptr) {
        out_ += " ?";
        continue;
      }
      auto it = named_.find(region.get());
      if (it != named_.end()) {
        out_ += " @" + it->second;
        continue;
      }
      if (elide_ && e.prim->region_use == RegionUse::kCall) {
        out_ += " @" + Identifier(region->name());
        continue;
      }
      out_ += ' ';
      FnPrinter inner(*region, options_, named_, elide_, out_, e.loc ? e.loc : around_);
      inner.Signature();
      if (elide_) {
        out_ += " {...}";
      } else {
        inner.Body(indent, comment);
        comment.clear();
      }
    }
  }

  std::string Name(uint32_t id) const { return id < names_.size() ? names_[id] : "?" + std::to_string(id); }

  void AppendType(const Atom& a) { out_ += a.is_var() && a.id() >= fn_.num_vars() ? "?" : fn_.TypeOf(a).ToString(); }

  void AppendAtom(const Atom& a) {
    out_ += a.is_var() ? Name(a.id()) : a.literal().defined() ? Print(a.literal()) : "?";
  }

  const Fn& fn_;
  const PrintOptions& options_;
  const FnNames& named_;
  const bool elide_;
  const std::vector<std::string> names_;
  std::string& out_;
  const Loc around_;
};

// The functions to print on their own, each before its users.
struct Outline {
  std::unordered_map<const Fn*, int> references;
  std::unordered_set<const Fn*> called;
  std::vector<const Fn*> post_order;

  void Visit(const Fn& fn) {
    for (const Eqn& e : fn.eqns()) {
      for (const FnRef& region : e.regions) {
        if (e.prim->region_use == RegionUse::kCall) called.insert(region.get());
        if (references[region.get()]++ == 0) Visit(*region);
      }
    }
    post_order.push_back(&fn);
  }
};

}  // namespace

bool IsTextKeyword(const std::string& word) {
  static const auto& words =
      *new std::unordered_set<std::string>{"fn", "const", "return", "true", "false", "nan", "inf"};
  return words.count(word) > 0;
}

std::string Print(const Tensor& literal) {
  std::string text;
  if (literal.size() == 0) {
    text = "[]";
  } else {
    int64_t next = 0;
    AppendNested(literal, 0, next, text);
  }
  return text + ":" + (literal.rank() == 0 ? std::string(Name(literal.dtype())) : literal.type().ToString());
}

std::string Print(const Fn& fn, const PrintOptions& options) {
  Outline outline;
  outline.Visit(fn);
  Names taken;
  auto name_of = [&](const Fn& f) {
    const std::string name = Identifier(f.name());
    return taken.Take(name.empty() ? "f" : name);
  };
  const std::string root = name_of(fn);
  FnNames named;
  std::string out;
  for (const Fn* f : outline.post_order) {
    const bool is_root = f == &fn;
    if (!is_root && outline.references[f] < 2 && !outline.called.count(f)) continue;
    const std::string name = is_root ? root : name_of(*f);
    FnPrinter printer(*f, options, named, /*elide=*/false, out);
    out += "fn " + name;
    printer.Signature();
    printer.Body(0);
    out += is_root ? "\n" : "\n\n";
    named.emplace(f, name);
  }
  return out;
}

std::string PrintAround(const Fn& fn, size_t index, int context) {
  const size_t n = fn.eqns().size(), reach = static_cast<size_t>(context);
  const size_t begin = index > reach ? index - reach : 0, end = std::min(n, index + reach + 1);
  const PrintOptions options;
  const FnNames named;
  std::string out;
  FnPrinter printer(fn, options, named, /*elide=*/true, out);
  out += "  fn " + (fn.name().empty() ? std::string("f") : fn.name());
  printer.Signature();
  out += " {\n";
  if (begin > 0) out += "    ...\n";
  for (size_t i = begin; i < end; ++i) {
    out += i == index ? "  > " : "    ";
    printer.Equation(fn.eqns()[i], 4);
    out += '\n';
  }
  if (end < n) out += "    ...\n";
  return out + "  }";
}

}  // namespace weft
