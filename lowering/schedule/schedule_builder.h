// Internal to lowering/: values, steps and functions of a schedule under construction.
#ifndef WEFT_LOWERING_SCHEDULE_SCHEDULE_BUILDER_H_
#define WEFT_LOWERING_SCHEDULE_SCHEDULE_BUILDER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lowering/schedule/schedule.h"

namespace weft {

class ScheduleBuilder {
 public:
  using Steps = Schedule::Steps;

  ScheduleBuilder(const FusionPolicy& policy, const Fn& program, const std::vector<bool>& donated);
  // Once, at the end.
  Schedule Finish(Steps steps);

  const FusionPolicy& policy;
  BlockTrace* trace = nullptr;  // of the body that is being laid out; null: nobody asks

  // ---- Values ----------------------------------------------------------------------------------------------------
  int NewTemporary(const Type& type);
  int NewCopyOf(int value);  // of the same size
  // Memory that a step points to, in that of the values `within`.
  int NewMoving(const Type& type, std::vector<int> within);
  // Values for the parameters and results of a frame.
  void NewEnds(const Fn& fn, std::vector<int>* params, std::vector<int>* results);
  int Constant(const Tensor& t);  // one for equal bytes
  const Schedule::Value& value(int v) const { return frame().values[static_cast<size_t>(v)]; }
  int AddString(const std::string& text);

  // ---- Steps -----------------------------------------------------------------------------------------------------
  Schedule::Use Read(int v) const { return {v, Schedule::Access::kRead}; }
  // The first step that writes a value begins it, others complete it.
  Schedule::Use Write(int v);
  void AddKernel(Steps& steps, const KernelSpec& spec, const std::vector<int>& values,
                 const std::vector<Schedule::MayShare>& may_share);
  // Of what a step of lowering/abi/steps.h is told.
  template <class S>
  Schedule::Step& AddCall(Steps& steps, const S& told, std::vector<Schedule::Use> uses) {
    EntrySink sink;
    abi::Encode(told, sink);
    return AddCall(steps, S::kOpcode, std::move(sink.entries), std::move(uses));
  }
  void AddCopy(Steps& steps, Schedule::Copy why, int to, int from);

  // ---- Functions -------------------------------------------------------------------------------------------------
  // Between the two calls, values are the function's. Gives its index in Artifact::functions.
  int BeginFunction(const std::string& name);
  void EndFunction(int index, Steps steps);
  // Whether the memory of parameter `i` of a function may be overwritten. False unless it is the program.
  bool IsDonated(const Fn& fn, uint32_t i) const;
  // Of the open function: which of its parameters may be overwritten, and which results they can hold.
  void SetDonated(std::vector<bool> donated, std::vector<int> places);
  // The index of a function that has been laid out, for another call of it. (One that calls a function around it, or
  // communicates over a mesh around it, is laid out where it is called.)
  std::optional<int> FunctionOf(const FnRef& fn) const;
  void RememberFunction(const FnRef& fn, int index);
  // The function that recur[depth] calls.
  int Enclosing(int64_t depth) const;

  // The mesh whose devices run what is being laid out; null outside of one.
  void PushMesh(const Mesh& mesh) { meshes_.push_back(mesh); }
  void PopMesh() { meshes_.pop_back(); }
  const Mesh* CurrentMesh() const { return meshes_.empty() ? nullptr : &meshes_.back(); }

 private:
  struct EntrySink {
    std::vector<Schedule::Entry> entries;
    const char* field = nullptr;  // of which the next entry is the first
    void Field(const char* name) { field = name; }
    void Place(int value) { Add(value < 0 ? Schedule::Entry(Dim(value)) : Schedule::Entry::Place(value)); }
    void Result(int value) { Add(value < 0 ? Schedule::Entry(Dim(value)) : Schedule::Entry::ResultNumber(value)); }
    void Number(const Dim& number) { Add(number); }
    void Add(Schedule::Entry entry) {
      entry.field = std::exchange(field, nullptr);
      entries.push_back(entry);
    }
  };
  static Schedule::Step& AddCall(Steps& steps, WeftOpcode op, std::vector<Schedule::Entry> desc,
                                 std::vector<Schedule::Use> uses);
  // What is known of the values of a frame while it is made.
  struct Open {
    size_t frame = 0;
    std::unordered_map<std::string, int> constants;  // by their bytes
    std::vector<bool> written;
  };
  Schedule::Frame& frame() { return schedule_.frames[open_.frame]; }
  const Schedule::Frame& frame() const { return schedule_.frames[open_.frame]; }
  int New(Schedule::Value value);

  const Fn& program_;
  Schedule schedule_;
  Open open_;
  std::vector<Open> around_;    // the frames in which the open one is called
  std::vector<int> enclosing_;  // functions
  // Held: the body for the devices of a mesh is dropped once it is laid out, and another may get its address.
  std::unordered_map<FnRef, int> functions_;
  std::unordered_map<std::string, int> kernels_;
  std::unordered_map<std::string, int> strings_;
  std::vector<Mesh> meshes_;
};

}  // namespace weft
#endif  // WEFT_LOWERING_SCHEDULE_SCHEDULE_BUILDER_H_
