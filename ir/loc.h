// Where an equation comes from: the user's stack of file:line:function, then the transforms it went through.
//
//   Loc line = Loc::File("model.py", 12, "loss", /*caller=*/Loc::File("train.py", 40, "<module>"));
//   Loc d = line.Through("jvp");         // prints  model.py:12 (loss) via jvp
//
// A Loc is one pointer into an interned, append-only table: cheap to copy, equal iff the same place. Locations never
// take part in structural hashes or equality.
#ifndef WEFT_IR_LOC_H_
#define WEFT_IR_LOC_H_

#include <string>
#include <utility>
#include <vector>

namespace weft {

struct LocNode;

class Loc {
 public:
  Loc() = default;
  static Loc File(const std::string& file, int line, const std::string& function);
  static Loc File(const std::string& file, int line, const std::string& function, Loc caller);
  // This location, seen through one more transform. Applying the same transform twice in a row is kept: grad(grad(f)).
  // `of`: what it is a derivative of, the name of an operation; it is not part of any text.
  Loc Through(const std::string& transform, const std::string& of = {}) const;

  explicit operator bool() const { return node_ != nullptr; }
  friend bool operator==(Loc a, Loc b) { return a.node_ == b.node_; }
  template <class H>
  friend H AbslHashValue(H h, Loc loc) {
    return H::combine(std::move(h), loc.node_);
  }

  // The user's innermost line, without transforms. Empty when unknown.
  std::string file() const;
  int line() const;
  std::string function() const;
  Loc caller() const;
  std::vector<std::string> transforms() const;  // innermost first
  // The operation of the user's program that this is (a part of) the derivative of; empty where it is of none.
  std::string DerivativeOf() const;

  std::string ToString() const;  // model.py:12 (loss) via jvp, transpose
  std::string Stack() const;     // one line per frame, innermost first

 private:
  explicit Loc(const LocNode* node) : node_(node) {}
  const LocNode* Frame() const;
  const LocNode* node_ = nullptr;
};

}  // namespace weft
#endif  // WEFT_IR_LOC_H_
