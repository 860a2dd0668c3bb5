// The run-time form of values of dtype `tape`: what a loop of unknown length recorded for its reverse pass.
//
// A tape is a sequence of rows, all of one dtype and size; reading past its end gives zeros, so a null tape is zero
// everywhere. An element of dtype tape is a pointer to a Tape, which a TapeRegion owns: compiled code and the reference
// interpreter copy such elements like numbers. Batched loops write one row per batch element (`lane`):
// all of them share the memory, one record holding the rows of every element, and each element's Tape is a view of its
// rows.
//
//   TapeRegion region;
//   uint64_t tape;
//   TapeRecords* records = region.New(DType::kF32, 3, 1, &tape);  // rows of three floats, one batch element
//   std::memcpy(records->Writable(0), row, 12);                   // row 0; grows as needed
#ifndef WEFT_BASE_TAPE_H_
#define WEFT_BASE_TAPE_H_

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

#include "base/dtype.h"

namespace weft {

// Rows in chunks of doubling size, so that growing moves nothing. Memory that was never written is zero.
class TapeRecords {
 public:
  TapeRecords(DType dtype, int64_t row_elements, int64_t lanes);
  ~TapeRecords();
  TapeRecords(const TapeRecords&) = delete;

  DType dtype() const { return dtype_; }
  int64_t row_elements() const { return row_elements_; }
  int64_t row_bytes() const { return row_bytes_; }
  int64_t lanes() const { return lanes_; }
  int64_t record_bytes() const { return row_bytes_ * lanes_; }
  int64_t length() const { return length_; }
  int64_t allocated_bytes() const;
  // Makes room for `records` at once; only before the first record.
  void Reserve(int64_t records);
  // Room for `record` (-1: for the first ones, without writing any). Raises std::bad_alloc when all tapes of the
  // process together would take more than $WEFT_TAPE_BYTES (default: 6/10 of the machine's memory).
  char* Writable(int64_t record);
  // nullptr past the end.
  const char* Record(int64_t record) const;

 private:
  struct Free {
    void operator()(char* p) const { std::free(p); }
  };
  char* Address(int64_t record) const;

  DType dtype_;
  int64_t row_elements_, row_bytes_, lanes_;
  int64_t first_chunk_ = 16;  // records in chunk 0; chunk c has first_chunk_ << c
  int64_t length_ = 0;
  std::vector<std::unique_ptr<char, Free>> chunks_;
};

struct Tape {
  TapeRecords* records = nullptr;
  int64_t lane = 0;
};

inline Tape* TapeAt(uint64_t element) { return reinterpret_cast<Tape*>(element); }  // NOLINT: that is what it is

// Owns tapes. One per run of a program; loops release what they made and did not pass on.
class TapeRegion {
 public:
  // `lanes` tapes that share one memory, written to elements[0] ... elements[lanes - 1].
  TapeRecords* New(DType dtype, int64_t row_elements, int64_t lanes, uint64_t* elements);
  size_t Mark() const { return blocks_.size(); }
  // Frees everything made since `mark`.
  void Release(size_t mark) { blocks_.resize(mark); }
  bool empty() const { return blocks_.empty(); }
  int64_t allocated_bytes() const;

 private:
  struct Block {
    std::unique_ptr<TapeRecords> records;
    std::unique_ptr<Tape[]> lanes;
  };
  std::vector<Block> blocks_;
};

// The memory of row `i` of every lane, if these are the lanes of one tape in order; else nullptr.
const char* TapeRecordInPlace(const uint64_t* elements, int64_t lanes, int64_t i);
// Copies row `i` of each of the tapes to `out`, zeros where there is none.
void ReadTapeRows(const uint64_t* elements, int64_t lanes, int64_t row_bytes, int64_t i, char* out);
// Writes tapes with the contents of `count` others, which may live elsewhere. Raises std::bad_alloc as Writable does.
void CopyTapes(TapeRegion& region, const uint64_t* tapes, int64_t count, uint64_t* copies);
// Memory of all tapes of the process, in bytes: now, and at most since ResetPeakTapeBytes.
int64_t LiveTapeBytes();
int64_t PeakTapeBytes();
void ResetPeakTapeBytes();
// A tape whose rows are the sums of those of x and y; either may be null or shorter. Tapes of tapes are added deeply.
uint64_t AddTapes(TapeRegion& region, uint64_t x, uint64_t y);

}  // namespace weft
#endif  // WEFT_BASE_TAPE_H_
