// The processes of a program that was started several times (`mpirun -n 4 ...`), and what they send each other.
//
//   ProcessGroup& job = ProcessGroup::Join(300);                             // once, in every process
//   job.Agree({0, 1}, digest, "step(f32[8])");             // before anything is sent: do they do the same?
//   ProcessGroup::Exchange x = job.Post(tag, "psum at train.py:7", sends, receives);
//   job.Wait({&x});
//
// Nothing waits for ever: where a process does not come within the deadline, or does something else than the others,
// the job ends, all its processes, with one message that says who.
#ifndef WEFT_BACKENDS_CPU_DISTRIBUTED_PROCESS_GROUP_H_
#define WEFT_BACKENDS_CPU_DISTRIBUTED_PROCESS_GROUP_H_

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace weft::cpu {

class ProcessGroup {
 public:
  // Null until the process has joined one, and in a process that was forked from one that has: the connection is its
  // parent's.
  static ProcessGroup* Current();
  // Raises std::runtime_error where Open MPI is missing or does not start.
  static ProcessGroup& Join(double deadline_seconds);

  int rank() const { return rank_; }
  int size() const { return size_; }

  struct Message {
    int process;
    char* data;
    int64_t bytes;
  };
  // Messages on their way. Their memory has to stay until it is done.
  class Exchange {
   public:
    std::string what;

   private:
    friend class ProcessGroup;
    struct Pending {
      void* request;
      int process;
      bool receives;
    };
    std::vector<Pending> pending_;
  };
  // Between two processes, messages of one tag arrive in order. Tags are from kFirstTag on.
  static constexpr int kFirstTag = 16;
  Exchange Post(int tag, std::string what, const std::vector<Message>& sends, const std::vector<Message>& receives);
  bool Done(Exchange& x);
  // Until one of them is done, which it returns; ends the job at the deadline.
  size_t WaitForOne(const std::vector<Exchange*>& exchanges);

  // The user's line that calls what this thread runs next, for messages. Its next Turn takes it.
  static void SetSite(std::string site);
  // Says to `processes` what this one does next, and ends the job unless they do the same. `waits`: where this process
  // is when they do not come; empty: before it does that. Within a Turn.
  void Agree(const std::vector<int>& processes, uint64_t digest, const std::string& what, std::string waits = "");
  // What each of `processes` gives, in their order; empty: of all.
  std::vector<std::string> AllGather(const std::string& what, const std::string& bytes,
                                     std::vector<int> processes = {});

  // Before the process ends: waits until all do, and not longer than the deadline. After that there are no more turns.
  void Leave();
  // Ends all processes. Of several that find something wrong, the first of each machine is heard. `before`: lines that
  // stand before the message.
  [[noreturn]] void End(const std::string& message, const std::string& before = "");

  // Programs over several processes run one after the other.
  class Turn {
   public:
    // Raises std::runtime_error inside another one of the same thread, and when the job was left.
    explicit Turn(ProcessGroup& job);
    ~Turn();
    Turn(const Turn&) = delete;

   private:
    ProcessGroup& job_;
  };

 private:
  ProcessGroup(int rank, int size, double deadline) : rank_(rank), size_(size), deadline_(deadline) {}
  void Check(int code, const char* what);
  std::vector<int> AllProcesses() const;
  // Asks `done` until it says yes. False: the deadline came first.
  template <class F>
  bool Poll(const F& done) const;
  void EndAtDeadline(const std::vector<Exchange*>& exchanges);
  std::string Me() const;

  const int rank_, size_;
  const double deadline_;
  std::mutex turn_;
  // Of who has the turn:
  bool left_ = false;
  std::string site_;
  std::atomic<std::thread::id> running_;  // whose turn it is
};

}  // namespace weft::cpu
#endif  // WEFT_BACKENDS_CPU_DISTRIBUTED_PROCESS_GROUP_H_
