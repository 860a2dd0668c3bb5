// A collective between devices of several processes: each sends what its devices have for the others, and then every
// one computes for its own. Sums follow the tree of the group (collectives.h), so they have the bits of one process.
#ifndef WEFT_BACKENDS_CPU_DISTRIBUTED_CROSS_PROCESS_COLLECTIVE_H_
#define WEFT_BACKENDS_CPU_DISTRIBUTED_CROSS_PROCESS_COLLECTIVE_H_

#include <memory>
#include <string>
#include <vector>

#include "backends/cpu/distributed/collectives.h"
#include "backends/cpu/distributed/process_group.h"

namespace weft::cpu {

class CrossProcessCollective {
 public:
  // Sends. `owners`: the process of each member of the group; those of others have neither operand nor result.
  CrossProcessCollective(ProcessGroup& job, Group group, std::vector<int> owners, int tag, const std::string& what);
  ProcessGroup::Exchange& exchange() { return exchange_; }
  // When the exchange is done: writes the results. What is wrong, or "".
  std::string Finish();

 private:
  // What a process has to give: a member's operand, or what several members have in all.
  struct Item {
    int64_t begin, end, bytes;
    char* data;
  };
  // A message that came in pieces, for items that begin at `first` of `received_`.
  struct Packed {
    size_t first;
    std::vector<char> bytes;
  };
  std::vector<Item> ItemsOf(int process);
  void AddSubtrees(int process, int64_t begin, int64_t end, std::vector<Item>& items) const;
  bool InPieces() const;
  bool Wants(int process, const Item& item) const;
  template <class F>
  void ForEachPiece(const Item& item, int process, const F& copy) const;
  int64_t PackedBytes(const std::vector<Item>& items, int process) const;
  char* Room(int64_t bytes);

  const int rank_;
  Group group_;
  const std::vector<int> owners_;
  std::vector<std::unique_ptr<char[]>> memory_;
  std::vector<Item> given_, received_;
  std::vector<std::unique_ptr<Packed>> packed_;
  ProcessGroup::Exchange exchange_;
};

}  // namespace weft::cpu
#endif  // WEFT_BACKENDS_CPU_DISTRIBUTED_CROSS_PROCESS_COLLECTIVE_H_
