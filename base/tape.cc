#include "base/tape.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <new>
#include <type_traits>

#include "base/environment.h"

namespace weft {
namespace {

// A loop that does not end would take all memory, and the system's answer to that names no line. So tapes together
// take at most this much.
int64_t MostTapeBytes() {
  static const int64_t bytes = EnvironmentNumber(
      "WEFT_TAPE_BYTES", 0,
      static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) / 10 * 6 * static_cast<int64_t>(sysconf(_SC_PAGESIZE)));
  return bytes;
}
std::atomic<int64_t> g_tape_bytes{0}, g_peak_tape_bytes{0};

void CountTapeBytes(int64_t bytes) {
  const int64_t now = g_tape_bytes += bytes;
  int64_t peak = g_peak_tape_bytes;
  while (now > peak && !g_peak_tape_bytes.compare_exchange_weak(peak, now)) {}
}

}  // namespace

int64_t LiveTapeBytes() { return g_tape_bytes; }
int64_t PeakTapeBytes() { return g_peak_tape_bytes; }
void ResetPeakTapeBytes() { g_peak_tape_bytes = g_tape_bytes.load(); }

TapeRecords::~TapeRecords() { CountTapeBytes(chunks_.empty() ? 0 : -allocated_bytes()); }

TapeRecords::TapeRecords(DType dtype, int64_t row_elements, int64_t lanes)
    : dtype_(dtype), row_elements_(row_elements), row_bytes_(row_elements * ByteWidth(dtype)), lanes_(lanes) {}

int64_t TapeRecords::allocated_bytes() const {
  return first_chunk_ * ((int64_t{1} << chunks_.size()) - 1) * record_bytes();
}

void TapeRecords::Reserve(int64_t records) {
  if (chunks_.empty()) first_chunk_ = std::max<int64_t>(1, records);
}

char* TapeRecords::Address(int64_t record) const {
  // Chunk c begins at record first_chunk_ * (2^c - 1).
  const uint64_t group = static_cast<uint64_t>(record / first_chunk_) + 1;
  const int chunk = 63 - __builtin_clzll(group);
  const int64_t begin = first_chunk_ * ((int64_t{1} << chunk) - 1);
  return chunks_[static_cast<size_t>(chunk)].get() + (record - begin) * record_bytes();
}

char* TapeRecords::Writable(int64_t record) {
  while (chunks_.empty() || first_chunk_ * ((int64_t{1} << chunks_.size()) - 1) <= record) {
    const size_t bytes = static_cast<size_t>((first_chunk_ << chunks_.size()) * record_bytes());
    if (g_tape_bytes + static_cast<int64_t>(bytes) > MostTapeBytes()) throw std::bad_alloc();
    char* memory = static_cast<char*>(std::calloc(std::max<size_t>(bytes, 1), 1));
    if (memory == nullptr) throw std::bad_alloc();
    chunks_.emplace_back(memory);
    CountTapeBytes(static_cast<int64_t>(bytes));
  }
  length_ = std::max(length_, record + 1);
  return Address(std::max<int64_t>(record, 0));
}

const char* TapeRecords::Record(int64_t record) const { return record < length_ ? Address(record) : nullptr; }

TapeRecords* TapeRegion::New(DType dtype, int64_t row_elements, int64_t lanes, uint64_t* elements) {
  Block block{std::make_unique<TapeRecords>(dtype, row_elements, lanes),
              std::make_unique<Tape[]>(static_cast<size_t>(lanes))};
  for (int64_t lane = 0; lane < lanes; ++lane) {
    block.lanes[static_cast<size_t>(lane)] = {block.records.get(), lane};
    elements[lane] = reinterpret_cast<uint64_t>(&block.lanes[static_cast<size_t>(lane)]);
  }
  blocks_.push_back(std::move(block));
  return blocks_.back().records.get();
}

int64_t TapeRegion::allocated_bytes() const {
  int64_t bytes = 0;
  for (const Block& b : blocks_) bytes += b.records->allocated_bytes();
  return bytes;
}

const char* TapeRecordInPlace(const uint64_t* elements, int64_t lanes, int64_t i) {
  if (lanes == 0 || elements[0] == 0) return nullptr;
  const TapeRecords* records = TapeAt(elements[0])->records;
  if (records->lanes() != lanes) return nullptr;
  for (int64_t lane = 0; lane < lanes; ++lane) {
    if (elements[lane] == 0 || TapeAt(elements[lane])->records != records || TapeAt(elements[lane])->lane != lane)
      return nullptr;
  }
  return records->Record(i);
}

void ReadTapeRows(const uint64_t* elements, int64_t lanes, int64_t row_bytes, int64_t i, char* out) {
  for (int64_t lane = 0; lane < lanes; ++lane) {
    const Tape* tape = TapeAt(elements[lane]);
    const char* record = tape == nullptr ? nullptr : tape->records->Record(i);
    char* to = out + lane * row_bytes;
    if (record == nullptr)
      std::memset(to, 0, static_cast<size_t>(row_bytes));
    else
      std::memcpy(to, record + tape->lane * row_bytes, static_cast<size_t>(row_bytes));
  }
}

uint64_t AddTapes(TapeRegion& region, uint64_t x, uint64_t y) {
  if (x == 0) return y;
  if (y == 0) return x;
  const TapeRecords& rx = *TapeAt(x)->records;
  const TapeRecords& ry = *TapeAt(y)->records;
  const int64_t n = rx.row_elements(), length = std::max(rx.length(), ry.length());
  uint64_t sum = 0;
  TapeRecords* records = region.New(rx.dtype(), n, 1, &sum);
  records->Reserve(length);
  std::vector<char> a(static_cast<size_t>(rx.row_bytes())), b(a.size());
  for (int64_t i = 0; i < length; ++i) {
    ReadTapeRows(&x, 1, rx.row_bytes(), i, a.data());
    ReadTapeRows(&y, 1, rx.row_bytes(), i, b.data());
    char* to = records->Writable(i);
    VisitDType(rx.dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      for (int64_t k = 0; k < n; ++k) {
        T p, q;
        std::memcpy(&p, a.data() + k * static_cast<int64_t>(sizeof(T)), sizeof(T));
        std::memcpy(&q, b.data() + k * static_cast<int64_t>(sizeof(T)), sizeof(T));
        T r;
        if constexpr (std::is_same_v<T, uint64_t>) {
          r = rx.dtype() == DType::kTape ? AddTapes(region, p, q) : p + q;
        } else if constexpr (std::is_same_v<T, bool>) {
          r = p || q;
        } else if constexpr (kIsInteger<T> || std::is_floating_point_v<T>) {
          r = static_cast<T>(p + q);
        } else if constexpr (std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>) {
          r = p + q;
        } else {
          r = T(static_cast<float>(p) + static_cast<float>(q));
        }
        std::memcpy(to + k * static_cast<int64_t>(sizeof(T)), &r, sizeof(T));
      }
    });
  }
  return sum;
}

void CopyTapes(TapeRegion& region, const uint64_t* tapes, int64_t count, uint64_t* copies) {
  for (int64_t i = 0; i < count; ++i) {
    const uint64_t tape = tapes[i];
    copies[i] = 0;
    if (tape == 0) continue;
    const TapeRecords& from = *TapeAt(tape)->records;
    TapeRecords* to = region.New(from.dtype(), from.row_elements(), 1, copies + i);
    to->Reserve(from.length());
    for (int64_t record = 0; record < from.length(); ++record) {
      char* const row = to->Writable(record);
      ReadTapeRows(&tape, 1, from.row_bytes(), record, row);
      auto* const inner = reinterpret_cast<uint64_t*>(row);
      if (from.dtype() == DType::kTape) CopyTapes(region, inner, from.row_elements(), inner);
    }
  }
}

}  // namespace weft
