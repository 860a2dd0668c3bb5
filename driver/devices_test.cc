// The devices of backends, and memory on them. WEFT_NUM_CPU_DEVICES is 3 (BUILD.bazel).
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>

#include "driver/backend.h"
#include "driver/executable.h"
#include "ir/builder.h"
#include "ir/error.h"
#include "ir/ops.h"

namespace weft {
namespace {

TEST(Devices, AreListedByEachBackend) {
  for (const char* name : {"cpu", "interpreter"}) {
    const std::vector<Device> devices = FindBackend(name)->Devices();
    ASSERT_EQ(devices.size(), 3u) << name;
    for (size_t i = 0; i < devices.size(); ++i) {
      EXPECT_EQ(devices[i].platform, "cpu");
      EXPECT_EQ(devices[i].index, static_cast<int64_t>(i));
      EXPECT_EQ(devices[i].memory.kind, "host");
      EXPECT_GT(devices[i].memory.bytes, 1 << 20);
    }
  }
}

TEST(Devices, OfGpusThereAreNone) {
  const std::shared_ptr<const Backend> gpu = FindBackend("cuda:sm_90a");
  EXPECT_TRUE(gpu->Devices().empty());
  try {
    gpu->Memory();
    ADD_FAILURE();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kUnsupported);
    EXPECT_NE(std::string(e.what()).find("cuda:sm_90a"), std::string::npos) << e.what();
  }
}

class Once : public Event {
 public:
  explicit Once(int* waits) : waits_(waits) {}
  bool Done() const override { return false; }
  void Wait() override { ++*waits_; }

 private:
  int* waits_;
};

TEST(Memory, IsTakenOnDevicesAndCopiedBetweenThem) {
  const DeviceMemory& memory = FindBackend("cpu")->Memory();
  for (const int64_t bytes : {0, 1, 5000, 1 << 20}) {
    for (int64_t from = 0; from < 3; ++from) {
      for (int64_t to = 0; to < 3; ++to) {
        Buffer a = memory.Allocate(from, bytes);
        const Buffer b = memory.Allocate(to, bytes + 8);
        EXPECT_EQ(a.device, from);
        EXPECT_EQ(b.device, to);
        EXPECT_EQ(b.bytes, bytes + 8);
        EXPECT_NE(a.address, b.address);
        EXPECT_EQ(reinterpret_cast<uintptr_t>(b.address) % 64, 0u);
        EXPECT_TRUE(memory.Gave(a.owner));
        for (int64_t i = 0; i < bytes; ++i) static_cast<char*>(a.address)[i] = static_cast<char>(i * 7 + from);
        std::memset(b.address, 1, static_cast<size_t>(b.bytes));
        int waits = 0;
        a.ready = std::make_shared<Once>(&waits);
        memory.Copy(a, b);
        EXPECT_EQ(waits, 1);
        EXPECT_EQ(std::memcmp(a.address, b.address, static_cast<size_t>(bytes)), 0);
        for (int64_t i = bytes; i < b.bytes; ++i) EXPECT_EQ(static_cast<char*>(b.address)[i], 1);
      }
    }
  }
  EXPECT_FALSE(memory.Gave(std::make_shared<int>(1)));
}

TEST(Memory, OfDevicesThatAreNoneIsRefused) {
  const DeviceMemory& memory = FindBackend("cpu")->Memory();
  for (const int64_t device : {-1, 3, 4096}) {
    try {
      memory.Allocate(device, 8);
      ADD_FAILURE() << device;
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::kValue);
      EXPECT_NE(std::string(e.what()).find("there is no device " + std::to_string(device)), std::string::npos);
      EXPECT_NE(std::string(e.what()).find("there are 3"), std::string::npos);
    }
  }
  EXPECT_THROW(memory.Allocate(0, int64_t{1} << 60), std::bad_alloc);
}

// A donated argument that somebody else holds stays as it is, and the program writes into a copy.
TEST(Memory, OfDonatedArgumentsThatOthersHoldIsCopied) {
  Builder b("f");
  const Atom x = b.Parameter(Type{DType::kF32, {Dim(1000)}, {}}, "x");
  CompileRequest request{b.Build({b.Emit1(FindPrim("exp"), {x})})};
  request.donated = {true};
  const auto program = Compile(request);
  Tensor held = Tensor::Full(DType::kF32, {1000}, 1);
  const Tensors out = program->RunOwned({held});
  EXPECT_NE(out[0].raw(), held.raw());
  EXPECT_EQ(held.Get(999), 1.0);
  EXPECT_NEAR(out[0].Get(999).real(), 2.718281828, 1e-6);
  // What came out is the program's own, so it may be overwritten.
  const void* const there = out[0].raw();
  Tensors again = program->RunOwned(Tensors(out));
  EXPECT_NE(again[0].raw(), there);
  const void* const own = again[0].raw();
  const Tensors last = program->RunOwned(std::move(again));
  EXPECT_EQ(last[0].raw(), own);
}

}  // namespace
}  // namespace weft
