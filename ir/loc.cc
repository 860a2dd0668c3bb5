#include "ir/loc.h"

#include <atomic>
#include <map>
#include <mutex>
#include <tuple>

namespace weft {

struct LocNode {
  // A frame has a file; a transform node has `transform` and continues at `next` (the place it was applied to).
  std::string file;
  int line = 0;
  std::string function;
  std::string transform;
  const LocNode* next = nullptr;
  // The last node that Through made of this one: most equations go through the same transforms as their neighbours.
  mutable std::atomic<const LocNode*> through = nullptr;

  LocNode(std::string file, int line, std::string function, std::string transform, const LocNode* next)
      : file(std::move(file)), line(line), function(std::move(function)), transform(std::move(transform)), next(next) {}
};

namespace {

// Grows with the number of distinct source lines and transform chains; nodes live until the process ends.
const LocNode* Intern(const std::string& file, int line, const std::string& function, const std::string& transform,
                      const LocNode* next) {
  using Key = std::tuple<std::string, int, std::string, std::string, const LocNode*>;
  static std::mutex mutex;
  static auto& table = *new std::map<Key, LocNode>();
  std::lock_guard<std::mutex> lock(mutex);
  return &table.try_emplace(Key{file, line, function, transform, next}, file, line, function, transform, next)
              .first->second;
}

}  // namespace

Loc Loc::File(const std::string& file, int line, const std::string& function) {
  return File(file, line, function, Loc());
}

Loc Loc::File(const std::string& file, int line, const std::string& function, Loc caller) {
  return Loc(Intern(file, line, function, "", caller.node_));
}

Loc Loc::Through(const std::string& transform) const {
  if (node_ == nullptr) return {};
  const LocNode* last = node_->through.load(std::memory_order_acquire);
  if (last == nullptr || last->transform != transform) {
    last = Intern("", 0, "", transform, node_);
    node_->through.store(last, std::memory_order_release);
  }
  return Loc(last);
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
    if (!text.empty()) text += "\n";
    text += "  at " + frame->file + ":" + std::to_string(frame->line);
    if (!frame->function.empty()) text += " in " + frame->function;
  }
  return text;
}

}  // namespace weft
