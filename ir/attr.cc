#include "ir/attr.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "absl/strings/escaping.h"
#include "absl/strings/str_join.h"

namespace weft {
namespace {

// The shortest text that reads back as the same double; always with a point, an exponent, inf or nan.
std::string DoubleText(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char buffer[40];
  const auto result = std::to_chars(buffer, buffer + sizeof(buffer), value);
  std::string text(buffer, result.ptr);
  if (text.find_first_of(".en") == std::string::npos) text += ".0";
  return text;
}

std::string Quoted(const std::string& text) { return "\"" + absl::CHexEscape(text) + "\""; }

struct Printer {
  std::string operator()(bool b) const { return b ? "true" : "false"; }
  std::string operator()(int64_t i) const { return std::to_string(i); }
  std::string operator()(double d) const { return DoubleText(d); }
  std::string operator()(const std::string& s) const { return Quoted(s); }
  std::string operator()(DType t) const { return Name(t); }
  std::string operator()(const Ints& v) const { return "[" + absl::StrJoin(v, ",") + "]"; }
  std::string operator()(const Dims& d) const { return "<" + ToString(d) + ">"; }
  std::string operator()(const Types& t) const { return "types(" + ToString(t) + ")"; }
  std::string operator()(const Strings& v) const {
    // An empty list of strings has to differ from an empty list of ints.
    if (v.empty()) return "[\"\"...]";
    return "[" + absl::StrJoin(v, ",", [](std::string* out, const std::string& s) { *out += Quoted(s); }) + "]";
  }
  std::string operator()(const Mesh& m) const { return m.ToString(); }
  std::string operator()(const Shardings& v) const {
    return "shardings(" + absl::StrJoin(v, ",", [](std::string* out, const Sharding& s) { *out += s.ToString(); }) +
           ")";
  }
};

}  // namespace

const char* KindName(const Attr& attr) {
  static constexpr const char* kNames[] = {"bool",
                                           "int",
                                           "float",
                                           "string",
                                           "dtype",
                                           "list of ints",
                                           "shape",
                                           "list of types",
                                           "list of strings",
                                           "mesh",
                                           "list of shardings"};
  return kNames[attr.index()];
}

std::string ToString(const Attr& attr) { return std::visit(Printer(), attr); }

Attrs::Attrs(std::initializer_list<Entry> entries) {
  if (entries.size() == 0) return;
  std::vector<Entry> sorted(entries);
  std::sort(sorted.begin(), sorted.end(), [](const Entry& a, const Entry& b) { return a.first < b.first; });
  entries_ = new Shared(std::move(sorted));
}

const std::vector<Attrs::Entry>& Attrs::entries() const {
  static const auto& none = *new std::vector<Entry>();
  return entries_ == nullptr ? none : entries_->list;
}

const Attr* Attrs::Find(const char* name) const {
  for (const Entry& e : entries()) {
    if (e.first == name) return &e.second;
  }
  return nullptr;
}

void Attrs::Set(const std::string& name, Attr value) {
  std::vector<Entry> changed = entries();
  auto it = std::lower_bound(changed.begin(), changed.end(), name,
                             [](const Entry& e, const std::string& n) { return e.first < n; });
  if (it != changed.end() && it->first == name) {
    it->second = std::move(value);
  } else {
    changed.insert(it, {name, std::move(value)});
  }
  entries_ = new Shared(std::move(changed));
}

bool operator==(const Attrs& a, const Attrs& b) {
  auto same = [](const Attrs::Entry& x, const Attrs::Entry& y) {
    if (x.first != y.first) return false;
    const double *p = std::get_if<double>(&x.second), *q = std::get_if<double>(&y.second);
    return p && q ? std::bit_cast<uint64_t>(*p) == std::bit_cast<uint64_t>(*q) : x.second == y.second;
  };
  if (a.entries_ == b.entries_) return true;
  const std::vector<Attrs::Entry>&x = a.entries(), &y = b.entries();
  return std::equal(x.begin(), x.end(), y.begin(), y.end(), same);
}

}  // namespace weft
