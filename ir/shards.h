// Arrays that lie on devices: a buffer for each device of this process.
//
//   static const Placement rows = {mesh, {{{"x"}}, {}}, {0, 1, 2, 3}, {0, 0, 0, 0, 0}};
//   auto layout = ShardLayout::Make(rows, DType::kF32, {8, 2});       // four blocks of {2, 2}
//   Shards a = Shards::Cut(layout, whole);
//   a.buffer(1).address; a.Stack(); a.Whole();
//
// What devices of one process hold alike is there once, and their buffers are the same memory. Programs make the blocks
// of an array one behind the other: a stack, which programs over a mesh read and write (transforms/shard/processes.h).
#ifndef WEFT_IR_SHARDS_H_
#define WEFT_IR_SHARDS_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "base/buffer.h"
#include "base/fork_safe_mutex.h"
#include "ir/attr.h"
#include "ir/mesh.h"
#include "ir/tensor.h"

namespace weft {

// What a process holds of an array.
struct HeldBlocks {
  std::vector<int64_t> devices;             // of the mesh, that belong to the process
  std::vector<size_t> place;                // of each one's block in the stack
  std::vector<std::vector<int64_t>> index;  // of each block of the stack: which one it is, along every dimension
};

// `processes`: this one, then that of each device of the mesh.
HeldBlocks BlocksHeld(const Mesh& mesh, const Sharding& sharding, const Ints& processes);

// Where arrays lie, whatever their shape. Whoever makes them has one for each place, which is never destroyed: equal
// places have one address.
struct Placement {
  Mesh mesh;               // without axes: one device
  Sharding sharding;       // of the first dimensions; the others are not cut
  Ints devices;            // numbers in the list of devices, in the order of the mesh
  Ints processes;          // this one, then that of each device
  void* label = nullptr;   // what the front end calls it
  bool one_device = true;  // and no mesh of one

  // Whether parts of arrays are in other processes, which this one has not.
  bool Spans() const;
};

// How arrays of one type lie.
struct ShardLayout {
  // Raises kValue where devices cannot share a size evenly, or this process has no device of the mesh. `placement`: as
  // which it is known, or null.
  static std::shared_ptr<const ShardLayout> Make(const Mesh& mesh, Sharding sharding, const Ints& processes,
                                                 DType dtype, Shape shape, const Placement* placement);
  static std::shared_ptr<const ShardLayout> Make(const Placement& placement, DType dtype, Shape shape);

  int64_t device(size_t k) const;  // the number of the k-th device of this process
  // Whether two stacks are the same blocks, for the same devices.
  bool SameBlocks(const ShardLayout& other) const;

  const Placement* placement = nullptr;
  DType dtype = DType::kF32;
  Shape shape, block, stack;  // of the whole, of what one device holds, of all blocks here
  HeldBlocks held;
  // All blocks are here, and always will be: the mesh does not span processes. (One process of several may hold all
  // blocks by chance; but the others would not, and all have to do the same.)
  bool complete = true;
  bool in_order = true;  // ... and one behind the other they are the whole array
  int64_t block_bytes = 0;
};

// How often this process has put arrays together, cut whole ones, moved blocks behind each other, and made the blocks
// of one layout of those of another, by copying.
struct ShardCopies {
  std::atomic<int64_t> assembled{0}, cut{0}, stacked{0}, moved{0};
};
ShardCopies& CountedShardCopies();

// The blocks of a whole array, one behind the other: a view where they lie so.
Tensor StackOfBlocks(const Tensor& whole, const ShardLayout& layout);

// Threads may use one at the same time.
class Shards {
 public:
  // From the blocks, one behind the other.
  Shards(std::shared_ptr<const ShardLayout> layout, Tensor stack, std::shared_ptr<Event> ready = nullptr);
  // From a buffer for each device of this process.
  Shards(std::shared_ptr<const ShardLayout> layout, std::vector<Buffer> buffers);
  static std::shared_ptr<Shards> Cut(std::shared_ptr<const ShardLayout> layout, const Tensor& whole);

  const ShardLayout& layout() const { return *layout_; }
  const std::shared_ptr<const ShardLayout>& shared_layout() const { return layout_; }
  const Placement& placement() const { return *layout_->placement; }
  size_t num_buffers() const { return layout_->held.devices.size(); }

  // Of the k-th device of this process.
  Buffer buffer(size_t k) const;
  // The same once it is ready, as an array.
  Tensor Block(size_t k) const;
  void Wait() const;
  // All blocks, each once. Those that lie apart are moved together once.
  Tensor Stack() const;
  // All of the array, which is kept. Raises kRuntime where parts of it are in other processes.
  const Tensor& Whole() const;
  // The same, not kept.
  Tensor Assembled() const;
  // The stack of the same array in another layout: its own where the blocks are the same, else each block is copied
  // from those that it meets. Raises kRuntime where one of these is in another process.
  Tensor StackAs(const ShardLayout& to) const;

  // Whether nobody else refers to the memory, if nobody else refers to this.
  bool HoldsAlone() const;

 private:
  bool CopyTo(const Shape& block, const std::vector<std::vector<int64_t>>& index, char* stack) const;

  std::shared_ptr<const ShardLayout> layout_;
  mutable ForkSafeMutex mutex_;
  mutable std::atomic<bool> stacked_, whole_known_{false};
  mutable Tensor stack_;                  // once `stacked_`
  mutable std::vector<Buffer> buffers_;   // until then
  mutable Tensor whole_;                  // once `whole_known_`
  mutable std::shared_ptr<Event> ready_;  // of the stack
};

}  // namespace weft
#endif  // WEFT_IR_SHARDS_H_
