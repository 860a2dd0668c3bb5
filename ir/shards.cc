#include "ir/shards.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

#include "ir/error.h"

namespace weft {
namespace {

// The pieces of a block that lie together in the whole array: their bytes, and how many dimensions are walked to reach
// them.
struct Pieces {
  size_t outer;
  int64_t bytes;

  explicit Pieces(const ShardLayout& layout) : outer(layout.block.size()), bytes(ByteWidth(layout.dtype)) {
    // Dimensions that are not cut lie together behind the last one that is.
    while (outer > 0 && layout.block[outer - 1] == layout.shape[outer - 1]) bytes *= layout.block[--outer];
    if (outer > 0) bytes *= layout.block[--outer];
  }
  int64_t Count(const ShardLayout& layout) const {
    return NumElements(absl::Span<const int64_t>(layout.block).subspan(0, outer));
  }
};

// Where block `index` begins in the whole array, in elements.
int64_t StartOf(const ShardLayout& layout, const std::vector<int64_t>& index, const std::vector<int64_t>& strides) {
  int64_t start = 0;
  for (size_t d = 0; d < layout.block.size(); ++d) start += index[d] * layout.block[d] * strides[d];
  return start;
}

// Calls f(place in the block, place in the whole array, bytes) for each piece of block `index`.
template <class F>
void ForEachPiece(const ShardLayout& layout, const std::vector<int64_t>& index, const F& f) {
  const std::vector<int64_t> strides = RowMajorStrides(layout.shape);
  const Pieces pieces(layout);
  const int64_t count = pieces.Count(layout), start = StartOf(layout, index, strides);
  std::vector<int64_t> row(pieces.outer, 0);
  for (int64_t r = 0; r < count; ++r) {
    int64_t at = start;
    for (size_t d = 0; d < pieces.outer; ++d) at += row[d] * strides[d];
    f(r * pieces.bytes, at * ByteWidth(layout.dtype), pieces.bytes);
    for (size_t d = pieces.outer; d-- > 0;) {
      if (++row[d] < layout.block[d]) break;
      row[d] = 0;
    }
  }
}

// Whether each block lies in the whole array where it lies in the stack.
bool InOrder(const ShardLayout& layout) {
  if (layout.block_bytes == 0) return true;
  if (Pieces(layout).Count(layout) != 1) return false;
  const std::vector<int64_t> strides = RowMajorStrides(layout.shape);
  for (size_t k = 0; k < layout.held.index.size(); ++k) {
    const int64_t start = StartOf(layout, layout.held.index[k], strides) * ByteWidth(layout.dtype);
    if (start != static_cast<int64_t>(k) * layout.block_bytes) return false;
  }
  return true;
}

}  // namespace

HeldBlocks BlocksHeld(const Mesh& mesh, const Sharding& sharding, const Ints& processes) {
  HeldBlocks held;
  std::map<std::vector<int64_t>, size_t> places;
  for (int64_t device = 0; device < mesh.num_devices(); ++device) {
    if (processes[static_cast<size_t>(device) + 1] != processes[0]) continue;
    const std::vector<int64_t> at = mesh.Coordinates(device);
    std::vector<int64_t> index;
    for (size_t d = 0; d < sharding.dims.size(); ++d) index.push_back(BlockOf(mesh, sharding, d, at).index);
    const auto [it, added] = places.try_emplace(index, held.index.size());
    if (added) held.index.push_back(index);
    held.devices.push_back(device);
    held.place.push_back(it->second);
  }
  return held;
}

bool Placement::Spans() const {
  const bool cut = std::any_of(mesh.axes.begin(), mesh.axes.end(), [&](const Mesh::Axis& a) {
    return a.size > 1 && std::any_of(sharding.dims.begin(), sharding.dims.end(), [&](const auto& axes) {
             return std::find(axes.begin(), axes.end(), a.name) != axes.end();
           });
  });
  return cut && std::any_of(processes.begin() + 1, processes.end(), [&](int64_t p) { return p != processes[0]; });
}

std::shared_ptr<const ShardLayout> ShardLayout::Make(const Mesh& mesh, Sharding sharding, const Ints& processes,
                                                     DType dtype, Shape shape, const Placement* placement) {
  auto layout = std::make_shared<ShardLayout>();
  sharding.dims.resize(shape.size());
  const Type local =
      LocalType(mesh, sharding, Type{dtype, Dims(shape.begin(), shape.end()), {}}, "an array on several devices");
  layout->placement = placement;
  layout->dtype = dtype;
  layout->block = StaticSizes(local.dims, "an array on several devices");
  layout->shape = std::move(shape);
  layout->held = BlocksHeld(mesh, sharding, processes);
  if (layout->held.devices.empty()) throw ValueError("process ", processes[0], " has no device of ", mesh.ToString());
  layout->block_bytes = NumElements(layout->block) * ByteWidth(dtype);
  layout->stack = layout->block;
  layout->stack.insert(layout->stack.begin(), static_cast<int64_t>(layout->held.index.size()));
  int64_t blocks = 1;
  for (const auto& axes : sharding.dims) {
    for (const std::string& axis : axes) blocks *= mesh.Size(axis);
  }
  layout->complete = static_cast<int64_t>(layout->held.index.size()) == blocks;
  layout->in_order = layout->complete && InOrder(*layout);
  return layout;
}

std::shared_ptr<const ShardLayout> ShardLayout::Make(const Placement& placement, DType dtype, Shape shape) {
  return Make(placement.mesh, placement.sharding, placement.processes, dtype, std::move(shape), &placement);
}

int64_t ShardLayout::device(size_t k) const {
  return placement == nullptr ? held.devices[k] : placement->devices[static_cast<size_t>(held.devices[k])];
}

ShardCopies& CountedShardCopies() {
  static ShardCopies copies;
  return copies;
}

Tensor StackOfBlocks(const Tensor& whole, const ShardLayout& layout) {
  WEFT_CHECK(whole.shape() == layout.shape) << "an array does not fit its layout";
  if (layout.in_order) return whole.Reshaped(layout.stack);
  Tensor stack(layout.dtype, layout.stack);
  char* to = stack.data<char>();
  for (const std::vector<int64_t>& index : layout.held.index) {
    ForEachPiece(layout, index, [&](int64_t block, int64_t from, int64_t bytes) {
      std::memcpy(to + block, whole.data<char>() + from, static_cast<size_t>(bytes));
    });
    to += layout.block_bytes;
  }
  ++CountedShardCopies().cut;
  return stack;
}

Shards::Shards(std::shared_ptr<const ShardLayout> layout, Tensor stack, std::shared_ptr<Event> ready)
    : layout_(std::move(layout)), stacked_(true), stack_(std::move(stack)), ready_(std::move(ready)) {}

Shards::Shards(std::shared_ptr<const ShardLayout> layout, std::vector<Buffer> buffers)
    : layout_(std::move(layout)), stacked_(false), buffers_(std::move(buffers)) {
  WEFT_CHECK(buffers_.size() == num_buffers()) << "not as many buffers as devices";
}

std::shared_ptr<Shards> Shards::Cut(std::shared_ptr<const ShardLayout> layout, const Tensor& whole) {
  Tensor stack = StackOfBlocks(whole, *layout);
  auto shards = std::make_shared<Shards>(std::move(layout), std::move(stack));
  if (shards->layout().in_order) {
    shards->whole_ = whole;
    shards->whole_known_ = true;
  }
  return shards;
}

Buffer Shards::buffer(size_t k) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!stacked_) return buffers_[k];
  char* address =
      static_cast<char*>(stack_.raw()) + static_cast<int64_t>(layout_->held.place[k]) * layout_->block_bytes;
  return {layout_->device(k), address, layout_->block_bytes, stack_.owner(), ready_};
}

Tensor Shards::Block(size_t k) const {
  const Buffer b = buffer(k);
  b.Wait();
  return Tensor(layout_->dtype, layout_->block, b.owner, b.address);
}

void Shards::Wait() const {
  if (stacked_.load(std::memory_order_acquire)) {
    if (ready_ != nullptr) ready_->Wait();
    return;
  }
  for (size_t k = 0; k < num_buffers(); ++k) buffer(k).Wait();
}

Tensor Shards::Stack() const {
  Wait();
  if (stacked_.load(std::memory_order_acquire)) return stack_;
  std::vector<Buffer> apart;  // let go after the lock: what frees them may wait for others
  const std::lock_guard<std::mutex> lock(mutex_);
  if (stacked_) return stack_;
  const HeldBlocks& held = layout_->held;
  const auto bytes = static_cast<size_t>(layout_->block_bytes);
  const auto of_place = [&](size_t place) -> const Buffer& {
    const auto first = std::find(held.place.begin(), held.place.end(), place);
    return buffers_[static_cast<size_t>(first - held.place.begin())];
  };
  if (held.index.size() == 1) {
    stack_ = Tensor(layout_->dtype, layout_->stack, buffers_[0].owner, buffers_[0].address);
  } else {
    stack_ = Tensor(layout_->dtype, layout_->stack);
    for (size_t place = 0; place < held.index.size(); ++place)
      std::memcpy(stack_.data<char>() + place * bytes, of_place(place).address, bytes);
    ++CountedShardCopies().stacked;
  }
  apart.swap(buffers_);
  stacked_.store(true, std::memory_order_release);
  return stack_;
}

Tensor Shards::Assembled() const {
  const ShardLayout& layout = *layout_;
  if (!layout.complete) {
    throw Error(ErrorKind::kRuntime,
                "the array " + Type{layout.dtype, Dims(layout.shape.begin(), layout.shape.end()), {}}.ToString() +
                    " spans devices of several processes, and this one holds only a part: x.addressable_shards has "
                    "that, weft.experimental.multihost_utils.process_allgather(x) brings all of it, and jitted "
                    "functions take it as an argument (one that they close over cannot be cut)");
  }
  const Tensor stack = Stack();
  if (layout.in_order) return stack.Reshaped(layout.shape);
  Tensor whole(layout.dtype, layout.shape);
  const char* from = stack.data<char>();
  for (const std::vector<int64_t>& index : layout.held.index) {
    ForEachPiece(layout, index, [&](int64_t block, int64_t to, int64_t bytes) {
      std::memcpy(whole.data<char>() + to, from + block, static_cast<size_t>(bytes));
    });
    from += layout.block_bytes;
  }
  ++CountedShardCopies().assembled;
  return whole;
}

const Tensor& Shards::Whole() const {
  if (whole_known_.load(std::memory_order_acquire)) return whole_;
  Tensor whole = Assembled();
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!whole_known_) {
    whole_ = std::move(whole);
    whole_known_.store(true, std::memory_order_release);
  }
  return whole_;
}

bool Shards::HoldsAlone() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!stacked_) return false;
  const bool twice = whole_known_ && whole_.owner() == stack_.owner();
  return stack_.raw() == stack_.owner().get() && stack_.owner().use_count() == (twice ? 2 : 1);
}

Tensor Shards::Take() {
  Tensor stack = Stack();
  const std::lock_guard<std::mutex> lock(mutex_);
  stack_ = Tensor();
  whole_ = Tensor();
  whole_known_ = false;
  return stack;
}

}  // namespace weft
