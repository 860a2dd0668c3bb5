// A sum of products of arrays, whatever operations it was written with: factors whose dimensions are named, of which
// dimensions of one name run together, and those that the result has not are summed. Matrix products, outer products by
// broadcasting, sums over dimensions, traces, diagonals, changes of shape and factors that are numbers are all of this
// form, and the order in which it is multiplied out is free.
//
//   ProductNetwork n(b);
//   const std::string out = n.Letters(type.dims);
//   n.AddRoot(e, x, out);                   // (A @ B) @ v: three factors
//   if (std::optional<Atom> value = n.Cheaper(out, type)) ...   // A @ (B @ v)
#ifndef WEFT_TRANSFORMS_OPT_NETWORK_H_
#define WEFT_TRANSFORMS_OPT_NETWORK_H_

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ir/builder.h"
#include "transforms/opt/known.h"

namespace weft {

// What a multiplication costs, and per element what goes through memory (a core multiplies about as fast as that).
inline constexpr double kCostOfElement = 8;

class ProductNetwork {  // network.cc, network_program.cc
 public:
  explicit ProductNetwork(Builder& b) : b_(b) {}

  // Whether nothing can be gained: a product of two factors that are no products, no views and no sparse arrays, each
  // of whose dimensions is in the result or in the other factor. Tells so without a look at sizes.
  static bool IsSingle(const Builder& b, const Eqn& e, const Atoms& x);

  // A letter for each dimension.
  std::string Letters(const Dims& dims);
  // Adds what the equation computes of `x`: a product (contract), a sum over dimensions, or a diagonal. False if it is
  // none of that, or of a dtype whose products are not reordered.
  bool AddRoot(const Eqn& e, const Atoms& x, const std::string& letters);
  // Adds a factor. What it is a product of is taken apart if nobody else reads it.
  void Add(const Atom& a, std::string letters);

  double cost_as_written() const { return written_; }
  // Whether nothing was left together because there were enough factors.
  bool is_whole() const { return is_whole_; }
  // In the best order; nothing where it is no such network after all.
  std::optional<double> BestCost(const std::string& out);
  // The value of this type by that order, whose dimensions are `out`. After BestCost.
  Atom Emit(const Type& type);
  // That, if it costs clearly less than the program as it is written.
  std::optional<Atom> Cheaper(const std::string& out, const Type& type);

 private:
  struct Term {
    Atom atom;
    std::string letters;  // kUnit: a dimension of size 1 that has no name
    std::optional<SparseArray> sparse;
  };
  using Set = uint64_t;  // of letters

  char NewLetter(const Dim& size);
  void AddBoth(const Atoms& x, const std::string& left, const std::string& right);
  bool AddEquation(const Eqn& e, const Atoms& x, const std::string& letters, bool root);
  bool ThroughView(Atom& a, std::string& letters);
  bool TakeDiagonals(Term& t);
  // What its best order depends on.
  std::string Text(const std::string& out) const;
  bool Resolve(const std::string& out);
  double Size(Set letters) const;
  static Set SetOf(const std::string& letters);
  // `elements`: of both and of the result.
  double PairCost(Set x, Set y, Set keep, const Term* tx, const Term* ty, double elements) const;
  // Whether `t`, one-hot or a triangle of ones, picks or sums up elements of a factor with these letters.
  bool Selects(const Term& t, Set other, Set keep) const;
  // Whether a product with `t`, one-hot rows that are summed, puts the other's elements where the rows say.
  bool Spreads(const Term& t, Set other, Set keep) const;
  Term EmitSubset(uint32_t subset);
  Term Pair(Term x, Term y, Set keep);
  Term Select(const Term& sparse, const Term& y);
  Term Spread(const Term& sparse, const Term& y);
  std::pair<Atom, std::string> RowsOf(const Term& one_hot);
  Term SumAway(Term t, Set away);
  Atom Aligned(const Term& t, const std::string& to);
  Dims DimsOf(const std::string& letters) const;

  Builder& b_;
  std::vector<Term> terms_;
  std::vector<Dim> dims_;                            // per letter
  std::vector<double> sizes_;                        // of these; 64 for one that is not known
  std::vector<std::pair<char, char>> equal_;         // letters whose indices are the same
  std::vector<std::pair<char, std::string>> split_;  // a letter that stands for several
  std::string out_;                                  // the letters of the result
  double scale_ = 1, written_ = 0, best_ = 0;
  Set gone_ = 0;  // letters that others stand for
  bool failed_ = false, is_whole_ = true;
  size_t waiting_ = 0;              // factors that are added after what is added now
  int left_ = 24;                   // equations that it takes apart at most
  std::vector<uint32_t> split_at_;  // per subset of the terms: one of the two parts that are multiplied
  std::vector<Set> kept_;           // per subset: the letters of its product
};

// What the rules of products share: the product "az,zy->ay" of x and y, by rules where they say how.
Atom EmitProduct(Builder& b, const std::string& spec, const Atom& x, const Atom& y);

}  // namespace weft
#endif  // WEFT_TRANSFORMS_OPT_NETWORK_H_
