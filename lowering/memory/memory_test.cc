// When values live and what shares a buffer, of schedules written by hand.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "ir/error.h"
#include "lowering/memory/assignment.h"
#include "lowering/memory/liveness.h"
#include "lowering/schedule/schedule.h"

namespace weft {
namespace {

using Why = Assignment::Pair::Why;
using Place = Assignment::Buffer::Place;

// A program of temporaries of 64 bytes besides what `values` says.
std::string ProgramOf(const std::string& values, int temporaries, const std::string& steps) {
  std::string text = values;
  int first = 0;
  for (size_t at = 0; (at = values.find("bytes", at)) != std::string::npos; ++at) ++first;
  for (int i = 0; i < temporaries; ++i) text += "%" + std::to_string(first + i) + ": temporary, 64 bytes\n";
  return "program f\n" + text + steps + "end\n";
}

struct Laid {
  Schedule schedule;
  Liveness liveness;
  Assignment assignment;
  explicit Laid(const std::string& text)
      : schedule(Schedule::Parse(text)),
        liveness(FindLiveness(schedule)),
        assignment(AssignBuffers(schedule, liveness)) {}
  std::string Ranges(int v) const {
    std::string text;
    for (const Liveness::Range& r : liveness.frames[0].ranges[static_cast<size_t>(v)])
      text += (text.empty() ? "" : " ") + std::to_string(r.first) + "-" + std::to_string(r.last);
    return text;
  }
  bool Share(int a, int b) const {
    const std::vector<int>& buffer = assignment.frames[0].buffer;
    return buffer[static_cast<size_t>(a)] == buffer[static_cast<size_t>(b)];
  }
  const Assignment::Buffer& BufferOf(int v) const {
    const Assignment::Frame& f = assignment.frames[0];
    return f.buffers[static_cast<size_t>(f.buffer[static_cast<size_t>(v)])];
  }
  Why WhyOf(int result, int operand) const {
    for (const Assignment::Pair& p : assignment.frames[0].pairs) {
      if (p.result == result && p.operand == operand) return p.why;
    }
    ADD_FAILURE() << "no pair of %" << result << " and %" << operand << "\n" << assignment.ToString();
    return Why::kTaken;
  }
};

TEST(Liveness, OfStraightCode) {
  const Laid l(ProgramOf("%0: param 0, 64 bytes\n%1: result 0, 64 bytes\n", 3,
                         "1: kernel k0 (%0, -> %2)\n2: kernel k0 (%2, -> %3)\n3: kernel k0 (%0, %3, -> %4)\n"
                         "4: copy result (-> %1, %4)\n"));
  EXPECT_EQ(l.Ranges(0), "0-3");
  EXPECT_EQ(l.Ranges(1), "4-5");  // somebody reads it when the program has ended
  EXPECT_EQ(l.Ranges(2), "1-2");
  EXPECT_EQ(l.Ranges(4), "3-4");
}

// %2 is a carry, %4 what it becomes, %3 is read in each iteration.
const char* const kLoop =
    "1: kernel k0 (%0, -> %3)\n2: copy start (-> %2, %0)\n"
    "3: for 9 {\n5: kernel k1 (%2, %3, -> %4) may %4 = %2\n6: copy result (-> %2, %4)\n}\n9: copy result (-> %1, %2)\n";

TEST(Liveness, OfACarryHasAGap) {
  const Laid l(ProgramOf("%0: param 0, 64 bytes\n%1: result 0, 64 bytes\n", 3, kLoop));
  EXPECT_EQ(l.Ranges(2), "2-5 6-9");
  EXPECT_EQ(l.Ranges(3), "1-8");  // read in the loop: until its end
  EXPECT_EQ(l.Ranges(4), "5-6");
  EXPECT_TRUE(l.Share(2, 4));
  EXPECT_TRUE(l.Share(2, 1));
  EXPECT_FALSE(l.Share(2, 3));
  EXPECT_EQ(l.WhyOf(2, 0), Why::kNotOurs);
  const Laid given("donated 0\n" + ProgramOf("%0: param 0, 64 bytes\n%1: result 0, 64 bytes\n", 3, kLoop));
  EXPECT_EQ(given.WhyOf(2, 0), Why::kTaken);
  EXPECT_EQ(given.BufferOf(4).result, 0);
  EXPECT_EQ(given.BufferOf(4).place, Place::kParam);
}

// What a carry becomes may not lie in it while the old one is read.
TEST(Assignment, ACarryThatIsReadLateIsCopied) {
  const Laid l(
      ProgramOf("%0: param 0, 64 bytes\n%1: result 0, 64 bytes\n", 3,
                "1: copy start (-> %2, %0)\n2: for 9 {\n4: kernel k0 (%2, -> %3)\n5: kernel k1 (%2, %3, -> %4)\n"
                "6: copy result (-> %2, %3)\n}\n9: copy result (-> %1, %2)\n"));
  EXPECT_EQ(l.WhyOf(2, 3), Why::kLivesOn);
  EXPECT_FALSE(l.Share(2, 3));
}

// Two carries that change places: the cycle is not broken by putting them together.
TEST(Assignment, CarriesThatChangePlaces) {
  const Laid l(
      ProgramOf("%0: param 0, 64 bytes\n%1: param 1, 64 bytes\n%2: result 0, 64 bytes\n%3: result 1, 64 bytes\n", 3,
                "1: copy start (-> %4, %0)\n2: copy start (-> %5, %1)\n3: for 3 {\n"
                "5: copy data (-> %6, %4)\n6: copy result (-> %4, %5)\n7: copy result (-> %5, %6)\n}\n"
                "10: copy result (-> %2, %4)\n11: copy result (-> %3, %5)\n"));
  EXPECT_FALSE(l.Share(4, 5));
  EXPECT_FALSE(l.Share(4, 6));
  EXPECT_FALSE(l.Share(5, 6));
}

// A parameter that only the body names is there in every iteration.
TEST(Liveness, OfAParameterInALoop) {
  const Laid l("donated 0\n" + ProgramOf("%0: param 0, 64 bytes\n%1: result 0, 64 bytes\n", 2,
                                         "1: kernel k0 (-> %2)\n2: for 9 {\n4: kernel k1 (%2, %0, -> %3) may %3 = %0\n"
                                         "5: copy result (-> %2, %3)\n}\n8: copy result (-> %1, %2)\n"));
  EXPECT_EQ(l.Ranges(0), "0-7");
  EXPECT_EQ(l.WhyOf(3, 0), Why::kLivesOn);
}

TEST(Liveness, OfBranches) {
  // %3 is read in one branch, %2 is what both give, %4 and %5 are what they make it of.
  const Laid l(
      ProgramOf("%0: param 0, 1 bytes\n%1: result 0, 64 bytes\n", 4,
                "1: kernel k0 (-> %3)\n2: if %0 bool {\n4: kernel k1 (%3, -> %4)\n5: copy result (-> %2, %4)\n} {\n"
                "8: kernel k0 (-> %5)\n9: copy result (-> %2, %5)\n}\n12: copy result (-> %1, %2)\n"));
  EXPECT_EQ(l.Ranges(3), "1-2 3-4");  // nothing lies between the ranges
  EXPECT_EQ(l.Ranges(2), "5-6 9-10 11-12");
  EXPECT_TRUE(l.Share(2, 4));
  EXPECT_TRUE(l.Share(2, 5));
  EXPECT_TRUE(l.Share(2, 1));
}

// What decides is a slice of an array, so the array lives through all iterations.
TEST(Liveness, OfAPredicateThatPointsIntoAnArray) {
  const Laid l(
      ProgramOf("%0: param 0, 64 bytes\n%1: result 0, 64 bytes\n%2: temporary, 9 bytes\n%3: moving in %2, 1 bytes\n", 3,
                "1: kernel k0 (%0, -> %2)\n2: for 9 (%2) slices %3 of %2 by 1 {\n4: if %3 bool {\n"
                "6: kernel k1 (%0, -> %4)\n7: copy result (-> %5, %4)\n} {\n10: kernel k2 (%0, -> %6)\n"
                "11: copy result (-> %5, %6)\n}\n14: kernel k3 (%5, -> %1)\n}\n"));
  EXPECT_EQ(l.Ranges(2), "1-16");
}

TEST(Liveness, OfALoopsTest) {
  // %2 is the predicate, %3 the carry, which the test reads, %4 what it becomes.
  const Laid l(
      ProgramOf("%0: param 0, 64 bytes\n%1: result 0, 64 bytes\n", 4,
                "1: copy start (-> %3, %0)\n2: while %2 {\n4: kernel k0 (%3, -> %5)\n5: copy result (-> %2, %5)\n} {\n"
                "8: kernel k1 (%3, -> %4) may %4 = %3\n9: copy result (-> %3, %4)\n}\n12: copy result (-> %1, %3)\n"));
  EXPECT_EQ(l.Ranges(2), "5-6");
  EXPECT_EQ(l.Ranges(3), "1-8 9-12");
  EXPECT_TRUE(l.Share(3, 4));
  EXPECT_TRUE(l.Share(2, 5));
}

// %1 is stacked, %3 the slice of it that an iteration makes, of %4; %5 is made of %4, but before the loop's slice.
TEST(Assignment, ASliceIsMadeWhereItBelongs) {
  const Laid l(
      ProgramOf("%0: param 0, 64 bytes\n%1: result 0, 640 bytes\n%2: temporary, 640 bytes\n"
                "%3: moving in %2, 64 bytes\n",
                2,
                "1: kernel k0 (%0, -> %5)\n2: for 10 (-> %2) slices %3 of %2 by 64 {\n"
                "4: kernel k1 (%5, -> %4) may %4 = %5\n5: copy result (-> %3, %4)\n}\n8: copy result (-> %1, %2)\n"));
  EXPECT_EQ(l.Ranges(2), "2-8");
  EXPECT_TRUE(l.Share(1, 2));
  EXPECT_TRUE(l.Share(3, 4));
  EXPECT_EQ(l.BufferOf(4).place, Place::kMoving);
  EXPECT_NE(l.WhyOf(4, 5), Why::kTaken);  // it is read in every iteration
}

TEST(Assignment, SaysWhyAPairIsNotTaken) {
  const std::string ends =
      "%0: param 0, 64 bytes\n%1: result 0, 64 bytes\n%2: result 1, 32 bytes\n%3: constant, 64 bytes\n";
  const Laid l(ProgramOf(ends, 3,
                         "1: kernel k0 (%0, -> %4) may %4 = %0\n2: kernel k0 (%3, -> %5) may %5 = %3\n"
                         "3: kernel k1 (%5, -> %6) may %6 = %5\n4: kernel k1 (%5, %6, %4, -> %1)\n"
                         "5: kernel k2 (%4, -> %2) may %2 = %4\n"));
  EXPECT_EQ(l.WhyOf(4, 0), Why::kNotOurs);
  EXPECT_EQ(l.WhyOf(5, 3), Why::kNotOurs);
  EXPECT_EQ(l.WhyOf(6, 5), Why::kLivesOn);
  EXPECT_EQ(l.WhyOf(2, 4), Why::kTooSmall);
  EXPECT_NE(l.assignment.ToString().find("1: %4 = %0, in place, not taken, the operand is not ours to write"),
            std::string::npos);
}

// Sizes that depend on symbols: an operand is as large as the result that is written over it.
TEST(Assignment, OfSymbolicSizes) {
  const Laid l(
      "program f\n%0: param 0, 4*n bytes\n%1: result 0, 4*n bytes\n%2: temporary, 4*n bytes\n%3: temporary, 4*n bytes\n"
      "%4: temporary, 8 bytes\n1: kernel k0 (%0, -> %2)\n2: kernel k1 (%2, -> %3) may %3 = %2\n"
      "3: kernel k1 (%3, -> %4) may %4 = %3\n4: kernel k1 (%4, -> %1)\nend\n");
  EXPECT_TRUE(l.Share(2, 3));
  EXPECT_TRUE(l.Share(3, 4));
  EXPECT_EQ(l.BufferOf(4).bytes, *Dim::Parse("4*n"));
}

// Results find the donated parameters that are written over anyway, and dead ones, before temporaries do.
TEST(Assignment, DonatedMemory) {
  const std::string ends =
      "%0: param 0, 64 bytes\n%1: param 1, 64 bytes\n%2: param 2, 128 bytes\n%3: result 0, 64 bytes\n%4: result 1, 64 "
      "bytes\n";
  const std::string steps =
      "1: kernel k0 (%2, -> %5)\n2: kernel k0 (%5, %0, -> %6) may %6 = %5, %6 = %0\n3: kernel k0 (%1, -> %7)\n"
      "4: kernel k0 (%7, -> %8)\n5: copy result (-> %3, %6)\n6: copy result (-> %4, %8)\n";
  const Laid l("donated 0 1 2\n" + ProgramOf(ends, 4, steps));
  EXPECT_TRUE(l.Share(3, 0));
  EXPECT_TRUE(l.Share(4, 1));
  EXPECT_EQ(l.BufferOf(3).result, 0);
  EXPECT_EQ(l.BufferOf(4).result, 1);
  EXPECT_TRUE(l.Share(7, 2));  // room in what is dead
  const Laid kept(ProgramOf(ends, 4, steps));
  for (int v = 3; v < 9; ++v) {
    for (int p = 0; p < 3; ++p) EXPECT_FALSE(kept.Share(v, p));
  }
}

// What the devices of a mesh leave in their blocks of a donated parameter is a result of the program in its memory.
TEST(Assignment, DonatedBlocks) {
  const auto laid = [](const std::string& donated, const std::string& places, const std::string& steps) {
    return Laid(
        donated +
        "program f\n%0: param 0, 64 bytes\n%1: param 1, 64 bytes\n%2: result 0, 64 bytes\n%3: result 1, 64 bytes\n"
        "1: call collective runs 1 (%0, %1, -> %2, -> %3) [overwritten 0, left_in 0]\nend\n" +
        places +
        "function g\n%0: param 0, 16 bytes\n%1: param 1, 16 bytes\n%2: result 0, 16 bytes\n%3: result 1, 16 bytes\n"
        "%4: temporary, 16 bytes\n%5: temporary, 16 bytes\n" +
        steps + "end\n");
  };
  const std::string in_place =
      "1: kernel k0 (%0, -> %4) may %4 = %0\n2: kernel k0 (%1, -> %5) may %5 = %1\n"
      "3: copy result (-> %2, %4)\n4: copy result (-> %3, %5)\n";
  // The second result is written while the first parameter is still read, and the other way round.
  const std::string crossed =
      "1: kernel k0 (%0, %1, -> %4)\n2: kernel k0 (%0, %1, -> %5)\n3: kernel k0 (%0, %1)\n"
      "4: copy result (-> %2, %4)\n5: copy result (-> %3, %5)\n";
  const Laid both = laid("donated 0 1\n", "donated 0 1 places 0 0 0 0\n", in_place);
  EXPECT_TRUE(both.Share(0, 2));
  EXPECT_TRUE(both.Share(1, 3));
  const Laid one = laid("donated 1\n", "donated 1 places 0 0 0 0\n", in_place);
  EXPECT_FALSE(one.Share(0, 2));
  EXPECT_TRUE(one.Share(1, 3));
  // Other devices hold other blocks of the first result.
  const Laid apart = laid("donated 0 1\n", "donated 0 1 places 0 1 1 1\n", in_place);
  EXPECT_FALSE(apart.Share(0, 2));
  EXPECT_TRUE(apart.Share(1, 3) || apart.Share(1, 2));
  const Laid read = laid("donated 0 1\n", "donated 0 1 places 0 0 0 0\n", crossed);
  for (int r : {2, 3}) {
    const Assignment::Frame& g = read.assignment.frames[1];
    EXPECT_EQ(read.Share(0, r), g.buffer[0] == g.buffer[static_cast<size_t>(r)]);
    EXPECT_EQ(read.Share(1, r), g.buffer[1] == g.buffer[static_cast<size_t>(r)]);
  }
  const Laid kept = laid("", "", in_place);
  for (int r : {2, 3}) EXPECT_FALSE(kept.Share(0, r) || kept.Share(1, r));
}

TEST(ScheduleText, ComesBack) {
  const std::string text =
      "donated 1\nstring \"a \\\"b\\\"\\n\"\nprogram f\n  %0: param 0, 4*n bytes\n  %1: param 1, 8 bytes\n"
      "  %2: result 0, 8 bytes\n  %3: constant, 8 bytes\n  %4: moving in %0 %1, 4 bytes\n  %5: temporary, 8 bytes\n"
      "  1: kernel k3 (%0, -> %5, <> %2) [%0, %5, %2, n] may %5 = %0, %2 = %0 cost 2.5 moves 16\n"
      "  2: call tape_read (%0, @ %4) [%4, -1, result %5] note \"x\"\n  3: if %1 i32 {\n  } {\n    7: copy data (-> "
      "%5, %3)\n  }\n"
      "  10: while %1 can_fail {\n  } {\n  }\n  16: for 2*n reverse (%0) slices %4 of %0 by 4 {\n  }\n"
      "  20: checked {\n  } {\n  }\n  26: call collective runs 1 (%0, -> %2) [overwritten 0, left_in 0]\nend\n"
      "donated 0 places 1 1\nfunction g\n  %0: param 0, 8 bytes\n  %1: result 0, 8 bytes\nend\nfunction h\nend\n";
  EXPECT_EQ(Schedule::Parse(text).ToString(), text);
}

TEST(ScheduleText, SaysWhatIsWrong) {
  const std::string start = "program f\n  %0: param 0, 8 bytes\n  %1: temporary, 8 bytes\n";
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "expected a program in line 1"},
      {"function f\nend\n", "expected a program or function in line 1"},
      {"program f\n  %1: param 0, 8 bytes\nend\n", "expected values in order in line 2"},
      {"program f\n  %0: param 0, 8 byte\nend\n", "expected 'bytes' in line 2"},
      {start + "1: kernel x (%0)\nend\n", "expected the name of a kernel in line 4"},
      {start + "1: jump\nend\n", "expected a step in line 4"},
      {start + "1: copy data (%0, %1)\nend\n", "expected what is written and what is read in line 4"},
      {start + "1: call fly (%0)\nend\n", "expected the name of an operation of the runtime in line 4"},
      {start + "1: kernel k0 (%7)\nend\n", "expected a value of the frame, not %7 in line 4"},
      {start + "1: while %0 {\n}\nend\n", "expected another number of blocks in line 6"},
      {start + "1: if %0 bool {\n", "expected a number in line 5"},
      {start + "1: kernel k0 (%0) may %1 : %0\nend\n", "expected '=' in line 4"},
  };
  for (const auto& [text, message] : cases) {
    try {
      Schedule::Parse(text);
      ADD_FAILURE() << text;
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::kParse);
      EXPECT_NE(std::string(e.what()).find(message), std::string::npos) << e.what() << "\nfor " << text;
    }
  }
}

}  // namespace
}  // namespace weft
