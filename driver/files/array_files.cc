#include "driver/files/array_files.h"

#include <filesystem>
#include <iostream>
#include <stdexcept>

#include "driver/files/files.h"
#include "driver/files/npy.h"
#include "driver/files/npz.h"
#include "ir/error.h"
#include "ir/eval/effects.h"

namespace weft {

Tensors ReadArguments(const std::string& program, const std::vector<Wanted>& wanted,
                      const std::vector<std::string>& inputs) {
  Tensors arguments;
  const bool archive =
      inputs.size() == 1 && inputs[0].size() > 4 && inputs[0].compare(inputs[0].size() - 4, 4, ".npz") == 0;
  if (archive) {
    const NpzArchive files(inputs[0]);
    for (size_t i = 0; i < wanted.size(); ++i) {
      std::string name = wanted[i].name;
      if (!files.Has(name)) name = "arr_" + std::to_string(i);
      if (!files.Has(name))
        throw ValueError(program, ": ", inputs[0], " has no array '", wanted[i].name, "' (nor 'arr_", i, "')");
      arguments.push_back(ParseNpy(files.Read(name), wanted[i].type.dtype, inputs[0] + ": " + name));
    }
    return arguments;
  }
  if (inputs.size() != wanted.size()) {
    Types types;
    for (const Wanted& w : wanted) types.push_back(w.type);
    throw ValueError(program, " takes ", wanted.size(), " arrays (", ToString(types), "), --inputs names ",
                     inputs.size());
  }
  for (size_t i = 0; i < inputs.size(); ++i) arguments.push_back(ReadNpy(inputs[i], wanted[i].type.dtype));
  return arguments;
}

Tensors ReadArguments(const Bundle& bundle, const std::vector<std::string>& inputs) {
  std::vector<Wanted> wanted;
  for (const Bundle::Value& v : bundle.params) {
    if (!v.is_constant)
      wanted.push_back({v.name, Type{static_cast<DType>(v.dtype), Dims(v.shape.begin(), v.shape.end()), {}}});
  }
  return ReadArguments(bundle.name, wanted, inputs);
}

Bundle ParseBundle(const std::string& bytes, const std::string& file) {
  try {
    return Bundle::Parse(bytes);
  } catch (const std::invalid_argument& failure) {
    throw UserError(ErrorKind::kParse, {}, file, ": ", failure.what());
  }
}

void PutResults(const Tensors& results, const std::string& folder) {
  if (folder.empty()) {
    for (const Tensor& t : results) std::cout << t.type() << " " << FormatTensors("{}", {t}) << "\n";
    return;
  }
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw ValueError("cannot make the folder ", folder, ": ", error.message());
  for (size_t i = 0; i < results.size(); ++i)
    WriteNpy((std::filesystem::path(folder) / (std::to_string(i) + ".npy")).string(), results[i]);
}

}  // namespace weft
