// Writes down which functions of a shared library a program enters, in the order in which it first does:
//
//   ENTERED_LIBRARY=_weft.so ENTERED_AT=addresses ENTERED_OUT=entered LD_AUDIT=libentered.so python program.py
//
// ENTERED_AT: a file with the offsets of functions in the library, in hexadecimal, one a line. ENTERED_OUT: gets those
// that were entered, in the same form. The first byte of each function is a breakpoint until the function is entered.
#include <fcntl.h>
#include <link.h>
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <unordered_map>
#include <vector>

namespace {

constexpr uint8_t kBreakpoint = 0xCC;

uint8_t* g_base = nullptr;
int g_out = -1;
// What stands at a function's offset without the breakpoint. Not written once the handler may run.
std::unordered_map<uint64_t, uint8_t>& g_first = *new std::unordered_map<uint64_t, uint8_t>();

[[noreturn]] void Die(const char* what) {
  std::fprintf(stderr, "entered: %s\n", what);
  std::_Exit(1);
}

// Two threads may enter a function at the same time: both go on, and it is written down twice.
void Enter(int, siginfo_t*, void* context) {
  auto& registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  auto* const at = reinterpret_cast<uint8_t*>(registers[REG_RIP]) - 1;
  const auto found = g_first.find(static_cast<uint64_t>(at - g_base));
  if (found == g_first.end()) {
    signal(SIGTRAP, SIG_DFL);  // somebody else's breakpoint
    return;
  }
  *at = found->second;
  char line[20];
  int length = 0;
  for (int shift = 60; shift >= 0; shift -= 4) line[length++] = "0123456789abcdef"[found->first >> shift & 15];
  line[length++] = '\n';
  if (write(g_out, line, static_cast<size_t>(length)) != length) _exit(1);
  registers[REG_RIP] = reinterpret_cast<greg_t>(at);
}

const char* Variable(const char* name) {
  const char* const value = std::getenv(name);
  if (value == nullptr) Die(name);
  return value;
}

void Watch() {
  std::FILE* const file = std::fopen(Variable("ENTERED_AT"), "r");
  if (file == nullptr) Die("ENTERED_AT cannot be read");
  std::vector<uint64_t> offsets;
  for (unsigned long offset = 0; std::fscanf(file, "%lx", &offset) == 1;) offsets.push_back(offset);
  std::fclose(file);
  if (offsets.empty()) Die("ENTERED_AT names no function");
  const auto [low, high] = std::minmax_element(offsets.begin(), offsets.end());
  const uint64_t page = 4096, from = *low / page * page, to = (*high / page + 1) * page;
  if (mprotect(g_base + from, to - from, PROT_READ | PROT_WRITE | PROT_EXEC) != 0) Die("code cannot be written");
  g_out = open(Variable("ENTERED_OUT"), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (g_out < 0) Die("ENTERED_OUT cannot be written");
  g_first.reserve(offsets.size());
  for (const uint64_t offset : offsets) g_first.emplace(offset, g_base[offset]);
  struct sigaction action = {};
  action.sa_sigaction = Enter;
  action.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK;
  sigaction(SIGTRAP, &action, nullptr);
  for (const uint64_t offset : offsets) g_base[offset] = kBreakpoint;
}

}  // namespace

// What the dynamic linker calls: before the library is relocated, so that its static constructors are seen.
extern "C" unsigned la_version(unsigned) { return LAV_CURRENT; }
extern "C" unsigned la_objopen(link_map* map, Lmid_t, uintptr_t*) {
  const char* const library = Variable("ENTERED_LIBRARY");
  const size_t length = std::strlen(map->l_name), end = std::strlen(library);
  if (g_base == nullptr && length >= end && std::strcmp(map->l_name + length - end, library) == 0) {
    g_base = reinterpret_cast<uint8_t*>(map->l_addr);
    Watch();
  }
  return 0;
}
