// Type rules see whatever a foreign text or file says: each sample of each primitive, damaged in one place, is refused
// with an error of the user's kinds or has a type; never a crash, an exception of another class, or an internal error.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "ir/builder.h"
#include "ir/text/printer.h"

namespace weft {
namespace {

struct Damaged {
  Types operands;
  Mask literal;
  Attrs attrs;
  std::vector<FnRef> regions;
};

class InferTest : public ::testing::TestWithParam<const Prim*> {
 protected:
  void Try(const Damaged& d, const std::string& what) {
    const Prim& prim = *GetParam();
    ++tried_;
    SCOPED_TRACE(prim.name + ", " + what);
    Types types;
    try {
      Builder b;
      Atoms operands;
      for (size_t i = 0; i < d.operands.size(); ++i) {
        const Type& type = d.operands[i];
        operands.push_back(d.literal[i] ? Atom(Tensor::Zeros(type.dtype, StaticSizes(type.dims, "a literal")))
                                        : b.Parameter(type));
      }
      for (const Atom& result : b.Emit(prim, operands, d.attrs, d.regions)) types.push_back(b.TypeOf(result));
    } catch (const Error& error) {
      EXPECT_NE(error.kind(), ErrorKind::kInternal) << error.message();
      EXPECT_FALSE(error.message().empty());
      return;
    } catch (const std::exception& error) {
      ADD_FAILURE() << "an exception of a foreign class: " << error.what();
      return;
    }
    for (const Type& t : types) {
      for (const Dim& dim : t.dims) EXPECT_TRUE(!dim.is_static() || dim.value() >= 0) << t;
    }
  }
  int tried_ = 0;
};

std::vector<Attr> OddValues(const Attr& attr) {
  std::vector<Attr> list = {true,
                            int64_t{0},
                            int64_t{-1},
                            int64_t{99},
                            INT64_MAX,
                            INT64_MIN,
                            0.5,
                            std::string(),
                            std::string("ij,jk,kl->->"),
                            std::string("aa,b->c"),
                            DType::kKey,
                            DType::kBool,
                            Ints{},
                            Dims{},
                            Types{},
                            Strings{}};
  if (const Ints* ints = std::get_if<Ints>(&attr)) {
    for (int64_t odd : {int64_t{-1}, int64_t{0}, int64_t{7}, INT64_MAX, INT64_MIN}) {
      for (size_t i = 0; i < ints->size(); ++i) {
        Ints changed = *ints;
        changed[i] = odd;
        list.push_back(changed);
      }
      list.push_back(Ints(ints->size(), odd));
      Ints longer = *ints;
      longer.push_back(odd);
      list.push_back(longer);
    }
    if (!ints->empty()) list.push_back(Ints(ints->begin(), ints->end() - 1));
  }
  if (const Dims* dims = std::get_if<Dims>(&attr)) {
    for (const Dim& odd :
         {Dim(0), Dim(-1), Dim(7), Dim(INT64_MAX), Dim::Symbol("n"), Dim::Symbol("n") * Dim::Symbol("m") - 5}) {
      for (size_t i = 0; i < dims->size(); ++i) {
        Dims changed = *dims;
        changed[i] = odd;
        list.push_back(changed);
      }
      list.push_back(Dims(dims->size(), odd));
      Dims longer = *dims;
      longer.push_back(odd);
      list.push_back(longer);
    }
  }
  return list;
}

Types OddTypes(const Type& type) {
  Types list = {{DType::kF32, {}},
                {DType::kKey, {2}},
                {DType::kI32, {3, 3, 3, 3, 3}},
                {DType::kBool, {0}},
                {DType::kC64, type.dims},
                {DType::kI32, type.dims},
                {DType::kF8E5M2, type.dims},
                {type.dtype, {INT64_MAX, INT64_MAX}},
                {type.dtype, {Dim::Symbol("n")}}};
  for (int i = 0; i < type.rank(); ++i) {
    for (const Dim& odd : {Dim(0), Dim(99), Dim(INT64_MAX), Dim::Symbol("n"), Dim::Symbol("n") * 2 - 3}) {
      list.push_back(type);
      list.back().dims[i] = odd;
    }
    Type fewer = type;
    fewer.dims.erase(fewer.dims.begin() + i);
    list.push_back(fewer);
  }
  list.push_back(type);
  list.back().varying = {"x"};
  return list;
}

TEST_P(InferTest, RefusesDamagedEquations) {
  const Prim& prim = *GetParam();
  ASSERT_TRUE(prim.samples) << prim.name << " has no samples";
  std::vector<Sample> samples = prim.samples();
  if (samples.empty()) GTEST_SKIP() << "lives inside `recursive` only";
  if (samples.size() > 6) samples.resize(6);
  Builder empty_builder("nothing"), other_builder("other");
  const FnRef nothing = empty_builder.Build({});
  const Atom x = other_builder.Parameter({DType::kI8, {2}});
  const FnRef other = other_builder.Build({x});
  for (const Sample& s : samples) {
    const Damaged whole{s.operands, Mask(s.operands.size(), false), s.attrs, s.regions};
    Try(whole, "as it is");
    Try({{}, {}, s.attrs, s.regions}, "without operands");
    Try({{}, {}, {}, {}}, "without anything");
    for (size_t i = 0; i < s.operands.size(); ++i) {
      Damaged d = whole;
      d.operands.erase(d.operands.begin() + static_cast<int>(i)), d.literal.pop_back();
      Try(d, "without operand " + std::to_string(i));
      d = whole;
      d.operands.push_back(s.operands[i]), d.literal.push_back(false);
      Try(d, "with one more operand");
      for (const Type& odd : OddTypes(s.operands[i])) {
        d = whole;
        d.operands[i] = odd;
        Try(d, "operand " + std::to_string(i) + " of type " + odd.ToString());
        d.literal[i] = odd.rank() == 0;
        Try(d, "literal operand " + std::to_string(i) + " of type " + odd.ToString());
      }
    }
    for (const Attrs::Entry& entry : s.attrs.entries()) {
      Damaged d = whole;
      d.attrs = Attrs();
      for (const Attrs::Entry& kept : s.attrs.entries()) {
        if (kept.first != entry.first) d.attrs.Set(kept.first, kept.second);
      }
      Try(d, "without " + entry.first);
      for (const Attr& odd : OddValues(entry.second)) {
        d = whole;
        d.attrs.Set(entry.first, odd);
        Try(d, entry.first + "=" + ToString(odd));
      }
    }
    for (size_t i = 0; i <= s.regions.size(); ++i) {
      Damaged d = whole;
      d.regions.resize(i);
      Try(d, "with " + std::to_string(i) + " regions");
      d = whole;
      d.regions.insert(d.regions.begin() + static_cast<int>(i), other);
      Try(d, "with one more region");
      if (i == s.regions.size()) continue;
      for (const FnRef& odd : {nothing, other}) {
        d = whole;
        d.regions[i] = odd;
        Try(d, "region " + std::to_string(i) + " replaced");
      }
    }
  }
  EXPECT_GT(tried_, 3);
}

INSTANTIATE_TEST_SUITE_P(EveryPrim, InferTest, ::testing::ValuesIn(AllPrims()),
                         [](const auto& info) { return info.param->name; });

}  // namespace
}  // namespace weft
