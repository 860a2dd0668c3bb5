// Static attributes of an equation: a small map, sorted by name, of plain values. Copies share them, since transforms
// copy equations more often than they change what they say.
//
//   Attrs a = {{"dims", Ints{0, 1}}, {"keep", true}};
//   a.Get<Ints>("dims")                    // raises kValue naming the attribute when missing or of another kind
#ifndef WEFT_IR_ATTR_H_
#define WEFT_IR_ATTR_H_

#include <bit>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "ir/error.h"
#include "ir/mesh.h"
#include "ir/type.h"
#include <boost/smart_ptr/intrusive_ptr.hpp>
#include <boost/smart_ptr/intrusive_ref_counter.hpp>

namespace weft {

using Ints = std::vector<int64_t>;
using Strings = std::vector<std::string>;
// The text form of each kind, in this order: true, 3, 2.5, "text", f32, [1,2], <8,n>, types(f32[3], i32[]), ["a","b"],
// mesh(x=2,y=4), shardings((x,-),()).
using Attr = std::variant<bool, int64_t, double, std::string, DType, Ints, Dims, Types, Strings, Mesh, Shardings>;

const char* KindName(const Attr& attr);  // "int", "list of ints" ... for errors
std::string ToString(const Attr& attr);

class Attrs {
 public:
  using Entry = std::pair<std::string, Attr>;
  Attrs() = default;
  Attrs(std::initializer_list<Entry> entries);

  bool empty() const { return entries_ == nullptr; }
  const std::vector<Entry>& entries() const;
  const Attr* Find(const char* name) const;
  void Set(const std::string& name, Attr value);
  Attrs With(const std::string& name, Attr value) const {
    Attrs copy = *this;
    copy.Set(name, std::move(value));
    return copy;
  }

  template <class T>
  const T& Get(const char* name) const {
    const Attr* attr = Find(name);
    if (attr == nullptr) throw ValueError("attribute '", name, "' is missing");
    const T* value = std::get_if<T>(attr);
    if (value == nullptr) {
      throw ValueError("attribute '", name, "' is ", ToString(*attr), ", a ", KindName(*attr), "; expected a ",
                       KindName(Attr(T())));
    }
    return *value;
  }
  int64_t GetInt(const char* name) const { return Get<int64_t>(name); }
  bool GetBool(const char* name) const { return Get<bool>(name); }
  template <class T>
  T GetOr(const char* name, T fallback) const {
    return Find(name) == nullptr ? fallback : Get<T>(name);
  }

  // Numbers are equal when their bits are: NaN is NaN, -0.0 is not 0.0.
  friend bool operator==(const Attrs& a, const Attrs& b);
  template <class H>
  friend H AbslHashValue(H h, const Attrs& a) {
    for (const Entry& e : a.entries()) {
      h = H::combine(std::move(h), e.first, e.second.index());
      h = std::visit(
          [&](const auto& value) {
            if constexpr (std::is_same_v<std::decay_t<decltype(value)>, double>)
              return H::combine(std::move(h), std::bit_cast<uint64_t>(value));
            else
              return H::combine(std::move(h), value);
          },
          e.second);
    }
    return h;
  }

 private:
  struct Shared : boost::intrusive_ref_counter<Shared> {
    explicit Shared(std::vector<Entry> entries) : list(std::move(entries)) {}
    std::vector<Entry> list;
  };
  boost::intrusive_ptr<const Shared> entries_;  // null when there are none; one word, since most equations have none
};

}  // namespace weft
#endif  // WEFT_IR_ATTR_H_
