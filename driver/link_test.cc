#include "lowering/cpu/link.h"

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <random>
#include <stdexcept>

#include "backends/loaded_code.h"
#include "gtest/gtest.h"
#include "ir/error.h"
#include "lowering/abi/code_image.h"

namespace weft {
namespace {

std::string Object(const std::string& name) {
  std::ifstream file("driver/testdata/" + name + ".o", std::ios::binary);
  EXPECT_TRUE(file.good()) << name;
  return {std::istreambuf_iterator<char>(file), {}};
}

template <class F, class... X>
auto Call(const LoadedCode& code, const std::string& name, X... x) {
  auto* f = reinterpret_cast<F*>(code.Find(name));
  EXPECT_NE(f, nullptr) << name;
  return f(x...);
}

void ExpectRight(const LoadedCode& code) {
  EXPECT_EQ(Call<int(int)>(code, "calls_the_other", 4), 108);
  EXPECT_EQ(Call<int(int)>(code, "from_table", 5), 9);
  EXPECT_EQ(Call<int(int)>(code, "through_pointer", 40), 43);
  EXPECT_EQ(Call<size_t(int)>(code, "length_of_word", 0), 3u);
  EXPECT_EQ(Call<size_t(int)>(code, "length_of_word", 1), 5u);
  EXPECT_EQ(Call<void*()>(code, "address_of_free"), reinterpret_cast<void*>(&std::free));
  EXPECT_EQ(*static_cast<void**>(code.Find("allocate")), reinterpret_cast<void*>(&std::malloc));
  EXPECT_EQ(Call<int()>(code, "calls_hidden"), 6);
  for (const auto& [n, want] : {std::pair(0, 4), {1, 42}, {2, -1}, {4, 17}, {5, 15}, {9, 0}})
    EXPECT_EQ(Call<int(int)>(code, "by_choice", n), want) << n;
}

TEST(Link, ObjectsThatReferToEachOtherInEitherOrder) {
  const std::string first = Object("first"), second = Object("second");
  for (const auto& objects : {std::vector{first, second}, std::vector{second, first}}) {
    const LoadedCode code(LinkObjects(objects));
    ExpectRight(code);
    EXPECT_EQ(code.Find("hidden_function"), nullptr);
    EXPECT_EQ(code.Find("local"), nullptr);
    EXPECT_EQ(code.Find("nothing"), nullptr);
  }
}

TEST(Link, EachLoadedImageHasVariablesOfItsOwn) {
  const std::string image = LinkObjects({Object("first"), Object("second")});
  const LoadedCode a(image), b(image);
  EXPECT_EQ(Call<int()>(a, "counts"), 1 + 8 + 1001);
  EXPECT_EQ(Call<int()>(a, "counts"), 2 + 9 + 1002);
  EXPECT_EQ(Call<int()>(b, "counts"), 1 + 8 + 1001);
  for (int i = 0; i < 3; ++i) {
    const LoadedCode c(image);
    ExpectRight(c);
  }
  EXPECT_EQ(Call<int(int)>(a, "by_choice", 3), 3 + 10 + 1003);
}

TEST(Link, RefusesWhatTheCodeGeneratorDoesNotMake) {
  EXPECT_THROW(LinkObjects({Object("thread_local")}), Error);
  EXPECT_THROW(LinkObjects({Object("first"), Object("first")}), Error);
  EXPECT_THROW(LinkObjects({"not an object"}), Error);
  EXPECT_THROW(LinkObjects({Object("first").substr(0, 200)}), Error);
}

TEST(Link, WhatTheProcessLacksIsNamed) {
  // Alone it lacks functions of the other object, as it would lack one of a library.
  try {
    const LoadedCode code(LinkObjects({Object("second")}));
    ADD_FAILURE() << "loaded";
  } catch (const std::runtime_error& e) {
    EXPECT_NE(std::string(e.what()).find("which the process lacks"), std::string::npos) << e.what();
  }
}

TEST(Link, DamagedImagesAreRefused) {
  const std::string image = LinkObjects({Object("first"), Object("second")});
  for (size_t n = 0; n < image.size(); n += 1 + n / 50)
    EXPECT_THROW(LoadedCode(image.substr(0, n)), std::runtime_error) << n;
  // Any byte outside of the code: either that is seen, or it is one that nothing depends on but what runs.
  std::minstd_rand random(3);
  CodeImageHeader header;
  std::memcpy(&header, image.data(), sizeof header);
  const size_t after = sizeof header + header.code_bytes + header.data_bytes;
  int refused = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string other = image;
    const size_t at = i % 2 == 0 ? random() % sizeof header : after + random() % (image.size() - after);
    other[at] = static_cast<char>(random());
    try {
      const LoadedCode code(other);
    } catch (const std::runtime_error&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 500);
}

}  // namespace
}  // namespace weft
