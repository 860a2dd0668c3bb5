#include "ir/loc.h"

#include <atomic>
#include <map>
#include <mutex>
#include <tuple>

#include "base/fork_safe_mutex.h"

namespace weft {

struct LocNode {
  // A frame has a file; a transform node has `transform` and continues at `next` (the place it was applied to).
  std::string file;
  int line = 0;
  std::string function;
  std::string transform, of;
  const LocNode* next = nullptr;
  // What Through made of this one, the last first, and the one before this among them. They are few, so nobody needs
  // the table to find one again.
  mutable std::atomic<const LocNode*> through = nullptr;
  const LocNode* before = nullptr;

  LocNode(std::string file, int line, std::string function, std::string transform, std::string of, const LocNode* next)
      : file(std::move(file)),
        line(line),
        function(std::move(function)),
        transform(std::move(transform)),
        of(std::move(of)),
        next(next) {}
};

namespace {

// Grows with the number of distinct source lines and transform chains; nodes live until the process ends.
const LocNode* Intern(const std::string& file, int line, const std::string& function, const std::string& transform,
                      const std::string& of, const LocNode* next) {
  using Key = std::tuple<std::string, int, std::string, std::string, std::string, const LocNode*>;
  static auto& mutex = *new ForkSafeMutex;
  static auto& table = *new std::map<Key, LocNode>();
  std::lock_guard<ForkSafeMutex> lock(mutex);
  const auto [at, made] =
      table.try_emplace(Key{file, line, function, transform, of, next}, file, line, function, transform, of, next);
  LocNode& node = at->second;
  if (made && !transform.empty()) {
    node.before = next->through.load(std::memory_order_relaxed);
    next->through.store(&node, std::memory_order_release);
  }
  return &node;
}

}  // namespace

Loc Loc::File(const std::string& file, int line, const std::string& function) {
  return File(file, line, function, Loc());
}

Loc Loc::File(const std::string& file, int line, const std::string& function, Loc caller) {
  return Loc(Intern(file, line, function, "", "", caller.node_));
}

Loc Loc::Through(const std::string& transform, const std::string& of) const {
  if (node_ == nullptr) return {};
  const LocNode* made = node_->through.load(std::memory_order_acquire);
  while (made != nullptr && (made->of != of || made->transform != transform)) made = made->before;
  return Loc(made != nullptr ? made : Intern("", 0, "", transform, of, node_));
}

const LocNode* Loc::Frame() const {
  const LocNode* node = node_;
  while (node != nullptr && !node->transform.empty()) node = node->next;
  return node;
}

std::string Loc::file() const { return Frame() ? Frame()->file : ""; }
int Loc::line() const { return Frame() ? Frame()->line : 0; }
std::string Loc::function() const { return Frame() ? Frame()->function : ""; }
Loc Loc::caller() const { return Frame() ? Loc(Frame()->next) : Loc(); }

std::vector<std::string> Loc::transforms() const {
  std::vector<std::string> names;
  for (const LocNode* node = node_; node != nullptr && !node->transform.empty(); node = node->next) {
    names.insert(names.begin(), node->transform);
  }
  return names;
}

std::string Loc::DerivativeOf() const {
  std::string of;
  for (const LocNode* node = node_; node != nullptr && !node->transform.empty(); node = node->next) {
    if (!node->of.empty()) of = node->of;
  }
  return of;
}

std::string Loc::ToString() const {
  const LocNode* frame = Frame();
  if (frame == nullptr) return "unknown";
  std::string text = frame->file + ":" + std::to_string(frame->line);
  if (!frame->function.empty()) text += " (" + frame->function + ")";
  const std::vector<std::string> names = transforms();
  for (size_t i = 0; i < names.size(); ++i) text += (i == 0 ? " via " : ", ") + names[i];
  return text;
}

std::string Loc::Stack() const {
  std::string text;
  for (const LocNode* frame = Frame(); frame != nullptr; frame = frame->next) {
    if (!frame->transform.empty()) continue;  // of the place from which the function was traced
    if (!text.empty()) text += "\n";
    text += "  at " + frame->file + ":" + std::to_string(frame->line);
    if (!frame->function.empty()) text += " in " + frame->function;
  }
  return text;
}

}  // namespace weft
