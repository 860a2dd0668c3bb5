#include "backends/cpu/distributed/process_group.h"

#include <sched.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <numeric>
#include <set>
#include <stdexcept>
#include <system_error>

#include "backends/cpu/distributed/open_mpi.h"

namespace weft::cpu {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kTagOfAgreement = 1, kTagOfSizes = 2, kTagOfBytes = 3;
constexpr int64_t kLargestMessage = int64_t{1} << 30;  // MPI counts with int

// Exactly what goes over the wire.
struct Announcement {
  uint64_t digest;
  char what[504], site[512];
};

template <size_t kSize>
void CopyText(char (&to)[kSize], const std::string& from) {
  std::memcpy(to, from.data(), std::min(from.size(), kSize - 1));
}

std::string At(const std::string& site) { return site.empty() ? "" : " at " + site; }

std::string Seconds(double s) {
  char text[32];
  std::snprintf(text, sizeof(text), "%g s", s);
  return text;
}

// "rank 1", "ranks 1, 2 and 5"
std::string Ranks(const std::set<int>& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  size_t i = 0;
  for (int r : ranks) {
    if (i != 0) text += i + 1 == ranks.size() ? " and " : ", ";
    text += std::to_string(r);
    ++i;
  }
  return text;
}

// A name that one process of a machine can have, and that the others see: of a socket. It is gone with the process.
class SharedName {
 public:
  // Of this job: `what` tells its names apart.
  SharedName(const char* job, const std::string& what) {
    const std::string name = "weft-job-" + std::to_string(getuid()) + "-" + job + what;
    address_.sun_family = AF_UNIX;
    const size_t n = std::min(name.size(), sizeof(address_.sun_path) - 1);
    std::memcpy(address_.sun_path + 1, name.data(), n);  // a name that begins with 0 is in no file system
    length_ = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + n);
  }
  ~SharedName() {
    if (socket_ >= 0) close(socket_);
  }
  SharedName(const SharedName&) = delete;

  // False: another process has it. Where nobody may have a name, all take it.
  bool Take() {
    return Open() < 0 || bind(socket_, reinterpret_cast<const sockaddr*>(&address_), length_) == 0 ||
           errno != EADDRINUSE;
  }
  // From another socket to the one that has the name. False: nobody has it.
  bool Wake() {
    return Open() >= 0 &&
           sendto(socket_, "", 1, MSG_DONTWAIT, reinterpret_cast<const sockaddr*>(&address_), length_) == 1;
  }
  bool WasWoken() const {
    char byte = 0;
    return recv(socket_, &byte, 1, MSG_DONTWAIT) == 1;
  }

 private:
  int Open() {
    if (socket_ < 0) socket_ = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    return socket_;
  }

  sockaddr_un address_{};
  socklen_t length_ = 0;
  int socket_ = -1;
};

// Says it, unless another process of this machine has spoken.
bool SayOnce(const std::string& message, const std::string& before) {
  const char* job = std::getenv("PMIX_NAMESPACE");
  static SharedName& word = *new SharedName(job == nullptr ? "" : job, "");  // taken until the process ends
  if (job != nullptr && !word.Take()) return false;
  const std::string text = before + "weft: " + message + ". The job ends.\n";
  std::fflush(stdout);
  [[maybe_unused]] const ssize_t n = write(STDERR_FILENO, text.data(), text.size());
  return true;
}

std::string Rank(const std::string& rank, const std::string& size) {
  char host[256] = "?";
  gethostname(host, sizeof(host) - 1);
  return "rank " + rank + " of " + size + " (" + host + ", process " + std::to_string(getpid()) + ")";
}

// The start of MPI waits for all processes of the job, without end. This ends it at the deadline, by ending the process
// with a failure: launchers then end the others.
class StartOfJob {
 public:
  explicit StartOfJob(double deadline) : deadline_(deadline) {
    if (const char* job = std::getenv("PMIX_NAMESPACE")) {
      here_ = std::make_unique<SharedName>(job, "-" + rank_);
      here_->Take();
    }
    try {
      watch_ = std::thread([this] { Watch(); });
    } catch (const std::system_error& error) {
      throw std::runtime_error("the thread that watches over the start of the job cannot be started: " +
                               error.code().message());
    }
  }
  ~StartOfJob() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      started_ = true;
    }
    changed_.notify_one();
    watch_.join();
  }
  StartOfJob(const StartOfJob&) = delete;

 private:
  static std::string Variable(const char* name, const char* otherwise) {
    const char* value = std::getenv(name);
    return value != nullptr ? value : otherwise;
  }

  void Watch() {
    std::unique_lock<std::mutex> lock(mutex_);
    if (changed_.wait_for(lock, std::chrono::duration<double>(deadline_), [this] { return started_; })) return;
    // Another one that came to its deadline before speaks; or else this one does, which tells the others first.
    const bool told = here_ != nullptr && here_->WasWoken();
    if (told || !Say(Missing())) usleep(100000);  // time for the one that speaks
    _exit(1);
  }

  bool Say(const std::set<int>& missing) const {
    std::string who = "processes that have";
    if (!missing.empty()) who = Ranks(missing) + (missing.size() == 1 ? ", which has" : ", which have");
    return SayOnce(Rank(rank_, size_) + " waited " + Seconds(deadline_) + " in distributed.initialize() for " + who +
                       " not called it: stuck or ended before, or still busy with something else",
                   "");
  }

  // Those that do not wait here; tells the others. None: they may be on other machines, where they cannot be seen.
  std::set<int> Missing() const {
    std::set<int> missing;
    if (here_ == nullptr) return missing;
    for (int r = 0; r < std::atoi(size_.c_str()); ++r) {
      if (!SharedName(std::getenv("PMIX_NAMESPACE"), "-" + std::to_string(r)).Wake()) missing.insert(r);
    }
    if (size_ != Variable("OMPI_COMM_WORLD_LOCAL_SIZE", "")) missing.clear();
    return missing;
  }

  const double deadline_;
  const std::string rank_ = Variable("OMPI_COMM_WORLD_RANK", Variable("PMIX_RANK", "?").c_str());
  const std::string size_ = Variable("OMPI_COMM_WORLD_SIZE", Variable("SLURM_NTASKS", "?").c_str());
  std::unique_ptr<SharedName> here_;  // says that this process waits
  std::mutex mutex_;
  std::condition_variable changed_;
  bool started_ = false;
  std::thread watch_;
};

thread_local std::string t_site;  // of what the thread runs next

std::unique_ptr<ProcessGroup>& TheProcessGroup() {
  static auto& job = *new std::unique_ptr<ProcessGroup>();
  return job;
}
pid_t g_joined_by = 0;  // the process that joined it

}  // namespace

ProcessGroup* ProcessGroup::Current() {
  return TheProcessGroup() && g_joined_by == getpid() ? TheProcessGroup().get() : nullptr;
}

ProcessGroup& ProcessGroup::Join(double deadline_seconds) {
  if (TheProcessGroup() && g_joined_by != getpid())
    throw std::runtime_error("this process was forked from one of a job, and cannot be one of its own");
  if (TheProcessGroup()) return *TheProcessGroup();
  auto start = std::make_unique<StartOfJob>(deadline_seconds);
  const OpenMpi& mpi = OpenMpi::Get();
  int initialized = 0;
  mpi.initialized(&initialized);
  int provided = kMpiThreadMultiple;
  if (!initialized && mpi.init_thread(nullptr, nullptr, kMpiThreadMultiple, &provided) != 0)
    throw std::runtime_error(
        "Open MPI cannot start (MPI_Init_thread failed); start the processes by its mpirun, or by srun --mpi=pmix");
  start.reset();
  if (provided != kMpiThreadMultiple)
    throw std::runtime_error("this Open MPI was built without support of threads (MPI_THREAD_MULTIPLE)");
  int rank = 0, size = 1;
  mpi.comm_rank(mpi.world, &rank);
  mpi.comm_size(mpi.world, &size);
  mpi.comm_set_errhandler(mpi.world, mpi.errors_return);
  TheProcessGroup().reset(new ProcessGroup(rank, size, deadline_seconds));
  g_joined_by = getpid();
  return *TheProcessGroup();
}

void ProcessGroup::SetSite(std::string site) { t_site = std::move(site); }

std::vector<int> ProcessGroup::AllProcesses() const {
  std::vector<int> all(static_cast<size_t>(size_));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

template <class F>
bool ProcessGroup::Poll(const F& done) const {
  const Clock::time_point begin = Clock::now();
  while (!done()) {
    const double waited = std::chrono::duration<double>(Clock::now() - begin).count();
    if (waited > deadline_) return false;
    // The others may need this core; after a while they are at something long.
    if (waited < 0.005)
      sched_yield();
    else
      usleep(waited < 1 ? 50 : 1000);
  }
  return true;
}

std::string ProcessGroup::Me() const { return Rank(std::to_string(rank_), std::to_string(size_)); }

void ProcessGroup::Check(int code, const char* what) {
  if (code == 0) return;
  char text[kMpiMaxErrorString + 1] = "";
  int length = 0;
  OpenMpi::Get().error_string(code, text, &length);
  End(Me() + ": " + what + " failed: " + text);
}

ProcessGroup::Exchange ProcessGroup::Post(int tag, std::string what, const std::vector<Message>& sends,
                                          const std::vector<Message>& receives) {
  const OpenMpi& mpi = OpenMpi::Get();
  Exchange x;
  x.what = std::move(what);
  const auto each_part = [](const Message& m, const auto& f) {
    for (int64_t at = 0; at < m.bytes; at += kLargestMessage)
      f(m.data + at, static_cast<int>(std::min(kLargestMessage, m.bytes - at)));
  };
  // No memory is asked for once a message is on its way, and MPI writes to requests where they lie.
  size_t parts = 0;
  for (const auto* messages : {&receives, &sends}) {
    for (const Message& m : *messages) each_part(m, [&](char*, int) { ++parts; });
  }
  x.pending_.reserve(parts);
  for (const Message& m : receives) {
    each_part(m, [&](char* data, int bytes) {
      x.pending_.push_back({nullptr, m.process, true});
      Check(mpi.irecv(data, bytes, mpi.byte, m.process, tag, mpi.world, &x.pending_.back().request), "MPI_Irecv");
    });
  }
  for (const Message& m : sends) {
    each_part(m, [&](char* data, int bytes) {
      x.pending_.push_back({nullptr, m.process, false});
      Check(mpi.isend(data, bytes, mpi.byte, m.process, tag, mpi.world, &x.pending_.back().request), "MPI_Isend");
    });
  }
  return x;
}

bool ProcessGroup::Done(Exchange& x) {
  const OpenMpi& mpi = OpenMpi::Get();
  std::erase_if(x.pending_, [&](Exchange::Pending& p) {
    int flag = 0;
    Check(mpi.test(&p.request, &flag, nullptr), "MPI_Test");
    return flag != 0;
  });
  return x.pending_.empty();
}

void ProcessGroup::EndAtDeadline(const std::vector<Exchange*>& exchanges) {
  std::set<int> missing, busy;
  for (const Exchange* x : exchanges) {
    for (const Exchange::Pending& p : x->pending_) (p.receives ? missing : busy).insert(p.process);
  }
  if (missing.empty()) missing = busy;
  End(Me() + " waited " + Seconds(deadline_) + " " + exchanges[0]->what + At(site_) + " for " + Ranks(missing) +
      ", which " + (missing.size() == 1 ? "has" : "have") +
      " not come: stuck, still busy with something else, or in another part of the program");
}

size_t ProcessGroup::WaitForOne(const std::vector<Exchange*>& exchanges) {
  size_t first = 0;
  const bool came = Poll([&] {
    first = 0;
    while (first < exchanges.size() && !Done(*exchanges[first])) ++first;
    return first < exchanges.size();
  });
  if (!came) EndAtDeadline(exchanges);
  return first;
}

void ProcessGroup::Agree(const std::vector<int>& processes, uint64_t digest, const std::string& what,
                         std::string waits) {
  std::vector<int> others;
  std::copy_if(processes.begin(), processes.end(), std::back_inserter(others), [&](int p) { return p != rank_; });
  Announcement mine{};
  mine.digest = digest;
  CopyText(mine.what, what);
  CopyText(mine.site, site_);
  std::vector<Announcement> theirs(others.size());
  std::vector<bool> seen(others.size(), false);
  std::vector<Message> sends, receives;
  for (size_t i = 0; i < others.size(); ++i) {
    sends.push_back({others[i], reinterpret_cast<char*>(&mine), sizeof(mine)});
    receives.push_back({others[i], reinterpret_cast<char*>(&theirs[i]), sizeof(Announcement)});
  }
  if (waits.empty()) waits = "before it " + what;
  Exchange x = Post(kTagOfAgreement, std::move(waits), sends, receives);
  // Looks at each answer when it is there: those who do something else will send nothing more.
  const bool came = Poll([&] {
    const bool done = Done(x);
    for (size_t i = 0; i < others.size(); ++i) {
      const bool waiting = std::any_of(x.pending_.begin(), x.pending_.end(), [&](const Exchange::Pending& p) {
        return p.receives && p.process == others[i];
      });
      if (waiting || seen[i]) continue;
      seen[i] = true;
      if (theirs[i].digest == digest && std::strncmp(theirs[i].what, mine.what, sizeof(mine.what)) == 0) continue;
      std::string text = "the processes do different things: rank " + std::to_string(rank_) + " " + mine.what +
                         At(mine.site) + ", rank " + std::to_string(others[i]) + " " + theirs[i].what +
                         At(theirs[i].site);
      if (std::strcmp(theirs[i].what, mine.what) == 0)
        text +=
            "; what these functions compute differs. Every process has to call the same functions in the same order";
      else
        text += ". Every process has to call the same functions, of arguments of the same types, in the same order";
      End(text);
    }
    return done;
  });
  if (!came) EndAtDeadline({&x});
}

std::vector<std::string> ProcessGroup::AllGather(const std::string& what, const std::string& bytes,
                                                 std::vector<int> processes) {
  const Turn turn(*this);
  if (processes.empty()) processes = AllProcesses();
  Agree(processes, 0, what);
  int64_t mine = static_cast<int64_t>(bytes.size());
  std::vector<int64_t> sizes(processes.size(), mine);
  std::vector<Message> sends, receives;
  for (size_t i = 0; i < processes.size(); ++i) {
    if (processes[i] == rank_) continue;
    sends.push_back({processes[i], reinterpret_cast<char*>(&mine), sizeof(mine)});
    receives.push_back({processes[i], reinterpret_cast<char*>(&sizes[i]), sizeof(mine)});
  }
  Exchange first = Post(kTagOfSizes, "where it " + what, sends, receives);
  WaitForOne({&first});
  std::vector<std::string> found(processes.size(), bytes);
  sends.clear();
  receives.clear();
  for (size_t i = 0; i < processes.size(); ++i) {
    if (processes[i] == rank_) continue;
    found[i].resize(static_cast<size_t>(sizes[i]));
    sends.push_back({processes[i], const_cast<char*>(bytes.data()), mine});
    receives.push_back({processes[i], found[i].data(), sizes[i]});
  }
  Exchange second = Post(kTagOfBytes, "where it " + what, sends, receives);
  WaitForOne({&second});
  return found;
}

void ProcessGroup::Leave() {
  SetSite("");
  const Turn turn(*this);
  Agree(AllProcesses(), 0, "is at the end of its program", "at the end of its program");
  left_ = true;
  OpenMpi::Get().finalize();
}

void ProcessGroup::End(const std::string& message, const std::string& before) {
  // Time for the one that speaks; or else for those that see the same a moment later, to find that somebody speaks.
  usleep(SayOnce(message, before) ? 300000 : 1000000);
  OpenMpi::Get().abort(OpenMpi::Get().world, 1);
  _exit(1);
}

ProcessGroup::Turn::Turn(ProcessGroup& job) : job_(job) {
  if (job.running_ == std::this_thread::get_id())
    throw std::runtime_error("a program over several processes cannot run inside another one (from a callback)");
  job.turn_.lock();
  if (job.left_) {
    job.turn_.unlock();
    throw std::runtime_error(
        "this process has left the job (weft.distributed.shutdown()), so nothing runs over several processes any more");
  }
  job.running_ = std::this_thread::get_id();
  job.site_ = std::exchange(t_site, "");
}

ProcessGroup::Turn::~Turn() {
  job_.running_ = std::thread::id();
  job_.turn_.unlock();
}

}  // namespace weft::cpu
